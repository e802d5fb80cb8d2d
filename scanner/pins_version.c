/* Which releases a requirement allows: PEP 440, and what poetry and conda write. */
#include "scanner/pins.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONGEST 63

struct clause {
  char op[4];
  char version[LONGEST + 1]; /* without .* */
  bool prefix;               /* .* */
};

static bool version_byte(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == '+' ||
         c == '-' || c == '_' || c == '!' || c == '*';
}

/* The next clause of a list with commas; NULL at the end, or when it is none (*broken). */
static const char *next_clause(const char *at, struct clause *clause, bool *broken) {
  static const char *const operators[] = {"===", "==", "!=", ">=", "<=", "~=", ">", "<", "^", "~", "="};
  while (*at == ' ' || *at == ',')
    at++;
  if (!*at)
    return NULL;
  *clause = (struct clause){.op = "=="};
  for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
    if (strncmp(at, operators[i], strlen(operators[i])) == 0) {
      strcpy(clause->op, operators[i]);
      at += strlen(operators[i]);
      break;
    }
  while (*at == ' ')
    at++;
  size_t length = 0;
  while (version_byte(at[length]))
    length++;
  *broken = length == 0 || length > LONGEST;
  if (*broken)
    return NULL;
  memcpy(clause->version, at, length);
  at += length;
  clause->prefix = length > 2 && strcmp(clause->version + length - 2, ".*") == 0;
  if (clause->prefix)
    clause->version[length - 2] = '\0';
  if (strcmp(clause->op, "===") == 0)
    clause->op[2] = '\0';
  if (strcmp(clause->op, "=") == 0) { /* conda: all that begin like this */
    strcpy(clause->op, "==");
    clause->prefix = true;
  }
  while (*at == ' ')
    at++;
  *broken = !catalog_version_valid(clause->version) || (*at && *at != ',') || (clause->prefix && clause->op[1] != '=');
  return *broken ? NULL : at;
}

bool pins_specifier_valid(const char *specifier) {
  struct clause clause;
  bool broken = false, any = false;
  while ((specifier = next_clause(specifier, &clause, &broken)))
    any = true;
  return any && !broken;
}

bool pins_specifier_exact(const char *specifier) {
  struct clause clause;
  bool broken = false, exact = false;
  while ((specifier = next_clause(specifier, &clause, &broken)))
    exact = exact || (strcmp(clause.op, "==") == 0 && !clause.prefix);
  return exact && !broken;
}

/* The first `limit` numbers of a release, 0 for those that are not written; returns how many are. */
static unsigned numbers(const char *version, unsigned long *list, unsigned limit) {
  unsigned count = 0;
  for (unsigned i = 0; i < limit; i++)
    list[i] = 0;
  for (const char *at = version; *at >= '0' && *at <= '9' && count < limit;) {
    char *end;
    list[count++] = strtoul(at, &end, 10);
    at = *end == '.' ? end + 1 : "";
  }
  return count;
}

#define DEEPEST 8

/* Do the first `depth` numbers agree? */
static bool same_numbers(const char *a, const char *b, unsigned depth) {
  unsigned long left[DEEPEST], right[DEEPEST];
  numbers(a, left, DEEPEST);
  numbers(b, right, DEEPEST);
  for (unsigned i = 0; i < depth && i < DEEPEST; i++)
    if (left[i] != right[i])
      return false;
  return true;
}

static unsigned depth_of(const char *version) {
  unsigned long list[DEEPEST];
  return numbers(version, list, DEEPEST);
}

/* ^0.4.1 keeps everything up to the first number that is not 0. */
static unsigned caret_depth(const char *version) {
  unsigned long list[DEEPEST];
  unsigned count = numbers(version, list, DEEPEST), depth = 1;
  while (depth < count && list[depth - 1] == 0)
    depth++;
  return depth;
}

static bool prerelease(const char *version) {
  const char *local = strchr(version, '+');
  size_t length = local ? (size_t)(local - version) : strlen(version);
  for (size_t i = 0; i < length; i++) {
    const char *at = version + i;
    if (strncmp(at, "post", 4) == 0)
      i += 3;
    else if (strncmp(at, "dev", 3) == 0 || *at == 'a' || *at == 'b' || *at == 'c')
      return true;
  }
  return false;
}

static bool clause_allows(const struct clause *clause, const char *version) {
  const char *op = clause->op;
  unsigned depth = depth_of(clause->version);
  int order = catalog_version_compare(version, clause->version);
  if (strcmp(op, "==") == 0)
    return clause->prefix ? same_numbers(version, clause->version, depth) : order == 0;
  if (strcmp(op, "!=") == 0)
    return clause->prefix ? !same_numbers(version, clause->version, depth) : order != 0;
  if (strcmp(op, ">=") == 0)
    return order >= 0;
  if (strcmp(op, "<=") == 0)
    return order <= 0;
  if (strcmp(op, ">") == 0) /* not a later post-release of the same release */
    return order > 0 && (strstr(clause->version, "post") || !same_numbers(version, clause->version, DEEPEST));
  if (strcmp(op, "<") == 0) /* not a pre-release of the same release */
    return order < 0 && (prerelease(clause->version) || !same_numbers(version, clause->version, DEEPEST));
  if (strcmp(op, "~=") == 0)
    return order >= 0 && same_numbers(version, clause->version, depth > 1 ? depth - 1 : 1);
  if (strcmp(op, "^") == 0)
    return order >= 0 && same_numbers(version, clause->version, caret_depth(clause->version));
  return order >= 0 && same_numbers(version, clause->version, depth > 1 ? 2 : 1); /* ~ */
}

bool pins_specifier_allows(const char *specifier, const char *version) {
  struct clause clause;
  bool broken = false, any = false;
  while ((specifier = next_clause(specifier, &clause, &broken))) {
    any = true;
    if (!clause_allows(&clause, version))
      return false;
  }
  return any && !broken;
}

char *pins_specifier_newest(const char *specifier, const char *const *releases, unsigned count) {
  struct clause clause;
  bool broken = false;
  for (const char *at = specifier; (at = next_clause(at, &clause, &broken));)
    if (strcmp(clause.op, "==") == 0 && !clause.prefix)
      return pins_specifier_allows(specifier, clause.version) ? scan_format("%s", clause.version) : NULL;
  for (int wanted = 0; wanted < 2; wanted++)
    for (unsigned i = count; i-- > 0;)
      if (prerelease(releases[i]) == wanted && pins_specifier_allows(specifier, releases[i]))
        return scan_format("%s", releases[i]);
  return NULL;
}
