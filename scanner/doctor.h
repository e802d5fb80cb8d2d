/* sgl-migrate doctor: what an installed environment is, and what is wrong with it. Nothing is run but by --import, and
 * nothing is written. Data flows down this list.
 *
 *   command_doctor.c       options, exit status
 *   doctor.c               one run: the order, the facts
 *   doctor_environment.c   which environment: the folders that Python imports from
 *   doctor_packages.c      which distributions there are, who owns the package, torch, the pin of sglang
 *   doctor_record.c        RECORD against the disk, files and folders that nobody owns
 *   doctor_binaries.c      what an audit says of the kernel's libraries, torch, CUDA runtimes
 *   doctor_machine.c       driver and GPU, cache folder of the JIT
 *   doctor_nvrtc.c         the NVRTC that the JIT would find
 *   doctor_shim.c          whether the shim is active, and for whom it is bypassed
 *   doctor_names.c         who answers each name
 *   doctor_import.c        --import: what a process really has
 *   doctor_report.c        text and JSON */
#ifndef SGL_SCANNER_DOCTOR_H
#define SGL_SCANNER_DOCTOR_H

#include "scanner/audit.h"
#include "scanner/dist_info.h"

#include <jansson.h>

enum doctor_level {
  DOCTOR_PROBLEM, /* something does not start, or fails when it is called */
  DOCTOR_WARNING, /* something may */
  DOCTOR_FACT,
};

struct doctor_fact {
  enum doctor_level level;
  const char *id; /* "kernel-owners": what it is about, the same in every release */
  char *text;     /* what is, and why it matters; owned */
  char *remedy;   /* owned; NULL: none */
};

/* A folder that Python imports from, in that order. */
struct doctor_site {
  char *path;      /* absolute */
  const char *why; /* "site-packages", "PYTHONPATH", "a .pth file", ... */
  bool debian;     /* packages of Debian, which have no RECORD */
};

struct doctor_package {
  char *name, *version; /* owned */
  char *info;           /* path of its dist-info folder; owned */
  size_t site;
  struct dist_info_record record;
  bool has_record;
  char *source;        /* of an editable install: where it is; owned, NULL: none */
  bool owns;           /* files of the kernel's import package */
  size_t wrong, right; /* of its files, once checked */
};

enum doctor_layer { DOCTOR_PYTHON, DOCTOR_OPERATOR, DOCTOR_CXX, DOCTOR_LAYERS };
enum doctor_provider {
  DOCTOR_NEVER,     /* the name has no such layer */
  DOCTOR_KERNEL,    /* the installed kernel */
  DOCTOR_SHIM,      /* the shim, with this project's kernel */
  DOCTOR_ROUTE,     /* the shim, with a function of another library that is installed */
  DOCTOR_TOMBSTONE, /* the shim, with an error that gives advice */
  DOCTOR_NOBODY,
};
struct doctor_name {
  const struct catalog_symbol *symbol;
  enum doctor_provider providers[DOCTOR_LAYERS];
  const char *route; /* of DOCTOR_ROUTE: the library's module */
  char *instead;     /* owned */
};

struct doctor {
  const struct catalog *catalog;
  const char *root; /* in front of /proc and /dev; "" for this machine */
  bool import;      /* --import */
  const char *given;
  const char *how;       /* "given", "VIRTUAL_ENV", "python3 of PATH" */
  char *prefix, *python; /* owned; NULL: not known */
  unsigned python_minor; /* of Python 3; 0: not known */
  struct doctor_site *sites;
  size_t sites_count;
  struct doctor_package *packages;
  size_t packages_count;
  /* NULL: not installed */
  const struct doctor_package *kernel, *torch, *shim, *sglang;
  char *kernel_version;          /* of the distribution, else of the package's own text; owned, NULL: not known */
  char *package_folder;          /* where `import sgl_kernel` leads; owned, NULL: nowhere */
  bool package_runs;             /* it has code */
  char *torch_cuda, *torch_hip;  /* of torch/version.py; owned, NULL: none */
  char *driver, *driver_library; /* "570.124.06", "/usr/lib/.../libcuda.so.1"; owned, NULL: none */
  int driver_cuda;               /* 12080: the newest CUDA release that the driver knows; 0: not known */
  bool amd;                      /* an AMD GPU and no NVIDIA driver */
  bool shim_active;              /* in Python */
  bool standalone;               /* the shim provides the import package, since nobody else does */
  bool shim_preloaded;           /* in LD_PRELOAD */
  struct audit_context context;
  struct audit_run run;
  json_t *imported; /* what the process of --import says; owned, NULL: nothing */
  struct doctor_fact *facts;
  size_t facts_count, facts_capacity;
  struct doctor_name *names;
  size_t names_count;
};

/* --- doctor.c --- */

/* false after writing one line: there is no such environment. */
bool doctor_run(struct doctor *doctor, unsigned threads, char *message, size_t message_size);
void doctor_free(struct doctor *doctor);
/* Adds a fact; the remedy is taken, NULL when there is none. */
__attribute__((format(printf, 5, 6))) void doctor_say(struct doctor *doctor, enum doctor_level level, const char *id,
                                                      char *remedy, const char *format, ...);
/* "a, b, c and 4 more", or all of them. */
struct doctor_list {
  bool whole;
  char *text;
  size_t count;
};
void doctor_list_add(struct doctor_list *list, const char *word);
/* What the list says; owned by the caller, the list is empty then. */
char *doctor_list_take(struct doctor_list *list);
/* The names in a folder that end so, sorted; they and the list are owned by the caller. */
char **doctor_names_in(const char *folder, const char *ending, size_t *count);
/* Is there such a file or folder? */
bool doctor_exists(const char *path);
/* The value of `name = "value"` in a Python file, NULL when there is none; owned by the caller. */
char *doctor_python_value(const char *path, const char *name);
/* The name of a distribution with -, _ and . alike, case ignored. */
bool doctor_same_name(const char *a, const char *b);

/* Where ld.so looks for a library by name: LD_LIBRARY_PATH, its cache, its own folders; owned by the caller, NULL: not
 * there. */
char *doctor_find_library(const struct doctor *doctor, const char *name);
/* What `explain` has to say of a message of the loader: the remedy; owned by the caller, NULL: nothing. */
char *doctor_remedy(const struct doctor *doctor, const char *message);

/* --- the parts, in the order in which they run --- */

bool doctor_find_environment(struct doctor *doctor, char *message, size_t message_size);
void doctor_read_packages(struct doctor *doctor);
void doctor_check_packages(struct doctor *doctor);
/* doctor_record.c: compares RECORD with the disk, the hashes only of an own package's code; counts into wrong and
 * right, and says what is wrong if `loud`. */
void doctor_check_record(struct doctor *doctor, struct doctor_package *package, bool hashes, bool loud);
void doctor_find_orphans(struct doctor *doctor);
/* Reads the libraries. */
bool doctor_audit(struct doctor *doctor, unsigned threads, char *message, size_t message_size);
void doctor_check_machine(struct doctor *doctor); /* also the driver, which others ask for */
void doctor_check_shim(struct doctor *doctor);
void doctor_check_binaries(struct doctor *doctor);
void doctor_check_nvrtc(struct doctor *doctor);
void doctor_find_names(struct doctor *doctor);
void doctor_import(struct doctor *doctor);

/* --- doctor_report.c --- */

bool doctor_report_text(const struct doctor *doctor, bool all);
bool doctor_report_json(const struct doctor *doctor, bool all);

#endif
