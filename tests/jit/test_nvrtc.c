/* Every kernel through the real NVRTC, for every kind of device it is meant for: what comes is machine code with all
 * entry points, within the device's registers and shared memory, and without spills. */
#include "jit/internal.h"
#include "tests/unit.h"
#include <elf.h>
#include <stdlib.h>
#include <unistd.h>

/* CUDA C++ Programming Guide, technical specifications: the most shared memory of a block, after opting in. */
static const struct device {
  int major, minor;
  const char *target;
  int shared_bytes;
} devices[] = {
    {8, 0, "sm_80", 163 << 10},    {8, 6, "sm_86", 99 << 10},     {8, 9, "sm_89", 99 << 10},
    {9, 0, "sm_90a", 227 << 10},   {10, 0, "sm_100a", 227 << 10}, {10, 3, "sm_103a", 227 << 10},
    {11, 0, "sm_110a", 227 << 10}, {12, 0, "sm_120a", 99 << 10},
};
#define DEVICES (sizeof devices / sizeof devices[0])

/* Shapes of the models and of the edges; those with `everywhere` for every device, the others for one. */
static const struct shape {
  enum jit_op op;
  int n, k;
  bool f32, everywhere;
} shapes[] = {
    {JIT_ROUTER, 256, 7168, true, true},     {JIT_ROUTER, 384, 7168, false, true},
    {JIT_ROUTER, 1024, 256, true, true},     {JIT_ROUTER, 256, 7168, false, false},
    {JIT_ROUTER, 384, 7168, true, false},    {JIT_ROUTER, 256, 6144, true, false},
    {JIT_ROUTER, 8, 1024, true, false},      {JIT_ROUTER, 1024, 6144, false, false},
    {JIT_ROUTER, 128, 9472, true, false},    {JIT_FUSED_A, 2112, 7168, false, true},
    {JIT_FUSED_A, 4096, 2048, false, true},  {JIT_FUSED_A, 16, 256, false, true},
    {JIT_FUSED_A, 2624, 6144, false, false}, {JIT_FUSED_A, 576, 1536, false, false},
};
#define SHAPES (sizeof shapes / sizeof shapes[0])

/* On this machine, or where `make deps` puts it when there is none. */
static const struct jit_compiler *compiler(void) {
  static const struct jit_compiler *found;
  char text[224];
  struct jit_message m = {text, sizeof text, NULL};
  if (found || jit_compiler(13000, &found, m) == SGL_JIT_OK)
    return found;
  const char *build = getenv("BUILD_DIR");
  static const char *const folders[] = {"cu13", "cuda_nvrtc"};
  for (int i = 0; build && i < 2; i++)
    for (int up = 0; up < 2; up++) { /* a variant's folder lies below the one with the dependencies */
      char path[4096];
      snprintf(path, sizeof path, "%s/%sdeps/nvrtc/nvidia/%s/lib/libnvrtc.so.%d", build, up ? "../" : "", folders[i],
               13 - i);
      if (access(path, R_OK) != 0)
        continue;
      setenv("SGL_KERNEL_JIT_NVRTC", path, 1);
      if (jit_compiler(13000, &found, m) == SGL_JIT_OK)
        return found;
    }
  UNIT_SKIP("no NVRTC: %s", text);
  return NULL;
}

/* --- what a cubin says of its entry points --- */

struct entry {
  char name[64];
  int registers, frame; /* -1: not said */
  bool is_code;
};

struct cubin {
  const unsigned char *data;
  size_t size;
  const Elf64_Ehdr *header;
  const Elf64_Shdr *sections;
};

static const char *section_name(const struct cubin *c, const Elf64_Shdr *s) {
  return (const char *)c->data + c->sections[c->header->e_shstrndx].sh_offset + s->sh_name;
}

static const Elf64_Shdr *section(const struct cubin *c, const char *name) {
  for (int i = 0; i < c->header->e_shnum; i++)
    if (strcmp(section_name(c, &c->sections[i]), name) == 0)
      return &c->sections[i];
  return NULL;
}

static bool open_cubin(const struct jit_image *image, struct cubin *c) {
  c->data = image->data;
  c->size = image->size;
  c->header = image->data;
  if (c->size < sizeof *c->header || memcmp(c->header->e_ident, ELFMAG, SELFMAG) != 0)
    return false;
  c->sections = (const Elf64_Shdr *)(c->data + c->header->e_shoff);
  return c->header->e_shoff + c->header->e_shnum * sizeof *c->sections <= c->size;
}

/* Registers and stack frame of a function, from the attribute list .nv.info: format, attribute, size, (symbol, value).
 */
static void read_info(const struct cubin *c, struct entry *e) {
  enum { FORMAT_SIZED = 4, FRAME_SIZE = 0x11, REGISTER_COUNT = 0x2f };
  const Elf64_Shdr *info = section(c, ".nv.info"), *symbols = section(c, ".symtab");
  char text_name[96];
  snprintf(text_name, sizeof text_name, ".text.%s", e->name);
  e->is_code = section(c, text_name) && section(c, text_name)->sh_size > 0;
  e->registers = e->frame = -1;
  if (!info || !symbols)
    return;
  const Elf64_Sym *symbol = (const Elf64_Sym *)(c->data + symbols->sh_offset);
  const char *names = (const char *)c->data + c->sections[symbols->sh_link].sh_offset;
  for (const unsigned char *p = c->data + info->sh_offset, *end = p + info->sh_size; p + 4 <= end;) {
    uint16_t size = (uint16_t)(p[2] | p[3] << 8);
    uint32_t pair[2];
    if (p[0] != FORMAT_SIZED) {
      p += 4;
      continue;
    }
    if (size >= sizeof pair) {
      memcpy(pair, p + 4, sizeof pair);
      if (strcmp(names + symbol[pair[0]].st_name, e->name) == 0) {
        if (p[1] == FRAME_SIZE)
          e->frame = (int)pair[1];
        if (p[1] == REGISTER_COUNT)
          e->registers = (int)pair[1];
      }
    }
    p += 4 + size;
  }
}

static void check_image(const struct device *d, const struct shape *s, const struct jit_plan *plan,
                        const struct jit_image *image) {
  enum { MACHINE_CUDA = 190, REGISTERS = 65536, BANK = 16384 };
  struct cubin c;
  CU_ASSERT_FATAL(open_cubin(image, &c));
  CU_ASSERT_EQUAL(c.header->e_machine, MACHINE_CUDA);
  /* All shared memory is dynamic, and counted in the plan. From 9.0 on the driver has 1 KiB for itself, beside. */
  Elf64_Xword reserved = d->major >= 9 ? 1024 : 0;
  for (int i = 0; i < c.header->e_shnum; i++)
    CU_ASSERT(strncmp(section_name(&c, &c.sections[i]), ".nv.shared.", 11) != 0 || c.sections[i].sh_size <= reserved);
  for (int i = 0; i < plan->path_count; i++) {
    struct entry e;
    snprintf(e.name, sizeof e.name, "%s", plan->paths[i].entry);
    read_info(&c, &e);
    /* A multiprocessor has four register banks, a warp's registers are in one. */
    int bank_warps = (plan->paths[i].threads / 32 + 3) / 4;
    bool fits = e.is_code && e.registers > 0 && (e.registers + 7) / 8 * 8 * 32 * bank_warps <= BANK &&
                plan->paths[i].shared <= d->shared_bytes;
    if (!fits || e.frame != 0)
      fprintf(stderr, "  %s %s %dx%d: code %d, registers %d, frame %d, shared %d\n", d->target, e.name, s->n, s->k,
              e.is_code, e.registers, e.frame, plan->paths[i].shared);
    CU_ASSERT(fits);
    CU_ASSERT_EQUAL(e.frame, 0); /* a spill is a stack frame */
  }
}

static void compile_one(const struct jit_compiler *c, const struct device *d, const struct shape *s) {
  struct jit_target target = jit_target_for(c, d->major, d->minor);
  char text[1024] = "";
  struct jit_plan plan;
  struct jit_image image = {NULL, 0};
  jit_plan(s->op, s->n, s->k, s->f32, SGL_JIT_PDL_OFF, d->major * 10 + d->minor, d->shared_bytes, &plan);
  CU_ASSERT_EQUAL(jit_shared_limit(d->major * 10 + d->minor), d->shared_bytes);
  sgl_jit_status status = jit_compile(c, s->op, &plan, &target, &image, (struct jit_message){text, sizeof text, NULL});
  if (status != SGL_JIT_OK)
    fprintf(stderr, "  %s %s %dx%d: %s\n", target.name, jit_op_name(s->op), s->n, s->k, text);
  CU_ASSERT_FATAL(status == SGL_JIT_OK);
  check_image(d, s, &plan, &image);
  free(image.data);
}

static void compile_all(enum jit_op op) {
  const struct jit_compiler *c = compiler();
  if (!c)
    return;
  for (size_t d = 0; d < DEVICES; d++) {
    UNIT_STRINGS(jit_target_for(c, devices[d].major, devices[d].minor).name, devices[d].target);
    for (size_t s = 0; s < SHAPES; s++)
      if (shapes[s].op == op && (shapes[s].everywhere || devices[d].major == 9))
        compile_one(c, &devices[d], &shapes[s]);
  }
}

static void router(void) {
  compile_all(JIT_ROUTER);
}

static void fused_a(void) {
  compile_all(JIT_FUSED_A);
}

/* The operators with one kernel for every shape, for every device. */
static void native(void) {
  const struct jit_compiler *c = compiler();
  for (int op = 0; c && op < JIT_OPS; op++)
    for (size_t d = 0; d < DEVICES && !jit_has_shape((enum jit_op)op); d++)
      compile_one(c, &devices[d], &(struct shape){.op = (enum jit_op)op});
}

/* A device that the compiler does not know gets the best that it can run. */
static void unknown_devices(void) {
  const struct jit_compiler *c = compiler();
  if (!c)
    return;
  UNIT_STRINGS(jit_target_for(c, 8, 9).name, "sm_89");
  UNIT_STRINGS(jit_target_for(c, 9, 9).name, "sm_90");
  UNIT_STRINGS(jit_target_for(c, 99, 0).name[0] == 'c' ? "PTX" : "not PTX", "PTX");
  struct jit_target ptx = jit_target_for(c, 99, 0);
  struct jit_plan plan;
  struct jit_image image;
  char text[512] = "";
  jit_plan(JIT_ROUTER, 256, 7168, true, SGL_JIT_PDL_OFF, 90, jit_shared_limit(90), &plan);
  sgl_jit_status status =
      jit_compile(c, JIT_ROUTER, &plan, &ptx, &image, (struct jit_message){text, sizeof text, NULL});
  if (status != SGL_JIT_OK)
    fprintf(stderr, "  %s: %s\n", ptx.name, text);
  CU_ASSERT_FATAL(status == SGL_JIT_OK);
  UNIT_CONTAINS((const char *)image.data, ".entry router_16");
  free(image.data);
}

/* How often an opcode stands in an entry's machine code before the first `end`, or, without that one, in all of it.
 * From 8.0 to 12.0 an instruction has 16 bytes, the opcode in the lowest 12 bits. */
static int instructions(const struct cubin *c, const char *entry, unsigned opcode, unsigned end) {
  char name[64];
  int count = 0;
  snprintf(name, sizeof name, ".text.%s", entry);
  const Elf64_Shdr *code = section(c, name);
  for (size_t at = 0; code && at + 16 <= code->sh_size; at += 16) {
    const unsigned char *p = c->data + code->sh_offset + at;
    unsigned found = ((unsigned)p[0] | (unsigned)p[1] << 8) % 4096;
    if (found == end)
      return count;
    count += found == opcode;
  }
  return count;
}

/* What an entry reads before it waits for the kernel before: nothing without prefetch, with it the first weights. Not
 * launched to overlap, there is no instruction for it at all. */
static void reads_before_the_wait(void) {
  enum { LDG = 0x981, LDGSTS = 0xfae, ACQBULK = 0x82e, PREEXIT = 0x82d, NEVER = 4096 }; /* as nvdisasm names them */
  const struct jit_compiler *c = compiler();
  if (!c)
    return;
  static const struct {
    enum jit_op op;
    int n, k;
  } cases[] = {{JIT_ROUTER, 256, 256}, {JIT_ROUTER, 384, 2304}, {JIT_ROUTER, 256, 7168}, {JIT_FUSED_A, 2112, 7168}};
  for (int i = 0; i < 4; i++) {
    for (int pdl = SGL_JIT_PDL_OFF; pdl <= SGL_JIT_PDL_NO_PREFETCH; pdl++) {
      struct jit_target target = jit_target_for(c, 9, 0);
      struct jit_plan plan;
      struct jit_image image = {NULL, 0};
      struct cubin cubin;
      jit_plan(cases[i].op, cases[i].n, cases[i].k, cases[i].op == JIT_ROUTER, (sgl_jit_pdl)pdl, 90,
               jit_shared_limit(90), &plan);
      CU_ASSERT_FATAL(jit_compile(c, cases[i].op, &plan, &target, &image, (struct jit_message){NULL, 0, NULL}) ==
                      SGL_JIT_OK);
      CU_ASSERT_FATAL(open_cubin(&image, &cubin));
      for (int e = 0; e < plan.path_count; e++) {
        const char *entry = plan.paths[e].entry;
        int early = instructions(&cubin, entry, LDG, ACQBULK) + instructions(&cubin, entry, LDGSTS, ACQBULK);
        int all = instructions(&cubin, entry, LDG, NEVER) + instructions(&cubin, entry, LDGSTS, NEVER);
        CU_ASSERT_EQUAL(instructions(&cubin, entry, ACQBULK, NEVER), pdl != SGL_JIT_PDL_OFF);
        CU_ASSERT_EQUAL(instructions(&cubin, entry, PREEXIT, NEVER), pdl != SGL_JIT_PDL_OFF);
        CU_ASSERT(all > 0);
        if (pdl == SGL_JIT_PDL_ON)
          CU_ASSERT(early > 0 && early < all);
        if (pdl == SGL_JIT_PDL_NO_PREFETCH)
          CU_ASSERT_EQUAL(early, 0);
      }
      free(image.data);
    }
  }
}

static void refused(void) {
  const struct jit_compiler *c = compiler();
  if (!c)
    return;
  struct jit_plan plan;
  struct jit_image image;
  struct jit_target target = jit_target_for(c, 9, 0);
  char text[512] = "";
  jit_plan(JIT_ROUTER, 256, 7168, true, SGL_JIT_PDL_OFF, 90, jit_shared_limit(90), &plan);
  strcpy(plan.options[0], "-DN=%");
  CU_ASSERT_EQUAL(jit_compile(c, JIT_ROUTER, &plan, &target, &image, (struct jit_message){text, sizeof text, "f"}),
                  SGL_JIT_ERROR_COMPILE);
  UNIT_CONTAINS(text, "f: NVRTC ");
  UNIT_CONTAINS(text, "dsv3_router_gemm(");
  UNIT_CONTAINS(text, "error: ");
  CU_ASSERT(strchr(text, '\n') == NULL);
}

static const struct unit_test tests[] = {{"router", router},
                                         {"fused_a", fused_a},
                                         {"native", native},
                                         {"unknown_devices", unknown_devices},
                                         {"reads_before_the_wait", reads_before_the_wait},
                                         {"refused", refused}};
UNIT_MAIN("jit/nvrtc", tests)
