/* Encodings: what Python would decode, as text whose ASCII part the parser can read and whose every byte stands where
 * it stands in the file. PEP 263 (coding line) and PEP 3120 (UTF-8 by default) say what Python does. */
#include "scanner/python_front.h"

#include <ctype.h>
#include <iconv.h>
#include <stdlib.h>

const bool py_word_bytes[256] = {
    ['0' ... '9'] = true, ['A' ... 'Z'] = true, ['_'] = true, ['a' ... 'z'] = true, [0x80 ... 0xff] = true};

bool py_utf8_valid(const uint8_t *bytes, size_t size) {
  for (size_t i = 0; i < size;) {
    uint8_t c = bytes[i];
    uint64_t eight = 0x80;
    if (size - i >= sizeof eight)
      memcpy(&eight, bytes + i, sizeof eight);
    if (c < 0x80) {
      i += eight & 0x8080808080808080 ? 1 : sizeof eight; /* nearly all of a source is ASCII */
      continue;
    }
    unsigned more = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : 1;
    if (c < 0xc2 || c > 0xf4 || size - i <= more)
      return false;
    uint8_t low = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80, high = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
    if (bytes[i + 1] < low || bytes[i + 1] > high)
      return false;
    for (unsigned k = 2; k <= more; k++)
      if (bytes[i + k] < 0x80 || bytes[i + k] > 0xbf)
        return false;
    i += more + 1;
  }
  return true;
}

bool py_star_import(const struct source_file *file) {
  const uint8_t *at = file->bytes, *end = at + file->size;
  while ((at = memmem(at, (size_t)(end - at), "import", 6))) {
    at += 6;
    while (at < end && py_between(*at))
      at++;
    if (at < end && *at == '*')
      return true;
  }
  return false;
}

static size_t line_end(const uint8_t *bytes, size_t size, size_t at) {
  while (at < size && bytes[at] != '\n' && bytes[at] != '\r')
    at++;
  return at;
}

/* The name behind "coding:" or "coding=" in a comment line, lower case with '-' for '_'. */
static bool coding_of_line(const uint8_t *bytes, size_t from, size_t to, char *name, size_t room) {
  while (from < to && py_blank(bytes[from]))
    from++;
  if (from == to || bytes[from] != '#')
    return false;
  for (size_t i = from; i + 7 <= to; i++) {
    if (memcmp(bytes + i, "coding", 6) != 0 || (bytes[i + 6] != ':' && bytes[i + 6] != '='))
      continue;
    size_t at = i + 7, used = 0;
    while (at < to && (bytes[at] == ' ' || bytes[at] == '\t'))
      at++;
    for (; at < to && (isalnum(bytes[at]) || bytes[at] == '-' || bytes[at] == '_' || bytes[at] == '.'); at++)
      if (used + 1 < room)
        name[used++] = (char)(bytes[at] == '_' ? '-' : tolower(bytes[at]));
    name[used] = '\0';
    return used > 0;
  }
  return false;
}

/* The coding line is the first line, or the second below a blank or comment line. */
static bool coding(const uint8_t *bytes, size_t size, size_t start, char *name, size_t room) {
  size_t end = line_end(bytes, size, start);
  if (coding_of_line(bytes, start, end, name, room))
    return true;
  size_t at = start;
  while (at < end && py_blank(bytes[at]))
    at++;
  if (end == size || (at < end && bytes[at] != '#'))
    return false;
  size_t second = end + (bytes[end] == '\r' && end + 1 < size && bytes[end + 1] == '\n' ? 2 : 1);
  return coding_of_line(bytes, second, line_end(bytes, size, second), name, room);
}

static bool one_of(const char *name, const char *const *list) {
  for (; *list; list++)
    if (strcmp(name, *list) == 0)
      return true;
  return false;
}

/* Letters stay letters, so that an identifier stays one; what is none must not become one. Not letters are most of
 * Latin-1 below 0xc0, general punctuation and symbols, and the punctuation of East Asian scripts. */
static uint8_t stand_in(uint32_t c) {
  if (c < 0xc0)
    return c == 0xaa || c == 0xb5 || c == 0xba ? 'Q' : '$';
  bool sign = c == 0xd7 || c == 0xf7 || (c >= 0x2000 && c < 0x2c00) || (c >= 0x3000 && c < 0x3040) ||
              (c >= 0xfe30 && c < 0xfe70) || (c >= 0xff00 && c < 0xff21);
  return sign ? '$' : 'Q';
}

/* Any other encoding, through the C library's own tables, character by character. Not those with shift states, where an
 * ASCII byte can be half of a character. */
static bool decode_in_place(uint8_t *bytes, size_t start, size_t size, const char *name) {
  static const char *const shifting[] = {"hz", "utf-7", "utf7", NULL};
  if (one_of(name, shifting) || strncmp(name, "iso-2022", 8) == 0 || strncmp(name, "iso2022", 7) == 0)
    return false;
  iconv_t converter = iconv_open("UCS-4LE", name);
  if (converter == (iconv_t)-1)
    return false;
  bool ok = true;
  for (size_t at = start; ok && at < size;) {
    size_t length = 0;
    uint32_t character = 0;
    /* The shortest run of bytes that is one character. */
    do {
      length++;
      char *in = (char *)bytes + at, *out = (char *)&character;
      size_t in_left = length, out_left = sizeof character;
      iconv(converter, NULL, NULL, NULL, NULL);
      ok = iconv(converter, &in, &in_left, &out, &out_left) != (size_t)-1 && in_left == 0 && out_left == 0;
    } while (!ok && length < 4 && at + length < size);
    if (ok && (length > 1 || bytes[at] >= 0x80))
      memset(bytes + at, stand_in(character), length);
    at += length;
  }
  iconv_close(converter);
  return ok;
}

static uint8_t *own(struct py_source *source) {
  if (!source->owned) {
    source->owned = scan_alloc(NULL, source->size);
    memcpy(source->owned, source->bytes, source->size);
    source->bytes = source->owned;
  }
  return source->owned;
}

static bool decode(struct py_source *source, const char *name, const char **why) {
  static const char *const utf8[] = {"utf-8", "utf8", "utf-8-sig", "u8", "utf", "cp65001", NULL};
  static const char *const ascii[] = {"ascii", "us-ascii", "646", "ansi-x3.4-1968", NULL};
  static const char *const latin[] = {"latin-1", "latin1", "iso-8859-1", "iso8859-1", "8859",
                                      "cp819",   "l1",     "latin",      NULL};
  if (one_of(name, utf8) || strncmp(name, "utf-8-", 6) == 0) {
    *why = "it is not valid UTF-8";
    return py_utf8_valid(source->bytes, source->size);
  }
  if (source->start) {
    *why = "its byte order mark and its coding line disagree";
    return false;
  }
  size_t plain = 0;
  while (plain < source->size && source->bytes[plain] < 0x80)
    plain++;
  if (one_of(name, ascii)) {
    *why = "it has bytes that its coding line excludes";
    return plain == source->size;
  }
  if (one_of(name, latin) || strncmp(name, "latin-1-", 8) == 0) {
    if (plain < source->size)
      own(source);
    for (size_t i = plain; i < source->size; i++)
      if (source->owned[i] >= 0x80)
        source->owned[i] = stand_in(source->owned[i]);
    return true;
  }
  *why = "its encoding is unknown, or it has bytes that its coding line excludes";
  own(source);
  return decode_in_place(source->owned, source->start, source->size, name);
}

bool py_source_open(struct py_source *source, const uint8_t *bytes, size_t size, const char **why) {
  *source = (struct py_source){.bytes = bytes, .size = size};
  if (size >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0)
    source->start = 3;
  if (size && memchr(bytes, 0, size)) {
    *why = "it has a NUL byte";
    return false;
  }
  char name[64];
  if (!decode(source, coding(bytes, size, source->start, name, sizeof name) ? name : "utf-8", why)) {
    py_source_close(source);
    *source = (struct py_source){.bytes = bytes, .size = size};
    return false;
  }
  /* A carriage return that no newline follows ends a line for Python, but not for the grammar. */
  for (size_t i = 0; i < size; i++) {
    const uint8_t *found = memchr(source->bytes + i, '\r', size - i);
    if (!found)
      break;
    i = (size_t)(found - source->bytes);
    if (i + 1 == size || source->bytes[i + 1] != '\n')
      own(source)[i] = '\n';
  }
  return true;
}

void py_source_close(struct py_source *source) {
  free(source->owned);
  *source = (struct py_source){0};
}
