/* The effective policy: what wins over what, and what everything says of where it comes from. Each row and test is a
 * process of its own, with files of its own. */
#include "shim/policy.h"

#include "shim/policy_sources.h"
#include "shim/shadow.h"
#include "tests/shim/world.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>

static char folder[64];

static const char *path(const char *name) {
  static char text[4][200];
  static int next;
  snprintf(text[next = (next + 1) % 4], sizeof text[0], "%s/%s", folder, name);
  return text[next];
}

static void put(const char *name, const char *text) {
  FILE *file = fopen(path(name), "w");
  EXPECT(file != NULL);
  if (!file)
    return;
  fputs(text, file);
  fclose(file);
  chmod(path(name), 0644);
}

/* A process without any source. */
static void begin(void) {
  static const char *const variables[] = {"SGL_KERNEL_COMPAT_POLICY",
                                          "SGL_KERNEL_COMPAT_POLICY_FILE",
                                          "SGL_KERNEL_COMPAT_JOB",
                                          "SLURM_JOB_ID",
                                          "TORCHELASTIC_RUN_ID",
                                          "PMIX_NAMESPACE",
                                          "PBS_JOBID",
                                          "LSB_JOBID",
                                          "FLUX_JOB_ID",
                                          "MASTER_ADDR",
                                          "MASTER_PORT",
                                          "RANK",
                                          "XDG_CONFIG_HOME"};
  for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
    unsetenv(variables[i]);
  strcpy(folder, "/tmp/sgl-policy-XXXXXX");
  EXPECT(mkdtemp(folder) != NULL);
  static char system_file[200];
  snprintf(system_file, sizeof system_file, "%s", path("system"));
  policy_system_file = system_file;
  setenv("HOME", folder, 1);
}

static void end(void) {
  char command[200];
  snprintf(command, sizeof command, "rm -rf %s", folder);
  EXPECT(system(command) == 0);
}

static void write_user_file(const char *text) {
  mkdir(path(".config"), 0755);
  mkdir(path(".config/sgl-kernel-compat"), 0755);
  put(".config/sgl-kernel-compat/policy", text);
}

/* --- the precedence matrix ---------------------------------------------------------------------------------------- */

#define FAR "until 2999-12-31 reason r"
#define PAST "until 2001-01-01 reason r"
#define R "dsv3_router_gemm"

/* `from` is the beginning of what it says, after the folder of a file. 0.4.4 still had the router, 0.4.10 had not. */
static const struct row {
  const char *name, *system, *user, *file, *variable, *api;
  sgl_compat_stage stage;
  int set;
  const char *from;
} rows[] = {
    {"nothing", NULL, NULL, NULL, NULL, NULL, 1, 0, "the catalog"},
    {"system", R "=error", NULL, NULL, NULL, NULL, 2, 1, "system:1"},
    {"user over system", R "=error", "\n" R "=silent", NULL, NULL, NULL, 0, 1, "policy:2"},
    {"file over user", NULL, R "=error", R "=tombstone", NULL, NULL, 3, 1, "named:1"},
    {"variable over file", NULL, R "=error", R "=error", R "=warn", NULL, 1, 1, "SGL_KERNEL_COMPAT_POLICY"},
    {"api over variable", NULL, NULL, NULL, R "=warn", R "=silent", 0, 1, "test"},
    {"all five", R "=error", R "=silent", R "=tombstone", R "=error", R "=warn", 1, 1, "test"},
    {"of others", NULL, NULL, NULL, "bmm_fp8=error;awq_dequantize=silent", NULL, 1, 0, "the catalog"},

    {"a star", "*=error", NULL, NULL, NULL, NULL, 2, 1, "system:1"},
    {"name before star", R "=silent\n*=error", NULL, NULL, NULL, NULL, 0, 1, "system:1"},
    {"name after star", "*=error\n" R "=silent", NULL, NULL, NULL, NULL, 0, 1, "system:2"},
    {"star of a later source", R "=error", NULL, NULL, "*=silent", NULL, 0, 1, "SGL_KERNEL_COMPAT_POLICY"},
    {"star of an earlier source", NULL, "*=error", NULL, R "=warn", NULL, 1, 1, "SGL_KERNEL_COMPAT_POLICY"},
    {"twice", R "=error\n" R "=silent", NULL, NULL, NULL, NULL, 0, 1, "system:2"},

    {"pin with it", "default=0.4.4", NULL, NULL, NULL, NULL, 0, 1, "system:1: default = 0.4.4"},
    {"pin without it", "default=0.4.10", NULL, NULL, NULL, NULL, 1, 0, "the catalog"},
    {"later pin", "default=0.4.4", NULL, NULL, "default=0.4.10", NULL, 1, 0, "the catalog"},
    {"stage over pin", R "=error\ndefault=0.4.4", NULL, NULL, NULL, NULL, 2, 1, "system:1"},
    {"stage over later pin", R "=error", NULL, NULL, "default=0.4.4", NULL, 2, 1, "system:1"},
    {"star over pin", "*=error", NULL, NULL, "default=0.4.4", NULL, 2, 1, "system:1"},
    {"ramp over pin", "default=0.4.4\nramp " R " 100% to error", NULL, NULL, NULL, NULL, 2, 1, "system:2: ramp 100%"},
    {"deny over pin", "deny " R, NULL, NULL, "default=0.4.4", NULL, 2, 1, "system:1: deny"},

    {"deny", "deny " R, NULL, NULL, NULL, NULL, 2, 1, "system:1: deny"},
    {"deny all", "deny *", NULL, NULL, NULL, NULL, 2, 1, "system:1: deny"},
    {"deny, softened", "deny " R, NULL, NULL, R "=silent", NULL, 2, 1, "system:1: deny"},
    {"deny, later than silent", NULL, R "=silent", NULL, "deny " R, NULL, 2, 1, "SGL_KERNEL_COMPAT_POLICY: deny"},
    {"deny, harder", "deny " R, NULL, NULL, R "=tombstone", NULL, 3, 1, "SGL_KERNEL_COMPAT_POLICY"},
    {"deny, extended", "deny " R, NULL, NULL, "extend " R " " FAR, NULL, 1, 1, "SGL_KERNEL_COMPAT_POLICY: extended"},
    {"deny, same source", "deny " R "\nextend " R " " FAR, NULL, NULL, NULL, NULL, 1, 1, "system:2: extended"},
    {"deny after extension", "extend " R " " FAR, NULL, NULL, "deny " R, NULL, 2, 1, "SGL_KERNEL_COMPAT_POLICY: deny"},
    {"deny extended, then a stage", "deny " R "\nextend " R " " FAR, NULL, NULL, R "=warn", NULL, 2, 1,
     "system:1: deny"},
    {"deny after extension of an error", R "=error", "extend " R " " FAR, NULL, "deny " R, NULL, 2, 1, "system:1"},

    {"extended", R "=error\nextend " R " " FAR, NULL, NULL, NULL, NULL, 1, 1, "system:2: extended until 2999-12-31: r"},
    {"extended before", "extend " R " " FAR "\n" R "=error", NULL, NULL, NULL, NULL, 1, 1, "system:1: extended"},
    {"extended tombstone", R "=tombstone;extend " R " " FAR, NULL, NULL, NULL, NULL, 2, 1, "system:1: extended"},
    {"extended catalog", "extend " R " " FAR, NULL, NULL, NULL, NULL, 0, 1, "system:1: extended"},
    {"extended silent", R "=silent\nextend " R " " FAR, NULL, NULL, NULL, NULL, 0, 1, "system:1"},
    {"extended all", "*=error\nextend * " FAR, NULL, NULL, NULL, NULL, 1, 1, "system:2: extended"},
    {"stage over extension", "extend " R " " FAR, NULL, NULL, R "=error", NULL, 2, 1, "SGL_KERNEL_COMPAT_POLICY"},
    {"expired", "extend " R " " PAST, NULL, NULL, NULL, NULL, 2, 1,
     "system:1: the extension until 2001-01-01 has expired: r"},
    {"expired, silent", R "=silent\nextend " R " " PAST, NULL, NULL, NULL, NULL, 2, 1, "system:2: the extension"},
    {"expired, tombstone", R "=tombstone\nextend " R " " PAST, NULL, NULL, NULL, NULL, 3, 1, "system:2: the extension"},
    {"stage over expired", "extend " R " " PAST, NULL, NULL, R "=silent", NULL, 0, 1, "SGL_KERNEL_COMPAT_POLICY"},

    {"ramp, all", "ramp " R " 100% to error", NULL, NULL, NULL, NULL, 2, 1,
     "system:1: ramp 100%, SGL_KERNEL_COMPAT_JOB=7 is in it"},
    {"ramp, none", "ramp " R " 0% to error", NULL, NULL, NULL, NULL, 1, 0, "the catalog"},
    {"ramp to softer", R "=error\nramp " R " 100% to warn", NULL, NULL, NULL, NULL, 2, 1, "system:1"},
    {"ramp of a star", "ramp * 100% to tombstone", NULL, NULL, NULL, NULL, 3, 1, "system:1: ramp 100%"},
    {"ramp, later share", "ramp " R " 100% to error", NULL, NULL, "ramp " R " 0% to error", NULL, 1, 0, "the catalog"},
    {"ramp, later stage", "ramp " R " 100% to error", NULL, NULL, R "=silent", NULL, 0, 1, "SGL_KERNEL_COMPAT_POLICY"},
    {"ramp after stage", R "=silent", NULL, NULL, "ramp " R " 100% to warn", NULL, 1, 1,
     "SGL_KERNEL_COMPAT_POLICY: ramp"},
    {"ramp, denied", "deny " R, NULL, NULL, "ramp " R " 100% to warn", NULL, 2, 1, "system:1: deny"},
    {"ramp beyond deny", "deny " R, NULL, NULL, "ramp " R " 100% to tombstone", NULL, 3, 1,
     "SGL_KERNEL_COMPAT_POLICY: ramp"},
    {"ramp, extended", "ramp " R " 100% to error\nextend " R " " FAR, NULL, NULL, NULL, NULL, 1, 1,
     "system:2: extended"},
    {"ramp after extension", "extend " R " " FAR, NULL, NULL, "ramp " R " 100% to error", NULL, 2, 1,
     "SGL_KERNEL_COMPAT_POLICY: ramp"},

    {"after a fault", "nonsense\n" R "=error", NULL, NULL, NULL, NULL, 2, 1, "system:2"},
};

static const struct row *row;

static void expect_row(void *unused) {
  (void)unused;
  sgl_compat_policy policy;
  char message[300] = "";
  if (row->api)
    EXPECT(sgl_compat_policy_set(row->api, "test", message, sizeof message) == SGL_COMPAT_OK);
  EXPECT(sgl_compat_policy_get(R, &policy, message, sizeof message) == SGL_COMPAT_OK);
  const char *from = policy.stage_from;
  char prefix[300];
  snprintf(prefix, sizeof prefix, "%s/", folder);
  if (strncmp(from, prefix, strlen(prefix)) == 0)
    from += strlen(prefix);
  if (strncmp(from, ".config/sgl-kernel-compat/", 26) == 0)
    from += 26;
  if (policy.stage != row->stage || policy.is_set != row->set || strncmp(from, row->from, strlen(row->from)) != 0) {
    world_failures++;
    fprintf(stdout, "  %s: stage %d, set %d, from %s\n", row->name, policy.stage, policy.is_set, from);
  }
  uint8_t byte = policy_of(COMPAT_SYMBOL_dsv3_router_gemm);
  EXPECT(policy_stage(byte) == row->stage && !(byte & POLICY_IS_SET) == !row->set);
}

static void run_row(void) {
  begin();
  setenv("SGL_KERNEL_COMPAT_JOB", "7", 1);
  if (row->system)
    put("system", row->system);
  if (row->user)
    write_user_file(row->user);
  if (row->file) {
    put("named", row->file);
    setenv("SGL_KERNEL_COMPAT_POLICY_FILE", path("named"), 1);
  }
  if (row->variable)
    setenv("SGL_KERNEL_COMPAT_POLICY", row->variable, 1);
  const char *said = world_stderr(expect_row, NULL);
  if (world_lines(said) != (strstr(row->name, "fault") != NULL)) {
    world_failures++;
    fprintf(stderr, "  %s: says %s\n", row->name, said);
  }
  end();
}

static void precedence(void) {
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    row = &rows[i];
    world_child(run_row);
  }
}

/* --- stages of all names ------------------------------------------------------------------------------------------ */

static void built_in(void) {
  begin();
  for (unsigned i = 0; i < COMPAT_SYMBOLS; i++) {
    sgl_compat_stage stage = policy_stage(policy_of(i));
    EXPECT(stage == SGL_COMPAT_STAGE_WARN || (!compat_symbols[i].served && stage == SGL_COMPAT_STAGE_TOMBSTONE));
    UNIT_STRINGS(policy_stage_name(stage), compat_symbols[i].stage);
    EXPECT(i == 0 || strcmp(compat_symbols[i - 1].id, compat_symbols[i].id) < 0);
    EXPECT(policy_symbol(compat_symbols[i].id, strlen(compat_symbols[i].id)) == i);
  }
  EXPECT(policy_symbol("zzz", 3) == COMPAT_SYMBOLS && policy_symbol("", 0) == COMPAT_SYMBOLS);
  EXPECT(policy_symbol("bmm_fp", 6) == COMPAT_SYMBOLS && policy_symbol("bmm_fp8\0x", 9) == COMPAT_SYMBOLS);
  end();
}

/* Each name by the release that it left in. */
static void pinned(void) {
  begin();
  setenv("SGL_KERNEL_COMPAT_POLICY", "default = 0.4.4", 1);
  int quiet = 0, others = 0;
  for (unsigned i = 0; i < COMPAT_SYMBOLS; i++) {
    struct policy_facts facts = policy_facts(i);
    unsigned pin = 0, left = 0;
    while (strcmp(compat_releases[pin], "0.4.4") != 0)
      pin++;
    while (strcmp(compat_releases[left], compat_symbols[i].first_without) != 0)
      left++;
    EXPECT(facts.is_set == (left > pin) && (!facts.is_set || facts.stage == SGL_COMPAT_STAGE_SILENT));
    quiet += facts.is_set;
    others += !facts.is_set;
  }
  EXPECT(quiet > 3 && others > 3);
  end();
}

static void names(void) {
  world_child(built_in);
  world_child(pinned);
}

/* --- ramp --------------------------------------------------------------------------------------------------------- */

/* Whether a job is in a ramp of 25 % is the same in all its processes, and another matter for each job and name. */
static bool is_in(const char *job, unsigned symbol, const char *share) {
  int channel[2];
  EXPECT(pipe(channel) == 0);
  pid_t child = fork();
  if (child == 0) {
    char text[100];
    begin();
    setenv("SLURM_JOB_ID", job, 1);
    snprintf(text, sizeof text, "ramp * %s%% to tombstone", share);
    setenv("SGL_KERNEL_COMPAT_POLICY", text, 1);
    char in = policy_stage(policy_of(symbol)) == SGL_COMPAT_STAGE_TOMBSTONE;
    end();
    _exit(write(channel[1], &in, 1) != 1);
  }
  char in = 2;
  close(channel[1]);
  EXPECT(read(channel[0], &in, 1) == 1);
  close(channel[0]);
  waitpid(child, NULL, 0);
  return in;
}

static void shares(void) {
  int in = 0, differ = 0;
  for (int job = 0; job < 60; job++) {
    char text[16];
    snprintf(text, sizeof text, "%d", 1000 + job);
    bool quarter = is_in(text, COMPAT_SYMBOL_dsv3_router_gemm, "25");
    EXPECT(quarter == is_in(text, COMPAT_SYMBOL_dsv3_router_gemm, "25.0"));
    EXPECT(!quarter || is_in(text, COMPAT_SYMBOL_dsv3_router_gemm, "40")); /* who is in stays in */
    in += quarter;
    differ += quarter != is_in(text, COMPAT_SYMBOL_bmm_fp8, "25");
  }
  EXPECT(in >= 5 && in <= 27 && differ >= 5);
}

static void without_job(void) {
  begin();
  setenv("TORCHELASTIC_RUN_ID", "none", 1); /* what torchrun says without an id */
  setenv("SGL_KERNEL_COMPAT_POLICY", "ramp * 100% to error", 1);
  struct policy_facts facts = policy_facts(COMPAT_SYMBOL_dsv3_router_gemm);
  EXPECT(facts.stage == SGL_COMPAT_STAGE_WARN && !facts.is_set);
  EXPECT_CONTAINS(facts.ramp, "SGL_KERNEL_COMPAT_POLICY: 100% to error: nothing here tells the job");
  end();
}

static void seeds(void) {
  begin();
  setenv("MASTER_ADDR", "node1", 1);
  setenv("MASTER_PORT", "29500", 1);
  setenv("SGL_KERNEL_COMPAT_POLICY", "ramp * 100% to error", 1);
  EXPECT_CONTAINS(policy_facts(COMPAT_SYMBOL_dsv3_router_gemm).from, "MASTER_ADDR=node1:29500 is in it");
  end();
}

static void ramp(void) {
  world_child(shares);
  world_child(without_job);
  world_child(seeds);
}

/* --- sources ------------------------------------------------------------------------------------------------------ */

static void load(void *unused) {
  (void)unused;
  errno = 42;
  policy_of(0);
  EXPECT(errno == 42);
}

/* Loads; returns what is said. */
static const char *said(void) {
  return world_stderr(load, NULL);
}

static void faults(void) {
  begin();
  put("system", "# a comment\n" R " = silent # another\ndsv3_router_gem = warn\n\nloud = 3; bmm_fp8 = loud");
  setenv("SGL_KERNEL_COMPAT_POLICY", "dsv4=warn;" R "=error", 1);
  const char *text = said();
  EXPECT(world_lines(text) == 4);
  EXPECT_CONTAINS(text,
                  "/system:3: 'dsv3_router_gem' is no deleted name of sgl_kernel; did you mean dsv3_router_gemm?");
  EXPECT_CONTAINS(text, "/system:5: 'loud' is no deleted name");
  EXPECT_CONTAINS(text, "/system:5: stage 'loud' is none of silent, warn, error, tombstone");
  EXPECT_CONTAINS(text, "sgl-kernel-compat: SGL_KERNEL_COMPAT_POLICY:1: 'dsv4' is no deleted name");
  EXPECT(policy_stage(policy_of(COMPAT_SYMBOL_dsv3_router_gemm)) == SGL_COMPAT_STAGE_ERROR);
  EXPECT(said()[0] == '\0');
  end();
}

static void many_faults(void) {
  begin();
  put("system", "a\nb\nc\nd\ne\nf\ng\nh\n" R "=error");
  const char *text = said();
  EXPECT(world_lines(text) == 6);
  EXPECT_CONTAINS(text, "3 more faults, see sgl-compat policy check");
  EXPECT(policy_stage(policy_of(COMPAT_SYMBOL_dsv3_router_gemm)) == SGL_COMPAT_STAGE_ERROR);
  end();
}

static void expect_refused(const char *why) {
  const char *text = said();
  EXPECT(world_lines(text) == 1);
  EXPECT_CONTAINS(text, "/system is not used: it ");
  EXPECT_CONTAINS(text, why);
  EXPECT(policy_of(COMPAT_SYMBOL_dsv3_router_gemm) == (POLICY_KNOWN | SGL_COMPAT_STAGE_WARN));
  end();
}

static void written_by_others(void) {
  begin();
  put("system", R "=error");
  chmod(path("system"), 0646);
  expect_refused("may be written by others");
}
static void of_another_group(void) {
  begin();
  put("system", R "=error");
  EXPECT(chown(path("system"), (uid_t)-1, 4321) == 0);
  chmod(path("system"), 0664);
  expect_refused("may be written by others");
}
static void of_another_user(void) {
  begin();
  put("system", R "=error");
  EXPECT(chown(path("system"), 4321, (gid_t)-1) == 0);
  expect_refused("belongs to another user");
}
static void a_folder(void) {
  begin();
  mkdir(path("system"), 0755);
  expect_refused("is no regular file");
}
static void a_pipe(void) {
  begin();
  EXPECT(mkfifo(path("system"), 0644) == 0);
  expect_refused("is no regular file");
}
static void too_large(void) {
  begin();
  put("system", R "=error");
  EXPECT(truncate(path("system"), (1 << 20) + 1) == 0);
  expect_refused("is larger than a mebibyte");
}
static void not_there(void) {
  begin();
  setenv("SGL_KERNEL_COMPAT_POLICY_FILE", path("nothing"), 1);
  const char *text = said();
  EXPECT(world_lines(text) == 1);
  EXPECT_CONTAINS(text, "/nothing is not used: it cannot be read: No such file");
  end();
}
static void of_the_own_group(void) {
  begin();
  put("system", R "=error");
  chmod(path("system"), 0664);
  EXPECT(said()[0] == '\0');
  EXPECT(policy_stage(policy_of(COMPAT_SYMBOL_dsv3_router_gemm)) == SGL_COMPAT_STAGE_ERROR);
  end();
}

static void user_files(void) {
  begin();
  write_user_file(R "=silent");
  mkdir(path("x"), 0755);
  mkdir(path("x/sgl-kernel-compat"), 0755);
  put("x/sgl-kernel-compat/policy", R "=error");
  setenv("XDG_CONFIG_HOME", path("x"), 1);
  EXPECT_CONTAINS(policy_facts(COMPAT_SYMBOL_dsv3_router_gemm).from, "/x/sgl-kernel-compat/policy:1");
  end();
}
static void without_home(void) {
  begin();
  write_user_file(R "=silent");
  unsetenv("HOME");
  EXPECT(said()[0] == '\0');
  EXPECT(!policy_facts(COMPAT_SYMBOL_dsv3_router_gemm).is_set);
  end();
}

static void sources(void) {
  world_child(faults);
  world_child(many_faults);
  world_child(written_by_others);
  world_child(a_folder);
  world_child(a_pipe);
  world_child(too_large);
  world_child(not_there);
  world_child(of_the_own_group);
  world_child(user_files);
  world_child(without_home);
  if (geteuid() == 0) { /* else nobody may give files away */
    world_child(of_another_user);
    world_child(of_another_group);
  }
}

/* --- functions ---------------------------------------------------------------------------------------------------- */

static void refuses(void) {
  begin();
  char message[300];
  sgl_compat_policy policy;
  EXPECT(sgl_compat_policy_set(R "=error\n" R "x=warn", "me", message, sizeof message) ==
         SGL_COMPAT_ERROR_INVALID_ARGUMENT);
  EXPECT_CONTAINS(message, "sgl_compat_policy_set: line 2: 'dsv3_router_gemmx' is no deleted name");
  EXPECT(sgl_compat_policy_get(R, &policy, NULL, 0) == SGL_COMPAT_OK && !policy.is_set); /* nothing of it */
  EXPECT(sgl_compat_policy_set(NULL, NULL, message, sizeof message) == SGL_COMPAT_ERROR_INVALID_ARGUMENT);
  EXPECT(sgl_compat_policy_get("nothing", &policy, message, sizeof message) == SGL_COMPAT_ERROR_INVALID_ARGUMENT);
  EXPECT_CONTAINS(message, "'nothing' is no deleted name");
  EXPECT(sgl_compat_policy_get(R, NULL, message, sizeof message) == SGL_COMPAT_ERROR_INVALID_ARGUMENT);
  EXPECT(sgl_compat_policy_get(NULL, &policy, NULL, 0) == SGL_COMPAT_ERROR_INVALID_ARGUMENT);
  EXPECT(sgl_compat_policy_set("deny " R, NULL, message, sizeof message) == SGL_COMPAT_OK);
  EXPECT(sgl_compat_policy_set(R "=warn", NULL, message, sizeof message) == SGL_COMPAT_ERROR_INVALID_ARGUMENT);
  EXPECT_CONTAINS(message, "dsv3_router_gemm is denied (sgl_compat_policy_set)");
  EXPECT(sgl_compat_policy_set(R "=tombstone; bmm_fp8 = silent", NULL, NULL, 0) == SGL_COMPAT_OK);
  EXPECT(sgl_compat_policy_set("serve " R " = jit", "there", NULL, 0) == SGL_COMPAT_OK);
  EXPECT(sgl_compat_policy_get(R, &policy, NULL, 0) == SGL_COMPAT_OK && policy.serve == SGL_COMPAT_SERVE_JIT);
  UNIT_STRINGS(policy.serve_from, "there");
  EXPECT(policy_serve(policy_of(COMPAT_SYMBOL_dsv3_router_gemm)) == SGL_COMPAT_SERVE_JIT);
  end();
}

static void shadow(void) {
  begin();
  setenv("SGL_KERNEL_COMPAT_POLICY",
         "shadow * first=3 every=1000 budget=25 tolerance=1e-3 return=other; shadow bmm_fp8 first=0", 1);
  struct policy_facts facts = policy_facts(COMPAT_SYMBOL_dsv3_router_gemm);
  EXPECT(facts.shadow.first == 3 && facts.shadow.every == 1000 && facts.shadow.budget == 25);
  EXPECT(facts.shadow.tolerance == 1e-3 && facts.shadow.return_other);
  facts = policy_facts(COMPAT_SYMBOL_bmm_fp8);
  EXPECT(facts.shadow.first == 0 && facts.shadow.every == 0);
  EXPECT(shadow_is_on(SERVE_DSV3_ROUTER_GEMM) && shadow_is_on(SERVE_DSV3_FUSED_A_GEMM) && !shadow_is_on(SERVE_BMM_FP8));
  EXPECT(sgl_compat_policy_set("shadow * every=0", NULL, NULL, 0) == SGL_COMPAT_OK);
  EXPECT(!shadow_is_on(SERVE_DSV3_ROUTER_GEMM) && !shadow_is_on(SERVE_BMM_FP8));
  end();
}

/* Setting a thousand times takes no memory for the old ones, and readers never see anything but one of the values. */
static atomic_bool stop;
static void *read_all_the_time(void *unused) {
  while (!atomic_load(&stop)) {
    sgl_compat_stage stage = policy_stage(policy_of(COMPAT_SYMBOL_dsv3_router_gemm));
    if (stage != SGL_COMPAT_STAGE_SILENT && stage != SGL_COMPAT_STAGE_ERROR)
      return (void *)1;
  }
  return unused;
}
static void threads_read(void) {
  begin();
  EXPECT(sgl_compat_policy_set(R "=error", NULL, NULL, 0) == SGL_COMPAT_OK);
  pthread_t thread[4];
  for (int i = 0; i < 4; i++)
    pthread_create(&thread[i], NULL, read_all_the_time, NULL);
  for (int i = 0; i < 1000; i++)
    EXPECT(sgl_compat_policy_set(i % 2 ? R "=error" : R "=silent", NULL, NULL, 0) == SGL_COMPAT_OK);
  atomic_store(&stop, true);
  for (int i = 0; i < 4; i++) {
    void *bad = NULL;
    pthread_join(thread[i], &bad);
    EXPECT(!bad);
  }
  end();
}

/* A child of a fork, while another thread sets, can set too. */
static void *set_all_the_time(void *unused) {
  while (!atomic_load(&stop))
    sgl_compat_policy_set(R "=error", NULL, NULL, 0);
  return unused;
}
static void forks(void) {
  begin();
  pthread_t thread;
  policy_of(0);
  pthread_create(&thread, NULL, set_all_the_time, NULL);
  for (int i = 0; i < 50; i++) {
    pid_t child = fork();
    if (child == 0) {
      alarm(10);
      _exit(sgl_compat_policy_set(R "=silent", NULL, NULL, 0) != SGL_COMPAT_OK ||
            policy_stage(policy_of(COMPAT_SYMBOL_dsv3_router_gemm)) != SGL_COMPAT_STAGE_SILENT);
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT(status == 0);
  }
  atomic_store(&stop, true);
  pthread_join(thread, NULL);
  end();
}

static void functions(void) {
  world_child(refuses);
  world_child(shadow);
  world_child(threads_read);
  world_child(forks);
}

static const struct unit_test tests[] = {
    {"precedence", precedence}, {"names", names}, {"ramp", ramp}, {"sources", sources}, {"functions", functions},
};
UNIT_MAIN("shim.policy", tests)
