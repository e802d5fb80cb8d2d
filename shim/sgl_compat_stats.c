/* The statistics of many processes, read and added up into one tree: what report prints. */
#include "shim/sgl_compat_tool.h"

#include "compat_table.h"

#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define SCHEMA "sgl-kernel-compat-usage/1"

/* What is being read. */
struct reader {
  const char *path;
  unsigned line;
  bool good;
  json_t *tree, *files; /* files: those that have been read, by device and inode */
  char process[32];     /* the number of the process whose file this is */
  const char *job;
  json_int_t written;
};

static void fault(struct reader *reader, const char *what) {
  tool_error("%s:%u: %s", reader->path, reader->line, what);
  reader->good = false;
}

/* --- adding up ---------------------------------------------------------------------------------------------------- */

/* The value of a key, made if it is not there. */
static json_t *get(json_t *object, const char *key, json_t *(*make)(void)) {
  json_t *value = json_object_get(object, key);
  if (!value) {
    value = make();
    if (!value || json_object_set_new(object, key, value) != 0)
      tool_realloc(NULL, SIZE_MAX); /* says that there is no memory, and ends */
  }
  return value;
}

static void set(json_t *object, const char *key, json_t *value) {
  if (json_object_set_new(object, key, value) != 0)
    tool_realloc(NULL, SIZE_MAX);
}

static void add(json_t *object, const char *key, json_int_t count) {
  set(object, key, json_integer(json_integer_value(json_object_get(object, key)) + count));
}

static void keep_least(json_t *object, const char *key, json_int_t value) {
  const json_t *have = json_object_get(object, key);
  if (!have || json_integer_value(have) > value)
    set(object, key, json_integer(value));
}

static void keep_most(json_t *object, const char *key, json_int_t value) {
  const json_t *have = json_object_get(object, key);
  if (!have || json_integer_value(have) < value)
    set(object, key, json_integer(value));
}

static void add_to_set(json_t *object, const char *key, const char *member) {
  set(get(object, key, json_object), member, json_true());
}

static void add_all(json_t *sums, const json_t *counts) {
  const char *key;
  json_t *count;
  json_object_foreach((json_t *)counts, key, count) {
    if (json_is_integer(count))
      add(sums, key, json_integer_value(count));
  }
}

static json_int_t sum_of(const json_t *counts) {
  json_int_t sum = 0;
  const char *key;
  json_t *count;
  json_object_foreach((json_t *)counts, key, count) {
    sum += json_integer_value(count);
  }
  return sum;
}

/* --- lines -------------------------------------------------------------------------------------------------------- */

static const char *string(const json_t *object, const char *key) {
  const char *value = json_string_value(json_object_get(object, key));
  return value ? value : "";
}

/* "libmodel.so+0x12 (run)", "layers.py:12 (model.layers)"; the path is told apart. */
static void name_caller(const json_t *caller, char *place, size_t size) {
  const char *file = string(caller, "file"), *slash = strrchr(file, '/'), *name = slash ? slash + 1 : file;
  const char *function = string(caller, "function"), *module = string(caller, "module");
  if (json_object_get(caller, "offset"))
    snprintf(place, size, "%.1000s+%.40s%s%.500s%s", name, string(caller, "offset"), *function ? " (" : "", function,
             *function ? ")" : "");
  else
    snprintf(place, size, "%.1000s:%lld%s%.500s%s", name,
             (long long)json_integer_value(json_object_get(caller, "line")), *module ? " (" : "", module,
             *module ? ")" : "");
}

static void read_caller(struct reader *reader, json_t *symbol, const json_t *line, json_int_t calls) {
  const json_t *caller = json_object_get(line, "caller");
  char place[2000] = "", key[8000];
  if (caller)
    name_caller(caller, place, sizeof place);
  snprintf(key, sizeof key, "%s %.4000s %s", string(line, "face"), string(caller, "file"), place);
  json_t *entry = get(get(symbol, "callers", json_object), key, json_object);
  set(entry, "face", json_string(string(line, "face")));
  set(entry, "place", json_string(place));
  set(entry, "file", json_string(string(caller, "file")));
  add(entry, "calls", calls);
  add(entry, "samples", json_integer_value(json_object_get(line, "samples")));
  add_to_set(entry, "processes", reader->process);
}

static void read_use(struct reader *reader, const json_t *line) {
  const json_t *calls = json_object_get(line, "calls"), *first = json_object_get(line, "first");
  if (!json_is_object(calls) || !json_is_integer(first) || !string(line, "face")[0]) {
    fault(reader, "a use of a symbol without calls, first or face");
    return;
  }
  json_t *symbol = get(get(reader->tree, "symbols", json_object), string(line, "symbol"), json_object);
  json_int_t sum = sum_of(calls);
  set(symbol, "removed_in", json_string(string(line, "removed_in")));
  add(symbol, "calls", sum);
  add(symbol, "failed", json_integer_value(json_object_get(line, "failed")));
  add_all(get(symbol, "stages", json_object), calls);
  if (sum > 0)
    add(get(symbol, "faces", json_object), string(line, "face"), sum);
  keep_least(symbol, "first", json_integer_value(first));
  keep_most(symbol, "last", reader->written);
  add_to_set(symbol, "processes", reader->process);
  add_to_set(symbol, "jobs", reader->job);
  read_caller(reader, symbol, line, sum);
}

static void read_line(struct reader *reader, const char *text, size_t size) {
  json_error_t error;
  json_t *line = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
  if (!json_is_object(line)) {
    char why[300];
    snprintf(why, sizeof why, "no line of statistics: %.200s", line ? "it is no JSON object" : error.text);
    fault(reader, why);
  } else if (json_object_get(line, "symbol")) {
    read_use(reader, line);
  } else if (json_object_get(line, "kernel")) {
    add(get(reader->tree, "kernels", json_object), string(line, "kernel"),
        json_integer_value(json_object_get(line, "calls")));
  } else if (json_object_get(line, "shadow")) {
    json_t *shadow = get(get(reader->tree, "shadow", json_object), string(line, "shadow"), json_object);
    add_all(shadow, line);
    add(shadow, "processes", 1);
  }
  json_decref(line);
}

/* The first line tells whose the file is. */
static bool read_header(struct reader *reader, const char *text, size_t size) {
  json_error_t error;
  json_t *header = json_loadb(text, size, 0, &error);
  const char *schema = string(header, "schema");
  bool good = strcmp(schema, SCHEMA) == 0;
  if (good) {
    static const char *const own = "no job";
    reader->written = json_integer_value(json_object_get(header, "written"));
    snprintf(reader->process, sizeof reader->process, "%zu", json_object_size(reader->files));
    const char *job = string(header, "job");
    add_to_set(reader->tree, "jobs", *job ? job : own);
    add_to_set(reader->tree, "hosts", string(header, "host"));
    add(reader->tree, "processes", 1);
    keep_least(reader->tree, "from", reader->written);
    keep_most(reader->tree, "until", reader->written);
    const char *key;
    void *at = json_object_iter_at(json_object_get(reader->tree, "jobs"), *job ? job : own);
    key = json_object_iter_key(at); /* stays with the tree */
    reader->job = key;
  } else if (*schema) {
    fault(reader, "statistics of another version than " SCHEMA);
  } else {
    fault(reader, "no file of statistics: its first line has no schema");
  }
  json_decref(header);
  return good;
}

static bool is_known(struct reader *reader, const char *path) {
  struct stat s;
  char key[64];
  if (stat(path, &s) != 0)
    return false;
  snprintf(key, sizeof key, "%llx:%llx", (unsigned long long)s.st_dev, (unsigned long long)s.st_ino);
  if (json_object_get(reader->files, key))
    return true;
  set(reader->files, key, json_true());
  return false;
}

static void read_file(struct reader *reader, const char *path) {
  size_t size;
  if (is_known(reader, path))
    return;
  char *text = tool_read(path, &size);
  reader->path = path;
  reader->line = 1;
  reader->good = reader->good && text;
  for (char *at = text; at && at < text + size; reader->line++) {
    char *end = memchr(at, '\n', (size_t)(text + size - at));
    size_t length = (size_t)((end ? end : text + size) - at);
    if (reader->line > 1)
      read_line(reader, at, length);
    else if (!read_header(reader, at, length))
      break;
    at += length + 1;
  }
  if (text && size == 0)
    fault(reader, "no file of statistics: it is empty");
  free(text);
}

static int is_statistics(const struct dirent *entry) {
  size_t length = strlen(entry->d_name);
  return entry->d_name[0] != '.' && length > 6 && strcmp(entry->d_name + length - 6, ".jsonl") == 0;
}

static void read_folder(struct reader *reader, const char *path) {
  struct dirent **list;
  int count = scandir(path, &list, is_statistics, alphasort);
  if (count < 0) {
    tool_error("%s: %s", path, strerror(errno));
    reader->good = false;
    return;
  }
  for (int i = 0; i < count; i++) {
    size_t size = strlen(path) + strlen(list[i]->d_name) + 2;
    char *file = tool_realloc(NULL, size);
    snprintf(file, size, "%s/%s", path, list[i]->d_name);
    read_file(reader, file);
    free(file);
    free(list[i]);
  }
  free(list);
}

/* --- the tree ----------------------------------------------------------------------------------------------------- */

/* A set becomes the number of its members. */
static void count_set(json_t *object, const char *key) {
  set(object, key, json_integer((json_int_t)json_object_size(json_object_get(object, key))));
}

static int order_callers(const void *one, const void *other) {
  const json_t *a = *(json_t *const *)one, *b = *(json_t *const *)other;
  json_int_t x = json_integer_value(json_object_get(a, "calls")), y = json_integer_value(json_object_get(b, "calls"));
  int names = strcmp(string(a, "face"), string(b, "face"));
  names = names ? names : strcmp(string(a, "place"), string(b, "place"));
  return x != y ? (x < y ? 1 : -1) : names ? names : strcmp(string(a, "file"), string(b, "file"));
}

/* The callers as a list, those with most calls first. */
static void list_callers(json_t *symbol) {
  json_t *callers = json_object_get(symbol, "callers"), *list = json_array(), *caller;
  size_t count = 0;
  json_t **all = tool_realloc(NULL, json_object_size(callers) * sizeof(json_t *));
  const char *key;
  json_object_foreach(callers, key, caller) {
    count_set(caller, "processes");
    all[count++] = caller;
  }
  qsort(all, count, sizeof *all, order_callers);
  for (size_t i = 0; i < count; i++)
    json_array_append(list, all[i]);
  free(all);
  set(symbol, "callers", list);
}

/* All that is known is sorted by name. */
static json_t *sorted(json_t *object) {
  json_t *made = json_object();
  char **keys = tool_realloc(NULL, json_object_size(object) * sizeof *keys);
  size_t count = 0;
  const char *key;
  json_t *value;
  json_object_foreach(object, key, value) {
    size_t at = count++;
    for (; at > 0 && strcmp(keys[at - 1], key) > 0; at--)
      keys[at] = keys[at - 1];
    keys[at] = (char *)key;
  }
  for (size_t i = 0; i < count; i++)
    json_object_set(made, keys[i], json_object_get(object, keys[i]));
  free(keys);
  return made;
}

static void finish(json_t *tree) {
  static const char *const parts[] = {"symbols", "kernels", "shadow", "jobs", "hosts"};
  for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
    set(tree, parts[i], sorted(get(tree, parts[i], json_object)));
  json_t *symbols = json_object_get(tree, "symbols"), *symbol, *unused = json_array();
  const char *id;
  json_object_foreach(symbols, id, symbol) {
    count_set(symbol, "processes");
    count_set(symbol, "jobs");
    list_callers(symbol);
  }
  for (unsigned i = 0; i < compat_symbols_count; i++)
    if (!json_object_get(symbols, compat_symbols[i].id))
      json_array_append_new(unused, json_string(compat_symbols[i].id));
  set(tree, "unused", unused);
  add(tree, "processes", 0);
}

json_t *tool_stats(char *const *paths, int count, bool *good) {
  struct reader reader = {.good = true, .tree = json_object(), .files = json_object()};
  set(reader.tree, "schema", json_string("sgl-kernel-compat-report/1"));
  for (int i = 0; i < count; i++) {
    struct stat s;
    if (stat(paths[i], &s) == 0 && S_ISDIR(s.st_mode))
      read_folder(&reader, paths[i]);
    else
      read_file(&reader, paths[i]);
  }
  finish(reader.tree);
  json_decref(reader.files);
  *good = reader.good;
  return reader.tree;
}
