void fused() {}
