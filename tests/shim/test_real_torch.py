#!/usr/bin/env python3
"""The shim on a real torch (CPU): installs one where none is (install_torch.sh), compiles extensions against its headers
and runs real_torch.py inside it.

The torch lies in $SGL_TEST_TORCH, or in BUILD_DIR/torch. Where it cannot be had, all is one skipped test."""
import os, pathlib, re, subprocess, sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = pathlib.Path(os.environ["BUILD_DIR"])
LIB = BUILD / "lib"
TORCH = pathlib.Path(os.environ.get("SGL_TEST_TORCH") or BUILD / "torch")
WORK = BUILD / "tests/shim/real_torch"
SCENARIOS = {  # name -> backend of the JIT library
    "main": "reference",
    "hook": "reference",
    "old_wheel": "reference",
    "before": "reference",
    "cpu": "auto",
    "header": "reference",
}


def compiled(name, *flags):
    """An extension against torch's headers and libraries, which it finds in the process that loads it."""
    source, target = HERE / f"{name}.cc", WORK / f"{name}.so"
    command = [os.environ.get("CXX", "g++"), "-std=c++20", "-O1", "-w", "-fPIC", "-shared", f"-I{ROOT}/jit/include", "-isystem", f"{TORCH}/include",
               "-o", target, source, f"-L{LIB}", f"-L{TORCH}/lib", "-ltorch_cpu", "-lc10", *flags, f"-Wl,-rpath,{LIB}"]
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        print(f"FAIL real_torch.compile_{name}\n{done.stdout}")
    return target if done.returncode == 0 else None


def main():
    done = subprocess.run(["sh", str(HERE / "install_torch.sh"), str(TORCH)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        print(f"skip real_torch: no torch here: {done.stdout.strip().splitlines()[-1] if done.stdout.strip() else 'install_torch.sh failed'}")
        print("real_torch: 0 passed, 0 failed, 1 skipped")
        return 0
    WORK.mkdir(parents=True, exist_ok=True)
    extensions = [compiled("torch_consumer", "-lsgl_kernel_compat"), compiled("torch_old_wheel"), compiled("torch_header", "-lsgl_kernel_jit"),
                  compiled("torch_cuda", "-Wl,-soname,libtorch_cuda.so")]
    passed, failed = sum(e is not None for e in extensions), sum(e is None for e in extensions)
    for scenario, backend in SCENARIOS.items():
        environment = {k: v for k, v in os.environ.items() if not k.startswith("SGL_KERNEL_")}
        environment["SGL_KERNEL_JIT_BACKEND"] = backend
        command = [TORCH / "python", HERE / "real_torch.py", LIB, *(e or "missing" for e in extensions), scenario]
        try:
            done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment, timeout=300)
            output, status = done.stdout, done.returncode
        except subprocess.TimeoutExpired as e:
            output, status = (e.stdout or b"").decode(errors="replace"), "a time-out"
        closing = re.search(rf"^{scenario}: (\d+) passed, (\d+) failed$", output, re.M)
        if closing and status == 0 and closing.group(2) == "0":
            passed += int(closing.group(1))
        else:
            print(f"FAIL real_torch.{scenario}: ended with {status}\n{output}")
            passed += int(closing.group(1)) if closing else 0
            failed += max(1, int(closing.group(2)) if closing else 1)
    print(f"real_torch: {passed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
