/* The disk cache of compiled kernels: one file an entry (cache_file.c), found in the cache folder of the user, else in
 * the prebuilt folder, and written to the first.
 *
 * An entry is written under a random name and renamed, so that a reader sees all of it or nothing, and whoever loses a
 * race has replaced a file by an equal one. */
#include "internal.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { LEFT_BEHIND = 3600 }; /* seconds after which the writer of a temporary file is surely gone */

enum jit_entry_fault jit_cache_read(enum jit_folder_kind kind, const char *key, struct jit_image *image) {
  struct jit_folder folder;
  struct jit_entry_name name;
  struct jit_entry entry;
  jit_folder_find(kind, &folder);
  int opened = jit_folder_open(&folder, false);
  if (opened < 0)
    return JIT_ENTRY_MISSING;
  jit_entry_name(key, &name);
  enum jit_entry_fault fault = jit_entry_read(&folder, opened, name.text, &entry);
  close(opened);
  if (fault == JIT_ENTRY_GOOD && strcmp(entry.key, key) != 0) /* two keys with one hash */
    fault = JIT_ENTRY_RENAMED;
  if (fault == JIT_ENTRY_GOOD) {
    jit_count(bytes_read, entry.file_size);
    *image = entry.image;
    entry.image.data = NULL;
  }
  jit_entry_free(&entry);
  return fault;
}

static bool write_all(int file, const void *data, size_t size) {
  for (const char *p = data; size;) {
    ssize_t n = TEMP_FAILURE_RETRY(write(file, p, size));
    if (n <= 0)
      return false;
    p += n;
    size -= (size_t)n;
  }
  return true;
}

/* What killed processes have left. A writer that is slower than that cannot rename its file, and does without. */
static void sweep(int opened) {
  struct jit_file file;
  time_t now = time(NULL);
  DIR *list = jit_folder_list(opened);
  while (list && jit_folder_next(list, &file))
    if (file.kind == JIT_FILE_TEMPORARY && file.stat.st_mtime < now - LEFT_BEHIND)
      unlinkat(opened, file.name, 0);
  if (list)
    closedir(list);
}

/* 0, or what went wrong. */
static int write_file(int opened, const char *temporary, const char *name, const char *content, size_t size) {
  int file = openat(opened, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0)
    return errno;
  int problem = write_all(file, content, size) && TEMP_FAILURE_RETRY(fsync(file)) == 0 ? 0 : errno;
  if (close(file) != 0 && !problem)
    problem = errno;
  if (!problem && renameat(opened, temporary, opened, name) != 0)
    problem = errno;
  if (problem)
    unlinkat(opened, temporary, 0);
  return problem;
}

sgl_jit_status jit_cache_write(const char *key, const struct jit_image *image, struct jit_message m) {
  struct jit_folder folder;
  struct jit_entry_name name;
  struct rlimit limit;
  char temporary[64], text[128];
  uint64_t random[2];
  size_t size = 0;
  jit_folder_find(JIT_FOLDER_CACHE, &folder);
  int opened = jit_folder_open(&folder, true);
  if (!folder.path[0])
    return jit_fail(m, SGL_JIT_ERROR_CACHE, "there is no cache folder: %s", folder.problem);
  if (opened < 0)
    return jit_fail(m, SGL_JIT_ERROR_CACHE, "the cache folder %s (%s) cannot be used: %s", folder.path, folder.source,
                    folder.problem);
  sgl_jit_status status = SGL_JIT_OK;
  char *content = jit_entry_encode(key, image, &size);
  jit_entry_name(key, &name);
  if (!content) {
    status = jit_fail(m, SGL_JIT_ERROR_OUT_OF_MEMORY, "out of memory");
  } else if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < size) { /* a write would kill the process */
    status = jit_fail(m, SGL_JIT_ERROR_CACHE, "the limit of file sizes (ulimit -f) is smaller than a kernel");
  } else if (getrandom(random, sizeof random, 0) != sizeof random) {
    status = jit_fail(m, SGL_JIT_ERROR_CACHE, "getrandom failed");
  } else {
    snprintf(temporary, sizeof temporary, JIT_TEMPORARY_PREFIX "%016llx%016llx", (unsigned long long)random[0],
             (unsigned long long)random[1]);
    sweep(opened);
    int problem = write_file(opened, temporary, name.text, content, size);
    if (problem)
      status = jit_fail(m, SGL_JIT_ERROR_CACHE, "the cache folder %s (%s) cannot be written: %s", folder.path,
                        folder.source, strerror_r(problem, text, sizeof text));
    else
      jit_count(bytes_written, size);
  }
  free(content);
  close(opened);
  return status;
}
