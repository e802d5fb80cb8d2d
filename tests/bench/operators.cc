// Operators registered from C++, as a project with torch's headers does it: what torch.ops.sgl_kernel is measured against.
// `router` and `fused_a` do the same as the operators of the shim, through sgl_kernel_jit/torch.h; `empty_cxx` does
// nothing; `empty_c` does nothing either and is registered as the shim's are, through torch's C functions.
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include <chrono>
#include <dlfcn.h>
#include <sgl_kernel_jit/torch.h>

extern "C" {
int32_t aoti_torch_library_init_fragment(const char *space, const char *file, uint32_t line, void **library);
int32_t aoti_torch_library_init_impl(const char *space, const char *key, const char *file, uint32_t line, void **library);
int32_t aoti_torch_library_def(void *library, const char *schema);
int32_t aoti_torch_library_impl(void *library, const char *name, void (*kernel)(uint64_t *, uint64_t, uint64_t));
int32_t aoti_torch_delete_tensor_object(void *tensor);

int sgl_bench_register_c();
double sgl_bench_context_query(int calls);
}

static void router(at::Tensor &output, const at::Tensor &mat_a, const at::Tensor &mat_b) {
  sgl_kernel_jit::dsv3_router_gemm(output, mat_a, mat_b);
}

static void fused_a(at::Tensor &output, const at::Tensor &mat_a, const at::Tensor &mat_b) {
  sgl_kernel_jit::dsv3_fused_a_gemm(output, mat_a, mat_b);
}

static void empty_cxx(at::Tensor &, const at::Tensor &, const at::Tensor &) {}

static void empty_c(uint64_t *stack, uint64_t, uint64_t) {
  for (int i = 0; i < 3; i++)
    aoti_torch_delete_tensor_object(reinterpret_cast<void *>(stack[i]));
}

TORCH_LIBRARY(sgl_bench, m) {
  m.def("router(Tensor! output, Tensor mat_a, Tensor mat_b) -> ()");
  m.def("fused_a(Tensor! output, Tensor mat_a, Tensor mat_b) -> ()");
  m.def("empty_cxx(Tensor! output, Tensor mat_a, Tensor mat_b) -> ()");
  for (auto key : {c10::DispatchKey::CPU, c10::DispatchKey::CUDA}) {
    m.impl("router", key, TORCH_FN(router));
    m.impl("fused_a", key, TORCH_FN(fused_a));
    m.impl("empty_cxx", key, TORCH_FN(empty_cxx));
  }
}

int sgl_bench_register_c() {
  void *fragment, *cpu, *cuda;
  return aoti_torch_library_init_fragment("sgl_bench", __FILE__, __LINE__, &fragment) != 0 ||
         aoti_torch_library_def(fragment, "empty_c(Tensor! output, Tensor mat_a, Tensor mat_b) -> ()") != 0 ||
         aoti_torch_library_init_impl("sgl_bench", "CPU", __FILE__, __LINE__, &cpu) != 0 ||
         aoti_torch_library_impl(cpu, "empty_c", empty_c) != 0 ||
         aoti_torch_library_init_impl("sgl_bench", "CUDA", __FILE__, __LINE__, &cuda) != 0 ||
         aoti_torch_library_impl(cuda, "empty_c", empty_c) != 0;
}

// What the JIT library asks the driver in every call beside the launch, in ns; negative without a driver or a context.
double sgl_bench_context_query(int calls) {
  void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  auto query = driver ? reinterpret_cast<int (*)(int *)>(dlsym(driver, "cuCtxGetDevice")) : nullptr;
  int device;
  if (!query || query(&device) != 0)
    return -1;
  auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; i++)
    query(&device);
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() / calls;
}
