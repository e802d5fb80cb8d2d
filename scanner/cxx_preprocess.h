/* Macros and conditions: what of a file is compiled when no macro comes from the command line. */
#ifndef SGL_CXX_PREPROCESS_H
#define SGL_CXX_PREPROCESS_H

#include "scanner/arena.h"
#include "scanner/cxx_lexer.h"
#include "scanner/word_filter.h"

struct cxx_string {
  const uint8_t *text;
  uint32_t length;
};

enum { CXX_SHAPES_UNKNOWN, CXX_SHAPES_NOTHING, CXX_SHAPES_SCOPES };

struct cxx_macro {
  struct cxx_macro *next; /* in its bucket */
  struct cxx_string name, body;
  struct cxx_string *parameters;
  uint16_t parameters_count;
  bool function_like, variadic, defined;
  uint8_t shapes;  /* cxx_unit.c */
  bool plain;      /* cxx_pasted.c: it pastes nothing, nor does a macro that it uses */
  bool measured;   /* cxx_limits.c */
  double weight;   /* tokens of its own that a use becomes */
  double *repeats; /* how often each parameter comes out */
};

#define CXX_MACRO_BUCKETS 4096

/* The macros that are defined at one place of a translation unit. Bodies are not copied: the bytes have to stay. */
struct cxx_macros {
  struct arena *arena;
  struct cxx_macro *buckets[CXX_MACRO_BUCKETS];
  struct word_filter filter;
  /* Can `#include` find this header? NULL: never. */
  bool (*has_include)(void *user, const uint8_t *name, size_t length);
  void *user;
};

uint32_t cxx_hash(const uint8_t *text, size_t length);
/* The macro of that name, also one that is no longer defined; NULL when there never was one. */
struct cxx_macro *cxx_macro_find(const struct cxx_macros *macros, const uint8_t *name, size_t length);
bool cxx_macro_defined(const struct cxx_macros *macros, const uint8_t *name, size_t length);
/* What a compiler defines by itself for this kind of source. */
void cxx_macros_predefine(struct cxx_macros *macros, bool cuda);
/* A #define: tokens first (the name) up to the CXX_NEWLINE at last. */
void cxx_macro_define(struct cxx_macros *macros, const struct cxx_tokens *tokens, uint32_t first, uint32_t last);
void cxx_macro_undefine(struct cxx_macros *macros, const uint8_t *name, size_t length);
/* The value of an #if condition: tokens first up to last (not included). What cannot be evaluated is false. */
bool cxx_condition(struct cxx_macros *macros, const struct cxx_tokens *tokens, uint32_t first, uint32_t last);

#endif
