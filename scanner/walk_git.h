/* What git ignores (walk_git.c). */
#ifndef SGL_SCANNER_WALK_GIT_H
#define SGL_SCANNER_WALK_GIT_H

#include <stdbool.h>

void repositories_begin(void);
void repositories_end(void);

/* The repository that a folder belongs to; NULL when it is in none. It is freed when no folder that is still to be
 * looked at has it any more. */
struct repository;
/* One folder has it. */
struct repository *repository_open(const char *folder, bool search_upwards);
/* One folder more, one less. NULL: nothing. */
void repository_share(struct repository *repository);
void repository_leave(struct repository *repository);
/* Ignored and not tracked? For all workers. */
bool repository_ignores(struct repository *repository, const char *full_path, bool folder);

#endif
