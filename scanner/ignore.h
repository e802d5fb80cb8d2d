/* Comments that accept a use (ignore.c); docs/sgl-migrate.1 describes them under IGNORE COMMENTS. */
#ifndef SGL_SCANNER_IGNORE_H
#define SGL_SCANNER_IGNORE_H

#include "scanner/scanner.h"

struct ignore_name {
  const struct catalog_symbol *symbol; /* NULL: a name of scan --changed, in another scan */
  bool used;                           /* a finding was there */
};

struct ignore {
  uint32_t line;        /* of the comment */
  uint32_t first, last; /* the lines that it speaks for */
  struct ignore_name *names;
  size_t names_count;
  char *until, *reason; /* NULL: not given */
  bool expired;
  char *fault; /* why it does nothing; NULL when it is well-formed */
};

/* Class of a byte; bits above 3 do not count. The numbers are those of text.h. */
enum { IGNORE_CODE = 0, IGNORE_COMMENT = 1, IGNORE_STRING = 2 };

/* A front's text: the file, or what a notebook's cells make together. */
struct ignore_text {
  const uint8_t *bytes;
  size_t size;
  const uint8_t *classes; /* one a byte */
  enum {
    IGNORE_BRACES_PLAIN, /* say nothing about where a statement ends: ${x} */
    IGNORE_BRACES_COUNT, /* lines go on in them, as in brackets */
    IGNORE_BRACES_END,   /* end a statement */
  } braces;
  uint32_t (*line)(const void *user, size_t offset); /* line in the file of an offset here */
  const void *user;
};

/* Is there anything to read? */
bool ignore_wanted(const uint8_t *bytes, size_t size);
/* Adds the comments of the text to the result. */
void ignore_read(const struct scan *scan, struct result *result, const struct ignore_text *text);
/* Is a finding there accepted? Then fix must leave it alone. */
bool ignore_covers(const struct result *result, uint32_t line, const struct catalog_symbol *symbol);
/* When all findings are there: marks those that are accepted, and takes out what only the comments themselves name. */
void ignore_apply(struct result *result);
/* What is wrong with the comments: malformed, expired, without a finding. A name that the chosen kernel release still
 * has can have none, so that says nothing. */
void ignore_faults(const struct scan *scan, const struct result *result,
                   void (*fault)(void *user, uint32_t line, const char *text), void *user);
void ignore_free(struct result *result);

#endif
