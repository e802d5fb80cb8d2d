/* Namespaces, classes, functions, and the declarations of catalog names in them, from tokens alone. It works where no
 * compiler does: in branches that are not compiled, macro arguments, unfinished merges and calls of unknown types. */
#include "scanner/cxx_front.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Longer statements are tables of data; their beginning is dropped, so that the cost stays linear. */
#define LONGEST_STATEMENT 4096
#define LONGEST_PATH 16
#define DEEPEST_LOOKUP 16
/* Deeper bodies are passed over; names in them are then judged without scopes. */
#define DEEPEST_SCOPE 1000
/* Stands in a statement for a body that was a scope of its own. */
#define BODY 600

/* A token of a statement. */
struct cxx_item {
  const struct cxx_item *previous;
  const uint8_t *text;
  uint32_t length;
  uint32_t index; /* token of the file itself, or CXX_NONE */
  uint16_t code;
  uint8_t kind;
  int name; /* catalog name, or -1 */
};

struct cxx_bracket {
  const struct cxx_bracket *outer;
  const struct cxx_item *item;
};

struct cxx_frame {
  const struct cxx_frame *outer;
  struct cxx_scope *scope;
  bool resume; /* the statement goes on after the body */
  const struct cxx_item *base, *tail, *first;
  const struct cxx_bracket *bracket;
  unsigned count;
  bool named;
};

enum scope_kind { SCOPE_NAMESPACE, SCOPE_CLASS, SCOPE_ENUM, SCOPE_FUNCTION, SCOPE_BLOCK, SCOPE_LINKAGE };

enum declaration_kind { DECLARES_FUNCTION, DECLARES_TEMPLATE, DECLARES_OTHER, DECLARES_USING };

struct cxx_declaration {
  struct cxx_declaration *next;
  int name;
  enum declaration_kind kind;
  const struct catalog_symbol *removed; /* the removed function that it declares, or NULL */
  bool internal, inactive, definition, mismatch;
  unsigned least, most;
  uint32_t order;
  const struct cxx_item *path; /* DECLARES_USING: last token of what stands before the name */
  struct cxx_scope *scope;     /* where a using-declaration stands */
  const uint8_t *at;           /* the name in its file */
};

/* using namespace path, namespace name = path, base class path. */
struct link {
  struct link *next;
  struct cxx_string name;
  const struct cxx_item *path;
  struct cxx_scope *target; /* when path is NULL */
};

struct cxx_scope {
  enum scope_kind kind;
  bool anonymous, c_linkage;
  unsigned depth;
  uint32_t visited; /* lookup that was here */
  struct cxx_scope *parent;
  struct cxx_scope *children, *sibling; /* namespaces and classes */
  struct cxx_scope *chained;            /* the next one in its bucket of the table of children */
  struct cxx_string name;
  struct cxx_declaration *declarations;
  struct link *directives, *aliases, *bases;
  struct cxx_scope *member_of; /* class or namespace of a function defined outside of it */
  struct cxx_string registration, registrar;
};

/* --- small questions ---------------------------------------------------------------------------------------------- */

static bool is(const struct cxx_item *item, unsigned code) {
  return item->kind == CXX_PUNCT && item->code == code;
}

static bool keyword(const struct cxx_item *item, unsigned code) {
  return item->kind == CXX_WORD && item->code == code;
}

static bool plain_word(const struct cxx_item *item) {
  return item->kind == CXX_WORD && item->code == KW_NONE;
}

static bool reads(const struct cxx_item *item, const char *text) {
  return item->length == strlen(text) && memcmp(item->text, text, item->length) == 0;
}

static bool type_keyword(const struct cxx_item *item) {
  return item->kind == CXX_WORD && cxx_keyword_is_type(item->code);
}

static bool qualifier_keyword(const struct cxx_item *item) {
  return item->kind == CXX_WORD && cxx_keyword_is_qualifier(item->code);
}

static bool class_key(const struct cxx_item *item) {
  return keyword(item, KW_class) || keyword(item, KW_struct) || keyword(item, KW_union);
}

static bool same(struct cxx_string a, struct cxx_string b) {
  return a.length == b.length && memcmp(a.text, b.text, a.length) == 0;
}

static struct cxx_string string_of(const struct cxx_item *item) {
  return (struct cxx_string){item->text, item->length};
}

static bool declarative(const struct cxx_scope *scope) {
  return scope->kind == SCOPE_NAMESPACE || scope->kind == SCOPE_CLASS || scope->kind == SCOPE_LINKAGE;
}

/* Where a declaration written in the scope ends up. */
static struct cxx_scope *home(struct cxx_scope *scope) {
  while (scope->kind == SCOPE_LINKAGE)
    scope = scope->parent;
  return scope;
}

static struct cxx_scope *namespace_of(struct cxx_scope *scope) {
  while (scope->kind != SCOPE_NAMESPACE)
    scope = scope->parent;
  return scope;
}

/* --- statements as arrays ----------------------------------------------------------------------------------------- */

struct items {
  const struct cxx_item **list;
  int count;
};

/* The tokens after `base` up to `tail`, in order; free the list. */
static struct items collect(const struct cxx_item *base, const struct cxx_item *tail) {
  struct items items = {0};
  for (const struct cxx_item *item = tail; item != base; item = item->previous)
    items.count++;
  items.list = scan_alloc(NULL, (size_t)items.count * sizeof *items.list);
  int at = items.count;
  for (const struct cxx_item *item = tail; item != base; item = item->previous)
    items.list[--at] = item;
  return items;
}

static bool opens(const struct cxx_item *item) {
  return is(item, '(') || is(item, '[') || is(item, '{');
}

static bool closes(const struct cxx_item *item) {
  return is(item, ')') || is(item, ']') || is(item, '}');
}

/* The bracket that closes the one at `at`; end when there is none. */
static int forward(const struct items *s, int at, int end) {
  int depth = 0;
  for (; at < end; at++) {
    if (opens(s->list[at]))
      depth++;
    else if (closes(s->list[at]) && --depth == 0)
      return at;
  }
  return end;
}

/* The bracket that opens the one closed at `at`; -1 when there is none. */
static int backward(const struct items *s, int at) {
  int depth = 0;
  for (; at >= 0; at--) {
    if (closes(s->list[at]))
      depth++;
    else if (opens(s->list[at]) && --depth == 0)
      return at;
  }
  return -1;
}

/* The > for the < at `at`, if what lies between can be template arguments; else -1. */
static int forward_angle(const struct items *s, int at, int end) {
  int depth = 0;
  for (int limit = at + 1024; at < end && at < limit; at++) {
    const struct cxx_item *item = s->list[at];
    if (is(item, '<'))
      depth++;
    else if (is(item, '>') && --depth == 0)
      return at;
    else if (is(item, CXX_SHIFT_RIGHT) && (depth -= 2) <= 0)
      return at;
    else if (opens(item))
      at = forward(s, at, end);
    else if (closes(item) || is(item, ';') || is(item, CXX_AND_AND) || is(item, CXX_OR_OR))
      return -1;
  }
  return -1;
}

static int backward_angle(const struct items *s, int at) {
  int depth = 0;
  for (int limit = at - 1024; at >= 0 && at > limit; at--) {
    const struct cxx_item *item = s->list[at];
    if (is(item, '>'))
      depth++;
    else if (is(item, CXX_SHIFT_RIGHT))
      depth += 2;
    else if (is(item, '<') && --depth == 0)
      return at;
    else if (closes(item)) {
      at = backward(s, at);
      if (at < 0)
        return -1;
    } else if (opens(item) || is(item, ';'))
      return -1;
  }
  return -1;
}

/* --- scopes and paths --------------------------------------------------------------------------------------------- */

static struct cxx_scope **bucket(const struct cxx_unit *unit, const struct cxx_scope *parent, struct cxx_string name) {
  uint32_t hash = cxx_hash(name.text, name.length) ^ (uint32_t)((uintptr_t)parent >> 4);
  return &((struct cxx_unit *)(uintptr_t)unit)->children[hash % CXX_CHILD_BUCKETS];
}

static struct cxx_scope *new_scope(struct cxx_unit *unit, struct cxx_scope *parent, enum scope_kind kind) {
  struct cxx_scope *scope = cxx_arena_alloc(&unit->arena, sizeof *scope);
  scope->kind = kind;
  scope->parent = parent;
  scope->depth = parent->depth + 1;
  scope->c_linkage = parent->c_linkage && (kind == SCOPE_NAMESPACE || kind == SCOPE_LINKAGE);
  return scope;
}

/* Names a namespace or class, so that paths find it. */
static void name_scope(struct cxx_unit *unit, struct cxx_scope *scope, struct cxx_string name) {
  struct cxx_scope *owner = home(scope->parent);
  scope->name = name;
  scope->sibling = owner->children;
  owner->children = scope;
  struct cxx_scope **chain = bucket(unit, owner, name);
  scope->chained = *chain;
  *chain = scope;
}

static struct link *add_link(struct cxx_unit *unit, struct link **list, const struct cxx_item *path) {
  struct link *link = cxx_arena_alloc(&unit->arena, sizeof *link);
  link->next = *list;
  link->path = path;
  *list = link;
  return link;
}

static struct cxx_scope *find_child(const struct cxx_unit *unit, const struct cxx_scope *scope, struct cxx_string name,
                                    bool namespaces_only) {
  for (struct cxx_scope *child = *bucket(unit, scope, name); child; child = child->chained)
    if (home(child->parent) == scope && same(child->name, name) && (!namespaces_only || child->kind == SCOPE_NAMESPACE))
      return child;
  return NULL;
}

/* Namespaces can make each other visible in circles; this many steps are more than any real search takes. */
#define LONGEST_SEARCH 10000

struct search {
  const struct cxx_unit *unit;
  unsigned steps;
};

static struct cxx_scope *search_path(struct search *search, struct cxx_scope *from, const struct cxx_item *path,
                                     unsigned depth);

/* A namespace or class of that name in exactly this scope, or made visible in it. */
static struct cxx_scope *find_member(struct search *search, struct cxx_scope *scope, struct cxx_string name,
                                     unsigned depth) {
  struct cxx_scope *found = find_child(search->unit, scope, name, false);
  if (found || depth == 0 || ++search->steps > LONGEST_SEARCH)
    return found;
  for (const struct link *alias = scope->aliases; alias; alias = alias->next)
    if (same(alias->name, name))
      return search_path(search, scope, alias->path, depth - 1);
  for (const struct link *directive = scope->directives; directive && !found; directive = directive->next) {
    struct cxx_scope *target =
        directive->target ? directive->target : search_path(search, scope, directive->path, depth - 1);
    if (target && target != scope)
      found = find_member(search, target, name, depth - 1);
  }
  return found;
}

/* Before the first token of a template's arguments that end at `item`. */
static const struct cxx_item *skip_arguments(const struct cxx_item *item) {
  int depth = 0;
  for (; item; item = item->previous) {
    if (is(item, '>'))
      depth++;
    else if (is(item, CXX_SHIFT_RIGHT))
      depth += 2;
    else if (is(item, '<') && --depth == 0)
      return item->previous;
    else if (is(item, ';') || is(item, '{') || is(item, '}'))
      return NULL;
  }
  return NULL;
}

/* The scope that a::b::c means when c is the last token; NULL when it is not in view. */
static struct cxx_scope *search_path(struct search *search, struct cxx_scope *from, const struct cxx_item *path,
                                     unsigned depth) {
  struct cxx_string names[LONGEST_PATH];
  int count = 0;
  bool global = false;
  for (const struct cxx_item *item = path; item;) {
    if (is(item, '>') || is(item, CXX_SHIFT_RIGHT))
      item = skip_arguments(item);
    if (!item || item->kind != CXX_WORD || count == LONGEST_PATH)
      return NULL;
    names[count++] = string_of(item);
    item = item->previous;
    if (!item || !is(item, CXX_SCOPE))
      break;
    item = item->previous;
    global = !item || !(plain_word(item) || is(item, '>'));
    if (global)
      break;
  }
  if (count == 0 || depth == 0)
    return NULL;
  struct cxx_scope *scope = NULL;
  if (global) {
    while (from->parent)
      from = from->parent;
    scope = find_member(search, from, names[count - 1], depth - 1);
  } else {
    for (; from && !scope; from = from->member_of ? from->member_of : from->parent) {
      scope = find_member(search, from, names[count - 1], depth - 1);
      if (!scope && from->kind == SCOPE_CLASS && same(from->name, names[count - 1]))
        scope = from;
    }
  }
  for (int i = count - 2; i >= 0 && scope; i--)
    scope = find_member(search, scope, names[i], depth - 1);
  return scope;
}

static struct cxx_scope *resolve_path(const struct cxx_unit *unit, struct cxx_scope *from,
                                      const struct cxx_item *path) {
  struct search search = {.unit = unit};
  return search_path(&search, from, path, DEEPEST_LOOKUP);
}

/* --- signatures --------------------------------------------------------------------------------------------------- */

static bool tensor_word(const struct cxx_unit *unit, const struct cxx_item *item) {
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

static enum cxx_parameter parameter_kind(const struct cxx_unit *unit, const struct items *s, int at, int end) {
  bool tensor = false, builtin = false, pointer = false;
  for (; at < end && !is(s->list[at], '='); at++) {
    const struct cxx_item *item = s->list[at];
    if (is(item, '<')) {
      int close = forward_angle(s, at, end);
      if (close > 0)
        at = close;
      continue;
    }
    tensor = tensor || (tensor_word(unit, item) && item->name < 0);
    builtin = builtin || (type_keyword(item) && !keyword(item, KW_auto)) || integer_word(item);
    pointer = pointer || is(item, '*');
  }
  if (tensor && !pointer)
    return CXX_PARAMETER_TENSOR;
  return builtin || pointer ? CXX_PARAMETER_BUILTIN : CXX_PARAMETER_OTHER;
}

/* The parameters between the parentheses at `open` and `close`. */
static void read_parameters(const struct cxx_unit *unit, const struct items *s, int open, int close,
                            struct cxx_signature *signature) {
  *signature = (struct cxx_signature){0};
  int start = open + 1;
  if (start >= close || (start + 1 == close && keyword(s->list[start], KW_void)))
    return;
  for (int at = start; at <= close; at++) {
    if (at < close && opens(s->list[at])) {
      at = forward(s, at, close);
      continue;
    }
    if (at < close && is(s->list[at], '<')) {
      int end = forward_angle(s, at, close);
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

static struct cxx_declaration *declare(struct cxx_unit *unit, struct cxx_scope *scope, const struct cxx_item *item,
                                       enum declaration_kind kind) {
  struct cxx_declaration *declaration = cxx_arena_alloc(&unit->arena, sizeof *declaration);
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

struct function_facts {
  bool is_static, c_linkage, is_template, definition;
  struct cxx_signature signature;
};

static struct cxx_declaration *declare_function(struct cxx_unit *unit, struct cxx_scope *scope,
                                                const struct cxx_item *item, const struct function_facts *facts) {
  const struct cxx_name *name = cxx_index_name(unit->scan, item->name);
  bool internal = facts->is_static || internal_scope(scope);
  for (const struct cxx_declaration *d = scope->declarations; d; d = d->next)
    if (d->name == item->name && d->internal && d->most == facts->signature.most)
      internal = true; /* a static function stays static */
  struct cxx_declaration *declaration =
      declare(unit, scope, item, facts->is_template ? DECLARES_TEMPLATE : DECLARES_FUNCTION);
  declaration->internal = internal;
  declaration->definition = facts->definition;
  declaration->least = facts->signature.least;
  declaration->most = facts->signature.most;
  if (facts->is_template != name->is_template || internal || facts->c_linkage || scope->kind != SCOPE_NAMESPACE)
    return declaration;
  declaration->mismatch = !name->is_template;
  for (unsigned i = 0; i < name->symbols_count && !declaration->removed; i++) {
    const struct catalog_symbol *symbol = name->symbols[i];
    if (!scope_path_is(scope, name->is_template ? "" : symbol->cxx.scope))
      continue;
    if (name->is_template || fits(cxx_index_signature(unit->scan, symbol), &facts->signature)) {
      declaration->removed = symbol;
      declaration->mismatch = false;
    }
  }
  return declaration;
}

void cxx_scopes_stand_in(struct cxx_unit *unit, bool wheel) {
  struct cxx_scope *jit = NULL;
  static const struct cxx_string jit_name = {(const uint8_t *)"sgl_kernel_jit", 14};
  for (int i = 0; cxx_index_name(unit->scan, i); i++) {
    const struct cxx_name *name = cxx_index_name(unit->scan, i);
    if (name->is_template)
      continue;
    for (unsigned k = 0; k < name->symbols_count; k++) {
      const struct catalog_symbol *symbol = name->symbols[k];
      const struct cxx_item item = {.text = (const uint8_t *)name->word, .length = name->length, .name = i};
      struct function_facts facts = {.signature = *cxx_index_signature(unit->scan, symbol)};
      const struct catalog_route *route = catalog_jit_route(symbol);
      if (wheel && !*symbol->cxx.scope) {
        declare_function(unit, unit->global, &item, &facts);
      } else if (!wheel && route && route->cxx) {
        if (!jit)
          jit = find_child(unit, unit->global, jit_name, true);
        if (!jit) {
          jit = new_scope(unit, unit->global, SCOPE_NAMESPACE);
          name_scope(unit, jit, jit_name);
        }
        declare_function(unit, jit, &item, &facts);
      }
    }
  }
}

/* --- uses --------------------------------------------------------------------------------------------------------- */

static bool has_use(const struct cxx_unit *unit, const struct cxx_item *item) {
  return item->index != CXX_NONE && unit->use_of[item->index];
}

static void add_use(struct cxx_unit *unit, const struct items *s, int at, enum cxx_role role,
                    const struct cxx_declaration *declaration) {
  const struct cxx_item *item = s->list[at];
  if (item->index == CXX_NONE || has_use(unit, item) || unit->uses_count == CXX_MOST_USES)
    return;
  struct cxx_use use = {
      .token = item->index,
      .qualifier_token = CXX_NONE,
      .name = item->name,
      .role = (uint8_t)role,
      .scope = unit->state.scope,
      .order = ++unit->order,
      .declaration = declaration,
      .owner = role == CXX_ROLE_OTHER ? CXX_OWNER_OTHER : CXX_OWNER_UNPROVEN,
  };
  if (declaration)
    use.owner = declaration->removed ? CXX_OWNER_REMOVED : CXX_OWNER_OTHER;
  if (at > 0 && is(s->list[at - 1], CXX_SCOPE)) {
    /* In "return ::name" and "(void)::name" nothing stands before the colons. */
    const struct cxx_item *before = at > 1 ? s->list[at - 2] : NULL;
    bool named = before && (plain_word(before) || (is(before, '>') && before->text + 1 == s->list[at - 1]->text));
    if (before && is(before, ')')) {
      int open = backward(s, at - 2);
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

static void add_reference(struct cxx_unit *unit, const struct items *s, int at) {
  int next = at + 1;
  if (next < s->count && is(s->list[next], '<') && cxx_index_name(unit->scan, s->list[at]->name)->is_template) {
    int close = forward_angle(s, next, s->count);
    next = close > 0 ? close + 1 : s->count;
  }
  add_use(unit, s, at, next < s->count && is(s->list[next], '(') ? CXX_ROLE_CALL : CXX_ROLE_REFERENCE, NULL);
}

static void add_other(struct cxx_unit *unit, struct cxx_scope *scope, const struct items *s, int at) {
  declare(unit, home(scope), s->list[at], DECLARES_OTHER);
  add_use(unit, s, at, CXX_ROLE_OTHER, NULL);
}

/* --- reading a declaration ---------------------------------------------------------------------------------------- */

struct declarator {
  int open, close; /* its parameter list; open is -1 when the statement declares no function */
  int first, name; /* tokens of a::b::name; name is -1 for an operator */
};

static bool attribute_word(const struct cxx_item *item) {
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
      before = backward_angle(s, before) - 1;
    if (before < start || !plain_word(s->list[before]))
      return at - 1;
    at = before;
  }
  return at;
}

/* Finds the function declarator of a statement at namespace or class level. */
static struct declarator find_declarator(const struct items *s, int start) {
  struct declarator none = {-1, -1, -1, -1};
  for (int at = start; at < s->count; at++) {
    const struct cxx_item *item = s->list[at];
    if (keyword(item, KW_operator)) {
      while (at < s->count && !is(s->list[at], '('))
        at++;
      if (at + 2 < s->count && is(s->list[at + 1], ')') && is(s->list[at + 2], '('))
        at += 2; /* operator()( */
      return at < s->count ? (struct declarator){at, forward(s, at, s->count), at, -1} : none;
    }
    if (is(item, '=') || is(item, '{') || is(item, BODY))
      return none;
    if (is(item, '<') && at > start && (plain_word(s->list[at - 1]) || keyword(s->list[at - 1], KW_template))) {
      int close = forward_angle(s, at, s->count);
      if (close > 0)
        at = close;
      continue;
    }
    if (is(item, '[')) {
      at = forward(s, at, s->count);
      continue;
    }
    if (!is(item, '('))
      continue;
    int close = forward(s, at, s->count);
    if (at == start)
      return none;
    int name = at - 1;
    if (attribute_word(s->list[name])) {
      at = close;
      continue;
    }
    if (is(s->list[name], '>'))
      name = backward_angle(s, name) - 1;
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
static bool ends_type(const struct items *s, int at, int start) {
  if (at < start)
    return false;
  const struct cxx_item *item = s->list[at];
  if (is(item, '*') || is(item, '&') || is(item, CXX_AND_AND)) {
    while (at >= start && (is(s->list[at], '*') || is(s->list[at], '&') || is(s->list[at], CXX_AND_AND)))
      at--;
    return at >= start && ends_type(s, at, start);
  }
  return plain_word(item) || type_keyword(item) || qualifier_keyword(item) || is(item, '>') ||
         is(item, CXX_SHIFT_RIGHT) || is(item, CXX_ELLIPSIS) || is(item, BODY);
}

/* Tokens that may stand behind a declared variable, field or parameter. */
static bool after_variable(const struct items *s, int at) {
  if (at >= s->count)
    return true;
  const struct cxx_item *item = s->list[at];
  return is(item, '=') || is(item, ',') || is(item, ')') || is(item, ';') || is(item, '[') || is(item, '{') ||
         is(item, ':') || is(item, '>');
}

/* Whatever the context: the token cannot name a function here. */
static bool other_thing(const struct items *s, int at) {
  const struct cxx_item *before = at > 0 ? s->list[at - 1] : NULL;
  const struct cxx_item *after = at + 1 < s->count ? s->list[at + 1] : NULL;
  if (before && (is(before, '.') || is(before, CXX_ARROW) || is(before, CXX_DOT_STAR) || keyword(before, KW_goto)))
    return true;
  if (before && keyword(before, KW_template) && at > 1 && (is(s->list[at - 2], '.') || is(s->list[at - 2], CXX_ARROW)))
    return true;
  return after && (is(after, CXX_SCOPE) || is(after, '.') || is(after, CXX_ARROW) || is(after, CXX_STEP) ||
                   is(after, CXX_ASSIGN));
}

static bool names_type(const struct items *s, int at) {
  const struct cxx_item *before = at > 0 ? s->list[at - 1] : NULL;
  return before && (class_key(before) || keyword(before, KW_enum) || keyword(before, KW_namespace) ||
                    keyword(before, KW_concept) || keyword(before, KW_typename));
}

/* --- statements at namespace and class level -----------------------------------------------------------------------
 */

/* Skips template<...> heads; *is_template when there was one with parameters. */
static int skip_template_heads(struct cxx_unit *unit, const struct items *s, bool *is_template) {
  int at = 0;
  while (at + 1 < s->count && keyword(s->list[at], KW_template) && is(s->list[at + 1], '<')) {
    int close = forward_angle(s, at + 1, s->count);
    if (close < 0)
      break;
    *is_template = true;
    for (int i = at + 2; i < close; i++) {
      if (s->list[i]->name < 0)
        continue;
      if (ends_type(s, i - 1, at + 2) || names_type(s, i))
        add_use(unit, s, i, CXX_ROLE_OTHER, NULL);
      else
        add_reference(unit, s, i);
    }
    at = close + 1;
  }
  return at;
}

static void note_alias(struct cxx_unit *unit, const struct items *s, int name, int first, int last) {
  if (last < first || !tensor_word(unit, s->list[last]) || !plain_word(s->list[name]) ||
      unit->tensor_aliases_count == sizeof unit->tensor_aliases / sizeof *unit->tensor_aliases)
    return;
  unit->tensor_aliases[unit->tensor_aliases_count++] = string_of(s->list[name]);
}

/* using namespace a; using a::name; using name = type; */
static void using_statement(struct cxx_unit *unit, struct cxx_scope *scope, const struct items *s, int start) {
  if (start + 1 < s->count && keyword(s->list[start + 1], KW_namespace)) {
    if (s->count > start + 2)
      add_link(unit, &home(scope)->directives, s->list[s->count - 1]);
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
        add_other(unit, scope, s, i);
      else if (!other_thing(s, i))
        add_reference(unit, s, i);
      continue;
    }
    if (!is(s->list[i - 1], CXX_SCOPE) || (i + 1 < s->count && is(s->list[i + 1], CXX_SCOPE))) {
      add_use(unit, s, i, CXX_ROLE_OTHER, NULL);
      continue;
    }
    struct cxx_declaration *declaration = declare(unit, home(scope), item, DECLARES_USING);
    declaration->path = i > 1 && (plain_word(s->list[i - 2]) || is(s->list[i - 2], '>')) ? s->list[i - 2] : NULL;
    add_use(unit, s, i, CXX_ROLE_USING, NULL);
  }
}

static bool contains(const struct items *s, int from, int to, unsigned code) {
  for (int i = from; i < to; i++)
    if (is(s->list[i], code))
      return true;
  return false;
}

static bool has_keyword(const struct items *s, int from, int to, unsigned code) {
  for (int i = from; i < to; i++)
    if (keyword(s->list[i], code))
      return true;
  return false;
}

static bool extern_c(const struct items *s, int at) {
  return at + 1 < s->count && keyword(s->list[at], KW_extern) && s->list[at + 1]->kind == CXX_STRING &&
         reads(s->list[at + 1], "\"C\"");
}

/* A function's declaration or the head of its definition. Parameters are declared in `body` when there is one. */
static void function_statement(struct cxx_unit *unit, struct cxx_scope *scope, struct cxx_scope *body,
                               const struct items *s, int start, const struct declarator *d, bool is_template) {
  struct function_facts facts = {.is_template = is_template, .definition = body != NULL};
  facts.c_linkage = scope->c_linkage;
  for (int i = start; i < d->first; i++) {
    facts.is_static = facts.is_static || keyword(s->list[i], KW_static);
    if (keyword(s->list[i], KW_extern) && i + 1 < s->count && s->list[i + 1]->kind == CXX_STRING)
      facts.c_linkage = extern_c(s, i);
  }
  bool is_friend = has_keyword(s, start, d->first, KW_friend);
  if (d->name >= 0 && s->list[d->name]->name >= 0) {
    int at = d->name;
    if (d->first == start) {
      add_reference(unit, s, at); /* no type in front: a macro or broken text */
    } else if (is(s->list[d->first], CXX_SCOPE) || d->first == at) {
      struct cxx_scope *target = is(s->list[d->first], CXX_SCOPE) ? unit->global
                                 : is_friend                      ? namespace_of(scope)
                                                                  : home(scope);
      read_parameters(unit, s, d->open, d->close, &facts.signature);
      for (int i = d->open; i < d->close; i++)
        facts.is_template = facts.is_template || keyword(s->list[i], KW_auto);
      const struct cxx_declaration *declaration = declare_function(unit, target, s->list[at], &facts);
      add_use(unit, s, at,
              !declaration->removed ? CXX_ROLE_OTHER
              : body                ? CXX_ROLE_DEFINITION
                                    : CXX_ROLE_DECLARATION,
              declaration);
    } else {
      add_use(unit, s, at, CXX_ROLE_OTHER, NULL); /* a member or a namespace's function, defined outside of it */
    }
  }
  for (int i = d->open + 1; i < d->close; i++) {
    if (s->list[i]->name < 0 || other_thing(s, i))
      continue;
    int first = i; /* of the parameter */
    bool value = false;
    while (first - 1 > d->open && !is(s->list[first - 1], ',')) {
      first--;
      value = value || is(s->list[first], '=');
    }
    bool pointer = i - 2 > d->open && is(s->list[i - 1], '*') && is(s->list[i - 2], '(');
    if (!value && (pointer || (ends_type(s, i - 1, first) && after_variable(s, i + 1)))) {
      if (body)
        declare(unit, body, s->list[i], DECLARES_OTHER);
      add_use(unit, s, i, CXX_ROLE_OTHER, NULL);
    }
  }
}

static void declarative_statement(struct cxx_unit *unit, struct cxx_scope *scope, struct cxx_scope *body,
                                  const struct items *s) {
  bool is_template = false;
  if (s->count > 1 && keyword(s->list[0], KW_template) && !is(s->list[1], '<')) {
    for (int i = 1; i < s->count; i++)
      if (s->list[i]->name >= 0 && !other_thing(s, i))
        add_use(unit, s, i, CXX_ROLE_INSTANTIATION, NULL);
    return;
  }
  int start = skip_template_heads(unit, s, &is_template);
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
    else if (opens(s->list[i]))
      i = forward(s, i, s->count);
  }
  if (keyword(s->list[start], KW_namespace) && equal < s->count) {
    if (equal > start + 1 && s->count > equal + 1)
      add_link(unit, &home(scope)->aliases, s->list[s->count - 1])->name = string_of(s->list[equal - 1]);
  } else if (keyword(s->list[start], KW_typedef)) {
    note_alias(unit, s, s->count - 1, start, s->count - 2);
  } else {
    struct declarator d = find_declarator(s, start);
    if (d.open >= 0 && d.open < equal)
      function_statement(unit, scope, body, s, start, &d, is_template);
  }
  for (int i = start; i < s->count; i++) {
    const struct cxx_item *item = s->list[i];
    if (item->name < 0 || has_use(unit, item))
      continue;
    bool pointer =
        i > 1 && i + 1 < s->count && is(s->list[i - 1], '*') && is(s->list[i - 2], '(') && is(s->list[i + 1], ')');
    if (other_thing(s, i))
      add_use(unit, s, i, CXX_ROLE_OTHER, NULL);
    else if (i < equal &&
             (names_type(s, i) || pointer ||
              (ends_type(s, i - 1, start) && after_variable(s, i + 1) && !(i > 0 && is(s->list[i - 1], CXX_SCOPE)))))
      add_other(unit, scope, s, i);
    else
      add_reference(unit, s, i);
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
        at = forward(s, at, s->count) + 1;
    } else {
      break;
    }
  }
  return at < s->count ? at : s->count;
}

/* Do the tokens from `start` up to `end` read as the type of a declaration? */
static bool reads_as_type(const struct items *s, int start, int end) {
  if (!ends_type(s, end - 1, start))
    return false;
  for (int at = start; at < end; at++) {
    const struct cxx_item *item = s->list[at];
    if (is(item, '<') && at > start) {
      int close = forward_angle(s, at, end);
      if (close < 0)
        return false;
      at = close;
    } else if (is(item, '[') && at + 1 < end && is(s->list[at + 1], '[')) {
      at = forward(s, at, end);
    } else if (keyword(item, KW_decltype) || keyword(item, KW_alignas)) {
      if (at + 1 < end && is(s->list[at + 1], '('))
        at = forward(s, at + 1, end);
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
  int close = forward(s, at + 1, s->count);
  for (int i = at + 2; i < close; i++)
    if ((plain_word(s->list[i]) || is(s->list[i], '&')) && i + 1 < close && plain_word(s->list[i + 1]))
      return true;
  return false;
}

/* The opening bracket directly around `at`, or -1. */
static int around(const struct items *s, int at) {
  int depth = 0;
  for (at--; at >= 0; at--) {
    if (closes(s->list[at]))
      depth++;
    else if (opens(s->list[at]) && depth-- == 0)
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
static bool introduces(const struct items *s, int open) {
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
  if (other_thing(s, at)) {
    add_use(unit, s, at, CXX_ROLE_OTHER, NULL);
    return;
  }
  bool qualified = is(s->list[at > 0 ? at - 1 : 0], CXX_SCOPE);
  int open = around(s, at);
  if (names_type(s, at) || (open >= 0 && introduces(s, open)) || (after && (is(after, '=') || is(after, '[')))) {
    add_other(unit, scope, s, at);
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
    if (!after || after_variable(s, at + 1)) {
      add_other(unit, scope, s, at);
      return;
    }
    if (is(after, '(') && open < 0) {
      const struct cxx_item *before = s->list[at - 1];
      bool function = declares_function(s, start, at);
      if (!function && (is(before, '*') || is(before, '&') || is(before, CXX_AND_AND) ||
                        (plain_word(before) && cxx_macro_defined(&unit->macros, before->text, before->length)))) {
        add_reference(unit, s, at); /* a * name(b), MACRO name(b) */
        return;
      }
      if (!function) {
        add_other(unit, scope, s, at);
        return;
      }
      struct declarator d = {at + 1, forward(s, at + 1, s->count), at, at};
      function_statement(unit, namespace_of(scope), NULL, s, start, &d, false);
      return;
    }
  }
  /* int a, name; and void (*name)(int) = f; */
  bool list = open < 0 && at > start + 2 && is(s->list[at - 1], ',') && reads_as_type(s, start, start + 1) &&
              plain_word(s->list[start + 1]) && (!after || is(after, ',') || is(after, '{'));
  bool pointer = at > start + 2 && is(s->list[at - 1], '*') && is(s->list[at - 2], '(') && after && is(after, ')') &&
                 reads_as_type(s, start, at - 2);
  if (list || pointer || (after && is(after, '{')))
    add_other(unit, scope, s, at);
  else
    add_reference(unit, s, at);
}

static void body_statement(struct cxx_unit *unit, struct cxx_scope *scope, const struct items *s) {
  if (s->count == 0)
    return;
  int base = skip_control(s);
  if (base < s->count && keyword(s->list[base], KW_using)) {
    using_statement(unit, scope, s, base);
    return;
  }
  if (base + 2 < s->count && keyword(s->list[base], KW_namespace) && is(s->list[base + 2], '=')) {
    add_link(unit, &scope->aliases, s->list[s->count - 1])->name = string_of(s->list[base + 1]);
    return;
  }
  if (base < s->count && keyword(s->list[base], KW_typedef)) {
    note_alias(unit, s, s->count - 1, base, s->count - 2);
    for (int i = base; i < s->count; i++)
      if (s->list[i]->name >= 0 && i == s->count - 1)
        add_other(unit, scope, s, i);
  }
  for (int at = 0; at < s->count; at++)
    if (s->list[at]->name >= 0 && !has_use(unit, s->list[at]))
      body_name(unit, scope, s, base, at);
}

/* a, b = 1, c */
static void enum_statement(struct cxx_unit *unit, struct cxx_scope *scope, const struct items *s) {
  bool first = true;
  for (int at = 0; at < s->count; at++) {
    const struct cxx_item *item = s->list[at];
    if (item->name >= 0 && first) {
      declare(unit, scope, item, DECLARES_OTHER);
      if (!scope->name.length) /* an unscoped enum: visible around it too */
        declare(unit, home(scope->parent), item, DECLARES_OTHER);
      add_use(unit, s, at, CXX_ROLE_OTHER, NULL);
    } else if (item->name >= 0 && !other_thing(s, at)) {
      add_reference(unit, s, at);
    }
    first = is(item, ',');
  }
}

/* --- the running statement -----------------------------------------------------------------------------------------
 */

static void reset(struct cxx_state *state) {
  state->base = state->tail = state->first = NULL;
  state->bracket = NULL;
  state->count = 0;
  state->named = false;
}

/* The statement so far, read in the current scope; names in it get their uses. */
static void read_statement(struct cxx_unit *unit, struct cxx_scope *body) {
  struct cxx_state *state = &unit->state;
  struct items s = collect(state->base, state->tail);
  if (state->scope->kind == SCOPE_ENUM)
    enum_statement(unit, state->scope, &s);
  else if (declarative(state->scope))
    declarative_statement(unit, state->scope, body, &s);
  else
    body_statement(unit, body ? body : state->scope, &s);
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
    read_statement(unit, NULL);
  reset(&unit->state);
}

static void push_item(struct cxx_unit *unit, struct cxx_item item) {
  struct cxx_state *state = &unit->state;
  if (state->count >= LONGEST_STATEMENT) {
    if (state->named)
      read_statement(unit, NULL);
    /* Keep the head, so that the statement's kind stays known. */
    state->tail = state->bracket ? state->bracket->item : NULL;
    state->count = 1;
    state->named = false;
    if (!state->bracket)
      state->base = NULL;
  }
  struct cxx_item *copy = cxx_arena_alloc(&unit->arena, sizeof *copy);
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
  struct cxx_frame *frame = cxx_arena_alloc(&unit->arena, sizeof *frame);
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
      i = backward(s, i);
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
      int begin = backward(s, at);
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
    at = backward_angle(s, at) - 1;
  if (at < 0 || !is(s->list[at], ']'))
    return -1;
  int begin = backward(s, at);
  if (begin < 0 || !introduces(s, begin) || is(s->list[begin + 1], '[') ||
      (begin > 0 && (keyword(s->list[begin - 1], KW_auto) || is(s->list[begin - 1], '['))))
    return -1;
  return begin;
}

static void open_lambda(struct cxx_unit *unit, const struct items *s, int open) {
  struct cxx_scope *scope = new_scope(unit, unit->state.scope, SCOPE_FUNCTION);
  int close = open >= 0 ? forward(s, open, s->count) : -1;
  for (int i = open + 1; open >= 0 && i < close; i++) {
    if (s->list[i]->name < 0 || !ends_type(s, i - 1, open + 1) || !after_variable(s, i + 1))
      continue;
    declare(unit, scope, s->list[i], DECLARES_OTHER);
    add_use(unit, s, i, CXX_ROLE_OTHER, NULL);
  }
  enter(unit, scope, true);
}

/* The index of the class-key or enum of a definition whose body starts after the statement so far, or -1. */
static int find_type_head(const struct items *s) {
  int at = 0;
  while (at + 1 < s->count && keyword(s->list[at], KW_template) && is(s->list[at + 1], '<')) {
    int close = forward_angle(s, at + 1, s->count);
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
      if (!attribute_word(s->list[i - 1]) && !(plain_word(s->list[i - 1]) && i - 1 == at + 1))
        return -1;
      i = forward(s, i, s->count);
    }
  }
  return at;
}

static void open_type(struct cxx_unit *unit, const struct items *s, int key) {
  bool is_enum = keyword(s->list[key], KW_enum);
  struct cxx_scope *scope = new_scope(unit, unit->state.scope, is_enum ? SCOPE_ENUM : SCOPE_CLASS);
  int colon = key + 1;
  while (colon < s->count && !is(s->list[colon], ':'))
    colon++;
  int name = colon - 1;
  while (name > key && !(plain_word(s->list[name]) && !reads(s->list[name], "final"))) {
    if (is(s->list[name], '>')) {
      int open = backward_angle(s, name);
      name = open > 0 ? open : name;
    }
    name--;
  }
  bool scoped = is_enum && key + 1 < s->count && class_key(s->list[key + 1]);
  bool has_name = name > key && (!is_enum || scoped);
  if (is_enum && has_name)
    scope->name = string_of(s->list[name]);
  else if (!is_enum)
    name_scope(unit, scope, has_name ? string_of(s->list[name]) : (struct cxx_string){(const uint8_t *)"", 0});
  for (int i = colon + 1; i <= s->count && !is_enum && colon < s->count; i++) {
    bool end = i == s->count || is(s->list[i], ',') || is(s->list[i], '<');
    if (end && i > colon + 1 && plain_word(s->list[i - 1]))
      add_link(unit, &scope->bases, s->list[i - 1]);
    if (i < s->count && is(s->list[i], '<')) {
      int close = forward_angle(s, i, s->count);
      i = close > 0 ? close : i;
    }
  }
  enter(unit, scope, true);
}

static void open_namespace(struct cxx_unit *unit, const struct items *s, int at) {
  bool is_inline = at > 0 && has_keyword(s, 0, at, KW_inline);
  struct cxx_scope *scope = unit->state.scope;
  bool named = false;
  for (int i = at + 1; i < s->count; i++) {
    if (is(s->list[i], '[')) {
      i = forward(s, i, s->count);
      continue;
    }
    if (!plain_word(s->list[i]) || (i + 1 < s->count && is(s->list[i + 1], '('))) /* not an attribute's macro */
      continue;
    if (named && !is(s->list[i - 1], CXX_SCOPE))
      continue;
    struct cxx_scope *child = find_child(unit, home(scope), string_of(s->list[i]), true);
    if (!child) {
      child = new_scope(unit, scope, SCOPE_NAMESPACE);
      name_scope(unit, child, string_of(s->list[i]));
      if (is_inline)
        add_link(unit, &home(scope)->directives, NULL)->target = child;
    }
    scope = child;
    named = true;
  }
  if (!named) {
    struct cxx_scope *parent = home(scope);
    scope = new_scope(unit, scope, SCOPE_NAMESPACE);
    scope->anonymous = true;
    name_scope(unit, scope, (struct cxx_string){(const uint8_t *)"", 0});
    add_link(unit, &parent->directives, NULL)->target = scope;
  }
  for (int i = at; i < s->count; i++)
    if (s->list[i]->name >= 0)
      add_use(unit, s, i, CXX_ROLE_OTHER, NULL);
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
      add_use(unit, s, i, CXX_ROLE_OTHER, NULL);
}

static void open_function(struct cxx_unit *unit, const struct items *s, int start, const struct declarator *d) {
  struct cxx_scope *outer = unit->state.scope;
  struct cxx_scope *scope = new_scope(unit, outer, SCOPE_FUNCTION);
  if (d->name >= 0 && d->first < d->name - 1)
    scope->member_of = resolve_path(unit, outer, s->list[d->name - 2]);
  if (d->name >= 0 && d->first == start && outer->kind == SCOPE_NAMESPACE && !scope->member_of)
    note_registration(unit, scope, s, d);
  for (int i = d->open; i < d->close && d->name >= 0; i++)
    if (plain_word(s->list[i]) && reads(s->list[i], "Library"))
      scope->registrar = string_of(s->list[d->name]);
  if (unit->state.named)
    read_statement(unit, scope);
  reset(&unit->state);
  enter(unit, scope, false);
  if (!unit->feeding_main)
    unit->state.skip = 1;
}

static void open_block(struct cxx_unit *unit, bool resume) {
  struct cxx_scope *scope = new_scope(unit, unit->state.scope, SCOPE_BLOCK);
  if (!resume) {
    if (unit->state.named)
      read_statement(unit, scope);
    reset(&unit->state);
  }
  enter(unit, scope, resume);
}

static void open_initializer(struct cxx_unit *unit, struct cxx_item item) {
  push_item(unit, item);
  struct cxx_bracket *bracket = cxx_arena_alloc(&unit->arena, sizeof *bracket);
  *bracket = (struct cxx_bracket){unit->state.bracket, unit->state.tail};
  unit->state.bracket = bracket;
}

static void open_linkage(struct cxx_unit *unit, bool c_linkage) {
  struct cxx_scope *scope = new_scope(unit, unit->state.scope, SCOPE_LINKAGE);
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
    open_linkage(unit, extern_c(s, 0));
    return;
  }
  int key = find_type_head(s);
  if (key >= 0) {
    open_type(unit, s, key);
    return;
  }
  int start = 0;
  while (start + 1 < s->count && keyword(s->list[start], KW_template) && is(s->list[start + 1], '<')) {
    int close = forward_angle(s, start + 1, s->count);
    if (close < 0)
      break;
    start = close + 1;
  }
  struct declarator d = find_declarator(s, start);
  if (d.open < 0 || d.close >= s->count) {
    open_initializer(unit, item);
    return;
  }
  /* In a constructor's list, name{ and name<T>{ initialize; the body comes behind ) or }. */
  const struct cxx_item *last = s->list[s->count - 1];
  bool list = false;
  for (int i = d.close + 1; i < s->count; i++) {
    if (opens(s->list[i]))
      i = forward(s, i, s->count);
    else if (is(s->list[i], ':'))
      list = true;
  }
  if ((list && (plain_word(last) || is(last, '>') || is(last, ',') || is(last, ':'))) ||
      contains(s, d.close + 1, s->count, '=')) {
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
  struct items s = collect(state->base, state->tail);
  int open, lambda = find_lambda(&s, &open);
  const struct cxx_item *last = s.count ? s.list[s.count - 1] : NULL;
  if (lambda >= 0 && !(lambda == 0 && !state->bracket && declarative(state->scope)))
    open_lambda(unit, &s, open);
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
  struct cxx_scope *scope = new_scope(unit, state->scope, kind);
  bool resume = state->bracket != NULL;
  if (!resume) {
    if (named)
      read_statement(unit, NULL);
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
  unit->global = cxx_arena_alloc(&unit->arena, sizeof *unit->global);
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
    if (ends_label(state))
      reset(state);
    else
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

/* --- who a name belongs to ---------------------------------------------------------------------------------------- */

struct lookup {
  const struct cxx_unit *unit;
  uint32_t stamp;
  int name;
  bool call, inactive, any_order;
  unsigned least, most; /* arguments of the call */
  uint32_t order;
  bool seen, removed, other;
  unsigned depth;
};

static void look_in(struct lookup *l, struct cxx_scope *scope);

static void accept(struct lookup *l, const struct cxx_declaration *d, bool ordered) {
  if (d->name != l->name || (d->inactive && !l->inactive) || (ordered && !l->any_order && d->order > l->order))
    return;
  if (d->kind == DECLARES_USING) {
    struct cxx_scope *target = d->scope;
    if (d->path) {
      target = resolve_path(l->unit, d->scope, d->path);
    } else {
      while (target->parent)
        target = target->parent;
    }
    l->seen = true;
    bool removed = l->removed, other = l->other;
    if (target && l->depth < DEEPEST_LOOKUP) {
      l->depth++;
      look_in(l, target);
      l->depth--;
    }
    if (l->removed == removed && l->other == other) {
      /* What it names is not in view. */
      l->removed = l->removed || !d->path;
      l->other = l->other || d->path;
    }
    return;
  }
  l->seen = true;
  if (l->call && d->kind != DECLARES_OTHER && (d->least > l->most || d->most < l->least))
    return;
  if (d->removed)
    l->removed = true;
  else
    l->other = true;
}

/* Declarations of exactly this scope, its bases and the namespaces made visible in it. */
static void look_in(struct lookup *l, struct cxx_scope *scope) {
  if (scope->visited == l->stamp)
    return;
  scope->visited = l->stamp;
  for (const struct cxx_declaration *d = scope->declarations; d; d = d->next)
    accept(l, d, scope->kind != SCOPE_CLASS);
  if (l->depth >= DEEPEST_LOOKUP)
    return;
  l->depth++;
  for (const struct link *base = scope->bases; base; base = base->next) {
    struct cxx_scope *target = resolve_path(l->unit, scope->parent, base->path);
    if (target && target != scope)
      look_in(l, target);
  }
  for (const struct link *directive = scope->directives; directive; directive = directive->next) {
    struct cxx_scope *target = directive->target ? directive->target : resolve_path(l->unit, scope, directive->path);
    if (target && target != scope)
      look_in(l, target);
  }
  l->depth--;
}

void cxx_scopes_arguments(const struct cxx_unit *unit, uint32_t token, unsigned *least, unsigned *most) {
  const struct cxx_token *list = unit->tokens.list;
  bool inactive = (list[token].flags & CXX_INACTIVE) != 0;
  uint32_t count = unit->tokens.count;
  unsigned commas = 0, soft = 0; /* soft: perhaps between template arguments */
  int depth = 0, angle = 0;
  bool empty = true, unknown = false;
  *least = 0;
  *most = UINT_MAX;
  for (uint32_t at = token + 1; at < count; at++) {
    const struct cxx_token *part = &list[at];
    if (part->kind == CXX_HASH || (part->flags & CXX_DIRECTIVE)) {
      unknown = unknown || inactive;
      continue;
    }
    if (((part->flags & CXX_INACTIVE) != 0) != inactive)
      continue;
    unsigned code = part->kind == CXX_PUNCT ? part->code : 0;
    if (depth == 0 && code != '(')
      continue; /* template arguments */
    if (code == '(' || code == '[' || code == '{') {
      empty = empty && depth == 0;
      depth++;
      continue;
    }
    if (code == ')' || code == ']' || code == '}') {
      if (--depth == 0)
        break;
      continue;
    }
    empty = false;
    if (depth > 1)
      continue;
    if (code == CXX_ELLIPSIS)
      unknown = true;
    else if (code == '<' && list[at - 1].kind == CXX_WORD)
      angle++;
    else if (code == '>' && angle > 0)
      angle--;
    else if (code == CXX_SHIFT_RIGHT && angle > 1)
      angle -= 2;
    else if (code == ',' && angle > 0)
      soft++;
    else if (code == ',')
      commas++;
  }
  if (depth != 0 || unknown)
    return;
  *least = empty ? 0 : commas + 1;
  *most = empty ? 0 : commas + soft + 1;
}

static enum cxx_owner look_up(struct cxx_unit *unit, const struct cxx_use *use, struct lookup l) {
  l.unit = unit;
  l.stamp = ++unit->lookups;
  if (use->qualifier == CXX_GLOBAL) {
    look_in(&l, unit->global);
  } else if (use->qualifier == CXX_NAMED) {
    struct cxx_scope *scope = resolve_path(unit, use->scope, use->path);
    if (scope)
      look_in(&l, scope);
    if (!l.seen)
      return CXX_OWNER_OTHER;
  } else {
    for (struct cxx_scope *scope = use->scope; scope && !l.seen;) {
      look_in(&l, scope);
      scope = scope->member_of && !l.seen ? scope->member_of : scope->parent;
    }
  }
  if (!l.seen)
    return CXX_OWNER_UNPROVEN;
  return l.removed && l.other ? CXX_OWNER_AMBIGUOUS : l.removed ? CXX_OWNER_REMOVED : CXX_OWNER_OTHER;
}

static void resolve_use(struct cxx_unit *unit, struct cxx_use *use) {
  const struct cxx_token *token = &unit->tokens.list[use->token];
  struct lookup l = {.name = use->name, .order = use->order, .inactive = (token->flags & CXX_INACTIVE) != 0};
  const struct cxx_name *name = cxx_index_name(unit->scan, use->name);
  if (use->role == CXX_ROLE_USING) {
    use->owner = (uint8_t)look_up(unit, use, l);
    return;
  }
  l.call = use->role == CXX_ROLE_CALL && !name->is_template;
  if (l.call)
    cxx_scopes_arguments(unit, use->token, &l.least, &l.most);
  use->owner = (uint8_t)look_up(unit, use, l);
  if (use->owner == CXX_OWNER_UNPROVEN) {
    l.any_order = true;
    use->owner = (uint8_t)look_up(unit, use, l);
  }
  if (use->owner == CXX_OWNER_UNPROVEN && l.call) {
    bool fitting = false;
    for (unsigned i = 0; i < name->symbols_count; i++) {
      const struct cxx_signature *signature = cxx_index_signature(unit->scan, name->symbols[i]);
      fitting = fitting || (signature->least <= l.most && signature->most >= l.least);
    }
    if (!fitting)
      use->owner = CXX_OWNER_OTHER;
  }
}

void cxx_scopes_leftover(struct cxx_unit *unit, uint32_t token, int name) {
  const struct cxx_token *list = unit->tokens.list;
  struct cxx_item items[3];
  struct items s = {.list = (const struct cxx_item *[]){&items[0], &items[1], &items[2]}};
  int at = 0;
  for (uint32_t i = token > 0 ? token - 1 : 0; i <= token + 1 && i < unit->tokens.count; i++) {
    if (i == token)
      at = s.count;
    items[s.count++] = (struct cxx_item){.text = unit->tokens.bytes + list[i].start,
                                         .length = list[i].end - list[i].start,
                                         .index = i,
                                         .code = list[i].code,
                                         .kind = list[i].kind,
                                         .name = i == token ? name : -1};
  }
  unit->state.scope = unit->global;
  if (other_thing(&s, at) || (at > 0 && is(&items[at - 1], CXX_SCOPE)))
    add_use(unit, &s, at, CXX_ROLE_OTHER, NULL);
  else
    add_reference(unit, &s, at);
  if (unit->uses_count && unit->uses[unit->uses_count - 1].token == token)
    unit->uses[unit->uses_count - 1].unsure = true;
}

void cxx_scopes_resolve(struct cxx_unit *unit) {
  for (uint32_t i = 0; i < unit->uses_count; i++) {
    struct cxx_use *use = &unit->uses[i];
    if (use->role == CXX_ROLE_REFERENCE || use->role == CXX_ROLE_CALL || use->role == CXX_ROLE_INSTANTIATION ||
        use->role == CXX_ROLE_USING)
      resolve_use(unit, use);
  }
}

static void walk_declarations(const struct cxx_scope *scope,
                              void (*visit)(void *user, const struct cxx_declaration *declaration), void *user) {
  for (const struct cxx_declaration *d = scope->declarations; d; d = d->next)
    visit(user, d);
  for (const struct cxx_scope *child = scope->children; child; child = child->sibling)
    walk_declarations(child, visit, user);
}

struct declared {
  int name;
  bool removed, other;
};

static void visit_declared(void *user, const struct cxx_declaration *d) {
  struct declared *declared = user;
  if (d->name != declared->name || d->inactive || d->kind == DECLARES_USING)
    return;
  if (d->removed)
    declared->removed = true;
  else
    declared->other = true;
}

void cxx_scopes_declared(const struct cxx_unit *unit, int name, bool *removed, bool *other) {
  struct declared declared = {.name = name};
  walk_declarations(unit->global, visit_declared, &declared);
  *removed = declared.removed;
  *other = declared.other;
}

struct mismatch {
  const uint8_t *at;
  bool found;
};

static void visit_mismatch(void *user, const struct cxx_declaration *d) {
  struct mismatch *mismatch = user;
  mismatch->found = mismatch->found || (d->at == mismatch->at && d->mismatch);
}

bool cxx_scopes_mismatch(const struct cxx_unit *unit, const uint8_t *at) {
  struct mismatch mismatch = {.at = at};
  walk_declarations(unit->global, visit_mismatch, &mismatch);
  return mismatch.found;
}

/* --- for others --------------------------------------------------------------------------------------------------- */

struct cxx_string cxx_scope_registration(const struct cxx_scope *scope) {
  for (; scope; scope = scope->parent)
    if (scope->registration.length)
      return scope->registration;
  return (struct cxx_string){NULL, 0};
}

struct cxx_string cxx_scope_registrar(const struct cxx_scope *scope) {
  for (; scope; scope = scope->parent)
    if (scope->registrar.length)
      return scope->registrar;
  return (struct cxx_string){NULL, 0};
}

void cxx_signature_read(struct cxx_unit *unit, const uint8_t *text, size_t size, struct cxx_signature *signature) {
  struct cxx_tokens tokens;
  cxx_lex(&tokens, text, size);
  struct items s = {scan_alloc(NULL, tokens.count * sizeof *s.list), (int)tokens.count};
  struct cxx_item *items = scan_alloc(NULL, tokens.count * sizeof *items);
  for (uint32_t i = 0; i < tokens.count; i++) {
    const struct cxx_token *token = &tokens.list[i];
    items[i] = (struct cxx_item){.text = text + token->start,
                                 .length = token->end - token->start,
                                 .index = CXX_NONE,
                                 .code = token->code,
                                 .kind = token->kind,
                                 .name = -1};
    s.list[i] = &items[i];
  }
  struct declarator d = find_declarator(&s, 0);
  *signature = (struct cxx_signature){0};
  if (d.open >= 0)
    read_parameters(unit, &s, d.open, d.close, signature);
  free(items);
  free(s.list);
  cxx_tokens_free(&tokens);
}
