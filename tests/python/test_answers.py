#!/usr/bin/env python3
"""Every removed name answers as the catalog says: what the census has is in the catalog, and each Python name, operator and
C++ function is asked for in a real process (scenario_answers.py), next to stand-ins of sgl_kernel, and of sglang and FlashInfer
as they were in each era of the catalog's routes. What the C++ functions without a kernel throw is test_tombstones.py's."""
import ast, atexit, json, os, pathlib, re, shutil, subprocess, sys, tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
import catalog_rows
from suite import Skip, main

BUILD = pathlib.Path(os.environ["BUILD_DIR"]).resolve()
HERE = pathlib.Path(__file__).resolve().parent
TORCH = pathlib.Path(os.environ.get("SGL_TEST_TORCH") or BUILD / "torch-2.11.0")
CENSUS = ROOT / "tests" / "catalog" / "data" / "census_names.txt"
WORK = pathlib.Path(tempfile.mkdtemp(prefix="sgl-answers-"))
atexit.register(shutil.rmtree, WORK, ignore_errors=True)
ROWS = catalog_rows.rows()
GONE = [row for row in ROWS if row.status != "planned"]
RELEASES = catalog_rows.releases("sglang_releases")
# The catalog knows better than the census: docs/census.md.
STAYED = {"_Z17top_k_mask_logitsN2at6TensorES0_St8optionalIS0_El"}


def census():
    for line in CENSUS.read_text().splitlines():
        if not line.startswith("#"):
            status, id, places, operator, mangled, *change = line.split()
            yield status, id, [] if places == "-" else places.split(","), operator, mangled, *(change or [""])


def test_every_row_of_the_census():
    places = {f"{module}.{name}" for row in GONE for module, name in row.places}
    operators = {row.op_name: row for row in GONE if row.op_name}
    functions = {row.mangled for row in GONE if row.mangled}
    ids, faults, seen = {row.id for row in GONE}, [], 0
    for status, id, names, operator, mangled, change in census():
        seen += 1
        faults += [f"{id}: no row has {name}" for name in names if name not in places]
        faults += [f"{id}: no row has the C++ function {mangled}"] if mangled != "-" and mangled not in functions | STAYED else []
        if operator != "-":
            platform = id.partition(":")[0] if ":" in id else ""
            row = operators.get(operator)
            if not row or not any(r["layer"] == "operator" and "first_without" in r and platform in ("", r["platform"]) for r in row.removals):
                faults.append(f"{id}: no row says when the operator {operator} left")
        if ":" not in id and not change and id not in ids:
            faults.append(f"{id}: there is no such row")
        if change:  # a module or a wheel: nothing is served, and people are told
            what, _, rest = change.partition(":")
            done = subprocess.run([BUILD / "bin" / "sgl-migrate", "explain", rest.partition("@")[0]], capture_output=True, text=True, timeout=60)
            if done.returncode or f"from {rest.partition('@')[2]} on" not in done.stdout or "what to do: " not in done.stdout:
                faults.append(f"{id}: sgl-migrate explain {rest.partition('@')[0]}: {done.stdout}{done.stderr}")
        elif names == [] and operator == mangled == "-":
            faults.append(f"{id}: nothing to be answered")
    assert seen > 75 and not faults, "\n".join(faults)


def test_the_catalog_is_read_whole():
    lint = subprocess.run([BUILD / "bin" / "sgl-catalog", "lint", catalog_rows.CATALOG], capture_output=True, text=True, timeout=60)
    assert f": {len(ROWS)} rows, " in lint.stdout, lint
    text = catalog_rows.CATALOG.read_text().split("\nchanges:")[0]
    for pattern, count in ((r"(?m)^      - kind: ", sum(len(row.routes) + len(row.elsewhere) for row in ROWS)), (r"\{module: \S+, name: ", sum(len(row.places) for row in ROWS)),
                           (r"\{from: \w+, to: ", sum(len(route.arguments) for row in ROWS for route in row.routes + row.elsewhere)),
                           (r"\{layer: ", sum(len(row.removals) for row in ROWS)), (r"(?m)^      mangled: ", sum(bool(row.mangled) for row in ROWS))):
        assert len(re.findall(pattern, text)) == count, pattern


# --- the worlds ---------------------------------------------------------------------------------------------------------


def is_foreign(route):
    return route.kind in ("sglang", "library") and not route.module.startswith(("sgl_kernel", "torch"))


def eras():
    """All releases of sglang at which a route that takes old calls begins or ends, and those before them."""
    edges = {edge for row in GONE for route in row.routes if route.kind == "sglang" and route.takes_old_calls() for edge in (route.since, route.until) if edge}
    return [release for at, release in enumerate(RELEASES) if release in edges or RELEASES[min(at + 1, len(RELEASES) - 1)] in edges or at + 1 == len(RELEASES)]


def write_module(root, name, text):
    folder = root
    for part in name.split("."):
        folder /= part
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "__init__.py").touch()
    with open(folder / "__init__.py", "a") as file:
        file.write(text)


def write_others(root, release):
    """sglang of a release, and FlashInfer: the functions of all routes write down how they are called."""
    root.mkdir()
    (root / "answers_calls.py").write_text("calls, result = [], None\n")
    info = root / f"sglang-{release}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: sglang\nVersion: {release}\n")
    there = {(route.module, route.name) for row in ROWS for route in row.routes if is_foreign(route) and (route.kind == "library" or route.is_in(release))}
    for module, name in sorted(there):
        write_module(root, module, f"def {name}(*args, **kwargs):\n    import answers_calls\n"
                                   f"    answers_calls.calls.append(({module!r}, {name!r}, args, kwargs))\n    return answers_calls.result\n")
    return root


def write_kernel(root, modules):
    """A new sgl_kernel, with these modules and operators that stay."""
    write_module(root, "sgl_kernel", "import torch\n")
    for module in sorted(modules - {"sgl_kernel"}):
        write_module(root, module, "")
    for row in GONE:
        for route in row.routes:
            if route.module == "torch.ops.sgl_kernel" and not row.places and route.takes_old_calls():
                text = row.op_schema.replace(row.op_name, route.name, 1)
                (root / "sgl_kernel" / "__init__.py").open("a").write(
                    f"_{route.name} = torch.library.Library('sgl_kernel', 'FRAGMENT')\n_{route.name}.define({text!r})\n"
                    f"def _call_{route.name}(*args):\n    import answers_calls\n    answers_calls.calls.append(('torch.ops.sgl_kernel', {route.name!r}, args, {{}}))\n"
                    f"    return answers_calls.result\n_{route.name}.impl({route.name!r}, _call_{route.name}, 'CPU')\n")
    return root


def parts_of(row, layer):
    """What each error says: when the name left, and what the catalog puts first."""
    best = row.routes[0]
    return [row.gone(layer), "there is no replacement" if best.kind == "none" else f"{best.module}.{best.name}"]


def answer_of(row, release, others, jit):
    """What the catalog promises to a caller of the Python name."""
    for route in row.routes:
        if route.takes_old_calls() and (jit if route.kind == "jit" else others and is_foreign(route) and (route.kind == "library" or route.is_in(release))):
            return ["jit"] if route.kind == "jit" else ["route", route.module, route.name]
    return gone(row)


def gone(row):
    """An error; its text tells apart what is gone for good and what only cannot run here."""
    return ["gone", "cannot run here" if any(route.kind == "jit" for route in row.routes) else "is gone"]


def operator_answer_of(row, release, others, jit):
    """An operator goes where its Python function goes, if that takes the same in the same order; one without a function
    goes to another operator."""
    if row.places:
        answer = answer_of(row, release, others, jit)
        return answer if answer[0] != "route" or schema_parameters(row.op_schema) == signature_parameters(row.signature) else gone(row)
    same = [route for route in row.routes if route.takes_old_calls() and route.module == "torch.ops.sgl_kernel"]
    return ["route", same[0].module, same[0].name] if same else gone(row)


def signature_parameters(text):
    arguments = ast.parse(f"def _{text}: pass").body[0].args
    return [a.arg for a in arguments.args + arguments.kwonlyargs]


def schema_parameters(text):
    inside = text[text.index("(") + 1 : text.rindex("->")].strip()[:-1]
    return [one.split("=")[0].split()[-1] for one in inside.split(",") if one.strip()]


def world(title, release, others, jit, cuda, kernel):
    names = [{"id": row.id, "module": module, "name": name, "signature": row.signature, "answer": answer_of(row, release, others, jit), "parts": parts_of(row, "python")}
             for row in GONE for module, name in row.places]
    operators = [{"id": row.id, "name": row.op_name, "schema": row.op_schema, "answer": operator_answer_of(row, release, others, jit), "parts": parts_of(row, "operator")}
                 for row in GONE if row.op_name]
    functions = [{"id": row.id, "name": row.mangled} for row in GONE if row.declaration.startswith("void ") and jit and any(route.kind == "jit" for route in row.routes)]
    paths = [str(path) for path in (others, kernel) if path]
    return {"title": title, "names": names, "operators": operators, "functions": functions, "paths": paths, "cuda": cuda,
            "environment": {"SGL_KERNEL_JIT_BACKEND": "reference" if jit else "auto"}}


def write_worlds():
    modules = {module for row in GONE for module, _ in row.places}
    full, bare = write_kernel(WORK / "full", modules), write_kernel(WORK / "bare", set())
    nothing = WORK / "nothing"
    nothing.mkdir()
    (nothing / "answers_calls.py").write_text("calls, result = [], None\n")
    worlds = [world("alone", "", None, True, True, full), world("lost_modules", "", None, True, True, bare)]
    for one in worlds:
        one["paths"].append(str(nothing))
    for release in eras():
        others = write_others(WORK / release, release)
        worlds.append(world(f"beside_sglang_{release}", release, others, False, False, full))
    worlds.append(world("beside_the_newest", RELEASES[-1], WORK / RELEASES[-1], True, True, bare))
    file = WORK / "worlds.json"
    file.write_text(json.dumps(worlds))
    return worlds, file


def test_answers():
    installed = subprocess.run([sys.executable, str(HERE / "install_torch.py"), "2.11.0", str(TORCH)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if installed.returncode:
        raise Skip(f"no torch here: {(installed.stdout.strip().splitlines() or ['install_torch.py failed'])[-1]}")
    (wheel,) = (BUILD / "wheel").glob("*.whl")
    site = WORK / "site"
    subprocess.run([sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "-q", "--no-index", "--no-cache-dir", "--no-deps", "--target", site, wheel], check=True, env={**os.environ, "PIP_ROOT_USER_ACTION": "ignore"})
    worlds, file = write_worlds()
    assert len(worlds) > 10
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("SGL_KERNEL_", "PYTHON", "TORCH_"))}
    environment.update(SGL_TEST_ANSWERS=str(file), PYTHONWARNINGS="ignore", SGL_KERNEL_COMPAT_WARN="off", XDG_CONFIG_HOME=str(WORK / "nothing"))
    done = subprocess.run([TORCH / "python", HERE / "checks.py", "answers", site], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment, timeout=600)
    assert done.returncode == 0 and f"checks: {len(worlds)} passed, 0 failed" in done.stdout, done.stdout


main(globals())
