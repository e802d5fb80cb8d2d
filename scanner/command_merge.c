/* sgl-migrate merge. */
#include "scanner/command.h"
#include "scanner/file.h"
#include "scanner/merge.h"
#include "scanner/report.h"

#include <getopt.h>
#include <stdlib.h>

#define LARGEST ((size_t)1 << 30)

static const char help[] =
    "usage: sgl-migrate merge [OPTION]... FILE...\n"
    "Join SARIF logs of sgl-migrate scan into one, on standard output.\n"
    "\n"
    "The logs of all shards of a scan give the log of the whole scan. Results that several logs have are there once.\n"
    "Logs with another --kernel or --to, or of another version of sgl-migrate, become runs of their own, and are "
    "said.\n"
    "\n"
    "options:\n"
    "  -h, --help   print this text\n"
    "\n"
    "The exit status is that of the scans, joined: see sgl-migrate --help. It has 4 also when a shard is missing, and "
    "is\n"
    "8 when a file is no log of sgl-migrate; nothing is printed then.\n";

static void say(const char *line) {
  fputs("sgl-migrate: ", stderr);
  report_plain(stderr, line);
  fputc('\n', stderr);
}

int command_merge(int argc, char **argv) {
  static const struct option options[] = {{"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
  int option, status;
  opterr = 0;
  while ((option = getopt_long(argc, argv, ":h", options, NULL)) != -1) {
    if (option != 'h')
      usage_option(option, argv);
    fputs(help, stdout);
    return command_finish(0);
  }
  if (optind == argc)
    usage_error("merge needs at least one SARIF file; see sgl-migrate --help");
  struct merge *merge = merge_new();
  for (int i = optind; i < argc; i++) {
    char message[300];
    size_t size;
    char *text = file_read(argv[i], LARGEST, &size, message, sizeof message);
    if (!text || !merge_add(merge, argv[i], text, size, say, message, sizeof message)) {
      char *line = scan_format("%s: %s", argv[i], message);
      say(line);
      exit(EXIT_USAGE);
    }
    free(text);
  }
  json_t *log = merge_finish(merge, say, &status);
  if (!log || json_dumpf(log, stdout, JSON_INDENT(1)) != 0 || putchar('\n') == EOF)
    status |= EXIT_FAULT;
  json_decref(log);
  merge_free(merge);
  return command_finish(status);
}
