/* Images of `docker save` and OCI: an archive or folder of layers, each an archive, and JSON documents that say in
 * which order the layers lie. The documents often come last, so all layers are read first, and what is not to be seen
 * is dropped.
 */
#include "scanner/audit.h"
#include "scanner/file.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* No image comes near these; a file that lies could cost without end. */
#define LAYERS_MOST 10000u
#define MANIFESTS_MOST 256             /* that are looked into to find one */
#define KEPT_MOST ((uint64_t)64 << 20) /* bytes of documents and caches */

struct layer {
  char *member;   /* "blobs/sha256/HASH", "HASH/layer.tar"; owned */
  unsigned order; /* in the manifest, from 0; AUDIT_NO_LAYER: in none */
  uint8_t *cache; /* etc/ld.so.cache; owned */
  size_t cache_size;
};

struct document {
  char *member;   /* owned */
  uint8_t *bytes; /* owned */
  size_t size;
  bool seen; /* parsed already: an index may lead to itself */
};

struct link {
  char *member, *target; /* owned */
};

struct audit_image {
  struct layer *layers;
  size_t layers_count;
  struct document *documents;
  size_t documents_count;
  struct link *links;
  size_t links_count;
  uint64_t kept;
  const char *excess; /* what went over a limit; NULL: nothing */
};

/* Takes the bytes from what may be kept. */
static bool keep(struct audit_image *image, size_t size) {
  if (size > KEPT_MOST - image->kept) {
    image->excess = "its documents and caches have more than 64 MiB: not all of them are read";
    return false;
  }
  image->kept += size;
  return true;
}

/* --- what the archive has ----------------------------------------------------------------------------------------- */

bool audit_image_begins(const char *member) {
  static const char *const names[] = {"blobs/", "oci-layout", "index.json", "manifest.json", "repositories"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strncmp(member, names[i], strlen(names[i])) == 0)
      return true;
  member += strncmp(member, "sha256:", 7) == 0 ? 7 : 0; /* the configuration, by crane and its like */
  return strspn(member, "0123456789abcdef") == 64;      /* HASH/layer.tar, HASH.json, HASH.tar, HASH.tar.gz */
}

/* The file type of a name in a folder, without following links: they may lead out of it. 0: there is none. */
static mode_t type_of(const char *folder, const char *name) {
  struct stat status;
  char *path = scan_format("%s/%s", folder, name);
  mode_t type = lstat(path, &status) == 0 ? status.st_mode & S_IFMT : 0;
  free(path);
  return type;
}

/* A document of a folder; NULL: there is none. */
static json_t *load_file(const char *folder, const char *name) {
  if (type_of(folder, name) != S_IFREG)
    return NULL;
  char *path = scan_format("%s/%s", folder, name), message[256];
  size_t size;
  char *text = file_read(path, AUDIT_DOCUMENT_MOST, &size, message, sizeof message);
  json_t *document = text ? json_loadb(text, size, 0, NULL) : NULL;
  free(text);
  free(path);
  return document;
}

bool audit_image_unpacked(const char *folder) { /* others use these names, too */
  json_t *docker = load_file(folder, "manifest.json"), *oci = load_file(folder, "index.json");
  const json_t *layers = json_object_get(json_array_get(docker, 0), "Layers");
  const char *layer = json_string_value(json_array_get(layers, 0));
  bool image = (layer && file_below_root(layer) && type_of(folder, layer)) ||
               (json_is_array(json_object_get(oci, "manifests")) && type_of(folder, "blobs") == S_IFDIR);
  json_decref(docker);
  json_decref(oci);
  return image;
}

struct audit_image *audit_image_start(void) {
  struct audit_image *image = scan_alloc(NULL, sizeof *image);
  *image = (struct audit_image){0};
  return image;
}

void audit_image_free(struct audit_image *image) {
  if (!image)
    return;
  for (size_t i = 0; i < image->layers_count; i++) {
    free(image->layers[i].member);
    free(image->layers[i].cache);
  }
  for (size_t i = 0; i < image->documents_count; i++) {
    free(image->documents[i].member);
    free(image->documents[i].bytes);
  }
  for (size_t i = 0; i < image->links_count; i++) {
    free(image->links[i].member);
    free(image->links[i].target);
  }
  free(image->layers);
  free(image->documents);
  free(image->links);
  free(image);
}

void audit_image_document(struct audit_image *image, const char *member, uint8_t *bytes, size_t size) {
  if (!keep(image, size)) {
    free(bytes);
    return;
  }
  image->documents = scan_alloc(image->documents, (image->documents_count + 1) * sizeof *image->documents);
  image->documents[image->documents_count++] = (struct document){scan_format("%s", member), bytes, size, false};
}

unsigned audit_image_layer(struct audit_image *image, const char *member) {
  if (image->layers_count == LAYERS_MOST) {
    image->excess = "an archive of more than 10000 layers: the rest of them is not read";
    return AUDIT_NO_LAYER;
  }
  image->layers = scan_alloc(image->layers, (image->layers_count + 1) * sizeof *image->layers);
  image->layers[image->layers_count] = (struct layer){scan_format("%s", member), AUDIT_NO_LAYER, NULL, 0};
  return (unsigned)image->layers_count++;
}

void audit_image_link(struct audit_image *image, const char *member, const char *target) {
  image->links = scan_alloc(image->links, (image->links_count + 1) * sizeof *image->links);
  image->links[image->links_count++] = (struct link){scan_format("%s", member), scan_format("%s", target)};
}

void audit_image_cache(struct audit_image *image, unsigned layer, uint8_t *bytes, size_t size) {
  struct layer *one = &image->layers[layer];
  if (!keep(image, size)) {
    free(bytes);
    return;
  }
  free(one->cache);
  one->cache = bytes;
  one->cache_size = size;
}

bool audit_image_place(struct audit_list *list, unsigned layer, const struct audit_place *member) {
  static const char opaque[] = ".wh..wh..opq", whiteout[] = ".wh.";
  char *name = scan_format("%s", member->path), *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name;
  struct audit_place *place;
  if (strcmp(base, opaque) == 0) {
    *(slash ? slash : name) = '\0';
    place = audit_add_place(list, name, NULL, SIZE_MAX);
    place->kind = PLACE_OPAQUE;
  } else if (strncmp(base, whiteout, strlen(whiteout)) == 0) {
    memmove(base, base + strlen(whiteout), strlen(base + strlen(whiteout)) + 1);
    place = audit_add_place(list, name, NULL, SIZE_MAX);
    place->kind = PLACE_WHITEOUT;
  } else {
    place = audit_add_place(list, name, member->link, SIZE_MAX);
    place->kind = member->kind;
    place->hard = member->hard ? arena_copy(&list->arena, member->hard, strlen(member->hard)) : NULL;
  }
  place->layer = layer;
  free(name);
  return place->kind == PLACE_FILE && !place->hard;
}

/* --- the order of the layers -------------------------------------------------------------------------------------- */

static json_t *load(struct audit_image *image, const char *member) {
  for (size_t i = 0; i < image->documents_count; i++) {
    struct document *document = &image->documents[i];
    if (document->seen || strcmp(document->member, member) != 0)
      continue;
    document->seen = true;
    return json_loadb((const char *)document->bytes, document->size, 0, NULL);
  }
  return NULL;
}

/* "sha256:HASH" is the member blobs/sha256/HASH; owned by the caller, NULL: it is no digest. */
static char *blob(const json_t *descriptor) {
  const char *digest = json_string_value(json_object_get(descriptor, "digest"));
  const char *colon = digest ? strchr(digest, ':') : NULL;
  return colon ? scan_format("blobs/%.*s/%s", (int)(colon - digest), digest, colon + 1) : NULL;
}

static const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

/* In an old image a layer that an earlier one has too is a link "../HASH/layer.tar". */
static const char *target_of(const struct audit_image *image, const char *member) {
  for (size_t i = 0; i < image->links_count; i++)
    if (strcmp(image->links[i].member, member) == 0)
      return strncmp(image->links[i].target, "../", 3) == 0 ? image->links[i].target + 3 : image->links[i].target;
  return member;
}

/* Gives a layer its place; false: the archive has none of that name. */
static bool put(struct audit_image *image, const char *member, unsigned order) {
  const char *name = target_of(image, member);
  for (size_t i = 0; i < image->layers_count; i++) {
    const char *have = image->layers[i].member;
    if (strcmp(have, name) == 0 || (!strchr(name, '/') && strcmp(base_name(have), name) == 0)) {
      image->layers[i].order = order;
      return true;
    }
  }
  return false;
}

struct ordering {
  struct audit_list *list;
  const char *path;
  unsigned count, manifests;
  bool found; /* a manifest */
};

static void fault(struct ordering *work, const char *format, const char *what) {
  struct audit_object *object = audit_add(work->list, work->path, NULL);
  object->layer = AUDIT_NO_LAYER;
  audit_fault(work->list, object, format, what);
}

static void put_all(struct ordering *work, const json_t *layers, bool descriptors) {
  size_t i, missing = 0;
  json_t *one;
  char *first = NULL;
  if (json_array_size(layers) > LAYERS_MOST)
    fault(work, "%s", "an image that claims more than 10000 layers: the rest of them is not read");
  json_array_foreach(layers, i, one) {
    if (i == LAYERS_MOST)
      break;
    char *member = descriptors ? blob(one) : json_is_string(one) ? scan_format("%s", json_string_value(one)) : NULL;
    bool there = member && put(work->list->image, member, work->count++);
    missing += !there;
    if (!there && !first)
      first = scan_format("%s", member ? member : "(no name)");
    free(member);
  }
  if (missing) {
    char *more = missing > 1 ? scan_format("%s (and %zu more)", first, missing - 1) : scan_format("%s", first);
    fault(work, "an image whose layer %s is not in the archive", more);
    free(more);
  }
  free(first);
  work->found = true;
}

/* manifest.json of docker save. */
static void order_docker(struct ordering *work, const json_t *manifest) {
  if (json_array_size(manifest) > 1)
    fault(work, "%s", "an archive of several images: only the first one is audited");
  put_all(work, json_object_get(json_array_get(manifest, 0), "Layers"), false);
}

/* An OCI index leads to a manifest, or to another index with a manifest for each platform. */
static void order_oci(struct ordering *work, const json_t *index, unsigned depth) {
  const json_t *manifests = json_object_get(index, "manifests"), *layers = json_object_get(index, "layers");
  if (layers) {
    put_all(work, layers, true);
    return;
  }
  size_t i;
  json_t *one;
  json_array_foreach(manifests, i, one) {
    const char *system = json_string_value(json_object_get(json_object_get(one, "platform"), "os"));
    if (system && strcmp(system, "unknown") == 0) /* an attestation */
      continue;
    char *member = blob(one);
    json_t *next = member && ++work->manifests <= MANIFESTS_MOST ? load(work->list->image, member) : NULL;
    free(member);
    if (next && depth < 4)
      order_oci(work, next, depth + 1);
    json_decref(next);
    if (work->found || work->manifests > MANIFESTS_MOST)
      return;
  }
}

/* --- what is to be seen ------------------------------------------------------------------------------------------- */

/* The highest layer in which the path hides what is below it (as a file, link, whiteout or opaque folder), plus 1. */
static unsigned hidden_from(const struct audit_list *list, const char *path, size_t length) {
  size_t low = 0, high = list->places_count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    const char *other = list->places[middle].path;
    int order = strncmp(other, path, length);
    if (order < 0)
      low = middle + 1;
    else
      high = middle;
  }
  for (; low < list->places_count && strncmp(list->places[low].path, path, length) == 0; low++) {
    const struct audit_place *place = &list->places[low];
    if (place->path[length] == '\0' && place->kind != PLACE_FOLDER)
      return place->layer + 1;
    if (place->path[length] > '\0')
      break;
  }
  return 0;
}

/* Is a file of this layer seen? Nothing above may have its name or hide one of its folders. */
static bool is_seen(const struct audit_list *list, const char *path, size_t length, unsigned layer) {
  for (size_t at = 0; at < length; at++)
    if (path[at] == '/' && hidden_from(list, path, at) > layer + 1)
      return false;
  size_t low = 0, high = list->places_count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    int order = strncmp(list->places[middle].path, path, length);
    if (order < 0)
      low = middle + 1;
    else
      high = middle;
  }
  for (; low < list->places_count && strncmp(list->places[low].path, path, length) == 0; low++)
    if (list->places[low].path[length] == '\0')
      return list->places[low].layer <= layer;
  return true;
}

static void free_hidden(struct audit_object *object) {
  audit_object_free(object);
  *object = (struct audit_object){0};
}

static void drop_hidden(const struct audit_context *context, struct audit_list *list) {
  size_t *moved = scan_alloc(NULL, list->objects_count * sizeof *moved), objects = 0, places = 0, aliases_count;
  bool *keep = scan_alloc(NULL, list->places_count * sizeof *keep);
  for (size_t i = 0; i < list->places_count; i++) {
    const struct audit_place *place = &list->places[i];
    bool wanted =
        place->link || place->hard || place->object != SIZE_MAX || strcmp(base_name(place->path), "METADATA") == 0;
    keep[i] = wanted && place->kind == PLACE_FILE && is_seen(list, place->path, strlen(place->path), place->layer);
    if (keep[i])
      audit_note_path(context, list, place->path);
  }
  struct audit_alias *aliases = audit_aliases(list, keep, &aliases_count);
  for (size_t i = 0; i < list->objects_count; i++) {
    struct audit_object *object = &list->objects[i];
    bool seen = object->layer == AUDIT_NO_LAYER ||
                (object->member && (is_seen(list, object->member, strcspn(object->member, "!"), object->layer) ||
                                    audit_rename(list, object, aliases, aliases_count)));
    moved[i] = seen ? objects : SIZE_MAX;
    if (!seen)
      free_hidden(object);
    else
      list->objects[objects++] = *object;
  }
  list->objects_count = objects;
  free(aliases);
  for (size_t i = 0; i < list->places_count; i++) {
    struct audit_place place = list->places[i];
    place.object = place.object == SIZE_MAX ? SIZE_MAX : moved[place.object];
    if (keep[i] && (place.link || place.object != SIZE_MAX))
      list->places[places++] = place;
  }
  list->places_count = places;
  free(keep);
  free(moved);
}

/* A layer that no manifest names is none of the image: its number is replaced, and what it has is dropped. */
static void number_layers(struct audit_list *list) {
  struct audit_image *image = list->image;
  size_t objects = 0, places = 0;
  for (size_t i = 0; i < list->objects_count; i++) {
    struct audit_object *object = &list->objects[i];
    unsigned order = object->layer == AUDIT_NO_LAYER ? AUDIT_NO_LAYER : image->layers[object->layer].order;
    if (object->layer != AUDIT_NO_LAYER && order == AUDIT_NO_LAYER) {
      free_hidden(object);
      order = AUDIT_NO_LAYER;
    } else {
      object->layer = order;
    }
  }
  size_t *moved = scan_alloc(NULL, list->objects_count * sizeof *moved);
  for (size_t i = 0; i < list->objects_count; i++) {
    bool there = list->objects[i].path != NULL;
    moved[i] = there ? objects : SIZE_MAX;
    if (there)
      list->objects[objects++] = list->objects[i];
  }
  list->objects_count = objects;
  for (size_t i = 0; i < list->places_count; i++) {
    struct audit_place place = list->places[i];
    place.layer = image->layers[place.layer].order;
    place.object = place.object == SIZE_MAX ? SIZE_MAX : moved[place.object];
    if (place.layer != AUDIT_NO_LAYER)
      list->places[places++] = place;
  }
  list->places_count = places;
  free(moved);
}

void audit_image_finish(const struct audit_context *context, struct audit_list *list, const char *path) {
  struct audit_image *image = list->image;
  struct ordering work = {.list = list, .path = path};
  json_t *docker = load(image, "manifest.json"), *oci = load(image, "index.json");
  if (json_is_array(docker))
    order_docker(&work, docker);
  else if (oci)
    order_oci(&work, oci, 0);
  json_decref(docker);
  json_decref(oci);
  if (image->excess)
    fault(&work, "%s", image->excess);
  if (!work.found) {
    fault(&work, "%s", "it looks like an image, but has no manifest: its layers are taken in the order of the archive");
    for (size_t i = 0; i < image->layers_count; i++)
      image->layers[i].order = (unsigned)i;
  }
  unsigned top = 0;
  for (size_t i = 0; i < image->layers_count; i++) {
    struct layer *layer = &image->layers[i];
    if (layer->cache && layer->order != AUDIT_NO_LAYER && (!list->cache || layer->order > top)) {
      free(list->cache);
      list->cache = layer->cache;
      list->cache_size = layer->cache_size;
      top = layer->order;
      layer->cache = NULL;
    }
  }
  number_layers(list);
  audit_links(list);
  drop_hidden(context, list);
}
