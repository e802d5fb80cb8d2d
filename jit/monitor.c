/* The monitor: compiles after the program has said that it is warm. */
#include "internal.h"
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static atomic_int monitor = JIT_SETTING_UNREAD;
static atomic_bool warm;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the two below */
static sgl_jit_late_compile_hook hook;
static void *hook_user;

static int read_monitor(void) {
  static const char *const names[] = {
      [SGL_JIT_MONITOR_OFF] = "off", [SGL_JIT_MONITOR_WARN] = "warn", [SGL_JIT_MONITOR_ERROR] = "error"};
  int value = atomic_load(&monitor);
  return value != JIT_SETTING_UNREAD
             ? value
             : jit_setting_first(&monitor, "SGL_KERNEL_JIT_MONITOR", names, 3, SGL_JIT_MONITOR_WARN);
}

sgl_jit_status sgl_jit_set_monitor(sgl_jit_monitor wanted, char *message, size_t message_size) {
  struct jit_message m = {message, message_size, "sgl_jit_set_monitor"};
  if (wanted != SGL_JIT_MONITOR_OFF && wanted != SGL_JIT_MONITOR_WARN && wanted != SGL_JIT_MONITOR_ERROR)
    return jit_fail(m, SGL_JIT_ERROR_INVALID_ARGUMENT, "there is no monitor mode %d", (int)wanted);
  atomic_store(&monitor, (int)wanted);
  return SGL_JIT_OK;
}

void sgl_jit_warm_done(void) {
  atomic_store(&warm, true);
}

void sgl_jit_set_late_compile_hook(sgl_jit_late_compile_hook wanted, void *user) {
  pthread_mutex_lock(&lock);
  hook = wanted;
  hook_user = user;
  pthread_mutex_unlock(&lock);
}

static void report(const sgl_jit_kernel_spec *spec, const char *target, int device, char *text, size_t length) {
  pthread_mutex_lock(&lock);
  sgl_jit_late_compile_hook wanted = hook;
  void *user = hook_user;
  pthread_mutex_unlock(&lock);
  jit_count(late_compiles, 1);
  if (wanted) {
    wanted(&(sgl_jit_late_compile){*spec, target, device, text}, user);
  } else {
    text[length] = '\n'; /* in one write, so that lines of several processes do not mix */
    if (write(STDERR_FILENO, text, length + 1) < 0)
      return; /* nobody listens */
  }
}

sgl_jit_status jit_monitor(const sgl_jit_kernel_spec *spec, const char *target, int device, struct jit_message m) {
  if (!atomic_load(&warm))
    return SGL_JIT_OK;
  int mode = read_monitor();
  if (mode == SGL_JIT_MONITOR_OFF)
    return SGL_JIT_OK;
  if (mode == JIT_SETTING_INVALID)
    return jit_fail(m, SGL_JIT_ERROR_INVALID_ARGUMENT,
                    "the environment variable SGL_KERNEL_JIT_MONITOR must be off, warn or error");
  struct jit_spec_text kernel = jit_spec_text(spec);
  if (mode == SGL_JIT_MONITOR_ERROR) {
    jit_count(refused, 1);
    return jit_fail(m, SGL_JIT_ERROR_REFUSED,
                    "the kernel %s for %s (cuda:%d) is in no cache and was not compiled, since the program is past "
                    "its warm-up and the monitor is on error; before the start run: sgl-jit warm %s",
                    kernel.text, target, device, kernel.text);
  }
  char text[512];
  int length = snprintf(text, sizeof text - 1,
                        "sgl_kernel_jit: warning: the kernel %s for %s (cuda:%d) is compiled after the warm-up, which "
                        "delays this call; before the start run: sgl-jit warm %s",
                        kernel.text, target, device, kernel.text);
  report(spec, target, device, text, (size_t)length);
  return SGL_JIT_OK;
}
