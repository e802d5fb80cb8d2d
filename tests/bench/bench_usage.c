/* What counting costs: a call's site and its count, the kernel that ran, a use from Python, and the question whether
 * the call log is on. Two threads at one site mostly count in different cache lines. */
#include "shim/call_log.h"
#include "shim/usage.h"
#include "tests/bench/bench.h"

enum { MUST_NS = 20 }; /* for each call through a deleted name */

static void count_at(uintptr_t address) {
  usage_count(usage_site(SGL_COMPAT_CALL_CXX, 3, (const void *)address), SGL_COMPAT_STAGE_WARN);
}

static void one_site(void *user, int thread, int calls) {
  (void)user, (void)thread;
  for (int i = 0; i < calls; i++)
    count_at(0x1000);
}
static void own_sites(void *user, int thread, int calls) {
  (void)user;
  for (int i = 0; i < calls; i++)
    count_at(0x2000 + (uintptr_t)thread * 0x100);
}
static void hundred_sites(void *user, int thread, int calls) {
  (void)user, (void)thread;
  for (int i = 0; i < calls; i++)
    count_at(0x3000 + (uintptr_t)(i % 100) * 16);
}
static void kernel(void *user, int thread, int calls) {
  (void)user, (void)thread;
  for (int i = 0; i < calls; i++)
    usage_kernel(SERVE_DSV3_ROUTER_GEMM, 256, 7168, SGL_JIT_DTYPE_FLOAT32);
}
static void whole(void *user, int thread, int calls) {
  for (int i = 0; i < calls; i++) {
    count_at(0x1000);
    kernel(user, thread, 1);
    if (call_log_is_on())
      abort();
  }
}
static void python(void *user, int thread, int calls) {
  (void)thread;
  for (int i = 0; i < calls; i++)
    sgl_compat_usage_again(user);
}

int main(void) {
  void *place = sgl_compat_usage_python("dsv3_router_gemm", SGL_COMPAT_CALL_PYTHON, "warn", "model", "model.py", 1);
  struct bench_side one[] = {{.name = "site and count, 1 site", .run = one_site},
                             {.name = "site and count, 100 sites", .run = hundred_sites},
                             {.name = "kernel that ran", .run = kernel},
                             {.name = "all of a call", .run = whole},
                             {.name = "a use from Python, again", .run = python, .user = place}};
  struct bench_side two[] = {{.name = "2 threads, a site each", .run = own_sites},
                             {.name = "2 threads, 1 site", .run = one_site},
                             {.name = "2 threads, all of a call", .run = whole}};
  bench_run(one, 5, 1);
  bench_run(two, 3, 2);
  printf("\nStatistics: ns, median [tenths 1 .. 9] of %d repetitions of %d calls\n", BENCH_REPETITIONS, BENCH_CALLS);
  for (int i = 0; i < 8; i++) {
    const struct bench_side *side = i < 5 ? &one[i] : &two[i - 5];
    printf("%-28s", side->name);
    bench_print(side);
    putchar('\n');
  }
  bool met = bench_median(&one[3]) < MUST_NS;
  printf("must: all of a call under %d ns: %s\n", MUST_NS, met ? "met" : "MISSED");
  return met ? 0 : 1;
}
