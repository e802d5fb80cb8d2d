/* For each name of the catalog and each of its layers: who would answer in this environment. */
#include "scanner/doctor.h"

#include <stdlib.h>
#include <string.h>

/* That of a wheel that is for one only, else what torch is built for. */
static enum catalog_platform platform_of(const struct doctor *doctor) {
  const struct catalog_library *library = &doctor->catalog->library;
  for (unsigned i = 0; doctor->kernel && i < library->wheels_count; i++)
    if (library->wheels[i].platforms_count == 1 &&
        doctor_same_name(doctor->kernel->name, library->wheels[i].distribution))
      return library->wheels[i].platforms[0];
  return doctor->torch_hip ? CATALOG_ROCM : CATALOG_CUDA;
}

static bool of_kernel(const struct doctor *doctor, const struct audit_object *object) {
  const char *package = doctor->catalog->library.package;
  size_t length = strlen(package);
  return !object->fault && !object->outside && strncmp(object->path, package, length) == 0 &&
         object->path[length] == '/';
}

/* What the kernel's libraries say themselves comes before what the catalog knows of the release. */
static bool kernel_has(const struct doctor *doctor, const struct catalog_symbol *symbol, enum doctor_layer layer) {
  static const enum catalog_layer layers[] = {[DOCTOR_PYTHON] = CATALOG_LAYER_PYTHON,
                                              [DOCTOR_OPERATOR] = CATALOG_LAYER_OPERATOR,
                                              [DOCTOR_CXX] = CATALOG_LAYER_CXX};
  const struct audit_run *run = &doctor->run;
  const char *version = doctor->kernel_version;
  bool libraries = false, found = false;
  bool known = version && catalog_version_valid(version) && catalog_version_compare(version, symbol->added_in) >= 0 &&
               !catalog_is_removed(symbol, layers[layer], platform_of(doctor), version);
  uint64_t hash = audit_hash(symbol->cxx.mangled, strlen(symbol->cxx.mangled));
  for (size_t i = 0; i < run->objects_count && layer != DOCTOR_PYTHON && !found; i++) {
    const struct audit_object *object = &run->objects[i];
    if (!of_kernel(doctor, object) || (layer == DOCTOR_OPERATOR && !object->schemas_count))
      continue;
    libraries = true;
    found = layer == DOCTOR_CXX ? audit_exports(object, hash)
                                : audit_has_schema(object, symbol->op_name) ||
                                      (known && audit_has_name(object, symbol->op_name)); /* see audit_verdict.c */
  }
  return libraries ? found : known;
}

/* Is the first package of the module installed? */
static bool has_module(const struct doctor *doctor, const char *module) {
  bool found = false;
  for (size_t i = 0; i < doctor->sites_count && !found; i++) {
    char *folder = scan_format("%s/%.*s", doctor->sites[i].path, (int)strcspn(module, "."), module);
    char *file = scan_format("%s.py", folder);
    found = doctor_exists(folder) || doctor_exists(file);
    free(folder);
    free(file);
  }
  return found;
}

static const char *library_route(const struct doctor *doctor, const struct catalog_symbol *symbol) {
  const struct catalog_route *sglang = doctor->sglang ? catalog_sglang_route(symbol, doctor->sglang->version) : NULL;
  if (sglang)
    return sglang->module;
  for (unsigned i = 0; i < symbol->routes_count; i++)
    if (symbol->routes[i].kind == CATALOG_ROUTE_LIBRARY && has_module(doctor, symbol->routes[i].module))
      return symbol->routes[i].module;
  return NULL;
}

static enum doctor_provider provider(const struct doctor *doctor, const struct catalog_symbol *symbol,
                                     enum doctor_layer layer, const char *route) {
  bool jit = catalog_jit_route(symbol) != NULL;
  if (kernel_has(doctor, symbol, layer))
    return DOCTOR_KERNEL;
  if (layer == DOCTOR_CXX ? !doctor->shim_preloaded : !doctor->shim_active)
    return DOCTOR_NOBODY;
  if (jit)
    return DOCTOR_SHIM;
  if (layer == DOCTOR_CXX)
    return DOCTOR_NOBODY;
  return layer == DOCTOR_PYTHON && route ? DOCTOR_ROUTE : DOCTOR_TOMBSTONE;
}

/* What the process of --import has found comes before all that, when the kernel could be imported. */
static void correct(const struct doctor *doctor, struct doctor_name *name) {
  const json_t *names = json_object_get(doctor->imported, "names");
  const json_t *found = json_object_get(names, name->symbol->id);
  const char *python = json_string_value(json_array_get(found, 0));
  bool shim = json_is_true(json_object_get(doctor->imported, "shim"));
  enum doctor_provider *in_python = &name->providers[DOCTOR_PYTHON], *operator= & name->providers[DOCTOR_OPERATOR];
  if (json_array_size(found) != 2 || !json_is_string(json_object_get(doctor->imported, "kernel")))
    return;
  if (*in_python != DOCTOR_NEVER && python && strcmp(python, "shim") == 0)
    *in_python = catalog_jit_route(name->symbol) ? DOCTOR_SHIM : DOCTOR_ROUTE;
  else if (*in_python != DOCTOR_NEVER)
    *in_python = python ? DOCTOR_KERNEL : shim ? DOCTOR_TOMBSTONE : DOCTOR_NOBODY;
  if (*operator!= DOCTOR_NEVER && !json_is_true(json_array_get(found, 1)))
    *operator= shim ? DOCTOR_TOMBSTONE : DOCTOR_NOBODY;
  else if (*operator== DOCTOR_NOBODY || * operator== DOCTOR_TOMBSTONE)
    *operator= shim ? DOCTOR_SHIM : DOCTOR_KERNEL;
}

/* What to use in place of it; owned by the caller. */
static char *instead(const struct doctor *doctor, const struct catalog_symbol *symbol) {
  const struct catalog_route *route = doctor->sglang ? catalog_sglang_route(symbol, doctor->sglang->version) : NULL;
  if (catalog_jit_route(symbol))
    route = catalog_jit_route(symbol);
  for (unsigned i = 0; i < symbol->routes_count && !route; i++)
    if (symbol->routes[i].kind != CATALOG_ROUTE_NONE && !symbol->routes[i].until)
      route = &symbol->routes[i];
  return route ? scan_format("%s.%s", route->module, route->name) : scan_format("no replacement");
}

void doctor_find_names(struct doctor *doctor) {
  const struct catalog *catalog = doctor->catalog;
  size_t gone = 0;
  doctor->names = scan_alloc(NULL, (catalog->symbols_count + 1) * sizeof *doctor->names);
  for (unsigned i = 0; i < catalog->symbols_count; i++) {
    const struct catalog_symbol *symbol = &catalog->symbols[i];
    struct doctor_name *name = &doctor->names[doctor->names_count++];
    const bool has[] = {[DOCTOR_PYTHON] = symbol->python_count > 0,
                        [DOCTOR_OPERATOR] = *symbol->op_name != '\0',
                        [DOCTOR_CXX] = *symbol->cxx.mangled != '\0'};
    *name = (struct doctor_name){.symbol = symbol, .instead = instead(doctor, symbol)};
    const char *route = library_route(doctor, symbol);
    bool any = false;
    for (int layer = 0; layer < DOCTOR_LAYERS; layer++)
      name->providers[layer] = has[layer] ? provider(doctor, symbol, (enum doctor_layer)layer, route) : DOCTOR_NEVER;
    correct(doctor, name);
    for (int layer = 0; layer < DOCTOR_LAYERS; layer++) {
      if (name->providers[layer] == DOCTOR_ROUTE)
        name->route = route;
      any |= name->providers[layer] == DOCTOR_NOBODY || name->providers[layer] == DOCTOR_TOMBSTONE;
    }
    gone += any;
  }
  doctor_say(doctor, DOCTOR_FACT, "names", NULL,
             "of %zu names that releases of the kernel removed, %zu have a layer (Python, operator or C++) that nobody "
             "serves here",
             doctor->names_count, gone);
}
