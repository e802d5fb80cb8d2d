/* The grammar is made for editors and takes more than Python does. A file that Python would refuse must not be written
 * (case contract, Python rule 16), so the differences are looked for here: what Python 2 allowed, indentation, and what
 * Python's own parser checks after its grammar. Compared with CPython 3.11 and its test suite. */
#include "scanner/python_front.h"

static const char *const keywords[] = {"False",  "None",   "True",    "and",      "as",       "assert", "async",
                                       "await",  "break",  "class",   "continue", "def",      "del",    "elif",
                                       "else",   "except", "finally", "for",      "from",     "global", "if",
                                       "import", "in",     "is",      "lambda",   "nonlocal", "not",    "or",
                                       "pass",   "raise",  "return",  "try",      "while",    "with",   "yield"};

static bool is_keyword(const struct py_tree *tree, py_id node) {
  uint32_t length = tree->nodes[node].end - tree->nodes[node].start;
  uint8_t first = tree->bytes[tree->nodes[node].start];
  if (length < 2 || length > 8)
    return false;
  for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++)
    if ((uint8_t)keywords[i][0] == first && py_is(tree, node, keywords[i]))
      return true;
  return false;
}

/* --- indentation -------------------------------------------------------------------------------------------------- */

struct indent {
  uint32_t wide, narrow; /* with tab stops of 8 and of 1: both must agree, as in CPython's tokenizer */
  bool first_on_line;
};

static bool in_comment(const struct py_tree *tree, uint32_t at) {
  py_id low = 0, high = tree->count; /* the nodes' starts never fall */
  while (low < high) {
    py_id middle = low + (high - low) / 2;
    if (tree->nodes[middle].start <= at)
      low = middle + 1;
    else
      high = middle;
  }
  return low && py_kind(tree, low - 1) == PY_COMMENT && tree->nodes[low - 1].end > at;
}

static struct indent indent_of(const struct py_tree *tree, uint32_t at) {
  uint32_t start = at;
  while (start > 0 && py_blank(tree->bytes[start - 1]))
    start--;
  bool line_start = start == 0 || tree->bytes[start - 1] == '\n';
  if (!line_start && start == 3 && memcmp(tree->bytes, "\xef\xbb\xbf", 3) == 0)
    line_start = true;
  struct indent indent = {0, 0, line_start};
  for (uint32_t i = start; i < at; i++) {
    if (tree->bytes[i] == '\f')
      indent.wide = indent.narrow = 0;
    else if (tree->bytes[i] == '\t') {
      indent.wide = (indent.wide / 8 + 1) * 8;
      indent.narrow++;
    } else {
      indent.wide++;
      indent.narrow++;
    }
  }
  /* A line that a backslash joins to a blank start of the line before counts from there. */
  uint32_t newline = start >= 2 && tree->bytes[start - 2] == '\r' ? 3 : 2;
  if (line_start && start >= newline && tree->bytes[start - newline] == '\\' && !in_comment(tree, start - newline)) {
    uint32_t before = start - newline;
    while (before > 0 && py_blank(tree->bytes[before - 1]))
      before--;
    if (before == 0 || tree->bytes[before - 1] == '\n')
      return indent_of(tree, start - newline);
    indent.first_on_line = false;
  }
  return indent;
}

static bool same(struct indent a, struct indent b) {
  return a.wide == b.wide && a.narrow == b.narrow;
}

static bool deeper(struct indent a, struct indent b) {
  return a.wide > b.wide && a.narrow > b.narrow;
}

/* The statement whose suite the block is. */
static py_id block_owner(const struct py_tree *tree, py_id block) {
  return py_statement(tree, py_parent(tree, block));
}

static const char *check_block(const struct py_tree *tree, py_id block, uint32_t *offset) {
  struct indent indent = {0, 0, true};
  bool any = false, semicolon = false, lined = py_kind(tree, block) == PY_MODULE;
  for (py_id child = py_first(tree, block); child; child = py_next(tree, child)) {
    enum py_kind kind = py_kind(tree, child);
    semicolon = semicolon || kind == PY_TOKEN;
    if (kind == PY_TOKEN || kind == PY_COMMENT || kind == PY_LINE_CONTINUATION)
      continue;
    struct indent have = indent_of(tree, tree->nodes[child].start);
    *offset = tree->nodes[child].start;
    if (!any && py_kind(tree, block) != PY_MODULE) {
      indent = have;
      lined = have.first_on_line;
      if (lined && !deeper(have, indent_of(tree, tree->nodes[block_owner(tree, block)].start)))
        return "a block is not indented";
    }
    if (have.first_on_line && (!lined || !same(have, indent)))
      return "the indentation is inconsistent";
    if (any && !have.first_on_line && !semicolon)
      return "a statement follows another one on its line";
    any = true;
    semicolon = false;
  }
  *offset = tree->nodes[block].start;
  return any || py_kind(tree, block) == PY_MODULE ? NULL : "a block is empty";
}

/* else, except and the like stand where their statement does. */
static const char *check_clause(const struct py_tree *tree, py_id clause) {
  struct indent have = indent_of(tree, tree->nodes[clause].start);
  struct indent want = indent_of(tree, tree->nodes[py_parent(tree, clause)].start);
  return have.first_on_line && !same(have, want) ? "the indentation is inconsistent" : NULL;
}

static const char *check_decorated(const struct py_tree *tree, py_id node, uint32_t *offset) {
  struct indent indent = indent_of(tree, tree->nodes[node].start);
  for (py_id child = py_first_named(tree, node); child; child = py_next_named(tree, child)) {
    *offset = tree->nodes[child].start;
    struct indent have = indent_of(tree, *offset);
    if (!have.first_on_line || !same(have, indent))
      return "the indentation is inconsistent";
  }
  return NULL;
}

/* Does a statement or one of its clauses start with this leaf? */
static bool starts_line(const struct py_tree *tree, py_id leaf) {
  for (py_id node = leaf; node && tree->nodes[node].start == tree->nodes[leaf].start; node = py_parent(tree, node)) {
    enum py_kind above = py_kind(tree, py_parent(tree, node));
    switch (py_kind(tree, node)) {
    case PY_COMMENT:
    case PY_ELIF_CLAUSE:
    case PY_ELSE_CLAUSE:
    case PY_EXCEPT_CLAUSE:
    case PY_EXCEPT_GROUP_CLAUSE:
    case PY_FINALLY_CLAUSE:
    case PY_CASE_CLAUSE:
    case PY_DECORATOR:
      return true;
    default:
      if (above == PY_BLOCK || above == PY_MODULE || above == PY_DECORATED_DEFINITION)
        return true;
    }
  }
  return false;
}

/* Between two tokens only blanks, newlines and a backslash right before a newline may stand. */
static bool is_gap(const uint8_t *bytes, uint32_t from, uint32_t to, uint32_t *offset) {
  for (uint32_t i = from; i < to; i++) {
    uint8_t c = bytes[i];
    bool joins = c == '\\' && i + 1 < to && (bytes[i + 1] == '\n' || (bytes[i + 1] == '\r' && i + 2 < to));
    if (!joins && !py_blank(c) && c != '\n' && c != '\r') {
      *offset = i;
      return false;
    }
  }
  return true;
}

/* The grammar skips a newline where none may stand. Outside of brackets only a statement starts a line. */
static const char *check_gaps(const struct py_tree *tree, uint32_t *offset) {
  uint32_t end = tree->start;
  unsigned depth = 0;
  for (py_id node = 0; node < tree->count; node++) {
    if (py_kind(tree, node) == PY_FORMAT_SPECIFIER) { /* free text */
      end = tree->nodes[node].end;
      node = py_subtree_end(tree, node) - 1;
      continue;
    }
    if (py_first(tree, node) || tree->nodes[node].start == tree->nodes[node].end)
      continue;
    const struct py_node *leaf = &tree->nodes[node];
    if (leaf->start > end && !is_gap(tree->bytes, end, leaf->start, offset))
      return "a character stands where none may";
    uint8_t c = leaf->kind == PY_TOKEN && leaf->end == leaf->start + 1 ? tree->bytes[leaf->start] : 0;
    if (depth == 0 && end > tree->start && leaf->start > end && memchr(tree->bytes + end, '\n', leaf->start - end)) {
      const uint8_t *newline = memchr(tree->bytes + end, '\n', leaf->start - end);
      const uint8_t *before = newline - (newline[-1] == '\r');
      *offset = leaf->start;
      if (before[-1] != '\\' && !starts_line(tree, node))
        return "a statement is broken over two lines";
    }
    if ((c == '(' || c == '[' || c == '{') && ++depth > PY_BRACKETS_MAX) {
      *offset = leaf->start;
      return "more levels of brackets than Python takes";
    }
    if (depth && (c == ')' || c == ']' || c == '}'))
      depth--;
    end = leaf->end;
  }
  return is_gap(tree->bytes, end, tree->end, offset) ? NULL : "a character stands where none may";
}

/* --- strings and numbers ------------------------------------------------------------------------------------------ */

static unsigned hex_digits(const uint8_t *text, size_t size) {
  unsigned count = 0;
  while (count < size && ((text[count] >= '0' && text[count] <= '9') || (text[count] >= 'a' && text[count] <= 'f') ||
                          (text[count] >= 'A' && text[count] <= 'F')))
    count++;
  return count;
}

static bool escape_ok(const uint8_t *text, size_t size, bool bytes) {
  unsigned digits = text[0] == 'x' ? 2 : bytes ? 0 : text[0] == 'u' ? 4 : text[0] == 'U' ? 8 : 0;
  if (text[0] == 'N' && !bytes)
    return size > 2 && text[1] == '{';
  if (hex_digits(text + 1, size - 1) < digits)
    return false;
  /* 0010ffff is the last character. */
  return digits < 8 || memcmp(text + 1, "000", 3) == 0 || memcmp(text + 1, "0010", 4) == 0;
}

static const char *check_string(const struct py_tree *tree, py_id string, uint32_t *offset) {
  py_id first = py_first(tree, string);
  bool raw = false, bytes = false, unicode = false;
  for (uint32_t i = tree->nodes[first].start; i < tree->nodes[first].end; i++) {
    uint8_t c = tree->bytes[i] | 0x20;
    raw = raw || c == 'r';
    bytes = bytes || c == 'b';
    unicode = unicode || c == 'u';
    if (tree->bytes[i] == '`')
      return "backquotes are Python 2";
  }
  if (unicode && raw)
    return "ur\"...\" is Python 2";
  uint32_t opening = tree->nodes[first].end;
  bool triple = opening - tree->nodes[first].start >= 3 && tree->bytes[opening - 1] == tree->bytes[opening - 2] &&
                tree->bytes[opening - 2] == tree->bytes[opening - 3];
  for (py_id part = first; part; part = py_next(tree, part)) {
    if (py_kind(tree, part) != PY_STRING_CONTENT)
      continue;
    for (uint32_t i = tree->nodes[part].start; i < tree->nodes[part].end; i++) {
      *offset = i;
      if (bytes && tree->bytes[i] >= 0x80)
        return "a bytes literal has a character that is not ASCII";
      if (tree->bytes[i] == '\n' && !triple)
        return "a string is not closed";
      if (tree->bytes[i] != '\\')
        continue;
      i++;
      if (!raw && i < tree->nodes[part].end && !escape_ok(tree->bytes + i, tree->nodes[part].end - i, bytes))
        return "a string has an invalid escape";
    }
  }
  return NULL;
}

static const char *check_integer(const struct py_tree *tree, py_id node) {
  const uint8_t *text = tree->bytes + tree->nodes[node].start;
  size_t size = tree->nodes[node].end - tree->nodes[node].start;
  uint8_t last = text[size - 1];
  if (last == 'l' || last == 'L')
    return "a number ends with L, which is Python 2";
  if (size > 1 && text[0] == '0' && text[1] >= '0' && text[1] <= '9' && last != 'j' && last != 'J')
    for (size_t i = 1; i < size; i++)
      if (text[i] != '0' && text[i] != '_')
        return "a number starts with 0, which is Python 2";
  return NULL;
}

/* --- the rest ----------------------------------------------------------------------------------------------------- */

/* `except A, e` of Python 2 and `except A, B` of Python 3.14 differ in what stands second: a new name, or a class. */
static bool python2_except(const struct py_tree *tree, py_id clause) {
  py_id value = py_first_named(tree, clause), second = value ? py_next_named(tree, value) : 0;
  if (!second || py_kind(tree, second) == PY_BLOCK)
    return false;
  uint8_t c = tree->bytes[tree->nodes[second].start];
  return py_kind(tree, second) == PY_IDENTIFIER && ((c >= 'a' && c <= 'z') || c == '_');
}

static const char *check_import(const struct py_tree *tree, py_id statement) {
  bool open = false, comma = false;
  for (py_id child = py_first(tree, statement); child; child = py_next(tree, child)) {
    enum py_kind kind = py_kind(tree, child);
    open = open || (kind == PY_TOKEN && py_is(tree, child, "("));
    if (kind != PY_COMMENT)
      comma = kind == PY_TOKEN && py_is(tree, child, ",");
    py_id name = kind == PY_ALIASED_IMPORT ? py_first(tree, child) : child;
    if (py_kind(tree, child) != PY_TOKEN && tree->nodes[child].field == PY_FIELD_NAME &&
        py_kind(tree, name) == PY_DOTTED_NAME && py_next(tree, py_first(tree, name)))
      return "a from-import names a dotted name";
  }
  return comma && !open ? "an import ends with a comma" : NULL;
}

/* Arguments and parameters without a name must come first. */
static const char *check_arguments(const struct py_tree *tree, py_id list) {
  bool keyword = false;
  for (py_id child = py_first_named(tree, list); child; child = py_next_named(tree, child)) {
    enum py_kind kind = py_kind(tree, child);
    if (kind == PY_KEYWORD_ARGUMENT || kind == PY_DICTIONARY_SPLAT)
      keyword = true;
    else if (keyword && kind != PY_LIST_SPLAT)
      return "a positional argument follows a keyword argument";
  }
  return NULL;
}

static const char *check_parameters(const struct py_tree *tree, py_id list) {
  bool given = false;
  for (py_id child = py_first_named(tree, list); child; child = py_next_named(tree, child)) {
    enum py_kind kind = py_kind(tree, child), inner = py_kind(tree, py_first_named(tree, child));
    if (kind == PY_TUPLE_PATTERN)
      return "a tuple parameter is Python 2";
    if (kind == PY_DEFAULT_PARAMETER || kind == PY_TYPED_DEFAULT_PARAMETER)
      given = true;
    else if (kind == PY_KEYWORD_SEPARATOR || kind == PY_LIST_SPLAT_PATTERN || inner == PY_LIST_SPLAT_PATTERN)
      break; /* behind a star the order is free */
    else if (given && (kind == PY_IDENTIFIER || (kind == PY_TYPED_PARAMETER && inner == PY_IDENTIFIER)))
      return "a parameter without a default follows one with a default";
  }
  return NULL;
}

/* "with a if b else c as d": the grammar binds as to c alone. */
static bool as_pattern_placed(const struct py_tree *tree, py_id node) {
  while (py_kind(tree, py_parent(tree, node)) == PY_CONDITIONAL_EXPRESSION && !py_next(tree, node))
    node = py_parent(tree, node);
  enum py_kind above = py_kind(tree, py_parent(tree, node));
  return above == PY_WITH_ITEM || above == PY_EXCEPT_CLAUSE || above == PY_EXCEPT_GROUP_CLAUSE ||
         above == PY_CASE_PATTERN || above == PY_PARENTHESIZED_EXPRESSION || above == PY_TUPLE ||
         above == PY_OTHER; /* a parenthesised with clause, a group pattern */
}

static const char *check_node(const struct py_tree *tree, py_id node, uint32_t *offset) {
  *offset = tree->nodes[node].start;
  enum py_kind above = py_kind(tree, py_parent(tree, node));
  switch (py_kind(tree, node)) {
  case PY_MODULE:
  case PY_BLOCK:
    return check_block(tree, node, offset);
  case PY_DECORATED_DEFINITION:
    return check_decorated(tree, node, offset);
  case PY_CONSTRAINED_TYPE:
    return py_kind(tree, py_parent(tree, py_parent(tree, node))) == PY_TYPE_PARAMETER ? NULL : "a second annotation";
  case PY_PRINT_STATEMENT:
    return py_kind(tree, py_first_named(tree, node)) == PY_CHEVRON ? NULL : "print without parentheses is Python 2";
  case PY_EXEC_STATEMENT:
    return "exec without parentheses is Python 2";
  case PY_RAISE_STATEMENT:
    return py_kind(tree, py_first_named(tree, node)) == PY_EXPRESSION_LIST ? "raise with a comma is Python 2" : NULL;
  case PY_EXCEPT_CLAUSE:
    return python2_except(tree, node) ? "except with a comma is Python 2" : check_clause(tree, node);
  case PY_ELIF_CLAUSE:
  case PY_ELSE_CLAUSE:
  case PY_EXCEPT_GROUP_CLAUSE:
  case PY_FINALLY_CLAUSE:
    return check_clause(tree, node);
  case PY_IMPORT_FROM_STATEMENT:
    return check_import(tree, node);
  case PY_STRING:
    return check_string(tree, node, offset);
  case PY_INTEGER:
    return check_integer(tree, node);
  case PY_ARGUMENT_LIST:
    return check_arguments(tree, node);
  case PY_PARAMETERS:
  case PY_LAMBDA_PARAMETERS:
    return check_parameters(tree, node);
  case PY_IDENTIFIER:
    return is_keyword(tree, node) ? "a keyword stands where a name must" : NULL;
  case PY_ASSIGNMENT: {
    py_id right = py_field(tree, node, PY_FIELD_RIGHT);
    bool chained = above == PY_ASSIGNMENT || (right && py_kind(tree, right) == PY_ASSIGNMENT);
    return chained && py_field(tree, node, PY_FIELD_TYPE) ? "a chained assignment has an annotation" : NULL;
  }
  case PY_NAMED_EXPRESSION:
    return above == PY_EXPRESSION_STATEMENT ? ":= stands alone" : NULL;
  case PY_AS_PATTERN:
    return as_pattern_placed(tree, node) ? NULL : "as stands alone";
  case PY_TOKEN:
    return above == PY_COMPARISON_OPERATOR && py_is(tree, node, "<>") ? "<> is Python 2" : NULL;
  default:
    return NULL;
  }
}

const char *py_check(const struct py_tree *tree, uint32_t *offset) {
  if (tree->broken) {
    *offset = tree->broken_at;
    return "the syntax is broken";
  }
  for (py_id node = 0; node < tree->count; node++) {
    const char *why = check_node(tree, node, offset);
    if (why)
      return why;
  }
  return check_gaps(tree, offset);
}
