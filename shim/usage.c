#include "shim/usage.h"

#include "shim/policy_text.h"

#include "compat_table.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sgl_kernel_jit/sgl_kernel_jit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *const faces[] = {
    [SGL_COMPAT_CALL_CXX] = "cxx", [SGL_COMPAT_CALL_OPERATOR] = "operator", [SGL_COMPAT_CALL_PYTHON] = "python"};

static uint32_t now(void) {
  return (uint32_t)time(NULL); /* until 2106 */
}

static uint64_t count_of(const _Atomic uint64_t *count) {
  return atomic_load_explicit(count, memory_order_relaxed);
}

/* Unless it is set already. */
static void set_first(_Atomic uint32_t *first) {
  uint32_t unset = 0;
  atomic_compare_exchange_strong_explicit(first, &unset, now(), memory_order_relaxed, memory_order_relaxed);
}

/* --- call sites --------------------------------------------------------------------------------------------------- */

/* Open addressing. A key is the return address with the symbol and the face in the top byte, where addresses of user
 * programs have zeros. */
enum { SITES = 1024, PROBES = 16 };
static struct usage_site sites[SITES];
/* What stands for the sites that found no place. Nothing is said for them: a program with that many call sites has been
 * told often enough. */
static struct usage_site others[2 * COMPAT_SYMBOLS];
_Static_assert(1 + 2 * COMPAT_SYMBOLS <= 256, "the symbol and the face fit into the top byte");
_Static_assert(sizeof(uintptr_t) == 8, "addresses leave their top byte free");

static size_t place_of(uint64_t key) {
  uint64_t hash = key * UINT64_C(0x9e3779b97f4a7c15); /* Fibonacci hashing */
  return (size_t)(hash >> 32 ^
                  hash >> 54); /* the highest bits have to show: names at one address differ in them alone */
}

static const char *copy(const char *text) {
  char *made = text ? strdup(text) : NULL;
  return made ? made : "";
}

static struct usage_caller *look_up(const void *address) {
  const char *call = (const char *)address - 1;
  struct usage_caller *caller = calloc(1, sizeof *caller);
  Dl_info info;
  if (!caller)
    return NULL;
  caller->file = caller->function = "";
  if (dladdr(call, &info) && info.dli_fname) {
    caller->file = copy(info.dli_fname);
    caller->offset = (unsigned long)(call - (const char *)info.dli_fbase);
    if (info.dli_sname) {
      caller->function = copy(info.dli_sname);
      caller->function_offset = (unsigned long)(call - (const char *)info.dli_saddr);
    }
  }
  return caller;
}

const struct usage_caller *usage_caller(struct usage_site *site, const void *address) {
  const struct usage_caller *known = atomic_load_explicit(&site->caller, memory_order_acquire);
  struct usage_caller *found = known ? NULL : look_up(address);
  if (!found || atomic_compare_exchange_strong(&site->caller, &known, found))
    return known ? known : found;
  free(found); /* another thread was faster; the two names, if it had any, stay */
  return known;
}

struct usage_site *usage_site(sgl_compat_call call, unsigned symbol, const void *address) {
  uintptr_t which = 2 * (uintptr_t)symbol + (call == SGL_COMPAT_CALL_OPERATOR);
  uintptr_t key = ((uintptr_t)address & (UINTPTR_MAX >> 8)) | (1 + which) << 56;
  size_t start = place_of(key);
  for (size_t probe = 0; probe < PROBES; probe++) {
    struct usage_site *site = &sites[(start + probe) % SITES];
    uintptr_t seen = atomic_load_explicit(&site->key, memory_order_relaxed);
    if (seen == 0 && atomic_compare_exchange_strong(&site->key, &seen, key)) {
      usage_caller(site, address); /* now: at the end of the process its library may be gone */
      return site;
    }
    if (seen == key)
      return site;
  }
  atomic_store_explicit(&others[which].warned, true, memory_order_relaxed);
  return &others[which];
}

void usage_first(struct usage_site *site) {
  int saved = errno;
  set_first(&site->first);
  usage_begin();
  usage_write_look();
  errno = saved;
}

/* --- kernels ------------------------------------------------------------------------------------------------------ */

enum { KERNELS = 256 };
static _Atomic uint64_t kernels[KERNELS]; /* keys */
static _Alignas(64) _Atomic uint64_t kernel_calls[USAGE_SHARDS][KERNELS];
static _Atomic uint64_t kernels_lost;

/* Sizes are up to 2^24 and a dtype's number up to 5. */
enum { SIZE_BITS = 25, DTYPE_BITS = 3 };
#define LOW(value, bits) ((value) & ((UINT64_C(1) << (bits)) - 1))

void usage_kernel(enum serve_kernel kernel, int64_t n, int64_t k, int output_dtype) {
  uint64_t key =
      ((((uint64_t)kernel + 1) << SIZE_BITS | LOW((uint64_t)n, SIZE_BITS)) << SIZE_BITS | LOW((uint64_t)k, SIZE_BITS))
          << DTYPE_BITS |
      LOW((unsigned)output_dtype, DTYPE_BITS);
  size_t start = place_of(key);
  for (size_t probe = 0; probe < PROBES; probe++) {
    size_t i = (start + probe) % KERNELS;
    uint64_t seen = count_of(&kernels[i]);
    if (seen == key || (seen == 0 && atomic_compare_exchange_strong(&kernels[i], &seen, key)) || seen == key) {
      atomic_fetch_add_explicit(&kernel_calls[usage_shard()][i], 1, memory_order_relaxed);
      return;
    }
  }
  atomic_fetch_add_explicit(&kernels_lost, 1, memory_order_relaxed);
}

/* --- Python ------------------------------------------------------------------------------------------------------- */

/* What one line of Python does with a symbol. Lists that only grow, by the hash of all that tells places apart. */
struct place {
  struct place *next;
  sgl_compat_call call;
  unsigned symbol, line;
  const char *module, *file;
  _Atomic uint64_t calls[USAGE_STAGES], samples;
  _Atomic uint32_t first;
};
enum { BUCKETS = 512, PLACES = 8192 };
static _Atomic(struct place *) buckets[BUCKETS];
static atomic_uint places;

static unsigned find_stage(const char *name) {
  unsigned stage = 0;
  while (stage < USAGE_STAGES && !(name && strcmp(name, policy_stage_name((sgl_compat_stage)stage)) == 0))
    stage++;
  return stage;
}

static bool is_place(const struct place *place, sgl_compat_call call, unsigned symbol, const char *module,
                     const char *file, unsigned line) {
  return place->call == call && place->symbol == symbol && place->line == line && strcmp(place->file, file) == 0 &&
         strcmp(place->module, module) == 0;
}

/* Strings are copied behind the place. */
static struct place *make_place(sgl_compat_call call, unsigned symbol, const char *module, const char *file,
                                unsigned line) {
  size_t module_size = strlen(module) + 1, file_size = strlen(file) + 1;
  struct place *made = calloc(1, sizeof *made + module_size + file_size);
  if (!made)
    return NULL;
  char *text = (char *)(made + 1);
  made->call = call;
  made->symbol = symbol;
  made->line = line;
  made->module = memcpy(text, module, module_size);
  made->file = memcpy(text + module_size, file, file_size);
  return made;
}

static struct place *find_place(sgl_compat_call call, unsigned symbol, const char *module, const char *file,
                                unsigned line) {
  uint64_t hash = (uint64_t)call << 32 | symbol << 20 | line;
  for (const char *c = file; *c; c++)
    hash = hash * 31 + (unsigned char)*c;
  _Atomic(struct place *) *bucket = &buckets[place_of(hash) % BUCKETS];
  struct place *head = atomic_load_explicit(bucket, memory_order_acquire), *made = NULL, *end = NULL;
  for (;;) {
    for (struct place *at = head; at != end; at = at->next)
      if (is_place(at, call, symbol, module, file, line)) {
        free(made);
        return at;
      }
    if (!made && !(made = make_place(call, symbol, module, file, line)))
      return NULL;
    end = head; /* what is behind has been looked at */
    made->next = head;
    if (atomic_compare_exchange_strong_explicit(bucket, &head, made, memory_order_release, memory_order_acquire)) {
      atomic_fetch_add_explicit(&places, 1, memory_order_relaxed);
      return made;
    }
  }
}

void *sgl_compat_usage_python(const char *symbol, sgl_compat_call call, const char *stage, const char *module,
                              const char *file, unsigned line) {
  int saved = errno;
  unsigned index = symbol ? policy_symbol(symbol, strlen(symbol)) : COMPAT_SYMBOLS;
  unsigned number = find_stage(stage);
  bool sample = stage == NULL && call == SGL_COMPAT_CALL_OPERATOR;
  void *count = NULL;
  if (index < COMPAT_SYMBOLS && (sample || number < USAGE_STAGES) &&
      (call == SGL_COMPAT_CALL_PYTHON || call == SGL_COMPAT_CALL_OPERATOR)) {
    bool full = atomic_load_explicit(&places, memory_order_relaxed) >= PLACES;
    struct place *place =
        find_place(call, index, full || !module ? "" : module, full || !file ? "" : file, full ? 0 : line);
    if (place) {
      set_first(&place->first);
      count = sample ? &place->samples : &place->calls[number];
      sgl_compat_usage_again(count);
    }
  }
  errno = saved;
  return count;
}

void sgl_compat_usage_again(void *count) {
  if (count && atomic_fetch_add_explicit((_Atomic uint64_t *)count, 1, memory_order_relaxed) == 0) {
    int saved = errno;
    usage_begin();
    usage_write_look();
    errno = saved;
  }
}

/* --- what others serve -------------------------------------------------------------------------------------------- */

static atomic_bool uncounted_at[COMPAT_SYMBOLS][SGL_COMPAT_CALL_PYTHON + 1];
static _Atomic uint64_t uncounted_changes;

void sgl_compat_usage_uncounted(const char *symbol, sgl_compat_call call, int uncounted) {
  unsigned index = symbol ? policy_symbol(symbol, strlen(symbol)) : COMPAT_SYMBOLS;
  if (index >= COMPAT_SYMBOLS || (call != SGL_COMPAT_CALL_PYTHON && call != SGL_COMPAT_CALL_OPERATOR))
    return;
  int saved = errno;
  if (atomic_exchange(&uncounted_at[index][call], uncounted != 0) != (uncounted != 0))
    atomic_fetch_add_explicit(&uncounted_changes, 1, memory_order_relaxed);
  usage_begin(); /* also where nothing is counted: a file says what is not known */
  usage_write_look();
  errno = saved;
}

bool usage_is_uncounted(unsigned symbol, sgl_compat_call call) {
  return atomic_load_explicit(&uncounted_at[symbol][call], memory_order_relaxed);
}

/* --- samples of operators ----------------------------------------------------------------------------------------- */

static _Atomic(sgl_compat_usage_sampler) sampler;

void sgl_compat_set_usage_sampler(sgl_compat_usage_sampler function) {
  atomic_store_explicit(&sampler, function, memory_order_release);
}

void usage_sample(enum serve_kernel kernel) {
  sgl_compat_usage_sampler function = atomic_load_explicit(&sampler, memory_order_acquire);
  if (function)
    function(serve_name(kernel));
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

struct rows {
  struct usage_row *list;
  size_t count, room;
};

/* The next row, counts not yet taken; NULL without memory. */
static struct usage_row *add_row(struct rows *rows, unsigned symbol, sgl_compat_call call) {
  if (rows->count == rows->room) {
    size_t room = rows->room ? rows->room * 2 : 64;
    struct usage_row *grown = realloc(rows->list, room * sizeof *grown);
    if (!grown)
      return NULL;
    rows->list = grown;
    rows->room = room;
  }
  struct usage_row *row = &rows->list[rows->count++];
  *row = (struct usage_row){
      .symbol = compat_symbols[symbol].id, .removed_in = compat_symbols[symbol].first_without, .face = faces[call]};
  return row;
}

/* Adds the counts; false when there are none. */
static bool add_counts(struct usage_row *row, const _Atomic uint64_t calls[USAGE_STAGES]) {
  uint64_t sum = 0;
  for (int stage = 0; stage < USAGE_STAGES; stage++) {
    uint64_t count = count_of(&calls[stage]);
    row->calls[stage] += count;
    sum += count;
  }
  return sum > 0;
}

static void take_first(struct usage_row *row, const _Atomic uint32_t *first) {
  row->first = atomic_load_explicit(first, memory_order_relaxed);
  if (row->first == 0) /* the child of a fork, at a place that its parent has found */
    row->first = now();
}

/* which: 2 * symbol + whether it is an operator */
static bool add_site(struct rows *rows, const struct usage_site *site, unsigned which) {
  bool is_operator = which % 2;
  struct usage_row *row = add_row(rows, which / 2, is_operator ? SGL_COMPAT_CALL_OPERATOR : SGL_COMPAT_CALL_CXX);
  if (!row)
    return false;
  bool is_used = false;
  for (int shard = 0; shard < USAGE_SHARDS; shard++)
    is_used |= add_counts(row, site->shards[shard].calls);
  if (!is_used)
    rows->count--;
  take_first(row, &site->first);
  row->failed = count_of(&site->failed);
  if (!is_operator) /* an operator's caller is torch's dispatcher, always */
    row->caller = atomic_load_explicit(&site->caller, memory_order_acquire);
  return true;
}

static bool add_place(struct rows *rows, const struct place *place) {
  struct usage_row *row = add_row(rows, place->symbol, place->call);
  if (!row)
    return false;
  row->samples = count_of(&place->samples);
  if (!add_counts(row, place->calls) && row->samples == 0)
    rows->count--;
  take_first(row, &place->first);
  row->module = place->module;
  row->file = place->file;
  row->line = place->line;
  return true;
}

static int compare(const char *a, const char *b) {
  return strcmp(a ? a : "", b ? b : "");
}

static int order(const void *one, const void *other) {
  const struct usage_row *a = one, *b = other;
  int first = strcmp(a->symbol, b->symbol);
  first = first ? first : strcmp(a->face, b->face);
  first = first ? first : compare(a->caller ? a->caller->file : a->file, b->caller ? b->caller->file : b->file);
  first = first ? first : compare(a->module, b->module);
  if (first)
    return first;
  unsigned long x = a->caller ? a->caller->offset : a->line, y = b->caller ? b->caller->offset : b->line;
  return (x > y) - (x < y);
}

struct usage_row *usage_rows(size_t *count) {
  struct rows rows = {malloc(64 * sizeof *rows.list), 0, 64};
  bool good = rows.list != NULL;
  for (unsigned i = 0; good && i < SITES; i++) {
    uintptr_t key = atomic_load_explicit(&sites[i].key, memory_order_relaxed);
    good = key == 0 || add_site(&rows, &sites[i], (unsigned)(key >> 56) - 1);
  }
  for (unsigned i = 0; good && i < 2 * COMPAT_SYMBOLS; i++)
    good = add_site(&rows, &others[i], i);
  for (unsigned i = 0; good && i < BUCKETS; i++)
    for (struct place *at = atomic_load_explicit(&buckets[i], memory_order_acquire); good && at; at = at->next)
      good = add_place(&rows, at);
  if (!good) {
    free(rows.list);
    return NULL;
  }
  qsort(rows.list, rows.count, sizeof *rows.list, order);
  *count = rows.count;
  return rows.list;
}

bool usage_kernel_row(size_t index, char *text, size_t size, uint64_t *calls) {
  for (size_t i = 0; i < KERNELS; i++) {
    uint64_t key = count_of(&kernels[i]);
    *calls = 0;
    for (int shard = 0; shard < USAGE_SHARDS; shard++)
      *calls += count_of(&kernel_calls[shard][i]);
    if (!key || !*calls || index-- > 0)
      continue;
    enum serve_kernel kernel = (enum serve_kernel)((key >> (2 * SIZE_BITS + DTYPE_BITS)) - 1);
    unsigned n = (unsigned)LOW(key >> (SIZE_BITS + DTYPE_BITS), SIZE_BITS),
             k = (unsigned)LOW(key >> DTYPE_BITS, SIZE_BITS);
    const char *dtype = kernel != SERVE_DSV3_ROUTER_GEMM                ? ""
                        : LOW(key, DTYPE_BITS) == SGL_JIT_DTYPE_FLOAT32 ? ":float32"
                                                                        : ":bfloat16";
    snprintf(text, size, "%s:%ux%u%s", serve_name(kernel), n, k, dtype);
    return true;
  }
  return false;
}

uint64_t usage_kernels_lost(void) {
  return count_of(&kernels_lost);
}

/* --- the process -------------------------------------------------------------------------------------------------- */

/* All counts, one after the other: visits each until `visit` has seen all. */
static void each_count(void (*visit)(_Atomic uint64_t *count, void *user), void *user) {
  for (size_t i = 0; i < SITES + 2 * COMPAT_SYMBOLS; i++) {
    struct usage_site *site = i < SITES ? &sites[i] : &others[i - SITES];
    if (i < SITES && atomic_load_explicit(&site->key, memory_order_relaxed) == 0)
      continue; /* memory that was never touched */
    for (int n = 0; n < USAGE_SHARDS * USAGE_STAGES; n++)
      visit(&site->shards[n / USAGE_STAGES].calls[n % USAGE_STAGES], user);
    visit(&site->failed, user);
  }
  for (size_t i = 0; i < BUCKETS; i++)
    for (struct place *at = atomic_load_explicit(&buckets[i], memory_order_acquire); at; at = at->next) {
      for (int stage = 0; stage < USAGE_STAGES; stage++)
        visit(&at->calls[stage], user);
      visit(&at->samples, user);
    }
  for (size_t i = 0; i < KERNELS; i++)
    for (int shard = 0; shard < USAGE_SHARDS && count_of(&kernels[i]); shard++)
      visit(&kernel_calls[shard][i], user);
  visit(&kernels_lost, user);
}

static void add_to(_Atomic uint64_t *count, void *sum) {
  *(uint64_t *)sum += count_of(count);
}

uint64_t usage_total(void) {
  uint64_t sum = count_of(&uncounted_changes);
  each_count(add_to, &sum);
  return sum;
}

/* What is zero stays, so that pages that nobody has touched are not made. */
static void clear(_Atomic uint64_t *count, void *user) {
  (void)user;
  if (count_of(count))
    atomic_store_explicit(count, 0, memory_order_relaxed);
}

static void clear_first(_Atomic uint32_t *first) {
  if (atomic_load_explicit(first, memory_order_relaxed))
    atomic_store_explicit(first, 0, memory_order_relaxed);
}

static atomic_bool begun; /* in this process */

/* In the child of a fork: the parent writes what it has counted itself. Sites stay known, and what has warned has. */
static void forked(void) {
  each_count(clear, NULL);
  for (size_t i = 0; i < SITES; i++)
    clear_first(&sites[i].first);
  for (size_t i = 0; i < 2 * COMPAT_SYMBOLS; i++)
    clear_first(&others[i].first);
  for (size_t i = 0; i < BUCKETS; i++)
    for (struct place *at = atomic_load_explicit(&buckets[i], memory_order_acquire); at; at = at->next)
      clear_first(&at->first);
  atomic_store(&begun, false);
  usage_write_forked();
}

static void watch_forks(void) {
  pthread_atfork(NULL, NULL, forked);
}

bool usage_has_begun(void) {
  return atomic_load_explicit(&begun, memory_order_acquire);
}

void usage_begin(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  if (usage_has_begun())
    return;
  int saved = errno;
  pthread_once(&once, watch_forks);
  if (!atomic_exchange(&begun, true))
    usage_write_begin();
  errno = saved;
}
