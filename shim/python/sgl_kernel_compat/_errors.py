"""What this package warns with and raises."""


class SglKernelDeprecationWarning(DeprecationWarning):
    """A deleted name of sgl_kernel was used, and served."""


class SglKernelImportError(ImportError):
    """A deleted name of sgl_kernel was imported that cannot be served. The text says what to use."""


class SglKernelAttributeError(AttributeError):
    """The same for the access of an attribute, so that hasattr answers False."""


class SglKernelModuleNotFoundError(SglKernelImportError, ModuleNotFoundError):
    """The same for a whole module that is gone."""
