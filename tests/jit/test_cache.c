/* The disk cache with real files: where it lies, whom it trusts, what it does with damaged entries, and many processes.
 */
#include "jit/internal.h"
#include "support.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>

/* The key of a name: some other fact of it, for the hash. */
struct key {
  char text[160];
};

static struct key key_of(const char *name) {
  struct key key;
  snprintf(key.text, sizeof key.text, "abi 1\nkernel test:8x256:float32\nname %s\n", name);
  return key;
}

static bool has(const char *name, const char *want) {
  struct jit_image image = {NULL, 0};
  if (jit_cache_read(JIT_FOLDER_CACHE, key_of(name).text, &image) != JIT_ENTRY_GOOD)
    return false;
  bool same = image.size == strlen(want) && memcmp(image.data, want, image.size) == 0;
  free(image.data);
  return same;
}

static void put(const char *name, const char *text) {
  struct jit_image image = {(void *)(uintptr_t)text, strlen(text)};
  jit_cache_write(key_of(name).text, &image, (struct jit_message){NULL, 0, NULL});
}

/* The folder's files, hidden ones too; the first one's path in `first`. */
static int files_in(const char *folder, struct path *first) {
  int count = 0;
  DIR *d = opendir(folder);
  for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
    if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
      continue;
    if (count++ == 0 && first)
      *first = path_in(folder, e->d_name);
  }
  if (d)
    closedir(d);
  return count;
}

static struct path fresh(void) {
  struct path folder = make_temporary();
  setenv("SGL_KERNEL_JIT_CACHE_DIR", path_in(folder.text, "cache").text, 1);
  return folder;
}

static void write_and_read(void) {
  struct path folder = fresh(), file;
  CU_ASSERT(!has("op", "code"));
  put("op", "code");
  CU_ASSERT(has("op", "code"));
  CU_ASSERT_EQUAL(files_in(path_in(folder.text, "cache").text, &file), 1);
  struct stat s;
  CU_ASSERT_EQUAL(stat(file.text, &s), 0);
  CU_ASSERT_EQUAL(s.st_mode & 07777, 0600);
  CU_ASSERT_EQUAL(stat(path_in(folder.text, "cache").text, &s), 0);
  CU_ASSERT_EQUAL(s.st_mode & 07777, 0700);
  put("op", "newer code"); /* replaces it */
  CU_ASSERT(has("op", "newer code"));
  CU_ASSERT_EQUAL(files_in(path_in(folder.text, "cache").text, NULL), 1);
  CU_ASSERT(!has("other", "newer code"));
  remove_tree(folder);
}

/* Reads and writes that a signal interrupts are repeated: while `interruptions` is above 0, they fail, or do one byte.
 */
static int interruptions;

static bool interrupt(size_t *size) {
  if (interruptions > 0 && interruptions-- % 2 == 0) {
    errno = EINTR;
    return true;
  }
  if (interruptions > 0 && *size > 1)
    *size = 1;
  return false;
}

ssize_t read(int file, void *data, size_t size) {
  return interrupt(&size) ? -1 : syscall(SYS_read, file, data, size);
}

ssize_t write(int file, const void *data, size_t size) {
  return interrupt(&size) ? -1 : syscall(SYS_write, file, data, size);
}

static void interrupted(void) {
  struct path folder = fresh();
  interruptions = 20;
  put("op", "code");
  CU_ASSERT_EQUAL(interruptions, 0);
  CU_ASSERT(has("op", "code"));
  interruptions = 20;
  CU_ASSERT(has("op", "code"));
  CU_ASSERT_EQUAL(interruptions, 0);
  remove_tree(folder);
}

/* Every single bit, and every length. */
static void damaged(void) {
  struct path folder = fresh(), file;
  char content[512];
  put("op", "some code that is not very long");
  CU_ASSERT_EQUAL_FATAL(files_in(path_in(folder.text, "cache").text, &file), 1);
  int f = open(file.text, O_RDWR);
  ssize_t size = read(f, content, sizeof content);
  CU_ASSERT_FATAL(size > 60 && size < (ssize_t)sizeof content);
  int survived = 0;
  for (ssize_t bit = 0; bit < size * 8; bit++) {
    char c = (char)(content[bit / 8] ^ 1 << bit % 8);
    CU_ASSERT_EQUAL(pwrite(f, &c, 1, bit / 8), 1);
    survived += has("op", "some code that is not very long");
    struct jit_image image;
    survived += jit_cache_read(JIT_FOLDER_CACHE, key_of("op").text, &image) == JIT_ENTRY_GOOD;
    CU_ASSERT_EQUAL(pwrite(f, &content[bit / 8], 1, bit / 8), 1);
  }
  CU_ASSERT_EQUAL(survived, 0);
  CU_ASSERT(has("op", "some code that is not very long"));
  for (ssize_t length = size - 1; length >= 0; length--) {
    CU_ASSERT_EQUAL(ftruncate(f, length), 0);
    survived += has("op", "some code that is not very long");
  }
  CU_ASSERT_EQUAL(survived, 0);
  CU_ASSERT_EQUAL(pwrite(f, content, (size_t)size, 0), size);
  CU_ASSERT_EQUAL(pwrite(f, "", 1, size), 1); /* one byte more */
  CU_ASSERT(!has("op", "some code that is not very long"));
  put("op", "whole again");
  CU_ASSERT(has("op", "whole again"));
  close(f);
  remove_tree(folder);
}

/* A file under the right name whose key is another one, as after a collision of hashes. */
static void other_key(void) {
  struct path folder = fresh(), mine, other;
  put("op", "mine");
  struct path cache = path_in(folder.text, "cache");
  CU_ASSERT_EQUAL_FATAL(files_in(cache.text, &mine), 1);
  CU_ASSERT_EQUAL(unlink(mine.text), 0);
  struct jit_image image = {(void *)(uintptr_t) "theirs", 6};
  jit_cache_write(key_of("oq").text, &image, (struct jit_message){NULL, 0, NULL});
  CU_ASSERT_EQUAL_FATAL(files_in(cache.text, &other), 1);
  CU_ASSERT_EQUAL(rename(other.text, mine.text), 0);
  CU_ASSERT_EQUAL(jit_cache_read(JIT_FOLDER_CACHE, key_of("op").text, &image), JIT_ENTRY_RENAMED);
  remove_tree(folder);
}

/* A folder or file that others may write, or that is a link, is not read and not written. */
static void not_to_be_trusted(void) {
  struct path folder = fresh(), cache = path_in(folder.text, "cache"), file;
  put("op", "code");
  CU_ASSERT(has("op", "code"));
  static const mode_t open_to_others[] = {0720, 0702, 0777, 01777};
  for (int i = 0; i < 4; i++) {
    CU_ASSERT_EQUAL(chmod(cache.text, open_to_others[i]), 0);
    CU_ASSERT(!has("op", "code"));
    put("new", "code");
    CU_ASSERT_EQUAL(files_in(cache.text, &file), 1);
  }
  CU_ASSERT_EQUAL(chmod(cache.text, 0755), 0);
  CU_ASSERT(has("op", "code"));
  CU_ASSERT_EQUAL(chmod(file.text, 0620), 0);
  CU_ASSERT(!has("op", "code"));
  CU_ASSERT_EQUAL(chmod(file.text, 0644), 0);
  CU_ASSERT(has("op", "code"));
  struct path moved = path_in(folder.text, "moved");
  CU_ASSERT_EQUAL(rename(file.text, moved.text), 0); /* the file is a link to itself elsewhere */
  CU_ASSERT_EQUAL(symlink(moved.text, file.text), 0);
  CU_ASSERT(!has("op", "code"));
  put("op", "code"); /* replaces the link, not what it points to */
  struct stat s;
  CU_ASSERT(lstat(file.text, &s) == 0 && S_ISREG(s.st_mode));
  CU_ASSERT(has("op", "code"));
  struct path real = path_in(folder.text, "real"); /* the folder is a link */
  CU_ASSERT_EQUAL(rename(cache.text, real.text), 0);
  CU_ASSERT_EQUAL(symlink(real.text, cache.text), 0);
  CU_ASSERT(!has("op", "code"));
  put("new", "code");
  CU_ASSERT_EQUAL(files_in(real.text, NULL), 1);
  remove_tree(folder);
  folder = fresh(); /* a fifo under an entry's name does not hang a reader */
  put("op", "code");
  CU_ASSERT_EQUAL_FATAL(files_in(path_in(folder.text, "cache").text, &file), 1);
  CU_ASSERT_EQUAL(unlink(file.text), 0);
  CU_ASSERT_EQUAL(mkfifo(file.text, 0600), 0);
  CU_ASSERT(!has("op", "code"));
  remove_tree(folder);
}

/* Needs the right to give files away. */
static void other_owner(void) {
  if (geteuid() != 0) {
    UNIT_SKIP("only root can make a folder of another user");
    return;
  }
  struct path folder = fresh(), cache = path_in(folder.text, "cache"), file;
  put("op", "code");
  CU_ASSERT_EQUAL_FATAL(files_in(cache.text, &file), 1);
  CU_ASSERT_EQUAL(chown(cache.text, 12345, 12345), 0);
  CU_ASSERT(!has("op", "code"));
  put("new", "code");
  CU_ASSERT_EQUAL(files_in(cache.text, NULL), 1);
  CU_ASSERT_EQUAL(chown(cache.text, 0, 0), 0);
  CU_ASSERT(has("op", "code"));
  CU_ASSERT_EQUAL(chown(file.text, 12345, 12345), 0);
  CU_ASSERT(!has("op", "code"));
  remove_tree(folder);
}

static void where(void) {
  struct path folder = make_temporary(), before;
  CU_ASSERT_FATAL(getcwd(before.text, sizeof before.text) != NULL && chdir(folder.text) == 0);
  unsetenv("SGL_KERNEL_JIT_CACHE_DIR");
  setenv("XDG_CACHE_HOME", path_in(folder.text, "xdg").text, 1);
  setenv("HOME", path_in(folder.text, "home").text, 1);
  put("op", "xdg");
  CU_ASSERT_EQUAL(files_in(path_in(folder.text, "xdg/sgl-kernel-jit").text, NULL), 1);
  setenv("XDG_CACHE_HOME", "relative", 1); /* to be ignored, says the XDG specification */
  CU_ASSERT(!has("op", "xdg"));
  put("op", "home");
  CU_ASSERT(has("op", "home"));
  CU_ASSERT_EQUAL(files_in(path_in(folder.text, "home/.cache/sgl-kernel-jit").text, NULL), 1);
  CU_ASSERT_NOT_EQUAL(access("relative", F_OK), 0);
  setenv("SGL_KERNEL_JIT_CACHE_DIR", "", 1); /* as if unset */
  CU_ASSERT(has("op", "home"));
  setenv("SGL_KERNEL_JIT_CACHE_DIR", path_in(folder.text, "own/deep/er").text, 1);
  put("op", "own");
  CU_ASSERT_EQUAL(files_in(path_in(folder.text, "own/deep/er").text, NULL), 1);
  setenv("SGL_KERNEL_JIT_CACHE_DIR", "relative", 1); /* none, rather than one in every working directory */
  put("op", "relative");
  CU_ASSERT(!has("op", "relative"));
  CU_ASSERT_NOT_EQUAL(access("relative", F_OK), 0);
  unsetenv("SGL_KERNEL_JIT_CACHE_DIR");
  unsetenv("XDG_CACHE_HOME");
  unsetenv("HOME");
  put("op", "nowhere");
  CU_ASSERT(!has("op", "nowhere"));
  CU_ASSERT_EQUAL(chdir(before.text), 0);
  remove_tree(folder);
}

/* Nothing can be written: no entry, no error, no rest. */
static void nowhere_to_write(void) {
  struct path folder = make_temporary(), file = path_in(folder.text, "file");
  int f = open(file.text, O_CREAT | O_WRONLY, 0600);
  close(f);
  setenv("SGL_KERNEL_JIT_CACHE_DIR", file.text, 1); /* a file where the folder should be */
  put("op", "code");
  CU_ASSERT(!has("op", "code"));
  setenv("SGL_KERNEL_JIT_CACHE_DIR", path_in(file.text, "below").text, 1);
  put("op", "code");
  CU_ASSERT(!has("op", "code"));
  setenv("SGL_KERNEL_JIT_CACHE_DIR", "/proc/sgl-kernel-jit", 1); /* where nobody can write, root neither */
  put("op", "code");
  CU_ASSERT(!has("op", "code"));
  char *longest = malloc(20000);
  memset(longest, 'a', 19999);
  longest[0] = '/';
  longest[19999] = '\0';
  setenv("SGL_KERNEL_JIT_CACHE_DIR", longest, 1);
  put("op", "code");
  CU_ASSERT(!has("op", "code"));
  free(longest);
  CU_ASSERT_EQUAL(files_in(folder.text, NULL), 1);
  remove_tree(folder);
}

/* What stands in the way of the rename leaves no half-made file behind. */
static void rename_fails(void) {
  struct path folder = fresh(), cache = path_in(folder.text, "cache"), file;
  put("op", "code");
  CU_ASSERT_EQUAL_FATAL(files_in(cache.text, &file), 1);
  CU_ASSERT_EQUAL(unlink(file.text), 0);
  CU_ASSERT_EQUAL(mkdir(file.text, 0700), 0);
  put("op", "code");
  CU_ASSERT(!has("op", "code"));
  CU_ASSERT_EQUAL(files_in(cache.text, NULL), 1);
  remove_tree(folder);
}

static void read_only_body(void) {
  if (geteuid() == 0 && setuid(65534) != 0)
    _exit(1);
  put("op", "code");
  CU_ASSERT(!has("op", "code"));
}

static void read_only_home(void) {
  struct path folder = make_temporary();
  CU_ASSERT_EQUAL(chmod(folder.text, 0555), 0);
  unsetenv("SGL_KERNEL_JIT_CACHE_DIR");
  unsetenv("XDG_CACHE_HOME");
  setenv("HOME", folder.text, 1);
  in_child(read_only_body);
  CU_ASSERT_EQUAL(files_in(folder.text, NULL), 0);
  CU_ASSERT_EQUAL(chmod(folder.text, 0755), 0);
  remove_tree(folder);
}

/* Many processes write and read one entry; a reader sees a whole one or none, and nothing else is left behind. Some are
 * killed in the middle: what they leave is hidden, and disturbs nobody. */
static void many_processes(void) {
  enum { PROCESSES = 8, ROUNDS = 60, SIZE = 200000 };
  struct path folder = fresh(), cache = path_in(folder.text, "cache");
  pid_t pids[PROCESSES];
  fflush(stdout);
  for (int p = 0; p < PROCESSES; p++) {
    pids[p] = fork();
    if (pids[p] == 0) {
      char *code = malloc(SIZE);
      int seen = 0, broken = 0;
      for (int i = 0; i < ROUNDS; i++) {
        struct jit_image image = {code, SIZE};
        memset(code, 'a' + (p + i) % 26, SIZE);
        jit_cache_write(key_of("op").text, &image, (struct jit_message){NULL, 0, NULL});
        if (jit_cache_read(JIT_FOLDER_CACHE, key_of("op").text, &image) != JIT_ENTRY_GOOD)
          continue;
        const char *data = image.data;
        seen++;
        broken += image.size != SIZE || memcmp(data, data + 1, SIZE - 1) != 0;
        free(image.data);
      }
      free(code);
      _exit(broken ? 2 : seen == ROUNDS ? 0 : 1);
    }
  }
  usleep(20000);
  kill(pids[0], SIGKILL);
  for (int p = 0; p < PROCESSES; p++) {
    int status = -1;
    waitpid(pids[p], &status, 0);
    if (p > 0)
      CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  int left = 0;
  DIR *d = opendir(cache.text);
  for (struct dirent *e = readdir(d); e; e = readdir(d))
    left += e->d_name[0] != '.';
  closedir(d);
  CU_ASSERT_EQUAL(left, 1);
  CU_ASSERT(files_in(cache.text, NULL) <= 2);
  remove_tree(folder);
}

static const struct unit_test tests[] = {
    {"write_and_read", write_and_read},
    {"interrupted", interrupted},
    {"damaged", damaged},
    {"other_key", other_key},
    {"not_to_be_trusted", not_to_be_trusted},
    {"other_owner", other_owner},
    {"where", where},
    {"nowhere_to_write", nowhere_to_write},
    {"rename_fails", rename_fails},
    {"read_only_home", read_only_home},
    {"many_processes", many_processes},
};
UNIT_MAIN("jit/cache", tests)
