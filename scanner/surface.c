/* The list of what a release offers. */
#include "scanner/surface.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *surface_format(struct arena *arena, const char *format, ...) {
  va_list list;
  va_start(list, format);
  char *text = scan_format_list(format, list);
  va_end(list);
  char *copy = arena_copy(arena, text, strlen(text));
  free(text);
  return copy;
}

static bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v';
}

char *surface_plain(struct arena *arena, const char *text, size_t size) {
  char *plain = arena_alloc(arena, size + 1);
  size_t used = 0;
  for (size_t i = 0; i < size; i++) {
    if (!is_blank(text[i])) {
      plain[used++] = text[i];
      continue;
    }
    size_t next = i;
    while (next < size && is_blank(text[next]))
      next++;
    if (used && next < size && !strchr("([{", plain[used - 1]) && !strchr(")]},", text[next]))
      plain[used++] = ' ';
    i = next - 1;
  }
  while (used > 1 && plain[used - 1] == ',')
    used--;
  plain[used] = '\0';
  return plain;
}

struct surface_item *surface_add(struct surface *surface, enum catalog_layer layer, const char *name) {
  if (surface->items_count == surface->items_capacity) {
    surface->items_capacity = surface->items_capacity ? 2 * surface->items_capacity : 256;
    surface->items = scan_alloc(surface->items, surface->items_capacity * sizeof *surface->items);
  }
  struct surface_item *item = &surface->items[surface->items_count++];
  *item = (struct surface_item){.layer = layer, .name = name, .home = name, .signature = {.text = "", .returns = ""}};
  return item;
}

void surface_fault(struct surface *surface, const char *format, ...) {
  va_list list;
  va_start(list, format);
  if (surface->faults_count == surface->faults_capacity) {
    surface->faults_capacity = surface->faults_capacity ? 2 * surface->faults_capacity : 16;
    surface->faults = scan_alloc(surface->faults, surface->faults_capacity * sizeof *surface->faults);
  }
  surface->faults[surface->faults_count++] = scan_format_list(format, list);
  va_end(list);
}

int surface_order(const struct surface_item *a, const struct surface_item *b) {
  if (a->layer != b->layer)
    return a->layer < b->layer ? -1 : 1;
  if (a->platform != b->platform)
    return a->platform < b->platform ? -1 : 1;
  return strcmp(a->name, b->name);
}

static int by_order(const void *left, const void *right) {
  const struct surface_item *a = left, *b = right;
  int order = surface_order(a, b);
  order = order ? order : strcmp(a->signature.text, b->signature.text);
  order = order ? order : strcmp(a->symbol ? a->symbol : "", b->symbol ? b->symbol : "");
  return order ? order : strcmp(a->place, b->place);
}

/* What several files have is one item: that of the first. */
void surface_sort(struct surface *surface) {
  if (!surface->items_count)
    return;
  qsort(surface->items, surface->items_count, sizeof *surface->items, by_order);
  size_t kept = 1;
  for (size_t i = 1; i < surface->items_count; i++) {
    const struct surface_item *last = &surface->items[kept - 1], *item = &surface->items[i];
    if (surface_order(last, item) != 0 || strcmp(last->signature.text, item->signature.text) != 0)
      surface->items[kept++] = *item;
  }
  surface->items_count = kept;
}

const struct surface_item *surface_find(const struct surface *surface, enum catalog_layer layer, const char *name) {
  struct surface_item key = {.layer = layer, .name = name};
  size_t low = 0, high = surface->items_count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    int order = surface_order(&key, &surface->items[middle]);
    if (order == 0)
      return &surface->items[middle];
    if (order < 0)
      high = middle;
    else
      low = middle + 1;
  }
  return NULL;
}

void surface_free(struct surface *surface) {
  for (size_t i = 0; i < surface->faults_count; i++)
    free(surface->faults[i]);
  free(surface->faults);
  free(surface->items);
  arena_free(&surface->arena);
  *surface = (struct surface){0};
}

/* A colon or dot inside of template arguments or a bracket is none of the name's own. */
const char *surface_short(enum catalog_layer layer, const char *name) {
  const char *start = name;
  int depth = 0;
  for (const char *at = name; *at; at++) {
    if (layer == CATALOG_LAYER_CXX && strncmp(at, "operator", 8) == 0)
      break;
    depth += *at == '<' || *at == '(';
    depth -= *at == '>' || *at == ')';
    if (depth == 0 && (layer == CATALOG_LAYER_CXX ? *at == ':' : layer == CATALOG_LAYER_PYTHON && *at == '.'))
      start = at + 1;
  }
  return start;
}
