/* Writes the pages of what changed of names that stay: one for each release (changes-RELEASE.md) and their index
 * (changes.md). */
#include "catalog/catalog_private.h"

#include <string.h>

static const char *face_of(const struct catalog_change *change) {
  static const char *const faces[] = {
      [CATALOG_CHANGED_CXX] = "C++ function",       [CATALOG_CHANGED_DISTRIBUTION] = "wheel",
      [CATALOG_CHANGED_MODULE] = "module",          [CATALOG_CHANGED_OPERATOR] = "torch operator",
      [CATALOG_CHANGED_PYTHON] = "Python function",
  };
  return faces[change->what];
}

static const char *meets(const struct catalog_change *change) {
  static const char *const texts[] = {
      [CATALOG_BREAKS_CALLS] = "old calls fail, or their arguments mean something else",
      [CATALOG_BREAKS_LINK] = "what was compiled against the old release does not load",
      [CATALOG_BREAKS_RESULT] = "old calls return another type",
      [CATALOG_BREAKS_SILENT] = "old calls are taken and do something else",
      [CATALOG_BREAKS_DEFAULT] = "what old calls leave out has another value",
      [CATALOG_BREAKS_IMPORT] = "the name is another",
      [CATALOG_BREAKS_NOTHING] = "every old call fits",
  };
  return texts[change->breaks];
}

static bool is_change_of(const struct catalog_symbol *symbol, const struct catalog_change *change) {
  switch (change->what) {
  case CATALOG_CHANGED_CXX:
    return strcmp(change->name, symbol->cxx.name) == 0;
  case CATALOG_CHANGED_OPERATOR:
    return strcmp(change->name, symbol->op_name) == 0;
  case CATALOG_CHANGED_PYTHON:
    return symbol->python_count && strcmp(change->name, symbol->python[0].name) == 0;
  default:
    return false;
  }
}

void catalog_docs_changes_of(FILE *out, const struct catalog *catalog, const struct catalog_symbol *symbol) {
  bool any = false;
  for (unsigned r = 0; r < catalog->library.releases_count; r++)
    for (unsigned i = 0; i < catalog->changes_count; i++) {
      const struct catalog_change *change = &catalog->changes[i];
      if (strcmp(change->release, catalog->library.releases[r]) != 0 || !is_change_of(symbol, change))
        continue;
      fprintf(out, "%s- [%s](changes-%s.md), %s: ", any ? "" : "\n## What changed of it\n\n", change->release,
              change->release, face_of(change));
      catalog_markdown(out, change->reason);
      fputc('\n', out);
      any = true;
    }
}

static void write_change(FILE *out, const struct catalog_change *change) {
  bool python = change->what == CATALOG_CHANGED_PYTHON;
  const char *name = python ? change->name : "";
  const char *language = python ? "python" : change->what == CATALOG_CHANGED_CXX ? "cpp" : "";
  fprintf(out, "\n## `%s`, %s", change->name, face_of(change));
  for (unsigned i = 0; i < change->platforms_count; i++)
    fprintf(out, "%s%s", i ? ", " : " on ", catalog_platform_title(change->platforms[i]));
  fputs("\n\n", out);
  catalog_markdown(out, change->reason);
  fprintf(out, " *%c%s.*", meets(change)[0] - 'a' + 'A', meets(change) + 1);
  if (change->change)
    fprintf(out, " Change %s%s%s.", change->change, change->date ? " of " : "", change->date ? change->date : "");
  fputc('\n', out);
  if (strcmp(change->before, change->after) != 0) {
    fprintf(out, "\nbefore:\n\n```%s\n%s%s\n```\n\nafter:\n\n", language, name, change->before);
    if (*change->after)
      fprintf(out, "```%s\n%s%s\n```\n", language, name, change->after);
    else
      fputs("nothing\n", out);
  } else {
    fprintf(out, "\nbefore and after:\n\n```%s\n%s%s\n```\n", language, name, change->after);
  }
  if (*change->remedy) {
    fputs("\nWhat to do: ", out);
    catalog_markdown(out, change->remedy);
    fputs(".\n", out);
  }
  fputs("\nSources: ", out);
  for (unsigned i = 0; i < change->provenance_count; i++) {
    fputs(i ? "; " : "", out);
    catalog_markdown(out, change->provenance[i]);
  }
  fputs(".\n", out);
}

unsigned catalog_docs_release(FILE *out, const struct catalog *catalog, const char *release) {
  unsigned count = 0, breaking = 0;
  for (unsigned i = 0; i < catalog->changes_count; i++)
    if (strcmp(catalog->changes[i].release, release) == 0) {
      count++;
      breaking += catalog->changes[i].breaks != CATALOG_BREAKS_NOTHING;
    }
  if (!out || !count)
    return count;
  catalog_docs_banner(out);
  fprintf(
      out,
      "# What changed in %s\n\nOf names that stay: %u, of which %u can break a caller. "
      "`sgl-migrate scan --changed` finds the calls. [All releases](changes.md), [the names that left](README.md).\n",
      release, count, breaking);
  for (unsigned i = 0; i < catalog->changes_count; i++)
    if (strcmp(catalog->changes[i].release, release) == 0)
      write_change(out, &catalog->changes[i]);
  return count;
}

void catalog_docs_changes(FILE *out, const struct catalog *catalog) {
  catalog_docs_banner(out);
  fprintf(out,
          "# What changed of names that stay\n\nA name that stays can break its callers too: a page for each release, "
          "%u changes in all. `sgl-migrate scan --changed` finds the calls. [The names that left](README.md).\n\n"
          "| release | can break callers | breaks nothing |\n|---|---|---|\n",
          catalog->changes_count);
  for (unsigned r = catalog->library.releases_count; r-- > 0;) {
    const char *release = catalog->library.releases[r];
    if (!catalog_docs_release(NULL, catalog, release))
      continue;
    fprintf(out, "| [%s](changes-%s.md) | ", release, release);
    for (int harmless = 0; harmless < 2; harmless++) {
      const char *last = "";
      for (unsigned i = 0; i < catalog->changes_count; i++) {
        const struct catalog_change *change = &catalog->changes[i];
        if (strcmp(change->release, release) != 0 || (change->breaks == CATALOG_BREAKS_NOTHING) != harmless)
          continue;
        fprintf(out, "%s`%s` (%s)", *last ? ", " : "", change->name, face_of(change));
        last = change->name;
      }
      fputs(harmless ? " |\n" : " | ", out);
    }
  }
}
