/* Namespaces, classes and functions, from tokens alone. It works where no compiler does: in branches that are not
 * compiled, macro arguments, unfinished merges and calls of unknown types. */
#include "scanner/cxx_scopes.h"

#include <stdlib.h>
#include <string.h>

/* Longer statements are tables of data; their beginning is dropped, so that the cost stays linear. */
#define LONGEST_STATEMENT 4096
/* Deeper bodies are passed over; names in them are then judged without scopes. */
#define DEEPEST_SCOPE 1000

/* --- the running statement -----------------------------------------------------------------------------------------
 */

static void reset(struct cxx_state *state) {
  state->base = state->tail = state->first = NULL;
  state->bracket = NULL;
  state->count = 0;
  state->named = false;
}

/* The statement so far, read in the current scope; names in it get their uses. */
static void read_statement(struct cxx_unit *unit, struct cxx_scope *body, bool label) {
  struct cxx_state *state = &unit->state;
  struct items s = cxx_collect(state->base, state->tail);
  if (state->scope->kind == SCOPE_ENUM)
    cxx_enum_statement(unit, state->scope, &s);
  else if (declarative(state->scope))
    cxx_declarative_statement(unit, state->scope, body, &s);
  else
    cxx_body_statement(unit, body ? body : state->scope, &s, label);
  free(s.list);
}

static bool needs_reading(const struct cxx_state *state) {
  if (state->named)
    return true;
  const struct cxx_item *first = state->first;
  return first && state->count > 1 &&
         (keyword(first, KW_using) || keyword(first, KW_namespace) || keyword(first, KW_typedef));
}

static void finish(struct cxx_unit *unit) {
  if (needs_reading(&unit->state))
    read_statement(unit, NULL, false);
  reset(&unit->state);
}

static void push_item(struct cxx_unit *unit, struct cxx_item item) {
  struct cxx_state *state = &unit->state;
  if (state->count >= LONGEST_STATEMENT) {
    if (state->named)
      read_statement(unit, NULL, false);
    /* Keep the head, so that the statement's kind stays known. */
    state->tail = state->bracket ? state->bracket->item : NULL;
    state->count = 1;
    state->named = false;
    if (!state->bracket)
      state->base = NULL;
  }
  struct cxx_item *copy = arena_alloc(&unit->arena, sizeof *copy);
  *copy = item;
  copy->previous = state->tail;
  if (state->tail == state->base)
    state->first = copy;
  state->tail = copy;
  state->count++;
  state->named = state->named || item.name >= 0;
}

static void enter(struct cxx_unit *unit, struct cxx_scope *scope, bool resume) {
  struct cxx_state *state = &unit->state;
  struct cxx_frame *frame = arena_alloc(&unit->arena, sizeof *frame);
  *frame = (struct cxx_frame){.outer = state->frame,
                              .scope = state->scope,
                              .resume = resume,
                              .base = state->base,
                              .tail = state->tail,
                              .first = state->first,
                              .bracket = state->bracket,
                              .count = state->count,
                              .named = state->named};
  state->frame = frame;
  state->scope = scope;
  reset(state);
  if (scope->depth > DEEPEST_SCOPE)
    state->skip = 1;
}

static void leave(struct cxx_unit *unit) {
  struct cxx_state *state = &unit->state;
  const struct cxx_frame *frame = state->frame;
  if (!frame)
    return; /* one brace too many */
  state->frame = frame->outer;
  state->scope = frame->scope;
  reset(state);
  if (frame->resume) {
    state->base = frame->base;
    state->tail = frame->tail;
    state->first = frame->first;
    state->bracket = frame->bracket;
    state->count = frame->count;
    state->named = frame->named;
    push_item(unit, (struct cxx_item){.kind = CXX_PUNCT, .code = BODY, .index = CXX_NONE, .name = -1});
  }
}

/* --- opening braces ----------------------------------------------------------------------------------------------- */

/* The [ of the lambda whose body starts after the statement so far, or -1. *open: its parameter list, or -1. */
static int find_lambda(const struct items *s, int *open) {
  *open = -1;
  int at = s->count - 1;
  for (int i = at; i >= 0 && i > at - 64; i--) { /* -> type */
    const struct cxx_item *item = s->list[i];
    if (is(item, CXX_ARROW)) {
      at = i - 1;
      break;
    }
    if (is(item, ')') || is(item, ']')) {
      i = cxx_backward(s, i);
      continue;
    }
    if (!plain_word(item) && !type_keyword(item) && !qualifier_keyword(item) && !is(item, CXX_SCOPE) &&
        !is(item, '<') && !is(item, '>') && !is(item, CXX_SHIFT_RIGHT) && !is(item, ',') && !is(item, '*') &&
        !is(item, '&') && !keyword(item, KW_decltype))
      break;
  }
  while (at >= 0) {
    const struct cxx_item *item = s->list[at];
    if (keyword(item, KW_mutable) || keyword(item, KW_constexpr) || keyword(item, KW_noexcept) ||
        keyword(item, KW_static)) {
      at--;
    } else if (is(item, ')')) {
      int begin = cxx_backward(s, at);
      if (begin > 0 && keyword(s->list[begin - 1], KW_noexcept)) {
        at = begin - 2;
        continue;
      }
      *open = begin;
      at = begin - 1;
      break;
    } else {
      break;
    }
  }
  if (at >= 0 && is(s->list[at], '>'))
    at = cxx_backward_angle(s, at) - 1;
  if (at < 0 || !is(s->list[at], ']'))
    return -1;
  int begin = cxx_backward(s, at);
  if (begin < 0 || !cxx_introduces(s, begin) || is(s->list[begin + 1], '[') ||
      (begin > 0 && (keyword(s->list[begin - 1], KW_auto) || is(s->list[begin - 1], '['))))
    return -1;
  return begin;
}

static void open_lambda(struct cxx_unit *unit, const struct items *s, int lambda, int open) {
  struct cxx_scope *scope = cxx_new_scope(unit, unit->state.scope, SCOPE_FUNCTION);
  int captures = cxx_forward(s, lambda, s->count);
  for (int i = lambda + 1; i < captures; i++) {
    if (s->list[i]->name < 0 || !(is(s->list[i + 1], '=') || is(s->list[i + 1], '{')))
      continue;
    cxx_declare(unit, scope, s->list[i], DECLARES_OTHER); /* [name = value] */
    cxx_add_use(unit, s, i, CXX_ROLE_OTHER, NULL);
  }
  int close = open >= 0 ? cxx_forward(s, open, s->count) : -1;
  for (int i = open + 1; open >= 0 && i < close; i++) {
    if (s->list[i]->name < 0 || !cxx_ends_type(s, i - 1, open + 1) || !cxx_after_variable(s, i + 1))
      continue;
    cxx_declare(unit, scope, s->list[i], DECLARES_OTHER);
    cxx_add_use(unit, s, i, CXX_ROLE_OTHER, NULL);
  }
  enter(unit, scope, true);
}

/* The index of the class-key or enum of a definition whose body starts after the statement so far, or -1. */
static int find_type_head(const struct items *s) {
  int at = 0;
  while (at + 1 < s->count && keyword(s->list[at], KW_template) && is(s->list[at + 1], '<')) {
    int close = cxx_forward_angle(s, at + 1, s->count);
    if (close < 0)
      return -1;
    at = close + 1;
  }
  while (at < s->count && (qualifier_keyword(s->list[at]) || keyword(s->list[at], KW_typedef)))
    at++;
  if (at >= s->count || !(class_key(s->list[at]) || keyword(s->list[at], KW_enum)))
    return -1;
  /* struct S f() { and struct S s = { are no definitions of S. */
  for (int i = at + 1; i < s->count && !is(s->list[i], ':'); i++) {
    if (is(s->list[i], '='))
      return -1;
    if (is(s->list[i], '(')) {
      if (!cxx_attribute_word(s->list[i - 1]) && !(plain_word(s->list[i - 1]) && i - 1 == at + 1))
        return -1;
      i = cxx_forward(s, i, s->count);
    }
  }
  return at;
}

static void open_type(struct cxx_unit *unit, const struct items *s, int key) {
  bool is_enum = keyword(s->list[key], KW_enum);
  struct cxx_scope *scope = cxx_new_scope(unit, unit->state.scope, is_enum ? SCOPE_ENUM : SCOPE_CLASS);
  bool is_template = false;
  if (unit->state.named)
    cxx_skip_template_heads(unit, s, scope, &is_template);
  int colon = key + 1;
  while (colon < s->count && !is(s->list[colon], ':'))
    colon++;
  int name = colon - 1;
  while (name > key && !(plain_word(s->list[name]) && !reads(s->list[name], "final"))) {
    if (is(s->list[name], '>')) {
      int open = cxx_backward_angle(s, name);
      name = open > 0 ? open : name;
    }
    name--;
  }
  bool scoped = is_enum && key + 1 < s->count && class_key(s->list[key + 1]);
  bool has_name = name > key && (!is_enum || scoped);
  if (is_enum && has_name)
    scope->name = string_of(s->list[name]);
  else if (!is_enum)
    cxx_name_scope(unit, scope, has_name ? string_of(s->list[name]) : (struct cxx_string){(const uint8_t *)"", 0});
  for (int i = colon + 1; i <= s->count && !is_enum && colon < s->count; i++) {
    bool end = i == s->count || is(s->list[i], ',') || is(s->list[i], '<');
    if (end && i > colon + 1 && plain_word(s->list[i - 1]))
      cxx_add_link(unit, &scope->bases, s->list[i - 1]);
    if (i < s->count && is(s->list[i], '<')) {
      int close = cxx_forward_angle(s, i, s->count);
      i = close > 0 ? close : i;
    }
  }
  enter(unit, scope, true);
}

static void open_namespace(struct cxx_unit *unit, const struct items *s, int at) {
  bool is_inline = at > 0 && cxx_has_keyword(s, 0, at, KW_inline);
  struct cxx_scope *scope = unit->state.scope;
  bool named = false;
  for (int i = at + 1; i < s->count; i++) {
    if (is(s->list[i], '[')) {
      i = cxx_forward(s, i, s->count);
      continue;
    }
    if (!plain_word(s->list[i]) || (i + 1 < s->count && is(s->list[i + 1], '('))) /* not an attribute's macro */
      continue;
    if (named && !is(s->list[i - 1], CXX_SCOPE))
      continue;
    struct cxx_scope *child = cxx_find_child(unit, home(scope), string_of(s->list[i]), true);
    if (!child) {
      child = cxx_new_scope(unit, scope, SCOPE_NAMESPACE);
      cxx_name_scope(unit, child, string_of(s->list[i]));
      if (is_inline)
        cxx_add_link(unit, &home(scope)->directives, NULL)->target = child;
    }
    scope = child;
    named = true;
  }
  if (!named) {
    struct cxx_scope *parent = home(scope);
    scope = cxx_new_scope(unit, scope, SCOPE_NAMESPACE);
    scope->anonymous = true;
    cxx_name_scope(unit, scope, (struct cxx_string){(const uint8_t *)"", 0});
    cxx_add_link(unit, &parent->directives, NULL)->target = scope;
  }
  for (int i = at; i < s->count; i++)
    if (s->list[i]->name >= 0)
      cxx_add_use(unit, s, i, CXX_ROLE_OTHER, NULL);
  enter(unit, scope, false);
}

/* TORCH_LIBRARY(space, m) {, also under another name: a macro whose last argument names the variable. */
static void note_registration(struct cxx_unit *unit, struct cxx_scope *scope, const struct items *s,
                              const struct declarator *d) {
  if (d->close - d->open < 4 || !plain_word(s->list[d->open + 1]) || !is(s->list[d->open + 2], ',') ||
      !plain_word(s->list[d->close - 1]) || !is(s->list[d->close - 2], ','))
    return;
  struct cxx_string space = string_of(s->list[d->open + 1]);
  const struct cxx_macro *macro = cxx_macro_find(&unit->macros, space.text, space.length);
  if (macro && macro->defined && !macro->function_like && macro->body.length) {
    space = macro->body;
    while (space.length && (space.text[space.length - 1] == ' ' || space.text[space.length - 1] == '\r'))
      space.length--;
  }
  scope->registration = space;
  for (int i = d->open + 1; i < d->close; i++)
    if (s->list[i]->name >= 0)
      cxx_add_use(unit, s, i, CXX_ROLE_OTHER, NULL);
}

static void open_function(struct cxx_unit *unit, const struct items *s, int start, const struct declarator *d) {
  struct cxx_scope *outer = unit->state.scope;
  struct cxx_scope *scope = cxx_new_scope(unit, outer, SCOPE_FUNCTION);
  if (d->name >= 0 && d->first < d->name - 1)
    scope->member_of = cxx_resolve_path(unit, outer, s->list[d->name - 2]);
  if (d->name >= 0 && d->first == start && outer->kind == SCOPE_NAMESPACE && !scope->member_of)
    note_registration(unit, scope, s, d);
  for (int i = d->open; i < d->close && d->name >= 0; i++)
    if (plain_word(s->list[i]) && reads(s->list[i], "Library"))
      scope->registrar = string_of(s->list[d->name]);
  if (unit->state.named)
    read_statement(unit, scope, false);
  reset(&unit->state);
  enter(unit, scope, false);
  if (!unit->feeding_main)
    unit->state.skip = 1;
}

static void open_block(struct cxx_unit *unit, bool resume) {
  struct cxx_scope *scope = cxx_new_scope(unit, unit->state.scope, SCOPE_BLOCK);
  if (!resume) {
    if (unit->state.named)
      read_statement(unit, scope, false);
    reset(&unit->state);
  }
  enter(unit, scope, resume);
}

static void open_initializer(struct cxx_unit *unit, struct cxx_item item) {
  push_item(unit, item);
  struct cxx_bracket *bracket = arena_alloc(&unit->arena, sizeof *bracket);
  *bracket = (struct cxx_bracket){unit->state.bracket, unit->state.tail};
  unit->state.bracket = bracket;
}

static void open_linkage(struct cxx_unit *unit, bool c_linkage) {
  struct cxx_scope *scope = cxx_new_scope(unit, unit->state.scope, SCOPE_LINKAGE);
  scope->c_linkage = c_linkage;
  reset(&unit->state);
  enter(unit, scope, false);
}

/* A brace at namespace or class level, outside of brackets. */
static void open_declarative(struct cxx_unit *unit, const struct items *s, struct cxx_item item) {
  int at = 0;
  while (at < s->count && (keyword(s->list[at], KW_inline) || keyword(s->list[at], KW_export)))
    at++;
  if (at >= s->count) {
    open_linkage(unit, unit->state.scope->c_linkage);
    return;
  }
  if (keyword(s->list[at], KW_namespace)) {
    open_namespace(unit, s, at);
    return;
  }
  if (s->count == 2 && keyword(s->list[0], KW_extern) && s->list[1]->kind == CXX_STRING) {
    open_linkage(unit, cxx_extern_c(s, 0));
    return;
  }
  int key = find_type_head(s);
  if (key >= 0) {
    open_type(unit, s, key);
    return;
  }
  int start = 0;
  while (start + 1 < s->count && keyword(s->list[start], KW_template) && is(s->list[start + 1], '<')) {
    int close = cxx_forward_angle(s, start + 1, s->count);
    if (close < 0)
      break;
    start = close + 1;
  }
  struct declarator d = cxx_find_declarator(s, start);
  if (d.open < 0 || d.close >= s->count) {
    open_initializer(unit, item);
    return;
  }
  /* In a constructor's list, name{ and name<T>{ initialize; the body comes behind ) or }. */
  const struct cxx_item *last = s->list[s->count - 1];
  bool list = false;
  for (int i = d.close + 1; i < s->count; i++) {
    if (cxx_opens(s->list[i]))
      i = cxx_forward(s, i, s->count);
    else if (is(s->list[i], ':'))
      list = true;
  }
  if ((list && (plain_word(last) || is(last, '>') || is(last, ',') || is(last, ':'))) ||
      cxx_contains(s, d.close + 1, s->count, '=')) {
    open_initializer(unit, item);
    return;
  }
  open_function(unit, s, start, &d);
}

/* A brace in a function, outside of brackets. */
static void open_in_body(struct cxx_unit *unit, const struct items *s, struct cxx_item item) {
  int key = find_type_head(s);
  if (key >= 0) {
    open_type(unit, s, key);
    return;
  }
  const struct cxx_item *last = s->count ? s->list[s->count - 1] : NULL;
  if (!last || is(last, ')') || is(last, ':') || is(last, BODY) || keyword(last, KW_else) || keyword(last, KW_do) ||
      keyword(last, KW_try))
    open_block(unit, false);
  else
    open_initializer(unit, item);
}

/* A brace that starts a list of values, seen from the token before it: tables have many of them. */
static bool starts_list(const struct cxx_state *state) {
  const struct cxx_item *last = state->tail;
  if (!state->bracket || last == state->base)
    return false;
  return is(last, '{') || is(last, ',') || is(last, '=') || is(last, '(');
}

static void open_brace(struct cxx_unit *unit, struct cxx_item item) {
  struct cxx_state *state = &unit->state;
  if (starts_list(state)) {
    open_initializer(unit, item);
    return;
  }
  struct items s = cxx_collect(state->base, state->tail);
  int open, lambda = find_lambda(&s, &open);
  const struct cxx_item *last = s.count ? s.list[s.count - 1] : NULL;
  if (lambda >= 0 && !(lambda == 0 && !state->bracket && declarative(state->scope)))
    open_lambda(unit, &s, lambda, open);
  else if (state->scope->kind == SCOPE_ENUM)
    open_initializer(unit, item);
  else if (state->bracket && last &&
           (is(last, ')') || is(last, ';') || is(last, BODY) || keyword(last, KW_else) || keyword(last, KW_do) ||
            keyword(last, KW_try)) &&
           !is(state->bracket->item, '{'))
    open_block(unit, true);
  else if (state->bracket)
    open_initializer(unit, item);
  else if (declarative(state->scope))
    open_declarative(unit, &s, item);
  else
    open_in_body(unit, &s, item);
  free(s.list);
}

static void close_brace(struct cxx_unit *unit, struct cxx_item item) {
  struct cxx_state *state = &unit->state;
  const struct cxx_bracket *bracket = state->bracket;
  while (bracket && !is(bracket->item, '{'))
    bracket = bracket->outer;
  if (bracket) {
    state->bracket = bracket->outer;
    push_item(unit, item);
    return;
  }
  finish(unit);
  leave(unit);
}

/* A semicolon in what was taken for an initializer: it is a block, for example behind a macro's name. */
static void turn_into_block(struct cxx_unit *unit) {
  struct cxx_state *state = &unit->state;
  const struct cxx_item *open = state->bracket->item, *tail = state->tail;
  bool named = state->named;
  enum scope_kind kind = declarative(state->scope) ? SCOPE_LINKAGE : SCOPE_BLOCK;
  state->tail = open->previous;
  state->bracket = state->bracket->outer;
  struct cxx_scope *scope = cxx_new_scope(unit, state->scope, kind);
  bool resume = state->bracket != NULL;
  if (!resume) {
    if (named)
      read_statement(unit, NULL, false);
    reset(state);
  }
  enter(unit, scope, resume);
  state->base = open;
  state->tail = tail;
  state->named = named;
  state->count = 0;
  state->first = tail;
  for (const struct cxx_item *item = tail; item != open; item = item->previous) {
    state->count++;
    state->first = item;
  }
}

/* --- tokens ------------------------------------------------------------------------------------------------------- */

void cxx_scopes_begin(struct cxx_unit *unit) {
  unit->global = arena_alloc(&unit->arena, sizeof *unit->global);
  unit->global->kind = SCOPE_NAMESPACE;
  unit->state = (struct cxx_state){.scope = unit->global};
}

static void note_string(struct cxx_unit *unit, uint32_t token) {
  if (unit->strings_count == unit->strings_capacity) {
    unit->strings_capacity = unit->strings_capacity ? 2 * unit->strings_capacity : 64;
    unit->strings = scan_alloc(unit->strings, unit->strings_capacity * sizeof *unit->strings);
  }
  unit->strings[unit->strings_count++] = (struct cxx_string_place){token, unit->state.scope};
}

/* case x:, label:, public: end what would be a statement otherwise. */
static bool ends_label(const struct cxx_state *state) {
  if (state->bracket || !state->first)
    return false;
  if (declarative(state->scope))
    return state->count == 1 && state->scope->kind == SCOPE_CLASS;
  return (state->count == 1 && plain_word(state->first)) || keyword(state->first, KW_case) ||
         keyword(state->first, KW_default);
}

void cxx_scopes_token(struct cxx_unit *unit, const uint8_t *bytes, const struct cxx_token *token, uint32_t index) {
  struct cxx_state *state = &unit->state;
  if (state->skip) {
    if (token->kind == CXX_PUNCT && token->code == '{')
      state->skip++;
    else if (token->kind == CXX_PUNCT && token->code == '}' && --state->skip == 0)
      leave(unit);
    return;
  }
  struct cxx_item item = {
      .text = bytes + token->start,
      .length = token->end - token->start,
      .index = index,
      .code = token->code,
      .kind = token->kind,
      .name = -1,
  };
  if (token->kind == CXX_WORD && token->code == KW_NONE && !unit->feeding_plain)
    item.name = cxx_index_find(unit->scan, item.text, item.length);
  if (token->kind == CXX_STRING && index != CXX_NONE)
    note_string(unit, index);
  if (token->kind != CXX_PUNCT) {
    push_item(unit, item);
    return;
  }
  switch (token->code) {
  case '{':
    open_brace(unit, item);
    break;
  case '}':
    close_brace(unit, item);
    break;
  case '(':
  case '[':
    open_initializer(unit, item);
    break;
  case ')':
  case ']':
    if (state->bracket && is(state->bracket->item, token->code == ')' ? '(' : '['))
      state->bracket = state->bracket->outer;
    push_item(unit, item);
    break;
  case ';':
    if (state->bracket && is(state->bracket->item, '{') && state->scope->kind != SCOPE_ENUM)
      turn_into_block(unit);
    if (state->bracket)
      push_item(unit, item);
    else
      finish(unit);
    break;
  case ':':
    if (ends_label(state)) {
      if (state->named)
        read_statement(unit, NULL, true);
      reset(state);
    } else
      push_item(unit, item);
    break;
  default:
    push_item(unit, item);
  }
}

void cxx_scopes_end(struct cxx_unit *unit) {
  /* Text that ends in the middle: what is open is read as it is. */
  for (unsigned i = 0; i < 100000; i++) {
    finish(unit);
    if (!unit->state.frame)
      break;
    unit->state.skip = 0;
    leave(unit);
  }
}
