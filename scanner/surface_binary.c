/* Operators and functions of a library: audit_elf.c reads it, libiberty says what a mangled name is. */
#include "scanner/audit.h"
#include "scanner/surface.h"

#include <libelf.h>
#include <libiberty/demangle.h>
#include <setjmp.h>
#include <string.h>

/* A mangled name of a few hundred bytes can stand for gigabytes of text; nobody could call that. */
#define NAME_MOST 4096

struct demangled {
  char text[NAME_MOST];
  size_t size;
  jmp_buf enough;
};

static void take_piece(const char *text, size_t size, void *user) {
  struct demangled *demangled = user;
  if (size >= NAME_MOST - demangled->size)
    longjmp(demangled->enough, 1);
  memcpy(demangled->text + demangled->size, text, size);
  demangled->size += size;
}

static bool demangle(struct demangled *demangled, const char *symbol) {
  demangled->size = 0;
  if (setjmp(demangled->enough))
    return false;
  if (!cplus_demangle_v3_callback(symbol, DMGL_PARAMS | DMGL_ANSI | DMGL_TYPES, take_piece, demangled))
    return false;
  demangled->text[demangled->size] = '\0';
  return true;
}

/* Where the parameters of "ns::f<int (*)(long)>(at::Tensor, long) const" begin; the length without any. */
static size_t parameters_at(const char *text, size_t size) {
  size_t end = size;
  int depth = 0;
  while (end && text[end - 1] != ')') /* const, [abi:cxx11] */
    end--;
  for (size_t i = end; i > 0; i--) {
    depth += (text[i - 1] == ')') - (text[i - 1] == '(');
    if (depth == 0)
      return i - 1;
  }
  return size;
}

static void split_types(struct arena *arena, const char *text, size_t size, struct surface_signature *signature) {
  size_t most = 1, count = 0;
  for (size_t i = 0; i < size; i++)
    most += text[i] == ',';
  struct surface_parameter *list = arena_alloc(arena, most * sizeof *list);
  for (size_t start = 0; start < size;) {
    int depth = 0;
    size_t end = start;
    for (; end < size && (text[end] != ',' || depth); end++)
      depth += !!strchr("(<[{", text[end]) - !!strchr(")>]}", text[end]);
    list[count++] = (struct surface_parameter){.name = "", .type = arena_copy(arena, text + start, end - start)};
    start = end + 1;
    while (start < size && text[start] == ' ')
      start++;
  }
  signature->parameters = list;
  signature->count = count;
}

static bool begins(const char *text, const char *prefix) {
  return strncmp(text, prefix, strlen(prefix)) == 0;
}

bool surface_demangle(struct arena *arena, const char *symbol, const char **name, struct surface_signature *signature) {
  struct demangled demangled;
  *signature = (struct surface_signature){.text = "", .returns = ""};
  if (!begins(symbol, "_Z")) { /* a C function; the compiler's and linker's own begin with an underscore */
    *name = symbol;
    return *symbol != '_';
  }
  /* Tables, guards and local variables of the compiler, the standard library. */
  if (symbol[2] == 'Z' || symbol[2] == 'T' || symbol[2] == 'G' || begins(symbol, "_ZSt") || begins(symbol, "_ZNSt") ||
      begins(symbol, "_ZNKSt") || audit_is_torch(symbol))
    return false;
  if (!demangle(&demangled, symbol)) {
    *name = symbol;
    return true;
  }
  size_t open = parameters_at(demangled.text, demangled.size);
  if (begins(demangled.text, "__device_stub__")) /* nvcc's way to launch a kernel */
    return false;
  *name = arena_copy(arena, demangled.text, open);
  if (open == demangled.size)
    return false; /* a variable: constants of templates, named after the machine they are for */
  size_t close = demangled.size;
  while (demangled.text[close - 1] != ')')
    close--;
  signature->text = arena_copy(arena, demangled.text + open, demangled.size - open);
  split_types(arena, demangled.text + open + 1, close - open - 2, signature);
  signature->split = true;
  return true;
}

static void add_symbol(struct surface *surface, const char *path, const char *symbol) {
  const char *name;
  struct surface_signature signature;
  if (!surface_demangle(&surface->arena, symbol, &name, &signature))
    return;
  struct surface_item *item = surface_add(surface, CATALOG_LAYER_CXX, name);
  item->signature = signature;
  item->symbol = symbol;
  item->place = path;
}

void surface_binary(struct surface *surface, const char *path, int fd, uint64_t size) {
  elf_version(EV_CURRENT);
  struct audit_names *names = audit_names_build(surface->catalog);
  struct audit_context context = {.catalog = surface->catalog,
                                  .names = names,
                                  .limits = audit_default_limits,
                                  .keep_symbols = true,
                                  .keep_schemas = true};
  struct audit_list list = {0};
  struct audit_object *object = audit_add(&list, path, NULL);
  audit_elf(&context, &list, object, fd, size);
  if (object->fault) {
    surface_fault(surface, "%s: %s", path, object->fault);
  } else {
    surface->has[CATALOG_LAYER_CXX][CATALOG_CUDA] = true;
    surface->has[CATALOG_LAYER_OPERATOR][CATALOG_CUDA] |= object->schemas_count > 0;
    for (size_t i = 0; i < object->schemas_count; i++)
      surface_operator(surface, CATALOG_CUDA, object->schemas[i], strlen(object->schemas[i]), path);
    for (size_t i = 0; i < object->defined_count; i++)
      if (!object->exported[i].weak) /* inline functions and templates: callers bring their own */
        add_symbol(surface, path,
                   arena_copy(&surface->arena, object->exported[i].name, strlen(object->exported[i].name)));
  }
  audit_object_free(object);
  audit_list_free(&list);
  audit_names_free(names);
}
