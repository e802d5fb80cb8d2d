/* Macros and the conditions of #if. */
#include "scanner/cxx_preprocess.h"

#include "scanner/scanner.h"

#include <stdlib.h>
#include <string.h>

/* Enough for any condition that a person wrote; a macro that expands without end stops here. */
#define LARGEST_EXPANSION 4096
#define DEEPEST_EXPANSION 32
#define LONGEST_EXPANSION 100000
#define DEEPEST_EXPRESSION 200

/* --- the table ---------------------------------------------------------------------------------------------------- */

/* FNV-1a. */
uint32_t cxx_hash(const uint8_t *text, size_t length) {
  uint32_t hash = 2166136261u;
  for (size_t i = 0; i < length; i++)
    hash = (hash ^ text[i]) * 16777619u;
  return hash;
}

struct cxx_macro *cxx_macro_find(const struct cxx_macros *macros, const uint8_t *name, size_t length) {
  if (!word_filter_may(&macros->filter, name, length))
    return NULL;
  struct cxx_macro *macro = macros->buckets[cxx_hash(name, length) % CXX_MACRO_BUCKETS];
  while (macro && (macro->name.length != length || memcmp(macro->name.text, name, length) != 0))
    macro = macro->next;
  return macro;
}

bool cxx_macro_defined(const struct cxx_macros *macros, const uint8_t *name, size_t length) {
  const struct cxx_macro *macro = cxx_macro_find(macros, name, length);
  return macro && macro->defined;
}

static struct cxx_macro *enter(struct cxx_macros *macros, const uint8_t *name, size_t length) {
  struct cxx_macro *macro = cxx_macro_find(macros, name, length);
  if (!macro) {
    macro = arena_alloc(macros->arena, sizeof *macro);
    struct cxx_macro **bucket = &macros->buckets[cxx_hash(name, length) % CXX_MACRO_BUCKETS];
    macro->next = *bucket;
    *bucket = macro;
    word_filter_add(&macros->filter, name, length);
  }
  struct cxx_macro *next = macro->next;
  *macro = (struct cxx_macro){.next = next, .name = {name, (uint32_t)length}, .defined = true};
  return macro;
}

void cxx_macros_predefine(struct cxx_macros *macros, bool cuda) {
  /* GCC on Linux x86-64. None of these comes from a command line. */
  static const char *const common[][2] = {{"__cplusplus", "201703L"}, {"__GNUC__", "13"}, {"__GNUC_MINOR__", "2"},
                                          {"__linux__", "1"},         {"__linux", "1"},   {"__unix__", "1"},
                                          {"__x86_64__", "1"},        {"__LP64__", "1"},  {"__STDC__", "1"},
                                          {"__STDC_HOSTED__", "1"}};
  static const char *const device[][2] = {{"__CUDACC__", "1"}, {"__NVCC__", "1"}};
  for (size_t i = 0; i < sizeof common / sizeof *common; i++)
    enter(macros, (const uint8_t *)common[i][0], strlen(common[i][0]))->body =
        (struct cxx_string){(const uint8_t *)common[i][1], (uint32_t)strlen(common[i][1])};
  for (size_t i = 0; cuda && i < sizeof device / sizeof *device; i++)
    enter(macros, (const uint8_t *)device[i][0], strlen(device[i][0]))->body =
        (struct cxx_string){(const uint8_t *)device[i][1], (uint32_t)strlen(device[i][1])};
}

void cxx_macro_define(struct cxx_macros *macros, const struct cxx_tokens *tokens, uint32_t first, uint32_t last) {
  const struct cxx_token *list = tokens->list;
  if (first >= last || list[first].kind != CXX_WORD)
    return;
  struct cxx_macro *macro = enter(macros, tokens->bytes + list[first].start, list[first].end - list[first].start);
  uint32_t at = first + 1;
  /* Function-like only when the parenthesis touches the name. */
  if (at < last && list[at].kind == CXX_PUNCT && list[at].code == '(' && list[at].start == list[first].end) {
    macro->function_like = true;
    uint32_t close = ++at;
    while (close < last && !(list[close].kind == CXX_PUNCT && list[close].code == ')'))
      close++;
    macro->parameters = arena_alloc(macros->arena, (close - at + 1) * sizeof *macro->parameters);
    for (; at < close; at++) {
      if (list[at].kind == CXX_PUNCT && list[at].code == CXX_ELLIPSIS)
        macro->variadic = true;
      else if (list[at].kind == CXX_WORD && macro->parameters_count < UINT16_MAX)
        macro->parameters[macro->parameters_count++] =
            (struct cxx_string){tokens->bytes + list[at].start, list[at].end - list[at].start};
    }
    at = close < last ? close + 1 : last;
  }
  if (at < last)
    macro->body = (struct cxx_string){tokens->bytes + list[at].start, list[last].start - list[at].start};
}

void cxx_macro_undefine(struct cxx_macros *macros, const uint8_t *name, size_t length) {
  struct cxx_macro *macro = cxx_macro_find(macros, name, length);
  if (macro)
    macro->defined = false;
}

/* --- expansion ---------------------------------------------------------------------------------------------------- */

/* A token of a condition; defined(...) and the like are already the numbers 0 and 1. */
struct part {
  const uint8_t *text;
  uint32_t length;
  uint16_t code;
  uint8_t kind;
};

struct parts {
  struct part *list;
  size_t count;
};

struct expansion {
  struct cxx_macros *macros;
  const struct cxx_macro *open[DEEPEST_EXPANSION]; /* being expanded: not expanded again inside themselves */
  unsigned depth;
  unsigned steps; /* macros that expand to nothing cost time too */
  bool failed;
};

static void add_part(struct expansion *e, struct parts *parts, struct part part) {
  if (parts->count == LARGEST_EXPANSION) {
    e->failed = true;
    return;
  }
  if (parts->count % 64 == 0)
    parts->list = scan_alloc(parts->list, (parts->count + 64) * sizeof *parts->list);
  parts->list[parts->count++] = part;
}

static bool is_punct(const struct parts *in, size_t at, unsigned code) {
  return at < in->count && in->list[at].kind == CXX_PUNCT && in->list[at].code == code;
}

static bool is_word(const struct part *part, const char *word) {
  return part->kind == CXX_WORD && part->length == strlen(word) && memcmp(part->text, word, part->length) == 0;
}

/* Past the parenthesis that closes the one at `at`. */
static size_t past_parentheses(const struct parts *in, size_t at) {
  int depth = 0;
  for (; at < in->count; at++) {
    if (is_punct(in, at, '('))
      depth++;
    else if (is_punct(in, at, ')') && --depth == 0)
      return at + 1;
  }
  return at;
}

static void add_number(struct expansion *e, struct parts *out, bool value) {
  add_part(e, out, (struct part){(const uint8_t *)(value ? "1" : "0"), 1, 0, CXX_NUMBER});
}

/* defined X, defined(X): returns the place behind it. */
static size_t expand_defined(struct expansion *e, const struct parts *in, size_t at, struct parts *out) {
  bool parenthesis = is_punct(in, at + 1, '(');
  size_t name = at + (parenthesis ? 2 : 1);
  if (name >= in->count || in->list[name].kind != CXX_WORD || (parenthesis && !is_punct(in, name + 1, ')'))) {
    e->failed = true;
    return in->count;
  }
  add_number(e, out, cxx_macro_defined(e->macros, in->list[name].text, in->list[name].length));
  return name + (parenthesis ? 2 : 1);
}

/* __has_include(<x>) asks the tree; what __has_attribute and its like ask is not known here: no. */
static size_t expand_has(struct expansion *e, const struct parts *in, size_t at, struct parts *out) {
  bool yes = false;
  if (is_word(&in->list[at], "__has_include") && at + 2 < in->count && e->macros->has_include) {
    const struct part *name = &in->list[at + 2];
    if ((name->kind == CXX_HEADER || name->kind == CXX_STRING) && name->length > 2)
      yes = e->macros->has_include(e->macros->user, name->text + 1, name->length - 2);
  }
  add_number(e, out, yes);
  return past_parentheses(in, at + 1);
}

static void expand(struct expansion *e, const struct parts *in, struct parts *out);

static void lex_body(struct expansion *e, struct cxx_string body, struct parts *out) {
  struct cxx_tokens tokens;
  cxx_lex(&tokens, body.text, body.length);
  for (uint32_t i = 0; i < tokens.count; i++) {
    const struct cxx_token *token = &tokens.list[i];
    if (token->kind != CXX_HASH && token->kind != CXX_NEWLINE)
      add_part(e, out, (struct part){body.text + token->start, token->end - token->start, token->code, token->kind});
  }
  cxx_tokens_free(&tokens);
}

static size_t find_parameter(const struct cxx_macro *macro, const struct part *part) {
  static const struct cxx_string rest = {(const uint8_t *)"__VA_ARGS__", 11};
  if (part->kind != CXX_WORD)
    return SIZE_MAX;
  for (size_t i = 0; i < macro->parameters_count; i++)
    if (macro->parameters[i].length == part->length && memcmp(macro->parameters[i].text, part->text, part->length) == 0)
      return i;
  return macro->variadic && part->length == rest.length && memcmp(part->text, rest.text, rest.length) == 0
             ? macro->parameters_count
             : SIZE_MAX;
}

/* Argument number `wanted` of the call whose parenthesis is at `open`; the last one of a variadic macro takes all. */
static struct parts argument(const struct parts *in, size_t open, size_t close, size_t wanted, bool rest) {
  size_t number = 0, start = open + 1, at = start;
  int depth = 0;
  for (; at < close; at++) {
    if (is_punct(in, at, '('))
      depth++;
    else if (is_punct(in, at, ')'))
      depth--;
    else if (depth == 0 && is_punct(in, at, ',') && !(rest && number == wanted)) {
      if (number == wanted)
        break;
      number++;
      start = at + 1;
    }
  }
  return number == wanted ? (struct parts){in->list + start, at - start} : (struct parts){NULL, 0};
}

/* Expands the macro used at `at`; returns the place behind the use. */
static size_t expand_macro(struct expansion *e, const struct cxx_macro *macro, const struct parts *in, size_t at,
                           struct parts *out) {
  size_t end = at + 1;
  struct parts body = {0}, filled = {0};
  lex_body(e, macro->body, &body);
  if (macro->function_like) {
    end = past_parentheses(in, at + 1);
    for (size_t i = 0; i < body.count && !e->failed; i++) {
      size_t parameter = find_parameter(macro, &body.list[i]);
      if (parameter == SIZE_MAX) {
        add_part(e, &filled, body.list[i]);
        continue;
      }
      struct parts value =
          argument(in, at + 1, end - 1, parameter, macro->variadic && parameter + 1 >= macro->parameters_count);
      expand(e, &value, &filled);
    }
    free(body.list);
    body = filled;
  }
  e->open[e->depth++] = macro;
  expand(e, &body, out);
  e->depth--;
  free(body.list);
  return end;
}

static bool is_open(const struct expansion *e, const struct cxx_macro *macro) {
  for (unsigned i = 0; i < e->depth; i++)
    if (e->open[i] == macro)
      return true;
  return false;
}

static void expand(struct expansion *e, const struct parts *in, struct parts *out) {
  for (size_t at = 0; at < in->count && !e->failed;) {
    const struct part *part = &in->list[at];
    if (++e->steps > LONGEST_EXPANSION)
      e->failed = true;
    if (is_word(part, "defined")) {
      at = expand_defined(e, in, at, out);
      continue;
    }
    if (part->kind == CXX_WORD && part->length > 6 && memcmp(part->text, "__has_", 6) == 0 &&
        is_punct(in, at + 1, '(')) {
      at = expand_has(e, in, at, out);
      continue;
    }
    const struct cxx_macro *macro = part->kind == CXX_WORD ? cxx_macro_find(e->macros, part->text, part->length) : NULL;
    if (macro && macro->defined && !is_open(e, macro) && (!macro->function_like || is_punct(in, at + 1, '('))) {
      if (e->depth == DEEPEST_EXPANSION)
        e->failed = true;
      else
        at = expand_macro(e, macro, in, at, out);
      continue;
    }
    add_part(e, out, *part);
    at++;
  }
}

/* --- expressions -------------------------------------------------------------------------------------------------- */

struct reader {
  const struct parts *parts;
  size_t at;
  int depth;
  bool failed;
};

static int64_t conditional(struct reader *r);

static bool take(struct reader *r, unsigned code) {
  if (!is_punct(r->parts, r->at, code))
    return false;
  r->at++;
  return true;
}

static int64_t number_value(struct reader *r, const struct part *part) {
  char digits[64];
  size_t length = 0;
  for (size_t i = 0; i < part->length; i++)
    if (part->text[i] != '\'' && length + 1 < sizeof digits)
      digits[length++] = (char)part->text[i];
  digits[length] = '\0';
  bool binary = length > 2 && digits[0] == '0' && (digits[1] == 'b' || digits[1] == 'B');
  char *end;
  uint64_t value = strtoull(binary ? digits + 2 : digits, &end, binary ? 2 : 0);
  if (strspn(end, "uUlLzZ") != strlen(end))
    r->failed = true; /* a floating number or a suffix of somebody's own */
  return (int64_t)value;
}

static int64_t character_value(const struct part *part) {
  for (size_t i = 0; i + 1 < part->length; i++)
    if (part->text[i] == '\'')
      return part->text[i + 1];
  return 0;
}

static int64_t primary(struct reader *r) {
  if (r->at >= r->parts->count) {
    r->failed = true;
    return 0;
  }
  if (take(r, '(')) {
    int64_t value = conditional(r);
    if (!take(r, ')'))
      r->failed = true;
    return value;
  }
  const struct part *part = &r->parts->list[r->at++];
  if (part->kind == CXX_NUMBER)
    return number_value(r, part);
  if (part->kind == CXX_CHAR)
    return character_value(part);
  if (part->kind != CXX_WORD) {
    r->failed = true;
    return 0;
  }
  if (is_word(part, "true"))
    return 1;
  /* A name that is no macro is 0, also when it looks like a call. */
  if (is_punct(r->parts, r->at, '('))
    r->at = past_parentheses(r->parts, r->at);
  return 0;
}

static int64_t unary(struct reader *r) {
  if (++r->depth > DEEPEST_EXPRESSION)
    r->failed = true;
  int64_t value = 0;
  if (r->failed)
    value = 0;
  else if (take(r, '!') || (r->at < r->parts->count && r->parts->list[r->at].code == KW_not &&
                            r->parts->list[r->at].kind == CXX_WORD && ++r->at))
    value = !unary(r);
  else if (take(r, '-'))
    value = (int64_t)(0 - (uint64_t)unary(r));
  else if (take(r, '+'))
    value = unary(r);
  else if (take(r, '~'))
    value = ~unary(r);
  else
    value = primary(r);
  r->depth--;
  return value;
}

/* Binary operators by precedence, 1 binds least. */
static int binary_operator(const struct part *part) {
  if (part->kind == CXX_WORD)
    return part->code == KW_or ? 1 : part->code == KW_and ? 2 : 0;
  if (part->kind != CXX_PUNCT)
    return 0;
  switch (part->code) {
  case CXX_OR_OR:
    return 1;
  case CXX_AND_AND:
    return 2;
  case '|':
    return 3;
  case '^':
    return 4;
  case '&':
    return 5;
  case CXX_EQUAL:
  case CXX_NOT_EQUAL:
    return 6;
  case '<':
  case '>':
  case CXX_LESS_EQUAL:
  case CXX_GREATER_EQUAL:
    return 7;
  case CXX_SHIFT_LEFT:
  case CXX_SHIFT_RIGHT:
    return 8;
  case '+':
  case '-':
    return 9;
  case '*':
  case '/':
  case '%':
    return 10;
  default:
    return 0;
  }
}

static int64_t apply(struct reader *r, const struct part *operator, int64_t a, int64_t b) {
  uint64_t ua = (uint64_t)a, ub = (uint64_t)b;
  if (operator->kind == CXX_WORD)
    return operator->code == KW_or ? a || b : a && b;
  switch (operator->code) {
  case CXX_OR_OR:
    return a || b;
  case CXX_AND_AND:
    return a && b;
  case '|':
    return a | b;
  case '^':
    return a ^ b;
  case '&':
    return a & b;
  case CXX_EQUAL:
    return a == b;
  case CXX_NOT_EQUAL:
    return a != b;
  case '<':
    return a < b;
  case '>':
    return a > b;
  case CXX_LESS_EQUAL:
    return a <= b;
  case CXX_GREATER_EQUAL:
    return a >= b;
  case CXX_SHIFT_LEFT:
    return ub < 64 ? (int64_t)(ua << ub) : 0;
  case CXX_SHIFT_RIGHT:
    return ub < 64 ? a >> ub : 0;
  case '+':
    return (int64_t)(ua + ub);
  case '-':
    return (int64_t)(ua - ub);
  case '*':
    return (int64_t)(ua * ub);
  default: /* '/' and '%' */
    if (b == 0 || (a == INT64_MIN && b == -1)) {
      r->failed = true;
      return 0;
    }
    return operator->code == '/' ? a / b : a % b;
  }
}

static int64_t binary(struct reader *r, int least) {
  int64_t left = unary(r);
  while (r->at < r->parts->count) {
    const struct part *operator= & r->parts->list[r->at];
    int precedence = binary_operator(operator);
    if (precedence == 0 || precedence < least)
      break;
    r->at++;
    bool failed = r->failed;
    int64_t right = binary(r, precedence + 1);
    /* What the other side decides alone may be nonsense here: X && 1 / X. */
    bool decided = (precedence == 1 && left) || (precedence == 2 && !left);
    if (decided)
      r->failed = failed;
    left = apply(r, operator, left, right);
  }
  return left;
}

static int64_t conditional(struct reader *r) {
  if (++r->depth > DEEPEST_EXPRESSION)
    r->failed = true;
  int64_t value = r->failed ? 0 : binary(r, 1);
  if (!r->failed && take(r, '?')) {
    int64_t yes = conditional(r);
    if (!take(r, ':'))
      r->failed = true;
    int64_t no = r->failed ? 0 : conditional(r);
    value = value ? yes : no;
  }
  r->depth--;
  return value;
}

bool cxx_condition(struct cxx_macros *macros, const struct cxx_tokens *tokens, uint32_t first, uint32_t last) {
  struct expansion e = {.macros = macros};
  struct parts in = {0}, out = {0};
  for (uint32_t i = first; i < last; i++) {
    const struct cxx_token *token = &tokens->list[i];
    add_part(&e, &in, (struct part){tokens->bytes + token->start, token->end - token->start, token->code, token->kind});
  }
  expand(&e, &in, &out);
  struct reader r = {.parts = &out};
  int64_t value = conditional(&r);
  bool yes = value != 0 && !r.failed && !e.failed && r.at == out.count;
  free(in.list);
  free(out.list);
  return yes;
}
