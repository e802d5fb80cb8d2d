/* The pieces of the parser of scopes: private to cxx_items.c, cxx_declarations.c, cxx_statements.c, cxx_scopes.c and
 * cxx_lookup.c; cxx_ast.c asks what kind a scope is. */
#ifndef SGL_CXX_SCOPES_H
#define SGL_CXX_SCOPES_H

#include "scanner/cxx_front.h"

#include <string.h>

/* Stands in a statement for a body that was a scope of its own. */
#define BODY 600

/* A token of a statement. */
struct cxx_item {
  const struct cxx_item *previous;
  const uint8_t *text;
  uint32_t length;
  uint32_t index; /* token of the file itself, or CXX_NONE */
  uint16_t code;
  uint8_t kind;
  int name; /* catalog name, or -1 */
};

struct cxx_bracket {
  const struct cxx_bracket *outer;
  const struct cxx_item *item;
};

struct cxx_frame {
  const struct cxx_frame *outer;
  struct cxx_scope *scope;
  bool resume; /* the statement goes on after the body */
  const struct cxx_item *base, *tail, *first;
  const struct cxx_bracket *bracket;
  unsigned count;
  bool named;
};

enum scope_kind { SCOPE_NAMESPACE, SCOPE_CLASS, SCOPE_ENUM, SCOPE_FUNCTION, SCOPE_BLOCK, SCOPE_LINKAGE };

enum declaration_kind { DECLARES_FUNCTION, DECLARES_TEMPLATE, DECLARES_OTHER, DECLARES_USING };

struct cxx_declaration {
  struct cxx_declaration *next;
  int name;
  enum declaration_kind kind;
  const struct catalog_symbol *removed; /* the removed function that it declares, or NULL */
  bool internal, inactive, definition, mismatch;
  unsigned least, most;
  uint32_t order;
  const struct cxx_item *path; /* DECLARES_USING: last token of what stands before the name */
  struct cxx_scope *scope;     /* where a using-declaration stands */
  const uint8_t *at;           /* the name in its file */
};

/* using namespace path, namespace name = path, base class path. */
struct link {
  struct link *next;
  struct cxx_string name;
  const struct cxx_item *path;
  struct cxx_scope *target; /* when path is NULL */
};

/* A namespace, class, enum, function, block or extern block. */
struct cxx_scope {
  enum scope_kind kind;
  bool anonymous, c_linkage;
  unsigned depth;
  uint32_t visited; /* lookup that was here */
  struct cxx_scope *parent;
  struct cxx_scope *children, *sibling; /* namespaces and classes */
  struct cxx_scope *chained;            /* the next one in its bucket of the table of children */
  struct cxx_string name;
  struct cxx_declaration *declarations;
  struct link *directives, *aliases, *bases;
  struct cxx_scope *member_of; /* class or namespace of a function defined outside of it */
  struct cxx_string registration, registrar;
};

/* --- small questions ---------------------------------------------------------------------------------------------- */

static inline bool is(const struct cxx_item *item, unsigned code) {
  return item->kind == CXX_PUNCT && item->code == code;
}

static inline bool keyword(const struct cxx_item *item, unsigned code) {
  return item->kind == CXX_WORD && item->code == code;
}

static inline bool plain_word(const struct cxx_item *item) {
  return item->kind == CXX_WORD && item->code == KW_NONE;
}

static inline bool reads(const struct cxx_item *item, const char *text) {
  return item->length == strlen(text) && memcmp(item->text, text, item->length) == 0;
}

static inline bool type_keyword(const struct cxx_item *item) {
  return item->kind == CXX_WORD && cxx_keyword_is_type(item->code);
}

static inline bool qualifier_keyword(const struct cxx_item *item) {
  return item->kind == CXX_WORD && cxx_keyword_is_qualifier(item->code);
}

static inline bool class_key(const struct cxx_item *item) {
  return keyword(item, KW_class) || keyword(item, KW_struct) || keyword(item, KW_union);
}

static inline bool same(struct cxx_string a, struct cxx_string b) {
  return a.length == b.length && memcmp(a.text, b.text, a.length) == 0;
}

static inline struct cxx_string string_of(const struct cxx_item *item) {
  return (struct cxx_string){item->text, item->length};
}

static inline bool declarative(const struct cxx_scope *scope) {
  return scope->kind == SCOPE_NAMESPACE || scope->kind == SCOPE_CLASS || scope->kind == SCOPE_LINKAGE;
}

/* Where a declaration written in the scope ends up. */
static inline struct cxx_scope *home(struct cxx_scope *scope) {
  while (scope->kind == SCOPE_LINKAGE)
    scope = scope->parent;
  return scope;
}

static inline struct cxx_scope *namespace_of(struct cxx_scope *scope) {
  while (scope->kind != SCOPE_NAMESPACE)
    scope = scope->parent;
  return scope;
}

/* A statement in order. */
struct items {
  const struct cxx_item **list;
  int count;
};

/* What declares a function, in a statement at namespace or class level. */
struct declarator {
  int open, close; /* its parameter list; open is -1 when the statement declares no function */
  int first, name; /* tokens of a::b::name; name is -1 for an operator */
};

/* What decides whether a declared function is the removed one. */
struct function_facts {
  bool is_static, c_linkage, is_template, definition;
  struct cxx_signature signature;
};

/* cxx_items.c */
/* The tokens after `base` up to `tail`, in order; free the list. */
struct items cxx_collect(const struct cxx_item *base, const struct cxx_item *tail);
bool cxx_opens(const struct cxx_item *item);
bool cxx_closes(const struct cxx_item *item);
/* The bracket that closes the one at `at`; end when there is none. */
int cxx_forward(const struct items *s, int at, int end);
/* The bracket that opens the one closed at `at`; -1 when there is none. */
int cxx_backward(const struct items *s, int at);
/* The > for the < at `at`, if what lies between can be template arguments, and the other way round; else -1. */
int cxx_forward_angle(const struct items *s, int at, int end);
int cxx_backward_angle(const struct items *s, int at);
bool cxx_contains(const struct items *s, int from, int to, unsigned code);
bool cxx_has_keyword(const struct items *s, int from, int to, unsigned code);

/* cxx_declarations.c */
/* The parameters between the parentheses at `open` and `close`. */
void cxx_read_parameters(const struct cxx_unit *unit, const struct items *s, int open, int close,
                         struct cxx_signature *signature);
/* Does the word mean at::Tensor, also by an alias? */
bool cxx_tensor_word(const struct cxx_unit *unit, const struct cxx_item *item);
struct cxx_declaration *cxx_declare(struct cxx_unit *unit, struct cxx_scope *scope, const struct cxx_item *item,
                                    enum declaration_kind kind);
struct cxx_declaration *cxx_declare_function(struct cxx_unit *unit, struct cxx_scope *scope,
                                             const struct cxx_item *item, const struct function_facts *facts);
/* Uses are entered once a token; the first entry stays. */
bool cxx_has_use(const struct cxx_unit *unit, const struct cxx_item *item);
void cxx_add_use(struct cxx_unit *unit, const struct items *s, int at, enum cxx_role role,
                 const struct cxx_declaration *declaration);
void cxx_add_reference(struct cxx_unit *unit, const struct items *s, int at);
/* A variable, type or the like of that name. */
void cxx_add_other(struct cxx_unit *unit, struct cxx_scope *scope, const struct items *s, int at);

/* cxx_statements.c */
struct declarator cxx_find_declarator(const struct items *s, int start);
/* Can the token end the type in front of a declared name? */
bool cxx_ends_type(const struct items *s, int at, int start);
/* Can the token stand behind a declared variable, field or parameter? */
bool cxx_after_variable(const struct items *s, int at);
/* Whatever the context: the token cannot name a function here. */
bool cxx_other_thing(const struct items *s, int at);
/* decltype, noexcept, __attribute__: their parentheses hold no parameters. */
bool cxx_attribute_word(const struct cxx_item *item);
bool cxx_extern_c(const struct items *s, int at);
/* Is the [ at `open` a lambda's, or the one of auto [a, b]? */
bool cxx_introduces(const struct items *s, int open);
/* body: the scope of the function whose head this is, or NULL. */
void cxx_declarative_statement(struct cxx_unit *unit, struct cxx_scope *scope, struct cxx_scope *body,
                               const struct items *s);
/* label: a colon ended it. */
void cxx_body_statement(struct cxx_unit *unit, struct cxx_scope *scope, const struct items *s, bool label);
/* Behind template<...>; *is_template when there is one with parameters, which are declared in `body` if that is not
 * NULL.
 */
int cxx_skip_template_heads(struct cxx_unit *unit, const struct items *s, struct cxx_scope *body, bool *is_template);
void cxx_enum_statement(struct cxx_unit *unit, struct cxx_scope *scope, const struct items *s);

/* cxx_lookup.c */
struct cxx_scope *cxx_new_scope(struct cxx_unit *unit, struct cxx_scope *parent, enum scope_kind kind);
/* Names a namespace or class, so that paths find it. */
void cxx_name_scope(struct cxx_unit *unit, struct cxx_scope *scope, struct cxx_string name);
struct link *cxx_add_link(struct cxx_unit *unit, struct link **list, const struct cxx_item *path);
struct cxx_scope *cxx_find_child(const struct cxx_unit *unit, const struct cxx_scope *scope, struct cxx_string name,
                                 bool namespaces_only);
/* The scope that a::b::c means when c is the last token; NULL when it is not in view. */
struct cxx_scope *cxx_resolve_path(const struct cxx_unit *unit, struct cxx_scope *from, const struct cxx_item *path);

#endif
