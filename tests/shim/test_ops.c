/* The operators: registration, and who owns what in a boxed call. */
#include "shim/serve.h"
#include "tests/shim/world.h"

#include "compat_table.h"

#include <errno.h>
#include <pthread.h>

static struct fake_library *find(struct fake_state *state, const char *key, const char *name) {
  for (int i = 0; i < state->libraries_count; i++)
    if (strcmp(state->libraries[i].key, key) == 0 && strcmp(state->libraries[i].name, name) == 0)
      return &state->libraries[i];
  return NULL;
}

static int deleted(const struct fake_state *state) {
  int count = 0;
  for (int i = 0; i < state->libraries_count; i++)
    count += state->libraries[i].deleted;
  return count;
}

/* Operators times fragment and kernels: the supported ones have one more, of the meta device. */
enum { ALL = SERVE_OPERATORS * 3, ALL_JIT = SERVE_COUNT * 4 };

/* --- registration ------------------------------------------------------------------------------------------------- */

static void registers(const char *fake, uint64_t abi_version) {
  struct fake_state *state = world_torch(fake);
  char message[500] = "untouched";
  errno = 7;
  EXPECT(state && state->libraries_count == 0);
  EXPECT(sgl_compat_register_ops(message, sizeof message) == SGL_COMPAT_OK);
  EXPECT(errno == 7);
  EXPECT(state->libraries_count == ALL && deleted(state) == 0);
  static const char *const names[] = {"bmm_fp8", "dsv3_fused_a_gemm", "dsv3_router_gemm"};
  static const char *const schemas[] = {
      "bmm_fp8(Tensor A, Tensor B, Tensor! D, Tensor A_scale, Tensor B_scale, Tensor workspace_buffer, int "
      "cublas_handle) -> ()",
      "dsv3_fused_a_gemm(Tensor! output, Tensor mat_a, Tensor mat_b) -> ()",
      "dsv3_router_gemm(Tensor! output, Tensor mat_a, Tensor mat_b) -> ()"};
  static const char *const keys[] = {"CUDA", "CPU"};
  for (int n = 0; n < 3; n++) {
    int defs = 0;
    for (int i = 0; i < state->libraries_count; i++)
      defs += strcmp(state->libraries[i].schema, schemas[n]) == 0 && strcmp(state->libraries[i].kind, "fragment") == 0;
    EXPECT(defs == 1);
    EXPECT(find(state, "Meta", names[n]) == NULL);
    for (int k = 0; k < 2; k++) {
      struct fake_library *impl = find(state, keys[k], names[n]);
      EXPECT(impl && strcmp(impl->space, "sgl_kernel") == 0 && impl->kernel && impl->abi_version == abi_version);
    }
    EXPECT(sgl_compat_get_op_state(names[n]) == SGL_COMPAT_OP_REGISTERED);
  }
  /* Again, as a whole and one by one: nothing happens. */
  EXPECT(sgl_compat_register_ops(NULL, 0) == SGL_COMPAT_OK);
  EXPECT(sgl_compat_register_op("dsv3_router_gemm", NULL, 0) == SGL_COMPAT_OK);
  EXPECT(state->libraries_count == ALL && deleted(state) == 0);
}
static void registers_2_14(void) {
  registers("fake_torch", UINT64_C(0x020a000000000000));
}
static void registers_2_8(void) {
  registers("fake_torch28", 0);
}
static void registered(void) {
  world_child(registers_2_14);
  world_child(registers_2_8);
}

static void registers_one(void) {
  struct fake_state *state = world_torch("fake_torch");
  EXPECT(sgl_compat_register_op("dsv3_router_gemm", NULL, 0) == SGL_COMPAT_OK);
  EXPECT(state->libraries_count == 3);
  EXPECT(sgl_compat_get_op_state("dsv3_router_gemm") == SGL_COMPAT_OP_REGISTERED);
  EXPECT(sgl_compat_get_op_state("dsv3_fused_a_gemm") == SGL_COMPAT_OP_UNREGISTERED);
  char message[200];
  EXPECT(sgl_compat_register_op("moe_fused_gate", message, sizeof message) == SGL_COMPAT_ERROR_INVALID_ARGUMENT);
  EXPECT(strcmp(message, "sgl_compat_register_op: there is no kernel here for moe_fused_gate, which sgl_kernel has "
                         "dropped in 0.4.5 (#29997): use sglang.kernels.ops.moe.moe_fused_gate.moe_fused_gate (sglang "
                         "0.5.17 and newer)") == 0);
  EXPECT(sgl_compat_register_op("nothing", message, sizeof message) == SGL_COMPAT_ERROR_INVALID_ARGUMENT);
  EXPECT(strcmp(message, "sgl_compat_register_op: no operator \"nothing\" here; sgl_compat_op_name lists them") == 0);
  EXPECT(sgl_compat_register_op(NULL, message, sizeof message) == SGL_COMPAT_ERROR_INVALID_ARGUMENT);
  EXPECT(sgl_compat_get_op_state("moe_fused_gate") == SGL_COMPAT_OP_UNREGISTERED);
  EXPECT(sgl_compat_get_op_state(NULL) == SGL_COMPAT_OP_UNREGISTERED);
  EXPECT(state->libraries_count == 3);
}
static void one(void) {
  world_child(registers_one);
}

/* The supported operators: whatever an old wheel has, and independent of the deleted ones. */
static void registers_jit(void) {
  struct fake_state *state = world_torch("fake_torch");
  EXPECT(sgl_compat_register_jit_ops(NULL, 0) == SGL_COMPAT_OK);
  EXPECT(state->libraries_count == ALL_JIT && deleted(state) == 0);
  for (int i = 0; i < state->libraries_count; i++)
    EXPECT(strcmp(state->libraries[i].space, "sgl_kernel_jit") == 0);
  EXPECT(sgl_compat_register_jit_ops(NULL, 0) == SGL_COMPAT_OK);
  EXPECT(state->libraries_count == ALL_JIT);
  EXPECT(sgl_compat_get_op_state("dsv3_router_gemm") == SGL_COMPAT_OP_UNREGISTERED);
  state->defined_before = 1;
  EXPECT(sgl_compat_register_ops(NULL, 0) == SGL_COMPAT_OK);
  EXPECT(sgl_compat_get_op_state("dsv3_router_gemm") == SGL_COMPAT_OP_ALREADY_DEFINED);
}
static void jit_namespace(void) {
  world_child(registers_jit);
}

static void old_wheel_first(void) {
  struct fake_state *state = world_torch("fake_torch");
  state->defined_before = 1;
  EXPECT(sgl_compat_register_ops(NULL, 0) == SGL_COMPAT_OK);
  EXPECT(sgl_compat_get_op_state("dsv3_router_gemm") == SGL_COMPAT_OP_ALREADY_DEFINED);
  EXPECT(sgl_compat_get_op_state("dsv3_fused_a_gemm") == SGL_COMPAT_OP_ALREADY_DEFINED);
  EXPECT(state->libraries_count == SERVE_OPERATORS); /* fragments, no kernel */
  for (int i = 0; i < state->libraries_count; i++)
    EXPECT(strcmp(state->libraries[i].kind, "fragment") == 0 && state->libraries[i].deleted == 1);
  EXPECT(sgl_compat_register_ops(NULL, 0) == SGL_COMPAT_OK);
  EXPECT(state->libraries_count == SERVE_OPERATORS && deleted(state) == SERVE_OPERATORS);
}
static void already_defined(void) {
  world_child(old_wheel_first);
}

static void refused(void) {
  struct fake_state *state = world_torch("fake_torch");
  char message[500];
  state->fail_fragment = 1;
  EXPECT(sgl_compat_register_op("dsv3_router_gemm", message, sizeof message) == SGL_COMPAT_ERROR_REGISTRATION);
  EXPECT_CONTAINS(message, ": the fake says why");
  EXPECT(state->libraries_count == 0);
  state->fail_fragment = 0;
  state->fail_impl_after = 2; /* the CPU kernel */
  EXPECT(sgl_compat_register_op("dsv3_router_gemm", message, sizeof message) == SGL_COMPAT_ERROR_REGISTRATION);
  EXPECT_CONTAINS(message, "CPU");
  EXPECT_CONTAINS(message, "dsv3_router_gemm");
  EXPECT_CONTAINS(message, "the fake says why");
  EXPECT(state->libraries_count == 3);
  for (int i = 0; i < state->libraries_count; i++)
    EXPECT(state->libraries[i].deleted == 1); /* taken back as a whole */
  EXPECT(sgl_compat_get_op_state("dsv3_router_gemm") == SGL_COMPAT_OP_UNREGISTERED);
  EXPECT(sgl_compat_register_op("dsv3_router_gemm", message, sizeof message) == SGL_COMPAT_OK); /* tried once more */
  EXPECT(sgl_compat_get_op_state("dsv3_router_gemm") == SGL_COMPAT_OP_REGISTERED);
}
static void refused_without_a_word(void) {
  struct fake_state *state = world_torch("fake_torch28");
  char message[500];
  state->fail_impl_after = 1;
  EXPECT(sgl_compat_register_op("dsv3_router_gemm", message, sizeof message) == SGL_COMPAT_ERROR_REGISTRATION);
  EXPECT(strcmp(message, "torch refuses the CUDA kernel of sgl_kernel::dsv3_router_gemm") == 0);
}
static void first_failure_is_told(void) {
  struct fake_state *state = world_torch("fake_torch");
  char message[500];
  state->fail_impl_after = 3;
  EXPECT(sgl_compat_register_jit_ops(message, sizeof message) == SGL_COMPAT_ERROR_REGISTRATION);
  EXPECT_CONTAINS(message, "Meta");
  EXPECT_CONTAINS(message, "bmm_fp8");
  EXPECT(find(state, "Meta", "dsv3_router_gemm") != NULL);
}
static void failures(void) {
  world_child(refused);
  world_child(refused_without_a_word);
  world_child(first_failure_is_told);
}

static void no_torch_then_torch(void) {
  char message[500];
  EXPECT(sgl_compat_register_ops(message, sizeof message) == SGL_COMPAT_ERROR_NO_TORCH);
  EXPECT_CONTAINS(message, "import torch");
  EXPECT(sgl_compat_register_ops(NULL, 0) == SGL_COMPAT_ERROR_NO_TORCH);
  char small[8];
  EXPECT(sgl_compat_register_ops(small, sizeof small) == SGL_COMPAT_ERROR_NO_TORCH && strlen(small) == 7);
  EXPECT(world_torch("fake_torch") != NULL);
  EXPECT(sgl_compat_register_ops(message, sizeof message) == SGL_COMPAT_OK);
}
static void torch_is_very_old(void) {
  EXPECT(world_torch("fake_torch23") != NULL);
  char message[500];
  EXPECT(sgl_compat_register_ops(message, sizeof message) == SGL_COMPAT_ERROR_TORCH_TOO_OLD);
  EXPECT_CONTAINS(message, "the torch in this process is too old, 2.6 is needed: /");
  EXPECT_CONTAINS(message, "/libtorch_cpu.so has no function aoti_torch_check");
}
static void torch_is_old(void) {
  EXPECT(world_torch("fake_torch26") != NULL);
  char message[500];
  EXPECT(sgl_compat_register_ops(message, sizeof message) == SGL_COMPAT_ERROR_TORCH_TOO_OLD);
  EXPECT_CONTAINS(message, "2.7");
}
static void unavailable(void) {
  world_child(no_torch_then_torch);
  world_child(torch_is_old);
  world_child(torch_is_very_old);
}

static pthread_barrier_t start;
static void *register_all(void *unused) {
  (void)unused;
  pthread_barrier_wait(&start);
  return (void *)(intptr_t)sgl_compat_register_ops(NULL, 0);
}
static void many_threads(void) {
  enum { THREADS = 16 };
  struct fake_state *state = world_torch("fake_torch");
  pthread_t thread[THREADS];
  pthread_barrier_init(&start, NULL, THREADS);
  for (int i = 0; i < THREADS; i++)
    pthread_create(&thread[i], NULL, register_all, NULL);
  for (int i = 0; i < THREADS; i++) {
    void *status;
    pthread_join(thread[i], &status);
    EXPECT(status == NULL);
  }
  EXPECT(state->libraries_count == ALL && deleted(state) == 0);
}
static void threads(void) {
  world_child(many_threads);
}

/* --- calls -------------------------------------------------------------------------------------------------------- */

struct boxed_call {
  fake_boxed *kernel;
  uint64_t stack[7], arguments, results;
};
static void make_call(void *user) {
  struct boxed_call *call = user;
  call->kernel(call->stack, call->arguments, call->results);
}
static struct boxed_call prepare(struct fake_state *state, const char *key, const char *name,
                                 struct world_operands *operands) {
  struct fake_library *library = find(state, key, name);
  EXPECT(library != NULL);
  struct boxed_call call = {.kernel = library ? library->kernel : NULL, .arguments = 3, .results = 0};
  for (int i = 0; i < 3; i++)
    call.stack[i] = (uint64_t)(uintptr_t)&operands->tensor[i];
  return call;
}
static bool each_deleted(const struct world_operands *operands, int times) {
  return operands->tensor[0].deleted == times && operands->tensor[1].deleted == times &&
         operands->tensor[2].deleted == times;
}
static struct fake_state *ready(void) {
  struct fake_state *state = world_torch("fake_torch");
  EXPECT(sgl_compat_register_ops(NULL, 0) == SGL_COMPAT_OK);
  EXPECT(sgl_compat_register_jit_ops(NULL, 0) == SGL_COMPAT_OK); /* they have the Meta kernels */
  EXPECT(sgl_compat_set_warnings(SGL_COMPAT_WARNINGS_OFF, NULL, 0) == SGL_COMPAT_OK);
  EXPECT(sgl_jit_set_backend(SGL_JIT_BACKEND_REFERENCE, NULL, 0) == SGL_JIT_OK);
  return state;
}

static void computes(void) {
  struct fake_state *state = ready();
  struct world_operands operands;
  world_router(&operands);
  struct boxed_call call = prepare(state, "CPU", "dsv3_router_gemm", &operands);
  errno = 7;
  EXPECT(!world_throws(make_call, &call));
  EXPECT(errno == 7);
  EXPECT(world_router_done(&operands));
  EXPECT(each_deleted(&operands, 1));
  world_fused_a(&operands);
  call = prepare(state, "CPU", "dsv3_fused_a_gemm", &operands);
  EXPECT(!world_throws(make_call, &call));
  EXPECT(world_fused_a_done(&operands));
  EXPECT(each_deleted(&operands, 1));
}

static struct boxed_call prepare_bmm(struct fake_state *state, const char *key, struct world_bmm *bmm) {
  struct fake_library *library = find(state, key, "bmm_fp8");
  EXPECT(library != NULL);
  struct boxed_call call = {.kernel = library ? library->kernel : NULL, .arguments = 7, .results = 0};
  world_bmm(bmm);
  for (int i = 0; i < 6; i++)
    call.stack[i] = (uint64_t)(uintptr_t)&bmm->tensor[i];
  call.stack[6] = 0xdeadbeef; /* a handle, which nobody may read */
  return call;
}
static bool each_bmm_deleted(const struct world_bmm *bmm, int times) {
  for (int i = 0; i < 6; i++)
    if (bmm->tensor[i].deleted != times)
      return false;
  return true;
}
static void bmm_computes(void) {
  struct fake_state *state = ready();
  static struct world_bmm bmm;
  struct boxed_call call = prepare_bmm(state, "CPU", &bmm);
  errno = 7;
  EXPECT(!world_throws(make_call, &call));
  EXPECT(errno == 7);
  EXPECT(world_bmm_done(&bmm, WORLD_24_BFLOAT16));
  EXPECT(each_bmm_deleted(&bmm, 1));
  call = prepare_bmm(state, "Meta", &bmm);
  EXPECT(!world_throws(make_call, &call));
  EXPECT(world_bmm_done(&bmm, 0) && each_bmm_deleted(&bmm, 1));
  call = prepare_bmm(state, "CPU", &bmm);
  bmm.tensor[4].dtype = FAKE_BFLOAT16;
  EXPECT(world_throws(make_call, &call));
  EXPECT_CONTAINS(world_what, "bmm_fp8: B_scale must be float32");
  EXPECT(world_bmm_done(&bmm, 0) && each_bmm_deleted(&bmm, 1));
  for (int key = 0; key < 2; key++) { /* the operator of before 0.3.16.post6 had eight arguments */
    call = prepare_bmm(state, key ? "Meta" : "CPU", &bmm);
    call.arguments = 8;
    EXPECT(world_throws(make_call, &call) == !key);
    if (!key)
      EXPECT_CONTAINS(world_what, "8 arguments for 0 results, not 7 for 0");
    EXPECT(each_bmm_deleted(&bmm, 0));
  }
}
static void bmm_workspace_elsewhere(void) {
  struct fake_state *state = ready();
  static struct world_bmm bmm;
  void *cuda = world_load("fake_torch_cuda", "libtorch_cuda.so", RTLD_LOCAL);
  void (*use)(struct fake_state *) = cuda ? (void (*)(struct fake_state *))dlsym(cuda, "fake_cuda_use") : NULL;
  if (use)
    use(state);
  struct boxed_call call = prepare_bmm(state, "CUDA", &bmm);
  for (int i = 0; i < 6; i++)
    bmm.tensor[i].device_type = FAKE_CUDA, bmm.tensor[i].device_index = i == 5 ? 4 : 3;
  EXPECT(world_throws(make_call, &call));
  EXPECT_CONTAINS(world_what, "bmm_fp8: workspace_buffer must be on cuda:3 like A");
  EXPECT(state->streams_asked == 1 && state->stream_device == 3); /* A's */
  EXPECT(each_bmm_deleted(&bmm, 1));
}

static void kernel_refuses(void) {
  struct fake_state *state = ready();
  struct world_operands operands;
  world_router(&operands);
  operands.tensor[1].dtype = FAKE_FLOAT16;
  struct boxed_call call = prepare(state, "CPU", "dsv3_router_gemm", &operands);
  errno = 7;
  EXPECT(world_throws(make_call, &call));
  EXPECT(errno == 7);
  EXPECT_CONTAINS(world_type, "fake_c10_error");
  EXPECT(world_what[0] != '\0');
  EXPECT(each_deleted(&operands, 1));
  EXPECT(operands.output[0] == 0.0f);
}

static void no_reference_backend(void) {
  struct fake_state *state = ready();
  EXPECT(sgl_jit_set_backend(SGL_JIT_BACKEND_AUTO, NULL, 0) == SGL_JIT_OK);
  struct world_operands operands;
  world_router(&operands);
  struct boxed_call call = prepare(state, "CPU", "dsv3_router_gemm", &operands);
  EXPECT(world_throws(make_call, &call));
  EXPECT_CONTAINS(world_what, "CPU");
  EXPECT(each_deleted(&operands, 1));
}

static void cannot_be_read(void) {
  struct fake_state *state = ready();
  static const char *const names[] = {"output", "mat_a", "mat_b"};
  for (int i = 0; i < 3; i++) {
    struct world_operands operands;
    world_router(&operands);
    operands.tensor[i].broken = 1;
    struct boxed_call call = prepare(state, "CPU", "dsv3_router_gemm", &operands);
    EXPECT(world_throws(make_call, &call));
    EXPECT_CONTAINS(world_what, names[i]);
    EXPECT_CONTAINS(world_what, "the fake says why");
    EXPECT(each_deleted(&operands, 1));
  }
}

static void stream_of_mat_a(void) {
  struct fake_state *state = ready();
  struct world_operands operands;
  world_router(&operands);
  for (int i = 0; i < 3; i++)
    operands.tensor[i].device_type = FAKE_CUDA, operands.tensor[i].device_index = 5;
  struct boxed_call call = prepare(state, "CUDA", "dsv3_router_gemm", &operands);
  EXPECT(world_throws(make_call, &call)); /* this torch has no CUDA part */
  EXPECT_CONTAINS(world_what, "cuda:5");
  EXPECT(each_deleted(&operands, 1));
  void *cuda = world_load("fake_torch_cuda", "libtorch_cuda.so.2.14", RTLD_LOCAL);
  void (*use)(struct fake_state *) = cuda ? (void (*)(struct fake_state *))dlsym(cuda, "fake_cuda_use") : NULL;
  if (use)
    use(state);
  for (int i = 0; i < 3; i++)
    operands.tensor[i].deleted = 0;
  EXPECT(
      world_throws(make_call, &call)); /* the reference backend takes no CUDA tensors: the call got past the stream */
  EXPECT(state->streams_asked == 1 && state->stream_device == 5);
  EXPECT(strstr(world_what, "stream of") == NULL);
  EXPECT(each_deleted(&operands, 1));
}

static void meta_does_nothing(void) {
  struct fake_state *state = ready();
  struct world_operands operands;
  world_router(&operands);
  struct boxed_call call = prepare(state, "Meta", "dsv3_router_gemm", &operands);
  errno = 7;
  EXPECT(!world_throws(make_call, &call));
  EXPECT(errno == 7);
  EXPECT(operands.output[0] == 0.0f);
  EXPECT(each_deleted(&operands, 1));
}

static void other_calling_convention(void) {
  struct fake_state *state = ready();
  struct world_operands operands;
  world_router(&operands);
  struct boxed_call call = prepare(state, "CPU", "dsv3_router_gemm", &operands);
  call.arguments = 4;
  EXPECT(world_throws(make_call, &call));
  EXPECT_CONTAINS(world_what, "4 arguments");
  EXPECT(each_deleted(&operands, 0)); /* what they are is not known */
}

static void calls_work(void) {
  world_child(computes);
  world_child(bmm_computes);
  world_child(bmm_workspace_elsewhere);
  world_child(meta_does_nothing);
}
static void calls_fail(void) {
  world_child(kernel_refuses);
  world_child(no_reference_backend);
  world_child(cannot_be_read);
  world_child(other_calling_convention);
}
static void stream(void) {
  world_child(stream_of_mat_a);
}

static sgl_compat_warning_action refuse(const sgl_compat_warning *warning, void *user) {
  (void)warning, (void)user;
  return SGL_COMPAT_WARNING_RAISE;
}
static void warning_raises(void) {
  struct fake_state *state = ready();
  EXPECT(sgl_compat_set_warnings(SGL_COMPAT_WARNINGS_ONCE, NULL, 0) == SGL_COMPAT_OK);
  sgl_compat_set_warning_hook(refuse, NULL);
  struct world_operands operands;
  world_router(&operands);
  struct boxed_call call = prepare(state, "CPU", "dsv3_router_gemm", &operands);
  EXPECT(world_throws(make_call, &call));
  EXPECT_CONTAINS(world_what, "the operator torch.ops.sgl_kernel.dsv3_router_gemm is deprecated");
  EXPECT(!strstr(world_what, "warning") && !strstr(world_what, "called from"));
  EXPECT(each_deleted(&operands, 1));
  EXPECT(operands.output[0] == 0.0f);
}
static void raising_hook(void) {
  world_child(warning_raises);
}

/* --- the table ---------------------------------------------------------------------------------------------------- */

/* Every operator that the catalog promises and that returns nothing is served here, and nothing else. */
static void table(void) {
  size_t count = 0;
  while (sgl_compat_op_name(count))
    count++;
  CU_ASSERT_PTR_NULL(sgl_compat_op_name(count));
  size_t promised = 0;
  for (unsigned i = 0; i < compat_operators_count; i++) {
    if (!compat_symbols[compat_operators[i].symbol].served || !strstr(compat_operators[i].schema, "-> ()"))
      continue;
    promised++;
    bool found = false;
    for (size_t n = 0; n < count; n++)
      found = found || strcmp(sgl_compat_op_name(n), compat_operators[i].name) == 0;
    CU_ASSERT(found);
  }
  CU_ASSERT_EQUAL(count, promised);
}

static const struct unit_test tests[] = {
    {"registered", registered},
    {"one", one},
    {"jit_namespace", jit_namespace},
    {"already_defined", already_defined},
    {"failures", failures},
    {"unavailable", unavailable},
    {"threads", threads},
    {"calls_work", calls_work},
    {"calls_fail", calls_fail},
    {"stream", stream},
    {"raising_hook", raising_hook},
    {"table", table},
};
UNIT_MAIN("shim.ops", tests)
