#include "scanner/crew.h"
#include "scanner/scanner.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define MOST_PARTS 16

struct part {
  void (*work)(void *user, unsigned worker, size_t index);
  void *user;
  size_t count, next, done;
  unsigned after;
};

struct crew {
  struct part parts[MOST_PARTS];
  unsigned count, finished; /* finished: bits */
  pthread_mutex_t mutex;    /* of the parts while they are worked on */
  pthread_cond_t changed;
};

struct worker {
  struct crew *crew;
  unsigned number;
  pthread_t thread;
};

struct crew *crew_new(void) {
  struct crew *crew = scan_alloc(NULL, sizeof *crew);
  *crew = (struct crew){0};
  pthread_mutex_init(&crew->mutex, NULL);
  pthread_cond_init(&crew->changed, NULL);
  return crew;
}

unsigned crew_add(struct crew *crew, void (*work)(void *user, unsigned worker, size_t index), void *user, size_t count,
                  unsigned after) {
  if (crew->count == MOST_PARTS)
    abort();
  crew->parts[crew->count] = (struct part){.work = work, .user = user, .count = count, .after = after};
  return 1u << crew->count++;
}

/* The part of the next item, or NULL when there is none now. Parts without items are finished on the way. */
static struct part *next_part(struct crew *crew) {
  for (unsigned i = 0; i < crew->count; i++) {
    struct part *part = &crew->parts[i];
    if (part->after & ~crew->finished)
      continue;
    if (part->next < part->count)
      return part;
    if (part->count == 0)
      crew->finished |= 1u << i;
  }
  return NULL;
}

static void *worker_run(void *argument) {
  struct worker *worker = argument;
  struct crew *crew = worker->crew;
  pthread_mutex_lock(&crew->mutex);
  for (;;) {
    struct part *part = next_part(crew);
    if (!part && crew->finished == (1u << crew->count) - 1)
      break;
    if (!part) {
      pthread_cond_wait(&crew->changed, &crew->mutex);
      continue;
    }
    size_t index = part->next++;
    pthread_mutex_unlock(&crew->mutex);
    part->work(part->user, worker->number, index);
    pthread_mutex_lock(&crew->mutex);
    if (++part->done == part->count) {
      crew->finished |= 1u << (part - crew->parts);
      pthread_cond_broadcast(&crew->changed);
    }
  }
  pthread_mutex_unlock(&crew->mutex);
  return NULL;
}

void crew_finish(struct crew *crew, unsigned threads) {
  size_t items = 0;
  for (unsigned i = 0; i < crew->count; i++)
    items += crew->parts[i].count;
  if (threads > items)
    threads = items > 0 ? (unsigned)items : 1;
  struct worker *workers = scan_alloc(NULL, threads * sizeof *workers);
  unsigned started = 1;
  for (; started < threads; started++) {
    workers[started] = (struct worker){crew, started, 0};
    if (pthread_create(&workers[started].thread, NULL, worker_run, &workers[started]) != 0)
      break;
  }
  workers[0] = (struct worker){crew, 0, 0};
  worker_run(&workers[0]);
  for (unsigned i = 1; i < started; i++)
    pthread_join(workers[i].thread, NULL);
  free(workers);
  pthread_mutex_destroy(&crew->mutex);
  pthread_cond_destroy(&crew->changed);
  free(crew);
}

void crew_run(void (*work)(void *user, unsigned worker, size_t index), void *user, size_t count, unsigned threads) {
  struct crew *crew = crew_new();
  crew_add(crew, work, user, count, 0);
  crew_finish(crew, threads);
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
