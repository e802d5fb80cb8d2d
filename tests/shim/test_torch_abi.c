/* Finding torch's C functions. */
#include "shim/torch_abi.h"

#include "tests/shim/world.h"

#include <link.h>
#include <pthread.h>

static void without_torch(void) {
  EXPECT(torch_abi_get() == NULL);
  EXPECT(torch_abi_get() == NULL);
}
static void absent(void) {
  world_child(without_torch);
}

static void torch_comes_later(void) {
  EXPECT(torch_abi_get() == NULL);
  EXPECT(world_torch("fake_torch") != NULL);
  const struct torch_abi *torch = torch_abi_get();
  EXPECT(torch != NULL);
  EXPECT(torch && torch->dtype_bfloat16 == FAKE_BFLOAT16 && torch->dtype_float32 == FAKE_FLOAT32);
  EXPECT(torch && torch->device_type_cpu == FAKE_CPU && torch->device_type_cuda == FAKE_CUDA);
  EXPECT(torch_abi_get() == torch);
}
static void later(void) {
  world_child(torch_comes_later);
}

static void found_in(const char *file, int mode) {
  void *handle = world_load("fake_torch", file, mode);
  const struct torch_abi *torch = torch_abi_get();
  EXPECT(torch != NULL);
  EXPECT(handle && torch && (void *)torch->check == dlsym(handle, "aoti_torch_check"));
}
static void plain_name(void) {
  found_in("libtorch_cpu.so", RTLD_LOCAL);
}
static void versioned_name(void) {
  found_in("libtorch_cpu.so.2.14", RTLD_LOCAL);
}
static void global_scope(void) {
  found_in("whatever.so", RTLD_GLOBAL);
}
static void other_name(void) {
  EXPECT(world_load("fake_torch", "libtorch_cpu_of_mine.so", RTLD_LOCAL) != NULL);
  EXPECT(torch_abi_get() == NULL);
}
/* Another library with functions of these names, found first by those who ask the global scope. */
static void the_name_decides(void) {
  EXPECT(world_load("fake_torch26", "libaoti_runtime.so", RTLD_GLOBAL) != NULL);
  found_in("libtorch_cpu.so.2.14", RTLD_LOCAL);
}
static void names(void) {
  world_child(the_name_decides);
  world_child(plain_name);
  world_child(versioned_name);
  world_child(global_scope);
  world_child(other_name);
}

/* Not taken, and not held: it goes when its owner lets it go. */
static void torch_2_3(void) {
  void *handle = world_load("fake_torch23", "libtorch_cpu.so", RTLD_LOCAL);
  struct link_map *module;
  char path[4200];
  EXPECT(handle && dlinfo(handle, RTLD_DI_LINKMAP, &module) == 0);
  snprintf(path, sizeof path, "%s", module->l_name);
  EXPECT(torch_abi_get() == NULL && torch_abi_get() == NULL);
  EXPECT(dlopen(path, RTLD_LAZY | RTLD_NOLOAD) == handle);
  dlclose(handle);
  dlclose(handle);
  EXPECT(dlopen(path, RTLD_LAZY | RTLD_NOLOAD) == NULL);
}
static void torch_absent(void) {
  struct torch_abi_why why = torch_abi_why();
  EXPECT(why.absence == TORCH_NONE);
  EXPECT_CONTAINS(why.text, "no torch is loaded in this process");
  EXPECT(world_load("fake_old_wheel", "libtorch_cpu.so.1", RTLD_LOCAL) != NULL); /* a torch that knows nothing */
  EXPECT(torch_abi_get() == NULL);
  why = torch_abi_why();
  EXPECT(why.absence == TORCH_OLD);
  EXPECT_CONTAINS(why.text, "/libtorch_cpu.so.1 has no function aoti_torch_get_data_ptr");
}
static void torch_2_6(void) {
  EXPECT(world_torch("fake_torch26") != NULL);
  const struct torch_abi *torch = torch_abi_get();
  EXPECT(torch && torch->get_sizes && torch->check);
  EXPECT(torch && !torch->library_def && !torch->library_impl && !torch->library_init_fragment &&
         !torch->library_init_impl && !torch->delete_library_object && !torch->library_impl_versioned);
  EXPECT(torch && torch_abi_what(torch).text[0] == '\0');
}
static void torch_2_8(void) {
  EXPECT(world_torch("fake_torch28") != NULL);
  const struct torch_abi *torch = torch_abi_get();
  EXPECT(torch && torch->library_def && torch->library_impl && !torch->library_impl_versioned);
  EXPECT(torch && torch_abi_what(torch).text[0] == '\0');
}
static void torch_2_14(void) {
  EXPECT(world_torch("fake_torch") != NULL);
  const struct torch_abi *torch = torch_abi_get();
  EXPECT(torch && torch->library_def && torch->library_impl_versioned);
  EXPECT(torch && strcmp(torch_abi_what(torch).text, ": the fake says why") == 0);
}
static void versions(void) {
  world_child(torch_absent);
  world_child(torch_2_3);
  world_child(torch_2_6);
  world_child(torch_2_8);
  world_child(torch_2_14);
}

static void streams(void) {
  struct fake_state *state = world_torch("fake_torch");
  void *stream = NULL;
  const struct torch_abi *torch = torch_abi_get();
  EXPECT(torch && !torch_abi_cuda_stream(3, &stream)); /* a torch without CUDA */
  EXPECT(strcmp(torch_abi_no_stream(torch).text, ": this process has no libtorch_cuda.so") == 0);
  void *rocm = world_load("fake_copy_of_us", "libtorch_hip.so", RTLD_LOCAL);
  EXPECT(rocm && !torch_abi_cuda_stream(3, &stream));
  EXPECT(strcmp(torch_abi_no_stream(torch).text,
                ": this process has no libtorch_cuda.so, its torch is built for ROCm") == 0);
  void *old = world_load("fake_old_wheel", "libtorch_cuda.so", RTLD_LOCAL);
  EXPECT(old && !torch_abi_cuda_stream(3, &stream));
  EXPECT_CONTAINS(torch_abi_no_stream(torch).text,
                  "/libtorch_cuda.so has no function aoti_torch_get_current_cuda_stream");
  dlclose(old);
  void *cuda = world_load("fake_torch_cuda", "libtorch_cuda.so", RTLD_LOCAL);
  void (*use)(struct fake_state *) = cuda ? (void (*)(struct fake_state *))dlsym(cuda, "fake_cuda_use") : NULL;
  EXPECT(use != NULL);
  if (!use)
    return;
  use(state);
  EXPECT(torch_abi_cuda_stream(3, &stream) && stream == (void *)0x5 && state->stream_device == 3);
  state->stream_fails = 1;
  EXPECT(!torch_abi_cuda_stream(3, &stream));
  EXPECT(strcmp(torch_abi_no_stream(torch).text, ": the fake says why") == 0);
}
static void stream(void) {
  world_child(streams);
}

static pthread_barrier_t start;
static void *resolve(void *unused) {
  (void)unused;
  pthread_barrier_wait(&start);
  return (void *)torch_abi_get();
}
static void many_threads(void) {
  enum { THREADS = 16 };
  EXPECT(world_torch("fake_torch") != NULL);
  pthread_t thread[THREADS];
  void *table[THREADS];
  pthread_barrier_init(&start, NULL, THREADS);
  for (int i = 0; i < THREADS; i++)
    pthread_create(&thread[i], NULL, resolve, NULL);
  for (int i = 0; i < THREADS; i++) {
    pthread_join(thread[i], &table[i]);
    EXPECT(table[i] != NULL && table[i] == table[0]);
  }
}
static void threads(void) {
  world_child(many_threads);
}

static const struct unit_test tests[] = {
    {"absent", absent},     {"later", later},   {"names", names},
    {"versions", versions}, {"stream", stream}, {"threads", threads},
};
UNIT_MAIN("shim.torch_abi", tests)
