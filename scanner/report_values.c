/* Values that the machine-readable forms share, and the texts of the catalog for people. */
#include "scanner/report.h"

#include <stdlib.h>
#include <string.h>

/* RFC 3986: everything but unreserved characters and the slash is percent-encoded, byte by byte. */
char *report_uri(const char *prefix, const char *path, const char *suffix) {
  char *uri = scan_alloc(NULL, strlen(prefix) + 3 * strlen(path) + strlen(suffix) + 1);
  char *out = stpcpy(uri, prefix);
  for (const unsigned char *c = (const unsigned char *)path; *c; c++) {
    bool plain =
        (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') || strchr("-._~/", *c) != NULL;
    if (plain)
      *out++ = (char)*c;
    else
      out += sprintf(out, "%%%02X", *c);
  }
  strcpy(out, suffix);
  return uri;
}

json_t *report_value(const char *text, size_t size) {
  json_t *value = json_stringn(text, size);
  if (value)
    return value;
  char *copy = scan_alloc(NULL, 3 * size + 1), *out = copy;
  for (size_t at = 0; at < size;) {
    uint32_t c;
    size_t length = report_character((const uint8_t *)text + at, size - at, &c);
    out = c == UINT32_MAX ? stpcpy(out, "\xef\xbf\xbd") : (char *)mempcpy(out, text + at, length);
    at += length;
  }
  value = json_stringn(copy, (size_t)(out - copy));
  free(copy);
  return value;
}

/* Adds a line. */
static void append_text(char **text, const char *more) {
  char *longer = scan_format("%s%s%s", *text, **text ? "\n" : "", more);
  free(*text);
  *text = longer;
}

/* When each layer left. */
char *report_removals(const struct catalog_symbol *symbol) {
  char *text = scan_format("%s", symbol->summary);
  for (unsigned i = 0; i < symbol->removals_count; i++) {
    const struct catalog_removal *removal = &symbol->removals[i];
    const char *layer = catalog_layer_title(removal->layer), *platform = catalog_platform_title(removal->platform);
    char *line = !*removal->last_with     ? scan_format("%s (%s): still there.", layer, platform)
                 : removal->first_without ? scan_format("%s (%s): last in %s, gone from %s.", layer, platform,
                                                        removal->last_with, removal->first_without)
                                          : scan_format("%s (%s): last in %s.", layer, platform, removal->last_with);
    append_text(&text, line);
    free(line);
  }
  return text;
}

/* What to use instead, and what to watch. */
char *report_help(const struct catalog_symbol *symbol) {
  char *text = scan_format("%s", "");
  for (unsigned i = 0; i < symbol->routes_count; i++) {
    const struct catalog_route *route = &symbol->routes[i];
    char *line;
    if (route->kind == CATALOG_ROUTE_NONE)
      line = scan_format("No replacement.");
    else if (route->kind == CATALOG_ROUTE_SGLANG)
      line = scan_format("Replacement in sglang %s%s%s: %s.%s.", route->from ? route->from : "",
                         route->until ? " up to but not including " : " and newer", route->until ? route->until : "",
                         route->module, route->name);
    else
      line = scan_format("Replacement: %s.%s.", route->module, route->name);
    if (*route->note) {
      char *with_note = scan_format("%s Note: %s", line, route->note);
      free(line);
      line = with_note;
    }
    append_text(&text, line);
    free(line);
  }
  for (unsigned i = 0; i < symbol->traps_count; i++) {
    char *line = scan_format("Mind: %s", symbol->traps[i]);
    append_text(&text, line);
    free(line);
  }
  if (!*text)
    append_text(&text, "No replacement is known.");
  return text;
}
