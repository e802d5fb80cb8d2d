/* scanner/edit.c: what the new content is, and that a file is replaced as a whole or not at all. */
#include "scanner/scanner.h"
#include "tests/unit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

static char message[512];

static char *compose(const char *old, struct edit *edits, size_t count) {
  uint8_t *out;
  size_t size;
  message[0] = '\0';
  if (!edit_compose((const uint8_t *)old, strlen(old), edits, count, &out, &size, message, sizeof message))
    return NULL;
  out = realloc(out, size + 1);
  out[size] = '\0';
  return (char *)out;
}

#define EDIT(from, to, new) ((struct edit){(from), (to), (new), sizeof(new) - 1, 0})

static void check_compose(const char *old, struct edit *edits, size_t count, const char *want) {
  char *have = compose(old, edits, count);
  UNIT_STRINGS(have, want);
  free(have);
}

static void composes(void) {
  check_compose("abcdef", NULL, 0, "abcdef");
  check_compose("", (struct edit[]){EDIT(0, 0, "x")}, 1, "x");
  check_compose("abcdef", (struct edit[]){EDIT(6, 6, "!"), EDIT(0, 1, ""), EDIT(2, 4, "CD!")}, 3, "bCD!ef!");
}

static void insertions_keep_their_order(void) {
  check_compose("ab", (struct edit[]){EDIT(1, 1, "1"), EDIT(1, 1, "2"), EDIT(1, 1, "3")}, 3, "a123b");
  check_compose("ab", (struct edit[]){EDIT(1, 2, "B"), EDIT(1, 1, "+")}, 2, "a+B");
  check_compose("ab", (struct edit[]){EDIT(1, 1, "+"), EDIT(0, 1, "A")}, 2, "A+b");
}

static void equal_edits_collapse(void) {
  check_compose("ab", (struct edit[]){EDIT(0, 1, "A"), EDIT(1, 1, "+"), EDIT(0, 1, "A"), EDIT(1, 1, "+")}, 4, "A+b");
}

static void overlaps_are_refused(void) {
  CU_ASSERT_PTR_NULL(compose("a\nbcd", (struct edit[]){EDIT(2, 4, "x"), EDIT(3, 5, "y")}, 2));
  UNIT_CONTAINS(message, "overlap in line 2");
  CU_ASSERT_PTR_NULL(compose("abcd", (struct edit[]){EDIT(1, 3, "x"), EDIT(1, 3, "y")}, 2));
  CU_ASSERT_PTR_NULL(compose("abcd", (struct edit[]){EDIT(1, 3, "x"), EDIT(2, 2, "y")}, 2));
}

static void outside_is_refused(void) {
  CU_ASSERT_PTR_NULL(compose("abcd", (struct edit[]){EDIT(3, 5, "x")}, 1));
  UNIT_CONTAINS(message, "outside of the file");
  CU_ASSERT_PTR_NULL(compose("abcd", (struct edit[]){EDIT(3, 2, "x")}, 1));
}

/* --- files -------------------------------------------------------------------------------------------------------- */

static char folder[64];

static void open_folder(void) {
  strcpy(folder, "/tmp/test_edit.XXXXXX");
  if (!mkdtemp(folder))
    abort();
}

static void close_folder(void) {
  char command[128];
  snprintf(command, sizeof command, "rm -rf %s", folder);
  if (system(command) != 0)
    abort();
}

static const char *in_folder(const char *name) {
  static char paths[4][256];
  static unsigned next;
  char *path = paths[next++ % 4];
  snprintf(path, sizeof paths[0], "%s/%s", folder, name);
  return path;
}

static void put(const char *name, const char *text) {
  FILE *file = fopen(in_folder(name), "w");
  fputs(text, file);
  fclose(file);
}

static const char *get(const char *name) {
  static char text[4096];
  FILE *file = fopen(in_folder(name), "r");
  if (!file)
    return NULL;
  text[fread(text, 1, sizeof text - 1, file)] = '\0';
  fclose(file);
  return text;
}

static unsigned entries(void) {
  unsigned count = 0;
  DIR *open = opendir(folder);
  for (struct dirent *entry; (entry = readdir(open));)
    count += entry->d_name[0] != '.' || strlen(entry->d_name) > 2;
  closedir(open);
  return count;
}

static bool write_file(const char *name, const char *old, const char *new) {
  message[0] = '\0';
  return edit_write(in_folder(name), (const uint8_t *)old, strlen(old), (const uint8_t *)new, strlen(new), message,
                    sizeof message);
}

static void replaces_and_keeps_the_mode(void) {
  open_folder();
  put("a", "old");
  chmod(in_folder("a"), 0754);
  CU_ASSERT_TRUE(write_file("a", "old", "new content"));
  UNIT_STRINGS(get("a"), "new content");
  struct stat status;
  stat(in_folder("a"), &status);
  CU_ASSERT_EQUAL(status.st_mode & 07777, 0754);
  CU_ASSERT_EQUAL(entries(), 1);
  CU_ASSERT_TRUE(write_file("a", "new content", ""));
  UNIT_STRINGS(get("a"), "");
  close_folder();
}

static void keeps_the_owner(void) {
  if (geteuid() != 0) {
    UNIT_SKIP("only root can make a file of another owner");
    return;
  }
  open_folder();
  put("a", "old");
  if (chown(in_folder("a"), 12345, 23456) != 0)
    abort();
  CU_ASSERT_TRUE(write_file("a", "old", "new"));
  struct stat status;
  stat(in_folder("a"), &status);
  CU_ASSERT_EQUAL(status.st_uid, 12345);
  CU_ASSERT_EQUAL(status.st_gid, 23456);
  close_folder();
}

static void changed_file_is_left_alone(void) {
  open_folder();
  put("a", "somebody's");
  CU_ASSERT_FALSE(write_file("a", "old", "new"));
  UNIT_CONTAINS(message, "changed after it was analysed");
  UNIT_STRINGS(get("a"), "somebody's");
  CU_ASSERT_FALSE(write_file("a", "somebody's and more", "new"));
  CU_ASSERT_FALSE(write_file("a", "somebody", "new"));
  UNIT_STRINGS(get("a"), "somebody's");
  CU_ASSERT_EQUAL(entries(), 1);
  close_folder();
}

static void missing_file_and_folder(void) {
  open_folder();
  CU_ASSERT_FALSE(write_file("none", "old", "new"));
  UNIT_CONTAINS(message, "No such file");
  CU_ASSERT_FALSE(write_file("none/none", "old", "new"));
  CU_ASSERT_EQUAL(entries(), 0);
  put("a", "x");
  mkdir(in_folder("b"), 0755);
  CU_ASSERT_FALSE(write_file("b", "", "new"));
  close_folder();
}

/* What decides is whether the user may write: root may, and then the mode stays. */
static void read_only_file(void) {
  open_folder();
  put("a", "old");
  chmod(in_folder("a"), 0444);
  bool may_write = geteuid() == 0;
  CU_ASSERT_EQUAL(write_file("a", "old", "new"), may_write);
  if (!may_write)
    UNIT_CONTAINS(message, "read-only");
  UNIT_STRINGS(get("a"), may_write ? "new" : "old");
  struct stat status;
  stat(in_folder("a"), &status);
  CU_ASSERT_EQUAL(status.st_mode & 0777, 0444);
  CU_ASSERT_EQUAL(entries(), 1);
  close_folder();
}

/* Another user's view: a child without root's rights. */
static void read_only_for_another_user(void) {
  if (geteuid() != 0) {
    UNIT_SKIP("needs root to become somebody else");
    return;
  }
  open_folder();
  put("a", "old");
  chmod(in_folder("a"), 0644);
  chmod(in_folder("."), 0777);
  pid_t pid = fork();
  if (pid == 0)
    _exit(setuid(65534) != 0 ? 3 : write_file("a", "old", "new") ? 1 : strstr(message, "read-only") ? 0 : 2);
  int status = -1;
  waitpid(pid, &status, 0);
  CU_ASSERT(WIFEXITED(status));
  CU_ASSERT_EQUAL(WEXITSTATUS(status), 0);
  UNIT_STRINGS(get("a"), "old");
  CU_ASSERT_EQUAL(entries(), 1);
  close_folder();
}

static void link_stays_a_link(void) {
  open_folder();
  mkdir(in_folder("real"), 0755);
  put("real/a", "old");
  if (symlink("real/a", in_folder("link")) != 0)
    abort();
  CU_ASSERT_TRUE(write_file("link", "old", "new"));
  UNIT_STRINGS(get("real/a"), "new");
  struct stat status;
  lstat(in_folder("link"), &status);
  CU_ASSERT_TRUE(S_ISLNK(status.st_mode));
  CU_ASSERT_EQUAL(entries(), 2);
  close_folder();
}

/* The other name may be in somebody's package cache: it keeps the old content. */
static void hard_link_is_separated(void) {
  open_folder();
  put("a", "old");
  if (link(in_folder("a"), in_folder("b")) != 0)
    abort();
  CU_ASSERT_TRUE(write_file("a", "old", "new"));
  UNIT_STRINGS(get("a"), "new");
  UNIT_STRINGS(get("b"), "old");
  CU_ASSERT_TRUE(write_file("b", "old", "new"));
  UNIT_STRINGS(get("b"), "new");
  close_folder();
}

/* A full disk, by way of the largest file that a process may write. */
static void failed_write_changes_nothing(void) {
  open_folder();
  put("a", "old");
  pid_t child = fork();
  if (child == 0) {
    static char large[1 << 20];
    memset(large, 'x', sizeof large - 1);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){4096, 4096});
    bool done = write_file("a", "old", large);
    bool said = strstr(message, "writing failed") && strstr(message, "the file is unchanged");
    _exit(done ? 1 : said ? 0 : 2);
  }
  int status;
  waitpid(child, &status, 0);
  CU_ASSERT_TRUE(WIFEXITED(status));
  CU_ASSERT_EQUAL(WEXITSTATUS(status), 0);
  UNIT_STRINGS(get("a"), "old");
  CU_ASSERT_EQUAL(entries(), 1);
  close_folder();
}

/* A stop signal that comes during the replacement waits until it is complete: no temporary file is ever left. */
static void signal_waits(void) {
  open_folder();
  put("a", "old");
  for (unsigned round = 0; round < 30; round++) {
    pid_t child = fork();
    if (child == 0)
      for (const char *old = get("a"), *new;; old = new) {
        new = strcmp(old, "old") == 0 ? "new" : "old";
        if (!write_file("a", strcmp(new, "old") == 0 ? "new" : "old", new))
          _exit(1);
      }
    usleep(2000 + 500 * round);
    kill(child, SIGTERM);
    int status;
    waitpid(child, &status, 0);
    CU_ASSERT_TRUE(WIFSIGNALED(status));
    const char *text = get("a");
    CU_ASSERT_TRUE(text && (strcmp(text, "old") == 0 || strcmp(text, "new") == 0));
    CU_ASSERT_EQUAL(entries(), 1);
  }
  close_folder();
}

/* --- what a killed process leaves --------------------------------------------------------------------------------- */

static void temporary_names(void) {
  static const char *const yes[] = {".sgl-migrate-1-0.tmp", ".sgl-migrate-4194304-99.tmp"};
  static const char *const no[] = {"sgl-migrate-1-0.tmp",
                                   ".sgl-migrate-.tmp",
                                   ".sgl-migrate-1-0.tmp2",
                                   ".sgl-migrate.yaml",
                                   ".sgl-migrate-a.tmp",
                                   ".sgl-migrate-1-0",
                                   "",
                                   ".tmp"};
  for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
    CU_ASSERT_TRUE(edit_is_temporary(yes[i]));
  for (size_t i = 0; i < sizeof no / sizeof *no; i++)
    CU_ASSERT_FALSE(edit_is_temporary(no[i]));
}

static void leftovers_are_removed(void) {
  open_folder();
  put("a", "old");
  put("linked", "x");
  put(".sgl-migrate-1-0.tmp", "half");
  put(".sgl-migrate-2-0.tmp", "being written");
  put(".sgl-migrate-x-0.tmp", "somebody else's");
  if (link(in_folder("linked"), in_folder(".sgl-migrate-3-0.tmp")) != 0 ||
      symlink("linked", in_folder(".sgl-migrate-4-0.tmp")) != 0 || mkdir(in_folder(".sgl-migrate-5-0.tmp"), 0755) != 0)
    abort();
  int locked = open(in_folder(".sgl-migrate-2-0.tmp"), O_RDWR);
  CU_ASSERT_EQUAL(flock(locked, LOCK_EX), 0);
  CU_ASSERT_TRUE(write_file("a", "old", "new"));
  CU_ASSERT_PTR_NULL(get(".sgl-migrate-1-0.tmp"));
  UNIT_STRINGS(get(".sgl-migrate-2-0.tmp"), "being written");
  UNIT_STRINGS(get(".sgl-migrate-x-0.tmp"), "somebody else's");
  UNIT_STRINGS(get("linked"), "x");
  CU_ASSERT_EQUAL(entries(), 7);
  close(locked);
  CU_ASSERT_TRUE(write_file("a", "new", "old"));
  CU_ASSERT_PTR_NULL(get(".sgl-migrate-2-0.tmp"));
  close_folder();
}

/* kill -9 at any moment: the file is the old or the new one, and the next write clears up. */
static void killed_at_any_moment(void) {
  open_folder();
  put("a", "old");
  unsigned left = 0;
  for (unsigned round = 0; round < 60; round++) {
    pid_t child = fork();
    if (child == 0)
      for (const char *old = get("a"), *new;; old = new) {
        new = strcmp(old, "old") == 0 ? "new" : "old";
        if (!write_file("a", strcmp(new, "old") == 0 ? "new" : "old", new))
          _exit(1);
      }
    usleep(1000 + (round * 7919) % 3000);
    kill(child, SIGKILL);
    int status;
    waitpid(child, &status, 0);
    CU_ASSERT_TRUE(WIFSIGNALED(status));
    const char *text = get("a");
    CU_ASSERT_TRUE(text && (strcmp(text, "old") == 0 || strcmp(text, "new") == 0));
    left += entries() > 1;
    CU_ASSERT_TRUE(entries() <= 2);
  }
  CU_ASSERT_TRUE(left > 0); /* else the moments were badly chosen */
  char *now = strdup(get("a"));
  CU_ASSERT_TRUE(write_file("a", now, "end"));
  CU_ASSERT_EQUAL(entries(), 1);
  free(now);
  close_folder();
}

/* Somebody writes into the file while its new content is on its way. */
static void changed_meanwhile(void) {
  open_folder();
  put("a", "old");
  pid_t child = fork();
  if (child == 0) {
    size_t size = (size_t)96 << 20;
    char *large = malloc(size);
    memset(large, 'x', size - 1);
    large[size - 1] = '\0';
    bool done = write_file("a", "old", large);
    _exit(!done && strstr(message, "was changed by somebody else just now") ? 0 : 1);
  }
  while (entries() < 2 && waitpid(child, NULL, WNOHANG) == 0)
    usleep(100);
  put("a", "other");
  int status = 1;
  waitpid(child, &status, 0);
  CU_ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  UNIT_STRINGS(get("a"), "other");
  CU_ASSERT_EQUAL(entries(), 1);
  close_folder();
}

static void extended_attributes_stay(void) {
  open_folder();
  put("a", "old");
  if (setxattr(in_folder("a"), "user.note", "kept", 4, 0) == 0) {
    char value[16] = "";
    CU_ASSERT_TRUE(write_file("a", "old", "new"));
    CU_ASSERT_EQUAL(getxattr(in_folder("a"), "user.note", value, sizeof value), 4);
    CU_ASSERT_EQUAL(memcmp(value, "kept", 4), 0);
  } else {
    CU_ASSERT_EQUAL(errno, ENOTSUP); /* this file system has none */
  }
  close_folder();
}

static const struct unit_test tests[] = {
    {"composes", composes},
    {"insertions_keep_their_order", insertions_keep_their_order},
    {"equal_edits_collapse", equal_edits_collapse},
    {"overlaps_are_refused", overlaps_are_refused},
    {"outside_is_refused", outside_is_refused},
    {"replaces_and_keeps_the_mode", replaces_and_keeps_the_mode},
    {"keeps_the_owner", keeps_the_owner},
    {"changed_file_is_left_alone", changed_file_is_left_alone},
    {"missing_file_and_folder", missing_file_and_folder},
    {"read_only_file", read_only_file},
    {"read_only_for_another_user", read_only_for_another_user},
    {"link_stays_a_link", link_stays_a_link},
    {"hard_link_is_separated", hard_link_is_separated},
    {"failed_write_changes_nothing", failed_write_changes_nothing},
    {"signal_waits", signal_waits},
    {"temporary_names", temporary_names},
    {"leftovers_are_removed", leftovers_are_removed},
    {"killed_at_any_moment", killed_at_any_moment},
    {"changed_meanwhile", changed_meanwhile},
    {"extended_attributes_stay", extended_attributes_stay},
};
UNIT_MAIN("edit", tests)
