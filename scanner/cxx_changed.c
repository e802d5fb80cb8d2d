/* scan --changed in C, C++ and CUDA: by tokens alone, so also in branches and macros. A call is one of ours when the
 * file names the package or declares the function as a release did; a declaration tells by its types which release. */
#include "scanner/changed.h"
#include "scanner/cxx_lexer.h"
#include "scanner/prefilter.h"

#include <stdlib.h>
#include <string.h>

static bool punct(const struct cxx_token *token, unsigned code) {
  return token->kind == CXX_PUNCT && token->code == code;
}

/* A call with more tokens is not looked at, so that a broken file costs no more than others. */
#define TOKENS_MOST 2000

/* The bracket that closes the one at `open`, or the count of tokens; how many commas stand between on the top level. */
static uint32_t closing(const struct cxx_tokens *tokens, uint32_t open, unsigned *commas) {
  int depth = 0, angles = 0;
  *commas = 0;
  for (uint32_t i = open; i < tokens->count && i - open < TOKENS_MOST; i++) {
    const struct cxx_token *token = &tokens->list[i];
    if (punct(token, '(') || punct(token, '[') || punct(token, '{'))
      depth++;
    else if ((punct(token, ')') || punct(token, ']') || punct(token, '}')) && --depth == 0)
      return i;
    else if (depth == 1 && punct(token, '<') && i > open && tokens->list[i - 1].kind == CXX_WORD)
      angles++;
    else if (depth == 1 && angles && (punct(token, '>') || punct(token, CXX_SHIFT_RIGHT)))
      angles -= angles > 1 && punct(token, CXX_SHIFT_RIGHT) ? 2 : 1;
    else if (depth == 1 && !angles && punct(token, ','))
      ++*commas;
  }
  return tokens->count;
}

/* "void NAME(...)": the text of the tokens as parameters, with single spaces, torch::Tensor as at::Tensor. */
static char *declaration_text(const struct cxx_tokens *tokens, const char *name, uint32_t open, uint32_t close) {
  char *text = scan_format("void %s(", name);
  for (uint32_t i = open + 1; i < close; i++) {
    const struct cxx_token *token = &tokens->list[i];
    bool torch = cxx_token_is(tokens, token, "torch") || cxx_token_is(tokens, token, "at");
    bool words = token->kind == CXX_WORD && i > open + 1 && tokens->list[i - 1].kind == CXX_WORD;
    char *longer = scan_format("%s%s%.*s", text, words ? " " : "", torch ? 2 : (int)(token->end - token->start),
                               torch ? "at" : (const char *)tokens->bytes + token->start);
    free(text);
    text = longer;
  }
  char *whole = scan_format("%s)", text);
  free(text);
  return whole;
}

/* Has the declaration the types of this form? */
static bool is_form(const char *arguments, const char *form) {
  struct catalog_signature own, other;
  if (!catalog_signature_read(CATALOG_CHANGED_CXX, arguments, &own) ||
      !catalog_signature_read(CATALOG_CHANGED_CXX, form, &other) || own.count != other.count || own.count == 0)
    return false;
  enum catalog_breaks breaks = catalog_signature_breaks(CATALOG_CHANGED_CXX, &own, &other);
  return breaks != CATALOG_BREAKS_LINK && breaks != CATALOG_BREAKS_CALLS;
}

/* The change since which the declaration is of an older form; *ours: it is of some release. */
static const struct catalog_change *older_form(const struct changed *changed, const char *arguments, bool *ours) {
  const struct catalog_change *found = NULL;
  *ours = is_form(arguments, changed->list[changed->count - 1]->after);
  for (unsigned i = changed->count; i-- > 0 && !*ours;) {
    found = is_form(arguments, changed->list[i]->before) ? changed->list[i] : NULL;
    *ours = found != NULL;
  }
  return found;
}

static void find(const struct source_file *file, struct result *result, const struct cxx_token *token,
                 const struct catalog_symbol *symbol, enum level level, const char *message) {
  uint32_t line, column;
  rules_position(file->bytes, file->size, token->start, &line, &column);
  result_find(result, line, column, symbol, VERDICT_REPORT, EVIDENCE_LEXICAL, level, "%s", message);
}

/* A word that stands in front of the name of a declaration, and of no call. */
static bool declares(const struct cxx_token *before) {
  return before->kind == CXX_WORD && !cxx_keyword_is_expression(before->code);
}

/* All places where the function's name stands before a bracket, in one file. */
static void look_for(const struct scan *scan, const struct source_file *file, const struct cxx_tokens *tokens,
                     const struct changed *changed, struct result *result) {
  const struct catalog_symbol *symbol = changed_symbol(scan, changed->list[0]);
  bool ours = file->seen & SEEN_OWNER, others = false;
  for (int calls = 0; calls < 2; calls++) /* the declarations say whose the calls are */
    for (uint32_t i = 0; i + 1 < tokens->count; i++) {
      const struct cxx_token *token = &tokens->list[i];
      if (token->kind != CXX_WORD || !cxx_token_is(tokens, token, changed->list[0]->name) ||
          !punct(&tokens->list[i + 1], '('))
        continue;
      const struct cxx_token *before = i ? &tokens->list[i - 1] : token;
      bool member = punct(before, '.') || punct(before, CXX_ARROW);
      bool elsewhere = punct(before, CXX_SCOPE) && i > 1 && tokens->list[i - 2].kind == CXX_WORD &&
                       !cxx_keyword_is_expression(tokens->list[i - 2].code);
      unsigned commas;
      uint32_t close = closing(tokens, i + 1, &commas);
      if (member || elsewhere || close == tokens->count)
        continue;
      char *arguments = declaration_text(tokens, changed->list[0]->name, i + 1, close);
      bool known;
      const struct catalog_change *older = older_form(changed, arguments, &known);
      bool declaration = known || declares(before);
      free(arguments);
      if (!calls && declaration) {
        ours = ours || known;
        others = others || !known;
        if (older) {
          char *message = changed_message(older, "this is the declaration of before", "");
          find(file, result, token, symbol, LEVEL_ERROR, message);
          free(message);
        }
      }
      if (!calls || declaration || !ours || others)
        continue;
      struct catalog_call call = {.positional = close == i + 2 ? 0 : commas + 1};
      enum level level;
      char *message = changed_judge(changed, &call, &level);
      if (message)
        find(file, result, token, symbol, level, message);
      free(message);
    }
}

void cxx_changed(const struct scan *scan, const struct source_file *file, struct result *result) {
  struct cxx_tokens tokens = {0};
  const char *last = "";
  cxx_lex(&tokens, file->bytes, file->size);
  for (unsigned i = 0; i < scan->catalog->changes_count; i++) { /* sorted: those of one function together */
    const struct catalog_change *change = &scan->catalog->changes[i];
    struct changed changed;
    if (change->what != CATALOG_CHANGED_CXX || strcmp(change->name, last) == 0)
      continue;
    last = change->name;
    changed_find(scan, CATALOG_CHANGED_CXX, NULL, change->name, &changed);
    bool gone = false; /* its removal is a finding of its own */
    for (unsigned k = 0; k < scan->catalog->symbols_count && !gone; k++)
      gone = strcmp(scan->catalog->symbols[k].cxx.name, change->name) == 0 &&
             rules_layer_removed(scan, &scan->catalog->symbols[k], CATALOG_LAYER_CXX);
    if (changed.count && !gone)
      look_for(scan, file, &tokens, &changed, result);
  }
  cxx_tokens_free(&tokens);
}
