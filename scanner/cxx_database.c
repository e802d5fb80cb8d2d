/* Finds and reads compile databases, and knows for each file how it is compiled. Written by tools for one machine at
 * one time, they may be stale, partial, from another checkout, or somebody's joke; so nothing here is ever needed. */
#include "scanner/cxx_database.h"

#include "scanner/cxx_facts.h"
#include "scanner/cxx_front.h"

#include <dirent.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define NAME "compile_commands.json"
#define LARGEST ((size_t)32 << 20)
#define MOST_DATABASES 8
#define MOST_WAYS 4096 /* different configurations of a tree */
#define MOST_FORCED 8
#define MOST_FOLDERS 256
#define MOST_INCLUDERS 64 /* sources that are asked for a header */

struct way {
  char *key; /* all that makes it different, as one text */
  struct cxx_config config;
};

struct entry {
  uint32_t file, way;
};

struct cxx_database {
  struct arena arena;
  struct scan *scan;
  struct way *ways;
  uint32_t ways_count, ways_capacity;
  uint32_t *slots;       /* hash table of the ways by key */
  struct entry *entries; /* sorted by file */
  size_t entries_count, entries_capacity;
  bool looking, there; /* only whether a file is there */
};

#define SLOTS (4 * MOST_WAYS)

/* --- paths -------------------------------------------------------------------------------------------------------- */

/* Where an absolute path stands below the root: "" is the root itself. NULL: not below it. `foreign` is the root's name
 * on the machine that wrote the database, when that is another one. */
static const char *below_root(const struct scan *scan, const char *path, const char *foreign) {
  const char *const roots[] = {foreign, scan->real_root};
  for (size_t i = 0; i < 2; i++) {
    size_t length = roots[i] ? strlen(roots[i]) : 0;
    if (!roots[i] || strncmp(path, roots[i], length) != 0)
      continue;
    if (path[length] == '\0')
      return "";
    if (path[length] == '/')
      return path + length + 1;
    if (length && roots[i][length - 1] == '/')
      return path + length;
  }
  return NULL;
}

/* The file of the tree that a path means. In a database from another checkout it is the one with the longest equal end,
 * and what is in front of that is the root there. */
static const struct source_file *tree_file(struct cxx_database *database, const char *path, const char **foreign) {
  const struct scan *scan = database->scan;
  *foreign = NULL;
  const char *below = below_root(scan, path, NULL);
  const struct source_file *file = below ? scan_file(scan, below) : NULL;
  if (file || below)
    return file;
  for (const char *at = strchr(path + 1, '/'); at && strchr(at + 1, '/'); at = strchr(at + 1, '/'))
    if ((file = scan_file(scan, at + 1)) != NULL) {
      *foreign = arena_copy(&database->arena, path, (size_t)(at - path));
      return file;
    }
  char real[4096]; /* a link to the tree */
  if (strlen(path) < sizeof real && realpath(path, real) && (below = below_root(scan, real, NULL)) != NULL)
    return scan_file(scan, below);
  return NULL;
}

/* --- ways --------------------------------------------------------------------------------------------------------- */

struct reading {
  struct cxx_database *database;
  const struct source_file *file;
  const char *foreign;
  const char *shown; /* the database's path */
};

static void add_entry(struct cxx_database *database, uint32_t file, uint32_t way) {
  if (database->entries_count == database->entries_capacity) {
    database->entries_capacity = database->entries_capacity ? 2 * database->entries_capacity : 256;
    database->entries = scan_alloc(database->entries, database->entries_capacity * sizeof *database->entries);
  }
  database->entries[database->entries_count++] = (struct entry){file, way};
}

static uint32_t *slot_of(const struct cxx_database *database, const char *key) {
  uint32_t at = cxx_hash((const uint8_t *)key, strlen(key)) % SLOTS;
  while (database->slots[at] && strcmp(database->ways[database->slots[at] - 1].key, key) != 0)
    at = (at + 1) % SLOTS;
  return &database->slots[at];
}

static void add_way(void *user, const struct cxx_flags *flags) {
  struct reading *reading = user;
  struct cxx_database *database = reading->database;
  struct scan *scan = database->scan;
  struct cxx_config config = {
      .text_size = flags->text_size, .cuda = flags->cuda, .cxx = flags->cxx, .database = reading->shown};
  const struct source_file *forced[MOST_FORCED];
  const char *folders[MOST_FOLDERS];
  char *key = scan_format("%d%d %s\n", flags->cuda, flags->cxx, flags->text ? flags->text : "");
  for (size_t i = 0; i < flags->forced.count && config.forced_count < MOST_FORCED; i++) {
    const char *below = below_root(scan, flags->forced.list[i], reading->foreign);
    const struct source_file *file = below ? scan_file(scan, below) : NULL;
    if (file && file->language == LANGUAGE_CXX && cxx_index_load(scan, file)) {
      forced[config.forced_count++] = file;
      char *longer = scan_format("%s%s\n", key, file->path);
      free(key);
      key = longer;
    }
  }
  for (size_t i = 0; i < flags->folders.count && config.folders_count < MOST_FOLDERS; i++) {
    const char *below = below_root(scan, flags->folders.list[i], reading->foreign);
    if (!below)
      continue;
    folders[config.folders_count] = arena_copy(&database->arena, below, strlen(below));
    char *longer = scan_format("%s%s/\n", key, folders[config.folders_count++]);
    free(key);
    key = longer;
  }
  uint32_t *slot = slot_of(database, key);
  if (*slot == 0 && database->ways_count < MOST_WAYS) {
    config.text = arena_copy(&database->arena, flags->text ? flags->text : "", flags->text_size);
    config.forced = arena_alloc(&database->arena, (config.forced_count + 1) * sizeof *config.forced);
    config.folders = arena_alloc(&database->arena, (config.folders_count + 1) * sizeof *config.folders);
    memcpy(config.forced, forced, config.forced_count * sizeof *forced);
    memcpy(config.folders, folders, config.folders_count * sizeof *folders);
    if (database->ways_count == database->ways_capacity) {
      database->ways_capacity = database->ways_capacity ? 2 * database->ways_capacity : 64;
      database->ways = scan_alloc(database->ways, database->ways_capacity * sizeof *database->ways);
    }
    database->ways[database->ways_count++] = (struct way){key, config};
    *slot = database->ways_count;
    key = NULL;
  }
  free(key);
  if (*slot)
    add_entry(database, (uint32_t)(reading->file - scan->files), *slot - 1);
}

/* --- databases ---------------------------------------------------------------------------------------------------- */

static void add_note(struct scan *scan, const char *path, char *reason) {
  scan->notes = scan_alloc(scan->notes, (scan->notes_count + 1) * sizeof *scan->notes);
  size_t at = scan->notes_count++;
  for (; at > 0 && strcmp(scan->notes[at - 1].path, path) > 0; at--)
    scan->notes[at] = scan->notes[at - 1];
  scan->notes[at] = (struct walk_note){.path = scan_format("%s", path), .reason = reason};
}

static void read_entry(struct cxx_database *database, const json_t *value, const char *folder, const char *shown) {
  const json_t *directory = json_object_get(value, "directory"), *command = json_object_get(value, "command"),
               *list = json_object_get(value, "arguments");
  const char *file = json_string_value(json_object_get(value, "file"));
  if (!file || !*file)
    return;
  struct arena arena = {0};
  const char *where = json_is_string(directory) ? json_string_value(directory) : "";
  where = cxx_absolute_path(&arena, folder, where);
  const char *path = cxx_absolute_path(&arena, where, file);
  struct reading reading = {.database = database, .shown = shown};
  reading.file = tree_file(database, path, &reading.foreign);
  if (reading.file && reading.file->language == LANGUAGE_CXX) {
    struct cxx_arguments arguments = {0};
    for (size_t i = 0; i < json_array_size(list); i++) {
      const char *text = json_string_value(json_array_get(list, i));
      if (text)
        cxx_arguments_add(&arguments, arena_copy(&arena, text, strlen(text)));
    }
    if (arguments.count == 0 && json_is_string(command))
      cxx_arguments_split(&arena, &arguments, json_string_value(command), json_string_length(command));
    cxx_commands_visit(&arena, &arguments, where, path, add_way, &reading);
    free(arguments.list);
  }
  arena_free(&arena);
}

/* The bytes of a regular file of bearable size, or NULL with the reason. */
static char *read_bytes(const char *path, size_t *size, const char **why) {
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  struct stat status;
  *why = NULL;
  if (fd < 0)
    return NULL;
  char *bytes = NULL;
  if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
    *why = "compile database not used: it is no regular file";
  } else if (status.st_size > (off_t)LARGEST) {
    *why = "compile database not used: it is larger than 32 MiB";
  } else {
    bytes = scan_alloc(NULL, (size_t)status.st_size + 1);
    ssize_t got;
    for (*size = 0; *size < (size_t)status.st_size; *size += (size_t)got)
      if ((got = read(fd, bytes + *size, (size_t)status.st_size - *size)) <= 0)
        break;
  }
  close(fd);
  return bytes;
}

/* Reads folder/compile_commands.json when there is one. `shown`: that path relative to the root. */
static void read_database(struct cxx_database *database, const char *folder, const char *shown) {
  char *path = scan_format("%s/" NAME, folder);
  const char *why;
  size_t size = 0;
  if (database->looking) {
    database->there = database->there || access(path, F_OK) == 0;
    free(path);
    return;
  }
  char *bytes = read_bytes(path, &size, &why);
  free(path);
  if (why)
    add_note(database->scan, shown, scan_format("%s", why));
  if (!bytes)
    return;
  json_error_t error;
  json_t *root = json_loadb(bytes, size, 0, &error);
  free(bytes);
  if (!json_is_array(root)) {
    add_note(database->scan, shown,
             root ? scan_format("compile database not used: it is no JSON array")
                  : scan_format("compile database not used: line %d: %s", error.line, error.text));
    json_decref(root);
    return;
  }
  shown = arena_copy(&database->arena, shown, strlen(shown));
  for (size_t i = 0; i < json_array_size(root); i++)
    read_entry(database, json_array_get(root, i), folder, shown);
  json_decref(root);
}

static int compare_names(const void *left, const void *right) {
  return strcmp(*(char *const *)left, *(char *const *)right);
}

/* In the folder itself, and in its folders that builds go to. `up`: "../" for each folder above the root. */
static void look_in(struct cxx_database *database, const char *folder, const char *up) {
  static const char *const starts[] = {"build", "Build", "cmake-build", "out", "_build"};
  char *names[MOST_DATABASES];
  size_t count = 0;
  char *shown = scan_format("%s" NAME, up);
  read_database(database, folder, shown);
  free(shown);
  DIR *stream = opendir(folder);
  for (struct dirent *entry; stream && (entry = readdir(stream)) != NULL && count < MOST_DATABASES;)
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
      if (strncmp(entry->d_name, starts[i], strlen(starts[i])) == 0) {
        char *path = scan_format("%s/%s/" NAME, folder, entry->d_name);
        if (access(path, F_OK) == 0 && count < MOST_DATABASES)
          names[count++] = scan_format("%s", entry->d_name);
        free(path);
        break;
      }
  if (stream)
    closedir(stream);
  if (count)
    qsort(names, count, sizeof *names, compare_names);
  for (size_t i = 0; i < count; i++) {
    char *path = scan_format("%s/%s", folder, names[i]);
    shown = scan_format("%s%s/" NAME, up, names[i]);
    read_database(database, path, shown);
    free(shown);
    free(path);
    free(names[i]);
  }
}

static bool is_repository(const char *folder) {
  char *git = scan_format("%s/.git", folder);
  bool found = access(git, F_OK) == 0;
  free(git);
  return found;
}

static int compare_entries(const void *left, const void *right) {
  const struct entry *a = left, *b = right;
  if (a->file != b->file)
    return a->file < b->file ? -1 : 1;
  return (a->way > b->way) - (a->way < b->way);
}

static void look_everywhere(struct cxx_database *database) {
  const struct scan *scan = database->scan;
  look_in(database, scan->real_root, "");
  /* A part of a repository: as far up as that goes. */
  char *folder = scan_format("%s", scan->real_root), *up = scan_format("%s", "");
  unsigned steps = 0;
  while (!is_repository(folder) && steps < 64 && strrchr(folder, '/') != folder) {
    *strrchr(folder, '/') = '\0';
    steps++;
  }
  bool inside = is_repository(folder);
  strcpy(folder, scan->real_root);
  for (unsigned i = 0; inside && i < steps && database->entries_count == 0 && !database->there; i++) {
    char *higher = scan_format("%s../", up);
    free(up);
    up = higher;
    *strrchr(folder, '/') = '\0';
    look_in(database, folder, up);
  }
  free(folder);
  free(up);
}

bool cxx_database_there(struct scan *scan) {
  struct cxx_database database = {.scan = scan, .looking = true};
  look_everywhere(&database);
  return database.there;
}

struct cxx_database *cxx_database_open(struct scan *scan) {
  if (!scan->real_root)
    return NULL; /* a tree that is in memory only */
  struct cxx_database *database = scan_alloc(NULL, sizeof *database);
  *database = (struct cxx_database){.scan = scan};
  database->slots = scan_alloc(NULL, SLOTS * sizeof *database->slots);
  memset(database->slots, 0, SLOTS * sizeof *database->slots);
  look_everywhere(database);
  if (database->entries_count == 0) {
    cxx_database_free(database);
    return NULL;
  }
  qsort(database->entries, database->entries_count, sizeof *database->entries, compare_entries);
  return database;
}

void cxx_database_free(struct cxx_database *database) {
  if (!database)
    return;
  for (uint32_t i = 0; i < database->ways_count; i++)
    free(database->ways[i].key);
  free(database->ways);
  free(database->slots);
  free(database->entries);
  arena_free(&database->arena);
  free(database);
}

/* --- questions ---------------------------------------------------------------------------------------------------- */

struct asking {
  const struct scan *scan;
  const struct cxx_database *database;
  const struct cxx_config **list;
  unsigned count;
  const struct source_file *seen[MOST_INCLUDERS]; /* the file, and what may include it */
  unsigned seen_count;
};

/* The ways of a file: from *first on. Returns how many. */
static size_t find_ways(const struct scan *scan, const struct cxx_database *database, const struct source_file *file,
                        const struct entry **first) {
  uint32_t number = (uint32_t)(file - scan->files);
  size_t low = 0, high = database->entries_count, count = 0;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (database->entries[middle].file < number)
      low = middle + 1;
    else
      high = middle;
  }
  *first = &database->entries[low];
  while (low + count < database->entries_count && (*first)[count].file == number)
    count++;
  return count;
}

uint64_t cxx_database_ways(const struct scan *scan, const struct cxx_database *database,
                           const struct source_file *file) {
  const struct entry *first;
  size_t count = database ? find_ways(scan, database, file, &first) : 0;
  uint64_t hash = 0;
  for (size_t i = 0; i < count; i++) {
    const struct way *way = &database->ways[first[i].way];
    hash = XXH3_64bits_withSeed(way->key, strlen(way->key), hash + 1);
    hash = XXH3_64bits_withSeed(way->config.database, strlen(way->config.database), hash);
  }
  return hash;
}

static void add_configs(struct asking *asking, const struct source_file *file) {
  const struct entry *first;
  cxx_asked(CXX_FACT_WAYS, file->path, strlen(file->path));
  size_t count = find_ways(asking->scan, asking->database, file, &first);
  for (size_t way = 0; way < count; way++) {
    const struct cxx_config *config = &asking->database->ways[first[way].way].config;
    bool known = false;
    for (unsigned i = 0; i < asking->count; i++)
      known = known || asking->list[i] == config;
    if (!known && asking->count < CXX_MOST_CONFIGS)
      asking->list[asking->count++] = config;
  }
}

static bool see(void *user, const struct source_file *file) {
  struct asking *asking = user;
  for (unsigned i = 0; i < asking->seen_count; i++)
    if (asking->seen[i] == file)
      return true;
  if (asking->seen_count < MOST_INCLUDERS)
    asking->seen[asking->seen_count++] = file;
  return asking->seen_count < MOST_INCLUDERS;
}

unsigned cxx_database_configs(const struct scan *scan, const struct cxx_database *database,
                              const struct source_file *file, const struct cxx_config **list) {
  struct asking asking = {.scan = scan, .database = database, .list = list};
  if (!database) {
    cxx_asked(CXX_FACT_WAYS, "", 0);
    return 0;
  }
  see(&asking, file);
  for (unsigned i = 0; i < asking.seen_count && asking.count < CXX_MOST_CONFIGS; i++) {
    add_configs(&asking, asking.seen[i]);
    if (i > 0 || asking.count == 0)
      cxx_index_includers(scan, asking.seen[i], see, &asking);
  }
  return asking.count;
}

const struct source_file *cxx_config_header(const struct scan *scan, const struct cxx_config *config,
                                            const uint8_t *text, size_t length) {
  for (unsigned i = 0; i < config->folders_count; i++) {
    const char *folder = config->folders[i];
    char *path = scan_format("%s%s%.*s", folder, *folder ? "/" : "", (int)length, (const char *)text);
    struct arena arena = {0};
    const char *whole = cxx_absolute_path(&arena, "", path) + 1, *slash = strrchr(whole, '/');
    const struct source_file *file = scan_file(scan, whole);
    cxx_asked(CXX_FACT_HEADER, slash ? slash + 1 : whole, strlen(slash ? slash + 1 : whole));
    arena_free(&arena);
    free(path);
    if (file && file->language == LANGUAGE_CXX)
      return file;
  }
  return NULL;
}
