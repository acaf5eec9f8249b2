"""torch.*, Tensor.* and the other namespaces, out of the op table. A function is made when it is first asked for."""

import builtins
import importlib
import types

from . import (
    complex_views,
    creation,
    errors_arguments,
    indexing,
    limits,
    mapped_files,
    methods,
    pytree,
    random_tensors,
    reshaping,
    sampling,
    storage_api,
    windows,
    writing,
)
from .autograd import entry as _entry
from .autograd import mode as _mode
from .core import dtype as dtypes
from .dispatch import RETURN_FIELDS, build_inplace, copy_of, function_of, of_tensor, override, spread, twin
from .dispatch.spread import varargs_index
from .ops import registry
from .tensor import Tensor

_FAMILIES = (
    "activation", "adaptive_pool", "arithmetic", "attention", "batchnorm", "bessel", "compare", "conv", "conversion",
    "copies", "create", "ctc", "draws", "einsum", "factor", "fft", "grouped", "histograms", "image", "indexing", "join",
    "linalg", "linear", "logic", "loss", "margins", "masked", "masks", "matmul", "native", "norm", "padding", "polynomials", "pool",
    "quantize", "reduce", "rnn", "rnn_stacks", "rounding", "rows", "scans", "scatter", "segments", "slices", "solve",
    "sorting", "special", "statistics", "transcendental", "unpool", "vectors", "views", "windows",
)  # fmt: skip
for _family in _FAMILIES:
    _module = importlib.import_module(f".ops.{_family}", __package__)
    RETURN_FIELDS.update(getattr(_module, "RETURN_FIELDS", {}))

registry.OPS["index_put"].prepare = indexing.counted_out
registry.OPS["masked_select"].of_traced = indexing.selected
methods.install()

_targets: dict[str, dict[str, registry.Record]] = {}
for _table in (registry.OPS, registry.VIEWS, registry.COMPOSITES):
    for _record in _table.values():
        for _target in _record.targets:
            _space, _, _name = _target.rpartition(".")
            _targets.setdefault(_space, {})[_name] = _record

_inplace = {
    name: record.inplace if isinstance(record.inplace, registry.Op) else record
    for name, record in _targets["Tensor"].items() if getattr(record, "inplace", False)
}  # fmt: skip
_made: dict[tuple[str, str], object] = {}


def lookup(space: str, name: str):
    """The function `name` of a namespace, or None."""
    key = (space, name)
    found = _made.get(key)
    if found is None:
        record = _targets.get(space, {}).get(name)
        if record is None:
            if name.endswith("_") and space in ("Tensor", "torch", "nn.functional") and name[:-1] in _inplace:
                found = spread(_inplace[name[:-1]], build_inplace(_inplace[name[:-1]], name))
                if space != "Tensor":
                    override.publish((found,), generated=True)
            else:
                return None
        else:
            own = _own_name(record)
            shared = space == _home(record, name) and name == own or name in _SHARED and space != "Tensor"
            out = _takes_out(space, name)
            alone = space == "torch" and varargs_index(record) >= 0  # the function itself takes ints one by one
            found = function_of(record) if shared and out and not alone else copy_of(record, space, name, out)
            if name == own:
                found.__name__ = name
            if key in _OTHER_DEFAULTS:
                found.__defaults__ = (*found.__defaults__[:-1], _OTHER_DEFAULTS[key])
        _made[key] = found
    return found


def operator(space: str, name: str):
    """The function `name` of a namespace as an operator: it takes out= though PyTorch's function there does not."""
    record = None if _takes_out(space, name) else _targets.get(space, {}).get(name)
    return function_of(record) if record is not None and record.kind == "op" else lookup(space, name)


def _takes_out(space, name):
    """Whether PyTorch's function takes out=, if its operator does. No method does."""
    if space == "nn.functional":
        return name in _OUT_IN_NN
    return space != "Tensor" and name not in _NO_OUT.get(space, ())


_OUT_IN_NN = {
    "avg_pool2d", "avg_pool3d", "gelu", "hardshrink", "linear", "logsigmoid", "normalize", "prelu", "softplus", "softshrink",
}  # fmt: skip
# The last default of a function that is told apart by it: PyTorch's checks more than the operator.
_OTHER_DEFAULTS = {("nn.functional", "group_norm"): None}
_NO_OUT = {
    "torch": {
        "argsort", "as_strided_scatter", "bilinear", "bincount", "cdist", "celu", "channel_shuffle", "det", "diag_embed", "diagflat",
        "diagonal_scatter", "flip", "index_fill", "index_put", "logdet", "masked_fill", "masked_scatter", "matrix_exp",
        "native_channel_shuffle", "native_layer_norm", "pixel_shuffle", "pixel_unshuffle", "put", "relu", "roll", "rot90",
        "select_scatter", "selu", "trace", "vander",
    },
    "linalg": {"matrix_exp", "vander"}, "special": {"log_softmax", "softmax"}, "fft": {"fftshift", "ifftshift"},
}  # fmt: skip
# Functions that PyTorch has in nn.functional and in torch as one object.
_SHARED = {
    "adaptive_avg_pool1d", "avg_pool1d", "bilinear", "celu_", "channel_shuffle", "conv1d", "conv2d", "conv3d", "conv_tbc",
    "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "cosine_similarity", "hardshrink", "native_channel_shuffle",
    "pairwise_distance", "pdist", "pixel_shuffle", "pixel_unshuffle", "prelu", "relu_", "rrelu_", "selu_", "threshold_",
}  # fmt: skip


def _home(record, name):
    """The namespace whose function is the record's own; those of the others are copies, as in PyTorch."""
    spaces = [t.rpartition(".")[0] for t in record.targets if t.rpartition(".")[2] == name]
    return "torch" if "torch" in spaces else next((s for s in spaces if s != "Tensor"), None)


def _own_name(record):
    """The name under which the record's own function stands; aliases are copies, as in PyTorch."""
    names = [t.rpartition(".")[2] for t in record.targets]
    return record.name if record.name in names or not names else names[0]


def made():
    """((namespace, name), function) of what has been asked for so far."""
    return list(_made.items())


def module_attributes(space: str, module: dict):
    """(`__getattr__`, `__dir__`) of the module of a namespace, whose functions are made when they are asked for; `module`: its globals."""

    def __getattr__(name):
        found = lookup(space, name)
        if found is None:
            raise AttributeError(f"module 'jtorch.{space}' has no attribute {name!r}")
        module[name] = found
        return found

    return __getattr__, lambda: sorted({*module["__all__"], *module})


def namespace(space: str) -> dict:
    """All functions of a namespace: {name: function}."""
    return {name: lookup(space, name) for name in names(space)}


def names(space: str) -> list[str]:
    """The names of a namespace, sorted."""
    found = set(_targets.get(space, ()))
    if space in ("torch", "Tensor"):
        found |= {name + "_" for name in _inplace}
    return sorted(found)


class _Unmade:
    """A method of Tensor that nobody has asked for yet. In the class's own dict, where `super()` and `vars` look."""

    __slots__ = ("name",)

    def __init__(self, name):
        self.name = name

    def __get__(self, instance, owner=None):
        setattr(Tensor, self.name, lookup("Tensor", self.name))
        found = next(
            vars(cls)[self.name]
            for cls in (owner or type(instance)).__mro__
            if cls in _ASKED_LAST and self.name in vars(cls)
        )
        return found.__get__(instance, owner)


_ASKED_LAST = (override.Overridable, Tensor)
for _name in names("Tensor"):
    if not _name.startswith("__") and _name not in vars(Tensor):
        setattr(Tensor, _name, _Unmade(_name))


def is_tensor(obj) -> bool:
    """Whether something is a tensor."""
    return isinstance(obj, Tensor)


def is_storage(obj) -> bool:
    """Whether something is a storage, typed or untyped."""
    return isinstance(obj, (storage_api.UntypedStorage, storage_api.TypedStorage))


def fill(input, value) -> Tensor:
    """A copy of `input` in which each element is `value`."""
    return input.clone().fill_(value)


def get_default_dtype():
    """The dtype of floating-point tensors made without saying which."""
    return dtypes.default.dtype


def promote_types(type1, type2):
    """The smallest dtype that holds both, and is of no lower kind than either."""
    return dtypes.promote(*_dtypes("promote_types", type1=type1, type2=type2))


def can_cast(from_, to) -> bool:
    """Whether PyTorch's promotion rules let a result of the first dtype be written as the second."""
    return dtypes.can_cast(*_dtypes("can_cast", from_=from_, to=to))


def _dtypes(function, **given):
    """Arguments that are dtypes, or the types of Python's numbers."""
    for k, (name, x) in enumerate(given.items(), 1):
        if not isinstance(x, dtypes.dtype | type) or isinstance(x, type) and x not in dtypes.PYTHON:
            raise errors_arguments.no_dtype(function, name, k, x)
    return [dtypes.PYTHON.get(x, x) for x in given.values()]


_PLAIN = {
    "reshape": reshaping.reshape_function, "flatten": reshaping.flatten, "ravel": reshaping.ravel, "clone": reshaping.clone,
    "equal": methods.equal,
    "is_tensor": is_tensor, "is_storage": is_storage, "fill": fill, "get_default_dtype": get_default_dtype,
    "promote_types": promote_types, "can_cast": can_cast,
    "is_floating_point": lambda input: input.is_floating_point(),
    "is_complex": lambda input: input.is_complex(),
    "is_signed": lambda input: input.is_signed(),
    "is_nonzero": lambda input: builtins.bool(input),
    "is_same_size": methods.same_sized,
    "is_conj": lambda input: False,
    "is_neg": lambda input: False,
    "is_inference": lambda input: input.is_inference(),
    "resolve_conj": lambda input: input,
    "resolve_neg": lambda input: input,
    "numel": lambda input: input.numel(),
    "detach": lambda input: input.detach(),
    "detach_": lambda input: input.detach_(),
    "fill_": writing.fill_, "zero_": writing.zero_,
}  # fmt: skip
_FROM = {
    creation: (
        "arange", "as_tensor", "asarray", "empty", "empty_like", "empty_permuted", "empty_strided", "eye", "from_numpy",
        "frombuffer", "full", "full_like", "linspace", "logspace", "ones", "ones_like", "range", "scalar_tensor", "tensor",
        "tril_indices", "triu_indices", "zeros", "zeros_like", "contiguous_format", "preserve_format",
        "channels_last", "channels_last_3d", "strided", "sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc",
    ),
    limits: ("finfo", "iinfo"),
    random_tensors: (
        "bernoulli", "multinomial", "normal", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like",
        "randperm", "manual_seed", "seed", "initial_seed", "get_rng_state", "set_rng_state", "default_generator", "Generator",
    ),
    sampling: ("_sample_dirichlet", "_standard_gamma", "binomial", "poisson"),
    storage_api: ("StorageBase", "TypedStorage", "UntypedStorage"),
    mapped_files: ("from_file",),
    _mode: ("no_grad", "enable_grad", "set_grad_enabled", "inference_mode", "is_grad_enabled", "is_inference_mode_enabled",
        "is_anomaly_enabled", "is_anomaly_check_nan_enabled"),
}  # fmt: skip
_PLAIN |= windows.PERIODIC
_PLAIN |= storage_api.CLASSES | {"Storage": storage_api.CLASSES["FloatStorage"]}
_PLAIN |= {name: getattr(complex_views, name) for name in ("view_as_real", "view_as_complex", "real", "imag")}
_PLAIN |= {"resize_as_": writing.resize_as_, "broadcast_shapes": reshaping.broadcast_shapes}
for _source, _list in _FROM.items():
    for _name in _list:
        _PLAIN[_name] = getattr(_source, _name)

_FACTORIES = {n for n in (*_FROM[creation], *_FROM[random_tensors]) if not n.endswith("_like")} - {
    "bernoulli", "multinomial", "normal",
}  # fmt: skip
_NO_OVERRIDE = {
    "is_tensor", "is_storage", "get_default_dtype", "promote_types", "can_cast", "manual_seed", "seed", "initial_seed",
    "get_rng_state", "set_rng_state", "from_numpy", "broadcast_shapes", "from_jax",
}  # fmt: skip
for _name, _fn in list(_PLAIN.items()):
    if isinstance(_fn, types.FunctionType) and _fn.__code__.co_varnames[:1] in (("input",), ("self",)):
        _fn.__doc__ = _fn.__doc__ or vars(Tensor)[_name].__doc__
        _PLAIN[_name] = of_tensor(_fn, _name)
    if vars(Tensor).get(_name) is _PLAIN[_name]:
        setattr(Tensor, _name, twin(_fn))
override.publish({n: f for n, f in _PLAIN.items() if n not in _FACTORIES | _NO_OVERRIDE})
override.publish({n: f for n, f in _PLAIN.items() if n in _FACTORIES - _NO_OVERRIDE}, factory=True)
override.publish((_entry.grad, _entry.backward))
override.FROM_HOST[0] = creation.tensor
override.install()


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    found = _PLAIN.get(name)
    if found is None:
        found = lookup("torch", name)
    if found is None:
        found = dtypes.ALL.get(name) or dtypes.ALIASES.get(name) or dtypes.NAME_ONLY.get(name)
    if found is None and name == "bool":
        found = dtypes.bool_
    if found is None:
        found = _late(name)
    if found is None:
        raise AttributeError(f"module 'jtorch' has no attribute {name!r}")
    globals()[name] = found
    return found


def _late(name):
    if name in ("svd_lowrank", "pca_lowrank", "lobpcg"):
        return getattr(importlib.import_module(".lowrank", __package__), name)
    if name == "Tensor":
        return Tensor
    if name == "Size":
        return importlib.import_module(".core.spec", __package__).Size
    if name == "device":
        return importlib.import_module(".core.device", __package__).Device
    if name == "dtype":
        return dtypes.dtype
    return None


def __dir__():
    return sorted({*names("torch"), *_PLAIN, *dtypes.ALL, *dtypes.ALIASES, *dtypes.NAME_ONLY})


_ = _entry, pytree
