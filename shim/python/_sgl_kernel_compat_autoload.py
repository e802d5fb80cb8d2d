"""Called by torch at the end of `import torch` (entry point torch.backends). Torch does not start when an entry point
raises, so nothing leaves this function, and it is a module of its own: a broken sgl_kernel_compat breaks only itself."""


def autoload():
    try:
        import os

        if os.environ.get("SGL_KERNEL_COMPAT") != "0":
            import sgl_kernel_compat  # installs itself
    except Exception as e:
        try:
            import sys

            sys.stderr.write(f"sgl-kernel-compat: not active: {type(e).__name__}: {e}\n")
        except Exception:
            pass  # no stderr
