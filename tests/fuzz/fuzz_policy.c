/* A policy: what is understood has values that are allowed and lies in the text, whatever else is in it. */
#include "shim/policy_text.h"
#include "tests/fuzz/fuzz.h"

#include "compat_table.h"

#include <stdlib.h>
#include <string.h>

struct text {
  const char *bytes;
  size_t size;
  unsigned line, lines;
};

static void look(struct text *text, unsigned line) {
  FUZZ_HOLDS(line >= text->line && line <= text->lines);
  text->line = line;
}

static void take(void *user, const struct policy_directive *d) {
  struct text *text = user;
  look(text, d->line);
  FUZZ_HOLDS(d->kind <= POLICY_SHADOW && d->stage <= SGL_COMPAT_STAGE_TOMBSTONE &&
             d->serve <= SGL_COMPAT_SERVE_REFERENCE && d->release < compat_releases_count && d->share <= 10000 &&
             (d->symbol < COMPAT_SYMBOLS || d->symbol == POLICY_ALL));
  if (d->kind == POLICY_EXTEND)
    FUZZ_HOLDS(d->reason >= text->bytes && d->reason + d->reason_length <= text->bytes + text->size && d->until > 0 &&
               d->reason_length > 0 && !memchr(d->reason, '\n', (size_t)d->reason_length));
  FUZZ_HOLDS(d->shadow.budget <= 1000 && d->shadow.tolerance >= 0);
}

static void fault(void *user, unsigned line, const char *words) {
  look(user, line);
  FUZZ_HOLDS(*words);
  for (; *words; words++)
    FUZZ_HOLDS(*words >= ' ' && *words <= '~');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char *bytes = malloc(size); /* of exactly that size, so that a byte too much is seen */
  if (!bytes && size)
    return 0;
  if (size)
    memcpy(bytes, data, size);
  struct text text = {bytes, size, 1, 1};
  for (size_t i = 0; i < size; i++)
    text.lines += data[i] == '\n';
  policy_parse(bytes, size, take, fault, &text);
  free(bytes);
  return 0;
}
