/* The shim: is it active in Python, and do the old C++ functions reach those who need them? */
#include "scanner/doctor.h"
#include "scanner/file.h"
#include "shim/policy_sources.h"
#include "shim/policy_text.h"

#include <stdlib.h>
#include <string.h>

#define COMPAT "libsgl_kernel_compat.so"
#define LIBRARIES "sgl_kernel_jit/lib/" /* of the wheel, below the site folder */
#define LARGEST_TEXT ((size_t)1 << 20)

static const char *setting(const char *name) {
  const char *value = getenv(name);
  return value ? value : "";
}

/* --- the environment's variables ---------------------------------------------------------------------------------- */

/* Variables with few values. */
static const struct {
  const char *name;
  const char *values[4]; /* NULL-ended */
} choices[] = {
    {"SGL_KERNEL_COMPAT_LOG", {"calls", "off", NULL}},          {"SGL_KERNEL_COMPAT", {"0", "1", "standalone", NULL}},
    {"SGL_KERNEL_COMPAT_WARN", {"off", "once", NULL}},          {"SGL_KERNEL_JIT_BACKEND", {"auto", "reference", NULL}},
    {"SGL_KERNEL_JIT_MONITOR", {"off", "warn", "error", NULL}}, {"SGL_KERNEL_JIT_BATCH_INVARIANT", {"0", "1", NULL}},
    {"SGL_KERNEL_JIT_PDL_PREFETCH", {"0", "1", NULL}}};

static void check_choice(struct doctor *doctor, const char *name, const char *const *values) {
  const char *value = setting(name);
  struct doctor_list list = {0};
  bool good = !*value;
  for (; *values; values++) {
    good |= strcmp(value, *values) == 0;
    doctor_list_add(&list, *values);
  }
  char *words = doctor_list_take(&list);
  if (!good)
    doctor_say(doctor, DOCTOR_WARNING, "variable", scan_format("set it to one of them, or unset it"),
               "%s=%s is none of %s", name, value, words);
  free(words);
}

/* --- the policy ----------------------------------------------------------------------------------------------------
 */

struct policy_look {
  struct doctor *doctor;
  const char *name; /* of the source */
};

static void policy_fault_found(void *user, unsigned line, const char *text) {
  const struct policy_look *look = user;
  doctor_say(look->doctor, DOCTOR_WARNING, "policy", scan_format("correct it; man sgl-compat has the language"),
             "%s:%u: %s", look->name, line, text);
}

static void ignore_directive(void *user, const struct policy_directive *directive) {
  (void)user, (void)directive;
}

/* As the shim reads it, with the shim's own code. */
static void check_policy(struct doctor *doctor) {
  struct policy_source sources[POLICY_SOURCES];
  struct doctor_list read = {0};
  policy_sources_read(sources);
  for (int i = 0; i < POLICY_SOURCES; i++) {
    struct policy_look look = {doctor, sources[i].name};
    if (sources[i].problem[0])
      doctor_say(doctor, DOCTOR_WARNING, "policy", scan_format("as it says, or remove it"),
                 "the policy file %s is not used: it %s", sources[i].name, sources[i].problem);
    if (!sources[i].text)
      continue;
    policy_parse(sources[i].text, sources[i].size, ignore_directive, policy_fault_found, &look);
    doctor_list_add(&read, sources[i].name);
  }
  policy_sources_free(sources);
  size_t count = read.count;
  char *list = doctor_list_take(&read);
  if (count)
    doctor_say(doctor, DOCTOR_FACT, "policy", NULL, "policy: %s; sgl-compat policy show --effective tells what holds",
               list);
  free(list);
}

static void check_variables(struct doctor *doctor) {
  extern char **environ;
  struct doctor_list set = {0};
  for (size_t i = 0; i < sizeof choices / sizeof *choices; i++)
    check_choice(doctor, choices[i].name, choices[i].values);
  for (char **variable = environ; *variable; variable++)
    if (strncmp(*variable, "SGL_KERNEL_COMPAT", 17) == 0 || strncmp(*variable, "SGL_KERNEL_JIT_", 15) == 0)
      doctor_list_add(&set, *variable);
  size_t count = set.count;
  char *list = doctor_list_take(&set);
  if (count)
    doctor_say(doctor, DOCTOR_FACT, "variables", NULL, "set: %s", list);
  free(list);
}

/* --- active in Python --------------------------------------------------------------------------------------------- */

static bool has_entry_point(const struct doctor *doctor) {
  char message[256], *path = scan_format("%s/entry_points.txt", doctor->shim->info);
  size_t size;
  char *text = file_read(path, LARGEST_TEXT, &size, message, sizeof message);
  const char *group = text ? strstr(text, "[torch.backends]") : NULL;
  bool found = group && strstr(group, "_sgl_kernel_compat_autoload:autoload");
  char *module = scan_format("%s/_sgl_kernel_compat_autoload.py", doctor->sites[doctor->shim->site].path);
  found = found && doctor_exists(module);
  free(module);
  free(text);
  free(path);
  return found;
}

static bool is_shim(const struct audit_object *object) {
  const char *slash = strrchr(object->path, '/');
  return strncmp(object->soname ? object->soname : slash ? slash + 1 : object->path, COMPAT, strlen(COMPAT)) == 0;
}

/* Why the package's libraries cannot be loaded; NULL: they can, as far as that is seen. Owned by the caller. */
static char *broken(const struct doctor *doctor) {
  bool there = false;
  for (size_t i = 0; i < doctor->run.objects_count; i++) {
    const struct audit_object *object = &doctor->run.objects[i];
    if (object->outside || strncmp(object->path, LIBRARIES, strlen(LIBRARIES)) != 0)
      continue;
    if (object->fault)
      return scan_format("%s: %s", object->path, object->fault);
    for (size_t k = 0; k < object->needed_count; k++)
      if (object->needed[k].state == NEEDED_MISSING)
        return scan_format("%s needs %s, which is not there", object->path, object->needed[k].name);
    there |= is_shim(object);
  }
  return there ? NULL : scan_format("its library " LIBRARIES COMPAT ".0 is not there");
}

static void check_active(struct doctor *doctor) {
  const char *why = NULL, *remedy = NULL;
  char *fault = broken(doctor);
  if (fault) {
    doctor_say(doctor, DOCTOR_PROBLEM, "shim-broken", scan_format("pip install --force-reinstall sgl-kernel-compat"),
               "sgl-kernel-compat %s cannot be loaded: %s", doctor->shim->version, fault);
    free(fault);
    return;
  }
  if (strcmp(setting("SGL_KERNEL_COMPAT"), "0") == 0) {
    why = "SGL_KERNEL_COMPAT=0 turns it off";
    remedy = "unset SGL_KERNEL_COMPAT";
  } else if (!has_entry_point(doctor)) {
    why = "its entry point for torch (torch.backends) is not there";
    remedy = "pip install --force-reinstall sgl-kernel-compat, or import sgl_kernel_compat first";
  } else if (strcmp(setting("TORCH_DEVICE_BACKEND_AUTOLOAD"), "0") == 0) {
    why = "TORCH_DEVICE_BACKEND_AUTOLOAD=0 keeps torch from starting it";
    remedy = "unset it, or import sgl_kernel_compat first";
  } else if (doctor->torch && catalog_version_compare(doctor->torch->version, "2.5") < 0) {
    why = "torch before 2.5 does not start it";
    remedy = "import sgl_kernel_compat first";
  }
  if (!why && !doctor->torch) {
    doctor_say(doctor, DOCTOR_FACT, "shim", NULL, "sgl-kernel-compat %s; without torch nothing starts it",
               doctor->shim->version);
    return;
  }
  doctor->shim_active = !why;
  if (why)
    doctor_say(doctor, DOCTOR_WARNING, "shim-inactive", scan_format("%s", remedy),
               "sgl-kernel-compat %s is installed, but not active: %s", doctor->shim->version, why);
  else
    doctor_say(doctor, DOCTOR_FACT, "shim", NULL, "sgl-kernel-compat %s, active from `import torch` on",
               doctor->shim->version);
}

/* --- the old C++ functions ---------------------------------------------------------------------------------------- */

/* LD_PRELOAD: names separated by colons and blanks. */
static void check_preload(struct doctor *doctor) {
  char *text = scan_format("%s", setting("LD_PRELOAD")), *save = NULL;
  for (char *part = strtok_r(text, ": ", &save); part; part = strtok_r(NULL, ": ", &save)) {
    const char *slash = strrchr(part, '/');
    if (strncmp(slash ? slash + 1 : part, COMPAT, strlen(COMPAT)) != 0)
      continue;
    char *found = slash ? (doctor_exists(part) ? scan_format("%s", part) : NULL) : doctor_find_library(doctor, part);
    doctor->shim_preloaded |= found != NULL;
    if (found)
      doctor_say(doctor, DOCTOR_FACT, "shim-preload", NULL,
                 "LD_PRELOAD has %s: it answers the removed C++ functions everywhere", found);
    else
      doctor_say(doctor, DOCTOR_PROBLEM, "shim-preload", scan_format("correct LD_PRELOAD"),
                 "LD_PRELOAD names %s, which is not there: the loader goes on without it", part);
    free(found);
  }
  free(text);
}

/* Is the shim among what the library loads itself? */
static bool loads_shim(const struct audit_run *run, size_t object) {
  for (size_t i = 0; i < run->objects_count; i++)
    if (!run->objects[i].fault && is_shim(&run->objects[i]) && audit_reaches(run, object, i))
      return true;
  return false;
}

/* Libraries that need an old C++ function. The package loads the shim with RTLD_LOCAL, which helps none of them. */
static void check_bypassed(struct doctor *doctor) {
  const struct audit_run *run = &doctor->run;
  for (size_t i = 0; i < run->findings_count; i++) {
    const struct audit_finding *finding = &run->findings[i];
    const struct audit_object *object = &run->objects[finding->object];
    if (finding->mark != MARK_NEEDS || finding->verdict != AUDIT_SHIM || is_shim(object) ||
        loads_shim(run, finding->object))
      continue;
    if (doctor->shim_preloaded) {
      doctor_say(doctor, DOCTOR_FACT, "shim-answers", NULL, "%s needs %s, which the preloaded shim has", object->path,
                 finding->symbol->id);
      continue;
    }
    char *library =
        doctor->shim ? scan_format("%s/" LIBRARIES COMPAT ".0", doctor->sites[doctor->shim->site].path) : NULL;
    doctor_say(doctor, DOCTOR_PROBLEM, "shim-bypassed",
               library ? scan_format("LD_PRELOAD=%s, or link the library with it", library)
                       : scan_format("install sgl-kernel-compat and name its " COMPAT
                                     ".0 in LD_PRELOAD, or link the library with it"),
               "%s needs the C++ function %s, which the kernel no longer has%s", object->path, finding->symbol->id,
               library ? "; the Python package loads the shim with RTLD_LOCAL, so the library does not see it" : "");
    free(library);
  }
}

/* Who defines a removed function besides the kernel: the first in the process answers. */
static void check_other_definitions(struct doctor *doctor) {
  const struct audit_run *run = &doctor->run;
  const char *package = doctor->catalog->library.package;
  for (size_t i = 0; i < run->findings_count; i++) {
    const struct audit_finding *finding = &run->findings[i];
    const struct audit_object *object = &run->objects[finding->object];
    if (finding->mark != MARK_PROVIDES || !finding->row || is_shim(object) ||
        strncmp(object->path, package, strlen(package)) == 0)
      continue;
    doctor_say(
        doctor, DOCTOR_FACT, "other-definition", NULL, "%s defines %s itself%s", object->path, finding->symbol->id,
        object->symbolic ? ", and its own calls stay with that (-Bsymbolic)" : "; the shim leaves the call to it");
  }
}

void doctor_check_shim(struct doctor *doctor) {
  if (doctor->shim)
    check_active(doctor);
  else
    doctor_say(doctor, DOCTOR_FACT, "shim", NULL, "sgl-kernel-compat is not installed");
  check_preload(doctor);
  check_variables(doctor);
  check_policy(doctor);
  check_bypassed(doctor);
  check_other_definitions(doctor);
}
