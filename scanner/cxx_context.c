/* A header is read alone where that is enough. It is not when its names are declared by what stands before the #include
 * in the file that includes it, or when the #include stands inside of a namespace. Then it is read from that file. */
#include "scanner/cxx_front.h"

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

/* Does `includer` have an #include that means the file? *nested: it stands between braces. */
static bool includes(const struct includers *in, const struct source_file *includer, bool *nested) {
  struct cxx_tokens own;
  const struct cxx_tokens *tokens = cxx_index_tokens(in->scan, includer, &own);
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
  if (includer->bytes && includes(in, includer, &in->nested))
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
  cxx_unit_read(unit, scan, file, NULL, config);
  if (is_source(file->path) || unit->uses_count == 0 || unit->tokens.conflict)
    return;
  struct includers in;
  find_includers(&in, scan, file);
  if (!in.nested && !unproven(unit))
    return;
  struct cxx_unit *other = scan_alloc(NULL, sizeof *other);
  bool better = false;
  for (unsigned i = 0; i < in.count && i < MOST_ROOTS && !better; i++) {
    cxx_unit_read(other, scan, file, find_root(scan, in.list[i]), config);
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
