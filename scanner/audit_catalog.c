/* What the catalog says of a name that a file speaks of: for the platform of the file, in the kernel release of the
 * run. The catalog ends somewhere: of releases after its newest, and before a name came, only that is said. */
#include "scanner/audit.h"
#include "scanner/report.h"

#include <string.h>

/* The platform that a file was built for: the libraries say it. */
static enum catalog_platform platform_of(const struct audit_object *object) {
  static const struct {
    const char *library;
    enum catalog_platform platform;
  } marks[] = {{"libamdhip64.so", CATALOG_ROCM}, {"libc10_hip.so", CATALOG_ROCM}, {"libtorch_hip.so", CATALOG_ROCM},
               {"libmusa.so", CATALOG_MUSA},     {"libmusart.so", CATALOG_MUSA},  {"libtorch_musa.so", CATALOG_MUSA},
               {"libc10_xpu.so", CATALOG_XPU},   {"libtorch_xpu.so", CATALOG_XPU}};
  for (size_t i = 0; i < object->needed_count; i++)
    for (size_t k = 0; k < sizeof marks / sizeof *marks; k++)
      if (strncmp(object->needed[i].name, marks[k].library, strlen(marks[k].library)) == 0)
        return marks[k].platform;
  return CATALOG_CUDA;
}

/* The entry that decides: that of the platform, else CUDA's, else the first: the layer was never on another platform
 * than that of its entries. NULL: the layer is still there. */
static const struct catalog_removal *deciding(const struct audit_object *object, const struct catalog_symbol *symbol,
                                              enum catalog_layer layer) {
  const struct catalog_removal *removal = catalog_platform_removal(symbol, layer, platform_of(object));
  return removal ? removal : catalog_layer_removal(symbol, layer);
}

bool audit_gone(const struct audit_run *run, const struct audit_object *object, const struct catalog_symbol *symbol,
                enum catalog_layer layer) {
  const struct catalog_removal *removal = deciding(object, symbol, layer);
  return removal && removal->first_without && catalog_version_compare(run->kernel, removal->first_without) >= 0;
}

bool audit_not_yet(const struct audit_run *run, const struct catalog_symbol *symbol) {
  return *symbol->added_in && catalog_version_compare(run->kernel, symbol->added_in) < 0;
}

/* ", CPU only" of a layer that left on other platforms than CUDA. */
static const char *only_on(const struct catalog_removal *removal, const char *lead, char *text, size_t size) {
  bool cuda = !removal || removal->platform == CATALOG_CUDA;
  snprintf(text, size, "%s%s", cuda ? "" : lead, cuda ? "" : catalog_platform_title(removal->platform));
  return text;
}

char *audit_left(const struct audit_run *run, const struct audit_object *object, const struct catalog_symbol *symbol,
                 enum catalog_layer layer) {
  const char *package = run->context->catalog->library.package;
  const struct catalog_removal *removal = deciding(object, symbol, layer);
  char where[32];
  if (audit_not_yet(run, symbol))
    return scan_format("kernel %s does not have it yet: it came with %s", run->kernel, symbol->added_in);
  if (!audit_gone(run, object, symbol, layer))
    return audit_has(run, object, symbol, layer);
  return scan_format("left %s in %s (%s%s%s%s%s%s)", package, removal->first_without, catalog_layer_title(layer),
                     only_on(removal, " of ", where, sizeof where), *removal->change ? ", " : "", removal->change,
                     *removal->date ? ", " : "", removal->date);
}

char *audit_has(const struct audit_run *run, const struct audit_object *object, const struct catalog_symbol *symbol,
                enum catalog_layer layer) {
  const struct catalog_library *library = &run->context->catalog->library;
  const char *newest = library->releases_count ? library->releases[library->releases_count - 1] : NULL;
  const char *what = layer == CATALOG_LAYER_OPERATOR ? "the operator" : "it";
  char where[32];
  only_on(deciding(object, symbol, layer), ", built for ", where, sizeof where);
  if (newest && catalog_version_compare(run->kernel, newest) > 0)
    return scan_format("kernel %s, the newest that the catalog knows, has %s%s; of %s nothing is known", newest, what,
                       where, run->kernel);
  if (newest && !*symbol->added_in && catalog_version_compare(run->kernel, newest) < 0)
    return scan_format("kernel %s has %s%s; whether %s had it already is not known", newest, what, where, run->kernel);
  return scan_format("kernel %s%s%s has %s", run->kernel, where, *where ? "," : "", what);
}

char *audit_instead(const struct catalog_symbol *symbol, enum catalog_layer layer) {
  const char *lead = layer == CATALOG_LAYER_CXX ? "no C++ replacement; in Python " : "use ";
  for (unsigned i = 0; i < symbol->routes_count; i++) {
    const struct catalog_route *route = &symbol->routes[i];
    const char *colon = *route->note ? ": " : "";
    if (route->kind == CATALOG_ROUTE_SGLANG)
      return scan_format("%s%s.%s (sglang %s%s%s)%s%s", lead, route->module, route->name, route->from,
                         route->until ? " up to but not including " : " and newer", route->until ? route->until : "",
                         colon, route->note);
    if (route->kind != CATALOG_ROUTE_NONE)
      return scan_format("%s%s.%s%s%s", lead, route->module, route->name, colon, route->note);
  }
  return scan_format("no replacement%s%s", symbol->routes_count && *symbol->routes[0].note ? ": " : "",
                     symbol->routes_count ? symbol->routes[0].note : "");
}

/* " (stage warn, served until 2027-01-01)" */
char *audit_stage(const struct catalog_symbol *symbol) {
  return scan_format(" (stage %s%s%s)", symbol->stage, symbol->stage_end ? ", served until " : "",
                     symbol->stage_end ? symbol->stage_end : "");
}

/* "sglang-kernel; sgl-kernel 0.3.21 is there too" */
static char *who(const struct audit_kernels *kernels, bool installed) {
  const char *where = installed ? "" : ", not installed but in an archive";
  if (!kernels->other_version)
    return scan_format("%s%s", kernels->distribution, where);
  return scan_format("%s%s; %s %s is there too", kernels->distribution, where, kernels->other_distribution,
                     kernels->other_version);
}

void audit_choose_kernel(struct audit_run *run, const char *kernel) {
  const struct catalog_library *library = &run->context->catalog->library;
  bool installed = run->kernels.version != NULL;
  const struct audit_kernels *kernels = installed ? &run->kernels : &run->packed_kernels;
  run->environment = !kernel;
  run->kernel_there = kernels->version != NULL;
  run->torch = run->torch ? run->torch : run->packed_torch;
  if (kernel) {
    run->kernel = kernel;
    run->kernel_from = "--kernel";
  } else if (kernels->version) {
    run->kernel = kernels->version;
    run->kernel_from = run->text = who(kernels, installed);
  } else {
    run->kernel = library->releases[library->releases_count - 1];
    run->kernel_from = "the newest release of the catalog; no kernel wheel was found";
  }
}
