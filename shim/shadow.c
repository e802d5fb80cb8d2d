#include "shim/shadow.h"

#include "shim/forward.h"
#include "shim/host.h"
#include "shim/include/sgl_kernel_compat.h"
#include "shim/shadow_file.h"

#include "compat_table.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* --- settings and counts ------------------------------------------------------------------------------------------ */

static struct {
  _Atomic(struct shadow_settings *) settings; /* old ones are kept: a thread may be reading them */
  _Atomic uint64_t calls, matches, mismatches, ignored, over_budget, errors;
  _Atomic uint64_t spent; /* a second in the upper half, and in the lower the microseconds of it that are used up */
  struct forward old;
} sides[SERVE_COUNT];

bool shadow_set(enum serve_kernel kernel, const struct shadow_settings *settings) {
  struct shadow_settings *copy = NULL;
  if (settings) {
    copy = malloc(sizeof *copy);
    if (!copy)
      return false;
    *copy = *settings;
  }
  atomic_store(&sides[kernel].settings, copy);
  return true;
}

bool shadow_is_on(enum serve_kernel kernel) {
  return atomic_load_explicit(&sides[kernel].settings, memory_order_relaxed) != NULL;
}

struct shadow_counts shadow_get_counts(enum serve_kernel kernel) {
  return (struct shadow_counts){.calls = atomic_load(&sides[kernel].calls),
                                .matches = atomic_load(&sides[kernel].matches),
                                .mismatches = atomic_load(&sides[kernel].mismatches),
                                .ignored = atomic_load(&sides[kernel].ignored),
                                .over_budget = atomic_load(&sides[kernel].over_budget),
                                .errors = atomic_load(&sides[kernel].errors)};
}

void shadow_clear_counts(void) {
  shadow_saved_none();
  for (int kernel = 0; kernel < SERVE_COUNT; kernel++) {
    _Atomic uint64_t *const counts[] = {&sides[kernel].calls,   &sides[kernel].matches,     &sides[kernel].mismatches,
                                        &sides[kernel].ignored, &sides[kernel].over_budget, &sides[kernel].errors,
                                        &sides[kernel].spent};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
      atomic_store(counts[i], 0);
  }
}

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t (*shadow_now)(void) = now_ns; /* tests have a clock of their own */

/* Adds to the time that comparing has taken in this second, and returns what it was before. What a comparison took over
 * the budget counts in the seconds after it, what was left over does not. */
static uint64_t spend(enum serve_kernel kernel, uint32_t budget, uint64_t now, uint64_t took) {
  uint64_t second = now / 1000000000 & UINT32_MAX, before = atomic_load(&sides[kernel].spent), used, after;
  do {
    uint64_t passed = (second - (before >> 32)) & UINT32_MAX, had = passed * budget * 1000;
    used = before & UINT32_MAX;
    if (passed > UINT32_MAX / 2) /* another thread is in the next second already */
      second = before >> 32;
    else
      used = used > had ? used - had : 0;
    after = used + took / 1000 < UINT32_MAX ? used + took / 1000 : UINT32_MAX;
  } while (!atomic_compare_exchange_weak(&sides[kernel].spent, &before, second << 32 | after));
  return used;
}

static bool is_over_budget(enum serve_kernel kernel, uint32_t budget, uint64_t now) {
  return budget > 0 && spend(kernel, budget, now, 0) >= (uint64_t)budget * 1000;
}

/* --- the comparison ----------------------------------------------------------------------------------------------- */

static double value_of(const void *data, sgl_jit_dtype dtype, size_t i) {
  uint32_t bits;
  float f;
  if (dtype == SGL_JIT_DTYPE_FLOAT32)
    return (double)((const float *)data)[i];
  uint16_t b = ((const uint16_t *)data)[i];
  if (dtype == SGL_JIT_DTYPE_BFLOAT16) {
    bits = (uint32_t)b << 16;
    memcpy(&f, &bits, sizeof f);
    return (double)f;
  }
  int exponent = b >> 10 & 31, mantissa = b & 1023;
  double value = exponent == 31  ? mantissa ? (double)NAN : (double)INFINITY
                 : exponent == 0 ? ldexp(mantissa, -24)
                                 : ldexp(1024 + mantissa, exponent - 25);
  return b & 0x8000 ? -value : value;
}

double shadow_error(const void *ours, const void *other, sgl_jit_dtype dtype, size_t count) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < count; i++) {
    double a = value_of(ours, dtype, i), b = value_of(other, dtype, i);
    if (isfinite(a) && isfinite(b)) {
      difference += (a - b) * (a - b);
      norm += b * b;
    } else if (!(isnan(a) && isnan(b)) && a != b) {
      return (double)INFINITY;
    }
  }
  return norm > 0 ? sqrt(difference / norm) : difference > 0 ? (double)INFINITY : 0;
}

/* What two right sides may differ by, as measured (docs/performance.md, "Correctness on an H200"): float32 sums 1e-7
 * each; a bfloat16 output 1.7e-3 each, float16 2.3e-4; cuBLASLt's FP8 sums are below float32. */
static double default_tolerance(enum serve_kernel kernel, sgl_jit_dtype output) {
  if (output == SGL_JIT_DTYPE_FLOAT32)
    return 1e-6;
  return output == SGL_JIT_DTYPE_BFLOAT16 ? 4e-3 : kernel == SERVE_BMM_FP8 ? 2e-3 : 1e-3;
}

/* --- the other side ----------------------------------------------------------------------------------------------- */

static const char *const mangled[SERVE_COUNT] = {[SERVE_BMM_FP8] = COMPAT_MANGLED_bmm_fp8,
                                                 [SERVE_DSV3_FUSED_A_GEMM] = COMPAT_MANGLED_dsv3_fused_a_gemm,
                                                 [SERVE_DSV3_ROUTER_GEMM] = COMPAT_MANGLED_dsv3_router_gemm};

static bool has_old_kernel(const struct torch_abi *torch, enum serve_kernel kernel) {
  return torch && torch->call_dispatcher && kernel != SERVE_BMM_FP8 && /* which takes a cuBLAS handle of the caller's */
         sgl_compat_get_op_state(serve_name(kernel)) != SGL_COMPAT_OP_REGISTERED &&
         forward_find(&sides[kernel].old, mangled[kernel], NULL);
}

/* The old operator, called as torch calls it, so that what it throws comes back as an error. Its output is a new tensor
 * beside the caller's; `data` gets its elements. */
static bool run_old(const struct torch_abi *torch, enum serve_kernel kernel, const sgl_jit_tensor views[],
                    void *const tensors[], void *stream, void *data) {
  int32_t dtype, device_type, device_index;
  void *output = NULL;
  if (torch->get_dtype(tensors[0], &dtype) != 0 || torch->get_device_type(tensors[0], &device_type) != 0 ||
      torch->get_device_index(tensors[0], &device_index) != 0 ||
      torch->empty_strided(views[0].ndim, views[0].sizes, views[0].strides, dtype, device_type, device_index,
                           &output) != 0)
    return false;
  uint64_t stack[3];
  int handles = 0;
  for (; handles < 3; handles++) {
    void *handle = NULL;
    if (torch->new_tensor_handle(handles == 0 ? output : tensors[handles], &handle) != 0)
      break;
    stack[handles] = (uint64_t)(uintptr_t)handle;
  }
  char name[96];
  snprintf(name, sizeof name, COMPAT_OP_NAMESPACE "::%s", serve_name(kernel));
  bool done = handles == 3 && torch->call_dispatcher(name, "", stack) == 0;
  if (handles < 3)
    while (handles-- > 0)
      torch->delete_tensor_object((void *)(uintptr_t)stack[handles]);
  sgl_jit_tensor view = views[0];
  done = done && torch->get_data_ptr(output, &view.data) == 0 &&
         sgl_jit_read(&view, data, host_bytes(&view), stream, NULL, 0) == SGL_JIT_OK;
  torch->delete_tensor_object(output);
  return done;
}

/* --- one call ----------------------------------------------------------------------------------------------------- */

enum outcome { MATCH, MISMATCH, IGNORED, FAILED };

/* The tensors that the two sides have read and written, on the host. */
struct sample {
  sgl_jit_tensor host[SERVE_TENSORS];
  void *other; /* the other side's output; host[serve_output()] is ours */
};

static sgl_jit_status take_sample(enum serve_kernel kernel, const sgl_jit_tensor views[], void *stream,
                                  struct sample *s) {
  sgl_jit_status status = host_copy(kernel, views, true, stream, s->host, NULL, 0);
  s->other = status == SGL_JIT_OK ? host_memory(host_bytes(&views[serve_output(kernel)])) : NULL;
  return status == SGL_JIT_OK && !s->other ? SGL_JIT_ERROR_OUT_OF_MEMORY : status;
}

static bool run_other(const struct torch_abi *torch, enum serve_kernel kernel, const sgl_jit_tensor views[],
                      void *const tensors[], void *stream, struct sample *s, const char **name) {
  if (has_old_kernel(torch, kernel)) {
    *name = "old kernel";
    return run_old(torch, kernel, views, tensors, stream, s->other);
  }
  *name = "reference";
  sgl_jit_tensor t[SERVE_TENSORS];
  memcpy(t, s->host, sizeof t);
  t[serve_output(kernel)].data = s->other;
  return host_reference(kernel, t, NULL, NULL, 0) == SGL_JIT_OK;
}

static enum outcome compare(const struct torch_abi *torch, enum serve_kernel kernel,
                            const struct shadow_settings *settings, const sgl_jit_tensor views[], void *const tensors[],
                            void *stream) {
  const sgl_jit_tensor *output = &views[serve_output(kernel)];
  size_t bytes = host_bytes(output);
  if (bytes == 0)
    return IGNORED;
  struct sample s;
  const char *other = "";
  enum outcome outcome = FAILED;
  sgl_jit_status status = take_sample(kernel, views, stream, &s);
  if (status == SGL_JIT_ERROR_CAPTURE) {
    outcome = IGNORED;
  } else if (status == SGL_JIT_OK && run_other(torch, kernel, views, tensors, stream, &s, &other)) {
    double tolerance = settings->tolerance > 0 ? settings->tolerance : default_tolerance(kernel, output->dtype);
    double error = shadow_error(s.host[serve_output(kernel)].data, s.other, output->dtype,
                                bytes / host_element_bytes(output->dtype));
    outcome = error <= tolerance ? MATCH : MISMATCH;
    if (outcome == MISMATCH)
      shadow_save(kernel, s.host, s.other, other, error, tolerance);
    if (settings->returns_other && sgl_jit_write(output, s.other, bytes, stream, NULL, 0) != SGL_JIT_OK)
      outcome = FAILED;
  }
  host_free(s.host);
  free(s.other);
  return outcome;
}

void shadow_after(const struct torch_abi *torch, enum serve_kernel kernel, const sgl_jit_tensor views[],
                  void *const tensors[], void *stream) {
  const struct shadow_settings *settings = atomic_load(&sides[kernel].settings);
  if (!settings)
    return;
  uint64_t call = atomic_fetch_add_explicit(&sides[kernel].calls, 1, memory_order_relaxed);
  if (call >= settings->first && (settings->every == 0 || call % settings->every != 0))
    return;
  uint64_t start = shadow_now();
  if (is_over_budget(kernel, settings->budget, start)) {
    atomic_fetch_add(&sides[kernel].over_budget, 1);
    return;
  }
  _Atomic uint64_t *const counts[] = {[MATCH] = &sides[kernel].matches,
                                      [MISMATCH] = &sides[kernel].mismatches,
                                      [IGNORED] = &sides[kernel].ignored,
                                      [FAILED] = &sides[kernel].errors};
  atomic_fetch_add(counts[compare(torch, kernel, settings, views, tensors, stream)], 1);
  uint64_t end = shadow_now();
  if (settings->budget > 0)
    spend(kernel, settings->budget, end, end - start);
}
