from . import inner
import sgl_kernel as root
