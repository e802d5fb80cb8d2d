/* The disk cache with real files: where it lies, whom it trusts, what it does with damaged entries, and many processes.
 */
#include "jit/internal.h"
#include "support.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

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
  CU_ASSERT_EQUAL(files_with(path_in(folder.text, "cache").text, "", &file), 1);
  struct stat s;
  CU_ASSERT_EQUAL(stat(file.text, &s), 0);
  CU_ASSERT_EQUAL(s.st_mode & 07777, 0600);
  CU_ASSERT_EQUAL(stat(path_in(folder.text, "cache").text, &s), 0);
  CU_ASSERT_EQUAL(s.st_mode & 07777, 0700);
  put("op", "newer code"); /* replaces it */
  CU_ASSERT(has("op", "newer code"));
  CU_ASSERT_EQUAL(files_with(path_in(folder.text, "cache").text, "", NULL), 1);
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

/* A process that is to die in the middle of a write: at this call of write, fsync or renameat. 0: never. */
static int calls_to_death;

static void step_towards_death(void) {
  if (calls_to_death > 0 && --calls_to_death == 0)
    raise(SIGKILL);
}

ssize_t write(int file, const void *data, size_t size) {
  step_towards_death();
  return interrupt(&size) ? -1 : syscall(SYS_write, file, data, size);
}

int fsync(int file) {
  step_towards_death();
  return (int)syscall(SYS_fsync, file);
}

/* Where this names an entry, somebody else writes it just before ours gets its name. */
static const char *before_rename;

int renameat(int old_folder, const char *old_name, int new_folder, const char *new_name) {
  const char *name = before_rename;
  step_towards_death();
  before_rename = NULL;
  if (name)
    put(name, "of somebody else");
  return (int)syscall(SYS_renameat2, old_folder, old_name, new_folder, new_name, 0);
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

/* What jit_entry_read says of the only entry of the cache. */
static enum jit_entry_fault fault_of(const char *file) {
  struct jit_folder cache;
  struct jit_entry entry;
  jit_folder_find(JIT_FOLDER_CACHE, &cache);
  int opened = jit_folder_open(&cache, false);
  enum jit_entry_fault fault = jit_entry_read(&cache, opened, strrchr(file, '/') + 1, &entry);
  CU_ASSERT((entry.key != NULL) == (fault == JIT_ENTRY_GOOD));
  jit_entry_free(&entry);
  close(opened);
  return fault;
}

static struct jit_image read_op(enum jit_entry_fault *fault) {
  struct jit_image image = {NULL, 0};
  *fault = jit_cache_read(JIT_FOLDER_CACHE, key_of("op").text, &image);
  return image;
}

/* Every single bit, and every length; and that the reason is the right one. */
static void damaged(void) {
  enum { MAGIC = 8, SIZES = 24 }; /* where the header's parts end */
  static const char text[] = "some code that is not very long";
  struct path folder = fresh(), file;
  enum jit_entry_fault fault;
  char content[512];
  put("op", text);
  CU_ASSERT_EQUAL_FATAL(files_with(path_in(folder.text, "cache").text, "", &file), 1);
  int f = open(file.text, O_RDWR);
  ssize_t size = read(f, content, sizeof content);
  CU_ASSERT_FATAL(size > 60 && size < (ssize_t)sizeof content);
  int survived = 0, wrong_reason = 0;
  for (ssize_t bit = 0; bit < size * 8; bit++) {
    char c = (char)(content[bit / 8] ^ 1 << bit % 8);
    CU_ASSERT_EQUAL(pwrite(f, &c, 1, bit / 8), 1);
    survived += read_op(&fault).data != NULL || fault == JIT_ENTRY_GOOD;
    wrong_reason += bit / 8 < MAGIC   ? fault != JIT_ENTRY_FOREIGN
                    : bit / 8 < SIZES ? fault != JIT_ENTRY_CHECKSUM && fault != JIT_ENTRY_TRUNCATED
                                      : fault != JIT_ENTRY_CHECKSUM;
    CU_ASSERT_EQUAL(pwrite(f, &content[bit / 8], 1, bit / 8), 1);
  }
  CU_ASSERT_EQUAL(survived, 0);
  CU_ASSERT_EQUAL(wrong_reason, 0);
  CU_ASSERT(has("op", text));
  for (ssize_t length = size - 1; length >= 0; length--) {
    CU_ASSERT_EQUAL(ftruncate(f, length), 0);
    survived += read_op(&fault).data != NULL;
    wrong_reason += fault != JIT_ENTRY_TRUNCATED;
  }
  CU_ASSERT_EQUAL(survived, 0);
  CU_ASSERT_EQUAL(wrong_reason, 0);
  CU_ASSERT_EQUAL(pwrite(f, content, (size_t)size, 0), size);
  CU_ASSERT_EQUAL(pwrite(f, "", 1, size), 1); /* one byte more */
  CU_ASSERT_EQUAL(fault_of(file.text), JIT_ENTRY_CHECKSUM);
  CU_ASSERT_EQUAL(ftruncate(f, (off_t)1 << 40), 0); /* a sparse file of a terabyte is not read */
  CU_ASSERT_EQUAL(fault_of(file.text), JIT_ENTRY_FOREIGN);
  put("op", "whole again");
  CU_ASSERT(has("op", "whole again"));
  close(f);
  remove_tree(folder);
}

/* Sizes in a header that add up to the file's size only when they overflow. */
static void sizes_that_overflow(void) {
  struct jit_entry entry;
  char content[200] = "SGLJIT1";
  const uint64_t key_sizes[] = {UINT64_MAX, UINT64_MAX - 50, (uint64_t)1 << 63, 0, 160};
  for (int i = 0; i < 5; i++) {
    uint64_t image_size = sizeof content - 24 - 16 - key_sizes[i];
    memcpy(content + 8, &key_sizes[i], 8);
    memcpy(content + 16, &image_size, 8);
    XXH128_hash_t sum = XXH3_128bits(content, sizeof content - 16);
    memcpy(content + sizeof content - 16, &sum, 16);
    enum jit_entry_fault fault = jit_entry_decode(content, sizeof content, &entry);
    CU_ASSERT_EQUAL(fault, key_sizes[i] == 0 ? JIT_ENTRY_GOOD : JIT_ENTRY_CHECKSUM);
    jit_entry_free(&entry);
  }
  struct jit_image huge = {content, (size_t)64 << 20};
  size_t size;
  CU_ASSERT_PTR_NULL(jit_entry_encode("key", &huge, &size)); /* no reader would take it */
  CU_ASSERT_EQUAL(jit_entry_decode("", 0, &entry), JIT_ENTRY_TRUNCATED);
}

static void texts(void) {
  char value[32];
  static const char key[] = "abi 1\nkernel a:1x2:float32\ntarget sm_90a\noptions -DN=1 -DK=2\n";
  CU_ASSERT(jit_key_field(key, "target", value, sizeof value));
  UNIT_STRINGS(value, "sm_90a");
  CU_ASSERT(jit_key_field(key, "options", value, sizeof value));
  UNIT_STRINGS(value, "-DN=1 -DK=2");
  CU_ASSERT(jit_key_field("last line", "last", value, sizeof value));
  UNIT_STRINGS(value, "line");
  CU_ASSERT(!jit_key_field(key, "targe", value, sizeof value));
  CU_ASSERT(!jit_key_field(key, "1x2", value, sizeof value));
  CU_ASSERT(!jit_key_field(key, "kernel", value, 10));
  CU_ASSERT(!jit_key_field("", "", value, sizeof value));
  for (int fault = 0; fault <= JIT_ENTRY_RENAMED; fault++)
    CU_ASSERT(strcmp(jit_entry_fault_text((enum jit_entry_fault)fault), "unknown") != 0);
}

/* Another version of the library uses the same folder: its entries have other names, since the texts or the format
 * differ, and one of its format under a name of ours is seen for what it is. */
static void two_versions(void) {
  struct path folder = fresh(), cache = path_in(folder.text, "cache"), file;
  struct jit_entry_name one, other;
  put("version 1", "code 1");
  put("version 2", "code 2");
  CU_ASSERT(has("version 1", "code 1"));
  CU_ASSERT(has("version 2", "code 2"));
  CU_ASSERT_EQUAL(files_with(cache.text, "test-", NULL), 2);
  jit_entry_name(key_of("version 1").text, &one);
  jit_entry_name(key_of("version 2").text, &other);
  CU_ASSERT_STRING_NOT_EQUAL(one.text, other.text);
  XXH128_hash_t hash = XXH3_128bits(key_of("version 1").text, strlen(key_of("version 1").text));
  char digits[20];
  snprintf(digits, sizeof digits, "%016llx", (unsigned long long)hash.high64);
  CU_ASSERT_PTR_NULL(strstr(one.text, digits)); /* the format is hashed with the key */
  file = path_in(cache.text, one.text);
  int f = open(file.text, O_WRONLY);
  CU_ASSERT_EQUAL(pwrite(f, "SGLJIT2", 8, 0), 8);
  close(f);
  CU_ASSERT_EQUAL(fault_of(file.text), JIT_ENTRY_FOREIGN);
  CU_ASSERT(!has("version 1", "code 1"));
  CU_ASSERT(has("version 2", "code 2"));
  put("version 1", "code 1");
  CU_ASSERT(has("version 1", "code 1"));
  remove_tree(folder);
}

/* The folder's list, as the command shows it. */
static void listed(void) {
  struct path folder = fresh(), cache = path_in(folder.text, "cache");
  struct jit_folder found;
  struct jit_file file;
  int counts[4] = {0, 0, 0, 0};
  put("a", "code");
  put("b", "code");
  jit_cache_unlock(jit_cache_lock(key_of("a").text, 0));
  static const char *const others[] = {".new-0123", "README", "test-0123", "test-0123456789abcdef0123456789abcdeg"};
  for (int i = 0; i < 4; i++)
    close(open(path_in(cache.text, others[i]).text, O_CREAT | O_WRONLY, 0600));
  CU_ASSERT_EQUAL(symlink("/etc/passwd", path_in(cache.text, "link").text), 0);
  jit_folder_find(JIT_FOLDER_CACHE, &found);
  int opened = jit_folder_open(&found, false);
  for (int round = 0; round < 2; round++) { /* a second list begins at the beginning */
    DIR *list = jit_folder_list(opened);
    memset(counts, 0, sizeof counts);
    while (jit_folder_next(list, &file)) {
      counts[file.kind]++;
      CU_ASSERT(strcmp(file.name, "link") != 0 || S_ISLNK(file.stat.st_mode));
    }
    closedir(list);
  }
  close(opened);
  CU_ASSERT_EQUAL(counts[JIT_FILE_ENTRY], 2);
  CU_ASSERT_EQUAL(counts[JIT_FILE_TEMPORARY], 1);
  CU_ASSERT_EQUAL(counts[JIT_FILE_LOCK], 1);
  CU_ASSERT_EQUAL(counts[JIT_FILE_OTHER], 4);
  remove_tree(folder);
}

/* A file under the right name whose key is another one, as after a collision of hashes. */
static void other_key(void) {
  struct path folder = fresh(), mine, other;
  put("op", "mine");
  struct path cache = path_in(folder.text, "cache");
  CU_ASSERT_EQUAL_FATAL(files_with(cache.text, "", &mine), 1);
  CU_ASSERT_EQUAL(unlink(mine.text), 0);
  struct jit_image image = {(void *)(uintptr_t) "theirs", 6};
  jit_cache_write(key_of("oq").text, &image, (struct jit_message){NULL, 0, NULL});
  CU_ASSERT_EQUAL_FATAL(files_with(cache.text, "", &other), 1);
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
    CU_ASSERT_EQUAL(files_with(cache.text, "", &file), 1);
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
  CU_ASSERT_EQUAL(files_with(real.text, "", NULL), 1);
  remove_tree(folder);
  folder = fresh(); /* a fifo under an entry's name does not hang a reader */
  put("op", "code");
  CU_ASSERT_EQUAL_FATAL(files_with(path_in(folder.text, "cache").text, "", &file), 1);
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
  CU_ASSERT_EQUAL_FATAL(files_with(cache.text, "", &file), 1);
  CU_ASSERT_EQUAL(chown(cache.text, 12345, 12345), 0);
  CU_ASSERT(!has("op", "code"));
  put("new", "code");
  CU_ASSERT_EQUAL(files_with(cache.text, "", NULL), 1);
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
  CU_ASSERT_EQUAL(files_with(path_in(folder.text, "xdg/sgl-kernel-jit").text, "", NULL), 1);
  setenv("XDG_CACHE_HOME", "relative", 1); /* to be ignored, says the XDG specification */
  CU_ASSERT(!has("op", "xdg"));
  put("op", "home");
  CU_ASSERT(has("op", "home"));
  CU_ASSERT_EQUAL(files_with(path_in(folder.text, "home/.cache/sgl-kernel-jit").text, "", NULL), 1);
  CU_ASSERT_NOT_EQUAL(access("relative", F_OK), 0);
  setenv("SGL_KERNEL_JIT_CACHE_DIR", "", 1); /* as if unset */
  CU_ASSERT(has("op", "home"));
  setenv("SGL_KERNEL_JIT_CACHE_DIR", path_in(folder.text, "own/deep/er").text, 1);
  put("op", "own");
  CU_ASSERT_EQUAL(files_with(path_in(folder.text, "own/deep/er").text, "", NULL), 1);
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

/* What the list of folders says of the cache folder, and of the other one. */
static void cache_is(const char *source, const char *problem) {
  struct jit_folder folders[JIT_FOLDER_COUNT];
  jit_cache_folders(folders);
  UNIT_STRINGS(folders[JIT_FOLDER_CACHE].source, source);
  UNIT_STRINGS(folders[JIT_FOLDER_CACHE].problem, problem);
}

static void folders_are_explained(void) {
  struct path folder = fresh(), cache = path_in(folder.text, "cache");
  struct jit_folder folders[JIT_FOLDER_COUNT];
  jit_cache_folders(folders);
  CU_ASSERT(folders[0].missing && folders[0].kind == JIT_FOLDER_CACHE);
  CU_ASSERT(folders[1].kind == JIT_FOLDER_PREBUILT);
  UNIT_STRINGS(folders[0].path, cache.text);
  cache_is("SGL_KERNEL_JIT_CACHE_DIR", "");
  CU_ASSERT_EQUAL(access(cache.text, F_OK), -1); /* looking makes nothing */
  put("op", "code");
  jit_cache_folders(folders);
  CU_ASSERT(!folders[0].missing);
  cache_is("SGL_KERNEL_JIT_CACHE_DIR", "");
  CU_ASSERT_EQUAL(chmod(cache.text, 0770), 0);
  cache_is("SGL_KERNEL_JIT_CACHE_DIR", "may be written by others; chmod go-w it");
  CU_ASSERT_EQUAL(chmod(cache.text, 0700), 0);
  if (geteuid() == 0) {
    CU_ASSERT_EQUAL(chown(cache.text, 12345, 12345), 0);
    cache_is("SGL_KERNEL_JIT_CACHE_DIR", "belongs to another user");
    CU_ASSERT_EQUAL(chown(cache.text, 0, 0), 0);
  } else {
    setenv("SGL_KERNEL_JIT_CACHE_DIR", "/usr", 1);
    cache_is("SGL_KERNEL_JIT_CACHE_DIR", "belongs to another user");
  }
  CU_ASSERT_EQUAL(symlink(cache.text, path_in(folder.text, "link").text), 0);
  setenv("SGL_KERNEL_JIT_CACHE_DIR", path_in(folder.text, "link").text, 1);
  cache_is("SGL_KERNEL_JIT_CACHE_DIR", "is a symbolic link; name the folder that it leads to");
  struct path file = path_in(folder.text, "file");
  close(open(file.text, O_CREAT | O_WRONLY, 0600));
  setenv("SGL_KERNEL_JIT_CACHE_DIR", file.text, 1);
  cache_is("SGL_KERNEL_JIT_CACHE_DIR", "Not a directory");
  setenv("SGL_KERNEL_JIT_CACHE_DIR", "relative/path", 1);
  cache_is("SGL_KERNEL_JIT_CACHE_DIR", "SGL_KERNEL_JIT_CACHE_DIR is not an absolute path: relative/path");
  unsetenv("SGL_KERNEL_JIT_CACHE_DIR");
  setenv("XDG_CACHE_HOME", folder.text, 1);
  cache_is("XDG_CACHE_HOME", "");
  unsetenv("XDG_CACHE_HOME");
  setenv("HOME", folder.text, 1);
  cache_is("HOME", "");
  unsetenv("HOME");
  cache_is("", "neither SGL_KERNEL_JIT_CACHE_DIR nor XDG_CACHE_HOME nor HOME is an absolute path");
  setenv("SGL_KERNEL_JIT_PREBUILT_DIR", "relative", 1);
  jit_cache_folders(folders);
  UNIT_STRINGS(folders[1].source, "SGL_KERNEL_JIT_PREBUILT_DIR");
  UNIT_STRINGS(folders[1].problem, "SGL_KERNEL_JIT_PREBUILT_DIR is not an absolute path: relative");
  unsetenv("SGL_KERNEL_JIT_PREBUILT_DIR");
  remove_tree(folder);
}

/* Why a write failed is said in one line. */
#define WRITE_FAILS(name, part)                                                                                        \
  do {                                                                                                                 \
    char said[512] = "";                                                                                               \
    CU_ASSERT_EQUAL(write_entry((name), "code", said, sizeof said), SGL_JIT_ERROR_CACHE);                              \
    UNIT_CONTAINS(said, part);                                                                                         \
  } while (0)

static sgl_jit_status write_entry(const char *name, const char *text, char *said, size_t size) {
  struct jit_image image = {(void *)(uintptr_t)text, strlen(text)};
  return jit_cache_write(key_of(name).text, &image, (struct jit_message){said, size, "f"});
}

/* Nothing can be written: no entry, no error, no rest. */
static void nowhere_to_write(void) {
  struct path folder = make_temporary(), file = path_in(folder.text, "file");
  int f = open(file.text, O_CREAT | O_WRONLY, 0600);
  close(f);
  setenv("SGL_KERNEL_JIT_CACHE_DIR", file.text, 1); /* a file where the folder should be */
  WRITE_FAILS("op", "/file (SGL_KERNEL_JIT_CACHE_DIR) cannot be used: Not a directory");
  CU_ASSERT(!has("op", "code"));
  setenv("SGL_KERNEL_JIT_CACHE_DIR", path_in(file.text, "below").text, 1);
  WRITE_FAILS("op", "Not a directory");
  CU_ASSERT(!has("op", "code"));
  setenv("SGL_KERNEL_JIT_CACHE_DIR", "/proc/sgl-kernel-jit", 1); /* where nobody can write, root neither */
  put("op", "code");
  CU_ASSERT(!has("op", "code"));
  char *longest = malloc(20000);
  memset(longest, 'a', 19999);
  longest[0] = '/';
  longest[19999] = '\0';
  setenv("SGL_KERNEL_JIT_CACHE_DIR", longest, 1);
  WRITE_FAILS("op", "there is no cache folder: the path that comes from SGL_KERNEL_JIT_CACHE_DIR is too long");
  CU_ASSERT(!has("op", "code"));
  free(longest);
  CU_ASSERT_EQUAL(files_with(folder.text, "", NULL), 1);
  remove_tree(folder);
}

/* What stands in the way of the rename leaves no half-made file behind. */
static void rename_fails(void) {
  struct path folder = fresh(), cache = path_in(folder.text, "cache"), file;
  put("op", "code");
  CU_ASSERT_EQUAL_FATAL(files_with(cache.text, "", &file), 1);
  CU_ASSERT_EQUAL(unlink(file.text), 0);
  CU_ASSERT_EQUAL(mkdir(file.text, 0700), 0);
  put("op", "code");
  CU_ASSERT(!has("op", "code"));
  CU_ASSERT_EQUAL(files_with(cache.text, "", NULL), 1);
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
  CU_ASSERT_EQUAL(files_with(folder.text, "", NULL), 0);
  CU_ASSERT_EQUAL(chmod(folder.text, 0755), 0);
  remove_tree(folder);
}

/* --- the disk is full, and the like --- */

static char big[200000];

static struct path small_disk;

static void full_disk_body(void) {
  struct path cache = path_in(small_disk.text, "cache");
  CU_ASSERT_EQUAL(unshare(CLONE_NEWNS), 0);
  CU_ASSERT_EQUAL(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
  CU_ASSERT_EQUAL(mount("tmpfs", small_disk.text, "tmpfs", 0, "size=64k"), 0);
  put("small", "code");
  CU_ASSERT(has("small", "code"));
  memset(big, 'a', sizeof big - 1);
  char said[512] = "";
  CU_ASSERT_EQUAL(write_entry("big", big, said, sizeof said), SGL_JIT_ERROR_CACHE);
  UNIT_CONTAINS(said, "/cache (SGL_KERNEL_JIT_CACHE_DIR) cannot be written: No space left on device");
  CU_ASSERT(!has("big", big));
  CU_ASSERT(has("small", "code"));
  CU_ASSERT_EQUAL(files_with(cache.text, "", NULL), 1); /* and nothing half-made */
}

static int try_mount(void *folder) {
  return unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
                 mount("tmpfs", folder, "tmpfs", 0, "size=64k") == 0
             ? 0
             : 1;
}

static void full_disk(void) {
  small_disk = fresh();
  if (end_process(start_process(try_mount, small_disk.text)) != 0)
    UNIT_SKIP("this user may not mount a small disk");
  else
    in_child(full_disk_body);
  remove_tree(small_disk);
}

/* A write beyond the limit of file sizes would end the process with SIGXFSZ. */
static void limited_size_body(void) {
  struct rlimit limit = {1000, 1000};
  CU_ASSERT_EQUAL(setrlimit(RLIMIT_FSIZE, &limit), 0);
  put("small", "code");
  CU_ASSERT(has("small", "code"));
  memset(big, 'a', sizeof big - 1);
  char said[512] = "";
  CU_ASSERT_EQUAL(write_entry("big", big, said, sizeof said), SGL_JIT_ERROR_CACHE);
  UNIT_CONTAINS(said, "ulimit -f");
  CU_ASSERT(!has("big", big));
}

static void limited_size(void) {
  struct path folder = fresh();
  in_child(limited_size_body);
  CU_ASSERT_EQUAL(files_with(path_in(folder.text, "cache").text, "", NULL), 1);
  remove_tree(folder);
}

/* --- killed in the middle --- */

static const char killed_code[] = "code of the one that is killed";

/* Dies at its n-th call of write, fsync or rename. */
static int die_in_write(void *calls) {
  calls_to_death = *(int *)calls;
  put("op", killed_code);
  return calls_to_death > 0 ? 0 : 1;
}

/* Wherever it dies, a reader sees the old entry or the new one, and the next writer is not disturbed. */
static void killed_while_writing(void) {
  struct path folder = fresh(), cache = path_in(folder.text, "cache");
  put("op", "old code");
  int calls = 1, status;
  while ((status = end_process(start_process(die_in_write, &calls))) == -SIGKILL) {
    CU_ASSERT(has("op", "old code"));
    CU_ASSERT_EQUAL(files_with(cache.text, ".new-", NULL), calls);
    calls++;
  }
  CU_ASSERT_EQUAL(status, 0);
  CU_ASSERT_EQUAL(calls, 4); /* write, fsync, rename */
  CU_ASSERT(has("op", killed_code));
  CU_ASSERT_EQUAL(files_with(cache.text, ".new-", NULL), 3);
  remove_tree(folder);
}

static void age(const char *file, time_t seconds) {
  struct timespec times[2] = {{time(NULL) - seconds, 0}, {time(NULL) - seconds, 0}};
  CU_ASSERT_EQUAL(utimensat(AT_FDCWD, file, times, 0), 0);
}

/* What the killed have left goes with the first write that is an hour later. */
static void leftovers_are_swept(void) {
  struct path folder = fresh(), cache = path_in(folder.text, "cache");
  put("op", "code");
  jit_cache_unlock(jit_cache_lock(key_of("op").text, 0));
  static const char *const names[] = {".new-old", ".new-young", "old"};
  for (int i = 0; i < 3; i++)
    close(open(path_in(cache.text, names[i]).text, O_CREAT | O_WRONLY, 0600));
  age(path_in(cache.text, ".new-old").text, 3700);
  age(path_in(cache.text, ".new-young").text, 3500);
  age(path_in(cache.text, "old").text, 1000000); /* not ours */
  struct jit_entry_name name;
  jit_entry_name(key_of("op").text, &name);
  age(path_in(cache.text, name.text).text, 1000000);
  char lock[256];
  snprintf(lock, sizeof lock, ".lock-%s", name.text);
  age(path_in(cache.text, lock).text, 1000000);
  put("other", "code");
  CU_ASSERT_EQUAL(files_with(cache.text, ".new-old", NULL), 0);
  CU_ASSERT_EQUAL(files_with(cache.text, ".new-young", NULL), 1);
  CU_ASSERT_EQUAL(files_with(cache.text, "old", NULL), 1);
  CU_ASSERT_EQUAL(files_with(cache.text, lock, NULL), 1);
  CU_ASSERT(has("op", "code"));
  CU_ASSERT(has("other", "code"));
  remove_tree(folder);
}

/* Another writer of the same entry is faster: its file is there when ours is renamed. */
static void rename_loser(void) {
  struct path folder = fresh(), cache = path_in(folder.text, "cache");
  before_rename = "op";
  put("op", "code");
  CU_ASSERT_PTR_NULL(before_rename); /* it was called */
  CU_ASSERT(has("op", "code"));
  CU_ASSERT_EQUAL(files_with(cache.text, "", NULL), 1);
  remove_tree(folder);
}

/* --- the lock of a compile --- */

static int try_lock(void *name) {
  int lock = jit_cache_lock(key_of(name).text, 30);
  jit_cache_unlock(lock);
  return lock >= 0;
}

static int own_file(const char *name, struct path *lock) {
  struct jit_entry_name entry;
  char file[256];
  jit_entry_name(key_of(name).text, &entry);
  snprintf(file, sizeof file, ".lock-%s", entry.text);
  *lock = path_in(getenv("SGL_KERNEL_JIT_CACHE_DIR"), file);
  return access(lock->text, F_OK);
}

static void lock_excludes(void) {
  struct path folder = fresh(), file;
  char op[] = "op", other[] = "other";
  sgl_jit_counters before, after;
  int lock = jit_cache_lock(key_of(op).text, 0);
  CU_ASSERT(lock >= 0);
  CU_ASSERT_EQUAL(own_file(op, &file), 0);
  CU_ASSERT_EQUAL(end_process(start_process(try_lock, op)), 0);
  CU_ASSERT_EQUAL(end_process(start_process(try_lock, other)), 1);
  jit_cache_unlock(lock);
  CU_ASSERT_EQUAL(end_process(start_process(try_lock, op)), 1);
  CU_ASSERT_EQUAL(own_file(op, &file), 0); /* it stays, and means nothing */
  sgl_jit_get_counters(&before, sizeof before);
  jit_cache_unlock(jit_cache_lock(key_of(op).text, 0)); /* nobody had it: no wait */
  sgl_jit_get_counters(&after, sizeof after);
  CU_ASSERT_EQUAL(after.waits, before.waits);
  remove_tree(folder);
}

struct holder {
  int told[2];
  bool forks, waits;
};

/* Takes the lock, says so, and lives until it is killed; so does a child that it has forked meanwhile. */
static int hold_lock(void *argument) {
  struct holder *h = argument;
  int lock = jit_cache_lock(key_of("op").text, h->waits ? 20000 : 0);
  pid_t child = 0;
  if (h->forks && (child = fork()) == 0)
    for (;;)
      pause();
  if (lock < 0 || write(h->told[1], &child, sizeof child) != sizeof child)
    return 1;
  for (;;)
    pause();
}

static int wait_for_lock(void *counted) {
  sgl_jit_counters counters;
  int lock = jit_cache_lock(key_of("op").text, 20000);
  sgl_jit_get_counters(&counters, sizeof counters);
  return lock >= 0 && counters.waits == (uint64_t) * (int *)counted && (counters.wait_ns > 0) == (counters.waits > 0);
}

/* The lock of a killed process is free at once, though a child of it lives on, and whoever waited gets it. */
static void lock_ends_with_process(void) {
  for (int forks = 0; forks < 2; forks++) {
    struct path folder = fresh();
    struct holder holder = {.forks = forks};
    pid_t child = 0;
    int waits = 1;
    char op[] = "op";
    CU_ASSERT_EQUAL_FATAL(pipe(holder.told), 0);
    pid_t pid = start_process(hold_lock, &holder);
    CU_ASSERT_EQUAL(read(holder.told[0], &child, sizeof child), sizeof child);
    CU_ASSERT_EQUAL(end_process(start_process(try_lock, op)), 0);
    pid_t waiter = start_process(wait_for_lock, &waits);
    usleep(30000);
    CU_ASSERT_EQUAL(kill(pid, SIGKILL), 0);
    CU_ASSERT_EQUAL(end_process(pid), -SIGKILL);
    CU_ASSERT_EQUAL(end_process(waiter), 1);
    CU_ASSERT_EQUAL(end_process(start_process(try_lock, op)), 1);
    if (forks) {
      CU_ASSERT_EQUAL(kill(child, SIGKILL), 0); /* it was there all the time */
    }
    close(holder.told[0]);
    close(holder.told[1]);
    remove_tree(folder);
  }
}

/* The folder is removed while somebody compiles: the next one makes a lock of its own, and nobody is hurt. */
static void lock_file_removed(void) {
  struct path folder = fresh(), cache = path_in(folder.text, "cache");
  char op[] = "op", command[4200];
  int lock = jit_cache_lock(key_of(op).text, 0);
  snprintf(command, sizeof command, "rm -r '%s'", cache.text);
  CU_ASSERT_EQUAL(system(command), 0);
  CU_ASSERT_EQUAL(end_process(start_process(try_lock, op)), 1);
  jit_cache_unlock(lock);
  put("op", "code");
  CU_ASSERT(has("op", "code"));
  /* Who holds the lock removes its file: whoever waited for it makes another one, and holds that. */
  struct path file;
  struct holder waiter = {.waits = true};
  pid_t child;
  lock = jit_cache_lock(key_of(op).text, 0);
  CU_ASSERT_EQUAL_FATAL(pipe(waiter.told), 0);
  pid_t pid = start_process(hold_lock, &waiter);
  usleep(30000);
  CU_ASSERT_EQUAL(own_file(op, &file), 0);
  CU_ASSERT_EQUAL(unlink(file.text), 0);
  jit_cache_unlock(lock);
  CU_ASSERT_EQUAL(read(waiter.told[0], &child, sizeof child), sizeof child);
  CU_ASSERT_EQUAL(own_file(op, &file), 0);
  CU_ASSERT_EQUAL(end_process(start_process(try_lock, op)), 0);
  kill(pid, SIGKILL);
  end_process(pid);
  close(waiter.told[0]);
  close(waiter.told[1]);
  remove_tree(folder);
}

/* Where there is no folder to write in, there is no lock, at once. */
static void no_lock_to_be_had(void) {
  struct path folder = fresh(), cache = path_in(folder.text, "cache"), file, victim = path_in(folder.text, "victim");
  char op[] = "op";
  int64_t start = jit_now_ns();
  put("op", "code");
  CU_ASSERT_EQUAL(chmod(cache.text, 0777), 0);
  CU_ASSERT_EQUAL(try_lock(op), 0);
  CU_ASSERT_EQUAL(chmod(cache.text, 0700), 0);
  CU_ASSERT_EQUAL(files_with(cache.text, "", NULL), 1);
  CU_ASSERT_NOT_EQUAL(own_file(op, &file), 0);
  CU_ASSERT_EQUAL(symlink(victim.text, file.text), 0); /* a link in its place is not followed */
  CU_ASSERT_EQUAL(try_lock(op), 0);
  CU_ASSERT_NOT_EQUAL(access(victim.text, F_OK), 0);
  setenv("SGL_KERNEL_JIT_CACHE_DIR", "/proc/none", 1);
  CU_ASSERT_EQUAL(try_lock(op), 0);
  setenv("SGL_KERNEL_JIT_CACHE_DIR", "relative", 1);
  CU_ASSERT_EQUAL(try_lock(op), 0);
  CU_ASSERT(jit_now_ns() - start < 10000000000);
  remove_tree(folder);
}

/* A folder that this user may read only: entries are read, and nothing is written. */
static void read_only_folder_body(void) {
  char op[] = "op";
  if (geteuid() == 0 && setuid(65534) != 0)
    _exit(1);
  CU_ASSERT(has("op", "code"));
  CU_ASSERT_EQUAL(try_lock(op), 0);
  WRITE_FAILS("new", "cannot be written: Permission denied");
  CU_ASSERT(has("op", "code"));
}

static void read_only_folder(void) {
  struct path folder = fresh(), cache = path_in(folder.text, "cache"), file;
  put("op", "code");
  CU_ASSERT_EQUAL_FATAL(files_with(cache.text, "", &file), 1);
  CU_ASSERT_EQUAL(chmod(folder.text, 0755), 0);
  if (geteuid() == 0) {
    CU_ASSERT_EQUAL(chown(cache.text, 65534, 65534), 0);
    CU_ASSERT_EQUAL(chown(file.text, 65534, 65534), 0);
  }
  CU_ASSERT_EQUAL(chmod(cache.text, 0555), 0);
  in_child(read_only_folder_body);
  CU_ASSERT_EQUAL(files_with(cache.text, "", NULL), 1);
  CU_ASSERT_EQUAL(chmod(cache.text, 0755), 0);
  remove_tree(folder);
}

/* --- the prebuilt folder --- */

static enum jit_entry_fault prebuilt_fault(const char *name) {
  struct jit_image image = {NULL, 0};
  enum jit_entry_fault fault = jit_cache_read(JIT_FOLDER_PREBUILT, key_of(name).text, &image);
  CU_ASSERT((image.data != NULL) == (fault == JIT_ENTRY_GOOD));
  free(image.data);
  return fault;
}

static void prebuilt_body(void) {
  if (geteuid() == 0 && setuid(65534) != 0)
    _exit(1);
  CU_ASSERT_EQUAL(prebuilt_fault("op"), JIT_ENTRY_GOOD); /* belongs to root, or to this user */
}

/* Made as a cache, and used as the prebuilt folder: the same files, other owners, never written. */
static void prebuilt(void) {
  struct path folder = fresh(), cache = path_in(folder.text, "cache"), file;
  struct jit_folder found;
  put("op", "code");
  CU_ASSERT_EQUAL_FATAL(files_with(cache.text, "", &file), 1);
  CU_ASSERT_EQUAL(prebuilt_fault("op"), JIT_ENTRY_MISSING);
  setenv("SGL_KERNEL_JIT_PREBUILT_DIR", cache.text, 1);
  setenv("SGL_KERNEL_JIT_CACHE_DIR", path_in(folder.text, "own").text, 1);
  CU_ASSERT(!has("op", "code"));
  CU_ASSERT_EQUAL(prebuilt_fault("op"), JIT_ENTRY_GOOD);
  CU_ASSERT_EQUAL(prebuilt_fault("other"), JIT_ENTRY_MISSING);
  put("other", "code");
  CU_ASSERT_EQUAL(files_with(cache.text, "", NULL), 1);
  CU_ASSERT_EQUAL(prebuilt_fault("other"), JIT_ENTRY_MISSING);
  setenv("SGL_KERNEL_JIT_PREBUILT_DIR", path_in(folder.text, "none").text, 1);
  jit_folder_find(JIT_FOLDER_PREBUILT, &found);
  CU_ASSERT_EQUAL(jit_folder_open(&found, true), -1); /* is never made */
  CU_ASSERT_NOT_EQUAL(access(path_in(folder.text, "none").text, F_OK), 0);
  setenv("SGL_KERNEL_JIT_PREBUILT_DIR", cache.text, 1);
  CU_ASSERT_EQUAL(chmod(folder.text, 0755), 0);
  CU_ASSERT_EQUAL(chmod(cache.text, 0755), 0);
  CU_ASSERT_EQUAL(chmod(file.text, 0644), 0);
  in_child(prebuilt_body);
  CU_ASSERT_EQUAL(chmod(cache.text, 0775), 0);
  CU_ASSERT_EQUAL(prebuilt_fault("op"), JIT_ENTRY_MISSING);
  CU_ASSERT_EQUAL(chmod(cache.text, 0755), 0);
  CU_ASSERT_EQUAL(chmod(file.text, 0664), 0);
  CU_ASSERT_EQUAL(prebuilt_fault("op"), JIT_ENTRY_WRITABLE);
  CU_ASSERT_EQUAL(chmod(file.text, 0644), 0);
  struct path moved = path_in(folder.text, "moved");
  CU_ASSERT_EQUAL(rename(file.text, moved.text), 0);
  CU_ASSERT_EQUAL(symlink(moved.text, file.text), 0);
  CU_ASSERT_EQUAL(prebuilt_fault("op"), JIT_ENTRY_LINK);
  CU_ASSERT_EQUAL(rename(moved.text, file.text), 0);
  CU_ASSERT_EQUAL(prebuilt_fault("op"), JIT_ENTRY_GOOD);
  if (geteuid() == 0) {
    CU_ASSERT_EQUAL(chown(file.text, 12345, 12345), 0);
    CU_ASSERT_EQUAL(prebuilt_fault("op"), JIT_ENTRY_OWNER);
    CU_ASSERT_EQUAL(chown(file.text, 0, 0), 0);
    CU_ASSERT_EQUAL(chown(cache.text, 12345, 12345), 0);
    CU_ASSERT_EQUAL(prebuilt_fault("op"), JIT_ENTRY_MISSING);
  }
  unsetenv("SGL_KERNEL_JIT_PREBUILT_DIR");
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
  CU_ASSERT(files_with(cache.text, "", NULL) <= 2);
  remove_tree(folder);
}

static const struct unit_test tests[] = {
    {"write_and_read", write_and_read},
    {"interrupted", interrupted},
    {"damaged", damaged},
    {"sizes_that_overflow", sizes_that_overflow},
    {"texts", texts},
    {"two_versions", two_versions},
    {"listed", listed},
    {"other_key", other_key},
    {"not_to_be_trusted", not_to_be_trusted},
    {"other_owner", other_owner},
    {"where", where},
    {"folders_are_explained", folders_are_explained},
    {"nowhere_to_write", nowhere_to_write},
    {"rename_fails", rename_fails},
    {"read_only_home", read_only_home},
    {"full_disk", full_disk},
    {"limited_size", limited_size},
    {"killed_while_writing", killed_while_writing},
    {"leftovers_are_swept", leftovers_are_swept},
    {"rename_loser", rename_loser},
    {"lock_excludes", lock_excludes},
    {"lock_ends_with_process", lock_ends_with_process},
    {"lock_file_removed", lock_file_removed},
    {"no_lock_to_be_had", no_lock_to_be_had},
    {"read_only_folder", read_only_folder},
    {"prebuilt", prebuilt},
    {"many_processes", many_processes},
};
UNIT_MAIN("jit/cache", tests)
