// A libtorch_cpu.so in which every call is counted and changes errno. FAKE_TORCH says which release it plays: 23 cannot
// throw yet, 26 has no registration from C, 28 has it, 214 has the versioned entry and the words of the last failure too.
#include "tests/shim/fake_torch.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <unistd.h>

#ifndef FAKE_TORCH
#define FAKE_TORCH 214
#endif

static fake_state state;

// Not std::runtime_error itself, so that a test can tell who threw.
struct fake_c10_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

static fake_tensor *asked(void *handle) {
  errno = 99;
  fake_tensor *tensor = static_cast<fake_tensor *>(handle);
  return tensor->broken || tensor->deleted ? nullptr : tensor;
}

#define QUESTION(name, type, answer)                                                                                   \
  extern "C" int32_t aoti_torch_get_##name(void *handle, type *result) {                                               \
    fake_tensor *tensor = asked(handle);                                                                               \
    if (!tensor)                                                                                                       \
      return 1;                                                                                                        \
    *result = answer;                                                                                                  \
    return 0;                                                                                                          \
  }
QUESTION(data_ptr, void *, tensor->data)
QUESTION(dim, int64_t, tensor->dim)
QUESTION(sizes, int64_t *, tensor->sizes)
QUESTION(strides, int64_t *, tensor->strides)
QUESTION(dtype, int32_t, tensor->dtype)
QUESTION(device_type, int32_t, tensor->device_type)
QUESTION(device_index, int32_t, tensor->device_index)

extern "C" {
fake_state *fake_torch_state() { return &state; }

int32_t aoti_torch_dtype_bfloat16() {
  errno = 99;
  return FAKE_BFLOAT16;
}
int32_t aoti_torch_dtype_float32() { return FAKE_FLOAT32; }
int32_t aoti_torch_dtype_float16() { return FAKE_FLOAT16; }
int32_t aoti_torch_dtype_float8_e4m3fn() { return FAKE_E4M3; }
int32_t aoti_torch_dtype_float8_e5m2() { return FAKE_E5M2; }
int32_t aoti_torch_dtype_int32() { return FAKE_INT32; }
int32_t aoti_torch_dtype_int64() { return FAKE_INT64; }
int32_t aoti_torch_dtype_uint8() { return FAKE_BYTE; }
int32_t aoti_torch_dtype_bool() { return FAKE_BOOL; }
int32_t aoti_torch_device_type_cpu() { return FAKE_CPU; }
int32_t aoti_torch_device_type_cuda() { return FAKE_CUDA; }

int32_t aoti_torch_delete_tensor_object(void *handle) {
  errno = 99;
  state.deleted++;
  static_cast<fake_tensor *>(handle)->deleted++;
  return 0;
}

#if FAKE_TORCH >= 26
void aoti_torch_check(bool condition, const char *, const char *, uint32_t, const char *message) {
  if (!condition)
    throw fake_c10_error(message);
}
#endif

#if FAKE_TORCH >= 28
static fake_library *add(const char *kind, const char *space, const char *key) {
  errno = 99;
  fake_library *library = &state.libraries[state.libraries_count++];
  std::snprintf(library->kind, sizeof library->kind, "%s", kind);
  std::snprintf(library->space, sizeof library->space, "%s", space);
  std::snprintf(library->key, sizeof library->key, "%s", key);
  return library;
}

int32_t aoti_torch_library_init_fragment(const char *space, const char *, uint32_t, void **result) {
  if (state.fail_fragment)
    return 1;
  usleep(1000); // torch takes its time too: two threads without a lock would both get here
  *result = add("fragment", space, "");
  return 0;
}

int32_t aoti_torch_library_init_impl(const char *space, const char *key, const char *, uint32_t, void **result) {
  *result = add("impl", space, key);
  return 0;
}

int32_t aoti_torch_library_def(void *handle, const char *schema) {
  if (state.defined_before)
    return 1;
  fake_library *library = static_cast<fake_library *>(handle);
  std::snprintf(library->schema, sizeof library->schema, "%s", schema);
  return 0;
}

static int32_t implement(void *handle, const char *name, fake_boxed *kernel, uint64_t abi_version) {
  if (state.fail_impl_after > 0 && --state.fail_impl_after == 0)
    return 1;
  fake_library *library = static_cast<fake_library *>(handle);
  std::snprintf(library->name, sizeof library->name, "%s", name);
  library->kernel = kernel;
  library->abi_version = abi_version;
  return 0;
}

int32_t aoti_torch_library_impl(void *handle, const char *name, fake_boxed *kernel) {
  return implement(handle, name, kernel, 0);
}

int32_t aoti_torch_delete_library_object(void *handle) {
  static_cast<fake_library *>(handle)->deleted++;
  return 0;
}
#endif

#if FAKE_TORCH >= 214
int32_t torch_library_impl(void *handle, const char *name, fake_boxed *kernel, uint64_t abi_version) {
  return implement(handle, name, kernel, abi_version);
}

const char *torch_exception_get_what_without_backtrace() { return "the fake says\nwhy"; }

// Handles that were made here: deleting one frees it, and its data if it has its own.
int32_t aoti_torch_new_tensor_handle(void *handle, void **result) {
  fake_tensor *copy = static_cast<fake_tensor *>(std::malloc(sizeof *copy));
  *copy = *static_cast<fake_tensor *>(handle);
  copy->deleted = 0;
  state.handles++;
  *result = copy;
  return 0;
}

int32_t aoti_torch_empty_strided(int64_t dim, const int64_t *sizes, const int64_t *strides, int32_t dtype,
                                 int32_t device_type, int32_t device_index, void **result) {
  static char memory[4096]; // the tests' outputs are small
  fake_tensor t = {};
  t.data = memory;
  t.dim = dim;
  std::memcpy(t.sizes, sizes, dim * sizeof *sizes);
  std::memcpy(t.strides, strides, dim * sizeof *strides);
  t.dtype = dtype;
  t.device_type = device_type;
  t.device_index = device_index;
  return aoti_torch_new_tensor_handle(&t, result);
}

// The old operator: fills its output with state.old_byte. As torch does it, the handles are taken.
int32_t aoti_torch_call_dispatcher(const char *name, const char *, uint64_t *stack) {
  std::snprintf(state.dispatched, sizeof state.dispatched, "%s", name);
  fake_tensor *output = reinterpret_cast<fake_tensor *>(stack[0]);
  int64_t count = output->sizes[0] * output->sizes[1] * (output->dtype == FAKE_FLOAT32 ? 4 : 2);
  if (!state.old_fails)
    std::memset(output->data, state.old_byte, count);
  for (int i = 0; i < 3; i++)
    aoti_torch_delete_tensor_object(reinterpret_cast<void *>(stack[i]));
  return state.old_fails;
}
#endif
}
