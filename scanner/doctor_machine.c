/* The machine: GPU driver, and the folder in which the JIT keeps compiled kernels. */
#include "jit/internal.h"
#include "scanner/doctor.h"
#include "scanner/file.h"

#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define LARGEST_PROC ((size_t)4096)

/* --- the driver --------------------------------------------------------------------------------------------------- */

/* The newest CUDA release that a branch of the driver knows. (CUDA Toolkit Release Notes, "CUDA Toolkit and Minimum
 * Required NVIDIA Driver Version") */
static const struct {
  int branch, cuda;
} branches[] = {{580, 13000}, {575, 12090}, {570, 12080}, {565, 12070}, {560, 12060}, {555, 12050}, {550, 12040},
                {545, 12030}, {535, 12020}, {530, 12010}, {525, 12000}, {520, 11080}, {450, 11000}};

static int cuda_of(const char *driver) {
  int branch = atoi(driver);
  for (size_t i = 0; i < sizeof branches / sizeof *branches; i++)
    if (branch >= branches[i].branch)
      return branches[i].cuda;
  return 0;
}

/* The first number like 570.124.06 in a text; owned by the caller. */
static char *find_version(const char *text) {
  for (const char *at = text; *at; at++) {
    size_t length = strspn(at, "0123456789.");
    const char *dot = memchr(at, '.', length);
    if (dot && *at != '.' && (at == text || at[-1] == ' ') && dot - at >= 3)
      return scan_format("%.*s", (int)length, at);
    at += length ? length - 1 : 0;
  }
  return NULL;
}

/* The version in the name that libcuda.so.1 is a link to: libcuda.so.570.124.06. */
static char *library_version(const char *path) {
  char real[PATH_MAX];
  const char *name = realpath(path, real) ? strrchr(real, '/') + 1 : "";
  return strncmp(name, "libcuda.so.", 11) == 0 && strchr(name + 11, '.') ? scan_format("%s", name + 11) : NULL;
}

/* /proc has its files without a size. */
static char *read_proc(const char *path) {
  char text[LARGEST_PROC];
  FILE *file = fopen(path, "re");
  size_t size = file ? fread(text, 1, sizeof text - 1, file) : 0;
  if (file)
    fclose(file);
  text[size] = '\0';
  return size ? scan_format("%.*s", (int)strcspn(text, "\n"), text) : NULL;
}

static void find_driver(struct doctor *doctor, char **library) {
  char *version = scan_format("%s/proc/driver/nvidia/version", doctor->root),
       *amd = scan_format("%s/dev/kfd", doctor->root);
  char *line = read_proc(version);
  doctor->driver = line ? find_version(line) : NULL;
  doctor->driver_library = doctor_find_library(doctor, "libcuda.so.1");
  *library = doctor->driver_library ? library_version(doctor->driver_library) : NULL;
  doctor->amd = !doctor->driver && doctor_exists(amd);
  const char *known = *library ? *library : doctor->driver;
  doctor->driver_cuda = known ? cuda_of(known) : 0;
  free(line);
  free(version);
  free(amd);
}

static void check_driver(struct doctor *doctor) {
  char *library;
  find_driver(doctor, &library);
  bool wants = doctor->torch_cuda != NULL;
  int torch_major = wants ? atoi(doctor->torch_cuda) : 0;
  if (doctor->driver && library && strcmp(doctor->driver, library) != 0)
    doctor_say(doctor, DOCTOR_PROBLEM, "driver-mismatch",
               scan_format("restart the machine after an upgrade of the driver; in a container let the NVIDIA runtime "
                           "bring the library"),
               "the kernel module of the driver is %s, but %s is of %s: CUDA does not start", doctor->driver,
               doctor->driver_library, library);
  else if (wants && doctor->amd)
    doctor_say(doctor, DOCTOR_PROBLEM, "gpu-vendor", scan_format("install torch and the kernel package for ROCm"),
               "this machine has an AMD GPU (/dev/kfd) and no NVIDIA driver, but torch %s is built for CUDA %s",
               doctor->torch->version, doctor->torch_cuda);
  else if (wants && doctor->driver_cuda && torch_major > doctor->driver_cuda / 1000)
    doctor_say(doctor, DOCTOR_PROBLEM, "driver-old", doctor_remedy(doctor, "driver version is insufficient"),
               "driver %s knows CUDA up to %d.%d, but torch %s is built for CUDA %s",
               library ? library : doctor->driver, doctor->driver_cuda / 1000, doctor->driver_cuda % 1000 / 10,
               doctor->torch->version, doctor->torch_cuda);
  if (!doctor->driver && !doctor->driver_library)
    doctor_say(doctor, wants && !doctor->amd ? DOCTOR_WARNING : DOCTOR_FACT, "driver",
               wants && !doctor->amd ? doctor_remedy(doctor, "libcuda.so.1: cannot open shared object file") : NULL,
               "no NVIDIA driver: neither libcuda.so.1 nor /proc/driver/nvidia%s",
               wants ? "; CUDA tensors cannot be made here" : "");
  else
    doctor_say(doctor, DOCTOR_FACT, "driver", NULL, "NVIDIA driver %s%s%s%s%s",
               doctor->driver ? doctor->driver
               : library      ? library
                              : "of an unknown release",
               doctor->driver ? "" : " (library only, no kernel module is loaded)",
               doctor->driver_library ? ", " : ", no libcuda.so.1",
               doctor->driver_library ? doctor->driver_library : "",
               doctor->driver_cuda >= 13000 ? ", CUDA 13"
               : doctor->driver_cuda        ? ", CUDA up to 12"
                                            : "");
  free(library);
}

/* --- the cache folder --------------------------------------------------------------------------------------------- */

/* File systems by the number of statfs(2). */
static const struct {
  unsigned long type;
  const char *name;
  bool shared; /* over a network */
} systems[] = {{0x6969, "NFS", true},      {0x0bd00bd0, "Lustre", true},     {0xff534d42, "CIFS", true},
               {0xfe534d42, "SMB", true},  {0x47504653, "GPFS", true},       {0x00c36400, "Ceph", true},
               {0x5346414f, "AFS", true},  {0x01021997, "9P", true},         {0x19830326, "BeeGFS", true},
               {0x65735546, "FUSE", true}, {0x794c7630, "overlayfs", false}, {0x01021994, "tmpfs", false},
               {0xef53, "ext4", false},    {0x58465342, "XFS", false},       {0x9123683e, "Btrfs", false},
               {0x2fc12fc1, "ZFS", false}, {0x73717368, "squashfs", false}};

/* The folder, or the first above it that is there: it is the one in which it would be made. */
static void existing(char *path) {
  struct stat status;
  while (path[1] && stat(path, &status) != 0) {
    char *slash = strrchr(path, '/');
    slash[slash == path] = '\0';
  }
}

static const char *owner_name(uid_t user, char *buffer, size_t size) {
  FILE *users = fopen("/etc/passwd", "re"); /* getpwuid() would also ask services, some of them on the network */
  struct passwd *found = NULL;
  while (users && (found = fgetpwent(users)) && found->pw_uid != user)
    ;
  if (found)
    snprintf(buffer, size, "%s", found->pw_name);
  else
    snprintf(buffer, size, "user %u", (unsigned)user);
  if (users)
    fclose(users);
  return buffer;
}

static void check_cache(struct doctor *doctor) {
  struct jit_folder folder;
  jit_folder_find(JIT_FOLDER_CACHE, &folder);
  int opened = jit_folder_open(&folder, false);
  if (opened >= 0)
    close(opened);
  if (!folder.path[0]) {
    doctor_say(doctor, DOCTOR_WARNING, "jit-cache", scan_format("set SGL_KERNEL_JIT_CACHE_DIR to a folder of your own"),
               "the JIT has no cache folder, so every process compiles anew: %s", folder.problem);
    return;
  }
  char *there = scan_format("%s", folder.path), owner[64] = "?";
  existing(there);
  struct statfs system;
  struct stat status;
  const char *name = "an unknown file system";
  bool shared = false, known = statfs(there, &system) == 0;
  for (size_t i = 0; known && i < sizeof systems / sizeof *systems; i++)
    if (systems[i].type == (unsigned long)system.f_type) {
      name = systems[i].name;
      shared = systems[i].shared;
    }
  mode_t mode = 0;
  if (stat(there, &status) == 0) {
    owner_name(status.st_uid, owner, sizeof owner);
    mode = status.st_mode & 07777;
  }
  bool writable = access(there, W_OK | X_OK) == 0;
  const char *why = folder.problem[0] ? folder.problem : writable ? NULL : strerror(errno);
  unsigned long long room = known ? (unsigned long long)system.f_bavail * (unsigned long long)system.f_bsize >> 20 : 0;
  if (why)
    doctor_say(doctor, DOCTOR_WARNING, "jit-cache",
               scan_format("make it writable for this user only (chmod 700), or name another folder in "
                           "SGL_KERNEL_JIT_CACHE_DIR"),
               "the JIT's cache folder %s (from %s) is not used, so every process compiles anew: %s%s", folder.path,
               folder.source, folder.missing ? "it cannot be made: " : "", why);
  else if (known && room < 16)
    doctor_say(doctor, DOCTOR_WARNING, "jit-cache",
               scan_format("make room, or name another folder in SGL_KERNEL_JIT_CACHE_DIR"),
               "the JIT's cache folder %s (from %s) has %llu MiB left", folder.path, folder.source, room);
  char *where = folder.missing ? scan_format("not made yet; %s above it has", there) : scan_format("has");
  doctor_say(doctor, DOCTOR_FACT, "jit-cache-folder", NULL,
             "JIT cache %s (from %s), %s owner %s, mode %04o, on %s%s, %llu MiB free", folder.path, folder.source,
             where, owner, (unsigned)mode, name,
             shared ? " (a network: the first start of many processes is slow; sgl-jit pack makes a local one)" : "",
             room);
  free(where);
  free(there);
}

static void check_prebuilt(struct doctor *doctor) {
  struct jit_folder folder;
  char *library =
      doctor->shim ? scan_format("%s/sgl_kernel_jit/lib/libsgl_kernel_jit.so.0", doctor->sites[doctor->shim->site].path)
                   : NULL;
  if (!library)
    return;
  jit_library_file = library;
  jit_folder_find(JIT_FOLDER_PREBUILT, &folder);
  int opened = jit_folder_open(&folder, false);
  jit_library_file = NULL;
  if (opened >= 0) {
    close(opened);
    doctor_say(doctor, DOCTOR_FACT, "jit-prebuilt", NULL, "compiled kernels are also taken from %s (%s)", folder.path,
               folder.source);
  } else if (folder.problem[0]) {
    doctor_say(doctor, DOCTOR_WARNING, "jit-prebuilt", NULL, "the folder of prebuilt kernels %s (%s) is not used: %s",
               folder.path, folder.source, folder.problem);
  }
  free(library);
}

void doctor_check_machine(struct doctor *doctor) {
  check_driver(doctor);
  check_cache(doctor);
  check_prebuilt(doctor);
}
