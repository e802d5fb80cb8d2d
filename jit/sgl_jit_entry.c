/* The files of a cache folder: what each is, and what is wrong with it. */
#include "sgl_jit_tool.h"
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- the image --- */

/* What an ELF file of CUDA is. The machine is registered (EM_CUDA); the layout of the flags goes with the OS ABI byte,
 * as read off the cubins of NVRTC 12.4 (0x33) and 13.0 (0x41). */
enum { MACHINE_CUDA = 190, OS_ABI_CUDA_12 = 0x33, OS_ABI_CUDA_13 = 0x41 };

static bool has_section(Elf *elf, size_t names, const char *wanted) {
  for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section)) != NULL;) {
    GElf_Shdr header;
    const char *name = gelf_getshdr(section, &header) ? elf_strptr(elf, names, header.sh_name) : NULL;
    if (name && strcmp(name, wanted) == 0 && header.sh_size > 0)
      return true;
  }
  return false;
}

static bool check_elf(Elf *elf, const struct tool_entry *entry, const struct jit_plan *plan, char *why, size_t size) {
  GElf_Ehdr header;
  size_t names;
  if (elf_kind(elf) != ELF_K_ELF || !gelf_getehdr(elf, &header) || elf_getshdrstrndx(elf, &names) != 0)
    return snprintf(why, size, "the image is no ELF file"), false;
  if (header.e_machine != MACHINE_CUDA)
    return snprintf(why, size, "the image is code for another machine (ELF machine %d, CUDA is %d)",
                    (int)header.e_machine, MACHINE_CUDA),
           false;
  int abi = header.e_ident[EI_OSABI];
  int number = abi == OS_ABI_CUDA_13   ? (int)(header.e_flags >> 8 & 0xff)
               : abi == OS_ABI_CUDA_12 ? (int)(header.e_flags & 0xff)
                                       : 0;
  int wanted = jit_target_capability(entry->target);
  if (number && number != wanted)
    return snprintf(why, size, "the image is code for sm_%d, not for %s", number, entry->target), false;
  for (int i = 0; i < plan->path_count; i++) {
    char section[128];
    snprintf(section, sizeof section, ".text.%s", plan->paths[i].entry);
    if (!has_section(elf, names, section))
      return snprintf(why, size, "the image has no entry point %s", plan->paths[i].entry), false;
  }
  return true;
}

static bool check_ptx(const struct jit_image *image, const struct jit_plan *plan, char *why, size_t size) {
  const char *text = image->data;
  if (!memchr(text, '\0', image->size) || !strstr(text, ".version"))
    return snprintf(why, size, "the image is no PTX"), false;
  for (int i = 0; i < plan->path_count; i++) {
    char entry[128];
    snprintf(entry, sizeof entry, ".entry %s", plan->paths[i].entry);
    if (!strstr(text, entry))
      return snprintf(why, size, "the image has no entry point %s", plan->paths[i].entry), false;
  }
  return true;
}

static bool check_image(const struct jit_image *image, const struct tool_entry *entry, char *why, size_t size) {
  struct jit_plan plan;
  struct jit_target target;
  snprintf(target.name, sizeof target.name, "%s", entry->target);
  jit_spec_plan(&entry->spec, &target, SGL_JIT_PDL_OFF, &plan); /* entry points are the same in all modes */
  if (strncmp(entry->target, "compute_", 8) == 0)
    return check_ptx(image, &plan, why, size);
  elf_version(EV_CURRENT);
  Elf *elf = elf_memory(image->data, image->size);
  bool good = elf ? check_elf(elf, entry, &plan, why, size) : (snprintf(why, size, "the image is no ELF file"), false);
  elf_end(elf);
  return good;
}

/* --- an entry --- */

/* What the key says, and whether this library would look for it. */
static void read_key(const struct jit_entry *content, struct tool_entry *entry) {
  char kernel[128], target[sizeof entry->target];
  struct jit_target named;
  struct jit_message quiet = {NULL, 0, NULL};
  sgl_jit_kernel_spec spec;
  if (!jit_key_field(content->key, "kernel", kernel, sizeof kernel) ||
      !jit_key_field(content->key, "target", target, sizeof target) ||
      jit_spec_parse(kernel, &spec, quiet) != SGL_JIT_OK) {
    entry->state = STATE_OTHER;
    snprintf(entry->reason, sizeof entry->reason, "its key names no kernel that this version has");
    return;
  }
  entry->spec = spec;
  snprintf(entry->target, sizeof entry->target, "%s", target);
  snprintf(named.name, sizeof named.name, "%s", target);
  static const char *const modes[] = {"off", "on", "no-prefetch"}; /* by sgl_jit_pdl */
  for (int pdl = SGL_JIT_PDL_OFF; pdl <= SGL_JIT_PDL_NO_PREFETCH && !*entry->pdl; pdl++)
    if (strcmp(jit_cache_key(&spec, &named, (sgl_jit_pdl)pdl).text, content->key) == 0)
      entry->pdl = modes[pdl];
  if (!*entry->pdl) {
    entry->state = STATE_OTHER;
    snprintf(entry->reason, sizeof entry->reason, "made by a version of the library with other kernels");
  } else if (!check_image(&content->image, entry, entry->reason, sizeof entry->reason)) {
    entry->state = STATE_BAD;
  }
}

static void read_entry(const struct tool_folder *folder, const struct jit_file *file, struct tool_entry *entry) {
  struct jit_entry content;
  const struct stat *s = &file->stat;
  *entry = (struct tool_entry){.state = STATE_OK,
                               .spec = {.op = (sgl_jit_op)-1},
                               .pdl = "",
                               .bytes = S_ISREG(s->st_mode) ? (uint64_t)s->st_size : 0,
                               .ours = S_ISREG(s->st_mode) && s->st_uid == geteuid(),
                               .written = s->st_mtime};
  snprintf(entry->name, sizeof entry->name, "%s", file->name);
  if (s->st_atim.tv_sec > s->st_mtim.tv_sec ||
      (s->st_atim.tv_sec == s->st_mtim.tv_sec && s->st_atim.tv_nsec > s->st_mtim.tv_nsec))
    entry->used = s->st_atime;
  enum jit_entry_fault fault = jit_entry_read(&folder->folder, folder->opened, file->name, &content);
  if (fault != JIT_ENTRY_GOOD) {
    entry->state = STATE_BAD;
    snprintf(entry->reason, sizeof entry->reason, "%s", jit_entry_fault_text(fault));
  } else {
    read_key(&content, entry);
    jit_entry_free(&content);
  }
}

/* --- a folder --- */

static int by_name(const void *a, const void *b) {
  return strcmp(((const struct tool_entry *)a)->name, ((const struct tool_entry *)b)->name);
}

static int by_file_name(const void *a, const void *b) {
  return strcmp(((const struct jit_file *)a)->name, ((const struct jit_file *)b)->name);
}

void tool_open_folder(enum jit_folder_kind kind, struct tool_folder *folder) {
  struct jit_file file;
  *folder = (struct tool_folder){.opened = -1};
  jit_folder_find(kind, &folder->folder);
  folder->folder.unnoticed = true;
  folder->opened = jit_folder_open(&folder->folder, false);
  DIR *list = folder->opened >= 0 ? jit_folder_list(folder->opened) : NULL;
  while (list && jit_folder_next(list, &file))
    if (file.kind == JIT_FILE_ENTRY) {
      folder->entries = tool_realloc(folder->entries, (folder->count + 1) * sizeof *folder->entries);
      read_entry(folder, &file, &folder->entries[folder->count]);
      folder->bytes += folder->entries[folder->count++].bytes;
    } else {
      folder->others = tool_realloc(folder->others, (folder->others_count + 1) * sizeof *folder->others);
      folder->others[folder->others_count++] = file;
    }
  if (list)
    closedir(list);
  if (folder->count)
    qsort(folder->entries, folder->count, sizeof *folder->entries, by_name);
  if (folder->others_count)
    qsort(folder->others, folder->others_count, sizeof *folder->others, by_file_name);
}

void tool_close_folder(struct tool_folder *folder) {
  if (folder->opened >= 0)
    close(folder->opened);
  free(folder->entries);
  free(folder->others);
}

const char *tool_folder_kind(const struct tool_folder *folder) {
  return folder->folder.kind == JIT_FOLDER_CACHE ? "cache" : "prebuilt";
}

void tool_print_folder(const struct tool_folder *folder) {
  const struct jit_folder *f = &folder->folder;
  tool_print(tool_folder_kind(folder), TOOL_PLAIN, 13);
  if (f->path[0]) {
    tool_print(f->path, TOOL_PLAIN, 0);
    printf(" (%s): ", f->source);
  }
  if (folder->opened >= 0)
    printf("%zu kernel%s, %s\n", folder->count, folder->count == 1 ? "" : "s", tool_size(folder->bytes).text);
  else if (f->problem[0])
    tool_print(f->path[0] ? "not used: " : "none: ", TOOL_RED, 0), tool_print(f->problem, TOOL_RED, 0), putchar('\n');
  else
    puts(f->kind == JIT_FOLDER_CACHE ? "not there yet" : "not there");
}

json_t *tool_folder_json(const struct tool_folder *folder) {
  const struct jit_folder *f = &folder->folder;
  json_t *value = json_object();
  json_object_set_new(value, "kind", tool_json(tool_folder_kind(folder)));
  json_object_set_new(value, "path", tool_json(f->path[0] ? f->path : NULL));
  json_object_set_new(value, "source", tool_json(f->source[0] ? f->source : NULL));
  json_object_set_new(value, "used", json_boolean(folder->opened >= 0));
  json_object_set_new(value, "problem", tool_json(f->problem[0] ? f->problem : NULL));
  json_object_set_new(value, "kernels", json_integer((json_int_t)folder->count));
  json_object_set_new(value, "bytes", json_integer((json_int_t)folder->bytes));
  return value;
}

const char *tool_state_name(enum tool_state state) {
  return state == STATE_OK ? "ok" : state == STATE_OTHER ? "other" : "bad";
}
