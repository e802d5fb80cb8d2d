#include "shim/stage.h"

#include "shim/warn.h"

#include <stdio.h>

bool stage_call(sgl_compat_call call, unsigned symbol, uint8_t policy, struct usage_site *site, const void *address,
                char *message, size_t message_size) {
  sgl_compat_stage stage = policy_stage(policy);
  if (stage == SGL_COMPAT_STAGE_SILENT)
    return true;
  if (stage == SGL_COMPAT_STAGE_WARN)
    return warn_call(call, symbol, site, address, message, message_size);
  char text[SERVE_MESSAGE];
  const char *advice;
  warn_text(call, symbol, text, sizeof text, &advice);
  snprintf(message, message_size, "%s; its stage is %s (%s)", text, policy_stage_name(stage),
           policy_facts(symbol).from);
  return false;
}

void stage_no_library(enum serve_kernel kernel, char *message, size_t message_size) {
  snprintf(message, message_size,
           "%s: the policy serves it by an old library only (%s), and none is loaded that has it", serve_name(kernel),
           policy_facts(serve_symbol(kernel)).serve_from);
}
