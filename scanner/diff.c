/* What became of the names of one release in another, and what the catalog says of that. */
#include "scanner/surface.h"

#include <stdlib.h>
#include <string.h>

#define ALIKE_LEAST 80
/* Each removed name is compared with each added one; more than this are not. */
#define PAIRS_MOST 4000000

static void add_change(struct diff *diff, enum diff_kind kind, const struct surface_item *old,
                       const struct surface_item *new) {
  if (diff->count == diff->capacity) {
    diff->capacity = diff->capacity ? 2 * diff->capacity : 64;
    diff->changes = scan_alloc(diff->changes, diff->capacity * sizeof *diff->changes);
  }
  diff->changes[diff->count++] = (struct diff_change){.kind = kind,
                                                      .old = old,
                                                      .new = new,
                                                      .breaks = kind == DIFF_REMOVED,
                                                      .why = "",
                                                      .note = "",
                                                      .alias_of = SIZE_MAX};
}

/* --- the catalog's symbols ---------------------------------------------------------------------------------------- */

static bool symbol_has(const struct catalog_symbol *symbol, const struct surface_item *item) {
  if (item->layer == CATALOG_LAYER_OPERATOR)
    return strcmp(symbol->op_name, item->name) == 0;
  if (item->layer == CATALOG_LAYER_CXX)
    return *symbol->cxx.mangled && item->symbol && strcmp(symbol->cxx.mangled, item->symbol) == 0;
  for (unsigned i = 0; i < symbol->python_count; i++) {
    const struct catalog_python *python = &symbol->python[i];
    size_t length = strlen(python->module);
    if (item->module ? strcmp(python->module, item->name) == 0
                     : strncmp(item->name, python->module, length) == 0 && item->name[length] == '.' &&
                           strcmp(item->name + length + 1, python->name) == 0)
      return true;
  }
  return false;
}

static const struct catalog_symbol *find_symbol(const struct catalog *catalog, const struct surface_item *item) {
  for (unsigned i = 0; i < catalog->symbols_count; i++)
    if (symbol_has(&catalog->symbols[i], item))
      return &catalog->symbols[i];
  return NULL;
}

/* --- one name ----------------------------------------------------------------------------------------------------- */

static bool comparable(const struct diff *diff, const struct surface_item *item) {
  return diff->old->has[item->layer][item->platform] && diff->new->has[item->layer][item->platform];
}

static bool has_equal(const struct surface_item *list, size_t count, const struct surface_item *item) {
  for (size_t i = 0; i < count; i++)
    if (strcmp(list[i].signature.text, item->signature.text) == 0)
      return true;
  return false;
}

/* Overloads of one name; mostly one on each side. What both have is unchanged, the rest is paired in its order. */
static void compare_name(struct diff *diff, const struct surface_item *old, size_t old_count,
                         const struct surface_item *new, size_t new_count) {
  size_t k = 0;
  for (size_t i = 0; i < old_count; i++) {
    if (has_equal(new, new_count, &old[i]))
      continue;
    while (k < new_count && has_equal(old, old_count, &new[k]))
      k++;
    if (k == new_count) {
      if (new_count == 0 || old[i].layer == CATALOG_LAYER_CXX)
        add_change(diff, DIFF_REMOVED, &old[i], NULL);
      continue;
    }
    const char *why;
    bool fits = diff_fits(&diff->arena, old[i].layer, &old[i].signature, &new[k].signature, &why);
    if (*why) {
      add_change(diff, DIFF_CHANGED, &old[i], &new[k]);
      diff->changes[diff->count - 1].breaks = !fits;
      diff->changes[diff->count - 1].why = why;
    }
    k++;
  }
  for (; k < new_count; k++)
    if (!has_equal(old, old_count, &new[k]) && (old_count == 0 || new[k].layer == CATALOG_LAYER_CXX))
      add_change(diff, DIFF_ADDED, NULL, &new[k]);
}

static size_t run_of(const struct surface *surface, size_t first) {
  size_t end = first;
  while (end < surface->items_count && surface_order(&surface->items[first], &surface->items[end]) == 0)
    end++;
  return end - first;
}

/* A method of a class is of interest while both releases have the class, and it gets no other bases from elsewhere that
 * may have the method, too. */
static bool class_stays(const struct diff *diff, const struct surface_item *item) {
  const struct surface_item *old = surface_find(diff->old, CATALOG_LAYER_PYTHON, item->class);
  const struct surface_item *new = surface_find(diff->new, CATALOG_LAYER_PYTHON, item->class);
  return old && new && old->bases &&new->bases &&strcmp(old->bases, new->bases) == 0;
}

static void compare_all(struct diff *diff) {
  size_t i = 0, k = 0;
  const struct surface *old = diff->old, *new = diff->new;
  while (i < old->items_count || k < new->items_count) {
    int order = i == old->items_count ? 1 : k == new->items_count ? -1 : surface_order(&old->items[i], &new->items[k]);
    size_t old_count = order <= 0 ? run_of(old, i) : 0, new_count = order >= 0 ? run_of(new, k) : 0;
    const struct surface_item *first = order <= 0 ? &old->items[i] : &new->items[k];
    if (comparable(diff, first) && (!first->class || class_stays(diff, first)) &&
        (order > 0 ? !new->items[k].hidden
                   : !old->items[i].hidden || (order < 0 && find_symbol(old->catalog, &old->items[i]))))
      compare_name(diff, old->items + i, old_count, new->items + k, new_count);
    i += old_count;
    k += new_count;
  }
}

/* The operator of a function of NEW, when OLD had it and NEW has not: each call of the function fails. */
static bool lost_operator(const struct diff *diff, const struct surface_item *item) {
  return item->layer == CATALOG_LAYER_PYTHON && item->op && diff->compared[CATALOG_LAYER_OPERATOR] &&
         !surface_find(diff->new, CATALOG_LAYER_OPERATOR, item->op) &&
         surface_find(diff->old, CATALOG_LAYER_OPERATOR, item->op);
}

static void find_dead_functions(struct diff *diff) {
  for (size_t i = 0; i < diff->new->items_count; i++) {
    const struct surface_item *new = &diff->new->items[i];
    const struct surface_item *old = lost_operator(diff, new) ? surface_find(diff->old, new->layer, new->name) : NULL;
    if (old) {
      add_change(diff, DIFF_CHANGED, old, new);
      diff->changes[diff->count - 1].breaks = true;
      diff->changes[diff->count - 1].why = surface_format(&diff->arena, "its operator %s is gone", new->op);
    }
  }
}

/* --- renamed ------------------------------------------------------------------------------------------------------ */

struct pair {
  size_t old, new; /* changes */
  unsigned alike;
};

static int by_likeness(const void *left, const void *right) {
  const struct pair *a = left, *b = right;
  if (a->alike != b->alike)
    return a->alike > b->alike ? -1 : 1;
  if (a->old != b->old)
    return a->old < b->old ? -1 : 1;
  return (a->new > b->new) - (a->new < b->new);
}

/* The most alike pair first; each name is in one. */
static void find_renamed(struct diff *diff) {
  struct pair *pairs = NULL;
  size_t count = 0, capacity = 0, tried = 0;
  for (size_t i = 0; i < diff->count; i++)
    for (size_t k = 0; k < diff->count && diff->changes[i].kind == DIFF_REMOVED && tried < PAIRS_MOST; k++) {
      const struct diff_change *removed = &diff->changes[i], *added = &diff->changes[k];
      if (added->kind != DIFF_ADDED || removed->old->layer != added->new->layer ||
          removed->old->platform != added->new->platform)
        continue;
      tried++;
      unsigned alike = diff_alike(removed->old, added->new);
      if (alike < ALIKE_LEAST)
        continue;
      if (count == capacity) {
        capacity = capacity ? 2 * capacity : 64;
        pairs = scan_alloc(pairs, capacity * sizeof *pairs);
      }
      pairs[count++] = (struct pair){i, k, alike};
    }
  if (count)
    qsort(pairs, count, sizeof *pairs, by_likeness);
  for (size_t i = 0; i < count; i++) {
    struct diff_change *removed = &diff->changes[pairs[i].old], *added = &diff->changes[pairs[i].new];
    if (removed->kind != DIFF_REMOVED || !added->new)
      continue;
    const char *why;
    diff_fits(&diff->arena, removed->old->layer, &removed->old->signature, &added->new->signature, &why);
    removed->kind = DIFF_RENAMED;
    removed->new = added->new;
    removed->alike = pairs[i].alike;
    removed->why = why;
    added->new = NULL; /* dropped below */
  }
  free(pairs);
  size_t kept = 0;
  for (size_t i = 0; i < diff->count; i++)
    if (diff->changes[i].old || diff->changes[i].new)
      diff->changes[kept++] = diff->changes[i];
  diff->count = kept;
}

/* --- what the catalog says ---------------------------------------------------------------------------------------- */

/* Is the release that first lacks it behind the old one and not behind the new one? */
static bool in_step(const struct diff *diff, const struct catalog_removal *removal) {
  return removal && removal->first_without &&
         (!diff->old->version || catalog_version_compare(removal->first_without, diff->old->version) > 0) &&
         (!diff->new->version || catalog_version_compare(removal->first_without, diff->new->version) <= 0);
}

/* A C++ function that no operator stands for is a kernel's own: nobody has a declaration of it. */
static bool is_internal(const struct diff *diff, const struct surface_item *item) {
  if (item->layer != CATALOG_LAYER_CXX)
    return false;
  return !strstr(item->signature.text, "at::Tensor") ||
         (diff->old->has[CATALOG_LAYER_OPERATOR][CATALOG_CUDA] &&
          !surface_find(diff->old, CATALOG_LAYER_OPERATOR, surface_short(CATALOG_LAYER_CXX, item->name)));
}

/* Does the text begin with the other one, but for blanks and the kind of quotes? How much of it, or 0. */
static size_t same_start(const char *text, const char *other) {
  const char *at = text;
  for (; *other; other++) {
    if (*other == ' ')
      continue;
    at += strspn(at, " ");
    if (*at != *other && !(strchr("'\"", *at) && strchr("'\"", *other)))
      return 0;
    at += *at != '\0';
  }
  return (size_t)(at - text);
}

/* The catalog's signature of the item, when that is none of its own. C++ functions are found by theirs. */
static const char *other_signature(const struct diff_change *change) {
  const struct catalog_symbol *symbol = change->symbol;
  const struct surface_item *item = change->old;
  const char *text = symbol->python_signature, *own = item->signature.text;
  if (item->layer == CATALOG_LAYER_OPERATOR)
    text = strchr(symbol->op_schema, '(') ? strchr(symbol->op_schema, '(') : "";
  if (item->layer == CATALOG_LAYER_CXX || item->module || !*text || !*own)
    return NULL;
  for (const char *next = own; next; next = strstr(next, " or ("), next = next ? next + 4 : NULL) {
    size_t length = same_start(next, text);
    if (length && (!next[length] || strncmp(next + length, " or (", 5) == 0))
      return NULL;
  }
  return text;
}

static void ask_catalog(struct diff *diff, struct diff_change *change) {
  if ((change->kind != DIFF_REMOVED && change->kind != DIFF_RENAMED) || change->old->class)
    return;
  change->symbol = find_symbol(diff->old->catalog, change->old);
  if (!change->symbol) {
    change->known = is_internal(diff, change->old) ? KNOWN_UNASKED : KNOWN_NOT;
    return;
  }
  const struct catalog_removal *removal =
      catalog_platform_removal(change->symbol, change->old->layer, change->old->platform);
  change->known = in_step(diff, removal) || change->old->module ? KNOWN_AGREES : KNOWN_OTHERWISE;
  const char *other = change->known == KNOWN_AGREES ? other_signature(change) : NULL;
  if (other) {
    change->known = KNOWN_OTHERWISE;
    change->note = surface_format(&diff->arena, "it has %s", other);
  }
  if (change->known == KNOWN_AGREES || other)
    return;
  change->note = removal && removal->first_without
                     ? surface_format(&diff->arena, "first without it: %s", removal->first_without)
                 : change->symbol->status == CATALOG_PLANNED ? "its removal is planned"
                                                             : "nothing about this layer";
}

static void contradict(struct diff *diff, const struct catalog_symbol *symbol, enum catalog_layer layer,
                       const char *what) {
  if (diff->contradictions_count == diff->contradictions_capacity) {
    diff->contradictions_capacity = diff->contradictions_capacity ? 2 * diff->contradictions_capacity : 16;
    diff->contradictions =
        scan_alloc(diff->contradictions, diff->contradictions_capacity * sizeof *diff->contradictions);
  }
  diff->contradictions[diff->contradictions_count++] = (struct diff_contradiction){symbol, layer, what};
}

static const struct surface_item *surface_has(const struct surface *surface, const struct catalog_symbol *symbol,
                                              enum catalog_layer layer) {
  for (size_t i = 0; i < surface->items_count; i++)
    if (surface->items[i].layer == layer && surface->items[i].platform == CATALOG_CUDA && !surface->items[i].module &&
        symbol_has(symbol, &surface->items[i]))
      return &surface->items[i];
  return NULL;
}

/* An operator that was defined by its name alone leaves no schema in a library, but functions call it. */
static bool is_called(const struct surface *surface, const char *op) {
  for (size_t i = 0; i < surface->items_count; i++)
    if (surface->items[i].op && strcmp(surface->items[i].op, op) == 0)
      return true;
  return false;
}

static void check_row(struct diff *diff, const struct catalog_symbol *symbol, enum catalog_layer layer,
                      const char *release) {
  const struct surface_item *new = surface_has(diff->new, symbol, layer);
  if (new && !lost_operator(diff, new)) /* a function whose operator went counts as gone: see schema.md */
    contradict(diff, symbol, layer, surface_format(&diff->arena, "first without it: %s, but NEW has it", release));
  else if (!new && !surface_has(diff->old, symbol, layer) &&
           !(layer == CATALOG_LAYER_OPERATOR && is_called(diff->old, symbol->op_name)))
    contradict(diff, symbol, layer,
               surface_format(&diff->arena, "first without it: %s, but OLD does not have it either", release));
}

/* Rows of which a layer should have left in this step: was it there, and is it gone? */
static void check_rows(struct diff *diff) {
  const struct catalog *catalog = diff->old->catalog;
  if (!diff->old->version || !diff->new->version)
    return;
  for (unsigned i = 0; i < catalog->symbols_count; i++) {
    const struct catalog_symbol *symbol = &catalog->symbols[i];
    for (enum catalog_layer layer = 0; layer < SURFACE_LAYERS; layer++) {
      const struct catalog_removal *removal = catalog_platform_removal(symbol, layer, CATALOG_CUDA);
      if (!diff->compared[layer] || !in_step(diff, removal))
        continue;
      check_row(diff, symbol, layer, removal->first_without);
    }
  }
}

/* --- the whole ---------------------------------------------------------------------------------------------------- */

static const struct surface_item *item_of(const struct diff_change *change) {
  return change->old ? change->old : change->new;
}

static int by_kind(const void *left, const void *right) {
  const struct diff_change *a = left, *b = right;
  const struct surface_item *x = item_of(a), *y = item_of(b);
  if (x->layer != y->layer)
    return x->layer < y->layer ? -1 : 1;
  if (a->kind != b->kind)
    return a->kind < b->kind ? -1 : 1;
  int order = surface_order(x, y);
  return order ? order : strcmp(x->signature.text, y->signature.text);
}

/* A re-export that went, came or changed with the definition is part of that. */
static void fold_aliases(struct diff *diff) {
  for (size_t i = 0; i < diff->count; i++) {
    struct diff_change *change = &diff->changes[i];
    const struct surface_item *item = item_of(change);
    if (strcmp(item->home, item->name) == 0)
      continue;
    for (size_t k = 0; k < diff->count; k++)
      if (diff->changes[k].kind == change->kind && item_of(&diff->changes[k])->layer == item->layer &&
          strcmp(item_of(&diff->changes[k])->name, item->home) == 0)
        change->alias_of = k;
  }
}

void diff_make(struct diff *diff, const struct surface *old, const struct surface *new) {
  *diff = (struct diff){.old = old, .new = new};
  for (unsigned layer = 0; layer < SURFACE_LAYERS; layer++)
    diff->compared[layer] = old->has[layer][CATALOG_CUDA] && new->has[layer][CATALOG_CUDA];
  compare_all(diff);
  find_dead_functions(diff);
  find_renamed(diff);
  for (size_t i = 0; i < diff->count; i++)
    ask_catalog(diff, &diff->changes[i]);
  if (diff->count)
    qsort(diff->changes, diff->count, sizeof *diff->changes, by_kind);
  fold_aliases(diff);
  check_rows(diff);
}

void diff_free(struct diff *diff) {
  free(diff->changes);
  free(diff->contradictions);
  arena_free(&diff->arena);
}

int diff_status(const struct diff *diff) {
  int status = diff->contradictions_count ? EXIT_PERSON : 0;
  for (size_t i = 0; i < diff->count; i++) {
    const struct diff_change *change = &diff->changes[i];
    status |= change->breaks ? EXIT_USES : 0;
    status |= change->known == KNOWN_NOT || change->known == KNOWN_OTHERWISE ? EXIT_PERSON : 0;
  }
  return status | (diff->old->faults_count || diff->new->faults_count ? EXIT_NOT_ANALYSED : 0);
}
