#pragma once
namespace my {
struct Mat {};
inline void dsv3_router_gemm(Mat&, const Mat&, const Mat&) {}
}
