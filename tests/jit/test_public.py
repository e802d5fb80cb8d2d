#!/usr/bin/env python3
"""What the library shows to the outside: its exported symbols and dependencies, its headers in C and C++, the PyTorch face.

torch.h is tried here on a small at::Tensor of our own; tests/shim/test_real_torch.py uses it with the real one."""
import functools, os, pathlib, re, shutil, subprocess, sys, tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from suite import main

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["BUILD_DIR"]).resolve()
LIBRARY = BUILD / "lib" / "libsgl_kernel_jit.so"
FAKES = BUILD / "tests" / "jit"
INCLUDE = ROOT / "jit" / "include"
CXX = os.environ.get("CXX", "g++")
CC = os.environ.get("CC", "gcc")


def run(*command, **options):
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}"
    return done.stdout


def in_folder(test):
    """A temporary folder for the test, gone afterwards."""
    @functools.wraps(test)
    def run_test():
        with tempfile.TemporaryDirectory() as folder:
            test(pathlib.Path(folder))
    return run_test


def equal(have, want):
    assert have == want, f"\n  have {have}\n  want {want}"


def test_exports():
    declared = set(re.findall(r"\bsgl_jit_\w+(?=\()", (INCLUDE / "sgl_kernel_jit" / "sgl_kernel_jit.h").read_text()))
    exported = {line.split()[-1] for line in run("nm", "-D", "--defined-only", LIBRARY).splitlines()}
    equal(sorted(exported), sorted(declared))
    assert len(declared) >= 6


def test_dependencies():
    dynamic = run("readelf", "-d", LIBRARY)
    needed = set(re.findall(r"NEEDED.*\[(.*?)\]", dynamic))
    assert needed <= {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0"}, needed
    assert "NODELETE" in dynamic  # a dlclose would lose what the driver holds of kernels and contexts
    assert "TEXTREL" not in dynamic and "soname: [libsgl_kernel_jit.so.0]" in dynamic
    run("ldd", "-r", LIBRARY)


def test_prints_nothing():
    undefined = run("nm", "-D", "--undefined-only", LIBRARY).split()
    names = {name.split("@")[0] for name in undefined}
    equal(sorted(names & {"printf", "puts", "putchar", "fprintf", "perror", "__printf_chk", "__fprintf_chk", "abort", "exit",
                          "_exit", "stdout", "stderr"}), [])


@in_folder
def test_c_header(folder):
    source = folder / "user.c"
    source.write_text('#include "sgl_kernel_jit/sgl_kernel_jit.h"\n#include <stdio.h>\n'
                      "int main(void) { puts(sgl_jit_version()); return 0; }\n")
    for standard in ("c99", "c11"):
        run(CC, f"-std={standard}", "-pedantic-errors", "-Wall", "-Wextra", "-Werror", "-I", INCLUDE, "-o", folder / "user", source,
            LIBRARY, f"-Wl,-rpath,{LIBRARY.parent}")
        equal(run(folder / "user"), "0.1.0\n")
    shutil.copy(source, folder / "user.cc")
    for standard in ("c++11", "c++20"):
        run(CXX, f"-std={standard}", "-pedantic-errors", "-Wall", "-Wextra", "-Werror", "-I", INCLUDE, "-o", folder / "user",
            folder / "user.cc", LIBRARY, f"-Wl,-rpath,{LIBRARY.parent}")
        equal(run(folder / "user"), "0.1.0\n")


def compile_user(folder, *more):
    run(CXX, "-std=c++17", "-Wall", "-Wextra", "-Werror", "-I", INCLUDE, "-I", ROOT / "tests" / "jit" / "torch", "-o", folder / "user",
        ROOT / "tests" / "jit" / "torch_user.cc", LIBRARY, f"-Wl,-rpath,{LIBRARY.parent}", *more, "-ldl")
    return folder / "user"


@in_folder
def test_torch_cpu(folder):
    user = compile_user(folder)
    reference = dict(os.environ, SGL_KERNEL_JIT_BACKEND="reference")
    equal(run(user, "router", env=reference), "ok\n")
    equal(run(user, "fused", env=reference), "ok\n")
    for what in ("bmm", "bmm-half", "bmm-e5m2", "bmm-e5m2-half"):
        equal(run(user, what, env=reference), "ok\n")
    equal(run(user, "bmm-undefined", env=reference), "threw: bmm_fp8: a tensor is undefined\n")
    equal(run(user, "bmm-spread", env=reference), "threw: bmm_fp8: workspace_buffer must be contiguous\n")
    equal(run(user, "double", env=reference), "threw: dsv3_router_gemm: hidden_states must be bfloat16, got another dtype\n")
    equal(run(user, "meta", env=reference), "threw: dsv3_router_gemm: hidden_states must be on a CUDA device, got another device\n")
    equal(run(user, "undefined", env=reference), "threw: dsv3_router_gemm: a tensor is undefined\n")
    default = {k: v for k, v in os.environ.items() if k != "SGL_KERNEL_JIT_BACKEND"}
    assert run(user, "router", env=default).startswith("threw: dsv3_router_gemm: the tensors must be on a CUDA device, got CPU")


@in_folder
def test_torch_cuda(folder):
    """Against the fake driver, with PyTorch's stream function linked, loaded privately, and missing."""
    store = FAKES / "emulated"
    store.mkdir(exist_ok=True)
    for fake, name in (("fake_cuda.so", "libcuda.so.1"), ("fake_torch_cuda.so", "libtorch_cuda.so")):
        shutil.copy(FAKES / fake, folder / name)
    environment = dict(os.environ, LD_LIBRARY_PATH=str(folder), SGL_KERNEL_JIT_NVRTC=str(FAKES / "fake_nvrtc.so"),
                       SGL_KERNEL_JIT_CACHE_DIR=str(folder / "cache"), SGL_TEST_STORE=str(store))
    environment.pop("SGL_KERNEL_JIT_BACKEND", None)
    linked = compile_user(folder, "-Wl,--no-as-needed", folder / "libtorch_cuda.so")
    equal(run(linked, "cuda-router", env=environment), "ok\n")
    equal(run(linked, "cuda-fused", env=environment), "ok\n")
    blas = dict(environment, SGL_KERNEL_JIT_CUBLASLT=str(FAKES / "fake_cublaslt.so"))
    equal(run(linked, "cuda-bmm", env=blas), "ok\n")
    equal(run(linked, "cuda-bmm-e5m2-half", env=blas), "ok\n")
    equal(run(linked, "cuda-bmm-elsewhere", env=blas), "threw: bmm_fp8: workspace_buffer must be on the device of A\n")
    missing = compile_user(folder)
    equal(run(missing, "cuda-router", env=environment), "threw: sgl_kernel_jit: the tensors are on a CUDA device, but libtorch_cuda "
          "with aoti_torch_get_current_cuda_stream is not loaded\n")
    private = folder / "loader.c"
    private.write_text('#include <dlfcn.h>\n__attribute__((constructor)) static void load(void) '
                       '{ dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_LOCAL); }\n')
    run(CC, "-shared", "-fPIC", "-o", folder / "loader.so", private)
    equal(run(missing, "cuda-router", env=dict(environment, LD_PRELOAD=str(folder / "loader.so"))), "ok\n")


PREBUILT_USER = """
import ctypes, os, sys
class Spec(ctypes.Structure):
    _fields_ = [("op", ctypes.c_int), ("n", ctypes.c_int64), ("k", ctypes.c_int64), ("output_dtype", ctypes.c_int)]
jit = ctypes.CDLL(sys.argv[1])
spec = Spec(0, 8, 256, 1)
text = ctypes.create_string_buffer(500)
if sys.argv[2] == "compile":
    status = jit.sgl_jit_compile(ctypes.byref(spec), b"sm_90a", text, ctypes.sizeof(text))
else:
    if sys.argv[2] == "elsewhere":
        os.chdir("/")
    status = jit.sgl_jit_warm(ctypes.byref(spec), 0, text, ctypes.sizeof(text))
counters = (ctypes.c_uint64 * 2)()
jit.sgl_jit_get_counters(counters, ctypes.sizeof(counters))
print(status, counters[0], counters[1], text.value.decode()[:59])
"""


@in_folder
def test_prebuilt(folder):
    """A machine without NVRTC: the kernels lie beside the library, wherever that is, and nothing is written."""
    (FAKES / "emulated").mkdir(exist_ok=True)
    library = folder / "somewhere" / "libsgl_kernel_jit.so"
    cubins = library.parent / "sgl-kernel-jit-cubins"
    cubins.mkdir(parents=True)
    shutil.copy(LIBRARY, library)
    shutil.copy(FAKES / "fake_cuda.so", folder / "libcuda.so.1")
    environment = dict(os.environ, LD_LIBRARY_PATH=str(folder), SGL_KERNEL_JIT_NVRTC=str(FAKES / "fake_nvrtc.so"),
                       SGL_KERNEL_JIT_CACHE_DIR=str(cubins), SGL_TEST_STORE=str(FAKES / "emulated"))
    environment.pop("SGL_KERNEL_JIT_PREBUILT_DIR", None)

    def use(path, how, **more):
        return run(sys.executable, "-c", PREBUILT_USER, path, how, env=dict(environment, **more), cwd=library.parent)

    equal(use(library, "compile"), "0 0 0 \n")
    assert len(list(cubins.glob("dsv3_router_gemm-*"))) == 1
    cache = folder / "cache"
    alone = dict(SGL_KERNEL_JIT_NVRTC="/nonexistent", SGL_KERNEL_JIT_CACHE_DIR=str(cache))
    none = "4 0 0 sgl_jit_warm: SGL_KERNEL_JIT_NVRTC names no usable library:\n"
    equal(use(library, "warm", **alone), "0 0 1 \n")
    assert not cache.exists()
    equal(use("./libsgl_kernel_jit.so", "warm", **alone), none)  # what that path means changes with the working folder
    equal(use("./libsgl_kernel_jit.so", "elsewhere", **alone), none)
    equal(use(LIBRARY, "warm", **alone), none)
    equal(use(LIBRARY, "warm", **alone, SGL_KERNEL_JIT_PREBUILT_DIR=str(cubins)), "0 0 1 \n")
    equal(use(library, "warm", **alone, SGL_KERNEL_JIT_PREBUILT_DIR=str(folder)), none)  # it is instead, not as well
    library.parent.joinpath("real").mkdir()
    cubins.rename(library.parent / "real" / "cubins")
    cubins.symlink_to("real/cubins")
    equal(use(library, "warm", **alone), none)
    cubins.unlink()
    (library.parent / "real" / "cubins").rename(cubins)
    cubins.chmod(0o777)
    equal(use(library, "warm", **alone), none)
    cubins.chmod(0o755)
    equal(use(library, "warm", **alone), "0 0 1 \n")
    if os.geteuid() == 0:  # they may belong to whoever the library belongs to, and to no other user
        entry, = cubins.glob("dsv3_*")
        for path in (cubins, entry):
            os.chown(path, 12345, 12345)
        equal(use(library, "warm", **alone), none)
        os.chown(library, 12345, 12345)
        equal(use(library, "warm", **alone), "0 0 1 \n")


main(globals())
