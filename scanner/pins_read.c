/* The pins of one file. Every format that names a requirement does it in one of a few ways, so each file is read line
 * by line and only the text around a distribution's name is understood: no TOML, YAML or shell parser is needed, and a
 * file with a fault elsewhere still has its pins.
 *
 *   name==1.2               a line of a requirements file, in quotes in TOML and setup.py, a word behind `pip install`
 *   name = "==1.2"          a key of a TOML table (poetry, Pipfile); also name = { version = "==1.2" }
 *   name = "name"           a package of a lock file; version = "1.2" follows it
 *   name-1.2-...whl         the file of a wheel or source archive, behind `pip install` or `name @`
 *
 * A version may be a variable ($X, ${X}, {X}) that the same file sets. */
#include "scanner/pins.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

struct reader {
  struct pins *pins;
  enum pins_kind kind;
  const char *shown;
  const char *bytes;
  size_t size;
  void (*include)(void *user, const char *path);
  void *user;
  uint32_t line;
  bool installing; /* in a script: the command goes on in the next line */
  /* Of a lock file: the package whose version comes next. */
  const char *locked;
  bool locked_sglang;
};

/* --- names -------------------------------------------------------------------------------------------------------- */

static bool separator(char c) {
  return c == '-' || c == '_' || c == '.';
}

static bool alphanumeric(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static const char *skip(const char *at, const char *end, const char *set) {
  while (at < end && *at && strchr(set, *at))
    at++;
  return at;
}

/* Length of the name at `at`, with -, _ and . alike and case ignored, as pip does; 0 when something else stands there.
 */
static size_t name_length(const char *at, const char *end, const char *name) {
  const char *start = at;
  while (*name) {
    if (at == end)
      return 0;
    if (separator(*name)) {
      if (!separator(*at))
        return 0;
      while (at < end && separator(*at))
        at++;
      name++;
    } else {
      char c = *at >= 'A' && *at <= 'Z' ? (char)(*at | 0x20) : *at;
      if (c != *name)
        return 0;
      at++;
      name++;
    }
  }
  return (size_t)(at - start);
}

/* The distribution whose name starts at `at` and is not a part of a longer one; NULL when none is. */
static const char *distribution_at(const struct reader *reader, const char *at, const char *end, size_t *length,
                                   bool *sglang) {
  const struct catalog_library *library = &reader->pins->catalog->library;
  for (unsigned i = 0; i <= library->distributions_count; i++) {
    *sglang = i == library->distributions_count;
    if (*sglang && library->sglang_releases_count == 0)
      break;
    const char *name = *sglang ? "sglang" : library->distributions[i];
    *length = name_length(at, end, name);
    const char *next = at + *length;
    if (*length == 0 || (next < end && alphanumeric(*next)))
      continue;
    bool longer = next + 1 < end && separator(*next) && alphanumeric(next[1]);
    bool archive = longer && *next == '-' && next[1] >= '0' && next[1] <= '9';
    if (!longer || archive)
      return name;
  }
  return NULL;
}

/* --- versions ----------------------------------------------------------------------------------------------------- */

static bool version_byte(char c) {
  return alphanumeric(c) || separator(c) || c == '+' || c == '*';
}

/* What the file sets the variable to: NAME=1.2, NAME: "1.2", NAME = '1.2'; NULL when it does not. */
static char *variable(const struct reader *reader, const char *name, size_t length) {
  const char *at = reader->bytes, *end = at + reader->size;
  while (length && (at = memmem(at, (size_t)(end - at), name, length))) {
    bool word = at == reader->bytes || !(alphanumeric(at[-1]) || at[-1] == '_');
    at += length;
    const char *value = at;
    while (value < end && *value == ' ')
      value++;
    if (!word || value == end || (*value != '=' && *value != ':'))
      continue;
    value++;
    while (value < end && (*value == ' ' || *value == '"' || *value == '\'' || *value == '='))
      value++;
    const char *stop = value;
    while (stop < end && version_byte(*stop))
      stop++;
    char *version = scan_format("%.*s", (int)(stop - value), value);
    if (catalog_version_valid(version))
      return version;
    free(version);
  }
  return NULL;
}

/* Copies a version, with a variable resolved; returns what stands behind it. */
static const char *take_version(const struct reader *reader, const char *at, const char *end, char **version) {
  const char *start = at;
  if (at < end && (*at == '$' || *at == '{')) {
    while (at < end && (*at == '$' || *at == '{'))
      at++;
    start = at;
    while (at < end && (alphanumeric(*at) || *at == '_'))
      at++;
    *version = variable(reader, start, (size_t)(at - start));
    return at < end && *at == '}' ? at + 1 : at;
  }
  while (at < end && version_byte(*at))
    at++;
  *version = scan_format("%.*s", (int)(at - start), start);
  return at;
}

/* The clauses behind a name: "==1.2", ">= 1, < 2". NULL when there are none. */
static char *take_specifier(const struct reader *reader, const char *at, const char *end) {
  char *all = scan_format("%s", "");
  for (;;) {
    while (at < end && (*at == ' ' || *at == ',' || *at == '('))
      at++;
    const char *operator_start = at;
    while (at < end && strchr("=<>!~^", *at) && *at)
      at++;
    if (at == operator_start)
      break;
    int operator_length = (int)(at - operator_start);
    while (at < end && *at == ' ')
      at++;
    char *version;
    at = take_version(reader, at, end, &version);
    if (version) {
      char *longer = scan_format("%s%s%.*s%s", all, *all ? "," : "", operator_length, operator_start, version);
      free(all);
      all = longer;
    }
    free(version);
    while (at < end && *at == ' ')
      at++;
    if (at == end || *at != ',')
      break;
  }
  if (*all)
    return all;
  free(all);
  return NULL;
}

/* The version in the rest of an archive's name: "0.3.21+cu124-cp310-abi3-linux.whl". */
static char *archive_version(const struct reader *reader, const char *at, const char *end) {
  const char *stop = at;
  while (stop < end && *stop != '-' && (version_byte(*stop) || strchr("${}", *stop)))
    stop++;
  char *version;
  take_version(reader, at, stop, &version);
  char *ending = version ? strstr(version, ".tar") : NULL;
  if (ending)
    *ending = '\0';
  char *specifier = version && catalog_version_valid(version) ? scan_format("==%s", version) : NULL;
  free(version);
  return specifier;
}

/* --- one place ---------------------------------------------------------------------------------------------------- */

static void add(const struct reader *reader, const char *name, bool sglang, char *specifier) {
  if (specifier)
    pins_add(reader->pins, reader->kind, reader->shown, reader->line, name, sglang, specifier);
  free(specifier);
}

/* What stands behind the key in TOML or JSON: = "spec", = { version = "spec" }, : "spec". */
static char *table_value(const struct reader *reader, const char *at, const char *end) {
  at = skip(at, end, " :");
  if (at < end && *at == '=')
    at++;
  at = skip(at, end, " \"'");
  if (at < end && *at == '{') {
    const char *version = memmem(at, (size_t)(end - at), "version", 7);
    return version ? table_value(reader, version + 7, end) : NULL;
  }
  if (at < end && *at >= '0' && *at <= '9') {
    char *version, *specifier;
    take_version(reader, at, end, &version);
    specifier = scan_format("==%s", version);
    free(version);
    return specifier;
  }
  return take_specifier(reader, at, end);
}

/* A requirement that starts with the name at `at`. Returns what is behind the name. */
static const char *requirement(const struct reader *reader, const char *at, const char *end) {
  size_t length;
  bool sglang;
  const char *name = distribution_at(reader, at, end, &length, &sglang);
  if (!name)
    return at + 1;
  at += length;
  const char *behind = at;
  if (at < end && *at == '-') {
    add(reader, name, sglang, archive_version(reader, at + 1, end));
    return behind;
  }
  at = skip(at, end, " ");
  if (at < end && *at == '[') { /* extras */
    const char *close = memchr(at, ']', (size_t)(end - at));
    at = close ? close + 1 : end;
  }
  at = skip(at, end, " ");
  if (at < end && *at == '@') /* name @ https://host/name-1.2-...whl: the archive follows and counts */
    return behind;
  const char *equals = skip(at, end, " \"'");
  if (reader->kind == PINS_TOML && equals < end && *equals == '=' && !(equals + 1 < end && equals[1] == '='))
    add(reader, name, sglang, table_value(reader, equals, end));
  else
    add(reader, name, sglang, take_specifier(reader, at, end));
  return behind;
}

/* Every place of a line where a word starts. */
static void requirements_in(const struct reader *reader, const char *at, const char *end) {
  for (const char *start = at; at < end;) {
    bool word = alphanumeric(*at) && (at == start || !(alphanumeric(at[-1]) || separator(at[-1])));
    at = word ? requirement(reader, at, end) : at + 1;
  }
}

/* --- lines -------------------------------------------------------------------------------------------------------- */

/* Where the comment of a line begins; in quotes, and behind a letter (a URL's fragment), # begins none. */
static const char *without_comment(const char *at, const char *end) {
  char quote = 0;
  for (const char *start = at; at < end; at++) {
    if (quote)
      quote = *at == quote ? 0 : quote;
    else if (*at == '"' || *at == '\'')
      quote = *at;
    else if (*at == '#' && (at == start || at[-1] == ' ' || at[-1] == '\t' || at[-1] == ','))
      return at;
  }
  return end;
}

static bool starts(const char *at, const char *end, const char *text) {
  size_t length = strlen(text);
  return (size_t)(end - at) >= length && memcmp(at, text, length) == 0;
}

/* -r other.txt, --requirement=other.txt, -c limits.txt */
static bool include_line(const struct reader *reader, const char *at, const char *end) {
  static const char *const options[] = {"-r", "-c", "--requirement", "--constraint"};
  for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
    if (!starts(at, end, options[i]))
      continue;
    const char *path = at + strlen(options[i]);
    if (i > 1 && path < end && *path != ' ' && *path != '=')
      continue;
    while (path < end && (*path == ' ' || *path == '=' || *path == '"'))
      path++;
    while (end > path && (end[-1] == ' ' || end[-1] == '"'))
      end--;
    char *name = scan_format("%.*s", (int)(end - path), path);
    if (*name && reader->include)
      reader->include(reader->user, name);
    free(name);
    return true;
  }
  return false;
}

/* `name = "sglang-kernel"`, then `version = "0.4.5"`; in JSON `"sglang-kernel": {`, then `"version": "==0.4.5"`. */
static void lock_line(struct reader *reader, const char *at, const char *end) {
  bool json = reader->kind == PINS_JSON_LOCK;
  size_t length;
  bool sglang;
  if (starts(at, end, json ? "\"version\"" : "version")) {
    if (reader->locked)
      add(reader, reader->locked, reader->locked_sglang, table_value(reader, at + (json ? 9 : 7), end));
    reader->locked = NULL;
    return;
  }
  if (json ? *at == '"' : starts(at, end, "name")) {
    at = json ? at + 1 : skip(at + 4, end, " =\"");
    const char *name = distribution_at(reader, at, end, &length, &sglang);
    if (name && at + length < end && at[length] == '"') {
      reader->locked = name;
      reader->locked_sglang = sglang;
    } else if (!json) {
      reader->locked = NULL;
    }
  } else if (*at == '[' || *at == '}') {
    reader->locked = NULL;
  }
}

static bool has_word(const char *at, const char *end, const char *word) {
  return memmem(at, (size_t)(end - at), word, strlen(word)) != NULL;
}

static void read_line(struct reader *reader, const char *at, const char *end) {
  while (at < end && (*at == ' ' || *at == '\t'))
    at++;
  while (end > at && (end[-1] == '\r' || end[-1] == ' ' || end[-1] == '\t'))
    end--;
  if (at == end)
    return;
  switch (reader->kind) {
  case PINS_LOCK:
  case PINS_JSON_LOCK:
    lock_line(reader, at, end);
    return;
  case PINS_METADATA:
    if (starts(at, end, "Requires-Dist:"))
      requirements_in(reader, at + 14, end);
    return;
  case PINS_SCRIPT: {
    end = without_comment(at, end);
    if (at == end)
      return; /* a comment does not end the command around it */
    bool goes_on = end > at && end[-1] == '\\';
    reader->installing = reader->installing || has_word(at, end, "install") || has_word(at, end, "uv add");
    if (reader->installing)
      requirements_in(reader, at, end);
    reader->installing = reader->installing && goes_on;
    return;
  }
  case PINS_CONFIG:
    if (*at == ';')
      return;
    break;
  case PINS_ENVIRONMENT:
    if (*at == '-')
      at++;
    break;
  case PINS_REQUIREMENTS:
    if (include_line(reader, at, without_comment(at, end)))
      return;
    break;
  default:
    break;
  }
  requirements_in(reader, at, without_comment(at, end));
}

void pins_read(struct pins *pins, enum pins_kind kind, const char *shown, const uint8_t *bytes, size_t size,
               void (*include)(void *user, const char *path), void *user) {
  struct reader reader = {pins, kind, shown, (const char *)bytes, size, include, user, 0, false, NULL, false};
  const char *at = reader.bytes, *end = at + size;
  while (at < end) {
    const char *newline = memchr(at, '\n', (size_t)(end - at));
    const char *stop = newline ? newline : end;
    reader.line++;
    read_line(&reader, at, stop);
    at = newline ? newline + 1 : end;
  }
}

/* --- kinds -------------------------------------------------------------------------------------------------------- */

#define PATTERN(text) text, sizeof text - 1

enum pins_kind pins_kind(const char *path) {
  static const struct {
    const char *pattern;
    size_t length;
    enum pins_kind kind;
    bool whole; /* the pattern is one of the whole path */
  } kinds[] = {
      {PATTERN("pyproject*.toml"), PINS_TOML, false},
      {PATTERN("Pipfile"), PINS_TOML, false},
      {PATTERN("setup.py"), PINS_PYTHON, false},
      {PATTERN("setup.cfg"), PINS_CONFIG, false},
      {PATTERN("*requirements*.txt"), PINS_REQUIREMENTS, false},
      {PATTERN("*requirements*.in"), PINS_REQUIREMENTS, false},
      {PATTERN("*constraints*.txt"), PINS_REQUIREMENTS, false},
      {PATTERN("*requirements/*.txt"), PINS_REQUIREMENTS, true},
      {PATTERN("*requirements/*.in"), PINS_REQUIREMENTS, true},
      {PATTERN("env*.yml"), PINS_ENVIRONMENT, false},
      {PATTERN("env*.yaml"), PINS_ENVIRONMENT, false},
      {PATTERN("conda*.yml"), PINS_ENVIRONMENT, false},
      {PATTERN("conda*.yaml"), PINS_ENVIRONMENT, false},
      {PATTERN("uv.lock"), PINS_LOCK, false},
      {PATTERN("poetry.lock"), PINS_LOCK, false},
      {PATTERN("pdm.lock"), PINS_LOCK, false},
      {PATTERN("pylock*.toml"), PINS_LOCK, false},
      {PATTERN("Pipfile.lock"), PINS_JSON_LOCK, false},
      {PATTERN("*Dockerfile*"), PINS_SCRIPT, false},
      {PATTERN("*.dockerfile"), PINS_SCRIPT, false},
      {PATTERN("*Containerfile*"), PINS_SCRIPT, false},
      {PATTERN("*.sh"), PINS_SCRIPT, false},
      {PATTERN(".gitlab-ci.yml"), PINS_SCRIPT, false},
      {PATTERN("azure-pipelines.yml"), PINS_SCRIPT, false},
      {PATTERN("Jenkinsfile"), PINS_SCRIPT, false},
      {PATTERN("*.github/*.yml"), PINS_SCRIPT, true},
      {PATTERN("*.github/*.yaml"), PINS_SCRIPT, true},
      {PATTERN("*.circleci/*.yml"), PINS_SCRIPT, true},
      {PATTERN("*.buildkite/*.yaml"), PINS_SCRIPT, true},
      {PATTERN("*.buildkite/*.yml"), PINS_SCRIPT, true},
      {PATTERN("PKG-INFO"), PINS_METADATA, false},
      {PATTERN("METADATA"), PINS_METADATA, false},
  };
  const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
  size_t size = strlen(path);
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds && size; i++) {
    const char *pattern = kinds[i].pattern, *text = kinds[i].whole ? path : name;
    char first = pattern[0], last = pattern[kinds[i].length - 1];
    /* fnmatch is slow, and a tree has many files. */
    if ((first == '*' || first == text[0]) && (last == '*' || last == path[size - 1]) && fnmatch(pattern, text, 0) == 0)
      return kinds[i].kind;
  }
  return PINS_NONE;
}
