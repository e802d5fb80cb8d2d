/* gate: may the names of a policy file go to their next stage? Asked in CI, answered from what was counted and found.
 */
#include "shim/policy.h"
#include "shim/sgl_compat_tool.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char tool_gate_help[] =
    "usage: sgl-compat gate --policy FILE --stats PATH [--sarif FILE]\n"
    "\n"
    "Says of each name for which the policy file sets a stage whether it may go to the next one, and why not. To warn "
    "it\n"
    "may go when processes have written statistics; from warn on when none of them uses the name (a use that meets an\n"
    "error already does not count), no live use of it is in the sources, no extension holds, and each comparison of "
    "its\n"
    "shadow matched.\n"
    "\n"
    "options:\n"
    "      --policy FILE  the policy, see sgl-compat policy check\n"
    "      --stats PATH   a file of statistics or a folder of them, see sgl-compat report\n"
    "      --sarif FILE   what sgl-migrate scan --format sarif has found in the sources\n" TOOL_HELP_OPTION "\n"
    "exit status:\n"
    "  0   each name may go to its next stage\n"
    "  1   one may not, or an error: named on standard error\n"
    "  2   wrong usage: nothing was done\n"
    "\n"
    "examples:\n"
    "  sgl-migrate scan --format sarif . > found.sarif; sgl-compat gate --policy policy --stats /var/log/sgl --sarif "
    "found.sarif\n";

/* What the policy file says of a symbol; its own directives come before those of `*`. */
struct rule {
  bool has_stage, denied, shadowed;
  sgl_compat_stage stage;
  int until; /* of an extension; 0: none */
  char reason[200];
};

struct gate {
  const char *policy;
  struct rule rules[COMPAT_SYMBOLS], all;
  bool good;
};

static void keep(void *user, const struct policy_directive *one) {
  struct gate *gate = user;
  if (one->symbol != POLICY_ALL && one->symbol >= COMPAT_SYMBOLS)
    return;
  struct rule *rule = one->symbol == POLICY_ALL ? &gate->all : &gate->rules[one->symbol];
  switch (one->kind) {
  case POLICY_STAGE:
    rule->has_stage = true;
    rule->stage = one->stage;
    break;
  case POLICY_DENY:
    rule->denied = true;
    break;
  case POLICY_EXTEND:
    rule->until = one->until;
    snprintf(rule->reason, sizeof rule->reason, "%.*s", one->reason_length, one->reason ? one->reason : "");
    break;
  case POLICY_SHADOW:
    rule->shadowed = one->shadow.first || one->shadow.every;
    break;
  case POLICY_DEFAULT:
  case POLICY_RAMP:
  case POLICY_SERVE:
    break;
  }
}

static void not_understood(void *user, unsigned line, const char *text) {
  struct gate *gate = user;
  gate->good = false;
  tool_error("%s:%u: %s", gate->policy, line, text);
}

/* --- reasons ------------------------------------------------------------------------------------------------------ */

struct reasons {
  char *text[64];
  int count;
};

__attribute__((format(printf, 2, 3))) static void against(struct reasons *reasons, const char *format, ...) {
  char line[2400];
  va_list list;
  va_start(list, format);
  vsnprintf(line, sizeof line, format, list);
  va_end(list);
  if (reasons->count < (int)(sizeof reasons->text / sizeof reasons->text[0])) {
    char *copy = tool_realloc(NULL, strlen(line) + 1);
    reasons->text[reasons->count++] = strcpy(copy, line);
  }
}

static void look_at_uses(struct reasons *reasons, const char *id, const json_t *stats) {
  const json_t *used = json_object_get(json_object_get(stats, "symbols"), id), *caller;
  size_t i;
  if (!used || tool_report_only_fails(used))
    return;
  long long processes = json_integer_value(json_object_get(used, "processes"));
  long long calls = json_integer_value(json_object_get(used, "calls"));
  against(reasons, "it is in use: %lld time%s, in %lld process%s, last on %s", calls, calls == 1 ? "" : "s", processes,
          processes == 1 ? "" : "es", tool_date(json_object_get(used, "last")).text);
  json_array_foreach(json_object_get(used, "callers"), i, caller) {
    if (i == 3) {
      against(reasons, "and from %zu other places", json_array_size(json_object_get(used, "callers")) - i);
      break;
    }
    against(reasons, "from %s", tool_report_caller(caller).text);
  }
}

static void look_at_shadow(struct reasons *reasons, const char *id, bool on, const json_t *stats) {
  const json_t *shadow = json_object_get(json_object_get(stats, "shadow"), id);
  long long matches = json_integer_value(json_object_get(shadow, "matches"));
  long long mismatches = json_integer_value(json_object_get(shadow, "mismatches"));
  if (mismatches)
    against(reasons, "%lld of its shadow's comparisons did not match", mismatches);
  else if (on && !matches)
    against(reasons, "its shadow is on, but has compared nothing");
}

/* A live use: what sgl-migrate would rewrite, or wants a person for. */
static bool is_live(const json_t *result) {
  const char *verdict = json_string_value(json_object_get(json_object_get(result, "properties"), "verdict"));
  return verdict && (strcmp(verdict, "rewrite") == 0 || strcmp(verdict, "report") == 0);
}

static void look_at_sources(struct reasons *reasons, const char *id, const json_t *sarif) {
  const json_t *run, *result;
  size_t r, i, found = 0;
  char first[600] = "";
  json_array_foreach(json_object_get(sarif, "runs"), r, run) {
    json_array_foreach(json_object_get(run, "results"), i, result) {
      const char *rule = json_string_value(json_object_get(result, "ruleId"));
      if (!rule || strcmp(rule, id) != 0 || !is_live(result))
        continue;
      const json_t *place =
          json_object_get(json_array_get(json_object_get(result, "locations"), 0), "physicalLocation");
      const char *file = json_string_value(json_object_get(json_object_get(place, "artifactLocation"), "uri"));
      if (found++ == 0)
        snprintf(first, sizeof first, "%.500s:%lld", file ? file : "?",
                 (long long)json_integer_value(json_object_get(json_object_get(place, "region"), "startLine")));
    }
  }
  if (found)
    against(reasons, "the sources have %zu live use%s of it, the first at %s", found, found == 1 ? "" : "s", first);
}

/* --- one name ----------------------------------------------------------------------------------------------------- */

/* Whether it may; prints the answer. */
static bool judge(const struct gate *gate, unsigned symbol, const json_t *stats, const json_t *sarif) {
  const struct rule *own = &gate->rules[symbol];
  const char *id = compat_symbols[symbol].id;
  sgl_compat_stage stage = own->has_stage ? own->stage : gate->all.stage;
  if ((own->denied || gate->all.denied) && stage < SGL_COMPAT_STAGE_ERROR)
    stage = SGL_COMPAT_STAGE_ERROR;
  struct reasons reasons = {.count = 0};
  tool_print(id, TOOL_PLAIN, 0);
  if (stage == SGL_COMPAT_STAGE_TOMBSTONE) {
    printf(": tombstone: no stage follows\n");
    return true;
  }
  sgl_compat_stage next = (sgl_compat_stage)(stage + 1);
  if (json_integer_value(json_object_get(stats, "processes")) == 0)
    against(&reasons, "no process has written statistics, so nothing is known of its uses");
  if (next != SGL_COMPAT_STAGE_WARN) {
    const struct rule *extended = own->until ? own : &gate->all;
    if (extended->until >= policy_today())
      against(&reasons, "it is extended until %04d-%02d-%02d: %s", extended->until / 10000, extended->until / 100 % 100,
              extended->until % 100, extended->reason);
    look_at_uses(&reasons, id, stats);
    look_at_shadow(&reasons, id, own->shadowed || gate->all.shadowed, stats);
    look_at_sources(&reasons, id, sarif);
  }
  printf(": %s to %s: ", policy_stage_name(stage), policy_stage_name(next));
  tool_print(reasons.count ? "no" : "yes", reasons.count ? TOOL_RED : TOOL_GREEN, 0);
  putchar('\n');
  for (int i = 0; i < reasons.count; i++) {
    fputs("    ", stdout);
    tool_print(reasons.text[i], TOOL_PLAIN, 0);
    putchar('\n');
    free(reasons.text[i]);
  }
  return reasons.count == 0;
}

static json_t *read_sarif(const char *path) {
  size_t size;
  char *text = tool_read(path, &size);
  if (!text)
    return NULL;
  json_error_t error;
  json_t *sarif = json_loadb(text, size, 0, &error);
  free(text);
  if (!sarif)
    tool_error("%s:%d: %s", path, error.line, error.text);
  else if (!json_is_array(json_object_get(sarif, "runs"))) {
    tool_error("%s: this is no SARIF: it has no runs", path);
    json_decref(sarif);
    sarif = NULL;
  }
  return sarif;
}

int tool_gate(int argc, char **argv) {
  static const struct option options[] = {{"policy", required_argument, NULL, 'p'},
                                          {"stats", required_argument, NULL, 's'},
                                          {"sarif", required_argument, NULL, 'f'},
                                          {NULL, 0, NULL, 0}};
  static struct gate gate;
  char *stats_path = NULL;
  const char *sarif_path = NULL;
  opterr = 0;
  for (int c; (c = getopt_long(argc, argv, ":", options, NULL)) != -1;) {
    if (c == 'p')
      gate.policy = optarg;
    else if (c == 's')
      stats_path = optarg;
    else if (c == 'f')
      sarif_path = optarg;
    else if (c == ':')
      tool_usage("gate: %s needs a value; see sgl-compat gate --help", argv[optind - 1]);
    else
      tool_usage("gate has no option %s; see sgl-compat gate --help", argv[optind - 1]);
  }
  if (optind < argc)
    tool_usage("gate takes no argument without an option, got %s; see sgl-compat gate --help", argv[optind]);
  if (!gate.policy || !stats_path)
    tool_usage("gate: --policy FILE and --stats PATH are needed; see sgl-compat gate --help");
  size_t size;
  gate.good = true;
  char *text = tool_read(gate.policy, &size);
  json_t *sarif = sarif_path ? read_sarif(sarif_path) : NULL;
  json_t *stats = text ? tool_stats(&stats_path, 1, &gate.good) : NULL;
  if (!text || !stats || (sarif_path && !sarif)) {
    free(text);
    json_decref(stats);
    json_decref(sarif);
    return STATUS_BAD;
  }
  policy_parse(text, size, keep, not_understood, &gate);
  unsigned names = 0;
  for (unsigned i = 0; i < COMPAT_SYMBOLS; i++) {
    const struct rule *own = &gate.rules[i];
    if (own->has_stage || own->denied || gate.all.has_stage || gate.all.denied) {
      names++;
      gate.good &= judge(&gate, i, stats, sarif);
    }
  }
  if (!names) {
    tool_error("%s: it sets no stage, so there is nothing to ask", gate.policy);
    gate.good = false;
  }
  free(text);
  json_decref(stats);
  json_decref(sarif);
  return gate.good ? STATUS_OK : STATUS_BAD;
}
