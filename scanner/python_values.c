/* Which package, module or operator namespace an expression is. Names are followed through imports, assignments, the
 * functions that import by name, and one step into another module of the tree. */
#include "scanner/python_front.h"

#include <stdlib.h>

#define ATTRIBUTES_MAX 32

bool py_is_package(const struct scan *scan, const char *path) {
  const char *package = scan->catalog->library.package;
  size_t length = strlen(package);
  return path && strncmp(path, package, length) == 0 && (path[length] == '\0' || path[length] == '.');
}

bool py_is_operators(const struct scan *scan, const char *path) {
  return strncmp(path, PY_OPERATORS, sizeof PY_OPERATORS - 1) == 0 &&
         py_is_namespace(scan, path + sizeof PY_OPERATORS - 1);
}

bool py_is_namespace(const struct scan *scan, const char *word) {
  const char *name = scan->catalog->library.op_namespace;
  return *name && strcmp(word, name) == 0;
}

bool py_is_owner(const struct scan *scan, const char *path) {
  return py_is_package(scan, path) || (path && (py_is_operators(scan, path) || strcmp(path, PY_LIBRARY) == 0));
}

bool py_names_owner(const struct scan *scan, const uint8_t *bytes, size_t size) {
  const char *package = scan->catalog->library.package, *name = scan->catalog->library.op_namespace;
  return memmem(bytes, size, package, strlen(package)) || (*name && memmem(bytes, size, name, strlen(name)));
}

const char *py_returned(struct py_unit *unit, const char *path) {
  size_t length = path ? strlen(path) : 0, tail = strlen(PY_RETURNED);
  return length > tail && strcmp(path + length - tail, PY_RETURNED) == 0 ? arena_copy(&unit->arena, path, length - tail)
                                                                         : NULL;
}

py_id py_call_name(const struct py_tree *tree, py_id call) {
  py_id function = py_unwrap(tree, py_field(tree, call, PY_FIELD_FUNCTION));
  if (function && py_kind(tree, function) == PY_ATTRIBUTE)
    function = py_field(tree, function, PY_FIELD_ATTRIBUTE);
  return function && py_kind(tree, function) == PY_IDENTIFIER ? function : 0;
}

py_id py_argument(const struct py_tree *tree, py_id call, unsigned position, const char *keyword) {
  py_id list = py_field(tree, call, PY_FIELD_ARGUMENTS);
  if (!list || py_kind(tree, list) != PY_ARGUMENT_LIST)
    return 0;
  unsigned at = 0;
  for (py_id argument = py_first_named(tree, list); argument; argument = py_next_named(tree, argument)) {
    if (py_kind(tree, argument) == PY_KEYWORD_ARGUMENT) {
      py_id name = py_field(tree, argument, PY_FIELD_NAME);
      if (keyword && name && py_is(tree, name, keyword))
        return py_field(tree, argument, PY_FIELD_VALUE);
    } else if (at++ == position) {
      return argument;
    }
  }
  return 0;
}

/* The call whose argument the node is, through a keyword. */
py_id py_argument_of(const struct py_tree *tree, py_id node) {
  py_id parent = py_parent(tree, node);
  if (py_kind(tree, parent) == PY_KEYWORD_ARGUMENT)
    parent = py_parent(tree, parent);
  return py_kind(tree, parent) == PY_ARGUMENT_LIST ? py_parent(tree, parent) : 0;
}

static struct py_value evaluate(struct py_unit *unit, py_id node, unsigned depth);

/* --- names -------------------------------------------------------------------------------------------------------- */

/* name = None: a stand-in until another binding gives the value. */
static bool is_nothing(const struct py_tree *tree, const struct py_binding *binding) {
  py_id node = binding->kind == PY_BIND_PARAMETER ? 0 : py_unwrap(tree, binding->value);
  return node && (py_kind(tree, node) == PY_NONE || py_kind(tree, node) == PY_FALSE);
}

/* Does the binding happen before the use, on every way to it? */
static bool surely_before(const struct py_tree *tree, const struct py_binding *binding, py_id use) {
  return binding->node < use && py_within(tree, use, py_parent(tree, binding->statement));
}

/* Do both stand in one loop, so that the later one comes first in the next round? */
static bool share_loop(const struct py_tree *tree, py_id a, py_id b) {
  for (py_id node = py_parent(tree, b); node; node = py_parent(tree, node))
    if ((py_kind(tree, node) == PY_FOR_STATEMENT || py_kind(tree, node) == PY_WHILE_STATEMENT) &&
        py_within(tree, a, node))
      return true;
  return false;
}

static struct py_value import_value(struct py_unit *unit, const struct py_binding *binding) {
  struct py_value value = {.path = binding->path, .statement = binding->statement};
  uint8_t guards = unit->guards ? unit->guards[binding->statement] : 0;
  value.flags |= guards & (PY_GUARD_TRY | PY_GUARD_HANDLER) ? PY_VALUE_GUARDED : 0u;
  value.flags |= guards & PY_GUARD_VENDOR ? PY_VALUE_VENDOR : 0u;
  value.flags |= binding->written != binding->scope ? PY_VALUE_ELSEWHERE : 0u;
  if (binding->module && !py_is_package(unit->scan, binding->module)) {
    const char *last = strrchr(binding->path, '.');
    const struct py_export *from =
        py_index_find(unit->scan, unit->path, binding->module, last ? last + 1 : binding->path);
    if (from) {
      value.path = from->path;
      value.flags |= (from->guarded ? PY_VALUE_FOREIGN : 0u) | (from->assigned ? PY_VALUE_ASSIGNED : 0u);
    }
  }
  return value;
}

/* What the function returns, if only in one of its branches: a value of the package, as "sgl_kernel()". */
static struct py_value function_value(struct py_unit *unit, py_id function, unsigned depth) {
  const struct py_tree *tree = &unit->tree;
  for (py_id node = function, end = py_subtree_end(tree, function); node < end; node++) {
    if (py_kind(tree, node) != PY_RETURN_STATEMENT || unit->scopes.scopes[unit->scopes.of[node]].node != function)
      continue;
    struct py_value value = evaluate(unit, py_first_named(tree, node), depth + 1);
    if (py_is_owner(unit->scan, value.path)) {
      value.path = py_text_format(&unit->arena, "%s" PY_RETURNED, value.path);
      return value;
    }
  }
  return (struct py_value){0};
}

/* One of the values of a literal table: for kernels in (sgl_kernel, other). */
static struct py_value element_value(struct py_unit *unit, py_id list, unsigned depth) {
  const struct py_tree *tree = &unit->tree;
  enum py_kind kind = py_kind(tree, list);
  if (kind == PY_LIST || kind == PY_TUPLE || kind == PY_SET)
    for (py_id element = py_first_named(tree, list); element; element = py_next_named(tree, element)) {
      struct py_value value = element_value(unit, element, depth);
      if (py_is_owner(unit->scan, value.path))
        return value;
    }
  py_id root = list; /* dotted names only: they are worked out once, however often they stand in tables */
  while (root && py_kind(tree, root) == PY_ATTRIBUTE)
    root = py_field(tree, root, PY_FIELD_OBJECT);
  return root && py_kind(tree, root) == PY_IDENTIFIER ? evaluate(unit, list, depth + 1) : (struct py_value){0};
}

/* The function that the binding defines, or none. */
static py_id defined_function(const struct py_tree *tree, const struct py_binding *binding) {
  py_id parent = py_parent(tree, binding->node);
  return binding->kind == PY_BIND_OTHER && py_kind(tree, parent) == PY_FUNCTION_DEFINITION ? parent : 0;
}

/* What a binding gives its name. Each is worked out once; one that depends on itself gives nothing. */
static struct py_value binding_value(struct py_unit *unit, uint32_t index, unsigned depth) {
  enum { UNKNOWN, BUSY, KNOWN };
  const struct py_binding *binding = &unit->scopes.bindings[index];
  if (binding->kind == PY_BIND_IMPORT)
    return import_value(unit, binding);
  struct py_value value = {0};
  py_id function = defined_function(&unit->tree, binding);
  if (!binding->value && !function)
    return value;
  if (!unit->binding_values) {
    unit->binding_values = arena_alloc(&unit->arena, unit->scopes.bindings_count * sizeof *unit->binding_values);
    unit->binding_states = arena_alloc(&unit->arena, unit->scopes.bindings_count);
  }
  if (unit->binding_states[index] == KNOWN)
    return unit->binding_values[index];
  if (unit->binding_states[index] == BUSY)
    return value;
  unit->binding_states[index] = BUSY;
  value = function                        ? function_value(unit, function, depth)
          : binding->kind == PY_BIND_LOOP ? element_value(unit, binding->value, depth)
                                          : evaluate(unit, binding->value, depth + 1);
  value.flags |= PY_VALUE_ASSIGNED;
  value.statement = 0;
  if (binding->kind == PY_BIND_WITH && value.path && strcmp(value.path, PY_LIBRARY) != 0)
    value.path = NULL;
  unit->binding_values[index] = value;
  unit->binding_states[index] = KNOWN;
  return value;
}

struct py_value py_chain_value(struct py_unit *unit, uint32_t first, py_id use, bool deferred, unsigned depth) {
  const struct py_tree *tree = &unit->tree;
  const struct py_binding *list = unit->scopes.bindings;
  struct py_value result = {0};
  /* Which bindings can be the one that counts: from the last that surely comes before the use. */
  uint32_t from = first;
  bool before = false, sure = false;
  for (uint32_t i = first; !deferred && i != PY_NO_BINDING; i = list[i].next) {
    before = before || list[i].node < use;
    if (list[i].kind != PY_BIND_DECLARE && surely_before(tree, &list[i], use)) {
      from = i;
      sure = true;
    }
  }
  bool active = !sure;
  for (uint32_t i = first; i != PY_NO_BINDING; i = list[i].next) {
    active = active || i == from;
    bool counts = active && (deferred || !before || list[i].node < use || share_loop(tree, use, list[i].node));
    if (!counts || list[i].kind == PY_BIND_DECLARE || is_nothing(tree, &list[i]))
      continue;
    struct py_value value = binding_value(unit, i, depth);
    if (value.path && result.path && strcmp(value.path, result.path) == 0)
      result.flags |= value.flags & (PY_VALUE_GUARDED | PY_VALUE_VENDOR);
    else if (value.path &&
             (!result.path || (!py_is_owner(unit->scan, result.path) && py_is_owner(unit->scan, value.path))))
      result = value;
  }
  if (!result.path || !py_is_owner(unit->scan, result.path))
    return result;
  /* A name that means something else too, if only elsewhere, is nothing to edit. */
  for (uint32_t i = first; i != PY_NO_BINDING; i = list[i].next) {
    if (list[i].kind == PY_BIND_DECLARE || is_nothing(tree, &list[i]))
      continue;
    struct py_value value = binding_value(unit, i, depth);
    if (!value.path || strcmp(value.path, result.path) != 0 || ((value.flags ^ result.flags) & PY_VALUE_ASSIGNED))
      result.flags |= PY_VALUE_AMBIGUOUS;
  }
  return result;
}

static struct py_value name_value(struct py_unit *unit, py_id node, unsigned depth) {
  const struct py_node *at = &unit->tree.nodes[node];
  uint32_t name = py_node_name(&unit->scopes, node);
  bool deferred;
  uint32_t first = py_lookup(&unit->scopes, unit->scopes.of[node], name, &deferred);
  struct py_value value = {0};
  if (first != PY_NO_BINDING) {
    value = py_chain_value(unit, first, node, deferred, depth);
    value.root = node;
    return value;
  }
  /* Builtins go by their own name, and cannot be a module of that name. */
  const char *text = arena_copy(&unit->arena, unit->tree.bytes + at->start, at->end - at->start);
  if (strcmp(text, "__import__") == 0 || strcmp(text, "getattr") == 0) {
    value.path = text;
    return value;
  }
  for (uint32_t i = 0; i < unit->scopes.stars_count; i++) {
    const struct py_export *from = py_index_find(unit->scan, unit->path, unit->scopes.stars[i].module, text);
    if (from)
      return (struct py_value){
          .path = from->path, .flags = PY_VALUE_ASSIGNED | (from->guarded ? PY_VALUE_FOREIGN : 0u), .root = node};
  }
  return value;
}

/* --- expressions -------------------------------------------------------------------------------------------------- */

static void append(struct py_unit *unit, struct py_value *value, py_id attribute) {
  const struct py_node *at = &unit->tree.nodes[attribute];
  const char *name = arena_copy(&unit->arena, unit->tree.bytes + at->start, at->end - at->start);
  if (strcmp(value->path, "torch") == 0 && (strcmp(name, "torch") == 0 || strcmp(name, "_ops") == 0))
    return; /* torch.torch is torch, torch._ops.ops is torch.ops */
  const struct py_export *from =
      py_is_owner(unit->scan, value->path) ? NULL : py_index_find(unit->scan, unit->path, value->path, name);
  if (from) {
    value->path = from->path;
    value->flags |= PY_VALUE_ASSIGNED | (from->guarded ? PY_VALUE_FOREIGN : 0u);
    return;
  }
  value->path = py_text_format(&unit->arena, "%s.%s", value->path, name);
}

/* --- attributes that keep the package ----------------------------------------------------------------------------- */

/* self.kernels = sgl_kernel */
struct py_kept {
  py_id object, attribute;
  struct py_value value;
};

static py_id class_around(const struct py_tree *tree, py_id node) {
  while (node && py_kind(tree, node) != PY_CLASS_DEFINITION)
    node = py_parent(tree, node);
  return node;
}

static void keep_attributes(struct py_unit *unit) {
  const struct py_tree *tree = &unit->tree;
  unit->kept_known = true;
  for (py_id node = 1; node < tree->count; node++) {
    py_id left = py_kind(tree, node) == PY_ASSIGNMENT ? py_field(tree, node, PY_FIELD_LEFT) : 0;
    py_id object = left && py_kind(tree, left) == PY_ATTRIBUTE ? py_field(tree, left, PY_FIELD_OBJECT) : 0;
    if (!object || py_kind(tree, object) != PY_IDENTIFIER)
      continue;
    struct py_value value = evaluate(unit, py_field(tree, node, PY_FIELD_RIGHT), 1);
    if (!py_is_owner(unit->scan, value.path))
      continue;
    value.flags |= PY_VALUE_ASSIGNED;
    PY_GROW(unit->kept, unit->kept_count, unit->kept_capacity);
    unit->kept[unit->kept_count++] = (struct py_kept){object, py_field(tree, left, PY_FIELD_ATTRIBUTE), value};
  }
}

/* The class whose attributes `object` has: of self and cls the one around, else that of its name. */
static py_id class_of(struct py_unit *unit, py_id object) {
  const struct py_tree *tree = &unit->tree;
  if (py_is(tree, object, "self") || py_is(tree, object, "cls"))
    return class_around(tree, object);
  bool deferred;
  uint32_t binding = py_lookup(&unit->scopes, unit->scopes.of[object], py_node_name(&unit->scopes, object), &deferred);
  py_id parent = binding == PY_NO_BINDING ? 0 : py_parent(tree, unit->scopes.bindings[binding].node);
  return py_kind(tree, parent) == PY_CLASS_DEFINITION ? parent : 0;
}

static bool is_property(const struct py_tree *tree, py_id function) {
  py_id around = py_parent(tree, function);
  for (py_id node = py_first_named(tree, around);
       py_kind(tree, around) == PY_DECORATED_DEFINITION && node && node != function; node = py_next_named(tree, node))
    for (py_id word = node; word < py_subtree_end(tree, node); word++)
      if (py_is(tree, word, "property") || py_is(tree, word, "cached_property"))
        return true;
  return false;
}

/* What the body of a class gives its attribute: a name that it binds, a method, a property. */
static struct py_value class_value(struct py_unit *unit, py_id class, py_id attribute, unsigned depth) {
  const struct py_tree *tree = &unit->tree;
  uint32_t first =
      py_scope_binding(&unit->scopes, py_scope_made(&unit->scopes, class), py_node_name(&unit->scopes, attribute));
  struct py_value value = {0};
  if (first == PY_NO_BINDING)
    return value;
  value = py_chain_value(unit, first, 0, true, depth + 1);
  py_id function = defined_function(tree, &unit->scopes.bindings[first]);
  if (function && is_property(tree, function))
    value.path = py_returned(unit, value.path);
  value.flags |= PY_VALUE_ASSIGNED;
  return value;
}

/* self.kernels, config.kernels: what the class or an assignment in the file gives the attribute. */
static struct py_value kept_value(struct py_unit *unit, py_id object, py_id attribute, unsigned depth) {
  const struct py_tree *tree = &unit->tree;
  if (!unit->kept_known)
    keep_attributes(unit);
  py_id class = class_of(unit, object);
  struct py_value value = {0};
  for (uint32_t i = 0; i < unit->kept_count; i++)
    if (py_same_text(tree, unit->kept[i].attribute, attribute) &&
        (class ? class_of(unit, unit->kept[i].object) == class : py_same_text(tree, unit->kept[i].object, object)))
      return unit->kept[i].value;
  return class ? class_value(unit, class, attribute, depth) : value;
}

static struct py_value attribute_value(struct py_unit *unit, py_id node, unsigned depth) {
  const struct py_tree *tree = &unit->tree;
  py_id names[ATTRIBUTES_MAX];
  unsigned count = 0;
  while (node && py_kind(tree, node) == PY_ATTRIBUTE) {
    if (count == ATTRIBUTES_MAX)
      return (struct py_value){0};
    names[count++] = py_field(tree, node, PY_FIELD_ATTRIBUTE);
    node = py_unwrap(tree, py_field(tree, node, PY_FIELD_OBJECT));
  }
  struct py_value value = evaluate(unit, node, depth + 1);
  if (!value.path && count > 0 && names[count - 1] && py_kind(tree, node) == PY_IDENTIFIER)
    value = kept_value(unit, node, names[--count], depth);
  while (value.path && count > 0 && names[count - 1])
    append(unit, &value, names[--count]);
  return value;
}

/* One of two values: the package, if one of them is it and the other is nothing or unknown. */
static struct py_value either(struct py_unit *unit, py_id a, py_id b, unsigned depth) {
  struct py_value first = evaluate(unit, a, depth + 1), second = evaluate(unit, b, depth + 1);
  struct py_value value = first.path && (py_is_owner(unit->scan, first.path) || !second.path) ? first : second;
  value.flags |= PY_VALUE_ASSIGNED;
  return value;
}

static const char *joined(struct py_unit *unit, const char *path, const char *name) {
  return py_text_format(&unit->arena, "%s%s%s", path, *name == '.' ? "" : ".", name);
}

/* import_module("sgl_kernel.gemm"), __import__("sgl_kernel"), importorskip(...), getattr(sgl_kernel, "gemm"),
 * Library("sgl_kernel", "DEF"), sys.modules.get("sgl_kernel"). */
static const char *call_path(struct py_unit *unit, py_id call, unsigned depth) {
  const struct py_tree *tree = &unit->tree;
  py_id name = py_call_name(tree, call);
  if (!name)
    return NULL;
  if (py_is(tree, name, "Library") || py_is(tree, name, "_scoped_library")) {
    const char *library = py_constant_at(unit, py_argument(tree, call, 0, "ns"), depth + 1);
    return library && py_is_namespace(unit->scan, library) ? PY_LIBRARY : NULL;
  }
  struct py_value function = evaluate(unit, py_field(tree, call, PY_FIELD_FUNCTION), depth + 1);
  if (!function.path)
    return NULL;
  const char *returned = py_returned(unit, function.path);
  if (returned)
    return returned;
  if (strcmp(function.path, "getattr") == 0) {
    struct py_value object = evaluate(unit, py_argument(tree, call, 0, NULL), depth + 1);
    const char *attribute = object.path ? py_constant_at(unit, py_argument(tree, call, 1, NULL), depth + 1) : NULL;
    return attribute ? joined(unit, object.path, attribute) : NULL;
  }
  if (strcmp(function.path, "typing.cast") == 0)
    return evaluate(unit, py_argument(tree, call, 1, "val"), depth + 1).path;
  if (strcmp(function.path, "importlib.reload") == 0)
    return evaluate(unit, py_argument(tree, call, 0, "module"), depth + 1).path;
  bool import = strcmp(function.path, "importlib.import_module") == 0;
  if (import || strcmp(function.path, "pytest.importorskip") == 0 || strcmp(function.path, "sys.modules.get") == 0) {
    const char *module = py_constant_at(unit, py_argument(tree, call, 0, import ? "name" : "modname"), depth + 1);
    if (!module || *module != '.')
      return module;
    const char *package = py_constant_at(unit, py_argument(tree, call, 1, "package"), depth + 1);
    return package && py_is_package(unit->scan, package) && module[1] != '.' ? joined(unit, package, module) : NULL;
  }
  if (strcmp(function.path, "__import__") == 0) {
    const char *module = py_constant_at(unit, py_argument(tree, call, 0, "name"), depth + 1);
    if (module && !py_argument(tree, call, 3, "fromlist"))
      return arena_copy(&unit->arena, module, strcspn(module, "."));
    return module;
  }
  return NULL;
}

/* sys.modules["sgl_kernel"]; an entry of a literal table, if only one of several: KERNELS[name]. */
static struct py_value subscript_value(struct py_unit *unit, py_id node, unsigned depth) {
  const struct py_tree *tree = &unit->tree;
  py_id object = py_field(tree, node, PY_FIELD_VALUE), key = py_field(tree, node, PY_FIELD_SUBSCRIPT);
  struct py_value value = evaluate(unit, object, depth + 1);
  if (value.path)
    return (struct py_value){strcmp(value.path, "sys.modules") == 0 ? py_constant_at(unit, key, depth + 1) : NULL,
                             PY_VALUE_ASSIGNED, 0, 0};
  py_id table = py_unwrap(tree, object);
  if (table && py_kind(tree, table) == PY_IDENTIFIER)
    table = py_unwrap(tree, py_single_value(unit, table));
  if (table && py_kind(tree, table) == PY_DICTIONARY) {
    const char *wanted = py_constant_at(unit, key, depth + 1);
    for (py_id pair = py_first_named(tree, table); pair && !py_is_owner(unit->scan, value.path);
         pair = py_next_named(tree, pair)) {
      const char *name = py_constant_at(unit, py_field(tree, pair, PY_FIELD_KEY), depth + 1);
      if (!wanted || (name && strcmp(name, wanted) == 0))
        value = element_value(unit, py_field(tree, pair, PY_FIELD_VALUE), depth);
    }
  } else if (table) {
    value = element_value(unit, table, depth);
  }
  value.flags |= PY_VALUE_ASSIGNED;
  return value;
}

static struct py_value evaluate(struct py_unit *unit, py_id node, unsigned depth) {
  const struct py_tree *tree = &unit->tree;
  struct py_value value = {0};
  node = py_unwrap(tree, node);
  if (!node || depth > PY_DEPTH_MAX)
    return value;
  switch (py_kind(tree, node)) {
  case PY_IDENTIFIER:
    return name_value(unit, node, depth);
  case PY_ATTRIBUTE:
    return attribute_value(unit, node, depth);
  case PY_CALL:
    value.path = call_path(unit, node, depth);
    value.flags = PY_VALUE_ASSIGNED;
    return value;
  case PY_SUBSCRIPT:
    return subscript_value(unit, node, depth);
  case PY_LAMBDA:
    value = evaluate(unit, py_field(tree, node, PY_FIELD_BODY), depth + 1);
    value.path =
        py_is_owner(unit->scan, value.path) ? py_text_format(&unit->arena, "%s" PY_RETURNED, value.path) : NULL;
    return value;
  case PY_NAMED_EXPRESSION:
  case PY_ASSIGNMENT: /* the inner one of a = b = value */
    value = evaluate(unit, py_field(tree, node, py_kind(tree, node) == PY_ASSIGNMENT ? PY_FIELD_RIGHT : PY_FIELD_VALUE),
                     depth + 1);
    value.flags |= PY_VALUE_ASSIGNED;
    return value;
  case PY_CONDITIONAL_EXPRESSION: {
    py_id first = py_first_named(tree, node), test = first ? py_next_named(tree, first) : 0;
    return either(unit, first, test ? py_next_named(tree, test) : 0, depth);
  }
  case PY_BOOLEAN_OPERATOR:
    return either(unit, py_field(tree, node, PY_FIELD_LEFT), py_field(tree, node, PY_FIELD_RIGHT), depth);
  default:
    return value;
  }
}

struct py_value py_evaluate(struct py_unit *unit, py_id node) {
  return evaluate(unit, node, 0);
}
