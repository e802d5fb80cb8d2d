/* SARIF 2.1.0 (OASIS standard, sarif-schema-2.1.0) on stdout. The same input gives the same bytes. */
#include "scanner/ignore.h"
#include "scanner/report.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

json_t *report_sarif_message(const char *text) {
  return json_pack("{s:o}", "text", report_value(text, strlen(text)));
}

json_t *report_sarif_rule(const struct catalog_symbol *symbol) {
  char *removed = report_removals(symbol), *help = report_help(symbol);
  json_t *object = json_pack("{s:s, s:o, s:o, s:o, s:{s:s}, s:{s:s}}", "id", symbol->id, "shortDescription",
                             report_sarif_message(symbol->summary), "fullDescription", report_sarif_message(removed),
                             "help", report_sarif_message(help), "defaultConfiguration", "level", "error", "properties",
                             "family", symbol->family);
  free(removed);
  free(help);
  return object;
}

static size_t used_rule(const struct catalog *catalog, const struct catalog_symbol *symbol, size_t *indexes,
                        json_t *rules) {
  size_t position = (size_t)(symbol - catalog->symbols);
  if (indexes[position] == 0) {
    json_array_append_new(rules, report_sarif_rule(symbol));
    indexes[position] = json_array_size(rules);
  }
  return indexes[position] - 1;
}

static json_t *artifact(size_t root, const char *path) {
  char *uri = report_uri("", path, ""), *base = root ? scan_format("SRCROOT%zu", root + 1) : scan_format("SRCROOT");
  json_t *object = json_pack("{s:s, s:s}", "uri", uri, "uriBaseId", base);
  free(uri);
  free(base);
  return object;
}

static json_t *location(size_t root, const char *path) {
  return json_pack("{s:{s:o}}", "physicalLocation", "artifactLocation", artifact(root, path));
}

static json_t *region(const struct source_file *file, const struct finding *finding, size_t start, size_t end) {
  uint32_t column = report_column(file, finding, start, end, true);
  uint32_t length = report_name_length(file, finding, start, end);
  return json_pack("{s:I, s:I, s:I}", "startLine", (json_int_t)finding->line, "startColumn", (json_int_t)column,
                   "endColumn", (json_int_t)(column + length));
}

static json_t *suppressions(const struct finding *finding) {
  bool comment = finding->standing == STANDING_IGNORED;
  const char *why = comment ? finding->ignore->reason : "accepted in the baseline";
  json_t *one = json_pack("{s:s, s:s}", "kind", comment ? "inSource" : "external", "status", "accepted");
  if (why)
    json_object_set_new(one, "justification", report_value(why, strlen(why)));
  return json_pack("[o]", one);
}

static json_t *one_result(size_t root, const struct source_file *file, const struct finding *finding, json_t *place,
                          const struct fingerprint *print, unsigned ordinal, size_t rule_index, bool baseline) {
  json_t *where = location(root, file->path);
  json_object_set_new(json_object_get(where, "physicalLocation"), "region", place);
  char *value = scan_format("%s:%016llx:%u", print->text, (unsigned long long)report_path_hash(file->path), ordinal);
  json_t *result = json_pack("{s:s, s:I, s:s, s:o, s:[o], s:{s:s}, s:{s:s, s:s}}", "ruleId", finding->symbol->id,
                             "ruleIndex", (json_int_t)rule_index, "level", report_level(finding->level), "message",
                             report_sarif_message(finding->message), "locations", where, "partialFingerprints",
                             "sglMigrate/v1", value, "properties", "verdict", report_verdict(finding->verdict),
                             "evidence", report_evidence(finding->evidence));
  free(value);
  if (baseline && finding->verdict != VERDICT_MENTION && finding->standing != STANDING_IGNORED)
    json_object_set_new(result, "baselineState",
                        json_string(finding->standing == STANDING_KNOWN ? "unchanged" : "new"));
  if (finding->standing != STANDING_OPEN)
    json_object_set_new(result, "suppressions", suppressions(finding));
  return result;
}

static void file_results(json_t *results, json_t *rules, size_t *indexes, const struct report *report, size_t root,
                         const struct source_file *file) {
  size_t count = file->result.findings_count, offset = 0, end;
  uint32_t line = 1;
  struct fingerprint *prints = scan_alloc(NULL, count * sizeof *prints);
  for (size_t i = 0; i < count; i++) {
    const struct finding *finding = &file->result.findings[i];
    report_line(file, finding, &line, &offset, &end);
    report_fingerprint(file, finding, offset, end, &prints[i]);
    unsigned ordinal = 1; /* tells equal lines of one file apart */
    for (size_t k = 0; k < i; k++)
      ordinal += memcmp(&prints[k], &prints[i], sizeof *prints) == 0;
    size_t index = used_rule(report->scans[0].catalog, finding->symbol, indexes, rules);
    json_array_append_new(results, one_result(root, file, finding, region(file, finding, offset, end), &prints[i],
                                              ordinal, index, report->baseline));
  }
  free(prints);
}

/* The troubles of a kind of notification: of the run, or of its configuration. */
static json_t *notifications(const struct report *report, bool configuration) {
  static const struct {
    const char *id, *level;
  } forms[] = {[TROUBLE_NOT_ANALYSED] = {"not-analysed", "error"},
               [TROUBLE_PARTLY] = {"analysed-in-part", "warning"},
               [TROUBLE_LEFT_OUT] = {"not-entered", "note"},
               [TROUBLE_COMMENT] = {"ignore-comment", "warning"},
               [TROUBLE_STALE] = {"stale", "warning"}};
  json_t *list = json_array();
  for (size_t i = 0; i < report->troubles_count; i++) {
    const struct trouble *trouble = &report->troubles[i];
    if ((trouble->kind == TROUBLE_COMMENT || trouble->kind == TROUBLE_STALE) != configuration)
      continue;
    json_t *where = location(trouble->root, trouble->path);
    if (trouble->line)
      json_object_set_new(json_object_get(where, "physicalLocation"), "region",
                          json_pack("{s:I}", "startLine", (json_int_t)trouble->line));
    json_array_append_new(list, json_pack("{s:s, s:o, s:{s:s}, s:[o]}", "level", forms[trouble->kind].level, "message",
                                          report_sarif_message(trouble->text), "descriptor", "id",
                                          forms[trouble->kind].id, "locations", where));
  }
  return list;
}

static json_t *descriptors(void) {
  static const struct {
    const char *id, *text;
  } list[] = {{"not-analysed", "A file or folder that should have been analysed was not."},
              {"analysed-in-part", "Parts of a file were not understood; uses in them may be missing."},
              {"not-entered", "A folder or link that was left out on purpose."},
              {"ignore-comment", "An ignore comment that is unused, expired or malformed."},
              {"stale", "An entry of the baseline without a use."}};
  json_t *array = json_array();
  for (size_t i = 0; i < sizeof list / sizeof *list; i++)
    json_array_append_new(
        array, json_pack("{s:s, s:o}", "id", list[i].id, "shortDescription", report_sarif_message(list[i].text)));
  return array;
}

json_t *report_sarif_log(json_t *runs) {
  return json_pack("{s:s, s:s, s:o}", "$schema",
                   "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
                   "version", "2.1.0", "runs", runs);
}

bool report_sarif(const struct report *report) {
  const struct scan *scans = report->scans;
  const struct catalog *catalog = scans[0].catalog;
  const struct totals *totals = &report->totals;
  size_t *indexes = scan_alloc(NULL, (catalog->symbols_count + 1) * sizeof *indexes);
  memset(indexes, 0, (catalog->symbols_count + 1) * sizeof *indexes);
  json_t *rules = json_array(), *results = json_array(), *bases = json_object();
  for (size_t root = 0; root < report->count; root++) {
    const struct scan *scan = &scans[root];
    char *base = root ? scan_format("SRCROOT%zu", root + 1) : scan_format("SRCROOT");
    char *uri = report_uri("file://", scan->real_root, strcmp(scan->real_root, "/") == 0 ? "" : "/");
    json_object_set_new(bases, base, json_pack("{s:s}", "uri", uri));
    free(base);
    free(uri);
    for (size_t i = 0; i < scan->files_count; i++)
      file_results(results, rules, indexes, report, root, &scan->files[i]);
  }
  const struct options *options = &scans[0].options;
  char *route = report_route(options);
  json_t *driver = json_pack("{s:s, s:s, s:o, s:o}", "name", "sgl-migrate", "version", SGL_VERSION, "rules", rules,
                             "notifications", descriptors());
  json_t *run =
      json_pack("{s:{s:o}, s:[{s:b, s:i, s:o, s:o}], s:o, s:s, s:o, s:{s:s, s:s, s:I, s:I}}", "tool", "driver", driver,
                "invocations", "executionSuccessful", !(report_status(totals) & EXIT_NOT_ANALYSED), "exitCode",
                report_status(totals), "toolExecutionNotifications", notifications(report, false),
                "toolConfigurationNotifications", notifications(report, true), "originalUriBaseIds", bases,
                "columnKind", "utf16CodeUnits", "results", results, "properties", "kernel", options->kernel, "to",
                route, "filesAnalysed", (json_int_t)totals->files, "ignoredByGit", (json_int_t)totals->ignored);
  free(route);
  free(indexes);
  if (report->shards) {
    char *shard = scan_format("%u/%u", report->shard, report->shards);
    json_object_set_new(json_object_get(run, "properties"), "shard", json_string(shard));
    free(shard);
  }
  json_t *log = report_sarif_log(json_pack("[o]", run));
  bool done = log && json_dumpf(log, stdout, JSON_INDENT(1)) == 0 && putchar('\n') != EOF;
  json_decref(log);
  return done;
}
