/* sgl-migrate explain. */
#include "scanner/command.h"
#include "scanner/explain.h"
#include "scanner/report.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#define NEAR_SHOWN 5
/* More names than this, as of a whole module, are listed only. */
#define IN_FULL 4

static const char help[] =
    "usage: sgl-migrate explain [OPTION]... TEXT...\n"
    "Explain an error message or a name: what was removed, in which release, and what to use instead.\n"
    "\n"
    "TEXT is a pasted error (quote it), or a name in any form: a Python name, an operator, a C++ function, also "
    "mangled or\n"
    "with its arguments, a deleted source file or test, a module.\n"
    "\n"
    "options:\n"
    "  --catalog FILE   use this catalog in place of the built-in one\n"
    "  -h, --help       print this text\n"
    "\n"
    "exit status:\n"
    "  0    explained\n"
    "  1    TEXT names nothing that is known; names that are spelt alike are suggested\n"
    "  8    wrong usage\n"
    "\n"
    "examples:\n"
    "  sgl-migrate explain dsv3_router_gemm\n"
    "  sgl-migrate explain \"ImportError: cannot import name 'bmm_fp8' from 'sgl_kernel'\"\n";

/* The words of the command line as one text. */
static char *join(int count, char **words) {
  char *text = scan_format("%s", "");
  for (int i = 0; i < count; i++) {
    char *longer = scan_format("%s%s%s", text, i ? " " : "", words[i]);
    free(text);
    text = longer;
  }
  return text;
}

static void suggest(const struct catalog *catalog, const char *word) {
  const struct catalog_symbol *near[NEAR_SHOWN];
  size_t count = word ? explain_near(catalog, word, near, NEAR_SHOWN) : 0;
  fputs("sgl-migrate: ", stderr);
  if (word) {
    fputs("'", stderr);
    report_plain(stderr, word);
    fputs("' is no removed name", stderr);
  } else {
    fputs("the text has no name", stderr);
  }
  for (size_t i = 0; i < count; i++)
    fprintf(stderr, "%s%s", i ? ", " : "; spelt alike: ", near[i]->id);
  fputc('\n', stderr);
}

int command_explain(int argc, char **argv) {
  enum { OPTION_CATALOG = 256 };
  static const struct option options[] = {
      {"catalog", required_argument, NULL, OPTION_CATALOG}, {"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
  const char *catalog_path = NULL;
  int option;
  opterr = 0;
  while ((option = getopt_long(argc, argv, "+:h", options, NULL)) != -1) {
    if (option == OPTION_CATALOG) {
      catalog_path = optarg;
    } else if (option == 'h') {
      fputs(help, stdout);
      return command_finish(0);
    } else {
      usage_option(option, argv);
    }
  }
  if (optind == argc)
    usage_error("explain needs an error message or a name; see sgl-migrate explain --help");
  struct catalog *loaded;
  const struct catalog *catalog = command_catalog(catalog_path, &loaded);
  char *joined = join(argc - optind, argv + optind), *text = explain_plain(joined);
  struct explanation explanation;
  explain(catalog, text, &explanation);
  for (size_t i = 0; i < explanation.faults_count; i++) {
    fputs(i ? "\n----\n\n" : "", stdout);
    explain_print_fault(&explanation.faults[i]);
  }
  if (explanation.faults_count && explanation.count)
    fputs("\n----\n\n", stdout);
  if (explanation.count > IN_FULL)
    explain_list(&explanation);
  for (size_t i = 0; i < explanation.count && explanation.count <= IN_FULL; i++) {
    fputs(i ? "\n----\n\n" : "", stdout);
    explain_print(catalog, &explanation.list[i]);
  }
  bool known = explanation.count || explanation.faults_count, name = !text[strcspn(text, " \t\n")];
  size_t changes = explain_changes(catalog, text, !name, !known);
  int status = known || changes ? 0 : 1;
  if (status)
    suggest(catalog, explanation.unknown);
  explain_free(&explanation);
  free(text);
  free(joined);
  catalog_free(loaded);
  return command_finish(status);
}
