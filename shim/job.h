/* The job that this process is one of many of. */
#ifndef SGL_COMPAT_JOB_H
#define SGL_COMPAT_JOB_H

#include <stdbool.h>

/* Whether this process speaks for its job: it has number 0, or no number. */
bool job_is_first_rank(void);

#endif
