/* Paths of deleted sources, tests and benchmarks: whoever builds or runs them by path gets "file not found". */
#include "scanner/prefilter.h"
#include "scanner/text.h"

#include <stdlib.h>
#include <string.h>

bool text_part_byte(uint8_t c) {
  return text_word_byte(c) || c == '.' || c == '-' || c == '+';
}

static bool quote(uint8_t c) {
  return c == '\'' || c == '"';
}

static void add_part(struct text_entry *entry, const void *text, size_t length) {
  bool here = length == 1 && *(const char *)text == '.';
  if (length && !here && entry->count < TEXT_PARTS) {
    entry->parts[entry->count].text = text;
    entry->parts[entry->count++].length = length;
  }
}

/* The colon of a Bazel label, "//csrc/gemm:x.cu". */
static bool label(const uint8_t *bytes, size_t at) {
  return bytes[at - 1] == ':' && at > 1 && text_part_byte(bytes[at - 2]);
}

/* Reads "/part/part" backwards from `at`; returns where it stopped. */
static size_t read_parts(const uint8_t *bytes, size_t at, struct text_entry *entry) {
  while (at > 0 && (bytes[at - 1] == '/' || bytes[at - 1] == '\\' || label(bytes, at))) {
    size_t end = at - (bytes[at - 1] == ':');
    while (end > 0 && (bytes[end - 1] == '/' || bytes[end - 1] == '\\')) /* "a\\\\b" is one separator */
      end--;
    size_t first = end;
    while (first > 0 && text_part_byte(bytes[first - 1]))
      first--;
    if (first == end)
      return end; /* "/part" or "${folder}/part" */
    add_part(entry, bytes + first, end - first);
    at = first;
  }
  return at;
}

/* "gemm", "x.cu"   "gemm" / "x.cu"   "gemm/" + "x.cu": the string before, joined to this one. */
static size_t joined_string(const uint8_t *bytes, size_t at) {
  if (at == 0 || !quote(bytes[at - 1]))
    return SIZE_MAX;
  size_t i = at - 1;
  unsigned operators = 0;
  while (i > 0 && (strchr(" \t\r\n,+/", bytes[i - 1]))) {
    i--;
    operators += bytes[i] == ',' || bytes[i] == '+' || bytes[i] == '/';
  }
  return operators == 1 && i > 0 && quote(bytes[i - 1]) ? i - 1 : SIZE_MAX;
}

/* DIR / "x.cu"   DIR + "x.cu"   os.path.join(DIR, "x.cu"): the folder is in a variable. */
static bool below_variable(const uint8_t *bytes, size_t start) {
  if (start == 0 || !quote(bytes[start - 1]))
    return false;
  size_t i = start - 1;
  while (i > 0 && (bytes[i - 1] == ' ' || bytes[i - 1] == '\t' || bytes[i - 1] == '\n'))
    i--;
  if (i > 0 && (bytes[i - 1] == '/' || bytes[i - 1] == '+'))
    return true;
  bool later = false; /* a comma before it: not the first argument */
  for (size_t end = i; i > 0 && end - i < 200 && !strchr("()[]{};", bytes[i - 1]); i--)
    later = later || bytes[i - 1] == ',';
  return later && i > 4 && bytes[i - 1] == '(' &&
         (memcmp(bytes + i - 5, "join", 4) == 0 || memcmp(bytes + i - 5, "Path", 4) == 0);
}

void text_entry_read(const uint8_t *bytes, size_t at, size_t length, struct text_entry *entry) {
  *entry = (struct text_entry){.name = at};
  add_part(entry, bytes + at, length);
  size_t start = read_parts(bytes, at, entry);
  entry->written = entry->count;
  entry->start = start;
  bool rooted = bytes[start] == '/' || bytes[start] == '\\';
  entry->relative = !rooted && !(start > 0 && strchr("})>", bytes[start - 1])) && !below_variable(bytes, start);
  size_t before = start;
  while ((before = joined_string(bytes, before)) != SIZE_MAX) {
    if (before > 0 && (bytes[before - 1] == '/' || bytes[before - 1] == '\\'))
      before--;
    size_t first = before;
    while (first > 0 && text_part_byte(bytes[first - 1]))
      first--;
    add_part(entry, bytes + first, before - first);
    before = read_parts(bytes, first, entry);
  }
}

bool text_entry_ends(const struct text_entry *entry, size_t count, const char *wanted) {
  size_t end = strlen(wanted);
  for (size_t i = 0; i < count; i++) {
    size_t first = end;
    while (first > 0 && wanted[first - 1] != '/')
      first--;
    if (entry->parts[i].length != end - first || memcmp(entry->parts[i].text, wanted + first, end - first) != 0)
      return false;
    if (first == 0)
      return true;
    end = first - 1;
  }
  return false;
}

/* Does the path end in `wanted`, as it is written, joined from strings, or below the folder of the file that has it? */
static bool matches(const struct text_view *view, const struct text_entry *entry, const char *wanted) {
  if (text_entry_ends(entry, entry->count, wanted) || text_entry_ends(entry, entry->written, wanted))
    return true;
  if (!entry->relative)
    return false;
  struct text_entry below = *entry;
  below.count = entry->written;
  const char *folder = strrchr(view->path, '/');
  for (const char *end = folder; end && below.count < TEXT_PARTS;) {
    const char *first = end;
    while (first > view->path && first[-1] != '/')
      first--;
    add_part(&below, first, (size_t)(end - first));
    end = first > view->path ? first - 1 : NULL;
  }
  return text_entry_ends(&below, below.count, wanted);
}

/* In Python, only a string that ends with the path is one; other texts have no such mark. */
static bool ends_as_path(const struct text_view *view, size_t end) {
  uint8_t next = end < view->size ? view->bytes[end] : ' ';
  return view->kind == TEXT_PYTHON ? quote(next) : next != '/' && next != '\\';
}

/* Has the tree such a file, at the path as far as it is written? Then it is the tree's own, and nothing is missing. */
static bool has_file(const struct scan *scan, const struct text_entry *entry, const char *wanted) {
  size_t length = strlen(wanted);
  for (size_t i = 0; i < scan->files_count; i++) {
    const char *path = scan->files[i].path, *end = path + strlen(path);
    if ((size_t)(end - path) < length || memcmp(end - length, wanted, length) != 0 ||
        (end - length > path && end[-(ptrdiff_t)length - 1] != '/'))
      continue;
    size_t part = 0;
    for (; part < entry->written && end >= path; part++) {
      size_t size = entry->parts[part].length;
      if ((size_t)(end - path) < size || memcmp(end - size, entry->parts[part].text, size) != 0)
        break;
      end -= size;
      if (end > path && *--end != '/')
        break;
    }
    if (part == entry->written)
      return true;
  }
  return false;
}

static void check_word(const struct text_view *view, size_t start, size_t end) {
  size_t count;
  const struct rules_file *file = rules_files(view->scan, (const char *)view->bytes + start, end - start, &count);
  if (!file || !ends_as_path(view, end))
    return;
  struct text_entry entry;
  text_entry_read(view->bytes, start, end - start, &entry);
  bool prose = view->kind == TEXT_DOC || view->classes[start] == CLASS_COMMENT;
  struct text_entry further = entry;
  bool resolved = text_paths_resolve(view, &further);
  for (size_t i = 0; i < count; i++)
    if ((matches(view, &entry, file[i].path) || (resolved && text_entry_ends(&further, further.count, file[i].path))) &&
        !has_file(view->scan, &entry, file[i].path))
      text_find(view, start, file[i].symbol, prose ? VERDICT_MENTION : VERDICT_REPORT, EVIDENCE_BUILD,
                "this file was deleted with the function");
}

void text_build_view(const struct text_view *view) {
  if (view->kind == TEXT_NOTHING || view->kind == TEXT_CXX)
    return; /* in C++ it would be an #include, which is no result */
  /* File names have a dot, and the words around one are soon found. */
  const uint8_t *bytes = view->bytes, *dot = bytes;
  while (view->size && (dot = memchr(dot, '.', (size_t)(bytes + view->size - dot)))) {
    size_t start = (size_t)(dot - bytes), end = start;
    while (start > 0 && text_part_byte(bytes[start - 1]))
      start--;
    while (end < view->size && text_part_byte(bytes[end]))
      end++;
    dot = bytes + end;
    size_t stop = end;
    while (stop > start && strchr(".-+", bytes[stop - 1])) /* the end of a sentence */
      stop--;
    if (stop > start)
      check_word(view, start, stop);
  }
}

void text_build_entries(const struct scan *scan, const struct source_file *file, struct result *result) {
  if (!(file->seen & SEEN_FILE) && file->bytes == file->first_bytes)
    return;
  struct text_place place = {0, 0};
  struct text_view view = {.scan = scan,
                           .result = result,
                           .path = file->path,
                           .bytes = file->bytes,
                           .size = file->size,
                           .kind = TEXT_PYTHON,
                           .style = STYLE_HASH,
                           .place = &place};
  text_classify(&view);
  text_build_view(&view);
  free(view.classes);
}
