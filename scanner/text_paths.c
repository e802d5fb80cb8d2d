/* Paths of deleted files that do not stand there as a whole: the folder is in a variable of the same text, or the
 * commands run in another folder. */
#include "scanner/text.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* What is further away says nothing about a path. */
#define REACH 4000
#define DEPTH_MAX 3

static bool blank(uint8_t c) {
  return c == ' ' || c == '\t';
}

static bool text_at(const struct text_view *view, size_t at, const char *text) {
  size_t length = strlen(text);
  return at + length <= view->size && memcmp(view->bytes + at, text, length) == 0;
}

/* Adds the parts of the path whose last byte is in front of `end`. Returns how many. */
static size_t add_folder(const struct text_view *view, size_t end, struct text_entry *entry,
                         struct text_entry *folder) {
  const uint8_t *bytes = view->bytes;
  while (end > 0 &&
         (bytes[end - 1] == '/' || bytes[end - 1] == '"' || bytes[end - 1] == '\'' || bytes[end - 1] == ')' ||
          bytes[end - 1] == ';' || bytes[end - 1] == ',' || blank(bytes[end - 1]) || bytes[end - 1] == '\r'))
    end--;
  size_t first = end;
  while (first > 0 && text_part_byte(bytes[first - 1]))
    first--;
  if (first == end)
    return 0;
  text_entry_read(bytes, first, end - first, folder);
  size_t added = 0;
  for (; added < folder->count && entry->count < TEXT_PARTS; added++)
    entry->parts[entry->count++] = folder->parts[added];
  return added;
}

/* --- variables ---------------------------------------------------------------------------------------------------- */

/* The name in front of the path: ${NAME}/x, $(NAME)/x, $NAME/x, {NAME}/x, NAME / "x", NAME + "/x", join(NAME, "x"). */
static bool variable_before(const struct text_view *view, size_t start, size_t *name, size_t *length) {
  const uint8_t *bytes = view->bytes;
  size_t end = start;
  if (end > 0 && (bytes[end - 1] == '"' || bytes[end - 1] == '\'')) {
    end--;
    size_t before = end;
    while (end > 0 && (blank(bytes[end - 1]) || strchr("/+,\n", bytes[end - 1])))
      end--;
    if (end == before)
      return false;
  } else {
    while (end > 0 && bytes[end - 1] == '/')
      end--;
    if (end > 0 && (bytes[end - 1] == '}' || bytes[end - 1] == ')'))
      end--;
    else if (bytes[end] != '/')
      return false;
  }
  size_t first = end;
  while (first > 0 && text_word_byte(bytes[first - 1]))
    first--;
  *name = first;
  *length = end - first;
  return *length > 0 && !(bytes[first] >= '0' && bytes[first] <= '9');
}

/* Does the text at `at`, behind the name, give it a value? *value is where that starts. */
static bool is_definition(const struct text_view *view, size_t name, size_t at, size_t *value) {
  const uint8_t *bytes = view->bytes;
  size_t before = name;
  while (before > 0 && blank(bytes[before - 1]))
    before--;
  if (before >= 4 && memcmp(bytes + before - 4, "set(", 4) == 0) { /* CMake */
    *value = at;
    return at < view->size && blank(bytes[at]);
  }
  while (at < view->size && (blank(bytes[at]) || bytes[at] == ':' || bytes[at] == '?'))
    at++;
  *value = at + 1;
  return at + 1 < view->size && bytes[at] == '=' && bytes[at + 1] != '=';
}

static bool add_variable(const struct text_view *view, struct text_entry *entry, size_t start, unsigned depth) {
  size_t name, length, value;
  if (depth == DEPTH_MAX || !variable_before(view, start, &name, &length))
    return false;
  const uint8_t *bytes = view->bytes;
  for (size_t at = 0; at < view->size;) {
    const uint8_t *found = memmem(bytes + at, view->size - at, bytes + name, length);
    if (!found)
      return false;
    at = (size_t)(found - bytes);
    size_t end = at + length;
    bool whole = (at == 0 || !text_word_byte(bytes[at - 1])) && (end == view->size || !text_word_byte(bytes[end]));
    if (whole && at != name && is_definition(view, at, end, &value)) {
      size_t stop = value;
      while (stop < view->size && bytes[stop] != '\n' && bytes[stop] != '#')
        stop++;
      while (stop > value && (blank(bytes[stop - 1]) || strchr("\"'\r;", bytes[stop - 1])))
        stop--;
      size_t inner = stop;
      while (inner > value && (bytes[inner - 1] == ')' || bytes[inner - 1] == '}' || text_word_byte(bytes[inner - 1])))
        inner--;
      if (inner > value + 1 && bytes[inner - 2] == '$' && strchr("({", bytes[inner - 1]))
        return add_variable(view, entry, stop, depth + 1); /* another one, and no more */
      struct text_entry folder;
      if (!add_folder(view, stop, entry, &folder))
        return false;
      add_variable(view, entry, folder.start, depth + 1);
      return true;
    }
    at = end;
  }
  return false;
}

/* --- the folder of commands --------------------------------------------------------------------------------------- */

struct mover {
  const char *word;
  bool stays; /* for the rest of the file, not of the command */
};

static const struct mover movers[] = {{"cd ", false},     {"pushd ", true},     {"popd", true},
                                      {"WORKDIR ", true}, {"changedir ", true}, {"working-directory: ", true},
                                      {"cwd: ", true},    {"dir(", false}};

static bool starts_item(const struct text_view *view, size_t line) {
  while (line < view->size && blank(view->bytes[line]))
    line++;
  return text_at(view, line, "- ");
}

/* Is a shell script read from top to bottom? In makefiles and container files each command starts anew. */
static bool runs_on(const struct text_view *view) {
  const char *slash = strrchr(view->path, '/'), *base = slash ? slash + 1 : view->path;
  return strncasecmp(base, "makefile", 8) != 0 && strncasecmp(base, "gnumakefile", 11) != 0 && !strstr(base, ".mk") &&
         !strstr(base, "ockerfile") && !strstr(base, "ontainerfile");
}

/* The folder word behind "cd ", up to the end of the word. 0: none, or one that cannot be known. */
static size_t folder_end(const struct text_view *view, size_t at) {
  while (at < view->size && (blank(view->bytes[at]) || view->bytes[at] == '=' || view->bytes[at] == '"' ||
                             view->bytes[at] == '\'' || view->bytes[at] == '('))
    at++;
  size_t end = at;
  while (end < view->size && view->bytes[end] > ' ' && !strchr(";&|)\"'", view->bytes[end]))
    end++;
  return end > at && !text_at(view, at, "..") && !text_at(view, at, "- ") ? end : 0;
}

/* The nearest change of the folder before the path, in the same command, script or step. */
static bool add_working_folder(const struct text_view *view, struct text_entry *entry) {
  const uint8_t *bytes = view->bytes;
  bool far = false, goes_on = runs_on(view);
  for (size_t at = entry->start; at > 0 && entry->start - at < REACH; at--) {
    uint8_t c = bytes[at - 1];
    if (c == '\n') {
      bool continued = at > 1 && (bytes[at - 2] == '\\' || (at > 2 && bytes[at - 2] == '\r' && bytes[at - 3] == '\\'));
      far = far || !continued;
      if (view->kind == TEXT_YAML && starts_item(view, at))
        return false; /* the step begins there; what is in front is another one */
      continue;
    }
    if (view->classes[at - 1] == CLASS_COMMENT ||
        (at > 1 && !blank(bytes[at - 2]) && !strchr("\n;&|('\"", bytes[at - 2])))
      continue;
    for (size_t i = 0; i < sizeof movers / sizeof *movers; i++) {
      size_t end = at - 1 + strlen(movers[i].word);
      if (!text_at(view, at - 1, movers[i].word) || end >= entry->start || (far && !goes_on && !movers[i].stays))
        continue;
      struct text_entry folder;
      size_t stop = bytes[at - 1] == 'p' && bytes[at] == 'o' ? 0 : folder_end(view, end); /* popd: unknown */
      return stop && stop < entry->start && add_folder(view, stop, entry, &folder) > 0;
    }
    if (view->kind == TEXT_YAML && starts_item(view, at - 1) && (at < 2 || bytes[at - 2] == '\n'))
      return false;
  }
  return false;
}

bool text_paths_resolve(const struct text_view *view, struct text_entry *entry) {
  size_t slash = entry->start;
  entry->count = entry->written;
  if (entry->start > 0 && view->bytes[entry->start - 1] == '$' && entry->count > 1)
    slash += entry->parts[--entry->count].length; /* $NAME/x */
  if (add_variable(view, entry, slash, 0))
    return true;
  bool commands =
      view->kind == TEXT_SCRIPT || view->kind == TEXT_YAML || view->kind == TEXT_CONFIG || view->kind == TEXT_CODE;
  return entry->relative && commands && add_working_folder(view, entry);
}
