/* All facts of a run as one JSON object. docs/formats.md describes every member; FORMAT_VERSION counts up when one
 * changes its meaning or goes. */
#include "scanner/baseline.h"
#include "scanner/ignore.h"
#include "scanner/report.h"

#include <stdlib.h>
#include <string.h>

#define FORMAT_VERSION 1
/* Bytes of a source line that are given; of a longer one, those around the name. */
#define TEXT_GIVEN 400

static json_t *text(const char *string) {
  return string ? report_value(string, strlen(string)) : json_null();
}

static void add_path(json_t *object, const char *path) {
  char *uri = report_uri("", path, "");
  json_object_set_new(object, "path", text(path));
  json_object_set_new(object, "uri", json_string(uri)); /* the exact bytes, also of a name that is no UTF-8 */
  free(uri);
}

static json_t *source_text(const struct report_walk *walk) {
  size_t start = walk->line_start, end = walk->line_end, name = start + walk->finding->column - 1;
  if (!walk->file->bytes || name > end)
    return json_null();
  if (end - start > TEXT_GIVEN) {
    start = name - start > TEXT_GIVEN / 2 ? name - TEXT_GIVEN / 2 : start;
    end = end - start > TEXT_GIVEN ? start + TEXT_GIVEN : end;
  }
  return report_value((const char *)walk->file->bytes + start, end - start);
}

static json_t *one_finding(const struct report_walk *walk) {
  static const char *const standings[] = {
      [STANDING_OPEN] = "open", [STANDING_IGNORED] = "ignored", [STANDING_KNOWN] = "baseline"};
  const struct finding *finding = walk->finding;
  uint32_t column = report_column(walk->file, finding, walk->line_start, walk->line_end, false);
  struct fingerprint print;
  report_fingerprint(walk->file, finding, walk->line_start, walk->line_end, &print);
  json_t *object = json_pack("{s:I}", "root", (json_int_t)walk->root);
  add_path(object, walk->file->path);
  json_t *facts = json_pack(
      "{s:I, s:I, s:I, s:s, s:s, s:s, s:s, s:o, s:o, s:s, s:s}", "line", (json_int_t)finding->line, "column",
      (json_int_t)column, "endColumn",
      (json_int_t)(column + report_name_length(walk->file, finding, walk->line_start, walk->line_end)), "symbol",
      finding->symbol->id, "verdict", report_verdict(finding->verdict), "evidence", report_evidence(finding->evidence),
      "level", report_level(finding->level), "message", text(finding->message), "text", source_text(walk),
      "fingerprint", print.text, "standing", standings[finding->standing]);
  json_object_update(object, facts);
  json_t *ignore = json_null();
  if (finding->standing == STANDING_IGNORED)
    ignore = json_pack("{s:I, s:s?, s:o}", "line", (json_int_t)finding->ignore->line, "until", finding->ignore->until,
                       "reason", text(finding->ignore->reason));
  json_object_set_new(object, "ignore", ignore);
  json_decref(facts);
  return object;
}

static json_t *one_symbol(const struct catalog_symbol *symbol, const char *kernel) {
  json_t *removals = json_array(), *routes = json_array(), *traps = json_array();
  for (unsigned i = 0; i < symbol->removals_count; i++) {
    const struct catalog_removal *removal = &symbol->removals[i];
    json_array_append_new(
        removals,
        json_pack("{s:s, s:s, s:s, s:s?, s:s, s:s, s:b}", "layer", catalog_layer_title(removal->layer), "platform",
                  catalog_platform_title(removal->platform), "lastWith", removal->last_with, "firstWithout",
                  removal->first_without, "change", removal->change, "date", removal->date, "removed",
                  removal->first_without && catalog_version_compare(kernel, removal->first_without) >= 0));
  }
  for (unsigned i = 0; i < symbol->routes_count; i++) {
    static const char *const kinds[] = {[CATALOG_ROUTE_JIT] = "jit",
                                        [CATALOG_ROUTE_SGLANG] = "sglang",
                                        [CATALOG_ROUTE_LIBRARY] = "library",
                                        [CATALOG_ROUTE_NONE] = "none"};
    const struct catalog_route *route = &symbol->routes[i];
    json_array_append_new(routes, json_pack("{s:s, s:s, s:s, s:s?, s:s?, s:s}", "kind", kinds[route->kind], "module",
                                            route->module, "name", route->name, "from", route->from, "until",
                                            route->until, "note", route->note));
  }
  for (unsigned i = 0; i < symbol->traps_count; i++)
    json_array_append_new(traps, json_string(symbol->traps[i]));
  return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:o, s:o, s:o}", "id", symbol->id, "family", symbol->family,
                   "summary", symbol->summary, "pythonSignature", symbol->python_signature, "operatorSchema",
                   symbol->op_schema, "cxxDeclaration", symbol->cxx.declaration, "removals", removals, "replacements",
                   routes, "traps", traps);
}

/* The rows of the catalog that findings refer to, by id. */
static json_t *symbols(const struct report *report) {
  const struct scan *first = &report->scans[0];
  bool *used = scan_alloc(NULL, first->catalog->symbols_count * sizeof *used);
  memset(used, 0, first->catalog->symbols_count * sizeof *used);
  for (struct report_walk walk = {.report = report}; report_next(&walk);)
    used[walk.finding->symbol - first->catalog->symbols] = true;
  json_t *array = json_array();
  for (unsigned i = 0; i < first->catalog->symbols_count; i++)
    if (used[i])
      json_array_append_new(array, one_symbol(&first->catalog->symbols[i], first->options.kernel));
  free(used);
  return array;
}

static json_t *troubles(const struct report *report) {
  static const char *const kinds[] = {[TROUBLE_NOT_ANALYSED] = "not-analysed",
                                      [TROUBLE_PARTLY] = "partly",
                                      [TROUBLE_LEFT_OUT] = "left-out",
                                      [TROUBLE_COMMENT] = "ignore-comment",
                                      [TROUBLE_STALE] = "stale"};
  json_t *array = json_array();
  for (size_t i = 0; i < report->troubles_count; i++) {
    const struct trouble *trouble = &report->troubles[i];
    json_t *object = json_pack("{s:s, s:I}", "kind", kinds[trouble->kind], "root", (json_int_t)trouble->root);
    add_path(object, trouble->path);
    json_object_set_new(object, "line", trouble->line ? json_integer(trouble->line) : json_null());
    json_object_set_new(object, "text", text(trouble->text));
    json_array_append_new(array, object);
  }
  return array;
}

static json_t *totals(const struct totals *totals) {
  return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "files", (json_int_t)totals->files,
                   "filesWithUses", (json_int_t)totals->files_with_uses, "rewrite", (json_int_t)totals->rewrite,
                   "report", (json_int_t)totals->report, "mention", (json_int_t)totals->mention, "ignored",
                   (json_int_t)totals->ignored_by_comment, "inBaseline", (json_int_t)totals->in_baseline, "stale",
                   (json_int_t)(totals->stale + totals->comment_faults), "notAnalysed",
                   (json_int_t)totals->not_analysed, "partly", (json_int_t)totals->partly, "leftOut",
                   (json_int_t)totals->not_entered, "ignoredByGit", (json_int_t)totals->ignored);
}

static json_t *baseline_facts(const struct baseline *baseline) {
  if (!baseline)
    return json_null();
  size_t accepted = 0, found = 0;
  for (size_t i = 0; i < baseline->count; i++) {
    accepted += baseline->entries[i].count;
    found += baseline->entries[i].seen;
  }
  return json_pack("{s:o, s:I, s:I, s:I}", "file", text(baseline->name), "accepted", (json_int_t)accepted, "found",
                   (json_int_t)found, "moved", (json_int_t)baseline->moved);
}

bool report_json(const struct report *report) {
  const struct options *options = &report->scans[0].options;
  char *route = report_route(options);
  json_t *roots = json_array(), *findings = json_array();
  for (size_t i = 0; i < report->count; i++)
    json_array_append_new(roots, json_pack("{s:o, s:o}", "path", text(report->scans[i].root), "absolute",
                                           text(report->scans[i].real_root)));
  for (struct report_walk walk = {.report = report}; report_next(&walk);)
    json_array_append_new(findings, one_finding(&walk));
  json_t *log = json_pack("{s:s, s:i, s:s, s:{s:s, s:s}, s:o, s:i, s:o, s:o, s:o, s:o, s:o}", "format", "sgl-migrate",
                          "formatVersion", FORMAT_VERSION, "toolVersion", SGL_VERSION, "options", "kernel",
                          options->kernel, "to", route, "roots", roots, "exitStatus", report_status(&report->totals),
                          "totals", totals(&report->totals), "findings", findings, "symbols", symbols(report),
                          "troubles", troubles(report), "baseline", baseline_facts(report->baseline));
  if (report->shards) {
    char *shard = scan_format("%u/%u", report->shard, report->shards);
    json_object_set_new(json_object_get(log, "options"), "shard", json_string(shard));
    free(shard);
  }
  free(route);
  bool done = log && json_dumpf(log, stdout, JSON_INDENT(1)) == 0 && putchar('\n') != EOF;
  json_decref(log);
  return done;
}
