#ifndef DETAIL_KERNELS_H
#define DETAIL_KERNELS_H
#include "sgl_kernel_ops.h"
#define WITH_ROUTER 1
#define AT_LEAST(major, minor) ((major) * 100 + (minor) <= 203)
#endif
