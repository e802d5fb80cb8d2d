/* What the *.dist-info folder of an installed distribution says. */
#include "scanner/dist_info.h"
#include "scanner/file.h"
#include "scanner/scanner.h"

#include <stdlib.h>
#include <string.h>

/* Descriptions are long, and a RECORD of torch has two MiB. */
#define LARGEST_METADATA ((size_t)16 << 20)
#define LARGEST_RECORD ((size_t)64 << 20)

char *dist_info_value(const char *info, const char *key) {
  char message[256], *path = scan_format("%s/METADATA", info), *value = NULL;
  size_t size, length = strlen(key);
  char *text = file_read(path, LARGEST_METADATA, &size, message, sizeof message);
  free(path);
  for (char *line = text; line && !value && *line && *line != '\n' && *line != '\r';) {
    size_t end = strcspn(line, "\r\n");
    if (strncmp(line, key, length) == 0 && line[length] == ':') {
      char *start = line + length + 1 + strspn(line + length + 1, " ");
      value = scan_format("%.*s", (int)(line + end > start ? line + end - start : 0), start);
    }
    line += end;
    line += *line == '\r';
    line += *line == '\n';
  }
  free(text);
  return value;
}

/* Takes one field of CSV in place and returns what ends it: a comma, a newline, or 0 at the end of the text. */
static char take_field(char **at, const char **field) {
  char *from = *at, *to = *at;
  bool quoted = false;
  *field = to;
  for (; *from && (quoted || (*from != ',' && *from != '\n')); from++) {
    if (*from != '"')
      *to++ = *from;
    else if (quoted && from[1] == '"') /* two are one of the text */
      *to++ = *from++;
    else
      quoted = !quoted;
  }
  char end = *from;
  *at = from + (end != 0);
  if (to > *field && to[-1] == '\r')
    to--;
  *to = '\0';
  return end;
}

static char *take_row(char *at, struct dist_info_row *row) {
  const char *fields[3] = {"", "", ""}, *field;
  size_t count = 0;
  char end;
  do {
    end = take_field(&at, &field);
    if (count < 3)
      fields[count++] = field;
  } while (end == ',');
  *row = (struct dist_info_row){fields[0], fields[1], *fields[2] ? strtoll(fields[2], NULL, 10) : -1};
  return at;
}

void dist_info_split_record(struct dist_info_record *record, char *text) {
  size_t capacity = 0;
  *record = (struct dist_info_record){.text = text};
  for (char *line = text; *line;) {
    struct dist_info_row row;
    line = take_row(line, &row);
    if (!*row.path)
      continue;
    if (record->rows_count == capacity) {
      capacity = capacity ? 2 * capacity : 64;
      record->rows = scan_alloc(record->rows, capacity * sizeof *record->rows);
    }
    record->rows[record->rows_count++] = row;
  }
}

bool dist_info_read_record(const char *info, struct dist_info_record *record, char *message, size_t message_size) {
  char *path = scan_format("%s/RECORD", info);
  size_t size;
  *record = (struct dist_info_record){0};
  char *text = file_read(path, LARGEST_RECORD, &size, message, message_size);
  free(path);
  if (text)
    dist_info_split_record(record, text);
  return text != NULL;
}

void dist_info_free_record(struct dist_info_record *record) {
  free(record->rows);
  free(record->text);
}

bool dist_info_in_package(const char *path, const char *package) {
  size_t length = strlen(package);
  return strncmp(path, package, length) == 0 && (path[length] == '/' || strcmp(path + length, ".py") == 0);
}

bool dist_info_owns(const char *info, const char *package) {
  struct dist_info_record record;
  char message[256];
  bool yes = false;
  if (!dist_info_read_record(info, &record, message, sizeof message))
    return false;
  for (size_t i = 0; i < record.rows_count && !yes; i++)
    yes = dist_info_in_package(record.rows[i].path, package);
  dist_info_free_record(&record);
  return yes;
}
