/* What the index wants to know of every C++ file (cxx_facts.c). */
#ifndef SGL_CXX_FACTS_H
#define SGL_CXX_FACTS_H

#include "scanner/scanner.h"

/* The character in front of each text. */
enum cxx_fact {
  CXX_FACT_INCLUDE = '<', /* the base name in an #include, read roughly: comments or not */
  CXX_FACT_MACRO = '(',   /* the name of a function-like macro, likewise */
  CXX_FACT_UNCLEAR = '%', /* directives are written so that macros may have been missed */
};

/* One text after the other, owned by the caller. */
char *cxx_facts_read(const uint8_t *bytes, size_t size);
/* The text behind `text`, the first one for NULL; NULL at the end. Its kind is text[-1]. */
const char *cxx_facts_next(const char *facts, const char *text);

#endif
