#pragma once
#define dsv3_fused_a_gemm my_fused
void my_fused(at::Tensor&, const at::Tensor&, const at::Tensor&);
