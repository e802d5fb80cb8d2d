/* What git ignores, by libgit2. */
#include "scanner/walk_git.h"
#include "scanner/scanner.h"

#include <git2.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct repository {
  git_repository *git;
  git_index *index;
  size_t prefix;         /* length of its work tree's path, with the slash */
  atomic_uint folders;   /* that are still to be looked at */
  pthread_mutex_t mutex; /* libgit2's objects are used by one thread at a time */
};

/* libgit2 with mbed TLS reads all certificates of the system when it starts (5 ms), for connections that are never made
 * here. This takes the place of the function that would read them. */
int mbedtls_x509_crt_parse_file(void *chain, const char *path);
__attribute__((visibility("default"))) int mbedtls_x509_crt_parse_file(void *chain, const char *path) {
  (void)chain, (void)path;
  return 0;
}

void repositories_begin(void) {
  git_libgit2_init();
  /* Only ignore rules are read; nothing of a repository is run, so it may belong to another user. */
  git_libgit2_opts(GIT_OPT_SET_OWNER_VALIDATION, 0);
}

void repositories_end(void) {
  git_libgit2_shutdown();
}

struct repository *repository_open(const char *folder, bool search_upwards) {
  git_repository *git;
  git_index *index;
  if (git_repository_open_ext(&git, folder, search_upwards ? 0 : GIT_REPOSITORY_OPEN_NO_SEARCH, NULL) != 0)
    return NULL;
  const char *work_tree = git_repository_workdir(git);
  char *real = work_tree ? realpath(work_tree, NULL) : NULL;
  if (!real || git_repository_index(&index, git) != 0) {
    free(real);
    git_repository_free(git);
    return NULL;
  }
  struct repository *repository = scan_alloc(NULL, sizeof *repository);
  *repository =
      (struct repository){.git = git, .index = index, .prefix = strcmp(real, "/") == 0 ? 1 : strlen(real) + 1};
  atomic_init(&repository->folders, 1);
  pthread_mutexattr_t spinning; /* it is held for less time than a sleep takes */
  pthread_mutexattr_init(&spinning);
  pthread_mutexattr_settype(&spinning, PTHREAD_MUTEX_ADAPTIVE_NP);
  pthread_mutex_init(&repository->mutex, &spinning);
  pthread_mutexattr_destroy(&spinning);
  free(real);
  return repository;
}

void repository_share(struct repository *repository) {
  if (repository)
    atomic_fetch_add(&repository->folders, 1);
}

void repository_leave(struct repository *repository) {
  if (!repository || atomic_fetch_sub(&repository->folders, 1) > 1)
    return;
  git_index_free(repository->index);
  git_repository_free(repository->git);
  pthread_mutex_destroy(&repository->mutex);
  free(repository);
}

/* The index answers for nearly all paths, and fast; an ignore look-up reads files. */
bool repository_ignores(struct repository *repository, const char *full_path, bool folder) {
  if (!repository || strlen(full_path) <= repository->prefix)
    return false;
  const char *path = full_path + repository->prefix;
  char *with_slash = folder ? scan_format("%s/", path) : NULL;
  int result = 0;
  pthread_mutex_lock(&repository->mutex);
  bool tracked = folder ? git_index_find_prefix(NULL, repository->index, with_slash) == 0
                        : git_index_get_bypath(repository->index, path, 0) != NULL;
  bool yes =
      !tracked && git_ignore_path_is_ignored(&result, repository->git, folder ? with_slash : path) == 0 && result;
  pthread_mutex_unlock(&repository->mutex);
  free(with_slash);
  return yes;
}
