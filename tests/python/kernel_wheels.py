#!/usr/bin/env python3
"""usage: kernel_wheels.py BUILD                    the package beside the real kernel wheels below, on the torch that they want
       kernel_wheels.py BUILD fetch VERSION    only unpacks one to BUILD/kernel-wheels/VERSION, without its largest libraries

The wheels are PyPI's, 0.4 to 0.6 GB each to fetch; what is kept is 20 to 40 MB. Their common_ops library is loaded without a
GPU: what torch's stand-ins of NVIDIA's libraries (install_torch.py) do not have, it gets from stand-ins of its own."""
import os, pathlib, re, subprocess, sys, tempfile, zipfile

from install_torch import run, stand_ins

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(sys.argv[1]).resolve()
WHEELS = {  # release of sglang-kernel -> (torch, sha256 of the wheel for x86_64)
    "0.4.4": ("2.11.0", "558bc7035e3c0a795e8c3eca3cc29e189c7d29f1db2471a0a71b9156a8ee7fa1"),
    "0.4.5": ("2.11.0", "5927a14dfff92ced8b1f7c7d5844144bc574ec58e604d4fd53e6f53c709003a8"),
    "0.4.10": ("2.15.0", "043cbe4a10e7887ea1b25599b729ff1ce115a0d5217b2c177aff9f9ae5327724"),
}


def fetch(version):
    """Once: the folder is there when it is whole."""
    folder = BUILD / "kernel-wheels" / version
    if folder.exists():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as work:
        work = pathlib.Path(work)
        (work / "pin").write_text(f"sglang-kernel=={version} --hash=sha256:{WHEELS[version][1]}\n")
        run(sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "-q", "--no-deps", "--no-cache-dir", "--only-binary", ":all:",
            "--require-hashes", "-d", work, "-r", work / "pin")
        part = work / "part"
        with zipfile.ZipFile(next(work.glob("*.whl"))) as wheel:
            kept = [n for n in wheel.namelist() if re.match(r"sgl_kernel/(.*\.py$|sm\d+/)", n)]
            wheel.extractall(part, kept)
        (part / "sgl_kernel" / "flash_ops.py").touch()  # stands in for an extension module of 0.3 GB that flash_attn.py only looks for
        (part / "stand_ins").mkdir()
        stand_ins(part / "stand_ins", list(part.glob("sgl_kernel/sm100/common_ops*.so")), {"libcudart"})
        os.rename(part, folder)
    return folder


def check(version, site):
    torch, _ = WHEELS[version]
    run(sys.executable, HERE / "install_torch.py", torch, BUILD / f"torch-{torch}")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("SGL_KERNEL_", "PYTHON", "TORCH_", "RANK"))}
    environment.update(SGL_KERNEL_JIT_BACKEND="reference", KERNEL_VERSION=version)
    command = [BUILD / f"torch-{torch}" / "python", "-W", "ignore", HERE / "checks.py", "wheel", site, fetch(version)]
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
    closing = re.search(r"^checks: (\d+) passed, (\d+) failed(?:, \d+ skipped)?$", done.stdout, re.M)
    good, bad = map(int, closing.groups()) if closing else (0, 1)
    bad = max(bad, int(done.returncode != 0))
    print(f"sglang-kernel {version}, torch {torch}: {good} passed, {bad} failed" + (f"\n{done.stdout}" if bad else "".join(f"; {line}" for line in done.stdout.splitlines() if line.startswith("skip "))), flush=True)
    return good, bad


def main():
    if sys.argv[2:3] == ["fetch"]:
        print(fetch(sys.argv[3]))
        return 0
    with tempfile.TemporaryDirectory() as site:
        run(sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "-q", "--no-index", "--no-deps", "--target", site, *BUILD.glob("wheel/*.whl"))
        counts = [check(version, site) for version in WHEELS]
    good, bad = map(sum, zip(*counts))
    print(f"kernel_wheels: {good} passed, {bad} failed")
    return bad != 0


if __name__ == "__main__":
    sys.exit(main())
