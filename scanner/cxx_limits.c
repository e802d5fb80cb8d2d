/* Text that libclang should not get: parsing it would take more stack, time or memory than there is. People do not
 * write it; generated or hostile files have it. The lexer then decides alone. */
#include "scanner/cxx_front.h"

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

static void measure(struct cxx_unit *unit, struct cxx_macro *macro, unsigned depth);

/* Adds up what the tokens become, and how often a parameter of `inside` comes out. Arguments of a macro count as often
 * as it repeats one. */
static void sum(struct cxx_unit *unit, const struct cxx_tokens *tokens, const struct cxx_macro *inside, unsigned depth,
                double *weight, double *repeats) {
  double factors[DEEPEST_MACROS] = {1};
  int levels[DEEPEST_MACROS] = {0};
  unsigned top = 0;
  int brackets = 0;
  for (uint32_t i = 0; i < tokens->count && *weight < 2 * LARGEST_EXPANSION; i++) {
    const struct cxx_token *token = &tokens->list[i];
    if (token->flags & (CXX_DIRECTIVE | CXX_INACTIVE) || token->kind == CXX_HASH)
      continue;
    if (punct(token, '('))
      brackets++;
    else if (punct(token, ')') && brackets > 0) {
      brackets--;
      if (top > 0 && levels[top] == brackets)
        top--;
    }
    double one = 1;
    if (token->kind == CXX_WORD && token->code == KW_NONE) {
      const uint8_t *text = tokens->bytes + token->start;
      size_t length = token->end - token->start;
      bool parameter = false;
      for (unsigned k = 0; inside && k < inside->parameters_count && !parameter; k++)
        parameter = inside->parameters[k].length == length && memcmp(inside->parameters[k].text, text, length) == 0;
      if (parameter || (inside && inside->variadic && length == 11 && memcmp(text, "__VA_ARGS__", 11) == 0)) {
        *repeats += factors[top];
      } else {
        struct cxx_macro *macro = cxx_macro_find(&unit->macros, text, length);
        if (macro) {
          measure(unit, macro, depth + 1);
          one = macro->weight;
          if (macro->function_like && i + 1 < tokens->count && punct(&tokens->list[i + 1], '(') &&
              top + 1 < DEEPEST_MACROS) {
            factors[top + 1] = factors[top] * (macro->repeats > 1 ? macro->repeats : 1);
            levels[++top] = brackets;
          }
        }
      }
    }
    *weight += one * factors[top];
  }
}

static void measure(struct cxx_unit *unit, struct cxx_macro *macro, unsigned depth) {
  if (macro->measured || depth > DEEPEST_MACROS)
    return;
  macro->measured = true; /* before the body: a macro is not expanded inside itself */
  macro->weight = macro->repeats = 0;
  struct cxx_tokens tokens;
  cxx_lex(&tokens, macro->body.text, macro->body.length);
  double weight = 0, repeats = 0;
  sum(unit, &tokens, macro, depth, &weight, &repeats);
  macro->weight = weight;
  macro->repeats = repeats;
  cxx_tokens_free(&tokens);
}

void cxx_limits_check(struct cxx_unit *unit, const struct cxx_tokens *tokens) {
  if (unit->too_much)
    return;
  double repeats = 0;
  sum(unit, tokens, NULL, 0, &unit->expansion, &repeats);
  if (unit->expansion > LARGEST_EXPANSION)
    unit->too_much = "its macros expand to more than five million tokens";
  else if (too_deep(tokens))
    unit->too_much = "it nests deeper than libclang can follow";
}
