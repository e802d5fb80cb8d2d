#include "scanner/cache_bytes.h"
#include "scanner/scanner.h"

#include <string.h>

uint64_t cache_get(struct cache_reader *reader, size_t size) {
  uint64_t value = 0;
  const uint8_t *bytes = cache_get_bytes(reader, size);
  if (bytes)
    memcpy(&value, bytes, size);
  return value;
}

const char *cache_get_text(struct cache_reader *reader) {
  uint64_t length = cache_get(reader, 4);
  const uint8_t *text = cache_get_bytes(reader, length + 1);
  if (text && text[length] == '\0')
    return (const char *)text;
  reader->bad = true;
  return "";
}

uint32_t cache_get_count(struct cache_reader *reader, size_t least) {
  uint64_t count = cache_get(reader, 4);
  if (reader->bad || count > (reader->size - reader->at) / least) {
    reader->bad = true;
    return 0;
  }
  return (uint32_t)count;
}

const uint8_t *cache_get_bytes(struct cache_reader *reader, size_t size) {
  if (reader->bad || reader->size - reader->at < size) {
    reader->bad = true;
    return NULL;
  }
  reader->at += size;
  return reader->bytes + reader->at - size;
}

void cache_put(struct cache_writer *writer, const void *bytes, size_t size) {
  if (writer->size + size > writer->capacity) {
    writer->capacity = 2 * (writer->size + size) + 65536;
    writer->bytes = scan_alloc(writer->bytes, writer->capacity);
  }
  if (size)
    memcpy(writer->bytes + writer->size, bytes, size);
  writer->size += size;
}

void cache_put_number(struct cache_writer *writer, uint64_t value, size_t size) {
  cache_put(writer, &value, size);
}

void cache_put_text(struct cache_writer *writer, const char *text) {
  cache_put_number(writer, strlen(text), 4);
  cache_put(writer, text, strlen(text) + 1);
}

void cache_patch(struct cache_writer *writer, size_t at, uint32_t value) {
  memcpy(writer->bytes + at, &value, sizeof value);
}
