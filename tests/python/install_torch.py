#!/usr/bin/env python3
"""usage: install_torch.py VERSION FOLDER

Puts PyPI's torch VERSION (requirements-torch-VERSION.txt: pins and hashes) into a virtual environment in FOLDER. FOLDER/python
runs it, FOLDER/include and FOLDER/lib are for a C++ compiler. Does nothing when FOLDER is there.

PyPI has wheels for CUDA only, 0.5 to 0.9 GB, and wants 2 GB of NVIDIA's libraries beside them. On a machine without a GPU
torch calls none of those but the runtime, so the others are stand-ins here: every function that torch's libraries ask for is
there, with its version, and answers 1, which is an error. What is left is the real torch, 1.2 to 1.7 GB on disk, on CPU tensors."""
import os, pathlib, re, shutil, subprocess, sys, tempfile

HERE = pathlib.Path(__file__).resolve().parent
REAL = {"libcudart", "libgomp", "libcuda"}  # libcuda is the driver's: only for lazily loaded parts


def run(*command):
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        sys.exit(f"install_torch: {' '.join(map(str, command))}: {(done.stdout.strip().splitlines() or ['no output'])[-1]}")
    return done.stdout


def symbols(library):
    """(names of the libraries that it needs, what it defines, what it misses as (library or None, version) -> names)"""
    text = run("objdump", "-p", "-T", library)
    nodes = {}  # version -> the library that has it
    for file, versions in re.findall(r"^  required from (\S+):\n((?:    0x.*\n)*)", text, re.M):
        nodes.update((line.split()[-1], file) for line in versions.splitlines())
    defined, missing = set(), {}
    for kind, section, version, name in re.findall(r"^[0-9a-f]{16} (.{7}) (\S+)\s+[0-9a-f]{16} +(?:\(?([^\s)]+)\)?)? +(?:0x\S+ )?(\S+)$", text, re.M):
        if section != "*UND*":
            defined.add(name)
        elif "w" not in kind:
            missing.setdefault((nodes.get(version), version), set()).add(name)
    return set(re.findall(r"^  NEEDED +(\S+)", text, re.M)), defined, missing


def stand_ins(folder, libraries, real=REAL):
    """Into folder: each library of NVIDIA's that is needed, with all functions that `libraries` miss. Those without a
    version may come from any library, so the first stand-in has them."""
    needed, defined, missing = set(), set(), {}
    for library in libraries:
        needs, has, misses = symbols(library)
        needed |= needs
        defined |= has
        for key, names in misses.items():
            missing.setdefault(key, set()).update(names)
    wanted = sorted(file for file in needed if file.startswith(("libcu", "libnccl", "libnv")) and file.partition(".")[0] not in real)
    everywhere = set().union(*(names for (file, _), names in missing.items() if file is None)) - defined
    everywhere = {name for name in everywhere if name.startswith(("cu", "nccl", "nv"))}  # not Python's and C++'s own
    with tempfile.TemporaryDirectory() as work:
        source, script = os.path.join(work, "stand_in.c"), os.path.join(work, "map")
        for file in wanted:
            nodes = {version: names for (of, version), names in missing.items() if of == file}
            free = everywhere if file == wanted[0] else set()
            with open(source, "w") as text:
                text.writelines(f"int {name}(void) {{ return 1; }}\n" for name in sorted(free.union(*nodes.values())))
            with open(script, "w") as text:
                text.writelines(f"{version} {{ {''.join(f'{name}; ' for name in sorted(names))}}};\n" for version, names in nodes.items())
            run("gcc", "-shared", "-fPIC", "-w", "-fno-builtin", f"-Wl,-soname,{file}", *([f"-Wl,--version-script={script}"] if nodes else []),
                "-o", folder / file, source)


def main():
    version, folder = sys.argv[1], pathlib.Path(os.path.abspath(sys.argv[2]))
    if (folder / "python").exists():
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    part = pathlib.Path(tempfile.mkdtemp(prefix=folder.name + ".", dir=folder.parent))
    try:
        run(sys.executable, "-m", "venv", "--without-pip", part / "venv")
        run(sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", part / "venv/bin/python", "install", "-q", "--no-deps", "--no-cache-dir",
            "--no-compile", "--only-binary", ":all:", "--require-hashes", "-r", HERE / f"requirements-torch-{version}.txt")
        (package,) = (part / "venv/lib").glob("python*/site-packages/torch")
        stand_ins(package / "lib", list((package / "lib").glob("*.so")))
        os.symlink(os.path.relpath(package / "include", part), part / "include")
        (part / "lib").mkdir()
        for library in ("libtorch_cpu.so", "libc10.so"):
            os.symlink(os.path.relpath(package / "lib" / library, part / "lib"), part / "lib" / library)
        python = part / "python"
        python.write_text('#!/bin/sh\nunset LD_LIBRARY_PATH PYTHONPATH\nexec "$(dirname -- "$0")/venv/bin/python" "$@"\n')
        python.chmod(0o755)
        if run(python, "-c", "import torch; print(torch.cuda.is_available(), torch.ones(2).sum().item())").split()[-1] != "2.0":
            sys.exit("install_torch: what was installed does not compute")
        os.chmod(part, 0o755)
        try:
            os.rename(part, folder)
        except OSError:
            if not (folder / "python").exists():  # else another process was faster
                raise
    finally:
        shutil.rmtree(part, ignore_errors=True)


if __name__ == "__main__":
    main()
