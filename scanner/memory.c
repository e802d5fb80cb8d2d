/* Memory that is there, or the end of the process; text made of it. */
#include "scanner/scanner.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void scan_out_of_memory(void) {
  fputs("sgl-migrate: out of memory\n", stderr);
  _exit(EXIT_FAULT);
}

void *scan_alloc(void *old, size_t size) {
  void *new = realloc(old, size ? size : 1);
  if (!new)
    scan_out_of_memory();
  return new;
}

char *scan_format_list(const char *format, va_list list) {
  va_list again;
  va_copy(again, list);
  int length = vsnprintf(NULL, 0, format, again);
  va_end(again);
  char *text = scan_alloc(NULL, (size_t)(length < 0 ? 0 : length) + 1);
  text[0] = '\0';
  if (length > 0)
    vsnprintf(text, (size_t)length + 1, format, list);
  return text;
}

char *scan_format(const char *format, ...) {
  va_list list;
  va_start(list, format);
  char *text = scan_format_list(format, list);
  va_end(list);
  return text;
}
