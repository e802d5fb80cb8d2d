/* One ELF file: what it is, which libraries it wants, which symbols it needs and has. libelf reads it through a file
 * descriptor, so a file that shrinks meanwhile is an error and no signal. A library or program is read by its program
 * headers, as the loader does; the section headers only say how long the symbol table is. */
#include "scanner/audit_elf.h"

#include <elf.h>
#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SECTIONS_MOST 200000 /* libelf keeps some 300 bytes for each */
#define TABLE_MOST ((uint64_t)1 << 30)
#define VERSIONS_SIZE ((uint64_t)1 << 20) /* the length of the tables of versions in bytes is said nowhere */
#define NOTES_MOST ((uint64_t)1 << 20)

bool audit_range(struct audit_reader *reader, uint64_t offset, uint64_t size, const char *what) {
  if (offset > reader->size || size > reader->size - offset)
    audit_fault(reader->list, reader->object, "truncated or damaged: its %s would end at byte %llu of %llu", what,
                (unsigned long long)(offset + size < offset ? UINT64_MAX : offset + size),
                (unsigned long long)reader->size);
  else if (size > TABLE_MOST)
    audit_fault(reader->list, reader->object, "its %s has more than 1 GiB", what);
  else if (size > reader->budget)
    audit_fault(reader->list, reader->object, "damaged: its tables lie over each other");
  else {
    reader->budget -= size;
    return true;
  }
  return false;
}

Elf_Data *audit_chunk(struct audit_reader *reader, uint64_t offset, uint64_t size, Elf_Type type, const char *what) {
  if (size == 0 || !audit_range(reader, offset, size, what))
    return NULL;
  Elf_Data *data = elf_getdata_rawchunk(reader->elf, (int64_t)offset, size, type);
  if (!data)
    audit_fault(reader->list, reader->object, "its %s: %s", what, elf_errmsg(-1));
  return data;
}

/* --- header ------------------------------------------------------------------------------------------------------- */

static uint64_t number(const uint8_t *at, unsigned size, bool big) {
  uint64_t value = 0;
  for (unsigned i = 0; i < size; i++)
    value = value << 8 | at[big ? i : size - 1 - i];
  return value;
}

/* What libelf would trust: the places and counts of both header tables. */
static bool check_header(struct audit_reader *reader) {
  uint8_t header[64];
  struct audit_list *list = reader->list;
  struct audit_object *object = reader->object;
  ssize_t got = pread(reader->fd, header, sizeof header, 0);
  if (got < 0)
    audit_fault(list, object, "%s", strerror(errno));
  else if (got < 20)
    audit_fault(list, object, "truncated in the ELF header");
  else if (header[EI_CLASS] == ELFCLASS32)
    audit_fault(list, object, "a 32-bit ELF file; only 64-bit ones are read");
  else if (header[EI_CLASS] != ELFCLASS64 || (header[EI_DATA] != ELFDATA2LSB && header[EI_DATA] != ELFDATA2MSB) ||
           header[EI_VERSION] != EV_CURRENT)
    audit_fault(list, object, "damaged: its ELF header says class %u, data %u, version %u", header[EI_CLASS],
                header[EI_DATA], header[EI_VERSION]);
  else if (got < (ssize_t)sizeof header)
    audit_fault(list, object, "truncated in the ELF header");
  if (object->fault)
    return false;
  bool big = header[EI_DATA] == ELFDATA2MSB;
  uint64_t phoff = number(header + 32, 8, big), shoff = number(header + 40, 8, big);
  uint64_t phnum = number(header + 56, 2, big), shnum = number(header + 60, 2, big);
  if (shoff && (shnum == 0 || phnum == PN_XNUM)) { /* the counts are in section 0 */
    uint8_t first[64];
    if (!audit_range(reader, shoff, sizeof first, "section headers"))
      return false;
    if (pread(reader->fd, first, sizeof first, (off_t)shoff) != sizeof first)
      audit_fault(list, object, "%s", strerror(errno));
    shnum = shnum ? shnum : number(first + 32, 8, big);
    phnum = phnum == PN_XNUM ? number(first + 44, 4, big) : phnum;
  }
  if (shnum > SECTIONS_MOST || phnum > SECTIONS_MOST)
    audit_fault(list, object, "it claims %llu sections and %llu segments; more than %d are not read",
                (unsigned long long)shnum, (unsigned long long)phnum, SECTIONS_MOST);
  return !object->fault && (!shoff || audit_range(reader, shoff, shnum * sizeof(Elf64_Shdr), "section headers")) &&
         (!phoff || audit_range(reader, phoff, phnum * sizeof(Elf64_Phdr), "program headers"));
}

static const char *machine_name(unsigned machine) {
  static const struct {
    unsigned machine;
    const char *name;
  } names[] = {{EM_X86_64, "x86-64"}, {EM_AARCH64, "aarch64"}, {EM_PPC64, "ppc64"},         {EM_S390, "s390x"},
               {EM_RISCV, "riscv"},   {EM_CUDA, "CUDA"},       {EM_LOONGARCH, "loongarch"}, {EM_AMDGPU, "AMD GPU"}};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (names[i].machine == machine)
      return names[i].name;
  return NULL;
}

/* --- program headers and the dynamic section ---------------------------------------------------------------------- */

bool audit_place_at(const struct audit_tables *tables, uint64_t address, uint64_t *offset, uint64_t *left) {
  for (size_t i = 0; i < tables->segments_count; i++) {
    const struct audit_segment *segment = &tables->segments[i];
    if (address >= segment->address && address - segment->address < segment->size) {
      *offset = segment->offset + (address - segment->address);
      *left = segment->size - (address - segment->address);
      return true;
    }
  }
  return false;
}

static void read_segments(struct audit_reader *reader, struct audit_tables *tables) {
  size_t count = 0;
  if (elf_getphdrnum(reader->elf, &count) != 0 || count == 0)
    return;
  tables->segments = arena_alloc(&reader->scratch, count * sizeof *tables->segments);
  tables->notes = arena_alloc(&reader->scratch, count * sizeof *tables->notes);
  for (size_t i = 0; i < count; i++) {
    GElf_Phdr header;
    if (!gelf_getphdr(reader->elf, (int)i, &header)) {
      audit_fault(reader->list, reader->object, "its program headers: %s", elf_errmsg(-1));
      return;
    }
    if (header.p_type == PT_LOAD || header.p_type == PT_DYNAMIC) {
      if (header.p_offset > reader->size || header.p_filesz > reader->size - header.p_offset) {
        audit_fault(reader->list, reader->object, "truncated or damaged: a segment would end at byte %llu of %llu",
                    (unsigned long long)(header.p_offset + header.p_filesz), (unsigned long long)reader->size);
        return;
      }
    }
    const struct audit_segment segment = {header.p_vaddr, header.p_offset, header.p_filesz, header.p_align,
                                          header.p_flags & PF_W};
    if (header.p_type == PT_LOAD)
      tables->segments[tables->segments_count++] = segment;
    if (header.p_type == PT_NOTE)
      tables->notes[tables->notes_count++] = segment;
    if (header.p_type == PT_DYNAMIC) {
      tables->dynamic = header.p_offset;
      tables->dynamic_size = header.p_filesz;
    }
  }
}

static void read_dynamic(struct audit_reader *reader, struct audit_tables *tables) {
  const uint64_t entry = sizeof(Elf64_Dyn);
  Elf_Data *data =
      audit_chunk(reader, tables->dynamic, tables->dynamic_size / entry * entry, ELF_T_DYN, "dynamic section");
  if (!data)
    return;
  struct {
    int64_t tag;
    uint64_t *to;
  } single[] = {{DT_SYMTAB, &tables->symtab},     {DT_STRTAB, &tables->strtab}, {DT_STRSZ, &tables->strsz},
                {DT_HASH, &tables->hash},         {DT_VERSYM, &tables->versym}, {DT_VERNEED, &tables->verneed},
                {DT_VERDEF, &tables->verdef},     {DT_SONAME, &tables->soname}, {DT_RPATH, &tables->rpath},
                {DT_RUNPATH, &tables->runpath},   {DT_RELA, &tables->rela},     {DT_RELASZ, &tables->relasz},
                {DT_GNU_HASH, &tables->gnu_hash}, {DT_JMPREL, &tables->jmprel}, {DT_PLTRELSZ, &tables->pltrelsz}};
  GElf_Dyn dyn;
  for (int i = 0; gelf_getdyn(data, i, &dyn) && dyn.d_tag != DT_NULL; i++) {
    for (size_t k = 0; k < sizeof single / sizeof *single; k++)
      if (dyn.d_tag == single[k].tag)
        *single[k].to = dyn.d_un.d_val;
    tables->has_soname |= dyn.d_tag == DT_SONAME;
    tables->has_rpath |= dyn.d_tag == DT_RPATH;
    tables->has_runpath |= dyn.d_tag == DT_RUNPATH;
    if (dyn.d_tag == DT_NEEDED && tables->needed_count < AUDIT_NEEDED_MOST)
      tables->needed[tables->needed_count++] = dyn.d_un.d_val;
    if (dyn.d_tag == DT_FLAGS && dyn.d_un.d_val & DF_BIND_NOW)
      reader->object->bind_now = true;
    reader->object->symbolic |= dyn.d_tag == DT_SYMBOLIC || (dyn.d_tag == DT_FLAGS && dyn.d_un.d_val & DF_SYMBOLIC);
    if (dyn.d_tag == DT_FLAGS_1) {
      reader->object->bind_now |= (dyn.d_un.d_val & DF_1_NOW) != 0;
      reader->object->pie |= (dyn.d_un.d_val & DF_1_PIE) != 0;
    }
  }
}

/* The bytes of a table at an address. */
static Elf_Data *table_at(struct audit_reader *reader, const struct audit_tables *tables, uint64_t address,
                          uint64_t size, Elf_Type type, const char *what) {
  uint64_t offset, left;
  if (!address)
    return NULL;
  if (!audit_place_at(tables, address, &offset, &left) || (size != VERSIONS_SIZE && size > left)) {
    audit_fault(reader->list, reader->object, "damaged: its %s is in no segment", what);
    return NULL;
  }
  return audit_chunk(reader, offset, size < left ? size : left, type, what);
}

/* --- symbols ------------------------------------------------------------------------------------------------------ */

/* Compares "2.34" and "2.4" number by number. */
static bool newer(const char *a, const char *b) {
  return !b || strverscmp(a, b) > 0;
}

static void note_version(struct audit_reader *reader, const char *name) {
  struct {
    const char *prefix, **to;
  } known[] = {
      {"GLIBC_", &reader->object->glibc}, {"GLIBCXX_", &reader->object->glibcxx}, {"CXXABI_", &reader->object->cxxabi}};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    size_t length = strlen(known[i].prefix);
    if (strncmp(name, known[i].prefix, length) == 0 && name[length] >= '0' && name[length] <= '9' &&
        newer(name + length, *known[i].to))
      *known[i].to = audit_keep(reader, name + length);
  }
}

static void add_needed_version(struct audit_object *object, const char *library, const char *name, bool weak) {
  object->needed_versions =
      scan_alloc(object->needed_versions, (object->needed_versions_count + 1) * sizeof *object->needed_versions);
  object->needed_versions[object->needed_versions_count++] = (struct audit_version){library, name, weak};
}

static void add_version(struct audit_object *object, const char *name) {
  object->versions = scan_alloc(object->versions, (object->versions_count + 1) * sizeof(char *));
  object->versions[object->versions_count++] = name;
}

#define VERSIONS_MOST 0x8000
/* Names of the version numbers in the symbol table: those that are needed and those that are defined. */
static const char **read_versions(struct audit_reader *reader, const struct audit_tables *tables,
                                  const Elf_Data *strings) {
  const char **names = arena_alloc(&reader->scratch, VERSIONS_MOST * sizeof *names);
  Elf_Data *need = table_at(reader, tables, tables->verneed, VERSIONS_SIZE, ELF_T_VNEED, "table of needed versions");
  uint64_t rounds = need ? need->d_size / sizeof(Elf64_Vernaux) : 0, offset = 0;
  GElf_Verneed one;
  while (need && rounds && offset < INT32_MAX && gelf_getverneed(need, (int)offset, &one)) {
    uint64_t at = offset + one.vn_aux;
    const char *library = audit_keep(reader, audit_string_at(strings, one.vn_file));
    GElf_Vernaux aux;
    for (unsigned i = 0; i < one.vn_cnt && rounds && at < INT32_MAX && gelf_getvernaux(need, (int)at, &aux); i++) {
      const char *name = audit_string_at(strings, aux.vna_name);
      rounds--;
      if (name && !names[aux.vna_other & 0x7fff]) {
        names[aux.vna_other & 0x7fff] = audit_keep(reader, name);
        note_version(reader, name);
        if (library && !reader->object->fault)
          add_needed_version(reader->object, library, names[aux.vna_other & 0x7fff], aux.vna_flags & VER_FLG_WEAK);
      }
      if (aux.vna_next == 0)
        break;
      at += aux.vna_next;
    }
    if (one.vn_next == 0)
      break;
    rounds = rounds ? rounds - 1 : 0;
    offset += one.vn_next;
  }
  Elf_Data *have = table_at(reader, tables, tables->verdef, VERSIONS_SIZE, ELF_T_VDEF, "table of versions");
  GElf_Verdef def;
  rounds = have ? have->d_size / sizeof(Elf64_Verdef) : 0;
  for (offset = 0; have && rounds && offset < INT32_MAX && gelf_getverdef(have, (int)offset, &def); rounds--) {
    GElf_Verdaux aux;
    if (offset + def.vd_aux < INT32_MAX && gelf_getverdaux(have, (int)(offset + def.vd_aux), &aux)) {
      const char *name = audit_string_at(strings, aux.vda_name);
      if (name && !names[def.vd_ndx & 0x7fff]) {
        names[def.vd_ndx & 0x7fff] = audit_keep(reader, name);
        if (!reader->object->fault)
          add_version(reader->object, names[def.vd_ndx & 0x7fff]);
      }
    }
    if (def.vd_next == 0)
      break;
    offset += def.vd_next;
  }
  return names;
}

static void read_dynamic_symbols(struct audit_reader *reader, const struct audit_tables *tables,
                                 const Elf_Data *strings) {
  uint64_t count = audit_symbols_count(reader, tables);
  if (count > TABLE_MOST / sizeof(Elf64_Sym)) {
    audit_fault(reader->list, reader->object, "damaged: it claims %llu symbols", (unsigned long long)count);
    return;
  }
  Elf_Data *table =
      table_at(reader, tables, tables->symtab, count * sizeof(Elf64_Sym), ELF_T_SYM, "dynamic symbol table");
  if (!table)
    return;
  const char **versions = tables->versym ? read_versions(reader, tables, strings) : NULL;
  Elf_Data *versym =
      table_at(reader, tables, tables->versym, count * sizeof(Elf64_Half), ELF_T_HALF, "table of symbol versions");
  if (!reader->object->fault)
    audit_symbols(reader, table, strings, versym, versions);
}

static void read_library(struct audit_reader *reader, struct audit_tables *tables) {
  struct audit_object *object = reader->object;
  read_dynamic(reader, tables);
  if (object->fault || !tables->strtab)
    return;
  Elf_Data *strings = table_at(reader, tables, tables->strtab, tables->strsz, ELF_T_BYTE, "string table");
  if (!strings)
    return;
  object->soname = tables->has_soname ? audit_keep(reader, audit_string_at(strings, tables->soname)) : NULL;
  object->rpath = tables->has_rpath ? audit_keep(reader, audit_string_at(strings, tables->rpath)) : NULL;
  object->runpath = tables->has_runpath ? audit_keep(reader, audit_string_at(strings, tables->runpath)) : NULL;
  object->needed = arena_alloc(&reader->list->arena, tables->needed_count * sizeof *object->needed);
  for (size_t i = 0; i < tables->needed_count; i++) {
    const char *name = audit_keep(reader, audit_string_at(strings, tables->needed[i]));
    if (name)
      object->needed[object->needed_count++] = (struct audit_needed){.name = name, .object = SIZE_MAX};
  }
  if (tables->symtab)
    read_dynamic_symbols(reader, tables, strings);
}

/* --- sections ----------------------------------------------------------------------------------------------------- */

struct sections {
  GElf_Shdr *headers;
  const char **names;
  size_t count;
};

static void read_sections(struct audit_reader *reader, struct sections *sections) {
  size_t count = 0, names_index = 0;
  if (elf_getshdrnum(reader->elf, &count) != 0 || count == 0)
    return;
  sections->headers = arena_alloc(&reader->scratch, count * sizeof *sections->headers);
  sections->names = arena_alloc(&reader->scratch, count * sizeof *sections->names);
  for (size_t i = 0; i < count; i++) {
    Elf_Scn *section = elf_getscn(reader->elf, i);
    if (!section || !gelf_getshdr(section, &sections->headers[i])) {
      audit_fault(reader->list, reader->object, "its section headers: %s", elf_errmsg(-1));
      return;
    }
  }
  sections->count = count;
  if (elf_getshdrstrndx(reader->elf, &names_index) != 0 || names_index == 0 || names_index >= count)
    return;
  const GElf_Shdr *header = &sections->headers[names_index];
  Elf_Data *names = audit_chunk(reader, header->sh_offset, header->sh_size, ELF_T_BYTE, "section names");
  for (size_t i = 0; i < count; i++)
    sections->names[i] = audit_string_at(names, sections->headers[i].sh_name);
}

static const char *section_name(const struct sections *sections, size_t i) {
  return sections->names[i] ? sections->names[i] : "";
}

/* The file of a debugger: the code is elsewhere. */
static bool is_debug_file(const struct sections *sections) {
  for (size_t i = 0; i < sections->count; i++)
    if (sections->headers[i].sh_type == SHT_NOBITS && sections->headers[i].sh_flags & SHF_EXECINSTR)
      return true;
  return false;
}

static void read_object_symbols(struct audit_reader *reader, const struct sections *sections) {
  bool code = false, lto = false;
  for (size_t i = 0; i < sections->count; i++) {
    const GElf_Shdr *header = &sections->headers[i];
    code |= (header->sh_flags & SHF_EXECINSTR) && header->sh_size > 0;
    lto |= strncmp(section_name(sections, i), ".gnu.lto_", 9) == 0;
    if (header->sh_type != SHT_SYMTAB || header->sh_link >= sections->count)
      continue;
    const GElf_Shdr *link = &sections->headers[header->sh_link];
    Elf_Data *strings = audit_chunk(reader, link->sh_offset, link->sh_size, ELF_T_BYTE, "string table");
    Elf_Data *table = audit_chunk(reader, header->sh_offset, header->sh_size / sizeof(Elf64_Sym) * sizeof(Elf64_Sym),
                                  ELF_T_SYM, "symbol table");
    if (table && !reader->object->fault)
      audit_symbols(reader, table, strings, NULL, NULL);
    break; /* the format has one */
  }
  if (lto && !code)
    audit_fault(reader->list, reader->object, "an object file for link-time optimization: it has no symbols yet");
}

static bool has_strings(const struct sections *sections, size_t i) {
  const GElf_Shdr *header = &sections->headers[i];
  const char *name = section_name(sections, i);
  return header->sh_type == SHT_PROGBITS && header->sh_flags & SHF_ALLOC &&
         !(header->sh_flags & (SHF_WRITE | SHF_EXECINSTR | SHF_COMPRESSED)) && !strstr(name, "fatbin") &&
         strncmp(name, ".eh_frame", 9) != 0 && strcmp(name, ".gcc_except_table") != 0;
}

/* A segment without the names of symbols, which are strings like any other. */
static void read_around(struct audit_reader *reader, const struct audit_segment *segment,
                        const struct audit_tables *tables, void (*read)(struct audit_reader *, uint64_t, uint64_t)) {
  uint64_t start, left, end = segment->offset + segment->size;
  if (!audit_place_at(tables, tables->strtab, &start, &left) || start < segment->offset || start > end ||
      tables->strsz > end - start) {
    read(reader, segment->offset, segment->size);
    return;
  }
  read(reader, segment->offset, start - segment->offset);
  read(reader, start + tables->strsz, end - start - tables->strsz);
}

/* A library of torch operators that does not name the namespace in its strings may have it in its code. */
static void read_code(struct audit_reader *reader, const struct sections *sections) {
  for (size_t i = 0; i < sections->count && reader->object->torch_symbols && !reader->registers; i++)
    if (sections->headers[i].sh_type == SHT_PROGBITS && sections->headers[i].sh_flags & SHF_EXECINSTR)
      audit_code(reader, sections->headers[i].sh_offset, sections->headers[i].sh_size);
}

static void read_contents(struct audit_reader *reader, const struct sections *sections,
                          const struct audit_tables *tables) {
  for (int pass = 0; pass < (reader->registers || reader->context->keep_schemas ? 2 : 1) && !reader->object->fault;
       pass++) {
    void (*read)(struct audit_reader *, uint64_t, uint64_t) = pass ? audit_schemas : audit_strings;
    for (size_t i = 0; i < sections->count; i++)
      if (has_strings(sections, i))
        read(reader, sections->headers[i].sh_offset, sections->headers[i].sh_size);
    for (size_t i = 0; sections->count == 0 && i < tables->segments_count; i++)
      if (!tables->segments[i].writable)
        read_around(reader, &tables->segments[i], tables, read);
    if (pass == 0 && !reader->object->fault)
      read_code(reader, sections);
  }
  for (size_t i = 0; i < sections->count; i++) {
    const GElf_Shdr *header = &sections->headers[i];
    if (header->sh_type == SHT_PROGBITS && strstr(section_name(sections, i), "fatbin"))
      audit_fatbin(reader, header->sh_offset, header->sh_size);
  }
}

/* false: it is not there. */
static bool find_build_id(struct audit_reader *reader, uint64_t offset, uint64_t size, uint64_t align) {
  Elf_Data *data =
      size > NOTES_MOST ? NULL : audit_chunk(reader, offset, size, align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR, "notes");
  GElf_Nhdr note;
  size_t name, content, at = 0;
  while (data && (at = gelf_getnote(data, at, &note, &name, &content)) > 0) {
    if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != 4 || memcmp((char *)data->d_buf + name, "GNU", 4) != 0 ||
        note.n_descsz > 64)
      continue;
    char *hex = arena_alloc(&reader->list->arena, 2 * note.n_descsz + 1);
    for (size_t k = 0; k < note.n_descsz; k++)
      sprintf(hex + 2 * k, "%02x", ((uint8_t *)data->d_buf)[content + k]);
    reader->object->build_id = hex;
    return true;
  }
  return false;
}

/* Sections part notes of different alignment, which segments do not always. */
static void read_build_id(struct audit_reader *reader, const struct sections *sections,
                          const struct audit_tables *tables) {
  bool found = false;
  for (size_t i = 0; i < sections->count && !found; i++) {
    const GElf_Shdr *header = &sections->headers[i];
    found =
        header->sh_type == SHT_NOTE && find_build_id(reader, header->sh_offset, header->sh_size, header->sh_addralign);
  }
  for (size_t i = 0; i < tables->notes_count && sections->count == 0 && !found; i++)
    found = find_build_id(reader, tables->notes[i].offset, tables->notes[i].size, tables->notes[i].align);
}

/* --- the whole ---------------------------------------------------------------------------------------------------- */

static void read_all(struct audit_reader *reader) {
  struct audit_object *object = reader->object;
  struct audit_tables *tables = arena_alloc(&reader->scratch, sizeof *tables);
  struct sections sections = {0};
  GElf_Ehdr header;
  if (!gelf_getehdr(reader->elf, &header)) {
    audit_fault(reader->list, object, "%s", elf_errmsg(-1));
    return;
  }
  const char *machine = machine_name(header.e_machine);
  char other[32];
  snprintf(other, sizeof other, "machine %u", header.e_machine);
  object->machine = machine ? machine : audit_keep(reader, other);
  object->type = header.e_type;
  object->big_endian = header.e_ident[EI_DATA] == ELFDATA2MSB;
  read_sections(reader, &sections);
  if (object->fault || is_debug_file(&sections))
    return;
  read_segments(reader, tables);
  for (size_t i = 0; i < sections.count; i++) {
    if (sections.headers[i].sh_type == SHT_DYNAMIC && header.e_type != ET_REL && !tables->dynamic_size)
      audit_fault(reader->list, object, "damaged: its program headers do not lead to its dynamic section");
    if (sections.headers[i].sh_type == SHT_DYNSYM) {
      tables->dynsym = sections.headers[i].sh_addr;
      tables->dynsym_size = sections.headers[i].sh_size;
    }
  }
  if (object->fault)
    return;
  if (header.e_type == ET_REL)
    read_object_symbols(reader, &sections);
  else if (tables->dynamic_size)
    read_library(reader, tables);
  if (!object->fault)
    read_build_id(reader, &sections, tables);
  if (!object->fault)
    read_contents(reader, &sections, tables);
}

void audit_elf(const struct audit_context *context, struct audit_list *list, struct audit_object *object, int fd,
               uint64_t size) {
  struct audit_reader reader = {.context = context,
                                .list = list,
                                .object = object,
                                .fd = fd,
                                .size = size,
                                .budget = 3 * size + ((uint64_t)1 << 16),
                                .names_budget = 8 * size + ((uint64_t)1 << 16)};
  if (!check_header(&reader))
    return;
  reader.elf = elf_begin(fd, ELF_C_READ, NULL);
  if (!reader.elf) {
    audit_fault(list, object, "%s", elf_errmsg(-1));
    return;
  }
  read_all(&reader);
  elf_end(reader.elf);
  arena_free(&reader.scratch);
}
