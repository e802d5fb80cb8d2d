/* The one parser of policies: of files, of the environment variable, and of the API. It knows the catalog's names, and
 * nothing of where a text comes from. docs/sgl-compat.1 has the language. */
#ifndef SGL_COMPAT_POLICY_TEXT_H
#define SGL_COMPAT_POLICY_TEXT_H

#include "shim/include/sgl_kernel_compat.h"

#include <stdbool.h>
#include <stddef.h>

enum policy_kind {
  POLICY_STAGE,   /* NAME = STAGE */
  POLICY_DEFAULT, /* default = RELEASE */
  POLICY_DENY,    /* deny NAME */
  POLICY_EXTEND,  /* extend NAME until DATE reason TEXT */
  POLICY_RAMP,    /* ramp NAME SHARE% to STAGE */
  POLICY_SERVE,   /* serve NAME = HOW */
  POLICY_SHADOW,  /* shadow NAME first=N every=M budget=MS tolerance=T return=jit|other */
};

/* first and every 0: never. */
struct policy_shadow {
  unsigned first, every; /* the first calls, and one of so many after them */
  unsigned budget;       /* milliseconds in each second; 0: no limit */
  double tolerance;      /* of the difference's norm over the other output's; 0: the kernel's own */
  bool return_other;     /* the caller gets the other side's result */
};

#define POLICY_ALL (~0u)

/* A directive. What its kind does not have is 0. */
struct policy_directive {
  enum policy_kind kind;
  unsigned line;          /* from 1 */
  unsigned symbol;        /* index into compat_symbols; POLICY_ALL for `*` */
  sgl_compat_stage stage; /* STAGE, RAMP */
  unsigned release;       /* DEFAULT: index into compat_releases */
  unsigned share;         /* RAMP: hundredths of a percent */
  int until;              /* EXTEND: 20270331, the last day, UTC */
  const char *reason;     /* EXTEND: in the text, not ended */
  int reason_length;
  sgl_compat_serve serve;
  struct policy_shadow shadow;
};

typedef void policy_take(void *user, const struct policy_directive *directive);
/* One line without a newline, and without the place. */
typedef void policy_fault(void *user, unsigned line, const char *text);

/* Calls take for each directive, in order, and fault for each one that is not understood, which is left out. Any bytes
 * may be in the text. No memory is allocated. */
void policy_parse(const char *text, size_t size, policy_take *take, policy_fault *fault, void *user);

/* The index of a name into compat_symbols; COMPAT_SYMBOLS when it is none. */
unsigned policy_symbol(const char *name, size_t length);
/* "silent", ..., and "auto", ... */
const char *policy_stage_name(sgl_compat_stage stage);
const char *policy_serve_name(sgl_compat_serve serve);

#endif
