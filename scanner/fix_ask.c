/* --interactive: shows each group of edits as a diff and asks whether it is to be made. */
#include "scanner/fix.h"
#include "scanner/report.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool fix_ask_possible(void) {
  return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
}

/* --- the hunk ----------------------------------------------------------------------------------------------------- */

static const char *colour_of(char first) {
  return first == '+' ? "\x1b[32m" : first == '-' ? "\x1b[31m" : first == '@' ? "\x1b[36m" : NULL;
}

/* The hunks of a diff, without the lines that name the file. */
static void show_hunks(const char *diff, size_t size) {
  const char *no_color = getenv("NO_COLOR"), *terminal = getenv("TERM");
  bool colour = !(no_color && *no_color) && !(terminal && strcmp(terminal, "dumb") == 0), hunk = false;
  for (const char *at = diff, *end = diff + size; at < end;) {
    const char *newline = memchr(at, '\n', (size_t)(end - at));
    size_t length = newline ? (size_t)(newline - at) : (size_t)(end - at);
    hunk = hunk || *at == '@';
    if (hunk) {
      const char *code = colour ? colour_of(*at) : NULL;
      char *line = scan_format("%.*s", (int)length, at);
      size_t last = strlen(line);
      if (last && line[last - 1] == '\r')
        line[last - 1] = '\0'; /* the end of a line in Windows' form */
      fputs(code ? code : "", stdout);
      report_plain(stdout, line);
      fputs(code ? "\x1b[0m\n" : "\n", stdout);
      free(line);
    }
    at += length + 1;
  }
}

/* --- the choice --------------------------------------------------------------------------------------------------- */

enum answer { ANSWER_YES, ANSWER_NO, ANSWER_ALL, ANSWER_DONE, ANSWER_QUIT };

static const char help[] = "y - make this change\n"
                           "n - do not make it\n"
                           "a - make it and all later ones in this file\n"
                           "d - make neither it nor any later one in this file\n"
                           "q - quit; changes that were accepted are made\n"
                           "? - print this\n";

static enum answer ask(const char *shown, size_t number, size_t count) {
  for (;;) {
    char line[64];
    report_plain(stdout, shown);
    printf(": make this change (%zu of %zu) [y,n,a,d,q,?]? ", number, count);
    fflush(stdout);
    if (!fgets(line, sizeof line, stdin)) {
      putchar('\n');
      return ANSWER_QUIT;
    }
    static const char letters[] = "ynadq";
    const char *letter = line[0] ? strchr(letters, line[0] | 0x20) : NULL;
    if (letter && *letter && (line[1] == '\n' || line[1] == '\0'))
      return (enum answer)(letter - letters);
    fputs(help, stdout);
  }
}

/* The edits with this flag, and those that go with any. */
static size_t pick(const struct edit *edits, size_t count, const bool *wanted, struct edit *list) {
  size_t used = 0;
  bool any = false;
  for (size_t i = 0; i < count; i++)
    any = any || (wanted[i] && edits[i].group);
  for (size_t i = 0; i < count; i++)
    if (edits[i].group ? wanted[i] : any)
      list[used++] = edits[i];
  return used;
}

/* Shows what the group changes when everything accepted before is there. */
static bool show_group(const struct source_file *file, const char *shown, const bool *accepted, uint32_t group) {
  const struct result *result = &file->result;
  struct edit *list = scan_alloc(NULL, result->edits_count * sizeof *list);
  bool *with = scan_alloc(NULL, result->edits_count);
  uint8_t *before = NULL, *after = NULL;
  size_t before_size, after_size, diff_size = 0;
  char message[256], *diff = NULL;
  for (size_t i = 0; i < result->edits_count; i++)
    with[i] = accepted[i] || result->edits[i].group == group;
  size_t count = pick(result->edits, result->edits_count, accepted, list);
  bool done = edit_compose(file->bytes, file->size, list, count, &before, &before_size, message, sizeof message);
  count = pick(result->edits, result->edits_count, with, list);
  done = done && edit_compose(file->bytes, file->size, list, count, &after, &after_size, message, sizeof message);
  if (done)
    diff = fix_diff(shown, before, before_size, after, after_size, &diff_size);
  if (diff)
    show_hunks(diff, diff_size);
  free(diff);
  free(before);
  free(after);
  free(list);
  free(with);
  return done;
}

/* The groups in the order of their first edit; returns how many there are. */
static size_t list_groups(const struct result *result, uint32_t *groups) {
  size_t count = 0;
  for (size_t i = 0; i < result->edits_count; i++) {
    bool known = result->edits[i].group == 0;
    for (size_t k = 0; k < count && !known; k++)
      known = groups[k] == result->edits[i].group;
    if (!known)
      groups[count++] = result->edits[i].group;
  }
  return count;
}

/* The accepted edits to the front, both parts in their order. */
static size_t move_accepted(struct result *result, const bool *accepted) {
  struct edit *sorted = scan_alloc(NULL, result->edits_count * sizeof *sorted);
  size_t used = pick(result->edits, result->edits_count, accepted, sorted), next = used;
  for (size_t i = 0; i < result->edits_count; i++) {
    bool taken = false;
    for (size_t k = 0; k < used && !taken; k++)
      taken = sorted[k].text == result->edits[i].text;
    if (!taken)
      sorted[next++] = result->edits[i];
  }
  memcpy(result->edits, sorted, result->edits_count * sizeof *sorted);
  free(sorted);
  return used;
}

size_t fix_ask(struct source_file *file, const char *shown, bool *quit) {
  struct result *result = &file->result;
  uint32_t *groups = scan_alloc(NULL, result->edits_count * sizeof *groups);
  bool *accepted = scan_alloc(NULL, result->edits_count);
  memset(accepted, 0, result->edits_count);
  size_t count = list_groups(result, groups);
  enum answer answer = ANSWER_NO;
  for (size_t g = 0; g < count && answer != ANSWER_DONE && answer != ANSWER_QUIT; g++) {
    if (answer != ANSWER_ALL && show_group(file, shown, accepted, groups[g]))
      answer = ask(shown, g + 1, count);
    for (size_t i = 0; i < result->edits_count; i++)
      if (result->edits[i].group == groups[g] && (answer == ANSWER_YES || answer == ANSWER_ALL))
        accepted[i] = true;
  }
  *quit = answer == ANSWER_QUIT;
  size_t used = move_accepted(result, accepted);
  free(groups);
  free(accepted);
  return used;
}
