/* What is told of a run, and in which forms. All forms get the same struct report and print on standard output.
 *
 *   report.c           totals, exit status, places and words that all forms need
 *   report_text.c      for people
 *   report_json.c      all facts (docs/formats.md)
 *   report_sarif.c     SARIF 2.1.0
 *   report_github.c    workflow commands of GitHub Actions
 *   report_junit.c     JUnit XML
 *   report_html.c      one page for a browser
 *   report_values.c    JSON values, URIs
 *   report_escape.c    text that must not act: on a terminal, in XML
 *   fingerprint.c      what a use is, whatever its place
 *   baseline.c         uses that were accepted before
 *   ignore.c           comments that accept a use */
#ifndef SGL_SCANNER_REPORT_H
#define SGL_SCANNER_REPORT_H

#include "scanner/scanner.h"

#include <jansson.h>
#include <stdio.h>

/* Uses and mentions that are ignored or in the baseline count there only. */
struct totals {
  size_t files, files_with_uses;
  size_t rewrite, report, mention;
  size_t ignored_by_comment, in_baseline;
  size_t comment_faults; /* ignore comments that are unused, expired or malformed */
  size_t stale;          /* entries of the baseline without a use */
  size_t not_analysed, partly, not_entered, ignored;
};

struct baseline;

/* What is not a finding and has to be said. */
struct trouble {
  enum {
    TROUBLE_NOT_ANALYSED,
    TROUBLE_PARTLY,   /* analysed in part */
    TROUBLE_LEFT_OUT, /* on purpose: a folder or link */
    TROUBLE_COMMENT,  /* an ignore comment that is unused, expired or malformed */
    TROUBLE_STALE,    /* an entry of the baseline without a use */
  } kind;
  size_t root;
  const char *path; /* relative to the root */
  uint32_t line;    /* 0: the whole file or folder */
  char *text;       /* owned */
};

struct report {
  const struct scan *scans; /* one a root; at least one */
  size_t count;
  bool fix;                        /* of the command fix: what is left, mentions are not shown */
  size_t fixed;                    /* files */
  unsigned shard, shards;          /* 2 of 8; 0: the whole */
  const struct baseline *baseline; /* NULL: none was given */
  struct totals totals;
  struct trouble *troubles; /* by root, path and line */
  size_t troubles_count, troubles_capacity;
};

/* --- report.c ----------------------------------------------------------------------------------------------------- */

/* Fills in totals and troubles, for report_free. */
void report_count(struct report *report);
void report_free(struct report *report);
/* EXIT_USES, EXIT_PERSON, EXIT_NOT_ANALYSED and EXIT_STALE of the totals. */
int report_status(const struct totals *totals);
/* "jit" or "sglang@0.5.18"; owned by the caller. */
char *report_route(const struct options *options);
/* The path as the user would type it: the root joined with the relative path; owned by the caller. */
char *report_path(const struct scan *scan, const char *path);
/* Where the line of a finding starts and ends in file->bytes (without \n). Asked in the order of the findings, it reads
 * the file once: *line and *offset are the caller's, 1 and 0 at first. */
void report_line(const struct source_file *file, const struct finding *finding, uint32_t *line, size_t *offset,
                 size_t *end);
/* 1-based column of a finding, in Unicode code points or in UTF-16 code units; an invalid byte counts as one. */
uint32_t report_column(const struct source_file *file, const struct finding *finding, size_t line_start,
                       size_t line_end, bool utf16);
/* Length of the name at a finding; names are ASCII. At least 1. */
uint32_t report_name_length(const struct source_file *file, const struct finding *finding, size_t line_start,
                            size_t line_end);
const char *report_verdict(enum verdict verdict);
const char *report_evidence(enum evidence evidence);
const char *report_level(enum level level);
/* "not analysed", "ignore comment", ... */
const char *report_trouble_word(const struct trouble *trouble);
const char *report_plural(size_t count); /* "" or "s" */
/* One finding after the other, of all files of all roots, with its line: for (struct walk w = {...}; next(&w);) */
struct report_walk {
  const struct report *report;
  size_t root, file_index, finding_index; /* of the next one */
  const struct scan *scan;
  const struct source_file *file;
  const struct finding *finding;
  size_t line_start, line_end;
  uint32_t line;
  size_t offset;
};
bool report_next(struct report_walk *walk);

/* --- report_escape.c ---------------------------------------------------------------------------------------------- */

/* Bytes of the UTF-8 sequence at `at`; 1 for a byte that starts none. *c is its code point, or UINT32_MAX. */
size_t report_character(const uint8_t *at, size_t left, uint32_t *c);
/* A character that moves the cursor, turns the writing direction or cannot be seen. */
bool report_hidden(uint32_t c);
/* Prints text so that it cannot act on a terminal or look like two lines: what is hidden as \x1b or \u{202e}. */
void report_plain(FILE *stream, const char *text);
/* Is standard output a terminal that takes colour? */
bool report_colour(void);
/* Columns that a character takes on a terminal, when it is printed by report_plain. */
unsigned report_width(uint32_t c);
/* Text for XML and HTML, also inside of quotes; what XML 1.0 forbids as in report_plain. */
void report_xml(FILE *stream, const char *text, size_t size);

/* --- fingerprint.c ------------------------------------------------------------------------------------------------ */

struct fingerprint {
  char text[33]; /* hexadecimal */
};
/* Of a finding in the line [start, end) of its file. Equal uses of one file have equal ones. */
void report_fingerprint(const struct source_file *file, const struct finding *finding, size_t start, size_t end,
                        struct fingerprint *print);
/* Decides the shard of a file; never changes. */
uint64_t report_path_hash(const char *path);

/* --- report_values.c ---------------------------------------------------------------------------------------------- */

/* Text for JSON: what is no UTF-8 (a file name in a message) becomes U+FFFD. */
json_t *report_value(const char *text, size_t size);
/* RFC 3986: everything but unreserved characters and the slash is percent-encoded, byte by byte; owned by the caller.
 */
char *report_uri(const char *prefix, const char *path, const char *suffix);
/* When each layer left, and what to use instead and what to watch: one line for each fact; owned by the caller. */
char *report_removals(const struct catalog_symbol *symbol);
char *report_help(const struct catalog_symbol *symbol);

/* --- the forms; false when something could not be built or printed ------------------------------------------------ */

bool report_text(const struct report *report);
bool report_json(const struct report *report);
/* The log around an array of runs, which it takes. */
json_t *report_sarif_log(json_t *runs);
json_t *report_sarif_message(const char *text);
json_t *report_sarif_rule(const struct catalog_symbol *symbol);
bool report_sarif(const struct report *report);
bool report_github(const struct report *report);
bool report_junit(const struct report *report);
bool report_html(const struct report *report);
/* All troubles but what was left out, one line each on standard error. */
void report_trouble(const struct report *report);

#endif
