/* Which conditions a use stands under: the tests of the branches around it, what an early return or an assert leaves.
 * A call through an imported name belongs to its import. What is narrow about a condition, conditions.c tells. */
#include "scanner/conditions.h"
#include "scanner/python_front.h"

#include <stdlib.h>

#define REFERENCES_MAX 200

/* The node with exactly these bytes that is a name or an attribute; or none. */
static py_id node_at(const struct py_tree *tree, size_t start, size_t end) {
  py_id low = 1, high = tree->count;
  while (low < high) { /* starts never go back in the list */
    py_id middle = low + (high - low) / 2;
    if (tree->nodes[middle].start < start)
      low = middle + 1;
    else
      high = middle;
  }
  for (; low < tree->count && tree->nodes[low].start == start; low++)
    if (tree->nodes[low].end == end && (py_kind(tree, low) == PY_IDENTIFIER || py_kind(tree, low) == PY_ATTRIBUTE))
      return low;
  return 0;
}

/* self.flag = test, once in the file; what only switches it off or on does not count. */
static py_id attribute_value(const struct py_tree *tree, py_id attribute) {
  const struct py_node *wanted = &tree->nodes[attribute];
  py_id found = 0;
  for (py_id node = 1; node < tree->count; node++) {
    py_id left = py_kind(tree, node) == PY_ASSIGNMENT ? py_field(tree, node, PY_FIELD_LEFT) : 0;
    if (!left || py_kind(tree, left) != PY_ATTRIBUTE ||
        tree->nodes[left].end - tree->nodes[left].start != wanted->end - wanted->start ||
        memcmp(tree->bytes + tree->nodes[left].start, tree->bytes + wanted->start, wanted->end - wanted->start) != 0)
      continue;
    py_id value = py_field(tree, node, PY_FIELD_RIGHT);
    enum py_kind kind = value ? py_kind(tree, value) : PY_NONE;
    if (kind == PY_NONE || kind == PY_FALSE || kind == PY_TRUE)
      continue;
    if (found)
      return 0;
    found = value;
  }
  return found;
}

static bool helper_value(void *user, size_t *start, size_t *end) {
  struct py_unit *unit = user;
  py_id node = node_at(&unit->tree, *start, *end);
  if (!node)
    return false;
  py_id value =
      py_kind(&unit->tree, node) == PY_IDENTIFIER ? py_single_value(unit, node) : attribute_value(&unit->tree, node);
  if (!value)
    return false;
  *start = unit->tree.nodes[value].start;
  *end = unit->tree.nodes[value].end;
  return true;
}

static void read_node(struct py_unit *unit, struct conditions *conditions, py_id condition, bool holds) {
  if (condition)
    conditions_read(conditions, unit->tree.nodes[condition].start, unit->tree.nodes[condition].end, holds);
}

/* What the statements in front of `node` in its block leave: `if tokens > 16: return`, `assert tokens <= 16`. */
static void read_earlier(struct py_unit *unit, struct conditions *conditions, py_id block, py_id node) {
  const struct py_tree *tree = &unit->tree;
  for (py_id statement = py_first_named(tree, block); statement && statement < node;
       statement = py_next_named(tree, statement)) {
    if (py_kind(tree, statement) == PY_ASSERT_STATEMENT)
      read_node(unit, conditions, py_first_named(tree, statement), true);
    py_id body = py_kind(tree, statement) == PY_IF_STATEMENT && !py_field(tree, statement, PY_FIELD_ALTERNATIVE)
                     ? py_field(tree, statement, PY_FIELD_CONSEQUENCE)
                     : 0;
    if (body && py_leaves(tree, body))
      read_node(unit, conditions, py_field(tree, statement, PY_FIELD_CONDITION), false);
  }
}

/* The tests in front of an elif or else: all failed. */
static void read_failed(struct py_unit *unit, struct conditions *conditions, py_id statement, py_id arm) {
  const struct py_tree *tree = &unit->tree;
  read_node(unit, conditions, py_field(tree, statement, PY_FIELD_CONDITION), false);
  for (py_id clause = py_first_named(tree, statement); clause && clause < arm; clause = py_next_named(tree, clause))
    if (py_kind(tree, clause) == PY_ELIF_CLAUSE)
      read_node(unit, conditions, py_field(tree, clause, PY_FIELD_CONDITION), false);
}

static void read_around(struct py_unit *unit, struct conditions *conditions, py_id node) {
  const struct py_tree *tree = &unit->tree;
  for (py_id parent = py_parent(tree, node); node; node = parent, parent = py_parent(tree, node)) {
    enum py_field field = tree->nodes[node].field;
    switch (py_kind(tree, parent)) {
    case PY_IF_STATEMENT:
      if (field == PY_FIELD_CONSEQUENCE)
        read_node(unit, conditions, py_field(tree, parent, PY_FIELD_CONDITION), true);
      else if (field == PY_FIELD_ALTERNATIVE)
        read_failed(unit, conditions, parent, node);
      break;
    case PY_ELIF_CLAUSE:
    case PY_WHILE_STATEMENT:
      if (field == PY_FIELD_CONSEQUENCE || field == PY_FIELD_BODY)
        read_node(unit, conditions, py_field(tree, parent, PY_FIELD_CONDITION), true);
      break;
    case PY_CONDITIONAL_EXPRESSION: {
      py_id first = py_first_named(tree, parent), condition = py_next_named(tree, first);
      if (node != condition)
        read_node(unit, conditions, condition, node == first);
      break;
    }
    case PY_BOOLEAN_OPERATOR:
      if (field == PY_FIELD_RIGHT)
        read_node(unit, conditions, py_field(tree, parent, PY_FIELD_LEFT),
                  py_is(tree, py_field(tree, parent, PY_FIELD_OPERATOR), "and"));
      break;
    case PY_BLOCK:
    case PY_MODULE:
      if (parent || py_kind(tree, node) != PY_FUNCTION_DEFINITION)
        read_earlier(unit, conditions, parent, node);
      break;
    default:
      break;
    }
    if (!parent)
      break;
  }
}

/* Each place where code reads the name that an import binds. */
static void read_references(struct py_unit *unit, struct conditions *conditions, const struct py_use *use) {
  const struct py_tree *tree = &unit->tree;
  const struct py_scopes *scopes = &unit->scopes;
  uint32_t binding = 0;
  while (binding < scopes->bindings_count && !(scopes->bindings[binding].kind == PY_BIND_IMPORT &&
                                               py_within(tree, scopes->bindings[binding].node, use->node)))
    binding++;
  if (binding == scopes->bindings_count)
    return;
  unsigned count = 0;
  for (py_id node = 1; node < tree->count && count < REFERENCES_MAX; node++) {
    bool deferred;
    if (py_kind(tree, node) != PY_IDENTIFIER || tree->nodes[node].field == PY_FIELD_ATTRIBUTE ||
        py_node_name(scopes, node) != scopes->bindings[binding].name || py_within(tree, node, use->statement))
      continue;
    uint32_t i = py_lookup(scopes, scopes->of[node], scopes->bindings[binding].name, &deferred);
    while (i != PY_NO_BINDING && i != binding)
      i = scopes->bindings[i].next;
    if (i == PY_NO_BINDING)
      continue;
    read_around(unit, conditions, node);
    count++;
  }
}

static uint32_t line_of(void *user, size_t offset) {
  uint32_t line, column;
  py_position(user, offset, &line, &column);
  return line;
}

const char *py_conditions(struct py_unit *unit, const struct py_use *use) {
  const char *why;
  struct conditions conditions;
  if (!use->node || use->kind == PY_USE_STRING ||
      !conditions_open(&conditions, unit->source.bytes, rules_python_target(unit->scan, use->symbol, &why)))
    return "";
  conditions.value = helper_value;
  conditions.user = unit;
  read_around(unit, &conditions, use->node);
  if (use->kind == PY_USE_IMPORT)
    read_references(unit, &conditions, use);
  char *text = conditions_text(&conditions, line_of, unit);
  const char *kept = text ? arena_copy(&unit->arena, text, strlen(text)) : "";
  free(text);
  return kept;
}
