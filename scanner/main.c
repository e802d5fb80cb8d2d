/* sgl-migrate: the command line. */
#include "scanner/scanner.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
    "usage: sgl-migrate scan [OPTION]... PATH...   list uses of removed sgl_kernel names\n"
    "       sgl-migrate fix  [OPTION]... PATH...   rewrite the uses that are safe to rewrite\n"
    "\n"
    "PATH is a source tree or a file. Folders of version control, installed packages, virtual environments and build\n"
    "output are left out, and what git ignores; name such a folder as PATH to look into it.\n"
    "\n"
    "options:\n"
    "  --kernel VERSION   kernel release that the code has to run with; a name is removed when this release no longer\n"
    "                     has it (default: the newest release of the catalog)\n"
    "  --to ROUTE         what calls are rewritten to: jit (this project's kernels, the default) or sglang@VERSION\n"
    "                     (the module that has the function in that sglang release)\n"
    "  --format FORMAT    scan: text (default) or sarif, SARIF 2.1.0 on standard output\n"
    "  --catalog FILE     use this catalog in place of the built-in one\n"
    "  -j, --jobs N       worker threads (default: one a processor)\n"
    "  --version          print the version\n"
    "  -h, --help         print this text\n"
    "\n"
    "Each result is PATH:LINE:COLUMN: VERDICT NAME: MESSAGE, with one of these verdicts:\n"
    "  rewrite   a live use that fix edits safely\n"
    "  report    a live use that needs a person; fix leaves it alone\n"
    "  mention   a comment, documentation or log text\n"
    "\n"
    "exit status, the sum of:\n"
    "  0    no live use\n"
    "  1    live uses were found; of fix: live uses remain\n"
    "  2    at least one of them needs a person\n"
    "  4    a file or folder was not analysed, or only in part (named on standard error)\n"
    "  8    wrong usage: nothing was done\n"
    "  16   an error: a file could not be written, or memory ran out\n"
    "\n"
    "examples:\n"
    "  sgl-migrate scan --kernel 0.4.6 --to sglang@0.5.18 ~/src/server\n"
    "  sgl-migrate scan --format sarif . > sgl-migrate.sarif\n"
    "  sgl-migrate fix --to jit src/model.py\n";

/* Folders and links that are named in the summary. */
#define NOTES_SHOWN 20

struct command {
  bool fix, sarif;
  const char *kernel, *to, *catalog;
  unsigned threads;
  char **paths;
  size_t paths_count;
};

__attribute__((format(printf, 1, 2), noreturn)) static void usage_error(const char *format, ...) {
  va_list list;
  va_start(list, format);
  fputs("sgl-migrate: ", stderr);
  vfprintf(stderr, format, list);
  fputs("\n", stderr);
  va_end(list);
  exit(EXIT_USAGE);
}

/* Output that did not arrive is an error, also of --help. */
static int finish(int status) {
  if (fflush(stdout) != 0 || ferror(stdout)) {
    fprintf(stderr, "sgl-migrate: standard output: %s\n", strerror(errno));
    status |= EXIT_FAULT;
  }
  return status;
}

static unsigned parse_jobs(const char *text) {
  char *end;
  errno = 0;
  unsigned long value = strtoul(text, &end, 10);
  if (errno || *end || *text < '0' || *text > '9' || value == 0 || value > 1024)
    usage_error("--jobs '%s': a number from 1 to 1024 is needed", text);
  return (unsigned)value;
}

static void parse(int argc, char **argv, struct command *command) {
  enum { OPTION_KERNEL = 256, OPTION_TO, OPTION_FORMAT, OPTION_CATALOG, OPTION_VERSION };
  static const struct option options[] = {
      {"kernel", required_argument, NULL, OPTION_KERNEL},
      {"to", required_argument, NULL, OPTION_TO},
      {"format", required_argument, NULL, OPTION_FORMAT},
      {"catalog", required_argument, NULL, OPTION_CATALOG},
      {"jobs", required_argument, NULL, 'j'},
      {"version", no_argument, NULL, OPTION_VERSION},
      {"help", no_argument, NULL, 'h'},
      {NULL, 0, NULL, 0},
  };
  long processors = sysconf(_SC_NPROCESSORS_ONLN);
  *command = (struct command){.threads = processors > 0 && processors <= 1024 ? (unsigned)processors : 1};
  const char *format = NULL;
  int option;
  opterr = 0;
  while ((option = getopt_long(argc, argv, ":hj:", options, NULL)) != -1) {
    switch (option) {
    case OPTION_KERNEL:
      command->kernel = optarg;
      break;
    case OPTION_TO:
      command->to = optarg;
      break;
    case OPTION_FORMAT:
      format = optarg;
      break;
    case OPTION_CATALOG:
      command->catalog = optarg;
      break;
    case 'j':
      command->threads = parse_jobs(optarg);
      break;
    case OPTION_VERSION:
      puts("sgl-migrate " SGL_VERSION);
      exit(finish(0));
    case 'h':
      fputs(help, stdout);
      exit(finish(0));
    case ':':
      usage_error("%s needs a value; see sgl-migrate --help", argv[optind - 1]);
    default:
      if (optopt && optopt < 256)
        usage_error("unknown option -%c; see sgl-migrate --help", optopt);
      usage_error("unknown option %s; see sgl-migrate --help", argv[optind - 1]);
    }
  }
  if (optind == argc)
    usage_error("a command is needed: scan or fix; see sgl-migrate --help");
  const char *name = argv[optind++];
  if (strcmp(name, "fix") == 0)
    command->fix = true;
  else if (strcmp(name, "scan") != 0)
    usage_error("unknown command '%s': scan or fix is needed; see sgl-migrate --help", name);
  if (optind == argc)
    usage_error("%s needs at least one path; see sgl-migrate --help", name);
  if (format && command->fix)
    usage_error("--format belongs to scan; fix prints text");
  if (format && strcmp(format, "sarif") != 0 && strcmp(format, "text") != 0)
    usage_error("--format '%s': text or sarif is needed", format);
  command->sarif = format && strcmp(format, "sarif") == 0;
  command->paths = argv + optind;
  command->paths_count = (size_t)(argc - optind);
}

static void keep_first(void *user, const char *line) {
  char **first = user;
  if (!*first)
    *first = scan_format("%s", line);
}

/* The user's catalog, proved: a fault in it would hide uses. */
static struct catalog *open_catalog(const char *path) {
  char message[600], *first = NULL;
  struct catalog *catalog = catalog_load(path, message, sizeof message);
  if (!catalog)
    usage_error("%s", message);
  if (catalog_lint(catalog, path, keep_first, &first))
    usage_error("%s", first);
  return catalog;
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

/* Fills in the defaults and refuses what is no release. */
static void choose_options(const struct command *command, const struct catalog *catalog, struct options *options) {
  const struct catalog_library *library = &catalog->library;
  const char *kernel = newest(library->releases, library->releases_count);
  const char *sglang = newest(library->sglang_releases, library->sglang_releases_count);
  options->kernel = command->kernel ? command->kernel : kernel;
  if (!options->kernel)
    usage_error("the catalog names no kernel release; give one with --kernel");
  if (!catalog_version_valid(options->kernel))
    usage_error("--kernel '%s': not a release number; one like %s is needed", options->kernel,
                kernel ? kernel : "0.4.6");
  if (command->to && strncmp(command->to, "sglang@", 7) == 0) {
    options->sglang_release = command->to + 7;
    if (!catalog_version_valid(options->sglang_release))
      usage_error("--to '%s': not a release number after the @; one like sglang@%s is needed", command->to,
                  sglang ? sglang : "0.5.18");
  } else if (command->to && strcmp(command->to, "jit") != 0) {
    usage_error("--to '%s': jit or sglang@VERSION is needed", command->to);
  }
}

/* Which defaults were taken, and that the catalog may be too old. */
static void say_options(const struct command *command, const struct catalog_library *library,
                        const struct options *options) {
  if (!command->kernel || !command->to)
    fprintf(stderr, "sgl-migrate: checking against kernel %s%s, rewriting to %s%s\n", options->kernel,
            command->kernel ? "" : " (default)", command->to ? command->to : "jit", command->to ? "" : " (default)");
  note_unknown("kernel", options->kernel, newest(library->releases, library->releases_count));
  if (options->sglang_release)
    note_unknown("sglang", options->sglang_release, newest(library->sglang_releases, library->sglang_releases_count));
}

/* --- fix ---------------------------------------------------------------------------------------------------------- */

/* Writes file->bytes over what was there. A stop signal waits until that is said as well. */
static bool write_and_say(const struct source_file *file, const char *path, size_t edits, const uint8_t *old_bytes,
                          size_t old_size, char *message, size_t message_size) {
  sigset_t stop, before;
  sigemptyset(&stop);
  sigaddset(&stop, SIGINT);
  sigaddset(&stop, SIGTERM);
  sigaddset(&stop, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &stop, &before);
  bool done = edit_write(file->full_path, old_bytes, old_size, file->bytes, file->size, message, message_size);
  if (done) {
    printf("fixed %s (%zu edit%s)\n", path, edits, edits == 1 ? "" : "s");
    fflush(stdout);
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return done;
}

/* Edits one file. The new content is analysed before it is written: a rewrite that would be rewritten again is a fault
 * of the rule, and then the file is left alone. On success the file's result is the one of its new content. */
static bool fix_file(const struct scan *scan, struct source_file *file) {
  char message[256];
  uint8_t *new_bytes;
  size_t new_size, edits = file->result.edits_count;
  char *path = report_path(scan, file->path);
  bool done =
      edit_compose(file->bytes, file->size, file->result.edits, edits, &new_bytes, &new_size, message, sizeof message);
  if (done) {
    const uint8_t *old_bytes = file->bytes;
    size_t old_size = file->size;
    struct result after = {0};
    file->bytes = new_bytes;
    file->size = new_size;
    scan_analyse(scan, file, &after);
    done = after.edits_count == 0;
    if (!done)
      snprintf(message, sizeof message, "the new content would be edited again; the file is unchanged");
    else
      done = write_and_say(file, path, edits, old_bytes, old_size, message, sizeof message);
    if (done) {
      result_free(&file->result);
      file->result = after;
    } else {
      file->bytes = old_bytes;
      file->size = old_size;
      free(new_bytes);
      result_free(&after);
    }
  }
  if (!done)
    fprintf(stderr, "sgl-migrate: %s: not fixed: %s\n", path, message);
  free(path);
  return done;
}

static bool fix_all(struct scan *scan, size_t *fixed) {
  bool done = true;
  for (size_t i = 0; i < scan->files_count; i++) {
    struct source_file *file = &scan->files[i];
    if (file->result.edits_count == 0)
      continue;
    if (fix_file(scan, file))
      (*fixed)++;
    else
      done = false;
  }
  return done;
}

/* --- summary ------------------------------------------------------------------------------------------------------ */

static const char *plural(size_t count) {
  return count == 1 ? "" : "s";
}

static void summary(const struct scan *scans, size_t count, const struct totals *totals, bool fix, size_t fixed) {
  const struct options *options = &scans[0].options;
  size_t live = totals->rewrite + totals->report;
  if (fix)
    printf("%zu file%s fixed; ", fixed, plural(fixed));
  printf("%zu live use%s%s in %zu file%s: %zu to rewrite, %zu for a person; %zu mention%s\n", live, plural(live),
         fix ? " left" : "", totals->files_with_uses, plural(totals->files_with_uses), totals->rewrite, totals->report,
         totals->mention, plural(totals->mention));
  printf("%zu file%s looked at, against kernel %s, to %s%s; %zu not analysed, %zu in part", totals->files,
         plural(totals->files), options->kernel, options->sglang_release ? "sglang@" : "jit",
         options->sglang_release ? options->sglang_release : "", totals->not_analysed, totals->partly);
  if (totals->ignored)
    printf(", %zu ignored by git", totals->ignored);
  printf("\n");
  size_t shown = 0;
  for (size_t i = 0; i < count; i++)
    for (size_t k = 0; k < scans[i].notes_count; k++) {
      const struct walk_note *note = &scans[i].notes[k];
      if (note->failed || shown++ >= NOTES_SHOWN)
        continue;
      char *path = report_path(&scans[i], note->path);
      printf("left out: %s (%s)\n", path, note->reason);
      free(path);
    }
  if (shown > NOTES_SHOWN)
    printf("left out: %zu more; --format sarif names all\n", shown - NOTES_SHOWN);
}

int main(int argc, char **argv) {
  struct command command;
  parse(argc, argv, &command);
  if (command.fix)
    signal(SIGPIPE, SIG_IGN); /* a reader that goes away must not stop the work between two files */
  char message[512];
  struct catalog *loaded = command.catalog ? open_catalog(command.catalog) : NULL;
  const struct catalog *catalog = loaded ? loaded : &catalog_builtin;
  struct options options = {0};
  choose_options(&command, catalog, &options);

  struct scan *scans = scan_alloc(NULL, command.paths_count * sizeof *scans);
  struct totals totals = {0};
  size_t fixed = 0;
  int status = 0;
  bool progress = isatty(STDERR_FILENO);
  for (size_t i = 0; i < command.paths_count; i++) {
    scans[i] = (struct scan){.catalog = catalog, .options = options, .root = command.paths[i]};
    if (!scan_open(&scans[i], scans, i, command.threads, progress, message, sizeof message))
      usage_error("%s", message);
  }
  say_options(&command, &catalog->library, &options);
  for (size_t i = 0; i < command.paths_count; i++) {
    if (command.fix && !fix_all(&scans[i], &fixed))
      status |= EXIT_FAULT;
    report_count(&scans[i], &totals);
    if (!command.sarif)
      report_text(&scans[i], !command.fix);
    fflush(stdout);
    report_not_analysed(&scans[i]);
  }
  if (command.sarif && !report_sarif(scans, command.paths_count))
    status |= EXIT_FAULT;
  if (!command.sarif)
    summary(scans, command.paths_count, &totals, command.fix, fixed);
  status = finish(status | report_status(&totals));
  for (size_t i = 0; i < command.paths_count; i++)
    scan_close(&scans[i]);
  free(scans);
  catalog_free(loaded);
  return status;
}
