/* C, C++ and CUDA text to tokens. */
#include "scanner/cxx_lexer.h"

#include "scanner/scanner.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct lexer {
  struct cxx_tokens *out;
  const uint8_t *bytes;
  size_t size, at;
  bool line_start;      /* only space and comments so far on this logical line */
  bool directive;       /* inside one */
  bool wants_header;    /* after #include */
  unsigned launches;    /* <<< that wait for >>> */
  int depth;            /* open parentheses */
  int launch_depth[16]; /* depth at each open <<< */
};

static bool word_start(uint8_t c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || c >= 0x80;
}

static bool digit(uint8_t c) {
  return c >= '0' && c <= '9';
}

static bool word_byte(uint8_t c) {
  return word_start(c) || digit(c);
}

/* --- keywords ----------------------------------------------------------------------------------------------------- */

static const struct {
  const char *text;
  uint8_t length;
} keywords[] = {{"", 0},
#define CXX_KEYWORD(word) {#word, sizeof #word - 1},
                CXX_KEYWORDS(CXX_KEYWORD, CXX_KEYWORD, CXX_KEYWORD, CXX_KEYWORD)
#undef CXX_KEYWORD
};

enum { KEYWORD_OTHER, KEYWORD_TYPE, KEYWORD_QUALIFIER, KEYWORD_EXPRESSION };
static const uint8_t keyword_classes[] = {KEYWORD_OTHER,
#define CXX_TYPE(word) KEYWORD_TYPE,
#define CXX_QUALIFIER(word) KEYWORD_QUALIFIER,
#define CXX_EXPRESSION(word) KEYWORD_EXPRESSION,
#define CXX_OTHER(word) KEYWORD_OTHER,
                                          CXX_KEYWORDS(CXX_TYPE, CXX_QUALIFIER, CXX_EXPRESSION, CXX_OTHER)};

bool cxx_keyword_is_type(unsigned keyword) {
  return keyword_classes[keyword] == KEYWORD_TYPE;
}

bool cxx_keyword_is_qualifier(unsigned keyword) {
  return keyword_classes[keyword] == KEYWORD_QUALIFIER;
}

bool cxx_keyword_is_expression(unsigned keyword) {
  return keyword_classes[keyword] == KEYWORD_EXPRESSION;
}

#define KEYWORDS (sizeof keywords / sizeof *keywords)
#define KEYWORD_BUCKETS 256

/* Keywords by first letter and length, each list in the order of the table; 0 ends it. */
static uint16_t keyword_first[KEYWORD_BUCKETS], keyword_next[KEYWORDS];
static pthread_once_t keywords_once = PTHREAD_ONCE_INIT;

static size_t keyword_bucket(uint8_t first, size_t length) {
  return (first * 17u + length) % KEYWORD_BUCKETS;
}

static void index_keywords(void) {
  for (size_t i = KEYWORDS; i-- > 1;) {
    uint16_t *bucket = &keyword_first[keyword_bucket((uint8_t)keywords[i].text[0], keywords[i].length)];
    keyword_next[i] = *bucket;
    *bucket = (uint16_t)i;
  }
}

static uint16_t find_keyword(const uint8_t *text, size_t length) {
  if (length < 2 || length > 16 || text[0] < '_' || text[0] > 'w')
    return KW_NONE;
  uint16_t i = keyword_first[keyword_bucket(text[0], length)];
  while (i && (keywords[i].length != length || memcmp(keywords[i].text, text, length) != 0))
    i = keyword_next[i];
  return i;
}

/* --- characters ----------------------------------------------------------------------------------------------------
 */

static bool blank_byte(uint8_t c) {
  return c == ' ' || c == '\t' || c == '\r';
}

/* Length of a line continuation at `at`: a backslash, blanks (compilers accept them), a line break. 0: none. */
static size_t splice(const struct lexer *l, size_t at) {
  if (at >= l->size || l->bytes[at] != '\\')
    return 0;
  size_t end = at + 1;
  while (end < l->size && blank_byte(l->bytes[end]))
    end++;
  return end < l->size && l->bytes[end] == '\n' ? end + 1 - at : 0;
}

/* Moves over line continuations; then the byte there, or -1 at the end. */
static int look(const struct lexer *l, size_t *at) {
  size_t length;
  while ((length = splice(l, *at)) != 0)
    *at += length;
  return *at < l->size ? l->bytes[*at] : -1;
}

static void add_token(struct lexer *l, enum cxx_kind kind, unsigned code, size_t start, size_t end, unsigned flags) {
  struct cxx_tokens *out = l->out;
  if (out->count == out->capacity) {
    out->capacity = out->capacity ? 2 * out->capacity : 256;
    out->list = scan_alloc(out->list, out->capacity * sizeof *out->list);
  }
  out->list[out->count++] = (struct cxx_token){
      .start = (uint32_t)start,
      .end = (uint32_t)end,
      .code = (uint16_t)code,
      .kind = (uint8_t)kind,
      .flags = (uint8_t)(flags | (l->directive ? CXX_DIRECTIVE : 0)),
  };
}

static void add_comment(struct lexer *l, size_t start, size_t end) {
  struct cxx_tokens *out = l->out;
  if (out->comments_count == out->comments_capacity) {
    out->comments_capacity = out->comments_capacity ? 2 * out->comments_capacity : 64;
    out->comments = scan_alloc(out->comments, out->comments_capacity * sizeof *out->comments);
  }
  out->comments[out->comments_count++] = (struct cxx_comment){(uint32_t)start, (uint32_t)end};
}

/* --- comments, strings, numbers, words -----------------------------------------------------------------------------
 */

static void line_comment(struct lexer *l) {
  size_t start = l->at;
  for (bool spliced = true; spliced;) {
    const uint8_t *newline = l->at < l->size ? memchr(l->bytes + l->at, '\n', l->size - l->at) : NULL;
    size_t end = newline ? (size_t)(newline - l->bytes) : l->size, back = end;
    while (back > l->at && blank_byte(l->bytes[back - 1]))
      back--;
    spliced = newline && back > l->at && l->bytes[back - 1] == '\\';
    l->at = spliced ? end + 1 : end;
  }
  add_comment(l, start, l->at);
}

static void block_comment(struct lexer *l, size_t body) {
  size_t start = l->at;
  const uint8_t *end = NULL;
  for (size_t at = body; at < l->size && !end;) {
    const uint8_t *star = memchr(l->bytes + at, '*', l->size - at);
    if (!star)
      break;
    at = (size_t)(star - l->bytes) + 1;
    size_t next = at;
    if (look(l, &next) == '/')
      end = l->bytes + next + 1;
  }
  l->at = end ? (size_t)(end - l->bytes) : l->size;
  add_comment(l, start, l->at);
}

/* From the opening quote on; `start` is where the prefix begins. */
static void quoted(struct lexer *l, size_t start, uint8_t quote) {
  bool spliced = false;
  l->at++;
  while (l->at < l->size) {
    size_t length = splice(l, l->at);
    if (length) {
      l->at += length;
      spliced = true;
      continue;
    }
    uint8_t c = l->bytes[l->at];
    if (c == '\n')
      break; /* not finished: the line ends it */
    l->at++;
    if (c == quote)
      break;
    if (c == '\\' && l->at < l->size && l->bytes[l->at] != '\n')
      l->at++;
  }
  add_token(l, quote == '"' ? CXX_STRING : CXX_CHAR, 0, start, l->at, spliced ? CXX_SPLICED : 0);
}

/* R"delimiter( ... )delimiter"; false when it is no raw string after all. */
static bool raw_string(struct lexer *l, size_t start) {
  size_t open = l->at + 1, at = open;
  while (at < l->size && at - open <= 16 && l->bytes[at] != '(' && l->bytes[at] != ')' && l->bytes[at] != '\\' &&
         l->bytes[at] != '"' && l->bytes[at] > ' ')
    at++;
  if (at >= l->size || l->bytes[at] != '(' || at - open > 16)
    return false;
  size_t length = at - open;
  for (size_t close = at + 1; close < l->size; close++) {
    const uint8_t *found = memchr(l->bytes + close, ')', l->size - close);
    if (!found)
      break;
    close = (size_t)(found - l->bytes);
    if (l->size - close >= length + 2 && memcmp(found + 1, l->bytes + open, length) == 0 && found[1 + length] == '"') {
      l->at = close + length + 2;
      add_token(l, CXX_STRING, 0, start, l->at, CXX_RAW);
      return true;
    }
  }
  l->at = l->size;
  add_token(l, CXX_STRING, 0, start, l->at, CXX_RAW);
  return true;
}

static void number(struct lexer *l) {
  size_t start = l->at;
  unsigned flags = 0;
  uint8_t last = 0;
  for (;;) {
    size_t at = l->at;
    int c = look(l, &at);
    if (c < 0)
      break;
    size_t after = at + 1;
    bool part = word_byte((uint8_t)c) || c == '.';
    if ((c == '+' || c == '-') && (last == 'e' || last == 'E' || last == 'p' || last == 'P'))
      part = true;
    if (c == '\'') { /* a digit separator stands between digits or letters */
      int next = look(l, &after);
      part = next >= 0 && word_byte((uint8_t)next) && l->at != start;
      after = at + 1;
    }
    if (!part)
      break;
    if (at != l->at)
      flags = CXX_SPLICED;
    last = (uint8_t)c;
    l->at = after;
  }
  add_token(l, CXX_NUMBER, 0, start, l->at, flags);
}

static bool prefix_is(const uint8_t *text, size_t length, const char *const *list) {
  for (; *list; list++)
    if (strlen(*list) == length && memcmp(text, *list, length) == 0)
      return true;
  return false;
}

/* The name of the directive just read decides whether <...> is a header's name. */
static bool names_header(const uint8_t *text, size_t length) {
  static const char *const names[] = {"include",       "include_next", "import", "embed",
                                      "__has_include", "__has_embed",  NULL};
  return prefix_is(text, length, names);
}

static void word(struct lexer *l) {
  static const char *const string_prefixes[] = {"L", "u", "U", "u8", NULL};
  static const char *const raw_prefixes[] = {"R", "LR", "uR", "UR", "u8R", NULL};
  size_t start = l->at;
  unsigned flags = 0;
  for (;;) {
    while (l->at < l->size && word_byte(l->bytes[l->at]))
      l->at++;
    size_t at = l->at;
    int c = look(l, &at);
    if (at == l->at || c < 0 || !word_byte((uint8_t)c))
      break;
    l->at = at; /* the word goes on behind a line continuation */
    flags = CXX_SPLICED;
  }
  const uint8_t *text = l->bytes + start;
  size_t length = l->at - start;
  if (l->at < l->size && l->bytes[l->at] == '"') {
    if (prefix_is(text, length, raw_prefixes) && raw_string(l, start))
      return;
    if (prefix_is(text, length, string_prefixes)) {
      quoted(l, start, '"');
      return;
    }
  }
  if (l->at < l->size && l->bytes[l->at] == '\'' && prefix_is(text, length, string_prefixes)) {
    quoted(l, start, '\'');
    return;
  }
  if (l->directive && flags == 0)
    l->wants_header = names_header(text, length);
  add_token(l, CXX_WORD, flags ? KW_NONE : find_keyword(text, length), start, l->at, flags);
}

/* --- punctuation ---------------------------------------------------------------------------------------------------
 */

static const struct {
  const char *text;
  uint16_t code;
} puncts[] = {
    /* longest first */
    {"<=>", CXX_SPACESHIP},
    {"<<=", CXX_ASSIGN},
    {">>=", CXX_ASSIGN},
    {"...", CXX_ELLIPSIS},
    {"->*", CXX_ARROW},
    {"::", CXX_SCOPE},
    {"->", CXX_ARROW},
    {".*", CXX_DOT_STAR},
    {"&&", CXX_AND_AND},
    {"||", CXX_OR_OR},
    {"==", CXX_EQUAL},
    {"!=", CXX_NOT_EQUAL},
    {"<=", CXX_LESS_EQUAL},
    {">=", CXX_GREATER_EQUAL},
    {"<<", CXX_SHIFT_LEFT},
    {">>", CXX_SHIFT_RIGHT},
    {"++", CXX_STEP},
    {"--", CXX_STEP},
    {"+=", CXX_ASSIGN},
    {"-=", CXX_ASSIGN},
    {"*=", CXX_ASSIGN},
    {"/=", CXX_ASSIGN},
    {"%=", CXX_ASSIGN},
    {"&=", CXX_ASSIGN},
    {"|=", CXX_ASSIGN},
    {"^=", CXX_ASSIGN},
    {"##", CXX_PASTE},
    {"<%", '{'},
    {"%>", '}'},
    {"<:", '['},
    {":>", ']'},
    {"%:", '#'},
};

/* The end of `text` when it stands at `at`, else 0. */
static size_t stands(const struct lexer *l, size_t at, const char *text) {
  for (; *text; text++, at++) {
    if (look(l, &at) != (uint8_t)*text)
      return 0;
  }
  return at;
}

/* <<< starts a launch after a kernel's name or its template arguments. */
static bool after_kernel_name(const struct lexer *l) {
  const struct cxx_tokens *out = l->out;
  if (l->directive || out->count == 0)
    return false;
  const struct cxx_token *last = &out->list[out->count - 1];
  return (last->kind == CXX_WORD && last->code == KW_NONE) ||
         (last->kind == CXX_PUNCT && (last->code == '>' || last->code == ')'));
}

static void punctuation(struct lexer *l) {
  size_t start = l->at, end;
  uint8_t c = l->bytes[start];
  if (c == '<' && l->launches < 16 && after_kernel_name(l) && (end = stands(l, start, "<<<")) != 0) {
    l->launch_depth[l->launches++] = l->depth;
    l->at = end;
    add_token(l, CXX_PUNCT, CXX_LAUNCH, start, end, 0);
    return;
  }
  if (c == '>' && l->launches > 0 && l->launch_depth[l->launches - 1] == l->depth &&
      (end = stands(l, start, ">>>")) != 0) {
    l->launches--;
    l->at = end;
    add_token(l, CXX_PUNCT, CXX_LAUNCH_END, start, end, 0);
    return;
  }
  unsigned code = c;
  end = start + 1;
  uint8_t next = end < l->size ? l->bytes[end] : ' ';
  bool single = c == '(' || c == ')' || c == ';' || c == ',' || next == ' ' || next == '\n' || word_byte(next);
  /* "<::" is "<" and "::", unless ":" or ">" follows. */
  bool scope = c == '<' && stands(l, start, "<::") && !stands(l, start, "<:::") && !stands(l, start, "<::>");
  if (!single && !scope) {
    for (size_t i = 0; i < sizeof puncts / sizeof *puncts; i++) {
      if (puncts[i].text[0] != (char)c)
        continue;
      size_t long_end = stands(l, start, puncts[i].text);
      if (long_end) {
        code = puncts[i].code;
        end = long_end;
        break;
      }
    }
  }
  l->at = end;
  if (code == '(')
    l->depth++;
  else if (code == ')')
    l->depth--;
  else if (code == ';' || code == '{' || code == '}')
    l->launches = 0; /* a launch never reaches over these outside of parentheses; broken text ends here */
  add_token(l, CXX_PUNCT, code, start, end, end - start > 3 ? CXX_SPLICED : 0);
}

/* --- lines -------------------------------------------------------------------------------------------------------- */

/* A line that an unresolved merge leaves: seven of <, =, > or | and then a blank or nothing. */
static size_t conflict_line(const struct lexer *l, size_t at) {
  uint8_t c = l->bytes[at];
  if (c != '<' && c != '=' && c != '>' && c != '|')
    return 0;
  size_t end = at;
  while (end < l->size && l->bytes[end] == c)
    end++;
  if (end - at != 7 || (end < l->size && l->bytes[end] != ' ' && l->bytes[end] != '\n' && l->bytes[end] != '\r'))
    return 0;
  while (end < l->size && l->bytes[end] != '\n')
    end++;
  return end;
}

/* The three lines of an unresolved merge in their order, whatever they stand in. */
static bool whole_conflict(const uint8_t *bytes, size_t size) {
  static const uint8_t marks[] = {'<', '=', '>'};
  unsigned seen = 0;
  const struct lexer l = {.bytes = bytes, .size = size};
  for (size_t at = 0; at < size && seen < 3;) {
    if (bytes[at] == marks[seen] && conflict_line(&l, at))
      seen++;
    const uint8_t *newline = memchr(bytes + at, '\n', size - at);
    at = newline ? (size_t)(newline - bytes) + 1 : size;
  }
  return seen == 3;
}

static void end_directive(struct lexer *l, size_t after) {
  if (l->directive)
    add_token(l, CXX_NEWLINE, 0, l->at, after, 0);
  l->directive = l->wants_header = false;
}

static bool header_name(struct lexer *l) {
  size_t end = l->at + 1;
  while (end < l->size && l->bytes[end] != '>' && l->bytes[end] != '\n')
    end++;
  if (end >= l->size || l->bytes[end] != '>')
    return false;
  add_token(l, CXX_HEADER, 0, l->at, end + 1, 0);
  l->at = end + 1;
  return true;
}

static void next_token(struct lexer *l) {
  size_t start = l->at;
  uint8_t c = l->bytes[start];
  if (c == '/') {
    size_t end;
    if (stands(l, start, "//")) {
      line_comment(l);
      return;
    }
    if ((end = stands(l, start, "/*")) != 0) {
      block_comment(l, end);
      return;
    }
  }
  size_t after = start + 1;
  bool hash = c == '#' || (c == '%' && stands(l, start, "%:"));
  if (hash && l->line_start && !l->directive) {
    after = c == '#' ? start + 1 : stands(l, start, "%:");
    l->directive = true;
    l->line_start = false;
    add_token(l, CXX_HASH, 0, start, after, 0);
    l->at = after;
    return;
  }
  l->line_start = false;
  bool header = l->wants_header;
  if (c != '(')
    l->wants_header = false; /* __has_include(<...>) keeps waiting over its parenthesis */
  if (header && c == '<' && header_name(l))
    return;
  if (word_start(c))
    word(l);
  else if (digit(c) || (c == '.' && after < l->size && digit(l->bytes[after])))
    number(l);
  else if (c == '"' || c == '\'')
    quoted(l, start, c);
  else
    punctuation(l);
}

void cxx_lex(struct cxx_tokens *tokens, const uint8_t *bytes, size_t size) {
  pthread_once(&keywords_once, index_keywords);
  if (size > CXX_LARGEST)
    size = CXX_LARGEST;
  *tokens = (struct cxx_tokens){.bytes = bytes, .size = size};
  struct lexer lexer = {.out = tokens, .bytes = bytes, .size = size, .line_start = true}, *l = &lexer;
  if (size >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0)
    l->at = 3;
  bool physical_start = true;
  while (l->at < size) {
    size_t conflict = physical_start ? conflict_line(l, l->at) : 0;
    if (conflict) {
      tokens->conflict = true;
      l->at = conflict;
    }
    physical_start = false;
    if (l->at < size && bytes[l->at] == ' ') {
      l->at++;
      continue;
    }
    size_t length = splice(l, l->at);
    if (length) {
      l->at += length;
      continue;
    }
    if (l->at >= size)
      break;
    uint8_t c = bytes[l->at];
    if (c == '\n') {
      end_directive(l, l->at + 1);
      l->at++;
      l->line_start = physical_start = true;
    } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v' || c == '\0') {
      l->at++;
    } else {
      next_token(l);
    }
  }
  end_directive(l, size);
  if (!tokens->conflict)
    tokens->conflict = whole_conflict(bytes, size);
}

void cxx_tokens_copy(struct cxx_tokens *tokens, const struct cxx_tokens *from) {
  *tokens = *from;
  tokens->capacity = from->count;
  tokens->comments_capacity = from->comments_count;
  tokens->list = scan_alloc(NULL, from->count * sizeof *tokens->list);
  tokens->comments = scan_alloc(NULL, from->comments_count * sizeof *tokens->comments);
  if (from->count)
    memcpy(tokens->list, from->list, from->count * sizeof *tokens->list);
  if (from->comments_count)
    memcpy(tokens->comments, from->comments, from->comments_count * sizeof *tokens->comments);
}

void cxx_tokens_free(struct cxx_tokens *tokens) {
  free(tokens->list);
  free(tokens->comments);
  *tokens = (struct cxx_tokens){0};
}

bool cxx_token_is(const struct cxx_tokens *tokens, const struct cxx_token *token, const char *text) {
  size_t length = strlen(text);
  if (!(token->flags & CXX_SPLICED))
    return token->end - token->start == length && memcmp(tokens->bytes + token->start, text, length) == 0;
  const struct lexer l = {.bytes = tokens->bytes, .size = token->end};
  size_t end = stands(&l, token->start, text);
  return end != 0 && look(&l, &end) < 0;
}

/* --- values of strings ---------------------------------------------------------------------------------------------
 */

static void add_value(struct cxx_text *text, uint8_t value, size_t offset) {
  if (text->size == text->capacity) {
    text->capacity = text->capacity ? 2 * text->capacity : 256;
    text->value = scan_alloc(text->value, text->capacity);
    text->offset = scan_alloc(text->offset, text->capacity * sizeof *text->offset);
  }
  text->value[text->size] = value;
  text->offset[text->size++] = (uint32_t)offset;
}

static int hex_value(uint8_t c) {
  if (digit(c))
    return c - '0';
  c |= 0x20;
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* An escape sequence after its backslash; returns the offset behind it. */
static size_t append_escape(struct cxx_text *text, const uint8_t *bytes, size_t at, size_t end) {
  static const char letters[] = "abfnrtv", values[] = "\a\b\f\n\r\t\v";
  size_t start = at - 1;
  uint8_t c = bytes[at++];
  const char *letter = c ? strchr(letters, c) : NULL;
  if (letter) {
    add_value(text, (uint8_t)values[letter - letters], start);
  } else if (c >= '0' && c <= '7') {
    unsigned value = c - '0';
    for (int i = 0; i < 2 && at < end && bytes[at] >= '0' && bytes[at] <= '7'; i++)
      value = 8 * value + (bytes[at++] - '0');
    add_value(text, (uint8_t)value, start);
  } else if (c == 'x' || c == 'u' || c == 'U') {
    size_t limit = c == 'x' ? end : at + (c == 'u' ? 4 : 8);
    unsigned value = 0;
    for (; at < end && at < limit && hex_value(bytes[at]) >= 0; at++)
      value = (value << 4 | (unsigned)hex_value(bytes[at])) & 0xffffff;
    add_value(text, value < 0x80 ? (uint8_t)value : '?', start);
  } else {
    add_value(text, c, start); /* quotes, the backslash, and what is no escape */
  }
  return at;
}

void cxx_text_append(struct cxx_text *text, const struct cxx_tokens *tokens, const struct cxx_token *token) {
  const uint8_t *bytes = tokens->bytes;
  size_t at = token->start, end = token->end;
  while (at < end && bytes[at] != '"')
    at++;
  at++;
  if (token->flags & CXX_RAW) {
    size_t open = at;
    while (at < end && bytes[at] != '(')
      at++;
    size_t tail = at - open + 2; /* )delimiter" */
    at++;
    size_t close = end >= at + tail && bytes[end - 1] == '"' ? end - tail : end;
    for (; at < close; at++)
      add_value(text, bytes[at], at);
    return;
  }
  if (end > at && bytes[end - 1] == '"')
    end--;
  const struct lexer l = {.bytes = bytes, .size = token->end};
  while (at < end) {
    size_t length = splice(&l, at);
    if (length)
      at += length;
    else if (bytes[at] == '\\' && at + 1 < end)
      at = append_escape(text, bytes, at + 1, end);
    else {
      add_value(text, bytes[at], at);
      at++;
    }
  }
}

void cxx_text_free(struct cxx_text *text) {
  free(text->value);
  free(text->offset);
  *text = (struct cxx_text){0};
}
