/* sgl_kernel_compat: the names that sgl_kernel deleted, kept working. Public C interface of libsgl_kernel_compat.so.
 *
 * Besides the functions below the library exports the deleted C++ functions themselves, under their old mangled names:
 *
 *   void dsv3_router_gemm(at::Tensor &output, const at::Tensor &mat_a, const at::Tensor &mat_b);
 *   void dsv3_fused_a_gemm(at::Tensor &output, const at::Tensor &mat_a, const at::Tensor &mat_b);
 *   void bmm_fp8(at::Tensor A, at::Tensor B, at::Tensor D, at::Tensor A_scale, at::Tensor B_scale,
 *                at::Tensor workspace_buffer, int64_t cublas_handle);
 *
 * Shapes, dtypes and strides are those of sgl_kernel_jit.h, whose kernels they run. workspace_buffer is packed, on A's
 * device, and has as many bytes as elements; cublas_handle is not used. They use torch's current stream of the device
 * that mat_a or A lies on, write into `output` or D and return before the work is done (CUDA). A fault throws
 * c10::Error, which is a std::exception; in a process without torch, std::runtime_error; in a process without a C++
 * runtime nobody could catch, so one line goes to stderr and the call returns without writing. When another loaded
 * library defines the same function (an old wheel of the kernel library), the call goes there, silently; a definition
 * that comes before this library in the global scope is left out, since it has been passed by already (a tracer's).
 *
 * Every other C++ function that has left sgl_kernel is exported too, so that libraries that call one can be loaded: a
 * call goes to another loaded definition with its arguments untouched (x86-64), and throws without one, with the
 * advice.
 *
 * torch is not linked. Its C functions are looked up in the process when they are first needed, and again later for as
 * long as torch is not there, so this library may be loaded before torch.
 *
 * Thread rules: every function may be called from any thread at any time. Errors: functions return a status with a
 * stable number and, when it is not SGL_COMPAT_OK, write one line without a final newline into the caller's `message`
 * buffer (always NUL-ended, truncated to message_size; NULL and 0 are allowed). The library never prints to stdout,
 * never aborts, runs nothing at load time, and leaves errno as it found it. It cannot be unloaded. */
#ifndef SGL_KERNEL_COMPAT_H
#define SGL_KERNEL_COMPAT_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(SGL_COMPAT_BUILDING)
#define SGL_COMPAT_API __attribute__((visibility("default")))
#else
#define SGL_COMPAT_API
#endif

/* Numbers are part of the ABI: never reused, never renumbered. */
typedef enum sgl_compat_status {
  SGL_COMPAT_OK = 0,
  SGL_COMPAT_ERROR_INVALID_ARGUMENT = 1, /* the message names the argument */
  SGL_COMPAT_ERROR_NO_TORCH = 2,         /* no torch in this process yet: import it, then try again */
  SGL_COMPAT_ERROR_TORCH_TOO_OLD = 3,    /* this torch cannot register operators from C: it takes 2.7 or newer */
  SGL_COMPAT_ERROR_REGISTRATION = 4, /* torch refused a registration that it should take: the message has its words */
  SGL_COMPAT_ERROR_WRITE = 5         /* a file could not be written: the message names the folder and the reason */
} sgl_compat_status;

/* "0.1.0" and the name of a status ("SGL_COMPAT_ERROR_NO_TORCH"); static strings. */
SGL_COMPAT_API const char *sgl_compat_version(void);
SGL_COMPAT_API const char *sgl_compat_status_name(sgl_compat_status status);

/* --- operators ---------------------------------------------------------------------------------------------------- */

/* Numbers are part of the ABI. The last two are final for the process: torch cannot take an operator back safely. */
typedef enum sgl_compat_op_state {
  SGL_COMPAT_OP_UNREGISTERED = 0,   /* not asked for yet, or torch was not there or refused */
  SGL_COMPAT_OP_REGISTERED = 1,     /* this library serves it */
  SGL_COMPAT_OP_ALREADY_DEFINED = 2 /* somebody else, such as an old wheel, had defined it before; it stays in charge */
} sgl_compat_op_state;

/* Register torch.ops.sgl_kernel.NAME for every deleted operator that this library serves, for CUDA and CPU
 * tensors. A CPU call computes only with the reference backend of sgl_kernel_jit.h and is an error otherwise. There is
 * no Meta kernel, as there was none: torch.library.register_fake takes no operator that has one. Fake tensors work
 * without, as the operators only fill their output.
 *
 * Call it after sgl_kernel's own library is loaded: an old wheel that is loaded later finds its operators taken, and
 * then torch ends the process. Operators that are defined already are left alone, and that is no error. May be called
 * again: what is registered stays, the rest is tried once more. Torch before 2.13 prints a line of its own on stderr
 * for an operator that is already defined; ask torch first (hasattr(torch.ops.sgl_kernel, NAME)) and use
 * sgl_compat_register_op for the missing ones to avoid it. */
SGL_COMPAT_API sgl_compat_status sgl_compat_register_ops(char *message, size_t message_size);

/* The same for one operator, by its name without namespace. INVALID_ARGUMENT for a name that is not served; of a
 * deleted operator the message tells the release that dropped it and what to use. */
SGL_COMPAT_API sgl_compat_status sgl_compat_register_op(const char *name, char *message, size_t message_size);

/* Register the same kernels as torch.ops.sgl_kernel_jit.NAME, the supported operators: schemas, devices and errors as
 * above, no warnings, and a Meta kernel, which does nothing. The namespace is this project's own, so an old wheel does
 * not matter; an operator that another copy of this library has registered stays. */
SGL_COMPAT_API sgl_compat_status sgl_compat_register_jit_ops(char *message, size_t message_size);

/* The names of the operators that this library serves: static strings for index 0, 1, ..., then NULL. */
SGL_COMPAT_API const char *sgl_compat_op_name(size_t index);

/* Where a served operator stands; SGL_COMPAT_OP_UNREGISTERED for any other name. */
SGL_COMPAT_API sgl_compat_op_state sgl_compat_get_op_state(const char *name);

/* --- policy ---------------------------------------------------------------------------------------------------------
 */

/* What a use of a deleted name does. Each is harder than the one before. Numbers are part of the ABI. */
typedef enum sgl_compat_stage {
  SGL_COMPAT_STAGE_SILENT = 0,
  SGL_COMPAT_STAGE_WARN = 1,     /* it works, and warns once for each call site */
  SGL_COMPAT_STAGE_ERROR = 2,    /* it fails: what uses it still has to be changed */
  SGL_COMPAT_STAGE_TOMBSTONE = 3 /* it fails: the name is gone */
} sgl_compat_stage;

/* Which code answers, where the stage lets it. */
typedef enum sgl_compat_serve {
  SGL_COMPAT_SERVE_AUTO = 0,     /* another loaded library that defines the function, else the JIT kernel */
  SGL_COMPAT_SERVE_JIT = 1,      /* the JIT kernel, also beside such a library */
  SGL_COMPAT_SERVE_OLD = 2,      /* such a library; without one the call fails */
  SGL_COMPAT_SERVE_REFERENCE = 3 /* the CPU reference of sgl_kernel_jit.h */
} sgl_compat_serve;

/* Read at the first call of a deleted name, in this order, a later one wins: what is built in; the file
 * /etc/sgl-kernel-compat/policy; ${XDG_CONFIG_HOME:-~/.config}/sgl-kernel-compat/policy; the file that
 * SGL_KERNEL_COMPAT_POLICY_FILE names; the directives in SGL_KERNEL_COMPAT_POLICY; calls of sgl_compat_policy_set. The
 * language is that of man sgl-compat. What is not understood there is told on stderr, and the rest holds. */

typedef struct sgl_compat_policy {
  sgl_compat_stage stage;
  int is_set; /* 0: the stage is the built-in one. It holds for what this library serves, and not for a name that
                 another library still has */
  sgl_compat_serve serve;
  char stage_from[512]; /* "/etc/sgl-kernel-compat/policy:3", "SGL_KERNEL_COMPAT_POLICY", ...; cut when longer */
  char serve_from[512];
} sgl_compat_policy;

/* Set something: directives, separated by newlines or `;`. origin is what stage_from says of them, NULL for the name of
 * this function. INVALID_ARGUMENT, and nothing is set, when one is not understood, or would soften what is denied. A
 * call that is under way meanwhile may have the old policy. */
SGL_COMPAT_API sgl_compat_status sgl_compat_policy_set(const char *text, const char *origin, char *message,
                                                       size_t message_size);

/* What holds for a name of the catalog. INVALID_ARGUMENT when it is none. */
SGL_COMPAT_API sgl_compat_status sgl_compat_policy_get(const char *symbol, sgl_compat_policy *policy, char *message,
                                                       size_t message_size);

/* --- warnings ----------------------------------------------------------------------------------------------------- */

/* Each deleted name warns once per call site that reaches this library. All calls of an operator arrive through torch's
 * dispatcher and are one call site. Calls that are forwarded to another library do not warn. Of the processes of a job,
 * which environment variables number (RANK, SLURM_PROCID, OMPI_COMM_WORLD_RANK, PMIX_RANK, PMI_RANK,
 * MV2_COMM_WORLD_RANK; else LOCAL_RANK, SLURM_LOCALID and the local ones of MPI), only the one without them or with 0
 * prints. */

typedef enum sgl_compat_warnings {
  SGL_COMPAT_WARNINGS_OFF = 0, /* no warning, and the hook is not called */
  SGL_COMPAT_WARNINGS_ONCE = 1
} sgl_compat_warnings;

/* The initial value comes from the environment variable SGL_KERNEL_COMPAT_WARN (off | once, default once), read at the
 * first call of a deleted name. INVALID_ARGUMENT for another value. Call sites that have warned stay remembered. */
SGL_COMPAT_API sgl_compat_status sgl_compat_set_warnings(sgl_compat_warnings mode, char *message, size_t message_size);

typedef enum sgl_compat_call {
  SGL_COMPAT_CALL_CXX = 1,      /* the deleted C++ function */
  SGL_COMPAT_CALL_OPERATOR = 2, /* the deleted torch operator */
  SGL_COMPAT_CALL_PYTHON = 3    /* an access of the deleted Python attribute; statistics only */
} sgl_compat_call;

/* Valid during the hook's call only. No string is NULL. */
typedef struct sgl_compat_warning {
  sgl_compat_call call;
  const char *symbol;      /* "dsv3_router_gemm" */
  const char *replacement; /* "use sgl_kernel_jit.dsv3_router_gemm" */
  const char *caller; /* "libmodel.so+0x1234 (_ZN5model3runEv+0x56)": addr2line -e libmodel.so 0x1234 tells the line */
  const char *text;   /* all of it in one line, as it would be printed; for an operator without the caller */
  char *error;        /* what a call fails with on RAISE: the line without its prefix and caller. The hook may write */
  size_t error_size;  /* another text, of at most error_size bytes with the end */
} sgl_compat_warning;

/* What the hook answers. */
typedef enum sgl_compat_warning_action {
  SGL_COMPAT_WARNING_SHOWN = 0, /* dealt with: print nothing */
  SGL_COMPAT_WARNING_RAISE = 1, /* the call fails with `error`, before any work; the next call there warns again (one
                                   that another thread makes there during the hook goes on) */
  SGL_COMPAT_WARNING_PRINT = 2  /* print the line on stderr (if this is the first rank), as without a hook */
} sgl_compat_warning_action;

/* Called instead of printing, in the thread of the deprecated call and without a lock held; it must return normally
 * (no C++ exception, no longjmp) and may call any function of this library. */
typedef sgl_compat_warning_action (*sgl_compat_warning_hook)(const sgl_compat_warning *warning, void *user);

/* Set the hook of the process, or NULL to print on stderr. After it returns, another thread may still be inside the old
 * hook, so keep the old hook and its `user` valid. */
SGL_COMPAT_API void sgl_compat_set_warning_hook(sgl_compat_warning_hook hook, void *user);

/* --- statistics --------------------------------------------------------------------------------------------------- */

/* Every use of a deleted name is counted: by name, face (C++ function, operator, access of the Python attribute), stage
 * and call site, warned about or not. Also counted are the kernels that ran, which `sgl-jit warm --stats` compiles
 * ahead. Replays of a captured graph do not come here and are not seen. With the environment variable
 * SGL_KERNEL_COMPAT_STATS=DIR they are written, if this library was used at all, at the end of the process and, when
 * something has changed, soon after the first use and then every half minute, into two files: DIR/HOST-PID-START.jsonl,
 * which `sgl-compat report` reads, and DIR/HOST-PID-START.prom in Prometheus' text format. DIR is made if only it is
 * missing. Both files are put in place whole, or not at all, which is then told once on stderr. A child of fork counts
 * from zero and writes its own. What was counted in the half minute before SIGKILL, _exit, exec or a crash is lost.
 * Set-user-ID programs write nothing by themselves. */

/* Write them now, into a folder, or with NULL into that of the environment, if this library was used. Not to be called
 * from a signal handler. */
SGL_COMPAT_API sgl_compat_status sgl_compat_usage_write(const char *folder, char *message, size_t message_size);

/* Count a use that does not come through a function of this library, at a place in Python: of the attribute (call
 * SGL_COMPAT_CALL_PYTHON), or of an operator that another one serves (SGL_COMPAT_CALL_OPERATOR). stage: silent | warn |
 * error | tombstone. An operator's stage NULL adds no call, but a sample of where calls come from. Strings are copied.
 * Returns the place's count for sgl_compat_usage_again, valid as long as the process lives, or NULL: nothing was
 * counted, a name or the stage is not known. */
SGL_COMPAT_API void *sgl_compat_usage_python(const char *symbol, sgl_compat_call call, const char *stage,
                                             const char *module, const char *file, unsigned line);

/* The same use once more, without looking for its place; NULL does nothing. */
SGL_COMPAT_API void sgl_compat_usage_again(void *count);

/* The installed package serves this name itself in this process, and its uses at this face (SGL_COMPAT_CALL_PYTHON,
 * SGL_COMPAT_CALL_OPERATOR) do not come here: the statistics say that they are not known. uncounted 0 takes it back. */
SGL_COMPAT_API void sgl_compat_usage_uncounted(const char *symbol, sgl_compat_call call, int uncounted);

/* With SGL_KERNEL_COMPAT_LOG=calls: a line for a call that does not come through a function of this library. face:
 * python | operator; outcome: ok | error, with the message or NULL; more: further members of the line in JSON, without
 * braces, or NULL. Returns 0 where calls are not logged; symbol NULL only asks that. */
SGL_COMPAT_API int sgl_compat_call_log(const char *symbol, const char *face, const char *outcome, const char *message,
                                       const char *more);

/* Called in the thread of an operator's call, for the first 16 calls of each operator at each stage, and then whenever
 * their number is a power of two: to find the caller, whom C cannot see, and tell sgl_compat_usage_python. Rules as for
 * the warning hook. NULL: none. */
typedef void (*sgl_compat_usage_sampler)(const char *symbol);
SGL_COMPAT_API void sgl_compat_set_usage_sampler(sgl_compat_usage_sampler sampler);

#ifdef __cplusplus
}

/* The deleted functions themselves, as deprecated. */
#include "sgl_kernel_compat_old.h"
#endif

#endif
