/* What the doctor has to say: text for people, JSON for programs. */
#include "scanner/doctor.h"
#include "scanner/report.h"

#include <stdlib.h>
#include <string.h>

static const char *level_word(enum doctor_level level) {
  static const char *const words[] = {[DOCTOR_PROBLEM] = "problem", [DOCTOR_WARNING] = "warning", [DOCTOR_FACT] = "ok"};
  return words[level];
}

static const char *provider_word(enum doctor_provider provider) {
  static const char *const words[] = {
      [DOCTOR_NEVER] = "-",       [DOCTOR_KERNEL] = "kernel",       [DOCTOR_SHIM] = "shim",
      [DOCTOR_ROUTE] = "library", [DOCTOR_TOMBSTONE] = "tombstone", [DOCTOR_NOBODY] = "nobody"};
  return words[provider];
}

/* Is there a layer that is not served? */
static bool is_gone(const struct doctor_name *name) {
  for (int layer = 0; layer < DOCTOR_LAYERS; layer++)
    if (name->providers[layer] == DOCTOR_NOBODY || name->providers[layer] == DOCTOR_TOMBSTONE)
      return true;
  return false;
}

/* Without a kernel nobody has anything, which needs no table. */
static bool is_shown(const struct doctor *doctor, const struct doctor_name *name, bool all) {
  return all || ((doctor->kernel_version || doctor->standalone) && is_gone(name));
}

static void print_names(const struct doctor *doctor, bool all) {
  bool first = true;
  for (size_t i = 0; i < doctor->names_count; i++) {
    const struct doctor_name *name = &doctor->names[i];
    if (!is_shown(doctor, name, all))
      continue;
    if (first)
      printf("\n%-44s %-10s %-10s %-10s %s\n", "name", "Python", "operator", "C++", "use instead");
    first = false;
    printf("%-44s", name->symbol->id);
    for (int layer = 0; layer < DOCTOR_LAYERS; layer++)
      printf(" %-10s", provider_word(name->providers[layer]));
    putchar(' ');
    report_plain(stdout, is_gone(name) ? name->instead : name->route ? name->route : "");
    putchar('\n');
  }
}

bool doctor_report_text(const struct doctor *doctor, bool all) {
  static const char *const colours[] = {
      [DOCTOR_PROBLEM] = "\x1b[31m", [DOCTOR_WARNING] = "\x1b[33m", [DOCTOR_FACT] = "\x1b[32m"};
  bool colour = report_colour();
  for (size_t i = 0; i < doctor->facts_count; i++) {
    const struct doctor_fact *fact = &doctor->facts[i];
    printf("%s%-7s%s %s: ", colour ? colours[fact->level] : "", level_word(fact->level), colour ? "\x1b[0m" : "",
           fact->id);
    report_plain(stdout, fact->text);
    if (fact->remedy) {
      fputs("; remedy: ", stdout);
      report_plain(stdout, fact->remedy);
    }
    putchar('\n');
  }
  print_names(doctor, all);
  return true;
}

static json_t *text_value(const char *text) {
  return text ? report_value(text, strlen(text)) : json_null();
}

static json_t *name_value(const struct doctor_name *name) {
  json_t *value = json_object();
  static const char *const keys[] = {[DOCTOR_PYTHON] = "python", [DOCTOR_OPERATOR] = "operator", [DOCTOR_CXX] = "cxx"};
  json_object_set_new(value, "name", json_string(name->symbol->id));
  for (int layer = 0; layer < DOCTOR_LAYERS; layer++)
    json_object_set_new(value, keys[layer],
                        name->providers[layer] == DOCTOR_NEVER ? json_null()
                                                               : json_string(provider_word(name->providers[layer])));
  json_object_set_new(value, "library", text_value(name->route));
  json_object_set_new(value, "instead", text_value(name->instead));
  return value;
}

static json_t *package_value(const struct doctor *doctor, const struct doctor_package *package) {
  if (!package)
    return json_null();
  return json_pack("{s:o, s:o, s:o}", "name", text_value(package->name), "version", text_value(package->version),
                   "folder", text_value(doctor->sites[package->site].path));
}

bool doctor_report_json(const struct doctor *doctor, bool all) {
  json_t *root = json_object(), *sites = json_array(), *facts = json_array(), *names = json_array();
  size_t problems = 0;
  for (size_t i = 0; i < doctor->sites_count; i++)
    json_array_append_new(sites, text_value(doctor->sites[i].path));
  for (size_t i = 0; i < doctor->facts_count; i++) {
    const struct doctor_fact *fact = &doctor->facts[i];
    problems += fact->level == DOCTOR_PROBLEM;
    json_array_append_new(facts, json_pack("{s:s, s:s, s:o, s:o}", "level", level_word(fact->level), "id", fact->id,
                                           "text", text_value(fact->text), "remedy", text_value(fact->remedy)));
  }
  for (size_t i = 0; i < doctor->names_count; i++)
    if (is_shown(doctor, &doctor->names[i], all))
      json_array_append_new(names, name_value(&doctor->names[i]));
  json_object_set_new(root, "format", json_string("sgl-migrate doctor"));
  json_object_set_new(root, "formatVersion", json_integer(1));
  json_object_set_new(root, "toolVersion", json_string(SGL_VERSION));
  json_object_set_new(root, "exitStatus", json_integer(problems ? EXIT_USES : 0));
  json_object_set_new(root, "prefix", text_value(doctor->prefix));
  json_object_set_new(root, "sites", sites);
  json_object_set_new(root, "kernel", package_value(doctor, doctor->kernel));
  json_object_set_new(root, "torch", package_value(doctor, doctor->torch));
  json_object_set_new(root, "shim", package_value(doctor, doctor->shim));
  json_object_set_new(root, "facts", facts);
  json_object_set_new(root, "names", names);
  bool good = json_dumpf(root, stdout, JSON_INDENT(2)) == 0;
  putchar('\n');
  json_decref(root);
  return good;
}
