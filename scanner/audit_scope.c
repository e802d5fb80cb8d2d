/* Which files are loaded together with a file, as far as files can say: those answer its symbols. They are, in order,
 *   - what the file needs, and what that needs;
 *   - what is needed by a file that also needs this one: the loader binds all of them together;
 *   - a program of the PATHs and what it needs, which is there before anything else; for a module of Python only
 * Python;
 *   - when the file or its package uses torch, torch's own libraries and what they need: torch is imported first;
 *   - the files of the same package: its own code loads them, in whichever way;
 *   - of a process, all that it has mapped.
 * Any other file that exports a symbol answers nobody. A package is the folder below site-packages or dist-packages,
 * else the first one below PATH; in a container root only the former. */
#include "scanner/audit.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

struct audit_scope {
  const struct audit_run *run;
  size_t object;
  size_t *list; /* of objects */
  size_t count, done;
  bool *seen;
  bool wide;
};

static void push(struct audit_scope *scope, size_t object) {
  if (scope->seen[object] || scope->run->objects[object].fault)
    return;
  scope->seen[object] = true;
  scope->list[scope->count++] = object;
}

/* All that those in the list need. */
static void close_list(struct audit_scope *scope) {
  for (; scope->done < scope->count; scope->done++) {
    const struct audit_object *object = &scope->run->objects[scope->list[scope->done]];
    for (size_t i = 0; i < object->needed_count; i++)
      if (object->needed[i].object != SIZE_MAX)
        push(scope, object->needed[i].object);
  }
}

struct audit_scope *audit_scope_start(const struct audit_run *run, size_t object) {
  struct audit_scope *scope = scan_alloc(NULL, sizeof *scope);
  *scope = (struct audit_scope){.run = run, .object = object};
  scope->list = scan_alloc(NULL, run->objects_count * sizeof *scope->list);
  scope->seen = scan_alloc(NULL, run->objects_count * sizeof *scope->seen);
  memset(scope->seen, 0, run->objects_count * sizeof *scope->seen);
  push(scope, object);
  close_list(scope);
  return scope;
}

void audit_scope_free(struct audit_scope *scope) {
  if (!scope)
    return;
  free(scope->list);
  free(scope->seen);
  free(scope);
}

bool audit_reaches(const struct audit_run *run, size_t object, size_t other) {
  struct audit_scope *scope = audit_scope_start(run, object);
  bool reached = scope->seen[other];
  audit_scope_free(scope);
  return reached;
}

bool audit_scope_complete(const struct audit_scope *scope) {
  for (size_t i = 0; i < scope->count; i++) {
    const struct audit_object *object = &scope->run->objects[scope->list[i]];
    for (size_t k = 0; k < object->needed_count; k++)
      if (object->needed[k].object == SIZE_MAX || scope->run->objects[object->needed[k].object].fault)
        return false;
  }
  return true;
}

/* --- who is there besides ----------------------------------------------------------------------------------------- */

static const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

/* "/env/lib/python3.12/site-packages/pkg" of a file in it: the length of that in its location, 0: it is in no package.
 */
static size_t package_of(const struct audit_run *run, const struct audit_object *object) {
  static const char *const sites[] = {"/site-packages/", "/dist-packages/"};
  const struct audit_input *input = &run->inputs[object->input];
  const char *text = object->location, *start = NULL;
  if (!text)
    return 0;
  for (size_t i = 0; i < sizeof sites / sizeof *sites; i++)
    for (const char *at = text; (at = strstr(at, sites[i])); start = at)
      at += strlen(sites[i]) - 1;
  start = start ? start + 1 : NULL;
  if (!start && input->world == WORLD_ARCHIVE)
    start = text + 1;
  else if (!start && input->world == WORLD_HOST && input->folder && !object->outside)
    start = text + strlen(input->base) + 1;
  const char *end = start ? strchr(start, '/') : NULL;
  return end ? (size_t)(end - text) : 0;
}

static bool same_package(const struct audit_run *run, size_t one, size_t other) {
  size_t size = package_of(run, &run->objects[one]);
  return size && run->objects[one].input == run->objects[other].input &&
         package_of(run, &run->objects[other]) == size &&
         strncmp(run->objects[one].location, run->objects[other].location, size) == 0;
}

static bool is_program(const struct audit_object *object) {
  return object->type == ET_EXEC || (object->type == ET_DYN && object->pie);
}

bool audit_is_module(const struct audit_object *object) {
  const char *base = base_name(object->member ? object->member : object->path);
  char *init = scan_format("PyInit_%.*s", (int)strcspn(base, "."), base);
  bool module = audit_exports(object, audit_hash(init, strlen(init)));
  free(init);
  return module;
}

static bool uses_torch(const struct audit_object *object) {
  bool uses = object->torch_symbols || object->torch_stable;
  for (size_t i = 0; i < object->needed_count && !uses; i++)
    uses = strncmp(object->needed[i].name, "libtorch", 8) == 0 || strncmp(object->needed[i].name, "libc10", 6) == 0;
  return uses;
}

/* Is torch imported before the file is loaded? */
static bool after_torch(const struct audit_scope *scope) {
  bool torch = false;
  for (size_t i = 0; i < scope->run->objects_count && !torch; i++)
    torch = !scope->run->objects[i].fault && (scope->seen[i] || same_package(scope->run, scope->object, i)) &&
            uses_torch(&scope->run->objects[i]);
  return torch;
}

/* The libraries in the folder of libtorch_cpu.so. */
static void push_torch(struct audit_scope *scope) {
  const struct audit_run *run = scope->run;
  for (size_t i = 0; i < run->objects_count; i++) {
    const struct audit_object *torch = &run->objects[i];
    if (torch->fault || !torch->location || !torch->soname || strncmp(torch->soname, "libtorch_cpu.so", 15) != 0)
      continue;
    size_t folder = (size_t)(base_name(torch->location) - torch->location);
    for (size_t k = 0; k < run->objects_count; k++) {
      const struct audit_object *object = &run->objects[k];
      if (object->location && object->input == torch->input &&
          strncmp(object->location, torch->location, folder) == 0 && !strchr(object->location + folder, '/'))
        push(scope, k);
    }
  }
}

/* Those that need the object, and what else they need. */
static void push_users(struct audit_scope *scope) {
  const struct audit_run *run = scope->run;
  bool *users = scan_alloc(NULL, run->objects_count * sizeof *users), more = true;
  memset(users, 0, run->objects_count * sizeof *users);
  users[scope->object] = true;
  while (more) {
    more = false;
    for (size_t i = 0; i < run->objects_count; i++)
      for (size_t k = 0; k < run->objects[i].needed_count && !users[i]; k++)
        if (run->objects[i].needed[k].object != SIZE_MAX && users[run->objects[i].needed[k].object])
          users[i] = more = true;
  }
  for (size_t i = 0; i < run->objects_count; i++)
    if (users[i])
      push(scope, i);
  free(users);
}

static void widen(struct audit_scope *scope) {
  const struct audit_run *run = scope->run;
  const struct audit_object *own = &run->objects[scope->object];
  bool module = audit_is_module(own), torch = after_torch(scope);
  push_users(scope);
  for (size_t i = 0; i < run->objects_count; i++) {
    const struct audit_object *object = &run->objects[i];
    const char *name = base_name(object->member ? object->member : object->path);
    if (!audit_may_answer(run, scope->object, i))
      continue;
    if ((is_program(object) && (!module || strncmp(name, "python", 6) == 0)) || same_package(run, scope->object, i) ||
        (object->input == own->input && run->inputs[own->input].world == WORLD_PROCESS))
      push(scope, i);
  }
  if (torch)
    push_torch(scope);
  close_list(scope);
  scope->wide = true;
}

/* --- the question ------------------------------------------------------------------------------------------------- */

bool audit_scope_has(struct audit_scope *scope, uint64_t hash) {
  size_t i = 0;
  for (; i < scope->count; i++)
    if (audit_exports(&scope->run->objects[scope->list[i]], hash))
      return true;
  if (scope->wide)
    return false;
  widen(scope); /* seldom needed, and not cheap */
  for (; i < scope->count; i++)
    if (audit_exports(&scope->run->objects[scope->list[i]], hash))
      return true;
  return false;
}

size_t audit_exporter(const struct audit_run *run, size_t object, uint64_t hash) {
  for (size_t i = 0; i < run->objects_count; i++)
    if (!run->objects[i].fault && audit_may_answer(run, object, i) && audit_exports(&run->objects[i], hash))
      return i;
  return SIZE_MAX;
}
