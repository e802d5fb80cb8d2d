#define GLUE_(a, b) a##b
#define GLUE(a, b) GLUE_(a, b)
#define ROUTER(suffix) GLUE(dsv3_, suffix)
#define SPACE sgl_kernel
#define OTHER_SPACE my_kernel
