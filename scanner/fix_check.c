/* Is the new content of a file as good as the old one? An edit that breaks a file is a fault of the rule that made it;
 * the file then stays as it was. */
#include "scanner/fix.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where a byte of the new content was in the old one; for a byte that an edit brought, where the edit is. */
static size_t old_offset(const struct edit *edits, size_t count, size_t offset) {
  size_t removed = 0, added = 0;
  for (size_t i = 0; i < count; i++) {
    const struct edit *edit = &edits[i];
    bool repeated =
        i > 0 && edit->start == edit[-1].start && edit->end == edit[-1].end && strcmp(edit->text, edit[-1].text) == 0;
    size_t start = edit->start + added - removed;
    if (repeated)
      continue;
    if (offset < start)
      break;
    if (offset < start + edit->text_size)
      return edit->start;
    added += edit->text_size;
    removed += edit->end - edit->start;
  }
  return offset + removed - added;
}

static uint32_t line_of(const struct source_file *file, size_t offset) {
  uint32_t line = 0, column;
  if (offset != SIZE_MAX)
    rules_position(file->bytes, file->size, offset, &line, &column);
  return line;
}

/* An error of the new content in a line that had none: what is wrong already may be told in other words afterwards.
 * NULL when there is none. Of a header, where lines do not change, the words count. */
static const char *first_new(const struct source_file *file, const struct cxx_error *old, size_t old_count,
                             const struct cxx_error *new, size_t new_count, const struct edit *edits, size_t count) {
  for (size_t i = 0; i < new_count; i++) {
    size_t offset = new[i].offset == SIZE_MAX ? SIZE_MAX : old_offset(edits, count, new[i].offset);
    bool known = false;
    for (size_t k = 0; k < old_count && !known; k++)
      known = offset == SIZE_MAX ? old[k].offset == SIZE_MAX && strcmp(old[k].text, new[i].text) == 0
                                 : line_of(file, old[k].offset) == line_of(file, offset);
    if (!known)
      return new[i].text;
  }
  return NULL;
}

static void free_errors(struct cxx_error *list, size_t count) {
  for (size_t i = 0; i < count; i++)
    free(list[i].text);
  free(list);
}

static void count_live(const struct scan *scan, const struct result *result, ptrdiff_t *counts, ptrdiff_t each) {
  for (size_t i = 0; i < result->findings_count; i++)
    if (result->findings[i].verdict != VERDICT_MENTION)
      counts[result->findings[i].symbol - scan->catalog->symbols] += each;
}

/* A name that the new content uses in more places than the old one; NULL when there is none. */
static const char *more_used(const struct scan *scan, const struct result *before, const struct result *after) {
  const struct catalog *catalog = scan->catalog;
  ptrdiff_t *counts = scan_alloc(NULL, catalog->symbols_count * sizeof *counts);
  memset(counts, 0, catalog->symbols_count * sizeof *counts);
  count_live(scan, before, counts, -1);
  count_live(scan, after, counts, 1);
  const char *name = NULL;
  for (unsigned i = 0; i < catalog->symbols_count && !name; i++)
    name = counts[i] > 0 ? catalog->symbols[i].id : NULL;
  free(counts);
  return name;
}

bool fix_check(const struct scan *scan, struct source_file *file, size_t edits, const uint8_t *new_bytes,
               size_t new_size, struct result *after, char *message, size_t message_size) {
  const uint8_t *old_bytes = file->bytes;
  size_t old_size = file->size, old_count = 0, new_count = 0;
  bool cxx = file->language == LANGUAGE_CXX;
  struct cxx_error *old_errors = cxx ? cxx_errors(scan, file, &old_count) : NULL;
  file->bytes = new_bytes;
  file->size = new_size;
  scan_analyse(scan, file, after);
  struct cxx_error *new_errors = cxx ? cxx_errors(scan, file, &new_count) : NULL;
  file->bytes = old_bytes;
  file->size = old_size;

  const char *error = first_new(file, old_errors, old_count, new_errors, new_count, file->result.edits, edits);
  const char *used = more_used(scan, &file->result, after);
  *message = '\0';
  if (after->coverage > file->result.coverage)
    snprintf(message, message_size, "the new content %s; the file is unchanged", after->coverage_reason);
  else if (error)
    snprintf(message, message_size, "the new content would be wrong C++ (%s); the file is unchanged", error);
  else if (after->edits_count > file->result.edits_count - edits)
    snprintf(message, message_size, "the new content would be edited again; the file is unchanged");
  else if (used)
    snprintf(message, message_size, "the new content would use %s in a new place; the file is unchanged", used);
  free_errors(old_errors, old_count);
  free_errors(new_errors, new_count);
  return *message == '\0';
}
