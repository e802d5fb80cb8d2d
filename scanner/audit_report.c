/* What an audit has to say: rows of the case contract, text for people, exit status. */
#include "scanner/audit.h"
#include "scanner/report.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SAME_SHOWN 5 /* of findings that differ in the symbol only */
#define LEFT_OUT_SHOWN 20

int audit_status(const struct audit_run *run) {
  int status = 0;
  for (size_t i = 0; i < run->objects_count; i++)
    if (run->objects[i].fault && !run->objects[i].outside)
      status |= EXIT_NOT_ANALYSED;
  for (size_t i = 0; i < run->findings_count; i++) {
    enum audit_verdict verdict = run->findings[i].verdict;
    if (verdict == AUDIT_SHIM || verdict == AUDIT_REMOVED || verdict == AUDIT_TORCH || verdict == AUDIT_UNKNOWN ||
        verdict == AUDIT_MISSING)
      status |= EXIT_USES | (verdict == AUDIT_SHIM ? 0 : EXIT_PERSON);
  }
  return status;
}

const char *audit_verdict_word(enum audit_verdict verdict) {
  static const char *const words[] = {[AUDIT_ALIVE] = "alive",
                                      [AUDIT_SHIM] = "shim",
                                      [AUDIT_REMOVED] = "removed",
                                      [AUDIT_OPTIONAL] = "optional",
                                      [AUDIT_TORCH] = "torch-abi",
                                      [AUDIT_UNKNOWN] = "unknown-provider",
                                      [AUDIT_MISSING] = "missing-library",
                                      [AUDIT_NOTE] = "note"};
  return words[verdict];
}

char *audit_label(const struct audit_run *run, const struct audit_object *object, bool member) {
  const struct audit_input *input = &run->inputs[object->input];
  bool folder = run->inputs_count > 1 && input->folder && !object->outside;
  size_t end = folder ? strlen(input->given) : 0;
  while (end > 1 && input->given[end - 1] == '/')
    end--;
  return scan_format("%.*s%s%s%s%s", (int)end, input->given, folder ? "/" : "", object->path,
                     member && object->member ? "!" : "", member && object->member ? object->member : "");
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

struct row {
  char *path;
  const char *symbol, *verdict;
};

static int by_row(const void *a, const void *b) {
  const struct row *x = a, *y = b;
  int order = strcmp(x->path, y->path);
  order = order ? order : strcmp(x->symbol, y->symbol);
  return order ? order : strcmp(x->verdict, y->verdict);
}

bool audit_report_tsv(const struct audit_run *run) {
  static const char *const words[] = {[MARK_NEEDS] = "needs",
                                      [MARK_NEEDS_WEAK] = "needs-weak",
                                      [MARK_PROVIDES] = "provides",
                                      [MARK_STRING] = "string",
                                      [MARK_TORCH] = "torch-abi"};
  struct row *rows = scan_alloc(NULL, (run->objects_count + run->findings_count) * sizeof *rows);
  size_t count = 0;
  for (size_t i = 0; i < run->objects_count; i++)
    if (run->objects[i].fault && !run->objects[i].outside)
      rows[count++] = (struct row){audit_label(run, &run->objects[i], false), "-", "not-analysed"};
  for (size_t i = 0; i < run->findings_count; i++) {
    const struct audit_finding *finding = &run->findings[i];
    if (finding->row)
      rows[count++] = (struct row){audit_label(run, &run->objects[finding->object], false),
                                   finding->symbol ? finding->symbol->id : finding->name, words[finding->mark]};
  }
  if (count)
    qsort(rows, count, sizeof *rows, by_row);
  for (size_t i = 0; i < count; i++) {
    if (i == 0 || by_row(&rows[i - 1], &rows[i]) != 0) {
      report_plain(stdout, rows[i].path);
      putchar('\t');
      report_plain(stdout, rows[i].symbol);
      printf("\t%s\n", rows[i].verdict);
    }
  }
  for (size_t i = 0; i < count; i++)
    free(rows[i].path);
  free(rows);
  return true;
}

/* --- text --------------------------------------------------------------------------------------------------------- */

static const char *verdict_colour(enum audit_verdict verdict) {
  static const char *const colours[] = {
      [AUDIT_ALIVE] = "\x1b[32m",   [AUDIT_SHIM] = "\x1b[33m",  [AUDIT_REMOVED] = "\x1b[31m",
      [AUDIT_OPTIONAL] = "\x1b[2m", [AUDIT_TORCH] = "\x1b[31m", [AUDIT_UNKNOWN] = "\x1b[31m",
      [AUDIT_MISSING] = "\x1b[31m", [AUDIT_NOTE] = "\x1b[2m"};
  return colours[verdict];
}

static const char *type_word(const struct audit_object *object) {
  switch (object->type) {
  case ET_REL:
    return "object file";
  case ET_EXEC:
    return "program";
  case ET_DYN:
    return object->pie ? "program" : "library";
  case ET_CORE:
    return "core dump";
  }
  return "ELF file";
}

static void print_code(const struct audit_object *object) {
  for (size_t i = 0; i < object->code_count; i++) {
    const struct audit_code *code = &object->code[i];
    printf("%s%s_%u%s", i ? " " : ", CUDA code for ", code->ptx ? "compute" : "sm", code->arch,
           code->suffix == 'a'   ? "a"
           : code->suffix == 'f' ? "f"
                                 : "");
  }
}

/* One line on what the file is. */
static void print_facts(const struct audit_object *object) {
  printf("  %s %s", object->machine, type_word(object));
  if (object->soname) {
    fputs(", SONAME ", stdout);
    report_plain(stdout, object->soname);
  }
  if (object->build_id)
    printf(", build id %s", object->build_id);
  const char *needs[][2] = {{" glibc ", object->glibc}, {" GLIBCXX ", object->glibcxx}};
  for (size_t i = 0; i < 2; i++) {
    if (!needs[i][1])
      continue;
    printf("%s%s", i == 0 || !object->glibc ? ", needs" : "", needs[i][0]);
    report_plain(stdout, needs[i][1]);
  }
  print_code(object);
  if (object->torch_symbols)
    printf(", %u symbols of torch%s", object->torch_symbols,
           object->torch_old_strings   ? " (old C++ ABI)"
           : object->torch_new_strings ? " (new C++ ABI)"
                                       : "");
  else if (object->torch_stable)
    fputs(", torch's stable ABI only", stdout);
  putchar('\n');
}

/* Torch's symbols are counted, and what a kernel library has is only of interest when it is to go. */
static bool shown(const struct audit_finding *finding) {
  return finding->mark != MARK_TORCH && (finding->mark != MARK_PROVIDES || finding->row);
}

static void print_finding(const struct audit_finding *finding, bool colour) {
  const char *word = audit_verdict_word(finding->verdict);
  if (finding->mark == MARK_PROVIDES)
    word = "provides";
  printf("  %s%s%s ", colour ? verdict_colour(finding->verdict) : "", word, colour ? "\x1b[0m" : "");
  if (finding->symbol && strcmp(finding->symbol->id, finding->name) != 0)
    printf("%s (%s%s): ", finding->symbol->id, finding->mark == MARK_STRING ? "string " : "", finding->name);
  else {
    report_plain(stdout, finding->name);
    fputs(": ", stdout);
  }
  report_plain(stdout, finding->message);
  putchar('\n');
}

/* Do they differ in the name only? Of many symbols some are shown; libraries are listed in one line. */
static bool alike(const struct audit_finding *a, const struct audit_finding *b) {
  return a->mark == b->mark && (a->mark == MARK_SYMBOL || a->mark == MARK_LIBRARY) && a->verdict == b->verdict &&
         strcmp(a->message, b->message) == 0;
}

/* The findings [at, end), which are alike. */
static void print_alike(const struct audit_finding *findings, size_t count, bool colour) {
  if (findings->mark == MARK_LIBRARY) {
    char *names = scan_format("%s", findings->name);
    for (size_t i = 1; i < count; i++) {
      char *longer = scan_format("%s, %s", names, findings[i].name);
      free(names);
      names = longer;
    }
    struct audit_finding all = findings[0];
    all.name = names;
    print_finding(&all, colour);
    free(names);
    return;
  }
  for (size_t i = 0; i < count && i < SAME_SHOWN; i++)
    print_finding(&findings[i], colour);
  if (count > SAME_SHOWN)
    printf("  %s and %zu more like it\n", audit_verdict_word(findings->verdict), count - SAME_SHOWN);
}

/* The findings of one object from index `at` on; returns the first one of the next. */
static size_t print_object(const struct audit_run *run, size_t at, bool colour) {
  size_t object = run->findings[at].object, end = at, visible = 0;
  for (; end < run->findings_count && run->findings[end].object == object; end++)
    visible += shown(&run->findings[end]);
  if (visible == 0)
    return end;
  char *label = audit_label(run, &run->objects[object], true);
  report_plain(stdout, label);
  putchar('\n');
  free(label);
  print_facts(&run->objects[object]);
  while (at < end) {
    size_t count = 1;
    while (at + count < end && alike(&run->findings[at], &run->findings[at + count]))
      count++;
    if (shown(&run->findings[at]))
      print_alike(&run->findings[at], count, colour);
    at += count;
  }
  return end;
}

static void print_summary(const struct audit_run *run) {
  size_t counts[AUDIT_NOTE + 1] = {0}, faults = 0, objects = 0;
  for (size_t i = 0; i < run->findings_count; i++)
    counts[run->findings[i].verdict]++;
  for (size_t i = 0; i < run->objects_count; i++) {
    faults += run->objects[i].fault && !run->objects[i].outside;
    objects += !run->objects[i].fault && !run->objects[i].outside;
  }
  printf("%zu ELF file%s in %zu file%s, against kernel %s (%s)", objects, report_plural(objects), run->files,
         report_plural(run->files), run->kernel, run->kernel_from);
  if (run->torch) {
    fputs(" and torch ", stdout);
    report_plain(stdout, run->torch);
  }
  printf(
      ": %zu alive, %zu of the shim, %zu removed, %zu optional, %zu torch ABI, %zu of an unknown provider, %zu missing "
      "librar%s; %zu not analysed\n",
      counts[AUDIT_ALIVE], counts[AUDIT_SHIM], counts[AUDIT_REMOVED], counts[AUDIT_OPTIONAL], counts[AUDIT_TORCH],
      counts[AUDIT_UNKNOWN], counts[AUDIT_MISSING], counts[AUDIT_MISSING] == 1 ? "y" : "ies", faults);
}

bool audit_report_text(const struct audit_run *run) {
  bool colour = report_colour();
  for (size_t at = 0; at < run->findings_count;)
    at = print_object(run, at, colour);
  print_summary(run);
  for (size_t i = 0; i < run->left_out_count && i < LEFT_OUT_SHOWN; i++) {
    fputs("left out: ", stdout);
    report_plain(stdout, run->left_out[i]);
    putchar('\n');
  }
  if (run->left_out_count > LEFT_OUT_SHOWN)
    printf("left out: %zu more; --format json names all\n", run->left_out_count - LEFT_OUT_SHOWN);
  return true;
}

static bool same_fault(const struct audit_object *a, const struct audit_object *b) {
  return b->fault && strcmp(a->path, b->path) == 0 && strcmp(a->fault, b->fault) == 0;
}

void audit_report_faults(const struct audit_run *run) {
  for (size_t i = 0; i < run->objects_count; i++) {
    const struct audit_object *object = &run->objects[i];
    if (!object->fault || object->outside)
      continue;
    char *label = audit_label(run, object, true);
    size_t more = 0; /* members of the same archive with the same fault */
    while (i + 1 < run->objects_count && object->member && same_fault(object, &run->objects[i + 1])) {
      more++;
      i++;
    }
    fputs("sgl-migrate: ", stderr);
    report_plain(stderr, label);
    fputs(": not analysed: ", stderr);
    report_plain(stderr, object->fault);
    if (more)
      fprintf(stderr, " (and %zu more members of the archive)", more);
    fputc('\n', stderr);
    free(label);
  }
}
