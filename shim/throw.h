/* A C++ exception from C. */
#ifndef SGL_COMPAT_THROW_H
#define SGL_COMPAT_THROW_H

/* Throws: c10::Error where torch is loaded (RuntimeError in Python), std::runtime_error where only the C++ runtime is.
 * Without a C++ runtime nobody can catch: prints the message on stderr and RETURNS, so the caller must return too.
 * Hold nothing across the call that has to be given back. */
void throw_error(const char *function, const char *message);

#endif
