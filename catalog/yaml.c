/* YAML files that are read by a schema of libcyaml, with errors that name the line. */
#include "catalog/yaml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

/* libcyaml tells an error as a series of log lines: what is wrong, then the places, innermost first. */
struct log {
  char what[300];
  char field[100];       /* of the innermost place */
  unsigned line, around; /* of the two innermost places; 0 when there is none */
};

static void take_log(cyaml_log_t level, void *context, const char *format, va_list arguments) {
  static const char prefix[] = "Load: ", in_field[] = "in mapping field '", at_line[] = "line: ";
  struct log *log = context;
  char text[300];
  if (level < CYAML_LOG_ERROR)
    return;
  vsnprintf(text, sizeof text, format, arguments);
  text[strcspn(text, "\n")] = '\0';
  const char *what = strncmp(text, prefix, sizeof prefix - 1) == 0 ? text + sizeof prefix - 1 : text;
  const char *line = strstr(what, at_line);
  if (!line) {
    if (log->what[0] == '\0' && strcmp(what, "Backtrace:") != 0)
      snprintf(log->what, sizeof log->what, "%s", what);
    return;
  }
  unsigned number = (unsigned)strtoul(line + sizeof at_line - 1, NULL, 10);
  if (log->line == 0) {
    log->line = number;
    const char *field = strstr(what, in_field);
    if (field) {
      field += sizeof in_field - 1;
      snprintf(log->field, sizeof log->field, "%.*s", (int)strcspn(field, "'"), field);
    }
  } else if (log->around == 0) {
    log->around = number;
  }
}

/* For a key that it does not want, libcyaml knows only the line of the value before it: look on from there. */
static unsigned line_of_key(const char *text, const char *key, unsigned line) {
  const char *start = text;
  for (unsigned i = 1; i < line && *start; i++) { /* a carriage return ends a line of YAML too */
    start += strcspn(start, "\n");
    start += *start == '\n';
  }
  size_t length = strlen(key);
  unsigned at_line = line;
  if (length == 0)
    return line;
  for (const char *at = start, *hit; (hit = strstr(at, key)) != NULL; at = hit + 1) {
    for (const char *passed = at; passed < hit; passed++)
      at_line += *passed == '\n';
    bool begins = hit == text || strchr(" \n{,\"'", hit[-1]);
    if (begins && hit[length + (hit[length] == '"')] == ':')
      return at_line;
  }
  return line;
}

/* Where the text stops being YAML: libcyaml does not pass libyaml's mark on. */
static unsigned line_of_problem(const char *text, size_t size) {
  yaml_parser_t parser;
  yaml_document_t document;
  unsigned line = 0;
  if (!yaml_parser_initialize(&parser))
    return 0;
  yaml_parser_set_input_string(&parser, (const unsigned char *)text, size);
  if (yaml_parser_load(&parser, &document)) {
    yaml_document_delete(&document);
  } else if (parser.error == YAML_READER_ERROR) { /* a byte that is no text has an offset only */
    line = 1;
    for (size_t i = 0; i < parser.problem_offset && i < size; i++)
      line += text[i] == '\n';
  } else {
    line = (unsigned)parser.problem_mark.line + 1;
  }
  yaml_parser_delete(&parser);
  return line;
}

/* libcyaml's words before the text in question, and ours. Anything else is told as libcyaml tells it. */
static const struct {
  const char *theirs, *ours;
  enum { ABOUT_KEY, ABOUT_SECOND_KEY, ABOUT_MAPPING, ABOUT_VALUE, ABOUT_TYPE } about;
} wordings[] = {
    {"Unexpected key: ", "unknown key", ABOUT_KEY},
    {"Mapping field already seen: ", "this key is there twice:", ABOUT_SECOND_KEY},
    {"Missing required mapping field: ", "this key is missing:", ABOUT_MAPPING},
    {"Invalid ENUM value: ", "unknown word", ABOUT_VALUE},
    {"Invalid uint64_t value: ", "no number:", ABOUT_VALUE},
    {"Invalid UINT value: ", "no number:", ABOUT_VALUE},
    {"Expecting SEQUENCE, ", "a list is expected", ABOUT_TYPE},
    {"Expecting MAPPING, ", "a mapping is expected", ABOUT_TYPE},
    {"Expecting STRING, ", "a text is expected", ABOUT_TYPE},
};

static void explain(const char *path, const char *text, size_t size, const struct log *log, cyaml_err_t status,
                    char *message, size_t message_size) {
  const char *what = log->what[0] ? log->what : cyaml_strerror(status);
  unsigned line = strncmp(what, "libyaml: ", 9) == 0 ? line_of_problem(text, size) : log->line;
  char ours[500];
  snprintf(ours, sizeof ours, "%s", what);
  for (size_t i = 0; i < sizeof wordings / sizeof wordings[0]; i++) {
    size_t length = strlen(wordings[i].theirs);
    if (strncmp(what, wordings[i].theirs, length) != 0)
      continue;
    const char *word = what + length;
    switch (wordings[i].about) {
    case ABOUT_KEY:
    case ABOUT_SECOND_KEY:
      line = line_of_key(text, word, line + (wordings[i].about == ABOUT_SECOND_KEY));
      snprintf(ours, sizeof ours, "%s %s", wordings[i].ours, word);
      break;
    case ABOUT_MAPPING:
      line = log->around ? log->around : line;
      snprintf(ours, sizeof ours, "%s %s", wordings[i].ours, word);
      break;
    case ABOUT_VALUE:
      snprintf(ours, sizeof ours, "%s %s%s%s", wordings[i].ours, word, log->field[0] ? " in field " : "", log->field);
      break;
    case ABOUT_TYPE:
      snprintf(ours, sizeof ours, "%s%s%s", wordings[i].ours, log->field[0] ? " in field " : "", log->field);
      break;
    }
  }
  if (line)
    snprintf(message, message_size, "%s:%u: %s", path, line, ours);
  else
    snprintf(message, message_size, "%s: %s", path, ours);
}

static cyaml_config_t configuration(struct log *log) {
  return (cyaml_config_t){
      .log_fn = log ? take_log : NULL,
      .log_ctx = log,
      .log_level = CYAML_LOG_ERROR,
      .mem_fn = cyaml_mem,
      .flags = CYAML_CFG_NO_ALIAS,
  };
}

bool yaml_load(const char *path, const char *text, size_t size, const cyaml_schema_value_t *schema, void **value,
               char *message, size_t message_size) {
  struct log log = {.line = 0};
  cyaml_config_t config = configuration(&log);
  cyaml_err_t status = cyaml_load_data((const uint8_t *)text, size, &config, schema, value, NULL);
  if (status != CYAML_OK)
    explain(path, text, size, &log, status, message, message_size);
  return status == CYAML_OK;
}

void yaml_free(const cyaml_schema_value_t *schema, void *value) {
  cyaml_config_t config = configuration(NULL);
  cyaml_free(&config, schema, value, 0);
}
