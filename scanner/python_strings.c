/* Strings and comments: which of them name a removed thing to a loader (report), and which only talk about it
 * (mention). Case contract, Python rules 8 to 10. */
#include "scanner/python_front.h"
#include "scanner/text.h"

#include <stdlib.h>

/* --- mentions ----------------------------------------------------------------------------------------------------- */

/* Whose is a bare name, by what the file itself binds it to? */
enum file_owner { FILE_NOTHING, FILE_PACKAGE, FILE_OTHER };

static enum file_owner file_owner(struct py_unit *unit, const uint8_t *word, size_t length) {
  enum { ASKED = 4 };
  for (size_t i = 0; unit->talk && i < unit->talk->own_count; i++)
    if (unit->talk->own[i].size == length && memcmp(unit->source.bytes + unit->talk->own[i].start, word, length) == 0)
      return FILE_OTHER;
  uint32_t name = unit->scopes.tree ? py_name(&unit->scopes, (const char *)word, length) : PY_NO_NAME;
  if (name == PY_NO_NAME)
    return FILE_NOTHING;
  if (!unit->name_owners)
    unit->name_owners = arena_alloc(&unit->arena, unit->scopes.names_count);
  if (unit->name_owners[name] & ASKED)
    return (enum file_owner)(unit->name_owners[name] & ~ASKED);
  enum file_owner owner = FILE_NOTHING;
  for (uint32_t i = 0; i < unit->scopes.bindings_count; i++) {
    const struct py_binding *binding = &unit->scopes.bindings[i];
    if (binding->name != name)
      continue;
    bool ours = binding->kind == PY_BIND_IMPORT &&
                (py_is_package(unit->scan, binding->path) || strncmp(binding->path, "sglang.", 7) == 0 ||
                 strncmp(binding->path, PY_OWN_PACKAGE, strlen(PY_OWN_PACKAGE)) == 0);
    if (ours)
      owner = FILE_PACKAGE;
    else if (owner == FILE_NOTHING && binding->kind != PY_BIND_DECLARE)
      owner = FILE_OTHER;
  }
  unit->name_owners[name] = (uint8_t)(owner | ASKED);
  return owner;
}

/* An alias of the package in front of the word: "sk.name" in a comment of a file with `import sgl_kernel as sk`. */
static const struct catalog_symbol *alias_owner(struct py_unit *unit, const char *path, const uint8_t *word,
                                                size_t length) {
  size_t first = strcspn(path, ".");
  uint32_t name = unit->scopes.tree ? py_name(&unit->scopes, path, first) : PY_NO_NAME;
  uint32_t binding = name == PY_NO_NAME ? PY_NO_BINDING : py_scope_binding(&unit->scopes, 0, name);
  if (binding == PY_NO_BINDING)
    return NULL;
  struct py_value value = py_chain_value(unit, binding, 0, true, 0);
  if (!value.path || !py_is_owner(unit->scan, value.path))
    return NULL;
  const char *module = py_text_format(&unit->arena, "%s%s", value.path, path + first);
  const char *text = arena_copy(&unit->arena, word, length);
  return py_is_operators(unit->scan, module) ? rules_operator_removed(unit->scan, text)
                                             : rules_python_removed(unit->scan, module, text);
}

bool py_mention_stands(const uint8_t *bytes, size_t size, size_t from, size_t end) {
  return !text_argument_comment(bytes, size, from, end) && (!from || bytes[from - 1] < 0x80) &&
         (end == size || bytes[end] < 0x80);
}

bool py_module_file(const uint8_t *bytes, size_t size, size_t end) {
  return size - end >= 3 && memcmp(bytes + end, ".py", 3) == 0 && (size - end == 3 || !py_word_byte(bytes[end + 3]));
}

void py_mentions(struct py_unit *unit, const uint8_t *bytes, const uint32_t *at, size_t base, size_t size) {
  const struct catalog_symbol *symbol;
  size_t length, next;
  for (size_t from = 0; (from = rules_next_name(unit->scan, bytes, size, from, &symbol, &length)) != SIZE_MAX;
       from = next) {
    next = from + length;
    if (!py_mention_stands(bytes, size, from, next))
      continue;
    const struct catalog_symbol *owned = NULL;
    const char *path;
    enum py_owner owner = py_owner_before(unit->scan, &unit->arena, bytes, from, length, &owned, &path);
    if (owner == PY_OWNER_OTHER && path && (owned = alias_owner(unit, path, bytes + from, length)) != NULL)
      owner = PY_OWNER_PACKAGE;
    if (owner == PY_OWNER_OTHER)
      continue;
    if (owner == PY_OWNER_PACKAGE)
      symbol = owned;
    else if (py_module_file(bytes, size, next) || !rules_word_removed(unit->scan, symbol, bytes + from, length) ||
             file_owner(unit, bytes + from, length) == FILE_OTHER)
      continue;
    py_find(unit, at ? at[from] : base + from, symbol, VERDICT_MENTION, EVIDENCE_TEXT, LEVEL_NOTE,
            py_text_format(&unit->arena, "%s; this text names it: reword it when the code has moved",
                           py_left(unit, symbol, CATALOG_LAYER_PYTHON, symbol->id)));
  }
}

void py_comment(struct py_unit *unit, size_t start, size_t end) {
  py_mentions(unit, unit->source.bytes + start, NULL, start, end - start);
}

/* --- what a string is for ----------------------------------------------------------------------------------------- */

/* Words of the names of functions that print, log, warn or raise, and of keywords that hold text for people. */
static const char *const speakers[] = {"print", "log",     "logger", "logging",  "debug",      "info",
                                       "warn",  "warning", "error",  "critical", "fatal",      "exception",
                                       "fail",  "skip",    "skipif", "xfail",    "deprecated", "deprecate",
                                       "exit",  "echo",    "secho",  "stderr",   "stdout",     "warnings"};
static const char *const texts[] = {"help", "description", "epilog", "reason", "msg", "message", "doc", "docstring"};

static bool lower_is(const uint8_t *word, size_t length, const char *text) {
  if (strlen(text) != length)
    return false;
  for (size_t i = 0; i < length; i++)
    if ((word[i] | 0x20) != (uint8_t)text[i])
      return false;
  return true;
}

bool py_speaks(const uint8_t *name, size_t size) {
  for (size_t at = 0; at < size;) {
    uint8_t c = name[at];
    if (!py_word_byte(c) || c == '_') {
      at++;
      continue;
    }
    size_t stop = at + 1;
    while (stop < size && py_word_byte(name[stop]) && name[stop] != '_' &&
           !(name[stop] >= 'A' && name[stop] <= 'Z' && name[stop - 1] >= 'a'))
      stop++;
    for (size_t i = 0; i < sizeof speakers / sizeof *speakers; i++)
      if (lower_is(name + at, stop - at, speakers[i]))
        return true;
    at = stop;
  }
  return false;
}

/* Is the string text for people: printed, logged, raised, a help text? */
static bool is_spoken(const struct py_tree *tree, py_id string) {
  for (py_id node = string, parent = py_parent(tree, node); parent; node = parent, parent = py_parent(tree, node)) {
    switch (py_kind(tree, parent)) {
    case PY_CONCATENATED_STRING:
    case PY_BINARY_OPERATOR:
    case PY_PARENTHESIZED_EXPRESSION:
    case PY_CONDITIONAL_EXPRESSION:
    case PY_ARGUMENT_LIST:
      break;
    case PY_ATTRIBUTE: /* "...".format(...) */
      if (tree->nodes[node].field != PY_FIELD_OBJECT)
        return false;
      break;
    case PY_KEYWORD_ARGUMENT: {
      py_id name = py_field(tree, parent, PY_FIELD_NAME);
      for (size_t i = 0; name && i < sizeof texts / sizeof *texts; i++)
        if (py_is(tree, name, texts[i]))
          return true;
      break;
    }
    case PY_CALL: {
      py_id function = py_field(tree, parent, PY_FIELD_FUNCTION);
      if (py_kind(tree, py_parent(tree, parent)) == PY_RAISE_STATEMENT)
        return true;
      if (function == node)
        break; /* its method was called on the string: the result goes on */
      return function && py_kind(tree, function) != PY_CALL &&
             py_speaks(tree->bytes + tree->nodes[function].start,
                       tree->nodes[function].end - tree->nodes[function].start);
    }
    case PY_RAISE_STATEMENT:
      return true;
    case PY_ASSERT_STATEMENT:
      return node != py_first_named(tree, parent);
    default:
      return false;
    }
  }
  return false;
}

static bool is_documentation(const struct py_tree *tree, py_id string) {
  return py_kind(tree, py_parent(tree, string)) == PY_EXPRESSION_STATEMENT;
}

/* A key of a table: the name of something else. */
static bool is_key(const struct py_tree *tree, py_id string) {
  py_id parent = py_parent(tree, string);
  return (py_kind(tree, parent) == PY_PAIR && tree->nodes[string].field == PY_FIELD_KEY) ||
         py_kind(tree, parent) == PY_SUBSCRIPT;
}

/* The schema or name of an operator that is registered: of another namespace when this is asked. */
static bool is_registration(const struct py_tree *tree, py_id string) {
  static const char *const names[] = {"define",          "impl",         "custom_op", "register_fake",
                                      "register_kernel", "impl_abstract"};
  py_id call = py_argument_of(tree, string), name = call ? py_call_name(tree, call) : 0;
  for (size_t i = 0; name && i < sizeof names / sizeof *names; i++)
    if (py_is(tree, name, names[i]))
      return true;
  return false;
}

static bool is_sentence(const struct py_string *string) {
  unsigned words = 0;
  for (size_t i = 0; i < string->size; i++)
    words += string->bytes[i] > ' ' && (i == 0 || string->bytes[i - 1] <= ' ');
  return words >= 3;
}

/* --- names given to a loader -------------------------------------------------------------------------------------- */

/* The removed thing that `text` names in what `path` is: the package, its operators, a Library of it. */
static const struct catalog_symbol *removed_in(const struct py_unit *unit, const char *path, const char *text) {
  if (py_is_package(unit->scan, path) || strncmp(path, "sglang.", 7) == 0)
    return rules_python_removed(unit->scan, path, text);
  return py_is_owner(unit->scan, path) ? rules_operator_removed(unit->scan, text) : NULL;
}

/* Does the call change what it looks up? */
static bool is_patch(const struct py_tree *tree, py_id node) {
  static const char *const names[] = {"patch", "object", "setattr", "delattr", "stub", "replace"};
  py_id call = py_argument_of(tree, node), name = call ? py_call_name(tree, call) : 0;
  for (size_t i = 0; name && i < sizeof names / sizeof *names; i++)
    if (py_is(tree, name, names[i]))
      return true;
  return false;
}

static bool is_probe(const struct py_tree *tree, py_id node) {
  py_id call = py_argument_of(tree, node), name = call ? py_call_name(tree, call) : 0;
  if (!name)
    return py_kind(tree, py_parent(tree, node)) == PY_COMPARISON_OPERATOR;
  return py_is(tree, name, "hasattr") || (py_is(tree, name, "getattr") && py_argument(tree, call, 2, NULL));
}

/* register_fake_if_exists("sgl_kernel::name"): without the operator, nothing happens. */
static bool asks_first(const struct py_tree *tree, py_id node) {
  static const char *const ends[] = {"_if_exists", "_if_available", "_if_defined"};
  py_id call = py_argument_of(tree, node), name = call ? py_call_name(tree, call) : 0;
  for (size_t i = 0; name && i < sizeof ends / sizeof *ends; i++) {
    size_t length = tree->nodes[name].end - tree->nodes[name].start, tail = strlen(ends[i]);
    if (length > tail && memcmp(tree->bytes + tree->nodes[name].end - tail, ends[i], tail) == 0)
      return true;
  }
  return false;
}

static void add_use(struct py_unit *unit, struct py_uses *uses, py_id node, const struct catalog_symbol *symbol,
                    size_t offset, const char *reason) {
  struct py_use *use = py_use_add(uses, PY_USE_STRING, symbol, offset, 0);
  use->node = node;
  use->reason = reason;
  if (is_probe(&unit->tree, node))
    use->level = LEVEL_WARNING;
  if (asks_first(&unit->tree, node)) {
    use->level = LEVEL_WARNING;
    use->reason = "the call does nothing where the name is gone: remove it with the old code";
  }
  if (is_patch(&unit->tree, node))
    py_use_mark(unit, uses, symbol, PY_MARK_PATCHED);
}

/* The string as a whole, up to a schema or an overload: "name(Tensor a) -> ()". */
static void use_named(struct py_unit *unit, struct py_uses *uses, py_id node, const struct py_string *string,
                      const char *path) {
  size_t length = 0;
  while (length < string->size && py_word_byte(string->bytes[length]))
    length++;
  bool schema = !py_is_package(unit->scan, path) && length < string->size && strchr("(.", string->bytes[length]);
  if (!length || (length < string->size && !schema))
    return;
  const struct catalog_symbol *symbol = removed_in(unit, path, arena_copy(&unit->arena, string->bytes, length));
  if (symbol)
    add_use(unit, uses, node, symbol, string->at[0], "this string asks for it by name: change it by hand");
}

/* --- programs in strings ------------------------------------------------------------------------------------------ */

struct program {
  struct py_unit *unit;
  struct py_uses *uses;
  py_id node;
  const struct py_string *string;
  bool bare; /* names used without an import of the package: a program only if the whole string parses */
  bool take_bare;
  size_t found;
};

static void program_found(void *user, size_t offset, const struct catalog_symbol *symbol, enum py_text_use use) {
  struct program *program = user;
  if (use == PY_TEXT_BARE && !program->take_bare) {
    program->bare = true;
    return;
  }
  add_use(program->unit, program->uses, program->node, symbol, program->string->at[offset],
          "the program in this string needs it: change it by hand");
  program->found++;
}

/* Does a text parse as Python, and does it do something: call, assign, define? A sentence can parse by accident. */
static bool is_program(struct py_unit *unit, const struct py_string *string) {
  struct py_tree tree;
  uint32_t offset;
  bool named = py_names_owner(unit->scan, string->bytes, string->size);
  py_tree_open(&tree, string->bytes, string->size, 0);
  bool does = !tree.refused && named && !py_check(&tree, &offset);
  bool acts = false;
  for (py_id node = 0; does && node < tree.count; node++) {
    if (py_kind(&tree, node) == PY_CALL) {
      py_id arguments = py_field(&tree, node, PY_FIELD_ARGUMENTS);
      acts = acts || (arguments && tree.nodes[arguments].start && tree.bytes[tree.nodes[arguments].start - 1] != ' ');
    }
    acts = acts || py_kind(&tree, node) == PY_ASSIGNMENT || py_kind(&tree, node) == PY_FUNCTION_DEFINITION ||
           py_kind(&tree, node) == PY_RETURN_STATEMENT || py_kind(&tree, node) == PY_LAMBDA;
  }
  py_tree_close(&tree);
  return does && acts;
}

static bool use_program(struct py_unit *unit, struct py_uses *uses, py_id node, const struct py_string *string) {
  struct program program = {.unit = unit, .uses = uses, .node = node, .string = string};
  py_find_uses(unit->scan, string->bytes, string->size, program_found, &program);
  if (program.bare && !program.found && is_program(unit, string)) {
    program.take_bare = true;
    py_find_uses(unit->scan, string->bytes, string->size, program_found, &program);
  }
  return program.found > 0;
}

/* --- every string ------------------------------------------------------------------------------------------------- */

/* A test puts a package of its own in the place of the kernel package: sys.modules["sgl_kernel"] = fake. */
static bool fakes_package(struct py_unit *unit, py_id node, const struct py_string *string) {
  const struct py_tree *tree = &unit->tree;
  if (!py_is_package(unit->scan, arena_copy(&unit->arena, string->bytes, string->size)))
    return false;
  py_id parent = py_parent(tree, node), call = py_argument_of(tree, node);
  if (py_kind(tree, parent) == PY_SUBSCRIPT) {
    const char *path = py_evaluate(unit, py_field(tree, parent, PY_FIELD_VALUE)).path;
    return path && strcmp(path, "sys.modules") == 0 && py_kind(tree, py_parent(tree, parent)) == PY_ASSIGNMENT &&
           tree->nodes[parent].field == PY_FIELD_LEFT;
  }
  if (py_kind(tree, parent) == PY_PAIR && tree->nodes[node].field == PY_FIELD_KEY)
    call = py_argument_of(tree, py_parent(tree, parent));
  if (!call)
    return false;
  py_id first = py_argument(tree, call, 0, NULL);
  const char *path = first && first != node ? py_evaluate(unit, first).path : NULL;
  const char *text = first && first != node && !path ? py_constant(unit, first) : NULL;
  if ((path && strcmp(path, "sys.modules") == 0) || (text && strcmp(text, "sys.modules") == 0))
    return true;
  py_id function = py_unwrap(tree, py_field(tree, call, PY_FIELD_FUNCTION)), name = py_call_name(tree, call);
  if (!function || py_kind(tree, function) != PY_ATTRIBUTE || py_is(tree, name, "get") || py_is(tree, name, "pop"))
    return false;
  path = py_evaluate(unit, py_field(tree, function, PY_FIELD_OBJECT)).path;
  return path && strcmp(path, "sys.modules") == 0; /* sys.modules.update({"sgl_kernel": fake}) */
}

static bool names_something(const struct py_unit *unit, const struct py_string *string) {
  const struct catalog_symbol *symbol;
  size_t length;
  return rules_next_name(unit->scan, string->bytes, string->size, 0, &symbol, &length) != SIZE_MAX;
}

/* patch.multiple(sgl_kernel, name=...) */
static void multiple_uses(struct py_unit *unit, struct py_uses *uses, py_id keyword) {
  const struct py_tree *tree = &unit->tree;
  py_id word = py_field(tree, keyword, PY_FIELD_NAME),
        call = py_argument_of(tree, py_field(tree, keyword, PY_FIELD_VALUE));
  py_id name = call ? py_call_name(tree, call) : 0;
  if (!word || !name || !py_is(tree, name, "multiple"))
    return;
  py_id target = py_argument(tree, call, 0, "target");
  const char *path = target ? py_owner_path(unit, target) : NULL;
  if (target && !path && ((path = py_constant(unit, target)) == NULL || !py_is_package(unit->scan, path)))
    return;
  const struct py_node *at = &tree->nodes[word];
  const struct catalog_symbol *symbol =
      path ? removed_in(unit, path, arena_copy(&unit->arena, tree->bytes + at->start, at->end - at->start)) : NULL;
  if (!symbol)
    return;
  add_use(unit, uses, keyword, symbol, at->start, "this call patches it: change it by hand");
  py_use_mark(unit, uses, symbol, PY_MARK_PATCHED);
}

static void string_uses(struct py_unit *unit, struct py_uses *uses, const struct py_named_list *names, py_id node,
                        const struct py_string *string) {
  const struct py_tree *tree = &unit->tree;
  if (!names_something(unit, string)) {
    uses->fakes_package = uses->fakes_package || fakes_package(unit, node, string);
    return;
  }
  if (is_documentation(tree, node)) {
    py_mentions(unit, string->bytes, string->at, 0, string->size);
    return;
  }
  struct py_named key = {node, NULL};
  const struct py_named *named =
      names->count ? bsearch(&key, names->list, names->count, sizeof *names->list, py_named_compare) : NULL;
  size_t before = uses->count;
  if (named) {
    /* The same string may be looked up in more than one place. */
    while (named > names->list && named[-1].string == node)
      named--;
    for (; named < names->list + names->count && named->string == node; named++)
      use_named(unit, uses, node, string, named->path);
  }
  const char *path = uses->count == before ? py_looked_up_in(unit, node) : NULL;
  if (path)
    use_named(unit, uses, node, string, path);
  if (uses->count > before)
    return;
  bool spoken = is_spoken(tree, node);
  for (size_t line = 0; line < string->size && !spoken;) {
    const uint8_t *newline = memchr(string->bytes + line, '\n', string->size - line);
    size_t end = newline ? (size_t)(newline - string->bytes) : string->size;
    const struct catalog_symbol *symbol;
    size_t name = py_loader_name(unit->scan, string->bytes, line, end, &symbol);
    if (name != SIZE_MAX)
      add_use(unit, uses, node, symbol, string->at[name], "this string names it to a loader: change it by hand");
    line = end + 1;
  }
  if (uses->count > before || (!spoken && use_program(unit, uses, node, string)))
    return;
  if (spoken || string->fields || (is_sentence(string) && !is_key(tree, node) && !is_registration(tree, node)))
    py_mentions(unit, string->bytes, string->at, 0, string->size);
}

void py_strings_collect(struct py_unit *unit, struct py_uses *uses) {
  const struct py_tree *tree = &unit->tree;
  struct py_named_list names = py_named_gather(unit);
  for (py_id node = 1; node < tree->count; node++) {
    const struct py_node *at = &tree->nodes[node];
    if (at->kind == PY_COMMENT)
      py_comment(unit, at->start, at->end);
    if (at->kind == PY_KEYWORD_ARGUMENT)
      multiple_uses(unit, uses, node);
    bool string = at->kind == PY_STRING && py_kind(tree, at->parent) != PY_CONCATENATED_STRING;
    if (!string && at->kind != PY_CONCATENATED_STRING)
      continue;
    struct py_string text;
    py_string_open(unit, node, &text);
    string_uses(unit, uses, &names, node, &text);
    py_string_close(&text);
  }
  free(names.list);
}
