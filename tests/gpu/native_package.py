"""The package of the wheel in BUILD_DIR/wheel, unpacked and imported, with an empty cache of kernels."""
import atexit, os, pathlib, shutil, sys, tempfile, zipfile


def load(build):
    """sgl_kernel_jit; the deleted operators are registered too. None without a wheel."""
    wheels = list((pathlib.Path(build) / "wheel").glob("*.whl"))
    if not wheels:
        return None
    folder = tempfile.mkdtemp(prefix="sgl-native-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    with zipfile.ZipFile(wheels[0]) as wheel:
        wheel.extractall(folder)
    os.environ["SGL_KERNEL_JIT_CACHE_DIR"] = os.path.join(folder, "cache")
    os.environ["SGL_KERNEL_COMPAT_WARN"] = "off"
    os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
    sys.path.insert(0, folder)
    import sgl_kernel_jit
    from sgl_kernel_jit import _library

    why = _library.message_of(_library.compat().sgl_compat_register_ops)
    assert not why, why
    return sgl_kernel_jit
