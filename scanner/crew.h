/* Worker threads over a list, and what a terminal shows meanwhile. */
#ifndef SGL_SCANNER_CREW_H
#define SGL_SCANNER_CREW_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* Calls work(user, worker, index) for each index below count; the caller's thread is worker 0. Fewer workers than
 * `threads` do the same work when the system gives no more. */
void crew_run(void (*work)(void *user, unsigned worker, size_t index), void *user, size_t count, unsigned threads);

/* A line on standard error, "read 120 of 6600 files", twice a second until progress_stop wipes it out. */
struct progress;
struct progress *progress_start(const char *what, const atomic_size_t *done, const atomic_size_t *count);
void progress_stop(struct progress *progress);

#endif
