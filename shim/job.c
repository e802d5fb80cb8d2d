#include "shim/job.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

/* Field 22 of /proc/self/stat; 0 where that cannot be read. The name in field 2 may have blanks and brackets. */
unsigned long long job_started(void) {
  char text[1024];
  int file = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
  ssize_t length = file >= 0 ? read(file, text, sizeof text - 1) : -1;
  if (file >= 0)
    close(file);
  text[length > 0 ? length : 0] = '\0';
  char *at = strrchr(text, ')');
  for (int field = 2; at && field < 22; field++)
    at = strchr(at + 1, ' ');
  return at ? strtoull(at, NULL, 10) : 0;
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
