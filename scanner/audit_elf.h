/* One ELF file as it is read: audit_elf.c with audit_symbols.c and audit_sections.c. */
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
