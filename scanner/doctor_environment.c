/* Which environment, and the folders that its Python imports from: by their layout. The interpreter is not asked, since
 * it would run the code in .pth files. */
#include "scanner/doctor.h"
#include "scanner/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LARGEST_PTH ((size_t)1 << 20)
#define SITES_MOST 256

static bool is_folder(const char *path) {
  struct stat status;
  return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* Adds a folder once, if it is there. */
static void add_site(struct doctor *doctor, char *path, const char *why) {
  struct stat status, other;
  char *real = realpath(path, NULL);
  bool add = real && is_folder(real) && doctor->sites_count < SITES_MOST && stat(real, &status) == 0;
  for (size_t i = 0; i < doctor->sites_count && add; i++)
    add = stat(doctor->sites[i].path, &other) != 0 || other.st_ino != status.st_ino || other.st_dev != status.st_dev;
  free(path);
  if (!add) {
    free(real);
    return;
  }
  doctor->sites = scan_alloc(doctor->sites, (doctor->sites_count + 1) * sizeof *doctor->sites);
  doctor->sites[doctor->sites_count++] =
      (struct doctor_site){real, why, strcmp(real, "/usr/lib/python3/dist-packages") == 0};
}

/* A line of a .pth file is a folder, or code that starts with import. */
static void read_pth(struct doctor *doctor, const char *site, const char *name) {
  char message[256], *path = scan_format("%s/%s", site, name);
  size_t size;
  char *text = file_read(path, LARGEST_PTH, &size, message, sizeof message);
  free(path);
  for (char *line = text; line && *line;) {
    size_t end = strcspn(line, "\r\n");
    bool more = line[end] != '\0';
    line[end] = '\0';
    bool code = strncmp(line, "import ", 7) == 0 || strncmp(line, "import\t", 7) == 0;
    if (*line && *line != '#' && !code && end < PATH_MAX)
      add_site(doctor, *line == '/' ? scan_format("%s", line) : scan_format("%s/%s", site, line), "a .pth file");
    line += end + more;
  }
  free(text);
}

static void read_pth_files(struct doctor *doctor, size_t site) {
  size_t count;
  char **names = doctor_names_in(doctor->sites[site].path, ".pth", &count);
  for (size_t i = 0; i < count; i++) {
    if (*names[i] != '.')
      read_pth(doctor, doctor->sites[site].path, names[i]);
    free(names[i]);
  }
  free(names);
}

/* 12 of "python3.12" and of "3.12.4"; 0: something else. */
static unsigned minor_of(const char *text) {
  const char *at = strncmp(text, "python", 6) == 0 ? text + 6 : text;
  if (strncmp(at, "3.", 2) != 0)
    return 0;
  char *end;
  unsigned long minor = strtoul(at + 2, &end, 10);
  return end > at + 2 && minor < 1000 && (!*end || *end == '.') ? (unsigned)minor : 0;
}

/* The value of a key of pyvenv.cfg; owned by the caller, NULL: none. */
static char *venv_value(const char *prefix, const char *key) {
  char message[256], *path = scan_format("%s/pyvenv.cfg", prefix), *value = NULL;
  size_t size, length = strlen(key);
  char *text = file_read(path, LARGEST_PTH, &size, message, sizeof message);
  free(path);
  for (const char *line = text; line && *line && !value; line += strcspn(line, "\n"), line += *line == '\n') {
    const char *at = line + strspn(line, " ");
    if (strncmp(at, key, length) != 0)
      continue;
    at += length + strspn(at + length, " ");
    if (*at++ != '=')
      continue;
    at += strspn(at, " ");
    value = scan_format("%.*s", (int)strcspn(at, "\r\n"), at);
  }
  free(text);
  return value;
}

/* What the environment says of itself, else the newest that has a folder. */
static unsigned find_minor(const char *prefix) {
  static const char *const keys[] = {"version_info", "version"}, *const folders[] = {"lib", "lib64"};
  char real[PATH_MAX], *link = scan_format("%s/bin/python3", prefix);
  unsigned minor = 0;
  for (size_t i = 0; i < 2 && !minor; i++) {
    char *value = venv_value(prefix, keys[i]);
    minor = value ? minor_of(value) : 0;
    free(value);
  }
  if (!minor && realpath(link, real))
    minor = minor_of(strrchr(real, '/') + 1);
  free(link);
  for (size_t i = 0; i < 2 && !minor; i++) {
    char *folder = scan_format("%s/%s", prefix, folders[i]);
    size_t count;
    char **names = doctor_names_in(folder, "", &count);
    for (size_t k = 0; k < count; k++) {
      char *path = scan_format("%s/%s", folder, names[k]);
      unsigned here = strncmp(names[k], "python3.", 8) == 0 && is_folder(path) ? minor_of(names[k]) : 0;
      minor = here > minor ? here : minor;
      free(path);
      free(names[k]);
    }
    free(names);
    free(folder);
  }
  return minor;
}

static void add_prefix(struct doctor *doctor, const char *prefix) {
  unsigned minor = doctor->python_minor;
  add_site(doctor, scan_format("%s/lib/python3.%u/site-packages", prefix, minor), "site-packages");
  add_site(doctor, scan_format("%s/lib64/python3.%u/site-packages", prefix, minor), "site-packages");
  if (strcmp(prefix, "/usr") == 0)
    add_site(doctor, scan_format("/usr/local/lib/python3.%u/dist-packages", minor), "dist-packages");
  add_site(doctor, scan_format("%s/lib/python3.%u/dist-packages", prefix, minor), "dist-packages");
  add_site(doctor, scan_format("%s/lib/python3/dist-packages", prefix), "dist-packages");
}

static void add_python_path(struct doctor *doctor) {
  const char *list = getenv("PYTHONPATH");
  while (list && *list) {
    size_t length = strcspn(list, ":");
    if (length && length < PATH_MAX)
      add_site(doctor, scan_format("%.*s", (int)length, list), "PYTHONPATH");
    list += length + (list[length] == ':');
  }
}

static void add_user_site(struct doctor *doctor) {
  const char *base = getenv("PYTHONUSERBASE"), *home = getenv("HOME"), *off = getenv("PYTHONNOUSERSITE");
  if ((off && *off) || (!(base && *base) && !(home && *home)))
    return;
  bool own = base && *base;
  add_site(
      doctor,
      scan_format("%s%s/lib/python3.%u/site-packages", own ? base : home, own ? "" : "/.local", doctor->python_minor),
      "the user's site-packages");
}

/* All folders of a prefix, in the order of Python's own site module. */
static bool open_prefix(struct doctor *doctor, const char *prefix, char *message, size_t message_size) {
  char *config = scan_format("%s/pyvenv.cfg", prefix), *system = NULL, *home = NULL;
  bool venv = doctor_exists(config);
  free(config);
  doctor->prefix = scan_format("%s", prefix);
  doctor->python_minor = find_minor(prefix);
  if (venv) {
    system = venv_value(prefix, "include-system-site-packages");
    home = venv_value(prefix, "home");
  }
  bool alone = venv && !(system && strcasecmp(system, "true") == 0);
  add_python_path(doctor);
  size_t own = doctor->sites_count;
  if (venv)
    add_prefix(doctor, prefix);
  if (!alone)
    add_user_site(doctor);
  if (!venv) {
    add_prefix(doctor, prefix);
  } else if (!alone && home && strrchr(home, '/')) { /* the folder of the interpreter: PREFIX/bin */
    char *base = scan_format("%.*s", (int)(strrchr(home, '/') - home), home);
    add_prefix(doctor, base);
    free(base);
  }
  free(system);
  free(home);
  size_t count = doctor->sites_count;
  for (size_t i = own; i < count; i++)
    read_pth_files(doctor, i);
  if (doctor->sites_count > own)
    return true;
  snprintf(message, message_size,
           "%s%s%s: no Python environment: lib/python3.*/site-packages is not there; give a site-packages folder or "
           "the folder above its lib",
           doctor->given ? "" : doctor->how, doctor->given ? "" : " ", prefix);
  return false;
}

static bool is_site(const char *path) {
  const char *base = strrchr(path, '/') + 1;
  size_t count;
  if (strcmp(base, "site-packages") == 0 || strcmp(base, "dist-packages") == 0)
    return true;
  char **names = doctor_names_in(path, ".dist-info", &count);
  for (size_t i = 0; i < count; i++)
    free(names[i]);
  free(names);
  return count > 0;
}

/* A site-packages folder: PREFIX/lib/python3.12/site-packages. */
static void open_site(struct doctor *doctor, const char *real) {
  add_site(doctor, scan_format("%s", real), "given");
  char *prefix = scan_format("%s", real);
  for (int up = 0; up < 3 && strrchr(prefix, '/'); up++) {
    char *slash = strrchr(prefix, '/');
    if (up == 1)
      doctor->python_minor = minor_of(slash + 1);
    *slash = '\0';
  }
  if (doctor->python_minor)
    doctor->prefix = prefix;
  else
    free(prefix);
  read_pth_files(doctor, 0);
}

/* The python3 that a shell would run; owned by the caller, NULL: none. */
static char *find_python(void) {
  const char *path = getenv("PATH");
  while (path && *path) {
    size_t length = strcspn(path, ":");
    char *file = scan_format("%.*s/python3", (int)length, path);
    struct stat status;
    if (length && stat(file, &status) == 0 && S_ISREG(status.st_mode) && access(file, X_OK) == 0)
      return file;
    free(file);
    path += length + (path[length] == ':');
  }
  return NULL;
}

static bool is_script(const char *path) {
  char head[2] = "";
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  bool yes = fd >= 0 && read(fd, head, sizeof head) == sizeof head && memcmp(head, "#!", 2) == 0;
  if (fd >= 0)
    close(fd);
  return yes;
}

static void cut(char *path, int times) {
  for (; times > 0 && strrchr(path, '/'); times--)
    *strrchr(path, '/') = '\0';
}

/* The prefix of an interpreter: that of the virtual environment whose link it is, else that of the file. */
static bool open_python(struct doctor *doctor, char *message, size_t message_size) {
  char *python = find_python(), real[PATH_MAX];
  doctor->how = "python3 of PATH";
  if (!python || !realpath(python, real)) {
    snprintf(message, message_size,
             "no python3 in PATH and no VIRTUAL_ENV; give a site-packages folder or the folder "
             "above its lib");
    free(python);
    return false;
  }
  char *prefix = scan_format("%s", python);
  cut(prefix, 2);
  char *config = scan_format("%s/pyvenv.cfg", prefix);
  bool venv = doctor_exists(config);
  free(config);
  if (!venv) {
    free(prefix);
    prefix = scan_format("%s", real);
    cut(prefix, 2);
  }
  doctor->python = python;
  if (!venv && is_script(real)) { /* pyenv's, for one */
    snprintf(message, message_size,
             "the python3 of PATH, %s, is a script that chooses an interpreter when it runs; give the folder above lib "
             "of the one that is meant",
             python);
    free(prefix);
    return false;
  }
  bool good = open_prefix(doctor, *prefix ? prefix : "/", message, message_size);
  free(prefix);
  return good;
}

bool doctor_find_environment(struct doctor *doctor, char *message, size_t message_size) {
  const char *venv = getenv("VIRTUAL_ENV"), *wanted = doctor->given ? doctor->given : venv;
  if (!wanted || !*wanted) {
    if (!doctor->given)
      return open_python(doctor, message, message_size);
    snprintf(message, message_size, "'': %s", strerror(ENOENT));
    return false;
  }
  doctor->how = doctor->given ? "given" : "VIRTUAL_ENV";
  char *real = realpath(wanted, NULL);
  bool good = real && is_folder(real);
  if (!good) {
    snprintf(message, message_size, "%s%s: %s", doctor->given ? "" : "VIRTUAL_ENV ", wanted,
             real ? "not a folder" : strerror(errno));
  } else if (doctor->given && is_site(real)) {
    open_site(doctor, real);
    good = doctor->sites_count > 0;
    if (!good)
      snprintf(message, message_size, "%s: cannot be read", wanted);
  } else {
    good = open_prefix(doctor, real, message, message_size);
  }
  if (good && doctor->prefix && !doctor->python) {
    doctor->python = scan_format("%s/bin/python3", doctor->prefix);
    if (access(doctor->python, X_OK) != 0) {
      free(doctor->python);
      doctor->python = NULL;
    }
  }
  free(real);
  return good;
}
