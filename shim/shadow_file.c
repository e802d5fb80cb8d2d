#include "shim/shadow_file.h"

#include "shim/host.h"
#include "shim/job.h"
#include "shim/quiet.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define VARIABLE "SGL_KERNEL_COMPAT_SHADOW_DIR"
#define MAGIC "sgl-kernel-compat shadow 1\n"
enum { MOST_DIMENSIONS = 4, HEADER = 4096 };

/* --- writing ------------------------------------------------------------------------------------------------------ */

struct text {
  char *at, *end;
};

static void say(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(struct text *t, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(t->at, (size_t)(t->end - t->at), format, arguments);
  va_end(arguments);
  t->at = length < 0 || length >= t->end - t->at ? t->end - 1 : t->at + length;
}

static void say_numbers(struct text *t, const int64_t *numbers, int count) {
  say(t, " ");
  for (int i = 0; i < count; i++)
    say(t, "%s%" PRId64, i ? "," : "", numbers[i]);
  if (count == 0)
    say(t, "-");
}

static void say_tensor(struct text *t, const char *name, const sgl_jit_tensor *tensor) {
  say(t, "tensor %s %s", name, serve_dtype_name(tensor->dtype));
  say_numbers(t, tensor->sizes, tensor->ndim);
  say_numbers(t, tensor->strides, tensor->ndim);
  say(t, " %zu\n", host_bytes(tensor));
}

/* Under another name first: a file of the final name is whole. On failure nothing stays, and why has the reason. */
static bool write_file(const char *path, enum serve_kernel kernel, const sgl_jit_tensor host[], const void *other,
                       const char *header, size_t header_size, char *why, size_t why_size) {
  char part[PATH_MAX];
  if ((size_t)snprintf(part, sizeof part, "%s.part", path) >= sizeof part) {
    snprintf(why, why_size, "its path is too long");
    return false;
  }
  int file = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0) {
    snprintf(why, why_size, "%s: %s", part, strerror(errno));
    return false;
  }
  sigset_t before = quiet_begin();
  bool ok = quiet_write(file, header, header_size);
  for (int i = 0; i < serve_operands(kernel) && ok; i++)
    ok = quiet_write(file, host[i].data, host_bytes(&host[i]));
  ok = ok && quiet_write(file, other, host_bytes(&host[serve_output(kernel)])) && fsync(file) == 0;
  int error = errno;
  quiet_end(&before);
  ok = close(file) == 0 && ok && rename(part, path) == 0;
  if (!ok) {
    snprintf(why, why_size, "%s: %s", path, strerror(error ? error : errno));
    unlink(part);
  }
  return ok;
}

static _Atomic unsigned saved[SERVE_COUNT]; /* by this process */

void shadow_saved_none(void) {
  for (int kernel = 0; kernel < SERVE_COUNT; kernel++)
    atomic_store(&saved[kernel], 0);
}

void shadow_save(enum serve_kernel kernel, const sgl_jit_tensor host[], const void *other, const char *other_name,
                 double error, double tolerance) {
  unsigned number = atomic_fetch_add(&saved[kernel], 1);
  if (number >= SHADOW_FILES) {
    atomic_fetch_sub(&saved[kernel], 1);
    return;
  }
  const char *folder = secure_getenv(VARIABLE);
  char path[PATH_MAX] = "", why[PATH_MAX + 64] = VARIABLE " names no folder", header[HEADER], process[200];
  size_t total = host_bytes(&host[serve_output(kernel)]);
  for (int i = 0; i < serve_operands(kernel); i++)
    total += host_bytes(&host[i]);
  bool written = false;
  if (folder && folder[0]) {
    struct text t = {header, header + sizeof header};
    say(&t, MAGIC "symbol %s\nother %s\nerror %.9g\ntolerance %.9g\n", serve_name(kernel), other_name, error,
        tolerance);
    for (int i = 0; i < serve_operands(kernel); i++)
      say_tensor(&t, serve_tensor_name(kernel, i), &host[i]);
    say_tensor(&t, "other", &host[serve_output(kernel)]);
    say(&t, "end\n");
    job_process_name(process, sizeof process);
    bool fits = (size_t)snprintf(path, sizeof path, "%s/%s-%s-%u.shadow", folder, serve_name(kernel), process, number) <
                sizeof path;
    if (!fits)
      snprintf(why, sizeof why, "its path is too long");
    else if (total > SHADOW_LIMIT)
      snprintf(why, sizeof why, "it would have %zu bytes, %d are allowed", total, SHADOW_LIMIT);
    else
      written = write_file(path, kernel, host, other, header, (size_t)(t.at - header), why, sizeof why);
  }
  if (number == 0 && job_is_first_rank())
    dprintf(
        STDERR_FILENO,
        "sgl-kernel-compat: warning: %s: the JIT kernel's output differs from the %s's by %.3g of its norm, %.3g is "
        "allowed; %s%s\n",
        serve_name(kernel), other_name, error, tolerance, written ? "saved in " : "not saved: ", written ? path : why);
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

/* The next word of a line, up to `end`; false at its end. */
static bool next_word(const char **at, const char *end, char *word, size_t size) {
  const char *start = *at;
  while (start < end && *start == ' ')
    start++;
  const char *stop = start;
  while (stop < end && *stop != ' ')
    stop++;
  if (start == stop || (size_t)(stop - start) >= size)
    return false;
  memcpy(word, start, (size_t)(stop - start));
  word[stop - start] = '\0';
  *at = stop;
  return true;
}

static bool read_numbers(const char *word, int64_t numbers[MOST_DIMENSIONS], int *count) {
  *count = 0;
  if (strcmp(word, "-") == 0)
    return true;
  for (const char *at = word;; at++) {
    char *end;
    errno = 0;
    long long value = strtoll(at, &end, 10);
    if (end == at || errno || *count == MOST_DIMENSIONS || value < 0 || value > INT32_MAX)
      return false;
    numbers[(*count)++] = value;
    if (*end == '\0')
      return true;
    if (*end != ',')
      return false;
    at = end;
  }
}

/* From 0 on, or none: an error may be infinite. */
static bool read_real(const char *word, double *number) {
  char *end;
  *number = strtod(word, &end);
  return end != word && !*end && !(*number < 0);
}

/* "float32 2,16 16,1 128" into tensor; false if it is not so, or the bytes are not those of the sizes. */
static bool read_tensor(const char *at, const char *end, sgl_jit_tensor *tensor, int64_t numbers[2][MOST_DIMENSIONS]) {
  char word[128];
  if (!next_word(&at, end, word, sizeof word))
    return false;
  int dtype = SGL_JIT_DTYPE_FLOAT32, dimensions, strides;
  while (dtype <= SGL_JIT_DTYPE_FLOAT8_E5M2 && strcmp(serve_dtype_name((sgl_jit_dtype)dtype), word) != 0)
    dtype++;
  if (dtype > SGL_JIT_DTYPE_FLOAT8_E5M2 || !next_word(&at, end, word, sizeof word) ||
      !read_numbers(word, numbers[0], &dimensions) || !next_word(&at, end, word, sizeof word) ||
      !read_numbers(word, numbers[1], &strides) || dimensions != strides)
    return false;
  size_t bytes = 8;
  for (int i = 0; i < dimensions; i++)
    if (__builtin_mul_overflow(bytes, (size_t)numbers[0][i], &bytes) || bytes > (size_t)SHADOW_LIMIT * 8)
      return false;
  *tensor = (sgl_jit_tensor){NULL, (sgl_jit_dtype)dtype, SGL_JIT_DEVICE_CPU, 0, dimensions, numbers[0], numbers[1]};
  char *stop;
  return next_word(&at, end, word, sizeof word) && strtoull(word, &stop, 10) == host_bytes(tensor) && !*stop &&
         at == end;
}

static bool fault(char *message, size_t size, const char *path, const char *text) {
  snprintf(message, size, "%s: %s", path, text);
  return false;
}

static bool read_text(const char *path, const char *text, size_t size, struct shadow_record *record, char *message,
                      size_t message_size) {
  const char *at = text + strlen(MAGIC), *end = text + size;
  int tensors = 0;
  bool named = false, has_tolerance = false, ended = false;
  while (!ended) {
    const char *line = at, *stop = memchr(line, '\n', (size_t)(end - line));
    char key[32], word[64];
    if (!stop || !next_word(&at, stop, key, sizeof key))
      return fault(message, message_size, path, "its header has no end");
    bool ok = true;
    if (strcmp(key, "end") == 0) {
      ended = true;
    } else if (strcmp(key, "tensor") == 0) {
      int wanted = named ? serve_operands(record->kernel) : 0;
      ok = tensors <= wanted && named && next_word(&at, stop, word, sizeof word) &&
           strcmp(word, tensors < wanted ? serve_tensor_name(record->kernel, tensors) : "other") == 0;
      sgl_jit_tensor other;
      ok = ok && read_tensor(at, stop, tensors < wanted ? &record->tensors[tensors] : &other, record->numbers[tensors]);
      if (ok && tensors == wanted) {
        const sgl_jit_tensor *ours = &record->tensors[serve_output(record->kernel)];
        ok = other.dtype == ours->dtype && host_bytes(&other) == host_bytes(ours);
      }
      tensors++;
    } else if (next_word(&at, stop, word, sizeof word)) {
      int kernel = 0;
      if (strcmp(key, "symbol") == 0) {
        while (kernel < SERVE_COUNT && strcmp(serve_name((enum serve_kernel)kernel), word) != 0)
          kernel++;
        ok = !named && kernel < SERVE_COUNT && serve_is_compared((enum serve_kernel)kernel);
        named = true;
        if (ok)
          record->kernel = (enum serve_kernel)kernel;
      } else if (strcmp(key, "other") == 0) {
        snprintf(record->other_name, sizeof record->other_name, "%.*s", (int)(stop - (line + 6)), line + 6);
      } else if (strcmp(key, "error") == 0) {
        ok = read_real(word, &record->error);
      } else if (strcmp(key, "tolerance") == 0) {
        ok = has_tolerance = read_real(word, &record->tolerance) && isfinite(record->tolerance);
      } else {
        ok = false;
      }
    } else {
      ok = false;
    }
    if (!ok) {
      snprintf(message, message_size, "%s: this line of its header is not understood: %.*s", path,
               (int)(stop - line < 120 ? stop - line : 120), line);
      return false;
    }
    at = stop + 1;
  }
  if (!named || tensors != serve_operands(record->kernel) + 1)
    return fault(message, message_size, path, "its header does not name all tensors");
  if (!has_tolerance)
    return fault(message, message_size, path, "its header has no tolerance");
  /* The tensors get memory of their own: the kernels want them at multiples of 16 bytes. */
  for (int i = 0; i < tensors; i++) {
    bool is_other = i == tensors - 1;
    size_t bytes = host_bytes(&record->tensors[is_other ? serve_output(record->kernel) : i]);
    void *data = host_memory(bytes);
    if (!data)
      return fault(message, message_size, path, "out of memory");
    if (is_other)
      record->other = data;
    else
      record->tensors[i].data = data;
    if ((size_t)(end - at) < bytes)
      return fault(message, message_size, path, "it ends within a tensor");
    memcpy(data, at, bytes);
    at += bytes;
  }
  return at == end || fault(message, message_size, path, "something follows its last tensor");
}

bool shadow_load(const char *path, struct shadow_record *record, char *message, size_t message_size) {
  *record = (struct shadow_record){0};
  FILE *file = fopen(path, "re");
  struct stat stat;
  if (!file || fstat(fileno(file), &stat) != 0) {
    snprintf(message, message_size, "%s: %s", path, strerror(errno));
    if (file)
      fclose(file);
    return false;
  }
  size_t size = (size_t)stat.st_size;
  char *text = NULL;
  bool ok = S_ISREG(stat.st_mode) && size > strlen(MAGIC) && size <= (size_t)SHADOW_LIMIT + HEADER;
  if (ok) {
    text = malloc(size);
    ok = text && fread(text, 1, size, file) == size;
  }
  fclose(file);
  if (!ok || memcmp(text, MAGIC, strlen(MAGIC)) != 0)
    ok = fault(message, message_size, path, "no file that a shadow comparison has saved");
  else
    ok = read_text(path, text, size, record, message, message_size);
  free(text);
  if (!ok)
    shadow_record_free(record);
  return ok;
}

void shadow_record_free(struct shadow_record *record) {
  host_free(record->tensors);
  free((void *)(uintptr_t)record->other);
  *record = (struct shadow_record){0};
}
