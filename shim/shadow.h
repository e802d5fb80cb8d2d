/* Shadow: a kernel's result compared with that of another side, on a sample of its calls.
 *
 * The call runs as always. Then, if it is one of the sample, its tensors are copied to the host (which waits for the
 * stream), the other side computes the same, and the two outputs are compared. The other side is the old kernel where
 * another library in this process has registered the operator (an old wheel; torch 2.9 or newer), else the CPU
 * reference. Nothing that goes wrong on the way fails the call. */
#ifndef SGL_COMPAT_SHADOW_H
#define SGL_COMPAT_SHADOW_H

#include "shim/serve.h"

#include <sgl_kernel_jit/sgl_kernel_jit.h>
#include <stdint.h>

struct shadow_settings {
  uint32_t first;     /* the first calls of the process are compared, so many ... */
  uint32_t every;     /* ... and each so-many-th one; 0: none besides */
  uint32_t budget;    /* milliseconds that comparing may take in each second; 0: no limit */
  double tolerance;   /* of the norm of the difference over the norm of the other side's output; 0: the kernel's own */
  bool returns_other; /* the caller gets the other side's output of a compared call */
};

/* From the next call on; NULL switches it off. The settings are copied, and the copies kept (a policy is set a few
 * times in the life of a process). False without memory. */
bool shadow_set(enum serve_kernel kernel, const struct shadow_settings *settings);

/* What has happened since the process began. `calls` counts while shadow is on; each call of the sample ends as one of
 * the five below it. */
struct shadow_counts {
  uint64_t calls;
  uint64_t matches, mismatches;
  uint64_t ignored; /* the stream was being captured, or the output cannot be compared (empty) */
  uint64_t over_budget;
  uint64_t errors; /* a copy, the other side or memory failed */
};
struct shadow_counts shadow_get_counts(enum serve_kernel kernel);
/* In the child of a fork, whose process begins now. */
void shadow_clear_counts(void);

/* After the kernel has run on its tensors, in the order of the C interface. May change errno. */
void shadow_after(const struct torch_abi *torch, enum serve_kernel kernel, const sgl_jit_tensor views[],
                  void *const tensors[], void *stream);

/* The norm of the difference over the norm of the other's; infinite where only one has a number, or they differ and the
 * other is zero. */
double shadow_error(const void *ours, const void *other, sgl_jit_dtype dtype, size_t count);

/* Is shadow on? One relaxed load: for the hot path. */
bool shadow_is_on(enum serve_kernel kernel);

#endif
