/* Which binding a name means, what an expression is, what a statement stands under. */
#include "scanner/crew.h"
#include "scanner/python_front.h"
#include "tests/unit.h"

#include <stdlib.h>

static struct scan scan;
static struct source_file file;

static void open_unit(struct py_unit *unit, const char *text) {
  scan = (struct scan){.catalog = &catalog_builtin, .options = {"0.4.6", "0.5.18"}};
  struct crew *crew = crew_new();
  python_index_plan(&scan, crew, 1);
  crew_finish(crew, 1);
  file = (struct source_file){
      .path = (char *)"a.py", .language = LANGUAGE_PYTHON, .bytes = (const uint8_t *)text, .size = strlen(text)};
  const char *why = py_unit_open(unit, &scan, &file);
  if (why)
    fprintf(stderr, "  refused (%s): %s\n", why, text);
  CU_ASSERT_FATAL(!why);
}

static void close_unit(struct py_unit *unit) {
  py_unit_close(unit);
  python_index_free(&scan);
}

/* The expression that the text marks: what stands in the call of HERE(...). */
static py_id marked(const struct py_unit *unit) {
  for (py_id node = 0; node < unit->tree.count; node++)
    if (py_kind(&unit->tree, node) == PY_CALL && py_is(&unit->tree, py_call_name(&unit->tree, node), "HERE"))
      return py_argument(&unit->tree, node, 0, NULL);
  return 0;
}

/* "path", "path?" when the name means something else too, "path=" for an alias without an import; "" for unknown. */
static const char *value_of(const char *text) {
  static char out[128];
  struct py_unit unit;
  open_unit(&unit, text);
  py_id node = marked(&unit);
  CU_ASSERT_FATAL(node != 0);
  struct py_value value = py_evaluate(&unit, node);
  snprintf(out, sizeof out, "%s%s%s%s", value.path ? value.path : "",
           value.path && value.flags & PY_VALUE_AMBIGUOUS ? "?" : "",
           value.path && value.flags & PY_VALUE_ASSIGNED ? "=" : "",
           value.path && value.flags & PY_VALUE_ELSEWHERE ? "^" : "");
  close_unit(&unit);
  return out;
}

static void imports(void) {
  UNIT_STRINGS(value_of("import sgl_kernel\nHERE(sgl_kernel)\n"), "sgl_kernel");
  UNIT_STRINGS(value_of("import sgl_kernel.gemm\nHERE(sgl_kernel.gemm)\n"), "sgl_kernel.gemm");
  UNIT_STRINGS(value_of("import sgl_kernel.gemm as g\nHERE(g)\n"), "sgl_kernel.gemm");
  UNIT_STRINGS(value_of("from sgl_kernel import gemm as g\nHERE(g.x)\n"), "sgl_kernel.gemm.x");
  UNIT_STRINGS(value_of("from . import sgl_kernel\nHERE(sgl_kernel)\n"), ".sgl_kernel");
  UNIT_STRINGS(value_of("from ..a import b\nHERE(b)\n"), "..a.b");
  UNIT_STRINGS(value_of("import torch as t\nHERE(t.torch.ops.sgl_kernel)\n"), "torch.ops.sgl_kernel");
  UNIT_STRINGS(value_of("HERE(sgl_kernel)\n"), "");
}

static void scopes(void) {
  static const char import[] = "import sgl_kernel as k\n";
  char text[256];
  static const char *const shadowed[] = {
      "def f(k): HERE(k)\n",
      "def f(*k): HERE(k)\n",
      "def f(a=1, *, k: int = 2): HERE(k)\n",
      "f = lambda k: HERE(k)\n",
      "a = [HERE(k) for k in b]\n",
      "a = {HERE(k): v for k, (v, *w) in b}\n",
      "def f():\n  HERE(k)\n  k = 1\n",
      "def f():\n  for k in a: HERE(k)\n",
      "def f():\n  with a as (b, k): HERE(k)\n",
      "def f():\n  try: a\n  except E as k: HERE(k)\n",
      "def f():\n  if (k := a): HERE(k)\n",
      "def f():\n  a = [k := b for b in c]\n  HERE(k)\n",
      "def f():\n  match a:\n    case [1, k]: HERE(k)\n",
      "def f():\n  match a:\n    case {'b': B(c=k), **d}: HERE(k)\n",
      "def f():\n  match a:\n    case [*k]: HERE(k)\n",
      "def f():\n  match a:\n    case (1 | 2) as k: HERE(k)\n",
      "def f():\n  def k(): pass\n  HERE(k)\n",
      "def f():\n  class k: pass\n  HERE(k)\n",
      "def f():\n  k += 1\n  HERE(k)\n",
      "def f():\n  import a as k\n  def g(): HERE(k)\n", /* the inner scope of the two */
      "def f[k](a): HERE(k)\n",
      "class A:\n  k = 1\n  HERE(k)\n",
      "k = 1\nHERE(k)\n",
  };
  for (size_t i = 0; i < sizeof shadowed / sizeof *shadowed; i++) {
    snprintf(text, sizeof text, "%s%s", import, shadowed[i]);
    const char *have = value_of(text);
    if (strncmp(have, "sgl_kernel", 10) == 0)
      fprintf(stderr, "  in: %s\n", shadowed[i]);
    CU_ASSERT(strncmp(have, "sgl_kernel", 10) != 0);
  }
  static const char *const seen[] = {
      "def f(a=HERE(k)): k = 1\n",
      "def f(a: HERE(k)): pass\n",
      "@HERE(k)\ndef f(k): pass\n",
      "class A(HERE(k)):\n  k = 1\n",
      "class A:\n  k = 1\n  def f(self): HERE(k)\n",
      "class A:\n  k = 1\n  a = [HERE(k) for b in c]\n",
      "a = [k for k in HERE(k)]\n",
      "def f():\n  global k\n  HERE(k)\n",
      "def f():\n  def g():\n    k = 1\n  HERE(k)\n",
      "match a:\n  case k.b: HERE(k)\n",
      "k: int\nHERE(k)\n",
      "a.k = 1\na[k] = 2\nHERE(k)\n",
      "f = lambda a=HERE(k): a\n",
  };
  for (size_t i = 0; i < sizeof seen / sizeof *seen; i++) {
    snprintf(text, sizeof text, "%s%s", import, seen[i]);
    const char *have = value_of(text);
    if (strcmp(have, "sgl_kernel") != 0)
      fprintf(stderr, "  in: %s", seen[i]);
    UNIT_STRINGS(have, "sgl_kernel");
  }
}

static void several_bindings(void) {
  UNIT_STRINGS(value_of("if a:\n  import sgl_kernel as k\nelse:\n  k = None\nHERE(k)\n"), "sgl_kernel");
  UNIT_STRINGS(value_of("k = None\ndef f(): HERE(k)\nif a:\n  import sgl_kernel as k\n"), "sgl_kernel");
  UNIT_STRINGS(value_of("if a:\n  import sgl_kernel as k\nelse:\n  import b as k\nHERE(k)\n"), "sgl_kernel?");
  UNIT_STRINGS(value_of("import sgl_kernel as k\nHERE(k)\nk = f()\n"), "sgl_kernel?");
  UNIT_STRINGS(value_of("import sgl_kernel as k\nk = f()\nHERE(k)\n"), "");
  UNIT_STRINGS(value_of("import sgl_kernel as k\nk = f()\ndef g(): HERE(k)\n"), "sgl_kernel?");
  UNIT_STRINGS(value_of("import sgl_kernel as k\nimport sgl_kernel as k\nHERE(k)\n"), "sgl_kernel");
  UNIT_STRINGS(value_of("for a in b:\n  HERE(k)\n  import sgl_kernel as k\n"), "sgl_kernel");
  UNIT_STRINGS(value_of("def f():\n  global k\n  import sgl_kernel as k\nHERE(k)\n"), "sgl_kernel^");
  UNIT_STRINGS(value_of("def f():\n  k = 1\n  def g():\n    nonlocal k\n    import sgl_kernel as k\n  HERE(k)\n"),
               "sgl_kernel?^");
  UNIT_STRINGS(value_of("k = k\nHERE(k)\n"), "");
  UNIT_STRINGS(value_of("a = b\nb = a\nHERE(a)\n"), "");
}

static void made_without_import(void) {
  UNIT_STRINGS(value_of("import sgl_kernel\nk = sgl_kernel\nHERE(k)\n"), "sgl_kernel=");
  UNIT_STRINGS(value_of("import sgl_kernel\na = k = sgl_kernel\nHERE(a)\n"), "sgl_kernel=");
  UNIT_STRINGS(value_of("import sgl_kernel\nHERE((k := sgl_kernel))\n"), "sgl_kernel=");
  UNIT_STRINGS(value_of("import sgl_kernel\nHERE(sgl_kernel if a else None)\n"), "sgl_kernel=");
  UNIT_STRINGS(value_of("import importlib\nHERE(importlib.import_module('sgl_kernel'))\n"), "sgl_kernel=");
  UNIT_STRINGS(value_of("from importlib import import_module as i\nN = 'sgl_' + 'kernel'\nHERE(i(N))\n"),
               "sgl_kernel=");
  UNIT_STRINGS(value_of("import importlib\nHERE(importlib.import_module('.gemm', 'sgl_kernel'))\n"),
               "sgl_kernel.gemm=");
  UNIT_STRINGS(value_of("HERE(__import__('sgl_kernel.gemm'))\n"), "sgl_kernel=");
  UNIT_STRINGS(value_of("HERE(__import__('sgl_kernel.gemm', fromlist=['a']))\n"), "sgl_kernel.gemm=");
  UNIT_STRINGS(value_of("import pytest\nHERE(pytest.importorskip('sgl_kernel'))\n"), "sgl_kernel=");
  UNIT_STRINGS(value_of("import sys\nHERE(sys.modules['sgl_kernel'])\n"), "sgl_kernel=");
  UNIT_STRINGS(value_of("import torch\nHERE(getattr(torch.ops, 'sgl_kernel'))\n"), "torch.ops.sgl_kernel=");
  UNIT_STRINGS(value_of("def import_module(a): pass\nHERE(import_module('sgl_kernel'))\n"), "");
  UNIT_STRINGS(value_of("from torch.library import Library\nHERE(Library('sgl_kernel', 'DEF'))\n"), "<library>=");
  UNIT_STRINGS(value_of("from torch.library import Library\nHERE(Library('b', 'DEF'))\n"), "");
}

/* T: body of a try, H: its fallback arm, V: another vendor, P: a test that asks for the name "n". */
static const char *guards_of(const char *text) {
  static char out[8];
  struct py_unit unit;
  open_unit(&unit, text);
  py_id node = marked(&unit);
  CU_ASSERT_FATAL(node != 0);
  snprintf(out, sizeof out, "%s%s%s%s", unit.guards[node] & PY_GUARD_TRY ? "T" : "",
           unit.guards[node] & PY_GUARD_HANDLER ? "H" : "", unit.guards[node] & PY_GUARD_VENDOR ? "V" : "",
           py_probed(&unit, node, "n") ? "P" : "");
  close_unit(&unit);
  return out;
}

static void handlers(void) {
  UNIT_STRINGS(guards_of("try: HERE(a)\nexcept ImportError: b\n"), "T");
  UNIT_STRINGS(guards_of("try: HERE(a)\nexcept (OSError, m.AttributeError) as e: b\n"), "T");
  UNIT_STRINGS(guards_of("try: HERE(a)\nexcept: b\n"), "T");
  UNIT_STRINGS(guards_of("try: HERE(a)\nexcept* ModuleNotFoundError: b\n"), "T");
  UNIT_STRINGS(guards_of("try: HERE(a)\nexcept ValueError: b\nexcept Exception: c\n"), "T");
  UNIT_STRINGS(guards_of("E = (ImportError,)\ntry: HERE(a)\nexcept E: b\n"), "T");
  UNIT_STRINGS(guards_of("try: HERE(a)\nexcept ValueError as ImportError: b\n"), "");
  UNIT_STRINGS(guards_of("try: HERE(a)\nfinally: b\n"), "");
  UNIT_STRINGS(guards_of("try: a\nexcept ImportError: HERE(b)\n"), "H");
  UNIT_STRINGS(guards_of("try: a\nexcept ValueError: HERE(b)\nexcept ImportError: c\n"), "");
  UNIT_STRINGS(guards_of("try: a\nexcept ImportError: b\nelse: HERE(c)\n"), "");
  UNIT_STRINGS(guards_of("try: a\nexcept ImportError: b\nfinally: HERE(c)\n"), "");
  UNIT_STRINGS(guards_of("try:\n  def f(): HERE(a)\nexcept ImportError: b\n"), "");
  UNIT_STRINGS(guards_of("try:\n  def f(b=HERE(a)): pass\nexcept ImportError: b\n"), "T");
  UNIT_STRINGS(guards_of("try:\n  class A: HERE(a)\nexcept ImportError: b\n"), "T");
  UNIT_STRINGS(guards_of("from contextlib import suppress as s\nwith s(ImportError): HERE(a)\n"), "T");
  UNIT_STRINGS(guards_of("with contextlib.suppress(KeyError): HERE(a)\n"), "");
  UNIT_STRINGS(guards_of("with open(ImportError): HERE(a)\n"), "");
}

static void vendors(void) {
  UNIT_STRINGS(guards_of("if is_musa(): HERE(a)\n"), "V");
  UNIT_STRINGS(guards_of("if a: b\nelif torch.version.hip: HERE(c)\n"), "V");
  UNIT_STRINGS(guards_of("if is_musa(): a\nelse: HERE(b)\n"), "");
  UNIT_STRINGS(guards_of("if not isRocm6: HERE(a)\n"), "");
  UNIT_STRINGS(guards_of("if not isRocm6: a\nelif b: c\nelse: HERE(d)\n"), "V");
  UNIT_STRINGS(guards_of("if device != 'xpu': HERE(a)\n"), "");
  UNIT_STRINGS(guards_of("if device in ('npu', 'cpu'): HERE(a)\n"), "V");
  UNIT_STRINGS(guards_of("if torch.version.hip is None: HERE(a)\n"), "");
  UNIT_STRINGS(guards_of("if cuda or hip: HERE(a)\n"), "V");
  UNIT_STRINGS(guards_of("if cuda and not hip: HERE(a)\n"), "");
  UNIT_STRINGS(guards_of("if is_hip():\n  def f(): HERE(a)\n"), "V");
  UNIT_STRINGS(guards_of("if is_hip(): sys.exit()\nHERE(a)\n"), "");
  UNIT_STRINGS(guards_of("if not is_hip(): raise E\nHERE(a)\n"), "V");
  UNIT_STRINGS(guards_of("b = HERE(a) if is_hip else c\n"), "V");
  UNIT_STRINGS(guards_of("b = is_hip and HERE(a)\n"), "V");
  UNIT_STRINGS(guards_of("b = is_hip or HERE(a)\n"), "");
  UNIT_STRINGS(guards_of("if ship or chip or champs: HERE(a)\n"), "");
  UNIT_STRINGS(guards_of("if machine() == 'amd64': HERE(a)\n"), "");
  UNIT_STRINGS(guards_of("alt = is_npu()\nif alt: HERE(a)\n"), "V");
}

static void probes(void) {
  UNIT_STRINGS(guards_of("if hasattr(m, 'n'): HERE(a)\n"), "P");
  UNIT_STRINGS(guards_of("if hasattr(m, 'o'): HERE(a)\n"), "");
  UNIT_STRINGS(guards_of("if not hasattr(m, 'n'): a\nelif b: c\nelse: HERE(d)\n"), "P");
  UNIT_STRINGS(guards_of("if getattr(m, 'n', None) is not None: HERE(a)\n"), "P");
  UNIT_STRINGS(guards_of("F = hasattr(m, 'n')\nif F and b: HERE(a)\n"), "P");
  UNIT_STRINGS(guards_of("N = 'n'\nif hasattr(m, N): HERE(a)\n"), "P");
  UNIT_STRINGS(guards_of("def f():\n  if not hasattr(m, 'n'): return\n  HERE(a)\n"), "P");
  UNIT_STRINGS(guards_of("def f():\n  if not hasattr(m, 'n'): b\n  HERE(a)\n"), "");
  UNIT_STRINGS(guards_of("b = HERE(a) if hasattr(m, 'n') else c\n"), "P");
  UNIT_STRINGS(guards_of("b = hasattr(m, 'n') and HERE(a)\n"), "P");
  UNIT_STRINGS(guards_of("@skipif(not hasattr(m, 'n'))\ndef f(): HERE(a)\n"), "P");
  UNIT_STRINGS(guards_of("if 'n' in dir(m): HERE(a)\n"), "P");
}

static const struct unit_test tests[] = {
    {"imports", imports},
    {"scopes", scopes},
    {"several_bindings", several_bindings},
    {"made_without_import", made_without_import},
    {"handlers", handlers},
    {"vendors", vendors},
    {"probes", probes},
};

UNIT_MAIN("python_scopes", tests)
