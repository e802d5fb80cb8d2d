/* The job that this process belongs to, as its environment tells, and a name of the process that no other has. */
#ifndef SGL_COMPAT_JOB_H
#define SGL_COMPAT_JOB_H

#include <stdbool.h>
#include <stddef.h>

/* The number of this process among those of the job (RANK, SLURM_PROCID, OMPI_COMM_WORLD_RANK, ...), else among those
 * of the node; NULL: nobody has numbered it. A set-user-ID program has none. */
const char *job_rank(void);

/* Whether this process speaks for its job: it has number 0, or no number. */
bool job_is_first_rank(void);

/* What all processes of the job have alike and other jobs have not, as "SLURM_JOB_ID=1234"; false when nothing here
 * tells. SGL_KERNEL_COMPAT_JOB goes first. Without the environment in programs with more rights than their caller. */
bool job_seed(char *text, size_t size);

/* The absolute path of a folder that the environment names, whatever the program's folder becomes. To be freed; NULL
 * without memory. */
char *job_path(const char *name);

/* "host-pid-start". For file names: the host's name has no other characters than letters, digits, '.', '_' and '-'. */
void job_process_name(char *text, size_t size);
void job_host(char *text, size_t size);
/* Milliseconds since 1970 at which this was first asked in this process, or in this program, since exec keeps the pid.
 */
unsigned long long job_started(void);

#endif
