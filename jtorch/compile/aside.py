"""Arguments that are views, or share memory with numpy: for a region they have memory of their own, which a replay takes as it is.

Where the region's Python runs, the tensors are the caller's own, so that what it returns, keeps or changes of them is what it was given.
As soon as it asks where their memory lies, or reads or writes it by another way, they have the old memory again.
"""

from gc import get_referrers

from .. import convert, dlpack, methods, storage_api, writing
from ..core.record import tls
from ..core.shapes import is_dense
from ..core.storage import Storage
from ..dispatch import view as views
from ..dispatch import write, write_on_tape
from ..dispatch.override import plain_code
from ..tensor import Tensor, seen_now, value_of, wrap

# What shows where a tensor's memory lies, gives others a way to it, or has the tensor stand for other memory.
ASKING = frozenset(
    plain_code(fn)  # a mode may be active where this is imported
    for fn in (
        Tensor.storage_offset, Tensor.data_ptr, Tensor.is_shared, Tensor.is_pinned, Tensor._is_view, Tensor._version.fget, Tensor.data.fset,
        views._absolute, storage_api.untyped_storage, storage_api.storage, writing.set_, writing.resize_, methods.is_set_to,
        methods.share_memory_, convert.numpy, dlpack.export,
    )
)  # fmt: skip


def own(leaf):
    """A tensor with an argument's elements in memory of its own: the argument itself if it has that, None if the strides or history
    would show the difference."""
    spec = leaf._spec
    if leaf.requires_grad or leaf._edge is not None or type(leaf) is not Tensor:
        return None
    if not is_dense(tuple(spec.shape), spec.strides):
        return None
    value = value_of(leaf)
    if leaf._storage.spec is spec:
        return leaf  # reading has taken it back from numpy, which no longer holds it
    made = wrap(value, spec)
    made._storage.version = leaf._storage.version
    return made


def changed(leaf, made) -> bool:
    """Whether the memory of its own has been written to."""
    return made._storage.version != leaf._storage.version


def write_back(pairs):
    """Write to arguments what a replay wrote to the tensors in their places."""
    for leaf, made in pairs:
        if changed(leaf, made):
            write(leaf, value_of(made))


class _Watched(Storage):
    """The memory of arguments that lie elsewhere for the moment. Who reads or writes it brings them back."""

    __slots__ = ()

    @property
    def value(self):
        _back(self)
        return _slot.__get__(self)

    @value.setter
    def value(self, value):
        _back(self)
        _slot.__set__(self, value)


_slot = Storage.value


def _back(storage):
    scope = tls.me.scope
    if scope is not None and scope.aside is not None:
        scope.aside.end("reads the memory of an argument that is a view, or shares it with numpy, by another way")
    storage.__class__ = Storage


class Aside:
    """Arguments while they have memory of their own: the tensor, that memory, and (storage, offset, base, version seen) of the old."""

    def __init__(self, scope, pairs):
        self.scope = scope
        self.lent = [
            (leaf, made._storage, (leaf._storage, leaf._offset, leaf._base, leaf._seen)) for leaf, made in pairs
        ]

    def __enter__(self):
        self.scope.aside = self
        for leaf, storage, (old, *_) in self.lent:
            leaf._storage, leaf._offset, leaf._base, leaf._seen = storage, 0, None, None
            if type(old) is Storage:
                old.__class__ = _Watched
        return self

    def __exit__(self, *exc):
        self.end(None)

    def knows(self, values) -> bool:
        """Whether one of some values is an argument that lies elsewhere, or a view of one."""
        ours = [storage for _, storage, _ in self.lent]
        return any(isinstance(v, Tensor) and v._storage in ours for v in values)

    def end(self, why):
        """Give the arguments the old memory, with what has been written, and all views of them. why: no replay can stand for the region."""
        self.scope.unprovable = self.scope.unprovable or why
        self.scope.aside = None
        lent, self.lent = self.lent, ()
        for leaf, storage, (old, offset, base, seen) in lent:
            if type(old) is _Watched:
                old.__class__ = Storage
            edge = leaf._edge if leaf._storage is storage else None
            value = storage.value
            written = storage.version != old.version
            self.move(leaf, storage, old, offset, base)
            if leaf._storage is old:
                leaf._base, leaf._seen = base, seen
                if written and edge is not None:
                    leaf._edge = None
                    write_on_tape(leaf, value, *edge)
                elif written:
                    write(leaf, value)

    def move(self, leaf, storage, old, offset, base):
        """Have all tensors on the memory of its own lie in the old one."""
        item = leaf._spec.dtype.itemsize
        for t in get_referrers(storage):
            if isinstance(t, Tensor) and t._storage is storage:
                t._storage = old
                t._offset += offset * item // t._spec.dtype.itemsize
                if t is not leaf and t._base is leaf and base is not None:
                    t._base, t._seen = base, seen_now(base)
