/* sgl-compat: main, the table of commands, and what all commands print alike. */
#include "shim/sgl_compat_tool.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* --- output ------------------------------------------------------------------------------------------------------- */

__attribute__((format(printf, 1, 0))) static void say_error(const char *format, va_list list) {
  char line[4096];
  vsnprintf(line, sizeof line, format, list);
  for (char *c = line; *c; c++) /* one line, and nothing that moves the cursor */
    if ((unsigned char)*c < 0x20 || *c == 0x7f)
      *c = '?';
  fflush(stdout); /* the order of both on a terminal */
  fprintf(stderr, "sgl-compat: %s\n", line);
}

void tool_error(const char *format, ...) {
  va_list list;
  va_start(list, format);
  say_error(format, list);
  va_end(list);
}

void tool_usage(const char *format, ...) {
  va_list list;
  va_start(list, format);
  say_error(format, list);
  va_end(list);
  exit(STATUS_USAGE);
}

void *tool_realloc(void *memory, size_t size) {
  void *grown = realloc(memory, size ? size : 1);
  if (!grown) {
    tool_error("out of memory");
    exit(STATUS_BAD);
  }
  return grown;
}

char *tool_read(const char *path, size_t *size) {
  char *text = tool_realloc(NULL, 1);
  size_t room = 0, got;
  *size = 0;
  errno = 0;
  FILE *file = fopen(path, "re");
  while (file && (room = *size + 65536, text = tool_realloc(text, room + 1),
                  got = fread(text + *size, 1, room - *size, file)) > 0)
    *size += got;
  if (!file || ferror(file)) {
    tool_error("%s: %s", path, strerror(errno));
    free(text);
    text = NULL;
  } else {
    text[*size] = '\0';
  }
  if (file)
    fclose(file);
  return text;
}

static bool has_colour(void) {
  const char *no_color = getenv("NO_COLOR"), *terminal = getenv("TERM");
  return isatty(STDOUT_FILENO) && !(no_color && *no_color) && !(terminal && strcmp(terminal, "dumb") == 0);
}

void tool_print(const char *text, enum tool_colour colour, int width) {
  bool coloured = colour != TOOL_PLAIN && has_colour();
  if (coloured)
    printf("\x1b[%dm", (int)colour);
  for (; *text; text++) {
    unsigned char c = (unsigned char)*text;
    if (c < 0x20 || c == 0x7f)
      width -= printf("\\x%02x", c);
    else
      putchar(c);
    width -= c >= 0x20 && (c & 0xc0) != 0x80; /* one column a character of UTF-8 */
  }
  if (coloured)
    printf("\x1b[0m");
  printf("%*s", width > 0 ? width : 0, "");
}

json_t *tool_json(const char *text) {
  json_t *value = text ? json_string(text) : json_null();
  if (value)
    return value;
  char *escaped = tool_realloc(NULL, strlen(text) * 4 + 1), *end = escaped;
  for (; *text; text++)
    end += (unsigned char)*text < 0x80 ? sprintf(end, "%c", *text) : sprintf(end, "\\x%02x", (unsigned char)*text);
  *end = '\0';
  value = json_string(escaped);
  free(escaped);
  return value;
}

void tool_print_json(json_t *value) {
  json_dumpf(value, stdout, JSON_INDENT(2)); /* what did not arrive is found by finish() */
  putchar('\n');
  json_decref(value);
}

/* Output that did not arrive is an error, also of --help. */
static int finish(int status) {
  errno = 0;
  if (fflush(stdout) != 0 || ferror(stdout)) {
    fprintf(stderr, "sgl-compat: standard output: %s\n", errno ? strerror(errno) : "it could not all be written");
    return STATUS_BAD;
  }
  return status;
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
  signal(SIGPIPE, SIG_IGN); /* a reader that goes away must not stop the work: finish() says it */
  signal(SIGXFSZ, SIG_IGN); /* the limit of file sizes (ulimit -f) is an error like a full disk */
  if (argc < 2)
    tool_usage("a command is needed; see sgl-compat --help");
  if (is_help(argv[1])) {
    print_help();
    return finish(STATUS_OK);
  }
  if (strcmp(argv[1], "--version") == 0) {
    puts("sgl-compat " SGL_VERSION);
    return finish(STATUS_OK);
  }
  int words = 1;
  const struct command *command = find_command(argc, argv, &words);
  if (!command && words == 2 && argc > 2 && is_help(argv[2])) {
    print_help();
    return finish(STATUS_OK);
  }
  if (!command)
    tool_usage("unknown command '%s%s%s'; sgl-compat --help lists them", argv[1], words == 2 && argc > 2 ? " " : "",
               words == 2 && argc > 2 ? argv[2] : "");
  for (int i = words + 1; i < argc && strcmp(argv[i], "--") != 0; i++)
    if (is_help(argv[i])) {
      fputs(command->help, stdout);
      return finish(STATUS_OK);
    }
  return finish(command->run(argc - words, argv + words));
}
