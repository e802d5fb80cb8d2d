#include "shim/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What starts many processes of a job (torchrun, Slurm, kinds of MPI) numbers them: one of them is enough. Some number
 * those of one node only, which come last here. */
bool job_is_first_rank(void) {
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
  for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
    const char *rank = getenv(variables[i]);
    if (rank && rank[0])
      return strcmp(rank, "0") == 0;
  }
  return true;
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
    const char *value = secure_getenv(variables[i]);
    if (value && value[0] && strcmp(value, "none") != 0) { /* torchrun's, when it was given no id */
      snprintf(text, size, "%s=%s", variables[i], value);
      return true;
    }
  }
  const char *address = secure_getenv("MASTER_ADDR"), *port = secure_getenv("MASTER_PORT");
  if (address && address[0] && port && port[0]) {
    snprintf(text, size, "MASTER_ADDR=%s:%s", address, port);
    return true;
  }
  return false;
}
