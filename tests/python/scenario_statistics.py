"""What Python does with deleted names is counted: accesses by line, operators with samples of their callers, in workers too."""
import glob, json, multiprocessing, os, subprocess, sys, tempfile, warnings

import torch
import sgl_kernel
from sglang.kernels.ops.quantization import hadamard
from checks import operands, raises

import sgl_kernel_compat

FOLDER = os.environ["SGL_KERNEL_COMPAT_STATS"]
hadamard.hadamard_transform_12n = lambda x, scale=1.0: x * scale
warnings.simplefilter("ignore")


def lines(folder=None):
    """What is in the file of a folder, else of this process up to now, without its header."""
    with tempfile.TemporaryDirectory() as own:
        if folder is None:
            sgl_kernel_compat.write_statistics(own)
        (file,) = glob.glob(f"{folder or own}/*.jsonl")
        return [json.loads(line) for line in list(open(file))[1:]]


def test_accesses():
    def f():
        for _ in range(3):
            sgl_kernel.dsv3_router_gemm
            from sgl_kernel import dsv3_router_gemm
            from sgl_kernel.gemm import dsv3_fused_a_gemm as other
        hasattr(sgl_kernel, "awq_marlin_repack")
        raises(ImportError, "awq_marlin_repack", exec, "from sgl_kernel import awq_marlin_repack", {"__name__": __name__}, {})

    f()
    line = f.__code__.co_firstlineno
    found = {(use["symbol"], use["caller"]["file"], use["caller"]["line"]): use["calls"] for use in lines() if use.get("face") == "python"}
    assert found == {("dsv3_router_gemm", __file__, line + 2): {"warn": 3}, ("dsv3_router_gemm", __file__, line + 3): {"warn": 3},
                     ("dsv3_fused_a_gemm", __file__, line + 4): {"warn": 3}, ("awq_marlin_repack", __file__, line + 5): {"tombstone": 1},
                     ("awq_marlin_repack", "<string>", 1): {"tombstone": 1}}, found


def in_a_worker():
    os.environ["RANK"] = "3"
    sgl_kernel.dsv3_router_gemm


def test_operators():
    """Of the C library, and those that are routed or dead, which Python implements."""
    a, w, _ = operands(torch, 2, 256)
    output = torch.zeros(2, 256, dtype=torch.bfloat16)

    def f():
        for _ in range(40):
            torch.ops.sgl_kernel.dsv3_router_gemm(output, a, w)
            torch.ops.sgl_kernel.fast_hadamard_transform_12N(torch.ones(4), 2.0)
        raises(RuntimeError, "is gone", lambda: torch.ops.sgl_kernel.top_k_mask_logits(torch.ones(1), torch.ones(1), None, 3))

    f()
    line = f.__code__.co_firstlineno
    found = {(use["symbol"], use.get("caller", {}).get("line")): (use["calls"], use.get("samples")) for use in lines() if use.get("face") == "operator"}
    assert found == {("dsv3_router_gemm", None): ({"warn": 40}, None), ("dsv3_router_gemm", line + 2): ({}, 18),
                     ("hadamard_transform_12n", None): ({"warn": 40}, None), ("hadamard_transform_12n", line + 3): ({}, 18),
                     ("top_k_mask_logits", None): ({"tombstone": 1}, None), ("top_k_mask_logits", line + 4): ({}, 1)}, found
    assert {"kernel": "dsv3_router_gemm:256x7168:bfloat16", "calls": 40} in lines()


def test_guards_of_torch_do_not_count():
    f = torch.compile(lambda x: x + (sgl_kernel.dsv3_router_gemm is not None), backend="eager")
    for _ in range(100):
        f(torch.ones(1))
    line = test_guards_of_torch_do_not_count.__code__.co_firstlineno + 1
    counts = [use["calls"]["warn"] for use in lines() if use.get("face") == "python" and use["caller"]["line"] == line]
    assert sum(counts) < 10, counts


def test_workers():
    """One that is forked ends by os._exit; one that uses nothing leaves nothing."""
    before = set(glob.glob(f"{FOLDER}/*.jsonl"))
    for target in (in_a_worker, int):
        worker = multiprocessing.get_context("fork").Process(target=target)
        worker.start()
        worker.join()
        assert worker.exitcode == 0
    (file,) = set(glob.glob(f"{FOLDER}/*.jsonl")) - before
    header, *uses = map(json.loads, open(file))
    assert header["rank"] == "3" and [(use["symbol"], use["calls"]) for use in uses] == [("dsv3_router_gemm", {"warn": 1})], uses


WORKER = """
import multiprocessing, os, sys
sys.path[:0] = sys.argv[1].split(os.pathsep)
import torch
BEFORE
def work(how):
    if how == "python":
        import sgl_kernel
        sgl_kernel.dsv3_router_gemm
    elif how == "operator":
        a, w = torch.ones(1, 256, dtype=torch.bfloat16), torch.ones(16, 256, dtype=torch.bfloat16)
        import sgl_kernel
        torch.ops.sgl_kernel.dsv3_router_gemm(torch.zeros(1, 16), a, w)

if __name__ == "__main__":
    worker = multiprocessing.get_context(sys.argv[2]).Process(target=work, args=(sys.argv[3],))
    worker.start()
    worker.join()
    assert worker.exitcode == 0
    sys.exit(worker.pid % 256)
"""


def test_a_pool_that_is_ended_at_once():
    """By a signal, as leaving its `with` does."""
    with tempfile.TemporaryDirectory() as folder:
        code = f"import sys; sys.path[:0] = {sys.argv[2:]}; import multiprocessing, torch, sgl_kernel\nwith multiprocessing.get_context('fork').Pool(1) as pool: pool.map(hasattr_of, [sgl_kernel.__name__])"
        code = code.replace("\nwith", "\ndef hasattr_of(name): return hasattr(sys.modules[name], 'dsv3_router_gemm')\nwith")
        done = subprocess.run([sys.executable, "-c", code], env=dict(os.environ, SGL_KERNEL_COMPAT_STATS=folder), capture_output=True, text=True)
        uses = [use for file in glob.glob(f"{folder}/*.jsonl") for use in map(json.loads, open(file)) if "symbol" in use]
        assert [use["calls"] for use in uses] == [{"warn": 1}], (done, uses)


def test_workers_that_are_the_first_to_use_a_name():
    """In the parent nothing was used, or this package was not even there."""
    with tempfile.TemporaryDirectory() as folder:
        for before, start, how in (("import sgl_kernel", "fork", "python"), ("import sgl_kernel", "fork", "operator"), ("import sgl_kernel_compat", "fork", "operator"),
                                   ("", "fork", "python"), ("", "forkserver", "python"), ("import sgl_kernel", "fork", "nothing")):
            stats, program = tempfile.mkdtemp(dir=folder), f"{folder}/program.py"
            with open(program, "w") as file:
                file.write(WORKER.replace("BEFORE", before))
            environment = dict(os.environ, SGL_KERNEL_COMPAT_STATS=stats, **({} if before else {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}))
            if not before:
                code = open(program).read().replace("import sgl_kernel\n", "import sgl_kernel_compat, sgl_kernel\n")
                with open(program, "w") as file:
                    file.write(code)
            done = subprocess.run([sys.executable, program, os.pathsep.join(sys.argv[2:]), start, how], env=environment, capture_output=True, text=True)
            files = [list(map(json.loads, open(file))) for file in glob.glob(f"{stats}/*.jsonl")]
            used = [header["pid"] % 256 for header, *uses in files if any(use.get("calls") == {"warn": 1} for use in uses)]
            assert used == ([] if how == "nothing" else [done.returncode]), (before, start, how, done, files)


def test_at_the_end():
    """A program of its own, which is unused, then one that cannot write."""
    run = lambda code, **variables: subprocess.run([sys.executable, "-c", f"import sys; sys.path[:0] = {sys.argv[2:]}; {code}"], env=dict(os.environ, **variables), capture_output=True, text=True)
    with tempfile.TemporaryDirectory() as folder:
        done = run("import torch, sgl_kernel", SGL_KERNEL_COMPAT_STATS=folder)
        assert done.returncode == 0 and lines(folder) == [], done  # it could have: that nobody used anything is worth a file
    done = run("import torch, sgl_kernel", SGL_KERNEL_COMPAT_STATS="/dev/null/x")
    assert done.returncode == 0 and done.stderr == "sgl-kernel-compat: no statistics are written to /dev/null/x: Not a directory\n", done
    raises(OSError, "write_statistics: no statistics are written to /dev/null", sgl_kernel_compat.write_statistics, "/dev/null")
