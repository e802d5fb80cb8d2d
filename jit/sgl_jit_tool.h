/* The sgl-jit command: what its files share. Not part of the library.
 *
 *   sgl_jit.c          main, the help texts, the command line
 *   sgl_jit_work.c     which kernels for which targets: SPEC, --model, --file, --stats, --sarif, --target
 *   sgl_jit_warm.c     warm, pack
 *   sgl_jit_entry.c    the files of a cache folder: what each is, and what is wrong with it
 *   sgl_jit_folders.c  list, verify, prune
 *   sgl_jit_info.c     info
 */
#ifndef SGL_JIT_TOOL_H
#define SGL_JIT_TOOL_H

#include "internal.h"
#include "jit/tool.h"
#include <time.h>

/* --- sgl_jit.c --- */

enum tool_format { FORMAT_TEXT, FORMAT_JSON, FORMAT_TSV };

struct tool_strings {
  const char **list;
  size_t count;
};

/* The command line of every command. */
struct tool_options {
  const char *command;
  struct tool_strings specs, models, files, statistics, findings, targets;
  const char *output;
  int device; /* -1: all */
  enum tool_format format;
  bool has_older_than, has_max_size;
  time_t older_than; /* seconds */
  uint64_t max_size; /* bytes */
  bool bad, all, dry_run;
};

struct tool_size {
  char text[32];
};
/* "63.4 KiB" */
struct tool_size tool_size(uint64_t bytes);
/* --- sgl_jit_work.c --- */

struct tool_work {
  sgl_jit_kernel_spec *specs; /* each once */
  size_t count;
};
/* What SPEC, --model, --file, --stats and --sarif name; wrong ones end the command. */
struct tool_work tool_work(const struct tool_options *options);
/* Ends the command unless every --target is a name that a device looks for. */
void tool_check_targets(const struct tool_options *options);

/* --- sgl_jit_entry.c --- */

enum tool_state {
  STATE_OK,
  STATE_OTHER, /* whole, but this library looks for other keys: it was made by another version */
  STATE_BAD
};

struct tool_entry {
  char name[256];
  enum tool_state state;
  char reason[300];         /* why it is bad, or other */
  sgl_jit_kernel_spec spec; /* op -1: not known */
  char target[24];          /* "": not known */
  const char *pdl;          /* the mode it was compiled for: off, on, no-prefetch; "": not known */
  bool ours;                /* by name, owner and kind of file: to be removed by prune */
  uint64_t bytes;
  time_t written, used; /* used 0: since it was written, not known */
};

/* A folder and all that is in it. */
struct tool_folder {
  struct jit_folder folder;
  int opened;                 /* -1: not there, or not trusted */
  struct tool_entry *entries; /* by name */
  size_t count;
  uint64_t bytes;          /* of the entries */
  struct jit_file *others; /* temporary files, lock files, and what is not the library's */
  size_t others_count;
};

void tool_open_folder(enum jit_folder_kind kind, struct tool_folder *folder);
void tool_close_folder(struct tool_folder *folder);
/* "cache" or "prebuilt" */
const char *tool_folder_kind(const struct tool_folder *folder);
/* One line: kind, path, where the path comes from, what is in it, or why it is not used. */
void tool_print_folder(const struct tool_folder *folder);
json_t *tool_folder_json(const struct tool_folder *folder);
const char *tool_state_name(enum tool_state state);

/* --- sgl_jit_info.c --- */

/* The file of the library that programs use, found by name as they do, else beside this command; true when it is there.
 * Its folder is where the prebuilt kernels are looked for. */
struct tool_library {
  char path[4096], version[32];
  const char *source;
};
/* Once at the start: from then on the library's folder is known, also to the code of the library that is in here. */
bool tool_find_library(struct tool_library *library);

/* --- the commands; each returns the exit status --- */

int tool_warm(const struct tool_options *options);
int tool_pack(const struct tool_options *options);
int tool_list(const struct tool_options *options);
int tool_verify(const struct tool_options *options);
int tool_prune(const struct tool_options *options);
int tool_info(const struct tool_options *options);

#endif
