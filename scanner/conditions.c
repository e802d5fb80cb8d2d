/* Reads conditions as text, with the operators of both languages: and, or, not, &&, ||, !, comparisons, `in`. What each
 * comparison is about is told by its words: num_tokens, x.shape[0], hidden_size, n_experts, device_sm, flashinfer. */
#include "scanner/conditions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 12
#define STEPS_MAX 2000
#define OPERANDS_MAX 4
#define SHOWN_MAX 60 /* characters of a condition in a message */
#define LISTED_MAX 6 /* conditions in a message */

struct span {
  size_t start, end;
};

enum subject { SUBJECT_NONE, SUBJECT_TOKENS, SUBJECT_K, SUBJECT_N, SUBJECT_WEIGHT, SUBJECT_SM, SUBJECT_FLASHINFER };

enum comparison { LESS, LESS_EQUAL, GREATER, GREATER_EQUAL, EQUAL, UNEQUAL, IN, NOT_IN };

/* --- text --------------------------------------------------------------------------------------------------------- */

static bool word_byte(uint8_t c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static bool blank(uint8_t c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\\';
}

static bool at_text(const uint8_t *bytes, struct span span, size_t at, const char *text) {
  size_t length = strlen(text);
  return at + length <= span.end && memcmp(bytes + at, text, length) == 0;
}

static bool at_word(const uint8_t *bytes, struct span span, size_t at, const char *word) {
  size_t end = at + strlen(word);
  return at_text(bytes, span, at, word) && (at == span.start || !word_byte(bytes[at - 1])) &&
         (end == span.end || !word_byte(bytes[end]));
}

/* The end of the string or comment that begins at `at`; `at` itself when none does. */
static size_t skip_quoted(const uint8_t *bytes, struct span span, size_t at) {
  if (bytes[at] == '"' || bytes[at] == '\'') {
    size_t i = at + 1;
    while (i < span.end && bytes[i] != bytes[at])
      i += bytes[i] == '\\' ? 2 : 1;
    return i < span.end ? i + 1 : span.end;
  }
  if (bytes[at] == '#' || at_text(bytes, span, at, "//")) {
    bool division = bytes[at] == '/' && at > span.start && at + 2 < span.end && bytes[at + 2] != ' ';
    while (!division && at < span.end && bytes[at] != '\n')
      at++;
  }
  return at;
}

/* The bracket that closes the one at `at`; span.end without one. */
static size_t closing(const uint8_t *bytes, struct span span, size_t at) {
  int depth = 0;
  while (at < span.end) {
    size_t next = skip_quoted(bytes, span, at);
    if (next > at) {
      at = next;
      continue;
    }
    if (strchr("([{", bytes[at]) && bytes[at])
      depth++;
    else if (strchr(")]}", bytes[at]) && bytes[at] && --depth == 0)
      return at;
    at++;
  }
  return span.end;
}

/* Without the comments at its end. */
static struct span without_comment(const uint8_t *bytes, struct span span) {
  size_t code = span.start;
  for (size_t at = span.start; at < span.end;) {
    size_t next = skip_quoted(bytes, span, at);
    bool comment = next > at && bytes[at] != '"' && bytes[at] != '\'';
    if (!comment && !blank(bytes[at]))
      code = next > at ? next : at + 1;
    at = next > at ? next : at + 1;
  }
  return (struct span){span.start, code};
}

static struct span trimmed(const uint8_t *bytes, struct span span) {
  for (;;) {
    while (span.start < span.end && blank(bytes[span.start]))
      span.start++;
    while (span.end > span.start && blank(bytes[span.end - 1]))
      span.end--;
    size_t comment = span.start < span.end && (bytes[span.start] == '#' || at_text(bytes, span, span.start, "//"))
                         ? skip_quoted(bytes, span, span.start)
                         : span.start;
    if (comment > span.start) {
      span.start = comment;
      continue;
    }
    if (span.start == span.end || bytes[span.start] != '(' || closing(bytes, span, span.start) != span.end - 1)
      return span;
    /* (a, b) is a tuple */
    int depth = 0;
    for (size_t i = span.start; i < span.end; i++) {
      depth += strchr("([{", bytes[i]) && bytes[i] ? 1 : strchr(")]}", bytes[i]) && bytes[i] ? -1 : 0;
      if (depth == 1 && bytes[i] == ',')
        return span;
    }
    span.start++;
    span.end--;
  }
}

/* The first of these operators outside of brackets at or behind `from`; its length is set. */
static size_t find_operator(const uint8_t *bytes, struct span span, size_t from, const char *word, const char *symbol,
                            size_t *length) {
  for (size_t at = from; at < span.end;) {
    size_t next = skip_quoted(bytes, span, at);
    if (next > at) {
      at = next;
      continue;
    }
    if (strchr("([{", bytes[at]) && bytes[at]) {
      at = closing(bytes, span, at) + 1;
      continue;
    }
    if (at_word(bytes, span, at, word) || at_text(bytes, span, at, symbol)) {
      *length = at_text(bytes, span, at, symbol) ? strlen(symbol) : strlen(word);
      return at;
    }
    at++;
  }
  return span.end;
}

/* --- numbers ------------------------------------------------------------------------------------------------------ */

static bool value_of(const struct conditions *c, struct span *span) {
  size_t start = span->start, end = span->end;
  if (!c->value || !c->value(c->user, &start, &end))
    return false;
  *span = (struct span){start, end};
  return true;
}

/* A number, or a name that is one. */
static bool number(const struct conditions *c, struct span span, long *value) {
  for (unsigned depth = 0; depth < 3; depth++) {
    span = trimmed(c->bytes, span);
    if (span.start < span.end && c->bytes[span.start] >= '0' && c->bytes[span.start] <= '9') {
      size_t at = span.start;
      for (*value = 0; at < span.end && *value < 1000000000; at++) {
        if (c->bytes[at] == '_' || c->bytes[at] == '\'')
          continue;
        if (c->bytes[at] < '0' || c->bytes[at] > '9')
          break;
        *value = *value * 10 + (c->bytes[at] - '0');
      }
      if (at + 2 == span.end && c->bytes[at] == '.') { /* 9.0 */
        *value *= 10;
        return true;
      }
      while (at < span.end && strchr("uUlL", c->bytes[at]))
        at++;
      return at == span.end;
    }
    if (!value_of(c, &span))
      return false;
  }
  return false;
}

/* (9, 0) as 90. */
static bool version(const struct conditions *c, struct span span, long *value) {
  span = trimmed(c->bytes, span);
  if (span.end - span.start < 3 || !strchr("([", c->bytes[span.start]))
    return number(c, span, value);
  const uint8_t *comma = memchr(c->bytes + span.start, ',', span.end - span.start);
  if (!comma)
    return false;
  size_t at = (size_t)(comma - c->bytes);
  long minor = 0;
  if (!number(c, (struct span){span.start + 1, at}, value))
    return false;
  number(c, (struct span){at + 1, span.end - 1}, &minor);
  *value = *value * 10 + minor;
  return true;
}

/* The largest number of (256, 384), [1, 2], {4}, range(1, 17). */
static bool largest(const struct conditions *c, struct span span, long *value) {
  span = trimmed(c->bytes, span);
  bool range = at_word(c->bytes, span, span.start, "range");
  size_t open = span.start;
  while (open < span.end && !strchr("([{", c->bytes[open]))
    open++;
  if (open == span.end || (!range && open != span.start)) {
    struct span other = span;
    return value_of(c, &other) && other.start != span.start && largest(c, other, value);
  }
  *value = 0;
  size_t count = 0;
  for (size_t at = open + 1; at < span.end;) {
    size_t stop = at;
    while (stop < span.end && !strchr(",)]}", c->bytes[stop]))
      stop++;
    long one;
    struct span item = trimmed(c->bytes, (struct span){at, stop});
    if (item.start < item.end) {
      if (!number(c, item, &one))
        return false;
      *value = one > *value ? one : *value;
      count++;
    }
    at = stop + 1;
  }
  *value -= range;
  return count > 0;
}

/* --- what it is about --------------------------------------------------------------------------------------------- */

static bool lower_is(const uint8_t *bytes, size_t start, size_t end, const char *word) {
  if (strlen(word) != end - start)
    return false;
  for (size_t i = start; i < end; i++)
    if ((bytes[i] >= 'A' && bytes[i] <= 'Z' ? bytes[i] | 0x20 : bytes[i]) != (uint8_t)word[i - start])
      return false;
  return true;
}

static bool capital(uint8_t c) {
  return c >= 'A' && c <= 'Z';
}

/* Does another word of an identifier start at `at`: numTokens, getSMVersion, isSM90Supported? */
static bool camel(const uint8_t *bytes, struct span span, size_t at) {
  bool before = bytes[at - 1] >= 'a' && bytes[at - 1] <= 'z';
  bool behind = at + 1 < span.end && bytes[at + 1] >= 'a' && bytes[at + 1] <= 'z';
  return capital(bytes[at]) && (before || behind);
}

/* Does an identifier of the text have one of these words: num_tokens, numTokens, is_sm90_supported? */
static bool has_word(const uint8_t *bytes, struct span span, const char *const *words) {
  for (size_t at = span.start; at < span.end;) {
    if (!word_byte(bytes[at]) || bytes[at] == '_') {
      at++;
      continue;
    }
    size_t stop = at + 1;
    while (stop < span.end && word_byte(bytes[stop]) && bytes[stop] != '_' && !camel(bytes, span, stop))
      stop++;
    for (size_t i = 0; words[i]; i++)
      if (lower_is(bytes, at, stop, words[i]))
        return true;
    at = stop;
  }
  return false;
}

/* The index of x.shape[0], x.size(-1), x.sizes()[1]; false when it is none. */
static bool shape_index(const uint8_t *bytes, struct span span, struct span *base, int *index) {
  static const char *const names[] = {".shape", ".size", ".sizes", "->size"};
  for (size_t at = span.end; at-- > span.start;)
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
      size_t end = at + strlen(names[i]);
      if (!at_text(bytes, span, at, names[i]) || (end < span.end && word_byte(bytes[end])))
        continue;
      bool negative = false;
      for (; end < span.end; end++) {
        negative = negative || bytes[end] == '-';
        if (bytes[end] >= '0' && bytes[end] <= '9') {
          *base = (struct span){span.start, at};
          *index = negative ? -(bytes[end] - '0') : bytes[end] - '0';
          return true;
        }
      }
      return false;
    }
  return false;
}

static const char *const flashinfer_words[] = {"flashinfer", NULL};
static const char *const sm_words[] = {"sm",     "sm90",      "sm90a", "sm100", "sm103", "sm120", "capability", "arch",
                                       "hopper", "blackwell", "cc",    "h100",  "h200",  "b200",  NULL};
static const char *const n_words[] = {"expert", "experts", "n", "e", "hd", NULL};
static const char *const k_words[] = {"hidden", "k", "dim", NULL};
static const char *const token_words[] = {"token", "tokens", "batch", "bs", "rows", "m", "seq", "seqlen", NULL};
static const char *const weight_words[] = {"weight", "weights", "w", "b", NULL};

static enum subject subject_of(const uint8_t *bytes, struct span span, long constant) {
  struct span base;
  int index;
  if (has_word(bytes, span, flashinfer_words))
    return SUBJECT_FLASHINFER;
  if (shape_index(bytes, span, &base, &index)) {
    if (has_word(bytes, base, weight_words))
      return SUBJECT_WEIGHT;
    return index == 0 || index == -2 ? SUBJECT_TOKENS : SUBJECT_K;
  }
  if (has_word(bytes, span, sm_words) || (has_word(bytes, span, (const char *const[]){"major", NULL})))
    return SUBJECT_SM;
  if (has_word(bytes, span, (const char *const[]){"token", "tokens", NULL}))
    return SUBJECT_TOKENS;
  if (has_word(bytes, span, (const char *const[]){"expert", "experts", NULL}))
    return SUBJECT_N;
  if (has_word(bytes, span, k_words) || constant == 7168)
    return SUBJECT_K;
  if (has_word(bytes, span, n_words) || constant == 2112)
    return SUBJECT_N;
  return has_word(bytes, span, token_words) ? SUBJECT_TOKENS : SUBJECT_NONE;
}

/* --- what is narrow ----------------------------------------------------------------------------------------------- */

static void add(struct conditions *c, struct span span, const char *takes, unsigned limit) {
  for (unsigned i = 0; i < c->count; i++)
    if (c->list[i].start == span.start && c->list[i].end == span.end)
      return;
  if (c->count < CONDITIONS_MOST)
    c->list[c->count++] = (struct conditions_found){span.start, span.end, takes, limit};
}

/* Of a value that is compared with `constant`: is it held to less than the new function takes? */
static void judge(struct conditions *c, struct span whole, enum subject subject, enum comparison comparison,
                  long constant) {
  const struct catalog_limits *limits = c->limits;
  bool exact = comparison == EQUAL || comparison == IN;
  long most = comparison == LESS ? constant - 1 : constant;
  bool upper = exact || comparison == LESS || comparison == LESS_EQUAL;
  switch (subject) {
  case SUBJECT_TOKENS:
    if (limits->tokens && upper && most < (long)limits->tokens && most > 0)
      add(c, whole, "it takes up to %u tokens", limits->tokens);
    break;
  case SUBJECT_K:
    if (limits->k_multiple && exact && constant > 1)
      add(c, whole, "it takes each multiple of %u", limits->k_multiple);
    break;
  case SUBJECT_N:
    if (limits->n_multiple && exact && constant > 1)
      add(c, whole, "it takes each multiple of %u", limits->n_multiple);
    break;
  case SUBJECT_WEIGHT:
    if (exact && constant > 1 && (constant == 7168 ? limits->k_multiple : limits->n_multiple))
      add(c, whole, "it takes each multiple of %u", constant == 7168 ? limits->k_multiple : limits->n_multiple);
    break;
  case SUBJECT_SM: {
    long sm = constant < 20 ? constant * 10 : constant >= 300 ? constant / 10 : constant;
    bool lower = comparison == GREATER || comparison == GREATER_EQUAL;
    if (limits->sm_least && (lower ? sm + (comparison == GREATER) > (long)limits->sm_least : upper && sm >= 70))
      add(c, whole, "it runs on sm_%u and later", limits->sm_least);
    break;
  }
  case SUBJECT_FLASHINFER:
  case SUBJECT_NONE:
    break;
  }
}

static enum comparison flipped(enum comparison comparison) {
  static const enum comparison other[] = {
      [LESS] = GREATER, [LESS_EQUAL] = GREATER_EQUAL, [GREATER] = LESS, [GREATER_EQUAL] = LESS_EQUAL,
      [EQUAL] = EQUAL,  [UNEQUAL] = UNEQUAL,          [IN] = IN,        [NOT_IN] = NOT_IN};
  return other[comparison];
}

static enum comparison negated(enum comparison comparison) {
  static const enum comparison other[] = {
      [LESS] = GREATER_EQUAL, [LESS_EQUAL] = GREATER, [GREATER] = LESS_EQUAL, [GREATER_EQUAL] = LESS,
      [EQUAL] = UNEQUAL,      [UNEQUAL] = EQUAL,      [IN] = NOT_IN,          [NOT_IN] = IN};
  return other[comparison];
}

/* The comparison operator outside of brackets at or behind `from`; span.end without one. */
static size_t find_comparison(const uint8_t *bytes, struct span span, size_t from, enum comparison *comparison,
                              size_t *length) {
  for (size_t at = from; at < span.end; at++) {
    size_t next = skip_quoted(bytes, span, at);
    if (next > at) {
      at = next - 1;
      continue;
    }
    if (bytes[at] && strchr("([{", bytes[at])) {
      at = closing(bytes, span, at);
      continue;
    }
    static const struct {
      const char *text;
      enum comparison comparison;
    } symbols[] = {{"<=", LESS_EQUAL}, {">=", GREATER_EQUAL}, {"==", EQUAL}, {"!=", UNEQUAL}};
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++)
      if (at_text(bytes, span, at, symbols[i].text)) {
        *comparison = symbols[i].comparison;
        *length = 2;
        return at;
      }
    if (at_text(bytes, span, at, "->") || at_text(bytes, span, at, "<<") || at_text(bytes, span, at, ">>")) {
      at++;
      continue;
    }
    if (bytes[at] == '<' || bytes[at] == '>') {
      *comparison = bytes[at] == '<' ? LESS : GREATER;
      *length = 1;
      return at;
    }
    if (at_word(bytes, span, at, "in")) {
      size_t before = at;
      while (before > span.start && blank(bytes[before - 1]))
        before--;
      bool not = before >= span.start + 3 && at_word(bytes, (struct span){span.start, before}, before - 3, "not");
      *comparison = not ? NOT_IN : IN;
      *length = 2;
      return at;
    }
  }
  return span.end;
}

/* One comparison of two operands. */
static void compare(struct conditions *c, struct span whole, struct span left, struct span right,
                    enum comparison comparison) {
  long constant;
  bool member = comparison == IN || comparison == NOT_IN;
  if (member) {
    if (largest(c, right, &constant))
      judge(c, whole, subject_of(c->bytes, left, constant), comparison, constant);
    return;
  }
  if (!version(c, right, &constant)) {
    struct span swap = left;
    left = right;
    right = swap;
    comparison = flipped(comparison);
    if (!version(c, right, &constant))
      return;
  }
  enum subject subject = subject_of(c->bytes, left, constant);
  struct span value = trimmed(c->bytes, left);
  for (unsigned depth = 0; depth < 3 && subject == SUBJECT_NONE && value_of(c, &value); depth++)
    subject = subject_of(c->bytes, value, constant); /* n = x.shape[0] */
  judge(c, whole, subject, comparison, constant);
}

static void read_expression(struct conditions *c, struct span span, bool holds, unsigned depth);

/* Each part of a conjunction holds; of a disjunction one does, so all parts must be narrow. */
static void read_parts(struct conditions *c, struct span span, bool holds, const char *word, const char *symbol,
                       bool all_hold, unsigned depth) {
  struct conditions parts = *c;
  parts.count = 0;
  bool each = true;
  for (size_t from = span.start; from <= span.end;) {
    size_t length = 0, stop = find_operator(c->bytes, span, from, word, symbol, &length);
    unsigned before = parts.count;
    read_expression(&parts, (struct span){from, stop}, holds, depth + 1);
    c->steps = parts.steps;
    each = each && parts.count > before;
    if (stop == span.end)
      break;
    from = stop + length;
  }
  for (unsigned i = 0; i < parts.count && (all_hold || each); i++)
    add(c, (struct span){parts.list[i].start, parts.list[i].end}, parts.list[i].takes, parts.list[i].limit);
}

static void read_atom(struct conditions *c, struct span span, bool holds, unsigned depth) {
  if (has_word(c->bytes, span, flashinfer_words)) {
    add(c, span, "a side path of FlashInfer", 0);
    return;
  }
  struct span operands[OPERANDS_MAX];
  enum comparison comparisons[OPERANDS_MAX], comparison = EQUAL;
  size_t count = 0, length = 0, from = span.start, at;
  while (count + 1 < OPERANDS_MAX && (at = find_comparison(c->bytes, span, from, &comparison, &length)) != span.end) {
    size_t end = at;
    if (comparison == NOT_IN)
      while (end > from && c->bytes[end - 1] != 'n')
        end--;
    operands[count] = trimmed(c->bytes, (struct span){from, comparison == NOT_IN && end > from + 3 ? end - 3 : at});
    comparisons[count++] = comparison;
    from = at + length;
  }
  operands[count] = trimmed(c->bytes, (struct span){from, span.end});
  if (count > 1 && !holds)
    return; /* not (1 <= m <= 16): outside, on either side */
  for (size_t i = 0; i < count; i++)
    compare(c, span, operands[i], operands[i + 1], holds ? comparisons[i] : negated(comparisons[i]));
  if (count > 0)
    return;
  struct span value = span;
  if (value_of(c, &value))
    read_expression(c, value, holds, depth + 1);
  else if (holds && c->limits->sm_least && has_word(c->bytes, span, sm_words))
    add(c, span, "it runs on sm_%u and later", c->limits->sm_least);
}

static void read_expression(struct conditions *c, struct span span, bool holds, unsigned depth) {
  span = trimmed(c->bytes, without_comment(c->bytes, span));
  size_t length;
  if (span.start == span.end || depth > DEPTH_MAX || ++c->steps > STEPS_MAX)
    return;
  if (find_operator(c->bytes, span, span.start, "or", "||", &length) != span.end) {
    read_parts(c, span, holds, "or", "||", !holds, depth);
  } else if (find_operator(c->bytes, span, span.start, "and", "&&", &length) != span.end) {
    read_parts(c, span, holds, "and", "&&", holds, depth);
  } else if (at_word(c->bytes, span, span.start, "not")) {
    read_expression(c, (struct span){span.start + 3, span.end}, !holds, depth + 1);
  } else if (c->bytes[span.start] == '!' && !at_text(c->bytes, span, span.start, "!=")) {
    read_expression(c, (struct span){span.start + 1, span.end}, !holds, depth + 1);
  } else {
    read_atom(c, span, holds, depth);
  }
}

bool conditions_open(struct conditions *conditions, const uint8_t *bytes, const struct catalog_route *route) {
  *conditions = (struct conditions){.bytes = bytes};
  if (!route ||
      !(route->limits.tokens || route->limits.k_multiple || route->limits.n_multiple || route->limits.sm_least))
    return false;
  conditions->limits = &route->limits;
  return true;
}

void conditions_read(struct conditions *conditions, size_t start, size_t end, bool holds) {
  read_expression(conditions, (struct span){start, end}, holds, 0);
}

/* --- the message -------------------------------------------------------------------------------------------------- */

static int by_place(const void *left, const void *right) {
  const struct conditions_found *a = left, *b = right;
  return (a->start > b->start) - (a->start < b->start);
}

/* The condition on one line, cut where it is long. */
static char *shown(const uint8_t *bytes, size_t start, size_t end) {
  char *text = scan_alloc(NULL, end - start + 4);
  size_t size = 0;
  for (size_t i = start; i < end; i++) {
    bool space = blank(bytes[i]);
    if (!space)
      text[size++] = (char)bytes[i];
    else if (size && text[size - 1] != ' ')
      text[size++] = ' ';
  }
  if (size > SHOWN_MAX) {
    for (size = SHOWN_MAX; size && ((uint8_t)text[size] & 0xc0) == 0x80;)
      size--;
    memcpy(text + size, "...", 3);
    size += 3;
  }
  text[size] = '\0';
  return text;
}

char *conditions_text(const struct conditions *conditions, uint32_t (*line_of)(void *user, size_t offset), void *user) {
  if (conditions->count == 0)
    return NULL;
  struct conditions_found list[CONDITIONS_MOST];
  memcpy(list, conditions->list, conditions->count * sizeof *list);
  qsort(list, conditions->count, sizeof *list, by_place);
  char *text = scan_format("; conditions that are narrower than the new function:");
  for (unsigned i = 0; i < conditions->count; i++) {
    char *longer;
    if (i == LISTED_MAX) {
      longer = scan_format("%s, and %u more", text, conditions->count - i);
    } else {
      char *condition = shown(conditions->bytes, list[i].start, list[i].end), takes[64];
      size_t head = strcspn(list[i].takes, "%");
      if (list[i].takes[head])
        snprintf(takes, sizeof takes, "%.*s%u%s", (int)head, list[i].takes, list[i].limit, list[i].takes + head + 2);
      else
        snprintf(takes, sizeof takes, "%s", list[i].takes);
      longer =
          scan_format("%s%s '%s' (line %u; %s)", text, i ? "," : "", condition, line_of(user, list[i].start), takes);
      free(condition);
    }
    free(text);
    text = longer;
    if (i == LISTED_MAX)
      break;
  }
  return text;
}
