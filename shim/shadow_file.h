/* A mismatch in a file: what both sides read and wrote, for `sgl-compat replay`.
 *
 * Text, one fact a line, then the bytes of the tensors one after the other, each as it lies in memory:
 *
 *   sgl-kernel-compat shadow 1
 *   symbol dsv3_router_gemm
 *   other reference
 *   error 0.0012
 *   tolerance 1e-06
 *   tensor output float32 2,16 16,1 128          name, dtype, sizes, strides in elements, bytes
 *   ...
 *   tensor other float32 2,16 16,1 128           the other side's output, always the last one
 *   end */
#ifndef SGL_COMPAT_SHADOW_FILE_H
#define SGL_COMPAT_SHADOW_FILE_H

#include "shim/serve.h"

#include <sgl_kernel_jit/sgl_kernel_jit.h>

/* Writes a file into the folder that SGL_KERNEL_COMPAT_SHADOW_DIR names: the first SHADOW_FILES mismatches of the
 * process for each kernel, of at most SHADOW_LIMIT bytes each. The first mismatch of a kernel is told on stderr in one
 * line, by the first rank, with the file or why there is none. host: tensors in host memory, ours among them. */
enum { SHADOW_FILES = 3, SHADOW_LIMIT = 256 << 20 };
void shadow_save(enum serve_kernel kernel, const sgl_jit_tensor host[], const void *other, const char *other_name,
                 double error, double tolerance);

/* In the child of a fork, whose process begins now. */
void shadow_saved_none(void);

/* A file that was read, its tensors in host memory. */
struct shadow_record {
  enum serve_kernel kernel;
  char other_name[32];
  double error, tolerance;
  sgl_jit_tensor tensors[SERVE_TENSORS];
  const void *other;
  int64_t numbers[SERVE_TENSORS + 1][2][4]; /* the sizes and strides of the tensors, and of the other output */
};

/* False after writing one line into message: what is wrong with the file. Nothing in it is trusted. Free with
 * shadow_record_free. */
bool shadow_load(const char *path, struct shadow_record *record, char *message, size_t message_size);
void shadow_record_free(struct shadow_record *record);

#endif
