/* The text front's own pieces: everything that is neither Python nor C++.
 *
 *   text_front.c    what kind of file it is, and which rules that kind follows
 *   text_lex.c      which bytes are code, comment, string, here-document
 *   text_names.c    one name in a text: who owns it, is it gone
 *   text_build.c    paths of deleted sources and tests
 *   text_paths.c    the same behind variables and changes of the folder
 *   text_patch.c    the new side of a patch */
#ifndef SGL_SCANNER_TEXT_H
#define SGL_SCANNER_TEXT_H

#include "scanner/scanner.h"

enum text_kind {
  TEXT_NOTHING, /* data: nothing in it is a use */
  TEXT_UNKNOWN, /* only what names the package counts */
  TEXT_DOC,     /* each line that names it is a mention */
  TEXT_SCRIPT,  /* shell, Dockerfile, makefile, CMake, Bazel, Meson: '#' comments, quotes, here-documents */
  TEXT_YAML,    /* data with scripts in it */
  TEXT_CONFIG,  /* TOML, INI: data with entry points in it */
  TEXT_CODE,    /* another language: its comments and strings */
  TEXT_PYTHON,  /* Python that is not parsed as such: templates, Cython, patches */
  TEXT_CXX,     /* C++ that is not parsed as such: templates, patches */
  TEXT_PATCH,
};

/* How comments look. */
enum text_style { STYLE_HASH, STYLE_C, STYLE_DASH, STYLE_SEMICOLON, STYLE_PERCENT, STYLE_YAML };

/* Class of a byte; CLASS_BLOCK is added to those in a block scalar of YAML. */
enum { CLASS_CODE, CLASS_COMMENT, CLASS_STRING, CLASS_HERE, CLASS_BLOCK };

/* Where the last position was asked for: the next one is mostly behind it. */
struct text_place {
  size_t start;   /* of the line */
  uint32_t lines; /* in front of it */
};

/* A text under analysis: a file, or the new side of one file of a patch. */
struct text_view {
  const struct scan *scan;
  struct result *result;
  const char *path; /* of the text, for the folder that its relative paths start from */
  const uint8_t *bytes;
  size_t size;
  enum text_kind kind;
  enum text_style style;
  uint8_t *classes; /* one a byte; set by text_classify */
  struct text_place *place;
  const uint32_t *lines; /* of a patch: the patch's line of each line here, 0 for a context line; else NULL */
};

/* text_front.c */
enum text_kind text_kind(const char *path, const uint8_t *bytes, size_t size, enum text_style *style);
void text_run(struct text_view *view);

/* text_lex.c: fills view->classes, which the caller frees. */
void text_classify(struct text_view *view);

enum text_owner {
  OWNER_NONE,     /* stands alone */
  OWNER_IMPORT,   /* imported from the package on this line */
  OWNER_PACKAGE,  /* sgl_kernel[.sub].NAME or sgl_kernel[.sub]:NAME */
  OWNER_OPERATOR, /* torch.ops.sgl_kernel.NAME or sgl_kernel::NAME */
  OWNER_OTHER,    /* somebody else's, or a file name */
};

struct text_name {
  size_t at, length;
  const struct catalog_symbol *symbol; /* a removed one */
  enum text_owner owner;               /* never OWNER_OTHER */
  size_t start;                        /* where the expression begins: at, or its owner */
};

/* text_names.c: the next name that is gone, at or after `from`; false at the end. */
bool text_next(const struct text_view *view, size_t from, struct text_name *name);
/* Adds a finding at a byte offset, but for context lines of a patch. `what` begins the message: "mentioned here". */
void text_find(const struct text_view *view, size_t offset, const struct catalog_symbol *symbol, enum verdict verdict,
               enum evidence evidence, const char *what);
/* 1-based, in the bytes of the view. */
void text_position(const struct text_view *view, size_t offset, uint32_t *line, uint32_t *column);
/* The start of the line, or 1000 bytes before: on a longer line, which no person wrote, what stands further away says
 * nothing about the name. */
size_t text_line_start(const uint8_t *bytes, size_t at);
size_t text_line_end(const uint8_t *bytes, size_t size, size_t at);
bool text_word_byte(uint8_t c);

/* text_names.c: the name of an argument in C++: a comment of just the name and an equals sign. */
bool text_argument_comment(const uint8_t *bytes, size_t size, size_t start, size_t end);

/* text_build.c */
#define TEXT_PARTS 16
/* The path that ends in a file name of the text, its parts from the last to the first. */
struct text_entry {
  struct {
    const char *text;
    size_t length;
  } parts[TEXT_PARTS];
  size_t count;
  size_t written;     /* parts of the path as it is written, before those of a joined one */
  size_t start, name; /* where the written path and the file name begin */
  bool relative;      /* the written path begins with a name: it starts from the folder of the file that has it */
};
void text_entry_read(const uint8_t *bytes, size_t at, size_t length, struct text_entry *entry);
/* Are the last of the first `count` parts the path `wanted`? */
bool text_entry_ends(const struct text_entry *entry, size_t count, const char *wanted);
bool text_part_byte(uint8_t c);
void text_build_view(const struct text_view *view);

/* text_paths.c */
/* Puts the folder in front of the path that a variable of the text has, or the one that its commands run in. */
bool text_paths_resolve(const struct text_view *view, struct text_entry *entry);

/* text_patch.c */
void text_patch(const struct text_view *view);

#endif
