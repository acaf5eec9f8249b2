"""torch.export: one program of a module, captured while it runs on example inputs, that can be kept in a file.

The nodes call functions and methods of torch as the program wrote them (PyTorch's are of ATen), and files are jtorch's own.
"""

from .capturing import Dim, dims, export
from .files import load, save
from .program import ExportedProgram, ExportGraphSignature, InputKind, InputSpec, OutputKind, OutputSpec

__all__ = [
    "Dim", "ExportGraphSignature", "ExportedProgram", "InputKind", "InputSpec", "OutputKind", "OutputSpec", "dims", "export", "load", "save",
]  # fmt: skip
