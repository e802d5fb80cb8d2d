/* Host cost of a call through the C API: what the library adds to the driver's own calls. The driver is the fake one,
 * idle; its cost is measured by itself and taken off. */
#include "tests/bench/operands.h"

enum { MUST_NS = 150, MOST_KERNELS = 100 };

typedef sgl_jit_status operator(const sgl_jit_tensor *, const sgl_jit_tensor *, const sgl_jit_tensor *, void *, char *,
                                size_t);

struct job {
  struct operands_driver *driver;
  operator* call;
  int kernels; /* used in turn */
  struct operands operands[MOST_KERNELS];
};

static void call_library(void *user, int thread, int calls) {
  struct job *job = user;
  char message[512];
  if (thread)
    job->driver->context(0, 1);
  for (int i = 0, at = 0; i < calls; i++) {
    const sgl_jit_tensor *t = job->operands[at].tensor;
    if (job->call(&t[0], &t[1], &t[2], job, message, sizeof message) != SGL_JIT_OK) {
      fprintf(stderr, "%s\n", message);
      exit(2);
    }
    at = at + 1 == job->kernels ? 0 : at + 1;
  }
}

int main(void) {
  static const int kernels[] = {1, 8, MOST_KERNELS};
  static struct job job;
  struct operands_driver driver = operands_driver();
  double most = 0;
  job.driver = &driver;
  printf("C API on an idle fake driver: ns a call, median [tenths 1 .. 9] of %d repetitions of %d calls\n",
         BENCH_REPETITIONS, BENCH_CALLS);
  printf("%-18s %7s %7s  %-25s  %-25s  %s\n", "operator", "kernels", "threads", "call", "the driver alone",
         "difference");
  for (int fused = 0; fused < 2; fused++)
    for (int k = 0; k < 3; k++)
      for (int threads = 1; threads <= BENCH_THREADS; threads++) {
        job.call = fused ? sgl_jit_dsv3_fused_a_gemm : sgl_jit_dsv3_router_gemm;
        job.kernels = kernels[k];
        for (int i = 0; i < job.kernels; i++)
          operands_make(&job.operands[i], fused, i);
        struct bench_side sides[] = {{.run = call_library, .user = &job},
                                     {.run = operands_driver_alone, .user = &driver}};
        bench_run(sides, 2, threads);
        double difference = bench_median(&sides[0]) - bench_median(&sides[1]);
        most = difference > most ? difference : most;
        printf("%-18s %7d %7d", fused ? "dsv3_fused_a_gemm" : "dsv3_router_gemm", job.kernels, threads);
        bench_print(&sides[0]);
        bench_print(&sides[1]);
        printf("  %6.1f\n", difference);
      }
  printf("must: at most %d ns without the driver; measured: at most %.1f ns: %s\n", MUST_NS, most,
         most <= MUST_NS ? "met" : "MISSED");
  return most <= MUST_NS ? 0 : 1;
}
