"""How a call of the public API stands in a traced graph: the operator's name and its arguments in the operator's order."""

import inspect

from ..core import dtype as dtypes
from ..core.device import Device
from ..creation import MemoryFormat, tensor
from ..dispatch import override
from ..overrides import resolve_name
from ..tensor import Tensor

_NUMBERED = {
    "add", "sub", "mul", "div", "add_", "sub_", "mul_", "div_", "rsub", "true_divide", "floor_divide", "subtract", "multiply", "divide",
}  # fmt: skip
_CASTS = {
    "float": dtypes.float32, "double": dtypes.float64, "half": dtypes.float16, "bfloat16": dtypes.bfloat16, "long": dtypes.int64,
    "int": dtypes.int32, "short": dtypes.int16, "char": dtypes.int8, "byte": dtypes.uint8, "bool": dtypes.bool_,
}  # fmt: skip
_RENAMED = {
    "cross_entropy": "cross_entropy_loss", "interpolate": "upsample", "T": "numpy_T", "data": "detach", "__pow__": "pow", "__rsub__": "rsub",
    "__floordiv__": "floor_divide", "__and__": "__and__", "__or__": "__or__", "__eq__": "eq", "__invert__": "bitwise_not", "nll_loss": "nll_loss_nd",
}  # fmt: skip
# preserve_format is the default
_FORMATS = {"torch.contiguous_format": 0, "torch.channels_last": 2, "torch.channels_last_3d": 3}
# Where `*args` is one list of an operator.
_SHAPED = {
    "view", "reshape", "permute", "expand", "repeat", "tile", "zeros", "ones", "empty", "rand", "randn", "einsum", "new_zeros", "new_ones",
    "new_empty", "flip", "rot90", "block_diag", "meshgrid", "broadcast_tensors", "cartesian_prod",
}  # fmt: skip
_REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}
LISTS = {
    "split", "split_with_sizes", "chunk", "unbind", "tensor_split", "hsplit", "vsplit", "dsplit", "meshgrid", "broadcast_tensors", "unsafe_chunk",
    "unsafe_split",
}  # fmt: skip


class Raw:
    """An argument that a graph shows as `shown`, and that the call itself takes as `value`."""

    __slots__ = ("shown", "value")

    def __init__(self, shown, value):
        self.shown, self.value = shown, value


class Recipe:
    """How to make a call again: which input of the node is which argument, and what is not among them."""

    __slots__ = ("fn", "kinds", "names", "rest")

    def __init__(self, fn, kinds, names, rest):
        self.fn, self.kinds, self.names, self.rest = fn, kinds, names, rest

    def __call__(self, inputs):
        given = {**self.rest, **{n: v for n, v in zip(self.names, inputs) if n is not None}}
        args = []
        for n, k in self.kinds.items():
            if k is inspect.Parameter.VAR_POSITIONAL:
                args += given.get(n, ())
            elif k is not inspect.Parameter.KEYWORD_ONLY and n in given:
                args.append(given[n])
        named = {n: given[n] for n, k in self.kinds.items() if k is inspect.Parameter.KEYWORD_ONLY and n in given}
        return self.fn(*args, **named)


_UNSEEN = {"key", "shape", "size"}  # where they are None: the key of random numbers; what `*args` was given, by name


def _bound(fn, args, kwargs):
    """({name: kind}, {name: value}) with defaults; a list for `*args`."""
    try:
        signature = inspect.signature(override.real(fn))  # while a mode is on the code is another
        given = signature.bind(*args, **kwargs)
    except (TypeError, ValueError):
        names = {f"arg{k}": inspect.Parameter.POSITIONAL_ONLY for k in range(len(args))}
        return names | dict.fromkeys(kwargs, inspect.Parameter.KEYWORD_ONLY), dict(zip(names, args)) | kwargs
    written = set(given.arguments)
    given.apply_defaults()
    kinds, values = {}, {}
    for name, p in signature.parameters.items():
        value = given.arguments[name]
        if p.kind is p.VAR_KEYWORD:
            kinds |= dict.fromkeys(value, inspect.Parameter.KEYWORD_ONLY)
            values |= value
            continue
        if value is None and (name == "out" or p.kind is p.KEYWORD_ONLY and name in _UNSEEN):
            continue
        if p.kind is p.VAR_POSITIONAL:
            if not value and name not in written:
                continue
            if not kinds and isinstance(value[0], (Tensor, str)):  # `*args` takes the first operand too
                kinds["arg0"], values["arg0"], value = inspect.Parameter.POSITIONAL_ONLY, value[0], value[1:]
            whole = len(value) == 1 and isinstance(value[0], (list, tuple))
            value = list(value[0]) if whole else list(value)
            if not value:
                continue
        kinds[name], values[name] = p.kind, value
    return kinds, values


def described(fn, args, kwargs, out):
    """(kind, [(argument's name or None, value)], Recipe) of a call and its result."""
    name, space = _name(fn)
    kinds, given = _bound(fn, args, kwargs)
    if name not in _SHAPED:
        kinds, given = _spread(kinds, given)
    if given.pop("inplace", False) is True and not name.endswith("_"):
        name += "_"
        rest = {"inplace": True}
    else:
        rest = {"inplace": False} if "inplace" in kinds else {}
    if "size_average" in given:
        rest |= {n: given.pop(n, None) for n in ("size_average", "reduce")}
        first = [n for n in given if n not in ("reduction", "ignore_index", "label_smoothing")]
        last = [n for n in ("reduction", "ignore_index", "label_smoothing") if n in given]
        given = {n: given[n] for n in (*first, *last)}
    layout = _LAYOUTS.get(name.rstrip("_")) or (_cast if name in _CASTS else None)
    if layout is not None:
        name, placed = layout(name, given, out)
    else:
        placed = list(given.items())
    if name in _NUMBERED:
        placed = [(n, Raw(tensor(_wide(v)), v) if n in ("other", "arg1") and _is_number(v) else v) for n, v in placed]
    placed = [(n, Raw(_REDUCTIONS[v], v) if n == "reduction" and v in _REDUCTIONS else _plain(v)) for n, v in placed]
    names = [n for n, _ in placed]
    rest |= {n: v for n, v in given.items() if n not in names}
    return f"{space}::{name}", placed, Recipe(fn, kinds, names, rest)


def _spread(kinds, given):
    """Arguments of `*args` one by one."""
    star = next((n for n, k in kinds.items() if k is inspect.Parameter.VAR_POSITIONAL and n in given), None)
    if star is None:
        return kinds, given
    names = [f"{star}{k}" for k in range(len(given[star]))]
    one_by_one = {
        m: inspect.Parameter.POSITIONAL_ONLY if n == star else k
        for n, k in kinds.items()
        for m in (names if n == star else [n])
    }
    return one_by_one, {m: w for n, v in given.items() for m, w in (zip(names, v) if n == star else [(n, v)])}


def _plain(value):
    if isinstance(value, MemoryFormat):
        return Raw(_FORMATS.get(str(value)), value)
    return list(value) if type(value) in (tuple, list) or type(value).__name__ == "Size" else value


def _is_number(v):
    return type(v) in (int, float)


def _wide(v):
    return v if type(v) is int else float(v)


def _name(fn):
    """(operator, namespace) of a public function."""
    packet = getattr(fn, "overloadpacket", fn)
    if hasattr(packet, "_qualified_op_name"):
        space, _, name = packet._qualified_op_name.partition("::")
        return name, space
    public = resolve_name(fn) or override.name_of(fn)
    name = public.removesuffix(".__get__").rpartition(".")[2]
    if "linalg." in public or ".fft." in public or ".special." in public:
        name = f"{public.split('.')[-2]}_{name}"
    return _RENAMED.get(name, override.OPERATORS.get(name, name)), "aten"


# --- operators whose arguments are in another order, or that have more of them ------------------------------------------


def _pick(given, *names):
    return [(n, given.get(n)) for n in names]


def _times(value, n):
    return [value] * n if isinstance(value, int) else list(value)


def _conv(name, given, out):
    n = int(name[4])
    for each in ("stride", "dilation"):
        given[each] = _times(given[each], n)
    first = _pick(given, "input", "weight", "bias", "stride")
    if isinstance(given["padding"], str):
        return "_convolution_mode", [*first, *_pick(given, "padding", "dilation", "groups")]
    given["padding"] = _times(given["padding"], n)
    middle = [(None, False), (None, [0] * n), ("groups", given["groups"])]
    flags = [(None, False), (None, False), (None, True), (None, True)]
    return "_convolution", [*first, *_pick(given, "padding", "dilation"), *middle, *flags]


def _conv_transpose(name, given, out):
    n = int(name[14])
    for each in ("stride", "padding", "output_padding", "dilation"):
        given[each] = _times(given[each], n)
    first = _pick(given, "input", "weight", "bias", "stride", "padding", "dilation")
    last = [("output_padding", given["output_padding"]), ("groups", given["groups"])]
    return "_convolution", [*first, (None, True), *last, (None, False), (None, False), (None, True), (None, True)]


def _batch_norm(name, given, out):
    if "running_mean" not in given or "use_input_stats" in given:
        return name, list(given.items())
    order = ("input", "weight", "bias", "running_mean", "running_var", "training", "momentum", "eps")
    return name, [*_pick(given, *order), *([] if "cudnn_enabled" in given else [(None, True)])]


def _instance_norm(name, given, out):
    order = ("input", "weight", "bias", "running_mean", "running_var", "use_input_stats", "momentum", "eps")
    return name, [*_pick(given, *order), (None, True)]


def _group_norm(name, given, out):
    return name, [*_pick(given, "input", "num_groups", "weight", "bias", "eps"), (None, True)]


def _embedding(name, given, out):
    if "max_norm" not in given:
        return name, list(given.items())
    padding = given["padding_idx"]
    return name, [
        *_pick(given, "weight", "input"), ("padding_idx", Raw(-1, None) if padding is None else padding),
        *_pick(given, "scale_grad_by_freq", "sparse"),
    ]  # fmt: skip


def _softmax(name, given, out):
    return name, [(n, v) for n, v in given.items() if n != "_stacklevel"]


def _max_pool(name, given, out):
    n = int(name[8])
    for each in ("kernel_size", "padding", "dilation"):
        given[each] = _times(given[each], n)
    given["stride"] = Raw([], None) if given.get("stride") is None else _times(given["stride"], n)
    return name, _pick(given, "input", "kernel_size", "stride", "padding", "dilation", "ceil_mode")


def _adaptive(name, given, out):
    shape = list(out.shape[-int(name[-2]) :]) if isinstance(out, Tensor) else given["output_size"]
    return name, [("input", given["input"]), ("output_size", Raw(shape, given["output_size"]))]


def _upsample(name, given, out):
    mode, n = given["mode"].replace("-exact", ""), given["input"].dim() - 2
    kind = f"upsample_{mode if mode in ('nearest', 'bicubic') else 'linear' if n == 1 else 'bi' * (n == 2) + 'tri' * (n == 3) + 'linear'}"
    size = Raw(list(out.shape[2:]), given["size"])
    aligned = (
        [] if mode == "nearest" else [("align_corners", Raw(bool(given["align_corners"]), given["align_corners"]))]
    )
    return f"{kind}{n}d", [("input", given["input"]), ("size", size), *aligned, ("scale_factor", given["scale_factor"])]


def _cast(name, given, out):
    x = next(iter(given.items()))
    return "to", [x, (None, _CASTS[name]), (None, False), (None, False), (None, None)]


def _to(name, given, out):
    x = next(iter(given.items()))
    held = given.copy()
    held.pop(x[0])
    flat = [v for value in held.values() for v in (value if type(value) in (list, tuple) else (value,))]
    device = next((v for v in flat if isinstance(v, (Device, str))), None)
    kept = [(None, out.device)] if device is not None else []
    return name, [x, *kept, (None, out.dtype), (None, False), (None, False), (None, None)]


def _factory(name, given, out):
    flags = ("dtype", "layout", "device", "pin_memory")
    rest = [
        (n, v)
        for n, v in given.items()
        if v is not None and n not in (*flags, "requires_grad", "out", "generator", "memory_format", "names")
    ]
    return name, [*rest, *_pick(given, *flags)]


def _reduce(name, given, out):
    x = next(iter(given.items()))
    if given.get("dim") is None:
        return name, [x, ("dtype", given.get("dtype"))]
    return name, [
        x,
        ("dim", _times(given["dim"], 1)),
        ("keepdim", given.get("keepdim", False)),
        ("dtype", given.get("dtype")),
    ]


def _extreme(name, given, out):
    first, *rest = given.items()
    if isinstance(out, Tensor):
        return name, [(n, v) for n, v in given.items() if v is not None and n != "keepdim"]
    return name, [first, *((n, v) for n, v in rest if v is not None), *([] if len(rest) > 1 else [(None, False)])]


def _view(name, given, out):
    return name, [(n, v) for n, v in given.items() if v is not None]


def _expand(name, given, out):
    return name, [*((n, v) for n, v in given.items() if n != "implicit"), (None, False)]


_LAYOUTS = {
    "expand": _expand,
    **dict.fromkeys(("zeros", "ones", "empty", "full", "rand", "randn", "arange", "linspace", "eye", "randint", "randperm"), _factory),
    **dict.fromkeys(("sum", "mean"), _reduce), **dict.fromkeys(("max", "min"), _extreme), "view": _view,
    **dict.fromkeys(("conv1d", "conv2d", "conv3d"), _conv),
    **dict.fromkeys(("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"), _conv_transpose),
    **dict.fromkeys(("max_pool1d", "max_pool2d", "max_pool3d"), _max_pool),
    **dict.fromkeys((f"adaptive_{k}_pool{n}d" for n in (1, 2, 3) for k in ("avg", "max")), _adaptive),
    "batch_norm": _batch_norm, "instance_norm": _instance_norm, "group_norm": _group_norm, "embedding": _embedding,
    "softmax": _softmax, "log_softmax": _softmax, "upsample": _upsample, "to": _to,
}  # fmt: skip
