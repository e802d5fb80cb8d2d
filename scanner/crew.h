/* Worker threads over lists, and what a terminal shows meanwhile. */
#ifndef SGL_SCANNER_CREW_H
#define SGL_SCANNER_CREW_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* Work in parts, for worker threads that do them side by side. */
struct crew;
struct crew *crew_new(void);
/* Adds a part: work(user, worker, index) for each index below count, in this order, as soon as the parts in `after` are
 * done; `worker` is below the number of threads. Returns the bit that stands for it in `after`; of the parts that can
 * go on, the one that was added first does. */
unsigned crew_add(struct crew *crew, void (*work)(void *user, unsigned worker, size_t index), void *user, size_t count,
                  unsigned after);
/* Does all of it, and frees the crew; the caller's thread is worker 0. Fewer workers than `threads` do the same work
 * when the system gives no more. */
void crew_finish(struct crew *crew, unsigned threads);
/* The same for one part. */
void crew_run(void (*work)(void *user, unsigned worker, size_t index), void *user, size_t count, unsigned threads);

/* A line on standard error, "read 120 of 6600 files", twice a second until progress_stop wipes it out. */
struct progress;
struct progress *progress_start(const char *what, const atomic_size_t *done, const atomic_size_t *count);
void progress_stop(struct progress *progress);

#endif
