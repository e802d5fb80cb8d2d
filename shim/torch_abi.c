#include "shim/torch_abi.h"

#include "shim/loaded.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool find(void *handle, const char *name, void *function) {
  void *address = dlsym(handle, name);
  memcpy(function, &address, sizeof address);
  return address != NULL;
}

static bool find_constant(void *handle, const char *name, int32_t *value) {
  int32_t (*function)(void) = NULL;
  if (!find(handle, name, &function))
    return false;
  *value = function();
  return true;
}

static bool fill(struct torch_abi *torch, void *handle) {
  bool metadata = find(handle, "aoti_torch_get_data_ptr", &torch->get_data_ptr) &&
                  find(handle, "aoti_torch_get_dim", &torch->get_dim) &&
                  find(handle, "aoti_torch_get_sizes", &torch->get_sizes) &&
                  find(handle, "aoti_torch_get_strides", &torch->get_strides) &&
                  find(handle, "aoti_torch_get_dtype", &torch->get_dtype) &&
                  find(handle, "aoti_torch_get_device_type", &torch->get_device_type) &&
                  find(handle, "aoti_torch_get_device_index", &torch->get_device_index) &&
                  find(handle, "aoti_torch_delete_tensor_object", &torch->delete_tensor_object) &&
                  find(handle, "aoti_torch_check", &torch->check) &&
                  find_constant(handle, "aoti_torch_dtype_bfloat16", &torch->dtype_bfloat16) &&
                  find_constant(handle, "aoti_torch_dtype_float32", &torch->dtype_float32) &&
                  find_constant(handle, "aoti_torch_dtype_float16", &torch->dtype_float16) &&
                  find_constant(handle, "aoti_torch_dtype_float8_e4m3fn", &torch->dtype_float8_e4m3fn) &&
                  find_constant(handle, "aoti_torch_dtype_float8_e5m2", &torch->dtype_float8_e5m2) &&
                  find_constant(handle, "aoti_torch_device_type_cpu", &torch->device_type_cpu) &&
                  find_constant(handle, "aoti_torch_device_type_cuda", &torch->device_type_cuda);
  if (!metadata)
    return false;
  bool registration = find(handle, "aoti_torch_library_init_fragment", &torch->library_init_fragment) &&
                      find(handle, "aoti_torch_library_init_impl", &torch->library_init_impl) &&
                      find(handle, "aoti_torch_library_def", &torch->library_def) &&
                      find(handle, "aoti_torch_library_impl", &torch->library_impl) &&
                      find(handle, "aoti_torch_delete_library_object", &torch->delete_library_object);
  if (!registration) {
    torch->library_init_fragment = NULL;
    torch->library_init_impl = NULL;
    torch->library_def = NULL;
    torch->library_impl = NULL;
    torch->delete_library_object = NULL;
  }
  find(handle, "torch_library_impl", &torch->library_impl_versioned);
  find(handle, "torch_exception_get_what_without_backtrace", &torch->exception_what);
  return true;
}

const struct torch_abi *torch_abi_get(void) {
  static _Atomic(struct torch_abi *) found;
  struct torch_abi *torch = atomic_load_explicit(&found, memory_order_acquire);
  if (torch)
    return torch;
  void *handle;
  if (!loaded_open("libtorch_cpu.so", "aoti_torch_get_data_ptr", &handle))
    return NULL;
  torch = calloc(1, sizeof *torch);
  struct torch_abi *first = NULL; /* another thread may have been faster: its table says the same */
  if (torch && fill(torch, handle) && atomic_compare_exchange_strong(&found, &first, torch))
    return torch;
  free(torch);
  loaded_close(handle);
  return first;
}

bool torch_abi_cuda_stream(int32_t device_index, void **stream) {
  typedef int32_t current_stream(int32_t device_index, void **stream);
  static _Atomic(current_stream *) found;
  current_stream *current = atomic_load_explicit(&found, memory_order_acquire);
  void *handle;
  if (!current && loaded_open("libtorch_cuda.so", "aoti_torch_get_current_cuda_stream", &handle)) {
    find(handle, "aoti_torch_get_current_cuda_stream", &current);
    atomic_store_explicit(&found, current, memory_order_release);
  }
  return current && current(device_index, stream) == 0;
}

struct torch_abi_what torch_abi_what(const struct torch_abi *torch) {
  struct torch_abi_what words = {""};
  const char *what = torch->exception_what ? torch->exception_what() : NULL;
  if (what && what[0])
    snprintf(words.text, sizeof words.text, ": %s", what);
  for (char *c = words.text; *c; c++)
    if (*c == '\n')
      *c = ' ';
  return words;
}
