/* sgl-jit: the command line and the help texts. */
#include "sgl_jit_tool.h"
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char tool_name[] = "sgl-jit";

/* --- help --- */

#define EXIT_STATUS                                                                                                    \
  "exit status:\n"                                                                                                     \
  "  0   done, nothing wrong found\n"                                                                                  \
  "  1   a kernel failed, something bad was found, or an error: named on standard error or in the result\n"            \
  "  2   wrong usage: nothing was done\n"
#define SPEC_HELP                                                                                                      \
  "SPEC is one kernel, for any number of tokens:\n"                                                                    \
  "  dsv3_router_gemm:EXPERTSxHIDDEN:DTYPE   DTYPE of the output: float32 or bfloat16\n"                               \
  "  dsv3_fused_a_gemm:OUTxIN                hd_out x hd_in\n"                                                         \
  "  downcast_fp8, sgl_per_tensor_quant_fp8, merge_state, hadamard_transform, segment_packbits,\n"                     \
  "  set_kv_buffer_kernel                    for any shape and dtype\n"
#define WORK_OPTIONS                                                                                                   \
  "  --model MODEL         the kernels that serving a model needs: deepseek-v3 (also R1 and V3.1), kimi-k2\n"          \
  "  -f, --file FILE       one SPEC on each line, # starts a comment; - is standard input\n"
#define TARGET_HELP                                                                                                    \
  "  --target TARGET[,...] compile for these GPUs, with no GPU here: sm_80 (A100), sm_86, sm_89 (L4, L40), sm_90a\n"   \
  "                        (H100, H200), sm_100a (B200), sm_103a (B300), sm_120a (RTX 50)\n"
#define HELP_OPTION "  -h, --help            print this text\n"

static const char help[] = "usage: sgl-jit COMMAND [OPTION]... [SPEC]...\n"
                           "\n"
                           "The compiled kernels of libsgl_kernel_jit: made ahead of time, shipped, looked after.\n"
                           "\n"
                           "commands:\n"
                           "  warm     compile into the cache what is missing there\n"
                           "  pack     compile into a folder that is shipped beside the library\n"
                           "  list     list the kernels in the cache and in the folder beside the library\n"
                           "  verify   check every one of them\n"
                           "  prune    remove kernels from the cache\n"
                           "  info     say what the library finds here: GPUs, driver, NVRTC, folders\n"
                           "\n"
                           "options:\n"
                           "  --version    print the version\n"
                           "  -h, --help   print this text; sgl-jit COMMAND --help tells about a command\n"
                           "\n" EXIT_STATUS "\n"
                           "examples:\n"
                           "  sgl-jit warm --model deepseek-v3\n"
                           "  sgl-jit pack --target sm_90a --output sgl-kernel-jit-cubins --model deepseek-v3\n"
                           "  sgl-jit info\n";

static const char warm_help[] =
    "usage: sgl-jit warm [OPTION]... [SPEC]...\n"
    "\n"
    "Compiles into the cache what is missing there, and loads it once on each kind of GPU that is here.\n"
    "\n" SPEC_HELP "\n"
    "options:\n" WORK_OPTIONS "  --stats PATH          the kernels that a program has used: a file of "
    "SGL_KERNEL_COMPAT_STATS=DIR, or a folder,\n"
    "                        whose folders are read, too\n"
    "  --sarif FILE          of the --model's kernels those that sgl-migrate scan --format sarif has found uses of\n"
    "  --device N            for this GPU only (default: all)\n" TARGET_HELP HELP_OPTION "\n"
    "One line a kernel and target on standard output: cached, prebuilt, compiled in N ms, or failed and why.\n"
    "\n" EXIT_STATUS "\n"
    "examples:\n"
    "  sgl-jit warm --model deepseek-v3\n"
    "  sgl-jit warm --target sm_90a,sm_100a dsv3_router_gemm:256x7168:float32 dsv3_fused_a_gemm:2112x7168\n"
    "  echo dsv3_router_gemm:384x7168:bfloat16 | sgl-jit warm --target sm_90a -f -\n"
    "  sgl-jit warm --stats stats\n";

static const char pack_help[] =
    "usage: sgl-jit pack --target TARGET[,...] --output DIR [OPTION]... [SPEC]...\n"
    "\n"
    "Compiles kernels into a folder. Beside libsgl_kernel_jit.so under the name sgl-kernel-jit-cubins, its kernels "
    "need no\n"
    "NVRTC. It has exactly the kernels that are named here, compiled now, whatever is in the cache. A folder that pack "
    "made\n"
    "before is replaced in one step; anything else that is in the way is left alone, and an error.\n"
    "\n" SPEC_HELP "\n"
    "options:\n" TARGET_HELP "  -o, --output DIR      the folder\n" WORK_OPTIONS HELP_OPTION "\n" EXIT_STATUS "\n"
    "examples:\n"
    "  sgl-jit pack --target sm_90a,sm_100a --output sgl-kernel-jit-cubins --model deepseek-v3\n"
    "  sgl-jit pack --target sm_80 -o sgl-kernel-jit-cubins dsv3_router_gemm:256x7168:float32\n"
    "  SGL_KERNEL_JIT_PREBUILT_DIR=$PWD/sgl-kernel-jit-cubins sgl-jit verify\n";

static const char list_help[] = "usage: sgl-jit list [OPTION]...\n"
                                "\n"
                                "Lists the kernels in the cache and in the folder beside the library.\n"
                                "\n"
                                "options:\n"
                                "  --format FORMAT       text (default), json, or tsv: one line a file, the first line "
                                "has the names of the columns\n" HELP_OPTION "\n"
                                "A file is\n"
                                "  ok       used by the library of this version\n"
                                "  other    whole, but made by a library with other kernels: not used by this one\n"
                                "  bad      not used by any; the reason is in the list\n"
                                "The last use is known where the file system records it.\n"
                                "\n" EXIT_STATUS "\n"
                                "examples:\n"
                                "  sgl-jit list\n"
                                "  sgl-jit list --format json | jq '.entries[] | select(.state == \"bad\")'\n";

static const char verify_help[] =
    "usage: sgl-jit verify [OPTION]...\n"
    "\n"
    "Checks every kernel in the cache and in the folder beside the library: owner and permissions, checksum, that the\n"
    "name fits the content, and that the content is code for the GPU that it names, with all its entry points.\n"
    "\n"
    "options:\n" HELP_OPTION "\n" EXIT_STATUS "\n"
    "examples:\n"
    "  sgl-jit verify\n"
    "  sgl-jit verify || sgl-jit prune --bad\n";

static const char prune_help[] =
    "usage: sgl-jit prune [OPTION]...\n"
    "\n"
    "Removes kernels from the cache; the library compiles them again when it needs them. Files that are not the "
    "library's\n"
    "stay, and so does the folder beside the library. Temporary files of processes that died, and lock files that "
    "nobody\n"
    "holds, are removed as well.\n"
    "\n"
    "options, at least one of the first four:\n"
    "  --older-than TIME     that were not used for this long: 90s, 45min, 12h, 30d, 8w\n"
    "  --max-size SIZE       the ones used longest ago, until the rest is no larger: 500K, 100M, 1G\n"
    "  --bad                 that verify finds bad\n"
    "  --all                 all\n"
    "  --dry-run             only say what would be removed\n" HELP_OPTION "\n" EXIT_STATUS "\n"
    "examples:\n"
    "  sgl-jit prune --older-than 30d --max-size 100M\n"
    "  sgl-jit prune --bad --dry-run\n";

static const char info_help[] =
    "usage: sgl-jit info [OPTION]...\n"
    "\n"
    "Says what the library finds on this machine, in this environment: its own file, the GPUs, the driver, NVRTC "
    "(with\n"
    "every place that was tried), the cache folder, the folder beside the library, and which variables are set. Needs\n"
    "none of them; says what is missing and what helps.\n"
    "\n"
    "options:\n"
    "  --format FORMAT       text (default) or json\n" HELP_OPTION "\n" EXIT_STATUS "\n"
    "examples:\n"
    "  sgl-jit info\n"
    "  sgl-jit info --format json | jq -r .nvrtc.path\n";

/* --- sizes --- */

struct tool_size tool_size(uint64_t bytes) {
  static const char *const units[] = {"KiB", "MiB", "GiB"};
  struct tool_size size;
  double value = (double)bytes / 1024;
  int unit = 0;
  snprintf(size.text, sizeof size.text, "%llu bytes", (unsigned long long)bytes);
  for (; value >= 1024 && unit < 2; unit++)
    value /= 1024;
  if (bytes >= 1024)
    snprintf(size.text, sizeof size.text, "%.1f %s", value, units[unit]);
  return size;
}

/* --- command line --- */

enum {
  OPTION_MODEL = 256,
  OPTION_STATS,
  OPTION_SARIF,
  OPTION_TARGET,
  OPTION_DEVICE,
  OPTION_FORMAT,
  OPTION_OLDER_THAN,
  OPTION_MAX_SIZE,
  OPTION_BAD,
  OPTION_ALL,
  OPTION_DRY_RUN
};

static const struct option long_options[] = {
    {"model", required_argument, NULL, OPTION_MODEL},
    {"file", required_argument, NULL, 'f'},
    {"stats", required_argument, NULL, OPTION_STATS},
    {"sarif", required_argument, NULL, OPTION_SARIF},
    {"target", required_argument, NULL, OPTION_TARGET},
    {"device", required_argument, NULL, OPTION_DEVICE},
    {"output", required_argument, NULL, 'o'},
    {"format", required_argument, NULL, OPTION_FORMAT},
    {"older-than", required_argument, NULL, OPTION_OLDER_THAN},
    {"max-size", required_argument, NULL, OPTION_MAX_SIZE},
    {"bad", no_argument, NULL, OPTION_BAD},
    {"all", no_argument, NULL, OPTION_ALL},
    {"dry-run", no_argument, NULL, OPTION_DRY_RUN},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static const struct command {
  const char *name, *help;
  int (*run)(const struct tool_options *options);
  int options[8]; /* that it takes, beside --help */
  bool specs;
} commands[] = {
    {"warm", warm_help, tool_warm, {OPTION_MODEL, 'f', OPTION_STATS, OPTION_SARIF, OPTION_TARGET, OPTION_DEVICE}, true},
    {"pack", pack_help, tool_pack, {OPTION_MODEL, 'f', OPTION_TARGET, 'o'}, true},
    {"list", list_help, tool_list, {OPTION_FORMAT}, false},
    {"verify", verify_help, tool_verify, {0}, false},
    {"prune",
     prune_help,
     tool_prune,
     {OPTION_OLDER_THAN, OPTION_MAX_SIZE, OPTION_BAD, OPTION_ALL, OPTION_DRY_RUN},
     false},
    {"info", info_help, tool_info, {OPTION_FORMAT}, false},
};

static const struct command *find_command(const char *name) {
  for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
    if (strcmp(commands[i].name, name) == 0)
      return &commands[i];
  tool_usage("unknown command '%s': warm, pack, list, verify, prune or info is needed; see sgl-jit --help", name);
}

static void check_option(const struct command *command, int option, const char *text) {
  for (size_t i = 0; i < sizeof command->options / sizeof command->options[0]; i++)
    if (command->options[i] == option)
      return;
  tool_usage("%s takes no option --%s; see sgl-jit %s --help", command->name, text, command->name);
}

static void add(struct tool_strings *strings, const char *text) {
  strings->list = tool_realloc(strings->list, (strings->count + 1) * sizeof *strings->list);
  strings->list[strings->count++] = text;
}

/* A number and a unit. */
static uint64_t quantity(const char *option, const char *text, const char *const *units, const uint64_t *factors,
                         const char *example) {
  char *unit;
  errno = 0;
  unsigned long long value = strtoull(text, &unit, 10);
  if (*text >= '0' && *text <= '9' && !errno)
    for (int i = 0; units[i]; i++)
      if (strcmp(unit, units[i]) == 0 && value <= INT64_MAX / factors[i])
        return value * factors[i];
  tool_usage("%s '%s': a number and a unit is needed, as in %s", option, text, example);
}

static int parse_device(const char *text) {
  char *end;
  errno = 0;
  long value = strtol(text, &end, 10);
  if (errno || *end || *text < '0' || *text > '9' || value > 9999)
    tool_usage("--device '%s': the number of a GPU is needed, as sgl-jit info lists them", text);
  return (int)value;
}

static enum tool_format parse_format(const struct command *command, const char *text) {
  bool tsv = command->run == tool_list;
  if (strcmp(text, "text") == 0)
    return FORMAT_TEXT;
  if (strcmp(text, "json") == 0)
    return FORMAT_JSON;
  if (tsv && strcmp(text, "tsv") == 0)
    return FORMAT_TSV;
  tool_usage("--format '%s': %s is needed", text, tsv ? "text, json or tsv" : "text or json");
}

static void take_option(const struct command *command, int option, struct tool_options *options) {
  static const char *const times[] = {"s", "min", "h", "d", "w", NULL};
  static const uint64_t seconds[] = {1, 60, 3600, 86400, 7 * 86400};
  static const char *const sizes[] = {"", "K", "M", "G", NULL};
  static const uint64_t bytes[] = {1, 1 << 10, 1 << 20, 1 << 30};
  switch (option) {
  case OPTION_MODEL:
    add(&options->models, optarg);
    break;
  case 'f':
    add(&options->files, optarg);
    break;
  case OPTION_STATS:
    add(&options->statistics, optarg);
    break;
  case OPTION_SARIF:
    add(&options->findings, optarg);
    break;
  case OPTION_TARGET:
    for (char *rest = optarg, *target; (target = strsep(&rest, ",")) != NULL;)
      add(&options->targets, target);
    break;
  case OPTION_DEVICE:
    options->device = parse_device(optarg);
    break;
  case 'o':
    options->output = optarg;
    break;
  case OPTION_FORMAT:
    options->format = parse_format(command, optarg);
    break;
  case OPTION_OLDER_THAN:
    options->has_older_than = true;
    options->older_than = (time_t)quantity("--older-than", optarg, times, seconds, "12h or 30d");
    break;
  case OPTION_MAX_SIZE:
    options->has_max_size = true;
    options->max_size = quantity("--max-size", optarg, sizes, bytes, "500K, 100M or 1G");
    break;
  case OPTION_BAD:
    options->bad = true;
    break;
  case OPTION_ALL:
    options->all = true;
    break;
  default:
    options->dry_run = true;
  }
}

/* argv[0] is the command. */
static void parse(const struct command *command, int argc, char **argv, struct tool_options *options) {
  int option, index = 0;
  *options = (struct tool_options){.command = command->name, .device = -1};
  opterr = 0;
  while ((option = getopt_long(argc, argv, ":hf:o:", long_options, &index)) != -1) {
    const char *text = argv[optind - 1];
    if (option == 'h') {
      fputs(command->help, stdout);
      exit(tool_finish(STATUS_OK));
    }
    if (option == ':')
      tool_usage("%s needs a value; see sgl-jit %s --help", text, command->name);
    if (option == '?' && optopt && optopt < 256)
      tool_usage("unknown option -%c; see sgl-jit %s --help", optopt, command->name);
    if (option == '?')
      tool_usage("unknown option %s; see sgl-jit %s --help", text, command->name);
    check_option(command, option, option == 'f' ? "file" : option == 'o' ? "output" : long_options[index].name);
    take_option(command, option, options);
  }
  for (; optind < argc; optind++) {
    if (!command->specs)
      tool_usage("%s takes no argument '%s'; see sgl-jit %s --help", command->name, argv[optind], command->name);
    add(&options->specs, argv[optind]);
  }
}

int main(int argc, char **argv) {
  signal(SIGPIPE, SIG_IGN); /* a reader that goes away must not stop the work: tool_finish() says it */
  signal(SIGXFSZ, SIG_IGN); /* the limit of file sizes (ulimit -f) is an error like a full disk */
  if (argc < 2)
    tool_usage("a command is needed: warm, pack, list, verify, prune or info; see sgl-jit --help");
  if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
    fputs(help, stdout);
    return tool_finish(STATUS_OK);
  }
  if (strcmp(argv[1], "--version") == 0) {
    puts("sgl-jit " SGL_VERSION);
    return tool_finish(STATUS_OK);
  }
  if (argv[1][0] == '-')
    tool_usage("unknown option %s: a command comes first; see sgl-jit --help", argv[1]);
  const struct command *command = find_command(argv[1]);
  struct tool_options options;
  parse(command, argc - 1, argv + 1, &options);
  struct tool_library library;
  tool_find_library(&library);
  int status = command->run(&options);
  free(options.specs.list);
  free(options.models.list);
  free(options.files.list);
  free(options.statistics.list);
  free(options.targets.list);
  return tool_finish(status);
}
