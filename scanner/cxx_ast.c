/* Asks libclang what the names of a file refer to.
 *
 * libclang reads only what it is given in memory: the prelude of the catalog, the file, the headers of the tree that it
 * includes, and the stand-in for the wheel's header. No system, torch or CUDA header is looked for, so the answer is
 * the same on every machine. Conditions are decided by cxx_unit.c already; it blanks out at their places what libclang
 * has not to see. The language is C++20 for every kind of source: CUDA's keywords are macros of the prelude. */
#include "scanner/cxx_front.h"
#include "scanner/cxx_scopes.h"
#include "scanner/libclang.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The generated prelude (catalog/prelude.h.in). */
extern const char cxx_prelude[];
extern const size_t cxx_prelude_size;

/* NULL when it cannot be loaded. Set with the lock of the readers held, which everyone takes first. */
static const struct libclang *clang;

#define FOLDER "/sgl-migrate/"
#define LARGEST_TEXT ((size_t)16 << 20)

struct place {
  unsigned offset;
  uint32_t use;
};

struct ast {
  struct cxx_unit *unit;
  CXFile main;
  struct place *places; /* of the uses, by offset */
  uint32_t places_count;
};

static int compare_places(const void *left, const void *right) {
  const struct place *a = left, *b = right;
  return (a->offset > b->offset) - (a->offset < b->offset);
}

static struct cxx_use *use_at(const struct ast *ast, unsigned offset) {
  uint32_t low = 0, high = ast->places_count;
  while (low < high) {
    uint32_t middle = (low + high) / 2;
    if (ast->places[middle].offset < offset)
      low = middle + 1;
    else
      high = middle;
  }
  return low < ast->places_count && ast->places[low].offset == offset ? &ast->unit->uses[ast->places[low].use] : NULL;
}

/* --- what a declaration is -----------------------------------------------------------------------------------------
 */

/* Is the cursor's namespace exactly this path? */
static bool in_namespace(CXCursor cursor, const char *path) {
  size_t length = strlen(path);
  for (;;) {
    cursor = clang->getCursorSemanticParent(cursor);
    enum CXCursorKind kind = clang->getCursorKind(cursor);
    if (kind == CXCursor_LinkageSpec || kind == CXCursor_UnexposedDecl)
      continue;
    if (kind == CXCursor_TranslationUnit)
      return length == 0;
    if (kind != CXCursor_Namespace)
      return false;
    CXString spelling = clang->getCursorSpelling(cursor);
    const char *name = clang->getCString(spelling);
    size_t part = name ? strlen(name) : 0;
    bool fits = part > 0 && part <= length && memcmp(path + length - part, name, part) == 0;
    clang->disposeString(spelling);
    if (!fits)
      return false;
    length -= part;
    if (length >= 2 && memcmp(path + length - 2, "::", 2) == 0)
      length -= 2;
  }
}

static bool in_linkage_block(CXCursor cursor) {
  for (;;) {
    cursor = clang->getCursorSemanticParent(cursor);
    enum CXCursorKind kind = clang->getCursorKind(cursor);
    if (kind == CXCursor_LinkageSpec || kind == CXCursor_UnexposedDecl)
      return true;
    if (kind != CXCursor_Namespace)
      return false;
  }
}

/* A function that is declared in extern "C" first has its plain name as its symbol. */
static bool c_linkage(CXCursor function) {
  CXCursor first = clang->getCanonicalCursor(function);
  if (!in_linkage_block(first))
    return false;
  CXString mangled = clang->Cursor_getMangling(first), spelling = clang->getCursorSpelling(first);
  const char *a = clang->getCString(mangled), *b = clang->getCString(spelling);
  bool plain = a && b && strcmp(a, b) == 0;
  clang->disposeString(mangled);
  clang->disposeString(spelling);
  return plain;
}

/* The byte of the original text at a location; NULL in the prelude and the stand-ins. */
static const uint8_t *original(const struct ast *ast, CXSourceLocation location) {
  CXFile file;
  unsigned offset;
  clang->getFileLocation(location, &file, NULL, NULL, &offset);
  CXString name = clang->getFileName(file);
  const char *text = clang->getCString(name);
  const uint8_t *at = NULL;
  if (text && strncmp(text, FOLDER, strlen(FOLDER)) == 0) {
    char *end;
    unsigned long part = strtoul(text + strlen(FOLDER), &end, 10);
    const struct cxx_part *found = part < ast->unit->parts_count ? &ast->unit->parts[part] : NULL;
    if (end != text + strlen(FOLDER) && found && !found->stand_in && offset < found->size)
      at = found->bytes + offset;
  }
  clang->disposeString(name);
  return at;
}

static enum cxx_owner function_owner(const struct ast *ast, const struct cxx_use *use, CXCursor function) {
  const struct cxx_name *name = cxx_index_name(ast->unit->scan, use->name);
  CXCursor pattern = clang->getSpecializedCursorTemplate(function);
  if (!clang->Cursor_isNull(pattern) && !clang->isInvalid(clang->getCursorKind(pattern)))
    function = pattern;
  CXString spelling = clang->getCursorSpelling(function);
  const char *text = clang->getCString(spelling);
  bool named = text && strcmp(text, name->word) == 0;
  clang->disposeString(spelling);
  if (!named)
    return CXX_OWNER_OTHER; /* what a macro of that name leads to */
  bool is_template = clang->getCursorKind(function) == CXCursor_FunctionTemplate;
  if (is_template != name->is_template) /* without its template a specialisation is a function */
    return use->role == CXX_ROLE_INSTANTIATION ? CXX_OWNER_UNPROVEN : CXX_OWNER_OTHER;
  enum CXLinkageKind linkage = clang->getCursorLinkage(function);
  if (linkage == CXLinkage_Internal || linkage == CXLinkage_UniqueExternal || linkage == CXLinkage_NoLinkage)
    return CXX_OWNER_OTHER;
  if (is_template) /* one that the unit has itself was not deleted */
    return in_namespace(function, "") && clang->Cursor_isNull(clang->getCursorDefinition(function)) ? CXX_OWNER_REMOVED
                                                                                                    : CXX_OWNER_OTHER;
  const uint8_t *at = original(ast, clang->getCursorLocation(clang->getCanonicalCursor(function)));
  if (c_linkage(function) || (at && cxx_scopes_mismatch(ast->unit, at)))
    return CXX_OWNER_OTHER;
  int parameters = clang->Cursor_getNumArguments(function);
  for (unsigned i = 0; i < name->symbols_count; i++)
    if (parameters >= 0 && (unsigned)parameters == cxx_index_signature(ast->unit->scan, name->symbols[i])->most &&
        in_namespace(function, name->symbols[i]->cxx.scope))
      return CXX_OWNER_REMOVED;
  return CXX_OWNER_OTHER;
}

static enum cxx_owner merge(enum cxx_owner a, enum cxx_owner b) {
  if (a == CXX_OWNER_UNPROVEN || a == b)
    return b;
  return b == CXX_OWNER_UNPROVEN ? a : CXX_OWNER_AMBIGUOUS;
}

static enum cxx_owner referenced_owner(const struct ast *ast, const struct cxx_use *use, CXCursor target);

/* Of several functions, those that take as many arguments as the call has. */
static enum cxx_owner overload_owner(const struct ast *ast, const struct cxx_use *use, CXCursor overloads) {
  unsigned least = 0, most = UINT_MAX, count = clang->getNumOverloadedDecls(overloads);
  if (use->role == CXX_ROLE_CALL)
    cxx_scopes_arguments(ast->unit, use->token, &least, &most);
  enum cxx_owner fitting = CXX_OWNER_UNPROVEN, all = CXX_OWNER_UNPROVEN;
  for (unsigned i = 0; i < count && i < 64; i++) {
    CXCursor one = clang->getOverloadedDecl(overloads, i);
    enum cxx_owner owner = referenced_owner(ast, use, one);
    int parameters = clang->Cursor_getNumArguments(one);
    all = merge(all, owner);
    if (parameters < 0 || ((unsigned)parameters >= least && (unsigned)parameters <= most))
      fitting = merge(fitting, owner);
  }
  if (fitting == CXX_OWNER_UNPROVEN && all != CXX_OWNER_OTHER)
    return CXX_OWNER_UNPROVEN; /* the removed function, but not with that many arguments */
  return fitting == CXX_OWNER_UNPROVEN ? all : fitting;
}

static enum cxx_owner referenced_owner(const struct ast *ast, const struct cxx_use *use, CXCursor target) {
  switch (clang->getCursorKind(target)) {
  case CXCursor_FunctionDecl:
  case CXCursor_FunctionTemplate:
    return function_owner(ast, use, target);
  case CXCursor_OverloadedDeclRef:
    return overload_owner(ast, use, target);
  case CXCursor_UsingDeclaration: {
    CXCursor named = clang->getCursorReferenced(target);
    return clang->Cursor_isNull(named) || clang->equalCursors(named, target) ? CXX_OWNER_UNPROVEN
                                                                             : referenced_owner(ast, use, named);
  }
  default:
    return clang->isInvalid(clang->getCursorKind(target)) ? CXX_OWNER_UNPROVEN : CXX_OWNER_OTHER;
  }
}

/* --- the tree ----------------------------------------------------------------------------------------------------- */

static enum CXChildVisitResult visit(CXCursor cursor, CXCursor parent, CXClientData data) {
  struct ast *ast = data;
  enum CXCursorKind kind = clang->getCursorKind(cursor);
  CXFile file;
  unsigned offset;
  /* The place in the file also for what comes out of a macro: an argument is where it was written. */
  clang->getFileLocation(clang->getCursorLocation(cursor), &file, NULL, NULL, &offset);
  bool here = file && file == ast->main; /* clang_File_isEqual takes all files in memory for one */
  if (!here && clang->getCursorKind(parent) == CXCursor_TranslationUnit && ast->unit->root_part == 0)
    return CXChildVisit_Continue;
  struct cxx_use *use = here ? use_at(ast, offset) : NULL;
  if (!use)
    return CXChildVisit_Recurse;
  if (kind == CXCursor_OverloadedDeclRef) {
    use->ast_open = true;
    use->ast = (uint8_t)merge(use->ast, overload_owner(ast, use, cursor));
  } else if (clang->isReference(kind) || kind == CXCursor_DeclRefExpr || kind == CXCursor_MemberRefExpr) {
    CXCursor target = clang->getCursorReferenced(cursor);
    if (!clang->Cursor_isNull(target))
      use->ast = (uint8_t)merge(use->ast, referenced_owner(ast, use, target));
    else if (kind != CXCursor_DeclRefExpr)
      use->ast = (uint8_t)merge(use->ast, CXX_OWNER_OTHER);
  } else if (clang->isDeclaration(kind) && kind != CXCursor_UsingDeclaration) {
    CXString spelling = clang->getCursorSpelling(cursor);
    const char *text = clang->getCString(spelling);
    const struct cxx_name *name = cxx_index_name(ast->unit->scan, use->name);
    if (text && strcmp(text, name->word) == 0) {
      use->ast = (uint8_t)merge(use->ast, referenced_owner(ast, use, cursor));
      use->ast_declaration = true;
    }
    clang->disposeString(spelling);
  }
  return CXChildVisit_Recurse;
}

static void visit_unit(struct cxx_unit *unit, CXTranslationUnit translation) {
  struct ast ast = {.unit = unit};
  ast.main = clang->getFile(translation, FOLDER "0");
  ast.places = scan_alloc(NULL, unit->uses_count * sizeof *ast.places);
  for (uint32_t i = 0; i < unit->uses_count; i++) {
    const struct cxx_token *token = &unit->tokens.list[unit->uses[i].token];
    if (!(token->flags & (CXX_DIRECTIVE | CXX_INACTIVE)))
      ast.places[ast.places_count++] = (struct place){token->start, i};
  }
  qsort(ast.places, ast.places_count, sizeof *ast.places, compare_places);
  clang->visitChildren(clang->getTranslationUnitCursor(translation), visit, &ast);
  free(ast.places);
}

/* One reader of files. Reading the prelude takes as long as reading a file, so a translation unit is used again and
 * again with other files behind the prelude, which libclang then keeps in memory. It has its main file looked up on the
 * disk, although it is given the text, so that is one that every machine has. */
struct cxx_reader {
  struct cxx_reader *next;
  CXIndex index;
  CXTranslationUnit translation; /* NULL: nothing read so far */
  bool bodies;                   /* of functions are read */
};

#define MAIN "/dev/null"

static struct cxx_reader *take_reader(const struct scan *scan, bool bodies) {
  struct cxx_readers *readers = cxx_index_readers(scan);
  pthread_mutex_lock(&readers->mutex);
  if (!clang)
    clang = libclang_open();
  struct cxx_reader **place = &readers->free, *reader;
  while (*place && (*place)->bodies != bodies)
    place = &(*place)->next;
  if ((reader = *place) != NULL)
    *place = reader->next;
  pthread_mutex_unlock(&readers->mutex);
  if (!reader) {
    const CXIndexOptions options = {.Size = sizeof options, .StorePreamblesInMemory = 1};
    reader = scan_alloc(NULL, sizeof *reader);
    *reader = (struct cxx_reader){.index = clang ? clang->createIndexWithOptions(&options) : NULL, .bodies = bodies};
  }
  return reader;
}

static void give_reader(const struct scan *scan, struct cxx_reader *reader) {
  struct cxx_readers *readers = cxx_index_readers(scan);
  pthread_mutex_lock(&readers->mutex);
  reader->next = readers->free;
  readers->free = reader;
  pthread_mutex_unlock(&readers->mutex);
}

void cxx_ast_close(struct cxx_readers *readers) {
  while (readers->free) {
    struct cxx_reader *reader = readers->free;
    readers->free = reader->next;
    if (clang) {
      clang->disposeTranslationUnit(reader->translation);
      clang->disposeIndex(reader->index);
    }
    free(reader);
  }
}

/* false when libclang cannot read it. */
static bool parse(struct cxx_unit *unit, struct cxx_reader *reader) {
  if (!clang)
    return false;
  static const char *const arguments[] = {
      "-x",
      "c++",
      "-std=gnu++20",
      "--target=x86_64-unknown-linux-gnu",
      "-fsyntax-only",
      "-nostdinc",
      "-nostdinc++",
      "-w",
      "-ferror-limit=0",
      "-fno-spell-checking", /* a guess at what was meant is worse than no answer */
      "-ftemplate-depth=64",
      "-fconstexpr-steps=10000",
      "-Xclang",
      "-disable-pragma-debug-crash",
  };
  struct CXUnsavedFile *files = scan_alloc(NULL, (unit->parts_count + 2) * sizeof *files);
  char(*names)[32] = scan_alloc(NULL, unit->parts_count * sizeof *names);
  for (uint32_t i = 0; i < unit->parts_count; i++) {
    snprintf(names[i], sizeof names[i], FOLDER "%u", i);
    files[i] = (struct CXUnsavedFile){names[i], unit->parts[i].text, unit->parts[i].size};
  }
  /* What libclang keeps ends where the first declaration begins. */
  char *text = scan_format("#include \"" FOLDER "prelude.h\"\n;\n");
  for (uint32_t i = unit->first_forced; i <= unit->end_forced; i++) {
    char *more = scan_format("%s#include \"%s\"\n", text, names[i < unit->end_forced ? i : unit->root_part]);
    free(text);
    text = more;
  }
  unsigned count = unit->parts_count;
  files[count++] = (struct CXUnsavedFile){FOLDER "prelude.h", cxx_prelude, cxx_prelude_size};
  files[count++] = (struct CXUnsavedFile){MAIN, text, strlen(text)};
  unsigned options = CXTranslationUnit_KeepGoing | CXTranslationUnit_PrecompiledPreamble |
                     (reader->bodies ? 0 : CXTranslationUnit_SkipFunctionBodies);
  int error;
  if (reader->translation)
    error = clang->reparseTranslationUnit(reader->translation, count, files,
                                          clang->defaultReparseOptions(reader->translation));
  else
    error = clang->parseTranslationUnit2(reader->index, MAIN, arguments, sizeof arguments / sizeof *arguments, files,
                                         count, options, &reader->translation);
  if (error) { /* it cannot be used any more */
    clang->disposeTranslationUnit(reader->translation);
    reader->translation = NULL;
  }
  free(text);
  free(names);
  free(files);
  return !error;
}

/* Does a name stand in the body of a function, or may it? libclang need not read bodies otherwise, but those that say
 * what a type or constant is, which it reads in any case. */
static bool in_bodies(const struct cxx_unit *unit) {
  for (uint32_t i = 0; i < unit->uses_count; i++) {
    const struct cxx_use *use = &unit->uses[i];
    if (unit->tokens.list[use->token].flags & (CXX_DIRECTIVE | CXX_INACTIVE))
      continue;
    if ((use->role != CXX_ROLE_DECLARATION && use->role != CXX_ROLE_DEFINITION && use->role != CXX_ROLE_OTHER) ||
        use->unsure)
      return true;
    for (const struct cxx_scope *scope = use->scope; scope; scope = scope->parent)
      if (scope->kind != SCOPE_NAMESPACE && scope->kind != SCOPE_CLASS && scope->kind != SCOPE_LINKAGE)
        return true;
  }
  return false;
}

void cxx_ast_resolve(struct cxx_unit *unit) {
  if (unit->parts_size > LARGEST_TEXT)
    unit->too_much = "it is too large together with its headers";
  else
    cxx_limits_check(unit);
  if (unit->too_much)
    return;
  struct cxx_reader *reader = take_reader(unit->scan, in_bodies(unit));
  if (parse(unit, reader))
    visit_unit(unit, reader->translation);
  else
    unit->too_much = "libclang cannot read it";
  give_reader(unit->scan, reader);
}

struct cxx_error *cxx_errors(const struct scan *scan, const struct source_file *file, size_t *count) {
  struct cxx_unit unit;
  cxx_unit_open(&unit, scan, file, NULL);
  struct cxx_reader *reader = take_reader(scan, true);
  CXTranslationUnit translation = parse(&unit, reader) ? reader->translation : NULL;
  CXFile main = translation ? clang->getFile(translation, FOLDER "0") : NULL;
  unsigned all = translation ? clang->getNumDiagnostics(translation) : 0;
  struct cxx_error *list = scan_alloc(NULL, (all + 1) * sizeof *list);
  *count = 0;
  if (!translation)
    list[(*count)++] = (struct cxx_error){SIZE_MAX, scan_format("libclang cannot read it")};
  for (unsigned i = 0; i < all; i++) {
    CXDiagnostic diagnostic = clang->getDiagnostic(translation, i);
    CXString text = clang->getDiagnosticSpelling(diagnostic);
    const char *words = clang->getCString(text);
    CXFile where;
    unsigned offset;
    clang->getFileLocation(clang->getDiagnosticLocation(diagnostic), &where, NULL, NULL, &offset);
    if (clang->getDiagnosticSeverity(diagnostic) >= CXDiagnostic_Error)
      list[(*count)++] = (struct cxx_error){where == main ? offset : SIZE_MAX, scan_format("%s", words ? words : "")};
    clang->disposeString(text);
    clang->disposeDiagnostic(diagnostic);
  }
  give_reader(scan, reader);
  cxx_unit_free(&unit);
  return list;
}
