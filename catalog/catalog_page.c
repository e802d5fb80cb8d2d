/* The page of one name: what it was, when it left, what to do now, code before and after, traps. One writer for two
 * forms, Markdown (docs/names) and a terminal (sgl-migrate explain), so that both say the same. */
#include "catalog/catalog_private.h"

#include <ctype.h>
#include <stdarg.h>
#include <string.h>

struct page {
  FILE *out;
  bool markdown;
  bool blank; /* what was written last is an empty line */
  const struct catalog *catalog;
  const struct catalog_symbol *symbol;
};

/* --- text in both forms ---------------------------------------------------------------------------------------------
 */

void catalog_markdown(FILE *out, const char *text) {
  for (const char *at = text; *at; at++) {
    bool inside = at > text && isalnum((unsigned char)at[-1]) && isalnum((unsigned char)at[1]);
    if (strchr("\\`*[]<>|~", *at) || (*at == '_' && !inside))
      fputc('\\', out);
    fputc(*at == '\n' ? ' ' : *at, out);
  }
}

/* The format is our own: a backtick begins and ends code, %s is text of the catalog, the rest is written as it is. */
static void say(struct page *page, const char *format, ...) {
  va_list texts;
  va_start(texts, format);
  bool code = false;
  for (const char *at = format; *at; at++) {
    if (*at == '`') {
      code = !code;
      if (page->markdown)
        fputc('`', page->out);
    } else if (at[0] == '%' && at[1] == 's') {
      const char *text = va_arg(texts, const char *);
      if (page->markdown && !code)
        catalog_markdown(page->out, text);
      else
        fputs(text, page->out);
      at++;
    } else {
      fputc(*at, page->out);
    }
  }
  va_end(texts);
}

static void heading(struct page *page, const char *text) {
  fprintf(page->out, page->markdown ? "%s## %s\n\n" : "%s%s\n", page->blank ? "" : "\n", text);
  page->blank = false;
}

/* What begins a point of a list. */
static void point(struct page *page) {
  fputs(page->markdown ? "- " : "  ", page->out);
  page->blank = false;
}

static void caption(struct page *page, const char *text) {
  fputs(page->markdown ? "" : "  ", page->out);
  say(page, text);
  fputs(page->markdown ? "\n\n" : "\n", page->out);
  page->blank = page->markdown;
}

static void begin_code(struct page *page, const char *language) {
  if (page->markdown)
    fprintf(page->out, "```%s\n", language);
}

static void line(struct page *page, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void line(struct page *page, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fputs(page->markdown ? "" : "    ", page->out);
  vfprintf(page->out, format, arguments);
  fputc('\n', page->out);
  va_end(arguments);
}

static void end_code(struct page *page) {
  if (page->markdown)
    fputs("```\n\n", page->out);
  page->blank = page->markdown;
}

/* --- what it was ----------------------------------------------------------------------------------------------------
 */

static void list(struct page *page, const char *what, const char *const *names, unsigned count) {
  if (!count)
    return;
  point(page);
  say(page, what);
  for (unsigned i = 0; i < count; i++)
    say(page, "%s`%s`", i ? ", " : "", names[i]);
  fputs(".\n", page->out);
}

static void what_it_was(struct page *page) {
  const struct catalog_symbol *symbol = page->symbol;
  heading(page, page->markdown ? "What it was" : "what it was");
  if (symbol->python_count) {
    point(page);
    fputs("Python: ", page->out);
    for (unsigned i = 0; i < symbol->python_count; i++)
      say(page, "%s`%s.%s`", i ? ", " : "", symbol->python[i].module, symbol->python[i].name);
    fputs(".\n", page->out);
  }
  if (*symbol->op_name) {
    point(page);
    say(page, "torch operator: `%s::%s`.\n", page->catalog->library.op_namespace, symbol->op_name);
  }
  if (*symbol->cxx.name) {
    point(page);
    say(page, "C++ function: `%s%s%s`, symbol `%s`.\n", symbol->cxx.scope, *symbol->cxx.scope ? "::" : "",
        symbol->cxx.name, symbol->cxx.mangled);
  }
  if (*symbol->added_in) {
    point(page);
    say(page, "New in %s.\n", symbol->added_in);
  }
  list(page, "Kernel templates: ", symbol->cxx.templates, symbol->cxx.templates_count);
  list(page, "Source files: ", symbol->sources, symbol->sources_count);
  list(page, "Tests: ", symbol->tests, symbol->tests_count);
  list(page, "Benchmarks: ", symbol->benchmarks, symbol->benchmarks_count);
}

/* --- when and why ---------------------------------------------------------------------------------------------------
 */

/* The first release of sglang whose own pin is a kernel without the name. */
static void first_sglang(struct page *page) {
  const struct catalog_library *library = &page->catalog->library;
  const struct catalog_removal *removal = catalog_main_removal(page->symbol);
  for (unsigned i = 0; removal && removal->first_without && i < library->sglang_pins_count; i++)
    if (catalog_version_compare(library->sglang_pins[i].kernel, removal->first_without) >= 0) {
      point(page);
      say(page, "The first sglang that pins a kernel without it is %s (kernel %s).\n", library->sglang_pins[i].release,
          library->sglang_pins[i].kernel);
      return;
    }
}

static void when_it_left(struct page *page) {
  const struct catalog_symbol *symbol = page->symbol;
  heading(page, page->markdown ? "When and why it went" : "what happened");
  for (unsigned i = 0; i < symbol->removals_count; i++) {
    const struct catalog_removal *removal = &symbol->removals[i];
    point(page);
    say(page, "%s (%s): ", catalog_layer_title(removal->layer), catalog_platform_title(removal->platform));
    if (!removal->first_without)
      fputs("still there.\n", page->out);
    else
      say(page, "last in %s, gone from %s. Change %s of %s.\n", removal->last_with, removal->first_without,
          removal->change, removal->date);
  }
  if (symbol->status == CATALOG_PLANNED) {
    point(page);
    say(page, "Every known release has it; its removal is announced or likely.\n");
  }
  first_sglang(page);
}

/* --- what to do now -------------------------------------------------------------------------------------------------
 */

static void limits(struct page *page, const struct catalog_limits *limits) {
  if (limits->tokens)
    fprintf(page->out, " It takes at most %u rows.", limits->tokens);
  if (limits->k_multiple)
    fprintf(page->out, " The inner dimension is a multiple of %u.", limits->k_multiple);
  if (limits->n_multiple)
    fprintf(page->out, " The columns are a multiple of %u.", limits->n_multiple);
  if (limits->n_most)
    fprintf(page->out, " At most %u columns.", limits->n_most);
  if (limits->sm_least)
    fprintf(page->out, " It needs compute capability %u.%u.", limits->sm_least / 10, limits->sm_least % 10);
}

static void route(struct page *page, const struct catalog_route *route, bool elsewhere) {
  point(page);
  for (unsigned i = 0; elsewhere && i < route->platforms_count; i++)
    fprintf(page->out, "%s%s%s", i ? ", " : "On ", catalog_platform_title(route->platforms[i]),
            i + 1 == route->platforms_count ? ": " : "");
  switch (route->kind) {
  case CATALOG_ROUTE_NONE:
    say(page, elsewhere ? "no replacement. Note: %s\n" : "No replacement. Note: %s\n", route->note);
    return;
  case CATALOG_ROUTE_SGLANG:
    say(page, "Replacement in sglang %s%s%s: `%s.%s`.", route->from,
        route->until ? " up to but not including " : " and newer", route->until ? route->until : "", route->module,
        route->name);
    break;
  case CATALOG_ROUTE_LIBRARY:
    say(page, "Replacement: `%s.%s`%s%s.", route->module, route->name, route->from ? ", from release " : "",
        route->from ? route->from : "");
    break;
  case CATALOG_ROUTE_JIT:
    say(page, "Replacement: `%s.%s`, a kernel of this project.", route->module, route->name);
    break;
  }
  for (unsigned i = 0; !elsewhere && i < route->platforms_count; i++)
    fprintf(page->out, "%s%s%s", i ? ", " : " On ", catalog_platform_title(route->platforms[i]),
            i + 1 == route->platforms_count ? " only." : "");
  if (catalog_route_takes_old_calls(route))
    fputs(" Calls stay as they are.", page->out);
  limits(page, &route->limits);
  if (*route->note)
    say(page, " Note: %s", route->note);
  fputc('\n', page->out);
}

static void what_to_do(struct page *page, bool compat) {
  const struct catalog_symbol *symbol = page->symbol;
  heading(page, page->markdown ? "What to do now" : "what to use");
  for (unsigned i = 0; i < symbol->routes_count; i++)
    route(page, &symbol->routes[i], false);
  for (unsigned i = 0; i < symbol->elsewhere_count; i++)
    route(page, &symbol->elsewhere[i], true);
  if (!symbol->routes_count) {
    point(page);
    fputs("No replacement is known.\n", page->out);
  }
  if (compat) {
    char text[1000];
    point(page);
    say(page, "Without a change of code, under sgl-kernel-compat: %s\n", catalog_answer(symbol, text, sizeof text));
  }
}

/* --- before and after -----------------------------------------------------------------------------------------------
 */

/* "name(a, b)" with the old parameters; a route that has an argument mapping names them all. */
static void old_call(struct page *page, const char *name) {
  const struct catalog_symbol *symbol = page->symbol;
  const struct catalog_route *mapped = NULL;
  for (unsigned i = 0; i < symbol->routes_count && !mapped; i++)
    if (symbol->routes[i].arguments_count)
      mapped = &symbol->routes[i];
  fprintf(page->out, "%s%s(", page->markdown ? "" : "    ", name);
  for (unsigned i = 0; mapped && i < mapped->arguments_count; i++)
    fprintf(page->out, "%s%s", i ? ", " : "", mapped->arguments[i].from);
  fputs(mapped ? ")\n" : "...)\n", page->out);
}

/* "new(x=a, w=b)", and what has no counterpart. */
static void new_call(struct page *page, const struct catalog_route *route) {
  if (catalog_route_takes_old_calls(route)) {
    line(page, "%s(...)  # the same arguments", route->name);
    return;
  }
  fprintf(page->out, "%s%s(", page->markdown ? "" : "    ", route->name);
  bool any = false, gone = false;
  for (unsigned i = 0; i < route->arguments_count; i++) {
    const struct catalog_argument *argument = &route->arguments[i];
    gone |= !*argument->to;
    if (*argument->to)
      fprintf(page->out, "%s%s=%s", any ? ", " : "", argument->to, argument->from);
    any |= *argument->to != '\0';
  }
  fputs(any ? ")" : "...)", page->out);
  bool first = true;
  for (unsigned i = 0; gone && i < route->arguments_count; i++)
    if (!*route->arguments[i].to) {
      fprintf(page->out, "%s%s", first ? "  # gone: " : ", ", route->arguments[i].from);
      first = false;
    }
  fputc('\n', page->out);
}

static void python_after(struct page *page, const struct catalog_route *route) {
  const char *rest = catalog_route_takes_old_calls(route) ? ":" : ", by hand:";
  fputs(page->markdown ? "" : "  ", page->out);
  if (route->kind == CATALOG_ROUTE_JIT)
    say(page, "after, with `--to jit`%s", rest);
  else if (route->kind == CATALOG_ROUTE_SGLANG)
    say(page, "after, with `--to sglang@%s`%s%s%s", route->from,
        route->until ? " up to but not including " : " and newer", route->until ? route->until : "", rest);
  else
    say(page, "after, with another library%s", rest);
  fputs(page->markdown ? "\n\n" : "\n", page->out);
  begin_code(page, "python");
  if (strncmp(route->module, "torch.ops.", 10) == 0) {
    line(page, "%s.%s(...)", route->module, route->name);
  } else {
    line(page, "from %s import %s", route->module, route->name);
    new_call(page, route);
  }
  end_code(page);
}

static void python(struct page *page) {
  const struct catalog_symbol *symbol = page->symbol;
  if (!symbol->python_count)
    return;
  heading(page, "Python");
  caption(page, "before:");
  begin_code(page, "python");
  line(page, "from %s import %s", symbol->python[0].module, symbol->python[0].name);
  if (*symbol->python_signature)
    line(page, "# %s%s", symbol->python[0].name, symbol->python_signature);
  old_call(page, symbol->python[0].name);
  end_code(page);
  for (unsigned i = 0; i < symbol->routes_count; i++)
    if (symbol->routes[i].kind != CATALOG_ROUTE_NONE)
      python_after(page, &symbol->routes[i]);
    else
      caption(page, "after: there is no replacement");
}

static void cxx(struct page *page) {
  const struct catalog_symbol *symbol = page->symbol;
  if (!*symbol->cxx.name)
    return;
  heading(page, "C++");
  caption(page, "before:");
  begin_code(page, "cpp");
  if (*page->catalog->library.cxx_header)
    line(page, "#include \"%s\"", page->catalog->library.cxx_header);
  line(page, "%s;", symbol->cxx.declaration);
  end_code(page);
  const struct catalog_route *route = catalog_jit_route(symbol);
  if (route && route->cxx) {
    caption(page, "after, with `--to jit`:");
    begin_code(page, "cpp");
    line(page, "#include \"sgl_kernel_jit/torch.h\"");
    line(page, "sgl_kernel_jit::%s(...)  // the same arguments", route->name);
    end_code(page);
  } else if (route) {
    caption(page, "after, by hand:");
    begin_code(page, "cpp");
    line(page, "#include \"sgl_kernel_jit/torch.h\"");
    line(page, "sgl_kernel_jit::%s(...)", route->name);
    end_code(page);
  } else {
    caption(page, "after: there is no C++ replacement");
  }
}

static void torch_operator(struct page *page) {
  const struct catalog_symbol *symbol = page->symbol;
  if (!*symbol->op_name)
    return;
  heading(page, "torch operator");
  caption(page, "before:");
  begin_code(page, "python");
  line(page, "torch.ops.%s.%s(...)", page->catalog->library.op_namespace, symbol->op_name);
  line(page, "# %s", symbol->op_schema);
  end_code(page);
  const struct catalog_route *route = symbol->routes_count ? &symbol->routes[0] : NULL;
  char after[300];
  if (!route || route->kind == CATALOG_ROUTE_NONE)
    snprintf(after, sizeof after, "after: there is no replacement");
  else if (strncmp(route->module, "torch.ops.", 10) == 0)
    snprintf(after, sizeof after, "after: %s.%s; its arguments may be others, so fix leaves it alone", route->module,
             route->name);
  else if (!symbol->python_count) {
    for (unsigned i = 0; i < symbol->routes_count; i++)
      python_after(page, &symbol->routes[i]);
    return;
  } else
    snprintf(after, sizeof after,
             "after: the Python function above; the operator's arguments may be others, so fix leaves it alone");
  caption(page, after);
}

/* --- the page -------------------------------------------------------------------------------------------------------
 */

static void texts(struct page *page, const char *title, const char *const *list, unsigned count) {
  if (!count)
    return;
  heading(page, title);
  for (unsigned i = 0; i < count; i++) {
    point(page);
    say(page, "%s\n", list[i]);
  }
}

void catalog_page(FILE *out, const struct catalog *catalog, const struct catalog_symbol *symbol, bool markdown,
                  bool compat) {
  struct page page = {.out = out, .markdown = markdown, .catalog = catalog, .symbol = symbol};
  what_it_was(&page);
  when_it_left(&page);
  what_to_do(&page, compat);
  python(&page);
  cxx(&page);
  torch_operator(&page);
  texts(&page, markdown ? "Traps" : "traps", symbol->traps, symbol->traps_count);
  texts(&page, markdown ? "Sources" : "sources", symbol->provenance, symbol->provenance_count);
}
