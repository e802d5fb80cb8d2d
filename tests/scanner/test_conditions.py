#!/usr/bin/env python3
"""Conditions around a use that are narrower than the new function are named in the result's message."""
import json, re
from tool import ARGS, Tree, contains, equal, main

IMPORT = "from sgl_kernel import dsv3_router_gemm as r\n"

# text of one Python file: the conditions that its first result names
PYTHON = {
    "tokens in a plain if": (IMPORT + "def f(h, w):\n    if h.shape[0] <= 16:\n        return r(h, w)\n", ["h.shape[0] <= 16"]),
    "a bound that the new kernel has too": (IMPORT + "def f(h, w):\n    if h.size(0) <= 64 and sm >= 80:\n        return r(h, w)\n", []),
    "no upper bound": (IMPORT + "def f(h, w):\n    if h.shape[0] > 0 and num_tokens != 3:\n        return r(h, w)\n", []),
    "the real caller's chain": (
        IMPORT + "def f(self, h):\n    if (\n        _is_cuda\n        and h.shape[0] <= 16  # small\n        and h.shape[1] == 7168\n"
        "        and (self.weight.shape[0] == 256 or self.weight.shape[0] == 384)\n        and _device_sm >= 90\n    ):\n"
        "        return r(h, self.weight, out_dtype=torch.float32)\n    return None\n",
        ["h.shape[0] <= 16", "h.shape[1] == 7168", "self.weight.shape[0] == 256", "self.weight.shape[0] == 384", "_device_sm >= 90"]),
    "around the import": ("def f(h, num_tokens):\n    if num_tokens < 4:\n        from sgl_kernel import dsv3_router_gemm\n"
                          "        return dsv3_router_gemm(h)\n", ["num_tokens < 4"]),
    "number of experts in a tuple": (IMPORT + "def f(h, w, num_experts):\n    if num_experts in (256, 384):\n        return r(h, w)\n",
                                     ["num_experts in (256, 384)"]),
    "not in, and then an early return": (IMPORT + "def f(h, w, hidden_size):\n    if hidden_size not in (7168, 6144):\n        return 1\n"
                                         "    return r(h, w)\n", ["hidden_size not in (7168, 6144)"]),
    "an early return": (IMPORT + "def f(h, w):\n    m, k = h.shape\n    if m > 16 or k != 7168:\n        return torch.mm(h, w)\n"
                        "    return r(h, w)\n", ["m > 16", "k != 7168"]),
    "an early raise does not narrow what comes before": (IMPORT + "def f(h, w):\n    r(h, w)\n    if h.shape[0] > 16:\n        raise ValueError\n", []),
    "a disjunction with an open arm": (IMPORT + "def f(h, w):\n    if h.shape[0] <= 16 or forced:\n        return r(h, w)\n", []),
    "asserts": (IMPORT + "def f(h, w):\n    assert h.shape[0] <= 16, 'few'\n    return r(h, w)\n", ["h.shape[0] <= 16"]),
    "a ternary": (IMPORT + "def f(h, w):\n    return r(h, w) if h.shape[0] < 9 else h @ w.t()\n", ["h.shape[0] < 9"]),
    "the other arm of a ternary": (IMPORT + "def f(h, w):\n    return h @ w.t() if h.shape[0] >= 9 else r(h, w)\n", ["h.shape[0] >= 9"]),
    "else and elif": (IMPORT + "def f(h, w):\n    if h.shape[0] > 16:\n        pass\n    elif capability < (9, 0):\n        pass\n    else:\n"
                      "        return r(h, w)\n", ["h.shape[0] > 16", "capability < (9, 0)"]),
    "short circuit": (IMPORT + "def f(h, w):\n    return h.shape[0] <= 8 and r(h, w)\n", ["h.shape[0] <= 8"]),
    "a helper of the function": (IMPORT + "def f(h, w):\n    small = 0 < h.shape[0] <= 16\n    if small:\n        return r(h, w)\n",
                                 ["0 < h.shape[0] <= 16"]),
    "a helper that is bound twice": (IMPORT + "def f(h, w):\n    small = h.shape[0] <= 16\n    small = flag\n    if small:\n        return r(h, w)\n", []),
    "an attribute that __init__ sets": (
        IMPORT + "class G:\n    def __init__(self, w):\n        self.use = False\n        if w.shape[1] == 7168:\n            self.use = device_sm >= 90\n"
        "    def f(self, h, w):\n        if self.use:\n            return r(h, w)\n", ["device_sm >= 90"]),
    "a named constant": (IMPORT + "MAX_M = 16\ndef f(h, w):\n    if h.shape[0] <= MAX_M:\n        return r(h, w)\n", ["h.shape[0] <= MAX_M"]),
    "SM versions": (IMPORT + "def f(h, w):\n    if torch.cuda.get_device_capability()[0] >= 9:\n        return r(h, w)\n",
                    ["torch.cuda.get_device_capability()[0] >= 9"]),
    "SM by a function": (IMPORT + "def f(h, w):\n    if is_sm90_supported() and not is_hip():\n        return r(h, w)\n", ["is_sm90_supported()"]),
    "SM in words of capitals": (IMPORT + "def f(h, w):\n    if isSM90Supported() and getSMVersion() >= 90 and getSamples() >= 90:\n        return r(h, w)\n",
                               ["isSM90Supported()", "getSMVersion() >= 90"]),
    "a side path of FlashInfer": (IMPORT + "def f(h, w):\n    if use_flashinfer_router:\n        return other(h)\n    return r(h, w)\n",
                                  ["use_flashinfer_router"]),
    "conditions on other things": (IMPORT + "def f(h, w):\n    if h.is_cuda and h.dtype == torch.bfloat16 and depth <= 3 and layers == 61:\n"
                                   "        return r(h, w)\n", []),
    "a comparison turned around": (IMPORT + "def f(h, w, num_tokens):\n    if 16 >= num_tokens:\n        return r(h, w)\n", ["16 >= num_tokens"]),
    "a function of the same name elsewhere": (IMPORT + "def g(r, h):\n    if h.shape[0] <= 16:\n        return r(h)\n", []),
    "a qualified use": ("import sgl_kernel\ndef f(h, w):\n    if len(tokens) <= 16:\n        return sgl_kernel.dsv3_router_gemm(h, w)\n",
                        ["len(tokens) <= 16"]),
    "an operator": ("import torch\ndef f(o, h, w):\n    while num_tokens <= 16:\n        torch.ops.sgl_kernel.dsv3_router_gemm(o, h, w)\n",
                    ["num_tokens <= 16"]),
    "helpers in a circle": (IMPORT + "def f(h, w):\n    a = b and b\n    b = a and a\n    if a:\n        return r(h, w)\n", []),
}


HEAD = "#include \"sgl_kernel_ops.h\"\n"


def body(text, before=""):
    return HEAD + before + "void f(at::Tensor& o, at::Tensor a, at::Tensor w, int num_tokens, int hidden_dim, int sm) {\n" + text + "\n}\n"


# text of one CUDA file: the conditions that its first result names
CXX = {
    "a plain if": (body("  if (a.size(0) <= 16) {\n    dsv3_router_gemm(o, a, w);\n  }"), ["a.size(0) <= 16"]),
    "no braces, and a chain": (body("  if (num_tokens <= 16 && hidden_dim == 7168 && sm >= 90)\n    dsv3_router_gemm(o, a, w);"),
                               ["num_tokens <= 16", "hidden_dim == 7168", "sm >= 90"]),
    "what the new kernel has too": (body("  if (num_tokens <= 64 && hidden_dim % 256 == 0 && sm >= 80)\n    dsv3_router_gemm(o, a, w);"), []),
    "an early return": (body("  if (num_tokens > 16) return;\n  dsv3_router_gemm(o, a, w);"), ["num_tokens > 16"]),
    "an early return in braces": (body("  if (num_tokens > 16 || sm < 90) {\n    at::mm_out(o, a, w);\n    return;\n  }\n  dsv3_router_gemm(o, a, w);"),
                                  ["num_tokens > 16", "sm < 90"]),
    "an early block that goes on": (body("  if (num_tokens > 16) {\n    at::mm_out(o, a, w);\n  }\n  dsv3_router_gemm(o, a, w);"), []),
    "a return with an else": (body("  if (num_tokens > 16) return; else x();\n  dsv3_router_gemm(o, a, w);"), []),
    "else": (body("  if (num_tokens > 16) {\n    x();\n  } else if (sm < 90) {\n    y();\n  } else {\n    dsv3_router_gemm(o, a, w);\n  }"),
             ["num_tokens > 16", "sm < 90"]),
    "else without braces": (body("  if (num_tokens > 16)\n    x();\n  else\n    dsv3_router_gemm(o, a, w);"), ["num_tokens > 16"]),
    "else if": (body("  if (mode) {\n    x();\n  } else if (num_experts == 256 || num_experts == 384) {\n    dsv3_router_gemm(o, a, w);\n  }"),
                ["num_experts == 256", "num_experts == 384"]),
    "a ternary": (body("  num_tokens <= 8 ? dsv3_router_gemm(o, a, w) : x();"), ["num_tokens <= 8"]),
    "the other arm of a ternary": (body("  num_tokens > 8 ? x() : dsv3_router_gemm(o, a, w);"), ["num_tokens > 8"]),
    "short circuit": (body("  bool done = num_tokens <= 8 && (dsv3_router_gemm(o, a, w), true);"), ["num_tokens <= 8"]),
    "checks": (body("  TORCH_CHECK(num_tokens <= 16, \"few, \", num_tokens);\n  assert(hidden_dim == 7168);\n  dsv3_router_gemm(o, a, w);"),
               ["num_tokens <= 16", "hidden_dim == 7168"]),
    "a check behind it": (body("  dsv3_router_gemm(o, a, w);\n  TORCH_CHECK(num_tokens <= 16);"), []),
    "a helper": (body("  const bool small = num_tokens <= kMost && !use_other;\n  if (small) {\n    dsv3_router_gemm(o, a, w);\n  }",
                      "constexpr int kMost = 16;\n"), ["num_tokens <= kMost"]),
    "a lambda": (body("  if (sm >= 90) {\n    run([&] {\n      if constexpr (kHidden == 7168) dsv3_router_gemm(o, a, w);\n    });\n  }"),
                 ["sm >= 90", "kHidden == 7168"]),
    "another function's conditions": (HEAD + "void g(int num_tokens) {\n  if (num_tokens > 16) return;\n}\n"
                                      + body("  dsv3_router_gemm(o, a, w);")[len(HEAD):], []),
    "a loop and a block": (body("  for (int i = 0; i < 3; i++) {\n    while (num_tokens <= 4) {\n      { dsv3_router_gemm(o, a, w); }\n    }\n  }"),
                           ["num_tokens <= 4"]),
    "a side path of FlashInfer": (body("  if (!use_flashinfer) dsv3_router_gemm(o, a, w);"), ["use_flashinfer"]),
    "a branch of the preprocessor": (body("#ifdef NO\n  if (num_tokens <= 2)\n#else\n  if (num_tokens <= 16)\n#endif\n"
                                          "  { dsv3_router_gemm(o, a, w); }"), ["num_tokens <= 16"]),
    "brackets that do not match": (HEAD + "} } ) ] void f() { if (num_tokens <= 16) { dsv3_router_gemm(o, a, w); ( [ {\n", ["num_tokens <= 16"]),
}


def conditions(tree, *args):
    """{file: the conditions of its first result, without their lines}"""
    done = tree.run("scan", "--format", "sarif", *(args or ARGS), ".")
    found = {}
    for result in json.loads(done.stdout)["runs"][0]["results"]:
        path = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        if path not in found:
            found[path] = re.findall(r"'([^']*)' \(line \d+; ", result["message"]["text"])
    return found


def test_python():
    with Tree({f"f{i}.py": text for i, (text, _) in enumerate(PYTHON.values())}) as tree:
        found = conditions(tree)
        wrong = [f"{name}: {found.get(f'f{i}.py')} for {want}" for i, (name, (_, want)) in enumerate(PYTHON.items())
                 if found.get(f"f{i}.py") != want]
        equal(wrong, [])


def test_cxx():
    with Tree({f"f{i}.cu": text for i, (text, _) in enumerate(CXX.values())}) as tree:
        found = conditions(tree)
        wrong = [f"{name}: {found.get(f'f{i}.cu')} for {want}" for i, (name, (_, want)) in enumerate(CXX.items())
                 if found.get(f"f{i}.cu") != want]
        equal(wrong, [])


def test_message():
    text = IMPORT + "def f(h, w):\n    if (h.shape[0] <= 16\n            and num_experts == 256):\n        return r(h, w)\n"
    with Tree({"a.py": text}) as tree:
        done = tree.run("scan", *ARGS, ".")
        contains(done.out, "; conditions that are narrower than the new function: 'h.shape[0] <= 16' (line 3; it takes up to 64 tokens),"
                           " 'num_experts == 256' (line 4; it takes each multiple of 8)\n")


def test_route_decides():
    """sglang's kernel takes 16 tokens and each multiple of 1024: the same code is narrower for one route only."""
    text = IMPORT + "def f(h, w):\n    if h.shape[0] <= 16 and h.shape[1] == 7168:\n        return r(h, w)\n"
    with Tree({"a.py": text}) as tree:
        equal(conditions(tree)["a.py"], ["h.shape[0] <= 16", "h.shape[1] == 7168"])
        equal(conditions(tree, "--kernel", "0.4.6", "--to", "sglang@0.5.18")["a.py"], ["h.shape[1] == 7168"])


def test_many():
    tests = " and ".join(f"hidden_size == {i}" for i in range(2, 40))
    with Tree({"a.py": IMPORT + f"def f(h, w):\n    if {tests}:\n        return r(h, w)\n"}) as tree:
        contains(tree.run("scan", *ARGS, ".").out, "and 10 more")


main(globals())
