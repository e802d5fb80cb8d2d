/* RECORD against the disk: files that are missing or others than were installed, files and folders that no distribution
 * owns. */
#include "scanner/doctor.h"
#include "scanner/file.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <nettle/base64.h>
#include <nettle/sha2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HASH_MOST ((off_t)64 << 20) /* of one file: a kernel library of half a GiB would take a second */
#define LARGEST_LIST ((size_t)1 << 20)
#define STALE_MOST 100000 /* files of a package folder that are looked at */

static bool ends(const char *text, const char *ending) {
  size_t length = strlen(text), size = strlen(ending);
  return length >= size && strcmp(text + length - size, ending) == 0;
}

static bool leads_out(const char *path) {
  for (const char *at = path; at; at = strchr(at, '/')) {
    at += *at == '/';
    if (strncmp(at, "..", 2) == 0 && (at[2] == '/' || !at[2]))
      return true;
  }
  return *path == '/';
}

/* Is the file's content the one of "sha256=...", base64 for URLs without the padding? A file that cannot be read is not
 * blamed. */
static bool same_hash(const char *path, const char *hash) {
  uint8_t buffer[1 << 16], digest[SHA256_DIGEST_SIZE];
  char text[BASE64_ENCODE_LENGTH(SHA256_DIGEST_SIZE) + BASE64_ENCODE_FINAL_LENGTH];
  struct sha256_ctx sha;
  struct base64_encode_ctx base64;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0)
    return true;
  sha256_init(&sha);
  ssize_t got;
  while ((got = read(fd, buffer, sizeof buffer)) > 0)
    sha256_update(&sha, (size_t)got, buffer);
  close(fd);
  if (got < 0)
    return true;
  sha256_digest(&sha, sizeof digest, digest);
  base64url_encode_init(&base64);
  size_t length = base64_encode_update(&base64, text, sizeof digest, digest);
  length += base64_encode_final(&base64, text + length);
  while (length && text[length - 1] == '=')
    length--;
  const char *want = hash + strlen("sha256=");
  return strlen(want) == length && memcmp(want, text, length) == 0;
}

struct found {
  struct doctor_list missing, broken, edited, unreadable;
};

/* site: the folder; placed: it has its usual place in a prefix, so that scripts in bin can be found. */
static void check_row(const char *site, bool placed, const struct dist_info_row *row, bool hashes,
                      struct doctor_package *package, struct found *found) {
  struct stat status;
  if (ends(row->path, ".pyc") || (!placed && leads_out(row->path)))
    return;
  char *path = *row->path == '/' ? scan_format("%s", row->path) : scan_format("%s/%s", site, row->path);
  bool library = ends(row->path, ".so") || strstr(row->path, ".so.") != NULL;
  bool wanted =
      hashes && !leads_out(row->path) && (library || ends(row->path, ".py")) && strncmp(row->hash, "sha256=", 7) == 0;
  struct doctor_list *list = NULL;
  if (stat(path, &status) != 0)
    list = errno == ENOENT || errno == ENOTDIR ? &found->missing : &found->unreadable;
  else if (!S_ISREG(status.st_mode))
    list = &found->unreadable;
  else if ((row->size >= 0 && row->size != status.st_size) ||
           (wanted && status.st_size <= HASH_MOST && !same_hash(path, row->hash)))
    list = library ? &found->broken : &found->edited;
  if (list)
    doctor_list_add(list, row->path);
  package->wrong += list != NULL;
  package->right += list == NULL;
  free(path);
}

static void say_list(struct doctor *doctor, enum doctor_level level, const char *id, struct doctor_list *list,
                     const struct doctor_package *package, const char *what) {
  size_t count = list->count;
  char *names = doctor_list_take(list);
  if (count)
    doctor_say(doctor, level, id,
               scan_format("pip install --force-reinstall --no-deps %s==%s", package->name, package->version),
               "%s %s: %zu file%s of its RECORD %s %s: %s", package->name, package->version, count,
               count == 1 ? "" : "s", count == 1 ? "is" : "are", what, names);
  free(names);
}

void doctor_check_record(struct doctor *doctor, struct doctor_package *package, bool hashes, bool loud) {
  struct found found = {0};
  const char *site = doctor->sites[package->site].path;
  size_t length = doctor->prefix ? strlen(doctor->prefix) : 0;
  bool placed = length && strncmp(site, doctor->prefix, length) == 0 && site[length] == '/';
  package->wrong = package->right = 0;
  for (size_t i = 0; i < package->record.rows_count; i++)
    check_row(site, placed, &package->record.rows[i], hashes, package, &found);
  if (loud) {
    if (!package->has_record && !doctor->sites[package->site].debian)
      doctor_say(doctor, DOCTOR_WARNING, "record-missing", NULL,
                 "%s %s has no RECORD that can be read: its files are not known, and pip cannot uninstall it",
                 package->name, package->version);
    say_list(doctor, DOCTOR_PROBLEM, "files-missing", &found.missing, package, "missing");
    say_list(doctor, DOCTOR_PROBLEM, "files-broken", &found.broken, package,
             "not what was installed (cut off, or of another release)");
    say_list(doctor, DOCTOR_PROBLEM, "files-unreadable", &found.unreadable, package, "not readable as a file");
    say_list(doctor, DOCTOR_WARNING, "files-edited", &found.edited, package,
             "not what was installed (edited, or of another release)");
  }
  free(doctor_list_take(&found.missing));
  free(doctor_list_take(&found.broken));
  free(doctor_list_take(&found.edited));
  free(doctor_list_take(&found.unreadable));
}

/* --- what nobody owns --------------------------------------------------------------------------------------------- */

struct texts {
  const char **list; /* sorted; not owned */
  size_t count, capacity;
};

static int by_text(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void add_text(struct texts *texts, const char *text) {
  if (texts->count == texts->capacity) {
    texts->capacity = texts->capacity ? 2 * texts->capacity : 256;
    texts->list = scan_alloc(texts->list, texts->capacity * sizeof *texts->list);
  }
  texts->list[texts->count++] = text;
}

static bool has_text(const struct texts *texts, const char *text) {
  return texts->count && bsearch(&text, texts->list, texts->count, sizeof *texts->list, by_text);
}

/* Files in the package's folder that no RECORD has: what an earlier release left. */
static void find_stale(struct doctor *doctor) {
  const struct doctor_package *kernel = doctor->kernel;
  const char *site = doctor->sites[kernel->site].path;
  struct texts owned = {0};
  struct doctor_list stale = {0};
  for (size_t i = 0; i < doctor->packages_count; i++)
    for (size_t k = 0; doctor->packages[i].owns && k < doctor->packages[i].record.rows_count; k++)
      add_text(&owned, doctor->packages[i].record.rows[k].path);
  if (owned.count)
    qsort(owned.list, owned.count, sizeof *owned.list, by_text);
  char *folder = scan_format("%s/%s", site, doctor->catalog->library.package), *roots[] = {folder, NULL};
  FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
  FTSENT *entry;
  size_t skip = strlen(site) + 1, seen = 0;
  struct texts found = {0};
  while (walk && seen < STALE_MOST && (entry = fts_read(walk))) {
    seen++;
    if (entry->fts_info == FTS_D && strcmp(entry->fts_name, "__pycache__") == 0)
      fts_set(walk, entry, FTS_SKIP);
    else if ((entry->fts_info == FTS_F || entry->fts_info == FTS_SL || entry->fts_info == FTS_SLNONE) &&
             !ends(entry->fts_name, ".pyc") && !has_text(&owned, entry->fts_path + skip))
      add_text(&found, scan_format("%s", entry->fts_path + skip));
  }
  if (walk)
    fts_close(walk);
  if (found.count)
    qsort(found.list, found.count, sizeof *found.list, by_text);
  for (size_t i = 0; i < found.count; i++) {
    doctor_list_add(&stale, found.list[i]);
    free((void *)(uintptr_t)found.list[i]);
  }
  char *names = doctor_list_take(&stale);
  if (found.count)
    doctor_say(doctor, DOCTOR_WARNING, "files-stale",
               scan_format("remove them, or uninstall %s, remove %s and install again", kernel->name, folder),
               "%zu file%s in %s belong%s to no distribution, left by another release: %s", found.count,
               found.count == 1 ? "" : "s", folder, found.count == 1 ? "s" : "", names);
  free(names);
  free(found.list);
  free(owned.list);
  free(folder);
}

static bool is_identifier(const char *name) {
  return strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == strlen(name) &&
         !(*name >= '0' && *name <= '9') && strcmp(name, "__pycache__") != 0 &&
         strcmp(name, "bin") != 0; /* of pip install --target */
}

/* Folders that can be imported. */
static void find_folders(struct doctor *doctor, const char *site, const struct texts *owned,
                         struct doctor_list *orphans, struct doctor_list *leftovers) {
  size_t count;
  char **names = doctor_names_in(site, "", &count);
  for (size_t i = 0; i < count; i++) {
    struct stat status;
    char *path = scan_format("%s/%s", site, names[i]);
    bool folder = stat(path, &status) == 0 && S_ISDIR(status.st_mode);
    if (*names[i] == '~')
      doctor_list_add(leftovers, names[i]);
    else if (folder && is_identifier(names[i]) && !has_text(owned, names[i]) &&
             strcmp(names[i], doctor->catalog->library.package) != 0)
      doctor_list_add(orphans, names[i]);
    free(path);
    free(names[i]);
  }
  free(names);
}

/* The first folder of each file that a distribution in this site has, and what old installers wrote. */
static void add_owned(const struct doctor *doctor, size_t site, struct texts *owned, struct arena *arena) {
  for (size_t i = 0; i < doctor->packages_count; i++) {
    const struct doctor_package *package = &doctor->packages[i];
    const char *last = "";
    for (size_t k = 0; package->site == site && k < package->record.rows_count; k++) {
      const char *path = package->record.rows[k].path;
      size_t length = strcspn(path, "/");
      if (!path[length] || (strncmp(path, last, length) == 0 && !last[length]))
        continue;
      last = arena_copy(arena, path, length);
      add_text(owned, last);
    }
  }
  size_t count;
  char **names = doctor_names_in(doctor->sites[site].path, ".egg-info", &count);
  for (size_t i = 0; i < count; i++) {
    char message[256], *path = scan_format("%s/%s/top_level.txt", doctor->sites[site].path, names[i]);
    size_t size;
    char *text = file_read(path, LARGEST_LIST, &size, message, sizeof message);
    for (const char *line = text; line && *line; line += strcspn(line, "\n"), line += *line == '\n')
      add_text(owned, arena_copy(arena, line, strcspn(line, "\r\n")));
    free(text);
    free(path);
    free(names[i]);
  }
  free(names);
  if (owned->count)
    qsort(owned->list, owned->count, sizeof *owned->list, by_text);
}

void doctor_find_orphans(struct doctor *doctor) {
  if (doctor->kernel && doctor->kernel->owns)
    find_stale(doctor);
  for (size_t i = 0; i < doctor->sites_count; i++) {
    const struct doctor_site *site = &doctor->sites[i];
    if (site->debian || strcmp(site->why, "PYTHONPATH") == 0 || strcmp(site->why, "a .pth file") == 0)
      continue;
    struct texts owned = {0};
    struct arena arena = {0};
    struct doctor_list orphans = {0}, leftovers = {0};
    add_owned(doctor, i, &owned, &arena);
    find_folders(doctor, site->path, &owned, &orphans, &leftovers);
    size_t count = orphans.count, left = leftovers.count;
    char *names = doctor_list_take(&orphans), *rests = doctor_list_take(&leftovers);
    if (count)
      doctor_say(
          doctor, DOCTOR_WARNING, "folders-orphan",
          scan_format("remove what is not yours: libraries that look whether a module is there take it for installed"),
          "%s has %zu folder%s that no RECORD owns and that can be imported: %s", site->path, count,
          count == 1 ? "" : "s", names);
    if (left)
      doctor_say(doctor, DOCTOR_WARNING, "folders-leftover",
                 scan_format("remove them: pip does not look at them again"), "%s has what an interrupted pip left: %s",
                 site->path, rests);
    free(names);
    free(rests);
    free(owned.list);
    arena_free(&arena);
  }
}
