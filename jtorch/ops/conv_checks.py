"""What PyTorch refuses in the arguments of a convolution, in its words."""

import functools

from jtorch import errors_nn as errors
from jtorch.core import dtype as dtypes
from jtorch.core.dtype import INT, scalar_name
from jtorch.errors import warn

from .conv_shapes import geometry, transposed_spatial, tuple_of


@functools.cache
def _warn_of_copy():
    """Once in a process, as PyTorch does."""
    words = "Using padding='same' with even kernel lengths and odd dilation may require a zero-padded copy of the input be created"
    warn(words)


def check_conv(name, input, weight, bias, stride, padding, output_padding, dilation, groups, transposed):
    """The arguments of the call of `name`; output_padding counts where it is transposed."""
    n = int(name[-2])
    shape = list(input.shape)
    if input.ndim not in (n + 1, n + 2):
        raise RuntimeError(
            f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to {name}, but got input of size: {shape}"
        )
    if isinstance(padding, str):
        if padding not in ("same", "valid"):
            raise RuntimeError(f"Invalid padding string: '{padding}'")
        if padding == "same" and any(s != 1 for s in tuple_of(stride, n)):
            raise RuntimeError("padding='same' is not supported for strided convolutions")
    dims = weight.ndim - 2
    settings = (
        ("stride", stride),
        ("padding", padding),
        ("dilation", dilation),
        ("output_padding", output_padding),
    )
    for label, value in settings:
        if not isinstance(value, (int, str)) and len(value) not in (1, dims):
            raise RuntimeError(
                f"expected {label} to be a single integer value or a list of {dims} values to match the "
                f"convolution dimensions, but got {label}={list(value)}"
            )
    if dims < 1:
        raise RuntimeError("weight should have at least three dimensions")
    if dims != n and padding == "same":
        shape = shape if input.ndim == n + 2 else [1, *shape]
        raise RuntimeError(
            f"Expected {dims + 2}-dimensional input for {dims + 2}-dimensional weight{list(weight.shape)}, but got "
            f"{n + 2}-dimensional input of size {shape} instead"
        )
    if dims != n:
        raise RuntimeError(
            f"expected stride to be a single integer value or a list of {dims} values to match the "
            f"convolution dimensions, but got stride={list(tuple_of(stride, n))}"
        )
    lengths = zip(tuple_of(dilation, n), tuple(weight.shape[2:]))
    if padding == "same" and any(d * (k - 1) % 2 for d, k in lengths):
        _warn_of_copy()
    if bias is not None and bias.dtype is not input.dtype:
        raise RuntimeError(f"Input type ({_c_name(input)}) and bias type ({_c_name(bias)}) should be the same")
    if weight.dtype is not input.dtype:
        raise RuntimeError(f"expected scalar type {scalar_name(input.dtype)} but found {scalar_name(weight.dtype)}")
    _check_numbers(n, stride, padding, output_padding, dilation, groups)
    _check_shapes(shape if input.ndim == n + 2 else [1, *shape], list(weight.shape), bias, groups, transposed)
    _check_dtype(n, input.dtype, transposed)
    if transposed:
        _check_extent(tuple(weight.shape[2:]))
        _check_transposed_size(n, input, weight, stride, padding, output_padding, dilation)
    else:
        _check_kernel_fits(input.shape[-n:], weight.shape[2:], stride, padding, dilation, groups)
    if 0 in input.shape[-n:] and 0 not in input.shape[:-n]:
        shape = [1] * (n + 2 - input.ndim) + [*shape[:-1], *[1] * (n == 1), shape[-1]]
        raise RuntimeError(f"Only zero batch or zero channel inputs are supported, but got input shape: {shape}")


def _c_name(spec) -> str:
    name = scalar_name(spec.dtype)
    return {
        "Half": "c10::Half",
        "BFloat16": "c10::BFloat16",
        "Long": "long int",
        "Byte": "unsigned char",
    }.get(name, name.lower())


def _check_numbers(n, stride, padding, output_padding, dilation, groups):
    if groups <= 0:
        raise RuntimeError("non-positive groups is not supported")
    if not isinstance(padding, str) and any(p < 0 for p in tuple_of(padding, n)):
        raise RuntimeError("negative padding is not supported")
    if any(p < 0 for p in tuple_of(output_padding, n)):
        raise RuntimeError("negative output_padding is not supported")
    if any(s <= 0 for s in tuple_of(stride, n)):
        raise RuntimeError("non-positive stride is not supported")
    if any(d <= 0 for d in tuple_of(dilation, n)):
        raise RuntimeError(f"dilation should be greater than zero, but got {list(tuple_of(dilation, n))}")


def _check_shapes(shape, weight, bias, groups, transposed):
    if weight[0] < groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be at least {groups} at dimension 0, "
            f"but got weight of size {weight} instead"
        )
    if weight[0] % groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, "
            f"but got weight of size [{weight}] instead"
        )
    given = "transposed=1" if transposed else f"groups={groups}"
    channels = weight[0] if transposed else weight[1] * groups
    if shape[1] != channels:
        raise RuntimeError(
            f"Given {given}, weight of size {weight}, expected input{shape} to have {channels} channels, "
            f"but got {shape[1]} channels instead"
        )
    features = weight[1] * groups if transposed else weight[0]
    if bias is not None and tuple(bias.shape) != (features,):
        given = "transposed=1, " if transposed else ""
        raise RuntimeError(
            f"Given {given}weight of size {weight}, expected bias to be 1-dimensional with {features} "
            f"elements, but got bias of size {list(bias.shape)} instead"
        )


def _check_dtype(n, dtype, transposed):
    """PyTorch's CPU kernels take no bools, and when transposed int64 alone of the integers."""
    kernel = {1: "slow_conv2d_cpu", 2: "slow_conv2d_cpu", 3: "compute_columns3d"}[n]
    if transposed:
        kernel = f"slow_conv_transpose{max(n, 2)}d_out_cpu"
    if dtype is dtypes.bool_ or (transposed and dtype.category == INT and dtype is not dtypes.int64):
        raise errors.not_implemented(kernel, dtype)


def _times(sizes) -> str:
    return f"({' x '.join(map(str, sizes))})"


def _check_extent(kernel):
    """Refuse kernels without elements."""
    if 0 in kernel:
        names = ("depth", "height", "width")
        sizes = kernel if len(kernel) > 1 else (1, *kernel)
        shown = " ".join(f"kernel_{name}: {k}" for name, k in zip(names[-len(sizes) :], sizes))
        raise RuntimeError(f"kernel size should be greater than zero, but got {shown}")


def _check_kernel_fits(spatial, kernel, stride, padding, dilation, groups):
    _check_extent(tuple(kernel))
    geo = geometry(kernel, stride, padding, dilation, groups)
    padded = [s + lo + hi for s, lo, hi in zip(spatial, geo.lo, geo.hi)]
    reach = [d * (k - 1) + 1 for d, k in zip(geo.dilation, kernel)]
    if any(r > s for r, s in zip(reach, padded)):
        raise RuntimeError(
            f"Calculated padded input size per channel: {_times(padded)}. Kernel size: {_times(reach)}. "
            f"Kernel size can't be greater than actual input size"
        )


def _check_transposed_size(n, input, weight, stride, padding, output_padding, dilation):
    extra, step, spread = (tuple_of(v, n) for v in (output_padding, stride, dilation))
    if any(e >= s and e >= d for e, s, d in zip(extra, step, spread)):
        names = ("depth", "height", "width")[-max(n, 2) :]

        def spell(label, values):
            values = values if n > 1 else (1, *values) if label != "output_padding" else (0, *values)
            return " ".join(f"{label}_{d}: {v}" for d, v in zip(names, values))

        raise RuntimeError(
            "output padding must be smaller than either stride or dilation, but got "
            f"{spell('output_padding', extra)} {spell('stride', step)} {spell('dilation', spread)}"
        )
    spatial = tuple(input.shape[-n:])
    out = transposed_spatial(spatial, weight.shape[2:], stride, padding, output_padding, dilation)
    if any(o < 1 for o in out):
        raise RuntimeError(
            f"Given input size per channel: {_times(spatial)}. "
            f"Calculated output size per channel: {_times(out)}. Output size is too small"
        )
