/* Statistics: exact counts, and what is in the files. */
#include "shim/job.h"
#include "shim/shadow.h"
#include "tests/shim/usage_files.h"

#include <pthread.h>
#include <time.h>

/* --- counts ------------------------------------------------------------------------------------------------------- */

static pthread_barrier_t start;
enum { THREADS = 16, ROUNDS = 20000 };

static void *count_in_thread(void *unused) {
  pthread_barrier_wait(&start);
  for (uintptr_t i = 0; i < ROUNDS; i++) {
    usage_count(usage_site(SGL_COMPAT_CALL_CXX, serve_symbol(SERVE_DSV3_ROUTER_GEMM), (void *)(0x1000 + i % 7)),
                SGL_COMPAT_STAGE_WARN);
    usage_count(usage_site(SGL_COMPAT_CALL_OPERATOR, serve_symbol(SERVE_BMM_FP8), (void *)0x1000),
                SGL_COMPAT_STAGE_SILENT);
    usage_kernel(SERVE_DSV3_ROUTER_GEMM, 256 + 8 * (int64_t)(i % 3), 7168, SGL_JIT_DTYPE_FLOAT32);
    if (i % 16 == 0) {
      void *count = sgl_compat_usage_python("awq_dequantize", SGL_COMPAT_CALL_PYTHON, "warn", "model.layers",
                                            "/srv/model/layers.py", (unsigned)(i / 16 % 50));
      sgl_compat_usage_again(count);
    }
    if (i % 5000 == 0) { /* writing goes on meanwhile */
      size_t rows;
      free(usage_rows(&rows));
    }
  }
  return unused;
}

static void sixteen_threads(void) {
  pthread_t thread[THREADS];
  pthread_barrier_init(&start, NULL, THREADS);
  for (int i = 0; i < THREADS; i++)
    EXPECT(pthread_create(&thread[i], NULL, count_in_thread, NULL) == 0);
  for (int i = 0; i < THREADS; i++)
    pthread_join(thread[i], NULL);
  json_t *all = written();
  EXPECT(calls_of(all, "dsv3_router_gemm", "cxx", "warn") == (long long)THREADS * ROUNDS);
  EXPECT(calls_of(all, "bmm_fp8", "operator", "silent") == (long long)THREADS * ROUNDS);
  EXPECT(calls_of(all, "awq_dequantize", "python", "warn") == 2LL * THREADS * (ROUNDS / 16));
  EXPECT(json_array_size(all) == 1 + 7 + 1 + 50 + 3);
  long long sum = 0;
  size_t i;
  json_t *line;
  json_array_foreach(all, i, line) {
    if (json_object_get(line, "kernel"))
      sum += json_integer_value(json_object_get(line, "calls"));
  }
  EXPECT(sum == (long long)THREADS * ROUNDS);
  json_decref(all);
  remove_folder();
}
static void threads(void) {
  world_child(sixteen_threads);
}

/* What is in the lines of real calls. */
static struct world_operands operands;
static volatile int after;
__attribute__((noinline, visibility("default"))) int the_caller(void);
int the_caller(void) {
  world_cxx_router(&operands.tensor[0], &operands.tensor[1], &operands.tensor[2]);
  return ++after;
}

static void call(void *unused) {
  (void)unused;
  the_caller();
}

static const json_t *line_of(const json_t *all, const char *key, const char *value) {
  size_t i;
  const json_t *line;
  json_array_foreach(all, i, line) {
    const char *is = json_string_value(json_object_get(line, key));
    if (is && strcmp(is, value) == 0)
      return line;
  }
  static json_t *none;
  return none = none ? none : json_object();
}
static const char *string(const json_t *object, const char *key) {
  const char *value = json_string_value(json_object_get(object, key));
  return value ? value : "";
}

static char sampled[100];
static int samples;
static void sampler(const char *symbol) {
  snprintf(sampled, sizeof sampled, "%s", symbol);
  samples++;
  sgl_compat_usage_python(symbol, SGL_COMPAT_CALL_OPERATOR, NULL, "model",
                          "/srv/mod\xff"
                          "el.py",
                          12);
}

static void real_calls(void) {
  setenv("RANK", "3", 1);
  setenv("SLURM_JOB_ID", "job \"7\"", 1);
  EXPECT(world_torch("fake_torch") != NULL);
  EXPECT(sgl_jit_set_backend(SGL_JIT_BACKEND_REFERENCE, NULL, 0) == SGL_JIT_OK);
  EXPECT(sgl_compat_set_warnings(SGL_COMPAT_WARNINGS_OFF, NULL, 0) == SGL_COMPAT_OK);
  world_router(&operands);
  for (int i = 0; i < 3; i++)
    the_caller();
  operands.tensor[2].dtype = FAKE_FLOAT32; /* which no kernel takes */
  EXPECT(world_throws(call, NULL));
  sgl_compat_set_usage_sampler(sampler);
  for (int i = 0; i < 40; i++) {
    struct usage_site *site = usage_site(SGL_COMPAT_CALL_OPERATOR, serve_symbol(SERVE_DSV3_FUSED_A_GEMM), (void *)0x10);
    if (usage_is_sampled(usage_count(site, SGL_COMPAT_STAGE_WARN)))
      usage_sample(SERVE_DSV3_FUSED_A_GEMM);
  }
  EXPECT(samples == USAGE_SAMPLES + 2); /* the first ones, and those after 16 and 32 */
  EXPECT_STRINGS(sampled, "dsv3_fused_a_gemm");
  json_t *all = written();
  const json_t *header = json_array_get(all, 0), *use = line_of(all, "symbol", "dsv3_router_gemm");
  EXPECT_STRINGS(string(header, "schema"), "sgl-kernel-compat-usage/1");
  EXPECT_STRINGS(string(header, "job"), "SLURM_JOB_ID=job \"7\"");
  EXPECT_STRINGS(string(header, "rank"), "3");
  EXPECT(json_integer_value(json_object_get(header, "pid")) == getpid());
  EXPECT(json_integer_value(json_object_get(header, "lines")) == (json_int_t)json_array_size(all) - 1);
  EXPECT(json_integer_value(json_object_get(json_object_get(use, "calls"), "warn")) == 4);
  EXPECT(json_integer_value(json_object_get(use, "failed")) == 1);
  EXPECT_STRINGS(string(use, "removed_in"), "0.4.5");
  long long first = json_integer_value(json_object_get(use, "first"));
  EXPECT(first <= time(NULL) && first > time(NULL) - 600);
  const json_t *caller = json_object_get(use, "caller");
  EXPECT_CONTAINS(string(caller, "file"), "test_usage");
  EXPECT_STRINGS(string(caller, "function"), "the_caller");
  EXPECT(strncmp(string(caller, "offset"), "0x", 2) == 0);
  const json_t *kernel = line_of(all, "kernel", "dsv3_router_gemm:16x256:float32");
  EXPECT(json_integer_value(json_object_get(kernel, "calls")) == 3); /* the failed call ran none */
  EXPECT(calls_of(all, "dsv3_fused_a_gemm", "operator", "warn") == 40);
  size_t i;
  const json_t *line, *found = NULL;
  json_array_foreach(all, i, line) {
    if (json_object_get(line, "samples"))
      found = line;
  }
  EXPECT(json_integer_value(json_object_get(found, "samples")) == USAGE_SAMPLES + 2);
  EXPECT_STRINGS(string(json_object_get(found, "caller"), "file"), "/srv/mod\\xffel.py");
  char path[400];
  files(".prom", path, sizeof path);
  const char *metrics = text_of(path);
  EXPECT_CONTAINS(metrics, "# TYPE sgl_kernel_compat_calls_total counter\n");
  EXPECT_CONTAINS(
      metrics, "sgl_kernel_compat_calls_total{symbol=\"dsv3_router_gemm\",face=\"cxx\",stage=\"warn\","
               "removed_in=\"0.4.5\",module=\"test_usage\",job_id=\"SLURM_JOB_ID=job \\\"7\\\"\",rank=\"3\",host=\"");
  char process[64]; /* as in the file's name: a pid comes again, and the collector keeps the files of those before */
  snprintf(process, sizeof process, "pid=\"%ld\",start=\"%llu\"} 4\n", (long)getpid(), job_started());
  EXPECT(job_started() > 0);
  EXPECT(json_integer_value(json_object_get(header, "start")) == (json_int_t)job_started());
  EXPECT_CONTAINS(metrics, process);
  json_decref(all);
  remove_folder();
}
static void contents(void) {
  world_child(real_calls);
}

static void python_places(void) {
  EXPECT(sgl_compat_usage_python("nothing", SGL_COMPAT_CALL_PYTHON, "warn", "m", "f", 1) == NULL);
  EXPECT(sgl_compat_usage_python("bmm_fp8", SGL_COMPAT_CALL_PYTHON, "loud", "m", "f", 1) == NULL);
  EXPECT(sgl_compat_usage_python("bmm_fp8", SGL_COMPAT_CALL_CXX, "warn", "m", "f", 1) == NULL);
  EXPECT(sgl_compat_usage_python(NULL, SGL_COMPAT_CALL_PYTHON, "warn", "m", "f", 1) == NULL);
  void *one = sgl_compat_usage_python("bmm_fp8", SGL_COMPAT_CALL_PYTHON, "warn", "m", "f", 1);
  EXPECT(one && sgl_compat_usage_python("bmm_fp8", SGL_COMPAT_CALL_PYTHON, "warn", "m", "f", 1) == one);
  EXPECT(sgl_compat_usage_python("bmm_fp8", SGL_COMPAT_CALL_PYTHON, "error", "m", "f", 1) != one);
  EXPECT(sgl_compat_usage_python("bmm_fp8", SGL_COMPAT_CALL_PYTHON, "warn", "m", "f", 2) != one);
  EXPECT(sgl_compat_usage_python("bmm_fp8", SGL_COMPAT_CALL_PYTHON, "warn", NULL, NULL, 0) != one);
  for (unsigned line = 0; line < 20000; line++) /* code that makes code */
    EXPECT(sgl_compat_usage_python("bmm_fp8", SGL_COMPAT_CALL_PYTHON, "warn", "m", "g", line) != NULL);
  sgl_compat_usage_again(NULL);
  size_t count;
  struct usage_row *rows = usage_rows(&count);
  uint64_t sum = 0;
  for (size_t i = 0; i < count; i++)
    sum += rows[i].calls[SGL_COMPAT_STAGE_WARN];
  EXPECT(sum == 20000 + 4 && count < 10000);
  free(rows);
}
static void places(void) {
  world_child(python_places);
}

/* What the installed package serves: each name once, with its faces, in a file of a process that has used nothing. */
static void uncounted_names(void) {
  uint64_t before = usage_total();
  sgl_compat_usage_uncounted("dsv3_router_gemm", SGL_COMPAT_CALL_PYTHON, 1);
  sgl_compat_usage_uncounted("dsv3_router_gemm", SGL_COMPAT_CALL_OPERATOR, 1);
  sgl_compat_usage_uncounted("bmm_fp8", SGL_COMPAT_CALL_PYTHON, 1);
  sgl_compat_usage_uncounted("bmm_fp8", SGL_COMPAT_CALL_PYTHON, 0);
  sgl_compat_usage_uncounted("bmm_fp8", SGL_COMPAT_CALL_CXX, 1);
  sgl_compat_usage_uncounted("nothing", SGL_COMPAT_CALL_PYTHON, 1);
  sgl_compat_usage_uncounted(NULL, SGL_COMPAT_CALL_PYTHON, 1);
  EXPECT(usage_has_begun() && usage_total() != before);
  json_t *all = written();
  const json_t *line = line_of(all, "not_counted", "dsv3_router_gemm");
  char *faces = json_dumps(json_object_get(line, "faces"), JSON_COMPACT);
  EXPECT_STRINGS(faces, "[\"operator\",\"python\"]");
  EXPECT(json_array_size(all) == 2);
  free(faces);
  json_decref(all);
  remove_folder();
}
static void uncounted(void) {
  world_child(uncounted_names);
}

/* Shadow's outcomes are written, also where it is on and no call has come. */
static void shadow_lines(void) {
  static const struct shadow_settings settings = {.first = 1};
  EXPECT(shadow_set(SERVE_BMM_FP8, &settings));
  json_t *all = written();
  const json_t *line = line_of(all, "shadow", "bmm_fp8");
  EXPECT(json_is_integer(json_object_get(line, "calls")) && json_is_integer(json_object_get(line, "over_budget")));
  EXPECT(json_array_size(all) == 2);
  char path[400];
  files(".prom", path, sizeof path);
  EXPECT_CONTAINS(text_of(path), "sgl_kernel_compat_shadow_total{symbol=\"bmm_fp8\",outcome=\"mismatch\",");
  json_decref(all);
  remove_folder();
}
static void shadow(void) {
  world_child(shadow_lines);
}

static const struct unit_test tests[] = {
    {"threads", threads}, {"contents", contents}, {"places", places}, {"uncounted", uncounted}, {"shadow", shadow}};
UNIT_MAIN("shim.usage", tests)
