/* What is known of the files of a root, and when it still holds.
 *
 * A file is not read again while its size, times and inode are the same, but when its bytes are wanted: to analyse it,
 * or to show its findings; one that was changed within two seconds of a scan is read by the next, since a change after
 * that may have left the same times. Results go by content, and hold only for the same program, libclang, options and
 * world, which is what a front knows from other files. The world of Python is the list of paths and the exports of all
 * modules, and which modules sglang has if the tree is sglang itself; that of texts the list of paths. Of C++ it is
 * known for each file what it asked other files for (cache_cxx.c). Results that depend on the date (ignore comments)
 * are not kept. */
#include "scanner/cache.h"
#include "scanner/cache_bytes.h"
#include "scanner/cache_cxx.h"
#include "scanner/libclang.h"
#include "scanner/load.h"
#include "scanner/python_front.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

/* A smaller tree is scanned faster than its cache is looked at. */
#define LEAST_FILES 200
#define UNSURE_NS ((int64_t)2 * 1000 * 1000 * 1000)

struct known_result {
  const char *path; /* NULL: none */
  uint64_t hash;
  uint8_t language, coverage, seen;
  struct file_id id; /* all 0: not sure */
  const char *reason;
  uint32_t findings, exports; /* where they start in the bytes */
  bool exported;
};

/* Without a hit. */
struct known_file {
  const char *path;
  uint8_t language;
  struct file_id id;
  uint64_t hash;
};

struct cache {
  char *real_root, *clang;
  struct file_id program;
  int64_t started; /* of the scan, ns */
  uint8_t *bytes;
  size_t size;
  struct known_file *files; /* sorted by path */
  uint32_t files_count;
  const char *options;
  uint64_t worlds[LANGUAGE_TEXT + 1];
  struct known_result *results; /* sorted by path */
  uint32_t results_count;
  struct cache_cxx cxx;
  bool keeps_cxx; /* no file changed meanwhile */
  char *options_now;
  uint64_t worlds_now[LANGUAGE_TEXT + 1];
};

uint64_t cache_hash(const uint8_t *bytes, size_t size) {
  return XXH3_64bits(bytes, size);
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

static struct file_id get_id(struct cache_reader *reader) {
  struct file_id id;
  id.size = cache_get(reader, 8);
  id.mtime = (int64_t)cache_get(reader, 8);
  id.ctime = (int64_t)cache_get(reader, 8);
  id.inode = cache_get(reader, 8);
  id.device = cache_get(reader, 8);
  return id;
}

static bool same_id(const struct file_id *a, const struct file_id *b) {
  return a->size == b->size && a->mtime == b->mtime && a->ctime == b->ctime && a->inode == b->inode &&
         a->device == b->device;
}

static void skip_findings(struct cache_reader *reader) {
  for (uint64_t count = cache_get(reader, 4); count > 0 && !reader->bad; count--) {
    cache_get(reader, 8);
    cache_get(reader, 4);
    cache_get(reader, 3);
    cache_get_text(reader);
  }
}

static void skip_exports(struct cache_reader *reader) {
  for (uint64_t count = cache_get(reader, 4); count > 0 && !reader->bad; count--) {
    cache_get_text(reader);
    cache_get_text(reader);
    cache_get(reader, 3);
  }
}

static bool parse(struct cache *cache) {
  struct cache_reader reader = {.bytes = cache->bytes, .size = cache->size}, *r = &reader;
  struct file_id program = get_id(r);
  if (!same_id(&program, &cache->program) || strcmp(cache_get_text(r), SGL_VERSION) != 0 ||
      strcmp(cache_get_text(r), cache->clang) != 0 || strcmp(cache_get_text(r), cache->real_root) != 0)
    return false;
  cache->files_count = cache_get_count(r, 54);
  cache->files = scan_alloc(NULL, cache->files_count * sizeof *cache->files);
  for (uint32_t i = 0; i < cache->files_count && !r->bad; i++) {
    struct known_file *file = &cache->files[i];
    file->path = cache_get_text(r);
    file->language = (uint8_t)cache_get(r, 1);
    file->id = get_id(r);
    file->hash = cache_get(r, 8);
    r->bad = r->bad || file->language > LANGUAGE_TEXT || (i && strcmp(file[-1].path, file->path) >= 0);
  }
  cache->options = cache_get_text(r);
  for (unsigned i = 0; i <= LANGUAGE_TEXT; i++)
    cache->worlds[i] = cache_get(r, 8);
  cache->results_count = cache_get_count(r, 69);
  cache->results = scan_alloc(NULL, cache->results_count * sizeof *cache->results);
  for (uint32_t i = 0; i < cache->results_count && !r->bad; i++) {
    struct known_result *result = &cache->results[i];
    result->path = cache_get_text(r);
    result->hash = cache_get(r, 8);
    result->language = (uint8_t)cache_get(r, 1);
    result->coverage = (uint8_t)cache_get(r, 1);
    result->exported = cache_get(r, 1) != 0;
    result->seen = (uint8_t)cache_get(r, 1);
    result->id = get_id(r);
    result->reason = cache_get_text(r);
    result->findings = (uint32_t)r->at;
    skip_findings(r);
    result->exports = (uint32_t)r->at;
    skip_exports(r);
    r->bad = r->bad || result->coverage > COVERAGE_NONE || result->language > LANGUAGE_TEXT || !result->seen ||
             (i && strcmp(result[-1].path, result->path) >= 0);
  }
  return cache_cxx_parse(&cache->cxx, r) && r->at == r->size;
}

struct cache *cache_open(const char *real_root) {
  struct stat status;
  struct timespec now;
  if (stat("/proc/self/exe", &status) != 0)
    return NULL;
  clock_gettime(CLOCK_REALTIME, &now);
  struct cache *cache = scan_alloc(NULL, sizeof *cache);
  *cache = (struct cache){.real_root = scan_format("%s", real_root), .clang = libclang_identity()};
  cache->program = file_id_of(&status);
  cache->started = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
  cache->bytes = cache_file_read(real_root, &cache->size);
  if (cache->bytes && !parse(cache)) {
    cache->files_count = cache->results_count = cache->cxx.count = 0;
    cache->options = NULL;
  }
  return cache;
}

void cache_close(struct cache *cache) {
  if (!cache)
    return;
  free(cache->files);
  free(cache->results);
  free(cache->cxx.files);
  free(cache->bytes);
  free(cache->options_now);
  free(cache->real_root);
  free(cache->clang);
  free(cache);
}

/* --- files -------------------------------------------------------------------------------------------------------- */

static const struct known_file *find_file(const struct cache *cache, const char *path) {
  size_t low = 0, high = cache->files_count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    int order = strcmp(path, cache->files[middle].path);
    if (order == 0)
      return &cache->files[middle];
    if (order < 0)
      high = middle;
    else
      low = middle + 1;
  }
  return NULL;
}

/* Of a file with this path, whatever its content. */
static const struct known_result *find_any_result(const struct cache *cache, const char *path) {
  size_t low = 0, high = cache->results_count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    int order = strcmp(path, cache->results[middle].path);
    if (order == 0)
      return &cache->results[middle];
    if (order < 0)
      high = middle;
    else
      low = middle + 1;
  }
  return NULL;
}

static const struct known_result *find_result(const struct cache *cache, const struct source_file *file) {
  const struct known_result *result = find_any_result(cache, file->path);
  return result && result->hash == file->hash && result->language == (uint8_t)file->language ? result : NULL;
}

bool cache_known(const struct cache *cache, struct source_file *file, int folder, const char *name) {
  struct stat status;
  const struct known_file *known = find_file(cache, file->path);
  const struct known_result *result = known ? NULL : find_any_result(cache, file->path);
  if ((!known && !result) || fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(status.st_mode))
    return false;
  struct file_id id = file_id_of(&status);
  if (!same_id(&id, known ? &known->id : &result->id))
    return false;
  file->id = id;
  file->language = (enum language)(known ? known->language : result->language);
  file->hash = known ? known->hash : result->hash;
  file->seen = known ? 0 : result->seen;
  file->hit = result != NULL;
  return true;
}

/* --- exports ------------------------------------------------------------------------------------------------------ */

static bool same_options(const struct cache *cache) {
  return cache->options && strcmp(cache->options, cache->options_now) == 0;
}

bool cache_exports(const struct cache *cache, const struct source_file *file, bool *exported,
                   void (*found)(void *user, const struct py_export *export), void *user) {
  const struct known_result *known = cache->options_now && same_options(cache) ? find_result(cache, file) : NULL;
  if (!known)
    return false;
  *exported = known->exported;
  struct cache_reader reader = {.bytes = cache->bytes, .size = cache->size, .at = known->exports};
  for (uint64_t count = cache_get(&reader, 4); count > 0; count--) {
    struct py_export export = {0};
    export.name = cache_get_text(&reader);
    export.path = cache_get_text(&reader);
    export.leads_on = cache_get(&reader, 1) != 0;
    export.guarded = cache_get(&reader, 1) != 0;
    export.assigned = cache_get(&reader, 1) != 0;
    found(user, &export);
  }
  return true;
}

/* --- worlds ------------------------------------------------------------------------------------------------------- */

static void hash_text(XXH3_state_t *state, const char *text) {
  XXH3_64bits_update(state, text, strlen(text) + 1);
}

static void hash_export(void *user, const struct source_file *file, const struct py_export *export) {
  XXH3_state_t *state = user;
  const uint8_t flags[] = {export->leads_on, export->guarded, export->assigned};
  hash_text(state, file->path);
  hash_text(state, export->name);
  hash_text(state, export->path);
  XXH3_64bits_update(state, flags, sizeof flags);
}

static void hash_own(const struct scan *scan, XXH3_state_t *state) {
  const char *own = rules_own(scan);
  for (unsigned i = 0; own && i < scan->catalog->symbols_count; i++)
    for (unsigned k = 0; k < scan->catalog->symbols[i].routes_count; k++) {
      const uint8_t there = rules_own_module(own, scan->catalog->symbols[i].routes[k].module);
      XXH3_64bits_update(state, &there, 1);
    }
}

static void set_text_world(struct cache *cache, struct scan *scan) {
  XXH3_state_t text;
  XXH3_64bits_reset(&text);
  for (size_t i = 0; i < scan->files_count; i++) {
    const uint8_t language = (uint8_t)scan->files[i].language;
    hash_text(&text, scan->files[i].path);
    XXH3_64bits_update(&text, &language, 1);
  }
  cache->worlds_now[LANGUAGE_TEXT] = XXH3_64bits_digest(&text);
}

static void set_python_world(struct cache *cache, struct scan *scan) {
  XXH3_state_t python;
  XXH3_64bits_reset(&python);
  XXH3_64bits_update(&python, &cache->worlds_now[LANGUAGE_TEXT], sizeof cache->worlds_now[LANGUAGE_TEXT]);
  hash_own(scan, &python);
  python_index_visit(scan, hash_export, &python);
  cache->worlds_now[LANGUAGE_PYTHON] = cache->worlds_now[LANGUAGE_NOTEBOOK] = XXH3_64bits_digest(&python);
}

void cache_options(struct cache *cache, const struct options *options) {
  cache->options_now = scan_format("%s\n%s\n%d", options->kernel,
                                   options->sglang_release ? options->sglang_release : "jit", options->unsafe);
}

/* --- results ------------------------------------------------------------------------------------------------------ */

static void restore(const struct cache *cache, const struct scan *scan, const struct known_result *known,
                    struct source_file *file) {
  struct cache_reader reader = {.bytes = cache->bytes, .size = cache->size, .at = known->findings};
  struct result *result = &file->result;
  size_t count = cache_get(&reader, 4);
  for (size_t i = 0; i < count; i++) {
    uint32_t line = (uint32_t)cache_get(&reader, 4), column = (uint32_t)cache_get(&reader, 4),
             symbol = (uint32_t)cache_get(&reader, 4);
    uint8_t verdict = (uint8_t)cache_get(&reader, 1), evidence = (uint8_t)cache_get(&reader, 1),
            level = (uint8_t)cache_get(&reader, 1);
    const char *message = cache_get_text(&reader);
    result_find(result, line, column, &scan->catalog->symbols[symbol % scan->catalog->symbols_count],
                (enum verdict)verdict, (enum evidence)evidence, (enum level)level, "%s", message);
  }
  if (known->coverage != COVERAGE_FULL)
    result_coverage(result, (enum coverage)known->coverage, "%s", known->reason);
  file->cached = true;
}

/* Of the languages whose world holds, and of C++ files that hold. */
static void restore_all(const struct cache *cache, struct scan *scan, const bool *holds) {
  for (size_t i = 0; i < scan->files_count && same_options(cache); i++) {
    struct source_file *file = &scan->files[i];
    bool wanted = file->hit && holds[file->language] && (file->language != LANGUAGE_CXX || file->holds);
    const struct known_result *known = wanted ? find_result(cache, file) : NULL;
    if (known)
      restore(cache, scan, known, file);
  }
}

static bool holds(const struct cache *cache, enum language language) {
  return cache->worlds[language] == cache->worlds_now[language];
}

void cache_restore(struct cache *cache, struct scan *scan) {
  set_text_world(cache, scan);
  restore_all(cache, scan, (bool[LANGUAGE_TEXT + 1]){[LANGUAGE_TEXT] = holds(cache, LANGUAGE_TEXT)});
  cache_cxx_restore(&cache->cxx, scan, same_options(cache));
}

void cache_restore_cxx(struct cache *cache, struct scan *scan) {
  cache_cxx_compare_definitions(&cache->cxx, scan);
  restore_all(cache, scan, (bool[LANGUAGE_TEXT + 1]){[LANGUAGE_CXX] = true});
}

void cache_restore_python(struct cache *cache, struct scan *scan) {
  set_python_world(cache, scan);
  bool same = holds(cache, LANGUAGE_PYTHON);
  restore_all(cache, scan, (bool[LANGUAGE_TEXT + 1]){[LANGUAGE_PYTHON] = same, [LANGUAGE_NOTEBOOK] = same});
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

static void put_id(struct cache_writer *writer, const struct file_id *id) {
  cache_put_number(writer, id->size, 8);
  cache_put_number(writer, (uint64_t)id->mtime, 8);
  cache_put_number(writer, (uint64_t)id->ctime, 8);
  cache_put_number(writer, id->inode, 8);
  cache_put_number(writer, id->device, 8);
}

struct exports {
  struct cache_writer *writer;
  const struct source_file *file;
  uint32_t count;
};

static void put_export(void *user, const struct source_file *file, const struct py_export *export) {
  struct exports *exports = user;
  if (file != exports->file)
    return;
  cache_put_text(exports->writer, export->name);
  cache_put_text(exports->writer, export->path);
  cache_put_number(exports->writer, export->leads_on, 1);
  cache_put_number(exports->writer, export->guarded, 1);
  cache_put_number(exports->writer, export->assigned, 1);
  exports->count++;
}

static bool sure_id(const struct cache *cache, const struct source_file *file) {
  int64_t newest = file->id.mtime > file->id.ctime ? file->id.mtime : file->id.ctime;
  return newest != 0 && newest < cache->started - UNSURE_NS;
}

static void put_result(struct cache_writer *writer, const struct cache *cache, const struct scan *scan,
                       const struct source_file *file) {
  const struct result *result = &file->result;
  cache_put_text(writer, file->path);
  cache_put_number(writer, file->hash, 8);
  cache_put_number(writer, file->language, 1);
  cache_put_number(writer, result->coverage, 1);
  cache_put_number(writer, file->exported, 1);
  cache_put_number(writer, file->seen, 1);
  put_id(writer, sure_id(cache, file) ? &file->id : &(struct file_id){0});
  cache_put_text(writer, result->coverage_reason ? result->coverage_reason : "");
  cache_put_number(writer, result->findings_count, 4);
  for (size_t i = 0; i < result->findings_count; i++) {
    const struct finding *finding = &result->findings[i];
    cache_put_number(writer, finding->line, 4);
    cache_put_number(writer, finding->column, 4);
    cache_put_number(writer, (uint64_t)(finding->symbol - scan->catalog->symbols), 4);
    cache_put_number(writer, finding->verdict, 1);
    cache_put_number(writer, finding->evidence, 1);
    cache_put_number(writer, finding->level, 1);
    cache_put_text(writer, finding->message);
  }
  struct exports exports = {writer, file, 0};
  size_t at = writer->size;
  cache_put_number(writer, 0, 4);
  if (file->exported)
    python_index_visit(scan, put_export, &exports);
  cache_patch(writer, at, exports.count);
}

static bool sure(const struct cache *cache, const struct source_file *file) {
  return !file->hit && file->result.coverage != COVERAGE_NONE && sure_id(cache, file);
}

static bool can_keep(const struct source_file *file) {
  return file->hit && (file->bytes || file->cached) && file->result.ignores_count == 0 &&
         file->result.coverage != COVERAGE_NONE;
}

static bool keeps(const struct cache *cache, const struct source_file *file) {
  return can_keep(file) && (file->language != LANGUAGE_CXX || cache->keeps_cxx);
}

/* Nothing was read or analysed that an earlier scan had not. */
static bool nothing_new(const struct cache *cache, const struct scan *scan) {
  size_t files = 0, results = 0;
  for (size_t i = 0; i < scan->files_count; i++) {
    const struct source_file *file = &scan->files[i];
    if (keeps(cache, file)) {
      const struct known_result *known = find_any_result(cache, file->path);
      if (!file->cached || !known || (sure_id(cache, file) && !same_id(&known->id, &file->id)))
        return false;
      results++;
    }
    if (sure(cache, file)) {
      const struct known_file *known = find_file(cache, file->path);
      if (!known || !same_id(&known->id, &file->id))
        return false;
      files++;
    }
  }
  return files == cache->files_count && results == cache->results_count &&
         (!cache->keeps_cxx || cache_cxx_same(&cache->cxx, scan));
}

void cache_save(struct cache *cache, struct scan *scan) {
  cache->keeps_cxx = true;
  for (size_t i = 0; i < scan->files_count; i++)
    cache->keeps_cxx = cache->keeps_cxx && !scan->files[i].moved;
  if (scan->files_count < LEAST_FILES || nothing_new(cache, scan))
    return;
  struct cache_writer writer = {0}, *w = &writer;
  uint32_t count = 0;
  put_id(w, &cache->program);
  cache_put_text(w, SGL_VERSION);
  cache_put_text(w, cache->clang);
  cache_put_text(w, cache->real_root);
  size_t at = w->size;
  cache_put_number(w, 0, 4);
  for (size_t i = 0; i < scan->files_count; i++) {
    const struct source_file *file = &scan->files[i];
    if (!sure(cache, file))
      continue;
    cache_put_text(w, file->path);
    cache_put_number(w, file->language, 1);
    put_id(w, &file->id);
    cache_put_number(w, file->hash, 8);
    count++;
  }
  cache_patch(w, at, count);
  cache_put_text(w, cache->options_now);
  for (unsigned i = 0; i <= LANGUAGE_TEXT; i++)
    cache_put_number(w, cache->worlds_now[i], 8);
  at = w->size;
  count = 0;
  cache_put_number(w, 0, 4);
  for (size_t i = 0; i < scan->files_count; i++)
    if (keeps(cache, &scan->files[i])) {
      put_result(w, cache, scan, &scan->files[i]);
      count++;
    }
  cache_patch(w, at, count);
  if (cache->keeps_cxx)
    cache_cxx_put(&cache->cxx, scan, w, can_keep);
  else
    cache_put_number(w, 0, 4);
  cache_file_write(cache->real_root, w->bytes, w->size);
  free(w->bytes);
}
