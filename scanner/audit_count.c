/* How many dynamic symbols a file has. Its section says it, when there are section headers. Otherwise what the loader
 * uses: the hash tables, which have all symbols that can be looked up, or the relocations, which name all others. */
#include "scanner/audit_elf.h"

#include <elf.h>

static uint32_t word(const Elf_Data *data, uint64_t i) {
  return ((const uint32_t *)data->d_buf)[i];
}

/* Words at an address; NULL: they are not there. */
static Elf_Data *words_at(struct audit_reader *reader, const struct audit_tables *tables, uint64_t address,
                          uint64_t count) {
  uint64_t offset, left;
  if (count > UINT32_MAX || !audit_place_at(tables, address, &offset, &left) || left / 4 < count)
    return NULL;
  return audit_chunk(reader, offset, 4 * count, ELF_T_WORD, "hash table");
}

/* The old table has an entry for each symbol. */
static uint64_t by_hash(struct audit_reader *reader, const struct audit_tables *tables) {
  Elf_Data *head = tables->hash ? words_at(reader, tables, tables->hash, 2) : NULL;
  return head ? word(head, 1) : 0;
}

/* GNU's table: a header of four words, a filter of 8 bytes a piece, the first symbol of each bucket, and for each
 * symbol from `first` on a word whose lowest bit ends the bucket. 0: it has no symbol. */
static uint64_t by_gnu_hash(struct audit_reader *reader, const struct audit_tables *tables) {
  Elf_Data *head = tables->gnu_hash ? words_at(reader, tables, tables->gnu_hash, 4) : NULL;
  if (!head)
    return 0;
  uint64_t buckets = word(head, 0), first = word(head, 1), last = 0;
  uint64_t buckets_at = tables->gnu_hash + 16 + 8 * (uint64_t)word(head, 2), chains_at = buckets_at + 4 * buckets;
  Elf_Data *table = words_at(reader, tables, buckets_at, buckets);
  for (uint64_t i = 0; table && i < buckets; i++)
    last = word(table, i) > last ? word(table, i) : last;
  uint64_t offset, left;
  if (last == 0 || last < first || !audit_place_at(tables, chains_at + 4 * (last - first), &offset, &left))
    return 0;
  Elf_Data *chain = words_at(reader, tables, chains_at + 4 * (last - first), left / 4);
  for (uint64_t i = 0; chain && i < left / 4; i++)
    if (word(chain, i) & 1)
      return last + i + 1;
  return 0;
}

static uint64_t by_relocations(struct audit_reader *reader, const struct audit_tables *tables) {
  const uint64_t lists[][2] = {{tables->rela, tables->relasz}, {tables->jmprel, tables->pltrelsz}};
  uint64_t count = 0;
  for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
    uint64_t offset, left, size = lists[i][1] / sizeof(Elf64_Rela) * sizeof(Elf64_Rela);
    Elf_Data *data = lists[i][0] && audit_place_at(tables, lists[i][0], &offset, &left) && size <= left
                         ? audit_chunk(reader, offset, size, ELF_T_RELA, "relocations")
                         : NULL;
    GElf_Rela one;
    for (int k = 0; data && gelf_getrela(data, k, &one); k++)
      count = GELF_R_SYM(one.r_info) >= count ? GELF_R_SYM(one.r_info) + 1 : count;
  }
  return count;
}

uint64_t audit_symbols_count(struct audit_reader *reader, const struct audit_tables *tables) {
  if (tables->dynsym_size && tables->dynsym == tables->symtab)
    return tables->dynsym_size / sizeof(Elf64_Sym);
  uint64_t count = by_hash(reader, tables);
  count = count ? count : by_gnu_hash(reader, tables);
  return count ? count : by_relocations(reader, tables);
}
