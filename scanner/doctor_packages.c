/* Which distributions are installed, which of them owns the kernel's import package, and what torch and sglang say. */
#include "scanner/doctor.h"
#include "scanner/file.h"
#include "scanner/pins.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LARGEST_METADATA ((size_t)16 << 20)
#define PACKAGES_MOST 20000

/* --- reading ------------------------------------------------------------------------------------------------------ */

/* Where an editable install is, of direct_url.json; NULL: it is none. */
static char *editable_source(const char *info) {
  char message[256], *path = scan_format("%s/direct_url.json", info), *source = NULL;
  size_t size;
  char *text = file_read(path, LARGEST_METADATA, &size, message, sizeof message);
  json_t *root = text ? json_loadb(text, size, 0, NULL) : NULL;
  const char *url = json_string_value(json_object_get(root, "url"));
  if (url && json_is_true(json_object_get(json_object_get(root, "dir_info"), "editable")))
    source = scan_format("%s", strncmp(url, "file://", 7) == 0 ? url + 7 : url);
  json_decref(root);
  free(text);
  free(path);
  return source;
}

static void read_package(struct doctor *doctor, size_t site, const char *entry) {
  char message[256], *info = scan_format("%s/%s", doctor->sites[site].path, entry);
  struct doctor_package package = {.info = info, .site = site};
  const char *dash = strchr(entry, '-');
  size_t ending = strlen(entry) - strlen(".dist-info");
  package.name = dist_info_value(info, "Name");
  package.version = dist_info_value(info, "Version");
  if (!package.name) /* the folder's own name says it too */
    package.name = scan_format("%.*s", (int)(dash ? (size_t)(dash - entry) : ending), entry);
  if (!package.version)
    package.version = scan_format("%.*s", dash ? (int)(ending - (size_t)(dash + 1 - entry)) : 0, dash ? dash + 1 : "");
  package.has_record = dist_info_read_record(info, &package.record, message, sizeof message);
  if (!package.has_record && doctor_exists(info) && strstr(message, "larger"))
    doctor_say(doctor, DOCTOR_WARNING, "record-unreadable", NULL, "%s/RECORD %s: not compared with the disk", info,
               message);
  for (size_t i = 0; i < package.record.rows_count && !package.owns; i++)
    package.owns = dist_info_in_package(package.record.rows[i].path, doctor->catalog->library.package);
  package.source = editable_source(info);
  doctor->packages = scan_alloc(doctor->packages, (doctor->packages_count + 1) * sizeof *doctor->packages);
  doctor->packages[doctor->packages_count++] = package;
}

static bool is_kernel_name(const struct doctor *doctor, const char *name) {
  for (unsigned i = 0; i < doctor->catalog->library.distributions_count; i++)
    if (doctor_same_name(name, doctor->catalog->library.distributions[i]))
      return true;
  return false;
}

static const struct doctor_package *named(const struct doctor *doctor, const char *name) {
  for (size_t i = 0; i < doctor->packages_count; i++)
    if (doctor_same_name(doctor->packages[i].name, name))
      return &doctor->packages[i];
  return NULL;
}

/* Where the import leads: the first package or module; a folder without __init__.py only when there is neither. */
static void find_import(struct doctor *doctor) {
  const char *package = doctor->catalog->library.package;
  for (size_t i = 0; i < doctor->sites_count && !doctor->package_runs; i++) {
    const char *site = doctor->sites[i].path;
    char *folder = scan_format("%s/%s", site, package), *init = scan_format("%s/__init__.py", folder);
    char *module = scan_format("%s/%s.py", site, package);
    bool has_init = doctor_exists(init), has_module = doctor_exists(module);
    if (has_init || has_module || (doctor_exists(folder) && !doctor->package_folder)) {
      free(doctor->package_folder);
      doctor->package_folder = scan_format("%s", has_init || !has_module ? folder : module);
      doctor->package_runs = has_init || has_module;
    }
    free(folder);
    free(init);
    free(module);
  }
}

void doctor_read_packages(struct doctor *doctor) {
  for (size_t i = 0; i < doctor->sites_count; i++) {
    size_t count;
    if (access(doctor->sites[i].path, R_OK | X_OK) != 0)
      doctor_say(doctor, DOCTOR_PROBLEM, "site-unreadable", NULL, "%s cannot be read: %s", doctor->sites[i].path,
                 strerror(errno));
    char **names = doctor_names_in(doctor->sites[i].path, ".dist-info", &count);
    for (size_t k = 0; k < count; k++) {
      if (doctor->packages_count < PACKAGES_MOST && *names[k] != '~')
        read_package(doctor, i, names[k]);
      free(names[k]);
    }
    free(names);
  }
  doctor->torch = named(doctor, "torch");
  doctor->shim = named(doctor, "sgl-kernel-compat");
  doctor->sglang = named(doctor, "sglang");
  find_import(doctor);
  for (size_t i = 0; i < doctor->packages_count; i++) {
    const struct doctor_package *package = &doctor->packages[i];
    bool owner = package->owns || (package->source && is_kernel_name(doctor, package->name));
    if (owner && !doctor->kernel)
      doctor->kernel = package;
  }
}

/* --- the kernel --------------------------------------------------------------------------------------------------- */

/* The kernel release that the installed sglang asks for: "==0.4.5" and a release; false when it asks for none. */
static bool sglang_wants(const struct doctor *doctor, struct pins *pins) {
  *pins = (struct pins){.catalog = doctor->catalog};
  if (!doctor->sglang)
    return false;
  char message[256], *path = scan_format("%s/METADATA", doctor->sglang->info);
  size_t size;
  char *text = file_read(path, LARGEST_METADATA, &size, message, sizeof message);
  if (text)
    pins_read(pins, PINS_METADATA, path, (const uint8_t *)text, size, NULL, NULL);
  free(text);
  free(path);
  return pins_kernel(pins) != NULL;
}

/* "pip install a (CUDA, ROCm, from 0.4.0) or b (CPU), in the release that the caller pins"; owned by the caller. */
static char *list_of_wheels(const struct catalog *catalog) {
  const struct catalog_library *library = &catalog->library;
  if (!library->wheels_count && !library->distributions_count)
    return scan_format("install what provides %s, in the release that the caller pins", library->package);
  char *text = scan_format("pip install");
  for (unsigned i = 0; i < library->wheels_count; i++) {
    const struct catalog_wheel *wheel = &library->wheels[i];
    char *longer = scan_format("%s%s %s (", text, i ? " or" : "", wheel->distribution);
    free(text);
    text = longer;
    for (unsigned p = 0; p < wheel->platforms_count; p++) {
      longer = scan_format("%s%s%s", text, p ? ", " : "", catalog_platform_title(wheel->platforms[p]));
      free(text);
      text = longer;
    }
    longer = scan_format("%s%s%s%s%s)", text, wheel->from ? ", from " : "", wheel->from ? wheel->from : "",
                         wheel->until ? ", before " : "", wheel->until ? wheel->until : "");
    free(text);
    text = longer;
  }
  for (unsigned i = 0; !library->wheels_count && i < library->distributions_count; i++) {
    char *longer = scan_format("%s%s %s", text, i ? " or" : "", library->distributions[i]);
    free(text);
    text = longer;
  }
  char *all = scan_format("%s, in the release that the caller pins", text);
  free(text);
  return all;
}

/* How to get it; owned by the caller. */
static char *how_to_install(const struct doctor *doctor) {
  struct pins pins;
  bool wanted = sglang_wants(doctor, &pins);
  const struct pin *pin = wanted ? pins_kernel(&pins) : NULL;
  const char *release = pin              ? pin->release
                        : doctor->sglang ? catalog_sglang_kernel(doctor->catalog, doctor->sglang->version)
                                         : NULL;
  const struct catalog_wheel *wheel = catalog_wheel_for(doctor->catalog, CATALOG_CUDA, release);
  char *text;
  if (pin && pin->exact)
    text = scan_format("pip install %s, which sglang %s asks for", pin->text, doctor->sglang->version);
  else if (release && wheel)
    text = scan_format("pip install %s==%s, which sglang %s asks for", wheel->distribution, release,
                       doctor->sglang->version);
  else
    text = list_of_wheels(doctor->catalog);
  pins_free(&pins);
  return text;
}

static char *list_of_owners(const struct doctor *doctor, size_t *count) {
  struct doctor_list list = {0};
  for (size_t i = 0; i < doctor->packages_count; i++) {
    if (!doctor->packages[i].owns)
      continue;
    char *word = scan_format("%s %s", doctor->packages[i].name, doctor->packages[i].version);
    doctor_list_add(&list, word);
    free(word);
  }
  *count = list.count;
  return doctor_list_take(&list);
}

/* Several distributions wrote to one folder: whose files are there? */
static void check_owners(struct doctor *doctor, size_t count, const char *owners) {
  struct doctor_package *best = NULL;
  for (size_t i = 0; i < doctor->packages_count; i++) {
    struct doctor_package *package = &doctor->packages[i];
    if (!package->owns)
      continue;
    doctor_check_record(doctor, package, true, false);
    if (!best || package->wrong < best->wrong || (package->wrong == best->wrong && package->right > best->right))
      best = package;
  }
  doctor->kernel = best;
  doctor_say(doctor, DOCTOR_PROBLEM, "kernel-owners",
             scan_format("pip uninstall all of them, then install the one that is wanted"),
             "%zu distributions own the import %s: %s; they overwrite each other's files, and those on the disk are "
             "%s's%s",
             count, doctor->catalog->library.package, owners, best->name, best->wrong ? ", not all of them" : "");
}

/* What an upgrade to the other name can leave: the folder that says that an older distribution is there, too. */
static void check_other_names(struct doctor *doctor) {
  for (size_t i = 0; i < doctor->packages_count; i++) {
    const struct doctor_package *other = &doctor->packages[i];
    if (other != doctor->kernel && !other->owns && !other->source && is_kernel_name(doctor, other->name))
      doctor_say(doctor, DOCTOR_WARNING, "kernel-other-name", scan_format("remove %s", other->info),
                 "%s %s is registered as well, without a file of the import %s: who asks for its version is told %s",
                 other->name, other->version, doctor->catalog->library.package, other->version);
  }
}

static void check_no_owner(struct doctor *doctor) {
  const char *package = doctor->catalog->library.package;
  for (size_t i = 0; i < doctor->packages_count; i++) {
    const struct doctor_package *other = &doctor->packages[i];
    if (is_kernel_name(doctor, other->name))
      doctor_say(doctor, DOCTOR_PROBLEM, "kernel-incomplete",
                 scan_format("pip install --force-reinstall --no-deps %s==%s", other->name, other->version),
                 "%s %s is installed, but its RECORD %s", other->name, other->version,
                 other->has_record ? "has no file of the import package" : "is missing, so its files are not known");
  }
  const char *setting = getenv("SGL_KERNEL_COMPAT");
  doctor->standalone =
      !doctor->package_folder && doctor->shim && doctor->torch && setting && strcmp(setting, "standalone") == 0;
  if (doctor->standalone) {
    doctor_say(
        doctor, DOCTOR_FACT, "kernel-standalone", NULL,
        "no kernel is installed; the shim provides the import %s from `import torch` on (SGL_KERNEL_COMPAT=standalone)",
        package);
    return;
  }
  if (!doctor->package_folder) {
    doctor_say(doctor, DOCTOR_PROBLEM, "kernel-missing", how_to_install(doctor),
               "no installed distribution has the import %s, and no folder either: \"No module named '%s'\"", package,
               package);
    return;
  }
  size_t site = 0;
  while (site + 1 < doctor->sites_count &&
         (strncmp(doctor->package_folder, doctor->sites[site].path, strlen(doctor->sites[site].path)) != 0 ||
          doctor->package_folder[strlen(doctor->sites[site].path)] != '/'))
    site++;
  const char *why = doctor->sites[site].why;
  bool source = strcmp(why, "PYTHONPATH") == 0 || strcmp(why, "a .pth file") == 0;
  if (source && doctor->package_runs)
    doctor_say(doctor, DOCTOR_FACT, "kernel-source", NULL, "the import %s is the folder %s (%s), of no distribution",
               package, doctor->package_folder, why);
  else {
    char *install = how_to_install(doctor);
    doctor_say(doctor, DOCTOR_PROBLEM, "kernel-orphan", scan_format("remove that folder, then %s", install),
               "no distribution owns %s: what an earlier one left%s", doctor->package_folder,
               doctor->package_runs ? "; the import finds it all the same"
                                    : "; it has no __init__.py, so the import gives an empty package without an error");
    free(install);
  }
}

/* Does the import lead to what the owner installed? */
static void check_import(struct doctor *doctor) {
  const struct doctor_package *kernel = doctor->kernel;
  const char *site = doctor->sites[kernel->site].path, *package = doctor->catalog->library.package;
  size_t length = strlen(site);
  if (kernel->source) {
    doctor_say(doctor, DOCTOR_FACT, "kernel-source", NULL, "%s is an editable install of %s", kernel->name,
               kernel->source);
    return;
  }
  if (!doctor->package_folder)
    return; /* its files are missing, which is said */
  if (strncmp(doctor->package_folder, site, length) != 0 || doctor->package_folder[length] != '/')
    doctor_say(doctor, DOCTOR_PROBLEM, "kernel-shadowed",
               scan_format("remove %s, or take its folder out of the path", doctor->package_folder),
               "import %s finds %s, not what %s %s has in %s", package, doctor->package_folder, kernel->name,
               kernel->version, site);
  else if (access(doctor->package_folder, R_OK | X_OK) != 0)
    doctor_say(doctor, DOCTOR_PROBLEM, "site-unreadable", NULL, "%s cannot be read: %s", doctor->package_folder,
               strerror(errno));
  else if (!doctor->package_runs)
    doctor_say(doctor, DOCTOR_PROBLEM, "kernel-empty",
               scan_format("pip install --force-reinstall --no-deps %s==%s", kernel->name, kernel->version),
               "%s has no __init__.py: the import gives an empty package without an error", doctor->package_folder);
}

static void check_version(struct doctor *doctor) {
  char *path = scan_format("%s/version.py", doctor->package_folder ? doctor->package_folder : "");
  char *own = doctor_python_value(path, "__version__");
  if (doctor->kernel && own && !doctor->kernel->source && catalog_version_compare(own, doctor->kernel->version) != 0)
    doctor_say(
        doctor, DOCTOR_WARNING, "kernel-version",
        scan_format("pip install --force-reinstall --no-deps %s==%s", doctor->kernel->name, doctor->kernel->version),
        "%s says version %s, its distribution %s says %s: the files are of another release", path, own,
        doctor->kernel->name, doctor->kernel->version);
  doctor->kernel_version = doctor->kernel ? scan_format("%s", doctor->kernel->version)
                           : own          ? scan_format("%s", own)
                                          : NULL;
  free(own);
  free(path);
  const struct catalog_library *library = &doctor->catalog->library;
  const char *newest = library->releases_count ? library->releases[library->releases_count - 1] : NULL;
  if (doctor->kernel_version && newest && catalog_version_compare(doctor->kernel_version, newest) > 0)
    doctor_say(doctor, DOCTOR_WARNING, "kernel-unknown", NULL,
               "kernel %s is newer than %s, the newest that the catalog knows: what it removed is not known",
               doctor->kernel_version, newest);
}

static void check_pin(struct doctor *doctor) {
  struct pins pins;
  if (sglang_wants(doctor, &pins) && doctor->kernel_version) {
    const struct pin *pin = pins_kernel(&pins);
    bool fits = pins_specifier_allows(pin->specifier, doctor->kernel_version);
    char *remedy =
        fits ? NULL
             : scan_format("pip install %s, or the sglang that goes with kernel %s", pin->text, doctor->kernel_version);
    doctor_say(doctor, fits ? DOCTOR_FACT : DOCTOR_PROBLEM, "sglang-pin", remedy, "sglang %s asks for %s%s%s",
               doctor->sglang->version, pin->text, fits ? ", which is installed" : ", but installed is ",
               fits ? "" : doctor->kernel_version);
  }
  pins_free(&pins);
}

/* --- torch -------------------------------------------------------------------------------------------------------- */

static void check_torch(struct doctor *doctor) {
  struct doctor_list all = {0};
  for (size_t i = 0; i < doctor->packages_count; i++)
    if (doctor_same_name(doctor->packages[i].name, "torch"))
      doctor_list_add(&all, doctor->packages[i].version);
  size_t count = all.count;
  char *versions = doctor_list_take(&all);
  if (count > 1)
    doctor_say(doctor, DOCTOR_PROBLEM, "torch-twice",
               scan_format("pip uninstall torch until there is none, then install one"),
               "%zu distributions of torch are installed: %s", count, versions);
  free(versions);
  if (!doctor->torch) {
    doctor_say(doctor, doctor->kernel ? DOCTOR_PROBLEM : DOCTOR_FACT, "torch-missing",
               doctor->kernel ? scan_format("install the torch that the kernel was made for") : NULL,
               "torch is not installed%s", doctor->kernel ? ", and the kernel's libraries are loaded into it" : "");
    return;
  }
  char *path = scan_format("%s/torch/version.py", doctor->sites[doctor->torch->site].path);
  char *own = doctor_python_value(path, "__version__");
  doctor->torch_cuda = doctor_python_value(path, "cuda");
  doctor->torch_hip = doctor_python_value(path, "hip");
  if (own && catalog_version_compare(own, doctor->torch->version) != 0)
    doctor_say(doctor, DOCTOR_PROBLEM, "torch-version",
               scan_format("pip install --force-reinstall torch==%s", doctor->torch->version),
               "%s says version %s, its distribution says %s: two builds lie over each other", path, own,
               doctor->torch->version);
  doctor_say(doctor, DOCTOR_FACT, "torch", NULL, "torch %s in %s, %s%s", doctor->torch->version,
             doctor->sites[doctor->torch->site].path,
             doctor->torch_cuda  ? "built for CUDA "
             : doctor->torch_hip ? "built for ROCm "
                                 : "without CUDA",
             doctor->torch_cuda  ? doctor->torch_cuda
             : doctor->torch_hip ? doctor->torch_hip
                                 : "");
  free(own);
  free(path);
}

void doctor_check_packages(struct doctor *doctor) {
  size_t count;
  char *owners = list_of_owners(doctor, &count);
  if (count > 1)
    check_owners(doctor, count, owners);
  if (doctor->kernel) {
    doctor_say(doctor, DOCTOR_FACT, "kernel", NULL, "%s %s owns the import %s, in %s", doctor->kernel->name,
               doctor->kernel->version, doctor->catalog->library.package, doctor->sites[doctor->kernel->site].path);
    check_import(doctor);
    check_other_names(doctor);
  } else {
    check_no_owner(doctor);
  }
  free(owners);
  for (size_t i = 0; i < doctor->packages_count; i++) {
    struct doctor_package *package = &doctor->packages[i];
    if (package == doctor->kernel || package == doctor->torch || package == doctor->shim)
      doctor_check_record(doctor, package, package != doctor->torch, true);
  }
  check_version(doctor);
  check_pin(doctor);
  check_torch(doctor);
  doctor_find_orphans(doctor);
}
