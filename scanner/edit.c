/* Applies edits to files. A file has its old content or all of its new content, at every moment. */
#include "scanner/file.h"
#include "scanner/scanner.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

/* --- new content -------------------------------------------------------------------------------------------------- */

static int compare_edits(const struct edit *a, const struct edit *b) {
  if (a->start != b->start)
    return a->start < b->start ? -1 : 1;
  return (a->end > b->end) - (a->end < b->end); /* an insertion comes before the replacement that starts there */
}

/* Stable: insertions at one place keep the order in which the front made them. The lists are short. */
static void sort_edits(struct edit *edits, size_t count) {
  for (size_t i = 1; i < count; i++) {
    struct edit edit = edits[i];
    size_t k = i;
    for (; k > 0 && compare_edits(&edits[k - 1], &edit) > 0; k--)
      edits[k] = edits[k - 1];
    edits[k] = edit;
  }
}

static bool same_edit(const struct edit *a, const struct edit *b) {
  return a->start == b->start && a->end == b->end && a->text_size == b->text_size &&
         memcmp(a->text, b->text, a->text_size) == 0;
}

bool edit_compose(const uint8_t *bytes, size_t size, struct edit *edits, size_t count, uint8_t **out, size_t *out_size,
                  char *message, size_t message_size) {
  sort_edits(edits, count);
  size_t new_size = size, position = 0;
  for (size_t i = 0; i < count; i++)
    new_size += edits[i].text_size; /* enough; less is used when bytes are replaced */
  uint8_t *new_bytes = scan_alloc(NULL, new_size);
  size_t used = 0;
  for (size_t i = 0; i < count; i++) {
    const struct edit *edit = &edits[i];
    bool repeated = false;
    for (size_t k = i; k-- > 0 && edits[k].start == edit->start && !repeated;)
      repeated = same_edit(&edits[k], edit);
    if (repeated)
      continue;
    if (edit->start > edit->end || edit->end > size) {
      snprintf(message, message_size, "an edit lies outside of the file");
      free(new_bytes);
      return false;
    }
    if (edit->start < position) {
      uint32_t line, column;
      rules_position(bytes, size, edit->start, &line, &column);
      snprintf(message, message_size, "two edits overlap in line %u", line);
      free(new_bytes);
      return false;
    }
    memcpy(new_bytes + used, bytes + position, edit->start - position);
    used += edit->start - position;
    memcpy(new_bytes + used, edit->text, edit->text_size);
    used += edit->text_size;
    position = edit->end;
  }
  if (size > position)
    memcpy(new_bytes + used, bytes + position, size - position);
  *out_size = used + (size - position);
  *out = new_bytes;
  return true;
}

/* --- files -------------------------------------------------------------------------------------------------------- */

enum content { CONTENT_SAME, CONTENT_OTHER, CONTENT_UNREADABLE };

static enum content compare_content(int fd, const uint8_t *bytes, size_t size) {
  uint8_t buffer[65536];
  size_t at = 0;
  for (;;) {
    ssize_t got = read(fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return CONTENT_UNREADABLE;
    if (got == 0)
      return at == size ? CONTENT_SAME : CONTENT_OTHER;
    if ((size_t)got > size - at || memcmp(buffer, bytes + at, (size_t)got) != 0)
      return CONTENT_OTHER;
    at += (size_t)got;
  }
}

/* Access lists, labels and what users put there. What this user may not set, or this file system has not, is not kept.
 */
static bool copy_extended(int fd, int old_fd) {
  ssize_t length = flistxattr(old_fd, NULL, 0);
  if (length <= 0)
    return true;
  char *names = scan_alloc(NULL, (size_t)length), *value = NULL;
  length = flistxattr(old_fd, names, (size_t)length);
  bool done = true;
  for (char *name = names; done && length > 0 && name < names + length; name += strlen(name) + 1) {
    ssize_t size = fgetxattr(old_fd, name, NULL, 0);
    value = scan_alloc(value, size > 0 ? (size_t)size : 1);
    size = fgetxattr(old_fd, name, value, size > 0 ? (size_t)size : 0);
    if (size >= 0 && fsetxattr(fd, name, value, (size_t)size, 0) != 0)
      done = errno == EPERM || errno == EACCES || errno == ENOTSUP;
  }
  free(value);
  free(names);
  return done;
}

/* Owner first: changing it clears the set-user bits of the mode. An owner that only root could give is not kept. */
static bool copy_attributes(int fd, const struct stat *old, int old_fd) {
  struct stat new;
  if (fstat(fd, &new) != 0)
    return false;
  if ((new.st_uid != old->st_uid || new.st_gid != old->st_gid) && fchown(fd, old->st_uid, old->st_gid) != 0 &&
      (errno != EPERM || (fchown(fd, (uid_t)-1, old->st_gid) != 0 && errno != EPERM)))
    return false;
  return fchmod(fd, old->st_mode & 07777) == 0 && copy_extended(fd, old_fd);
}

/* --- temporary files ---------------------------------------------------------------------------------------------- */

#define TEMPORARY_START ".sgl-migrate-"
#define TEMPORARY_END ".tmp"

bool edit_is_temporary(const char *name) {
  size_t length = strlen(name), start = sizeof TEMPORARY_START - 1, end = sizeof TEMPORARY_END - 1;
  if (length <= start + end || strncmp(name, TEMPORARY_START, start) != 0 ||
      strcmp(name + length - end, TEMPORARY_END) != 0)
    return false;
  return strspn(name + start, "0123456789-") == length - start - end;
}

/* Removes what a fix that was killed has left here: a file with the name of a temporary one that belongs to this user,
 * has no other name, and is not locked by the process that writes it. */
static void sweep(int folder) {
  int again = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *entries = again >= 0 ? fdopendir(again) : NULL;
  if (!entries && again >= 0)
    close(again);
  for (struct dirent *entry; entries && (entry = readdir(entries));) {
    if (!edit_is_temporary(entry->d_name))
      continue;
    struct stat status;
    int fd = openat(folder, entry->d_name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
      continue;
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid() && status.st_nlink == 1 &&
        flock(fd, LOCK_EX | LOCK_NB) == 0)
      unlinkat(folder, entry->d_name, 0);
    close(fd);
  }
  if (entries)
    closedir(entries);
}

/* A new file with a lock on it, and its name; -1 with errno set. */
static int make_temporary(int folder, char **name) {
  *name = NULL;
  for (unsigned attempt = 0; attempt < 100; attempt++) {
    free(*name);
    *name = scan_format(TEMPORARY_START "%ld-%u" TEMPORARY_END, (long)getpid(), attempt);
    int fd = openat(folder, *name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 && errno == EEXIST)
      continue;
    /* Another process that sweeps may have been here before the lock. A file system without locks has no sweeping. */
    struct stat status;
    if (fd >= 0 && flock(fd, LOCK_EX) == 0 && fstat(fd, &status) == 0 && status.st_nlink == 0) {
      close(fd);
      continue;
    }
    return fd;
  }
  errno = EEXIST;
  return -1;
}

/* The file that was opened and compared, untouched since then. */
static bool still_there(int folder, const char *name, const struct stat *old) {
  struct stat now;
  return fstatat(folder, name, &now, AT_SYMLINK_NOFOLLOW) == 0 && now.st_dev == old->st_dev &&
         now.st_ino == old->st_ino && now.st_size == old->st_size && now.st_mtim.tv_sec == old->st_mtim.tv_sec &&
         now.st_mtim.tv_nsec == old->st_mtim.tv_nsec;
}

/* Writes, syncs and renames the temporary file; *step says what failed, NULL that the file is another one by now. */
static bool replace(int folder, const char *name, const char *temporary, int fd, const struct stat *old, int old_fd,
                    const uint8_t *bytes, size_t size, const char **step) {
  *step = "writing";
  if (!file_write(fd, bytes, size) || !copy_attributes(fd, old, old_fd) || fsync(fd) != 0)
    return false;
  *step = "checking what was written";
  if (lseek(fd, 0, SEEK_SET) != 0 || compare_content(fd, bytes, size) != CONTENT_SAME)
    return false;
  *step = NULL;
  if (!still_there(folder, name, old))
    return false;
  *step = "replacing the file";
  if (renameat(folder, temporary, folder, name) != 0)
    return false;
  fsync(folder); /* the new content is in place; some file systems cannot sync a folder */
  return true;
}

static bool write_locked(const char *path, const uint8_t *old_bytes, size_t old_size, const uint8_t *new_bytes,
                         size_t new_size, char *message, size_t message_size) {
  char *target = realpath(path, NULL);
  if (!target) {
    snprintf(message, message_size, "cannot be opened: %s", strerror(errno));
    return false;
  }
  char *slash = strrchr(target, '/');
  const char *name = slash + 1;
  int folder = -1, fd = -1, old_fd = -1;
  char *temporary = NULL;
  const char *step = NULL;
  struct stat old;
  bool done = false;
  *message = '\0';

  char *folder_path = scan_format("%.*s/", (int)(slash - target), target);
  folder = open(folder_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  free(folder_path);
  if (folder < 0) {
    snprintf(message, message_size, "its folder cannot be opened: %s", strerror(errno));
    goto out;
  }
  old_fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (old_fd < 0 || fstat(old_fd, &old) != 0) {
    snprintf(message, message_size, "cannot be opened: %s", strerror(errno));
    goto out;
  }
  /* Renaming over it would work, but who may not write into the file is not meant to replace it either. */
  if (faccessat(folder, name, W_OK, AT_EACCESS) != 0) {
    snprintf(message, message_size, "is read-only for you; make it writable and run again");
    goto out;
  }
  if (compare_content(old_fd, old_bytes, old_size) != CONTENT_SAME) {
    snprintf(message, message_size, "changed after it was analysed; run again");
    goto out;
  }
  sweep(folder);
  fd = make_temporary(folder, &temporary);
  if (fd < 0) {
    snprintf(message, message_size, "no new file can be made in its folder: %s", strerror(errno));
    goto out;
  }
  done = replace(folder, name, temporary, fd, &old, old_fd, new_bytes, new_size, &step);
  if (!done) {
    int failure = errno;
    unlinkat(folder, temporary, 0);
    if (step)
      snprintf(message, message_size, "%s failed: %s; the file is unchanged", step, strerror(failure));
    else
      snprintf(message, message_size, "was changed by somebody else just now; run again");
  }
out:
  if (fd >= 0)
    close(fd);
  if (old_fd >= 0)
    close(old_fd);
  if (folder >= 0)
    close(folder);
  free(temporary);
  free(target);
  return done;
}

bool edit_write(const char *path, const uint8_t *old_bytes, size_t old_size, const uint8_t *new_bytes, size_t new_size,
                char *message, size_t message_size) {
  /* Ctrl-C takes effect between two files, so that no temporary file is left; a full quota is an error, not a signal.
   */
  sigset_t blocked, before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGINT);
  sigaddset(&blocked, SIGTERM);
  sigaddset(&blocked, SIGHUP);
  sigaddset(&blocked, SIGXFSZ);
  pthread_sigmask(SIG_BLOCK, &blocked, &before);
  bool done = write_locked(path, old_bytes, old_size, new_bytes, new_size, message, message_size);
  struct timespec now = {0};
  sigset_t quota;
  sigemptyset(&quota);
  sigaddset(&quota, SIGXFSZ);
  if (!sigismember(&before, SIGXFSZ))
    while (sigtimedwait(&quota, NULL, &now) == SIGXFSZ) {
    }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return done;
}
