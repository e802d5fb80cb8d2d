#include "shim/policy.h"

#include <time.h>

int policy_today(void) {
  time_t now = time(NULL);
  struct tm utc;
  return gmtime_r(&now, &utc) ? (utc.tm_year + 1900) * 10000 + (utc.tm_mon + 1) * 100 + utc.tm_mday : 0;
}
