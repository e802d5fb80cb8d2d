#!/usr/bin/env python3
"""sgl-compat replay on files that are made here, without a device and on the fake driver, where the kernel's text runs."""
import array, json, os, pathlib, shutil, subprocess, sys, tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from suite import main

BUILD = pathlib.Path(os.environ["BUILD_DIR"]).resolve()
TOOL, FAKES = BUILD / "bin" / "sgl-compat", BUILD / "tests" / "jit"
TOKENS, EXPERTS, HIDDEN = 2, 16, 256


def record(saved=1536.0, other=1536.0, tolerance=1e-6):
    """Activations of 2, weights of 3: each output is 1536. One of the saved ones, and one of the other side's, is as given."""
    def tensor(name, dtype, sizes, size):
        return f"tensor {name} {dtype} {sizes[0]},{sizes[1]} {sizes[1]},1 {sizes[0] * sizes[1] * size}\n"

    output = (TOKENS, EXPERTS)
    header = f"sgl-kernel-compat shadow 1\nsymbol dsv3_router_gemm\nother reference\nerror 0.5\ntolerance {tolerance}\n"
    header += tensor("output", "float32", output, 4) + tensor("mat_a", "bfloat16", (TOKENS, HIDDEN), 2)
    header += tensor("mat_b", "bfloat16", (EXPERTS, HIDDEN), 2) + tensor("other", "float32", output, 4) + "end\n"
    rest = [1536.0] * (TOKENS * EXPERTS - 1)
    parts = [array.array("f", [saved, *rest]), array.array("H", [0x4000] * TOKENS * HIDDEN), array.array("H", [0x4040] * EXPERTS * HIDDEN),
             array.array("f", [other, *rest])]
    return header.encode() + b"".join(part.tobytes() for part in parts)


def run(*arguments, device=False, status=0, **files):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("SGL_", "LD_LIBRARY"))}
        environment.update(SGL_KERNEL_JIT_CACHE_DIR=str(folder / "cache"), TERM="dumb", SGL_TEST_STORE=str(FAKES / "emulated"),
                           SGL_KERNEL_JIT_NVRTC=str(FAKES / "fake_nvrtc.so"))
        (FAKES / "emulated").mkdir(exist_ok=True)
        (folder / "driver").mkdir()
        if device:
            shutil.copy(FAKES / "fake_cuda.so", folder / "driver" / "libcuda.so.1")
        else:
            (folder / "driver" / "libcuda.so.1").write_text("no library")  # also where the machine has a device
        environment["LD_LIBRARY_PATH"] = str(folder / "driver")
        for name, content in files.items():
            (folder / name).write_bytes(content)
        done = subprocess.run([TOOL, "replay", *arguments, *files], cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
        assert done.returncode == status, (done.returncode, done.stdout, done.stderr)
        assert "Sanitizer" not in done.stderr, done.stderr
        return done


def test_without_a_device():
    done = run(good=record())
    assert done.stdout == (
        "good:\n  dsv3_router_gemm, output 2 x 16; differed from the reference's by 0.5 of its norm, tolerance 1e-06. From the reference, "
        "computed again:\n"
        "  the kernel's output, saved   0         \n  the other side's, saved      0         \n  the kernel's output, now     not run: no CUDA driver\n"), done.stdout
    done = run(status=1, bad=record(saved=1000.0))
    assert "the kernel's output, saved   0.0617     more than the tolerance" in done.stdout, done.stdout
    run(bad=record(other=1000.0))  # then it is the other side that was wrong


def test_on_a_device():
    done = run(device=True, bad=record(saved=1000.0))
    assert "saved   0.0617     more than the tolerance" in done.stdout and "the kernel's output, now     0 " in done.stdout, done.stdout


def test_json():
    done = run("--json", device=True, status=0, one=record(), two=record(saved=float("nan")))
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["file"] for line in lines] == ["one", "two"], lines
    assert lines[0] == {"file": "one", "symbol": "dsv3_router_gemm", "other": "reference", "tolerance": 1e-06, "kernel_saved": 0.0,
                        "other_saved": 0.0, "kernel_now": 0.0, "not_run": None}, lines
    assert lines[1]["kernel_saved"] == "infinite", lines
    done = run("--json", status=1, two=record(saved=float("nan")))
    assert json.loads(done.stdout)["not_run"] == "no CUDA driver" and json.loads(done.stdout)["kernel_now"] is None


def test_faults():
    done = run(status=1, good=record(), cut=record()[:-1])
    assert done.stderr == "sgl-compat: cut: it ends within a tensor\n" and done.stdout.startswith("good:\n"), done
    for text, why in ((b"tolerance inf", "this line of its header is not understood: tolerance inf"), (b"tolerance -1", "is not understood"), (b"tolerance 1x", "is not understood"),
                      (b"error 0.5", "its header has no tolerance"), (b"error x\ntolerance 1", "this line of its header is not understood: error x")):
        done = run(status=1, odd=record().replace(b"tolerance 1e-06", text))
        assert done.stderr.startswith("sgl-compat: odd: ") and why in done.stderr, done.stderr
    done = run(status=2)
    assert done.stderr == "sgl-compat: replay: a file is needed; see sgl-compat replay --help\n", done.stderr
    done = run("--what", status=2, good=record())
    assert "replay has no option --what" in done.stderr and done.stdout == "", done.stderr


main(globals())
