/* What a statement declares and uses: declarators, parameters, variables, enumerators. */
#include "scanner/cxx_scopes.h"

#include <string.h>

/* --- reading a declaration ---------------------------------------------------------------------------------------- */

bool cxx_attribute_word(const struct cxx_item *item) {
  static const char *const words[] = {"__launch_bounds__", "__align__", "__cluster_dims__", "__maxnreg__",
                                      "__attribute",       "__asm",     "_Alignas",         NULL};
  for (const char *const *word = words; *word; word++)
    if (reads(item, *word))
      return true;
  return keyword(item, KW_decltype) || keyword(item, KW_noexcept) || keyword(item, KW_alignas) ||
         keyword(item, KW_explicit) || keyword(item, KW_requires) || keyword(item, KW_static_assert) ||
         keyword(item, KW_asm) || keyword(item, KW___asm__) || keyword(item, KW___attribute__) ||
         keyword(item, KW___declspec);
}

/* The first token of the qualified name that ends at `at`. */
static int name_start(const struct items *s, int at, int start) {
  while (at - 1 >= start && is(s->list[at - 1], CXX_SCOPE)) {
    int before = at - 2;
    if (before >= start && is(s->list[before], '>'))
      before = cxx_backward_angle(s, before) - 1;
    if (before < start || !plain_word(s->list[before]))
      return at - 1;
    at = before;
  }
  return at;
}

/* Finds the function declarator of a statement at namespace or class level. */
struct declarator cxx_find_declarator(const struct items *s, int start) {
  struct declarator none = {-1, -1, -1, -1};
  for (int at = start; at < s->count; at++) {
    const struct cxx_item *item = s->list[at];
    if (keyword(item, KW_operator)) {
      while (at < s->count && !is(s->list[at], '('))
        at++;
      if (at + 2 < s->count && is(s->list[at + 1], ')') && is(s->list[at + 2], '('))
        at += 2; /* operator()( */
      return at < s->count ? (struct declarator){at, cxx_forward(s, at, s->count), at, -1} : none;
    }
    if (is(item, '=') || is(item, '{') || is(item, BODY))
      return none;
    if (is(item, '<') && at > start && (plain_word(s->list[at - 1]) || keyword(s->list[at - 1], KW_template))) {
      int close = cxx_forward_angle(s, at, s->count);
      if (close > 0)
        at = close;
      continue;
    }
    if (is(item, '[')) {
      at = cxx_forward(s, at, s->count);
      continue;
    }
    if (!is(item, '('))
      continue;
    int close = cxx_forward(s, at, s->count);
    if (at == start)
      return none;
    int name = at - 1;
    if (cxx_attribute_word(s->list[name])) {
      at = close;
      continue;
    }
    if (is(s->list[name], '>'))
      name = cxx_backward_angle(s, name) - 1;
    bool pointer = at + 1 < s->count && (is(s->list[at + 1], '*') || is(s->list[at + 1], '&'));
    if (name < start || !plain_word(s->list[name]) || pointer) {
      at = close;
      continue;
    }
    int first = name_start(s, name, start);
    /* MACRO(arguments) in front of the declaration itself. */
    bool prefix =
        close + 1 < s->count && s->list[name]->name < 0 &&
        (type_keyword(s->list[close + 1]) || keyword(s->list[close + 1], KW_const) ||
         (first == start && close + 2 < s->count && plain_word(s->list[close + 1]) &&
          (is(s->list[close + 2], '(') || is(s->list[close + 2], CXX_SCOPE) || plain_word(s->list[close + 2]))));
    if (prefix) {
      at = close;
      continue;
    }
    return (struct declarator){at, close, first, name};
  }
  return none;
}

/* Can the token end the type in front of a declared name? */
bool cxx_ends_type(const struct items *s, int at, int start) {
  if (at < start)
    return false;
  const struct cxx_item *item = s->list[at];
  if (is(item, '*') || is(item, '&') || is(item, CXX_AND_AND)) {
    while (at >= start && (is(s->list[at], '*') || is(s->list[at], '&') || is(s->list[at], CXX_AND_AND)))
      at--;
    return at >= start && cxx_ends_type(s, at, start);
  }
  return plain_word(item) || type_keyword(item) || qualifier_keyword(item) || is(item, '>') ||
         is(item, CXX_SHIFT_RIGHT) || is(item, CXX_ELLIPSIS) || is(item, BODY);
}

/* Tokens that may stand behind a declared variable, field or parameter. */
bool cxx_after_variable(const struct items *s, int at) {
  if (at >= s->count)
    return true;
  const struct cxx_item *item = s->list[at];
  return is(item, '=') || is(item, ',') || is(item, ')') || is(item, ';') || is(item, '[') || is(item, '{') ||
         is(item, ':') || is(item, '>');
}

/* Whatever the context: the token cannot name a function here. */
bool cxx_other_thing(const struct items *s, int at) {
  const struct cxx_item *before = at > 0 ? s->list[at - 1] : NULL;
  const struct cxx_item *after = at + 1 < s->count ? s->list[at + 1] : NULL;
  if (before && (is(before, '.') || is(before, CXX_ARROW) || is(before, CXX_DOT_STAR) || keyword(before, KW_goto)))
    return true;
  if (before && keyword(before, KW_template) && at > 1 && (is(s->list[at - 2], '.') || is(s->list[at - 2], CXX_ARROW)))
    return true;
  return after && (is(after, CXX_SCOPE) || is(after, '.') || is(after, CXX_ARROW) || is(after, CXX_STEP) ||
                   is(after, CXX_ASSIGN) || is(after, CXX_LAUNCH));
}

static bool names_type(const struct items *s, int at) {
  const struct cxx_item *before = at > 0 ? s->list[at - 1] : NULL;
  return before && (class_key(before) || keyword(before, KW_enum) || keyword(before, KW_namespace) ||
                    keyword(before, KW_concept) || keyword(before, KW_typename));
}

/* --- statements at namespace and class level -----------------------------------------------------------------------
 */

int cxx_skip_template_heads(struct cxx_unit *unit, const struct items *s, struct cxx_scope *body, bool *is_template) {
  int at = 0;
  while (at + 1 < s->count && keyword(s->list[at], KW_template) && is(s->list[at + 1], '<')) {
    int close = cxx_forward_angle(s, at + 1, s->count);
    if (close < 0)
      break;
    *is_template = true;
    for (int i = at + 2; i < close; i++) {
      if (s->list[i]->name < 0)
        continue;
      bool parameter = cxx_ends_type(s, i - 1, at + 2) || names_type(s, i);
      if (parameter && body)
        cxx_declare(unit, body, s->list[i], DECLARES_OTHER);
      if (parameter)
        cxx_add_use(unit, s, i, CXX_ROLE_OTHER, NULL);
      else
        cxx_add_reference(unit, s, i);
    }
    at = close + 1;
  }
  return at;
}

static void note_alias(struct cxx_unit *unit, const struct items *s, int name, int first, int last) {
  if (last < first || !cxx_tensor_word(unit, s->list[last]) || !plain_word(s->list[name]) ||
      unit->tensor_aliases_count == sizeof unit->tensor_aliases / sizeof *unit->tensor_aliases)
    return;
  unit->tensor_aliases[unit->tensor_aliases_count++] = string_of(s->list[name]);
}

/* using namespace a; using a::name; using name = type; */
static void using_statement(struct cxx_unit *unit, struct cxx_scope *scope, const struct items *s, int start) {
  if (start + 1 < s->count && keyword(s->list[start + 1], KW_namespace)) {
    if (s->count > start + 2)
      cxx_add_link(unit, &home(scope)->directives, s->list[s->count - 1]);
    return;
  }
  int equal = -1;
  for (int i = start; i < s->count && equal < 0; i++)
    if (is(s->list[i], '='))
      equal = i;
  if (equal > start + 1)
    note_alias(unit, s, start + 1, equal + 1, s->count - 1);
  for (int i = start + 1; i < s->count; i++) {
    const struct cxx_item *item = s->list[i];
    if (item->name < 0)
      continue;
    if (equal >= 0) {
      if (i < equal)
        cxx_add_other(unit, scope, s, i);
      else if (!cxx_other_thing(s, i))
        cxx_add_reference(unit, s, i);
      continue;
    }
    if (!is(s->list[i - 1], CXX_SCOPE) || (i + 1 < s->count && is(s->list[i + 1], CXX_SCOPE))) {
      cxx_add_use(unit, s, i, CXX_ROLE_OTHER, NULL);
      continue;
    }
    struct cxx_declaration *declaration = cxx_declare(unit, home(scope), item, DECLARES_USING);
    declaration->path = i > 1 && (plain_word(s->list[i - 2]) || is(s->list[i - 2], '>')) ? s->list[i - 2] : NULL;
    cxx_add_use(unit, s, i, CXX_ROLE_USING, NULL);
  }
}

bool cxx_extern_c(const struct items *s, int at) {
  return at + 1 < s->count && keyword(s->list[at], KW_extern) && s->list[at + 1]->kind == CXX_STRING &&
         reads(s->list[at + 1], "\"C\"");
}

/* A word that stands in functions only: braces are missing above. */
static bool starts_statement(const struct cxx_item *item) {
  static const uint16_t words[] = {KW_return, KW_throw, KW_co_return, KW_goto,   KW_case,  KW_do,
                                   KW_else,   KW_if,    KW_while,     KW_switch, KW_delete};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (keyword(item, words[i]))
      return true;
  return false;
}

/* A function's declaration or the head of its definition. Parameters are declared in `body` when there is one. */
static void function_statement(struct cxx_unit *unit, struct cxx_scope *scope, struct cxx_scope *body,
                               const struct items *s, int start, const struct declarator *d, bool is_template) {
  struct function_facts facts = {.is_template = is_template, .definition = body != NULL};
  facts.c_linkage = scope->c_linkage;
  for (int i = start; i < d->first; i++) {
    facts.is_static = facts.is_static || keyword(s->list[i], KW_static);
    if (keyword(s->list[i], KW_extern) && i + 1 < s->count && s->list[i + 1]->kind == CXX_STRING)
      facts.c_linkage = cxx_extern_c(s, i);
  }
  bool is_friend = cxx_has_keyword(s, start, d->first, KW_friend);
  if (d->name >= 0 && s->list[d->name]->name >= 0) {
    int at = d->name;
    if (is_template && at + 1 < s->count && is(s->list[at + 1], '<')) {
      cxx_add_use(unit, s, at, CXX_ROLE_INSTANTIATION, NULL); /* a specialisation, which declares nothing new */
    } else if (d->first == start || starts_statement(s->list[start])) {
      cxx_add_reference(unit, s, at); /* no type in front: a macro or broken text */
    } else if (is(s->list[d->first], CXX_SCOPE) || d->first == at) {
      struct cxx_scope *target = is(s->list[d->first], CXX_SCOPE) ? unit->global
                                 : is_friend                      ? namespace_of(scope)
                                                                  : home(scope);
      cxx_read_parameters(unit, s, d->open, d->close, &facts.signature);
      for (int i = d->open; i < d->close; i++)
        facts.is_template = facts.is_template || keyword(s->list[i], KW_auto);
      const struct cxx_declaration *declaration = cxx_declare_function(unit, target, s->list[at], &facts);
      cxx_add_use(unit, s, at,
                  !declaration->removed ? CXX_ROLE_OTHER
                  : body                ? CXX_ROLE_DEFINITION
                                        : CXX_ROLE_DECLARATION,
                  declaration);
    } else {
      cxx_add_use(unit, s, at, CXX_ROLE_OTHER, NULL); /* a member or a namespace's function, defined outside of it */
    }
  }
  for (int i = d->open + 1; i < d->close; i++) {
    if (s->list[i]->name < 0 || cxx_other_thing(s, i))
      continue;
    int first = i; /* of the parameter */
    bool value = false;
    while (first - 1 > d->open && !is(s->list[first - 1], ',')) {
      first--;
      value = value || is(s->list[first], '=');
    }
    bool pointer = i - 2 > d->open && is(s->list[i - 1], '*') && is(s->list[i - 2], '(');
    if (!value && (pointer || (cxx_ends_type(s, i - 1, first) && cxx_after_variable(s, i + 1)))) {
      if (body)
        cxx_declare(unit, body, s->list[i], DECLARES_OTHER);
      cxx_add_use(unit, s, i, CXX_ROLE_OTHER, NULL);
    }
  }
}

void cxx_declarative_statement(struct cxx_unit *unit, struct cxx_scope *scope, struct cxx_scope *body,
                               const struct items *s) {
  bool is_template = false;
  int first = s->count > 0 && keyword(s->list[0], KW_extern) ? 1 : 0;
  if (s->count > first + 1 && keyword(s->list[first], KW_template) && !is(s->list[first + 1], '<')) {
    for (int i = first + 1; i < s->count; i++)
      if (s->list[i]->name >= 0 && !cxx_other_thing(s, i))
        cxx_add_use(unit, s, i, CXX_ROLE_INSTANTIATION, NULL);
    return;
  }
  int start = cxx_skip_template_heads(unit, s, body, &is_template);
  if (start >= s->count)
    return;
  if (keyword(s->list[start], KW_using)) {
    using_statement(unit, scope, s, start);
    return;
  }
  int equal = s->count;
  for (int i = start; i < s->count && equal == s->count; i++) {
    if (is(s->list[i], '=') && !(i > 0 && keyword(s->list[i - 1], KW_operator)))
      equal = i;
    else if (cxx_opens(s->list[i]))
      i = cxx_forward(s, i, s->count);
  }
  if (keyword(s->list[start], KW_namespace) && equal < s->count) {
    if (equal > start + 1 && s->count > equal + 1)
      cxx_add_link(unit, &home(scope)->aliases, s->list[s->count - 1])->name = string_of(s->list[equal - 1]);
  } else if (keyword(s->list[start], KW_typedef)) {
    note_alias(unit, s, s->count - 1, start, s->count - 2);
  } else {
    struct declarator d = cxx_find_declarator(s, start);
    if (d.open >= 0 && d.open < equal)
      function_statement(unit, scope, body, s, start, &d, is_template);
  }
  for (int i = start; i < s->count; i++) {
    const struct cxx_item *item = s->list[i];
    if (item->name < 0 || cxx_has_use(unit, item))
      continue;
    bool pointer =
        i > 1 && i + 1 < s->count && is(s->list[i - 1], '*') && is(s->list[i - 2], '(') && is(s->list[i + 1], ')');
    if (cxx_other_thing(s, i))
      cxx_add_use(unit, s, i, CXX_ROLE_OTHER, NULL);
    else if (i < equal && (names_type(s, i) || pointer ||
                           (cxx_ends_type(s, i - 1, start) && cxx_after_variable(s, i + 1) &&
                            !(i > 0 && is(s->list[i - 1], CXX_SCOPE)))))
      cxx_add_other(unit, scope, s, i);
    else
      cxx_add_reference(unit, s, i);
  }
}

/* --- statements in functions ---------------------------------------------------------------------------------------
 */

/* Behind if (...), for (...), else and the like. */
static int skip_control(const struct items *s) {
  int at = 0;
  while (at < s->count) {
    const struct cxx_item *item = s->list[at];
    if (keyword(item, KW_else) || keyword(item, KW_do) || keyword(item, KW_try)) {
      at++;
    } else if (keyword(item, KW_if) || keyword(item, KW_for) || keyword(item, KW_while) || keyword(item, KW_switch) ||
               keyword(item, KW_catch)) {
      at++;
      if (at < s->count && keyword(s->list[at], KW_constexpr))
        at++;
      if (at < s->count && is(s->list[at], '('))
        at = cxx_forward(s, at, s->count) + 1;
    } else {
      break;
    }
  }
  return at < s->count ? at : s->count;
}

/* Do the tokens from `start` up to `end` read as the type of a declaration? */
static bool reads_as_type(const struct items *s, int start, int end) {
  if (!cxx_ends_type(s, end - 1, start))
    return false;
  for (int at = start; at < end; at++) {
    const struct cxx_item *item = s->list[at];
    if (is(item, '<') && at > start) {
      int close = cxx_forward_angle(s, at, end);
      if (close < 0)
        return false;
      at = close;
    } else if (is(item, '[') && at + 1 < end && is(s->list[at + 1], '[')) {
      at = cxx_forward(s, at, end);
    } else if (keyword(item, KW_decltype) || keyword(item, KW_alignas)) {
      if (at + 1 < end && is(s->list[at + 1], '('))
        at = cxx_forward(s, at + 1, end);
    } else if (!plain_word(item) && !type_keyword(item) && !qualifier_keyword(item) && !class_key(item) &&
               !is(item, CXX_SCOPE) && !is(item, '*') && !is(item, '&') && !is(item, CXX_AND_AND)) {
      return false;
    }
  }
  return true;
}

/* name(...) behind a type in a function: does it declare a function rather than a variable? */
static bool declares_function(const struct items *s, int start, int at) {
  if (keyword(s->list[start], KW_extern) || keyword(s->list[at - 1], KW_void))
    return true;
  int close = cxx_forward(s, at + 1, s->count);
  for (int i = at + 2; i < close; i++)
    if ((plain_word(s->list[i]) || is(s->list[i], '&')) && i + 1 < close && plain_word(s->list[i + 1]))
      return true;
  return false;
}

/* The opening bracket directly around `at`, or -1. */
static int around(const struct items *s, int at) {
  int depth = 0;
  for (at--; at >= 0; at--) {
    if (cxx_closes(s->list[at]))
      depth++;
    else if (cxx_opens(s->list[at]) && depth-- == 0)
      return at;
  }
  return -1;
}

static bool in_control(const struct items *s, int open) {
  int before = open - 1;
  if (before > 0 && keyword(s->list[before], KW_constexpr))
    before--;
  return before >= 0 && is(s->list[open], '(') &&
         (keyword(s->list[before], KW_for) || keyword(s->list[before], KW_if) || keyword(s->list[before], KW_while) ||
          keyword(s->list[before], KW_switch) || keyword(s->list[before], KW_catch));
}

/* Is the [ at `open` a lambda's, or the one of auto [a, b]? */
bool cxx_introduces(const struct items *s, int open) {
  if (!is(s->list[open], '['))
    return false;
  if (open == 0)
    return true;
  const struct cxx_item *before = s->list[open - 1];
  return !(plain_word(before) || is(before, ')') || is(before, ']') || before->kind == CXX_STRING ||
           keyword(before, KW_this) || keyword(before, KW_operator) || keyword(before, KW_delete) ||
           (type_keyword(before) && !keyword(before, KW_auto)));
}

static void body_name(struct cxx_unit *unit, struct cxx_scope *scope, const struct items *s, int base, int at) {
  const struct cxx_item *after = at + 1 < s->count ? s->list[at + 1] : NULL;
  if (cxx_other_thing(s, at)) {
    cxx_add_use(unit, s, at, CXX_ROLE_OTHER, NULL);
    return;
  }
  bool qualified = is(s->list[at > 0 ? at - 1 : 0], CXX_SCOPE);
  int open = around(s, at);
  if (names_type(s, at) || (open >= 0 && cxx_introduces(s, open)) || (after && (is(after, '=') || is(after, '[')))) {
    cxx_add_other(unit, scope, s, at);
    return;
  }
  int start = base;
  if (open >= 0) {
    start = open + 1;
    for (int i = open + 1; i < at; i++)
      if (is(s->list[i], ';'))
        start = i + 1;
  }
  bool declaration_place = open < 0 || in_control(s, open);
  if (declaration_place && !qualified && at > start && reads_as_type(s, start, at)) {
    if (!after || cxx_after_variable(s, at + 1)) {
      cxx_add_other(unit, scope, s, at);
      return;
    }
    if (is(after, '(') && open < 0) {
      const struct cxx_item *before = s->list[at - 1];
      bool function = declares_function(s, start, at);
      if (!function && (is(before, '*') || is(before, '&') || is(before, CXX_AND_AND) ||
                        (plain_word(before) && cxx_macro_defined(&unit->macros, before->text, before->length)))) {
        cxx_add_reference(unit, s, at); /* a * name(b), MACRO name(b) */
        return;
      }
      if (!function) {
        cxx_add_other(unit, scope, s, at);
        return;
      }
      struct declarator d = {at + 1, cxx_forward(s, at + 1, s->count), at, at};
      function_statement(unit, namespace_of(scope), NULL, s, start, &d, false);
      return;
    }
  }
  /* int a, name; and void (*name)(int) = f; */
  bool list = open < 0 && at > start + 2 && is(s->list[at - 1], ',') && reads_as_type(s, start, start + 1) &&
              plain_word(s->list[start + 1]) && (!after || is(after, ',') || is(after, '{'));
  bool pointer = at > base + 2 && is(s->list[at - 1], '*') && is(s->list[at - 2], '(') && after && is(after, ')') &&
                 reads_as_type(s, base, at - 2);
  if (list || pointer || (after && is(after, '{')))
    cxx_add_other(unit, scope, s, at);
  else
    cxx_add_reference(unit, s, at);
}

void cxx_body_statement(struct cxx_unit *unit, struct cxx_scope *scope, const struct items *s, bool label) {
  if (s->count == 0)
    return;
  if (s->count == 1 && label) {
    cxx_add_use(unit, s, 0, CXX_ROLE_OTHER, NULL);
    return;
  }
  int base = skip_control(s);
  if (base < s->count && keyword(s->list[base], KW_using)) {
    using_statement(unit, scope, s, base);
    return;
  }
  if (base + 2 < s->count && keyword(s->list[base], KW_namespace) && is(s->list[base + 2], '=')) {
    cxx_add_link(unit, &scope->aliases, s->list[s->count - 1])->name = string_of(s->list[base + 1]);
    return;
  }
  if (base < s->count && keyword(s->list[base], KW_typedef)) {
    note_alias(unit, s, s->count - 1, base, s->count - 2);
    for (int i = base; i < s->count; i++)
      if (s->list[i]->name >= 0 && i == s->count - 1)
        cxx_add_other(unit, scope, s, i);
  }
  for (int at = 0; at < s->count; at++)
    if (s->list[at]->name >= 0 && !cxx_has_use(unit, s->list[at]))
      body_name(unit, scope, s, base, at);
}

/* a, b = 1, c */
void cxx_enum_statement(struct cxx_unit *unit, struct cxx_scope *scope, const struct items *s) {
  bool first = true;
  for (int at = 0; at < s->count; at++) {
    const struct cxx_item *item = s->list[at];
    if (item->name >= 0 && first) {
      cxx_declare(unit, scope, item, DECLARES_OTHER);
      if (!scope->name.length) /* an unscoped enum: visible around it too */
        cxx_declare(unit, home(scope->parent), item, DECLARES_OTHER);
      cxx_add_use(unit, s, at, CXX_ROLE_OTHER, NULL);
    } else if (item->name >= 0 && !cxx_other_thing(s, at)) {
      cxx_add_reference(unit, s, at);
    }
    first = is(item, ',');
  }
}
