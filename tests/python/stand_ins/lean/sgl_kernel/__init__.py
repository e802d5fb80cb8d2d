"""Stands for a package that has none of the modules, and that may not import torch."""
import os

if os.environ.get("WITH_TORCH"):
    import torch


def __getattr__(name):
    if name == "lazy":
        return "lazy"
    raise AttributeError(f"lean has no {name}")
