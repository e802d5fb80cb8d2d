/* The scanner's own layers, top to bottom; each only calls downwards.
 *
 *   main.c, command*  the command line: options, exit status
 *   fix*.c            what is done with the edits: checked, shown, asked for, written (fix.h)
 *   scan.c            one run: walk, read, prefilter, index, analyse (worker threads), sort
 *   crew.c            worker threads, progress on a terminal
 *   walk.c, load.c    which files belong to the tree (walk_git.c: what git ignores); reading them
 *   cache*.c          results of an earlier scan that still hold
 *   pins*.c           requirement pins: the defaults of --kernel and --to (pins.h)
 *   prefilter.c       which files can contain a catalog name at all (Hyperscan over the bytes)
 *   python_*.c        the Python front: tree-sitter, scopes, bindings, import rewriting, notebooks
 *   cxx_*.c           the C, C++ and CUDA front: lexer, libclang with the catalog's prelude
 *   text_*.c          build files, documentation, scripts, patches, other languages
 *   changed.c, *_changed.c  calls of names that have another form than before (changed.h)
 *   conditions.c      conditions around a use that are narrower than the new function, for the fronts
 *   edit.c            applies edits to files, atomically
 *   report*.c         what a run has to say, in all forms (report.h)
 *   rules.c           catalog look-ups that more than one front needs
 *
 * A front reads bytes and gives findings and edits. It never writes a file and never prints. */
#ifndef SGL_SCANNER_H
#define SGL_SCANNER_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "catalog/catalog.h"

enum verdict { VERDICT_REWRITE, VERDICT_REPORT, VERDICT_MENTION };

enum evidence {
  EVIDENCE_AST,      /* a node of a syntax tree or of libclang's AST */
  EVIDENCE_LEXICAL,  /* the lexer only: inactive branch, macro body, call without a node */
  EVIDENCE_STRING,   /* a string that a loader or registry is given */
  EVIDENCE_IMPORT,   /* an import statement */
  EVIDENCE_BUILD,    /* an entry of a build file */
  EVIDENCE_ELF,      /* a symbol or string of a binary */
  EVIDENCE_NOTEBOOK, /* a notebook cell */
  EVIDENCE_TEXT,     /* comment, documentation, log text */
};

/* SARIF level of a result; the contract: error = live use (also one whose guard silently loses kept names), warning =
 * another guarded use, note = mention. */
enum level { LEVEL_ERROR, LEVEL_WARNING, LEVEL_NOTE };

enum language {
  LANGUAGE_NONE, /* not text, or nothing any front reads */
  LANGUAGE_PYTHON,
  LANGUAGE_NOTEBOOK,
  LANGUAGE_CXX, /* C, C++, CUDA, MUSA, HIP, headers */
  LANGUAGE_TEXT,
};

/* Does a finding count? */
enum standing {
  STANDING_OPEN,    /* yes */
  STANDING_IGNORED, /* a comment in the file accepts it */
  STANDING_KNOWN,   /* an entry of the baseline accepts it */
};

struct finding {
  uint32_t line;   /* 1-based; lines end at \n only */
  uint32_t column; /* 1-based, in bytes, of the name itself */
  const struct catalog_symbol *symbol;
  enum verdict verdict;
  enum evidence evidence;
  enum level level;
  char *message; /* one sentence: why this verdict, what to do; owned */
  enum standing standing;
  const struct ignore *ignore; /* the comment, of STANDING_IGNORED */
};

/* Replace bytes [start, end) of the file's original bytes by text. start == end inserts. Edits of one group make sense
 * only together; those of group 0 go with any other edit of the file. */
struct edit {
  size_t start, end;
  char *text; /* owned, NUL-ended */
  size_t text_size;
  uint32_t group;
};

/* In front of the name in the ids that only scan --changed knows. */
#define CHANGED_PREFIX "changed:"

enum coverage { COVERAGE_FULL, COVERAGE_PARTLY, COVERAGE_NONE };

/* What a front says of one file. Zero-initialised by the caller; filled with result_* below. */
struct result {
  struct finding *findings;
  size_t findings_count, findings_capacity;
  bool unordered; /* the findings did not come line by line */
  struct edit *edits;
  size_t edits_count, edits_capacity;
  enum coverage coverage;
  char *coverage_reason;  /* why not FULL; owned, NULL when FULL */
  struct ignore *ignores; /* comments that accept findings (ignore.h); they depend on the date */
  size_t ignores_count;
};

/* What tells that a file is the same as in an earlier scan; all 0: not known. */
struct file_id {
  uint64_t size, inode, device;
  int64_t mtime, ctime; /* ns */
};
struct stat;
struct file_id file_id_of(const struct stat *status); /* load.c */

/* bytes are kept for every file with a hit, but one without a finding whose result an earlier scan has. Of other files
 * bytes is NULL and size 0, but for those that the C++ front wanted to see (cxx_index_load). */
struct source_file {
  char *path;      /* relative to the root given on the command line, '/' separated: what is reported; not owned */
  char *full_path; /* what is opened; `path` is its end */
  enum language language;
  uint8_t pins;         /* enum pins_kind of pins.h */
  const uint8_t *bytes; /* the whole file, read-only; not NUL-ended; NULL when size is 0 or it could not be read */
  size_t size;
  const uint8_t *first_bytes; /* what the indexes saw: bytes, until a fix gives the file new ones */
  bool hit;                   /* the prefilter saw something of the catalog in it */
  uint8_t seen;               /* and what: SEEN_ bits of prefilter.h */
  char *facts, *defines;      /* of C++ files, see cxx_facts.h: from the bytes, and what it defines; owned; */
  _Atomic(char *) told;       /* from the tokens; NULL: not known */
  struct file_id id;          /* only with a cache: */
  bool known;                 /* it is as an earlier scan has left it, and was not read */
  uint64_t hash;              /* of the bytes, of files with a hit and of all C++ files */
  bool cached;                /* the result is that of an earlier scan */
  bool holds;                 /* of C++ files: it will be, unless what other files define has changed */
  bool moved;                 /* the C++ front read other bytes than those of the hash */
  struct cxx_keys *asked;     /* what its analysis asked for (cxx_facts.h); owned; NULL: nobody wants to know */
  bool exported;              /* the Python index looked for exports in it */
  bool elsewhere;             /* belongs to another shard: the indexes see it, it is not analysed and not counted */
  struct result result;
};

struct options {
  const char *kernel;         /* kernel release that the code is checked against: "0.4.6" */
  const char *sglang_release; /* --to sglang@X.Y.Z: "0.5.18"; NULL for --to jit */
  bool unsafe;                /* guarded imports are rewritten too */
  bool changed;               /* calls of names that have another form than before, too (changed.h) */
};

/* A folder or link below the root that was not looked at; version control and caches are not listed. */
struct walk_note {
  char *path;   /* relative to the root */
  char *reason; /* "build output", "Permission denied", ... */
  bool failed;  /* it should have been read: counts as not analysed */
};

enum exit_status {
  EXIT_USES = 1,         /* live uses of removed names */
  EXIT_PERSON = 2,       /* at least one of them needs a person */
  EXIT_NOT_ANALYSED = 4, /* a file or folder was not analysed, or only in part */
  EXIT_USAGE = 8,        /* wrong command line, or a path that is not there */
  EXIT_FAULT = 16,       /* a file could not be written, out of memory */
  EXIT_STALE = 32,       /* an entry of the baseline, or an ignore comment, that stands for nothing (any more) */
};

struct cache;
struct cxx_keys;
struct rules;
struct python_index;
struct cxx_index;

/* One run over one root. After the index functions everything is read-only but files[i].result, which only the worker
 * that analyses file i writes. */
struct scan {
  const struct catalog *catalog;
  struct options options;
  bool use_cache;                  /* of an earlier scan's results (cache.h) */
  struct cache *cache;             /* NULL: none */
  unsigned shard, shards;          /* analyse only 2 of 8; 0: all */
  const struct settings *settings; /* of the root (settings.h); NULL: none */
  const char *root;                /* as given on the command line: a folder or a file */
  char *real_root;                 /* the folder (of a file: the one that it is in), absolute and free of links */
  bool root_is_file;
  struct source_file *files; /* sorted by path */
  size_t files_count;
  struct walk_note *notes; /* sorted by path */
  size_t notes_count;
  size_t ignored_count; /* files and folders that git ignores */
  struct rules *rules;  /* rules_build() */
  struct python_index *python_index;
  struct cxx_index *cxx_index;
};

/* scan.c: the files below scan->root, with catalog set and the rest zero: walk, then read and prefilter with
 * `threads` workers. Files that an earlier scan has too are left out. Returns false after writing one line into message
 * when the root cannot be read; scan_close is needed in both cases. */
bool scan_walk(struct scan *scan, const struct scan *earlier, size_t earlier_count, unsigned threads, bool progress,
               char *message, size_t message_size);
/* After that, with options set: index, analyse with `threads` workers. Findings come out sorted by line, column and
 * symbol, whatever the number of workers. */
void scan_run(struct scan *scan, unsigned threads, bool progress);
/* Analyse one file of scan->files again after its bytes were exchanged (for what an edit would give). */
void scan_analyse(const struct scan *scan, const struct source_file *file, struct result *result);
void scan_close(struct scan *scan);
void scan_free_file(struct source_file *file);

/* memory.c. Out of memory: says so and ends the process with EXIT_FAULT. */
__attribute__((noreturn)) void scan_out_of_memory(void);
void *scan_alloc(void *old, size_t size);
char *scan_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
char *scan_format_list(const char *format, va_list list) __attribute__((format(printf, 1, 0)));

/* result.c: add to a result. The message is printf-formatted and copied. Out of memory ends the process with status 16
 * (a command-line tool; the libraries never do this). result_find adds nothing when the same line and symbol is there
 * already, unless the new one is stronger (rewrite and report before mention, report before rewrite): then it replaces.
 */
void result_find(struct result *result, uint32_t line, uint32_t column, const struct catalog_symbol *symbol,
                 enum verdict verdict, enum evidence evidence, enum level level, const char *format, ...)
    __attribute__((format(printf, 8, 9)));
void result_edit(struct result *result, uint32_t group, size_t start, size_t end, const char *text, size_t text_size);
void result_coverage(struct result *result, enum coverage coverage, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void result_free(struct result *result);

/* The file with this path relative to the root, or NULL. */
const struct source_file *scan_file(const struct scan *scan, const char *path);
/* Numbers of the files that are wanted, the largest first, so that no worker is left with one at the end. Owned by the
 * caller. */
size_t *scan_largest_first(const struct scan *scan, bool (*wanted)(const struct source_file *file), size_t *count);

/* rules.c */
void rules_build(struct scan *scan);
void rules_free(struct scan *scan);
/* A Python attribute of the owner package that is gone from the chosen kernel release: module "sgl_kernel" or
 * "sgl_kernel.gemm", name "dsv3_router_gemm". Also an sglang module path that the chosen sglang release has dropped
 * (case contract, Python rule 18), there also the module itself when it is called like its function: module
 * "sglang.jit_kernel", name "dsv3_router_gemm". NULL when it is not a removed name. A submodule that the catalog does
 * not list under the symbol gives NULL. */
const struct catalog_symbol *rules_python_removed(const struct scan *scan, const char *module, const char *name);
/* Is the route one of an sglang release before the chosen one, in a place that this one no longer has? */
bool rules_route_dropped(const struct scan *scan, const struct catalog_symbol *symbol,
                         const struct catalog_route *route);
/* The same for its module as a name of the package `parent` above it. */
bool rules_module_dropped(const struct scan *scan, const struct catalog_symbol *symbol,
                          const struct catalog_route *route, const char *parent);
/* An operator "dsv3_router_gemm" of namespace sgl_kernel that is gone. */
const struct catalog_symbol *rules_operator_removed(const struct scan *scan, const char *op_name);
/* Where a Python import of the symbol is rewritten to, or NULL with the reason in *why; it lives as long as the rules.
 */
const struct catalog_route *rules_python_target(const struct scan *scan, const struct catalog_symbol *symbol,
                                                const char **why);
/* Where a C++ call is rewritten to, likewise. */
const struct catalog_route *rules_cxx_target(const struct scan *scan, const struct catalog_symbol *symbol,
                                             const char **why);
/* "dsv3_router_gemm left sgl_kernel in 0.4.5": how every message says why a name is a finding. The platform's own row
 * speaks, else CUDA's, else any. Owned by the caller. */
char *rules_left(const struct scan *scan, const struct catalog_symbol *symbol, enum catalog_layer layer,
                 enum catalog_platform platform, const char *name);
/* The same of a module that the chosen sglang release has dropped, and does a message begin like this? Then the kernel
 * may still have the name. */
char *rules_moved(const struct catalog_symbol *symbol, const char *module);
bool rules_only_moved(const struct finding *finding);
/* Is this layer of the symbol gone from the chosen kernel release? */
bool rules_layer_removed(const struct scan *scan, const struct catalog_symbol *symbol, enum catalog_layer layer);
/* Is any layer of the symbol gone? The filter for strings of unclear layer. */
bool rules_any_removed(const struct scan *scan, const struct catalog_symbol *symbol);
/* Can there be a finding of it: is any layer gone, or the module of a former replacement? */
bool rules_symbol_matters(const struct scan *scan, const struct catalog_symbol *symbol);
/* Does the bare word, without an owner in front, mean the removed thing? The filter for mentions: false while the
 * Python export of that name lives, and for a name that only ever was in a submodule of the package (it may live on in
 * another one), that only was an operator, or that is what the operator alone was called. */
bool rules_word_removed(const struct scan *scan, const struct catalog_symbol *symbol, const uint8_t *word,
                        size_t length);
/* Is the word a name of the catalog, and any layer of any symbol of that name, or a module of it, gone? */
bool rules_word_matters(const struct scan *scan, const uint8_t *text, size_t length);
/* Whole-word search: the first occurrence at or after `from` of any catalog id, operator name, C++ name or template
 * name as a whole word ([A-Za-z0-9_]); returns its offset or SIZE_MAX and sets *symbol and *length. More than one
 * symbol may have the same word; the one whose id equals the word wins. */
size_t rules_next_name(const struct scan *scan, const uint8_t *bytes, size_t size, size_t from,
                       const struct catalog_symbol **symbol, size_t *length);
/* Deleted sources, tests and benchmarks by file name, sorted by it; only of symbols whose sources are gone. */
struct rules_file {
  const char *base; /* "dsv3_fused_a_gemm.cu" */
  char *path;       /* what a path to it ends in: "gemm/dsv3_fused_a_gemm.cu", "sgl-kernel/tests/test_x.py"; owned */
  const struct catalog_symbol *symbol;
};
/* The first of the `count` rows with this file name, or NULL. */
const struct rules_file *rules_files(const struct scan *scan, const char *base, size_t length, size_t *count);
/* 1-based line and column of a byte offset; lines end at \n. */
void rules_position(const uint8_t *bytes, size_t size, size_t offset, uint32_t *line, uint32_t *column);

/* rules_own.c: the folder in which the tree has the package sglang itself (at the root, one folder below it, or around
 * it), or NULL; owned by the caller. Has that sglang this module? */
char *rules_own_folder(const struct scan *scan);
const char *rules_own(const struct scan *scan); /* the same, as rules_build found it */
bool rules_own_module(const char *folder, const char *module);

/* The fronts. index: look over the whole tree once, before any analyse of the language (cross-file facts): adds its
 * work for up to `threads` workers to the crew and returns the last part (crew.h). analyse: thread-safe, called once
 * per file with hit == true of the front's language. */
struct crew;
unsigned python_index_plan(struct scan *scan, struct crew *crew, unsigned threads);
void python_index_free(struct scan *scan);
void python_analyse(const struct scan *scan, const struct source_file *file, struct result *result);

/* The beginning of the index: what is asked of one file alone. cxx_index_plan does it, too. */
void cxx_index_begin(struct scan *scan);
unsigned cxx_index_plan(struct scan *scan, struct crew *crew);
void cxx_index_free(struct scan *scan);
/* What the front has left in a file, after the index is gone. */
void cxx_free_facts(struct source_file *file);
void cxx_analyse(const struct scan *scan, const struct source_file *file, struct result *result);
/* What libclang finds wrong in the file as it is in file->bytes, with the stand-ins for all headers from elsewhere.
 * List and texts are owned by the caller. */
struct cxx_error {
  size_t offset; /* in the file; SIZE_MAX: in a header */
  char *text;
};
struct cxx_error *cxx_errors(const struct scan *scan, const struct source_file *file, size_t *count);

void text_analyse(const struct scan *scan, const struct source_file *file, struct result *result);
/* Paths of deleted source files and tests in a file that names them to a build (text_build.c); scan.c calls it for
 * Python files too, after python_analyse. */
void text_build_entries(const struct scan *scan, const struct source_file *file, struct result *result);

/* A program inside a string or a here-document: does Python text [bytes, size) contain an import or a qualified use of
 * a removed name? Calls found() for each with the byte offset of the name. Used by the text and C++ fronts. */
void python_find_in_text(const struct scan *scan, const uint8_t *bytes, size_t size,
                         void (*found)(void *user, size_t offset, const struct catalog_symbol *symbol), void *user);

/* walk.c: the language of a file by its name alone. */
enum language walk_language(const char *path);

/* edit.c */
/* The bytes after the edits (sorted in place; identical ones collapse; insertions at one place keep their order).
 * Returns false after writing one line when two edits overlap or one lies outside of the file. *out is owned by the
 * caller. */
bool edit_compose(const uint8_t *bytes, size_t size, struct edit *edits, size_t count, uint8_t **out, size_t *out_size,
                  char *message, size_t message_size);
/* Replace the content of a file, all or nothing: only when it still has the old bytes, through a temporary file in its
 * folder that is synced and renamed over it, and read back. Mode and owner stay; a symbolic link stays a link, its
 * target is replaced; of a hard link only this name gets the new content. Returns false after writing one line; the
 * file then has its old content and no temporary file is left. */
bool edit_write(const char *path, const uint8_t *old_bytes, size_t old_size, const uint8_t *new_bytes, size_t new_size,
                char *message, size_t message_size);
/* Is this the name of such a temporary file? The walk leaves it out; edit_write removes those that a killed process has
 * left in the folder that it writes into. */
bool edit_is_temporary(const char *name);

#endif
