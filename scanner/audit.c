/* One run of audit: which files, what each is, worker threads, the same order whatever their number. */
#include "scanner/audit.h"
#include "scanner/crew.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <libelf.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- lists -------------------------------------------------------------------------------------------------------- */

struct audit_object *audit_add(struct audit_list *list, const char *path, const char *member) {
  if (list->objects_count == list->objects_capacity) {
    list->objects_capacity = list->objects_capacity ? 2 * list->objects_capacity : 4;
    list->objects = scan_alloc(list->objects, list->objects_capacity * sizeof *list->objects);
  }
  struct audit_object *object = &list->objects[list->objects_count++];
  *object = (struct audit_object){.path = arena_copy(&list->arena, path, strlen(path))};
  if (member)
    object->member = arena_copy(&list->arena, member, strlen(member));
  return object;
}

void audit_fault(struct audit_list *list, struct audit_object *object, const char *format, ...) {
  if (object->fault)
    return;
  va_list arguments;
  va_start(arguments, format);
  char *text = scan_format_list(format, arguments);
  va_end(arguments);
  object->fault = arena_copy(&list->arena, text, strlen(text));
  free(text);
}

struct audit_place *audit_add_place(struct audit_list *list, const char *path, const char *link, size_t object) {
  if (list->places_count == list->places_capacity) {
    list->places_capacity = list->places_capacity ? 2 * list->places_capacity : 16;
    list->places = scan_alloc(list->places, list->places_capacity * sizeof *list->places);
  }
  struct audit_place *place = &list->places[list->places_count++];
  *place = (struct audit_place){.path = arena_copy(&list->arena, path, strlen(path)),
                                .link = link ? arena_copy(&list->arena, link, strlen(link)) : NULL,
                                .object = object};
  return place;
}

void audit_object_free(struct audit_object *object) {
  free(object->needed_versions);
  free(object->versions);
  free(object->undefined);
  free(object->defined);
  free(object->exported);
  free(object->provides);
  free(object->strings);
  free(object->schemas);
  free(object->inferred);
  free(object->code);
}

void audit_list_free(struct audit_list *list) {
  free(list->objects);
  free(list->places);
  free(list->cache);
  audit_image_free(list->image);
  arena_free(&list->arena);
}

/* --- files -------------------------------------------------------------------------------------------------------- */

struct file {
  char *label, *full; /* owned */
  char *real;         /* of a link that leads out of the folder: where to; owned */
  size_t input;
  bool named; /* found in a folder: only what is named like an archive is opened as one */
  bool image; /* a folder that is an unpacked image */
};

struct reading {
  const struct audit_context *context;
  struct audit_run *run;
  struct file *files;
  size_t files_count, files_capacity;
  atomic_size_t done, count;
};

static void leave_out(struct audit_run *run, const char *path, const char *why) {
  if (run->left_out_count == run->left_out_capacity) {
    run->left_out_capacity = run->left_out_capacity ? 2 * run->left_out_capacity : 8;
    run->left_out = scan_alloc(run->left_out, run->left_out_capacity * sizeof *run->left_out);
  }
  run->left_out[run->left_out_count++] = scan_format("%s (%s)", path, why);
}

static void read_cache(struct audit_list *list, int fd, uint64_t size) {
  if (size > (uint64_t)16 << 20)
    return;
  list->cache = scan_alloc(NULL, size);
  ssize_t got = pread(fd, list->cache, size, 0);
  list->cache_size = got > 0 ? (size_t)got : 0;
}

static void read_open_file(struct reading *reading, struct audit_list *list, const struct file *file, int fd,
                           uint64_t size) {
  uint8_t head[AUDIT_HEAD];
  const char *why = NULL;
  const struct audit_input *input = &reading->run->inputs[file->input];
  ssize_t got = pread(fd, head, sizeof head, 0);
  if (got < 0) {
    audit_fault(list, audit_add(list, file->label, NULL), "%s", strerror(errno));
    return;
  }
  enum audit_kind kind = audit_kind_of(file->label, head, (size_t)got, file->named, &why);
  if ((kind == AUDIT_OTHER || kind == AUDIT_BROKEN) && (!file->named || audit_may_be_zip(file->label)) &&
      audit_ends_as_zip(fd, size, true))
    kind = AUDIT_ARCHIVE;
  if (kind == AUDIT_ELF) {
    audit_elf(reading->context, list, audit_add(list, file->label, NULL), fd, size);
    audit_add_place(list, file->label, NULL, list->objects_count - 1);
    if (file->real)
      audit_add_place(list, file->real, NULL, list->objects_count - 1);
    if (audit_ends_as_zip(fd, size, false)) /* a program that unpacks itself */
      audit_archive(reading->context, list, fd, file->label, AUDIT_ARCHIVE);
  } else if (kind == AUDIT_AR || kind == AUDIT_ARCHIVE) {
    audit_archive(reading->context, list, fd, file->label, kind);
  } else if (kind == AUDIT_BROKEN) {
    audit_fault(list, audit_add(list, file->label, NULL), "%s", why);
  } else if (!file->named) {
    audit_fault(list, audit_add(list, file->label, NULL), "neither an ELF file nor an archive");
  } else if (input->world == WORLD_ROOT && strcmp(file->label, "etc/ld.so.cache") == 0) {
    read_cache(list, fd, size);
  }
}

static void read_file(void *user, unsigned worker, size_t index) {
  (void)worker;
  struct reading *reading = user;
  const struct file *file = &reading->files[index];
  struct audit_list *list = scan_alloc(NULL, sizeof *list);
  *list = (struct audit_list){0};
  reading->run->lists[index] = list;
  if (file->image) {
    audit_image_folder(reading->context, list, file->full, file->label);
    atomic_fetch_add(&reading->done, 1);
    return;
  }
  int fd = open(file->full, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  struct stat status;
  if (fd < 0)
    audit_fault(list, audit_add(list, file->label, NULL), "%s", strerror(errno));
  else if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode))
    read_open_file(reading, list, file, fd, (uint64_t)status.st_size);
  if (fd >= 0)
    close(fd);
  audit_note_path(reading->context, list, file->label);
  atomic_fetch_add(&reading->done, 1);
}

static struct file *add_file(struct reading *reading, const char *label, const char *full, size_t input, bool named) {
  if (reading->files_count == reading->files_capacity) {
    reading->files_capacity = reading->files_capacity ? 2 * reading->files_capacity : 256;
    reading->files = scan_alloc(reading->files, reading->files_capacity * sizeof *reading->files);
  }
  struct file *file = &reading->files[reading->files_count++];
  *file =
      (struct file){.label = scan_format("%s", label), .full = scan_format("%s", full), .input = input, .named = named};
  return file;
}

/* --- folders ------------------------------------------------------------------------------------------------------ */

static int by_name(const FTSENT **a, const FTSENT **b) {
  return strcmp((*a)->fts_name, (*b)->fts_name);
}

/* What is no file system on a disk. */
static bool virtual_folder(const struct audit_input *input, const char *label) {
  return (input->world == WORLD_ROOT || !*input->base) &&
         (strcmp(label, "proc") == 0 || strcmp(label, "sys") == 0 || strcmp(label, "dev") == 0);
}

static bool is_below(const char *base, const char *path) {
  size_t size = strlen(base);
  return strncmp(path, base, size) == 0 && (path[size] == '/' || path[size] == '\0');
}

/* A link is a name. What it leads to is audited under its own name, and here only when it is a file elsewhere, as in an
 * environment that is linked to a cache of packages. */
static void take_link(struct reading *reading, size_t index, struct audit_list *links, const char *label,
                      const char *full) {
  const struct audit_input *input = &reading->run->inputs[index];
  char target[PATH_MAX], real[PATH_MAX];
  struct stat status;
  ssize_t length = readlink(full, target, sizeof target - 1);
  if (length <= 0)
    return;
  target[length] = '\0';
  audit_add_place(links, label, target, SIZE_MAX);
  if (input->world != WORLD_HOST || !realpath(full, real) || is_below(input->base, real) || stat(real, &status) != 0)
    return;
  if (S_ISREG(status.st_mode))
    add_file(reading, label, full, index, true)->real = scan_format("%s", real);
  else if (S_ISDIR(status.st_mode))
    leave_out(reading->run, full, "a link to a folder elsewhere; name its target as PATH to include it");
}

/* links: the list that links, and folders that cannot be read, go to. */
static void walk_folder(struct reading *reading, size_t index, struct audit_list *links) {
  struct audit_input *input = &reading->run->inputs[index];
  char *roots[] = {(char *)input->given, NULL};
  FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, by_name);
  size_t skip = strlen(input->given);
  while (skip > 1 && input->given[skip - 1] == '/')
    skip--;
  FTSENT *entry;
  while (walk && (entry = fts_read(walk))) {
    const char *label = entry->fts_path + (entry->fts_pathlen > skip ? skip : entry->fts_pathlen);
    label += strspn(label, "/");
    if (entry->fts_info == FTS_D && virtual_folder(input, label)) {
      fts_set(walk, entry, FTS_SKIP);
    } else if (entry->fts_info == FTS_D && audit_image_unpacked(entry->fts_accpath)) {
      add_file(reading, label, entry->fts_accpath, index, true)->image = true;
      fts_set(walk, entry, FTS_SKIP);
    } else if (entry->fts_info == FTS_F) {
      add_file(reading, label, entry->fts_accpath, index, true);
    } else if (entry->fts_info == FTS_SL || entry->fts_info == FTS_SLNONE) {
      take_link(reading, index, links, label, entry->fts_accpath);
    } else if (entry->fts_info == FTS_DNR || entry->fts_info == FTS_ERR || entry->fts_info == FTS_NS) {
      audit_fault(links, audit_add(links, *label ? label : ".", NULL), "%s", strerror(entry->fts_errno));
    }
  }
  if (walk)
    fts_close(walk);
}

/* A file that several links lead to is audited once, for the first of them. */
struct target {
  const char *real;
  size_t file;
};

static int by_target(const void *a, const void *b) {
  const struct target *x = a, *y = b;
  int order = strcmp(x->real, y->real);
  return order ? order : (x->file > y->file) - (x->file < y->file);
}

static void drop_repeated(struct reading *reading, size_t first) {
  struct target *targets = scan_alloc(NULL, (reading->files_count - first) * sizeof *targets);
  size_t count = 0, kept = first;
  for (size_t i = first; i < reading->files_count; i++)
    if (reading->files[i].real)
      targets[count++] = (struct target){reading->files[i].real, i};
  if (count)
    qsort(targets, count, sizeof *targets, by_target);
  for (size_t i = count; i-- > 1;) {
    if (strcmp(targets[i].real, targets[i - 1].real) == 0) {
      struct file *file = &reading->files[targets[i].file];
      free(file->label);
      file->label = NULL;
    }
  }
  for (size_t i = first; i < reading->files_count; i++) {
    if (reading->files[i].label) {
      reading->files[kept++] = reading->files[i];
    } else {
      free(reading->files[i].full);
      free(reading->files[i].real);
    }
  }
  reading->files_count = kept;
  free(targets);
}

static bool has(const char *folder, const char *name) {
  char *path = scan_format("%s/%s", folder, name);
  struct stat status;
  bool found = lstat(path, &status) == 0;
  free(path);
  return found;
}

static bool is_root(const char *folder) {
  return has(folder, "etc/os-release") || has(folder, "usr/lib/os-release") || has(folder, "etc/ld.so.cache") ||
         (has(folder, "etc") && has(folder, "usr/lib"));
}

/* --- the run ------------------------------------------------------------------------------------------------------ */

static bool open_input(struct reading *reading, size_t index, const char *given, struct audit_list *links,
                       char *message, size_t message_size) {
  struct audit_input *input = &reading->run->inputs[index];
  struct stat status;
  char *real = stat(given, &status) == 0 ? realpath(given, NULL) : NULL;
  if (!real || (!S_ISDIR(status.st_mode) && !S_ISREG(status.st_mode))) {
    snprintf(message, message_size, "%s: %s", *given ? given : "''",
             real ? "neither a file nor a folder" : strerror(errno));
    free(real);
    return false;
  }
  input->given = given;
  bool image = S_ISDIR(status.st_mode) && audit_image_unpacked(real);
  input->folder = S_ISDIR(status.st_mode) && !image;
  input->world = input->folder && strcmp(real, "/") != 0 && is_root(real) ? WORLD_ROOT : WORLD_HOST;
  input->first = reading->files_count; /* of the files, until the objects are known */
  if (input->folder) {
    input->base = strcmp(real, "/") == 0 ? "" : arena_copy(&links->arena, real, strlen(real));
    walk_folder(reading, index, links);
    drop_repeated(reading, input->first);
  } else {
    char *slash = strrchr(real, '/');
    input->base = arena_copy(&links->arena, real, (size_t)(slash - real));
    add_file(reading, given, given, index, false)->image = image;
  }
  input->count = reading->files_count - input->first;
  free(real);
  return true;
}

static int by_path(const void *a, const void *b) {
  const struct audit_place *x = a, *y = b;
  return strcmp(x->path, y->path);
}

/* Takes the objects and places of one list. The files of an archive that lies in a folder are none of the folder's. */
static void collect_list(struct audit_run *run, struct audit_input *input, struct audit_list *list) {
  run->objects = scan_alloc(run->objects, (run->objects_count + list->objects_count) * sizeof *run->objects);
  bool own = !input->folder || !list->archive;
  input->places = scan_alloc(input->places, (input->places_count + list->places_count) * sizeof *input->places);
  for (size_t k = 0; k < list->places_count && own; k++) {
    struct audit_place place = list->places[k];
    place.object += place.object == SIZE_MAX ? 0 : run->objects_count;
    input->places[input->places_count++] = place;
  }
  for (size_t k = 0; k < list->objects_count; k++) {
    list->objects[k].input = (size_t)(input - run->inputs);
    list->objects[k].packed = !own && list->objects[k].member;
    run->objects[run->objects_count++] = list->objects[k];
  }
  if (list->cache && own) {
    input->cache = list->cache;
    input->cache_size = list->cache_size;
  }
  if (list->image && own)
    input->world = WORLD_ROOT;
  struct audit_kernels *kernels = own ? &run->kernels : &run->packed_kernels;
  audit_take_kernel(kernels, list->kernels.version, list->kernels.distribution);
  audit_take_kernel(kernels, list->kernels.other_version, list->kernels.other_distribution);
  const char **torch = own ? &run->torch : &run->packed_torch;
  *torch = *torch ? *torch : list->torch;
}

/* Those of the files [first, first + count), and of the links. */
static void collect(struct audit_run *run, struct audit_input *input, size_t first, size_t count,
                    struct audit_list *links) {
  input->first = run->objects_count;
  for (size_t i = first; i < first + count; i++)
    if (run->lists[i]->objects_count || run->lists[i]->places_count || run->lists[i]->kernels.version ||
        run->lists[i]->torch || run->lists[i]->cache)
      collect_list(run, input, run->lists[i]);
  collect_list(run, input, links);
  input->count = run->objects_count - input->first;
  if (input->places_count)
    qsort(input->places, input->places_count, sizeof *input->places, by_path);
}

/* What the loader would call each file. The members of an archive that is a PATH are files for it, those of an archive
 * in a folder are not. */
static void name_locations(struct audit_run *run, struct audit_input *input, struct arena *arena) {
  bool archive = false;
  for (size_t i = input->first; i < input->first + input->count && !input->folder; i++)
    archive |= run->objects[i].member != NULL;
  if (archive && input->world == WORLD_HOST)
    input->world = WORLD_ARCHIVE;
  for (size_t i = input->first; i < input->first + input->count; i++) {
    struct audit_object *object = &run->objects[i];
    const char *label = archive ? object->member : object->path;
    if (!label || (object->member && !archive) || strchr(label, '!'))
      continue;
    const char *slash = input->folder ? NULL : strrchr(label, '/'), *base = slash ? slash + 1 : label;
    char *text = input->world == WORLD_HOST ? scan_format("%s/%s", input->base, base) : scan_format("/%s", label);
    object->location = arena_copy(arena, text, strlen(text));
    free(text);
  }
}

bool audit_run(struct audit_run *run, char *const *paths, size_t paths_count, long pid, unsigned threads, char *message,
               size_t message_size) {
  struct reading reading = {.context = run->context, .run = run};
  size_t count = paths_count + (pid != 0);
  run->inputs = scan_alloc(NULL, count * sizeof *run->inputs);
  memset(run->inputs, 0, count * sizeof *run->inputs);
  struct audit_list *links = scan_alloc(NULL, count * sizeof *links);
  memset(links, 0, count * sizeof *links);
  bool good = elf_version(EV_CURRENT) != EV_NONE;
  for (size_t i = 0; i < paths_count && good; i++) {
    run->inputs_count++;
    good = open_input(&reading, i, paths[i], &links[i], message, message_size);
  }
  size_t files = reading.files_count;
  run->lists = scan_alloc(NULL, (files + count + 1) * sizeof *run->lists);
  if (good) {
    atomic_store(&reading.count, files);
    struct progress *progress = isatty(STDERR_FILENO) ? progress_start("audited", &reading.done, &reading.count) : NULL;
    crew_run(read_file, &reading, files, threads);
    progress_stop(progress);
    run->lists_count = files;
    run->files = files;
  }
  if (good && pid) {
    struct audit_list *list = run->lists[run->lists_count++] = scan_alloc(NULL, sizeof *list);
    struct audit_input *input = &run->inputs[run->inputs_count++];
    *list = (struct audit_list){0};
    *input = (struct audit_input){.given = "", .folder = true, .world = WORLD_PROCESS};
    good = audit_process(run->context, list, pid, &run->files, message, message_size);
    collect(run, input, 0, 1, &links[0]);
  }
  for (size_t i = 0; i < paths_count && good; i++) {
    collect(run, &run->inputs[i], run->inputs[i].first, run->inputs[i].count, &links[i]);
    name_locations(run, &run->inputs[i], &links[i].arena);
  }
  for (size_t i = 0; i < count; i++) { /* the run keeps their texts */
    struct audit_list *list = scan_alloc(NULL, sizeof *list);
    *list = links[i];
    run->lists[run->lists_count++] = list;
  }
  free(links);
  for (size_t i = 0; i < files; i++) {
    free(reading.files[i].label);
    free(reading.files[i].full);
    free(reading.files[i].real);
  }
  free(reading.files);
  return good;
}

void audit_free(struct audit_run *run) {
  for (size_t i = 0; i < run->objects_count; i++)
    audit_object_free(&run->objects[i]);
  for (size_t i = 0; i < run->findings_count; i++)
    free(run->findings[i].message);
  for (size_t i = 0; i < run->left_out_count; i++)
    free(run->left_out[i]);
  for (size_t i = 0; i < run->lists_count; i++) {
    audit_list_free(run->lists[i]);
    free(run->lists[i]);
  }
  for (size_t i = 0; i < run->inputs_count; i++)
    free(run->inputs[i].places);
  free(run->lists);
  free(run->exports);
  free(run->definers);
  free(run->registrars);
  free(run->installed);
  free(run->text);
  free(run->host_cache);
  free(run->inputs);
  free(run->objects);
  free(run->findings);
  free(run->left_out);
}
