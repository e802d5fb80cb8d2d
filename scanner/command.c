/* What the commands of sgl-migrate share. */
#include "scanner/command.h"
#include "scanner/report.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

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

void command_check(const struct choice *choice, const struct catalog *catalog) {
  const struct catalog_library *library = &catalog->library;
  const char *kernel = newest(library->releases, library->releases_count);
  const char *sglang = newest(library->sglang_releases, library->sglang_releases_count);
  if (!kernel && !choice->kernel)
    usage_error("the catalog names no kernel release; give one with --kernel");
  struct stat status;
  if (choice->kernel && !catalog_version_valid(choice->kernel) && stat(choice->kernel, &status) != 0)
    usage_error("--kernel '%s': not a release number like %s, nor a requirements file or site-packages folder",
                choice->kernel, kernel ? kernel : "0.4.6");
  if (choice->to && strncmp(choice->to, "sglang@", 7) == 0) {
    if (!catalog_version_valid(choice->to + 7))
      usage_error("--to '%s': not a release number after the @; one like sglang@%s is needed", choice->to,
                  sglang ? sglang : "0.5.18");
  } else if (choice->to && strcmp(choice->to, "jit") != 0) {
    usage_error("--to '%s': jit or sglang@VERSION is needed", choice->to);
  }
}

void command_decide(const struct choice *choice, const struct catalog *catalog, const struct scan *scans, size_t count,
                    struct decision *decision) {
  char message[512];
  struct options *options = &decision->options;
  *decision = (struct decision){.tree.catalog = catalog, .given.catalog = catalog};
  for (size_t i = 0; i < count; i++)
    pins_collect(&decision->tree, &scans[i]);
  options->kernel = choice->kernel;
  if (choice->kernel && !catalog_version_valid(choice->kernel) &&
      !pins_open(&decision->given, choice->kernel, message, sizeof message))
    usage_error("%s", message);
  const struct pin *kernel = pins_kernel(decision->given.count ? &decision->given : &decision->tree);
  if (kernel && (!choice->kernel || decision->given.count)) {
    decision->kernel = kernel;
    options->kernel = kernel->kernel;
  }
  if (!options->kernel)
    options->kernel = newest(catalog->library.releases, catalog->library.releases_count);
  const struct pin *sglang = pins_sglang(&decision->given);
  if (!sglang)
    sglang = pins_sglang(&decision->tree);
  if (choice->to && strncmp(choice->to, "sglang@", 7) == 0)
    options->sglang_release = choice->to + 7;
  if (!choice->to && sglang) {
    decision->sglang = sglang;
    options->sglang_release = sglang->release;
  }
}

void command_forget(struct decision *decision) {
  pins_free(&decision->tree);
  pins_free(&decision->given);
}

/* " (pyproject.toml:12: sglang-kernel==0.4.5)"; owned by the caller. */
static char *said_by(const struct pin *pin, bool kernel) {
  const char *how = kernel && pin->sglang ? ", which pins it" : pin->exact ? "" : ", of which it is the newest";
  return pin->line ? scan_format(" (%s:%u: %s%s)", pin->path, pin->line, pin->text, how)
                   : scan_format(" (%s: %s%s)", pin->path, pin->text, how);
}

void command_say(const struct choice *choice, const struct catalog *catalog, const struct decision *decision) {
  const struct catalog_library *library = &catalog->library;
  const struct options *options = &decision->options;
  char *kernel =
      decision->kernel ? said_by(decision->kernel, true) : scan_format("%s", choice->kernel ? "" : " (default)");
  char *say = NULL,
       *to = decision->sglang ? said_by(decision->sglang, false) : scan_format("%s", choice->to ? "" : " (default)");
  if (!choice->kernel || !choice->to || decision->kernel)
    say = scan_format("sgl-migrate: checking against kernel %s%s, rewriting to %s%s%s", options->kernel, kernel,
                      options->sglang_release ? "sglang@" : "jit",
                      options->sglang_release ? options->sglang_release : "", to);
  if (say) {
    report_plain(stderr, say); /* a path may have control characters */
    fputs("\n", stderr);
  }
  free(say);
  free(kernel);
  free(to);
  note_unknown("kernel", options->kernel, newest(library->releases, library->releases_count));
  if (options->sglang_release)
    note_unknown("sglang", options->sglang_release, newest(library->sglang_releases, library->sglang_releases_count));
}

static void print_line(void *user, const char *line) {
  FILE *stream = user;
  fputs(stream == stderr ? "sgl-migrate: pin: " : "pin: ", stream);
  report_plain(stream, line);
  putc('\n', stream);
}

void command_say_pins(const struct decision *decision, const struct scan *scans, size_t count, FILE *stream) {
  pins_contradictions(&decision->tree, scans, count, print_line, stream);
}
