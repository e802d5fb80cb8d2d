/* Packed streams (gzip, bzip2, xz, zstd), unpacked as they come and checked to their end: lengths and checksums, those
 * behind the last byte of what is in them, too. libarchive alone stops at the end of a tar file, and does not look at
 * the checksums of gzip. */
#ifndef SGL_SCANNER_UNPACK_H
#define SGL_SCANNER_UNPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The next bytes, valid until the next call: how many, 0 at the end, -1 when they cannot be read. */
typedef ssize_t unpack_source(void *user, const void **bytes);

struct unpack;
/* Of a file; NULL when it is not packed. */
struct unpack *unpack_file(int fd);
/* Of bytes that come from elsewhere; they begin with `head`. NULL when they are not packed. */
struct unpack *unpack_stream(const uint8_t *head, size_t size, unpack_source *source, void *user);
/* As unpack_source; after -1 unpack_error says why. */
ssize_t unpack_next(struct unpack *unpack, const void **bytes);
const char *unpack_error(const struct unpack *unpack);
void unpack_close(struct unpack *unpack);

#endif
