#include "shim/policy_text.h"

#include "compat_table.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const stages[] = {"silent", "warn", "error", "tombstone"};
static const char *const serves[] = {"auto", "jit", "old", "reference"};
static const char *const directives[] = {"default", "deny", "extend", "ramp", "serve", "shadow"};
enum { STAGES = 4, SERVES = 4, DIRECTIVES = 6 };

const char *policy_stage_name(sgl_compat_stage stage) {
  return stages[stage];
}

const char *policy_serve_name(sgl_compat_serve serve) {
  return serves[serve];
}

/* --- words -------------------------------------------------------------------------------------------------------- */

struct word {
  const char *text;
  size_t length;
};
enum { WORDS = 24 };

struct parser {
  const char *at, *end;
  unsigned line;
  struct word words[WORDS];
  unsigned count; /* of the directive's words; more than WORDS: those that did not fit */
  struct word reason;
  policy_take *take;
  policy_fault *fault;
  void *user;
};

static bool is(struct word word, const char *text) {
  return word.length == strlen(text) && memcmp(word.text, text, word.length) == 0;
}

static int index_of(struct word word, const char *const list[], int count) {
  for (int i = 0; i < count; i++)
    if (is(word, list[i]))
      return i;
  return -1;
}

static bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

/* What a message shows of a word. */
struct shown {
  char text[80];
};
static struct shown show(struct word word) {
  struct shown shown;
  size_t length = word.length < sizeof shown.text - 4 ? word.length : sizeof shown.text - 4;
  for (size_t i = 0; i < length; i++)
    shown.text[i] = word.text[i] >= ' ' && word.text[i] <= '~' ? word.text[i] : '?';
  memcpy(shown.text + length, word.length > length ? "..." : "", word.length > length ? 4 : 1);
  return shown;
}

/* The next word of a directive, or an empty one at its end. `=` is a word of its own, and a comment ends the line. */
static struct word next_word(struct parser *parser) {
  while (parser->at < parser->end && is_blank(*parser->at))
    parser->at++;
  if (parser->at < parser->end && *parser->at == '#')
    while (parser->at < parser->end && *parser->at != '\n')
      parser->at++;
  struct word word = {parser->at, 0};
  while (parser->at < parser->end && !is_blank(*parser->at) && *parser->at != '\n' && *parser->at != ';') {
    if (*parser->at == '=' && word.length)
      break;
    word.length++;
    if (*parser->at++ == '=')
      break;
  }
  return word;
}

static void read_reason(struct parser *parser) {
  while (parser->at < parser->end && is_blank(*parser->at))
    parser->at++;
  const char *start = parser->at;
  while (parser->at < parser->end && *parser->at != '\n' && *parser->at != ';')
    parser->at++;
  const char *end = parser->at;
  while (end > start && is_blank(end[-1]))
    end--;
  parser->reason = (struct word){start, (size_t)(end - start)};
}

static void read_directive(struct parser *parser) {
  parser->count = 0;
  parser->reason = (struct word){"", 0};
  for (struct word word; (word = next_word(parser)).length; parser->count++) {
    if (parser->count < WORDS)
      parser->words[parser->count] = word;
    if (parser->count == 4 && is(parser->words[0], "extend") && is(word, "reason"))
      read_reason(parser);
  }
}

/* --- faults ------------------------------------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static bool fail(struct parser *parser, const char *format, ...) {
  char text[400];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  parser->fault(parser->user, parser->line, text);
  return false;
}

/* How many letters are to be changed, added or left out to make one word of the other. */
static size_t distance(struct word a, const char *b) {
  size_t length = strlen(b), row[80];
  if (a.length >= 80 || length >= 80)
    return SIZE_MAX;
  for (size_t k = 0; k <= length; k++)
    row[k] = k;
  for (size_t i = 1; i <= a.length; i++) {
    size_t corner = row[0];
    row[0] = i;
    for (size_t k = 1; k <= length; k++) {
      size_t change = corner + (a.text[i - 1] != b[k - 1]);
      corner = row[k];
      size_t one = (row[k] < row[k - 1] ? row[k] : row[k - 1]) + 1;
      row[k] = change < one ? change : one;
    }
  }
  return row[length];
}

/* "; did you mean X?", or another hint. */
static struct shown suggest(struct word word, const char *const list[], int count, const char *otherwise) {
  struct shown shown;
  size_t best = word.length / 3 + 1;
  snprintf(shown.text, sizeof shown.text, "%s", otherwise);
  for (int i = 0; i < count; i++) {
    size_t far = distance(word, list[i]);
    if (far <= best) {
      best = far - (far > 0);
      snprintf(shown.text, sizeof shown.text, "; did you mean %s?", list[i]);
    }
  }
  return shown;
}

static bool fail_name(struct parser *parser, struct word word) {
  const char *names[COMPAT_SYMBOLS];
  for (unsigned i = 0; i < COMPAT_SYMBOLS; i++)
    names[i] = compat_symbols[i].id;
  return fail(parser, "'%s' is no deleted name of " COMPAT_PACKAGE "%s", show(word).text,
              suggest(word, names, COMPAT_SYMBOLS, "; sgl-compat policy show --effective lists them").text);
}

/* --- parts -------------------------------------------------------------------------------------------------------- */

unsigned policy_symbol(const char *name, size_t length) {
  unsigned low = 0, high = COMPAT_SYMBOLS;
  while (low < high) {
    unsigned middle = (low + high) / 2;
    const char *id = compat_symbols[middle].id;
    size_t own = strlen(id);
    int order = memcmp(id, name, own < length ? own : length);
    if (order == 0 && own == length)
      return middle;
    if (order == 0)
      order = own < length ? -1 : 1;
    if (order < 0)
      low = middle + 1;
    else
      high = middle;
  }
  return COMPAT_SYMBOLS;
}

static bool take_name(struct parser *parser, struct word word, struct policy_directive *directive) {
  directive->symbol = is(word, "*") ? POLICY_ALL : policy_symbol(word.text, word.length);
  return directive->symbol != COMPAT_SYMBOLS || fail_name(parser, word);
}

static bool take_stage(struct parser *parser, struct word word, struct policy_directive *directive) {
  int stage = index_of(word, stages, STAGES);
  if (stage < 0)
    return fail(parser, "stage '%s' is none of silent, warn, error, tombstone%s", show(word).text,
                suggest(word, stages, STAGES, "").text);
  directive->stage = (sgl_compat_stage)stage;
  return true;
}

static bool take_release(struct parser *parser, struct word word, struct policy_directive *directive) {
  int release = index_of(word, compat_releases, (int)compat_releases_count);
  if (release < 0)
    return fail(parser, "'%s' is no release of " COMPAT_PACKAGE " that the catalog knows; the newest is %s",
                show(word).text, compat_releases[compat_releases_count - 1]);
  directive->release = (unsigned)release;
  return true;
}

/* Digits only, at most `most`. */
static bool take_number(struct word word, unsigned most, unsigned *number) {
  *number = 0;
  for (size_t i = 0; i < word.length; i++) {
    if (word.text[i] < '0' || word.text[i] > '9')
      return false;
    *number = *number * 10 + (unsigned)(word.text[i] - '0');
    if (*number > most)
      return false;
  }
  return word.length > 0;
}

/* "25%", "0.5%" */
static bool take_share(struct parser *parser, struct word word, struct policy_directive *directive) {
  struct word whole = {word.text, 0}, part = {"0", 1};
  unsigned percent = 0, hundredths = 0;
  bool good = word.length > 1 && word.text[word.length - 1] == '%';
  while (whole.length + 1 < word.length && word.text[whole.length] != '.')
    whole.length++;
  if (good && word.text[whole.length] == '.')
    part = (struct word){word.text + whole.length + 1, word.length - whole.length - 2};
  good = good && take_number(whole, 100, &percent) && part.length <= 2 && take_number(part, 99, &hundredths);
  directive->share = percent * 100 + hundredths * (part.length == 1 ? 10 : 1);
  return (good && directive->share <= 10000) ||
         fail(parser, "'%s' is no share of jobs: 0%% to 100%%, with two decimals at most", show(word).text);
}

static bool take_date(struct parser *parser, struct word word, struct policy_directive *directive) {
  static const unsigned days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  unsigned year = 0, month = 0, day = 0;
  bool good = word.length == 10 && word.text[4] == '-' && word.text[7] == '-' &&
              take_number((struct word){word.text, 4}, 9999, &year) &&
              take_number((struct word){word.text + 5, 2}, 12, &month) &&
              take_number((struct word){word.text + 8, 2}, 31, &day);
  bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
  good = good && month >= 1 && day >= 1 && day <= days[month - 1] + (month == 2 && leap);
  directive->until = (int)(year * 10000 + month * 100 + day);
  return good || fail(parser, "'%s' is no date: YYYY-MM-DD is needed", show(word).text);
}

/* A number with a fraction, not negative. */
static bool take_real(struct word word, double *value) {
  char text[32], *end;
  if (word.length >= sizeof text || !word.length || word.text[0] < '0' || word.text[0] > '9')
    return false;
  memcpy(text, word.text, word.length);
  text[word.length] = '\0';
  *value = strtod(text, &end);
  return !*end && *value <= 1e9;
}

static bool take_shadow_part(struct parser *parser, struct word key, struct word value, struct policy_shadow *shadow) {
  static const char *const keys[] = {"first", "every", "budget", "tolerance", "return"};
  bool good = false;
  switch (index_of(key, keys, 5)) {
  case 0:
    good = take_number(value, 1000000000, &shadow->first);
    break;
  case 1:
    good = take_number(value, 1000000000, &shadow->every);
    break;
  case 2:
    good = take_number(value, 1000, &shadow->budget);
    break;
  case 3:
    good = take_real(value, &shadow->tolerance);
    break;
  case 4:
    shadow->return_other = is(value, "other");
    good = shadow->return_other || is(value, "jit");
    break;
  default:
    return fail(parser, "shadow has no '%s': first, every, budget, tolerance or return is needed%s", show(key).text,
                suggest(key, keys, 5, "").text);
  }
  return good || fail(parser, "%s='%s' is no %s", show(key).text, show(value).text,
                      is(key, "return") ? "side: jit or other is needed" : "number that is allowed here");
}

/* --- directives --------------------------------------------------------------------------------------------------- */

static bool read_shadow(struct parser *parser, struct policy_directive *directive) {
  const struct word *w = parser->words;
  directive->kind = POLICY_SHADOW;
  if (parser->count < 5 || parser->count > WORDS || (parser->count - 2) % 3 != 0)
    return fail(parser, "this reads: shadow NAME first=N every=M budget=MS tolerance=T return=jit|other");
  if (!take_name(parser, w[1], directive))
    return false;
  for (unsigned i = 2; i < parser->count; i += 3) {
    if (!is(w[i + 1], "="))
      return fail(parser, "shadow: '%s' needs =VALUE", show(w[i]).text);
    if (!take_shadow_part(parser, w[i], w[i + 2], &directive->shadow))
      return false;
  }
  return true;
}

static bool read_keyword(struct parser *parser, struct policy_directive *directive) {
  const struct word *w = parser->words;
  if (is(w[0], "default")) {
    directive->kind = POLICY_DEFAULT;
    if (parser->count != 3 || !is(w[1], "="))
      return fail(parser, "this reads: default = RELEASE");
    return take_release(parser, w[2], directive);
  }
  if (is(w[0], "deny")) {
    directive->kind = POLICY_DENY;
    return parser->count == 2 ? take_name(parser, w[1], directive) : fail(parser, "this reads: deny NAME");
  }
  if (is(w[0], "extend")) {
    directive->kind = POLICY_EXTEND;
    directive->reason = parser->reason.text;
    directive->reason_length = parser->reason.length < 1000 ? (int)parser->reason.length : 1000;
    if (parser->count != 5 || !is(w[2], "until") || !is(w[4], "reason") || !parser->reason.length)
      return fail(parser, "this reads: extend NAME until YYYY-MM-DD reason TEXT");
    return take_name(parser, w[1], directive) && take_date(parser, w[3], directive);
  }
  if (is(w[0], "ramp")) {
    directive->kind = POLICY_RAMP;
    if (parser->count != 5 || !is(w[3], "to"))
      return fail(parser, "this reads: ramp NAME SHARE%% to STAGE");
    return take_name(parser, w[1], directive) && take_share(parser, w[2], directive) &&
           take_stage(parser, w[4], directive);
  }
  if (is(w[0], "shadow"))
    return read_shadow(parser, directive);
  directive->kind = POLICY_SERVE;
  if (parser->count != 4 || !is(w[2], "="))
    return fail(parser, "this reads: serve NAME = jit | old | reference | auto");
  int serve = index_of(w[3], serves, SERVES);
  if (serve < 0)
    return fail(parser, "serve: '%s' is none of jit, old, reference, auto%s", show(w[3]).text,
                suggest(w[3], serves, SERVES, "").text);
  directive->serve = (sgl_compat_serve)serve;
  return take_name(parser, w[1], directive);
}

static bool understand(struct parser *parser, struct policy_directive *directive) {
  const struct word *w = parser->words;
  if (index_of(w[0], directives, DIRECTIVES) >= 0)
    return read_keyword(parser, directive);
  if (parser->count > 1 && is(w[1], "=")) {
    directive->kind = POLICY_STAGE;
    if (!take_name(parser, w[0], directive))
      return false;
    if (parser->count != 3)
      return fail(parser, "this reads: NAME = silent | warn | error | tombstone");
    return take_stage(parser, w[2], directive);
  }
  return fail(parser, "'%s' begins no directive%s", show(w[0]).text,
              suggest(w[0], directives, DIRECTIVES, ": NAME = STAGE, or a word of man sgl-compat, is needed").text);
}

void policy_parse(const char *text, size_t size, policy_take *take, policy_fault *fault, void *user) {
  struct parser parser = {.at = text, .end = text + size, .line = 1, .take = take, .fault = fault, .user = user};
  if (size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) /* the mark of some editors */
    parser.at += 3;
  while (parser.at < parser.end) {
    read_directive(&parser);
    struct policy_directive directive = {.line = parser.line};
    if (parser.count && understand(&parser, &directive))
      take(user, &directive);
    if (parser.at < parser.end && *parser.at++ == '\n')
      parser.line++;
  }
}
