/* Files that are neither sources nor rewritten: baselines, settings, logs. */
#include "scanner/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "scanner/scanner.h"

char *file_read(const char *path, size_t limit, size_t *size, char *message, size_t message_size) {
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK); /* a pipe without a writer must not stop the run */
  struct stat status;
  char *text = NULL;
  if (fd < 0 || fstat(fd, &status) != 0) {
    snprintf(message, message_size, "cannot be read: %s", strerror(errno));
  } else if (!S_ISREG(status.st_mode)) {
    snprintf(message, message_size, "is no regular file");
  } else if (status.st_size > (off_t)limit) {
    snprintf(message, message_size, "is larger than %zu MiB", limit >> 20);
  } else {
    size_t capacity = (size_t)status.st_size + 1, used = 0;
    ssize_t got = 1;
    text = scan_alloc(NULL, capacity);
    while (used + 1 < capacity && got != 0) {
      got = read(fd, text + used, capacity - 1 - used);
      if (got < 0 && errno == EINTR)
        continue;
      if (got < 0) {
        snprintf(message, message_size, "cannot be read: %s", strerror(errno));
        free(text);
        close(fd);
        return NULL;
      }
      used += (size_t)got;
    }
    text[used] = '\0';
    *size = used;
  }
  if (fd >= 0)
    close(fd);
  return text;
}

bool file_write(int fd, const void *bytes, size_t size) {
  for (const char *at = bytes; size;) {
    ssize_t done = write(fd, at, size);
    if (done < 0 && errno == EINTR)
      continue;
    if (done <= 0) {
      if (done == 0)
        errno = ENOSPC;
      return false;
    }
    at += done;
    size -= (size_t)done;
  }
  return true;
}

bool file_below_root(const char *path) {
  if (!*path || *path == '/')
    return false;
  for (const char *part = path; part; part = strchr(part, '/') ? strchr(part, '/') + 1 : NULL)
    if (strncmp(part, "..", 2) == 0 && (part[2] == '/' || !part[2]))
      return false;
  return true;
}

bool file_replace(const char *path, const char *text, size_t size, char *message, size_t message_size) {
  char *real = realpath(path, NULL); /* a link stays a link */
  const char *target = real ? real : path;
  struct stat old;
  if (stat(target, &old) == 0 && !S_ISREG(old.st_mode)) {
    snprintf(message, message_size, "is no regular file");
    free(real);
    return false;
  }
  const char *slash = strrchr(target, '/');
  char *temporary =
      scan_format("%.*s.sgl-migrate-%ld.tmp", (int)(slash ? slash - target + 1 : 0), target, (long)getpid());
  int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
  bool made = fd >= 0, done = made && file_write(fd, text, size) && fsync(fd) == 0;
  if (done && real)
    done = fchmod(fd, old.st_mode & 07777) == 0;
  if (made && close(fd) != 0)
    done = false;
  done = done && rename(temporary, target) == 0;
  if (!done) {
    snprintf(message, message_size, "cannot be written: %s", strerror(errno));
    if (made)
      unlink(temporary);
  }
  free(temporary);
  free(real);
  return done;
}

int file_temporary(void) {
  const char *folder = getenv("TMPDIR");
  if (!folder || !*folder)
    folder = "/tmp";
  int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC | O_EXCL, 0600);
  if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT && errno != EINVAL))
    return fd;
  char *name = scan_format("%s/sgl-migrate-XXXXXX", folder);
  fd = mkostemp(name, O_CLOEXEC);
  if (fd >= 0)
    unlink(name);
  free(name);
  return fd;
}
