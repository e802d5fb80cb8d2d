/* sgl-compat: main, the table of commands, and the files that they read. */
#include "shim/sgl_compat_tool.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char tool_name[] = "sgl-compat";

/* A name of two words is a command of a group: "policy" alone is none. */
static const struct command {
  const char *name, *summary, *help;
  int (*run)(int argc, char **argv);
} commands[] = {
    {"policy show", "the stage of each deleted name, and where it was set", tool_policy_show_help, tool_policy_show},
    {"policy check", "look for faults in policy files, for CI", tool_policy_check_help, tool_policy_check},
    {"gate", "may a name go to its next stage? For CI, with reasons", tool_gate_help, tool_gate},
    {"replay", "make the comparisons again that a shadow run has saved", tool_replay_help, tool_replay},
    {"report", "who still uses what, from the statistics of many processes", tool_report_help, tool_report},
};
enum { COMMANDS = sizeof commands / sizeof commands[0] };

static void print_help(void) {
  fputs(
      "usage: sgl-compat COMMAND [OPTION]... [ARGUMENT]...\n"
      "\n"
      "The deleted names of sgl_kernel that libsgl_kernel_compat.so and the Python package serve: how they are rolled\n"
      "out of use, stage by stage.\n"
      "\n"
      "commands:\n",
      stdout);
  for (int i = 0; i < COMMANDS; i++)
    printf("  %-13s  %s\n", commands[i].name, commands[i].summary);
  fputs("\n"
        "options:\n"
        "  --version    print the version\n"
        "  -h, --help   print this text; sgl-compat COMMAND --help tells about a command\n"
        "\n" TOOL_EXIT_STATUS "\n"
        "examples:\n"
        "  sgl-compat policy show --effective\n"
        "  sgl-compat policy check sgl-kernel-policy\n"
        "  sgl-compat report /var/log/sgl/*.jsonl\n"
        "  sgl-compat gate --policy sgl-kernel-policy --stats /var/log/sgl\n",
        stdout);
}

char *tool_read(const char *path, size_t *size) {
  char *text = tool_realloc(NULL, 1);
  size_t room = 0, got;
  *size = 0;
  errno = 0;
  FILE *file = fopen(path, "re");
  while (file && (room = *size + (*size > 65536 ? *size : 65536), text = tool_realloc(text, room + 1),
                  got = fread(text + *size, 1, room - *size, file)) > 0)
    *size += got;
  if (!file || ferror(file)) {
    tool_error("%s: %s", path, strerror(errno));
    free(text);
    text = NULL;
  } else {
    text = tool_realloc(text, *size + 1); /* report keeps many */
    text[*size] = '\0';
  }
  if (file)
    fclose(file);
  return text;
}

/* --- command line ------------------------------------------------------------------------------------------------- */

/* The command that the first words name, and how many they are. */
static const struct command *find_command(int argc, char **argv, int *words) {
  for (int i = 0; i < COMMANDS; i++) {
    const char *name = commands[i].name, *blank = strchr(name, ' ');
    size_t first = blank ? (size_t)(blank - name) : strlen(name);
    if (strlen(argv[1]) != first || strncmp(argv[1], name, first) != 0)
      continue;
    *words = blank ? 2 : 1;
    if (!blank || (argc > 2 && strcmp(argv[2], blank + 1) == 0))
      return &commands[i];
  }
  return NULL;
}

static bool is_help(const char *text) {
  return strcmp(text, "--help") == 0 || strcmp(text, "-h") == 0;
}

int main(int argc, char **argv) {
  signal(SIGPIPE, SIG_IGN); /* a reader that goes away must not stop the work: tool_finish() says it */
  signal(SIGXFSZ, SIG_IGN); /* the limit of file sizes (ulimit -f) is an error like a full disk */
  if (argc < 2)
    tool_usage("a command is needed; see sgl-compat --help");
  if (is_help(argv[1])) {
    print_help();
    return tool_finish(STATUS_OK);
  }
  if (strcmp(argv[1], "--version") == 0) {
    puts("sgl-compat " SGL_VERSION);
    return tool_finish(STATUS_OK);
  }
  int words = 1;
  const struct command *command = find_command(argc, argv, &words);
  if (!command && words == 2 && argc > 2 && is_help(argv[2])) {
    print_help();
    return tool_finish(STATUS_OK);
  }
  if (!command)
    tool_usage("unknown command '%s%s%s'; sgl-compat --help lists them", argv[1], words == 2 && argc > 2 ? " " : "",
               words == 2 && argc > 2 ? argv[2] : "");
  for (int i = words + 1; i < argc && strcmp(argv[i], "--") != 0; i++)
    if (is_help(argv[i])) {
      fputs(command->help, stdout);
      return tool_finish(STATUS_OK);
    }
  return tool_finish(command->run(argc - words, argv + words));
}
