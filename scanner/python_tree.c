/* The syntax tree of tree-sitter, copied into a flat list in the order of the text: a node's parent, next sibling and
 * subtree are then found in constant time, and the tree can be walked with a loop. */
#include "scanner/python_front.h"

#include <pthread.h>
#include <stdlib.h>
#include <tree_sitter/api.h>

const TSLanguage *tree_sitter_python(void);

/* A file that takes longer is no source code that somebody wrote: the grammar reads some 5 MB a second, and recovers
 * from errors more slowly. Generous, so that a loaded machine gives the same results. */
#define PARSE_SECONDS 15
#define PARSE_BYTES_A_SECOND 300000
/* Recovering from brackets that do not match is slow in a large file; there they are counted first. */
#define LARGE_BYTES 200000

static pthread_once_t once = PTHREAD_ONCE_INIT;
static uint8_t *kinds, *fields; /* by tree-sitter's numbers; filled once, then read only */
static uint32_t kinds_count, fields_count;

static void number_names(void) {
  static const struct {
    const char *text;
    uint8_t kind;
  } known[] =
      {
#define X(name, spelling) {spelling, PY_##name},
          PY_KINDS(X)
#undef X
      },
    known_fields[] = {
#define X(name, spelling) {spelling, PY_FIELD_##name},
        PY_FIELDS(X)
#undef X
    };
  const TSLanguage *language = tree_sitter_python();
  kinds_count = ts_language_symbol_count(language);
  kinds = scan_alloc(NULL, kinds_count);
  for (uint32_t i = 0; i < kinds_count; i++) {
    kinds[i] = ts_language_symbol_type(language, (TSSymbol)i) == TSSymbolTypeRegular ? PY_OTHER : PY_TOKEN;
    const char *name = ts_language_symbol_name(language, (TSSymbol)i);
    for (size_t k = 0; kinds[i] == PY_OTHER && k < sizeof known / sizeof *known; k++)
      if (strcmp(known[k].text, name) == 0)
        kinds[i] = known[k].kind;
  }
  fields_count = ts_language_field_count(language) + 1;
  fields = scan_alloc(NULL, fields_count);
  for (uint32_t i = 0; i < fields_count; i++) {
    fields[i] = PY_FIELD_NONE;
    const char *name = i ? ts_language_field_name_for_id(language, (TSFieldId)i) : NULL;
    for (size_t k = 0; name && k < sizeof known_fields / sizeof *known_fields; k++)
      if (strcmp(known_fields[k].text, name) == 0)
        fields[i] = known_fields[k].kind;
  }
}

static uint8_t kind_of(TSNode node) {
  TSSymbol symbol = ts_node_symbol(node);
  return symbol < kinds_count ? kinds[symbol] : PY_ERROR;
}

struct open_level {
  py_id parent, last_child;
};

static void flatten(struct py_tree *tree, TSNode root, size_t start) {
  uint32_t capacity = 0, depth = 0, open_capacity = 0;
  struct open_level *open = NULL;
  TSTreeCursor cursor = ts_tree_cursor_new(root);
  for (bool more = true; more;) {
    TSNode node = ts_tree_cursor_current_node(&cursor);
    TSFieldId field = ts_tree_cursor_current_field_id(&cursor);
    PY_GROW(tree->nodes, tree->count, capacity);
    py_id id = tree->count++;
    tree->nodes[id] = (struct py_node){.start = ts_node_start_byte(node) + (uint32_t)start,
                                       .end = ts_node_end_byte(node) + (uint32_t)start,
                                       .parent = depth ? open[depth - 1].parent : 0,
                                       .kind = kind_of(node),
                                       .field = field < fields_count ? fields[field] : PY_FIELD_NONE};
    if (depth && open[depth - 1].last_child)
      tree->nodes[open[depth - 1].last_child].next = id;
    if (depth)
      open[depth - 1].last_child = id;
    if (!tree->broken && (tree->nodes[id].kind == PY_ERROR || ts_node_is_missing(node))) {
      tree->broken = true;
      tree->broken_at = tree->nodes[id].start;
    }
    /* Escapes are read from the text. */
    if (tree->nodes[id].kind != PY_STRING_CONTENT && ts_tree_cursor_goto_first_child(&cursor)) {
      PY_GROW(open, depth, open_capacity);
      open[depth++] = (struct open_level){id, 0};
      continue;
    }
    while (!ts_tree_cursor_goto_next_sibling(&cursor)) {
      if (!ts_tree_cursor_goto_parent(&cursor)) {
        more = false;
        break;
      }
      depth--;
    }
  }
  ts_tree_cursor_delete(&cursor);
  free(open);
}

static TSTree *parse(TSParser *parser, const uint8_t *bytes, size_t size) {
  ts_parser_set_timeout_micros(parser, (uint64_t)(PARSE_SECONDS + size / PARSE_BYTES_A_SECOND) * 1000000);
  TSTree *parsed = ts_parser_parse_string(parser, NULL, (const char *)bytes, (uint32_t)size);
  if (!parsed)
    ts_parser_reset(parser);
  return parsed;
}

/* Python 3.14's t"..." has the syntax of f"...", which the grammar knows. NULL when the text has none. */
static uint8_t *without_templates(const uint8_t *bytes, size_t size) {
  uint8_t *copy = NULL;
  for (size_t i = 0; i + 1 < size; i++) {
    if ((bytes[i] != 't' && bytes[i] != 'T') || (i && py_word_byte(bytes[i - 1]) && !strchr("rR", bytes[i - 1])))
      continue;
    size_t quote = i + 1 < size && (bytes[i + 1] == 'r' || bytes[i + 1] == 'R') ? i + 2 : i + 1;
    if (quote >= size || (bytes[quote] != '"' && bytes[quote] != '\''))
      continue;
    if (!copy)
      copy = memcpy(scan_alloc(NULL, size), bytes, size);
    copy[i] = 'f';
  }
  return copy;
}

/* Do the brackets outside of strings and comments match? A string in a field of an f-string may be taken for code, so
 * this is asked only of large files. */
static bool brackets_match(const uint8_t *bytes, size_t size) {
  uint8_t open[PY_BRACKETS_MAX];
  unsigned depth = 0;
  for (size_t i = 0; i < size; i++) {
    uint8_t c = bytes[i];
    if (c == '#') {
      while (i < size && bytes[i] != '\n')
        i++;
    } else if (c == '"' || c == '\'') {
      bool triple = size - i >= 3 && bytes[i + 1] == c && bytes[i + 2] == c;
      for (i += triple ? 3 : 1; i < size; i++) {
        if (bytes[i] == '\\')
          i++;
        else if (bytes[i] == c && (!triple || (size - i >= 3 && bytes[i + 1] == c && bytes[i + 2] == c)))
          break;
        else if (bytes[i] == '\n' && !triple)
          return false;
      }
      i += triple ? 2 : 0;
    } else if (c == '(' || c == '[' || c == '{') {
      if (depth == PY_BRACKETS_MAX)
        return false;
      open[depth++] = c == '(' ? ')' : c == '[' ? ']' : '}';
    } else if (c == ')' || c == ']' || c == '}') {
      if (!depth || open[--depth] != c)
        return false;
    }
  }
  return depth == 0;
}

void py_tree_open(struct py_tree *tree, const uint8_t *bytes, size_t size, size_t start) {
  pthread_once(&once, number_names);
  *tree = (struct py_tree){.bytes = bytes};
  if (size > INT32_MAX) {
    tree->refused = "it is larger than 2 GiB";
    return;
  }
  if (size - start > LARGE_BYTES && !brackets_match(bytes + start, size - start)) {
    tree->refused = "its brackets or quotes do not match";
    return;
  }
  tree->start = (uint32_t)start;
  tree->end = (uint32_t)size;
  TSParser *parser = ts_parser_new();
  ts_parser_set_language(parser, tree_sitter_python());
  TSTree *parsed = parse(parser, bytes + start, size - start);
  if (parsed && ts_node_has_error(ts_tree_root_node(parsed))) {
    uint8_t *copy = without_templates(bytes + start, size - start);
    TSTree *second = copy ? parse(parser, copy, size - start) : NULL;
    if (second && !ts_node_has_error(ts_tree_root_node(second))) {
      ts_tree_delete(parsed);
      parsed = second;
    } else if (second) {
      ts_tree_delete(second);
    }
    free(copy);
  }
  if (parsed) {
    flatten(tree, ts_tree_root_node(parsed), start);
    ts_tree_delete(parsed);
  } else {
    tree->refused = "parsing it takes too long";
  }
  ts_parser_delete(parser);
}

void py_tree_close(struct py_tree *tree) {
  free(tree->nodes);
  *tree = (struct py_tree){0};
}

py_id py_subtree_end(const struct py_tree *tree, py_id node) {
  for (;;) {
    if (node == 0)
      return tree->count;
    if (tree->nodes[node].next)
      return tree->nodes[node].next;
    node = tree->nodes[node].parent;
  }
}

py_id py_field(const struct py_tree *tree, py_id node, enum py_field field) {
  py_id child = py_first(tree, node);
  while (child && tree->nodes[child].field != field)
    child = py_next(tree, child);
  return child;
}

static py_id named(const struct py_tree *tree, py_id node) {
  while (node && (py_kind(tree, node) == PY_TOKEN || py_kind(tree, node) == PY_COMMENT ||
                  py_kind(tree, node) == PY_LINE_CONTINUATION))
    node = py_next(tree, node);
  return node;
}

py_id py_first_named(const struct py_tree *tree, py_id node) {
  return named(tree, py_first(tree, node));
}

py_id py_next_named(const struct py_tree *tree, py_id node) {
  return named(tree, py_next(tree, node));
}

bool py_is(const struct py_tree *tree, py_id node, const char *text) {
  size_t length = strlen(text);
  return tree->nodes[node].end - tree->nodes[node].start == length &&
         memcmp(tree->bytes + tree->nodes[node].start, text, length) == 0;
}

bool py_within(const struct py_tree *tree, py_id inner, py_id outer) {
  return inner >= outer && inner < py_subtree_end(tree, outer);
}

py_id py_unwrap(const struct py_tree *tree, py_id node) {
  while (node && py_kind(tree, node) == PY_PARENTHESIZED_EXPRESSION)
    node = py_first_named(tree, node);
  return node;
}

py_id py_statement(const struct py_tree *tree, py_id node) {
  while (node) {
    enum py_kind above = py_kind(tree, py_parent(tree, node));
    if (above == PY_MODULE || above == PY_BLOCK)
      break;
    node = py_parent(tree, node);
  }
  return node;
}
