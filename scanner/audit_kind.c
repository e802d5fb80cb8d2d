/* What a file is, by its name and first bytes, and what its path says. */
#include "scanner/audit.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool ends(const char *text, size_t length, const char *end) {
  size_t size = strlen(end);
  return length >= size && memcmp(text + length - size, end, size) == 0;
}

/* "libx.so", "libx.so.1.2" */
static bool library_name(const char *name) {
  const char *base = strrchr(name, '/') ? strrchr(name, '/') + 1 : name, *so = NULL;
  for (const char *at = base; (at = strstr(at, ".so")); at += 3)
    so = at;
  return so && so[3 + strspn(so + 3, ".0123456789")] == '\0';
}

static bool archive_name(const char *name) {
  static const char *const ends_list[] = {".whl",    ".zip", ".egg",   ".a",      ".tar",     ".tgz",
                                          ".tar.gz", ".txz", ".conda", ".tar.xz", ".tar.zst", ".tar.bz2",
                                          ".tzst",   ".deb", ".pyz",   ".pex"};
  for (size_t i = 0; i < sizeof ends_list / sizeof *ends_list; i++)
    if (ends(name, strlen(name), ends_list[i]))
      return true;
  return false;
}

static bool begins(const uint8_t *bytes, size_t size, const char *magic, size_t length) {
  return size >= length && memcmp(bytes, magic, length) == 0;
}

enum audit_kind audit_kind_of(const char *name, const uint8_t *bytes, size_t size, bool named, const char **why) {
  if (begins(bytes, size, ELFMAG, SELFMAG))
    return AUDIT_ELF;
  if (begins(bytes, size, "!<arch>\n", 8))
    return AUDIT_AR;
  if (begins(bytes, size, "!<thin>\n", 8)) {
    *why = "a thin archive: its members are files of their own";
    return AUDIT_BROKEN;
  }
  bool packed = begins(bytes, size, "PK\x03\x04", 4) || begins(bytes, size, "PK\x05\x06", 4) ||
                begins(bytes, size, "\x1f\x8b", 2) || begins(bytes, size, "BZh", 3) ||
                begins(bytes, size, "\3757zXZ", 5) || begins(bytes, size, "\x28\xb5\x2f\xfd", 4) ||
                (size >= 262 && memcmp(bytes + 257, "ustar", 5) == 0);
  if (packed && (!named || archive_name(name)))
    return AUDIT_ARCHIVE;
  if (begins(bytes, size, "version https://git-lfs", 23) && (library_name(name) || archive_name(name))) {
    *why = "a pointer of Git LFS, not the file itself";
    return AUDIT_BROKEN;
  }
  /* A text of that name is a linker script. */
  if (library_name(name) && (size == 0 || memchr(bytes, 0, size))) {
    *why = size ? "named like a library, but it is no ELF file" : "named like a library, but it is empty";
    return AUDIT_BROKEN;
  }
  if (ends(name, strlen(name), ".whl")) {
    *why = "named like a wheel, but it is no zip file";
    return AUDIT_BROKEN;
  }
  return AUDIT_OTHER;
}

bool audit_may_be_zip(const char *name) {
  static const char *const ends_list[] = {".whl", ".zip", ".egg", ".pyz", ".pex"};
  for (size_t i = 0; i < sizeof ends_list / sizeof *ends_list; i++)
    if (ends(name, strlen(name), ends_list[i]))
      return true;
  return false;
}

/* The record at the end of a zip file: 22 bytes, whose last two say how long the comment after them is. */
bool audit_ends_as_zip(int fd, uint64_t size, bool comment) {
  enum { RECORD = 22, MOST = RECORD + UINT16_MAX };
  size_t wanted = comment ? MOST : RECORD;
  wanted = wanted < size ? wanted : size;
  uint8_t *bytes = scan_alloc(NULL, MOST);
  ssize_t got = pread(fd, bytes, wanted, (off_t)(size - wanted));
  bool found = false;
  for (size_t at = got < RECORD ? 0 : (size_t)got - RECORD + 1; at-- > 0 && !found;)
    found = memcmp(bytes + at, "PK\x05\x06", 4) == 0 &&
            at + RECORD + (bytes[at + RECORD - 2] | (size_t)bytes[at + RECORD - 1] << 8) == (size_t)got;
  free(bytes);
  return found;
}

/* "sglang_kernel-0.4.5.dist-info/METADATA": name and version of a distribution. */
void audit_note_path(const struct audit_context *context, struct audit_list *list, const char *path) {
  size_t length = strlen(path);
  if (!ends(path, length, ".dist-info/METADATA"))
    return;
  const char *base = path, *end = path + length - strlen(".dist-info/METADATA");
  for (const char *at = path; at < end; at++)
    if (*at == '/')
      base = at + 1;
  const char *dash = memchr(base, '-', (size_t)(end - base));
  if (!dash)
    return;
  size_t size = (size_t)(dash - base);
  char *version = arena_copy(&list->arena, dash + 1, (size_t)(end - dash - 1));
  if (size == 5 && memcmp(base, "torch", 5) == 0 && !list->torch)
    list->torch = version;
  const struct catalog_library *library = &context->catalog->library;
  for (unsigned i = 0; i < library->distributions_count; i++) {
    const char *name = library->distributions[i];
    bool same = strlen(name) == size;
    for (size_t k = 0; same && k < size; k++)
      same = name[k] == base[k] || (strchr("-_.", name[k]) && strchr("-_.", base[k]));
    if (same && catalog_version_valid(version)) {
      audit_take_kernel(&list->kernels, version, name);
      break;
    }
  }
}

void audit_take_kernel(struct audit_kernels *kernels, const char *version, const char *distribution) {
  if (!version)
    return;
  int order = kernels->version ? catalog_version_compare(version, kernels->version) : 1;
  if (order == 0)
    return;
  if (order > 0 && kernels->version) {
    kernels->other_version = kernels->version;
    kernels->other_distribution = kernels->distribution;
  } else if (order < 0 && !kernels->other_version) {
    kernels->other_version = version;
    kernels->other_distribution = distribution;
  }
  if (order > 0) {
    kernels->version = version;
    kernels->distribution = distribution;
  }
}
