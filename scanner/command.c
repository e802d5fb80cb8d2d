/* What the commands of sgl-migrate share. */
#include "scanner/command.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void usage_error(const char *format, ...) {
  va_list list;
  va_start(list, format);
  fputs("sgl-migrate: ", stderr);
  vfprintf(stderr, format, list);
  fputs("\n", stderr);
  va_end(list);
  exit(EXIT_USAGE);
}

void usage_option(int option, char **argv) {
  if (option == ':')
    usage_error("%s needs a value; see sgl-migrate --help", argv[optind - 1]);
  if (optopt && optopt < 256)
    usage_error("unknown option -%c; see sgl-migrate --help", optopt);
  usage_error("unknown option %s; see sgl-migrate --help", argv[optind - 1]);
}

int command_finish(int status) {
  if (fflush(stdout) != 0 || ferror(stdout)) {
    fprintf(stderr, "sgl-migrate: standard output: %s\n", strerror(errno));
    status |= EXIT_FAULT;
  }
  return status;
}

static void keep_first(void *user, const char *line) {
  char **first = user;
  if (!*first)
    *first = scan_format("%s", line);
}

const struct catalog *command_catalog(const struct choice *choice, struct catalog **loaded) {
  const char *path = choice->catalog;
  *loaded = NULL;
  if (!path)
    return &catalog_builtin;
  char message[600], *first = NULL;
  *loaded = catalog_load(path, message, sizeof message);
  if (!*loaded)
    usage_error("%s", message);
  if (catalog_lint(*loaded, path, keep_first, &first))
    usage_error("%s", first);
  return *loaded;
}

static const char *newest(const char *const *releases, unsigned count) {
  return count ? releases[count - 1] : NULL;
}

static void note_unknown(const char *what, const char *version, const char *known) {
  if (known && catalog_version_compare(version, known) > 0)
    fprintf(stderr,
            "sgl-migrate: %s %s is newer than %s, the newest that the catalog knows; later changes are missing\n", what,
            version, known);
}

void command_options(const struct choice *choice, const struct catalog *catalog, struct options *options) {
  const struct catalog_library *library = &catalog->library;
  const char *kernel = newest(library->releases, library->releases_count);
  const char *sglang = newest(library->sglang_releases, library->sglang_releases_count);
  options->kernel = choice->kernel ? choice->kernel : kernel;
  if (!options->kernel)
    usage_error("the catalog names no kernel release; give one with --kernel");
  if (!catalog_version_valid(options->kernel))
    usage_error("--kernel '%s': not a release number; one like %s is needed", options->kernel,
                kernel ? kernel : "0.4.6");
  if (choice->to && strncmp(choice->to, "sglang@", 7) == 0) {
    options->sglang_release = choice->to + 7;
    if (!catalog_version_valid(options->sglang_release))
      usage_error("--to '%s': not a release number after the @; one like sglang@%s is needed", choice->to,
                  sglang ? sglang : "0.5.18");
  } else if (choice->to && strcmp(choice->to, "jit") != 0) {
    usage_error("--to '%s': jit or sglang@VERSION is needed", choice->to);
  }
}

void command_say_options(const struct choice *choice, const struct catalog *catalog, const struct options *options) {
  const struct catalog_library *library = &catalog->library;
  if (!choice->kernel || !choice->to)
    fprintf(stderr, "sgl-migrate: checking against kernel %s%s, rewriting to %s%s\n", options->kernel,
            choice->kernel ? "" : " (default)", choice->to ? choice->to : "jit", choice->to ? "" : " (default)");
  note_unknown("kernel", options->kernel, newest(library->releases, library->releases_count));
  if (options->sglang_release)
    note_unknown("sglang", options->sglang_release, newest(library->sglang_releases, library->sglang_releases_count));
}
