/* What each node of the tree stands under: a try that takes a failed import, the fallback arm of one, a branch of
 * another vendor, a test that asks for a name (case contract, Python rules 12 and 13). Guards are handed down from
 * parent to child in one pass. */
#include "scanner/python_front.h"

#include <stdlib.h>

#define DEPTH_MAX 40
/* A test of more nodes asks for no names; it is a table. */
#define TEST_MAX 4000

static const char *const caught[] = {"ImportError", "ModuleNotFoundError", "AttributeError", "Exception",
                                     "BaseException"};

/* Words of platform tests that mean hardware of another vendor, or its software. */
static const char *const vendors[] = {"musa",   "mthreads", "hip", "rocm",  "amd",    "gfx", "xpu",  "npu",
                                      "ascend", "hpu",      "mlu", "metax", "kunlun", "dcu", "maca", "hygon"};

/* --- exceptions --------------------------------------------------------------------------------------------------- */

/* Does an expression of exception classes name one that a failed import raises? */
static bool names_caught(struct py_unit *unit, py_id expression, unsigned depth) {
  const struct py_tree *tree = &unit->tree;
  py_id end = py_subtree_end(tree, expression);
  for (py_id node = expression; node < end; node++) {
    if (py_kind(tree, node) != PY_IDENTIFIER || py_kind(tree, py_parent(tree, node)) == PY_AS_PATTERN_TARGET)
      continue;
    for (size_t i = 0; i < sizeof caught / sizeof *caught; i++)
      if (py_is(tree, node, caught[i]))
        return true;
    /* IMPORT_ERRORS = (ImportError, OSError) */
    py_id value = depth ? py_single_value(unit, node) : 0;
    if (value && names_caught(unit, value, depth - 1))
      return true;
  }
  return false;
}

static bool clause_catches(struct py_unit *unit, py_id clause) {
  py_id value = py_first_named(&unit->tree, clause);
  return !value || py_kind(&unit->tree, value) == PY_BLOCK || names_caught(unit, value, 2);
}

static bool try_catches(struct py_unit *unit, py_id statement) {
  const struct py_tree *tree = &unit->tree;
  for (py_id child = py_first_named(tree, statement); child; child = py_next_named(tree, child))
    if ((py_kind(tree, child) == PY_EXCEPT_CLAUSE || py_kind(tree, child) == PY_EXCEPT_GROUP_CLAUSE) &&
        clause_catches(unit, child))
      return true;
  return false;
}

/* suppress(ImportError), pytest.raises(ImportError), self.assertRaises(ImportError) */
static bool call_suppresses(struct py_unit *unit, py_id call) {
  static const char *const names[] = {"suppress", "raises", "assertRaises", "assertRaisesRegex"};
  const struct py_tree *tree = &unit->tree;
  py_id name = py_call_name(tree, call), arguments = py_field(tree, call, PY_FIELD_ARGUMENTS);
  bool known = false;
  for (size_t i = 0; name && i < sizeof names / sizeof *names; i++)
    known = known || py_is(tree, name, names[i]);
  if (name && !known) {
    struct py_value value = py_evaluate(unit, py_field(tree, call, PY_FIELD_FUNCTION));
    known = value.path && strcmp(value.path, "contextlib.suppress") == 0;
  }
  return known && arguments && names_caught(unit, arguments, 2);
}

static bool with_suppresses(struct py_unit *unit, py_id statement) {
  const struct py_tree *tree = &unit->tree;
  py_id clause = py_first_named(tree, statement);
  if (!clause || py_kind(tree, clause) != PY_WITH_CLAUSE)
    return false;
  for (py_id item = py_first_named(tree, clause); item; item = py_next_named(tree, item)) {
    py_id value = py_unwrap(tree, py_field(tree, item, PY_FIELD_VALUE));
    if (value && py_kind(tree, value) == PY_AS_PATTERN)
      value = py_unwrap(tree, py_first_named(tree, value));
    if (value && py_kind(tree, value) == PY_IDENTIFIER)
      value = py_single_value(unit, value);
    if (value && py_kind(tree, value) == PY_CALL && call_suppresses(unit, value))
      return true;
  }
  return false;
}

/* --- vendors ------------------------------------------------------------------------------------------------------ */

static bool is_vendor(const uint8_t *word, size_t length) {
  size_t whole = length;
  while (length && word[length - 1] >= '0' && word[length - 1] <= '9')
    length--; /* rocm6, gfx95; but amd64 is everybody's */
  if (length < whole && length == 3 && (word[0] | 0x20) == 'a')
    return false;
  for (size_t i = 0; i < sizeof vendors / sizeof *vendors; i++) {
    if (strlen(vendors[i]) != length)
      continue;
    size_t k = 0;
    while (k < length && (word[k] | 0x20) == (uint8_t)vendors[i][k])
      k++;
    if (k == length)
      return true;
  }
  return false;
}

static bool upper(uint8_t c) {
  return c >= 'A' && c <= 'Z';
}

/* The words of "is_musa", "torch.version.hip", "isRocm", "USE_XPU", one by one. */
static bool has_vendor_word(const struct py_tree *tree, py_id node) {
  const uint8_t *text = tree->bytes;
  uint32_t end = tree->nodes[node].end;
  for (uint32_t at = tree->nodes[node].start; at < end;) {
    if (!py_word_byte(text[at]) || text[at] == '_') {
      at++;
      continue;
    }
    uint32_t stop = at + 1;
    while (stop < end && py_word_byte(text[stop]) && text[stop] != '_' &&
           !(upper(text[stop]) && !upper(text[stop - 1])))
      stop++;
    if (is_vendor(text + at, stop - at))
      return true;
    at = stop;
  }
  return false;
}

/* Which arms of a test belong to another vendor. */
enum { WHEN_TRUE = 1, WHEN_FALSE = 2 };

static unsigned swapped(unsigned arms) {
  return (arms & WHEN_TRUE ? WHEN_FALSE : 0u) | (arms & WHEN_FALSE ? WHEN_TRUE : 0u);
}

static bool negative_comparison(const struct py_tree *tree, py_id node) {
  bool negative = false;
  for (py_id child = py_first(tree, node); child; child = py_next(tree, child)) {
    if (tree->nodes[child].field == PY_FIELD_OPERATORS &&
        (py_is(tree, child, "!=") || tree->nodes[child].end - tree->nodes[child].start > 2))
      negative = !negative; /* !=, is not, not in */
    enum py_kind kind = py_kind(tree, child);
    if (kind == PY_NONE || kind == PY_FALSE)
      negative = !negative;
  }
  return negative;
}

static unsigned vendor_arms(struct py_unit *unit, py_id node, unsigned depth) {
  const struct py_tree *tree = &unit->tree;
  node = py_unwrap(tree, node);
  if (!node || depth > DEPTH_MAX)
    return 0;
  switch (py_kind(tree, node)) {
  case PY_NOT_OPERATOR:
    return swapped(vendor_arms(unit, py_field(tree, node, PY_FIELD_ARGUMENT), depth + 1));
  case PY_BOOLEAN_OPERATOR:
    return vendor_arms(unit, py_field(tree, node, PY_FIELD_LEFT), depth + 1) |
           vendor_arms(unit, py_field(tree, node, PY_FIELD_RIGHT), depth + 1);
  case PY_NAMED_EXPRESSION:
    return vendor_arms(unit, py_field(tree, node, PY_FIELD_VALUE), depth + 1);
  case PY_COMPARISON_OPERATOR:
    if (!has_vendor_word(tree, node))
      return 0;
    return negative_comparison(tree, node) ? WHEN_FALSE : WHEN_TRUE;
  case PY_IDENTIFIER: {
    if (has_vendor_word(tree, node))
      return WHEN_TRUE;
    /* other = torch.version.hip is not None */
    py_id value = py_unwrap(tree, py_single_value(unit, node));
    if (!value)
      return 0;
    enum py_kind kind = py_kind(tree, value);
    if (kind == PY_CALL)
      value = py_field(tree, value, PY_FIELD_FUNCTION);
    bool plain = kind == PY_CALL || kind == PY_ATTRIBUTE || kind == PY_COMPARISON_OPERATOR || kind == PY_NOT_OPERATOR ||
                 kind == PY_BOOLEAN_OPERATOR;
    return plain ? vendor_arms(unit, value, depth + DEPTH_MAX / 4) : 0;
  }
  case PY_CALL:
  case PY_ATTRIBUTE:
  case PY_SUBSCRIPT:
    return has_vendor_word(tree, node) ? WHEN_TRUE : 0;
  default:
    return 0;
  }
}

static uint8_t vendor_guard(struct py_unit *unit, py_id condition, unsigned arm) {
  return vendor_arms(unit, condition, 0) & arm ? PY_GUARD_VENDOR : 0;
}

/* --- probes ------------------------------------------------------------------------------------------------------- */

static bool asks(const struct py_tree *tree, py_id call) {
  static const char *const names[] = {"hasattr", "getattr", "getattr_static", "dir", "vars"};
  py_id name = py_call_name(tree, call);
  for (size_t i = 0; name && i < sizeof names / sizeof *names; i++)
    if (py_is(tree, name, names[i]))
      return true;
  return false;
}

/* Does the expression ask an object for this name (any name: NULL)? Flags are followed to where they were made. */
static bool asks_for(struct py_unit *unit, py_id expression, const char *name, unsigned depth) {
  const struct py_tree *tree = &unit->tree;
  py_id end = py_subtree_end(tree, expression);
  bool asking = false, named = !name;
  if (end - expression > TEST_MAX)
    return false;
  for (py_id node = expression; node < end; node++) {
    enum py_kind kind = py_kind(tree, node);
    if (kind == PY_CALL && asks(tree, node))
      asking = true;
    if (name && kind == PY_STRING && !named) {
      const char *text = py_constant(unit, node);
      named = text && strcmp(text, name) == 0;
    }
    if (kind == PY_IDENTIFIER && depth && tree->nodes[node].field != PY_FIELD_ATTRIBUTE) {
      py_id value = py_single_value(unit, node);
      enum py_kind made = value ? py_kind(tree, value) : PY_OTHER;
      if (value && name && (made == PY_STRING || made == PY_CONCATENATED_STRING)) {
        const char *text = py_constant(unit, value);
        named = named || (text && strcmp(text, name) == 0);
      } else if (value && asks_for(unit, value, name, depth - 1)) {
        return true;
      }
    }
  }
  return asking && named;
}

bool py_probed(struct py_unit *unit, py_id node, const char *name) {
  for (uint32_t i = unit->probes ? unit->probes[node] : 0; i; i = unit->probe_list[i - 1].outer)
    if (asks_for(unit, unit->probe_list[i - 1].condition, name, 2))
      return true;
  return false;
}

/* The chain with this condition in front, if the condition asks for anything. */
static uint32_t probe(struct py_unit *unit, uint32_t outer, py_id condition) {
  if (!unit->probes || !condition || !asks_for(unit, condition, NULL, 2))
    return outer;
  PY_GROW(unit->probe_list, unit->probe_count, unit->probe_capacity);
  unit->probe_list[unit->probe_count++] = (struct py_probe){condition, outer};
  return unit->probe_count;
}

/* --- the pass ----------------------------------------------------------------------------------------------------- */

bool py_leaves(const struct py_tree *tree, py_id block) {
  static const char *const names[] = {"exit", "_exit", "quit", "skip", "skipTest", "fail", "abort"};
  py_id last = 0;
  for (py_id child = py_first_named(tree, block); child; child = py_next_named(tree, child))
    last = child;
  switch (last ? py_kind(tree, last) : PY_OTHER) {
  case PY_RETURN_STATEMENT:
  case PY_RAISE_STATEMENT:
  case PY_CONTINUE_STATEMENT:
  case PY_BREAK_STATEMENT:
    return true;
  case PY_EXPRESSION_STATEMENT: {
    py_id call = py_first_named(tree, last);
    py_id name = call && py_kind(tree, call) == PY_CALL ? py_call_name(tree, call) : 0;
    for (size_t i = 0; name && i < sizeof names / sizeof *names; i++)
      if (py_is(tree, name, names[i]))
        return true;
    return false;
  }
  default:
    return false;
  }
}

/* What the later arms of an if statement stand under: its earlier tests, failed. */
struct later {
  uint8_t *guards;
  uint32_t *probes;
};

static void guard_node(struct py_unit *unit, struct later *later, py_id node) {
  const struct py_tree *tree = &unit->tree;
  py_id parent = py_parent(tree, node), condition;
  enum py_field field = tree->nodes[node].field;
  uint8_t guards = unit->guards[parent];
  uint32_t probes = unit->probes ? unit->probes[parent] : 0;
  switch (py_kind(tree, parent)) {
  case PY_TRY_STATEMENT:
    if (field == PY_FIELD_BODY && try_catches(unit, parent))
      guards |= PY_GUARD_TRY;
    if ((py_kind(tree, node) == PY_EXCEPT_CLAUSE || py_kind(tree, node) == PY_EXCEPT_GROUP_CLAUSE) &&
        clause_catches(unit, node))
      guards |= PY_GUARD_HANDLER;
    break;
  case PY_WITH_STATEMENT:
    if (field == PY_FIELD_BODY && with_suppresses(unit, parent))
      guards |= PY_GUARD_TRY;
    break;
  case PY_FUNCTION_DEFINITION:
  case PY_LAMBDA:
    if (field == PY_FIELD_BODY)
      guards &= (uint8_t) ~(PY_GUARD_TRY | PY_GUARD_HANDLER); /* runs later, outside of the try */
    break;
  case PY_DECORATED_DEFINITION:
    /* @pytest.mark.skipif(not hasattr(...)) */
    for (py_id child = py_first_named(tree, parent); child && field == PY_FIELD_DEFINITION;
         child = py_next_named(tree, child))
      if (py_kind(tree, child) == PY_DECORATOR)
        probes = probe(unit, probes, child);
    break;
  case PY_IF_STATEMENT:
    condition = py_field(tree, parent, PY_FIELD_CONDITION);
    if (field == PY_FIELD_CONSEQUENCE) {
      later->guards[parent] = guards | vendor_guard(unit, condition, WHEN_FALSE);
      guards |= vendor_guard(unit, condition, WHEN_TRUE);
      probes = probe(unit, probes, condition);
      if (unit->probes)
        later->probes[parent] = probes;
    } else if (field == PY_FIELD_ALTERNATIVE) {
      guards = later->guards[parent];
      probes = unit->probes ? later->probes[parent] : 0;
    }
    break;
  case PY_ELIF_CLAUSE:
    condition = py_field(tree, parent, PY_FIELD_CONDITION);
    if (field == PY_FIELD_CONSEQUENCE) {
      py_id statement = py_parent(tree, parent);
      later->guards[statement] |= vendor_guard(unit, condition, WHEN_FALSE);
      guards |= vendor_guard(unit, condition, WHEN_TRUE);
      probes = probe(unit, probes, condition);
      if (unit->probes)
        later->probes[statement] = probes;
    }
    break;
  case PY_WHILE_STATEMENT:
    if (field == PY_FIELD_BODY) {
      condition = py_field(tree, parent, PY_FIELD_CONDITION);
      guards |= vendor_guard(unit, condition, WHEN_TRUE);
      probes = probe(unit, probes, condition);
    }
    break;
  case PY_CASE_CLAUSE:
    for (py_id child = py_first_named(tree, parent); child && field == PY_FIELD_CONSEQUENCE;
         child = py_next_named(tree, child))
      if (py_kind(tree, child) == PY_CASE_PATTERN && has_vendor_word(tree, child))
        guards |= PY_GUARD_VENDOR;
    break;
  case PY_CONDITIONAL_EXPRESSION: {
    py_id first = py_first_named(tree, parent);
    condition = py_next_named(tree, first);
    if (node == first || node == py_next_named(tree, condition)) {
      guards |= vendor_guard(unit, condition, node == first ? WHEN_TRUE : WHEN_FALSE);
      probes = probe(unit, probes, condition);
    }
    break;
  }
  case PY_BOOLEAN_OPERATOR:
    if (field == PY_FIELD_RIGHT) {
      condition = py_field(tree, parent, PY_FIELD_LEFT);
      bool both = py_is(tree, py_field(tree, parent, PY_FIELD_OPERATOR), "and");
      guards |= vendor_guard(unit, condition, both ? WHEN_TRUE : WHEN_FALSE);
      probes = probe(unit, probes, condition);
    }
    break;
  default:
    break;
  }
  unit->guards[node] = guards;
  if (unit->probes)
    unit->probes[node] = probes;
  /* Behind `if test: return` the rest of the block stands under the failed test. */
  enum py_kind above = py_kind(tree, parent);
  if (py_kind(tree, node) != PY_IF_STATEMENT || (above != PY_BLOCK && above != PY_MODULE) ||
      py_field(tree, node, PY_FIELD_ALTERNATIVE))
    return;
  py_id body = py_field(tree, node, PY_FIELD_CONSEQUENCE);
  if (body && py_leaves(tree, body)) {
    condition = py_field(tree, node, PY_FIELD_CONDITION);
    unit->guards[parent] |= vendor_guard(unit, condition, WHEN_FALSE);
    if (unit->probes)
      unit->probes[parent] = probe(unit, unit->probes[parent], condition);
  }
}

static bool has_text(const struct py_unit *unit, const char *text) {
  return memmem(unit->source.bytes, unit->source.size, text, strlen(text)) != NULL;
}

void py_guards_open(struct py_unit *unit) {
  uint32_t count = unit->tree.count;
  bool asking =
      has_text(unit, "hasattr") || has_text(unit, "getattr") || has_text(unit, "dir(") || has_text(unit, "vars(");
  unit->guards = scan_alloc(NULL, count);
  memset(unit->guards, 0, count);
  struct later later = {.guards = scan_alloc(NULL, count)};
  memset(later.guards, 0, count);
  if (asking) {
    unit->probes = scan_alloc(NULL, count * sizeof *unit->probes);
    later.probes = scan_alloc(NULL, count * sizeof *later.probes);
    memset(unit->probes, 0, count * sizeof *unit->probes);
    memset(later.probes, 0, count * sizeof *later.probes);
  }
  for (py_id node = 1; node < count; node++)
    guard_node(unit, &later, node);
  free(later.guards);
  free(later.probes);
}
