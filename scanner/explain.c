/* Which removed names a pasted text is about. Messages are known by a table of what stands before the name; a text
 * without any of them is searched for names alone. */
#include "scanner/explain.h"
#include "scanner/scanner.h"

#include <stdlib.h>
#include <string.h>

/* --- messages ----------------------------------------------------------------------------------------------------- */

#define PYTHON_CAUSE                                                                                                   \
  "Python asks the installed kernel package for a name that this release no longer exports. The kernel is newer than " \
  "the code."
#define OPERATOR_CAUSE                                                                                                 \
  "torch knows no such operator: the installed kernel library registers it no longer, or was not imported before the " \
  "call."
#define MODULE_CAUSE "The module left with the functions in it. The installed package is newer than the code."
#define LOADER_CAUSE                                                                                                   \
  "A library was compiled against an older kernel and needs a C++ function that the installed one no longer exports."
#define COMPILER_CAUSE                                                                                                 \
  "The header of the installed kernel no longer declares the function. The kernel is newer than the code."
#define LINKER_CAUSE "The kernel library that is linked no longer has the function."
#define FILE_CAUSE "A build or a test names a file that was deleted together with the function."

/* A row for each form of message. The name follows `before`, with or without quotes; the first row that matches at a
 * place decides, so longer texts stand before shorter ones. Names of the library in `before`: explain_pattern.c. */
static const struct message {
  const char *before;
  enum subject subject;
  const char *cause;
} messages[] = {
    {"cannot import name ", SUBJECT_PYTHON, PYTHON_CAUSE},
    {"module '" PACKAGE "' has no attribute ", SUBJECT_PYTHON, PYTHON_CAUSE},
    {"'_OpNamespace' '" NAMESPACE "' object has no attribute ", SUBJECT_OPERATOR, OPERATOR_CAUSE},
    {"No such operator " NAMESPACE "::", SUBJECT_OPERATOR, OPERATOR_CAUSE},
    {"Could not find schema for " NAMESPACE "::", SUBJECT_OPERATOR, OPERATOR_CAUSE},
    {"operator " NAMESPACE "::", SUBJECT_OPERATOR, OPERATOR_CAUSE},
    {"Could not run '" NAMESPACE "::", SUBJECT_OPERATOR, OPERATOR_CAUSE},
    {"has no attribute ", SUBJECT_PYTHON, PYTHON_CAUSE},
    {"No module named ", SUBJECT_MODULE, MODULE_CAUSE},
    {"undefined symbol: ", SUBJECT_MANGLED, LOADER_CAUSE},
    {"undefined reference to ", SUBJECT_CXX, LINKER_CAUSE},
    {"undefined symbol ", SUBJECT_CXX, LINKER_CAUSE},
    {"use of undeclared identifier ", SUBJECT_CXX, COMPILER_CAUSE},
    {"no member named ", SUBJECT_CXX, COMPILER_CAUSE},
    {"identifier \"", SUBJECT_CXX, COMPILER_CAUSE},
    {"No such file or directory: ", SUBJECT_FILE, FILE_CAUSE},
    {"Cannot find source file:", SUBJECT_FILE, FILE_CAUSE},
    {"No rule to make target ", SUBJECT_FILE, FILE_CAUSE},
    {"file or directory not found: ", SUBJECT_FILE, FILE_CAUSE},
};
#define MESSAGES (sizeof messages / sizeof *messages)

/* --- names -------------------------------------------------------------------------------------------------------- */

static bool word_byte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Quotes as programs and terminals write them; their length, or 0. */
static size_t quote(const char *at) {
  if (*at == '\'' || *at == '"' || *at == '`')
    return 1;
  return strncmp(at, "\xe2\x80\x98", 3) == 0 || strncmp(at, "\xe2\x80\x99", 3) == 0 ? 3 : 0;
}

/* The characters that a name of this kind may have besides those of a word. */
static size_t name_length(const char *at, enum subject subject) {
  const char *more = subject == SUBJECT_MODULE    ? "."
                     : subject == SUBJECT_CXX     ? ":"
                     : subject == SUBJECT_MANGLED ? ".$"
                     : subject == SUBJECT_FILE    ? "./-+"
                                                  : "";
  size_t length = 0;
  while (word_byte(at[length]) || (at[length] && strchr(more, at[length])))
    length++;
  return length;
}

static bool is(const char *text, const char *name, size_t length) {
  return strlen(text) == length && memcmp(text, name, length) == 0;
}

static bool has_python(const struct catalog_symbol *symbol, const char *name, size_t length) {
  for (unsigned i = 0; i < symbol->python_count; i++)
    if (is(symbol->python[i].name, name, length))
      return true;
  return false;
}

/* A kernel's module, or one of sglang that has gone; also the package that such a module was in. */
static bool has_module(const struct catalog_symbol *symbol, const char *name, size_t length) {
  for (unsigned i = 0; i < symbol->python_count; i++)
    if (is(symbol->python[i].module, name, length) && memchr(name, '.', length))
      return true;
  for (unsigned i = 0; i < symbol->routes_count; i++) {
    const struct catalog_route *route = &symbol->routes[i];
    if (route->until && strncmp(route->module, name, length) == 0 &&
        (!route->module[length] || (route->module[length] == '.' && memchr(name, '.', length))))
      return true;
  }
  return false;
}

static bool ends_with_file(const char *name, size_t length, const char *file) {
  const char *slash = strrchr(file, '/');
  const char *base = slash ? slash + 1 : file;
  size_t size = strlen(base);
  return length >= size && memcmp(name + length - size, base, size) == 0 &&
         (length == size || name[length - size - 1] == '/');
}

static bool has_file(const struct catalog_symbol *symbol, const char *name, size_t length) {
  for (unsigned i = 0; i < symbol->sources_count; i++)
    if (ends_with_file(name, length, symbol->sources[i]))
      return true;
  for (unsigned i = 0; i < symbol->tests_count; i++)
    if (ends_with_file(name, length, symbol->tests[i]))
      return true;
  for (unsigned i = 0; i < symbol->benchmarks_count; i++)
    if (ends_with_file(name, length, symbol->benchmarks[i]))
      return true;
  return false;
}

static bool has_cxx(const struct catalog_symbol *symbol, const char *name, size_t length) {
  const char *last = name;
  for (size_t i = 0; i + 1 < length; i++)
    if (name[i] == ':')
      last = name + i + 1;
  length -= (size_t)(last - name);
  for (unsigned i = 0; i < symbol->cxx.templates_count; i++)
    if (is(symbol->cxx.templates[i], last, length))
      return true;
  return *symbol->cxx.name && is(symbol->cxx.name, last, length);
}

static bool is_mangled(const struct catalog_symbol *symbol, const char *name, size_t length) {
  return *symbol->cxx.mangled && is(symbol->cxx.mangled, name, length);
}

static bool matches(const struct catalog_symbol *symbol, enum subject subject, const char *name, size_t length) {
  bool word = subject == SUBJECT_WORD;
  return ((word || subject == SUBJECT_PYTHON) && (is(symbol->id, name, length) || has_python(symbol, name, length))) ||
         ((word || subject == SUBJECT_OPERATOR) && *symbol->op_name && is(symbol->op_name, name, length)) ||
         ((word || subject == SUBJECT_CXX) && has_cxx(symbol, name, length)) ||
         ((word || subject == SUBJECT_MANGLED) && is_mangled(symbol, name, length)) ||
         (subject == SUBJECT_MODULE && has_module(symbol, name, length)) ||
         (subject == SUBJECT_FILE && has_file(symbol, name, length));
}

/* --- the text ----------------------------------------------------------------------------------------------------- */

static void add(struct explanation *explanation, const struct catalog_symbol *symbol, enum subject subject,
                const char *cause) {
  for (size_t i = 0; i < explanation->count; i++)
    if (explanation->list[i].symbol == symbol)
      return;
  explanation->list = scan_alloc(explanation->list, (explanation->count + 1) * sizeof *explanation->list);
  explanation->list[explanation->count++] = (struct explained){symbol, subject, cause};
}

/* All symbols that the name may mean; false when there is none. */
static bool add_all(struct explanation *explanation, const struct catalog *catalog, enum subject subject,
                    const char *name, size_t length, const char *cause) {
  bool any = false;
  const struct catalog_symbol *best = NULL; /* a name that is an id means that one */
  for (unsigned i = 0; i < catalog->symbols_count; i++)
    if (subject != SUBJECT_MODULE && subject != SUBJECT_FILE && is(catalog->symbols[i].id, name, length) &&
        matches(&catalog->symbols[i], subject, name, length))
      best = &catalog->symbols[i];
  for (unsigned i = 0; i < catalog->symbols_count; i++) {
    const struct catalog_symbol *symbol = &catalog->symbols[i];
    if (best ? symbol != best : !matches(symbol, subject, name, length))
      continue;
    add(explanation, symbol, subject, cause);
    any = true;
  }
  return any;
}

static void keep_unknown(struct explanation *explanation, const char *name, size_t length) {
  if (!explanation->unknown && length)
    explanation->unknown = scan_format("%.*s", (int)length, name);
}

/* Do the `length` bytes name the package, a module of it, or one of sglang that has gone? */
static bool is_ours(const struct catalog *catalog, const char *module, size_t length) {
  const char *package = catalog->library.package;
  size_t size = strlen(package);
  if (length >= size && memcmp(module, package, size) == 0 && (length == size || module[size] == '.'))
    return true;
  for (unsigned i = 0; i < catalog->symbols_count; i++)
    if (has_module(&catalog->symbols[i], module, length))
      return true;
  return false;
}

/* The module that a message says the name is missing from: "name 'x' from 'M'", "module 'M' has no attribute 'x'",
 * "'_OpNamespace' 'M' object has no attribute 'x'". 0: it says none. */
static size_t owner(const char *text, const char *at, const char *behind, const char **module) {
  behind += quote(behind);
  if (strncmp(behind, " from ", 6) == 0) {
    *module = behind + 6 + quote(behind + 6);
    return name_length(*module, SUBJECT_MODULE);
  }
  const char *end = at;
  if (end - text >= 8 && strncmp(end - 8, " object ", 8) == 0)
    end -= 7;
  while (end > text && (end[-1] == ' ' || end[-1] == '\''))
    end--;
  const char *start = end;
  while (start > text && (word_byte(start[-1]) || start[-1] == '.'))
    start--;
  bool stated = (start - text >= 8 && strncmp(start - 8, "module '", 8) == 0) ||
                (start - text >= 16 && strncmp(start - 16, "'_OpNamespace' '", 16) == 0);
  *module = start;
  return stated ? (size_t)(end - start) : 0;
}

/* A module in the package that has names which never left is there still. */
static bool is_alive_module(const struct catalog *catalog, const char *name, size_t length) {
  for (unsigned i = 0; i < catalog->symbols_count; i++)
    for (unsigned k = 0; k < catalog->symbols[i].python_count; k++)
      if (catalog->symbols[i].status == CATALOG_PLANNED && memchr(name, '.', length) &&
          is(catalog->symbols[i].python[k].module, name, length))
        return true;
  return false;
}

static bool is_planned(const struct catalog *catalog, enum subject subject, const char *name, size_t length) {
  bool planned = false;
  for (unsigned i = 0; i < catalog->symbols_count; i++)
    if (matches(&catalog->symbols[i], subject, name, length)) {
      if (catalog->symbols[i].status != CATALOG_PLANNED)
        return false;
      planned = true;
    }
  return planned;
}

static void read_messages(const struct catalog *catalog, const char *text, struct explanation *explanation) {
  for (const char *at = text; *at; at++) {
    const struct message *message = messages;
    size_t before = 0;
    while (message < messages + MESSAGES && (before = explain_pattern(&catalog->library, message->before, at)) == 0)
      message++;
    if (!before)
      continue;
    const char *name = at + before;
    for (size_t skip; (skip = *name == ' ' || *name == '\n' ? 1 : quote(name)) > 0;)
      name += skip;
    enum subject subject = message->subject;
    if (subject == SUBJECT_CXX && strncmp(name, "_Z", 2) == 0)
      subject = SUBJECT_MANGLED;
    else if (subject == SUBJECT_MANGLED && strncmp(name, "_Z", 2) != 0)
      subject = SUBJECT_CXX; /* demangled by c++filt */
    size_t length = name_length(name, subject);
    while (length && strchr(".:", name[length - 1])) /* the end of the sentence */
      length--;
    const char *module;
    size_t module_length = subject == SUBJECT_PYTHON ? owner(text, at, name + length, &module) : 0;
    if (module_length && !is_ours(catalog, module, module_length)) {
      if (!explanation->unknown)
        explanation->unknown = scan_format("%.*s.%.*s", (int)module_length, module, (int)length, name);
    } else if (subject == SUBJECT_MODULE ? is_alive_module(catalog, name, length)
                                         : is_planned(catalog, subject, name, length)) {
      explain_alive(explanation, name, length);
    } else if (add_all(explanation, catalog, subject, name, length, message->cause)) {
      at = name + length - 1;
    } else {
      keep_unknown(explanation, name, length);
      if (strncmp(message->before, "undefined symbol", 16) == 0)
        explain_symbol(explanation, name, length);
    }
  }
}

/* Names and paths alone: a list, a line of code, a message that is not in the table. */
static void read_names(const struct catalog *catalog, const char *text, struct explanation *explanation) {
  for (const char *at = text; *at;) {
    size_t path = name_length(at, SUBJECT_FILE), word = name_length(at, SUBJECT_WORD);
    if (path == 0) {
      at++;
      continue;
    }
    size_t module = name_length(at, SUBJECT_MODULE);
    bool found = add_all(explanation, catalog, SUBJECT_FILE, at, path, NULL) ||
                 add_all(explanation, catalog, SUBJECT_MODULE, at, module, NULL);
    if (found) {
      at += path;
      continue;
    }
    if (word && !add_all(explanation, catalog, SUBJECT_WORD, at, word, NULL)) {
      if (word > 2 && memcmp(at, "_Z", 2) == 0)
        explain_symbol(explanation, at, word);
      else if (memchr(at, '_', word))
        keep_unknown(explanation, at, word);
    }
    at += word ? word : 1;
  }
}

/* The length of a terminal's control sequence, as it is or spelt as programs that show logs spell it; 0: none. Colours
 * are "ESC [ 31 m", links "ESC ] ... BEL". */
static size_t escape_length(const char *at) {
  static const char *const spellings[] = {"\x1b", "^[", "\\x1b", "\\033", "\\u001b"};
  size_t length = 0;
  for (size_t i = 0; i < sizeof spellings / sizeof *spellings && !length; i++)
    if (strncmp(at, spellings[i], strlen(spellings[i])) == 0)
      length = strlen(spellings[i]);
  if (length == 0)
    return 0;
  if (at[length] == '[') {
    size_t end = length + 1 + strspn(at + length + 1, "0123456789:;<=>?");
    return at[end] >= '@' && at[end] <= '~' ? end + 1 : *at == '\x1b' ? end : 0;
  }
  if (at[length] == ']') {
    size_t end = length + strcspn(at + length, "\a\x1b\n");
    return at[end] == '\a' ? end + 1 : at[end] == '\x1b' && at[end + 1] == '\\' ? end + 2 : end;
  }
  return *at == '\x1b' ? 1 : 0;
}

/* The length of what stands between words: spaces, ends of lines, also as JSON spells them; 0: none. */
static size_t space_length(const char *at) {
  if (strncmp(at, "\xc2\xa0", 2) == 0) /* no-break space */
    return 2;
  if (*at == '\\' && at[1] && strchr("nrt", at[1]))
    return 2;
  return *at && strchr(" \t\r\n", *at) ? 1 : 0;
}

char *explain_plain(const char *text) {
  char *plain = scan_alloc(NULL, strlen(text) + 1), *out = plain;
  for (size_t skip; *text; text += skip) {
    if ((skip = escape_length(text)) > 0)
      continue;
    if ((skip = space_length(text)) > 0) {
      if (out > plain && out[-1] != ' ')
        *out++ = ' ';
      continue;
    }
    skip = *text == '\\' && text[1] == '"' ? 2 : 1;
    *out++ = text[skip - 1];
  }
  *out = '\0';
  return plain;
}

void explain(const struct catalog *catalog, const char *text, struct explanation *explanation) {
  *explanation = (struct explanation){0};
  explain_faults(catalog, text, explanation);
  read_messages(catalog, text, explanation);
  if (explanation->count == 0 && explanation->faults_count == 0 && !explanation->unknown)
    read_names(catalog, text, explanation);
  explain_drop_consequences(explanation);
  if (!explanation->unknown && explanation->count == 0) {
    const char *start = text;
    while (*start && !word_byte(*start))
      start++;
    keep_unknown(explanation, start, name_length(start, SUBJECT_WORD));
  }
}

void explain_free(struct explanation *explanation) {
  for (size_t i = 0; i < explanation->faults_count; i++)
    free(explanation->faults[i].cause);
  free(explanation->faults);
  free(explanation->list);
  free((void *)(uintptr_t)explanation->unknown);
}

/* --- spelling ----------------------------------------------------------------------------------------------------- */

#define LONGEST 64

/* How many characters have to be added, taken away or exchanged (Levenshtein). */
static unsigned distance(const char *a, const char *b) {
  unsigned row[LONGEST + 1], length = (unsigned)strlen(b);
  for (unsigned k = 0; k <= length; k++)
    row[k] = k;
  for (unsigned i = 0; a[i]; i++) {
    unsigned diagonal = row[0];
    row[0] = i + 1;
    for (unsigned k = 0; k < length; k++) {
      unsigned change = diagonal + (a[i] != b[k]);
      unsigned add_or_drop = (row[k] < row[k + 1] ? row[k] : row[k + 1]) + 1;
      diagonal = row[k + 1];
      row[k + 1] = change < add_or_drop ? change : add_or_drop;
    }
  }
  return row[length];
}

size_t explain_near(const struct catalog *catalog, const char *word, const struct catalog_symbol **near, size_t most) {
  size_t count = 0, length = strlen(word);
  unsigned limit = length < 4 ? 1 : length < 12 ? 3 : (unsigned)length / 4;
  if (length > LONGEST)
    return 0;
  for (unsigned wanted = 1; wanted <= limit && count < most; wanted++)
    for (unsigned i = 0; i < catalog->symbols_count && count < most; i++)
      if (strlen(catalog->symbols[i].id) <= LONGEST && distance(word, catalog->symbols[i].id) == wanted)
        near[count++] = &catalog->symbols[i];
  return count;
}
