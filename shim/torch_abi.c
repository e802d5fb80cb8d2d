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

static bool find_metadata(struct torch_abi *torch, void *handle, const char **missing) {
  const struct {
    const char *name;
    void *function;
  } functions[] = {
      {"aoti_torch_get_data_ptr", &torch->get_data_ptr},
      {"aoti_torch_get_dim", &torch->get_dim},
      {"aoti_torch_get_sizes", &torch->get_sizes},
      {"aoti_torch_get_strides", &torch->get_strides},
      {"aoti_torch_get_dtype", &torch->get_dtype},
      {"aoti_torch_get_device_type", &torch->get_device_type},
      {"aoti_torch_get_device_index", &torch->get_device_index},
      {"aoti_torch_delete_tensor_object", &torch->delete_tensor_object},
      {"aoti_torch_check", &torch->check},
  };
  const struct {
    const char *name;
    int32_t *value;
  } constants[] = {
      {"aoti_torch_dtype_bfloat16", &torch->dtype_bfloat16},
      {"aoti_torch_dtype_float32", &torch->dtype_float32},
      {"aoti_torch_dtype_float16", &torch->dtype_float16},
      {"aoti_torch_dtype_float8_e4m3fn", &torch->dtype_float8_e4m3fn},
      {"aoti_torch_dtype_float8_e5m2", &torch->dtype_float8_e5m2},
      {"aoti_torch_dtype_int32", &torch->dtype_int32},
      {"aoti_torch_dtype_int64", &torch->dtype_int64},
      {"aoti_torch_dtype_uint8", &torch->dtype_uint8},
      {"aoti_torch_dtype_bool", &torch->dtype_bool},
      {"aoti_torch_device_type_cpu", &torch->device_type_cpu},
      {"aoti_torch_device_type_cuda", &torch->device_type_cuda},
  };
  for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
    *missing = functions[i].name;
    if (!find(handle, functions[i].name, functions[i].function))
      return false;
  }
  for (size_t i = 0; i < sizeof constants / sizeof constants[0]; i++) {
    *missing = constants[i].name;
    if (!find_constant(handle, constants[i].name, constants[i].value))
      return false;
  }
  return true;
}

static bool fill(struct torch_abi *torch, void *handle) {
  const char *missing;
  if (!find_metadata(torch, handle, &missing))
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
  bool calls = find(handle, "aoti_torch_call_dispatcher", &torch->call_dispatcher) &&
               find(handle, "aoti_torch_new_tensor_handle", &torch->new_tensor_handle) &&
               find(handle, "aoti_torch_empty_strided", &torch->empty_strided);
  if (!calls) {
    torch->call_dispatcher = NULL;
    torch->new_tensor_handle = NULL;
    torch->empty_strided = NULL;
  }
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

struct torch_abi_why torch_abi_why(void) {
  struct torch_abi_why why = {TORCH_NONE,
                              "no torch is loaded in this process (no libtorch_cpu.so): import torch first, "
                              "2.6 or newer"};
  const char *missing = "aoti_torch_get_data_ptr"; /* in torch since 2.2 */
  struct torch_abi torch;
  void *handle;
  char *path = loaded_path_of("libtorch_cpu.so");
  if (loaded_open("libtorch_cpu.so", missing, &handle)) {
    why.absence = find_metadata(&torch, handle, &missing) ? TORCH_NONE : TORCH_OLD; /* there by now: as before */
    loaded_close(handle);
  } else if (path) {
    why.absence = TORCH_OLD;
  }
  if (why.absence == TORCH_OLD)
    snprintf(why.text, sizeof why.text, "the torch in this process is too old, 2.6 is needed: %s has no function %s",
             path ? path : "the program", missing);
  free(path);
  return why;
}

static const char stream_function[] = "aoti_torch_get_current_cuda_stream";

bool torch_abi_cuda_stream(int32_t device_index, void **stream) {
  typedef int32_t current_stream(int32_t device_index, void **stream);
  static _Atomic(current_stream *) found;
  current_stream *current = atomic_load_explicit(&found, memory_order_acquire);
  void *handle;
  if (!current && loaded_open("libtorch_cuda.so", stream_function, &handle)) {
    find(handle, stream_function, &current);
    atomic_store_explicit(&found, current, memory_order_release);
  }
  return current && current(device_index, stream) == 0;
}

struct torch_abi_what torch_abi_no_stream(const struct torch_abi *torch) {
  struct torch_abi_what why = {""};
  void *handle;
  char *path = loaded_path_of("libtorch_cuda.so"), *rocm = loaded_path_of("libtorch_hip.so");
  if (loaded_open("libtorch_cuda.so", stream_function, &handle)) {
    loaded_close(handle);
    why = torch_abi_what(torch);
  } else if (path) {
    snprintf(why.text, sizeof why.text, ": %s has no function %s", path, stream_function);
  } else {
    snprintf(why.text, sizeof why.text, ": this process has no libtorch_cuda.so%s",
             rocm ? ", its torch is built for ROCm" : "");
  }
  free(path);
  free(rocm);
  return why;
}
