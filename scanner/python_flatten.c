/* The tree of tree-sitter as a flat list. It has nodes of the grammar that nobody sees between those that count; its
 * cursor goes through all of them again for each step, and takes a fifth of the time of parsing. So its own structures
 * are read here, those of the release that the build fetches. */
#include "scanner/python_front.h"

#include <stdlib.h>
#include <subtree.h>
#include <tree_sitter/api.h>

#include <language.h>

/* The children of a node, seen or not, that are being gone through. */
struct descent {
  const Subtree *children;
  uint32_t count, next, place; /* place: of the next one in the grammar's rule, which does not count comments */
  uint32_t at;                 /* the end of the one before */
  const TSSymbol *aliases;     /* by place; NULL: none */
  const TSFieldMapEntry *fields, *fields_end;
  TSFieldId field; /* of an unseen node: what it is for its parent, and so its children for the next one seen */
  bool seen;
};

/* The nodes that are seen above a level. */
struct above {
  py_id node, last_child;
};

struct flattening {
  struct py_tree *tree;
  const struct py_numbers *numbers;
  const TSLanguage *language;
  uint32_t shift; /* offset of the text in the file */
  struct descent *levels;
  struct above *above;
  uint32_t nodes_capacity, levels_count, levels_capacity, above_count, above_capacity;
};

/* A carriage return before the newline is no part of a comment. */
uint32_t py_comment_end(const uint8_t *bytes, uint32_t start, uint32_t end) {
  while (end > start && bytes[end - 1] == '\r')
    end--;
  return end;
}

static uint8_t kind_of(const struct flattening *f, TSSymbol symbol) {
  symbol = symbol < f->numbers->kinds_count ? f->language->public_symbol_map[symbol] : symbol;
  return symbol < f->numbers->kinds_count ? f->numbers->kinds[symbol] : PY_ERROR;
}

static py_id add_node(struct flattening *f, Subtree node, TSSymbol symbol, TSFieldId field, uint32_t start) {
  struct py_tree *tree = f->tree;
  struct above *above = f->above_count ? &f->above[f->above_count - 1] : NULL;
  PY_GROW(tree->nodes, tree->count, f->nodes_capacity);
  py_id id = tree->count++;
  struct py_node *new = &tree->nodes[id];
  *new = (struct py_node){.start = start + f->shift,
                          .end = start + ts_subtree_size(node).bytes + f->shift,
                          .parent = above ? above->node : 0,
                          .kind = kind_of(f, symbol),
                          .field = field < f->numbers->fields_count ? f->numbers->fields[field] : PY_FIELD_NONE};
  if (new->kind == PY_COMMENT)
    new->end = py_comment_end(tree->bytes, new->start, new->end);
  if (above && above->last_child)
    tree->nodes[above->last_child].next = id;
  if (above)
    above->last_child = id;
  if (!tree->broken && (new->kind == PY_ERROR || ts_subtree_missing(node))) {
    tree->broken = true;
    tree->broken_at = new->start;
  }
  return id;
}

/* Goes down into the node, which is `id` when it is seen. */
static void enter(struct flattening *f, Subtree node, bool seen, py_id id, TSFieldId field, uint32_t start) {
  uint32_t count = ts_subtree_child_count(node);
  if (count == 0)
    return;
  PY_GROW(f->levels, f->levels_count, f->levels_capacity);
  struct descent *level = &f->levels[f->levels_count++];
  *level = (struct descent){.children = ts_subtree_children(node),
                            .count = count,
                            .at = start,
                            .aliases = ts_language_alias_sequence(f->language, node.ptr->production_id),
                            .field = field,
                            .seen = seen};
  ts_language_field_map(f->language, node.ptr->production_id, &level->fields, &level->fields_end);
  if (!seen)
    return;
  PY_GROW(f->above, f->above_count, f->above_capacity);
  f->above[f->above_count++] = (struct above){id, 0};
}

static void step(struct flattening *f) {
  struct descent *level = &f->levels[f->levels_count - 1];
  if (level->next == level->count) {
    f->above_count -= level->seen;
    f->levels_count--;
    return;
  }
  Subtree child = level->children[level->next];
  bool extra = ts_subtree_extra(child);
  uint32_t start = level->at + (level->next ? ts_subtree_padding(child).bytes : 0), place = level->place;
  level->next++;
  level->place += !extra;
  level->at = start + ts_subtree_size(child).bytes;
  TSSymbol alias = !extra && level->aliases ? level->aliases[place] : 0;
  bool seen = alias || ts_subtree_visible(child);
  TSFieldId field = extra || level->seen ? 0 : level->field;
  for (const TSFieldMapEntry *entry = level->fields; !extra && entry < level->fields_end; entry++)
    if (!entry->inherited && entry->child_index == place) {
      field = entry->field_id;
      break;
    }
  py_id id = seen ? add_node(f, child, alias ? alias : ts_subtree_symbol(child), field, start) : 0;
  /* Escapes are read from the text. */
  if (!seen || f->tree->nodes[id].kind != PY_STRING_CONTENT)
    enter(f, child, seen, id, field, start);
}

void py_flatten(struct py_tree *tree, const struct TSTree *parsed, const struct py_numbers *numbers, size_t start) {
  TSNode node = ts_tree_root_node(parsed);
  Subtree root = *(const Subtree *)node.id;
  struct flattening f = {
      .tree = tree, .numbers = numbers, .language = ts_tree_language(parsed), .shift = (uint32_t)start};
  py_id id = add_node(&f, root, ts_subtree_symbol(root), 0, ts_node_start_byte(node));
  enter(&f, root, true, id, 0, ts_node_start_byte(node));
  while (f.levels_count)
    step(&f);
  free(f.levels);
  free(f.above);
}
