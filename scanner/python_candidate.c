/* Which files need a tree at all. Parsing is the dearest step of a scan, and most files with a catalog name have it as
 * a name of their own: a method, a function of another package. So what a file must have for any finding is looked for
 * in its tokens first; in doubt the file is parsed. Whoever adds a rule to the front adds here what its findings need.
 */
#include "scanner/prefilter.h"
#include "scanner/python_front.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Longer than any name of a catalog; what of neighbouring literals is joined. */
#define JOINED 80

struct lexer {
  const struct scan *scan;
  const uint8_t *bytes;
  size_t size, at;
  bool owner; /* the file may reach the package */
  struct arena arena;
  uint8_t tail[JOINED]; /* the end of the last string, while another one may continue it */
  size_t tail_size;
};

static bool has(const struct source_file *file, const char *text) {
  return memmem(file->bytes, file->size, text, strlen(text)) != NULL;
}

/* The package as one word, or put together from constants, "sgl_" and the rest; a name that another module of the tree
 * binds it to. With an sglang release its modules are owners too. */
static bool has_owner(const struct scan *scan, const struct source_file *file) {
  return (file->seen & SEEN_OWNER) || has(file, "sgl_") || (scan->options.sglang_release && has(file, "sglang")) ||
         py_index_exported(scan, file);
}

/* A coding line for something else than UTF-8. */
static bool other_coding(const uint8_t *bytes, size_t size) {
  const uint8_t *at = memmem(bytes, size, "coding", 6), *end = bytes + size;
  if (!at || (at += 6) == end || (*at != ':' && *at != '='))
    return at && at != end && memmem(at, (size_t)(end - at), "coding", 6);
  at++;
  while (at < end && py_blank(*at))
    at++;
  return end - at < 5 ||
         (strncasecmp((const char *)at, "utf-8", 5) != 0 && strncasecmp((const char *)at, "utf8", 4) != 0);
}

/* Python would read other characters than are there: a coding line, a carriage return that ends a line. */
static bool unusual(const struct source_file *file) {
  const uint8_t *end = file->bytes + file->size, *second = memchr(file->bytes, '\n', file->size);
  const uint8_t *third = second ? memchr(second + 1, '\n', (size_t)(end - second - 1)) : NULL;
  size_t head = (size_t)((third ? third : end) - file->bytes);
  if (other_coding(file->bytes, head) || memchr(file->bytes, 0, file->size))
    return true;
  for (const uint8_t *at = file->bytes; (at = memchr(at, '\r', (size_t)(end - at))); at++)
    if (at + 1 == end || at[1] != '\n')
      return true;
  return false;
}

/* A removed name; also a function or module that an sglang release has dropped. */
static bool is_name(const struct lexer *lexer, size_t from, size_t to) {
  const uint8_t *word = lexer->bytes + from;
  return rules_word_matters(lexer->scan, word, to - from) ||
         (lexer->scan->options.sglang_release && py_index_name(lexer->scan, word, to - from));
}

/* May a comment be about a removed name, or a string without an owner in the file? It can only be a mention, of a word
 * without another owner in front. */
static bool mentions(struct lexer *lexer, const uint8_t *text, size_t size) {
  const struct catalog_symbol *symbol, *owned;
  const char *path;
  size_t length;
  for (size_t at = 0; (at = rules_next_name(lexer->scan, text, size, at, &symbol, &length)) != SIZE_MAX; at += length) {
    enum py_owner owner = py_owner_before(lexer->scan, &lexer->arena, text, at, length, &owned, &path);
    if (owner == PY_OWNER_PACKAGE ||
        (owner == PY_OWNER_NONE && rules_word_removed(lexer->scan, symbol, text + at, length)) ||
        (owner == PY_OWNER_OTHER && path && lexer->owner)) /* an alias */
      return true;
  }
  return false;
}

/* In a string it may be live as well. */
static bool about(struct lexer *lexer, const uint8_t *text, size_t size) {
  const struct catalog_symbol *symbol;
  size_t length;
  if (!lexer->owner)
    return mentions(lexer, text, size);
  for (size_t at = 0; (at = rules_next_name(lexer->scan, text, size, at, &symbol, &length)) != SIZE_MAX; at += length)
    if (rules_word_matters(lexer->scan, text + at, length))
      return true;
  return false;
}

static bool comment(struct lexer *lexer) {
  const uint8_t *start = lexer->bytes + lexer->at;
  const uint8_t *newline = memchr(start, '\n', lexer->size - lexer->at);
  size_t size = newline ? (size_t)(newline - start) : lexer->size - lexer->at;
  lexer->at += size;
  return mentions(lexer, start, size);
}

/* --- strings ------------------------------------------------------------------------------------------------------ */

/* A letter of the prefix in front of the quote at `at`: r, b, u, f, t. */
static bool has_prefix(const struct lexer *lexer, char letter) {
  for (size_t at = lexer->at; at > 0 && lexer->at - at < 2 && py_word_byte(lexer->bytes[at - 1]); at--)
    if ((lexer->bytes[at - 1] | 0x20) == letter)
      return true;
  return false;
}

/* A name may be spelled in two literals that stand side by side. */
static bool joined(struct lexer *lexer, const uint8_t *text, size_t size) {
  uint8_t both[2 * JOINED];
  size_t head = size < JOINED ? size : JOINED, tail = lexer->tail_size;
  bool found = false;
  if (tail && head) {
    memcpy(both, lexer->tail, tail);
    memcpy(both + tail, text, head);
    found = about(lexer, both, tail + head);
  }
  size_t from = size > JOINED ? size - JOINED : 0;
  if (size)
    memcpy(lexer->tail, text + from, size - from);
  lexer->tail_size = size - from;
  return found;
}

/* From the opening quote to behind the closing one. True when it may be about a removed name, or is not understood: a
 * field of an f-string with quotes of its own, a line without its closing quote, a character by its number. */
static bool string(struct lexer *lexer) {
  const uint8_t *bytes = lexer->bytes;
  size_t size = lexer->size, at = lexer->at;
  uint8_t quote = bytes[at];
  bool triple = size - at >= 3 && bytes[at + 1] == quote && bytes[at + 2] == quote;
  bool raw = has_prefix(lexer, 'r'), fields = has_prefix(lexer, 'f') || has_prefix(lexer, 't');
  size_t start = at += triple ? 3 : 1, from = at;
  int depth = 0;
  for (; at < size; at++) {
    uint8_t c = bytes[at];
    if (c == quote && (!triple || (size - at >= 3 && bytes[at + 1] == quote && bytes[at + 2] == quote))) {
      lexer->at = at + (triple ? 3 : 1);
      return depth != 0 || about(lexer, bytes + from, at - from) || joined(lexer, bytes + start, at - start);
    }
    if (c == '\n' && !triple)
      return true;
    if (c == '\\' && at + 1 < size) {
      uint8_t next = bytes[++at];
      if (raw || next == '\\' || next == '\'' || next == '"')
        continue;
      /* Behind an escape a new word begins. */
      if (next == 'x' || next == 'u' || next == 'U' || next == 'N' || (next >= '0' && next <= '9') ||
          about(lexer, bytes + from, at - 1 - from))
        return true;
      from = at + 1;
    } else if (fields && c == '{') {
      depth++;
    } else if (fields && c == '}') {
      depth--;
    }
  }
  return true;
}

/* --- code --------------------------------------------------------------------------------------------------------- */

/* Is the word an attribute: is there a dot in front? */
static bool attribute(const struct lexer *lexer, size_t from) {
  while (from > 0 && (py_blank(lexer->bytes[from - 1]) || lexer->bytes[from - 1] == '\n' ||
                      lexer->bytes[from - 1] == '\r' || lexer->bytes[from - 1] == '\\'))
    from--;
  return from > 0 && lexer->bytes[from - 1] == '.';
}

/* "from PATH" and "import PATH". */
enum module { MODULE_OTHER, MODULE_PACKAGE, MODULE_UNCLEAR };

/* Reads the path behind "from" or "import". That of somebody else is skipped: nothing in it is a use. */
static enum module module(struct lexer *lexer, char *path, size_t room) {
  const uint8_t *bytes = lexer->bytes;
  size_t at = lexer->at;
  while (at < lexer->size && py_blank(bytes[at]))
    at++;
  size_t start = at;
  while (at < lexer->size && (py_word_byte(bytes[at]) || bytes[at] == '.'))
    at++;
  size_t length = at - start;
  if (length == 0 || length >= room || at == lexer->size || (bytes[at] != ' ' && bytes[at] != '\n' && bytes[at] != ','))
    return MODULE_UNCLEAR;
  memcpy(path, bytes + start, length);
  path[length] = '\0';
  if (py_is_package(path))
    return MODULE_PACKAGE;
  if (strncmp(path, "torch", 5) == 0 || (strncmp(path, "sglang", 6) == 0 && lexer->scan->options.sglang_release))
    return MODULE_UNCLEAR;
  lexer->at = at;
  return MODULE_OTHER;
}

/* In code a name matters as an attribute (k.NAME) and in an import of the package; else it is the file's own or what an
 * import bound, which is no result. anywhere: there is a star import, or a keyword of patch.multiple may be one. */
static bool tokens(struct lexer *lexer, bool anywhere) {
  enum module from_module = MODULE_OTHER; /* from "from" to the end of its line or parenthesis */
  char path[128];
  int depth = 0;
  while (lexer->at < lexer->size) {
    size_t from = lexer->at;
    uint8_t c = lexer->bytes[from];
    if (c == '#') {
      if (comment(lexer))
        return true;
    } else if (c == '"' || c == '\'') {
      if (string(lexer))
        return true;
    } else if (py_word_byte(c)) {
      while (lexer->at < lexer->size && py_word_byte(lexer->bytes[lexer->at]))
        lexer->at++;
      size_t to = lexer->at, length = to - from;
      bool prefix = length <= 2 && to < lexer->size && (lexer->bytes[to] == '"' || lexer->bytes[to] == '\'');
      lexer->tail_size = prefix ? lexer->tail_size : 0;
      if (length == 4 && memcmp(lexer->bytes + from, "from", 4) == 0) {
        from_module = module(lexer, path, sizeof path);
      } else if (length == 6 && memcmp(lexer->bytes + from, "import", 6) == 0 && from_module == MODULE_OTHER) {
        module(lexer, (char[128]){0}, 128);
      } else if (lexer->owner && is_name(lexer, from, to)) {
        char name[128];
        snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : 0), lexer->bytes + from);
        if (anywhere || from_module == MODULE_UNCLEAR || attribute(lexer, from) ||
            (from_module == MODULE_PACKAGE && rules_python_removed(lexer->scan, path, name)))
          return true;
      }
    } else {
      depth += (c == '(') - (c == ')');
      if (c == '\n' && depth <= 0 && from > 0 && lexer->bytes[from - 1] != '\\')
        from_module = MODULE_OTHER;
      if (!py_blank(c) && c != '\n' && c != '\r' && c != '\\' && c != '(' && c != ')' && c != '+')
        lexer->tail_size = 0;
      lexer->at++;
    }
  }
  return false;
}

bool py_candidate(const struct scan *scan, const struct source_file *file) {
  if (file->language != LANGUAGE_PYTHON || (file->seen & SEEN_IGNORE))
    return true;
  if (!(file->seen & (SEEN_OWNER | SEEN_NAME)) && !(scan->options.sglang_release && (file->seen & SEEN_ROUTE)))
    return false;
  if (unusual(file))
    return true;
  struct lexer lexer = {.scan = scan, .bytes = file->bytes, .size = file->size, .owner = has_owner(scan, file)};
  if (file->size >= 3 && memcmp(file->bytes, "\xef\xbb\xbf", 3) == 0)
    lexer.at = 3;
  bool found = tokens(&lexer, has(file, "import *") || has(file, "multiple("));
  arena_free(&lexer.arena);
  return found;
}
