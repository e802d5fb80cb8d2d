/* Catalog look-ups that more than one front needs. */
#include "scanner/scanner.h"
#include "scanner/word_filter.h"

#include <stdlib.h>
#include <string.h>

struct word {
  const char *text;
  size_t length;
  const struct catalog_symbol *symbol;
  bool matters; /* something of this name is gone */
};

/* Every name of the catalog, sorted, one symbol a word. */
struct rules {
  struct word *words;
  size_t words_count, words_capacity;
  struct word_filter filter;
  struct rules_file *files;
  size_t files_count, files_capacity;
  struct {
    char *python, *cxx; /* why a use is not rewritten, if it is not */
  } * reasons;          /* one a symbol */
  char *own;            /* the folder in which the tree has sglang itself; NULL: it has not */
};

static bool word_byte(uint8_t c) {
  static const bool yes[256] = {['0' ... '9'] = true, ['A' ... 'Z'] = true, ['_'] = true, ['a' ... 'z'] = true};
  return yes[c];
}

static int compare_text(const char *a, size_t a_length, const char *b, size_t b_length) {
  int order = memcmp(a, b, a_length < b_length ? a_length : b_length);
  return order ? order : (a_length > b_length) - (a_length < b_length);
}

static int compare_words(const void *left, const void *right) {
  const struct word *a = left, *b = right;
  int order = compare_text(a->text, a->length, b->text, b->length);
  if (order)
    return order;
  /* The symbol whose id is the word comes first and wins. */
  return (strcmp(a->symbol->id, a->text) != 0) - (strcmp(b->symbol->id, b->text) != 0);
}

static void add_word(struct rules *rules, const char *text, const struct catalog_symbol *symbol) {
  size_t length = strlen(text);
  if (length == 0)
    return;
  for (size_t i = 0; i < length; i++)
    if (!word_byte((uint8_t)text[i]))
      return; /* an id such as "musa:name" is never a word of a file */
  if (rules->words_count == rules->words_capacity) {
    rules->words_capacity = rules->words_capacity ? 2 * rules->words_capacity : 256;
    rules->words = scan_alloc(rules->words, rules->words_capacity * sizeof *rules->words);
  }
  rules->words[rules->words_count++] = (struct word){text, length, symbol, false};
}

static void add_file(struct rules *rules, char *path, const struct catalog_symbol *symbol) {
  if (rules->files_count == rules->files_capacity) {
    rules->files_capacity = rules->files_capacity ? 2 * rules->files_capacity : 64;
    rules->files = scan_alloc(rules->files, rules->files_capacity * sizeof *rules->files);
  }
  const char *slash = strrchr(path, '/');
  rules->files[rules->files_count++] = (struct rules_file){slash ? slash + 1 : path, path, symbol};
}

static int compare_files(const void *left, const void *right) {
  const struct rules_file *a = left, *b = right;
  int order = strcmp(a->base, b->base);
  return order ? order : strcmp(a->symbol->id, b->symbol->id);
}

/* Tests and benchmarks are looked for below the kernel's folder: "tests/test_x.py" alone may be anybody's. */
static void build_files(struct scan *scan, struct rules *rules) {
  const char *folder = scan->catalog->library.source_folder;
  for (unsigned i = 0; i < scan->catalog->symbols_count; i++) {
    const struct catalog_symbol *symbol = &scan->catalog->symbols[i];
    if (!rules_layer_removed(scan, symbol, CATALOG_LAYER_SOURCES))
      continue;
    for (unsigned k = 0; k < symbol->sources_count; k++)
      add_file(rules, scan_format("%s", symbol->sources[k]), symbol);
    for (unsigned k = 0; *folder && k < symbol->tests_count; k++)
      add_file(rules, scan_format("%s/%s", folder, symbol->tests[k]), symbol);
    for (unsigned k = 0; *folder && k < symbol->benchmarks_count; k++)
      add_file(rules, scan_format("%s/%s", folder, symbol->benchmarks[k]), symbol);
  }
  if (rules->files_count)
    qsort(rules->files, rules->files_count, sizeof *rules->files, compare_files);
}

const struct rules_file *rules_files(const struct scan *scan, const char *base, size_t length, size_t *count) {
  const struct rules *rules = scan->rules;
  size_t low = 0, high = rules->files_count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (compare_text(rules->files[middle].base, strlen(rules->files[middle].base), base, length) < 0)
      low = middle + 1;
    else
      high = middle;
  }
  for (*count = 0; low + *count < rules->files_count; (*count)++) {
    const char *row = rules->files[low + *count].base;
    if (compare_text(row, strlen(row), base, length) != 0)
      break;
  }
  return *count ? &rules->files[low] : NULL;
}

/* CUDA decides; a layer that CUDA never had (a vendor's own name) goes by its own platform. */
static bool layer_removed(const struct scan *scan, const struct catalog_symbol *symbol, enum catalog_layer layer) {
  bool cuda = false;
  for (unsigned i = 0; i < symbol->removals_count; i++)
    cuda = cuda || (symbol->removals[i].layer == layer && symbol->removals[i].platform == CATALOG_CUDA);
  if (cuda)
    return catalog_is_removed(symbol, layer, CATALOG_CUDA, scan->options.kernel);
  for (unsigned i = 0; i < symbol->removals_count; i++)
    if (symbol->removals[i].layer == layer &&
        catalog_is_removed(symbol, layer, symbol->removals[i].platform, scan->options.kernel))
      return true;
  return false;
}

bool rules_layer_removed(const struct scan *scan, const struct catalog_symbol *symbol, enum catalog_layer layer) {
  return layer_removed(scan, symbol, layer);
}

static bool route_passed(const struct scan *scan, const struct catalog_route *route) {
  return route->kind == CATALOG_ROUTE_SGLANG && route->until && scan->options.sglang_release &&
         catalog_version_compare(scan->options.sglang_release, route->until) >= 0;
}

const char *rules_own(const struct scan *scan) {
  return scan->rules->own;
}

/* Has the tree the module, as a part of its own sglang? */
static bool has_itself(const struct scan *scan, const struct catalog_route *route) {
  return scan->rules->own && rules_own_module(scan->rules->own, route->module);
}

bool rules_route_dropped(const struct scan *scan, const struct catalog_symbol *symbol,
                         const struct catalog_route *route) {
  if (!route_passed(scan, route) || has_itself(scan, route))
    return false;
  for (unsigned i = 0; i < symbol->routes_count; i++) {
    const struct catalog_route *other = &symbol->routes[i]; /* of another era, with another signature */
    if (other->kind == CATALOG_ROUTE_SGLANG && !route_passed(scan, other) &&
        catalog_version_compare(scan->options.sglang_release, other->from) >= 0 &&
        strcmp(other->module, route->module) == 0 && strcmp(other->name, route->name) == 0)
      return false;
  }
  return true;
}

bool rules_module_dropped(const struct scan *scan, const struct catalog_symbol *symbol,
                          const struct catalog_route *route, const char *parent) {
  size_t length = strlen(parent);
  if (!rules_route_dropped(scan, symbol, route))
    return false;
  for (unsigned i = 0; i < symbol->routes_count; i++) {
    const struct catalog_route *other = &symbol->routes[i];
    if (other->kind == CATALOG_ROUTE_SGLANG && !route_passed(scan, other) &&
        catalog_version_compare(scan->options.sglang_release, other->from) >= 0 &&
        strncmp(other->module, parent, length) == 0 && other->module[length] == '.' &&
        strcmp(other->name, route->name) == 0)
      return false; /* the package still has the function below it, and most give it out themselves */
  }
  return true;
}

/* A module path that the chosen sglang release has dropped: the function in it, or the module as a name of its parent.
 */
static bool dropped_route(const struct scan *scan, const struct catalog_symbol *symbol, const char *module,
                          const char *name) {
  for (unsigned i = 0; i < symbol->routes_count; i++) {
    const struct catalog_route *route = &symbol->routes[i];
    if (strcmp(route->module, module) == 0 && strcmp(route->name, name) == 0 &&
        rules_route_dropped(scan, symbol, route))
      return true;
    size_t parent = strlen(module);
    if (strncmp(route->module, module, parent) == 0 && route->module[parent] == '.' &&
        strcmp(route->module + parent + 1, name) == 0 && strcmp(route->name, name) == 0 &&
        rules_module_dropped(scan, symbol, route, module))
      return true;
  }
  return false;
}

const struct catalog_symbol *rules_python_removed(const struct scan *scan, const char *module, const char *name) {
  for (unsigned i = 0; i < scan->catalog->symbols_count; i++) {
    const struct catalog_symbol *symbol = &scan->catalog->symbols[i];
    for (unsigned k = 0; k < symbol->python_count; k++)
      if (strcmp(symbol->python[k].name, name) == 0 && strcmp(symbol->python[k].module, module) == 0 &&
          layer_removed(scan, symbol, CATALOG_LAYER_PYTHON))
        return symbol;
    if (dropped_route(scan, symbol, module, name))
      return symbol;
  }
  return NULL;
}

const struct catalog_symbol *rules_operator_removed(const struct scan *scan, const char *op_name) {
  if (!*op_name)
    return NULL;
  for (unsigned i = 0; i < scan->catalog->symbols_count; i++) {
    const struct catalog_symbol *symbol = &scan->catalog->symbols[i];
    if (strcmp(symbol->op_name, op_name) == 0 && layer_removed(scan, symbol, CATALOG_LAYER_OPERATOR))
      return symbol;
  }
  return NULL;
}

/* --- targets ------------------------------------------------------------------------------------------------------ */

static const struct catalog_route *route_of(const struct catalog_symbol *symbol, enum catalog_route_kind kind) {
  for (unsigned i = 0; i < symbol->routes_count; i++)
    if (symbol->routes[i].kind == kind)
      return &symbol->routes[i];
  return NULL;
}

static const struct catalog_route *python_route(const struct scan *scan, const struct catalog_symbol *symbol) {
  return scan->options.sglang_release ? catalog_sglang_route(symbol, scan->options.sglang_release)
                                      : catalog_jit_route(symbol);
}

/* What a person needs to know of a route that is no drop-in; NULL when there is no such route either. */
static char *near_route(const struct catalog_symbol *symbol, const struct catalog_route *route, const char *separator) {
  if (route)
    return *route->note
               ? scan_format("%s%s%s replaces it, but: %s", route->module, separator, route->name, route->note)
               : scan_format("%s%s%s replaces it, but is not known to take the same calls: compare them and change it "
                             "by hand",
                             route->module, separator, route->name);
  route = route_of(symbol, CATALOG_ROUTE_NONE);
  return route ? scan_format("there is no replacement: %s", route->note) : NULL;
}

/* A message goes on behind the catalog's note. */
static char *without_stop(char *text) {
  size_t length = strlen(text);
  if (length && text[length - 1] == '.')
    text[length - 1] = '\0';
  return text;
}

/* The target is in a release of sglang, and the tree is another one. NULL: it is not. */
static char *own_why(const struct scan *scan, const struct catalog_symbol *symbol) {
  const struct catalog_route *route = python_route(scan, symbol), *other = NULL;
  if (!scan->rules->own || !route || !route->python || has_itself(scan, route))
    return NULL;
  for (unsigned i = 0; i < symbol->routes_count && !other; i++)
    if (symbol->routes[i].kind == CATALOG_ROUTE_SGLANG && symbol->routes[i].python && symbol->routes[i].from &&
        has_itself(scan, &symbol->routes[i]))
      other = &symbol->routes[i];
  return scan_format("this tree is sglang itself and has no %s%s%s%s%s", route->module, other ? ", but " : "",
                     other ? other->module : "", other ? ": --to sglang@" : "", other ? other->from : "");
}

/* Why a Python import of the symbol is not rewritten, and what to do. */
static char *python_why(const struct scan *scan, const struct catalog_symbol *symbol) {
  char *why = own_why(scan, symbol);
  if (!why)
    why = near_route(symbol, python_route(scan, symbol), ".");
  const struct catalog_route *library = route_of(symbol, CATALOG_ROUTE_LIBRARY);
  if (!why && library)
    why = scan_format("%s.%s is the nearest: %s", library->module, library->name,
                      *library->note ? library->note : "compare the calls and change it by hand");
  if (!why)
    why = scan_format("%s", scan->options.sglang_release ? "the chosen sglang release has no replacement for it"
                                                         : "sgl_kernel_jit has no kernel for it");
  return without_stop(why);
}

static char *cxx_why(const struct scan *scan, const struct catalog_symbol *symbol) {
  if (scan->options.sglang_release)
    return scan_format("sglang has no C++ replacement; --to jit has one for some functions");
  char *why = near_route(symbol, catalog_jit_route(symbol), "::");
  return why ? without_stop(why) : scan_format("sgl_kernel_jit has no kernel for it");
}

const struct catalog_route *rules_python_target(const struct scan *scan, const struct catalog_symbol *symbol,
                                                const char **why) {
  const struct catalog_route *route = python_route(scan, symbol);
  if (route && route->python && !(scan->options.sglang_release && scan->rules->own && !has_itself(scan, route)))
    return route;
  *why = scan->rules->reasons[symbol - scan->catalog->symbols].python;
  return NULL;
}

const struct catalog_route *rules_cxx_target(const struct scan *scan, const struct catalog_symbol *symbol,
                                             const char **why) {
  const struct catalog_route *route = scan->options.sglang_release ? NULL : catalog_jit_route(symbol);
  if (route && route->cxx)
    return route;
  *why = scan->rules->reasons[symbol - scan->catalog->symbols].cxx;
  return NULL;
}

char *rules_left(const struct scan *scan, const struct catalog_symbol *symbol, enum catalog_layer layer,
                 enum catalog_platform platform, const char *name) {
  const struct catalog_removal *row = NULL;
  for (unsigned i = 0; i < symbol->removals_count; i++) {
    const struct catalog_removal *removal = &symbol->removals[i];
    if (removal->layer == layer && removal->first_without &&
        (!row || removal->platform == platform || (removal->platform == CATALOG_CUDA && row->platform != platform)))
      row = removal;
  }
  return scan_format("%s%s %s %s%s%s", layer == CATALOG_LAYER_OPERATOR ? "The operator " : "", name,
                     row ? "left" : "is no longer in", scan->catalog->library.package, row ? " in " : "",
                     row ? row->first_without : "");
}

#define MOVED " is no longer in "

char *rules_moved(const struct catalog_symbol *symbol, const char *module) {
  return scan_format("%s" MOVED "%s", symbol->id, module);
}

bool rules_only_moved(const struct finding *finding) {
  static const char sglang[] = MOVED "sglang.";
  size_t length = strlen(finding->symbol->id);
  return strncmp(finding->message, finding->symbol->id, length) == 0 &&
         strncmp(finding->message + length, sglang, sizeof sglang - 1) == 0;
}

void rules_build(struct scan *scan) {
  struct rules *rules = scan_alloc(NULL, sizeof *rules);
  *rules = (struct rules){.own = rules_own_folder(scan)};
  scan->rules = rules;
  for (unsigned i = 0; i < scan->catalog->symbols_count; i++) {
    const struct catalog_symbol *symbol = &scan->catalog->symbols[i];
    add_word(rules, symbol->id, symbol);
    for (unsigned k = 0; k < symbol->python_count; k++)
      add_word(rules, symbol->python[k].name, symbol);
    add_word(rules, symbol->op_name, symbol);
    add_word(rules, symbol->cxx.name, symbol);
    for (unsigned k = 0; k < symbol->cxx.templates_count; k++)
      add_word(rules, symbol->cxx.templates[k], symbol);
  }
  if (rules->words_count)
    qsort(rules->words, rules->words_count, sizeof *rules->words, compare_words);
  size_t kept = 0;
  for (size_t i = 0; i < rules->words_count; i++) {
    const struct word *word = &rules->words[i];
    bool matters = rules_symbol_matters(scan, word->symbol);
    if (kept && strcmp(rules->words[kept - 1].text, word->text) == 0) {
      rules->words[kept - 1].matters = rules->words[kept - 1].matters || matters;
      continue;
    }
    rules->words[kept] = *word;
    rules->words[kept++].matters = matters;
    word_filter_add(&rules->filter, word->text, word->length);
  }
  rules->words_count = kept;
  build_files(scan, rules);
  rules->reasons = scan_alloc(NULL, (scan->catalog->symbols_count + 1) * sizeof *rules->reasons);
  for (unsigned i = 0; i < scan->catalog->symbols_count; i++) {
    rules->reasons[i].python = python_why(scan, &scan->catalog->symbols[i]);
    rules->reasons[i].cxx = cxx_why(scan, &scan->catalog->symbols[i]);
  }
}

void rules_free(struct scan *scan) {
  if (scan->rules) {
    for (size_t i = 0; i < scan->rules->files_count; i++)
      free(scan->rules->files[i].path);
    for (unsigned i = 0; i < scan->catalog->symbols_count; i++) {
      free(scan->rules->reasons[i].python);
      free(scan->rules->reasons[i].cxx);
    }
    free(scan->rules->reasons);
    free(scan->rules->own);
    free(scan->rules->files);
    free(scan->rules->words);
  }
  free(scan->rules);
  scan->rules = NULL;
}

bool rules_any_removed(const struct scan *scan, const struct catalog_symbol *symbol) {
  return layer_removed(scan, symbol, CATALOG_LAYER_PYTHON) || layer_removed(scan, symbol, CATALOG_LAYER_OPERATOR) ||
         layer_removed(scan, symbol, CATALOG_LAYER_CXX) || layer_removed(scan, symbol, CATALOG_LAYER_SOURCES);
}

bool rules_symbol_matters(const struct scan *scan, const struct catalog_symbol *symbol) {
  for (unsigned i = 0; i < symbol->routes_count; i++)
    if (rules_route_dropped(scan, symbol, &symbol->routes[i]))
      return true;
  return rules_any_removed(scan, symbol);
}

bool rules_word_removed(const struct scan *scan, const struct catalog_symbol *symbol, const uint8_t *word,
                        size_t length) {
  for (unsigned i = 0; i < symbol->python_count; i++) {
    const struct catalog_python *python = &symbol->python[i];
    if (strcmp(python->module, scan->catalog->library.package) == 0 && strlen(python->name) == length &&
        memcmp(python->name, word, length) == 0)
      return layer_removed(scan, symbol, CATALOG_LAYER_PYTHON);
  }
  return symbol->python_count == 0 && !*symbol->op_name && layer_removed(scan, symbol, CATALOG_LAYER_CXX);
}

static const struct word *find_word(const struct rules *rules, const char *text, size_t length) {
  if (!word_filter_may(&rules->filter, text, length))
    return NULL;
  size_t low = 0, high = rules->words_count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    const struct word *word = &rules->words[middle];
    int order = compare_text(text, length, word->text, word->length);
    if (order == 0)
      return word;
    if (order < 0)
      high = middle;
    else
      low = middle + 1;
  }
  return NULL;
}

bool rules_word_matters(const struct scan *scan, const uint8_t *text, size_t length) {
  const struct word *word = find_word(scan->rules, (const char *)text, length);
  return word && word->matters;
}

size_t rules_next_name(const struct scan *scan, const uint8_t *bytes, size_t size, size_t from,
                       const struct catalog_symbol **symbol, size_t *length) {
  size_t at = from;
  /* A search that starts inside a word does not see the rest of it as a word. */
  while (at > 0 && at < size && word_byte(bytes[at - 1]) && word_byte(bytes[at]))
    at++;
  while (at < size) {
    if (!word_byte(bytes[at])) {
      at++;
      continue;
    }
    size_t end = at + 1;
    while (end < size && word_byte(bytes[end]))
      end++;
    const struct word *word = find_word(scan->rules, (const char *)bytes + at, end - at);
    if (word) {
      *symbol = word->symbol;
      *length = word->length;
      return at;
    }
    at = end;
  }
  return SIZE_MAX;
}

void rules_position(const uint8_t *bytes, size_t size, size_t offset, uint32_t *line, uint32_t *column) {
  if (offset > size)
    offset = size;
  size_t start = 0;
  uint32_t count = 1;
  const uint8_t *newline;
  while (start < offset && (newline = memchr(bytes + start, '\n', offset - start)) != NULL) {
    start = (size_t)(newline - bytes) + 1;
    count++;
  }
  *line = count;
  *column = (uint32_t)(offset - start) + 1;
}
