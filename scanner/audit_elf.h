/* One ELF file as it is read: audit_elf.c with audit_symbols.c, audit_count.c and audit_sections.c. */
#ifndef SGL_SCANNER_AUDIT_ELF_H
#define SGL_SCANNER_AUDIT_ELF_H

#include "scanner/audit.h"

#include <gelf.h>

struct audit_reader {
  const struct audit_context *context;
  struct audit_list *list;
  struct audit_object *object;
  Elf *elf;
  int fd;
  uint64_t size;
  uint64_t budget;       /* bytes that may still be read: tables that lie over each other cannot cost without end */
  uint64_t names_budget; /* the same for the bytes of names that are looked at */
  struct arena scratch;  /* what is not needed after the file */
  bool registers;        /* it names the catalog's operator namespace to torch */
  size_t strings_capacity, schemas_capacity, inferred_capacity, code_capacity;
};

/* What the program headers and the dynamic section say. */
#define AUDIT_NEEDED_MOST 4096
struct audit_segment {
  uint64_t address, offset, size, align;
  bool writable;
};
struct audit_tables {
  struct audit_segment *segments, *notes; /* PT_LOAD, PT_NOTE */
  size_t segments_count, notes_count;
  uint64_t dynamic, dynamic_size; /* offset; size 0: none */
  /* Of the dynamic section, addresses and sizes; 0: none. */
  uint64_t symtab, strtab, strsz, hash, gnu_hash, versym, verneed, verdef, soname, rpath, runpath;
  uint64_t rela, relasz, jmprel, pltrelsz;
  bool has_soname, has_rpath, has_runpath;
  uint64_t needed[AUDIT_NEEDED_MOST];
  size_t needed_count;
  uint64_t dynsym, dynsym_size; /* address and size of the section; size 0: none */
};
/* The file offset of an address, and how many bytes follow in its segment. */
bool audit_place_at(const struct audit_tables *tables, uint64_t address, uint64_t *offset, uint64_t *left);
/* How many dynamic symbols there are: no table says it by itself. */
uint64_t audit_symbols_count(struct audit_reader *reader, const struct audit_tables *tables);
/* Bytes of the file in this machine's order. NULL with a fault; also for an empty range, without one. Lives as long as
 * the reader. */
Elf_Data *audit_chunk(struct audit_reader *reader, uint64_t offset, uint64_t size, Elf_Type type, const char *what);
/* Takes from the budget; false with a fault when the range is outside of the file or the budget is used up. */
bool audit_range(struct audit_reader *reader, uint64_t offset, uint64_t size, const char *what);
/* Read-only strings of [offset, offset + size). */
void audit_strings(struct audit_reader *reader, uint64_t offset, uint64_t size);
/* After all of them: schemas, when the file registers operators of the catalog's namespace. */
void audit_schemas(struct audit_reader *reader, uint64_t offset, uint64_t size);
/* Does code have the namespace in it? */
void audit_code(struct audit_reader *reader, uint64_t offset, uint64_t size);
void audit_fatbin(struct audit_reader *reader, uint64_t offset, uint64_t size);
/* A string of a table; NULL when it does not end inside of it. */
const char *audit_string_at(const Elf_Data *data, uint64_t offset);
/* A copy that lives as long as the list; NULL for NULL, and with a fault when the names of the file cost too much. */
const char *audit_keep(struct audit_reader *reader, const char *text);
/* Takes all symbols of a table. versym and versions NULL: they have no versions. */
void audit_symbols(struct audit_reader *reader, const Elf_Data *table, const Elf_Data *strings, const Elf_Data *versym,
                   const char *const *versions);

#endif
