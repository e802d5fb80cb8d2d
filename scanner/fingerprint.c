/* What a use is, whatever its place: the same after lines were added above it, after the line was indented or got a
 * comment, and after the file was moved. */
#include "scanner/report.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

/* Of a longer line, which no person wrote, only what stands near the name counts. */
#define REACH 300

/* A trailing comment ends what counts. Taking a string's '#' for one makes two uses alike, no more. */
static size_t code_end(const uint8_t *bytes, size_t name, size_t end) {
  for (size_t i = name; i < end; i++)
    if (i > name && (bytes[i - 1] == ' ' || bytes[i - 1] == '\t') &&
        (bytes[i] == '#' || (i + 1 < end && bytes[i] == '/' && (bytes[i + 1] == '/' || bytes[i + 1] == '*'))))
      return i;
  return end;
}

/* In a notebook a line is an element of a list: what stands behind it depends on the next line. */
static size_t cell_end(const uint8_t *bytes, size_t start, size_t end) {
  while (end > start && strchr("\", \t\r", bytes[end - 1]) && bytes[end - 1])
    end--;
  return end - start >= 2 && bytes[end - 2] == '\\' && bytes[end - 1] == 'n' ? end - 2 : end;
}

void report_fingerprint(const struct source_file *file, const struct finding *finding, size_t start, size_t end,
                        struct fingerprint *print) {
  size_t name = start + finding->column - 1;
  if (name > end)
    name = end;
  if (file->language == LANGUAGE_NOTEBOOK)
    end = cell_end(file->bytes, name, end);
  start = name - start > REACH ? name - REACH : start;
  end = end - name > REACH ? name + REACH : end;
  end = code_end(file->bytes, name, end);
  XXH3_state_t state;
  XXH3_128bits_reset(&state);
  XXH3_128bits_update(&state, finding->symbol->id, strlen(finding->symbol->id) + 1);
  for (size_t at = start; at < end;) { /* blanks do not count */
    size_t from = at;
    while (at < end && !(file->bytes[at] && strchr(" \t\r", file->bytes[at])))
      at++;
    XXH3_128bits_update(&state, file->bytes + from, at - from);
    at++;
  }
  XXH128_hash_t hash = XXH3_128bits_digest(&state);
  snprintf(print->text, sizeof print->text, "%016llx%016llx", (unsigned long long)hash.high64,
           (unsigned long long)hash.low64);
}

uint64_t report_path_hash(const char *path) {
  return XXH64(path, strlen(path), 0);
}
