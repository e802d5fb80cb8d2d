#!/usr/bin/env python3
"""Which modules bind the package to a name that others import: the look before a module is parsed must not lose one."""
from tool import ARGS, Tree, equal, main

USE = "from kernels import k\n\nk.dsv3_router_gemm(1)\n"
EXPORTS = {
    "plain": "import sgl_kernel as k\n",
    "in a try": "try:\n    import sgl_kernel as k\nexcept ImportError:\n    k = None\n",
    "in an if in an if": "if A:\n    def f():\n        pass\n\n    if B:\n        # def g():\n        import sgl_kernel as k\n",
    "after a function": "def f():\n    return 1\nimport sgl_kernel as k\n",
    "an operator namespace over lines": "import torch\nk = (\n        torch\n            .ops.sgl_kernel)\n",
    "by a call": "import importlib\nk = importlib.import_module(\n    'sgl_kernel'\n)\n",
    "a module": "from sgl_kernel import (\n    gemm as k,\n)\n",
    "with tabs": "if A:\n\timport sgl_kernel as k\n",
    "the last of many": "".join(f"def f{i}():\n    import sgl_kernel\n" for i in range(70)) + "import sgl_kernel as k\n",
    "by a function with global": "def load():\n    global k\n    import sgl_kernel as k\n",
    "CRLF": "if A:\r\n    import sgl_kernel as k\r\n",
    "two blanks": "import  sgl_kernel as k\n",
    "a tab": "import\tsgl_kernel as k\n",
    "a backslash": "import \\\n    sgl_kernel as k\n",
    "the second of one statement": "import os, sgl_kernel as k\n",
    "the second of one statement, without a blank": "import os,sgl_kernel\nk = sgl_kernel\n",
    "the second of one statement, in CRLF": "import os, \\\r\n    sgl_kernel\r\nk = sgl_kernel\r\n",
    "behind a text at the start of lines": 'if A:\n    x = """\ndef f(): pass"""\n    import sgl_kernel as k\n',
    "a module by two blanks": "import  sgl_kernel.gemm as k\n",
    "a module behind a bracket in a comment": "from sgl_kernel import (  # a)\n    gemm as k)\n",
    "a module behind a backslash": "from sgl_kernel import a, \\\r\n    gemm as k\r\n",
    "an operator namespace with blanks": "import torch\nk = torch . ops . sgl_kernel\n",
    "an operator namespace by name": "import torch\nk = getattr(torch.ops, 'sgl_kernel')\n",
    "an operator namespace imported": "from torch.ops import (sgl_kernel as k)\n",
    "an operator namespace imported below a comment": "from torch.ops import (  # ours\n    sgl_kernel as k)\n",
    "from the loaded modules": "from sys import modules\nk = modules['sgl_kernel']\n",
}
NONE = {
    "an operator of the namespace": "import torch\nk = torch.ops.sgl_kernel.dsv3_fused_a_gemm\n",
    "an operator over lines": "import torch\nk = (torch.ops.sgl_kernel\n    .dsv3_fused_a_gemm)\n",
    "another package": "import sgl_kernel_npu as k\n",
    "of a function": "def k():\n    import sgl_kernel as k\n",
    "of a function in an if": "if A:\n    def f():\n        x = 1\n\n        k = torch.ops.sgl_kernel\n",
    "of a class": "class A:\n    import sgl_kernel as k\n",
    "another name": "import sgl_kernel as other\nk = print\n",
}
RETURNED = {
    "beside an operator": "import torch\nx = torch.ops.sgl_kernel.gelu\n\ndef k():\n    return torch.ops.sgl_kernel\n",
    "imported inside": "def k():\n    import sgl_kernel\n    return sgl_kernel\n",
}
STARS = [("from sgl_kernel import%s*\n" % gap, "from kernels import%s*\n\ndsv3_router_gemm(1)\n" % other)
         for gap in (" ", "  ", "", " \\\n    ") for other in (" ", "  ", "")]


def found(module, use=USE):
    with Tree({"kernels.py": module, "use.py": use}) as tree:
        return any(row.startswith("use.py:3 ") for row in tree.rows())


def test_exports():
    equal([name for name, text in EXPORTS.items() if not found(text)], [])


def test_returned():
    equal([name for name, text in RETURNED.items() if not found(text, USE.replace("k.", "k()."))], [])


def test_stars():
    equal([(text, use) for text, use in STARS if not found(text, use)], [])


def test_no_exports():
    equal([name for name, text in NONE.items() if found(text)], [])


main(globals())
