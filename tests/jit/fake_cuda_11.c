/* The fake driver as of CUDA 11: without libraries, so that every context loads a module of its own. */
#define FAKE_CUDA_11
#include "fake_cuda.c"
