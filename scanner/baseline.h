/* Uses that were accepted before (baseline.c). A baseline is a text: a first line that says so, then one line for each
 * use or for several equal ones: count, fingerprint, name, path and, for people, the source line, with tabs between. */
#ifndef SGL_SCANNER_BASELINE_H
#define SGL_SCANNER_BASELINE_H

#include "scanner/report.h"

#define BASELINE_START "# sgl-migrate baseline"

struct baseline_entry {
  uint32_t line;  /* in the baseline */
  uint32_t count; /* equal uses of one file */
  uint32_t seen;  /* of those, found again */
  char *symbol, *path;
  struct fingerprint print;
};

struct baseline {
  char *name; /* of the file, as the user gave it */
  struct baseline_entry *entries;
  size_t count, capacity;
  size_t moved; /* uses that were found again in another file */
};

/* Reads a baseline's text; calls fault() for each line that is wrong. Returns the number of faults. To be freed in any
 * case. */
size_t baseline_parse(struct baseline *baseline, const char *name, const char *text, size_t size,
                      void (*fault)(void *user, uint32_t line, const char *what), void *user);
void baseline_free(struct baseline *baseline);
/* Marks the findings of the report's one root that the baseline accepts, and counts its entries' uses. */
void baseline_match(struct baseline *baseline, struct scan *scan);
/* A use that is accepted and was not found. Nobody looked for it in a file that could not be analysed, nor for a name
 * that the chosen kernel release still has. */
bool baseline_is_stale(const struct baseline_entry *entry, const struct scan *scan);
/* The text of a baseline that accepts all live uses of the scan; owned by the caller. */
char *baseline_text(const struct scan *scan, size_t *size, size_t *uses);
/* Marks them. */
void baseline_accept_all(struct scan *scan);

#endif
