/* Unified diffs, by libgit2: what it prints, `git apply` takes, with its rules for names and final newlines. */
#include "scanner/fix.h"

#include <git2.h>
#include <stdlib.h>
#include <string.h>

char *fix_diff(const char *path, const uint8_t *old_bytes, size_t old_size, const uint8_t *new_bytes, size_t new_size,
               size_t *size) {
  git_diff_options options;
  git_diff_options_init(&options, GIT_DIFF_OPTIONS_VERSION);
  options.flags = GIT_DIFF_FORCE_TEXT | GIT_DIFF_INDENT_HEURISTIC;
  git_patch *patch = NULL;
  git_buf text = {0};
  char *copy = NULL;
  git_libgit2_init();
  if (git_patch_from_buffers(&patch, old_bytes, old_size, path, new_bytes, new_size, path, &options) == 0 &&
      git_patch_to_buf(&text, patch) == 0) {
    copy = scan_alloc(NULL, text.size + 1);
    memcpy(copy, text.ptr, text.size);
    copy[text.size] = '\0';
    *size = text.size;
  }
  git_buf_dispose(&text);
  git_patch_free(patch);
  git_libgit2_shutdown();
  return copy;
}
