/* The git work trees that edited files are in: can git show and undo what fix does, and what are the paths there? */
#include "scanner/fix.h"
#include "scanner/report.h"

#include <git2.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Only status and index are read; nothing of a repository is run, so it may belong to another user. */
static void open_library(void) {
  git_libgit2_init();
  git_libgit2_opts(GIT_OPT_SET_OWNER_VALIDATION, 0);
}

/* The work tree that a folder is in. *prefix: length of its path with the slash. NULL: in none, or in a bare
 * repository. */
static git_repository *open_repository(const char *folder, size_t *prefix) {
  git_repository *repository = NULL;
  if (git_repository_open_ext(&repository, folder, 0, NULL) != 0)
    return NULL;
  const char *work_tree = git_repository_workdir(repository);
  char *real = work_tree ? realpath(work_tree, NULL) : NULL;
  size_t length = real ? strlen(real) : 0;
  bool below = length && strncmp(folder, real, length) == 0 && (folder[length] == '/' || folder[length] == '\0');
  *prefix = length > 1 ? length + 1 : length;
  free(real);
  if (below)
    return repository;
  git_repository_free(repository);
  return NULL;
}

/* --- clean work trees --------------------------------------------------------------------------------------------- */

struct check {
  char *message;
  size_t message_size;
  size_t dirty;                 /* files that are not as they were committed */
  char *checked[16];            /* repositories whose status was asked */
  size_t checked_count, locked; /* of them with a lock */
};

static void say(struct check *check, const char *path, const char *what) {
  if (check->dirty++ == 0)
    snprintf(check->message, check->message_size, "%s: %s", path, what);
}

static const char *state_of(unsigned flags) {
  if (flags & GIT_STATUS_CONFLICTED)
    return "has a merge conflict";
  if (flags & (GIT_STATUS_INDEX_NEW | GIT_STATUS_INDEX_MODIFIED | GIT_STATUS_INDEX_DELETED | GIT_STATUS_INDEX_RENAMED |
               GIT_STATUS_INDEX_TYPECHANGE))
    return "has staged changes";
  if (flags & (GIT_STATUS_WT_MODIFIED | GIT_STATUS_WT_DELETED | GIT_STATUS_WT_TYPECHANGE | GIT_STATUS_WT_RENAMED))
    return "has changes that are not committed";
  return NULL;
}

/* Files that a sparse checkout leaves out are not deleted. */
static bool left_out(git_index *index, const char *path) {
  const git_index_entry *entry = git_index_get_bypath(index, path, 0);
  return entry && (entry->flags_extended & GIT_INDEX_ENTRY_SKIP_WORKTREE);
}

/* Tracked files below the root that are not as they were committed. */
static void check_tracked(struct check *check, git_repository *repository, size_t prefix, const struct scan *scan) {
  git_status_options options;
  git_status_options_init(&options, GIT_STATUS_OPTIONS_VERSION);
  const char *work_tree = git_repository_workdir(repository);
  bool below = strlen(scan->real_root) > prefix && strlen(scan->real_root) >= prefix;
  char *root = below ? scan_format("%s", scan->real_root + prefix) : NULL;
  if (scan->root_is_file) {
    char *file = scan_format("%s%s%s", root ? root : "", root ? "/" : "", scan->files[0].path);
    free(root);
    root = file;
  }
  options.flags = GIT_STATUS_OPT_EXCLUDE_SUBMODULES | GIT_STATUS_OPT_DISABLE_PATHSPEC_MATCH;
  if (root) {
    options.pathspec.strings = &root;
    options.pathspec.count = 1;
  }
  git_status_list *list = NULL;
  git_index *index = NULL;
  if (git_repository_index(&index, repository) == 0 && git_status_list_new(&list, repository, &options) == 0)
    for (size_t i = 0; i < git_status_list_entrycount(list); i++) {
      const git_status_entry *entry = git_status_byindex(list, i);
      const git_diff_delta *delta = entry->index_to_workdir ? entry->index_to_workdir : entry->head_to_index;
      const char *state = state_of(entry->status), *path = delta->old_file.path;
      if (!state || (entry->status == GIT_STATUS_WT_DELETED && left_out(index, path)))
        continue;
      char *full = scan_format("%s%s", work_tree, path);
      say(check, full, state);
      free(full);
    }
  git_status_list_free(list);
  git_index_free(index);
  free(root);
}

/* One status for each repository of the tree. */
static bool first_time(struct check *check, const char *git_folder) {
  for (size_t i = 0; i < check->checked_count; i++)
    if (strcmp(check->checked[i], git_folder) == 0)
      return false;
  if (check->checked_count < sizeof check->checked / sizeof *check->checked)
    check->checked[check->checked_count++] = scan_format("%s", git_folder);
  return true;
}

static void check_file(struct check *check, const struct scan *scan, const struct source_file *file) {
  size_t prefix;
  char *folder = scan_format("%.*s", (int)(strrchr(file->full_path, '/') - file->full_path), file->full_path);
  git_repository *repository = open_repository(*folder ? folder : "/", &prefix);
  free(folder);
  if (!repository)
    return;
  const char *git_folder = git_repository_path(repository), *path = file->full_path + prefix;
  if (first_time(check, git_folder)) {
    char *lock = scan_format("%sindex.lock", git_folder);
    if (access(lock, F_OK) == 0) {
      check->locked++;
      say(check, lock, "another git is at work in this tree, or was killed");
    }
    free(lock);
    check_tracked(check, repository, prefix, scan);
  }
  git_index *index = NULL;
  int ignored = 0;
  if (git_repository_index(&index, repository) == 0 && !git_index_get_bypath(index, path, 0) &&
      git_ignore_path_is_ignored(&ignored, repository, path) == 0 && !ignored)
    say(check, file->full_path, "is not in git yet, so git could not give it back");
  git_index_free(index);
  git_repository_free(repository);
}

bool fix_git_clean(const struct scan *scans, size_t count, char *message, size_t message_size) {
  struct check check = {.message = message, .message_size = message_size};
  open_library();
  for (size_t i = 0; i < count; i++) {
    for (size_t k = 0; k < scans[i].files_count; k++)
      if (scans[i].files[k].result.edits_count)
        check_file(&check, &scans[i], &scans[i].files[k]);
    for (size_t k = 0; k < check.checked_count; k++)
      free(check.checked[k]);
    check.checked_count = 0; /* another root may be another part of the same repository */
  }
  git_libgit2_shutdown();
  if (check.dirty == 0)
    return true;
  size_t length = strlen(message);
  if (length < message_size && check.dirty > 1)
    length += (size_t)snprintf(message + length, message_size - length, " (and %zu more)", check.dirty - 1);
  if (length < message_size)
    snprintf(message + length, message_size - length,
             check.locked == check.dirty ? "; nothing is fixed; wait or remove the lock, or give --force"
                                         : "; nothing is fixed; commit or stash first, or give --force");
  return false;
}

/* --- paths -------------------------------------------------------------------------------------------------------- */

char *fix_git_path(const struct scan *scan, const struct source_file *file) {
  size_t prefix;
  open_library();
  git_repository *repository = open_repository(scan->real_root, &prefix);
  char *path = repository ? scan_format("%s", file->full_path + prefix) : NULL;
  git_repository_free(repository);
  git_libgit2_shutdown();
  if (path)
    return path;
  char *here = getcwd(NULL, 0);
  size_t length = here ? strlen(here) : 0;
  bool below = length && strncmp(file->full_path, here, length) == 0 && file->full_path[length] == '/';
  free(here);
  return scan_format("%s", below ? file->full_path + length + 1 : file->path);
}
