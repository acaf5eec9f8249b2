"""Names in files: which PyTorch path stands for which object of ours, both ways, and which paths a safe load may name."""

import functools
import importlib
import operator
from _codecs import encode
from collections import Counter, OrderedDict

from .. import creation, functions, legacy, storage_api
from ..core import device as devices
from ..core import dtype as dtypes
from ..core.spec import Size
from ..nn.parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter
from ..tensor import Tensor
from . import errors, rebuild
from .opcodes import check_key

# --- PyTorch's path -> our object ---------------------------------------------------------------------------------------


class StorageType:
    """A storage class named in a file: only its dtype matters.

    Args:
        name: such as "FloatStorage"; KeyError when no dtype of ours has that class
    """

    def __init__(self, name):
        self._dtype = storage_api.CLASSES[name].dtype

    @property
    def dtype(self):
        return self._dtype

    def __str__(self):
        return f"StorageType(dtype={self.dtype})"


_CONTAINERS = {
    "collections.OrderedDict": OrderedDict, "collections.Counter": Counter, "_codecs.encode": encode,
    "builtins.bytearray": bytearray, "builtins.set": set, "builtins.complex": complex,
}  # fmt: skip

_OURS = {
    "torch.Size": Size, "torch.device": devices.Device, "torch.Tensor": Tensor, "torch.nn.parameter.Parameter": Parameter,
    "torch.storage.UntypedStorage": storage_api.UntypedStorage, "torch.storage.TypedStorage": storage_api.TypedStorage,
    "torch.serialization._get_layout": rebuild._get_layout,
    "torch._tensor._rebuild_from_type_v2": rebuild._rebuild_from_type_v2,
    **{f"torch._utils.{name}": getattr(rebuild, name) for name in rebuild.OF_TENSORS},
}  # fmt: skip

# Names that PyTorch allows and that stand for what is not here.
_ABSENT = frozenset(
    ("qint8", "qint32", "quint8", "quint4x2", "quint2x4", "bits8", "bits16", "bits1x8", "bits2x4", "bits4x2",
     "float4_e2m1fn_x2", *(f"{kind}{n}" for kind in ("int", "uint") for n in range(1, 8)), "per_tensor_affine",
     "per_tensor_symmetric", "per_channel_affine", "per_channel_symmetric", "per_channel_affine_float_qparams",
     "QInt8Storage", "QInt32Storage", "QUInt8Storage", "QUInt4x2Storage", "QUInt2x4Storage")
)  # fmt: skip

_BLOCKED = frozenset(("sys", "os", "posix", "nt"))


@functools.cache
def allowed() -> dict:
    """What every safe load may name: path -> object."""
    table = {**_CONTAINERS, **_OURS}
    table |= {f"torch.{name}": d for name, d in dtypes.ALL.items()}
    for name in storage_api.CLASSES:
        table[f"torch.{name}"] = table[f"torch.cuda.{name}"] = StorageType(name)
    for name, cls in legacy.CLASSES.items():
        table[f"torch.{name}"] = table[f"torch.cuda.{name}"] = cls
    return table


user_globals: list = []  # what add_safe_globals was given, in order, each once


def user_allowed() -> dict:
    """What the user allows besides: path -> object. PyTorch's paths for classes that are PyTorch's."""
    table = {}
    for item in user_globals:
        if isinstance(item, tuple):
            if len(item) != 2:
                raise ValueError(
                    f"Expected tuple of length 2 (global, str of callable full path), but got tuple of length: {len(item)}"
                )
            if type(item[1]) is not str:
                raise TypeError(
                    f"Expected second item in tuple to be str of callable full path, but got: {type(item[1])}"
                )
            table[item[1]] = item[0]
        elif hasattr(item, "__qualname__"):  # what has no name allows none, and is no reason to refuse files
            table[f"{item.__module__}.{item.__qualname__}"] = item
            path = torch_path(item)
            if path is not None:
                table[".".join(path)] = item
    return table


class Allowed:
    """The names of one safe load, and what may be done with what they stand for."""

    def __init__(self):
        self._user = user_allowed()
        self._table = {**allowed(), **self._user}
        self._mine = {id(x) for x in self._user.values()}
        self._callable = {id(x) for x in self._table.values() if not isinstance(x, (dtypes.dtype, StorageType))}

    def find(self, module, name):
        path = f"{module}.{name}"
        if module in _BLOCKED:
            raise errors.unsafe(f"Trying to load unsupported GLOBAL {path} whose module {module} is blocked.")
        found = self._table.get(path)
        if found is None and module == "torch.tensor":  # the name of torch._tensor until version 1.8
            found = self._table.get(f"torch._tensor.{name}")
        if found is not None:
            return found
        if module in ("torch", "torch.cuda") and name in _ABSENT:
            raise _absent(path)
        raise errors.forbidden_global(path)

    def callable_ok(self, fn) -> bool:
        return id(fn) in self._callable and (id(fn) in self._mine or id(fn) not in _TYPES_ONLY)

    def call(self, fn, args):
        """Call what the file asks for; the built-in ones only with arguments that make what the file holds."""
        check = None if id(fn) in self._mine else _CHECKS.get(fn)
        if check is not None:
            check(*args)
        return fn(*args)

    def build(self, made, state):
        """Give an object the state that the file has for it."""
        if type(made) is OrderedDict:
            made.__dict__.update(state)
        elif type(made) is Parameter:
            rebuild.set_state(made, state)
        elif id(type(made)) in self._mine:
            return rebuild.set_any_state(made, state)
        else:
            raise errors.unsafe(
                "Can only build Tensor, Parameter, OrderedDict or types allowlisted via `add_safe_globals`, but got "
                f"{type(made)}"
            )
        return made


def _absent(path):
    return errors.unsupported_record(
        f"{path}: jtorch has no such type",
        "Convert such tensors in PyTorch before they are saved, e.g. by .dequantize().",
    )


# Classes that are named as arguments only: calling them would allocate what the file says, not what it holds.
_TYPES_ONLY = {id(c) for c in (Tensor, storage_api.UntypedStorage, storage_api.TypedStorage, *legacy.CLASSES.values())}


def _wants(condition, what):
    if not condition:
        raise errors.unsafe(f"{what} in the file has arguments of the wrong type")


def _check_items(items=(), *rest):
    _wants(not rest and isinstance(items, (list, tuple, dict, set)), "a container")
    for x in items:
        check_key(x)


def _check_pairs(items=(), *rest):
    _wants(not rest and isinstance(items, (list, tuple, dict)), "a container")
    for x in items:
        if not isinstance(items, dict):
            _wants(isinstance(x, (list, tuple)) and len(x) == 2, "a container")
            check_key(x[0])


def _check_parameter(data=None, requires_grad=True):
    _wants(data is None or isinstance(data, Tensor), "a parameter")


_CHECKS = {
    OrderedDict: _check_pairs, Counter: _check_items, set: _check_items,
    bytearray: lambda data=b"", coding="latin-1": _wants(
        isinstance(data, bytes) or (isinstance(data, str) and coding in _CODINGS), "a bytearray"
    ),
    encode: lambda text, coding="utf-8", *rest: _wants(
        isinstance(text, str) and coding in _CODINGS and not rest, "a byte string"
    ),
    complex: lambda *args: _wants(all(isinstance(x, (int, float, complex)) for x in args), "a complex number"),
    Size: lambda sizes=(): _wants(
        isinstance(sizes, (list, tuple)) and all(type(n) is int for n in sizes), "a torch.Size"
    ),
    devices.Device: lambda *args: _wants(all(isinstance(x, (int, str)) for x in args), "a torch.device"),
    Parameter: _check_parameter,
}  # fmt: skip
_CODINGS = ("latin1", "latin-1", "utf-8", "utf8", "ascii")


# --- our object -> PyTorch's path ---------------------------------------------------------------------------------------

# Classes that live in another file than PyTorch's: our module -> theirs, or our class -> their path.
_MOVED = {
    "jtorch.nn.packed.PackedSequence": "torch.nn.utils.rnn.PackedSequence",
    "jtorch.handles.RemovableHandle": "torch.utils.hooks.RemovableHandle",
    "jtorch.nn.modules.state._ModuleHook": "torch.nn.modules.module._WrappedHook",
    "jtorch.optim.adafactor.Adafactor": "torch.optim._adafactor.Adafactor",
    "jtorch.optim.muon.Muon": "torch.optim._muon.Muon",
    "jtorch.fx.graph_module.reduce_graph_module": "torch.fx.graph_module.reduce_graph_module",
    "jtorch.fx._symbolic_trace.Tracer": "torch.fx._symbolic_trace.Tracer",
    "jtorch.core.rng.Generator": "torch._C.Generator",
    "jtorch.torch_version.TorchVersion": "torch.torch_version.TorchVersion",
    "jtorch.amp.autocast.autocast": "torch.amp.autocast_mode.autocast",
    **{
        f"jtorch.nn.modules.{ours}.{name}": f"torch.nn.modules.{theirs}.{name}"
        for ours, theirs, names in (
            ("adaptive", "loss", ("LinearCrossEntropyLoss",)),
            ("adaptive", "linear_cross_entropy_options", ("LinearCrossEntropyOptions",)),
            ("attention", "activation", ("MultiheadAttention",)),
            ("attention", "transformer", ("Transformer", "TransformerDecoder", "TransformerDecoderLayer",
             "TransformerEncoder", "TransformerEncoderLayer")),
            ("batchnorm", "instancenorm", ("InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "LazyInstanceNorm1d",
             "LazyInstanceNorm2d", "LazyInstanceNorm3d")),
            ("reshape", "channelshuffle", ("ChannelShuffle",)),
            ("reshape", "flatten", ("Flatten", "Unflatten")),
            ("reshape", "fold", ("Fold", "Unfold")),
            ("reshape", "pixelshuffle", ("PixelShuffle", "PixelUnshuffle")),
            ("reshape", "upsampling", ("Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d")),
        )
        for name in names
    },
}  # fmt: skip
_BACK = {theirs: ours for ours, theirs in _MOVED.items()}
_SPACES = (("jtorch.data.", "torch.utils.data."), ("jtorch.nn.", "torch.nn."), ("jtorch.optim.", "torch.optim."),
           ("jtorch.amp.", "torch.amp."))  # fmt: skip

_EXPLICIT = {id(x): path for path, x in {**_CONTAINERS, **_OURS}.items() if path.startswith("torch.")}
_EXPLICIT |= {id(d): f"torch.{name}" for name, d in dtypes.ALL.items()}
_EXPLICIT |= {id(c): f"torch.{name}" for name, c in (storage_api.CLASSES | legacy.CLASSES).items()}
_EXPLICIT |= {id(c): f"torch.nn.parameter.{c.__name__}" for c in (Buffer, UninitializedBuffer, UninitializedParameter)}
_EXPLICIT[id(dtypes.dtype)], _EXPLICIT[id(creation.Layout_)] = "torch.dtype", "torch.layout"


def torch_path(x, name=None):
    """(module, name) under which PyTorch knows one of our classes or functions; None for what is not ours.

    Raises TypeError for what is ours alone: a file that names it could not be read by PyTorch.
    """
    path = _EXPLICIT.get(id(x))
    if path is not None:
        return tuple(path.rsplit(".", 1))
    module, name = getattr(x, "__module__", None), name or getattr(x, "__qualname__", "")
    if not isinstance(module, str) or module.split(".")[0] != "jtorch":
        return None
    moved = _MOVED.get(f"{module}.{name}")
    if moved is not None:
        return tuple(moved.rsplit(".", 1))
    for ours, theirs in _SPACES:
        if module.startswith(ours) and isinstance(x, type):
            return theirs + module[len(ours) :], name
    if not isinstance(x, type) and name not in _OWN:
        for space in ("nn.functional", "", "linalg", "fft", "special", "nn.init"):
            found = _in_space(space).name_of(x, name)
            if found is not None:
                return f"torch.{space}" if space else "torch", found
    raise TypeError(f"cannot save {module}.{name}: PyTorch has no such object, so it could not read the file")


_OWN = frozenset(("flush", "from_jax", "get_execution_mode", "synchronize", "to_jax"))  # public, and not PyTorch's


class _Space:
    """The public functions of a namespace, each looked up when it is asked for."""

    def __init__(self, space):
        self._module = (
            None if space in ("linalg", "fft", "special") else importlib.import_module(f"jtorch.{space}".rstrip("."))
        )
        self._space = space

    def get(self, name):
        return functions.lookup(self._space, name) if self._module is None else getattr(self._module, name, None)

    def name_of(self, x, likely):
        """The name of a function here, or None."""
        if self.get(likely) is x:
            return likely
        every = functions.names(self._space) if self._module is None else dir(self._module)
        return next((name for name in every if not name.startswith("_") and self.get(name) is x), None)


_in_space = functools.cache(_Space)


def resolve(module, name):
    """Our object under a path of PyTorch's, for a load that trusts its file; None when the path is not PyTorch's.

    Raises AttributeError when there is nothing of ours under that path.
    """
    if module == "__builtin__":
        return None
    if module.split(".")[0] != "torch":
        return None
    path = f"{'torch._tensor' if module == 'torch.tensor' else module}.{name}"
    found = allowed().get(path)
    if found is not None:
        return found
    if path in _BACK:
        return _dotted(*_BACK[path].rsplit(".", 1))
    if module in ("torch", "torch.cuda") and name in _ABSENT:
        raise _absent(path)
    for theirs, ours in (
        ("torch.utils.data.", "jtorch.data."), ("torch._C._nn.", "jtorch.nn.functional."), ("torch.", "jtorch.")
    ):  # fmt: skip
        if f"{module}.".startswith(theirs):
            try:
                return _dotted(ours + f"{module}."[len(theirs) :].rstrip("."), name)
            except (ImportError, AttributeError):
                continue
    for space in ("torch.nn.modules", "torch.optim"):  # a class that PyTorch has moved since
        if module.startswith(space):
            try:
                return _dotted("jtorch" + space.removeprefix("torch").removesuffix(".modules"), name)
            except AttributeError:
                break
    raise AttributeError(f"Can't get attribute {name!r} of module {module!r}: jtorch has nothing under this name")


def _dotted(module, name):
    return operator.attrgetter(name)(importlib.import_module(module.rstrip(".")))
