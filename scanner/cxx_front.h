/* What the parts of the C++ front share. One cxx_unit is one file under analysis with everything it includes from the
 * tree; it lives on one thread.
 *
 *   cxx_index.c       facts of the whole tree, built once
 *   cxx_facts.c       what the index takes from every file while it is read
 *   cxx_told.c        what it takes from the tokens of a file
 *   cxx_asked.c       which of all that an analysis asked for
 *   cxx_lexer.c       text to tokens
 *   cxx_preprocess.c  macros and conditions
 *   cxx_unit.c        walks a file and its headers, and writes the text that libclang gets
 *   cxx_context.c     headers that only make sense where they are included
 *   cxx_scopes.c      namespaces, classes and functions, from tokens (with cxx_items.c, cxx_statements.c,
 *                     cxx_declarations.c and cxx_lookup.c)
 *   cxx_limits.c      what libclang should not get
 *   cxx_ast.c         the same question put to libclang
 *   cxx_uses.c        verdicts of names in code
 *   cxx_configurations.c  the same as a compile database has the file compiled
 *   cxx_database.c    which macros, folders and forced headers that are (with cxx_commands.c)
 *   cxx_conditions.c  conditions around a use that are narrower than the new function
 *   cxx_strings.c     strings and comments
 *   cxx_pasted.c      names that macros paste together
 *   cxx_edits.c       what fix writes
 */
#ifndef SGL_CXX_FRONT_H
#define SGL_CXX_FRONT_H

#include "scanner/arena.h"
#include "scanner/cxx_database.h"
#include "scanner/cxx_lexer.h"
#include "scanner/cxx_preprocess.h"
#include "scanner/scanner.h"

#include <pthread.h>

#define CXX_NONE UINT32_MAX

/* --- the index ---------------------------------------------------------------------------------------------------- */

/* A C++ function or kernel template of the catalog. */
struct cxx_name {
  const char *word;
  uint32_t length;
  bool is_template;
  bool removed;                          /* on any platform */
  const struct catalog_symbol **symbols; /* with this name; more than one when a name left twice */
  unsigned symbols_count;
};

/* Of one parameter: what can be told without knowing any type. */
enum cxx_parameter { CXX_PARAMETER_OTHER, CXX_PARAMETER_TENSOR, CXX_PARAMETER_BUILTIN };

#define CXX_MOST_PARAMETERS 32

struct cxx_signature {
  unsigned least, most;                    /* arguments that a call may have; variadic: most is UINT_MAX */
  uint8_t parameters[CXX_MOST_PARAMETERS]; /* enum cxx_parameter of the first ones */
};

struct cxx_index;

/* The catalog name that a word is, or -1. */
int cxx_index_find(const struct scan *scan, const uint8_t *text, size_t length);
const struct cxx_name *cxx_index_name(const struct scan *scan, int name);
/* The signature of a symbol's C++ function, from its declaration in the catalog. */
const struct cxx_signature *cxx_index_signature(const struct scan *scan, const struct catalog_symbol *symbol);
/* Does any file of the tree define a function-like macro of that name? */
bool cxx_index_macro(const struct scan *scan, const uint8_t *text, size_t length);
/* May a use of that name be one of a function-like macro of the tree that pastes tokens, or uses macros that may? */
bool cxx_index_pastes(const struct scan *scan, const uint8_t *text, size_t length);
/* Does any file of the tree define a macro with that catalog name? */
bool cxx_index_renames(const struct scan *scan, int name);
/* Does the tree define another function of that name, which a call with arguments of unknown types may find? */
bool cxx_index_elsewhere(const struct scan *scan, int name);
/* What the file's tokens say (cxx_facts.h), read when it is first asked for; safe for all workers. */
const char *cxx_index_told(const struct scan *scan, const struct source_file *file);
/* Has the file bytes? Those that were not kept, or not read, are read when they are first asked for; safe for all
 * workers. */
bool cxx_index_load(const struct scan *scan, const struct source_file *file);
/* The tokens of a file of the tree, lexed when they are first asked for; safe for all workers. A file that a fix gave
 * new bytes is lexed into *own, which the caller frees in any case. */
const struct cxx_tokens *cxx_index_tokens(const struct scan *scan, const struct source_file *file,
                                          struct cxx_tokens *own);
/* The same, but only what begins before byte `size` need be there; what was not lexed yet goes into *own. */
const struct cxx_tokens *cxx_index_first_tokens(const struct scan *scan, const struct source_file *file, size_t size,
                                                struct cxx_tokens *own);
/* The unit that the index read of this file, now the caller's; NULL: none. */
struct cxx_unit *cxx_index_take_unit(const struct scan *scan, const struct source_file *file);
/* The header of the tree that an include in `from` means, or NULL. */
const struct source_file *cxx_index_header(const struct scan *scan, const struct source_file *from, const uint8_t *text,
                                           size_t length);
/* Calls visit for each file that may include `file`, until it returns false. */
void cxx_index_includers(const struct scan *scan, const struct source_file *file,
                         bool (*visit)(void *user, const struct source_file *includer), void *user);
/* Does the tree itself define the symbol's function with the same signature? */
bool cxx_index_defines(const struct scan *scan, const struct catalog_symbol *symbol);
/* The operator namespace that the function `text` registers in, by its callers in the tree: the library's own (true),
 * another or unknown (false). */
bool cxx_index_registers(const struct scan *scan, const uint8_t *text, size_t length);
struct cxx_readers *cxx_index_readers(const struct scan *scan);
/* The compile databases of the tree, or NULL; before the index is there they have to be opened. */
const struct cxx_database *cxx_index_database(const struct scan *scan);
void cxx_index_open_database(struct scan *scan);
/* Stand-ins for the wheel's header and for this project's own: declarations from the catalog. */
const char *cxx_index_wheel_header(const struct scan *scan);
const char *cxx_index_jit_header(const struct scan *scan);

/* --- scopes ------------------------------------------------------------------------------------------------------- */

struct cxx_scope;

/* Where the parser of scopes stands; copied at #if and put back at #else and #endif. Its lists are never changed, only
 * grown at their head. */
struct cxx_state {
  struct cxx_scope *scope;
  const struct cxx_frame *frame;      /* the scopes around it */
  const struct cxx_item *base, *tail; /* the statement so far: the tokens after base up to tail */
  const struct cxx_item *first;       /* its first token */
  const struct cxx_bracket *bracket;  /* open in the statement */
  unsigned count;                     /* tokens of the statement */
  unsigned skip;                      /* open braces of a function body in a header, which is not looked at */
  bool named;                         /* the statement has a catalog name */
};

enum cxx_owner {
  CXX_OWNER_UNPROVEN,  /* no declaration in view */
  CXX_OWNER_REMOVED,   /* the removed function */
  CXX_OWNER_OTHER,     /* something else of that name */
  CXX_OWNER_AMBIGUOUS, /* both would fit */
};

enum cxx_role {
  CXX_ROLE_REFERENCE, /* address, template argument, default argument, ... */
  CXX_ROLE_CALL,      /* the plain or qualified name before a parenthesis */
  CXX_ROLE_DECLARATION,
  CXX_ROLE_DEFINITION,
  CXX_ROLE_USING,         /* using-declaration */
  CXX_ROLE_INSTANTIATION, /* explicit instantiation or specialisation of a template */
  CXX_ROLE_MACRO_NAME,    /* #define of that name */
  CXX_ROLE_MACRO_BODY,
  CXX_ROLE_MACRO_USE, /* the name is a macro here, and stands for the function */
  CXX_ROLE_OTHER,     /* declares or names something else */
};

enum cxx_qualifier { CXX_PLAIN, CXX_GLOBAL, CXX_NAMED };

/* A catalog name in the code of the file. */
struct cxx_use {
  uint32_t token;
  uint32_t qualifier_token; /* of the leading :: when qualifier is CXX_GLOBAL */
  int name;
  const struct catalog_symbol *symbol;
  uint8_t role, qualifier, owner;
  uint8_t ast; /* enum cxx_owner; CXX_OWNER_UNPROVEN: no node */
  bool ast_declaration;
  bool ast_open;                     /* libclang leaves open which function it is: the arguments depend on a template */
  bool unsure;                       /* found without a look at the scopes around it */
  uint8_t judged;                    /* enum cxx_owner, from all that is known */
  const char *why;                   /* why a person is needed; NULL: the call is rewritten */
  const struct cxx_config *compiled; /* that compiles the branch, which is not compiled without it */
  const struct catalog_route *route; /* what the call becomes; NULL: it stays */
  struct cxx_scope *scope;
  const struct cxx_item *path; /* last token of the qualifier of CXX_NAMED */
  uint32_t order;
};

#define CXX_CHILD_BUCKETS 1024
/* A file with more uses than this is generated; the rest of them is reported without a look at the scopes. */
#define CXX_MOST_USES 10000

/* cxx_told.c: what the tokens of a file say; hit: with what it does with catalog names. */
char *cxx_told_read(const struct scan *scan, const struct cxx_tokens *tokens, bool hit);

/* --- the unit ----------------------------------------------------------------------------------------------------- */

enum cxx_directive_kind {
  CXX_INCLUDE,
  CXX_DEFINE,
  CXX_UNDEF,
  CXX_IF,
  CXX_IFDEF,
  CXX_IFNDEF,
  CXX_ELIF,
  CXX_ELSE,
  CXX_ENDIF,
  CXX_ONCE,    /* #pragma once */
  CXX_MESSAGE, /* #error, #warning, #pragma message */
  CXX_DIRECTIVE_OTHER,
};

/* A directive of the file itself. */
struct cxx_directive {
  enum cxx_directive_kind kind;
  uint32_t first, last; /* its CXX_HASH and CXX_NEWLINE tokens */
  uint32_t header;      /* CXX_INCLUDE: token with the name, or CXX_NONE */
  unsigned depth;       /* conditions around it; an #if and its #endif lie outside of their own */
  bool active;
};

/* A text of the translation unit as libclang gets it. */
struct cxx_part {
  const struct source_file *file; /* NULL: a stand-in header */
  const uint8_t *bytes;           /* the original; same length as text */
  char *text; /* owned; without conditions, what is not compiled, pragmas and includes from elsewhere */
  size_t size;
  bool stand_in;
};

struct cxx_string_place {
  uint32_t token;
  struct cxx_scope *scope;
};

struct cxx_unit {
  const struct scan *scan;
  const struct source_file *file;
  const struct cxx_config *config; /* the command line; NULL: none */
  struct result *result;
  struct arena arena;
  struct cxx_tokens tokens;
  uint32_t *lines; /* where each line starts */
  uint32_t lines_count;
  bool c_source; /* C, not C++ */
  bool backend;  /* a source of another GPU vendor */
  enum catalog_platform platform;

  struct cxx_macros macros;
  struct cxx_directive *directives;
  uint32_t directives_count, directives_capacity;

  struct cxx_part *parts;            /* [0] is the file itself */
  uint32_t root_part;                /* what libclang starts with, */
  uint32_t first_forced, end_forced; /* after these: the macros of the command line, its forced headers */
  bool alone;                        /* what it includes is not read */
  bool reached;                      /* the file was read */
  bool nested;                       /* it is included inside of a namespace, class or function */
  uint32_t parts_count, parts_capacity;
  size_t parts_size;
  unsigned includes_count;
  uint8_t *times; /* for each file of the scan: how often it was included */
  bool wheel_included, jit_included;
  bool includable;       /* an include can be added */
  bool *elsewhere;       /* one a catalog name: see cxx_scopes_elsewhere */
  bool jit_hidden;       /* sgl_kernel_jit is something else here than the namespace of this project's header */
  bool headers_left_out; /* the tree's headers are too many for one file */
  const char *too_much;  /* why libclang did not get the file; NULL: it may or did */

  struct cxx_scope *global;
  struct cxx_scope *children[CXX_CHILD_BUCKETS]; /* namespaces and classes by parent and name */
  uint32_t lookups, declarations_count;
  struct cxx_state state;
  uint32_t order;
  bool feeding_main, feeding_inactive;
  bool feeding_plain; /* the next token is a macro's name, whatever it is called */
  struct cxx_string tensor_aliases[64];
  unsigned tensor_aliases_count;

  struct cxx_use *uses;
  bool *use_of; /* for each token: it has a use */
  uint32_t uses_count, uses_capacity;
  struct cxx_string_place *strings;
  uint32_t strings_count, strings_capacity;
};

/* cxx_unit.c: read the file and what it includes; afterwards tokens, directives, parts, uses and strings are there.
 * root: read this file instead, which includes the file directly or through others, so that the file is seen where it
 * is included; unit->reached says whether it was. NULL: the file itself. config: the command line, or NULL. alone:
 * without what it includes. */
void cxx_unit_read(struct cxx_unit *unit, const struct scan *scan, const struct source_file *file,
                   const struct source_file *root, const struct cxx_config *config, bool alone);
void cxx_unit_free(struct cxx_unit *unit);
/* The catalog symbol of a name that is gone on the unit's platform, or NULL while it lives. */
const struct catalog_symbol *cxx_unit_removed(const struct cxx_unit *unit, int name);
/* 1-based line and column of a byte of the file. */
void cxx_unit_position(const struct cxx_unit *unit, size_t offset, uint32_t *line, uint32_t *column);
/* The text of a token of the file. */
struct cxx_string cxx_unit_text(const struct cxx_unit *unit, uint32_t token);

/* cxx_scopes.c */
void cxx_scopes_begin(struct cxx_unit *unit);
/* The next token; index is its number in the file itself, CXX_NONE in a header. */
void cxx_scopes_token(struct cxx_unit *unit, const uint8_t *bytes, const struct cxx_token *token, uint32_t index);
void cxx_scopes_end(struct cxx_unit *unit);
/* An include of one of the stand-in headers. */
void cxx_scopes_stand_in(struct cxx_unit *unit, bool wheel);
/* Finds the owner of every use; after cxx_scopes_end. */
void cxx_scopes_resolve(struct cxx_unit *unit);
/* The namespace that a place registers operators in: TORCH_LIBRARY(namespace, m) {. Length 0: no registration there. */
struct cxx_string cxx_scope_registration(const struct cxx_scope *scope);
/* The function around a place that takes a Library parameter; length 0: none. */
struct cxx_string cxx_scope_registrar(const struct cxx_scope *scope);
/* The signature in the text of a declaration. */
void cxx_signature_read(struct cxx_unit *unit, const uint8_t *text, size_t size, struct cxx_signature *signature);
/* Has the file (with its headers) a declaration of that name of another owner / of the removed function? */
void cxx_scopes_declared(const struct cxx_unit *unit, int name, bool *removed, bool *other);
/* Marks, one a catalog name, those of which another function is in view that its arguments' types may lead to. */
void cxx_scopes_elsewhere(const struct cxx_unit *unit, bool *names);
/* Is the declaration at this byte of a part another function than the catalog's, by its parameters? */
bool cxx_scopes_mismatch(const struct cxx_unit *unit, const uint8_t *at);
/* How many arguments the call at a token has: least to most, UINT_MAX when they cannot be counted. */
void cxx_scopes_arguments(const struct cxx_unit *unit, uint32_t token, unsigned *least, unsigned *most);
/* A name that the scopes did not get to, because it stands too deep or in text that is too long. */
void cxx_scopes_leftover(struct cxx_unit *unit, uint32_t token, int name);

/* cxx_context.c: read a file alone, or, when that does not tell whose its names are, where it is included. */
void cxx_unit_open(struct cxx_unit *unit, const struct scan *scan, const struct source_file *file,
                   const struct cxx_config *config);
/* For the analysis, after the index is complete; to be freed. */
struct cxx_unit *cxx_unit_new(const struct scan *scan, const struct source_file *file);

/* cxx_limits.c: looks at the texts of the unit; sets unit->too_much. */
void cxx_limits_check(struct cxx_unit *unit);

/* cxx_ast.c: fills use.ast, or sets unit->too_much. */
void cxx_ast_resolve(struct cxx_unit *unit);
/* What reads for it, used again and again; in the index. */
struct cxx_readers {
  pthread_mutex_t mutex;
  struct cxx_reader *free;
};
void cxx_ast_close(struct cxx_readers *readers);

/* cxx_uses.c: judges each name in code; calls that may be rewritten get use.route. */
void cxx_uses_judge(struct cxx_unit *unit);
/* Their findings. */
void cxx_uses_report(struct cxx_unit *unit);
/* cxx_configurations.c: after cxx_uses_judge, changes what the compile databases know better. */
void cxx_configurations_read(struct cxx_unit *unit);
/* cxx_conditions.c: "; conditions that are narrower ..." around a use, owned by the caller; NULL: none. */
char *cxx_conditions(const struct cxx_unit *unit, const struct cxx_use *use);
/* cxx_strings.c: findings for strings, comments and #error texts. */
void cxx_strings_find(struct cxx_unit *unit);
/* cxx_pasted.c: findings for names that a macro puts together. */
void cxx_pasted_find(struct cxx_unit *unit);
/* cxx_edits.c: can the file get an include? Not the unit of a module without a place in front of the module. */
bool cxx_edits_includable(const struct cxx_unit *unit);
/* The edits of all findings that are VERDICT_REWRITE, and the new include. */
void cxx_edits_make(struct cxx_unit *unit);

#endif
