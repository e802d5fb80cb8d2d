/* Which results of C++ files still hold. What is said of a C++ file depends on others: on the headers that it includes
 * and the files that include it, on which file an include means, on macros, registrations and functions that the tree
 * defines anywhere. All of these are facts of single files (cxx_facts.h), and all questions go through cxx_index.c,
 * which notes the key of each fact that an analysis asks for, whatever the answer.
 *
 * So the cache has for each C++ file the hash of its content, its facts, and the keys that its analysis asked for. Of a
 * file that has changed, is new or is gone, the facts that it had and those that it has now are compared: what is in
 * one list only has changed, besides its content. A result holds when its file has the same content and asked for
 * nothing that has changed. That is decided in two steps, since what a file defines (also that it defines nothing) is
 * known from an analysis itself, which has asked for the other facts: first by all other facts; then, when the files
 * that do not hold were looked at for definitions, by these.
 *
 * Two things keep this right. A fact that is in no list, because nobody asked for it, cannot have been part of an
 * answer: when a macro is asked for, all files that may define it tell theirs. And a fact that the front begins to take
 * from another file has to be in a list, and to be asked for by a function that notes it: test_cache_cxx.py compares
 * scans with and without a cache after random edits of a tree that has each kind. Compile databases are read anew for
 * each scan; what they say of one file is a hash of it. */
#include "scanner/cache_cxx.h"
#include "scanner/cxx_facts.h"
#include "scanner/cxx_front.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* When more files have changed, it is a tree of another branch. */
#define MOST_CHANGED 64

/* --- reading ------------------------------------------------------------------------------------------------------ */

static const char *get_facts(struct cache_reader *reader) {
  uint64_t size = cache_get(reader, 4);
  const uint8_t *text = size ? cache_get_bytes(reader, size) : NULL;
  if (text && (text[size - 1] != '\0' || (size > 1 && (size == 2 || text[size - 2] != '\0')))) {
    reader->bad = true;
    return NULL;
  }
  return (const char *)text;
}

bool cache_cxx_parse(struct cache_cxx *cxx, struct cache_reader *reader) {
  cxx->count = cache_get_count(reader, 38);
  cxx->files = scan_alloc(NULL, cxx->count * sizeof *cxx->files);
  for (uint32_t i = 0; i < cxx->count && !reader->bad; i++) {
    struct known_cxx *file = &cxx->files[i];
    file->path = cache_get_text(reader);
    file->hash = cache_get(reader, 8);
    file->ways = cache_get(reader, 8);
    file->kept = cache_get(reader, 1) != 0;
    file->facts = get_facts(reader);
    file->told = get_facts(reader);
    file->defines = get_facts(reader);
    file->asked_count = cache_get_count(reader, sizeof(uint32_t));
    file->asked = cache_get_bytes(reader, file->asked_count * sizeof(uint32_t));
    reader->bad = reader->bad || (i && strcmp(file[-1].path, file->path) >= 0);
  }
  return !reader->bad;
}

static uint32_t asked_key(const struct known_cxx *known, uint32_t number) {
  uint32_t key;
  memcpy(&key, known->asked + number * sizeof key, sizeof key);
  return key;
}

static bool asked_for(const struct known_cxx *known, const struct cxx_keys *changed) {
  for (uint32_t i = 0; i < known->asked_count; i++)
    if (cxx_keys_has(changed, asked_key(known, i)))
      return true;
  return false;
}

/* --- what has changed --------------------------------------------------------------------------------------------- */

static uint32_t key_of(const char *text) {
  return cxx_key((enum cxx_fact)text[-1], text, strlen(text));
}

/* The key of the question that a fact answers. */
static uint32_t question_of(const char *text) {
  enum cxx_fact kind = (enum cxx_fact)text[-1];
  return cxx_key(kind == CXX_FACT_PASTES ? CXX_FACT_MACRO : kind, text, strlen(text));
}

static void add_keys(struct cxx_keys *keys, const char *facts) {
  for (const char *text = NULL; facts && (text = cxx_facts_next(facts, text));)
    cxx_keys_add(keys, key_of(text));
}

/* The facts of one list that are not in the other. */
static void add_missing(struct cxx_keys *changed, const char *facts, const struct cxx_keys *other) {
  for (const char *text = NULL; facts && (text = cxx_facts_next(facts, text));)
    if (!cxx_keys_has(other, key_of(text)))
      cxx_keys_add(changed, question_of(text));
}

static void compare_facts(struct cxx_keys *changed, const char *before, const char *now) {
  struct cxx_keys had = {0}, has = {0};
  add_keys(&had, before);
  add_keys(&has, now);
  add_missing(changed, before, &has);
  add_missing(changed, now, &had);
  cxx_keys_free(&had);
  cxx_keys_free(&has);
}

static uint64_t ways_of(const struct scan *scan, const struct source_file *file) {
  return scan->cxx_index ? cxx_database_ways(scan, cxx_index_database(scan), file) : 0;
}

/* A C++ file of the tree, of the cache, or of both. */
struct pair {
  struct source_file *file;
  const struct known_cxx *known;
};

static bool is_same(const struct pair *pair) {
  return pair->file && pair->known && pair->file->hash == pair->known->hash;
}

static void compare_pair(struct scan *scan, struct cxx_keys *changed, const struct pair *pair) {
  const char *path = pair->file ? pair->file->path : pair->known->path, *slash = strrchr(path, '/');
  const char *base = slash ? slash + 1 : path;
  cxx_keys_add(changed, cxx_key(CXX_FACT_CONTENT, path, strlen(path)));
  if (!pair->file || !pair->known)
    cxx_keys_add(changed, cxx_key(CXX_FACT_HEADER, base, strlen(base)));
  bool has_bytes = pair->file && pair->file->hash;
  if (has_bytes)
    cxx_index_begin(scan);
  compare_facts(changed, pair->known ? pair->known->facts : NULL, has_bytes ? pair->file->facts : NULL);
  compare_facts(changed, pair->known ? pair->known->told : NULL, has_bytes ? cxx_index_told(scan, pair->file) : NULL);
}

/* The files that are compiled in other ways than before. */
static void compare_ways(const struct scan *scan, struct cxx_keys *changed, const struct pair *pairs, size_t count) {
  bool had_any = false, has_any = false;
  for (size_t i = 0; i < count; i++) {
    const char *path = pairs[i].file ? pairs[i].file->path : pairs[i].known->path;
    uint64_t had = pairs[i].known ? pairs[i].known->ways : 0, has = pairs[i].file ? ways_of(scan, pairs[i].file) : 0;
    had_any = had_any || had;
    has_any = has_any || has;
    if (had != has)
      cxx_keys_add(changed, cxx_key(CXX_FACT_WAYS, path, strlen(path)));
  }
  if (had_any != has_any)
    cxx_keys_add(changed, cxx_key(CXX_FACT_WAYS, "", 0));
}

/* --- giving ------------------------------------------------------------------------------------------------------- */

static char *copy_of(const char *facts) {
  if (!facts)
    return NULL;
  size_t size = cxx_facts_size(facts);
  return memcpy(scan_alloc(NULL, size), facts, size);
}

/* What the content alone decides. */
static void give_facts(const struct pair *pair) {
  if (!pair->file->facts)
    pair->file->facts = copy_of(pair->known->facts);
  atomic_store(&pair->file->told, copy_of(pair->known->told));
}

static void want_asked(struct source_file *file) {
  file->asked = scan_alloc(NULL, sizeof *file->asked);
  *file->asked = (struct cxx_keys){0};
}

static struct pair *pairs_of(const struct cache_cxx *cxx, struct scan *scan, size_t *count) {
  struct pair *pairs = scan_alloc(NULL, (scan->files_count + cxx->count) * sizeof *pairs);
  *count = 0;
  for (size_t i = 0, k = 0; i < scan->files_count || k < cxx->count;) {
    struct source_file *file = i < scan->files_count ? &scan->files[i] : NULL;
    if (file && file->language != LANGUAGE_CXX) {
      i++;
      continue;
    }
    int order = !file ? 1 : k == cxx->count ? -1 : strcmp(file->path, cxx->files[k].path);
    pairs[(*count)++] = (struct pair){order <= 0 ? file : NULL, order >= 0 ? &cxx->files[k] : NULL};
    i += order <= 0;
    k += order >= 0;
  }
  return pairs;
}

void cache_cxx_restore(const struct cache_cxx *cxx, struct scan *scan, bool same) {
  size_t count, changes = 0;
  struct pair *pairs = pairs_of(cxx, scan, &count);
  bool hit = false;
  for (size_t i = 0; i < count; i++)
    hit = hit || (pairs[i].file && pairs[i].file->hit);
  if (hit && cxx_database_there(scan)) {
    cxx_index_begin(scan);
    cxx_index_open_database(scan);
  }
  for (size_t i = 0; i < count; i++)
    if (is_same(&pairs[i]))
      give_facts(&pairs[i]);
    else
      changes++;
  struct cxx_keys changed = {0};
  same = same && changes <= MOST_CHANGED;
  for (size_t i = 0; i < count && same && changes; i++)
    if (!is_same(&pairs[i]))
      compare_pair(scan, &changed, &pairs[i]);
  if (same)
    compare_ways(scan, &changed, pairs, count);
  bool all = true;
  for (size_t i = 0; i < count; i++) {
    struct source_file *file = pairs[i].file;
    if (!file || !file->hit)
      continue;
    file->holds = same && is_same(&pairs[i]) && pairs[i].known->kept && !asked_for(pairs[i].known, &changed);
    if (file->holds)
      file->defines = copy_of(pairs[i].known->defines);
    else
      want_asked(file);
    all = all && file->holds;
  }
  cxx_keys_free(&changed);
  free(pairs);
  if (all)
    cache_cxx_compare_definitions(cxx, scan);
}

void cache_cxx_compare_definitions(const struct cache_cxx *cxx, struct scan *scan) {
  size_t count;
  struct pair *pairs = pairs_of(cxx, scan, &count);
  struct cxx_keys had = {0}, has = {0}, changed = {0};
  for (size_t i = 0; i < count; i++) {
    add_keys(&had, pairs[i].known ? pairs[i].known->defines : NULL);
    add_keys(&has, pairs[i].file ? pairs[i].file->defines : NULL);
  }
  for (size_t i = 0; i < count; i++) {
    add_missing(&changed, pairs[i].known ? pairs[i].known->defines : NULL, &has);
    add_missing(&changed, pairs[i].file ? pairs[i].file->defines : NULL, &had);
  }
  for (size_t i = 0; i < count; i++) {
    struct source_file *file = pairs[i].file;
    if (!file || !file->holds || !asked_for(pairs[i].known, &changed))
      continue;
    file->holds = false;
    want_asked(file);
    /* Its definitions are not looked for again; what they asked for still counts. */
    for (uint32_t k = 0; k < pairs[i].known->asked_count; k++)
      cxx_keys_add(file->asked, asked_key(pairs[i].known, k));
  }
  cxx_keys_free(&had);
  cxx_keys_free(&has);
  cxx_keys_free(&changed);
  free(pairs);
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

bool cache_cxx_same(const struct cache_cxx *cxx, const struct scan *scan) {
  uint32_t at = 0;
  for (size_t i = 0; i < scan->files_count; i++) {
    const struct source_file *file = &scan->files[i];
    if (file->language != LANGUAGE_CXX)
      continue;
    if (at == cxx->count || cxx->files[at].hash != file->hash || cxx->files[at].ways != ways_of(scan, file) ||
        strcmp(cxx->files[at].path, file->path) != 0)
      return false;
    at++;
  }
  return at == cxx->count;
}

static void put_facts(struct cache_writer *writer, const char *facts) {
  size_t size = facts ? cxx_facts_size(facts) : 0;
  cache_put_number(writer, size, 4);
  cache_put(writer, facts, size);
}

static void put_asked(struct cache_writer *writer, const struct source_file *file, const struct known_cxx *known) {
  const struct cxx_keys *keys = file->cached ? NULL : file->asked;
  cache_put_number(writer, known ? known->asked_count : keys ? keys->count : 0, 4);
  if (known)
    cache_put(writer, known->asked, known->asked_count * sizeof(uint32_t));
  for (uint32_t i = 0; keys && i < keys->capacity; i++)
    if (keys->slots[i])
      cache_put_number(writer, keys->slots[i], sizeof(uint32_t));
}

void cache_cxx_put(const struct cache_cxx *cxx, const struct scan *scan, struct cache_writer *writer,
                   bool (*kept)(const struct source_file *file)) {
  uint32_t count = 0, at = 0;
  size_t start = writer->size;
  cache_put_number(writer, 0, 4);
  for (size_t i = 0; i < scan->files_count; i++) {
    const struct source_file *file = &scan->files[i];
    if (file->language != LANGUAGE_CXX)
      continue;
    while (at < cxx->count && strcmp(cxx->files[at].path, file->path) < 0)
      at++;
    cache_put_text(writer, file->path);
    cache_put_number(writer, file->hash, 8);
    cache_put_number(writer, ways_of(scan, file), 8);
    cache_put_number(writer, kept(file) && (file->cached || file->asked), 1);
    put_facts(writer, file->facts);
    put_facts(writer, atomic_load(&file->told));
    put_facts(writer, file->defines);
    put_asked(writer, file, file->cached ? &cxx->files[at] : NULL); /* a restored one has an entry */
    count++;
  }
  cache_patch(writer, start, count);
}
