/* Which files belong to the tree. A file is listed once, at its real path below the root. */
#include "scanner/walk.h"
#include "scanner/settings.h"

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

/* full_path is owned; the path begins `relative` bytes in. */
static void add_file(struct walk *walk, char *full_path, size_t relative) {
  if (walk->files_count == walk->files_capacity) {
    walk->files_capacity = walk->files_capacity ? 2 * walk->files_capacity : 256;
    walk->files = scan_alloc(walk->files, walk->files_capacity * sizeof(struct source_file *));
  }
  struct source_file *file = scan_alloc(NULL, sizeof *file);
  char *path = full_path + relative;
  *file = (struct source_file){.path = path, .full_path = full_path, .language = walk_language(path)};
  walk->files[walk->files_count++] = file;
  if (walk->each)
    walk->each(walk->user, file);
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

/* --- git ---------------------------------------------------------------------------------------------------------- */

/* libgit2 with mbed TLS reads all certificates of the system when it starts (5 ms), for connections that are never made
 * here. This takes the place of the function that would read them. */
int mbedtls_x509_crt_parse_file(void *chain, const char *path);
__attribute__((visibility("default"))) int mbedtls_x509_crt_parse_file(void *chain, const char *path) {
  (void)chain, (void)path;
  return 0;
}

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

/* Ignored and not tracked. The index answers for nearly all paths, and fast; an ignore look-up reads files. */
static bool ignored(const struct repository *repository, const char *full_path, bool folder) {
  if (!repository || strlen(full_path) <= repository->prefix)
    return false;
  const char *path = full_path + repository->prefix;
  if (!folder && git_index_get_bypath(repository->index, path, 0))
    return false;
  char *with_slash = folder ? scan_format("%s/", path) : NULL;
  int result = 0;
  bool yes = (!folder || git_index_find_prefix(NULL, repository->index, with_slash) != 0) &&
             git_ignore_path_is_ignored(&result, repository->git, folder ? with_slash : path) == 0 && result;
  free(with_slash);
  return yes;
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

/* What is in a folder, read to the end before anything of it is opened, so that a deep tree does not need an open
 * folder a level. */
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

/* false with errno set when the folder cannot be read. Not by readdir, which takes two more calls of the kernel and a
 * buffer for each folder. */
static bool list_folder(const char *full_path, struct listing *listing) {
  *listing = (struct listing){0};
  int fd = open(full_path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0)
    return false;
  _Alignas(struct dirent64) char buffer[32768];
  ssize_t got;
  while ((got = getdents64(fd, buffer, sizeof buffer)) > 0)
    for (const char *at = buffer; at < buffer + got;) {
      const struct dirent64 *entry = (const void *)at;
      add_entry(listing, fd, entry);
      at += entry->d_reclen;
    }
  int failure = got < 0 ? errno : 0;
  close(fd);
  if (failure)
    free(listing->names);
  errno = failure;
  return failure == 0;
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
    add_file(walk, target, root_length + 1);
    return;
  }
  if (!inside && S_ISDIR(status.st_mode))
    add_note(walk, path, "link to a folder outside; name that folder on the command line to include it", false);
  else if (!inside && S_ISREG(status.st_mode))
    add_note(walk, path, "link to a file outside; name that file on the command line to include it", false);
  free(target);
}

/* What is neither file, folder nor link is no source, and opening it could wait for ever. */
static const char *special(unsigned char type) {
  return type == DT_FIFO ? "named pipe" : type == DT_SOCK ? "socket" : type == DT_UNKNOWN ? "unknown kind" : "device";
}

static void note_failure(struct walk *walk, const char *relative) {
  if (errno == ENOENT && *relative)
    return; /* deleted meanwhile is no failure */
  char *reason = scan_format("cannot be read: %s", strerror(errno));
  add_note(walk, relative, reason, true);
  free(reason);
}

/* The folder's path is root, of which the relative one begins `relative` bytes in. `found`: not the root itself. */
static void walk_folder(struct walk *walk, const char *full_path, size_t relative, const struct repository *repository,
                        bool found) {
  struct listing listing;
  bool listed = list_folder(full_path, &listing);
  int failure = errno;
  const char *path = strlen(full_path) > relative ? full_path + relative : "";
  const char *reason = listed && found ? skip_content(full_path, &listing) : NULL;
  bool is_ignored = !reason && found && ignored(repository, full_path, true);
  errno = failure;
  if (reason)
    add_note(walk, path, reason, false);
  else if (is_ignored)
    walk->scan->ignored_count++;
  else if (!listed)
    note_failure(walk, path);
  if (!listed || reason || is_ignored) {
    free(listed ? listing.names : NULL);
    return;
  }
  struct repository own;
  bool opened = has_name(&listing, ".git") && open_repository(&own, full_path, false);
  if (opened)
    repository = &own;
  for (const char *name = NULL; (name = next_name(&listing, name));) {
    char *full = join(full_path, name);
    unsigned char type = (unsigned char)name[-1];
    const struct settings *settings = walk->scan->settings;
    if (edit_is_temporary(name)) {
      /* not a part of the tree */
    } else if (settings && settings_exclude(settings, full + relative)) {
      add_note(walk, full + relative, "excluded by " SETTINGS_NAME, false);
    } else if (type == DT_DIR) {
      const char *skipped = skip_name(name);
      if (!skipped)
        walk_folder(walk, full, relative, repository, true);
      else if (*skipped)
        add_note(walk, full + relative, skipped, false);
    } else if (ignored(repository, full, false)) {
      walk->scan->ignored_count++;
    } else if (type == DT_REG) {
      add_file(walk, full, relative);
      full = NULL;
    } else if (type == DT_LNK) {
      walk_link(walk, full + relative, full);
    } else {
      add_note(walk, full + relative, special(type), false);
    }
    free(full);
  }
  free(listing.names);
  if (opened)
    close_repository(&own);
}

static int compare_files(const void *left, const void *right) {
  return strcmp((*(struct source_file *const *)left)->path, (*(struct source_file *const *)right)->path);
}

static int compare_notes(const void *left, const void *right) {
  return strcmp(((const struct walk_note *)left)->path, ((const struct walk_note *)right)->path);
}

/* What the settings ask for is looked at whatever it is: build output, ignored by git. */
static void walk_included(struct walk *walk, const char *real_root, size_t relative) {
  const struct settings *settings = walk->scan->settings;
  for (unsigned i = 0; settings && i < settings->include_count; i++) {
    char *full = join(real_root, settings->include[i]);
    struct stat status;
    if (lstat(full, &status) == 0 && S_ISREG(status.st_mode)) {
      add_file(walk, full, relative);
      continue;
    }
    walk_folder(walk, full, relative, NULL, false);
    free(full);
  }
}

bool walk_root(struct walk *walk, char *message, size_t message_size) {
  struct scan *scan = walk->scan;
  char *real = realpath(scan->root, NULL);
  struct stat status;
  if (!real || stat(real, &status) != 0) {
    snprintf(message, message_size, "%s: %s", *scan->root ? scan->root : "''", strerror(errno));
    free(real);
    return false;
  }
  if (S_ISREG(status.st_mode)) {
    size_t folder = (size_t)(strrchr(real, '/') - real);
    scan->root_is_file = true;
    scan->real_root = folder == 0 ? scan_format("/") : scan_format("%.*s", (int)folder, real);
    add_file(walk, real, folder + 1);
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
  walk_folder(walk, real, strcmp(real, "/") == 0 ? 1 : strlen(real) + 1, use ? &repository : NULL, false);
  if (opened)
    close_repository(&repository);
  walk_included(walk, real, strcmp(real, "/") == 0 ? 1 : strlen(real) + 1);
  git_libgit2_shutdown();
  return true;
}

/* A file that links lead to is there more than once, always at its real path: it is kept once. */
void walk_close(struct walk *walk) {
  struct scan *scan = walk->scan;
  if (scan->notes_count)
    qsort(scan->notes, scan->notes_count, sizeof *scan->notes, compare_notes);
  if (walk->files_count)
    qsort(walk->files, walk->files_count, sizeof(struct source_file *), compare_files);
  scan->files = scan_alloc(NULL, walk->files_count * sizeof *scan->files);
  for (size_t i = 0; i < walk->files_count; i++) {
    if (scan->files_count && strcmp(scan->files[scan->files_count - 1].path, walk->files[i]->path) == 0)
      scan_free_file(walk->files[i]);
    else
      scan->files[scan->files_count++] = *walk->files[i];
    free(walk->files[i]);
  }
  free(walk->files);
}
