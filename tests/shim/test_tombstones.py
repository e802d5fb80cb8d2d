#!/usr/bin/env python3
"""The deleted C++ functions that nothing here replaces: each resolves in libsgl_kernel_compat.so, goes on to another loaded
definition with all its arguments, and throws the advice where there is none. Declarations only, no torch is involved."""
import atexit, json, os, pathlib, re, shutil, subprocess, sys, tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import catalog_rows
from suite import main

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["BUILD_DIR"])
LIB = BUILD / "lib"
COMPAT = LIB / "libsgl_kernel_compat.so"
BASELINE = pathlib.Path(__file__).with_name("exports.txt")
CXX = os.environ.get("CXX", "g++")
WORK = pathlib.Path(tempfile.mkdtemp(prefix="sgl-tombstones-"))
atexit.register(shutil.rmtree, WORK, ignore_errors=True)

# at::Tensor by value: a class that is not trivially copied, as torch's is.
TENSOR = """
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <optional>
#include <string>
#include <tuple>
#include <vector>
namespace at {
class Tensor {
public:
  Tensor(long n) : p((void *)n) {}
  Tensor(const Tensor &other) : p(other.p) {}
  ~Tensor() {}
  void *p;
};
}
"""
# More arguments than registers, of all kinds: what arrives is written down by the old library.
SAMPLING = """
void tree_speculative_sampling_target_only(at::Tensor a, at::Tensor b, at::Tensor c, at::Tensor d, at::Tensor e, at::Tensor f, at::Tensor g,
    at::Tensor h, at::Tensor i, at::Tensor j, at::Tensor k, double single, double acc, bool deterministic)"""
ROPE = """
void apply_rope_pos_ids_cos_sin_cache(at::Tensor q, at::Tensor k, at::Tensor q_rope, at::Tensor k_rope, at::Tensor cache, at::Tensor pos, bool interleave,
    bool enable_pdl, const std::optional<at::Tensor> &v, const std::optional<at::Tensor> &k_buffer, const std::optional<at::Tensor> &v_buffer,
    const std::optional<at::Tensor> &loc)"""
AWQ = "\nat::Tensor awq_dequantize(at::Tensor qweight, at::Tensor scales, at::Tensor qzeros)"
OLD = TENSOR + """
extern "C" char told[4096];
char told[4096];
template <typename... T> static void tell(const char *format, T... values) { snprintf(told + strlen(told), sizeof told - strlen(told), format, values...); }
""" + SAMPLING + """ {
  for (at::Tensor *t : {&a, &b, &c, &d, &e, &f, &g, &h, &i, &j, &k}) tell("%ld ", (long)t->p);
  tell("%g %g %d\\n", single, acc, deterministic);
}
""" + ROPE + """ {
  tell("%ld %ld %ld %ld %ld %ld %d %d %d %ld\\n", (long)q.p, (long)k.p, (long)q_rope.p, (long)k_rope.p, (long)cache.p, (long)pos.p, interleave, enable_pdl, v.has_value(), (long)loc->p);
}
""" + AWQ + """ {
  return at::Tensor((long)qweight.p * 10000 + (long)scales.p * 100 + (long)qzeros.p);
}
"""
PROGRAM = TENSOR + SAMPLING + ";" + ROPE + ";" + AWQ + """;
#include <dlfcn.h>
static void sampling() { tree_speculative_sampling_target_only(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0.25, 0.5, true); }
static void rope() {
  std::optional<at::Tensor> none, some(77);
  apply_rope_pos_ids_cos_sin_cache(1, 2, 3, 4, 5, 6, true, false, none, some, none, some);
}
static void awq() { printf("awq %ld\\n", (long)awq_dequantize(1, 2, 3).p); }
static void call(void (*f)()) {
  std::string own = "destroyed while the exception passes";
  try {
    f();
  } catch (const std::exception &e) {
    printf("caught: %s\\n", e.what());
  }
}
int main(int argc, char **argv) {
  for (int round = 0; round < 2; round++) {
    void *old = argc > 1 + round ? dlopen(argv[1 + round], RTLD_NOW | RTLD_LOCAL) : nullptr;
    for (int i = 0; i < 2; i++) {
      call(sampling);
      call(rope);
      call(awq);
    }
    if (old)
      printf("%s", (char *)dlsym(old, "told"));
  }
}
"""


def run(*command, status=0, **environment):
    env = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD" and not k.startswith("SGL_KERNEL_")}
    env.update(environment)
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env, timeout=120)
    assert done.returncode == status, f"{command[0]} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
    return done.stdout


def compiled(name, source, *flags):
    path = WORK / f"{name}.cc"
    path.write_text(source)
    run(CXX, "-std=c++17", "-g", "-O1", "-fPIC", "-Wall", "-Werror", "-o", WORK / name, path, *flags)
    return WORK / name


def linked():
    return f"-L{LIB}", "-lsgl_kernel_compat", f"-Wl,-rpath,{LIB}", "-ldl"


def gone_functions():
    """Mangled name -> row of the catalog: what left as a C++ function of the CUDA wheel."""
    return {row.mangled: row for row in catalog_rows.rows() if row.mangled
            and any(r["layer"] == "cxx" and r["platform"] == "cuda" and "first_without" in r for r in row.removals)}


def exported():
    lines = [line.split() for line in run("nm", "-D", "--defined-only", COMPAT).splitlines()]
    assert all(line[-2] in "TA" for line in lines), lines
    return sorted(line[-1].split("@")[0] for line in lines if line[-2] == "T")


def test_every_function_of_the_catalog():
    functions = gone_functions()
    assert len(functions) > 55 and set(functions) == {name for name in exported() if name.startswith("_Z")}, set(functions) ^ set(exported())


def test_baseline():
    """The exported names only grow: a library that was linked with an older version goes on to load."""
    assert exported() == BASELINE.read_text().split(), \
        f"the exports have changed; if that is meant, write them into {BASELINE.name}: nm -D --defined-only build/lib/libsgl_kernel_compat.so"


def test_as_our_own_elf_reader_sees_it():
    rows = [line.split("\t") for line in run(BUILD / "bin/sgl-migrate", "audit", "--format", "tsv", COMPAT, status=0).splitlines()]
    assert {row[2] for row in rows} <= {"provides", "string"}, rows
    ids = {row.id for row in gone_functions().values()}
    provided = {row[1] for row in rows if row[2] == "provides"}
    assert ids == provided, ids ^ provided


# The catalog's declarations, each linked by the name that the compiler gives it and found by the name that the catalog says.
EVERY = """
namespace c10 { enum class ScalarType : int8_t {}; }
namespace at { class Generator { public: Generator() {} Generator(const Generator &other) : p(other.p) {} ~Generator() {} void *p = nullptr; }; }
%(declarations)s
#include <dlfcn.h>
template <typename T> struct some { T value{}; };
template <> struct some<at::Tensor> { at::Tensor value{0}; };
template <typename R, typename... A> static void call(const char *id, const char *mangled, R (*f)(A...)) {
  if (dlsym(RTLD_DEFAULT, mangled) != (void *)f)
    printf("%%s: %%s is another function\\n", id, mangled);
  std::tuple<some<std::decay_t<A>>...> values;
  try {
    std::apply([&](auto &...v) { (void)f(static_cast<A>(v.value)...); }, values);
    printf("%%s: returned\\n", id);
  } catch (const std::exception &e) {
    printf("%%s: %%s\\n", id, e.what());
  }
}
int main() {
%(calls)s
}
"""


def test_every_function_throws():
    """Without torch, and without another library that has them: what nothing here replaces says so with the advice, and what
    this project has a kernel for asks for torch."""
    functions = gone_functions()
    declarations = "\n".join(f"namespace {row.scope} {{ {row.declaration}; }}" if row.scope else f"{row.declaration};" for row in functions.values())
    calls = "\n".join(f'  call("{row.id}", "{mangled}", &{row.scope}::{row.cxx_name()});' for mangled, row in functions.items())
    program = compiled("every", TENSOR + EVERY % {"declarations": declarations, "calls": calls}, *linked())
    said = dict(line.split(": ", 1) for line in run(program, SGL_KERNEL_COMPAT_WARN="off").splitlines())
    assert set(said) == {row.id for row in functions.values()} and len(said) == len(functions), set(said) ^ {row.id for row in functions.values()}
    for row in functions.values():
        best = row.routes[0]
        advice = "there is no replacement" if best.kind == "none" else f"use {best.module}.{best.name}"
        if best.kind == "jit" and row.declaration.startswith("void "):
            assert "torch" in said[row.id] and "is gone" not in said[row.id] and said[row.id] != "returned", (row.id, said[row.id])
        else:
            assert re.search(rf"^the C\+\+ function .*\b{row.cxx_name()}\(.* is gone, sgl_kernel has dropped it in {re.escape(row.gone('cxx'))} ", said[row.id]), said[row.id]
            assert advice in said[row.id], (advice, said[row.id])


def test_throws_with_the_advice():
    lines = run(compiled("alone", PROGRAM, *linked())).splitlines()
    assert len(lines) == 12, lines
    for line, (name, release) in zip(lines, [("tree_speculative_sampling_target_only", "0.4.8"), ("apply_rope_pos_ids_cos_sin_cache", "0.4.1"),
                                             ("awq_dequantize", "0.4.7")]):
        assert re.match(rf"caught: the C\+\+ function .*\b{name}\(.* is gone, sgl_kernel has dropped it in {re.escape(release)}.*: use ", line), line


def test_goes_on_to_the_old_library():
    """First called when it is not there, then with it: all arguments arrive, and what it returns comes back."""
    old = compiled("libold.so", OLD, "-shared")
    lines = run(compiled("later", PROGRAM, *linked()), "/nonexistent", old).splitlines()
    assert [line[:7] for line in lines[:6]] == ["caught:"] * 6, lines
    told = ["1 2 3 4 5 6 7 8 9 10 11 0.25 0.5 1", "1 2 3 4 5 6 1 0 0 77"]
    assert lines[6:] == ["awq 10203"] * 2 + told * 2, lines
    lines = run(compiled("at_once", PROGRAM, *linked()), old).splitlines()
    assert lines == ["awq 10203"] * 2 + told * 2 + ["awq 10203"] * 2, lines


def test_statistics():
    """Both ends of a call are counted: the error, and the way to the old library, which later calls take unseen."""
    old = compiled("libold.so", OLD, "-shared")
    run(compiled("counted", PROGRAM, *linked()), "/nonexistent", old, SGL_KERNEL_COMPAT_STATS=str(WORK / "stats"))
    (file,) = (WORK / "stats").glob("*.jsonl")
    lines = [json.loads(line) for line in file.read_text().splitlines()[1:]]
    assert {line["symbol"] for line in lines} == {"tree_speculative_sampling_target_only", "apply_rope_with_cos_sin_cache_inplace", "awq_dequantize"}, lines
    for line in lines:
        assert line["face"] == "cxx" and line["calls"] == {"silent": 1, "tombstone": 2} and line["failed"] == 2, line
        assert line["caller"]["file"].endswith("/counted"), line


def test_calls_are_logged():
    """All of them; their arguments are not known here."""
    old = compiled("libold.so", OLD, "-shared")
    run(compiled("logged", PROGRAM, *linked()), "/nonexistent", old, SGL_KERNEL_COMPAT_LOG="calls", SGL_KERNEL_COMPAT_LOG_DIR=str(WORK / "calls"))
    (file,) = (WORK / "calls").glob("*.calls")
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    names = ["tree_speculative_sampling_target_only", "apply_rope_with_cos_sin_cache_inplace", "awq_dequantize"]
    assert [(line["symbol"], line["face"], line["outcome"]) for line in lines] == [(name, "cxx", outcome) for outcome in ("error", "error", "forwarded", "forwarded") for name in names], lines
    assert "is gone, sgl_kernel has dropped it" in lines[0]["message"] and "message" not in lines[-1], lines


def test_stages():
    """A stage that is set holds where an old library has the function, too: error fails, warn tells each place once."""
    old, program = compiled("libold.so", OLD, "-shared"), compiled("staged", PROGRAM, *linked())
    lines = run(program, old, SGL_KERNEL_COMPAT_POLICY="awq_dequantize=error; tree_speculative_sampling_target_only = silent").splitlines()
    want = (r"caught: the C\+\+ function awq_dequantize is deprecated, sgl_kernel has dropped it in 0\.4\.7 .*: use .*"
            r"; its stage is error \(SGL_KERNEL_COMPAT_POLICY\)")
    assert [bool(re.fullmatch(want, line)) for line in lines] == [True] * 2 + [False] * 4 + [True] * 2, lines
    assert lines[2:6] == ["1 2 3 4 5 6 7 8 9 10 11 0.25 0.5 1", "1 2 3 4 5 6 1 0 0 77"] * 2, lines
    done = subprocess.run([program, old], capture_output=True, text=True, timeout=120, env=dict(os.environ, SGL_KERNEL_COMPAT_POLICY="awq_dequantize=warn"))
    assert done.stdout.count("awq 10203") == 4 and done.stderr.count("the C++ function awq_dequantize is deprecated") == 1, done
    assert re.search(r"; called from staged\+0x", done.stderr), done


def test_preloaded():
    """A library that was linked with the old one, which has lost the functions since."""
    compiled("libcommon_ops.so", OLD, "-shared", "-Wl,-soname,libcommon_ops.so")
    program = compiled("consumer", PROGRAM, f"-L{WORK}", "-lcommon_ops", f"-Wl,-rpath,{WORK}", "-Wl,-z,now", "-ldl")
    assert run(program).splitlines()[:1] == ["awq 10203"]
    compiled("libcommon_ops.so", "int the_new_wheel;", "-shared", "-Wl,-soname,libcommon_ops.so")
    run(program, status=127)
    assert run(program, LD_PRELOAD=str(COMPAT)).count("caught: ") == 12


main(globals())
