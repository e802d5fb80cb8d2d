/* Text that libclang should not get: parsing it would take more stack, time or memory than there is. People do not
 * write it; generated or hostile files have it. The lexer then decides alone. */
#include "scanner/cxx_front.h"

#include <limits.h>
#include <string.h>

/* Clang's own limit of open brackets. */
#define DEEPEST_BRACKETS 256
/* Levels of its parser that no bracket counts: prefix operators, casts, right-hand sides, else if. */
#define LONGEST_PREFIX 200
#define LONGEST_CHAIN 1000
#define LONGEST_EXPRESSION 4000
/* Tokens after macro expansion. */
#define LARGEST_EXPANSION 5e6
#define DEEPEST_MACROS 64

static bool punct(const struct cxx_token *token, unsigned code) {
  return token->kind == CXX_PUNCT && token->code == code;
}

/* --- depth -------------------------------------------------------------------------------------------------------- */

static bool too_deep(const struct cxx_tokens *tokens) {
  unsigned brackets = 0, prefix = 0, chain = 0, operators = 0, branches = 0;
  uint8_t open[DEEPEST_BRACKETS + 1] = {0};
  int angles = 0;
  for (uint32_t i = 0; i < tokens->count; i++) {
    const struct cxx_token *token = &tokens->list[i];
    if (token->flags & CXX_DIRECTIVE || token->kind == CXX_HASH)
      continue;
    if (token->kind == CXX_WORD && token->code != KW_NONE) {
      prefix += cxx_keyword_is_expression(token->code);
      branches += token->code == KW_if || token->code == KW_else || token->code == KW_for || token->code == KW_while ||
                  token->code == KW_do;
    } else if (token->kind != CXX_PUNCT) {
      prefix = 0;
    } else if (token->code == '(' || token->code == '[' || token->code == '{') {
      if (++brackets > DEEPEST_BRACKETS)
        return true;
      open[brackets] = (uint8_t)token->code;
      if (token->code == '{')
        prefix = chain = operators = 0, angles = 0;
      else
        prefix++;
    } else if (token->code == ')' || token->code == ']') {
      brackets -= brackets > 0;
    } else if (token->code == '}') {
      brackets -= brackets > 0;
      prefix = chain = operators = 0;
      angles = 0;
      if (i + 1 < tokens->count && !(tokens->list[i + 1].kind == CXX_WORD && tokens->list[i + 1].code == KW_else))
        branches = 0;
    } else if (token->code == ';' || (token->code == ',' && open[brackets] == '{')) {
      prefix = chain = operators = 0;
      angles = 0;
      if (i + 1 < tokens->count && !(tokens->list[i + 1].kind == CXX_WORD && tokens->list[i + 1].code == KW_else))
        branches = 0;
    } else {
      prefix = token->code == ',' ? 0 : prefix + 1;
      operators++;
      chain += token->code == '=' || token->code == '?' || token->code == ':' || token->code == CXX_ASSIGN ||
               token->code == CXX_SCOPE;
      angles += token->code == '<' ? 1 : token->code == '>' ? -1 : token->code == CXX_SHIFT_RIGHT ? -2 : 0;
    }
    if (prefix > LONGEST_PREFIX || chain > LONGEST_CHAIN || operators > LONGEST_EXPRESSION ||
        branches > LONGEST_CHAIN || angles > LONGEST_PREFIX)
      return true;
  }
  return false;
}

/* --- macros ------------------------------------------------------------------------------------------------------- */

/* A use of a function-like macro whose arguments are being read. */
struct call {
  const struct cxx_macro *macro;
  int brackets;      /* open around it */
  unsigned argument; /* number of the one being read */
  double outer;      /* how often the use itself comes out */
};

static void measure(struct cxx_unit *unit, struct cxx_macro *macro, unsigned depth);

/* How often a token in the argument at hand comes out. */
static double factor(const struct call *call) {
  const struct cxx_macro *macro = call->macro;
  unsigned last = macro->parameters_count + (macro->variadic ? 1 : 0);
  if (last == 0 || !macro->repeats)
    return call->outer;
  double repeats = macro->repeats[call->argument < last ? call->argument : last - 1];
  return call->outer * (repeats > 1 ? repeats : 1);
}

static unsigned find_parameter(const struct cxx_macro *macro, const uint8_t *text, size_t length) {
  for (unsigned i = 0; macro && i < macro->parameters_count; i++)
    if (macro->parameters[i].length == length && memcmp(macro->parameters[i].text, text, length) == 0)
      return i;
  return macro && macro->variadic && length == 11 && memcmp(text, "__VA_ARGS__", 11) == 0 ? macro->parameters_count
                                                                                          : UINT_MAX;
}

/* Adds up how many tokens the text becomes. In the body of a macro: also how often each parameter comes out. */
static double sum(struct cxx_unit *unit, const struct cxx_tokens *tokens, const struct cxx_macro *inside,
                  unsigned depth) {
  struct call calls[DEEPEST_MACROS];
  unsigned top = 0;
  int brackets = 0;
  double weight = 0;
  for (uint32_t i = 0; i < tokens->count && weight < 2 * LARGEST_EXPANSION; i++) {
    const struct cxx_token *token = &tokens->list[i];
    if (token->flags & (CXX_DIRECTIVE | CXX_INACTIVE) || token->kind == CXX_HASH)
      continue;
    double times = top ? factor(&calls[top - 1]) : 1;
    if (punct(token, '(')) {
      brackets++;
    } else if (punct(token, ')') && brackets > 0) {
      brackets--;
      top -= top > 0 && calls[top - 1].brackets == brackets;
    } else if (punct(token, ',') && top > 0 && calls[top - 1].brackets + 1 == brackets) {
      calls[top - 1].argument++;
    }
    weight += times;
    if (token->kind != CXX_WORD || token->code != KW_NONE)
      continue;
    const uint8_t *text = tokens->bytes + token->start;
    size_t length = token->end - token->start;
    unsigned parameter = find_parameter(inside, text, length);
    if (parameter != UINT_MAX) {
      inside->repeats[parameter] += times;
      continue;
    }
    struct cxx_macro *macro = cxx_macro_find(&unit->macros, text, length);
    bool call = i + 1 < tokens->count && punct(&tokens->list[i + 1], '(');
    if (!macro || (macro->function_like && !call))
      continue;
    measure(unit, macro, depth + 1);
    weight += times * macro->weight;
    if (macro->function_like && top < DEEPEST_MACROS)
      calls[top++] = (struct call){macro, brackets, 0, times};
  }
  return weight;
}

static void measure(struct cxx_unit *unit, struct cxx_macro *macro, unsigned depth) {
  if (macro->measured || depth > DEEPEST_MACROS)
    return;
  macro->measured = true; /* before the body: a macro is not expanded inside itself */
  macro->repeats = arena_alloc(&unit->arena, (macro->parameters_count + 1u) * sizeof *macro->repeats);
  struct cxx_tokens tokens;
  cxx_lex(&tokens, macro->body.text, macro->body.length);
  macro->weight = sum(unit, &tokens, macro, depth);
  cxx_tokens_free(&tokens);
}

void cxx_limits_check(struct cxx_unit *unit) {
  double expansion = 0;
  for (uint32_t i = 0; i < unit->parts_count && !unit->too_much; i++) {
    const struct cxx_part *part = &unit->parts[i];
    struct cxx_tokens own = {0};
    const struct cxx_tokens *tokens = &own;
    if (i == 0)
      tokens = &unit->tokens;
    else if (part->file)
      tokens = cxx_index_tokens(unit->scan, part->file, &own);
    else
      cxx_lex(&own, part->bytes, part->size);
    expansion += sum(unit, tokens, NULL, 0);
    if (expansion > LARGEST_EXPANSION)
      unit->too_much = "its macros expand to more than five million tokens";
    else if (too_deep(tokens))
      unit->too_much = "it nests deeper than libclang can follow";
    cxx_tokens_free(&own);
  }
}
