/* A kernel's name as text, "dsv3_router_gemm:256x7168:float32": operator, N x K, output type. */
#include "internal.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct jit_spec_text jit_spec_text(const sgl_jit_kernel_spec *spec) {
  struct jit_spec_text name;
  snprintf(name.text, sizeof name.text, "%s:%lldx%lld:%s", jit_op_name((enum jit_op)spec->op), (long long)spec->n,
           (long long)spec->k, spec->output_dtype == SGL_JIT_DTYPE_FLOAT32 ? "float32" : "bfloat16");
  return name;
}

/* Digits alone: strtoll would take blanks and signs. */
static bool read_number(const char **text, int64_t *value) {
  char *end;
  if (**text < '0' || **text > '9')
    return false;
  errno = 0;
  *value = strtoll(*text, &end, 10);
  *text = end;
  return errno == 0;
}

static bool skip(const char **text, const char *word) {
  size_t length = strlen(word);
  bool found = strncmp(*text, word, length) == 0;
  *text += found ? length : 0;
  return found;
}

sgl_jit_status jit_spec_parse(const char *text, sgl_jit_kernel_spec *spec, struct jit_message m) {
  const char *rest = text;
  *spec = (sgl_jit_kernel_spec){.output_dtype = SGL_JIT_DTYPE_BFLOAT16};
  bool good = skip(&rest, jit_op_name(JIT_ROUTER));
  if (!good && (good = skip(&rest, jit_op_name(JIT_FUSED_A))))
    spec->op = SGL_JIT_OP_DSV3_FUSED_A_GEMM;
  good = good && skip(&rest, ":") && read_number(&rest, &spec->n) && skip(&rest, "x") && read_number(&rest, &spec->k);
  if (good && skip(&rest, ":float32"))
    spec->output_dtype = SGL_JIT_DTYPE_FLOAT32;
  else
    good = good && skip(&rest, ":bfloat16");
  if (!good || *rest)
    return jit_fail(m, SGL_JIT_ERROR_INVALID_ARGUMENT,
                    "a kernel is named like dsv3_router_gemm:256x7168:float32 or dsv3_fused_a_gemm:2112x7168:bfloat16, "
                    "got %.100s",
                    text);
  return jit_check_spec(spec, m);
}
