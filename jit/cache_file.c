/* The files of the disk cache: what is in a folder, and what one entry is. cache_folder.c says who may have written it.
 *
 * An entry: magic, key size, image size, key, image, and the XXH3-128 of all that. */
#include "internal.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

struct header {
  char magic[8]; /* with the version of the format */
  uint64_t key_size, image_size;
};

static const char magic[8] = "SGLJIT1";
enum { MAX_FILE_SIZE = 64 << 20 };

/* --- the files of a folder --- */

DIR *jit_folder_list(int folder) {
  int again = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* closedir closes it, and it has a position */
  DIR *list = again >= 0 ? fdopendir(again) : NULL;
  if (!list && again >= 0)
    close(again);
  return list;
}

/* "dsv3_router_gemm-" and 32 hexadecimal digits */
static bool is_entry_name(const char *name) {
  const char *dash = strrchr(name, '-');
  return name[0] != '.' && dash && dash > name && strlen(dash + 1) == 32 && strspn(dash + 1, "0123456789abcdef") == 32;
}

bool jit_folder_next(DIR *list, struct jit_file *file) {
  for (struct dirent *e = readdir(list); e; e = readdir(list)) {
    if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
      continue;
    snprintf(file->name, sizeof file->name, "%s", e->d_name);
    if (fstatat(dirfd(list), file->name, &file->stat, AT_SYMLINK_NOFOLLOW) != 0)
      continue; /* gone since */
    file->kind = is_entry_name(file->name)                                                      ? JIT_FILE_ENTRY
                 : strncmp(file->name, JIT_TEMPORARY_PREFIX, strlen(JIT_TEMPORARY_PREFIX)) == 0 ? JIT_FILE_TEMPORARY
                 : strncmp(file->name, JIT_LOCK_PREFIX, strlen(JIT_LOCK_PREFIX)) == 0           ? JIT_FILE_LOCK
                                                                                                : JIT_FILE_OTHER;
    return true;
  }
  return false;
}

/* --- one entry --- */

bool jit_key_field(const char *key, const char *field, char *value, size_t size) {
  size_t length = strlen(field);
  for (const char *line = key; *line; line += strcspn(line, "\n"), line += *line == '\n')
    if (strncmp(line, field, length) == 0 && line[length] == ' ') {
      const char *text = line + length + 1;
      return (size_t)snprintf(value, size, "%.*s", (int)strcspn(text, "\n"), text) < size;
    }
  return false;
}

/* The format is in the hash: versions of the library with other formats have other names in the same folder. */
void jit_entry_name(const char *key, struct jit_entry_name *name) {
  char kernel[128];
  if (!jit_key_field(key, "kernel", kernel, sizeof kernel))
    kernel[0] = '\0';
  XXH3_state_t state;
  XXH3_128bits_reset(&state);
  XXH3_128bits_update(&state, magic, sizeof magic);
  XXH3_128bits_update(&state, key, strlen(key));
  XXH128_hash_t hash = XXH3_128bits_digest(&state);
  snprintf(name->text, sizeof name->text, "%.*s-%016llx%016llx", (int)strcspn(kernel, ": /"), kernel,
           (unsigned long long)hash.high64, (unsigned long long)hash.low64);
}

char *jit_entry_encode(const char *key, const struct jit_image *image, size_t *size) {
  struct header header = {.key_size = strlen(key), .image_size = image->size};
  size_t key_size = strlen(key), body = sizeof header + key_size + image->size;
  if (image->size > MAX_FILE_SIZE - sizeof header - key_size - sizeof(XXH128_hash_t))
    return NULL; /* no reader would take it */
  char *content = malloc(body + sizeof(XXH128_hash_t));
  if (!content)
    return NULL;
  memcpy(header.magic, magic, sizeof magic);
  memcpy(content, &header, sizeof header);
  memcpy(content + sizeof header, key, key_size);
  memcpy(content + sizeof header + key_size, image->data, image->size);
  XXH128_hash_t sum = XXH3_128bits(content, body);
  memcpy(content + body, &sum, sizeof sum);
  *size = body + sizeof sum;
  return content;
}

enum jit_entry_fault jit_entry_decode(const char *content, size_t size, struct jit_entry *entry) {
  struct header header;
  XXH128_hash_t stored;
  *entry = (struct jit_entry){NULL, {NULL, 0}, size};
  if (size < sizeof magic || memcmp(content, magic, sizeof magic) != 0)
    return size < sizeof magic && memcmp(content, magic, size) == 0 ? JIT_ENTRY_TRUNCATED : JIT_ENTRY_FOREIGN;
  if (size < sizeof header + sizeof stored)
    return JIT_ENTRY_TRUNCATED;
  memcpy(&header, content, sizeof header);
  memcpy(&stored, content + size - sizeof stored, sizeof stored);
  size_t rest = size - sizeof header - sizeof stored;
  if (header.key_size <= MAX_FILE_SIZE && header.image_size <= MAX_FILE_SIZE &&
      header.key_size + header.image_size > rest)
    return JIT_ENTRY_TRUNCATED;
  if (!XXH128_isEqual(XXH3_128bits(content, size - sizeof stored), stored) || header.key_size > rest ||
      header.image_size != rest - header.key_size || header.image_size == 0)
    return JIT_ENTRY_CHECKSUM;
  size_t key_size = (size_t)header.key_size, image_size = (size_t)header.image_size;
  entry->key = malloc(key_size + 1);
  entry->image = (struct jit_image){malloc(image_size), image_size};
  if (!entry->key || !entry->image.data) {
    jit_entry_free(entry);
    return JIT_ENTRY_UNREADABLE;
  }
  memcpy(entry->key, content + sizeof header, key_size);
  entry->key[key_size] = '\0';
  memcpy(entry->image.data, content + sizeof header + key_size, image_size);
  return JIT_ENTRY_GOOD;
}

void jit_entry_free(struct jit_entry *entry) {
  free(entry->key);
  free(entry->image.data);
  *entry = (struct jit_entry){NULL, {NULL, 0}, 0};
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

static enum jit_entry_fault read_file(const struct jit_folder *folder, int file, const char *name,
                                      struct jit_entry *entry) {
  struct stat s;
  struct jit_entry_name right_name;
  if (fstat(file, &s) != 0)
    return JIT_ENTRY_UNREADABLE;
  if (!S_ISREG(s.st_mode))
    return JIT_ENTRY_NO_FILE;
  if (!jit_folder_is_owner(folder, s.st_uid))
    return JIT_ENTRY_OWNER;
  if (s.st_mode & (S_IWGRP | S_IWOTH))
    return JIT_ENTRY_WRITABLE;
  if (s.st_size > MAX_FILE_SIZE)
    return JIT_ENTRY_FOREIGN;
  size_t size = (size_t)s.st_size;
  char *content = malloc(size + 1);
  enum jit_entry_fault fault =
      content && read_all(file, content, size) ? jit_entry_decode(content, size, entry) : JIT_ENTRY_UNREADABLE;
  free(content);
  if (fault != JIT_ENTRY_GOOD)
    return fault;
  jit_entry_name(entry->key, &right_name);
  if (strcmp(name, right_name.text) == 0)
    return JIT_ENTRY_GOOD;
  jit_entry_free(entry);
  return JIT_ENTRY_RENAMED;
}

enum jit_entry_fault jit_entry_read(const struct jit_folder *folder, int opened, const char *name,
                                    struct jit_entry *entry) {
  *entry = (struct jit_entry){NULL, {NULL, 0}, 0};
  int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  int file = openat(opened, name, flags | (folder->unnoticed ? O_NOATIME : 0));
  if (file < 0 && errno == EPERM && folder->unnoticed) /* somebody else's: then it counts as a use */
    file = openat(opened, name, flags);
  if (file < 0)
    return errno == ENOENT ? JIT_ENTRY_MISSING : errno == ELOOP ? JIT_ENTRY_LINK : JIT_ENTRY_UNREADABLE;
  enum jit_entry_fault fault = read_file(folder, file, name, entry);
  close(file);
  return fault;
}

const char *jit_entry_fault_text(enum jit_entry_fault fault) {
  switch (fault) {
  case JIT_ENTRY_GOOD:
    return "good";
  case JIT_ENTRY_MISSING:
    return "missing";
  case JIT_ENTRY_UNREADABLE:
    return "cannot be read";
  case JIT_ENTRY_LINK:
    return "a symbolic link";
  case JIT_ENTRY_NO_FILE:
    return "not a regular file";
  case JIT_ENTRY_OWNER:
    return "belongs to another user";
  case JIT_ENTRY_WRITABLE:
    return "may be written by others";
  case JIT_ENTRY_FOREIGN:
    return "not an entry of this version's format";
  case JIT_ENTRY_TRUNCATED:
    return "truncated";
  case JIT_ENTRY_CHECKSUM:
    return "damaged: the checksum is wrong";
  case JIT_ENTRY_RENAMED:
    return "the name is not that of its content";
  }
  return "unknown";
}
