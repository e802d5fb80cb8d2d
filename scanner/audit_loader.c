/* Where ld.so looks for a library that RPATH and RUNPATH do not lead to: in its cache, then in its own folders. */
#include "scanner/audit.h"

#include <stdlib.h>
#include <string.h>

/* /etc/ld.so.cache: a header, entries, then the texts, whose offsets count from the header. An older format may stand
 * in front of it. */
#define MAGIC "glibc-ld.so.cache1.1"
enum { HEADER = 48, ENTRY = 24, ENTRIES_AT = 20 };
enum { FLAGS_X86_64 = 0x0300, FLAGS_AARCH64 = 0x0a00 };

static uint32_t word(const uint8_t *at) {
  uint32_t value;
  memcpy(&value, at, sizeof value);
  return value;
}

static const char *text_at(const uint8_t *cache, size_t size, uint32_t offset) {
  return offset < size && memchr(cache + offset, 0, size - offset) ? (const char *)cache + offset : NULL;
}

static bool right_machine(const struct audit_object *object, uint32_t flags) {
  if (strcmp(object->machine, "x86-64") == 0)
    return (flags & 0xff00) == FLAGS_X86_64;
  if (strcmp(object->machine, "aarch64") == 0)
    return (flags & 0xff00) == FLAGS_AARCH64;
  return true;
}

static bool in_cache(const uint8_t *cache, size_t size, const struct audit_object *object, const char *name,
                     bool (*found)(void *user, const char *path), void *user) {
  const uint8_t *start = size ? memmem(cache, size, MAGIC, strlen(MAGIC)) : NULL;
  if (!start)
    return false;
  size -= (size_t)(start - cache);
  if (size < HEADER)
    return false;
  uint32_t count = word(start + ENTRIES_AT);
  for (uint32_t i = 0; i < count && size - HEADER >= (size_t)(i + 1) * ENTRY; i++) {
    const uint8_t *entry = start + HEADER + (size_t)i * ENTRY;
    const char *key = text_at(start, size, word(entry + 4));
    if (!key || strcmp(key, name) != 0 || !right_machine(object, word(entry)))
      continue;
    const char *path = text_at(start, size, word(entry + 8));
    if (path && *path == '/' && found(user, path))
      return true;
  }
  return false;
}

static const char *const *folders(const struct audit_object *object) {
  static const char *const x86[] = {
      "/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib", NULL};
  static const char *const arm[] = {
      "/lib/aarch64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib", NULL};
  static const char *const other[] = {"/lib64", "/usr/lib64", "/lib", "/usr/lib", NULL};
  return strcmp(object->machine, "x86-64") == 0 ? x86 : strcmp(object->machine, "aarch64") == 0 ? arm : other;
}

const char *audit_loader_folders(const struct audit_object *object) {
  return strcmp(object->machine, "x86-64") == 0    ? "/lib/x86_64-linux-gnu, /lib64, /lib and those below /usr"
         : strcmp(object->machine, "aarch64") == 0 ? "/lib/aarch64-linux-gnu, /lib64, /lib and those below /usr"
                                                   : "/lib64, /lib and those below /usr";
}

bool audit_loader(const uint8_t *cache, size_t cache_size, const struct audit_object *object, const char *name,
                  bool (*found)(void *user, const char *path), void *user) {
  if (in_cache(cache, cache_size, object, name, found, user))
    return true;
  for (const char *const *folder = folders(object); *folder; folder++) {
    char *path = scan_format("%s/%s", *folder, name);
    bool done = found(user, path);
    free(path);
    if (done)
      return true;
  }
  return false;
}
