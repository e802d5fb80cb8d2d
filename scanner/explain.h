/* What an error message or a name is about (explain.c); explain_print.c tells it. */
#ifndef SGL_SCANNER_EXPLAIN_H
#define SGL_SCANNER_EXPLAIN_H

#include "catalog/catalog.h"

/* What a name in a text is. */
enum subject {
  SUBJECT_WORD,     /* any name of the catalog */
  SUBJECT_PYTHON,   /* an attribute of a module */
  SUBJECT_MODULE,   /* a module path */
  SUBJECT_OPERATOR, /* a torch operator, without its namespace */
  SUBJECT_CXX,      /* a C++ name */
  SUBJECT_MANGLED,  /* a mangled C++ name */
  SUBJECT_FILE,     /* a path */
  SUBJECT_COUNT,
};

struct explained {
  const struct catalog_symbol *symbol; /* NULL: the text names a symbol of torch itself */
  enum subject subject;
  const char *cause; /* one or two sentences on the message; NULL: a bare name was given */
};

struct explanation {
  struct explained *list; /* in the order of the text, each symbol once */
  size_t count;
  const char *unknown; /* NULL, or the first word that may have been meant as a name; owned */
};

void explain(const struct catalog *catalog, const char *text, struct explanation *explanation);
void explain_free(struct explanation *explanation);
/* The ids that are spelt most like the word, best first: up to `most`. Returns how many. */
size_t explain_near(const struct catalog *catalog, const char *word, const struct catalog_symbol **near, size_t most);

/* On standard output. */
void explain_print(const struct catalog *catalog, const struct explained *explained);
/* The names with a line for each. */
void explain_list(const struct explanation *explanation);

#endif
