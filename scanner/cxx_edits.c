/* What fix writes: the new name of a call, and one include. */
#include "scanner/cxx_front.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define NEW_NAMESPACE "sgl_kernel_jit::"
#define NEW_HEADER "sgl_kernel_jit/torch.h"

static bool word_byte(uint8_t c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c >= 0x80;
}

/* --- calls -------------------------------------------------------------------------------------------------------- */

static bool still_rewritten(const struct cxx_unit *unit, const struct cxx_use *use) {
  uint32_t line, column;
  cxx_unit_position(unit, unit->tokens.list[use->token].start, &line, &column);
  for (size_t i = 0; i < unit->result->findings_count; i++)
    if (unit->result->findings[i].line == line && unit->result->findings[i].symbol == use->symbol)
      return unit->result->findings[i].verdict == VERDICT_REWRITE;
  return false;
}

/* The qualifier goes in front; a leading :: becomes part of it, so comments and blanks between them stay. */
static void edit_call(struct cxx_unit *unit, const struct cxx_use *use) {
  const struct cxx_token *name = &unit->tokens.list[use->token];
  struct cxx_string old = cxx_unit_text(unit, use->token);
  bool global = use->qualifier == CXX_GLOBAL && use->qualifier_token != CXX_NONE;
  size_t start = global ? unit->tokens.list[use->qualifier_token].start : name->start;
  size_t end = global ? unit->tokens.list[use->qualifier_token].end : name->start;
  bool touching = start > 0 && word_byte(unit->tokens.bytes[start - 1]); /* return::name */
  const char *qualifier = touching ? " " NEW_NAMESPACE : NEW_NAMESPACE;
  uint32_t group = use->token + 1; /* each call for itself; the include is for all of them */
  result_edit(unit->result, group, start, end, qualifier, strlen(qualifier));
  if (strlen(use->route->name) != old.length || memcmp(use->route->name, old.text, old.length) != 0)
    result_edit(unit->result, group, name->start, name->end, use->route->name, strlen(use->route->name));
}

/* --- the include -------------------------------------------------------------------------------------------------- */

static bool names_new_header(const struct cxx_unit *unit, const struct cxx_directive *d) {
  if (d->kind != CXX_INCLUDE || d->header == CXX_NONE)
    return false;
  struct cxx_string name = cxx_unit_text(unit, d->header);
  size_t length = strlen(NEW_HEADER);
  return name.length >= length + 2 && memcmp(name.text + name.length - 1 - length, NEW_HEADER, length) == 0 &&
         !word_byte(name.text[name.length - 2 - length]);
}

static bool opens_condition(const struct cxx_directive *d) {
  return d->kind == CXX_IF || d->kind == CXX_IFDEF || d->kind == CXX_IFNDEF;
}

/* The #endif of the condition that opens at directive `at`; directives_count when there is none. */
static uint32_t end_of(const struct cxx_unit *unit, uint32_t at) {
  unsigned depth = unit->directives[at].depth;
  for (uint32_t i = at + 1; i < unit->directives_count; i++)
    if (unit->directives[i].kind == CXX_ENDIF && unit->directives[i].depth == depth)
      return i;
  return unit->directives_count;
}

/* #ifndef X or #if !defined(X), and then #define X. */
static bool guards(const struct cxx_unit *unit, uint32_t at) {
  const struct cxx_directive *open = &unit->directives[at], *define = open + 1;
  if (at + 1 >= unit->directives_count || define->kind != CXX_DEFINE || open->kind == CXX_IFDEF)
    return false;
  struct cxx_string macro = cxx_unit_text(unit, define->first + 2);
  for (uint32_t i = open->first + 2; i < open->last; i++) {
    struct cxx_string word = cxx_unit_text(unit, i);
    if (word.length == macro.length && memcmp(word.text, macro.text, macro.length) == 0)
      return true;
  }
  return false;
}

/* Steps over the include guard and other conditions that hold for the whole file: returns how many there are. *next:
 * the first directive inside. */
static unsigned find_frames(const struct cxx_unit *unit, uint32_t code, uint32_t *next) {
  uint32_t at = 0, tail = unit->tokens.count;
  unsigned depth = 0;
  for (;; depth++) {
    while (at < unit->directives_count && unit->directives[at].kind == CXX_ONCE)
      at++;
    *next = at;
    if (at >= unit->directives_count || unit->directives[at].first > code || !opens_condition(&unit->directives[at]))
      return depth;
    uint32_t end = end_of(unit, at);
    if (end == unit->directives_count || unit->directives[end].last + 1 != tail)
      return depth;
    for (uint32_t i = at + 1; i < end; i++)
      if (unit->directives[i].depth == depth)
        return depth; /* an #else: the file has two sides */
    tail = unit->directives[end].first;
    at += guards(unit, at) ? 2 : 1;
  }
}

static size_t line_start(const struct cxx_unit *unit, size_t offset) {
  uint32_t line, column;
  cxx_unit_position(unit, offset, &line, &column);
  return offset - (column - 1);
}

static bool holds(const struct cxx_unit *unit, const struct cxx_comment *comment, const char *word) {
  size_t length = strlen(word);
  for (size_t at = comment->start; at + length <= comment->end; at++)
    if (strncasecmp((const char *)unit->tokens.bytes + at, word, length) == 0)
      return true;
  return false;
}

/* Where a file without includes gets one: in front of its first code, and of a comment that belongs to that code. */
static size_t before_code(const struct cxx_unit *unit, size_t code) {
  size_t place = line_start(unit, code);
  for (uint32_t i = unit->tokens.comments_count; i-- > 0;) {
    const struct cxx_comment *comment = &unit->tokens.comments[i];
    if (comment->start >= place)
      continue;
    size_t end = comment->end;
    while (end < place &&
           (unit->tokens.bytes[end] == ' ' || unit->tokens.bytes[end] == '\t' || unit->tokens.bytes[end] == '\r'))
      end++;
    bool attached = end + 1 == place;
    if (!attached || holds(unit, comment, "copyright") || holds(unit, comment, "license") ||
        holds(unit, comment, "licence"))
      break;
    place = line_start(unit, comment->start);
  }
  return place;
}

static size_t after_directive(const struct cxx_unit *unit, const struct cxx_directive *d) {
  return unit->tokens.list[d->last].end;
}

/* The first token of code from `at` on. */
static uint32_t first_code(const struct cxx_unit *unit, uint32_t at) {
  while (at < unit->tokens.count &&
         (unit->tokens.list[at].kind == CXX_HASH || (unit->tokens.list[at].flags & CXX_DIRECTIVE)))
    at++;
  return at;
}

static bool module_word(const struct cxx_unit *unit, uint32_t token) {
  return token < unit->tokens.count && unit->tokens.list[token].kind == CXX_WORD &&
         cxx_token_is(&unit->tokens, &unit->tokens.list[token], "module");
}

/* Of the unit of a module: the semicolon of `module;`, which begins the part for includes; CXX_NONE without one. */
static uint32_t fragment_start(const struct cxx_unit *unit) {
  uint32_t code = first_code(unit, 0);
  const struct cxx_token *next = code + 1 < unit->tokens.count ? &unit->tokens.list[code + 1] : NULL;
  return module_word(unit, code) && next && next->kind == CXX_PUNCT && next->code == ';' ? code + 1 : CXX_NONE;
}

/* `export module name;` or `module name;` comes first. Behind an include, module is a type of somebody's own. */
static bool starts_module(const struct cxx_unit *unit) {
  uint32_t code = first_code(unit, 0);
  if (code + 1 >= unit->tokens.count || unit->tokens.list[code].kind != CXX_WORD)
    return false;
  if (unit->tokens.list[code].code == KW_export)
    return module_word(unit, code + 1);
  for (uint32_t i = 0; i < unit->directives_count && unit->directives[i].first < code; i++)
    if (unit->directives[i].kind == CXX_INCLUDE)
      return false;
  return module_word(unit, code) && unit->tokens.list[code + 1].kind == CXX_WORD;
}

static size_t find_place(const struct cxx_unit *unit) {
  uint32_t fragment = fragment_start(unit);
  uint32_t code = first_code(unit, fragment == CXX_NONE ? 0 : fragment + 1);
  uint32_t start;
  unsigned base = find_frames(unit, code, &start);
  const struct cxx_directive *last = NULL, *group = NULL;
  for (uint32_t i = start; i < unit->directives_count && unit->directives[i].first < code; i++) {
    const struct cxx_directive *d = &unit->directives[i];
    if (d->kind != CXX_INCLUDE)
      continue;
    if (d->depth == base) {
      last = d;
      continue;
    }
    /* In a condition: the whole of it counts, when it ends before the code. */
    uint32_t open = i;
    while (open > 0 && !(opens_condition(&unit->directives[open]) && unit->directives[open].depth == base))
      open--;
    uint32_t end = end_of(unit, open);
    if (end < unit->directives_count && unit->directives[end].first < code)
      group = &unit->directives[end];
  }
  if (last)
    return after_directive(unit, last);
  if (group)
    return after_directive(unit, group);
  if (start > 0)
    return after_directive(unit, &unit->directives[start - 1]);
  bool directive = start < unit->directives_count && unit->directives[start].first < code;
  return before_code(unit, unit->tokens.list[directive ? unit->directives[start].first : code].start);
}

bool cxx_edits_includable(const struct cxx_unit *unit) {
  uint32_t fragment = fragment_start(unit);
  if (fragment == CXX_NONE)
    return !starts_module(unit);
  return first_code(unit, fragment + 1) < unit->tokens.count && find_place(unit) >= unit->tokens.list[fragment].end;
}

static void edit_include(struct cxx_unit *unit) {
  for (uint32_t i = 0; i < unit->directives_count; i++)
    if (unit->directives[i].active && names_new_header(unit, &unit->directives[i]))
      return;
  size_t place = find_place(unit);
  const uint8_t *bytes = unit->tokens.bytes;
  if (place == 0 && unit->tokens.size >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0)
    place = 3;
  /* The line ending of the line before; at the top, of the first line. */
  const uint8_t *newline = place > 3 ? bytes + place - 1 : memchr(bytes, '\n', unit->tokens.size);
  bool crlf = newline && newline > bytes && *newline == '\n' && newline[-1] == '\r';
  const char *line = crlf ? "#include \"" NEW_HEADER "\"\r\n" : "#include \"" NEW_HEADER "\"\n";
  result_edit(unit->result, 0, place, place, line, strlen(line));
}

void cxx_edits_make(struct cxx_unit *unit) {
  bool any = false;
  for (uint32_t i = 0; i < unit->uses_count; i++) {
    const struct cxx_use *use = &unit->uses[i];
    if (!use->route || !still_rewritten(unit, use))
      continue;
    edit_call(unit, use);
    any = true;
  }
  if (any)
    edit_include(unit);
}
