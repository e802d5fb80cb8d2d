/* Is a line of statistics what docs/formats.md says? Nothing in a file is trusted: it may be damaged, of another
 * release, or of another program. */
#include "shim/policy_text.h"
#include "shim/sgl_compat_tool.h"

#include "compat_table.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define SCHEMA "sgl-kernel-compat-usage/1"

struct why {
  char *text;
  size_t size;
};

__attribute__((format(printf, 2, 3))) static bool fail(struct why why, const char *format, ...) {
  va_list list;
  va_start(list, format);
  vsnprintf(why.text, why.size, format, list);
  va_end(list);
  return false;
}

static const char *string(const json_t *object, const char *key) {
  return json_string_value(json_object_get(object, key));
}

/* --- parts -------------------------------------------------------------------------------------------------------- */

static bool has_string(struct why why, const json_t *object, const char *key) {
  return string(object, key) || fail(why, "%s is no string", key);
}

/* Not negative. `needed`: it has to be there. */
static bool has_count(struct why why, const json_t *object, const char *key, bool needed) {
  const json_t *count = json_object_get(object, key);
  return (!count && !needed) || (json_is_integer(count) && json_integer_value(count) >= 0) ||
         fail(why, "%s is no number from 0 on", key);
}

static bool has_time(struct why why, const json_t *object, const char *key) {
  const json_t *time = json_object_get(object, key);
  json_int_t last = 253402300799; /* of the year 9999 */
  return (json_is_integer(time) && json_integer_value(time) > 0 && json_integer_value(time) <= last) ||
         fail(why, "%s is no time in seconds since 1970", key);
}

static bool has_symbol(struct why why, const json_t *object, const char *key) {
  const char *symbol = string(object, key);
  if (!symbol)
    return fail(why, "%s is no string", key);
  return policy_symbol(symbol, strlen(symbol)) != COMPAT_SYMBOLS ||
         fail(why, "'%.80s' is no deleted name of " COMPAT_PACKAGE " that this release knows; use a newer sgl-compat",
              symbol);
}

static bool is_one_of(const char *text, const char *const list[], size_t count) {
  for (size_t i = 0; i < count && text; i++)
    if (strcmp(text, list[i]) == 0)
      return true;
  return false;
}

static bool has_stages(struct why why, const json_t *row) {
  static const char *const stages[] = {"silent", "warn", "error", "tombstone"};
  const json_t *calls = json_object_get(row, "calls");
  const char *stage;
  json_t *count;
  if (!json_is_object(calls))
    return fail(why, "calls is no object");
  json_object_foreach((json_t *)calls, stage, count) {
    if (!is_one_of(stage, stages, sizeof stages / sizeof stages[0]))
      return fail(why, "'%.80s' is no stage", stage);
    if (!has_count(why, calls, stage, true))
      return false;
  }
  return true;
}

/* Not there where nobody knows it. */
static bool has_caller(struct why why, const json_t *row) {
  const json_t *caller = json_object_get(row, "caller");
  static const char *const strings[] = {"module", "function", "offset"};
  if (!caller)
    return true;
  if (!string(caller, "file"))
    return fail(why, "caller has no file");
  for (size_t i = 0; i < sizeof strings / sizeof strings[0]; i++)
    if (json_object_get(caller, strings[i]) && !string(caller, strings[i]))
      return fail(why, "caller: %s is no string", strings[i]);
  return has_count(why, caller, "line", !json_object_get(caller, "offset"));
}

/* --- lines -------------------------------------------------------------------------------------------------------- */

static bool is_face(const char *text) {
  static const char *const faces[] = {"cxx", "operator", "python"};
  return is_one_of(text, faces, sizeof faces / sizeof faces[0]);
}

static bool is_use(struct why why, const json_t *row) {
  return has_symbol(why, row, "symbol") &&
         (is_face(string(row, "face")) || fail(why, "face is none of cxx, operator, python")) && has_stages(why, row) &&
         has_count(why, row, "samples", false) && has_count(why, row, "failed", false) && has_time(why, row, "first") &&
         has_string(why, row, "removed_in") && has_caller(why, row);
}

static bool is_shadow(struct why why, const json_t *row) {
  static const char *const counts[] = {"calls", "matches", "mismatches", "ignored", "over_budget", "errors"};
  if (!has_symbol(why, row, "shadow"))
    return false;
  for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
    if (!has_count(why, row, counts[i], true))
      return false;
  return true;
}

/* What an installed package serves itself, out of the statistics' sight. */
static bool is_not_counted(struct why why, const json_t *row) {
  const json_t *list = json_object_get(row, "faces"), *face;
  size_t i;
  if (!has_symbol(why, row, "not_counted"))
    return false;
  json_array_foreach(list, i, face) {
    if (!is_face(json_string_value(face)))
      return fail(why, "faces has something else than cxx, operator, python");
  }
  return json_array_size(list) > 0 || fail(why, "faces is no list with a face");
}

enum tool_row tool_stats_row(const json_t *row, char *text, size_t size) {
  struct why why = {text, size};
  if (!json_is_object(row)) {
    fail(why, "it is no JSON object");
    return TOOL_ROW_BAD;
  }
  if (json_object_get(row, "symbol"))
    return is_use(why, row) ? TOOL_ROW_USE : TOOL_ROW_BAD;
  if (json_object_get(row, "kernel"))
    return has_string(why, row, "kernel") && has_count(why, row, "calls", true) ? TOOL_ROW_KERNEL : TOOL_ROW_BAD;
  if (json_object_get(row, "shadow"))
    return is_shadow(why, row) ? TOOL_ROW_SHADOW : TOOL_ROW_BAD;
  if (json_object_get(row, "not_counted"))
    return is_not_counted(why, row) ? TOOL_ROW_NOT_COUNTED : TOOL_ROW_BAD;
  if (json_object_get(row, "kernels_lost"))
    return has_count(why, row, "kernels_lost", true) ? TOOL_ROW_LOST : TOOL_ROW_BAD;
  return TOOL_ROW_OTHER;
}

bool tool_stats_header(const json_t *header, char *text, size_t size) {
  struct why why = {text, size};
  const char *schema = string(header, "schema"), *package = string(header, "package");
  if (!schema)
    return fail(why, "no file of statistics: its first line has no schema");
  if (strcmp(schema, SCHEMA) != 0)
    return fail(why, "statistics of another version than " SCHEMA);
  if (!package || strcmp(package, COMPAT_PACKAGE) != 0)
    return fail(why, "statistics of another package than " COMPAT_PACKAGE);
  return has_string(why, header, "version") && has_string(why, header, "host") && has_string(why, header, "job") &&
         has_string(why, header, "rank") && has_count(why, header, "pid", true) &&
         has_count(why, header, "start", true) && has_count(why, header, "lines", true) &&
         has_time(why, header, "written");
}
