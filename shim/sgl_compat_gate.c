/* gate: may the names of a policy file go to their next stage? Asked in CI, answered from what was counted and found.
 */
#include "shim/policy.h"
#include "shim/policy_sources.h"
#include "shim/sgl_compat_tool.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STATUS_NOT_KNOWN = 3 };

const char tool_gate_help[] =
    "usage: sgl-compat gate --policy FILE --stats PATH [--sarif FILE]\n"
    "\n"
    "Says of each name for which the policy file sets a stage or a ramp whether it may go to the stage after the one\n"
    "that holds today for jobs that are in no ramp. To warn it may go when processes have written statistics; from\n"
    "warn on when none of them uses the name (from error on only a use that works counts), no live use of it is in "
    "the\n"
    "sources, no extension holds, and each comparison of its shadow matched. What statistics, sources or shadow "
    "cannot\n"
    "tell, since they are damaged or left something out, is not known, and then so is the answer.\n"
    "\n"
    "options:\n"
    "      --policy FILE  the policy, see sgl-compat policy check\n"
    "      --stats PATH   a file of statistics or a folder of them, see sgl-compat report\n"
    "      --sarif FILE   what sgl-migrate scan --format sarif has found in the sources\n"
    "                     (--stats and --sarif may be given several times)\n" TOOL_HELP_OPTION "\n"
    "exit status:\n"
    "  0   each name may go to its next stage\n"
    "  1   one may not\n"
    "  2   wrong usage: nothing was done\n"
    "  3   not known: of no name the answer is no, but of one it is not known, or the policy is not understood\n"
    "\n"
    "examples:\n"
    "  sgl-migrate scan --format sarif . > found.sarif\n"
    "  sgl-compat gate --policy policy --stats /var/log/sgl --sarif found.sarif\n";

struct gate {
  const char *policy;
  bool understood; /* the whole policy */
  const json_t *stats;
  bool stats_good;
  char **sarif; /* the paths of logs */
  int sarif_count;
  bool scan_good; /* all could be read */
  struct tool_scan scan;
};

/* --- reasons ------------------------------------------------------------------------------------------------------ */

enum { REASONS = 16 };
struct reasons {
  char *text[REASONS];
  int count;
};

__attribute__((format(printf, 2, 3))) static void add(struct reasons *reasons, const char *format, ...) {
  char line[2400];
  va_list list;
  va_start(list, format);
  vsnprintf(line, sizeof line, format, list);
  va_end(list);
  if (reasons->count < REASONS) {
    char *copy = tool_realloc(NULL, strlen(line) + 1);
    reasons->text[reasons->count++] = strcpy(copy, line);
  }
}

static void print_reasons(struct reasons *reasons) {
  for (int i = 0; i < reasons->count; i++) {
    fputs("    ", stdout);
    tool_print(reasons->text[i], TOOL_PLAIN, 0);
    putchar('\n');
    free(reasons->text[i]);
  }
}

/* What speaks against the next stage of a name, and what nobody knows. */
struct findings {
  struct reasons against, unknown;
};

static long long count_of(const json_t *object, const char *key) {
  return json_integer_value(json_object_get(object, key));
}

static const char *plural(long long count) {
  return count == 1 ? "" : "es";
}

/* What fails today fails after the step too. A use that a stage made fail which the name no longer has, or only in a
 * ramp, is one: the step would break it. */
static bool fails_anyhow(unsigned symbol, sgl_compat_stage stage, const json_t *used) {
  bool nobody_answers = strcmp(compat_symbols[symbol].stage, policy_stage_name(SGL_COMPAT_STAGE_TOMBSTONE)) == 0;
  return tool_report_only_fails(used) && (stage >= SGL_COMPAT_STAGE_ERROR || nobody_answers);
}

static void look_at_uses(struct findings *findings, unsigned symbol, sgl_compat_stage stage, const struct gate *gate) {
  const char *id = compat_symbols[symbol].id;
  const json_t *used = json_object_get(json_object_get(gate->stats, "symbols"), id), *caller;
  const json_t *hidden = json_object_get(json_object_get(gate->stats, "not_counted"), id);
  size_t i;
  if (!gate->stats_good)
    add(&findings->unknown, "uses of it may be in the statistics that could not be read");
  if (hidden)
    add(&findings->unknown,
        "in %lld process%s an installed sgl_kernel serves it itself, and uses by %s are not counted",
        count_of(hidden, "processes"), plural(count_of(hidden, "processes")), tool_report_faces(hidden).text);
  if (!used || fails_anyhow(symbol, stage, used))
    return;
  long long processes = count_of(used, "processes"), calls = count_of(used, "calls");
  add(&findings->against, "it is in use: %lld time%s, in %lld process%s, last on %s", calls, calls == 1 ? "" : "s",
      processes, plural(processes), tool_date(json_object_get(used, "last")).text);
  json_array_foreach(json_object_get(used, "callers"), i, caller) {
    if (i == 3) {
      add(&findings->against, "and from %zu other places", json_array_size(json_object_get(used, "callers")) - i);
      break;
    }
    add(&findings->against, "from %s", tool_report_caller(caller).text);
  }
}

static void look_at_shadow(struct findings *findings, const char *id, bool on, const json_t *stats) {
  const json_t *shadow = json_object_get(json_object_get(stats, "shadow"), id);
  long long mismatches = count_of(shadow, "mismatches");
  if (mismatches)
    add(&findings->against, "%lld of its shadow's comparisons did not match", mismatches);
  else if (on && !count_of(shadow, "matches"))
    add(&findings->against, "the policy has its shadow on, but %s",
        shadow ? tool_report_shadow(shadow).text : "no process had it on");
  if (count_of(shadow, "errors"))
    add(&findings->unknown, "%lld of its shadow's comparisons ended in an error, so nobody knows what they would show",
        count_of(shadow, "errors"));
}

static void look_at_sources(struct findings *findings, unsigned symbol, const struct gate *gate) {
  char first[600] = "";
  if (!gate->sarif_count)
    return;
  size_t found = tool_scan_uses(&gate->scan, compat_symbols[symbol].id, first, sizeof first);
  if (found)
    add(&findings->against, "the sources have %zu live use%s of it, the first at %s", found, found == 1 ? "" : "s",
        first);
  if (!gate->scan_good)
    add(&findings->unknown, "the scan of the sources could not be read");
  else if (gate->scan.left_out[0])
    add(&findings->unknown, "%s", gate->scan.left_out);
  else if (!tool_scan_tells_of(&gate->scan, symbol))
    add(&findings->unknown,
        "the scan of the sources was against kernel %s, which still has some of it; %s is the first without",
        compat_releases[gate->scan.release], compat_symbols[symbol].gone_in);
}

/* --- one name ----------------------------------------------------------------------------------------------------- */

/* The exit status that it asks for; prints the answer. */
static int judge(const struct gate *gate, unsigned symbol, const struct policy_facts *facts) {
  const char *id = compat_symbols[symbol].id;
  struct findings findings = {0};
  tool_print(id, TOOL_PLAIN, 0);
  if (facts->stage == SGL_COMPAT_STAGE_TOMBSTONE) {
    printf(": tombstone: no stage follows\n");
    return STATUS_OK;
  }
  sgl_compat_stage next = (sgl_compat_stage)(facts->stage + 1);
  if (facts->extension[0])
    add(&findings.against, "%s", facts->extension);
  if (count_of(gate->stats, "processes") == 0)
    add(&findings.unknown, "no process has written statistics, so nothing is known of its uses");
  if (next != SGL_COMPAT_STAGE_WARN) {
    look_at_uses(&findings, symbol, facts->stage, gate);
    look_at_shadow(&findings, id, facts->shadow.first || facts->shadow.every, gate->stats);
    look_at_sources(&findings, symbol, gate);
  }
  bool no = findings.against.count, unknown = findings.unknown.count;
  printf(": %s to %s: ", policy_stage_name(facts->stage), policy_stage_name(next));
  tool_print(no ? "no" : unknown ? "not known" : "yes", no ? TOOL_RED : unknown ? TOOL_YELLOW : TOOL_GREEN, 0);
  putchar('\n');
  if (facts->kind != POLICY_STAGE && strcmp(facts->from, facts->extension) != 0) /* not what its line says */
    printf("    (%s)\n", facts->from);
  print_reasons(&findings.against);
  print_reasons(&findings.unknown);
  return no ? STATUS_BAD : unknown ? STATUS_NOT_KNOWN : STATUS_OK;
}

/* --- the command -------------------------------------------------------------------------------------------------- */

static void ignore(void *user, const struct policy_directive *directive) {
  (void)user, (void)directive;
}

static void not_understood(void *user, unsigned line, const char *text) {
  struct gate *gate = user;
  gate->understood = false;
  tool_error("%s:%u: %s", gate->policy, line, text);
}

/* What the answers rest on. */
static void print_basis(const struct gate *gate) {
  printf("statistics: %s\nsources: ", tool_report_summary(gate->stats).text);
  for (int i = 0; i < gate->sarif_count; i++) {
    fputs(i ? ", " : "", stdout);
    tool_print(gate->sarif[i], TOOL_PLAIN, 0);
  }
  if (!gate->sarif_count)
    puts("not looked at, since there is no --sarif");
  else if (!gate->scan_good)
    puts(": could not be read");
  else {
    printf(": %lld file%s, against kernel %s", (long long)gate->scan.files, gate->scan.files == 1 ? "" : "s",
           gate->scan.release < compat_releases_count ? compat_releases[gate->scan.release] : "?");
    if (gate->scan.not_entered)
      printf("; left out on purpose, or ignored by git: %lld", (long long)gate->scan.not_entered);
    putchar('\n');
  }
}

/* No is certain, and goes before what is not known. */
static int harder(int status, int other) {
  return status == STATUS_BAD || other == STATUS_BAD ? STATUS_BAD : status > other ? status : other;
}

static int answer(struct gate *gate) {
  int status = gate->understood ? STATUS_OK : STATUS_NOT_KNOWN;
  unsigned names = 0;
  print_basis(gate);
  for (unsigned i = 0; i < COMPAT_SYMBOLS; i++) {
    struct policy_facts facts = policy_facts(i);
    if (facts.is_set || facts.ramp[0]) {
      names++;
      status = harder(status, judge(gate, i, &facts));
    }
  }
  if (!names) {
    tool_error("%s: it sets no stage, so there is nothing to ask", gate->policy);
    status = STATUS_NOT_KNOWN;
  }
  return status;
}

struct paths {
  char **list;
  int count;
};

static void add_path(struct paths *paths, char *path) {
  paths->list = tool_realloc(paths->list, (size_t)(paths->count + 1) * sizeof *paths->list);
  paths->list[paths->count++] = path;
}

static void parse(int argc, char **argv, struct gate *gate, struct paths *stats, struct paths *sarif) {
  static const struct option options[] = {{"policy", required_argument, NULL, 'p'},
                                          {"stats", required_argument, NULL, 's'},
                                          {"sarif", required_argument, NULL, 'f'},
                                          {NULL, 0, NULL, 0}};
  opterr = 0;
  for (int c; (c = getopt_long(argc, argv, ":", options, NULL)) != -1;) {
    if (c == 'p' && gate->policy)
      tool_usage("gate: one --policy is needed, got %s too; see sgl-compat gate --help", optarg);
    else if (c == 'p')
      gate->policy = optarg;
    else if (c == 's' || c == 'f')
      add_path(c == 's' ? stats : sarif, optarg);
    else if (c == ':')
      tool_usage("gate: %s needs a value; see sgl-compat gate --help", argv[optind - 1]);
    else
      tool_usage("gate has no option %s; see sgl-compat gate --help", argv[optind - 1]);
  }
  if (optind < argc)
    tool_usage("gate takes no argument without an option, got %s; see sgl-compat gate --help", argv[optind]);
  if (!gate->policy || !stats->count)
    tool_usage("gate: --policy FILE and --stats PATH are needed; see sgl-compat gate --help");
}

int tool_gate(int argc, char **argv) {
  struct gate gate = {.understood = true, .scan_good = true};
  struct paths paths = {NULL, 0}, logs = {NULL, 0};
  parse(argc, argv, &gate, &paths, &logs);
  size_t size;
  int status = STATUS_NOT_KNOWN;
  char *text = tool_read(gate.policy, &size);
  if (text) {
    if (size > POLICY_MOST)
      not_understood(&gate, 1, "the file is larger than a mebibyte, so no program takes it");
    policy_parse(text, size, ignore, not_understood, &gate);
    policy_load_text(gate.policy, text, size);
    json_t *stats = tool_stats(paths.list, paths.count, &gate.stats_good);
    gate.stats = stats;
    gate.sarif = logs.list;
    gate.sarif_count = logs.count;
    for (int i = 0; i < logs.count; i++)
      gate.scan_good &= tool_scan_read(logs.list[i], &gate.scan);
    status = answer(&gate);
    json_decref(stats);
    json_decref(gate.scan.runs);
  }
  free(text);
  free(paths.list);
  free(logs.list);
  return status;
}
