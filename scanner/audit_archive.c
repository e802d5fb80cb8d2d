/* Archives, read in place: one pass, nothing is unpacked to a path. A member that is an ELF file or an archive goes to
 * a file without a name, because both are read out of order. Where an archive's limits end, the rest is not analysed.
 */
#include "scanner/audit.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK ((size_t)256 << 10)
#define CACHE_MOST ((size_t)16 << 20)

const struct audit_limits audit_default_limits = {
    .member = (uint64_t)8 << 30, .total = (uint64_t)64 << 30, .ratio = 1000, .members = 2000000, .depth = 4};

/* One archive of the file system, with all that are in it. */
struct unpacking {
  const struct audit_context *context;
  struct audit_list *list;
  const char *path;
  uint64_t size; /* of the file */
  uint64_t total, members;
  bool stopped; /* a limit was reached */
};

/* One of them. */
struct nesting {
  struct archive *archive;
  const char *prefix; /* of its members' labels: "" or "inner.whl!" */
  const char *unit;   /* of a static archive */
  unsigned depth;
  bool filtered; /* skipping a member costs its whole size */
  bool kept;     /* the names of its members are a file system: no archive in an archive */
};

int audit_temporary(void) {
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

static void fault(struct unpacking *run, const char *member, const char *format, const char *what) {
  struct audit_object *object = audit_add(run->list, run->path, member);
  audit_fault(run->list, object, format, what);
}

static bool stop(struct unpacking *run, const char *limit, uint64_t value) {
  if (!run->stopped) {
    char *text = scan_format("%s of %llu", limit, (unsigned long long)value);
    fault(run, NULL, "the rest of the archive is not analysed: it exceeds the limit %s; see --limit", text);
    free(text);
  }
  run->stopped = true;
  return false;
}

/* Counts bytes that were unpacked. */
static bool spend(struct unpacking *run, uint64_t bytes) {
  const struct audit_limits *limits = &run->context->limits;
  run->total += bytes;
  if (run->stopped)
    return false;
  if (run->total > limits->total)
    return stop(run, "total", limits->total);
  if (run->total > AUDIT_RATIO_FROM && run->total / limits->ratio > run->size)
    return stop(run, "ratio", limits->ratio);
  return true;
}

/* A member that is being read: its first bytes decide whether it is copied. */
struct member {
  struct archive *archive;
  char *label; /* with the prefix */
  const void *block;
  size_t size;
  int64_t offset; /* of the block */
  int status;     /* of libarchive */
};

static bool next_block(struct member *member) {
  do
    member->status = archive_read_data_block(member->archive, &member->block, &member->size, &member->offset);
  while (member->status == ARCHIVE_RETRY);
  return member->status == ARCHIVE_OK || member->status == ARCHIVE_WARN;
}

/* The whole member in a file without a name; -1 after a fault. */
static int copy_out(struct unpacking *run, struct member *member, uint64_t *size) {
  int fd = audit_temporary();
  if (fd < 0) {
    fault(run, member->label, "no file for it in the temporary folder: %s", strerror(errno));
    return -1;
  }
  *size = 0;
  bool good = true;
  do {
    uint64_t end = (uint64_t)member->offset + member->size;
    if (member->offset < 0 || end > run->context->limits.member) {
      char *text = scan_format("member of %llu", (unsigned long long)run->context->limits.member);
      fault(run, member->label, "it exceeds the limit %s; see --limit", text);
      free(text);
      good = false;
    } else if (!spend(run, end > *size ? end - *size : member->size)) {
      good = false;
    } else {
      for (size_t done = 0; good && done < member->size;) {
        ssize_t wrote =
            pwrite(fd, (const char *)member->block + done, member->size - done, (off_t)member->offset + (off_t)done);
        if (wrote < 0 && errno != EINTR) {
          fault(run, member->label, "the temporary folder: %s", strerror(errno));
          good = false;
        }
        done += wrote > 0 ? (size_t)wrote : 0;
      }
      *size = end > *size ? end : *size;
    }
  } while (good && next_block(member));
  if (good && member->status != ARCHIVE_EOF) {
    const char *why = archive_error_string(member->archive);
    fault(run, member->label, "truncated or damaged: %s", why ? why : "unknown reason");
    good = false;
  }
  if (good)
    return fd;
  close(fd);
  return -1;
}

static void read_archive(struct unpacking *run, int fd, const char *prefix, const char *unit, unsigned depth,
                         const char *label);

static void read_elf(struct unpacking *run, const struct nesting *level, struct member *member) {
  uint64_t size;
  int fd = copy_out(run, member, &size);
  if (fd < 0)
    return;
  struct audit_object *object = audit_add(run->list, run->path, member->label);
  object->unit = level->unit;
  audit_elf(run->context, run->list, object, fd, size);
  close(fd);
  if (level->kept)
    audit_add_place(run->list, member->label, NULL, 0, run->list->objects_count - 1);
}

static void read_inner(struct unpacking *run, const struct nesting *level, struct member *member,
                       enum audit_kind kind) {
  uint64_t size;
  if (level->depth + 1 >= run->context->limits.depth) {
    char *text = scan_format("depth of %llu", (unsigned long long)run->context->limits.depth);
    fault(run, member->label, "it exceeds the limit %s; see --limit", text);
    free(text);
    return;
  }
  int fd = copy_out(run, member, &size);
  if (fd < 0)
    return;
  char *prefix = scan_format("%s!", member->label);
  const char *unit = kind == AUDIT_AR ? arena_copy(&run->list->arena, member->label, strlen(member->label)) : NULL;
  read_archive(run, fd, prefix, unit, level->depth + 1, member->label);
  free(prefix);
  close(fd);
}

/* What the loader of a container root or an image would read to find libraries. */
static void read_cache(struct unpacking *run, struct member *member) {
  struct audit_list *list = run->list;
  free(list->cache);
  list->cache = NULL;
  list->cache_size = 0;
  do {
    if (member->offset < 0 || (uint64_t)member->offset != list->cache_size ||
        member->size > CACHE_MOST - list->cache_size)
      return;
    list->cache = scan_alloc(list->cache, list->cache_size + member->size);
    memcpy(list->cache + list->cache_size, member->block, member->size);
    list->cache_size += member->size;
  } while (spend(run, member->size) && next_block(member));
}

static void read_member(struct unpacking *run, const struct nesting *level, struct archive_entry *entry,
                        struct member *member) {
  const char *why = NULL;
  bool sized = archive_entry_size_is_set(entry);
  uint64_t size = sized && archive_entry_size(entry) > 0 ? (uint64_t)archive_entry_size(entry) : 0;
  if (sized && size == 0 && !audit_kind_of(member->label, NULL, 0, true, &why))
    return;
  bool got = next_block(member);
  if (!got && member->status != ARCHIVE_EOF) {
    const char *reason = archive_error_string(level->archive);
    fault(run, member->label, "it cannot be unpacked: %s", reason ? reason : "unknown reason");
    return;
  }
  enum audit_kind kind = audit_kind_of(member->label, got ? member->block : NULL, got ? member->size : 0, true, &why);
  if (kind == AUDIT_ELF && member->offset == 0)
    read_elf(run, level, member);
  else if ((kind == AUDIT_AR || kind == AUDIT_ARCHIVE) && member->offset == 0)
    read_inner(run, level, member, kind);
  else if (kind == AUDIT_BROKEN ||
           (got && level->unit && member->size > 3 && memcmp(member->block, "BC\xc0\xde", 4) == 0))
    fault(run, member->label, "%s", kind == AUDIT_BROKEN ? why : "LLVM bitcode; only machine code is read");
  else if (got && level->kept && strcmp(member->label, "etc/ld.so.cache") == 0)
    read_cache(run, member);
  else if (level->filtered && sized)
    spend(run, size); /* libarchive unpacks what it skips */
  else if (!sized)
    while (spend(run, got ? member->size : 0) && next_block(member))
      ;
}

/* "./usr/lib" and "/usr/lib" are "usr/lib". */
static const char *plain_path(const char *path) {
  while (path[0] == '/' || (path[0] == '.' && path[1] == '/'))
    path++;
  return path;
}

static void read_entry(struct unpacking *run, const struct nesting *level, struct archive_entry *entry) {
  const char *name = archive_entry_pathname_utf8(entry);
  name = name ? name : archive_entry_pathname(entry);
  struct member member = {.archive = level->archive,
                          .label = scan_format("%s%s", level->prefix, plain_path(name ? name : "(name unreadable)"))};
  const char *link = archive_entry_symlink_utf8(entry);
  bool plain = archive_entry_filetype(entry) == AE_IFREG || archive_entry_filetype(entry) == 0; /* 0: ar, by GNU's */
  if (level->kept)
    audit_note_path(run->context, run->list, member.label);
  if (level->kept && archive_entry_filetype(entry) == AE_IFLNK && (link || (link = archive_entry_symlink(entry))))
    audit_add_place(run->list, member.label, link, 0, SIZE_MAX);
  else if (plain && !archive_entry_hardlink(entry))
    read_member(run, level, entry, &member);
  free(member.label);
}

static bool is_static(const struct archive *archive) {
  return (archive_format((struct archive *)archive) & ARCHIVE_FORMAT_BASE_MASK) == ARCHIVE_FORMAT_AR;
}

static void read_archive(struct unpacking *run, int fd, const char *prefix, const char *unit, unsigned depth,
                         const char *label) {
  struct nesting level = {
      .archive = archive_read_new(), .prefix = prefix, .unit = unit, .depth = depth, .kept = depth == 0};
  struct archive_entry *entry;
  if (!level.archive)
    scan_out_of_memory();
  archive_read_support_format_zip(level.archive);
  archive_read_support_format_tar(level.archive);
  archive_read_support_format_ar(level.archive);
  archive_read_support_format_empty(level.archive);
  archive_read_support_filter_gzip(level.archive);
  archive_read_support_filter_bzip2(level.archive);
  archive_read_support_filter_xz(level.archive);
  archive_read_support_filter_zstd(level.archive);
  int status = archive_read_open_fd(level.archive, fd, BLOCK);
  while (status >= ARCHIVE_WARN && !run->stopped) {
    status = archive_read_next_header(level.archive, &entry);
    if (status == ARCHIVE_EOF || status < ARCHIVE_WARN)
      break;
    level.filtered = archive_filter_count(level.archive) > 1;
    if (!is_static(level.archive))
      level.unit = NULL;
    if (++run->members > run->context->limits.members)
      stop(run, "members", run->context->limits.members);
    else
      read_entry(run, &level, entry);
  }
  if (status != ARCHIVE_EOF && status < ARCHIVE_WARN) {
    const char *why = archive_error_string(level.archive);
    fault(run, depth ? label : NULL, "truncated or damaged: %s", why ? why : "unknown reason");
  }
  archive_read_free(level.archive);
}

void audit_archive(const struct audit_context *context, struct audit_list *list, int fd, const char *path,
                   enum audit_kind kind) {
  struct stat status;
  struct unpacking run = {.context = context, .list = list, .path = path};
  run.size = fstat(fd, &status) == 0 ? (uint64_t)status.st_size : 0;
  read_archive(&run, fd, "", kind == AUDIT_AR ? arena_copy(&list->arena, path, strlen(path)) : NULL, 0, NULL);
}
