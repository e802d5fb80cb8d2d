/* scanner/doctor_machine.c: what is said of a machine whose /proc, /dev and driver library are made by hand. */
#include "scanner/doctor.h"
#include "tests/unit.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];
static struct doctor doctor;
static struct doctor_package torch = {.name = "torch", .version = "2.8.0"};

/* driver: in /proc, library: what libcuda.so.1 is a link to; "" for none. Then looks. */
static void look(const char *driver, const char *library, bool amd, const char *torch_cuda) {
  strcpy(folder, "/tmp/test_doctor.XXXXXX");
  if (!mkdtemp(folder))
    abort();
  char *script = scan_format("cd %s && mkdir -p proc/driver/nvidia dev lib", folder), *longer;
#define ALSO(condition, ...)                                                                                           \
  if (condition) {                                                                                                     \
    longer = scan_format(__VA_ARGS__);                                                                                 \
    free(script);                                                                                                      \
    script = longer;                                                                                                   \
  }
  ALSO(*driver,
       "%s && echo 'NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  %s  Release Build' > "
       "proc/driver/nvidia/version",
       script, driver)
  ALSO(*library, "%s && touch lib/libcuda.so.%s && ln -s libcuda.so.%s lib/libcuda.so.1", script, library, library)
  ALSO(amd, "%s && touch dev/kfd", script)
  if (system(script) != 0)
    abort();
  free(script);
  char *libraries = scan_format("%s/lib", folder);
  setenv("LD_LIBRARY_PATH", libraries, 1);
  setenv("SGL_KERNEL_JIT_CACHE_DIR", libraries, 1);
  free(libraries);
  doctor = (struct doctor){.catalog = &catalog_builtin, .root = folder, .torch = &torch};
  doctor.context.names = audit_names_build(&catalog_builtin);
  doctor.torch_cuda = torch_cuda ? scan_format("%s", torch_cuda) : NULL;
  doctor_check_machine(&doctor);
}

/* The only problem or warning; "" when there is none. */
static const char *fault(enum doctor_level *level) {
  const struct doctor_fact *found = NULL;
  for (size_t i = 0; i < doctor.facts_count; i++) {
    if (doctor.facts[i].level == DOCTOR_FACT)
      continue;
    CU_ASSERT_PTR_NULL(found);
    found = &doctor.facts[i];
  }
  *level = found ? found->level : DOCTOR_FACT;
  return found ? found->text : "";
}

static void close_machine(void) {
  char *command = scan_format("rm -rf %s", folder);
  if (system(command) != 0)
    abort();
  free(command);
  doctor_free(&doctor);
}

static void fitting(void) {
  enum doctor_level level;
  look("570.124.06", "570.124.06", false, "12.8");
  UNIT_STRINGS(fault(&level), "");
  UNIT_STRINGS(doctor.driver, "570.124.06");
  CU_ASSERT_EQUAL(doctor.driver_cuda, 12080);
  close_machine();
  look("580.65.06", "580.65.06", false, "13.0");
  UNIT_STRINGS(fault(&level), "");
  CU_ASSERT_EQUAL(doctor.driver_cuda, 13000);
  close_machine();
}

static void library_of_another_driver(void) {
  enum doctor_level level;
  look("570.124.06", "550.54.14", false, "12.4");
  UNIT_CONTAINS(fault(&level), "the kernel module of the driver is 570.124.06, but ");
  UNIT_CONTAINS(fault(&level), "is of 550.54.14");
  CU_ASSERT_EQUAL(level, DOCTOR_PROBLEM);
  close_machine();
}

static void old_driver(void) {
  enum doctor_level level;
  look("550.54.14", "550.54.14", false, "13.0");
  UNIT_CONTAINS(fault(&level), "driver 550.54.14 knows CUDA up to 12.4, but torch 2.8.0 is built for CUDA 13.0");
  CU_ASSERT_EQUAL(level, DOCTOR_PROBLEM);
  close_machine();
  look("525.60.13", "525.60.13", false, "12.8"); /* a newer minor release runs on it */
  UNIT_STRINGS(fault(&level), "");
  close_machine();
}

/* B34: the CUDA wheels on a machine with an AMD GPU. */
static void amd(void) {
  enum doctor_level level;
  look("", "", true, "12.8");
  UNIT_CONTAINS(fault(&level), "this machine has an AMD GPU (/dev/kfd) and no NVIDIA driver");
  CU_ASSERT_EQUAL(level, DOCTOR_PROBLEM);
  CU_ASSERT(doctor.amd);
  close_machine();
  look("", "", true, NULL);
  UNIT_STRINGS(fault(&level), "");
  close_machine();
}

static void no_driver(void) {
  enum doctor_level level;
  look("", "", false, "12.8");
  if (doctor.driver_library)
    UNIT_SKIP("this machine has libcuda.so.1");
  else
    UNIT_CONTAINS(fault(&level), "no NVIDIA driver: neither libcuda.so.1 nor /proc/driver/nvidia; CUDA tensors");
  close_machine();
}

static void odd_texts(void) {
  static const char *const texts[] = {"x", "5.7", "570", "570.", "99999999999999.1", "....", "\\x1b[31m"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    look(texts[i], "", false, NULL);
    CU_ASSERT(doctor.facts_count >= 2);
    close_machine();
  }
}

static const struct unit_test tests[] = {
    {"fitting", fitting},       {"library_of_another_driver", library_of_another_driver},
    {"old_driver", old_driver}, {"amd", amd},
    {"no_driver", no_driver},   {"odd_texts", odd_texts},
};
UNIT_MAIN("doctor_machine", tests)
