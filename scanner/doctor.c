/* One run of the doctor: the order of its parts, and what they share. */
#include "scanner/doctor.h"

#include <ctype.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "scanner/file.h"

#define LIST_SHOWN 5
#define LARGEST_SOURCE ((size_t)1 << 20)

void doctor_say(struct doctor *doctor, enum doctor_level level, const char *id, char *remedy, const char *format, ...) {
  if (doctor->facts_count == doctor->facts_capacity) {
    doctor->facts_capacity = doctor->facts_capacity ? 2 * doctor->facts_capacity : 32;
    doctor->facts = scan_alloc(doctor->facts, doctor->facts_capacity * sizeof *doctor->facts);
  }
  va_list list;
  va_start(list, format);
  doctor->facts[doctor->facts_count++] = (struct doctor_fact){level, id, scan_format_list(format, list), remedy};
  va_end(list);
}

void doctor_list_add(struct doctor_list *list, const char *word) {
  if (list->count++ >= LIST_SHOWN && !list->whole)
    return;
  char *longer = scan_format("%s%s%s", list->text ? list->text : "", list->text ? ", " : "", word);
  free(list->text);
  list->text = longer;
}

char *doctor_list_take(struct doctor_list *list) {
  char *text = list->count > LIST_SHOWN && !list->whole
                   ? scan_format("%s and %zu more", list->text, list->count - LIST_SHOWN)
                   : scan_format("%s", list->text ? list->text : "");
  free(list->text);
  *list = (struct doctor_list){0};
  return text;
}

bool doctor_exists(const char *path) {
  struct stat status;
  return stat(path, &status) == 0;
}

static int by_name(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

char **doctor_names_in(const char *folder, const char *ending, size_t *count) {
  DIR *open = opendir(folder);
  char **names = NULL;
  *count = 0;
  for (struct dirent *entry; open && (entry = readdir(open));) {
    size_t length = strlen(entry->d_name), size = strlen(ending);
    if (length < size || strcmp(entry->d_name + length - size, ending) != 0)
      continue;
    names = scan_alloc(names, (*count + 1) * sizeof *names);
    names[(*count)++] = scan_format("%s", entry->d_name);
  }
  if (open)
    closedir(open);
  if (*count)
    qsort(names, *count, sizeof *names, by_name);
  return names;
}

char *doctor_python_value(const char *path, const char *name) {
  char message[256], *value = NULL;
  size_t size, length = strlen(name);
  char *text = file_read(path, LARGEST_SOURCE, &size, message, sizeof message);
  for (const char *line = text; line && *line && !value; line += strcspn(line, "\n"), line += *line == '\n') {
    if (strncmp(line, name, length) != 0 || isalnum((unsigned char)line[length]) || line[length] == '_')
      continue;
    const char *end = line + strcspn(line, "\n"), *equals = memchr(line, '=', (size_t)(end - line));
    const char *start = equals ? equals + 1 : end;
    while (start < end && *start == ' ')
      start++;
    const char *close =
        start < end && (*start == '\'' || *start == '"') ? memchr(start + 1, *start, (size_t)(end - start - 1)) : NULL;
    if (close)
      value = scan_format("%.*s", (int)(close - start - 1), start + 1);
  }
  free(text);
  return value;
}

static char folded(char c) {
  return c == '_' || c == '.' ? '-' : (char)tolower((unsigned char)c);
}

bool doctor_same_name(const char *a, const char *b) {
  for (; *a && folded(*a) == folded(*b); a++)
    b++;
  return !*a && !*b;
}

/* --- the run ------------------------------------------------------------------------------------------------------ */

static void say_environment(struct doctor *doctor) {
  struct doctor_list folders = {0};
  for (size_t i = 0; i < doctor->sites_count; i++)
    doctor_list_add(&folders, doctor->sites[i].path);
  char *list = doctor_list_take(&folders);
  doctor_say(doctor, DOCTOR_FACT, "environment", NULL, "%s%s%s; imports come from %s", doctor->how,
             doctor->prefix ? ": " : "", doctor->prefix ? doctor->prefix : "", list);
  free(list);
}

/* Problems first, each group in the order in which it was found. */
static void sort_facts(struct doctor *doctor) {
  struct doctor_fact *sorted = scan_alloc(NULL, doctor->facts_count * sizeof *sorted);
  size_t count = 0;
  for (int level = DOCTOR_PROBLEM; level <= DOCTOR_FACT; level++)
    for (size_t i = 0; i < doctor->facts_count; i++)
      if (doctor->facts[i].level == (enum doctor_level)level)
        sorted[count++] = doctor->facts[i];
  free(doctor->facts);
  doctor->facts = sorted;
  doctor->facts_capacity = doctor->facts_count;
}

bool doctor_run(struct doctor *doctor, unsigned threads, char *message, size_t message_size) {
  if (!doctor_find_environment(doctor, message, message_size))
    return false;
  say_environment(doctor);
  doctor_read_packages(doctor);
  if (!doctor_audit(doctor, threads, message, message_size))
    return false;
  doctor_check_packages(doctor);
  doctor_check_machine(doctor);
  doctor_check_shim(doctor);
  doctor_check_binaries(doctor);
  doctor_check_nvrtc(doctor);
  if (doctor->import)
    doctor_import(doctor);
  doctor_find_names(doctor);
  sort_facts(doctor);
  return true;
}

void doctor_free(struct doctor *doctor) {
  for (size_t i = 0; i < doctor->sites_count; i++)
    free(doctor->sites[i].path);
  for (size_t i = 0; i < doctor->packages_count; i++) {
    struct doctor_package *package = &doctor->packages[i];
    free(package->name);
    free(package->version);
    free(package->info);
    free(package->source);
    dist_info_free_record(&package->record);
  }
  for (size_t i = 0; i < doctor->facts_count; i++) {
    free(doctor->facts[i].text);
    free(doctor->facts[i].remedy);
  }
  for (size_t i = 0; i < doctor->names_count; i++)
    free(doctor->names[i].instead);
  free(doctor->sites);
  free(doctor->packages);
  free(doctor->facts);
  free(doctor->names);
  free(doctor->prefix);
  free(doctor->python);
  free(doctor->kernel_version);
  free(doctor->package_folder);
  free(doctor->torch_cuda);
  free(doctor->torch_hip);
  free(doctor->driver);
  free(doctor->driver_library);
  json_decref(doctor->imported);
  audit_free(&doctor->run);
  audit_names_free(doctor->context.names);
}
