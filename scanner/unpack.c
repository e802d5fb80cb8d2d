/* gzip by zlib, since libarchive does not compare its checksums; the others by libarchive. */
#include "scanner/unpack.h"
#include "scanner/scanner.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#define BLOCK ((size_t)256 << 10)

struct unpack {
  unpack_source *source;
  void *user;
  int fd;                  /* of unpack_file */
  uint8_t *buffer;         /* of that */
  const char *error;       /* NULL: none */
  struct archive *archive; /* not of gzip */
  z_stream zlib;
  uint8_t *block; /* of gzip: what was unpacked */
  bool ended;     /* the source, or a stream behind which is something else */
  bool between;   /* the last stream has ended, and no other has begun */
};

/* Do the first bytes say that it is packed? */
static bool is_packed(const uint8_t *bytes, size_t size) {
  static const struct {
    const char *bytes;
    size_t size;
  } magics[] = {{"\x1f\x8b", 2}, {"BZh", 3}, {"\3757zXZ", 5}, {"\x28\xb5\x2f\xfd", 4}};
  for (size_t i = 0; i < sizeof magics / sizeof *magics; i++)
    if (size >= magics[i].size && memcmp(bytes, magics[i].bytes, magics[i].size) == 0)
      return true;
  return false;
}

static la_ssize_t pull(struct archive *archive, void *user, const void **bytes) {
  struct unpack *unpack = user;
  ssize_t got = unpack->source(unpack->user, bytes);
  if (got < 0)
    archive_set_error(archive, EIO, "it cannot be read");
  return got;
}

/* The source is the struct itself. */
static ssize_t read_file(void *user, const void **bytes) {
  struct unpack *unpack = user;
  ssize_t got;
  do
    got = read(unpack->fd, unpack->buffer, BLOCK);
  while (got < 0 && errno == EINTR);
  *bytes = unpack->buffer;
  return got;
}

static struct unpack *open_packed(bool gzip, int fd, unpack_source *source, void *user) {
  struct unpack *unpack = scan_alloc(NULL, sizeof *unpack);
  struct archive_entry *entry;
  *unpack = (struct unpack){.source = source, .user = user, .fd = fd};
  if (fd >= 0) {
    unpack->buffer = scan_alloc(NULL, BLOCK);
    unpack->source = read_file;
    unpack->user = unpack;
  }
  if (gzip) {
    unpack->block = scan_alloc(NULL, BLOCK);
    if (inflateInit2(&unpack->zlib, 16 + MAX_WBITS) != Z_OK) /* a header of gzip */
      scan_out_of_memory();
    return unpack;
  }
  unpack->archive = archive_read_new();
  if (!unpack->archive)
    scan_out_of_memory();
  archive_read_support_format_raw(unpack->archive);
  archive_read_support_filter_bzip2(unpack->archive);
  archive_read_support_filter_xz(unpack->archive);
  archive_read_support_filter_zstd(unpack->archive);
  if (archive_read_open(unpack->archive, unpack, NULL, pull, NULL) < ARCHIVE_WARN ||
      archive_read_next_header(unpack->archive, &entry) < ARCHIVE_WARN) {
    const char *why = archive_error_string(unpack->archive);
    unpack->error = why ? why : "unknown reason";
  }
  return unpack;
}

struct unpack *unpack_file(int fd) {
  uint8_t head[8];
  ssize_t size = pread(fd, head, sizeof head, 0);
  return size > 0 && is_packed(head, (size_t)size) ? open_packed(*head == 0x1f, fd, NULL, NULL) : NULL;
}

struct unpack *unpack_stream(const uint8_t *head, size_t size, unpack_source *source, void *user) {
  return is_packed(head, size) ? open_packed(*head == 0x1f, -1, source, user) : NULL;
}

void unpack_close(struct unpack *unpack) {
  if (unpack->archive)
    archive_read_free(unpack->archive);
  else
    inflateEnd(&unpack->zlib);
  free(unpack->block);
  free(unpack->buffer);
  free(unpack);
}

const char *unpack_error(const struct unpack *unpack) {
  return unpack->error;
}

static ssize_t fail(struct unpack *unpack, const char *why) {
  unpack->error = why ? why : "unknown reason";
  return -1;
}

/* More packed bytes. */
static bool refill(struct unpack *unpack) {
  const void *bytes;
  ssize_t got = unpack->source(unpack->user, &bytes);
  if (got < 0)
    fail(unpack, "it cannot be read");
  unpack->ended |= got <= 0;
  unpack->zlib.next_in = (uint8_t *)bytes;
  unpack->zlib.avail_in = got > 0 ? (uInt)got : 0;
  return got > 0;
}

/* Several streams may follow each other, and then zeros or anything else: gzip leaves that out, too. */
static ssize_t next_of_gzip(struct unpack *unpack, const void **bytes) {
  z_stream *zlib = &unpack->zlib;
  zlib->next_out = unpack->block;
  zlib->avail_out = BLOCK;
  while (zlib->avail_out == BLOCK && !unpack->ended) {
    if (zlib->avail_in == 0 && !refill(unpack))
      break;
    if (unpack->between && *zlib->next_in != 0x1f) {
      unpack->ended = true;
      break;
    }
    unpack->between = false;
    int status = inflate(zlib, Z_NO_FLUSH);
    if (status == Z_STREAM_END) {
      inflateReset(zlib);
      unpack->between = true;
    } else if (status != Z_OK && status != Z_BUF_ERROR) {
      return fail(unpack, zlib->msg ? zlib->msg : "no gzip data");
    }
  }
  *bytes = unpack->block;
  if (zlib->avail_out == BLOCK && !unpack->error && !unpack->between)
    return fail(unpack, "truncated gzip data");
  return unpack->error ? -1 : (ssize_t)(BLOCK - zlib->avail_out);
}

ssize_t unpack_next(struct unpack *unpack, const void **bytes) {
  if (unpack->error)
    return -1;
  if (!unpack->archive)
    return next_of_gzip(unpack, bytes);
  size_t size;
  int64_t offset;
  int status;
  do
    status = archive_read_data_block(unpack->archive, bytes, &size, &offset);
  while (status == ARCHIVE_RETRY || (status == ARCHIVE_OK && size == 0));
  if (status == ARCHIVE_EOF)
    return 0;
  return status == ARCHIVE_OK ? (ssize_t)size : fail(unpack, archive_error_string(unpack->archive));
}
