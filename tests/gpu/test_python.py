#!/usr/bin/env python3
"""The wheel on CUDA tensors of the torch that is installed here: a program of all old forms beside a stand-in of a newer
sgl_kernel, in a process of its own. Needs `make wheel` before; the wheel is unpacked, not installed."""
import os, pathlib, re, subprocess, sys, tempfile, zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
wheels = list((pathlib.Path(os.environ["BUILD_DIR"]) / "wheel").glob("*.whl"))


def skip(reason):
    print(f"skip python.all: {reason}\npython: 0 passed, 0 failed, 1 skipped")
    sys.exit(0)


try:
    import torch
except ImportError as e:
    skip(f"no torch: {e}")
if not torch.cuda.is_available():
    skip(f"torch {torch.__version__} sees no GPU")
if not wheels:
    skip("no wheel: make wheel")
with tempfile.TemporaryDirectory() as folder:
    with zipfile.ZipFile(wheels[0]) as wheel:
        wheel.extractall(folder)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("SGL_KERNEL_")}
    environment["SGL_KERNEL_JIT_CACHE_DIR"] = os.path.join(folder, "cache")  # empty
    command = [sys.executable, "-W", "ignore", ROOT / "tests/python/checks.py", "gpu", folder, ROOT / "tests/python/stand_ins/new"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
print(done.stdout, end="")
closing = re.search(r"^(\d+) passed, (\d+) failed$", done.stdout, re.M)
if done.returncode or not closing:
    print(f"python: 0 passed, 1 failed ({done.returncode})")
    sys.exit(1)
print(f"python: {closing[1]} passed, {closing[2]} failed")
sys.exit(closing[2] != "0")
