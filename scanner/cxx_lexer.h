/* C, C++ and CUDA text to tokens. Nothing is expanded or left out: tokens of inactive branches and of directives are
 * there too. Every input gives a token list; broken text (an unfinished string or comment) ends at the line or file. */
#ifndef SGL_CXX_LEXER_H
#define SGL_CXX_LEXER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cxx_kind {
  CXX_WORD,    /* identifier or keyword; code: enum cxx_keyword */
  CXX_NUMBER,  /* with digit separators and suffix */
  CXX_STRING,  /* with prefix, quotes and delimiter */
  CXX_CHAR,    /* character literal */
  CXX_HEADER,  /* <name> in an include directive */
  CXX_PUNCT,   /* code: the character, or enum cxx_punct */
  CXX_HASH,    /* # that starts a directive */
  CXX_NEWLINE, /* the end of a directive; start: its line break, end: after it (both: the end of the file) */
};

enum cxx_punct {
  CXX_SCOPE = 256,   /* :: */
  CXX_ARROW,         /* -> and ->* */
  CXX_DOT_STAR,      /* .* */
  CXX_ELLIPSIS,      /* ... */
  CXX_AND_AND,       /* && */
  CXX_OR_OR,         /* || */
  CXX_EQUAL,         /* == */
  CXX_NOT_EQUAL,     /* != */
  CXX_LESS_EQUAL,    /* <= */
  CXX_GREATER_EQUAL, /* >= */
  CXX_SPACESHIP,     /* <=> */
  CXX_SHIFT_LEFT,    /* << */
  CXX_SHIFT_RIGHT,   /* >> */
  CXX_STEP,          /* ++ and -- */
  CXX_ASSIGN,        /* += and its like */
  CXX_PASTE,         /* ## */
  CXX_LAUNCH,        /* <<< of a kernel launch */
  CXX_LAUNCH_END,    /* >>> of a kernel launch */
};

/* Keywords by what they say about the words beside them. */
#define CXX_KEYWORDS(type, qualifier, expression, other)                                                               \
  type(auto) type(bool) type(char) type(char16_t) type(char32_t) type(char8_t) type(double) type(float) type(int)     \
  type(long) type(short) type(signed) type(unsigned) type(void) type(wchar_t)                                         \
  qualifier(const) qualifier(consteval) qualifier(constexpr) qualifier(constinit) qualifier(explicit)                 \
  qualifier(export) qualifier(extern) qualifier(friend) qualifier(inline) qualifier(mutable) qualifier(register)      \
  qualifier(static) qualifier(thread_local) qualifier(typename) qualifier(virtual) qualifier(volatile)                \
  expression(alignof) expression(and) expression(case) expression(co_await) expression(co_return)                     \
  expression(co_yield) expression(const_cast) expression(delete) expression(do) expression(dynamic_cast)              \
  expression(else) expression(goto) expression(new) expression(not) expression(or) expression(reinterpret_cast)       \
  expression(return) expression(sizeof) expression(static_cast) expression(throw) expression(typeid)                  \
  other(__asm__) other(__attribute__) other(__declspec) other(alignas) other(asm) other(break) other(catch)           \
  other(class) other(concept) other(continue) other(decltype) other(default) other(enum) other(for) other(if)         \
  other(namespace) other(noexcept) other(operator) other(private) other(protected) other(public) other(requires)      \
  other(static_assert) other(struct) other(switch) other(template) other(this) other(try) other(typedef)              \
  other(union) other(using) other(while)

enum cxx_keyword {
  KW_NONE,
#define CXX_KEYWORD(word) KW_##word,
  CXX_KEYWORDS(CXX_KEYWORD, CXX_KEYWORD, CXX_KEYWORD, CXX_KEYWORD)
#undef CXX_KEYWORD
};

bool cxx_keyword_is_type(unsigned keyword);
bool cxx_keyword_is_qualifier(unsigned keyword);
bool cxx_keyword_is_expression(unsigned keyword);

enum {
  CXX_SPLICED = 1,   /* a line continuation lies inside the token */
  CXX_RAW = 2,       /* a raw string */
  CXX_DIRECTIVE = 4, /* inside a directive */
  CXX_INACTIVE = 8,  /* not compiled; set by the preprocessor pass */
  CXX_ARGUMENT = 16, /* in the arguments of a function-like macro of the tree; set by the preprocessor pass */
};

struct cxx_token {
  uint32_t start, end; /* bytes */
  uint16_t code;
  uint8_t kind;
  uint8_t flags;
};

struct cxx_comment {
  uint32_t start, end; /* with its delimiters */
};

struct cxx_tokens {
  const uint8_t *bytes;
  size_t size;
  struct cxx_token *list;
  uint32_t count, capacity;
  struct cxx_comment *comments;
  uint32_t comments_count, comments_capacity;
  bool conflict; /* lines of an unresolved merge; these lines give no tokens */
};

/* The largest text that is read: offsets have to fit with room to spare. */
#define CXX_LARGEST ((size_t)1 << 30)

/* The tokens refer to bytes, which have to stay. Texts above CXX_LARGEST are cut there. */
void cxx_lex(struct cxx_tokens *tokens, const uint8_t *bytes, size_t size);
void cxx_tokens_copy(struct cxx_tokens *tokens, const struct cxx_tokens *from);
void cxx_tokens_free(struct cxx_tokens *tokens);

/* Does the token read exactly like this (line continuations inside it do not count)? */
bool cxx_token_is(const struct cxx_tokens *tokens, const struct cxx_token *token, const char *text);

/* One character of a string literal's value and where it came from. */
struct cxx_text {
  uint8_t *value;   /* decoded; escapes above one byte become '?' */
  uint32_t *offset; /* offset in the file of each byte of value */
  size_t size, capacity;
};
/* Appends the value of a string token. */
void cxx_text_append(struct cxx_text *text, const struct cxx_tokens *tokens, const struct cxx_token *token);
void cxx_text_free(struct cxx_text *text);

#endif
