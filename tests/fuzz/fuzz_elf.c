/* An ELF file. */
#include "scanner/audit.h"
#include "tests/fuzz/fuzz.h"

#include <libelf.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  int fd = memfd_create("elf", MFD_CLOEXEC);
  if (fd < 0 || write(fd, data, size) != (ssize_t)size)
    return 0;
  elf_version(EV_CURRENT);
  struct audit_context context = {
      .catalog = &catalog_builtin, .names = audit_names_build(&catalog_builtin), .keep_symbols = true};
  struct audit_list list = {0};
  struct audit_object *object = audit_add(&list, "file", NULL);
  audit_elf(&context, &list, object, fd, size);
  FUZZ_HOLDS(list.objects_count == 1);
  FUZZ_HOLDS(object->fault || object->machine);
  audit_object_free(object);
  audit_list_free(&list);
  audit_names_free(context.names);
  close(fd);
  return 0;
}
