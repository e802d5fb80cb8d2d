/* What a running process has mapped: /proc/N/maps, read through /proc/N/map_files, which also has what was deleted or
 * replaced since, or through the process's own root folder. */
#include "scanner/audit.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

struct mapping {
  unsigned long long start, end, inode;
  dev_t device;
  char *path; /* owned */
};

static const char deleted[] = " (deleted)";

static bool is_deleted(const char *path) {
  size_t length = strlen(path);
  return length > strlen(deleted) && strcmp(path + length - strlen(deleted), deleted) == 0;
}

/* The same file as the one that was mapped? */
static bool is_mapped(int fd, const struct mapping *mapping) {
  struct stat status;
  return fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_ino == mapping->inode;
}

/* -1 with the reason in *why. */
static int open_mapping(long pid, const struct mapping *mapping, const char **why) {
  char *name = scan_format("/proc/%ld/map_files/%llx-%llx", pid, mapping->start, mapping->end);
  int fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  free(name);
  if (fd >= 0 && is_mapped(fd, mapping))
    return fd;
  if (fd >= 0)
    close(fd);
  if (is_deleted(mapping->path)) {
    *why = "it was deleted or replaced after the process had mapped it, and its mapping cannot be read";
    return -1;
  }
  name = scan_format("/proc/%ld/root%s", pid, mapping->path);
  fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  free(name);
  if (fd >= 0 && is_mapped(fd, mapping))
    return fd;
  *why = fd >= 0 ? "the file of that name is another one than the process has mapped" : strerror(errno);
  if (fd >= 0)
    close(fd);
  return -1;
}

/* "7f12-7f34 r-xp 00000000 08:01 1234  /usr/lib/libm.so.6"; false for what is no file. */
static bool parse(const char *line, struct mapping *mapping) {
  unsigned major, minor;
  int at = 0;
  if (sscanf(line, "%llx-%llx %*4s %*x %x:%x %llu %n", &mapping->start, &mapping->end, &major, &minor, &mapping->inode,
             &at) < 5 ||
      line[at] != '/' || mapping->inode == 0)
    return false;
  mapping->device = makedev(major, minor);
  mapping->path = scan_format("%.*s", (int)strcspn(line + at, "\n"), line + at);
  return true;
}

static int by_path(const void *a, const void *b) {
  const struct mapping *x = a, *y = b;
  int order = strcmp(x->path, y->path);
  return order ? order : (x->start > y->start) - (x->start < y->start);
}

static void read_mapping(const struct audit_context *context, struct audit_list *list, long pid,
                         const struct mapping *mapping) {
  const char *why = NULL;
  int fd = open_mapping(pid, mapping, &why);
  struct stat status;
  uint8_t head[SELFMAG];
  if (fd < 0) {
    audit_fault(list, audit_add(list, mapping->path, NULL), "%s", why);
    return;
  }
  if (fstat(fd, &status) == 0 && pread(fd, head, sizeof head, 0) == sizeof head && memcmp(head, ELFMAG, SELFMAG) == 0)
    audit_elf(context, list, audit_add(list, mapping->path, NULL), fd, (uint64_t)status.st_size);
  close(fd);
}

bool audit_process(const struct audit_context *context, struct audit_list *list, long pid, size_t *files, char *message,
                   size_t message_size) {
  char *name = scan_format("/proc/%ld/maps", pid), *line = NULL;
  FILE *maps = fopen(name, "re");
  size_t capacity = 0, count = 0, room = 0;
  struct mapping *seen = NULL, one;
  errno = maps ? 0 : errno;
  while (maps && getline(&line, &capacity, maps) > 0) {
    if (!parse(line, &one))
      continue;
    bool known = false;
    for (size_t i = 0; i < count && !known; i++)
      known = seen[i].inode == one.inode && seen[i].device == one.device;
    if (known) {
      free(one.path);
      continue;
    }
    if (count == room) {
      room = room ? 2 * room : 64;
      seen = scan_alloc(seen, room * sizeof *seen);
    }
    seen[count++] = one;
  }
  if (count == 0)
    snprintf(message, message_size, "--pid %ld: %s", pid,
             errno == ENOENT ? "there is no such process"
             : errno         ? strerror(errno)
                             : "the process has mapped no file");
  if (maps)
    fclose(maps);
  if (count)
    qsort(seen, count, sizeof *seen, by_path); /* addresses are random */
  for (size_t i = 0; i < count; i++) {
    read_mapping(context, list, pid, &seen[i]);
    free(seen[i].path);
  }
  *files = count;
  free(seen);
  free(line);
  free(name);
  return count > 0;
}
