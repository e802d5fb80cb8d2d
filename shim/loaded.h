/* What is loaded in this process. Nothing here loads a library, and no lock is held while the loader is called: a
 * caller may be a constructor that runs inside dlopen. */
#ifndef SGL_COMPAT_LOADED_H
#define SGL_COMPAT_LOADED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How many objects have been loaded so far in the life of the process: a changed number means that a look may find what
 * was not there before. */
uint64_t loaded_generation(void);

/* The path of each loaded object, in load order; "" is the main program. Returns NULL without memory; free with
 * loaded_free. */
char **loaded_paths(size_t *count);
void loaded_free(char **paths, size_t count);

/* Find a loaded library that has `function`, for dlsym: first the library `name` ("libtorch_cpu.so"), then any object
 * whose file name is `name` or starts with `name` and a dot (Debian's libtorch_cpu.so.2.14), last the global scope (a
 * program with a static torch). Python loads torch outside the global scope. The handle keeps the library loaded until
 * loaded_close; it may be RTLD_DEFAULT, which is NULL. Returns whether one was found. */
bool loaded_open(const char *name, const char *function, void **handle);
void loaded_close(void *handle);

/* The path of a loaded object whose file name is `name` or starts with `name` and a dot, to be freed; NULL when there
 * is none. */
char *loaded_path_of(const char *name);

#endif
