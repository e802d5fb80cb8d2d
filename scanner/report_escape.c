/* Text of foreign files that must not act where it is shown: on a terminal, in XML and HTML. */
#include "scanner/report.h"

#include <locale.h>
#include <string.h>
#include <wchar.h>

size_t report_character(const uint8_t *at, size_t left, uint32_t *c) {
  size_t length = *at < 0x80 ? 1 : *at >= 0xf0 && *at < 0xf5 ? 4 : *at >= 0xe0 && *at < 0xf0 ? 3 : *at >= 0xc2 ? 2 : 0;
  *c = UINT32_MAX;
  if (length == 0 || *at >= 0xf5 || length > left)
    return 1;
  uint32_t value = length == 1 ? *at : *at & (0x7fU >> length);
  for (size_t i = 1; i < length; i++) {
    if ((at[i] & 0xc0) != 0x80)
      return 1;
    value = value << 6 | (at[i] & 0x3f);
  }
  static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000}; /* a longer form of a shorter character is none */
  if (value < least[length] || value > 0x10ffff || (value >= 0xd800 && value < 0xe000))
    return 1;
  *c = value;
  return length;
}

bool report_hidden(uint32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0xad || c == 0x61c || (c >= 0x200b && c <= 0x200f) ||
         (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff || (c >= 0xfff9 && c <= 0xfffb) ||
         (c >= 0xe0000 && c <= 0xe007f) || (c > 0x10ffff && c != UINT32_MAX);
}

/* What stands for a character that is not shown as it is; of an invalid byte, the byte. */
static int spell(char *out, size_t size, uint32_t c, uint8_t byte) {
  return c == UINT32_MAX || c < 0x80 ? snprintf(out, size, "\\x%02x", byte)
                                     : snprintf(out, size, "\\u{%x}", (unsigned)c);
}

void report_plain(FILE *stream, const char *text) {
  size_t left = strlen(text);
  for (const uint8_t *at = (const uint8_t *)text; left > 0;) {
    uint32_t c;
    size_t length = report_character(at, left, &c);
    char spelt[16];
    if (c == UINT32_MAX || report_hidden(c)) {
      spell(spelt, sizeof spelt, c, *at);
      fputs(spelt, stream);
    } else {
      fwrite(at, 1, length, stream);
    }
    at += length;
    left -= length;
  }
}

/* wcwidth() knows the wide characters, in a locale that has them. */
static unsigned shown_width(uint32_t c) {
  static locale_t wide;
  static bool asked;
  if (!asked) {
    wide = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    asked = true;
  }
  if (!wide)
    return 1;
  locale_t before = uselocale(wide);
  int width = wcwidth((wchar_t)c);
  uselocale(before);
  return width < 0 ? 1 : (unsigned)width;
}

unsigned report_width(uint32_t c) {
  char spelt[16];
  if (c == UINT32_MAX || report_hidden(c))
    return (unsigned)spell(spelt, sizeof spelt, c, 0);
  return c < 0x80 ? 1 : shown_width(c);
}

void report_xml(FILE *stream, const char *text, size_t size) {
  for (const uint8_t *at = (const uint8_t *)text; size > 0;) {
    uint32_t c;
    size_t length = report_character(at, size, &c);
    char spelt[16];
    if (c == '&')
      fputs("&amp;", stream);
    else if (c == '<')
      fputs("&lt;", stream);
    else if (c == '>')
      fputs("&gt;", stream);
    else if (c == '"')
      fputs("&quot;", stream);
    else if (c == '\'')
      fputs("&#39;", stream);
    else if (c == '\t')
      fputs("&#9;", stream);
    else if (c == UINT32_MAX || report_hidden(c) || c == 0xfffe || c == 0xffff) {
      spell(spelt, sizeof spelt, c, *at);
      fputs(spelt, stream);
    } else {
      fwrite(at, 1, length, stream);
    }
    at += length;
    size -= length;
  }
}
