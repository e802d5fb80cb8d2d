/* Two signatures: does every call that fits the old one fit the new one and mean the same? And two names: how alike? */
#include "scanner/surface.h"

#include <stdlib.h>
#include <string.h>

/* --- Python ------------------------------------------------------------------------------------------------------- */

static bool same_text(const char *a, const char *b) {
  return a == b || (a && b && strcmp(a, b) == 0);
}

static bool by_position(const struct surface_parameter *parameter) {
  return parameter->kind == PARAMETER_PLAIN || parameter->kind == PARAMETER_POSITION;
}

static bool rest_is_there(const struct surface_signature *signature, int kind) {
  for (size_t i = 0; i < signature->count; i++)
    if ((int)signature->parameters[i].kind == kind)
      return true;
  return false;
}

static size_t find_parameter(const struct surface_signature *signature, const char *name) {
  for (size_t i = 0; i < signature->count; i++)
    if (strcmp(signature->parameters[i].name, name) == 0 && signature->parameters[i].kind < PARAMETER_REST)
      return i;
  return SIZE_MAX;
}

/* What a caller notices of parameter i of the old function; NULL: nothing. */
static const char *lost_parameter(struct arena *arena, const struct surface_signature *old, size_t i,
                                  const struct surface_signature *new) {
  const struct surface_parameter *was = &old->parameters[i];
  if (was->kind >= PARAMETER_REST)
    return rest_is_there(new, was->kind)
               ? NULL
               : surface_format(arena, "%s%s is gone", was->kind == PARAMETER_REST ? "*" : "**", was->name);
  size_t at = find_parameter(new, was->name);
  if (was->kind == PARAMETER_POSITION && i < new->count &&by_position(&new->parameters[i]))
    at = i; /* its name was nobody's business */
  if (at == SIZE_MAX)
    return was->kind == PARAMETER_KEYWORD && rest_is_there(new, PARAMETER_NAMED_REST)
               ? NULL
               : surface_format(arena, "parameter %s is gone", was->name);
  const struct surface_parameter *is = &new->parameters[at];
  if (by_position(was) && is->kind == PARAMETER_KEYWORD)
    return surface_format(arena, "parameter %s is keyword-only now", was->name);
  if (by_position(was) && at != i)
    return surface_format(arena, "parameter %s was number %zu and is number %zu", was->name, i + 1, at + 1);
  if (was->kind != PARAMETER_POSITION && is->kind == PARAMETER_POSITION)
    return surface_format(arena, "parameter %s is positional-only now", was->name);
  if (was->value && !is->value)
    return surface_format(arena, "parameter %s has no default any more", was->name);
  if (was->value && !same_text(was->value, is->value))
    return surface_format(arena, "default of %s was %s and is %s", was->name, was->value, is->value);
  return NULL;
}

static bool python_fits(struct arena *arena, const struct surface_signature *old, const struct surface_signature *new,
                        const char **why) {
  for (size_t i = 0; i < old->count; i++)
    if ((*why = lost_parameter(arena, old, i, new)))
      return false;
  *why = "";
  for (size_t i = 0; i < new->count; i++) {
    const struct surface_parameter *is = &new->parameters[i];
    size_t at = find_parameter(old, is->name);
    if (is->kind >= PARAMETER_REST ? rest_is_there(old, is->kind) : at != SIZE_MAX) {
      if (at != SIZE_MAX && !old->parameters[at].value && is->value && !**why)
        *why = surface_format(arena, "parameter %s has a default now", is->name);
      continue;
    }
    if (is->kind == PARAMETER_POSITION && i < old->count)
      continue;
    if (is->kind < PARAMETER_REST && !is->value) {
      *why = surface_format(arena, "parameter %s is new and has no default", is->name);
      return false;
    }
    if (!**why)
      *why = surface_format(arena, "parameter %s is new", is->name);
  }
  return true;
}

/* --- operators ---------------------------------------------------------------------------------------------------- */

/* "Tensor(a!)" without what is said of aliases: "Tensor". */
static char *bare_type(struct arena *arena, const char *type) {
  char *bare = arena_alloc(arena, strlen(type) + 1);
  size_t used = 0;
  for (size_t i = 0; type[i]; i++) {
    if (type[i] == '(' && type[i + 1] >= 'a' && type[i + 1] <= 'z' && strchr(type + i, ')'))
      i += strcspn(type + i, ")");
    else if (type[i] != '!')
      bare[used++] = type[i];
  }
  return bare;
}

static const char *lost_argument(struct arena *arena, const struct surface_signature *old, size_t i,
                                 const struct surface_signature *new) {
  const struct surface_parameter *was = &old->parameters[i];
  size_t at = find_parameter(new, was->name);
  if (at == SIZE_MAX)
    return surface_format(arena, "argument %s is gone", was->name);
  const struct surface_parameter *is = &new->parameters[at];
  if (was->kind == PARAMETER_PLAIN && is->kind == PARAMETER_KEYWORD)
    return surface_format(arena, "argument %s is keyword-only now", was->name);
  if (was->kind == PARAMETER_PLAIN && at != i)
    return surface_format(arena, "argument %s was number %zu and is number %zu", was->name, i + 1, at + 1);
  const char *type = bare_type(arena, was->type), *now = bare_type(arena, is->type);
  size_t length = strlen(type);
  bool wider = strncmp(type, now, length) == 0 && strcmp(now + length, "?") == 0;
  if (strcmp(type, now) != 0 && !wider)
    return surface_format(arena, "argument %s was %s and is %s", was->name, was->type, is->type);
  if (was->value && !is->value)
    return surface_format(arena, "argument %s has no default any more", was->name);
  if (was->value && !same_text(was->value, is->value))
    return surface_format(arena, "default of %s was %s and is %s", was->name, was->value, is->value);
  return NULL;
}

static bool operator_fits(struct arena *arena, const struct surface_signature *old, const struct surface_signature *new,
                          const char **why) {
  for (size_t i = 0; i < old->count; i++)
    if ((*why = lost_argument(arena, old, i, new)))
      return false;
  const char *was = bare_type(arena, old->returns), *is = bare_type(arena, new->returns);
  if (strcmp(was, is) != 0) {
    *why = surface_format(arena, "it returned %s and returns %s", old->returns, new->returns);
    return false;
  }
  *why = strcmp(old->text, new->text) ? "only what the schema says of aliases, defaults or optional values" : "";
  for (size_t i = 0; i < new->count; i++) {
    if (find_parameter(old, new->parameters[i].name) != SIZE_MAX)
      continue;
    *why = surface_format(arena, "argument %s is new%s", new->parameters[i].name,
                          new->parameters[i].value ? "" : " and has no default");
    if (!new->parameters[i].value)
      return false;
  }
  return true;
}

/* --- C++ ---------------------------------------------------------------------------------------------------------- */

/* A symbol fits or does not; this only says what a person looks for. */
static const char *cxx_difference(struct arena *arena, const struct surface_signature *old,
                                  const struct surface_signature *new) {
  if (!old->split || !new->split)
    return "another symbol";
  if (old->count != new->count)
    return surface_format(arena, "it had %zu parameter%s and has %zu", old->count, old->count == 1 ? "" : "s",
                          new->count);
  for (size_t i = 0; i < old->count; i++)
    if (strcmp(old->parameters[i].type, new->parameters[i].type) != 0)
      return surface_format(arena, "parameter %zu was %s and is %s", i + 1, old->parameters[i].type,
                            new->parameters[i].type);
  return "another symbol";
}

bool diff_fits(struct arena *arena, enum catalog_layer layer, const struct surface_signature *old,
               const struct surface_signature *new, const char **why) {
  *why = "";
  if (strcmp(old->text, new->text) == 0)
    return true;
  if (layer == CATALOG_LAYER_CXX) {
    *why = cxx_difference(arena, old, new);
    return false;
  }
  if (!*old->text || !*new->text) { /* a function that became a value, a schema that is made of the C++ function */
    *why = *old->text ? "its signature cannot be read any more" : "";
    return !*old->text;
  }
  if (!old->split || !new->split) {
    *why = "one of several definitions";
    return false;
  }
  return layer == CATALOG_LAYER_PYTHON ? python_fits(arena, old, new, why) : operator_fits(arena, old, new, why);
}

/* --- likeness ----------------------------------------------------------------------------------------------------- */

#define WORD_MOST 200

/* Levenshtein's distance in percent of the longer one, from 100 down. */
static unsigned words_alike(const char *a, const char *b) {
  size_t rows = strlen(a), columns = strlen(b), longest = rows > columns ? rows : columns;
  unsigned line[WORD_MOST + 1];
  if (strcmp(a, b) == 0)
    return 100;
  if (longest == 0 || longest > WORD_MOST)
    return 0;
  for (size_t k = 0; k <= columns; k++)
    line[k] = (unsigned)k;
  for (size_t i = 1; i <= rows; i++) {
    unsigned corner = line[0];
    line[0] = (unsigned)i;
    for (size_t k = 1; k <= columns; k++) {
      unsigned change = corner + (a[i - 1] != b[k - 1]), least = line[k] < line[k - 1] ? line[k] + 1 : line[k - 1] + 1;
      corner = line[k];
      line[k] = change < least ? change : least;
    }
  }
  return 100 - line[columns] * 100 / (unsigned)longest;
}

/* Parameters of the shorter list that the longer one has too, in their order, by name and type as far as both are said.
 */
static unsigned signatures_alike(const struct surface_signature *a, const struct surface_signature *b) {
  size_t longest = a->count > b->count ? a->count : b->count, same = 0, next = 0;
  if (longest == 0)
    return 100;
  for (size_t i = 0; i < a->count; i++)
    for (size_t k = next; k < b->count; k++) {
      const struct surface_parameter *x = &a->parameters[i], *y = &b->parameters[k];
      if (strcmp(x->name, y->name) == 0 && (!*x->type || !*y->type || strcmp(x->type, y->type) == 0)) {
        same++;
        next = k + 1;
        break;
      }
    }
  return (unsigned)(same * 100 / longest);
}

unsigned diff_alike(const struct surface_item *old, const struct surface_item *new) {
  bool same_class = old->class && new->class ? strcmp(old->class, new->class) == 0 : old->class == new->class;
  if (old->module != new->module || !same_class)
    return 0;
  unsigned words = words_alike(surface_short(old->layer, old->name), surface_short(new->layer, new->name));
  if (!old->signature.split || !new->signature.split)
    return words;
  return (6 * words + 4 * signatures_alike(&old->signature, &new->signature)) / 10;
}
