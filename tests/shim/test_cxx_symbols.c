/* The deleted C++ functions: results, errors, and that borrowed tensors stay with the caller. */
#include "tests/shim/world.h"

#include "compat_table.h"

#include <errno.h>

/* The loader may change errno, and here it always does. */
static int runtime_opened;
void *dlopen(const char *file, int mode) {
  runtime_opened += file && strcmp(file, "libstdc++.so.6") == 0;
  static void *(*real)(const char *, int);
  if (!real)
    real = (void *(*)(const char *, int))dlsym(RTLD_NEXT, "dlopen");
  void *handle = real(file, mode);
  errno = 99;
  return handle;
}

struct cxx_call {
  world_three_tensors *function;
  void *output;
  const void *mat_a, *mat_b;
};
static void make_call(void *user) {
  struct cxx_call *call = user;
  call->function(call->output, call->mat_a, call->mat_b);
}
static struct cxx_call prepare(world_three_tensors *function, struct world_operands *operands) {
  return (struct cxx_call){function, &operands->tensor[0], &operands->tensor[1], &operands->tensor[2]};
}
static bool none_deleted(const struct world_operands *operands) {
  return !operands->tensor[0].deleted && !operands->tensor[1].deleted && !operands->tensor[2].deleted;
}
static void quiet(void) {
  EXPECT(sgl_compat_set_warnings(SGL_COMPAT_WARNINGS_OFF, NULL, 0) == SGL_COMPAT_OK);
  EXPECT(sgl_jit_set_backend(SGL_JIT_BACKEND_REFERENCE, NULL, 0) == SGL_JIT_OK);
}

static void computes(const char *fake) {
  EXPECT(world_torch(fake) != NULL);
  quiet();
  struct world_operands operands;
  world_router(&operands);
  struct cxx_call call = prepare(world_cxx_router, &operands);
  errno = 7;
  make_call(&call);
  EXPECT(errno == 7);
  EXPECT(world_router_done(&operands));
  EXPECT(none_deleted(&operands));
  world_fused_a(&operands);
  call = prepare(world_cxx_fused_a, &operands);
  EXPECT(!world_throws(make_call, &call));
  EXPECT(world_fused_a_done(&operands));
  EXPECT(none_deleted(&operands));
}
static void bmm_call(void *user) {
  struct world_bmm *bmm = user;
  struct fake_tensor *t = bmm->tensor;
  world_cxx_bmm(&t[0], &t[1], &t[2], &t[3], &t[4], &t[5], 1000);
}
static void bmm_computes(void) {
  EXPECT(world_torch("fake_torch26") != NULL);
  quiet();
  static struct world_bmm bmm;
  world_bmm(&bmm);
  errno = 7;
  bmm_call(&bmm);
  EXPECT(errno == 7);
  EXPECT(world_bmm_done(&bmm, WORLD_24_BFLOAT16));
  world_bmm(&bmm);
  bmm.tensor[2].dtype = FAKE_FLOAT16;
  EXPECT(!world_throws(bmm_call, &bmm));
  EXPECT(world_bmm_done(&bmm, WORLD_24_FLOAT16));
  for (int i = 0; i < 6; i++)
    EXPECT(!bmm.tensor[i].deleted); /* the caller's temporaries */
}
static void bmm_fails(void) {
  EXPECT(world_torch("fake_torch") != NULL);
  quiet();
  static struct world_bmm bmm;
  static const char *const names[] = {"A", "B", "D", "A_scale", "B_scale", "workspace_buffer"};
  for (int i = 0; i < 6; i++) {
    char part[100];
    world_bmm(&bmm);
    bmm.tensor[i].broken = 1;
    EXPECT(world_throws(bmm_call, &bmm));
    snprintf(part, sizeof part, "bmm_fp8: %s is not a dense tensor", names[i]);
    EXPECT_CONTAINS(world_what, part);
  }
  world_bmm(&bmm);
  bmm.tensor[5].strides[0] = 0; /* 1024 elements, and memory for 256 */
  EXPECT(world_throws(bmm_call, &bmm));
  EXPECT_CONTAINS(world_what, "bmm_fp8: workspace_buffer must be packed");
  world_bmm(&bmm);
  bmm.tensor[1].dtype = FAKE_FLOAT16;
  EXPECT(world_throws(bmm_call, &bmm));
  EXPECT_CONTAINS(world_what, "B must be float8_e4m3fn or float8_e5m2, got float16");
  EXPECT(world_bmm_done(&bmm, 0));
}
static void bmm(void) {
  world_child(bmm_computes);
  world_child(bmm_fails);
}

static void computes_2_6(void) {
  computes("fake_torch26"); /* reading tensors is all that is needed */
}
static void computes_2_14(void) {
  computes("fake_torch");
}
static void works(void) {
  world_child(computes_2_6);
  world_child(computes_2_14);
}

static void fails(void) {
  EXPECT(world_torch("fake_torch") != NULL);
  quiet();
  struct world_operands operands;
  world_router(&operands);
  operands.tensor[2].dtype = FAKE_FLOAT32;
  struct cxx_call call = prepare(world_cxx_router, &operands);
  EXPECT(world_throws(make_call, &call));
  errno = 7;
  EXPECT(world_throws(make_call, &call));
  EXPECT(errno == 7);
  EXPECT_CONTAINS(world_type, "fake_c10_error");
  EXPECT(none_deleted(&operands));
  EXPECT(operands.output[0] == 0.0f);
  operands.tensor[2].broken = 1; /* an undefined tensor */
  EXPECT(world_throws(make_call, &call));
  EXPECT_CONTAINS(world_what, "dsv3_router_gemm: mat_b");
  EXPECT(none_deleted(&operands));
  EXPECT_CONTAINS(world_what, ": the fake says why");
  call.mat_a = NULL;
  EXPECT(world_throws(make_call, &call));
  EXPECT(strcmp(world_what, "dsv3_router_gemm: mat_a is not a dense tensor with data") == 0);
}
static void errors(void) {
  world_child(fails);
}

static void no_torch_then_torch(void) {
  quiet();
  struct world_operands operands;
  world_router(&operands);
  struct cxx_call call = prepare(world_cxx_router, &operands);
  world_throws(make_call, &call);
  errno = 7;
  EXPECT(world_throws(make_call, &call));
  EXPECT(errno == 7);
  EXPECT(runtime_opened == 1); /* a handle for each exception would be a leak */
  EXPECT(strcmp(world_type, "St13runtime_error") == 0);
  EXPECT_CONTAINS(world_what, "dsv3_router_gemm");
  EXPECT_CONTAINS(world_what, "torch");
  EXPECT(operands.output[0] == 0.0f);
  EXPECT(world_torch("fake_torch") != NULL);
  EXPECT(!world_throws(make_call, &call));
  EXPECT(world_router_done(&operands));
}
static void without_torch(void) {
  world_child(no_torch_then_torch);
}

/* --- other definitions -------------------------------------------------------------------------------------------- */

static void expect_forwarded(void *wheel) {
  int *calls = wheel ? (int *)dlsym(wheel, "old_wheel_calls") : NULL;
  EXPECT(calls != NULL);
  if (!calls)
    return;
  struct world_operands operands;
  world_router(&operands);
  struct cxx_call call = prepare(world_cxx_router, &operands);
  errno = 7;
  call.function(call.output, call.mat_a, call.mat_b);
  EXPECT(errno == 7 && *calls == 1);
  *calls = 0;
  EXPECT(world_stderr(make_call, &call)[0] == '\0'); /* no warning */
  EXPECT(*calls == 1 && operands.output[0] == 0.0f);
  call.function = world_cxx_fused_a;
  EXPECT(world_stderr(make_call, &call)[0] == '\0');
  EXPECT(*calls == 101);
  static struct world_bmm bmm;
  EXPECT(world_stderr(bmm_call, &bmm)[0] == '\0');
  EXPECT(*calls == 1101); /* the last argument too */
}
static void wheel_before_the_call(void) {
  EXPECT(world_torch("fake_torch") != NULL);
  expect_forwarded(world_load("fake_old_wheel", "common_ops.abi3.so", RTLD_LOCAL));
}
static void wheel_after_a_call(void) {
  EXPECT(world_torch("fake_torch") != NULL);
  quiet();
  struct world_operands operands;
  world_router(&operands);
  struct cxx_call call = prepare(world_cxx_router, &operands);
  EXPECT(!world_throws(make_call, &call));
  EXPECT(world_router_done(&operands)); /* served here: there was nobody else */
  expect_forwarded(world_load("fake_old_wheel", "common_ops.abi3.so", RTLD_LOCAL));
}
/* A site that was served before the wheel came goes on, until it would fail or another site has found the wheel. */
static void same_site(bool fails_first) {
  EXPECT(world_torch("fake_torch") != NULL);
  quiet();
  struct world_operands operands;
  world_router(&operands);
  struct cxx_call call = prepare(world_cxx_router, &operands);
  EXPECT(!world_throws(make_call, &call));
  void *wheel = world_load("fake_old_wheel", "common_ops.abi3.so", RTLD_LOCAL);
  int *calls = wheel ? (int *)dlsym(wheel, "old_wheel_calls") : NULL;
  memset(operands.output, 0, sizeof operands.output);
  EXPECT(!world_throws(make_call, &call));
  EXPECT(calls && *calls == 0 && world_router_done(&operands));
  if (!calls)
    return;
  if (fails_first) {
    operands.tensor[2].broken = 1;
    errno = 7;
    EXPECT(!world_throws(make_call, &call));
    EXPECT(errno == 7 && *calls == 1);
    operands.tensor[2].broken = 0;
  } else {
    call.function(call.output, call.mat_a, call.mat_b);
    EXPECT(*calls == 1);
  }
  make_call(&call);
  EXPECT(*calls == 2);
}
static void site_that_fails(void) {
  same_site(true);
}
static void another_site(void) {
  same_site(false);
}

static void wheel_without_torch(void) {
  expect_forwarded(world_load("fake_old_wheel", "common_ops.abi3.so", RTLD_GLOBAL));
}
static void old_wheel(void) {
  world_child(wheel_before_the_call);
  world_child(wheel_after_a_call);
  world_child(site_that_fails);
  world_child(another_site);
  world_child(wheel_without_torch);
}

static void copy(void) {
  EXPECT(world_torch("fake_torch") != NULL);
  quiet();
  void *other = world_load("fake_copy_of_us", "libsgl_kernel_compat.so.0", RTLD_LOCAL);
  int *calls = other ? (int *)dlsym(other, "copy_calls") : NULL;
  struct world_operands operands;
  world_router(&operands);
  struct cxx_call call = prepare(world_cxx_router, &operands);
  EXPECT(!world_throws(make_call, &call));
  EXPECT(calls && *calls == 0);
  EXPECT(world_router_done(&operands));
}
static void copy_of_us(void) {
  world_child(copy);
}

/* Every C++ function that the catalog promises is there. */
static void table(void) {
  static const struct {
    const char *name;
    void *function;
  } known[] = {{"bmm_fp8", (void *)world_cxx_bmm},
               {"dsv3_fused_a_gemm", (void *)world_cxx_fused_a},
               {"dsv3_router_gemm", (void *)world_cxx_router}};
  for (unsigned i = 0; i < compat_entries_count; i++) {
    void *address = dlsym(RTLD_DEFAULT, compat_entries[i].mangled);
    CU_ASSERT_PTR_NOT_NULL(address); /* test_native.c calls those that are not here */
    for (int k = 0; k < 3; k++)
      CU_ASSERT(strcmp(compat_entries[i].name, known[k].name) != 0 || address == known[k].function);
  }
}

static const struct unit_test tests[] = {
    {"works", works},         {"bmm", bmm},
    {"errors", errors},       {"without_torch", without_torch},
    {"old_wheel", old_wheel}, {"copy_of_us", copy_of_us},
    {"table", table},
};
UNIT_MAIN("shim.cxx_symbols", tests)
