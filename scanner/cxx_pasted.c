/* Names that a macro pastes together: CAT(dsv3_, router_gemm), where the text has no name to find. */
#include "scanner/cxx_front.h"

#include <string.h>

#define MOST_ARGUMENTS 16
#define MOST_LENGTH 128
#define DEEPEST 4
/* Tokens of macros' bodies that are read for one file; what is behind them is not followed. */
#define MOST_TOKENS 2000000

/* The arguments of one invocation: the word that each is, or no text when it is something else. */
struct arguments {
  struct cxx_string list[MOST_ARGUMENTS];
  unsigned count;
};

struct paster {
  const struct cxx_unit *unit;
  uint32_t token; /* of the macro's name in the file */
  size_t read;    /* tokens so far */
};

static bool is_punct(const struct cxx_tokens *tokens, uint32_t at, unsigned code) {
  return at < tokens->count && tokens->list[at].kind == CXX_PUNCT && tokens->list[at].code == code;
}

static struct cxx_string text_of(const struct cxx_tokens *tokens, uint32_t at) {
  const struct cxx_token *token = &tokens->list[at];
  return (struct cxx_string){tokens->bytes + token->start, token->end - token->start};
}

static struct cxx_macro *pasting_macro(const struct cxx_unit *unit, const struct cxx_tokens *tokens, uint32_t at) {
  if (at >= tokens->count || tokens->list[at].kind != CXX_WORD || !is_punct(tokens, at + 1, '('))
    return NULL;
  struct cxx_string name = text_of(tokens, at);
  struct cxx_macro *macro = cxx_macro_find(&unit->macros, name.text, name.length);
  return macro && macro->function_like && !macro->plain ? macro : NULL;
}

/* What the word stands for inside of `macro`: its argument, or itself. */
static struct cxx_string value_of(const struct cxx_macro *macro, const struct arguments *given,
                                  struct cxx_string word) {
  for (unsigned i = 0; macro && i < macro->parameters_count; i++)
    if (macro->parameters[i].length == word.length && memcmp(macro->parameters[i].text, word.text, word.length) == 0)
      return i < given->count ? given->list[i] : (struct cxx_string){NULL, 0};
  return word;
}

/* #define PREFIX dsv3_ */
static struct cxx_string expanded(const struct cxx_unit *unit, struct cxx_string word) {
  const struct cxx_macro *macro = word.length ? cxx_macro_find(&unit->macros, word.text, word.length) : NULL;
  return macro && !macro->function_like && macro->defined && macro->body.length ? macro->body : word;
}

/* Reads the arguments behind the parenthesis at `open`, with those of the macro around it put in. */
static void read_arguments(const struct cxx_unit *unit, const struct cxx_tokens *tokens, uint32_t open,
                           const struct cxx_macro *around, const struct arguments *given, struct arguments *arguments) {
  int depth = 0;
  uint32_t first = open + 1;
  arguments->count = 0;
  for (uint32_t at = open; at < tokens->count && arguments->count < MOST_ARGUMENTS; at++) {
    depth += is_punct(tokens, at, '(') - is_punct(tokens, at, ')');
    if (depth > 1 || (depth == 1 && !is_punct(tokens, at, ',')))
      continue;
    bool word = at == first + 1 && tokens->list[first].kind == CXX_WORD;
    struct cxx_string value = word ? value_of(around, given, text_of(tokens, first)) : (struct cxx_string){NULL, 0};
    arguments->list[arguments->count++] = around ? expanded(unit, value) : value;
    first = at + 1;
    if (depth == 0)
      return;
  }
}

static void found(const struct paster *paster, const char *text, size_t length) {
  const struct cxx_unit *unit = paster->unit;
  int name = cxx_index_find(unit->scan, (const uint8_t *)text, length);
  const struct catalog_symbol *symbol = name < 0 ? NULL : cxx_unit_removed(unit, name);
  bool removed, other;
  if (!symbol)
    return;
  cxx_scopes_declared(unit, name, &removed, &other);
  if (other && !removed)
    return;
  uint32_t line, column;
  cxx_unit_position(unit, unit->tokens.list[paster->token].start, &line, &column);
  result_find(unit->result, line, column, symbol, VERDICT_REPORT, EVIDENCE_LEXICAL, LEVEL_ERROR,
              "this macro puts the name %.*s together, which is gone; change it by hand", (int)length, text);
}

static void paste(struct paster *paster, struct cxx_macro *macro, const struct arguments *given, unsigned depth) {
  struct cxx_tokens body;
  cxx_lex(&body, macro->body.text, macro->body.length);
  paster->read += body.count;
  bool plain = true;
  for (uint32_t at = 0; at < body.count && paster->read < MOST_TOKENS; at++) {
    struct cxx_macro *inner = pasting_macro(paster->unit, &body, at);
    plain = plain && !inner && !is_punct(&body, at + 1, CXX_PASTE);
    if (inner && inner != macro && depth < DEEPEST) {
      struct arguments arguments;
      read_arguments(paster->unit, &body, at + 1, macro, given, &arguments);
      paste(paster, inner, &arguments, depth + 1);
    }
    if (!is_punct(&body, at + 1, CXX_PASTE) || body.list[at].kind != CXX_WORD)
      continue;
    char text[MOST_LENGTH];
    size_t length = 0;
    for (;; at += 2) {
      struct cxx_string part = value_of(macro, given, text_of(&body, at));
      if (part.length >= sizeof text - length)
        break;
      if (part.length)
        memcpy(text + length, part.text, part.length);
      length += part.length;
      if (!is_punct(&body, at + 1, CXX_PASTE) || at + 2 >= body.count)
        break;
    }
    found(paster, text, length);
  }
  macro->plain = plain && paster->read < MOST_TOKENS;
  cxx_tokens_free(&body);
}

void cxx_pasted_find(struct cxx_unit *unit) {
  struct paster paster = {.unit = unit};
  for (uint32_t at = 0; at < unit->tokens.count && !unit->c_source; at++) {
    struct cxx_macro *macro =
        unit->tokens.list[at].flags & CXX_DIRECTIVE ? NULL : pasting_macro(unit, &unit->tokens, at);
    if (!macro)
      continue;
    struct arguments arguments;
    read_arguments(unit, &unit->tokens, at + 1, NULL, NULL, &arguments);
    paster.token = at;
    paste(&paster, macro, &arguments, 0);
  }
}
