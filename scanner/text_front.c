/* What kind of text a file is, and which rules that kind follows (case contract: Python rules 8 to 10, text rules 13
 * and 14). Nothing here is ever edited: a use in a text is a report or a mention. */
#include "scanner/baseline.h"
#include "scanner/ignore.h"
#include "scanner/text.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* --- kinds -------------------------------------------------------------------------------------------------------- */

struct kind_row {
  const char *names; /* separated by spaces, with a space at both ends */
  enum text_kind kind;
  enum text_style style;
};

static const struct kind_row endings[] = {
    {" md markdown mdx rst txt adoc asciidoc org tex html htm texi rtf wiki ", TEXT_DOC, STYLE_HASH},
    {" sh bash zsh ksh fish dash slurm sbatch pbs bats ps1 cmake mk mak make bazel bzl build bp gn gni ninja just gyp "
     "gypi "
     "dockerfile containerfile ",
     TEXT_SCRIPT, STYLE_HASH},
    {" s asm ld lds exp sym ", TEXT_SCRIPT, STYLE_C}, /* what a linker or assembler gets */
    {" yml yaml ", TEXT_YAML, STYLE_YAML},
    {" toml cfg ini conf properties env service desktop ", TEXT_CONFIG, STYLE_HASH},
    {" patch diff ", TEXT_PATCH, STYLE_HASH},
    {" pyx pxd ", TEXT_PYTHON, STYLE_HASH},
    {" go rs js mjs cjs ts jsx tsx java kt kts scala swift cs dart php proto zig groovy gradle glsl wgsl hlsl metal cl "
     "v sv d "
     "vue svelte css scss td mlir ",
     TEXT_CODE, STYLE_C},
    {" rb pl pm r jl ex exs nim tcl awk sed cr mojo nix tf hcl ", TEXT_CODE, STYLE_HASH},
    {" lua sql hs elm ada ", TEXT_CODE, STYLE_DASH},
    {" el lisp clj cljs scm rkt ", TEXT_CODE, STYLE_SEMICOLON},
    {" erl ", TEXT_CODE, STYLE_PERCENT},
};

/* Of files without a telling ending; up to the first dot or dash, in capitals. */
static const struct kind_row plain_names[] = {
    {" README CHANGELOG CHANGES NEWS NOTES AUTHORS CONTRIBUTING HISTORY TODO FAQ INSTALL ", TEXT_DOC, STYLE_HASH},
    {" MAKEFILE GNUMAKEFILE DOCKERFILE CONTAINERFILE BUILD WORKSPACE BUCK TARGETS JUSTFILE SCONSTRUCT SCONSCRIPT "
     "JENKINSFILE VAGRANTFILE PROCFILE ",
     TEXT_SCRIPT, STYLE_HASH},
};

static bool listed(const char *names, const char *name, size_t length) {
  for (const char *at = names + 1; *at; at += strcspn(at, " ") + 1)
    if (strcspn(at, " ") == length && strncasecmp(at, name, length) == 0)
      return true;
  return false;
}

static const struct kind_row *find_row(const struct kind_row *rows, size_t count, const char *name, size_t length) {
  for (size_t i = 0; i < count; i++)
    if (length && listed(rows[i].names, name, length))
      return &rows[i];
  return NULL;
}

/* Endings that a template engine or a configure step takes off. */
static bool template_ending(const char *ending) {
  return listed(" in jinja jinja2 j2 tmpl tpl template mustache ", ending, strlen(ending));
}

enum text_kind text_kind(const char *path, const uint8_t *bytes, size_t size, enum text_style *style) {
  const char *slash = strrchr(path, '/');
  const char *base = slash ? slash + 1 : path;
  *style = STYLE_HASH;
  if (strcmp(base, "CMakeLists.txt") == 0)
    return TEXT_SCRIPT;
  if (strncasecmp(base, "requirements", 12) == 0 && strstr(base, ".txt"))
    return TEXT_CONFIG;
  char *name = scan_format("%s", base);
  char *dot = strrchr(name, '.');
  bool template = dot && dot > name && template_ending(dot + 1);
  enum text_kind kind = TEXT_UNKNOWN;
  if (template) {
    *dot = '\0';
    switch (walk_language(name)) {
    case LANGUAGE_PYTHON:
      kind = TEXT_PYTHON;
      break;
    case LANGUAGE_CXX:
      kind = TEXT_CXX;
      *style = STYLE_C;
      break;
    case LANGUAGE_TEXT:
      kind = text_kind(name, bytes, size, style);
      break;
    case LANGUAGE_NOTEBOOK:
    case LANGUAGE_NONE:
      kind = TEXT_NOTHING;
    }
    free(name);
    return kind;
  }
  const struct kind_row *row =
      dot && dot > name ? find_row(endings, sizeof endings / sizeof *endings, dot + 1, strlen(dot + 1)) : NULL;
  if (!row)
    row = find_row(plain_names, sizeof plain_names / sizeof *plain_names, name, strcspn(name, ".-"));
  if (row) {
    kind = row->kind;
    *style = row->style;
  } else if (size > 2 && memcmp(bytes, "#!", 2) == 0) {
    kind = TEXT_SCRIPT;
  }
  free(name);
  return kind;
}

/* --- programs in a text ------------------------------------------------------------------------------------------- */

struct program {
  const struct text_view *view;
  const size_t *offsets; /* of each byte of the copy in the view */
};

static void program_found(void *user, size_t offset, const struct catalog_symbol *symbol) {
  const struct program *program = user;
  text_find(program->view, program->offsets[offset], symbol, VERDICT_REPORT, EVIDENCE_STRING,
            "used by a program in this text");
}

/* Looks for Python in [start, end). A program in a script is often indented as a whole; Python must not see that. */
static void find_program(const struct text_view *view, size_t start, size_t end) {
  const struct catalog_symbol *symbol;
  size_t length, common = SIZE_MAX;
  if (start >= end || rules_next_name(view->scan, view->bytes + start, end - start, 0, &symbol, &length) == SIZE_MAX)
    return; /* most strings: no need to parse them */
  for (size_t line = start; line < end;) {
    size_t stop = text_line_end(view->bytes, end, line), i = line;
    while (i < stop && (view->bytes[i] == ' ' || view->bytes[i] == '\t'))
      i++;
    /* The first line of a quoted program follows its quote. */
    bool follows = line == start && line > 0 && view->bytes[line - 1] != '\n';
    if (i < stop && view->bytes[i] != '\r' && !follows && i - line < common)
      common = i - line;
    line = stop + 1;
  }
  if (common == SIZE_MAX)
    common = 0;
  uint8_t *copy = scan_alloc(NULL, end - start);
  size_t *offsets = scan_alloc(NULL, (end - start + 1) * sizeof *offsets);
  size_t size = 0;
  for (size_t line = start; line < end;) {
    size_t stop = text_line_end(view->bytes, end, line), i = line;
    while (i < stop && i - line < common && (view->bytes[i] == ' ' || view->bytes[i] == '\t'))
      i++;
    for (; i < end && i <= stop; i++) {
      offsets[size] = i;
      copy[size++] = view->bytes[i];
    }
    line = stop + 1;
  }
  offsets[size] = end - 1;
  struct program program = {view, offsets};
  python_find_in_text(view->scan, copy, size, program_found, &program);
  free(copy);
  free(offsets);
}

static bool starts_with(const uint8_t *bytes, size_t size, const char *text) {
  return size >= strlen(text) && memcmp(bytes, text, strlen(text)) == 0;
}

/* Is the region a program? One statement of it, at the start of a line or after a semicolon, begins like an import.
 * Names in it are code then, not prose. */
static bool is_program(const struct text_view *view, size_t start, size_t end) {
  const uint8_t *bytes = view->bytes;
  bool statement = true;
  for (size_t i = start; i < end; i++) {
    size_t left = end - i;
    if (bytes[i] == '\n' || bytes[i] == ';') {
      statement = true;
    } else if (bytes[i] != ' ' && bytes[i] != '\t') {
      if (statement && (starts_with(bytes + i, left, "import ") ||
                        (starts_with(bytes + i, left, "from ") &&
                         memmem(bytes + i, text_line_end(bytes, end, i) - i, " import ", 8))))
        return true;
      statement = false;
    }
  }
  return false;
}

/* --- names -------------------------------------------------------------------------------------------------------- */

static void mention(const struct text_view *view, const struct text_name *name) {
  text_find(view, name->at, name->symbol, VERDICT_MENTION, EVIDENCE_TEXT, "named in a text");
}

static void report(const struct text_view *view, const struct text_name *name, enum evidence evidence) {
  text_find(view, name->at, name->symbol, VERDICT_REPORT, evidence, "used here");
}

/* A sentence has other words; a string that is only the name, or a list of such strings, is a value. */
static bool sentence(const struct text_view *view, size_t start, size_t end) {
  for (size_t i = start; i < end; i++)
    if (view->bytes[i] == ' ' || view->bytes[i] == '\n')
      return true;
  return false;
}

/* A string or here-document: the bytes of one class around a name. */
struct region {
  size_t first, last;  /* all of it */
  size_t start, end;   /* without its quotes */
  bool program, prose; /* is_program; has more than one word */
};

/* The region around `at`; kept, because names come in order and often lie in the same one. */
static void region_at(const struct text_view *view, size_t at, struct region *region) {
  if (at >= region->first && at < region->last)
    return;
  uint8_t class = view->classes[at];
  size_t first = at, last = at + 1;
  while (first > 0 && view->classes[first - 1] == class)
    first--;
  while (last < view->size && view->classes[last] == class)
    last++;
  *region = (struct region){.first = first, .last = last, .start = first, .end = last};
  if ((class & ~CLASS_BLOCK) == CLASS_STRING) {
    while (region->start < region->end && strchr("'\"`", view->bytes[region->start]))
      region->start++;
    while (region->end > region->start && strchr("'\"`", view->bytes[region->end - 1]))
      region->end--;
  }
  region->program = is_program(view, region->start, region->end);
  region->prose = sentence(view, region->start, region->end);
}

/* Is the name printed by a command of this line? */
static bool printed(const struct text_view *view, size_t at) {
  static const char *const commands[] = {"echo",    "printf", "message", "print", "info",
                                         "warning", "error",  "log",     "die"};
  size_t start = text_line_start(view->bytes, at);
  for (size_t i = start; i < at; i++) {
    if (i > start && text_word_byte(view->bytes[i - 1]))
      continue;
    for (size_t k = 0; k < sizeof commands / sizeof *commands; k++) {
      size_t length = strlen(commands[k]);
      if (at - i > length && strncasecmp((const char *)view->bytes + i, commands[k], length) == 0 &&
          !text_word_byte(view->bytes[i + length]))
        return true;
    }
  }
  return false;
}

/* After a '#' on its line, in a program that is inside of a string or a here-document. */
static bool python_comment(const struct text_view *view, size_t at) {
  size_t start = text_line_start(view->bytes, at);
  for (size_t i = start; i < at; i++)
    if (view->bytes[i] == '#' && (i == start || view->bytes[i - 1] == ' ' || view->bytes[i - 1] == '\t'))
      return true;
  return false;
}

/* The region is exactly the qualified name: a value for a loader, not prose. */
static bool whole_value(const struct text_view *view, const struct text_name *name) {
  size_t start = name->start, end = name->at + name->length;
  const uint8_t *bytes = view->bytes;
  bool left = start == 0 || strchr("'\"`=, \t[(:\n", bytes[start - 1]) != NULL;
  return left && (end == view->size || strchr("'\"`,;) \t]\r\n", bytes[end]) != NULL);
}

/* python -c '...' on this line, in front of the name: a command inside of a longer string, as a pipeline's step is. */
static bool python_command(const struct text_view *view, size_t at) {
  size_t start = text_line_start(view->bytes, at);
  if (at > start && strchr("'\"", view->bytes[at - 1]))
    return false; /* a string of that program */
  const uint8_t *python = memmem(view->bytes + start, at - start, "python", 6);
  return python && memmem(python, (size_t)(view->bytes + at - python), " -c ", 4) != NULL;
}

/* One name in a string or here-document. */
static void name_in_region(const struct text_view *view, const struct text_name *name, struct region *region) {
  region_at(view, name->at, region);
  if (name->owner == OWNER_IMPORT)
    report(view, name, EVIDENCE_STRING);
  else if (region->program && python_comment(view, name->at))
    mention(view, name);
  else if (region->program)
    return; /* find_programs asked the Python front about it */
  else if (name->owner != OWNER_NONE && python_command(view, name->start))
    report(view, name, EVIDENCE_STRING);
  else if (region->prose)
    mention(view, name);
  else if (name->owner != OWNER_NONE)
    report(view, name, EVIDENCE_STRING);
}

/* Each string and here-document that is a program. */
static void find_programs(const struct text_view *view) {
  for (size_t at = 0; at < view->size;) {
    uint8_t class = view->classes[at] & ~CLASS_BLOCK;
    struct region region = {0};
    if (class == CLASS_STRING || class == CLASS_HERE) {
      region_at(view, at, &region);
      if (region.program)
        find_program(view, region.start, region.end);
    }
    at = region.last > at ? region.last : at + 1;
  }
}

static void name_in_script(const struct text_view *view, const struct text_name *name, struct region *region) {
  switch (view->classes[name->at] & ~CLASS_BLOCK) {
  case CLASS_COMMENT:
    mention(view, name);
    break;
  case CLASS_STRING:
  case CLASS_HERE:
    name_in_region(view, name, region);
    break;
  default:
    if (name->owner == OWNER_IMPORT)
      report(view, name, EVIDENCE_IMPORT);
    else if (printed(view, name->at))
      mention(view, name);
    else if (name->owner != OWNER_NONE)
      report(view, name, EVIDENCE_LEXICAL);
  }
}

static void run_script(const struct text_view *view) {
  find_programs(view);
  struct region region = {0};
  struct text_name name;
  for (size_t at = 0; text_next(view, at, &name); at = name.at + name.length)
    name_in_script(view, &name, &region);
}

/* Block scalars are scripts; outside of them, of programs and of comments, keys and values are data. */
static void run_yaml(const struct text_view *view) {
  find_programs(view);
  for (size_t start = 0; start < view->size;) { /* programs without quotes, as a step with "shell: python" has them */
    size_t end = start;
    while (end < view->size && view->classes[end] == view->classes[start])
      end++;
    if ((view->classes[start] & ~CLASS_BLOCK) == CLASS_CODE && is_program(view, start, end))
      find_program(view, start, end);
    start = end;
  }
  struct region region = {0};
  struct text_name name;
  for (size_t at = 0; text_next(view, at, &name); at = name.at + name.length) {
    if (view->classes[name.at] & CLASS_BLOCK)
      name_in_script(view, &name, &region);
    else if (view->classes[name.at] == CLASS_COMMENT)
      mention(view, &name);
    else if (name.owner == OWNER_IMPORT)
      report(view, &name, EVIDENCE_STRING);
    else if (printed(view, name.at))
      mention(view, &name);
  }
}

static void run_config(const struct text_view *view) {
  find_programs(view);
  struct text_name name;
  for (size_t at = 0; text_next(view, at, &name); at = name.at + name.length) {
    if (view->classes[name.at] == CLASS_COMMENT)
      mention(view, &name);
    else if (name.owner == OWNER_IMPORT)
      report(view, &name, EVIDENCE_STRING);
    else if (name.owner != OWNER_NONE && whole_value(view, &name))
      text_find(view, name.at, name.symbol, VERDICT_REPORT, EVIDENCE_STRING, "loaded by this name");
  }
}

static void run_code(const struct text_view *view) {
  find_programs(view);
  struct region region = {0};
  struct text_name name;
  for (size_t at = 0; text_next(view, at, &name); at = name.at + name.length) {
    if (view->classes[name.at] == CLASS_COMMENT)
      mention(view, &name);
    else if (view->classes[name.at] == CLASS_STRING)
      name_in_region(view, &name, &region);
    else if (name.owner == OWNER_OPERATOR && view->bytes[name.at] == '_') /* the mangled name, declared */
      report(view, &name, EVIDENCE_LEXICAL);
  }
}

static void run_python(const struct text_view *view) {
  find_program(view, 0, view->size);
  struct region region = {0};
  struct text_name name;
  for (size_t at = 0; text_next(view, at, &name); at = name.at + name.length) {
    if (view->classes[name.at] == CLASS_COMMENT)
      mention(view, &name);
    else if (name.owner == OWNER_IMPORT)
      report(view, &name, EVIDENCE_IMPORT);
    else if (name.owner != OWNER_NONE && view->classes[name.at] == CLASS_CODE)
      report(view, &name, EVIDENCE_LEXICAL);
    else if (view->classes[name.at] == CLASS_STRING)
      name_in_region(view, &name, &region);
  }
}

static void run_cxx(const struct text_view *view) {
  struct region region = {0};
  struct text_name name;
  for (size_t at = 0; text_next(view, at, &name); at = name.at + name.length) {
    size_t line = text_line_start(view->bytes, name.at);
    while (line < name.at && (view->bytes[line] == ' ' || view->bytes[line] == '\t'))
      line++;
    if (name.at - line > 8 && memcmp(view->bytes + line, "#include", 8) == 0)
      continue;
    if (view->classes[name.at] == CLASS_COMMENT)
      mention(view, &name);
    else if (view->classes[name.at] == CLASS_STRING)
      name_in_region(view, &name, &region);
    else if (name.owner == OWNER_NONE)
      report(view, &name, EVIDENCE_LEXICAL);
  }
}

static void run_all_mentions(const struct text_view *view, bool owned_only) {
  struct text_name name;
  for (size_t at = 0; text_next(view, at, &name); at = name.at + name.length) {
    if (owned_only && name.owner == OWNER_IMPORT)
      report(view, &name, EVIDENCE_IMPORT);
    else if (!owned_only || name.owner != OWNER_NONE)
      mention(view, &name);
  }
}

static bool has_comments(enum text_kind kind) {
  return kind != TEXT_NOTHING && kind != TEXT_UNKNOWN && kind != TEXT_DOC && kind != TEXT_PATCH;
}

static uint32_t line_at(const void *user, size_t offset) {
  const struct text_view *view = user;
  uint32_t line, column;
  text_position(view, offset, &line, &column);
  return line;
}

void text_run(struct text_view *view) {
  struct text_place place = {0, 0};
  if (view->kind == TEXT_NOTHING || view->size == 0)
    return;
  if (view->kind == TEXT_PATCH) {
    text_patch(view);
    return;
  }
  view->place = &place;
  text_classify(view);
  if (!view->lines && has_comments(view->kind) && ignore_wanted(view->bytes, view->size))
    ignore_read(view->scan, view->result,
                &(struct ignore_text){view->bytes, view->size, view->classes, IGNORE_BRACES_PLAIN, line_at, view});
  switch (view->kind) {
  case TEXT_DOC:
    run_all_mentions(view, false);
    break;
  case TEXT_UNKNOWN:
    run_all_mentions(view, true);
    break;
  case TEXT_SCRIPT:
    run_script(view);
    break;
  case TEXT_YAML:
    run_yaml(view);
    break;
  case TEXT_CONFIG:
    run_config(view);
    break;
  case TEXT_CODE:
    run_code(view);
    break;
  case TEXT_PYTHON:
    run_python(view);
    break;
  case TEXT_CXX:
    run_cxx(view);
    break;
  case TEXT_PATCH:
  case TEXT_NOTHING:
    break;
  }
  text_build_view(view);
  free(view->classes);
  view->classes = NULL;
  view->place = NULL;
}

void text_analyse(const struct scan *scan, const struct source_file *file, struct result *result) {
  size_t length = sizeof BASELINE_START - 1;
  if (file->size > length && memcmp(file->bytes, BASELINE_START, length) == 0)
    return; /* a baseline names what it accepts */
  struct text_view view = {
      .scan = scan, .result = result, .path = file->path, .bytes = file->bytes, .size = file->size};
  view.kind = text_kind(file->path, file->bytes, file->size, &view.style);
  text_run(&view);
}
