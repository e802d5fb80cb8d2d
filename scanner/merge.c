/* Joins SARIF logs of sgl-migrate, such that the logs of all shards of a scan give the log of the whole scan, byte for
 * byte. What was scanned with other options or by another version of the tool becomes a run of its own. */
#include "scanner/merge.h"
#include "scanner/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

/* A result or a notification, with what orders it. */
struct item {
  json_t *value;
  size_t root; /* of group->roots */
  char *path;  /* decoded: the order of a scan is that of the bytes */
  json_int_t line, column;
  const char *id; /* rule or descriptor; belongs to value */
  size_t number;  /* in the order of the logs */
};

struct items {
  struct item *list;
  size_t count, capacity;
  json_t *seen; /* object: what is there, by its place */
};

/* The runs with the same options. */
struct group {
  char *name, *what; /* the first log, and its options */
  json_t *run;       /* the first run: what the joined one has besides the lists */
  json_t *roots;     /* object: URI of a root to its number */
  json_t *rules;     /* object: id to rule */
  json_t *shards;    /* object: "roots n" to an object of the shards that are there */
  struct items results, execution, configuration;
  json_int_t exit_code, files, ignored;
  bool successful;
};

struct merge {
  struct group *groups;
  size_t groups_count;
  XXH128_hash_t *texts; /* of the logs: one that is there twice counts once */
  size_t texts_count;
  size_t differing;
};

/* --- reading ------------------------------------------------------------------------------------------------------ */

struct place {
  const char *list;
  size_t run, index;
  char *message;
  size_t size;
};

static bool wrong(const struct place *place, const char *what) {
  if (place->list)
    snprintf(place->message, place->size, "runs[%zu].%s[%zu]: %s", place->run, place->list, place->index, what);
  else
    snprintf(place->message, place->size, "runs[%zu]: %s", place->run, what);
  return false;
}

static const char *text_of(const json_t *object, const char *key) {
  return json_string_value(json_object_get(object, key));
}

/* Of files: a number that no tree has is none. */
static json_int_t count_of(const json_t *object, const char *key) {
  json_int_t count = json_integer_value(json_object_get(object, key));
  return count > 0 && count < 1000000000000 ? count : 0;
}

static json_int_t number_of(const json_t *object, const char *key) {
  return json_integer_value(json_object_get(object, key));
}

static int hex(char c) {
  return c >= '0' && c <= '9'   ? c - '0'
         : c >= 'A' && c <= 'F' ? c - 'A' + 10
         : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                : -1;
}

/* The bytes of a percent-encoded path; owned by the caller. */
static char *decode(const char *uri) {
  char *path = scan_format("%s", uri), *out = path;
  for (const char *at = path; *at; at++) {
    int high = *at == '%' ? hex(at[1]) : -1, low = high >= 0 ? hex(at[2]) : -1;
    *out++ = low >= 0 ? (char)(16 * high + low) : *at;
    at += low >= 0 ? 2 : 0;
  }
  *out = '\0';
  return path;
}

/* "SRCROOT" of the first root, "SRCROOT2" of the next; owned by the caller. */
static char *base_name(size_t root) {
  return root ? scan_format("SRCROOT%zu", root + 1) : scan_format("SRCROOT");
}

static size_t root_number(struct group *group, const char *uri) {
  json_t *number = json_object_get(group->roots, uri);
  if (!number) {
    number = json_integer((json_int_t)json_object_size(group->roots));
    json_object_set_new(group->roots, uri, number);
  }
  return (size_t)json_integer_value(number);
}

/* What two items have in common that stand for the same thing. */
static void item_key(const struct item *item, const char *words, char key[33]) {
  XXH3_state_t state;
  XXH3_128bits_reset(&state);
  XXH3_128bits_update(&state, &item->root, sizeof item->root);
  XXH3_128bits_update(&state, &item->line, sizeof item->line);
  XXH3_128bits_update(&state, item->id, strlen(item->id) + 1);
  XXH3_128bits_update(&state, words, strlen(words) + 1);
  XXH3_128bits_update(&state, item->path, strlen(item->path));
  XXH128_hash_t hash = XXH3_128bits_digest(&state);
  snprintf(key, 33, "%016llx%016llx", (unsigned long long)hash.high64, (unsigned long long)hash.low64);
}

/* A result is known by its place and name, a notification by its text too. */
static void add_item(struct merge *merge, struct items *items, struct item item, bool result) {
  if (!items->seen)
    items->seen = json_object();
  const char *words = result ? NULL : text_of(json_object_get(item.value, "message"), "text");
  char key[33];
  item_key(&item, words ? words : "", key);
  json_t *other = json_object_get(items->seen, key);
  if (other) {
    merge->differing += !json_equal(other, item.value);
    free(item.path);
    json_decref(item.value);
    return;
  }
  json_object_set(items->seen, key, item.value);
  if (items->count == items->capacity) {
    items->capacity = items->capacity ? 2 * items->capacity : 256;
    items->list = scan_alloc(items->list, items->capacity * sizeof *items->list);
  }
  item.number = items->count;
  items->list[items->count++] = item;
}

/* Where it is, in terms of the group; sets the base of the new log. false when the value has no such place. */
static bool take_place(struct group *group, const json_t *bases, json_t *value, struct item *item) {
  json_t *physical = json_object_get(json_array_get(json_object_get(value, "locations"), 0), "physicalLocation");
  json_t *artifact = json_object_get(physical, "artifactLocation"), *region = json_object_get(physical, "region");
  const char *uri = text_of(artifact, "uri"), *base = text_of(artifact, "uriBaseId");
  const char *root = base ? text_of(json_object_get(bases, base), "uri") : NULL;
  if (!uri || !root)
    return false;
  item->root = root_number(group, root);
  item->path = decode(uri);
  item->line = number_of(region, "startLine");
  item->column = number_of(region, "startColumn");
  char *name = base_name(item->root);
  json_object_set_new(artifact, "uriBaseId", json_string(name));
  free(name);
  return true;
}

static bool take_results(struct merge *merge, struct group *group, const json_t *run, struct place *place) {
  const json_t *results = json_object_get(run, "results"), *bases = json_object_get(run, "originalUriBaseIds");
  const json_t *rules = json_object_get(json_object_get(json_object_get(run, "tool"), "driver"), "rules");
  if (!json_is_array(results) || !json_is_array(rules))
    return wrong(place, "no results or no rules");
  size_t i;
  json_t *value;
  place->list = "tool.driver.rules";
  json_array_foreach(rules, i, value) {
    place->index = i;
    const char *id = text_of(value, "id");
    if (!id)
      return wrong(place, "no id");
    if (!json_object_get(group->rules, id))
      json_object_set(group->rules, id, value);
  }
  place->list = "results";
  json_array_foreach(results, i, value) {
    place->index = i;
    struct item item = {.id = text_of(value, "ruleId")};
    if (!item.id || !json_object_get(group->rules, item.id))
      return wrong(place, "no ruleId of a rule");
    if (!take_place(group, bases, value, &item))
      return wrong(place, "no location below a root");
    json_object_set_new(value, "ruleIndex", json_integer(0)); /* known at the end */
    item.value = json_incref(value);
    add_item(merge, &group->results, item, true);
  }
  place->list = NULL;
  return true;
}

static bool take_notes(struct merge *merge, struct group *group, const json_t *run, const char *key,
                       struct items *items, struct place *place) {
  const json_t *bases = json_object_get(run, "originalUriBaseIds");
  const json_t *notes = json_object_get(json_array_get(json_object_get(run, "invocations"), 0), key);
  size_t i;
  json_t *value;
  place->list = key;
  json_array_foreach(notes, i, value) {
    place->index = i;
    struct item item = {.id = text_of(json_object_get(value, "descriptor"), "id")};
    if (!item.id || !take_place(group, bases, value, &item))
      return wrong(place, "no descriptor, or no location below a root");
    item.value = json_incref(value);
    add_item(merge, items, item, false);
  }
  place->list = NULL;
  return true;
}

/* "2/8" of the run's roots. */
static bool take_shard(struct group *group, const json_t *run, const struct place *place) {
  const char *shard = text_of(json_object_get(run, "properties"), "shard");
  if (!shard)
    return true;
  unsigned number, count;
  char rest;
  if (sscanf(shard, "%5u/%5u%c", &number, &count, &rest) != 2 || number == 0 || number > count)
    return wrong(place, "the shard is none");
  const json_t *bases = json_object_get(run, "originalUriBaseIds");
  char *key = scan_format("%u", count);
  const char *base;
  json_t *value;
  json_object_foreach((json_t *)(uintptr_t)bases, base, value) {
    char *longer = scan_format("%s %s", key, text_of(value, "uri") ? text_of(value, "uri") : "");
    free(key);
    key = longer;
  }
  json_t *there = json_object_get(group->shards, key);
  if (!there) {
    there = json_object();
    json_object_set_new(group->shards, key, there);
  }
  free(key);
  json_object_set_new(there, shard, json_true());
  return true;
}

/* The group with the options of a run. */
static struct group *group_of(struct merge *merge, const char *name, json_t *run, void (*say)(const char *line)) {
  const json_t *properties = json_object_get(run, "properties");
  const char *version = text_of(json_object_get(json_object_get(run, "tool"), "driver"), "version");
  const char *kernel = text_of(properties, "kernel"), *to = text_of(properties, "to");
  char *what =
      scan_format("kernel %s, to %s, sgl-migrate %s", kernel ? kernel : "?", to ? to : "?", version ? version : "?");
  for (size_t i = 0; i < merge->groups_count; i++)
    if (strcmp(merge->groups[i].what, what) == 0) {
      free(what);
      return &merge->groups[i];
    }
  if (merge->groups_count) {
    char *line = scan_format("%s: %s, where %s has %s: a run of its own", name, what, merge->groups[0].name,
                             merge->groups[0].what);
    say(line);
    free(line);
  }
  merge->groups = scan_alloc(merge->groups, (merge->groups_count + 1) * sizeof *merge->groups);
  struct group *group = &merge->groups[merge->groups_count++];
  *group = (struct group){.name = scan_format("%s", name),
                          .what = what,
                          .run = json_deep_copy(run),
                          .roots = json_object(),
                          .rules = json_object(),
                          .shards = json_object(),
                          .successful = true};
  return group;
}

static bool take_run(struct merge *merge, const char *name, json_t *run, struct place *place,
                     void (*say)(const char *line)) {
  const json_t *driver = json_object_get(json_object_get(run, "tool"), "driver");
  const char *tool = text_of(driver, "name");
  if (!tool || strcmp(tool, "sgl-migrate") != 0)
    return wrong(place, "not written by sgl-migrate");
  const json_t *bases = json_object_get(run, "originalUriBaseIds"), *properties = json_object_get(run, "properties");
  const json_t *invocation = json_array_get(json_object_get(run, "invocations"), 0);
  if (!json_is_object(bases) || !json_is_object(properties) || !json_is_object(invocation))
    return wrong(place, "no originalUriBaseIds, properties or invocations");
  struct group *group = group_of(merge, name, run, say);
  const char *base;
  json_t *value;
  json_object_foreach((json_t *)(uintptr_t)bases, base, value) {
    if (!text_of(value, "uri"))
      return wrong(place, "a root without uri");
    root_number(group, text_of(value, "uri"));
  }
  group->exit_code |= number_of(invocation, "exitCode") & 0xff;
  group->files += count_of(properties, "filesAnalysed");
  group->ignored += count_of(properties, "ignoredByGit");
  group->successful = group->successful && json_is_true(json_object_get(invocation, "executionSuccessful"));
  return take_shard(group, run, place) && take_results(merge, group, run, place) &&
         take_notes(merge, group, run, "toolExecutionNotifications", &group->execution, place) &&
         take_notes(merge, group, run, "toolConfigurationNotifications", &group->configuration, place);
}

static bool known_text(struct merge *merge, const char *text, size_t size) {
  XXH128_hash_t hash = XXH3_128bits(text, size);
  for (size_t i = 0; i < merge->texts_count; i++)
    if (XXH128_isEqual(merge->texts[i], hash))
      return true;
  merge->texts = scan_alloc(merge->texts, (merge->texts_count + 1) * sizeof *merge->texts);
  merge->texts[merge->texts_count++] = hash;
  return false;
}

bool merge_add(struct merge *merge, const char *name, const char *text, size_t size, void (*say)(const char *line),
               char *message, size_t message_size) {
  if (known_text(merge, text, size))
    return true;
  json_error_t error;
  json_t *log = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
  if (!log) {
    snprintf(message, message_size, "line %d: %s", error.line, error.text);
    return false;
  }
  const char *version = text_of(log, "version");
  json_t *runs = json_object_get(log, "runs"), *run;
  bool good = version && strcmp(version, "2.1.0") == 0 && json_is_array(runs);
  if (!good)
    snprintf(message, message_size, "no SARIF 2.1.0 log");
  struct place place = {.message = message, .size = message_size};
  json_array_foreach(runs, place.run, run) {
    good = good && take_run(merge, name, run, &place, say);
    if (!good)
      break;
  }
  json_decref(log);
  return good;
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

static int compare_items(const void *left, const void *right) {
  const struct item *a = left, *b = right;
  if (a->root != b->root)
    return a->root < b->root ? -1 : 1;
  int order = strcmp(a->path, b->path);
  if (order)
    return order;
  if (a->line != b->line)
    return a->line < b->line ? -1 : 1;
  if (a->column != b->column)
    return a->column < b->column ? -1 : 1;
  order = strcmp(a->id, b->id);
  return order ? order : (a->number > b->number) - (a->number < b->number);
}

static void sort(struct items *items) {
  if (items->count)
    qsort(items->list, items->count, sizeof *items->list, compare_items);
}

static json_t *values(struct items *items) {
  json_t *array = json_array();
  sort(items);
  for (size_t i = 0; i < items->count; i++)
    json_array_append(array, items->list[i].value);
  return array;
}

/* The rules in the order in which the results use them; the results get their numbers. */
static json_t *number_rules(struct group *group) {
  json_t *rules = json_array(), *numbers = json_object();
  sort(&group->results);
  for (size_t i = 0; i < group->results.count; i++) {
    const struct item *item = &group->results.list[i];
    json_t *number = json_object_get(numbers, item->id);
    if (!number) {
      number = json_integer((json_int_t)json_array_size(rules));
      json_object_set_new(numbers, item->id, number);
      json_array_append(rules, json_object_get(group->rules, item->id));
    }
    json_object_set(item->value, "ruleIndex", number);
  }
  json_decref(numbers);
  return rules;
}

static json_t *bases_of(const struct group *group) {
  json_t *bases = json_object(), *number;
  const char *uri;
  json_object_foreach(group->roots, uri, number) {
    char *name = base_name((size_t)json_integer_value(number));
    json_object_set_new(bases, name, json_pack("{s:s}", "uri", uri));
    free(name);
  }
  return bases;
}

/* Says which shards are missing, of those that the others speak of. */
static bool complete(const struct group *group, void (*say)(const char *line)) {
  bool all = true;
  const char *key;
  json_t *there;
  json_object_foreach(group->shards, key, there) {
    unsigned count = (unsigned)strtoul(key, NULL, 10), missing = 0, first = 0;
    for (unsigned i = 1; i <= count; i++) {
      char *shard = scan_format("%u/%u", i, count);
      if (!json_object_get(there, shard)) {
        first = missing++ ? first : i;
        all = false;
      }
      free(shard);
    }
    if (missing) {
      char *line = scan_format("%u of %u shards are missing, the first is %u/%u, of%s", missing, count, first, count,
                               strchr(key, ' ') ? strchr(key, ' ') : " ?");
      say(line);
      free(line);
    }
  }
  return all;
}

static json_t *finish_group(struct group *group) {
  json_t *run = json_incref(group->run);
  json_t *invocation = json_array_get(json_object_get(run, "invocations"), 0);
  json_t *properties = json_object_get(run, "properties");
  json_object_set_new(json_object_get(json_object_get(run, "tool"), "driver"), "rules", number_rules(group));
  json_object_set_new(invocation, "executionSuccessful", json_boolean(group->successful));
  json_object_set_new(invocation, "exitCode", json_integer(group->exit_code));
  json_object_set_new(invocation, "toolExecutionNotifications", values(&group->execution));
  json_object_set_new(invocation, "toolConfigurationNotifications", values(&group->configuration));
  json_object_set_new(run, "originalUriBaseIds", bases_of(group));
  json_object_set_new(run, "results", values(&group->results));
  json_object_set_new(properties, "filesAnalysed", json_integer(group->files));
  json_object_set_new(properties, "ignoredByGit", json_integer(group->ignored));
  json_object_del(properties, "shard");
  return run;
}

json_t *merge_finish(struct merge *merge, void (*say)(const char *line), int *status) {
  json_t *runs = json_array();
  *status = 0;
  for (size_t i = 0; i < merge->groups_count; i++) {
    struct group *group = &merge->groups[i];
    if (!complete(group, say)) {
      group->exit_code |= EXIT_NOT_ANALYSED;
      group->successful = false;
    }
    *status |= (int)group->exit_code;
    json_array_append_new(runs, finish_group(group));
  }
  if (merge->differing) {
    char *line =
        scan_format("%zu results of the same place and name differ between logs; the first is kept", merge->differing);
    say(line);
    free(line);
  }
  return report_sarif_log(runs);
}

struct merge *merge_new(void) {
  struct merge *merge = scan_alloc(NULL, sizeof *merge);
  *merge = (struct merge){0};
  return merge;
}

static void items_free(struct items *items) {
  for (size_t i = 0; i < items->count; i++) {
    json_decref(items->list[i].value);
    free(items->list[i].path);
  }
  free(items->list);
  json_decref(items->seen);
}

void merge_free(struct merge *merge) {
  for (size_t i = 0; i < merge->groups_count; i++) {
    struct group *group = &merge->groups[i];
    free(group->name);
    free(group->what);
    json_decref(group->run);
    json_decref(group->roots);
    json_decref(group->rules);
    json_decref(group->shards);
    items_free(&group->results);
    items_free(&group->execution);
    items_free(&group->configuration);
  }
  free(merge->groups);
  free(merge->texts);
  free(merge);
}
