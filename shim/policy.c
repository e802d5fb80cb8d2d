/* Bytes and not a table behind a pointer: a caller reads one symbol at a time, and a byte is replaced at once, so there
 * are no old tables to keep. Everything else is under a lock, which is held across fork. */
#include "shim/policy.h"

#include "shim/job.h"
#include "shim/policy_sources.h"
#include "shim/shadow.h"
#include "shim/tombstone.h"

#define XXH_INLINE_ALL
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

_Atomic uint8_t policy_bytes[COMPAT_SYMBOLS];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* --- places ------------------------------------------------------------------------------------------------------- */

/* Each text once, and never freed: "/etc/sgl-kernel-compat/policy:3". A program that makes ever new ones gets one that
 * says less. */
static const char *place(const char *text) {
  static struct known {
    struct known *next;
    char text[];
  } * first;
  static unsigned count;
  for (struct known *known = first; known; known = known->next)
    if (strcmp(known->text, text) == 0)
      return known->text;
  struct known *known = count < 4096 ? malloc(sizeof *known + strlen(text) + 1) : NULL;
  if (!known)
    return "one of many places";
  strcpy(known->text, text);
  known->next = first;
  first = known;
  count++;
  return known->text;
}

/* --- what was set ------------------------------------------------------------------------------------------------- */

/* The order of a setting: a later source wins, and in one source a name wins over `*`. 0: not set. */
static unsigned order_of(unsigned source, bool named) {
  return source * 2 + named;
}

struct setting {
  unsigned order;
  const char *from;
  sgl_compat_stage stage; /* of a stage, of a ramp */
  unsigned share;
  int until;
  const char *reason;
  sgl_compat_serve serve;
  struct policy_shadow shadow;
};

enum { KINDS = POLICY_SHADOW + 1 };
static struct {
  struct setting setting[COMPAT_SYMBOLS][KINDS]; /* that of POLICY_DEFAULT is not used */
  struct setting pin;
  unsigned pin_release;
  unsigned sources; /* read so far */
  bool loaded, has_job;
  char job[512];
  int today;
} state;

static unsigned source_of(const struct setting *setting) {
  return setting->order / 2;
}

static void set(struct setting *to, const struct policy_directive *directive, const struct setting *setting) {
  if (setting->order < to->order)
    return;
  *to = *setting;
  to->stage = directive->stage;
  to->share = directive->share;
  to->until = directive->until;
  to->serve = directive->serve;
  to->shadow = directive->shadow;
}

struct reading {
  const char *name; /* of the source */
  bool has_lines;
  unsigned source, faults;
  char first_fault[512];
};

static void take(void *user, const struct policy_directive *directive) {
  const struct reading *reading = user;
  char from[600], reason[200];
  snprintf(from, sizeof from, reading->has_lines ? "%.500s:%u" : "%.500s", reading->name, directive->line);
  snprintf(reason, sizeof reason, "%.*s", directive->reason_length, directive->reason ? directive->reason : "");
  struct setting setting = {.from = place(from), .reason = place(reason)};
  setting.order = order_of(reading->source, directive->symbol != POLICY_ALL);
  if (directive->kind == POLICY_DEFAULT) {
    set(&state.pin, directive, &setting);
    state.pin_release = directive->release;
    return;
  }
  for (unsigned i = 0; i < COMPAT_SYMBOLS; i++)
    if (directive->symbol == i || directive->symbol == POLICY_ALL)
      set(&state.setting[i][directive->kind], directive, &setting);
}

/* --- what holds --------------------------------------------------------------------------------------------------- */

int policy_today(void) {
  time_t now = time(NULL);
  struct tm utc;
  return gmtime_r(&now, &utc) ? (utc.tm_year + 1900) * 10000 + (utc.tm_mon + 1) * 100 + utc.tm_mday : 0;
}

static sgl_compat_stage catalog_stage(unsigned symbol) {
  int stage = SGL_COMPAT_STAGE_TOMBSTONE;
  while (stage > 0 && strcmp(compat_symbols[symbol].stage, policy_stage_name((sgl_compat_stage)stage)) != 0)
    stage--;
  return (sgl_compat_stage)stage;
}

static bool had(unsigned release, unsigned symbol) {
  for (unsigned i = 0; i <= release; i++)
    if (strcmp(compat_releases[i], compat_symbols[symbol].first_without) == 0)
      return false;
  return true;
}

/* The same for all processes of a job, and for a symbol another drawing than for the next one. */
static bool is_drawn(unsigned symbol, unsigned share) {
  return state.has_job &&
         XXH64(state.job, strlen(state.job), XXH64(compat_symbols[symbol].id, strlen(compat_symbols[symbol].id), 0)) %
                 10000 <
             share;
}

struct stage {
  sgl_compat_stage stage;
  bool is_set;
  const struct setting *by; /* NULL: the catalog */
  enum policy_kind kind;
  const struct setting *extension; /* that holds today; NULL */
};

static void decide(struct stage *stage, sgl_compat_stage value, enum policy_kind kind, const struct setting *by) {
  *stage = (struct stage){value, true, by, kind, NULL};
}

/* The catalog, the pin in its place, the name's own stage, the ramp, the denial, the extension. A ramp does
 * not outlive a stage that a later source sets, nor does an extension outlive anything of a later source. */
static struct stage stage_of(unsigned symbol) {
  const struct setting *settings = state.setting[symbol], *own = &settings[POLICY_STAGE],
                       *ramp = &settings[POLICY_RAMP], *deny = &settings[POLICY_DENY],
                       *extend = &settings[POLICY_EXTEND];
  struct stage stage = {catalog_stage(symbol), false, NULL, POLICY_STAGE, NULL};
  if (own->order)
    decide(&stage, own->stage, POLICY_STAGE, own);
  else if (state.pin.order && had(state.pin_release, symbol))
    decide(&stage, SGL_COMPAT_STAGE_SILENT, POLICY_DEFAULT, &state.pin);
  if (ramp->order && source_of(ramp) >= source_of(own) && ramp->stage > stage.stage && is_drawn(symbol, ramp->share))
    decide(&stage, ramp->stage, POLICY_RAMP, ramp);
  if (deny->order && stage.stage < SGL_COMPAT_STAGE_ERROR)
    decide(&stage, SGL_COMPAT_STAGE_ERROR, POLICY_DENY, deny);
  bool is_newer = (!stage.by || stage.kind == POLICY_DEFAULT || source_of(extend) >= source_of(stage.by)) &&
                  source_of(extend) >= source_of(own); /* a stage ends it, also under a denial */
  if (extend->order && is_newer && source_of(extend) >= source_of(deny)) {
    if (extend->until < state.today)
      decide(&stage, stage.stage > SGL_COMPAT_STAGE_ERROR ? stage.stage : SGL_COMPAT_STAGE_ERROR, POLICY_EXTEND,
             extend);
    else if (stage.stage > SGL_COMPAT_STAGE_SILENT)
      decide(&stage, (sgl_compat_stage)(stage.stage - 1), POLICY_EXTEND, extend);
    stage.extension = extend->until < state.today ? NULL : extend;
  }
  return stage;
}

static uint8_t byte_of(unsigned symbol) {
  struct stage stage = stage_of(symbol);
  return (uint8_t)(POLICY_KNOWN | stage.stage | (stage.is_set ? POLICY_IS_SET : 0) |
                   state.setting[symbol][POLICY_SERVE].serve << POLICY_SERVE_SHIFT);
}

static bool is_same_shadow(const struct policy_shadow *a, const struct policy_shadow *b) {
  return a->first == b->first && a->every == b->every && a->budget == b->budget && a->tolerance == b->tolerance &&
         a->return_other == b->return_other;
}

/* Only what has changed: shadow.c keeps what it was given. */
static void publish_shadow(void) {
  static struct policy_shadow known[SERVE_COUNT];
  for (int kernel = 0; kernel < SERVE_COUNT; kernel++) {
    if (!serve_is_compared((enum serve_kernel)kernel))
      continue;
    const struct policy_shadow *now = &state.setting[serve_symbol((enum serve_kernel)kernel)][POLICY_SHADOW].shadow;
    struct shadow_settings settings = {now->first, now->every, now->budget, now->tolerance, now->return_other};
    if (!is_same_shadow(now, &known[kernel]) &&
        shadow_set((enum serve_kernel)kernel, now->first || now->every ? &settings : NULL))
      known[kernel] = *now;
  }
}

static void publish(void) {
  publish_shadow();
  for (unsigned i = 0; i < COMPAT_SYMBOLS; i++)
    atomic_store(&policy_bytes[i], byte_of(i));
  tombstone_forget();
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

enum { FAULTS_SHOWN = 5 };

static void say_fault(void *user, unsigned line, const char *text) {
  struct reading *reading = user;
  if (++reading->faults <= FAULTS_SHOWN)
    dprintf(STDERR_FILENO, "sgl-kernel-compat: %s:%u: %s\n", reading->name, line, text);
}

static void before_fork(void) {
  pthread_mutex_lock(&lock);
}
static void after_fork(void) {
  pthread_mutex_unlock(&lock);
}

/* Under the lock. */
static void load(void) {
  struct policy_source sources[POLICY_SOURCES];
  if (state.loaded)
    return;
  pthread_atfork(before_fork, after_fork, after_fork);
  state.has_job = job_seed(state.job, sizeof state.job);
  state.today = policy_today();
  policy_sources_read(sources);
  for (int i = 0; i < POLICY_SOURCES; i++) {
    struct reading reading = {.name = sources[i].name, .has_lines = i != POLICY_VARIABLE, .source = ++state.sources};
    if (sources[i].problem[0])
      dprintf(STDERR_FILENO, "sgl-kernel-compat: the policy file %s is not used: it %s\n", sources[i].name,
              sources[i].problem);
    if (sources[i].text)
      policy_parse(sources[i].text, sources[i].size, take, say_fault, &reading);
    if (reading.faults > FAULTS_SHOWN)
      dprintf(STDERR_FILENO, "sgl-kernel-compat: %s: %u more faults, see sgl-compat policy check\n", sources[i].name,
              reading.faults - FAULTS_SHOWN);
  }
  policy_sources_free(sources);
  state.loaded = true;
  publish();
}

static void drop(void *user, unsigned line, const char *text) {
  (void)user, (void)line, (void)text;
}

void policy_load_text(const char *name, const char *text, size_t size) {
  pthread_mutex_lock(&lock);
  struct reading reading = {.name = name, .has_lines = true, .source = ++state.sources};
  state.today = policy_today();
  policy_parse(text, size, take, drop, &reading);
  state.loaded = true;
  publish();
  pthread_mutex_unlock(&lock);
}

uint8_t policy_load(unsigned symbol) {
  int saved = errno;
  pthread_mutex_lock(&lock);
  load();
  pthread_mutex_unlock(&lock);
  errno = saved;
  return atomic_load_explicit(&policy_bytes[symbol], memory_order_relaxed);
}

/* --- facts -------------------------------------------------------------------------------------------------------- */

struct day {
  char text[16];
};
static struct day day(int date) {
  struct day day;
  snprintf(day.text, sizeof day.text, "%04d-%02d-%02d", date / 10000 % 10000, date / 100 % 100, date % 100);
  return day;
}

static void say_extension(const struct setting *by, char *text, size_t size) {
  snprintf(text, size,
           by->until < state.today ? "%s: the extension until %s has expired: %s" : "%s: extended until %s: %s",
           by->from, day(by->until).text, by->reason);
}

static void say_from(const struct stage *stage, char *text, size_t size) {
  const struct setting *by = stage->by;
  switch (by ? stage->kind : KINDS) {
  case POLICY_STAGE:
    snprintf(text, size, "%s", by->from);
    break;
  case POLICY_DEFAULT:
    snprintf(text, size, "%s: default = %s", by->from, compat_releases[state.pin_release]);
    break;
  case POLICY_DENY:
    snprintf(text, size, "%s: deny", by->from);
    break;
  case POLICY_RAMP:
    snprintf(text, size, "%s: ramp %g%%, %s is in it", by->from, by->share / 100.0, state.job);
    break;
  case POLICY_EXTEND:
    say_extension(by, text, size);
    break;
  default:
    snprintf(text, size, "the catalog");
  }
}

static void say_ramp(unsigned symbol, char *text, size_t size) {
  const struct setting *ramp = &state.setting[symbol][POLICY_RAMP];
  if (!ramp->order)
    return;
  bool is_over = source_of(ramp) < source_of(&state.setting[symbol][POLICY_STAGE]);
  snprintf(text, size, "%s: %g%% to %s: %s%s", ramp->from, ramp->share / 100.0, policy_stage_name(ramp->stage),
           state.has_job && !is_over ? state.job : "",
           is_over                         ? "a later source sets the stage"
           : !state.has_job                ? "nothing here tells the job, so it is not ramped"
           : is_drawn(symbol, ramp->share) ? " is in it"
                                           : " is not in it");
}

static bool is_compared(unsigned symbol) {
  for (int kernel = 0; kernel < SERVE_COUNT; kernel++)
    if (serve_symbol((enum serve_kernel)kernel) == symbol)
      return serve_is_compared((enum serve_kernel)kernel);
  return false;
}

struct policy_facts policy_facts(unsigned symbol) {
  struct policy_facts facts = {0};
  pthread_mutex_lock(&lock);
  load();
  struct stage stage = stage_of(symbol);
  const struct setting *serve = &state.setting[symbol][POLICY_SERVE], *shadow = &state.setting[symbol][POLICY_SHADOW];
  facts.stage = stage.stage;
  facts.is_set = stage.is_set;
  facts.kind = stage.kind;
  facts.expired = stage.kind == POLICY_EXTEND && stage.by->until < state.today;
  facts.serve = serve->serve;
  if (is_compared(symbol)) {
    facts.shadow = shadow->shadow;
    snprintf(facts.shadow_from, sizeof facts.shadow_from, "%s", shadow->order ? shadow->from : "");
  }
  say_from(&stage, facts.from, sizeof facts.from);
  if (stage.extension)
    say_extension(stage.extension, facts.extension, sizeof facts.extension);
  say_ramp(symbol, facts.ramp, sizeof facts.ramp);
  snprintf(facts.serve_from, sizeof facts.serve_from, "%s", serve->order ? serve->from : "the catalog");
  pthread_mutex_unlock(&lock);
  return facts;
}

/* --- public functions --------------------------------------------------------------------------------------------- */

static void keep_fault(void *user, unsigned line, const char *text) {
  struct reading *reading = user;
  if (!reading->faults++)
    snprintf(reading->first_fault, sizeof reading->first_fault, "line %u: %.480s", line, text);
}

/* A stage that would have no effect is refused here, where somebody hears it. */
static void look(void *user, const struct policy_directive *directive) {
  char text[512];
  for (unsigned i = 0; i < COMPAT_SYMBOLS; i++) {
    const struct setting *deny = &state.setting[i][POLICY_DENY];
    if (directive->kind != POLICY_STAGE || directive->symbol != i || directive->stage >= SGL_COMPAT_STAGE_ERROR ||
        !deny->order)
      continue;
    snprintf(text, sizeof text, "%s is denied (%s): only an extension softens that", compat_symbols[i].id, deny->from);
    keep_fault(user, directive->line, text);
  }
}

sgl_compat_status sgl_compat_policy_set(const char *text, const char *origin, char *message, size_t message_size) {
  int saved = errno;
  struct reading reading = {.name = origin && *origin ? origin : "sgl_compat_policy_set"};
  if (!text) {
    snprintf(message, message_size, "sgl_compat_policy_set: text is NULL");
    return SGL_COMPAT_ERROR_INVALID_ARGUMENT;
  }
  pthread_mutex_lock(&lock);
  load();
  policy_parse(text, strlen(text), look, keep_fault, &reading);
  if (!reading.faults) {
    reading.source = ++state.sources;
    policy_parse(text, strlen(text), take, drop, &reading);
    publish();
  }
  pthread_mutex_unlock(&lock);
  if (reading.faults)
    snprintf(message, message_size, "sgl_compat_policy_set: %s", reading.first_fault);
  errno = saved;
  return reading.faults ? SGL_COMPAT_ERROR_INVALID_ARGUMENT : SGL_COMPAT_OK;
}

sgl_compat_status sgl_compat_policy_get(const char *symbol, sgl_compat_policy *policy, char *message,
                                        size_t message_size) {
  int saved = errno;
  unsigned index = symbol ? policy_symbol(symbol, strlen(symbol)) : COMPAT_SYMBOLS;
  if (index == COMPAT_SYMBOLS || !policy) {
    snprintf(message, message_size,
             policy ? "sgl_compat_policy_get: '%s' is no deleted name of " COMPAT_PACKAGE
                    : "sgl_compat_policy_get: policy is NULL, for '%s'",
             symbol ? symbol : "(null)");
    return SGL_COMPAT_ERROR_INVALID_ARGUMENT;
  }
  struct policy_facts facts = policy_facts(index);
  policy->stage = facts.stage;
  policy->is_set = facts.is_set;
  policy->serve = facts.serve;
  snprintf(policy->stage_from, sizeof policy->stage_from, "%.511s", facts.from);
  snprintf(policy->serve_from, sizeof policy->serve_from, "%.511s", facts.serve_from);
  errno = saved;
  return SGL_COMPAT_OK;
}
