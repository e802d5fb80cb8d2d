/* fix: edits are composed, the new content is analysed, and only then the file is replaced. */
#include "scanner/command.h"
#include "scanner/report.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

/* Writes file->bytes over what was there. A stop signal waits until that is said as well. */
static bool write_and_say(const struct source_file *file, const char *path, size_t edits, const uint8_t *old_bytes,
                          size_t old_size, char *message, size_t message_size) {
  sigset_t stop, before;
  sigemptyset(&stop);
  sigaddset(&stop, SIGINT);
  sigaddset(&stop, SIGTERM);
  sigaddset(&stop, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &stop, &before);
  bool done = edit_write(file->full_path, old_bytes, old_size, file->bytes, file->size, message, message_size);
  if (done) {
    printf("fixed %s (%zu edit%s)\n", path, edits, edits == 1 ? "" : "s");
    fflush(stdout);
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return done;
}

/* Edits one file. The new content is analysed before it is written: a rewrite that would be rewritten again is a fault
 * of the rule, and then the file is left alone. On success the file's result is the one of its new content. */
static bool fix_file(const struct scan *scan, struct source_file *file) {
  char message[256];
  uint8_t *new_bytes;
  size_t new_size, edits = file->result.edits_count;
  char *path = report_path(scan, file->path);
  bool done =
      edit_compose(file->bytes, file->size, file->result.edits, edits, &new_bytes, &new_size, message, sizeof message);
  if (done) {
    const uint8_t *old_bytes = file->bytes;
    size_t old_size = file->size;
    struct result after = {0};
    file->bytes = new_bytes;
    file->size = new_size;
    scan_analyse(scan, file, &after);
    done = after.edits_count == 0;
    if (!done)
      snprintf(message, sizeof message, "the new content would be edited again; the file is unchanged");
    else
      done = write_and_say(file, path, edits, old_bytes, old_size, message, sizeof message);
    if (done) {
      result_free(&file->result);
      file->result = after;
    } else {
      file->bytes = old_bytes;
      file->size = old_size;
      free(new_bytes);
      result_free(&after);
    }
  }
  if (!done)
    fprintf(stderr, "sgl-migrate: %s: not fixed: %s\n", path, message);
  free(path);
  return done;
}

bool fix_all(struct scan *scan, size_t *fixed) {
  bool done = true;
  for (size_t i = 0; i < scan->files_count; i++) {
    struct source_file *file = &scan->files[i];
    if (file->result.edits_count == 0)
      continue;
    if (fix_file(scan, file))
      (*fixed)++;
    else
      done = false;
  }
  return done;
}
