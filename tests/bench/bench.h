/* What the host-side benchmarks share: sides that are timed in turn, so that the machine's moods reach all of them, and
 * the median with the spread of the middle eight tenths. */
#ifndef SGL_TESTS_BENCH_H
#define SGL_TESTS_BENCH_H

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define HELPER __attribute__((unused)) static

enum { BENCH_REPETITIONS = 61, BENCH_CALLS = 10000, BENCH_SIDES = 8, BENCH_THREADS = 2 };

/* `run` makes that many calls, as the thread of that number. */
struct bench_side {
  const char *name;
  void (*run)(void *user, int thread, int calls);
  void *user;
  double ns[BENCH_REPETITIONS]; /* for a call, sorted */
};

struct bench_thread {
  const struct bench_side *side;
  pthread_barrier_t *start;
  int number;
  double ns;
};

HELPER double bench_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

HELPER void *bench_thread(void *user) {
  struct bench_thread *t = user;
  pthread_barrier_wait(t->start);
  double start = bench_now();
  t->side->run(t->side->user, t->number, BENCH_CALLS);
  t->ns = (bench_now() - start) / BENCH_CALLS;
  return NULL;
}

/* Nanoseconds for a call, of the mean thread. */
HELPER double bench_once(const struct bench_side *side, int threads) {
  struct bench_thread t[BENCH_THREADS];
  pthread_t handle[BENCH_THREADS];
  pthread_barrier_t start;
  double sum = 0;
  pthread_barrier_init(&start, NULL, (unsigned)threads);
  for (int i = 0; i < threads; i++)
    t[i] = (struct bench_thread){side, &start, i, 0};
  for (int i = 1; i < threads; i++)
    if (pthread_create(&handle[i], NULL, bench_thread, &t[i]) != 0)
      abort();
  bench_thread(&t[0]);
  for (int i = 1; i < threads; i++)
    pthread_join(handle[i], NULL);
  for (int i = 0; i < threads; i++)
    sum += t[i].ns;
  pthread_barrier_destroy(&start);
  return sum / threads;
}

HELPER int bench_order(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

HELPER void bench_run(struct bench_side *sides, int count, int threads) {
  for (int r = -1; r < BENCH_REPETITIONS; r++) /* the first round warms up */
    for (int i = 0; i < count; i++) {
      double ns = bench_once(&sides[i], threads);
      if (r >= 0)
        sides[i].ns[r] = ns;
    }
  for (int i = 0; i < count; i++)
    qsort(sides[i].ns, BENCH_REPETITIONS, sizeof sides[i].ns[0], bench_order);
}

HELPER double bench_median(const struct bench_side *side) {
  return side->ns[BENCH_REPETITIONS / 2];
}

/* " 61.2 [ 60.8 ..  63.0]" */
HELPER void bench_print(const struct bench_side *side) {
  printf("  %6.1f [%6.1f .. %6.1f]", bench_median(side), side->ns[BENCH_REPETITIONS / 10],
         side->ns[BENCH_REPETITIONS - 1 - BENCH_REPETITIONS / 10]);
}

/* Opens a stand-in of the tests by its path below the build's tests folder. */
HELPER void *bench_open(const char *file, int mode) {
  char path[4096];
  ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  path[length > 0 ? length : 0] = '\0';
  for (int up = 0; up < 2 && strrchr(path, '/'); up++) /* .../tests/bench/PROGRAM */
    *strrchr(path, '/') = '\0';
  snprintf(path + strlen(path), sizeof path - strlen(path), "/%s", file);
  void *handle = dlopen(path, RTLD_NOW | mode);
  if (!handle) {
    fprintf(stderr, "%s\n", dlerror());
    exit(2);
  }
  return handle;
}

HELPER void *bench_symbol(void *handle, const char *name) {
  void *address = dlsym(handle, name);
  if (!address) {
    fprintf(stderr, "%s\n", dlerror());
    exit(2);
  }
  return address;
}

#endif
