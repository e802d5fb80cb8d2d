/* Tells what became of a name: what the message means, then the page of the name (catalog/catalog_page.c). */
#include "scanner/explain.h"
#include "scanner/report.h"

#include <stdio.h>

/* Which release is installed follows from what is missing. */
static void print_installed(const struct catalog_symbol *symbol, enum subject subject) {
  static const enum catalog_layer layers[SUBJECT_COUNT] = {
      [SUBJECT_PYTHON] = CATALOG_LAYER_PYTHON, [SUBJECT_OPERATOR] = CATALOG_LAYER_OPERATOR,
      [SUBJECT_CXX] = CATALOG_LAYER_CXX,       [SUBJECT_MANGLED] = CATALOG_LAYER_CXX,
      [SUBJECT_FILE] = CATALOG_LAYER_SOURCES,
  };
  if (subject == SUBJECT_WORD || subject == SUBJECT_MODULE)
    return;
  for (unsigned i = 0; i < symbol->removals_count; i++) {
    const struct catalog_removal *removal = &symbol->removals[i];
    if (removal->layer == layers[subject] && removal->platform == CATALOG_CUDA && removal->first_without)
      printf(" It is missing from release %s on.", removal->first_without);
  }
}

static bool rewritable(const struct catalog_symbol *symbol) {
  for (unsigned i = 0; i < symbol->routes_count; i++)
    if (symbol->routes[i].python || symbol->routes[i].cxx)
      return true;
  return false;
}

void explain_print_fault(const struct explained_fault *fault) {
  printf("%s\n  ", fault->title);
  report_plain(stdout, fault->cause); /* it has a word of the message */
  printf("\n\nwhat to do\n  %s\n", fault->remedy);
}

void explain_print(const struct catalog *catalog, const struct explained *explained) {
  const struct catalog_symbol *symbol = explained->symbol;
  printf("%s: %s\n", symbol->id, symbol->summary);
  if (explained->cause) {
    printf("\nwhat the message means\n  %s", explained->cause);
    print_installed(symbol, explained->subject);
    putchar('\n');
  }
  catalog_page(stdout, catalog, symbol, false, catalog == &catalog_builtin);
  if (rewritable(symbol))
    printf("\nsgl-migrate scan finds its uses, sgl-migrate fix rewrites those that are safe to rewrite.\n");
  else
    printf("\nsgl-migrate scan finds its uses; they need a person.\n");
}

void explain_list(const struct explanation *explanation) {
  const char *cause = explanation->list[0].cause;
  if (cause)
    printf("what the message means\n  %s\n\n", cause);
  printf("%zu removed names; explain them one by one:\n", explanation->count);
  for (size_t i = 0; i < explanation->count; i++)
    if (explanation->list[i].symbol)
      printf("  %s: %s\n", explanation->list[i].symbol->id, explanation->list[i].symbol->summary);
}
