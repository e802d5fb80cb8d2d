/* Operators that C++ sources define, m.def("name(Tensor a) -> Tensor", ...), and the parts of a schema. */
#include "scanner/cxx_lexer.h"
#include "scanner/surface.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

/* --- a schema ----------------------------------------------------------------------------------------------------- */

static bool is_word(char c) {
  return c == '_' || isalnum((unsigned char)c);
}

/* Copies without any blank: "Tensor ? " is "Tensor?". */
static char *tight(struct arena *arena, const char *text, size_t size) {
  char *copy = arena_alloc(arena, size + 1);
  size_t used = 0;
  for (size_t i = 0; i < size; i++)
    if (!isspace((unsigned char)text[i]))
      copy[used++] = text[i];
  return copy;
}

/* One argument: type, name, default. */
static struct surface_parameter split_argument(struct arena *arena, const char *text, size_t size) {
  struct surface_parameter parameter = {.name = ""};
  size_t equal = 0;
  int depth = 0;
  for (; equal < size && (text[equal] != '=' || depth); equal++)
    depth += (text[equal] == '(' || text[equal] == '[') - (text[equal] == ')' || text[equal] == ']');
  if (equal < size)
    parameter.value = tight(arena, text + equal + 1, size - equal - 1);
  size_t end = equal;
  while (end && isspace((unsigned char)text[end - 1]))
    end--;
  size_t start = end;
  while (start && is_word(text[start - 1]))
    start--;
  if (start && start < end) {
    parameter.name = arena_copy(arena, text + start, end - start);
    end = start;
  }
  parameter.type = tight(arena, text, end);
  return parameter;
}

/* The bracket that closes the one at text[0]; size when there is none. */
static size_t closing(const char *text, size_t size) {
  int depth = 0;
  for (size_t i = 0; i < size; i++) {
    depth += (text[i] == '(' || text[i] == '[') - (text[i] == ')' || text[i] == ']');
    if (depth == 0)
      return i;
  }
  return size;
}

static void split_arguments(struct arena *arena, const char *text, size_t size, struct surface_signature *signature) {
  size_t most = 1, count = 0;
  for (size_t i = 0; i < size; i++)
    most += text[i] == ',';
  struct surface_parameter *list = arena_alloc(arena, most * sizeof *list);
  bool keyword = false;
  for (size_t start = 0; start < size;) {
    int depth = 0;
    size_t end = start;
    for (; end < size && (text[end] != ',' || depth); end++)
      depth += (text[end] == '(' || text[end] == '[') - (text[end] == ')' || text[end] == ']');
    struct surface_parameter one = split_argument(arena, text + start, end - start);
    if (strcmp(one.type, "*") == 0 && !*one.name) {
      keyword = true;
    } else if (*one.type || *one.name) {
      one.kind = keyword ? PARAMETER_KEYWORD : PARAMETER_PLAIN;
      list[count++] = one;
    }
    start = end + 1;
  }
  signature->parameters = list;
  signature->count = count;
}

/* "(Tensor[])" returns one value, and torch prints it without the brackets. */
static const char *without_brackets(struct arena *arena, const char *returns) {
  size_t length = strlen(returns);
  if (length < 3 || returns[0] != '(' || closing(returns, length) != length - 1 || strchr(returns, ','))
    return returns;
  return arena_copy(arena, returns + 1, length - 2);
}

/* As torch prints it. */
static const char *schema_text(struct arena *arena, const struct surface_signature *signature) {
  const char *text = "(";
  bool keyword = false;
  for (size_t i = 0; i < signature->count; i++) {
    const struct surface_parameter *one = &signature->parameters[i];
    const char *star = one->kind == PARAMETER_KEYWORD && !keyword ? "*, " : "";
    keyword |= one->kind == PARAMETER_KEYWORD;
    text = surface_format(arena, "%s%s%s%s%s%s%s%s", text, i ? ", " : "", star, one->type, *one->name ? " " : "",
                          one->name, one->value ? "=" : "", one->value ? one->value : "");
  }
  return surface_format(arena, "%s) -> %s", text, signature->returns);
}

bool surface_operator(struct surface *surface, enum catalog_platform platform, const char *schema, size_t size,
                      const char *place) {
  const char *space = surface->catalog->library.op_namespace;
  size_t at = strlen(space), name = 0;
  if (size > at + 2 && memcmp(schema, space, at) == 0 && schema[at] == ':' && schema[at + 1] == ':')
    name = at + 2;
  for (at = name; at < size && (is_word(schema[at]) || schema[at] == '.'); at++)
    ;
  size_t open = at;
  while (open < size && isspace((unsigned char)schema[open]))
    open++;
  if (at == name || (open < size && schema[open] != '('))
    return false;
  struct surface_signature signature = {.text = "", .returns = ""};
  if (open < size) {
    size_t close = open + closing(schema + open, size - open), arrow = close + 1;
    while (arrow < size && isspace((unsigned char)schema[arrow]))
      arrow++;
    if (close >= size || size - arrow < 3 || schema[arrow] != '-' || schema[arrow + 1] != '>')
      return false;
    split_arguments(&surface->arena, schema + open + 1, close - open - 1, &signature);
    signature.returns = surface_plain(&surface->arena, schema + arrow + 2, size - arrow - 2);
    while (*signature.returns == ' ')
      signature.returns++;
    signature.returns = without_brackets(&surface->arena, signature.returns);
    signature.split = true;
    signature.text = schema_text(&surface->arena, &signature);
  }
  struct surface_item *item =
      surface_add(surface, CATALOG_LAYER_OPERATOR, arena_copy(&surface->arena, schema + name, at - name));
  item->platform = platform;
  item->signature = signature;
  item->place = place;
  return true;
}

/* --- C++ sources -------------------------------------------------------------------------------------------------- */

/* Whose build a file belongs to, by the words of its path. */
static enum catalog_platform platform_of(const char *path) {
  static const struct {
    const char *word;
    enum catalog_platform platform;
  } words[] = {{"rocm", CATALOG_ROCM},
               {"hip", CATALOG_ROCM},
               {"musa", CATALOG_MUSA},
               {"xpu", CATALOG_XPU},
               {"cpu", CATALOG_CPU}};
  for (const char *at = path; *at;) {
    size_t length = 0;
    while (isalnum((unsigned char)at[length]))
      length++;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
      if (strlen(words[i].word) == length && strncasecmp(at, words[i].word, length) == 0)
        return words[i].platform;
    at += length;
    while (*at && !isalnum((unsigned char)*at))
      at++;
  }
  return CATALOG_CUDA;
}

static bool punct(const struct cxx_tokens *tokens, uint32_t i, unsigned code) {
  return i < tokens->count && tokens->list[i].kind == CXX_PUNCT && tokens->list[i].code == code;
}

static bool starts(const struct cxx_tokens *tokens, const struct cxx_token *token, const char *text) {
  size_t length = strlen(text);
  return token->end - token->start >= length && memcmp(tokens->bytes + token->start, text, length) == 0;
}

/* TORCH_LIBRARY(sgl_kernel, m), TORCH_LIBRARY_FRAGMENT(...), or a macro around one: is the namespace the catalog's?
 * One that the build gives (TORCH_EXTENSION_NAME) is taken for it. */
static bool own_namespace(const struct surface *surface, const struct cxx_tokens *tokens, uint32_t i) {
  for (i++; i < tokens->count && !punct(tokens, i, ',') && !punct(tokens, i, '{'); i++)
    if (tokens->list[i].kind == CXX_WORD &&
        (cxx_token_is(tokens, &tokens->list[i], surface->catalog->library.op_namespace) ||
         cxx_token_is(tokens, &tokens->list[i], "TORCH_EXTENSION_NAME")))
      return true;
  return false;
}

/* The string that begins a call's arguments, at or behind an opening bracket. */
static void take_definition(struct surface *surface, const struct cxx_tokens *tokens, uint32_t i, const char *path,
                            enum catalog_platform platform) {
  struct cxx_text text = {0};
  uint32_t first = 0;
  while (i < tokens->count &&
         (punct(tokens, i, '(') || (tokens->list[i].kind == CXX_WORD && punct(tokens, i + 1, '('))))
    i++;
  for (; i < tokens->count && (tokens->list[i].kind == CXX_STRING || tokens->list[i].kind == CXX_NEWLINE); i++)
    if (tokens->list[i].kind == CXX_STRING) {
      first = first ? first : i;
      cxx_text_append(&text, tokens, &tokens->list[i]);
    }
  if (text.size) {
    uint32_t line, column;
    rules_position(tokens->bytes, tokens->size, tokens->list[first].start, &line, &column);
    surface_operator(surface, platform, (const char *)text.value, text.size,
                     surface_format(&surface->arena, "%s:%u", path, line));
  }
  cxx_text_free(&text);
}

void surface_sources(struct surface *surface, const char *path, const uint8_t *bytes, size_t size) {
  if (!memmem(bytes, size, "TORCH_LIBRARY", 13))
    return;
  struct cxx_tokens tokens;
  enum catalog_platform platform = platform_of(path);
  bool own = false;
  cxx_lex(&tokens, bytes, size);
  for (uint32_t i = 0; i < tokens.count; i++) {
    const struct cxx_token *token = &tokens.list[i];
    if (token->kind != CXX_WORD || token->flags & CXX_DIRECTIVE)
      continue;
    if (starts(&tokens, token, "TORCH_LIBRARY") && punct(&tokens, i + 1, '(')) {
      own = !starts(&tokens, token, "TORCH_LIBRARY_IMPL") && own_namespace(surface, &tokens, i + 1);
      surface->has[CATALOG_LAYER_OPERATOR][platform] |= own;
    } else if (own && cxx_token_is(&tokens, token, "def") && punct(&tokens, i + 1, '(') && i > 0 &&
               punct(&tokens, i - 1, '.')) {
      take_definition(surface, &tokens, i + 1, path, platform);
    }
  }
  cxx_tokens_free(&tokens);
}
