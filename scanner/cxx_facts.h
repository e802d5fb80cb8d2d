/* What a C++ file tells the others, as a list of facts, and the key of a fact, which says in a cache who asked for it.
 *
 * A file gives three lists: what its bytes say (cxx_facts.c), what its tokens say (cxx_told.c), and what it defines,
 * which other files have a say in (cxx_index.c). */
#ifndef SGL_CXX_FACTS_H
#define SGL_CXX_FACTS_H

#include "scanner/scanner.h"

/* The character in front of each text. */
enum cxx_fact {
  /* From its bytes: */
  CXX_FACT_INCLUDE = '<', /* the base name in an #include, read roughly: comments or not */
  CXX_FACT_MAYBE = '(',   /* the name of a function-like macro, likewise */
  CXX_FACT_UNCLEAR = '%', /* directives are written so that macros may have been missed */
  /* From its tokens: */
  CXX_FACT_MACRO = 'm',     /* the name of a function-like macro */
  CXX_FACT_PASTES = 'p',    /* of one that pastes tokens, or uses macros that may */
  CXX_FACT_REGISTRAR = 'r', /* a function that registers operators in the library's namespace */
  CXX_FACT_RENAMED = 'n',   /* a catalog name that a macro has */
  CXX_FACT_CANDIDATE = 'c', /* it may define a function of the catalog */
  /* What it defines: */
  CXX_FACT_FUNCTION = 'd',  /* the function of the symbol with this id */
  CXX_FACT_ELSEWHERE = 'e', /* another function with this catalog name */
  /* In no list, but asked for: */
  CXX_FACT_CONTENT = 'f', /* of the file with this path */
  CXX_FACT_HEADER = 'h',  /* which files have this base name */
  CXX_FACT_WAYS = 'w', /* how the compile databases have the file with this path compiled; "": whether there are any */
};

/* One text after the other; the list is owned by the caller. */
struct cxx_facts {
  char *text;
  size_t size, capacity;
};
void cxx_facts_add(struct cxx_facts *facts, enum cxx_fact kind, const void *text, size_t length);
/* Behind the last one; returns the list. */
char *cxx_facts_end(struct cxx_facts *facts);
/* The text behind `text`, the first one for NULL; NULL at the end. Its kind is text[-1]. */
const char *cxx_facts_next(const char *facts, const char *text);
/* Of the list with its end. */
size_t cxx_facts_size(const char *facts);

/* What the bytes of a file say. */
char *cxx_facts_read(const uint8_t *bytes, size_t size);

/* --- cxx_asked.c -------------------------------------------------------------------------------------------------- */

/* A set of keys. Two facts with one key cost an analysis too many. */
struct cxx_keys {
  uint32_t *slots; /* 0: free */
  uint32_t count, capacity;
};
uint32_t cxx_key(enum cxx_fact kind, const void *text, size_t length);
void cxx_keys_add(struct cxx_keys *keys, uint32_t key);
bool cxx_keys_has(const struct cxx_keys *keys, uint32_t key);
void cxx_keys_free(struct cxx_keys *keys);

/* From now on the facts that this thread asks for go into `keys`; NULL: nowhere. Returns where they went before. */
struct cxx_keys *cxx_asked_into(struct cxx_keys *keys);
/* Somebody asks for a fact. */
void cxx_asked(enum cxx_fact kind, const void *text, size_t length);

#endif
