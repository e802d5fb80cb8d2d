/* Rows for catalog/removals.yaml, of removed names that the catalog does not have. What only a person can know is left
 * empty, and the linter names each such place. */
#include "scanner/surface.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One thing that was removed, with its layers. */
struct row {
  const char *id;
  const struct diff_change *python, *op, *cxx; /* NULL: the layer was not there, or stays */
};

struct rows {
  struct row *list;
  size_t count;
};

static bool wanted(const struct diff_change *change, enum catalog_layer layer) {
  return change->known == KNOWN_NOT && change->old->layer == layer && change->old->platform == CATALOG_CUDA &&
         !change->old->module;
}

static const char *short_name(const struct diff_change *change) {
  return surface_short(change->old->layer, change->old->name);
}

static const char *op_of(const struct row *row) {
  return row->op ? row->op->old->name : "";
}

static void add_row(struct rows *rows, const char *id, const struct diff_change *python, const struct diff_change *op,
                    const struct diff_change *cxx) {
  rows->list[rows->count++] = (struct row){id, python, op, cxx};
}

static void place_python(struct rows *rows, const struct diff_change *change) {
  if (change->alias_of == SIZE_MAX)
    add_row(rows, short_name(change), change, NULL, NULL);
}

/* An operator belongs to the function that calls it, else to one of its name. */
static void place_operator(struct rows *rows, const struct diff_change *change) {
  struct row *found = NULL;
  for (size_t i = 0; i < rows->count; i++) {
    struct row *row = &rows->list[i];
    const char *calls = row->python ? row->python->old->op : NULL;
    if (!row->op && strcmp(calls ? calls : row->id, change->old->name) == 0 && (!found || calls))
      found = row;
  }
  if (found)
    found->op = change;
  else
    add_row(rows, change->old->name, NULL, change, NULL);
}

static void place_function(struct rows *rows, const struct diff_change *change) {
  for (size_t i = 0; i < rows->count; i++) {
    struct row *row = &rows->list[i];
    if (!row->cxx && (strcmp(op_of(row), short_name(change)) == 0 || strcmp(row->id, short_name(change)) == 0)) {
      row->cxx = change;
      return;
    }
  }
  add_row(rows, short_name(change), NULL, NULL, change);
}

static int by_id(const void *left, const void *right) {
  return strcmp(((const struct row *)left)->id, ((const struct row *)right)->id);
}

/* --- YAML --------------------------------------------------------------------------------------------------------- */

/* Plain where YAML reads it back as this text, else in quotes. */
static void put(const char *text) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
  static const char *const words[] = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"};
  size_t length = strlen(text);
  bool plain = length && strchr(letters, text[0]) &&
               strspn(text, "._0123456789"
                            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == length;
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    plain &= strcasecmp(words[i], text) != 0;
  if (plain) {
    fputs(text, stdout);
    return;
  }
  putchar('"');
  for (const char *at = text; *at; at++) {
    if (*at == '"' || *at == '\\')
      printf("\\%c", *at);
    else if ((unsigned char)*at < ' ' || *at == 0x7f)
      printf("\\x%02x", (unsigned char)*at);
    else
      putchar(*at);
  }
  putchar('"');
}

static void put_field(const char *front, const char *text, const char *end) {
  fputs(front, stdout);
  put(text);
  fputs(end, stdout);
}

static void put_python_name(const struct surface_item *item) {
  size_t length = (size_t)(surface_short(CATALOG_LAYER_PYTHON, item->name) - item->name) - 1;
  printf("      - {module: %.*s, name: ", (int)length, item->name);
  put(item->name + length + 1);
  puts("}");
}

static void put_python(const struct diff *diff, const struct diff_change *python) {
  puts("    python:");
  put_python_name(python->old);
  for (size_t i = 0; i < diff->count; i++)
    if (diff->changes[i].alias_of == (size_t)(python - diff->changes))
      put_python_name(diff->changes[i].old);
  put_field("    python_signature: ", python->old->signature.text, "\n");
}

/* What a function of C++ returns stands in the operator's schema only. */
static const char *cxx_returns(const struct diff_change *op) {
  static const struct {
    const char *schema, *cxx;
  } types[] = {{"()", "void"},
               {"Tensor", "at::Tensor"},
               {"int", "int64_t"},
               {"float", "double"},
               {"bool", "bool"},
               {"Tensor[]", "std::vector<at::Tensor>"},
               {"(Tensor[])", "std::vector<at::Tensor>"}};
  for (size_t i = 0; op && i < sizeof types / sizeof *types; i++)
    if (strcmp(op->old->signature.returns, types[i].schema) == 0)
      return types[i].cxx;
  return NULL;
}

/* As schema.md wants it: without what the compiler fills in, "const" in front, int64_t. */
static const char *cxx_type(struct arena *arena, const char *type) {
  static const char vector[] = "std::vector<at::Tensor, std::allocator<at::Tensor> >", constant[] = " const&";
  size_t length = strlen(type), end = sizeof constant - 1;
  if (strncmp(type, vector, sizeof vector - 1) == 0)
    type = surface_format(arena, "std::vector<at::Tensor>%s", type + sizeof vector - 1);
  if (strcmp(type, "long") == 0)
    return "int64_t";
  length = strlen(type);
  if (length > end && strcmp(type + length - end, constant) == 0)
    return surface_format(arena, "const %.*s&", (int)(length - end), type);
  return type;
}

static void put_cxx(const struct row *row, struct arena *arena) {
  const struct surface_item *item = row->cxx->old;
  const struct surface_signature *signature = &item->signature;
  const char *name = surface_short(CATALOG_LAYER_CXX, item->name), *returns = cxx_returns(row->op);
  const struct surface_signature *schema = row->op ? &row->op->old->signature : NULL;
  bool names = schema && schema->count == signature->count;
  char *text = surface_format(arena, "%s %s(", returns ? returns : "auto", name);
  for (size_t i = 0; i < signature->count; i++)
    text = surface_format(arena, "%s%s%s%s%s", text, i ? ", " : "", cxx_type(arena, signature->parameters[i].type),
                          names ? " " : "", names ? schema->parameters[i].name : "");
  puts("    cxx:");
  put_field("      name: ", name, "\n");
  if (name > item->name)
    put_field("      scope: ", surface_format(arena, "%.*s", (int)(name - item->name) - 2, item->name), "\n");
  put_field("      declaration: ", surface_format(arena, "%s)", text), returns ? "\n" : " # what does it return?\n");
  put_field("      mangled: ", item->symbol, "\n");
  printf("      parameters: %zu\n", signature->count);
}

static const char *release(const struct surface *surface) {
  return surface->version ? surface->version : "";
}

static void put_removal(const struct diff *diff, const char *layer) {
  printf("      - {layer: %s, platform: cuda, last_with: ", layer);
  put(release(diff->old));
  put_field(", first_without: ", release(diff->new), ", change: \"\", date: \"\"}\n");
}

static void put_route(const struct row *row, struct arena *arena) {
  const struct diff_change *change = row->python ? row->python : row->op;
  puts("    routes:");
  if (!change || change->kind != DIFF_RENAMED) {
    puts("      - kind: none\n        note: \"\" # why there is nothing; or the routes");
    return;
  }
  const char *name = surface_short(change->new->layer, change->new->name);
  puts("      - kind: library # spelt alike; is it the same?");
  put_field("        module: ",
            row->python ? surface_format(arena, "%.*s", (int)(name - change->new->name) - 1, change->new->name)
                        : surface_format(arena, "torch.ops.%s", change->new->name),
            "\n");
  put_field("        name: ", name, "\n");
  put_field("        note: ", change->why, "\n");
}

static const char *witness(struct arena *arena, const struct surface *surface) {
  const char *slash = strrchr(surface->path, '/'), *base = slash && slash[1] ? slash + 1 : surface->path;
  return surface->distribution ? surface_format(arena, "%s %s", surface->distribution, release(surface)) : base;
}

static void put_row(const struct diff *diff, const struct row *row, struct arena *arena) {
  bool renamed = (row->python && row->python->kind == DIFF_RENAMED) || (row->op && row->op->kind == DIFF_RENAMED);
  put_field("  - id: ", row->id, "\n");
  printf("    status: %s\n    family: \"\" # one or two words\n    summary: \"\" # one sentence: what it did\n",
         renamed ? "renamed" : "removed");
  if (row->python)
    put_python(diff, row->python);
  if (row->op) {
    put_field("    op_name: ", row->op->old->name, "\n");
    put_field("    op_schema: ", surface_format(arena, "%s%s", row->op->old->name, row->op->old->signature.text), "\n");
  }
  if (row->cxx)
    put_cxx(row, arena);
  puts("    added_in: \"\" # first release with it\n    removals:");
  if (row->python)
    put_removal(diff, "python");
  if (row->op)
    put_removal(diff, "operator");
  if (row->cxx)
    put_removal(diff, "cxx");
  puts("    stage: tombstone");
  put_route(row, arena);
  put_field("    provenance: [",
            surface_format(arena, "%s and %s", witness(arena, diff->old), witness(arena, diff->new)), "]\n");
}

bool diff_draft(const struct diff *diff) {
  struct rows rows = {.list = scan_alloc(NULL, (diff->count + 1) * sizeof *rows.list)};
  struct arena arena = {0};
  static void (*const place[])(struct rows *, const struct diff_change *) = {place_python, place_operator,
                                                                             place_function};
  for (enum catalog_layer layer = 0; layer < SURFACE_LAYERS; layer++)
    for (size_t i = 0; i < diff->count; i++)
      if (wanted(&diff->changes[i], layer))
        place[layer](&rows, &diff->changes[i]);
  qsort(rows.list, rows.count, sizeof *rows.list, by_id);
  for (size_t i = 0; i < rows.count; i++) {
    if (catalog_find(diff->old->catalog, rows.list[i].id) || (i && strcmp(rows.list[i].id, rows.list[i - 1].id) == 0))
      puts("  # the id is taken: add this to the row that has it, or choose another id");
    put_row(diff, &rows.list[i], &arena);
  }
  free(rows.list);
  arena_free(&arena);
  return true;
}
