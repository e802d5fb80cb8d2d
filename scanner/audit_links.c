/* Hard links in archives: further names of a file that is there under another one. In an image the first name can be
 * gone from the layers above while the link is still seen; then the file is told under the name of the link. */
#include "scanner/audit.h"

#include <stdlib.h>
#include <string.h>

#define LINKS_MOST 40

/* By path, the upper layer first. */
static int by_path_and_layer(const void *a, const void *b) {
  const struct audit_place *x = a, *y = b;
  int order = strcmp(x->path, y->path);
  if (order)
    return order;
  if (x->layer != y->layer)
    return x->layer > y->layer ? -1 : 1;
  return (x->object == SIZE_MAX) - (y->object == SIZE_MAX);
}

/* The uppermost file of this name that is in the layer of the link or below it; NULL: there is none. */
static const struct audit_place *target_of(const struct audit_list *list, const struct audit_place *link) {
  size_t low = 0, high = list->places_count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (strcmp(list->places[middle].path, link->hard) < 0)
      low = middle + 1;
    else
      high = middle;
  }
  for (; low < list->places_count && strcmp(list->places[low].path, link->hard) == 0; low++) {
    const struct audit_place *place = &list->places[low];
    if (place->kind == PLACE_FILE && place->layer <= link->layer && place != link)
      return place;
  }
  return NULL;
}

void audit_links(struct audit_list *list) {
  if (list->places_count)
    qsort(list->places, list->places_count, sizeof *list->places, by_path_and_layer);
  for (size_t i = 0; i < list->places_count; i++) {
    struct audit_place *link = &list->places[i];
    const struct audit_place *target = link->hard ? target_of(list, link) : NULL;
    for (unsigned links = 0; target && target->hard && links < LINKS_MOST; links++)
      target = target_of(list, target);
    if (!target)
      continue;
    link->object = target->object;
    link->link = target->link;
    link->hard = target->path;
    link->hard_layer = target->layer;
  }
}

/* --- names in place of hidden ones -------------------------------------------------------------------------------- */

struct audit_alias {
  const char *path; /* of the file */
  unsigned layer;
  const char *name; /* of a link to it that is seen */
};

static int by_file(const void *a, const void *b) {
  const struct audit_alias *x = a, *y = b;
  int order = strcmp(x->path, y->path);
  order = order ? order : (x->layer > y->layer) - (x->layer < y->layer);
  return order ? order : strcmp(x->name, y->name);
}

struct audit_alias *audit_aliases(const struct audit_list *list, const bool *seen, size_t *count) {
  struct audit_alias *aliases = scan_alloc(NULL, (list->places_count + 1) * sizeof *aliases);
  *count = 0;
  for (size_t i = 0; i < list->places_count; i++) {
    const struct audit_place *place = &list->places[i];
    if (place->hard && seen[i])
      aliases[(*count)++] = (struct audit_alias){place->hard, place->hard_layer, place->path};
  }
  if (*count)
    qsort(aliases, *count, sizeof *aliases, by_file);
  return aliases;
}

bool audit_rename(struct audit_list *list, struct audit_object *object, const struct audit_alias *aliases,
                  size_t count) {
  size_t length = strcspn(object->member, "!"), low = 0, high = count;
  char *file = scan_format("%.*s", (int)length, object->member);
  const struct audit_alias wanted = {file, object->layer, ""};
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (by_file(&aliases[middle], &wanted) < 0)
      low = middle + 1;
    else
      high = middle;
  }
  bool found = low < count && strcmp(aliases[low].path, file) == 0 && aliases[low].layer == object->layer;
  if (found) {
    char *member = scan_format("%s%s", aliases[low].name, object->member + length);
    object->member = arena_copy(&list->arena, member, strlen(member));
    free(member);
  }
  free(file);
  return found;
}
