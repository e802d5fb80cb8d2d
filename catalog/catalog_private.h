/* What the files of sgl-catalog share; no other part includes this. */
#ifndef SGL_CATALOG_PRIVATE_H
#define SGL_CATALOG_PRIVATE_H

#include "catalog/catalog.h"

#include <stdio.h>

/* catalog_words.c: the words that removals.yaml, messages and generated text use for the enums. */
const char *catalog_layer_word(enum catalog_layer layer);
const char *catalog_platform_word(enum catalog_platform platform);
const char *catalog_changed_word(enum catalog_changed what);
/* The same over all layers, Python first. NULL for a symbol without removals. */
const struct catalog_removal *catalog_main_removal(const struct catalog_symbol *symbol);
/* One sentence of advice: what to use now. Writes "" when the symbol has no route. Returns `text`. */
char *catalog_advice(const struct catalog_symbol *symbol, char *text, size_t size);

/* Does its function take an old call? What python: true promises, or a function of this project or of another library
 * that has all the old parameters under their names. */
bool catalog_route_takes_old_calls(const struct catalog_route *route);
/* What the shim and the Python package do with the name, in one or two sentences. Returns `text`. */
char *catalog_answer(const struct catalog_symbol *symbol, char *text, size_t size);

/* catalog_page.c: text of the catalog in Markdown, on one line. */
void catalog_markdown(FILE *out, const char *text);

/* catalog_mangle.c: the Itanium C++ name of the declared function, and how many parameters it has. False after one
 * clause into error when the declaration cannot be read or has a type that the function does not know. */
bool catalog_mangle(const struct catalog_cxx *cxx, char *mangled, size_t mangled_size, unsigned *parameters,
                    char *error, size_t error_size);

/* catalog_lint_changes.c: proves row `index` of the changes. fault() gets the key of the row that is wrong, NULL for
 * the row itself. */
typedef void catalog_change_fault(void *user, const char *key, const char *what);
void catalog_lint_change(const struct catalog *catalog, unsigned index, catalog_change_fault *fault, void *user);

/* catalog_gen.c: writes all generated files into the existing folder `directory`: first each to a temporary file, then
 * all are renamed. `prelude` is the text of prelude.h.in. False after one line into message; then no file of
 * the folder has changed, but for a failing rename. */
bool catalog_generate(const struct catalog *catalog, const char *prelude, const char *directory, char *message,
                      size_t message_size);

/* catalog_docs.c: writes the pages of docs/names into the existing folder `directory`. False after one line into
 * message. */
bool catalog_docs(const struct catalog *catalog, const char *directory, char *message, size_t message_size);

void catalog_docs_banner(FILE *out);

/* catalog_docs_changes.c: the index, the page of a release (NULL: none is written; returns how many changes it has),
 * and the section of a name's page. */
void catalog_docs_changes(FILE *out, const struct catalog *catalog);
unsigned catalog_docs_release(FILE *out, const struct catalog *catalog, const char *release);
void catalog_docs_changes_of(FILE *out, const struct catalog *catalog, const struct catalog_symbol *symbol);

/* catalog_load.c: a whole file, NUL-ended; free() it. NULL with errno set when it cannot be read. */
char *catalog_read_file(const char *path, size_t *size);

#endif
