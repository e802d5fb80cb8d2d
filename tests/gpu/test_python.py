#!/usr/bin/env python3
"""The wheel on CUDA tensors of the torch that is installed here: a program of all old forms beside a stand-in of a newer
sgl_kernel, in a process of its own. Needs `make wheel` before; the wheel is unpacked, not installed.

SGL_TEST_KERNEL_WHEELS: folders, with colons between, in which tests/python/kernel_wheels.py has unpacked a real wheel that fits
this torch; each is tried beside the package as well."""
import os, pathlib, re, subprocess, sys, tempfile, zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from suite import cuda_torch, skip_all

ROOT = pathlib.Path(__file__).resolve().parents[2]
wheels = list((pathlib.Path(os.environ["BUILD_DIR"]) / "wheel").glob("*.whl"))
cuda_torch()
if not wheels:
    skip_all("no wheel: make wheel")
passed = failed = skipped = 0
with tempfile.TemporaryDirectory() as folder:
    with zipfile.ZipFile(wheels[0]) as wheel:
        wheel.extractall(folder)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("SGL_KERNEL_")}
    for name, cache in (("SGL_KERNEL_JIT_CACHE_DIR", "cache"), ("TORCHINDUCTOR_CACHE_DIR", "inductor"), ("TRITON_CACHE_DIR", "triton")):
        environment[name] = os.path.join(folder, cache)  # empty
    real = [pathlib.Path(path).resolve() for path in os.environ.get("SGL_TEST_KERNEL_WHEELS", "").split(":") if path]
    for scenario, package in [("gpu", ROOT / "tests/python/stand_ins/new"), *(("wheel", path) for path in real)]:
        environment["KERNEL_VERSION"] = package.name
        command = [sys.executable, "-W", "ignore", ROOT / "tests/python/checks.py", scenario, folder, package]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
        print(f"{scenario} {package.name}:\n{done.stdout}", end="")
        closing = re.search(r"^checks: (\d+) passed, (\d+) failed(?:, (\d+) skipped)?$", done.stdout, re.M)
        counts = [int(count or 0) for count in closing.groups()] if closing else [0, 1, 0]
        if done.returncode and not counts[1]:
            counts[1] = 1
            print(f"ended with {done.returncode}")
        passed, failed, skipped = passed + counts[0], failed + counts[1], skipped + counts[2]
    if not real:
        skipped += 1
        print("skip python.kernel_wheels: SGL_TEST_KERNEL_WHEELS names none")
print(f"python: {passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
sys.exit(failed != 0)
