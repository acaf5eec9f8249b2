"""The shapes of pooling: windows, sizes of results, and PyTorch's errors. Integers and Specs only."""

import builtins

from jtorch import errors_nn as errors
from jtorch.core import dtype as dtypes
from jtorch.core.dtype import FLOAT, INT, scalar_name
from jtorch.errors import no_dimension

from .backend import need_floats
from .conv_shapes import Geometry, tuple_of


def geometry(n, spatial, kernel, stride, padding, dilation, ceil_mode):
    """(kernel, geometry, output size) of a pooling over `spatial`."""
    kernel = tuple_of(kernel, n)
    stride = kernel if stride is None or stride == () else tuple_of(stride, n)
    padding, dilation = tuple_of(padding, n), tuple_of(dilation, n)
    out = []
    for size, k, s, p, d in zip(spatial, kernel, stride, padding, dilation):
        o = (size + 2 * p - d * (k - 1) - 1 + (s - 1 if ceil_mode else 0)) // s + 1
        if ceil_mode and (o - 1) * s >= size + p:
            o -= 1  # the last window must start inside the input or its left padding
        out.append(o)
    return kernel, Geometry(stride, padding, padding, dilation, 1), tuple(out)


def check_max_pool1d(input, kernel_size, stride, padding, dilation, ceil_mode):
    shape = tuple(input.shape)
    if input.ndim not in (2, 3) or 0 in shape[-2:]:
        raise RuntimeError(
            "max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for input, "
            f"but got:{list(shape)}"
        )
    settings = (("kernel_size", kernel_size), ("stride", stride), ("padding", padding), ("dilation", dilation))
    for label, value in settings:
        if not isinstance(value, int | None) and len(value) != 1 and not (label == "stride" and value == ()):
            kinds = {"stride": "None, an int, list of ints, or", "padding": "an int, list of ints, or"}
            raise RuntimeError(
                f"max_pool1d() {label} must be {kinds.get(label, 'an int, list of ints or')} tuple of ints of size 1 "
                f"but got size {len(value)}"
            )
    k, p, d = (tuple_of(v, 1)[0] for v in (kernel_size, padding, dilation))
    s = k if stride in (None, ()) else tuple_of(stride, 1)[0]
    for label, value in (("kernel_size", k), ("stride", s), ("dilation", d)):
        if value <= 0:
            raise RuntimeError(f"max_pool1d() {label} must be greater than zero, but got {value}")
    if p < 0:
        raise RuntimeError(f"max_pool1d() padding must be non-negative, but got {p}")
    if p > k // 2:
        raise RuntimeError(
            f"max_pool1d() padding should be at most half of kernel size, but got padding={p} and kernel_size={k}"
        )
    (size,) = geometry(1, shape[-1:], k, s, p, d, ceil_mode)[2]
    if size <= 0:
        raise RuntimeError(f"max_pool1d() Invalid computed output size: {size}")


def check_max_pool1d_indices(input, kernel_size, stride, padding, dilation, ceil_mode):
    """PyTorch computes it in two dimensions, and its errors show that."""
    if input.ndim not in (2, 3):
        raise _two_or_three(input, "max_pool1d")
    k, s, p, d = _single("max_pool1d", kernel_size, stride, padding, dilation)
    planes = (*input.shape[:-1], 1, input.shape[-1])
    _check_planes("max", 2, planes, (1, k), (1, s), (0, p), (1, d), ceil_mode)


def check_max_pool(n, input, kernel_size, stride, padding, dilation, ceil_mode):
    _check_planes("max", n, tuple(input.shape), kernel_size, stride, padding, dilation, ceil_mode)


def _two_or_three(input, name) -> RuntimeError:
    return RuntimeError(
        f"Expected 2 to 3 dimensions, but got {input.ndim}-dimensional tensor for argument #1 'self' "
        f"(while checking arguments for {name})"
    )


def _single(name, kernel_size, stride, padding, dilation):
    """The one number of each setting."""
    settings = (("kernel_size", kernel_size), ("stride", stride), ("padding", padding), ("dilation", dilation))
    for label, value in settings:
        if not isinstance(value, int | None) and len(value) != 1 and not (label == "stride" and value == ()):
            raise RuntimeError(f"{name}() argument '{label}' should contain one int (got {len(value)})")
    k, p, d = (tuple_of(v, 1)[0] for v in (kernel_size, padding, dilation))
    return k, k if stride in (None, ()) else tuple_of(stride, 1)[0], p, d


def check_avg_pool(n, input, kernel_size, stride, padding, ceil_mode, divisor_override=None):
    shape = tuple(input.shape)
    if n == 1:
        if input.ndim not in (2, 3):
            raise _two_or_three(input, "avg_pool1d")
        k, s, p, _ = _single("avg_pool1d", kernel_size, stride, padding, 1)
        _check_planes("avg", 2, (*shape[:-1], 1, shape[-1]), (1, k), (1, s), (0, p), 1, ceil_mode)
    else:
        if divisor_override == 0:
            raise RuntimeError("divisor must be not zero")
        _check_planes("avg", n, shape, kernel_size, stride, padding, 1, ceil_mode)
    if input.dtype is not dtypes.int64:
        need_floats(input, "avg_pool3d_out_frame" if n == 3 else "avg_pool2d", halves=n < 3)


def _check_planes(kind, n, shape, kernel_size, stride, padding, dilation, ceil_mode):
    name = f"{kind}_pool{n}d"
    _check_lengths(name, n, kernel_size, stride, padding, dilation)
    if kind == "avg" and n == 2:
        if len(shape) < 3:
            raise no_dimension(-3, len(shape))
        if len(shape) > 4:
            raise errors.pool_batch_empty(name, 2, shape)
    if len(shape) not in (n + 1, n + 2):
        raise RuntimeError(f"non-empty {n + 1}D or {n + 2}D (batch mode) tensor expected for input")
    stride = tuple_of(kernel_size if stride in (None, ()) else stride, n)
    if 0 in stride:
        raise RuntimeError("stride should not be zero")
    _check_half_padding(n, kernel_size, padding, dilation)
    if any(v < 0 for v in stride):
        raise RuntimeError("stride should be greater than zero, but got " + _spell("d", stride))
    if any(v <= 0 for v in tuple_of(dilation, n)):
        raise RuntimeError("dilation should be greater than zero, but got " + _spell("dilation", tuple_of(dilation, n)))
    if 0 in shape[-n - 1 :]:
        raise errors.pool_batch_empty(name, n, shape)
    if kind == "avg" and n == 3:
        _check_covers(shape[-3:], tuple_of(kernel_size, 3))
    out = geometry(n, shape[-n:], kernel_size, stride, padding, dilation, ceil_mode)[2]
    if any(o < 1 for o in out):
        raise _too_small(shape[-n - 1], shape[-n:], out)


def _check_lengths(name, n, kernel_size, stride, padding, dilation):
    many = {2: "tuple of two ints", 3: "tuple of three ints"}[n]
    must = "must be" if name == "avg_pool3d" else "must either be"
    settings = (
        ("kernel_size", kernel_size, f"{must} a single int, or a {many}"),
        ("stride", stride, f"{must} omitted, a single int, or a {many}"),
        ("padding", padding, f"{must} a single int, or a {many}"),
        ("dilation", dilation, f"must be either a single int, or a {many}"),
    )
    for label, value, words in settings:
        if not isinstance(value, int | None) and len(value) not in ((0, 1, n) if label == "stride" else (1, n)):
            raise RuntimeError(f"{name}: {label} {words}")


def _check_covers(spatial, kernel):
    if any(s < k for s, k in zip(spatial, kernel)):  # whatever the padding
        sizes = " ".join(f"{axis}: {s}" for axis, s in zip("THW", spatial))
        raise RuntimeError(f"input image ({sizes}) smaller than kernel size ({_spell('k', kernel)})")


def _spell(label, values) -> str:
    return " ".join(f"{label}{axis}: {v}" for axis, v in zip("THW"[-len(values) :], values))


def _check_half_padding(n, kernel_size, padding, dilation):
    for k, p, d in zip(tuple_of(kernel_size, n), tuple_of(padding, n), tuple_of(dilation, n)):
        if p < 0:
            raise RuntimeError(f"pad must be non-negative, but got pad: {p}")
        if p > ((k - 1) * d + 1) // 2:
            raise RuntimeError(
                "pad should be at most half of effective kernel size, but got "
                f"pad={p}, kernel_size={k} and dilation={d}"
            )


def _too_small(channels, spatial, out) -> RuntimeError:
    given, got = ("x".join(map(str, (channels, *s))) for s in (spatial, out))
    return RuntimeError(f"Given input size: ({given}). Calculated output size: ({got}). Output size is too small")


def adaptive_size(output_size, spatial) -> tuple[int, ...]:
    n = len(spatial)
    sizes = (output_size,) * n if output_size is None or isinstance(output_size, int) else tuple(output_size)
    return tuple(s if o is None else o for o, s in zip(sizes, spatial))


def check_adaptive(kind, n, input, output_size):
    name = f"adaptive_{kind}_pool{n}d"
    shape = list(input.shape)
    if n == 1:
        if input.ndim not in (2, 3):
            raise RuntimeError(
                f"Expected 2 to 3 dimensions, but got {input.ndim}-dimensional tensor for argument #1 'self' "
                f"(while checking arguments for {name})"
            )
        if not isinstance(output_size, int) and len(output_size) != 1:
            raise RuntimeError(f"{name}() argument 'output_size' should contain one int (got {len(output_size)})")
    elif not isinstance(output_size, int):
        if input.ndim <= len(output_size):
            raise ValueError(f"Input dimension should be at least {len(output_size) + 1}")
        if len(output_size) != n:
            internal = f"{name}(): internal error: output_size.size() must be {n}"
            raise RuntimeError(internal if kind == "max" else f"{name}: output_size must be {n}")
    if input.ndim not in (n + 1, n + 2):
        colon = ":" if kind == "max" else ""
        raise RuntimeError(f"{name}(): Expected {n + 1}D or {n + 2}D tensor, but got{colon} {shape}")
    target = adaptive_size(output_size, shape[-n:])
    if kind == "avg":
        _check_adaptive_avg(builtins.max(n, 2), n, input, target)
        return
    for i in range(1, input.ndim):  # the first one may be empty, channels too
        if shape[i] == 0:
            raise errors.pool_empty(name, shape, i)
    if builtins.min(target) < 0:
        raise errors.negative_size(target, (*shape[:-n], *(1,) * (n == 1), *target))
    if input.dtype.category != FLOAT:
        raise errors.not_implemented("adaptive_max_pool3d_cpu" if n == 3 else "adaptive_max_pool2d", input.dtype)


def _check_adaptive_avg(planes, n, input, target):
    """PyTorch computes one dimension as two, and its errors show that."""
    name, extra = f"adaptive_avg_pool{planes}d", (1,) * (planes - n)
    shape, target = [*input.shape[:-n], *extra, *input.shape[-n:]], (*extra, *target)
    if builtins.min(target) < 0:
        shown = f"{{{target[0]}, {','.join(map(str, target[1:]))}}}"
        raise RuntimeError(f"{name}: elements of output_size must be greater than or equal to 0 but received {shown}")
    one = all(t == 1 for t in target)
    if one:
        if input.dtype.category <= INT:
            raise errors.mean_dtype(input.dtype)
        return
    for i in range(1 if n == 3 else len(shape) - planes, len(shape)):
        if shape[i] == 0:
            raise errors.pool_empty(name, shape, i)
    if input.dtype.category != FLOAT and (n == 3 or input.numel):
        raise errors.not_implemented(name if n < 3 else "adaptive_avg_pool3d_cpu", input.dtype)


def unpooled(n, spatial, kernel_size, stride, padding, output_size):
    kernel = tuple_of(kernel_size, n)
    stride = kernel if stride is None or stride == () else tuple_of(stride, n)
    padding = tuple_of(padding, n)
    default = tuple((s - 1) * st + k - 2 * p for s, st, k, p in zip(spatial, stride, kernel, padding))
    return default if output_size is None else tuple(output_size)[-n:]


def check_unpool(n, input, indices, kernel_size, stride, padding, output_size):
    planes = (1,) if n == 1 else ()
    if input.ndim < n:
        raise IndexError("tuple index out of range")
    shape, other = ((*tuple(x.shape), *planes) for x in (input, indices))
    _check_unpooled_size(n, input, kernel_size, stride, padding, output_size)
    if indices.dtype is not dtypes.int64:
        got = f" but got: {scalar_name(indices.dtype)}" if n < 3 else ""
        raise RuntimeError("elements in indices should be type int64" + got)
    dims = builtins.max(n, 2)
    if len(shape) not in (dims + 1, dims + 2):
        raise RuntimeError(
            f"Input to max_unpooling{dims}d should be a {dims + 1}d or {dims + 2}d Tensor, but got a tensor with {len(shape)} "
            "dimensions."
        )
    if shape != other:
        raise RuntimeError(
            f"Expected shape of indices to be same as that of the input tensor ({list(shape)}) but got indices tensor "
            f"with shape: {list(other)}"
        )
    for i in range(len(shape) - dims - 1 if len(shape) > dims + 1 else 1, len(shape)):
        if shape[i] == 0:
            raise RuntimeError(
                f"max_unpooling{dims}d_forward_out_cpu(): Expected input to have non-zero size for non-batch "
                f"dimensions, but got {list(shape)} with dimension {i} being empty."
            )


def _check_unpooled_size(n, input, kernel_size, stride, padding, output_size):
    """A size that is asked for may differ from the usual one by less than a stride."""
    if output_size is None:
        for dim, size in enumerate(unpooled(n, input.shape[-n:], kernel_size, stride, padding, None)):
            if size < 0:
                raise ValueError(
                    f"max_unpooling: output_size must contain non-negative spatial dimensions, but got output_size[{dim}]={size}"
                )
        return
    if len(output_size) not in (n, n + 2):
        raise ValueError(
            f"output_size should be a sequence containing {n} or {n + 2} elements, but it has a length of "
            f"'{len(output_size)}'"
        )
    usual = unpooled(n, input.shape[-n:], kernel_size, stride, padding, None)
    wanted = tuple(output_size)[-n:]
    steps = tuple_of(kernel_size if stride in (None, ()) else stride, n)
    for dim, (size, middle, step) in enumerate(zip(wanted, usual, steps)):
        if not middle - step < size < middle + step:
            raise ValueError(
                f'invalid output_size "{wanted}" (dim {dim} must be between {middle - step} and {middle + step})'
            )


def check_fractional(n: int, input, kernel_size, output_size) -> None:
    """Whether so many windows, of different starts, have room in each dimension."""
    name = f"fractional_max_pool{n}d{'_out' if n == 3 else ''}()"
    shape = tuple(input.shape)
    if len(shape) not in (n + 1, n + 2):
        raise RuntimeError(f"{name}: Expected {n + 1}D or {n + 2}D tensor, but got: {list(shape)}")
    for at in range(1, len(shape)):
        if not shape[at]:
            raise RuntimeError(
                f"{name}: Expected input to have non-zero size for non-batch dimensions, but got{list(shape)} with "
                f"dimension {at} being empty."
            )
    for label, value in (("kernel_size", kernel_size), ("output_size", output_size)):
        if isinstance(value, tuple) and len(value) != n:
            many = "three Ints" if n == 3 else "Ints"
            raise RuntimeError(f"fractional_max_pool{n}d: {label} must either be a single Int or tuple of {many}")
    sizes = zip(("time", "height", "width")[-n:], tuple_of(kernel_size, n), tuple_of(output_size, n), shape[-n:])
    for side, kernel, out, size in sizes:
        if out + kernel - 1 > size - (n == 3):  # in three dimensions PyTorch wants room to move
            raise RuntimeError(f"{name}: pool {side} {kernel} too large relative to input {side} {size}")


def check_fractional_samples(n, input, samples):
    """What says where the windows of fractional pooling start: n numbers for each channel of each image."""
    name = "Expect _random_samples"
    if samples.dtype is not input.dtype:
        raise RuntimeError(f"{name} to have the same dtype as input")
    if samples.ndim != 3:
        raise RuntimeError(f"{name} to have 3 dimensions, got {samples.ndim}")
    batch, channels = (1, *input.shape)[-n - 2 : -n] if input.ndim == n + 1 else input.shape[:2]
    if samples.shape[0] < batch:
        raise RuntimeError(f"{name}.size(0) no less then input batch size.")
    if samples.shape[1] != channels:
        raise RuntimeError(f"{name}.size(1) equals to input channel size.")
    if samples.shape[2] != n:
        raise RuntimeError(f"{name}.size(2) equals to {n}; got {samples.shape[2]}.")
