/* Which strings are looked up in the package or its operators: getattr(sgl_kernel, "name"), and those that get there
 * through a loop, a variable, an attribute or a table (case contract, Python rule 8). */
#include "scanner/python_front.h"

#include <stdlib.h>

/* --- where a call looks ------------------------------------------------------------------------------------------- */

/* "sgl_kernel.gemm" of the object, without the dictionaries of a module. */
const char *py_owner_path(struct py_unit *unit, py_id node) {
  const struct py_tree *tree = &unit->tree;
  node = py_unwrap(tree, node);
  if (node && py_kind(tree, node) == PY_CALL) { /* dir(sgl_kernel), vars(sgl_kernel) */
    py_id name = py_call_name(tree, node);
    if (name && (py_is(tree, name, "dir") || py_is(tree, name, "vars")))
      node = py_argument(tree, node, 0, NULL);
  }
  const char *path = node ? py_evaluate(unit, node).path : NULL;
  if (!path)
    return NULL;
  static const char *const tables[] = {".__dict__", ".__all__"};
  for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
    size_t length = strlen(path), tail = strlen(tables[i]);
    if (length > tail && strcmp(path + length - tail, tables[i]) == 0)
      path = arena_copy(&unit->arena, path, length - tail);
  }
  return py_is_owner(unit->scan, path) || strncmp(path, "sglang.", 7) == 0 ? path : NULL;
}

/* In which module or namespace does a call, comparison or index look up the expression `node`? NULL: in none of ours.
 */
const char *py_looked_up_in(struct py_unit *unit, py_id node) {
  const struct py_tree *tree = &unit->tree;
  py_id parent = py_parent(tree, node), call = py_argument_of(tree, node);
  if (call) {
    py_id function = py_unwrap(tree, py_field(tree, call, PY_FIELD_FUNCTION));
    if (function && py_kind(tree, function) == PY_ATTRIBUTE) { /* lib.impl("name"), sgl_kernel.__dict__.get("name") */
      const char *path = py_owner_path(unit, py_field(tree, function, PY_FIELD_OBJECT));
      if (path)
        return path;
    }
    /* attrgetter("name")(sgl_kernel) */
    py_id getter = py_call_name(tree, call), around = py_parent(tree, call);
    if (getter && (py_is(tree, getter, "attrgetter") || py_is(tree, getter, "methodcaller")) &&
        py_kind(tree, around) == PY_CALL && call == py_field(tree, around, PY_FIELD_FUNCTION)) {
      py_id object = py_argument(tree, around, 0, NULL);
      return object ? py_owner_path(unit, object) : NULL;
    }
    /* getattr(sgl_kernel, "name"), patch.object(sgl_kernel, "name"), impl(lib, "name") */
    static const char *const names[] = {"name", "attribute", "attr"};
    bool named = node == py_argument(tree, call, 1, NULL);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
      named = named || (py_kind(tree, parent) == PY_KEYWORD_ARGUMENT && node == py_argument(tree, call, 1, names[i]));
    py_id object = py_argument(tree, call, 0, "target");
    return named && object && object != node ? py_owner_path(unit, object) : NULL;
  }
  if (py_kind(tree, parent) == PY_COMPARISON_OPERATOR) { /* "name" in dir(sgl_kernel) */
    py_id other = py_next_named(tree, node);
    return other ? py_owner_path(unit, other) : NULL;
  }
  if (py_kind(tree, parent) == PY_SUBSCRIPT && tree->nodes[node].field == PY_FIELD_SUBSCRIPT) {
    py_id object = py_field(tree, parent, PY_FIELD_VALUE);
    return object ? py_owner_path(unit, object) : NULL; /* vars(sgl_kernel)["name"] */
  }
  /* __import__("sgl_kernel.gemm", fromlist=["name"]) */
  if (py_kind(tree, parent) == PY_LIST || py_kind(tree, parent) == PY_TUPLE) {
    call = py_argument_of(tree, parent);
    if (call && parent == py_argument(tree, call, 3, "fromlist")) {
      const char *path = py_evaluate(unit, call).path;
      return path && py_is_package(unit->scan, path) ? path : NULL;
    }
  }
  return NULL;
}

/* --- names through a loop or a variable --------------------------------------------------------------------------- */

struct attribute {
  py_id name, value;
};

struct gathering {
  struct py_named_list found;
  uint8_t *seen; /* of each node: was it gathered before? A bit for each place, by a hash of the path. */
  struct attribute *attributes;
  size_t attributes_count, attributes_capacity;
  bool attributes_known;
};

/* A literal of more nodes is data. */
#define LITERAL_MAX 20000

static bool gathered(struct gathering *names, py_id value, const char *path) {
  unsigned hash = 0;
  for (; *path; path++)
    hash = hash * 31 + (uint8_t)*path;
  uint8_t bit = (uint8_t)(1u << (hash % 8));
  bool before = names->seen[value] & bit;
  names->seen[value] |= bit;
  return before;
}

static void gather(struct py_unit *unit, struct gathering *names, py_id value, const char *path, unsigned depth) {
  const struct py_tree *tree = &unit->tree;
  py_id end = py_subtree_end(tree, value);
  if (end - value > LITERAL_MAX || gathered(names, value, path))
    return;
  for (py_id node = value; node < end; node++) {
    if (py_kind(tree, node) == PY_STRING) {
      PY_GROW(names->found.list, names->found.count, names->found.capacity);
      names->found.list[names->found.count++] = (struct py_named){node, path};
    } else if (py_kind(tree, node) == PY_IDENTIFIER && depth) {
      py_id single = py_single_value(unit, node);
      if (single)
        gather(unit, names, single, path, depth - 1);
    }
  }
}

/* The lists that pytest.mark.parametrize or map() give a parameter. */
static void gather_parameter(struct py_unit *unit, struct gathering *names, const struct py_binding *binding,
                             const char *path) {
  const struct py_tree *tree = &unit->tree;
  py_id function = unit->scopes.scopes[binding->scope].node, around = py_parent(tree, function);
  if (py_kind(tree, function) == PY_LAMBDA) {
    py_id call = py_argument_of(tree, function), list = call ? py_argument(tree, call, 1, NULL) : 0;
    if (list && function == py_argument(tree, call, 0, NULL))
      gather(unit, names, list, path, 1);
    return;
  }
  if (py_kind(tree, around) != PY_DECORATED_DEFINITION)
    return;
  for (py_id decorator = py_first_named(tree, around); decorator; decorator = py_next_named(tree, decorator)) {
    py_id call = py_kind(tree, decorator) == PY_DECORATOR ? py_first_named(tree, decorator) : 0;
    py_id name = call && py_kind(tree, call) == PY_CALL ? py_call_name(tree, call) : 0;
    if (!name || !py_is(tree, name, "parametrize"))
      continue;
    const char *parameters = py_constant(unit, py_argument(tree, call, 0, "argnames"));
    const struct py_node *at = &tree->nodes[binding->node];
    const char *word = arena_copy(&unit->arena, tree->bytes + at->start, at->end - at->start);
    py_id list = py_argument(tree, call, 1, "argvalues");
    if (parameters && list && strstr(parameters, word))
      gather(unit, names, list, path, 1);
  }
}

/* Where the value of a variable that is looked up comes from. */
static void gather_variable(struct py_unit *unit, struct gathering *names, py_id variable, const char *path) {
  const struct py_tree *tree = &unit->tree;
  bool deferred;
  uint32_t i = py_lookup(&unit->scopes, unit->scopes.of[variable], py_node_name(&unit->scopes, variable), &deferred);
  for (; i != PY_NO_BINDING; i = unit->scopes.bindings[i].next) {
    const struct py_binding *binding = &unit->scopes.bindings[i];
    /* A loop gives the name its values inside of it. */
    if (binding->kind == PY_BIND_LOOP && binding->value &&
        py_within(tree, variable, py_kind(tree, binding->statement) == PY_FOR_STATEMENT ? binding->statement : 0))
      gather(unit, names, binding->value, path, 1);
    else if (binding->kind == PY_BIND_PARAMETER)
      gather_parameter(unit, names, binding, path);
    else if (binding->kind == PY_BIND_ASSIGN && binding->value) {
      enum py_kind kind = py_kind(tree, py_unwrap(tree, binding->value));
      if (kind == PY_STRING || kind == PY_CONDITIONAL_EXPRESSION)
        gather(unit, names, binding->value, path, 0);
    }
  }
}

/* Is it an assignment of a string to an attribute, or to a name in the body of a class? Returns the name. */
static py_id string_attribute(struct py_unit *unit, py_id node, py_id *value) {
  const struct py_tree *tree = &unit->tree;
  py_id left = py_kind(tree, node) == PY_ASSIGNMENT ? py_field(tree, node, PY_FIELD_LEFT) : 0;
  *value = left ? py_unwrap(tree, py_field(tree, node, PY_FIELD_RIGHT)) : 0;
  if (!*value || (py_kind(tree, *value) != PY_STRING && py_kind(tree, *value) != PY_CONDITIONAL_EXPRESSION))
    return 0;
  if (py_kind(tree, left) == PY_ATTRIBUTE)
    return py_field(tree, left, PY_FIELD_ATTRIBUTE);
  return unit->scopes.scopes[unit->scopes.of[node]].kind == PY_SCOPE_CLASS ? left : 0;
}

/* The strings that any attribute of this name is given: self.kernel = "...". */
static void gather_attribute(struct py_unit *unit, struct gathering *names, py_id node, const char *path) {
  const struct py_tree *tree = &unit->tree;
  if (!names->attributes_known)
    for (py_id at = 1; at < tree->count; at++) {
      py_id value, name = string_attribute(unit, at, &value);
      if (!name)
        continue;
      PY_GROW(names->attributes, names->attributes_count, names->attributes_capacity);
      names->attributes[names->attributes_count++] = (struct attribute){name, value};
    }
  names->attributes_known = true;
  py_id word = py_field(tree, node, PY_FIELD_ATTRIBUTE);
  for (size_t i = 0; word && i < names->attributes_count; i++)
    if (py_same_text(tree, names->attributes[i].name, word))
      gather(unit, names, names->attributes[i].value, path, 0);
}

/* The entries of a table, but not its keys: getattr(sgl_kernel, KERNELS[i]). */
static void gather_table(struct py_unit *unit, struct gathering *names, py_id node, const char *path) {
  const struct py_tree *tree = &unit->tree;
  py_id table = py_unwrap(tree, py_field(tree, node, PY_FIELD_VALUE));
  if (table && py_kind(tree, table) == PY_IDENTIFIER)
    table = py_unwrap(tree, py_single_value(unit, table));
  if (table && (py_kind(tree, table) == PY_LIST || py_kind(tree, table) == PY_TUPLE))
    gather(unit, names, table, path, 0);
  else if (table && py_kind(tree, table) == PY_DICTIONARY)
    for (py_id pair = py_first_named(tree, table); pair; pair = py_next_named(tree, pair))
      if (py_kind(tree, pair) == PY_PAIR && py_field(tree, pair, PY_FIELD_VALUE))
        gather(unit, names, py_field(tree, pair, PY_FIELD_VALUE), path, 0);
}

/* "sgl_kernel::" in front of a field or a + or %: what stands behind is looked up there. */
static const char *prefix_path(struct py_unit *unit, const struct py_string *string) {
  size_t length = 0;
  while (length < string->size && (py_word_byte(string->bytes[length]) || string->bytes[length] == '.'))
    length++;
  const char *text = arena_copy(&unit->arena, string->bytes, length);
  bool dot = length && text[length - 1] == '.';
  if (dot)
    ((char *)(uintptr_t)text)[length - 1] = '\0';
  size_t rest = string->size - length;
  const uint8_t *behind = string->bytes + length;
  bool field = rest == 0 || *behind == '\0' || *behind == '%' || *behind == '{';
  if (!dot && rest >= 2 && behind[0] == ':' && behind[1] == ':')
    return py_is_namespace(unit->scan, text) ? py_text_format(&unit->arena, PY_OPERATORS "%s", text) : NULL;
  if (py_is_package(unit->scan, text) && (dot ? field : rest >= 1 && behind[0] == ':'))
    return text;
  return py_is_operators(unit->scan, text) && dot && field ? text : NULL;
}

static void gather_prefixed(struct py_unit *unit, struct gathering *names, py_id node) {
  const struct py_tree *tree = &unit->tree;
  py_id parent = py_parent(tree, node);
  bool joined = py_kind(tree, parent) == PY_BINARY_OPERATOR && tree->nodes[node].field == PY_FIELD_LEFT;
  bool format = py_kind(tree, parent) == PY_ATTRIBUTE && py_kind(tree, py_parent(tree, parent)) == PY_CALL;
  bool fields = py_first(tree, node) && tree->bytes[tree->nodes[node].start] != '"' &&
                tree->bytes[tree->nodes[node].start] != '\'';
  if (!joined && !format && !fields)
    return;
  struct py_string string;
  py_string_open(unit, node, &string);
  const char *path = prefix_path(unit, &string);
  py_string_close(&string);
  if (!path)
    return;
  py_id from = 0, to = 0;
  if (joined) {
    from = py_field(tree, parent, PY_FIELD_RIGHT);
  } else if (format) {
    from = py_field(tree, py_parent(tree, parent), PY_FIELD_ARGUMENTS);
  } else {
    from = py_first(tree, node);
    while (from && py_kind(tree, from) != PY_INTERPOLATION)
      from = py_next(tree, from);
  }
  to = from ? py_subtree_end(tree, from) : 0;
  for (; from && from < to; from++)
    if (py_kind(tree, from) == PY_IDENTIFIER && tree->nodes[from].field != PY_FIELD_ATTRIBUTE)
      gather_variable(unit, names, from, path);
    else if (py_kind(tree, from) == PY_STRING)
      gather(unit, names, from, path, 0);
}

int py_named_compare(const void *left, const void *right) {
  const struct py_named *a = left, *b = right;
  return (a->string > b->string) - (a->string < b->string);
}

struct py_named_list py_named_gather(struct py_unit *unit) {
  const struct py_tree *tree = &unit->tree;
  struct gathering all = {.seen = scan_alloc(NULL, tree->count)}, *names = &all;
  memset(all.seen, 0, tree->count);
  for (py_id node = 1; node < tree->count; node++) {
    if (py_kind(tree, node) == PY_STRING) {
      if (py_names_owner(unit->scan, tree->bytes + tree->nodes[node].start,
                         tree->nodes[node].end - tree->nodes[node].start))
        gather_prefixed(unit, names, node);
      continue;
    }
    enum py_kind kind = py_kind(tree, node), above = py_kind(tree, py_parent(tree, node));
    if ((kind != PY_IDENTIFIER && kind != PY_ATTRIBUTE && kind != PY_SUBSCRIPT) ||
        (above != PY_ARGUMENT_LIST && above != PY_SUBSCRIPT && above != PY_COMPARISON_OPERATOR))
      continue;
    const char *path = py_looked_up_in(unit, node);
    if (path && kind == PY_IDENTIFIER)
      gather_variable(unit, names, node, path);
    else if (path && kind == PY_ATTRIBUTE)
      gather_attribute(unit, names, node, path);
    else if (path)
      gather_table(unit, names, node, path);
  }
  free(all.seen);
  free(all.attributes);
  if (all.found.count)
    qsort(all.found.list, all.found.count, sizeof *all.found.list, py_named_compare);
  return all.found;
}
