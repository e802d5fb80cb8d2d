/* One name in a text: who owns it, and is it gone from the chosen release. */
#include "scanner/text.h"

#include <stdlib.h>
#include <string.h>

bool text_word_byte(uint8_t c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

size_t text_line_start(const uint8_t *bytes, size_t at) {
  size_t least = at > 1000 ? at - 1000 : 0;
  while (at > least && bytes[at - 1] != '\n')
    at--;
  return at;
}

size_t text_line_end(const uint8_t *bytes, size_t size, size_t at) {
  const uint8_t *newline = at < size ? memchr(bytes + at, '\n', size - at) : NULL;
  return newline ? (size_t)(newline - bytes) : size;
}

void text_position(const struct text_view *view, size_t offset, uint32_t *line, uint32_t *column) {
  struct text_place *place = view->place;
  if (offset < place->start)
    *place = (struct text_place){0, 0};
  rules_position(view->bytes + place->start, view->size - place->start, offset - place->start, line, column);
  *line += place->lines;
  *place = (struct text_place){offset + 1 - *column, *line - 1};
}

void text_find(const struct text_view *view, size_t offset, const struct catalog_symbol *symbol, enum verdict verdict,
               enum evidence evidence, const char *what) {
  uint32_t line, column;
  text_position(view, offset, &line, &column);
  if (view->lines) {
    line = view->lines[line - 1];
    column++; /* the plus sign */
  }
  if (!line)
    return;
  enum catalog_layer layer = evidence == EVIDENCE_BUILD ? CATALOG_LAYER_SOURCES : CATALOG_LAYER_PYTHON;
  while (layer < CATALOG_LAYER_SOURCES && !rules_layer_removed(view->scan, symbol, layer))
    layer++;
  char *left = rules_left(view->scan, symbol, layer, CATALOG_CUDA, symbol->id);
  result_find(view->result, line, column, symbol, verdict, evidence,
              verdict == VERDICT_MENTION ? LEVEL_NOTE : LEVEL_ERROR, "%s; %s%s", left, what,
              verdict == VERDICT_MENTION ? ", for information" : ": change it by hand");
  free(left);
}

static bool same(const uint8_t *bytes, size_t length, const char *text) {
  return strlen(text) == length && memcmp(bytes, text, length) == 0;
}

/* "sgl_kernel" or "sgl_kernel.sub". */
static bool in_package(const struct text_view *view, const uint8_t *module, size_t length) {
  const char *package = view->scan->catalog->library.package;
  size_t size = strlen(package);
  return length >= size && memcmp(module, package, size) == 0 && (length == size || module[size] == '.');
}

/* "from MODULE import" between the start of the line and the name, in the same statement. */
static enum text_owner import_owner(const struct text_view *view, size_t at, size_t *module, size_t *module_length) {
  const uint8_t *bytes = view->bytes;
  size_t start = text_line_start(bytes, at);
  for (size_t i = at; i-- > start;) {
    if (bytes[i] == ';')
      break;
    if (bytes[i] != 'f' || at - i < 5 || memcmp(bytes + i, "from", 4) != 0 ||
        (i > start && text_word_byte(bytes[i - 1])) || (bytes[i + 4] != ' ' && bytes[i + 4] != '\t'))
      continue;
    size_t k = i + 4;
    while (k < at && (bytes[k] == ' ' || bytes[k] == '\t'))
      k++;
    size_t first = k;
    while (k < at && (text_word_byte(bytes[k]) || bytes[k] == '.'))
      k++;
    *module = first;
    *module_length = k - first;
    while (k < at && (bytes[k] == ' ' || bytes[k] == '\t'))
      k++;
    if (at - k < 7 || memcmp(bytes + k, "import", 6) != 0 || text_word_byte(bytes[k + 6]))
      continue; /* prose */
    return in_package(view, bytes + first, *module_length) ? OWNER_IMPORT : OWNER_OTHER;
  }
  return OWNER_NONE;
}

/* NAME.py, NAME.cu: a file of that name, not the function. */
static bool file_name(const uint8_t *bytes, size_t size, size_t end) {
  static const char *const endings[] = {"py",  "cu", "cuh", "h",  "hpp", "cc", "cpp",
                                        "cxx", "so", "o",   "md", "rst", "txt"};
  if (end >= size || bytes[end] != '.')
    return false;
  size_t stop = end + 1;
  while (stop < size && text_word_byte(bytes[stop]))
    stop++;
  for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
    if (same(bytes + end + 1, stop - end - 1, endings[i]))
      return true;
  return false;
}

bool text_argument_comment(const uint8_t *bytes, size_t size, size_t start, size_t end) {
  return start >= 2 && bytes[start - 2] == '/' && bytes[start - 1] == '*' && size - end >= 3 && bytes[end] == '=' &&
         bytes[end + 1] == '*' && bytes[end + 2] == '/';
}

/* The end of a namespace of that name: "}  // namespace NAME". */
static bool namespace_before(const uint8_t *bytes, size_t at) {
  while (at > 0 && bytes[at - 1] == ' ')
    at--;
  return at >= 9 && memcmp(bytes + at - 9, "namespace", 9) == 0;
}

/* Who stands directly before the name; module is set for the package's. */
static enum text_owner owner_of(const struct text_view *view, size_t at, size_t length, size_t *start, size_t *module,
                                size_t *module_length) {
  const uint8_t *bytes = view->bytes;
  const struct catalog_library *library = &view->scan->catalog->library;
  *start = at;
  size_t end_at = at + length;
  if (file_name(bytes, view->size, end_at) || (end_at < view->size && bytes[end_at] == '/') ||
      text_argument_comment(bytes, view->size, at, end_at) || namespace_before(bytes, at))
    return OWNER_OTHER;
  if (at == 0)
    return OWNER_NONE;
  uint8_t before = bytes[at - 1];
  if (before == '/' || before == '$')
    return OWNER_OTHER;
  if (before == '-' && at > 1 && (bytes[at - 2] == '-' || text_word_byte(bytes[at - 2])))
    return OWNER_OTHER; /* an option, or part of a longer label */
  if (before == '>' && at > 1 && bytes[at - 2] == '-')
    return OWNER_OTHER;
  if (before != '.' && before != ':')
    return import_owner(view, at, module, module_length);
  bool scoped = before == ':' && at > 1 && bytes[at - 2] == ':';
  size_t end = scoped ? at - 2 : at - 1, first = end;
  while (first > 0 && (text_word_byte(bytes[first - 1]) || (!scoped && bytes[first - 1] == '.')))
    first--;
  bool path = first > 0 && (bytes[first - 1] == '/' || bytes[first - 1] == '-');
  *start = first;
  if (first == end)
    return before == '.' ? OWNER_OTHER : OWNER_NONE; /* "::NAME" is the global one, ": NAME" is prose */
  if (scoped)
    return !path && same(bytes + first, end - first, library->op_namespace) ? OWNER_OPERATOR : OWNER_OTHER;
  if (!path && end - first > 10 && memcmp(bytes + first, "torch.ops.", 10) == 0)
    return same(bytes + first + 10, end - first - 10, library->op_namespace) ? OWNER_OPERATOR : OWNER_OTHER;
  *module = first;
  *module_length = end - first;
  return !path && in_package(view, bytes + first, end - first) ? OWNER_PACKAGE : OWNER_OTHER;
}

static bool is_template(const struct catalog_symbol *symbol, const char *word) {
  for (unsigned i = 0; i < symbol->cxx.templates_count; i++)
    if (strcmp(symbol->cxx.templates[i], word) == 0)
      return true;
  return false;
}

/* The removed symbol that the name means, or NULL. */
static const struct catalog_symbol *removed(const struct text_view *view, const struct text_name *name, size_t module,
                                            size_t module_length) {
  const struct scan *scan = view->scan;
  char *word = scan_format("%.*s", (int)name->length, (const char *)view->bytes + name->at);
  const struct catalog_symbol *symbol = NULL;
  if (name->owner == OWNER_OPERATOR) {
    symbol = rules_operator_removed(scan, word);
  } else if (name->owner == OWNER_NONE) {
    bool gone = view->kind == TEXT_CXX || is_template(name->symbol, word)
                    ? rules_layer_removed(scan, name->symbol, CATALOG_LAYER_CXX)
                    : rules_word_removed(scan, name->symbol, view->bytes + name->at, name->length);
    symbol = gone ? name->symbol : NULL;
  } else {
    char *from = scan_format("%.*s", (int)module_length, (const char *)view->bytes + module);
    symbol = rules_python_removed(scan, from, word);
    free(from);
  }
  free(word);
  return symbol;
}

/* The exact old mangled name as a word: a linker option, an export list, assembly. */
static size_t next_mangled(const struct text_view *view, size_t from, const struct catalog_symbol **symbol,
                           size_t *length) {
  const struct catalog *catalog = view->scan->catalog;
  const uint8_t *at = view->bytes + from, *end = view->bytes + view->size;
  while (at < end && (at = memmem(at, (size_t)(end - at), "_Z", 2))) {
    size_t offset = (size_t)(at - view->bytes), stop = offset;
    while (stop < view->size && text_word_byte(view->bytes[stop]))
      stop++;
    for (unsigned i = 0; i < catalog->symbols_count && (offset == 0 || !text_word_byte(at[-1])); i++)
      if (*catalog->symbols[i].cxx.mangled && same(at, stop - offset, catalog->symbols[i].cxx.mangled) &&
          rules_layer_removed(view->scan, &catalog->symbols[i], CATALOG_LAYER_CXX)) {
        *symbol = &catalog->symbols[i];
        *length = stop - offset;
        return offset;
      }
    at = view->bytes + stop;
  }
  return SIZE_MAX;
}

bool text_next(const struct text_view *view, size_t from, struct text_name *name) {
  while (from < view->size) {
    const struct catalog_symbol *symbol;
    size_t length, module = 0, module_length = 0;
    size_t at = rules_next_name(view->scan, view->bytes, view->size, from, &symbol, &length);
    size_t limit = at == SIZE_MAX ? view->size : at;
    struct text_view part = *view;
    part.size = limit;
    const struct catalog_symbol *mangled;
    size_t mangled_length, mangled_at = next_mangled(&part, from, &mangled, &mangled_length);
    if (mangled_at != SIZE_MAX) {
      /* As good as an owner: nobody else has this name. */
      *name = (struct text_name){mangled_at, mangled_length, mangled, OWNER_OPERATOR, mangled_at};
      return true;
    }
    if (at == SIZE_MAX)
      return false;
    *name = (struct text_name){.at = at, .length = length, .symbol = symbol};
    name->owner = owner_of(view, at, length, &name->start, &module, &module_length);
    if (name->owner != OWNER_OTHER && (name->symbol = removed(view, name, module, module_length)))
      return true;
    from = at + length;
  }
  return false;
}
