#include "scanner/crew.h"
#include "scanner/scanner.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct crew {
  void (*work)(void *user, unsigned worker, size_t index);
  void *user;
  size_t count;
  atomic_size_t next;
};

struct worker {
  struct crew *crew;
  unsigned number;
  pthread_t thread;
};

static void *worker_run(void *argument) {
  struct worker *worker = argument;
  struct crew *crew = worker->crew;
  size_t i;
  while ((i = atomic_fetch_add(&crew->next, 1)) < crew->count)
    crew->work(crew->user, worker->number, i);
  return NULL;
}

void crew_run(void (*work)(void *user, unsigned worker, size_t index), void *user, size_t count, unsigned threads) {
  struct crew crew = {.work = work, .user = user, .count = count};
  if (threads > count)
    threads = count > 0 ? (unsigned)count : 1;
  struct worker *workers = scan_alloc(NULL, threads * sizeof *workers);
  unsigned started = 1;
  for (; started < threads; started++) {
    workers[started] = (struct worker){&crew, started, 0};
    if (pthread_create(&workers[started].thread, NULL, worker_run, &workers[started]) != 0)
      break;
  }
  workers[0] = (struct worker){&crew, 0, 0};
  worker_run(&workers[0]);
  for (unsigned i = 1; i < started; i++)
    pthread_join(workers[i].thread, NULL);
  free(workers);
}

/* --- progress ----------------------------------------------------------------------------------------------------- */

struct progress {
  const char *what;
  const atomic_size_t *done, *count;
  pthread_t thread;
  pthread_mutex_t mutex;
  pthread_cond_t stop;
  bool stopped;
};

/* Half a second is what a person notices. */
static void *show(void *argument) {
  struct progress *progress = argument;
  bool shown = false;
  struct timespec next;
  clock_gettime(CLOCK_MONOTONIC, &next);
  pthread_mutex_lock(&progress->mutex);
  while (!progress->stopped) {
    next.tv_nsec += 500 * 1000 * 1000;
    next.tv_sec += next.tv_nsec / 1000000000;
    next.tv_nsec %= 1000000000;
    while (!progress->stopped && pthread_cond_clockwait(&progress->stop, &progress->mutex, CLOCK_MONOTONIC, &next) == 0)
      ;
    if (progress->stopped)
      break;
    fprintf(stderr, "\rsgl-migrate: %s %zu of %zu files\x1b[K", progress->what, atomic_load(progress->done),
            atomic_load(progress->count));
    shown = true;
  }
  pthread_mutex_unlock(&progress->mutex);
  if (shown)
    fputs("\r\x1b[K", stderr);
  return NULL;
}

struct progress *progress_start(const char *what, const atomic_size_t *done, const atomic_size_t *count) {
  struct progress *progress = scan_alloc(NULL, sizeof *progress);
  *progress = (struct progress){.what = what, .done = done, .count = count};
  pthread_mutex_init(&progress->mutex, NULL);
  pthread_cond_init(&progress->stop, NULL);
  if (pthread_create(&progress->thread, NULL, show, progress) == 0)
    return progress;
  free(progress); /* the work goes on unseen */
  return NULL;
}

void progress_stop(struct progress *progress) {
  if (!progress)
    return;
  pthread_mutex_lock(&progress->mutex);
  progress->stopped = true;
  pthread_cond_signal(&progress->stop);
  pthread_mutex_unlock(&progress->mutex);
  pthread_join(progress->thread, NULL);
  free(progress);
}
