/* Part of the build: the built-in catalog's pattern set as a C array on standard output, for any x86-64 processor. */
#include "scanner/prefilter.h"

#include <stdio.h>
#include <stdlib.h>

int main(void) {
  struct prefilter_patterns patterns;
  prefilter_patterns(&patterns, &catalog_builtin);
  const hs_platform_info_t any = {0};
  hs_compile_error_t *error = NULL;
  hs_database_t *database = prefilter_compile(&patterns, &any, &error);
  char *bytes = NULL;
  size_t size = 0;
  if (!database || hs_serialize_database(database, &bytes, &size) != HS_SUCCESS) {
    fprintf(stderr, "prefilter_gen: %s\n", error ? error->message : "the pattern set cannot be serialized");
    return 1;
  }
  printf("/* Generated from removals.yaml by prefilter_gen. */\n#include \"scanner/prefilter.h\"\n\n"
         "const unsigned char prefilter_builtin[] = {");
  for (size_t i = 0; i < size; i++)
    printf("%s%u,", i % 24 ? "" : "\n", (unsigned char)bytes[i]);
  printf("\n};\nconst size_t prefilter_builtin_size = sizeof prefilter_builtin;\n");
  free(bytes);
  hs_free_database(database);
  prefilter_patterns_free(&patterns);
  return fflush(stdout) != 0;
}
