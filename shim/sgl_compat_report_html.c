/* report --html: one page without scripts, with all that it needs in it. */
#include "shim/sgl_compat_tool.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void print_text(FILE *out, const char *text) {
  for (; *text; text++)
    switch (*text) {
    case '<':
      fputs("&lt;", out);
      break;
    case '>':
      fputs("&gt;", out);
      break;
    case '&':
      fputs("&amp;", out);
      break;
    case '"':
      fputs("&quot;", out);
      break;
    default:
      putc(*text, out);
    }
}

static const char head[] =
    "<!DOCTYPE html>\n"
    "<html lang=\"en\">\n"
    "<head>\n"
    "<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width\">\n"
    "<title>Deleted names in use</title>\n"
    "<style>\n"
    "body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 75em; padding: 0 1em; color: #222; }\n"
    "table { border-collapse: collapse; width: 100%; }\n"
    "th, td { text-align: left; padding: .3em .8em; border-bottom: 1px solid #ddd; vertical-align: top; }\n"
    "td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }\n"
    "code, summary { font-family: ui-monospace, monospace; font-size: 13px; }\n"
    ".use { color: #a40000; } .fails { color: #8a5a00; } .ready code { color: #146c2e; } .ready code, .unknown code { "
    "margin-right: 1em; }\n"
    "@media (prefers-color-scheme: dark) { body { background: #181a1b; color: #ddd; } th, td { border-color: #444; }\n"
    "  .use { color: #ff8a80; } .fails { color: #ffcc80; } .ready code { color: #81c995; } }\n"
    "</style>\n"
    "</head>\n"
    "<body>\n"
    "<h1>Deleted names in use</h1>\n";

static void print_number(FILE *out, const json_t *number) {
  fprintf(out, "<td class=\"n\">%lld</td>", (long long)json_integer_value(number));
}

static void print_symbol(FILE *out, const json_t *tree, const char *id, const json_t *symbol) {
  const json_t *callers = json_object_get(symbol, "callers");
  bool fails = tool_report_only_fails(symbol);
  size_t i;
  json_t *caller;
  fputs("<tr><td><details><summary>", out);
  print_text(out, id);
  fputs("</summary><ul>", out);
  json_array_foreach(callers, i, caller) {
    fputs("<li title=\"", out);
    print_text(out, json_string_value(json_object_get(caller, "file")));
    fputs("\"><code>", out);
    print_text(out, tool_report_caller(caller).text);
    fputs("</code></li>", out);
  }
  if (tool_report_jobs(symbol).text[0]) {
    fputs("<li>", out);
    print_text(out, tool_report_jobs(symbol).text);
    fputs("</li>", out);
  }
  fputs("</ul></details></td><td>", out);
  print_text(out, json_string_value(json_object_get(symbol, "removed_in")));
  fprintf(out, "</td><td>%s</td>", tool_report_stages(symbol).text);
  print_number(out, json_object_get(symbol, "calls"));
  print_number(out, json_object_get(symbol, "failed"));
  fprintf(out, "<td class=\"n\">%lld of %lld</td>", (long long)json_integer_value(json_object_get(symbol, "processes")),
          (long long)json_integer_value(json_object_get(tree, "processes")));
  print_number(out, json_object_get(symbol, "jobs"));
  fprintf(out, "<td>%s</td><td>%s</td>", tool_date(json_object_get(symbol, "first")).text,
          tool_date(json_object_get(symbol, "last")).text);
  fprintf(out, "<td class=\"%s\">%s</td></tr>\n", fails ? "fails" : "use",
          fails ? "no: it is asked for, and fails" : "no: in use");
}

static void print_symbols(FILE *out, const json_t *tree) {
  const json_t *symbols = json_object_get(tree, "symbols");
  const char *id;
  json_t *symbol;
  if (json_object_size(symbols) == 0)
    return;
  fputs("<table>\n<tr><th>symbol, and who uses it</th><th>removed in</th><th>stage</th><th class=\"n\">uses</th>"
        "<th class=\"n\">failed</th><th class=\"n\">processes</th><th class=\"n\">jobs</th><th>first</th><th>last</th>"
        "<th>ready to delete</th></tr>\n",
        out);
  json_object_foreach((json_t *)symbols, id, symbol) {
    print_symbol(out, tree, id, symbol);
  }
  fputs("</table>\n", out);
}

static void print_kernels(FILE *out, const json_t *tree) {
  const char *name;
  json_t *calls, *kernels = json_object_get(tree, "kernels"), *lost = json_object_get(tree, "kernels_lost");
  if (json_object_size(kernels) == 0)
    return;
  fputs("<h2>Kernels that ran</h2>\n<table>\n<tr><th>kernel</th><th class=\"n\">calls</th></tr>\n", out);
  json_object_foreach(kernels, name, calls) {
    fputs("<tr><td><code>", out);
    print_text(out, name);
    fputs("</code></td>", out);
    print_number(out, calls);
    fputs("</tr>\n", out);
  }
  if (json_integer_value(lost)) {
    fputs("<tr><td>others, of processes with more than 256</td>", out);
    print_number(out, lost);
    fputs("</tr>\n", out);
  }
  fputs("</table>\n", out);
}

static void print_shadow(FILE *out, const json_t *shadow) {
  const char *id;
  json_t *counts;
  if (json_object_size(shadow) == 0)
    return;
  fputs("<h2>Shadow comparisons</h2>\n<ul>\n", out);
  json_object_foreach((json_t *)shadow, id, counts) {
    fputs("<li><code>", out);
    print_text(out, id);
    fprintf(out, "</code>: %s</li>\n", tool_report_shadow(counts).text);
  }
  fputs("</ul>\n", out);
}

static void print_not_counted(FILE *out, const json_t *names) {
  const char *id;
  json_t *hidden;
  if (json_object_size(names) == 0)
    return;
  fputs("<h2>Not known</h2>\n<p>An installed sgl_kernel serves these names itself, and not all of their uses are "
        "counted.</p>\n<table>\n<tr><th>symbol</th><th>uses that are not counted</th><th "
        "class=\"n\">processes</th></tr>\n",
        out);
  json_object_foreach((json_t *)names, id, hidden) {
    fputs("<tr><td><code>", out);
    print_text(out, id);
    fprintf(out, "</code></td><td>%s</td>", tool_report_faces(hidden).text);
    print_number(out, json_object_get(hidden, "processes"));
    fputs("</tr>\n", out);
  }
  fputs("</table>\n", out);
}

static void print_unused(FILE *out, const json_t *tree) {
  const json_t *unused = json_object_get(tree, "unused");
  size_t i;
  json_t *id;
  if (json_array_size(unused) == 0 || json_integer_value(json_object_get(tree, "processes")) == 0)
    return;
  bool complete = json_is_true(json_object_get(tree, "complete"));
  fprintf(out, "<h2>%s</h2>\n<p>%s</p>\n<p class=\"%s\">",
          complete ? "Ready to delete" : "Not used, as far as is known", tool_report_unused(tree).text,
          complete ? "ready" : "unknown");
  json_array_foreach(unused, i, id) {
    fputs("<code>", out);
    print_text(out, json_string_value(id));
    fputs("</code> ", out);
  }
  fputs("</p>\n", out);
}

bool tool_report_page(const json_t *tree, const char *path) {
  FILE *out = fopen(path, "we");
  if (!out) {
    tool_error("--html %s: %s", path, strerror(errno));
    return false;
  }
  fputs(head, out);
  fputs("<p>", out);
  print_text(out, tool_report_summary(tree).text);
  fputs("</p>\n", out);
  print_symbols(out, tree);
  print_kernels(out, tree);
  print_shadow(out, json_object_get(tree, "shadow"));
  print_not_counted(out, json_object_get(tree, "not_counted"));
  print_unused(out, tree);
  fputs("</body>\n</html>\n", out);
  bool good = !ferror(out);
  errno = 0;
  if (fclose(out) != 0 || !good) {
    tool_error("--html %s: %s", path, errno ? strerror(errno) : "it could not all be written");
    return false;
  }
  return true;
}
