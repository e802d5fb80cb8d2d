/* Names in binaries: which are of the catalog, which are torch's. */
#include "scanner/audit.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

/* Open addressing; at least half of the slots are free. */
struct slot {
  uint64_t hash;
  const char *text; /* NULL: free */
  const struct catalog_symbol *symbol;
};
struct table {
  struct slot *slots;
  size_t mask;
};
struct audit_names {
  struct table functions, operators; /* by mangled name, by operator name */
};

uint64_t audit_hash(const char *text, size_t size) {
  return XXH3_64bits(text, size);
}

static const struct catalog_symbol *table_find(const struct table *table, const char *text, size_t size,
                                               uint64_t hash) {
  for (size_t i = hash & table->mask; table->slots[i].text; i = (i + 1) & table->mask) {
    const struct slot *slot = &table->slots[i];
    if (slot->hash == hash && strncmp(slot->text, text, size) == 0 && !slot->text[size])
      return slot->symbol;
  }
  return NULL;
}

/* The first symbol of a name stays. */
static void table_add(struct table *table, const char *text, const struct catalog_symbol *symbol) {
  uint64_t hash = audit_hash(text, strlen(text));
  if (!*text || table_find(table, text, strlen(text), hash))
    return;
  size_t i = hash & table->mask;
  while (table->slots[i].text)
    i = (i + 1) & table->mask;
  table->slots[i] = (struct slot){hash, text, symbol};
}

static void table_start(struct table *table, size_t count) {
  size_t size = 16;
  while (size < 2 * count + 1)
    size *= 2;
  table->slots = scan_alloc(NULL, size * sizeof *table->slots);
  memset(table->slots, 0, size * sizeof *table->slots);
  table->mask = size - 1;
}

struct audit_names *audit_names_build(const struct catalog *catalog) {
  struct audit_names *names = scan_alloc(NULL, sizeof *names);
  table_start(&names->functions, catalog->symbols_count);
  table_start(&names->operators, catalog->symbols_count);
  for (unsigned i = 0; i < catalog->symbols_count; i++) {
    table_add(&names->functions, catalog->symbols[i].cxx.mangled, &catalog->symbols[i]);
    table_add(&names->operators, catalog->symbols[i].op_name, &catalog->symbols[i]);
  }
  return names;
}

void audit_names_free(struct audit_names *names) {
  free(names->functions.slots);
  free(names->operators.slots);
  free(names);
}

const struct catalog_symbol *audit_function(const struct audit_names *names, const char *name, uint64_t hash) {
  return table_find(&names->functions, name, strlen(name), hash);
}

const struct catalog_symbol *audit_operator(const struct audit_names *names, const char *name, size_t size) {
  return table_find(&names->operators, name, size, audit_hash(name, size));
}

/* --- torch -------------------------------------------------------------------------------------------------------- */

static bool starts(const char *text, const char *prefix) {
  return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* Past what stands in front of the name itself: vtable, typeinfo, guard variable, thunk, local entity. */
static const char *special(const char *at) {
  if (*at == 'T' && (at[1] == 'h' || at[1] == 'v')) { /* thunk: offsets up to the last underscore before the name */
    for (at += 2; *at == 'n' || *at == '_' || isdigit((unsigned char)*at); at++)
      ;
    return at;
  }
  if (*at == 'T' && at[1] && strchr("VITSHWC", at[1]))
    return at + 2;
  if (*at == 'G' && (at[1] == 'V' || at[1] == 'R'))
    return at + 2;
  return at;
}

/* Itanium ABI: <nested-name> ::= N [<CV-qualifiers>] [<ref-qualifier>] <prefix> <unqualified-name> E */
bool audit_is_torch(const char *name) {
  if (!starts(name, "_Z"))
    return false;
  const char *at = special(name + 2);
  while (*at == 'Z')
    at++;
  if (*at++ != 'N')
    return false;
  at += strspn(at, "rVKRO");
  return starts(at, "2at") || starts(at, "3c10") || starts(at, "5torch");
}

bool audit_is_torch_else(const char *name) {
  if (!starts(name, "_Z"))
    return false;
  const char *at = special(name + 2);
  if (*at == 'N') {
    at += 1 + strspn(at + 1, "rVKRO");
    return starts(at, "6caffe2") || starts(at, "4c10d");
  }
  return isdigit((unsigned char)*at) && starts(at + strspn(at, "0123456789"), "THP");
}

bool audit_is_torch_c(const char *name) {
  return starts(name, "aoti_torch_") || starts(name, "torch_library_") || starts(name, "torch_call_dispatcher") ||
         starts(name, "torch_exception_");
}

/* In the old ABI std::string is the substitution Ss; in the new one it is named in full. Ss is also the end of a
 * number of other things, so it counts only where a type begins: after a qualifier, a builtin type or a name's end. */
int audit_cxx_abi(const char *name) {
  if (strstr(name, "__cxx11"))
    return 1;
  for (const char *at = name; (at = strstr(at, "Ss")); at += 2)
    if (at > name && strchr("KREPObijlmxySv_I", at[-1]))
      return -1;
  return 0;
}
