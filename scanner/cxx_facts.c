/* What the index wants to know of every C++ file, with a hit or not. It is taken while the file is read, so that of
 * files without a hit nothing else need be kept. */
#include "scanner/cxx_facts.h"

#include <string.h>

struct list {
  char *text;
  size_t size, capacity;
};

static void add(struct list *list, enum cxx_fact fact, const uint8_t *text, size_t length) {
  if (memchr(text, '\0', length))
    return; /* no file and no macro is called so */
  if (list->size + length + 3 > list->capacity) {
    list->capacity = 2 * list->capacity + length + 256;
    list->text = scan_alloc(list->text, list->capacity);
  }
  list->text[list->size] = (char)fact;
  memcpy(list->text + list->size + 1, text, length);
  list->text[list->size + 1 + length] = '\0';
  list->size += length + 2;
}

static bool blank_byte(uint8_t c) {
  return c == ' ' || c == '\t';
}

static bool name_byte(uint8_t c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$' ||
         c >= 0x80;
}

static const uint8_t *skip_blanks(const uint8_t *at, const uint8_t *end) {
  while (at < end && blank_byte(*at))
    at++;
  return at;
}

/* Behind "include": the last part of the path. */
static void add_include(struct list *list, const uint8_t *at, const uint8_t *end) {
  at = skip_blanks(at, end);
  if (at == end || (*at != '"' && *at != '<'))
    return;
  uint8_t close = *at == '"' ? '"' : '>';
  const uint8_t *name = ++at;
  for (; at < end && *at != close && *at != '\n'; at++)
    if (*at == '/')
      name = at + 1;
  if (at > name)
    add(list, CXX_FACT_INCLUDE, name, (size_t)(at - name));
}

char *cxx_facts_read(const uint8_t *bytes, size_t size) {
  struct list list = {0};
  const uint8_t *at = bytes, *end = bytes + size;
  bool unclear = false;
  for (; !unclear && at < end && (at = memchr(at, '%', (size_t)(end - at))) != NULL; at++)
    unclear = end - at > 1 && at[1] == ':'; /* # by another spelling */
  for (at = bytes; at < end && (at = memchr(at, '#', (size_t)(end - at))) != NULL;) {
    at = skip_blanks(at + 1, end);
    if (end - at >= 10 && memcmp(at, "include", 7) == 0)
      add_include(&list, at + 7, end);
    bool define = end - at > 6 && memcmp(at, "define", 6) == 0;
    const uint8_t *name = skip_blanks(define ? at + 6 : at, end);
    if (name < end && (*name == '\\' || *name == '/'))
      unclear = true; /* what follows comes behind a comment or on the next line */
    const uint8_t *close = name;
    while (define && close < end && name_byte(*close))
      close++;
    if (close > name && close < end && *close == '(')
      add(&list, CXX_FACT_MACRO, name, (size_t)(close - name));
  }
  if (unclear)
    add(&list, CXX_FACT_UNCLEAR, (const uint8_t *)"", 0);
  list.text = scan_alloc(list.text, list.size + 1);
  list.text[list.size] = '\0';
  return list.text;
}

const char *cxx_facts_next(const char *facts, const char *text) {
  const char *next = text ? text + strlen(text) + 1 : facts;
  return *next ? next + 1 : NULL;
}
