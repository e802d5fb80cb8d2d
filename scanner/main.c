/* sgl-migrate: chooses the command. */
#include "scanner/command.h"

#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static const struct {
  const char *name, *what;
  int (*run)(int argc, char **argv);
} commands[] = {
    {"scan", "list uses of removed names", command_scan},
    {"fix", "rewrite the uses that are safe to rewrite", command_fix},
    {"merge", "join SARIF logs of scan", command_merge},
    {"audit", "say what binaries need and have, and who answers it", command_audit},
    {"doctor", "say what is wrong with an installed environment", command_doctor},
    {"explain", "explain an error message or a name", command_explain},
    {"catalog", "compare two releases of the library, and with the catalog", command_diff},
};
#define COMMANDS (sizeof commands / sizeof *commands)

static const char help_end[] =
    "\n"
    "sgl-migrate COMMAND --help describes a command.\n"
    "\n"
    "options:\n"
    "  --version    print the version\n"
    "  -h, --help   print this text\n"
    "\n"
    "exit status, the sum of:\n"
    "  0    no live use\n"
    "  1    live uses were found; of fix: live uses remain\n"
    "  2    at least one of them needs a person\n"
    "  4    a file or folder was not analysed, or only in part (named on standard error)\n"
    "  8    wrong usage, or changes in the git work tree that fix would mix with: nothing was done\n"
    "  16   an error: a file could not be written, or memory ran out\n"
    "  32   an entry of the baseline has no use, or an ignore comment is unused, expired or malformed\n"
    "\n"
    "examples:\n"
    "  sgl-migrate scan --kernel 0.4.6 --to sglang@0.5.18 ~/src/server\n"
    "  sgl-migrate scan --format sarif . > sgl-migrate.sarif\n"
    "  sgl-migrate fix --diff src | git apply\n"
    "  sgl-migrate fix --to jit src/model.py\n";

static void help(void) {
  fputs("usage: sgl-migrate COMMAND [OPTION]... ARGUMENT...\n\ncommands:\n", stdout);
  for (size_t i = 0; i < COMMANDS; i++)
    printf("  %-10s %s\n", commands[i].name, commands[i].what);
  fputs(help_end, stdout);
}

int main(int argc, char **argv) {
  /* Trees of whole files come and go; the kernel need not get their memory back in between. */
  mallopt(M_TOP_PAD, 8 << 20);
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
  signal(SIGXFSZ, SIG_IGN); /* a limit of file sizes (ulimit -f) is an error of write() as a full disk is */
  if (argc < 2)
    usage_error("a command is needed; see sgl-migrate --help");
  const char *name = argv[1];
  for (size_t i = 0; i < COMMANDS; i++)
    if (strcmp(name, commands[i].name) == 0)
      return commands[i].run(argc - 1, argv + 1);
  if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
    help();
    return command_finish(0);
  }
  if (strcmp(name, "--version") == 0) {
    puts("sgl-migrate " SGL_VERSION);
    return command_finish(0);
  }
  usage_error("%s '%s': a command comes first; see sgl-migrate --help",
              *name == '-' ? "unknown option" : "unknown command", name);
}
