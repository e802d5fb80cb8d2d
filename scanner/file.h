/* Files that are neither sources nor rewritten (file.c). */
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

#endif
