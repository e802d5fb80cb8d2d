/* Comments that accept a use:
 *
 *   sgl-migrate: ignore[NAME, ...] until=YYYY-MM-DD reason=TEXT
 *
 * A front says which bytes of its text are comments, so that the same words in a string do nothing, and asks
 * ignore_covers() before it plans an edit. When it is done, ignore_apply() marks the findings. */
#include "scanner/ignore.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MARK "sgl-migrate:"
#define FORM "sgl-migrate: ignore[NAME, ...] until=YYYY-MM-DD reason=TEXT"

static bool blank(uint8_t c) {
  return c == ' ' || c == '\t' || c == '\r';
}

static bool is_comment(const struct ignore_text *text, size_t at) {
  return (text->classes[at] & 3) == IGNORE_COMMENT;
}

static bool is_code(const struct ignore_text *text, size_t at) {
  return (text->classes[at] & 3) == IGNORE_CODE;
}

bool ignore_wanted(const uint8_t *bytes, size_t size) {
  return size && memmem(bytes, size, MARK, sizeof MARK - 1) != NULL;
}

/* --- the comment's text ------------------------------------------------------------------------------------------- */

/* Is it a day of the calendar? Then text compares like the days do. */
static bool valid_date(const char *text) {
  unsigned year = 0, month = 0, day = 0;
  for (unsigned i = 0; i < 10; i++)
    if (i == 4 || i == 7 ? text[i] != '-' : text[i] < '0' || text[i] > '9')
      return false;
  sscanf(text, "%4u-%2u-%2u", &year, &month, &day);
  static const unsigned days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  return !text[10] && month >= 1 && month <= 12 && day >= 1 && day <= days[month - 1] + (month == 2 && leap);
}

/* The last day counts, everywhere in the world as in UTC. */
static bool is_past(const char *date) {
  char today[32];
  time_t now = time(NULL);
  struct tm utc;
  return gmtime_r(&now, &utc) && strftime(today, sizeof today, "%Y-%m-%d", &utc) && strcmp(date, today) < 0;
}

static char *take(const char **at, const char *end) {
  char *text = scan_format("%.*s", (int)(end - *at), *at);
  *at = end;
  return text;
}

static void add_name(struct ignore *ignore, const struct catalog_symbol *symbol) {
  ignore->names = scan_alloc(ignore->names, (ignore->names_count + 1) * sizeof *ignore->names);
  ignore->names[ignore->names_count++] = (struct ignore_name){symbol, false};
}

/* "changed:NAME", which only scan --changed has findings of; for other scans it has no symbol. */
static bool is_change(const struct catalog *catalog, const char *name) {
  bool found = false;
  size_t prefix = strlen(CHANGED_PREFIX);
  for (unsigned i = 0; i < catalog->changes_count && !found; i++)
    found = strncmp(name, CHANGED_PREFIX, prefix) == 0 && strcmp(name + prefix, catalog->changes[i].name) == 0;
  return found;
}

/* Returns what is wrong, or NULL. */
static char *parse_names(struct ignore *ignore, const struct catalog *catalog, const char **at) {
  for (;;) {
    *at += strspn(*at, " \t");
    size_t length = strcspn(*at, " \t,]");
    if (length == 0)
      return scan_format("a name is missing in the brackets");
    char *name = take(at, *at + length);
    const struct catalog_symbol *symbol = catalog_find(catalog, name);
    if (!symbol && !is_change(catalog, name)) {
      char *fault = scan_format("no removed name is called '%s'", name);
      free(name);
      return fault;
    }
    free(name);
    add_name(ignore, symbol);
    *at += strspn(*at, " \t");
    if (**at == ']') {
      (*at)++;
      return NULL;
    }
    if (**at != ',')
      return scan_format("the bracket behind the names is missing");
    (*at)++;
  }
}

static char *parse(struct ignore *ignore, const struct catalog *catalog, const char *text) {
  const char *at = text + strspn(text, " \t");
  if (strncmp(at, "ignore[", 7) != 0)
    return scan_format("ignore[NAME] is expected");
  at += 7;
  char *fault = parse_names(ignore, catalog, &at);
  if (fault)
    return fault;
  bool apart = *at == ' ' || *at == '\t' || !*at;
  at += strspn(at, " \t");
  if (strncmp(at, "until=", 6) == 0) {
    at += 6;
    ignore->until = take(&at, at + strcspn(at, " \t"));
    if (!valid_date(ignore->until))
      return scan_format("'%s' is no date", ignore->until);
    at += strspn(at, " \t");
  }
  if (strncmp(at, "reason=", 7) == 0) {
    at += 7;
    ignore->reason = scan_format("%s", at);
    if (!*at)
      return scan_format("the reason is empty");
    if (strstr(at, " until="))
      return scan_format("until= has to stand before reason=");
    at += strlen(at);
  }
  if (*at || !apart)
    return scan_format("'%.40s' is not understood", at);
  return NULL;
}

/* --- where it stands ---------------------------------------------------------------------------------------------- */

static size_t line_start(const struct ignore_text *text, size_t at) {
  while (at > 0 && text->bytes[at - 1] != '\n')
    at--;
  return at;
}

static size_t line_end(const struct ignore_text *text, size_t at) {
  const uint8_t *newline = at < text->size ? memchr(text->bytes + at, '\n', text->size - at) : NULL;
  return newline ? (size_t)(newline - text->bytes) : text->size;
}

/* The words begin a comment, or a second one in it ("# noqa  # sgl-migrate: ..."): a sentence that has them does not.
 */
static bool begins(const struct ignore_text *text, size_t at) {
  while (at > 0 && blank(text->bytes[at - 1]) && is_comment(text, at - 1))
    at--;
  return at == 0 || !is_comment(text, at - 1) || text->bytes[at - 1] == '\n' || strchr("#/*;%-!", text->bytes[at - 1]);
}

static bool has_code(const struct ignore_text *text, size_t start, size_t end) {
  for (size_t i = start; i < end; i++)
    if (!is_comment(text, i) && !blank(text->bytes[i]))
      return true;
  return false;
}

/* The end of the last line of the statement that begins in the line at `start`: lines go on in open brackets, after a
 * backslash and inside of strings. */
static size_t statement_end(const struct ignore_text *text, size_t start) {
  unsigned depth = 0;
  size_t end = line_end(text, start);
  for (size_t i = start; i < text->size; i++) {
    uint8_t c = text->bytes[i];
    if (c == '\n') {
      bool goes_on = depth > 0 || (!is_code(text, i) && !is_comment(text, i)) ||
                     (i > start && text->bytes[i - 1] == '\\' && !is_comment(text, i - 1));
      if (!goes_on)
        return i;
      end = line_end(text, i + 1);
    }
    if (!is_code(text, i))
      continue;
    bool brace = c == '{' || c == '}';
    if (brace && text->braces == IGNORE_BRACES_END)
      return line_end(text, i);
    if (c == '(' || c == '[' || (c == '{' && text->braces == IGNORE_BRACES_COUNT))
      depth++;
    else if (depth > 0 && (c == ')' || c == ']' || (c == '}' && text->braces == IGNORE_BRACES_COUNT)))
      depth--;
  }
  return end;
}

/* The lines that a comment in the line [start, end) speaks for: of its own statement, or of the next one when it has
 * its line to itself. */
static void find_lines(const struct ignore_text *text, size_t start, size_t end, struct ignore *ignore) {
  while (!has_code(text, start, end)) {
    if (end >= text->size) {
      ignore->first = ignore->last = ignore->line;
      return;
    }
    start = end + 1;
    end = line_end(text, start);
  }
  ignore->first = text->line(text->user, start);
  size_t last = statement_end(text, start);
  ignore->last = text->line(text->user, last > start ? last - 1 : start);
}

void ignore_read(const struct scan *scan, struct result *result, const struct ignore_text *text) {
  const uint8_t *hit;
  for (size_t at = 0; at < text->size; at = (size_t)(hit - text->bytes) + 1) {
    hit = memmem(text->bytes + at, text->size - at, MARK, sizeof MARK - 1);
    if (!hit)
      return;
    size_t mark = (size_t)(hit - text->bytes), from = mark + sizeof MARK - 1;
    if (!is_comment(text, mark) || !begins(text, mark))
      continue;
    size_t stop = line_end(text, from), to = from;
    while (to < stop && is_comment(text, to) &&
           !(text->bytes[to] == '*' && to + 1 < stop && text->bytes[to + 1] == '/'))
      to++;
    while (to > from && (blank(text->bytes[to - 1]) || !text->bytes[to - 1]))
      to--;
    char *words = scan_format("%.*s", (int)(to - from), text->bytes + from);
    struct ignore ignore = {.line = text->line(text->user, mark)};
    char *fault = parse(&ignore, scan->catalog, words);
    if (fault)
      ignore.fault = scan_format("%s; the form is " FORM, fault);
    else if (ignore.until && is_past(ignore.until))
      ignore.expired = true;
    free(fault);
    free(words);
    find_lines(text, line_start(text, mark), stop, &ignore);
    result->ignores = scan_alloc(result->ignores, (result->ignores_count + 1) * sizeof ignore);
    result->ignores[result->ignores_count++] = ignore;
  }
}

/* --- what it does ------------------------------------------------------------------------------------------------- */

static struct ignore_name *covering(const struct ignore *ignore, uint32_t line, const struct catalog_symbol *symbol) {
  if (ignore->fault || ignore->expired || line < ignore->first || line > ignore->last)
    return NULL;
  for (size_t i = 0; i < ignore->names_count; i++)
    if (ignore->names[i].symbol == symbol)
      return &ignore->names[i];
  return NULL;
}

bool ignore_covers(const struct result *result, uint32_t line, const struct catalog_symbol *symbol) {
  for (size_t i = 0; i < result->ignores_count; i++)
    if (covering(&result->ignores[i], line, symbol))
      return true;
  return false;
}

static bool is_own_mention(const struct result *result, const struct finding *finding) {
  for (size_t i = 0; i < result->ignores_count && finding->verdict == VERDICT_MENTION; i++)
    for (size_t k = 0; k < result->ignores[i].names_count && result->ignores[i].line == finding->line; k++)
      if (result->ignores[i].names[k].symbol == finding->symbol)
        return true;
  return false;
}

void ignore_apply(struct result *result) {
  if (result->ignores_count == 0)
    return;
  size_t kept = 0;
  for (size_t i = 0; i < result->findings_count; i++) {
    struct finding *finding = &result->findings[i];
    if (is_own_mention(result, finding)) { /* the comment names the name: that says nothing about the code */
      free(finding->message);
      continue;
    }
    for (size_t k = 0; k < result->ignores_count; k++) {
      struct ignore_name *name = covering(&result->ignores[k], finding->line, finding->symbol);
      if (!name)
        continue;
      name->used = true;
      finding->standing = STANDING_IGNORED;
      finding->ignore = &result->ignores[k];
    }
    result->findings[kept++] = *finding;
  }
  result->findings_count = kept;
}

void ignore_free(struct result *result) {
  for (size_t i = 0; i < result->ignores_count; i++) {
    struct ignore *ignore = &result->ignores[i];
    free(ignore->names);
    free(ignore->until);
    free(ignore->reason);
    free(ignore->fault);
  }
  free(result->ignores);
}

void ignore_faults(const struct scan *scan, const struct result *result,
                   void (*fault)(void *user, uint32_t line, const char *text), void *user) {
  for (size_t i = 0; i < result->ignores_count; i++) {
    const struct ignore *ignore = &result->ignores[i];
    if (ignore->fault) {
      fault(user, ignore->line, ignore->fault);
    } else if (ignore->expired) {
      char *text =
          scan_format("this ignore comment expired on %s: change the code, or give it a new date", ignore->until);
      fault(user, ignore->line, text);
      free(text);
    } else {
      for (size_t k = 0; k < ignore->names_count; k++) {
        if (ignore->names[k].used || !ignore->names[k].symbol || !rules_symbol_matters(scan, ignore->names[k].symbol))
          continue;
        char *text =
            scan_format("this comment ignores %s, which is not used there: remove it", ignore->names[k].symbol->id);
        fault(user, ignore->line, text);
        free(text);
      }
    }
  }
}
