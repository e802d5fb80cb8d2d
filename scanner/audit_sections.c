/* What an ELF file has in its sections: strings that name something of the catalog, operator schemas, CUDA code. */
#include "scanner/audit_elf.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUFFER ((size_t)256 << 10)
#define STRING_MOST 4096 /* a longer one is no name and no schema */
#define NAMES_MOST 10000 /* a hundred times what the largest library has */

/* Bytes of text: printable ASCII. Everything else ends a string to the left. */
static bool is_text(uint8_t c) {
  return c >= 0x20 && c < 0x7f;
}

static bool is_word(uint8_t c) {
  return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Calls take() for each string of the range: text that a NUL ends, and that begins behind one, behind a byte that is no
 * text, or with the range. */
static void each_string(struct audit_reader *reader, uint64_t offset, uint64_t size,
                        void (*take)(struct audit_reader *reader, const char *text, size_t length)) {
  if (!audit_range(reader, offset, size, "read-only data"))
    return;
  uint8_t *buffer = scan_alloc(NULL, BUFFER);
  size_t kept = 0; /* the beginning of a string whose end is not read yet */
  while (size > 0 && !reader->object->fault) {
    size_t wanted = size < BUFFER - kept ? size : BUFFER - kept;
    ssize_t got = pread(reader->fd, buffer + kept, wanted, (off_t)offset);
    if (got <= 0) {
      audit_fault(reader->list, reader->object, "its read-only data could not be read");
      break;
    }
    offset += (uint64_t)got;
    size -= (uint64_t)got;
    uint8_t *at = buffer, *end = buffer + kept + got, *stop;
    while (at < end && (stop = memchr(at, 0, (size_t)(end - at)))) {
      uint8_t *start = stop;
      while (start > at && is_text(start[-1]))
        start--;
      if (stop - start > 3 && stop - start < STRING_MOST)
        take(reader, (char *)start, (size_t)(stop - start));
      for (at = stop + 1; at < end && *at == 0; at++)
        ;
    }
    kept = (size_t)(end - at);
    if (kept >= STRING_MOST) { /* its start may go: it is no name any more, whatever follows */
      at = end - STRING_MOST;
      kept = STRING_MOST;
    }
    memmove(buffer, at, kept);
  }
  free(buffer);
}

static void add_string(struct audit_reader *reader, const char *text, size_t length,
                       const struct catalog_symbol *symbol, bool operator) {
  struct audit_object *object = reader->object;
  if (object->strings_count == NAMES_MOST)
    audit_fault(reader->list, object, "damaged: more than %d names of operators", NAMES_MOST);
  if (object->fault)
    return;
  for (size_t i = 0; i < object->strings_count; i++)
    if (strcmp(object->strings[i].text, text) == 0)
      return;
  if (object->strings_count == reader->strings_capacity) {
    reader->strings_capacity = reader->strings_capacity ? 2 * reader->strings_capacity : 16;
    object->strings = scan_alloc(object->strings, reader->strings_capacity * sizeof *object->strings);
  }
  object->strings[object->strings_count++] =
      (struct audit_string){arena_copy(&reader->list->arena, text, length), symbol, operator};
}

static void take_string(struct audit_reader *reader, const char *text, size_t length) {
  const struct catalog_library *library = &reader->context->catalog->library;
  size_t space = strlen(library->op_namespace);
  if (text[0] == '_' && text[1] == 'Z') {
    const struct catalog_symbol *symbol = audit_function(reader->context->names, text, audit_hash(text, length));
    if (symbol)
      add_string(reader, text, length, symbol, false);
    return;
  }
  if (length < space || memcmp(text, library->op_namespace, space) != 0)
    return;
  reader->registers |= length == space;
  if (length < space + 3 || text[space] != ':' || text[space + 1] != ':')
    return;
  size_t end = space + 2;
  while (end < length && is_word((uint8_t)text[end]))
    end++;
  reader->registers |= end < length && text[end] == '('; /* a schema with its namespace */
  if (end == length)
    add_string(reader, text, length, audit_operator(reader->context->names, text + space + 2, end - space - 2), true);
}

/* The name of an operator and nothing else. */
static void take_inferred(struct audit_reader *reader, const char *name, size_t length) {
  struct audit_object *object = reader->object;
  const struct catalog_symbol *symbol = audit_operator(reader->context->names, name, length);
  if (!symbol || object->inferred_count == NAMES_MOST)
    return;
  if (object->inferred_count == reader->inferred_capacity) {
    reader->inferred_capacity = reader->inferred_capacity ? 2 * reader->inferred_capacity : 16;
    object->inferred = scan_alloc(object->inferred, reader->inferred_capacity * sizeof(struct catalog_symbol *));
  }
  object->inferred[object->inferred_count++] = symbol;
}

/* "name(Tensor a, int b=1) -> Tensor", with or without the namespace. */
static void take_schema(struct audit_reader *reader, const char *text, size_t length) {
  struct audit_object *object = reader->object;
  size_t space = strlen(reader->context->catalog->library.op_namespace), at = 0;
  if (length > space + 2 && memcmp(text, reader->context->catalog->library.op_namespace, space) == 0 &&
      text[space] == ':')
    at = space + 2;
  size_t name = at;
  while (at < length && (is_word((uint8_t)text[at]) || text[at] == '.'))
    at++;
  if (at == length)
    take_inferred(reader, text, length);
  if (object->schemas_count == NAMES_MOST || at == name || at == length || text[at] != '(' ||
      (!memmem(text + at, length - at, ") -> ", 5) && !memmem(text + at, length - at, ")-> ", 4)))
    return;
  if (object->schemas_count == reader->schemas_capacity) {
    reader->schemas_capacity = reader->schemas_capacity ? 2 * reader->schemas_capacity : 64;
    object->schemas = scan_alloc(object->schemas, reader->schemas_capacity * sizeof *object->schemas);
  }
  object->schemas[object->schemas_count++] = arena_copy(&reader->list->arena, text + name, length - name);
}

void audit_strings(struct audit_reader *reader, uint64_t offset, uint64_t size) {
  each_string(reader, offset, size, take_string);
}

void audit_schemas(struct audit_reader *reader, uint64_t offset, uint64_t size) {
  each_string(reader, offset, size, take_schema);
}

/* The namespace as a constant in code: a std::string of 15 bytes at most is made of such, and then is no string in the
 * file. Its first 8 bytes are one constant on x86-64. */
#define CONSTANT ((size_t)8)
void audit_code(struct audit_reader *reader, uint64_t offset, uint64_t size) {
  const char *space = reader->context->catalog->library.op_namespace;
  if (strlen(space) < CONSTANT || !audit_range(reader, offset, size, "code"))
    return;
  uint8_t *buffer = scan_alloc(NULL, BUFFER);
  size_t kept = 0;
  while (size > 0 && !reader->registers) {
    ssize_t got = pread(reader->fd, buffer + kept, size < BUFFER - kept ? size : BUFFER - kept, (off_t)offset);
    if (got <= 0)
      break;
    offset += (uint64_t)got;
    size -= (uint64_t)got;
    size_t have = kept + (size_t)got;
    reader->registers = memmem(buffer, have, space, CONSTANT) != NULL;
    kept = have < CONSTANT - 1 ? have : CONSTANT - 1;
    memmove(buffer, buffer + have - kept, kept);
  }
  free(buffer);
}

/* --- CUDA --------------------------------------------------------------------------------------------------------- */

/* A fat binary is a header and entries, each with a header of its own; little-endian. The layout is in no document;
 * offsets and flags are those of the binaries of CUDA 12 and 13 (a cubin with bit 20 has the ELF flags of sm_90a). */
enum { FAT_MAGIC = 0xBA55ED50, FAT_HEADER = 16, FAT_ENTRY = 64, FAT_PTX = 1, FAT_CUBIN = 2 };
#define FAT_FLAG_A ((uint64_t)1 << 20)
#define FAT_FLAG_F ((uint64_t)1 << 21)
#define ARCH_MOST 1000
#define PADDING_MOST 4096 /* between two fat binaries */

static uint64_t little(const uint8_t *at, unsigned size) {
  uint64_t value = 0;
  while (size--)
    value = value << 8 | at[size];
  return value;
}

static void add_code(struct audit_reader *reader, unsigned arch, char suffix, bool ptx) {
  struct audit_object *object = reader->object;
  for (size_t i = 0; i < object->code_count; i++) {
    struct audit_code *code = &object->code[i];
    if (code->arch == arch && code->suffix == suffix && code->ptx == ptx) {
      code->count++;
      return;
    }
  }
  if (object->code_count == reader->code_capacity) {
    reader->code_capacity = reader->code_capacity ? 2 * reader->code_capacity : 16;
    object->code = scan_alloc(object->code, reader->code_capacity * sizeof *object->code);
  }
  object->code[object->code_count++] = (struct audit_code){arch, suffix, ptx, 1};
}

static int by_arch(const void *a, const void *b) {
  const struct audit_code *x = a, *y = b;
  if (x->ptx != y->ptx)
    return x->ptx - y->ptx;
  return x->arch != y->arch ? (x->arch > y->arch) - (x->arch < y->arch) : x->suffix - y->suffix;
}

/* Only headers are read; the code between them, most of such a file, is not. */
void audit_fatbin(struct audit_reader *reader, uint64_t offset, uint64_t size) {
  uint8_t header[FAT_ENTRY];
  if (offset > reader->size || size > reader->size - offset) {
    audit_fault(reader->list, reader->object, "truncated or damaged: its CUDA code would end at byte %llu of %llu",
                (unsigned long long)(offset + size), (unsigned long long)reader->size);
    return;
  }
  uint64_t end = offset + size, padding = 0;
  while (end - offset >= FAT_HEADER && audit_range(reader, offset, FAT_HEADER, "CUDA code")) {
    if (pread(reader->fd, header, FAT_HEADER, (off_t)offset) != FAT_HEADER)
      return;
    uint64_t length = little(header + 6, 2), content = little(header + 8, 8);
    if (little(header, 4) != FAT_MAGIC) { /* padding */
      offset += 8;
      padding += 8;
      if (padding > PADDING_MOST || offset > end)
        return;
      continue;
    }
    padding = 0;
    if (length < FAT_HEADER || length > end - offset || content > end - offset - length)
      return;
    uint64_t at = offset + length, last = at + content;
    while (last - at >= FAT_ENTRY && audit_range(reader, at, FAT_ENTRY, "CUDA code")) {
      if (pread(reader->fd, header, FAT_ENTRY, (off_t)at) != FAT_ENTRY)
        return;
      uint64_t kind = little(header, 2), own = little(header + 4, 4), payload = little(header + 8, 8);
      uint64_t arch = little(header + 28, 4), flags = little(header + 40, 8);
      if ((kind == FAT_PTX || kind == FAT_CUBIN) && arch <= ARCH_MOST)
        add_code(reader, (unsigned)arch, flags & FAT_FLAG_A ? 'a' : flags & FAT_FLAG_F ? 'f' : '\0', kind == FAT_PTX);
      if (own < FAT_ENTRY || own > last - at || payload > last - at - own)
        break;
      at += own + payload;
    }
    offset = last;
  }
  if (reader->object->code_count)
    qsort(reader->object->code, reader->object->code_count, sizeof *reader->object->code, by_arch);
}
