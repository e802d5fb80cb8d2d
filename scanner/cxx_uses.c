/* Verdicts for names in code, and the front's entry point. */
#include "scanner/changed.h"
#include "scanner/cxx_facts.h"
#include "scanner/cxx_front.h"
#include "scanner/ignore.h"

#include <stdlib.h>
#include <string.h>

/* A call whose function is found only when its argument types are known: another one may be found in their namespace.
 */
static bool may_be_elsewhere(const struct cxx_unit *unit, const struct cxx_use *use) {
  return use->qualifier == CXX_PLAIN && (use->ast_open || use->ast == CXX_OWNER_UNPROVEN) &&
         (unit->elsewhere[use->name] || cxx_index_elsewhere(unit->scan, use->name));
}

/* Why a live use is not rewritten, and what to do; NULL when it is. */
static const char *reason(struct cxx_unit *unit, const struct cxx_use *use, enum cxx_owner owner,
                          const struct catalog_route **route) {
  const char *why = NULL;
  unsigned flags = unit->tokens.list[use->token].flags;
  *route = NULL;
  if (unit->tokens.conflict)
    return "the file has an unresolved merge; resolve it and scan again";
  switch (use->role) {
  case CXX_ROLE_MACRO_NAME:
    return "a macro takes its name; see what the macro stands for in each configuration";
  case CXX_ROLE_MACRO_BODY:
    return "in a macro's body, which each use may compile differently; change the macro by hand";
  case CXX_ROLE_MACRO_USE:
    return "the name is a macro here; see what the macro stands for and change it by hand";
  default:
    break;
  }
  if (flags & CXX_INACTIVE)
    return "in a branch that is not compiled without command-line macros; change it by hand where that branch is built";
  if (flags & CXX_ARGUMENT)
    return "in the arguments of a macro, which may use the text in other ways; change it by hand";
  if (cxx_index_name(unit->scan, use->name)->is_template)
    return "the kernel template was deleted with its source file and has no replacement; call the function instead";
  if (cxx_index_defines(unit->scan, use->symbol))
    return "this tree defines the function itself; decide whether to keep that copy or to use the replacement";
  switch (use->role) {
  case CXX_ROLE_CALL:
    break;
  case CXX_ROLE_DECLARATION:
    return "a declaration of a function that no library defines any more; remove it when the last use is gone";
  case CXX_ROLE_DEFINITION:
    return "a definition under the removed function's name; decide whether to keep it";
  case CXX_ROLE_USING:
    return "a using-declaration of the removed function; remove it when the calls through it are changed";
  default:
    return "used as a value (address, template or default argument), which has no safe edit; change it by hand";
  }
  if (unit->nested)
    return "in a file that is included inside of a namespace or class, where no include can be added; change it by "
           "hand";
  if (unit->tokens.list[use->token].flags & CXX_SPLICED)
    return "the name goes over two lines; change it by hand";
  if (cxx_index_renames(unit->scan, use->name))
    return "a file of this tree defines a macro of this name; see what it stands for here and change the call by hand";
  if (!unit->includable)
    return "in a module, in front of which no include can be added; change it by hand";
  if (unit->jit_hidden)
    return "sgl_kernel_jit already means something else in this file or its headers; change the call by hand";
  if (unit->backend)
    return "a source of another GPU vendor, for which there is no replacement; port it by hand";
  if (owner == CXX_OWNER_UNPROVEN)
    return "no declaration of it is in view; find out which function this is";
  if (owner == CXX_OWNER_AMBIGUOUS || use->unsure || may_be_elsewhere(unit, use))
    return "another function of this name would fit too; find out which one is called";
  if (use->qualifier == CXX_NAMED && !*use->symbol->cxx.scope)
    return "called through another namespace's name for it; change it by hand";
  *route = rules_cxx_target(unit->scan, use->symbol, &why);
  if (*route && use->qualifier == CXX_NAMED) {
    *route = NULL;
    return "called with its namespace; change it by hand";
  }
  return *route ? NULL : why;
}

/* OP(name): the name alone is the argument of a macro that the tree defines, but not for this file, as in a list that
 * is included where the macro is. Read without the macro that looks like a declaration. */
static bool listed_name(const struct cxx_unit *unit, uint32_t at) {
  const struct cxx_token *list = unit->tokens.list;
  if (!(list[at].flags & CXX_ARGUMENT) || at < 2 || at + 1 == unit->tokens.count)
    return false;
  const struct cxx_token *open = &list[at - 1], *behind = &list[at + 1];
  struct cxx_string macro = cxx_unit_text(unit, at - 2);
  return open->kind == CXX_PUNCT && open->code == '(' && behind->kind == CXX_PUNCT &&
         (behind->code == ')' || behind->code == ',') && !cxx_macro_find(&unit->macros, macro.text, macro.length);
}

static enum cxx_owner final_owner(struct cxx_unit *unit, struct cxx_use *use) {
  if (use->role == CXX_ROLE_MACRO_NAME || use->role == CXX_ROLE_MACRO_USE)
    return CXX_OWNER_REMOVED;
  if (use->role == CXX_ROLE_MACRO_BODY) {
    bool removed, other;
    cxx_scopes_declared(unit, use->name, &removed, &other);
    return other && !removed ? CXX_OWNER_OTHER : CXX_OWNER_REMOVED;
  }
  if (listed_name(unit, use->token)) {
    use->role = CXX_ROLE_REFERENCE;
    use->owner = use->ast = CXX_OWNER_UNPROVEN;
  }
  if (use->ast == CXX_OWNER_UNPROVEN && use->owner == CXX_OWNER_UNPROVEN && use->role == CXX_ROLE_REFERENCE) {
    /* A bare word, perhaps for a macro of somebody else: the only function of that name in view is the one that is
     * meant. */
    bool removed, other;
    cxx_scopes_declared(unit, use->name, &removed, &other);
    return other && !removed ? CXX_OWNER_OTHER : CXX_OWNER_UNPROVEN;
  }
  if (use->ast == CXX_OWNER_UNPROVEN)
    return use->owner;
  if (use->role == CXX_ROLE_OTHER && use->ast != CXX_OWNER_OTHER) {
    /* The scopes took it for something else; the tree knows better. */
    const struct cxx_token *next = &unit->tokens.list[use->token + 1];
    bool call = use->token + 1 < unit->tokens.count && next->kind == CXX_PUNCT && next->code == '(';
    use->role = use->ast_declaration ? CXX_ROLE_DECLARATION : call ? CXX_ROLE_CALL : CXX_ROLE_REFERENCE;
  }
  return use->ast;
}

/* Somebody else's, as far as the scopes say, and no declaration of the removed function is in view that libclang could
 * find behind the name. A name that also stands in a branch that is not compiled is not settled: the scopes read such
 * branches too, and take what follows for one with them. */
static bool is_settled(const struct cxx_unit *unit, const struct cxx_use *use, const bool *inactive) {
  bool removed, other;
  if (use->owner != CXX_OWNER_OTHER || inactive[use->name])
    return false;
  cxx_scopes_declared(unit, use->name, &removed, &other);
  return !removed;
}

void cxx_uses_judge(struct cxx_unit *unit) {
  bool ask = false;
  int names = 0;
  while (cxx_index_name(unit->scan, names))
    names++;
  bool *inactive = arena_alloc(&unit->arena, (size_t)names * sizeof *inactive);
  for (uint32_t i = 0; i < unit->uses_count; i++)
    if (unit->tokens.list[unit->uses[i].token].flags & CXX_INACTIVE)
      inactive[unit->uses[i].name] = true;
  for (uint32_t i = 0; i < unit->uses_count; i++) {
    struct cxx_use *use = &unit->uses[i];
    use->symbol = cxx_unit_removed(unit, use->name);
    use->judged = CXX_OWNER_OTHER;
    ask = ask || (use->symbol && !(unit->tokens.list[use->token].flags & (CXX_INACTIVE | CXX_DIRECTIVE)) &&
                  !is_settled(unit, use, inactive));
  }
  if (unit->c_source)
    return; /* C cannot call a C++ function: all of these are somebody else's */
  if (ask && !unit->tokens.conflict)
    cxx_ast_resolve(unit);
  unit->elsewhere = arena_alloc(&unit->arena, (size_t)names * sizeof *unit->elsewhere);
  cxx_scopes_elsewhere(unit, unit->elsewhere);
  unit->includable = cxx_edits_includable(unit);
  for (uint32_t i = 0; i < unit->uses_count; i++) {
    struct cxx_use *use = &unit->uses[i];
    use->judged = use->symbol ? (uint8_t)final_owner(unit, use) : CXX_OWNER_OTHER;
    if (use->judged != CXX_OWNER_OTHER)
      use->why = reason(unit, use, (enum cxx_owner)use->judged, &use->route);
  }
}

void cxx_uses_report(struct cxx_unit *unit) {
  if (unit->too_much)
    result_coverage(unit->result, COVERAGE_PARTLY, "read without libclang: %s", unit->too_much);
  if (unit->headers_left_out)
    result_coverage(unit->result, COVERAGE_PARTLY, "not all headers of the tree that it includes were read");
  if (unit->uses_count >= CXX_MOST_USES)
    result_coverage(unit->result, COVERAGE_PARTLY, "more than %d names; the rest was not read", CXX_MOST_USES - 1);
  for (uint32_t i = 0; i < unit->uses_count; i++) {
    struct cxx_use *use = &unit->uses[i];
    if (use->judged == CXX_OWNER_OTHER)
      continue;
    const char *word = cxx_index_name(unit->scan, use->name)->word;
    bool is_template = cxx_index_name(unit->scan, use->name)->is_template;
    char *left = rules_left(unit->scan, use->symbol, is_template ? CATALOG_LAYER_SOURCES : CATALOG_LAYER_CXX,
                            unit->platform, word);
    uint32_t line, column;
    cxx_unit_position(unit, unit->tokens.list[use->token].start, &line, &column);
    if (!use->why && ignore_covers(unit->result, line, use->symbol)) {
      use->why = "a comment accepts it";
      use->route = NULL;
    }
    enum evidence evidence = use->ast == CXX_OWNER_UNPROVEN ? EVIDENCE_LEXICAL : EVIDENCE_AST;
    bool inactive = (unit->tokens.list[use->token].flags & CXX_INACTIVE) && !use->compiled;
    char *narrow = cxx_conditions(unit, use);
    char *compiled = use->compiled ? scan_format("; the branch is compiled by %s", use->compiled->database) : NULL;
    if (use->why)
      result_find(unit->result, line, column, use->symbol, VERDICT_REPORT, evidence,
                  inactive ? LEVEL_WARNING : LEVEL_ERROR, "%s; %s%s%s", left, use->why, compiled ? compiled : "",
                  narrow ? narrow : "");
    else
      result_find(unit->result, line, column, use->symbol, VERDICT_REWRITE, evidence, LEVEL_ERROR,
                  "%s; fix makes it sgl_kernel_jit::%s%s%s", left, use->route->name, compiled ? compiled : "",
                  narrow ? narrow : "");
    free(narrow);
    free(compiled);
    free(left);
  }
}

static uint32_t line_at(const void *user, size_t offset) {
  uint32_t line, column;
  cxx_unit_position(user, (uint32_t)offset, &line, &column);
  return line;
}

/* The comments that accept uses. */
static void read_ignores(struct cxx_unit *unit) {
  const struct cxx_tokens *tokens = &unit->tokens;
  if (!ignore_wanted(tokens->bytes, tokens->size))
    return;
  uint8_t *classes = scan_alloc(NULL, tokens->size);
  memset(classes, IGNORE_CODE, tokens->size);
  for (uint32_t i = 0; i < tokens->count; i++)
    if (tokens->list[i].kind == CXX_STRING || tokens->list[i].kind == CXX_CHAR)
      memset(classes + tokens->list[i].start, IGNORE_STRING, tokens->list[i].end - tokens->list[i].start);
  for (uint32_t i = 0; i < tokens->comments_count; i++)
    memset(classes + tokens->comments[i].start, IGNORE_COMMENT, tokens->comments[i].end - tokens->comments[i].start);
  ignore_read(unit->scan, unit->result,
              &(struct ignore_text){tokens->bytes, tokens->size, classes, IGNORE_BRACES_END, line_at, unit});
  free(classes);
}

void cxx_analyse(const struct scan *scan, const struct source_file *file, struct result *result) {
  if (file->size > CXX_LARGEST) {
    result_coverage(result, COVERAGE_NONE, "larger than %zu MiB", CXX_LARGEST >> 20);
    return;
  }
  cxx_asked_into(file->asked);
  struct cxx_unit *unit = cxx_unit_new(scan, file);
  unit->result = result;
  read_ignores(unit);
  cxx_uses_judge(unit);
  cxx_configurations_read(unit);
  cxx_uses_report(unit);
  cxx_strings_find(unit);
  cxx_pasted_find(unit);
  cxx_edits_make(unit);
  if (scan->options.changed)
    cxx_changed(scan, file, result);
  cxx_unit_free(unit);
  free(unit);
  cxx_asked_into(NULL);
}
