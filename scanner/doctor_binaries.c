/* What an audit says of the environment's libraries: the kernel's own, torch, and the CUDA runtimes that both load. */
#include "scanner/doctor.h"
#include "scanner/explain.h"

#include <elf.h>
#include <gnu/libc-version.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- reading ------------------------------------------------------------------------------------------------------ */

/* The site folders that have what is asked about. Source trees on the path are read when the import leads there. */
bool doctor_audit(struct doctor *doctor, unsigned threads, char *message, size_t message_size) {
  char **paths = scan_alloc(NULL, (doctor->sites_count + 1) * sizeof *paths);
  size_t count = 0;
  for (size_t i = 0; i < doctor->sites_count; i++) {
    bool wanted = false;
    const struct doctor_package *const packages[] = {doctor->kernel, doctor->torch, doctor->shim};
    for (size_t k = 0; k < sizeof packages / sizeof *packages; k++)
      wanted |= packages[k] && packages[k]->site == i;
    size_t length = strlen(doctor->sites[i].path);
    wanted |= doctor->package_folder && strncmp(doctor->package_folder, doctor->sites[i].path, length) == 0 &&
              doctor->package_folder[length] == '/';
    if (wanted)
      paths[count++] = doctor->sites[i].path;
  }
  doctor->context = (struct audit_context){.catalog = doctor->catalog,
                                           .names = audit_names_build(doctor->catalog),
                                           .limits = audit_default_limits,
                                           .joined = true};
  doctor->run = (struct audit_run){.context = &doctor->context};
  bool good = audit_run(&doctor->run, paths, count, 0, threads, message, message_size);
  free(paths);
  if (!good)
    return false;
  audit_resolve(&doctor->run);
  audit_judge(&doctor->run, NULL);
  return true;
}

/* --- helpers ------------------------------------------------------------------------------------------------------ */

static bool starts(const char *text, const char *start) {
  return strncmp(text, start, strlen(start)) == 0;
}

static bool of_folder(const struct audit_object *object, const char *folder) {
  size_t length = strlen(folder);
  return !object->outside && starts(object->path, folder) && object->path[length] == '/';
}

static bool of_kernel(const struct doctor *doctor, const struct audit_object *object) {
  return of_folder(object, doctor->catalog->library.package);
}

static bool of_torch(const struct audit_object *object) {
  return of_folder(object, "torch/lib");
}

/* "sm_90a", "PTX of compute_90" of a file. */
static void add_code(struct doctor_list *list, const struct audit_object *object) {
  for (size_t i = 0; i < object->code_count; i++) {
    const struct audit_code *code = &object->code[i];
    const char suffix[] = {code->suffix, 0};
    char *word = scan_format("%s%u%s", code->ptx ? "PTX of compute_" : "sm_", code->arch, suffix);
    doctor_list_add(list, word);
    free(word);
  }
}

char *doctor_remedy(const struct doctor *doctor, const char *message) {
  struct explanation explanation;
  explain(doctor->catalog, message, &explanation);
  char *remedy = explanation.faults_count ? scan_format("%s", explanation.faults[0].remedy) : NULL;
  explain_free(&explanation);
  return remedy;
}

static bool is_there(void *user, const char *path) {
  char **found = user;
  if (access(path, R_OK) != 0)
    return false;
  *found = scan_format("%s", path);
  return true;
}

char *doctor_find_library(const struct doctor *doctor, const char *name) {
#if defined __aarch64__
  static const struct audit_object object = {.machine = "aarch64"};
#else
  static const struct audit_object object = {.machine = "x86-64"};
#endif
  const char *list = getenv("LD_LIBRARY_PATH");
  while (list && *list) {
    size_t length = strcspn(list, ":;");
    char *path = length ? scan_format("%.*s/%s", (int)length, list, name) : NULL;
    if (path && access(path, R_OK) == 0)
      return path;
    free(path);
    list += length + (list[length] != '\0');
  }
  char *found = NULL;
  audit_loader(doctor->run.host_cache, doctor->run.host_cache_size, &object, name, is_there, &found);
  return found;
}

/* --- the kernel's libraries --------------------------------------------------------------------------------------- */

/* Is a library of this name in any folder that was read? Then who imports first decides. */
static bool present(const struct audit_run *run, const char *name) {
  for (size_t i = 0; i < run->objects_count; i++) {
    const struct audit_object *object = &run->objects[i];
    const char *slash = strrchr(object->path, '/');
    if (!object->fault &&
        ((object->soname && strcmp(object->soname, name) == 0) || strcmp(slash ? slash + 1 : object->path, name) == 0))
      return true;
  }
  return false;
}

/* A needed library that nothing has, each name once for a package. */
static void check_needed(struct doctor *doctor, bool (*mine)(const struct doctor *, const struct audit_object *),
                         const char *id) {
  const struct audit_run *run = &doctor->run;
  for (size_t i = 0; i < run->findings_count; i++) {
    const struct audit_finding *finding = &run->findings[i];
    const struct audit_object *object = &run->objects[finding->object];
    if (finding->verdict != AUDIT_MISSING || !mine(doctor, object) || present(run, finding->name))
      continue;
    if (!doctor->torch && (starts(finding->name, "libtorch") || starts(finding->name, "libc10")))
      continue; /* that torch is missing is said */
    bool said = false;
    struct doctor_list files = {0};
    for (size_t k = 0; k < run->findings_count; k++) {
      const struct audit_finding *other = &run->findings[k];
      if (other->verdict != AUDIT_MISSING || strcmp(other->name, finding->name) != 0 ||
          !mine(doctor, &run->objects[other->object]))
        continue;
      said |= k < i;
      doctor_list_add(&files, run->objects[other->object].path);
    }
    char *names = doctor_list_take(&files), *there = doctor_find_library(doctor, finding->name);
    bool driver = starts(finding->name, "libcuda.so.") || starts(finding->name, "libnvidia-ml.so.");
    if (!said && !there) {
      char *message = scan_format("%s: cannot open shared object file", finding->name);
      doctor_say(doctor, DOCTOR_PROBLEM, id,
                 driver && doctor->amd ? scan_format("install the kernel package and torch for ROCm: this machine has "
                                                     "an AMD GPU")
                                       : doctor_remedy(doctor, message),
                 "%s need%s %s, which is %s", names, strchr(names, ',') ? "" : "s", finding->name, finding->message);
      free(message);
    }
    free(names);
    free(there);
  }
}

/* Torch's symbols that this torch lacks, and symbols that nothing has; one fact for each cause. */
static void check_symbols(struct doctor *doctor) {
  const struct audit_run *run = &doctor->run;
  for (size_t i = 0; i < run->findings_count; i++) {
    const struct audit_finding *finding = &run->findings[i];
    bool torch = finding->verdict == AUDIT_TORCH, unknown = finding->verdict == AUDIT_UNKNOWN;
    if (finding->mark != MARK_SYMBOL || (!torch && !unknown) || !of_kernel(doctor, &run->objects[finding->object]))
      continue;
    size_t same = 0, first = i;
    bool said = false;
    while (first > 0 && run->findings[first - 1].object == finding->object) /* they are sorted by it */
      first--;
    for (size_t k = first; k < run->findings_count && run->findings[k].object == finding->object && !said; k++) {
      const struct audit_finding *other = &run->findings[k];
      bool alike = other->mark == MARK_SYMBOL && strcmp(other->message, finding->message) == 0;
      said = alike && k < i;
      same += alike;
    }
    if (said)
      continue;
    char *message = scan_format("undefined symbol: %s", finding->name), *more = NULL;
    if (same > 1)
      more = scan_format(" and %zu more", same - 1);
    doctor_say(doctor, DOCTOR_PROBLEM, torch ? "torch-abi" : "kernel-symbols", doctor_remedy(doctor, message),
               "%s needs %s%s: %s", run->objects[finding->object].path, finding->name, more ? more : "",
               finding->message);
    free(message);
    free(more);
  }
}

static void check_glibc(struct doctor *doctor, const struct audit_object *object) {
  if (object->glibc && catalog_version_compare(object->glibc, gnu_get_libc_version()) > 0) {
    char *message = scan_format("version `GLIBC_%s' not found", object->glibc);
    doctor_say(doctor, DOCTOR_PROBLEM, "kernel-glibc", doctor_remedy(doctor, message),
               "%s needs glibc %s, this machine has %s", object->path, object->glibc, gnu_get_libc_version());
    free(message);
  }
}

static const char *own_machine(void) {
#if defined __aarch64__
  return "aarch64";
#else
  return "x86-64";
#endif
}

static void check_kernel(struct doctor *doctor) {
  const struct audit_run *run = &doctor->run;
  struct doctor_list files = {.whole = true};
  for (size_t i = 0; i < run->objects_count; i++) {
    const struct audit_object *object = &run->objects[i];
    if (!of_kernel(doctor, object))
      continue;
    if (object->fault) {
      doctor_say(doctor, DOCTOR_PROBLEM, "kernel-library", doctor_remedy(doctor, "x: file too short"), "%s: %s",
                 object->path, object->fault);
      continue;
    }
    if (strcmp(object->machine, own_machine()) != 0)
      doctor_say(doctor, DOCTOR_PROBLEM, "kernel-machine", scan_format("install the wheel of this machine (uname -m)"),
                 "%s is for %s, this machine is %s", object->path, object->machine, own_machine());
    check_glibc(doctor, object);
    struct doctor_list code = {.whole = true};
    add_code(&code, object);
    char *list = doctor_list_take(&code),
         *word = scan_format("%s%s%s%s", object->path, *list ? " (" : "", list, *list ? ")" : "");
    doctor_list_add(&files, word);
    free(word);
    free(list);
  }
  size_t count = files.count;
  char *list = doctor_list_take(&files);
  if (count)
    doctor_say(doctor, DOCTOR_FACT, "kernel-libraries", NULL, "%zu librar%s of the kernel: %s", count,
               count == 1 ? "y" : "ies", list);
  else if (doctor->kernel && doctor->kernel->owns)
    doctor_say(
        doctor, DOCTOR_PROBLEM, "kernel-library",
        scan_format("pip install --force-reinstall --no-deps %s==%s", doctor->kernel->name, doctor->kernel->version),
        "the kernel package has no library: its compiled part is not there");
  free(list);
}

/* --- torch's ABI -------------------------------------------------------------------------------------------------- */

static void check_torch(struct doctor *doctor) {
  const struct audit_run *run = &doctor->run;
  unsigned new_strings = 0, old_strings = 0, kernel_new = 0, kernel_old = 0, kernel_all = 0, stable = 0;
  bool library = false;
  for (size_t i = 0; i < run->objects_count; i++) {
    const struct audit_object *object = &run->objects[i];
    if (object->fault)
      continue;
    if (object->soname && starts(object->soname, "libtorch_cpu.so")) {
      library = true;
      new_strings += object->exported_new_strings;
      old_strings += object->exported_old_strings;
    }
    if (of_kernel(doctor, object)) {
      kernel_new += object->torch_new_strings;
      kernel_old += object->torch_old_strings;
      kernel_all += object->torch_symbols;
      stable += object->torch_stable;
    }
  }
  if (doctor->torch && !library)
    doctor_say(doctor, DOCTOR_PROBLEM, "torch-library",
               scan_format("pip install --force-reinstall torch==%s", doctor->torch->version),
               "torch is installed without libtorch_cpu.so");
  if (library)
    doctor_say(doctor, DOCTOR_FACT, "torch-cxx-abi", NULL, "torch has the %s C++ ABI of std::string",
               new_strings >= old_strings ? "new" : "old");
  if (kernel_all || stable)
    doctor_say(doctor, DOCTOR_FACT, "kernel-torch", NULL,
               "the kernel's libraries need %u C++ symbols of torch%s and %u of its stable ABI", kernel_all,
               kernel_new   ? " (new C++ ABI)"
               : kernel_old ? " (old C++ ABI)"
                            : "",
               stable);
}

/* --- CUDA runtimes ------------------------------------------------------------------------------------------------ */

#define MAJORS 32
struct runtimes {
  bool torch[MAJORS], kernel[MAJORS]; /* by the major version in the name */
};

static unsigned major_of(const char *name, const char *library) {
  size_t length = strlen(library);
  unsigned long major = strncmp(name, library, length) == 0 ? strtoul(name + length, NULL, 10) : 0;
  return major < MAJORS ? (unsigned)major : 0;
}

/* What the roots and everything that they load ask for. */
static void add_majors(const struct audit_run *run, const bool *roots, const char *library, bool *majors) {
  for (size_t i = 0; i < run->objects_count; i++) {
    const struct audit_object *object = &run->objects[i];
    bool asks = false, loaded = false;
    for (size_t k = 0; k < object->needed_count && !object->fault; k++)
      asks |= major_of(object->needed[k].name, library) != 0;
    for (size_t root = 0; root < run->objects_count && asks && !loaded; root++)
      loaded = roots[root] && audit_reaches(run, root, i);
    for (size_t k = 0; k < object->needed_count && loaded; k++)
      majors[major_of(object->needed[k].name, library)] = true;
  }
}

static char *name_majors(const bool *majors, const char *library) {
  struct doctor_list list = {0};
  for (unsigned i = 1; i < MAJORS; i++) {
    char *name = majors[i] ? scan_format("%s%u", library, i) : NULL;
    if (name)
      doctor_list_add(&list, name);
    free(name);
  }
  return doctor_list_take(&list);
}

static void check_runtimes(struct doctor *doctor) {
  static const char *const libraries[] = {"libcudart.so.", "libnvrtc.so.", "libcublas.so."};
  const struct audit_run *run = &doctor->run;
  bool *kernel = scan_alloc(NULL, run->objects_count * sizeof *kernel + 1);
  bool *torch = scan_alloc(NULL, run->objects_count * sizeof *torch + 1);
  for (size_t i = 0; i < run->objects_count; i++) {
    kernel[i] = !run->objects[i].fault && of_kernel(doctor, &run->objects[i]);
    torch[i] = !run->objects[i].fault && of_torch(&run->objects[i]);
  }
  for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
    struct runtimes found = {0};
    add_majors(run, torch, libraries[i], found.torch);
    add_majors(run, kernel, libraries[i], found.kernel);
    if (doctor->torch_cuda && i == 0)
      found.torch[major_of(doctor->torch_cuda, "")] = true;
    unsigned count = 0;
    for (unsigned major = 1; major < MAJORS; major++)
      count += found.torch[major] || found.kernel[major];
    char *of_kernel_text = name_majors(found.kernel, libraries[i]),
         *of_torch_text = name_majors(found.torch, libraries[i]);
    if (count > 1) {
      char *message = scan_format("%s12: cannot open shared object file", libraries[i]);
      doctor_say(doctor, DOCTOR_PROBLEM, "cuda-runtimes", doctor_remedy(doctor, message),
                 "two releases of CUDA in one process: torch loads %s, the kernel's libraries %s",
                 *of_torch_text ? of_torch_text : "none", *of_kernel_text ? of_kernel_text : "none");
      free(message);
    } else if (count) {
      doctor_say(doctor, DOCTOR_FACT, "cuda-runtime", NULL, "torch loads %s, the kernel's libraries %s",
                 *of_torch_text ? of_torch_text : "none", *of_kernel_text ? of_kernel_text : "none");
    }
    free(of_kernel_text);
    free(of_torch_text);
  }
  free(kernel);
  free(torch);
}

/* --- the others --------------------------------------------------------------------------------------------------- */

/* Libraries of other packages: only how many, since audit says it all. */
static void check_others(struct doctor *doctor) {
  const struct audit_run *run = &doctor->run;
  struct doctor_list files = {0};
  size_t last = SIZE_MAX;
  for (size_t i = 0; i < run->findings_count; i++) {
    const struct audit_finding *finding = &run->findings[i];
    const struct audit_object *object = &run->objects[finding->object];
    if (finding->verdict != AUDIT_REMOVED && finding->verdict != AUDIT_TORCH)
      continue;
    if (of_kernel(doctor, object) || of_torch(object) || object->outside || finding->object == last)
      continue;
    last = finding->object;
    doctor_list_add(&files, object->path);
  }
  size_t count = files.count;
  char *names = doctor_list_take(&files);
  if (count)
    doctor_say(doctor, DOCTOR_WARNING, "other-libraries",
               scan_format("sgl-migrate audit of the folder says what it is"),
               "%zu librar%s of other packages need%s what the kernel or torch does not have: %s", count,
               count == 1 ? "y" : "ies", count == 1 ? "s" : "", names);
  free(names);
}

/* Files and folders that the audit could not read: torch's own are a problem, and the kernel's are told with it. */
static void check_faults(struct doctor *doctor) {
  struct doctor_list list = {0};
  for (size_t i = 0; i < doctor->run.objects_count; i++) {
    const struct audit_object *object = &doctor->run.objects[i];
    if (!object->fault || object->outside || of_kernel(doctor, object))
      continue;
    char *word = scan_format("%s: %s", object->path, object->fault);
    if (of_torch(object))
      doctor_say(doctor, DOCTOR_PROBLEM, "torch-library", doctor_remedy(doctor, "x: file too short"), "%s", word);
    else
      doctor_list_add(&list, word);
    free(word);
  }
  size_t count = list.count;
  char *faults = doctor_list_take(&list);
  if (count)
    doctor_say(doctor, DOCTOR_WARNING, "not-analysed", NULL, "not looked into: %s", faults);
  free(faults);
}

void doctor_check_binaries(struct doctor *doctor) {
  check_faults(doctor);
  check_torch(doctor);
  check_runtimes(doctor);
  check_symbols(doctor);
  check_needed(doctor, of_kernel, "library-missing");
  check_kernel(doctor);
  check_others(doctor);
}
