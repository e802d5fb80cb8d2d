"""The wheel's tag: any Python 3, since all is reached through ctypes, and the oldest glibc that has what the two
libraries ask for. Everything else is in pyproject.toml. `make wheel` lays out what this builds from."""
import glob, platform, re

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel


class Wheel(bdist_wheel):
    def get_tag(self):
        minors = [17]  # the oldest that a manylinux tag can name
        for path in glob.glob("sgl_kernel_jit/lib/*.so.*"):
            with open(path, "rb") as file:
                minors += map(int, re.findall(rb"\0GLIBC_2\.(\d+)(?:\.\d+)?(?=\0)", file.read()))
        return "py3", "none", f"manylinux_2_{max(minors)}_{platform.machine()}"


class Binary(Distribution):
    def has_ext_modules(self):
        return True  # else the wheel calls itself pure


setup(cmdclass={"bdist_wheel": Wheel}, distclass=Binary)
