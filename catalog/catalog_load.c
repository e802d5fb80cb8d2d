/* YAML to struct catalog. The schema tables below are the whole grammar; catalog/schema.md explains the fields. Unknown
 * keys, wrong types and unknown enum words are errors with the line of the mapping they are in. */
#include "catalog/catalog.h"
#include "catalog/catalog_private.h"
#include "catalog/yaml.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUIRED CYAML_FLAG_DEFAULT
#define OPTIONAL CYAML_FLAG_OPTIONAL
#define TEXT(type, key, flags) CYAML_FIELD_STRING_PTR(#key, (flags), struct type, key, 0, CYAML_UNLIMITED)
#define LIST(type, key, entry, flags)                                                                                  \
  CYAML_FIELD_SEQUENCE(#key, CYAML_FLAG_POINTER | (flags), struct type, key, &(entry), 0, CYAML_UNLIMITED)
#define WORD(type, key, words, flags)                                                                                  \
  CYAML_FIELD_ENUM(#key, CYAML_FLAG_STRICT | (flags), struct type, key, words, CYAML_ARRAY_LEN(words))

static const cyaml_strval_t status_words[] = {
    {"removed", CATALOG_REMOVED},
    {"planned", CATALOG_PLANNED},
    {"renamed", CATALOG_RENAMED},
    {"signature-changed", CATALOG_SIGNATURE_CHANGED},
};
static const cyaml_strval_t layer_words[] = {
    {"python", CATALOG_LAYER_PYTHON},
    {"operator", CATALOG_LAYER_OPERATOR},
    {"cxx", CATALOG_LAYER_CXX},
    {"sources", CATALOG_LAYER_SOURCES},
};
static const cyaml_strval_t platform_words[] = {
    {"cuda", CATALOG_CUDA}, {"musa", CATALOG_MUSA}, {"rocm", CATALOG_ROCM}, {"xpu", CATALOG_XPU}, {"cpu", CATALOG_CPU},
};
static const cyaml_strval_t route_words[] = {
    {"jit", CATALOG_ROUTE_JIT},
    {"sglang", CATALOG_ROUTE_SGLANG},
    {"library", CATALOG_ROUTE_LIBRARY},
    {"none", CATALOG_ROUTE_NONE},
};

static const cyaml_strval_t changed_words[] = {
    {"cxx", CATALOG_CHANGED_CXX},       {"distribution", CATALOG_CHANGED_DISTRIBUTION},
    {"module", CATALOG_CHANGED_MODULE}, {"operator", CATALOG_CHANGED_OPERATOR},
    {"python", CATALOG_CHANGED_PYTHON},
};
static const cyaml_strval_t breaks_words[] = {
    {"calls", CATALOG_BREAKS_CALLS},     {"link", CATALOG_BREAKS_LINK},       {"result", CATALOG_BREAKS_RESULT},
    {"silent", CATALOG_BREAKS_SILENT},   {"default", CATALOG_BREAKS_DEFAULT}, {"import", CATALOG_BREAKS_IMPORT},
    {"nothing", CATALOG_BREAKS_NOTHING},
};

/* Words, because libcyaml's own booleans take every text that is not "false" for true. */
static const cyaml_strval_t truth_words[] = {{"false", false}, {"true", true}};

static const cyaml_schema_value_t string_entry = {CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char *, 0, CYAML_UNLIMITED)};

static const cyaml_schema_value_t platform_entry = {
    CYAML_VALUE_ENUM(CYAML_FLAG_STRICT, enum catalog_platform, platform_words, CYAML_ARRAY_LEN(platform_words))};

static const cyaml_schema_field_t removal_fields[] = {
    WORD(catalog_removal, layer, layer_words, REQUIRED),
    WORD(catalog_removal, platform, platform_words, REQUIRED),
    TEXT(catalog_removal, last_with, OPTIONAL),
    TEXT(catalog_removal, first_without, OPTIONAL),
    TEXT(catalog_removal, change, OPTIONAL),
    TEXT(catalog_removal, commit, OPTIONAL),
    TEXT(catalog_removal, date, OPTIONAL),
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t removal_entry = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct catalog_removal, removal_fields)};

static const cyaml_schema_field_t argument_fields[] = {
    TEXT(catalog_argument, from, REQUIRED),
    TEXT(catalog_argument, to, REQUIRED),
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t argument_entry = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct catalog_argument, argument_fields)};

static const cyaml_schema_field_t limits_fields[] = {
    CYAML_FIELD_UINT("tokens", OPTIONAL, struct catalog_limits, tokens),
    CYAML_FIELD_UINT("k_multiple", OPTIONAL, struct catalog_limits, k_multiple),
    CYAML_FIELD_UINT("n_multiple", OPTIONAL, struct catalog_limits, n_multiple),
    CYAML_FIELD_UINT("n_most", OPTIONAL, struct catalog_limits, n_most),
    CYAML_FIELD_UINT("sm_least", OPTIONAL, struct catalog_limits, sm_least),
    CYAML_FIELD_END,
};

static const cyaml_schema_field_t route_fields[] = {
    WORD(catalog_route, kind, route_words, REQUIRED),
    LIST(catalog_route, platforms, platform_entry, OPTIONAL),
    TEXT(catalog_route, module, OPTIONAL),
    TEXT(catalog_route, name, OPTIONAL),
    TEXT(catalog_route, from, OPTIONAL),
    TEXT(catalog_route, until, OPTIONAL),
    WORD(catalog_route, python, truth_words, OPTIONAL),
    WORD(catalog_route, cxx, truth_words, OPTIONAL),
    LIST(catalog_route, arguments, argument_entry, OPTIONAL),
    CYAML_FIELD_MAPPING("limits", OPTIONAL, struct catalog_route, limits, limits_fields),
    TEXT(catalog_route, note, OPTIONAL),
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t route_entry = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct catalog_route, route_fields)};

static const cyaml_schema_field_t python_fields[] = {
    TEXT(catalog_python, module, REQUIRED),
    TEXT(catalog_python, name, REQUIRED),
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t python_entry = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct catalog_python, python_fields)};

static const cyaml_schema_field_t cxx_fields[] = {
    TEXT(catalog_cxx, name, REQUIRED),
    TEXT(catalog_cxx, scope, OPTIONAL),
    TEXT(catalog_cxx, declaration, REQUIRED),
    TEXT(catalog_cxx, mangled, REQUIRED),
    CYAML_FIELD_UINT("parameters", REQUIRED, struct catalog_cxx, parameters),
    LIST(catalog_cxx, templates, string_entry, OPTIONAL),
    CYAML_FIELD_END,
};

static const cyaml_schema_field_t symbol_fields[] = {
    TEXT(catalog_symbol, id, REQUIRED),
    WORD(catalog_symbol, status, status_words, REQUIRED),
    TEXT(catalog_symbol, family, OPTIONAL),
    TEXT(catalog_symbol, summary, OPTIONAL),
    LIST(catalog_symbol, python, python_entry, OPTIONAL),
    TEXT(catalog_symbol, python_signature, OPTIONAL),
    TEXT(catalog_symbol, op_name, OPTIONAL),
    TEXT(catalog_symbol, op_schema, OPTIONAL),
    CYAML_FIELD_MAPPING("cxx", OPTIONAL, struct catalog_symbol, cxx, cxx_fields),
    TEXT(catalog_symbol, added_in, OPTIONAL),
    LIST(catalog_symbol, removals, removal_entry, OPTIONAL),
    LIST(catalog_symbol, sources, string_entry, OPTIONAL),
    LIST(catalog_symbol, tests, string_entry, OPTIONAL),
    LIST(catalog_symbol, benchmarks, string_entry, OPTIONAL),
    TEXT(catalog_symbol, stage, OPTIONAL),
    TEXT(catalog_symbol, stage_end, OPTIONAL),
    LIST(catalog_symbol, routes, route_entry, OPTIONAL),
    LIST(catalog_symbol, elsewhere, route_entry, OPTIONAL),
    LIST(catalog_symbol, traps, string_entry, OPTIONAL),
    LIST(catalog_symbol, provenance, string_entry, OPTIONAL),
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t symbol_entry = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct catalog_symbol, symbol_fields)};

static const cyaml_schema_field_t change_fields[] = {
    TEXT(catalog_change, id, REQUIRED),
    WORD(catalog_change, what, changed_words, REQUIRED),
    TEXT(catalog_change, name, REQUIRED),
    LIST(catalog_change, modules, string_entry, OPTIONAL),
    LIST(catalog_change, platforms, platform_entry, OPTIONAL),
    LIST(catalog_change, distributions, string_entry, OPTIONAL),
    TEXT(catalog_change, last_with, OPTIONAL),
    TEXT(catalog_change, release, OPTIONAL),
    TEXT(catalog_change, change, OPTIONAL),
    TEXT(catalog_change, date, OPTIONAL),
    WORD(catalog_change, breaks, breaks_words, REQUIRED),
    TEXT(catalog_change, before, OPTIONAL),
    TEXT(catalog_change, after, OPTIONAL),
    TEXT(catalog_change, mangled_before, OPTIONAL),
    TEXT(catalog_change, mangled_after, OPTIONAL),
    TEXT(catalog_change, when_given, OPTIONAL),
    TEXT(catalog_change, when_left_out, OPTIONAL),
    TEXT(catalog_change, reason, OPTIONAL),
    TEXT(catalog_change, remedy, OPTIONAL),
    LIST(catalog_change, provenance, string_entry, OPTIONAL),
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t change_entry = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct catalog_change, change_fields)};

static const cyaml_schema_field_t sglang_pin_fields[] = {
    TEXT(catalog_sglang_pin, release, REQUIRED),
    TEXT(catalog_sglang_pin, kernel, REQUIRED),
    TEXT(catalog_sglang_pin, torch, OPTIONAL),
    TEXT(catalog_sglang_pin, flashinfer, OPTIONAL),
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t sglang_pin_entry = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct catalog_sglang_pin, sglang_pin_fields)};

static const cyaml_schema_field_t torch_build_fields[] = {
    TEXT(catalog_torch_build, from, REQUIRED),
    TEXT(catalog_torch_build, torch, REQUIRED),
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t torch_build_entry = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct catalog_torch_build, torch_build_fields)};

static const cyaml_schema_field_t wheel_fields[] = {
    TEXT(catalog_wheel, distribution, REQUIRED),
    LIST(catalog_wheel, platforms, platform_entry, REQUIRED),
    TEXT(catalog_wheel, from, OPTIONAL),
    TEXT(catalog_wheel, until, OPTIONAL),
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t wheel_entry = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct catalog_wheel, wheel_fields)};

static const cyaml_schema_field_t library_fields[] = {
    TEXT(catalog_library, package, REQUIRED),
    TEXT(catalog_library, op_namespace, OPTIONAL),
    LIST(catalog_library, distributions, string_entry, OPTIONAL),
    TEXT(catalog_library, cxx_header, OPTIONAL),
    TEXT(catalog_library, extension, OPTIONAL),
    TEXT(catalog_library, source_folder, OPTIONAL),
    LIST(catalog_library, releases, string_entry, REQUIRED),
    LIST(catalog_library, sglang_releases, string_entry, OPTIONAL),
    LIST(catalog_library, sglang_pins, sglang_pin_entry, OPTIONAL),
    LIST(catalog_library, torch_builds, torch_build_entry, OPTIONAL),
    LIST(catalog_library, wheels, wheel_entry, OPTIONAL),
    CYAML_FIELD_END,
};

static const cyaml_schema_field_t catalog_fields[] = {
    CYAML_FIELD_MAPPING("library", REQUIRED, struct catalog, library, library_fields),
    LIST(catalog, symbols, symbol_entry, REQUIRED),
    LIST(catalog, changes, change_entry, OPTIONAL),
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t catalog_schema = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct catalog, catalog_fields)};

/* --- strings are never NULL -----------------------------------------------------------------------------------------
 */

static bool fill(const char **text) {
  if (!*text)
    *text = calloc(1, 1); /* freed by cyaml_free like every other string */
  return *text != NULL;
}

static bool fill_routes(const struct catalog_route *routes, unsigned count) {
  bool ok = true;
  for (unsigned i = 0; ok && i < count; i++) {
    struct catalog_route *route = (struct catalog_route *)&routes[i];
    ok = fill(&route->module) && fill(&route->name) && fill(&route->note);
  }
  return ok;
}

static bool fill_symbol(struct catalog_symbol *symbol) {
  bool ok = fill(&symbol->family) && fill(&symbol->summary) && fill(&symbol->python_signature) &&
            fill(&symbol->op_name) && fill(&symbol->op_schema) && fill(&symbol->cxx.name) && fill(&symbol->cxx.scope) &&
            fill(&symbol->cxx.declaration) && fill(&symbol->cxx.mangled) && fill(&symbol->added_in) &&
            fill(&symbol->stage);
  for (unsigned i = 0; ok && i < symbol->removals_count; i++) {
    struct catalog_removal *removal = (struct catalog_removal *)&symbol->removals[i];
    ok = fill(&removal->last_with) && fill(&removal->change) && fill(&removal->date);
  }
  return ok && fill_routes(symbol->routes, symbol->routes_count) &&
         fill_routes(symbol->elsewhere, symbol->elsewhere_count);
}

static bool fill_change(struct catalog_change *change) {
  return fill(&change->release) && fill(&change->before) && fill(&change->after) && fill(&change->mangled_before) &&
         fill(&change->mangled_after) && fill(&change->reason) && fill(&change->remedy);
}

static bool fill_catalog(struct catalog *catalog) {
  bool ok = fill(&catalog->library.op_namespace) && fill(&catalog->library.cxx_header) &&
            fill(&catalog->library.extension) && fill(&catalog->library.source_folder);
  for (unsigned i = 0; ok && i < catalog->library.sglang_pins_count; i++) {
    struct catalog_sglang_pin *pin = (struct catalog_sglang_pin *)&catalog->library.sglang_pins[i];
    ok = fill(&pin->torch) && fill(&pin->flashinfer);
  }
  for (unsigned i = 0; ok && i < catalog->symbols_count; i++)
    ok = fill_symbol((struct catalog_symbol *)&catalog->symbols[i]);
  for (unsigned i = 0; ok && i < catalog->changes_count; i++)
    ok = fill_change((struct catalog_change *)&catalog->changes[i]);
  return ok;
}

static int by_id(const void *a, const void *b) {
  return strcmp(((const struct catalog_symbol *)a)->id, ((const struct catalog_symbol *)b)->id);
}

static int by_change_id(const void *a, const void *b) {
  return strcmp(((const struct catalog_change *)a)->id, ((const struct catalog_change *)b)->id);
}

/* --- public ---------------------------------------------------------------------------------------------------------
 */

char *catalog_read_file(const char *path, size_t *size) {
  FILE *file = fopen(path, "rbe");
  if (!file)
    return NULL;
  char *text = NULL;
  size_t used = 0, capacity = 0, got;
  do {
    if (capacity - used < 2) {
      capacity = capacity ? 2 * capacity : 1 << 16;
      char *larger = realloc(text, capacity);
      if (!larger)
        break;
      text = larger;
    }
    got = fread(text + used, 1, capacity - used - 1, file);
    used += got;
  } while (got);
  int error = capacity - used < 2 ? ENOMEM : ferror(file) ? errno : 0;
  fclose(file);
  if (error) {
    free(text);
    errno = error;
    return NULL;
  }
  text[used] = '\0';
  *size = used;
  return text;
}

struct catalog *catalog_load(const char *path, char *message, size_t message_size) {
  size_t size;
  char *text = catalog_read_file(path, &size);
  if (!text) {
    snprintf(message, message_size, "%s: cannot read: %s", path, strerror(errno));
    return NULL;
  }
  struct catalog *catalog = NULL;
  if (!yaml_load(path, text, size, &catalog_schema, (void **)&catalog, message, message_size)) {
    catalog = NULL;
  } else if (!catalog) {
    snprintf(message, message_size, "%s: the file holds no catalog", path);
  } else if (!fill_catalog(catalog)) {
    snprintf(message, message_size, "%s: out of memory", path);
    catalog_free(catalog);
    catalog = NULL;
  } else { /* catalog_find wants them sorted; the linter looks at the order in the file */
    if (catalog->symbols_count)
      qsort((void *)catalog->symbols, catalog->symbols_count, sizeof catalog->symbols[0], by_id);
    if (catalog->changes_count)
      qsort((void *)catalog->changes, catalog->changes_count, sizeof catalog->changes[0], by_change_id);
  }
  free(text);
  return catalog;
}

void catalog_free(struct catalog *catalog) {
  yaml_free(&catalog_schema, catalog);
}
