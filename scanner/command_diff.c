/* sgl-migrate catalog diff. */
#include "scanner/command.h"
#include "scanner/report.h"
#include "scanner/surface.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "usage: sgl-migrate catalog diff [OPTION]... OLD NEW\n"
    "Compare two releases of the library: Python names, operators and exported C++ functions that were removed,\n"
    "renamed, changed or added, and what the catalog says of that.\n"
    "\n"
    "OLD and NEW are wheels, source packages (zip, tar) or folders, in any mixture. Archives are read in place, and\n"
    "nothing of them is run.\n"
    "\n"
    "options:\n"
    "  --format FORMAT  text or json (default: text)\n"
    "  --draft          print rows for the catalog instead, of removed names that it does not have; what a person has\n"
    "                   to fill in is empty in them\n"
    "  --catalog FILE   use this catalog in place of the built-in one: it names the package\n"
    "  -h, --help       print this text\n"
    "\n"
    "exit status, the sum of:\n"
    "  0    nothing was removed or changed so that callers notice\n"
    "  1    something was\n"
    "  2    the catalog does not have a removed name, or says something else\n"
    "  4    something of OLD or NEW was not analysed (named on standard error)\n"
    "  8    wrong usage, or OLD or NEW cannot be read\n"
    "  16   an error: output could not be written, or memory ran out\n"
    "\n"
    "example:\n"
    "  sgl-migrate catalog diff sglang_kernel-0.4.4-*.whl sglang_kernel-0.4.5-*.whl\n";

static void say(const char *text) {
  fputs("sgl-migrate: ", stderr);
  report_plain(stderr, text);
  fputc('\n', stderr);
}

static void say_faults(const struct surface *surface) {
  for (size_t i = 0; i < surface->faults_count; i++) {
    char *line = scan_format("%s: %s", surface->path, surface->faults[i]);
    say(line);
    free(line);
  }
}

static int run(const struct catalog *catalog, char *const *paths, bool (*print)(const struct diff *)) {
  struct surface sides[2] = {{0}};
  bool good = true;
  for (unsigned i = 0; i < 2 && good; i++) {
    char message[600];
    good = surface_read(&sides[i], catalog, paths[i], message, sizeof message);
    say_faults(&sides[i]);
    if (!good)
      say(message);
  }
  int status = EXIT_USAGE;
  if (good) {
    struct diff diff;
    diff_make(&diff, &sides[0], &sides[1]);
    status = print(&diff) ? diff_status(&diff) : EXIT_FAULT;
    diff_free(&diff);
  }
  surface_free(&sides[0]);
  surface_free(&sides[1]);
  return status;
}

int command_diff(int argc, char **argv) {
  enum { OPTION_CATALOG = 256, OPTION_FORMAT, OPTION_DRAFT };
  static const struct option options[] = {{"catalog", required_argument, NULL, OPTION_CATALOG},
                                          {"format", required_argument, NULL, OPTION_FORMAT},
                                          {"draft", no_argument, NULL, OPTION_DRAFT},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
  const char *path = NULL;
  bool (*format)(const struct diff *) = NULL, (*print)(const struct diff *) = diff_report_text;
  bool draft = false;
  int option;
  opterr = 0;
  while ((option = getopt_long(argc, argv, ":h", options, NULL)) != -1) {
    if (option == OPTION_CATALOG) {
      path = optarg;
    } else if (option == OPTION_DRAFT) {
      draft = true;
    } else if (option == OPTION_FORMAT) {
      format = strcmp(optarg, "text") == 0 ? diff_report_text : strcmp(optarg, "json") == 0 ? diff_report_json : NULL;
      if (!format)
        usage_error("unknown format '%s': text or json", optarg);
    } else if (option == 'h') {
      fputs(help, stdout);
      return command_finish(0);
    } else {
      usage_option(option, argv);
    }
  }
  if (optind == argc || strcmp(argv[optind], "diff") != 0)
    usage_error("catalog needs a command: diff; see sgl-migrate catalog --help");
  if (argc - optind != 3)
    usage_error("catalog diff needs OLD and NEW; see sgl-migrate catalog --help");
  if (draft && format)
    usage_error("--draft and --format exclude each other");
  print = draft ? diff_draft : format ? format : print;
  struct catalog *loaded;
  int status = run(command_catalog(path, &loaded), argv + optind + 1, print);
  catalog_free(loaded);
  return command_finish(status);
}
