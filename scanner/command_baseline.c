/* --baseline and --write-baseline. */
#include "scanner/baseline.h"
#include "scanner/command.h"
#include "scanner/file.h"

#include <stdlib.h>

#define LARGEST ((size_t)64 << 20)
#define FAULTS_SHOWN 20

struct faults {
  const char *name;
  size_t count;
};

static void say_fault(void *user, uint32_t line, const char *what) {
  struct faults *faults = user;
  if (faults->count++ < FAULTS_SHOWN)
    fprintf(stderr, "sgl-migrate: %s:%u: %s\n", faults->name, line, what);
}

void command_read_baseline(const char *path, struct baseline *baseline) {
  char message[200];
  size_t size;
  char *text = file_read(path, LARGEST, &size, message, sizeof message);
  if (!text)
    usage_error("%s: %s", path, message);
  struct faults faults = {.name = path};
  baseline_parse(baseline, path, text, size, say_fault, &faults);
  free(text);
  if (faults.count > FAULTS_SHOWN)
    fprintf(stderr, "sgl-migrate: %s: %zu more faults\n", path, faults.count - FAULTS_SHOWN);
  if (faults.count)
    exit(EXIT_USAGE);
}

bool command_write_baseline(const char *path, struct scan *scan) {
  char message[200];
  size_t size, uses;
  char *text = baseline_text(scan, &size, &uses);
  bool done = file_replace(path, text, size, message, sizeof message);
  free(text);
  if (!done) {
    fprintf(stderr, "sgl-migrate: %s: %s\n", path, message);
    return false;
  }
  fprintf(stderr, "sgl-migrate: %s: baseline with %zu use%s written\n", path, uses, report_plural(uses));
  baseline_accept_all(scan);
  return true;
}
