#include "shim/text.h"

/* The length of the character of UTF-8 at `at` (the Unicode Standard, table 3-7); 0: it is none. */
static int character(const unsigned char *at) {
  unsigned char low = 0x80, high = 0xbf;
  int length = at[0] < 0x80 ? 1 : at[0] >= 0xc2 && at[0] < 0xe0 ? 2 : at[0] >= 0xe0 && at[0] < 0xf0 ? 3 : 0;
  if (at[0] >= 0xf0 && at[0] < 0xf5)
    length = 4;
  if (at[0] == 0xe0)
    low = 0xa0;
  else if (at[0] == 0xed)
    high = 0x9f;
  else if (at[0] == 0xf0)
    low = 0x90;
  else if (at[0] == 0xf4)
    high = 0x8f;
  for (int i = 1; i < length; i++, low = 0x80, high = 0xbf)
    if (at[i] < low || at[i] > high)
      return 0;
  return length;
}

/* The rest, after what the format escapes itself. */
static int plain(FILE *out, const unsigned char *at) {
  int length = character(at);
  if (length == 0)
    fprintf(out, "\\\\x%02x", *at);
  for (int i = 0; i < length; i++)
    putc(at[i], out);
  return length ? length : 1;
}

void text_json(FILE *out, const char *text) {
  putc('"', out);
  for (const unsigned char *at = (const unsigned char *)text; *at;) {
    if (*at == '"' || *at == '\\')
      fprintf(out, "\\%c", *at++);
    else if (*at < ' ')
      fprintf(out, "\\u%04x", *at++);
    else
      at += plain(out, at);
  }
  putc('"', out);
}

void text_prometheus(FILE *out, const char *text) {
  for (const unsigned char *at = (const unsigned char *)text; *at;) {
    if (*at == '"' || *at == '\\')
      fprintf(out, "\\%c", *at++);
    else if (*at == '\n') {
      fputs("\\n", out);
      at++;
    } else
      at += plain(out, at);
  }
}
