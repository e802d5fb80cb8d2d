/* The Itanium C++ name of a function, from its declaration: https://itanium-cxx-abi.github.io/cxx-abi/abi.html#mangling
 *
 * Two steps. The declaration is read into the long form of the name, which repeats every type in full; then the long
 * form is copied, and each component that was there before becomes a substitution (S_, S0_, ...).
 *
 * Known types: the builtin ones, int64_t and its kin, classes and enums by their full name, std::optional, std::vector;
 * with const, pointers and references. Typedefs are not known: a declaration names the type itself. */
#include "catalog/catalog_private.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The typedefs as on 64-bit Linux. A longer spelling stands before its own beginning. */
static const struct {
  const char *name, *code;
} builtins[] = {
    {"unsigned long long", "y"},
    {"unsigned long", "m"},
    {"unsigned int", "j"},
    {"unsigned char", "h"},
    {"unsigned", "j"},
    {"long long", "x"},
    {"long", "l"},
    {"void", "v"},
    {"bool", "b"},
    {"char", "c"},
    {"short", "s"},
    {"int", "i"},
    {"float", "f"},
    {"double", "d"},
    {"int8_t", "a"},
    {"uint8_t", "h"},
    {"int16_t", "s"},
    {"uint16_t", "t"},
    {"int32_t", "i"},
    {"uint32_t", "j"},
    {"int64_t", "l"},
    {"uint64_t", "m"},
    {"size_t", "m"},
    {"uintptr_t", "m"},
};

enum { MAX_SUBSTITUTIONS = 100, MAX_NAME = 4000 };

struct text {
  char bytes[MAX_NAME];
  size_t length;
};

struct mangler {
  const char *at;                       /* what of the declaration is not read yet */
  const char *known[MAX_SUBSTITUTIONS]; /* components of the long form that were written already */
  size_t known_length[MAX_SUBSTITUTIONS];
  int known_count;
  struct text out;
  char *error;
  size_t error_size;
  bool failed;
};

__attribute__((format(printf, 2, 3))) static void fail(struct mangler *m, const char *format, ...) {
  if (m->failed)
    return;
  m->failed = true;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(m->error, m->error_size, format, arguments);
  va_end(arguments);
}

static void add(struct mangler *m, struct text *text, const char *bytes, size_t length) {
  if (text->length + length >= sizeof text->bytes) {
    fail(m, "the declaration is too long");
    return;
  }
  memcpy(text->bytes + text->length, bytes, length);
  text->length += length;
  text->bytes[text->length] = '\0';
}

static void add_string(struct mangler *m, struct text *text, const char *string) {
  add(m, text, string, strlen(string));
}

static void insert(struct mangler *m, struct text *text, size_t position, char c) {
  add(m, text, "", 1); /* makes room */
  if (m->failed)
    return;
  memmove(text->bytes + position + 1, text->bytes + position, text->length - 1 - position);
  text->bytes[position] = c;
}

/* --- the declaration ------------------------------------------------------------------------------------------------
 */

static bool is_word(char c) {
  return isalnum((unsigned char)c) || c == '_';
}

static void skip_space(struct mangler *m) {
  while (isspace((unsigned char)*m->at))
    m->at++;
}

static bool take(struct mangler *m, const char *token) {
  skip_space(m);
  size_t length = strlen(token);
  if (strncmp(m->at, token, length) != 0 || (is_word(token[0]) && is_word(m->at[length])))
    return false;
  m->at += length;
  return true;
}

static size_t identifier(struct mangler *m) {
  skip_space(m);
  size_t length = 0;
  while (is_word(m->at[length]))
    length++;
  return isdigit((unsigned char)*m->at) ? 0 : length;
}

static void add_source_name(struct mangler *m, struct text *text, const char *name, size_t length) {
  char number[24];
  snprintf(number, sizeof number, "%zu", length);
  add_string(m, text, number);
  add(m, text, name, length);
}

static void read_type(struct mangler *m, struct text *text);

static void read_base_type(struct mangler *m, struct text *text) {
  for (size_t i = 0; i < sizeof builtins / sizeof builtins[0]; i++)
    if (take(m, builtins[i].name)) {
      add_string(m, text, builtins[i].code);
      return;
    }
  bool optional = take(m, "std::optional"), vector = !optional && take(m, "std::vector");
  if (optional || vector) {
    add_string(m, text, optional ? "St8optionalI" : "St6vectorI");
    if (!take(m, "<"))
      fail(m, "'<' expected at '%.30s'", m->at);
    size_t start = text->length;
    read_type(m, text);
    size_t length = text->length - start;
    if (vector) {
      add_string(m, text, "SaI");
      add(m, text, text->bytes + start, length);
      add_string(m, text, "E");
    }
    if (!take(m, ">"))
      fail(m, "'>' expected at '%.30s'", m->at);
    add_string(m, text, "E");
    return;
  }
  size_t start = text->length, parts = 0;
  for (;;) {
    size_t length = identifier(m);
    if (!length) {
      fail(m, "a type expected at '%.30s'", m->at);
      return;
    }
    if (parts == 0 && length == 3 && strncmp(m->at, "std", 3) == 0) {
      fail(m, "the linter does not know the type '%.30s'", m->at);
      return;
    }
    add_source_name(m, text, m->at, length);
    m->at += length;
    parts++;
    if (!take(m, "::"))
      break;
  }
  if (*m->at == '<')
    fail(m, "the linter knows no templates but std::optional and std::vector, at '%.30s'", m->at);
  if (parts > 1) {
    insert(m, text, start, 'N');
    add_string(m, text, "E");
  }
}

static void read_type(struct mangler *m, struct text *text) {
  size_t start = text->length;
  bool is_const = take(m, "const");
  read_base_type(m, text);
  for (;;) {
    if (take(m, "const"))
      is_const = true;
    if (is_const)
      insert(m, text, start, 'K');
    is_const = false;
    char modifier = take(m, "&&") ? 'O' : take(m, "&") ? 'R' : take(m, "*") ? 'P' : '\0';
    if (!modifier)
      return;
    insert(m, text, start, modifier);
  }
}

/* Reads the declaration; writes the types of the parameters one after the other and counts them. */
static void read_declaration(struct mangler *m, const struct catalog_cxx *cxx, struct text *types,
                             unsigned *parameters) {
  struct text result = {.length = 0};
  read_type(m, &result);
  size_t length = identifier(m);
  if (length != strlen(cxx->name) || strncmp(m->at, cxx->name, length) != 0)
    fail(m, "the declaration is not of '%s', at '%.30s'", cxx->name, m->at);
  m->at += length;
  if (!take(m, "("))
    fail(m, "'(' expected at '%.30s'", m->at);
  *parameters = 0;
  if (!m->failed && take(m, ")")) {
    add_string(m, types, "v");
  } else {
    while (!m->failed) {
      size_t start = types->length;
      read_type(m, types);
      if (types->bytes[start] == 'K') { /* a const value parameter is no other type for the caller */
        memmove(types->bytes + start, types->bytes + start + 1, types->length - start);
        types->length--;
      }
      ++*parameters;
      m->at += identifier(m);
      if (take(m, ")"))
        break;
      if (!take(m, ","))
        fail(m, "',' or ')' expected at '%.30s'", m->at);
    }
  }
  skip_space(m);
  if (!m->failed && *m->at)
    fail(m, "nothing expected after the parameters, at '%.30s'", m->at);
}

/* --- substitutions --------------------------------------------------------------------------------------------------
 */

/* Write the component as a substitution if it is known. */
static bool substitute(struct mangler *m, const char *component, size_t length) {
  for (int i = 0; i < m->known_count; i++) {
    if (m->known_length[i] != length || memcmp(m->known[i], component, length) != 0)
      continue;
    char code[8] = "S_"; /* then S0_ .. S9_, SA_ .. SZ_, S10_ .. */
    if (i > 36)
      snprintf(code, sizeof code, "S1%c_", "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[(i - 37) % 36]);
    else if (i > 0)
      snprintf(code, sizeof code, "S%c_", "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[i - 1]);
    add_string(m, &m->out, code);
    return true;
  }
  return false;
}

static void remember(struct mangler *m, const char *component, const char *end) {
  if (m->known_count == 72 || m->known_count == MAX_SUBSTITUTIONS) { /* 72: as far as substitute() counts */
    fail(m, "the declaration has too many different types");
    return;
  }
  m->known[m->known_count] = component;
  m->known_length[m->known_count++] = (size_t)(end - component);
}

static const char *source_name_end(const char *at) {
  size_t length = 0;
  while (isdigit((unsigned char)*at))
    length = length * 10 + (size_t)(*at++ - '0');
  return at + length;
}

/* Where the type that begins at `at` of the long form ends. */
static const char *type_end(const char *at) {
  if (strchr("KRPO", *at))
    return type_end(at + 1);
  if (isdigit((unsigned char)*at))
    return source_name_end(at);
  if (*at == 'N') {
    for (at++; *at != 'E';)
      at = source_name_end(at);
    return at + 1;
  }
  if (*at == 'S') { /* a template of std: St8optional, St6vector, Sa */
    at = at[1] == 't' ? source_name_end(at + 2) : at + 2;
    for (at++; *at != 'E';)
      at = type_end(at);
    return at + 1;
  }
  return at + 1;
}

static void compress(struct mangler *m, const char *at) {
  const char *end = type_end(at);
  if (end - at == 1) { /* builtin types are never substituted */
    add(m, &m->out, at, 1);
    return;
  }
  if (substitute(m, at, (size_t)(end - at)))
    return;
  if (strchr("KRPO", *at)) {
    add(m, &m->out, at, 1);
    compress(m, at + 1);
  } else if (*at == 'N') { /* N prefix name E, the prefix being a component of its own */
    const char *name = at + 1;
    for (const char *next = source_name_end(name); *next != 'E'; next = source_name_end(next))
      name = next;
    add_string(m, &m->out, "N");
    /* The longest known prefix is substituted, the rest is written part by part. */
    const char *done = at + 1;
    for (const char *stop = name; stop > at + 1; stop = stop - 1)
      if (substitute(m, at + 1, (size_t)(stop - at - 1))) {
        done = stop;
        break;
      }
    while (done < name) {
      const char *next = source_name_end(done);
      add(m, &m->out, done, (size_t)(next - done));
      remember(m, at + 1, next);
      done = next;
    }
    add(m, &m->out, name, (size_t)(end - name));
  } else if (*at == 'S') {
    const char *arguments = at[1] == 't' ? source_name_end(at + 2) : at + 2;
    if (at[1] != 't') {
      add(m, &m->out, at, 2); /* Sa is short already */
    } else if (!substitute(m, at, (size_t)(arguments - at))) {
      add(m, &m->out, at, (size_t)(arguments - at));
      remember(m, at, arguments);
    }
    add_string(m, &m->out, "I");
    for (arguments++; *arguments != 'E'; arguments = type_end(arguments))
      compress(m, arguments);
    add_string(m, &m->out, "E");
  } else {
    add(m, &m->out, at, (size_t)(end - at));
  }
  remember(m, at, end);
}

/* --- the name -------------------------------------------------------------------------------------------------------
 */

bool catalog_mangle(const struct catalog_cxx *cxx, char *mangled, size_t mangled_size, unsigned *parameters,
                    char *error, size_t error_size) {
  struct mangler m = {.at = cxx->declaration, .error = error, .error_size = error_size};
  struct text types = {.length = 0}, scope = {.length = 0};
  read_declaration(&m, cxx, &types, parameters);
  if (m.failed)
    return false;
  add_string(&m, &m.out, cxx->scope[0] ? "_ZN" : "_Z");
  for (const char *part = cxx->scope; *part;) {
    size_t length = strcspn(part, ":"), start = scope.length;
    add_source_name(&m, &scope, part, length);
    add_string(&m, &m.out, scope.bytes + start);
    remember(&m, scope.bytes, scope.bytes + scope.length);
    part += length + strspn(part + length, ":");
  }
  add_source_name(&m, &m.out, cxx->name, strlen(cxx->name));
  if (cxx->scope[0])
    add_string(&m, &m.out, "E");
  for (const char *at = types.bytes; !m.failed && *at; at = type_end(at))
    compress(&m, at);
  if (!m.failed && m.out.length >= mangled_size)
    fail(&m, "the name is too long");
  if (m.failed)
    return false;
  memcpy(mangled, m.out.bytes, m.out.length + 1);
  return true;
}
