/* What the tests of statistics share: a folder for the files, and reading them. */
#ifndef SGL_TESTS_USAGE_FILES_H
#define SGL_TESTS_USAGE_FILES_H

#include "shim/usage.h"
#include "tests/shim/world.h"

#include <dirent.h>
#include <jansson.h>

#define EXPECT_STRINGS(have, want) EXPECT(unit_equal_strings((have), (want)))

static char folder[64];

__attribute__((unused)) static void make_folder(void) {
  strcpy(folder, "/tmp/sgl-usage-XXXXXX");
  EXPECT(mkdtemp(folder) != NULL);
}

/* How many files of the folder end so; the path of the last of them. */
__attribute__((unused)) static int files(const char *end, char *path, size_t size) {
  DIR *list = opendir(folder);
  int count = 0;
  for (struct dirent *entry; list && (entry = readdir(list));) {
    size_t length = strlen(entry->d_name), wanted = strlen(end);
    if (entry->d_type != DT_REG || length < wanted || strcmp(entry->d_name + length - wanted, end) != 0)
      continue;
    count++;
    snprintf(path, size, "%s/%s", folder, entry->d_name);
  }
  if (list)
    closedir(list);
  return count;
}

__attribute__((unused)) static char *text_of(const char *path) {
  static char text[1 << 16];
  FILE *file = fopen(path, "r");
  text[file ? fread(text, 1, sizeof text - 1, file) : 0] = '\0';
  if (file)
    fclose(file);
  return text;
}

/* The one file of the folder as a list of values; the folder is removed. */
__attribute__((unused)) static json_t *lines(void) {
  char path[400], other[400];
  json_t *all = json_array();
  EXPECT(files(".jsonl", path, sizeof path) == 1);
  EXPECT(files(".prom", other, sizeof other) == 1);
  EXPECT(files("", other, sizeof other) == 2); /* no left-overs */
  for (char *line = strtok(text_of(path), "\n"); line; line = strtok(NULL, "\n")) {
    json_error_t error;
    json_t *value = json_loads(line, JSON_REJECT_DUPLICATES, &error);
    if (!value)
      fprintf(stderr, "  %s: %s\n", line, error.text);
    EXPECT(value != NULL);
    json_array_append_new(all, value);
  }
  return all;
}

__attribute__((unused)) static void remove_folder(void) {
  char path[400];
  while (files("", path, sizeof path) > 0 && unlink(path) == 0)
    ;
  EXPECT(rmdir(folder) == 0);
}

/* All calls of a symbol, face and stage in the file. */
__attribute__((unused)) static long long calls_of(const json_t *all, const char *symbol, const char *face,
                                                  const char *stage) {
  long long sum = 0;
  size_t i;
  const json_t *line;
  json_array_foreach(all, i, line) {
    const char *name = json_string_value(json_object_get(line, "symbol"));
    const char *is = json_string_value(json_object_get(line, "face"));
    if (name && is && strcmp(name, symbol) == 0 && strcmp(is, face) == 0)
      sum += json_integer_value(json_object_get(json_object_get(line, "calls"), stage));
  }
  return sum;
}

__attribute__((unused)) static json_t *written(void) {
  char message[500] = "";
  make_folder();
  EXPECT(sgl_compat_usage_write(folder, message, sizeof message) == SGL_COMPAT_OK);
  EXPECT_STRINGS(message, "");
  json_t *all = lines();
  return all;
}

#endif
