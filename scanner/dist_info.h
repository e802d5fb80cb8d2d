/* The *.dist-info folder of an installed distribution (dist_info.c). */
#ifndef SGL_SCANNER_DIST_INFO_H
#define SGL_SCANNER_DIST_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The value of a key in the head of METADATA; NULL when it is not there. Owned by the caller. */
char *dist_info_value(const char *info, const char *key);

/* A row of RECORD, its texts in dist_info_record's text. */
struct dist_info_row {
  const char *path; /* relative to the folder that the dist-info folder is in, or absolute; may lead anywhere */
  const char *hash; /* "sha256=..."; "" when there is none */
  int64_t size;     /* -1: none */
};
struct dist_info_record {
  char *text; /* owned */
  struct dist_info_row *rows;
  size_t rows_count;
};
/* false after writing what is wrong with the file into message ("cannot be read: ..."). */
bool dist_info_read_record(const char *info, struct dist_info_record *record, char *message, size_t message_size);
/* The rows of a RECORD's text, which is taken. */
void dist_info_split_record(struct dist_info_record *record, char *text);
void dist_info_free_record(struct dist_info_record *record);
/* Is the file in the import package, or the package's only module? */
bool dist_info_in_package(const char *path, const char *package);
/* Does its list of files have the package? */
bool dist_info_owns(const char *info, const char *package);

#endif
