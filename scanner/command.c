/* What the commands of sgl-migrate share. */
#include "scanner/command.h"
#include "scanner/changed.h"
#include "scanner/report.h"
#include "scanner/settings.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void usage_error(const char *format, ...) {
  va_list list;
  va_start(list, format);
  char *text = scan_format_list(format, list);
  va_end(list);
  fputs("sgl-migrate: ", stderr);
  report_plain(stderr, text); /* names and keys may have control characters */
  fputs("\n", stderr);
  free(text);
  exit(EXIT_USAGE);
}

int command_finish(int status) {
  if (fflush(stdout) != 0 || ferror(stdout)) {
    fprintf(stderr, "sgl-migrate: standard output: %s\n", strerror(errno));
    status |= EXIT_FAULT;
  }
  return status;
}

/* --- options ------------------------------------------------------------------------------------------------------ */

static const char help_options[] =
    "\n"
    "PATH is a source tree or a file. Folders of version control, installed packages, virtual environments and build\n"
    "output are left out, and what git ignores; name such a folder as PATH to look into it.\n"
    "\n"
    "options:\n"
    "  --kernel VERSION   kernel release that the code has to run with; a name is removed when this release no longer\n"
    "                     has it; or a requirements file or site-packages folder that says which release that is\n"
    "                     (default: what the tree's own requirements say, else the newest release of the catalog)\n"
    "  --to ROUTE         what calls are rewritten to: jit (this project's kernels) or sglang@VERSION (the module\n"
    "                     that has the function in that sglang release) (default: the sglang that the tree's own\n"
    "                     requirements name, else jit)\n"
    "  --catalog FILE     use this catalog in place of the built-in one\n"
    "  -j, --jobs N       worker threads (default: one a processor)\n"
    "  -h, --help         print this text\n";
static const char help_verdicts[] =
    "\n"
    "Each result is PATH:LINE:COLUMN: VERDICT NAME: MESSAGE and the source line, with one of these verdicts:\n"
    "  rewrite   a live use that fix edits safely\n"
    "  report    a live use that needs a person; fix leaves it alone\n"
    "  mention   a comment, documentation or log text\n"
    "\n"
    "The exit status is described by sgl-migrate --help.\n";

void usage_option(int option, char **argv) {
  if (option == ':')
    usage_error("%s needs a value; see sgl-migrate --help", argv[optind - 1]);
  if (optopt && optopt < 256)
    usage_error("unknown option -%c; see sgl-migrate --help", optopt);
  usage_error("unknown option %s; see sgl-migrate --help", argv[optind - 1]);
}

static unsigned parse_jobs(const char *text) {
  char *end;
  errno = 0;
  unsigned long value = strtoul(text, &end, 10);
  if (errno || *end || *text < '0' || *text > '9' || value == 0 || value > 1024)
    usage_error("--jobs '%s': a number from 1 to 1024 is needed", text);
  return (unsigned)value;
}

void command_start(struct choice *choice) {
  long processors = sysconf(_SC_NPROCESSORS_ONLN);
  *choice = (struct choice){.threads = processors > 0 && processors <= 1024 ? (unsigned)processors : 1};
  opterr = 0;
}

void command_option(struct choice *choice, int option, char **argv) {
  switch (option) {
  case COMMAND_KERNEL:
    choice->kernel = optarg;
    break;
  case COMMAND_TO:
    choice->to = optarg;
    break;
  case COMMAND_CATALOG:
    choice->catalog = optarg;
    break;
  case 'j':
    choice->threads = parse_jobs(optarg);
    break;
  default:
    usage_option(option, argv);
  }
}

void command_help(const char *start, const char *own_options) {
  fputs(start, stdout);
  fputs(help_options, stdout);
  fputs(own_options, stdout);
  fputs(help_verdicts, stdout);
  exit(command_finish(0));
}

void command_paths(struct choice *choice, int argc, char **argv) {
  if (optind == argc)
    usage_error("%s needs at least one path; see sgl-migrate --help", argv[0]);
  choice->paths = argv + optind;
  choice->paths_count = (size_t)(argc - optind);
}

/* --- what is checked against -------------------------------------------------------------------------------------- */

static void keep_first(void *user, const char *line) {
  char **first = user;
  if (!*first)
    *first = scan_format("%s", line);
}

/* The catalog, proved: a fault in the user's one would hide uses. */
const struct catalog *command_catalog(const char *path, struct catalog **loaded) {
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

void command_note_kernel(const struct catalog *catalog, const char *kernel) {
  note_unknown("kernel", kernel, newest(catalog->library.releases, catalog->library.releases_count));
}

/* Refuses what is no release, before anything is read. */
static void check_choice(const struct choice *choice, const struct catalog *catalog) {
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

static void decide(struct session *session, const struct choice *choice) {
  char message[512];
  struct options *options = &session->options;
  session->tree.catalog = session->given.catalog = session->catalog;
  for (size_t i = 0; i < session->count; i++)
    pins_collect(&session->tree, &session->scans[i]);
  options->kernel = choice->kernel;
  if (choice->kernel && !catalog_version_valid(choice->kernel) &&
      !pins_open(&session->given, choice->kernel, message, sizeof message))
    usage_error("%s", message);
  const struct pin *kernel = pins_kernel(session->given.count ? &session->given : &session->tree);
  if (kernel && (!choice->kernel || session->given.count)) {
    session->kernel = kernel;
    options->kernel = kernel->kernel;
  }
  if (!options->kernel)
    options->kernel = newest(session->catalog->library.releases, session->catalog->library.releases_count);
  const struct pin *sglang = pins_sglang(&session->given);
  if (!sglang)
    sglang = pins_sglang(&session->tree);
  if (choice->to && strncmp(choice->to, "sglang@", 7) == 0)
    options->sglang_release = choice->to + 7;
  if (!choice->to && sglang) {
    session->sglang = sglang;
    options->sglang_release = sglang->release;
  }
}

/* " (pyproject.toml:12: sglang-kernel==0.4.5)"; owned by the caller. */
static char *said_by(const struct pin *pin, bool kernel) {
  const char *how = kernel && pin->sglang ? ", which pins it" : pin->exact ? "" : ", of which it is the newest";
  return pin->line ? scan_format(" (%s:%u: %s%s)", pin->path, pin->line, pin->text, how)
                   : scan_format(" (%s: %s%s)", pin->path, pin->text, how);
}

/* What was taken because nothing was given, and that the catalog may be too old. */
static void say_options(const struct session *session, const struct choice *choice) {
  const struct catalog_library *library = &session->catalog->library;
  const struct options *options = &session->options;
  char *kernel =
      session->kernel ? said_by(session->kernel, true) : scan_format("%s", choice->kernel ? "" : " (default)");
  char *say = NULL,
       *to = session->sglang ? said_by(session->sglang, false) : scan_format("%s", choice->to ? "" : " (default)");
  if (!choice->kernel || !choice->to || session->kernel)
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
  command_note_kernel(session->catalog, options->kernel);
  if (options->sglang_release)
    note_unknown("sglang", options->sglang_release, newest(library->sglang_releases, library->sglang_releases_count));
}

static void print_line(void *user, const char *line) {
  FILE *stream = user;
  fputs(stream == stderr ? "sgl-migrate: pin: " : "pin: ", stream);
  report_plain(stream, line);
  putc('\n', stream);
}

/* A tree that pins an old kernel and has nothing to fix yet: how to see what an upgrade brings. */
static void say_ahead(const struct session *session, FILE *stream) {
  const char *latest = newest(session->catalog->library.releases, session->catalog->library.releases_count);
  if (!session->kernel || session->given.count || !latest || session->shards || /* what others have is not known */
      catalog_version_compare(session->kernel->kernel, latest) >= 0)
    return;
  for (size_t i = 0; i < session->count; i++)
    for (size_t k = 0; k < session->scans[i].files_count; k++)
      for (size_t f = 0; f < session->scans[i].files[k].result.findings_count; f++)
        if (session->scans[i].files[k].result.findings[f].verdict == VERDICT_REWRITE)
          return;
  fprintf(stream, "%shint: kernel %s is the newest; --kernel %s shows what an upgrade takes away\n",
          stream == stderr ? "sgl-migrate: " : "", latest, latest);
}

void command_say_pins(const struct session *session, FILE *stream) {
  pins_contradictions(&session->tree, session->scans, session->count, print_line, stream);
  say_ahead(session, stream);
}

/* --- the run ------------------------------------------------------------------------------------------------------ */

void command_open(struct session *session, const struct choice *choice, bool unsafe, const char *no_baseline) {
  *session = (struct session){.count = choice->paths_count, .options.unsafe = unsafe, .choice = *choice};
  session->catalog = command_catalog(choice->catalog, &session->loaded);
  check_choice(choice, session->catalog);
  session->settings =
      command_open_settings(choice->paths, choice->paths_count, &session->choice, &session->baseline, no_baseline);
}

void command_run(struct session *session) {
  char message[512];
  const struct choice *choice = &session->choice;
  session->scans = scan_alloc(NULL, session->count * sizeof *session->scans);
  bool progress = isatty(STDERR_FILENO);
  for (size_t i = 0; i < session->count; i++) {
    session->scans[i] = (struct scan){.catalog = session->catalog,
                                      .root = choice->paths[i],
                                      .settings = &session->settings[i],
                                      .use_cache = session->cache,
                                      .shard = session->shard,
                                      .shards = session->shards};
    if (!scan_walk(&session->scans[i], session->scans, i, choice->threads, progress, message, sizeof message))
      usage_error("%s", message);
  }
  decide(session, choice);
  for (size_t i = 0; i < session->count; i++) {
    session->scans[i].options = session->options;
    scan_run(&session->scans[i], choice->threads, progress);
  }
  say_options(session, choice);
}

void command_close(struct session *session) {
  for (size_t i = 0; i < session->count; i++)
    scan_close(&session->scans[i]);
  free(session->scans);
  command_close_settings(session->settings, session->count);
  pins_free(&session->tree);
  pins_free(&session->given);
  changed_catalog_free(session->extended); /* its texts are those of the catalog */
  catalog_free(session->loaded);
}
