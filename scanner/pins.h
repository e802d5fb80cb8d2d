/* Requirement pins of the kernel's wheels and of sglang. They are no results: they choose --kernel and --to when these
 * are not given, and the summary names those that contradict what was found.
 *
 *   pins.c          which files of a tree have pins, and which pin decides
 *   pins_read.c     the pins of one file
 *   pins_version.c  which releases a specifier allows
 */
#ifndef SGL_SCANNER_PINS_H
#define SGL_SCANNER_PINS_H

#include "scanner/scanner.h"

/* In the order in which pins of equal weight count. */
enum pins_kind {
  PINS_NONE,
  PINS_TOML,         /* pyproject.toml, Pipfile */
  PINS_PYTHON,       /* setup.py */
  PINS_CONFIG,       /* setup.cfg */
  PINS_REQUIREMENTS, /* requirements*.txt and what they include */
  PINS_ENVIRONMENT,  /* environment.yml of conda */
  PINS_LOCK,         /* uv.lock, poetry.lock, pdm.lock, pylock.toml */
  PINS_JSON_LOCK,    /* Pipfile.lock */
  PINS_SCRIPT,       /* pip install in container files, CI files and shell scripts */
  PINS_METADATA,     /* PKG-INFO and METADATA of a package */
};

struct pin {
  char *path;         /* as the user would type it */
  uint32_t line;      /* 0: the whole file */
  char *text;         /* "sglang-kernel==0.4.5" */
  char *specifier;    /* "==0.4.5" */
  char *release;      /* what it names exactly, else the newest known release that it allows; NULL: it allows none */
  const char *kernel; /* the release of the kernel: release, or the one that this sglang pins; NULL: not known */
  bool sglang;        /* of sglang, not of the kernel */
  bool exact;
  enum pins_kind kind;
};

struct pins {
  const struct catalog *catalog;
  struct pin *list;
  size_t count, capacity;
};

/* All pins of a tree that was walked, and of the folders above it up to the top of its git work tree. */
void pins_collect(struct pins *pins, const struct scan *scan);
/* The pins of a requirements file, or what a site-packages folder has installed. Returns false after writing one line.
 */
bool pins_open(struct pins *pins, const char *path, char *message, size_t message_size);
void pins_free(struct pins *pins);
/* The pin that says which kernel, or which sglang, the tree is for: the newest exact one, else the newest that a range
 * allows; one of sglang says the kernel when there is none of the kernel itself. NULL when there is none. */
const struct pin *pins_kernel(const struct pins *pins);
const struct pin *pins_sglang(const struct pins *pins);
/* The lines of the summary: pins that contradict each other, or the live uses of the scans. */
void pins_contradictions(const struct pins *pins, const struct scan *scans, size_t scans_count,
                         void (*say)(void *user, const char *line), void *user);

/* pins_read.c: what a file with this path may hold, and the pins in its bytes. `shown` is the path of the pins. For
 * each file that a requirements file includes, include() is called with its path as written. */
enum pins_kind pins_kind(const char *path);
void pins_read(struct pins *pins, enum pins_kind kind, const char *shown, const uint8_t *bytes, size_t size,
               void (*include)(void *user, const char *path), void *user);
/* Adds a pin of distribution `name`; what is no specifier, or allows everything, is left out. */
void pins_add(struct pins *pins, enum pins_kind kind, const char *shown, uint32_t line, const char *name, bool sglang,
              const char *specifier);

/* pins_version.c. A specifier is what stands behind the name: "==0.4.5", ">=0.4,<0.5", "~=0.4.1", "==0.4.*", poetry's
 * "^0.4" and "~0.4", conda's "=0.4". */
bool pins_specifier_valid(const char *specifier);
bool pins_specifier_exact(const char *specifier);
bool pins_specifier_allows(const char *specifier, const char *version);
/* The release that it names exactly, else the newest of the list that it allows (a pre-release only when there is
 * nothing else); NULL when there is none. Owned by the caller. */
char *pins_specifier_newest(const char *specifier, const char *const *releases, unsigned count);

#endif
