/* policy show: the policy that a program gets in this environment. */
#include "shim/job.h"
#include "shim/policy.h"
#include "shim/policy_sources.h"
#include "shim/sgl_compat_tool.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

const char tool_policy_show_help[] =
    "usage: sgl-compat policy show [OPTION]...\n"
    "\n"
    "Prints the policy that a program gets in this environment: the files and variables in the order in which they\n"
    "are read, a later one wins, with their directives; or what comes of them for each name, and where it was set.\n"
    "What a program sets itself is not in it.\n"
    "\n"
    "options:\n"
    "      --effective   the stage of each name, and what else holds for it\n"
    "      --symbol NAME\n"
    "                    this name only\n"
    "      --json        the same as JSON\n" TOOL_HELP_OPTION "\n" TOOL_EXIT_STATUS "\n"
    "examples:\n"
    "  sgl-compat policy show\n"
    "  sgl-compat policy show --effective --symbol dsv3_router_gemm\n"
    "  sgl-compat policy show --effective --json | jq -r '.names[] | select(.stage == \"error\").name'\n";

struct options {
  bool effective, json;
  unsigned symbol; /* POLICY_ALL: all */
};

/* --- sources ------------------------------------------------------------------------------------------------------ */

struct listing {
  const struct options *options;
  json_t *directives, *faults; /* both NULL: to be printed, unless it is quiet */
  bool quiet;
  size_t faults_count;
};

struct text {
  char text[1400];
};

static struct text text_of(const struct policy_directive *d) {
  struct text t;
  const char *name = d->symbol == POLICY_ALL ? "*" : compat_symbols[d->symbol].id;
  switch (d->kind) {
  case POLICY_STAGE:
    snprintf(t.text, sizeof t.text, "%s = %s", name, policy_stage_name(d->stage));
    break;
  case POLICY_DEFAULT:
    snprintf(t.text, sizeof t.text, "default = %s", compat_releases[d->release]);
    break;
  case POLICY_DENY:
    snprintf(t.text, sizeof t.text, "deny %s", name);
    break;
  case POLICY_EXTEND:
    snprintf(t.text, sizeof t.text, "extend %s until %04d-%02d-%02d reason %.*s", name, d->until / 10000,
             d->until / 100 % 100, d->until % 100, d->reason_length, d->reason);
    break;
  case POLICY_RAMP:
    snprintf(t.text, sizeof t.text, "ramp %s %g%% to %s", name, d->share / 100.0, policy_stage_name(d->stage));
    break;
  case POLICY_SERVE:
    snprintf(t.text, sizeof t.text, "serve %s = %s", name, policy_serve_name(d->serve));
    break;
  case POLICY_SHADOW:
    snprintf(t.text, sizeof t.text, "shadow %s first=%u every=%u budget=%u tolerance=%g return=%s", name,
             d->shadow.first, d->shadow.every, d->shadow.budget, d->shadow.tolerance,
             d->shadow.return_other ? "other" : "jit");
    break;
  }
  return t;
}

static void list_line(unsigned line, const char *text, enum tool_colour colour) {
  printf("  %4u  ", line);
  tool_print(text, colour, 0);
  putchar('\n');
}

static void list_directive(void *user, const struct policy_directive *directive) {
  struct listing *listing = user;
  unsigned wanted = listing->options->symbol;
  bool speaks = directive->kind == POLICY_DEFAULT || directive->symbol == POLICY_ALL || directive->symbol == wanted;
  if (listing->quiet || (wanted != POLICY_ALL && !speaks))
    return;
  struct text text = text_of(directive);
  if (listing->directives)
    json_array_append_new(listing->directives,
                          json_pack("{s:i, s:o}", "line", (int)directive->line, "directive", tool_json(text.text)));
  else
    list_line(directive->line, text.text, TOOL_PLAIN);
}

static void list_fault(void *user, unsigned line, const char *text) {
  struct listing *listing = user;
  listing->faults_count++;
  if (listing->quiet)
    return;
  if (listing->faults)
    json_array_append_new(listing->faults, json_pack("{s:i, s:o}", "line", (int)line, "fault", tool_json(text)));
  else
    list_line(line, text, TOOL_RED);
}

/* Returns how much is wrong with a source. */
static size_t list_source(const struct options *options, const struct policy_source *source, json_t *sources) {
  struct listing listing = {.options = options, .quiet = options->effective};
  const char *state = source->problem[0] ? "not used" : source->text ? "read" : source->name[0] ? "not there" : "none";
  if (!options->effective && options->json) {
    listing.directives = json_array();
    listing.faults = json_array();
    json_array_append_new(sources, json_pack("{s:o, s:s, s:o, s:o, s:o}", "name", tool_json(source->name), "state",
                                             state, "problem", tool_json(source->problem[0] ? source->problem : NULL),
                                             "directives", listing.directives, "faults", listing.faults));
  } else if (!options->effective && source->name[0]) {
    tool_print(source->name, TOOL_PLAIN, 0);
    fputs(": ", stdout);
    tool_print(state, source->problem[0] ? TOOL_RED : TOOL_PLAIN, 0);
    if (source->problem[0])
      printf(", it %s", source->problem);
    putchar('\n');
  }
  if (source->text)
    policy_parse(source->text, source->size, list_directive, list_fault, &listing);
  return listing.faults_count + (source->problem[0] != '\0');
}

/* --- what holds --------------------------------------------------------------------------------------------------- */

static enum tool_colour colour_of(sgl_compat_stage stage) {
  return stage == SGL_COMPAT_STAGE_SILENT ? TOOL_GREEN : stage == SGL_COMPAT_STAGE_WARN ? TOOL_YELLOW : TOOL_RED;
}

/* Where the built-in stage is a tombstone, no code but an old wheel's can answer. */
static bool is_answered(unsigned symbol) {
  return strcmp(compat_symbols[symbol].stage, policy_stage_name(SGL_COMPAT_STAGE_TOMBSTONE)) != 0;
}

static void print_name(unsigned symbol, int width) {
  struct policy_facts facts = policy_facts(symbol);
  tool_print(compat_symbols[symbol].id, TOOL_PLAIN, width + 2);
  tool_print(policy_stage_name(facts.stage), colour_of(facts.stage), 11);
  tool_print(facts.from, TOOL_PLAIN, 0);
  putchar('\n');
  if (facts.stage != SGL_COMPAT_STAGE_TOMBSTONE && !is_answered(symbol))
    puts("    only where an old wheel has it: nothing else answers for it, and so it is a tombstone");
  if (facts.ramp[0]) {
    fputs("    ramp: ", stdout);
    tool_print(facts.ramp, TOOL_PLAIN, 0);
    putchar('\n');
  }
  if (facts.serve != SGL_COMPAT_SERVE_AUTO) {
    printf("    serve: %s: ", policy_serve_name(facts.serve));
    tool_print(facts.serve_from, TOOL_PLAIN, 0);
    putchar('\n');
  }
  if (facts.shadow.first || facts.shadow.every) {
    printf("    shadow: first=%u every=%u budget=%u tolerance=%g return=%s: ", facts.shadow.first, facts.shadow.every,
           facts.shadow.budget, facts.shadow.tolerance, facts.shadow.return_other ? "other" : "jit");
    tool_print(facts.shadow_from, TOOL_PLAIN, 0);
    putchar('\n');
  }
}

static json_t *shadow_json(const struct policy_facts *facts) {
  const struct policy_shadow *shadow = &facts->shadow;
  if (!shadow->first && !shadow->every)
    return json_null();
  return json_pack("{s:I, s:I, s:I, s:f, s:s, s:o}", "first", (json_int_t)shadow->first, "every",
                   (json_int_t)shadow->every, "budget", (json_int_t)shadow->budget, "tolerance", shadow->tolerance,
                   "return", shadow->return_other ? "other" : "jit", "from", tool_json(facts->shadow_from));
}

static json_t *name_json(unsigned symbol) {
  struct policy_facts facts = policy_facts(symbol);
  const struct compat_symbol *known = &compat_symbols[symbol];
  return json_pack("{s:s, s:s, s:b, s:o, s:o, s:s, s:o, s:o, s:s, s:s, s:b}", "name", known->id, "stage",
                   policy_stage_name(facts.stage), "set", facts.is_set, "from", tool_json(facts.from), "ramp",
                   tool_json(facts.ramp[0] ? facts.ramp : NULL), "serve", policy_serve_name(facts.serve), "serve_from",
                   tool_json(facts.serve_from), "shadow", shadow_json(&facts), "removed_in", known->first_without,
                   "advice", known->advice, "answered", is_answered(symbol));
}

static void show_effective(const struct options *options) {
  char job[512];
  bool has_job = job_seed(job, sizeof job);
  json_t *names = json_array();
  int width = 0;
  for (unsigned i = 0; i < COMPAT_SYMBOLS; i++)
    if ((options->symbol == POLICY_ALL || options->symbol == i) && (int)strlen(compat_symbols[i].id) > width)
      width = (int)strlen(compat_symbols[i].id);
  for (unsigned i = 0; i < COMPAT_SYMBOLS; i++) {
    if (options->symbol != POLICY_ALL && options->symbol != i)
      continue;
    if (options->json)
      json_array_append_new(names, name_json(i));
    else
      print_name(i, width);
  }
  if (options->json)
    tool_print_json(json_pack("{s:o, s:o}", "job", tool_json(has_job ? job : NULL), "names", names));
  else
    json_decref(names);
}

/* --- the command -------------------------------------------------------------------------------------------------- */

static struct options parse(int argc, char **argv) {
  static const struct option known[] = {{"effective", no_argument, NULL, 'e'},
                                        {"symbol", required_argument, NULL, 's'},
                                        {"json", no_argument, NULL, 'j'},
                                        {NULL, 0, NULL, 0}};
  struct options options = {.symbol = POLICY_ALL};
  opterr = 0;
  for (int option; (option = getopt_long(argc, argv, ":", known, NULL)) != -1;) {
    if (option == 'e')
      options.effective = true;
    else if (option == 'j')
      options.json = true;
    else if (option == 's')
      options.symbol = policy_symbol(optarg, strlen(optarg));
    else if (option == ':')
      tool_usage("policy show: %s needs a value", argv[optind - 1]);
    else
      tool_usage("policy show has no option %s; see sgl-compat policy show --help", argv[optind - 1]);
    if (option == 's' && options.symbol == COMPAT_SYMBOLS)
      tool_usage("'%s' is no deleted name of " COMPAT_PACKAGE "; sgl-compat policy show --effective lists them",
                 optarg);
  }
  if (optind < argc)
    tool_usage("policy show takes no argument '%s'; see sgl-compat policy show --help", argv[optind]);
  return options;
}

int tool_policy_show(int argc, char **argv) {
  struct options options = parse(argc, argv);
  struct policy_source sources[POLICY_SOURCES];
  size_t wrong = 0;
  json_t *list = json_array();
  policy_sources_read(sources);
  for (int i = 0; i < POLICY_SOURCES; i++)
    wrong += list_source(&options, &sources[i], list);
  policy_sources_free(sources);
  if (options.effective)
    show_effective(&options); /* reads them again, and tells on standard error what is wrong with them */
  else if (options.json)
    tool_print_json(json_pack("{s:O}", "sources", list));
  json_decref(list);
  return wrong ? STATUS_BAD : STATUS_OK;
}
