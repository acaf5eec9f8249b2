"""From a list of samples to a batch: tensors are stacked, numbers become tensors, containers are entered."""

import copy
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence

import numpy as np

from .. import creation
from ..convert import as_elements
from ..core.dtype import float64
from ..core.storage import on_host
from ..tensor import Tensor
from . import tensors

__all__ = ["collate", "default_collate", "default_collate_fn_map", "default_convert"]

allocate = np.empty  # where a batch is written: a worker puts its shared memory here

default_collate_err_msg_format = (
    "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"
)


def _is_text(dtype: np.dtype) -> bool:
    """Arrays of strings, bytes or objects: no tensor holds them."""
    return dtype.kind in "SUO"


def _rebuild_mapping(data, values: dict):
    """A mapping like `data` with these values; a dict where its class cannot be made so."""
    try:
        if isinstance(data, MutableMapping):
            clone = copy.copy(data)  # keeps what a subclass carries beside its items
            clone.update(values)
            return clone
        return type(data)(values)
    except TypeError:
        return values


def _rebuild_sequence(data, values: list):
    """A sequence like `data` with these values; a list where its class cannot be made so."""
    try:
        if isinstance(data, MutableSequence):
            clone = copy.copy(data)
            for i, value in enumerate(values):
                clone[i] = value
            return clone
        return type(data)(values)
    except TypeError:
        return values


def default_convert(data):
    """Numpy arrays and scalars as tensors, inside containers too; everything else as it is."""
    if isinstance(data, tensors.Tensor):
        return data
    if type(data).__module__ == "numpy" and not isinstance(data, np.str_ | np.bytes_):
        if isinstance(data, np.ndarray) and _is_text(data.dtype):
            return data
        return tensors.as_tensor(data)
    if isinstance(data, Mapping):
        return _rebuild_mapping(data, {key: default_convert(data[key]) for key in data})
    if isinstance(data, tuple):
        values = [default_convert(x) for x in data]
        return type(data)(*values) if hasattr(data, "_fields") else values
    if isinstance(data, Sequence) and not isinstance(data, str | bytes):
        return _rebuild_sequence(data, [default_convert(x) for x in data])
    return data


def collate(batch, *, collate_fn_map: dict[type | tuple[type, ...], Callable] | None = None):
    """Join samples by the type of the first one.

    Args:
        batch: the samples
        collate_fn_map: for types (or tuples of types), functions `(batch, *, collate_fn_map)` that join them;
            a type's own entry goes before that of a class it derives from
    """
    first = batch[0]
    if collate_fn_map is not None:
        join = collate_fn_map.get(type(first))
        if join is None:
            join = next((fn for kind, fn in collate_fn_map.items() if isinstance(first, kind)), None)
        if join is not None:
            return join(batch, collate_fn_map=collate_fn_map)

    def enter(samples):
        return collate(samples, collate_fn_map=collate_fn_map)

    if isinstance(first, Mapping):
        return _rebuild_mapping(first, {key: enter([sample[key] for sample in batch]) for key in first})
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(enter(samples) for samples in zip(*batch)))
    if isinstance(first, Sequence):
        if any(len(sample) != len(first) for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        columns = [enter(samples) for samples in zip(*batch)]
        return columns if isinstance(first, tuple) else _rebuild_sequence(first, columns)
    raise TypeError(default_collate_err_msg_format.format(type(first)))


def collate_tensor_fn(batch, *, collate_fn_map=None):
    """Tensors of one shape, stacked."""
    if str(batch[0].layout) != "torch.strided":
        raise RuntimeError(
            "Batches of sparse tensors are not currently supported by the default collate_fn; please provide a custom "
            "collate_fn to handle them appropriately."
        )
    if on_host.always:
        stacked = _stacked_on_host(batch)
        if stacked is not None:
            return stacked
    return tensors.stack(list(batch), 0)


def collate_numpy_array_fn(batch, *, collate_fn_map=None):
    """Arrays of one shape, stacked on the host."""
    if _is_text(batch[0].dtype):
        raise TypeError(default_collate_err_msg_format.format(batch[0].dtype))
    if all(x.shape == batch[0].shape and x.dtype == batch[0].dtype for x in batch):
        return over(np.stack(batch, out=allocate((len(batch), *batch[0].shape), batch[0].dtype)))
    return collate([tensors.as_tensor(x) for x in batch], collate_fn_map=collate_fn_map)


def _stacked_on_host(batch):
    """The stack of plain tensors of one shape and dtype, by numpy; None where there is more to it."""
    spec = batch[0]._spec
    shape, d = spec.shape, spec.dtype
    for t in batch:
        if t._spec.shape != shape or t._spec.dtype is not d or t._edge is not None or t._rg or type(t) is not Tensor:
            return None
    out = allocate((len(batch), *shape), d.memory)
    return creation.lent(np.stack([as_elements(t) for t in batch], out=out))


def over(array):
    """A tensor that takes over an array made here."""
    return creation.lent(array) if on_host.always else tensors.from_numpy(array)


def collate_numpy_scalar_fn(batch, *, collate_fn_map=None):
    """Numpy numbers, as a tensor of their type, or of the type that PyTorch promotes them to."""
    return tensors.as_tensor(np.asarray(batch) if len({type(x) for x in batch}) == 1 else list(batch))


def collate_float_fn(batch, *, collate_fn_map=None):
    """Python floats, in float64."""
    return tensors.tensor(list(batch), dtype=float64)


def collate_int_fn(batch, *, collate_fn_map=None):
    """Python ints or bools."""
    return tensors.tensor(list(batch))


def collate_str_fn(batch, *, collate_fn_map=None):
    """Text, as it came."""
    return batch


default_collate_fn_map: dict[type | tuple[type, ...], Callable] = {
    tensors.Tensor: collate_tensor_fn,
    np.ndarray: collate_numpy_array_fn,
    (np.bool_, np.number, np.object_): collate_numpy_scalar_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}


_standard = dict(default_collate_fn_map)


def own_entries() -> dict:
    """What a program has added to `default_collate_fn_map`, or changed in it."""
    return {k: fn for k, fn in default_collate_fn_map.items() if _standard.get(k) is not fn}


def default_collate(batch):
    """Join samples by `default_collate_fn_map`: what a DataLoader does when it is not told otherwise.

    >>> default_collate([0, 1, 2])
    tensor([0, 1, 2])
    >>> default_collate([(0, "a"), (1, "b")])
    [tensor([0, 1]), ('a', 'b')]
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)
