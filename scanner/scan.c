/* One run over one root: walk, read, prefilter, index, analyse with worker threads, sort. */
#include "scanner/cache.h"
#include "scanner/crew.h"
#include "scanner/cxx_front.h"
#include "scanner/ignore.h"
#include "scanner/load.h"
#include "scanner/report.h"
#include "scanner/walk.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

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

/* Sorting the numbers needs the scan. */
struct sized {
  size_t size, number;
};

static int compare_sized(const void *left, const void *right) {
  const struct sized *a = left, *b = right;
  if (a->size != b->size)
    return a->size > b->size ? -1 : 1;
  return (a->number > b->number) - (a->number < b->number);
}

size_t *scan_largest_first(const struct scan *scan, bool (*wanted)(const struct source_file *file), size_t *count) {
  struct sized *list = scan_alloc(NULL, scan->files_count * sizeof *list);
  *count = 0;
  for (size_t i = 0; i < scan->files_count; i++)
    if (wanted(&scan->files[i]))
      list[(*count)++] = (struct sized){scan->files[i].bytes ? scan->files[i].size : scan->files[i].id.size, i};
  if (*count)
    qsort(list, *count, sizeof *list, compare_sized);
  size_t *numbers = scan_alloc(NULL, *count * sizeof *numbers);
  for (size_t i = 0; i < *count; i++)
    numbers[i] = list[i].number;
  free(list);
  return numbers;
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

/* --- the run ------------------------------------------------------------------------------------------------------ */

static int compare_full_paths(const void *left, const void *right) {
  return strcmp(((const struct source_file *)left)->full_path, ((const struct source_file *)right)->full_path);
}

void scan_free_file(struct source_file *file) {
  result_free(&file->result);
  load_drop(file);
  cxx_free_facts(file);
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
      scan_free_file(&scan->files[i]);
    else
      scan->files[kept++] = scan->files[i];
  }
  scan->files_count = kept;
  free(sorted);
}

bool scan_walk(struct scan *scan, const struct scan *earlier, size_t earlier_count, unsigned threads, bool progress,
               char *message, size_t message_size) {
  char *real = scan->use_cache ? realpath(scan->root, NULL) : NULL;
  scan->cache = real ? cache_open(real) : NULL;
  free(real);
  if (!walk_root(scan, threads, message, message_size))
    return false;
  for (size_t i = 0; i < earlier_count; i++)
    drop_files_of(scan, &earlier[i]);
  load_files(scan, threads, progress);
  return true;
}

static bool in_shard(const struct scan *scan, const char *path) {
  return report_path_hash(path) % scan->shards == scan->shard - 1;
}

/* What is known across files is that of the whole tree in each shard. What is said of a file is said in one of them,
 * and what is counted of the whole tree in the first. */
static void take_files_of_shard(struct scan *scan) {
  for (size_t i = 0; i < scan->files_count; i++)
    if (!in_shard(scan, scan->files[i].path)) {
      scan->files[i].elsewhere = true;
      result_free(&scan->files[i].result);
    }
  if (scan->shard > 1)
    scan->ignored_count = 0;
}

static void take_notes_of_shard(struct scan *scan) {
  size_t kept = 0;
  for (size_t i = 0; i < scan->notes_count; i++)
    if (in_shard(scan, scan->notes[i].path)) {
      scan->notes[kept++] = scan->notes[i];
    } else {
      free(scan->notes[i].path);
      free(scan->notes[i].reason);
    }
  scan->notes_count = kept;
}

/* --- the parts of the work ---------------------------------------------------------------------------------------- */

struct list {
  struct scan *scan;
  size_t *files, count;
  atomic_size_t *done;
};

static void restore_cxx(void *user, unsigned worker, size_t number) {
  struct scan *scan = user;
  (void)worker, (void)number;
  cache_restore_cxx(scan->cache, scan);
}

static void restore_python(void *user, unsigned worker, size_t number) {
  struct scan *scan = user;
  (void)worker, (void)number;
  cache_restore_python(scan->cache, scan);
}

/* The bytes of a file with a hit. Those of C++ may be wanted by several workers. */
static bool load(struct scan *scan, struct source_file *file) {
  return file->language == LANGUAGE_CXX && scan->cxx_index ? cxx_index_load(scan, file) : load_known(file);
}

static void analyse(void *user, unsigned worker, size_t number) {
  const struct list *list = user;
  struct source_file *file = &list->scan->files[list->files[number]];
  (void)worker;
  if (!file->cached && load(list->scan, file))
    scan_analyse(list->scan, file, &file->result);
  atomic_fetch_add(list->done, 1);
}

static bool is_live(const struct source_file *file) {
  return file->hit && !file->elsewhere && !file->cached;
}

static bool is_python(const struct source_file *file) {
  return is_live(file) && (file->language == LANGUAGE_PYTHON || file->language == LANGUAGE_NOTEBOOK);
}

static bool is_cxx(const struct source_file *file) {
  return is_live(file) && file->language == LANGUAGE_CXX;
}

#define SLICES 64

/* The report shows the lines with findings. The results of an earlier scan are there before this part. */
static void load_shown(void *user, unsigned worker, size_t slice) {
  struct scan *scan = user;
  (void)worker;
  for (size_t i = slice; i < scan->files_count; i += SLICES)
    if (scan->files[i].cached && scan->files[i].result.findings_count)
      load(scan, &scan->files[i]);
}

static bool is_text(const struct source_file *file) {
  return is_live(file) && file->language == LANGUAGE_TEXT;
}

static struct list list_of(struct scan *scan, bool (*wanted)(const struct source_file *file), atomic_size_t *done) {
  struct list list = {.scan = scan, .done = done};
  list.files = scan_largest_first(scan, wanted, &list.count);
  return list;
}

void scan_run(struct scan *scan, unsigned threads, bool progress) {
  atomic_size_t done = 0, count = 0;
  rules_build(scan);
  if (scan->cache) {
    cache_options(scan->cache, &scan->options);
    cache_restore(scan->cache, scan);
  }
  struct crew *crew = crew_new();
  unsigned cxx_ready = 0;
  bool has_cxx = false;
  for (size_t i = 0; i < scan->files_count && !has_cxx; i++)
    has_cxx = is_cxx(&scan->files[i]) && !scan->files[i].holds;
  if (has_cxx)
    /* First, since its work is the longest that goes on in one worker. */
    cxx_ready = cxx_index_plan(scan, crew);
  if (scan->cache)
    cxx_ready = crew_add(crew, restore_cxx, scan, 1, cxx_ready);
  unsigned python_ready = python_index_plan(scan, crew, threads);
  if (scan->shards)
    take_files_of_shard(scan);
  if (scan->cache)
    python_ready = crew_add(crew, restore_python, scan, 1, python_ready);
  struct list text = list_of(scan, is_text, &done), python = list_of(scan, is_python, &done),
              cxx = list_of(scan, is_cxx, &done);
  crew_add(crew, analyse, &python, python.count, python_ready);
  if (scan->cache)
    crew_add(crew, load_shown, scan, SLICES, python_ready | cxx_ready);
  crew_add(crew, analyse, &cxx, cxx.count, cxx_ready);
  crew_add(crew, analyse, &text, text.count, 0);
  atomic_store(&count, text.count + python.count + cxx.count);
  struct progress *shown = progress ? progress_start("analysed", &done, &count) : NULL;
  crew_finish(crew, threads);
  progress_stop(shown);
  free(text.files);
  free(python.files);
  free(cxx.files);
  if (scan->shards)
    take_notes_of_shard(scan);
  if (scan->cache)
    cache_save(scan->cache, scan);
}

void scan_close(struct scan *scan) {
  if (scan->python_index)
    python_index_free(scan);
  if (scan->cxx_index)
    cxx_index_free(scan);
  cache_close(scan->cache);
  rules_free(scan);
  for (size_t i = 0; i < scan->files_count; i++)
    scan_free_file(&scan->files[i]);
  for (size_t i = 0; i < scan->notes_count; i++) {
    free(scan->notes[i].path);
    free(scan->notes[i].reason);
  }
  free(scan->files);
  free(scan->notes);
  free(scan->real_root);
  *scan = (struct scan){0};
}
