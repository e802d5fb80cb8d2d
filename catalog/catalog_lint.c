/* Proves a catalog: what the loader cannot see, because it needs more than one field. Each check is a function below;
 * tests/catalog/data/lint has a broken catalog for each message. The file is parsed once more, with libyaml alone, for
 * the line numbers. */
#include "catalog/catalog_private.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

struct lint {
  const struct catalog *catalog;
  const char *path;
  yaml_document_t document;
  catalog_report *report;
  void *user;
  unsigned faults;
  /* The row that is looked at. */
  const struct catalog_symbol *symbol;
  yaml_node_t *row;
};

/* --- places ---------------------------------------------------------------------------------------------------------
 */

/* The value of a key; the mapping itself when it has no such key, so that a missing field is reported at its row. */
static yaml_node_t *value_of(struct lint *lint, yaml_node_t *node, const char *key) {
  if (node && node->type == YAML_MAPPING_NODE)
    for (yaml_node_pair_t *pair = node->data.mapping.pairs.start; pair < node->data.mapping.pairs.top; pair++) {
      yaml_node_t *name = yaml_document_get_node(&lint->document, pair->key);
      if (name->type == YAML_SCALAR_NODE && strcmp((const char *)name->data.scalar.value, key) == 0)
        return yaml_document_get_node(&lint->document, pair->value);
    }
  return node;
}

static yaml_node_t *item_of(struct lint *lint, yaml_node_t *node, unsigned index) {
  if (node && node->type == YAML_SEQUENCE_NODE &&
      index < (size_t)(node->data.sequence.items.top - node->data.sequence.items.start))
    return yaml_document_get_node(&lint->document, node->data.sequence.items.start[index]);
  return node;
}

static yaml_node_t *field_of(struct lint *lint, const char *key) {
  return value_of(lint, lint->row, key);
}

static yaml_node_t *entry_of(struct lint *lint, const char *list, unsigned index) {
  return item_of(lint, value_of(lint, lint->row, list), index);
}

__attribute__((format(printf, 3, 4))) static void fault(struct lint *lint, yaml_node_t *place, const char *format,
                                                        ...) {
  char what[800], line[1200];
  bool named = lint->symbol && lint->symbol->id[0];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(what, sizeof what, format, arguments);
  va_end(arguments);
  snprintf(line, sizeof line, "%s:%zu: %s%s%s", lint->path, place ? place->start_mark.line + 1 : 1,
           named ? lint->symbol->id : "", named ? ": " : "", what);
  lint->report(lint->user, line);
  lint->faults++;
}

/* --- small languages ------------------------------------------------------------------------------------------------
 */

static bool is_word(char c) {
  return isalnum((unsigned char)c) || c == '_';
}

static bool is_identifier(const char *text) {
  size_t length = 0;
  while (is_word(text[length]))
    length++;
  return length && !text[length] && !isdigit((unsigned char)text[0]);
}

static bool is_dotted_name(const char *text) {
  for (;;) {
    size_t length = 0;
    while (is_word(text[length]))
      length++;
    if (!length || isdigit((unsigned char)text[0]))
      return false;
    if (!text[length])
      return true;
    if (text[length] != '.')
      return false;
    text += length + 1;
  }
}

static bool is_date(const char *text) {
  static const int days[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  for (int i = 0; i < 10; i++)
    if (i == 4 || i == 7 ? text[i] != '-' : !isdigit((unsigned char)text[i]))
      return false;
  int year = atoi(text), month = atoi(text + 5), day = atoi(text + 8);
  bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  return !text[10] && year >= 1970 && month >= 1 && month <= 12 && day >= 1 && day <= days[month - 1] &&
         (month != 2 || day < 29 || leap);
}

/* The parameter names of a signature, as slices of it. */
struct names {
  const char *name[100];
  int length[100];
  unsigned count;
};

static int find_name(const struct names *names, const char *name) {
  for (unsigned i = 0; i < names->count; i++)
    if ((size_t)names->length[i] == strlen(name) && strncmp(names->name[i], name, strlen(name)) == 0)
      return (int)i;
  return -1;
}

/* Where the parameter that begins at `at` ends: at the next comma or closing bracket outside all brackets and quotes.
 */
static const char *parameter_end(const char *at) {
  int depth = 0;
  char quote = '\0';
  for (; *at; at++) {
    if (quote) {
      quote = *at == quote ? '\0' : quote;
    } else if (*at == '\'' || *at == '"') {
      quote = *at;
    } else if (strchr("([{", *at)) {
      depth++;
    } else if (depth && strchr(")]}", *at)) {
      depth--;
    } else if (!depth && (*at == ',' || *at == ')')) {
      break;
    }
  }
  return at;
}

/* "(a, b: T = x, *, c) -> T" */
static bool read_signature(const char *text, struct names *names) {
  names->count = 0;
  if (*text++ != '(')
    return false;
  while (isspace((unsigned char)*text))
    text++;
  while (*text != ')') {
    const char *end = parameter_end(text);
    int length = 0;
    while (is_word(text[length]))
      length++;
    if (length && !isdigit((unsigned char)text[0]) && names->count < 100) {
      names->name[names->count] = text;
      names->length[names->count++] = length;
      text += length;
      text += strspn(text, " ");
      if (text != end && *text != ':' && *text != '=')
        return false;
    } else if (strchr("*/", *text) == NULL || !*text) {
      return false; /* neither a parameter nor a bare star or slash */
    }
    if (!*end)
      return false;
    text = end + (*end == ',');
    text += strspn(text, " ");
  }
  text++;
  return !*text || strncmp(text, " -> ", 4) == 0;
}

/* One type of an operator schema: "Tensor(a!)", "Tensor!?", "int[2]?", "ScalarType". Returns what follows, or NULL. */
static const char *schema_type(const char *at) {
  static const char *const types[] = {"Tensor",     "int",    "float",  "bool",   "str",          "Scalar",
                                      "ScalarType", "Device", "Layout", "SymInt", "MemoryFormat", "Generator"};
  size_t length = 0;
  while (is_word(at[length]))
    length++;
  bool known = false;
  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
    known = known || (strlen(types[i]) == length && strncmp(at, types[i], length) == 0);
  if (!known)
    return NULL;
  at += length;
  for (;;) {
    if (*at == '!' || *at == '?') {
      at++;
    } else if (*at == '(' || *at == '[') {
      at += strcspn(at, *at == '(' ? ")" : "]");
      if (!*at++)
        return NULL;
    } else {
      return at;
    }
  }
}

static const char *skip_spaces(const char *at) {
  return at + strspn(at, " ");
}

/* "name(Tensor! output, int k=1) -> (Tensor, Tensor)" as torch reads it. NULL when it is right, else what is wrong. */
static const char *read_schema(const char *text, const char *name, struct names *names) {
  names->count = 0;
  size_t length = strlen(name);
  if (strncmp(text, name, length) != 0 || text[length] != '(')
    return "its name is not op_name";
  const char *at = skip_spaces(text + length + 1);
  while (*at != ')') {
    if (*at == '*') { /* what follows is keyword-only */
      at++;
    } else {
      at = schema_type(at);
      if (!at)
        return "it has an unknown type";
      at = skip_spaces(at);
      int word = 0;
      while (is_word(at[word]))
        word++;
      if (!word || names->count == 100)
        return "a parameter has no name";
      names->name[names->count] = at;
      names->length[names->count++] = word;
      at += word;
      if (*at == '=')
        at = parameter_end(at);
    }
    at = skip_spaces(at);
    if (*at == ',')
      at = skip_spaces(at + 1);
    else if (*at != ')')
      return "',' or ')' is missing after a parameter";
  }
  at = skip_spaces(at + 1);
  if (strncmp(at, "->", 2) != 0)
    return "'->' is missing";
  at = skip_spaces(at + 2);
  bool list = *at == '(';
  if (list)
    at = skip_spaces(at + 1);
  while (!list || *at != ')') {
    at = schema_type(at);
    if (!at)
      return "it returns an unknown type";
    at = skip_spaces(at);
    if (!list)
      return *at ? "something follows the returned type" : NULL;
    if (*at == ',')
      at = skip_spaces(at + 1);
    else if (*at != ')')
      return "',' or ')' is missing in what it returns";
  }
  return at[1] ? "something follows the returned types" : NULL;
}

/* --- releases -------------------------------------------------------------------------------------------------------
 */

static int index_of(const char *const *list, unsigned count, const char *text) {
  for (unsigned i = 0; i < count; i++)
    if (strcmp(list[i], text) == 0)
      return (int)i;
  return -1;
}

static int kernel_release(const struct lint *lint, const char *release) {
  return index_of(lint->catalog->library.releases, lint->catalog->library.releases_count, release);
}

static int sglang_release(const struct lint *lint, const char *release) {
  return index_of(lint->catalog->library.sglang_releases, lint->catalog->library.sglang_releases_count, release);
}

static void check_release_list(struct lint *lint, const char *key, const char *const *releases, unsigned count) {
  yaml_node_t *list = value_of(lint, value_of(lint, yaml_document_get_root_node(&lint->document), "library"), key);
  for (unsigned i = 0; i < count; i++) {
    if (!catalog_version_valid(releases[i]))
      fault(lint, item_of(lint, list, i), "%s: '%s' is no release number", key, releases[i]);
    else if (i && catalog_version_compare(releases[i - 1], releases[i]) >= 0)
      fault(lint, item_of(lint, list, i), "%s: %s must not stand behind %s: oldest first", key, releases[i],
            releases[i - 1]);
  }
}

static void check_sglang_pins(struct lint *lint, yaml_node_t *list) {
  const struct catalog_library *library = &lint->catalog->library;
  for (unsigned i = 0; i < library->sglang_pins_count; i++) {
    const struct catalog_sglang_pin *pin = &library->sglang_pins[i];
    yaml_node_t *place = item_of(lint, list, i);
    if (sglang_release(lint, pin->release) < 0)
      fault(lint, place, "sglang_pins: no release '%s' in library.sglang_releases", pin->release);
    else if (i && catalog_version_compare(library->sglang_pins[i - 1].release, pin->release) >= 0)
      fault(lint, place, "sglang_pins: %s must not stand behind %s: oldest first", pin->release,
            library->sglang_pins[i - 1].release);
    if (kernel_release(lint, pin->kernel) < 0)
      fault(lint, place, "sglang_pins: no release '%s' in library.releases", pin->kernel);
    if (*pin->torch && !catalog_version_valid(pin->torch))
      fault(lint, value_of(lint, place, "torch"), "sglang_pins: '%s' is no release number", pin->torch);
    if (*pin->flashinfer && !catalog_version_valid(pin->flashinfer))
      fault(lint, value_of(lint, place, "flashinfer"), "sglang_pins: '%s' is no release number", pin->flashinfer);
  }
}

static void check_torch_builds(struct lint *lint, yaml_node_t *list) {
  const struct catalog_library *library = &lint->catalog->library;
  for (unsigned i = 0; i < library->torch_builds_count; i++) {
    const struct catalog_torch_build *build = &library->torch_builds[i];
    yaml_node_t *place = item_of(lint, list, i);
    if (kernel_release(lint, build->from) < 0)
      fault(lint, place, "torch_builds: no release '%s' in library.releases", build->from);
    else if (i && kernel_release(lint, library->torch_builds[i - 1].from) >= kernel_release(lint, build->from))
      fault(lint, place, "torch_builds: %s must not stand behind %s: oldest first", build->from,
            library->torch_builds[i - 1].from);
    if (!catalog_version_valid(build->torch))
      fault(lint, place, "torch_builds: '%s' is no release number", build->torch);
  }
}

static void check_wheels(struct lint *lint, yaml_node_t *list) {
  const struct catalog_library *library = &lint->catalog->library;
  for (unsigned i = 0; i < library->wheels_count; i++) {
    const struct catalog_wheel *wheel = &library->wheels[i];
    yaml_node_t *place = item_of(lint, list, i);
    if (index_of(library->distributions, library->distributions_count, wheel->distribution) < 0)
      fault(lint, place, "wheels: no '%s' in library.distributions", wheel->distribution);
    if (!wheel->platforms_count)
      fault(lint, place, "wheels: %s is for no platform", wheel->distribution);
    if (wheel->from && kernel_release(lint, wheel->from) < 0)
      fault(lint, place, "wheels: no release '%s' in library.releases", wheel->from);
    if (wheel->until && kernel_release(lint, wheel->until) < 0)
      fault(lint, place, "wheels: no release '%s' in library.releases", wheel->until);
    if (wheel->from && wheel->until && catalog_version_compare(wheel->from, wheel->until) >= 0)
      fault(lint, place, "wheels: until %s is not after from %s", wheel->until, wheel->from);
  }
  for (unsigned i = 0; library->wheels_count && i < library->distributions_count; i++) {
    bool known = false;
    for (unsigned k = 0; k < library->wheels_count; k++)
      known |= strcmp(library->wheels[k].distribution, library->distributions[i]) == 0;
    if (!known)
      fault(lint, list, "wheels: nothing says which platforms %s is for", library->distributions[i]);
  }
}

static void check_library(struct lint *lint) {
  const struct catalog_library *library = &lint->catalog->library;
  yaml_node_t *place = value_of(lint, yaml_document_get_root_node(&lint->document), "library");
  if (!is_identifier(library->package))
    fault(lint, value_of(lint, place, "package"), "package: '%s' is no Python package", library->package);
  if (!library->releases_count)
    fault(lint, value_of(lint, place, "releases"), "releases: at least one is needed");
  check_release_list(lint, "releases", library->releases, library->releases_count);
  check_release_list(lint, "sglang_releases", library->sglang_releases, library->sglang_releases_count);
  check_sglang_pins(lint, value_of(lint, place, "sglang_pins"));
  check_torch_builds(lint, value_of(lint, place, "torch_builds"));
  check_wheels(lint, value_of(lint, place, "wheels"));
}

/* --- one row --------------------------------------------------------------------------------------------------------
 */

static void need(struct lint *lint, const char *key, const char *text) {
  if (!text[0])
    fault(lint, field_of(lint, key), "%s is missing", key);
}

static void check_required(struct lint *lint) {
  const struct catalog_symbol *symbol = lint->symbol;
  if (!symbol->python_count && !symbol->op_name[0] && !symbol->cxx.name[0])
    fault(lint, lint->row, "the row names nothing: python, op_name or cxx is needed");
  need(lint, "id", symbol->id);
  need(lint, "family", symbol->family);
  need(lint, "summary", symbol->summary);
  need(lint, "stage", symbol->stage);
  if (symbol->status != CATALOG_PLANNED)
    need(lint, "added_in", symbol->added_in);
  if (!symbol->provenance_count || !symbol->provenance[0][0])
    fault(lint, lint->row, "provenance is missing");
  if (!symbol->routes_count)
    fault(lint, lint->row, "routes is missing: write a route of kind none with a note if there is no replacement");
}

static void check_python(struct lint *lint) {
  const struct catalog_symbol *symbol = lint->symbol;
  const char *package = lint->catalog->library.package;
  for (unsigned i = 0; i < symbol->python_count; i++) {
    const struct catalog_python *python = &symbol->python[i];
    yaml_node_t *place = entry_of(lint, "python", i);
    size_t length = strlen(package);
    if (!is_dotted_name(python->module) || strncmp(python->module, package, length) != 0 ||
        (python->module[length] && python->module[length] != '.'))
      fault(lint, place, "'%s' is no module of the package %s", python->module, package);
    if (!is_identifier(python->name))
      fault(lint, place, "'%s' is no Python name", python->name);
  }
  struct names names;
  if (symbol->python_count && !symbol->python_signature[0])
    fault(lint, lint->row, "python_signature is missing");
  else if (symbol->python_signature[0] && !read_signature(symbol->python_signature, &names))
    fault(lint, field_of(lint, "python_signature"), "python_signature is not of the form '(a: T, b: T = x) -> T'");
}

static void check_operator(struct lint *lint) {
  const struct catalog_symbol *symbol = lint->symbol;
  struct names names;
  if (!symbol->op_name[0] != !symbol->op_schema[0])
    fault(lint, lint->row, "op_name and op_schema are needed together");
  else if (symbol->op_name[0] && !is_identifier(symbol->op_name))
    fault(lint, field_of(lint, "op_name"), "'%s' is no operator name", symbol->op_name);
  else if (symbol->op_name[0]) {
    const char *wrong = read_schema(symbol->op_schema, symbol->op_name, &names);
    if (wrong)
      fault(lint, field_of(lint, "op_schema"), "op_schema: %s", wrong);
  }
}

static void check_cxx(struct lint *lint) {
  const struct catalog_cxx *cxx = &lint->symbol->cxx;
  if (!cxx->name[0])
    return;
  yaml_node_t *place = field_of(lint, "cxx");
  char mangled[4096], error[300], start[600];
  unsigned parameters = 0;
  if (catalog_mangle(cxx, mangled, sizeof mangled, &parameters, error, sizeof error)) {
    if (strcmp(mangled, cxx->mangled) != 0)
      fault(lint, value_of(lint, place, "mangled"), "mangled: the declaration gives %s, not %s", mangled, cxx->mangled);
    if (parameters != cxx->parameters)
      fault(lint, value_of(lint, place, "parameters"), "parameters: the declaration has %u, not %u", parameters,
            cxx->parameters);
  } else if (strncmp(error, "the linter ", 11) == 0) { /* a type it does not know: at least the name must be right */
    snprintf(start, sizeof start, "%zu%s%s", strlen(cxx->name), cxx->name, cxx->scope[0] ? "E" : "");
    if (strncmp(cxx->mangled, cxx->scope[0] ? "_ZN" : "_Z", cxx->scope[0] ? 3 : 2) != 0 || !strstr(cxx->mangled, start))
      fault(lint, value_of(lint, place, "mangled"), "mangled: %s is no name of %s", cxx->mangled, cxx->name);
  } else {
    fault(lint, value_of(lint, place, "declaration"), "declaration: %s", error);
  }
  for (unsigned i = 0; i < cxx->templates_count; i++)
    if (!is_identifier(cxx->templates[i]))
      fault(lint, item_of(lint, value_of(lint, place, "templates"), i), "templates: '%s' is no name",
            cxx->templates[i]);
}

static bool has_layer(const struct catalog_symbol *symbol, enum catalog_layer layer) {
  const bool has[] = {symbol->python_count > 0, symbol->op_name[0] != '\0', symbol->cxx.name[0] != '\0',
                      symbol->sources_count > 0};
  return has[layer];
}

static void check_removal(struct lint *lint, unsigned index) {
  const struct catalog_symbol *symbol = lint->symbol;
  const struct catalog_removal *removal = &symbol->removals[index];
  yaml_node_t *place = entry_of(lint, "removals", index);
  const char *layer = catalog_layer_word(removal->layer), *platform = catalog_platform_word(removal->platform);
  if (!has_layer(symbol, removal->layer))
    fault(lint, place, "a removal of layer %s, but the row has none", layer);
  for (unsigned i = 0; i < index; i++)
    if (symbol->removals[i].layer == removal->layer && symbol->removals[i].platform == removal->platform)
      fault(lint, place, "layer %s on %s is there twice", layer, platform);
  if (!removal->first_without) { /* still there on this platform */
    if (removal->last_with[0] || removal->change[0] || removal->commit || removal->date[0])
      fault(lint, place, "%s on %s: first_without is missing; without it the row says 'still there' and nothing else",
            layer, platform);
    return;
  }
  if (symbol->status == CATALOG_PLANNED)
    fault(lint, place, "a planned row cannot have first_without: make its status removed");
  int last = kernel_release(lint, removal->last_with), first = kernel_release(lint, removal->first_without);
  if (last < 0)
    fault(lint, value_of(lint, place, "last_with"), "last_with: no release '%s' in library.releases",
          removal->last_with);
  if (first < 0)
    fault(lint, value_of(lint, place, "first_without"), "first_without: no release '%s' in library.releases",
          removal->first_without);
  if (last >= 0 && first >= 0 && first != last + 1)
    fault(lint, value_of(lint, place, "first_without"), "first_without: %s is not the release after %s",
          removal->first_without, removal->last_with);
  int added = kernel_release(lint, symbol->added_in);
  if (last >= 0 && added > last)
    fault(lint, value_of(lint, place, "last_with"), "last_with: %s is older than added_in %s", removal->last_with,
          symbol->added_in);
  if (removal->change[0] != '#' || strspn(removal->change + 1, "0123456789") != strlen(removal->change + 1) ||
      !removal->change[1])
    fault(lint, value_of(lint, place, "change"), "change: '%s' is not of the form '#123'", removal->change);
  if (removal->commit && (strlen(removal->commit) < 7 || strlen(removal->commit) > 40 ||
                          removal->commit[strspn(removal->commit, "0123456789abcdef")]))
    fault(lint, value_of(lint, place, "commit"), "commit: '%s' is no commit hash", removal->commit);
  if (!is_date(removal->date))
    fault(lint, value_of(lint, place, "date"), "date: '%s' is no date of the form YYYY-MM-DD", removal->date);
}

static void check_removals(struct lint *lint) {
  const struct catalog_symbol *symbol = lint->symbol;
  bool gone = false, on_cuda[4] = {false};
  for (unsigned i = 0; i < symbol->removals_count; i++) {
    check_removal(lint, i);
    gone = gone || symbol->removals[i].first_without;
    on_cuda[symbol->removals[i].layer] |= symbol->removals[i].platform == CATALOG_CUDA;
  }
  /* The CUDA entry decides for every platform without one of its own (catalog_is_removed): a layer without it would
   * never be found. */
  for (enum catalog_layer layer = CATALOG_LAYER_PYTHON; layer <= CATALOG_LAYER_SOURCES; layer++)
    if (gone && symbol->status == CATALOG_REMOVED && has_layer(symbol, layer) && !on_cuda[layer])
      fault(lint, field_of(lint, "removals"), "layer %s has no entry for cuda", catalog_layer_word(layer));
  if (!gone && (symbol->status == CATALOG_REMOVED || symbol->status == CATALOG_RENAMED))
    fault(lint, field_of(lint, "removals"), "the name is gone, but no removal says from which release on");
  if (symbol->added_in[0] && kernel_release(lint, symbol->added_in) < 0)
    fault(lint, field_of(lint, "added_in"), "added_in: no release '%s' in library.releases", symbol->added_in);
}

static void check_stage(struct lint *lint) {
  static const char *const stages[] = {"silent", "warn", "error", "tombstone"};
  const struct catalog_symbol *symbol = lint->symbol;
  bool served = catalog_jit_route(symbol) != NULL;
  if (symbol->stage[0] && index_of(stages, 4, symbol->stage) < 0)
    fault(lint, field_of(lint, "stage"), "stage: '%s' is none of silent, warn, error, tombstone", symbol->stage);
  else if (symbol->status == CATALOG_PLANNED && strcmp(symbol->stage, "silent") != 0)
    fault(lint, field_of(lint, "stage"), "stage: a planned row is silent");
  else if (symbol->status != CATALOG_PLANNED && symbol->stage[0] && served == (strcmp(symbol->stage, "tombstone") == 0))
    fault(lint, field_of(lint, "stage"),
          served ? "stage: a name with a jit route is no tombstone"
                 : "stage: a name without a jit route is a tombstone");
  if (symbol->stage_end && !is_date(symbol->stage_end))
    fault(lint, field_of(lint, "stage_end"), "stage_end: '%s' is no date of the form YYYY-MM-DD", symbol->stage_end);
}

/* --- routes ---------------------------------------------------------------------------------------------------------
 */

/* The parameters that an argument mapping speaks of: the Python function's, else the operator's. */
static bool old_parameters(const struct catalog_symbol *symbol, struct names *names) {
  if (symbol->python_signature[0])
    return read_signature(symbol->python_signature, names);
  return symbol->op_schema[0] && !read_schema(symbol->op_schema, symbol->op_name, names);
}

static void check_arguments(struct lint *lint, const struct catalog_route *route, yaml_node_t *place) {
  yaml_node_t *list = value_of(lint, place, "arguments");
  struct names names;
  if (!old_parameters(lint->symbol, &names)) {
    if (route->arguments_count)
      fault(lint, list, "arguments: the row has no signature that they could speak of");
    return;
  }
  int last = -1;
  bool same = true;
  for (unsigned i = 0; i < route->arguments_count; i++) {
    const struct catalog_argument *argument = &route->arguments[i];
    int position = find_name(&names, argument->from);
    if (position < 0)
      fault(lint, item_of(lint, list, i), "arguments: the old function has no parameter '%s'", argument->from);
    else if (position <= last)
      fault(lint, item_of(lint, list, i), "arguments: '%s' is not in the order of the old function", argument->from);
    else
      last = position;
    same = same && strcmp(argument->from, argument->to) == 0;
  }
  if (route->arguments_count && route->arguments_count != names.count)
    fault(lint, list, "arguments: %u of the %u parameters of the old function", route->arguments_count, names.count);
  if (route->python && (!same || route->arguments_count != names.count))
    fault(lint, place, "python: true needs every argument to keep its name");
}

static bool is_for(const struct catalog_route *route, enum catalog_platform platform) {
  for (unsigned i = 0; i < route->platforms_count; i++)
    if (route->platforms[i] == platform)
      return true;
  return !route->platforms_count;
}

/* routes are what holds on CUDA, elsewhere what holds on other platforms. */
static void check_platforms(struct lint *lint, const struct catalog_route *route, yaml_node_t *place, bool elsewhere) {
  if (!elsewhere && !is_for(route, CATALOG_CUDA))
    fault(lint, place, "platforms: a route that does not hold on cuda belongs to elsewhere");
  if (elsewhere && is_for(route, CATALOG_CUDA))
    fault(lint, place, "elsewhere is for routes of other platforms than cuda: say which in platforms");
  if (elsewhere && (route->kind == CATALOG_ROUTE_JIT || route->python || route->cxx))
    fault(lint, place, "elsewhere has no kernel of this project, and nothing that may be rewritten");
}

static void check_route(struct lint *lint, bool elsewhere, unsigned index) {
  const struct catalog_symbol *symbol = lint->symbol;
  const struct catalog_route *routes = elsewhere ? symbol->elsewhere : symbol->routes, *route = &routes[index];
  unsigned count = elsewhere ? symbol->elsewhere_count : symbol->routes_count;
  yaml_node_t *place = entry_of(lint, elsewhere ? "elsewhere" : "routes", index);
  static const struct catalog_limits none;
  if (route->kind == CATALOG_ROUTE_NONE) {
    if (!route->note[0])
      fault(lint, place, "a route of kind none needs a note that says why");
    if (route->module[0] || route->name[0] || route->arguments_count ||
        memcmp(&route->limits, &none, sizeof none) != 0 || (!elsewhere && count > 1))
      fault(lint, place, "a route of kind none stands alone and has only a note");
  } else if (!is_dotted_name(route->module) || !is_identifier(route->name)) {
    fault(lint, place, "a route needs a module and a name");
  }
  if (route->kind == CATALOG_ROUTE_SGLANG) {
    int from = route->from ? sglang_release(lint, route->from) : -1;
    int until = route->until ? sglang_release(lint, route->until) : -1;
    if (!route->from)
      fault(lint, place, "a route of kind sglang needs from, the first sglang release with it");
    else if (from < 0)
      fault(lint, value_of(lint, place, "from"), "from: no release '%s' in library.sglang_releases", route->from);
    if (route->until && until < 0)
      fault(lint, value_of(lint, place, "until"), "until: no release '%s' in library.sglang_releases", route->until);
    if (from >= 0 && until >= 0 && from >= until)
      fault(lint, value_of(lint, place, "until"), "until: %s is not after from %s", route->until, route->from);
    for (unsigned i = 0; i < index; i++) {
      const struct catalog_route *other = &routes[i];
      bool together = !elsewhere;
      for (unsigned p = 0; p < other->platforms_count; p++)
        together |= is_for(route, other->platforms[p]);
      if (other->kind != CATALOG_ROUTE_SGLANG || !other->from || !route->from || !together)
        continue;
      if ((!other->until || catalog_version_compare(route->from, other->until) < 0) &&
          (!route->until || catalog_version_compare(other->from, route->until) < 0))
        fault(lint, place, "the sglang releases of this route overlap with those of %s.%s", other->module, other->name);
    }
  } else if (route->until || (route->from && route->kind != CATALOG_ROUTE_LIBRARY)) {
    fault(lint, place, "from and until belong to routes of kind sglang");
  }
  if (route->cxx && (route->kind != CATALOG_ROUTE_JIT || !symbol->cxx.name[0]))
    fault(lint, place, "cxx: true belongs to a route of kind jit in a row with a C++ function");
  check_platforms(lint, route, place, elsewhere);
  if (route->kind != CATALOG_ROUTE_NONE)
    check_arguments(lint, route, place);
}

/* The catalog's own row that a route leads to, and the layer that it uses there; NULL when it leads out of the catalog.
 */
static const struct catalog_symbol *route_target(const struct lint *lint, const struct catalog_route *route,
                                                 enum catalog_layer *layer) {
  const struct catalog *catalog = lint->catalog;
  char ops[200];
  snprintf(ops, sizeof ops, "torch.ops.%s", catalog->library.op_namespace);
  for (unsigned i = 0; i < catalog->symbols_count; i++) {
    const struct catalog_symbol *symbol = &catalog->symbols[i];
    *layer = CATALOG_LAYER_OPERATOR;
    if (strcmp(route->module, ops) == 0 && symbol->op_name[0] && strcmp(route->name, symbol->op_name) == 0)
      return symbol;
    *layer = CATALOG_LAYER_PYTHON;
    for (unsigned p = 0; p < symbol->python_count; p++)
      if (strcmp(route->module, symbol->python[p].module) == 0 && strcmp(route->name, symbol->python[p].name) == 0)
        return symbol;
  }
  return NULL;
}

/* Does a chain of routes lead from `at` back to the row that is looked at? */
static bool leads_back(const struct lint *lint, const struct catalog_symbol *at, unsigned depth) {
  enum catalog_layer layer;
  if (depth == lint->catalog->symbols_count)
    return false;
  for (unsigned i = 0; i < at->routes_count; i++) {
    const struct catalog_symbol *next = route_target(lint, &at->routes[i], &layer);
    if (next && (next == lint->symbol || leads_back(lint, next, depth + 1)))
      return true;
  }
  return false;
}

static void check_targets(struct lint *lint) {
  const struct catalog_removal *removal = catalog_main_removal(lint->symbol);
  for (unsigned i = 0; i < lint->symbol->routes_count; i++) {
    enum catalog_layer layer;
    const struct catalog_route *route = &lint->symbol->routes[i];
    const struct catalog_symbol *target = route_target(lint, route, &layer);
    if (!target)
      continue;
    if (target == lint->symbol || leads_back(lint, target, 0))
      fault(lint, entry_of(lint, "routes", i), "the route to %s.%s leads back to this row", route->module, route->name);
    else if (removal && removal->first_without &&
             catalog_is_removed(target, layer, CATALOG_CUDA, removal->first_without))
      fault(lint, entry_of(lint, "routes", i), "the replacement %s.%s is itself gone from release %s", route->module,
            route->name, removal->first_without);
  }
}

/* --- the rows together ----------------------------------------------------------------------------------------------
 */

static void check_unique(struct lint *lint, unsigned index) {
  const struct catalog_symbol *symbol = lint->symbol;
  for (unsigned i = 0; i < index; i++) {
    const struct catalog_symbol *other = &lint->catalog->symbols[i];
    if (symbol->op_name[0] && strcmp(symbol->op_name, other->op_name) == 0)
      fault(lint, field_of(lint, "op_name"), "op_name: %s is the operator of %s already", symbol->op_name, other->id);
    if (symbol->cxx.mangled[0] && strcmp(symbol->cxx.mangled, other->cxx.mangled) == 0)
      fault(lint, value_of(lint, field_of(lint, "cxx"), "mangled"), "mangled: it is the function of %s already",
            other->id);
  }
  for (unsigned p = 0; p < symbol->python_count; p++)
    for (unsigned i = 0; i <= index; i++) {
      const struct catalog_symbol *other = &lint->catalog->symbols[i];
      for (unsigned q = 0; q < (i == index ? p : other->python_count); q++)
        if (strcmp(symbol->python[p].module, other->python[q].module) == 0 &&
            strcmp(symbol->python[p].name, other->python[q].name) == 0)
          fault(lint, entry_of(lint, "python", p), "%s.%s belongs to %s already", symbol->python[p].module,
                symbol->python[p].name, other->id);
    }
}

/* A change that was merged later cannot be in an earlier release: releases are cut from one branch. */
static void check_dates(struct lint *lint) {
  for (unsigned r = 0; r < lint->symbol->removals_count; r++) {
    const struct catalog_removal *removal = &lint->symbol->removals[r];
    if (!removal->first_without || !is_date(removal->date))
      continue;
    for (unsigned i = 0; i < lint->catalog->symbols_count; i++)
      for (unsigned o = 0; o < lint->catalog->symbols[i].removals_count; o++) {
        const struct catalog_removal *other = &lint->catalog->symbols[i].removals[o];
        if (other->first_without && is_date(other->date) && strcmp(other->date, removal->date) > 0 &&
            catalog_version_compare(other->first_without, removal->first_without) < 0) {
          fault(lint, value_of(lint, entry_of(lint, "removals", r), "date"),
                "date: %s is before %s, when %s changed %s, but %s is the later release", removal->date, other->date,
                other->change, lint->catalog->symbols[i].id, removal->first_without);
          return;
        }
      }
  }
}

/* The loader has sorted the rows; the file must have them in that order too. */
static void check_order(struct lint *lint, yaml_node_t *rows) {
  const char *last = NULL;
  for (unsigned i = 0; i < lint->catalog->symbols_count; i++) {
    yaml_node_t *id = value_of(lint, item_of(lint, rows, i), "id");
    const char *text = id->type == YAML_SCALAR_NODE ? (const char *)id->data.scalar.value : "";
    if (last && strcmp(last, text) == 0)
      fault(lint, id, "the id %s is there twice", text);
    else if (last && strcmp(last, text) > 0)
      fault(lint, id, "%s must stand before %s: rows are sorted by id", text, last);
    last = text;
  }
}

static yaml_node_t *row_of(struct lint *lint, yaml_node_t *rows, const char *id) {
  for (unsigned i = 0; i < lint->catalog->symbols_count; i++) {
    yaml_node_t *row = item_of(lint, rows, i), *value = value_of(lint, row, "id");
    if (value->type == YAML_SCALAR_NODE && strcmp((const char *)value->data.scalar.value, id) == 0)
      return row;
  }
  return rows;
}

static bool load_document(struct lint *lint) {
  size_t size;
  char *text = catalog_read_file(lint->path, &size);
  yaml_parser_t parser;
  if (!text || !yaml_parser_initialize(&parser)) {
    free(text);
    return false;
  }
  yaml_parser_set_input_string(&parser, (const unsigned char *)text, size);
  bool ok = yaml_parser_load(&parser, &lint->document);
  yaml_document_t second; /* the loader stops behind the first document */
  if (ok && yaml_parser_load(&parser, &second)) {
    if (yaml_document_get_root_node(&second))
      fault(lint, yaml_document_get_root_node(&second), "a second document, which nobody reads");
    yaml_document_delete(&second);
  }
  yaml_parser_delete(&parser);
  free(text);
  return ok;
}

static void change_fault(void *user, const char *key, const char *what) {
  struct lint *lint = user;
  fault(lint, key ? field_of(lint, key) : lint->row, "%s", what);
}

/* As the rows of the symbols: the loader has sorted them, and a fault names the row by its id. */
static void check_changes(struct lint *lint) {
  yaml_node_t *rows = value_of(lint, yaml_document_get_root_node(&lint->document), "changes");
  const char *last = NULL;
  lint->symbol = NULL;
  for (unsigned i = 0; i < lint->catalog->changes_count; i++) {
    yaml_node_t *id = value_of(lint, item_of(lint, rows, i), "id");
    const char *text = id->type == YAML_SCALAR_NODE ? (const char *)id->data.scalar.value : "";
    if (last && strcmp(last, text) >= 0)
      fault(lint, id,
            strcmp(last, text) ? "%s must stand before %s: changes are sorted by id" : "the id %s is there twice", text,
            last);
    last = text;
  }
  for (unsigned i = 0; i < lint->catalog->changes_count; i++) {
    const struct catalog_symbol named = {.id = lint->catalog->changes[i].id};
    lint->symbol = &named;
    for (unsigned r = 0; r < lint->catalog->changes_count; r++) {
      yaml_node_t *row = item_of(lint, rows, r), *id = value_of(lint, row, "id");
      if (id->type == YAML_SCALAR_NODE && strcmp((const char *)id->data.scalar.value, named.id) == 0)
        lint->row = row;
    }
    catalog_lint_change(lint->catalog, i, change_fault, lint);
  }
}

unsigned catalog_lint(const struct catalog *catalog, const char *path, catalog_report *report, void *user) {
  struct lint lint = {.catalog = catalog, .path = path, .report = report, .user = user};
  if (!load_document(&lint)) {
    fault(&lint, NULL, "cannot be read a second time");
    return lint.faults;
  }
  yaml_node_t *rows = value_of(&lint, yaml_document_get_root_node(&lint.document), "symbols");
  check_library(&lint);
  check_order(&lint, rows);
  for (unsigned i = 0; i < catalog->symbols_count; i++) {
    lint.symbol = &catalog->symbols[i];
    lint.row = row_of(&lint, rows, lint.symbol->id);
    check_required(&lint);
    check_python(&lint);
    check_operator(&lint);
    check_cxx(&lint);
    check_removals(&lint);
    check_stage(&lint);
    for (unsigned r = 0; r < lint.symbol->routes_count; r++)
      check_route(&lint, false, r);
    for (unsigned r = 0; r < lint.symbol->elsewhere_count; r++)
      check_route(&lint, true, r);
    check_targets(&lint);
    check_unique(&lint, i);
    check_dates(&lint);
  }
  check_changes(&lint);
  yaml_document_delete(&lint.document);
  return lint.faults;
}
