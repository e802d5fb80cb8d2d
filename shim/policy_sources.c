#include "shim/policy_sources.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *policy_system_file = "/etc/sgl-kernel-compat/policy";

static void fail(struct policy_source *source, const char *problem) {
  snprintf(source->problem, sizeof source->problem, "%s", problem);
}

static void fail_errno(struct policy_source *source, int error) {
  char text[128];
  snprintf(source->problem, sizeof source->problem, "cannot be read: %s", strerror_r(error, text, sizeof text));
}

/* Why a file is not taken; NULL when it is. Group writers are others, unless it is the user's own group, which with
 * umask 002 he is alone in. */
static const char *refusal(const struct stat *s) {
  if (!S_ISREG(s->st_mode))
    return "is no regular file";
  if (s->st_uid != 0 && s->st_uid != geteuid())
    return "belongs to another user; it must be root's or this user's";
  if (s->st_mode & S_IWOTH || (s->st_mode & S_IWGRP && s->st_gid != getegid()))
    return "may be written by others; chmod go-w it";
  if (s->st_size > POLICY_MOST)
    return "is larger than a mebibyte";
  return NULL;
}

static void read_text(struct policy_source *source, int file) {
  char *text = malloc(POLICY_MOST + 1);
  size_t size = 0;
  ssize_t got = -1;
  while (text && size <= POLICY_MOST &&
         ((got = read(file, text + size, POLICY_MOST + 1 - size)) > 0 || (got < 0 && errno == EINTR)))
    size += got > 0 ? (size_t)got : 0;
  int error = errno;
  if (text && got >= 0 && size <= POLICY_MOST) {
    char *exact = realloc(text, size + 1);
    source->text = exact ? exact : text;
    source->size = size;
    return;
  }
  free(text);
  if (!text)
    fail(source, "out of memory");
  else if (size > POLICY_MOST)
    fail(source, "is larger than a mebibyte");
  else
    fail_errno(source, error);
}

static void read_file(struct policy_source *source, bool must_be_there) {
  if (!source->name[0])
    return;
  struct stat s;
  int file = open(source->name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK); /* a pipe without a writer: no wait */
  if (file < 0) {
    source->missing = errno == ENOENT || errno == ENOTDIR;
    if (!source->missing || must_be_there)
      fail_errno(source, errno);
    return;
  }
  if (fstat(file, &s) != 0)
    fail_errno(source, errno);
  else if (refusal(&s))
    fail(source, refusal(&s));
  else
    read_text(source, file);
  close(file);
}

static void find_user_file(struct policy_source *source) {
  const char *folder = secure_getenv("XDG_CONFIG_HOME"), *home = secure_getenv("HOME");
  int length = 0;
  if (folder && folder[0] == '/') /* other values are to be ignored, as the standard says */
    length = snprintf(source->name, sizeof source->name, "%s/sgl-kernel-compat/policy", folder);
  else if (home && home[0] == '/')
    length = snprintf(source->name, sizeof source->name, "%s/.config/sgl-kernel-compat/policy", home);
  if ((size_t)length >= sizeof source->name)
    source->name[0] = '\0';
}

void policy_sources_read(struct policy_source sources[POLICY_SOURCES]) {
  memset(sources, 0, sizeof *sources * POLICY_SOURCES);
  snprintf(sources[POLICY_SYSTEM_FILE].name, sizeof sources[0].name, "%s", policy_system_file);
  read_file(&sources[POLICY_SYSTEM_FILE], false);

  find_user_file(&sources[POLICY_USER_FILE]);
  read_file(&sources[POLICY_USER_FILE], false);

  const char *named = secure_getenv("SGL_KERNEL_COMPAT_POLICY_FILE");
  if (named && strlen(named) >= sizeof sources[0].name)
    fail(&sources[POLICY_NAMED_FILE], "the path is too long");
  else if (named)
    strcpy(sources[POLICY_NAMED_FILE].name, named);
  read_file(&sources[POLICY_NAMED_FILE], true);

  const char *directives = secure_getenv("SGL_KERNEL_COMPAT_POLICY");
  struct policy_source *variable = &sources[POLICY_VARIABLE];
  strcpy(variable->name, "SGL_KERNEL_COMPAT_POLICY");
  variable->missing = !directives;
  variable->text = directives ? strdup(directives) : NULL;
  if (directives && !variable->text)
    fail(variable, "out of memory");
  variable->size = variable->text ? strlen(variable->text) : 0;
}

void policy_sources_free(struct policy_source sources[POLICY_SOURCES]) {
  for (int i = 0; i < POLICY_SOURCES; i++)
    free(sources[i].text);
}
