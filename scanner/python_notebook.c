/* Jupyter notebooks: the code of all cells as one Python text, the other cells as text, and the way back from both to
 * the bytes of the file. jansson says whether the file is JSON; the positions come from a walk over the same bytes. */
#include "scanner/python_front.h"

#include <jansson.h>
#include <stdlib.h>

/* One JSON string of a cell's source, without its quotes. */
struct segment {
  size_t start, end;
  uint32_t cell;
};

struct cell {
  bool code, list;       /* list: the source is a list of strings */
  bool program;          /* code of another language */
  uint32_t first, count; /* its segments */
  size_t from, to;       /* its text in the joined bytes */
};

struct py_notebook {
  const uint8_t *file;
  size_t file_size;
  bool ascii; /* the file escapes all other characters */
  bool python;
  struct segment *segments; /* in the order of the file */
  uint32_t segments_count, segments_capacity;
  struct cell *cells;
  uint32_t cells_count, cells_capacity;
  uint8_t *bytes; /* the code of all cells, then the text of the others */
  uint32_t *raw;  /* where each byte stands in the file */
  size_t size, capacity, code_size;
};

/* --- JSON --------------------------------------------------------------------------------------------------------- */

static size_t skip_space(const struct py_notebook *book, size_t at) {
  while (at < book->file_size && strchr(" \t\r\n", book->file[at]) && book->file[at])
    at++;
  return at;
}

/* Behind the string that starts at `at`. */
static size_t skip_string(const struct py_notebook *book, size_t at) {
  for (at++; at < book->file_size && book->file[at] != '"'; at++)
    if (book->file[at] == '\\')
      at++;
  return at < book->file_size ? at + 1 : book->file_size;
}

/* Behind the value that starts at `at`, however deep it is. */
static size_t skip_value(const struct py_notebook *book, size_t at) {
  size_t depth = 0;
  while (at < book->file_size) {
    uint8_t c = book->file[at];
    if (c == '"') {
      at = skip_string(book, at);
    } else if (c == '{' || c == '[') {
      depth++;
      at++;
      continue;
    } else if (c == '}' || c == ']') {
      if (depth == 0)
        return at;
      depth--;
      at++;
    } else if (c == ',' && depth == 0) {
      return at;
    } else {
      at++;
      continue;
    }
    if (depth == 0)
      return at;
  }
  return at;
}

/* The next member of an object or array: *at is behind the opening bracket or the last value. */
static bool next_value(const struct py_notebook *book, size_t *at, size_t *key) {
  *at = skip_space(book, *at);
  if (*at < book->file_size && book->file[*at] == ',')
    *at = skip_space(book, *at + 1);
  if (*at >= book->file_size || book->file[*at] == '}' || book->file[*at] == ']')
    return false;
  if (key) {
    *key = *at;
    *at = skip_space(book, skip_string(book, *at));
    *at = skip_space(book, *at + 1); /* the colon */
  }
  return *at < book->file_size;
}

static bool string_is(const struct py_notebook *book, size_t at, const char *text) {
  size_t length = strlen(text);
  return book->file_size - at > length + 1 && book->file[at] == '"' && memcmp(book->file + at + 1, text, length) == 0 &&
         book->file[at + 1 + length] == '"';
}

/* --- cells -------------------------------------------------------------------------------------------------------- */

static void add_segment(struct py_notebook *book, size_t at) {
  PY_GROW(book->segments, book->segments_count, book->segments_capacity);
  book->segments[book->segments_count++] = (struct segment){at + 1, skip_string(book, at) - 1, book->cells_count};
}

static void take_cell(struct py_notebook *book, size_t at) {
  struct cell cell = {.first = book->segments_count};
  bool known = false;
  size_t key = 0, source = 0;
  for (at++; next_value(book, &at, &key); at = skip_value(book, at)) {
    if (string_is(book, key, "cell_type")) {
      known = true;
      cell.code = string_is(book, at, "code");
    } else if (string_is(book, key, "source") || string_is(book, key, "input")) {
      source = at;
    }
  }
  if (!known || !source)
    return;
  if (book->file[source] == '"') {
    add_segment(book, source);
  } else if (book->file[source] == '[') {
    cell.list = true;
    for (at = source + 1; next_value(book, &at, NULL); at = skip_value(book, at))
      if (book->file[at] == '"')
        add_segment(book, at);
  }
  cell.count = book->segments_count - cell.first;
  PY_GROW(book->cells, book->cells_count, book->cells_capacity);
  book->cells[book->cells_count++] = cell;
}

static void take_cells(struct py_notebook *book, size_t at, bool worksheets) {
  if (at >= book->file_size || book->file[at] != '[')
    return;
  for (at++; next_value(book, &at, NULL); at = skip_value(book, at)) {
    if (book->file[at] != '{')
      continue;
    if (!worksheets) {
      take_cell(book, at);
      continue;
    }
    size_t key = 0, inner = at + 1; /* notebooks of format 3 */
    for (; next_value(book, &inner, &key); inner = skip_value(book, inner))
      if (string_is(book, key, "cells"))
        take_cells(book, inner, false);
  }
}

/* --- text --------------------------------------------------------------------------------------------------------- */

static void add_byte(struct py_notebook *book, uint8_t byte, size_t raw) {
  if (book->size + 1 >= book->capacity) {
    book->capacity = book->capacity ? 2 * book->capacity : 4096;
    book->bytes = scan_alloc(book->bytes, book->capacity);
    book->raw = scan_alloc(book->raw, book->capacity * sizeof *book->raw);
  }
  book->bytes[book->size] = byte;
  book->raw[book->size++] = (uint32_t)raw;
  book->raw[book->size] = (uint32_t)raw + 1;
}

static uint32_t hex4(const uint8_t *text) {
  uint32_t value = 0;
  for (unsigned i = 0; i < 4; i++) {
    uint8_t c = text[i] | 0x20;
    value = 16 * value + (uint32_t)(c >= 'a' ? c - 'a' + 10 : text[i] - '0');
  }
  return value;
}

static void add_character(struct py_notebook *book, uint32_t c, size_t raw) {
  if (c < 0x80) {
    add_byte(book, (uint8_t)c, raw);
    return;
  }
  unsigned more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  static const uint8_t lead[] = {0, 0xc0, 0xe0, 0xf0};
  add_byte(book, (uint8_t)(lead[more] | c >> (6 * more)), raw);
  while (more-- > 0)
    add_byte(book, (uint8_t)(0x80 | (c >> (6 * more) & 0x3f)), raw);
}

static void add_segment_text(struct py_notebook *book, const struct segment *segment) {
  const uint8_t *file = book->file;
  for (size_t at = segment->start; at < segment->end;) {
    if (file[at] != '\\' || segment->end - at < 2) {
      add_byte(book, file[at], at);
      at++;
      continue;
    }
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    size_t raw = at;
    const char *simple = strchr(from, file[at + 1]);
    if (simple && *simple) {
      add_byte(book, (uint8_t)to[simple - from], raw);
      at += 2;
      continue;
    }
    uint32_t c = segment->end - at >= 6 ? hex4(file + at + 2) : '?';
    at = at + 6 < segment->end ? at + 6 : segment->end;
    if (c >= 0xd800 && c < 0xdc00 && segment->end - at >= 6 && file[at] == '\\') {
      c = 0x10000 + ((c & 0x3ff) << 10) + (hex4(file + at + 2) & 0x3ff);
      at += 6;
    }
    add_character(book, c, raw);
  }
}

static void add_cell_text(struct py_notebook *book, struct cell *cell) {
  cell->from = book->size;
  for (uint32_t i = 0; i < cell->count; i++)
    add_segment_text(book, &book->segments[cell->first + i]);
  cell->to = book->size;
  /* The last line of a cell has no newline in the file; the one here stands at the closing quote. */
  if (cell->count && (book->size == cell->from || book->bytes[book->size - 1] != '\n'))
    add_byte(book, '\n', book->segments[cell->first + cell->count - 1].end);
}

/* --- what IPython adds to Python ---------------------------------------------------------------------------------- */

/* Cells in another language, or with a file's text. */
static bool is_foreign(const uint8_t *text, size_t size) {
  static const char *const magics[] = {"bash",      "sh",      "script", "system",     "html", "javascript",
                                       "js",        "latex",   "svg",    "perl",       "ruby", "sql",
                                       "writefile", "file",    "cmd",    "markdown",   "R",    "julia",
                                       "cython",    "python2", "pypy",   "powershell", "cuda", "cpp"};
  while (size && (py_blank(*text) || *text == '\n')) {
    text++;
    size--;
  }
  if (size < 3 || text[0] != '%' || text[1] != '%')
    return false;
  size_t length = 0;
  while (length + 2 < size && py_word_byte(text[2 + length]))
    length++;
  for (size_t i = 0; i < sizeof magics / sizeof *magics; i++)
    if (strlen(magics[i]) == length && memcmp(magics[i], text + 2, length) == 0)
      return true;
  return false;
}

/* Replaces [from, to) by an expression that does nothing. */
static void blank(uint8_t *text, size_t from, size_t to) {
  memset(text + from, ' ', to - from);
  if (from < to)
    text[from] = '0';
}

/* Lines that start with % or ! (or ask with ?), and what stands behind = % or = !, are no Python. True when such a line
 * goes on behind a backslash. */
static bool blank_line(uint8_t *text, size_t from, size_t to) {
  while (from < to && py_blank(text[from]))
    from++;
  while (to > from && (py_blank(text[to - 1]) || text[to - 1] == '\r'))
    to--;
  if (from == to)
    return false;
  bool goes_on = text[to - 1] == '\\';
  if (text[from] == '%' || text[from] == '!' || text[from] == '?' || text[to - 1] == '?') {
    blank(text, from, to);
    return goes_on;
  }
  size_t at = from;
  while (at < to && (py_word_byte(text[at]) || strchr(".,[] ", text[at])) && text[at])
    at++;
  if (at > from && at < to && text[at] == '=') {
    at++;
    while (at < to && py_blank(text[at]))
      at++;
    if (at < to && (text[at] == '%' || text[at] == '!') && !(at + 1 < to && text[at + 1] == '=')) {
      blank(text, at, to);
      return goes_on;
    }
  }
  return false;
}

/* A line inside brackets or a string is not the start of anything. */
static void blank_magics(uint8_t *text, size_t size) {
  unsigned depth = 0;
  uint8_t quote = 0;
  bool triple = false, joined = false, magic = false;
  for (size_t at = 0; at < size;) {
    size_t end = at;
    while (end < size && text[end] != '\n')
      end++;
    if (magic) {
      magic = end > at && text[end - 1] == '\\';
      memset(text + at, ' ', end - at);
    } else if (depth == 0 && !quote && !joined) {
      magic = blank_line(text, at, end);
    }
    joined = false;
    for (; at < end; at++) {
      uint8_t c = text[at];
      bool three = end - at >= 3 && text[at + 1] == c && text[at + 2] == c;
      if (c == '\\') {
        joined = at + 1 == end && !quote;
        at++;
      } else if (quote) {
        if (c == quote && (!triple || three)) {
          at += triple ? 2 : 0;
          quote = 0;
        }
      } else if (c == '#') {
        break;
      } else if (c == '"' || c == '\'') {
        quote = c;
        triple = three;
        at += three ? 2 : 0;
      } else if (c == '(' || c == '[' || c == '{') {
        depth++;
      } else if (depth && (c == ')' || c == ']' || c == '}')) {
        depth--;
      }
    }
    if (!triple)
      quote = 0;
    at = end + 1;
  }
}

/* --- the notebook ------------------------------------------------------------------------------------------------- */

static bool is_python(const json_t *root) {
  const json_t *metadata = json_object_get(root, "metadata");
  const char *kernel = json_string_value(json_object_get(json_object_get(metadata, "kernelspec"), "language"));
  const char *language = json_string_value(json_object_get(json_object_get(metadata, "language_info"), "name"));
  const char *name = language ? language : kernel;
  return !name || strstr(name, "python") || strstr(name, "Python");
}

struct py_notebook *py_notebook_open(struct py_unit *unit, const char **why) {
  const struct source_file *file = unit->file;
  json_error_t error;
  json_t *root = json_loadb((const char *)file->bytes, file->size, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, &error);
  if (!root) {
    *why = "it is no valid JSON";
    return NULL;
  }
  struct py_notebook *book = scan_alloc(NULL, sizeof *book);
  *book = (struct py_notebook){.file = file->bytes, .file_size = file->size, .ascii = true, .python = is_python(root)};
  json_decref(root);
  for (size_t i = 0; i < file->size; i++)
    book->ascii = book->ascii && file->bytes[i] < 0x80;
  size_t at = skip_space(book, 0), key = 0;
  for (at++; next_value(book, &at, &key); at = skip_value(book, at)) {
    if (string_is(book, key, "cells"))
      take_cells(book, at, false);
    else if (string_is(book, key, "worksheets"))
      take_cells(book, at, true);
  }
  for (unsigned text = 0; text < 2; text++) {
    for (uint32_t i = 0; i < book->cells_count; i++) {
      struct cell *cell = &book->cells[i];
      if (cell->code == (text == 1))
        continue;
      add_cell_text(book, cell);
      if (cell->code && (!book->python || is_foreign(book->bytes + cell->from, cell->to - cell->from))) {
        book->size = cell->from; /* with the text then */
        cell->code = false;
        cell->program = true;
      } else if (cell->code && cell->to > cell->from) {
        blank_magics(book->bytes + cell->from, cell->to - cell->from);
      }
    }
    if (text == 0)
      book->code_size = book->size;
  }
  add_byte(book, '\n', file->size); /* so that there always are bytes */
  unit->source = (struct py_source){.bytes = book->bytes, .size = book->code_size};
  unit->notebook = book;
  return book;
}

void py_notebook_close(struct py_notebook *book) {
  free(book->segments);
  free(book->cells);
  free(book->bytes);
  free(book->raw);
  free(book);
}

size_t py_notebook_raw(const struct py_notebook *book, size_t offset) {
  return book->raw[offset];
}

/* --- edits -------------------------------------------------------------------------------------------------------- */

static const struct segment *segment_at(const struct py_notebook *book, size_t raw) {
  uint32_t low = 0, high = book->segments_count;
  while (low + 1 < high) {
    uint32_t middle = (low + high) / 2;
    if (book->segments[middle].start <= raw)
      low = middle;
    else
      high = middle;
  }
  return &book->segments[low];
}

/* From one string of a list to the next: quote, comma, blanks, quote. */
static void add_boundary(const struct py_notebook *book, const struct segment *segment, struct py_buffer *out) {
  const struct cell *cell = &book->cells[segment->cell];
  const struct segment *first = &book->segments[cell->first];
  py_buffer_puts(out, "\"");
  if (cell->count > 1) {
    py_buffer_add(out, book->file + first->end + 1, first[1].start - 1 - (first->end + 1));
  } else {
    size_t blanks = first->start - 1;
    while (blanks > 0 && strchr(" \t\r\n", book->file[blanks - 1]))
      blanks--;
    py_buffer_puts(out, blanks == first->start - 1 ? ", " : ",");
    py_buffer_add(out, book->file + blanks, first->start - 1 - blanks);
  }
  py_buffer_puts(out, "\"");
}

static void add_escaped(const struct py_notebook *book, struct py_buffer *out, const char *text, size_t *at,
                        size_t size) {
  uint8_t c = (uint8_t)text[*at];
  char escaped[16];
  if (c == '"' || c == '\\') {
    snprintf(escaped, sizeof escaped, "\\%c", c);
  } else if (c == '\t' || c == '\r' || c == '\f') {
    snprintf(escaped, sizeof escaped, "\\%c", c == '\t' ? 't' : c == '\r' ? 'r' : 'f');
  } else if (c < 0x20) {
    snprintf(escaped, sizeof escaped, "\\u%04x", c);
  } else if (c >= 0x80 && book->ascii) {
    unsigned more = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : 1;
    uint32_t character = c & (0x3fu >> more);
    for (; more && *at + 1 < size; more--)
      character = character << 6 | ((uint8_t)text[++*at] & 0x3f);
    if (character >= 0x10000)
      snprintf(escaped, sizeof escaped, "\\u%04x\\u%04x", 0xd800 | (character - 0x10000) >> 10,
               0xdc00 | (character & 0x3ff));
    else
      snprintf(escaped, sizeof escaped, "\\u%04x", character);
  } else {
    snprintf(escaped, sizeof escaped, "%c", c);
  }
  py_buffer_puts(out, escaped);
}

void py_notebook_edit(const struct py_notebook *book, struct result *result, uint32_t group, size_t start, size_t end,
                      const char *text, size_t size) {
  size_t raw = book->raw[start];
  const struct segment *segment = segment_at(book, raw);
  struct py_buffer out = {0};
  for (size_t i = 0; i < size; i++) {
    if (text[i] != '\n') {
      add_escaped(book, &out, text, &i, size);
      continue;
    }
    py_buffer_puts(&out, "\\n");
    if (book->cells[segment->cell].list)
      add_boundary(book, segment, &out);
  }
  result_edit(result, group, raw, end == start ? raw : book->raw[end], out.text ? out.text : "", out.size);
  py_buffer_free(&out);
}

/* --- the other cells ---------------------------------------------------------------------------------------------- */

struct foreign {
  struct py_unit *unit;
  size_t base;
};

static void foreign_found(void *user, size_t offset, const struct catalog_symbol *symbol, enum py_text_use use) {
  const struct foreign *foreign = user;
  (void)use;
  py_find(foreign->unit, foreign->base + offset, symbol, VERDICT_REPORT, EVIDENCE_NOTEBOOK, LEVEL_ERROR,
          py_text_format(&foreign->unit->arena, "%s; the program in this cell needs it: change it by hand",
                         py_left(foreign->unit, symbol, CATALOG_LAYER_PYTHON, symbol->id)));
}

void py_notebook_text(struct py_unit *unit, const struct py_notebook *book) {
  for (uint32_t i = 0; i < book->cells_count; i++) {
    const struct cell *cell = &book->cells[i];
    if (cell->code || cell->from < book->code_size)
      continue;
    const uint8_t *text = book->bytes + cell->from;
    struct foreign foreign = {unit, cell->from};
    if (cell->program)
      py_find_uses(unit->scan, text, cell->to - cell->from, foreign_found, &foreign);
    else
      py_mentions(unit, text, NULL, cell->from, cell->to - cell->from);
  }
}
