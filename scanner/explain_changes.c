/* Changes of names that are still there, and of modules and wheels: what a text that names one is told. */
#include "scanner/explain.h"
#include "scanner/report.h"
#include "scanner/scanner.h"

#include <stdlib.h>
#include <string.h>

static bool token_byte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || (c && strchr("_.$:-", c));
}

static bool is(const char *name, const char *text, size_t length) {
  return strlen(name) == length && memcmp(name, text, length) == 0;
}

static bool is_function(const struct catalog_change *change) {
  return change->what != CATALOG_CHANGED_MODULE && change->what != CATALOG_CHANGED_DISTRIBUTION;
}

/* Is it the change's name, with or without what stands before it: "sgl_kernel.NAME", "sgl_kernel::NAME"? */
static bool names(const struct catalog_change *change, const char *text, size_t length) {
  size_t last = length;
  while (last > 0 && text[last - 1] != '.' && text[last - 1] != ':')
    last--;
  return is(change->name, text, length) || (is_function(change) && is(change->name, text + last, length - last)) ||
         is(change->id, text, length);
}

static bool is_old_symbol(const struct catalog_change *change, const char *text, size_t length) {
  return *change->mangled_before && strcmp(change->mangled_before, change->mangled_after) != 0 &&
         is(change->mangled_before, text, length);
}

static int by_release(const void *left, const void *right) {
  const struct catalog_change *const *a = left, *const *b = right;
  int order = catalog_version_compare((*a)->release, (*b)->release);
  return order ? order : strcmp((*a)->id, (*b)->id);
}

static void print_change(const struct catalog *catalog, const struct catalog_change *change) {
  static const char *const faces[] = {
      [CATALOG_CHANGED_CXX] = "C++",       [CATALOG_CHANGED_DISTRIBUTION] = "wheel",
      [CATALOG_CHANGED_MODULE] = "module", [CATALOG_CHANGED_OPERATOR] = "torch operator",
      [CATALOG_CHANGED_PYTHON] = "Python",
  };
  bool python = change->what == CATALOG_CHANGED_PYTHON;
  printf("\n%s, from %s on", faces[change->what], change->release);
  if (change->change)
    printf(" (%s%s%s)", change->change, change->date ? ", " : "", change->date ? change->date : "");
  for (unsigned i = 0; i < change->platforms_count; i++)
    printf("%s%s", i ? ", " : "; on ", catalog_platform_title(change->platforms[i]));
  putchar('\n');
  if (change->what == CATALOG_CHANGED_OPERATOR)
    printf("  torch.ops.%s.%s\n", catalog->library.op_namespace, change->name);
  if (strcmp(change->before, change->after) != 0)
    printf("  before: %s%s\n  after:  %s%s\n", python ? change->name : "", change->before, python ? change->name : "",
           change->after);
  printf("  %s\n", change->reason);
  if (*change->remedy)
    printf("  what to do: %s\n", change->remedy);
}

size_t explain_changes(const struct catalog *catalog, const char *text, bool message, bool first) {
  const struct catalog_change **list =
      catalog->changes_count ? scan_alloc(NULL, catalog->changes_count * sizeof(*list)) : NULL;
  bool *seen = catalog->changes_count ? scan_alloc(NULL, catalog->changes_count) : NULL;
  size_t printed = 0;
  if (seen)
    memset(seen, 0, catalog->changes_count);
  for (const char *at = text; *at;) {
    size_t length = 0, count = 0;
    while (token_byte(at[length]))
      length++;
    size_t word = length;
    while (word && strchr(".:-", at[word - 1])) /* the end of a sentence */
      word--;
    for (unsigned i = 0; i < catalog->changes_count && word; i++) {
      const struct catalog_change *change = &catalog->changes[i];
      /* Messages about arguments write "NAME() takes"; other names in a message are there by the way. */
      bool meant = !message || (is_function(change) ? strncmp(at + word, "()", 2) == 0 : first);
      if (!seen[i] && (is_old_symbol(change, at, word) || (meant && names(change, at, word)))) {
        seen[i] = true;
        list[count++] = change;
      }
    }
    if (count) {
      qsort(list, count, sizeof *list, by_release);
      bool functions = false;
      printf("%s%s: what changed of it\n", first && !printed ? "" : "\n----\n\n", list[0]->name);
      for (size_t i = 0; i < count; i++) {
        print_change(catalog, list[i]);
        functions = functions || is_function(list[i]);
      }
      if (functions)
        printf("\nsgl-migrate scan --changed finds the calls that are broken by one of these changes.\n");
    }
    printed += count;
    at += length ? length : 1;
  }
  free(list);
  free(seen);
  return printed;
}
