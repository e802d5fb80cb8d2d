/* Every instruction of a call, by single steps: how many, and every function outside of this program that it enters.
 * That shows each lock, allocation, look-up and system call, whatever its name and however deep it is.
 *
 *   static void body(void) { warm up; steps_begin(); the call; steps_end(); }
 *   struct steps s = steps_of(body);       runs it in a child. What the call loads must be loaded by the parent, where
 *                                          addresses get their names.
 */
#ifndef SGL_TESTS_STEPS_H
#define SGL_TESTS_STEPS_H

#include <dlfcn.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef __x86_64__
#error "the instruction pointer is read from x86-64's registers"
#endif

enum { STEPS_OUTSIDE = 64, STEPS_LIMIT = 1000000, STEPS_REFUSED = 77 };

struct steps {
  long own;                        /* instructions in this program */
  int failed;                      /* 0, or the line that failed: nothing is known then */
  bool refused;                    /* this machine does not let a process trace its child */
  int functions;                   /* that were entered elsewhere */
  char outside[STEPS_OUTSIDE][64]; /* "libc.so.6:malloc", each once, in order */
};

__attribute__((noinline)) static void steps_start(void) {
  __asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) static void steps_end(void) {
  __asm__ volatile("nop" ::: "memory"); /* so that the two are not folded into one */
}

static void steps_begin(void) {
  raise(SIGSTOP); /* until here the child ran freely */
  steps_start();
}

static void steps_note(struct steps *s, uintptr_t address) {
  static const void *own_base;
  Dl_info here, there;
  char name[sizeof s->outside[0]];
  if (!own_base && dladdr((void *)(uintptr_t)&steps_start, &here))
    own_base = here.dli_fbase;
  if (!dladdr((void *)address, &there)) {
    snprintf(name, sizeof name, "nowhere");
  } else if (there.dli_fbase == own_base) {
    s->own++;
    return;
  } else {
    const char *slash = strrchr(there.dli_fname, '/');
    snprintf(name, sizeof name, "%s:%s", slash ? slash + 1 : there.dli_fname, there.dli_sname ? there.dli_sname : "?");
  }
  for (int i = 0; i < s->functions; i++)
    if (strcmp(s->outside[i], name) == 0)
      return;
  if (s->functions < STEPS_OUTSIDE)
    strcpy(s->outside[s->functions++], name);
}

static struct steps steps_of(void (*body)(void)) {
  struct steps s = {0};
  struct user_regs_struct registers;
  int status;
  bool inside = false;
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
      _exit(STEPS_REFUSED);
    body();
    _exit(0);
  }
  for (long i = 0; !s.failed; i++) {
    if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status) || i == STEPS_LIMIT ||
        ptrace(PTRACE_GETREGS, child, NULL, &registers) != 0)
      s.failed = __LINE__;
    else if (registers.rip == (uintptr_t)&steps_end)
      break;
    inside = inside || registers.rip == (uintptr_t)&steps_start;
    if (!s.failed && inside)
      steps_note(&s, (uintptr_t)registers.rip);
    if (!s.failed && ptrace(PTRACE_SINGLESTEP, child, NULL, NULL) != 0)
      s.failed = __LINE__;
  }
  if (WIFEXITED(status)) {
    s.refused = WEXITSTATUS(status) == STEPS_REFUSED;
    return s;
  }
  kill(child, SIGKILL);
  waitpid(child, &status, 0);
  return s;
}

/* The first function outside that `allowed` does not name ("libc.so.6:__errno_location", or "fake_cuda.so:" for all of
 * a file; it ends with NULL), or "". */
__attribute__((unused)) static const char *steps_forbidden(const struct steps *s, const char *const *allowed) {
  for (int i = 0; i < s->functions; i++) {
    bool found = false;
    for (const char *const *a = allowed; *a && !found; a++) {
      size_t length = strlen(*a);
      found = strncmp(s->outside[i], *a, length) == 0 && ((*a)[length - 1] == ':' || s->outside[i][length] == '\0');
    }
    if (!found)
      return s->outside[i];
  }
  return "";
}

#endif
