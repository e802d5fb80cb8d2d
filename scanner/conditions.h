/* Conditions around a use that are narrower than what the new function takes: `tokens <= 16` around a call that may
 * now have 64. The fronts know which conditions a use stands under; what is narrow, and how it is said, is here. */
#ifndef SGL_CONDITIONS_H
#define SGL_CONDITIONS_H

#include "scanner/scanner.h"

#define CONDITIONS_MOST 16

struct conditions_found {
  size_t start, end; /* the comparison or call, in the bytes */
  const char *takes; /* what the new function takes there; may have one %u for `limit` */
  unsigned limit;
};

struct conditions {
  const uint8_t *bytes; /* the source text */
  const struct catalog_limits *limits;
  /* The expression that a name or attribute [*start, *end) was given once, or false: a helper, a constant. */
  bool (*value)(void *user, size_t *start, size_t *end);
  void *user;
  struct conditions_found list[CONDITIONS_MOST];
  unsigned count;
  unsigned steps; /* expressions that were looked at: helpers of helpers come to an end */
};

/* The conditions of a text for a route; false when the route has no limits, so that none can be narrow. */
bool conditions_open(struct conditions *conditions, const uint8_t *bytes, const struct catalog_route *route);
/* Looks at an expression of Python or C++ that is true where the use stands (holds), or false there. */
void conditions_read(struct conditions *conditions, size_t start, size_t end, bool holds);
/* "; narrower than ...", owned by the caller; NULL when none is. `line_of` gives the line of an offset. */
char *conditions_text(const struct conditions *conditions, uint32_t (*line_of)(void *user, size_t offset), void *user);

#endif
