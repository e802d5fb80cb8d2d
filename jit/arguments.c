/* What the operators of native.h ask of their tensors. */
#include "native.h"
#include <inttypes.h>
#include <stdio.h>

#define FAIL(...) jit_fail(m, SGL_JIT_ERROR_INVALID_ARGUMENT, __VA_ARGS__)

/* "(2, 8, 128)" */
struct sizes_text {
  char text[160];
};
static struct sizes_text list_text(const int64_t *values, int count) {
  struct sizes_text s = {"("};
  size_t length = 1;
  for (int d = 0; d < count && length < sizeof s.text - 24; d++)
    length += (size_t)snprintf(s.text + length, sizeof s.text - length, "%s%" PRId64, d ? ", " : "", values[d]);
  snprintf(s.text + length, sizeof s.text - length, ")");
  return s;
}

int64_t jit_elements(const sgl_jit_tensor *t) {
  int64_t count = 1;
  for (int d = 0; d < t->ndim; d++)
    if (t->sizes[d] == 0)
      return 0;
  for (int d = 0; d < t->ndim; d++)
    count *= t->sizes[d];
  return count;
}

/* Whatever the dtype, an element has up to 8 bytes. */
static bool fits_memory(const sgl_jit_tensor *t) {
  int64_t bytes = 8;
  for (int d = 0; d < t->ndim; d++)
    if (t->sizes[d] == 0)
      return true;
  for (int d = 0; d < t->ndim; d++)
    if (t->sizes[d] < 0 || __builtin_mul_overflow(bytes, t->sizes[d], &bytes))
      return false;
  return true;
}

sgl_jit_status jit_check_tensors(const struct jit_argument all[], int count, struct jit_message m) {
  for (int i = 0; i < count; i++) {
    const sgl_jit_tensor *t = all[i].t;
    if (!t)
      return FAIL("%s is NULL", all[i].name);
    if (t->ndim < 0 || (t->ndim > 0 && (!t->sizes || !t->strides)))
      return FAIL("%s has no sizes or no strides (NULL)", all[i].name);
    if (!fits_memory(t))
      return FAIL("%s has the sizes %s, no memory has that", all[i].name, list_text(t->sizes, t->ndim).text);
  }
  return SGL_JIT_OK;
}

sgl_jit_status jit_check_rank(const struct jit_argument *a, int ndim, struct jit_message m) {
  if (a->t->ndim != ndim)
    return FAIL("%s must have %d dimension%s, got %d", a->name, ndim, ndim == 1 ? "" : "s", (int)a->t->ndim);
  return SGL_JIT_OK;
}

sgl_jit_status jit_check_dtype(const struct jit_argument *a, const sgl_jit_dtype list[], struct jit_message m) {
  char names[160] = "";
  size_t length = 0;
  for (int i = 0; list[i] != SGL_JIT_DTYPE_OTHER; i++) {
    if (a->t->dtype == list[i])
      return SGL_JIT_OK;
    const char *between = i == 0 ? "" : list[i + 1] == SGL_JIT_DTYPE_OTHER ? " or " : ", ";
    length += (size_t)snprintf(names + length, sizeof names - length, "%s%s", between, jit_dtype_name(list[i]));
  }
  return FAIL("%s must be %s, got %s", a->name, names, jit_dtype_name(a->t->dtype));
}

sgl_jit_status jit_check_same_dtype(const struct jit_argument *a, const struct jit_argument *like,
                                    struct jit_message m) {
  if (a->t->dtype != like->t->dtype)
    return FAIL("%s must be %s like %s, got %s", a->name, jit_dtype_name(like->t->dtype), like->name,
                jit_dtype_name(a->t->dtype));
  return SGL_JIT_OK;
}

sgl_jit_status jit_check_same_sizes(const struct jit_argument *a, const struct jit_argument *like,
                                    struct jit_message m) {
  bool same = a->t->ndim == like->t->ndim;
  for (int d = 0; same && d < a->t->ndim; d++)
    same = a->t->sizes[d] == like->t->sizes[d];
  if (!same)
    return FAIL("%s must have the sizes %s like %s, got %s", a->name, list_text(like->t->sizes, like->t->ndim).text,
                like->name, list_text(a->t->sizes, a->t->ndim).text);
  return SGL_JIT_OK;
}

sgl_jit_status jit_check_same_count(const struct jit_argument *a, const struct jit_argument *like,
                                    struct jit_message m) {
  if (jit_elements(a->t) != jit_elements(like->t))
    return FAIL("%s must have as many elements as %s, %" PRId64 ", got %" PRId64, a->name, like->name,
                jit_elements(like->t), jit_elements(a->t));
  return SGL_JIT_OK;
}

sgl_jit_status jit_check_one(const struct jit_argument *a, struct jit_message m) {
  if (jit_elements(a->t) != 1)
    return FAIL("%s must have one element, got the sizes %s", a->name, list_text(a->t->sizes, a->t->ndim).text);
  return SGL_JIT_OK;
}

sgl_jit_status jit_check_contiguous(const struct jit_argument *a, struct jit_message m) {
  int64_t step = 1;
  if (jit_elements(a->t) == 0)
    return SGL_JIT_OK;
  for (int d = a->t->ndim - 1; d >= 0; d--) {
    if (a->t->sizes[d] != 1 && a->t->strides[d] != step)
      return FAIL("%s must be contiguous, got strides %s of the sizes %s; call .contiguous()", a->name,
                  list_text(a->t->strides, a->t->ndim).text, list_text(a->t->sizes, a->t->ndim).text);
    step *= a->t->sizes[d];
  }
  return SGL_JIT_OK;
}

sgl_jit_status jit_check_places(const struct jit_argument all[], int count, struct jit_message m) {
  const sgl_jit_tensor *first = all[0].t;
  if (first->device_type != SGL_JIT_DEVICE_CUDA && first->device_type != SGL_JIT_DEVICE_CPU)
    return FAIL("%s must be on a CUDA device, got %s", all[0].name, jit_device_text(first).text);
  for (int i = 0; i < count; i++) {
    const sgl_jit_tensor *t = all[i].t;
    if (t->device_type != first->device_type ||
        (t->device_type == SGL_JIT_DEVICE_CUDA && t->device_index != first->device_index))
      return FAIL("%s must be on %s like %s, got %s", all[i].name, jit_device_text(first).text, all[0].name,
                  jit_device_text(t).text);
    if (jit_elements(t) == 0)
      continue;
    size_t size = jit_element_size(t->dtype);
    if (!t->data)
      return FAIL("%s has no data (NULL)", all[i].name);
    if (size > 1 && (uintptr_t)t->data % size)
      return FAIL("%s must start at a multiple of %zu bytes, got one that starts %d bytes past", all[i].name, size,
                  (int)((uintptr_t)t->data % size));
  }
  return SGL_JIT_OK;
}

static uintptr_t bytes_of(const sgl_jit_tensor *t) {
  return (uintptr_t)jit_elements(t) * jit_element_size(t->dtype);
}

sgl_jit_status jit_check_apart(const struct jit_argument *output, const struct jit_argument *input,
                               struct jit_message m) {
  if (jit_overlap((uintptr_t)output->t->data, bytes_of(output->t), (uintptr_t)input->t->data, bytes_of(input->t)))
    return FAIL("%s must not overlap %s", output->name, input->name);
  return SGL_JIT_OK;
}
