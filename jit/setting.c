/* A setting: an enumeration whose first value an environment variable names, and which a function may set. */
#include "internal.h"
#include <stdlib.h>
#include <string.h>

int jit_setting_first(atomic_int *setting, const char *variable, const char *const names[], int count, int unset) {
  const char *text = secure_getenv(variable);
  int value = JIT_SETTING_UNREAD, found = !text || !*text ? unset : JIT_SETTING_INVALID;
  for (int i = 0; text && i < count; i++)
    if (strcmp(text, names[i]) == 0)
      found = i;
  return atomic_compare_exchange_strong(setting, &value, found) ? found : value; /* else the function was faster */
}
