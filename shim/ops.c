/* The torch operators, registered and implemented in C: the deleted ones of sgl_kernel, which warn, and the same
 * kernels under their supported names, torch.ops.sgl_kernel_jit.NAME, which do not. */
#include "shim/call_log.h"
#include "shim/include/sgl_kernel_compat.h"
#include "shim/serve.h"
#include "shim/stage.h"
#include "shim/throw.h"
#include "shim/torch_abi.h"

#include "compat_table.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* --- kernels ------------------------------------------------------------------------------------------------------ */

/* The stack's tensors are ours: each is deleted exactly once, always, and before an exception, since torch has given
 * them away when it calls. Deleting `output` drops a reference only; the caller's tensor has been written in place. */

static void take(const struct torch_abi *torch, enum serve_kernel kernel, void *const tensors[]) {
  for (int i = 0, count = serve_tensors(kernel); i < count; i++)
    torch->delete_tensor_object(tensors[i]);
}

/* The tensors come first. A stream, which only deleted operators have, comes last. */
static unsigned arguments_of(enum serve_kernel kernel, bool is_old) {
  return (unsigned)(serve_tensors(kernel) + serve_numbers(kernel) + (is_old && serve_takes_stream(kernel)));
}

/* The count is that of our own schema; another one would be a torch that calls kernels in another way. */
static bool open_stack(enum serve_kernel kernel, bool is_old, const uint64_t *stack, uint64_t arguments,
                       uint64_t results, void *tensors[SERVE_TENSORS]) {
  if (arguments != arguments_of(kernel, is_old) || results != 0)
    return false;
  for (int i = 0, count = serve_tensors(kernel); i < count; i++)
    tensors[i] = (void *)(uintptr_t)stack[i];
  return true;
}

/* address: of the call of a deprecated operator, which is counted and warns; NULL for the others. */
static void run(enum serve_kernel kernel, const uint64_t *stack, uint64_t arguments, uint64_t results,
                const void *address) {
  int saved = errno;
  const struct torch_abi *torch = torch_abi_get(); /* there: torch calls us */
  char message[SERVE_MESSAGE];
  void *tensors[SERVE_TENSORS];
  uint8_t policy = policy_of(serve_symbol(kernel));
  struct usage_site *site = address ? usage_site(SGL_COMPAT_CALL_OPERATOR, serve_symbol(kernel), address) : NULL;
  if (site && usage_is_sampled(usage_count(site, policy_stage(policy))))
    usage_sample(kernel);
  void *stream = NULL;
  bool has_stream = address && serve_takes_stream(kernel);
  bool ok = open_stack(kernel, address != NULL, stack, arguments, results, tensors);
  if (!ok) {
    snprintf(message, sizeof message, "%s: torch passed %llu arguments for %llu results, not %u for 0",
             serve_name(kernel), (unsigned long long)arguments, (unsigned long long)results,
             arguments_of(kernel, address != NULL));
  } else {
    ok = !site ||
         stage_call(SGL_COMPAT_CALL_OPERATOR, serve_symbol(kernel), policy, site, address, message, sizeof message);
    /* An old library would have registered the operator itself, and then this one would not be here. */
    if (ok && site && policy_serve(policy) == SGL_COMPAT_SERVE_OLD) {
      stage_no_library(kernel, message, sizeof message);
      ok = false;
    }
    if (has_stream)
      stream = (void *)(uintptr_t)stack[arguments - 1];
    ok = ok && serve_run(torch, kernel, tensors, stack + serve_tensors(kernel), has_stream ? &stream : NULL, message,
                         sizeof message);
    if (call_log_is_on())
      call_log_write(torch, kernel, tensors, site ? "operator" : "jit", ok ? "ok" : "error", ok ? NULL : message);
    take(torch, kernel, tensors);
  }
  if (!ok && site)
    usage_failed(site);
  errno = saved;
  if (!ok)
    throw_error(serve_name(kernel), message);
}

/* A tensor on the meta device has no data: the operators only fill their output, so nothing is left to do. */
static void do_nothing(enum serve_kernel kernel, const uint64_t *stack, uint64_t arguments, uint64_t results) {
  int saved = errno;
  void *tensors[SERVE_TENSORS];
  if (open_stack(kernel, false, stack, arguments, results, tensors))
    take(torch_abi_get(), kernel, tensors);
  errno = saved;
}

/* The three kernels of an operator: deprecated, supported, and for meta tensors. */
#define BOXED(name, kernel)                                                                                            \
  static void old_##name(uint64_t *stack, uint64_t arguments, uint64_t results) {                                      \
    run(kernel, stack, arguments, results, __builtin_return_address(0));                                               \
  }                                                                                                                    \
  static void jit_##name(uint64_t *stack, uint64_t arguments, uint64_t results) {                                      \
    run(kernel, stack, arguments, results, NULL);                                                                      \
  }                                                                                                                    \
  static void meta_##name(uint64_t *stack, uint64_t arguments, uint64_t results) {                                     \
    do_nothing(kernel, stack, arguments, results);                                                                     \
  }
BOXED(bmm_fp8, SERVE_BMM_FP8)
BOXED(downcast, SERVE_DOWNCAST_FP8)
BOXED(fused_a, SERVE_DSV3_FUSED_A_GEMM)
BOXED(router, SERVE_DSV3_ROUTER_GEMM)
BOXED(merge, SERVE_MERGE_STATE)
BOXED(quant, SERVE_PER_TENSOR_QUANT_FP8)
BOXED(packbits, SERVE_SEGMENT_PACKBITS)
BOXED(store, SERVE_SET_KV_BUFFER_KERNEL)
#undef BOXED

static void jit_hadamard(uint64_t *stack, uint64_t arguments, uint64_t results) {
  run(SERVE_HADAMARD_TRANSFORM, stack, arguments, results, NULL);
}
static void meta_hadamard(uint64_t *stack, uint64_t arguments, uint64_t results) {
  do_nothing(SERVE_HADAMARD_TRANSFORM, stack, arguments, results);
}

/* --- registration ------------------------------------------------------------------------------------------------- */

enum space { SPACE_OLD, SPACE_JIT, SPACE_COUNT };

static struct {
  const char *name;
  torch_boxed *boxed[SERVE_COUNT];
  _Atomic sgl_compat_op_state state[SERVE_COUNT];
} spaces[SPACE_COUNT] = {
    [SPACE_OLD] = {.name = COMPAT_OP_NAMESPACE,
                   .boxed = {[SERVE_BMM_FP8] = old_bmm_fp8,
                             [SERVE_DOWNCAST_FP8] = old_downcast,
                             [SERVE_DSV3_FUSED_A_GEMM] = old_fused_a,
                             [SERVE_DSV3_ROUTER_GEMM] = old_router,
                             [SERVE_MERGE_STATE] = old_merge,
                             [SERVE_PER_TENSOR_QUANT_FP8] = old_quant,
                             [SERVE_SEGMENT_PACKBITS] = old_packbits,
                             [SERVE_SET_KV_BUFFER_KERNEL] = old_store}},
    [SPACE_JIT] = {.name = "sgl_kernel_jit",
                   .boxed = {[SERVE_BMM_FP8] = jit_bmm_fp8,
                             [SERVE_DOWNCAST_FP8] = jit_downcast,
                             [SERVE_DSV3_FUSED_A_GEMM] = jit_fused_a,
                             [SERVE_DSV3_ROUTER_GEMM] = jit_router,
                             [SERVE_MERGE_STATE] = jit_merge,
                             [SERVE_PER_TENSOR_QUANT_FP8] = jit_quant,
                             [SERVE_SEGMENT_PACKBITS] = jit_packbits,
                             [SERVE_SET_KV_BUFFER_KERNEL] = jit_store,
                             [SERVE_HADAMARD_TRANSFORM] = jit_hadamard}},
};
static torch_boxed *const meta[SERVE_COUNT] = {[SERVE_BMM_FP8] = meta_bmm_fp8,
                                               [SERVE_DOWNCAST_FP8] = meta_downcast,
                                               [SERVE_DSV3_FUSED_A_GEMM] = meta_fused_a,
                                               [SERVE_DSV3_ROUTER_GEMM] = meta_router,
                                               [SERVE_MERGE_STATE] = meta_merge,
                                               [SERVE_PER_TENSOR_QUANT_FP8] = meta_quant,
                                               [SERVE_SEGMENT_PACKBITS] = meta_packbits,
                                               [SERVE_SET_KV_BUFFER_KERNEL] = meta_store,
                                               [SERVE_HADAMARD_TRANSFORM] = meta_hadamard};

/* Torch 2.10's entry wants the version of the C ABI that the kernel was written for: major, minor and patch in the top
 * three bytes. */
#define TORCH_ABI_2_10 UINT64_C(0x020a000000000000)

/* What torch tells the library that defines the same operator after us. */
#define PLACE "libsgl_kernel_compat.so, which finds a library that has the operator when that is loaded first"

static bool add_kernel(const struct torch_abi *torch, const char *space, const char *key, const char *name,
                       torch_boxed *boxed, void **library) {
  if (torch->library_init_impl(space, key, PLACE, __LINE__, library) != 0) {
    *library = NULL;
    return false;
  }
  return (torch->library_impl_versioned ? torch->library_impl_versioned(*library, name, boxed, TORCH_ABI_2_10)
                                        : torch->library_impl(*library, name, boxed)) == 0;
}

static const char *schema_of(enum space space, enum serve_kernel kernel, const char *name) {
  if (space == SPACE_JIT && serve_jit_schema(kernel))
    return serve_jit_schema(kernel);
  for (unsigned i = 0; i < compat_operators_count; i++)
    if (strcmp(compat_operators[i].name, name) == 0)
      return compat_operators[i].schema;
  return NULL;
}

/* The library objects of what was registered are kept for ever: deleting one takes the operator back, and Python code
 * that has looked it up then crashes. Those of a registration that failed are deleted. */
static sgl_compat_status register_locked(const struct torch_abi *torch, enum space space, enum serve_kernel kernel,
                                         char *message, size_t message_size) {
  const char *name = space == SPACE_OLD ? serve_old_operator(kernel) : serve_jit_operator(kernel);
  const char *in = spaces[space].name;
  void *library = NULL;
  if (torch->library_init_fragment(in, PLACE, __LINE__, &library) != 0) {
    snprintf(message, message_size, "torch cannot extend the namespace %s%s", in, torch_abi_what(torch).text);
    return SGL_COMPAT_ERROR_REGISTRATION;
  }
  /* No function of torch tells whether an operator exists. A schema that torch has already is refused, and ours has no
   * other fault that could be refused. */
  if (torch->library_def(library, schema_of(space, kernel, name)) != 0) {
    torch->delete_library_object(library);
    atomic_store(&spaces[space].state[kernel], SGL_COMPAT_OP_ALREADY_DEFINED);
    return SGL_COMPAT_OK;
  }
  static const char *const keys[] = {"CUDA", "CPU", "Meta"};
  void *kernels[3];
  /* The deleted operators had no kernel of the meta device, and torch.library.register_fake of old code refuses an
   * operator that has one. Fake tensors need none. */
  for (int i = 0; i < (space == SPACE_OLD ? 2 : 3); i++) {
    bool added = add_kernel(torch, in, keys[i], name, i == 2 ? meta[kernel] : spaces[space].boxed[kernel], &kernels[i]);
    if (added)
      continue;
    snprintf(message, message_size, "torch refuses the %s kernel of %s::%s%s", keys[i], in, name,
             torch_abi_what(torch).text);
    for (; i >= 0; i--)
      if (kernels[i])
        torch->delete_library_object(kernels[i]);
    torch->delete_library_object(library);
    return SGL_COMPAT_ERROR_REGISTRATION;
  }
  atomic_store(&spaces[space].state[kernel], SGL_COMPAT_OP_REGISTERED);
  return SGL_COMPAT_OK;
}

static sgl_compat_status register_one(enum space space, enum serve_kernel kernel, char *message, size_t message_size) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  int saved = errno;
  const struct torch_abi *torch = torch_abi_get();
  sgl_compat_status status = SGL_COMPAT_OK;
  if (!torch) {
    struct torch_abi_why why = torch_abi_why();
    snprintf(message, message_size, "%s", why.text);
    status = why.absence == TORCH_OLD ? SGL_COMPAT_ERROR_TORCH_TOO_OLD : SGL_COMPAT_ERROR_NO_TORCH;
  } else if (!torch->library_def) {
    snprintf(message, message_size, "the torch in this process is too old to register operators from C: 2.7 is needed");
    status = SGL_COMPAT_ERROR_TORCH_TOO_OLD;
  } else {
    usage_begin();
    pthread_mutex_lock(&lock);
    if (atomic_load(&spaces[space].state[kernel]) == SGL_COMPAT_OP_UNREGISTERED)
      status = register_locked(torch, space, kernel, message, message_size);
    pthread_mutex_unlock(&lock);
  }
  errno = saved;
  return status;
}

static sgl_compat_status register_all(enum space space, char *message, size_t message_size) {
  sgl_compat_status first = SGL_COMPAT_OK; /* that failed: the others are tried all the same */
  for (int kernel = 0; kernel < (space == SPACE_OLD ? SERVE_OPERATORS : SERVE_COUNT); kernel++) {
    bool failed = first != SGL_COMPAT_OK;
    sgl_compat_status status =
        register_one(space, (enum serve_kernel)kernel, failed ? NULL : message, failed ? 0 : message_size);
    if (!failed)
      first = status;
  }
  return first;
}

sgl_compat_status sgl_compat_register_ops(char *message, size_t message_size) {
  return register_all(SPACE_OLD, message, message_size);
}

sgl_compat_status sgl_compat_register_jit_ops(char *message, size_t message_size) {
  return register_all(SPACE_JIT, message, message_size);
}

static int index_of(const char *name) {
  int kernel = 0;
  while (kernel < SERVE_OPERATORS && !(name && strcmp(name, serve_old_operator((enum serve_kernel)kernel)) == 0))
    kernel++;
  return kernel;
}

sgl_compat_status sgl_compat_register_op(const char *name, char *message, size_t message_size) {
  int kernel = index_of(name);
  if (kernel < SERVE_OPERATORS)
    return register_one(SPACE_OLD, (enum serve_kernel)kernel, message, message_size);
  for (unsigned i = 0; name && i < compat_operators_count; i++)
    if (strcmp(compat_operators[i].name, name) == 0) {
      const struct compat_operator *gone = &compat_operators[i];
      snprintf(message, message_size,
               "sgl_compat_register_op: there is no kernel here for %s, which " COMPAT_PACKAGE
               " has dropped in %s (%s): %s",
               name, gone->first_without, gone->change, gone->advice);
      return SGL_COMPAT_ERROR_INVALID_ARGUMENT;
    }
  snprintf(message, message_size, "sgl_compat_register_op: no operator \"%s\" here; sgl_compat_op_name lists them",
           name ? name : "(null)");
  return SGL_COMPAT_ERROR_INVALID_ARGUMENT;
}

const char *sgl_compat_op_name(size_t index) {
  return index < SERVE_OPERATORS ? serve_old_operator((enum serve_kernel)index) : NULL;
}

sgl_compat_op_state sgl_compat_get_op_state(const char *name) {
  int kernel = index_of(name);
  return kernel < SERVE_OPERATORS ? atomic_load(&spaces[SPACE_OLD].state[kernel]) : SGL_COMPAT_OP_UNREGISTERED;
}
