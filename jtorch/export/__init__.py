"""torch.export: one program of a module, captured while it runs on example inputs, that can be kept in a file.

The nodes call functions and methods of torch as the program wrote them (PyTorch's are of ATen), and files are jtorch's own.
"""

from .capturing import export
from .dim import Dim, dims
from .files import load, save
from .program import ExportedProgram, ExportGraphSignature, InputKind, InputSpec, OutputKind, OutputSpec
from .registering import default_decompositions, draft_export, register_dataclass, unflatten
from .specs import AdditionalInputs, ShapesCollection

__all__ = [
    "AdditionalInputs", "Dim", "ExportGraphSignature", "ExportedProgram", "InputKind", "InputSpec", "OutputKind", "OutputSpec", "ShapesCollection", "default_decompositions", "dims", "draft_export", "export", "load",
    "register_dataclass", "save", "unflatten",
]  # fmt: skip
