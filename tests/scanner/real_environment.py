#!/usr/bin/env python3
"""sgl-migrate audit on a real environment: each line that it says, and each one that it should say, by other tools.

usage: real_environment.py BUILD [FOLDER]

The environment is what sglang 0.5.18 asks for: torch with the CUDA libraries, the kernel wheel, flashinfer and sglang itself
(requirements-environment.txt: pins and hashes). FOLDER is a site-packages folder that has it already; else it goes, once, to
BUILD/real-environment. A second one, beside it, has the kernel wheel for another torch and CUDA in place of that one. The facts of each ELF file are read again from what readelf prints, strings from the bytes of the
sections that readelf names, CUDA code with cuobjdump, libraries with ldconfig's list; the catalog's names from the text of
removals.yaml. Exit status 1 when anything differs."""
import collections, json, os, pathlib, re, shutil, subprocess, sys, time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import pypi

BUILD = pathlib.Path(sys.argv[1]).resolve()
TOOL = BUILD / "bin" / "sgl-migrate"
KERNELS = (None, "0.4.10", "0.4.4")  # the environment itself; the newest; one before
FAULTS = []


def fault(*what):
    FAULTS.append(" ".join(map(str, what)))


def compare(what, have, want):
    for one in sorted(set(have) - set(want), key=str)[:20]:
        fault(f"{what}: invented:", one)
    for one in sorted(set(want) - set(have), key=str)[:20]:
        fault(f"{what}: missed:", one)


def output(*command, **options):
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
    return done.stdout.decode(errors="surrogateescape")


def install(requirements, folder, base=None):
    """Once. `base`: a folder whose files are there, too, as hard links, but for the kernel."""
    if folder.exists():
        return
    part = folder.with_name(folder.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    tags = [f"manylinux_2_{minor}_x86_64" for minor in range(5, 35)] + ["manylinux1_x86_64", "manylinux2010_x86_64", "manylinux2014_x86_64", "any"]
    pypi.pip("install", "--no-deps", "--no-cache-dir", "--no-compile", "--only-binary", ":all:", "--require-hashes", "--python-version", "3.11", "--implementation", "cp",
             "--abi", "cp311", "--abi", "abi3", "--abi", "none", *(word for tag in tags for word in ("--platform", tag)), "-r", HERE / requirements, "--target", part)
    for one in base.iterdir() if base else ():
        if not one.name.startswith(("sgl_kernel", "sglang_kernel")) and not (part / one.name).exists():
            (shutil.copytree if one.is_dir() else os.link)(one, part / one.name, **({"copy_function": os.link, "symlinks": True} if one.is_dir() else {}))
    part.rename(folder)


# --- one file, by readelf ---------------------------------------------------------------------------------------------

SYMBOL = re.compile(r"^ *\d+: [0-9a-f]+ +\S+ (\S+) +(<OS specific>: \d+|\S+) +(\S+)(?: +\[[^]]*\])? +(\S+)(?: ([^\s@]+)(?:(@@?)(\S+))?(?: \(\d+\))?)?$")
SECTION = re.compile(r"^ *\[ *\d+\] (\S+) +(\S+) +[0-9a-f]+ ([0-9a-f]+) ([0-9a-f]+) [0-9a-f]+ +([A-Zop]*) +\d+ +\d+ +\d+$")


class File:
    """What readelf prints of an ELF file, or of a member of a static archive."""

    def __init__(self, text, path):
        self.path = path
        find = lambda pattern: (re.findall(pattern, text, re.M) or [None])[0]
        self.type = find(r"^  Type: +(\S+)")
        self.machine = find(r"^  Machine: +(.*)$")
        self.build_id = find(r"Build ID: ([0-9a-f]+)")
        dynamic = lambda tag: re.findall(rf"^ 0x[0-9a-f]+ \({tag}\) .*: \[(.*)\]$", text, re.M)
        self.needed, self.soname = dynamic("NEEDED"), (dynamic("SONAME") or [None])[0]
        self.rpath, self.runpath = (dynamic("RPATH") or [None])[0], (dynamic("RUNPATH") or [None])[0]
        has = re.split(r"^Version (?:definition|needs) section", text, flags=re.M)
        own_versions = set(re.findall(r"Name: (\S+)$", has[1], re.M)) if "Version definition section" in text else set()
        self.undefined, self.exported = set(), set()  # (name, version, weak)
        self.defined = set()  # names
        for line in text.splitlines():
            found = SYMBOL.match(line)
            if not found or not found[5] or found[2] == "LOCAL":
                continue
            kind, bind, visibility, index, name, _, version = found.groups()
            if index == "UND":
                self.undefined.add((name, version, bind == "WEAK"))
            elif visibility not in ("HIDDEN", "INTERNAL") and not (index == "ABS" and name in own_versions):
                self.exported.add((name, version, bind == "WEAK"))
                self.defined.add(name)
        needs = (re.split(r"^Version needs section", text, flags=re.M) + [""])[1]
        newest = lambda front: max((tuple(map(int, v.split("."))) for v in re.findall(rf"Name: {front}_([\d.]+) ", needs)), default=None)
        self.versions = {name: ".".join(map(str, newest(front))) if newest(front) else None for name, front in (("glibc", "GLIBC"), ("glibcxx", "GLIBCXX"), ("cxxabi", "CXXABI"))}
        self.sections = [(name, kind, int(offset, 16), int(size, 16), flags) for name, kind, offset, size, flags in
                         (found.groups() for found in map(SECTION.match, text.splitlines()) if found)]

    def strings(self):
        """Whole strings in read-only data: printable text before a zero."""
        found = set()
        with open(self.path, "rb") as file:
            for name, kind, offset, size, flags in self.sections:
                if kind == "PROGBITS" and "A" in flags and not set("WXC") & set(flags) and "fatbin" not in name:
                    file.seek(offset)
                    found.update(re.findall(rb"(?:^|(?<=[^ -~]))([ -~]{4,4095})\0", file.read(size)))
        return found


def read_elf(path):
    return File(output("readelf", "-W", "-h", "-d", "-n", "-V", "-S", "--dyn-syms", path), path)


def read_archive(path):
    """The members of a static archive that are ELF files."""
    text = output("readelf", "-W", "-h", "-n", "-S", "-s", path)
    return [File(part, path) for part in re.split(r"^File: .*\(.*\)$", text, flags=re.M)[1:] if "ELF Header:" in part]


# --- the catalog, as text ---------------------------------------------------------------------------------------------


def number(version):
    return tuple(int(part) for part in re.findall(r"\d+", version.replace(".post", ".")))


def catalog():
    """[(id, operator, mangled name, {layer: first release without it})]"""
    text = (HERE.parents[1] / "catalog/removals.yaml").read_text().split("\nchanges:\n")[0]
    rows = []
    for row in re.split(r"^  - id: ", text, flags=re.M)[1:]:
        find = lambda key: (re.findall(rf"^ +{key}: (\S+)$", row, re.M) or [None])[0]
        left = dict(re.findall(r"\{layer: (\w+), platform: cuda, last_with: \S+, first_without: ([^,}]+)", row))
        rows.append((row.split("\n")[0], find("op_name"), find("mangled"), left))
    return rows


def gone(row, layer, kernel):
    return layer in row[3] and number(kernel) >= number(row[3][layer])


# --- names of torch, by c++filt ---------------------------------------------------------------------------------------


def qualified(text):
    """The name of a demangled symbol, without what it is of (vtable for) and what it returns."""
    text = re.sub(r"^(?:(?:non-virtual thunk to|virtual thunk to|covariant return thunk to|vtable for|VTT for|typeinfo for|typeinfo name for|guard variable for|TLS init function for|"
                  r"TLS wrapper function for|reference temporary #\d+ for) )+", "", text)
    text = re.sub(r"\boperator(?:<<|<=>|<=|<|->\*|->|>>|>=|>|\(\))", "operator@", text)
    depth, name = 0, ""
    for c in text.replace("(anonymous namespace)", "{anonymous}").replace("decltype (", "decltype("):
        if c in ")>]}":
            depth -= 1
        if depth == 0 and c == " " and not name.endswith("operator"):
            name = ""  # that was a type
        elif depth == 0 and c == "(" and name and name != "decltype":
            break
        elif depth == 0:
            name += c
        if c in "(<[{":
            depth += 1
    return name.lstrip("*&")


def torch_names(names, owner="(?:at|c10|torch)::"):
    names = sorted(names)
    plain = output("c++filt", input="\n".join(names).encode()).split("\n")
    return {name for name, text in zip(names, plain) if name.startswith("_Z") and text != name and re.match(owner, qualified(text))}


# --- libraries --------------------------------------------------------------------------------------------------------


class Libraries:
    """Where ld.so finds a library for a file of the environment."""

    def __init__(self, site, files):
        self.site = site
        self.cache = collections.defaultdict(list)
        for name, path in re.findall(r"^\t(\S+) \(libc6,x86-64.*\) => (/.*)$", output("/sbin/ldconfig", "-p"), re.M):
            self.cache[name].append(path)
        self.names = {}  # in the environment, whoever loads them
        for label, one in files.items():
            self.names.setdefault(one.soname, label)
            self.names.setdefault(os.path.basename(label), label)
        self.read = {}

    def find(self, label, one, name):
        """(state, real path or None)"""
        origin = os.path.dirname(self.site / label)
        folders = [f.replace("${ORIGIN}", origin).replace("$ORIGIN", origin) for f in (one.runpath or one.rpath or "").split(":")]
        places = [f"{f}/{name}" for f in folders if f.startswith("/")] + self.cache[name]
        places += [f"{f}/{name}" for f in ("/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib")]
        for place in places:
            real = os.path.realpath(place)
            if os.path.isfile(real) and open(real, "rb").read(4) == b"\x7fELF" and self.file(real).machine == one.machine:
                return "found", real
        return ("present", os.path.realpath(self.site / self.names[name])) if name in self.names else ("missing", None)

    def file(self, real):
        if real not in self.read:
            self.read[real] = read_elf(real)
        return self.read[real]

    def closure(self, label, one):
        """(real paths of all that the file needs with itself, was all of it found?)"""
        start = os.path.realpath(self.site / label)
        self.read[start] = one
        seen, complete, todo = {start}, True, [(label, one)]
        while todo:
            at, needs = todo.pop()
            for name in needs.needed:
                state, real = self.find(at, needs, name)
                complete = complete and state != "missing"
                if real and real not in seen:
                    seen.add(real)
                    todo.append((os.path.relpath(real, self.site), self.file(real)))
        return seen, complete


# --- the comparison ---------------------------------------------------------------------------------------------------


def check_facts(site, log, files, libraries):
    own = {f["path"]: f for f in log["files"] if not f["outside"] and not f["member"]}
    compare("ELF files", own, files)
    count = 0
    for label, one in files.items():
        has = own.get(label)
        if not has:
            continue
        if has["fault"]:
            fault(label, "not analysed:", has["fault"])
            continue
        compare(f"{label}: identity", [(k, has[k]) for k in ("buildId", "soname", "rpath", "runpath")] + list(has["versions"].items()) + [("needed", tuple(n["name"] for n in has["needed"]))],
                [("buildId", one.build_id), ("soname", one.soname), ("rpath", one.rpath), ("runpath", one.runpath), *one.versions.items(), ("needed", tuple(one.needed))])
        if {"Advanced Micro Devices X86-64": "x86-64", "AArch64": "aarch64"}.get(one.machine, one.machine) != has["machine"]:
            fault(label, "machine", has["machine"], one.machine)
        for key, want in (("undefined", one.undefined), ("exported", one.exported)):
            compare(f"{label}: {key}", {(s["name"], s["version"], s["weak"]) for s in has[key]}, want)
            count += len(want)
        states = []
        for n in has["needed"]:
            place = os.path.realpath(site / n["place"]) if n["state"] != "missing" else None
            states.append((n["name"], n["state"], place))
        compare(f"{label}: libraries", states, [(name, *libraries.find(label, one, name)) for name in one.needed])
    return count


def check_cuda(site, log):
    """The letter f of a family is not in cuobjdump's names."""
    tool, count = next(site.glob("triton/backends/nvidia/bin/cuobjdump"), None), 0
    for has in log["files"]:
        if not tool or has["outside"] or has["fault"] or not has["cudaCode"] or not has["path"].startswith(("sgl_kernel/", "torch/")):
            continue
        found = collections.Counter(f"{arch} {kind}" for arch, kind in re.findall(r"\.sm_(\d+a?)f?\.(cubin|ptx)$", output(tool, "-all", "--list-elf", "--list-ptx", site / has["path"]), re.M))
        said = collections.Counter()
        for code in has["cudaCode"]:
            said[f"{code['arch'].split('_')[1].rstrip('f')} {code['kind']}"] += code["count"]
        compare(f"{has['path']}: CUDA code", said.items(), found.items())
        count += sum(found.values())
    return count


def check_strings(log, files):
    own, count = {f["path"]: f for f in log["files"] if not f["outside"] and not f["member"]}, 0
    mangled = {row[2] for row in catalog() if row[2]}
    for label, one in files.items():
        texts = {text.decode() for text in one.strings()}
        compare(f"{label}: strings", own[label]["strings"], {t for t in texts if re.fullmatch(r"sgl_kernel::\w+", t) or t in mangled})
        schemas = {t.removeprefix("sgl_kernel::") for t in texts if re.match(r"(?:sgl_kernel::)?[\w.]+\(.*\) ?-> ", t)}
        compare(f"{label}: operators", own[label]["operators"], schemas if label.startswith("sgl_kernel/") else schemas & set(own[label]["operators"]))
        count += len(own[label]["strings"]) + len(own[label]["operators"])
    return count


def check_rows(site, files, archives, torch):
    """The rows of the contract: needs, needs-weak, provides, string, torch-abi; there is nothing that is not analysed."""
    counts, rows = collections.Counter(), catalog()
    for kernel in KERNELS:
        release = kernel or re.search(r"kernel-(.*)\.dist-info", next(site.glob("*kernel-*.dist-info")).name)[1]
        done = subprocess.run([TOOL, "audit", "--format", "tsv", *(["--kernel", kernel] if kernel else []), site], capture_output=True, text=True)
        if done.returncode & ~3:
            fault(f"status {done.returncode}:", done.stderr)
        want = set()
        functions = {row[2]: row[0] for row in rows if row[2] and gone(row, "cxx", release)}
        operators = {f"sgl_kernel::{row[1]}": row[0] for row in rows if row[1] and gone(row, "operator", release)}
        for label, one in files.items():
            want.update((label, functions[n], "needs-weak" if weak else "needs") for n, _, weak in one.undefined if n in functions)
            want.update((label, functions[n], "provides") for n in one.defined if n in functions)
            want.update((label, n, "torch-abi") for n, _, _ in one.undefined if n in torch)
            texts = {text.decode() for text in one.strings()} if functions or operators else set()
            own = {t.removeprefix("sgl_kernel::").split("(")[0] for t in texts if re.match(r"(?:sgl_kernel::)?[\w.]+\(.*\) ?-> ", t)}
            want.update((label, (functions | operators)[t], "string") for t in texts & (functions | operators).keys() if t not in one.defined and t.removeprefix("sgl_kernel::") not in own)
        for label, members in archives.items():
            defined = set().union(*(m.defined for m in members))
            want.update((label, functions[n], "needs") for m in members for n, _, weak in m.undefined if n in functions and n not in defined)
            want.update((label, functions[n], "provides") for n in defined if n in functions)
            want.update((label, n, "torch-abi") for m in members for n, _, _ in m.undefined if n in torch)
        have = [tuple(line.split("\t")) for line in done.stdout.splitlines()]
        if have != sorted(set(have)):
            fault(f"--kernel {kernel}: rows that are not sorted, or there twice")
        compare(f"--kernel {kernel}: rows", have, want)
        counts.update(f"{row[2]}" for row in want)
    return counts


STANDARD = ("_ZSt", "_ZNSt", "_ZNKSt", "_ZGT", "_Zn", "_Zd", "_ZTISt", "_ZTVSt", "_ZTVN10__cxxabiv")


def check_verdicts(site, log, files, libraries):
    """What is said of libraries that are missing, of torch's symbols and of symbols that nobody has."""
    said = collections.defaultdict(set)
    for finding in log["findings"]:
        said[finding["verdict"]].add((log["files"][finding["file"]]["path"], finding["name"]))
    compare("missing-library", said.pop("missing-library", ()), {(label, name) for label, one in files.items() for name in one.needed if libraries.find(label, one, name)[0] == "missing"})
    everywhere = set().union(*(one.defined for one in files.values()), *(one.defined for one in libraries.read.values()))
    strong = {label: {name for name, version, weak in one.undefined if not weak and not version} for label, one in files.items()}
    torch = torch_names(set().union(*strong.values()), r"(?:at|c10|torch|caffe2|c10d)::|THP\w+$")
    c_abi = re.compile(r"aoti_torch_|torch_library_|torch_call_dispatcher|torch_exception_")
    compare("torch-abi", said.pop("torch-abi", ()), {(label, n) for label, names in strong.items() for n in names - everywhere if n in torch or c_abi.match(n)})
    nobody = set()
    for label, names in strong.items():
        wanted = {n for n in names - everywhere if n.startswith("_Z") and not n.startswith(STANDARD) and n not in torch}
        if wanted and files[label].needed and libraries.closure(label, files[label])[1]:
            nobody.update((label, n) for n in wanted)
    unknown = said.pop("unknown-provider", set())
    compare("unknown-provider, of C++", {one for one in unknown if one[1] in strong[one[0]] - everywhere and one[1].startswith("_Z")}, nobody)
    for label, name in unknown - nobody:  # those that somebody has: not what the file needs
        loaded, complete = libraries.closure(label, files[label])
        if name not in strong[label] or not complete or any(name in libraries.file(real).defined for real in loaded):
            fault(f"{label}: unknown-provider: {name}")
    for verdict in said.keys() - {"note", "alive"}:
        fault(f"verdict {verdict}: who says that?", *sorted(said[verdict])[:5])
    return dict(collections.Counter(f["verdict"] for f in log["findings"] if f["verdict"] != "note"))


def check(site):
    start, before = time.monotonic(), len(FAULTS)
    done = subprocess.run([TOOL, "audit", "--format", "json", site], capture_output=True)
    log = json.loads(done.stdout)
    files, archives, size, count = {}, {}, 0, 0
    for folder, _, names in os.walk(site):
        for name in names:
            path = os.path.join(folder, name)
            label = os.path.relpath(path, site)
            size += os.path.getsize(path)
            count += 1
            with open(path, "rb") as file:
                magic = file.read(8)
            if magic[:4] == b"\x7fELF":
                files[label] = read_elf(path)
            elif magic == b"!<arch>\n":
                archives[label] = read_archive(path)
    libraries = Libraries(site, files)
    torch = torch_names({name for one in [*files.values(), *(m for ms in archives.values() for m in ms)] for name, _, _ in one.undefined})
    symbols = check_facts(site, log, files, libraries)
    members = collections.Counter(f["path"] for f in log["files"] if f["member"] and not f["fault"])
    compare("members of static archives", members.items(), ((label, len(ms)) for label, ms in archives.items() if ms))
    strings = check_strings(log, files)
    code = check_cuda(site, log)
    rows = check_rows(site, files, archives, torch)
    verdicts = check_verdicts(site, log, files, libraries)
    for line in FAULTS[before:before + 100]:
        print(f"FAIL {line}")
    print(f"{log['against']['from']} {log['against']['kernel']}, torch {log['against']['torch']}: {count} files, {size / 1e9:.1f} GB, {len(files)} ELF files and {sum(members.values())} members of "
          f"{len(archives)} static archives; {symbols} symbols, {strings} strings and schemas, {code} pieces of CUDA code, rows {dict(rows)}, verdicts {verdicts}: "
          f"{len(FAULTS) - before} differences, {time.monotonic() - start:.0f} s", flush=True)


def main():
    site = pathlib.Path(sys.argv[2]).resolve() if len(sys.argv) > 2 else BUILD / "real-environment"
    old = site.with_name(site.name + "-old")
    install("requirements-environment.txt", site)
    install("requirements-environment-old.txt", old, site)
    check(site)
    check(old)
    return bool(FAULTS)


if __name__ == "__main__":
    sys.exit(main())
