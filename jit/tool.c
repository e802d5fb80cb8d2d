#include "jit/tool.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((format(printf, 1, 0))) static void say_error(const char *format, va_list list) {
  char line[4096];
  vsnprintf(line, sizeof line, format, list);
  for (char *c = line; *c; c++) { /* one line, and nothing that moves the cursor */
    unsigned char next = (unsigned char)c[1];
    if ((unsigned char)*c < 0x20 || *c == 0x7f)
      *c = '?';
    else if ((unsigned char)*c == 0xc2 && next >= 0x80 && next < 0xa0)
      c[0] = c[1] = '?';
  }
  fflush(stdout); /* the order of both on a terminal */
  fprintf(stderr, "%s: %s\n", tool_name, line);
}

void tool_error(const char *format, ...) {
  va_list list;
  va_start(list, format);
  say_error(format, list);
  va_end(list);
}

void tool_usage(const char *format, ...) {
  va_list list;
  va_start(list, format);
  say_error(format, list);
  va_end(list);
  exit(STATUS_USAGE);
}

void *tool_realloc(void *memory, size_t size) {
  void *grown = realloc(memory, size ? size : 1);
  if (!grown) {
    tool_error("out of memory");
    exit(STATUS_BAD);
  }
  return grown;
}

static bool has_colour(void) {
  const char *no_color = getenv("NO_COLOR"), *terminal = getenv("TERM");
  return isatty(STDOUT_FILENO) && !(no_color && *no_color) && !(terminal && strcmp(terminal, "dumb") == 0);
}

void tool_print(const char *text, enum tool_colour colour, int width) {
  bool coloured = colour != TOOL_PLAIN && has_colour();
  if (coloured)
    printf("\x1b[%dm", (int)colour);
  for (; *text; text++) {
    unsigned char c = (unsigned char)*text, next = (unsigned char)text[1];
    if (c < 0x20 || c == 0x7f) {
      width -= printf("\\x%02x", c);
    } else if (c == 0xc2 && next >= 0x80 && next < 0xa0) { /* those beyond ASCII move the cursor too */
      width -= printf("\\x%02x", next);
      text++;
    } else {
      putchar(c);
      width -= (c & 0xc0) != 0x80; /* one column a character of UTF-8 */
    }
  }
  if (coloured)
    printf("\x1b[0m");
  printf("%*s", width > 0 ? width : 0, "");
}

json_t *tool_json(const char *text) {
  json_t *value = text ? json_string(text) : json_null();
  if (value)
    return value;
  char *escaped = tool_realloc(NULL, strlen(text) * 4 + 1), *end = escaped;
  for (; *text; text++)
    end += (unsigned char)*text < 0x80 ? sprintf(end, "%c", *text) : sprintf(end, "\\x%02x", (unsigned char)*text);
  value = json_string(escaped);
  free(escaped);
  return value;
}

void tool_print_json(json_t *value) {
  json_dumpf(value, stdout, JSON_INDENT(2)); /* what did not arrive is found by tool_finish() */
  putchar('\n');
  json_decref(value);
}

int tool_finish(int status) {
  errno = 0;
  if (fflush(stdout) != 0 || ferror(stdout)) {
    fprintf(stderr, "%s: standard output: %s\n", tool_name, errno ? strerror(errno) : "it could not all be written");
    return STATUS_BAD;
  }
  return status;
}
