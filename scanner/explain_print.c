/* Tells what became of a name: cause, releases, replacement, code before and after. */
#include "scanner/explain.h"
#include "scanner/report.h"

#include <stdlib.h>
#include <string.h>

static const char *newest(const char *const *releases, unsigned count) {
  return count ? releases[count - 1] : NULL;
}

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

static void print_indented(const char *text) {
  for (const char *line = text; line;) {
    const char *end = strchr(line, '\n');
    printf("  %.*s\n", end ? (int)(end - line) : (int)strlen(line), line);
    line = end ? end + 1 : NULL;
  }
}

/* "hidden_states is x, out_dtype is gone": what a call has to say differently. */
static void print_arguments(const struct catalog_route *route) {
  bool any = false;
  for (unsigned i = 0; i < route->arguments_count; i++) {
    const struct catalog_argument *argument = &route->arguments[i];
    if (strcmp(argument->from, argument->to) == 0)
      continue;
    printf("%s%s %s%s", any ? ", " : "    # arguments: ", argument->from, *argument->to ? "is now " : "is gone",
           argument->to);
    any = true;
  }
  if (any)
    putchar('\n');
}

static void print_import(const struct catalog_symbol *symbol, const struct catalog_route *route, const char *with) {
  const char *alias = strcmp(route->name, symbol->python[0].name) == 0 ? "" : symbol->python[0].name;
  printf("  after, with %s%s:\n    from %s import %s%s%s\n", with,
         route->python ? "" : ", by hand: its calls may have to change", route->module, route->name,
         *alias ? " as " : "", alias);
  print_arguments(route);
}

static void print_python(const struct catalog *catalog, const struct catalog_symbol *symbol) {
  if (!symbol->python_count)
    return;
  const struct catalog_python *python = &symbol->python[0];
  printf("\nPython\n  before:\n    from %s import %s\n", python->module, python->name);
  if (*symbol->python_signature)
    printf("    # %s%s\n", python->name, symbol->python_signature);
  const char *release = newest(catalog->library.sglang_releases, catalog->library.sglang_releases_count);
  for (unsigned i = 0; i < symbol->routes_count; i++) {
    const struct catalog_route *route = &symbol->routes[i];
    if (route->kind == CATALOG_ROUTE_JIT) {
      print_import(symbol, route, "--to jit");
    } else if (route->kind == CATALOG_ROUTE_SGLANG) {
      char *range = route->until
                        ? scan_format("--to sglang@%s up to but not including %s", route->from, route->until)
                        : scan_format("--to sglang@%s and newer (%s is known)", route->from, release ? release : "");
      print_import(symbol, route, range);
      free(range);
    } else if (route->kind == CATALOG_ROUTE_LIBRARY) {
      print_import(symbol, route, "another library");
    }
  }
}

static void print_cxx(const struct catalog_symbol *symbol) {
  if (!*symbol->cxx.name)
    return;
  printf("\nC++\n  before:\n    %s;\n", symbol->cxx.declaration);
  const struct catalog_route *route = catalog_jit_route(symbol);
  if (route && route->cxx)
    printf("  after, with --to jit:\n    #include \"sgl_kernel_jit/torch.h\"\n    sgl_kernel_jit::%s(...)  // the same "
           "arguments\n",
           route->name);
  else
    printf("  after: there is no C++ replacement\n");
}

static void print_operator(const struct catalog *catalog, const struct catalog_symbol *symbol) {
  if (!*symbol->op_name)
    return;
  const struct catalog_route *route = symbol->routes_count ? &symbol->routes[0] : NULL;
  printf("\ntorch operator\n  before:\n    torch.ops.%s.%s\n    # %s\n", catalog->library.op_namespace, symbol->op_name,
         symbol->op_schema);
  if (!route || route->kind == CATALOG_ROUTE_NONE)
    puts("  after: there is no replacement");
  else if (strncmp(route->module, "torch.ops.", 10) == 0)
    printf("  after: %s.%s; its arguments may be others, so fix leaves it alone\n", route->module, route->name);
  else
    puts("  after: the Python function above; the operator's arguments may be others, so fix leaves it alone");
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
  char *removed = report_removals(symbol), *help = report_help(symbol);
  const char *facts = strchr(removed, '\n'); /* the first line is the summary */
  printf("\nwhat happened\n");
  if (*symbol->added_in)
    printf("  New in %s.\n", symbol->added_in);
  if (facts)
    print_indented(facts + 1);
  printf("\nwhat to use\n");
  print_indented(help);
  print_python(catalog, symbol);
  print_cxx(symbol);
  print_operator(catalog, symbol);
  if (rewritable(symbol))
    printf("\nsgl-migrate scan finds its uses, sgl-migrate fix rewrites those that are safe to rewrite.\n");
  else
    printf("\nsgl-migrate scan finds its uses; they need a person.\n");
  free(removed);
  free(help);
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
