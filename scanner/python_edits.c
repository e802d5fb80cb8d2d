/* Import statements split or replaced, and qualified uses turned into bare names (case contract, Python rules 20 to
 * 27). */
#include "scanner/python_front.h"

#include <stdlib.h>

/* Edits in the order in which they were made; they leave in the order of the text. */
struct edits {
  struct edit *list;
  size_t count, capacity;
  uint32_t group; /* of those that are made now: the import statement */
};

static void edit(struct edits *edits, size_t start, size_t end, const char *text, size_t size) {
  PY_GROW(edits->list, edits->count, edits->capacity);
  char *copy = scan_alloc(NULL, size + 1);
  if (size)
    memcpy(copy, text, size);
  edits->list[edits->count++] = (struct edit){start, end, copy, size, edits->group};
}

/* No two edits of one file start at the same place. */
static int compare_edits(const void *left, const void *right) {
  const struct edit *a = left, *b = right;
  if (a->start != b->start)
    return a->start < b->start ? -1 : 1;
  return (a->end > b->end) - (a->end < b->end);
}

static void give_edits(struct py_unit *unit, struct edits *edits) {
  if (edits->count)
    qsort(edits->list, edits->count, sizeof *edits->list, compare_edits);
  for (size_t i = 0; i < edits->count; i++) {
    const struct edit *one = &edits->list[i];
    if (unit->notebook)
      py_notebook_edit(unit->notebook, unit->result, one->group, one->start, one->end, one->text, one->text_size);
    else
      result_edit(unit->result, one->group, one->start, one->end, one->text, one->text_size);
    free(one->text);
  }
  free(edits->list);
}

/* --- the names and marks of one from-import ----------------------------------------------------------------------- */

enum part_kind { PART_HEAD, PART_NAME, PART_COMMA, PART_COMMENT, PART_OPEN, PART_CLOSE };

struct part {
  enum part_kind kind;
  py_id node;
  uint32_t start, end;
  uint32_t line, last_line;
  bool gone;                /* leaves the old statement */
  const struct py_use *use; /* of a name that goes: what it becomes */
  uint32_t owner;           /* of a comment that goes: the part of the name it goes with */
  bool above;               /* ... as a line above it */
  uint32_t comment;         /* of a name: its first comment; of a comment: the next one of that name */
};

struct parts {
  struct part *list;
  uint32_t count, capacity;
  uint32_t kept;       /* names that stay */
  uint32_t last_kept;  /* part of the last one */
  uint32_t last_name;  /* part of the last name */
  bool trailing_comma; /* a comma stands behind the last name */
  bool open;           /* parentheses */
};

static uint32_t newlines(const struct py_unit *unit, uint32_t from, uint32_t to) {
  uint32_t count = 0;
  for (uint32_t i = from; i < to; i++)
    count += unit->source.bytes[i] == '\n';
  return count;
}

static void take_parts(struct py_unit *unit, py_id statement, const struct py_use *const *uses, size_t uses_count,
                       struct parts *parts) {
  const struct py_tree *tree = &unit->tree;
  bool names = false;
  size_t next = 0; /* the uses are in the order of the statement */
  uint32_t at = tree->nodes[statement].start, line = 0;
  for (py_id node = py_first(tree, statement); node; node = py_next(tree, node)) {
    struct part part = {.node = node, .start = tree->nodes[node].start, .end = tree->nodes[node].end};
    enum py_kind kind = py_kind(tree, node);
    if (kind == PY_LINE_CONTINUATION || part.start == part.end)
      continue;
    if (kind == PY_COMMENT)
      part.kind = PART_COMMENT;
    else if (names && kind == PY_TOKEN)
      part.kind = py_is(tree, node, ",") ? PART_COMMA : py_is(tree, node, "(") ? PART_OPEN : PART_CLOSE;
    else if (names)
      part.kind = PART_NAME;
    names = names || (kind == PY_TOKEN && py_is(tree, node, "import"));
    line += newlines(unit, at, part.start);
    part.line = line;
    line += newlines(unit, part.start, part.end);
    part.last_line = line;
    at = part.end;
    if (part.kind == PART_NAME && next < uses_count && uses[next]->node == node) {
      part.use = uses[next++];
      part.gone = true;
    }
    PY_GROW(parts->list, parts->count, parts->capacity);
    if (part.kind == PART_NAME) {
      parts->last_name = parts->count;
      if (!part.gone) {
        parts->kept++;
        parts->last_kept = parts->count;
      }
    }
    parts->trailing_comma = part.kind == PART_COMMA || (part.kind != PART_NAME && parts->trailing_comma);
    parts->open = parts->open || part.kind == PART_OPEN;
    parts->list[parts->count++] = part;
  }
}

/* Between two names that stay one comma stays: the one behind the first, or, where commas lead the lines, the one
 * before the second. Behind the last one a comma stays only where a trailing comma was. */
static void choose_commas(struct parts *parts) {
  struct part *list = parts->list;
  uint32_t name = 0; /* the last name that stays, so far */
  for (uint32_t i = 0; i < parts->count;) {
    if (list[i].kind != PART_COMMA) {
      if (list[i].kind == PART_NAME && !list[i].gone)
        name = i;
      i++;
      continue;
    }
    /* The commas up to the next name that stays. */
    uint32_t end = i, first = i, last = i;
    for (; end < parts->count && !(list[end].kind == PART_NAME && !list[end].gone); end++)
      if (list[end].kind == PART_COMMA) {
        list[end].gone = true;
        last = end;
      }
    bool next = end < parts->count;
    bool leading = next && list[first].line != list[name].last_line && list[last].line == list[end].line;
    if (name && (next || parts->trailing_comma))
      list[leading ? last : first].gone = false;
    i = end;
  }
}

/* The name beside which a comment stands, or of which it is a line of comment above; 0 when it stays. */
static uint32_t comment_owner(const struct parts *parts, uint32_t comment, bool *above) {
  const struct part *list = parts->list;
  uint32_t owner = 0, line = list[comment].line;
  bool beside = false, all = true;
  for (uint32_t k = comment; k-- > 0 && list[k].last_line == line;) {
    beside = beside || list[k].kind != PART_COMMENT;
    if (list[k].kind != PART_NAME)
      continue;
    owner = owner ? owner : k;
    all = all && list[k].gone;
  }
  *above = !beside;
  if (beside)
    return all ? owner : 0;
  /* Lines of comment follow each other down to the line of a name. */
  for (uint32_t k = comment + 1; k < parts->count && !owner; k++) {
    if ((parts->kept && list[k].line != line + 1) || (list[k].kind != PART_COMMENT && list[k].kind != PART_NAME))
      return 0;
    line = list[k].line;
    owner = list[k].kind == PART_NAME ? k : 0;
  }
  for (uint32_t k = owner; owner && k < parts->count && list[k].line == list[owner].line; k++)
    all = all && (list[k].kind != PART_NAME || list[k].gone);
  return all ? owner : 0;
}

/* A comment goes with the names of its line when all of them go; a line of comment with the name right below it. */
static void choose_comments(struct parts *parts) {
  for (uint32_t i = parts->count; i-- > 0;) {
    struct part *part = &parts->list[i];
    if (part->kind != PART_COMMENT)
      continue;
    part->owner = comment_owner(parts, i, &part->above);
    part->gone = part->owner;
    if (part->owner) {
      part->comment = parts->list[part->owner].comment;
      parts->list[part->owner].comment = i;
    }
  }
}

/* --- removal ------------------------------------------------------------------------------------------------------ */

static size_t line_start(const struct py_unit *unit, size_t at) {
  while (at > 0 && unit->source.bytes[at - 1] != '\n')
    at--;
  return at;
}

static size_t next_line(const struct py_unit *unit, size_t at) {
  while (at < unit->source.size && unit->source.bytes[at] != '\n')
    at++;
  return at < unit->source.size ? at + 1 : at;
}

/* The names at the end of the statement, with what stands between them, unless a comment that stays is there. Returns
 * the number of parts in front of it. */
static uint32_t remove_tail(struct edits *edits, const struct parts *parts) {
  const struct part *list = parts->list;
  uint32_t from = parts->last_kept + 1, to = parts->count;
  if (parts->last_name == parts->last_kept)
    return parts->count;
  if (parts->trailing_comma) /* the comma that stays */
    while (from < parts->count && list[from - 1].kind != PART_COMMA)
      from++;
  while (to > from && !list[to - 1].gone)
    to--; /* the closing parenthesis, and comments above it */
  for (uint32_t i = from; i < to; i++)
    if (!list[i].gone)
      return parts->count;
  if (from < to)
    edit(edits, list[from - 1].end, list[to - 1].end, "", 0);
  return from;
}

static void remove_run(struct edits *edits, const struct part *left, const struct part *first, const struct part *last,
                       const struct part *right) {
  bool name_follows = right && (right->kind == PART_NAME || right->kind == PART_COMMA);
  size_t start = first->start, end = last->end;
  if (name_follows && (first->kind != PART_COMMA || !left))
    end = right->start;
  else if (left)
    start = left->end;
  edit(edits, start, end, "", 0);
}

static void remove_parts(struct py_unit *unit, struct edits *edits, const struct parts *parts) {
  const struct part *list = parts->list;
  uint32_t count = remove_tail(edits, parts);
  for (uint32_t i = 0; i < count;) {
    /* One line of parts; a part that goes over several lines joins them. */
    uint32_t end = i + 1, line = list[i].last_line;
    bool stays = !list[i].gone, goes = list[i].gone;
    for (; end < count && list[end].line <= line; end++) {
      line = list[end].last_line > line ? list[end].last_line : line;
      stays = stays || !list[end].gone;
      goes = goes || list[end].gone;
    }
    if (goes && !stays) {
      edit(edits, line_start(unit, list[i].start), next_line(unit, list[end - 1].end), "", 0);
    } else if (goes) {
      for (uint32_t k = i; k < end; k++) {
        if (!list[k].gone)
          continue;
        uint32_t last = k;
        while (last + 1 < end && list[last + 1].gone)
          last++;
        remove_run(edits, k > i ? &list[k - 1] : NULL, &list[k], &list[last], last + 1 < end ? &list[last + 1] : NULL);
        k = last;
      }
    }
    i = end;
  }
}

/* --- new imports -------------------------------------------------------------------------------------------------- */

/* Bytes of the statement as they are in the file, whatever its encoding. */
static void put_bytes(struct py_unit *unit, struct py_buffer *out, size_t start, size_t end) {
  py_buffer_add(out, (unit->notebook ? unit->source.bytes : unit->file->bytes) + start, end - start);
}

/* One new import of a statement. */
struct added {
  const struct py_use *use;
  uint32_t part; /* the name's part in the old statement; 0 for a qualified use */
};

static void put_import(struct py_unit *unit, struct py_buffer *out, const struct py_use *use) {
  const struct py_tree *tree = &unit->tree;
  const struct catalog_route *route = use->route;
  py_buffer_puts(out, "from ");
  py_buffer_puts(out, route->module);
  py_buffer_puts(out, " import ");
  py_buffer_puts(out, route->name);
  py_id alias = use->kind == PY_USE_IMPORT ? py_field(tree, use->node, PY_FIELD_ALIAS) : 0;
  const uint8_t *name = unit->source.bytes + use->offset;
  if (alias) {
    py_buffer_puts(out, " as ");
    put_bytes(unit, out, tree->nodes[alias].start, tree->nodes[alias].end);
  } else if (strlen(route->name) != use->length || memcmp(route->name, name, use->length) != 0) {
    py_buffer_puts(out, " as ");
    py_buffer_add(out, name, use->length);
  }
}

static void put_comment(struct py_unit *unit, struct py_buffer *out, const struct part *comment) {
  size_t end = comment->end;
  while (end > comment->start && (py_blank(unit->source.bytes[end - 1]) || unit->source.bytes[end - 1] == '\r'))
    end--;
  put_bytes(unit, out, comment->start, end);
}

/* "  # comment" for each comment beside the name. */
static void put_beside(struct py_unit *unit, struct py_buffer *out, const struct parts *parts, uint32_t name) {
  for (uint32_t i = name ? parts->list[name].comment : 0; i; i = parts->list[i].comment)
    if (!parts->list[i].above) {
      py_buffer_puts(out, "  ");
      put_comment(unit, out, &parts->list[i]);
    }
}

static void put_above(struct py_unit *unit, struct py_buffer *out, const struct parts *parts, uint32_t name,
                      const struct py_layout *layout) {
  for (uint32_t i = name ? parts->list[name].comment : 0; i; i = parts->list[i].comment)
    if (parts->list[i].above) {
      put_comment(unit, out, &parts->list[i]);
      py_buffer_puts(out, layout->newline);
      py_buffer_puts(out, layout->indent);
    }
}

/* Comments of a replaced statement that belong to no name: at its opening bracket, or below the last name. */
static void put_loose(struct py_unit *unit, struct py_buffer *out, const struct parts *parts, bool bracket,
                      const struct py_layout *layout) {
  for (uint32_t i = 0; i < parts->count; i++) {
    const struct part *part = &parts->list[i];
    if (part->kind != PART_COMMENT || part->gone || (i < parts->last_name) != bracket)
      continue;
    py_buffer_puts(out, bracket ? "  " : layout->newline);
    py_buffer_puts(out, bracket ? "" : layout->indent);
    put_comment(unit, out, part);
  }
}

/* On one line with other statements: the imports one after the other, then all comments. */
static void put_on_line(struct py_unit *unit, struct py_buffer *out, const struct parts *parts,
                        const struct added *added, size_t count, bool replaces) {
  for (size_t i = 0; i < count; i++) {
    if (i || !replaces)
      py_buffer_puts(out, "; ");
    put_import(unit, out, added[i].use);
  }
  for (uint32_t i = 0; i < parts->count; i++)
    if (parts->list[i].kind == PART_COMMENT && (parts->list[i].gone || replaces)) {
      py_buffer_puts(out, "  ");
      put_comment(unit, out, &parts->list[i]);
    }
}

static void put_on_lines(struct py_unit *unit, struct py_buffer *out, const struct parts *parts,
                         const struct py_layout *layout, const struct added *added, size_t from, size_t count) {
  for (size_t i = from; i < count; i++) {
    py_buffer_puts(out, layout->newline);
    py_buffer_puts(out, layout->indent);
    put_above(unit, out, parts, added[i].part, layout);
    put_import(unit, out, added[i].use);
    put_beside(unit, out, parts, added[i].part);
  }
}

static void edit_statement(struct py_unit *unit, struct edits *edits, py_id statement, const struct parts *parts,
                           const struct added *added, size_t count) {
  const struct py_node *at = &unit->tree.nodes[statement];
  struct py_layout layout = py_layout(unit, statement);
  bool replaces = parts->count && parts->kept == 0;
  struct py_buffer out = {0};
  if (parts->count && !replaces)
    remove_parts(unit, edits, parts);
  if (layout.follows || layout.followed) {
    put_on_line(unit, &out, parts, added, count, replaces);
    edit(edits, replaces ? at->start : at->end, at->end, out.text, out.size);
  } else {
    size_t first = 0;
    if (replaces) {
      put_above(unit, &out, parts, added[0].part, &layout);
      put_import(unit, &out, added[0].use);
      put_loose(unit, &out, parts, true, &layout);
      put_beside(unit, &out, parts, added[0].part);
      edit(edits, at->start, at->end, out.text, out.size);
      out.size = 0;
      first = 1;
    }
    put_on_lines(unit, &out, parts, &layout, added, first, count);
    if (replaces)
      put_loose(unit, &out, parts, false, &layout);
    if (out.size)
      edit(edits, layout.line_end, layout.line_end, out.text, out.size);
  }
  py_buffer_free(&out);
}

/* --- all of a file ------------------------------------------------------------------------------------------------ */

static void edit_qualified(struct py_unit *unit, struct edits *edits, const struct py_use *use) {
  const struct py_node *at = &unit->tree.nodes[use->node];
  const uint8_t *bytes = unit->source.bytes;
  /* else(sgl_kernel).name */
  bool glued = at->start && py_word_byte(bytes[at->start - 1]);
  char *text = scan_format("%s%.*s", glued ? " " : "", (int)use->length, bytes + use->offset);
  edit(edits, at->start, at->end, text, strlen(text));
  free(text);
}

/* Where a new import goes. */
struct place {
  py_id block;
  struct py_use *use;
};

/* By statement, then imports in their order before qualified uses in theirs. */
static int compare_uses(const void *left, const void *right) {
  const struct py_use *a = *(const struct py_use *const *)left, *b = *(const struct py_use *const *)right;
  if (a->statement != b->statement)
    return a->statement < b->statement ? -1 : 1;
  if (a->kind != b->kind)
    return a->kind == PY_USE_IMPORT ? -1 : 1;
  return (a->offset > b->offset) - (a->offset < b->offset);
}

static bool same_text(const struct py_unit *unit, const struct py_use *a, const struct py_use *b) {
  return a->length == b->length && a->symbol == b->symbol &&
         memcmp(unit->source.bytes + a->offset, unit->source.bytes + b->offset, a->length) == 0;
}

/* The new imports of one statement: each name once. */
static size_t list_added(struct py_unit *unit, const struct py_use *const *uses, size_t count,
                         const struct parts *parts, struct added *added) {
  size_t used = 0;
  uint32_t part = 0; /* the imports are in the order of the parts */
  for (size_t i = 0; i < count; i++) {
    bool known = false;
    for (size_t k = 0; k < used && uses[i]->kind == PY_USE_QUALIFIED && !known; k++) {
      py_id alias = added[k].use->kind == PY_USE_IMPORT ? py_field(&unit->tree, added[k].use->node, PY_FIELD_ALIAS) : 0;
      known = same_text(unit, uses[i], added[k].use) &&
              (!alias || (unit->tree.nodes[alias].end - unit->tree.nodes[alias].start == uses[i]->length &&
                          memcmp(unit->tree.bytes + unit->tree.nodes[alias].start, unit->source.bytes + uses[i]->offset,
                                 uses[i]->length) == 0));
    }
    if (known)
      continue;
    bool import = uses[i]->kind == PY_USE_IMPORT;
    while (import && parts->list[part].use != uses[i])
      part++;
    added[used++] = (struct added){uses[i], import ? part : 0};
  }
  return used;
}

static int compare_places(const void *left, const void *right) {
  const struct place *a = left, *b = right;
  if (a->block != b->block)
    return a->block < b->block ? -1 : 1;
  if (a->use->symbol != b->use->symbol)
    return a->use->symbol < b->use->symbol ? -1 : 1;
  return (a->use->statement > b->use->statement) - (a->use->statement < b->use->statement);
}

/* Two statements of one block may bind what one name is reached through; the new import follows the first of them. */
static void share_statements(struct py_unit *unit, struct py_uses *uses) {
  struct place *places = scan_alloc(NULL, uses->count * sizeof *places);
  size_t count = 0;
  for (size_t i = 0; i < uses->count; i++)
    if (uses->list[i].verdict == VERDICT_REWRITE && uses->list[i].kind == PY_USE_QUALIFIED)
      places[count++] = (struct place){py_parent(&unit->tree, uses->list[i].statement), &uses->list[i]};
  if (count)
    qsort(places, count, sizeof *places, compare_places);
  for (size_t i = 1; i < count; i++)
    if (places[i].block == places[i - 1].block && same_text(unit, places[i].use, places[i - 1].use))
      places[i].use->statement = places[i - 1].use->statement;
  free(places);
}

void py_edits_make(struct py_unit *unit, struct py_uses *uses) {
  share_statements(unit, uses);
  struct edits edits = {0};
  const struct py_use **list = scan_alloc(NULL, uses->count * sizeof(const struct py_use *));
  struct added *added = scan_alloc(NULL, uses->count * sizeof *added);
  size_t count = 0;
  for (size_t i = 0; i < uses->count; i++) {
    if (uses->list[i].verdict != VERDICT_REWRITE)
      continue;
    list[count++] = &uses->list[i];
    edits.group = uses->list[i].statement;
    if (uses->list[i].kind == PY_USE_QUALIFIED)
      edit_qualified(unit, &edits, &uses->list[i]);
  }
  if (count)
    qsort(list, count, sizeof(const struct py_use *), compare_uses);
  for (size_t i = 0, end; i < count; i = end) {
    size_t imports = i;
    for (end = i; end < count && list[end]->statement == list[i]->statement; end++)
      imports += list[end]->kind == PY_USE_IMPORT;
    struct parts parts = {0};
    if (imports > i) {
      take_parts(unit, list[i]->statement, list + i, imports - i, &parts);
      choose_commas(&parts);
      choose_comments(&parts);
    }
    size_t used = list_added(unit, list + i, end - i, &parts, added);
    edits.group = list[i]->statement;
    edit_statement(unit, &edits, list[i]->statement, &parts, added, used);
    free(parts.list);
  }
  free(list);
  free(added);
  give_edits(unit, &edits);
}
