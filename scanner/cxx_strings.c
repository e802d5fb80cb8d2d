/* Names in strings, comments and #error texts. A string that a loader or a registry gets is a live use; a sentence is a
 * mention. */
#include "scanner/cxx_front.h"
#include "scanner/text.h"

#include <stdlib.h>
#include <string.h>

/* What the string at hand is given to. */
enum place {
  PLACE_PLAIN,
  PLACE_REGISTRATION, /* of operators in the library's namespace */
  PLACE_FOREIGN,      /* of operators in another namespace */
  PLACE_ATTRIBUTE,    /* the name of an attribute of an imported Python module */
};

struct strings {
  struct cxx_unit *unit;
  struct cxx_text text; /* value of the string at hand, adjacent literals joined */
  enum place place;
  char *module; /* PLACE_ATTRIBUTE: "sgl_kernel.gemm"; owned */
  bool program; /* a removed name was found in it as in a program */
};

/* --- tokens ------------------------------------------------------------------------------------------------------- */

static const struct cxx_token *token_at(const struct cxx_unit *unit, uint32_t at) {
  static const struct cxx_token none = {.kind = CXX_NEWLINE};
  return at < unit->tokens.count ? &unit->tokens.list[at] : &none;
}

static bool punct(const struct cxx_unit *unit, uint32_t at, unsigned code) {
  return token_at(unit, at)->kind == CXX_PUNCT && token_at(unit, at)->code == code;
}

static bool word(const struct cxx_unit *unit, uint32_t at, const char *text) {
  return token_at(unit, at)->kind == CXX_WORD && cxx_token_is(&unit->tokens, token_at(unit, at), text);
}

static bool one_of(const struct cxx_unit *unit, uint32_t at, const char *const *words) {
  for (; *words; words++)
    if (word(unit, at, *words))
      return true;
  return false;
}

static bool member_dot(const struct cxx_unit *unit, uint32_t at) {
  return punct(unit, at, '.') || punct(unit, at, CXX_ARROW);
}

static bool same_word(const struct cxx_unit *unit, uint32_t a, uint32_t b) {
  if (token_at(unit, a)->kind != CXX_WORD || token_at(unit, b)->kind != CXX_WORD)
    return false;
  struct cxx_string x = cxx_unit_text(unit, a), y = cxx_unit_text(unit, b);
  return x.length == y.length && memcmp(x.text, y.text, x.length) == 0;
}

/* The parenthesis that opens the one closed at `at`; 0 when there is none. */
static uint32_t opening(const struct cxx_unit *unit, uint32_t at) {
  int depth = 0;
  for (uint32_t limit = at > 10000 ? at - 10000 : 0; at > limit; at--) {
    if (punct(unit, at, ')'))
      depth++;
    else if (punct(unit, at, '(') && --depth == 0)
      return at;
  }
  return 0;
}

/* The value of the string token, owned by the caller. */
static char *string_value(const struct cxx_unit *unit, uint32_t at) {
  struct cxx_text text = {0};
  cxx_text_append(&text, &unit->tokens, token_at(unit, at));
  char *value = scan_format("%.*s", (int)text.size, text.size ? (const char *)text.value : "");
  cxx_text_free(&text);
  return value;
}

/* --- Python modules held by C++ ------------------------------------------------------------------------------------
 */

static char *module_of(const struct cxx_unit *unit, uint32_t last, unsigned depth);

/* The module that a variable holds at token `at`, by the nearest assignment or initialization before it. */
static char *module_of_variable(const struct cxx_unit *unit, uint32_t at, unsigned depth) {
  for (uint32_t i = at; i-- > 0;) {
    if (!same_word(unit, i, at) || member_dot(unit, i - 1))
      continue;
    if (!punct(unit, i + 1, '=') && !punct(unit, i + 1, '(') && !punct(unit, i + 1, '{'))
      continue;
    uint32_t end = i + 2;
    while (end < unit->tokens.count && !punct(unit, end, ';'))
      end++;
    uint32_t last = end - 1;
    if (!punct(unit, i + 1, '=')) /* type name(value); */
      last--;
    return last > i + 1 ? module_of(unit, last, depth - 1) : NULL;
  }
  return NULL;
}

/* The Python module that the expression ending at token `last` gives: "sgl_kernel", "torch.ops.sgl_kernel", ...; NULL
 * when it is none. Owned by the caller. */
static char *module_of(const struct cxx_unit *unit, uint32_t last, unsigned depth) {
  static const char *const imports[] = {"import",          "import_", "import_module", "PyImport_ImportModule",
                                        "PyImport_Import", NULL};
  static const char *const passes[] = {"ptr", "get", "release", "inc_ref", NULL};
  static const char *const casts[] = {
      "object", "module", "module_", "handle", "reinterpret_borrow", "reinterpret_steal", "move", NULL};
  if (depth == 0)
    return NULL;
  if (token_at(unit, last)->kind == CXX_WORD)
    return module_of_variable(unit, last, depth);
  if (!punct(unit, last, ')'))
    return NULL;
  uint32_t open = opening(unit, last), callee = open - 1;
  if (open < 2)
    return NULL;
  if (punct(unit, callee, '>')) /* cast<type>(x) */
    while (callee > 0 && !punct(unit, callee, '<') && !punct(unit, callee, ';'))
      callee--;
  callee -= punct(unit, callee, '<');
  bool one_string = token_at(unit, open + 1)->kind == CXX_STRING && open + 2 == last;
  if (one_string && one_of(unit, callee, imports))
    return string_value(unit, open + 1);
  if (one_string && word(unit, callee, "attr") && member_dot(unit, callee - 1) && callee > 1) {
    char *base = module_of(unit, callee - 2, depth - 1);
    if (!base)
      return NULL;
    char *name = string_value(unit, open + 1);
    char *whole = scan_format("%s.%s", base, name);
    free(base);
    free(name);
    return whole;
  }
  if (open + 1 == last && one_of(unit, callee, passes) && member_dot(unit, callee - 1) && callee > 1)
    return module_of(unit, callee - 2, depth - 1);
  if (open + 1 < last && one_of(unit, callee, casts))
    return module_of(unit, last - 1, depth - 1);
  return NULL;
}

/* The module whose attribute the string at token `at` names: x.attr("name"), getattr(x, "name"); NULL: none. */
static char *attribute_module(const struct cxx_unit *unit, uint32_t at) {
  static const char *const getters[] = {"getattr",
                                        "hasattr",
                                        "setattr",
                                        "PyObject_GetAttrString",
                                        "PyObject_HasAttrString",
                                        "PyObject_HasAttrStringWithError",
                                        "PyObject_GetOptionalAttrString",
                                        "PyObject_SetAttrString",
                                        "PyObject_CallMethod",
                                        NULL};
  if (at < 4)
    return NULL;
  if (punct(unit, at - 1, '(') && word(unit, at - 2, "attr") && member_dot(unit, at - 3))
    return module_of(unit, at - 4, 16);
  if (!punct(unit, at - 1, ','))
    return NULL;
  int depth = 0;
  for (uint32_t open = at - 1, limit = at > 100 ? at - 100 : 1; open > limit; open--) {
    if (punct(unit, open, ')'))
      depth++;
    else if (punct(unit, open, '(') && depth-- == 0)
      return one_of(unit, open - 1, getters) ? module_of(unit, at - 2, 16) : NULL;
  }
  return NULL;
}

/* --- registrations -------------------------------------------------------------------------------------------------
 */

/* In name.def("..."): the operator namespace that the Library variable was made with; NULL: not known. Owned. */
static char *library_namespace(const struct cxx_unit *unit, uint32_t variable) {
  for (uint32_t i = variable; i-- > 0;) {
    bool maker = word(unit, i, "MAKE_TORCH_LIBRARY") || word(unit, i, "MAKE_TORCH_LIBRARY_IMPL");
    if (!maker && !word(unit, i, "Library"))
      continue;
    /* Library name(...), name = torch::Library(...) */
    uint32_t open = i + 1, named = CXX_NONE;
    if (token_at(unit, open)->kind == CXX_WORD) {
      named = open++;
    } else {
      uint32_t before = i;
      while (before > 1 && punct(unit, before - 1, CXX_SCOPE))
        before -= token_at(unit, before - 2)->kind == CXX_WORD ? 2 : 1;
      if (before > 1 && punct(unit, before - 1, '='))
        named = before - 2;
    }
    if (named == CXX_NONE || !same_word(unit, named, variable) || !(punct(unit, open, '(') || punct(unit, open, '{')))
      continue;
    if (maker) {
      struct cxx_string space = cxx_unit_text(unit, open + 1 < unit->tokens.count ? open + 1 : open);
      return scan_format("%.*s", (int)space.length, space.text);
    }
    for (uint32_t k = open + 1; k < unit->tokens.count && !punct(unit, k, ';') && k < open + 40; k++)
      if (token_at(unit, k)->kind == CXX_STRING)
        return string_value(unit, k);
  }
  return NULL;
}

static const struct cxx_scope *scope_of(const struct cxx_unit *unit, uint32_t token) {
  uint32_t low = 0, high = unit->strings_count;
  while (low < high) {
    uint32_t middle = (low + high) / 2;
    if (unit->strings[middle].token < token)
      low = middle + 1;
    else
      high = middle;
  }
  return low < unit->strings_count && unit->strings[low].token == token ? unit->strings[low].scope : NULL;
}

static enum place registration_place(const struct cxx_unit *unit, uint32_t at) {
  const char *space = unit->scan->catalog->library.op_namespace;
  const struct cxx_scope *scope = scope_of(unit, at);
  struct cxx_string registration = cxx_scope_registration(scope), registrar = cxx_scope_registrar(scope);
  if (registration.length)
    return registration.length == strlen(space) && memcmp(registration.text, space, registration.length) == 0
               ? PLACE_REGISTRATION
               : PLACE_FOREIGN;
  if (registrar.length)
    return cxx_index_registers(unit->scan, registrar.text, registrar.length) ? PLACE_REGISTRATION : PLACE_FOREIGN;
  static const char *const methods[] = {"def", "impl", "impl_abstract_pystub", NULL};
  if (at < 4 || !punct(unit, at - 1, '(') || !one_of(unit, at - 2, methods) || !member_dot(unit, at - 3))
    return PLACE_PLAIN;
  char *made_with = library_namespace(unit, at - 4);
  enum place place = !made_with ? PLACE_PLAIN : strcmp(made_with, space) == 0 ? PLACE_REGISTRATION : PLACE_FOREIGN;
  free(made_with);
  return place;
}

/* --- one string ----------------------------------------------------------------------------------------------------
 */

static void find(const struct strings *s, size_t at, const struct catalog_symbol *symbol, enum verdict verdict,
                 const char *message) {
  uint32_t line, column;
  cxx_unit_position(s->unit, s->text.offset[at], &line, &column);
  if (verdict == VERDICT_MENTION)
    result_find(s->unit->result, line, column, symbol, verdict, EVIDENCE_TEXT, LEVEL_NOTE, "%s", message);
  else
    result_find(s->unit->result, line, column, symbol, verdict, EVIDENCE_STRING, LEVEL_ERROR, "%s", message);
}

static bool space_byte(uint8_t c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static void program_found(void *user, size_t offset, const struct catalog_symbol *symbol) {
  struct strings *s = user;
  if (offset >= s->text.size)
    return;
  s->program = true;
  find(s, offset, symbol, VERDICT_REPORT,
       "a Python program in a string uses it, and it is gone there; change the program by hand");
}

struct slice {
  struct strings *strings;
  size_t start;
};

static void slice_found(void *user, size_t offset, const struct catalog_symbol *symbol) {
  const struct slice *slice = user;
  program_found(slice->strings, slice->start + offset, symbol);
}

static size_t skip_blanks(const struct cxx_text *text, size_t at) {
  while (at < text->size && (text->value[at] == ' ' || text->value[at] == '\t'))
    at++;
  return at;
}

/* Past the word when it stands at `at`; else 0. */
static size_t take_word(const struct cxx_text *text, size_t at, const char *wanted) {
  size_t length = strlen(wanted);
  bool there = text->size - at >= length && memcmp(text->value + at, wanted, length) == 0 &&
               (at + length == text->size || !text_word_byte(text->value[at + length]));
  return there ? at + length : 0;
}

/* Past a.b.c, which may be empty. */
static size_t take_path(const struct cxx_text *text, size_t at) {
  at = skip_blanks(text, at);
  while (at < text->size && (text_word_byte(text->value[at]) || text->value[at] == '.'))
    at++;
  return at;
}

/* Is there an import statement at `at`, and nothing else on its line? Prose that begins with "import" or "from" is
 * none.
 */
static bool starts_import(const struct cxx_text *text, size_t at) {
  at = skip_blanks(text, at);
  size_t next = take_word(text, at, "from");
  if (next) {
    next = skip_blanks(text, take_path(text, next));
    at = next;
  }
  next = take_word(text, at, "import");
  if (!next)
    return false;
  for (at = skip_blanks(text, next);;) {
    if (at < text->size && (text->value[at] == '(' || text->value[at] == '*'))
      return true;
    next = take_path(text, at);
    if (next == at)
      return false;
    at = skip_blanks(text, next);
    next = take_word(text, at, "as");
    if (next)
      at = skip_blanks(text, take_path(text, next));
    if (at == text->size || strchr("\n\r;#'\"", text->value[at]))
      return true;
    if (text->value[at] != ',')
      return false;
    at = skip_blanks(text, at + 1);
  }
}

/* A program: some line imports, or a shell command gives one to -c. */
static void find_program(struct strings *s) {
  const struct cxx_text *text = &s->text;
  const char *package = s->unit->scan->catalog->library.package;
  if (text->size == 0 || !memmem(text->value, text->size, package, strlen(package)))
    return;
  for (size_t at = 0; at < text->size; at++) {
    if (!starts_import(text, at))
      continue;
    bool line = at == 0 || text->value[at - 1] == '\n' || text->value[at - 1] == ';';
    bool quoted = at > 3 && (text->value[at - 1] == '\'' || text->value[at - 1] == '"') &&
                  memmem(text->value, at, "-c", 2) != NULL;
    size_t end = text->size;
    if (quoted) {
      const uint8_t *close = memchr(text->value + at, text->value[at - 1], text->size - at);
      end = close ? (size_t)(close - text->value) : text->size;
    }
    if (line || quoted) {
      struct slice slice = {s, line ? 0 : at};
      python_find_in_text(s->unit->scan, text->value + slice.start, end - slice.start, slice_found, &slice);
      return;
    }
  }
}

static bool operator_removed(const struct cxx_unit *unit, const struct catalog_symbol *symbol) {
  return catalog_is_removed(symbol, CATALOG_LAYER_OPERATOR, unit->platform, unit->scan->options.kernel);
}

/* Nothing but the reference, or a reference with arguments or a schema behind it. */
static bool exact(const struct cxx_text *text, size_t start, size_t end) {
  size_t first = 0, last = text->size;
  while (first < start && space_byte(text->value[first]))
    first++;
  while (last > end && space_byte(text->value[last - 1]))
    last--;
  if (first != start)
    return false;
  if (end == last || text->value[end] == '(')
    return true;
  if (text->value[end] != '.')
    return false;
  size_t at = end + 1; /* the operator's overload */
  while (at < last && text_word_byte(text->value[at]))
    at++;
  return at > end + 1 && (at == last || text->value[at] == '(');
}

static const char *const in_sentence = "named in a text; for information";

static void judge(struct strings *s, const struct text_name *name) {
  const struct cxx_unit *unit = s->unit;
  bool whole = exact(&s->text, name->start, name->at + name->length);
  if (name->owner == OWNER_OPERATOR && name->length > 2 && memcmp(s->text.value + name->at, "_Z", 2) == 0) {
    whole = whole && name->at + name->length == s->text.size && name->at == 0;
    if (!whole)
      find(s, name->at, name->symbol, VERDICT_MENTION, in_sentence);
    else if (catalog_is_removed(name->symbol, CATALOG_LAYER_CXX, unit->platform, unit->scan->options.kernel))
      find(s, name->at, name->symbol, VERDICT_REPORT,
           "looks up the removed function by its mangled name, which gives nothing; change the look-up by hand");
    return;
  }
  if (name->owner != OWNER_NONE) {
    if (!whole)
      find(s, name->at, name->symbol, VERDICT_MENTION, in_sentence);
    else if (name->owner != OWNER_OPERATOR || operator_removed(unit, name->symbol))
      find(s, name->at, name->symbol, VERDICT_REPORT,
           name->owner == OWNER_OPERATOR
               ? "names the removed operator for a look-up, which throws; change it by hand"
               : "names the removed Python function for a look-up, which fails; change it by hand");
    return;
  }
  /* Names in registrations and attributes are judged by find_given_name. */
  if (whole && s->place != PLACE_PLAIN)
    return;
  bool sentence = false;
  for (size_t i = 0; i < s->text.size; i++)
    sentence = sentence || space_byte(s->text.value[i]);
  if (sentence)
    find(s, name->at, name->symbol, VERDICT_MENTION, in_sentence);
}

/* A bare name or schema that a registration or an attribute look-up gets. */
static void find_given_name(struct strings *s) {
  const struct scan *scan = s->unit->scan;
  size_t start = 0, end;
  while (start < s->text.size && space_byte(s->text.value[start]))
    start++;
  end = start;
  while (end < s->text.size && text_word_byte(s->text.value[end]))
    end++;
  if (end == start || !exact(&s->text, start, end))
    return;
  char *word_text = scan_format("%.*s", (int)(end - start), (const char *)s->text.value + start);
  bool operators = s->place == PLACE_REGISTRATION;
  if (s->place == PLACE_ATTRIBUTE) {
    char *space = scan_format("torch.ops.%s", scan->catalog->library.op_namespace);
    operators = strcmp(s->module, space) == 0;
    free(space);
  }
  if (operators) {
    for (unsigned i = 0; i < scan->catalog->symbols_count; i++)
      if (strcmp(scan->catalog->symbols[i].op_name, word_text) == 0 &&
          operator_removed(s->unit, &scan->catalog->symbols[i])) {
        find(s, start, &scan->catalog->symbols[i], VERDICT_REPORT,
             s->place == PLACE_REGISTRATION
                 ? "registers under the removed operator's name; decide whether this library keeps the operator"
                 : "names the removed operator for a look-up, which fails; change it by hand");
        break;
      }
  } else {
    const struct catalog_symbol *symbol = rules_python_removed(scan, s->module, word_text);
    if (symbol)
      find(s, start, symbol, VERDICT_REPORT,
           "names an attribute that the Python package no longer has; change it by hand");
  }
  free(word_text);
}

/* "sgl_kernel::" + "name", string("sgl_kernel::") + "name", fromDomainAndUnqualString("sgl_kernel", "name"): the
 * operators that the string at token `at` names one of; NULL: none. Owned. */
static char *operators_before(const struct cxx_unit *unit, uint32_t at) {
  const char *space = unit->scan->catalog->library.op_namespace;
  if (at < 3 || !(punct(unit, at - 1, '+') || punct(unit, at - 1, ',')))
    return NULL;
  bool joined = punct(unit, at - 1, '+');
  uint32_t before = joined && punct(unit, at - 2, ')') ? at - 3 : at - 2;
  if (token_at(unit, before)->kind != CXX_STRING ||
      (!joined && !(punct(unit, before - 1, '(') && word(unit, before - 2, "fromDomainAndUnqualString"))))
    return NULL;
  char *wanted = scan_format(joined ? "%s::" : "%s", space), *value = string_value(unit, before);
  char *operators = strcmp(wanted, value) == 0 ? scan_format("torch.ops.%s", space) : NULL;
  free(wanted);
  free(value);
  return operators;
}

static void one_string(struct strings *s, uint32_t first) {
  const struct cxx_unit *unit = s->unit;
  s->program = false;
  s->module = NULL;
  find_program(s);
  if (s->program)
    return;
  s->module = attribute_module(unit, first);
  if (!s->module)
    s->module = operators_before(unit, first);
  s->place = s->module ? PLACE_ATTRIBUTE : registration_place(unit, first);
  if (s->place == PLACE_REGISTRATION || s->place == PLACE_ATTRIBUTE)
    find_given_name(s);
  const struct text_view view = {.scan = unit->scan, .bytes = s->text.value, .size = s->text.size, .kind = TEXT_DOC};
  struct text_name name;
  for (size_t from = 0; text_next(&view, from, &name); from = name.at + name.length)
    judge(s, &name);
  free(s->module);
}

/* --- comments ------------------------------------------------------------------------------------------------------
 */

static void find_mentions(struct cxx_unit *unit, size_t start, size_t end) {
  const struct text_view view = {.scan = unit->scan, .bytes = unit->tokens.bytes, .size = end, .kind = TEXT_DOC};
  struct text_name name;
  for (size_t from = start; text_next(&view, from, &name); from = name.at + name.length) {
    uint32_t line, column;
    cxx_unit_position(unit, name.at, &line, &column);
    result_find(unit->result, line, column, name.symbol, VERDICT_MENTION, EVIDENCE_TEXT, LEVEL_NOTE, "%s",
                "mentioned here; for information");
  }
}

/* The old mangled name as a word of code: a C declaration, #pragma weak. */
static void find_mangled_word(struct cxx_unit *unit, uint32_t at) {
  const struct cxx_token *token = token_at(unit, at);
  if (token->end - token->start < 3 || unit->tokens.bytes[token->start] != '_' ||
      unit->tokens.bytes[token->start + 1] != 'Z')
    return;
  for (unsigned i = 0; i < unit->scan->catalog->symbols_count; i++) {
    const struct catalog_symbol *symbol = &unit->scan->catalog->symbols[i];
    if (!*symbol->cxx.mangled || !word(unit, at, symbol->cxx.mangled) ||
        !catalog_is_removed(symbol, CATALOG_LAYER_CXX, unit->platform, unit->scan->options.kernel))
      continue;
    uint32_t line, column;
    cxx_unit_position(unit, token->start, &line, &column);
    result_find(unit->result, line, column, symbol, VERDICT_REPORT, EVIDENCE_LEXICAL, LEVEL_ERROR, "%s",
                "uses the removed function by its mangled name; change it by hand");
  }
}

static bool in_include(const struct cxx_unit *unit, uint32_t token) {
  while (token > 0 && unit->tokens.list[token].kind != CXX_HASH)
    token--;
  return word(unit, token + 1, "include") || word(unit, token + 1, "include_next") || word(unit, token + 1, "import") ||
         word(unit, token + 1, "line");
}

void cxx_strings_find(struct cxx_unit *unit) {
  struct strings s = {.unit = unit};
  for (uint32_t at = 0; at < unit->tokens.count; at++) {
    const struct cxx_token *token = &unit->tokens.list[at];
    if (token->kind == CXX_WORD)
      find_mangled_word(unit, at);
    if (token->kind != CXX_STRING || ((token->flags & CXX_DIRECTIVE) && in_include(unit, at)))
      continue;
    uint32_t first = at;
    s.text.size = 0;
    cxx_text_append(&s.text, &unit->tokens, token);
    while (token_at(unit, at + 1)->kind == CXX_STRING)
      cxx_text_append(&s.text, &unit->tokens, token_at(unit, ++at));
    one_string(&s, first);
  }
  cxx_text_free(&s.text);
  for (uint32_t i = 0; i < unit->tokens.comments_count; i++)
    find_mentions(unit, unit->tokens.comments[i].start, unit->tokens.comments[i].end);
  for (uint32_t i = 0; i < unit->directives_count; i++)
    if (unit->directives[i].kind == CXX_MESSAGE)
      find_mentions(unit, unit->tokens.list[unit->directives[i].first].start,
                    unit->tokens.list[unit->directives[i].last].start);
}
