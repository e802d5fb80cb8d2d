/* The disk cache of compiled kernels: one file an entry, in
 *
 *   SGL_KERNEL_JIT_CACHE_DIR, else XDG_CACHE_HOME/sgl-kernel-jit, else HOME/.cache/sgl-kernel-jit
 *
 * An entry is written under a random name and renamed, so that a reader sees all of it or nothing, and whoever loses a
 * race has replaced a file by an equal one. The folder and its files must belong to the effective user and be closed to
 * writing by others: what is read is run on the GPU. A set-user-ID program does not read the environment.
 *
 * A file: magic, key size, image size, key, image, and the XXH3-128 of all that. */
#include "internal.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

struct header {
  char magic[8]; /* with the version of the format */
  uint64_t key_size, image_size;
};

static const char magic[8] = "SGLJIT1";
enum { MAX_FILE_SIZE = 64 << 20, NAME_SIZE = 192 };

/* --- the folder --- */

static bool folder_path(char *path, size_t size) {
  const char *own = secure_getenv("SGL_KERNEL_JIT_CACHE_DIR");
  const char *xdg = secure_getenv("XDG_CACHE_HOME");
  const char *home = secure_getenv("HOME");
  int length = -1;
  if (own && *own)
    length = *own == '/' ? snprintf(path, size, "%s", own) : -1; /* relative: no folder, or one per working directory */
  else if (xdg && *xdg == '/') /* the XDG specification: a relative path is to be ignored */
    length = snprintf(path, size, "%s/sgl-kernel-jit", xdg);
  else if (home && *home == '/')
    length = snprintf(path, size, "%s/.cache/sgl-kernel-jit", home);
  return length > 0 && (size_t)length < size;
}

static bool is_private(const struct stat *s) {
  return s->st_uid == geteuid() && !(s->st_mode & (S_IWGRP | S_IWOTH));
}

/* -1 where there is no folder to be trusted. */
static int open_folder(bool create) {
  char path[PATH_MAX];
  struct stat s;
  if (!folder_path(path, sizeof path))
    return -1;
  int folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder < 0 && create) {
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
      *slash = '\0';
      mkdir(path, 0700);
      *slash = '/';
    }
    mkdir(path, 0700);
    folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  }
  if (folder >= 0 && (fstat(folder, &s) != 0 || !is_private(&s))) {
    close(folder);
    return -1;
  }
  return folder;
}

/* --- one file --- */

/* "dsv3_router_gemm-<hash of the key>" */
static void entry_name(const char *name, const char *key, char file_name[NAME_SIZE]) {
  XXH128_hash_t hash = XXH3_128bits(key, strlen(key));
  snprintf(file_name, NAME_SIZE, "%s-%016llx%016llx", name, (unsigned long long)hash.high64,
           (unsigned long long)hash.low64);
}

static bool read_all(int file, void *data, size_t size) {
  for (char *p = data; size;) {
    ssize_t n = TEMP_FAILURE_RETRY(read(file, p, size));
    if (n <= 0)
      return false;
    p += n;
    size -= (size_t)n;
  }
  return true;
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

/* Takes the image out of a file's content, if the content is right. */
static bool unpack(const char *content, size_t size, const char *key, struct jit_image *image) {
  struct header header;
  XXH128_hash_t sum, stored;
  size_t key_size = strlen(key);
  if (size < sizeof header + sizeof stored)
    return false;
  memcpy(&header, content, sizeof header);
  memcpy(&stored, content + size - sizeof stored, sizeof stored);
  size_t rest = size - sizeof header - sizeof stored;
  if (memcmp(header.magic, magic, sizeof magic) != 0 || header.key_size != key_size || key_size > rest ||
      header.image_size != rest - key_size || header.image_size == 0)
    return false;
  sum = XXH3_128bits(content, size - sizeof stored);
  if (!XXH128_isEqual(sum, stored) || memcmp(content + sizeof header, key, key_size) != 0)
    return false;
  image->size = (size_t)header.image_size;
  image->data = malloc(image->size);
  if (!image->data)
    return false;
  memcpy(image->data, content + sizeof header + key_size, image->size);
  return true;
}

static bool read_entry(int folder, const char *file_name, const char *key, struct jit_image *image) {
  struct stat s;
  bool good = false;
  int file = openat(folder, file_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (file < 0)
    return false;
  if (fstat(file, &s) == 0 && S_ISREG(s.st_mode) && is_private(&s) && s.st_size > 0 && s.st_size <= MAX_FILE_SIZE) {
    size_t size = (size_t)s.st_size;
    char *content = malloc(size);
    good = content && read_all(file, content, size) && unpack(content, size, key, image);
    free(content);
  }
  close(file);
  return good;
}

bool jit_cache_read(const char *name, const char *key, struct jit_image *image) {
  char file_name[NAME_SIZE];
  int folder = open_folder(false);
  if (folder < 0)
    return false;
  entry_name(name, key, file_name);
  bool good = read_entry(folder, file_name, key, image);
  close(folder);
  return good;
}

void jit_cache_write(const char *name, const char *key, const struct jit_image *image) {
  char file_name[NAME_SIZE], temporary[64];
  uint64_t random[2];
  if (getrandom(random, sizeof random, 0) != sizeof random)
    return;
  int folder = open_folder(true);
  if (folder < 0)
    return;
  entry_name(name, key, file_name);
  snprintf(temporary, sizeof temporary, ".new-%016llx%016llx", (unsigned long long)random[0],
           (unsigned long long)random[1]);
  int file = openat(folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file >= 0) {
    struct header header = {.key_size = strlen(key), .image_size = image->size};
    memcpy(header.magic, magic, sizeof magic);
    XXH3_state_t *state = XXH3_createState();
    bool good = state != NULL;
    if (good) {
      XXH3_128bits_reset(state);
      XXH3_128bits_update(state, &header, sizeof header);
      XXH3_128bits_update(state, key, strlen(key));
      XXH3_128bits_update(state, image->data, image->size);
      XXH128_hash_t sum = XXH3_128bits_digest(state);
      good = write_all(file, &header, sizeof header) && write_all(file, key, strlen(key)) &&
             write_all(file, image->data, image->size) && write_all(file, &sum, sizeof sum) &&
             TEMP_FAILURE_RETRY(fsync(file)) == 0;
      XXH3_freeState(state);
    }
    good = close(file) == 0 && good;
    if (!good || renameat(folder, temporary, folder, file_name) != 0)
      unlinkat(folder, temporary, 0);
  }
  close(folder);
}
