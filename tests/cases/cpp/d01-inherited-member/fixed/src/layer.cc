#include "../include/base.h"
#include "sgl_kernel_ops.h"
#include "sgl_kernel_jit/torch.h"

struct Middle : public Base {};

struct Layer : Middle {
  void step(at::Tensor& out, const at::Tensor& x, const at::Tensor& w) {
    dsv3_router_gemm(out, x, w);
    Base::dsv3_router_gemm(out, x, w);
    sgl_kernel_jit::dsv3_router_gemm(out, x, w);
  }
  void last(at::Tensor& out, const at::Tensor& x);
};

void Layer::last(at::Tensor& out, const at::Tensor& x) { dsv3_router_gemm(out, x, x); }

struct Typed : TypedBase<at::Tensor> {
  void step(at::Tensor& out) { dsv3_fused_a_gemm(out, out, out); }
};

void free_standing(at::Tensor& out, const at::Tensor& x) { sgl_kernel_jit::dsv3_router_gemm(out, x, x); }
