/* scanner/audit_*.c on damaged files: whatever the bytes say, the answer is facts or a fault, in little time. Under the
 * sanitizers this is also where a read out of bounds or a leak shows. */
#include "scanner/audit.h"
#include "tests/unit.h"

#include <fcntl.h>
#include <libelf.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static char folder[64];
static struct audit_context context;

static const char source[] = "asm(\".section .nv_fatbin,\\\"a\\\"\\n.long 0xBA55ED50\\n.short 1,16\\n.quad 64\\n.short "
                             "2,257\\n.long 64\\n.quad 0\\n\"\n"
                             "    \".long 0,0\\n.short 1,8\\n.long 90,0,0,0x100000,0,0,0,0,0,0\\n.text\");\n"
                             "extern void need(void) __asm__(\"_Z16dsv3_router_gemmRN2at6TensorERKS0_S3_\");\n"
                             "extern void torch(void) __asm__(\"_ZNK2at6Tensor3dimEv\");\n"
                             "const char *names(int i) { static const char *const all[] = {\"sgl_kernel\", "
                             "\"sgl_kernel::bmm_fp8\", \"x(Tensor a) -> Tensor\"};\n"
                             "  return all[i]; }\n"
                             "int use(void) { need(); torch(); return 1; }\n";

static void shell(const char *script) {
  char *command = scan_format("cd %s && { %s; } >/dev/null", folder, script);
  if (system(command) != 0)
    abort();
  free(command);
}

static void start(void) {
  strcpy(folder, "/tmp/test_audit.XXXXXX");
  if (!mkdtemp(folder))
    abort();
  char *name = scan_format("%s/a.c", folder);
  FILE *file = fopen(name, "w");
  if (!file || fputs(source, file) < 0 || fclose(file) != 0)
    abort();
  free(name);
  shell("cc -shared -fPIC -o a.so a.c -Wl,-rpath,'$ORIGIN/x' -Wl,--no-as-needed -lm && cc -c -fPIC -o a.o a.c && ar "
        "rcs a.a a.o");
  shell("python3 -m zipfile -c a.zip a.so a.a && tar czf a.tar.gz a.so a.zip a.o");
  shell("mkdir -p blobs/sha256 && tar cf blobs/sha256/1 a.so && printf '[{\"Layers\":[\"blobs/sha256/1\"]}]' "
        ">manifest.json && "
        "tar cf image.tar blobs manifest.json");
  elf_version(EV_CURRENT);
  context = (struct audit_context){.catalog = &catalog_builtin,
                                   .names = audit_names_build(&catalog_builtin),
                                   .limits = audit_default_limits,
                                   .keep_symbols = true};
}

static void stop(void) {
  audit_names_free(context.names);
  shell("rm -rf \"$PWD\"");
}

static uint8_t *load(const char *name, size_t *size) {
  char *path = scan_format("%s/%s", folder, name);
  int fd = open(path, O_RDONLY);
  struct stat status;
  if (fd < 0 || fstat(fd, &status) != 0)
    abort();
  *size = (size_t)status.st_size;
  uint8_t *bytes = scan_alloc(NULL, *size);
  if (pread(fd, bytes, *size, 0) != status.st_size)
    abort();
  close(fd);
  free(path);
  return bytes;
}

/* What the audit of the bytes says: objects without a fault, or SIZE_MAX. */
static size_t audit_bytes(const uint8_t *bytes, size_t size, enum audit_kind kind, struct audit_list *list) {
  int fd = memfd_create("audit", MFD_CLOEXEC);
  if (fd < 0 || write(fd, bytes, size) != (ssize_t)size || lseek(fd, 0, SEEK_SET) != 0)
    abort();
  *list = (struct audit_list){0};
  if (kind == AUDIT_ELF)
    audit_elf(&context, list, audit_add(list, "file", NULL), fd, size);
  else
    audit_archive(&context, list, fd, "file", kind);
  close(fd);
  size_t good = 0;
  for (size_t i = 0; i < list->objects_count; i++)
    good += list->objects[i].fault == NULL;
  return good;
}

static void drop(struct audit_list *list) {
  for (size_t i = 0; i < list->objects_count; i++)
    audit_object_free(&list->objects[i]);
  audit_list_free(list);
}

static uint64_t state;
static uint64_t next_random(void) { /* xorshift64* */
  state ^= state >> 12;
  state ^= state << 25;
  state ^= state >> 27;
  return state * 0x2545F4914F6CDD1DULL;
}

/* Changes some bytes, most of them in the headers at both ends, or cuts the file. */
static size_t damage(uint8_t *bytes, size_t size) {
  static const uint64_t odd[] = {0,          1,          0x7f,       0x80,       0xff,      0xffff,
                                 0x7fffffff, 0xffffffff, 1ULL << 40, UINT64_MAX, 1ULL << 63};
  unsigned changes = 1 + next_random() % 4;
  for (unsigned i = 0; i < changes; i++) {
    size_t window = size < 2048 || next_random() % 3 == 0 ? size : 2048;
    size_t at = next_random() % window;
    if (next_random() % 2 && window < size)
      at = size - 1 - at;
    size_t length = (size_t)1 << next_random() % 4;
    uint64_t value = next_random() % 2 ? odd[next_random() % (sizeof odd / sizeof *odd)] : next_random();
    if (at + length <= size)
      memcpy(bytes + at, &value, length);
  }
  return next_random() % 16 == 0 ? next_random() % size : size;
}

static void try_damaged(const char *name, enum audit_kind kind, unsigned rounds, size_t whole) {
  size_t size;
  uint8_t *bytes = load(name, &size), *copy = scan_alloc(NULL, size);
  struct audit_list list;
  CU_ASSERT_EQUAL(audit_bytes(bytes, size, kind, &list), whole);
  drop(&list);
  struct timespec begin, end;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
  size_t faults = 0;
  state = 88172645463325252ULL;
  for (unsigned i = 0; i < rounds; i++) {
    memcpy(copy, bytes, size);
    size_t good = audit_bytes(copy, damage(copy, size), kind, &list);
    faults += list.objects_count - good;
    drop(&list);
  }
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
  CU_ASSERT_TRUE(faults > rounds / 50);
  CU_ASSERT_TRUE(end.tv_sec - begin.tv_sec < 60);
  free(bytes);
  free(copy);
}

static void facts(void) {
  size_t size;
  uint8_t *bytes = load("a.so", &size);
  struct audit_list list;
  CU_ASSERT_EQUAL(audit_bytes(bytes, size, AUDIT_ELF, &list), 1);
  const struct audit_object *object = &list.objects[0];
  UNIT_STRINGS(object->runpath, "$ORIGIN/x");
  CU_ASSERT_EQUAL(object->torch_symbols, 1);
  CU_ASSERT_EQUAL(object->strings_count, 1);
  CU_ASSERT_EQUAL(object->schemas_count, 1);
  CU_ASSERT_EQUAL(object->code_count, 1);
  if (object->schemas_count && object->code_count) {
    UNIT_STRINGS(object->schemas[0], "x(Tensor a) -> Tensor");
    CU_ASSERT_TRUE(object->code[0].arch == 90 && object->code[0].suffix == 'a' && !object->code[0].ptx);
  }
  drop(&list);
  free(bytes);
}

static void every_length(void) {
  size_t size;
  uint8_t *bytes = load("a.so", &size);
  for (size_t length = 0; length < size; length += 1 + length / 64) {
    struct audit_list list;
    CU_ASSERT_EQUAL(audit_bytes(bytes, length, AUDIT_ELF, &list), 0);
    drop(&list);
  }
  free(bytes);
}

static void damaged_libraries(void) {
  try_damaged("a.so", AUDIT_ELF, 3000, 1);
}

static void damaged_objects(void) {
  try_damaged("a.o", AUDIT_ELF, 2000, 1);
}

static void damaged_archives(void) {
  try_damaged("a.a", AUDIT_AR, 500, 1);
  try_damaged("a.zip", AUDIT_ARCHIVE, 300, 2);
  try_damaged("a.tar.gz", AUDIT_ARCHIVE, 300, 4);
  try_damaged("image.tar", AUDIT_ARCHIVE, 300, 1);
}

/* audit_names.c */
static void names(void) {
  static const struct {
    const char *name;
    bool torch;
    int abi;
  } all[] = {{"_ZNK2at6Tensor3dimEv", true, 0},
             {"_ZN3c106detail14torchCheckFailEPKcS2_jRKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE", true, 1},
             {"_ZN5torch3jit17parseSchemaOrNameERKSsb", true, -1},
             {"_ZTVN5torch8autograd12AutogradMetaE", true, 0},
             {"_ZGVZN2at1fEvE1x", true, 0},
             {"_ZThn16_N3c105ErrorD1Ev", true, 0},
             {"_ZNR5torch7Library5_implEPKc", true, 0},
             {"_Z16dsv3_router_gemmRN2at6TensorERKS0_S3_", false, 0},
             {"_ZNSt6vectorIN2at6TensorESaIS1_EE9push_backERKS1_", false, 0},
             {"_ZN4attn3fooEv", false, 0},
             {"at", false, 0},
             {"_Z", false, 0},
             {"_ZN", false, 0},
             {"", false, 0}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    CU_ASSERT_EQUAL(audit_is_torch(all[i].name), all[i].torch);
    CU_ASSERT_EQUAL(audit_cxx_abi(all[i].name), all[i].abi);
  }
  CU_ASSERT_TRUE(audit_is_torch_c("aoti_torch_get_dim"));
  CU_ASSERT_FALSE(audit_is_torch_c("torch"));
  UNIT_STRINGS(audit_operator(context.names, "bmm_fp8(", 7)->id, "bmm_fp8");
  CU_ASSERT_PTR_NULL(audit_operator(context.names, "bmm_fp8", 6));
}

static const struct unit_test tests[] = {
    {"facts", facts},
    {"every_length", every_length},
    {"damaged_libraries", damaged_libraries},
    {"damaged_objects", damaged_objects},
    {"damaged_archives", damaged_archives},
    {"names", names},
};

int main(int argc, char **argv) {
  start();
  int status = unit_main("audit", tests, sizeof tests / sizeof *tests, argc, argv);
  stop();
  return status;
}
