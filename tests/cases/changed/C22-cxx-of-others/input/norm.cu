// Not sgl_kernel's.
void rmsnorm(float *out, const float *in, int rows) {}
void run(float *x) { rmsnorm(x, x, 4); }
