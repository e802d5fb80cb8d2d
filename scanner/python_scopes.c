/* Scopes and bindings, as Python's compiler sees them: which names a function, class, comprehension or module binds,
 * and which binding a name in some place means. One pass over the tree, then hash tables. */
#include "scanner/python_front.h"

#include <stdlib.h>

/* --- names -------------------------------------------------------------------------------------------------------- */

static uint32_t hash_bytes(const void *text, size_t length) {
  const uint8_t *bytes = text;
  uint32_t hash = 2166136261u; /* FNV-1a */
  for (size_t i = 0; i < length; i++)
    hash = (hash ^ bytes[i]) * 16777619u;
  return hash;
}

static uint32_t find_name(const struct py_scopes *scopes, const void *text, size_t length, uint32_t hash) {
  if (!scopes->names_size)
    return PY_NO_NAME;
  for (uint32_t at = hash & (scopes->names_size - 1);; at = (at + 1) & (scopes->names_size - 1)) {
    uint32_t name = scopes->names[at];
    if (name == PY_NO_NAME)
      return PY_NO_NAME;
    if (scopes->spellings[name].hash == hash && scopes->spellings[name].length == length &&
        memcmp(scopes->tree->bytes + scopes->spellings[name].start, text, length) == 0)
      return name;
  }
}

static void place_name(struct py_scopes *scopes, uint32_t name) {
  uint32_t at = scopes->spellings[name].hash & (scopes->names_size - 1);
  while (scopes->names[at] != PY_NO_NAME)
    at = (at + 1) & (scopes->names_size - 1);
  scopes->names[at] = name;
}

/* The number of an identifier's name; a new one gets the next number. */
static uint32_t intern(struct py_scopes *scopes, py_id node) {
  const struct py_node *at = &scopes->tree->nodes[node];
  uint32_t length = at->end - at->start, hash = hash_bytes(scopes->tree->bytes + at->start, length);
  uint32_t name = find_name(scopes, scopes->tree->bytes + at->start, length, hash);
  if (name != PY_NO_NAME)
    return name;
  PY_GROW(scopes->spellings, scopes->names_count, scopes->spellings_capacity);
  name = scopes->names_count++;
  scopes->spellings[name].start = at->start;
  scopes->spellings[name].length = length;
  scopes->spellings[name].hash = hash;
  if (2 * scopes->names_count > scopes->names_size) {
    scopes->names_size = scopes->names_size ? 2 * scopes->names_size : 64;
    scopes->names = scan_alloc(scopes->names, scopes->names_size * sizeof *scopes->names);
    memset(scopes->names, 0xff, scopes->names_size * sizeof *scopes->names);
    for (uint32_t i = 0; i < name; i++)
      place_name(scopes, i);
  }
  place_name(scopes, name);
  return name;
}

uint32_t py_name(const struct py_scopes *scopes, const char *text, size_t length) {
  return find_name(scopes, text, length, hash_bytes(text, length));
}

uint32_t py_node_name(const struct py_scopes *scopes, py_id node) {
  const struct py_node *at = &scopes->tree->nodes[node];
  return py_name(scopes, (const char *)scopes->tree->bytes + at->start, at->end - at->start);
}

/* --- bindings ----------------------------------------------------------------------------------------------------- */

static uint32_t add_scope(struct py_scopes *scopes, py_id node, uint32_t parent, enum py_scope_kind kind) {
  PY_GROW(scopes->scopes, scopes->scopes_count, scopes->scopes_capacity);
  scopes->scopes[scopes->scopes_count] = (struct py_scope){node, parent, kind};
  return scopes->scopes_count++;
}

/* They are made in the order of the tree. */
uint32_t py_scope_made(const struct py_scopes *scopes, py_id node) {
  uint32_t low = 0, high = scopes->scopes_count;
  while (low + 1 < high) {
    uint32_t middle = (low + high) / 2;
    if (scopes->scopes[middle].node <= node)
      low = middle;
    else
      high = middle;
  }
  return low;
}

static struct py_binding *bind(struct py_scopes *scopes, uint32_t scope, py_id node, enum py_binding_kind kind,
                               py_id value) {
  PY_GROW(scopes->bindings, scopes->bindings_count, scopes->bindings_capacity);
  struct py_binding *binding = &scopes->bindings[scopes->bindings_count++];
  *binding = (struct py_binding){.name = intern(scopes, node),
                                 .scope = scope,
                                 .written = scope,
                                 .node = node,
                                 .statement = py_statement(scopes->tree, node),
                                 .value = value,
                                 .next = PY_NO_BINDING,
                                 .kind = kind};
  return binding;
}

static bool is_sequence(enum py_kind kind) {
  return kind == PY_TUPLE || kind == PY_LIST || kind == PY_EXPRESSION_LIST || kind == PY_PATTERN_LIST ||
         kind == PY_TUPLE_PATTERN || kind == PY_LIST_PATTERN;
}

/* a, b = 1, 2: which element each name gets. */
static bool in_parallel(const struct py_tree *tree, py_id targets, py_id values) {
  if (!is_sequence(py_kind(tree, targets)) || !is_sequence(py_kind(tree, values)))
    return false;
  py_id target = py_first_named(tree, targets), value = py_first_named(tree, values);
  while (target && value && py_kind(tree, target) == PY_IDENTIFIER && py_kind(tree, value) != PY_LIST_SPLAT) {
    target = py_next_named(tree, target);
    value = py_next_named(tree, value);
  }
  return !target && !value;
}

/* Every plain name of an assignment target, however nested. */
static void bind_targets(struct py_scopes *scopes, uint32_t scope, py_id target, enum py_binding_kind kind,
                         py_id value) {
  const struct py_tree *tree = scopes->tree;
  py_id end = py_subtree_end(tree, target);
  bool whole = py_kind(tree, target) == PY_IDENTIFIER;
  if (kind == PY_BIND_ASSIGN && in_parallel(tree, target, value)) {
    py_id element = py_first_named(tree, value);
    for (py_id name = py_first_named(tree, target); name; name = py_next_named(tree, name)) {
      bind(scopes, scope, name, PY_BIND_ASSIGN, element);
      element = py_next_named(tree, element);
    }
    return;
  }
  for (py_id node = target; node < end;) {
    switch (py_kind(tree, node)) {
    case PY_IDENTIFIER:
      /* A part of an unpacked value is something that nobody follows; but all parts of what is looped over are. */
      bind(scopes, scope, node, whole || kind != PY_BIND_ASSIGN ? kind : PY_BIND_OTHER, value);
      node++;
      break;
    case PY_TUPLE_PATTERN:
    case PY_LIST_PATTERN:
    case PY_PATTERN_LIST:
    case PY_LIST_SPLAT_PATTERN:
    case PY_LIST_SPLAT:
    case PY_TUPLE:
    case PY_LIST:
    case PY_EXPRESSION_LIST:
    case PY_PARENTHESIZED_EXPRESSION:
    case PY_AS_PATTERN_TARGET:
    case PY_TOKEN:
      node++;
      break;
    default: /* an attribute or an element: binds no name */
      node = py_subtree_end(tree, node);
    }
  }
}

static char *node_text(struct py_scopes *scopes, py_id node) {
  const struct py_node *at = &scopes->tree->nodes[node];
  return arena_copy(scopes->arena, scopes->tree->bytes + at->start, at->end - at->start);
}

/* "a.b" of a dotted name, which may have blanks and line breaks around its dots. */
static const char *dotted(struct py_scopes *scopes, py_id node) {
  char *text = node_text(scopes, node), *to = text;
  for (const char *from = text; *from; from++)
    if (py_word_byte((uint8_t)*from) || *from == '.')
      *to++ = *from;
  *to = '\0';
  return text;
}

static void bind_import(struct py_scopes *scopes, uint32_t scope, py_id statement) {
  const struct py_tree *tree = scopes->tree;
  for (py_id entry = py_first_named(tree, statement); entry; entry = py_next_named(tree, entry)) {
    if (py_kind(tree, entry) == PY_ALIASED_IMPORT) {
      py_id name = py_field(tree, entry, PY_FIELD_NAME), alias = py_field(tree, entry, PY_FIELD_ALIAS);
      if (name && alias)
        bind(scopes, scope, alias, PY_BIND_IMPORT, 0)->path = dotted(scopes, name);
    } else if (py_kind(tree, entry) == PY_DOTTED_NAME) {
      /* import a.b binds a */
      py_id first = py_first_named(tree, entry);
      bind(scopes, scope, first, PY_BIND_IMPORT, 0)->path = node_text(scopes, first);
    }
  }
}

static void bind_from_import(struct py_scopes *scopes, uint32_t scope, py_id statement) {
  const struct py_tree *tree = scopes->tree;
  py_id module = py_field(tree, statement, PY_FIELD_MODULE_NAME);
  if (!module)
    return;
  const char *path = dotted(scopes, module);
  const char *dot = path[strlen(path) - 1] == '.' ? "" : ".";
  for (py_id entry = py_next_named(tree, module); entry; entry = py_next_named(tree, entry)) {
    if (py_kind(tree, entry) == PY_WILDCARD_IMPORT) {
      PY_GROW(scopes->stars, scopes->stars_count, scopes->stars_capacity);
      scopes->stars[scopes->stars_count++] = (struct py_star){path, statement};
      continue;
    }
    py_id name = py_kind(tree, entry) == PY_ALIASED_IMPORT ? py_field(tree, entry, PY_FIELD_NAME) : entry;
    py_id bound = name == entry ? py_first_named(tree, entry) : py_field(tree, entry, PY_FIELD_ALIAS);
    if (!name || !bound)
      continue;
    struct py_binding *binding = bind(scopes, scope, bound, PY_BIND_IMPORT, 0);
    binding->module = path;
    binding->path = py_text_format(scopes->arena, "%s%s%s", path, dot, dotted(scopes, name));
  }
}

static void bind_parameters(struct py_scopes *scopes, uint32_t scope, py_id list) {
  const struct py_tree *tree = scopes->tree;
  for (py_id entry = py_first_named(tree, list); entry; entry = py_next_named(tree, entry)) {
    py_id node = entry, value = 0;
    if (py_kind(tree, node) == PY_DEFAULT_PARAMETER || py_kind(tree, node) == PY_TYPED_DEFAULT_PARAMETER) {
      value = py_field(tree, node, PY_FIELD_VALUE);
      node = py_field(tree, node, PY_FIELD_NAME);
    } else if (py_kind(tree, node) == PY_TYPED_PARAMETER)
      node = py_first_named(tree, node);
    if (py_kind(tree, node) == PY_LIST_SPLAT_PATTERN || py_kind(tree, node) == PY_DICTIONARY_SPLAT_PATTERN)
      node = py_first_named(tree, node);
    if (node && py_kind(tree, node) == PY_IDENTIFIER)
      bind(scopes, scope, node, PY_BIND_PARAMETER, value);
  }
}

/* The names of [T: bound, *Ts]. */
static void bind_type_parameters(struct py_scopes *scopes, uint32_t scope, py_id list) {
  const struct py_tree *tree = scopes->tree;
  for (py_id entry = py_first_named(tree, list); entry; entry = py_next_named(tree, entry)) {
    py_id node = entry, end = py_subtree_end(tree, entry);
    while (node < end && py_kind(tree, node) != PY_IDENTIFIER)
      node++;
    if (node < end)
      bind(scopes, scope, node, PY_BIND_OTHER, 0);
  }
}

static void direct(struct py_scopes *scopes, uint32_t scope, py_id statement, bool global) {
  const struct py_tree *tree = scopes->tree;
  for (py_id name = py_first_named(tree, statement); name; name = py_next_named(tree, name)) {
    if (py_kind(tree, name) != PY_IDENTIFIER)
      continue;
    PY_GROW(scopes->directives, scopes->directives_count, scopes->directives_capacity);
    scopes->directives[scopes->directives_count++] = (struct py_directive){scope, intern(scopes, name), global};
  }
}

static bool is_comprehension(enum py_kind kind) {
  return kind == PY_LIST_COMPREHENSION || kind == PY_SET_COMPREHENSION || kind == PY_DICTIONARY_COMPREHENSION ||
         kind == PY_GENERATOR_EXPRESSION;
}

/* def f[T](x: T) -> T, class C[T](Base[T]): what has the type parameters that an annotation or list of bases sees. */
static py_id generic_around(const struct py_tree *tree, py_id node) {
  py_id parent = py_parent(tree, node);
  if (py_kind(tree, parent) == PY_TYPED_PARAMETER || py_kind(tree, parent) == PY_TYPED_DEFAULT_PARAMETER)
    parent = py_parent(tree, py_parent(tree, parent));
  enum py_kind wanted = py_kind(tree, node) == PY_TYPE ? PY_FUNCTION_DEFINITION : PY_CLASS_DEFINITION;
  py_id name = py_kind(tree, parent) == wanted ? py_field(tree, parent, PY_FIELD_NAME) : 0;
  return name && py_kind(tree, py_next_named(tree, name)) == PY_TYPE_PARAMETER ? parent : 0;
}

/* The scope in which a node is evaluated, from that of its parent. */
static uint32_t scope_of(const struct py_scopes *scopes, py_id node) {
  const struct py_tree *tree = scopes->tree;
  py_id parent = py_parent(tree, node);
  enum py_kind above = py_kind(tree, parent);
  bool body = tree->nodes[node].field == PY_FIELD_BODY;
  if (py_kind(tree, node) == PY_TYPE || py_kind(tree, node) == PY_ARGUMENT_LIST) {
    py_id generic = generic_around(tree, node);
    if (generic)
      return py_scope_made(scopes, generic);
  }
  if (above == PY_TYPE_ALIAS_STATEMENT && node != py_first_named(tree, parent))
    return py_scope_made(scopes, parent);
  if (body && (above == PY_FUNCTION_DEFINITION || above == PY_CLASS_DEFINITION || above == PY_LAMBDA))
    return py_scope_made(scopes, parent);
  if (is_comprehension(above))
    return py_scope_made(scopes, parent);
  /* What the first `for` of a comprehension loops over is evaluated outside. */
  if (above == PY_FOR_IN_CLAUSE && tree->nodes[node].field == PY_FIELD_RIGHT) {
    py_id comprehension = py_parent(tree, parent), first = py_first(tree, comprehension);
    while (first != parent && py_kind(tree, first) != PY_FOR_IN_CLAUSE)
      first = py_next(tree, first);
    if (first == parent && is_comprehension(py_kind(tree, comprehension)))
      return scopes->of[comprehension];
  }
  return scopes->of[parent];
}

/* A capture of a match statement is a dotted name of one part in a pattern. */
static bool is_capture(const struct py_tree *tree, py_id node) {
  enum py_kind above = py_kind(tree, py_parent(tree, node));
  py_id name = py_first(tree, node);
  return (above == PY_CASE_PATTERN || above == PY_KEYWORD_PATTERN) && name && !py_next(tree, name) &&
         !py_is(tree, name, "_");
}

static void visit(struct py_scopes *scopes, py_id node) {
  const struct py_tree *tree = scopes->tree;
  uint32_t scope = scopes->of[node];
  py_id left, right;
  switch (py_kind(tree, node)) {
  case PY_FUNCTION_DEFINITION:
    bind(scopes, scope, py_field(tree, node, PY_FIELD_NAME), PY_BIND_OTHER, 0);
    add_scope(scopes, node, scope, PY_SCOPE_FUNCTION);
    break;
  case PY_CLASS_DEFINITION:
    bind(scopes, scope, py_field(tree, node, PY_FIELD_NAME), PY_BIND_OTHER, 0);
    add_scope(scopes, node, scope, PY_SCOPE_CLASS);
    break;
  case PY_LAMBDA:
    add_scope(scopes, node, scope, PY_SCOPE_FUNCTION);
    break;
  case PY_LIST_COMPREHENSION:
  case PY_SET_COMPREHENSION:
  case PY_DICTIONARY_COMPREHENSION:
  case PY_GENERATOR_EXPRESSION:
    add_scope(scopes, node, scope, PY_SCOPE_COMPREHENSION);
    break;
  case PY_PARAMETERS:
  case PY_LAMBDA_PARAMETERS:
    bind_parameters(scopes, py_scope_made(scopes, py_parent(tree, node)), node);
    break;
  case PY_TYPE_PARAMETER: {
    py_id of = py_parent(tree, node), alias = py_statement(tree, node);
    bool made = py_kind(tree, of) == PY_FUNCTION_DEFINITION || py_kind(tree, of) == PY_CLASS_DEFINITION;
    if (made)
      bind_type_parameters(scopes, py_scope_made(scopes, of), node);
    else if (py_kind(tree, alias) == PY_TYPE_ALIAS_STATEMENT && py_within(tree, node, py_first_named(tree, alias)))
      bind_type_parameters(scopes, py_scope_made(scopes, alias), node); /* type A[T] = ... */
    break;
  }
  case PY_IMPORT_STATEMENT:
    bind_import(scopes, scope, node);
    break;
  case PY_IMPORT_FROM_STATEMENT:
    bind_from_import(scopes, scope, node);
    break;
  case PY_ASSIGNMENT:
    left = py_field(tree, node, PY_FIELD_LEFT);
    right = py_field(tree, node, PY_FIELD_RIGHT);
    if (left)
      bind_targets(scopes, scope, left, right ? PY_BIND_ASSIGN : PY_BIND_DECLARE, right);
    break;
  case PY_AUGMENTED_ASSIGNMENT:
    left = py_field(tree, node, PY_FIELD_LEFT);
    if (left)
      bind_targets(scopes, scope, left, PY_BIND_OTHER, 0);
    break;
  case PY_NAMED_EXPRESSION:
    /* Inside a comprehension := binds outside of it. */
    while (scopes->scopes[scope].kind == PY_SCOPE_COMPREHENSION)
      scope = scopes->scopes[scope].parent;
    left = py_field(tree, node, PY_FIELD_NAME);
    if (left)
      bind_targets(scopes, scope, left, PY_BIND_ASSIGN, py_field(tree, node, PY_FIELD_VALUE));
    break;
  case PY_FOR_STATEMENT:
  case PY_FOR_IN_CLAUSE:
    left = py_field(tree, node, PY_FIELD_LEFT);
    if (left)
      bind_targets(scopes, scope, left, PY_BIND_LOOP, py_field(tree, node, PY_FIELD_RIGHT));
    break;
  case PY_AS_PATTERN:
    left = py_field(tree, node, PY_FIELD_ALIAS);
    if (left && py_kind(tree, left) == PY_AS_PATTERN_TARGET) {
      bool with = py_kind(tree, py_parent(tree, node)) == PY_WITH_ITEM;
      bind_targets(scopes, scope, left, with ? PY_BIND_WITH : PY_BIND_OTHER, py_first_named(tree, node));
    } else if (py_kind(tree, py_first_named(tree, node)) == PY_CASE_PATTERN) {
      for (py_id child = py_first(tree, node); child; child = py_next(tree, child))
        if (py_kind(tree, child) == PY_IDENTIFIER)
          bind(scopes, scope, child, PY_BIND_OTHER, 0);
    }
    break;
  case PY_DOTTED_NAME:
    if (is_capture(tree, node))
      bind(scopes, scope, py_first(tree, node), PY_BIND_OTHER, 0);
    break;
  case PY_SPLAT_PATTERN:
    left = py_first_named(tree, node);
    if (left && py_kind(tree, left) == PY_IDENTIFIER)
      bind(scopes, scope, left, PY_BIND_OTHER, 0);
    break;
  case PY_DELETE_STATEMENT:
    left = py_first_named(tree, node);
    if (left)
      bind_targets(scopes, scope, left, PY_BIND_DECLARE, 0);
    break;
  case PY_TYPE_ALIAS_STATEMENT:
    left = py_first_named(tree, node);
    for (py_id end = left ? py_subtree_end(tree, left) : 0; left < end && left; left++)
      if (py_kind(tree, left) == PY_IDENTIFIER) {
        bind(scopes, scope, left, PY_BIND_OTHER, 0);
        break;
      }
    add_scope(scopes, node, scope, PY_SCOPE_FUNCTION);
    break;
  case PY_GLOBAL_STATEMENT:
    direct(scopes, scope, node, true);
    break;
  case PY_NONLOCAL_STATEMENT:
    direct(scopes, scope, node, false);
    break;
  default:
    break;
  }
}

/* --- owners ------------------------------------------------------------------------------------------------------- */

static int compare_directives(const void *left, const void *right) {
  const struct py_directive *a = left, *b = right;
  if (a->scope != b->scope)
    return a->scope < b->scope ? -1 : 1;
  return (a->name > b->name) - (a->name < b->name);
}

static const struct py_directive *directive(const struct py_scopes *scopes, uint32_t scope, uint32_t name) {
  struct py_directive key = {scope, name, false};
  return scopes->directives_count ? bsearch(&key, scopes->directives, scopes->directives_count,
                                            sizeof *scopes->directives, compare_directives)
                                  : NULL;
}

static uint32_t chain_slot(const struct py_scopes *scopes, uint32_t scope, uint32_t name) {
  uint32_t at = (scope * 2654435761u ^ name * 2246822519u) & (scopes->chains_size - 1);
  for (;; at = (at + 1) & (scopes->chains_size - 1)) {
    uint32_t first = scopes->chains[at];
    if (first == PY_NO_BINDING || (scopes->bindings[first].scope == scope && scopes->bindings[first].name == name))
      return at;
  }
}

uint32_t py_scope_binding(const struct py_scopes *scopes, uint32_t scope, uint32_t name) {
  return scopes->chains_size && name != PY_NO_NAME ? scopes->chains[chain_slot(scopes, scope, name)] : PY_NO_BINDING;
}

/* Builds the chains from back to front, so that each is in the order of the text. */
static void chain(struct py_scopes *scopes, bool outer_names) {
  for (uint32_t i = scopes->bindings_count; i-- > 0;) {
    struct py_binding *binding = &scopes->bindings[i];
    const struct py_directive *where = directive(scopes, binding->written, binding->name);
    if (outer_names != (where != NULL))
      continue;
    if (where && where->global) {
      binding->scope = 0;
    } else if (where) {
      uint32_t scope = scopes->scopes[binding->written].parent;
      while (scope && (scopes->scopes[scope].kind == PY_SCOPE_CLASS ||
                       py_scope_binding(scopes, scope, binding->name) == PY_NO_BINDING))
        scope = scopes->scopes[scope].parent;
      binding->scope = scope;
    }
    uint32_t *slot = &scopes->chains[chain_slot(scopes, binding->scope, binding->name)];
    if (where && *slot != PY_NO_BINDING && *slot < i) {
      /* Behind those that come before it in the text. */
      uint32_t before = *slot;
      while (scopes->bindings[before].next != PY_NO_BINDING && scopes->bindings[before].next < i)
        before = scopes->bindings[before].next;
      binding->next = scopes->bindings[before].next;
      scopes->bindings[before].next = i;
    } else {
      binding->next = *slot;
      *slot = i;
    }
  }
}

void py_scopes_open(struct py_scopes *scopes, const struct py_tree *tree, struct arena *arena) {
  *scopes = (struct py_scopes){.tree = tree, .arena = arena};
  scopes->of = scan_alloc(NULL, tree->count * sizeof *scopes->of);
  scopes->of[0] = add_scope(scopes, 0, 0, PY_SCOPE_MODULE);
  for (py_id node = 1; node < tree->count; node++) {
    scopes->of[node] = scope_of(scopes, node);
    visit(scopes, node);
  }
  if (scopes->directives_count)
    qsort(scopes->directives, scopes->directives_count, sizeof *scopes->directives, compare_directives);
  scopes->chains_size = 64;
  while (scopes->chains_size < 2 * scopes->bindings_count)
    scopes->chains_size *= 2;
  scopes->chains = scan_alloc(NULL, scopes->chains_size * sizeof *scopes->chains);
  memset(scopes->chains, 0xff, scopes->chains_size * sizeof *scopes->chains);
  chain(scopes, false);
  if (scopes->directives_count)
    chain(scopes, true);
}

void py_scopes_close(struct py_scopes *scopes) {
  free(scopes->of);
  free(scopes->scopes);
  free(scopes->bindings);
  free(scopes->stars);
  free(scopes->directives);
  free(scopes->names);
  free(scopes->spellings);
  free(scopes->chains);
  *scopes = (struct py_scopes){0};
}

uint32_t py_scope_outer(const struct py_scopes *scopes, uint32_t scope) {
  if (scope == 0)
    return UINT32_MAX;
  do
    scope = scopes->scopes[scope].parent;
  while (scopes->scopes[scope].kind == PY_SCOPE_CLASS);
  return scope;
}

uint32_t py_lookup(const struct py_scopes *scopes, uint32_t scope, uint32_t name, bool *deferred) {
  *deferred = false;
  if (name == PY_NO_NAME)
    return PY_NO_BINDING;
  while (scope != UINT32_MAX) {
    const struct py_directive *where = directive(scopes, scope, name);
    if (where && where->global) {
      *deferred = true;
      return py_scope_binding(scopes, 0, name);
    }
    uint32_t binding = where ? PY_NO_BINDING : py_scope_binding(scopes, scope, name);
    if (binding != PY_NO_BINDING)
      return binding;
    *deferred = *deferred || scopes->scopes[scope].kind == PY_SCOPE_FUNCTION;
    scope = py_scope_outer(scopes, scope);
  }
  return PY_NO_BINDING;
}
