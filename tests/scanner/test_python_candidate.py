#!/usr/bin/env python3
"""Files that are decided without a tree: the result is that of their tree. Each file is scanned a second time with a
comment that asks for the tree: with the tool's name in it, as in one that accepts a use."""
import itertools, json, pathlib, random, re

from tool import Tree, equal, main

CASES = pathlib.Path(__file__).resolve().parents[1] / "cases"
MARK = b"\n# the tool is sgl-migrate: it reads this\n"
NAME = "bmm_fp8"
JIT, SGLANG = ["--kernel", "0.4.10", "--to", "jit"], ["--kernel", "0.4.10", "--to", "sglang@0.5.23"]
BINDINGS = [
    "", "def NAME(x):\n    return x", "def f():\n    def NAME(): pass", "class A:\n    def NAME(self): pass", "class NAME: pass",
    "NAME = 1", "NAME: int = 1", "NAME: int", "for NAME in x: pass", "with x as NAME: pass", "def f(NAME): pass", "f(NAME=1)",
    "f = lambda NAME: 1", "import NAME", "import a.NAME", "import a.b as NAME", "import sglang.a as NAME", "import NAME as a",
    "from a import NAME", "from a import NAME as b", "from a import b as NAME", "from .NAME import x", "from . import NAME",
    "from .a import (\n    b,\n    NAME,\n)", "from a import (  # a\n    NAME as NAME,\n)", "from a import b, \\\n    NAME",
    "from sglang.a import NAME", "from sglang.a import b as NAME", "from sglang.a import (\n    NAME,\n)", "from sglang.a import b; NAME()",
    "from a import b; NAME()", "from a import b\nNAME()", "x.NAME()", "x = ...\nNAME = 1", "x = ...; NAME(1)", "(NAME := 1)", "del NAME",
    "def f():\n    global NAME\n    NAME = 1", "try: pass\nexcept E as NAME: pass", "match x:\n    case NAME: pass", "[1 for NAME in x]",
    "NAME()", "f'{(NAME := 1)}'", "def NAME(): pass\nfrom sglang.a import NAME", "from sglang import a\nfrom a import NAME",
    "def f():\n    yield from a\nNAME = 2", "raise x from NAME", "import sglang; from a import NAME", "# def NAME():", "'''def NAME(): pass'''",
    "x = '''\n'''; NAME = 1", "x = \"\\\"\"; NAME = 1", "x = r'\\'\nNAME = 1", "x = ['a', # '\n 'b']\nNAME = 1", "\\\nNAME = 1",
    "def  \\\n NAME(): pass", "async def NAME(): pass", "@NAME\ndef f(): pass", "if a:\n\tdef NAME(): pass", "NAME[0] = 1", "print(f'{x!r:>{NAME}}')",
    "from a import b as c, NAME as d\nd = 1", "a.def_NAME = 1\nNAMEs = 2",
]
MENTIONS = [
    "# NAME is gone", "# a.NAME and b::NAME", "# from a import NAME", "# from sgl_kernel import NAME", "# sgl_kernel.NAME", "# NAME.py",
    "# /*NAME=*/1", "# \u00e9NAME", "x = 1  # NAME", '"""NAME"""', '"""About.\n\n    NAME does it.\n    """', "def f():\n    '''NAME is old'''",
    "class A:\n    r'''NAME \\d'''", "x = 'NAME'", "f('NAME')", "print('NAME')", "logger.info_once('NAME')", "f(x, ['NAME', 1])", "print(('NAME'))",
    "print(x if y else 'NAME')", "f({'NAME': 1})", "f({1: 'NAME'})", "f('use NAME here now')", "f(a='NAME')", "f(help='NAME')", "f('NAME' 's')",
    "f('NAME'\n  's a b')", "print(f'NAME<{x}>')", "f(f'NAME<{x}>')", "f'{x}.NAME'", "f('NAME'.format(1))", "print('NAME'.format(1))",
    "raise E('NAME')", "raise E(('NAME',))", "assert x, 'NAME'", "assert x, f('NAME')", "x = 'a NAME\\n'", "x = 'a b\\\nNAME c d'", "'NAME.py\\\nx is old'",
    "f('a NAME.py b c')", "print('NAME', f('NAME'))", "x = ('NAME')", "return_('NAME')", "f((  # NAME\n    'NAME',))", "u'''NAME'''", "b'''NAME'''",
    "'''a''' '''NAME'''", "x = 1; '''NAME'''", "'''NAME'''; x = 1", "x = \\\n'''NAME'''", "f(\n'''NAME'''\n)", "f(\n'''\nNAME\n'''\n)",
    "x['NAME']", "def f(a='NAME'): pass", "def f(a: 'NAME'): pass", "@skip('NAME')\ndef f(): pass", "print(*['NAME'])", "print(['NAME'][0])",
    "warn('a')('NAME')", "warnings.warn(f('NAME'))", "logging.log.a('NAME')", "f(print)('NAME')", "x = {'NAME'}", "lambda: 'NAME'", "print(lambda: 'NAME')",
    "print(f(lambda: 'NAME'))", "print(a, 'NAME',)", "if('NAME'): pass", "raise(E)('NAME')", "print(not('NAME'))", "print(x if(y)else('NAME'))",
    "print('\\x1b[1mNAME\\x1b[0m')", '"""\\033[0mNAME is old"""', "print('\\x1bNAME a b')", '"""\\x41NAME"""', '"""\\8NAME"""', '"""\\x1NAME"""',
    '"""\\0NAME"""', '"""\\07NAME \\x0aNAME"""', '"""\\x4eNAME"""', "f('\\x1b' 'NAME')", "print(f'{{NAME}}')", "print(f'{{{NAME}}}')", "print(f'{{{{NAME')",
    "print(f'{{{x}' f'}}NAME')", "print(f'{x!r:{NAME}}}}')", "print(f'{{}}NAME a b')", "print(f'{x:{{NAME')", "print(f'}}{{' 'NAME')", "print(rf'{{\\x1bNAME')",
    "# NAME\nprint('\\x62mm_fp8')", "# NAME\nprint('\\142mm_fp8')", "# NAME\nprint('\\x1b\\x62mm_fp8')", "# NAME\nprint(f'{{}}' '\\x62mm_fp8')",
    "print('\\xe9NAME')", "print('NAME\\xe9')", "print(b'\\xff\\xd8NAME\\xff')", "print('\\u2500 NAME')", "print('\\U0001f600NAME a b')", "# NAME\nprint('\\u0062mm_fp8')",
    "# NAME\nprint('\\U00000062mm_fp8')", "print('\\u00e9NAME')", "print('a\\x2eNAME')", "print('a\\x3a:NAME')", "print('\\x2fNAME.py')", "print('\\u123NAME')",
    "# NAME\nprint(b'\\u0062mm_fp8')", "# NAME\nprint('\\N{LATIN SMALL LETTER B}mm_fp8')", "print('NAME\\x2epy')", "print('sgl_kernel\\x2eNAME')", "print('\\x28NAME\\x29')",
    "def f():\n    return'\\nNAME a b'", "x = y or'\\nNAME a b'", "x = 'C:\\dsv3_router_gemm a b'", "f(f'NAME')", "f(rf'\\NAME')", "raise\\\n    E('NAME')",
    "f(a / 'NAME')", "f([a / 'NAME'])", "print(a / 'NAME')", "x = (a / 'NAME')", "print([a / 'NAME'])",
]
OWNERS = [
    "import sgl_kernel as k\n", "from sgl_kernel import \\\n    NAME\n", "from sgl_kernel import a\n", "import kernels\n",
]
SELF = [
    "class A:\n    def f(self, k):\n        self.NAME = k.a\n", "class A:\n    def f(self):\n        self = k\n        return self.NAME\n",
    "def f(a, self=k):\n    return self.NAME\n", "for self in [k]:\n    self.NAME\n", "self, x = k, 1\nself.NAME\n", "x, self = 1, k\nself.NAME\n",
    "import sgl_kernel as self\nself.NAME\n", "class A:\n    def f(self):\n        self.k = k\n        self.k.NAME\n", "with k as self:\n    self.NAME\n",
    "class A:\n    k = k\n    def f(self): return self.k.NAME\n", "(self := k)\nself.NAME\n", "def self(): return k\nself().NAME\n", "x.self.NAME; self_.NAME\n",
    "class A:\n    def f(self,\n          x):  # self-made\n        return (self.NAME, self)\n", "self \\\n = k\nself.NAME\n", "lambda self: self.NAME\n",
    "def f(self): return self.NAME  # for self-made\n", "(self) = k\nself.NAME\n", "(x, self) = (1, k)\nself.NAME\n", "[self] = [k]\nself.NAME\n",
    "(x, self), y = (1, k), 2\nself.NAME\n", "for (self) in [k]:\n    self.NAME\n",
]
WAYS = [
    "getattr(k, 'bmm' '_f' 'p8')\n", "getattr(k, 'b' 'm' 'm_' r'fp8')\n", "getattr(k, 'bmm_' '' 'fp8')\n", "getattr(k, ('bmm' + '_f' + 'p8'))\n",
    "from sgl_kernel import  *\nNAME(1)\n", "from sgl_kernel import\t*\nNAME(1)\n", "from sgl_kernel import*\nNAME(1)\n", "from sgl_kernel import \\\n    *\nNAME(1)\n",
    "from unittest import mock\nmock.patch.multiple (k, NAME=1)\n", "from sgl_kernel. gemm import NAME\n", "from sgl_kernel .gemm import NAME\n",
    "from sgl_kernel \\\n    .gemm import NAME\n", "from sgl_kernel \\\n    import NAME\n", "import sgl_kernel .gemm as m\nm.NAME\n",
]
SPLIT = [
    "import importlib\nimportlib.import_module('sgl' '_kernel').NAME\n", "import importlib\nimportlib.import_module('sg' + 'l_k' + 'ernel').NAME\n",
    "__import__('sgl' '_kernel').NAME\n", "import sys\nsys.modules['sgl' '_kernel'].NAME\n", "import torch\ngetattr(torch.ops, 'sgl' '_kernel').NAME\n",
    "@patch('sgl' '_kernel.' 'NAME')\ndef f(): pass\n",
]
NOT_UTF8 = [b"# bmm_fp8\nx = '\xe9'\n", b"import sgl_kernel\nx = '\xff'\n", b"# coding: utf-8mb4\n# bmm_fp8\n", b"# coding: utf8-\n# bmm_fp8\n"]


def texts():
    for number, (binding, mention) in enumerate(itertools.product(BINDINGS, MENTIONS)):
        yield "\n".join([mention, binding] if number % 2 else [binding, mention]) + "\n"
    for owner, mention in itertools.product(OWNERS, MENTIONS[:12] + BINDINGS):
        yield owner + mention + "\n# NAME and k.NAME\n"
        yield (owner + mention + "\n").replace("\n", "\r\n")
    for owner, text in itertools.product(OWNERS, SELF + WAYS):
        yield owner + text
    yield from SPLIT


def results(files, *choice):
    """Findings by path, and the paths that could not be read as Python."""
    with Tree(files) as tree:
        done = tree.run("scan", "--no-cache", "--format", "json", *choice, ".")
        if not done.out:
            raise AssertionError(done.err)
        report = json.loads(done.out)
    rows = {}
    for f in report["findings"]:
        rows.setdefault(f["path"], []).append((f["line"], f["column"], f["symbol"], f["verdict"], f["evidence"], f["level"], f["message"]))
    return rows, {trouble["path"] for trouble in report["troubles"] if "path" in trouble}


def compare(files, *choice):
    """The paths with another result; of a text that is no Python neither the mentions nor the reason count."""
    fast, _ = results(files, *choice)
    slow, refused = results({path: text + MARK for path, text in files.items()}, *choice)
    live = lambda rows: [row[:6] for row in rows if row[3] != "mention"]
    return [(path, fast.get(path), slow.get(path), files[path].decode(errors="replace")) for path in files
            if (live(fast.get(path, [])) != live(slow.get(path, [])) if path in refused else fast.get(path) != slow.get(path))]


def check(files, *choices):
    for choice in choices:
        wrong = compare(files, *choice)
        if wrong:
            path, fast, slow, text = wrong[0]
            raise AssertionError(f"{len(wrong)} of {len(files)} differ; {path}:\n{text[:2000]}\nwithout a tree: {fast}\nwith one: {slow}")


def test_forms():
    check({f"f{i}.py": text.replace("NAME", NAME).encode() for i, text in enumerate(texts())}, JIT)


def test_not_decoded():
    """What Python cannot read is said, however little the file has."""
    files = {f"f{i}.py": text for i, text in enumerate(NOT_UTF8)}
    equal(results(files, *JIT)[1], set(files))


def inputs():
    return {str(path.relative_to(CASES)): path.read_bytes() for path in sorted(CASES.rglob("*.py"))
            if b"sgl-migrate:" not in path.read_bytes()}


def test_cases():
    files = inputs()
    equal(len(files) > 200, True)
    check(files, JIT, SGLANG)


def damaged(text, dice):
    lines = text.split(b"\n")
    at, way = dice.randrange(len(lines)), dice.randrange(5)
    if way == 0:
        del lines[at]
    elif way == 1:
        lines[at:at] = [lines[dice.randrange(len(lines))]]
    elif way == 2:
        lines = lines[:at]
    elif way == 3:
        lines[at] = re.sub(rb"[\"'()\[\]{}]", b"", lines[at], count=1)
    else:
        lines[at] = lines[at].replace(b"sgl_kernel", b"kernels")
    return b"\n".join(lines)


def test_damaged_cases():
    dice = random.Random(5)
    check({f"{i}/{path}": damaged(damaged(text, dice), dice) for i in range(2) for path, text in inputs().items()}, JIT)


main(globals())
