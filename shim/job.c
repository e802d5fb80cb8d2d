#include "shim/job.h"

#include <ctype.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *variable(const char *name) {
  const char *value = secure_getenv(name);
  return value && value[0] ? value : NULL;
}

/* What starts many processes of a job (torchrun, Slurm, kinds of MPI) numbers them. Some number those of one node only,
 * which come last here. */
const char *job_rank(void) {
  static const char *const variables[] = {"RANK",
                                          "SLURM_PROCID",
                                          "OMPI_COMM_WORLD_RANK",
                                          "PMIX_RANK",
                                          "PMI_RANK",
                                          "MV2_COMM_WORLD_RANK",
                                          "LOCAL_RANK",
                                          "SLURM_LOCALID",
                                          "OMPI_COMM_WORLD_LOCAL_RANK",
                                          "MPI_LOCALRANKID",
                                          "MV2_COMM_WORLD_LOCAL_RANK"};
  const char *rank = NULL;
  for (size_t i = 0; i < sizeof variables / sizeof variables[0] && !rank; i++)
    rank = variable(variables[i]);
  return rank;
}

bool job_is_first_rank(void) {
  const char *rank = job_rank();
  return !rank || strcmp(rank, "0") == 0;
}

void job_host(char *text, size_t size) {
  if (gethostname(text, size) != 0 || !text[0])
    snprintf(text, size, "unknown");
  text[size - 1] = '\0';
  for (char *c = text; *c; c++)
    if (!isalnum((unsigned char)*c) && *c != '.' && *c != '_')
      *c = '-';
}

char *job_path(const char *name) {
  char *made = NULL, *own = name[0] == '/' ? NULL : getcwd(NULL, 0);
  if (own && asprintf(&made, "%s/%s", own, name) < 0)
    made = NULL;
  else if (!own)
    made = strdup(name);
  free(own);
  return made;
}

/* The pid is kept beside the time: the child of a fork is another process. */
unsigned long long job_started(void) {
  enum { TIME_BITS = 42 };
  static _Atomic uint64_t known;
  uint64_t pid = (uint64_t)getpid(), seen = atomic_load(&known); /* pids have up to 22 bits */
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  uint64_t time = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000, made = pid << TIME_BITS | time;
  while (seen >> TIME_BITS != pid && !atomic_compare_exchange_weak(&known, &seen, made))
    ;
  return (seen >> TIME_BITS == pid ? seen : made) & ((UINT64_C(1) << TIME_BITS) - 1);
}

void job_process_name(char *text, size_t size) {
  char host[65];
  job_host(host, sizeof host);
  snprintf(text, size, "%s-%ld-%llu", host, (long)getpid(), job_started());
}

bool job_seed(char *text, size_t size) {
  static const char *const variables[] = {"SGL_KERNEL_COMPAT_JOB",
                                          "SLURM_JOB_ID",
                                          "TORCHELASTIC_RUN_ID",
                                          "PMIX_NAMESPACE",
                                          "PBS_JOBID",
                                          "LSB_JOBID",
                                          "FLUX_JOB_ID"};
  for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
    const char *value = variable(variables[i]);
    if (value && strcmp(value, "none") != 0) { /* torchrun's, when it was given no id */
      snprintf(text, size, "%s=%s", variables[i], value);
      return true;
    }
  }
  const char *address = variable("MASTER_ADDR"), *port = variable("MASTER_PORT");
  if (address && port) {
    snprintf(text, size, "MASTER_ADDR=%s:%s", address, port);
    return true;
  }
  return false;
}
