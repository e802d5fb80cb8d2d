/* What an audit has to say: rows of the case contract, text for people, exit status. */
#include "scanner/audit.h"
#include "scanner/report.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SAME_SHOWN 5 /* of findings that differ in the symbol only */

int audit_status(const struct audit_run *run) {
  int status = run->notes_count ? EXIT_NOT_ANALYSED : 0;
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
  if (object->glibc || object->glibcxx)
    printf(", needs%s%s%s%s", object->glibc ? " glibc " : "", object->glibc ? object->glibc : "",
           object->glibcxx ? " GLIBCXX " : "", object->glibcxx ? object->glibcxx : "");
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
  size_t same = 0;
  for (size_t i = at; i < end; i++) {
    const struct audit_finding *finding = &run->findings[i], *before = i > at ? finding - 1 : NULL;
    if (!shown(finding))
      continue;
    bool alike = before && finding->mark == MARK_SYMBOL && before->mark == MARK_SYMBOL &&
                 finding->verdict == before->verdict && strcmp(finding->message, before->message) == 0;
    same = alike ? same + 1 : 0;
    if (same < SAME_SHOWN)
      print_finding(finding, colour);
    const struct audit_finding *after = i + 1 < end ? finding + 1 : NULL;
    bool more = after && after->mark == MARK_SYMBOL && after->verdict == finding->verdict &&
                strcmp(after->message, finding->message) == 0;
    if (same >= SAME_SHOWN && !more)
      printf("  %s and %zu more like it\n", audit_verdict_word(finding->verdict), same - SAME_SHOWN + 1);
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
  if (run->torch)
    printf(" and torch %s", run->torch);
  printf(
      ": %zu alive, %zu of the shim, %zu removed, %zu optional, %zu torch ABI, %zu of an unknown provider, %zu missing "
      "librar%s; %zu not analysed\n",
      counts[AUDIT_ALIVE], counts[AUDIT_SHIM], counts[AUDIT_REMOVED], counts[AUDIT_OPTIONAL], counts[AUDIT_TORCH],
      counts[AUDIT_UNKNOWN], counts[AUDIT_MISSING], counts[AUDIT_MISSING] == 1 ? "y" : "ies",
      faults + run->notes_count);
}

bool audit_report_text(const struct audit_run *run) {
  bool colour = report_colour();
  for (size_t at = 0; at < run->findings_count;)
    at = print_object(run, at, colour);
  print_summary(run);
  return true;
}

void audit_report_faults(const struct audit_run *run) {
  for (size_t i = 0; i < run->notes_count; i++) {
    fputs("sgl-migrate: ", stderr);
    report_plain(stderr, run->notes[i]);
    fputc('\n', stderr);
  }
  for (size_t i = 0; i < run->objects_count; i++) {
    const struct audit_object *object = &run->objects[i];
    if (!object->fault || object->outside)
      continue;
    char *label = audit_label(run, object, true);
    fputs("sgl-migrate: ", stderr);
    report_plain(stderr, label);
    fputs(": not analysed: ", stderr);
    report_plain(stderr, object->fault);
    fputc('\n', stderr);
    free(label);
  }
}
