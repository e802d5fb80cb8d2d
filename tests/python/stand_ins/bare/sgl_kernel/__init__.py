"""Stands for a newer wheel where there is no torch."""
from sgl_kernel import gemm, moe

kept = "kept"
__all__ = ["kept"]
