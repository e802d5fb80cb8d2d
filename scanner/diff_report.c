/* What differs, as text and as JSON. docs/formats.md describes the JSON. */
#include "scanner/report.h"
#include "scanner/surface.h"

#include <stdio.h>
#include <string.h>

#define FORMAT_VERSION 1

static const char *const layer_words[] = {"python", "operator", "cxx"};
static const char *const kind_words[] = {"removed", "renamed", "changed", "added"};
static const char *const platform_words[] = {"cuda", "musa", "rocm", "xpu", "cpu"};

/* --- text --------------------------------------------------------------------------------------------------------- */

static void print(const char *front, const char *text) {
  fputs(front, stdout);
  report_plain(stdout, text);
}

static void print_side(const char *word, const struct surface *surface) {
  printf("%s  ", word);
  if (surface->distribution)
    print("", surface->distribution);
  else
    print("", surface->catalog->library.package);
  if (surface->version)
    print(" ", surface->version);
  print(" (", surface->path);
  if (surface->package && strcmp(surface->package, surface->catalog->library.package) != 0)
    print(", package in ", surface->package);
  puts(")");
}

static void print_name(const struct surface_item *item) {
  report_plain(stdout, item->name);
  if (item->module)
    fputs(" (module)", stdout);
  if (item->platform != CATALOG_CUDA)
    printf(" [%s]", platform_words[item->platform]);
}

static void print_aliases(const struct diff *diff, size_t change) {
  bool first = true;
  for (size_t i = 0; i < diff->count; i++) {
    if (diff->changes[i].alias_of != change)
      continue;
    const struct surface_item *item = diff->changes[i].old ? diff->changes[i].old : diff->changes[i].new;
    print(first ? ", also as " : ", ", item->name);
    first = false;
  }
}

static void print_catalog(const struct diff_change *change) {
  if (change->known == KNOWN_NOT) {
    puts("      not in the catalog");
  } else if (change->known == KNOWN_AGREES && !change->old->module) {
    print("      catalog: ", change->symbol->id);
    putchar('\n');
  } else if (change->known == KNOWN_OTHERWISE) {
    print("      the catalog disagrees: ", change->symbol->id);
    print(": ", change->note);
    putchar('\n');
  }
}

static void print_change(const struct diff *diff, size_t i) {
  static const char marks[] = {'-', '>', '~', '+'};
  const struct diff_change *change = &diff->changes[i];
  const struct surface_item *old = change->old, *new = change->new;
  printf("  %c ", marks[change->kind]);
  print_name(old ? old : new);
  if (change->kind == DIFF_RENAMED) {
    print(" -> ", new->name);
    printf(" (%u%% alike)", change->alike);
  } else if (change->kind != DIFF_CHANGED) {
    print("", (old ? old : new)->signature.text);
  }
  print_aliases(diff, i);
  if (change->kind == DIFF_CHANGED) {
    print(": ", change->why);
    fputs(change->breaks ? "" : " (old calls still fit)", stdout);
  }
  putchar('\n');
  if (*change->why && strcmp(old->signature.text, new->signature.text) != 0) {
    print("      was ", old->signature.text);
    print("\n      is  ", new->signature.text);
    putchar('\n');
  }
  print_catalog(change);
}

static size_t count_kind(const struct diff *diff, enum catalog_layer layer, enum diff_kind kind) {
  size_t count = 0;
  for (size_t i = 0; i < diff->count; i++) {
    const struct diff_change *change = &diff->changes[i];
    count += change->kind == kind && change->alias_of == SIZE_MAX &&
             (change->old ? change->old : change->new)->layer == layer;
  }
  return count;
}

static void print_layer(const struct diff *diff, enum catalog_layer layer) {
  static const char *const titles[] = {"Python names", "Operators", "C++ functions"};
  printf("\n%s: ", titles[layer]);
  if (!diff->compared[layer]) {
    bool none = !diff->old->has[layer][CATALOG_CUDA] && !diff->new->has[layer][CATALOG_CUDA];
    printf("not compared, %s nothing that would show them\n", none                                  ? "both have"
                                                              : diff->old->has[layer][CATALOG_CUDA] ? "NEW has"
                                                                                                    : "OLD has");
  } else {
    for (unsigned kind = 0; kind < DIFF_KINDS; kind++)
      printf("%s%zu %s", kind ? ", " : "", count_kind(diff, layer, kind), kind_words[kind]);
    putchar('\n');
  }
  for (size_t i = 0; i < diff->count; i++)
    if (diff->changes[i].alias_of == SIZE_MAX &&
        (diff->changes[i].old ? diff->changes[i].old : diff->changes[i].new)->layer == layer)
      print_change(diff, i);
}

bool diff_report_text(const struct diff *diff) {
  print_side("OLD", diff->old);
  print_side("NEW", diff->new);
  for (unsigned layer = 0; layer < SURFACE_LAYERS; layer++)
    print_layer(diff, layer);
  if (diff->contradictions_count)
    puts("\nRows of the catalog that OLD and NEW contradict:");
  for (size_t i = 0; i < diff->contradictions_count; i++) {
    const struct diff_contradiction *one = &diff->contradictions[i];
    print("  ! ", one->symbol->id);
    printf(", layer %s: ", layer_words[one->layer]);
    print("", one->what);
    putchar('\n');
  }
  return true;
}

/* --- JSON --------------------------------------------------------------------------------------------------------- */

static json_t *text(const char *string) {
  return string ? report_value(string, strlen(string)) : json_null();
}

static json_t *one_side(const struct surface *surface) {
  json_t *faults = json_array();
  for (size_t i = 0; i < surface->faults_count; i++)
    json_array_append_new(faults, text(surface->faults[i]));
  return json_pack("{s:o, s:o, s:o, s:o, s:o}", "path", text(surface->path), "distribution",
                   text(surface->distribution), "version", text(surface->version), "package", text(surface->package),
                   "notAnalysed", faults);
}

static json_t *one_item(const struct surface_item *item) {
  return item ? json_pack("{s:o, s:o, s:o, s:o, s:o, s:b}", "name", text(item->name), "home", text(item->home),
                          "signature", text(*item->signature.text ? item->signature.text : NULL), "symbol",
                          text(item->symbol), "place", text(item->place), "module", item->module)
              : json_null();
}

static json_t *one_change(const struct diff_change *change) {
  static const char *const known[] = {NULL, "agrees", "otherwise", "unknown"};
  const struct surface_item *item = change->old ? change->old : change->new;
  json_t *catalog = json_null();
  if (change->known != KNOWN_UNASKED)
    catalog = json_pack("{s:s, s:s?, s:o}", "says", known[change->known], "symbol",
                        change->symbol ? change->symbol->id : NULL, "note", text(*change->note ? change->note : NULL));
  return json_pack("{s:s, s:s, s:s, s:b, s:o, s:o, s:o, s:I, s:b, s:o}", "layer", layer_words[item->layer], "platform",
                   platform_words[item->platform], "kind", kind_words[change->kind], "breaks", change->breaks, "old",
                   one_item(change->old), "new", one_item(change->new), "why", text(*change->why ? change->why : NULL),
                   "alike", (json_int_t)change->alike, "alias", change->alias_of != SIZE_MAX, "catalog", catalog);
}

bool diff_report_json(const struct diff *diff) {
  json_t *changes = json_array(), *contradictions = json_array(), *compared = json_object();
  for (size_t i = 0; i < diff->count; i++)
    json_array_append_new(changes, one_change(&diff->changes[i]));
  for (size_t i = 0; i < diff->contradictions_count; i++) {
    const struct diff_contradiction *one = &diff->contradictions[i];
    json_array_append_new(contradictions, json_pack("{s:s, s:s, s:o}", "symbol", one->symbol->id, "layer",
                                                    layer_words[one->layer], "what", text(one->what)));
  }
  for (unsigned layer = 0; layer < SURFACE_LAYERS; layer++)
    json_object_set_new(compared, layer_words[layer], json_boolean(diff->compared[layer]));
  json_t *log =
      json_pack("{s:s, s:i, s:s, s:i, s:o, s:o, s:o, s:o, s:o}", "format", "sgl-migrate catalog diff", "formatVersion",
                FORMAT_VERSION, "toolVersion", SGL_VERSION, "exitStatus", diff_status(diff), "old", one_side(diff->old),
                "new", one_side(diff->new), "compared", compared, "changes", changes, "contradictions", contradictions);
  bool done = log && json_dumpf(log, stdout, JSON_INDENT(1)) == 0 && putchar('\n') != EOF;
  json_decref(log);
  return done;
}
