"""The names under which PyTorch's profiler lists the functions of the public API: `aten::add`, `aten::linalg_norm`."""

import functools

from .. import functions as table
from ..tensor import Tensor

_SPACES = ("linalg", "fft", "special")

# Written by hand, and operators; what is in neither these nor the op table (size, backward, numpy) is not listed.
_OWN = """
arange as_tensor bernoulli bernoulli_ cauchy_ contiguous copy_ detach detach_ empty empty_like empty_permuted empty_strided equal
exponential_ eye fill fill_ flatten full full_like geometric_ item linspace log_normal_ logspace multinomial new_empty
new_empty_strided new_full new_ones new_zeros normal normal_ ones ones_like pin_memory poisson rand rand_like randint randint_like
randn randn_like random_ randperm ravel reshape reshape_as resize_ scalar_tensor set_ sum_to_size to to_dense to_sparse tril_indices
triu_indices type_as uniform_ view_as_complex view_as_real zero_ zeros zeros_like
""".split()
_CASTS = "bfloat16 bool byte cdouble cfloat chalf char cpu cuda double float half int long short".split()

_RENAMED = {
    "reshape_function": "reshape", "cross_entropy": "cross_entropy_loss", "nll_loss": "nll_loss_nd", "logsigmoid": "log_sigmoid",
    "grid_sample": "grid_sampler", "fold": "col2im", "dropout2d": "feature_dropout", "dropout3d": "feature_dropout",
    "dropout1d": "feature_dropout", "_segment_reduce": "segment_reduce", "lu": "_lu_with_info", "unique": "_unique2",
    "norm": "linalg_vector_norm", "gammainc_": "igamma_", "gammaincc_": "igammac_", "subtract_": "sub_", "multiply_": "mul_",
    "divide_": "div_", "__eq__": "eq",
    **dict.fromkeys(_CASTS, "to"),
}  # fmt: skip

_names: dict[int, tuple] = {}  # id of a function -> (the function, its name or None)


def operator_name(entry, args) -> str | None:
    """The name of a call; None for what is no operator. Indexing and resizing are named by what they are given."""
    found = _names.get(id(entry.fn))
    if found is None:
        found = _names[id(entry.fn)] = (entry.fn, _name(entry.fn))
    name = found[1]
    return name(args) if callable(name) else name


def _name(fn):
    name = fn.__name__
    if name in _BY_ARGUMENTS:
        return _BY_ARGUMENTS[name]
    space = next((space for (space, _), made in table.made() if made is fn), "torch")
    if name == "unfold" and space == "nn.functional":
        return "aten::im2col"
    if space in _SPACES:
        return f"aten::{name}" if name.startswith(space + "_") else f"aten::{space}_{name}"
    if name in _RENAMED:
        return f"aten::{_RENAMED[name]}"
    return f"aten::{name}" if name in _OWN or name in _in_table() else None


@functools.cache
def _in_table():
    spaces = ("torch", "Tensor", "nn.functional", "_C._nn")
    return {name for space in spaces for name in table.names(space)}


def _index(args):
    """`x[i]`: PyTorch takes it apart into views, and gathers what is picked by tensors and lists."""
    parts = args[1] if isinstance(args[1], tuple) else (args[1],)
    if any(isinstance(p, (Tensor, list)) for p in parts):
        return "aten::index"
    return "aten::select" if type(parts[0]) is int else "aten::slice"


def _put(args):
    parts = args[1] if isinstance(args[1], tuple) else (args[1],)
    return "aten::index_put_" if any(isinstance(p, (Tensor, list)) for p in parts) else "aten::copy_"


_BY_ARGUMENTS = {"__getitem__": _index, "__setitem__": _put}
