/* One run over one root: walk, read, prefilter, index, analyse with worker threads, sort. */
#include "scanner/cache.h"
#include "scanner/crew.h"
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

struct run {
  struct scan *scan;
  atomic_size_t done, count;
};

/* The C++ index wants the files without a hit too; but for the first ones they were dropped, so that a large tree
 * without hits costs little memory. */
static void load_again(void *user, unsigned worker, size_t index) {
  (void)worker;
  struct source_file *file = &((struct run *)user)->scan->files[index];
  if (file->language == LANGUAGE_CXX && !file->hit && !file->bytes && file->result.coverage == COVERAGE_FULL)
    load_bytes(file);
}

static void analyse(void *user, unsigned worker, size_t index) {
  (void)worker;
  struct run *run = user;
  struct source_file *file = &run->scan->files[index];
  if (file->hit && !file->elsewhere && !file->cached)
    scan_analyse(run->scan, file, &file->result);
  atomic_fetch_add(&run->done, 1);
}

/* --- the run ------------------------------------------------------------------------------------------------------ */

static int compare_full_paths(const void *left, const void *right) {
  return strcmp(((const struct source_file *)left)->full_path, ((const struct source_file *)right)->full_path);
}

void scan_free_file(struct source_file *file) {
  result_free(&file->result);
  load_drop(file);
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
  struct loader *loader = loader_start(scan, threads, progress);
  struct walk walk = {.scan = scan, .each = loader_add, .user = loader};
  bool there = walk_root(&walk, message, message_size);
  loader_finish(loader);
  walk_close(&walk);
  for (size_t i = 0; there && i < earlier_count; i++)
    drop_files_of(scan, &earlier[i]);
  return there;
}

static bool in_shard(const struct scan *scan, const char *path) {
  return report_path_hash(path) % scan->shards == scan->shard - 1;
}

/* The indexes have seen the whole tree, so that what is known across files is the same in each shard. What is said of a
 * file is said in one of them, and what is counted of the whole tree in the first. */
static void take_shard(struct scan *scan) {
  for (size_t i = 0; i < scan->files_count; i++)
    if (!in_shard(scan, scan->files[i].path)) {
      scan->files[i].elsewhere = true;
      result_free(&scan->files[i].result);
    }
  size_t kept = 0;
  for (size_t i = 0; i < scan->notes_count; i++)
    if (in_shard(scan, scan->notes[i].path)) {
      scan->notes[kept++] = scan->notes[i];
    } else {
      free(scan->notes[i].path);
      free(scan->notes[i].reason);
    }
  scan->notes_count = kept;
  if (scan->shard > 1)
    scan->ignored_count = 0;
}

void scan_run(struct scan *scan, unsigned threads, bool progress) {
  struct run run = {.scan = scan, .count = scan->files_count};
  rules_build(scan);
  struct progress *shown = progress ? progress_start("analysed", &run.done, &run.count) : NULL;
  if (scan->cache)
    cache_options(scan->cache, &scan->options);
  python_index_build(scan, threads);
  if (scan->cache)
    cache_restore(scan->cache, scan);
  bool cxx = false;
  for (size_t i = 0; i < scan->files_count; i++)
    cxx = cxx || (scan->files[i].language == LANGUAGE_CXX && scan->files[i].hit && !scan->files[i].cached);
  if (cxx) {
    crew_run(load_again, &run, scan->files_count, threads);
    cxx_index_build(scan, threads);
  }
  if (scan->shards)
    take_shard(scan);
  crew_run(analyse, &run, scan->files_count, threads);
  if (scan->cache)
    cache_save(scan->cache, scan);
  progress_stop(shown);
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
