/* How much is read of a file and what is around it. A file without a name whose owner matters needs no headers. A
 * header is read alone where that is enough. It is not when its names are declared by what stands before the #include
 * in the file that includes it, or when the #include stands inside of a namespace. Then it is read from that file. */
#include "scanner/cxx_front.h"
#include "scanner/text.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* More includers say nothing new; each is one more translation unit. */
#define MOST_INCLUDERS 16
#define MOST_ROOTS 4
#define LONGEST_CHAIN 8

static bool is_source(const char *path) {
  static const char *const endings[] = {".cc", ".cpp", ".cxx", ".c++", ".cp", ".cu", ".c", ".C", ".mu", ".hip", ".mm"};
  const char *dot = strrchr(path, '.');
  for (size_t i = 0; dot && i < sizeof endings / sizeof *endings; i++)
    if (strcmp(dot, endings[i]) == 0)
      return true;
  return false;
}

/* --- includers ---------------------------------------------------------------------------------------------------- */

struct includers {
  const struct scan *scan;
  const struct source_file *file;
  const struct source_file *list[MOST_INCLUDERS];
  unsigned count;
  bool nested; /* one of them includes it between braces */
};

/* Behind the last line that has the file's base name: the rest cannot include it. */
static size_t end_of_mentions(const struct source_file *includer, const struct source_file *file) {
  const char *slash = strrchr(file->path, '/'), *base = slash ? slash + 1 : file->path;
  const uint8_t *at = includer->bytes, *end = at + includer->size, *last = at;
  size_t length = strlen(base);
  while ((at = memmem(at, (size_t)(end - at), base, length)) != NULL)
    last = at += length;
  const uint8_t *newline = last < end ? memchr(last, '\n', (size_t)(end - last)) : NULL;
  return newline ? (size_t)(newline - includer->bytes) + 1 : includer->size;
}

/* Does `includer` have an #include that means the file? *nested: it stands between braces. */
static bool includes(const struct includers *in, const struct source_file *includer, bool *nested) {
  struct cxx_tokens own;
  const struct cxx_tokens *tokens =
      cxx_index_first_tokens(in->scan, includer, end_of_mentions(includer, in->file), &own);
  bool found = false;
  int depth = 0;
  for (uint32_t i = 0; i < tokens->count; i++) {
    const struct cxx_token *token = &tokens->list[i];
    if (token->kind == CXX_PUNCT && !(token->flags & CXX_DIRECTIVE))
      depth += token->code == '{' ? 1 : token->code == '}' ? -1 : 0;
    if (token->kind != CXX_HASH || i + 2 >= tokens->count || !cxx_token_is(tokens, &tokens->list[i + 1], "include"))
      continue;
    const struct cxx_token *name = &tokens->list[i + 2];
    if ((name->kind != CXX_STRING && name->kind != CXX_HEADER) || name->end - name->start <= 2 ||
        cxx_index_header(in->scan, includer, tokens->bytes + name->start + 1, name->end - name->start - 2) != in->file)
      continue;
    found = true;
    *nested = *nested || depth > 0;
  }
  cxx_tokens_free(&own);
  return found;
}

static bool add_includer(void *user, const struct source_file *includer) {
  struct includers *in = user;
  if (cxx_index_load(in->scan, includer) && includes(in, includer, &in->nested))
    in->list[in->count++] = includer;
  return in->count < MOST_INCLUDERS;
}

static void find_includers(struct includers *in, const struct scan *scan, const struct source_file *file) {
  *in = (struct includers){.scan = scan, .file = file};
  cxx_index_includers(scan, file, add_includer, in);
}

/* The source that the header ends up in, going from includer to includer. */
static const struct source_file *find_root(const struct scan *scan, const struct source_file *file) {
  for (unsigned i = 0; i < LONGEST_CHAIN && !is_source(file->path); i++) {
    struct includers in;
    find_includers(&in, scan, file);
    if (in.count == 0)
      break;
    file = in.list[0];
  }
  return file;
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

static bool unproven(const struct cxx_unit *unit) {
  for (uint32_t i = 0; i < unit->uses_count; i++) {
    const struct cxx_use *use = &unit->uses[i];
    if (use->owner == CXX_OWNER_UNPROVEN && (use->role == CXX_ROLE_CALL || use->role == CXX_ROLE_REFERENCE))
      return true;
  }
  return false;
}

void cxx_unit_open(struct cxx_unit *unit, const struct scan *scan, const struct source_file *file,
                   const struct cxx_config *config) {
  cxx_unit_read(unit, scan, file, NULL, config, false);
  if (is_source(file->path) || unit->uses_count == 0 || unit->tokens.conflict)
    return;
  struct includers in;
  find_includers(&in, scan, file);
  if (!in.nested && !unproven(unit))
    return;
  struct cxx_unit *other = scan_alloc(NULL, sizeof *other);
  bool better = false;
  for (unsigned i = 0; i < in.count && i < MOST_ROOTS && !better; i++) {
    cxx_unit_read(other, scan, file, find_root(scan, in.list[i]), config, false);
    better = other->reached && (in.nested ? other->nested : !unproven(other));
    if (!better)
      cxx_unit_free(other);
  }
  if (better) {
    cxx_unit_free(unit);
    *unit = *other;
    unit->macros.arena = &unit->arena;
  }
  free(other);
}

/* --- what needs no headers ---------------------------------------------------------------------------------------- */

/* Has a string a name of the catalog, so that it matters what the string is given to? */
static bool named_string(const struct scan *scan, struct cxx_text *text) {
  const struct text_view view = {.scan = scan, .bytes = text->value, .size = text->size, .kind = TEXT_DOC};
  const struct catalog_symbol *symbol;
  struct text_name name;
  size_t length;
  return rules_next_name(scan, text->value, text->size, 0, &symbol, &length) != SIZE_MAX || text_next(&view, 0, &name);
}

/* Do the file's headers matter? They say whose a removed name is, and what macros make: of a string with a name, a
 * registration; of parts of a name, the name. Comments, and strings that are programs, mean the same without them. */
static bool needs_headers(const struct scan *scan, const struct cxx_tokens *tokens) {
  struct cxx_text text = {0};
  bool needs = false;
  for (uint32_t at = 0; at < tokens->count && !needs; at++) {
    const struct cxx_token *token = &tokens->list[at];
    const uint8_t *word = tokens->bytes + token->start;
    size_t length = token->end - token->start;
    if (token->kind == CXX_WORD) {
      bool call = at + 1 < tokens->count && token[1].kind == CXX_PUNCT && token[1].code == '(';
      int name = token->code == KW_NONE ? cxx_index_find(scan, word, length) : -1;
      needs = token->flags & CXX_SPLICED || (name >= 0 && cxx_index_name(scan, name)->removed) ||
              (call && cxx_index_pastes(scan, word, length));
    } else if (token->kind == CXX_STRING) {
      text.size = 0;
      cxx_text_append(&text, tokens, token);
      while (at + 1 < tokens->count && tokens->list[at + 1].kind == CXX_STRING)
        cxx_text_append(&text, tokens, &tokens->list[++at]);
      needs = named_string(scan, &text);
    }
  }
  cxx_text_free(&text);
  return needs;
}

struct cxx_unit *cxx_unit_new(const struct scan *scan, const struct source_file *file) {
  struct cxx_unit *unit = cxx_index_take_unit(scan, file);
  if (unit)
    return unit;
  unit = scan_alloc(NULL, sizeof *unit);
  struct cxx_tokens own;
  bool headers = needs_headers(scan, cxx_index_tokens(scan, file, &own));
  cxx_tokens_free(&own);
  if (headers)
    cxx_unit_open(unit, scan, file, NULL);
  else
    cxx_unit_read(unit, scan, file, NULL, NULL, true);
  return unit;
}
