/* Uses that text alone shows: a program in a string or a script, and a file that Python cannot parse or decode. */
#include "scanner/ignore.h"
#include "scanner/python_front.h"

#include <stdlib.h>

/* --- words -------------------------------------------------------------------------------------------------------- */

struct cursor {
  const uint8_t *bytes;
  size_t size, at;
};

static size_t word_end(const struct cursor *cursor, size_t at) {
  while (at < cursor->size && py_word_byte(cursor->bytes[at]))
    at++;
  return at;
}

static bool digit(uint8_t c) {
  return c >= '0' && c <= '9';
}

/* Blanks, and a backslash at the end of a line with them. */
static void skip_blanks(struct cursor *cursor) {
  while (cursor->at < cursor->size) {
    const uint8_t *c = cursor->bytes + cursor->at;
    size_t left = cursor->size - cursor->at;
    if (py_blank(*c))
      cursor->at++;
    else if (*c == '\\' && left > 1 && c[1] == '\n')
      cursor->at += 2;
    else if (*c == '\\' && left > 2 && c[1] == '\r' && c[2] == '\n')
      cursor->at += 3;
    else
      return;
  }
}

/* Also line breaks and comments: inside parentheses. */
static void skip_lines(struct cursor *cursor) {
  for (;;) {
    skip_blanks(cursor);
    if (cursor->at < cursor->size && (cursor->bytes[cursor->at] == '\n' || cursor->bytes[cursor->at] == '\r'))
      cursor->at++;
    else if (cursor->at < cursor->size && cursor->bytes[cursor->at] == '#')
      while (cursor->at < cursor->size && cursor->bytes[cursor->at] != '\n')
        cursor->at++;
    else
      return;
  }
}

/* An identifier at the cursor; false when there is none. */
static bool take_word(struct cursor *cursor, size_t *start, size_t *length) {
  size_t end = word_end(cursor, cursor->at);
  if (end == cursor->at || digit(cursor->bytes[cursor->at]))
    return false;
  *start = cursor->at;
  *length = end - cursor->at;
  cursor->at = end;
  return true;
}

static bool word_is(const struct cursor *cursor, size_t start, size_t length, const char *text) {
  return strlen(text) == length && memcmp(cursor->bytes + start, text, length) == 0;
}

static bool take_keyword(struct cursor *cursor, const char *text) {
  struct cursor next = *cursor;
  size_t start, length;
  if (!take_word(&next, &start, &length) || !word_is(&next, start, length, text))
    return false;
  *cursor = next;
  return true;
}

/* "a.b.c" as one text, with blanks around the dots taken out. */
static bool take_path(struct cursor *cursor, struct py_buffer *path) {
  size_t start, length;
  path->size = 0;
  if (!take_word(cursor, &start, &length))
    return false;
  py_buffer_add(path, cursor->bytes + start, length);
  for (;;) {
    struct cursor next = *cursor;
    skip_blanks(&next);
    if (next.at == next.size || next.bytes[next.at] != '.')
      return true;
    next.at++;
    skip_blanks(&next);
    if (!take_word(&next, &start, &length))
      return true;
    py_buffer_puts(path, ".");
    py_buffer_add(path, next.bytes + start, length);
    *cursor = next;
  }
}

/* --- programs ----------------------------------------------------------------------------------------------------- */

struct alias {
  char *name, *path;
  struct alias *next;
};

struct finder {
  const struct scan *scan;
  struct cursor cursor;
  struct alias *aliases;
  bool imported; /* the text imports the package */
  void (*found)(void *user, size_t offset, const struct catalog_symbol *symbol, enum py_text_use use);
  void *user;
};

static void add_alias(struct finder *finder, size_t start, size_t length, const char *path) {
  struct alias *alias = scan_alloc(NULL, sizeof *alias);
  *alias = (struct alias){scan_format("%.*s", (int)length, finder->cursor.bytes + start), scan_format("%s", path),
                          finder->aliases};
  finder->aliases = alias;
}

static const char *alias_path(const struct finder *finder, size_t start, size_t length) {
  for (const struct alias *alias = finder->aliases; alias; alias = alias->next)
    if (word_is(&finder->cursor, start, length, alias->name))
      return alias->path;
  return NULL;
}

/* Behind "from". */
static void find_from_import(struct finder *finder) {
  struct cursor *cursor = &finder->cursor;
  struct py_buffer module = {0}, name = {0};
  skip_blanks(cursor);
  if (take_path(cursor, &module)) {
    skip_blanks(cursor);
    bool ours = py_is_package(finder->scan, module.text) || strncmp(module.text, "sglang.", 7) == 0;
    bool operators = py_is_operators(finder->scan, module.text);
    if ((ours || operators) && take_keyword(cursor, "import")) {
      skip_blanks(cursor);
      bool open = cursor->at < cursor->size && cursor->bytes[cursor->at] == '(';
      cursor->at += open;
      size_t start, length, alias, alias_length;
      for (;;) {
        open ? skip_lines(cursor) : skip_blanks(cursor);
        if (!take_word(cursor, &start, &length))
          break;
        name.size = 0;
        py_buffer_add(&name, cursor->bytes + start, length);
        const struct catalog_symbol *symbol = operators ? rules_operator_removed(finder->scan, name.text)
                                                        : rules_python_removed(finder->scan, module.text, name.text);
        if (symbol)
          finder->found(finder->user, start, symbol, PY_TEXT_IMPORT);
        open ? skip_lines(cursor) : skip_blanks(cursor);
        alias = start;
        alias_length = length;
        if (take_keyword(cursor, "as")) {
          open ? skip_lines(cursor) : skip_blanks(cursor);
          if (!take_word(cursor, &alias, &alias_length))
            break;
          open ? skip_lines(cursor) : skip_blanks(cursor);
        }
        if (!symbol && ours) {
          char *path = scan_format("%s.%s", module.text, name.text);
          add_alias(finder, alias, alias_length, path);
          free(path);
        }
        if (cursor->at == cursor->size || cursor->bytes[cursor->at] != ',')
          break;
        cursor->at++;
      }
    }
  }
  py_buffer_free(&module);
  py_buffer_free(&name);
}

/* Behind "import". */
static void find_import(struct finder *finder) {
  struct cursor *cursor = &finder->cursor;
  struct py_buffer path = {0};
  for (;;) {
    skip_blanks(cursor);
    if (!take_path(cursor, &path))
      break;
    size_t alias, length;
    skip_blanks(cursor);
    if (take_keyword(cursor, "as")) {
      skip_blanks(cursor);
      if (!take_word(cursor, &alias, &length))
        break;
      if (py_is_package(finder->scan, path.text) || strcmp(path.text, "torch") == 0)
        add_alias(finder, alias, length, path.text);
      skip_blanks(cursor);
    }
    if (cursor->at == cursor->size || cursor->bytes[cursor->at] != ',')
      break;
    cursor->at++;
  }
  py_buffer_free(&path);
}

/* A dotted expression that starts with the package or an alias of it. */
static void find_qualified(struct finder *finder, size_t start, size_t length) {
  struct cursor *cursor = &finder->cursor;
  const char *known = alias_path(finder, start, length);
  bool package = !known && word_is(cursor, start, length, finder->scan->catalog->library.package);
  bool torch = !known && (word_is(cursor, start, length, "torch") || word_is(cursor, start, length, "ops"));
  if (!known && !package && !torch && !word_is(cursor, start, length, "sglang"))
    return;
  struct py_buffer path = {0};
  if (known)
    py_buffer_puts(&path, known);
  else if (word_is(cursor, start, length, "ops"))
    py_buffer_puts(&path, "torch.ops");
  else
    py_buffer_add(&path, cursor->bytes + start, length);
  bool import = known || (package && finder->imported) || torch;
  for (;;) {
    struct cursor next = *cursor;
    size_t name, name_length;
    skip_blanks(&next);
    if (next.at == next.size || next.bytes[next.at] != '.')
      break;
    next.at++;
    skip_blanks(&next);
    if (!take_word(&next, &name, &name_length))
      break;
    *cursor = next;
    char *text = scan_format("%.*s", (int)name_length, next.bytes + name);
    const struct catalog_symbol *symbol = py_is_operators(finder->scan, path.text)
                                              ? rules_operator_removed(finder->scan, text)
                                              : rules_python_removed(finder->scan, path.text, text);
    free(text);
    if (symbol) {
      finder->found(finder->user, name, symbol, import ? PY_TEXT_QUALIFIED : PY_TEXT_BARE);
      break;
    }
    py_buffer_puts(&path, ".");
    py_buffer_add(&path, next.bytes + name, name_length);
  }
  py_buffer_free(&path);
}

void py_find_uses(const struct scan *scan, const uint8_t *bytes, size_t size,
                  void (*found)(void *user, size_t offset, const struct catalog_symbol *symbol, enum py_text_use use),
                  void *user) {
  struct finder finder = {.scan = scan, .cursor = {bytes, size, 0}, .found = found, .user = user};
  char *import = scan_format("import %s", scan->catalog->library.package);
  finder.imported = memmem(bytes, size, import, strlen(import)) != NULL;
  free(import);
  struct cursor *cursor = &finder.cursor;
  while (cursor->at < size) {
    uint8_t c = bytes[cursor->at], before = cursor->at ? bytes[cursor->at - 1] : '\n';
    if (c == '#' && (before == '\n' || py_blank(before))) {
      while (cursor->at < size && bytes[cursor->at] != '\n')
        cursor->at++;
      continue;
    }
    size_t start, length;
    if (!py_word_byte(c)) {
      cursor->at++;
    } else if (!take_word(cursor, &start, &length)) {
      cursor->at = word_end(cursor, cursor->at);
    } else if (before == '.') {
      continue; /* part of something else */
    } else if (word_is(cursor, start, length, "from")) {
      find_from_import(&finder);
    } else if (word_is(cursor, start, length, "import")) {
      find_import(&finder);
    } else {
      find_qualified(&finder, start, length);
    }
  }
  while (finder.aliases) {
    struct alias *next = finder.aliases->next;
    free(finder.aliases->name);
    free(finder.aliases->path);
    free(finder.aliases);
    finder.aliases = next;
  }
}

struct plain_user {
  void (*found)(void *user, size_t offset, const struct catalog_symbol *symbol);
  void *user;
};

static void plain_found(void *user, size_t offset, const struct catalog_symbol *symbol, enum py_text_use use) {
  const struct plain_user *plain = user;
  (void)use;
  plain->found(plain->user, offset, symbol);
}

void python_find_in_text(const struct scan *scan, const uint8_t *bytes, size_t size,
                         void (*found)(void *user, size_t offset, const struct catalog_symbol *symbol), void *user) {
  struct plain_user plain = {found, user};
  py_find_uses(scan, bytes, size, plain_found, &plain);
}

/* --- owners ------------------------------------------------------------------------------------------------------- */

static bool path_byte(uint8_t c) {
  return py_word_byte(c) || c == '.';
}

/* Is `path`.`word` a removed name? */
static const struct catalog_symbol *removed(const struct scan *scan, const char *path, const char *word) {
  const char *dot = strrchr(path, '.'); /* "ops.sgl_kernel", with or without something in front of it */
  if (dot && py_is_namespace(scan, dot + 1) && dot - path >= 3 && memcmp(dot - 3, "ops", 3) == 0 &&
      (dot - path == 3 || dot[-4] == '.'))
    return rules_operator_removed(scan, word);
  if (py_is_package(scan, path) || strncmp(path, "sglang.", 7) == 0)
    return rules_python_removed(scan, path, word);
  return NULL;
}

/* The module of "from MODULE import ..." in front of the word on its line. */
static const char *import_before(struct arena *arena, const uint8_t *bytes, size_t at) {
  size_t line = at;
  while (line > 0 && bytes[line - 1] != '\n' && at - line < 1000)
    line--;
  const char *module = NULL;
  for (size_t i = line; i + 5 < at; i++) {
    if (memcmp(bytes + i, "from", 4) != 0 || (i > line && py_word_byte(bytes[i - 1])) || !py_blank(bytes[i + 4]))
      continue;
    struct cursor cursor = {bytes, at, i + 4};
    struct py_buffer path = {0};
    skip_blanks(&cursor);
    size_t dots = cursor.at;
    while (cursor.at < at && bytes[cursor.at] == '.')
      cursor.at++;
    dots = cursor.at - dots;
    bool named = take_path(&cursor, &path);
    skip_blanks(&cursor);
    if ((named || dots) && take_keyword(&cursor, "import"))
      module = py_text_format(arena, "%s%s", dots ? "." : "", named ? path.text : "");
    py_buffer_free(&path);
  }
  return module;
}

enum py_owner py_owner_before(const struct scan *scan, struct arena *arena, const uint8_t *bytes, size_t at,
                              size_t length, const struct catalog_symbol **symbol, const char **path) {
  const char *word = arena_copy(arena, bytes + at, length);
  *path = NULL;
  size_t end = at; /* of the owner */
  bool colons = at >= 2 && bytes[at - 1] == ':' && bytes[at - 2] == ':';
  bool dot = at >= 1 && bytes[at - 1] == '.', colon = !colons && at >= 1 && bytes[at - 1] == ':';
  if (!colons && !dot && !colon) {
    const char *module = import_before(arena, bytes, at);
    if (!module)
      return PY_OWNER_NONE;
    *symbol = removed(scan, module, word);
    return *symbol ? PY_OWNER_PACKAGE : PY_OWNER_OTHER;
  }
  end -= colons ? 2 : 1;
  size_t start = end;
  while (start > 0 && (colons ? py_word_byte(bytes[start - 1]) : path_byte(bytes[start - 1])))
    start--;
  if (start == end) /* ::name is global; a field of an f-string is anybody */
    return colons || (end > 0 && bytes[end - 1] == '\0') ? PY_OWNER_NONE : PY_OWNER_OTHER;
  *path = arena_copy(arena, bytes + start, end - start);
  if (colons)
    *symbol = py_is_namespace(scan, *path) ? rules_operator_removed(scan, word) : NULL;
  else
    *symbol = removed(scan, *path, word);
  return *symbol ? PY_OWNER_PACKAGE : PY_OWNER_OTHER;
}

/* --- loader strings ----------------------------------------------------------------------------------------------- */

size_t py_loader_name(const struct scan *scan, const uint8_t *bytes, size_t from, size_t to,
                      const struct catalog_symbol **symbol) {
  while (from < to && (py_blank(bytes[from]) || bytes[from] == '\r'))
    from++;
  while (to > from && (py_blank(bytes[to - 1]) || bytes[to - 1] == '\r'))
    to--;
  struct cursor cursor = {bytes, to, from};
  /* label = target */
  size_t label = from;
  while (label < to && (path_byte(bytes[label]) || bytes[label] == '-'))
    label++;
  struct cursor behind = {bytes, to, label};
  skip_blanks(&behind);
  if (label > from && behind.at < to && bytes[behind.at] == '=') {
    behind.at++;
    skip_blanks(&behind);
    cursor = behind;
  }
  char path[512], word[256];
  size_t used = 0, start, length;
  *symbol = NULL;
  while (take_word(&cursor, &start, &length)) {
    if (length >= sizeof word || used + length + 2 >= sizeof path)
      return SIZE_MAX;
    memcpy(word, bytes + start, length);
    word[length] = '\0';
    path[used] = '\0';
    if (used && (*symbol = removed(scan, path, word)) != NULL) {
      /* What follows may only be an attribute of it, or it is a module and the name follows. */
      size_t end = cursor.at;
      while (end < to && path_byte(bytes[end]))
        end++;
      if (end == to)
        return start;
    }
    if (used)
      path[used++] = '.';
    memcpy(path + used, word, length);
    used += length;
    path[used] = '\0';
    if (cursor.at < to && bytes[cursor.at] == '.') {
      cursor.at++;
      continue;
    }
    break;
  }
  bool colons = cursor.at + 1 < to && bytes[cursor.at] == ':' && bytes[cursor.at + 1] == ':';
  if (!used || cursor.at >= to || bytes[cursor.at] != ':')
    return SIZE_MAX;
  cursor.at += colons ? 2 : 1;
  if (!take_word(&cursor, &start, &length) || length >= sizeof word)
    return SIZE_MAX;
  memcpy(word, bytes + start, length);
  word[length] = '\0';
  if (colons)
    *symbol = py_is_namespace(scan, path) ? rules_operator_removed(scan, word) : NULL;
  else
    *symbol = removed(scan, path, word);
  if (!*symbol)
    return SIZE_MAX;
  /* An overload or attribute, then nothing, a schema or, of an entry point, extras. */
  while (cursor.at < to && path_byte(bytes[cursor.at]))
    cursor.at++;
  skip_blanks(&cursor);
  bool ends = cursor.at == to || (colons && bytes[cursor.at] == '(') || (!colons && bytes[cursor.at] == '[');
  return ends ? start : SIZE_MAX;
}

/* --- files that do not parse -------------------------------------------------------------------------------------- */

struct broken {
  struct py_unit *unit;
  const char *reason;
  size_t base;
};

static void broken_found(void *user, size_t offset, const struct catalog_symbol *symbol, enum py_text_use use) {
  struct broken *broken = user;
  if (use == PY_TEXT_BARE && broken->base)
    return; /* a sentence in a string */
  py_find(broken->unit, broken->base + offset, symbol, VERDICT_REPORT,
          use == PY_TEXT_IMPORT ? EVIDENCE_IMPORT : EVIDENCE_LEXICAL, LEVEL_ERROR,
          py_text_format(&broken->unit->arena,
                         "%s; the file cannot be parsed (%s), so it is not written: repair it first",
                         py_left(broken->unit, symbol, CATALOG_LAYER_PYTHON, symbol->id), broken->reason));
}

/* A string of a broken file: a loader string or a program is live, all else is text. */
static void broken_string(struct broken *broken, size_t from, size_t to, bool documentation) {
  struct py_unit *unit = broken->unit;
  const uint8_t *bytes = unit->source.bytes;
  bool live = false;
  for (size_t line = from; line < to && !documentation;) {
    const uint8_t *newline = memchr(bytes + line, '\n', to - line);
    size_t end = newline ? (size_t)(newline - bytes) : to;
    const struct catalog_symbol *symbol;
    size_t name = py_loader_name(unit->scan, bytes, line, end, &symbol);
    if (name != SIZE_MAX) {
      live = true;
      py_find(unit, name, symbol, VERDICT_REPORT, EVIDENCE_STRING, LEVEL_ERROR,
              py_text_format(&unit->arena, "%s; this string names it to a loader: change it by hand",
                             py_left(unit, symbol, CATALOG_LAYER_PYTHON, symbol->id)));
    }
    line = end + 1;
  }
  if (!live && !documentation) {
    size_t before = unit->findings_count;
    broken->base = from;
    py_find_uses(unit->scan, bytes + from, to - from, broken_found, broken);
    broken->base = 0;
    live = unit->findings_count > before;
  }
  if (!live && (documentation || memchr(bytes + from, ' ', to - from)))
    py_mentions(unit, bytes + from, NULL, from, to - from);
}

/* The end of the string that starts with the quote at `at`: behind its closing quotes. A string that is not closed ends
 * with its line, or, with three quotes, is none. */
static size_t string_end(const uint8_t *bytes, size_t size, size_t at, bool triple) {
  uint8_t quote = bytes[at];
  for (size_t i = at + (triple ? 3 : 1); i < size; i++) {
    if (bytes[i] == '\\')
      i++;
    else if (!triple && (bytes[i] == quote || bytes[i] == '\n'))
      return i + (bytes[i] == quote);
    else if (triple && size - i >= 3 && bytes[i] == quote && bytes[i + 1] == quote && bytes[i + 2] == quote)
      return i + 3;
  }
  return triple ? at + 3 : size;
}

void py_text_analyse(struct py_unit *unit, const char *reason) {
  const uint8_t *bytes = unit->source.bytes;
  size_t size = unit->source.size;
  struct broken broken = {unit, reason, 0};
  uint8_t *code = scan_alloc(NULL, size); /* without strings and comments */
  uint8_t *classes = scan_alloc(NULL, size);
  if (size) {
    memcpy(code, bytes, size);
    memset(classes, IGNORE_CODE, size);
  }
  bool line_start = true;
  for (size_t at = 0; at < size;) {
    uint8_t c = bytes[at];
    size_t end = at + 1;
    if (c == '#') {
      while (end < size && bytes[end] != '\n')
        end++;
      py_comment(unit, at, end);
      memset(code + at, ' ', end - at);
      memset(classes + at, IGNORE_COMMENT, end - at);
    } else if (c == '"' || c == '\'') {
      bool triple = size - at >= 3 && bytes[at + 1] == c && bytes[at + 2] == c;
      end = string_end(bytes, size, at, triple);
      size_t quotes = triple ? 3 : 1;
      if (end - at >= 2 * quotes)
        broken_string(&broken, at + quotes, end - quotes, triple && line_start);
      for (size_t i = at; i < end; i++)
        code[i] = code[i] == '\n' ? '\n' : ' ';
      memset(classes + at, IGNORE_STRING, end - at);
    }
    line_start = c == '\n' || (line_start && py_blank(c));
    at = end;
  }
  py_ignores_take(unit, classes);
  py_find_uses(unit->scan, code, size, broken_found, &broken);
  free(code);
  free(classes);
}
