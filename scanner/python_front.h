/* What the files of the Python front share. Top to bottom, each only calls downwards:
 *
 *   python_analyse.c   one file: source, tree, uses, edits; the entry points of scanner.h
 *   python_notebook.c  the code and text of a notebook's cells, and the way back to its bytes
 *   python_conditions.c  conditions around a use that are narrower than the new function
 *   python_changed.c   calls of names that have another form than before
 *   python_edits.c     import statements and qualified uses rewritten
 *   python_uses.c      every use of a removed name, and its verdict
 *   python_strings.c   strings and comments: loader strings, programs, mentions
 *   python_named.c     strings that are looked up in the package, also through variables
 *   python_ignore.c    comments that accept uses
 *   python_text.c      uses found by text alone: programs in strings, files that do not parse
 *   python_guards.c    what a statement is guarded by: try, hasattr, a branch of another vendor
 *   python_values.c    which package, module or operator namespace an expression is
 *   python_constants.c names and strings that stand for one text
 *   python_unit.c      one text with its tree, scopes and guards
 *   python_candidate.c which files need a tree, by their tokens
 *   python_whose.c     whose a name is, by the tokens of the file
 *   python_index.c     which module of the tree binds the package to which name
 *   python_literals.c  the characters of string literals
 *   python_layout.c    where a statement stands on its line
 *   python_scopes.c    scopes and bindings
 *   python_check.c     syntax that the grammar takes and Python does not
 *   python_tree.c      the syntax tree as a flat list (python_flatten.c: made of the tree of tree-sitter)
 *   python_parser_memory.c  what tree-sitter allocates
 *   python_source.c    encodings
 *   python_memory.c    formatted text in the arena, text that grows
 *
 * Trees are walked in the order of the flat list, never by recursion, so that nesting costs no stack. */
#ifndef SGL_SCANNER_PYTHON_FRONT_H
#define SGL_SCANNER_PYTHON_FRONT_H

#include "scanner/arena.h"
#include "scanner/scanner.h"

#include <string.h>

/* --- python_memory.c ---------------------------------------------------------------------------------------------- */

char *py_text_format(struct arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A text that grows; NUL-ended when `text` is not NULL. */
struct py_buffer {
  char *text;
  size_t size, capacity;
};

void py_buffer_add(struct py_buffer *buffer, const void *text, size_t size);
void py_buffer_puts(struct py_buffer *buffer, const char *text);
void py_buffer_free(struct py_buffer *buffer);

/* Makes room for one more element in a malloc'ed list. */
#define PY_GROW(list, count, capacity)                                                                                 \
  do {                                                                                                                 \
    if ((count) == (capacity)) {                                                                                       \
      (capacity) = (capacity) ? 2 * (capacity) : 16;                                                                   \
      (list) = scan_alloc((list), (capacity) * sizeof *(list));                                                        \
    }                                                                                                                  \
  } while (0)

extern const bool py_word_bytes[256]; /* python_source.c */
static inline bool py_word_byte(uint8_t c) {
  return py_word_bytes[c];
}

static inline bool py_blank(uint8_t c) {
  return c == ' ' || c == '\t' || c == '\f';
}

/* What may stand between two words of a statement, comments aside. */
static inline bool py_between(uint8_t c) {
  return py_blank(c) || c == '\\' || c == '\r' || c == '\n';
}

static inline bool py_has(const struct source_file *file, const char *text) {
  return memmem(file->bytes, file->size, text, strlen(text)) != NULL;
}

/* Does the newline at `at` end its line for Python: is there no backslash in front? */
static inline bool py_ends_line(const uint8_t *bytes, size_t at) {
  size_t before = at - (at > 0 && bytes[at - 1] == '\r');
  return bytes[at] == '\n' && (before == 0 || bytes[before - 1] != '\\');
}

/* --- python_source.c ---------------------------------------------------------------------------------------------- */

/* Python text as the parser gets it. Of a .py file every byte stands where it stands in the file: a lone carriage
 * return, which ends a line for Python, is a newline here; a character of another encoding is a run of letters. Of a
 * notebook it is the code of all cells. */
struct py_source {
  const uint8_t *bytes;
  size_t size;
  size_t start;   /* where the code begins: behind a byte order mark */
  uint8_t *owned; /* bytes, when they are a copy */
};

/* False, with a reason in *why, when Python could not decode the file. */
bool py_source_open(struct py_source *source, const uint8_t *bytes, size_t size, const char **why);
void py_source_close(struct py_source *source);
bool py_utf8_valid(const uint8_t *bytes, size_t size);
/* Has the file a star import, whatever stands between the two words? Also in a string. */
bool py_star_import(const struct source_file *file);

/* --- python_tree.c ------------------------------------------------------------------------------------------------ */

#define PY_KINDS(X)                                                                                                    \
  X(MODULE, "module")                                                                                                  \
  X(BLOCK, "block")                                                                                                    \
  X(COMMENT, "comment")                                                                                                \
  X(LINE_CONTINUATION, "line_continuation")                                                                            \
  X(IDENTIFIER, "identifier")                                                                                          \
  X(ATTRIBUTE, "attribute")                                                                                            \
  X(CALL, "call")                                                                                                      \
  X(SUBSCRIPT, "subscript")                                                                                            \
  X(ARGUMENT_LIST, "argument_list")                                                                                    \
  X(KEYWORD_ARGUMENT, "keyword_argument")                                                                              \
  X(LIST_SPLAT, "list_splat")                                                                                          \
  X(DICTIONARY_SPLAT, "dictionary_splat")                                                                              \
  X(STRING, "string")                                                                                                  \
  X(CONCATENATED_STRING, "concatenated_string")                                                                        \
  X(STRING_START, "string_start")                                                                                      \
  X(STRING_CONTENT, "string_content")                                                                                  \
  X(STRING_END, "string_end")                                                                                          \
  X(INTERPOLATION, "interpolation")                                                                                    \
  X(FORMAT_SPECIFIER, "format_specifier")                                                                              \
  X(INTEGER, "integer")                                                                                                \
  X(NONE, "none")                                                                                                      \
  X(TRUE, "true")                                                                                                      \
  X(FALSE, "false")                                                                                                    \
  X(DOTTED_NAME, "dotted_name")                                                                                        \
  X(ALIASED_IMPORT, "aliased_import")                                                                                  \
  X(RELATIVE_IMPORT, "relative_import")                                                                                \
  X(WILDCARD_IMPORT, "wildcard_import")                                                                                \
  X(IMPORT_STATEMENT, "import_statement")                                                                              \
  X(IMPORT_FROM_STATEMENT, "import_from_statement")                                                                    \
  X(FUTURE_IMPORT_STATEMENT, "future_import_statement")                                                                \
  X(EXPRESSION_STATEMENT, "expression_statement")                                                                      \
  X(ASSIGNMENT, "assignment")                                                                                          \
  X(AUGMENTED_ASSIGNMENT, "augmented_assignment")                                                                      \
  X(NAMED_EXPRESSION, "named_expression")                                                                              \
  X(DELETE_STATEMENT, "delete_statement")                                                                              \
  X(GLOBAL_STATEMENT, "global_statement")                                                                              \
  X(NONLOCAL_STATEMENT, "nonlocal_statement")                                                                          \
  X(TYPE_ALIAS_STATEMENT, "type_alias_statement")                                                                      \
  X(PRINT_STATEMENT, "print_statement")                                                                                \
  X(EXEC_STATEMENT, "exec_statement")                                                                                  \
  X(CHEVRON, "chevron")                                                                                                \
  X(RAISE_STATEMENT, "raise_statement")                                                                                \
  X(ASSERT_STATEMENT, "assert_statement")                                                                              \
  X(RETURN_STATEMENT, "return_statement")                                                                              \
  X(BREAK_STATEMENT, "break_statement")                                                                                \
  X(CONTINUE_STATEMENT, "continue_statement")                                                                          \
  X(IF_STATEMENT, "if_statement")                                                                                      \
  X(ELIF_CLAUSE, "elif_clause")                                                                                        \
  X(ELSE_CLAUSE, "else_clause")                                                                                        \
  X(WHILE_STATEMENT, "while_statement")                                                                                \
  X(FOR_STATEMENT, "for_statement")                                                                                    \
  X(TRY_STATEMENT, "try_statement")                                                                                    \
  X(EXCEPT_CLAUSE, "except_clause")                                                                                    \
  X(EXCEPT_GROUP_CLAUSE, "except_group_clause")                                                                        \
  X(FINALLY_CLAUSE, "finally_clause")                                                                                  \
  X(WITH_STATEMENT, "with_statement")                                                                                  \
  X(WITH_CLAUSE, "with_clause")                                                                                        \
  X(WITH_ITEM, "with_item")                                                                                            \
  X(MATCH_STATEMENT, "match_statement")                                                                                \
  X(CASE_CLAUSE, "case_clause")                                                                                        \
  X(CASE_PATTERN, "case_pattern")                                                                                      \
  X(KEYWORD_PATTERN, "keyword_pattern")                                                                                \
  X(SPLAT_PATTERN, "splat_pattern")                                                                                    \
  X(AS_PATTERN, "as_pattern")                                                                                          \
  X(AS_PATTERN_TARGET, "as_pattern_target")                                                                            \
  X(FUNCTION_DEFINITION, "function_definition")                                                                        \
  X(CLASS_DEFINITION, "class_definition")                                                                              \
  X(DECORATED_DEFINITION, "decorated_definition")                                                                      \
  X(DECORATOR, "decorator")                                                                                            \
  X(LAMBDA, "lambda")                                                                                                  \
  X(PARAMETERS, "parameters")                                                                                          \
  X(LAMBDA_PARAMETERS, "lambda_parameters")                                                                            \
  X(DEFAULT_PARAMETER, "default_parameter")                                                                            \
  X(TYPED_PARAMETER, "typed_parameter")                                                                                \
  X(TYPED_DEFAULT_PARAMETER, "typed_default_parameter")                                                                \
  X(LIST_SPLAT_PATTERN, "list_splat_pattern")                                                                          \
  X(DICTIONARY_SPLAT_PATTERN, "dictionary_splat_pattern")                                                              \
  X(KEYWORD_SEPARATOR, "keyword_separator")                                                                            \
  X(TYPE_PARAMETER, "type_parameter")                                                                                  \
  X(CONSTRAINED_TYPE, "constrained_type")                                                                              \
  X(TYPE, "type")                                                                                                      \
  X(PATTERN_LIST, "pattern_list")                                                                                      \
  X(TUPLE_PATTERN, "tuple_pattern")                                                                                    \
  X(LIST_PATTERN, "list_pattern")                                                                                      \
  X(LIST, "list")                                                                                                      \
  X(TUPLE, "tuple")                                                                                                    \
  X(SET, "set")                                                                                                        \
  X(DICTIONARY, "dictionary")                                                                                          \
  X(PAIR, "pair")                                                                                                      \
  X(EXPRESSION_LIST, "expression_list")                                                                                \
  X(LIST_COMPREHENSION, "list_comprehension")                                                                          \
  X(SET_COMPREHENSION, "set_comprehension")                                                                            \
  X(DICTIONARY_COMPREHENSION, "dictionary_comprehension")                                                              \
  X(GENERATOR_EXPRESSION, "generator_expression")                                                                      \
  X(FOR_IN_CLAUSE, "for_in_clause")                                                                                    \
  X(IF_CLAUSE, "if_clause")                                                                                            \
  X(PARENTHESIZED_EXPRESSION, "parenthesized_expression")                                                              \
  X(CONDITIONAL_EXPRESSION, "conditional_expression")                                                                  \
  X(BOOLEAN_OPERATOR, "boolean_operator")                                                                              \
  X(NOT_OPERATOR, "not_operator")                                                                                      \
  X(COMPARISON_OPERATOR, "comparison_operator")                                                                        \
  X(BINARY_OPERATOR, "binary_operator")

enum py_kind {
  PY_OTHER, /* a named node that no rule asks for */
  PY_TOKEN, /* punctuation or a keyword */
  PY_ERROR,
#define X(name, text) PY_##name,
  PY_KINDS(X)
#undef X
};

#define PY_FIELDS(X)                                                                                                   \
  X(NAME, "name")                                                                                                      \
  X(ALIAS, "alias")                                                                                                    \
  X(MODULE_NAME, "module_name")                                                                                        \
  X(LEFT, "left")                                                                                                      \
  X(RIGHT, "right")                                                                                                    \
  X(OBJECT, "object")                                                                                                  \
  X(ATTRIBUTE, "attribute")                                                                                            \
  X(FUNCTION, "function")                                                                                              \
  X(ARGUMENTS, "arguments")                                                                                            \
  X(ARGUMENT, "argument")                                                                                              \
  X(BODY, "body")                                                                                                      \
  X(CONDITION, "condition")                                                                                            \
  X(CONSEQUENCE, "consequence")                                                                                        \
  X(ALTERNATIVE, "alternative")                                                                                        \
  X(DEFINITION, "definition")                                                                                          \
  X(TYPE, "type")                                                                                                      \
  X(RETURN_TYPE, "return_type")                                                                                        \
  X(VALUE, "value")                                                                                                    \
  X(KEY, "key")                                                                                                        \
  X(OPERATOR, "operator")                                                                                              \
  X(OPERATORS, "operators")                                                                                            \
  X(SUBSCRIPT, "subscript")                                                                                            \
  X(EXPRESSION, "expression")

enum py_field {
  PY_FIELD_NONE,
#define X(name, text) PY_FIELD_##name,
  PY_FIELDS(X)
#undef X
};

/* CPython's tokenizer takes no more levels of brackets (MAXLEVEL). */
#define PY_BRACKETS_MAX 200

/* A node is its index in the list, which is in the order of the text, parents first. 0 is the module and, where a node
 * is asked for, "none". */
typedef uint32_t py_id;

struct py_node {
  uint32_t start, end; /* byte offsets in the source */
  py_id parent, next;  /* next sibling */
  uint8_t kind, field;
};

struct py_tree {
  const uint8_t *bytes;
  uint32_t start, end; /* of the text in the bytes */
  struct py_node *nodes;
  uint32_t count;
  bool broken;         /* the grammar could not place some of the text */
  uint32_t broken_at;  /* offset of the first such place */
  const char *refused; /* why there is no tree at all, or NULL */
};

/* python_flatten.c */
struct py_numbers {
  uint8_t *kinds, *fields; /* by tree-sitter's numbers */
  uint32_t kinds_count, fields_count;
};
struct TSTree;
void py_flatten(struct py_tree *tree, const struct TSTree *parsed, const struct py_numbers *numbers, size_t start);
uint32_t py_comment_end(const uint8_t *bytes, uint32_t start, uint32_t end);

void py_tree_open(struct py_tree *tree, const uint8_t *bytes, size_t size, size_t start);
void py_tree_close(struct py_tree *tree);

static inline enum py_kind py_kind(const struct py_tree *tree, py_id node) {
  return tree->nodes[node].kind;
}
static inline py_id py_parent(const struct py_tree *tree, py_id node) {
  return tree->nodes[node].parent;
}
static inline py_id py_next(const struct py_tree *tree, py_id node) {
  return tree->nodes[node].next;
}
static inline py_id py_first(const struct py_tree *tree, py_id node) {
  return node + 1 < tree->count && tree->nodes[node + 1].parent == node ? node + 1 : 0;
}
/* The first node behind this one's subtree; tree->count at the end. */
py_id py_subtree_end(const struct py_tree *tree, py_id node);
/* The first child with this field, or none. */
py_id py_field(const struct py_tree *tree, py_id node, enum py_field field);
/* The first child or next sibling that is no token, comment or backslash at a line's end. */
py_id py_first_named(const struct py_tree *tree, py_id node);
py_id py_next_named(const struct py_tree *tree, py_id node);
bool py_is(const struct py_tree *tree, py_id node, const char *text);
bool py_same_text(const struct py_tree *tree, py_id a, py_id b);
/* Is `inner` the node `outer` or within it? */
bool py_within(const struct py_tree *tree, py_id inner, py_id outer);
/* Through parentheses to the expression inside. */
py_id py_unwrap(const struct py_tree *tree, py_id node);
/* The statement that the node is part of. */
py_id py_statement(const struct py_tree *tree, py_id node);

/* --- python_parser_memory.c --------------------------------------------------------------------------------------- */

/* Before the first parse of the process. */
void py_parser_memory_use(void);
/* Frees all that the parses of this thread have left: trees too. */
void py_parser_memory_free(void);

/* --- python_check.c ----------------------------------------------------------------------------------------------- */

/* Why Python 3 would not parse the text, with the place; NULL when it would. */
const char *py_check(const struct py_tree *tree, uint32_t *offset);

/* --- python_scopes.c ---------------------------------------------------------------------------------------------- */

enum py_scope_kind { PY_SCOPE_MODULE, PY_SCOPE_FUNCTION, PY_SCOPE_CLASS, PY_SCOPE_COMPREHENSION };

struct py_scope {
  py_id node;
  uint32_t parent;
  enum py_scope_kind kind;
};

enum py_binding_kind {
  PY_BIND_IMPORT,    /* path is what the name then is */
  PY_BIND_ASSIGN,    /* value is the right-hand side */
  PY_BIND_WITH,      /* value is the context manager */
  PY_BIND_LOOP,      /* value is what is looped over */
  PY_BIND_PARAMETER, /* value is its default */
  PY_BIND_DECLARE,   /* an annotation without a value, or del: makes the name local and gives it nothing */
  PY_BIND_OTHER,
};

struct py_binding {
  uint32_t name;
  uint32_t scope;   /* that owns the name */
  uint32_t written; /* scope in which the binding stands; another one after global and nonlocal */
  py_id node;       /* the identifier */
  py_id statement;
  py_id value;
  const char *path;   /* imports: "sgl_kernel", "sgl_kernel.gemm.name", "..package.name" */
  const char *module; /* from-imports: the module */
  uint32_t next;      /* the next one of this name in this scope, in the order of the text; UINT32_MAX at the end */
  enum py_binding_kind kind;
};

#define PY_NO_BINDING UINT32_MAX
#define PY_NO_NAME UINT32_MAX

struct py_star {
  const char *module; /* "sgl_kernel", ".ops" */
  py_id statement;
};

struct py_directive {
  uint32_t scope, name;
  bool global;
};

struct py_scopes {
  const struct py_tree *tree;
  struct arena *arena;
  uint32_t *of; /* the scope in which each node is evaluated */
  struct py_scope *scopes;
  uint32_t scopes_count, scopes_capacity;
  struct py_binding *bindings;
  uint32_t bindings_count, bindings_capacity;
  struct py_star *stars;
  uint32_t stars_count, stars_capacity;
  struct py_directive *directives;
  uint32_t directives_count, directives_capacity;
  uint32_t *names; /* hash table of name numbers */
  struct {
    uint32_t start, length, hash;
  } * spellings;
  uint32_t names_count, names_size, spellings_capacity;
  uint32_t *chains; /* hash table (scope, name) -> first binding */
  uint32_t chains_size;
};

void py_scopes_open(struct py_scopes *scopes, const struct py_tree *tree, struct arena *arena);
void py_scopes_close(struct py_scopes *scopes);
/* The number of a name; PY_NO_NAME when nothing binds it anywhere in the text. */
uint32_t py_name(const struct py_scopes *scopes, const char *text, size_t length);
uint32_t py_node_name(const struct py_scopes *scopes, py_id node);
/* The bindings of a name that code in scope `scope` sees: the first of the chain, and its owner. *deferred is set when
 * a function lies between, so that the code runs at some later time. */
uint32_t py_lookup(const struct py_scopes *scopes, uint32_t scope, uint32_t name, bool *deferred);
/* The bindings of a name in exactly this scope. */
uint32_t py_scope_binding(const struct py_scopes *scopes, uint32_t scope, uint32_t name);
/* The scope that code in `scope` looks into next, or UINT32_MAX: a class body is seen only from itself. */
uint32_t py_scope_outer(const struct py_scopes *scopes, uint32_t scope);
/* The scope that a function, class or comprehension node made. */
uint32_t py_scope_made(const struct py_scopes *scopes, py_id node);

/* --- python_index.c ----------------------------------------------------------------------------------------------- */

/* The name of what a star import of the package brings into a module. */
#define PY_STAR "*"

struct py_unit;

/* What one module of the scanned tree binds a name to. */
struct py_export {
  uint32_t file; /* index in scan->files */
  const char *name;
  const char *path;
  bool guarded, assigned;
  bool leads_on; /* a removed name may be found behind it */
};

/* A name of the catalog that an attribute or an argument of Python code can be. */
bool py_index_name(const struct scan *scan, const void *text, size_t length);
/* The export of `name` by the module that `module` means in file `path`; NULL when no module of the tree has it. */
const struct py_export *py_index_find(const struct scan *scan, const char *path, const char *module, const char *name);
/* The source and the tree that the index has parsed for the file's exports, now the unit's. false: it has none (any
 * more), or the file has other bytes now. */
bool py_index_take(const struct scan *scan, const struct source_file *file, struct py_unit *unit);
/* All exports, sorted by name and file. */
void python_index_visit(const struct scan *scan,
                        void (*visit)(void *user, const struct source_file *file, const struct py_export *export),
                        void *user);
/* Does the file have the name of any that leads on? */
bool py_index_exported(const struct scan *scan, const struct source_file *file);

/* --- python_whose.c ----------------------------------------------------------------------------------------------- */

enum py_whose {
  PY_WHOSE_NOBODY, /* nothing in the file binds the name */
  PY_WHOSE_FILE,   /* the file defines it or has it from somebody else's module */
  PY_WHOSE_UNCLEAR,
};

/* Of a text whose strings and brackets match. */
enum py_whose py_whose(const uint8_t *bytes, size_t size, const uint8_t *name, size_t name_length);

/* --- python_candidate.c ------------------------------------------------------------------------------------------- */

enum py_need {
  PY_NEEDS_NOTHING, /* no finding */
  PY_NEEDS_TALK,    /* the mentions in the texts of *talk, and nothing else */
  PY_NEEDS_TREE,
};

struct py_span {
  size_t start, size;
};

struct py_talk {
  struct py_span *texts; /* comments and documentation */
  size_t texts_count;
  struct py_span *own; /* places of words that are the file's own: the texts may have them too */
  size_t own_count;
};

/* What the file's findings need. For files that the prefilter has seen, after the index. */
enum py_need py_candidate(const struct scan *scan, const struct source_file *file, struct py_talk *talk);
void py_talk_close(struct py_talk *talk);

/* --- one text under analysis -------------------------------------------------------------------------------------- */

struct py_notebook;
struct py_value;
struct py_kept;

struct py_unit {
  const struct scan *scan;
  const char *path; /* of the file in the tree */
  struct arena arena;
  struct py_source source;
  bool decoded;      /* false: source has the bytes as they are */
  size_t refused_at; /* offset of what Python would refuse */
  struct py_tree tree;
  struct py_scopes scopes;
  uint8_t *guards;  /* PY_GUARD_* of each node */
  uint32_t *probes; /* of each node: the innermost test that asks for a name; NULL without any */
  struct py_probe *probe_list;
  uint32_t probe_count, probe_capacity;
  struct py_value *binding_values; /* python_values.c: of each binding, as far as they were asked for */
  uint8_t *binding_states;
  struct py_kept *kept; /* and the attributes that an assignment gives a value, since they were asked for */
  uint32_t kept_count, kept_capacity;
  bool kept_known;
  const struct py_talk *talk; /* NULL when there is a tree */
  uint8_t *name_owners;       /* python_strings.c: of each name, as far as they were asked for */
  /* Only for files that are reported: */
  const struct source_file *file;
  struct result *result;
  const struct py_notebook *notebook; /* NULL for a .py file */
  size_t *lines;                      /* offsets of the newlines of the file */
  size_t lines_count;
  struct finding *findings; /* in any order until py_findings_close */
  size_t findings_count, findings_capacity;
};

/* Source, tree, scopes and guards of a file. Returns NULL, or why Python would refuse it; there is then no more than
 * what the reason leaves. To be closed in both cases. */
const char *py_unit_open(struct py_unit *unit, const struct scan *scan, const struct source_file *file);
/* The same of a text that was decoded already. */
const char *py_unit_parse(struct py_unit *unit);
void py_unit_close(struct py_unit *unit);
/* For the positions: of unit->file. */
void py_lines_open(struct py_unit *unit);

/* Line and column, in the file, of an offset in the source. */
void py_position(const struct py_unit *unit, size_t offset, uint32_t *line, uint32_t *column);
/* A finding at an offset of the source; the message lives in the arena. */
void py_find(struct py_unit *unit, size_t offset, const struct catalog_symbol *symbol, enum verdict verdict,
             enum evidence evidence, enum level level, const char *message);
/* Gives all findings to the result, line by line. */
void py_findings_close(struct py_unit *unit);
/* "NAME left sgl_kernel in 0.4.5", "NAME is no longer in sglang.jit_kernel.x": why a name is a finding. */
const char *py_moved(struct py_unit *unit, const struct catalog_symbol *symbol, const char *module);
const char *py_left(struct py_unit *unit, const struct catalog_symbol *symbol, enum catalog_layer layer,
                    const char *name);

/* --- python_literals.c -------------------------------------------------------------------------------------------- */

/* The characters of a string literal, decoded, and where each byte stands in the source. */
struct py_string {
  uint8_t *bytes;
  uint32_t *at;
  size_t size;
  bool fields; /* an f-string; each field is one NUL byte here */
};

void py_string_open(struct py_unit *unit, py_id node, struct py_string *string);
void py_string_close(struct py_string *string);

/* --- python_constants.c ------------------------------------------------------------------------------------------- */

/* Aliases of aliases are followed this far; an expression that is deeper has no value. */
#define PY_DEPTH_MAX 12

/* The value of a string literal without fields, or of a name that is bound to one, once. NULL: unknown. */
const char *py_constant(struct py_unit *unit, py_id node);
const char *py_constant_at(struct py_unit *unit, py_id node, unsigned depth);
/* The right-hand side of a name that is bound once, by an assignment; or none. */
py_id py_single_value(struct py_unit *unit, py_id node);

/* --- python_values.c ---------------------------------------------------------------------------------------------- */

#define PY_OWN_PACKAGE "sgl_kernel_jit"
/* In front of the operator namespace; and the path of a torch.library.Library object of it. */
#define PY_OPERATORS "torch.ops."
#define PY_LIBRARY "<library>"
/* Behind the path of what a function returns: "sgl_kernel()". */
#define PY_RETURNED "()"

enum {
  PY_VALUE_ASSIGNED = 1,   /* an alias made by an assignment or a call, not by an import */
  PY_VALUE_AMBIGUOUS = 2,  /* the name is bound to something else too */
  PY_VALUE_GUARDED = 4,    /* the import that binds it is guarded */
  PY_VALUE_VENDOR = 8,     /* the import that binds it is in a branch of another vendor */
  PY_VALUE_ELSEWHERE = 16, /* the import stands in another scope than the name (global) */
  PY_VALUE_FOREIGN = 32,   /* it is guarded in the module that it is imported from */
};

struct py_value {
  const char *path; /* dotted; NULL: unknown */
  unsigned flags;
  py_id statement; /* the import statement that binds the root, or none */
  py_id root;      /* the identifier that the expression starts with, or none */
};

struct py_value py_evaluate(struct py_unit *unit, py_id node);
/* The value of a name from the first of its bindings on, for code at `use`; deferred: code that runs later. */
struct py_value py_chain_value(struct py_unit *unit, uint32_t first, py_id use, bool deferred, unsigned depth);
/* The package of the catalog, "sgl_kernel", or a module in it. */
bool py_is_package(const struct scan *scan, const char *path);
/* Its operator namespace: as a path, "torch.ops.sgl_kernel", or alone. */
bool py_is_operators(const struct scan *scan, const char *path);
bool py_is_namespace(const struct scan *scan, const char *word);
/* The package, its operator namespace or a Library of it. */
bool py_is_owner(const struct scan *scan, const char *path);
/* Are the package or the namespace named anywhere in the bytes? */
bool py_names_owner(const struct scan *scan, const uint8_t *bytes, size_t size);
/* The path of what a call of `path` gives; NULL when it is no function that returns an owner. */
const char *py_returned(struct py_unit *unit, const char *path);
/* The last part of a call's function: "getattr" of getattr(...), "patch" of mock.patch(...). */
py_id py_call_name(const struct py_tree *tree, py_id call);
/* The call whose argument the node is, through a keyword; or none. */
py_id py_argument_of(const struct py_tree *tree, py_id node);
/* A positional argument, or the one with this keyword; or none. */
py_id py_argument(const struct py_tree *tree, py_id call, unsigned position, const char *keyword);

/* --- python_guards.c ---------------------------------------------------------------------------------------------- */

enum {
  PY_GUARD_TRY = 1,     /* body of a try that takes a failed import, or of suppress() */
  PY_GUARD_HANDLER = 2, /* the fallback arm of such a try */
  PY_GUARD_VENDOR = 4,  /* branch of another vendor */
};

/* A test that asks for names: hasattr, getattr, or a flag made with them. Chained to the one around it. */
struct py_probe {
  py_id condition;
  uint32_t outer; /* index + 1 */
};

void py_guards_open(struct py_unit *unit);
/* Does the block end in return, raise, sys.exit(), pytest.skip() or the like? */
bool py_leaves(const struct py_tree *tree, py_id block);
/* Does a branch around the node ask for this name? */
bool py_probed(struct py_unit *unit, py_id node, const char *name);

/* --- python_text.c ------------------------------------------------------------------------------------------------ */

enum py_text_use {
  PY_TEXT_IMPORT,    /* from sgl_kernel import NAME */
  PY_TEXT_QUALIFIED, /* sgl_kernel.NAME, and the text imports the package */
  PY_TEXT_BARE,      /* sgl_kernel.NAME, and nothing imports it */
};

/* python_find_in_text with the form of each use. */
void py_find_uses(const struct scan *scan, const uint8_t *bytes, size_t size,
                  void (*found)(void *user, size_t offset, const struct catalog_symbol *symbol, enum py_text_use use),
                  void *user);

/* Who stands before a word at `at`; *path is the dotted or coloned path in front of it, NULL without one. */
enum py_owner {
  PY_OWNER_NONE,    /* the word stands alone */
  PY_OWNER_PACKAGE, /* it is a removed name of that owner; *symbol is set */
  PY_OWNER_OTHER,   /* somebody else's, or a living name */
};
enum py_owner py_owner_before(const struct scan *scan, struct arena *arena, const uint8_t *bytes, size_t at,
                              size_t length, const struct catalog_symbol **symbol, const char **path);

/* A string that names a removed thing to a loader: "sgl_kernel.gemm:NAME", "label = sgl_kernel:NAME",
 * "sgl_kernel::NAME". `from` and `to` bound one line of it. Returns the offset of the name, or SIZE_MAX. */
size_t py_loader_name(const struct scan *scan, const uint8_t *bytes, size_t from, size_t to,
                      const struct catalog_symbol **symbol);

/* Everything that text alone shows of a file that Python cannot parse or decode. */
void py_text_analyse(struct py_unit *unit, const char *reason);

/* --- python_named.c ----------------------------------------------------------------------------------------------- */

/* "sgl_kernel.gemm" of the object, without the dictionaries of a module; NULL when it is none of ours. */
const char *py_owner_path(struct py_unit *unit, py_id node);
/* In which module or namespace does a call, comparison or index look up the expression `node`? NULL: in none of ours.
 */
const char *py_looked_up_in(struct py_unit *unit, py_id node);

struct py_named {
  py_id string;
  const char *path; /* where the name is looked up */
};

struct py_named_list {
  struct py_named *list; /* in the order of the text */
  size_t count, capacity;
};

/* Every string whose text reaches such a place through a name. */
struct py_named_list py_named_gather(struct py_unit *unit);
int py_named_compare(const void *left, const void *right);

/* --- python_strings.c --------------------------------------------------------------------------------------------- */

void py_comment(struct py_unit *unit, size_t start, size_t end);
/* Is the word a word of its own, and no name of an argument? */
bool py_mention_stands(const uint8_t *bytes, size_t size, size_t from, size_t end);
/* NAME.py is a module of that name, not the function. */
bool py_module_file(const uint8_t *bytes, size_t size, size_t end);
/* Is there one of the words of functions that print, log, warn or raise in a name such as "logger.info_once",
 * "ValueError", "_log_on_rank_0"? */
bool py_speaks(const uint8_t *name, size_t size);
/* Each word of text cells, comments and log text that names a removed thing. `at` may be NULL: then bytes stand in the
 * source from `base` on. */
void py_mentions(struct py_unit *unit, const uint8_t *bytes, const uint32_t *at, size_t base, size_t size);

/* --- python_ignore.c ---------------------------------------------------------------------------------------------- */

/* Gives the comments that accept uses to the result: by the tree, or by a class (ignore.h) for each byte. */
void py_ignores_read(struct py_unit *unit);
void py_ignores_take(struct py_unit *unit, const uint8_t *classes);

/* --- python_changed.c --------------------------------------------------------------------------------------------- */

/* Adds the calls that a change of their function breaks. */
void py_changed(struct py_unit *unit);

/* --- python_uses.c ------------------------------------------------------------------------------------------------ */

enum py_use_kind {
  PY_USE_IMPORT,    /* from sgl_kernel import NAME */
  PY_USE_QUALIFIED, /* sgl_kernel.NAME */
  PY_USE_OPERATOR,  /* torch.ops.sgl_kernel.NAME */
  PY_USE_STAR,      /* NAME, out of a star import */
  PY_USE_MODULE,    /* import of a module that has gone with its function */
  PY_USE_STRING,    /* a string for a loader */
};

struct py_use {
  enum py_use_kind kind;
  const struct catalog_symbol *symbol;
  const struct catalog_route *route; /* where to, when the verdict is REWRITE */
  py_id node;                        /* the import's list entry, or the attribute */
  py_id statement;                   /* the import statement itself, or the one that the new import follows */
  size_t offset;                     /* of the name, in the source */
  uint32_t length;                   /* of the name */
  const char *reason;                /* why a person is needed; NULL: none so far */
  const char *module;                /* where the name was */
  struct py_value value;
  enum verdict verdict;
  enum level level;
};

struct py_uses {
  struct py_use *list;
  size_t count, capacity;
  uint8_t *marks; /* PY_MARK_* of each symbol of the catalog */
  bool fakes_package;
};

enum {
  PY_MARK_NEW = 1,     /* the file has the function from a living target too */
  PY_MARK_PATCHED = 2, /* the file patches it or assigns to it */
  PY_MARK_PACKAGE = 4, /* it comes from the kernel package */
  PY_MARK_EARLIER = 8, /* it comes from a dropped module of sglang */
};

void py_uses_collect(struct py_unit *unit, struct py_uses *uses);
void py_uses_judge(struct py_unit *unit, struct py_uses *uses);
void py_uses_report(struct py_unit *unit, const struct py_uses *uses);
void py_uses_free(struct py_uses *uses);
struct py_use *py_use_add(struct py_uses *uses, enum py_use_kind kind, const struct catalog_symbol *symbol,
                          size_t offset, size_t length);
void py_use_mark(struct py_unit *unit, struct py_uses *uses, const struct catalog_symbol *symbol, unsigned mark);

/* python_strings.c: the loader strings become uses, the rest is reported as mentions. */
void py_strings_collect(struct py_unit *unit, struct py_uses *uses);

/* --- python_conditions.c ------------------------------------------------------------------------------------------ */

/* "; conditions that are narrower than the new function: ..." of a use, or "". */
const char *py_conditions(struct py_unit *unit, const struct py_use *use);

/* --- python_layout.c ---------------------------------------------------------------------------------------------- */

struct py_layout {
  bool follows, followed; /* another statement or a colon stands before it, a semicolon behind it, on its line */
  const char *indent;     /* blanks at the start of its line */
  const char *newline;    /* the line ending there */
  size_t line_end;        /* offset of the end of the statement's last line, before the line ending */
};

struct py_layout py_layout(struct py_unit *unit, py_id statement);

/* --- python_edits.c ----------------------------------------------------------------------------------------------- */

void py_edits_make(struct py_unit *unit, struct py_uses *uses);

/* --- python_notebook.c -------------------------------------------------------------------------------------------- */

struct py_notebook *py_notebook_open(struct py_unit *unit, const char **why);
void py_notebook_close(struct py_notebook *notebook);
/* Offset in the file of an offset in the joined code. */
size_t py_notebook_raw(const struct py_notebook *notebook, size_t offset);
/* Adds an edit of the joined code as an edit of the file's bytes. */
void py_notebook_edit(const struct py_notebook *notebook, struct result *result, uint32_t group, size_t start,
                      size_t end, const char *text, size_t size);
/* Reports the text cells and the code cells of other languages. */
void py_notebook_text(struct py_unit *unit, const struct py_notebook *notebook);

#endif
