#include "scanner/load.h"
#include "scanner/cache.h"
#include "scanner/crew.h"
#include "scanner/cxx_facts.h"
#include "scanner/prefilter.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Larger text files are not source code that somebody wrote; reading them would need their size in memory. */
#define LARGEST_FILE ((size_t)64 << 20)
/* Where git and others look for a NUL byte to tell binary files. */
#define BINARY_PROBE 8192
/* Files that a worker takes at once. */
#define BATCH 16

/* --- one file ----------------------------------------------------------------------------------------------------- */

/* What a worker reads into, again and again; only files with a hit get memory of their own. */
struct buffer {
  uint8_t *bytes;
  size_t capacity;
};

void load_drop(struct source_file *file) {
  if (file->first_bytes != file->bytes)
    free((void *)(uintptr_t)file->first_bytes);
  free((void *)(uintptr_t)file->bytes);
  file->bytes = file->first_bytes = NULL;
  file->size = 0;
}

struct file_id file_id_of(const struct stat *status) {
  return (struct file_id){.size = (uint64_t)status->st_size,
                          .inode = (uint64_t)status->st_ino,
                          .device = (uint64_t)status->st_dev,
                          .mtime = (int64_t)status->st_mtim.tv_sec * 1000000000 + status->st_mtim.tv_nsec,
                          .ctime = (int64_t)status->st_ctim.tv_sec * 1000000000 + status->st_ctim.tv_nsec};
}

/* Up to `limit` bytes into the buffer; the file may be longer or shorter than its size says. -1 with errno set. */
static ssize_t read_up_to(int fd, struct buffer *buffer, size_t expected, size_t limit) {
  size_t used = 0, wanted = (expected < limit ? expected : limit) + 1;
  for (;;) {
    if (buffer->capacity < wanted) {
      buffer->bytes = scan_alloc(buffer->bytes, wanted);
      buffer->capacity = wanted;
    }
    ssize_t got = read(fd, buffer->bytes + used, wanted - used);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return -1;
    used += (size_t)got;
    /* As long as it was said to be: one more read would only say that there is no more. */
    if (got == 0 || used > limit || (used == expected && expected > 0))
      return (ssize_t)used;
    if (used == wanted)
      wanted = 2 * wanted < limit ? 2 * wanted : limit + 1;
  }
}

/* The size of the file in the buffer. Otherwise -1, and the result says why, or the language is none (a binary). */
static ssize_t read_file(struct source_file *file, struct buffer *buffer) {
  /* Non-blocking, so that a named pipe that took the file's place does not stop the run; a link that did is not
   * followed out of the tree. */
  int fd = open(file->full_path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW);
  struct stat status;
  ssize_t size = -1;
  if (fd < 0 || fstat(fd, &status) != 0) {
    result_coverage(&file->result, COVERAGE_NONE, "cannot be read: %s",
                    errno == ELOOP ? "it became a link while the tree was read" : strerror(errno));
  } else if (!S_ISREG(status.st_mode)) {
    result_coverage(&file->result, COVERAGE_NONE, "is no regular file");
  } else {
    file->id = file_id_of(&status);
    bool large = status.st_size > (off_t)LARGEST_FILE;
    size = read_up_to(fd, buffer, (size_t)status.st_size, large ? BINARY_PROBE : LARGEST_FILE);
    large = large || size > (ssize_t)LARGEST_FILE; /* it grew */
    if (size < 0)
      result_coverage(&file->result, COVERAGE_NONE, "cannot be read: %s", strerror(errno));
    else if (large && (file->language != LANGUAGE_TEXT || !memchr(buffer->bytes, 0, (size_t)size)))
      result_coverage(&file->result, COVERAGE_NONE, "larger than %zu MiB", LARGEST_FILE >> 20);
    if (large)
      size = -1;
  }
  if (fd >= 0)
    close(fd);
  return size;
}

static void keep(struct source_file *file, const struct buffer *buffer, size_t size) {
  uint8_t *bytes = scan_alloc(NULL, size);
  memcpy(bytes, buffer->bytes, size);
  file->bytes = file->first_bytes = bytes;
  file->size = size;
}

void load_bytes(struct source_file *file) {
  struct buffer buffer = {0};
  ssize_t size = read_file(file, &buffer);
  if (size > 0)
    keep(file, &buffer, (size_t)size);
  free(buffer.bytes);
}

bool load_known(struct source_file *file) {
  if (file->bytes)
    return true;
  if (file->result.coverage == COVERAGE_NONE)
    return false;
  struct result known = file->result;
  file->result = (struct result){0};
  load_bytes(file);
  if (file->bytes && cache_hash(file->bytes, file->size) == file->hash) {
    file->result = known;
    return true;
  }
  load_drop(file);
  file->moved = true;
  result_free(&known);
  if (file->result.coverage == COVERAGE_FULL)
    result_coverage(&file->result, COVERAGE_NONE, "cannot be read: it changed while the tree was read");
  return false;
}

void load_facts(struct source_file *file) {
  struct buffer buffer = {0};
  ssize_t size = file->bytes ? (ssize_t)file->size : read_file(file, &buffer);
  if (size > 0)
    file->facts = cxx_facts_read(file->bytes ? file->bytes : buffer.bytes, (size_t)size);
  free(buffer.bytes);
}

struct loader {
  struct scan *scan;
  struct prefilter *prefilter;
  struct buffer *buffers; /* one a worker */
  size_t *files, count;   /* that are read */
  atomic_size_t done;
};

static bool has_utf16_mark(const uint8_t *bytes, size_t size) {
  return size >= 2 && ((bytes[0] == 0xff && bytes[1] == 0xfe) || (bytes[0] == 0xfe && bytes[1] == 0xff));
}

/* A script without an ending says in its first line what it is. */
static bool python_script(const struct source_file *file, const uint8_t *bytes, size_t size) {
  const char *slash = strrchr(file->path, '/');
  const char *name = slash ? slash + 1 : file->path;
  if (strchr(name, '.') || size < 2 || memcmp(bytes, "#!", 2) != 0)
    return false;
  const uint8_t *end = memchr(bytes, '\n', size);
  return memmem(bytes, end ? (size_t)(end - bytes) : size, "python", 6) != NULL;
}

static void load(struct loader *loader, unsigned worker, struct source_file *file) {
  struct buffer *buffer = &loader->buffers[worker];
  ssize_t got = read_file(file, buffer);
  if (got <= 0)
    return;
  size_t size = (size_t)got;
  uint8_t *bytes = buffer->bytes;
  if (file->language == LANGUAGE_CXX) {
    file->hash = loader->scan->cache ? cache_hash(bytes, size) : 0;
    file->facts = cxx_facts_read(bytes, size);
  }
  if (has_utf16_mark(bytes, size)) {
    /* Without the zero bytes the ASCII names of the catalog show. */
    size_t plain = 0;
    for (size_t i = 0; i < size; i++)
      if (bytes[i])
        bytes[plain++] = bytes[i];
    if (prefilter_look(loader->prefilter, worker, bytes, plain))
      result_coverage(&file->result, COVERAGE_NONE, "UTF-16 text that has a name of the catalog; convert it to UTF-8");
    return;
  }
  if (file->language == LANGUAGE_TEXT && memchr(bytes, 0, size < BINARY_PROBE ? size : BINARY_PROBE)) {
    file->language = LANGUAGE_NONE;
    return;
  }
  if (file->language == LANGUAGE_TEXT && python_script(file, bytes, size))
    file->language = LANGUAGE_PYTHON;
  file->seen = (uint8_t)prefilter_look(loader->prefilter, worker, bytes, size);
  file->hit = file->seen != 0;
  if (loader->scan->cache && file->hit)
    file->hash = cache_hash(bytes, size);
  if (file->hit)
    keep(file, buffer, size);
}

/* --- all files ---------------------------------------------------------------------------------------------------- */

static void load_batch(void *user, unsigned worker, size_t batch) {
  struct loader *loader = user;
  size_t end = (batch + 1) * BATCH < loader->count ? (batch + 1) * BATCH : loader->count;
  for (size_t i = batch * BATCH; i < end; i++)
    load(loader, worker, &loader->scan->files[loader->files[i]]);
  atomic_fetch_add(&loader->done, end - batch * BATCH);
}

void load_files(struct scan *scan, unsigned threads, bool progress) {
  struct loader loader = {.scan = scan, .files = scan_alloc(NULL, scan->files_count * sizeof *loader.files)};
  atomic_size_t count = 0;
  for (size_t i = 0; i < scan->files_count; i++)
    if (scan->files[i].language != LANGUAGE_NONE && !scan->files[i].known)
      loader.files[loader.count++] = i;
  if (loader.count) {
    atomic_store(&count, loader.count);
    loader.prefilter = prefilter_new(scan->catalog, threads);
    loader.buffers = scan_alloc(NULL, threads * sizeof *loader.buffers);
    memset(loader.buffers, 0, threads * sizeof *loader.buffers);
    struct progress *shown = progress ? progress_start("read", &loader.done, &count) : NULL;
    crew_run(load_batch, &loader, (loader.count + BATCH - 1) / BATCH, threads);
    progress_stop(shown);
    for (unsigned i = 0; i < threads; i++)
      free(loader.buffers[i].bytes);
    free(loader.buffers);
    prefilter_free(loader.prefilter);
  }
  free(loader.files);
}
