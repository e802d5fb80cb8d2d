/* What one look over the whole tree gives: the names that any rule asks for, and which module binds the package to
 * which name, so that an alias can be followed one step across files (case contract, Python rule 4). */
#include "scanner/cache.h"
#include "scanner/crew.h"
#include "scanner/load.h"
#include "scanner/prefilter.h"
#include "scanner/python_front.h"

#include <stdatomic.h>
#include <stdlib.h>

struct python_index {
  struct arena arena, *arenas; /* while it is built; of the texts, one a worker that built it */
  unsigned arenas_count;
  const char **names; /* hash table of the catalog's Python and operator names and of its modules' last parts */
  size_t names_size;
  const char **submodules;
  size_t submodules_count, submodules_capacity;
  struct py_export *exports; /* sorted by name, then file */
  size_t exports_count, exports_capacity;
  _Atomic(struct parsed *) *parsed; /* one a file: what py_index_take gives away */
  size_t parsed_count;
  atomic_size_t parsed_size;
  /* While it is built: */
  struct python_index *found; /* arena and exports that each worker found; all of them together are the index */
  size_t *owners;             /* the files to look at */
};

struct parsed {
  struct py_source source;
  struct py_tree tree;
};

/* Parsing is dear, and a file with exports is nearly always analysed too; but the trees of a large tree of sources
 * would be most of the memory. */
#define LARGEST_PARSED ((size_t)48 << 20)

/* --- names -------------------------------------------------------------------------------------------------------- */

static size_t name_slot(const struct python_index *index, const void *text, size_t length) {
  const uint8_t *bytes = text;
  uint32_t hash = 2166136261u; /* FNV-1a */
  for (size_t i = 0; i < length; i++)
    hash = (hash ^ bytes[i]) * 16777619u;
  for (size_t at = hash & (index->names_size - 1);; at = (at + 1) & (index->names_size - 1))
    if (!index->names[at] || (strncmp(index->names[at], text, length) == 0 && index->names[at][length] == '\0'))
      return at;
}

static void add_name(struct python_index *index, const char *name) {
  if (*name)
    index->names[name_slot(index, name, strlen(name))] = name;
}

static const char *last_part(const char *path) {
  const char *dot = strrchr(path, '.');
  return dot ? dot + 1 : path;
}

bool py_index_name(const struct scan *scan, const void *text, size_t length) {
  const struct python_index *index = scan->python_index;
  return length && index->names[name_slot(index, text, length)];
}

static void collect_names(struct python_index *index, const struct catalog *catalog) {
  size_t count = 0;
  for (unsigned i = 0; i < catalog->symbols_count; i++)
    count += 1 + 2 * catalog->symbols[i].python_count + 2 * catalog->symbols[i].routes_count;
  index->names_size = 64;
  while (index->names_size < 2 * count)
    index->names_size *= 2;
  index->names = scan_alloc(NULL, index->names_size * sizeof *index->names);
  memset(index->names, 0, index->names_size * sizeof *index->names);
  for (unsigned i = 0; i < catalog->symbols_count; i++) {
    const struct catalog_symbol *symbol = &catalog->symbols[i];
    add_name(index, symbol->op_name);
    for (unsigned k = 0; k < symbol->python_count; k++) {
      add_name(index, symbol->python[k].name);
      if (!strchr(symbol->python[k].module, '.'))
        continue;
      PY_GROW(index->submodules, index->submodules_count, index->submodules_capacity);
      index->submodules[index->submodules_count++] = last_part(symbol->python[k].module);
    }
    for (unsigned k = 0; k < symbol->routes_count; k++) {
      add_name(index, symbol->routes[k].name);
      add_name(index, last_part(symbol->routes[k].module));
    }
  }
}

/* --- exports ------------------------------------------------------------------------------------------------------ */

static bool has_word(const struct source_file *file, const char *word) {
  size_t length = strlen(word);
  const uint8_t *end = file->bytes + file->size;
  for (const uint8_t *at = file->bytes; (at = memmem(at, (size_t)(end - at), word, length)) != NULL; at += length)
    if ((at == file->bytes || !py_word_byte(at[-1])) && (at + length == end || !py_word_byte(at[length])))
      return true;
  return false;
}

static const uint8_t *skip_between(const uint8_t *at, const uint8_t *end) {
  while (at < end && py_between(*at))
    at++;
  return at;
}

static const uint8_t *skip_word(const uint8_t *at, const uint8_t *end) {
  while (at < end && py_word_byte(*at))
    at++;
  return at;
}

static bool is_submodule(const struct python_index *index, const uint8_t *word, size_t length) {
  for (size_t i = 0; i < index->submodules_count; i++)
    if (strlen(index->submodules[i]) == length && memcmp(index->submodules[i], word, length) == 0)
      return true;
  return false;
}

/* Behind "from sgl_kernel": does the import take a module of the package, or everything? Most take functions. */
static bool imports_module(const struct python_index *index, const uint8_t *at, const uint8_t *end) {
  while ((at = skip_between(at, end)) < end && *at == '.')
    at = skip_word(skip_between(at + 1, end), end);
  if (end - at < 6 || memcmp(at, "import", 6) != 0)
    return false;
  at = skip_between(at + 6, end);
  bool open = at < end && *at == '(';
  for (at += open; at < end && *at != (open ? ')' : '\n');) {
    const uint8_t *word = at;
    if (*at == '*')
      return true;
    if (*at == '#')
      for (; at < end && *at != '\n'; at++)
        ;
    else if (*at == '\\') /* the line goes on */
      at = skip_between(at, end);
    else if ((at = skip_word(at, end)) == word)
      at++;
    else if (is_submodule(index, word, (size_t)(at - word)))
      return true;
  }
  return false;
}

static bool ends_with(const uint8_t *start, const uint8_t *end, const char *word) {
  size_t length = strlen(word), there = (size_t)(end - start);
  return there >= length && memcmp(end - length, word, length) == 0 &&
         (there == length || !py_word_byte(end[-1 - (ptrdiff_t)length]));
}

/* Can the package or its operator namespace, named at [at, behind), get another name there, or its own in this module?
 * Not where functions are imported from it, by the name of an operator ("ops.sgl_kernel.NAME"), in a comment or a
 * sentence, nor where a name is used that another place has bound. */
static bool may_bind(const struct python_index *index, const struct source_file *file, const uint8_t *at,
                     const uint8_t *behind) {
  const uint8_t *start = file->bytes, *end = start + file->size, *before = at;
  if ((at > start && py_word_byte(at[-1])) || (behind < end && (py_word_byte(*behind) || *behind == ':')))
    return false;
  while (before > start && py_between(before[-1])) {
    before--;
    const uint8_t *line = *before == '\n' ? memrchr(start, '\n', (size_t)(before - start)) : before;
    if (memchr(line ? line : start, '#', (size_t)(before - (line ? line : start))))
      return true; /* a comment between the words, perhaps */
  }
  if (before == start)
    return false;
  switch (before[-1]) {
  case '"':
  case '\'':
    return behind < end && (*behind == '"' || *behind == '\'' || *behind == '.');
  case '.':
    behind = skip_between(behind, end);
    return behind == end || *behind != '.';
  case ',':
  case '(':
    return true;
  default:
    return ends_with(start, before, "import") ||
           (ends_with(start, before, "from") && imports_module(index, behind, end));
  }
}

static bool binds(const struct python_index *index, const struct source_file *file, const char *name) {
  const uint8_t *at = file->bytes, *end = at + file->size;
  size_t length = strlen(name);
  for (; (at = memmem(at, (size_t)(end - at), name, length)); at += length)
    if (may_bind(index, file, at, at + length))
      return true;
  return false;
}

/* Can the file bind the package, a module of it or its operator namespace to a name of its own? */
static bool may_export(const struct scan *scan, const struct source_file *file) {
  const char *package = scan->catalog->library.package, *operators = scan->catalog->library.op_namespace;
  return binds(scan->python_index, file, package) ||
         (*operators && strcmp(operators, package) != 0 && binds(scan->python_index, file, operators));
}

/* Can anything removed be behind the path: is it a module of the catalog or above one, and no function? */
static bool leads_on(const struct scan *scan, const char *path) {
  const struct catalog *catalog = scan->catalog;
  size_t length = strlen(path);
  if (!py_is_package(scan, path))
    return true; /* the operators, a Library, a function that returns any of them */
  for (unsigned i = 0; i < catalog->symbols_count; i++)
    for (unsigned k = 0; k < catalog->symbols[i].python_count; k++) {
      const char *module = catalog->symbols[i].python[k].module;
      if (strncmp(module, path, length) == 0 && (module[length] == '\0' || module[length] == '.'))
        return true;
    }
  return false;
}

/* Takes the source and the tree out of the unit. */
static void keep(struct python_index *index, uint32_t file, struct py_unit *unit) {
  size_t size = unit->tree.count * sizeof *unit->tree.nodes + (unit->source.owned ? unit->source.size : 0);
  if (atomic_fetch_add(&index->parsed_size, size) + size > LARGEST_PARSED) {
    atomic_fetch_sub(&index->parsed_size, size);
    return;
  }
  struct parsed *parsed = scan_alloc(NULL, sizeof *parsed);
  *parsed = (struct parsed){unit->source, unit->tree};
  unit->source = (struct py_source){0};
  unit->tree = (struct py_tree){0};
  atomic_store(&index->parsed[file], parsed);
}

bool py_index_take(const struct scan *scan, const struct source_file *file, struct py_unit *unit) {
  struct python_index *index = scan->python_index;
  if (!index || !index->parsed || file->bytes != file->first_bytes)
    return false;
  struct parsed *parsed = atomic_exchange(&index->parsed[file - scan->files], NULL);
  if (!parsed)
    return false;
  unit->source = parsed->source;
  unit->tree = parsed->tree;
  unit->decoded = true;
  free(parsed);
  return true;
}

static void collect_exports(struct scan *scan, struct python_index *index, uint32_t number) {
  struct py_unit unit;
  const char *why = py_unit_open(&unit, scan, &scan->files[number]);
  for (uint32_t i = 0; !why && i < unit.scopes.stars_count; i++) {
    const char *module = unit.scopes.stars[i].module;
    if (!py_is_package(scan, module))
      continue;
    PY_GROW(index->exports, index->exports_count, index->exports_capacity);
    index->exports[index->exports_count++] = (struct py_export){
        .file = number, .name = PY_STAR, .leads_on = true, .path = arena_copy(&index->arena, module, strlen(module))};
  }
  if (!why)
    for (uint32_t i = 0; i < unit.scopes.bindings_count; i++) {
      const struct py_binding *binding = &unit.scopes.bindings[i];
      if (binding->scope != 0 || py_scope_binding(&unit.scopes, 0, binding->name) != i)
        continue;
      struct py_value value = py_chain_value(&unit, i, 0, true, 0);
      if (!py_is_owner(scan, value.path) && !py_returned(&unit, value.path))
        continue;
      const struct py_node *node = &unit.tree.nodes[binding->node];
      PY_GROW(index->exports, index->exports_count, index->exports_capacity);
      index->exports[index->exports_count++] =
          (struct py_export){.file = number,
                             .name = arena_copy(&index->arena, unit.tree.bytes + node->start, node->end - node->start),
                             .path = arena_copy(&index->arena, value.path, strlen(value.path)),
                             .leads_on = leads_on(scan, value.path),
                             .guarded = value.flags & PY_VALUE_GUARDED,
                             .assigned = value.flags & (PY_VALUE_ASSIGNED | PY_VALUE_AMBIGUOUS | PY_VALUE_VENDOR)};
    }
  if (!why)
    keep(scan->python_index, number, &unit);
  py_unit_close(&unit);
}

static int compare_exports(const void *left, const void *right) {
  const struct py_export *a = left, *b = right;
  int order = strcmp(a->name, b->name);
  return order ? order : (a->file > b->file) - (a->file < b->file);
}

struct taker {
  struct python_index *found;
  uint32_t file;
};

static void take(void *user, const struct py_export *export) {
  struct taker *taker = user;
  struct python_index *found = taker->found;
  PY_GROW(found->exports, found->exports_count, found->exports_capacity);
  found->exports[found->exports_count] = *export;
  found->exports[found->exports_count++].file = taker->file;
}

static void collect(void *user, unsigned worker, size_t number) {
  struct scan *scan = user;
  struct python_index *index = scan->python_index;
  struct source_file *file = &scan->files[index->owners[number]];
  struct taker taker = {&index->found[worker], (uint32_t)index->owners[number]};
  if (scan->cache && cache_exports(scan->cache, file, &file->exported, take, &taker))
    return;
  file->exported = load_known(file) && may_export(scan, file);
  if (file->exported)
    collect_exports(scan, taker.found, taker.file);
}

/* Until this is done no export is found: a name is followed one step only. */
static void merge(void *user, unsigned worker, size_t number) {
  struct python_index *index = ((struct scan *)user)->python_index;
  (void)worker, (void)number;
  index->arenas = scan_alloc(NULL, index->arenas_count * sizeof *index->arenas);
  for (unsigned i = 0; i < index->arenas_count; i++) {
    const struct python_index *found = &index->found[i];
    index->arenas[i] = found->arena;
    for (size_t k = 0; k < found->exports_count; k++) {
      PY_GROW(index->exports, index->exports_count, index->exports_capacity);
      index->exports[index->exports_count++] = found->exports[k];
    }
    free(found->exports);
  }
  free(index->found);
  free(index->owners);
  if (index->exports_count)
    qsort(index->exports, index->exports_count, sizeof *index->exports, compare_exports);
}

static bool has_owner(const struct source_file *file) {
  return (file->seen & SEEN_OWNER) && file->language == LANGUAGE_PYTHON;
}

unsigned python_index_plan(struct scan *scan, struct crew *crew, unsigned threads) {
  struct python_index *index = scan_alloc(NULL, sizeof *index);
  *index = (struct python_index){.arenas_count = threads};
  collect_names(index, scan->catalog);
  scan->python_index = index;
  index->parsed_count = scan->files_count;
  index->parsed = scan_alloc(NULL, scan->files_count * sizeof *index->parsed);
  for (size_t i = 0; i < scan->files_count; i++)
    atomic_init(&index->parsed[i], NULL);
  index->found = scan_alloc(NULL, threads * sizeof *index->found);
  memset(index->found, 0, threads * sizeof *index->found);
  size_t count;
  index->owners = scan_largest_first(scan, has_owner, &count);
  return crew_add(crew, merge, scan, 1, crew_add(crew, collect, scan, count, 0));
}

void python_index_free(struct scan *scan) {
  struct python_index *index = scan->python_index;
  for (size_t i = 0; i < index->parsed_count; i++) {
    struct parsed *parsed = atomic_load(&index->parsed[i]);
    if (parsed) {
      py_tree_close(&parsed->tree);
      py_source_close(&parsed->source);
    }
    free(parsed);
  }
  free(index->parsed);
  for (unsigned i = 0; i < index->arenas_count; i++)
    arena_free(&index->arenas[i]);
  free(index->arenas);
  free(index->names);
  free(index->submodules);
  free(index->exports);
  free(index);
  scan->python_index = NULL;
}

void python_index_visit(const struct scan *scan,
                        void (*visit)(void *user, const struct source_file *file, const struct py_export *export),
                        void *user) {
  const struct python_index *index = scan->python_index;
  for (size_t i = 0; i < index->exports_count; i++)
    visit(user, &scan->files[index->exports[i].file], &index->exports[i]);
}

bool py_index_exported(const struct scan *scan, const struct source_file *file) {
  const struct python_index *index = scan->python_index;
  const char *last = "";
  for (size_t i = 0; i < index->exports_count; i++) {
    const struct py_export *export = &index->exports[i];
    if (!export->leads_on || strcmp(export->name, last) == 0)
      continue;
    last = export->name;
    if (strcmp(last, PY_STAR) == 0 ? py_star_import(file) : has_word(file, last))
      return true;
  }
  return false;
}

/* --- modules ------------------------------------------------------------------------------------------------------ */

static const char *const endings[] = {".py", "/__init__.py", ".pyi", "/__init__.pyi"};

/* Is `path` the file of the module "a/b" below some folder? */
static bool is_module_file(const char *path, const char *module) {
  size_t length = strlen(path), tail = strlen(module);
  for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
    size_t ending = strlen(endings[i]);
    if (length < tail + ending || strcmp(path + length - ending, endings[i]) != 0)
      continue;
    size_t start = length - ending - tail;
    if (memcmp(path + start, module, tail) == 0 && (start == 0 || path[start - 1] == '/'))
      return true;
  }
  return false;
}

/* The length of the folder of `path` with its slash; 0 for the root. */
static size_t folder_length(const char *path, size_t length) {
  while (length && path[length - 1] != '/')
    length--;
  return length;
}

/* The file of module "a/b" in a folder; NULL when the tree has none there. */
static const struct source_file *module_file(const struct scan *scan, const char *path, size_t folder,
                                             const char *module) {
  for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
    char *name = *module ? scan_format("%.*s%s%s", (int)folder, path, module, endings[i])
                         : scan_format("%.*s%s", (int)folder, path, endings[i][0] == '/' ? endings[i] + 1 : "");
    const struct source_file *file = *name ? scan_file(scan, name) : NULL;
    free(name);
    if (file)
      return file;
  }
  return NULL;
}

/* The exports of this name, [*from, *to). */
static void same_name(const struct python_index *index, const char *name, size_t *from, size_t *to) {
  size_t low = 0, high = index->exports_count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (strcmp(index->exports[middle].name, name) < 0)
      low = middle + 1;
    else
      high = middle;
  }
  *from = *to = low;
  while (*to < index->exports_count && strcmp(index->exports[*to].name, name) == 0)
    ++*to;
}

static const struct py_export *by_module(const struct scan *scan, const char *path, const char *module, size_t from,
                                         size_t to) {
  const struct python_index *index = scan->python_index;
  unsigned dots = 0;
  while (*module == '.') {
    module++;
    dots++;
  }
  char *wanted = scan_format("%s", module);
  for (char *c = wanted; *c; c++)
    *c = *c == '.' ? '/' : *c;
  /* A relative import says in which folder; an absolute one starts from some folder above the file. */
  size_t folder = folder_length(path, strlen(path));
  for (; dots > 1 && folder; dots--)
    folder = folder_length(path, folder - 1);
  const struct source_file *file = dots > 1 ? NULL : module_file(scan, path, folder, wanted);
  while (!dots && !file && folder) {
    folder = folder_length(path, folder - 1);
    file = module_file(scan, path, folder, wanted);
  }
  const struct py_export *found = NULL;
  for (size_t i = from; i < to && !found; i++) {
    const struct source_file *candidate = &scan->files[index->exports[i].file];
    if (file ? candidate == file : !dots && *wanted && is_module_file(candidate->path, wanted))
      found = &index->exports[i];
  }
  free(wanted);
  return found;
}

const struct py_export *py_index_find(const struct scan *scan, const char *path, const char *module, const char *name) {
  const struct python_index *index = scan->python_index;
  size_t from = 0, to = 0;
  if (index->exports_count)
    same_name(index, name, &from, &to);
  return from < to ? by_module(scan, path, module, from, to) : NULL;
}
