/* String literals: their characters, and where each one stands in the source. */
#include "scanner/python_front.h"

#include <stdlib.h>

static void add(struct py_string *string, uint8_t byte, uint32_t at) {
  string->bytes[string->size] = byte;
  string->at[string->size++] = at;
}

/* A character as UTF-8, every byte of it at the place of its escape. What is no character is left out. */
static void add_character(struct py_string *string, uint32_t c, uint32_t at) {
  if (c < 0x80) {
    add(string, (uint8_t)c, at);
  } else if (c < 0x800) {
    add(string, (uint8_t)(0xc0 | c >> 6), at);
    add(string, (uint8_t)(0x80 | (c & 0x3f)), at);
  } else if (c < 0x10000) {
    add(string, (uint8_t)(0xe0 | c >> 12), at);
    add(string, (uint8_t)(0x80 | (c >> 6 & 0x3f)), at);
    add(string, (uint8_t)(0x80 | (c & 0x3f)), at);
  } else if (c < 0x110000) {
    add(string, (uint8_t)(0xf0 | c >> 18), at);
    add(string, (uint8_t)(0x80 | (c >> 12 & 0x3f)), at);
    add(string, (uint8_t)(0x80 | (c >> 6 & 0x3f)), at);
    add(string, (uint8_t)(0x80 | (c & 0x3f)), at);
  }
}

static int digit(uint8_t c) {
  if (c >= '0' && c <= '9')
    return c - '0';
  c |= 0x20;
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 16;
}

/* An escape at `at` (behind the backslash); returns the offset behind it. */
static uint32_t escape(struct py_string *string, const uint8_t *text, uint32_t at, uint32_t end, bool bytes) {
  uint32_t start = at - 1, value = 0;
  uint8_t c = text[at];
  static const char from[] = "\\'\"abfnrtv", to[] = "\\'\"\a\b\f\n\r\t\v";
  const char *simple = strchr(from, c);
  if (c && simple) {
    add(string, (uint8_t)to[simple - from], start);
    return at + 1;
  }
  if (c == '\n')
    return at + 1;
  if (c == '\r')
    return at + (at + 1 < end && text[at + 1] == '\n' ? 2 : 1);
  if (c >= '0' && c <= '7') {
    uint32_t stop = at + 3 < end ? at + 3 : end;
    for (; at < stop && text[at] >= '0' && text[at] <= '7'; at++)
      value = 8 * value + (uint32_t)(text[at] - '0');
    add_character(string, value, start);
    return at;
  }
  unsigned digits = c == 'x' ? 2 : bytes ? 0 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
  if (digits) {
    at++;
    for (; digits && at < end && digit(text[at]) < 16; digits--, at++)
      value = 16 * value + (uint32_t)digit(text[at]);
    add_character(string, value, start);
    return at;
  }
  if (c == 'N' && !bytes) {
    while (at < end && text[at] != '}')
      at++;
    add(string, '?', start); /* some character that is part of no name */
    return at < end ? at + 1 : end;
  }
  add(string, '\\', start);
  return at;
}

static void add_literal(struct py_unit *unit, py_id node, struct py_string *string) {
  const struct py_tree *tree = &unit->tree;
  const uint8_t *text = tree->bytes;
  bool raw = false, bytes = false, format = false;
  for (py_id part = py_first(tree, node); part; part = py_next(tree, part)) {
    const struct py_node *at = &tree->nodes[part];
    switch (at->kind) {
    case PY_STRING_START:
      for (uint32_t i = at->start; i < at->end; i++) {
        uint8_t c = text[i] | 0x20;
        raw = raw || c == 'r';
        bytes = bytes || c == 'b';
        format = format || c == 'f' || c == 't';
      }
      string->fields = string->fields || format;
      break;
    case PY_STRING_CONTENT:
      for (uint32_t i = at->start; i < at->end;) {
        if (text[i] == '\\' && !raw && i + 1 < at->end) {
          i = escape(string, text, i + 1, at->end, bytes);
          continue;
        }
        add(string, text[i], i);
        i += format && i + 1 < at->end && (text[i] == '{' || text[i] == '}') && text[i + 1] == text[i] ? 2 : 1;
      }
      break;
    case PY_INTERPOLATION:
      add(string, '\0', at->start);
      break;
    default:
      break;
    }
  }
}

void py_string_open(struct py_unit *unit, py_id node, struct py_string *string) {
  const struct py_tree *tree = &unit->tree;
  /* An escape is never shorter than its character. */
  size_t room = tree->nodes[node].end - tree->nodes[node].start + 1;
  *string = (struct py_string){.bytes = scan_alloc(NULL, room), .at = scan_alloc(NULL, room * sizeof(uint32_t))};
  if (py_kind(tree, node) == PY_STRING) {
    add_literal(unit, node, string);
    return;
  }
  for (py_id part = py_first(tree, node); part; part = py_next(tree, part))
    if (py_kind(tree, part) == PY_STRING)
      add_literal(unit, part, string);
}

void py_string_close(struct py_string *string) {
  free(string->bytes);
  free(string->at);
  *string = (struct py_string){0};
}
