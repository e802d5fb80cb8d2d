/* Which files need a tree at all. Parsing is the dearest step of a scan, and most files with a catalog name have it as
 * a name of their own: a method, a function of another package. So what a file must have for any finding is looked for
 * in its tokens first; in doubt the file is parsed. What only talks about a removed name, in a comment or a
 * documentation string, needs no tree either, when the tokens show whose the name is. Whoever adds a rule to the front
 * adds here what its findings need.
 */
#include "scanner/prefilter.h"
#include "scanner/python_front.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Longer than any name of a catalog; what of neighbouring literals is joined. */
#define JOINED 80

/* Where a name stands that may be a mention. */
enum place {
  PLACE_TEXT,    /* a comment or documentation: it is one, if the name is not the file's own */
  PLACE_UNCLEAR, /* a string: its tree says what it is for */
  PLACE_PIECE,   /* the same, and the bytes are not all of it or not its characters */
};

struct named {
  const uint8_t *word; /* NULL: it says itself that it is of the package */
  size_t length;
  size_t start, end; /* of the text */
  enum place place;
  enum py_whose whose;
};

/* A file with more is parsed. */
#define NAMED_MAX 64

struct lexer {
  const struct scan *scan;
  const uint8_t *bytes;
  size_t size, at;
  bool owner; /* the file may reach the package */
  bool self;  /* what is called self may be something else than an object of the class */
  struct arena arena;
  uint8_t tail[JOINED]; /* the end of the last string, while another one may continue it */
  size_t tail_size;
  uint8_t last;                 /* the last byte of code that is no blank */
  size_t open[PY_BRACKETS_MAX]; /* offsets of the brackets that are open */
  unsigned depth;
  bool unmatched; /* brackets do not match */
  struct named named[NAMED_MAX];
  unsigned named_count;
};

/* The package as one word, or put together from constants, "sgl_" and the rest; a name that another module of the tree
 * binds it to. With an sglang release its modules are owners too. */
static bool has_owner(const struct scan *scan, const struct source_file *file) {
  return (file->seen & SEEN_OWNER) || py_has(file, "sgl_") ||
         (scan->options.sglang_release && py_has(file, "sglang")) || py_index_exported(scan, file);
}

/* A coding line for something else than UTF-8. */
static bool other_coding(const uint8_t *bytes, size_t size) {
  const uint8_t *at = memmem(bytes, size, "coding", 6), *end = bytes + size;
  if (!at || (at += 6) == end || (*at != ':' && *at != '='))
    return at && at != end && memmem(at, (size_t)(end - at), "coding", 6);
  at++;
  while (at < end && py_blank(*at))
    at++;
  size_t length = end - at >= 5 && strncasecmp((const char *)at, "utf-8", 5) == 0  ? 5
                  : end - at >= 4 && strncasecmp((const char *)at, "utf8", 4) == 0 ? 4
                                                                                   : 0;
  return !length || (at + length < end && (py_word_byte(at[length]) || strchr("-.", at[length])));
}

/* Python would read other characters than are there, or none: a coding line, a carriage return that ends a line, bytes
 * that are no UTF-8. */
static bool unusual(const struct source_file *file) {
  const uint8_t *end = file->bytes + file->size, *second = memchr(file->bytes, '\n', file->size);
  const uint8_t *third = second ? memchr(second + 1, '\n', (size_t)(end - second - 1)) : NULL;
  size_t head = (size_t)((third ? third : end) - file->bytes);
  if (other_coding(file->bytes, head) || memchr(file->bytes, 0, file->size) || !py_utf8_valid(file->bytes, file->size))
    return true;
  for (const uint8_t *at = file->bytes; (at = memchr(at, '\r', (size_t)(end - at))); at++)
    if (at + 1 == end || at[1] != '\n')
      return true;
  return false;
}

/* A removed name; also a function or module that an sglang release has dropped. */
static bool is_name(const struct lexer *lexer, size_t from, size_t to) {
  const uint8_t *word = lexer->bytes + from;
  return rules_word_matters(lexer->scan, word, to - from) ||
         (lexer->scan->options.sglang_release && py_index_name(lexer->scan, word, to - from));
}

/* Keeps a name for the end, when all of the file is known. True when there is no more room. */
static bool keep(struct lexer *lexer, struct named named) {
  if (lexer->named_count == NAMED_MAX)
    return true;
  lexer->named[lexer->named_count++] = named;
  return false;
}

/* What is said about removed names in a comment, or in a string of a file without an owner: it can only be a mention,
 * of a word without another owner in front. True when only a tree can tell. */
static bool mentions(struct lexer *lexer, const uint8_t *text, size_t size, enum place place) {
  const struct catalog_symbol *symbol, *owned;
  const char *path;
  size_t length;
  for (size_t at = 0; (at = rules_next_name(lexer->scan, text, size, at, &symbol, &length)) != SIZE_MAX; at += length) {
    if (place != PLACE_PIECE && !py_mention_stands(text, size, at, at + length))
      continue;
    size_t start = (size_t)(text - lexer->bytes);
    struct named named = {.word = text + at, .length = length, .start = start, .end = start + size, .place = place};
    enum py_owner owner = py_owner_before(lexer->scan, &lexer->arena, text, at, length, &owned, &path);
    if (owner == PY_OWNER_OTHER && path && lexer->owner)
      return true; /* an alias */
    if (place == PLACE_PIECE && at >= 2 && text[at - 1] == '.' && text[at - 2] == '}')
      owner = PY_OWNER_NONE; /* a field of an f-string is anybody */
    if (owner == PY_OWNER_PACKAGE)
      named.word = NULL;
    else if (owner == PY_OWNER_OTHER || !rules_word_removed(lexer->scan, symbol, text + at, length) ||
             (place != PLACE_PIECE && py_module_file(text, size, at + length)))
      continue;
    if ((!named.word && place != PLACE_TEXT) || keep(lexer, named))
      return true;
  }
  return false;
}

/* In a string it may be live as well. */
static bool about(struct lexer *lexer, const uint8_t *text, size_t size, enum place place) {
  const struct catalog_symbol *symbol;
  size_t length;
  if (!lexer->owner)
    return mentions(lexer, text, size, place);
  for (size_t at = 0; (at = rules_next_name(lexer->scan, text, size, at, &symbol, &length)) != SIZE_MAX; at += length)
    if (rules_word_matters(lexer->scan, text + at, length))
      return true;
  return false;
}

static bool comment(struct lexer *lexer) {
  const uint8_t *start = lexer->bytes + lexer->at;
  const uint8_t *newline = memchr(start, '\n', lexer->size - lexer->at);
  size_t size = newline ? (size_t)(newline - start) : lexer->size - lexer->at;
  lexer->at += size;
  while (size && start[size - 1] == '\r')
    size--;
  return mentions(lexer, start, size, PLACE_TEXT);
}

/* --- strings ------------------------------------------------------------------------------------------------------ */

/* Can the word in front of a quote be the prefix of its string? "or" cannot. */
static bool prefix_letters(const uint8_t *word, size_t length) {
  for (size_t i = 0; i < length; i++)
    if (!strchr("rbuft", word[i] | 0x20))
      return false;
  return length <= 2;
}

/* A letter of the prefix in front of the quote: r, b, u, f, t. */
static bool has_prefix(const struct lexer *lexer, size_t prefix, char letter) {
  for (size_t at = lexer->at - prefix; at < lexer->at; at++)
    if ((lexer->bytes[at] | 0x20) == letter)
      return true;
  return false;
}

/* A name may be spelled in literals that stand side by side; so may the package, in a file that has no other owner. */
static bool joined(struct lexer *lexer, const uint8_t *text, size_t size) {
  uint8_t both[2 * JOINED];
  size_t head = size < JOINED ? size : JOINED, tail = lexer->tail_size;
  bool found = false;
  if (tail && head) {
    memcpy(both, lexer->tail, tail);
    memcpy(both + tail, text, head);
    found = (!lexer->owner && py_names_owner(lexer->scan, both, tail + head)) ||
            about(lexer, both, tail + head, PLACE_PIECE);
  }
  size_t kept = tail < JOINED - head ? tail : JOINED - head;
  memmove(lexer->tail, lexer->tail + tail - kept, kept);
  if (head)
    memcpy(lexer->tail + kept, text + size - head, head);
  lexer->tail_size = kept + head;
  return found;
}

static bool keyword(const uint8_t *word, size_t length) {
  static const char *const keywords[] = {
      "and",   "assert", "await", "case", "elif",   "else", "except", "if",   "in",     "is",    "lambda", "not",  "or",
      "match", "print",  "raise", "from", "return", "del",  "while",  "with", "import", "yield", "for",    "async"};
  for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++)
    if (strlen(keywords[i]) == length && memcmp(keywords[i], word, length) == 0)
      return true;
  return false;
}

/* Is the bracket that of a call whose function speaks to nobody? */
static bool quiet_call(const struct lexer *lexer, size_t bracket) {
  const uint8_t *bytes = lexer->bytes;
  size_t start = bracket;
  while (start > 0 && (py_word_byte(bytes[start - 1]) || bytes[start - 1] == '.'))
    start--;
  size_t length = bracket - start, before = start;
  while (before > 0 && py_between(bytes[before - 1]))
    before--;
  bool raised = before >= 5 && memcmp(bytes + before - 5, "raise", 5) == 0;
  return length && bytes[start] != '.' && !raised && !keyword(bytes + start, length) &&
         !py_speaks(bytes + start, length);
}

/* Is the string an argument or an element that no rule takes for text? start: of its prefix. */
static bool is_data(const struct lexer *lexer, size_t start, size_t from, size_t to, size_t end) {
  const uint8_t *bytes = lexer->bytes;
  unsigned words = 0;
  for (size_t i = from; i < to; i++)
    words += bytes[i] > ' ' && (i == from || bytes[i - 1] <= ' ');
  while (end < lexer->size && (py_blank(bytes[end]) || bytes[end] == '\n'))
    end++;
  if (words >= 3 || !lexer->depth || lexer->unmatched || start == 0 || !lexer->last || !strchr("([{,:/", lexer->last) ||
      end == lexer->size || !strchr(",)]}:", bytes[end]))
    return false;
  size_t bracket = lexer->open[lexer->depth - 1];
  return bytes[bracket] != '(' || quiet_call(lexer, bracket);
}

/* Is the string a statement of its own? */
static bool is_documentation(const struct lexer *lexer, size_t start, size_t end) {
  const uint8_t *bytes = lexer->bytes;
  while (start > 0 && (bytes[start - 1] == ' ' || bytes[start - 1] == '\t'))
    start--;
  bool first = start == 0 || py_ends_line(bytes, start - 1);
  while (end < lexer->size && (bytes[end] == ' ' || bytes[end] == '\t' || bytes[end] == '\r'))
    end++;
  return first && !lexer->depth && !lexer->unmatched && (end == lexer->size || strchr("\n#;", bytes[end]));
}

/* The text of a string without escapes and fields; that of an f-string is for people, whoever gets it. */
static bool whole(struct lexer *lexer, size_t prefix, bool fields, size_t from, size_t to, size_t end) {
  size_t start = from - (end - to) - prefix;
  if (lexer->owner || memchr(lexer->bytes + from, '\r', to - from))
    return about(lexer, lexer->bytes + from, to - from, PLACE_PIECE);
  if (!fields && is_data(lexer, start, from, to, end))
    return false;
  return about(lexer, lexer->bytes + from, to - from, is_documentation(lexer, start, end) ? PLACE_TEXT : PLACE_UNCLEAR);
}

/* Can the escape of these digits, x1b, u2500, U0001f600 or 033, be a character of a name? *length: how long they are.
 */
static bool spells(const uint8_t *text, const uint8_t *end, size_t *length) {
  bool octal = *text >= '0' && *text <= '9';
  unsigned base = octal ? 8 : 16, most = octal ? 3 : *text == 'x' ? 3 : *text == 'u' ? 5 : 9;
  size_t value = 0, at = !octal;
  for (; at < most && text + at < end; at++) {
    uint8_t c = text[at] | (text[at] >= 'A' ? 0x20 : 0);
    unsigned digit = c < '0' || c > 'f' ? base : c <= '9' ? c - (unsigned)'0' : c < 'a' ? base : c - (unsigned)'a' + 10;
    if (digit >= base)
      break;
    value = value * base + digit;
  }
  *length = at;
  bool whole = octal ? at > 0 : at == most;
  return !whole || (value < 0x80 && py_word_byte((uint8_t)value));
}

/* From the opening quote to behind the closing one. True when it may be about a removed name, or is not understood: a
 * field of an f-string with quotes of its own, a line without its closing quote, a character by its number. */
static bool string(struct lexer *lexer, size_t prefix) {
  const uint8_t *bytes = lexer->bytes;
  size_t size = lexer->size, at = lexer->at;
  uint8_t quote = bytes[at];
  bool triple = size - at >= 3 && bytes[at + 1] == quote && bytes[at + 2] == quote;
  bool raw = has_prefix(lexer, prefix, 'r'), fields = has_prefix(lexer, prefix, 'f') || has_prefix(lexer, prefix, 't');
  size_t start = at += triple ? 3 : 1, from = at;
  int depth = 0;
  bool plain = true; /* the bytes are its characters */
  static const bool plain_text[256] = {[0 ... 9] = true,     [11 ... '!'] = true,  ['#' ... '&'] = true,
                                       ['(' ... '['] = true, [']' ... 'z'] = true, ['|'] = true,
                                       ['~' ... 0xff] = true};
  for (; at < size; at++) {
    uint8_t c = bytes[at];
    if (plain_text[c])
      continue;
    if (c == quote && (!triple || (size - at >= 3 && bytes[at + 1] == quote && bytes[at + 2] == quote))) {
      lexer->at = at + (triple ? 3 : 1);
      return depth != 0 ||
             (plain ? whole(lexer, prefix, fields, start, at, lexer->at)
                    : about(lexer, bytes + from, at - from, PLACE_PIECE)) ||
             joined(lexer, bytes + start, at - start);
    }
    if (c == '\n' && !triple)
      return true;
    if (c == '\\' && at + 1 < size) {
      uint8_t next = bytes[++at];
      plain = plain && raw;
      if (raw || next == '\\' || next == '\'' || next == '"')
        continue;
      /* Behind an escape a new word begins, also behind a character by its number that is none of a name: of a colour
       * of terminals, of an image file. In front of a letter of another alphabet it is only searched for too much. */
      size_t length = 1;
      bool number = next == 'x' || next == 'u' || next == 'U' || (next >= '0' && next <= '9');
      if ((number && spells(bytes + at, bytes + size, &length)) || next == 'N' ||
          about(lexer, bytes + from, at - 1 - from, PLACE_PIECE))
        return true;
      at += length - 1;
      from = at + (number || strchr("abfnrtv\r\n", next) != NULL); /* "\d" is no escape */
    } else if (fields && depth == 0 && (c == '{' || c == '}') && at + 1 < size && bytes[at + 1] == c) {
      plain = false; /* a brace of the text */
      at++;
    } else if (fields && c == '{') {
      plain = false;
      depth++;
    } else if (fields && c == '}') {
      plain = false;
      depth--;
    }
  }
  return true;
}

/* --- code --------------------------------------------------------------------------------------------------------- */

/* Is the word an attribute: is there a dot in front? */
static bool attribute(const struct lexer *lexer, size_t from) {
  while (from > 0 && py_between(lexer->bytes[from - 1]))
    from--;
  return from > 0 && lexer->bytes[from - 1] == '.';
}

/* Is it an attribute of self? Nobody passes a package there. */
static bool of_self(const struct lexer *lexer, size_t from) {
  const uint8_t *bytes = lexer->bytes;
  return !lexer->self && from >= 6 && memcmp(bytes + from - 5, "self.", 5) == 0 && !py_word_byte(bytes[from - 6]) &&
         bytes[from - 6] != '.';
}

/* Is what stands at `at` the end of a bracket around targets: "(self) = ", "(x, self), y = ", "(self) in"? */
static bool closes_targets(const uint8_t *at, const uint8_t *end) {
  const uint8_t *start = at;
  while (at < end && (*at == ')' || *at == ']' || py_between(*at)))
    at++;
  return at > start && end - at >= 3 && (*at == ',' || (*at == '=' && at[1] != '=') || memcmp(at, "in", 2) == 0);
}

/* May something else than a parameter be called self? By what stands around the word. */
static bool binds_self(const struct source_file *file) {
  static const char *const binders[] = {"as", "for", "import", "global", "nonlocal", "def", "class"};
  const uint8_t *start = file->bytes, *end = start + file->size;
  for (const uint8_t *at = start; (at = memmem(at, (size_t)(end - at), "self", 4)); at += 4) {
    const uint8_t *next = at + 4, *before = at, *word;
    if ((at > start && py_word_byte(at[-1])) || (next < end && py_word_byte(*next)))
      continue;
    while (before > start && (py_blank(before[-1]) || before[-1] == '\n' || before[-1] == '\r'))
      before--;
    while (next < end && (py_blank(*next) || *next == '\n' || *next == '\r'))
      next++;
    for (word = before; word > start && py_word_byte(word[-1]);)
      word--;
    uint8_t last = before > start ? before[-1] : 0, first = next < end ? *next : 0;
    if (last == '\\' || first == '\\' || first == '=' || first == ':' || closes_targets(next, end) ||
        (last == ',' && first != ')' && first != '.') || (first == ',' && last != '('))
      return true;
    for (size_t i = 0; i < sizeof binders / sizeof *binders; i++)
      if (strlen(binders[i]) == (size_t)(before - word) && memcmp(binders[i], word, (size_t)(before - word)) == 0 &&
          first != '.' && first != '-')
        return true;
  }
  return false;
}

/* "from PATH" and "import PATH". */
enum module { MODULE_OTHER, MODULE_PACKAGE, MODULE_UNCLEAR };

/* Reads the path behind "from" or "import". That of somebody else is skipped: nothing in it is a use. */
static enum module module(struct lexer *lexer, char *path, size_t room) {
  const uint8_t *bytes = lexer->bytes;
  size_t at = lexer->at;
  while (at < lexer->size && py_blank(bytes[at]))
    at++;
  size_t start = at;
  while (at < lexer->size && (py_word_byte(bytes[at]) || bytes[at] == '.'))
    at++;
  size_t length = at - start;
  if (length == 0 || length >= room || at == lexer->size || (bytes[at] != ' ' && bytes[at] != '\n' && bytes[at] != ','))
    return MODULE_UNCLEAR;
  memcpy(path, bytes + start, length);
  path[length] = '\0';
  if (py_is_package(lexer->scan, path)) { /* the dots may have blanks around them */
    while (at < lexer->size && py_blank(bytes[at]))
      at++;
    bool goes_on = path[length - 1] == '.' || at == lexer->size || bytes[at] == '.' || bytes[at] == '\\';
    return goes_on ? MODULE_UNCLEAR : MODULE_PACKAGE;
  }
  if (strncmp(path, "torch", 5) == 0 || (strncmp(path, "sglang", 6) == 0 && lexer->scan->options.sglang_release))
    return MODULE_UNCLEAR;
  lexer->at = at;
  return MODULE_OTHER;
}

static void bracket(struct lexer *lexer, uint8_t c) {
  if (c == '(' || c == '[' || c == '{') {
    lexer->unmatched = lexer->unmatched || lexer->depth == PY_BRACKETS_MAX;
    if (!lexer->unmatched)
      lexer->open[lexer->depth++] = lexer->at;
  } else if (c == ')' || c == ']' || c == '}') {
    uint8_t opened = lexer->depth ? lexer->bytes[lexer->open[lexer->depth - 1]] : 0;
    lexer->unmatched = lexer->unmatched || opened != (c == ')' ? '(' : c == ']' ? '[' : '{');
    lexer->depth -= lexer->depth > 0;
  }
}

/* In code a name matters as an attribute (k.NAME) and in an import of the package; else it is the file's own or what an
 * import bound, which is no result. anywhere: there is a star import, or a keyword of patch.multiple may be one. */
static bool tokens(struct lexer *lexer, bool anywhere) {
  enum module from_module = MODULE_OTHER; /* from "from" to the end of its line or parenthesis */
  char path[128];
  size_t prefix = 0; /* length of the letters in front of a quote */
  while (lexer->at < lexer->size) {
    size_t from = lexer->at;
    uint8_t c = lexer->bytes[from];
    if (c == ' ') {
      lexer->at++;
    } else if (c == '#') {
      if (comment(lexer))
        return true;
    } else if (c == '"' || c == '\'') {
      if (string(lexer, prefix))
        return true;
      lexer->last = c;
      prefix = 0;
    } else if (py_word_byte(c)) {
      size_t to = from + 1;
      while (to < lexer->size && py_word_byte(lexer->bytes[to]))
        to++;
      size_t length = to - from;
      lexer->at = to;
      bool quoted = to < lexer->size && (lexer->bytes[to] == '"' || lexer->bytes[to] == '\'');
      bool is_prefix = quoted && prefix_letters(lexer->bytes + from, length);
      lexer->tail_size = is_prefix ? lexer->tail_size : 0;
      prefix = is_prefix ? length : 0;
      lexer->last = is_prefix ? lexer->last : c;
      if (length == 4 && c == 'f' && memcmp(lexer->bytes + from, "from", 4) == 0) {
        from_module = module(lexer, path, sizeof path);
      } else if (length == 6 && c == 'i' && memcmp(lexer->bytes + from, "import", 6) == 0 &&
                 from_module == MODULE_OTHER) {
        module(lexer, (char[128]){0}, 128);
      } else if (lexer->owner && is_name(lexer, from, to)) {
        char name[128];
        snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : 0), lexer->bytes + from);
        if (anywhere || from_module == MODULE_UNCLEAR || (attribute(lexer, from) && !of_self(lexer, from)) ||
            (from_module == MODULE_PACKAGE && rules_python_removed(lexer->scan, path, name)))
          return true;
      }
    } else {
      bracket(lexer, c);
      if (!lexer->depth && py_ends_line(lexer->bytes, from))
        from_module = MODULE_OTHER;
      if (!py_blank(c) && c != '\n' && c != '\r' && c != '\\')
        lexer->last = c;
      if (!py_blank(c) && c != '\n' && c != '\r' && c != '\\' && c != '(' && c != ')' && c != '+')
        lexer->tail_size = 0;
      lexer->at++;
    }
  }
  return false;
}

/* --- the whole file ----------------------------------------------------------------------------------------------- */

/* Of a kept name; one that was asked for before is not looked for again. */
static enum py_whose whose(struct lexer *lexer, unsigned number) {
  struct named *named = &lexer->named[number];
  if (!named->word)
    return PY_WHOSE_NOBODY;
  for (const struct named *other = lexer->named; other < named; other++)
    if (other->word && other->length == named->length && memcmp(other->word, named->word, named->length) == 0)
      return named->whose = other->whose;
  return named->whose = py_whose(lexer->bytes, lexer->size, named->word, named->length);
}

/* Takes out the file's own names; false when only a tree can tell. */
static bool settle(struct lexer *lexer, struct py_talk *talk) {
  size_t texts = 0, own = 0;
  if (lexer->named_count && (lexer->depth || lexer->unmatched))
    return false;
  for (unsigned i = 0; i < lexer->named_count; i++) {
    const struct named *named = &lexer->named[i];
    enum py_whose known = whose(lexer, i);
    if (known == PY_WHOSE_FILE) {
      PY_GROW(talk->own, talk->own_count, own);
      talk->own[talk->own_count++] = (struct py_span){(size_t)(named->word - lexer->bytes), named->length};
      continue;
    }
    if (known == PY_WHOSE_UNCLEAR || named->place != PLACE_TEXT)
      return false;
    if (talk->texts_count && talk->texts[talk->texts_count - 1].start == named->start)
      continue;
    PY_GROW(talk->texts, talk->texts_count, texts);
    talk->texts[talk->texts_count++] = (struct py_span){named->start, named->end - named->start};
  }
  return true;
}

enum py_need py_candidate(const struct scan *scan, const struct source_file *file, struct py_talk *talk) {
  *talk = (struct py_talk){0};
  if (file->language != LANGUAGE_PYTHON || (file->seen & SEEN_IGNORE))
    return PY_NEEDS_TREE;
  if (!(file->seen & (SEEN_OWNER | SEEN_NAME)) && !(scan->options.sglang_release && (file->seen & SEEN_ROUTE)))
    return PY_NEEDS_NOTHING;
  if (unusual(file))
    return PY_NEEDS_TREE;
  struct lexer *lexer = scan_alloc(NULL, sizeof *lexer);
  *lexer = (struct lexer){.scan = scan, .bytes = file->bytes, .size = file->size, .owner = has_owner(scan, file)};
  lexer->self = !lexer->owner || binds_self(file);
  if (file->size >= 3 && memcmp(file->bytes, "\xef\xbb\xbf", 3) == 0)
    lexer->at = 3;
  enum py_need need = PY_NEEDS_TREE;
  bool anywhere = lexer->owner && (py_star_import(file) || py_has(file, "multiple"));
  if (!tokens(lexer, anywhere) && settle(lexer, talk))
    need = talk->texts_count ? PY_NEEDS_TALK : PY_NEEDS_NOTHING;
  arena_free(&lexer->arena);
  free(lexer);
  return need;
}

void py_talk_close(struct py_talk *talk) {
  free(talk->texts);
  free(talk->own);
}
