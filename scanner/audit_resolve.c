/* Which file answers a needed library, and who exports a name. Paths are looked up as the loader would see them: on
 * this machine, or in the file system of a container root, image or archive, whose links never lead out of it. */
#include "scanner/audit.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINKS_MOST 40
#define OUTSIDE_MOST 4096

/* --- names -------------------------------------------------------------------------------------------------------- */

struct name {
  const char *text;
  size_t object;
};

struct resolving {
  struct audit_run *run;
  struct audit_list *outside; /* the list of the libraries that were read because of others */
  struct name *names;         /* of the input at work: SONAMEs and file names, sorted */
  size_t names_count;
};

static int by_text(const void *a, const void *b) {
  const struct name *x = a, *y = b;
  int order = strcmp(x->text, y->text);
  return order ? order : (x->object > y->object) - (x->object < y->object);
}

static const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

static void build_names(struct resolving *work, const struct audit_input *input) {
  const struct audit_run *run = work->run;
  free(work->names);
  work->names = scan_alloc(NULL, 2 * input->count * sizeof *work->names);
  work->names_count = 0;
  for (size_t i = input->first; i < input->first + input->count; i++) {
    const struct audit_object *object = &run->objects[i];
    if (object->fault)
      continue;
    if (object->soname)
      work->names[work->names_count++] = (struct name){object->soname, i};
    work->names[work->names_count++] = (struct name){base_name(object->member ? object->member : object->path), i};
  }
  if (work->names_count)
    qsort(work->names, work->names_count, sizeof *work->names, by_text);
}

/* The first object of the input with this SONAME or file name that may answer. */
static size_t by_name_in_input(const struct resolving *work, size_t object, const char *name) {
  size_t low = 0, high = work->names_count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (strcmp(work->names[middle].text, name) < 0)
      low = middle + 1;
    else
      high = middle;
  }
  for (; low < work->names_count && strcmp(work->names[low].text, name) == 0; low++)
    if (audit_may_answer(work->run, object, work->names[low].object))
      return work->names[low].object;
  return SIZE_MAX;
}

/* --- a file system of its own ------------------------------------------------------------------------------------- */

static const struct audit_place *place_of(const struct audit_input *input, const char *path) {
  size_t low = 0, high = input->places_count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    int order = strcmp(input->places[middle].path, path);
    if (order == 0)
      return &input->places[middle];
    if (order < 0)
      low = middle + 1;
    else
      high = middle;
  }
  return NULL;
}

/* The object at a path; links are followed inside of the input. */
static size_t find_inside(const struct audit_input *input, const char *path) {
  char done[PATH_MAX] = "", rest[PATH_MAX], next[2 * PATH_MAX];
  const struct audit_place *place = NULL;
  unsigned links = 0;
  if (strlen(path) >= sizeof rest)
    return SIZE_MAX;
  strcpy(rest, path);
  while (*rest) {
    char *at = rest + strspn(rest, "/");
    size_t length = strcspn(at, "/");
    char *behind = at + length;
    size_t end = strlen(done);
    place = NULL;
    if (length == 0)
      break;
    if (length == 2 && memcmp(at, "..", 2) == 0) {
      char *slash = strrchr(done, '/');
      *(slash ? slash : done) = '\0';
    } else if (length != 1 || *at != '.') {
      if (end + length + 2 > sizeof done)
        return SIZE_MAX;
      sprintf(done + end, "%s%.*s", end ? "/" : "", (int)length, at);
      place = place_of(input, done);
    }
    if (place && place->link) {
      if (++links > LINKS_MOST || strlen(place->link) + strlen(behind) + 2 > sizeof rest)
        return SIZE_MAX;
      sprintf(next, "%s/%s", place->link, behind);
      done[*place->link == '/' ? 0 : end] = '\0';
      strcpy(rest, next);
    } else {
      memmove(rest, behind, strlen(behind) + 1);
    }
  }
  return place && !place->link ? place->object : SIZE_MAX;
}

/* --- this machine ------------------------------------------------------------------------------------------------- */

/* Reads a library that is in none of the PATHs; SIZE_MAX when it is no ELF file. */
static size_t read_outside(struct resolving *work, size_t input, const char *real) {
  struct audit_run *run = work->run;
  for (size_t i = run->objects_count; i-- > 0 && run->objects[i].outside;)
    if (strcmp(run->objects[i].path, real) == 0)
      return run->objects[i].fault ? SIZE_MAX : i;
  uint8_t head[4];
  struct stat status;
  int fd = open(real, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0)
    return SIZE_MAX;
  size_t found = SIZE_MAX;
  if (work->outside->objects_count < OUTSIDE_MOST && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
      pread(fd, head, sizeof head, 0) == sizeof head &&
      memcmp(head,
             "\x7f"
             "ELF",
             4) == 0) {
    struct audit_object *object = audit_add(work->outside, real, NULL);
    audit_elf(run->context, work->outside, object, fd, (uint64_t)status.st_size);
    object->outside = true;
    object->input = input;
    object->location = object->path;
    run->objects = scan_alloc(run->objects, (run->objects_count + 1) * sizeof *run->objects);
    run->objects[run->objects_count] = *object;
    found = object->fault ? SIZE_MAX : run->objects_count;
    run->objects_count++;
  }
  close(fd);
  return found;
}

static size_t find_on_host(struct resolving *work, size_t input_index, const char *path) {
  const struct audit_input *input = &work->run->inputs[input_index];
  char real[PATH_MAX];
  if (*path != '/' || !realpath(path, real))
    return SIZE_MAX;
  size_t base = strlen(input->base);
  bool below = input->folder && strncmp(real, input->base, base) == 0 && real[base] == '/';
  const struct audit_place *place = place_of(input, below ? real + base + 1 : real);
  if (place && place->object != SIZE_MAX)
    return place->object;
  return read_outside(work, input_index, real);
}

/* --- one needed library ------------------------------------------------------------------------------------------- */

struct search {
  struct resolving *work;
  size_t object, found;
};

/* A library of another machine is passed over by the loader. */
static bool try_path(void *user, const char *path) {
  struct search *search = user;
  struct audit_run *run = search->work->run;
  size_t input = run->objects[search->object].input;
  size_t found = run->inputs[input].world == WORLD_HOST ? find_on_host(search->work, input, path)
                                                        : find_inside(&run->inputs[input], path);
  if (found == SIZE_MAX || run->objects[found].fault ||
      strcmp(run->objects[found].machine, run->objects[search->object].machine) != 0)
    return false;
  search->found = found;
  return true;
}

/* One folder of RPATH or RUNPATH, or a needed path, with its tokens replaced; owned by the caller. */
static char *expand(const struct audit_object *object, const char *folder, size_t length) {
  const char *slash = strrchr(object->location, '/');
  char *out = scan_format("%s", "");
  for (size_t at = 0; at < length;) {
    static const struct {
      const char *token;
      bool origin;
    } tokens[] = {{"$ORIGIN", true}, {"${ORIGIN}", true}, {"$LIB", false}, {"${LIB}", false}};
    size_t used = 0;
    char *longer = NULL;
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens && !used; i++) {
      size_t size = strlen(tokens[i].token);
      if (length - at >= size && memcmp(folder + at, tokens[i].token, size) == 0) {
        used = size;
        longer = tokens[i].origin ? scan_format("%s%.*s", out, (int)(slash - object->location), object->location)
                                  : scan_format("%slib64", out);
      }
    }
    if (!used) {
      longer = scan_format("%s%c", out, folder[at]);
      used = 1;
    }
    free(out);
    out = longer;
    at += used;
  }
  return out;
}

static bool search_run_path(struct search *search, const char *list, const char *name) {
  const struct audit_object *object = &search->work->run->objects[search->object];
  while (list && *list) {
    size_t length = strcspn(list, ":");
    char *folder = length && length < PATH_MAX ? expand(object, list, length) : NULL;
    char *path = folder && *folder == '/' ? scan_format("%s/%s", folder, name) : NULL;
    bool found = path && try_path(search, path);
    free(path);
    free(folder);
    if (found)
      return true;
    object = &search->work->run->objects[search->object]; /* reading a library moves the objects */
    list += length + (list[length] == ':');
  }
  return false;
}

static const char *keep(struct resolving *work, char *text) {
  const char *kept = arena_copy(&work->outside->arena, text, strlen(text));
  free(text);
  return kept;
}

static void resolve_needed(struct resolving *work, size_t index, size_t k) {
  struct audit_run *run = work->run;
  struct audit_object *object = &run->objects[index];
  const struct audit_input *input = &run->inputs[object->input];
  const char *name = object->needed[k].name;
  struct search search = {work, index, SIZE_MAX};
  struct audit_needed result = {.name = name, .object = SIZE_MAX};
  bool loader = input->world == WORLD_HOST || input->world == WORLD_ROOT;
  bool found = false;
  if (input->world == WORLD_PROCESS || !object->location) {
    search.found = by_name_in_input(work, index, name);
    found = input->world == WORLD_PROCESS && search.found != SIZE_MAX;
  } else if (strchr(name, '/')) {
    char *path = expand(object, name, strlen(name));
    found = try_path(&search, path);
    free(path);
  } else {
    const char *path = object->runpath ? object->runpath : object->rpath;
    found = search_run_path(&search, path, name) ||
            (loader && audit_loader(input->cache, input->cache_size, &run->objects[index], name, try_path, &search));
  }
  object = &run->objects[index];
  if (!found && search.found == SIZE_MAX)
    search.found = by_name_in_input(work, index, name);
  result.object = search.found;
  if (found)
    result.state = NEEDED_FOUND;
  else if (search.found != SIZE_MAX)
    result.state = NEEDED_PRESENT;
  else
    result.state = loader && object->location ? NEEDED_MISSING : NEEDED_OUTSIDE;
  if (result.object != SIZE_MAX) {
    const struct audit_object *other = &run->objects[result.object];
    result.place = other->member ? other->member : other->path;
  } else if (result.state == NEEDED_MISSING && strchr(name, '/')) {
    result.place = keep(work, expand(object, name, strlen(name)));
  } else if (result.state == NEEDED_MISSING) {
    const char *path = object->runpath ? object->runpath : object->rpath;
    result.place =
        keep(work, scan_format("%s%s%s%s", path ? (object->runpath ? "RUNPATH " : "RPATH ") : "", path ? path : "",
                               path ? ", the cache of ld.so, " : "the cache of ld.so, ", audit_loader_folders(object)));
  }
  object->needed[k] = result;
}

/* --- exported names ----------------------------------------------------------------------------------------------- */

static void build_exports(struct audit_run *run) {
  size_t count = 0, size = 1024;
  for (size_t i = 0; i < run->objects_count; i++)
    count += run->objects[i].fault ? 0 : run->objects[i].defined_count;
  while (size < 2 * count)
    size *= 2;
  run->exports = scan_alloc(NULL, size * sizeof *run->exports);
  memset(run->exports, 0, size * sizeof *run->exports);
  run->installed = scan_alloc(NULL, size * sizeof *run->installed);
  memset(run->installed, 0, size * sizeof *run->installed);
  run->exports_mask = size - 1;
  for (size_t i = 0; i < run->objects_count; i++) {
    const struct audit_object *object = &run->objects[i];
    for (size_t k = 0; k < object->defined_count && !object->fault; k++) {
      uint64_t hash = object->defined[k];
      size_t at = hash & run->exports_mask;
      while (run->exports[at] && run->exports[at] != hash)
        at = (at + 1) & run->exports_mask;
      run->exports[at] = hash;
      run->installed[at] |= !object->packed;
    }
  }
}

bool audit_may_answer(const struct audit_run *run, size_t object, size_t other) {
  return !run->objects[other].packed || run->objects[object].packed;
}

bool audit_exported(const struct audit_run *run, size_t object, uint64_t hash) {
  for (size_t at = hash & run->exports_mask; run->exports[at]; at = (at + 1) & run->exports_mask)
    if (run->exports[at] == hash)
      return run->installed[at] || run->objects[object].packed;
  return false;
}

bool audit_exports(const struct audit_object *object, uint64_t hash) {
  size_t low = 0, high = object->defined_count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (object->defined[middle] == hash)
      return true;
    if (object->defined[middle] < hash)
      low = middle + 1;
    else
      high = middle;
  }
  return false;
}

/* --- the whole ---------------------------------------------------------------------------------------------------- */

#define HOST_CACHE_MOST ((off_t)16 << 20)

static void read_host_cache(struct audit_run *run) {
  struct stat status;
  int fd = open("/etc/ld.so.cache", O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return;
  if (fstat(fd, &status) == 0 && status.st_size > 0 && status.st_size < HOST_CACHE_MOST) {
    run->host_cache = scan_alloc(NULL, (size_t)status.st_size);
    ssize_t got = pread(fd, run->host_cache, (size_t)status.st_size, 0);
    run->host_cache_size = got > 0 ? (size_t)got : 0;
  }
  close(fd);
}

void audit_resolve(struct audit_run *run) {
  struct resolving work = {.run = run, .outside = scan_alloc(NULL, sizeof *work.outside)};
  *work.outside = (struct audit_list){0};
  size_t first_outside = run->objects_count;
  read_host_cache(run);
  for (size_t i = 0; i < run->inputs_count; i++) {
    struct audit_input *input = &run->inputs[i];
    if (input->world == WORLD_HOST) {
      input->cache = run->host_cache;
      input->cache_size = run->host_cache_size;
    }
    build_names(&work, input);
    for (size_t k = input->first; k < input->first + input->count; k++)
      for (size_t n = 0; !run->objects[k].fault && n < run->objects[k].needed_count; n++)
        resolve_needed(&work, k, n);
    for (; first_outside < run->objects_count; first_outside++) /* they need others in turn */
      for (size_t n = 0; !run->objects[first_outside].fault && n < run->objects[first_outside].needed_count; n++)
        resolve_needed(&work, first_outside, n);
  }
  free(work.names);
  work.outside->objects_count = 0; /* the run has them */
  run->lists = scan_alloc(run->lists, (run->lists_count + 1) * sizeof *run->lists);
  run->lists[run->lists_count++] = work.outside;
  build_exports(run);
}
