/* The grammar's source package comes without the two headers that its generator writes beside it. Debian's parser.h has
 * the same structs (grammar ABI 14); here is what a generator newer than it uses on top. */
#ifndef SGL_GRAMMAR_PARSER_H
#define SGL_GRAMMAR_PARSER_H

#include_next <tree_sitter/parser.h>

typedef struct {
  int32_t start, end;
} TSCharacterRange;

/* The ranges are sorted and include both ends. */
static inline bool set_contains(const TSCharacterRange *ranges, uint32_t count, int32_t character) {
  uint32_t low = 0, high = count;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (character < ranges[middle].start)
      high = middle;
    else if (character > ranges[middle].end)
      low = middle + 1;
    else
      return true;
  }
  return false;
}

/* Pairs of character and state, inside ts_lex. */
#define ADVANCE_MAP(...)                                                                                               \
  {                                                                                                                    \
    static const uint16_t pairs[] = {__VA_ARGS__};                                                                     \
    for (uint32_t i = 0; i < sizeof pairs / sizeof pairs[0]; i += 2)                                                   \
      if (pairs[i] == lookahead) {                                                                                     \
        state = pairs[i + 1];                                                                                          \
        goto next_state;                                                                                               \
      }                                                                                                                \
  }

/* Debian's takes the last two as designated initialisers. */
#undef REDUCE
#define REDUCE(symbol_, children_, precedence_, production_)                                                           \
  {                                                                                                                    \
    {                                                                                                                  \
      .reduce = {.type = TSParseActionTypeReduce,                                                                      \
                 .child_count = children_,                                                                             \
                 .symbol = symbol_,                                                                                    \
                 .dynamic_precedence = precedence_,                                                                    \
                 .production_id = production_},                                                                        \
    }                                                                                                                  \
  }

#endif
