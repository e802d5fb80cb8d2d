/* The statistics of many processes, read and added up into one tree: what report prints. */
#include "shim/sgl_compat_tool.h"

#include "compat_table.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define NO_JOB "no job"

/* A file of one process. */
struct file {
  char *path;
  char *process; /* host, pid and start; NULL: its first line is none of statistics */
  json_int_t written, lines;
  char *job;
  bool is_newest; /* of the files of that process */
  char *text;     /* read once: a pipe gives it once, and a process that lives writes it anew */
  size_t size;
};

/* What is being read. */
struct reader {
  const struct file *file;
  unsigned line, faults;
  bool good;
  json_t *tree, *known; /* known: files that are in the list, by device and inode */
  struct file *files;
  size_t count;
};

enum { FAULTS_SHOWN = 5 }; /* of a file */

static void fault(struct reader *reader, const char *what) {
  if (++reader->faults <= FAULTS_SHOWN)
    tool_error("%s:%u: %s", reader->file->path, reader->line, what);
  reader->good = false;
}

static char *copy(const char *text) {
  return strcpy(tool_realloc(NULL, strlen(text) + 1), text);
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

static void add(struct reader *reader, json_t *object, const char *key, json_int_t count) {
  json_int_t sum;
  if (__builtin_add_overflow(json_integer_value(json_object_get(object, key)), count, &sum)) {
    fault(reader, "the counts add up to more than a number holds");
    sum = INT64_MAX;
  }
  set(object, key, json_integer(sum));
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

static json_int_t count_of(const json_t *object, const char *key) {
  return json_integer_value(json_object_get(object, key));
}

/* --- lines: each has been checked --------------------------------------------------------------------------------- */

static const char *string(const json_t *object, const char *key) {
  const char *value = json_string_value(json_object_get(object, key));
  return value ? value : "";
}

__attribute__((format(printf, 1, 2))) static char *format(const char *format, ...) {
  char *text;
  va_list list;
  va_start(list, format);
  if (vasprintf(&text, format, list) < 0)
    text = tool_realloc(NULL, SIZE_MAX);
  va_end(list);
  return text;
}

/* "libmodel.so+0x12 (run)", "layers.py:12 (model.layers)"; the path is told apart. */
static char *name_caller(const json_t *caller) {
  const char *file = string(caller, "file"), *slash = strrchr(file, '/'), *name = slash ? slash + 1 : file;
  const char *function = string(caller, "function"), *module = string(caller, "module");
  if (!caller)
    return copy("");
  if (json_object_get(caller, "offset"))
    return format("%s+%s%s%s%s", name, string(caller, "offset"), *function ? " (" : "", function, *function ? ")" : "");
  return format("%s:%lld%s%s%s", name, (long long)count_of(caller, "line"), *module ? " (" : "", module,
                *module ? ")" : "");
}

static void read_caller(struct reader *reader, json_t *symbol, const json_t *line, json_int_t calls) {
  const json_t *caller = json_object_get(line, "caller");
  char *place = name_caller(caller), *key = format("%s %s %s", string(line, "face"), string(caller, "file"), place);
  json_t *entry = get(get(symbol, "callers", json_object), key, json_object);
  set(entry, "face", json_string(string(line, "face")));
  set(entry, "place", json_string(place));
  set(entry, "file", json_string(string(caller, "file")));
  add(reader, entry, "calls", calls);
  add(reader, entry, "samples", count_of(line, "samples"));
  add_to_set(entry, "processes", reader->file->process);
  free(place);
  free(key);
}

static void read_use(struct reader *reader, const json_t *line) {
  json_t *symbol = get(get(reader->tree, "symbols", json_object), string(line, "symbol"), json_object), *calls;
  json_t *sums = json_object();
  const char *stage;
  json_object_foreach(json_object_get(line, "calls"), stage, calls) {
    add(reader, sums, "all", json_integer_value(calls));
    if (json_integer_value(calls))
      add(reader, get(symbol, "stages", json_object), stage, json_integer_value(calls));
  }
  json_int_t sum = count_of(sums, "all");
  json_decref(sums);
  get(symbol, "stages", json_object);
  set(symbol, "removed_in", json_string(string(line, "removed_in")));
  add(reader, symbol, "calls", sum);
  add(reader, symbol, "failed", count_of(line, "failed"));
  if (sum > 0)
    add(reader, get(symbol, "faces", json_object), string(line, "face"), sum);
  keep_least(symbol, "first", count_of(line, "first"));
  keep_most(symbol, "last", reader->file->written);
  add_to_set(symbol, "processes", reader->file->process);
  add_to_set(symbol, "jobs", reader->file->job);
  read_caller(reader, symbol, line, sum);
}

static void read_shadow(struct reader *reader, const json_t *line) {
  static const char *const counts[] = {"calls", "matches", "mismatches", "ignored", "over_budget", "errors"};
  json_t *shadow = get(get(reader->tree, "shadow", json_object), string(line, "shadow"), json_object);
  for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
    add(reader, shadow, counts[i], count_of(line, counts[i]));
  add(reader, shadow, "processes", 1);
}

static void read_not_counted(struct reader *reader, const json_t *line) {
  json_t *names = get(reader->tree, "not_counted", json_object);
  json_t *entry = get(names, string(line, "not_counted"), json_object), *face;
  size_t i;
  json_array_foreach(json_object_get(line, "faces"), i, face) {
    add_to_set(entry, "faces", json_string_value(face));
  }
  add_to_set(entry, "processes", reader->file->process);
}

static void read_line(struct reader *reader, const char *text, size_t size) {
  json_error_t error;
  char why[300], said[400];
  json_t *line = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
  snprintf(why, sizeof why, "%.200s", error.text);
  switch (line ? tool_stats_row(line, why, sizeof why) : TOOL_ROW_BAD) {
  case TOOL_ROW_USE:
    read_use(reader, line);
    break;
  case TOOL_ROW_KERNEL:
    add(reader, get(reader->tree, "kernels", json_object), string(line, "kernel"), count_of(line, "calls"));
    break;
  case TOOL_ROW_LOST:
    add(reader, reader->tree, "kernels_lost", count_of(line, "kernels_lost"));
    break;
  case TOOL_ROW_SHADOW:
    read_shadow(reader, line);
    break;
  case TOOL_ROW_NOT_COUNTED:
    read_not_counted(reader, line);
    break;
  case TOOL_ROW_OTHER: /* of a newer release: docs/formats.md */
    break;
  case TOOL_ROW_BAD:
    snprintf(said, sizeof said, "no line of statistics: %s", why);
    fault(reader, said);
    break;
  }
  json_decref(line);
}

/* --- files -------------------------------------------------------------------------------------------------------- */

/* The first line tells whose the file is. */
static void read_header(struct reader *reader, struct file *file) {
  char why[300];
  json_error_t error;
  reader->file = file;
  reader->line = 1;
  reader->faults = 0;
  file->text = tool_read(file->path, &file->size);
  if (!file->text) {
    reader->good = false;
    return;
  }
  const char *end = memchr(file->text, '\n', file->size);
  json_t *header =
      json_loadb(file->text, end ? (size_t)(end - file->text) : file->size, JSON_REJECT_DUPLICATES, &error);
  if (file->size == 0) {
    fault(reader, "no file of statistics: it is empty");
  } else if (tool_stats_header(header, why, sizeof why)) {
    const char *job = string(header, "job");
    file->process = format("%s %lld %lld", string(header, "host"), (long long)count_of(header, "pid"),
                           (long long)count_of(header, "start"));
    file->job = copy(*job ? job : NO_JOB);
    file->written = count_of(header, "written");
    file->lines = count_of(header, "lines");
    add_to_set(reader->tree, "jobs", file->job);
    add_to_set(reader->tree, "hosts", string(header, "host"));
  } else {
    fault(reader, why);
  }
  json_decref(header);
}

static bool is_newer(const struct file *file, const struct file *other) {
  return file->written != other->written ? file->written > other->written : file->size > other->size;
}

/* Of several files of a process, copies of several days, the newest counts: its counts go on. */
static void find_newest(struct reader *reader) {
  json_t *newest = json_object();
  for (size_t i = 0; i < reader->count; i++) {
    struct file *file = &reader->files[i];
    const json_t *at = file->process ? json_object_get(newest, file->process) : NULL;
    struct file *other = at ? &reader->files[json_integer_value(at)] : NULL;
    if (!file->process || (other && !is_newer(file, other)))
      continue;
    if (other)
      other->is_newest = false;
    file->is_newest = true;
    set(newest, file->process, json_integer((json_int_t)i));
  }
  json_decref(newest);
}

static void read_file(struct reader *reader, const struct file *file) {
  reader->file = file;
  reader->line = 1;
  reader->faults = 0;
  add(reader, reader->tree, "processes", 1);
  keep_least(reader->tree, "from", file->written);
  keep_most(reader->tree, "until", file->written);
  const char *at = file->text, *last = at + file->size;
  for (; at < last; reader->line++) {
    const char *end = memchr(at, '\n', (size_t)(last - at));
    size_t length = (size_t)((end ? end : last) - at);
    if (reader->line > 1)
      read_line(reader, at, length);
    at += length + 1;
  }
  if (reader->line - 2 != file->lines) {
    char why[200];
    snprintf(why, sizeof why, "%u lines follow the first, and should be %lld: a copy that was cut?", reader->line - 2,
             (long long)file->lines);
    fault(reader, why);
  }
  if (reader->faults > FAULTS_SHOWN)
    tool_error("%s: %u more faults", file->path, reader->faults - FAULTS_SHOWN);
}

static bool is_known(struct reader *reader, const struct stat *s) {
  char key[64];
  snprintf(key, sizeof key, "%llx:%llx", (unsigned long long)s->st_dev, (unsigned long long)s->st_ino);
  if (json_object_get(reader->known, key))
    return true;
  set(reader->known, key, json_true());
  return false;
}

static void list_file(struct reader *reader, const char *path, bool in_folder) {
  struct stat s;
  bool there = stat(path, &s) == 0;
  if (!there || (in_folder && !S_ISREG(s.st_mode))) {
    tool_error("%s: %s", path, there ? "it is no file" : strerror(errno));
    reader->good = false;
  } else if (!is_known(reader, &s)) {
    reader->files = tool_realloc(reader->files, (reader->count + 1) * sizeof *reader->files);
    reader->files[reader->count++] = (struct file){.path = copy(path)};
  }
}

static bool ends_with(const char *name, const char *end) {
  size_t length = strlen(name), end_length = strlen(end);
  return length > end_length && strcmp(name + length - end_length, end) == 0;
}

static bool is_folder(const char *path, const struct dirent *entry) {
  struct stat s;
  char *name = format("%s/%s", path, entry->d_name);
  bool is = entry->d_type == DT_DIR || (entry->d_type != DT_REG && stat(name, &s) == 0 && S_ISDIR(s.st_mode));
  free(name);
  return is;
}

static int is_no_dot(const struct dirent *entry) {
  return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

/* A process that was killed while it wrote for the first time: it has used names, and nothing tells which. */
static void look_at_left_over(struct reader *reader, const char *path, const char *name) {
  struct stat s;
  char *whole = format("%s/%.*s", path, (int)(strlen(name) - strlen(".new") - 1), name + 1);
  if (stat(whole, &s) != 0) {
    tool_error("%s/%s: a process writes its first statistics, or was ended while it did and they are lost; remove the "
               "file when they are counted again",
               path, name);
    reader->good = false;
  }
  free(whole);
}

static void list_folder(struct reader *reader, const char *path);

/* Folders in it too: of a job, of a day. What a log or a shadow has put there is not statistics. */
static void list_entry(struct reader *reader, const char *path, const struct dirent *entry) {
  const char *name = entry->d_name;
  char *whole = format("%s/%s", path, name);
  if (name[0] == '.' && ends_with(name, ".jsonl.new"))
    look_at_left_over(reader, path, name);
  else if (name[0] != '.' && ends_with(name, ".jsonl"))
    list_file(reader, whole, true);
  else if (name[0] != '.' && is_folder(path, entry))
    list_folder(reader, whole);
  free(whole);
}

static void list_folder(struct reader *reader, const char *path) {
  struct dirent **list;
  struct stat s;
  if (stat(path, &s) == 0 && is_known(reader, &s)) /* also by a link, to a folder around it */
    return;
  int count = scandir(path, &list, is_no_dot, alphasort);
  if (count < 0) {
    tool_error("%s: %s", path, strerror(errno));
    reader->good = false;
    return;
  }
  for (int i = 0; i < count; i++) {
    list_entry(reader, path, list[i]);
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

static int order_keys(const void *one, const void *other) {
  return strcmp(*(const char *const *)one, *(const char *const *)other);
}

/* All that is known is sorted by name. */
static json_t *sorted(json_t *object) {
  json_t *made = json_object(), *value;
  const char **keys = tool_realloc(NULL, json_object_size(object) * sizeof *keys), *key;
  size_t count = 0;
  json_object_foreach(object, key, value) {
    keys[count++] = key;
  }
  qsort(keys, count, sizeof *keys, order_keys);
  for (size_t i = 0; i < count; i++)
    json_object_set(made, keys[i], json_object_get(object, keys[i]));
  free(keys);
  return made;
}

/* "no job" stands for processes that nobody has told their job. */
static void list_jobs(json_t *symbol) {
  json_t *jobs = sorted(json_object_get(symbol, "jobs")), *list = json_array(), *value;
  const char *job;
  json_object_foreach(jobs, job, value) {
    if (strcmp(job, NO_JOB) != 0)
      json_array_append_new(list, json_string(job));
  }
  json_decref(jobs);
  set(symbol, "job_names", list);
}

static void finish(struct reader *reader) {
  static const char *const parts[] = {"symbols", "not_counted", "kernels", "shadow", "jobs", "hosts"};
  json_t *tree = reader->tree, *value, *unused = json_array();
  const char *id;
  for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
    set(tree, parts[i], sorted(get(tree, parts[i], json_object)));
  json_t *symbols = json_object_get(tree, "symbols"), *hidden = json_object_get(tree, "not_counted");
  json_object_foreach(symbols, id, value) {
    count_set(value, "processes");
    list_jobs(value);
    count_set(value, "jobs");
    list_callers(value);
  }
  json_object_foreach(hidden, id, value) {
    count_set(value, "processes");
    set(value, "faces", sorted(json_object_get(value, "faces")));
  }
  for (unsigned i = 0; i < compat_symbols_count; i++)
    if (!json_object_get(symbols, compat_symbols[i].id) && !json_object_get(hidden, compat_symbols[i].id))
      json_array_append_new(unused, json_string(compat_symbols[i].id));
  set(tree, "unused", unused);
  add(reader, tree, "processes", 0);
  add(reader, tree, "kernels_lost", 0);
  set(tree, "complete", json_boolean(reader->good));
}

json_t *tool_stats(char *const *paths, int count, bool *good) {
  struct reader reader = {.good = true, .tree = json_object(), .known = json_object()};
  set(reader.tree, "schema", json_string("sgl-kernel-compat-report/1"));
  for (int i = 0; i < count; i++) {
    struct stat s;
    if (stat(paths[i], &s) == 0 && S_ISDIR(s.st_mode))
      list_folder(&reader, paths[i]);
    else
      list_file(&reader, paths[i], false);
  }
  for (size_t i = 0; i < reader.count; i++)
    read_header(&reader, &reader.files[i]);
  find_newest(&reader);
  for (size_t i = 0; i < reader.count; i++)
    if (reader.files[i].is_newest)
      read_file(&reader, &reader.files[i]);
  finish(&reader);
  for (size_t i = 0; i < reader.count; i++) {
    free(reader.files[i].path);
    free(reader.files[i].process);
    free(reader.files[i].job);
    free(reader.files[i].text);
  }
  free(reader.files);
  json_decref(reader.known);
  *good = reader.good;
  return reader.tree;
}
