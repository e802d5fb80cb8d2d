/* The modes of computing: batch invariance and programmatic dependent launch. */
#include "internal.h"
#include <stdlib.h>
#include <string.h>

enum { UNSET = -2, BAD = -1 };
enum { PDL_SINCE = 90 }; /* programmatic dependent launch came with compute capability 9.0 */

atomic_int jit_modes_word; /* 0: the environment is not read yet */

/* 0 or 1, BAD for anything else. */
static int flag(const char *name) {
  const char *text = secure_getenv(name);
  if (!text || !*text)
    return UNSET;
  return strcmp(text, "1") == 0 ? 1 : strcmp(text, "0") == 0 ? 0 : BAD;
}

int jit_modes_first(void) {
  int invariant = flag("SGL_KERNEL_JIT_BATCH_INVARIANT"), prefetch = flag("SGL_KERNEL_JIT_PDL_PREFETCH"), expected = 0;
  int modes = JIT_MODE_READ;
  if (invariant == BAD)
    modes |= JIT_MODE_BAD_INVARIANT;
  if (prefetch == BAD)
    modes |= JIT_MODE_BAD_PREFETCH;
  if (invariant == 1)
    modes |= JIT_MODE_INVARIANT;
  if (flag("TRTLLM_ENABLE_PDL") == 1) /* the old rule: exactly "1", and nothing else is an error */
    modes |= JIT_MODE_PDL | (prefetch == 0 ? 0 : JIT_MODE_EARLY);
  return atomic_compare_exchange_strong(&jit_modes_word, &expected, modes) ? modes : expected;
}

static void change(int clear, int set) {
  int modes = jit_modes();
  while (!atomic_compare_exchange_weak(&jit_modes_word, &modes, (modes & ~clear) | set)) {
  }
}

sgl_jit_status sgl_jit_set_batch_invariant(int on, char *message, size_t message_size) {
  struct jit_message m = {message, message_size, "sgl_jit_set_batch_invariant"};
  if (on != 0 && on != 1)
    return jit_fail(m, SGL_JIT_ERROR_INVALID_ARGUMENT, "on must be 0 or 1, got %d", on);
  change(JIT_MODE_INVARIANT | JIT_MODE_BAD_INVARIANT, on ? JIT_MODE_INVARIANT : 0);
  return SGL_JIT_OK;
}

int sgl_jit_get_batch_invariant(void) {
  return (jit_modes() & JIT_MODE_INVARIANT) != 0;
}

sgl_jit_status sgl_jit_set_pdl(sgl_jit_pdl mode, char *message, size_t message_size) {
  static const int bits[] = {0, JIT_MODE_PDL | JIT_MODE_EARLY, JIT_MODE_PDL};
  struct jit_message m = {message, message_size, "sgl_jit_set_pdl"};
  if (mode != SGL_JIT_PDL_OFF && mode != SGL_JIT_PDL_ON && mode != SGL_JIT_PDL_NO_PREFETCH)
    return jit_fail(m, SGL_JIT_ERROR_INVALID_ARGUMENT, "there is no mode %d", (int)mode);
  change(JIT_MODE_PDL | JIT_MODE_EARLY | JIT_MODE_BAD_PREFETCH, bits[mode]);
  return SGL_JIT_OK;
}

sgl_jit_pdl jit_pdl_on(int capability) {
  return capability < PDL_SINCE ? SGL_JIT_PDL_OFF : sgl_jit_get_pdl();
}

sgl_jit_pdl sgl_jit_get_pdl(void) {
  int modes = jit_modes();
  return !(modes & JIT_MODE_PDL) ? SGL_JIT_PDL_OFF : modes & JIT_MODE_EARLY ? SGL_JIT_PDL_ON : SGL_JIT_PDL_NO_PREFETCH;
}
