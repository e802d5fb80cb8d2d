/* A second copy of the compat library from another folder: it has the old functions too, and they must not be taken for
 * an old wheel's. */
extern int copy_calls;
__attribute__((visibility("default"))) int copy_calls;

const char *sgl_compat_version(void);
__attribute__((visibility("default"))) const char *sgl_compat_version(void) {
  return "0.0.1";
}

__attribute__((visibility("default"))) void
router(void *output, const void *mat_a, const void *mat_b) __asm__("_Z16dsv3_router_gemmRN2at6TensorERKS0_S3_");

void router(void *output, const void *mat_a, const void *mat_b) {
  (void)output, (void)mat_a, (void)mat_b;
  copy_calls++;
}
