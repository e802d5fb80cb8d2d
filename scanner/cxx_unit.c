/* Walks a file and the headers of the tree that it includes, as a compiler without command-line macros would: feeds the
 * tokens to the scopes, and writes the texts that libclang gets. */
#include "scanner/cxx_facts.h"
#include "scanner/cxx_front.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Headers of the tree for one file: a project's own headers are far below, a vendored header library may be above; then
 * only headers with a name of the catalog are still read. */
#define MOST_HEADER_BYTES ((size_t)8 << 20)
#define MOST_INCLUDES 5000
#define MOST_TIMES 8 /* one header without a guard */
#define DEEPEST_INCLUDE 64
#define DEEPEST_EXPANSION 4

struct condition {
  bool outer, taken, active;
  bool has_result;
  struct cxx_state saved, result; /* before the first branch, after the compiled one */
};

struct walk {
  struct cxx_unit *unit;
  const struct source_file *file;
  const struct cxx_tokens *tokens;
  uint32_t part;
  bool main;
  unsigned depth; /* includes around it */
  bool active;
  struct condition *conditions;
  unsigned conditions_count, conditions_capacity;
};

/* --- parts -------------------------------------------------------------------------------------------------------- */

static uint32_t add_part(struct cxx_unit *unit, const struct source_file *file, const void *bytes, size_t size,
                         bool stand_in) {
  if (unit->parts_count == unit->parts_capacity) {
    unit->parts_capacity = unit->parts_capacity ? 2 * unit->parts_capacity : 16;
    unit->parts = scan_alloc(unit->parts, unit->parts_capacity * sizeof *unit->parts);
  }
  char *text = scan_alloc(NULL, size + 1);
  if (size)
    memcpy(text, bytes, size);
  text[size] = '\0';
  unit->parts[unit->parts_count] = (struct cxx_part){file, bytes, text, size, stand_in};
  unit->parts_size += size;
  return unit->parts_count++;
}

/* Line breaks stay, so that every token stays where it is. */
static void blank(const struct walk *walk, size_t start, size_t end) {
  char *text = walk->unit->parts[walk->part].text;
  for (size_t at = start; at < end; at++)
    if (text[at] != '\n')
      text[at] = ' ';
}

/* libclang opens nothing but parts: each include is written anew, with the number of the part as its name. */
static void write_include(const struct walk *walk, size_t start, size_t end, uint32_t part) {
  char line[32];
  int length = snprintf(line, sizeof line, "#include\"%u\"", part);
  if ((size_t)length <= end - start)
    memcpy(walk->unit->parts[walk->part].text + start, line, (size_t)length);
}

/* --- small things ------------------------------------------------------------------------------------------------- */

static bool word_is(const struct walk *walk, uint32_t token, const char *text) {
  const struct cxx_token *word = &walk->tokens->list[token];
  return token < walk->tokens->count && word->kind == CXX_WORD &&
         (walk->tokens->bytes[word->start] == (uint8_t)*text || word->flags & CXX_SPLICED) &&
         cxx_token_is(walk->tokens, word, text);
}

static bool punct_is(const struct cxx_tokens *tokens, uint32_t token, unsigned code) {
  return token < tokens->count && tokens->list[token].kind == CXX_PUNCT && tokens->list[token].code == code;
}

static enum cxx_directive_kind directive_kind(const struct walk *walk, uint32_t name) {
  static const struct {
    const char *name;
    enum cxx_directive_kind kind;
  } kinds[] = {{"include", CXX_INCLUDE}, {"import", CXX_INCLUDE}, {"define", CXX_DEFINE}, {"undef", CXX_UNDEF},
               {"if", CXX_IF},           {"ifdef", CXX_IFDEF},    {"ifndef", CXX_IFNDEF}, {"elif", CXX_ELIF},
               {"elifdef", CXX_ELIF},    {"elifndef", CXX_ELIF},  {"else", CXX_ELSE},     {"endif", CXX_ENDIF},
               {"error", CXX_MESSAGE},   {"warning", CXX_MESSAGE}};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (word_is(walk, name, kinds[i].name))
      return kinds[i].kind;
  if (word_is(walk, name, "pragma") && word_is(walk, name + 1, "once"))
    return CXX_ONCE;
  if (word_is(walk, name, "pragma") && word_is(walk, name + 1, "message"))
    return CXX_MESSAGE;
  return CXX_DIRECTIVE_OTHER;
}

static bool ends_with(const uint8_t *text, size_t length, const char *end) {
  size_t wanted = strlen(end);
  return length >= wanted && memcmp(text + length - wanted, end, wanted) == 0 &&
         (length == wanted || text[length - wanted - 1] == '/');
}

/* The header of the tree that an include means: by the folders of the command line, else by its name. */
static const struct source_file *find_header(const struct walk *walk, const uint8_t *name, size_t length) {
  const struct cxx_config *config = walk->unit->config;
  const struct source_file *file = cxx_index_header(walk->unit->scan, walk->file, name, length);
  const char *slash = file ? strrchr(file->path, '/') : NULL;
  size_t folder = slash ? (size_t)(slash - file->path) : 0;
  bool beside =
      file && strncmp(file->path, walk->file->path, folder) == 0 && !strchr(walk->file->path + folder + 1, '/');
  if (!config || beside)
    return file;
  const struct source_file *known = cxx_config_header(walk->unit->scan, config, name, length);
  return known ? known : file;
}

static bool has_include(void *user, const uint8_t *name, size_t length) {
  return find_header(user, name, length) != NULL;
}

/* Does the word sgl_kernel_jit stand for something else than the namespace of this project's header here? Calls of it
 * are written without a leading ::, so another thing of that name could take them. */
static bool hides_jit(const struct walk *walk, uint32_t at) {
  const struct cxx_tokens *tokens = walk->tokens;
  const struct cxx_token *list = tokens->list;
  if (at > 0 && punct_is(tokens, at - 1, CXX_SCOPE))
    return at > 1 && ((list[at - 2].kind == CXX_WORD && list[at - 2].code == KW_NONE) || punct_is(tokens, at - 2, '>'));
  if (at > 0 && list[at - 1].kind == CXX_WORD && list[at - 1].code == KW_namespace) {
    bool directive = at > 1 && list[at - 2].kind == CXX_WORD && list[at - 2].code == KW_using;
    return !directive && (punct_is(tokens, at + 1, '=') || walk->unit->state.scope != walk->unit->global);
  }
  if (punct_is(tokens, at + 1, CXX_SCOPE))
    return false;
  if (at > 2 && punct_is(tokens, at - 1, '=') && punct_is(tokens, at + 1, ';') && list[at - 3].kind == CXX_WORD &&
      list[at - 3].code == KW_namespace)
    return false; /* namespace short = sgl_kernel_jit; */
  if (at > 1 && punct_is(tokens, at - 1, '(') && punct_is(tokens, at + 1, ',') && list[at - 2].kind == CXX_WORD)
    /* PYBIND11_MODULE(sgl_kernel_jit, m) */
    return cxx_index_macro(walk->unit->scan, tokens->bytes + list[at - 2].start, list[at - 2].end - list[at - 2].start);
  return true;
}

/* --- directives --------------------------------------------------------------------------------------------------- */

static bool condition_value(struct walk *walk, enum cxx_directive_kind kind, uint32_t name, uint32_t last) {
  struct cxx_macros *macros = &walk->unit->macros;
  macros->has_include = has_include;
  macros->user = walk;
  bool by_name =
      kind == CXX_IFDEF || kind == CXX_IFNDEF || word_is(walk, name, "elifdef") || word_is(walk, name, "elifndef");
  if (!by_name)
    return cxx_condition(macros, walk->tokens, name + 1, last);
  if (name + 1 >= last)
    return false;
  const struct cxx_token *macro = &walk->tokens->list[name + 1];
  bool defined = cxx_macro_defined(macros, walk->tokens->bytes + macro->start, macro->end - macro->start);
  bool negative = kind == CXX_IFNDEF || word_is(walk, name, "elifndef");
  return defined != negative;
}

static void end_branch(struct walk *walk, struct condition *condition) {
  if (condition->active) {
    condition->result = walk->unit->state;
    condition->has_result = true;
  }
  walk->unit->state = condition->saved;
}

static void conditional(struct walk *walk, enum cxx_directive_kind kind, uint32_t name, uint32_t last) {
  struct cxx_unit *unit = walk->unit;
  if (kind == CXX_IF || kind == CXX_IFDEF || kind == CXX_IFNDEF) {
    if (walk->conditions_count == walk->conditions_capacity) {
      walk->conditions_capacity = walk->conditions_capacity ? 2 * walk->conditions_capacity : 8;
      walk->conditions = scan_alloc(walk->conditions, walk->conditions_capacity * sizeof *walk->conditions);
    }
    struct condition *condition = &walk->conditions[walk->conditions_count++];
    *condition = (struct condition){.outer = walk->active, .saved = unit->state};
    condition->taken = walk->active && condition_value(walk, kind, name, last);
    walk->active = condition->active = condition->taken;
    return;
  }
  if (walk->conditions_count == 0)
    return; /* an #endif or #else too many */
  struct condition *condition = &walk->conditions[walk->conditions_count - 1];
  end_branch(walk, condition);
  if (kind == CXX_ENDIF) {
    if (condition->has_result)
      unit->state = condition->result;
    walk->active = condition->outer;
    walk->conditions_count--;
    return;
  }
  condition->active =
      condition->outer && !condition->taken && (kind == CXX_ELSE || condition_value(walk, kind, name, last));
  condition->taken = condition->taken || condition->active;
  walk->active = condition->active;
}

static void walk_part(struct cxx_unit *unit, const struct source_file *file, const struct cxx_tokens *tokens,
                      uint32_t part, bool is_main, unsigned depth);

static void include_file(struct walk *walk, const struct source_file *target, uint32_t first, uint32_t last) {
  struct cxx_unit *unit = walk->unit;
  uint8_t *times = &unit->times[target - unit->scan->files];
  if (target == unit->file && !unit->reached) {
    /* The file itself, seen from one that includes it. */
    unit->reached = true;
    unit->nested = unit->state.scope != unit->global;
    walk_part(unit, target, &unit->tokens, 0, true, walk->depth + 1);
    write_include(walk, walk->tokens->list[first].start, walk->tokens->list[last].start, 0);
    return;
  }
  if (target == unit->file || *times >= MOST_TIMES || walk->depth >= DEEPEST_INCLUDE ||
      unit->includes_count >= MOST_INCLUDES)
    return;
  cxx_index_load(unit->scan, target);
  if (unit->parts_size + target->size > MOST_HEADER_BYTES && !target->hit) {
    unit->headers_left_out = true;
    return;
  }
  ++*times;
  unit->includes_count++;
  uint32_t part = add_part(unit, target, target->bytes, target->size, false);
  struct cxx_tokens own;
  walk_part(unit, target, cxx_index_tokens(unit->scan, target, &own), part, false, walk->depth + 1);
  cxx_tokens_free(&own);
  write_include(walk, walk->tokens->list[first].start, walk->tokens->list[last].start, part);
}

static void include_stand_in(struct walk *walk, bool wheel, uint32_t first, uint32_t last) {
  struct cxx_unit *unit = walk->unit;
  bool *done = wheel ? &unit->wheel_included : &unit->jit_included;
  if (*done)
    return;
  *done = true;
  const char *text = wheel ? cxx_index_wheel_header(unit->scan) : cxx_index_jit_header(unit->scan);
  uint32_t part = add_part(unit, NULL, text, strlen(text), true);
  cxx_scopes_stand_in(unit, wheel);
  write_include(walk, walk->tokens->list[first].start, walk->tokens->list[last].start, part);
}

/* The token with the header's name of an include, or CXX_NONE. */
static uint32_t header_token(const struct walk *walk, uint32_t name, uint32_t last) {
  uint32_t token = name + 1;
  if (token >= last)
    return CXX_NONE;
  uint8_t kind = walk->tokens->list[token].kind;
  bool usable =
      (kind == CXX_HEADER || kind == CXX_STRING) && walk->tokens->list[token].end - walk->tokens->list[token].start > 2;
  return usable ? token : CXX_NONE;
}

static void include(struct walk *walk, uint32_t first, uint32_t header, uint32_t last) {
  const struct scan *scan = walk->unit->scan;
  const uint8_t *text = walk->tokens->bytes + walk->tokens->list[header].start + 1;
  size_t length = walk->tokens->list[header].end - walk->tokens->list[header].start - 2;
  const struct source_file *target = find_header(walk, text, length);
  if (target)
    include_file(walk, target, first, last);
  else if (ends_with(text, length, scan->catalog->library.cxx_header))
    include_stand_in(walk, true, first, last);
  else if (ends_with(text, length, "sgl_kernel_jit/torch.h"))
    include_stand_in(walk, false, first, last);
}

static void record_directive(struct walk *walk, struct cxx_directive directive) {
  struct cxx_unit *unit = walk->unit;
  if (unit->directives_count == unit->directives_capacity) {
    unit->directives_capacity = unit->directives_capacity ? 2 * unit->directives_capacity : 32;
    unit->directives = scan_alloc(unit->directives, unit->directives_capacity * sizeof *unit->directives);
  }
  unit->directives[unit->directives_count++] = directive;
}

/* The directive whose CXX_HASH is `first`; returns its CXX_NEWLINE. */
static uint32_t directive(struct walk *walk, uint32_t first) {
  struct cxx_unit *unit = walk->unit;
  uint32_t last = first, name = first + 1;
  while (walk->tokens->list[last].kind != CXX_NEWLINE)
    last++;
  enum cxx_directive_kind kind = directive_kind(walk, name);
  uint32_t header = kind == CXX_INCLUDE ? header_token(walk, name, last) : CXX_NONE;
  bool ends = kind == CXX_ELIF || kind == CXX_ELSE || kind == CXX_ENDIF;
  if (walk->main) {
    unsigned depth = walk->conditions_count - (ends && walk->conditions_count ? 1 : 0);
    record_directive(walk, (struct cxx_directive){kind, first, last, header, depth, walk->active});
    for (uint32_t i = first; i <= last && !walk->active; i++)
      unit->tokens.list[i].flags |= CXX_INACTIVE;
  }
  size_t start = walk->tokens->list[first].start, end = walk->tokens->list[last].start;
  if (kind == CXX_DEFINE && word_is(walk, name + 1, "sgl_kernel_jit"))
    unit->jit_hidden = true;
  bool keep = walk->active && (kind == CXX_DEFINE || kind == CXX_UNDEF);
  if (!keep)
    blank(walk, start, end);
  if (kind >= CXX_IF && kind <= CXX_ENDIF)
    conditional(walk, kind, name, last);
  else if (!walk->active)
    return last;
  else if (kind == CXX_DEFINE)
    cxx_macro_define(&unit->macros, walk->tokens, name + 1, last);
  else if (kind == CXX_UNDEF && name + 1 < last)
    cxx_macro_undefine(&unit->macros, walk->tokens->bytes + walk->tokens->list[name + 1].start,
                       walk->tokens->list[name + 1].end - walk->tokens->list[name + 1].start);
  else if (kind == CXX_ONCE)
    unit->times[walk->file - unit->scan->files] = MOST_TIMES;
  else if (header != CXX_NONE && !unit->alone)
    include(walk, first, header, last);
  return last;
}

/* --- tokens ------------------------------------------------------------------------------------------------------- */

/* Does a macro with this body change what the text around it declares? It opens or closes a scope, or gives linkage. */
static bool shapes_scopes(const struct cxx_tokens *tokens) {
  int depth = 0;
  for (uint32_t i = 0; i < tokens->count; i++) {
    const struct cxx_token *token = &tokens->list[i];
    depth += punct_is(tokens, i, '{') ? 1 : punct_is(tokens, i, '}') ? -1 : 0;
    bool linkage = token->kind == CXX_WORD && (token->code == KW_extern || token->code == KW_static);
    if (depth < 0 || (depth == 0 && linkage))
      return true;
  }
  return depth != 0;
}

/* The tokens of argument number `wanted` of the macro whose parenthesis is at `open`, to the scopes. */
static void feed_argument(struct walk *walk, uint32_t open, unsigned wanted) {
  int depth = 0;
  unsigned number = 0;
  for (uint32_t i = open; i < walk->tokens->count; i++) {
    if (punct_is(walk->tokens, i, '(')) {
      if (depth++ == 0)
        continue;
    } else if (punct_is(walk->tokens, i, ')')) {
      if (--depth == 0)
        return;
    } else if (depth == 1 && punct_is(walk->tokens, i, ',')) {
      number++;
      continue;
    }
    if (number == wanted && walk->tokens->list[i].kind != CXX_HASH && walk->tokens->list[i].kind != CXX_NEWLINE)
      cxx_scopes_token(walk->unit, walk->tokens->bytes, &walk->tokens->list[i], CXX_NONE);
  }
}

/* Expands a macro such as one that opens a namespace. `open`: the token behind the name, or CXX_NONE for a macro inside
 * of another one, which is not expanded when it is function-like. */
static bool feed_expansion(struct walk *walk, const uint8_t *name, size_t length, uint32_t open, unsigned depth) {
  struct cxx_macro *macro = cxx_macro_find(&walk->unit->macros, name, length);
  if (!macro || !macro->defined || !macro->body.length || depth == 0 ||
      (macro->function_like && (open == CXX_NONE || !punct_is(walk->tokens, open, '('))))
    return false;
  if (macro->shapes == CXX_SHAPES_NOTHING)
    return false;
  struct cxx_tokens tokens;
  cxx_lex(&tokens, macro->body.text, macro->body.length);
  if (macro->shapes == CXX_SHAPES_UNKNOWN)
    macro->shapes = shapes_scopes(&tokens) ? CXX_SHAPES_SCOPES : CXX_SHAPES_NOTHING;
  bool expand = macro->shapes == CXX_SHAPES_SCOPES;
  for (uint32_t i = 0; i < tokens.count && expand; i++) {
    const struct cxx_token *token = &tokens.list[i];
    const uint8_t *text = tokens.bytes + token->start;
    size_t size = token->end - token->start;
    unsigned parameter = 0;
    while (parameter < macro->parameters_count &&
           (macro->parameters[parameter].length != size || memcmp(macro->parameters[parameter].text, text, size) != 0))
      parameter++;
    if (token->kind == CXX_WORD && parameter < macro->parameters_count)
      feed_argument(walk, open, parameter);
    else if (token->kind == CXX_WORD && feed_expansion(walk, text, size, CXX_NONE, depth - 1))
      continue;
    else if (token->kind != CXX_HASH && token->kind != CXX_NEWLINE)
      cxx_scopes_token(walk->unit, tokens.bytes, token, CXX_NONE);
  }
  cxx_tokens_free(&tokens);
  return expand;
}

/* The token that closes the parenthesis at `open`; `open` when it is none. */
static uint32_t closing(const struct cxx_tokens *tokens, uint32_t open) {
  int depth = 0;
  for (uint32_t i = open; i < tokens->count; i++) {
    if (punct_is(tokens, i, '('))
      depth++;
    else if (punct_is(tokens, i, ')') && --depth == 0)
      return i;
    if (depth == 0)
      break;
  }
  return open;
}

/* A catalog name in a macro's body, which begins at token `start`: does it mean the function there? */
static bool body_means_function(const struct cxx_tokens *tokens, uint32_t start, uint32_t at) {
  if (at + 1 < tokens->count && (punct_is(tokens, at + 1, CXX_SCOPE) || punct_is(tokens, at + 1, CXX_PASTE) ||
                                 punct_is(tokens, at + 1, '.') || punct_is(tokens, at + 1, CXX_ARROW)))
    return false;
  if (at == start)
    return true;
  if (punct_is(tokens, at - 1, '.') || punct_is(tokens, at - 1, CXX_ARROW) || punct_is(tokens, at - 1, CXX_PASTE))
    return false;
  return !(punct_is(tokens, at - 1, CXX_SCOPE) && at - 1 > start &&
           ((tokens->list[at - 2].kind == CXX_WORD && tokens->list[at - 2].code == KW_NONE) ||
            punct_is(tokens, at - 2, '>')));
}

static struct cxx_use *new_use(struct cxx_unit *unit, uint32_t token, int name, enum cxx_role role) {
  if (unit->uses_count == CXX_MOST_USES)
    return NULL;
  if (unit->uses_count == unit->uses_capacity) {
    unit->uses_capacity = unit->uses_capacity ? 2 * unit->uses_capacity : 16;
    unit->uses = scan_alloc(unit->uses, unit->uses_capacity * sizeof *unit->uses);
  }
  unit->uses[unit->uses_count] =
      (struct cxx_use){.token = token,
                       .qualifier_token = CXX_NONE,
                       .name = name,
                       .role = (uint8_t)role,
                       .owner = role == CXX_ROLE_OTHER ? CXX_OWNER_OTHER : CXX_OWNER_UNPROVEN,
                       .scope = unit->global};
  unit->use_of[token] = true;
  return &unit->uses[unit->uses_count++];
}

/* A token of the file that is a catalog name and a macro: it means what the macro's body says. A body that does not
 * spell the name may still lead to the function. */
static void macro_use(struct walk *walk, uint32_t token, int name, const struct cxx_macro *macro) {
  struct cxx_tokens body;
  cxx_lex(&body, macro->body.text, macro->body.length);
  bool function = false, spelled = false;
  for (uint32_t i = 0; i < body.count; i++)
    if (body.list[i].kind == CXX_WORD && cxx_index_find(walk->unit->scan, body.bytes + body.list[i].start,
                                                        body.list[i].end - body.list[i].start) == name) {
      function = function || body_means_function(&body, 0, i);
      spelled = true;
    }
  cxx_tokens_free(&body);
  if (!spelled)
    function = body_means_function(walk->tokens, 0, token);
  new_use(walk->unit, token, name, function ? CXX_ROLE_MACRO_USE : CXX_ROLE_OTHER);
}

static bool is_parameter(const struct cxx_macro *macro, struct cxx_string word) {
  for (unsigned i = 0; i < macro->parameters_count; i++)
    if (macro->parameters[i].length == word.length && memcmp(macro->parameters[i].text, word.text, word.length) == 0)
      return true;
  return false;
}

/* Catalog names in a #define of the file. */
static void define_names(struct walk *walk, uint32_t first, uint32_t last) {
  struct cxx_unit *unit = walk->unit;
  struct arena arena = {0};
  struct cxx_macros *scratch = scan_alloc(NULL, sizeof *scratch);
  *scratch = (struct cxx_macros){.arena = &arena};
  cxx_macro_define(scratch, walk->tokens, first + 2, last);
  const struct cxx_macro *macro = NULL;
  for (unsigned i = 0; i < CXX_MACRO_BUCKETS && !macro; i++)
    macro = scratch->buckets[i];
  for (uint32_t i = first + 2; i < last && macro; i++) {
    struct cxx_string word = cxx_unit_text(unit, i);
    int name = walk->tokens->list[i].kind == CXX_WORD ? cxx_index_find(unit->scan, word.text, word.length) : -1;
    if (name < 0)
      continue;
    enum cxx_role role = i == first + 2                                    ? CXX_ROLE_MACRO_NAME
                         : is_parameter(macro, word)                       ? CXX_ROLE_OTHER
                         : body_means_function(walk->tokens, first + 3, i) ? CXX_ROLE_MACRO_BODY
                                                                           : CXX_ROLE_OTHER;
    new_use(unit, i, name, role);
  }
  arena_free(&arena);
  free(scratch);
}

/* Marks what stands between the parentheses of a function-like macro of the tree. */
static void mark_arguments(struct cxx_unit *unit, uint32_t macro) {
  struct cxx_tokens *tokens = &unit->tokens;
  int depth = 0;
  for (uint32_t i = macro + 1; i < tokens->count; i++) {
    struct cxx_token *token = &tokens->list[i];
    if (token->flags & CXX_DIRECTIVE || token->kind == CXX_HASH)
      continue;
    if (punct_is(tokens, i, '('))
      depth++;
    else if (punct_is(tokens, i, ')') && --depth == 0)
      return;
    /* Inside another macro's arguments the rest is marked already. */
    token->flags |= CXX_ARGUMENT;
  }
}

static void find_macro_arguments(struct cxx_unit *unit) {
  const struct cxx_tokens *tokens = &unit->tokens;
  for (uint32_t i = 0; i + 1 < tokens->count; i++) {
    const struct cxx_token *token = &tokens->list[i];
    if (token->kind != CXX_WORD || token->code != KW_NONE || (token->flags & (CXX_DIRECTIVE | CXX_ARGUMENT)) ||
        !punct_is(tokens, i + 1, '('))
      continue;
    struct cxx_string word = cxx_unit_text(unit, i);
    if (cxx_index_macro(unit->scan, word.text, word.length))
      mark_arguments(unit, i);
  }
}

/* Pragmas can make libclang do anything, and mean nothing here. */
static void blank_pragma(const struct walk *walk, uint32_t token) {
  const struct cxx_tokens *tokens = walk->tokens;
  uint32_t end = token + 1;
  if (punct_is(tokens, end, '(')) {
    while (end < tokens->count && !punct_is(tokens, end, ')') && tokens->list[end].kind != CXX_NEWLINE)
      end++;
  } else {
    end = token;
  }
  if (end < tokens->count)
    blank(walk, tokens->list[token].start,
          tokens->list[end].kind == CXX_NEWLINE ? tokens->list[end].start : tokens->list[end].end);
}

/* kernel<<<a, b>>>(c) is kernel(c) for libclang. */
static void blank_launch(const struct walk *walk, uint32_t token) {
  const struct cxx_tokens *tokens = walk->tokens;
  for (uint32_t end = token + 1, depth = 1; end < tokens->count; end++) {
    if (punct_is(tokens, end, CXX_LAUNCH))
      depth++;
    else if (punct_is(tokens, end, ';') || punct_is(tokens, end, '{'))
      return;
    else if (punct_is(tokens, end, CXX_LAUNCH_END) && --depth == 0) {
      blank(walk, tokens->list[token].start, tokens->list[end].end);
      return;
    }
  }
}

/* Returns the last token that it dealt with. */
static uint32_t plain_token(struct walk *walk, uint32_t at) {
  struct cxx_unit *unit = walk->unit;
  const struct cxx_token *token = &walk->tokens->list[at];
  const uint8_t *text = walk->tokens->bytes + token->start;
  size_t length = token->end - token->start;
  if (word_is(walk, at, "sgl_kernel_jit") && hides_jit(walk, at))
    unit->jit_hidden = true;
  if (!walk->active) {
    blank(walk, token->start, token->end);
    if (!walk->main)
      return at;
    unit->tokens.list[at].flags |= CXX_INACTIVE;
  } else if (token->kind == CXX_WORD && token->code == KW_NONE) {
    if (word_is(walk, at, "_Pragma"))
      blank_pragma(walk, at);
    if (feed_expansion(walk, text, length, at + 1, DEEPEST_EXPANSION)) {
      const struct cxx_macro *expanded = cxx_macro_find(&unit->macros, text, length);
      return expanded->function_like ? closing(walk->tokens, at + 1) : at;
    }
    int name = cxx_index_find(unit->scan, text, length);
    const struct cxx_macro *macro = name >= 0 ? cxx_macro_find(&unit->macros, text, length) : NULL;
    if (macro && macro->defined && (!macro->function_like || punct_is(walk->tokens, at + 1, '('))) {
      if (walk->main)
        macro_use(walk, at, name, macro);
      unit->feeding_plain = true;
    }
  } else if (punct_is(walk->tokens, at, CXX_LAUNCH)) {
    blank_launch(walk, at);
  }
  unit->feeding_inactive = !walk->active;
  cxx_scopes_token(unit, walk->tokens->bytes, token, walk->main ? at : CXX_NONE);
  unit->feeding_plain = false;
  return at;
}

static void walk_part(struct cxx_unit *unit, const struct source_file *file, const struct cxx_tokens *tokens,
                      uint32_t part, bool is_main, unsigned depth) {
  struct walk walk = {
      .unit = unit, .file = file, .tokens = tokens, .part = part, .main = is_main, .depth = depth, .active = true};
  bool outer = unit->feeding_main;
  unit->feeding_main = is_main;
  for (uint32_t at = 0; at < tokens->count; at++) {
    if (tokens->list[at].kind != CXX_HASH) {
      at = plain_token(&walk, at);
      continue;
    }
    uint32_t first = at;
    at = directive(&walk, first);
    if (word_is(&walk, first + 1, "define")) {
      for (uint32_t i = first; i < at; i++)
        if (word_is(&walk, i, "_Pragma"))
          blank_pragma(&walk, i);
      if (walk.main)
        define_names(&walk, first, at);
    }
  }
  free(walk.conditions);
  unit->feeding_main = outer;
}

/* --- the unit ----------------------------------------------------------------------------------------------------- */

struct vendor {
  const char *word;
  enum catalog_platform platform;
};

/* A source of another GPU vendor, by its ending, the end of its name or a folder. */
static bool find_backend(const char *path, enum catalog_platform *platform) {
  static const struct vendor vendors[] = {{"musa", CATALOG_MUSA}, {"hip", CATALOG_ROCM}, {"rocm", CATALOG_ROCM},
                                          {"xpu", CATALOG_XPU},   {"npu", CATALOG_XPU},  {NULL, CATALOG_CUDA}};
  static const struct vendor endings[] = {
      {".mu", CATALOG_MUSA}, {".muh", CATALOG_MUSA}, {".hip", CATALOG_ROCM}, {NULL, CATALOG_CUDA}};
  const char *slash = strrchr(path, '/'), *dot = strrchr(slash ? slash : path, '.');
  for (const struct vendor *e = endings; e->word && dot; e++)
    if (strcasecmp(dot, e->word) == 0) {
      *platform = e->platform;
      return true;
    }
  for (const struct vendor *v = vendors; v->word; v++) {
    size_t length = strlen(v->word);
    for (const char *at = path; (at = strcasestr(at, v->word)) != NULL; at += length) {
      bool starts = at == path || at[-1] == '/', in_name = at > path && at[-1] == '_' && at + length == dot;
      if (in_name || (starts && at[length] == '/')) {
        *platform = v->platform;
        return true;
      }
    }
  }
  return false;
}

static void find_lines(struct cxx_unit *unit) {
  const uint8_t *bytes = unit->tokens.bytes;
  uint32_t capacity = 0;
  for (size_t at = 0; at <= unit->tokens.size;) {
    if (unit->lines_count == capacity) {
      capacity = capacity ? 2 * capacity : 256;
      unit->lines = scan_alloc(unit->lines, capacity * sizeof *unit->lines);
    }
    unit->lines[unit->lines_count++] = (uint32_t)at;
    const uint8_t *newline = at < unit->tokens.size ? memchr(bytes + at, '\n', unit->tokens.size - at) : NULL;
    if (!newline)
      break;
    at = (size_t)(newline - bytes) + 1;
  }
}

void cxx_unit_position(const struct cxx_unit *unit, size_t offset, uint32_t *line, uint32_t *column) {
  uint32_t low = 0, high = unit->lines_count;
  while (high - low > 1) {
    uint32_t middle = (low + high) / 2;
    if (unit->lines[middle] <= offset)
      low = middle;
    else
      high = middle;
  }
  *line = low + 1;
  *column = (uint32_t)(offset - unit->lines[low]) + 1;
}

static int unit_name(const struct cxx_unit *unit, uint32_t token) {
  struct cxx_string word = cxx_unit_text(unit, token);
  return cxx_index_find(unit->scan, word.text, word.length);
}

/* The catalog name that a word with line continuations inside is, or -1. */
static int spliced_name(const struct cxx_unit *unit, uint32_t token) {
  for (int name = 0; cxx_index_name(unit->scan, name); name++)
    if (cxx_token_is(&unit->tokens, &unit->tokens.list[token], cxx_index_name(unit->scan, name)->word))
      return name;
  return -1;
}

/* The macros of the command line and its forced headers, in front of everything else. */
static void read_config(struct cxx_unit *unit) {
  const struct cxx_config *config = unit->config;
  unit->first_forced = unit->parts_count;
  for (unsigned i = 0; i <= config->forced_count; i++) {
    const struct source_file *file = i ? config->forced[i - 1] : unit->file;
    const void *bytes = i ? (const void *)file->bytes : config->text;
    size_t size = i ? file->size : config->text_size;
    if (i && file == unit->file)
      continue;
    if (i)
      cxx_asked(CXX_FACT_CONTENT, file->path, strlen(file->path));
    struct cxx_tokens tokens;
    uint32_t part = add_part(unit, i ? file : NULL, bytes, size, i == 0);
    cxx_lex(&tokens, bytes, size);
    walk_part(unit, file, &tokens, part, false, 1);
    cxx_tokens_free(&tokens);
  }
  unit->end_forced = unit->parts_count;
}

void cxx_unit_read(struct cxx_unit *unit, const struct scan *scan, const struct source_file *file,
                   const struct source_file *root, const struct cxx_config *config, bool alone) {
  *unit = (struct cxx_unit){.scan = scan, .file = file, .config = config, .alone = alone};
  const char *dot = strrchr(file->path, '.');
  unit->c_source = dot && strcmp(dot, ".c") == 0 && !(config && config->cxx);
  unit->platform = CATALOG_CUDA;
  unit->backend = find_backend(file->path, &unit->platform);
  unit->macros.arena = &unit->arena;
  bool cuda = (dot && (strcasecmp(dot, ".cu") == 0 || strcasecmp(dot, ".cuh") == 0)) || (config && config->cuda);
  cxx_macros_predefine(&unit->macros, cuda);
  if (unit->c_source)
    cxx_macro_undefine(&unit->macros, (const uint8_t *)"__cplusplus", 11);
  struct cxx_tokens own;
  const struct cxx_tokens *known = cxx_index_tokens(scan, file, &own);
  if (known == &own)
    unit->tokens = own;
  else
    cxx_tokens_copy(&unit->tokens, known); /* the unit's get flags */
  unit->use_of = scan_alloc(NULL, unit->tokens.count * sizeof *unit->use_of);
  memset(unit->use_of, 0, unit->tokens.count * sizeof *unit->use_of);
  find_lines(unit);
  unit->times = scan_alloc(NULL, scan->files_count);
  memset(unit->times, 0, scan->files_count);
  find_macro_arguments(unit);
  cxx_scopes_begin(unit);
  add_part(unit, file, file->bytes, file->size, false);
  if (config)
    read_config(unit);
  if (root) {
    unit->root_part = add_part(unit, root, root->bytes, root->size, false);
    unit->times[root - scan->files] = MOST_TIMES;
    walk_part(unit, root, cxx_index_tokens(scan, root, &own), unit->root_part, false, 0);
    cxx_tokens_free(&own);
  } else {
    unit->reached = true;
    walk_part(unit, file, &unit->tokens, 0, true, 0);
  }
  cxx_scopes_end(unit);
  for (uint32_t i = 0; i < unit->tokens.count; i++) {
    const struct cxx_token *token = &unit->tokens.list[i];
    if (token->kind != CXX_WORD || token->code != KW_NONE || unit->use_of[i] || (token->flags & CXX_DIRECTIVE))
      continue;
    int name = token->flags & CXX_SPLICED ? spliced_name(unit, i) : unit_name(unit, i);
    if (name >= 0)
      cxx_scopes_leftover(unit, i, name);
  }
  cxx_scopes_resolve(unit);
}

void cxx_unit_free(struct cxx_unit *unit) {
  for (uint32_t i = 0; i < unit->parts_count; i++)
    free(unit->parts[i].text);
  free(unit->parts);
  free(unit->directives);
  free(unit->uses);
  free(unit->use_of);
  free(unit->times);
  free(unit->lines);
  free(unit->strings);
  cxx_tokens_free(&unit->tokens);
  arena_free(&unit->arena);
}

const struct catalog_symbol *cxx_unit_removed(const struct cxx_unit *unit, int name) {
  const struct cxx_name *entry = cxx_index_name(unit->scan, name);
  enum catalog_layer layer = entry->is_template ? CATALOG_LAYER_SOURCES : CATALOG_LAYER_CXX;
  for (unsigned i = 0; i < entry->symbols_count; i++)
    if (catalog_is_removed(entry->symbols[i], layer, unit->platform, unit->scan->options.kernel))
      return entry->symbols[i];
  return NULL;
}

struct cxx_string cxx_unit_text(const struct cxx_unit *unit, uint32_t token) {
  const struct cxx_token *t = &unit->tokens.list[token];
  return (struct cxx_string){unit->tokens.bytes + t->start, t->end - t->start};
}
