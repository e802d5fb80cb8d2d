/* Every use of a removed name in one text, and its verdict (case contract, Python rules 3 to 18). */
#include "scanner/ignore.h"
#include "scanner/python_front.h"

#include <stdlib.h>

struct py_use *py_use_add(struct py_uses *uses, enum py_use_kind kind, const struct catalog_symbol *symbol,
                          size_t offset, size_t length) {
  PY_GROW(uses->list, uses->count, uses->capacity);
  struct py_use *use = &uses->list[uses->count++];
  *use = (struct py_use){.kind = kind,
                         .symbol = symbol,
                         .offset = offset,
                         .length = (uint32_t)length,
                         .verdict = VERDICT_REPORT,
                         .level = LEVEL_ERROR};
  return use;
}

void py_use_mark(struct py_unit *unit, struct py_uses *uses, const struct catalog_symbol *symbol, unsigned mark) {
  uses->marks[symbol - unit->scan->catalog->symbols] |= (uint8_t)mark;
}

static unsigned marks_of(const struct py_unit *unit, const struct py_uses *uses, const struct catalog_symbol *symbol) {
  return uses->marks[symbol - unit->scan->catalog->symbols];
}

static const char *text_of(struct py_unit *unit, py_id node) {
  const struct py_node *at = &unit->tree.nodes[node];
  return arena_copy(&unit->arena, unit->tree.bytes + at->start, at->end - at->start);
}

static bool starts_with(const char *text, const char *start) {
  return strncmp(text, start, strlen(start)) == 0;
}

/* --- what a path is ----------------------------------------------------------------------------------------------- */

/* The function whose module `path` was and that left with it: "sglang.jit_kernel.fused_a_gemm". Of several functions
 * only the one with the name of the module can be meant. parent: the package that it is a name of, or NULL. */
static const struct catalog_symbol *dropped_module(const struct py_unit *unit, const char *path, const char *parent) {
  const struct catalog *catalog = unit->scan->catalog;
  const struct catalog_symbol *found = NULL;
  const char *last = strrchr(path, '.');
  bool several = false;
  for (unsigned i = 0; i < catalog->symbols_count; i++)
    for (unsigned k = 0; k < catalog->symbols[i].routes_count; k++) {
      const struct catalog_route *route = &catalog->symbols[i].routes[k];
      if (strcmp(route->module, path) != 0 ||
          !(parent ? rules_module_dropped(unit->scan, &catalog->symbols[i], route, parent)
                   : rules_route_dropped(unit->scan, &catalog->symbols[i], route)))
        continue;
      if (last && strcmp(last + 1, route->name) == 0)
        return &catalog->symbols[i];
      several = several || (found && found != &catalog->symbols[i]);
      found = &catalog->symbols[i];
    }
  return several ? NULL : found;
}

/* Marks what `module`.`name` is the new home of, as the module of the function or a package above it. */
static void mark_new(struct py_unit *unit, struct py_uses *uses, const char *module, const char *name) {
  const struct catalog *catalog = unit->scan->catalog;
  bool facade = starts_with(module, "sglang.kernels") || starts_with(module, "sglang.jit_kernel") ||
                strcmp(module, PY_OWN_PACKAGE) == 0;
  for (unsigned i = 0; i < catalog->symbols_count; i++) {
    const struct catalog_symbol *symbol = &catalog->symbols[i];
    bool new = false;
    for (unsigned k = 0; facade && k < symbol->python_count; k++)
      new = new || strcmp(symbol->python[k].name, name) == 0;
    for (unsigned k = 0; k < symbol->routes_count; k++) {
      const struct catalog_route *route = &symbol->routes[k];
      size_t length = strlen(module);
      if (rules_route_dropped(unit->scan, symbol, route))
        continue;
      new = new || (strcmp(route->module, module) == 0 && strcmp(route->name, name) == 0) ||
            (strncmp(route->module, module, length) == 0 && route->module[length] == '.' &&
             strcmp(route->module + length + 1, name) == 0);
    }
    if (new)
      py_use_mark(unit, uses, symbol, PY_MARK_NEW);
  }
}

static void mark_source(struct py_unit *unit, struct py_uses *uses, const struct catalog_symbol *symbol,
                        const char *module) {
  py_use_mark(unit, uses, symbol, py_is_package(unit->scan, module) ? PY_MARK_PACKAGE : PY_MARK_EARLIER);
}

/* --- imports ------------------------------------------------------------------------------------------------------ */

static py_id last_named(const struct py_tree *tree, py_id node) {
  py_id last = 0;
  for (py_id child = py_first_named(tree, node); child; child = py_next_named(tree, child))
    last = child;
  return last;
}

/* "a.b" of a dotted name. */
static const char *dotted(struct py_unit *unit, py_id node) {
  char *text = (char *)(uintptr_t)text_of(unit, node), *to = text;
  for (const char *from = text; *from; from++)
    if (py_word_byte((uint8_t)*from) || *from == '.')
      *to++ = *from;
  *to = '\0';
  return text;
}

static void collect_from_import(struct py_unit *unit, struct py_uses *uses, py_id statement) {
  const struct py_tree *tree = &unit->tree;
  py_id module_node = py_field(tree, statement, PY_FIELD_MODULE_NAME);
  const char *module = module_node ? dotted(unit, module_node) : ".";
  if (*module == '.')
    return;
  bool operators = py_is_operators(unit->scan, module);
  for (py_id entry = py_next_named(tree, module_node); entry; entry = py_next_named(tree, entry)) {
    py_id name_node = py_kind(tree, entry) == PY_ALIASED_IMPORT ? py_field(tree, entry, PY_FIELD_NAME) : entry;
    if (py_kind(tree, entry) == PY_WILDCARD_IMPORT || !name_node)
      continue;
    py_id word = last_named(tree, name_node);
    size_t length = tree->nodes[word].end - tree->nodes[word].start;
    if (!py_index_name(unit->scan, tree->bytes + tree->nodes[word].start, length))
      continue;
    const char *name = text_of(unit, word);
    const struct catalog_symbol *gone =
        starts_with(module, "sglang.")
            ? dropped_module(unit, py_text_format(&unit->arena, "%s.%s", module, name), module)
            : NULL;
    const struct catalog_symbol *symbol = gone        ? gone
                                          : operators ? rules_operator_removed(unit->scan, name)
                                                      : rules_python_removed(unit->scan, module, name);
    if (!symbol) {
      mark_new(unit, uses, module, name);
      continue;
    }
    struct py_use *use = py_use_add(uses,
                                    operators ? PY_USE_OPERATOR
                                    : gone    ? PY_USE_MODULE
                                              : PY_USE_IMPORT,
                                    symbol, tree->nodes[word].start, length);
    use->node = entry;
    use->statement = statement;
    use->module = module;
    if (!operators)
      mark_source(unit, uses, use->symbol, module);
  }
}

static void collect_import(struct py_unit *unit, struct py_uses *uses, py_id statement) {
  const struct py_tree *tree = &unit->tree;
  for (py_id entry = py_first_named(tree, statement); entry; entry = py_next_named(tree, entry)) {
    py_id name = py_kind(tree, entry) == PY_ALIASED_IMPORT ? py_field(tree, entry, PY_FIELD_NAME) : entry;
    if (!name || py_kind(tree, name) != PY_DOTTED_NAME)
      continue;
    const char *path = dotted(unit, name), *last = strrchr(path, '.');
    if (!last || !(starts_with(path, "sglang.") || strcmp(path, PY_OWN_PACKAGE) == 0))
      continue;
    const struct catalog_symbol *gone = dropped_module(unit, path, NULL);
    if (gone) {
      py_id word = last_named(tree, name);
      struct py_use *use = py_use_add(uses, PY_USE_MODULE, gone, tree->nodes[word].start,
                                      tree->nodes[word].end - tree->nodes[word].start);
      use->node = entry;
      use->statement = statement;
      use->module = path;
      mark_source(unit, uses, gone, path);
    } else {
      mark_new(unit, uses, arena_copy(&unit->arena, path, (size_t)(last - path)), last + 1);
    }
  }
}

/* --- references --------------------------------------------------------------------------------------------------- */

/* Is the expression assigned to, deleted or bound by a loop? */
static bool is_target(const struct py_tree *tree, py_id node) {
  for (py_id parent = py_parent(tree, node); parent; node = parent, parent = py_parent(tree, node)) {
    switch (py_kind(tree, parent)) {
    case PY_PATTERN_LIST:
    case PY_TUPLE_PATTERN:
    case PY_LIST_PATTERN:
    case PY_LIST_SPLAT_PATTERN:
    case PY_AS_PATTERN_TARGET:
    case PY_DELETE_STATEMENT:
      return true;
    case PY_ASSIGNMENT:
    case PY_AUGMENTED_ASSIGNMENT:
    case PY_FOR_STATEMENT:
    case PY_FOR_IN_CLAUSE:
      return tree->nodes[node].field == PY_FIELD_LEFT;
    case PY_EXPRESSION_LIST:
    case PY_TUPLE:
    case PY_LIST:
    case PY_PARENTHESIZED_EXPRESSION:
      break;
    default:
      return false;
    }
  }
  return false;
}

static void add_reference(struct py_unit *unit, struct py_uses *uses, py_id node, py_id word, struct py_value value) {
  const struct py_tree *tree = &unit->tree;
  const char *name = text_of(unit, word);
  bool operators = py_is_operators(unit->scan, value.path);
  const struct catalog_symbol *symbol = operators ? rules_operator_removed(unit->scan, name)
                                        : py_is_package(unit->scan, value.path) || starts_with(value.path, "sglang.")
                                            ? rules_python_removed(unit->scan, value.path, name)
                                            : NULL;
  if (!symbol) {
    mark_new(unit, uses, value.path, name);
    return;
  }
  if (!operators && !py_is_package(unit->scan, value.path) &&
      dropped_module(unit, py_text_format(&unit->arena, "%s.%s", value.path, name), value.path))
    return; /* a module on the way to its function */
  struct py_use *use = py_use_add(uses, operators ? PY_USE_OPERATOR : PY_USE_QUALIFIED, symbol, tree->nodes[word].start,
                                  tree->nodes[word].end - tree->nodes[word].start);
  use->node = node;
  use->value = value;
  use->module = value.path;
  if (!operators)
    mark_source(unit, uses, symbol, value.path);
  if (is_target(tree, node))
    py_use_mark(unit, uses, symbol, PY_MARK_PATCHED);
}

static void collect_attribute(struct py_unit *unit, struct py_uses *uses, py_id node) {
  const struct py_tree *tree = &unit->tree;
  py_id word = py_field(tree, node, PY_FIELD_ATTRIBUTE);
  if (!word || !py_index_name(unit->scan, tree->bytes + tree->nodes[word].start,
                              tree->nodes[word].end - tree->nodes[word].start))
    return;
  struct py_value value = py_evaluate(unit, py_field(tree, node, PY_FIELD_OBJECT));
  if (value.path)
    add_reference(unit, uses, node, word, value);
}

/* `case sgl_kernel.name:` is a dotted name and no attribute. */
static void collect_case(struct py_unit *unit, struct py_uses *uses, py_id node) {
  const struct py_tree *tree = &unit->tree;
  enum py_kind above = py_kind(tree, py_parent(tree, node));
  py_id first = py_first_named(tree, node), word = last_named(tree, node);
  if (first == word || above == PY_IMPORT_STATEMENT || above == PY_IMPORT_FROM_STATEMENT ||
      above == PY_ALIASED_IMPORT || above == PY_RELATIVE_IMPORT ||
      !py_index_name(unit->scan, tree->bytes + tree->nodes[word].start,
                     tree->nodes[word].end - tree->nodes[word].start))
    return;
  struct py_value value = py_evaluate(unit, first);
  for (py_id part = py_next_named(tree, first); value.path && part && part != word; part = py_next_named(tree, part))
    value.path = py_text_format(&unit->arena, "%s.%s", value.path, text_of(unit, part));
  if (value.path)
    add_reference(unit, uses, node, word, value);
}

/* Is the identifier itself what is bound: a parameter, a target? */
static bool is_binding(const struct py_unit *unit, py_id node) {
  for (uint32_t i = 0; i < unit->scopes.bindings_count; i++)
    if (unit->scopes.bindings[i].node == node)
      return true;
  return false;
}

/* A name that nothing but a star import of the package can have brought in. */
static void collect_starred(struct py_unit *unit, struct py_uses *uses, py_id node) {
  const struct py_tree *tree = &unit->tree;
  py_id parent = py_parent(tree, node);
  enum py_kind above = py_kind(tree, parent);
  enum py_field field = tree->nodes[node].field;
  size_t length = tree->nodes[node].end - tree->nodes[node].start;
  bool deferred;
  if ((above == PY_ATTRIBUTE && field == PY_FIELD_ATTRIBUTE) ||
      (above == PY_KEYWORD_ARGUMENT && field == PY_FIELD_NAME) || above == PY_DOTTED_NAME ||
      above == PY_GLOBAL_STATEMENT || above == PY_NONLOCAL_STATEMENT || above == PY_KEYWORD_PATTERN ||
      !py_index_name(unit->scan, tree->bytes + tree->nodes[node].start, length) ||
      py_lookup(&unit->scopes, unit->scopes.of[node], py_node_name(&unit->scopes, node), &deferred) != PY_NO_BINDING ||
      is_binding(unit, node))
    return;
  const char *name = text_of(unit, node);
  for (uint32_t i = 0; i < unit->scopes.stars_count; i++) {
    const char *module = unit->scopes.stars[i].module;
    const struct py_export *from =
        py_is_package(unit->scan, module) ? NULL : py_index_find(unit->scan, unit->path, module, PY_STAR);
    if (from)
      module = from->path; /* a star import of a module that has one of the package */
    const struct catalog_symbol *symbol =
        py_is_package(unit->scan, module) ? rules_python_removed(unit->scan, module, name) : NULL;
    if (!symbol)
      continue;
    struct py_use *use = py_use_add(uses, PY_USE_STAR, symbol, tree->nodes[node].start, length);
    use->node = node;
    use->module = module;
    return;
  }
}

void py_uses_collect(struct py_unit *unit, struct py_uses *uses) {
  const struct py_tree *tree = &unit->tree;
  size_t symbols = unit->scan->catalog->symbols_count;
  *uses = (struct py_uses){.marks = scan_alloc(NULL, symbols)};
  memset(uses->marks, 0, symbols);
  bool starred = unit->scopes.stars_count > 0;
  for (py_id node = 1; node < tree->count; node++) {
    switch (py_kind(tree, node)) {
    case PY_IMPORT_FROM_STATEMENT:
      collect_from_import(unit, uses, node);
      break;
    case PY_IMPORT_STATEMENT:
      collect_import(unit, uses, node);
      break;
    case PY_ATTRIBUTE:
      collect_attribute(unit, uses, node);
      break;
    case PY_DOTTED_NAME:
      collect_case(unit, uses, node);
      break;
    case PY_IDENTIFIER:
      if (starred)
        collect_starred(unit, uses, node);
      break;
    default:
      break;
    }
  }
  py_strings_collect(unit, uses);
}

void py_uses_free(struct py_uses *uses) {
  free(uses->list);
  free(uses->marks);
  *uses = (struct py_uses){0};
}

/* --- verdicts ----------------------------------------------------------------------------------------------------- */

/* What stands against any edit of this symbol in this file. */
static const char *file_reason(const struct py_unit *unit, const struct py_uses *uses,
                               const struct catalog_symbol *symbol) {
  unsigned marks = marks_of(unit, uses, symbol);
  if (uses->fakes_package)
    return "the file puts a package of its own in its place: change both by hand";
  if (marks & PY_MARK_PATCHED)
    return "the file patches it, and the patch would miss the new place: change both by hand";
  if (marks & PY_MARK_NEW)
    return "the file has the new function too, so a rewrite would make the two the same: decide which one to keep";
  if ((marks & PY_MARK_PACKAGE) && (marks & PY_MARK_EARLIER))
    return "the file takes it from two old places, which a rewrite would make the same: decide which one to keep";
  return NULL;
}

static bool in_format_field(const struct py_tree *tree, py_id node) {
  for (; node; node = py_parent(tree, node))
    if (py_kind(tree, node) == PY_INTERPOLATION || py_kind(tree, node) == PY_FORMAT_SPECIFIER)
      return true;
  return false;
}

static bool has_comment(const struct py_tree *tree, py_id node) {
  for (py_id end = py_subtree_end(tree, node); node < end; node++)
    if (py_kind(tree, node) == PY_COMMENT)
      return true;
  return false;
}

static const char *guard_reason(struct py_unit *unit, py_id node, const char *name) {
  if (unit->guards[node] & (PY_GUARD_TRY | PY_GUARD_HANDLER))
    return "a handler takes the failure, so other code runs in silence: decide what to try";
  if (py_probed(unit, node, name))
    return "a test asks whether it is there, which is now never true: change both by hand";
  return NULL;
}

/* Is `statement` run whenever its scope is? */
static bool unconditional(const struct py_tree *tree, py_id statement) {
  py_id parent = py_parent(tree, statement);
  enum py_kind above = py_kind(tree, py_parent(tree, parent));
  return parent == 0 || above == PY_FUNCTION_DEFINITION || above == PY_CLASS_DEFINITION;
}

/* How many parts of the dotted name that the import names lead to `path`. */
static size_t leads_to(struct py_unit *unit, const struct py_binding *binding, const char *path) {
  py_id entry = binding->node;
  while (py_kind(&unit->tree, py_parent(&unit->tree, entry)) != PY_IMPORT_STATEMENT && entry)
    entry = py_parent(&unit->tree, entry);
  if (!entry || py_kind(&unit->tree, entry) != PY_DOTTED_NAME)
    return 0;
  const char *name = dotted(unit, entry);
  size_t length = strlen(name);
  return strncmp(name, path, length) == 0 && (path[length] == '\0' || path[length] == '.') ? length : 0;
}

/* The import statement that a new import can follow: it binds the root name, and has run when the use runs. */
static py_id import_for(struct py_unit *unit, const struct py_use *use) {
  const struct py_tree *tree = &unit->tree;
  const struct py_binding *list = unit->scopes.bindings;
  if (!use->value.root)
    return 0;
  bool deferred;
  uint32_t i = py_lookup(&unit->scopes, unit->scopes.of[use->value.root], py_node_name(&unit->scopes, use->value.root),
                         &deferred);
  py_id best = 0, only = 0;
  size_t best_length = 0;
  unsigned count = 0;
  for (; i != PY_NO_BINDING; i = list[i].next) {
    if (list[i].kind != PY_BIND_IMPORT)
      continue;
    only = list[i].statement;
    count++;
    bool sure = deferred ? unconditional(tree, only)
                         : list[i].node < use->value.root && py_within(tree, use->node, py_parent(tree, only));
    size_t length = sure ? 1 + leads_to(unit, &list[i], use->module) : 0;
    if (length > best_length) {
      best = only;
      best_length = length;
    }
  }
  return best ? best : count == 1 ? only : 0;
}

/* Would the bare name mean something else where it is used? */
static bool taken(struct py_unit *unit, const struct py_uses *uses, const struct py_use *use) {
  const struct py_tree *tree = &unit->tree;
  uint32_t name = py_name(&unit->scopes, (const char *)tree->bytes + use->offset, use->length);
  for (uint32_t scope = unit->scopes.of[use->node]; name != PY_NO_NAME && scope != UINT32_MAX;
       scope = py_scope_outer(&unit->scopes, scope))
    for (uint32_t i = py_scope_binding(&unit->scopes, scope, name); i != PY_NO_BINDING;
         i = unit->scopes.bindings[i].next) {
      /* An import of the same function, which will be rewritten too, is no other meaning. */
      bool same = false;
      for (size_t k = 0; k < uses->count && !same; k++)
        same = uses->list[k].kind == PY_USE_IMPORT && uses->list[k].verdict == VERDICT_REWRITE &&
               uses->list[k].symbol == use->symbol && uses->list[k].statement == unit->scopes.bindings[i].statement;
      if (!same)
        return true;
    }
  return false;
}

static const char *qualified_reason(struct py_unit *unit, const struct py_uses *uses, struct py_use *use) {
  const struct py_tree *tree = &unit->tree;
  if (py_kind(tree, use->node) != PY_ATTRIBUTE)
    return "in a pattern a bare name would take any value: change it by hand";
  if (!py_is_package(unit->scan, use->module))
    return "its module is gone as well, so the import of the module has to change too: change both by hand";
  if (is_target(tree, use->node))
    return "it is assigned to: change it by hand";
  if (use->value.flags & PY_VALUE_AMBIGUOUS)
    return "the name before the dot means something else too: change it by hand";
  if (use->value.flags & PY_VALUE_FOREIGN)
    return "the module that it is reached through guards its import: change it by hand";
  if (use->value.flags & PY_VALUE_ASSIGNED)
    return "it is reached through an alias that no import statement makes: change it by hand";
  use->statement = import_for(unit, use);
  if (!use->statement)
    return "more than one import binds the name before the dot: change it by hand";
  if (unit->guards[use->statement] & (PY_GUARD_TRY | PY_GUARD_HANDLER))
    return "the import of the package is guarded, and a failure of the new import would disable the rest of it: change "
           "it by hand";
  if (unit->guards[use->statement] & PY_GUARD_VENDOR)
    return "the import of the package is in a branch of another vendor, which has no replacement";
  if (use->value.flags & PY_VALUE_ELSEWHERE)
    return "the package is imported in another scope than this one: change it by hand";
  if (has_comment(tree, use->node))
    return "a comment stands inside of it: change it by hand";
  if (taken(unit, uses, use))
    return "its bare name means something else here: change it by hand";
  return NULL;
}

/* The names of the wheel that still live and are imported under the same guard: they are lost with this one. NULL:
 * none.
 */
static const char *lost_names(struct py_unit *unit, const struct py_use *use) {
  const struct py_tree *tree = &unit->tree;
  const char *names = NULL;
  if (use->kind != PY_USE_IMPORT || !(unit->guards[use->statement] & PY_GUARD_TRY))
    return NULL;
  for (py_id statement = py_first_named(tree, py_parent(tree, use->statement)); statement;
       statement = py_next_named(tree, statement)) {
    if (py_kind(tree, statement) != PY_IMPORT_FROM_STATEMENT)
      continue;
    py_id module_node = py_field(tree, statement, PY_FIELD_MODULE_NAME);
    const char *module = module_node ? dotted(unit, module_node) : "";
    for (py_id entry = module_node ? py_next_named(tree, module_node) : 0; py_is_package(unit->scan, module) && entry;
         entry = py_next_named(tree, entry)) {
      py_id name = py_kind(tree, entry) == PY_ALIASED_IMPORT ? py_field(tree, entry, PY_FIELD_NAME) : entry;
      if (!name || rules_python_removed(unit->scan, module, dotted(unit, name)))
        continue;
      const char *text = py_kind(tree, name) == PY_WILDCARD_IMPORT ? "all others" : dotted(unit, name);
      names = names ? py_text_format(&unit->arena, "%s, %s", names, text) : text;
    }
  }
  return names;
}

static bool ignored(const struct py_unit *unit, const struct py_use *use) {
  uint32_t line, column;
  py_position(unit, use->offset, &line, &column);
  return ignore_covers(unit->result, line, use->symbol);
}

/* A from-import in the body of a try, or of suppress(), that takes its failure: what fix --unsafe rewrites as well. Not
 * the fallback arm, and not where a test asks for the name. */
static bool guarded_import(struct py_unit *unit, const struct py_use *use, const char *name) {
  unsigned guards = unit->guards[use->node] & (PY_GUARD_TRY | PY_GUARD_HANDLER);
  return use->kind == PY_USE_IMPORT && guards == PY_GUARD_TRY && !py_probed(unit, use->node, name);
}

static void judge(struct py_unit *unit, const struct py_uses *uses, struct py_use *use) {
  const char *why = NULL, *reason = use->reason;
  const char *name = arena_copy(&unit->arena, unit->source.bytes + use->offset, use->length);
  const struct catalog_route *route = rules_python_target(unit->scan, use->symbol, &why);
  if (use->kind == PY_USE_OPERATOR)
    reason = "the operator's arguments are not those of the function that replaces it: adapt the call by hand";
  else if (use->kind == PY_USE_STAR)
    reason = "a star import brought it in: import it by name from its new place";
  else if (use->kind == PY_USE_MODULE)
    reason = "the import binds the module, so its uses have to change too: change both by hand";
  if (!reason && (unit->guards[use->node] & PY_GUARD_VENDOR))
    reason = "it stands in a branch of another vendor, which has no replacement";
  if (!reason && !route)
    reason = why;
  const char *guard = use->kind == PY_USE_STRING ? NULL : guard_reason(unit, use->node, name);
  const char *lost = guard ? lost_names(unit, use) : NULL;
  if (guard && !lost)
    use->level = LEVEL_WARNING;
  if (lost)
    guard = py_text_format(&unit->arena,
                           "a handler takes the failure and drops %s with it in silence, which the "
                           "package still has: import those on their own",
                           lost);
  if (!reason && !(unit->scan->options.unsafe && guarded_import(unit, use, name)))
    reason = guard;
  if (!reason)
    reason = file_reason(unit, uses, use->symbol);
  if (!reason && in_format_field(&unit->tree, use->node))
    reason = "it stands in a string: change it by hand";
  if (!reason && use->kind == PY_USE_QUALIFIED)
    reason = qualified_reason(unit, uses, use);
  if (!reason && use->kind == PY_USE_IMPORT && py_layout(unit, use->statement).followed &&
      has_comment(&unit->tree, use->statement))
    reason = "the statement has comments, and another one follows on its line: change it by hand";
  if (!reason && ignored(unit, use))
    reason = "a comment accepts it";
  if (lost && reason && reason != guard)
    reason = py_text_format(&unit->arena, "%s; %s", reason, guard);
  use->reason = reason;
  if (!reason) {
    use->verdict = VERDICT_REWRITE;
    use->route = route;
  }
}

void py_uses_judge(struct py_unit *unit, struct py_uses *uses) {
  /* Imports first: what a bare name means depends on them. */
  for (size_t i = 0; i < uses->count; i++)
    if (uses->list[i].kind != PY_USE_QUALIFIED)
      judge(unit, uses, &uses->list[i]);
  for (size_t i = 0; i < uses->count; i++)
    if (uses->list[i].kind == PY_USE_QUALIFIED)
      judge(unit, uses, &uses->list[i]);
}

void py_uses_report(struct py_unit *unit, const struct py_uses *uses) {
  static const enum evidence evidence[] = {
      [PY_USE_IMPORT] = EVIDENCE_IMPORT, [PY_USE_QUALIFIED] = EVIDENCE_AST, [PY_USE_OPERATOR] = EVIDENCE_AST,
      [PY_USE_STAR] = EVIDENCE_AST,      [PY_USE_MODULE] = EVIDENCE_IMPORT, [PY_USE_STRING] = EVIDENCE_STRING};
  for (size_t i = 0; i < uses->count; i++) {
    const struct py_use *use = &uses->list[i];
    bool operator= use->kind == PY_USE_OPERATOR ||(use->kind == PY_USE_STRING &&
                                                   !rules_layer_removed(unit->scan, use->symbol, CATALOG_LAYER_PYTHON));
    const char *left =
        use->module && starts_with(use->module, "sglang.")
            ? py_moved(unit, use->symbol, use->module)
            : py_left(unit, use->symbol, operator? CATALOG_LAYER_OPERATOR : CATALOG_LAYER_PYTHON, use->symbol->id);
    const char *message = use->verdict == VERDICT_REWRITE
                              ? py_text_format(&unit->arena, "%s; import it from %s%s", left, use->route->module,
                                               py_conditions(unit, use))
                              : py_text_format(&unit->arena, "%s; %s%s", left, use->reason, py_conditions(unit, use));
    py_find(unit, use->offset, use->symbol, use->verdict, evidence[use->kind], use->level, message);
  }
}
