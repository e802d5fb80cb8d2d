/* Which entry point computes what: the table of paths, and the grid, block and ring that go with a shape on a device.
 *
 * The constants are for an H200, from the measurements in docs/performance.md; elsewhere they are legal, not tuned. */
#include "internal.h"
#include <stdio.h>

enum {
  DOT_WARPS = 14,                        /* at most; 2 rounds of 14 warps x 256 values make 7168 */
  FUSED_A_TILE = 16,                     /* 2112 columns make 132 tiles, one for each multiprocessor */
  FUSED_A_TILE_32 = 32,                  /* for more than 16 tokens: half as many blocks read them */
  FUSED_A_WARPS = 4,                     /* at most, each with many units under way */
  FUSED_A_DEPTH = 8,                     /* units under way for each warp: 4 x 2 KB x 8 of weights for a block */
  FUSED_A_DEPTH_32 = 4,                  /* the same with 32 tokens and 32 columns: 4 x 4 KB x 4 */
  ROUTER_TILE = 32,                      /* fewer re-reads of the tokens than with 16 */
  ROUTER_CLUSTER = 8,                    /* the most that every device with clusters has */
  ROUTER_WARPS = 8,                      /* at most */
  MOST_TOKENS = 64,                      /* of a call */
  UNIT_LINE = 128,                       /* bytes of a row in a unit, as LINE in tensor_gemm.cuh */
  CLUSTERS_SINCE = 90,                   /* compute capability */
  HADAMARD_SHARED = 32768 / 64 * 72 * 4, /* the longest row, as hadamard_transform.cu has it */
};

/* Shared memory that a block may have, in bytes, by compute capability. (CUDA C++ Programming Guide, technical
 * specifications per compute capability: "maximum amount of shared memory per thread block") */
static const struct {
  int capability, bytes;
} shared_limits[] = {{80, 166912},  {86, 101376},  {87, 166912},  {89, 101376},  {90, 232448},
                     {100, 232448}, {101, 232448}, {103, 232448}, {110, 232448}, {120, 101376}};

int jit_shared_limit(int capability) {
  int bytes = 101376; /* of a newer one: what all have */
  for (size_t i = 0; i < sizeof shared_limits / sizeof shared_limits[0]; i++)
    if (shared_limits[i].capability == capability)
      bytes = shared_limits[i].bytes;
  return bytes;
}

/* How many warps share `pieces` of work: at most `most` and, where there are enough pieces, at least half of that; as
 * few idle turns as possible, then as many warps as possible. */
static int warps_for(int pieces, int most) {
  if (pieces <= most / 2)
    return pieces;
  int best = most, best_turns = 0;
  for (int warps = most; warps >= most / 2; warps--) {
    int turns = (pieces + warps - 1) / warps * warps;
    if (!best_turns || turns < best_turns) {
      best = warps;
      best_turns = turns;
    }
  }
  return best;
}

static void define(struct jit_plan *plan, const char *name, int value) {
  snprintf(plan->options[plan->option_count++], sizeof plan->options[0], "-D%s=%d", name, value);
}

/* Experts of a block of dot products. One token: fewer blocks that read it, 86 of 132 multiprocessors are enough for
 * 256 experts. Two tokens: two, so that the sums stay short. */
static int dot_rows(int n, int tokens) {
  if (n > 384)
    return 4;
  return tokens == 1 && n > 128 ? 3 : 2;
}

static void add_dot(struct jit_plan *plan, const char *entry, int n, int tokens, int warps) {
  int rows = dot_rows(n, tokens);
  plan->paths[plan->path_count++] = (struct jit_path){.entry = entry,
                                                      .tokens = tokens,
                                                      .most = tokens,
                                                      .blocks = (n + rows - 1) / rows,
                                                      .threads = warps * 32,
                                                      .shared = tokens * rows * ((warps + 3) / 4 * 4) * 4};
}

/* What tensor_gemm.cuh is compiled for. */
struct tensor {
  int n, tile, cluster, warps, units;
};

static struct tensor tensor_for(enum jit_op op, int n, int k, int capability) {
  struct tensor t = {.n = n, .tile = op == JIT_ROUTER && n > 16 ? ROUTER_TILE : FUSED_A_TILE, .cluster = 1};
  if (op == JIT_ROUTER && capability >= CLUSTERS_SINCE)
    t.cluster = k / 64 % ROUTER_CLUSTER == 0 ? ROUTER_CLUSTER : 4; /* k is a multiple of 256 */
  int units = k / 64 / t.cluster;
  t.warps = warps_for(units, op == JIT_ROUTER ? ROUTER_WARPS : FUSED_A_WARPS);
  t.units = (units + t.warps - 1) / t.warps;
  return t;
}

/* What lies in the ring of each warp, as in tensor_gemm.cuh: all units at once, or one more than are under way. */
static bool is_resident(const struct tensor *t, int depth) {
  return depth >= t->units;
}

static int tensor_shared(const struct tensor *t, int tokens, int depth) {
  int slots = is_resident(t, depth) ? t->units : depth + 1;
  int bytes = t->warps * slots * (t->tile + tokens) * UNIT_LINE;
  if (t->cluster > 1) /* what the other blocks push, and the barrier */
    bytes += t->cluster * ((tokens + t->cluster - 1) / t->cluster) * t->tile * 4 + 8;
  return bytes;
}

static void add_tensor(struct jit_plan *plan, const struct tensor *t, const char *entry, int tokens, int most,
                       int depth) {
  plan->paths[plan->path_count++] = (struct jit_path){.entry = entry,
                                                      .tokens = tokens,
                                                      .most = most,
                                                      .blocks = (t->n + t->tile - 1) / t->tile * t->cluster,
                                                      .threads = t->warps * 32,
                                                      .shared = tensor_shared(t, tokens, depth),
                                                      .invariant = true};
}

/* As many units under way as `most` and the shared memory allow; 0 when not even one fits. */
static int depth_for(const struct tensor *t, int tokens, int most, int shared_limit) {
  int depth = most < t->units ? most : t->units;
  while (depth > 0 && tensor_shared(t, tokens, depth) > shared_limit)
    depth--;
  return depth;
}

/* The entry points of an operator for every shape, in the order of the numbers in jit_step. */
static void plan_native(enum jit_op op, int shared_limit, struct jit_plan *plan) {
  static const struct native {
    const char *entries[JIT_MAX_PATHS + 1];
    int threads, shared;
  } natives[JIT_OPS] = {
      [JIT_DOWNCAST_FP8] = {{"downcast_bf16", "downcast_fp16", "downcast_bf16_any", "downcast_fp16_any"}, 256, 0},
      [JIT_PER_TENSOR_QUANT_FP8] =
          {{"absmax_fp32", "absmax_bf16", "absmax_fp16", "quant_fp32", "quant_bf16", "quant_fp16"}, 512, 64},
      [JIT_MERGE_STATE] = {{"merge_bf16", "merge_fp16", "merge_bf16_any", "merge_fp16_any"}, 256, 0},
      [JIT_HADAMARD] = {{"hadamard_fp32", "hadamard_bf16", "hadamard_fp16"}, 1024, HADAMARD_SHARED},
      [JIT_SEGMENT_PACKBITS] = {{"packbits_all"}, 256, 0},
      [JIT_SET_KV_BUFFER] = {{"store_16", "store_8"}, 256, 0},
  };
  const struct native *n = &natives[op];
  for (int i = 0; n->entries[i]; i++)
    plan->paths[plan->path_count++] = (struct jit_path){.entry = n->entries[i],
                                                        .threads = n->threads,
                                                        .shared = n->shared < shared_limit ? n->shared : shared_limit,
                                                        .invariant = true};
}

void jit_plan(enum jit_op op, int n, int k, bool output_f32, sgl_jit_pdl pdl, int capability, int shared_limit,
              struct jit_plan *plan) {
  *plan = (struct jit_plan){0};
  if (!jit_has_shape(op)) {
    plan_native(op, shared_limit, plan);
    return;
  }
  struct tensor t = tensor_for(op, n, k, capability);
  define(plan, "N", n);
  define(plan, "K", k);
  define(plan, "CLUSTER", t.cluster);
  define(plan, "WARPS", t.warps);
  define(plan, "OUTPUT_F32", output_f32);
  define(plan, "PDL", (int)pdl);
  if (op == JIT_ROUTER) {
    int warps = warps_for(k / 256, DOT_WARPS);
    define(plan, "DOT_WARPS", warps);
    define(plan, "ROWS_1", dot_rows(n, 1));
    define(plan, "ROWS_2", dot_rows(n, 2));
    add_dot(plan, "router_1", n, 1, warps);
    add_dot(plan, "router_2", n, 2, warps);
    int depth = depth_for(&t, 16, t.units, shared_limit);
    define(plan, "TILE_16", t.tile);
    define(plan, "DEPTH_16", depth);
    for (int tokens = 16; depth > 0 && tokens <= MOST_TOKENS; tokens *= 2)
      if (tokens == 16 || (is_resident(&t, depth) && tensor_shared(&t, tokens, depth) <= shared_limit))
        add_tensor(plan, &t, "router_16", tokens, tokens, depth);
  } else {
    struct tensor t32 = t;
    if (n > 16)
      t32.tile = FUSED_A_TILE_32;
    int depth16 = depth_for(&t, 16, FUSED_A_DEPTH, shared_limit);
    int depth32 = depth_for(&t32, 32, FUSED_A_DEPTH_32, shared_limit);
    define(plan, "TILE_16", t.tile);
    define(plan, "DEPTH_16", depth16);
    define(plan, "TILE_32", t32.tile);
    define(plan, "DEPTH_32", depth32);
    if (depth16 > 0)
      add_tensor(plan, &t, "fused_a_16", 16, 16, depth16);
    if (depth32 > 0)
      add_tensor(plan, &t32, "fused_a_32", 32, MOST_TOKENS, depth32);
  }
}
