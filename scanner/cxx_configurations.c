/* What compile databases add to a file. It is always read with no macro from the command line (case contract, rule 6);
 * here it is read once more for each way in which a database compiles it, and the answers are put together:
 *
 * - A finding never goes away, whatever a database says: it may be stale.
 * - A branch that a command compiles is code: what is in it is judged as there. A call in it is rewritten only when all
 *   commands that compile it agree.
 * - A declaration that only the command's include folders, macros or forced headers bring into view proves the owner.
 * - Where a command makes something else of a name that would be rewritten, a person has to look. */
#include "scanner/cxx_front.h"

#include <stdlib.h>
#include <string.h>

static const char differs[] = "as the compile database has it, the name is another thing there; see which one is meant "
                              "and change it by hand";

static const char nowhere[] =
    "in a branch that no command of the compile database compiles, nor is it compiled without "
    "macros; change it by hand where that branch is built";

static bool inactive(const struct cxx_unit *unit, const struct cxx_use *use) {
  return unit->tokens.list[use->token].flags & CXX_INACTIVE;
}

static void take(struct cxx_use *use, const struct cxx_use *from, const struct cxx_config *config) {
  uint32_t order = use->order;
  struct cxx_scope *scope = use->scope;
  *use = *from;
  use->compiled = config;
  use->order = order;
  use->scope = scope; /* of the unit that stays */
  use->path = NULL;
}

static void merge(struct cxx_unit *unit, struct cxx_use *use, const struct cxx_unit *other,
                  const struct cxx_use *with) {
  bool branch = inactive(unit, use);
  if (inactive(other, with))
    return;
  if (with->judged == CXX_OWNER_OTHER) {
    if (use->judged != CXX_OWNER_OTHER && !use->why) {
      use->why = differs;
      use->route = NULL;
    }
    return;
  }
  bool unknown = use->judged == CXX_OWNER_UNPROVEN && use->role == CXX_ROLE_CALL && use->why;
  if (use->judged == CXX_OWNER_OTHER) {
    take(use, with, branch ? other->config : NULL);
    use->why = with->why ? with->why : differs;
    use->route = NULL;
  } else if ((branch && !use->compiled) || (!branch && unknown && !with->why)) {
    take(use, with, branch ? other->config : NULL);
  } else if (!use->why && with->why) {
    use->why = with->why;
    use->route = NULL;
  }
}

static void add_use(struct cxx_unit *unit, const struct cxx_use *from, const struct cxx_config *config) {
  if (from->judged == CXX_OWNER_OTHER || unit->uses_count >= CXX_MOST_USES)
    return;
  if (unit->uses_count == unit->uses_capacity) {
    unit->uses_capacity = unit->uses_capacity ? 2 * unit->uses_capacity : 16;
    unit->uses = scan_alloc(unit->uses, unit->uses_capacity * sizeof *unit->uses);
  }
  struct cxx_use *use = &unit->uses[unit->uses_count++];
  *use = (struct cxx_use){.scope = unit->global};
  take(use, from, config);
  use->why = from->why ? from->why : differs;
  use->route = NULL;
}

void cxx_configurations_read(struct cxx_unit *unit) {
  const struct cxx_config *configs[CXX_MOST_CONFIGS];
  unsigned count = unit->uses_count == 0 || unit->tokens.conflict
                       ? 0
                       : cxx_database_configs(unit->scan, cxx_index_database(unit->scan), unit->file, configs);
  uint32_t *numbers = count ? scan_alloc(NULL, unit->tokens.count * sizeof *numbers) : NULL;
  struct cxx_unit *other = count ? scan_alloc(NULL, sizeof *other) : NULL;
  for (unsigned i = 0; i < count; i++) {
    memset(numbers, 0, unit->tokens.count * sizeof *numbers);
    for (uint32_t k = 0; k < unit->uses_count; k++)
      numbers[unit->uses[k].token] = k + 1;
    cxx_unit_open(other, unit->scan, unit->file, configs[i]);
    cxx_uses_judge(other);
    for (uint32_t k = 0; k < other->uses_count; k++) {
      const struct cxx_use *with = &other->uses[k];
      uint32_t number = numbers[with->token];
      if (number)
        merge(unit, &unit->uses[number - 1], other, with);
      else
        add_use(unit, with, inactive(unit, with) ? configs[i] : NULL);
    }
    cxx_unit_free(other);
  }
  for (uint32_t k = 0; k < unit->uses_count && count; k++)
    if (inactive(unit, &unit->uses[k]) && !unit->uses[k].compiled && unit->uses[k].why)
      unit->uses[k].why = nowhere;
  free(other);
  free(numbers);
}
