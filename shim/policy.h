/* The effective policy of this process: one byte for each symbol, which every call reads, and behind it where the value
 * comes from.
 *
 *   policy.c          from the directives to the bytes; the public functions
 *   policy_text.c     the parser
 *   policy_sources.c  the files and variables, in their order
 */
#ifndef SGL_COMPAT_POLICY_H
#define SGL_COMPAT_POLICY_H

#include "shim/policy_text.h"

#include "compat_table.h"

#include <stdatomic.h>
#include <stdint.h>

/* The byte of a symbol: its stage, and */
enum {
  POLICY_STAGE_BITS = 0x03,
  POLICY_IS_SET = 0x04, /* somebody has set the stage; else it is the catalog's, for what this library serves itself */
  POLICY_SERVE_SHIFT = 3,
  POLICY_SERVE_BITS = 0x18,
  POLICY_KNOWN = 0x80 /* without it the sources have not been read yet */
};

extern _Atomic uint8_t policy_bytes[COMPAT_SYMBOLS];

/* Reads the sources, once in a process. Returns the byte of the symbol. */
uint8_t policy_load(unsigned symbol);

/* For commands: the policy of this text alone, in place of all sources, and of a job that is in no ramp. Comes before
 * anything else here. What is not understood is left out. */
void policy_load_text(const char *name, const char *text, size_t size);

/* What holds for a symbol now. Takes no lock but in the first call of the process. */
static inline uint8_t policy_of(unsigned symbol) {
  uint8_t byte = atomic_load_explicit(&policy_bytes[symbol], memory_order_relaxed);
  return byte & POLICY_KNOWN ? byte : policy_load(symbol);
}
static inline sgl_compat_stage policy_stage(uint8_t byte) {
  return (sgl_compat_stage)(byte & POLICY_STAGE_BITS);
}
static inline sgl_compat_serve policy_serve(uint8_t byte) {
  return (sgl_compat_serve)((byte & POLICY_SERVE_BITS) >> POLICY_SERVE_SHIFT);
}

/* All that is known of one symbol. */
struct policy_facts {
  sgl_compat_stage stage;
  bool is_set;
  enum policy_kind kind; /* of the directive that decides the stage; POLICY_STAGE for the catalog too */
  bool expired;          /* an extension decides, whose day is over */
  char extension[700];   /* the one that holds today, also of a silent name; "" without one */
  char from[700];        /* "/etc/sgl-kernel-compat/policy:3: deny" */
  char ramp[700];        /* a ramp's outcome; "" without one */
  sgl_compat_serve serve;
  char serve_from[600];
  struct policy_shadow shadow; /* never, where there is no kernel that can be compared */
  char shadow_from[600];
};
struct policy_facts policy_facts(unsigned symbol);

/* 20261201, UTC. */
int policy_today(void);

#endif
