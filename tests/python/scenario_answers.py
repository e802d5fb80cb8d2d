"""Every name of the catalog is asked for as its callers do, and answers as SGL_TEST_ANSWERS says (test_answers.py): a list of
worlds. Each is a process of its own, forked from one that has imported torch, as the import of torch is slow."""
import ast, ctypes, functools, importlib, importlib.util, itertools, json, os, sys, traceback

import torch
import native_cases
from checks import assert_close, operands, raises

WORLDS = json.load(open(os.environ["SGL_TEST_ANSWERS"]))


def in_a_process_of_its_own(function):
    def run():
        sys.stdout.flush()
        child = os.fork()
        if not child:
            try:
                function()
            except BaseException:
                traceback.print_exc(file=sys.stdout)
                sys.stdout.flush()
                os._exit(1)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0, "see above"

    return run


# --- Python names -------------------------------------------------------------------------------------------------------


def parameters(signature):
    arguments = ast.parse(f"def _{signature}: pass").body[0].args
    needed = [a.arg for a in arguments.args[: len(arguments.args) - len(arguments.defaults)]]
    needed += [a.arg for a, default in zip(arguments.kwonlyargs, arguments.kw_defaults) if default is None]
    return [a.arg for a in arguments.args], [a.arg for a in arguments.kwonlyargs], needed


def check_route(f, name):
    """All that an old caller may write reaches the parameters of the same names."""
    import answers_calls

    positional, keywords, needed = parameters(name["signature"])
    values = {p: object() for p in positional + keywords}
    answers_calls.result = object()
    for given, call in ((values, lambda: f(*(values[p] for p in positional), **{p: values[p] for p in keywords})), (values, lambda: f(**values)),
                        ({p: values[p] for p in needed}, lambda: f(**{p: values[p] for p in needed}))):
        answers_calls.calls.clear()
        assert call() is answers_calls.result, name["id"]
        ((module, function, args, kwargs),) = answers_calls.calls
        assert [module, function] == name["answer"][1:] and not args, (name["id"], module, function, args)
        assert set(kwargs) == set(values) and all(kwargs[p] is value for p, value in given.items()), (name["id"], kwargs)


def check_refusals(name):
    module, attribute = name["module"], name["name"]
    missing = importlib.util.find_spec(module) is None
    where = f"No module named {module!r}" if missing else f"{module}.{attribute} {name['answer'][1]}"
    forms = [(ImportError, lambda: exec(f"from {module} import {attribute}", {}))]
    if missing:
        forms.append((ModuleNotFoundError, lambda: importlib.import_module(module)))
    else:
        there = importlib.import_module(module)
        forms.append((AttributeError, lambda: getattr(there, attribute)))
        assert not hasattr(there, attribute), name["id"]
    for kind, form in forms:
        e = raises(kind, where, form)
        assert type(e).__name__.startswith("Sgl"), (name["id"], type(e))
        for part in name["parts"]:
            assert part in str(e), (name["id"], part, e)


def check_python(name, served):
    if name["answer"][0] == "gone":
        return check_refusals(name)
    scope = {}
    exec(f"from {name['module']} import {name['name']} as it", scope)
    it = getattr(sys.modules[name["module"]], name["name"])
    assert it is scope["it"] is served.setdefault(name["id"], it), f"{name['id']}: two objects"
    if name["answer"][0] == "jit":
        assert it.__doc__ and "sgl_kernel_jit" in it.__doc__, name["id"]
        example(name["id"]).python(it)
    else:
        check_route(it, name)


# --- operators ----------------------------------------------------------------------------------------------------------


def some_values(schema):
    values = {"Tensor": torch.ones(2), "int": 1, "float": 1.0, "bool": True, "str": "", "List[Tensor]": [torch.ones(2)], "List[int]": [1]}
    return [None if str(a.type).startswith("Optional") else values[str(a.type)] for a in schema.arguments]


def check_operator(operator):
    namespace, name = getattr(torch.ops, "sgl_kernel"), operator["name"]
    want = torch._C.parse_schema(f"sgl_kernel::{operator['schema']}")
    op = eval(f"torch.ops.sgl_kernel.{name}")
    assert str(op.default._schema) == str(want), (name, op.default._schema)
    if operator["answer"][0] == "jit":
        assert hasattr(namespace, name)
        return example(operator["id"]).operator(op)
    call = lambda: op(*some_values(want))
    if operator["answer"][0] == "gone":
        for form in (call, lambda: op.default(*some_values(want))):
            e = raises(RuntimeError, f"torch.ops.sgl_kernel.{name} {operator['answer'][1]}", form)
            assert all(part in str(e) for part in operator["parts"]), (name, e)
        return
    import answers_calls

    answers_calls.calls.clear()
    kinds = [str(r.type) for r in want.returns]
    answers_calls.result = None if not kinds else torch.ones(3) if kinds == ["Tensor"] else tuple(torch.ones(3) for _ in kinds)
    result = call()
    assert kinds != ["Tensor"] or torch.equal(result, torch.ones(3)), name
    ((module, function, args, kwargs),) = answers_calls.calls
    assert [module, function] == operator["answer"][1:] and len(args) + len(kwargs) == len(want.arguments), (name, module, function)


# --- what is served by this project's kernels: on the CPU reference -----------------------------------------------------


def call_cxx(mangled, *arguments):
    """The exported C++ function. To it an at::Tensor is the address of its one pointer, by value too."""
    from sgl_kernel_compat import _policy

    kinds = {bool: ctypes.c_bool, int: ctypes.c_int64, float: ctypes.c_double}
    function = getattr(_policy.library(), mangled)
    function.restype = None
    function(*(ctypes.byref(ctypes.c_void_p(a._cdata)) if isinstance(a, torch.Tensor) else kinds[type(a)](a) for a in arguments))


class Router:
    def __init__(self):
        self.a, self.w, self.want = operands(torch, 3, 256)

    def python(self, f):
        assert_close(torch, f(self.a, self.w, torch.float32), self.want)

    def operator(self, op):
        output = torch.zeros(3, 256)
        op(output, self.a, self.w)
        assert_close(torch, output, self.want)

    def cxx(self, call):
        self.operator(call)


class FusedA(Router):
    def __init__(self):
        self.a, w, self.want = operands(torch, 2, 2112)
        self.w = w.t()

    def python(self, f):
        output = torch.empty(2, 2112, dtype=torch.bfloat16)
        assert f(self.a, self.w, output) is output
        assert_close(torch, output, self.want)

    def operator(self, op):
        output = torch.zeros(2, 2112, dtype=torch.bfloat16)
        op(output, self.a, self.w)
        assert_close(torch, output, self.want)


class Bmm:
    def __init__(self):
        self.a = torch.randn(2, 5, 64).to(torch.float8_e4m3fn)
        self.b = torch.randn(2, 24, 64).to(torch.float8_e4m3fn).transpose(1, 2)
        self.scales = torch.tensor([0.25]), torch.tensor([0.5])
        self.want = torch.bmm(self.a.double(), self.b.double()) / 8

    def python(self, f):
        assert_close(torch, f(self.a, self.b, *self.scales, torch.bfloat16), self.want)

    def operator(self, op):
        output = torch.zeros(2, 5, 24, dtype=torch.bfloat16)
        op(self.a, self.b, output, *self.scales, torch.empty(0, dtype=torch.uint8), 0)
        assert_close(torch, output, self.want)

    def cxx(self, call):
        self.operator(call)


class Native:
    def __init__(self, id):
        self.case = next(itertools.islice(native_cases.cases(torch, id, "cpu"), 1, None))

    def python(self, f):
        self.case.run(f)

    def operator(self, op):
        self.case.run(op, *self.case.more)

    def cxx(self, call):
        self.operator(lambda *arguments: call(*arguments) and None)


# A class for each name: called with the old Python function, the old operator, and the old C++ function.
EXAMPLES = {"dsv3_router_gemm": Router, "dsv3_fused_a_gemm": FusedA, "bmm_fp8": Bmm}
EXAMPLES.update((id, functools.partial(Native, id)) for id in native_cases.ALL)


def example(id):
    assert id in EXAMPLES, f"{id} has a route of kind jit: write into {__file__} how it is called"
    return EXAMPLES[id]()


# --- the worlds ---------------------------------------------------------------------------------------------------------


def live_in(world):
    os.environ.update(world["environment"])
    sys.path[:0] = world["paths"]
    if not world["cuda"]:  # then this project's kernels cannot run
        torch.version.cuda = None
    import sgl_kernel, sgl_kernel_compat

    faults = []

    def check(function, what, *more):
        try:
            function(what, *more)
        except Exception as e:
            faults.append(f"{what.get('module', 'torch.ops.sgl_kernel')}.{what['name']}: {type(e).__name__}: {e}")

    served = {}
    for name in world["names"]:
        check(check_python, name, served)
    for operator in world["operators"]:
        check(check_operator, operator)
    for function in world["functions"]:
        check(lambda function: example(function["id"]).cxx(lambda *arguments: call_cxx(function["name"], *arguments)), function)
    assert not faults, "\n".join(faults)
    assert world["names"] and world["operators"]


for _world in WORLDS:
    globals()[f"test_{_world['title']}"] = in_a_process_of_its_own(lambda world=_world: live_in(world))
