/* sgl-jit list, sgl-jit verify, sgl-jit prune. */
#include "sgl_jit_tool.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LEFT_BEHIND = 3600 }; /* seconds after which the writer of a temporary file is surely gone */

static void open_folders(struct tool_folder folders[JIT_FOLDER_COUNT]) {
  for (int kind = 0; kind < JIT_FOLDER_COUNT; kind++)
    tool_open_folder((enum jit_folder_kind)kind, &folders[kind]);
}

static void close_folders(struct tool_folder folders[JIT_FOLDER_COUNT]) {
  for (int kind = 0; kind < JIT_FOLDER_COUNT; kind++)
    tool_close_folder(&folders[kind]);
}

static enum tool_colour state_colour(enum tool_state state) {
  return state == STATE_OK ? TOOL_GREEN : state == STATE_OTHER ? TOOL_YELLOW : TOOL_RED;
}

static bool is_known(const struct tool_entry *entry) {
  return entry->target[0] != '\0';
}

/* One kernel for every shape has no shape of its own, and no dtype. */
static bool has_shape(const struct tool_entry *entry) {
  return is_known(entry) && jit_has_shape((enum jit_op)entry->spec.op);
}

static const char *dtype_name(const struct tool_entry *entry) {
  return entry->spec.output_dtype == SGL_JIT_DTYPE_FLOAT32 ? "float32" : "bfloat16";
}

/* --- list --- */

static void print_age(time_t since, time_t now, int width) {
  static const struct {
    const char *unit;
    long seconds;
  } units[] = {{"d", 86400}, {"h", 3600}, {"min", 60}};
  char text[32] = "now";
  long age = (long)(now - since);
  for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
    if (age >= units[i].seconds) {
      snprintf(text, sizeof text, "%ld %s", age / units[i].seconds, units[i].unit);
      break;
    }
  tool_print(since ? text : "-", TOOL_PLAIN, width);
}

static void list_text(const struct tool_folder *folder, time_t now) {
  tool_print_folder(folder);
  if (folder->count) {
    static const char *const titles[] = {"kernel", "target", "pdl", "state", "size", "written", "used", "file"};
    static const int widths[] = {38, 12, 13, 7, 11, 9, 9, 0};
    printf("  ");
    for (size_t i = 0; i < sizeof titles / sizeof titles[0]; i++)
      tool_print(titles[i], TOOL_PLAIN, widths[i]);
    putchar('\n');
  }
  for (size_t i = 0; i < folder->count; i++) {
    const struct tool_entry *e = &folder->entries[i];
    printf("  ");
    tool_print(is_known(e) ? jit_spec_text(&e->spec).text : "?", TOOL_PLAIN, 38);
    tool_print(is_known(e) ? e->target : "?", TOOL_PLAIN, 12);
    tool_print(*e->pdl ? e->pdl : "?", TOOL_PLAIN, 13);
    tool_print(tool_state_name(e->state), state_colour(e->state), 7);
    tool_print(tool_size(e->bytes).text, TOOL_PLAIN, 11);
    print_age(e->written, now, 9);
    print_age(e->used, now, 9);
    tool_print(e->name, TOOL_PLAIN, 0);
    putchar('\n');
    if (e->state != STATE_OK)
      printf("      %s: %s\n", tool_state_name(e->state), e->reason);
  }
}

struct utc {
  char text[32];
};

static struct utc utc(time_t time) {
  struct utc text = {""};
  struct tm parts;
  if (time && gmtime_r(&time, &parts))
    strftime(text.text, sizeof text.text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

/* A value of a line that is split at tabs. */
static void print_value(const char *text, bool last) {
  tool_print(text, TOOL_PLAIN, 0);
  putchar(last ? '\n' : '\t');
}

static void list_tsv(const struct tool_folder *folder) {
  for (size_t i = 0; i < folder->count; i++) {
    const struct tool_entry *e = &folder->entries[i];
    char n[24] = "", k[24] = "", bytes[24];
    if (has_shape(e)) {
      snprintf(n, sizeof n, "%" PRId64, e->spec.n);
      snprintf(k, sizeof k, "%" PRId64, e->spec.k);
    }
    snprintf(bytes, sizeof bytes, "%" PRIu64, e->bytes);
    print_value(tool_folder_kind(folder), false);
    print_value(is_known(e) ? jit_op_name((enum jit_op)e->spec.op) : "", false);
    print_value(n, false);
    print_value(k, false);
    print_value(has_shape(e) ? dtype_name(e) : "", false);
    print_value(e->target, false);
    print_value(e->pdl, false);
    print_value(bytes, false);
    print_value(utc(e->written).text, false);
    print_value(utc(e->used).text, false);
    print_value(tool_state_name(e->state), false);
    print_value(e->reason, false);
    print_value(folder->folder.path, false);
    print_value(e->name, true);
  }
}

static json_t *null_if_empty(const char *text) {
  return tool_json(*text ? text : NULL);
}

static json_t *entry_json(const struct tool_folder *folder, const struct tool_entry *e) {
  json_t *value = json_object();
  bool known = is_known(e);
  json_object_set_new(value, "folder", tool_json(tool_folder_kind(folder)));
  json_object_set_new(value, "file", tool_json(e->name));
  json_object_set_new(value, "kernel", tool_json(known ? jit_spec_text(&e->spec).text : NULL));
  json_object_set_new(value, "op", tool_json(known ? jit_op_name((enum jit_op)e->spec.op) : NULL));
  json_object_set_new(value, "n", has_shape(e) ? json_integer(e->spec.n) : json_null());
  json_object_set_new(value, "k", has_shape(e) ? json_integer(e->spec.k) : json_null());
  json_object_set_new(value, "dtype", tool_json(has_shape(e) ? dtype_name(e) : NULL));
  json_object_set_new(value, "target", null_if_empty(e->target));
  json_object_set_new(value, "pdl", null_if_empty(e->pdl));
  json_object_set_new(value, "bytes", json_integer((json_int_t)e->bytes));
  json_object_set_new(value, "written", null_if_empty(utc(e->written).text));
  json_object_set_new(value, "used", null_if_empty(utc(e->used).text));
  json_object_set_new(value, "state", tool_json(tool_state_name(e->state)));
  json_object_set_new(value, "reason", null_if_empty(e->reason));
  return value;
}

static void list_json(const struct tool_folder folders[JIT_FOLDER_COUNT]) {
  json_t *list = json_array(), *entries = json_array();
  for (int kind = 0; kind < JIT_FOLDER_COUNT; kind++) {
    json_array_append_new(list, tool_folder_json(&folders[kind]));
    for (size_t i = 0; i < folders[kind].count; i++)
      json_array_append_new(entries, entry_json(&folders[kind], &folders[kind].entries[i]));
  }
  json_t *value = json_object();
  json_object_set_new(value, "folders", list);
  json_object_set_new(value, "entries", entries);
  tool_print_json(value);
}

/* What is not used although it is there, or was named. */
static bool is_bad_folder(const struct tool_folder *folder) {
  const struct jit_folder *f = &folder->folder;
  return folder->opened < 0 && f->problem[0] && (f->kind == JIT_FOLDER_CACHE || f->path[0]);
}

static size_t count_state(const struct tool_folder *folder, enum tool_state state) {
  size_t count = 0;
  for (size_t i = 0; i < folder->count; i++)
    count += folder->entries[i].state == state;
  return count;
}

int tool_list(const struct tool_options *options) {
  struct tool_folder folders[JIT_FOLDER_COUNT];
  int status = STATUS_OK;
  time_t now = time(NULL);
  open_folders(folders);
  if (options->format == FORMAT_JSON)
    list_json(folders);
  else if (options->format == FORMAT_TSV)
    puts("folder\top\tn\tk\tdtype\ttarget\tpdl\tbytes\twritten\tused\tstate\treason\tpath\tfile");
  for (int kind = 0; kind < JIT_FOLDER_COUNT; kind++) {
    if (options->format == FORMAT_TSV)
      list_tsv(&folders[kind]);
    else if (options->format == FORMAT_TEXT)
      list_text(&folders[kind], now);
    if (is_bad_folder(&folders[kind]) || count_state(&folders[kind], STATE_BAD))
      status = STATUS_BAD;
  }
  close_folders(folders);
  return status;
}

/* --- verify --- */

static const char *remedy(const struct tool_folder *folder, const struct tool_entry *entry) {
  if (folder->folder.kind == JIT_FOLDER_PREBUILT)
    return "make the folder anew with sgl-jit pack";
  return entry->ours ? "sgl-jit prune --bad removes it, and the library compiles it when it needs it"
                     : "remove it by hand";
}

static void verify_folder(const struct tool_folder *folder) {
  for (size_t i = 0; i < folder->count; i++) {
    const struct tool_entry *e = &folder->entries[i];
    tool_print(tool_state_name(e->state), state_colour(e->state), 7);
    tool_print(folder->folder.path, TOOL_PLAIN, 0);
    putchar('/');
    tool_print(e->name, TOOL_PLAIN, 0);
    if (is_known(e))
      printf(": %s for %s", jit_spec_text(&e->spec).text, e->target);
    if (e->state != STATE_OK)
      printf(": %s", e->reason);
    if (e->state == STATE_BAD)
      printf("; %s", remedy(folder, e));
    putchar('\n');
  }
}

int tool_verify(const struct tool_options *options) {
  struct tool_folder folders[JIT_FOLDER_COUNT];
  size_t count[STATE_BAD + 1] = {0}, bad_folders = 0;
  (void)options;
  open_folders(folders);
  for (int kind = 0; kind < JIT_FOLDER_COUNT; kind++) {
    tool_print_folder(&folders[kind]);
    bad_folders += is_bad_folder(&folders[kind]);
    verify_folder(&folders[kind]);
    for (int state = STATE_OK; state <= STATE_BAD; state++)
      count[state] += count_state(&folders[kind], (enum tool_state)state);
  }
  printf("%zu ok, %zu of other versions, %zu bad\n", count[STATE_OK], count[STATE_OTHER], count[STATE_BAD]);
  close_folders(folders);
  return count[STATE_BAD] || bad_folders ? STATUS_BAD : STATUS_OK;
}

/* --- prune --- */

struct prune {
  const struct tool_options *options;
  struct tool_folder folder;
  time_t now;
  size_t removed, failed;
  uint64_t freed;
};

/* False, and an error, when a file stays that should go. */
static void remove_file(struct prune *p, const char *name, uint64_t bytes, const char *why) {
  if (!p->options->dry_run && unlinkat(p->folder.opened, name, 0) != 0) {
    if (errno == ENOENT)
      return; /* somebody else was faster */
    tool_error("%s/%s: cannot be removed: %s", p->folder.folder.path, name, strerror(errno));
    p->failed++;
    return;
  }
  printf("%s ", p->options->dry_run ? "would remove" : "removed");
  tool_print(name, TOOL_PLAIN, 0);
  printf(" (%s)\n", why);
  p->removed++;
  p->freed += bytes;
}

static time_t last_use(const struct tool_entry *entry) {
  return entry->used > entry->written ? entry->used : entry->written;
}

static int by_last_use(const void *a, const void *b) {
  time_t one = last_use(a), two = last_use(b);
  return one < two ? -1 : one > two;
}

static const char *why_remove(const struct prune *p, const struct tool_entry *entry) {
  const struct tool_options *o = p->options;
  if (o->bad && entry->state == STATE_BAD)
    return entry->reason;
  if (o->has_older_than && p->now - last_use(entry) >= o->older_than)
    return "not used for long";
  return o->all ? "all" : NULL;
}

static void prune_entries(struct prune *p) {
  uint64_t left = 0;
  struct tool_folder *f = &p->folder;
  if (f->count)
    qsort(f->entries, f->count, sizeof *f->entries, by_last_use);
  for (size_t i = 0; i < f->count; i++)
    left += f->entries[i].ours && !why_remove(p, &f->entries[i]) ? f->entries[i].bytes : 0;
  for (size_t i = 0; i < f->count; i++) {
    const struct tool_entry *e = &f->entries[i];
    const char *why = why_remove(p, e);
    if (!why && e->ours && p->options->has_max_size && left > p->options->max_size) {
      why = "used longest ago";
      left -= e->bytes;
    }
    if (why && e->ours)
      remove_file(p, e->name, e->bytes, why);
    else if (why)
      tool_error("%s/%s: left alone: %s; remove it by hand", f->folder.path, e->name,
                 e->state == STATE_BAD ? e->reason : "it is not this user's");
  }
}

/* Holding its lock, so that no process that compiles loses it: see cache_lock.c. While it is held, the name stays that
 * of the locked file. */
static void prune_lock(struct prune *p, const char *name) {
  struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  struct stat locked, named;
  int file = openat(p->folder.opened, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (file < 0)
    return;
  if (fcntl(file, F_SETLK, &whole) == 0 && fstat(file, &locked) == 0 &&
      fstatat(p->folder.opened, name, &named, AT_SYMLINK_NOFOLLOW) == 0 && locked.st_ino == named.st_ino)
    remove_file(p, name, 0, "an unused lock");
  close(file);
}

static void prune_others(struct prune *p) {
  for (size_t i = 0; i < p->folder.others_count; i++) {
    const struct jit_file *file = &p->folder.others[i];
    if (!S_ISREG(file->stat.st_mode) || file->stat.st_uid != geteuid())
      continue;
    if (file->kind == JIT_FILE_LOCK)
      prune_lock(p, file->name);
    else if (file->kind == JIT_FILE_TEMPORARY && file->stat.st_mtime < p->now - LEFT_BEHIND)
      remove_file(p, file->name, (uint64_t)file->stat.st_size, "left behind by a process that died");
  }
}

static void prune_folder(struct prune *p) {
  prune_entries(p);
  prune_others(p);
  const char *would = p->options->dry_run ? " would be" : "";
  printf("%zu file%s%s removed, %s%s freed\n", p->removed, p->removed == 1 ? "" : "s", would, tool_size(p->freed).text,
         would);
}

int tool_prune(const struct tool_options *options) {
  struct prune p = {.options = options, .now = time(NULL)};
  if (!options->has_older_than && !options->has_max_size && !options->bad && !options->all)
    tool_usage("prune needs --older-than, --max-size, --bad or --all; see sgl-jit prune --help");
  tool_open_folder(JIT_FOLDER_CACHE, &p.folder);
  const struct jit_folder *f = &p.folder.folder;
  int status = STATUS_OK;
  if (p.folder.opened >= 0) {
    prune_folder(&p);
    status = p.failed ? STATUS_BAD : STATUS_OK;
  } else if (f->problem[0]) {
    tool_error("the cache folder %s%s(%s) is not touched: %s", f->path, f->path[0] ? " " : "", f->source, f->problem);
    status = STATUS_BAD;
  } else {
    tool_print_folder(&p.folder);
  }
  tool_close_folder(&p.folder);
  return status;
}
