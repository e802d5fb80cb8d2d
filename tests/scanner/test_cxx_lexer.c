/* scanner/cxx_lexer.c and the conditions of scanner/cxx_preprocess.c. */
#include "scanner/cxx_lexer.h"
#include "scanner/cxx_preprocess.h"
#include "tests/unit.h"

#include <stdlib.h>

/* The tokens as they stand in the text, with a bar between them; kinds that the text does not show get a letter. */
static const char *lexed(const char *text) {
  static char out[2000];
  struct cxx_tokens tokens;
  cxx_lex(&tokens, (const uint8_t *)text, strlen(text));
  size_t used = 0;
  out[0] = '\0';
  for (uint32_t i = 0; i < tokens.count && used < sizeof out - 200; i++) {
    const struct cxx_token *token = &tokens.list[i];
    const char *mark = token->kind == CXX_STRING   ? "s:"
                       : token->kind == CXX_CHAR   ? "c:"
                       : token->kind == CXX_NUMBER ? "n:"
                       : token->kind == CXX_HEADER ? "h:"
                       : token->kind == CXX_HASH   ? "d:"
                                                   : "";
    int length = token->kind == CXX_NEWLINE ? 0 : (int)(token->end - token->start);
    used += (size_t)snprintf(out + used, sizeof out - used, "%s%s%.*s", i ? "|" : "", mark, length < 100 ? length : 100,
                             text + token->start);
  }
  cxx_tokens_free(&tokens);
  return out;
}

/* The comments, likewise. */
static const char *comments(const char *text) {
  static char out[2000];
  struct cxx_tokens tokens;
  cxx_lex(&tokens, (const uint8_t *)text, strlen(text));
  size_t used = 0;
  out[0] = '\0';
  for (uint32_t i = 0; i < tokens.comments_count; i++)
    used += (size_t)snprintf(out + used, sizeof out - used, "%s%.*s", i ? "|" : "",
                             (int)(tokens.comments[i].end - tokens.comments[i].start), text + tokens.comments[i].start);
  cxx_tokens_free(&tokens);
  return out;
}

static void words_and_numbers(void) {
  UNIT_STRINGS(lexed("a::b c1_"), "a|::|b|c1_");
  UNIT_STRINGS(lexed("7'168 1'0'0 0x1p-3 1e+5 .5f 0b1'1"), "n:7'168|n:1'0'0|n:0x1p-3|n:1e+5|n:.5f|n:0b1'1");
  UNIT_STRINGS(lexed("1'a' x"), "n:1'a|c:' x"); /* a separator, and then a character that does not end */
  UNIT_STRINGS(lexed("f(1,'a')"), "f|(|n:1|,|c:'a'|)");
  UNIT_STRINGS(lexed("1+2 a-b a->b 1-2"), "n:1|+|n:2|a|-|b|a|->|b|n:1|-|n:2");
  UNIT_STRINGS(lexed("\xef\xbb\xbf"
                     "a b"),
               "a|b");
}

static void strings(void) {
  UNIT_STRINGS(lexed("\"a\\\"b\" 'c' '\\'' '\"' u8\"x\" L'y'"), "s:\"a\\\"b\"|c:'c'|c:'\\''|c:'\"'|s:u8\"x\"|c:L'y'");
  UNIT_STRINGS(lexed("R\"(a\"b)\" R\"x()\" )x\" uR\"()\" LR\"d(\n)d\" z"),
               "s:R\"(a\"b)\"|s:R\"x()\" )x\"|s:uR\"()\"|s:LR\"d(\n)d\"|z");
  UNIT_STRINGS(lexed("\"open\nnext 'o\nlast"), "s:\"open|next|c:'o|last"); /* a line ends what is not finished */
  UNIT_STRINGS(lexed("R\"(never ends"), "s:R\"(never ends");
  UNIT_STRINGS(lexed("XR\"(a)\""), "XR|s:\"(a)\"");
  UNIT_STRINGS(lexed("\"a\" \"b\""), "s:\"a\"|s:\"b\"");
}

static void comment_kinds(void) {
  UNIT_STRINGS(comments("a // b\nc /* d\n e */ f"), "// b|/* d\n e */");
  UNIT_STRINGS(lexed("a // b\nc /* d\n e */ f"), "a|c|f");
  UNIT_STRINGS(comments("// goes on \\\nhere\nx"), "// goes on \\\nhere");
  UNIT_STRINGS(lexed("// goes on \\\nhere\nx"), "x");
  UNIT_STRINGS(lexed("// not here \\x\ny"), "y");
  UNIT_STRINGS(lexed("\"// no\" \"/* no\" z"), "s:\"// no\"|s:\"/* no\"|z");
  UNIT_STRINGS(lexed("a /* never ends"), "a");
  UNIT_STRINGS(lexed("/\\\n/ c\nx /\\\n* y *\\\n/ z"), "x|z");
}

static void continuations(void) {
  struct cxx_tokens tokens;
  const char *text = "dsv3_\\\nrouter \\  \r\n x";
  cxx_lex(&tokens, (const uint8_t *)text, strlen(text));
  CU_ASSERT_EQUAL(tokens.count, 2);
  CU_ASSERT_TRUE(cxx_token_is(&tokens, &tokens.list[0], "dsv3_router"));
  CU_ASSERT_FALSE(cxx_token_is(&tokens, &tokens.list[0], "dsv3_route"));
  CU_ASSERT_FALSE(cxx_token_is(&tokens, &tokens.list[0], "dsv3_router_"));
  CU_ASSERT_TRUE(cxx_token_is(&tokens, &tokens.list[1], "x"));
  cxx_tokens_free(&tokens);
}

static void directives(void) {
  UNIT_STRINGS(lexed("#define A(x) \\\n x\nb"), "d:#|define|A|(|x|)|x||b");
  UNIT_STRINGS(lexed(" # include <a/b.h> // c\nd # e"), "d:#|include|h:<a/b.h>||d|#|e");
  UNIT_STRINGS(lexed("#include \"x.h\""), "d:#|include|s:\"x.h\"|");
  UNIT_STRINGS(lexed("#if __has_include(<a.h>) && 1 < 2"), "d:#|if|__has_include|(|h:<a.h>|)|&&|n:1|<|n:2|");
  UNIT_STRINGS(lexed("%:define A\n/* c */ #undef A\n"), "d:%:|define|A||d:#|undef|A|");
  UNIT_STRINGS(lexed("#error don't\nx"), "d:#|error|don|c:'t||x");
  UNIT_STRINGS(lexed("a < b > c"), "a|<|b|>|c");
}

static void punctuation(void) {
  UNIT_STRINGS(lexed("a<::b> x<:0:> <% %>"), "a|<|::|b|>|x|<:|n:0|:>|<%|%>");
  UNIT_STRINGS(lexed("a<=>b <<= >>= ... ->* .* ++ -- ## &&"), "a|<=>|b|<<=|>>=|...|->*|.*|++|--|##|&&");
}

/* The code of each token that is <<< or >>>. */
static const char *launches(const char *text) {
  static char out[100];
  struct cxx_tokens tokens;
  cxx_lex(&tokens, (const uint8_t *)text, strlen(text));
  size_t used = 0;
  for (uint32_t i = 0; i < tokens.count; i++)
    if (tokens.list[i].kind == CXX_PUNCT)
      out[used++] = tokens.list[i].code == CXX_LAUNCH        ? 'L'
                    : tokens.list[i].code == CXX_LAUNCH_END  ? 'E'
                    : tokens.list[i].code == CXX_SHIFT_LEFT  ? 'l'
                    : tokens.list[i].code == CXX_SHIFT_RIGHT ? 'r'
                                                             : '.';
  out[used] = '\0';
  cxx_tokens_free(&tokens);
  return out;
}

static void kernel_launches(void) {
  UNIT_STRINGS(launches("k<<<1, 2>>>(a);"), "L.E...");
  UNIT_STRINGS(launches("k<<<(a >> 8), (1 << 8)>>>(b);"), "L.r...l.E...");
  UNIT_STRINGS(launches("k<int><<<1, f<g<int>>(x)>>>();"), "..L..."
                                                           "r..E...");
  UNIT_STRINGS(launches("a << b; v<v<v<int>>> c;"), "l....r..");
  UNIT_STRINGS(launches("x = 1 <<< 2; y >>> z;"), ".l..r..");
}

static void merges(void) {
  static const struct {
    const char *text;
    bool conflict;
  } cases[] = {
      {"a\n<<<<<<< ours\nb\n=======\nc\n>>>>>>> theirs\nd\n", true},
      {"a\n<<<<<<<\nb\n", true},
      {"a\n>>>>>>> x\n", true},
      {"a << b; /*\n=======\n*/\n", false},
      {"/* <<<<<<< */\nchar *s = \"\\\n<<<<<<<x\";\n", false},
      {"/*\n<<<<<<< a\n=======\n>>>>>>> b\n*/\n", true}, /* the whole of it counts inside a comment too */
      {"k<<<1, 2>>>();\n", false},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct cxx_tokens tokens;
    cxx_lex(&tokens, (const uint8_t *)cases[i].text, strlen(cases[i].text));
    CU_ASSERT_EQUAL(tokens.conflict, cases[i].conflict);
    cxx_tokens_free(&tokens);
  }
  UNIT_STRINGS(lexed("a\n<<<<<<< don't\nb\n"), "a|b");
}

static void values(void) {
  const char *text = "\"a\\n\\x41\\101\\\"\\\\\" R\"x(\\n)\")x\" \"\\u00e9\\\nz\"";
  struct cxx_tokens tokens;
  cxx_lex(&tokens, (const uint8_t *)text, strlen(text));
  CU_ASSERT_EQUAL_FATAL(tokens.count, 3);
  struct cxx_text value = {0};
  for (uint32_t i = 0; i < 3; i++)
    cxx_text_append(&value, &tokens, &tokens.list[i]);
  CU_ASSERT_EQUAL(value.size, 12);
  CU_ASSERT_TRUE(memcmp(value.value, "a\nAA\"\\\\n)\"?z", 12) == 0);
  CU_ASSERT_EQUAL(text[value.offset[0]], 'a');
  CU_ASSERT_EQUAL(value.offset[1], 2); /* of the backslash */
  CU_ASSERT_EQUAL(text[value.offset[value.size - 1]], 'z');
  cxx_text_free(&value);
  cxx_tokens_free(&tokens);
}

/* Any prefix of a text gives tokens inside of it, in order. */
static void every_prefix(void) {
  static const char text[] =
      "#define A(x) x ## \\\n y\nR\"a(\n)a\" 'x' k<<<1,2>>>(\"s\\\"\"); /* c */ // d\\\n e\n<<<<<<< z\n";
  for (size_t size = 0; size < sizeof text; size++) {
    uint8_t *copy = malloc(size + 1); /* one more, so that size 0 is no null pointer; not written */
    memcpy(copy, text, size);
    struct cxx_tokens tokens;
    cxx_lex(&tokens, copy, size);
    uint32_t at = 0;
    for (uint32_t i = 0; i < tokens.count; i++) {
      CU_ASSERT_TRUE(tokens.list[i].start >= at && tokens.list[i].end >= tokens.list[i].start &&
                     tokens.list[i].end <= size);
      at = tokens.list[i].start;
    }
    cxx_tokens_free(&tokens);
    free(copy);
  }
}

/* --- conditions --------------------------------------------------------------------------------------------------- */

static bool has_header(void *user, const uint8_t *name, size_t length) {
  (void)user;
  return length == 3 && memcmp(name, "a.h", 3) == 0;
}

/* Reads #define and #undef lines of `text`, and then the value of its last line as a condition. */
static bool holds(const char *text) {
  struct arena arena = {0};
  struct cxx_macros *macros = calloc(1, sizeof *macros);
  macros->arena = &arena;
  macros->has_include = has_header;
  cxx_macros_predefine(macros, false);
  struct cxx_tokens tokens;
  cxx_lex(&tokens, (const uint8_t *)text, strlen(text));
  bool value = false;
  for (uint32_t i = 0; i < tokens.count; i++) {
    uint32_t last = i;
    while (last < tokens.count && tokens.list[last].kind != CXX_NEWLINE)
      last++;
    if (cxx_token_is(&tokens, &tokens.list[i + 1], "define"))
      cxx_macro_define(macros, &tokens, i + 2, last);
    else if (cxx_token_is(&tokens, &tokens.list[i + 1], "undef"))
      cxx_macro_undefine(macros, tokens.bytes + tokens.list[i + 2].start,
                         tokens.list[i + 2].end - tokens.list[i + 2].start);
    else
      value = cxx_condition(macros, &tokens, i + 2, last);
    i = last;
  }
  cxx_tokens_free(&tokens);
  arena_free(&arena);
  free(macros);
  return value;
}

static void conditions_true(void) {
  static const char *const texts[] = {
      "#if 1",
      "#if 2 - 1 == 1 && !0",
      "#if 1 + 2 * 3 == 7 && (1 + 2) * 3 == 9 && 7 / 2 == 3 && 7 % 4 == 3",
      "#if (1 << 4 | 1) == 0x11 && (6 & 3) == 2 && (5 ^ 1) == 4 && ~0 == -1",
      "#if 10'000 == 10000 && 0b11 == 3 && 'a' == 97 && 12L == 12u",
      "#if 0 ? 0 : 1 ? 1 : 0",
      "#if defined __cplusplus && __cplusplus >= 201703L",
      "#if !defined(USE_ROCM) && not UNKNOWN",
      "#define A 3\n#if A > 2 && defined(A)",
      "#define A\n#if defined A",
      "#define V(a, b) ((a) * 100 + (b))\n#if V(1, 2) >= V(1, 1)",
      "#define B C\n#define C 5\n#if B == 5",
      "#define H (defined(X) && X)\n#define X 1\n#if H",
      "#if __has_include(<a.h>) && !__has_include(\"b.h\")",
      "#if 1 || 1 / 0",
      "#if true and not false",
      "#define M(x, ...) __VA_ARGS__\n#if M(0, 1)",
      "#define S S\n#if S == 0",
      "#define A 1\n#undef A\n#if !A",
  };
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    bool value = holds(texts[i]);
    if (!value)
      fprintf(stderr, "  is false: %s\n", texts[i]);
    CU_ASSERT_TRUE(value);
  }
}

static void conditions_false(void) {
  static const char *const texts[] = {
      "#if 0",
      "#if USE_ROCM",
      "#if defined(USE_ROCM) || defined(__HIP__)",
      "#if CUDA_VERSION >= 12040",
      "#if __has_attribute(nodiscard)",
      "#if UNKNOWN(1, 2)",
      "#if 1 / 0",
      "#if",
      "#if (1",
      "#if 1 1",
      "#if 1.5",
      "#if \"text\"",
      "#if defined",
      "#if defined(",
      "#define A 1\n#undef A\n#if A",
      "#define F(x) x\n#if F",
      /* each doubles the one before, and all are empty */
      "#define A\n#define B A A A A A A A A\n#define C B B B B B B B B\n#define D C C C C C C C C\n"
      "#define E D D D D D D D D\n#define F E E E E E E E E\n#define G F F F F F F F F\n#if G G G G 1",
      "#define A B\n#define B A\n#if A",
  };
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    bool value = holds(texts[i]);
    if (value)
      fprintf(stderr, "  is true: %s\n", texts[i]);
    CU_ASSERT_FALSE(value);
  }
}

static void conditions_deep(void) {
  static char text[20000] = "#if ";
  memset(text + 4, '(', 9000);
  CU_ASSERT_FALSE(holds(text));
  memset(text + 4, '!', 9000);
  text[9004] = '1';
  text[9005] = '\0';
  CU_ASSERT_FALSE(holds(text));
}

static const struct unit_test tests[] = {
    {"words_and_numbers", words_and_numbers},
    {"strings", strings},
    {"comment_kinds", comment_kinds},
    {"continuations", continuations},
    {"directives", directives},
    {"punctuation", punctuation},
    {"kernel_launches", kernel_launches},
    {"merges", merges},
    {"values", values},
    {"every_prefix", every_prefix},
    {"conditions_true", conditions_true},
    {"conditions_false", conditions_false},
    {"conditions_deep", conditions_deep},
};

UNIT_MAIN("cxx_lexer", tests)
