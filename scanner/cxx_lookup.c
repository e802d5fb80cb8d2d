/* Who a name belongs to: the rules of name look-up, over the scopes that were read. */
#include "scanner/cxx_scopes.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* More than any code that people write; beyond, a name is not found. */
#define LONGEST_PATH 16
#define DEEPEST_LOOKUP 16
#define MOST_DIRECTIVES 64

/* --- scopes and paths --------------------------------------------------------------------------------------------- */

static struct cxx_scope **bucket(const struct cxx_unit *unit, const struct cxx_scope *parent, struct cxx_string name) {
  uint32_t hash = cxx_hash(name.text, name.length) ^ (uint32_t)((uintptr_t)parent >> 4);
  return &((struct cxx_unit *)(uintptr_t)unit)->children[hash % CXX_CHILD_BUCKETS];
}

struct cxx_scope *cxx_new_scope(struct cxx_unit *unit, struct cxx_scope *parent, enum scope_kind kind) {
  struct cxx_scope *scope = arena_alloc(&unit->arena, sizeof *scope);
  scope->kind = kind;
  scope->parent = parent;
  scope->depth = parent->depth + 1;
  scope->c_linkage = parent->c_linkage && (kind == SCOPE_NAMESPACE || kind == SCOPE_LINKAGE);
  return scope;
}

/* Names a namespace or class, so that paths find it. */
void cxx_name_scope(struct cxx_unit *unit, struct cxx_scope *scope, struct cxx_string name) {
  struct cxx_scope *owner = home(scope->parent);
  scope->name = name;
  scope->sibling = owner->children;
  owner->children = scope;
  struct cxx_scope **chain = bucket(unit, owner, name);
  scope->chained = *chain;
  *chain = scope;
}

struct link *cxx_add_link(struct cxx_unit *unit, struct link **list, const struct cxx_item *path) {
  struct link *link = arena_alloc(&unit->arena, sizeof *link);
  link->next = *list;
  link->path = path;
  *list = link;
  return link;
}

struct cxx_scope *cxx_find_child(const struct cxx_unit *unit, const struct cxx_scope *scope, struct cxx_string name,
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
  struct cxx_scope *found = cxx_find_child(search->unit, scope, name, false);
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

struct cxx_scope *cxx_resolve_path(const struct cxx_unit *unit, struct cxx_scope *from, const struct cxx_item *path) {
  struct search search = {.unit = unit};
  return search_path(&search, from, path, DEEPEST_LOOKUP);
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
  struct cxx_scope *visible[MOST_DIRECTIVES]; /* by using-directives on the way outwards */
  unsigned visible_count;
};

static void look_qualified(struct lookup *l, struct cxx_scope *scope);

static void accept(struct lookup *l, const struct cxx_declaration *d, bool ordered) {
  if (d->name != l->name || (d->inactive && !l->inactive) || (ordered && !l->any_order && d->order > l->order))
    return;
  if (d->kind == DECLARES_USING) {
    struct cxx_scope *target = d->scope;
    if (d->path) {
      target = cxx_resolve_path(l->unit, d->scope, d->path);
    } else {
      while (target->parent)
        target = target->parent;
    }
    l->seen = true;
    bool removed = l->removed, other = l->other;
    if (target && l->depth < DEEPEST_LOOKUP) {
      l->depth++;
      look_qualified(l, target);
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

/* The namespace that a using-directive names. */
static struct cxx_scope *directive_target(const struct lookup *l, struct cxx_scope *scope, const struct link *link) {
  return link->target ? link->target : cxx_resolve_path(l->unit, scope, link->path);
}

/* Declarations of exactly this scope, its bases and its unnamed and inline namespaces. */
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
    struct cxx_scope *target = cxx_resolve_path(l->unit, scope->parent, base->path);
    if (target)
      look_in(l, target);
  }
  for (const struct link *link = scope->directives; link; link = link->next)
    if (link->target)
      look_in(l, link->target);
  l->depth--;
}

/* scope::name: using-directives count when the scope itself has no such name. */
static void look_qualified(struct lookup *l, struct cxx_scope *scope) {
  look_in(l, scope);
  if (l->seen || l->depth >= DEEPEST_LOOKUP)
    return;
  l->depth++;
  for (const struct link *link = scope->directives; link; link = link->next) {
    struct cxx_scope *target = directive_target(l, scope, link);
    if (target && target->visited != l->stamp)
      look_qualified(l, target);
  }
  l->depth--;
}

/* The namespaces that the using-directives of a scope make visible, and those that theirs do. */
static void note_directives(struct lookup *l, struct cxx_scope *scope) {
  for (const struct link *link = scope->directives; link; link = link->next) {
    struct cxx_scope *target = directive_target(l, scope, link);
    bool known = !target || target == scope;
    for (unsigned i = 0; i < l->visible_count && !known; i++)
      known = l->visible[i] == target;
    if (known || l->visible_count == MOST_DIRECTIVES)
      continue;
    l->visible[l->visible_count++] = target;
    note_directives(l, target);
  }
}

static bool encloses(const struct cxx_scope *outer, const struct cxx_scope *inner) {
  while (inner && inner != outer)
    inner = inner->parent;
  return inner != NULL;
}

/* A plain name: scope by scope outwards. What a using-directive makes visible counts as a member of the innermost
 * namespace around both, so it does not hide a function there. */
static void look_plain(struct lookup *l, struct cxx_scope *scope) {
  while (scope && !l->seen) {
    note_directives(l, scope);
    look_in(l, scope);
    for (unsigned i = 0; i < l->visible_count && scope->kind == SCOPE_NAMESPACE; i++)
      if (encloses(scope, l->visible[i]))
        look_in(l, l->visible[i]);
    scope = scope->member_of ? scope->member_of : scope->parent;
  }
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
    look_qualified(&l, unit->global);
  } else if (use->qualifier == CXX_NAMED) {
    struct cxx_scope *scope = cxx_resolve_path(unit, use->scope, use->path);
    if (scope)
      look_qualified(&l, scope);
    if (!l.seen)
      return CXX_OWNER_OTHER;
  } else {
    look_plain(&l, use->scope);
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
  if (cxx_other_thing(&s, at) || (at > 0 && is(&items[at - 1], CXX_SCOPE)))
    cxx_add_use(unit, &s, at, CXX_ROLE_OTHER, NULL);
  else
    cxx_add_reference(unit, &s, at);
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

static void visit_elsewhere(void *user, const struct cxx_declaration *d) {
  bool *names = user;
  static const struct cxx_string jit = {(const uint8_t *)"sgl_kernel_jit", 14};
  bool function = d->kind == DECLARES_FUNCTION || d->kind == DECLARES_TEMPLATE;
  if (function && !d->removed && d->scope->kind == SCOPE_NAMESPACE && !same(d->scope->name, jit))
    names[d->name] = true;
}

void cxx_scopes_elsewhere(const struct cxx_unit *unit, bool *names) {
  walk_declarations(unit->global, visit_elsewhere, names);
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
  struct declarator d = cxx_find_declarator(&s, 0);
  *signature = (struct cxx_signature){0};
  if (d.open >= 0)
    cxx_read_parameters(unit, &s, d.open, d.close, signature);
  free(items);
  free(s.list);
  cxx_tokens_free(&tokens);
}
