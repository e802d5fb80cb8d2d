/* Writing files in other people's processes: a file that grows over its limit (RLIMIT_FSIZE) brings SIGXFSZ, which
 * would end the process. Between the two calls it is an error of write, EFBIG, like a full disk. Leaves errno alone. */
#ifndef SGL_COMPAT_QUIET_H
#define SGL_COMPAT_QUIET_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

sigset_t quiet_begin(void);
void quiet_end(const sigset_t *before);

/* Writes all of it; false with errno. */
bool quiet_write(int file, const void *data, size_t size);

#endif
