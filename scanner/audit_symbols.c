/* The symbols of one ELF file: what it needs, what it has, and how much of that is torch's. */
#include "scanner/audit_elf.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

/* A string of a table; NULL when it does not end inside of it. */
const char *audit_string_at(const Elf_Data *data, uint64_t offset) {
  if (!data || offset >= data->d_size || !memchr((char *)data->d_buf + offset, 0, data->d_size - offset))
    return NULL;
  return (char *)data->d_buf + offset;
}

/* Many symbols may point to one long name. */
static bool afford(struct audit_reader *reader, size_t length) {
  if (length >= reader->names_budget)
    audit_fault(reader->list, reader->object, "damaged: its names lie over each other");
  else
    reader->names_budget -= length + 1;
  return !reader->object->fault;
}

const char *audit_keep(struct audit_reader *reader, const char *text) {
  return text && afford(reader, strlen(text)) ? arena_copy(&reader->list->arena, text, strlen(text)) : NULL;
}

struct symbols {
  size_t undefined_capacity, defined_capacity, provides_capacity;
};

/* Room for one more of `size` bytes. */
static void *grow(void *list, size_t count, size_t *capacity, size_t size) {
  if (count < *capacity)
    return list;
  *capacity = *capacity ? 2 * *capacity : 64;
  return scan_alloc(list, *capacity * size);
}

static void count_torch(struct audit_object *object, const char *name, bool undefined) {
  if (undefined && audit_is_torch_c(name)) {
    object->torch_stable++;
    return;
  }
  if (!audit_is_torch(name))
    return;
  int abi = audit_cxx_abi(name);
  if (undefined) {
    object->torch_symbols++;
    object->torch_new_strings += abi > 0;
    object->torch_old_strings += abi < 0;
  } else {
    object->exported_new_strings += abi > 0;
    object->exported_old_strings += abi < 0;
  }
}

static void take_provided(struct audit_reader *reader, struct symbols *symbols, struct audit_symbol one) {
  struct audit_object *object = reader->object;
  one.name = arena_copy(&reader->list->arena, one.name, strlen(one.name));
  object->provides =
      grow(object->provides, object->provides_count, &symbols->provides_capacity, sizeof *object->provides);
  object->provides[object->provides_count++] = one;
}

static void take_symbol(struct audit_reader *reader, struct symbols *symbols, const GElf_Sym *symbol, const char *name,
                        const char *version) {
  struct audit_object *object = reader->object;
  unsigned bind = GELF_ST_BIND(symbol->st_info), visibility = GELF_ST_VISIBILITY(symbol->st_other);
  bool undefined = symbol->st_shndx == SHN_UNDEF;
  if (symbol->st_shndx == SHN_ABS && version && strcmp(name, version) == 0)
    return; /* it stands for the version itself */
  if (bind == STB_LOCAL || !*name || !afford(reader, strlen(name)))
    return;
  uint64_t hash = audit_hash(name, strlen(name));
  struct audit_symbol one = {.name = name,
                             .version = version,
                             .weak = bind == STB_WEAK,
                             .hidden = visibility == STV_HIDDEN || visibility == STV_INTERNAL,
                             .catalog = audit_function(reader->context->names, name, hash)};
  if (one.catalog && !undefined && (!one.hidden || object->type == ET_REL))
    take_provided(reader, symbols, one);
  if (one.hidden && !undefined)
    return;
  count_torch(object, name, undefined);
  if (undefined) {
    one.name = arena_copy(&reader->list->arena, name, strlen(name));
    object->undefined =
        grow(object->undefined, object->undefined_count, &symbols->undefined_capacity, sizeof *object->undefined);
    object->undefined[object->undefined_count++] = one;
    return;
  }
  object->defined = grow(object->defined, object->defined_count, &symbols->defined_capacity, sizeof *object->defined);
  if (reader->context->keep_symbols) {
    one.name = arena_copy(&reader->list->arena, name, strlen(name));
    object->exported = scan_alloc(object->exported, symbols->defined_capacity * sizeof *object->exported);
    object->exported[object->defined_count] = one;
  }
  object->defined[object->defined_count++] = hash;
}

static int by_hash(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

void audit_symbols(struct audit_reader *reader, const Elf_Data *table, const Elf_Data *strings, const Elf_Data *versym,
                   const char *const *versions) {
  struct symbols symbols = {0};
  GElf_Sym symbol;
  for (int i = 1; !reader->object->fault && gelf_getsym((Elf_Data *)table, i, &symbol); i++) {
    const char *name = audit_string_at(strings, symbol.st_name), *version = NULL;
    GElf_Versym number;
    if (!name) {
      audit_fault(reader->list, reader->object, "damaged: the name of symbol %d is outside of its string table", i);
      break;
    }
    if (versym && gelf_getversym((Elf_Data *)versym, i, &number) && (number & 0x7fff) > VER_NDX_GLOBAL)
      version = versions[number & 0x7fff];
    take_symbol(reader, &symbols, &symbol, name, version);
  }
  struct audit_object *object = reader->object;
  if (object->defined_count)
    qsort(object->defined, object->defined_count, sizeof *object->defined, by_hash);
}
