#!/usr/bin/env python3
"""The wheel, installed by pip into a clean environment and beside a real torch, next to stand-ins of sgl_kernel
(stand_ins/). Each scenario is a process of its own. The torch is that of $SGL_TEST_TORCH, else PyPI's 2.11.0 (install_torch.py);
where it cannot be had, the scenarios that need one are skipped. `make check-torch-matrix` runs this with others."""
import ast, builtins, concurrent.futures, functools, os, pathlib, re, shutil, subprocess, sys, tempfile

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ["BUILD_DIR"]).resolve()
TORCH = pathlib.Path(os.environ.get("SGL_TEST_TORCH") or BUILD / "torch-2.11.0")  # the release that the GPU tests run on
STAND_INS = HERE / "stand_ins"
IMPORT_LIMIT_MS = 10
CLEARED = ("SGL_KERNEL_", "PYTHON", "TORCH_", "RANK", "LOCAL_RANK", "SLURM_", "OMPI_", "MPI_", "MV2_", "PMI_", "PMIX_")
CLOSING = re.compile(r"^checks: (\d+) passed, (\d+) failed$", re.M)
WORK = pathlib.Path(tempfile.mkdtemp(prefix="sgl-python-"))
SITE, BROKEN, HALF, VENV = WORK / "site", WORK / "broken", WORK / "half", WORK / "venv"


def run(command, **variables):
    environment = {k: v for k, v in os.environ.items() if not k.startswith(CLEARED)}
    environment.update(variables, SGL_KERNEL_JIT_CACHE_DIR=str(WORK / "cache"), TORCHINDUCTOR_CACHE_DIR=str(WORK / "inductor"))
    try:
        done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, timeout=600)
    except subprocess.TimeoutExpired as e:
        return 1, "", f"{command} did not end: {e.stderr}"
    return done.returncode, done.stdout, done.stderr


def scenario(name, stand_in, site=SITE, python=TORCH / "python", stderr="", **variables):
    """(passed, failed, text): the closing line of a scenario, and one check of what it wrote to stderr."""
    variables.setdefault("SGL_KERNEL_JIT_BACKEND", "reference")
    paths = [site] + [STAND_INS / part for part in stand_in.split()]
    status, output, errors = run([python, HERE / "checks.py", name, *paths], **variables)
    closing = CLOSING.search(output)
    passed, failed = map(int, closing.groups()) if closing else (0, 1)
    if status or not closing:
        failed = max(failed, 1)
    right = re.search(stderr, errors) if stderr else "sgl" not in errors and "Traceback" not in errors
    return passed + bool(right), failed + (not right), f"{output}{errors}" if failed or not right else ""


def user_program():
    """Nothing but an old program: what it prints by default, on which line, and that it can be made an error."""
    program = ("import sys, runpy; sys.path[:0] = sys.argv[1:3]; runpy.run_path(sys.argv[3], run_name='__main__')",)
    command = [TORCH / "python", "-c", *program, SITE, STAND_INS / "new", HERE / "scenario_user.py"]
    failed = []
    status, output, errors = run(command, SGL_KERNEL_JIT_BACKEND="reference")
    lines = re.findall(r"scenario_user\.py:(\d+): SglKernelDeprecationWarning: (\S+) is deprecated", errors)
    if status or output or lines != [("3", "sgl_kernel.dsv3_router_gemm"), ("4", "sgl_kernel.dsv3_router_gemm"), ("7", "torch.ops.sgl_kernel.dsv3_router_gemm")]:
        failed.append(f"default filters: {status} {lines} {output} {errors}")
    status, output, errors = run([*command[:1], "-W", "error::DeprecationWarning", *command[1:]], SGL_KERNEL_JIT_BACKEND="reference")
    if status == 0 or not errors.rstrip().splitlines()[-1].startswith("sgl_kernel_compat._errors.SglKernelDeprecationWarning: sgl_kernel.dsv3_router_gemm is deprecated"):
        failed.append(f"-W error: {status} {errors}")
    return 2 - len(failed), len(failed), "\n".join(failed)


def ranks():
    """128 processes of a job, as torchrun and as Slurm start them: one warns."""
    code = f"import sys; sys.path[:0] = {[str(SITE), str(STAND_INS / 'bare'), str(STAND_INS / 'others')]}; import sgl_kernel_compat\nfrom sgl_kernel import hadamard_transform_12n"
    lines = {}
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for name, count in (("RANK", 128), ("SLURM_PROCID", 8)):
            done = pool.map(lambda rank: run([sys.executable, "-I", "-S", "-c", code], **{name: str(rank)}), range(count))
            lines[name] = [(status, line) for status, _, errors in done for line in errors.splitlines() or [""] if status or "Warning" in line]
    failed = [f"{name}: {found}" for name, found in lines.items() if len(found) != 1 or found[0][0] or "hadamard_transform_12n is deprecated" not in found[0][1]]
    return len(lines) - len(failed), len(failed), "\n".join(failed)


def import_time():
    """Of a process that has nothing else: the best of five, in time of the processor, which the load does not change."""
    best = 1e9
    for _ in range(5):
        code = "import time; t = time.process_time(); import sgl_kernel_compat; print(1e3 * (time.process_time() - t))"
        status, output, errors = run([VENV / "bin/python", "-c", code])
        best = min(best, float(output)) if status == 0 else best
    print(f"import of sgl_kernel_compat: {best:.1f} ms (limit {IMPORT_LIMIT_MS})")
    return int(best < IMPORT_LIMIT_MS), int(best >= IMPORT_LIMIT_MS), ""


def wheel_itself(wheel):
    """Tag against the libraries, contents, stubs against the functions."""
    failed = []
    listing = sorted(str(p.relative_to(SITE)) for p in SITE.rglob("*") if p.is_file() and "__pycache__" not in p.parts)
    for name in ("sgl_kernel_jit/lib/libsgl_kernel_jit.so.0", "sgl_kernel_jit/lib/libsgl_kernel_compat.so.0", "sgl_kernel_jit/py.typed",
                 "sgl_kernel_compat/py.typed", "sgl_kernel_compat/_catalog.py", "sgl_kernel_compat/old.pyi", "_sgl_kernel_compat_autoload.py"):
        if name not in listing:
            failed.append(f"{wheel.name} has no {name}")
    if any(name.endswith(".pth") or name.startswith("sgl_kernel/") for name in listing):
        failed.append(f"{wheel.name} has a .pth file or files of sgl_kernel")
    metadata = next(SITE.glob("sgl_kernel_compat-*.dist-info/METADATA")).read_text()
    if "Requires-Dist" in metadata or "## Keep old callers running" not in metadata:
        failed.append(f"{wheel.name} asks for other distributions, or does not describe itself")
    minor = re.fullmatch(r"sgl_kernel_compat-[\d.]+-py3-none-manylinux_2_(\d+)_x86_64\.whl", wheel.name)
    needed = 0
    for library in (SITE / "sgl_kernel_jit/lib").iterdir():
        _, output, _ = run(["objdump", "-p", library])
        needed = max([needed, *map(int, re.findall(r"GLIBC_2\.(\d+)", output))])
        others = set(re.findall(r"NEEDED +(\S+)", output)) - {"libc.so.6", "libm.so.6", "libsgl_kernel_jit.so.0", "ld-linux-x86-64.so.2"}
        if others:
            failed.append(f"{library.name} needs {others}")
    if not minor or int(minor.group(1)) != max(needed, 17) or needed > 34 and os.path.exists("/etc/debian_version"):
        failed.append(f"{wheel.name}: its libraries need glibc 2.{needed}")
    functions = {}
    for stub in ("sgl_kernel_compat/old.pyi", "sgl_kernel_jit/__init__.pyi"):
        for node in ast.parse((SITE / stub).read_text()).body:
            if isinstance(node, ast.FunctionDef):
                functions[stub, node.name] = [a.arg for a in node.args.args], [ast.unparse(d) for d in node.decorator_list]
    old = functions.get(("sgl_kernel_compat/old.pyi", "dsv3_router_gemm"))
    if old != (["hidden_states", "router_weights", "out_dtype"], ["deprecated('use sgl_kernel_jit.dsv3_router_gemm')"]):
        failed.append(f"old.pyi: {old}")
    catalog = {}
    exec((SITE / "sgl_kernel_compat/_catalog.py").read_text(), catalog)
    stub = ast.parse((SITE / "sgl_kernel_compat/old.pyi").read_text())
    defined = {a.name for node in stub.body if isinstance(node, (ast.Import, ast.ImportFrom)) for a in node.names}
    defined |= {t.id for node in stub.body if isinstance(node, ast.Assign) for t in node.targets} | set(dir(builtins))
    unknown = {n.id for n in ast.walk(stub) if isinstance(n, ast.Name)} - defined
    marked = {name for (file, name), (_, decorators) in functions.items() if file.endswith("old.pyi") and decorators[0].startswith("deprecated('use ")}
    routed = {symbol for symbol, facts in catalog["SYMBOLS"].items() if facts["routes"]}
    if unknown or marked != routed or len(marked) < 20:
        failed.append(f"old.pyi: undefined {unknown}, without marker or route {marked ^ routed}")
    for node in ast.parse((SITE / "sgl_kernel_jit/__init__.py").read_text()).body:
        if isinstance(node, ast.FunctionDef):
            have, _ = functions.get(("sgl_kernel_jit/__init__.pyi", node.name), (None, None))
            if have != [a.arg for a in node.args.args]:
                failed.append(f"__init__.pyi: {node.name}{have}")
    return 1 if not failed else 0, len(failed), "\n".join(failed)


def main():
    wheels = list((BUILD / "wheel").glob("*.whl"))
    if len(wheels) != 1:
        print(f"FAIL no wheel in {BUILD}/wheel: run make wheel\npython: 0 passed, 1 failed")
        return 1
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    install = ["install", "-q", "--no-index", "--no-cache-dir", "--no-deps"]
    prepare = [[sys.executable, "-m", "venv", "--without-pip", VENV], [*pip, "--python", VENV / "bin/python", *install, wheels[0]],
               [*pip, *install, "--target", SITE, wheels[0]]]
    for command in prepare:
        done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            print(f"FAIL {' '.join(map(str, command))}\n{done.stdout}\npython: 0 passed, 1 failed")
            return 1
    shutil.copytree(SITE, BROKEN)
    shutil.copytree(SITE, HALF)
    (HALF / "sgl_kernel_jit/lib/libsgl_kernel_jit.so.0").unlink()
    shutil.copytree(HALF, WORK / "half, with a policy")  # the scenario writes into it
    (BROKEN / "sgl_kernel_compat/_imports.py").write_text("raise OSError('damaged')\n")
    venv = VENV / "bin/python"
    work = {
        "wheel": lambda: wheel_itself(wheels[0]),
        "bare": lambda: scenario("bare", "bare others", site=WORK / "nothing", python=venv, PYTHONWARNINGS="ignore"),
        "mocked": lambda: scenario("mocked", "bare", site=WORK / "nothing", python=venv, stderr="^sgl-kernel-compat: no operators: AttributeError"),
        "imports": lambda: scenario("imports", "others", site=WORK / "nothing", python=venv, PYTHONWARNINGS="ignore"),
        "import_time": import_time,
        "ranks": ranks,
    }
    skipped = 0
    installed = subprocess.run([sys.executable, str(HERE / "install_torch.py"), "2.11.0", str(TORCH)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if installed.returncode:
        print(f"skip python.torch: no torch here: {(installed.stdout.strip().splitlines() or ['install_torch.py failed'])[-1]}")
        skipped = 1
    else:
        work.update({
            "forms": lambda: scenario("forms", "new", PYTHONWARNINGS="ignore"),
            "native": lambda: scenario("native", "new", PYTHONWARNINGS="ignore"),
            "compile": lambda: scenario("compile", "new", PYTHONWARNINGS="ignore"),
            "middle": lambda: scenario("middle", "new", PYTHONWARNINGS="ignore"),
            **{f"order, {order} {more}": functools.partial(scenario, "order", "lean", ORDER=order, PYTHONWARNINGS="ignore", **more)
               for order, more in (("sgl_kernel", {"WITH_TORCH": "1"}), ("sgl_kernel torch", {}), ("sgl_kernel_compat sgl_kernel torch", {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}))},
            "explicit": lambda: scenario("explicit", "new", TORCH_DEVICE_BACKEND_AUTOLOAD="0", SGL_KERNEL_COMPAT="standalone", PYTHONWARNINGS="ignore"),
            "old, torch first": lambda: scenario("old", "old", ORDER="torch sgl_kernel"),
            "old, sgl_kernel first": lambda: scenario("old", "old", ORDER="sgl_kernel"),
            "old, its library last": lambda: scenario("old", "old", ORDER="sgl_kernel", LATE="1"),
            "old, compat first": lambda: scenario("old", "old", ORDER="sgl_kernel_compat sgl_kernel"),
            **{f"stage, {order}": functools.partial(scenario, "stage", "old", stderr=r"(?m)^sgl-kernel-compat: SGL_KERNEL_COMPAT_POLICY:1: 'dsv4' is no deleted name",
                                                    ORDER=order, SGL_KERNEL_COMPAT_POLICY="dsv3_router_gemm=warn; dsv3_fused_a_gemm=error;dsv4=warn;awq_dequantize=silent")
               for order in ("torch sgl_kernel", "sgl_kernel")},
            "policy": lambda: scenario("policy", "old", SGL_KERNEL_COMPAT_POLICY="default = 0.4.4"),
            "routed": lambda: scenario("routed", "new others", PYTHONWARNINGS="ignore"),
            "statistics": lambda: scenario("statistics", "new others", SGL_KERNEL_COMPAT_STATS=str(WORK / "statistics"),
                                           SGL_KERNEL_COMPAT_WARN="off", PYTHONWARNINGS="ignore"),
            "counted": lambda: scenario("counted", "old", SGL_KERNEL_COMPAT_STATS=str(WORK / "counted")),
            "calls": lambda: scenario("calls", "old others", SGL_KERNEL_COMPAT_LOG="calls", SGL_KERNEL_COMPAT_LOG_DIR=str(WORK / "calls")),
            "stub": lambda: scenario("stub", "", PYTHONWARNINGS="ignore"),
            "off": lambda: scenario("off", "new", SGL_KERNEL_COMPAT="0"),
            "alone": lambda: scenario("alone", "", SGL_KERNEL_COMPAT="standalone", PYTHONWARNINGS="ignore"),
            "cpu": lambda: scenario("cpu", "new", SGL_KERNEL_JIT_BACKEND="auto", PYTHONWARNINGS="ignore"),
            "broken": lambda: scenario("broken", "new", site=BROKEN, stderr=r"(?m)^sgl-kernel-compat: not active: OSError: damaged$"),
            "no library": lambda: scenario("nolibrary", "new", site=HALF),
            "no library, a policy": lambda: scenario("nolibrary", "new", site=WORK / "half, with a policy", SGL_KERNEL_COMPAT_POLICY="bmm_fp8=error",
                                                     stderr=r"(?m)^sgl-kernel-compat: no policy is read, all stages are the built-in ones: [^\n]*libsgl_kernel_jit.so.0: "),
            "user": user_program,
        })
        if run([TORCH / "python", "-c", "import os, sysconfig; assert os.path.exists(sysconfig.get_path('include') + '/Python.h')"])[0]:
            print("skip python.inductor: this torch's Python has no headers, which the C++ of torch's default backend includes")
            skipped += 1
        else:
            work["inductor"] = lambda: scenario("inductor", "new", PYTHONWARNINGS="ignore")
    passed = failed = 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for name, (good, bad, text) in zip(work, pool.map(lambda name: work[name](), work)):
            passed, failed = passed + good, failed + bad
            if bad:
                print(f"FAIL python.{name}: {good} passed, {bad} failed\n{text}")
    shutil.rmtree(WORK, ignore_errors=True)
    print(f"python: {passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed else 0


sys.exit(main())
