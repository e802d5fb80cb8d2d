/* scan --changed: calls of functions and operators that have another form than before. */
#include "scanner/changed.h"
#include "scanner/python_front.h"

#include <stdlib.h>

#define ARGUMENTS_MOST 100

/* A call with the texts that it refers to. */
struct arguments {
  struct catalog_call call;
  struct catalog_slice words[ARGUMENTS_MOST], keywords[ARGUMENTS_MOST];
};

static struct catalog_slice text_of(const struct py_tree *tree, py_id node) {
  return (struct catalog_slice){(const char *)tree->bytes + tree->nodes[node].start,
                                tree->nodes[node].end - tree->nodes[node].start};
}

/* The name that the argument is: `x`, `self.x`; else empty. */
static struct catalog_slice word_of(const struct py_tree *tree, py_id argument) {
  py_id word = py_kind(tree, argument) == PY_ATTRIBUTE ? py_field(tree, argument, PY_FIELD_ATTRIBUTE) : argument;
  return word && py_kind(tree, word) == PY_IDENTIFIER ? text_of(tree, word) : (struct catalog_slice){"", 0};
}

/* The arguments of a call; false: a star hides how many there are. */
static bool read_call(const struct py_tree *tree, py_id node, struct arguments *arguments) {
  py_id list = py_field(tree, node, PY_FIELD_ARGUMENTS);
  struct catalog_call *call = &arguments->call;
  *call = (struct catalog_call){.words = arguments->words, .keywords = arguments->keywords};
  if (list && py_kind(tree, list) != PY_ARGUMENT_LIST) { /* f(x for x in y) */
    arguments->words[call->positional++] = (struct catalog_slice){"", 0};
    return true;
  }
  for (py_id argument = list ? py_first_named(tree, list) : 0; argument; argument = py_next_named(tree, argument)) {
    enum py_kind kind = py_kind(tree, argument);
    if (kind == PY_LIST_SPLAT || call->keywords_count == ARGUMENTS_MOST || call->positional == ARGUMENTS_MOST)
      return false;
    py_id name = kind == PY_KEYWORD_ARGUMENT ? py_field(tree, argument, PY_FIELD_NAME) : 0;
    if (kind == PY_DICTIONARY_SPLAT)
      call->more = true;
    else if (name)
      arguments->keywords[call->keywords_count++] = text_of(tree, name);
    else
      arguments->words[call->positional++] = word_of(tree, argument);
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
  size_t prefix = strlen(PY_OPERATORS), operators = prefix + strlen(unit->scan->catalog->library.op_namespace);
  if (!value.path)
    return;
  bool operator= operators> prefix && strncmp(value.path, PY_OPERATORS, prefix) == 0 &&
      strncmp(value.path + prefix, unit->scan->catalog->library.op_namespace, operators - prefix) == 0 &&
      value.path[operators] == '.';
  const char *last = operator? value.path + operators : strrchr(value.path, '.');
  if (!last || !(operator|| py_is_package(unit->scan, value.path)))
    return;
  const char *module = arena_copy(&unit->arena, value.path, (size_t)(last - value.path));
  const char *name = arena_copy(&unit->arena, last + 1, strcspn(last + 1, operator? "." : ""));
  struct changed changed;
  changed_find(unit->scan, operator? CATALOG_CHANGED_OPERATOR : CATALOG_CHANGED_PYTHON, operator? NULL : module, name,
               &changed);
  if (!changed.count ||
      (operator? rules_operator_removed(unit->scan, name) : rules_python_removed(unit->scan, module, name)))
    return;
  struct arguments arguments;
  enum level level;
  char *message = changed_judge(&changed, read_call(tree, node, &arguments) ? &arguments.call : NULL, &level);
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
