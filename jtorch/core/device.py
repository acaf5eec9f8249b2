"""torch device names and the jax devices behind them."""

import functools
import re

import jax

from .. import errors
from ..handles import enter, leave

_ACCELERATORS = {"gpu": "cuda", "cuda": "cuda", "rocm": "cuda", "tpu": "tpu"}
_TYPES = frozenset(
    "cpu cuda tpu ipu xpu mkldnn opengl opencl ideep hip ve fpga maia xla lazy vulkan mps meta hpu mtia privateuseone".split()
)
_PATTERN = re.compile(r"([a-zA-Z_]+)(?::([1-9]\d*|0))?$")


@functools.cache
def accelerator() -> str | None:
    """The name of the accelerator that is there (`cuda` or `tpu`), or None."""
    found = _ACCELERATORS.get(jax.default_backend())
    if found is not None and jax.config.jax_default_matmul_precision is None:
        # PyTorch's default: products of float32 are float32's. jax's is TF32 on GPUs, bfloat16 on TPUs.
        jax.config.update("jax_default_matmul_precision", "highest")
    return found


def _of_type(device, kind, index):
    """The argument `type=` of a device, in the place of the first one."""
    if device is not None:
        raise TypeError("device() got multiple values for argument 'type'")
    if not isinstance(kind, str):
        raise TypeError(f"device(): argument 'type' must be str, not {kind.__class__.__name__}")
    if ":" in kind:
        raise RuntimeError(f"type (string) must not include an index because index was passed explicitly: {kind}")
    if index is not None and index < 0:
        raise RuntimeError("Device index must not be negative")
    return kind


def _accelerator_of(index):
    """The type of the device that a number alone names."""
    if index < 0:
        raise RuntimeError("Device index must not be negative")
    kind = accelerator()
    if kind is None:
        raise RuntimeError("Cannot access accelerator device when none is available.")
    return kind


class Device:
    """A torch.device: `type`, and `index` (None for the current one). Interned: compare with `is`."""

    __slots__ = ("type", "index", "_jax")
    _known: dict = {}
    _shown = "torch.device"

    def __new__(cls, device=None, index=None, *, type=None):
        if type is not None:
            device = _of_type(device, type, index)
        if isinstance(device, Device):
            return device
        if not (index is None or hasattr(index, "__index__")) or isinstance(index, bool):
            raise TypeError(f"device(): argument 'index' (position 2) must be int, not {index.__class__.__name__}")
        if isinstance(device, int) and not isinstance(device, bool):
            kind, index = _accelerator_of(device), device
        elif isinstance(device, str):
            if not device:
                raise RuntimeError("Device string must not be empty")
            match = _PATTERN.match(device)
            if match is None:
                raise RuntimeError(f"Invalid device string: '{device}'")
            if match[1] not in _TYPES:
                raise RuntimeError(
                    f"Expected one of cpu, cuda, ipu, xpu, mkldnn, opengl, opencl, ideep, hip, ve, fpga, maia, xla, "
                    f"lazy, vulkan, mps, meta, hpu, mtia, privateuseone device type at start of device string: {match[1]}"
                )
            kind = match[1]
            if match[2] is not None:
                if index is not None:
                    raise RuntimeError(
                        f"type (string) must not include an index because index was passed explicitly: {device}"
                    )
                index = int(match[2])
            elif index is not None and index < 0:
                raise RuntimeError("Device index must not be negative")
        else:
            raise TypeError(f"device(): argument 'device' must be str or int, not {errors.type_name(device)}")
        self = cls._known.get((kind, index))
        if self is None:
            self = cls._known[kind, index] = super().__new__(cls)
            for name, value in (("type", kind), ("index", index), ("_jax", None)):
                object.__setattr__(self, name, value)
        return self

    def __setattr__(self, name, value):
        self.__delattr__(name)

    def __delattr__(self, name):
        raise AttributeError(
            f"attribute '{name}' of 'torch.device' objects is not writable"
            if name in ("type", "index")
            else f"'torch.device' object has no attribute '{name}'"
        )

    def __lt__(self, other):
        if not isinstance(other, Device):
            return NotImplemented
        raise TypeError("comparison not implemented")

    __le__ = __gt__ = __ge__ = __lt__

    def __repr__(self):
        return (
            f"device(type='{self.type}')" if self.index is None else f"device(type='{self.type}', index={self.index})"
        )

    def __str__(self):
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __reduce__(self):
        return (Device, (str(self),))

    def __enter__(self):
        now = _stack[-1] if _stack else _default[0] or cpu
        _counts.append(None if self is now else enter(self))  # compiled regions make tensors there
        _stack.append(self)
        return self

    def __exit__(self, *exc):
        _stack.pop()
        counts = _counts.pop()
        if counts is not None:
            leave(counts)

    @property
    def jax(self):
        """The jax device; PyTorch's error when there is none."""
        if self._jax is None:
            object.__setattr__(self, "_jax", _find(self))
        return self._jax


_stack: list[Device] = []
_counts: list = []  # what `enter` has said, or None, for each device that is one of `with`
_default: list = [None]
_absent: list = [None]


def resolve(device) -> Device:
    """The device that a tensor asked for on `device` (name, index, Device or None) gets, checked to exist."""
    if device is None:
        if not _stack:
            return _default[0] or cpu
        device = _stack[-1]
    d = device if type(device) is Device else Device(device)
    if d.type == "cpu":
        return cpu
    name = d.type
    if name in ("cuda", "xla") and accelerator() is not None:
        name = accelerator()
    if name == "meta":
        return meta
    d = Device(name, 0 if d.index is None else d.index)
    d.jax  # noqa: B018  raises where there is no such device
    return d


def set_default(device) -> None:
    """The device of tensors made without saying where; one that is not there is refused when the first is made."""
    if _absent[0] is not None:
        _stack.remove(_absent[0])
    _default[0] = _absent[0] = None
    if device is None:
        return
    try:
        _default[0] = resolve(device)
    except (AssertionError, RuntimeError):
        _absent[0] = Device(device)  # which raises where it is no device at all
        _stack.insert(0, _absent[0])  # below those of `with`: each tensor asks for it anew


def get_default() -> Device:
    if _absent[0] is not None and _stack == [_absent[0]] and _absent[0].index is not None:
        return _absent[0]
    return resolve(None)


_ABSENT = {
    "xpu": "Torch not compiled with XPU enabled",
    "mps": "PyTorch is not linked with support for mps devices",
}


def _find(d: Device):
    if d.type == "cpu":
        return jax.local_devices(backend="cpu")[0]
    if d.type == "meta":
        return None
    here = accelerator()
    if d.type == "cuda" and here is None:
        raise AssertionError(
            "Torch not compiled with CUDA enabled\n  jax sees no accelerator on this machine: `python -m jtorch doctor` says why"
        )
    if here != d.type:
        words = _ABSENT.get(d.type, f"{d.type} is not available on this machine")
        kind = AssertionError if d.type == "xpu" else RuntimeError
        raise kind(f"{words}\n  the accelerator here: {here or 'none'}")
    devices = jax.local_devices()
    if (d.index or 0) >= len(devices):
        raise RuntimeError(
            f"CUDA error: invalid device ordinal\n  {d} was asked for, there are {len(devices)} {d.type} devices"
        )
    return devices[d.index or 0]


@functools.cache
def _is_default(place) -> bool:
    return place is jax.devices()[0]


def place_of(d: Device):
    """Where results for a device are put: None where that goes without saying.

    They are not committed to it then, as the results of programs are not: for others programs would be compiled once more.
    """
    place = d.jax
    return None if _is_default(place) else place


def of_array(array) -> Device:
    """The torch device on which a jax array lives."""
    found = next(iter(array.devices()))
    return _of_jax(found)


@functools.cache
def _of_jax(found) -> Device:
    if found.platform == "cpu":
        return cpu
    kind = _ACCELERATORS.get(found.platform, "cuda")
    local = jax.local_devices()
    return Device(kind, local.index(found) if found in local else 0)


cpu = Device("cpu")
meta = Device("meta")

device = Device  # torch's name for it
Device.__name__ = Device.__qualname__ = "device"  # by which pickles refer to it
