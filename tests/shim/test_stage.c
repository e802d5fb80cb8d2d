/* What a policy does to calls: stages and the kill switch, for C++ functions and operators, with an old library in the
 * process and without one. */
#include "shim/policy.h"

#include "tests/jit/fakes.h"
#include "tests/shim/world.h"

static struct world_operands operands;
static struct fake_state *state;

/* What a call does, in one word, since a process tries many. */
static const char *outcome(void (*call)(void *), int *old_calls) {
  static char text[3000];
  int before = old_calls ? *old_calls : 0;
  world_router(&operands);
  if (world_throws(call, NULL))
    snprintf(text, sizeof text, "%s", world_what);
  else
    strcpy(text, old_calls && *old_calls == before + 1 ? "old" : world_router_done(&operands) ? "kernel" : "nothing");
  return text;
}

static void cxx(void *unused) {
  (void)unused;
  world_cxx_router(&operands.tensor[0], &operands.tensor[1], &operands.tensor[2]);
}

static void boxed(void *unused) {
  (void)unused;
  for (int i = 0; i < state->libraries_count; i++)
    if (strcmp(state->libraries[i].key, "CPU") == 0 && strcmp(state->libraries[i].name, "dsv3_router_gemm") == 0 &&
        strcmp(state->libraries[i].space, "sgl_kernel") == 0) {
      uint64_t stack[3] = {(uintptr_t)&operands.tensor[0], (uintptr_t)&operands.tensor[1],
                           (uintptr_t)&operands.tensor[2]};
      state->libraries[i].kernel(stack, 3, 0);
      return;
    }
}

static void say(void *text) {
  EXPECT(sgl_compat_policy_set(text, "test", NULL, 0) == SGL_COMPAT_OK);
}

/* Sets a policy, makes a call, and compares what it does and says. */
static void expect(const char *policy, void (*call)(void *), int *old_calls, const char *does, int lines) {
  say((void *)(uintptr_t)policy);
  FILE *file = tmpfile();
  int saved = dup(2);
  dup2(fileno(file), 2);
  const char *does_now = outcome(call, old_calls);
  dup2(saved, 2);
  close(saved);
  char said[4000];
  rewind(file);
  said[fread(said, 1, sizeof said - 1, file)] = '\0';
  fclose(file);
  if (!strstr(does_now, does) || world_lines(said) != lines) {
    world_failures++;
    fprintf(stderr, "  %s: \"%s\" instead of \"%s\", says: %s\n", policy, does_now, does, said);
  }
}

static void begin(void) {
  state = world_torch("fake_torch");
  EXPECT(state != NULL);
  EXPECT(sgl_jit_set_backend(SGL_JIT_BACKEND_REFERENCE, NULL, 0) == SGL_JIT_OK);
  EXPECT(sgl_compat_register_ops(NULL, 0) == SGL_COMPAT_OK);
}

#define NAME "dsv3_router_gemm"

static void stages_of(void (*call)(void *), const char *what) {
  char error[200], tombstone[200];
  snprintf(error, sizeof error, "the %s" NAME " is deprecated", what);
  expect(NAME " = silent", call, NULL, "kernel", 0);
  expect(NAME " = error", call, NULL, error, 0);
  expect(NAME " = error", call, NULL, "; its stage is error (test)", 0);
  EXPECT(operands.output[0] == 0.0f); /* and nothing was computed */
  snprintf(tombstone, sizeof tombstone, "; its stage is tombstone (test)");
  expect(NAME " = tombstone", call, NULL, tombstone, 0);
  expect("bmm_fp8 = tombstone; " NAME " = warn", call, NULL, "kernel", 1);
  expect(NAME " = warn", call, NULL, "kernel", 0); /* the site has warned */
  expect("deny " NAME, call, NULL, "; its stage is error (test: deny)", 0);
  expect("extend " NAME " until 2999-01-01 reason r", call, NULL, "kernel", 0);
  expect("extend " NAME " until 2001-01-01 reason r", call, NULL, "the extension until 2001-01-01 has expired: r", 0);
}
static void cxx_stages(void) {
  begin();
  stages_of(cxx, "C++ function ");
}
static void operator_stages(void) {
  begin();
  stages_of(boxed, "operator torch.ops.sgl_kernel.");
  for (int i = 0; i < 3; i++)
    EXPECT(operands.tensor[i].deleted == 1); /* also of a call that fails */
}
static void stages(void) {
  world_child(cxx_stages);
  world_child(operator_stages);
}

/* An old library: forwarded in silence, unless a stage is set. */
static void old_stages(void) {
  begin();
  void *wheel = world_load("fake_old_wheel", "common_ops.abi3.so", RTLD_LOCAL);
  int *calls = wheel ? (int *)dlsym(wheel, "old_wheel_calls") : NULL;
  EXPECT(calls != NULL);
  if (!calls)
    return;
  expect("bmm_fp8 = error", cxx, calls, "old", 0);
  expect(NAME " = warn", cxx, calls, "old", 1);
  expect(NAME " = warn", cxx, calls, "old", 0);
  expect(NAME " = error", cxx, calls, "; its stage is error (test)", 0);
  expect(NAME " = silent", cxx, calls, "old", 0);
  expect("serve " NAME " = jit", cxx, calls, "kernel", 0);
  expect("serve " NAME " = old", cxx, calls, "old", 0);
  expect("serve " NAME " = reference", cxx, calls, "kernel", 0);
  EXPECT(sgl_jit_set_backend(SGL_JIT_BACKEND_AUTO, NULL, 0) == SGL_JIT_OK);
  expect("serve " NAME " = jit", cxx, calls, "must be on a CUDA device", 0);
  expect("serve " NAME " = reference", cxx, calls, "kernel", 0);
  expect("serve " NAME " = auto", cxx, calls, "old", 0);
}

static void without_old(void) {
  begin();
  say("* = silent");
  expect("serve " NAME " = old", cxx, NULL, "the policy serves it by an old library only (test), and none is loaded",
         0);
  expect("serve " NAME " = old", boxed, NULL, "the policy serves it by an old library only (test)", 0);
  expect("serve " NAME " = auto", boxed, NULL, "kernel", 0);
  void *wheel = world_load("fake_old_wheel", "common_ops.abi3.so", RTLD_LOCAL);
  int *calls = wheel ? (int *)dlsym(wheel, "old_wheel_calls") : NULL;
  expect("serve " NAME " = old", cxx, calls, "old", 0); /* it may come late, also for a site that has been here */
}

static void kill_switch(void) {
  world_child(old_stages);
  world_child(without_old);
}

/* The reference for tensors on a device: copied there and back, on the call's stream, not while that is captured. */
static void on_a_device(void) {
  char path[4300];
  snprintf(path, sizeof path, "%s/../jit/fake_cuda.so", world_folder());
  void *cuda = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
  snprintf(path, sizeof path, "%s/fake_torch_cuda.so", world_folder());
  void *torch_cuda = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
  EXPECT(cuda && torch_cuda);
  begin();
  if (!cuda || !torch_cuda)
    return;
  ((void (*)(struct fake_state *))dlsym(torch_cuda, "fake_cuda_use"))(state);
  struct fake_cuda *fake = (struct fake_cuda *)dlsym(cuda, "fake_cuda");
  ((fake_cuda_context_function *)dlsym(cuda, "fake_cuda_context"))(0, 1);
  say("* = silent; serve * = reference");
  world_router(&operands);
  for (int i = 0; i < 3; i++) {
    operands.tensor[i].device_type = FAKE_CUDA;
    operands.tensor[i].device_index = 0;
  }
  EXPECT(!world_throws(cxx, NULL));
  EXPECT(world_router_done(&operands) && state->streams_asked == 1);
  memset(operands.output, 0, sizeof operands.output);
  fake->capturing = 1;
  EXPECT(world_throws(cxx, NULL));
  EXPECT_CONTAINS(world_what, "captur");
  EXPECT(operands.output[0] == 0.0f);
}
static void reference(void) {
  world_child(on_a_device);
}

static const struct unit_test tests[] = {
    {"stages", stages},
    {"kill_switch", kill_switch},
    {"reference", reference},
};
UNIT_MAIN("shim.stage", tests)
