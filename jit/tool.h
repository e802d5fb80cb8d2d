/* What the commands sgl-jit and sgl-compat print alike, and how they end. Not part of the libraries. */
#ifndef SGL_TOOL_H
#define SGL_TOOL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum { STATUS_OK = 0, STATUS_BAD = 1, STATUS_USAGE = 2 };

/* "sgl-jit": of the command that this is linked into, which defines it. */
extern const char tool_name[];

/* "sgl-jit: ..." as one line on stderr. */
__attribute__((format(printf, 1, 2))) void tool_error(const char *format, ...);
/* The same, and the end, before anything was done. */
__attribute__((format(printf, 1, 2), noreturn)) void tool_usage(const char *format, ...);
/* realloc that ends the command where there is no memory. */
void *tool_realloc(void *memory, size_t size);

enum tool_colour { TOOL_PLAIN = 0, TOOL_RED = 31, TOOL_GREEN = 32, TOOL_YELLOW = 33 };
/* Prints text with its control characters made visible, in a colour on a terminal, and blanks up to `width`. */
void tool_print(const char *text, enum tool_colour colour, int width);
/* A JSON string of any bytes: what is no UTF-8 becomes \xNN. NULL gives null. */
json_t *tool_json(const char *text);
/* Prints the value and frees it. */
void tool_print_json(json_t *value);

/* The exit status to end with: output that did not arrive is an error, also of --help. */
int tool_finish(int status);

#endif
