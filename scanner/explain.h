/* What an error message or a name is about: explain.c finds names of the catalog, explain_faults.c messages about
 * anything else, explain_changes.c names that are still there; explain_print.c tells it. */
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
  const struct catalog_symbol *symbol;
  enum subject subject;
  const char *cause; /* one or two sentences on the message; NULL: a bare name was given */
};

/* A message that is about no name of the catalog. */
struct explained_fault {
  const char *title;
  char *cause; /* owned */
  const char *remedy;
  bool consequence; /* of a fault that the message does not say */
};

struct explanation {
  struct explained_fault *faults; /* in the order of the text */
  size_t faults_count;
  struct explained *list; /* in the order of the text, each symbol once */
  size_t count;
  const char *unknown; /* NULL, or the first word that may have been meant as a name; owned */
};

/* A pasted text as one line without colours, links and other control sequences: terminals break lines anywhere. Owned
 * by the caller. */
char *explain_plain(const char *text);
void explain(const struct catalog *catalog, const char *text, struct explanation *explanation);
void explain_free(struct explanation *explanation);
/* The ids that are spelt most like the word, best first: up to `most`. Returns how many. */
size_t explain_near(const struct catalog *catalog, const char *word, const struct catalog_symbol **near, size_t most);

/* explain_pattern.c: does the text begin with the pattern? PACKAGE, NAMESPACE and EXTENSION in it stand for what the
 * catalog's library has there; one that it has not fits nowhere. The length of what fits, or 0. */
#define PACKAGE "\1"
#define NAMESPACE "\2"
#define EXTENSION "\3"
size_t explain_pattern(const struct catalog_library *library, const char *pattern, const char *text);

/* explain_faults.c: adds what the text says besides names. A symbol that nothing defines and that is not in the catalog
 * may be torch's. When all is read, what follows from another fault is dropped. */
void explain_faults(const struct catalog *catalog, const char *text, struct explanation *explanation);
void explain_symbol(struct explanation *explanation, const char *name, size_t length);
/* A name or module that is said to be missing, although it never left. */
void explain_alive(struct explanation *explanation, const char *name, size_t length);
void explain_drop_consequences(struct explanation *explanation);

/* explain_changes.c: tells on standard output what changed of each name in the text; message: it is no bare name, and
 * names functions only in what it says of their arguments. first: nothing has been printed. Returns how many changes.
 */
size_t explain_changes(const struct catalog *catalog, const char *text, bool message, bool first);

/* On standard output. */
void explain_print_fault(const struct explained_fault *fault);
void explain_print(const struct catalog *catalog, const struct explained *explained);
/* The names with a line for each. */
void explain_list(const struct explanation *explanation);

#endif
