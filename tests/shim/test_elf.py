#!/usr/bin/env python3
"""libsgl_kernel_compat.so as a shared library: what it exports and needs, and programs that were built for the old one.

Everything is compiled here with g++ and gcc against declarations only; no torch is involved."""
import atexit, os, pathlib, re, shutil, subprocess, sys, tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from suite import main

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["BUILD_DIR"])
LIB = BUILD / "lib"
GENERATED = BUILD / "gen"
COMPAT = LIB / "libsgl_kernel_compat.so"
CC, CXX = os.environ.get("CC", "gcc"), os.environ.get("CXX", "g++")
WORK = pathlib.Path(tempfile.mkdtemp(prefix="sgl-elf-"))
atexit.register(shutil.rmtree, WORK, ignore_errors=True)

DECLARATIONS = """
namespace at { class Tensor; }
void dsv3_router_gemm(at::Tensor &output, const at::Tensor &mat_a, const at::Tensor &mat_b);
void dsv3_fused_a_gemm(at::Tensor &output, const at::Tensor &mat_a, const at::Tensor &mat_b);
"""
# A program of somebody's: two call sites, the second one called twice. With "catch" as its last line it reports.
CONSUMER = DECLARATIONS + """
#include <cstdio>
#include <exception>
static long memory[64];
static at::Tensor &tensor() { return reinterpret_cast<at::Tensor &>(memory); }
static void router() {
  dsv3_router_gemm(tensor(), tensor(), tensor());
}
static void fused_a() {
  dsv3_fused_a_gemm(tensor(), tensor(), tensor());
}
static int caught(void (*f)()) {
  try {
    f();
  } catch (const std::exception &e) {
    std::printf("caught: %s\\n", e.what());
    return 1;
  }
  return 0;
}
int main() {
  int count = caught(router) + caught(fused_a) + caught(fused_a);
  for (long value : memory)
    if (value)
      return 9;
  return count == 3 ? 0 : 1;
}
"""
# at::Tensor by value: a class that is not trivially copied, as torch's is.
BMM_CALLER = """
namespace at { class Tensor { public: Tensor(const Tensor &); ~Tensor(); void *p; }; }
void bmm_fp8(at::Tensor A, at::Tensor B, at::Tensor D, at::Tensor A_scale, at::Tensor B_scale, at::Tensor workspace_buffer, long cublas_handle);
void call(const at::Tensor &t) { bmm_fp8(t, t, t, t, t, t, 0); }
"""
# An old wheel: the functions work, and its registration takes their addresses as C++ does, through the GOT.
OLD_WHEEL = DECLARATIONS + """
extern "C" { int calls; }
void dsv3_router_gemm(at::Tensor &, const at::Tensor &, const at::Tensor &) { calls += 1; }
void dsv3_fused_a_gemm(at::Tensor &, const at::Tensor &, const at::Tensor &) { calls += 100; }
typedef void function(at::Tensor &, const at::Tensor &, const at::Tensor &);
extern "C" function *registered(int which) { return which ? &dsv3_fused_a_gemm : &dsv3_router_gemm; }
"""


def run(*command, status=0, **environment):
    env = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "SGL_KERNEL_COMPAT_WARN", "SGL_KERNEL_JIT_BACKEND")}
    env.update(environment)
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env, timeout=120)
    assert done.returncode == status, f"{command[0]} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
    return done.stdout, done.stderr


def compiled(name, source, *flags, compiler=CXX):
    path = WORK / (name + (".cc" if compiler == CXX else ".c"))
    path.write_text(source)
    run(compiler, "-g", "-O0", "-fPIC", "-Wall", "-Werror", f"-I{ROOT}", f"-I{ROOT}/shim/include", f"-I{GENERATED}", "-o", WORK / name, path, *flags)
    return WORK / name


def linked(*extra):
    return (f"-L{LIB}", "-lsgl_kernel_compat", f"-Wl,-rpath,{LIB}", *extra)


def dynamic(library):
    return re.findall(r"\((\w+)\)\s+(?:Shared library: |Library \w+: |Flags: )?\[?([^\]\n]*)", run("readelf", "-d", "-W", library)[0])


def test_exports():
    declared = set(re.findall(r"^SGL_COMPAT_API .*?(sgl_compat_\w+)\(", (ROOT / "shim/include/sgl_kernel_compat.h").read_text(), re.M))
    assert len(declared) >= 8, declared
    # The compiler itself says what the old names are called.
    obj = compiled("names.o", CONSUMER + BMM_CALLER, "-c")
    mangled = {line.split()[-1] for line in run("nm", "-u", obj)[0].splitlines() if "at6Tensor" in line}
    mangled = {name for name in mangled if "C1" not in name and "D1" not in name}  # at::Tensor's own
    assert len(mangled) == 3, mangled
    lines = [line.split() for line in run("nm", "-D", "--defined-only", COMPAT)[0].splitlines()]
    have = {line[-1].split("@")[0] for line in lines if line[-2] != "A"}
    assert {name for name in have if not name.startswith("_Z")} == declared, have ^ declared
    assert mangled <= have, mangled - have  # the others: test_tombstones.py
    assert all(line[-2] == "T" for line in lines if line[-2] != "A"), lines


def test_needs_no_torch():
    entries = dynamic(COMPAT)
    needed = {value for tag, value in entries if tag == "NEEDED"}
    assert needed <= {"libsgl_kernel_jit.so.0", "libc.so.6", "libpthread.so.0", "libdl.so.2", "libm.so.6"}, needed
    undefined = {line.split()[-1].split("@")[0] for line in run("nm", "-D", "-u", COMPAT)[0].splitlines()}
    assert not {u for u in undefined if u.startswith(("aoti_", "torch_", "_Z", "__cxa_throw"))}, undefined
    flags = " ".join(value for tag, value in entries if tag == "FLAGS_1")
    assert "NODELETE" in flags and "NOW" in flags, flags
    assert ("SONAME", "libsgl_kernel_compat.so.0") in entries, entries


def test_runs_nothing_at_load_time():
    def constructors(library):
        found = re.search(r" \.init_array\s+\S+\s+\S+\s+\S+\s+(\S+)", run("readelf", "-S", "-W", library)[0])
        return int(found.group(1), 16) if found else 0

    assert constructors(COMPAT) == constructors(compiled("empty.so", "int empty(void) { return 0; }", "-shared", compiler=CC).resolve())
    # And with torch already there, nothing is registered until somebody asks.
    (WORK / "libtorch_cpu.so").symlink_to(BUILD / "tests/shim/fake_torch.so")
    program = compiled("load_only", """
#include "tests/shim/fake_torch.h"
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv) {
  void *torch = dlopen(argv[1], RTLD_NOW), *compat = argc > 2 ? dlopen(argv[2], RTLD_NOW) : 0;
  if (!torch || !compat)
    return puts(dlerror()), 2;
  struct fake_state *state = ((fake_state_function *)dlsym(torch, "fake_torch_state"))();
  if (state->libraries_count != 0)
    return 3;
  ((int (*)(char *, unsigned long))dlsym(compat, "sgl_compat_register_ops"))(0, 0);
  int operators = 0;
  while (((const char *(*)(unsigned long))dlsym(compat, "sgl_compat_op_name"))(operators))
    operators++;
  return operators > 2 && state->libraries_count == 3 * operators ? 0 : 4;
}
""", "-ldl", compiler=CC)
    assert run(program, WORK / "libtorch_cpu.so", COMPAT) == ("", "")


def test_header_stands_alone():
    source = '#include <sgl_kernel_compat.h>\n'
    compiled("header_c.o", source + "int unused;\n", "-c", "-std=c99", "-pedantic-errors", "-Wextra", compiler=CC)
    compiled("header_cc.o", source, "-c", "-std=c++11", "-pedantic-errors", "-Wextra")


def expect_served(output, errors):
    lines = output.splitlines()
    assert len(lines) == 3 and all(line.startswith("caught: dsv3_") and "torch" in line for line in lines), output
    warnings = errors.splitlines()
    assert len(warnings) == 2, errors  # one for each name and call site
    for name, function, warning in zip(("dsv3_router_gemm", "dsv3_fused_a_gemm"), ("router", "fused_a"), warnings):
        assert f"{name} is deprecated" in warning and f"sgl_kernel_jit::{name}" in warning, warning
    return warnings


def test_linked_consumer_catches():
    program = compiled("consumer", CONSUMER, *linked())
    warnings = expect_served(*run(program))
    # The place in the warning is the line of the call.
    source = (WORK / "consumer.cc").read_text().splitlines()
    for warning, call in zip(warnings, ("dsv3_router_gemm(tensor()", "dsv3_fused_a_gemm(tensor()")):
        offset = re.search(r"called from consumer\+(0x[0-9a-f]+)", warning).group(1)
        line = int(run("addr2line", "-e", program, offset)[0].split(":")[-1].split()[0])
        assert call in source[line - 1], (warning, line)


def test_bind_now():
    expect_served(*run(compiled("consumer_now", CONSUMER, *linked("-Wl,-z,now"))))
    expect_served(*run(compiled("consumer_lazy", CONSUMER, *linked("-Wl,-z,lazy"))))
    compiled("consumer.so", CONSUMER.replace("int main()", "int not_main()"), "-shared", "-Wl,-z,defs", *linked())


def test_linked_with_the_old_library():
    """A program that was linked with the old library, which has lost the functions since: LD_PRELOAD brings them back."""
    old = WORK / "libcommon_ops.so"
    compiled("libcommon_ops.so", OLD_WHEEL, "-shared", "-Wl,-soname,libcommon_ops.so")
    program = compiled("consumer_of_old", CONSUMER, f"-L{WORK}", "-lcommon_ops", f"-Wl,-rpath,{WORK}", "-Wl,-z,now")
    run(program, status=1)  # the old library works: nothing is thrown
    old.unlink()
    compiled("libcommon_ops.so", "int the_new_wheel;", "-shared", "-Wl,-soname,libcommon_ops.so")
    run(program, status=127)  # symbol lookup error
    expect_served(*run(program, LD_PRELOAD=str(COMPAT)))


WHEEL_PROGRAM = """#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
/* argv: the objects to load in this order; then the function is called twice by the way named first. */
typedef void function(void *, const void *, const void *);
int main(int argc, char **argv) {
  void *wheel = 0, *compat = 0;
  for (int i = 2; i < argc; i++) {
    void *handle = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
    if (!handle)
      return puts(dlerror()), 2;
    if (strstr(argv[i], "common_ops"))
      wheel = handle;
    else
      compat = handle;
  }
  int *calls = (int *)dlsym(wheel, "calls");
  for (int which = 0; which < 2; which++) {
    static const char *const names[] = {"_Z16dsv3_router_gemmRN2at6TensorERKS0_S3_", "_Z17dsv3_fused_a_gemmRN2at6TensorERKS0_S3_"};
    function *f = strcmp(argv[1], "registered") == 0 ? ((function * (*)(int)) dlsym(wheel, "registered"))(which)
                                                     : (function *)dlsym(compat, names[which]);
    Dl_info info;
    dladdr((void *)f, &info);
    printf("%s\\n", strrchr(info.dli_fname, '/') + 1);
    f(0, 0, 0);
    f(0, 0, 0);
  }
  return *calls == 202 ? 0 : 1;
}
"""


def test_old_wheel_keeps_its_kernels():
    wheel = WORK / "wheel"
    wheel.mkdir()
    compiled("wheel/common_ops.abi3.so", OLD_WHEEL, "-shared")
    wheel = wheel / "common_ops.abi3.so"
    program = compiled("wheel_program", WHEEL_PROGRAM, "-ldl", compiler=CC)
    ours = "libsgl_kernel_compat.so\n" * 2
    # We come first in the global scope: the wheel's own registration gets our address, and still its own kernel.
    assert run(program, "registered", wheel, LD_PRELOAD=str(COMPAT)) == (ours, "")
    # Loaded after the wheel, before it, and called through our symbol.
    assert run(program, "compat", wheel, COMPAT) == (ours, "")
    assert run(program, "compat", COMPAT, wheel) == (ours, "")
    # Without us in the global scope the wheel has its own address.
    assert run(program, "registered", COMPAT, wheel) == ("common_ops.abi3.so\n" * 2, "")


TRACER = """#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
typedef void function(void *, const void *, const void *);
#define NAME "_Z16dsv3_router_gemmRN2at6TensorERKS0_S3_"
void trace(void *, const void *, const void *) __asm__(NAME);
void trace(void *output, const void *mat_a, const void *mat_b) {
  puts("traced");
  ((function *)dlsym(RTLD_NEXT, NAME))(output, mat_a, mat_b);
  puts("back");
}
"""


def test_tracer_before_us():
    """An interposed function that calls the next one gets ours, not itself again."""
    tracer = compiled("tracer.so", TRACER, "-shared", "-ldl", compiler=CC)
    program = compiled("traced", CONSUMER, *linked())
    output, errors = run(program, LD_PRELOAD=str(tracer))
    lines = output.splitlines()
    assert lines[0] == "traced" and lines.count("traced") == 1, output
    expect_served("\n".join(lines[1:]), errors.replace("called from tracer.so", "called from traced"))


def test_address_in_a_fixed_program():
    """A program that is not position-independent and takes the function's address has a symbol of its own for it."""
    call = "dsv3_router_gemm(tensor(), tensor(), tensor());"
    pointer = "void (*volatile function)(at::Tensor &, const at::Tensor &, const at::Tensor &) = dsv3_router_gemm; " + call.replace("dsv3_router_gemm", "function")
    program = compiled("fixed", CONSUMER.replace(call, pointer), "-fno-pie", "-no-pie", "-fno-PIC", *linked())
    own = [line for line in run("readelf", "--dyn-syms", "-W", program)[0].splitlines() if "_Z16dsv3_router_gemm" in line]
    assert len(own) == 1 and int(own[0].split()[1], 16) != 0, own
    expect_served(*run(program))


def test_wheel_is_kept():
    """What calls are forwarded to stays loaded when its owner lets it go, however it was found."""
    wheel = compiled("gone_common_ops.so", OLD_WHEEL, "-shared")
    program = compiled("wheel_goes", """#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
void router(void *, const void *, const void *) __asm__("_Z16dsv3_router_gemmRN2at6TensorERKS0_S3_");
int main(int argc, char **argv) {
  void *wheel = dlopen(argv[1], RTLD_NOW | (argc > 2 ? RTLD_GLOBAL : RTLD_LOCAL));
  int *calls = (int *)dlsym(wheel, "calls");
  router(0, 0, 0);
  dlclose(wheel);
  router(0, 0, 0);
  return *calls == 2 ? 0 : 1;
}
""", *linked("-ldl"), compiler=CC)
    assert run(program, wheel) == ("", "")
    assert run(program, wheel, "global") == ("", "")
    # Loaded by hand, with the wheel before it in the global scope: nothing of a wheel that is gone is called.
    program = compiled("wheel_goes_first", """#define _GNU_SOURCE
#include <dlfcn.h>
int main(int argc, char **argv) {
  void *compat = dlopen(argv[1], RTLD_NOW), *wheel = dlopen(argv[2], RTLD_NOW | RTLD_GLOBAL);
  void (*router)(void *, const void *, const void *) =
      (void (*)(void *, const void *, const void *))dlsym(compat, "_Z16dsv3_router_gemmRN2at6TensorERKS0_S3_");
  router(0, 0, 0);
  dlclose(wheel);
  router(0, 0, 0);
  return argc - 3;
}
""", "-ldl", compiler=CC)
    output, errors = run(program, COMPAT, wheel, SGL_KERNEL_COMPAT_WARN="off")
    assert output == "" and errors.count("a call did nothing") == 2, errors


def test_two_copies_of_us():
    """One in the global scope, another copy loaded later: they must not call each other for ever."""
    copy = WORK / "copy"
    copy.mkdir()
    for name in ("libsgl_kernel_compat.so", "libsgl_kernel_jit.so.0"):
        (copy / name).write_bytes((LIB / name).read_bytes())
    program = compiled("two_copies", CONSUMER.replace("int main() {", """
#include <dlfcn.h>
int main(int, char **argv) {
  if (!dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL))
    return 8;
"""), *linked("-ldl"))
    expect_served(*run(program, copy / "libsgl_kernel_compat.so"))


def test_nobody_to_catch():
    """No C++ runtime in the process: one line, and the call returns without having written."""
    program = compiled("plain_c", """
#include <errno.h>
#include <unistd.h>
void router(void *, const void *, const void *) __asm__("_Z16dsv3_router_gemmRN2at6TensorERKS0_S3_");
int main(void) {
  static long output[16];
  router(output, output, output);
  for (int i = 0; i < 16; i++)
    if (output[i])
      return 1;
  close(2); /* the line cannot be written */
  errno = 7;
  router(output, output, output);
  return errno == 7 ? 0 : 2;
}
""", *linked(), compiler=CC)
    assert not [value for tag, value in dynamic(program) if tag == "NEEDED" and "stdc++" in value]
    output, errors = run(program, SGL_KERNEL_COMPAT_WARN="off")
    assert output == "" and errors.count("\n") == 1 and "a call did nothing" in errors and "dsv3_router_gemm" in errors and "torch" in errors, errors


main(globals())
