/* sgl-migrate catalog diff: what two releases of a library offer, and what became of it. Data flows down this list;
 * nothing below calls upwards.
 *
 *   command_diff.c         options, exit status
 *   diff_report.c          text and JSON; diff_draft.c: rows for a catalog
 *   diff.c                 removed, added, renamed, changed, and what the catalog says of it
 *   diff_compare.c         do calls of an old signature fit a new one; how alike are two names
 *   surface_read.c         the files of a wheel, a source package or a folder
 *   surface_python.c       names that can be imported (tree-sitter); surface_signature.c: how a function is called;
 *                          surface_class.c: what an object offers
 *   surface_schema.c       operators that C++ sources define; the parts of a schema
 *   surface_binary.c       operators and functions of libraries (audit_elf.c), demangled
 *   surface.c              the list of all that
 *
 * Nothing of what is read is run, and nothing is unpacked to a path. */
#ifndef SGL_SCANNER_SURFACE_H
#define SGL_SCANNER_SURFACE_H

#include "scanner/arena.h"
#include "scanner/scanner.h"

struct surface_parameter {
  const char *name;  /* "" in C++, and of a bare type in a schema */
  const char *type;  /* "": none */
  const char *value; /* default; NULL: none */
  enum {
    PARAMETER_PLAIN,
    PARAMETER_POSITION, /* Python: before a '/' */
    PARAMETER_KEYWORD,  /* after a '*' */
    PARAMETER_REST,     /* Python: *args, **kwargs */
    PARAMETER_NAMED_REST,
  } kind;
};

struct surface_signature {
  const char *text; /* "(a: int, b=1) -> Tensor", blanks as the catalog writes them; "": not known */
  const struct surface_parameter *parameters;
  size_t count;
  const char *returns; /* "" when nothing is said */
  bool split;          /* parameters and returns are filled in; not for several definitions of one name */
};

struct surface_item {
  enum catalog_layer layer;
  enum catalog_platform platform; /* of operators in sources; else CATALOG_CUDA */
  const char *name;               /* "sgl_kernel.gemm.bmm_fp8"; operator; C++ name with its namespaces */
  const char *home;               /* Python: where it is defined, likewise; else name */
  struct surface_signature signature;
  const char *symbol; /* C++: mangled; else NULL */
  const char *op;     /* Python: the operator that its body calls; NULL: none or several */
  const char *place;  /* "sgl_kernel/gemm.py:12", "sgl_kernel/sm90/common_ops.abi3.so" */
  bool module;        /* Python: a module */
  const char *class;  /* Python: the class that it is a method or value of; NULL: none */
  const char *bases;  /* of a class: its bases out of the package, "a, b"; NULL: it is none */
  bool hidden;        /* Python: in a private module; only what the catalog knows of it matters */
};

#define SURFACE_LAYERS 3 /* CATALOG_LAYER_PYTHON, _OPERATOR, _CXX */
#define SURFACE_PLATFORMS 5

struct surface_python;
struct surface {
  const struct catalog *catalog;
  struct arena arena;
  const char *path;                   /* as given */
  const char *distribution, *version; /* NULL: not said */
  const char *package;                /* the folder of the package in it; NULL: it has none */
  struct surface_item *items;         /* sorted by layer, platform, name, signature, symbol */
  size_t items_count, items_capacity;
  bool has[SURFACE_LAYERS][SURFACE_PLATFORMS]; /* something that can show the layer was there */
  char **faults;                               /* what was not analysed, one line each; owned */
  size_t faults_count, faults_capacity;
  struct surface_python *python;
};

/* surface_read.c. Returns false after writing one line when the path cannot be read; surface_free is needed in both
 * cases. */
bool surface_read(struct surface *surface, const struct catalog *catalog, const char *path, char *message,
                  size_t message_size);

/* surface.c */
struct surface_item *surface_add(struct surface *surface, enum catalog_layer layer, const char *name);
__attribute__((format(printf, 2, 3))) void surface_fault(struct surface *surface, const char *format, ...);
void surface_sort(struct surface *surface);
void surface_free(struct surface *surface);
/* One of that name on CUDA, after surface_sort; NULL: none. */
const struct surface_item *surface_find(const struct surface *surface, enum catalog_layer layer, const char *name);
int surface_order(const struct surface_item *a, const struct surface_item *b); /* by layer, platform, name */
/* The part of a name behind its namespaces or modules. */
const char *surface_short(enum catalog_layer layer, const char *name);
/* Text without the blanks that mean nothing: runs of them are one, none beside brackets and before commas. */
char *surface_plain(struct arena *arena, const char *text, size_t size);
__attribute__((format(printf, 2, 3))) char *surface_format(struct arena *arena, const char *format, ...);

/* surface_python.c: the modules of the package are kept until all are there. `path` is in the wheel or folder. */
void surface_python_add(struct surface *surface, const char *path, const uint8_t *bytes, size_t size);
/* Chooses the package's folder and adds what can be imported. */
void surface_python_finish(struct surface *surface);
/* Is it a Python file that can belong to the package? */
bool surface_python_wants(const struct surface *surface, const char *path);

/* surface_schema.c */
void surface_sources(struct surface *surface, const char *path, const uint8_t *bytes, size_t size);
/* "name(Tensor a, int b=1) -> Tensor": adds the operator; false when it is none. */
bool surface_operator(struct surface *surface, enum catalog_platform platform, const char *schema, size_t size,
                      const char *place);

/* surface_binary.c: a library of `size` bytes. */
void surface_binary(struct surface *surface, const char *path, int fd, uint64_t size);
/* Name and parameters of a mangled function; false when it is none that a caller could use. */
bool surface_demangle(struct arena *arena, const char *symbol, const char **name, struct surface_signature *signature);

/* --- how two of them differ --------------------------------------------------------------------------------------- */

enum diff_kind { DIFF_REMOVED, DIFF_RENAMED, DIFF_CHANGED, DIFF_ADDED };
#define DIFF_KINDS 4

/* What the catalog says of a removal. */
enum diff_known {
  KNOWN_UNASKED,   /* nothing was removed, or nothing that a catalog is for */
  KNOWN_AGREES,    /* it left in this step */
  KNOWN_OTHERWISE, /* the catalog has it and says something else: note */
  KNOWN_NOT,       /* the catalog does not have it */
};

struct diff_change {
  enum diff_kind kind;
  const struct surface_item *old, *new; /* NULL: none */
  bool breaks;                          /* callers of the old one notice */
  const char *why;                      /* CHANGED: the first thing that differs; "" else */
  unsigned alike;                       /* RENAMED: in percent */
  enum diff_known known;
  const struct catalog_symbol *symbol;
  const char *note;
  size_t alias_of; /* index of the change of the same definition under its own name; SIZE_MAX: it is that one */
};

/* A row of the catalog that contradicts what was read, without a change that would say so. */
struct diff_contradiction {
  const struct catalog_symbol *symbol;
  enum catalog_layer layer;
  const char *what;
};

struct diff {
  struct arena arena;
  const struct surface *old, *new;
  struct diff_change *changes; /* by layer, kind, name */
  size_t count, capacity;
  struct diff_contradiction *contradictions;
  size_t contradictions_count, contradictions_capacity;
  bool compared[SURFACE_LAYERS]; /* both sides have the layer */
};

void diff_make(struct diff *diff, const struct surface *old, const struct surface *new);
void diff_free(struct diff *diff);
int diff_status(const struct diff *diff);

/* diff_compare.c: do all calls that fit `old` fit `new` and mean the same? The first thing that differs goes into *why,
 * "" when nothing that a caller can see does. */
bool diff_fits(struct arena *arena, enum catalog_layer layer, const struct surface_signature *old,
               const struct surface_signature *new, const char **why);
/* In percent. */
unsigned diff_alike(const struct surface_item *old, const struct surface_item *new);

bool diff_report_text(const struct diff *diff);
bool diff_report_json(const struct diff *diff);
/* Rows for removed names that the catalog does not have. */
bool diff_draft(const struct diff *diff);

#endif
