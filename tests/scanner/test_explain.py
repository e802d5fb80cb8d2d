#!/usr/bin/env python3
"""explain: every form of every name, the usual messages, and what is not known."""
import ctypes, json, re, subprocess, tempfile, textwrap
from pathlib import Path
from tool import contains, equal, main, run

CATALOG = Path(__file__).resolve().parents[2] / "catalog" / "removals.yaml"
DATA = CATALOG.parent.parent / "tests" / "catalog" / "data"
NAME = "dsv3_router_gemm"
MANGLED = "_Z16dsv3_router_gemmRN2at6TensorERKS0_S3_"


def explained(*text):
    done = run("explain", *text)
    equal((text, done.returncode, done.err), (text, 0, ""))
    return done.out


def names(*text):
    out = explained(*text)
    return re.findall(r"^  (\w+): ", out, re.M) if "one by one" in out else re.findall(r"^(\w+): .*\n\n(?:what the|what it was)", out, re.M)


def test_forms_of_a_name():
    for text in (NAME, f"sgl_kernel.{NAME}", f"from sgl_kernel import {NAME}", f"torch.ops.sgl_kernel.{NAME}(a, b)", f"sgl_kernel::{NAME}", MANGLED,
                 f"{NAME}(at::Tensor&, at::Tensor const&, at::Tensor const&)", f"::{NAME}(out, a, b);", "invokeRouterGemmFloatOutput",
                 "csrc/gemm/dsv3_router_gemm_entry.cu", "dsv3_router_gemm_entry.cu", "sgl-kernel/tests/test_dsv3_router_gemm.py", "sglang.jit_kernel.dsv3_router_gemm"):
        equal((text, names(text)), (text, [NAME]))


def test_every_name_of_the_catalog():
    ids = re.findall(r"^  - id: (\S+)$", CATALOG.read_text().split("\nchanges:\n")[0], re.M)
    equal(len(ids) > 80, True)
    for i in range(0, len(ids), 4):  # four are told in full
        equal(names(*ids[i:i + 4]), ids[i:i + 4])


def test_messages():
    for text, cause in (
        (f"ImportError: cannot import name '{NAME}' from 'sgl_kernel' (/usr/lib/python3/site-packages/sgl_kernel/__init__.py)", "no longer exports. The kernel is newer than the code. It is missing from release 0.4.5 on.\n"),
        (f"AttributeError: module 'sgl_kernel' has no attribute '{NAME}'", "no longer exports"),
        (f"AttributeError: module 'sgl_kernel.gemm' has no attribute '{NAME}'", "no longer exports"),
        (f"AttributeError: '_OpNamespace' 'sgl_kernel' object has no attribute '{NAME}'", "torch knows no such operator"),
        (f"RuntimeError: No such operator sgl_kernel::{NAME}", "torch knows no such operator"),
        (f"operator sgl_kernel::{NAME} does not exist", "torch knows no such operator"),
        (f"ImportError: /a/b.so: undefined symbol: {MANGLED}", "compiled against an older kernel"),
        (f"b.so: undefined symbol: {MANGLED}, version X", "compiled against an older kernel"),
        (f"undefined symbol: {NAME}(at::Tensor&, at::Tensor const&, at::Tensor const&)", "compiled against an older kernel"),
        (f"/usr/bin/ld: x.o: in function `main':\nx.cc:(.text+0x2): undefined reference to `{NAME}(at::Tensor&, at::Tensor const&, at::Tensor const&)'", "library that is linked"),
        (f"x.cc:3:3: error: use of undeclared identifier '{NAME}'", "header of the installed kernel"),
        (f'x.cu(3): error: identifier "{NAME}" is undefined', "header of the installed kernel"),
        ("ModuleNotFoundError: No module named 'sglang.jit_kernel.dsv3_router_gemm'", "The module left"),
        ("CMake Error: Cannot find source file:\n\n  csrc/gemm/dsv3_router_gemm_entry.cu", "a file that was deleted"),
        ("cc1plus: fatal error: csrc/gemm/dsv3_router_gemm_entry.cu: No such file or directory", "what happened"),
        ("ERROR: file or directory not found: sgl-kernel/tests/test_dsv3_router_gemm.py", "a file that was deleted"),
        (f"cannot import name \u2018{NAME}\u2019 from \u2018sgl_kernel\u2019", "no longer exports"),
    ):
        equal((text, names(text)), (text, [NAME]))
        contains(explained(text), cause)


def test_a_traceback():
    text = f'Traceback (most recent call last):\n  File "a.py", line 3, in <module>\n    from sgl_kernel import {NAME}, bmm_fp8\nImportError: cannot import name \'bmm_fp8\' from \'sgl_kernel\''
    equal(names(text), ["bmm_fp8"])  # the message says which
    equal(names(f"{NAME} bmm_fp8 {NAME}"), [NAME, "bmm_fp8"])


def test_modules():
    have = names("No module named 'sgl_kernel.memory'")
    equal("set_kv_buffer_kernel" in have, True)
    out = explained("ModuleNotFoundError: No module named 'sglang.jit_kernel'")
    contains(out, "removed names; explain them one by one:\n")
    contains(out, f"  {NAME}: ")
    equal("cannot import" in out, False)


def faults(text):
    """The word and the beginning of the remedy of each fault that is told."""
    return re.findall(r"^  (.*)\n\nwhat to do\n  (.*)$", explained(text), re.M)


# Messages of public bug reports, with paths and addresses shortened: text, a part of the cause, a part of the remedy.
FAULTS = (
    ("ModuleNotFoundError: No module named 'sgl_kernel'", "No installed distribution provides sgl_kernel. It comes with sgl-kernel, sglang-kernel,", "pip install"),
    ("ImportError: libnvrtc.so.12: cannot open shared object file: No such file or directory", "libnvrtc.so.12 is the run-time compiler", "torch.version.cuda"),
    ("libnvrtc-builtins.so.13.0: cannot open shared object file: No such file or directory", "NVRTC was found without libnvrtc-builtins.so.13.0", "one package"),
    ("OSError: libcudart.so.12: cannot open shared object file: No such file or directory", "libcudart.so.12 is the runtime", "torch.version.cuda"),
    ("ImportError: libcuda.so.1: cannot open shared object file: No such file or directory", "belongs to the NVIDIA driver", "--gpus all"),
    ("ImportError: libnuma.so.1: cannot open shared object file: No such file or directory", "pip cannot install", "apt install libnuma1"),
    ("libcublasLt.so.12: cannot open shared object file: No such file or directory", "of one CUDA release", "torch.version.cuda"),
    ("libtorch_cuda.so: cannot open shared object file: No such file or directory", "CUDA builds only", "CUDA build of torch"),
    ("libc10.so: cannot open shared object file: No such file or directory", "torch's own", "import torch first"),
    ("libfoo.so.3: cannot open shared object file: No such file or directory", "does not find libfoo.so.3 in the RUNPATH", "sgl-migrate audit"),
    ("ImportError: /lib/x86_64-linux-gnu/libstdc++.so.6: version `GLIBCXX_3.4.32' not found (required by /x/common_ops.abi3.so)", "lacks GLIBCXX_3.4.32.", "libstdc++"),
    ("/lib/libc.so.6: version `GLIBC_2.38' not found (required by a.so)", "lacks GLIBC_2.38.", "glibc cannot be exchanged"),
    ("a.so: undefined symbol: _ZN5torch3jit17parseSchemaOrNameERKSsb", "strings of the old C++ ABI", "made for this torch"),
    ("a.so: undefined symbol: _ZN5torch3jit17parseSchemaOrNameERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEb", "strings of the C++11 ABI", "made for this torch"),
    ("ImportError: sgl_kernel/common_ops.abi3.so: undefined symbol: _ZNK3c106SymInt6sym_neERKS0_", "built for another torch release", "made for this torch"),
    ("undefined symbol: c10::SymInt::sym_ne(c10::SymInt const&) const", "c10::SymInt::sym_ne belongs to torch", "made for this torch"),
    ("undefined symbol: _ZN3c104cuda29c10_cuda_check_implementationEiPKcS2_jb", "built for another torch release", "made for this torch"),
    ("a.so: undefined symbol: aoti_torch_call_dispatcher", "stable ABI", "upgrade torch"),
    ("libcusparse.so.12: undefined symbol: __nvJitLinkComplete_12_4, version libnvJitLink.so.12", "__nvJitLinkComplete_12_4 joins two CUDA libraries", "torch.version.cuda"),
    ("libtvm_ffi_x.so: undefined symbol: TVMFFIErrorSetRaisedFromCStr", "of tvm-ffi", "apache-tvm-ffi"),
    ("RuntimeError: Only a single TORCH_LIBRARY can be used to register the namespace sgl_kernel; please put", "define the same operator namespace", "FRAGMENT"),
    ("RuntimeError: sgl_kernel::topk_softmax() expected at most 4 argument(s) but received 6 argument(s).", "another platform's package", "sgl-migrate explain NAME"),
    ("RuntimeError: CUDA error: no kernel image is available for execution on the device", "neither machine code nor PTX", "JIT kernels"),
    ("CUDA_ERROR_UNSUPPORTED_PTX_VERSION: the provided PTX was compiled with an unsupported toolchain.", "newer CUDA than the driver", "upgrade the driver"),
    ("CUDA driver version is insufficient for CUDA runtime version", "driver is older", "upgrade the driver"),
    ("CUDA error: operation not permitted when stream is capturing", "loads a kernel for the first time", "before the capture"),
    ("/bin/sh: 1: nvcc: not found", "wants nvcc", "devel image"),
    ("RuntimeError: Could not find nvcc and default cuda_home='/usr/local/cuda' doesn't exist", "wants nvcc", "devel image"),
    ("FileNotFoundError: [Errno 2] No such file or directory: '/usr/local/cuda/bin/nvcc'", "wants nvcc", "devel image"),
    ("CUDA error: operation failed due to a previous error during capture", "loads a kernel for the first time", "before the capture"),
    ("a.so: undefined symbol: _Z16THPVariable_WrapN2at10TensorBaseE", "built for another torch release", "made for this torch"),
    ("a.so: undefined symbol: _ZN6caffe28TypeMeta21_typeMetaDataInstanceIdEEPKNS_6detail12TypeMetaDataEv", "built for another torch release", "made for this torch"),
    ("/usr/bin/ld: cannot find -lcudart: No such file or directory", "pip's CUDA packages have lib", "LIBRARY_PATH"),
    ("math_functions.h(627): error: exception specification is incompatible with that of previous function \"rsqrt\" (declared at line 206)", "glibc 2.41", "toolkit"),
    ("nvrtc: error: failed to open libnvrtc-builtins.so.13.0.\n  Make sure that libnvrtc-builtins.so.13.0 is installed correctly.", "without libnvrtc-builtins.so.13.0", "one package"),
    ("/x/libnvrtc.so.12: version `libnvrtc.so.12' not found (required by /x/a.so)", "another CUDA release", "torch.version.cuda"),
    ("libstdc++.so.6: version 'GLIBCXX_3.4.30' not found", "lacks GLIBCXX_3.4.30.", "libstdc++"),
    ("libnvrtc.so.12 cannot open", "libnvrtc.so.12 is the run-time compiler", "torch.version.cuda"),
    ("CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "loads a kernel for the first time", "before the capture"),
    ("cudaErrorNoKernelImageForDevice", "neither machine code nor PTX", "JIT kernels"),
    ("OSError: [Errno 116] Stale file handle: '/nfs/cache/x.so'", "NFS", "local disk"),
    ("ImportError: cannot import name 'silu_and_mul_nope' from 'sgl_kernel' (unknown location)", "without __init__.py", "delete the folder"),
    ("a.so: undefined symbol: _ZN4vllm8fast_mlaERKN2at6TensorE", "neither torch's nor a function of the catalog", "audit"),
    ("ImportError: cannot import name 'all_reduce' from 'sgl_kernel'", "Every known release for CUDA has all_reduce", "doctor"),
    ("ModuleNotFoundError: No module named 'sgl_kernel.allreduce'", "Every known release for CUDA has sgl_kernel.allreduce", "doctor"),
    ("AssertionError: Torch not compiled with CUDA enabled", "CPU build", "CUDA index"),
)


def test_faults():
    for text, cause, remedy in FAULTS:
        have = faults(text)
        equal((text, len(have)), (text, 1))
        contains(have[0][0], cause)
        contains(have[0][1], remedy)
        equal("removed" in explained(text), False)


def told(text):
    out = explained(text)
    return re.findall(r"^  (.*)\n\nwhat to do$|^(\w+): .*\n\n(?:what the|what it was)", out, re.M)


# What a message looks like when it was copied from a terminal, a log or a page.
FORMS = {
    "colours": lambda text: re.sub(r"('[^']*')", "\x1b[1;35m\\1\x1b[0m", "\x1b[31m" + text.replace(": ", "\x1b[0m: \x1b[38;5;3m", 1) + "\x1b[0m\x1b[K"),
    "each word": lambda text: re.sub(r"(\S+)", "\x1b[32m\\1\x1b[0m", text),
    "spelt out": lambda text: re.sub(r"('[^']*')", r"\\x1b[35m\1\\x1b[0m", "^[[31m" + text + "\\u001b[0m"),
    "link": lambda text: "\x1b]8;;file:///x\x1b\\" + text + "\x1b]8;;\a",
    "narrow": lambda text: "\n".join(textwrap.wrap(text, 40, break_long_words=False, break_on_hyphens=False)),
    "Windows": lambda text: text.replace("\n", "\r\n") + "\r\n",
    "JSON": lambda text: json.dumps({"log": text + "\n"}, ensure_ascii=False),
    "log": lambda text: "\n".join(f"(EngineCore_DP0 pid=77) [2026-01-01 00:00:00 TP0] {line}" for line in text.splitlines()),
    "traceback": lambda text: 'Traceback (most recent call last):\n  File "/x/a.py", line 3, in <module>\n    import sgl_kernel\n' + text + "\n\nDuring handling of the above exception, another exception occurred:\n",
    "long": lambda text: "INFO loaded 1e-5 ok\n" * 500 + text + "\nINFO done\n" * 500,
}


def test_pasted_from_anywhere():
    for text in [fault[0] for fault in FAULTS] + [f"cannot import name '{NAME}' from 'sgl_kernel'", f"'_OpNamespace' 'sgl_kernel' object has no attribute '{NAME}'", f"undefined symbol: {MANGLED}"]:
        plain = told(text)
        for form, change in FORMS.items():
            equal((form, text, told(change(text))), (form, text, plain))


def test_b28_what_the_loader_says_comes_before_the_gpu():
    text = "CUDA error: no kernel image is available for execution on the device\nImportError: common_ops.abi3.so: undefined symbol: _ZN3c104cuda29c10_cuda_check_implementationEiPKcS2_ib"
    have = faults(text)
    equal(len(have), 1)
    contains(have[0][0], "belongs to torch")


def test_names_of_others():
    for text, name in (("ImportError: cannot import name 'bmm_fp8' from 'flashinfer' (/x/flashinfer/__init__.py)", "flashinfer.bmm_fp8"),
                       ("AttributeError: '_OpNamespace' 'other' object has no attribute 'dsv3_router_gemm'", "other.dsv3_router_gemm"),
                       ("AttributeError: module 'aiter' has no attribute 'merge_state'", "aiter.merge_state")):
        done = run("explain", text)
        equal((text, done.returncode, done.out), (text, 1, ""))
        contains(done.err, f"'{name}' is no removed name")


def test_functions_with_tensors_are_not_torchs():
    for text in (f"undefined symbol: {MANGLED}", MANGLED, "undefined symbol: dsv3_router_gemm(at::Tensor&, at::Tensor const&, at::Tensor const&)"):
        equal((text, "belongs to torch" in explained(text), NAME in explained(text)), (text, False, True))


def test_platforms_that_keep_a_name():
    contains(explained("awq_dequantize"), "Python export (XPU): still there.\n")


def test_what_to_use_on_other_platforms():
    contains(explained("dsv3_router_gemm"), "  On ROCm: Replacement in sglang 0.5.10 and newer: sglang.srt.layers.rocm_linear_utils.aiter_dsv3_router_gemm.")
    contains(explained("bmm_fp8"), "Replacement: flashinfer.bmm_fp8. On CUDA only. Calls stay as they are.")


def test_what_an_operator_becomes():
    contains(explained("rotary_position_embedding_cpu"), "  after: torch.ops.sgl_kernel.rotary_embedding_cpu; its arguments may be others, so fix leaves it alone\n")
    contains(explained("gptq_shuffle"), "(Tensor! q_weight, Tensor q_perm, int bit) -> ()\n  after: there is no replacement\n")
    contains(explained("dsv3_router_gemm"), "  after: the Python function above; the operator's arguments")


PAGES = CATALOG.parent.parent / "docs" / "names"


def test_the_page_of_the_documentation():
    """The same text, but for marks of Markdown."""
    def words(text):
        text = re.sub(r"^(## |- |```\w*$|  +)", "", text, flags=re.M)
        return re.sub(r"[\\\\`*]", "", text).lower().split()
    titles = {"When and why it went": "what happened", "What to do now": "what to use"}
    for name in (NAME, "bmm_fp8", "cutlass_mla_decode", "mscclpp_init_context"):
        page = (PAGES / f"{name}.md").read_text().split("\n## What changed of it")[0]
        for title, mine in titles.items():
            page = page.replace(title, mine)
        have = explained(name).split("\n----\n")[0]  # without what changed of it
        have, want = words(have[have.index("what it was"):have.rindex("\nsgl-migrate scan")]), words(page[page.index("## What it was"):].split("\n## What changed of it\n")[0])
        equal(next(((name, a, b) for a, b in zip(have, want) if a != b), len(have)), len(want))


def test_the_first_cause_is_told_and_not_what_follows_from_it():
    critical = "[sgl_kernel] CRITICAL: Could not load any common_ops library!\n\nError details from previous import attempts:\n"
    last = "- ModuleNotFoundError: No module named 'common_ops'\n"
    numa = "- ImportError: libnuma.so.1: cannot open shared object file: No such file or directory\n"
    have = faults(critical + numa + last)
    equal(len(have), 1)
    contains(have[0][0], "libnuma.so.1")
    for text in ("could not load any common_ops: libnuma.so.1: cannot open shared object file", "Could not load any common_ops library! libnuma.so.1: cannot open shared object file: No such file"):
        equal([cause.split()[0] for cause, _ in faults(text)], ["libnuma.so.1"])
    have = explained(critical + f"- ImportError: /x/common_ops.abi3.so: undefined symbol: {MANGLED}\n" + last)
    equal(("compiled part" in have, "compiled against an older kernel" in have), (False, True))
    equal(len(faults(critical + last)), 1)
    contains(faults(critical + last)[0][0], "did not load")
    have = faults("libcudart.so.12: cannot open shared object file: x\nCUDA driver version is insufficient for CUDA runtime version")
    equal([cause.split()[0] for cause, _ in have], ["libcudart.so.12", "The"])


def test_messages_of_this_loader():
    """As this machine's own C library words them."""
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        needed, short, text = folder / "libneeded.so.7", folder / "short.so", folder / "text.so"
        def compile(*args, source=""):
            subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", *args], input=source.encode(), check=True)
        compile("-o", needed, "-Wl,-soname,libneeded.so.7", source="int f(void) { return 1; }")
        compile("-o", folder / "user.so", "-x", "none", needed, source="int f(void); int g(void) { return f(); }")
        compile("-o", folder / "torch.so", "-Wl,-z,now", source="void _ZN2at6detail1fEv(void); void g(void) { _ZN2at6detail1fEv(); }")
        needed.unlink()
        short.write_bytes(b"\x7fELF")
        text.write_text("version https://git-lfs.github.com/spec/v1\n" * 20)
        wide = bytearray((folder / "user.so").read_bytes())
        wide[4] = 1  # ELFCLASS32
        (folder / "wide.so").write_bytes(wide)
        for file, cause in (("user.so", "does not find libneeded.so.7"), ("short.so", "short.so is cut off"), ("text.so", "text.so is no library"),
                            ("wide.so", "another word size"), ("torch.so", "_ZN2at6detail1fEv belongs to torch")):
            try:
                ctypes.CDLL(str(folder / file))
                message = "was loaded"
            except OSError as e:
                message = str(e)
            have = faults(message)
            equal((message, len(have)), (message, 1))
            contains(have[0][0], cause)


def test_before_and_after():
    out = explained(NAME)
    for part in (f"  before:\n    from sgl_kernel import {NAME}\n", f"    {NAME}(hidden_states, router_weights, out_dtype)\n", f"  after, with --to jit:\n    from sgl_kernel_jit import {NAME}\n",
                 "  after, with --to sglang@0.5.17 up to but not including 0.5.20:\n    from sglang.kernels.ops.gemm.dsv3_router_gemm import dsv3_router_gemm\n",
                 "    from sglang.kernels.ops.gemm.tiny_gemm import tiny_gemm_bf16\n    tiny_gemm_bf16(x=hidden_states, w=router_weights, out_dtype=out_dtype)\n",
                 '    #include "sgl_kernel_jit/torch.h"\n    sgl_kernel_jit::dsv3_router_gemm(...)', "torch.ops.sgl_kernel.dsv3_router_gemm(...)\n",
                 "Python export (CUDA): last in 0.4.4, gone from 0.4.5. Change #21531 of 2026-06-26.\n", "served by this project's own kernel", "fix rewrites those that are safe to rewrite"):
        contains(out, part)
    contains(explained("awq_dequantize"), "after: there is no C++ replacement")
    for name in ("bmm_fp8", "hadamard_transform", "merge_state"):  # a kernel of this project that fix does not write
        contains(explained(name), f'  after, by hand:\n    #include "sgl_kernel_jit/torch.h"\n    sgl_kernel_jit::{name}(...)\n')


def test_unknown():
    for text, word, near in (("dsv3_router_gem", "dsv3_router_gem", [NAME]), ("cannot import name 'bmm_fp9' from 'sgl_kernel'", "bmm_fp9", ["bmm_fp8"]),
                             ("numpy_is_fine_here", "numpy_is_fine_here", []), ("hello", "hello", []), ("x" * 5000, "x" * 5000, []), ("bad\x1b[31m", "bad", [])):
        done = run("explain", text)
        equal((text, done.returncode, done.out), (text, 1, ""))
        head, _, suggested = done.err.strip().partition("; spelt alike: ")
        equal((head, suggested.split(", ")[:1] if suggested else []), (f"sgl-migrate: '{word}' is no removed name", near))
    equal((run("explain", "...").returncode, run("explain", "...").err), (1, "sgl-migrate: the text has no name\n"))


def test_usage():
    for args, says in ((["explain"], "explain needs an error message or a name"), (["explain", "--to", "jit"], "unknown option --to"), (["explain", "--catalog", "none", "x"], "none: ")):
        done = run(*args)
        equal((args, done.returncode, done.out, done.err.count("\n")), (args, 8, "", 1))
        contains(done.err, f"sgl-migrate: {says}")
    contains(run("explain", "-h").out, "usage: sgl-migrate explain ")
    out = explained("--catalog", str(DATA / "small.yaml"), "zeta")
    contains(out, "zeta: ")
    equal("sgl-kernel-compat" in out, False)  # which knows its own catalog only


main(globals())
