/* Strings of any bytes, as formats want them. */
#ifndef SGL_COMPAT_TEXT_H
#define SGL_COMPAT_TEXT_H

#include <stdio.h>

/* A JSON string with its quotes. A byte that is no UTF-8 becomes \xNN, as text. */
void text_json(FILE *out, const char *text);

/* A label's value of Prometheus, without quotes; the same for bytes that are no UTF-8. */
void text_prometheus(FILE *out, const char *text);

#endif
