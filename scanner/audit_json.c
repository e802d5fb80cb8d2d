/* All facts of an audit as one JSON object, printed file by file: an environment has a million symbols.
 * docs/formats.md describes every member; FORMAT_VERSION counts up when one changes its meaning or goes. */
#include "scanner/audit.h"
#include "scanner/report.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#define FORMAT_VERSION 1

static json_t *text(const char *string) {
  return string ? report_value(string, strlen(string)) : json_null();
}

/* Prints a value and gives it back. */
static bool print(json_t *value) {
  bool done = value && json_dumpf(value, stdout, JSON_ENCODE_ANY | JSON_COMPACT) == 0;
  json_decref(value);
  return done;
}

static json_t *symbols(const struct audit_symbol *list, size_t count) {
  json_t *array = json_array();
  for (size_t i = 0; i < count; i++)
    json_array_append_new(array, json_pack("{s:o, s:o, s:b}", "name", text(list[i].name), "version",
                                           text(list[i].version), "weak", list[i].weak));
  return array;
}

static json_t *needed(const struct audit_object *object) {
  static const char *const states[] = {[NEEDED_FOUND] = "found",
                                       [NEEDED_PRESENT] = "present",
                                       [NEEDED_OUTSIDE] = "outside",
                                       [NEEDED_MISSING] = "missing"};
  json_t *array = json_array();
  for (size_t i = 0; i < object->needed_count; i++) {
    const struct audit_needed *one = &object->needed[i];
    json_array_append_new(array, json_pack("{s:o, s:s, s:o}", "name", text(one->name), "state", states[one->state],
                                           one->state == NEEDED_MISSING ? "searched" : "place", text(one->place)));
  }
  return array;
}

static json_t *code(const struct audit_object *object) {
  json_t *array = json_array();
  for (size_t i = 0; i < object->code_count; i++) {
    const struct audit_code *one = &object->code[i];
    char arch[32];
    snprintf(arch, sizeof arch, "%s_%u%.1s", one->ptx ? "compute" : "sm", one->arch, &one->suffix);
    json_array_append_new(array, json_pack("{s:s, s:s, s:i}", "arch", arch, "kind", one->ptx ? "ptx" : "cubin", "count",
                                           (int)one->count));
  }
  return array;
}

static json_t *strings(const struct audit_object *object) {
  json_t *array = json_array();
  for (size_t i = 0; i < object->strings_count; i++)
    json_array_append_new(array, text(object->strings[i].text));
  return array;
}

static json_t *schemas(const struct audit_object *object) {
  json_t *array = json_array();
  for (size_t i = 0; i < object->schemas_count; i++)
    json_array_append_new(array, text(object->schemas[i]));
  return array;
}

static const char *type(const struct audit_object *object) {
  switch (object->type) {
  case ET_REL:
    return "object";
  case ET_EXEC:
    return "program";
  case ET_DYN:
    return object->pie ? "program" : "library";
  }
  return "other";
}

static void add_facts(json_t *value, const struct audit_object *object) {
  const char *abi = object->torch_old_strings ? "old" : object->torch_new_strings ? "new" : NULL;
  json_t *facts = json_pack("{s:s, s:s, s:b, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "machine",
                            object->machine, "type", type(object), "bigEndian", object->big_endian, "bindNow",
                            object->bind_now, "buildId", text(object->build_id), "soname", text(object->soname),
                            "rpath", text(object->rpath), "runpath", text(object->runpath), "needed", needed(object),
                            "undefined", symbols(object->undefined, object->undefined_count), "exported",
                            symbols(object->exported, object->exported ? object->defined_count : 0), "strings",
                            strings(object), "operators", schemas(object), "cudaCode", code(object));
  json_object_set_new(facts, "versions",
                      json_pack("{s:o, s:o, s:o}", "glibc", text(object->glibc), "glibcxx", text(object->glibcxx),
                                "cxxabi", text(object->cxxabi)));
  json_object_set_new(facts, "torch",
                      json_pack("{s:i, s:s?, s:i}", "cxxSymbols", (int)object->torch_symbols, "cxxAbi", abi,
                                "stableSymbols", (int)object->torch_stable));
  json_object_update(value, facts);
  json_decref(facts);
}

static json_t *one_object(const struct audit_object *object) {
  char *uri = report_uri("", object->path, "");
  json_t *value =
      json_pack("{s:I, s:o, s:s, s:o, s:b, s:o}", "root", (json_int_t)object->input, "path", text(object->path), "uri",
                uri, "member", text(object->member), "outside", object->outside, "fault", text(object->fault));
  free(uri);
  if (!object->fault)
    add_facts(value, object);
  return value;
}

static json_t *one_finding(const struct audit_finding *finding) {
  static const char *const marks[] = {
      [MARK_NEEDS] = "needs",    [MARK_NEEDS_WEAK] = "needs-weak", [MARK_PROVIDES] = "provides",
      [MARK_STRING] = "string",  [MARK_TORCH] = "torch-abi",       [MARK_SYMBOL] = "symbol",
      [MARK_LIBRARY] = "library"};
  return json_pack("{s:I, s:s, s:s, s:o, s:o, s:b, s:o}", "file", (json_int_t)finding->object, "kind",
                   marks[finding->mark], "verdict", audit_verdict_word(finding->verdict), "symbol",
                   text(finding->symbol ? finding->symbol->id : NULL), "name", text(finding->name), "removed",
                   finding->row && finding->mark != MARK_TORCH, "message", text(finding->message));
}

static json_t *roots(const struct audit_run *run) {
  static const char *const worlds[] = {
      [WORLD_HOST] = "files", [WORLD_ROOT] = "root", [WORLD_ARCHIVE] = "archive", [WORLD_PROCESS] = "process"};
  json_t *array = json_array();
  for (size_t i = 0; i < run->inputs_count; i++)
    json_array_append_new(
        array, json_pack("{s:o, s:s}", "path", text(run->inputs[i].given), "kind", worlds[run->inputs[i].world]));
  return array;
}

bool audit_report_json(const struct audit_run *run) {
  json_t *left_out = json_array();
  for (size_t i = 0; i < run->left_out_count; i++)
    json_array_append_new(left_out, text(run->left_out[i]));
  json_t *head = json_pack("{s:s, s:i, s:s, s:{s:s, s:s, s:b, s:o}, s:i, s:o, s:o}", "format", "sgl-migrate audit",
                           "formatVersion", FORMAT_VERSION, "toolVersion", SGL_VERSION, "against", "kernel",
                           run->kernel, "from", run->kernel_from, "environment", run->environment, "torch",
                           text(run->torch), "exitStatus", audit_status(run), "roots", roots(run), "leftOut", left_out);
  char *start = head ? json_dumps(head, JSON_COMPACT) : NULL;
  json_decref(head);
  bool good = start && printf("%.*s,\n\"files\":[", (int)strlen(start) - 1, start) > 0;
  free(start);
  for (size_t i = 0; good && i < run->objects_count; i++)
    good = fputs(i ? ",\n" : "\n", stdout) >= 0 && print(one_object(&run->objects[i]));
  good = good && fputs("],\n\"findings\":[", stdout) >= 0;
  for (size_t i = 0; good && i < run->findings_count; i++)
    good = fputs(i ? ",\n" : "\n", stdout) >= 0 && print(one_finding(&run->findings[i]));
  return good && fputs("]}\n", stdout) >= 0;
}
