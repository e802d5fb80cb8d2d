/* One page that needs nothing else: no script, no picture, no font, no address. For people who decide, so numbers come
 * first and the single uses last. */
#include "scanner/baseline.h"
#include "scanner/report.h"

#include <stdlib.h>
#include <string.h>

/* Folders are named down to this depth; deeper ones count in it. */
#define FOLDER_DEPTH 2

static const char head[] =
    "<!DOCTYPE html>\n"
    "<html lang=\"en\">\n"
    "<head>\n"
    "<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
    "<title>Uses of removed kernel names</title>\n"
    "<style>\n"
    ":root{color-scheme:light dark;--line:#8884;--dim:#777;--bar:#4a7fd0;--bad:#c0392b;--good:#27853f}\n"
    "body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem}\n"
    "h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}\n"
    "table{border-collapse:collapse;width:100%}th,td{text-align:left;vertical-align:top;padding:.3rem .6rem;"
    "border-bottom:1px solid var(--line)}\n"
    "td.n,th.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}\n"
    "code,pre{font:13px/1.4 ui-monospace,monospace;overflow-wrap:anywhere}pre{white-space:pre-wrap;margin:.2rem 0}\n"
    ".tiles{display:flex;flex-wrap:wrap;gap:1rem}.tile{border:1px solid var(--line);border-radius:.5rem;"
    "padding:.5rem 1rem;min-width:8rem}.tile b{display:block;font-size:1.6rem}\n"
    ".bar{display:block;height:.5rem;background:var(--bar);border-radius:.2rem}.dim{color:var(--dim)}\n"
    ".bad{color:var(--bad)}.good{color:var(--good)}summary{cursor:pointer}\n"
    "</style>\n"
    "</head>\n"
    "<body>\n";

struct count {
  size_t rewrite, report, mention, accepted;
};

/* A row of a table: a symbol or a folder. */
struct row {
  char *name;
  const struct catalog_symbol *symbol; /* NULL: a folder */
  struct count count;
};

struct table {
  struct row *rows;
  size_t count, capacity;
};

static void print_text(const char *text) {
  report_xml(stdout, text, strlen(text));
}

/* One fact a line. */
static void print_lines(const char *text) {
  for (const char *end; *text; text = *end ? end + 1 : end) {
    end = strchrnul(text, '\n');
    report_xml(stdout, text, (size_t)(end - text));
    putchar('\n');
  }
}

static size_t live(const struct count *count) {
  return count->rewrite + count->report;
}

static struct row *table_row(struct table *table, const char *name, size_t length) {
  for (size_t i = table->count; i-- > 0;) /* findings of a folder come one after the other */
    if (strncmp(table->rows[i].name, name, length) == 0 && !table->rows[i].name[length])
      return &table->rows[i];
  if (table->count == table->capacity) {
    table->capacity = table->capacity ? 2 * table->capacity : 64;
    table->rows = scan_alloc(table->rows, table->capacity * sizeof *table->rows);
  }
  table->rows[table->count] = (struct row){.name = scan_format("%.*s", (int)length, name)};
  return &table->rows[table->count++];
}

static void table_free(struct table *table) {
  for (size_t i = 0; i < table->count; i++)
    free(table->rows[i].name);
  free(table->rows);
}

static void count_finding(struct count *count, const struct finding *finding) {
  if (finding->standing != STANDING_OPEN)
    count->accepted += finding->verdict != VERDICT_MENTION;
  else if (finding->verdict == VERDICT_REWRITE)
    count->rewrite++;
  else if (finding->verdict == VERDICT_REPORT)
    count->report++;
  else
    count->mention++;
}

static size_t folder_length(const char *path) {
  size_t length = 0;
  unsigned depth = 0;
  for (size_t i = 0; path[i] && depth < FOLDER_DEPTH; i++)
    if (path[i] == '/' && i > 0) {
      length = i;
      depth++;
    }
  return length;
}

static void collect(const struct report *report, struct table *symbols, struct table *folders) {
  for (struct report_walk walk = {.report = report}; report_next(&walk);) {
    const struct finding *finding = walk.finding;
    struct row *symbol = table_row(symbols, finding->symbol->id, strlen(finding->symbol->id));
    symbol->symbol = finding->symbol;
    count_finding(&symbol->count, finding);
    char *path = report_path(walk.scan, walk.file->path);
    size_t length = folder_length(path);
    count_finding(&table_row(folders, length ? path : ".", length ? length : 1)->count, finding);
    free(path);
  }
}

/* Most live uses first. */
static int compare_rows(const void *left, const void *right) {
  const struct row *a = left, *b = right;
  if (live(&a->count) != live(&b->count))
    return live(&a->count) > live(&b->count) ? -1 : 1;
  return strcmp(a->name, b->name);
}

static int compare_names(const void *left, const void *right) {
  return strcmp(((const struct row *)left)->name, ((const struct row *)right)->name);
}

static void print_tile(size_t number, const char *what, const char *class) {
  printf("<div class=\"tile\"><b class=\"%s\">%zu</b>%s</div>\n", class, number, what);
}

static void print_totals(const struct report *report) {
  const struct totals *totals = &report->totals;
  size_t uses = totals->rewrite + totals->report;
  char *route = report_route(&report->scans[0].options);
  fputs("<h1>Uses of removed kernel names</h1>\n<p>", stdout);
  for (size_t i = 0; i < report->count; i++) {
    fputs(i ? ", <code>" : "<code>", stdout);
    print_text(report->scans[i].root);
    fputs("</code>", stdout);
  }
  fputs(" against kernel release <b>", stdout);
  print_text(report->scans[0].options.kernel);
  fputs("</b>, rewritten to <b>", stdout);
  print_text(route);
  printf("</b>; %zu file%s looked at.</p>\n<div class=\"tiles\">\n", totals->files, report_plural(totals->files));
  print_tile(uses, "live uses, which fail with this release", uses ? "bad" : "good");
  print_tile(totals->rewrite, "of them <code>sgl-migrate fix</code> rewrites", "");
  print_tile(totals->report, "of them need a person", totals->report ? "bad" : "");
  print_tile(totals->files_with_uses, "files with live uses", "");
  print_tile(totals->mention, "mentions in comments and texts", "");
  print_tile(totals->ignored_by_comment + totals->in_baseline, "accepted: comment or baseline", "");
  print_tile(totals->not_analysed + totals->partly, "files not analysed in full",
             totals->not_analysed + totals->partly ? "bad" : "good");
  fputs("</div>\n", stdout);
  free(route);
}

static void print_table(struct table *table, const char *title, const char *first, bool removals) {
  if (table->count)
    qsort(table->rows, table->count, sizeof *table->rows, compare_rows);
  size_t most = table->count ? live(&table->rows[0].count) : 0;
  printf("<h2>%s</h2>\n<table>\n<tr><th>%s</th><th class=\"n\">live</th><th></th><th class=\"n\">fix</th>"
         "<th class=\"n\">person</th><th class=\"n\">accepted</th><th class=\"n\">mentions</th>%s</tr>\n",
         title, first, removals ? "<th>what happened, what to use</th>" : "");
  for (size_t i = 0; i < table->count; i++) {
    const struct row *row = &table->rows[i];
    fputs("<tr><td><code>", stdout);
    print_text(row->name);
    printf("</code></td><td class=\"n\">%zu</td><td><span class=\"bar\" style=\"width:%zupx\"></span></td>"
           "<td class=\"n\">%zu</td><td class=\"n\">%zu</td><td class=\"n\">%zu</td><td class=\"n\">%zu</td>",
           live(&row->count), most ? 100 * live(&row->count) / most : 0, row->count.rewrite, row->count.report,
           row->count.accepted, row->count.mention);
    if (removals) {
      char *removed = report_removals(row->symbol), *help = report_help(row->symbol);
      fputs("<td><details><summary>", stdout);
      print_text(row->symbol->summary);
      fputs("</summary><pre>", stdout);
      print_lines(removed + strlen(row->symbol->summary)); /* the summary has been said */
      print_lines(help);
      fputs("</pre></details></td>", stdout);
      free(removed);
      free(help);
    }
    fputs("</tr>\n", stdout);
  }
  if (!table->count)
    fputs("<tr><td class=\"good\">none</td></tr>\n", stdout);
  fputs("</table>\n", stdout);
}

/* Against the baseline: of each name what was accepted, what of it is left, what came. */
static void print_trend(const struct report *report, const struct table *symbols) {
  const struct baseline *baseline = report->baseline;
  fputs("<h2>Trend</h2>\n", stdout);
  if (!baseline) {
    fputs("<p>No baseline was given; <code>--write-baseline</code> makes one to compare with.</p>\n", stdout);
    return;
  }
  struct table names = {0};
  size_t accepted = 0, found = 0;
  for (size_t i = 0; i < baseline->count; i++) {
    const struct baseline_entry *entry = &baseline->entries[i];
    struct count *count = &table_row(&names, entry->symbol, strlen(entry->symbol))->count;
    count->report += entry->count; /* accepted then */
    count->accepted += entry->seen;
    accepted += entry->count;
    found += entry->seen;
  }
  for (size_t i = 0; i < symbols->count; i++)
    table_row(&names, symbols->rows[i].name, strlen(symbols->rows[i].name))->count.rewrite =
        live(&symbols->rows[i].count);
  size_t came = report->totals.rewrite + report->totals.report;
  fputs("<p>Against the baseline <code>", stdout);
  print_text(baseline->name);
  printf("</code>: <b class=\"%s\">%zu gone</b> of %zu, %zu left (%zu of them in moved files), "
         "<b class=\"%s\">%zu new</b>.</p>\n",
         accepted > found ? "good" : "", accepted - found, accepted, found, baseline->moved, came ? "bad" : "good",
         came);
  fputs(
      "<table>\n<tr><th>name</th><th class=\"n\">in the baseline</th><th class=\"n\">gone</th><th class=\"n\">new</th>"
      "<th class=\"n\">now</th></tr>\n",
      stdout);
  if (names.count)
    qsort(names.rows, names.count, sizeof *names.rows, compare_names);
  for (size_t i = 0; i < names.count; i++) {
    const struct count *count = &names.rows[i].count;
    if (!count->report && !count->rewrite)
      continue;
    fputs("<tr><td><code>", stdout);
    print_text(names.rows[i].name);
    printf("</code></td><td class=\"n\">%zu</td><td class=\"n\">%zu</td><td class=\"n\">%zu</td><td "
           "class=\"n\">%zu</td></tr>\n",
           count->report, count->report - count->accepted, count->rewrite, count->accepted + count->rewrite);
  }
  fputs("</table>\n", stdout);
  table_free(&names);
}

static void print_uses(const struct report *report) {
  fputs("<h2>Every live use</h2>\n<table>\n<tr><th>place</th><th>name</th><th>what is to be done</th></tr>\n", stdout);
  for (struct report_walk walk = {.report = report}; report_next(&walk);) {
    const struct finding *finding = walk.finding;
    if (finding->verdict == VERDICT_MENTION || finding->standing != STANDING_OPEN)
      continue;
    char *path = report_path(walk.scan, walk.file->path);
    fputs("<tr><td><code>", stdout);
    print_text(path);
    printf(":%u</code></td><td><code>", finding->line);
    print_text(finding->symbol->id);
    printf("</code><br><span class=\"dim\">%s</span></td><td>", report_verdict(finding->verdict));
    print_text(finding->message);
    fputs("</td></tr>\n", stdout);
    free(path);
  }
  fputs("</table>\n", stdout);
}

static void print_troubles(const struct report *report) {
  const struct totals *totals = &report->totals;
  printf(
      "<h2>What was not looked at, and what else needs attention</h2>\n<p>%zu not analysed, %zu in part, %zu left out "
      "on purpose, %zu ignored by git; %zu ignore comments and %zu entries of the baseline stand for nothing.</p>\n",
      totals->not_analysed, totals->partly, totals->not_entered, totals->ignored, totals->comment_faults,
      totals->stale);
  if (!report->troubles_count)
    return;
  fputs("<table>\n<tr><th>path</th><th></th><th>reason</th></tr>\n", stdout);
  for (size_t i = 0; i < report->troubles_count; i++) {
    const struct trouble *trouble = &report->troubles[i];
    char *path = report_path(&report->scans[trouble->root], trouble->path);
    fputs("<tr><td><code>", stdout);
    print_text(path);
    if (trouble->line)
      printf(":%u", trouble->line);
    printf("</code></td><td>%s</td><td>", report_trouble_word(trouble));
    print_text(trouble->text);
    fputs("</td></tr>\n", stdout);
    free(path);
  }
  fputs("</table>\n", stdout);
}

bool report_html(const struct report *report) {
  struct table symbols = {0}, folders = {0};
  collect(report, &symbols, &folders);
  fputs(head, stdout);
  print_totals(report);
  print_table(&symbols, "By name", "name", true);
  print_table(&folders, "By folder", "folder", false);
  print_trend(report, &symbols);
  print_uses(report);
  print_troubles(report);
  fputs("<p class=\"dim\">sgl-migrate " SGL_VERSION "</p>\n</body>\n</html>\n", stdout);
  table_free(&symbols);
  table_free(&folders);
  return true;
}
