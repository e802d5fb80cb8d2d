/* Which bytes of a text are code, comment, string or here-document. Small lexers that never fail: what they do not know
 * is code. */
#include "scanner/text.h"

#include <stdlib.h>
#include <string.h>

struct lexer {
  struct text_view *view;
  const uint8_t *bytes;
  size_t size, at;
};

static void mark(struct lexer *lexer, size_t end, uint8_t class) {
  if (end > lexer->size)
    end = lexer->size;
  memset(lexer->view->classes + lexer->at, class, end - lexer->at);
  lexer->at = end;
}

static bool looking_at(const struct lexer *lexer, const char *text) {
  size_t length = strlen(text);
  return lexer->size - lexer->at >= length && memcmp(lexer->bytes + lexer->at, text, length) == 0;
}

/* The end of a string that starts at `at`, after its closing quote; `at` when none closes it before `limit`. */
static size_t string_end(const struct lexer *lexer, const char *quote, size_t limit, bool escapes) {
  size_t length = strlen(quote);
  for (size_t i = lexer->at + length; i + length <= limit; i++) {
    if (escapes && lexer->bytes[i] == '\\')
      i++;
    else if (memcmp(lexer->bytes + i, quote, length) == 0)
      return i + length;
  }
  return lexer->at;
}

static bool blank(uint8_t c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool mark_string(struct lexer *lexer, const char *quote, size_t limit, bool escapes) {
  size_t end = string_end(lexer, quote, limit, escapes);
  if (end == lexer->at)
    return false;
  mark(lexer, end, CLASS_STRING);
  return true;
}

/* --- '#' comments: scripts, build files, configuration ------------------------------------------------------------ */

/* Reads the word after << (or <<-); false when it is a shift or a here-string. */
static bool here_word(struct lexer *lexer, char *word, size_t word_size) {
  size_t i = lexer->at + 2;
  if (i < lexer->size && lexer->bytes[i] == '-')
    i++;
  while (i < lexer->size && (lexer->bytes[i] == ' ' || lexer->bytes[i] == '\t'))
    i++;
  while (i < lexer->size && strchr("'\"\\", lexer->bytes[i]) && lexer->bytes[i])
    i++;
  size_t length = 0;
  if (i < lexer->size && lexer->bytes[i] >= '0' && lexer->bytes[i] <= '9')
    return false;
  while (i < lexer->size && text_word_byte(lexer->bytes[i]) && length + 1 < word_size)
    word[length++] = (char)lexer->bytes[i++];
  word[length] = '\0';
  return length > 0;
}

/* The body of a here-document: the lines after this one up to a line that is only the word. */
static void mark_here(struct lexer *lexer, const char *word) {
  size_t body = text_line_end(lexer->bytes, lexer->size, lexer->at), length = strlen(word);
  for (size_t line = body < lexer->size ? body + 1 : lexer->size; line < lexer->size;) {
    size_t end = text_line_end(lexer->bytes, lexer->size, line), start = line, stop = end;
    while (start < stop && blank(lexer->bytes[start]))
      start++;
    while (stop > start && blank(lexer->bytes[stop - 1]))
      stop--;
    if (stop - start == length && memcmp(lexer->bytes + start, word, length) == 0) {
      lexer->at = body + 1;
      mark(lexer, line, CLASS_HERE);
      return;
    }
    line = end + 1;
  }
  lexer->at += 2; /* never closed: no here-document */
}

/* bash <<EOF, ssh host <<EOF, a container file's RUN <<EOF: is the document a script, as the text around it is? */
static bool here_script(const struct lexer *lexer) {
  static const char *const shells[] = {"RUN", "bash", "sh", "zsh", "ksh", "dash", "ssh", "sbatch"};
  static const char *const others[] = {"cat", "tee", "python", "python2", "python3"};
  size_t start = text_line_start(lexer->bytes, lexer->at), at = lexer->at;
  bool shell = false;
  while (at > start && !strchr(";|&(", lexer->bytes[at - 1]))
    at--;
  while (at < lexer->at) {
    size_t word = at;
    while (at < lexer->at && !blank(lexer->bytes[at]))
      at++;
    while (at > word && memrchr(lexer->bytes + word, '/', at - word)) /* /bin/bash */
      word = (size_t)((const uint8_t *)memrchr(lexer->bytes + word, '/', at - word) - lexer->bytes) + 1;
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++)
      shell = shell || (strlen(shells[i]) == at - word && memcmp(lexer->bytes + word, shells[i], at - word) == 0);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
      if (strlen(others[i]) == at - word && memcmp(lexer->bytes + word, others[i], at - word) == 0)
        return false;
    at++;
  }
  return shell;
}

static void lex_hash(struct lexer *lexer) {
  bool script = lexer->view->kind != TEXT_CONFIG;
  size_t line_end = lexer->at;
  while (lexer->at < lexer->size) {
    uint8_t c = lexer->bytes[lexer->at];
    uint8_t before = lexer->at ? lexer->bytes[lexer->at - 1] : '\n';
    if (line_end < lexer->at || before == '\n')
      line_end = text_line_end(lexer->bytes, lexer->size, lexer->at);
    bool comment =
        (c == '#' && (blank(before) || before == ';')) || (c == ';' && !script && (before == '\n' || blank(before)));
    char word[64];
    if (comment) {
      mark(lexer, line_end, CLASS_COMMENT);
    } else if (script && looking_at(lexer, "<<") && !looking_at(lexer, "<<<") && here_word(lexer, word, sizeof word)) {
      /* The rest of the line is not lexed: it is options and pipes. */
      if (here_script(lexer))
        lexer->at += 2;
      else
        mark_here(lexer, word);
    } else if ((looking_at(lexer, "\"\"\"") && mark_string(lexer, "\"\"\"", lexer->size, true)) ||
               (looking_at(lexer, "'''") && mark_string(lexer, "'''", lexer->size, true))) {
    } else if (c == '\\') {
      lexer->at += 2;
    } else if (c == '"' && mark_string(lexer, "\"", script ? lexer->size : line_end, true)) {
    } else if (c == '\'' && !text_word_byte(before) &&
               mark_string(lexer, "'", script ? lexer->size : line_end, false)) {
    } else {
      lexer->at++; /* also the apostrophe of a word, and a quote that nothing closes */
    }
  }
}

/* --- YAML --------------------------------------------------------------------------------------------------------- */

static size_t indentation(const struct lexer *lexer, size_t line) {
  size_t i = line;
  while (i < lexer->size && lexer->bytes[i] == ' ')
    i++;
  return i - line;
}

/* Does the line end with a block scalar's mark: "key: |", "- >-" ? */
static bool opens_block(const struct lexer *lexer, size_t line, size_t end) {
  while (end > line && (blank(lexer->bytes[end - 1]) || strchr("+-0123456789", lexer->bytes[end - 1])))
    end--;
  if (end <= line || (lexer->bytes[end - 1] != '|' && lexer->bytes[end - 1] != '>'))
    return false;
  end--;
  while (end > line && lexer->bytes[end - 1] == ' ')
    end--;
  return end > line && (lexer->bytes[end - 1] == ':' || lexer->bytes[end - 1] == '-');
}

static size_t block_end(const struct lexer *lexer, size_t line, size_t start) {
  size_t parent = indentation(lexer, line);
  while (start < lexer->size) {
    size_t end = text_line_end(lexer->bytes, lexer->size, start);
    size_t spaces = indentation(lexer, start);
    bool empty = start + spaces >= end || lexer->bytes[start + spaces] == '\r';
    if (!empty && spaces <= parent)
      break;
    start = end < lexer->size ? end + 1 : end;
  }
  return start;
}

/* Plain lines have comments and quotes of their own line; a value that begins with a quote may go on for lines. A block
 * scalar is a script. */
static void lex_yaml(struct lexer *lexer) {
  while (lexer->at < lexer->size) {
    size_t line = lexer->at, end = text_line_end(lexer->bytes, lexer->size, line);
    if (opens_block(lexer, line, end)) {
      size_t stop = block_end(lexer, line, end < lexer->size ? end + 1 : end);
      size_t whole = lexer->size;
      lexer->at = end;
      lexer->size = stop;
      lex_hash(lexer);
      lexer->size = whole;
      for (size_t i = end; i < stop; i++)
        lexer->view->classes[i] |= CLASS_BLOCK;
      if (lexer->at < stop)
        lexer->at = stop;
      continue;
    }
    while (lexer->at < end) {
      uint8_t c = lexer->bytes[lexer->at];
      uint8_t before = lexer->at > line ? lexer->bytes[lexer->at - 1] : '\n';
      size_t back = lexer->at;
      while (back > line && blank(lexer->bytes[back - 1]))
        back--;
      bool value = back == line || strchr(":-[,{", lexer->bytes[back - 1]);
      if (c == '#' && blank(before)) {
        mark(lexer, end, CLASS_COMMENT);
      } else if (c == '"' && mark_string(lexer, "\"", value ? lexer->size : end, true)) {
      } else if (c == '\'' && !text_word_byte(before) && mark_string(lexer, "'", value ? lexer->size : end, false)) {
      } else {
        lexer->at++;
      }
    }
    if (lexer->at < lexer->size && lexer->bytes[lexer->at] == '\n')
      lexer->at++;
  }
}

/* --- other languages ---------------------------------------------------------------------------------------------- */

static void lex_code(struct lexer *lexer) {
  enum text_style style = lexer->view->style;
  const char *line_comment = style == STYLE_C           ? "//"
                             : style == STYLE_DASH      ? "--"
                             : style == STYLE_SEMICOLON ? ";"
                             : style == STYLE_PERCENT   ? "%"
                                                        : "#";
  size_t line_end = lexer->at;
  while (lexer->at < lexer->size) {
    uint8_t c = lexer->bytes[lexer->at];
    uint8_t before = lexer->at ? lexer->bytes[lexer->at - 1] : '\n';
    if (line_end < lexer->at || before == '\n')
      line_end = text_line_end(lexer->bytes, lexer->size, lexer->at);
    if (looking_at(lexer, line_comment) && !(style == STYLE_HASH && !blank(before))) {
      mark(lexer, line_end, CLASS_COMMENT);
    } else if (style == STYLE_C && looking_at(lexer, "/*")) {
      const uint8_t *end = memmem(lexer->bytes + lexer->at + 2, lexer->size - lexer->at - 2, "*/", 2);
      mark(lexer, end ? (size_t)(end - lexer->bytes) + 2 : lexer->size, CLASS_COMMENT);
    } else if (style == STYLE_HASH &&
               ((looking_at(lexer, "\"\"\"") && mark_string(lexer, "\"\"\"", lexer->size, true)) ||
                (looking_at(lexer, "'''") && mark_string(lexer, "'''", lexer->size, true)))) {
    } else if (c == '`' && style == STYLE_C && mark_string(lexer, "`", lexer->size, true)) {
    } else if (c == '"' && mark_string(lexer, "\"", lexer->size, true)) {
    } else if (c == '\'' && !text_word_byte(before) && style != STYLE_SEMICOLON &&
               mark_string(lexer, "'", line_end, true)) {
    } else {
      lexer->at++; /* also a quote that is no string: a lifetime, a digit separator, an apostrophe */
    }
  }
}

void text_classify(struct text_view *view) {
  view->classes = scan_alloc(NULL, view->size);
  if (view->size == 0)
    return;
  memset(view->classes, CLASS_CODE, view->size);
  struct lexer lexer = {view, view->bytes, view->size, 0};
  if (view->style == STYLE_YAML)
    lex_yaml(&lexer);
  else if (view->style == STYLE_HASH && view->kind != TEXT_CODE && view->kind != TEXT_PYTHON)
    lex_hash(&lexer);
  else
    lex_code(&lexer);
}
