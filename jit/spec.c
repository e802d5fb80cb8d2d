/* A kernel's name as text, "dsv3_router_gemm:256x7168:float32": operator, N x K, output type; or "merge_state", where
 * one kernel serves every shape. */
#include "internal.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct jit_spec_text jit_spec_text(const sgl_jit_kernel_spec *spec) {
  struct jit_spec_text name;
  if (!jit_has_shape((enum jit_op)spec->op)) {
    snprintf(name.text, sizeof name.text, "%s", jit_op_name((enum jit_op)spec->op));
    return name;
  }
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

static sgl_jit_status no_operator(const char *text, struct jit_message m) {
  char names[256] = "";
  size_t length = 0;
  for (int op = 0; op < JIT_OPS; op++)
    length += (size_t)snprintf(names + length, sizeof names - length, "%s%s",
                               op == 0             ? ""
                               : op == JIT_OPS - 1 ? " or "
                                                   : ", ",
                               jit_op_name((enum jit_op)op));
  return FAIL("there is no operator '%.100s': %s is needed", text, names);
}

sgl_jit_status jit_spec_parse(const char *text, sgl_jit_kernel_spec *spec, struct jit_message m) {
  size_t length = strcspn(text, ":");
  int op = 0;
  while (op < JIT_OPS &&
         !(strlen(jit_op_name((enum jit_op)op)) == length && strncmp(text, jit_op_name((enum jit_op)op), length) == 0))
    op++;
  if (op == JIT_OPS)
    return no_operator(text, m);
  const char *rest = text + length;
  bool router = op == JIT_ROUTER;
  const char *like = router ? "dsv3_router_gemm:256x7168:float32" : "dsv3_fused_a_gemm:2112x7168";
  *spec = (sgl_jit_kernel_spec){.op = (sgl_jit_op)op};
  if (!jit_has_shape((enum jit_op)op))
    return *rest ? FAIL("'%.100s' has a shape: one kernel serves every shape, %s alone is needed", text,
                        jit_op_name((enum jit_op)op))
                 : SGL_JIT_OK;
  spec->output_dtype = SGL_JIT_DTYPE_BFLOAT16;
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
