#pragma once
namespace deep {
class sgl_kernel_jit;
}
