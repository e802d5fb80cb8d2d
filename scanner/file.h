/* Files that are neither sources nor rewritten, and what all that deal with files need (file.c). */
#ifndef SGL_SCANNER_FILE_H
#define SGL_SCANNER_FILE_H

#include <stdbool.h>
#include <stddef.h>

/* The whole of a regular file, NUL-ended, owned by the caller; NULL after writing what is wrong into message ("cannot
 * be read: ..."). */
char *file_read(const char *path, size_t limit, size_t *size, char *message, size_t message_size);
/* Makes the file or replaces it in one step: synced, then renamed. false after writing what is wrong into message; what
 * was there before is then unchanged. */
bool file_replace(const char *path, const char *text, size_t size, char *message, size_t message_size);
/* All of the bytes, however many calls that takes; false with errno set. */
bool file_write(int fd, const void *bytes, size_t size);
/* A file without a name in TMPDIR, else /tmp; -1 with errno. */
int file_temporary(void);
/* Is the path relative, and without steps that lead out of the folder that it starts from? */
bool file_below_root(const char *path);

#endif
