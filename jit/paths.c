/* Which entry point computes what: the table of paths, and the grid and block that go with a shape. */
#include "internal.h"
#include <stdio.h>

static const struct jit_path router_paths[] = {
    {"router_1", 1}, {"router_2", 2}, {"router_4", 4}, {"router_8", 8}, {"router_16", 16},
};
static const struct jit_path fused_a_paths[] = {
    {"fused_a_8", 8},
    {"fused_a_16", 16},
    {"fused_a_32", 32},
    {"fused_a_64", 64},
};

enum {
  FUSED_A_PITCH = 20, /* 16 columns, and 4 more: the 32 stores of a warp then go to 32 banks */
};

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

/* Experts of a block: so many that the 132 multiprocessors of an H100 or H200 have one block each, at most 4. */
static int router_columns(int n) {
  if (n <= 132)
    return 1;
  if (n <= 264)
    return 2;
  return n <= 396 && n % 3 == 0 ? 3 : 4;
}

static void define(struct jit_plan *plan, const char *name, int value) {
  snprintf(plan->options[plan->option_count++], sizeof plan->options[0], "-D%s=%d", name, value);
}

void jit_plan(enum jit_op op, int n, int k, bool output_f32, struct jit_plan *plan) {
  *plan = (struct jit_plan){0};
  define(plan, "N", n);
  define(plan, "K", k);
  if (op == JIT_ROUTER) {
    plan->paths = router_paths;
    plan->path_count = sizeof router_paths / sizeof router_paths[0];
    plan->warps = warps_for(k / 256, 8); /* a warp loads 32 x 8 values at a time */
    plan->columns = router_columns(n);
    plan->token_floats = plan->columns;
    define(plan, "ROWS", plan->columns);
    define(plan, "OUTPUT_F32", output_f32);
  } else {
    plan->paths = fused_a_paths;
    plan->path_count = sizeof fused_a_paths / sizeof fused_a_paths[0];
    plan->warps = warps_for(k / 64, 14); /* a warp loads 64 values of 16 rows at a time */
    plan->columns = 16;
    plan->token_floats = FUSED_A_PITCH;
    define(plan, "PITCH", FUSED_A_PITCH);
  }
  define(plan, "WARPS", plan->warps);
}

int jit_plan_shared(const struct jit_plan *plan, int path) {
  return plan->warps * plan->paths[path].tokens * plan->token_floats * (int)sizeof(float);
}
