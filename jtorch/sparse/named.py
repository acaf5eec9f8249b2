"""Functions of `torch` itself that only sparse tensors have a use for."""

from ..errors_sparse import wrong_layout
from . import matmul, shaping
from .base import is_sparse


def _of(name, fn):
    def call(*args, **kwargs):
        if not any(is_sparse(a) for a in (*args, *kwargs.values())):
            raise wrong_layout(name, "sparse coordinate tensor", None)
        return fn(*args, **kwargs)

    call.__name__ = call.__qualname__ = name
    call.__doc__, call.__module__ = fn.__doc__, "jtorch"
    return call


hspmm = _of("hspmm", matmul.hspmm)
hsmm = _of("hsmm", matmul.hspmm)
smm = _of("smm", matmul.smm)
saddmm = _of("saddmm", matmul.sspaddmm)
sspaddmm = _of("sspaddmm", matmul.sspaddmm)
resize_as_sparse_ = _of("resize_as_sparse_", shaping.resize_as_sparse_)
