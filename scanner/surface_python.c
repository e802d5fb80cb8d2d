/* Names that can be imported from a package, with their signatures: from the syntax trees of its modules. What a branch
 * defines counts, whatever its condition. */
#include "scanner/surface_python.h"

#include <stdlib.h>

#define TEXT_MOST ((size_t)64 << 20)
#define FILES_MOST 20000
#define ENTRIES_MOST 10000   /* of one module */
#define STEPS_MOST 50000000u /* names that are looked at to follow imports */

struct file {
  const char *path;
  uint8_t *bytes;
  size_t size;
};

struct surface_python {
  struct file *files;
  size_t files_count, files_capacity, total;
  struct module *modules;
  size_t modules_count, modules_capacity;
  unsigned steps;
};

/* --- which files -------------------------------------------------------------------------------------------------- */

/* The folder called like the package that is above the file, or NULL: its end in the path. */
static const char *package_end(const struct surface *surface, const char *path) {
  const char *package = surface->catalog->library.package;
  size_t length = strlen(package);
  for (const char *at = path; at; at = strchr(at, '/'), at += at != NULL)
    if (strncmp(at, package, length) == 0 && at[length] == '/')
      return at + length;
  return NULL;
}

bool surface_python_wants(const struct surface *surface, const char *path) {
  size_t length = strlen(path);
  return length > 3 && strcmp(path + length - 3, ".py") == 0 && package_end(surface, path);
}

void surface_python_add(struct surface *surface, const char *path, const uint8_t *bytes, size_t size) {
  struct surface_python *python = surface->python;
  if (!python) {
    python = surface->python = scan_alloc(NULL, sizeof *python);
    *python = (struct surface_python){0};
  }
  if (size > TEXT_MOST - python->total || python->files_count == FILES_MOST) {
    surface_fault(surface, "%s: the package has more than %d Python files or %zu MiB of them; this one is left out",
                  path, FILES_MOST, TEXT_MOST >> 20);
    return;
  }
  PY_GROW(python->files, python->files_count, python->files_capacity);
  struct file *file = &python->files[python->files_count++];
  *file = (struct file){arena_copy(&surface->arena, path, strlen(path)), scan_alloc(NULL, size), size};
  memcpy(file->bytes, bytes, size);
  python->total += size;
}

/* Of several folders called like the package, the one least deep that has an __init__.py. */
static void choose_package(struct surface *surface) {
  size_t best_depth = SIZE_MAX;
  for (size_t i = 0; i < surface->python->files_count; i++) {
    const char *path = surface->python->files[i].path, *end = package_end(surface, path);
    size_t depth = 0;
    if (strcmp(end, "/__init__.py") != 0)
      continue;
    for (const char *at = path; at < end; at++)
      depth += *at == '/';
    if (depth < best_depth || (depth == best_depth && strncmp(path, surface->package, (size_t)(end - path)) < 0)) {
      best_depth = depth;
      surface->package = arena_copy(&surface->arena, path, (size_t)(end - path));
    }
  }
}

/* --- one module --------------------------------------------------------------------------------------------------- */

static struct entry *add_entry(struct reading *reading, enum entry_kind kind, const char *name, py_id node) {
  struct module *module = reading->module;
  if (module->count == ENTRIES_MOST) {
    static struct entry dropped;
    if (!module->full)
      surface_fault(reading->surface, "%s: more than %d names; the rest is left out", module->path, ENTRIES_MOST);
    module->full = true;
    return &dropped;
  }
  PY_GROW(module->entries, module->count, module->capacity);
  struct entry *entry = &module->entries[module->count++];
  *entry = (struct entry){.kind = kind,
                          .name = name,
                          .signature = {.text = "", .returns = ""},
                          .line = surface_node_line(reading->tree, node)};
  return entry;
}

/* The operator that a function calls: the one of its own name, else the only one. */
static const char *called_operator(struct reading *reading, py_id function, const char *name) {
  struct arena *arena = &reading->surface->arena;
  const struct py_node *node = &reading->tree->nodes[function];
  const char *front = surface_format(arena, "torch.ops.%s.", reading->surface->catalog->library.op_namespace);
  const uint8_t *at = reading->tree->bytes + node->start, *end = reading->tree->bytes + node->end;
  const char *found = NULL;
  bool several = false;
  while ((at = memmem(at, (size_t)(end - at), front, strlen(front)))) {
    const uint8_t *word = at + strlen(front), *stop = word;
    while (stop < end && py_word_byte(*stop))
      stop++;
    const char *op = arena_copy(arena, word, (size_t)(stop - word));
    if (strcmp(op, name) == 0)
      return op;
    several |= found && strcmp(found, op) != 0;
    found = op;
    at = stop;
  }
  return several ? NULL : found;
}

static void take_definition(struct reading *reading, py_id node) {
  const struct py_tree *tree = reading->tree;
  py_id name_node = py_field(tree, node, PY_FIELD_NAME);
  if (!name_node || surface_decorated(reading, node, "overload"))
    return;
  const char *name = surface_node(&reading->surface->arena, tree, name_node);
  bool function = py_kind(tree, node) == PY_FUNCTION_DEFINITION;
  struct entry *entry = add_entry(reading, function ? ENTRY_FUNCTION : ENTRY_CLASS, name, node);
  if (function) {
    surface_signature_read(reading, node, false, &entry->signature);
    entry->op = called_operator(reading, node, name);
  } else {
    surface_class_read(reading, node, entry);
  }
}

/* "..gemm" in module a.b.c is "a.gemm". NULL when it leaves the package. */
static const char *absolute_module(struct reading *reading, py_id node) {
  struct arena *arena = &reading->surface->arena;
  const char *text = surface_node_plain(arena, reading->tree, node);
  if (*text != '.')
    return text;
  char *base = arena_copy(arena, reading->module->name, strlen(reading->module->name));
  size_t up = strspn(text, ".") - (reading->module->package ? 1 : 0);
  while (up--) {
    char *dot = strrchr(base, '.');
    if (!dot)
      return NULL;
    *dot = '\0';
  }
  text += strspn(text, ". ");
  return *text ? surface_format(arena, "%s.%s", base, text) : base;
}

static void take_import(struct reading *reading, py_id statement) {
  const struct py_tree *tree = reading->tree;
  struct arena *arena = &reading->surface->arena;
  py_id from = py_field(tree, statement, PY_FIELD_MODULE_NAME);
  const char *module = from ? absolute_module(reading, from) : NULL;
  for (py_id node = module ? py_next(tree, from) : 0; node; node = py_next(tree, node)) {
    if (py_kind(tree, node) == PY_WILDCARD_IMPORT)
      add_entry(reading, ENTRY_STAR, "*", node)->module = module;
    if (tree->nodes[node].field != PY_FIELD_NAME)
      continue;
    bool aliased = py_kind(tree, node) == PY_ALIASED_IMPORT;
    const char *target = surface_node(arena, tree, aliased ? py_field(tree, node, PY_FIELD_NAME) : node);
    const char *name = aliased ? surface_node(arena, tree, py_field(tree, node, PY_FIELD_ALIAS)) : target;
    struct entry *entry = add_entry(reading, ENTRY_IMPORT, name, node);
    entry->module = module;
    entry->target = target;
  }
}

static void take_all(struct reading *reading, py_id value, bool more) {
  const struct py_tree *tree = reading->tree;
  struct module *module = reading->module;
  module->has_all = true;
  if (!more)
    module->all_count = 0;
  for (py_id i = value, end = value ? py_subtree_end(tree, value) : 0; i < end; i++)
    if (py_kind(tree, i) == PY_STRING_CONTENT) {
      PY_GROW(module->all, module->all_count, module->all_capacity);
      module->all[module->all_count++] = surface_node(&reading->surface->arena, tree, i);
    }
}

static void take_assignment(struct reading *reading, py_id node) {
  const struct py_tree *tree = reading->tree;
  py_id left = py_field(tree, node, PY_FIELD_LEFT), value = py_field(tree, node, PY_FIELD_RIGHT);
  bool more = py_kind(tree, node) == PY_AUGMENTED_ASSIGNMENT;
  for (py_id i = left, end = left ? py_subtree_end(tree, left) : 0; i < end; i++) {
    enum py_kind above = py_kind(tree, py_parent(tree, i));
    if (py_kind(tree, i) != PY_IDENTIFIER || (i != left && above != PY_PATTERN_LIST && above != PY_TUPLE_PATTERN))
      continue;
    if (py_is(tree, i, "__all__"))
      take_all(reading, value, more);
    else if (value && !more) {
      struct entry *entry = add_entry(reading, ENTRY_VALUE, surface_node(&reading->surface->arena, tree, i), i);
      if (py_is(tree, i, "__version__") && py_kind(tree, value) == PY_STRING)
        for (py_id k = value, stop = py_subtree_end(tree, value); k < stop; k++)
          if (py_kind(tree, k) == PY_STRING_CONTENT)
            entry->target = surface_node(&reading->surface->arena, tree, k);
    }
  }
}

/* The statements of the module, also those in branches; not those in functions and classes. */
static void read_statements(struct reading *reading) {
  const struct py_tree *tree = reading->tree;
  for (py_id node = 1; node < tree->count;) {
    switch (py_kind(tree, node)) {
    case PY_FUNCTION_DEFINITION:
    case PY_CLASS_DEFINITION:
      take_definition(reading, node);
      node = py_subtree_end(tree, node);
      continue;
    case PY_IMPORT_FROM_STATEMENT:
      take_import(reading, node);
      node = py_subtree_end(tree, node);
      continue;
    case PY_ASSIGNMENT:
    case PY_AUGMENTED_ASSIGNMENT:
      take_assignment(reading, node);
      node =
          py_kind(tree, py_field(tree, node, PY_FIELD_RIGHT)) == PY_ASSIGNMENT ? node + 1 : py_subtree_end(tree, node);
      continue;
    default:
      node++;
    }
  }
}

/* "sgl_kernel.gemm" of "sgl_kernel/gemm.py"; NULL for a private module. */
static const char *module_name(struct surface *surface, const char *path, bool *package) {
  size_t root = strlen(surface->package) - strlen(surface->catalog->library.package);
  char *name = arena_copy(&surface->arena, path + root, strlen(path) - root - 3);
  size_t length = strlen(name);
  *package = length > 9 && strcmp(name + length - 9, "/__init__") == 0;
  if (*package)
    name[length - 9] = '\0';
  for (char *at = name; *at; at++)
    if (*at == '/')
      *at = '.';
  return name;
}

static void read_module(struct surface *surface, const struct file *file) {
  struct surface_python *python = surface->python;
  PY_GROW(python->modules, python->modules_count, python->modules_capacity);
  struct module *module = &python->modules[python->modules_count++];
  *module = (struct module){.path = file->path};
  module->name = module_name(surface, file->path, &module->package);
  struct py_source source;
  const char *why;
  if (!py_source_open(&source, file->bytes, file->size, &why)) {
    surface_fault(surface, "%s: %s", file->path, why);
    return;
  }
  struct py_tree tree;
  py_tree_open(&tree, source.bytes, source.size, source.start);
  struct reading reading = {surface, module, &tree};
  if (tree.refused)
    surface_fault(surface, "%s: %s", file->path, tree.refused);
  else {
    if (tree.broken) {
      uint32_t line, column;
      rules_position(source.bytes, source.size, tree.broken_at, &line, &column);
      surface_fault(surface, "%s:%u: no Python syntax; names behind it may be missing", file->path, line);
    }
    read_statements(&reading);
  }
  py_tree_close(&tree);
  py_source_close(&source);
}

/* --- what a module exports ---------------------------------------------------------------------------------------- */

static const struct module *find_module(const struct surface_python *python, const char *name) {
  for (size_t i = 0; i < python->modules_count; i++)
    if (strcmp(python->modules[i].name, name) == 0)
      return &python->modules[i];
  return NULL;
}

const struct entry *surface_find_name(const struct surface *surface, const struct module *module, const char *name,
                                      unsigned depth, const struct module **home);

bool surface_may_go_on(const struct surface *surface) {
  return surface->python->steps < STEPS_MOST && ++surface->python->steps;
}

/* Is the name one that `from module import *` gives? */
static bool star_has(const struct module *module, const char *name) {
  if (!module->has_all)
    return *name != '_';
  for (size_t i = 0; i < module->all_count; i++)
    if (strcmp(module->all[i], name) == 0)
      return true;
  return false;
}

/* Where an import leads to in the package; NULL: out of it, or to a module. */
static const struct entry *follow(const struct surface *surface, const struct entry *entry, const char *name,
                                  unsigned depth, const struct module **home) {
  const struct module *from = find_module(surface->python, entry->module);
  if (!from || depth == 0 || (entry->kind == ENTRY_STAR && !star_has(from, name)))
    return NULL;
  return surface_find_name(surface, from, entry->kind == ENTRY_STAR ? name : entry->target, depth - 1, home);
}

/* The definition of a name in a module: one with a signature before any other. */
const struct entry *surface_find_name(const struct surface *surface, const struct module *module, const char *name,
                                      unsigned depth, const struct module **home) {
  const struct entry *best = NULL;
  for (size_t i = 0; i < module->count && surface_may_go_on(surface); i++) {
    const struct entry *entry = &module->entries[i], *found = NULL;
    const struct module *where = module;
    bool import = entry->kind == ENTRY_IMPORT || entry->kind == ENTRY_STAR;
    if (entry->kind == ENTRY_STAR || strcmp(entry->name, name) == 0)
      found = import ? follow(surface, entry, name, depth, &where) : entry;
    if (found && (!best || (best->kind == ENTRY_VALUE && found->kind != ENTRY_VALUE))) {
      best = found;
      *home = where;
    }
  }
  return best;
}

/* Several definitions of one name, in branches: all of their signatures, the first operator. */
static void join_definitions(struct surface *surface, const struct module *module, const char *name,
                             struct surface_item *item) {
  struct surface_signature *signature = &item->signature;
  for (size_t i = 0; i < module->count; i++) {
    const struct entry *entry = &module->entries[i];
    if (entry->kind > ENTRY_CLASS || strcmp(entry->name, name) != 0)
      continue;
    item->op = item->op ? item->op : entry->op;
    if (strstr(signature->text, entry->signature.text))
      continue;
    signature->text = surface_format(&surface->arena, "%s or %s", signature->text, entry->signature.text);
    signature->split = false;
  }
}

static void add_name(struct surface *surface, const struct module *module, const char *name) {
  const struct module *home = module;
  const struct entry *entry = surface_find_name(surface, module, name, SURFACE_IMPORTS_MOST, &home);
  struct arena *arena = &surface->arena;
  struct surface_item *item =
      surface_add(surface, CATALOG_LAYER_PYTHON, surface_format(arena, "%s.%s", module->name, name));
  item->place = module->path;
  item->hidden = strstr(module->name, "._") != NULL;
  if (!entry)
    return; /* in __all__ only, or a module */
  item->home = surface_format(arena, "%s.%s", home->name, entry->name);
  item->place = surface_format(arena, "%s:%u", home->path, entry->line);
  item->op = entry->op;
  item->signature = entry->signature;
  join_definitions(surface, home, entry->name, item);
  if (entry->kind == ENTRY_CLASS)
    surface_class_add(surface, home, entry, (size_t)(item - surface->items));
}

static bool added(const struct surface *surface, size_t from, const char *name) {
  for (size_t i = from; i < surface->items_count; i++)
    if (!surface->items[i].class && strcmp(surface_short(CATALOG_LAYER_PYTHON, surface->items[i].name), name) == 0)
      return true;
  return false;
}

/* Everything that `from module import *` would give out of the package. */
static void add_star(struct surface *surface, const struct module *module, const struct module *from, size_t first,
                     unsigned depth) {
  for (size_t i = 0; i < from->count && surface_may_go_on(surface); i++) {
    const struct entry *entry = &from->entries[i];
    const struct module *target = entry->module ? find_module(surface->python, entry->module) : NULL;
    if (entry->kind == ENTRY_STAR && target && depth && (module == from || !from->has_all))
      add_star(surface, module, target, first, depth - 1);
    else if (entry->kind != ENTRY_STAR && (entry->kind != ENTRY_IMPORT || target) &&
             (module == from || star_has(from, entry->name)) && *entry->name != '_' &&
             !added(surface, first, entry->name))
      add_name(surface, module, entry->name);
  }
  for (size_t i = 0; i < from->all_count; i++)
    if (!added(surface, first, from->all[i]))
      add_name(surface, module, from->all[i]);
}

static void add_module(struct surface *surface, const struct module *module) {
  size_t first = surface->items_count;
  if (module->package) {
    add_star(surface, module, module, first, SURFACE_IMPORTS_MOST);
  } else { /* what a plain module imports is its own business */
    for (size_t i = 0; i < module->count; i++)
      if (module->entries[i].kind < ENTRY_IMPORT && *module->entries[i].name != '_' &&
          !added(surface, first, module->entries[i].name))
        add_name(surface, module, module->entries[i].name);
    for (size_t i = 0; i < module->all_count; i++)
      if (!added(surface, first, module->all[i]))
        add_name(surface, module, module->all[i]);
  }
  struct surface_item *item = surface_add(surface, CATALOG_LAYER_PYTHON, module->name);
  item->module = true;
  item->hidden = strstr(module->name, "._") != NULL;
  item->place = module->path;
}

static int by_path(const void *left, const void *right) {
  return strcmp(((const struct file *)left)->path, ((const struct file *)right)->path);
}

static void take_version(struct surface *surface) {
  for (size_t i = 0; i < surface->python->modules_count && !surface->version; i++) {
    const struct module *module = &surface->python->modules[i];
    for (size_t k = 0; k < module->count; k++)
      if (strcmp(module->entries[k].name, "__version__") == 0 && module->entries[k].kind == ENTRY_VALUE)
        surface->version = module->entries[k].target;
  }
}

void surface_python_finish(struct surface *surface) {
  struct surface_python *python = surface->python;
  if (!python)
    return;
  choose_package(surface);
  if (python->files_count)
    qsort(python->files, python->files_count, sizeof *python->files, by_path);
  size_t length = surface->package ? strlen(surface->package) : 0;
  for (size_t i = 0; i < python->files_count; i++)
    if (surface->package && strncmp(python->files[i].path, surface->package, length) == 0 &&
        python->files[i].path[length] == '/')
      read_module(surface, &python->files[i]);
  surface->has[CATALOG_LAYER_PYTHON][CATALOG_CUDA] = python->modules_count > 0;
  for (size_t i = 0; i < python->modules_count; i++)
    add_module(surface, &python->modules[i]);
  if (!surface_may_go_on(surface))
    surface_fault(surface, "%s: its imports and classes lead through each other too often; names may be missing",
                  surface->package);
  take_version(surface);
  for (size_t i = 0; i < python->files_count; i++)
    free(python->files[i].bytes);
  for (size_t i = 0; i < python->modules_count; i++) {
    for (size_t k = 0; k < python->modules[i].count; k++)
      surface_class_free(&python->modules[i].entries[k]);
    free(python->modules[i].entries);
    free(python->modules[i].all);
  }
  free(python->files);
  free(python->modules);
  free(python);
  surface->python = NULL;
}
