/* scan --changed: calls of functions and operators that have another form than before. */
#include "scanner/changed.h"
#include "scanner/python_front.h"

#include <stdlib.h>

#define KEYWORDS_MOST 64

/* The arguments of a call; false: a star or two stars hide some. */
static bool read_call(const struct py_tree *tree, py_id node, struct catalog_slice *keywords,
                      struct catalog_call *call) {
  py_id list = py_field(tree, node, PY_FIELD_ARGUMENTS);
  *call = (struct catalog_call){.keywords = keywords};
  if (list && py_kind(tree, list) != PY_ARGUMENT_LIST) { /* f(x for x in y) */
    call->positional = 1;
    return true;
  }
  for (py_id argument = list ? py_first_named(tree, list) : 0; argument; argument = py_next_named(tree, argument)) {
    enum py_kind kind = py_kind(tree, argument);
    if (kind == PY_LIST_SPLAT || kind == PY_DICTIONARY_SPLAT || call->keywords_count == KEYWORDS_MOST)
      return false;
    py_id name = kind == PY_KEYWORD_ARGUMENT ? py_field(tree, argument, PY_FIELD_NAME) : 0;
    if (name)
      keywords[call->keywords_count++] = (struct catalog_slice){(const char *)tree->bytes + tree->nodes[name].start,
                                                                tree->nodes[name].end - tree->nodes[name].start};
    else
      call->positional++;
  }
  return true;
}

/* The word that names the function: the finding's place. */
static py_id function_word(const struct py_tree *tree, py_id function) {
  py_id word = function;
  while (word && py_kind(tree, word) == PY_ATTRIBUTE) {
    py_id attribute = py_field(tree, word, PY_FIELD_ATTRIBUTE);
    if (!attribute || !py_is(tree, attribute, "default"))
      return attribute;
    word = py_unwrap(tree, py_field(tree, word, PY_FIELD_OBJECT));
  }
  return word;
}

static void look_at_call(struct py_unit *unit, py_id node) {
  const struct py_tree *tree = &unit->tree;
  py_id function = py_unwrap(tree, py_field(tree, node, PY_FIELD_FUNCTION));
  py_id word = function ? function_word(tree, function) : 0;
  struct py_value value = word ? py_evaluate(unit, function) : (struct py_value){0};
  size_t operators = strlen(PY_OPERATORS);
  if (!value.path)
    return;
  bool operator= strncmp(value.path, PY_OPERATORS, operators) == 0 && value.path[operators] == '.';
  const char *last = operator? value.path + operators : strrchr(value.path, '.');
  if (!last || !(operator|| py_is_package(value.path)))
    return;
  const char *module = arena_copy(&unit->arena, value.path, (size_t)(last - value.path));
  const char *name = arena_copy(&unit->arena, last + 1, strcspn(last + 1, operator? "." : ""));
  struct changed changed;
  changed_find(unit->scan, operator? CATALOG_CHANGED_OPERATOR : CATALOG_CHANGED_PYTHON, operator? NULL : module, name,
               &changed);
  if (!changed.count ||
      (operator? rules_operator_removed(unit->scan, name) : rules_python_removed(unit->scan, module, name)))
    return;
  struct catalog_slice keywords[KEYWORDS_MOST];
  struct catalog_call call;
  enum level level;
  char *message = changed_judge(&changed, read_call(tree, node, keywords, &call) ? &call : NULL, &level);
  if (message)
    py_find(unit, tree->nodes[word].start, changed_symbol(unit->scan, changed.list[0]), VERDICT_REPORT, EVIDENCE_AST,
            level, arena_copy(&unit->arena, message, strlen(message)));
  free(message);
}

void py_changed(struct py_unit *unit) {
  for (py_id node = 1; node < unit->tree.count; node++)
    if (py_kind(&unit->tree, node) == PY_CALL)
      look_at_call(unit, node);
}
