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


RETURNED = "import torch\nx = torch.ops.sgl_kernel.gelu\n\ndef k():\n    return torch.ops.sgl_kernel\n"


def found(module, use=USE):
    with Tree({"kernels.py": module, "use.py": use}) as tree:
        return any(row.startswith("use.py:3 ") for row in tree.rows())


def test_exports():
    equal([name for name, text in EXPORTS.items() if not found(text)], [])


def test_returned_beside_an_operator():
    equal(found(RETURNED, USE.replace("k.", "k().")), True)


def test_no_exports():
    equal([name for name, text in NONE.items() if found(text)], [])


main(globals())
