/* A class: how an object of it is made, and what it offers: methods and values that its body defines, and those of its
 * bases in the package. */
#include "scanner/surface_python.h"

#include <stdlib.h>

/* --- one class ---------------------------------------------------------------------------------------------------- */

/* The fields of a dataclass are its parameters. */
static void read_fields(struct reading *reading, py_id body, struct surface_signature *signature) {
  const struct py_tree *tree = reading->tree;
  struct arena *arena = &reading->surface->arena;
  size_t most = 0, count = 0;
  for (py_id node = py_first(tree, body); node; node = py_next(tree, node))
    most++;
  struct surface_parameter *list = arena_alloc(arena, (most + 1) * sizeof *list);
  for (py_id node = py_first(tree, body); node; node = py_next(tree, node)) {
    py_id field = py_kind(tree, node) == PY_EXPRESSION_STATEMENT ? py_first_named(tree, node) : 0;
    py_id name = field && py_kind(tree, field) == PY_ASSIGNMENT ? py_field(tree, field, PY_FIELD_LEFT) : 0;
    py_id type = name ? py_field(tree, field, PY_FIELD_TYPE) : 0;
    if (!type || py_kind(tree, name) != PY_IDENTIFIER)
      continue;
    py_id value = py_field(tree, field, PY_FIELD_RIGHT);
    list[count++] = (struct surface_parameter){.name = surface_node(arena, tree, name),
                                               .type = surface_node_plain(arena, tree, type),
                                               .value = value ? surface_node_plain(arena, tree, value) : NULL};
  }
  *signature = (struct surface_signature){.parameters = list, .count = count, .returns = "", .split = true};
  signature->text = surface_signature_text(arena, signature);
}

static void add_member(struct reading *reading, struct entry *entry, const char *name, py_id node,
                       const struct surface_signature *signature) {
  if (*name == '_' && strcmp(name, "__call__") != 0)
    return;
  for (size_t i = 0; i < entry->members_count; i++) {
    struct surface_signature *known = &entry->members[i].signature;
    if (strcmp(entry->members[i].name, name) != 0)
      continue;
    if (signature && *known->text && !strstr(known->text, signature->text)) { /* in branches */
      known->text = surface_format(&reading->surface->arena, "%s or %s", known->text, signature->text);
      known->split = false;
    }
    return;
  }
  PY_GROW(entry->members, entry->members_count, entry->members_capacity);
  struct member *member = &entry->members[entry->members_count++];
  *member = (struct member){.name = name, .line = surface_node_line(reading->tree, node)};
  member->signature = signature ? *signature : (struct surface_signature){.text = "", .returns = ""};
}

static void take_method(struct reading *reading, struct entry *entry, py_id function) {
  struct surface_signature signature;
  py_id name_node = py_field(reading->tree, function, PY_FIELD_NAME);
  if (!name_node || surface_decorated(reading, function, "overload"))
    return;
  const char *name = surface_node(&reading->surface->arena, reading->tree, name_node);
  surface_signature_read(reading, function, !surface_decorated(reading, function, "staticmethod"), &signature);
  if (strcmp(name, "__init__") == 0 && !*entry->signature.text)
    entry->signature = signature;
  bool value = surface_decorated(reading, function, "property") ||
               surface_decorated(reading, function, "cached_property") ||
               surface_decorated(reading, function, "setter") || surface_decorated(reading, function, "deleter");
  add_member(reading, entry, name, function, value ? NULL : &signature);
}

/* What the body defines, whatever the conditions around it. */
static void take_body(struct reading *reading, struct entry *entry, py_id body, bool dataclass) {
  const struct py_tree *tree = reading->tree;
  struct arena *arena = &reading->surface->arena;
  for (py_id node = body + 1, end = py_subtree_end(tree, body); node < end;) {
    enum py_kind kind = py_kind(tree, node);
    if (kind == PY_FUNCTION_DEFINITION) {
      take_method(reading, entry, node);
    } else if (kind == PY_CLASS_DEFINITION && py_field(tree, node, PY_FIELD_NAME)) {
      add_member(reading, entry, surface_node(arena, tree, py_field(tree, node, PY_FIELD_NAME)), node, NULL);
    } else if (kind == PY_ASSIGNMENT) {
      py_id left = py_field(tree, node, PY_FIELD_LEFT);
      bool field = dataclass && py_field(tree, node, PY_FIELD_TYPE); /* it is a parameter */
      if (left && py_kind(tree, left) == PY_IDENTIFIER && py_field(tree, node, PY_FIELD_RIGHT) && !field)
        add_member(reading, entry, surface_node(arena, tree, left), node, NULL);
    } else {
      node++;
      continue;
    }
    node = py_subtree_end(tree, node);
  }
}

void surface_class_read(struct reading *reading, py_id class, struct entry *entry) {
  const struct py_tree *tree = reading->tree;
  bool dataclass = surface_decorated(reading, class, "dataclass");
  py_id body = py_field(tree, class, PY_FIELD_BODY);
  for (py_id node = py_first(tree, class); node; node = py_next(tree, node))
    for (py_id base = py_kind(tree, node) == PY_ARGUMENT_LIST ? py_first_named(tree, node) : 0; base;
         base = py_next(tree, base))
      if (py_kind(tree, base) != PY_TOKEN && py_kind(tree, base) != PY_KEYWORD_ARGUMENT) {
        PY_GROW(entry->bases, entry->bases_count, entry->bases_capacity);
        entry->bases[entry->bases_count++] = surface_node_plain(&reading->surface->arena, tree, base);
      }
  if (body)
    take_body(reading, entry, body, dataclass);
  if (body && dataclass && !*entry->signature.text)
    read_fields(reading, body, &entry->signature);
}

void surface_class_free(struct entry *entry) {
  free(entry->members);
  free(entry->bases);
}

/* --- what it offers ----------------------------------------------------------------------------------------------- */

static bool has_member(const struct surface *surface, size_t first, const char *name) {
  for (size_t i = first; i < surface->items_count && surface_may_go_on(surface); i++)
    if (strcmp(surface->items[i].name, name) == 0)
      return true;
  return false;
}

/* A class with its bases in the package, in the order in which their members are found. */
struct line {
  struct {
    const struct module *home;
    const struct entry *entry;
  } * classes;
  size_t count, capacity;
  const char *foreign; /* bases out of the package */
};

static void join_line(const struct surface *surface, struct line *line, const struct module *home,
                      const struct entry *entry) {
  for (size_t i = 0; i < line->count && surface_may_go_on(surface); i++)
    if (line->classes[i].entry == entry)
      return;
  PY_GROW(line->classes, line->count, line->capacity);
  line->classes[line->count].home = home;
  line->classes[line->count++].entry = entry;
}

static void find_bases(struct surface *surface, struct line *line) {
  for (size_t at = 0; at < line->count; at++)
    for (size_t i = 0; i < line->classes[at].entry->bases_count && surface_may_go_on(surface); i++) {
      const char *name = line->classes[at].entry->bases[i];
      const struct module *home = line->classes[at].home;
      const struct entry *base = surface_find_name(surface, home, name, SURFACE_IMPORTS_MOST, &home);
      if (base && base->kind == ENTRY_CLASS)
        join_line(surface, line, home, base);
      else if (strcmp(name, "object") != 0 && !strstr(line->foreign, name))
        line->foreign = surface_format(&surface->arena, "%s%s%s", line->foreign, *line->foreign ? ", " : "", name);
    }
}

void surface_class_add(struct surface *surface, const struct module *home, const struct entry *entry, size_t item) {
  struct line line = {.foreign = ""};
  const char *class = surface->items[item].name;
  bool hidden = surface->items[item].hidden;
  size_t first = surface->items_count;
  join_line(surface, &line, home, entry);
  find_bases(surface, &line);
  for (size_t at = 0; at < line.count; at++) {
    const struct entry *one = line.classes[at].entry;
    for (size_t i = 0; i < one->members_count; i++) {
      const struct member *member = &one->members[i];
      const char *name = surface_format(&surface->arena, "%s.%s", class, member->name);
      if (has_member(surface, first, name))
        continue;
      struct surface_item *added = surface_add(surface, CATALOG_LAYER_PYTHON, name);
      added->home = surface_format(&surface->arena, "%s.%s.%s", line.classes[at].home->name, one->name, member->name);
      added->place = surface_format(&surface->arena, "%s:%u", line.classes[at].home->path, member->line);
      added->signature = member->signature;
      added->class = class;
      added->hidden = hidden;
    }
  }
  surface->items[item].bases = line.foreign;
  free(line.classes);
}
