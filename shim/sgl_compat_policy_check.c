/* policy check: a policy file, looked at before it is installed. */
#include "shim/policy.h"
#include "shim/policy_sources.h"
#include "shim/serve.h"
#include "shim/sgl_compat_tool.h"

#include "compat_table.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char tool_policy_check_help[] =
    "usage: sgl-compat policy check FILE...\n"
    "\n"
    "Looks for faults in policy files: what is not understood, names that are not known, directives that have no\n"
    "effect, extensions that have expired. One line a fault on standard output, as FILE:LINE: what.\n"
    "\n"
    "options:\n" TOOL_HELP_OPTION "\n" TOOL_EXIT_STATUS "\n"
    "examples:\n"
    "  sgl-compat policy check sgl-kernel-policy\n"
    "  sgl-compat policy check /etc/sgl-kernel-compat/policy ~/.config/sgl-kernel-compat/policy\n";

struct found {
  unsigned line;
  char text[400];
};

enum { KINDS = POLICY_SHADOW + 1, ALL = COMPAT_SYMBOLS /* the place of `*` among the symbols */ };

struct check {
  struct policy_directive *list;
  struct found *faults;
  size_t count, faults_count;
  int today;
  /* Of each kind and symbol, once all have been read; NULL: none. */
  const struct policy_directive *first[KINDS][COMPAT_SYMBOLS + 1], *last[KINDS][COMPAT_SYMBOLS + 1];
};

/* Room for one more than `count`: it is doubled at each power of two. */
static void *grow(void *list, size_t count, size_t size) {
  return count & (count - 1) ? list : tool_realloc(list, (count ? count * 2 : 1) * size);
}

static void keep(void *user, const struct policy_directive *directive) {
  struct check *check = user;
  check->list = grow(check->list, check->count, sizeof *check->list);
  check->list[check->count++] = *directive;
}

static void add(void *user, unsigned line, const char *text) {
  struct check *check = user;
  check->faults = grow(check->faults, check->faults_count, sizeof *check->faults);
  struct found *found = &check->faults[check->faults_count++];
  found->line = line;
  snprintf(found->text, sizeof found->text, "%s", text);
}

__attribute__((format(printf, 3, 4))) static void fault(struct check *check, const struct policy_directive *directive,
                                                        const char *format, ...) {
  char text[400];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  add(check, directive->line, text);
}

static int by_line(const void *a, const void *b) {
  const struct found *one = a, *other = b;
  return one->line != other->line ? (one->line < other->line ? -1 : 1) : strcmp(one->text, other->text);
}

static const char *name_of(const struct policy_directive *directive) {
  return directive->symbol == POLICY_ALL ? "*" : compat_symbols[directive->symbol].id;
}

static unsigned place_of(unsigned symbol) {
  return symbol == POLICY_ALL ? ALL : symbol;
}

static void index_list(struct check *check) {
  for (size_t i = 0; i < check->count; i++) {
    const struct policy_directive *one = &check->list[i];
    unsigned place = place_of(one->symbol);
    check->last[one->kind][place] = one;
    if (!check->first[one->kind][place])
      check->first[one->kind][place] = one;
  }
}

/* The file's last directive of a kind that speaks of the symbol, by its name before `*`; NULL. */
static const struct policy_directive *find(const struct check *check, enum policy_kind kind, unsigned symbol) {
  const struct policy_directive *own = check->last[kind][place_of(symbol)];
  return own ? own : check->last[kind][ALL];
}

/* How to compare, and never when. `first=0` alone is the way to end what an earlier source has begun. */
static bool says_how_only(const struct policy_shadow *shadow) {
  return !shadow->first && !shadow->every && (shadow->budget || shadow->tolerance > 0 || shadow->return_other);
}

static void check_directive(struct check *check, const struct policy_directive *one) {
  const char *name = name_of(one);
  const struct policy_directive *before = check->first[one->kind][place_of(one->symbol)];
  if (before != one)
    fault(check, one, "%s: line %u says the same kind of thing already; the later one wins",
          one->kind == POLICY_DEFAULT ? "default" : name, before->line);
  const struct policy_directive *deny = one->kind == POLICY_DENY ? NULL : find(check, POLICY_DENY, one->symbol);
  const struct policy_directive *stage = find(check, POLICY_STAGE, one->symbol);
  switch (one->kind) {
  case POLICY_STAGE:
    if (deny && one->stage < SGL_COMPAT_STAGE_ERROR)
      fault(check, one, "%s is denied in line %u, so it is not %s; only an extension softens that", name, deny->line,
            policy_stage_name(one->stage));
    break;
  case POLICY_EXTEND:
    if (one->until < check->today)
      fault(check, one, "the extension of %s has expired: it is error", name);
    else if (stage && stage->stage == SGL_COMPAT_STAGE_SILENT && !deny && !find(check, POLICY_RAMP, one->symbol))
      fault(check, one, "%s is silent by line %u: the extension softens nothing, and its end makes it an error", name,
            stage->line);
    break;
  case POLICY_RAMP:
    if (deny && one->stage <= SGL_COMPAT_STAGE_ERROR)
      fault(check, one, "%s is denied in line %u: the ramp has no effect", name, deny->line);
    else if (one->stage == SGL_COMPAT_STAGE_SILENT)
      fault(check, one, "%s: a ramp to silent has no effect, since a ramp only hardens", name);
    else if (stage && one->stage <= stage->stage)
      fault(check, one, "%s is %s by line %u: a ramp to %s has no effect", name, policy_stage_name(stage->stage),
            stage->line, policy_stage_name(one->stage));
    break;
  case POLICY_SHADOW:
    for (int kernel = 0; kernel < SERVE_COUNT; kernel++)
      if (serve_symbol((enum serve_kernel)kernel) == one->symbol && !serve_is_compared((enum serve_kernel)kernel))
        fault(check, one, "results of %s are not compared: shadow has no effect", name);
    if (says_how_only(&one->shadow))
      fault(check, one, "shadow %s: neither first nor every says which calls, so none is compared", name);
    __attribute__((fallthrough));
  case POLICY_SERVE:
    if (one->symbol != POLICY_ALL && !compat_symbols[one->symbol].served &&
        (one->kind == POLICY_SHADOW || one->serve != SGL_COMPAT_SERVE_AUTO))
      fault(check, one, "there is no kernel for %s here: %s has no effect", name,
            one->kind == POLICY_SERVE ? "serve" : "shadow");
    break;
  case POLICY_DEFAULT:
  case POLICY_DENY:
    break;
  }
}

static bool check_file(const char *path, int today) {
  struct check check = {.today = today};
  size_t size;
  char *text = tool_read(path, &size);
  if (!text)
    return false;
  if (size > POLICY_MOST)
    add(&check, 1, "the file is larger than a mebibyte, so no program takes it");
  policy_parse(text, size, keep, add, &check);
  index_list(&check);
  for (size_t i = 0; i < check.count; i++)
    check_directive(&check, &check.list[i]);
  if (check.faults_count)
    qsort(check.faults, check.faults_count, sizeof *check.faults, by_line);
  for (size_t i = 0; i < check.faults_count; i++) {
    tool_print(path, TOOL_PLAIN, 0);
    printf(":%u: ", check.faults[i].line);
    tool_print(check.faults[i].text, TOOL_PLAIN, 0);
    putchar('\n');
  }
  if (!check.faults_count) {
    tool_print(path, TOOL_PLAIN, 0);
    printf(": %zu directive%s, no fault\n", check.count, check.count == 1 ? "" : "s");
  }
  bool good = !check.faults_count;
  free(check.list);
  free(check.faults);
  free(text);
  return good;
}

int tool_policy_check(int argc, char **argv) {
  static const struct option none[] = {{NULL, 0, NULL, 0}};
  int status = STATUS_OK;
  opterr = 0;
  if (getopt_long(argc, argv, "", none, NULL) != -1)
    tool_usage("policy check has no option %s; see sgl-compat policy check --help", argv[optind - 1]);
  if (optind == argc)
    tool_usage("policy check: a file is needed; see sgl-compat policy check --help");
  for (; optind < argc; optind++)
    if (!check_file(argv[optind], policy_today()))
      status = STATUS_BAD;
  return status;
}
