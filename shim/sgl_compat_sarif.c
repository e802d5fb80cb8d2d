/* What a scan of the sources has found, as far as the gate asks. Of a log that does not tell of all uses nobody may
 * conclude that there are none: SARIF says in several places that a scan did not end, or left something out. */
#include "shim/sgl_compat_tool.h"

#include "compat_table.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NOT_ANALYSED = 4 }; /* of the exit status of sgl-migrate */

static const char *string(const json_t *object, const char *key) {
  const char *value = json_string_value(json_object_get(object, key));
  return value ? value : "";
}

static const json_t *first_place(const json_t *owner) {
  return json_object_get(json_array_get(json_object_get(owner, "locations"), 0), "physicalLocation");
}

/* A live use is what sgl-migrate would rewrite, or wants a person for; also one that a comment or a baseline accepts.
 */
static bool is_live(const json_t *result) {
  const char *verdict = string(json_object_get(result, "properties"), "verdict");
  return strcmp(verdict, "rewrite") == 0 || strcmp(verdict, "report") == 0;
}

static bool is_result(const json_t *result) {
  return string(result, "ruleId")[0] &&
         (is_live(result) || strcmp(string(json_object_get(result, "properties"), "verdict"), "mention") == 0);
}

/* --- is it a scan? ------------------------------------------------------------------------------------------------ */

static bool check_run(const char *path, size_t number, const json_t *run) {
  const json_t *results = json_object_get(run, "results"), *result;
  size_t i;
  if (strcmp(string(json_object_get(json_object_get(run, "tool"), "driver"), "name"), "sgl-migrate") != 0) {
    tool_error("%s: runs[%zu] was not written by sgl-migrate scan", path, number);
    return false;
  }
  if (!json_is_array(results)) {
    tool_error("%s: runs[%zu] has no results: the scan did not end", path, number);
    return false;
  }
  json_array_foreach(results, i, result) {
    if (!is_result(result)) {
      tool_error("%s: runs[%zu].results[%zu] has no ruleId or verdict", path, number, i);
      return false;
    }
  }
  return true;
}

/* --- does it tell of all uses? ------------------------------------------------------------------------------------ */

__attribute__((format(printf, 2, 3))) static void leave_out(struct tool_scan *scan, const char *format, ...) {
  va_list list;
  va_start(list, format);
  if (!scan->left_out[0])
    vsnprintf(scan->left_out, sizeof scan->left_out, format, list);
  va_end(list);
}

/* "; u.py: UTF-16 text that has a name of the catalog" */
static void first_note(const json_t *invocation, char *text, size_t size) {
  const json_t *note;
  size_t i;
  json_array_foreach(json_object_get(invocation, "toolExecutionNotifications"), i, note) {
    const char *level = string(note, "level");
    if (strcmp(level, "error") != 0 && strcmp(level, "warning") != 0)
      continue;
    snprintf(text, size, "; %.300s: %.300s", string(json_object_get(first_place(note), "artifactLocation"), "uri"),
             string(json_object_get(note, "message"), "text"));
    return;
  }
}

static bool has_error(const json_t *invocation) {
  const json_t *note;
  size_t i;
  json_array_foreach(json_object_get(invocation, "toolExecutionNotifications"), i, note) {
    if (strcmp(string(note, "level"), "error") == 0)
      return true;
  }
  return false;
}

static void look_at_invocations(struct tool_scan *scan, const json_t *run) {
  const json_t *invocations = json_object_get(run, "invocations"), *invocation;
  size_t i;
  if (json_array_size(invocations) == 0)
    leave_out(scan, "the scan of the sources does not say how it ended");
  json_array_foreach(invocations, i, invocation) {
    const json_t *status = json_object_get(invocation, "exitCode");
    char note[700] = "";
    first_note(invocation, note, sizeof note);
    if (!json_is_true(json_object_get(invocation, "executionSuccessful")) || has_error(invocation) ||
        !json_is_integer(status) || json_integer_value(status) & NOT_ANALYSED)
      leave_out(scan, "the scan of the sources has left something out%s", note);
  }
}

/* What a scan leaves out on purpose, as virtual environments and links to elsewhere. */
static json_int_t count_not_entered(const json_t *run) {
  const json_t *invocation, *note;
  json_int_t count = 0;
  size_t i, k;
  json_array_foreach(json_object_get(run, "invocations"), i, invocation) {
    json_array_foreach(json_object_get(invocation, "toolExecutionNotifications"), k, note) {
      count += strcmp(string(json_object_get(note, "descriptor"), "id"), "not-entered") == 0;
    }
  }
  return count;
}

/* The release of which nothing is newer that the scan was against; no number: the catalog does not know it. */
static unsigned number_of_release(const char *release) {
  unsigned i = 0;
  while (i < compat_releases_count && strcmp(compat_releases[i], release) != 0)
    i++;
  return i;
}

static void look_at_run(struct tool_scan *scan, const json_t *run) {
  const json_t *properties = json_object_get(run, "properties");
  const char *kernel = string(properties, "kernel"), *shard = string(properties, "shard");
  json_int_t files = json_integer_value(json_object_get(properties, "filesAnalysed"));
  unsigned number = number_of_release(kernel);
  look_at_invocations(scan, run);
  if (*shard)
    leave_out(scan, "the scan of the sources is shard %.40s; sgl-migrate merge joins them", shard);
  json_int_t ignored = json_integer_value(json_object_get(properties, "ignoredByGit"));
  scan->not_entered += count_not_entered(run) + (ignored > 0 && ignored <= INT32_MAX ? ignored : 0);
  if (files > 0 && files <= INT32_MAX)
    scan->files += files;
  else
    leave_out(scan, "the scan of the sources has looked at no file");
  if (number == compat_releases_count)
    leave_out(scan, "the scan of the sources was against kernel '%.40s', which is not known here", kernel);
  if (json_array_size(scan->runs) == 0 || number < scan->release)
    scan->release = number;
}

bool tool_scan_read(const char *path, struct tool_scan *scan) {
  json_error_t error;
  size_t size, i;
  json_t *run;
  char *text = tool_read(path, &size);
  json_t *log = text ? json_loadb(text, size, JSON_REJECT_DUPLICATES, &error) : NULL;
  const json_t *runs = json_object_get(log, "runs");
  if (text && !log)
    tool_error("%s:%d: %s", path, error.line, error.text);
  free(text);
  if (!log)
    return false;
  bool good = strcmp(string(log, "version"), "2.1.0") == 0 && json_array_size(runs) > 0;
  if (!good)
    tool_error("%s: this is no scan: SARIF 2.1.0 with a run is needed", path);
  json_array_foreach(runs, i, run) {
    good = good && check_run(path, i, run);
  }
  scan->runs = scan->runs ? scan->runs : json_array();
  json_array_foreach(runs, i, run) {
    if (!good)
      break;
    look_at_run(scan, run);
    json_array_append(scan->runs, run);
  }
  json_decref(log);
  return good;
}

size_t tool_scan_uses(const struct tool_scan *scan, const char *id, char *first, size_t first_size) {
  const json_t *run, *result;
  size_t r, i, found = 0;
  json_array_foreach(scan->runs, r, run) {
    json_array_foreach(json_object_get(run, "results"), i, result) {
      const json_t *place = first_place(result);
      if (!is_live(result) || strcmp(string(result, "ruleId"), id) != 0 || found++)
        continue;
      snprintf(first, first_size, "%.500s:%lld", string(json_object_get(place, "artifactLocation"), "uri"),
               (long long)json_integer_value(json_object_get(json_object_get(place, "region"), "startLine")));
    }
  }
  return found;
}

bool tool_scan_tells_of(const struct tool_scan *scan, unsigned symbol) {
  return scan->release >= number_of_release(compat_symbols[symbol].gone_in);
}
