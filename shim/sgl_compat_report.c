/* report: who still uses what, as a table, as JSON, and as a page. */
#include "shim/sgl_compat_tool.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

const char tool_report_help[] =
    "usage: sgl-compat report [OPTION]... FILE...\n"
    "\n"
    "Adds up the statistics that processes have written with SGL_KERNEL_COMPAT_STATS: which deleted names are still\n"
    "used, by whom, how often, since when, and which are ready to be deleted. A FILE may be a folder: all .jsonl "
    "files\n"
    "below it. Python counts accesses of a name, the other faces count calls. Replays of captured graphs are not\n"
    "seen, nor what a process did in its last half minute, if it was killed. A process counts once, by its newest\n"
    "file. A file or line that cannot be read is named, and then no name is called ready to be deleted.\n"
    "\n"
    "options:\n"
    "      --html FILE   also write a page that needs nothing else\n"
    "      --json        JSON instead of the table\n" TOOL_HELP_OPTION "\n" TOOL_EXIT_STATUS "\n"
    "examples:\n"
    "  sgl-compat report /var/log/sgl/*.jsonl\n"
    "  sgl-compat report --html usage.html --json /var/log/sgl | jq -r '.unused[]'\n";

/* --- what the table and the page say alike ------------------------------------------------------------------------ */

struct tool_date tool_date(const json_t *seconds) {
  struct tool_date date = {"-"};
  time_t time = (time_t)json_integer_value(seconds);
  struct tm utc;
  if (time > 0 && gmtime_r(&time, &utc))
    strftime(date.text, sizeof date.text, "%Y-%m-%d", &utc);
  return date;
}

static const char *plural(json_int_t count) {
  return count == 1 ? "" : "s";
}

struct tool_text tool_report_summary(const json_t *tree) {
  struct tool_text text;
  json_int_t processes = json_integer_value(json_object_get(tree, "processes"));
  json_int_t jobs = (json_int_t)json_object_size(json_object_get(tree, "jobs"));
  json_int_t hosts = (json_int_t)json_object_size(json_object_get(tree, "hosts"));
  snprintf(text.text, sizeof text.text,
           "%lld process%s of %lld job%s on %lld host%s, written %s to %s (UTC). Replays of captured graphs are not "
           "seen.%s",
           (long long)processes, processes == 1 ? "" : "es", (long long)jobs, plural(jobs), (long long)hosts,
           plural(hosts), tool_date(json_object_get(tree, "from")).text, tool_date(json_object_get(tree, "until")).text,
           json_is_true(json_object_get(tree, "complete")) ? "" : " Something could not be read.");
  return text;
}

struct tool_text tool_report_stages(const json_t *symbol) {
  static const char *const stages[] = {"silent", "warn", "error", "tombstone"};
  struct tool_text text = {""};
  size_t length = 0;
  for (size_t i = 0; i < sizeof stages / sizeof stages[0]; i++)
    if (json_object_get(json_object_get(symbol, "stages"), stages[i]))
      length += (size_t)snprintf(text.text + length, sizeof text.text - length, "%s%s", length ? ", " : "", stages[i]);
  return text;
}

struct tool_text tool_report_faces(const json_t *hidden) {
  struct tool_text text = {""};
  size_t length = 0;
  const char *face;
  json_t *value;
  json_object_foreach(json_object_get(hidden, "faces"), face, value) {
    length += (size_t)snprintf(text.text + length, sizeof text.text - length, "%s%s", length ? ", " : "", face);
  }
  return text;
}

struct tool_text tool_report_unused(const json_t *tree) {
  struct tool_text text;
  size_t names = json_array_size(json_object_get(tree, "unused"));
  snprintf(text.text, sizeof text.text,
           json_is_true(json_object_get(tree, "complete"))
               ? "ready to delete, not used by any of these processes: %zu name%s"
               : "not known to be ready to delete, since something could not be read; what was read has no use: %zu "
                 "name%s",
           names, plural((json_int_t)names));
  return text;
}

bool tool_report_only_fails(const json_t *symbol) {
  const json_t *stages = json_object_get(symbol, "stages");
  return json_object_size(stages) > 0 && !json_object_get(stages, "silent") && !json_object_get(stages, "warn");
}

/* How much of a text is shown: at most so many bytes, and no part of a character. */
static int shown(const char *text, size_t most) {
  size_t length = strnlen(text, most + 1);
  if (length > most)
    for (length = most; length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80;)
      length--;
  return (int)length;
}

struct tool_text tool_report_caller(const json_t *caller) {
  struct tool_text text;
  const char *face = json_string_value(json_object_get(caller, "face"));
  const char *place = json_string_value(json_object_get(caller, "place"));
  long long calls = json_integer_value(json_object_get(caller, "calls"));
  long long samples = json_integer_value(json_object_get(caller, "samples"));
  long long processes = json_integer_value(json_object_get(caller, "processes"));
  char counted[80];
  if (calls)
    snprintf(counted, sizeof counted, "%lld", calls);
  else
    snprintf(counted, sizeof counted, "%lld of the sampled calls", samples);
  if (!*place)
    place = strcmp(face, "operator") == 0 ? "through torch's dispatcher" : "an unknown place";
  snprintf(text.text, sizeof text.text, "%s  %.*s: %s, in %lld process%s", face, shown(place, 1500), place, counted,
           processes, processes == 1 ? "" : "es");
  return text;
}

struct tool_text tool_report_jobs(const json_t *symbol) {
  enum { JOBS = 4 };
  struct tool_text text = {""};
  const json_t *names = json_object_get(symbol, "job_names"), *name;
  size_t i, length = 0, count = json_array_size(names);
  json_array_foreach(names, i, name) {
    const char *job = json_string_value(name);
    if (i == JOBS) {
      snprintf(text.text + length, sizeof text.text - length, " and %zu other%s", count - JOBS,
               plural((json_int_t)(count - JOBS)));
      break;
    }
    length += (size_t)snprintf(text.text + length, sizeof text.text - length, "%s%.*s",
                               i            ? ", "
                               : count == 1 ? "job: "
                                            : "jobs: ",
                               shown(job, 300), job);
  }
  return text;
}

/* --- the table ---------------------------------------------------------------------------------------------------- */

static void print_number(json_int_t number, int width) {
  char text[32];
  snprintf(text, sizeof text, "%*lld", width, (long long)number);
  tool_print(text, TOOL_PLAIN, width + 2);
}

static int width_of_names(const json_t *symbols) {
  int width = 6; /* symbol */
  const char *id;
  json_t *symbol;
  json_object_foreach((json_t *)symbols, id, symbol) {
    width = (int)strlen(id) > width ? (int)strlen(id) : width;
  }
  return width;
}

static void print_symbol(const json_t *tree, const char *id, const json_t *symbol, int width) {
  char processes[64];
  size_t i;
  json_t *caller;
  bool fails = tool_report_only_fails(symbol);
  snprintf(processes, sizeof processes, "%lld of %lld",
           (long long)json_integer_value(json_object_get(symbol, "processes")),
           (long long)json_integer_value(json_object_get(tree, "processes")));
  tool_print(id, TOOL_PLAIN, width + 2);
  tool_print(json_string_value(json_object_get(symbol, "removed_in")), TOOL_PLAIN, 12);
  tool_print(tool_report_stages(symbol).text, TOOL_PLAIN, 14);
  print_number(json_integer_value(json_object_get(symbol, "calls")), 12);
  print_number(json_integer_value(json_object_get(symbol, "failed")), 8);
  tool_print(processes, TOOL_PLAIN, 14);
  tool_print(tool_date(json_object_get(symbol, "first")).text, TOOL_PLAIN, 12);
  tool_print(tool_date(json_object_get(symbol, "last")).text, TOOL_PLAIN, 12);
  tool_print(fails ? "no: it is asked for, and fails" : "no: in use", fails ? TOOL_YELLOW : TOOL_RED, 0);
  putchar('\n');
  json_array_foreach(json_object_get(symbol, "callers"), i, caller) {
    fputs("    ", stdout);
    tool_print(tool_report_caller(caller).text, TOOL_PLAIN, 0);
    putchar('\n');
  }
  if (tool_report_jobs(symbol).text[0]) {
    fputs("    ", stdout);
    tool_print(tool_report_jobs(symbol).text, TOOL_PLAIN, 0);
    putchar('\n');
  }
}

static void print_counts(const json_t *tree) {
  const char *key;
  json_t *value;
  const json_t *kernels = json_object_get(tree, "kernels"), *shadow = json_object_get(tree, "shadow");
  if (json_object_size(kernels))
    puts("\nkernels that ran (sgl-jit warm --stats compiles them ahead):");
  json_object_foreach((json_t *)kernels, key, value) {
    fputs("    ", stdout);
    tool_print(key, TOOL_PLAIN, 0);
    printf(": %lld\n", (long long)json_integer_value(value));
  }
  if (json_integer_value(json_object_get(tree, "kernels_lost")))
    printf("    others, of processes with more than 256: %lld\n",
           (long long)json_integer_value(json_object_get(tree, "kernels_lost")));
  if (json_object_size(shadow))
    puts("\nshadow comparisons:");
  json_object_foreach((json_t *)shadow, key, value) {
    fputs("    ", stdout);
    tool_print(key, TOOL_PLAIN, 0);
    printf(": %s\n", tool_report_shadow(value).text);
  }
}

struct tool_text tool_report_shadow(const json_t *shadow) {
  struct tool_text text;
  long long matches = json_integer_value(json_object_get(shadow, "matches"));
  long long mismatches = json_integer_value(json_object_get(shadow, "mismatches"));
  snprintf(text.text, sizeof text.text,
           "%s%lld matched, %lld did not, %lld ignored, %lld over the budget, %lld errors, of %lld calls",
           matches || mismatches ? "" : "nothing was compared: ", matches, mismatches,
           (long long)json_integer_value(json_object_get(shadow, "ignored")),
           (long long)json_integer_value(json_object_get(shadow, "over_budget")),
           (long long)json_integer_value(json_object_get(shadow, "errors")),
           (long long)json_integer_value(json_object_get(shadow, "calls")));
  return text;
}

/* Of names that are in use too the table says so. */
static void print_not_counted(const json_t *tree) {
  const char *id;
  json_t *hidden;
  const json_t *names = json_object_get(tree, "not_counted");
  if (json_object_size(names))
    puts("\nnot known, since an installed sgl_kernel serves them itself and not all of their uses are counted:");
  json_object_foreach((json_t *)names, id, hidden) {
    long long processes = json_integer_value(json_object_get(hidden, "processes"));
    fputs("    ", stdout);
    tool_print(id, TOOL_YELLOW, 0);
    printf(": %s, in %lld process%s\n", tool_report_faces(hidden).text, processes, processes == 1 ? "" : "es");
  }
}

static void print_unused(const json_t *tree) {
  const json_t *unused = json_object_get(tree, "unused");
  size_t i, column = 0;
  json_t *id;
  if (json_array_size(unused) == 0)
    return;
  if (json_integer_value(json_object_get(tree, "processes")) == 0) {
    puts("\nno process: nothing is known of any name");
    return;
  }
  bool complete = json_is_true(json_object_get(tree, "complete"));
  printf("\n%s\n", tool_report_unused(tree).text);
  json_array_foreach(unused, i, id) {
    size_t length = strlen(json_string_value(id)) + 1;
    bool wraps = column + length > 100;
    fputs(i == 0 ? "    " : wraps ? "\n    " : " ", stdout);
    column = wraps || i == 0 ? length : column + length;
    tool_print(json_string_value(id), complete ? TOOL_GREEN : TOOL_PLAIN, 0);
  }
  putchar('\n');
}

static void print_table(const json_t *tree) {
  const json_t *symbols = json_object_get(tree, "symbols");
  int width = width_of_names(symbols);
  const char *id;
  json_t *symbol;
  puts(tool_report_summary(tree).text);
  if (json_object_size(symbols))
    printf("\n%-*s  removed in  stage         %12s  %8s  processes     first       last        ready to delete\n",
           width, "symbol", "uses", "failed");
  json_object_foreach((json_t *)symbols, id, symbol) {
    print_symbol(tree, id, symbol, width);
  }
  print_counts(tree);
  print_not_counted(tree);
  print_unused(tree);
}

int tool_report(int argc, char **argv) {
  static const struct option options[] = {
      {"html", required_argument, NULL, 'h'}, {"json", no_argument, NULL, 'j'}, {NULL, 0, NULL, 0}};
  const char *page = NULL;
  bool json = false, good;
  opterr = 0;
  for (int c; (c = getopt_long(argc, argv, ":", options, NULL)) != -1;) {
    if (c == ':')
      tool_usage("report: %s needs a value; see sgl-compat report --help", argv[optind - 1]);
    if (c != 'h' && c != 'j')
      tool_usage("report has no option %s; see sgl-compat report --help", argv[optind - 1]);
    const char *end = c == 'h' ? strrchr(optarg, '.') : NULL;
    if (end && strcmp(end, ".jsonl") == 0) /* of a pattern the shell makes many words */
      tool_usage("report: --html %s would be written over statistics; name the page before them", optarg);
    json = json || c == 'j';
    page = c == 'h' ? optarg : page;
  }
  if (optind == argc)
    tool_usage("report: a file is needed; see sgl-compat report --help");
  json_t *tree = tool_stats(argv + optind, argc - optind, &good);
  if (page && !tool_report_page(tree, page))
    good = false;
  if (json)
    tool_print_json(tree);
  else {
    print_table(tree);
    json_decref(tree);
  }
  return good ? STATUS_OK : STATUS_BAD;
}
