/* Facts of the whole tree that one file cannot show. Built once, read by all workers. */
#include "scanner/cache.h"
#include "scanner/crew.h"
#include "scanner/cxx_facts.h"
#include "scanner/cxx_front.h"
#include "scanner/load.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 4096
/* Bytes of units that are kept; what is in memory for them is a few times that. */
#define MOST_KEPT ((size_t)4 << 20)

/* A set of words, or a map of words to numbers. */
struct entry {
  struct entry *next;
  struct cxx_string word;
  size_t value;
  atomic_uchar answer; /* of a macro: see ask_macro */
};

struct table {
  struct entry *buckets[BUCKETS];
  struct word_filter filter;
};

struct cxx_index {
  struct arena arena;
  struct cxx_name *names;
  int names_count;
  struct table words;               /* of names, to their number */
  struct cxx_signature *signatures; /* one a catalog symbol */
  struct table headers;             /* base names, to the file's number; one entry a file */
  struct table includers;           /* base names in #include lines, to the file's number; one entry a file and name */
  struct table macros;              /* function-like macros, to the number of a file that may define it */
  struct table registrars;          /* functions that register operators in the library's namespace */
  bool *defined;                    /* one a catalog symbol */
  bool *renamed, *elsewhere;        /* one a name */
  char *wheel_header, *jit_header;
  struct cxx_database *database;
  bool database_opened;
  struct cxx_readers readers;
  _Atomic(struct cxx_tokens *) *tokens; /* one a file of the scan: what was lexed already */
  struct cxx_unit **units;              /* one a file: read for its definitions, kept for its analysis */
  atomic_size_t units_size;             /* of their texts */
  size_t files_count;
  /* While it is built: */
  size_t *hits, *unknown; /* the files with a hit, and those without facts; the largest first */
  size_t hits_count;
  bool *candidates;                    /* one a file: may it define a function of the catalog? */
  pthread_mutex_t mutex, loader_mutex; /* of `defined` and `elsewhere`; of files that are read when they are wanted */
};

/* --- tables ------------------------------------------------------------------------------------------------------- */

static struct entry *find(const struct table *table, const uint8_t *word, size_t length) {
  if (!word_filter_may(&table->filter, word, length))
    return NULL;
  struct entry *entry = table->buckets[cxx_hash(word, length) % BUCKETS];
  while (entry && (entry->word.length != length || memcmp(entry->word.text, word, length) != 0))
    entry = entry->next;
  return entry;
}

static struct entry *add(struct cxx_index *index, struct table *table, const void *word, size_t length, size_t value) {
  struct entry **bucket = &table->buckets[cxx_hash(word, length) % BUCKETS];
  struct entry *entry = arena_alloc(&index->arena, sizeof *entry);
  *entry = (struct entry){.next = *bucket, .word = {word, (uint32_t)length}, .value = value};
  *bucket = entry;
  word_filter_add(&table->filter, word, length);
  return entry;
}

/* --- names -------------------------------------------------------------------------------------------------------- */

static void add_name(struct cxx_index *index, const char *kernel, const char *word, bool is_template,
                     const struct catalog_symbol *symbol) {
  if (!*word)
    return;
  const struct entry *known = find(&index->words, (const uint8_t *)word, strlen(word));
  if (!known) {
    known = add(index, &index->words, word, strlen(word), (size_t)index->names_count);
    struct cxx_name *name = &index->names[index->names_count++];
    *name = (struct cxx_name){.word = word, .length = (uint32_t)strlen(word), .is_template = is_template};
  }
  struct cxx_name *name = &index->names[known->value];
  const struct catalog_symbol **symbols =
      arena_alloc(&index->arena, (name->symbols_count + 1) * sizeof(const struct catalog_symbol *));
  for (unsigned i = 0; i < name->symbols_count; i++)
    symbols[i] = name->symbols[i];
  symbols[name->symbols_count++] = symbol;
  name->symbols = symbols;
  for (int platform = CATALOG_CUDA; platform <= CATALOG_CPU; platform++)
    name->removed =
        name->removed || catalog_is_removed(symbol, name->is_template ? CATALOG_LAYER_SOURCES : CATALOG_LAYER_CXX,
                                            (enum catalog_platform)platform, kernel);
}

static void build_names(struct scan *scan) {
  struct cxx_index *index = scan->cxx_index;
  const struct catalog *catalog = scan->catalog;
  size_t most = 0;
  for (unsigned i = 0; i < catalog->symbols_count; i++)
    most += 1 + catalog->symbols[i].cxx.templates_count;
  index->names = arena_alloc(&index->arena, most * sizeof *index->names);
  index->signatures = arena_alloc(&index->arena, catalog->symbols_count * sizeof *index->signatures);
  for (unsigned i = 0; i < catalog->symbols_count; i++) {
    const struct catalog_symbol *symbol = &catalog->symbols[i];
    add_name(index, scan->options.kernel, symbol->cxx.name, false, symbol);
    for (unsigned k = 0; k < symbol->cxx.templates_count; k++)
      add_name(index, scan->options.kernel, symbol->cxx.templates[k], true, symbol);
  }
  struct cxx_unit *unit = scan_alloc(NULL, sizeof *unit);
  *unit = (struct cxx_unit){.scan = scan};
  for (unsigned i = 0; i < catalog->symbols_count; i++) {
    const char *text = catalog->symbols[i].cxx.declaration;
    cxx_signature_read(unit, (const uint8_t *)text, strlen(text), &index->signatures[i]);
  }
  free(unit);
}

int cxx_index_find(const struct scan *scan, const uint8_t *text, size_t length) {
  const struct entry *entry = find(&scan->cxx_index->words, text, length);
  return entry ? (int)entry->value : -1;
}

const struct cxx_name *cxx_index_name(const struct scan *scan, int name) {
  return name >= 0 && name < scan->cxx_index->names_count ? &scan->cxx_index->names[name] : NULL;
}

const struct cxx_signature *cxx_index_signature(const struct scan *scan, const struct catalog_symbol *symbol) {
  return &scan->cxx_index->signatures[symbol - scan->catalog->symbols];
}

/* --- bytes and tokens
 * ------------------------------------------------------------------------------------------------------- */

bool cxx_index_load(const struct scan *scan, const struct source_file *file) {
  struct source_file *own = &scan->files[file - scan->files];
  cxx_asked(CXX_FACT_CONTENT, own->path, strlen(own->path));
  pthread_mutex_lock(&scan->cxx_index->loader_mutex);
  if (own->hit && own->known) {
    load_known(own);
  } else if (!own->hit && !own->bytes && own->result.coverage == COVERAGE_FULL) {
    load_bytes(own);
    own->moved = scan->cache && (own->bytes ? cache_hash(own->bytes, own->size) : 0) != own->hash;
  }
  bool there = own->bytes != NULL;
  pthread_mutex_unlock(&scan->cxx_index->loader_mutex);
  return there;
}

const struct cxx_tokens *cxx_index_tokens(const struct scan *scan, const struct source_file *file,
                                          struct cxx_tokens *own) {
  *own = (struct cxx_tokens){0};
  cxx_asked(CXX_FACT_CONTENT, file->path, strlen(file->path));
  if (file->bytes != file->first_bytes) { /* a fix gave it new ones */
    cxx_lex(own, file->bytes, file->size);
    return own;
  }
  _Atomic(struct cxx_tokens *) *slot = &scan->cxx_index->tokens[file - scan->files];
  struct cxx_tokens *known = atomic_load(slot);
  if (known)
    return known;
  struct cxx_tokens *tokens = scan_alloc(NULL, sizeof *tokens);
  cxx_lex(tokens, file->bytes, file->size);
  if (atomic_compare_exchange_strong(slot, &known, tokens))
    return tokens;
  cxx_tokens_free(tokens); /* another worker was faster */
  free(tokens);
  return known;
}

const struct cxx_tokens *cxx_index_first_tokens(const struct scan *scan, const struct source_file *file, size_t size,
                                                struct cxx_tokens *own) {
  *own = (struct cxx_tokens){0};
  cxx_asked(CXX_FACT_CONTENT, file->path, strlen(file->path));
  const struct cxx_tokens *known =
      file->bytes == file->first_bytes ? atomic_load(&scan->cxx_index->tokens[file - scan->files]) : NULL;
  if (known)
    return known;
  cxx_lex(own, file->bytes, size);
  return own;
}

struct cxx_unit *cxx_index_take_unit(const struct scan *scan, const struct source_file *file) {
  struct cxx_unit **slot = &scan->cxx_index->units[file - scan->files], *unit = *slot;
  if (file->bytes != file->first_bytes)
    return NULL;
  *slot = NULL;
  return unit;
}

/* --- stand-in headers ----------------------------------------------------------------------------------------------
 */

static void build_stand_ins(struct scan *scan) {
  struct cxx_index *index = scan->cxx_index;
  size_t wheel_size, jit_size;
  FILE *wheel = open_memstream(&index->wheel_header, &wheel_size);
  FILE *jit = open_memstream(&index->jit_header, &jit_size);
  if (!wheel || !jit) {
    fputs("sgl-migrate: out of memory\n", stderr);
    _Exit(EXIT_FAULT);
  }
  for (unsigned i = 0; i < scan->catalog->symbols_count; i++) {
    const struct catalog_symbol *symbol = &scan->catalog->symbols[i];
    const struct catalog_route *route = catalog_jit_route(symbol);
    if (!*symbol->cxx.declaration)
      continue;
    if (*symbol->cxx.scope)
      fprintf(wheel, "namespace %s { %s; }\n", symbol->cxx.scope, symbol->cxx.declaration);
    else
      fprintf(wheel, "%s;\n", symbol->cxx.declaration);
    if (route && route->cxx)
      fprintf(jit, "namespace sgl_kernel_jit { %s; }\n", symbol->cxx.declaration);
  }
  if (fclose(wheel) != 0 || fclose(jit) != 0) {
    fputs("sgl-migrate: out of memory\n", stderr);
    _Exit(EXIT_FAULT);
  }
}

const char *cxx_index_wheel_header(const struct scan *scan) {
  return scan->cxx_index->wheel_header;
}

const char *cxx_index_jit_header(const struct scan *scan) {
  return scan->cxx_index->jit_header;
}

/* --- headers of the tree -------------------------------------------------------------------------------------------
 */

static const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

static void build_headers(struct scan *scan) {
  struct cxx_index *index = scan->cxx_index;
  for (size_t i = scan->files_count; i-- > 0;) {
    const struct source_file *file = &scan->files[i];
    if (file->language == LANGUAGE_CXX)
      add(index, &index->headers, base_name(file->path), strlen(base_name(file->path)), i);
  }
}

/* Joins the folder of `from` and a relative path, and takes out "." and ".."; false when it leaves the root. */
static bool join(char *out, size_t size, const char *from, const char *path) {
  size_t used = (size_t)(base_name(from) - from);
  if (used + strlen(path) + 2 > size)
    return false;
  memcpy(out, from, used);
  while (*path) {
    size_t part = strcspn(path, "/");
    if (part == 2 && memcmp(path, "..", 2) == 0) {
      if (used == 0)
        return false;
      used--;
      while (used > 0 && out[used - 1] != '/')
        used--;
    } else if (part > 0 && !(part == 1 && *path == '.')) {
      memcpy(out + used, path, part);
      used += part;
      if (path[part] == '/')
        out[used++] = '/';
    }
    path += part;
    while (*path == '/')
      path++;
  }
  out[used] = '\0';
  return true;
}

static size_t common_folders(const char *a, const char *b) {
  size_t folders = 0;
  for (; *a && *a == *b; a++, b++)
    folders += *a == '/';
  return folders;
}

const struct source_file *cxx_index_header(const struct scan *scan, const struct source_file *from, const uint8_t *text,
                                           size_t length) {
  char path[4096], joined[4096];
  if (length == 0 || length >= sizeof path || memchr(text, '\0', length) || text[0] == '/')
    return NULL;
  memcpy(path, text, length);
  path[length] = '\0';
  cxx_asked(CXX_FACT_HEADER, base_name(path), strlen(base_name(path)));
  if (join(joined, sizeof joined, from->path, path)) {
    const struct source_file *beside = scan_file(scan, joined);
    if (beside && beside->language == LANGUAGE_CXX)
      return beside;
  }
  /* Include paths are not known: a file whose path ends so, the nearest one. */
  const char *end = path;
  while (strncmp(end, "../", 3) == 0 || strncmp(end, "./", 2) == 0)
    end = strchr(end, '/') + 1;
  const char *base = base_name(end);
  const struct source_file *best = NULL;
  for (const struct entry *entry = find(&scan->cxx_index->headers, (const uint8_t *)base, strlen(base)); entry;
       entry = entry->next) {
    const struct source_file *file = &scan->files[entry->value];
    size_t whole = strlen(file->path), wanted = strlen(end);
    if (strcmp(base_name(file->path), base) != 0 || whole < wanted || strcmp(file->path + whole - wanted, end) != 0 ||
        (whole > wanted && file->path[whole - wanted - 1] != '/'))
      continue;
    size_t near = common_folders(file->path, from->path), best_near = best ? common_folders(best->path, from->path) : 0;
    if (!best || near > best_near || (near == best_near && whole < strlen(best->path)))
      best = file;
  }
  return best;
}

/* --- who includes a header -----------------------------------------------------------------------------------------
 */

/* Every #include line of the file: cxx_index_includers finds out which are meant. */
static void add_includes(struct cxx_index *index, const struct source_file *file, size_t number) {
  for (const char *text = NULL; (text = cxx_facts_next(file->facts, text));)
    if (text[-1] == CXX_FACT_INCLUDE)
      add(index, &index->includers, text, strlen(text), number);
}

void cxx_index_includers(const struct scan *scan, const struct source_file *file,
                         bool (*visit)(void *user, const struct source_file *includer), void *user) {
  const char *base = base_name(file->path);
  size_t length = strlen(base), last = SIZE_MAX;
  cxx_asked(CXX_FACT_INCLUDE, base, length);
  for (const struct entry *entry = find(&scan->cxx_index->includers, (const uint8_t *)base, length); entry;
       entry = entry->next) {
    if (entry->word.length != length || memcmp(entry->word.text, base, length) != 0 || entry->value == last)
      continue;
    last = entry->value;
    const struct source_file *includer = &scan->files[entry->value];
    if (includer != file && !visit(user, includer))
      return;
  }
}

/* --- macros ------------------------------------------------------------------------------------------------------- */

const char *cxx_index_told(const struct scan *scan, const struct source_file *file) {
  struct source_file *own = &scan->files[file - scan->files];
  char *known = atomic_load(&own->told);
  if (known)
    return known;
  /* Who asks for a macro does not ask for the rest of the file. */
  struct cxx_keys *asking = cxx_asked_into(NULL);
  static const struct cxx_tokens none;
  struct cxx_tokens fixed;
  bool there = cxx_index_load(scan, own);
  char *told = cxx_told_read(scan, there ? cxx_index_tokens(scan, own, &fixed) : &none, own->hit);
  if (there)
    cxx_tokens_free(&fixed);
  cxx_asked_into(asking);
  if (atomic_compare_exchange_strong(&own->told, &known, told))
    return told;
  free(told); /* another worker was faster */
  return known;
}

/* The files that may define a function-like macro, by its name. */
static void add_macros(struct scan *scan, size_t number) {
  struct cxx_index *index = scan->cxx_index;
  const struct source_file *file = &scan->files[number];
  bool unclear = false;
  for (const char *text = NULL; (text = cxx_facts_next(file->facts, text));)
    if (text[-1] == CXX_FACT_MAYBE)
      add(index, &index->macros, text, strlen(text), number);
    else
      unclear = unclear || text[-1] == CXX_FACT_UNCLEAR;
  for (const char *text = NULL; unclear && (text = cxx_facts_next(cxx_index_told(scan, file), text));)
    if (text[-1] == CXX_FACT_MACRO || text[-1] == CXX_FACT_PASTES)
      add(index, &index->macros, text, strlen(text), number);
}

enum answer { ANSWER_UNKNOWN, ANSWER_NO, ANSWER_MACRO, ANSWER_PASTES };

/* What the tree has of a function-like macro with this name. All files that may have it are asked, so that each of them
 * has told what it knows, and a change there can be seen. */
static enum answer ask_macro(const struct scan *scan, const uint8_t *word, size_t length) {
  cxx_asked(CXX_FACT_MACRO, word, length);
  struct entry *first = find(&scan->cxx_index->macros, word, length);
  enum answer answer = first ? (enum answer)atomic_load(&first->answer) : ANSWER_NO;
  if (answer != ANSWER_UNKNOWN)
    return answer;
  answer = ANSWER_NO;
  for (const struct entry *entry = first; entry; entry = entry->next) {
    if (entry->word.length != length || memcmp(entry->word.text, word, length) != 0)
      continue;
    const char *told = cxx_index_told(scan, &scan->files[entry->value]);
    for (const char *text = NULL; (text = cxx_facts_next(told, text));)
      if ((text[-1] == CXX_FACT_MACRO || text[-1] == CXX_FACT_PASTES) && strlen(text) == length &&
          memcmp(text, word, length) == 0)
        answer = text[-1] == CXX_FACT_PASTES || answer == ANSWER_PASTES ? ANSWER_PASTES : ANSWER_MACRO;
  }
  atomic_store(&first->answer, (unsigned char)answer);
  return answer;
}

bool cxx_index_macro(const struct scan *scan, const uint8_t *text, size_t length) {
  return ask_macro(scan, text, length) != ANSWER_NO;
}

bool cxx_index_pastes(const struct scan *scan, const uint8_t *text, size_t length) {
  return ask_macro(scan, text, length) == ANSWER_PASTES;
}

/* --- what the files with a hit say ---------------------------------------------------------------------------------
 */

static void mark_name(const struct scan *scan, bool *names, const char *word) {
  int name = cxx_index_find(scan, (const uint8_t *)word, strlen(word));
  if (name >= 0)
    names[name] = true;
}

static void add_told(struct scan *scan, size_t number) {
  struct cxx_index *index = scan->cxx_index;
  const char *told = cxx_index_told(scan, &scan->files[number]);
  for (const char *text = NULL; (text = cxx_facts_next(told, text));)
    switch (text[-1]) {
    case CXX_FACT_REGISTRAR:
      add(index, &index->registrars, text, strlen(text), 0);
      break;
    case CXX_FACT_RENAMED:
      mark_name(scan, index->renamed, text);
      break;
    case CXX_FACT_CANDIDATE:
      index->candidates[number] = true;
      break;
    default:
      break;
    }
}

/* What an earlier scan knows of the file's definitions. */
static void add_defined(struct scan *scan, const struct source_file *file) {
  struct cxx_index *index = scan->cxx_index;
  for (const char *text = NULL; (text = cxx_facts_next(file->defines, text));) {
    if (text[-1] == CXX_FACT_ELSEWHERE)
      mark_name(scan, index->elsewhere, text);
    for (unsigned i = 0; text[-1] == CXX_FACT_FUNCTION && i < scan->catalog->symbols_count; i++)
      if (strcmp(scan->catalog->symbols[i].id, text) == 0)
        index->defined[i] = true;
  }
}

/* `#if 0` around a definition means that nobody compiles it; other conditions may hold for somebody. */
static bool never_compiled(const struct cxx_unit *unit, uint32_t token) {
  unsigned depth = 0;
  for (uint32_t i = unit->directives_count; i-- > 0;) {
    const struct cxx_directive *d = &unit->directives[i];
    if (d->first > token)
      continue;
    if (d->kind == CXX_ENDIF) {
      depth++;
    } else if (d->kind == CXX_IF || d->kind == CXX_IFDEF || d->kind == CXX_IFNDEF) {
      if (depth > 0)
        depth--;
      else if (d->kind == CXX_IF && d->last == d->first + 3 &&
               cxx_token_is(&unit->tokens, &unit->tokens.list[d->first + 2], "0"))
        return true;
    } else if (depth == 0 && (d->kind == CXX_ELSE || d->kind == CXX_ELIF)) {
      depth++; /* the branch before this one is not around the token */
      while (i > 0 && depth > 0) {
        i--;
        enum cxx_directive_kind kind = unit->directives[i].kind;
        if (kind == CXX_ENDIF)
          depth++;
        else if (kind == CXX_IF || kind == CXX_IFDEF || kind == CXX_IFNDEF)
          depth--;
      }
    }
  }
  return false;
}

/* The symbols that the unit's file defines. */
static void take_definitions(struct cxx_facts *facts, const struct cxx_unit *unit) {
  for (uint32_t i = 0; i < unit->uses_count; i++) {
    const struct cxx_use *use = &unit->uses[i];
    if (use->role != CXX_ROLE_DEFINITION || use->owner != CXX_OWNER_REMOVED || use->ast == CXX_OWNER_OTHER ||
        never_compiled(unit, use->token))
      continue;
    const struct cxx_name *name = cxx_index_name(unit->scan, use->name);
    for (unsigned k = 0; k < name->symbols_count && !name->is_template; k++)
      cxx_facts_add(facts, CXX_FACT_FUNCTION, name->symbols[k]->id, strlen(name->symbols[k]->id));
  }
}

static void take_elsewhere(struct cxx_facts *facts, struct cxx_unit *unit) {
  int count = unit->scan->cxx_index->names_count;
  bool *names = arena_alloc(&unit->arena, (size_t)count * sizeof *names);
  cxx_scopes_elsewhere(unit, names);
  for (int i = 0; i < count; i++)
    if (names[i])
      cxx_facts_add(facts, CXX_FACT_ELSEWHERE, unit->scan->cxx_index->names[i].word,
                    unit->scan->cxx_index->names[i].length);
}

static void add_definitions(struct scan *scan, struct source_file *file) {
  struct cxx_index *index = scan->cxx_index;
  struct cxx_unit *unit = scan_alloc(NULL, sizeof *unit);
  struct cxx_facts facts = {0};
  cxx_unit_open(unit, scan, file, NULL);
  bool found = false;
  for (uint32_t i = 0; i < unit->uses_count; i++)
    found = found || (unit->uses[i].role == CXX_ROLE_DEFINITION && unit->uses[i].owner == CXX_OWNER_REMOVED &&
                      cxx_index_name(scan, unit->uses[i].name)->removed);
  if (found && !unit->c_source)
    cxx_ast_resolve(unit);
  if (!unit->c_source)
    take_elsewhere(&facts, unit);
  if (found && !unit->c_source)
    take_definitions(&facts, unit);
  file->defines = cxx_facts_end(&facts);
  pthread_mutex_lock(&index->mutex);
  add_defined(scan, file);
  pthread_mutex_unlock(&index->mutex);
  if (!found && atomic_fetch_add(&index->units_size, unit->parts_size) + unit->parts_size <= MOST_KEPT) {
    index->units[file - scan->files] = unit;
    return;
  }
  cxx_unit_free(unit);
  free(unit);
}

/* --- the parts of the work ---------------------------------------------------------------------------------------- */

static void read_hit(void *user, unsigned worker, size_t number) {
  struct scan *scan = user;
  (void)worker;
  cxx_index_told(scan, &scan->files[scan->cxx_index->hits[number]]);
}

static void add_facts(void *user, unsigned worker, size_t number) {
  struct scan *scan = user;
  (void)worker;
  load_facts(&scan->files[scan->cxx_index->unknown[number]]);
}

static void look_over(void *user, unsigned worker, size_t number) {
  struct scan *scan = user;
  struct cxx_index *index = scan->cxx_index;
  (void)worker, (void)number;
  for (size_t i = 0; i < index->hits_count; i++) {
    add_told(scan, index->hits[i]);
    if (scan->files[index->hits[i]].defines)
      add_defined(scan, &scan->files[index->hits[i]]);
  }
  build_headers(scan);
  cxx_index_open_database(scan);
  for (size_t i = scan->files_count; i-- > 0;)
    if (scan->files[i].facts) {
      add_includes(index, &scan->files[i], i);
      add_macros(scan, i);
    }
}

static void look_for_definitions(void *user, unsigned worker, size_t number) {
  struct scan *scan = user;
  size_t at = scan->cxx_index->hits[number];
  struct source_file *file = &scan->files[at];
  struct cxx_facts none = {0};
  (void)worker;
  cxx_asked_into(file->asked);
  if (!file->defines && scan->cxx_index->candidates[at] && cxx_index_load(scan, file))
    add_definitions(scan, file);
  else if (!file->defines)
    file->defines = cxx_facts_end(&none);
  cxx_asked_into(NULL);
}

static bool is_hit(const struct source_file *file) {
  return file->language == LANGUAGE_CXX && file->hit && (file->bytes || file->known);
}

static bool is_unknown(const struct source_file *file) {
  return file->language == LANGUAGE_CXX && !file->facts && file->result.coverage == COVERAGE_FULL;
}

void cxx_index_begin(struct scan *scan) {
  if (scan->cxx_index)
    return;
  struct cxx_index *index = scan_alloc(NULL, sizeof *index);
  memset(index, 0, sizeof *index);
  scan->cxx_index = index;
  pthread_mutex_init(&index->readers.mutex, NULL);
  pthread_mutex_init(&index->mutex, NULL);
  pthread_mutex_init(&index->loader_mutex, NULL);
  build_names(scan);
  index->files_count = scan->files_count;
  index->units = scan_alloc(NULL, scan->files_count * sizeof *index->units);
  index->tokens = scan_alloc(NULL, scan->files_count * sizeof *index->tokens);
  for (size_t i = 0; i < scan->files_count; i++) {
    atomic_init(&index->tokens[i], NULL);
    index->units[i] = NULL;
  }
}

unsigned cxx_index_plan(struct scan *scan, struct crew *crew) {
  cxx_index_begin(scan);
  struct cxx_index *index = scan->cxx_index;
  index->defined = arena_alloc(&index->arena, scan->catalog->symbols_count * sizeof *index->defined);
  index->renamed = arena_alloc(&index->arena, (size_t)index->names_count * sizeof *index->renamed);
  index->elsewhere = arena_alloc(&index->arena, (size_t)index->names_count * sizeof *index->elsewhere);
  build_stand_ins(scan);
  index->candidates = arena_alloc(&index->arena, scan->files_count);
  index->hits = scan_largest_first(scan, is_hit, &index->hits_count);
  size_t unknown_count;
  index->unknown = scan_largest_first(scan, is_unknown, &unknown_count);
  unsigned known = crew_add(crew, add_facts, scan, unknown_count, 0);
  unsigned lexed = crew_add(crew, read_hit, scan, index->hits_count, 0);
  /* Of a tree without a name in C++ nothing is asked. */
  unsigned looked = crew_add(crew, look_over, scan, index->hits_count > 0, known | lexed);
  /* Needs the headers and macros. */
  return crew_add(crew, look_for_definitions, scan, index->hits_count, looked);
}

void cxx_index_free(struct scan *scan) {
  struct cxx_index *index = scan->cxx_index;
  cxx_database_free(index->database);
  cxx_ast_close(&index->readers);
  for (size_t i = 0; i < index->files_count; i++) {
    struct cxx_tokens *tokens = atomic_load(&index->tokens[i]);
    if (tokens)
      cxx_tokens_free(tokens);
    free(tokens);
    if (index->units[i])
      cxx_unit_free(index->units[i]);
    free(index->units[i]);
  }
  free(index->tokens);
  free(index->units);
  free(index->hits);
  free(index->unknown);
  free(index->wheel_header);
  free(index->jit_header);
  arena_free(&index->arena);
  free(index);
  scan->cxx_index = NULL;
}

void cxx_free_facts(struct source_file *file) {
  free(file->facts);
  free(file->defines);
  free(atomic_load(&file->told));
  if (file->asked)
    cxx_keys_free(file->asked);
  free(file->asked);
}

struct cxx_readers *cxx_index_readers(const struct scan *scan) {
  return &scan->cxx_index->readers;
}

void cxx_index_open_database(struct scan *scan) {
  struct cxx_index *index = scan->cxx_index;
  if (!index->database_opened)
    index->database = cxx_database_open(scan);
  index->database_opened = true;
}

const struct cxx_database *cxx_index_database(const struct scan *scan) {
  return scan->cxx_index->database;
}

bool cxx_index_renames(const struct scan *scan, int name) {
  cxx_asked(CXX_FACT_RENAMED, scan->cxx_index->names[name].word, scan->cxx_index->names[name].length);
  return scan->cxx_index->renamed[name];
}

bool cxx_index_elsewhere(const struct scan *scan, int name) {
  cxx_asked(CXX_FACT_ELSEWHERE, scan->cxx_index->names[name].word, scan->cxx_index->names[name].length);
  return scan->cxx_index->elsewhere[name];
}

bool cxx_index_defines(const struct scan *scan, const struct catalog_symbol *symbol) {
  cxx_asked(CXX_FACT_FUNCTION, symbol->id, strlen(symbol->id));
  return scan->cxx_index->defined[symbol - scan->catalog->symbols];
}

bool cxx_index_registers(const struct scan *scan, const uint8_t *text, size_t length) {
  cxx_asked(CXX_FACT_REGISTRAR, text, length);
  return find(&scan->cxx_index->registrars, text, length) != NULL;
}
