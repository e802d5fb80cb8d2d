/* Joins SARIF logs of sgl-migrate (merge.c). */
#ifndef SGL_SCANNER_MERGE_H
#define SGL_SCANNER_MERGE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct merge;

struct merge *merge_new(void);
void merge_free(struct merge *merge);
/* Takes a log. false after writing what is wrong with it into message ("runs[0].results[3]: no ruleId"); the merge is
 * then of no use any more. say() is called with a line for each thing that the user should know: other options, another
 * version of the tool. */
bool merge_add(struct merge *merge, const char *name, const char *text, size_t size, void (*say)(const char *line),
               char *message, size_t message_size);
/* The joined log, a new reference, and its exit status: the bits of all logs, and EXIT_NOT_ANALYSED when shards are
 * missing. */
json_t *merge_finish(struct merge *merge, void (*say)(const char *line), int *status);

#endif
