"""Names of PyTorch that exist and raise: what needs another backend or another kind of tensor.

Each says at the call what to use instead, and is marked `__unsupported__`, which docs/coverage.md counts apart.
"""

import functools

from . import errors, errors_extend

_QUANTIZED = ("quantized tensors", "torch.fake_quantize_per_tensor_affine, which computes on dense ones")
_VENDOR = ("kernels of one vendor's library", "the function of torch.nn.functional: XLA chooses the kernel")
_SCRIPT = ("TorchScript", "torch.compile")

FUNCTIONS = {
    _QUANTIZED: (
        "empty_quantized quantize_per_channel quantize_per_tensor quantize_per_tensor_dynamic quantized_batch_norm quantized_gru "
        "quantized_lstm quantized_max_pool1d quantized_max_pool2d quantized_max_pool3d"
    ),
    _SCRIPT: "import_ir_module import_ir_module_from_buffer",
}
CLASSES = {_SCRIPT: "ConcreteModuleTypeBuilder ScriptModuleSerializer"}
_LAYOUTS = {
    "indices": "sparse coordinate tensor", "coalesce": "sparse coordinate tensor", "is_coalesced": "sparse coordinate tensor",
    "values": "sparse tensor", "crow_indices": "sparse row compressed tensor", "col_indices": "sparse row compressed tensor",
    "ccol_indices": "sparse column compressed tensor", "row_indices": "sparse column compressed tensor",
}  # fmt: skip
_NO_KERNEL = (
    "int_repr", "q_scale", "q_zero_point", "q_per_channel_scales", "q_per_channel_zero_points", "q_per_channel_axis",
    "qscheme", "to_padded_tensor",
)  # fmt: skip
METHODS = {
    _VENDOR: "to_mkldnn ipu xpu mtia",
}
_REMOVED = {
    "eig": "`torch.linalg.eig` returns complex tensors of dtype `cfloat` or `cdouble` rather than real tensors mimicking complex "
    "tensors.\n  use torch.linalg.eig, or torch.linalg.eigvals for the values alone",
    "lstsq": "`torch.lstsq` is deprecated in favor of `torch.linalg.lstsq`.\n  its arguments are in the other order",
    "solve": "`torch.solve` is deprecated in favor of `torch.linalg.solve`. `torch.linalg.solve` has its arguments reversed and "
    "does not return the LU factorization.",
    "symeig": "The default behavior has changed from using the upper triangular portion of the matrix by default to using the "
    "lower triangular portion.\n  use torch.linalg.eigh(A, UPLO='U' if upper else 'L')",
    "matrix_rank": "\nPlease use the `torch.linalg.matrix_rank` function instead.",
}


def refusing(name, what, instead):
    """A function that says at its call that it is not supported."""

    def refuse(*args, **kwargs):
        raise errors.unsupported(f"{what}, which torch.{name} needs", instead)

    return _named(refuse, name, f"Unsupported: {what}.")


def _named(fn, name, doc, mark=True):
    fn.__name__ = fn.__qualname__ = name
    fn.__doc__, fn.__module__ = doc, "jtorch"
    if mark:
        fn.__unsupported__ = True
    return fn


def _refusing_class(name, what, instead):
    def new(cls, *args, **kwargs):
        raise errors.unsupported(f"{what}, of which torch.{name} is a part", instead)

    body = {
        "__new__": new,
        "__doc__": f"Unsupported: {what}. For isinstance alone.",
        "__module__": "jtorch",
        "__unsupported__": True,
    }
    return type(name, (), body)


def _removed(name):
    def gone(*args, **kwargs):
        raise errors_extend.removed(_REMOVED[name])

    return _named(
        gone, name, f"Removed from PyTorch; it raises as PyTorch's does. See torch.linalg.{name}.", mark=False
    )


def _only_sparse(name, layout, of=None):
    def refuse(self, *args, **kwargs):
        if of is not None and str(self.layout) != "torch.strided":
            return getattr(self, of)().clone()
        raise errors_extend.not_sparse(of or name, layout)

    return _named(
        refuse, name, f"RuntimeError, as for every dense tensor: {of or name} belongs to sparse layouts.", mark=False
    )


def _no_kernel(name):
    def refuse(self, *args, **kwargs):
        raise errors_extend.no_kernel(name)

    return _named(
        refuse, name, "NotImplementedError, as for every dense tensor that is not quantized or nested.", mark=False
    )


@functools.cache
def names() -> dict:
    """{name: function or class of `torch`}."""
    found = {}
    for make, table in ((refusing, FUNCTIONS), (_refusing_class, CLASSES)):
        for (what, instead), names in table.items():
            found |= {n: make(n, what, instead) for n in names.split()}
    found |= {n: _removed(n) for n in _REMOVED}
    found |= {
        f"{n}_copy": _only_sparse(f"{n}_copy", f"{layout}", n) for n, layout in _LAYOUTS.items() if "coal" not in n
    }
    return found | {n: _no_kernel(n) for n in _NO_KERNEL if n not in ("qscheme", "to_padded_tensor")}


def methods() -> dict:
    """{name: method of Tensor}."""
    found = {n: _only_sparse(n, layout) for n, layout in _LAYOUTS.items()} | {n: _no_kernel(n) for n in _NO_KERNEL}
    for (what, instead), names in METHODS.items():
        found |= {n: _named(refusing(f"Tensor.{n}", what, instead), n, f"Unsupported: {what}.") for n in names.split()}
    return found | {n: _removed(n) for n in _REMOVED if n != "matrix_rank"}
