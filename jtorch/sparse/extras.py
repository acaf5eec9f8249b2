"""torch.sparse's old constructors by dtype, its support for gradcheck, and the names of it that raise."""

import functools

from .. import functions as F
from ..convert import LEGACY_NAMES
from ..core import dtype as dtypes
from ..unavailable import refusing
from .base import is_coo, is_sparse
from .constructors import sparse_coo_tensor
from .tape import block_of, with_values


class _LegacyType(type):
    """A class that only makes sparse tensors of its dtype, and recognises them."""

    def __call__(cls, *args, **options):
        return sparse_coo_tensor(*(args or ((0,),)), dtype=cls.dtype, **options)

    def __instancecheck__(cls, instance):
        return is_coo(instance) and instance.dtype is cls.dtype and instance.is_cpu


CLASSES = {
    name: _LegacyType(
        name, (), {"dtype": dtypes.ALL[d], "__module__": "torch.sparse", "__doc__": f"Makes sparse tensors of {d}."}
    )
    for d, name in LEGACY_NAMES.items()
    if name in (
        "BFloat16Tensor", "ByteTensor", "CharTensor", "DoubleTensor", "FloatTensor", "HalfTensor", "IntTensor", "LongTensor", "ShortTensor",
    )
}  # fmt: skip


def as_sparse_gradcheck(gradcheck):
    """`gradcheck` for functions of sparse tensors, with one more argument, `masked`: whether only stored elements are varied.

    https://docs.pytorch.org/docs/stable/generated/torch.sparse.as_sparse_gradcheck.html
    """

    @functools.wraps(gradcheck)
    def checked(func, inputs, **kwargs):
        masked = kwargs.pop("masked", False)
        inputs = tuple(inputs) if isinstance(inputs, (list, tuple)) else (inputs,)
        patterns = [_pattern(x, masked) if is_sparse(x) and x.requires_grad else None for x in inputs]
        leaves = [x if p is None else p._of.clone().requires_grad_() for x, p in zip(inputs, patterns)]

        def dense(*args):
            label = "SparseCooTensorWithDimsAndTensorsBackward0"
            out = func(*[a if p is None else with_values(p, a, label) for a, p in zip(args, patterns)])
            outs = out if isinstance(out, (list, tuple)) else (out,)
            return tuple(o.to_dense(masked_grad=masked) if is_sparse(o) else o for o in outs)

        return gradcheck(dense, tuple(leaves), **kwargs)

    return checked


def _pattern(x, masked):
    """The tensor whose values are varied: as it is, or with every element stored."""
    x = x.detach()
    if masked:
        return x.coalesce() if x._kind == "coo" else x
    ones = F.ones(tuple(x._spec.shape), dtype=x._spec.dtype)
    if x._kind == "coo":
        every = ones.to_sparse(x.sparse_dim())
    else:
        every = ones.to_sparse(
            layout=x.layout, blocksize=block_of(x) if x._blocked else None, dense_dim=x.dense_dim() or None
        )
    return x.to_dense().sparse_mask(every)


_SEMI = ("2:4 sparsity, which only some NVIDIA kernels compute with", "dense tensors and a mask")
REFUSED = {n: refusing(f"sparse.{n}", *_SEMI) for n in (
    "SparseSemiStructuredTensor", "SparseSemiStructuredTensorCUSPARSELT", "SparseSemiStructuredTensorCUTLASS", "to_sparse_semi_structured",
)}  # fmt: skip
REFUSED["spsolve"] = refusing("sparse.spsolve", "direct solvers of sparse systems", "torch.linalg.solve of to_dense()")
