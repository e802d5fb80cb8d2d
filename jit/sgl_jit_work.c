/* Which kernels, and for which targets: SPEC, --model, --file, --stats, --sarif, --target. */
#include "sgl_jit_tool.h"
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The kernels that serving one model calls for, whatever the number of tokens. From the models' config.json on Hugging
 * Face (deepseek-ai/DeepSeek-V3, moonshotai/Kimi-K2-Instruct): the router is n_routed_experts x hidden_size, with
 * float32 output as sglang's MoEGate asks for; the fused GEMM is q_lora_rank + kv_lora_rank + qk_rope_head_dim =
 * 1536 + 512 + 64 wide and takes hidden_size. */
static const struct model {
  const char *name;
  int experts, hidden, latent;
} models[] = {
    {"deepseek-v3", 256, 7168, 2112},
    {"kimi-k2", 384, 7168, 2112},
};

static void add(struct tool_work *work, const sgl_jit_kernel_spec *spec) {
  for (size_t i = 0; i < work->count; i++) {
    const sgl_jit_kernel_spec *s = &work->specs[i];
    if (s->op == spec->op && s->n == spec->n && s->k == spec->k && s->output_dtype == spec->output_dtype)
      return;
  }
  work->specs = tool_realloc(work->specs, (work->count + 1) * sizeof *work->specs);
  work->specs[work->count++] = *spec;
}

/* Which operators code uses: all, or those that scans have found. */
struct used {
  bool router, fused_a;
};

static void add_findings(struct used *used, const char *path) {
  json_error_t error;
  json_t *sarif = json_load_file(path, 0, &error);
  const json_t *runs = json_object_get(sarif, "runs"), *run, *result;
  size_t i, k;
  if (!sarif)
    tool_usage("--sarif %s: %s", path, error.text);
  if (!json_is_array(runs))
    tool_usage("--sarif %s: no SARIF: it has no runs", path);
  json_array_foreach(runs, i, run) {
    const json_t *results = json_object_get(run, "results");
    if (!json_is_array(results))
      tool_usage("--sarif %s: runs[%zu] has no results: the scan did not end", path, i);
    json_array_foreach(results, k, result) {
      const char *rule = json_string_value(json_object_get(result, "ruleId"));
      const char *verdict = json_string_value(json_object_get(json_object_get(result, "properties"), "verdict"));
      bool live = rule && verdict && strcmp(verdict, "mention") != 0; /* a comment calls nothing */
      used->router |= live && strcmp(rule, jit_op_name(JIT_ROUTER)) == 0;
      used->fused_a |= live && strcmp(rule, jit_op_name(JIT_FUSED_A)) == 0;
    }
  }
  json_decref(sarif);
}

static void add_model(struct tool_work *work, const char *name, struct used used) {
  for (size_t i = 0; i < sizeof models / sizeof models[0]; i++)
    if (strcmp(models[i].name, name) == 0) {
      const struct model *m = &models[i];
      if (used.router)
        add(work, &(sgl_jit_kernel_spec){SGL_JIT_OP_DSV3_ROUTER_GEMM, m->experts, m->hidden, SGL_JIT_DTYPE_FLOAT32});
      if (used.fused_a)
        add(work, &(sgl_jit_kernel_spec){SGL_JIT_OP_DSV3_FUSED_A_GEMM, m->latent, m->hidden, SGL_JIT_DTYPE_BFLOAT16});
      return;
    }
  tool_usage("--model '%s': deepseek-v3 or kimi-k2 is needed; name the kernels of another model one by one", name);
}

/* The words of a line, without its comment: one, or none. */
static void add_line(struct tool_work *work, const char *file, size_t number, char *line) {
  char why[256];
  sgl_jit_kernel_spec spec;
  line[strcspn(line, "#\r\n")] = '\0';
  char *rest = line, *word = NULL;
  for (char *next; (next = strsep(&rest, " \t")) != NULL;)
    if (*next && word)
      tool_usage("%s:%zu: one SPEC on each line is needed, got another one: %s", file, number, next);
    else if (*next)
      word = next;
  if (!word)
    return;
  if (jit_spec_parse(word, &spec, (struct jit_message){why, sizeof why, NULL}) != SGL_JIT_OK)
    tool_usage("%s:%zu: %s", file, number, why);
  add(work, &spec);
}

/* A line of the statistics that libsgl_kernel_compat writes: it may tell of a kernel that ran. */
static void add_statistics(struct tool_work *work, const char *file, size_t number, char *line) {
  char why[256];
  sgl_jit_kernel_spec spec;
  json_t *object = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
  const char *schema = json_string_value(json_object_get(object, "schema"));
  const char *kernel = json_string_value(json_object_get(object, "kernel"));
  if (number == 1 && (!schema || strcmp(schema, "sgl-kernel-compat-usage/1") != 0))
    tool_usage("%s: no statistics of SGL_KERNEL_COMPAT_STATS, or of another version", file);
  if (!json_is_object(object) || (json_object_get(object, "kernel") && !kernel))
    tool_usage("%s:%zu: no line of statistics", file, number);
  if (kernel && jit_spec_parse(kernel, &spec, (struct jit_message){why, sizeof why, NULL}) != SGL_JIT_OK)
    tool_usage("%s:%zu: %s", file, number, why);
  if (kernel)
    add(work, &spec);
  json_decref(object);
}

typedef void add_function(struct tool_work *work, const char *file, size_t number, char *line);

static void add_file(struct tool_work *work, const char *option, const char *path, add_function *add_one) {
  bool standard = strcmp(path, "-") == 0;
  const char *shown = standard ? "standard input" : path;
  FILE *file = standard ? stdin : fopen(path, "r");
  char *line = NULL;
  size_t size = 0, number = 0;
  ssize_t length;
  if (!file)
    tool_usage("%s %s: %s", option, path, strerror(errno));
  errno = 0;
  while ((length = getline(&line, &size, file)) >= 0) {
    number++;
    if (strlen(line) != (size_t)length)
      tool_usage("%s:%zu: a NUL byte: this is no text", shown, number);
    add_one(work, shown, number, line);
  }
  if (ferror(file) || !feof(file))
    tool_usage("%s: %s", shown, strerror(errno));
  if (number == 0 && add_one == add_statistics)
    tool_usage("%s: no statistics of SGL_KERNEL_COMPAT_STATS: it is empty", shown);
  free(line);
  if (!standard)
    fclose(file);
}

static int is_not_hidden(const struct dirent *entry) {
  return entry->d_name[0] != '.';
}

static bool is_statistics(const char *name) {
  size_t length = strlen(name);
  return length > 6 && strcmp(name + length - 6, ".jsonl") == 0;
}

struct around {
  const struct stat *folder;
  const struct around *further;
};

/* The files of a folder and of the folders in it, those that sgl-compat report reads; returns their number. A link to a
 * folder around it is not followed. */
static size_t add_folder(struct tool_work *work, const char *path, const struct stat *folder,
                         const struct around *further) {
  struct dirent **list;
  size_t files = 0;
  for (const struct around *at = further; at; at = at->further)
    if (at->folder->st_dev == folder->st_dev && at->folder->st_ino == folder->st_ino)
      return 0;
  int count = scandir(path, &list, is_not_hidden, alphasort);
  if (count < 0)
    tool_usage("--stats %s: %s", path, strerror(errno));
  for (int i = 0; i < count; i++) {
    struct stat s;
    size_t size = strlen(path) + strlen(list[i]->d_name) + 2;
    char *file = tool_realloc(NULL, size);
    snprintf(file, size, "%s/%s", path, list[i]->d_name);
    bool there = stat(file, &s) == 0;
    if (is_statistics(list[i]->d_name)) {
      if (there && !S_ISREG(s.st_mode)) /* a pipe would be waited for */
        tool_usage("--stats %s: it is no file", file);
      add_file(work, "--stats", file, add_statistics);
      files++;
    } else if (there && S_ISDIR(s.st_mode)) {
      files += add_folder(work, file, &s, &(struct around){folder, further});
    }
    free(file);
    free(list[i]);
  }
  free(list);
  return files;
}

/* A file of statistics, or a folder of them. */
static void add_all_statistics(struct tool_work *work, const char *path) {
  struct stat s;
  if (stat(path, &s) != 0 || !S_ISDIR(s.st_mode))
    add_file(work, "--stats", path, add_statistics);
  else if (add_folder(work, path, &s, NULL) == 0)
    tool_usage("--stats %s: neither the folder nor one in it has a .jsonl file", path);
}

struct tool_work tool_work(const struct tool_options *options) {
  struct tool_work work = {NULL, 0};
  char why[256];
  bool all = options->findings.count == 0;
  struct used used = {all, all};
  for (size_t i = 0; i < options->findings.count; i++)
    add_findings(&used, options->findings.list[i]);
  if (!all && options->models.count == 0)
    tool_usage("--sarif tells which operators are used; --model is needed too, for their sizes");
  for (size_t i = 0; i < options->models.count; i++)
    add_model(&work, options->models.list[i], used);
  for (size_t i = 0; i < options->files.count; i++)
    add_file(&work, "--file", options->files.list[i], add_line);
  for (size_t i = 0; i < options->statistics.count; i++)
    add_all_statistics(&work, options->statistics.list[i]);
  for (size_t i = 0; i < options->specs.count; i++) {
    sgl_jit_kernel_spec spec;
    if (jit_spec_parse(options->specs.list[i], &spec, (struct jit_message){why, sizeof why, NULL}) != SGL_JIT_OK)
      tool_usage("%s", why);
    add(&work, &spec);
  }
  if (work.count == 0 && options->files.count + options->statistics.count + options->findings.count == 0)
    tool_usage("%s needs a SPEC, --model%s or --file; see sgl-jit %s --help", options->command,
               strcmp(options->command, "warm") == 0 ? ", --stats" : "", options->command);
  return work;
}

void tool_check_targets(const struct tool_options *options) {
  for (size_t i = 0; i < options->targets.count; i++) {
    const char *target = options->targets.list[i];
    int major, minor;
    char with[40];
    snprintf(with, sizeof with, "%.30sa", target);
    if (!jit_target_parse(target, &major, &minor) && jit_target_parse(with, &major, &minor))
      tool_usage("--target '%s': on such a GPU the library looks for %s: give that", target, with);
    if (!jit_target_parse(target, &major, &minor))
      tool_usage("--target '%s': a name like sm_90a is needed; see sgl-jit %s --help", target, options->command);
    if (major < JIT_MIN_MAJOR)
      tool_usage("--target '%s': GPUs older than sm_80 cannot run these kernels", target);
    for (size_t k = 0; k < i; k++)
      if (strcmp(options->targets.list[k], target) == 0)
        tool_usage("--target '%s': named twice", target);
  }
}
