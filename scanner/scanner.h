/* The scanner's own layers, top to bottom; each only calls downwards.
 *
 *   main.c            the command line: options, exit status
 *   scan.c            one run: walk, read, prefilter, index, analyse (worker threads), sort
 *   walk.c            which files belong to the tree
 *   prefilter.c       which files can contain a catalog name at all (Hyperscan over the bytes)
 *   python_*.c        the Python front: tree-sitter, scopes, bindings, import rewriting, notebooks
 *   cxx_*.c           the C, C++ and CUDA front: lexer, libclang with the catalog's prelude
 *   text_*.c          build files, documentation, scripts, patches, other languages
 *   edit.c            applies edits to files, atomically
 *   report_*.c        text and SARIF output
 *   rules.c           catalog look-ups that more than one front needs
 *
 * A front reads bytes and gives findings and edits. It never writes a file and never prints. */
#ifndef SGL_SCANNER_H
#define SGL_SCANNER_H

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

struct finding {
  uint32_t line;   /* 1-based; lines end at \n only */
  uint32_t column; /* 1-based, in bytes, of the name itself */
  const struct catalog_symbol *symbol;
  enum verdict verdict;
  enum evidence evidence;
  enum level level;
  char *message; /* one sentence: why this verdict, what to do; owned */
};

/* Replace bytes [start, end) of the file's original bytes by text. start == end inserts. */
struct edit {
  size_t start, end;
  char *text; /* owned, NUL-ended */
  size_t text_size;
};

enum coverage { COVERAGE_FULL, COVERAGE_PARTLY, COVERAGE_NONE };

/* What a front says of one file. Zero-initialised by the caller; filled with result_* below. */
struct result {
  struct finding *findings;
  size_t findings_count, findings_capacity;
  struct edit *edits;
  size_t edits_count, edits_capacity;
  enum coverage coverage;
  char *coverage_reason; /* why not FULL; owned, NULL when FULL */
};

struct source_file {
  char *path;      /* relative to the root given on the command line, '/' separated: what is reported */
  char *full_path; /* what is opened */
  enum language language;
  const uint8_t *bytes; /* the whole file, read-only; not NUL-ended; NULL when size is 0 or it could not be read */
  size_t size;
  bool hit; /* the prefilter saw a catalog name or the package name in it */
  struct result result;
};

struct options {
  const char *kernel;         /* kernel release that the code is checked against: "0.4.6" */
  const char *sglang_release; /* --to sglang@X.Y.Z: "0.5.18"; NULL for --to jit */
};

struct python_index;
struct cxx_index;

/* One run over one root. After the index functions everything is read-only but files[i].result, which only the worker
 * that analyses file i writes. */
struct scan {
  const struct catalog *catalog;
  struct options options;
  const char *root;
  struct source_file *files; /* sorted by path */
  size_t files_count;
  struct python_index *python_index;
  struct cxx_index *cxx_index;
};

/* scan.c: add to a result. The message is printf-formatted and copied. Out of memory ends the process with status 16
 * (a command-line tool; the libraries never do this). result_find adds nothing when the same line and symbol is there
 * already, unless the new one is stronger (rewrite and report before mention, report before rewrite): then it replaces. */
void result_find(struct result *result, uint32_t line, uint32_t column, const struct catalog_symbol *symbol,
                 enum verdict verdict, enum evidence evidence, enum level level, const char *format, ...)
    __attribute__((format(printf, 8, 9)));
void result_edit(struct result *result, size_t start, size_t end, const char *text, size_t text_size);
void result_coverage(struct result *result, enum coverage coverage, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void result_free(struct result *result);

/* The file with this path relative to the root, or NULL. */
const struct source_file *scan_file(const struct scan *scan, const char *path);

/* rules.c */
/* A Python attribute of the owner package that is gone from the chosen kernel release: module "sgl_kernel" or
 * "sgl_kernel.gemm", name "dsv3_router_gemm". Also an sglang module path that the chosen sglang release has dropped
 * (case contract, Python rule 18). NULL when it is not a removed name. A submodule that the catalog does not list under
 * the symbol gives NULL. */
const struct catalog_symbol *rules_python_removed(const struct scan *scan, const char *module, const char *name);
/* An operator "dsv3_router_gemm" of namespace sgl_kernel that is gone. */
const struct catalog_symbol *rules_operator_removed(const struct scan *scan, const char *op_name);
/* Where a Python import of the symbol is rewritten to, or NULL with the reason (a static or catalog string) in *why. */
const struct catalog_route *rules_python_target(const struct scan *scan, const struct catalog_symbol *symbol,
                                                const char **why);
/* Where a C++ call is rewritten to, likewise. */
const struct catalog_route *rules_cxx_target(const struct scan *scan, const struct catalog_symbol *symbol,
                                             const char **why);
/* Is any layer of the symbol gone? The filter for mentions, build entries and strings of unclear layer. */
bool rules_any_removed(const struct scan *scan, const struct catalog_symbol *symbol);
/* Whole-word search: the first occurrence at or after `from` of any catalog id, operator name, C++ name or template
 * name as a whole word ([A-Za-z0-9_]); returns its offset or SIZE_MAX and sets *symbol and *length. More than one symbol
 * may have the same word; the one whose id equals the word wins. */
size_t rules_next_name(const struct scan *scan, const uint8_t *bytes, size_t size, size_t from,
                       const struct catalog_symbol **symbol, size_t *length);
/* 1-based line and column of a byte offset; lines end at \n. */
void rules_position(const uint8_t *bytes, size_t size, size_t offset, uint32_t *line, uint32_t *column);

/* The fronts. index: look over the whole tree once, single-threaded, before any analyse (cross-file facts). analyse:
 * thread-safe, called once per file with hit == true of the front's language. */
void python_index_build(struct scan *scan);
void python_index_free(struct scan *scan);
void python_analyse(const struct scan *scan, const struct source_file *file, struct result *result);

void cxx_index_build(struct scan *scan);
void cxx_index_free(struct scan *scan);
void cxx_analyse(const struct scan *scan, const struct source_file *file, struct result *result);

void text_analyse(const struct scan *scan, const struct source_file *file, struct result *result);

/* A program inside a string or a here-document: does Python text [bytes, size) contain an import or a qualified use of a
 * removed name? Calls found() for each with the byte offset of the name. Used by the text and C++ fronts. */
void python_find_in_text(const struct scan *scan, const uint8_t *bytes, size_t size,
                         void (*found)(void *user, size_t offset, const struct catalog_symbol *symbol), void *user);

#endif
