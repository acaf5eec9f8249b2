"""torch.sparse_coo_tensor and the constructors of compressed layouts, with their checks."""

import threading

import numpy as np

from .. import creation, errors, errors_sparse
from ..core import device as devices
from ..core import dtype as dtypes
from ..tensor import Tensor
from .base import build, coo, host, linear
from .tape import coordinates, masked, record

_FIELDS = {"csr": ("crow_indices", "col_indices"), "csc": ("ccol_indices", "row_indices")}
FIELDS = _FIELDS | {"bsr": _FIELDS["csr"], "bsc": _FIELDS["csc"]}


class check_sparse_tensor_invariants:
    """Whether constructors check what they are given: a context manager, a decorator, and `enable`, `disable`, `is_enabled`."""

    _state = threading.local()

    @staticmethod
    def is_enabled() -> bool:
        """Whether constructors check by default."""
        return getattr(check_sparse_tensor_invariants._state, "on", False)

    @staticmethod
    def enable() -> None:
        """Check from now on."""
        check_sparse_tensor_invariants._state.on = True

    @staticmethod
    def disable() -> None:
        """Do not check from now on, unless asked to."""
        check_sparse_tensor_invariants._state.on = False

    def __init__(self, enable=True):
        self.state = enable
        self.saved = None

    def __enter__(self):
        if self.saved is not None:
            raise RuntimeError("This context manager instance is already activated. Use a different context manager instance for context nesting.")  # fmt: skip
        self.saved = self.is_enabled()
        self._state.on = self.state

    def __exit__(self, *exc):
        self._state.on, self.saved = self.saved, None

    def __call__(self, function):
        def checked(*args, **kwargs):
            with type(self)(self.state):
                return function(*args, **kwargs)

        return checked


def _checks(asked) -> bool:
    return check_sparse_tensor_invariants.is_enabled() if asked is None else bool(asked)


def _tensor(data, dtype=None, device=None):
    """Data as a tensor; one that is a tensor already keeps its history."""
    if isinstance(data, Tensor):
        return data.to(dtype=dtype or data._spec.dtype, device=device or data._spec.device)
    return creation.tensor(data, dtype=dtype, device=device)


def _finish(made, values, label, requires_grad):
    """The constructor's step on the tape, where the values have a history."""
    kept = made.detach()
    record(made, label, (values,), lambda g: masked(g, kept), False)
    return made.requires_grad_() if requires_grad else made


def sparse_coo_tensor(
    *args, indices=None, values=None, size=None, dtype=None, device=None, pin_memory=False, requires_grad=False, check_invariants=None,
    is_coalesced=None, layout=None,
):  # fmt: skip
    """A sparse tensor of coordinates.

    indices (sparse dims, nnz), values (nnz, *dense dims) -> `size`, or the smallest that holds the indices; or a size alone.
    Duplicate indices add up. RuntimeError: shapes that do not fit; with `check_invariants`, indices that do not.
    https://docs.pytorch.org/docs/stable/generated/torch.sparse_coo_tensor.html
    """
    if args and indices is None and values is None and (len(args) == 1 or type(args[1]) is int):
        size = args[0] if len(args) == 1 else args
        args = ()
    given = [*args, *[None] * (3 - len(args))]
    indices = given[0] if indices is None else indices
    values = given[1] if values is None else values
    size = given[2] if size is None else size
    device = None if device is None else devices.resolve(device)
    if indices is None:
        return empty_coo(tuple(size), dtype, device, requires_grad)
    values = _tensor(values, dtype, device)
    indices = _tensor(indices, dtypes.int64, device or values._spec.device).detach()
    if values._spec.ndim == 0:
        values = values.reshape(1)
    ishape, vshape = tuple(indices._spec.shape), tuple(values._spec.shape)
    if len(ishape) != 2:
        raise errors_sparse.indices_rank(ishape)
    if ishape[1] != vshape[0]:
        raise errors_sparse.nnz_differs(ishape[1], vshape[0])
    if size is None:
        size = (*_least_size(indices), *vshape[1:])
    size = tuple(int(n) for n in size)
    if any(n < 0 for n in size):
        raise errors_sparse.negative_size(size)
    if len(size) != ishape[0] + len(vshape) - 1:
        raise errors_sparse.size_length(ishape[0], len(vshape) - 1, len(size))
    if vshape[1:] != size[ishape[0] :]:
        raise errors_sparse.values_size((vshape[0], *size[ishape[0] :]), vshape)
    if _checks(check_invariants):
        _check_coo(indices, size, is_coalesced)
    made = coo(size, indices, values.detach(), bool(is_coalesced))
    return _finish(made, values, "SparseCooTensorWithDimsAndTensorsBackward0", requires_grad)


def _least_size(indices):
    found = host(indices)
    if not found.shape[1]:
        return (0,) * found.shape[0]
    for d, low in enumerate(found.min(1)):
        if low < 0:
            raise errors_sparse.negative_index(int(low), d)
    return tuple(int(n) + 1 for n in found.max(1))


def _check_coo(indices, size, is_coalesced):
    found = host(indices)
    for d, row in enumerate(found):
        if row.size and row.min() < 0:
            raise errors_sparse.negative_index(int(row.min()), d)
        if row.size and row.max() >= size[d]:
            raise errors_sparse.index_too_large(d, size[d], int(row.max()))
    if is_coalesced and not (np.diff(linear(found, size)) > 0).all():
        raise errors_sparse.not_coalesced()


def empty_coo(size, dtype=None, device=None, requires_grad=False, sparse_dim=None):
    """A tensor of coordinates without values."""
    if any(n < 0 for n in size):
        raise errors_sparse.negative_size(size)
    n = len(size) if sparse_dim is None else sparse_dim
    indices = creation.empty((n, 0), dtype=dtypes.int64, device=device)
    made = coo(size, indices, creation.empty((0, *size[n:]), dtype=dtype, device=device), True)
    return made.requires_grad_() if requires_grad else made


def empty_of(kind, size, dtype=None, device=None, requires_grad=False):
    """A tensor of a sparse layout without values: what torch.zeros and torch.empty give for it."""
    size = tuple(size)
    if kind == "coo":
        return empty_coo(size, dtype, device, requires_grad)
    if kind in ("bsr", "bsc"):
        raise errors_sparse.wrong_layout("zeros_sparse_compressed", "sparse compressed (non-block) tensor", kind)
    if len(size) < 2:
        raise errors_sparse.argument_dim("torch.empty", "at least 2 dimensions for a compressed layout", len(size))
    return _without_values(kind, size, 0, (), dtype, device, requires_grad)


def empty_like_of(kind, input, dtype, device, requires_grad):
    """A tensor of a layout without values, with the dense dimensions and the blocks of another sparse tensor."""
    dense = input.dense_dim()
    if kind == "coo":
        sparse = input._spec.ndim - dense
        indices = creation.empty((sparse, 0), dtype=dtypes.int64, device=device)
        made = coo(
            input._spec.shape,
            indices,
            creation.empty((0, *input._spec.shape[sparse:]), dtype=dtype, device=device),
            True,
        )
        return made.requires_grad_() if requires_grad else made
    block = ()
    if input._kind in ("bsr", "bsc"):
        end = input._of._spec.ndim - dense
        block = tuple(input._of._spec.shape[end - 2 : end])
    return _without_values(kind, input._spec.shape, dense, block, dtype, device, requires_grad)


def _without_values(kind, size, dense, block, dtype, device, requires_grad):
    """A compressed tensor without values, whose last `dense` dimensions are dense."""
    size = tuple(size)
    *batch, rows, columns = size[: len(size) - dense]
    major = rows // (block or (1, 1))[0] if kind in ("csr", "bsr") else columns // (block or (1, 1))[1]
    starts = creation.zeros((*batch, major + 1), dtype=dtypes.int64, device=device)
    plain = creation.empty((*batch, 0), dtype=dtypes.int64, device=device)
    values = creation.empty((*batch, 0, *block, *size[len(size) - dense :]), dtype=dtype, device=device)
    made = build(kind, size, (starts, plain), values)
    return made.requires_grad_() if requires_grad else made


def _compressed(kind, starts, plain, values, size, dtype, device, requires_grad, check_invariants):
    device = None if device is None else devices.resolve(device)
    values = _tensor(values, dtype, device)
    place = device or values._spec.device
    starts, plain = _tensor(starts, None, place).detach(), _tensor(plain, None, place).detach()
    if size is None:
        size = _compressed_size(kind, starts, plain, values)
    size = tuple(int(n) for n in size)
    made = build(kind, size, (starts, plain), values.detach())
    if _checks(check_invariants):
        _check_compressed(made)
    return _finish(made, values, "SparseCompressedTensorBackward0", requires_grad)


def _compressed_size(kind, starts, plain, values):
    batch = starts._spec.ndim - 1
    blocked = kind in ("bsr", "bsc")
    height, width = values._spec.shape[batch + 1 : batch + 3] if blocked else (1, 1)
    major = starts._spec.shape[-1] - 1
    minor = int(host(plain).max()) + 1 if plain._spec.numel else 0
    rows, columns = (major, minor) if kind in ("csr", "bsr") else (minor, major)
    dense = values._spec.shape[batch + 1 + 2 * blocked :]
    return (*starts._spec.shape[:-1], rows * height, columns * width, *dense)


def _check_compressed(t):
    (first, second), batch = FIELDS[t._kind], t._batch
    starts, plain = t._at
    if starts._spec.dtype is not plain._spec.dtype:
        names = [errors.scalar_name(x._spec.dtype) for x in t._at]
        raise errors_sparse.index_types(first, second, *names)
    if starts._spec.dtype not in (dtypes.int32, dtypes.int64):
        raise errors_sparse.index_type(first, second, errors.scalar_name(starts._spec.dtype))
    if plain._spec.ndim != batch + 1:
        raise errors_sparse.compressed_rank(second, batch + 1, plain._spec.ndim)
    nnz = t._of._spec.shape[batch]
    by_row = t._kind in ("csr", "bsr")
    height, width = t._of._spec.shape[batch + 1 : batch + 3] if t._blocked else (1, 1)
    rows, columns = t._spec.shape[batch] // height, t._spec.shape[batch + 1] // width
    major, minor = (rows, columns) if by_row else (columns, rows)
    if starts._spec.shape[-1] != major + 1:
        raise errors_sparse.starts_length(first, "row" if by_row else "column", major + 1, starts._spec.shape[-1])
    if plain._spec.shape[-1] != nnz:
        raise errors_sparse.plain_length(second, nnz, batch, plain._spec.shape[-1])
    s, p = host(starts).astype(np.int64), host(plain).astype(np.int64)
    lanes = "ncols" if by_row else "nrows"
    if s.size and (s[..., 0] != 0).any():
        raise errors_sparse.unsatisfied(f"{first}[..., 0] == 0")
    if s.size and (s[..., -1] != nnz).any():
        raise errors_sparse.unsatisfied(f"{first}[..., -1] == nnz")
    step = np.diff(s)
    if (step < 0).any() or (step > minor).any():
        raise errors_sparse.unsatisfied(f"0 <= {first}[..., 1:] - {first}[..., :-1] <= {lanes}")
    if p.size and p.min() < 0:
        raise errors_sparse.unsatisfied(f"0 <= {second}.min()")
    if p.size and p.max() >= minor:
        raise errors_sparse.unsatisfied(f"{second}.max() < {lanes}")
    where = coordinates(t)
    lane = where[1] if by_row else where[2]
    if ((np.diff(lane) == 0) & (np.diff(p) <= 0)).any():
        within = (
            f"{second}[..., {first}[..., i - 1]:{first}[..., i]] for all i = 1, ..., {'nrows' if by_row else 'ncols'}"
        )
        raise errors_sparse.unsatisfied(f"{within} are sorted and distinct along the last dimension values")


_DOC = """A sparse tensor of the layout {kind}.

    {first} ({axis}s + 1,) and {second} (nnz,), both after the same batch dimensions; values (nnz, {block}*dense dims).
    RuntimeError, with `check_invariants`: parts that do not fit.
    https://docs.pytorch.org/docs/stable/generated/torch.sparse_{kind}_tensor.html
    """


def _constructor(kind):
    first, second = FIELDS[kind]

    def make(
        *args,
        dtype=None,
        device=None,
        pin_memory=False,
        requires_grad=False,
        check_invariants=None,
        layout=None,
        **named,
    ):
        parts = [*args]
        for name in (first, second, "values", "size")[len(args) :]:
            parts.append(named.pop(name, None))
        if named or len(parts) > 4 or any(p is None for p in parts[:3]):
            raise TypeError(
                f"sparse_{kind}_tensor() takes ({first}, {second}, values, size=None), all of the first three"
            )
        return _compressed(kind, *parts, dtype, device, requires_grad, check_invariants)

    make.__name__ = make.__qualname__ = f"sparse_{kind}_tensor"
    make.__doc__ = _DOC.format(
        kind=kind,
        first=first,
        second=second,
        axis="row" if kind[2] == "r" else "column",
        block="*block, " * (kind[0] == "b"),
    )
    make.__module__ = "jtorch"
    return make


sparse_csr_tensor = _constructor("csr")
sparse_csc_tensor = _constructor("csc")
sparse_bsr_tensor = _constructor("bsr")
sparse_bsc_tensor = _constructor("bsc")


def sparse_compressed_tensor(
    compressed_indices, plain_indices, values, size=None, *, dtype=None, layout=None, device=None, pin_memory=False,
    requires_grad=False, check_invariants=None,
):  # fmt: skip
    """A sparse tensor of one of the compressed layouts: csr, csc, bsr or bsc.

    The parts are those of the layout's own constructor. RuntimeError: no layout, or another.
    https://docs.pytorch.org/docs/stable/generated/torch.sparse_compressed_tensor.html
    """
    kind = None if layout is None else layout.name.removeprefix("sparse_")
    if kind not in FIELDS:
        raise errors_sparse.no_layout(layout)
    return _compressed(
        kind, compressed_indices, plain_indices, values, size, dtype, device, requires_grad, check_invariants
    )
