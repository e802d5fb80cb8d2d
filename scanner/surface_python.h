/* What the readers of Python modules share: surface_python.c, surface_signature.c, surface_class.c. */
#ifndef SGL_SCANNER_SURFACE_PYTHON_H
#define SGL_SCANNER_SURFACE_PYTHON_H

#include "scanner/python_front.h"
#include "scanner/surface.h"

enum entry_kind { ENTRY_FUNCTION, ENTRY_CLASS, ENTRY_VALUE, ENTRY_IMPORT, ENTRY_STAR };

/* A method of a class, or a value that its body assigns. */
struct member {
  const char *name;
  struct surface_signature signature; /* of a call through an object; a value and a property have none */
  uint32_t line;
};

/* One statement that binds a name in a module. */
struct entry {
  enum entry_kind kind;
  const char *name;
  const char *module, *target; /* IMPORT: from module import target; STAR: module */
  struct surface_signature signature;
  const char *op;
  uint32_t line;
  struct member *members; /* CLASS: what its body defines; owned */
  size_t members_count, members_capacity;
  const char **bases; /* CLASS: owned */
  size_t bases_count, bases_capacity;
};

struct module {
  const char *path, *name; /* "python/sgl_kernel/gemm.py", "sgl_kernel.gemm" */
  bool package;            /* an __init__.py */
  struct entry *entries;   /* in the order of the text */
  size_t count, capacity;
  const char **all; /* __all__ */
  size_t all_count, all_capacity;
  bool has_all;
  bool full; /* some of its names are left out */
};

/* One module while its tree is there. */
struct reading {
  struct surface *surface;
  struct module *module;
  const struct py_tree *tree;
};

/* The definition of a name in a module, through at most `depth` imports, and the module that has it; NULL: none. */
const struct entry *surface_find_name(const struct surface *surface, const struct module *module, const char *name,
                                      unsigned depth, const struct module **home);
#define SURFACE_IMPORTS_MOST 32 /* modules that a name is followed through */

/* Star imports in a circle, long chains, bases of bases: there are more ways through them than anybody can go. */
bool surface_may_go_on(const struct surface *surface);

/* surface_signature.c: the text of a node; on one line, without comments. */
const char *surface_node(struct arena *arena, const struct py_tree *tree, py_id node);
const char *surface_node_plain(struct arena *arena, const struct py_tree *tree, py_id node);
uint32_t surface_node_line(const struct py_tree *tree, py_id node);
/* "(a: int, *, b=1) -> Tensor", as the catalog writes it. */
const char *surface_signature_text(struct arena *arena, const struct surface_signature *signature);
/* bound: the first parameter is the object, and what is returned is not said. */
void surface_signature_read(struct reading *reading, py_id function, bool bound, struct surface_signature *signature);
/* Has the definition a decorator with this word in it? */
bool surface_decorated(const struct reading *reading, py_id definition, const char *word);

/* surface_class.c: how an object is made, what it offers. */
void surface_class_read(struct reading *reading, py_id class, struct entry *entry);
/* Adds what a class offers, also by its bases in the package. `item`: index of the class. */
void surface_class_add(struct surface *surface, const struct module *home, const struct entry *entry, size_t item);
void surface_class_free(struct entry *entry);

#endif
