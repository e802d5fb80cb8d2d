#include "shim/quiet.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

sigset_t quiet_begin(void) {
  sigset_t signal, before;
  sigemptyset(&signal);
  sigaddset(&signal, SIGXFSZ);
  pthread_sigmask(SIG_BLOCK, &signal, &before);
  return before;
}

void quiet_end(const sigset_t *before) {
  int saved = errno;
  struct timespec none = {0, 0};
  sigset_t signal;
  sigemptyset(&signal);
  sigaddset(&signal, SIGXFSZ);
  if (!sigismember(before, SIGXFSZ)) {
    while (sigtimedwait(&signal, NULL, &none) < 0 && errno == EINTR)
      ;
    pthread_sigmask(SIG_SETMASK, before, NULL);
  }
  errno = saved;
}

bool quiet_write(int file, const void *data, size_t size) {
  for (const char *at = data; size > 0;) {
    ssize_t written = TEMP_FAILURE_RETRY(write(file, at, size));
    if (written <= 0)
      return false;
    at += written;
    size -= (size_t)written;
  }
  return true;
}
