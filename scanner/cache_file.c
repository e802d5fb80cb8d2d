/* Where the caches of scans are: one file a root in the user's cache folder, replaced in one step, never followed
 * through a link, never taken from somebody else. */
#include "scanner/cache.h"
#include "scanner/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define LARGEST_CACHE ((off_t)1 << 30)
/* A root that nobody has scanned for so long. */
#define KEPT_SECONDS (30 * 24 * 3600)

/* "SGLMIGR1" and the checksum of what follows. */
static const char magic[8] = "SGLMIGR1";
#define HEADER 16

static bool is_own(int fd, mode_t kind) {
  struct stat status;
  return fstat(fd, &status) == 0 && (status.st_mode & S_IFMT) == kind && status.st_uid == geteuid() &&
         (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/* $XDG_CACHE_HOME/sgl-migrate or ~/.cache/sgl-migrate, made when asked; -1 when there is none. */
static int open_folder(bool make) {
  const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  char *parent = base && *base == '/'   ? scan_format("%s", base)
                 : home && *home == '/' ? scan_format("%s/.cache", home)
                                        : NULL;
  if (!parent)
    return -1;
  char *path = scan_format("%s/sgl-migrate", parent);
  if (make) {
    mkdir(parent, 0700);
    mkdir(path, 0700);
  }
  int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  free(path);
  free(parent);
  if (fd >= 0 && is_own(fd, S_IFDIR))
    return fd;
  if (fd >= 0)
    close(fd);
  return -1;
}

static void name_of(const char *real_root, char name[64]) {
  XXH128_hash_t hash = XXH3_128bits(real_root, strlen(real_root));
  snprintf(name, 64, "%016llx%016llx.cache", (unsigned long long)hash.high64, (unsigned long long)hash.low64);
}

static bool read_all(int fd, uint8_t *bytes, size_t size) {
  for (size_t used = 0; used < size;) {
    ssize_t got = read(fd, bytes + used, size - used);
    if (got <= 0)
      return false;
    used += (size_t)got;
  }
  return true;
}

uint8_t *cache_file_read(const char *real_root, size_t *size) {
  char name[64];
  struct stat status;
  name_of(real_root, name);
  int folder = open_folder(false);
  int fd = folder < 0 ? -1 : openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  uint8_t *bytes = NULL;
  if (fd >= 0 && is_own(fd, S_IFREG) && fstat(fd, &status) == 0 && status.st_size > HEADER &&
      status.st_size < LARGEST_CACHE) {
    *size = (size_t)status.st_size - HEADER;
    uint8_t header[HEADER];
    uint64_t sum;
    bytes = scan_alloc(NULL, *size);
    bool good = read_all(fd, header, HEADER) && read_all(fd, bytes, *size) && memcmp(header, magic, 8) == 0;
    memcpy(&sum, header + 8, 8);
    if (!good || XXH3_64bits(bytes, *size) != sum) {
      free(bytes);
      bytes = NULL;
    }
  }
  if (fd >= 0)
    close(fd);
  if (folder >= 0)
    close(folder);
  return bytes;
}

/* Old caches, and what a killed process has left. */
static void sweep(int folder) {
  int fd = dup(folder);
  DIR *list = fd < 0 ? NULL : fdopendir(fd);
  struct dirent *entry;
  struct stat status;
  time_t now = time(NULL);
  if (!list && fd >= 0)
    close(fd);
  while (list && (entry = readdir(list)))
    if (strstr(entry->d_name, ".cache") && fstatat(folder, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISREG(status.st_mode) && now - status.st_mtime > KEPT_SECONDS)
      unlinkat(folder, entry->d_name, 0);
  if (list)
    closedir(list);
}

void cache_file_write(const char *real_root, const uint8_t *bytes, size_t size) {
  int folder = open_folder(true);
  if (folder < 0)
    return;
  char name[64], temporary[128];
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  name_of(real_root, name);
  snprintf(temporary, sizeof temporary, "%s.%ld.%ld", name, (long)getpid(), now.tv_nsec);
  uint8_t header[HEADER];
  uint64_t sum = XXH3_64bits(bytes, size);
  memcpy(header, magic, 8);
  memcpy(header + 8, &sum, 8);
  int fd = openat(folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd >= 0) {
    bool good = file_write(fd, header, HEADER) && file_write(fd, bytes, size);
    good = close(fd) == 0 && good && renameat(folder, temporary, folder, name) == 0;
    if (!good)
      unlinkat(folder, temporary, 0);
    sweep(folder);
  }
  close(folder);
}
