/* Uses that were accepted before. An entry knows a use by its fingerprint, which stays when lines move; equal uses of a
 * file are counted. When a file is gone, its entries are looked for in the other files: it was moved. */
#include "scanner/baseline.h"
#include "scanner/file.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_LINE BASELINE_START " 1"
#define MOST_USES 1000000
/* Of the source line, for people. */
#define TEXT_SHOWN 200

/* --- reading ------------------------------------------------------------------------------------------------------ */

struct reader {
  void (*fault)(void *user, uint32_t line, const char *what);
  void *user;
  size_t faults;
  uint32_t line;
};

static bool wrong(struct reader *reader, const char *what) {
  reader->fault(reader->user, reader->line, what);
  reader->faults++;
  return false;
}

/* The field up to the next tab; NULL when the line has no more. */
static char *next_field(char **at) {
  char *field = *at;
  if (!field)
    return NULL;
  char *tab = strchr(field, '\t');
  *at = tab ? tab + 1 : NULL;
  if (tab)
    *tab = '\0';
  return field;
}

static int hex_digit(char c) {
  return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* \x0a and the like, in place; false for any other use of a backslash. */
static bool unescape(char *text) {
  char *out = text;
  while (*text) {
    if (*text != '\\') {
      *out++ = *text++;
      continue;
    }
    int high = text[1] == 'x' ? hex_digit(text[2]) : -1, low = high >= 0 ? hex_digit(text[3]) : -1;
    if (low < 0 || (high == 0 && low == 0))
      return false;
    *out++ = (char)(16 * high + low);
    text += 4;
  }
  *out = '\0';
  return true;
}

static bool read_entry(struct reader *reader, char *line, struct baseline_entry *entry) {
  if (strncmp(line, "<<<<<<<", 7) == 0 || strncmp(line, "=======", 7) == 0 || strncmp(line, ">>>>>>>", 7) == 0)
    return wrong(reader, "the mark of a merge conflict: solve it, or write the baseline again");
  char *at = line, *count = next_field(&at), *print = next_field(&at), *symbol = next_field(&at),
       *path = next_field(&at);
  if (!path)
    return wrong(reader, "count, fingerprint, name and path are expected, with tabs between");
  char *end;
  unsigned long uses = strtoul(count, &end, 10);
  if (*count < '0' || *count > '9' || *end || uses == 0 || uses > MOST_USES)
    return wrong(reader, "the count is no number from 1 to 1000000");
  if (strlen(print) != 32 || strspn(print, "0123456789abcdef") != 32)
    return wrong(reader, "the fingerprint is not 32 hexadecimal digits");
  if (!*symbol)
    return wrong(reader, "the name is empty");
  if (!unescape(path) || !file_below_root(path))
    return wrong(reader, "the path is not one below the root");
  *entry = (struct baseline_entry){.line = reader->line, .count = (uint32_t)uses};
  memcpy(entry->print.text, print, sizeof entry->print.text);
  entry->symbol = scan_format("%s", symbol);
  entry->path = scan_format("%s", path);
  return true;
}

static int compare_keys(const char *symbol_a, const char *print_a, const char *symbol_b, const char *print_b) {
  int order = strcmp(symbol_a, symbol_b);
  return order ? order : strcmp(print_a, print_b);
}

static int compare_entries(const void *left, const void *right) {
  const struct baseline_entry *a = left, *b = right;
  int order = strcmp(a->path, b->path);
  order = order ? order : compare_keys(a->symbol, a->print.text, b->symbol, b->print.text);
  return order ? order : (a->line > b->line) - (a->line < b->line);
}

static bool same_entry(const struct baseline_entry *a, const struct baseline_entry *b) {
  return strcmp(a->path, b->path) == 0 && compare_keys(a->symbol, a->print.text, b->symbol, b->print.text) == 0;
}

size_t baseline_parse(struct baseline *baseline, const char *name, const char *text, size_t size,
                      void (*fault)(void *user, uint32_t line, const char *what), void *user) {
  struct reader reader = {.fault = fault, .user = user};
  *baseline = (struct baseline){.name = scan_format("%s", name)};
  const char *stop = text + size;
  for (const char *at = text; at < stop || reader.line == 0;) {
    const char *newline = memchr(at, '\n', (size_t)(stop - at));
    const char *end = newline ? newline : stop;
    char *line = scan_format("%.*s", (int)(end - at), at);
    size_t length = strlen(line);
    reader.line++;
    bool text_line = length == (size_t)(end - at);
    if (!text_line)
      wrong(&reader, "a NUL byte: this is no text");
    else if (length && line[length - 1] == '\r')
      line[--length] = '\0'; /* a checkout with CRLF */
    struct baseline_entry entry;
    if (reader.line == 1 && strcmp(line, FIRST_LINE) != 0) {
      wrong(&reader, "this is no baseline: its first line is not '" FIRST_LINE "'");
      stop = at; /* no more of it */
    } else if (text_line && length && *line != '#' && read_entry(&reader, line, &entry)) {
      if (baseline->count == baseline->capacity) {
        baseline->capacity = baseline->capacity ? 2 * baseline->capacity : 64;
        baseline->entries = scan_alloc(baseline->entries, baseline->capacity * sizeof *baseline->entries);
      }
      baseline->entries[baseline->count++] = entry;
    }
    free(line);
    at = newline ? newline + 1 : stop;
  }
  if (baseline->count)
    qsort(baseline->entries, baseline->count, sizeof *baseline->entries, compare_entries);
  for (size_t i = 1; i < baseline->count; i++)
    if (same_entry(&baseline->entries[i - 1], &baseline->entries[i])) {
      reader.line = baseline->entries[i].line;
      wrong(&reader, "the same entry stands above: write one line with the sum");
    }
  return reader.faults;
}

void baseline_free(struct baseline *baseline) {
  for (size_t i = 0; i < baseline->count; i++) {
    free(baseline->entries[i].symbol);
    free(baseline->entries[i].path);
  }
  free(baseline->entries);
  free(baseline->name);
}

/* --- comparing ---------------------------------------------------------------------------------------------------- */

struct use {
  struct finding *finding;
  const struct source_file *file;
  const char *path;
  size_t start, end; /* its line */
  struct fingerprint print;
};

struct uses {
  struct use *list;
  size_t count, capacity;
};

/* All live uses that no comment accepts. */
static void gather(const struct scan *scan, struct uses *uses) {
  *uses = (struct uses){0};
  for (size_t i = 0; i < scan->files_count; i++) {
    const struct source_file *file = &scan->files[i];
    uint32_t line = 1;
    size_t offset = 0, end;
    for (size_t k = 0; k < file->result.findings_count; k++) {
      struct finding *finding = &file->result.findings[k];
      report_line(file, finding, &line, &offset, &end);
      if (finding->verdict == VERDICT_MENTION || finding->standing != STANDING_OPEN)
        continue;
      if (uses->count == uses->capacity) {
        uses->capacity = uses->capacity ? 2 * uses->capacity : 256;
        uses->list = scan_alloc(uses->list, uses->capacity * sizeof *uses->list);
      }
      struct use *use = &uses->list[uses->count++];
      *use = (struct use){.finding = finding, .file = file, .path = file->path, .start = offset, .end = end};
      report_fingerprint(file, finding, offset, end, &use->print);
    }
  }
}

static int compare_uses(const void *left, const void *right) {
  const struct use *a = left, *b = right;
  int order = strcmp(a->path, b->path);
  order = order ? order : compare_keys(a->finding->symbol->id, a->print.text, b->finding->symbol->id, b->print.text);
  return order ? order : (a->finding->line > b->finding->line) - (a->finding->line < b->finding->line);
}

static int compare_without_path(const void *left, const void *right) {
  const struct use *a = left, *b = right;
  int order = compare_keys(a->finding->symbol->id, a->print.text, b->finding->symbol->id, b->print.text);
  return order ? order : compare_uses(left, right);
}

static void accept_same_place(struct baseline *baseline, struct uses *uses) {
  if (uses->count)
    qsort(uses->list, uses->count, sizeof *uses->list, compare_uses);
  size_t next = 0;
  for (size_t i = 0; i < baseline->count; i++) {
    struct baseline_entry *entry = &baseline->entries[i];
    for (; next < uses->count; next++) {
      struct use *use = &uses->list[next];
      int order = strcmp(use->path, entry->path);
      order = order ? order : compare_keys(use->finding->symbol->id, use->print.text, entry->symbol, entry->print.text);
      if (order > 0)
        break;
      if (order == 0 && entry->seen < entry->count) {
        use->finding->standing = STANDING_KNOWN;
        entry->seen++;
      }
    }
  }
}

static const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

/* The first of the uses with the entry's fingerprint; sorted without path. */
static size_t first_like(const struct uses *uses, const struct baseline_entry *entry) {
  size_t low = 0, high = uses->count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    const struct use *use = &uses->list[middle];
    if (compare_keys(use->finding->symbol->id, use->print.text, entry->symbol, entry->print.text) < 0)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* Entries of files that are gone: first files of the same name elsewhere, then any. */
static void accept_moved(struct baseline *baseline, const struct scan *scan, struct uses *uses, bool same_name) {
  for (size_t i = 0; i < baseline->count; i++) {
    struct baseline_entry *entry = &baseline->entries[i];
    if (entry->seen == entry->count || scan_file(scan, entry->path))
      continue;
    for (size_t k = first_like(uses, entry); k < uses->count && entry->seen < entry->count; k++) {
      struct use *use = &uses->list[k];
      if (compare_keys(use->finding->symbol->id, use->print.text, entry->symbol, entry->print.text) != 0)
        break;
      if (use->finding->standing != STANDING_OPEN ||
          (same_name && strcmp(base_name(use->path), base_name(entry->path)) != 0))
        continue;
      use->finding->standing = STANDING_KNOWN;
      entry->seen++;
      baseline->moved++;
    }
  }
}

void baseline_match(struct baseline *baseline, struct scan *scan) {
  struct uses uses;
  gather(scan, &uses);
  accept_same_place(baseline, &uses);
  if (uses.count)
    qsort(uses.list, uses.count, sizeof *uses.list, compare_without_path);
  accept_moved(baseline, scan, &uses, true);
  accept_moved(baseline, scan, &uses, false);
  free(uses.list);
}

bool baseline_is_stale(const struct baseline_entry *entry, const struct scan *scan) {
  const struct source_file *file = scan_file(scan, entry->path);
  const struct catalog_symbol *symbol = catalog_find(scan->catalog, entry->symbol);
  return entry->seen < entry->count && !(file && file->result.coverage == COVERAGE_NONE) &&
         !(symbol && !rules_symbol_matters(scan, symbol));
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

/* Control characters, backslashes and what is no UTF-8 as \x0a. */
static void print_escaped(FILE *stream, const uint8_t *text, size_t size) {
  while (size) {
    uint32_t c;
    size_t length = report_character(text, size, &c);
    if (c < 0x20 || c == 0x7f || c == '\\' || c == UINT32_MAX)
      fprintf(stream, "\\x%02x", *text);
    else
      fwrite(text, 1, length, stream);
    text += length;
    size -= length;
  }
}

/* The source line for people: without blanks at its ends and with all others as one blank. */
static void print_source(FILE *stream, const struct source_file *file, size_t start, size_t end) {
  const uint8_t *bytes = file->bytes;
  while (start < end && strchr(" \t\r", bytes[start]) && bytes[start])
    start++;
  end = end - start > TEXT_SHOWN ? start + TEXT_SHOWN : end;
  while (end > start && end < file->size && (bytes[end] & 0xc0) == 0x80)
    end--; /* not within a character */
  while (end > start && strchr(" \t\r", bytes[end - 1]) && bytes[end - 1])
    end--;
  for (size_t i = start; i < end; i++)
    if (bytes[i] == '\t')
      putc(' ', stream);
    else
      putc(bytes[i] < 0x20 || bytes[i] == 0x7f ? '?' : bytes[i], stream);
}

char *baseline_text(const struct scan *scan, size_t *size, size_t *uses_count) {
  struct uses uses;
  gather(scan, &uses);
  if (uses.count)
    qsort(uses.list, uses.count, sizeof *uses.list, compare_uses);
  char *text = NULL;
  FILE *stream = open_memstream(&text, size);
  if (!stream)
    scan_out_of_memory();
  fputs(FIRST_LINE "\n"
                   "# Accepted uses of removed kernel names: count, fingerprint, name, path, source line.\n"
                   "# Written by: sgl-migrate scan --write-baseline FILE PATH\n",
        stream);
  for (size_t i = 0; i < uses.count;) {
    const struct use *use = &uses.list[i];
    size_t same = i;
    while (same < uses.count && strcmp(uses.list[same].path, use->path) == 0 &&
           compare_keys(uses.list[same].finding->symbol->id, uses.list[same].print.text, use->finding->symbol->id,
                        use->print.text) == 0)
      same++;
    fprintf(stream, "%zu\t%s\t%s\t", same - i, use->print.text, use->finding->symbol->id);
    print_escaped(stream, (const uint8_t *)use->path, strlen(use->path));
    putc('\t', stream);
    print_source(stream, use->file, use->start, use->end);
    putc('\n', stream);
    i = same;
  }
  *uses_count = uses.count;
  free(uses.list);
  if (fclose(stream) != 0)
    scan_out_of_memory();
  return text;
}

void baseline_accept_all(struct scan *scan) {
  for (size_t i = 0; i < scan->files_count; i++)
    for (size_t k = 0; k < scan->files[i].result.findings_count; k++) {
      struct finding *finding = &scan->files[i].result.findings[k];
      if (finding->verdict != VERDICT_MENTION && finding->standing == STANDING_OPEN)
        finding->standing = STANDING_KNOWN;
    }
}
