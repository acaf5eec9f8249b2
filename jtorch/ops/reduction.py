"""What all losses share: PyTorch's reductions, its two deprecated arguments, and the dtypes that it refuses."""

import warnings

import jax.numpy as jnp

from jtorch import errors as call_errors
from jtorch import errors_nn as errors
from jtorch.core.dtype import INT, promote

from .backend import need_floats
from .registry import op

REDUCTIONS = ("none", "mean", "sum")
OLD_MEAN = "elementwise_mean"


def reduction_of(reduction, size_average=None, reduce=None) -> str:
    """The reduction that the current and the two deprecated arguments say."""
    if size_average is None and reduce is None:
        return "mean" if reduction == OLD_MEAN else reduction
    reduce = True if reduce is None else reduce
    if not reduce:
        return "none"
    return "mean" if size_average is None or size_average else "sum"


def check_reduction(size_average, reduce, reduction, allowed=REDUCTIONS, words=None):
    """Warn of the deprecated arguments and refuse an unknown reduction; with `words`, PyTorch adds those to the name."""
    if size_average is not None or reduce is not None:
        instead = reduction_of(reduction, size_average, reduce)
        warnings.warn(
            f"size_average and reduce args will be deprecated, please use reduction='{instead}' instead.",
            stacklevel=2,
        )
    elif reduction == OLD_MEAN and words is None:
        warnings.warn("reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.", stacklevel=2)
    elif reduction not in allowed:
        if words is not None:
            raise ValueError(reduction + words)  # what is no string is a TypeError
        raise ValueError(f"{reduction} is not a valid value for reduction")


def reduce_loss(loss, reduction, dtype=None):
    if reduction in ("mean", OLD_MEAN):
        loss = jnp.mean(loss)
    elif reduction == "sum":
        loss = jnp.sum(loss, dtype=jnp.int64 if jnp.issubdtype(loss.dtype, jnp.integer) else None)
    return loss if dtype is None else loss.astype(dtype)


_LEGACY = ("size_average", "reduce")
_LOOKED_AT = {"multi_margin_loss": "p", "triplet_margin_loss": "margin"}  # by PyTorch's functions in Python
_WANTED = {float: "float", int: "int", bool: "bool"}
_KINDS = {float: (float, int), int: (int,), bool: (bool,)}


def check_plain(record, arguments, function=None, named=()):
    """Refuse flags and numbers of another kind, which PyTorch's losses hand to functions in C.

    function: the name there. named: what goes there by keyword, so that no position is said. Where the reduction stands
    differs between the two for `ignore_index` alone.
    """
    at = 0
    for p in record.params:
        at += p.name not in _LEGACY
        value = arguments[p.name]
        kind = p.annotation
        if kind not in _WANTED or value is p.default or _LOOKED_AT.get(record.name) == p.name:
            continue
        if not isinstance(value, _KINDS[kind]) or (kind is int and isinstance(value, bool)):
            position = None if p.name in named else at + (p.name == "ignore_index")
            raise call_errors.argument(function or record.name, p.name, _WANTED[kind], value, position)


def loss_op(name_of_grad=None, allowed=REDUCTIONS, *, words=None, function=None, named=(), asked=None, **options):
    """An op in nn.functional with the arguments size_average, reduce and reduction, which it checks.

    words: see `check_reduction`; function, named: see `check_plain`; asked: see `Record.asked`.
    """

    def decorate(fn):
        record = op(where="nn.functional", grad_name=name_of_grad, inplace=False, out=False, **options)(fn)
        record.asked = asked
        if function is not None:
            record.shown = function

        @record.check
        def check(*args, **kwargs):
            at = record.arguments(args, kwargs)
            check_reduction(at["size_average"], at["reduce"], at["reduction"], allowed, words)
            check_plain(record, at, function, named)

        return record

    return decorate


def by_reduction(elementwise):
    """The node's name where PyTorch builds the loss of other ops: the last of them, without a reduction also by the arguments."""

    def name(args):
        reduction = reduction_of(args["reduction"], args["size_average"], args["reduce"])
        if reduction == "none":
            return elementwise if isinstance(elementwise, str) else elementwise(args)
        return {"sum": "SumBackward0", "batchmean": "DivBackward0"}.get(reduction, "MeanBackward0")

    return name


def refuse(record, error, *categories):
    """Refuse a first argument whose dtype is of one of these categories; `error` makes the exception of the dtype."""

    @record.check
    def check(input, *args, **kwargs):
        if input.dtype.category in categories:
            raise error(input.dtype)


def floats_only(record, kernel: str, *, halves: bool = True):
    record.check(lambda input, *args, **kwargs: need_floats(input, kernel, halves=halves))


def no_mean_of_integers(record):

    @record.check
    def check(*args, **kwargs):
        at = record.arguments(args, kwargs)
        dtype = at["input"].dtype
        if (
            dtype.category <= INT
            and at["target"].dtype.category <= INT
            and reduction_of(at["reduction"], at["size_average"], at["reduce"]) == "mean"
        ):
            raise errors.mean_dtype(dtype)


def into_input(input, target):
    """Refuse a target that takes the loss to another kind of number than the input, whose dtype the loss has."""
    if target.dtype.category > input.dtype.category:
        raise errors.result_cast(promote(input.dtype, target.dtype), input.dtype)


def warn_sizes(input, target):
    if tuple(input.shape) != tuple(target.shape):
        call_errors.warn(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}). "
            "This will likely lead to incorrect results due to broadcasting. "
            "Please ensure they have the same size."
        )
