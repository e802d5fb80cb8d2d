/* The folders of the disk cache: where they are and whom they must belong to.
 *
 * What an entry holds is run on the GPU. So the cache folder and its files must belong to the effective user and be
 * closed to writing by others. The prebuilt folder may also belong to root or to the owner of the library's own file:
 * both can run any code in this process as it is. A link is never followed inside a folder, nor is the folder one. A
 * set-user-ID program does not read the environment. */
#include "internal.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void set_path(struct jit_folder *folder, const char *source, const char *base, const char *below) {
  folder->source = source;
  int length = snprintf(folder->path, sizeof folder->path, "%s%s", base, below);
  if (length < 0 || (size_t)length >= sizeof folder->path) {
    folder->path[0] = '\0';
    snprintf(folder->problem, sizeof folder->problem, "the path that comes from %s is too long", source);
  }
}

/* A folder that the user names: relative would be another one for every working directory. */
static bool set_named(struct jit_folder *folder, const char *variable) {
  const char *named = secure_getenv(variable);
  if (!named || !*named)
    return false;
  if (*named == '/') {
    set_path(folder, variable, named, "");
  } else {
    folder->source = variable;
    snprintf(folder->problem, sizeof folder->problem, "%s is not an absolute path: %.100s", variable, named);
  }
  return true;
}

static void find_cache(struct jit_folder *folder) {
  const char *xdg = secure_getenv("XDG_CACHE_HOME");
  const char *home = secure_getenv("HOME");
  if (set_named(folder, "SGL_KERNEL_JIT_CACHE_DIR"))
    return;
  if (xdg && *xdg == '/') /* the XDG specification: a relative path is to be ignored */
    set_path(folder, "XDG_CACHE_HOME", xdg, "/sgl-kernel-jit");
  else if (home && *home == '/')
    set_path(folder, "HOME", home, "/.cache/sgl-kernel-jit");
  else
    snprintf(folder->problem, sizeof folder->problem,
             "neither SGL_KERNEL_JIT_CACHE_DIR nor XDG_CACHE_HOME nor HOME is an absolute path");
}

const char *jit_library_file;

/* Its path, or NULL where that is not known or not absolute. */
static const char *library_file(void) {
  static const char *(*const own_function)(void) = sgl_jit_version;
  Dl_info info;
  const char *file = jit_library_file;
  if (!file && dladdr(*(void *const *)&own_function, &info))
    file = info.dli_fname;
  return file && file[0] == '/' ? file : NULL;
}

/* A library that was loaded by a relative path has no folder: what that path means now is for others to decide. */
static void find_prebuilt(struct jit_folder *folder) {
  struct stat s;
  const char *library = library_file();
  folder->owners[folder->owner_count++] = 0;
  if (library && stat(library, &s) == 0)
    folder->owners[folder->owner_count++] = s.st_uid;
  if (set_named(folder, "SGL_KERNEL_JIT_PREBUILT_DIR"))
    return;
  folder->source = "the library's folder";
  if (!library) {
    snprintf(folder->problem, sizeof folder->problem, "the library was loaded by a relative path");
    return;
  }
  char beside[sizeof folder->path];
  snprintf(beside, sizeof beside, "%.*s", (int)(strrchr(library, '/') - library), library);
  set_path(folder, folder->source, beside, "/sgl-kernel-jit-cubins");
}

void jit_folder_find(enum jit_folder_kind kind, struct jit_folder *folder) {
  *folder = (struct jit_folder){.kind = kind, .source = "", .owners = {geteuid()}, .owner_count = 1};
  if (kind == JIT_FOLDER_CACHE)
    find_cache(folder);
  else
    find_prebuilt(folder);
}

bool jit_folder_is_owner(const struct jit_folder *folder, uid_t user) {
  for (int i = 0; i < folder->owner_count; i++)
    if (folder->owners[i] == user)
      return true;
  return false;
}

static int open_path(const char *path) {
  return open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* The folder and those above it; returned opened. */
static int make_path(char *path) {
  for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
    *slash = '\0';
    mkdir(path, 0700);
    *slash = '/';
  }
  int made = mkdir(path, 0700), problem = errno;
  int opened = open_path(path);
  if (made != 0 && opened < 0 && errno == ENOENT) /* why it could not be made says more */
    errno = problem;
  return opened;
}

int jit_folder_open(struct jit_folder *folder, bool create) {
  struct stat s;
  char text[128];
  const char *problem = NULL;
  if (!folder->path[0])
    return -1;
  int opened = open_path(folder->path);
  if (opened < 0 && create && folder->kind == JIT_FOLDER_CACHE)
    opened = make_path(folder->path);
  folder->missing = opened < 0 && errno == ENOENT;
  if (opened < 0 && (!folder->missing || create))
    problem = (errno == ENOTDIR || errno == ELOOP) && lstat(folder->path, &s) == 0 && S_ISLNK(s.st_mode)
                  ? "is a symbolic link; name the folder that it leads to"
                  : strerror_r(errno, text, sizeof text);
  else if (opened >= 0 && fstat(opened, &s) != 0)
    problem = strerror_r(errno, text, sizeof text);
  else if (opened >= 0 && !jit_folder_is_owner(folder, s.st_uid))
    problem = folder->kind == JIT_FOLDER_CACHE
                  ? "belongs to another user"
                  : "belongs neither to root, nor to this user, nor to the library's owner";
  else if (opened >= 0 && s.st_mode & (S_IWGRP | S_IWOTH))
    problem = "may be written by others; chmod go-w it";
  if (!problem)
    return opened;
  snprintf(folder->problem, sizeof folder->problem, "%s", problem);
  if (opened >= 0)
    close(opened);
  return -1;
}

void jit_cache_folders(struct jit_folder folders[JIT_FOLDER_COUNT]) {
  for (int kind = 0; kind < JIT_FOLDER_COUNT; kind++) {
    jit_folder_find((enum jit_folder_kind)kind, &folders[kind]);
    int opened = jit_folder_open(&folders[kind], false);
    if (opened >= 0)
      close(opened);
  }
}
