/* One compile for many processes: whoever compiles an entry holds the lock of its lock file in the cache folder.
 *
 * The lock is a POSIX record lock, on purpose. It is the process's own: a child of fork has not inherited it, and the
 * kernel releases it when the process ends, however it ends, while such a child lives on. (flock and open file
 * description locks belong to the open file, which a child shares until it ends or calls exec.) A server of network
 * files makes it known to the other nodes; where it does not, each node compiles for itself. Its price: threads of the
 * process do not exclude each other with it, which kernels.c does, and another copy of this library in the same process
 * could end the lock, at the cost of a compile more.
 *
 * A lock file is empty, and means nothing while nobody holds its lock. Only who holds the lock may remove it, as
 * sgl-jit prune does: whoever waited for it then sees that the file has no name any more, and makes another one. Where
 * it cannot be made, as in a read-only folder, there is no lock, and each process compiles for itself. */
#include "internal.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static int open_lock_file(const char *key) {
  struct jit_folder folder;
  struct jit_entry_name name;
  char path[sizeof name.text + sizeof JIT_LOCK_PREFIX];
  jit_folder_find(JIT_FOLDER_CACHE, &folder);
  int opened = jit_folder_open(&folder, true);
  if (opened < 0)
    return -1;
  jit_entry_name(key, &name);
  snprintf(path, sizeof path, JIT_LOCK_PREFIX "%s", name.text);
  int file = openat(opened, path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
  close(opened);
  return file;
}

/* By asking again and again: a lock that is waited for in the kernel can only be given up with a signal. */
static bool wait_for(int file, int64_t wait_ms) {
  struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  int64_t start = jit_now_ns(), pause = 1000000;
  if (fcntl(file, F_SETLK, &whole) == 0)
    return true;
  jit_count(waits, 1);
  bool locked = false;
  while (!locked && (errno == EAGAIN || errno == EACCES) && jit_now_ns() - start < wait_ms * 1000000) {
    nanosleep(&(struct timespec){0, (long)pause}, NULL);
    pause = pause < 16000000 ? pause * 2 : pause;
    locked = fcntl(file, F_SETLK, &whole) == 0;
  }
  jit_count(wait_ns, jit_now_ns() - start);
  return locked;
}

static bool is_removed(int file) {
  struct stat s;
  return fstat(file, &s) == 0 && s.st_nlink == 0;
}

int jit_cache_lock(const char *key, int wait_ms) {
  for (int tries = 0; tries < 8; tries++) {
    int file = open_lock_file(key);
    if (file < 0)
      return -1;
    bool locked = wait_for(file, wait_ms);
    if (locked && !is_removed(file))
      return file;
    close(file);
    if (!locked)
      return -1;
  }
  return -1;
}

void jit_cache_unlock(int lock) {
  if (lock >= 0)
    close(lock);
}
