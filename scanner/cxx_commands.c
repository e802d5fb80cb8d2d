/* Compiler command lines, of gcc, clang and nvcc, with whatever stands in front of them (ccache, env). Only what
 * changes which text is compiled is read: macros, include folders, forced headers, the language. All other flags, known
 * or not, are passed over. */
#include "scanner/cxx_database.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ARGUMENTS_MAX 100000
#define RESPONSE_MAX ((size_t)1 << 20)
#define RESPONSE_DEPTH 4
#define TEXT_MAX ((size_t)1 << 20)

void cxx_arguments_add(struct cxx_arguments *arguments, char *text) {
  if (arguments->count == ARGUMENTS_MAX)
    return;
  if (arguments->count == arguments->capacity) {
    arguments->capacity = arguments->capacity ? 2 * arguments->capacity : 32;
    arguments->list = scan_alloc(arguments->list, arguments->capacity * sizeof *arguments->list);
  }
  arguments->list[arguments->count++] = text;
}

void cxx_arguments_split(struct arena *arena, struct cxx_arguments *arguments, const char *command, size_t size) {
  char *word = arena_alloc(arena, size + 1), quote = '\0';
  size_t length = 0;
  bool inside = false;
  for (size_t i = 0; i <= size; i++) {
    char c = i < size ? command[i] : ' ';
    if (i == size)
      quote = '\0';
    if (quote ? c == quote : c == '"' || c == '\'') {
      quote = quote ? '\0' : c;
      inside = true;
    } else if (c == '\\' && quote != '\'' && i + 1 < size &&
               (!quote || command[i + 1] == '"' || command[i + 1] == '\\' || command[i + 1] == '$')) {
      word[length++] = command[++i];
      inside = true;
    } else if (!quote && (c == ' ' || c == '\t' || c == '\n' || c == '\r')) {
      if (inside || length)
        cxx_arguments_add(arguments, arena_copy(arena, word, length));
      length = 0;
      inside = false;
    } else if (!quote && (c == ';' || (c == '&' && i + 1 < size && command[i + 1] == '&'))) {
      if (inside || length)
        cxx_arguments_add(arguments, arena_copy(arena, word, length));
      cxx_arguments_add(arguments, arena_copy(arena, "&&", 2));
      i += c == '&';
      length = 0;
      inside = false;
    } else if (c != '\0') {
      word[length++] = c;
    }
  }
}

char *cxx_absolute_path(struct arena *arena, const char *folder, const char *path) {
  size_t size = strlen(folder) + strlen(path) + 2, used = 0;
  char *out = arena_alloc(arena, size + 1);
  const char *const texts[] = {*path == '/' ? "" : folder, path};
  for (size_t i = 0; i < 2; i++)
    for (const char *at = texts[i]; *at;) {
      size_t part = strcspn(at, "/");
      if (part == 2 && memcmp(at, "..", 2) == 0) {
        while (used > 0 && out[--used] != '/')
          ;
      } else if (part > 0 && !(part == 1 && *at == '.')) {
        out[used++] = '/';
        memcpy(out + used, at, part);
        used += part;
      }
      at += part;
      at += *at == '/';
    }
  if (used == 0)
    out[used++] = '/';
  out[used] = '\0';
  return out;
}

/* --- response files ----------------------------------------------------------------------------------------------- */

static void add_response(struct arena *arena, struct cxx_arguments *arguments, const char *folder, const char *path,
                         unsigned depth);

/* Adds an argument, or those of the file that it names: @file, --options-file file. */
static void add_argument(struct arena *arena, struct cxx_arguments *arguments, const char *folder, char *const *list,
                         size_t count, size_t *at, unsigned depth) {
  char *argument = list[*at];
  static const char *const names[] = {"--options-file", "-optf"};
  if (argument[0] == '@' && argument[1]) {
    add_response(arena, arguments, folder, argument + 1, depth);
    return;
  }
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    size_t length = strlen(names[i]);
    if (strncmp(argument, names[i], length) != 0)
      continue;
    if (argument[length] == '=')
      add_response(arena, arguments, folder, argument + length + 1, depth);
    else if (argument[length] == '\0' && *at + 1 < count)
      add_response(arena, arguments, folder, list[++*at], depth);
    else
      continue;
    return;
  }
  cxx_arguments_add(arguments, argument);
}

/* A file that is not there, or is none, adds nothing: a database may be older than the last clean build. */
static void add_response(struct arena *arena, struct cxx_arguments *arguments, const char *folder, const char *path,
                         unsigned depth) {
  if (depth == RESPONSE_DEPTH)
    return;
  int fd = open(cxx_absolute_path(arena, folder, path), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  struct stat status;
  if (fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size < (off_t)RESPONSE_MAX) {
    char *text = scan_alloc(NULL, RESPONSE_MAX);
    size_t size = 0;
    ssize_t got;
    while (size < RESPONSE_MAX && (got = read(fd, text + size, RESPONSE_MAX - size)) > 0)
      size += (size_t)got;
    struct cxx_arguments inner = {0};
    cxx_arguments_split(arena, &inner, text, size);
    free(text);
    for (size_t i = 0; i < inner.count; i++)
      add_argument(arena, arguments, folder, inner.list, inner.count, &i, depth + 1);
    free(inner.list);
  }
  if (fd >= 0)
    close(fd);
}

/* --- flags -------------------------------------------------------------------------------------------------------- */

static void add_text(struct cxx_flags *flags, const char *head, const char *name, size_t name_size, const char *value) {
  size_t size = strlen(head) + name_size + strlen(value) + 3;
  /* A comment or a line's end would go on behind the line. */
  if (flags->text_size + size > TEXT_MAX || strpbrk(value, "\n\r\\") || strstr(value, "/*") || strstr(value, "//") ||
      memchr(name, '\n', name_size) || memchr(name, '\\', name_size) || memchr(name, '/', name_size))
    return;
  flags->text = scan_alloc(flags->text, flags->text_size + size + 1);
  char *at = flags->text + flags->text_size;
  at = stpcpy(at, head);
  memcpy(at, name, name_size);
  at += name_size;
  *at++ = ' ';
  at = stpcpy(at, value);
  *at++ = '\n';
  *at = '\0';
  flags->text_size = (size_t)(at - flags->text);
}

static void add_define(struct cxx_flags *flags, const char *define) {
  size_t name = strcspn(define, "=");
  if (name)
    add_text(flags, "#define ", define, name, define[name] ? define + name + 1 : "1");
}

struct option {
  const char *name;
  enum { DEFINE, UNDEFINE, FOLDER, FORCED, LANGUAGE, PASSED } what;
  bool joined; /* -DX as well as -D X */
};

/* "--long=value" is understood for each. Those of nvcc that hand something on to the host's compiler come apart at
 * commas. */
static const struct option options[] = {
    {"-D", DEFINE, true},
    {"--define-macro", DEFINE, false},
    {"-U", UNDEFINE, true},
    {"--undefine-macro", UNDEFINE, false},
    {"-isystem", FOLDER, true},
    {"--system-include", FOLDER, false},
    {"-iquote", FOLDER, true},
    {"-idirafter", FOLDER, true},
    {"-I", FOLDER, true},
    {"--include-path", FOLDER, false},
    {"-include", FORCED, false},
    {"--pre-include", FORCED, false},
    {"-imacros", FORCED, false},
    {"-x", LANGUAGE, true},
    {"--x", LANGUAGE, false},
    {"-Xcompiler", PASSED, false},
    {"--compiler-options", PASSED, false},
};

static void read_flags(struct arena *arena, struct cxx_flags *flags, const struct cxx_arguments *arguments,
                       const char *folder, bool passed);

static void read_option(struct arena *arena, struct cxx_flags *flags, const struct option *option, const char *value,
                        const char *folder, bool passed) {
  switch (option->what) {
  case DEFINE:
    add_define(flags, value);
    break;
  case UNDEFINE:
    add_text(flags, "#undef ", value, strlen(value), "");
    break;
  case FOLDER:
    cxx_arguments_add(&flags->folders, cxx_absolute_path(arena, folder, value));
    break;
  case FORCED:
    cxx_arguments_add(&flags->forced, cxx_absolute_path(arena, folder, value));
    break;
  case LANGUAGE:
    flags->cuda = strcmp(value, "cu") == 0 || strcmp(value, "cuda") == 0;
    flags->cxx = flags->cuda || strncmp(value, "c++", 3) == 0;
    break;
  case PASSED:
    if (!passed) {
      struct cxx_arguments inner = {0};
      for (const char *at = value; *at; at += strcspn(at, ",") + (at[strcspn(at, ",")] != '\0'))
        cxx_arguments_add(&inner, arena_copy(arena, at, strcspn(at, ",")));
      read_flags(arena, flags, &inner, folder, true);
      free(inner.list);
    }
    break;
  }
}

static void read_flags(struct arena *arena, struct cxx_flags *flags, const struct cxx_arguments *arguments,
                       const char *folder, bool passed) {
  for (size_t i = 0; i < arguments->count; i++) {
    const char *argument = arguments->list[i];
    for (size_t k = 0; argument[0] == '-' && k < sizeof options / sizeof *options; k++) {
      size_t length = strlen(options[k].name);
      if (strncmp(argument, options[k].name, length) != 0)
        continue;
      const char *value = argument + length;
      if (!*value && i + 1 < arguments->count)
        value = arguments->list[++i];
      else if (*value == '=')
        value++;
      else if (!*value || !options[k].joined)
        continue;
      read_option(arena, flags, &options[k], value, folder, passed);
      break;
    }
  }
}

/* --- commands ----------------------------------------------------------------------------------------------------- */

static const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

static bool names_source(const struct cxx_arguments *arguments, const char *source) {
  for (size_t i = 0; i < arguments->count; i++)
    if (arguments->list[i][0] != '-' && strcmp(base_name(arguments->list[i]), base_name(source)) == 0)
      return true;
  return false;
}

/* One call; an earlier `cd folder` has changed the folder. */
static void visit_call(struct arena *arena, const struct cxx_arguments *call, const char *folder,
                       void (*visit)(void *user, const struct cxx_flags *flags), void *user) {
  struct cxx_flags flags = {0};
  read_flags(arena, &flags, call, folder, false);
  visit(user, &flags);
  free(flags.text);
  free(flags.forced.list);
  free(flags.folders.list);
}

void cxx_commands_visit(struct arena *arena, const struct cxx_arguments *arguments, const char *folder,
                        const char *source, void (*visit)(void *user, const struct cxx_flags *flags), void *user) {
  for (unsigned pass = 0, visited = 0; pass < 2 && !visited; pass++) {
    const char *here = folder;
    for (size_t i = 0; i < arguments->count; i++) {
      struct cxx_arguments call = {0};
      for (; i < arguments->count && strcmp(arguments->list[i], "&&") != 0; i++)
        add_argument(arena, &call, here, arguments->list, arguments->count, &i, 0);
      if (call.count == 2 && strcmp(call.list[0], "cd") == 0) {
        here = cxx_absolute_path(arena, here, call.list[1]);
      } else if (call.count && (pass > 0 || names_source(&call, source))) {
        visit_call(arena, &call, here, visit, user);
        visited++;
      }
      free(call.list);
    }
  }
}
