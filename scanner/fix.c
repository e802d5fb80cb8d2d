/* fix: edits are composed, the new content is checked, and only then the file is replaced. */
#include "scanner/fix.h"
#include "scanner/report.h"

#include <signal.h>
#include <stdlib.h>

static void say_not_fixed(const char *shown, const char *message) {
  fputs("sgl-migrate: ", stderr);
  report_plain(stderr, shown);
  fputs(": not fixed: ", stderr);
  report_plain(stderr, message);
  fputs("\n", stderr);
}

/* Writes the new content over what was there. A stop signal waits until that is said as well. */
static bool write_and_say(const struct source_file *file, const char *shown, size_t edits, const uint8_t *bytes,
                          size_t size, char *message, size_t message_size) {
  sigset_t stop, before;
  sigemptyset(&stop);
  sigaddset(&stop, SIGINT);
  sigaddset(&stop, SIGTERM);
  sigaddset(&stop, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &stop, &before);
  bool done = edit_write(file->full_path, file->bytes, file->size, bytes, size, message, message_size);
  if (done) {
    fputs("fixed ", stdout);
    report_plain(stdout, shown);
    printf(" (%zu edit%s)\n", edits, report_plural(edits));
    fflush(stdout);
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return done;
}

static bool print_diff(const struct scan *scan, const struct source_file *file, const uint8_t *bytes, size_t size,
                       char *message, size_t message_size) {
  char *path = fix_git_path(scan, file);
  size_t diff_size;
  char *diff = fix_diff(path, file->bytes, file->size, bytes, size, &diff_size);
  if (diff)
    fwrite(diff, 1, diff_size, stdout);
  else
    snprintf(message, message_size, "no diff could be made");
  free(diff);
  free(path);
  return diff != NULL;
}

/* The first `edits` edits of the file. After a write the file has its new content, and the result of that. */
static bool fix_file(const struct scan *scan, struct source_file *file, const char *shown, size_t edits,
                     enum fix_mode mode) {
  char message[512];
  uint8_t *bytes;
  size_t size;
  struct result after = {0};
  bool done = edit_compose(file->bytes, file->size, file->result.edits, edits, &bytes, &size, message, sizeof message);
  if (!done) {
    say_not_fixed(shown, message);
    return false;
  }
  done = fix_check(scan, file, edits, bytes, size, &after, message, sizeof message);
  if (done && mode == FIX_DIFF)
    done = print_diff(scan, file, bytes, size, message, sizeof message);
  else if (done)
    done = write_and_say(file, shown, edits, bytes, size, message, sizeof message);
  if (!done)
    say_not_fixed(shown, message);
  if (done && mode != FIX_DIFF) {
    file->bytes = bytes; /* the old bytes are first_bytes */
    file->size = size;
    result_free(&file->result);
    file->result = after;
  } else {
    free(bytes);
    result_free(&after);
  }
  return done;
}

void fix_all(struct scan *scan, enum fix_mode mode, struct fix_totals *totals) {
  for (size_t i = 0; i < scan->files_count && !totals->quit; i++) {
    struct source_file *file = &scan->files[i];
    size_t edits = file->result.edits_count;
    if (edits == 0)
      continue;
    char *shown = report_path(scan, file->path);
    if (mode == FIX_ASK)
      edits = fix_ask(file, shown, &totals->quit);
    if (edits && fix_file(scan, file, shown, edits, mode)) {
      totals->fixed++;
      totals->edits += edits;
    } else if (edits) {
      totals->failed = true;
    }
    free(shown);
  }
}
