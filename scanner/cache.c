/* What is known of the files of a root, and when it still holds.
 *
 * A file is not read again while its size, times and inode are the same, but when its bytes are wanted: to analyse it,
 * or to show its findings; one that was changed within two seconds of a scan is read by the next, since a change after
 * that may have left the same times. Results go by content, and hold only for the same program, libclang, options and
 * world, which is what a front knows from other files. The world of Python is the list of paths and the exports of all
 * modules, and which modules sglang has if the tree is sglang itself; that of C++ the content of all C++ files, and no
 * compile database; that of texts the list of paths. Results that depend on the date (ignore comments) are not kept. */
#include "scanner/cache.h"
#include "scanner/cxx_database.h"
#include "scanner/cxx_front.h"
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
  char *options_now;
  uint64_t worlds_now[LANGUAGE_TEXT + 1];
};

uint64_t cache_hash(const uint8_t *bytes, size_t size) {
  return XXH3_64bits(bytes, size);
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

struct reader {
  const uint8_t *bytes;
  size_t size, at;
  bool bad;
};

static uint64_t get(struct reader *reader, size_t size) {
  uint64_t value = 0;
  if (reader->size - reader->at < size) {
    reader->bad = true;
    return 0;
  }
  memcpy(&value, reader->bytes + reader->at, size);
  reader->at += size;
  return value;
}

static const char *get_text(struct reader *reader) {
  uint64_t length = get(reader, 4);
  if (reader->bad || reader->size - reader->at <= length || reader->bytes[reader->at + length] != '\0') {
    reader->bad = true;
    return "";
  }
  const char *text = (const char *)reader->bytes + reader->at;
  reader->at += length + 1;
  return text;
}

static struct file_id get_id(struct reader *reader) {
  struct file_id id;
  id.size = get(reader, 8);
  id.mtime = (int64_t)get(reader, 8);
  id.ctime = (int64_t)get(reader, 8);
  id.inode = get(reader, 8);
  id.device = get(reader, 8);
  return id;
}

static bool same_id(const struct file_id *a, const struct file_id *b) {
  return a->size == b->size && a->mtime == b->mtime && a->ctime == b->ctime && a->inode == b->inode &&
         a->device == b->device;
}

static void skip_findings(struct reader *reader) {
  for (uint64_t count = get(reader, 4); count > 0 && !reader->bad; count--) {
    get(reader, 8);
    get(reader, 4);
    get(reader, 3);
    get_text(reader);
  }
}

static void skip_exports(struct reader *reader) {
  for (uint64_t count = get(reader, 4); count > 0 && !reader->bad; count--) {
    get_text(reader);
    get_text(reader);
    get(reader, 3);
  }
}

/* A count whose entries take at least `least` bytes each. */
static uint32_t get_count(struct reader *reader, size_t least) {
  uint64_t count = get(reader, 4);
  if (reader->bad || count > (reader->size - reader->at) / least) {
    reader->bad = true;
    return 0;
  }
  return (uint32_t)count;
}

static bool parse(struct cache *cache) {
  struct reader reader = {.bytes = cache->bytes, .size = cache->size}, *r = &reader;
  struct file_id program = get_id(r);
  if (!same_id(&program, &cache->program) || strcmp(get_text(r), SGL_VERSION) != 0 ||
      strcmp(get_text(r), cache->clang) != 0 || strcmp(get_text(r), cache->real_root) != 0)
    return false;
  cache->files_count = get_count(r, 54);
  cache->files = scan_alloc(NULL, cache->files_count * sizeof *cache->files);
  for (uint32_t i = 0; i < cache->files_count && !r->bad; i++) {
    struct known_file *file = &cache->files[i];
    file->path = get_text(r);
    file->language = (uint8_t)get(r, 1);
    file->id = get_id(r);
    file->hash = get(r, 8);
    r->bad = r->bad || file->language > LANGUAGE_TEXT || (i && strcmp(file[-1].path, file->path) >= 0);
  }
  cache->options = get_text(r);
  for (unsigned i = 0; i <= LANGUAGE_TEXT; i++)
    cache->worlds[i] = get(r, 8);
  cache->results_count = get_count(r, 69);
  cache->results = scan_alloc(NULL, cache->results_count * sizeof *cache->results);
  for (uint32_t i = 0; i < cache->results_count && !r->bad; i++) {
    struct known_result *result = &cache->results[i];
    result->path = get_text(r);
    result->hash = get(r, 8);
    result->language = (uint8_t)get(r, 1);
    result->coverage = (uint8_t)get(r, 1);
    result->exported = get(r, 1) != 0;
    result->seen = (uint8_t)get(r, 1);
    result->id = get_id(r);
    result->reason = get_text(r);
    result->findings = (uint32_t)r->at;
    skip_findings(r);
    result->exports = (uint32_t)r->at;
    skip_exports(r);
    r->bad = r->bad || result->coverage > COVERAGE_NONE || result->language > LANGUAGE_TEXT || !result->seen ||
             (i && strcmp(result[-1].path, result->path) >= 0);
  }
  return !r->bad && r->at == r->size;
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
    cache->files_count = cache->results_count = 0;
    cache->options = NULL;
  }
  return cache;
}

void cache_close(struct cache *cache) {
  if (!cache)
    return;
  free(cache->files);
  free(cache->results);
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

bool cache_exports(const struct cache *cache, const struct source_file *file, bool *exported,
                   void (*found)(void *user, const struct py_export *export), void *user) {
  const struct known_result *known =
      cache->options && cache->options_now && strcmp(cache->options, cache->options_now) == 0 ? find_result(cache, file)
                                                                                              : NULL;
  if (!known)
    return false;
  *exported = known->exported;
  struct reader reader = {.bytes = cache->bytes, .size = cache->size, .at = known->exports};
  for (uint64_t count = get(&reader, 4); count > 0; count--) {
    struct py_export export = {0};
    export.name = get_text(&reader);
    export.path = get_text(&reader);
    export.leads_on = get(&reader, 1) != 0;
    export.guarded = get(&reader, 1) != 0;
    export.assigned = get(&reader, 1) != 0;
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

static void set_worlds(struct cache *cache, struct scan *scan) {
  XXH3_state_t cxx, text;
  XXH3_64bits_reset(&text);
  XXH3_64bits_reset(&cxx);
  for (size_t i = 0; i < scan->files_count; i++) {
    const struct source_file *file = &scan->files[i];
    const uint8_t language = (uint8_t)file->language;
    hash_text(&text, file->path);
    XXH3_64bits_update(&text, &language, 1);
    if (file->language == LANGUAGE_CXX)
      XXH3_64bits_update(&cxx, &file->hash, sizeof file->hash);
  }
  uint64_t paths = cache->worlds_now[LANGUAGE_TEXT] = XXH3_64bits_digest(&text);
  XXH3_64bits_update(&cxx, &paths, sizeof paths);
  cache->worlds_now[LANGUAGE_CXX] = XXH3_64bits_digest(&cxx);
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
  struct reader reader = {.bytes = cache->bytes, .size = cache->size, .at = known->findings};
  struct result *result = &file->result;
  size_t count = get(&reader, 4);
  for (size_t i = 0; i < count; i++) {
    uint32_t line = (uint32_t)get(&reader, 4), column = (uint32_t)get(&reader, 4), symbol = (uint32_t)get(&reader, 4);
    uint8_t verdict = (uint8_t)get(&reader, 1), evidence = (uint8_t)get(&reader, 1), level = (uint8_t)get(&reader, 1);
    const char *message = get_text(&reader);
    result_find(result, line, column, &scan->catalog->symbols[symbol % scan->catalog->symbols_count],
                (enum verdict)verdict, (enum evidence)evidence, (enum level)level, "%s", message);
  }
  if (known->coverage != COVERAGE_FULL)
    result_coverage(result, (enum coverage)known->coverage, "%s", known->reason);
  file->cached = true;
}

/* Of the languages whose world is known and holds. */
static void restore_all(const struct cache *cache, struct scan *scan, const bool *holds) {
  if (!cache->options || strcmp(cache->options, cache->options_now) != 0)
    return;
  for (size_t i = 0; i < scan->files_count; i++) {
    struct source_file *file = &scan->files[i];
    const struct known_result *known = file->hit && holds[file->language] ? find_result(cache, file) : NULL;
    if (known)
      restore(cache, scan, known, file);
  }
}

static bool holds(const struct cache *cache, enum language language) {
  return cache->worlds[language] == cache->worlds_now[language];
}

void cache_restore(struct cache *cache, struct scan *scan) {
  set_worlds(cache, scan);
  restore_all(cache, scan,
              (bool[LANGUAGE_TEXT + 1]){[LANGUAGE_TEXT] = holds(cache, LANGUAGE_TEXT),
                                        [LANGUAGE_CXX] = holds(cache, LANGUAGE_CXX) && !cxx_database_there(scan)});
}

void cache_restore_python(struct cache *cache, struct scan *scan) {
  set_python_world(cache, scan);
  bool same = holds(cache, LANGUAGE_PYTHON);
  restore_all(cache, scan, (bool[LANGUAGE_TEXT + 1]){[LANGUAGE_PYTHON] = same, [LANGUAGE_NOTEBOOK] = same});
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

struct writer {
  uint8_t *bytes;
  size_t size, capacity;
};

static void put(struct writer *writer, const void *bytes, size_t size) {
  if (writer->size + size > writer->capacity) {
    writer->capacity = 2 * (writer->size + size) + 65536;
    writer->bytes = scan_alloc(writer->bytes, writer->capacity);
  }
  memcpy(writer->bytes + writer->size, bytes, size);
  writer->size += size;
}

static void put_number(struct writer *writer, uint64_t value, size_t size) {
  put(writer, &value, size);
}

static void put_text(struct writer *writer, const char *text) {
  put_number(writer, strlen(text), 4);
  put(writer, text, strlen(text) + 1);
}

static void put_id(struct writer *writer, const struct file_id *id) {
  put_number(writer, id->size, 8);
  put_number(writer, (uint64_t)id->mtime, 8);
  put_number(writer, (uint64_t)id->ctime, 8);
  put_number(writer, id->inode, 8);
  put_number(writer, id->device, 8);
}

/* A number that is known only later. */
static void patch(struct writer *writer, size_t at, uint32_t value) {
  memcpy(writer->bytes + at, &value, sizeof value);
}

struct exports {
  struct writer *writer;
  const struct source_file *file;
  uint32_t count;
};

static void put_export(void *user, const struct source_file *file, const struct py_export *export) {
  struct exports *exports = user;
  if (file != exports->file)
    return;
  put_text(exports->writer, export->name);
  put_text(exports->writer, export->path);
  put_number(exports->writer, export->leads_on, 1);
  put_number(exports->writer, export->guarded, 1);
  put_number(exports->writer, export->assigned, 1);
  exports->count++;
}

static bool sure_id(const struct cache *cache, const struct source_file *file) {
  int64_t newest = file->id.mtime > file->id.ctime ? file->id.mtime : file->id.ctime;
  return newest != 0 && newest < cache->started - UNSURE_NS;
}

static void put_result(struct writer *writer, const struct cache *cache, const struct scan *scan,
                       const struct source_file *file) {
  const struct result *result = &file->result;
  put_text(writer, file->path);
  put_number(writer, file->hash, 8);
  put_number(writer, file->language, 1);
  put_number(writer, result->coverage, 1);
  put_number(writer, file->exported, 1);
  put_number(writer, file->seen, 1);
  put_id(writer, sure_id(cache, file) ? &file->id : &(struct file_id){0});
  put_text(writer, result->coverage_reason ? result->coverage_reason : "");
  put_number(writer, result->findings_count, 4);
  for (size_t i = 0; i < result->findings_count; i++) {
    const struct finding *finding = &result->findings[i];
    put_number(writer, finding->line, 4);
    put_number(writer, finding->column, 4);
    put_number(writer, (uint64_t)(finding->symbol - scan->catalog->symbols), 4);
    put_number(writer, finding->verdict, 1);
    put_number(writer, finding->evidence, 1);
    put_number(writer, finding->level, 1);
    put_text(writer, finding->message);
  }
  struct exports exports = {writer, file, 0};
  size_t at = writer->size;
  put_number(writer, 0, 4);
  if (file->exported)
    python_index_visit(scan, put_export, &exports);
  patch(writer, at, exports.count);
}

static bool sure(const struct cache *cache, const struct source_file *file) {
  return !file->hit && file->result.coverage != COVERAGE_NONE && sure_id(cache, file);
}

static bool keeps(const struct source_file *file) {
  return file->hit && (file->bytes || file->cached) && file->result.ignores_count == 0 &&
         file->result.coverage != COVERAGE_NONE;
}

/* Nothing was read or analysed that an earlier scan had not. */
static bool nothing_new(const struct cache *cache, const struct scan *scan) {
  size_t files = 0, results = 0;
  for (size_t i = 0; i < scan->files_count; i++) {
    const struct source_file *file = &scan->files[i];
    if (keeps(file)) {
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
  return files == cache->files_count && results == cache->results_count;
}

void cache_save(struct cache *cache, struct scan *scan) {
  if (scan->files_count < LEAST_FILES || nothing_new(cache, scan))
    return;
  struct writer writer = {0}, *w = &writer;
  uint32_t count = 0;
  put_id(w, &cache->program);
  put_text(w, SGL_VERSION);
  put_text(w, cache->clang);
  put_text(w, cache->real_root);
  size_t at = w->size;
  put_number(w, 0, 4);
  for (size_t i = 0; i < scan->files_count; i++) {
    const struct source_file *file = &scan->files[i];
    if (!sure(cache, file))
      continue;
    put_text(w, file->path);
    put_number(w, file->language, 1);
    put_id(w, &file->id);
    put_number(w, file->hash, 8);
    count++;
  }
  patch(w, at, count);
  put_text(w, cache->options_now);
  for (unsigned i = 0; i <= LANGUAGE_TEXT; i++)
    put_number(w, cache->worlds_now[i], 8);
  at = w->size;
  count = 0;
  put_number(w, 0, 4);
  for (size_t i = 0; i < scan->files_count; i++)
    if (keeps(&scan->files[i])) {
      put_result(w, cache, scan, &scan->files[i]);
      count++;
    }
  patch(w, at, count);
  cache_file_write(cache->real_root, w->bytes, w->size);
  free(w->bytes);
}
