/* What the index wants to know of every C++ file, with a hit or not. It is taken while the file is read, so that of
 * files without a hit nothing else need be kept. */
#include "scanner/cxx_facts.h"

#include <string.h>

void cxx_facts_add(struct cxx_facts *facts, enum cxx_fact kind, const void *text, size_t length) {
  if (memchr(text, '\0', length))
    return; /* no file and no macro is called so */
  if (facts->size + length + 3 > facts->capacity) {
    facts->capacity = 2 * facts->capacity + length + 256;
    facts->text = scan_alloc(facts->text, facts->capacity);
  }
  facts->text[facts->size] = (char)kind;
  memcpy(facts->text + facts->size + 1, text, length);
  facts->text[facts->size + 1 + length] = '\0';
  facts->size += length + 2;
}

char *cxx_facts_end(struct cxx_facts *facts) {
  facts->text = scan_alloc(facts->text, facts->size + 1);
  facts->text[facts->size] = '\0';
  return facts->text;
}

size_t cxx_facts_size(const char *facts) {
  const char *last = facts;
  for (const char *text = NULL; (text = cxx_facts_next(facts, text));)
    last = text + strlen(text) + 1;
  return (size_t)(last - facts) + 1;
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
static void add_include(struct cxx_facts *facts, const uint8_t *at, const uint8_t *end) {
  at = skip_blanks(at, end);
  if (at == end || (*at != '"' && *at != '<'))
    return;
  uint8_t close = *at == '"' ? '"' : '>';
  const uint8_t *name = ++at;
  for (; at < end && *at != close && *at != '\n'; at++)
    if (*at == '/')
      name = at + 1;
  if (at > name)
    cxx_facts_add(facts, CXX_FACT_INCLUDE, name, (size_t)(at - name));
}

char *cxx_facts_read(const uint8_t *bytes, size_t size) {
  struct cxx_facts facts = {0};
  const uint8_t *at = bytes, *end = bytes + size;
  bool unclear = false;
  for (; !unclear && at < end && (at = memchr(at, '%', (size_t)(end - at))) != NULL; at++)
    unclear = end - at > 1 && at[1] == ':'; /* # by another spelling */
  for (at = bytes; at < end && (at = memchr(at, '#', (size_t)(end - at))) != NULL;) {
    at = skip_blanks(at + 1, end);
    if (end - at >= 10 && memcmp(at, "include", 7) == 0)
      add_include(&facts, at + 7, end);
    bool define = end - at > 6 && memcmp(at, "define", 6) == 0;
    const uint8_t *name = skip_blanks(define ? at + 6 : at, end);
    if (name < end && (*name == '\\' || *name == '/'))
      unclear = true; /* what follows comes behind a comment or on the next line */
    const uint8_t *close = name;
    while (define && close < end && name_byte(*close))
      close++;
    if (close > name && close < end && *close == '(')
      cxx_facts_add(&facts, CXX_FACT_MAYBE, name, (size_t)(close - name));
  }
  if (unclear)
    cxx_facts_add(&facts, CXX_FACT_UNCLEAR, (const uint8_t *)"", 0);
  return cxx_facts_end(&facts);
}

const char *cxx_facts_next(const char *facts, const char *text) {
  const char *next = text ? text + strlen(text) + 1 : facts;
  return *next ? next + 1 : NULL;
}
