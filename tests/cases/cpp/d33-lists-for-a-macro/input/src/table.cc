#include "sgl_kernel_ops.h"
#define OP(name, ...) {#name, (void*)&name},
Entry table[] = {
#include "ops.def"
#include "ops.inc"
};
