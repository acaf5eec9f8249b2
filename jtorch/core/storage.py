"""Storage: one swappable value, its spec and its version. The only file that replaces a value."""

import itertools
from sys import getrefcount

import jax
import jax.numpy as jnp
import numpy as np

from .. import errors_func, errors_storage
from . import aside, snapshots
from . import dtype as dtypes
from .device import cpu, of_array, place_of
from .lanes import Lane, is_traced, unknown
from .mirror import Mirror, as_memory
from .packing import placed
from .pending import LITTLE, NO_DATA, Small, concrete
from .record import Pending, tls
from .somewhere import Unasked
from .spec import Spec
from .view_plans import inside, plan_by_values, view_plan

_pointers = itertools.count(1)


class Storage:
    """One logical buffer.

    value: a jax.Array or a Pending whose logical shape is `spec.shape`; spec.strides say where in the buffer its elements
    lie (dense, maybe permuted). A tensor whose spec *is* the storage's reads `value` as it stands.
    written: after a write on the tape, (name of the node, result number) that the written tensor then had, and the version
    with which a write gave it a history, or 0; for error words. None after a write inside func's transformations that is not under no_grad.
    turned: the layouts that a tensor on it has had -> the one that `t_` and its like gave it last; for error words too.
    While memory is shared with numpy, `host` holds the buffer and `spec` is None, which sends every reader the slow way.
    """

    __slots__ = ("value", "spec", "version", "_pointer", "_host", "written", "turned", "__weakref__")

    def __init__(self, value, spec):
        self.value = value
        self.spec = spec
        self.version = tls.me.born

    @property
    def host(self):
        """The buffer shared with numpy, or None."""
        return None if self.spec is not None else self._host

    @property
    def base(self) -> Spec:
        """The spec of the whole, shared with numpy or not."""
        return self.spec if self.spec is not None else self._host.spec

    def data_ptr(self) -> int:
        """The address of the memory, the same for the life of the storage; 0 when empty and on the meta device.

        On the CPU it can be read (ctypes, other libraries): what is there is a copy of the values as they are at this call.
        On an accelerator it is a number that no other storage has.
        """
        if self.host is not None:
            return self.host.buffer.ctypes.data
        if self.spec.numel == 0 or self.spec.device.type == "meta":
            return 0
        try:
            found = self._pointer
        except AttributeError:
            # Far enough apart that numbers of different storages never meet.
            found = (next(_pointers) << 40) + 64
            found = self._pointer = Mirror(self.spec) if self.spec.device.type == "cpu" else found
        if type(found) is int:
            return found
        if found.version != self.version and tls.me.scope is None:
            value = realise(self.value)
            if not is_traced(value):
                found.fill(np.asarray(landed(value)), self.version)
        return found.buffer.ctypes.data


class Host:
    """A buffer shared with numpy: the truth as long as anybody else refers to it."""

    among_processes = False

    __slots__ = ("buffer", "owner", "spec", "lent", "ahead", "snapshot")

    def __init__(self, buffer, owner, spec, lent=False):
        self.buffer = buffer  # flat, in memory order
        self.owner = owner  # the object that keeps the memory, to which every numpy view refers
        self.spec = spec
        # The memory is not numpy's own (a worker's segment, a private map of a file), and only the owner's views write to it.
        self.lent = lent
        self.ahead = None  # (jax device, copy on it that is under way) of a pinned tensor, as long as it is true
        self.snapshot = None  # the copy that was used last (`snapshots.py`)

    def shared(self) -> bool:
        if on_host.always or (self.owner.base is not None and not self.lent):
            return True
        return getrefcount(self.owner) > _HOST_ALONE

    def start(self, device):
        """Start a copy of the whole to an accelerator."""
        whole = _strided(self.buffer, self.spec, self.buffer.dtype.itemsize)
        self.ahead = device.jax, moved(dtypes.values(whole, self.spec.dtype), device)

    def arrived(self, place):
        """Hand over the copy on a jax device; None if there is none."""
        if self.ahead is None or self.ahead[0] is not place:
            return None
        array, self.ahead = self.ahead[1], (place, None)
        return array


class OnHost:
    """`always`: values made from numpy stay numpy's. Set in a data worker, which seldom needs jax and should not start it.

    at_home: what `always` is when nobody has switched it for a while.
    """

    __slots__ = ("always", "at_home")


on_host = OnHost()
on_host.always = on_host.at_home = False


def _host_alone() -> int:
    owner = np.zeros(2)
    host = Host(owner.reshape(-1)[:], owner, None)
    del owner
    return getrefcount(host.owner)


_HOST_ALONE = _host_alone()


# --- reading and writing through a layout ------------------------------------------------------------------------------


def read(storage, spec, offset):
    """The value of a tensor (spec, offset) over this storage: an array or a Pending of shape spec.shape."""
    if storage.spec is spec:
        return storage.value
    if storage.host is not None:
        if storage.host.shared():
            if storage.host.among_processes and not tls.me.grad and tls.me.scope is None:
                # An update reads here what it will write: the less it has to compute in between, the fewer writes of others
                # it undoes.
                tls.me.flush("memory of several processes")
            return _copied(storage, spec, offset)
        unshare(storage)
        if storage.spec is spec:
            return storage.value
    graph = tls.me.graph
    if graph.device is not spec.device:
        graph = tls.me.graph_on(spec.device)
    try:
        plan, starts = view_plan(storage.spec, spec, offset, 0)
    except Unasked:
        plan = None if offset.sum is not None else plan_by_values(storage.spec, spec, offset)
        if plan is None:
            return read(storage, spec, int(offset))
        return graph.recn(plan, (storage.value, *[i.value for i in offset.indices]))[0]
    if plan is None:
        return storage.value
    if starts:
        return graph.rec1_1_numbers(plan, storage.value, starts)
    return graph.rec1(plan, storage.value)


def _copied(storage, spec, offset):
    """A value in memory shared with numpy, as it is now."""
    view = host_view(storage, spec, offset)

    def make():
        return to_device(np.array(dtypes.values(view, spec.dtype)), spec.device)

    if spec.nbytes <= LITTLE or not spec.contiguous or view.dtype != spec.dtype.np:
        return make()
    return snapshots.copied(storage.host, spec, offset, view.reshape(-1).view(np.uint8), make)


def write(storage, spec, offset, value):
    """Replace what the tensor (spec, offset) sees by `value`, which has its shape and dtype."""
    if storage.spec is spec:
        storage.value = value
    elif storage.host is not None and storage.host.shared():
        storage.host.ahead = None
        np.copyto(host_view(storage, spec, offset), as_memory(np.asarray(landed(realise(value))), spec.dtype.memory))
    else:
        if storage.host is not None:
            unshare(storage)
        plan, starts = view_plan(storage.spec, spec, offset, 1)
        if plan is None:
            storage.value = value
        else:
            me = tls.me
            graph = me.graph if me.graph.device is spec.device else me.graph_on(spec.device)
            storage.value = graph.recn(plan, (storage.value, value), starts)[0]
    storage.version += 1


# --- arrays in and out -------------------------------------------------------------------------------------------------


def realise(value):
    """The jax array of a value; NotImplementedError for tensors on the meta device."""
    value = value.get() if type(value) is Pending else value
    if value is NO_DATA:
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")
    if type(value) is Lane:
        raise unknown()
    return value


def landed(value):
    """A jax array whose program has run, or whatever else a value is. Raises OutOfMemoryError: jax ends the process when it is asked
    for the memory of an array for which there was no room."""
    try:
        value.block_until_ready()
    except AttributeError:  # numpy's, or traced
        pass
    except jax.errors.JaxRuntimeError as error:
        raise errors_storage.from_xla(error, next(iter(value.devices())).platform) from None
    return value


def at_hand(value) -> bool:
    """Whether nothing has to be run or waited for to have a value."""
    return type(value) is not Pending or value.value is not None or type(value.graph) is Small


def as_numpy(value) -> np.ndarray:
    """The numbers of a value, not to be written to. NotImplementedError for tensors on the meta device."""
    if type(value) is Pending and value.value is None:
        if type(value.graph) is not Small:
            value.graph.compute(value)
        if type(small := value.graph) is Small:
            return small.array
    return np.asarray(landed(realise(value)))


def to_device(array, device):
    """The value of a tensor with the numbers of a numpy array that nobody will write to again: a jax array, or a Pending of a small one."""
    if type(array) is np.ndarray and array.nbytes <= LITTLE and device.type == "cpu":
        array = array.view()
        array.flags.writeable = False
        return Pending(Small(array), 0)
    place = place_of(device)
    return _put(array) if place is None else jax.device_put(array, place)


def _put_small(array):
    """On the host. Not committed to it beside an accelerator: a program that has had the array as it is would be compiled once more."""
    if place_of(cpu) is None:
        return _put(array)
    with placed(cpu):
        return jax.device_put(array)


def _put(array):
    key = (array.shape, array.dtype)
    seen = _arrivals.get(key, 0)
    if seen >= _OFTEN:
        return jnp.asarray(array)
    _arrivals[key] = seen + 1
    return jax.device_put(array)


Small.to_device = staticmethod(_put_small)

# jnp.asarray takes half the time of device_put (21 and 40 us), but compiles a program for each new shape (30 ms): it is
# for shapes that keep coming, like the batches of a training loop
_arrivals: dict = {}
_OFTEN = 500


def moved(value, device) -> jax.Array:
    """A value on another device. From the host to jax's default device it goes as numpy's: an array put there by the device's name is
    committed to it, and programs that it goes into would be compiled once more for their own results."""
    place = place_of(device)
    small = type(value) is Pending and value.value is None and type(value.graph) is Small
    value = value.graph.array if small else realise(value)
    if place is not None:
        return jax.device_put(value, place)
    if isinstance(value, jax.Array):
        if of_array(value) is not cpu:
            return jax.device_put(value, device.jax)
        value = np.asarray(landed(value))
    return jax.device_put(value)


def _taken(array, device) -> jax.Array:
    """A jax array in the memory of a numpy array where it is aligned for XLA; donating it copies it."""
    return jax.device_put(array, place_of(device), may_alias=True)


def host_view(storage, spec, offset) -> np.ndarray:
    """The tensor's elements inside the shared buffer, as they are in memory."""
    flat = storage.host.buffer
    item = flat.dtype.itemsize
    if spec.dtype is not storage.host.spec.dtype:
        item = spec.dtype.itemsize
        flat = flat.view(np.uint8)[: flat.nbytes // item * item].view(spec.dtype.memory)
    if spec.numel == 0:
        return np.zeros(tuple(spec.shape), spec.dtype.memory)
    inside(storage.host.spec, spec, offset)
    return _strided(flat[offset:], spec, item)


def _strided(flat, spec, item) -> np.ndarray:
    """A flat array under the layout of a spec; numpy's as_strided takes ten times as long."""
    buffer = flat if flat.dtype.kind in "biufc" else flat.view(np.uint8)  # the types of ml_dtypes are no buffers
    return np.ndarray(tuple(spec.shape), flat.dtype, buffer, 0, [s * item for s in spec.strides])


def share(storage) -> Host:
    """Move the storage's value into host memory that numpy may see and write."""
    if storage.host is None:
        base = storage.spec
        array = as_memory(as_numpy(storage.value), base.dtype.memory)
        order = sorted(range(base.ndim), key=lambda d: -base.strides[d])
        owner = np.empty(base.numel, array.dtype)  # it must own its memory: numpy views refer to the owner
        owner[:] = array.transpose(order).reshape(-1)
        adopt(storage, owner[:], owner, base)
    storage.host.ahead = None
    return storage.host


def adopt(storage, flat, owner, spec, lent=False):
    """Let the storage live in this flat numpy buffer from now on."""
    storage._host = Host(flat, owner, spec, lent)
    storage.value = None
    storage.spec = None


def settle(storage):
    """Hand a buffer that nobody else sees over to the device, without a copy where the device is this host."""
    host = storage.host
    if host is not None and not host.shared():
        unshare(storage, True)


def noted(storage):
    """What a storage holds, for `put_back`: (value, spec, version, the buffer that it shares with numpy and a copy of that)."""
    settle(storage)
    host = storage.host
    return storage.value, storage.spec, storage.version, host, None if host is None else host.buffer.copy()


def put_back(storage, held):
    """Have a storage hold what it held."""
    storage.value, storage.spec, version, host, buffer = held
    if host is not None:
        storage._host = host
        if storage.version != version:
            host.ahead = None
            host.buffer[...] = buffer
    storage.version = version


def memory(storage) -> np.ndarray:
    """The whole storage as it is in memory now, one-dimensional. Not to be written to."""
    if storage.host is not None:
        return storage.host.buffer
    base, value = storage.spec, storage.value
    if base.contiguous and base.ndim <= 64:
        return as_memory(as_numpy(value), base.dtype.memory).reshape(-1)
    order = sorted(range(base.ndim), key=lambda d: -base.strides[d])
    if base.ndim > 64:  # more than numpy's arrays can have
        value, order = realise(value).transpose(order).reshape(-1), [0]
    array = as_memory(as_numpy(value), base.dtype.memory)
    return np.ascontiguousarray(array.transpose(order)).reshape(-1)


def unshare(storage, whole=False):
    """Take the value back from a buffer that nobody else sees any more: a copy, or with `whole` the memory itself."""
    host = storage.host
    spec = host.spec
    array = dtypes.values(host_view(storage, spec, 0), spec.dtype)
    itself = whole or host.lent
    storage.value = concrete(_taken if itself else to_device, array if itself else np.array(array), spec.device)
    storage.spec = spec
    storage._host = None


def grow(storage, count, dtype):
    """Have a storage hold at least `count` elements of a dtype; the new ones are zeros."""
    base = storage.base
    wanted = -(-count * dtype.itemsize // base.dtype.itemsize)
    if wanted > base.numel:
        resize(storage, wanted * base.dtype.itemsize, base.dtype)


def resize(storage, nbytes, dtype):
    """Have a storage hold so many bytes, as elements of a dtype; new ones are zeros."""
    base, host = storage.base, storage.host
    if host is not None and (host.among_processes or (host.shared() and not on_host.always)):
        raise errors_storage.not_resizable()
    value, spec = storage.value, Spec.dense((nbytes // dtype.itemsize,), dtype, base.device)
    if base.device.type != "meta":
        flat = np.zeros(nbytes, np.uint8)
        kept = min(nbytes, base.nbytes)
        flat[:kept] = memory(storage).view(np.uint8)[:kept]
        value = to_device(dtypes.values(flat.view(dtype.memory), dtype), base.device)
    replace(storage, value, spec)


def replace(storage, value, spec):
    """Give a storage a value of another size, which lies elsewhere in memory."""
    storage.value, storage.spec = value, spec
    if hasattr(storage, "_pointer"):
        del storage._pointer


def known_of(storage, spec, offset):
    """The elements of what has been recorded and not run, as numpy, where they are known all the same (`aside.known`); else None."""
    base = storage.spec
    if base is not spec and (not base.contiguous or base.dtype is not spec.dtype or not spec.numel):
        return None
    value = aside.known(tls.me, storage.value)
    if value is None or base is spec:
        return value
    inside(base, spec, offset)
    return _strided(np.ascontiguousarray(value).reshape(-1)[offset:], spec, value.dtype.itemsize)


def numpy_of(storage, spec, offset) -> np.ndarray:
    """The tensor's elements as numpy sees them now, without sharing."""
    host = storage.host
    if host is not None:
        whole = host.spec is spec and spec.contiguous and not offset
        return dtypes.values(host.buffer.reshape(spec.shape) if whole else host_view(storage, spec, offset), spec.dtype)
    base = storage.spec
    try:
        if base is not spec and base.dtype is spec.dtype and spec.numel:
            inside(base, spec, offset)
            flat = memory(storage)
            item = flat.dtype.itemsize
            return dtypes.values(_strided(flat[offset:], spec, item), spec.dtype)
        return as_numpy(read(storage, spec, offset))
    except jax.errors.TracerArrayConversionError:
        raise errors_func.traced_item(tls.me.extra.get("transforms", ())) from None
