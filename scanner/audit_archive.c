/* Archives, read in place: one pass, nothing is unpacked to a path. A member that is an ELF file or an archive goes to
 * a file without a name, because both are read out of order. Where an archive's limits end, the rest is not analysed.
 */
#include "scanner/audit_archive.h"
#include "scanner/unpack.h"

#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK ((size_t)256 << 10)
#define CACHE_MOST ((size_t)16 << 20)

/* An archive: that of the file, or one in it. */
struct nesting {
  struct archive *archive;
  const char *prefix; /* of its members' labels: "" or "inner.whl!" */
  const char *unit;   /* of a static archive */
  unsigned depth;
  bool packed; /* skipping a member costs its whole size */
  bool kept;   /* the names of its members are a file system: no archive in an archive, but a layer */
  bool image;  /* its members are layers and documents */
};

/* Where an archive comes from: a file, or a member of another archive as it is unpacked. */
struct source {
  struct unpacking *run;
  int fd; /* -1: the member */
  struct member *member;
  struct unpack *packed; /* NULL: it is not packed */
  int64_t expected;      /* offset of the member's next block */
  int64_t given;         /* bytes that pull() has returned */
  bool failed;           /* the reader was told that the member is damaged */
  const char *why;
};

/* The bytes of the member. */
static ssize_t next_bytes(void *user, const void **bytes) {
  struct source *source = user;
  struct member *member = source->member;
  if (source->expected > 0 && !member_next(member)) {
    if (member->status == ARCHIVE_EOF && !member->damaged)
      return 0;
    const char *why = archive_error_string(member->archive);
    source->why = why ? why : "the archive around it is damaged";
    source->failed = true;
    return -1;
  }
  if (member->offset != source->expected || !member_spend(source->run, member->size)) {
    source->why = "the archive around it ends or has a hole";
    return -1;
  }
  source->expected += (int64_t)member->size;
  *bytes = member->block;
  return (ssize_t)member->size;
}

static const char *source_error(const struct source *source) {
  return source->why ? source->why : source->packed ? unpack_error(source->packed) : "unknown reason";
}

static la_ssize_t pull(struct archive *archive, void *user, const void **bytes) {
  struct source *source = user;
  ssize_t got = source->packed ? unpack_next(source->packed, bytes) : next_bytes(source, bytes);
  if (got < 0)
    archive_set_error(archive, EIO, "%s", source_error(source));
  source->given += got > 0 ? got : 0;
  return got;
}

/* What is behind the archive in a packed stream is no more than zeros, but the stream's checksum comes after it. */
static void drain(struct source *source, const char *label) {
  const void *bytes;
  ssize_t got = 0;
  while (!source->run->stopped && (got = unpack_next(source->packed, &bytes)) > 0 &&
         member_spend(source->run, (uint64_t)got))
    ;
  if (got < 0)
    member_fault(source->run, label, "truncated or damaged: %s", source_error(source));
}

static void read_archive(struct source *source, const struct nesting *outer, const char *prefix, const char *unit,
                         const char *label);

static void read_elf(struct unpacking *run, const struct nesting *level, struct member *member) {
  uint64_t size;
  int fd = member_copy(run, member, &size);
  if (fd < 0)
    return;
  struct audit_object *object = audit_add(run->list, run->path, member->label);
  object->unit = level->unit;
  object->layer = run->layer;
  audit_elf(run->context, run->list, object, fd, size);
  close(fd);
  if (level->kept)
    audit_add_place(run->list, member->label, NULL, run->list->objects_count - 1)->layer = run->layer;
}

/* A zip file is read by its directory at the end, so it is copied, also what may be one by its name
 * alone; all others are read as they come. */
static void read_inner(struct unpacking *run, const struct nesting *level, struct member *member, enum audit_kind kind,
                       const char *why) {
  uint64_t size;
  struct source source = {.run = run, .fd = -1, .member = member};
  bool unsure = kind != AUDIT_AR && kind != AUDIT_ARCHIVE;
  if (level->depth + 1 >= run->context->limits.depth) {
    char *text = scan_format("depth of %llu", (unsigned long long)run->context->limits.depth);
    member_fault(run, member->label, "it exceeds the limit %s; see --limit", text);
    free(text);
    return;
  }
  if (((member->size > 1 && memcmp(member->block, "PK", 2) == 0) || unsure) &&
      (source.fd = member_copy(run, member, &size)) < 0)
    return;
  if (unsure && !audit_ends_as_zip(source.fd, size, true)) {
    if (kind == AUDIT_BROKEN)
      member_fault(run, member->label, "%s", why);
    close(source.fd);
    return;
  }
  char *prefix = scan_format("%s!", member->label);
  const char *unit = kind == AUDIT_AR ? arena_copy(&run->list->arena, member->label, strlen(member->label)) : NULL;
  read_archive(&source, level, prefix, unit, member->label);
  free(prefix);
  if (source.fd >= 0) {
    close(source.fd);
    return;
  }
  /* An archive may end before its file does, and the checksum is behind that. */
  while (!run->stopped && !source.failed && member_next(member) && member_spend(run, member->size))
    ;
  if (member->damaged && !source.failed)
    member_damaged(run, member->label, member->archive);
}

/* A layer that changes nothing is a tar file of zeros. */
static bool is_layer(const char *name, const uint8_t *bytes, size_t size) {
  static const uint8_t zeros[AUDIT_HEAD];
  const char *why;
  return audit_kind_of(name, bytes, size, false, &why) == AUDIT_ARCHIVE ||
         (size >= sizeof zeros && memcmp(bytes, zeros, sizeof zeros) == 0);
}

/* A member of an image itself: a layer, or a document that says which layers there are. */
static void read_image_member(struct unpacking *run, const struct nesting *level, struct member *member,
                              uint64_t size) {
  const char *text = member->block;
  if (member->size && (*text == '{' || *text == '[') && size <= AUDIT_DOCUMENT_MOST) {
    uint8_t *bytes = scan_alloc(NULL, size ? size : 1);
    uint64_t filled = 0;
    do {
      if (member->offset < 0 || (uint64_t)member->offset != filled || member->size > size - filled)
        break;
      memcpy(bytes + filled, member->block, member->size);
      filled += member->size;
    } while (member_spend(run, member->size) && member_next(member));
    audit_image_document(run->list->image, member->label, bytes, filled);
  } else if (is_layer(member->label, member->block, member->size)) {
    struct source source = {.run = run, .fd = -1, .member = member};
    run->layer = audit_image_layer(run->list->image, member->label);
    if (run->layer != AUDIT_NO_LAYER)
      read_archive(&source, level, "", NULL, member->label);
    run->layer = AUDIT_NO_LAYER;
  }
}

/* What the loader of a container root or an image would read to find libraries. */
static void read_cache(struct unpacking *run, struct member *member) {
  struct audit_list *list = run->list;
  uint8_t *bytes = NULL;
  size_t size = 0;
  do {
    if (member->offset < 0 || (uint64_t)member->offset != size || member->size > CACHE_MOST - size)
      break;
    bytes = scan_alloc(bytes, size + member->size);
    memcpy(bytes + size, member->block, member->size);
    size += member->size;
  } while (member_spend(run, member->size) && member_next(member));
  if (run->layer != AUDIT_NO_LAYER) {
    audit_image_cache(list->image, run->layer, bytes, size);
    return;
  }
  free(list->cache);
  list->cache = bytes;
  list->cache_size = size;
}

static void read_member(struct unpacking *run, const struct nesting *level, struct archive_entry *entry,
                        struct member *member) {
  const char *why = NULL;
  bool sized = archive_entry_size_is_set(entry);
  uint64_t size = sized && archive_entry_size(entry) > 0 ? (uint64_t)archive_entry_size(entry) : 0;
  if (sized && size == 0 && !audit_kind_of(member->label, NULL, 0, true, &why))
    return;
  bool got = member_first(member);
  if (!got && member->status != ARCHIVE_EOF) {
    const char *reason = archive_error_string(level->archive);
    member_fault(run, member->label, "it cannot be unpacked: %s", reason ? reason : "unknown reason");
    return;
  }
  if (level->image) {
    if (got)
      read_image_member(run, level, member, size);
    return;
  }
  enum audit_kind kind = audit_kind_of(member->label, got ? member->block : NULL, got ? member->size : 0, true, &why);
  if (kind == AUDIT_ELF && member->offset == 0)
    read_elf(run, level, member);
  else if (got && member->offset == 0 &&
           (kind == AUDIT_AR || kind == AUDIT_ARCHIVE || (kind != AUDIT_ELF && audit_may_be_zip(member->label))))
    read_inner(run, level, member, kind, why);
  else if (kind == AUDIT_BROKEN ||
           (got && level->unit && member->size > 3 && memcmp(member->block, "BC\xc0\xde", 4) == 0))
    member_fault(run, member->label, "%s", kind == AUDIT_BROKEN ? why : "LLVM bitcode; only machine code is read");
  else if (got && level->kept && strcmp(member->label, "etc/ld.so.cache") == 0)
    read_cache(run, member);
  else if (level->packed && sized)
    member_spend(run, size);
  else if (!sized)
    while (member_spend(run, got ? member->size : 0) && member_next(member))
      ;
}

/* "./usr/lib" and "/usr/lib" are "usr/lib". */
static const char *plain_path(const char *path) {
  while (path[0] == '/' || (path[0] == '.' && path[1] == '/'))
    path++;
  return path;
}

/* The same in place, also without "/./" and "/../", as a layer is unpacked: whiteouts name files of other layers. */
static void clean_path(char *path) {
  char *out = path;
  for (char *at = path; *at;) {
    size_t length = strcspn(at, "/");
    bool slash = at[length] == '/';
    if (length == 2 && memcmp(at, "..", 2) == 0) {
      while (out > path && *--out != '/')
        ;
    } else if (length && !(length == 1 && *at == '.')) {
      if (out > path)
        *out++ = '/';
      memmove(out, at, length);
      out += length;
    }
    at += length + slash;
  }
  *out = '\0';
}

static const char *name_of(struct archive_entry *entry) {
  const char *name = archive_entry_pathname_utf8(entry);
  name = name ? name : archive_entry_pathname(entry);
  return name ? name : "(name unreadable)";
}

/* Notes the name of a member of what is a file system; false: it is nothing to be read. */
static bool place_member(struct unpacking *run, char *label, const char *link, char *hard, bool folder) {
  struct audit_list *list = run->list;
  if (run->layer != AUDIT_NO_LAYER) {
    clean_path(label);
    if (hard)
      clean_path(hard);
    const struct audit_place place = {
        .path = label, .link = link, .hard = hard, .kind = folder ? PLACE_FOLDER : PLACE_FILE};
    return audit_image_place(list, run->layer, &place);
  }
  if (link || hard) {
    struct audit_place *place = audit_add_place(list, label, link, SIZE_MAX);
    place->hard = hard ? arena_copy(&list->arena, hard, strlen(hard)) : NULL;
    place->layer = AUDIT_NO_LAYER;
  } else {
    audit_note_path(run->context, list, label);
  }
  return !hard;
}

static void read_entry(struct unpacking *run, const struct nesting *level, struct archive_entry *entry) {
  struct member member = {.archive = level->archive,
                          .label = scan_format("%s%s", level->prefix, plain_path(name_of(entry)))};
  const char *link = archive_entry_symlink_utf8(entry), *target = archive_entry_hardlink_utf8(entry);
  unsigned type = archive_entry_filetype(entry);
  if (type != AE_IFLNK || (!link && !(link = archive_entry_symlink(entry))))
    link = NULL;
  target = target ? target : archive_entry_hardlink(entry);
  char *hard = target ? scan_format("%s", plain_path(target)) : NULL;
  bool content = (type == AE_IFREG || type == 0) && !hard; /* 0: ar, by GNU's */
  if (level->image && (link || hard))
    audit_image_link(run->list->image, member.label, link ? link : hard);
  else if (level->kept)
    content &= place_member(run, member.label, link, hard, type == AE_IFDIR);
  if (content)
    read_member(run, level, entry, &member);
  free(member.label);
  free(hard);
}

static bool is_static(const struct archive *archive) {
  return (archive_format((struct archive *)archive) & ARCHIVE_FORMAT_BASE_MASK) == ARCHIVE_FORMAT_AR;
}

static struct archive *new_reader(void) {
  struct archive *archive = archive_read_new();
  if (!archive)
    scan_out_of_memory();
  archive_read_support_format_zip(archive);
  archive_read_support_format_tar(archive);
  archive_read_support_format_ar(archive);
  archive_read_support_format_empty(archive);
  return archive;
}

/* libarchive gets a file that is not packed itself: a zip file is read by its directory. */
static int open_reader(struct source *source, struct archive *archive) {
  source->packed = source->fd >= 0 ? unpack_file(source->fd)
                                   : unpack_stream(source->member->block, source->member->size, next_bytes, source);
  if (source->fd >= 0 && !source->packed)
    return archive_read_open_fd(archive, source->fd, BLOCK);
  return archive_read_open(archive, source, NULL, pull, NULL);
}

/* libarchive takes the half of a header at the end of a static archive for the end; a byte is padding. */
static bool is_cut(const struct source *source, struct archive *archive) {
  struct stat status;
  int64_t size = source->given;
  if (source->fd >= 0 && !source->packed)
    size = fstat(source->fd, &status) == 0 ? status.st_size : 0;
  return is_static(archive) && size - archive_filter_bytes(archive, 0) > 1;
}

static void read_archive(struct source *source, const struct nesting *outer, const char *prefix, const char *unit,
                         const char *label) {
  struct unpacking *run = source->run;
  struct nesting level = {.archive = new_reader(),
                          .prefix = prefix,
                          .unit = unit,
                          .depth = outer ? outer->depth + 1 : 0,
                          .kept = !outer || outer->image};
  struct archive_entry *entry;
  int status = open_reader(source, level.archive);
  level.packed = source->packed != NULL;
  for (bool first = true; status >= ARCHIVE_WARN && !run->stopped; first = false) {
    status = archive_read_next_header(level.archive, &entry);
    if (status == ARCHIVE_EOF || status < ARCHIVE_WARN)
      break;
    if (!is_static(level.archive))
      level.unit = NULL;
    if (first && !outer && !level.unit && audit_image_begins(plain_path(name_of(entry)))) {
      level.image = true;
      run->list->image = audit_image_start();
    }
    if (++run->members > run->context->limits.members)
      member_stop(run, "members", run->context->limits.members);
    else
      read_entry(run, &level, entry);
  }
  if (status != ARCHIVE_EOF && status < ARCHIVE_WARN && !run->stopped)
    member_damaged(run, label, level.archive);
  else if (status == ARCHIVE_EOF && is_cut(source, level.archive))
    member_fault(run, label, "%s", "truncated in the header of a member");
  else if (source->packed)
    drain(source, label);
  archive_read_free(level.archive);
  if (source->packed)
    unpack_close(source->packed);
}

void audit_archive(const struct audit_context *context, struct audit_list *list, int fd, const char *path,
                   enum audit_kind kind) {
  struct stat status;
  struct unpacking run = {.context = context, .list = list, .path = path, .layer = AUDIT_NO_LAYER};
  struct source source = {.run = &run, .fd = fd};
  run.size = fstat(fd, &status) == 0 ? (uint64_t)status.st_size : 0;
  list->archive = true;
  read_archive(&source, NULL, "", kind == AUDIT_AR ? arena_copy(&list->arena, path, strlen(path)) : NULL, NULL);
  if (list->image)
    audit_image_finish(context, list, path);
  else
    audit_links(list);
}

/* One file of an image in a folder; libarchive is only needed for layers. */
static void read_image_file(struct unpacking *run, const char *full, const char *label, uint64_t size) {
  uint8_t head[AUDIT_HEAD];
  int fd = open(full, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  ssize_t got = fd < 0 ? -1 : pread(fd, head, sizeof head, 0);
  run->size += size;
  if (got < 0) {
    member_fault(run, label, "%s", strerror(errno));
  } else if (got && (*head == '{' || *head == '[') && size <= AUDIT_DOCUMENT_MOST) {
    uint8_t *bytes = scan_alloc(NULL, size ? size : 1);
    got = pread(fd, bytes, size, 0);
    audit_image_document(run->list->image, label, bytes, got > 0 ? (size_t)got : 0);
  } else if (is_layer(label, head, (size_t)got)) {
    struct source source = {.run = run, .fd = fd};
    struct nesting folder = {.image = true};
    run->layer = audit_image_layer(run->list->image, label);
    if (run->layer != AUDIT_NO_LAYER)
      read_archive(&source, &folder, "", NULL, label);
    run->layer = AUDIT_NO_LAYER;
  }
  if (fd >= 0)
    close(fd);
}

static int by_name(const FTSENT **a, const FTSENT **b) {
  return strcmp((*a)->fts_name, (*b)->fts_name);
}

void audit_image_folder(const struct audit_context *context, struct audit_list *list, const char *folder,
                        const char *path) {
  struct unpacking run = {.context = context, .list = list, .path = path, .layer = AUDIT_NO_LAYER};
  char *roots[] = {(char *)folder, NULL}, target[PATH_MAX];
  FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, by_name);
  FTSENT *entry;
  list->archive = true;
  list->image = audit_image_start();
  while (walk && (entry = fts_read(walk)) && !run.stopped) {
    const char *label = entry->fts_path + strlen(folder);
    label += strspn(label, "/");
    ssize_t length = entry->fts_info == FTS_SL ? readlink(entry->fts_accpath, target, sizeof target - 1) : -1;
    target[length > 0 ? length : 0] = '\0';
    if (length > 0)
      audit_image_link(list->image, label, target);
    else if (entry->fts_info == FTS_F)
      read_image_file(&run, entry->fts_accpath, label, (uint64_t)entry->fts_statp->st_size);
    else if (entry->fts_info == FTS_DNR || entry->fts_info == FTS_ERR || entry->fts_info == FTS_NS)
      member_fault(&run, label, "%s", strerror(entry->fts_errno));
  }
  if (walk)
    fts_close(walk);
  audit_image_finish(context, list, path);
}
