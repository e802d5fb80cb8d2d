"""Puts the deleted names onto sgl_kernel and its modules, whichever distribution they come from.

A module gets a __getattr__ (PEP 562) after its own code has run, so that what it has itself stays in charge. A finder at
the front of sys.meta_path sees the modules being loaded; what has been loaded before is served at once. A module that is
being loaded when this package comes is served at once too, for what it asks itself, and again when it is done."""
import functools, importlib, importlib.machinery, sys

from sgl_kernel_compat import _answers, _log, _policy, _usage
from sgl_kernel_compat._catalog import PACKAGE, PLACES
from sgl_kernel_compat._errors import SglKernelModuleNotFoundError

MODULES: dict = {}  # module -> {attribute: id}
for (_module, _name), _id in PLACES.items():
    MODULES.setdefault(_module, {})[_name] = _id

_standalone = False


def _is_loading(module):
    return getattr(getattr(module, "__spec__", None), "_initializing", False)


_answered: dict = {}  # (id of the code, place in it, module, name) -> (answer, its place in the statistics, the code): what has been answered and warned about there


def _stage_changed():
    _answered.clear()
    for place, module in _loaded().items():
        _watch(module, place)


_policy.changed[:] = [_stage_changed]


def _asker():
    """The frame that asks for an attribute. None for C code that runs in a thread without a Python frame."""
    try:
        return sys._getframe(2)
    except ValueError:
        return None


def _key(frame, place, name):
    return frame and (id(frame.f_code), frame.f_lasti, place, name)


def _remember(key, frame, found):
    if len(_answered) > 4096:  # code that makes code
        _answered.clear()
    if frame is not None:
        _answered[key] = (*found, frame.f_code)  # which must not go while its id is a key


def _watch(module, place):
    """Names that the module itself has do not come by its __getattr__. Those that the policy speaks of, and where statistics
    or calls are written all of them, become properties of its type; its code goes on using its globals."""
    own = {name for name in MODULES[place] if name in vars(module)}
    watched = {name for name, symbol in MODULES[place].items() if _answers.is_staged(symbol)} | (own if _usage.is_on() or _log.is_on() else set())
    new = watched - set(vars(type(module)))
    if new:
        try:
            module.__class__ = type("module", (type(module),), {name: _watched(place, name, MODULES[place][name]) for name in new})
        except TypeError:  # an object of another layout, which somebody has put in the module's place
            watched -= new
    for name in own:
        _usage.set_counted(MODULES[place][name], _usage.ACCESS, name in watched)


def _watched(place, name, symbol):
    def get(self):
        if name not in vars(self):
            raise AttributeError(name)  # then __getattr__ is asked, as after each refusal
        value, frame = vars(self)[name], _asker()
        if _is_loading(self):
            return value
        key = _key(frame, place, name)
        found = _answered.get(key)
        if found is None:
            found = _answers.own(self.__name__, name, symbol, frame)
            _remember(key, frame, found)
        else:
            _usage.again(found[1])
        return found[0](value)

    def delete(self):
        if vars(self).pop(name, self) is self:
            raise AttributeError(name)

    return property(get, lambda self, value: vars(self).__setitem__(name, value), delete)


def provide(module, place):
    """Give a module a __getattr__ that knows the names of `place`. The module's own one is asked first."""
    _watch(module, place)
    names, own = MODULES[place], module.__dict__.get("__getattr__")
    if getattr(own, "of_sgl_kernel_compat", False):
        return
    if own is None and hasattr(type(module), "__getattr__"):  # a lazy module: without us Python asks its type
        own = functools.partial(type(module).__getattr__, module)

    def __getattr__(name):
        if name not in names:
            if own is not None:
                return own(name)
            raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
        frame = _asker()
        key = _key(frame, place, name)
        found = _answered.get(key)
        if found is not None:
            _usage.again(found[1])
            return found[0]
        if name in vars(module) and not _is_loading(module):  # its property has refused, and Python asks here, too
            return _answers.own(module.__name__, name, names[name], frame, is_told=True)[0](vars(module)[name])
        if own is not None:
            try:
                return own(name)
            except AttributeError:
                pass
        if _is_loading(module):
            raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
        found = _answers.answer(module.__name__, name, names[name], frame)
        _remember(key, frame, found)
        return found[0]

    __getattr__.of_sgl_kernel_compat = True
    module.__getattr__ = __getattr__


def _loaded():
    """What is loaded, by name. Tests put other things than modules into sys.modules, such as None and mocks."""
    return {place: sys.modules[place] for place in MODULES if isinstance(sys.modules.get(place), type(sys))}


def _present():
    """The ids of which the installed package has a Python name. A module that is not loaded is read as text."""
    loaded = _loaded()
    return {id for (place, name), id in PLACES.items() if name in (vars(loaded[place]) if place in loaded else _names_of(place))}


_bindings: dict = {}  # module -> the names in its source


def _names_of(place):
    """The names that a module binds which nobody has loaded, as far as its source says them."""
    if place not in _bindings:
        from importlib.util import find_spec  # slow to import

        try:
            with open(find_spec(place).origin, "rb") as file:
                text = file.read()
            spoken_of = any(name.encode() in text for name in MODULES[place])
            _bindings[place] = _bound(text) if spoken_of else set()
        except Exception:  # no such module, one without a readable source, or one that cannot be imported either
            _bindings[place] = set()
    return _bindings[place]


def _bound(text):
    import ast

    names, rest = set(), [ast.parse(text)]
    while rest:
        node = rest.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.alias):
            names.add(node.asname or node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif not isinstance(node, ast.Lambda):
            rest.extend(ast.iter_child_nodes(node))
    return names


_served = None  # the package whose operators are registered


def _register_operators():
    global _served
    package = _loaded().get(PACKAGE)
    if package is None or package is _served or "torch" not in sys.modules:
        return  # what is missing brings us here again
    if getattr(package, "__spec__", None) is None:
        return  # made by hand, for tests and other devices: who does so defines operators too
    try:
        from sgl_kernel_compat import _operators  # needs ctypes, which costs time

        _operators.register(_present(), getattr(package, "__version__", None))
        _served = package
    except Exception as e:  # a torch that is none, as tests of others have; `import sgl_kernel` goes on
        if sys.stderr is not None:
            sys.stderr.write(f"sgl-kernel-compat: no operators: {type(e).__name__}: {e}\n")


def _adopt(name):
    """A module's own code has run, and may have put another one in its place: one of the package, which loads its library
    before it is done, or torch."""
    module = _loaded().get(name)
    if module is not None:
        provide(module, name)
    if name == PACKAGE or (name == "torch" and not _is_loading(sys.modules.get(PACKAGE))):
        _register_operators()


def _adopt_later(module):
    """At the end of an import that began before us. There the import system sets a mark of the module's spec."""
    spec, kind = module.__spec__, type(module.__spec__)
    if isinstance(getattr(kind, "_initializing", None), property):
        return

    def mark(self, loading):
        if not loading:  # other threads wait for the mark
            self.__class__ = kind
            _adopt(self.name)
        vars(self)["_initializing"] = loading

    spec.__class__ = type(kind.__name__, (kind,), {"_initializing": property(lambda self: vars(self)["_initializing"], mark)})


class _Loader:
    """The real loader, with _adopt after it. The real one is put back before the module's code can see this one."""

    def __init__(self, loader):
        self.loader = loader

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        module.__spec__.loader = module.__loader__ = self.loader
        self.loader.exec_module(module)
        _adopt(module.__spec__.name)

    def __getattr__(self, name):
        return getattr(self.loader, name)


class _Maker:
    """Loads a module that exists nowhere: the package itself (standalone), or a module that the package has lost."""

    @staticmethod
    def create_module(spec):
        return None

    @staticmethod
    def exec_module(module):
        module.__doc__ = f"{module.__name__}: provided by sgl_kernel_compat, with deleted names only."
        if module.__name__ == PACKAGE:  # as the package did, whose modules are there after its import
            for place in MODULES:
                if place != PACKAGE and _makes_sense(place):
                    importlib.import_module(place)
        _adopt(module.__name__)


def _makes_sense(place):
    """Is there a name in the module that could be served? Otherwise it stays missing, and guards see that."""
    return any(_answers.may_have(symbol) for symbol in MODULES[place].values())


def _is_leftover(spec):
    """A folder that an uninstalled package has left behind, with nothing to import in it: Python makes it a namespace."""
    import pkgutil

    folders = spec.submodule_search_locations
    return spec.origin is None and folders is not None and not any(pkgutil.iter_modules(list(folders)))


class _Finder:
    of_sgl_kernel_compat = True

    @classmethod
    def find_spec(cls, fullname, path=None, target=None):
        if fullname not in MODULES and fullname != "torch":
            return None
        finders = sys.meta_path[sys.meta_path.index(cls) + 1 :] if cls in sys.meta_path else ()
        for finder in finders:
            spec = finder.find_spec(fullname, path, target) if hasattr(finder, "find_spec") else None
            if spec is None or (_standalone and fullname == PACKAGE and _is_leftover(spec)):
                continue
            if hasattr(spec.loader, "exec_module") and spec.origin is not None:  # not a namespace
                spec.loader = _Loader(spec.loader)
            return spec
        if fullname == "torch":
            return None
        if _standalone if fullname == PACKAGE else _makes_sense(fullname):
            return importlib.machinery.ModuleSpec(fullname, _Maker, origin="sgl_kernel_compat", is_package=fullname == PACKAGE)
        # For an import the error has the advice; who only asks, as importlib.util.find_spec, is told that there is none.
        asker = sys._getframe().f_back
        asker = asker and asker.f_back
        if fullname != PACKAGE and asker is not None and asker.f_code.co_name == "_find_and_load_unlocked":
            raise SglKernelModuleNotFoundError(_answers.module_text(fullname, MODULES[fullname]), name=fullname)
        return None


def install(standalone=False):
    """Serve the deleted names from now on, also on what has been put into sys.modules since an earlier call. standalone:
    provide the package itself, too, where none is installed. Does nothing that needs torch before sgl_kernel is there."""
    global _standalone
    _standalone = _standalone or standalone
    if _Finder not in sys.meta_path:
        for finder in [finder for finder in sys.meta_path if getattr(finder, "of_sgl_kernel_compat", None) is True]:
            sys.meta_path.remove(finder)  # of this module before it was reloaded
        sys.meta_path.insert(0, _Finder)
    for place, module in _loaded().items():
        provide(module, place)
        # sgl_kernel imports torch first of all, and torch's entry point brings us here in the middle of it.
        if _is_loading(module):
            _adopt_later(module)
    if not _is_loading(sys.modules.get(PACKAGE)):
        _register_operators()
