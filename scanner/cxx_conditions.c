/* Which conditions a use in C++ stands under, read backwards from it over the tokens: the branches and operators around
 * it, and what earlier checks and early returns of the blocks around it leave. Up to the function's own brace. What is
 * narrow about a condition, conditions.c tells. */
#include "scanner/conditions.h"
#include "scanner/cxx_front.h"

#include <stdlib.h>
#include <string.h>

#define TOKENS_MAX 20000 /* behind these the function is generated */
#define USES_MAX 500     /* of a file */

struct reading {
  const struct cxx_unit *unit;
  struct conditions *conditions;
  uint32_t use;
  uint32_t steps;
  bool inactive; /* the use is; else what is not compiled is passed over */
};

/* --- tokens ------------------------------------------------------------------------------------------------------- */

static const struct cxx_token *token_at(const struct reading *r, uint32_t at) {
  return &r->unit->tokens.list[at];
}

static bool counts(const struct reading *r, uint32_t at) {
  const struct cxx_token *token = token_at(r, at);
  return token->kind != CXX_HASH && token->kind != CXX_NEWLINE && !(token->flags & CXX_DIRECTIVE) &&
         (r->inactive || !(token->flags & CXX_INACTIVE));
}

/* The token before, or CXX_NONE at the start and when the reading took too long. */
static uint32_t before(struct reading *r, uint32_t at) {
  while (at != CXX_NONE && at > 0 && r->steps++ < TOKENS_MAX)
    if (counts(r, --at))
      return at;
  return CXX_NONE;
}

static uint32_t after(struct reading *r, uint32_t at) {
  while (at != CXX_NONE && at + 1 < r->unit->tokens.count && r->steps++ < TOKENS_MAX)
    if (counts(r, ++at))
      return at;
  return CXX_NONE;
}

static bool punct(const struct reading *r, uint32_t at, unsigned code) {
  return at != CXX_NONE && token_at(r, at)->kind == CXX_PUNCT && token_at(r, at)->code == code;
}

static bool keyword(const struct reading *r, uint32_t at, unsigned code) {
  return at != CXX_NONE && token_at(r, at)->kind == CXX_WORD && token_at(r, at)->code == code;
}

static int bracket(const struct reading *r, uint32_t at) {
  if (punct(r, at, '(') || punct(r, at, '{') || punct(r, at, '['))
    return 1;
  return punct(r, at, ')') || punct(r, at, '}') || punct(r, at, ']') ? -1 : 0;
}

/* The bracket that belongs to the one at `at`, in either direction. */
static uint32_t partner(struct reading *r, uint32_t at) {
  int way = bracket(r, at), depth = 0;
  for (; at != CXX_NONE; at = way > 0 ? after(r, at) : before(r, at)) {
    depth += bracket(r, at);
    if (depth == 0)
      return at;
  }
  return CXX_NONE;
}

/* The expression of the tokens from `first` up to the one before `end`. */
static void read(struct reading *r, uint32_t first, uint32_t end, bool holds) {
  uint32_t last = before(r, end);
  if (first != CXX_NONE && last != CXX_NONE && first <= last)
    conditions_read(r->conditions, token_at(r, first)->start, token_at(r, last)->end, holds);
}

/* --- statements --------------------------------------------------------------------------------------------------- */

/* The `if` whose condition closes at `close`, or CXX_NONE. */
static uint32_t if_of(struct reading *r, uint32_t close) {
  uint32_t open = punct(r, close, ')') ? partner(r, close) : CXX_NONE;
  uint32_t word = open == CXX_NONE ? CXX_NONE : before(r, open);
  if (keyword(r, word, KW_constexpr))
    word = before(r, word);
  return keyword(r, word, KW_if) ? word : CXX_NONE;
}

static uint32_t condition_open(struct reading *r, uint32_t word) {
  uint32_t open = after(r, word);
  if (keyword(r, open, KW_constexpr))
    open = after(r, open);
  return punct(r, open, '(') ? open : CXX_NONE;
}

static void read_if(struct reading *r, uint32_t word, bool holds) {
  uint32_t open = condition_open(r, word), close = open == CXX_NONE ? CXX_NONE : partner(r, open);
  if (close != CXX_NONE)
    read(r, after(r, open), close, holds);
}

/* The tests in front of an `else`: all failed. Returns the first `if` of the chain. */
static uint32_t read_chain(struct reading *r, uint32_t word) {
  while (keyword(r, word, KW_else)) {
    uint32_t end = before(r, word), found = CXX_NONE;
    if (punct(r, end, '}')) {
      uint32_t open = partner(r, end);
      found = open == CXX_NONE ? CXX_NONE : if_of(r, before(r, open));
    } else if (punct(r, end, ';')) {
      for (uint32_t at = before(r, end); at != CXX_NONE && found == CXX_NONE; at = before(r, at)) {
        if (bracket(r, at) < 0)
          at = partner(r, at);
        else if (bracket(r, at) > 0 || punct(r, at, ';'))
          break;
        else if (keyword(r, at, KW_if))
          found = at;
      }
    }
    if (found == CXX_NONE)
      return word;
    read_if(r, found, false);
    uint32_t above = before(r, found);
    if (!keyword(r, above, KW_else))
      return found;
    word = above;
  }
  return word;
}

/* return, throw, break, continue, goto. */
static bool leaves(struct reading *r, uint32_t at) {
  static const uint16_t words[] = {KW_return, KW_throw, KW_break, KW_continue, KW_goto, KW_co_return};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (keyword(r, at, words[i]))
      return true;
  return false;
}

/* Does the block that closes at `close` end in such a statement? */
static bool block_leaves(struct reading *r, uint32_t close) {
  uint32_t at = before(r, close);
  if (!punct(r, at, ';'))
    return false;
  uint32_t first = at;
  for (at = before(r, at); at != CXX_NONE; at = before(r, at)) {
    if (bracket(r, at) < 0 && (at = partner(r, at)) == CXX_NONE)
      return false;
    if (punct(r, at, ';') || punct(r, at, '{') || punct(r, at, '}'))
      break;
    first = at;
  }
  return leaves(r, first);
}

/* An earlier statement at `word`: if (test) return; without an else. */
static void read_early_if(struct reading *r, uint32_t word) {
  uint32_t open = condition_open(r, word), close = open == CXX_NONE ? CXX_NONE : partner(r, open);
  uint32_t body = close == CXX_NONE ? CXX_NONE : after(r, close), end = body;
  bool out = false;
  if (punct(r, body, '{')) {
    end = partner(r, body);
    out = end != CXX_NONE && block_leaves(r, end);
  } else if (leaves(r, body)) {
    while (end != CXX_NONE && !punct(r, end, ';'))
      end = bracket(r, end) > 0 ? after(r, partner(r, end)) : after(r, end);
    out = end != CXX_NONE;
  }
  if (out && end < r->use && !keyword(r, after(r, end), KW_else))
    read_if(r, word, false);
}

/* TORCH_CHECK(test, ...), assert(test): the first argument holds behind it. */
static void read_check(struct reading *r, uint32_t word) {
  static const char *const names[] = {"TORCH_CHECK", "TORCH_INTERNAL_ASSERT", "TVM_FFI_ICHECK", "CHECK", "assert"};
  uint32_t open = after(r, word);
  bool known = false;
  for (size_t i = 0; punct(r, open, '(') && i < sizeof names / sizeof *names; i++)
    known = known || cxx_token_is(&r->unit->tokens, token_at(r, word), names[i]);
  if (!known)
    return;
  uint32_t end = after(r, open);
  while (end != CXX_NONE && !punct(r, end, ',') && !punct(r, end, ')'))
    end = bracket(r, end) > 0 ? after(r, partner(r, end)) : after(r, end);
  if (end != CXX_NONE)
    read(r, after(r, open), end, true);
}

/* The operand that ends in front of the operator at `end`. */
static void read_operand(struct reading *r, uint32_t end, bool holds, bool ternary) {
  uint32_t first = end;
  for (uint32_t at = before(r, end); at != CXX_NONE; at = before(r, at)) {
    if (bracket(r, at) < 0 && (at = partner(r, at)) == CXX_NONE)
      return;
    if (bracket(r, at) > 0 && !punct(r, at, '(') && !punct(r, at, '['))
      break;
    bool opens = bracket(r, at) > 0 && partner(r, at) > end;
    if (opens || punct(r, at, ';') || punct(r, at, '}') || punct(r, at, '=') || punct(r, at, CXX_ASSIGN) ||
        punct(r, at, ',') || punct(r, at, '?') || punct(r, at, ':') || keyword(r, at, KW_return) ||
        (!ternary && !punct(r, end, CXX_OR_OR) && punct(r, at, CXX_OR_OR)))
      break;
    first = at;
  }
  read(r, first, end, holds);
}

/* What stands in front of the block that opens at `open`. Returns where to go on, CXX_NONE at the function. */
static uint32_t read_head(struct reading *r, uint32_t open) {
  uint32_t head = before(r, open);
  if (keyword(r, head, KW_else))
    return read_chain(r, head);
  if (keyword(r, head, KW_do) || keyword(r, head, KW_try) || punct(r, head, ';') || punct(r, head, '{') ||
      punct(r, head, '}'))
    return open;
  if (punct(r, head, ']'))
    return partner(r, head); /* a lambda without parameters */
  if (!punct(r, head, ')'))
    return CXX_NONE;
  uint32_t start = partner(r, head), word = start == CXX_NONE ? CXX_NONE : before(r, start), test = if_of(r, head);
  if (punct(r, word, ']'))
    return partner(r, word); /* a lambda */
  if (test != CXX_NONE || keyword(r, word, KW_while)) {
    read(r, after(r, start), head, true);
    word = test != CXX_NONE ? test : word;
    uint32_t above = before(r, word);
    return keyword(r, above, KW_else) ? read_chain(r, above) : word;
  }
  return keyword(r, word, KW_for) || keyword(r, word, KW_switch) || keyword(r, word, KW_catch) ? word : CXX_NONE;
}

static void read_around(struct reading *r) {
  bool same = true, other_arm = false; /* in the statement of the use or of a block around it; behind a ':' */
  for (uint32_t at = before(r, r->use); at != CXX_NONE; at = before(r, at)) {
    if (bracket(r, at) < 0) {
      same = same && !punct(r, at, '}');
      at = partner(r, at);
      if (at == CXX_NONE)
        return;
    } else if (punct(r, at, '{')) {
      at = read_head(r, at);
      if (at == CXX_NONE)
        return;
      same = true;
      other_arm = false;
    } else if (punct(r, at, ';')) {
      same = false;
    } else if (keyword(r, at, KW_if) && !same) {
      read_early_if(r, at);
    } else if (keyword(r, at, KW_if)) {
      uint32_t open = condition_open(r, at), close = open == CXX_NONE ? CXX_NONE : partner(r, open);
      if (close != CXX_NONE && close < r->use)
        read_if(r, at, true);
    } else if (keyword(r, at, KW_else) && same) {
      at = read_chain(r, at);
    } else if (token_at(r, at)->kind == CXX_WORD && !same) {
      read_check(r, at);
    } else if (same && punct(r, at, ':')) {
      other_arm = true;
    } else if (same && punct(r, at, '?')) {
      read_operand(r, at, !other_arm, true);
      other_arm = false;
    } else if (same && (punct(r, at, CXX_AND_AND) || punct(r, at, CXX_OR_OR))) {
      read_operand(r, at, punct(r, at, CXX_AND_AND), false);
    }
  }
}

/* name = expression; the nearest one before the use. */
static bool helper_value(void *user, size_t *start, size_t *end) {
  struct reading *r = user;
  const struct cxx_tokens *tokens = &r->unit->tokens;
  for (uint32_t at = r->use; at-- > 1 && r->use - at < TOKENS_MAX;) {
    const struct cxx_token *token = &tokens->list[at - 1];
    if (!punct(r, at, '=') || token->kind != CXX_WORD || token->end - token->start != *end - *start ||
        memcmp(tokens->bytes + token->start, tokens->bytes + *start, *end - *start) != 0)
      continue;
    uint32_t first = after(r, at), stop = first;
    while (stop != CXX_NONE && !punct(r, stop, ';') && !punct(r, stop, ','))
      stop = bracket(r, stop) > 0 ? after(r, partner(r, stop)) : after(r, stop);
    uint32_t last = stop == CXX_NONE ? CXX_NONE : before(r, stop);
    if (last == CXX_NONE || first > last || token_at(r, first)->start == *start)
      return false;
    *start = token_at(r, first)->start;
    *end = token_at(r, last)->end;
    return true;
  }
  return false;
}

static uint32_t line_of(void *user, size_t offset) {
  const struct reading *r = user;
  uint32_t line, column;
  cxx_unit_position(r->unit, offset, &line, &column);
  return line;
}

char *cxx_conditions(const struct cxx_unit *unit, const struct cxx_use *use) {
  const char *why;
  struct conditions conditions;
  if (unit->uses_count > USES_MAX ||
      (use->role != CXX_ROLE_CALL && use->role != CXX_ROLE_REFERENCE && use->role != CXX_ROLE_MACRO_USE) ||
      !conditions_open(&conditions, unit->tokens.bytes, rules_cxx_target(unit->scan, use->symbol, &why)))
    return NULL;
  struct reading reading = {.unit = unit,
                            .conditions = &conditions,
                            .use = use->token,
                            .inactive = unit->tokens.list[use->token].flags & CXX_INACTIVE};
  conditions.value = helper_value;
  conditions.user = &reading;
  read_around(&reading);
  return conditions_text(&conditions, line_of, &reading);
}
