/* Questions to a catalog that is in memory. Needs nothing but the C library, so that every part can link it. */
#include "catalog/catalog.h"

#include <string.h>

const struct catalog_symbol *catalog_find(const struct catalog *catalog, const char *id) {
  unsigned low = 0, high = catalog->symbols_count;
  while (low < high) {
    unsigned middle = low + (high - low) / 2;
    int order = strcmp(id, catalog->symbols[middle].id);
    if (order == 0)
      return &catalog->symbols[middle];
    if (order < 0)
      high = middle;
    else
      low = middle + 1;
  }
  return NULL;
}

/* --- release numbers ------------------------------------------------------------------------------------------------
 */

/* A run of digits in the text it was read from; compared by value without converting, so no length is too long. */
struct number {
  const char *digits; /* without leading zeros; NULL when the part is absent */
  size_t length;
};

enum { PRE_NONE, PRE_A, PRE_B, PRE_RC };

struct version {
  const char *release; /* N(.N)* */
  size_t release_length;
  int pre_kind;
  struct number pre, post, dev;
};

static bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

static bool is_alphanumeric(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static const char *read_number(const char *at, struct number *number) {
  if (!is_digit(*at))
    return NULL;
  while (*at == '0' && is_digit(at[1]))
    at++;
  number->digits = at;
  while (is_digit(*at))
    at++;
  number->length = (size_t)(at - number->digits);
  return at;
}

static int compare_numbers(struct number a, struct number b) {
  if (a.length != b.length)
    return a.length < b.length ? -1 : 1;
  return memcmp(a.digits, b.digits, a.length);
}

static bool read_version(const char *text, struct version *version) {
  static const char *const pre_names[] = {[PRE_A] = "a", [PRE_B] = "b", [PRE_RC] = "rc"};
  *version = (struct version){.release = text};
  struct number part;
  const char *at = text;
  for (;;) {
    at = read_number(at, &part);
    if (!at)
      return false;
    if (*at != '.' || !is_digit(at[1]))
      break;
    at++;
  }
  version->release_length = (size_t)(at - text);
  for (int kind = PRE_A; kind <= PRE_RC; kind++) {
    size_t length = strlen(pre_names[kind]);
    if (strncmp(at, pre_names[kind], length) != 0)
      continue;
    version->pre_kind = kind;
    at = read_number(at + length, &version->pre);
    if (!at)
      return false;
    break;
  }
  if (strncmp(at, ".post", 5) == 0) {
    at = read_number(at + 5, &version->post);
    if (!at)
      return false;
  }
  if (strncmp(at, ".dev", 4) == 0) {
    at = read_number(at + 4, &version->dev);
    if (!at)
      return false;
  }
  if (*at == '+') { /* local part: letters and digits, groups joined by one separator */
    do {
      at++;
      if (!is_alphanumeric(*at))
        return false;
      while (is_alphanumeric(*at))
        at++;
    } while (*at == '.' || *at == '-' || *at == '_');
  }
  return *at == '\0';
}

/* 1.2 and 1.2.0 are the same release: missing parts are zero. */
static int compare_release(const struct version *a, const struct version *b) {
  const char *at_a = a->release, *end_a = a->release + a->release_length;
  const char *at_b = b->release, *end_b = b->release + b->release_length;
  while (at_a < end_a || at_b < end_b) {
    struct number number_a = {"0", 1}, number_b = {"0", 1};
    if (at_a < end_a)
      at_a = read_number(at_a, &number_a) + 1; /* past the dot, or one past the end */
    if (at_b < end_b)
      at_b = read_number(at_b, &number_b) + 1;
    int order = compare_numbers(number_a, number_b);
    if (order)
      return order;
  }
  return 0;
}

/* PEP 440: of one release, N.devM without pre or post is the earliest, then a, b, rc, the release itself. */
static int pre_rank(const struct version *v) {
  if (v->pre_kind != PRE_NONE)
    return v->pre_kind;
  return v->dev.digits && !v->post.digits ? 0 : PRE_RC + 1;
}

/* An absent part sorts before (post) or after (dev) every present one. */
static int compare_optional(struct number a, struct number b, int absent) {
  if (!a.digits || !b.digits)
    return a.digits ? -absent : b.digits ? absent : 0;
  return compare_numbers(a, b);
}

bool catalog_version_valid(const char *text) {
  struct version version;
  return read_version(text, &version);
}

int catalog_version_compare(const char *a, const char *b) {
  struct version version_a, version_b;
  bool valid_a = read_version(a, &version_a), valid_b = read_version(b, &version_b);
  if (!valid_a || !valid_b)
    return valid_a ? 1 : valid_b ? -1 : strcmp(a, b);
  int order = compare_release(&version_a, &version_b);
  if (order == 0)
    order = pre_rank(&version_a) - pre_rank(&version_b);
  if (order == 0 && version_a.pre_kind != PRE_NONE)
    order = compare_numbers(version_a.pre, version_b.pre);
  if (order == 0)
    order = compare_optional(version_a.post, version_b.post, -1);
  if (order == 0)
    order = compare_optional(version_a.dev, version_b.dev, 1);
  return order;
}

/* --- removals and routes --------------------------------------------------------------------------------------------
 */

const struct catalog_removal *catalog_platform_removal(const struct catalog_symbol *symbol, enum catalog_layer layer,
                                                       enum catalog_platform platform) {
  const struct catalog_removal *cuda = NULL;
  for (unsigned i = 0; i < symbol->removals_count; i++) {
    const struct catalog_removal *removal = &symbol->removals[i];
    if (removal->layer != layer)
      continue;
    if (removal->platform == platform)
      return removal;
    if (removal->platform == CATALOG_CUDA)
      cuda = removal;
  }
  return cuda;
}

bool catalog_is_removed(const struct catalog_symbol *symbol, enum catalog_layer layer, enum catalog_platform platform,
                        const char *kernel) {
  const struct catalog_removal *removal = catalog_platform_removal(symbol, layer, platform);
  return removal && removal->first_without && catalog_version_compare(kernel, removal->first_without) >= 0;
}

const char *catalog_sglang_kernel(const struct catalog *catalog, const char *release) {
  for (unsigned i = 0; i < catalog->library.sglang_pins_count; i++)
    if (catalog_version_compare(catalog->library.sglang_pins[i].release, release) == 0)
      return catalog->library.sglang_pins[i].kernel;
  return NULL;
}

const struct catalog_route *catalog_sglang_route(const struct catalog_symbol *symbol, const char *release) {
  for (unsigned i = 0; i < symbol->routes_count; i++) {
    const struct catalog_route *route = &symbol->routes[i];
    if (route->kind == CATALOG_ROUTE_SGLANG && catalog_version_compare(release, route->from) >= 0 &&
        (!route->until || catalog_version_compare(release, route->until) < 0))
      return route;
  }
  return NULL;
}

const struct catalog_wheel *catalog_wheel_for(const struct catalog *catalog, enum catalog_platform platform,
                                              const char *release) {
  for (unsigned i = 0; i < catalog->library.wheels_count; i++) {
    const struct catalog_wheel *wheel = &catalog->library.wheels[i];
    bool in_time = release ? (!wheel->from || catalog_version_compare(release, wheel->from) >= 0) &&
                                 (!wheel->until || catalog_version_compare(release, wheel->until) < 0)
                           : !wheel->until;
    for (unsigned p = 0; in_time && p < wheel->platforms_count; p++)
      if (wheel->platforms[p] == platform)
        return wheel;
  }
  return NULL;
}

bool catalog_function_returns_nothing(const struct catalog_symbol *symbol) {
  return strncmp(symbol->cxx.declaration, "void ", 5) == 0;
}

const struct catalog_route *catalog_jit_route(const struct catalog_symbol *symbol) {
  for (unsigned i = 0; i < symbol->routes_count; i++)
    if (symbol->routes[i].kind == CATALOG_ROUTE_JIT)
      return &symbol->routes[i];
  return NULL;
}
