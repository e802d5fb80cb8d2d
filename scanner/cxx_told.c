/* What the tokens of a C++ file say to the others: its function-like macros, and of a file with a hit also what it does
 * with the catalog's names. */
#include "scanner/cxx_facts.h"
#include "scanner/cxx_front.h"

#include <string.h>

static bool is_punct(const struct cxx_tokens *tokens, uint32_t at, unsigned code) {
  return at < tokens->count && tokens->list[at].kind == CXX_PUNCT && tokens->list[at].code == code;
}

static bool is_word(const struct cxx_tokens *tokens, uint32_t at) {
  return at < tokens->count && tokens->list[at].kind == CXX_WORD;
}

static struct cxx_string text_of(const struct cxx_tokens *tokens, uint32_t at) {
  return (struct cxx_string){tokens->bytes + tokens->list[at].start, tokens->list[at].end - tokens->list[at].start};
}

/* The token that closes the parenthesis or brace at `at`, or the last one. */
static uint32_t matching(const struct cxx_tokens *tokens, uint32_t at) {
  int depth = 0;
  for (; at + 1 < tokens->count; at++) {
    if (is_punct(tokens, at, '(') || is_punct(tokens, at, '{'))
      depth++;
    else if ((is_punct(tokens, at, ')') || is_punct(tokens, at, '}')) && --depth == 0)
      break;
  }
  return at;
}

/* Is token `at` the # of a #define? */
static bool is_define(const struct cxx_tokens *tokens, uint32_t at) {
  return tokens->list[at].kind == CXX_HASH && is_word(tokens, at + 1) && is_word(tokens, at + 2) &&
         cxx_token_is(tokens, &tokens->list[at + 1], "define");
}

/* Does a macro's body, from its first token on, paste tokens, or use a function-like macro, which may? */
static bool may_paste(const struct cxx_tokens *tokens, uint32_t at) {
  for (; at < tokens->count && tokens->list[at].kind != CXX_NEWLINE; at++)
    if (is_punct(tokens, at, CXX_PASTE) || (is_word(tokens, at) && is_punct(tokens, at + 1, '(')))
      return true;
  return false;
}

static void add_macros(struct cxx_facts *facts, const struct cxx_tokens *tokens) {
  for (uint32_t i = 0; i + 3 < tokens->count; i++)
    if (is_define(tokens, i) && is_punct(tokens, i + 3, '(') && tokens->list[i + 3].start == tokens->list[i + 2].end) {
      bool pastes = may_paste(tokens, matching(tokens, i + 3) + 1);
      struct cxx_string name = text_of(tokens, i + 2);
      cxx_facts_add(facts, pastes ? CXX_FACT_PASTES : CXX_FACT_MACRO, name.text, name.length);
    }
}

/* #define NAME of a catalog name. */
static void add_renamed(const struct scan *scan, struct cxx_facts *facts, const struct cxx_tokens *tokens) {
  for (uint32_t i = 0; i + 2 < tokens->count; i++) {
    struct cxx_string name = is_define(tokens, i) ? text_of(tokens, i + 2) : (struct cxx_string){0};
    if (name.length && cxx_index_find(scan, name.text, name.length) >= 0)
      cxx_facts_add(facts, CXX_FACT_RENAMED, name.text, name.length);
  }
}

/* In TORCH_LIBRARY...(sgl_kernel, m) { f(m); } f is a registrar of the library's operators. */
static void add_registrars(const struct scan *scan, struct cxx_facts *facts, const struct cxx_tokens *tokens) {
  for (uint32_t i = 0; i + 6 < tokens->count; i++) {
    if (!is_word(tokens, i) || !is_punct(tokens, i + 1, '(') || !is_word(tokens, i + 2) ||
        !cxx_token_is(tokens, &tokens->list[i + 2], scan->catalog->library.op_namespace) ||
        !is_punct(tokens, i + 3, ','))
      continue;
    uint32_t close = matching(tokens, i + 1);
    if (!is_punct(tokens, close + 1, '{') || !is_word(tokens, close - 1))
      continue;
    struct cxx_string variable = text_of(tokens, close - 1);
    uint32_t end = matching(tokens, close + 1);
    for (uint32_t k = close + 2; k + 2 < end; k++) {
      struct cxx_string argument = text_of(tokens, k + 2), name = text_of(tokens, k);
      if (is_word(tokens, k) && is_punct(tokens, k + 1, '(') && is_word(tokens, k + 2) &&
          argument.length == variable.length && memcmp(argument.text, variable.text, variable.length) == 0 &&
          !is_punct(tokens, k - 1, '.'))
        cxx_facts_add(facts, CXX_FACT_REGISTRAR, name.text, name.length);
    }
    i = end;
  }
}

/* A catalog function's name, a parameter list and soon a brace. */
static bool may_define_function(const struct scan *scan, const struct cxx_tokens *tokens) {
  for (uint32_t i = 0; i + 1 < tokens->count; i++) {
    struct cxx_string name = text_of(tokens, i);
    if (!is_word(tokens, i) || !is_punct(tokens, i + 1, '(') || cxx_index_find(scan, name.text, name.length) < 0)
      continue;
    uint32_t at = matching(tokens, i + 1) + 1;
    for (uint32_t limit = at + 16; at < limit && at < tokens->count && !is_punct(tokens, at, ';'); at++)
      if (is_punct(tokens, at, '{'))
        return true;
  }
  return false;
}

char *cxx_told_read(const struct scan *scan, const struct cxx_tokens *tokens, bool hit) {
  struct cxx_facts facts = {0};
  add_macros(&facts, tokens);
  if (hit) {
    add_renamed(scan, &facts, tokens);
    add_registrars(scan, &facts, tokens);
    if (may_define_function(scan, tokens))
      cxx_facts_add(&facts, CXX_FACT_CANDIDATE, "", 0);
  }
  return cxx_facts_end(&facts);
}
