/* Which files belong to the tree. A file is listed once, at its real path below the root. */
#include "scanner/walk.h"
#include "scanner/cache.h"
#include "scanner/crew.h"
#include "scanner/pins.h"
#include "scanner/settings.h"
#include "scanner/walk_git.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct folder {
  char *full_path; /* owned */
  struct repository *repository;
  bool found; /* by the walk: neither the root nor what the settings ask for */
};

/* What a worker found in a folder. */
struct found {
  struct scan *scan;
  size_t relative; /* the paths below the root begin so many bytes into the full ones */
  struct source_file **files;
  struct walk_note *notes;
  struct folder *folders;
  size_t files_count, files_capacity, notes_count, notes_capacity, folders_count, folders_capacity, ignored;
};

/* Folders that never hold sources; a tree has many of them, and saying so of each would hide the rest. */
static const char *const silent_names[] = {
    ".git", ".hg", ".svn", ".jj", "__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".ipynb_checkpoints"};

/* Folders whose name says that what is in them comes from elsewhere. */
static const struct {
  const char *name, *reason;
} skipped_names[] = {
    {"node_modules", "installed packages"}, {".venv", "virtual environment"}, {".tox", "virtual environment"},
    {".nox", "virtual environment"},        {".eggs", "installed packages"},
};

/* Folders known by a file in them: what wrote the folder put it there. */
static const struct {
  const char *file, *reason;
} skipped_markers[] = {
    {"pyvenv.cfg", "virtual environment"}, {"conda-meta/history", "virtual environment"},
    {"CMakeCache.txt", "build output"},    {"build.ninja", "build output"},
    {".ninja_log", "build output"},        {"CACHEDIR.TAG", "cache"},
};

/* A build inside of the source folder leaves the markers among the sources; these files say that it is one. */
static const char *const source_markers[] = {"CMakeLists.txt", "meson.build", "setup.py", "pyproject.toml",
                                             "WORKSPACE",      "BUILD",       ".git",     "configure.ac"};

/* --- lists -------------------------------------------------------------------------------------------------------- */

#define GROW(list, count, capacity)                                                                                    \
  ((count) == (capacity)                                                                                               \
       ? (void)((list) = scan_alloc((list), ((capacity) = (capacity) ? 2 * (capacity) : 64) * sizeof *(list)))         \
       : (void)0)

/* full_path is owned. The file is `name` in the open folder. */
static void add_file(struct found *found, char *full_path, int folder, const char *name) {
  struct source_file *file = scan_alloc(NULL, sizeof *file);
  char *path = full_path + found->relative;
  *file = (struct source_file){
      .path = path, .full_path = full_path, .language = walk_language(path), .pins = (uint8_t)pins_kind(path)};
  file->known =
      found->scan->cache && file->language != LANGUAGE_NONE && cache_known(found->scan->cache, file, folder, name);
  GROW(found->files, found->files_count, found->files_capacity);
  found->files[found->files_count++] = file;
}

static void add_note(struct found *found, const char *path, const char *reason, bool failed) {
  GROW(found->notes, found->notes_count, found->notes_capacity);
  found->notes[found->notes_count++] =
      (struct walk_note){scan_format("%s", *path ? path : "."), scan_format("%s", reason), failed};
}

/* full_path is owned. */
static void add_folder(struct found *found, char *full_path, struct repository *repository, bool is_found) {
  repository_share(repository);
  GROW(found->folders, found->folders_count, found->folders_capacity);
  found->folders[found->folders_count++] = (struct folder){full_path, repository, is_found};
}

/* --- language ----------------------------------------------------------------------------------------------------- */

static bool ends_with_one_of(const char *ending, const char *const *list) {
  for (; *list; list++)
    if (strcasecmp(ending, *list) == 0)
      return true;
  return false;
}

enum language walk_language(const char *path) {
  static const char *const python[] = {"py", "pyi", "pyw", NULL};
  static const char *const cxx[] = {"c",   "cc",  "cp",  "cpp", "cxx", "c++",  "h",   "hh",  "hp",  "hpp",
                                    "hxx", "h++", "cu",  "cuh", "mu",  "muh",  "hip", "inl", "ipp", "tpp",
                                    "txx", "tcc", "inc", "def", "ixx", "cppm", "mm",  NULL};
  /* Tables, archives, media, models, machine output: nothing in them calls a function, and some are huge. */
  static const char *const data[] = {
      "json", "jsonl", "ndjson",      "geojson", "csv",    "tsv", "parquet", "arrow", "feather", "db",    "sqlite",
      "lock", "log",   "xml",         "svg",     "png",    "jpg", "jpeg",    "gif",   "webp",    "bmp",   "ico",
      "pdf",  "mp3",   "mp4",         "wav",     "webm",   "ttf", "otf",     "woff",  "woff2",   "zip",   "gz",
      "tgz",  "bz2",   "xz",          "zst",     "tar",    "7z",  "whl",     "egg",   "jar",     "class", "deb",
      "rpm",  "so",    "a",           "o",       "lo",     "la",  "dll",     "exe",   "dylib",   "pyc",   "pyd",
      "pyo",  "bin",   "dat",         "npy",     "npz",    "pkl", "pt",      "pth",   "ckpt",    "onnx",  "h5",
      "hdf5", "gguf",  "safetensors", "cubin",   "fatbin", "map", NULL};
  const char *slash = strrchr(path, '/');
  const char *name = slash ? slash + 1 : path;
  const char *dot = strrchr(name, '.');
  if (!dot || dot == name)
    return LANGUAGE_TEXT;
  if (ends_with_one_of(dot + 1, python))
    return LANGUAGE_PYTHON;
  if (strcasecmp(dot + 1, "ipynb") == 0)
    return LANGUAGE_NOTEBOOK;
  if (ends_with_one_of(dot + 1, cxx) || strcmp(dot, ".C") == 0 || strcmp(dot, ".H") == 0)
    return LANGUAGE_CXX;
  return ends_with_one_of(dot + 1, data) ? LANGUAGE_NONE : LANGUAGE_TEXT;
}

/* --- folders ------------------------------------------------------------------------------------------------------ */

static char *join(const char *folder, const char *name) {
  size_t length = strlen(folder), more = strlen(name), slash = length > 0 && folder[length - 1] != '/';
  char *path = scan_alloc(NULL, length + slash + more + 1);
  memcpy(path, folder, length);
  path[length] = '/';
  memcpy(path + length + slash, name, more + 1);
  return path;
}

/* What is in a folder. */
struct listing {
  char *names; /* one after the other, each with its type (DT_) in front */
  size_t size, capacity;
};

/* The next entry behind `name`, the first one for NULL; NULL at the end. The type is name[-1]. */
static const char *next_name(const struct listing *listing, const char *name) {
  size_t at = name ? (size_t)(name - listing->names) + strlen(name) + 1 : 0;
  return at < listing->size ? listing->names + at + 1 : NULL;
}

static bool has_name(const struct listing *listing, const char *wanted) {
  for (const char *name = NULL; (name = next_name(listing, name));)
    if (strcmp(name, wanted) == 0)
      return true;
  return false;
}

/* File systems that do not tell types, and races with whoever changes the folder, leave DT_UNKNOWN. */
static unsigned char type_of(int folder, const struct dirent64 *entry) {
  struct stat status;
  if (entry->d_type != DT_UNKNOWN || fstatat(folder, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0)
    return entry->d_type;
  return (unsigned char)IFTODT(status.st_mode);
}

static void add_entry(struct listing *listing, int folder, const struct dirent64 *entry) {
  size_t length = strlen(entry->d_name) + 1;
  if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
    return;
  if (listing->size + 1 + length > listing->capacity) {
    listing->capacity = 2 * (listing->capacity + length) + 1024;
    listing->names = scan_alloc(listing->names, listing->capacity);
  }
  listing->names[listing->size] = (char)type_of(folder, entry);
  memcpy(listing->names + listing->size + 1, entry->d_name, length);
  listing->size += 1 + length;
}

/* The open folder; -1 with errno set when it cannot be read. Not by readdir, which takes two more calls of the kernel
 * and a buffer for each folder. */
static int list_folder(const char *full_path, struct listing *listing) {
  *listing = (struct listing){0};
  int fd = open(full_path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0)
    return -1;
  _Alignas(struct dirent64) char buffer[32768];
  ssize_t got;
  while ((got = getdents64(fd, buffer, sizeof buffer)) > 0)
    for (const char *at = buffer; at < buffer + got;) {
      const struct dirent64 *entry = (const void *)at;
      add_entry(listing, fd, entry);
      at += entry->d_reclen;
    }
  if (got == 0)
    return fd;
  int failure = errno;
  close(fd);
  free(listing->names);
  errno = failure;
  return -1;
}

/* Why a folder is not entered, by its name alone; NULL when that does not tell; "" when nothing is said of it. */
static const char *skip_name(const char *name) {
  for (size_t i = 0; i < sizeof silent_names / sizeof *silent_names; i++)
    if (strcmp(name, silent_names[i]) == 0)
      return "";
  for (size_t i = 0; i < sizeof skipped_names / sizeof *skipped_names; i++)
    if (strcmp(name, skipped_names[i].name) == 0)
      return skipped_names[i].reason;
  return NULL;
}

static bool has_marker(const char *full_path, const struct listing *listing, const char *marker) {
  const char *slash = strchr(marker, '/');
  if (!slash)
    return has_name(listing, marker);
  char *path = join(full_path, marker);
  char *first = scan_format("%.*s", (int)(slash - marker), marker);
  bool yes = has_name(listing, first) && access(path, F_OK) == 0;
  free(first);
  free(path);
  return yes;
}

/* Why a folder is not entered, by what is in it. */
static const char *skip_content(const char *full_path, const struct listing *listing) {
  for (size_t i = 0; i < sizeof source_markers / sizeof *source_markers; i++)
    if (has_name(listing, source_markers[i]))
      return NULL;
  for (size_t i = 0; i < sizeof skipped_markers / sizeof *skipped_markers; i++)
    if (has_marker(full_path, listing, skipped_markers[i].file))
      return skipped_markers[i].reason;
  /* setuptools leaves no marker, but "build/lib" or "build/bdist.*" beside the setup file. */
  const char *slash = strrchr(full_path, '/');
  if (strcmp(slash ? slash + 1 : full_path, "build") != 0)
    return NULL;
  for (const char *name = NULL; (name = next_name(listing, name));)
    if (strcmp(name, "lib") == 0 || strncmp(name, "lib.", 4) == 0 || strncmp(name, "bdist.", 6) == 0 ||
        strncmp(name, "temp.", 5) == 0)
      return "build output";
  return NULL;
}

/* A link to a file below the root is that file, at its real path. Links to folders are not entered: below the root the
 * folder is walked anyway, and so no loop is possible. What is outside is not the user's to edit: it is named only. */
static void walk_link(struct found *found, const char *path, const char *full_path) {
  const char *root = found->scan->real_root;
  size_t root_length = strcmp(root, "/") == 0 ? 0 : strlen(root);
  char *target = realpath(full_path, NULL);
  struct stat status;
  if (!target || stat(target, &status) != 0) {
    add_note(found, path, errno == ELOOP ? "link that leads to itself" : "link to nothing", false);
    free(target);
    return;
  }
  bool inside = strncmp(target, root, root_length) == 0 && (target[root_length] == '/' || target[root_length] == '\0');
  if (S_ISREG(status.st_mode) && inside) {
    add_file(found, target, AT_FDCWD, target);
    return;
  }
  if (!inside && S_ISDIR(status.st_mode))
    add_note(found, path, "link to a folder outside; name that folder on the command line to include it", false);
  else if (!inside && S_ISREG(status.st_mode))
    add_note(found, path, "link to a file outside; name that file on the command line to include it", false);
  free(target);
}

/* What is neither file, folder nor link is no source, and opening it could wait for ever. */
static const char *special(unsigned char type) {
  return type == DT_FIFO ? "named pipe" : type == DT_SOCK ? "socket" : type == DT_UNKNOWN ? "unknown kind" : "device";
}

static void note_failure(struct found *found, const char *relative) {
  if (errno == ENOENT && *relative)
    return; /* deleted meanwhile is no failure */
  char *reason = scan_format("cannot be read: %s", strerror(errno));
  add_note(found, relative, reason, true);
  free(reason);
}

static void walk_entry(struct found *found, const struct folder *folder, int fd, const char *name) {
  char *full = join(folder->full_path, name);
  const char *path = full + found->relative, *skipped = NULL;
  unsigned char type = (unsigned char)name[-1];
  const struct settings *settings = found->scan->settings;
  if (edit_is_temporary(name)) {
    /* not a part of the tree */
  } else if (settings && settings_exclude(settings, path)) {
    add_note(found, path, "excluded by " SETTINGS_NAME, false);
  } else if (type == DT_DIR && (skipped = skip_name(name))) {
    if (*skipped)
      add_note(found, path, skipped, false);
  } else if (type == DT_DIR) {
    add_folder(found, full, folder->repository, true);
    full = NULL;
  } else if (repository_ignores(folder->repository, full, false)) {
    found->ignored++;
  } else if (type == DT_REG) {
    add_file(found, full, fd, name);
    full = NULL;
  } else if (type == DT_LNK) {
    walk_link(found, path, full);
  } else {
    add_note(found, path, special(type), false);
  }
  free(full);
}

static void walk_folder(struct found *found, struct folder *folder) {
  struct listing listing;
  int fd = list_folder(folder->full_path, &listing);
  int failure = errno;
  const char *path = strlen(folder->full_path) > found->relative ? folder->full_path + found->relative : "";
  const char *reason = fd >= 0 && folder->found ? skip_content(folder->full_path, &listing) : NULL;
  bool is_ignored = !reason && folder->found && repository_ignores(folder->repository, folder->full_path, true);
  errno = failure;
  if (reason)
    add_note(found, path, reason, false);
  else if (is_ignored)
    found->ignored++;
  else if (fd < 0)
    note_failure(found, path);
  if (fd < 0)
    return;
  if (!reason && !is_ignored) {
    struct repository *own = has_name(&listing, ".git") ? repository_open(folder->full_path, false) : NULL;
    if (own) {
      repository_leave(folder->repository);
      folder->repository = own;
    }
    for (const char *name = NULL; (name = next_name(&listing, name));)
      walk_entry(found, folder, fd, name);
  }
  free(listing.names);
  close(fd);
}

/* --- all folders -------------------------------------------------------------------------------------------------- */

struct walk {
  struct found all;
  pthread_mutex_t mutex; /* of `all` and `busy` */
  pthread_cond_t more;
  unsigned busy; /* workers that may find more folders */
};

#define APPEND(to, from, what)                                                                                         \
  for (size_t i = 0; i < (from)->what##_count; i++) {                                                                  \
    GROW((to)->what, (to)->what##_count, (to)->what##_capacity);                                                       \
    (to)->what[(to)->what##_count++] = (from)->what[i];                                                                \
  }                                                                                                                    \
  (from)->what##_count = 0

static void walk_folders(void *user, unsigned worker, size_t index) {
  struct walk *walk = user;
  struct found *all = &walk->all, found = {.scan = all->scan, .relative = all->relative};
  (void)worker, (void)index;
  pthread_mutex_lock(&walk->mutex);
  while (all->folders_count || walk->busy) {
    if (!all->folders_count) {
      pthread_cond_wait(&walk->more, &walk->mutex);
      continue;
    }
    struct folder folder = all->folders[--all->folders_count];
    walk->busy++;
    pthread_mutex_unlock(&walk->mutex);
    walk_folder(&found, &folder);
    repository_leave(folder.repository);
    free(folder.full_path);
    pthread_mutex_lock(&walk->mutex);
    walk->busy--;
    all->ignored += found.ignored;
    found.ignored = 0;
    APPEND(all, &found, files);
    APPEND(all, &found, notes);
    if (found.folders_count > 1 || !walk->busy)
      pthread_cond_broadcast(&walk->more);
    APPEND(all, &found, folders);
  }
  pthread_mutex_unlock(&walk->mutex);
  free(found.files);
  free(found.notes);
  free(found.folders);
}

static int compare_files(const void *left, const void *right) {
  return strcmp((*(struct source_file *const *)left)->path, (*(struct source_file *const *)right)->path);
}

static int compare_notes(const void *left, const void *right) {
  const struct walk_note *a = left, *b = right;
  int order = strcmp(a->path, b->path);
  return order ? order : strcmp(a->reason, b->reason);
}

/* What the settings ask for is looked at whatever it is: build output, ignored by git. */
static void add_included(struct found *found, const char *real_root) {
  const struct settings *settings = found->scan->settings;
  for (unsigned i = 0; settings && i < settings->include_count; i++) {
    char *full = join(real_root, settings->include[i]);
    struct stat status;
    if (lstat(full, &status) == 0 && S_ISREG(status.st_mode))
      add_file(found, full, AT_FDCWD, full);
    else
      add_folder(found, full, NULL, false);
  }
}

/* Into the scan, sorted. A file that links lead to is there more than once, always at its real path: it is kept once.
 */
static void take(struct scan *scan, struct found *found) {
  if (found->notes_count)
    qsort(found->notes, found->notes_count, sizeof *found->notes, compare_notes);
  if (found->files_count)
    qsort(found->files, found->files_count, sizeof(struct source_file *), compare_files);
  scan->notes = found->notes;
  scan->notes_count = found->notes_count;
  scan->ignored_count = found->ignored;
  scan->files = scan_alloc(NULL, found->files_count * sizeof *scan->files);
  for (size_t i = 0; i < found->files_count; i++) {
    if (scan->files_count && strcmp(scan->files[scan->files_count - 1].path, found->files[i]->path) == 0)
      scan_free_file(found->files[i]);
    else
      scan->files[scan->files_count++] = *found->files[i];
    free(found->files[i]);
  }
  free(found->files);
  free(found->folders);
}

static void walk_tree(struct walk *walk, unsigned threads) {
  char *real = walk->all.scan->real_root;
  repositories_begin();
  walk->all.relative = strcmp(real, "/") == 0 ? 1 : strlen(real) + 1;
  add_included(&walk->all, real);
  struct repository *repository = repository_open(real, true);
  /* An ignored folder that the user names is meant. */
  add_folder(&walk->all, scan_format("%s", real), repository_ignores(repository, real, true) ? NULL : repository,
             false);
  repository_leave(repository);
  crew_run(walk_folders, walk, threads, threads);
  repositories_end();
}

bool walk_root(struct scan *scan, unsigned threads, char *message, size_t message_size) {
  char *real = realpath(scan->root, NULL);
  struct stat status;
  struct walk walk = {.all.scan = scan, .mutex = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER};
  if (!real || stat(real, &status) != 0) {
    snprintf(message, message_size, "%s: %s", *scan->root ? scan->root : "''", strerror(errno));
    free(real);
    return false;
  }
  if (S_ISREG(status.st_mode)) {
    size_t folder = (size_t)(strrchr(real, '/') - real);
    scan->root_is_file = true;
    scan->real_root = folder == 0 ? scan_format("/") : scan_format("%.*s", (int)folder, real);
    walk.all.relative = folder + 1;
    add_file(&walk.all, real, AT_FDCWD, real);
  } else if (!S_ISDIR(status.st_mode) || faccessat(AT_FDCWD, real, R_OK | X_OK, AT_EACCESS) != 0) {
    snprintf(message, message_size, "%s: %s", scan->root,
             S_ISDIR(status.st_mode) ? strerror(errno) : "is neither a folder nor a regular file");
    free(real);
    return false;
  } else {
    scan->real_root = real;
    walk_tree(&walk, threads);
  }
  take(scan, &walk.all);
  return true;
}
