/* libclang, opened when it is first asked: loading it takes longer than many a scan, and few files need it. */
#ifndef SGL_SCANNER_LIBCLANG_H
#define SGL_SCANNER_LIBCLANG_H

#include <clang-c/Index.h>
#include <stdbool.h>

/* Its functions that are used here. */
#define LIBCLANG_FUNCTIONS(F)                                                                                          \
  F(Cursor_isNull)                                                                                                     \
  F(Cursor_getNumArguments)                                                                                            \
  F(Cursor_getMangling)                                                                                                \
  F(createIndexWithOptions)                                                                                            \
  F(defaultReparseOptions)                                                                                             \
  F(disposeDiagnostic)                                                                                                 \
  F(disposeIndex)                                                                                                      \
  F(disposeString)                                                                                                     \
  F(disposeTranslationUnit)                                                                                            \
  F(equalCursors)                                                                                                      \
  F(getCString)                                                                                                        \
  F(getCanonicalCursor)                                                                                                \
  F(getCursorDefinition)                                                                                               \
  F(getCursorKind)                                                                                                     \
  F(getCursorLinkage)                                                                                                  \
  F(getCursorLocation)                                                                                                 \
  F(getCursorReferenced)                                                                                               \
  F(getCursorSemanticParent)                                                                                           \
  F(getCursorSpelling)                                                                                                 \
  F(getDiagnostic)                                                                                                     \
  F(getDiagnosticLocation)                                                                                             \
  F(getDiagnosticSeverity)                                                                                             \
  F(getDiagnosticSpelling)                                                                                             \
  F(getFile)                                                                                                           \
  F(getFileLocation)                                                                                                   \
  F(getFileName)                                                                                                       \
  F(getNumDiagnostics)                                                                                                 \
  F(getNumOverloadedDecls)                                                                                             \
  F(getOverloadedDecl)                                                                                                 \
  F(getSpecializedCursorTemplate)                                                                                      \
  F(getTranslationUnitCursor)                                                                                          \
  F(isDeclaration)                                                                                                     \
  F(isInvalid)                                                                                                         \
  F(isReference)                                                                                                       \
  F(parseTranslationUnit2)                                                                                             \
  F(reparseTranslationUnit)                                                                                            \
  F(visitChildren)

struct libclang {
#define F(name) __typeof__(clang_##name) *name;
  LIBCLANG_FUNCTIONS(F)
#undef F
};

/* NULL when it cannot be loaded. Safe for all threads; it stays loaded. */
const struct libclang *libclang_open(void);
/* What tells this libclang from another one, without loading it; owned by the caller. */
char *libclang_identity(void);

#endif
