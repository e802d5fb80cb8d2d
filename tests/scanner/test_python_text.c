/* Names found by text alone: programs in strings, loader strings, owners. */
#include "scanner/python_front.h"
#include "tests/unit.h"

#include <stdlib.h>

static struct scan scan;
static struct arena arena;

static void open_rules(void) {
  scan = (struct scan){.catalog = &catalog_builtin, .options = {"0.4.6", "0.5.18"}};
  rules_build(&scan);
}

static void close_rules(void) {
  rules_free(&scan);
  arena_free(&arena);
}

static char out[512];

static void collect(void *user, size_t offset, const struct catalog_symbol *symbol, enum py_text_use use) {
  (void)user;
  size_t used = strlen(out);
  snprintf(out + used, sizeof out - used, "%s%zu:%s:%c", used ? " " : "", offset, symbol->id,
           use == PY_TEXT_IMPORT      ? 'i'
           : use == PY_TEXT_QUALIFIED ? 'q'
                                      : 'b');
}

static const char *uses(const char *text) {
  out[0] = '\0';
  py_find_uses(&scan, (const uint8_t *)text, strlen(text), collect, NULL);
  return out;
}

static void programs(void) {
  open_rules();
  UNIT_STRINGS(uses("from sgl_kernel import dsv3_router_gemm"), "23:dsv3_router_gemm:i");
  UNIT_STRINGS(uses("python -c 'from sgl_kernel.gemm import gelu, dsv3_router_gemm as d, bmm_fp8'"),
               "45:dsv3_router_gemm:i 68:bmm_fp8:i");
  UNIT_STRINGS(uses("from sgl_kernel import (gelu, # bmm_fp8\n bmm_fp8,\n)\nbmm_fp8(1)"), "41:bmm_fp8:i");
  UNIT_STRINGS(uses("from sgl_kernel import gelu, \\\n  bmm_fp8"), "33:bmm_fp8:i");
  UNIT_STRINGS(uses("from sgl_kernel import gelu\nbmm_fp8"), "");
  UNIT_STRINGS(uses("import sgl_kernel; sgl_kernel.bmm_fp8(1)"), "30:bmm_fp8:q");
  UNIT_STRINGS(uses("import os, sgl_kernel.gemm as g\ng.bmm_fp8"), "34:bmm_fp8:q");
  UNIT_STRINGS(uses("from sgl_kernel import gemm as g\ng.bmm_fp8"), "35:bmm_fp8:q");
  UNIT_STRINGS(uses("sgl_kernel.gemm.bmm_fp8(1)"), "16:bmm_fp8:b");
  UNIT_STRINGS(uses("torch.ops.sgl_kernel.bmm_fp8.default(1)"), "21:bmm_fp8:q");
  UNIT_STRINGS(uses("torch.ops.other.bmm_fp8(1); my.sgl_kernel.bmm_fp8; sgl_kernel_npu.bmm_fp8; sgl_kernels.bmm_fp8"),
               "");
  UNIT_STRINGS(uses("from flashinfer import bmm_fp8; from .sgl_kernel import bmm_fp8; from sgl_kernelx import bmm_fp8"),
               "");
  UNIT_STRINGS(uses("# from sgl_kernel import bmm_fp8\nx # sgl_kernel.bmm_fp8"), "");
  UNIT_STRINGS(uses("from sglang.jit_kernel.dsv3_router_gemm import dsv3_router_gemm"), "47:dsv3_router_gemm:i");
  UNIT_STRINGS(uses("from sgl_kernel import"), "");
  UNIT_STRINGS(uses("from"), "");
  UNIT_STRINGS(uses("import sgl_kernel as"), "");
  UNIT_STRINGS(uses(""), "");
  close_rules();
}

/* "offset:symbol" of a loader string, or "". */
static const char *loader(const char *text) {
  const struct catalog_symbol *symbol;
  size_t at = py_loader_name(&scan, (const uint8_t *)text, 0, strlen(text), &symbol);
  out[0] = '\0';
  if (at != SIZE_MAX)
    snprintf(out, sizeof out, "%zu:%s", at, symbol->id);
  return out;
}

static void loader_strings(void) {
  open_rules();
  UNIT_STRINGS(loader("sgl_kernel.bmm_fp8"), "11:bmm_fp8");
  UNIT_STRINGS(loader("  sgl_kernel.gemm.bmm_fp8\t"), "18:bmm_fp8");
  UNIT_STRINGS(loader("sgl_kernel:bmm_fp8"), "11:bmm_fp8");
  UNIT_STRINGS(loader("sgl_kernel.gemm:bmm_fp8 [extra]"), "16:bmm_fp8");
  UNIT_STRINGS(loader("my-label = sgl_kernel:bmm_fp8"), "22:bmm_fp8");
  UNIT_STRINGS(loader("sgl_kernel::bmm_fp8"), "12:bmm_fp8");
  UNIT_STRINGS(loader("sgl_kernel::bmm_fp8.default"), "12:bmm_fp8");
  UNIT_STRINGS(loader("sgl_kernel::bmm_fp8(Tensor a) -> ()"), "12:bmm_fp8");
  UNIT_STRINGS(loader("torch.ops.sgl_kernel.bmm_fp8"), "21:bmm_fp8");
  UNIT_STRINGS(loader("sgl_kernel::store_kv_cache"), "12:set_kv_buffer_kernel");
  UNIT_STRINGS(loader("sglang.jit_kernel.dsv3_router_gemm:dsv3_router_gemm"), "35:dsv3_router_gemm");
  static const char *const others[] = {"bmm_fp8",
                                       "sgl_kernel",
                                       "sgl_kernel.moe.bmm_fp8",
                                       "sgl_kernel.silu_and_mul",
                                       "sgl_kernel.bmm_fp8 is",
                                       "use sgl_kernel:bmm_fp8",
                                       "sgl_kernel_npu:bmm_fp8",
                                       "my.sgl_kernel.bmm_fp8",
                                       "other::bmm_fp8",
                                       "sgl_kernel/bmm_fp8",
                                       "sgl_kernel:bmm_fp8x",
                                       "sgl_kernel:",
                                       "= sgl_kernel",
                                       "",
                                       "sgl_kernel::bmm_fp8 -> x"};
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    UNIT_STRINGS(loader(others[i]), "");
  close_rules();
}

/* Who owns the last word "bmm_fp8" of a text: "none", "other" or the symbol. */
static const char *owner(const char *text) {
  const uint8_t *bytes = (const uint8_t *)text;
  size_t at = (size_t)(strstr(text, "bmm_fp8") - text);
  const struct catalog_symbol *symbol = NULL;
  const char *path;
  enum py_owner who = py_owner_before(&scan, &arena, bytes, at, 7, &symbol, &path);
  return who == PY_OWNER_NONE ? "none" : who == PY_OWNER_OTHER ? "other" : symbol->id;
}

static void owners(void) {
  open_rules();
  UNIT_STRINGS(owner("calls bmm_fp8"), "none");
  UNIT_STRINGS(owner("bmm_fp8"), "none");
  UNIT_STRINGS(owner("`::bmm_fp8`"), "none");
  UNIT_STRINGS(owner("sgl_kernel.bmm_fp8"), "bmm_fp8");
  UNIT_STRINGS(owner("(torch.ops.sgl_kernel.bmm_fp8)"), "bmm_fp8");
  UNIT_STRINGS(owner("sgl_kernel::bmm_fp8"), "bmm_fp8");
  UNIT_STRINGS(owner("sgl_kernel.gemm:bmm_fp8"), "bmm_fp8");
  UNIT_STRINGS(owner("from sgl_kernel import silu, bmm_fp8"), "bmm_fp8");
  UNIT_STRINGS(owner("from flashinfer import silu, bmm_fp8"), "other");
  UNIT_STRINGS(owner("from . import bmm_fp8"), "other");
  UNIT_STRINGS(owner("from flashinfer import silu\nbmm_fp8"), "none");
  UNIT_STRINGS(owner("taken from there: bmm_fp8"), "none");
  UNIT_STRINGS(owner("flashinfer.bmm_fp8"), "other");
  UNIT_STRINGS(owner("sgl_kernel.moe.bmm_fp8"), "other");
  UNIT_STRINGS(owner("torch.ops.other.bmm_fp8"), "other");
  UNIT_STRINGS(owner("_C::bmm_fp8"), "other");
  UNIT_STRINGS(owner("f().bmm_fp8"), "other");
  UNIT_STRINGS(owner("my_sgl_kernel.bmm_fp8"), "other");
  close_rules();
}

static const struct unit_test tests[] = {
    {"programs", programs},
    {"loader_strings", loader_strings},
    {"owners", owners},
};

UNIT_MAIN("python_text", tests)
