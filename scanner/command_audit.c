/* sgl-migrate audit. */
#include "scanner/audit.h"
#include "scanner/command.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "usage: sgl-migrate audit [OPTION]... PATH...\n"
    "       sgl-migrate audit [OPTION]... --pid N\n"
    "Say of binaries which removed functions and operators they need or have, and who answers them.\n"
    "\n"
    "PATH is an ELF file, a static archive, a wheel, zip or tar file (read in place), a folder such as site-packages,\n"
    "the root folder of a container, or an image of docker save or OCI, packed or as a folder.\n"
    "\n"
    "options:\n"
    "  --kernel VERSION   kernel release that the files have to run with (default: the environment itself: what was\n"
    "                     audited has to answer, with the kernel wheel that is in it)\n"
    "  --pid N            the files that the running process N has mapped\n"
    "  --format FORMAT    what is printed on standard output: text (default), tsv (one row for each removed name: "
    "file,\n"
    "                     symbol, verdict), json (all facts), sarif (SARIF 2.1.0)\n"
    "  --limit NAME=N     what one archive may cost: member=8G, total=64G (bytes unpacked), ratio=1000 (of bytes "
    "unpacked\n"
    "                     to its size), members=2000000, depth=4 (archives in archives); K, M and G are understood\n"
    "  --catalog FILE     use this catalog in place of the built-in one\n"
    "  -j, --jobs N       worker threads (default: one a processor)\n"
    "  -h, --help         print this text\n"
    "\n"
    "verdicts:\n"
    "  alive              answered\n"
    "  shim               removed; libsgl_kernel_compat.so has it\n"
    "  removed            removed; nothing has it\n"
    "  optional           a weak reference: the file loads without it\n"
    "  torch-abi          a symbol of torch that the torch there does not export\n"
    "  unknown-provider   nothing that was audited has it\n"
    "  missing-library    a needed library is not where ld.so looks\n"
    "\n"
    "exit status, the sum of:\n"
    "  0    every reference is answered\n"
    "  1    a reference is not: shim, removed, torch-abi, unknown-provider, missing-library\n"
    "  2    for at least one of them the shim does not help\n"
    "  4    a file was not analysed (named on standard error)\n"
    "  8    wrong usage: nothing was done\n"
    "  16   an error: standard output could not be written, or memory ran out\n"
    "\n"
    "examples:\n"
    "  sgl-migrate audit --kernel 0.4.8 fastops-1.0-cp39-abi3-linux_x86_64.whl\n"
    "  sgl-migrate audit /opt/venv/lib/python3.12/site-packages\n";

static const struct format {
  const char *name;
  bool (*print)(const struct audit_run *run);
} formats[] = {
    {"text", audit_report_text}, {"tsv", audit_report_tsv}, {"json", audit_report_json}, {"sarif", audit_report_sarif}};

static const struct format *parse_format(const char *text) {
  for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
    if (strcmp(text, formats[i].name) == 0)
      return &formats[i];
  usage_error("--format '%s': text, tsv, json or sarif is needed", text);
}

static void parse_limit(struct audit_limits *limits, const char *text) {
  const struct {
    const char *name;
    uint64_t *to;
  } names[] = {{"member", &limits->member},
               {"total", &limits->total},
               {"ratio", &limits->ratio},
               {"members", &limits->members},
               {"depth", &limits->depth}};
  const char *equals = strchr(text, '=');
  for (size_t i = 0; equals && i < sizeof names / sizeof *names; i++) {
    if (strlen(names[i].name) != (size_t)(equals - text) || strncmp(text, names[i].name, (size_t)(equals - text)) != 0)
      continue;
    char *end;
    errno = 0;
    unsigned long long value = strtoull(equals + 1, &end, 10);
    unsigned shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
    end += shift != 0;
    if (errno || *end || equals[1] < '0' || equals[1] > '9' || value == 0 || value > UINT64_MAX >> shift)
      break;
    *names[i].to = (uint64_t)value << shift;
    return;
  }
  usage_error("--limit '%s': member, total, ratio, members or depth, and a number from 1 on, like total=100G", text);
}

static long parse_pid(const char *text) {
  char *end;
  errno = 0;
  long value = strtol(text, &end, 10);
  if (errno || *end || *text < '0' || *text > '9' || value == 0)
    usage_error("--pid '%s': the number of a process is needed", text);
  return value;
}

struct wishes {
  const struct format *format;
  struct audit_limits limits;
  long pid;
};

static void parse(int argc, char **argv, struct choice *choice, struct wishes *wishes) {
  enum { OPTION_FORMAT = COMMAND_OWN_OPTIONS, OPTION_LIMIT, OPTION_PID };
  static const struct option options[] = {{"kernel", required_argument, NULL, COMMAND_KERNEL},
                                          {"catalog", required_argument, NULL, COMMAND_CATALOG},
                                          {"jobs", required_argument, NULL, 'j'},
                                          {"help", no_argument, NULL, 'h'},
                                          {"format", required_argument, NULL, OPTION_FORMAT},
                                          {"limit", required_argument, NULL, OPTION_LIMIT},
                                          {"pid", required_argument, NULL, OPTION_PID},
                                          {NULL, 0, NULL, 0}};
  int option;
  *wishes = (struct wishes){.format = &formats[0], .limits = audit_default_limits};
  command_start(choice);
  while ((option = getopt_long(argc, argv, ":hj:", options, NULL)) != -1) {
    switch (option) {
    case OPTION_FORMAT:
      wishes->format = parse_format(optarg);
      break;
    case OPTION_LIMIT:
      parse_limit(&wishes->limits, optarg);
      break;
    case OPTION_PID:
      wishes->pid = parse_pid(optarg);
      break;
    case 'h':
      fputs(help, stdout);
      exit(command_finish(0));
    default:
      command_option(choice, option, argv);
    }
  }
  if (!wishes->pid)
    command_paths(choice, argc, argv);
  else if (optind < argc)
    usage_error("--pid audits the files of a process: leave '%s' out", argv[optind]);
}

int command_audit(int argc, char **argv) {
  struct choice choice;
  struct wishes wishes;
  struct catalog *loaded;
  char message[512];
  parse(argc, argv, &choice, &wishes);
  const struct catalog *catalog = command_catalog(choice.catalog, &loaded);
  if (choice.kernel && !catalog_version_valid(choice.kernel))
    usage_error("--kernel '%s': not a release number like 0.4.6", choice.kernel);
  if (!choice.kernel && !catalog->library.releases_count)
    usage_error("the catalog names no kernel release; give one with --kernel");
  struct audit_context context = {.catalog = catalog,
                                  .names = audit_names_build(catalog),
                                  .limits = wishes.limits,
                                  .keep_symbols = wishes.format->print == audit_report_json};
  struct audit_run run = {.context = &context};
  if (!audit_run(&run, choice.paths, choice.paths_count, wishes.pid, choice.threads, message, sizeof message))
    usage_error("%s", message);
  audit_resolve(&run);
  audit_judge(&run, choice.kernel);
  command_note_kernel(catalog, run.kernel);
  int status = audit_status(&run);
  if (!wishes.format->print(&run))
    status |= EXIT_FAULT;
  fflush(stdout);
  audit_report_faults(&run);
  audit_free(&run);
  audit_names_free(context.names);
  catalog_free(loaded);
  return command_finish(status);
}
