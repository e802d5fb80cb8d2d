/* The catalog in memory: one struct tree, whether it was loaded from YAML (catalog_load.c) or generated as a static
 * table at build time (build/gen/catalog_builtin.c, declared below). All strings are UTF-8, never NULL unless a comment
 * says "optional"; all lists are pointer + count, NULL when the count is 0. The field comments here and
 * catalog/schema.md describe the same thing; removals.yaml is the only place where a removed name is described. */
#ifndef SGL_CATALOG_H
#define SGL_CATALOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum catalog_status {
  CATALOG_REMOVED,           /* the name left */
  CATALOG_PLANNED,           /* still there; its removal is announced or at risk */
  CATALOG_RENAMED,           /* the name left, another name of the same thing stays */
  CATALOG_SIGNATURE_CHANGED, /* the name stays, its signature broke callers */
};

/* The layers of one name leave at different times. */
enum catalog_layer {
  CATALOG_LAYER_PYTHON,   /* the Python export */
  CATALOG_LAYER_OPERATOR, /* the torch operator */
  CATALOG_LAYER_CXX,      /* the C++ function of the shared object and of sgl_kernel_ops.h */
  CATALOG_LAYER_SOURCES,  /* the files of the source tree */
};

enum catalog_platform {
  CATALOG_CUDA,
  CATALOG_MUSA,
  CATALOG_ROCM,
  CATALOG_XPU,
  CATALOG_CPU,
};

/* When one layer of a name left on one platform; or, with first_without NULL and the other strings empty, that it is
 * still there on that platform, although it left on CUDA. */
struct catalog_removal {
  enum catalog_layer layer;
  enum catalog_platform platform;
  const char *last_with;     /* last kernel release with it */
  const char *first_without; /* first kernel release without it; optional */
  const char *change;        /* pull request, "#30280" */
  const char *commit;        /* optional, abbreviated hash */
  const char *date;          /* merge date, YYYY-MM-DD */
};

enum catalog_route_kind {
  CATALOG_ROUTE_JIT, /* this project's own kernel: Python sgl_kernel_jit.NAME, C++ sgl_kernel_jit::NAME, C sgl_jit_NAME
                      */
  CATALOG_ROUTE_SGLANG,  /* a module path of sglang, in a range of sglang releases */
  CATALOG_ROUTE_LIBRARY, /* another library (flashinfer, ...) */
  CATALOG_ROUTE_NONE,    /* nothing; `note` says why */
};

/* One parameter of the old function in terms of the new one. */
struct catalog_argument {
  const char *from; /* old parameter, in the old order */
  const char *to;   /* new parameter; "" when it has no counterpart */
};

/* The calls that the new function takes; 0: not known. Callers of the old one often ask for less around a call. */
struct catalog_limits {
  unsigned tokens;     /* most rows of a call */
  unsigned k_multiple; /* the inner dimension is a multiple of this */
  unsigned n_multiple; /* the columns (experts) are a multiple of this, */
  unsigned n_most;     /* and at most so many */
  unsigned sm_least;   /* compute capability times ten: 80 */
};

struct catalog_route {
  enum catalog_route_kind kind;
  const enum catalog_platform *platforms; /* where it leads somewhere; none: nothing is known against any */
  unsigned platforms_count;
  const char *module; /* Python module that defines the function; "" for CATALOG_ROUTE_NONE */
  const char *name;   /* the function there */
  const char *from;   /* SGLANG: first sglang release with it; LIBRARY: optional; otherwise NULL */
  const char *until;  /* first sglang release WITHOUT it; NULL: still there in the newest one known */
  bool python;        /* a Python import of the old name may be rewritten to module.name without touching its calls */
  bool cxx;           /* a C++ call may be rewritten to sgl_kernel_jit::name (JIT only) */
  const struct catalog_argument *arguments;
  unsigned arguments_count;
  struct catalog_limits limits;
  const char *note; /* differences a caller must know; "" when none */
};

struct catalog_python {
  const char *module; /* "sgl_kernel", "sgl_kernel.gemm", ... */
  const char *name;   /* the attribute there */
};

struct catalog_cxx {
  const char *name;             /* unqualified name; "" when there was no C++ function */
  const char *scope;            /* enclosing namespace; "" is the global one */
  const char *declaration;      /* full C++ declaration with at:: types, no trailing semicolon */
  const char *mangled;          /* Itanium mangled name */
  unsigned parameters;          /* number of parameters */
  const char *const *templates; /* kernel templates of the deleted sources (global) */
  unsigned templates_count;
};

struct catalog_symbol {
  const char *id; /* the catalog's id: the Python name where there is one; SARIF ruleId */
  enum catalog_status status;
  const char *family;
  const char *summary; /* one sentence: what it did */
  const struct catalog_python *python;
  unsigned python_count;
  const char *python_signature; /* "(hidden_states: torch.Tensor, ...) -> torch.Tensor"; "" when no Python export */
  const char *op_name;          /* operator without namespace; "" when none */
  const char *op_schema;        /* "name(Tensor! output, ...) -> ()"; "" when none */
  struct catalog_cxx cxx;
  const char *added_in; /* first kernel release with it */
  const struct catalog_removal *removals;
  unsigned removals_count;
  const char *const *sources; /* deleted source files, path below the kernel's csrc/: "gemm/dsv3_fused_a_gemm.cu" */
  unsigned sources_count;
  const char *const *tests; /* deleted tests, path below sgl-kernel/: "tests/test_dsv3_router_gemm.py" */
  unsigned tests_count;
  const char *const *benchmarks; /* deleted benchmarks: "benchmark/bench_dsv3_router_gemm.py" */
  unsigned benchmarks_count;
  const char *stage;                  /* lifecycle stage of the shim today: silent | warn | error | tombstone */
  const char *stage_end;              /* date on which the shim itself stops serving it, YYYY-MM-DD; optional */
  const struct catalog_route *routes; /* best first; each holds on CUDA */
  unsigned routes_count;
  const struct catalog_route *elsewhere; /* those of other platforms */
  unsigned elsewhere_count;
  const char *const *traps; /* what breaks when the name is forwarded blindly */
  unsigned traps_count;
  const char *const *provenance; /* where the facts come from */
  unsigned provenance_count;
};

/* What changed of a name that stays, or of a module or wheel. */
enum catalog_changed {
  CATALOG_CHANGED_CXX,          /* a C++ function */
  CATALOG_CHANGED_DISTRIBUTION, /* a wheel, or what it brings besides the package */
  CATALOG_CHANGED_MODULE,       /* a module path */
  CATALOG_CHANGED_OPERATOR,
  CATALOG_CHANGED_PYTHON, /* a Python function */
};

/* What a caller of the old one meets; the linter works out those of signatures. */
enum catalog_breaks {
  CATALOG_BREAKS_CALLS,   /* an old call fails, or its arguments mean something else */
  CATALOG_BREAKS_LINK,    /* what was compiled against the old release finds no such symbol */
  CATALOG_BREAKS_RESULT,  /* old calls are taken and return another type */
  CATALOG_BREAKS_SILENT,  /* old calls are taken and do something else */
  CATALOG_BREAKS_DEFAULT, /* only the default of an argument is another */
  CATALOG_BREAKS_IMPORT,  /* the module or wheel is no longer under that name */
  CATALOG_BREAKS_NOTHING, /* every old call fits */
};

struct catalog_change {
  const char *id; /* "python:topk_softmax@0.2.2", with "/cpu" where platforms differ */
  enum catalog_changed what;
  const char *name;
  const char *const *modules; /* of a Python function: where it can be imported from */
  unsigned modules_count;
  const enum catalog_platform *platforms; /* none: all */
  unsigned platforms_count;
  const char *const *distributions; /* none: those of the platforms */
  unsigned distributions_count;
  const char *last_with; /* last release with the old form; optional */
  const char *release;   /* first release with the new one */
  const char *change;    /* pull request; optional */
  const char *date;      /* its merge date; optional */
  enum catalog_breaks breaks;
  const char *before; /* Python signature, operator schema, C++ declaration, module path or wheel; */
  const char *after;  /* "" for what has no successor */
  const char *mangled_before, *mangled_after; /* of C++ functions, else "" */
  const char *when_given;                     /* SILENT: only calls with this argument; optional */
  const char *when_left_out;                  /* SILENT: only calls without it; optional */
  const char *reason;                         /* what breaks, or why nothing does */
  const char *remedy;                         /* what to do; "" where nothing breaks */
  const char *const *provenance;
  unsigned provenance_count;
};

/* An sglang release and the releases that its own requirements name with ==. */
struct catalog_sglang_pin {
  const char *release, *kernel;
  const char *torch, *flashinfer; /* "" when not known */
};

/* From release `from` of the library on, its wheels are built for this torch. */
struct catalog_torch_build {
  const char *from, *torch;
};

/* A distribution that provides the package: for these platforms, in releases from `from` on and before `until`. */
struct catalog_wheel {
  const char *distribution;
  const enum catalog_platform *platforms;
  unsigned platforms_count;
  const char *from, *until; /* optional */
};

struct catalog_library {
  const char *package;              /* Python package that owns the names: "sgl_kernel" */
  const char *op_namespace;         /* "sgl_kernel" */
  const char *const *distributions; /* names of the wheels: sgl-kernel, sglang-kernel, ... */
  unsigned distributions_count;
  const char *cxx_header;      /* "sgl_kernel_ops.h" */
  const char *extension;       /* the compiled module that the package loads: "common_ops"; "" when not known */
  const char *source_folder;   /* where its sources, tests and benchmarks are in its repository; "" when not known */
  const char *const *releases; /* kernel releases known, oldest first */
  unsigned releases_count;
  const char *const *sglang_releases; /* sglang releases known, oldest first */
  unsigned sglang_releases_count;
  const struct catalog_sglang_pin *sglang_pins; /* oldest first; not every release has one */
  unsigned sglang_pins_count;
  const struct catalog_torch_build *torch_builds; /* oldest first */
  unsigned torch_builds_count;
  const struct catalog_wheel *wheels;
  unsigned wheels_count;
};

struct catalog {
  struct catalog_library library;
  const struct catalog_symbol *symbols; /* sorted by id */
  unsigned symbols_count;
  const struct catalog_change *changes; /* sorted by id */
  unsigned changes_count;
};

/* The catalog that this build was made with: build/gen/catalog_builtin.c, generated from removals.yaml. */
extern const struct catalog catalog_builtin;

/* Load a YAML catalog. Returns NULL after writing one line ("FILE: what is wrong") into message. Free with
 * catalog_free. Thread-safe for different results. */
struct catalog *catalog_load(const char *path, char *message, size_t message_size);
void catalog_free(struct catalog *catalog);

/* catalog_lint.c: proves the table. Calls report() once for each fault, with one line "FILE:LINE: what" and no newline.
 * Returns the number of faults. `path` is read again for the line numbers. */
typedef void catalog_report(void *user, const char *line);
unsigned catalog_lint(const struct catalog *catalog, const char *path, catalog_report *report, void *user);

/* Find a symbol by id; NULL when there is none. */
const struct catalog_symbol *catalog_find(const struct catalog *catalog, const char *id);

/* Compare two release numbers of the PEP 440 subset N(.N)*[{a|b|rc}N][.postN][.devN][+local]; the local part does not
 * count. Returns <0, 0, >0. Strings that are no release number sort before all that are. */
int catalog_version_compare(const char *a, const char *b);
bool catalog_version_valid(const char *version);

/* The removal that speaks for a layer: the CUDA row, else the first of any platform, else NULL. */
const struct catalog_removal *catalog_layer_removal(const struct catalog_symbol *symbol, enum catalog_layer layer);
/* The removal that speaks of this layer and platform: the platform's own, else CUDA's; NULL: none. */
const struct catalog_removal *catalog_platform_removal(const struct catalog_symbol *symbol, enum catalog_layer layer,
                                                       enum catalog_platform platform);

/* Is this layer of the symbol gone from kernel release `kernel` on `platform`? Without a row for the platform and layer
 * the CUDA row of the layer decides; without that, the answer is false. */
bool catalog_is_removed(const struct catalog_symbol *symbol, enum catalog_layer layer, enum catalog_platform platform,
                        const char *kernel);

/* The kernel release that sglang release `release` pins; NULL when the catalog knows none. */
const char *catalog_sglang_kernel(const struct catalog *catalog, const char *release);

/* The sglang route that is valid in sglang release `release`, or NULL. */
const struct catalog_route *catalog_sglang_route(const struct catalog_symbol *symbol, const char *release);
/* catalog_signature.c: the parameters of a Python signature, an operator schema or a C++ declaration. */
struct catalog_slice {
  const char *text;
  unsigned length;
};
struct catalog_parameter {
  struct catalog_slice name, type, value; /* value: the default; empty when there is none */
};
#define CATALOG_PARAMETERS_MOST 100
struct catalog_signature {
  struct catalog_parameter parameters[CATALOG_PARAMETERS_MOST]; /* those that go by position first */
  unsigned count, positional;
  struct catalog_slice name; /* empty in Python */
  struct catalog_slice result;
};
/* false: cannot be read, or has *args or **kwargs. The slices are parts of the text. */
bool catalog_signature_read(enum catalog_changed what, const char *text, struct catalog_signature *signature);
/* What a caller of `before` meets: CALLS, LINK (C++: a parameter has another type), RESULT, DEFAULT or NOTHING. */
enum catalog_breaks catalog_signature_breaks(enum catalog_changed what, const struct catalog_signature *before,
                                             const struct catalog_signature *after);

/* A call as its text shows it. */
struct catalog_call {
  unsigned positional;
  const struct catalog_slice *words; /* of each the name that it is, empty when it is something else; NULL: not known */
  bool more;                         /* **kwargs may add keywords */
  const struct catalog_slice *keywords;
  unsigned keywords_count;
};
/* Why the call does not fit the signature: one clause in `why`, "" when it fits. Returns true when it fits. */
bool catalog_call_fits(const struct catalog_signature *signature, const struct catalog_call *call, char *why,
                       size_t why_size);
/* Do the arguments of a call that fits both mean the same in both, or are their words those of the new form? Else one
 * clause in `why`. */
bool catalog_call_same(const struct catalog_signature *before, const struct catalog_signature *after,
                       const struct catalog_call *call, char *why, size_t why_size);

/* The wheel with a release (NULL: with the newest) for a platform; NULL when the catalog knows none. */
const struct catalog_wheel *catalog_wheel_for(const struct catalog *catalog, enum catalog_platform platform,
                                              const char *release);

/* This project's own kernel, or NULL. */
/* Of the C++ function. */
bool catalog_function_returns_nothing(const struct catalog_symbol *symbol);
const struct catalog_route *catalog_jit_route(const struct catalog_symbol *symbol);

/* catalog_words.c: layers and platforms for people: "Python export", "CUDA". */
const char *catalog_layer_title(enum catalog_layer layer);
const char *catalog_platform_title(enum catalog_platform platform);

/* catalog_page.c: all that the catalog says of a name, below its title, in Markdown or for a terminal. `compat`: it is
 * a name of this project's own catalog, so tell also what the shim and the Python package do with it. */
void catalog_page(FILE *out, const struct catalog *catalog, const struct catalog_symbol *symbol, bool markdown,
                  bool compat);

#endif
