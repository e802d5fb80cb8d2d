/* YAML files by a schema (yaml.c): the catalog, and the settings of the scanner. */
#ifndef SGL_CATALOG_YAML_H
#define SGL_CATALOG_YAML_H

#include <cyaml/cyaml.h>
#include <stdbool.h>
#include <stddef.h>

/* Reads a NUL-ended text of `size` bytes into *value, whose schema is a pointer to a mapping; NULL when the text holds
 * nothing. false after writing one line into message: "PATH:LINE: what is wrong". Unknown keys, keys that are there
 * twice, wrong types and aliases are errors. */
bool yaml_load(const char *path, const char *text, size_t size, const cyaml_schema_value_t *schema, void **value,
               char *message, size_t message_size);
void yaml_free(const cyaml_schema_value_t *schema, void *value);

#endif
