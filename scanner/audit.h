/* sgl-migrate audit: what binaries need, have and get. Data flows down this list; nothing below calls upwards.
 *
 *   command_audit.c       options, exit status
 *   audit.c               one run: files below the paths, worker threads, order
 *   audit_archive.c       wheels, zip, tar and ar files, read in place (libarchive); audit_member.c: one member;
 *                         unpack.c: what is packed as a whole
 *   audit_image.c         images of docker save and OCI: which layer a file is seen from
 *   audit_links.c         hard links in archives
 *   audit_process.c       what a running process has mapped
 *   audit_kind.c          what a file is
 *   audit_elf.c           one ELF file: identity, libraries (libelf); audit_symbols.c: its symbols,
 *                         audit_count.c: how many
 *   audit_sections.c      its read-only strings, CUDA fat binaries and build id
 *   audit_names.c         which symbols and strings are of the catalog, which are torch's
 *   audit_resolve.c       which file answers a library or a symbol; audit_loader.c: where ld.so looks
 *   audit_scope.c         which files are loaded together
 *   audit_catalog.c       what the catalog says of a name for one file and release
 *   audit_verdict.c       one verdict for each reference
 *   audit_report.c        rows and text; audit_json.c, audit_sarif.c: the other forms
 *
 * Files are never trusted: every table is checked against the size of its file, all tables of one file together cannot
 * cost more than that, and archives have limits. Path names of members are labels; nothing is unpacked to a path. */
#ifndef SGL_SCANNER_AUDIT_H
#define SGL_SCANNER_AUDIT_H

#include "scanner/arena.h"
#include "scanner/scanner.h"

#include <stdio.h>

/* --- what is read ------------------------------------------------------------------------------------------------- */

/* What an archive may cost; all counts are of one archive with those inside of it. */
struct audit_limits {
  uint64_t member;  /* bytes of one member */
  uint64_t total;   /* bytes unpacked */
  uint64_t ratio;   /* bytes unpacked for each byte of the archive; from AUDIT_RATIO_FROM bytes on */
  uint64_t members; /* how many */
  uint64_t depth;   /* archives in archives */
};
#define AUDIT_RATIO_FROM ((uint64_t)64 << 20)
extern const struct audit_limits audit_default_limits;

struct audit_symbol {
  const char *name;
  const char *version; /* NULL: none */
  bool weak;
  bool hidden;                          /* defined for the linker only */
  const struct catalog_symbol *catalog; /* NULL: no name of the catalog */
};

struct audit_needed {
  const char *name;
  enum {
    NEEDED_FOUND,   /* where ld.so looks */
    NEEDED_PRESENT, /* in what was audited, but ld.so does not look there: somebody has to load it first */
    NEEDED_OUTSIDE, /* not in the archive; where it will be is not known */
    NEEDED_MISSING, /* nowhere where ld.so looks */
  } state;
  const char *place; /* FOUND and PRESENT: its label; MISSING: where ld.so looks, for a person */
  size_t object;     /* in run->objects, SIZE_MAX: not read */
};

/* A version that a library is to define. */
struct audit_version {
  const char *library, *name; /* "libstdc++.so.6", "GLIBCXX_3.4.30" */
  bool weak;                  /* the loader only warns */
};

/* A whole string in read-only data: "sgl_kernel::x" or the mangled name of a function of the catalog. */
struct audit_string {
  const char *text;
  const struct catalog_symbol *catalog; /* NULL: an operator that the catalog does not know */
  bool operator;                        /* else a mangled name */
};

struct audit_code {
  unsigned arch; /* 90 of sm_90 */
  char suffix;   /* 'a' of sm_90a, 'f', or 0 */
  bool ptx;      /* else a cubin */
  unsigned count;
};

#define AUDIT_NO_LAYER UINT32_MAX

/* One ELF file, or one that should have been one. All texts live in the list's arena. */
struct audit_object {
  const char *path;     /* of the file in the file system, below its PATH */
  const char *member;   /* inside of that: "pkg/_C.so", "inner.whl!pkg/_C.so"; NULL: it is the file itself */
  const char *unit;     /* of a member of a static archive: the same pointer for all of its members; else NULL */
  const char *fault;    /* why it is not analysed; NULL: it is, and only then the rest is filled */
  size_t input;         /* of the run */
  unsigned layer;       /* of an image, from 0 */
  bool outside;         /* belongs to none of the PATHs: it was read because a library is looked for there */
  bool packed;          /* in an archive that lies in a folder: not installed there, so it answers no file of that */
  const char *location; /* "/usr/lib/libm.so.6": what the loader would call it; of an archive its member's path */

  const char *machine; /* "x86-64" */
  uint16_t type;       /* ET_ of elf.h */
  bool big_endian, bind_now, pie;
  bool symbolic; /* its own calls stay with its own definitions (-Bsymbolic), whoever is loaded before */
  const char *build_id, *soname, *rpath, *runpath; /* NULL: none */
  struct audit_needed *needed;
  size_t needed_count;
  struct audit_version *needed_versions;
  size_t needed_versions_count;
  const char **versions; /* that it defines */
  size_t versions_count;
  struct audit_symbol *undefined;
  size_t undefined_count;
  uint64_t *defined; /* audit_hash of the names of exported symbols, sorted */
  size_t defined_count;
  struct audit_symbol *exported; /* the same with their names; only when the run keeps them */
  struct audit_symbol *provides; /* those of the catalog, of an object file also hidden ones */
  size_t provides_count;
  struct audit_string *strings;
  size_t strings_count;
  const char **schemas; /* of operators that it registers for the catalog's namespace: "x(Tensor a) -> Tensor" */
  size_t schemas_count;
  const struct catalog_symbol **inferred; /* whose operators it may register by name: "x" */
  size_t inferred_count;
  struct audit_code *code;
  size_t code_count;
  const char *glibc, *glibcxx, *cxxabi;                /* newest version needed: "2.34"; NULL: none */
  unsigned torch_symbols;                              /* undefined C++ symbols of torch */
  unsigned torch_new_strings, torch_old_strings;       /* of them with std::string of the new and of the old C++ ABI */
  unsigned torch_stable;                               /* undefined symbols of torch's C ABI */
  unsigned exported_new_strings, exported_old_strings; /* exported torch symbols with std::string */
};

/* A name in the file system of a PATH that is looked up later. */
struct audit_place {
  const char *path; /* without a slash in front */
  const char *link; /* target of a symbolic link; NULL: something else */
  const char *hard; /* of a hard link in an archive: the file that it is another name of; else NULL */
  unsigned hard_layer;
  enum {
    PLACE_FILE,
    PLACE_FOLDER,   /* of an image only */
    PLACE_WHITEOUT, /* of an image: the path is gone from the layers below */
    PLACE_OPAQUE,   /* of an image: all that is in this folder in the layers below is gone */
  } kind;
  unsigned layer; /* of an image */
  size_t object;  /* index in the list, SIZE_MAX: none */
};

/* The kernel wheels that were found, by their dist-info; NULL: none. Two releases of different names lie over each
 * other in one folder after many an upgrade: the newer one decides. */
struct audit_kernels {
  const char *version, *distribution;
  const char *other_version, *other_distribution; /* another one that is there; NULL: none */
};

struct audit_image;

/* What one file gave. Filled by one worker. */
struct audit_list {
  struct arena arena;
  struct audit_object *objects;
  size_t objects_count, objects_capacity;
  struct audit_place *places;
  size_t places_count, places_capacity;
  uint8_t *cache; /* etc/ld.so.cache of an archive or a container root; owned */
  size_t cache_size;
  struct audit_image *image; /* docker save or OCI: places and objects have layers; NULL: it is none */
  bool archive;              /* an archive or image: places are those of its members */
  struct audit_kernels kernels;
  const char *torch; /* version of torch by its dist-info; NULL: none */
};

/* What all workers read. */
struct audit_context {
  const struct catalog *catalog;
  struct audit_names *names;
  struct audit_limits limits;
  bool keep_symbols;
  bool joined;       /* all PATHs are of one environment: the torch of one is that of the others */
  bool keep_schemas; /* also of a file that does not name the namespace: in code a short text is no string */
};

struct audit_names;
struct audit_names *audit_names_build(const struct catalog *catalog);
void audit_names_free(struct audit_names *names);
uint64_t audit_hash(const char *text, size_t size);
/* The symbol whose C++ function has this mangled name; NULL: none. */
const struct catalog_symbol *audit_function(const struct audit_names *names, const char *name, uint64_t hash);
const struct catalog_symbol *audit_operator(const struct audit_names *names, const char *name, size_t size);
/* Is the mangled name one of at::, c10:: or torch::? */
bool audit_is_torch(const char *name);
/* Is it another C++ function of torch: of caffe2 or c10d, or of its module for Python (THPVariable_Wrap)? */
bool audit_is_torch_else(const char *name);
/* Is it a function of torch's C ABI? */
bool audit_is_torch_c(const char *name);
/* Has its signature a std::string: 1 of the new C++ ABI, -1 of the old one, else 0. */
int audit_cxx_abi(const char *name);

/* Adds an object, zeroed but for its labels, which are copied. Valid until the next one is added. */
struct audit_object *audit_add(struct audit_list *list, const char *path, const char *member);
/* Marks it, once: the first reason stays. */
__attribute__((format(printf, 3, 4))) void audit_fault(struct audit_list *list, struct audit_object *object,
                                                       const char *format, ...);
struct audit_place *audit_add_place(struct audit_list *list, const char *path, const char *link, size_t object);
/* Notes what the path of a file says: the version of the kernel wheel. Also for files that are not read. */
void audit_note_path(const struct audit_context *context, struct audit_list *list, const char *path);
/* One more kernel distribution. */
void audit_take_kernel(struct audit_kernels *kernels, const char *version, const char *distribution);
/* What it owns outside of the list's arena. */
void audit_object_free(struct audit_object *object);
void audit_list_free(struct audit_list *list);

enum audit_kind { AUDIT_OTHER, AUDIT_ELF, AUDIT_AR, AUDIT_ARCHIVE, AUDIT_BROKEN };
/* What a file is, by its name and first bytes; *why is set for AUDIT_BROKEN: named like a library or wheel, but none.
 */
enum audit_kind audit_kind_of(const char *name, const uint8_t *bytes, size_t size, bool named, const char **why);
#define AUDIT_HEAD 512 /* bytes that audit_kind_of wants to see */
/* A zip file may begin with something else: a program that unpacks it, "#!/usr/bin/python3". Has it such a name? */
bool audit_may_be_zip(const char *name);
/* Is its end that of a zip file? */
bool audit_ends_as_zip(int fd, uint64_t size, bool comment);

/* Reads an ELF file of `size` bytes into object (the last one added). */
void audit_elf(const struct audit_context *context, struct audit_list *list, struct audit_object *object, int fd,
               uint64_t size);
/* Reads a wheel, zip, tar or ar file. */
void audit_archive(const struct audit_context *context, struct audit_list *list, int fd, const char *path,
                   enum audit_kind kind);
/* Reads an image that lies unpacked in a folder. */
void audit_image_folder(const struct audit_context *context, struct audit_list *list, const char *folder,
                        const char *path);

/* --- images (audit_image.c) --------------------------------------------------------------------------------------- */

/* Does an archive whose first member has this name look like an image? */
bool audit_image_begins(const char *member);
/* Is the folder an image: an index.json with manifests, or a manifest.json with layers? */
bool audit_image_unpacked(const char *folder);
struct audit_image *audit_image_start(void);
void audit_image_free(struct audit_image *image);
/* Keeps a JSON document of the image: its manifest, or what may lead there; takes the bytes. */
void audit_image_document(struct audit_image *image, const char *member, uint8_t *bytes, size_t size);
#define AUDIT_DOCUMENT_MOST ((uint64_t)4 << 20) /* what registries take */
/* A layer or a link to one; returns its number, in the order of the archive. AUDIT_NO_LAYER: there are too many. */
unsigned audit_image_layer(struct audit_image *image, const char *member);
void audit_image_link(struct audit_image *image, const char *member, const char *target);
/* Keeps etc/ld.so.cache of a layer; takes the bytes. */
void audit_image_cache(struct audit_image *image, unsigned layer, uint8_t *bytes, size_t size);
/* A member of a layer; false: a folder, link or whiteout, nothing to be read. */
bool audit_image_place(struct audit_list *list, unsigned layer, const struct audit_place *member);
/* After the last member: puts the layers into the order of the manifest, and drops what is not to be seen. */
void audit_image_finish(const struct audit_context *context, struct audit_list *list, const char *path);

/* --- hard links (audit_links.c) ----------------------------------------------------------------------------------- */

/* Sorts the places by path, the upper layer first, and gives each hard link the object of its file. */
void audit_links(struct audit_list *list);
/* The hard links that are seen (`seen` of each place), for audit_rename; owned by the caller. */
struct audit_alias;
struct audit_alias *audit_aliases(const struct audit_list *list, const bool *seen, size_t *count);
/* A file whose own name is hidden gets that of a link; false: none is seen. */
bool audit_rename(struct audit_list *list, struct audit_object *object, const struct audit_alias *aliases,
                  size_t count);

/* --- the run (audit.c) -------------------------------------------------------------------------------------------- */

enum audit_world {
  WORLD_HOST,    /* files of this machine: ld.so's folders are its own */
  WORLD_ROOT,    /* a container root or image: a file system of its own */
  WORLD_ARCHIVE, /* no ld.so at all: a wheel, a tar */
  WORLD_PROCESS, /* what is mapped has been found already */
};

struct audit_input {
  const char *given; /* as on the command line; "--pid 7" for a process */
  const char *base;  /* WORLD_HOST: absolute path of the folder that paths are below, "" for the root */
  bool folder;
  enum audit_world world;
  size_t first, count;        /* objects */
  struct audit_place *places; /* sorted by path */
  size_t places_count;
  const uint8_t *cache; /* etc/ld.so.cache; WORLD_HOST: of this machine */
  size_t cache_size;
};

/* What is said of one object. */
enum audit_mark { MARK_NEEDS, MARK_NEEDS_WEAK, MARK_PROVIDES, MARK_STRING, MARK_TORCH, MARK_SYMBOL, MARK_LIBRARY };
enum audit_verdict {
  AUDIT_ALIVE,    /* answered */
  AUDIT_SHIM,     /* the shim has it */
  AUDIT_REMOVED,  /* gone */
  AUDIT_OPTIONAL, /* weak: the library loads without it */
  AUDIT_TORCH,    /* torch of another release or C++ ABI */
  AUDIT_UNKNOWN,  /* nothing that was audited has it, and the catalog does not know it */
  AUDIT_MISSING,  /* a library that is not there */
  AUDIT_NOTE,     /* a definition, no reference */
};
struct audit_finding {
  size_t object;
  enum audit_mark mark;
  enum audit_verdict verdict;
  const struct catalog_symbol *symbol; /* NULL: not of the catalog */
  const char *name;                    /* as it is in the file: a symbol, a string, a library */
  bool row;                            /* removed in the kernel release: a row of the contract */
  char *message;                       /* owned */
};

struct audit_run {
  const struct audit_context *context;
  struct audit_input *inputs;
  size_t inputs_count;
  struct audit_list **lists; /* keep what the objects point to */
  size_t lists_count;
  struct audit_object *objects;
  size_t objects_count;
  struct audit_finding *findings; /* by object, then mark, name */
  size_t findings_count, findings_capacity;
  const char *kernel;      /* release that is checked against */
  const char *kernel_from; /* "--kernel", the distribution of the environment, "the newest of the catalog" */
  bool kernel_there;       /* a kernel wheel was among the files */
  bool environment;        /* the verdicts are against what was audited itself */
  /* What is installed there, and what only lies in archives: that decides where nothing is installed. */
  struct audit_kernels kernels, packed_kernels;
  const char *torch, *packed_torch; /* release; NULL: none */
  char *text;                       /* of kernel_from; owned */
  char **left_out;                  /* links that lead elsewhere, one line each; owned */
  size_t left_out_count, left_out_capacity;
  size_t files;      /* looked at */
  uint64_t *exports; /* hashes of all exported names: open addressing, 0 is free */
  bool *installed;   /* of each: not only files in archives of a folder export it */
  size_t exports_mask;
  /* Objects that define functions of the catalog, and that may register operators: few. */
  size_t *definers, *registrars;
  size_t definers_count, registrars_count;
  uint8_t *host_cache; /* /etc/ld.so.cache; NULL: not needed */
  size_t host_cache_size;
};

/* Reads everything. Returns false after writing one line when a path is not there. pid 0: none. */
bool audit_run(struct audit_run *run, char *const *paths, size_t paths_count, long pid, unsigned threads, char *message,
               size_t message_size);
void audit_free(struct audit_run *run);
/* audit_process.c: one object for each file that the process has mapped. */
bool audit_process(const struct audit_context *context, struct audit_list *list, long pid, size_t *files, char *message,
                   size_t message_size);
/* audit_resolve.c: fills in the needed libraries' states and reads libraries of the host that they lead to. */
void audit_resolve(struct audit_run *run);
/* May a file answer another one? What lies packed in a folder only answers its like. */
bool audit_may_answer(const struct audit_run *run, size_t object, size_t other);
/* Does anything that was read, and that may answer the object, export it? */
bool audit_exported(const struct audit_run *run, size_t object, uint64_t hash);
bool audit_exports(const struct audit_object *object, uint64_t hash);
/* Has the file a schema of this operator, without its namespace? */
bool audit_has_schema(const struct audit_object *object, const char *name);
/* Has it the operator's name alone, as a file of the kernel that leaves the schema to torch? */
bool audit_has_name(const struct audit_object *object, const char *name);
/* audit_catalog.c: which release is checked against: that of --kernel, else what is there. */
void audit_choose_kernel(struct audit_run *run, const char *kernel);
/* audit_loader.c: where ld.so looks for a name after RPATH and RUNPATH: its cache, its own folders. Calls found() with
 * each absolute path until it returns true. */
bool audit_loader(const uint8_t *cache, size_t cache_size, const struct audit_object *object, const char *name,
                  bool (*found)(void *user, const char *path), void *user);
/* The folders, for a person. */
const char *audit_loader_folders(const struct audit_object *object);

/* --- what is loaded together (audit_scope.c) ---------------------------------------------------------------------- */

struct audit_scope;
struct audit_scope *audit_scope_start(const struct audit_run *run, size_t object);
void audit_scope_free(struct audit_scope *scope);
/* Was everything found and read that the object and its libraries need? Asked first. */
bool audit_scope_complete(const struct audit_scope *scope);
/* Does a file that is loaded together with the object export it? */
bool audit_scope_has(struct audit_scope *scope, uint64_t hash);
/* Is `other` the object itself, or loaded because of it? */
bool audit_reaches(const struct audit_run *run, size_t object, size_t other);
/* The first file that exports it, loaded or not; SIZE_MAX: none. */
size_t audit_exporter(const struct audit_run *run, size_t object, uint64_t hash);
/* A module of Python: "pkg/_C.abi3.so" that exports PyInit__C. */
bool audit_is_module(const struct audit_object *object);

/* --- what the catalog says (audit_catalog.c) ---------------------------------------------------------------------- */

/* Has this layer of the symbol left before the run's kernel release, on the file's platform? */
bool audit_gone(const struct audit_run *run, const struct audit_object *object, const struct catalog_symbol *symbol,
                enum catalog_layer layer);
/* Is the run's kernel release older than the symbol? */
bool audit_not_yet(const struct audit_run *run, const struct catalog_symbol *symbol);
/* All texts are owned by the caller.
 * Why the kernel has it not: "left sgl_kernel in 0.4.5 (C++ function, #21531, 2026-06-26)". */
char *audit_left(const struct audit_run *run, const struct audit_object *object, const struct catalog_symbol *symbol,
                 enum catalog_layer layer);
/* That it has it: "kernel 0.4.6 has it". */
char *audit_has(const struct audit_run *run, const struct audit_object *object, const struct catalog_symbol *symbol,
                enum catalog_layer layer);
/* What to use instead. */
char *audit_instead(const struct catalog_symbol *symbol, enum catalog_layer layer);
/* " (stage warn, served until 2027-01-01)" */
char *audit_stage(const struct catalog_symbol *symbol);

/* --- verdicts (audit_verdict.c) ----------------------------------------------------------------------------------- */

void audit_judge(struct audit_run *run, const char *kernel);

/* --- reports ------------------------------------------------------------------------------------------------------ */

int audit_status(const struct audit_run *run);
const char *audit_verdict_word(enum audit_verdict verdict);
/* "a.whl!pkg/_C.so", with its PATH in front when there are several; owned by the caller. */
char *audit_label(const struct audit_run *run, const struct audit_object *object, bool member);
bool audit_report_text(const struct audit_run *run);
bool audit_report_tsv(const struct audit_run *run);
bool audit_report_json(const struct audit_run *run);
bool audit_report_sarif(const struct audit_run *run);
/* What was not analysed, on standard error. */
void audit_report_faults(const struct audit_run *run);

#endif
