/* One verdict for each reference of a binary to something of the catalog, to torch, or to a library. */
#include "scanner/audit.h"
#include "scanner/report.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#define SHIM "libsgl_kernel_compat.so"
#define UNKNOWN_MOST 1000 /* of one file: a program for another machine needs everything */

__attribute__((format(printf, 8, 9))) static void add(struct audit_run *run, size_t object, enum audit_mark mark,
                                                      enum audit_verdict verdict, const struct catalog_symbol *symbol,
                                                      const char *name, bool row, const char *format, ...) {
  if (run->findings_count == run->findings_capacity) {
    run->findings_capacity = run->findings_capacity ? 2 * run->findings_capacity : 64;
    run->findings = scan_alloc(run->findings, run->findings_capacity * sizeof *run->findings);
  }
  va_list list;
  va_start(list, format);
  run->findings[run->findings_count++] =
      (struct audit_finding){object, mark, verdict, symbol, name, row, scan_format_list(format, list)};
  va_end(list);
}

/* --- who has it --------------------------------------------------------------------------------------------------- */

static bool is_shim(const struct audit_object *object) {
  const char *path = object->member ? object->member : object->path, *slash = strrchr(path, '/');
  return strncmp(object->soname ? object->soname : slash ? slash + 1 : path, SHIM, strlen(SHIM)) == 0;
}

/* Does the shim have a kernel for the symbol? Of the others it has C++ functions that throw. */
static bool served(const struct catalog_symbol *symbol) {
  return catalog_jit_route(symbol) != NULL;
}

/* A file of the kernel wheel itself: a folder of its path is named like the package. */
static bool of_kernel(const struct audit_run *run, const struct audit_object *object) {
  const char *package = run->context->catalog->library.package;
  size_t size = strlen(package);
  for (const char *at = object->member ? object->member : object->path; at; at = strchr(at, '/')) {
    at += *at == '/';
    if (strncmp(at, package, size) == 0 && at[size] == '/')
      return true;
  }
  return false;
}

/* Against a named release the kernel wheel that lies there does not count: it is what will be replaced. */
static bool counts(const struct audit_run *run, size_t object, size_t other) {
  const struct audit_object *one = &run->objects[other];
  return !one->fault && one->type != ET_REL && audit_may_answer(run, object, other) &&
         (run->environment || !of_kernel(run, one));
}

/* The object that defines a function, best first: one that is loaded anyway, one that is not the shim. */
static size_t definer(const struct audit_run *run, size_t object, const char *name, bool *reached) {
  uint64_t hash = audit_hash(name, strlen(name));
  size_t best = SIZE_MAX;
  int best_rank = 0;
  *reached = false;
  if (!audit_exported(run, object, hash))
    return SIZE_MAX;
  for (size_t k = 0; k < run->definers_count; k++) {
    size_t i = run->definers[k];
    if (i == object || !audit_exports(&run->objects[i], hash) || !counts(run, object, i))
      continue;
    bool loaded = audit_reaches(run, object, i);
    int rank = 1 + 2 * loaded + !is_shim(&run->objects[i]);
    if (rank > best_rank) {
      best = i;
      best_rank = rank;
      *reached = loaded;
    }
  }
  return best;
}

bool audit_has_schema(const struct audit_object *object, const char *name) {
  size_t size = strlen(name);
  for (size_t i = 0; i < object->schemas_count; i++)
    if (strncmp(object->schemas[i], name, size) == 0 &&
        (object->schemas[i][size] == '(' || object->schemas[i][size] == '.'))
      return true;
  return false;
}

bool audit_has_name(const struct audit_object *object, const char *name) {
  for (size_t i = 0; i < object->inferred_count; i++)
    if (strcmp(object->inferred[i]->op_name, name) == 0)
      return true;
  return false;
}

/* Does the kernel wheel register it by its name alone? Torch then makes the schema of the function's C++ type. Of an
 * operator that is gone its name is no sign: messages of a function that stayed have it, too. */
static bool infers_schema(const struct audit_run *run, const struct audit_object *object, const char *name) {
  const struct catalog_symbol *symbol = audit_operator(run->context->names, name, strlen(name));
  return object->inferred_count && of_kernel(run, object) && audit_has_name(object, name) &&
         !audit_gone(run, object, symbol, CATALOG_LAYER_OPERATOR);
}

/* Who registers the operator; it may be the object itself. */
static size_t registrar(const struct audit_run *run, size_t object, const char *name) {
  for (size_t k = 0; k < run->registrars_count; k++) {
    size_t i = run->registrars[k];
    if (counts(run, object, i) &&
        (audit_has_schema(&run->objects[i], name) || infers_schema(run, &run->objects[i], name)))
      return i;
  }
  return SIZE_MAX;
}

/* --- functions ---------------------------------------------------------------------------------------------------- */

/* What the finding is about. */
struct reference {
  size_t object;
  enum audit_mark mark;
  const char *name;
  const struct catalog_symbol *symbol;
  bool row; /* the function is gone */
};

static void say(struct audit_run *run, const struct reference *one, enum audit_verdict verdict, char *message) {
  add(run, one->object, one->mark, verdict, one->symbol, one->name, one->row, "%s", message);
  free(message);
}

/* `other` defines it. */
static void judge_answered(struct audit_run *run, const struct reference *one, size_t other, bool reached) {
  const struct audit_object *answer = &run->objects[other];
  char *label = audit_label(run, answer, true), *stage = audit_stage(one->symbol),
       *when = audit_left(run, &run->objects[one->object], one->symbol, CATALOG_LAYER_CXX),
       *use = audit_instead(one->symbol, CATALOG_LAYER_CXX);
  const char *how = reached || one->mark == MARK_STRING
                        ? ""
                        : "; nothing that it needs loads that, so it has to be loaded with global scope before";
  if (is_shim(answer) && !served(one->symbol) && one->mark == MARK_NEEDS_WEAK)
    say(run, one, AUDIT_OPTIONAL,
        scan_format("%s; the reference is weak, so the file loads without it; but %s makes it not NULL, and a call "
                    "throws",
                    when, label));
  else if (is_shim(answer) && !served(one->symbol))
    say(run, one, AUDIT_REMOVED,
        scan_format("%s; %s only lets the file load, a call throws%s; %s", when, label, how, use));
  else if (is_shim(answer) && one->mark == MARK_NEEDS_WEAK)
    say(run, one, AUDIT_OPTIONAL,
        scan_format("%s; %s has it%s%s; the reference is weak, so the file loads without it", when, label, stage, how));
  else if (is_shim(answer))
    say(run, one, AUDIT_SHIM, scan_format("%s; %s has it%s%s", when, label, stage, how));
  else
    say(run, one, AUDIT_ALIVE, scan_format("%s defines it%s", label, how));
  free(label);
  free(stage);
  free(when);
  free(use);
}

/* It is gone, and nothing that was audited defines it. */
static void judge_gone(struct audit_run *run, const struct reference *one) {
  const struct catalog_symbol *symbol = one->symbol;
  char *when = audit_left(run, &run->objects[one->object], symbol, CATALOG_LAYER_CXX), *served_as = audit_stage(symbol),
       *use = audit_instead(symbol, CATALOG_LAYER_CXX);
  if (one->mark == MARK_NEEDS_WEAK)
    say(run, one, AUDIT_OPTIONAL,
        scan_format("%s; the reference is weak, so the file loads without it%s", when,
                    served(symbol) ? ", and with " SHIM " it is there" : ""));
  else if (served(symbol))
    say(run, one, AUDIT_SHIM, scan_format("%s; " SHIM " has it%s, and is not in what was audited", when, served_as));
  else
    say(run, one, AUDIT_REMOVED, scan_format("%s; %s", when, use));
  free(when);
  free(served_as);
  free(use);
}

/* The C++ function of a symbol, needed or looked up by its mangled name. */
static void judge_function(struct audit_run *run, size_t index, enum audit_mark mark, const char *name,
                           const struct catalog_symbol *symbol) {
  struct reference one = {index, mark, name, symbol, audit_gone(run, &run->objects[index], symbol, CATALOG_LAYER_CXX)};
  bool reached, lacks = one.row || audit_not_yet(run, symbol);
  size_t other = definer(run, index, name, &reached);
  if (other != SIZE_MAX && is_shim(&run->objects[other]) && !lacks && !run->environment)
    other = SIZE_MAX; /* the kernel has it itself */
  if (other != SIZE_MAX) {
    judge_answered(run, &one, other, reached);
  } else if (one.row) {
    judge_gone(run, &one);
  } else if (lacks) {
    say(run, &one, mark == MARK_NEEDS_WEAK ? AUDIT_OPTIONAL : AUDIT_UNKNOWN,
        audit_left(run, &run->objects[index], symbol, CATALOG_LAYER_CXX));
  } else if (run->environment && run->kernel_there) {
    size_t as_operator = *symbol->op_name ? registrar(run, index, symbol->op_name) : SIZE_MAX;
    char *label = as_operator == SIZE_MAX ? NULL : audit_label(run, &run->objects[as_operator], true);
    char *has = audit_has(run, &run->objects[index], symbol, CATALOG_LAYER_CXX);
    say(run, &one, mark == MARK_NEEDS_WEAK ? AUDIT_OPTIONAL : AUDIT_UNKNOWN,
        scan_format("nothing that was audited exports it; by the catalog %s%s%s%s", has, label ? "; " : "",
                    label ? label : "",
                    label ? " registers the operator of that name, with other C++ types or a hidden function" : ""));
    free(label);
    free(has);
  } else {
    say(run, &one, AUDIT_ALIVE, audit_has(run, &run->objects[index], symbol, CATALOG_LAYER_CXX));
  }
}

static void judge_operator(struct audit_run *run, size_t index, const struct audit_string *string) {
  const struct audit_object *object = &run->objects[index];
  const struct catalog_symbol *symbol = string->catalog;
  const char *name = strstr(string->text, "::") + 2;
  struct reference one = {index, MARK_STRING, string->text, symbol,
                          symbol && audit_gone(run, object, symbol, CATALOG_LAYER_OPERATOR)};
  size_t other = registrar(run, index, name);
  if (other != SIZE_MAX && is_shim(&run->objects[other]) && symbol && !served(symbol))
    other = SIZE_MAX; /* it knows the schema, and has no kernel */
  char *label = other == SIZE_MAX ? NULL : audit_label(run, &run->objects[other], true);
  char *has = symbol ? audit_has(run, object, symbol, CATALOG_LAYER_OPERATOR) : NULL;
  char *when = symbol ? audit_left(run, object, symbol, CATALOG_LAYER_OPERATOR) : NULL;
  char *use = symbol ? audit_instead(symbol, CATALOG_LAYER_OPERATOR) : NULL;
  if (label)
    say(run, &one, is_shim(&run->objects[other]) ? AUDIT_SHIM : AUDIT_ALIVE,
        scan_format("%s registers the operator", label));
  else if (!symbol)
    say(run, &one, AUDIT_UNKNOWN,
        scan_format("an operator that the catalog does not know, and nothing that was audited registers it"));
  else if (one.row && served(symbol))
    say(run, &one, AUDIT_SHIM,
        scan_format("%s; the package sgl_kernel_compat registers it through " SHIM " (stage %s)", when, symbol->stage));
  else if (one.row)
    say(run, &one, AUDIT_REMOVED, scan_format("%s; %s", when, use));
  else if (audit_not_yet(run, symbol))
    say(run, &one, AUDIT_UNKNOWN, scan_format("%s", when));
  else if (run->environment && run->kernel_there)
    say(run, &one, AUDIT_UNKNOWN, scan_format("nothing that was audited registers it; by the catalog %s", has));
  else
    say(run, &one, AUDIT_ALIVE, scan_format("%s", has));
  free(label);
  free(has);
  free(when);
  free(use);
}

/* --- torch and everything else ------------------------------------------------------------------------------------ */

struct torch {
  bool present, cuda;
  unsigned new_strings, old_strings; /* exported torch symbols with std::string */
};

/* packed: seen from files that are not installed. */
static void look_at_torch(const struct audit_run *run, size_t input, bool packed, struct torch *torch) {
  for (size_t i = 0; i < run->objects_count; i++) {
    const struct audit_object *object = &run->objects[i];
    if ((object->input != input && !run->context->joined) || object->fault || !object->soname ||
        (object->packed && !packed))
      continue;
    if (strncmp(object->soname, "libtorch_cpu.so", 15) == 0) {
      torch->present = true;
      torch->new_strings += object->exported_new_strings;
      torch->old_strings += object->exported_old_strings;
    }
    torch->cuda |= strncmp(object->soname, "libc10_cuda.so", 14) == 0;
  }
}

static void judge_torch(struct audit_run *run, size_t index, const struct audit_symbol *symbol,
                        const struct torch *torch) {
  const char *release = run->torch ? run->torch : "that was audited";
  int abi = audit_cxx_abi(symbol->name);
  bool wrong_abi = (abi < 0 && torch->old_strings == 0) || (abi > 0 && torch->new_strings == 0);
  if (wrong_abi)
    add(run, index, MARK_SYMBOL, AUDIT_TORCH, NULL, symbol->name, false,
        "torch %s was built with the %s C++ ABI of std::string, this file with the %s one: build it again against that "
        "torch",
        release, abi < 0 ? "new" : "old", abi < 0 ? "old" : "new");
  else if (strstr(symbol->name, audit_is_torch_c(symbol->name) ? "_cuda" : "4cuda") && !torch->cuda)
    add(run, index, MARK_SYMBOL, AUDIT_TORCH, NULL, symbol->name, false,
        "torch %s has no CUDA part (no libc10_cuda.so)", release);
  else
    add(run, index, MARK_SYMBOL, AUDIT_TORCH, NULL, symbol->name, false,
        "torch %s does not export it: this file was built against another release of torch", release);
}

static bool starts_with_one(const char *name, const char *const *prefixes) {
  for (; *prefixes; prefixes++)
    if (strncmp(name, *prefixes, strlen(*prefixes)) == 0)
      return true;
  return false;
}

/* A name of C that only a library can bring. The program that loads a file brings what it likes to a plugin, and to a
 * module of Python only Python; what is of CUDA comes from no program. */
static bool of_c_library(const char *name, bool known_loader) {
  static const char *const cuda[] = {"cuda",     "__cuda",    "cublas", "cudnn", "cufft",   "curand", "cusolver",
                                     "cusparse", "nvJitLink", "nccl",   "nvrtc", "nvshmem", NULL};
  static const char *const python[] = {"Py", "_Py", "THP", NULL}; /* THP: torch's own objects of Python */
  return starts_with_one(name, cuda) || (known_loader && !starts_with_one(name, python));
}

/* A name of C++ that only a library can bring: what is of the C++ library itself has a version. */
static bool of_library(const char *name) {
  static const char *const standard[] = {"_ZSt",   "_ZNSt",  "_ZNKSt",          "_ZGT", "_Zn", "_Zd",
                                         "_ZTISt", "_ZTVSt", "_ZTVN10__cxxabiv"};
  for (size_t i = 0; i < sizeof standard / sizeof *standard; i++)
    if (strncmp(name, standard[i], strlen(standard[i])) == 0)
      return false;
  return strncmp(name, "_Z", 2) == 0;
}

static void judge_symbols(struct audit_run *run, size_t index, const struct torch *torch) {
  const struct audit_object *object = &run->objects[index];
  bool linked = object->type != ET_REL;
  bool known_loader = audit_is_module(object) || object->type == ET_EXEC || object->pie;
  struct audit_scope *scope = NULL;
  bool complete = linked && object->needed_count && object->location; /* as far as is known yet */
  size_t unknown = 0;
  for (size_t i = 0; i < object->undefined_count; i++) {
    const struct audit_symbol *symbol = &object->undefined[i];
    if (symbol->catalog)
      continue;
    uint64_t hash = audit_hash(symbol->name, strlen(symbol->name));
    bool of_torch = audit_is_torch(symbol->name);
    if (of_torch)
      add(run, index, MARK_TORCH, AUDIT_NOTE, NULL, symbol->name, true, "a symbol of torch");
    if (of_torch || audit_is_torch_else(symbol->name) || audit_is_torch_c(symbol->name)) {
      if (linked && !symbol->weak && torch->present && !audit_exported(run, index, hash))
        judge_torch(run, index, symbol, torch);
      continue;
    }
    bool judged =
        of_library(symbol->name) || (strncmp(symbol->name, "_Z", 2) != 0 && of_c_library(symbol->name, known_loader));
    if (!complete || symbol->weak || symbol->version || !judged || unknown == UNKNOWN_MOST)
      continue;
    if (!scope) {
      scope = audit_scope_start(run, index);
      complete = audit_scope_complete(scope);
    }
    bool exported = audit_exported(run, index, hash);
    if (!complete || (exported && audit_scope_has(scope, hash)))
      continue;
    unknown++;
    char *label = exported ? audit_label(run, &run->objects[audit_exporter(run, index, hash)], true) : NULL;
    add(run, index, MARK_SYMBOL, AUDIT_UNKNOWN, NULL, symbol->name, false,
        label ? "%s exports it, but nothing loads that with this file or before it"
              : "no library that it needs exports it, nor anything else that was audited",
        label);
    free(label);
  }
  audit_scope_free(scope);
}

static void judge_libraries(struct audit_run *run, size_t index) {
  const struct audit_object *object = &run->objects[index];
  for (size_t i = 0; i < object->needed_count; i++) {
    const struct audit_needed *needed = &object->needed[i];
    bool driver = strncmp(needed->name, "libcuda.so.", 11) == 0 || strncmp(needed->name, "libnvidia-ml.so.", 16) == 0;
    if (needed->state == NEEDED_MISSING)
      add(run, index, MARK_LIBRARY, AUDIT_MISSING, NULL, needed->name, false, "not found in %s%s", needed->place,
          driver ? "; it comes with the NVIDIA driver" : "");
  }
}

static bool has_version(const struct audit_object *object, const char *name) {
  for (size_t i = 0; i < object->versions_count && !object->fault; i++)
    if (strcmp(object->versions[i], name) == 0)
      return true;
  return false;
}

/* Which file of a name is loaded is also decided by the program, so any that was read may answer. */
static bool any_has_version(const struct audit_run *run, size_t object, const struct audit_version *wanted) {
  for (size_t i = 0; i < run->objects_count; i++)
    if (!run->objects[i].fault && audit_may_answer(run, object, i) && run->objects[i].soname &&
        strcmp(run->objects[i].soname, wanted->library) == 0 && has_version(&run->objects[i], wanted->name))
      return true;
  return false;
}

/* The loader refuses a file when a library lacks a version that the file names; one without any versions is taken. */
static void judge_versions(struct audit_run *run, size_t index) {
  const struct audit_object *object = &run->objects[index];
  for (size_t i = 0; i < object->needed_versions_count; i++) {
    const struct audit_version *wanted = &object->needed_versions[i];
    const struct audit_object *library = NULL;
    for (size_t k = 0; k < object->needed_count && !library; k++)
      if (object->needed[k].state == NEEDED_FOUND && object->needed[k].object != SIZE_MAX &&
          strcmp(object->needed[k].name, wanted->library) == 0)
        library = &run->objects[object->needed[k].object];
    if (wanted->weak || !library || library->fault || !library->versions_count || has_version(library, wanted->name) ||
        any_has_version(run, index, wanted))
      continue;
    char *label = audit_label(run, library, true);
    add(run, index, MARK_LIBRARY, AUDIT_UNKNOWN, NULL, wanted->library, false, "%s lacks version %s", label,
        wanted->name);
    free(label);
  }
}

/* --- one object --------------------------------------------------------------------------------------------------- */

static bool defines(const struct audit_object *object, const char *name) {
  for (size_t i = 0; i < object->provides_count && !object->fault; i++)
    if (strcmp(object->provides[i].name, name) == 0)
      return true;
  return false;
}

/* Is it defined in the same static archive? The linker takes it from there. */
static bool in_unit(const struct audit_run *run, size_t index, const char *name) {
  const char *unit = run->objects[index].unit;
  for (size_t i = index; unit && i-- > 0 && run->objects[i].unit == unit;)
    if (defines(&run->objects[i], name))
      return true;
  for (size_t i = index + 1; unit && i < run->objects_count && run->objects[i].unit == unit; i++)
    if (defines(&run->objects[i], name))
      return true;
  return false;
}

static void judge_object(struct audit_run *run, size_t index, const struct torch *torch) {
  const struct audit_object *object = &run->objects[index];
  for (size_t i = 0; i < object->undefined_count; i++) {
    const struct audit_symbol *symbol = &object->undefined[i];
    if (symbol->catalog && !in_unit(run, index, symbol->name))
      judge_function(run, index, symbol->weak ? MARK_NEEDS_WEAK : MARK_NEEDS, symbol->name, symbol->catalog);
  }
  for (size_t i = 0; i < object->provides_count; i++) {
    const struct audit_symbol *symbol = &object->provides[i];
    if (symbol->hidden)
      continue;
    char *when = audit_left(run, object, symbol->catalog, CATALOG_LAYER_CXX);
    bool row = audit_gone(run, object, symbol->catalog, CATALOG_LAYER_CXX);
    add(run, index, MARK_PROVIDES, AUDIT_NOTE, symbol->catalog, symbol->name, row, "%s it%s%s",
        is_shim(object) ? served(symbol->catalog) ? "the shim: it has" : "the shim: a call throws, it has no kernel for"
        : of_kernel(run, object) ? "the kernel wheel: it exports"
                                 : "defines",
        row ? ", which " : "", row ? when : "");
    free(when);
  }
  for (size_t i = 0; i < object->strings_count; i++) {
    const struct audit_string *string = &object->strings[i];
    /* A file that has the thing itself asks nobody for it. */
    if (string->operator&& !audit_has_schema(object, strstr(string->text, "::") + 2))
      judge_operator(run, index, string);
    else if (!string->operator&& !audit_exports(object, audit_hash(string->text, strlen(string->text))))
      judge_function(run, index, MARK_STRING, string->text, string->catalog);
  }
  judge_symbols(run, index, torch);
  judge_libraries(run, index);
  judge_versions(run, index);
}

static int in_order(const void *a, const void *b) {
  const struct audit_finding *x = a, *y = b;
  if (x->object != y->object)
    return x->object < y->object ? -1 : 1;
  if (x->mark != y->mark)
    return x->mark < y->mark ? -1 : 1;
  bool grouped = x->mark == MARK_SYMBOL || x->mark == MARK_LIBRARY; /* those for the same reason stand together */
  int order = grouped ? strcmp(x->message, y->message) : 0;
  order = order ? order : strcmp(x->name, y->name);
  return order ? order : strcmp(x->message, y->message);
}

void audit_judge(struct audit_run *run, const char *kernel) {
  audit_choose_kernel(run, kernel);
  run->definers = scan_alloc(NULL, run->objects_count * sizeof *run->definers);
  run->registrars = scan_alloc(NULL, run->objects_count * sizeof *run->registrars);
  for (size_t i = 0; i < run->objects_count; i++) {
    if (run->objects[i].provides_count)
      run->definers[run->definers_count++] = i;
    if (run->objects[i].schemas_count || run->objects[i].inferred_count)
      run->registrars[run->registrars_count++] = i;
  }
  struct torch *torch = scan_alloc(NULL, 2 * run->inputs_count * sizeof *torch);
  for (size_t i = 0; i < 2 * run->inputs_count; i++) {
    torch[i] = (struct torch){0};
    look_at_torch(run, i / 2, i % 2, &torch[i]);
  }
  for (size_t i = 0; i < run->objects_count; i++)
    if (!run->objects[i].fault && !run->objects[i].outside)
      judge_object(run, i, &torch[2 * run->objects[i].input + run->objects[i].packed]);
  free(torch);
  if (run->findings_count)
    qsort(run->findings, run->findings_count, sizeof *run->findings, in_order);
}
