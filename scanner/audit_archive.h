/* What audit_archive.c and audit_member.c share: an archive that is being read, and one member of it. */
#ifndef SGL_SCANNER_AUDIT_ARCHIVE_H
#define SGL_SCANNER_AUDIT_ARCHIVE_H

#include "scanner/audit.h"

#include <archive.h>

/* One archive of the file system, with all that are in it. */
struct unpacking {
  const struct audit_context *context;
  struct audit_list *list;
  const char *path;
  uint64_t size; /* of the file */
  uint64_t total, members;
  unsigned layer; /* of an image, that is at work; AUDIT_NO_LAYER: none */
  bool stopped;   /* a limit was reached */
};

/* A member that is being read: its first bytes decide whether it is copied. */
struct member {
  struct archive *archive;
  char *label; /* with the prefix */
  const void *block;
  size_t size;
  int64_t offset; /* of the block */
  int status;     /* of libarchive */
  uint8_t head[AUDIT_HEAD];
  const uint8_t *rest; /* what member_first did not take of a block */
  size_t rest_size;
  int64_t rest_offset;
  bool ended;   /* member_first saw the end */
  bool damaged; /* libarchive warned: a checksum or size that it finds wrong at the end */
};

__attribute__((format(printf, 3, 0))) void member_fault(struct unpacking *run, const char *label, const char *format,
                                                        const char *what);
/* What libarchive says of it. */
void member_damaged(struct unpacking *run, const char *label, struct archive *archive);
/* Nothing more of the archive is read. Returns false. */
bool member_stop(struct unpacking *run, const char *limit, uint64_t value);
/* Counts bytes that were unpacked; false: no more. */
bool member_spend(struct unpacking *run, uint64_t bytes);
/* The next block; false at the end and when it cannot be read. */
bool member_next(struct member *member);
/* A block can be as short as a byte; this one is to show what the member is. */
bool member_first(struct member *member);
/* The whole member in a file without a name; -1 after a fault. */
int member_copy(struct unpacking *run, struct member *member, uint64_t *size);

#endif
