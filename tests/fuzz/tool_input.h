/* For targets of sgl-compat's parsers: the input in place of any file, and what is wrong with it is said to nobody. */
#ifndef SGL_TESTS_FUZZ_TOOL_INPUT_H
#define SGL_TESTS_FUZZ_TOOL_INPUT_H

#include "shim/sgl_compat_tool.h"

#include <stdio.h>
#include <string.h>

static const uint8_t *input;
static size_t input_size;
const char tool_name[] = "fuzz";

static void take_input(const uint8_t *data, size_t size) {
  if (!input)
    stderr = fopen("/dev/null", "w");
  input = data;
  input_size = size;
}

/* In place of sgl_compat.c's. */
char *tool_read(const char *path, size_t *size) {
  (void)path;
  char *text = tool_realloc(NULL, input_size + 1);
  memcpy(text, input, input_size);
  text[input_size] = '\0';
  *size = input_size;
  return text;
}

#endif
