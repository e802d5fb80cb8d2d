/* The words for the enums, and the short texts that are derived from a row. */
#include "catalog/catalog_private.h"

#include <stdio.h>
#include <string.h>

const char *catalog_layer_word(enum catalog_layer layer) {
  static const char *const words[] = {"python", "operator", "cxx", "sources"};
  return words[layer];
}

const char *catalog_changed_word(enum catalog_changed what) {
  static const char *const words[] = {"cxx", "distribution", "module", "operator", "python"};
  return words[what];
}

const char *catalog_platform_word(enum catalog_platform platform) {
  static const char *const words[] = {"cuda", "musa", "rocm", "xpu", "cpu"};
  return words[platform];
}

const char *catalog_layer_title(enum catalog_layer layer) {
  static const char *const words[] = {"Python export", "torch operator", "C++ function", "source files"};
  return words[layer];
}

const char *catalog_platform_title(enum catalog_platform platform) {
  static const char *const words[] = {"CUDA", "MUSA", "ROCm", "XPU", "CPU"};
  return words[platform];
}

const struct catalog_removal *catalog_layer_removal(const struct catalog_symbol *symbol, enum catalog_layer layer) {
  const struct catalog_removal *other = NULL;
  for (unsigned i = 0; i < symbol->removals_count; i++) {
    const struct catalog_removal *removal = &symbol->removals[i];
    if (removal->layer != layer)
      continue;
    if (removal->platform == CATALOG_CUDA)
      return removal;
    if (!other)
      other = removal;
  }
  return other;
}

const struct catalog_removal *catalog_main_removal(const struct catalog_symbol *symbol) {
  for (enum catalog_layer layer = CATALOG_LAYER_PYTHON; layer <= CATALOG_LAYER_SOURCES; layer++) {
    const struct catalog_removal *removal = catalog_layer_removal(symbol, layer);
    if (removal)
      return removal;
  }
  return NULL;
}

bool catalog_route_takes_old_calls(const struct catalog_route *route) {
  if (route->kind == CATALOG_ROUTE_SGLANG || !route->arguments_count)
    return route->python;
  for (unsigned i = 0; i < route->arguments_count; i++)
    if (strcmp(route->arguments[i].from, route->arguments[i].to) != 0)
      return route->python;
  return true;
}

char *catalog_advice(const struct catalog_symbol *symbol, char *text, size_t size) {
  text[0] = '\0';
  if (!symbol->routes_count)
    return text;
  const struct catalog_route *route = &symbol->routes[0];
  switch (route->kind) {
  case CATALOG_ROUTE_NONE:
    snprintf(text, size, "there is no replacement: %s", route->note);
    break;
  case CATALOG_ROUTE_SGLANG:
    if (route->until)
      snprintf(text, size, "use %s.%s of sglang %s, which %s dropped", route->module, route->name, route->from,
               route->until);
    else
      snprintf(text, size, "use %s.%s (sglang %s and newer)", route->module, route->name, route->from);
    break;
  case CATALOG_ROUTE_JIT:
  case CATALOG_ROUTE_LIBRARY:
    snprintf(text, size, "use %s.%s", route->module, route->name);
    break;
  }
  return text;
}

char *catalog_answer(const struct catalog_symbol *symbol, char *text, size_t size) {
  if (symbol->status == CATALOG_PLANNED) {
    snprintf(text, size, "nothing to answer as long as every release has it.");
    return text;
  }
  const char *cxx = *symbol->cxx.mangled ? " The C++ symbol resolves; a call is an error with the advice." : "";
  if (catalog_jit_route(symbol)) {
    bool in_every = !*symbol->cxx.mangled || catalog_function_returns_nothing(symbol);
    snprintf(text, size, "served by this project's own kernel, in every layer (stage %s)%s.", symbol->stage,
             in_every ? "" : " but C++: the symbol resolves, and a call is an error with the advice");
    return text;
  }
  for (unsigned i = 0; i < symbol->routes_count; i++)
    if (catalog_route_takes_old_calls(&symbol->routes[i]) && symbol->routes[i].kind != CATALOG_ROUTE_NONE) {
      snprintf(text, size,
               "the Python name leads to the first replacement that is installed and whose calls stay as they "
               "are; without one it is an error with the advice.%s",
               cxx);
      return text;
    }
  snprintf(text, size, "the name is an error with the advice (a tombstone).%s", cxx);
  return text;
}
