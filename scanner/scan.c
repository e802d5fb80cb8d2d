/* One run over one root: walk, read, prefilter, index, analyse with worker threads, sort. Also what the fronts fill:
 * the result of one file. */
#include "scanner/ignore.h"
#include "scanner/scanner.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Larger text files are not source code that somebody wrote; reading them would need their size in memory. */
#define LARGEST_FILE ((size_t)64 << 20)
/* Where git and others look for a NUL byte to tell binary files. */
#define BINARY_PROBE 8192

void *scan_alloc(void *old, size_t size) {
  void *new = realloc(old, size ? size : 1);
  if (!new) {
    fputs("sgl-migrate: out of memory\n", stderr);
    _exit(EXIT_FAULT);
  }
  return new;
}

static char *format_list(const char *format, va_list list) {
  va_list again;
  va_copy(again, list);
  int length = vsnprintf(NULL, 0, format, again);
  va_end(again);
  char *text = scan_alloc(NULL, (size_t)(length < 0 ? 0 : length) + 1);
  text[0] = '\0';
  if (length > 0)
    vsnprintf(text, (size_t)length + 1, format, list);
  return text;
}

char *scan_format(const char *format, ...) {
  va_list list;
  va_start(list, format);
  char *text = format_list(format, list);
  va_end(list);
  return text;
}

/* --- results ------------------------------------------------------------------------------------------------------ */

static int strength(enum verdict verdict) {
  return verdict == VERDICT_REPORT ? 2 : verdict == VERDICT_REWRITE ? 1 : 0;
}

void result_find(struct result *result, uint32_t line, uint32_t column, const struct catalog_symbol *symbol,
                 enum verdict verdict, enum evidence evidence, enum level level, const char *format, ...) {
  struct finding *finding = NULL;
  if (result->findings_count && result->findings[result->findings_count - 1].line > line)
    result->unordered = true;
  for (size_t i = result->findings_count; i-- > 0 && !finding;) {
    if (result->findings[i].line == line && result->findings[i].symbol == symbol)
      finding = &result->findings[i];
    else if (result->findings[i].line < line && !result->unordered)
      break; /* a front that goes line by line does not search the whole list each time */
  }
  if (finding && strength(verdict) <= strength(finding->verdict))
    return;
  if (finding) {
    free(finding->message);
  } else {
    if (result->findings_count == result->findings_capacity) {
      result->findings_capacity = result->findings_capacity ? 2 * result->findings_capacity : 8;
      result->findings = scan_alloc(result->findings, result->findings_capacity * sizeof *result->findings);
    }
    finding = &result->findings[result->findings_count++];
  }
  va_list list;
  va_start(list, format);
  *finding =
      (struct finding){line, column, symbol, verdict, evidence, level, format_list(format, list), STANDING_OPEN, NULL};
  va_end(list);
}

void result_edit(struct result *result, size_t start, size_t end, const char *text, size_t text_size) {
  if (result->edits_count == result->edits_capacity) {
    result->edits_capacity = result->edits_capacity ? 2 * result->edits_capacity : 8;
    result->edits = scan_alloc(result->edits, result->edits_capacity * sizeof *result->edits);
  }
  char *copy = scan_alloc(NULL, text_size + 1);
  if (text_size)
    memcpy(copy, text, text_size);
  copy[text_size] = '\0';
  result->edits[result->edits_count++] = (struct edit){start, end, copy, text_size};
}

void result_coverage(struct result *result, enum coverage coverage, const char *format, ...) {
  if (coverage <= result->coverage)
    return; /* the worst one counts, the first reason for it stays */
  free(result->coverage_reason);
  va_list list;
  va_start(list, format);
  result->coverage_reason = format_list(format, list);
  va_end(list);
  result->coverage = coverage;
}

void result_free(struct result *result) {
  for (size_t i = 0; i < result->findings_count; i++)
    free(result->findings[i].message);
  for (size_t i = 0; i < result->edits_count; i++)
    free(result->edits[i].text);
  free(result->findings);
  free(result->edits);
  free(result->coverage_reason);
  ignore_free(result);
  *result = (struct result){0};
}

static int compare_findings(const void *left, const void *right) {
  const struct finding *a = left, *b = right;
  if (a->line != b->line)
    return a->line < b->line ? -1 : 1;
  if (a->column != b->column)
    return a->column < b->column ? -1 : 1;
  return strcmp(a->symbol->id, b->symbol->id);
}

/* --- files -------------------------------------------------------------------------------------------------------- */

const struct source_file *scan_file(const struct scan *scan, const char *path) {
  size_t low = 0, high = scan->files_count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    int order = strcmp(path, scan->files[middle].path);
    if (order == 0)
      return &scan->files[middle];
    if (order < 0)
      high = middle;
    else
      low = middle + 1;
  }
  return NULL;
}

static void drop_bytes(struct source_file *file) {
  if (file->first_bytes != file->bytes)
    free((void *)(uintptr_t)file->first_bytes);
  free((void *)(uintptr_t)file->bytes);
  file->bytes = file->first_bytes = NULL;
  file->size = 0;
}

/* Reads up to `limit` bytes; the file may be longer or shorter than its size says. */
static uint8_t *read_up_to(int fd, size_t expected, size_t limit, size_t *size) {
  size_t capacity = (expected < limit ? expected : limit) + 1, used = 0;
  uint8_t *bytes = scan_alloc(NULL, capacity);
  while (used < limit) {
    if (used == capacity) {
      capacity = 2 * capacity < limit ? 2 * capacity : limit;
      bytes = scan_alloc(bytes, capacity);
    }
    ssize_t got = read(fd, bytes + used, (capacity < limit ? capacity : limit) - used);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0) {
      free(bytes);
      return NULL;
    }
    if (got == 0)
      break;
    used += (size_t)got;
  }
  *size = used;
  return bytes;
}

/* Puts the file's bytes into *file or says in its result why not. */
static void read_file(struct source_file *file) {
  /* Non-blocking, so that a named pipe that took the file's place does not stop the run. */
  int fd = open(file->full_path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  struct stat status;
  if (fd < 0 || fstat(fd, &status) != 0) {
    result_coverage(&file->result, COVERAGE_NONE, "cannot be read: %s", strerror(errno));
  } else if (!S_ISREG(status.st_mode)) {
    result_coverage(&file->result, COVERAGE_NONE, "is no regular file");
  } else {
    bool large = status.st_size > (off_t)LARGEST_FILE;
    uint8_t *bytes = read_up_to(fd, (size_t)status.st_size, large ? BINARY_PROBE : LARGEST_FILE, &file->size);
    file->bytes = file->first_bytes = bytes;
    if (!bytes)
      result_coverage(&file->result, COVERAGE_NONE, "cannot be read: %s", strerror(errno));
    else if (large && (file->language != LANGUAGE_TEXT || !memchr(bytes, 0, file->size)))
      result_coverage(&file->result, COVERAGE_NONE, "larger than %zu MiB", LARGEST_FILE >> 20);
    if (large || !bytes)
      drop_bytes(file);
  }
  if (fd >= 0)
    close(fd);
}

static bool has_utf16_mark(const struct source_file *file) {
  return file->size >= 2 &&
         ((file->bytes[0] == 0xff && file->bytes[1] == 0xfe) || (file->bytes[0] == 0xfe && file->bytes[1] == 0xff));
}

/* A script without an ending says in its first line what it is. */
static bool python_script(const struct source_file *file) {
  const char *slash = strrchr(file->path, '/');
  const char *name = slash ? slash + 1 : file->path;
  if (strchr(name, '.') || file->size < 2 || memcmp(file->bytes, "#!", 2) != 0)
    return false;
  const uint8_t *end = memchr(file->bytes, '\n', file->size);
  return memmem(file->bytes, end ? (size_t)(end - file->bytes) : file->size, "python", 6) != NULL;
}

/* --- workers ------------------------------------------------------------------------------------------------------ */

struct crew {
  struct scan *scan;
  struct prefilter *prefilter;
  void (*work)(struct crew *crew, unsigned worker, struct source_file *file);
  atomic_size_t next, done;
};

struct worker {
  struct crew *crew;
  unsigned number;
  pthread_t thread;
};

static void *worker_run(void *argument) {
  struct worker *worker = argument;
  struct crew *crew = worker->crew;
  size_t i;
  while ((i = atomic_fetch_add(&crew->next, 1)) < crew->scan->files_count) {
    crew->work(crew, worker->number, &crew->scan->files[i]);
    atomic_fetch_add(&crew->done, 1);
  }
  return NULL;
}

/* Half a second is what a person notices. Shown on a terminal only, and wiped out afterwards. */
static void show_progress(struct crew *crew, const char *what) {
  size_t count = crew->scan->files_count;
  bool shown = false;
  for (unsigned tick = 1; atomic_load(&crew->done) < count; tick++) {
    nanosleep(&(struct timespec){.tv_nsec = 50 * 1000 * 1000}, NULL);
    if (tick % 10 == 0) {
      fprintf(stderr, "\rsgl-migrate: %s %zu of %zu files\x1b[K", what, atomic_load(&crew->done), count);
      shown = true;
    }
  }
  if (shown)
    fputs("\r\x1b[K", stderr);
}

static void crew_run(struct crew *crew, unsigned threads, bool progress, const char *what) {
  atomic_store(&crew->next, 0);
  atomic_store(&crew->done, 0);
  struct worker *workers = scan_alloc(NULL, threads * sizeof *workers);
  /* Worker 0 is this thread, unless it has the progress to show. */
  unsigned first = progress ? 0 : 1, started = first;
  for (; started < threads; started++) {
    workers[started] = (struct worker){crew, started, 0};
    if (pthread_create(&workers[started].thread, NULL, worker_run, &workers[started]) != 0)
      break; /* fewer workers do the same work */
  }
  if (started > 0 && progress)
    show_progress(crew, what);
  else {
    workers[0] = (struct worker){crew, 0, 0};
    worker_run(&workers[0]);
  }
  for (unsigned i = first; i < started; i++)
    pthread_join(workers[i].thread, NULL);
  free(workers);
}

static void load(struct crew *crew, unsigned worker, struct source_file *file) {
  if (file->language == LANGUAGE_NONE)
    return;
  read_file(file);
  if (!file->bytes)
    return;
  if (has_utf16_mark(file)) {
    /* Without the zero bytes the ASCII names of the catalog show. */
    uint8_t *plain = scan_alloc(NULL, file->size);
    size_t size = 0;
    for (size_t i = 0; i < file->size; i++)
      if (file->bytes[i])
        plain[size++] = file->bytes[i];
    if (prefilter_hit(crew->prefilter, worker, plain, size))
      result_coverage(&file->result, COVERAGE_NONE, "UTF-16 text that has a name of the catalog; convert it to UTF-8");
    free(plain);
    drop_bytes(file);
    return;
  }
  if (file->language == LANGUAGE_TEXT &&
      memchr(file->bytes, 0, file->size < BINARY_PROBE ? file->size : BINARY_PROBE)) {
    file->language = LANGUAGE_NONE;
    drop_bytes(file);
    return;
  }
  if (file->language == LANGUAGE_TEXT && python_script(file))
    file->language = LANGUAGE_PYTHON;
  file->hit = prefilter_hit(crew->prefilter, worker, file->bytes, file->size);
  if (!file->hit)
    drop_bytes(file);
}

/* The C++ index wants the files without a hit too; they were dropped, so that a tree without hits costs no memory. */
static void load_again(struct crew *crew, unsigned worker, struct source_file *file) {
  (void)crew;
  (void)worker;
  if (file->language == LANGUAGE_CXX && !file->hit && file->result.coverage == COVERAGE_FULL)
    read_file(file);
}

void scan_analyse(const struct scan *scan, const struct source_file *file, struct result *result) {
  switch (file->language) {
  case LANGUAGE_PYTHON:
    python_analyse(scan, file, result);
    text_build_entries(scan, file, result);
    break;
  case LANGUAGE_NOTEBOOK:
    python_analyse(scan, file, result);
    break;
  case LANGUAGE_CXX:
    cxx_analyse(scan, file, result);
    break;
  case LANGUAGE_TEXT:
    text_analyse(scan, file, result);
    break;
  case LANGUAGE_NONE:
    break;
  }
  if (result->findings_count)
    qsort(result->findings, result->findings_count, sizeof *result->findings, compare_findings);
  ignore_apply(result);
}

static void analyse(struct crew *crew, unsigned worker, struct source_file *file) {
  (void)worker;
  if (file->hit)
    scan_analyse(crew->scan, file, &file->result);
}

/* --- the run ------------------------------------------------------------------------------------------------------ */

static int compare_full_paths(const void *left, const void *right) {
  return strcmp(((const struct source_file *)left)->full_path, ((const struct source_file *)right)->full_path);
}

static void free_file(struct source_file *file) {
  result_free(&file->result);
  drop_bytes(file);
  free(file->path);
  free(file->full_path);
}

/* Roots may lie in each other. Sorted by path below one root is sorted by full path too, but for the link targets
 * outside of the root; so each is compared with all. */
static void drop_files_of(struct scan *scan, const struct scan *earlier) {
  if (earlier->files_count == 0)
    return;
  struct source_file *sorted = scan_alloc(NULL, earlier->files_count * sizeof *sorted);
  memcpy(sorted, earlier->files, earlier->files_count * sizeof *sorted);
  qsort(sorted, earlier->files_count, sizeof *sorted, compare_full_paths);
  size_t kept = 0;
  for (size_t i = 0; i < scan->files_count; i++) {
    if (bsearch(&scan->files[i], sorted, earlier->files_count, sizeof *sorted, compare_full_paths))
      free_file(&scan->files[i]);
    else
      scan->files[kept++] = scan->files[i];
  }
  scan->files_count = kept;
  free(sorted);
}

bool scan_walk(struct scan *scan, const struct scan *earlier, size_t earlier_count, char *message,
               size_t message_size) {
  if (!walk_root(scan, message, message_size))
    return false;
  for (size_t i = 0; i < earlier_count; i++)
    drop_files_of(scan, &earlier[i]);
  return true;
}

void scan_run(struct scan *scan, unsigned threads, bool progress) {
  rules_build(scan);
  struct crew crew = {.scan = scan, .prefilter = prefilter_new(scan, threads)};
  crew.work = load;
  crew_run(&crew, threads, progress, "read");
  prefilter_free(crew.prefilter);
  bool cxx_hit = false;
  for (size_t i = 0; i < scan->files_count; i++)
    cxx_hit = cxx_hit || (scan->files[i].language == LANGUAGE_CXX && scan->files[i].hit);
  if (cxx_hit) {
    crew.work = load_again;
    crew_run(&crew, threads, progress, "indexed");
  }
  python_index_build(scan);
  cxx_index_build(scan);
  crew.work = analyse;
  crew_run(&crew, threads, progress, "analysed");
}

void scan_close(struct scan *scan) {
  if (scan->python_index)
    python_index_free(scan);
  if (scan->cxx_index)
    cxx_index_free(scan);
  rules_free(scan);
  for (size_t i = 0; i < scan->files_count; i++)
    free_file(&scan->files[i]);
  for (size_t i = 0; i < scan->notes_count; i++) {
    free(scan->notes[i].path);
    free(scan->notes[i].reason);
  }
  free(scan->files);
  free(scan->notes);
  free(scan->real_root);
  *scan = (struct scan){0};
}
