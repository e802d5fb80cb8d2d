/* sgl-migrate doctor. */
#include "scanner/command.h"
#include "scanner/doctor.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "usage: sgl-migrate doctor [OPTION]... [PREFIX|SITE_PACKAGES]\n"
    "Say what is wrong with an installed environment: who owns the kernel's package, missing files and libraries,\n"
    "torch and its ABI, CUDA runtimes, driver, NVRTC, the JIT's cache, the shim, and who answers each removed name.\n"
    "\n"
    "The environment is PREFIX (the folder above lib/python3.*), a site-packages folder, else VIRTUAL_ENV, else that "
    "of\n"
    "the python3 in PATH. Files are only read; no code of the environment runs, no network is used.\n"
    "\n"
    "options:\n"
    "  --import           also run the environment's python3, for at most 120 seconds: it imports torch and the\n"
    "                     kernel's package and says what the process has loaded and who answers each name\n"
    "  --all              list all names of the catalog, also those that are served\n"
    "  --format FORMAT    what is printed on standard output: text (default), json\n"
    "  --catalog FILE     use this catalog in place of the built-in one\n"
    "  -j, --jobs N       worker threads (default: one a processor)\n"
    "  -h, --help         print this text\n"
    "\n"
    "Each line is a problem (something does not start, or fails when it is called), a warning (it may) or ok. A\n"
    "tombstone is a name that the shim answers with an error and advice.\n"
    "\n"
    "exit status, the sum of:\n"
    "  0    no problem\n"
    "  1    at least one problem\n"
    "  8    wrong usage, or there is no such environment: nothing was done\n"
    "  16   an error: standard output could not be written, or memory ran out\n"
    "\n"
    "examples:\n"
    "  sgl-migrate doctor\n"
    "  sgl-migrate doctor --format json /opt/venv\n";

struct wishes {
  bool all, json, import;
};

static void parse(int argc, char **argv, struct choice *choice, struct wishes *wishes) {
  enum { OPTION_FORMAT = COMMAND_OWN_OPTIONS, OPTION_ALL, OPTION_IMPORT };
  static const struct option options[] = {{"import", no_argument, NULL, OPTION_IMPORT},
                                          {"all", no_argument, NULL, OPTION_ALL},
                                          {"format", required_argument, NULL, OPTION_FORMAT},
                                          {"catalog", required_argument, NULL, COMMAND_CATALOG},
                                          {"jobs", required_argument, NULL, 'j'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
  int option;
  *wishes = (struct wishes){0};
  command_start(choice);
  while ((option = getopt_long(argc, argv, ":hj:", options, NULL)) != -1) {
    switch (option) {
    case OPTION_FORMAT:
      wishes->json = strcmp(optarg, "json") == 0;
      if (!wishes->json && strcmp(optarg, "text") != 0)
        usage_error("--format '%s': text or json is needed", optarg);
      break;
    case OPTION_ALL:
      wishes->all = true;
      break;
    case OPTION_IMPORT:
      wishes->import = true;
      break;
    case 'h':
      fputs(help, stdout);
      exit(command_finish(0));
    default:
      command_option(choice, option, argv);
    }
  }
  if (argc - optind > 1)
    usage_error("doctor looks at one environment; %s is a second one", argv[optind + 1]);
}

int command_doctor(int argc, char **argv) {
  struct choice choice;
  struct wishes wishes;
  struct catalog *loaded;
  char message[1024];
  parse(argc, argv, &choice, &wishes);
  struct doctor doctor = {.catalog = command_catalog(choice.catalog, &loaded),
                          .root = "",
                          .import = wishes.import,
                          .given = optind < argc ? argv[optind] : NULL};
  if (!doctor.catalog->library.releases_count)
    usage_error("the catalog names no kernel release");
  if (!doctor_run(&doctor, choice.threads, message, sizeof message))
    usage_error("%s", message);
  int status = 0;
  for (size_t i = 0; i < doctor.facts_count; i++)
    if (doctor.facts[i].level == DOCTOR_PROBLEM)
      status |= EXIT_USES;
  if (!(wishes.json ? doctor_report_json : doctor_report_text)(&doctor, wishes.all))
    status |= EXIT_FAULT;
  doctor_free(&doctor);
  catalog_free(loaded);
  return command_finish(status);
}
