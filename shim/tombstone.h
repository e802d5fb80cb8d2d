/* The C++ functions of old wheels that are gone and that no kernel here replaces. They are exported under their old
 * mangled names, so that a library that calls one can be loaded. A call goes to another loaded definition, as if this
 * library were not there; without one it throws, with the advice,
 * and where a stage of the policy is set it warns or throws first. Their arguments are never looked at: std::optional,
 * std::vector, scalars and tensors by value are no matter, nor is what they return. */
#ifndef SGL_COMPAT_TOMBSTONE_H
#define SGL_COMPAT_TOMBSTONE_H

/* For tombstone_entry.S, which has the functions. tombstone_targets: where the calls of each go, once it is known. */
extern void *tombstone_targets[];
void *tombstone_find(unsigned number, const void *site);

/* A policy was set: all targets have to be found anew. */
void tombstone_forget(void);

/* Throws; returns only where nobody could catch (throw.h). */
void tombstone_throw(unsigned number, const void *site);

#endif
