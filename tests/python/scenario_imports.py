"""How the names get onto packages of all kinds, without torch. Each test makes a package of its own and starts anew."""
import _thread, atexit, importlib, importlib.util, io, os, pathlib, shutil, sys, tempfile, time, types, warnings
from unittest import mock

from checks import raises, warned

ROUTER = "def dsv3_router_gemm(): return 'own'\nkept = 'kept'\n"  # of an old wheel
SERVED = "bmm_fp8"  # by the flashinfer of stand_ins/others
OTHER = "hadamard_transform_12n"  # by its sglang
FOLDERS = tempfile.mkdtemp()
atexit.register(shutil.rmtree, FOLDERS)


def fresh(policy="", **files):
    """A package sgl_kernel with these modules, of which `package` is its own; this project's package is not yet imported,
    but for a policy, which the C library keeps."""
    for finder in [finder for finder in sys.meta_path if finder.__module__ == "sgl_kernel_compat._imports"]:
        sys.meta_path.remove(finder)
    for name in [name for name in sys.modules if name.partition(".")[0] in ("sgl_kernel", "sgl_kernel_compat")]:
        del sys.modules[name]
    folder = pathlib.Path(tempfile.mkdtemp(dir=FOLDERS)) / "sgl_kernel"
    folder.mkdir()
    for name, text in files.items():
        (folder / ("__init__.py" if name == "package" else f"{name}.py")).write_text(text)
    sys.path[:] = [str(folder.parent)] + [path for path in sys.path if not path.startswith(FOLDERS)]
    importlib.invalidate_caches()
    if policy:
        importlib.import_module("sgl_kernel_compat").set_policy(policy)
    return folder


def test_a_stage_does_not_break_the_package():
    lazy = "def lazy():\n import sgl_kernel\n from sgl_kernel import dsv3_router_gemm\n return sgl_kernel.gemm.dsv3_router_gemm, dsv3_router_gemm\n"
    for stage in ("error", "warn"):
        for names in ("", "__all__ = ['dsv3_router_gemm', 'kept']\n"):
            fresh(f"dsv3_router_gemm={stage}", package="from sgl_kernel.gemm import (kept, dsv3_router_gemm)\nfrom sgl_kernel.moe import lazy\n" + names,
                  gemm=ROUTER + names, moe="from sgl_kernel.gemm import dsv3_router_gemm\nfrom sgl_kernel.gemm import *\n" + lazy)
            import sgl_kernel_compat
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                import sgl_kernel
                real = vars(sgl_kernel.gemm)["dsv3_router_gemm"]
                assert sgl_kernel.lazy() == (real, real) and vars(sgl_kernel.moe)["dsv3_router_gemm"] is real
            for module in ("sgl_kernel", "sgl_kernel.gemm"):
                scope = {"__name__": "user"}
                _, texts = warned(lambda: exec(f"\nfrom {module} import *", scope))
                assert scope["kept"] == "kept" and (scope["dsv3_router_gemm"] is real) == (stage == "warn"), (stage, module, scope)
                assert len(texts) == 1 and texts[0][0] == 2 and f"{module}.dsv3_router_gemm is deprecated" in texts[0][1], texts
                assert ("its stage is error" in texts[0][1]) == (stage == "error"), texts
                if stage == "error":  # which comes with the call
                    raises(ImportError, "its stage is error", scope["dsv3_router_gemm"])
                    assert scope["dsv3_router_gemm"].__name__ == "dsv3_router_gemm"
                    raises(ImportError, "its stage is error", exec, f"from {module} import kept, dsv3_router_gemm", {"__name__": "user"})
                    raises(AttributeError, "its stage is error", getattr, sys.modules[module], "dsv3_router_gemm")


def test_the_package_asks_for_what_it_lacks():
    ask = f"def ask():\n import sgl_kernel.gemm\n return sgl_kernel.gemm.{SERVED}\n"
    fresh(f"{SERVED}=error", package="", gemm="kept = 'kept'\n" + ask)
    import sgl_kernel_compat
    import sgl_kernel.gemm

    raises(AttributeError, "its stage is error", getattr, sgl_kernel.gemm, SERVED)
    f, texts = warned(sgl_kernel.gemm.ask)
    assert callable(f) and texts == []


def without_a_frame(f, *arguments):
    """f(*arguments) in a thread that has no Python code, as C++ that embeds Python runs: the error, and stderr."""
    errors, hook, stderr = [], sys.unraisablehook, sys.stderr
    done = []
    sys.unraisablehook, sys.stderr = lambda what: errors.append(what.exc_value), io.StringIO()
    try:
        _thread.start_new_thread(done.extend, (map(f, *[[a] for a in arguments]),))
        deadline = time.monotonic() + 60
        while not done and not errors and time.monotonic() < deadline:
            time.sleep(0.01)
        return done or errors, sys.stderr.getvalue()
    finally:
        sys.unraisablehook, sys.stderr = hook, stderr


def test_no_python_frame():
    fresh("dsv3_router_gemm=error; dsv3_fused_a_gemm=warn; bmm_fp8=warn", package="def dsv3_router_gemm(): pass\ndef dsv3_fused_a_gemm(): return 7\n")
    import sgl_kernel
    import sgl_kernel_compat

    for name, kind, part in (("nothing", AttributeError, "has no attribute 'nothing'"), ("moe_fused_gate", AttributeError, "sgl_kernel.moe_fused_gate is gone"),
                             ("dsv3_router_gemm", AttributeError, "its stage is error")):
        (e,), text = without_a_frame(getattr, sgl_kernel, name)
        assert isinstance(e, kind) and part in str(e) and text == "", (e, text)
        assert without_a_frame(getattr, sgl_kernel, name, None) == ([None], "")
    for name in (SERVED, "dsv3_fused_a_gemm"):
        (f,), text = without_a_frame(getattr, sgl_kernel, name)
        assert callable(f), f
        assert text.startswith(f"sgl-kernel-compat: warning: sgl_kernel.{name} is deprecated") and text.count("\n") == 1, text
        assert without_a_frame(getattr, sgl_kernel, name)[1] == ""  # once
    (spec,), _ = without_a_frame(sys.meta_path[0].find_spec, "sgl_kernel.memory")
    assert spec is None


def test_own_getattr_after_us():
    """The package imports torch, whose entry point brings us, and then defines a __getattr__."""
    own = "import sgl_kernel_compat\ndef __getattr__(name):\n if name == 'lazy': return 'lazy'\n raise AttributeError('own has no ' + name)\n"
    fresh(package=own + "from sgl_kernel import gemm\n", gemm=own)
    import sgl_kernel

    for module in (sgl_kernel, sgl_kernel.gemm):
        assert module.lazy == "lazy" and getattr(module, SERVED)
        raises(AttributeError, "own has no nothing", getattr, module, "nothing")
        raises(AttributeError, "cutlass_scaled_fp4_mm is gone", getattr, module, "cutlass_scaled_fp4_mm")
        assert type(module.__spec__) is type(sys.__spec__) and not module.__spec__._initializing
    # The module that brings us in the middle of its package, and an import that fails.
    fresh(package="from sgl_kernel import gemm\n", gemm=own)
    import sgl_kernel

    assert sgl_kernel.gemm.lazy == "lazy" and getattr(sgl_kernel.gemm, SERVED) is getattr(sgl_kernel, SERVED)
    fresh(package="import sgl_kernel_compat\nraise OSError('no library')\n")
    raises(OSError, "no library", importlib.import_module, "sgl_kernel")
    assert "sgl_kernel" not in sys.modules


def test_other_threads_wait_for_the_operators():
    """They do for a module that is marked."""
    fresh(package="import sys\nfrom sgl_kernel_compat import _imports\nseen = []\n"
                  "_imports._register_operators = lambda: seen.append(sys.modules['sgl_kernel'].__spec__._initializing)\n")
    import sgl_kernel

    assert sgl_kernel.seen == [True] and sgl_kernel.__spec__._initializing is False


def test_lazy_modules():
    """By a type of their own, or another module in their place: what those make of a deleted name is theirs."""
    lazy = f"class Lazy(types.ModuleType):\n def __getattr__(self, name):\n  if name in ('lazy', '{SERVED}'): return 'lazy'\n  raise AttributeError('lazy has no ' + name)\n"
    for text in ("sys.modules[__name__].__class__ = Lazy\n", "sys.modules[__name__] = Lazy(__name__)\n"):
        for before in ("import sgl_kernel_compat\n", ""):
            fresh(package=before + "import sys, types\n" + lazy + text)
            import sgl_kernel_compat
            import sgl_kernel

            assert sgl_kernel.lazy == "lazy" == getattr(sgl_kernel, SERVED), (text, before)
            assert callable(getattr(sgl_kernel, OTHER))
            raises(AttributeError, "lazy has no nothing", getattr, sgl_kernel, "nothing")


def test_what_a_module_that_is_not_loaded_has():
    texts = {
        "'''dsv3_router_gemm has left'''\n# def dsv3_router_gemm\nnames = ['dsv3_router_gemm']\nf = lambda dsv3_router_gemm: dsv3_router_gemm\n": set(),
        "if kept:\n  def dsv3_router_gemm(): pass\nelse:\n  dsv3_router_gemm = None\n": {"dsv3_router_gemm"},
        "try:\n  from x import y as dsv3_router_gemm, dsv3_fused_a_gemm\nexcept ImportError:\n  bmm_fp8 = None\n": {"dsv3_router_gemm", "dsv3_fused_a_gemm", "bmm_fp8"},
        "def f():\n  dsv3_router_gemm = 1\n": set(),
        "def dsv3_router_gemm(: pass\n": set(),  # nobody can import that
    }
    for text, names in texts.items():
        fresh(package="", gemm=text)
        import sgl_kernel
        from sgl_kernel_compat import _imports

        assert _imports._present() == names, (text, _imports._present())
        assert "sgl_kernel.gemm" not in sys.modules


def test_install_again():
    fresh()
    import sgl_kernel_compat

    sys.modules["sgl_kernel"] = types.ModuleType("sgl_kernel")
    import sgl_kernel

    assert not hasattr(sgl_kernel, SERVED)
    sgl_kernel_compat.install()
    assert getattr(sgl_kernel, SERVED)
    before = list(sys.meta_path)
    importlib.reload(sys.modules["sgl_kernel_compat._imports"]).install()
    assert len(sys.meta_path) == len(before) and sys.meta_path[1:] == before[1:]
    assert len(sys.modules["sgl_kernel_compat._policy"].changed) == 1


def test_a_folder_left_behind():
    """A namespace for Python: for the opt-in it is no package, unless there is a module in it."""
    (fresh() / "__pycache__").mkdir()
    import sgl_kernel_compat

    assert importlib.util.find_spec("sgl_kernel").origin is None
    sgl_kernel_compat.install(standalone=True)
    import sgl_kernel

    assert getattr(sgl_kernel, SERVED) and "provided by sgl_kernel_compat" in sgl_kernel.__doc__
    fresh(kept="kept = 'kept'\n")
    import sgl_kernel_compat

    sgl_kernel_compat.install(standalone=True)
    import sgl_kernel.kept

    assert sgl_kernel.kept.kept == "kept" and sgl_kernel.__doc__ is None


def test_a_setting_that_is_none():
    for setting, text in (("standalon", "sgl-kernel-compat: SGL_KERNEL_COMPAT=standalon is none of 0, 1, standalone; taking 1\n"), ("1", ""), ("", "")):
        fresh(package="")
        with mock.patch.dict(os.environ, {"SGL_KERNEL_COMPAT": setting}), mock.patch("sys.stderr", io.StringIO()) as stderr:
            import sgl_kernel_compat
        import sgl_kernel

        assert stderr.getvalue() == text and getattr(sgl_kernel, SERVED), (setting, stderr.getvalue())
