/* The JIT library through its C interface, on the CPU reference backend. */
#include <stdint.h>
#include <stdio.h>

#include "sgl_kernel_jit/sgl_kernel_jit.h"

enum { NUM_TOKENS = 2, NUM_EXPERTS = 8, HIDDEN_DIM = 256 };

int main(void) {
  static _Alignas(16) uint16_t hidden_states[NUM_TOKENS][HIDDEN_DIM];    /* bfloat16 */
  static _Alignas(16) uint16_t router_weights[NUM_EXPERTS][HIDDEN_DIM];  /* bfloat16 */
  static _Alignas(16) float logits[NUM_TOKENS][NUM_EXPERTS];
  for (int m = 0; m < NUM_TOKENS; m++)
    for (int k = 0; k < HIDDEN_DIM; k++)
      hidden_states[m][k] = m ? 0x4000 : 0x3f80; /* 2.0 and 1.0 */
  for (int n = 0; n < NUM_EXPERTS; n++)
    for (int k = 0; k <= n; k++)
      router_weights[n][k] = 0x3f80; /* expert n sums n + 1 values */

  sgl_jit_tensor a = {hidden_states, SGL_JIT_DTYPE_BFLOAT16, SGL_JIT_DEVICE_CPU, 0, 2,
                      (int64_t[]){NUM_TOKENS, HIDDEN_DIM}, (int64_t[]){HIDDEN_DIM, 1}};
  sgl_jit_tensor b = {router_weights, SGL_JIT_DTYPE_BFLOAT16, SGL_JIT_DEVICE_CPU, 0, 2,
                      (int64_t[]){NUM_EXPERTS, HIDDEN_DIM}, (int64_t[]){HIDDEN_DIM, 1}};
  sgl_jit_tensor out = {logits, SGL_JIT_DTYPE_FLOAT32, SGL_JIT_DEVICE_CPU, 0, 2,
                        (int64_t[]){NUM_TOKENS, NUM_EXPERTS}, (int64_t[]){NUM_EXPERTS, 1}};
  char message[256];
  sgl_jit_status status = sgl_jit_set_backend(SGL_JIT_BACKEND_REFERENCE, message, sizeof message);
  if (status == SGL_JIT_OK)
    status = sgl_jit_dsv3_router_gemm(&out, &a, &b, NULL, message, sizeof message);
  if (status != SGL_JIT_OK) {
    fprintf(stderr, "%s: %s\n", sgl_jit_status_name(status), message);
    return 1;
  }
  for (int m = 0; m < NUM_TOKENS; m++) {
    printf("token %d:", m);
    for (int n = 0; n < NUM_EXPERTS; n++)
      printf(" %4.1f", logits[m][n]);
    printf("\n");
  }
  for (int n = 0; n < NUM_EXPERTS; n++)
    if (logits[0][n] != (float)(n + 1) || logits[1][n] != 2.0f * (float)(n + 1))
      return 1;
  return 0;
}
