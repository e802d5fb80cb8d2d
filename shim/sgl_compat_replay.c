/* replay: the comparisons that a shadow run has saved, made again. */
#include "shim/host.h"
#include "shim/sgl_compat_tool.h"
#include "shim/shadow.h"
#include "shim/shadow_file.h"

#include <dlfcn.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char tool_replay_help[] =
    "usage: sgl-compat replay [OPTION]... FILE...\n"
    "\n"
    "Makes the comparisons again that a shadow run has saved in SGL_KERNEL_COMPAT_SHADOW_DIR: the CPU reference "
    "computes\n"
    "from the saved inputs, and so does the JIT kernel on this machine's first CUDA device, if there is one. Prints "
    "by\n"
    "how much of its norm each output differs from the reference's: the kernel's as it was saved, the other side's as "
    "it\n"
    "was saved, and the kernel's of now.\n"
    "\n"
    "options:\n"
    "      --json        one JSON object a file, in lines\n" TOOL_HELP_OPTION "\n"
    "exit status:\n"
    "  0   no output of now differs by more than the tolerance (without a device: the saved one does not)\n"
    "  1   one does, or a file cannot be read: named on standard error or in the result\n"
    "  2   wrong usage: nothing was done\n"
    "\n"
    "examples:\n"
    "  sgl-compat replay /var/log/sgl/dsv3_router_gemm-node7-4211-90551-0.shadow\n";

/* --- the kernel on a device --------------------------------------------------------------------------------------- */

/* Memory of the first CUDA device, by the driver's own functions: the library has no allocator. (cuda.h) */
struct device {
  void *library;
  int (*cuInit)(unsigned flags);
  int (*cuDeviceGet)(int *device, int ordinal);
  int (*cuDevicePrimaryCtxRetain)(void **context, int device);
  int (*cuCtxSetCurrent)(void *context);
  int (*cuMemAlloc)(uint64_t *memory, size_t bytes);
  int (*cuMemFree)(uint64_t memory);
  const char *why; /* there is none; NULL: there is one */
};

static struct device open_device(void) {
  struct device d = {.library = dlopen("libcuda.so.1", RTLD_NOW)};
  const struct {
    const char *name;
    void *function;
  } functions[] = {{"cuInit", &d.cuInit},
                   {"cuDeviceGet", &d.cuDeviceGet},
                   {"cuDevicePrimaryCtxRetain", &d.cuDevicePrimaryCtxRetain},
                   {"cuCtxSetCurrent", &d.cuCtxSetCurrent},
                   {"cuMemAlloc_v2", &d.cuMemAlloc},
                   {"cuMemFree_v2", &d.cuMemFree}};
  d.why = d.library ? NULL : "no CUDA driver";
  for (size_t i = 0; i < sizeof functions / sizeof functions[0] && !d.why; i++) {
    void *address = dlsym(d.library, functions[i].name);
    memcpy(functions[i].function, &address, sizeof address);
    if (!address)
      d.why = "the CUDA driver is too old";
  }
  int device;
  void *context;
  if (!d.why && (d.cuInit(0) != 0 || d.cuDeviceGet(&device, 0) != 0))
    d.why = "no CUDA device";
  if (!d.why && (d.cuDevicePrimaryCtxRetain(&context, device) != 0 || d.cuCtxSetCurrent(context) != 0))
    d.why = "the CUDA device does not start";
  return d;
}

static sgl_jit_status run_kernel(enum serve_kernel kernel, const sgl_jit_tensor t[], char *message, size_t size) {
  switch (kernel) {
  case SERVE_BMM_FP8:
    return sgl_jit_bmm_fp8(&t[2], &t[0], &t[1], &t[3], &t[4], NULL, 0, NULL, message, size);
  case SERVE_DSV3_FUSED_A_GEMM:
    return sgl_jit_dsv3_fused_a_gemm(&t[0], &t[1], &t[2], NULL, message, size);
  case SERVE_DSV3_ROUTER_GEMM:
    return sgl_jit_dsv3_router_gemm(&t[0], &t[1], &t[2], NULL, message, size);
  default: /* is not compared */
    return SGL_JIT_ERROR_INTERNAL;
  }
}

/* The kernel of now on the saved inputs; its output into data. */
static bool run_on_device(const struct device *d, const struct shadow_record *record, void *data, char *message,
                          size_t size) {
  sgl_jit_tensor t[SERVE_TENSORS];
  int count = serve_operands(record->kernel), output = serve_output(record->kernel), ready = 0;
  bool ok = true;
  for (; ready < count && ok; ready++) {
    t[ready] = record->tensors[ready];
    t[ready].device_type = SGL_JIT_DEVICE_CUDA;
    uint64_t memory = 0;
    if (d->cuMemAlloc(&memory, host_bytes(&t[ready]) + 256) != 0) {
      snprintf(message, size, "no memory on the CUDA device");
      ok = false;
      break;
    }
    t[ready].data = (void *)(uintptr_t)memory;
    ok = ready == output || sgl_jit_write(&t[ready], record->tensors[ready].data, host_bytes(&t[ready]), NULL, message,
                                          size) == SGL_JIT_OK;
  }
  ok = ok && run_kernel(record->kernel, t, message, size) == SGL_JIT_OK &&
       sgl_jit_read(&t[output], data, host_bytes(&t[output]), NULL, message, size) == SGL_JIT_OK;
  while (ready-- > 0)
    d->cuMemFree((uint64_t)(uintptr_t)t[ready].data);
  return ok;
}

/* --- one file ----------------------------------------------------------------------------------------------------- */

struct result {
  double saved, other, now; /* from the reference; now is negative where the kernel was not run */
  char why[512];            /* it was not */
};

static bool replay(const struct device *d, const struct shadow_record *record, struct result *result, char *message,
                   size_t size) {
  int output = serve_output(record->kernel);
  const sgl_jit_tensor *saved = &record->tensors[output];
  size_t bytes = host_bytes(saved), count = bytes / host_element_bytes(saved->dtype);
  void *exact = host_memory(bytes), *now = malloc(bytes + 1);
  sgl_jit_tensor t[SERVE_TENSORS];
  memcpy(t, record->tensors, sizeof t);
  t[output].data = exact;
  snprintf(message, size, "out of memory");
  bool ok = exact && now && host_reference(record->kernel, t, NULL, message, size) == SGL_JIT_OK;
  if (ok) {
    result->saved = shadow_error(saved->data, exact, saved->dtype, count);
    result->other = shadow_error(record->other, exact, saved->dtype, count);
    result->now = -1;
    if (d->why)
      snprintf(result->why, sizeof result->why, "%s", d->why);
    else if (run_on_device(d, record, now, result->why, sizeof result->why))
      result->now = shadow_error(now, exact, saved->dtype, count);
  }
  free(exact);
  free(now);
  return ok;
}

static json_t *json_error(double error) {
  return error < 0 ? json_null() : isfinite(error) ? json_real(error) : json_string("infinite");
}

static void print_json(const char *path, const struct shadow_record *record, const struct result *r) {
  json_t *line = json_object();
  json_object_set_new(line, "file", tool_json(path));
  json_object_set_new(line, "symbol", json_string(serve_name(record->kernel)));
  json_object_set_new(line, "other", tool_json(record->other_name));
  json_object_set_new(line, "tolerance", json_real(record->tolerance));
  json_object_set_new(line, "kernel_saved", json_error(r->saved));
  json_object_set_new(line, "other_saved", json_error(r->other));
  json_object_set_new(line, "kernel_now", json_error(r->now));
  json_object_set_new(line, "not_run", r->now < 0 ? tool_json(r->why) : json_null());
  char *text = json_dumps(line, JSON_COMPACT | JSON_PRESERVE_ORDER);
  printf("%s\n", text ? text : "");
  free(text);
  json_decref(line);
}

static void print_line(const char *name, double error, double tolerance) {
  char text[64];
  snprintf(text, sizeof text, "%.3g", error);
  printf("  %-28s ", name);
  tool_print(text, error <= tolerance ? TOOL_GREEN : TOOL_RED, 10);
  printf("%s\n", error <= tolerance ? "" : " more than the tolerance");
}

static void print_text(const char *path, const struct shadow_record *record, const struct result *r) {
  const sgl_jit_tensor *output = &record->tensors[serve_output(record->kernel)];
  tool_print(path, TOOL_PLAIN, 0);
  printf(":\n  %s, output", serve_name(record->kernel));
  for (int i = 0; i < output->ndim; i++)
    printf("%s%lld", i ? " x " : " ", (long long)output->sizes[i]);
  printf("; differed from the ");
  tool_print(record->other_name, TOOL_PLAIN, 0);
  printf("'s by %.3g of its norm, tolerance %.3g. From the reference, computed again:\n", record->error,
         record->tolerance);
  print_line("the kernel's output, saved", r->saved, record->tolerance);
  print_line("the other side's, saved", r->other, record->tolerance);
  if (r->now >= 0)
    print_line("the kernel's output, now", r->now, record->tolerance);
  else
    printf("  %-28s not run: %s\n", "the kernel's output, now", r->why);
}

int tool_replay(int argc, char **argv) {
  static const struct option options[] = {{"json", no_argument, NULL, 'j'}, {0}};
  bool json = false;
  opterr = 0;
  for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
    if (c != 'j')
      tool_usage("replay has no option %s; see sgl-compat replay --help", argv[optind - 1]);
    json = true;
  }
  if (optind == argc)
    tool_usage("replay: a file is needed; see sgl-compat replay --help");
  struct device device = open_device();
  int status = STATUS_OK;
  for (int i = optind; i < argc; i++) {
    struct shadow_record record;
    struct result result = {0};
    char message[1024];
    if (!shadow_load(argv[i], &record, message, sizeof message)) {
      tool_error("%s", message);
      status = STATUS_BAD;
      continue;
    }
    if (replay(&device, &record, &result, message, sizeof message)) {
      (json ? print_json : print_text)(argv[i], &record, &result);
      if (!((result.now < 0 ? result.saved : result.now) <= record.tolerance) || (result.now < 0 && !device.why))
        status = STATUS_BAD;
    } else {
      tool_error("%s: %s", argv[i], message);
      status = STATUS_BAD;
    }
    shadow_record_free(&record);
  }
  return status;
}
