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
static struct py_numbers numbers; /* filled once, then read only */

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
  py_parser_memory_use();
  numbers.kinds_count = ts_language_symbol_count(language);
  numbers.kinds = scan_alloc(NULL, numbers.kinds_count);
  for (uint32_t i = 0; i < numbers.kinds_count; i++) {
    numbers.kinds[i] = ts_language_symbol_type(language, (TSSymbol)i) == TSSymbolTypeRegular ? PY_OTHER : PY_TOKEN;
    const char *name = ts_language_symbol_name(language, (TSSymbol)i);
    for (size_t k = 0; numbers.kinds[i] == PY_OTHER && k < sizeof known / sizeof *known; k++)
      if (strcmp(known[k].text, name) == 0)
        numbers.kinds[i] = known[k].kind;
  }
  numbers.fields_count = ts_language_field_count(language) + 1;
  numbers.fields = scan_alloc(NULL, numbers.fields_count);
  for (uint32_t i = 0; i < numbers.fields_count; i++) {
    numbers.fields[i] = PY_FIELD_NONE;
    const char *name = i ? ts_language_field_name_for_id(language, (TSFieldId)i) : NULL;
    for (size_t k = 0; name && k < sizeof known_fields / sizeof *known_fields; k++)
      if (strcmp(known_fields[k].text, name) == 0)
        numbers.fields[i] = known_fields[k].kind;
  }
}

/* --- a light look at the text ------------------------------------------------------------------------------------- */

struct span {
  uint32_t start, end;
};

struct code {
  const uint8_t *bytes;
  size_t size, at;
  uint8_t open[PY_BRACKETS_MAX];
  unsigned depth;
  bool broken; /* brackets or quotes do not match */
};

/* Steps over one character of code, a comment or a string; returns where it started. A string in a field of an f-string
 * that has the quotes of its own string is taken for code: what this finds is tried, not trusted. */
static size_t code_step(struct code *code) {
  size_t start = code->at++;
  uint8_t c = code->bytes[start];
  if (c == '#') {
    while (code->at < code->size && code->bytes[code->at] != '\n')
      code->at++;
  } else if (c == '"' || c == '\'') {
    const uint8_t *text = code->bytes + start;
    bool triple = code->size - start >= 3 && text[1] == c && text[2] == c;
    size_t at = start + (triple ? 3 : 1);
    for (; at < code->size; at++) {
      text = code->bytes + at;
      if (*text == '\\')
        at++;
      else if (*text == c && (!triple || (code->size - at >= 3 && text[1] == c && text[2] == c)))
        break;
      else if (*text == '\n' && !triple)
        break;
    }
    code->broken = code->broken || at >= code->size || code->bytes[at] != c;
    at += triple ? 3 : 1;
    code->at = at < code->size ? at : code->size;
  } else if (c == '(' || c == '[' || c == '{') {
    if (code->depth == PY_BRACKETS_MAX)
      code->broken = true;
    else
      code->open[code->depth++] = c == '(' ? ')' : c == '[' ? ']' : '}';
  } else if (c == ')' || c == ']' || c == '}') {
    if (code->depth && code->open[code->depth - 1] == c)
      code->depth--;
    else
      code->broken = true;
  }
  return start;
}

static bool brackets_match(const uint8_t *bytes, size_t size) {
  struct code code = {.bytes = bytes, .size = size};
  while (code.at < size && !code.broken)
    code_step(&code);
  return !code.broken && code.depth == 0;
}

/* The star of `return a, *(b)` or `x[a, *(b)]`: the grammar takes one only before a name there. */
static bool bare_star(const struct code *code, size_t at) {
  const uint8_t *bytes = code->bytes;
  size_t next = at + 1, before = at;
  while (next < code->size && py_blank(bytes[next]))
    next++;
  while (before > 0 && (py_blank(bytes[before - 1]) || bytes[before - 1] == '\n'))
    before--;
  if (bytes[at] != '*' || next == code->size || py_word_byte(bytes[next]) || bytes[next] == '*' || !before ||
      (code->depth && code->open[code->depth - 1] != ']'))
    return false;
  static const char *const words[] = {"return", "yield", "in"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    size_t length = strlen(words[i]);
    if (before > length && memcmp(bytes + before - length, words[i], length) == 0 &&
        !py_word_byte(bytes[before - length - 1]))
      return true;
  }
  return strchr(",=[", bytes[before - 1]) != NULL;
}

/* A copy without what the grammar stumbles over. Python 3.14's t"..." has the syntax of f"...". A line inside brackets
 * may start left of its block, which the grammar takes for the end of the block: such lines are joined, and the
 * comments between them, which then have no end, taken out; they are listed. */
static uint8_t *plain_copy(const uint8_t *bytes, size_t size, struct span **comments, uint32_t *count) {
  uint8_t *copy = memcpy(scan_alloc(NULL, size), bytes, size);
  struct code code = {.bytes = bytes, .size = size};
  uint32_t capacity = 0;
  while (code.at < size && !code.broken) {
    size_t at = code_step(&code);
    uint8_t c = bytes[at];
    if ((c == '"' || c == '\'') && at) {
      size_t prefix = at > 1 && strchr("rR", bytes[at - 1]) ? at - 2 : at - 1;
      if (bytes[prefix] == 't' || bytes[prefix] == 'T')
        copy[prefix] = 'f';
      else if (bytes[at - 1] == 't' || bytes[at - 1] == 'T')
        copy[at - 1] = 'f';
    }
    if (bare_star(&code, at)) /* a minus may stand there */
      copy[at] = '-';
    if (!code.depth)
      continue;
    if (c == '#') {
      PY_GROW(*comments, *count, capacity);
      (*comments)[(*count)++] = (struct span){(uint32_t)at, (uint32_t)code.at};
      memset(copy + at, ' ', code.at - at);
    } else if (c == '\n') {
      copy[at] = ' ';
      size_t before = at && bytes[at - 1] == '\r' ? at - 1 : at;
      copy[before] = ' ';
      if (before && bytes[before - 1] == '\\' && copy[before - 1] == '\\')
        copy[before - 1] = ' ';
    }
  }
  return copy;
}

/* Puts the comments back as nodes. Each becomes a child of the innermost node that it stands in. */
static void insert_comments(struct py_tree *tree, const struct span *comments, uint32_t count, size_t start) {
  uint32_t total = tree->count + count, made = 0, at = 0;
  struct py_node *nodes = scan_alloc(NULL, total * sizeof *nodes);
  py_id *new_ids = scan_alloc(NULL, tree->count * sizeof *new_ids);
  py_id *last = scan_alloc(NULL, total * sizeof *last);
  for (py_id old = 0; old <= tree->count; old++) {
    while (at < count && old > 0 &&
           (old == tree->count || comments[at].start + (uint32_t)start < tree->nodes[old].start)) {
      py_id parent = old - 1;
      while (parent && tree->nodes[parent].end <= comments[at].start + start)
        parent = tree->nodes[parent].parent;
      nodes[made++] = (struct py_node){
          .start = comments[at].start + (uint32_t)start,
          .end = py_comment_end(tree->bytes, comments[at].start + (uint32_t)start, comments[at].end + (uint32_t)start),
          .parent = new_ids[parent],
          .kind = PY_COMMENT};
      at++;
    }
    if (old == tree->count)
      break;
    new_ids[old] = made;
    nodes[made] = tree->nodes[old];
    nodes[made].parent = new_ids[tree->nodes[old].parent];
    nodes[made++].next = 0;
  }
  memset(last, 0, made * sizeof *last);
  for (py_id node = 1; node < made; node++) {
    py_id parent = nodes[node].parent;
    if (last[parent])
      nodes[last[parent]].next = node;
    last[parent] = node;
  }
  free(last);
  free(new_ids);
  free(tree->nodes);
  tree->nodes = nodes;
  tree->count = made;
}

/* --- parsing ------------------------------------------------------------------------------------------------------ */

static TSTree *parse(TSParser *parser, const uint8_t *bytes, size_t size) {
  ts_parser_set_timeout_micros(parser, (uint64_t)(PARSE_SECONDS + size / PARSE_BYTES_A_SECOND) * 1000000);
  TSTree *parsed = ts_parser_parse_string(parser, NULL, (const char *)bytes, (uint32_t)size);
  if (!parsed)
    ts_parser_reset(parser);
  return parsed;
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
  struct span *comments = NULL;
  uint32_t comments_count = 0;
  if (parsed && ts_node_has_error(ts_tree_root_node(parsed))) {
    uint8_t *copy = plain_copy(bytes + start, size - start, &comments, &comments_count);
    TSTree *second = parse(parser, copy, size - start);
    if (second && !ts_node_has_error(ts_tree_root_node(second)))
      parsed = second;
    else
      comments_count = 0;
    free(copy);
  }
  if (parsed) {
    py_flatten(tree, parsed, &numbers, start);
    if (comments_count)
      insert_comments(tree, comments, comments_count, start);
  } else {
    tree->refused = "parsing it takes too long";
  }
  free(comments);
  ts_parser_delete(parser);
  py_parser_memory_free();
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

bool py_same_text(const struct py_tree *tree, py_id a, py_id b) {
  const struct py_node *left = &tree->nodes[a], *right = &tree->nodes[b];
  return left->end - left->start == right->end - right->start &&
         memcmp(tree->bytes + left->start, tree->bytes + right->start, left->end - left->start) == 0;
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
