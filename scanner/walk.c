/* Which files belong to the tree. A file is listed once, at its real path below the root. */
#include "scanner/scanner.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <git2.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct walk {
  struct scan *scan;
  size_t files_capacity, notes_capacity;
};

/* The repository that a folder belongs to; NULL when it is in none. */
struct repository {
  git_repository *git;
  git_index *index;
  size_t prefix; /* length of its work tree's path, with the slash */
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

static void add_file(struct walk *walk, char *path, char *full_path) {
  struct scan *scan = walk->scan;
  if (scan->files_count == walk->files_capacity) {
    walk->files_capacity = walk->files_capacity ? 2 * walk->files_capacity : 256;
    scan->files = scan_alloc(scan->files, walk->files_capacity * sizeof *scan->files);
  }
  scan->files[scan->files_count++] =
      (struct source_file){.path = path, .full_path = full_path, .language = walk_language(path)};
}

static void add_note(struct walk *walk, const char *path, const char *reason, bool failed) {
  struct scan *scan = walk->scan;
  if (scan->notes_count == walk->notes_capacity) {
    walk->notes_capacity = walk->notes_capacity ? 2 * walk->notes_capacity : 16;
    scan->notes = scan_alloc(scan->notes, walk->notes_capacity * sizeof *scan->notes);
  }
  scan->notes[scan->notes_count++] =
      (struct walk_note){scan_format("%s", *path ? path : "."), scan_format("%s", reason), failed};
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
  static const char *const cxx[] = {"c",   "cc",  "cp",  "cpp", "cxx", "c++", "h",    "hh",  "hp",
                                    "hpp", "hxx", "h++", "cu",  "cuh", "mu",  "muh",  "hip", "inl",
                                    "ipp", "tpp", "txx", "tcc", "inc", "ixx", "cppm", "mm",  NULL};
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

/* --- git ---------------------------------------------------------------------------------------------------------- */

static bool open_repository(struct repository *repository, const char *folder, bool search_upwards) {
  *repository = (struct repository){0};
  if (git_repository_open_ext(&repository->git, folder, search_upwards ? 0 : GIT_REPOSITORY_OPEN_NO_SEARCH, NULL) != 0)
    return false;
  const char *work_tree = git_repository_workdir(repository->git);
  char *real = work_tree ? realpath(work_tree, NULL) : NULL;
  if (!real || git_repository_index(&repository->index, repository->git) != 0) {
    free(real);
    git_repository_free(repository->git);
    return false;
  }
  repository->prefix = strcmp(real, "/") == 0 ? 1 : strlen(real) + 1;
  free(real);
  return true;
}

static void close_repository(struct repository *repository) {
  git_index_free(repository->index);
  git_repository_free(repository->git);
}

/* Ignored and not tracked. */
static bool ignored(const struct repository *repository, const char *full_path, bool folder) {
  if (!repository || strlen(full_path) <= repository->prefix)
    return false;
  char *path = scan_format("%s%s", full_path + repository->prefix, folder ? "/" : "");
  int result = 0;
  bool yes = git_ignore_path_is_ignored(&result, repository->git, path) == 0 && result;
  if (yes)
    yes = folder ? git_index_find_prefix(NULL, repository->index, path) != 0
                 : git_index_get_bypath(repository->index, path, 0) == NULL;
  free(path);
  return yes;
}

/* --- folders ------------------------------------------------------------------------------------------------------ */

static char *join(const char *folder, const char *name) {
  size_t length = strlen(folder);
  return scan_format("%s%s%s", folder, length == 0 || folder[length - 1] == '/' ? "" : "/", name);
}

static bool exists(const char *folder, const char *name) {
  char *path = join(folder, name);
  bool yes = access(path, F_OK) == 0;
  free(path);
  return yes;
}

/* Why a folder found by the walk is not entered; NULL when it is; "" when nothing is said of it. */
static const char *skip_reason(const char *name, const char *full_path) {
  for (size_t i = 0; i < sizeof silent_names / sizeof *silent_names; i++)
    if (strcmp(name, silent_names[i]) == 0)
      return "";
  for (size_t i = 0; i < sizeof skipped_names / sizeof *skipped_names; i++)
    if (strcmp(name, skipped_names[i].name) == 0)
      return skipped_names[i].reason;
  for (size_t i = 0; i < sizeof source_markers / sizeof *source_markers; i++)
    if (exists(full_path, source_markers[i]))
      return NULL;
  for (size_t i = 0; i < sizeof skipped_markers / sizeof *skipped_markers; i++)
    if (exists(full_path, skipped_markers[i].file))
      return skipped_markers[i].reason;
  /* setuptools leaves no marker, but "build/lib" or "build/bdist.*" beside the setup file. */
  if (strcmp(name, "build") != 0)
    return NULL;
  DIR *folder = opendir(full_path);
  const char *reason = NULL;
  for (struct dirent *entry; folder && !reason && (entry = readdir(folder));)
    if (strcmp(entry->d_name, "lib") == 0 || strncmp(entry->d_name, "lib.", 4) == 0 ||
        strncmp(entry->d_name, "bdist.", 6) == 0 || strncmp(entry->d_name, "temp.", 5) == 0)
      reason = "build output";
  if (folder)
    closedir(folder);
  return reason;
}

static int compare_names(const void *left, const void *right) {
  return strcmp(*(char *const *)left, *(char *const *)right);
}

/* The names in a folder, sorted; NULL with errno set when it cannot be read. Read to the end before anything is opened,
 * so that a deep tree does not need an open folder a level. */
static char **list_folder(const char *full_path, size_t *count) {
  DIR *folder = opendir(full_path);
  if (!folder)
    return NULL;
  size_t capacity = 16;
  char **names = scan_alloc(NULL, capacity * sizeof(char *));
  *count = 0;
  struct dirent *entry;
  errno = 0;
  while ((entry = readdir(folder))) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
      continue;
    if (*count == capacity)
      names = scan_alloc(names, (capacity *= 2) * sizeof(char *));
    names[(*count)++] = scan_format("%s", entry->d_name);
  }
  int failure = errno;
  closedir(folder);
  if (failure) {
    for (size_t i = 0; i < *count; i++)
      free(names[i]);
    free(names);
    errno = failure;
    return NULL;
  }
  qsort(names, *count, sizeof *names, compare_names);
  return names;
}

/* A link to a file below the root is that file, at its real path. Links to folders are not entered: below the root the
 * folder is walked anyway, and so no loop is possible. What is outside is not the user's to edit: it is named only. */
static void walk_link(struct walk *walk, const char *path, const char *full_path) {
  const char *root = walk->scan->real_root;
  size_t root_length = strcmp(root, "/") == 0 ? 0 : strlen(root);
  char *target = realpath(full_path, NULL);
  struct stat status;
  if (!target || stat(target, &status) != 0) {
    add_note(walk, path, errno == ELOOP ? "link that leads to itself" : "link to nothing", false);
    free(target);
    return;
  }
  bool inside = strncmp(target, root, root_length) == 0 && (target[root_length] == '/' || target[root_length] == '\0');
  if (S_ISREG(status.st_mode) && inside) {
    add_file(walk, scan_format("%s", target + root_length + 1), target);
    return;
  }
  if (!inside && S_ISDIR(status.st_mode))
    add_note(walk, path, "link to a folder outside; name that folder on the command line to include it", false);
  else if (!inside && S_ISREG(status.st_mode))
    add_note(walk, path, "link to a file outside; name that file on the command line to include it", false);
  free(target);
}

static void walk_folder(struct walk *walk, const char *relative, const char *full_path,
                        const struct repository *repository) {
  size_t count;
  char **names = list_folder(full_path, &count);
  if (!names) {
    char *reason = scan_format("cannot be read: %s", strerror(errno));
    add_note(walk, relative, reason, true);
    free(reason);
    return;
  }
  struct repository own;
  bool opened = exists(full_path, ".git") && open_repository(&own, full_path, false);
  if (opened)
    repository = &own;
  for (size_t i = 0; i < count; i++) {
    char *path = join(relative, names[i]), *full = join(full_path, names[i]);
    struct stat status;
    const char *reason;
    if (lstat(full, &status) != 0) {
      if (errno != ENOENT) { /* deleted meanwhile is no failure */
        char *text = scan_format("cannot be read: %s", strerror(errno));
        add_note(walk, path, text, true);
        free(text);
      }
    } else if (S_ISDIR(status.st_mode) && (reason = skip_reason(names[i], full))) {
      if (*reason)
        add_note(walk, path, reason, false);
    } else if ((S_ISDIR(status.st_mode) || S_ISREG(status.st_mode) || S_ISLNK(status.st_mode)) &&
               ignored(repository, full, S_ISDIR(status.st_mode))) {
      walk->scan->ignored_count++;
    } else if (S_ISDIR(status.st_mode)) {
      walk_folder(walk, path, full, repository);
    } else if (S_ISLNK(status.st_mode)) {
      walk_link(walk, path, full);
    } else if (S_ISREG(status.st_mode)) {
      add_file(walk, path, full);
      path = full = NULL;
    }
    free(path);
    free(full);
    free(names[i]);
  }
  free(names);
  if (opened)
    close_repository(&own);
}

static int compare_files(const void *left, const void *right) {
  return strcmp(((const struct source_file *)left)->path, ((const struct source_file *)right)->path);
}

static int compare_notes(const void *left, const void *right) {
  return strcmp(((const struct walk_note *)left)->path, ((const struct walk_note *)right)->path);
}

/* A file that links lead to is there more than once, always at its real path: it is kept once. */
static void sort_once(struct scan *scan) {
  if (scan->notes_count)
    qsort(scan->notes, scan->notes_count, sizeof *scan->notes, compare_notes);
  if (scan->files_count == 0)
    return;
  qsort(scan->files, scan->files_count, sizeof *scan->files, compare_files);
  size_t kept = 1;
  for (size_t i = 1; i < scan->files_count; i++) {
    if (strcmp(scan->files[kept - 1].path, scan->files[i].path) != 0) {
      scan->files[kept++] = scan->files[i];
    } else {
      free(scan->files[i].path);
      free(scan->files[i].full_path);
    }
  }
  scan->files_count = kept;
}

bool walk_root(struct scan *scan, char *message, size_t message_size) {
  char *real = realpath(scan->root, NULL);
  struct stat status;
  if (!real || stat(real, &status) != 0) {
    snprintf(message, message_size, "%s: %s", *scan->root ? scan->root : "''", strerror(errno));
    free(real);
    return false;
  }
  struct walk walk = {.scan = scan};
  if (S_ISREG(status.st_mode)) {
    char *slash = strrchr(real, '/');
    scan->root_is_file = true;
    scan->real_root = slash == real ? scan_format("/") : scan_format("%.*s", (int)(slash - real), real);
    add_file(&walk, scan_format("%s", slash + 1), real);
    return true;
  }
  if (!S_ISDIR(status.st_mode) || faccessat(AT_FDCWD, real, R_OK | X_OK, AT_EACCESS) != 0) {
    snprintf(message, message_size, "%s: %s", scan->root,
             S_ISDIR(status.st_mode) ? strerror(errno) : "is neither a folder nor a regular file");
    free(real);
    return false;
  }
  scan->real_root = real;
  git_libgit2_init();
  /* Only ignore rules are read; nothing of a repository is run, so it may belong to another user. */
  git_libgit2_opts(GIT_OPT_SET_OWNER_VALIDATION, 0);
  struct repository repository;
  bool opened = open_repository(&repository, real, true);
  /* An ignored folder that the user names is meant. */
  bool use = opened && !ignored(&repository, real, true);
  walk_folder(&walk, "", real, use ? &repository : NULL);
  if (opened)
    close_repository(&repository);
  git_libgit2_shutdown();
  sort_once(scan);
  return true;
}
