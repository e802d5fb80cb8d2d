/* Whose a name is in a file, by its tokens: what python_strings.c asks the bindings of the tree. */
#include "scanner/python_front.h"

static size_t string_end(const uint8_t *bytes, size_t size, size_t at) {
  uint8_t quote = bytes[at];
  bool triple = size - at >= 3 && bytes[at + 1] == quote && bytes[at + 2] == quote;
  for (at += triple ? 3 : 1; at < size; at++) {
    if (bytes[at] == '\\')
      at++;
    else if (bytes[at] == quote && (!triple || (size - at >= 3 && bytes[at + 1] == quote && bytes[at + 2] == quote)))
      return at + (triple ? 3 : 1);
  }
  return size;
}

static bool word_is(const uint8_t *word, size_t length, const char *text) {
  return strlen(text) == length && memcmp(word, text, length) == 0;
}

/* In which kind of import statement the tokens are. */
enum import { IMPORT_NONE, IMPORT_FROM, IMPORT_FROM_OURS, IMPORT_NAMES, IMPORT_NAMES_OURS, IMPORT_MODULES };

enum py_whose py_whose(const uint8_t *bytes, size_t size, const uint8_t *name, size_t name_length) {
  const uint8_t *before = bytes; /* the word before, while nothing else came */
  size_t before_length = 0;
  enum import import = IMPORT_NONE;
  bool bound = false, unclear = false;
  int depth = 0;
  for (size_t at = 0; at < size;) {
    uint8_t c = bytes[at];
    if (py_word_byte(c)) {
      size_t start = at;
      while (at < size && py_word_byte(bytes[at]))
        at++;
      const uint8_t *word = bytes + start;
      size_t length = at - start, next = at, dot = start;
      while (next < size && py_between(bytes[next]))
        next++;
      while (dot > 0 && py_blank(bytes[dot - 1]))
        dot--;
      if (word_is(word, length, "from")) {
        import = size - next > 3 && memcmp(bytes + next, "sgl", 3) == 0 ? IMPORT_FROM_OURS : IMPORT_FROM;
      } else if (word_is(word, length, "import")) {
        import = import == IMPORT_FROM ? IMPORT_NAMES : import == IMPORT_FROM_OURS ? IMPORT_NAMES_OURS : IMPORT_MODULES;
      } else if (length == name_length && memcmp(word, name, length) == 0 && (!dot || bytes[dot - 1] != '.')) {
        bool renamed = size - next > 2 && memcmp(bytes + next, "as", 2) == 0 && !py_word_byte(bytes[next + 2]);
        if (word_is(before, before_length, "def") || word_is(before, before_length, "class"))
          bound = true;
        else if (import == IMPORT_NAMES)
          bound = bound || !renamed;
        else if (import == IMPORT_NAMES_OURS || import == IMPORT_MODULES)
          return PY_WHOSE_UNCLEAR;
        else
          unclear = true;
      }
      before = word;
      before_length = length;
      continue;
    }
    if (!py_blank(c))
      before_length = 0;
    depth += (c == '(' || c == '[' || c == '{') - (c == ')' || c == ']' || c == '}');
    if (!depth && (c == ';' || py_ends_line(bytes, at)))
      import = IMPORT_NONE;
    if (c == '#')
      while (at < size && bytes[at] != '\n')
        at++;
    else
      at = c == '"' || c == '\'' ? string_end(bytes, size, at) : at + 1;
  }
  return bound ? PY_WHOSE_FILE : unclear ? PY_WHOSE_UNCLEAR : PY_WHOSE_NOBODY;
}
