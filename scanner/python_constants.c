/* Names and strings that stand for one text, or for one expression. */
#include "scanner/python_front.h"

/* The one value of a name that is bound once, by an assignment. */
py_id py_single_value(struct py_unit *unit, py_id node) {
  bool deferred;
  uint32_t first = py_lookup(&unit->scopes, unit->scopes.of[node], py_node_name(&unit->scopes, node), &deferred);
  py_id value = 0;
  for (uint32_t i = first; i != PY_NO_BINDING; i = unit->scopes.bindings[i].next) {
    if (unit->scopes.bindings[i].kind == PY_BIND_DECLARE)
      continue;
    if (value || unit->scopes.bindings[i].kind != PY_BIND_ASSIGN)
      return 0;
    value = unit->scopes.bindings[i].value;
  }
  return value;
}

const char *py_constant_at(struct py_unit *unit, py_id node, unsigned depth) {
  const struct py_tree *tree = &unit->tree;
  node = py_unwrap(tree, node);
  if (!node || depth > PY_DEPTH_MAX)
    return NULL;
  if (py_kind(tree, node) == PY_IDENTIFIER)
    return py_constant_at(unit, py_single_value(unit, node), depth + 1);
  if (py_kind(tree, node) == PY_BINARY_OPERATOR && py_is(tree, py_field(tree, node, PY_FIELD_OPERATOR), "+")) {
    const char *left = py_constant_at(unit, py_field(tree, node, PY_FIELD_LEFT), depth + 1);
    const char *right = left ? py_constant_at(unit, py_field(tree, node, PY_FIELD_RIGHT), depth + 1) : NULL;
    return right ? py_text_format(&unit->arena, "%s%s", left, right) : NULL;
  }
  if (py_kind(tree, node) != PY_STRING && py_kind(tree, node) != PY_CONCATENATED_STRING)
    return NULL;
  struct py_string string;
  py_string_open(unit, node, &string);
  const char *text = NULL;
  if (string.size == 0 || !memchr(string.bytes, 0, string.size))
    text = arena_copy(&unit->arena, string.bytes, string.size);
  py_string_close(&string);
  return text;
}

const char *py_constant(struct py_unit *unit, py_id node) {
  return py_constant_at(unit, node, 0);
}
