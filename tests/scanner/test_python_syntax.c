/* What Python refuses and the grammar takes, what both take, and inputs of a size and depth that nobody writes by hand.
 */
#include "scanner/python_front.h"
#include "tests/unit.h"

#include <stdlib.h>

/* NULL when Python would parse it. */
static const char *refusal(const void *text, size_t size) {
  struct py_source source;
  const char *why = NULL;
  if (!py_source_open(&source, text, size, &why)) {
    py_source_close(&source);
    return why;
  }
  struct py_tree tree;
  py_tree_open(&tree, source.bytes, source.size, source.start);
  uint32_t offset = UINT32_MAX;
  why = tree.refused ? tree.refused : py_check(&tree, &offset);
  if (why && !tree.refused)
    CU_ASSERT(offset <= size);
  py_tree_close(&tree);
  py_source_close(&source);
  return why;
}

static void accepts(const char *text) {
  const char *why = refusal(text, strlen(text));
  if (why)
    fprintf(stderr, "  refused (%s): %s\n", why, text);
  CU_ASSERT(!why);
}

static void refuses(const char *text) {
  bool refused = refusal(text, strlen(text)) != NULL;
  if (!refused)
    fprintf(stderr, "  accepted: %s\n", text);
  CU_ASSERT(refused);
}

static void python_2(void) {
  refuses("print 'a'\n");
  refuses("print\nprint a\n");
  refuses("exec 'a'\n");
  refuses("raise E, 'a'\n");
  refuses("try: a\nexcept A, e: b\n");
  refuses("a <> b\n");
  refuses("a = 0777\n");
  refuses("a = 10L\n");
  refuses("a = `b`\n");
  refuses("a = ur'b'\n");
  refuses("def f(a, (b, c)): pass\n");
  accepts("print >>f, 'a'\n");
  accepts("print('a')\nexec('b')\nprint\nexec\n");
  accepts("a = 0\nb = 00\nc = 0o17\nd = 0_0\ne = 1_000j\nf = 00.5\n");
  accepts("try: a\nexcept A, B: b\n"); /* Python 3.14 */
}

static void blocks(void) {
  refuses("if a:\nb\n");
  refuses("if a:\n    b\n  c\n");
  refuses("a\n  b\n");
  refuses("  a\n");
  refuses("if a:\n\tb\n        c\n");
  refuses("if a:\n        b\n\tc\n");
  refuses("try:\n  a\n finally:\n  b\n");
  refuses("@a\n  def f(): pass\n");
  refuses("def f():\n  # nothing\n");
  refuses("a b\n");
  refuses("f() pass\n");
  refuses("a =\n  b\n");
  refuses("from a\n  import b\n");
  accepts("if a:\n\tb\n\tif c:\n\t    d\n");
  accepts("if a: b; c\nelse: d\n");
  accepts("if a: \\\n  b\n");
  accepts("a = (b\n+ c)\nif d:\n  e = [\nf,\n# g\n]\n");
  accepts("if a:\n  # b \\\n  c\n# d\n  e\n");
  accepts("\\\nimport a\n");
  accepts("\fimport a\n\f\nif b:\n\f  c\n");
  accepts("a = '''\n b\n'''; c\n");
  accepts("");
  accepts("\n\n# a");
}

static void names_and_arguments(void) {
  refuses("from a import b,\n");
  refuses("from a import b.c\n");
  refuses("f(from=1)\n");
  refuses("async = 1\n");
  refuses("a.import\n");
  refuses("f(a=1, 2)\n");
  refuses("f(**a, b)\n");
  refuses("def f(a=1, b): pass\n");
  refuses("a := 1\n");
  refuses("a as b\n");
  refuses("a = b: c\n");
  refuses("a: int = b = 3\n");
  accepts("from a import (b,)\n");
  accepts("f(a=1, *b, **c)\n");
  accepts("def f(a, /, b=1, *c, d, **e): pass\n");
  accepts("match = type = case = _ = 1\nmatch(type)\n");
  accepts("(a := 1)\nwith (a as b, c as d): pass\n");
  accepts("with a if b else c as d: pass\n");
  accepts("with (a if b else c as d, e): pass\n");
  accepts("try: pass\nexcept A if b else C as d: pass\n");
  refuses("f(a if b else c as d)\n");
}

static void strings(void) {
  refuses("a = 'b\n'\n");
  refuses("a = f'\n'\n");
  refuses("a = 'C:\\Users'\n");
  refuses("a = '\\x1'\n");
  refuses("a = '\\U00110000'\n");
  refuses("a = b'\xc3\xa9'\n");
  refuses("a = '''b\n");
  accepts("a = r'C:\\Users' b'\\Users' 'C:\\\\Users' '\\N{DASH}' '\\U0010ffff' '\\x1f'\n");
  accepts("a = 'b\\\nc'\n");
  accepts("a = f\"{b[\"c\"]!r:>{d}.2f} {{e}}\"\n");
  accepts("a = t'{b}' rt'{c}' + f'''{\nd\n}'''\n"); /* Python 3.14 */
}

static void characters(void) {
  refuses("a = \xef\xbb\xbf"
          "1\n");
  refuses("a = \xe2\x80\x9c"
          "b\xe2\x80\x9d\n");
  refuses("a = 1 \\ \n");
  refuses("a = 1 \\");
  CU_ASSERT(refusal("a\0b\n", 4) != NULL);
  refuses("a = '\xe9'\n");
  refuses("# coding: ascii\na = '\xe9'\n");
  refuses("# coding: klingon\n");
  refuses("# coding: utf-7\n");
  refuses("\xef\xbb\xbf# coding: latin-1\n");
  accepts("\xef\xbb\xbf"
          "a = 1\n");
  accepts("# coding: latin-1\n\xe9 = '\xa0'\n");
  accepts("#!/usr/bin/python\n# vim: set fileencoding=cp1252 :\n\xe9 = '\x93'\n");
  accepts("# coding: gbk\n\xc4\xe3 = '\x81\x5c'\n");
  accepts("# coding: shift_jis\na = '\x83\x5c'\n");
  accepts("a\rb = 1\r# c\rd\r");
  accepts("\xc3\xa9t\xc3\xa9 = '\xe2\x80\xa8'\n");
}

static void newer_syntax(void) {
  accepts("type A[T] = list[T]\nclass B[T: (int, str)](C): pass\ndef f[*Ts](*a: *Ts) -> T: ...\n");
  accepts("try: a\nexcept* B as c: d\n");
  accepts("match a:\n  case {'b': 1, **c} if (d := 1): e\n  case [f, *_] | G(h=1) as i: j\n");
}

/* `times` copies of a text, between two others. */
static char *repeated(const char *before, const char *text, size_t times, const char *after) {
  size_t length = strlen(text), at = strlen(before);
  char *whole = malloc(at + length * times + strlen(after) + 1);
  memcpy(whole, before, at);
  for (size_t i = 0; i < times; i++, at += length)
    memcpy(whole + at, text, length);
  strcpy(whole + at, after);
  return whole;
}

static void expect(char *text, bool accepted) {
  bool have = refusal(text, strlen(text)) == NULL;
  if (have != accepted)
    fprintf(stderr, "  wrong for: %.60s\n", text);
  CU_ASSERT(have == accepted);
  free(text);
}

/* tree-sitter before 0.20.9 counts a node's children in 16 bits. */
static void many_children(void) {
  expect(repeated("", "# a\n", 70000, "b = 1\n"), true);
  expect(repeated("a = [\n", "# b\n", 70000, "]\n"), true);
  expect(repeated("", "a b )\n", 70000, ""), false);
  expect(repeated("if a:\n", "  b (\n", 70000, ""), false);
}

static void long_and_deep(void) {
  expect(repeated("a = (", "b, ", 300000, ")\n"), true);
  expect(repeated("a = b", ".c", 50000, "\n"), true);
  expect(repeated("a = b", " + c", 50000, "\n"), true);
  expect(repeated("a = '", "b", 3000000, "'\n"), true);
  expect(repeated("", "(", 100000, ""), false);
  expect(repeated("a = (", "{", 190, "}"), false);
  char *open = repeated("a = ", "(", 199, "b"), *both = repeated(open, ")", 199, "\n");
  free(open);
  expect(both, true);
  open = repeated("a = ", "(", 201, "b");
  both = repeated(open, ")", 201, "\n");
  free(open);
  expect(both, false);
  expect(repeated("a = ", "not ", 70000, "\n"), false);
}

/* The comments of joined lines stand in the list where they belong. */
static void joined_lines(void) {
  static const char text[] = "if a:\n    from b import ( # one\nc, # two\n# three\nd)\n    e # four\n";
  struct py_tree tree;
  py_tree_open(&tree, (const uint8_t *)text, strlen(text), 0);
  uint32_t offset;
  CU_ASSERT(!tree.refused && !py_check(&tree, &offset));
  unsigned comments = 0, inside = 0;
  for (py_id node = 1; node < tree.count; node++) {
    CU_ASSERT(tree.nodes[node].parent < node && tree.nodes[node].start >= tree.nodes[node - 1].start);
    CU_ASSERT(!tree.nodes[node].next || tree.nodes[tree.nodes[node].next].parent == tree.nodes[node].parent);
    if (py_kind(&tree, node) != PY_COMMENT)
      continue;
    comments++;
    inside += py_kind(&tree, py_parent(&tree, node)) == PY_IMPORT_FROM_STATEMENT;
  }
  CU_ASSERT_EQUAL(comments, 4);
  CU_ASSERT_EQUAL(inside, 3);
  py_tree_close(&tree);
}

static const struct unit_test tests[] = {
    {"python_2", python_2},
    {"blocks", blocks},
    {"names_and_arguments", names_and_arguments},
    {"strings", strings},
    {"characters", characters},
    {"newer_syntax", newer_syntax},
    {"many_children", many_children},
    {"long_and_deep", long_and_deep},
    {"joined_lines", joined_lines},
};

UNIT_MAIN("python_syntax", tests)
