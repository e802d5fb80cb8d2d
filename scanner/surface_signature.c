/* How a Python function is called, and the texts that go into that. */
#include "scanner/surface_python.h"

const char *surface_node(struct arena *arena, const struct py_tree *tree, py_id node) {
  return arena_copy(arena, tree->bytes + tree->nodes[node].start, tree->nodes[node].end - tree->nodes[node].start);
}

const char *surface_node_plain(struct arena *arena, const struct py_tree *tree, py_id node) {
  const struct py_node *whole = &tree->nodes[node];
  char *copy = arena_copy(arena, tree->bytes + whole->start, whole->end - whole->start);
  for (py_id i = node, end = py_subtree_end(tree, node); i < end; i++)
    if (py_kind(tree, i) == PY_COMMENT || py_kind(tree, i) == PY_LINE_CONTINUATION)
      memset(copy + (tree->nodes[i].start - whole->start), ' ', tree->nodes[i].end - tree->nodes[i].start);
  return surface_plain(arena, copy, whole->end - whole->start);
}

uint32_t surface_node_line(const struct py_tree *tree, py_id node) {
  uint32_t line, column;
  rules_position(tree->bytes, tree->end, tree->nodes[node].start, &line, &column);
  return line;
}

/* One parameter of a function; false for the separators. */
static bool read_parameter(struct reading *reading, py_id node, struct surface_parameter *parameter) {
  const struct py_tree *tree = reading->tree;
  struct arena *arena = &reading->surface->arena;
  *parameter = (struct surface_parameter){.name = "", .type = ""};
  py_id name = node, type = py_field(tree, node, PY_FIELD_TYPE), value = py_field(tree, node, PY_FIELD_VALUE);
  if (py_kind(tree, node) == PY_DEFAULT_PARAMETER || py_kind(tree, node) == PY_TYPED_DEFAULT_PARAMETER)
    name = py_field(tree, node, PY_FIELD_NAME);
  else if (py_kind(tree, node) == PY_TYPED_PARAMETER)
    name = py_first_named(tree, node);
  if (py_kind(tree, name) == PY_LIST_SPLAT_PATTERN)
    parameter->kind = PARAMETER_REST;
  else if (py_kind(tree, name) == PY_DICTIONARY_SPLAT_PATTERN)
    parameter->kind = PARAMETER_NAMED_REST;
  else if (py_kind(tree, name) != PY_IDENTIFIER)
    return false;
  parameter->name = surface_node(arena, tree, name) + strspn(surface_node(arena, tree, name), "* ");
  parameter->type = type ? surface_node_plain(arena, tree, type) : "";
  parameter->value = value ? surface_node_plain(arena, tree, value) : NULL;
  return true;
}

const char *surface_signature_text(struct arena *arena, const struct surface_signature *signature) {
  const char *text = "(";
  bool star = false;
  for (size_t i = 0; i < signature->count; i++) {
    const struct surface_parameter *one = &signature->parameters[i];
    bool bare = one->kind == PARAMETER_KEYWORD && !star;
    star |= one->kind == PARAMETER_KEYWORD || one->kind == PARAMETER_REST;
    static const char *const fronts[] = {[PARAMETER_REST] = "*", [PARAMETER_NAMED_REST] = "**"};
    const char *front = one->kind >= PARAMETER_REST ? fronts[one->kind] : "";
    text = surface_format(arena, "%s%s%s%s%s", text, i ? ", " : "", bare ? "*, " : "", front, one->name);
    if (*one->type)
      text =
          surface_format(arena, "%s: %s%s%s", text, one->type, one->value ? " = " : "", one->value ? one->value : "");
    else if (one->value)
      text = surface_format(arena, "%s=%s", text, one->value);
    if (one->kind == PARAMETER_POSITION &&
        (i + 1 == signature->count || signature->parameters[i + 1].kind != PARAMETER_POSITION))
      text = surface_format(arena, "%s, /", text);
  }
  return *signature->returns ? surface_format(arena, "%s) -> %s", text, signature->returns)
                             : surface_format(arena, "%s)", text);
}

void surface_signature_read(struct reading *reading, py_id function, bool bound, struct surface_signature *signature) {
  const struct py_tree *tree = reading->tree;
  struct arena *arena = &reading->surface->arena;
  py_id parameters = py_first(tree, function);
  while (parameters && py_kind(tree, parameters) != PY_PARAMETERS)
    parameters = py_next(tree, parameters);
  size_t most = 0, count = 0;
  for (py_id node = py_first(tree, parameters); node; node = py_next(tree, node))
    most++;
  struct surface_parameter *list = arena_alloc(arena, (most + 1) * sizeof *list);
  bool keyword = false;
  for (py_id node = py_first(tree, parameters); node; node = py_next(tree, node)) {
    if (py_is(tree, node, "/")) {
      for (size_t i = 0; i < count; i++)
        list[i].kind = PARAMETER_POSITION;
    } else if (py_is(tree, node, "*")) {
      keyword = true;
    } else if (py_kind(tree, node) != PY_TOKEN && read_parameter(reading, node, &list[count])) {
      if (list[count].kind == PARAMETER_PLAIN && keyword)
        list[count].kind = PARAMETER_KEYWORD;
      keyword |= list[count].kind == PARAMETER_REST;
      count++;
    }
  }
  if (bound && count) {
    list++;
    count--;
  }
  py_id returns = bound ? 0 : py_field(tree, function, PY_FIELD_RETURN_TYPE);
  *signature = (struct surface_signature){.parameters = list,
                                          .count = count,
                                          .returns = returns ? surface_node_plain(arena, tree, returns) : "",
                                          .split = true};
  signature->text = surface_signature_text(arena, signature);
}

bool surface_decorated(const struct reading *reading, py_id definition, const char *word) {
  const struct py_tree *tree = reading->tree;
  py_id around = py_parent(tree, definition);
  if (py_kind(tree, around) != PY_DECORATED_DEFINITION)
    return false;
  for (py_id node = py_first(tree, around); node; node = py_next(tree, node))
    for (py_id i = node, end = py_subtree_end(tree, node); py_kind(tree, node) == PY_DECORATOR && i < end; i++)
      if (py_kind(tree, i) == PY_IDENTIFIER && py_is(tree, i, word))
        return true;
  return false;
}
