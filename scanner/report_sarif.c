/* SARIF 2.1.0 (OASIS standard, sarif-schema-2.1.0) on stdout. The same input gives the same bytes. */
#include "scanner/scanner.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

/* RFC 3986: everything but unreserved characters and the slash is percent-encoded, byte by byte. */
static char *uri_encode(const char *prefix, const char *path, const char *suffix) {
  char *uri = scan_alloc(NULL, strlen(prefix) + 3 * strlen(path) + strlen(suffix) + 1);
  char *out = stpcpy(uri, prefix);
  for (const unsigned char *c = (const unsigned char *)path; *c; c++) {
    bool plain =
        (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') || strchr("-._~/", *c) != NULL;
    if (plain)
      *out++ = (char)*c;
    else
      out += sprintf(out, "%%%02X", *c);
  }
  strcpy(out, suffix);
  return uri;
}

/* Text for JSON: what is no UTF-8 (a file name in a message) becomes U+FFFD. */
static json_t *text_value(const char *text) {
  json_t *value = json_string(text);
  if (value)
    return value;
  size_t length = strlen(text);
  char *copy = scan_alloc(NULL, 3 * length + 1), *out = copy;
  for (size_t i = 0; i < length; i++)
    out = (unsigned char)text[i] < 0x80 ? (*out = text[i], out + 1) : stpcpy(out, "\xef\xbf\xbd");
  *out = '\0';
  value = json_string(copy);
  free(copy);
  return value;
}

static json_t *message(const char *text) {
  return json_pack("{s:o}", "text", text_value(text));
}

/* Adds a line. */
static void append_text(char **text, const char *more) {
  char *longer = scan_format("%s%s%s", *text, **text ? "\n" : "", more);
  free(*text);
  *text = longer;
}

static const char *layer_name(enum catalog_layer layer) {
  static const char *const names[] = {[CATALOG_LAYER_PYTHON] = "Python export",
                                      [CATALOG_LAYER_OPERATOR] = "torch operator",
                                      [CATALOG_LAYER_CXX] = "C++ function",
                                      [CATALOG_LAYER_SOURCES] = "source files"};
  return names[layer];
}

static const char *platform_name(enum catalog_platform platform) {
  static const char *const names[] = {[CATALOG_CUDA] = "CUDA",
                                      [CATALOG_MUSA] = "MUSA",
                                      [CATALOG_ROCM] = "ROCm",
                                      [CATALOG_XPU] = "XPU",
                                      [CATALOG_CPU] = "CPU"};
  return names[platform];
}

/* When each layer left. */
static char *removal_text(const struct catalog_symbol *symbol) {
  char *text = scan_format("%s", symbol->summary);
  for (unsigned i = 0; i < symbol->removals_count; i++) {
    const struct catalog_removal *removal = &symbol->removals[i];
    char *line = scan_format("%s (%s): last in %s%s%s.", layer_name(removal->layer), platform_name(removal->platform),
                             removal->last_with, removal->first_without ? ", gone from " : "",
                             removal->first_without ? removal->first_without : "");
    append_text(&text, line);
    free(line);
  }
  return text;
}

/* What to use instead, and what to watch. */
static char *help_text(const struct catalog_symbol *symbol) {
  char *text = scan_format("%s", "");
  for (unsigned i = 0; i < symbol->routes_count; i++) {
    const struct catalog_route *route = &symbol->routes[i];
    char *line;
    if (route->kind == CATALOG_ROUTE_NONE)
      line = scan_format("No replacement.");
    else if (route->kind == CATALOG_ROUTE_SGLANG)
      line = scan_format("Replacement in sglang %s%s%s: %s.%s.", route->from ? route->from : "",
                         route->until ? " up to but not including " : " and newer", route->until ? route->until : "",
                         route->module, route->name);
    else
      line = scan_format("Replacement: %s.%s.", route->module, route->name);
    if (*route->note) {
      char *with_note = scan_format("%s Note: %s", line, route->note);
      free(line);
      line = with_note;
    }
    append_text(&text, line);
    free(line);
  }
  for (unsigned i = 0; i < symbol->traps_count; i++) {
    char *line = scan_format("Mind: %s", symbol->traps[i]);
    append_text(&text, line);
    free(line);
  }
  if (!*text)
    append_text(&text, "No replacement is known.");
  return text;
}

static json_t *rule(const struct catalog_symbol *symbol) {
  char *removed = removal_text(symbol), *help = help_text(symbol);
  json_t *object = json_pack("{s:s, s:o, s:o, s:o, s:{s:s}, s:{s:s}}", "id", symbol->id, "shortDescription",
                             message(symbol->summary), "fullDescription", message(removed), "help", message(help),
                             "defaultConfiguration", "level", "error", "properties", "family", symbol->family);
  free(removed);
  free(help);
  return object;
}

static size_t used_rule(const struct catalog *catalog, const struct catalog_symbol *symbol, size_t *indexes,
                        json_t *rules) {
  size_t position = (size_t)(symbol - catalog->symbols);
  if (indexes[position] == 0) {
    json_array_append_new(rules, rule(symbol));
    indexes[position] = json_array_size(rules);
  }
  return indexes[position] - 1;
}

/* Stays the same when lines are added above: rule, path, and the line's text without the space around it. */
static XXH128_hash_t fingerprint(const struct source_file *file, const struct finding *finding, size_t start,
                                 size_t end) {
  while (start < end && (file->bytes[start] == ' ' || file->bytes[start] == '\t'))
    start++;
  while (end > start && strchr(" \t\r", file->bytes[end - 1]))
    end--;
  XXH3_state_t state;
  XXH3_128bits_reset(&state);
  XXH3_128bits_update(&state, finding->symbol->id, strlen(finding->symbol->id) + 1);
  XXH3_128bits_update(&state, file->path, strlen(file->path) + 1);
  if (end > start)
    XXH3_128bits_update(&state, file->bytes + start, end - start);
  return XXH3_128bits_digest(&state);
}

static json_t *artifact(size_t root, const char *path) {
  char *uri = uri_encode("", path, ""), *base = root ? scan_format("SRCROOT%zu", root + 1) : scan_format("SRCROOT");
  json_t *object = json_pack("{s:s, s:s}", "uri", uri, "uriBaseId", base);
  free(uri);
  free(base);
  return object;
}

static json_t *location(size_t root, const char *path) {
  return json_pack("{s:{s:o}}", "physicalLocation", "artifactLocation", artifact(root, path));
}

/* Length of the name at the finding; names are ASCII. */
static uint32_t name_length(const struct source_file *file, size_t at, size_t end) {
  size_t stop = at;
  while (stop < end && (file->bytes[stop] == '_' || (file->bytes[stop] >= '0' && file->bytes[stop] <= '9') ||
                        (file->bytes[stop] >= 'a' && file->bytes[stop] <= 'z') ||
                        (file->bytes[stop] >= 'A' && file->bytes[stop] <= 'Z')))
    stop++;
  return stop > at ? (uint32_t)(stop - at) : 1;
}

static json_t *region(const struct source_file *file, const struct finding *finding, size_t start, size_t end) {
  uint32_t column = report_column(file, finding, start, end, true);
  uint32_t length = name_length(file, start + (finding->column - 1), end);
  return json_pack("{s:I, s:I, s:I}", "startLine", (json_int_t)finding->line, "startColumn", (json_int_t)column,
                   "endColumn", (json_int_t)(column + length));
}

static json_t *one_result(size_t root, const struct source_file *file, const struct finding *finding, json_t *place,
                          XXH128_hash_t print, unsigned ordinal, size_t rule_index) {
  static const char *const levels[] = {[LEVEL_ERROR] = "error", [LEVEL_WARNING] = "warning", [LEVEL_NOTE] = "note"};
  static const char *const verdicts[] = {
      [VERDICT_REWRITE] = "rewrite", [VERDICT_REPORT] = "report", [VERDICT_MENTION] = "mention"};
  static const char *const evidences[] = {
      [EVIDENCE_AST] = "ast",           [EVIDENCE_LEXICAL] = "lexical", [EVIDENCE_STRING] = "string",
      [EVIDENCE_IMPORT] = "import",     [EVIDENCE_BUILD] = "build",     [EVIDENCE_ELF] = "elf",
      [EVIDENCE_NOTEBOOK] = "notebook", [EVIDENCE_TEXT] = "text"};
  json_t *where = location(root, file->path);
  json_object_set_new(json_object_get(where, "physicalLocation"), "region", place);
  char *value =
      scan_format("%016llx%016llx:%u", (unsigned long long)print.high64, (unsigned long long)print.low64, ordinal);
  json_t *result =
      json_pack("{s:s, s:I, s:s, s:o, s:[o], s:{s:s}, s:{s:s, s:s}}", "ruleId", finding->symbol->id, "ruleIndex",
                (json_int_t)rule_index, "level", levels[finding->level], "message", message(finding->message),
                "locations", where, "partialFingerprints", "sglMigrate/v1", value, "properties", "verdict",
                verdicts[finding->verdict], "evidence", evidences[finding->evidence]);
  free(value);
  return result;
}

static void file_results(json_t *results, json_t *rules, size_t *indexes, const struct catalog *catalog, size_t root,
                         const struct source_file *file) {
  size_t count = file->result.findings_count, offset = 0, end;
  uint32_t line = 1;
  XXH128_hash_t *prints = scan_alloc(NULL, count * sizeof *prints);
  for (size_t i = 0; i < count; i++) {
    const struct finding *finding = &file->result.findings[i];
    report_line(file, finding, &line, &offset, &end);
    prints[i] = fingerprint(file, finding, offset, end);
    unsigned ordinal = 1; /* tells equal lines of one file apart */
    for (size_t k = 0; k < i; k++)
      ordinal += XXH128_isEqual(prints[k], prints[i]) != 0;
    size_t index = used_rule(catalog, finding->symbol, indexes, rules);
    json_array_append_new(
        results, one_result(root, file, finding, region(file, finding, offset, end), prints[i], ordinal, index));
  }
  free(prints);
}

static void notification(json_t *list, size_t root, const char *path, const char *level, const char *id,
                         const char *text) {
  json_array_append_new(list, json_pack("{s:s, s:o, s:{s:s}, s:[o]}", "level", level, "message", message(text),
                                        "descriptor", "id", id, "locations", location(root, path)));
}

static void notifications(json_t *list, const struct scan *scan, size_t root) {
  for (size_t i = 0; i < scan->files_count; i++) {
    const struct result *result = &scan->files[i].result;
    if (result->coverage == COVERAGE_NONE)
      notification(list, root, scan->files[i].path, "error", "not-analysed", result->coverage_reason);
    else if (result->coverage == COVERAGE_PARTLY)
      notification(list, root, scan->files[i].path, "warning", "analysed-in-part", result->coverage_reason);
  }
  for (size_t i = 0; i < scan->notes_count; i++)
    notification(list, root, scan->notes[i].path, scan->notes[i].failed ? "error" : "note",
                 scan->notes[i].failed ? "not-analysed" : "not-entered", scan->notes[i].reason);
}

static json_t *descriptors(void) {
  static const struct {
    const char *id, *text;
  } list[] = {{"not-analysed", "A file or folder that should have been analysed was not."},
              {"analysed-in-part", "Parts of a file were not understood; uses in them may be missing."},
              {"not-entered", "A folder or link that was left out on purpose."}};
  json_t *array = json_array();
  for (size_t i = 0; i < sizeof list / sizeof *list; i++)
    json_array_append_new(array, json_pack("{s:s, s:o}", "id", list[i].id, "shortDescription", message(list[i].text)));
  return array;
}

bool report_sarif(const struct scan *scans, size_t count) {
  const struct catalog *catalog = scans[0].catalog;
  size_t *indexes = scan_alloc(NULL, (catalog->symbols_count + 1) * sizeof *indexes);
  memset(indexes, 0, (catalog->symbols_count + 1) * sizeof *indexes);
  json_t *rules = json_array(), *results = json_array(), *notes = json_array(), *bases = json_object();
  struct totals totals = {0};
  for (size_t root = 0; root < count; root++) {
    const struct scan *scan = &scans[root];
    char *base = root ? scan_format("SRCROOT%zu", root + 1) : scan_format("SRCROOT");
    char *uri = uri_encode("file://", scan->real_root, strcmp(scan->real_root, "/") == 0 ? "" : "/");
    json_object_set_new(bases, base, json_pack("{s:s}", "uri", uri));
    free(base);
    free(uri);
    for (size_t i = 0; i < scan->files_count; i++)
      file_results(results, rules, indexes, catalog, root, &scan->files[i]);
    notifications(notes, scan, root);
    report_count(scan, &totals);
  }
  const struct options *options = &scans[0].options;
  char *route = options->sglang_release ? scan_format("sglang@%s", options->sglang_release) : scan_format("jit");
  json_t *driver = json_pack("{s:s, s:s, s:o, s:o}", "name", "sgl-migrate", "version", SGL_VERSION, "rules", rules,
                             "notifications", descriptors());
  json_t *run = json_pack("{s:{s:o}, s:[{s:b, s:i, s:o}], s:o, s:s, s:o, s:{s:s, s:s, s:I, s:I}}", "tool", "driver",
                          driver, "invocations", "executionSuccessful", 1, "exitCode", report_status(&totals),
                          "toolExecutionNotifications", notes, "originalUriBaseIds", bases, "columnKind",
                          "utf16CodeUnits", "results", results, "properties", "kernel", options->kernel, "to", route,
                          "filesAnalysed", (json_int_t)totals.files, "ignoredByGit", (json_int_t)totals.ignored);
  json_t *log = json_pack("{s:s, s:s, s:[o]}", "$schema",
                          "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
                          "version", "2.1.0", "runs", run);
  free(route);
  free(indexes);
  bool done = log && json_dumpf(log, stdout, JSON_INDENT(1)) == 0 && putchar('\n') != EOF;
  json_decref(log);
  return done;
}
