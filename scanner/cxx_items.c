/* Statements as arrays of tokens, and their brackets. */
#include "scanner/cxx_scopes.h"

#include <string.h>

struct items cxx_collect(const struct cxx_item *base, const struct cxx_item *tail) {
  struct items items = {0};
  for (const struct cxx_item *item = tail; item != base; item = item->previous)
    items.count++;
  items.list = scan_alloc(NULL, (size_t)items.count * sizeof *items.list);
  int at = items.count;
  for (const struct cxx_item *item = tail; item != base; item = item->previous)
    items.list[--at] = item;
  return items;
}

bool cxx_opens(const struct cxx_item *item) {
  return is(item, '(') || is(item, '[') || is(item, '{');
}

bool cxx_closes(const struct cxx_item *item) {
  return is(item, ')') || is(item, ']') || is(item, '}');
}

int cxx_forward(const struct items *s, int at, int end) {
  int depth = 0;
  for (; at < end; at++) {
    if (cxx_opens(s->list[at]))
      depth++;
    else if (cxx_closes(s->list[at]) && --depth == 0)
      return at;
  }
  return end;
}

int cxx_backward(const struct items *s, int at) {
  int depth = 0;
  for (; at >= 0; at--) {
    if (cxx_closes(s->list[at]))
      depth++;
    else if (cxx_opens(s->list[at]) && --depth == 0)
      return at;
  }
  return -1;
}

int cxx_forward_angle(const struct items *s, int at, int end) {
  int depth = 0;
  for (int limit = at + 1024; at < end && at < limit; at++) {
    const struct cxx_item *item = s->list[at];
    if (is(item, '<'))
      depth++;
    else if (is(item, '>') && --depth == 0)
      return at;
    else if (is(item, CXX_SHIFT_RIGHT) && (depth -= 2) <= 0)
      return at;
    else if (cxx_opens(item))
      at = cxx_forward(s, at, end);
    else if (cxx_closes(item) || is(item, ';') || is(item, CXX_AND_AND) || is(item, CXX_OR_OR))
      return -1;
  }
  return -1;
}

int cxx_backward_angle(const struct items *s, int at) {
  int depth = 0;
  for (int limit = at - 1024; at >= 0 && at > limit; at--) {
    const struct cxx_item *item = s->list[at];
    if (is(item, '>'))
      depth++;
    else if (is(item, CXX_SHIFT_RIGHT))
      depth += 2;
    else if (is(item, '<') && --depth == 0)
      return at;
    else if (cxx_closes(item)) {
      at = cxx_backward(s, at);
      if (at < 0)
        return -1;
    } else if (cxx_opens(item) || is(item, ';'))
      return -1;
  }
  return -1;
}

bool cxx_contains(const struct items *s, int from, int to, unsigned code) {
  for (int i = from; i < to; i++)
    if (is(s->list[i], code))
      return true;
  return false;
}

bool cxx_has_keyword(const struct items *s, int from, int to, unsigned code) {
  for (int i = from; i < to; i++)
    if (keyword(s->list[i], code))
      return true;
  return false;
}
