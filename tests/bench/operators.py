"""What the benchmarks from Python share: the operators of the shim beside operators registered from C++ (operators.cc), timed
in turn. Imported inside the torch that is measured."""
import ctypes, gc, os, statistics, subprocess, time

import torch

MUST = 1.10  # of torch.ops.sgl_kernel.* to the same call registered from C++


def compile(source, target, includes, libraries, jit_include, lib, flags=()):
    command = [os.environ.get("CXX", "g++"), "-std=c++20", "-O2", "-w", "-fPIC", "-shared", *flags, f"-I{jit_include}",
               *(f"-isystem{i}" for i in includes), "-o", target, source, f"-L{lib}", "-lsgl_kernel_jit",
               *(f"-L{i}" for i in libraries), "-ltorch_cpu", "-lc10", f"-Wl,-rpath,{lib}"]
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise SystemExit(f"operators.cc does not compile against this torch:\n{done.stdout}")


def load(lib, operators):
    """Registers both sides, and returns the library of operators.cc. The warning of the first call goes to nobody, as where
    somebody has a hook; it stays on."""
    compat = ctypes.CDLL(os.path.join(lib, "libsgl_kernel_compat.so"))
    message = ctypes.create_string_buffer(1000)
    if compat.sgl_compat_register_ops(message, len(message)) != 0:
        raise SystemExit(message.value.decode())
    load.hook = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(lambda warning, user: 0)
    compat.sgl_compat_set_warning_hook(load.hook, None)
    torch.ops.load_library(operators)
    library = ctypes.CDLL(operators)
    if library.sgl_bench_register_c() != 0:
        raise SystemExit("torch refuses sgl_bench::empty_c")
    library.sgl_bench_context_query.restype = ctypes.c_double
    return library


def once(op, arguments, calls, after):
    a, b, c = arguments
    turns = range(calls)
    start = time.perf_counter_ns()
    for _ in turns:
        op(a, b, c)
    ns = (time.perf_counter_ns() - start) / calls
    after()
    return ns


def measure(sides, rounds, calls, after=lambda: None):
    """{name: (op, arguments)} -> {name: ns of each round}. The sides take turns, each round in the other order; the loop
    around the calls, about 10 ns, is part of all of them. `after` runs between the batches, outside of the clock."""
    times = {name: [] for name in sides}
    for op, arguments in sides.values():
        once(op, arguments, calls, after)
    enabled = gc.isenabled()
    gc.disable()
    for i in range(rounds):
        for name in sorted(sides, reverse=i % 2):
            times[name].append(once(*sides[name], calls, after))
    if enabled:
        gc.enable()
    return times


def row(name, times):
    t = sorted(times)
    print(f"  {name:58} {statistics.median(t):8.1f} [{t[len(t) // 10]:8.1f} .. {t[-1 - len(t) // 10]:8.1f}]")


def ratio(times, side, base):
    """The median of the rounds' own ratios: what slows a whole round down cancels out."""
    return statistics.median(x / y for x, y in zip(times[side], times[base]))


def verdict(what, measured):
    met = measured <= MUST
    print(f"must: at most {MUST:.2f} times the C++ operator, {what}; measured: {measured:.3f}: {'met' if met else 'MISSED'}")
    return 0 if met else 1
