/* One member of an archive: its blocks, a copy of it, and what an archive may cost. */
#include "scanner/audit_archive.h"
#include "scanner/file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const struct audit_limits audit_default_limits = {
    .member = (uint64_t)8 << 30, .total = (uint64_t)64 << 30, .ratio = 1000, .members = 2000000, .depth = 4};

void member_fault(struct unpacking *run, const char *member, const char *format, const char *what) {
  struct audit_object *object = audit_add(run->list, run->path, member);
  object->layer = run->layer;
  audit_fault(run->list, object, format, what);
}

void member_damaged(struct unpacking *run, const char *label, struct archive *archive) {
  const char *why = archive_error_string(archive);
  member_fault(run, label, "truncated or damaged: %s", why ? why : "unknown reason");
}

bool member_stop(struct unpacking *run, const char *limit, uint64_t value) {
  if (!run->stopped) {
    char *text = scan_format("%s of %llu", limit, (unsigned long long)value);
    member_fault(run, NULL, "the rest of the archive is not analysed: it exceeds the limit %s; see --limit", text);
    free(text);
  }
  run->stopped = true;
  return false;
}

bool member_spend(struct unpacking *run, uint64_t bytes) {
  const struct audit_limits *limits = &run->context->limits;
  run->total += bytes;
  if (run->stopped)
    return false;
  if (run->total > limits->total)
    return member_stop(run, "total", limits->total);
  if (run->total > AUDIT_RATIO_FROM && run->total / limits->ratio > run->size)
    return member_stop(run, "ratio", limits->ratio);
  return true;
}

bool member_next(struct member *member) {
  if (member->rest_size) {
    member->block = member->rest;
    member->size = member->rest_size;
    member->offset = member->rest_offset;
    member->rest_size = 0;
    return true;
  }
  if (member->ended)
    return false;
  do
    member->status = archive_read_data_block(member->archive, &member->block, &member->size, &member->offset);
  while (member->status == ARCHIVE_RETRY);
  if (member->size == 0)
    member->block = "";
  member->damaged |= member->status == ARCHIVE_WARN;
  return member->status == ARCHIVE_OK || member->status == ARCHIVE_WARN;
}

bool member_first(struct member *member) {
  if (!member_next(member))
    return false;
  size_t filled = 0;
  if (member->size >= AUDIT_HEAD || member->offset != 0)
    return true;
  do {
    size_t room = AUDIT_HEAD - filled, taken = member->offset != (int64_t)filled ? 0 : member->size;
    taken = taken < room ? taken : room;
    memcpy(member->head + filled, member->block, taken);
    filled += taken;
    if (taken < member->size) {
      member->rest = (const uint8_t *)member->block + taken;
      member->rest_size = member->size - taken;
      member->rest_offset = member->offset + (int64_t)taken;
      break;
    }
    member->ended = filled < AUDIT_HEAD && !member_next(member);
  } while (filled < AUDIT_HEAD && !member->ended);
  member->block = member->head;
  member->size = filled;
  member->offset = 0;
  return true;
}

int member_copy(struct unpacking *run, struct member *member, uint64_t *size) {
  int fd = file_temporary();
  if (fd < 0) {
    member_fault(run, member->label, "no file for it in the temporary folder: %s", strerror(errno));
    return -1;
  }
  *size = 0;
  bool good = true;
  do {
    uint64_t end = (uint64_t)member->offset + member->size;
    if (member->offset < 0 || end > run->context->limits.member) {
      char *text = scan_format("member of %llu", (unsigned long long)run->context->limits.member);
      member_fault(run, member->label, "it exceeds the limit %s; see --limit", text);
      free(text);
      good = false;
    } else if (!member_spend(run, end > *size ? end - *size : member->size)) {
      good = false;
    } else {
      for (size_t done = 0; good && done < member->size;) {
        ssize_t wrote =
            pwrite(fd, (const char *)member->block + done, member->size - done, (off_t)member->offset + (off_t)done);
        if (wrote < 0 && errno != EINTR) {
          member_fault(run, member->label, "the temporary folder: %s", strerror(errno));
          good = false;
        }
        done += wrote > 0 ? (size_t)wrote : 0;
      }
      *size = end > *size ? end : *size;
    }
  } while (good && member_next(member));
  if (good && (member->status != ARCHIVE_EOF || member->damaged)) {
    member_damaged(run, member->label, member->archive);
    good = false;
  }
  if (good)
    return fd;
  close(fd);
  return -1;
}
