/* Signatures of all three faces as one list of parameters, and what a change of them does to a call. Types are compared
 * as text: without alias marks, since those are no matter of callers. */
#include "catalog/catalog.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* --- reading ------------------------------------------------------------------------------------------------------ */

static bool is_word(char c) {
  return isalnum((unsigned char)c) || c == '_';
}

static struct catalog_slice trimmed(const char *start, const char *end) {
  while (start < end && isspace((unsigned char)*start))
    start++;
  while (end > start && isspace((unsigned char)end[-1]))
    end--;
  return (struct catalog_slice){start, (unsigned)(end - start)};
}

/* The next of `stops` outside of all brackets and quotes, or the end. */
static const char *until(const char *at, const char *end, const char *stops) {
  int depth = 0;
  char quote = '\0';
  for (; at < end; at++) {
    if (quote)
      quote = *at == quote ? '\0' : quote;
    else if (!depth && strchr(stops, *at))
      return at;
    else if (*at == '\'' || *at == '"')
      quote = *at;
    else if (strchr("([{<", *at))
      depth++;
    else if (strchr(")]}>", *at) && !(at[0] == '>' && at[-1] == '-'))
      depth--;
  }
  return end;
}

/* "name: type = value" */
static bool read_python(const char *start, const char *end, struct catalog_parameter *parameter) {
  const char *name_end = until(start, end, ":="), *value = until(start, end, "=");
  parameter->name = trimmed(start, name_end);
  parameter->type = name_end < value ? trimmed(name_end + 1, value) : trimmed(end, end);
  parameter->value = value < end ? trimmed(value + 1, end) : trimmed(end, end);
  return parameter->name.length > 0;
}

/* "type name = value", of C++ also "type" alone */
static bool read_typed(const char *start, const char *end, bool unnamed, struct catalog_parameter *parameter) {
  const char *value = until(start, end, "=");
  struct catalog_slice both = trimmed(start, value);
  const char *name = both.text + both.length;
  parameter->value = value < end ? trimmed(value + 1, end) : trimmed(end, end);
  while (name > both.text && is_word(name[-1]))
    name--;
  if (name == both.text || (name[-1] == ':' && unnamed)) { /* one word, or the end of a qualified type */
    parameter->name = trimmed(end, end);
    parameter->type = both;
    return unnamed;
  }
  parameter->name = trimmed(name, both.text + both.length);
  parameter->type = trimmed(both.text, name);
  return unnamed || parameter->name.length;
}

/* The bracket that opens the parameters: of a C++ declaration behind the name, which its type may not have. */
static const char *opening(enum catalog_changed what, const char *text) {
  return what == CATALOG_CHANGED_PYTHON ? (*text == '(' ? text : NULL)
         : strchr(text, '(')            ? until(text, text + strlen(text), "(")
                                        : NULL;
}

bool catalog_signature_read(enum catalog_changed what, const char *text, struct catalog_signature *signature) {
  *signature = (struct catalog_signature){0};
  const char *end = text + strlen(text), *at = opening(what, text);
  if (!at || at == end)
    return false;
  const char *name = at;
  while (name > text && is_word(name[-1]))
    name--;
  signature->name = trimmed(name, at);
  if (what == CATALOG_CHANGED_CXX)
    signature->result = trimmed(text, name);
  const char *close = until(at + 1, end, ")");
  if (close == end)
    return false;
  bool keyword_only = false;
  for (at++; at < close;) {
    const char *comma = until(at, close, ",");
    struct catalog_slice part = trimmed(at, comma);
    at = comma + 1;
    if (part.length == 1 && *part.text == '*') {
      keyword_only = true;
      continue;
    }
    if (!part.length || *part.text == '*' || *part.text == '/' || signature->count == CATALOG_PARAMETERS_MOST)
      return false;
    struct catalog_parameter *parameter = &signature->parameters[signature->count++];
    const char *part_end = part.text + part.length;
    if (what == CATALOG_CHANGED_PYTHON ? !read_python(part.text, part_end, parameter)
                                       : !read_typed(part.text, part_end, what == CATALOG_CHANGED_CXX, parameter))
      return false;
    signature->positional += !keyword_only;
  }
  struct catalog_slice rest = trimmed(close + 1, end);
  if (what != CATALOG_CHANGED_CXX && rest.length) {
    if (rest.length < 3 || strncmp(rest.text, "->", 2) != 0)
      return false;
    signature->result = trimmed(rest.text + 2, end);
  }
  return true;
}

/* --- comparing ---------------------------------------------------------------------------------------------------- */

static bool same(struct catalog_slice a, struct catalog_slice b) {
  return a.length == b.length && memcmp(a.text, b.text, a.length) == 0;
}

/* The type without alias marks, "Tensor(a!)" and "Tensor!", and without spaces; "const T&" is "T const&", and the const
 * of a value, which no caller sees, is left out. */
static void plain(struct catalog_slice type, char *text, size_t size) {
  size_t used = 0;
  bool constant = type.length > 6 && memcmp(type.text, "const ", 6) == 0;
  for (unsigned i = constant ? 6 : 0; i < type.length && used + 7 < size; i++) {
    const char *at = type.text + i;
    bool mark = *at == '(' && i + 2 < type.length && isalpha((unsigned char)at[1]) && !isalnum((unsigned char)at[2]);
    while (mark && i < type.length && type.text[i] != ')')
      i++;
    if (!mark && *at != '!' && *at != ' ')
      text[used++] = *at;
  }
  if (constant && used && (text[used - 1] == '&' || text[used - 1] == '*')) {
    char last = text[used - 1];
    memcpy(text + used - 1, "const", 5);
    text[used + 4] = last;
    used += 5;
  }
  text[used] = '\0';
}

static bool same_type(struct catalog_slice a, struct catalog_slice b) {
  char left[400], right[400];
  plain(a, left, sizeof left);
  plain(b, right, sizeof right);
  return strcmp(left, right) == 0;
}

/* The type itself: at::Tensor of "const at::Tensor&", which a call does not tell apart. */
static void bare(struct catalog_slice type, char *text, size_t size) {
  plain(type, text, size);
  size_t length = strlen(text);
  if (length && text[length - 1] == '&')
    text[--length] = '\0';
  if (length > 5 && strcmp(text + length - 5, "const") == 0) /* "at::Tensor const&" */
    text[length - 5] = '\0';
}

/* Does the new type take what the old one took? Annotations of Python do not say so. */
static bool takes(enum catalog_changed what, struct catalog_slice before, struct catalog_slice after) {
  char left[400], right[400];
  if (what == CATALOG_CHANGED_PYTHON)
    return true;
  (what == CATALOG_CHANGED_CXX ? bare : plain)(before, left, sizeof left);
  (what == CATALOG_CHANGED_CXX ? bare : plain)(after, right, sizeof right);
  size_t length = strlen(left);
  return strcmp(left, right) == 0 ||
         (what == CATALOG_CHANGED_OPERATOR && strncmp(left, right, length) == 0 && strcmp(right + length, "?") == 0);
}

static const struct catalog_parameter *find(const struct catalog_signature *signature, struct catalog_slice name) {
  for (unsigned i = 0; i < signature->count; i++)
    if (same(signature->parameters[i].name, name))
      return &signature->parameters[i];
  return NULL;
}

/* The same argument at one place: of this name; or under a new name with the old type, when neither list has the
 * other's name. */
static bool same_place(const struct catalog_signature *before, const struct catalog_signature *after, unsigned place) {
  const struct catalog_parameter *a = &before->parameters[place], *b = &after->parameters[place];
  return same(a->name, b->name) || (!find(after, a->name) && !find(before, b->name) && same_type(a->type, b->type));
}

static bool calls_fit(enum catalog_changed what, const struct catalog_signature *before,
                      const struct catalog_signature *after) {
  bool named = what != CATALOG_CHANGED_CXX; /* parameters can be given by name */
  if (after->positional < before->positional)
    return false;
  for (unsigned i = 0; i < before->count; i++) {
    const struct catalog_parameter *old = &before->parameters[i];
    const struct catalog_parameter *new = i < before->positional ? &after->parameters[i] : find(after, old->name);
    if (!new || (named && !same(old->name, new->name)) || !takes(what, old->type, new->type) ||
        (old->value.length && !new->value.length))
      return false;
  }
  for (unsigned i = 0; i < after->count; i++) {
    const struct catalog_parameter *new = &after->parameters[i];
    bool known = i < before->positional || (named && find(before, new->name));
    if (!known && !new->value.length)
      return false;
  }
  return true;
}

enum catalog_breaks catalog_signature_breaks(enum catalog_changed what, const struct catalog_signature *before,
                                             const struct catalog_signature *after) {
  if (!same(before->name, after->name) || !calls_fit(what, before, after))
    return CATALOG_BREAKS_CALLS;
  bool link = before->count != after->count, defaults = false;
  for (unsigned i = 0; i < before->count && i < after->count; i++) {
    link = link || !same_type(before->parameters[i].type, after->parameters[i].type);
    const struct catalog_parameter *new =
        i < before->positional ? &after->parameters[i] : find(after, before->parameters[i].name);
    defaults =
        defaults || (new && !same(before->parameters[i].value, new->value) && before->parameters[i].value.length);
  }
  if (what == CATALOG_CHANGED_CXX && link)
    return CATALOG_BREAKS_LINK;
  if (before->result.length && after->result.length && !same_type(before->result, after->result))
    return CATALOG_BREAKS_RESULT;
  return defaults ? CATALOG_BREAKS_DEFAULT : CATALOG_BREAKS_NOTHING;
}

/* --- calls -------------------------------------------------------------------------------------------------------- */

bool catalog_call_fits(const struct catalog_signature *signature, const struct catalog_call *call, char *why,
                       size_t why_size) {
  *why = '\0';
  if (call->positional > signature->positional) {
    snprintf(why, why_size, "it has %u positional arguments, and %u are taken", call->positional,
             signature->positional);
    return false;
  }
  for (unsigned k = 0; k < call->keywords_count; k++) {
    const struct catalog_slice *keyword = &call->keywords[k];
    const struct catalog_parameter *parameter = find(signature, *keyword);
    if (!parameter)
      snprintf(why, why_size, "there is no argument %.*s", (int)keyword->length, keyword->text);
    else if (parameter < signature->parameters + call->positional)
      snprintf(why, why_size, "%.*s is given by position already", (int)keyword->length, keyword->text);
    if (*why)
      return false;
  }
  for (unsigned i = call->positional; i < signature->count; i++) {
    const struct catalog_parameter *parameter = &signature->parameters[i];
    bool given = parameter->value.length > 0 || call->more;
    for (unsigned k = 0; k < call->keywords_count && !given; k++)
      given = same(call->keywords[k], parameter->name);
    if (!given) {
      snprintf(why, why_size, "%.*s is missing", (int)parameter->name.length, parameter->name.text);
      return false;
    }
  }
  return true;
}

bool catalog_call_same(const struct catalog_signature *before, const struct catalog_signature *after,
                       const struct catalog_call *call, char *why, size_t why_size) {
  *why = '\0';
  for (unsigned i = 0; i < call->positional && call->words; i++)
    if (call->words[i].length && !same_place(before, after, i) && same(call->words[i], after->parameters[i].name))
      return true;
  for (unsigned i = 0; i < call->positional; i++)
    if (!same_place(before, after, i)) {
      struct catalog_slice a = before->parameters[i].name, b = after->parameters[i].name;
      snprintf(why, why_size, "argument %u was %.*s and is %.*s", i + 1, (int)a.length, a.text, (int)b.length, b.text);
      return false;
    }
  return true;
}
