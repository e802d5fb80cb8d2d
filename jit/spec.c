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

#define FAIL(...) jit_fail(m, SGL_JIT_ERROR_INVALID_ARGUMENT, __VA_ARGS__)

sgl_jit_status jit_spec_parse(const char *text, sgl_jit_kernel_spec *spec, struct jit_message m) {
  const char *rest = text;
  *spec = (sgl_jit_kernel_spec){.output_dtype = SGL_JIT_DTYPE_BFLOAT16};
  size_t length = strcspn(text, ":");
  bool router = length == strlen(jit_op_name(JIT_ROUTER)) && skip(&rest, jit_op_name(JIT_ROUTER));
  if (!router && !(length == strlen(jit_op_name(JIT_FUSED_A)) && skip(&rest, jit_op_name(JIT_FUSED_A))))
    return FAIL("there is no operator '%.100s': dsv3_router_gemm or dsv3_fused_a_gemm is needed", text);
  spec->op = router ? SGL_JIT_OP_DSV3_ROUTER_GEMM : SGL_JIT_OP_DSV3_FUSED_A_GEMM;
  const char *like = router ? "dsv3_router_gemm:256x7168:float32" : "dsv3_fused_a_gemm:2112x7168";
  if (!skip(&rest, ":") || !read_number(&rest, &spec->n) || !skip(&rest, "x") || !read_number(&rest, &spec->k))
    return FAIL("'%.100s' has no shape: one like %s is needed", text, like);
  if (!*rest && router)
    return FAIL("'%.100s' has no output type: :float32 or :bfloat16 is needed behind the shape", text);
  if (skip(&rest, ":float32"))
    spec->output_dtype = SGL_JIT_DTYPE_FLOAT32;
  else
    skip(&rest, ":bfloat16");
  if (*rest)
    return FAIL("'%.100s' ends with '%.40s': one like %s is needed", text, rest, like);
  return jit_check_spec(spec, m);
}
