/* The files of a wheel, a source package or a folder. An archive is read in one pass, in its own order; nothing of it
 * is unpacked to a path: texts go to memory, a library to a file without a name. */
#include "scanner/audit.h"
#include "scanner/file.h"
#include "scanner/surface.h"
#include "scanner/unpack.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK ((size_t)256 << 10)
#define TEXT_LARGEST ((uint64_t)16 << 20)

enum file_kind { FILE_OTHER, FILE_PYTHON, FILE_SOURCE, FILE_LIBRARY, FILE_METADATA };

static bool ends(const char *path, const char *end) {
  size_t length = strlen(path), size = strlen(end);
  return length >= size && strcmp(path + length - size, end) == 0;
}

/* "x.so", "x.so.1" */
static bool is_library(const char *path) {
  const char *base = strrchr(path, '/'), *so = NULL;
  base = base ? base + 1 : path;
  for (const char *at = base; (at = strstr(at, ".so")); at += 3)
    so = at;
  return so && so[3 + strspn(so + 3, ".0123456789")] == '\0';
}

static bool in_package(const struct surface *surface, const char *path) {
  const char *package = surface->catalog->library.package;
  size_t length = strlen(package);
  for (const char *at = path; at; at = strchr(at, '/'), at += at != NULL)
    if (strncmp(at, package, length) == 0 && at[length] == '/')
      return true;
  return false;
}

static enum file_kind kind_of(const struct surface *surface, const char *path) {
  if (surface_python_wants(surface, path))
    return FILE_PYTHON;
  if (ends(path, ".dist-info/METADATA") || ends(path, "/PKG-INFO"))
    return FILE_METADATA;
  if (is_library(path))
    return in_package(surface, path) ? FILE_LIBRARY : FILE_OTHER;
  return walk_language(path) == LANGUAGE_CXX ? FILE_SOURCE : FILE_OTHER;
}

/* --- distribution and version ------------------------------------------------------------------------------------- */

/* "sgl-kernel" and "SGL_Kernel" are one distribution. */
static bool same_distribution(const char *a, const char *b) {
  for (; *a && *b; a++, b++) {
    char x = *a == '_' || *a == '.' ? '-' : *a, y = *b == '_' || *b == '.' ? '-' : *b;
    if (strncasecmp(&x, &y, 1) != 0)
      return false;
  }
  return *a == *b;
}

/* The value of a field before the first empty line. */
static const char *field(struct arena *arena, const char *text, size_t size, const char *name) {
  const char *end = text + size;
  for (const char *line = text; line < end && *line != '\n' && *line != '\r';) {
    const char *stop = memchr(line, '\n', (size_t)(end - line));
    stop = stop ? stop : end;
    size_t length = strlen(name);
    if ((size_t)(stop - line) > length && strncasecmp(line, name, length) == 0 && line[length] == ':')
      return surface_plain(arena, line + length + 1, (size_t)(stop - line) - length - 1);
    line = stop + 1;
  }
  return NULL;
}

static void take_metadata(struct surface *surface, const uint8_t *bytes, size_t size) {
  const struct catalog_library *library = &surface->catalog->library;
  const char *name = field(&surface->arena, (const char *)bytes, size, "Name");
  bool own = library->distributions_count == 0;
  for (unsigned i = 0; name && i < library->distributions_count; i++)
    own |= same_distribution(name, library->distributions[i]);
  if (!name || !own || surface->distribution)
    return;
  surface->distribution = name;
  surface->version = field(&surface->arena, (const char *)bytes, size, "Version");
}

static void take_text(struct surface *surface, enum file_kind kind, const char *path, const uint8_t *bytes,
                      size_t size) {
  if (kind == FILE_PYTHON)
    surface_python_add(surface, path, bytes, size);
  else if (kind == FILE_SOURCE)
    surface_sources(surface, path, bytes, size);
  else
    take_metadata(surface, bytes, size);
}

static void too_large(struct surface *surface, const char *path) {
  surface_fault(surface, "%s: a text of more than %d MiB; it is left out", path, (int)(TEXT_LARGEST >> 20));
}

/* --- archives ----------------------------------------------------------------------------------------------------- */

struct unpacking {
  struct surface *surface;
  struct archive *archive;
  uint64_t size, total; /* of the file; unpacked */
  char *path;           /* of the member */
  bool stopped;
};

static bool next_block(struct unpacking *run, const void **block, size_t *size, int64_t *offset) {
  int status;
  do
    status = archive_read_data_block(run->archive, block, size, offset);
  while (status == ARCHIVE_RETRY || (status == ARCHIVE_OK && *size == 0)); /* an empty block may be NULL */
  if (status == ARCHIVE_EOF)
    return false;
  const char *why = archive_error_string(run->archive);
  if (status != ARCHIVE_OK && status != ARCHIVE_WARN) {
    surface_fault(run->surface, "%s: truncated or damaged: %s", run->path, why ? why : "unknown reason");
    return false;
  }
  run->total += *size;
  if (run->total > audit_default_limits.total ||
      (run->total > AUDIT_RATIO_FROM && run->total / audit_default_limits.ratio > run->size)) {
    surface_fault(run->surface, "%s: the archive unpacks to more than any wheel does; the rest is not analysed",
                  run->path);
    run->stopped = true;
    return false;
  }
  return true;
}

static void read_text(struct unpacking *run, enum file_kind kind) {
  const void *block;
  size_t size, used = 0, capacity = 0;
  int64_t offset;
  uint8_t *text = NULL;
  size_t faults = run->surface->faults_count;
  while (next_block(run, &block, &size, &offset)) {
    if (offset < 0 || (uint64_t)offset + size > TEXT_LARGEST) {
      too_large(run->surface, run->path);
      break;
    }
    size_t end = (size_t)offset + size;
    if (end > capacity) {
      size_t larger = end > 2 * capacity ? end : 2 * capacity;
      text = scan_alloc(text, larger);
      memset(text + capacity, 0, larger - capacity);
      capacity = larger;
    }
    memcpy(text + offset, block, size);
    used = end > used ? end : used;
  }
  if (run->surface->faults_count == faults)
    take_text(run->surface, kind, run->path, text ? text : (const uint8_t *)"", used);
  free(text);
}

static bool write_block(int fd, const uint8_t *block, size_t size, int64_t offset) {
  while (size) {
    ssize_t wrote = pwrite(fd, block, size, offset);
    if (wrote < 0 && errno != EINTR)
      return false;
    if (wrote > 0) {
      block += wrote;
      size -= (size_t)wrote;
      offset += wrote;
    }
  }
  return true;
}

/* Nine tenths of a kernel library are CUDA code, in fat binaries (see audit_sections.c). Nothing in them is read here,
 * so the copy has a hole there: from behind a fat binary's header to its end. Writes the rest of a block. */
static bool write_around(int fd, const uint8_t *block, size_t size, int64_t offset, int64_t *hole_end) {
  static const uint8_t magic[8] = {0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0}; /* version 1, a header of 16 bytes */
  size_t at = *hole_end > offset ? (size_t)(*hole_end - offset) : 0;
  while (at < size) {
    const uint8_t *found = memmem(block + at, size - at, magic, sizeof magic);
    uint64_t length = 0;
    if (found && (size_t)(block + size - found) >= 2 * sizeof magic)
      memcpy(&length, found + sizeof magic, sizeof length);
    bool hole = length > 0 && length <= audit_default_limits.member;
    size_t stop = hole ? (size_t)(found - block) + 2 * sizeof magic : size;
    if (!write_block(fd, block + at, stop - at, offset + (int64_t)at))
      return false;
    if (!hole)
      return true;
    *hole_end = offset + (int64_t)stop + (int64_t)length;
    at = length < size - stop ? stop + (size_t)length : size;
  }
  return true;
}

static void read_library(struct unpacking *run) {
  const void *block;
  size_t size;
  int64_t offset, hole_end = 0;
  uint64_t end = 0;
  size_t faults = run->surface->faults_count;
  int fd = file_temporary();
  if (fd < 0) {
    surface_fault(run->surface, "%s: no file for it in the temporary folder: %s", run->path, strerror(errno));
    return;
  }
  while (run->surface->faults_count == faults && next_block(run, &block, &size, &offset)) {
    if (offset < 0 || (uint64_t)offset + size > audit_default_limits.member)
      surface_fault(run->surface, "%s: larger than any library", run->path);
    else if (!write_around(fd, block, size, offset, &hole_end))
      surface_fault(run->surface, "%s: the temporary folder: %s", run->path, strerror(errno));
    end = (uint64_t)offset + size > end ? (uint64_t)offset + size : end;
  }
  if (run->surface->faults_count == faults && ftruncate(fd, (off_t)end) != 0)
    surface_fault(run->surface, "%s: the temporary folder: %s", run->path, strerror(errno));
  if (run->surface->faults_count == faults)
    surface_binary(run->surface, arena_copy(&run->surface->arena, run->path, strlen(run->path)), fd, end);
  close(fd);
}

static void read_member(struct unpacking *run, struct archive_entry *entry) {
  const char *path = archive_entry_pathname(entry);
  if (!path || archive_entry_filetype(entry) != AE_IFREG || archive_entry_hardlink(entry))
    return;
  run->path = scan_format("%s", path);
  enum file_kind kind = kind_of(run->surface, path);
  if (kind == FILE_LIBRARY)
    read_library(run);
  else if (kind != FILE_OTHER)
    read_text(run, kind);
  free(run->path);
}

static la_ssize_t pull(struct archive *archive, void *user, const void **bytes) {
  struct unpack *packed = user;
  ssize_t got = unpack_next(packed, bytes);
  if (got < 0)
    archive_set_error(archive, EIO, "%s", unpack_error(packed));
  return got;
}

/* The stream's checksum comes behind what the archive has. */
static void drain(struct unpacking *run, struct unpack *packed, const char *path) {
  const void *bytes;
  ssize_t got;
  while ((got = unpack_next(packed, &bytes)) > 0 && run->total + (uint64_t)got <= audit_default_limits.total)
    run->total += (uint64_t)got;
  if (got < 0)
    surface_fault(run->surface, "%s: truncated or damaged: %s", path, unpack_error(packed));
}

static bool read_archive(struct surface *surface, const char *path, uint64_t size, char *message, size_t message_size) {
  struct unpacking run = {.surface = surface, .archive = archive_read_new(), .size = size};
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK), error = errno;
  struct unpack *packed = fd < 0 ? NULL : unpack_file(fd);
  if (!run.archive)
    scan_out_of_memory();
  archive_read_support_format_zip(run.archive);
  archive_read_support_format_tar(run.archive);
  bool good = fd >= 0 && (packed ? archive_read_open(run.archive, packed, NULL, pull, NULL)
                                 : archive_read_open_fd(run.archive, fd, BLOCK)) == ARCHIVE_OK;
  struct archive_entry *entry;
  int status = good ? ARCHIVE_OK : ARCHIVE_FATAL;
  for (uint64_t members = 0; good && !run.stopped; members++) {
    do
      status = archive_read_next_header(run.archive, &entry);
    while (status == ARCHIVE_RETRY);
    if (status != ARCHIVE_OK && status != ARCHIVE_WARN)
      break;
    if (members == audit_default_limits.members) {
      surface_fault(surface, "%s: more than %llu members; the rest is not analysed", path, (unsigned long long)members);
      break;
    }
    read_member(&run, entry);
  }
  const char *why = fd < 0 ? strerror(error) : archive_error_string(run.archive);
  why = why ? why : "unknown reason";
  if (packed && status == ARCHIVE_EOF && !run.stopped)
    drain(&run, packed, path);
  if (status == ARCHIVE_FATAL && (!good || run.total == 0)) {
    snprintf(message, message_size, "%s: neither a folder nor a wheel, zip or tar file: %s", path, why);
    good = false;
  } else if (status == ARCHIVE_FATAL) {
    surface_fault(surface, "%s: truncated or damaged: %s", path, why);
  }
  archive_read_free(run.archive);
  if (packed)
    unpack_close(packed);
  if (fd >= 0)
    close(fd);
  return good;
}

/* --- folders ------------------------------------------------------------------------------------------------------ */

static void read_file(struct surface *surface, const char *full, const char *path, const struct stat *status) {
  enum file_kind kind = kind_of(surface, path);
  if (kind == FILE_OTHER)
    return;
  int fd = open(full, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (fd < 0) {
    surface_fault(surface, "%s: %s", path, strerror(errno));
    return;
  }
  if (kind == FILE_LIBRARY) {
    surface_binary(surface, arena_copy(&surface->arena, path, strlen(path)), fd, (uint64_t)status->st_size);
  } else if ((uint64_t)status->st_size > TEXT_LARGEST) {
    too_large(surface, path);
  } else {
    size_t used = 0, size = (size_t)status->st_size;
    uint8_t *text = scan_alloc(NULL, size);
    ssize_t got;
    while (used < size && ((got = read(fd, text + used, size - used)) > 0 || (got < 0 && errno == EINTR)))
      used += got > 0 ? (size_t)got : 0;
    if (used < size)
      surface_fault(surface, "%s: could not be read to its end", path);
    else
      take_text(surface, kind, path, text, size);
    free(text);
  }
  close(fd);
}

static int by_name(const FTSENT **left, const FTSENT **right) {
  return strcmp((*left)->fts_name, (*right)->fts_name);
}

/* How much of a path below the folder is the folder's own. The package's folder itself is part of its modules' paths.
 */
static size_t folder_length(const struct surface *surface, const char *path) {
  size_t length = strlen(path), package = strlen(surface->catalog->library.package);
  while (length && path[length - 1] == '/')
    length--;
  if (length >= package && strncmp(path + length - package, surface->catalog->library.package, package) == 0 &&
      (length == package || path[length - package - 1] == '/'))
    return length - package;
  return length;
}

/* In the order of the names. Links are not followed; hidden folders (.git) are not entered. */
static bool read_folder(struct surface *surface, const char *path, char *message, size_t message_size) {
  char *roots[] = {(char *)path, NULL};
  FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, by_name);
  if (!walk) {
    snprintf(message, message_size, "%s: %s", path, strerror(errno));
    return false;
  }
  size_t root = folder_length(surface, path);
  FTSENT *entry;
  while ((entry = fts_read(walk))) {
    const char *below = entry->fts_path + root;
    below += strspn(below, "/");
    if (entry->fts_info == FTS_D && entry->fts_level > 0 && entry->fts_name[0] == '.')
      fts_set(walk, entry, FTS_SKIP);
    else if (entry->fts_info == FTS_F)
      read_file(surface, entry->fts_accpath, below, entry->fts_statp);
    else if (entry->fts_info == FTS_DNR || entry->fts_info == FTS_ERR || entry->fts_info == FTS_NS)
      surface_fault(surface, "%s: %s", entry->fts_level ? below : path, strerror(entry->fts_errno));
  }
  fts_close(walk);
  return true;
}

/* --- the whole ---------------------------------------------------------------------------------------------------- */

bool surface_read(struct surface *surface, const struct catalog *catalog, const char *path, char *message,
                  size_t message_size) {
  *surface = (struct surface){.catalog = catalog, .path = path};
  struct stat status;
  bool good = stat(path, &status) == 0;
  if (!good)
    snprintf(message, message_size, "%s: %s", path, strerror(errno));
  else
    good = S_ISDIR(status.st_mode) ? read_folder(surface, path, message, message_size)
                                   : read_archive(surface, path, (uint64_t)status.st_size, message, message_size);
  surface_python_finish(surface);
  surface_sort(surface);
  if (good && surface->items_count == 0 && surface->faults_count == 0) {
    snprintf(message, message_size, "%s: nothing of package %s in it", path, catalog->library.package);
    return false;
  }
  return good;
}
