/* An archive or image; the first byte says whether it is given as a static archive. */
#include "scanner/audit.h"
#include "tests/fuzz/fuzz.h"

#include <libelf.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  int fd = memfd_create("archive", MFD_CLOEXEC);
  if (size == 0 || fd < 0 || write(fd, data + 1, size - 1) != (ssize_t)size - 1 || lseek(fd, 0, SEEK_SET) != 0)
    return 0;
  elf_version(EV_CURRENT);
  struct audit_context context = {
      .catalog = &catalog_builtin,
      .names = audit_names_build(&catalog_builtin),
      .limits = {.member = 1 << 20, .total = 1 << 22, .ratio = 1000, .members = 1000, .depth = 4}};
  struct audit_list list = {0};
  audit_archive(&context, &list, fd, "file", data[0] & 1 ? AUDIT_AR : AUDIT_ARCHIVE);
  for (size_t i = 0; i < list.places_count; i++)
    FUZZ_HOLDS(list.places[i].object == SIZE_MAX || list.places[i].object < list.objects_count);
  for (size_t i = 0; i < list.objects_count; i++)
    audit_object_free(&list.objects[i]);
  audit_list_free(&list);
  audit_names_free(context.names);
  close(fd);
  return 0;
}
