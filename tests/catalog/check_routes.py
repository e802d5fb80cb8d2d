#!/usr/bin/env python3
"""usage: check_routes.py BUILD [FOLDER]

The catalog's routes against the Python files of sglang's and FlashInfer's releases (requirements-routes-*.txt), by their syntax
trees: nothing of theirs is run. Of each route, in each release that it claims: the module is there and has the function, which has the parameters
that old arguments are mapped to; where old calls are promised to fit, they do. Where a route ends, the function has gone, or another
route of the same name goes on. The packages are PyPI's, 450 MB; with FOLDER they are taken from there."""
import ast, functools, pathlib, re, sys, tarfile, tempfile, zipfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import catalog_rows, pypi

SGLANG, FLASHINFER = HERE / "requirements-routes-sglang.txt", HERE / "requirements-routes-flashinfer.txt"
# What the sources have and the catalog does not say, or the other way round, and why that is right.
THERE = "it is there, but no route says so"
EXPLAINED = {
    ("kimi_k2_moe_fused_gate", "sglang.jit_kernel.moe_fused_gate.moe_fused_gate", THERE): "before 0.5.15 it takes groups of experts, which this gate has not",
    ("kimi_k2_moe_fused_gate", "sglang.jit_kernel.trtllm_lora_temp.kimi_k2_moe_fused_gate.kimi_k2_moe_fused_gate", THERE):
        "from 0.5.15 on moe_fused_gate takes this gate's calls too, and is the one that stays",
    ("dsv3_router_gemm", "sglang.srt.layers.rocm_linear_utils.aiter_dsv3_router_gemm", THERE): "before 0.5.10 it also takes what its output is allocated from",
}


def files_of(package):
    """Path in the package, and content, of a wheel or a source package."""
    if package.suffix == ".whl":
        with zipfile.ZipFile(package) as archive:
            yield from ((name, archive.read(name)) for name in archive.namelist() if name.endswith(".py"))
    else:
        with tarfile.open(package) as archive:
            yield from ((member.name.partition("/")[2], archive.extractfile(member).read()) for member in archive if member.isfile() and member.name.endswith(".py"))


class Package:
    """The Python files of a release."""

    def __init__(self, file):
        self.files = {path: text for path, text in files_of(file) if path.startswith(("sglang/", "flashinfer/"))}

    @functools.lru_cache(None)
    def tree(self, module):
        path = module.replace(".", "/")
        text = self.files.get(f"{path}/__init__.py", self.files.get(f"{path}.py"))
        return None if text is None else ast.parse(text)

    def is_package(self, module):
        return f"{module.replace('.', '/')}/__init__.py" in self.files

    def find(self, module, name, depth=0):
        """The definition that module.name leads to: a function, a class, or "bound" for what the syntax does not tell."""
        tree = self.tree(module)
        if tree is None or depth > 4:
            return None
        found = None
        for node in statements(tree.body):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name == name:
                found = node
            elif isinstance(node, ast.ImportFrom):
                above = module.split(".")[: len(module.split(".")) - node.level + self.is_package(module)] if node.level else []
                source = ".".join(above + ([node.module] if node.module else []))
                for alias in node.names:
                    if (alias.asname or alias.name) == name:
                        found = self.find(source, alias.name, depth + 1) or "bound"
                    elif alias.name == "*" and not name.startswith("_"):
                        found = self.find(source, name, depth + 1) or found
            elif isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in node.targets):
                found = "bound"
        return found


def statements(body):
    """Those of a module, also under conditions."""
    for node in body:
        yield node
        for part in ("body", "orelse", "finalbody", "handlers"):
            if isinstance(node, (ast.If, ast.Try, ast.With, ast.ExceptHandler)):
                yield from statements(getattr(node, part, []))


class Parameters:
    def __init__(self, node):
        self.any = False
        if isinstance(node, ast.ClassDef):
            made = [n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"]
            if not made:  # a dataclass
                fields = [n for n in node.body if isinstance(n, ast.AnnAssign)]
                self.positional = [n.target.id for n in fields]
                self.default = {n.target.id: ast.unparse(n.value) for n in fields if n.value}
                self.keyword = []
                return
            node = made[0]
        a = node.args
        self.positional = [p.arg for p in a.posonlyargs + a.args if p.arg != "self"]
        self.keyword = [p.arg for p in a.kwonlyargs]
        self.any = bool(a.kwarg)
        self.default = dict(zip(reversed(self.positional), (ast.unparse(d) for d in reversed(a.defaults))))
        self.default.update((p.arg, ast.unparse(d)) for p, d in zip(a.kwonlyargs, a.kw_defaults) if d)

    def names(self):
        return self.positional + self.keyword


def call_faults(old, new):
    """What keeps calls of the old function from fitting the new one, with the same meaning."""
    if new.positional[: len(old.positional)] != old.positional:
        yield f"its positional parameters are {', '.join(new.positional)}"
    for name in old.names():
        if name in old.default and name in new.names() and new.default.get(name) != old.default[name]:
            yield f"the default of {name} is {new.default.get(name)}, it was {old.default[name]}"
    for name in new.names():
        if name not in old.names() and name not in new.default:
            yield f"it also needs {name}"


def route_faults(row, route, package):
    found = package.find(route.module, route.name)
    if found is None:
        yield "there is no such module" if package.tree(route.module) is None else "the module does not have it"
        return
    if found == "bound":
        if route.arguments:
            yield "the module binds the name, but its parameters cannot be read"
        return
    new = Parameters(found)
    for old, name in route.arguments:
        if name and name not in new.names() and not new.any:
            yield f"it has no parameter {name}: {', '.join(new.names())}"
    if route.takes_old_calls() and row.signature:
        yield from call_faults(Parameters(ast.parse(f"def _{row.signature}: pass").body[0]), new)


def sglang_faults(packages):
    for row in catalog_rows.rows():
        routes = [route for route in row.routes + row.elsewhere if route.kind == "sglang"]
        for route in routes:
            for release, package in packages.items():
                if route.is_in(release):
                    for fault in route_faults(row, route, package):
                        yield row, route, f"sglang {release}", fault
                elif package.find(route.module, route.name) is not None and not any(
                        (other.module, other.name) == (route.module, route.name) and other.is_in(release) for other in routes):
                    yield row, route, f"sglang {release}", THERE


def library_faults(packages):
    for row in catalog_rows.rows():
        for route in row.routes:
            if route.kind == "library" and route.module.partition(".")[0] == "flashinfer":
                for release, package in packages.items():
                    if not route.since or catalog_rows.version(route.since) <= catalog_rows.version(release):
                        for fault in route_faults(row, route, package):
                            yield row, route, f"flashinfer {release}", fault


def releases(requirements, folder):
    """Release -> Package, oldest first."""
    found = {}
    for name, release in re.findall(r"^([\w-]+)==(\S+) ", requirements.read_text(), re.M):
        (file,) = [*folder.glob(f"{name.replace('-', '_')}-{release}-*.whl"), *folder.glob(f"{name.replace('-', '_')}-{release}.tar.gz")]
        found[release] = Package(file)
    return found


def main():
    with tempfile.TemporaryDirectory(dir=sys.argv[1]) as folder:
        folder = pathlib.Path(folder)
        if len(sys.argv) > 2:
            folder = pathlib.Path(sys.argv[2])
        else:
            for requirements, download in ((SGLANG, pypi.download_wheels), (FLASHINFER, pypi.download_sources)):
                for line in requirements.read_text().splitlines()[1:]:  # pip takes one release of a package at a time
                    (folder / "pin").write_text(line)
                    download(folder / "pin", folder)
        sglang, flashinfer = releases(SGLANG, folder), releases(FLASHINFER, folder)
    faults, seen = {}, set()
    for row, route, where, fault in [*sglang_faults(sglang), *library_faults(flashinfer)]:
        key = (row.id, f"{route.module}.{route.name}", fault)
        seen.add(key)
        if key not in EXPLAINED:
            faults.setdefault((row.id, route.line, *key[1:]), []).append(where)
    for (id, line, name, fault), where in faults.items():
        print(f"FAIL catalog/removals.yaml:{line}: {id}: {name}: {fault} ({', '.join(where)})")
    for key in EXPLAINED.keys() - seen:
        print(f"FAIL not there any more: {key}")
    bad = len(faults) + len(EXPLAINED.keys() - seen)
    routes = sum(route.kind == "sglang" or route.module.startswith("flashinfer") for row in catalog_rows.rows() for route in row.routes + row.elsewhere)
    print(f"check_routes: {routes} routes in {len(sglang)} releases of sglang and {len(flashinfer)} of FlashInfer, {bad} faults")
    return bad != 0


sys.exit(main())
