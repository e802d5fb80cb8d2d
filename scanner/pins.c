/* Which files of a tree have pins, which pin decides, and which ones contradict what was found. */
#include "scanner/pins.h"
#include "scanner/dist_info.h"
#include "scanner/report.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A lock file of a large project has a few MiB. */
#define LARGEST_FILE ((off_t)32 << 20)
/* Requirements files that include each other in a circle end here. */
#define DEEPEST_INCLUDE 8
/* Contradictions that the summary names one by one. */
#define NAMED 5

/* --- the list ----------------------------------------------------------------------------------------------------- */

static bool known(const struct pins *pins, const char *shown, uint32_t line, const char *text) {
  for (size_t i = 0; i < pins->count; i++)
    if (pins->list[i].line == line && strcmp(pins->list[i].path, shown) == 0 && strcmp(pins->list[i].text, text) == 0)
      return true;
  return false;
}

void pins_add(struct pins *pins, enum pins_kind kind, const char *shown, uint32_t line, const char *name, bool sglang,
              const char *specifier) {
  const struct catalog_library *library = &pins->catalog->library;
  if (!pins_specifier_valid(specifier))
    return;
  char *text = scan_format("%s%s", name, specifier);
  if (known(pins, shown, line, text)) { /* a file that is included, and found by the walk as well */
    free(text);
    return;
  }
  if (pins->count == pins->capacity) {
    pins->capacity = pins->capacity ? 2 * pins->capacity : 8;
    pins->list = scan_alloc(pins->list, pins->capacity * sizeof *pins->list);
  }
  char *release = pins_specifier_newest(specifier, sglang ? library->sglang_releases : library->releases,
                                        sglang ? library->sglang_releases_count : library->releases_count);
  pins->list[pins->count++] = (struct pin){
      .path = scan_format("%s", shown),
      .line = line,
      .text = text,
      .specifier = scan_format("%s", specifier),
      .release = release,
      .kernel = !sglang || !release ? release : catalog_sglang_kernel(pins->catalog, release),
      .sglang = sglang,
      .exact = pins_specifier_exact(specifier),
      .kind = kind,
  };
}

void pins_free(struct pins *pins) {
  for (size_t i = 0; i < pins->count; i++) {
    free(pins->list[i].path);
    free(pins->list[i].text);
    free(pins->list[i].specifier);
    free(pins->list[i].release);
  }
  free(pins->list);
  *pins = (struct pins){.catalog = pins->catalog};
}

/* --- files -------------------------------------------------------------------------------------------------------- */

struct including {
  struct pins *pins;
  const char *full_path, *shown; /* of the file that includes */
  unsigned depth;
};

static bool read_pins(struct pins *pins, enum pins_kind kind, const char *full_path, const char *shown, unsigned depth);

/* The path of an included file, beside the one that includes it. */
static char *beside(const char *file, const char *path) {
  const char *slash = strrchr(file, '/');
  return *path == '/' || !slash ? scan_format("%s", path) : scan_format("%.*s/%s", (int)(slash - file), file, path);
}

static void include(void *user, const char *path) {
  const struct including *from = user;
  if (from->depth >= DEEPEST_INCLUDE || strstr(path, "://"))
    return;
  char *full_path = beside(from->full_path, path), *shown = beside(from->shown, path);
  read_pins(from->pins, PINS_REQUIREMENTS, full_path, shown, from->depth + 1);
  free(full_path);
  free(shown);
}

/* Returns false with errno set when the file cannot be read. */
static bool read_pins(struct pins *pins, enum pins_kind kind, const char *full_path, const char *shown,
                      unsigned depth) {
  int fd = open(full_path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  struct stat status;
  if (fd < 0)
    return false;
  if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size > LARGEST_FILE) {
    close(fd);
    errno = EINVAL;
    return false;
  }
  uint8_t *bytes = scan_alloc(NULL, (size_t)status.st_size);
  size_t size = 0;
  ssize_t got = 1;
  while (size < (size_t)status.st_size && (got = read(fd, bytes + size, (size_t)status.st_size - size)) != 0) {
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      break;
    size += (size_t)got;
  }
  int failure = errno;
  close(fd);
  if (got >= 0) {
    struct including from = {pins, full_path, shown, depth};
    pins_read(pins, kind, shown, bytes, size, include, &from);
  }
  free(bytes);
  errno = failure;
  return got >= 0;
}

static bool exists(const char *folder, const char *name) {
  char *path = scan_format("%s/%s", folder, name);
  bool yes = access(path, F_OK) == 0;
  free(path);
  return yes;
}

static int compare_names(const void *left, const void *right) {
  return strcmp(*(char *const *)left, *(char *const *)right);
}

/* The pins of one folder, not of those below it: what a project keeps beside its sources. */
static void read_folder(struct pins *pins, const char *folder) {
  DIR *open = opendir(folder);
  char **names = NULL;
  size_t count = 0;
  for (struct dirent *entry; open && (entry = readdir(open));) {
    enum pins_kind kind = pins_kind(entry->d_name);
    if (kind == PINS_NONE || kind == PINS_SCRIPT)
      continue;
    names = scan_alloc(names, (count + 1) * sizeof(char *));
    names[count++] = scan_format("%s", entry->d_name);
  }
  if (open)
    closedir(open);
  if (count)
    qsort(names, count, sizeof *names, compare_names);
  for (size_t i = 0; i < count; i++) {
    char *path = scan_format("%s/%s", folder, names[i]), *here = getcwd(NULL, 0);
    size_t length = here ? strlen(here) : 0;
    bool below = length && strncmp(path, here, length) == 0 && path[length] == '/';
    read_pins(pins, pins_kind(names[i]), path, below ? path + length + 1 : path, 0);
    free(path);
    free(here);
    free(names[i]);
  }
  free(names);
}

/* The root may be a folder or a file of a project: its pins are in the folders above, up to the top of the work tree.
 */
static void read_above(struct pins *pins, const struct scan *scan) {
  char *top = scan_format("%s", scan->real_root);
  while (*top && !exists(top, ".git"))
    *strrchr(top, '/') = '\0';
  if (!*top) { /* in no work tree: the folder of a file, nothing above a folder */
    free(top);
    if (scan->root_is_file)
      read_folder(pins, scan->real_root);
    return;
  }
  char *folder = scan_format("%s", scan->real_root);
  bool own = scan->root_is_file;
  for (;; own = true) {
    if (own)
      read_folder(pins, folder);
    if (strcmp(folder, top) == 0)
      break;
    *strrchr(folder, '/') = '\0';
  }
  free(folder);
  free(top);
}

static size_t depth_of(const char *path) {
  size_t depth = 0;
  for (; *path; path++)
    depth += *path == '/';
  return depth;
}

static int compare_pins(const void *left, const void *right) {
  const struct pin *a = left, *b = right;
  if (a->kind != b->kind)
    return a->kind < b->kind ? -1 : 1;
  size_t depth_a = depth_of(a->path), depth_b = depth_of(b->path);
  if (depth_a != depth_b)
    return depth_a < depth_b ? -1 : 1;
  int order = strcmp(a->path, b->path);
  if (order)
    return order;
  if (a->line != b->line)
    return a->line < b->line ? -1 : 1;
  return strcmp(a->text, b->text);
}

static void sort(struct pins *pins) {
  if (pins->count)
    qsort(pins->list, pins->count, sizeof *pins->list, compare_pins);
}

void pins_collect(struct pins *pins, const struct scan *scan) {
  for (size_t i = 0; i < scan->files_count; i++) {
    enum pins_kind kind = (enum pins_kind)scan->files[i].pins;
    if (kind == PINS_NONE || scan->root_is_file)
      continue;
    char *shown = report_path(scan, scan->files[i].path);
    read_pins(pins, kind, scan->files[i].full_path, shown, 0);
    free(shown);
  }
  read_above(pins, scan);
  sort(pins);
}

/* --- --kernel FILE or FOLDER -------------------------------------------------------------------------------------- */

static void read_installed(struct pins *pins, const char *folder, const char *entry) {
  char *info = scan_format("%s/%s", folder, entry);
  char *name = dist_info_value(info, "Name"), *version = dist_info_value(info, "Version");
  bool sglang = name && strcmp(name, "sglang") == 0;
  if (name && version && (sglang || dist_info_owns(info, pins->catalog->library.package))) {
    char *specifier = scan_format("==%s", version);
    pins_add(pins, PINS_METADATA, info, 0, name, sglang, specifier);
    free(specifier);
  }
  free(name);
  free(version);
  free(info);
}

/* Two wheels of one package overwrite each other, and what is left of which nobody can tell. */
static bool one_kernel(const struct pins *pins, const char *path, char *message, size_t message_size) {
  const struct pin *first = NULL;
  for (size_t i = 0; i < pins->count; i++) {
    const struct pin *pin = &pins->list[i];
    if (pin->sglang)
      continue;
    if (first && strcmp(first->release, pin->release) != 0) {
      snprintf(message, message_size, "--kernel '%s': both %s and %s own %s there; give the release number", path,
               first->text, pin->text, pins->catalog->library.package);
      return false;
    }
    first = pin;
  }
  return true;
}

bool pins_open(struct pins *pins, const char *path, char *message, size_t message_size) {
  struct stat status;
  const char *package = pins->catalog->library.package;
  if (stat(path, &status) != 0) {
    snprintf(message, message_size, "--kernel '%s': neither a release number nor a file or folder that is there", path);
    return false;
  }
  if (S_ISDIR(status.st_mode)) {
    DIR *folder = opendir(path);
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
      const char *ending = strstr(entry->d_name, ".dist-info");
      if (ending && ending[10] == '\0')
        read_installed(pins, path, entry->d_name);
    }
    if (folder)
      closedir(folder);
    sort(pins);
    if (!one_kernel(pins, path, message, message_size))
      return false;
  } else {
    enum pins_kind kind = pins_kind(path);
    if (!read_pins(pins, kind == PINS_NONE ? PINS_REQUIREMENTS : kind, path, path, 0)) {
      snprintf(message, message_size, "--kernel '%s': cannot be read: %s", path,
               errno == EINVAL ? "no regular file, or a very large one" : strerror(errno));
      return false;
    }
    sort(pins);
  }
  if (pins_kernel(pins))
    return true;
  snprintf(message, message_size,
           S_ISDIR(status.st_mode)
               ? "--kernel '%s': no *.dist-info folder in it owns %s; a site-packages folder is needed"
               : "--kernel '%s': it pins no release of a wheel that has %s; give the release number",
           path, package);
  return false;
}

/* --- the choice --------------------------------------------------------------------------------------------------- */

/* The newest release of the pins of one kind and weight. */
static const struct pin *newest(const struct pins *pins, bool sglang, bool exact, bool kernel) {
  const struct pin *best = NULL;
  for (size_t i = 0; i < pins->count; i++) {
    const struct pin *pin = &pins->list[i];
    if (pin->sglang != sglang || pin->exact != exact || !pin->release || (kernel && !pin->kernel))
      continue;
    if (!best || catalog_version_compare(pin->release, best->release) > 0)
      best = pin;
  }
  return best;
}

const struct pin *pins_kernel(const struct pins *pins) {
  const struct pin *pin = NULL;
  for (unsigned i = 0; i < 4 && !pin; i++)
    pin = newest(pins, i >= 2, i % 2 == 0, true);
  return pin;
}

const struct pin *pins_sglang(const struct pins *pins) {
  const struct pin *pin = newest(pins, true, true, false);
  return pin ? pin : newest(pins, true, false, false);
}

/* --- contradictions ----------------------------------------------------------------------------------------------- */

/* Used in a way that a kernel without it breaks. */
static bool live(const struct scan *scans, size_t count, const struct catalog_symbol *symbol) {
  for (size_t i = 0; i < count; i++)
    for (size_t k = 0; k < scans[i].files_count; k++) {
      const struct result *result = &scans[i].files[k].result;
      for (size_t f = 0; f < result->findings_count; f++)
        if (result->findings[f].symbol == symbol && result->findings[f].verdict != VERDICT_MENTION &&
            !rules_only_moved(&result->findings[f]))
          return true;
    }
  return false;
}

static bool gone(const struct catalog_symbol *symbol, const char *kernel) {
  for (int layer = CATALOG_LAYER_PYTHON; layer <= CATALOG_LAYER_SOURCES; layer++)
    if (catalog_is_removed(symbol, (enum catalog_layer)layer, CATALOG_CUDA, kernel))
      return true;
  return false;
}

static char *place_of(const struct pin *pin) {
  return pin->line ? scan_format("%s:%u: %s", pin->path, pin->line, pin->text)
                   : scan_format("%s: %s", pin->path, pin->text);
}

struct lines {
  void (*say)(void *user, const char *line);
  void *user;
  size_t count;
};

static void say(struct lines *lines, char *line) {
  if (lines->count++ < NAMED)
    lines->say(lines->user, line);
  free(line);
}

/* A range that another pin fits into does not contradict it. */
static bool agrees(const struct pin *pin, const struct pin *chosen) {
  if (pin->sglang == chosen->sglang)
    return pins_specifier_allows(pin->specifier, chosen->release);
  return !pin->kernel || !chosen->kernel || !pin->exact || catalog_version_compare(pin->kernel, chosen->kernel) == 0;
}

static void disagreements(const struct pins *pins, const struct pin *chosen, struct lines *lines) {
  char *other = place_of(chosen);
  for (size_t i = 0; i < pins->count; i++) {
    const struct pin *pin = &pins->list[i];
    if (pin == chosen || agrees(pin, chosen))
      continue;
    char *place = place_of(pin);
    say(lines, scan_format("%s%s%s contradicts %s", place, pin->sglang && pin->kernel ? ", which pins kernel " : "",
                           pin->sglang && pin->kernel ? pin->kernel : "", other));
    free(place);
  }
  free(other);
}

/* "dsv3_router_gemm, bmm_fp8 and 3 more" */
static char *list_names(const struct catalog_symbol *const *symbols, size_t count) {
  char *text = scan_format("%s", "");
  for (size_t i = 0; i < count && i < 3; i++) {
    char *longer = scan_format("%s%s%s", text, i == 0 ? "" : i + 1 == count ? " and " : ", ", symbols[i]->id);
    free(text);
    text = longer;
  }
  if (count > 3) {
    char *longer = scan_format("%s and %zu more", text, count - 3);
    free(text);
    text = longer;
  }
  return text;
}

/* The tree asks for a kernel, and uses names that this kernel no longer has, or that only a newer one has lost. */
static void lost_names(const struct pins *pins, const struct pin *chosen, const struct scan *scans, size_t count,
                       struct lines *lines) {
  const struct catalog *catalog = pins->catalog;
  const struct catalog_symbol **lost = scan_alloc(NULL, (catalog->symbols_count + 1) * sizeof(*lost));
  size_t used = 0, lost_count = 0;
  for (unsigned i = 0; i < catalog->symbols_count; i++) {
    if (!live(scans, count, &catalog->symbols[i]))
      continue;
    used++;
    if (gone(&catalog->symbols[i], chosen->kernel))
      lost[lost_count++] = &catalog->symbols[i];
  }
  char *place = place_of(chosen), *names = list_names(lost, lost_count);
  const char *pinned = chosen->sglang ? chosen->kernel : NULL;
  if (lost_count)
    say(lines, scan_format("%s%s%s no longer has %s, used here", place, pinned ? ", which pins kernel " : "",
                           pinned ? pinned : "", names));
  else if (used && !scans[0].shards && catalog_version_compare(chosen->kernel, scans[0].options.kernel) < 0)
    say(lines, scan_format("%s%s%s still has all that is used here; kernel %s, checked against, has not", place,
                           pinned ? ", which pins kernel " : "", pinned ? pinned : "", scans[0].options.kernel));
  free(names);
  free(place);
  free(lost);
}

void pins_contradictions(const struct pins *pins, const struct scan *scans, size_t scans_count,
                         void (*say_line)(void *user, const char *line), void *user) {
  const struct pin *kernel = pins_kernel(pins), *sglang = pins_sglang(pins);
  struct lines lines = {say_line, user, 0};
  if (kernel) {
    lost_names(pins, kernel, scans, scans_count, &lines);
    disagreements(pins, kernel, &lines);
  } else if (sglang) {
    disagreements(pins, sglang, &lines);
  }
  if (lines.count > NAMED) {
    char *more = scan_format("%zu more contradictions of this kind", lines.count - NAMED);
    say_line(user, more);
    free(more);
  }
}
