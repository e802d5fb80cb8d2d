/* What the fronts fill: the result of one file. */
#include "scanner/ignore.h"
#include "scanner/scanner.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static int strength(enum verdict verdict) {
  return verdict == VERDICT_REPORT ? 2 : verdict == VERDICT_REWRITE ? 1 : 0;
}

void result_find(struct result *result, uint32_t line, uint32_t column, const struct catalog_symbol *symbol,
                 enum verdict verdict, enum evidence evidence, enum level level, const char *format, ...) {
  struct finding *finding = NULL;
  if (result->findings_count && result->findings[result->findings_count - 1].line > line)
    result->unordered = true;
  for (size_t i = result->findings_count; i-- > 0 && !finding;) {
    if (result->findings[i].line == line && result->findings[i].symbol == symbol)
      finding = &result->findings[i];
    else if (result->findings[i].line < line && !result->unordered)
      break; /* a front that goes line by line does not search the whole list each time */
  }
  if (finding && strength(verdict) <= strength(finding->verdict))
    return;
  if (finding) {
    free(finding->message);
  } else {
    if (result->findings_count == result->findings_capacity) {
      result->findings_capacity = result->findings_capacity ? 2 * result->findings_capacity : 8;
      result->findings = scan_alloc(result->findings, result->findings_capacity * sizeof *result->findings);
    }
    finding = &result->findings[result->findings_count++];
  }
  va_list list;
  va_start(list, format);
  *finding = (struct finding){line,          column, symbol, verdict, evidence, level, scan_format_list(format, list),
                              STANDING_OPEN, NULL};
  va_end(list);
}

void result_edit(struct result *result, uint32_t group, size_t start, size_t end, const char *text, size_t text_size) {
  if (result->edits_count == result->edits_capacity) {
    result->edits_capacity = result->edits_capacity ? 2 * result->edits_capacity : 8;
    result->edits = scan_alloc(result->edits, result->edits_capacity * sizeof *result->edits);
  }
  char *copy = scan_alloc(NULL, text_size + 1);
  if (text_size)
    memcpy(copy, text, text_size);
  copy[text_size] = '\0';
  result->edits[result->edits_count++] = (struct edit){start, end, copy, text_size, group};
}

void result_coverage(struct result *result, enum coverage coverage, const char *format, ...) {
  if (coverage <= result->coverage)
    return; /* the worst one counts, the first reason for it stays */
  free(result->coverage_reason);
  va_list list;
  va_start(list, format);
  result->coverage_reason = scan_format_list(format, list);
  va_end(list);
  result->coverage = coverage;
}

void result_free(struct result *result) {
  for (size_t i = 0; i < result->findings_count; i++)
    free(result->findings[i].message);
  for (size_t i = 0; i < result->edits_count; i++)
    free(result->edits[i].text);
  free(result->findings);
  free(result->edits);
  free(result->coverage_reason);
  ignore_free(result);
  *result = (struct result){0};
}
