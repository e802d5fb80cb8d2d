#include "shim/job.h"

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
