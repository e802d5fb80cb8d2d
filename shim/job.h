/* The job that this process is one of many of. */
#ifndef SGL_COMPAT_JOB_H
#define SGL_COMPAT_JOB_H

#include <stdbool.h>
#include <stddef.h>

/* Whether this process speaks for its job: it has number 0, or no number. */
bool job_is_first_rank(void);

/* What all processes of the job have alike and other jobs have not, as "SLURM_JOB_ID=1234"; false when nothing here
 * tells. SGL_KERNEL_COMPAT_JOB goes first. Without the environment in programs with more rights than their caller. */
bool job_seed(char *text, size_t size);

#endif
