"""The import swap: programs and packages written for PyTorch run on jtorch, unmodified."""

from .hook import install_as_torch
from .scope import as_torch

__all__ = ["as_torch", "install_as_torch"]
