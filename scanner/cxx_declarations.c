/* Declarations and uses of catalog names, as they are entered into scopes. */
#include "scanner/cxx_scopes.h"

#include <limits.h>
#include <string.h>

/* --- signatures --------------------------------------------------------------------------------------------------- */

bool cxx_tensor_word(const struct cxx_unit *unit, const struct cxx_item *item) {
  if (!plain_word(item))
    return false;
  if (reads(item, "Tensor"))
    return true;
  for (unsigned i = 0; i < unit->tensor_aliases_count; i++)
    if (same(unit->tensor_aliases[i], string_of(item)))
      return true;
  return false;
}

static bool integer_word(const struct cxx_item *item) {
  static const char *const words[] = {"int8_t",    "int16_t",  "int32_t",   "int64_t", "uint8_t",
                                      "uint16_t",  "uint32_t", "uint64_t",  "size_t",  "ssize_t",
                                      "ptrdiff_t", "intptr_t", "uintptr_t", NULL};
  if (plain_word(item))
    for (const char *const *word = words; *word; word++)
      if (reads(item, *word))
        return true;
  return false;
}

/* torch::stable::Tensor is another class than at::Tensor: a function that takes it has another symbol. */
static bool stable_qualified(const struct items *s, int at) {
  return at >= 2 && is(s->list[at - 1], CXX_SCOPE) && reads(s->list[at - 2], "stable");
}

static enum cxx_parameter parameter_kind(const struct cxx_unit *unit, const struct items *s, int at, int end) {
  bool tensor = false, builtin = false, pointer = false;
  for (; at < end && !is(s->list[at], '='); at++) {
    const struct cxx_item *item = s->list[at];
    if (is(item, '<')) {
      int close = cxx_forward_angle(s, at, end);
      if (close > 0)
        at = close;
      continue;
    }
    tensor = tensor || (cxx_tensor_word(unit, item) && item->name < 0 && !stable_qualified(s, at));
    builtin = builtin || (type_keyword(item) && !keyword(item, KW_auto)) || integer_word(item);
    pointer = pointer || is(item, '*');
  }
  if (tensor && !pointer)
    return CXX_PARAMETER_TENSOR;
  return builtin || pointer ? CXX_PARAMETER_BUILTIN : CXX_PARAMETER_OTHER;
}

/* The parameters between the parentheses at `open` and `close`. */
void cxx_read_parameters(const struct cxx_unit *unit, const struct items *s, int open, int close,
                         struct cxx_signature *signature) {
  *signature = (struct cxx_signature){0};
  int start = open + 1;
  if (start >= close || (start + 1 == close && keyword(s->list[start], KW_void)))
    return;
  for (int at = start; at <= close; at++) {
    if (at < close && cxx_opens(s->list[at])) {
      at = cxx_forward(s, at, close);
      continue;
    }
    if (at < close && is(s->list[at], '<')) {
      int end = cxx_forward_angle(s, at, close);
      if (end > 0)
        at = end;
      continue;
    }
    if (at < close && !is(s->list[at], ','))
      continue;
    if (at == start + 1 && is(s->list[start], CXX_ELLIPSIS)) {
      signature->most = UINT_MAX;
      return;
    }
    bool has_default = false;
    for (int i = start; i < at; i++)
      has_default = has_default || is(s->list[i], '=');
    if (signature->most < CXX_MOST_PARAMETERS)
      signature->parameters[signature->most] = (uint8_t)parameter_kind(unit, s, start, at);
    signature->most++;
    if (!has_default)
      signature->least = signature->most;
    start = at + 1;
  }
}

/* The catalog's function takes these parameters, as far as that can be told without types. */
static bool fits(const struct cxx_signature *catalog, const struct cxx_signature *other) {
  if (catalog->most != other->most)
    return false;
  for (unsigned i = 0; i < catalog->most && i < CXX_MOST_PARAMETERS; i++) {
    bool tensor = other->parameters[i] == CXX_PARAMETER_TENSOR;
    if ((catalog->parameters[i] == CXX_PARAMETER_TENSOR && !tensor) ||
        (catalog->parameters[i] == CXX_PARAMETER_BUILTIN && tensor))
      return false;
  }
  return true;
}

/* --- declarations ------------------------------------------------------------------------------------------------- */

static bool scope_path_is(const struct cxx_scope *scope, const char *path) {
  size_t length = strlen(path);
  for (; scope->parent; scope = scope->parent) {
    if (scope->kind != SCOPE_NAMESPACE)
      return false;
    size_t name = scope->name.length;
    if (length < name || memcmp(path + length - name, scope->name.text, name) != 0)
      return false;
    length -= name;
    if (length >= 2 && memcmp(path + length - 2, "::", 2) == 0)
      length -= 2;
  }
  return length == 0;
}

static bool internal_scope(const struct cxx_scope *scope) {
  for (; scope; scope = scope->parent)
    if (scope->anonymous)
      return true;
  return false;
}

struct cxx_declaration *cxx_declare(struct cxx_unit *unit, struct cxx_scope *scope, const struct cxx_item *item,
                                    enum declaration_kind kind) {
  struct cxx_declaration *declaration = arena_alloc(&unit->arena, sizeof *declaration);
  *declaration = (struct cxx_declaration){
      .next = scope->declarations,
      .name = item->name,
      .kind = kind,
      .inactive = unit->feeding_inactive,
      .most = UINT_MAX,
      .order = ++unit->order,
      .scope = scope,
      .at = item->text,
  };
  if (unit->declarations_count < CXX_MOST_USES) {
    unit->declarations_count++;
    scope->declarations = declaration;
  }
  return declaration;
}

struct cxx_declaration *cxx_declare_function(struct cxx_unit *unit, struct cxx_scope *scope,
                                             const struct cxx_item *item, const struct function_facts *facts) {
  const struct cxx_name *name = cxx_index_name(unit->scan, item->name);
  bool internal = facts->is_static || internal_scope(scope);
  for (const struct cxx_declaration *d = scope->declarations; d; d = d->next)
    if (d->name == item->name && d->internal && d->most == facts->signature.most)
      internal = true; /* a static function stays static */
  struct cxx_declaration *declaration =
      cxx_declare(unit, scope, item, facts->is_template ? DECLARES_TEMPLATE : DECLARES_FUNCTION);
  declaration->internal = internal;
  declaration->definition = facts->definition;
  declaration->least = facts->signature.least;
  declaration->most = facts->signature.most;
  if (facts->is_template != name->is_template || internal || facts->c_linkage || scope->kind != SCOPE_NAMESPACE)
    return declaration;
  declaration->mismatch = !name->is_template;
  for (unsigned i = 0; i < name->symbols_count && !declaration->removed; i++) {
    const struct catalog_symbol *symbol = name->symbols[i];
    if (!scope_path_is(scope, name->is_template ? "" : symbol->cxx.scope) ||
        (name->is_template && facts->definition)) /* a template that the unit has itself was not deleted */
      continue;
    if (name->is_template || fits(cxx_index_signature(unit->scan, symbol), &facts->signature)) {
      declaration->removed = symbol;
      declaration->mismatch = false;
    }
  }
  return declaration;
}

/* The namespace of a path: "", "a", "a::b". */
static struct cxx_scope *stand_in_scope(struct cxx_unit *unit, const char *path) {
  struct cxx_scope *scope = unit->global;
  for (size_t length; *path; path += length + (path[length] ? 2 : 0)) {
    length = strcspn(path, ":");
    const struct cxx_string name = {(const uint8_t *)path, (uint32_t)length};
    struct cxx_scope *inner = cxx_find_child(unit, scope, name, true);
    if (!inner) {
      inner = cxx_new_scope(unit, scope, SCOPE_NAMESPACE);
      cxx_name_scope(unit, inner, name);
    }
    scope = inner;
  }
  return scope;
}

void cxx_scopes_stand_in(struct cxx_unit *unit, bool wheel) {
  for (int i = 0; cxx_index_name(unit->scan, i); i++) {
    const struct cxx_name *name = cxx_index_name(unit->scan, i);
    if (name->is_template)
      continue;
    for (unsigned k = 0; k < name->symbols_count; k++) {
      const struct catalog_symbol *symbol = name->symbols[k];
      const struct cxx_item item = {.text = (const uint8_t *)name->word, .length = name->length, .name = i};
      struct function_facts facts = {.signature = *cxx_index_signature(unit->scan, symbol)};
      const struct catalog_route *route = catalog_jit_route(symbol);
      if (wheel)
        cxx_declare_function(unit, stand_in_scope(unit, symbol->cxx.scope), &item, &facts);
      else if (route && route->cxx)
        cxx_declare_function(unit, stand_in_scope(unit, "sgl_kernel_jit"), &item, &facts);
    }
  }
}

/* --- uses --------------------------------------------------------------------------------------------------------- */

bool cxx_has_use(const struct cxx_unit *unit, const struct cxx_item *item) {
  return item->index != CXX_NONE && unit->use_of[item->index];
}

void cxx_add_use(struct cxx_unit *unit, const struct items *s, int at, enum cxx_role role,
                 const struct cxx_declaration *declaration) {
  const struct cxx_item *item = s->list[at];
  if (item->index == CXX_NONE || cxx_has_use(unit, item) || unit->uses_count == CXX_MOST_USES)
    return;
  struct cxx_use use = {
      .token = item->index,
      .qualifier_token = CXX_NONE,
      .name = item->name,
      .role = (uint8_t)role,
      .scope = unit->state.scope,
      .order = ++unit->order,
      .owner = role == CXX_ROLE_OTHER ? CXX_OWNER_OTHER : CXX_OWNER_UNPROVEN,
  };
  if (declaration)
    use.owner = declaration->removed ? CXX_OWNER_REMOVED : CXX_OWNER_OTHER;
  if (at > 0 && is(s->list[at - 1], CXX_SCOPE)) {
    /* In "return ::name" and "(void)::name" nothing stands before the colons. */
    const struct cxx_item *before = at > 1 ? s->list[at - 2] : NULL;
    bool named = before && (plain_word(before) || (is(before, '>') && before->text + 1 == s->list[at - 1]->text));
    if (before && is(before, ')')) {
      int open = cxx_backward(s, at - 2);
      named = open > 0 && keyword(s->list[open - 1], KW_decltype);
    }
    use.qualifier = named ? CXX_NAMED : CXX_GLOBAL;
    use.qualifier_token = s->list[at - 1]->index;
    use.path = named ? before : NULL;
  }
  if (unit->uses_count == unit->uses_capacity) {
    unit->uses_capacity = unit->uses_capacity ? 2 * unit->uses_capacity : 16;
    unit->uses = scan_alloc(unit->uses, unit->uses_capacity * sizeof *unit->uses);
  }
  unit->uses[unit->uses_count++] = use;
  unit->use_of[item->index] = true;
}

void cxx_add_reference(struct cxx_unit *unit, const struct items *s, int at) {
  int next = at + 1, close = -1;
  if (next < s->count && is(s->list[next], '<'))
    close = cxx_forward_angle(s, next, s->count);
  const struct cxx_item *behind = close > 0 && close + 1 < s->count ? s->list[close + 1] : NULL;
  /* Were the angles comparisons, an operand would stand behind them. */
  bool arguments = close > 0 && (!behind || is(behind, '(') || is(behind, ')') || is(behind, ',') || is(behind, '}') ||
                                 is(behind, CXX_LAUNCH));
  if (arguments && !cxx_index_name(unit->scan, s->list[at]->name)->is_template) {
    cxx_add_use(unit, s, at, CXX_ROLE_OTHER, NULL); /* a template, which the removed function is not */
    return;
  }
  if (arguments)
    next = close + 1;
  bool open = next < s->count && is(s->list[next], '(');
  bool typed = open && at > 0 && type_keyword(s->list[at - 1]); /* "void name(", in broken text: no call for sure */
  cxx_add_use(unit, s, at, typed ? CXX_ROLE_DECLARATION : open ? CXX_ROLE_CALL : CXX_ROLE_REFERENCE, NULL);
}

void cxx_add_other(struct cxx_unit *unit, struct cxx_scope *scope, const struct items *s, int at) {
  cxx_declare(unit, home(scope), s->list[at], DECLARES_OTHER);
  cxx_add_use(unit, s, at, CXX_ROLE_OTHER, NULL);
}
