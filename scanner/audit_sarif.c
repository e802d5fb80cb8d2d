/* An audit as SARIF 2.1.0. The same input gives the same bytes. */
#include "scanner/audit.h"
#include "scanner/report.h"

#include <stdlib.h>
#include <string.h>

/* Rules that are no name of the catalog. */
static const struct {
  const char *id, *text;
} own_rules[] = {{"torch-abi", "A symbol of torch that the torch there does not export."},
                 {"unknown-provider", "A symbol or operator that nothing has."},
                 {"missing-library", "A needed library that is not where ld.so looks."}};
#define OWN_RULES (sizeof own_rules / sizeof *own_rules)

static const char *rule_id(const struct audit_finding *finding) {
  if (finding->symbol)
    return finding->symbol->id;
  return audit_verdict_word(finding->verdict);
}

static const char *level(enum audit_verdict verdict) {
  switch (verdict) {
  case AUDIT_REMOVED:
  case AUDIT_TORCH:
  case AUDIT_UNKNOWN:
  case AUDIT_MISSING:
    return "error";
  case AUDIT_SHIM:
    return "warning";
  default:
    return "note";
  }
}

static json_t *location(const struct audit_run *run, const struct audit_object *object) {
  char *path = audit_label(run, object, false), *uri = report_uri("", path, "");
  json_t *value = json_pack("{s:{s:{s:s}}}", "physicalLocation", "artifactLocation", "uri", uri);
  if (object->member)
    json_object_set_new(value, "logicalLocations",
                        json_pack("[{s:o, s:s}]", "fullyQualifiedName",
                                  report_value(object->member, strlen(object->member)), "kind", "module"));
  free(path);
  free(uri);
  return value;
}

static json_t *result(const struct audit_run *run, const struct audit_finding *finding, size_t rule) {
  const struct audit_object *object = &run->objects[finding->object];
  char *key = scan_format("%s\n%s\n%s\n%d", rule_id(finding), object->member ? object->member : "", finding->name,
                          (int)finding->mark);
  char print[17];
  snprintf(print, sizeof print, "%016llx", (unsigned long long)audit_hash(key, strlen(key)));
  free(key);
  char *words = scan_format("%s: %s", finding->name, finding->message);
  json_t *value =
      json_pack("{s:s, s:I, s:s, s:o, s:[o], s:{s:s}, s:{s:s, s:s}}", "ruleId", rule_id(finding), "ruleIndex",
                (json_int_t)rule, "level", level(finding->verdict), "message", report_sarif_message(words), "locations",
                location(run, object), "partialFingerprints", "sglMigrateAudit/v1", print, "properties", "verdict",
                audit_verdict_word(finding->verdict), "evidence", "elf");
  free(words);
  return value;
}

/* The place of the finding's rule in the log, put there when it is the first one. */
static size_t used_rule(const struct audit_run *run, const struct audit_finding *finding, size_t *indexes,
                        json_t *rules) {
  const struct catalog *catalog = run->context->catalog;
  size_t own = 0;
  while (!finding->symbol && own + 1 < OWN_RULES && strcmp(own_rules[own].id, rule_id(finding)) != 0)
    own++;
  size_t position = finding->symbol ? (size_t)(finding->symbol - catalog->symbols) : catalog->symbols_count + own;
  if (indexes[position] == 0) {
    json_array_append_new(rules, finding->symbol ? report_sarif_rule(finding->symbol)
                                                 : json_pack("{s:s, s:o}", "id", own_rules[own].id, "shortDescription",
                                                             report_sarif_message(own_rules[own].text)));
    indexes[position] = json_array_size(rules);
  }
  return indexes[position] - 1;
}

static json_t *notifications(const struct audit_run *run) {
  json_t *list = json_array();
  for (size_t i = 0; i < run->left_out_count; i++)
    json_array_append_new(list, json_pack("{s:s, s:o, s:{s:s}}", "level", "note", "message",
                                          report_sarif_message(run->left_out[i]), "descriptor", "id", "not-entered"));
  for (size_t i = 0; i < run->objects_count; i++) {
    const struct audit_object *object = &run->objects[i];
    if (object->fault && !object->outside)
      json_array_append_new(list, json_pack("{s:s, s:o, s:{s:s}, s:[o]}", "level", "error", "message",
                                            report_sarif_message(object->fault), "descriptor", "id", "not-analysed",
                                            "locations", location(run, object)));
  }
  return list;
}

bool audit_report_sarif(const struct audit_run *run) {
  size_t rules_count = run->context->catalog->symbols_count + OWN_RULES;
  size_t *indexes = scan_alloc(NULL, rules_count * sizeof *indexes);
  memset(indexes, 0, rules_count * sizeof *indexes);
  json_t *results = json_array(), *rules = json_array();
  for (size_t i = 0; i < run->findings_count; i++) {
    const struct audit_finding *finding = &run->findings[i];
    bool wanted = finding->mark != MARK_TORCH && (finding->mark != MARK_PROVIDES || finding->row);
    if (wanted)
      json_array_append_new(results, result(run, finding, used_rule(run, finding, indexes, rules)));
  }
  free(indexes);
  json_t *driver = json_pack("{s:s, s:s, s:o}", "name", "sgl-migrate audit", "version", SGL_VERSION, "rules", rules);
  json_object_set_new(driver, "notifications",
                      json_pack("[{s:s, s:o}, {s:s, s:o}]", "id", "not-analysed", "shortDescription",
                                report_sarif_message("A file that should have been analysed was not."), "id",
                                "not-entered", "shortDescription",
                                report_sarif_message("A link to a folder elsewhere that was left out.")));
  json_t *one =
      json_pack("{s:{s:o}, s:[{s:b, s:i, s:o}], s:o, s:{s:s, s:s, s:b}}", "tool", "driver", driver, "invocations",
                "executionSuccessful", !(audit_status(run) & EXIT_NOT_ANALYSED), "exitCode", audit_status(run),
                "toolExecutionNotifications", notifications(run), "results", results, "properties", "kernel",
                run->kernel, "kernelFrom", run->kernel_from, "environment", run->environment);
  json_t *log = report_sarif_log(json_pack("[o]", one));
  bool done = log && json_dumpf(log, stdout, JSON_INDENT(1)) == 0 && putchar('\n') != EOF;
  json_decref(log);
  return done;
}
