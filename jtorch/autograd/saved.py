"""What `save_for_backward` keeps of each tensor."""

from ..core.record import tls
from ..core.spec import Spec
from ..errors_autograd import inference_saved, no_hooks, nothing_saved, saved_as_is
from ..tensor import edge_of, value_of, wrap
from .engine import changed
from .node import Node, pack_one, unpack_one


def plain(spec):
    """The same shape and dtype, row-major."""
    return Spec.dense(tuple(spec.shape), spec.dtype, spec.device)


def check_saved(ctx, args, output):
    """That `setup_context` saves no argument that has come back as it was: which of the two is meant nobody knows."""
    saved = (*(ctx.to_save or ()), *getattr(ctx, "saved_for_forward", ()))
    outs = output if isinstance(output, tuple) else (output,)
    for t in saved:
        both = t is not None and any(t is a for a in args) and any(t is o for o in outs)
        if both and not any(t is d for d in ctx.dirty_tensors):
            raise saved_as_is()


class SavedTensor:
    """One tensor from save_for_backward: itself, or, where it is a result, its value and number (no cycle)."""

    __slots__ = ("tensor", "value", "spec", "number", "storage", "version", "packed", "unpack", "tangent")

    def __init__(self, t, number, hooks):
        self.storage = t._storage
        self.version = t._storage.version
        if self.version < 0 and tls.me.grad:
            raise inference_saved()
        self.number = number
        self.spec = t._spec
        self.unpack = self.tensor = self.value = self.packed = self.tangent = None
        if hooks:
            pack, self.unpack = hooks[-1]
            self.packed = pack_one(pack, t)
            self.storage = None
            self.tensor = edge_of(t)
        elif number is None:
            self.tensor = t
        else:
            self.value = value_of(t)

    def register_hooks(self, pack_hook, unpack_hook):
        """Keep what pack_hook(tensor) gives, until unpack_hook makes it a tensor again."""
        if not (callable(pack_hook) and callable(unpack_hook)):
            raise no_hooks()
        if self.unpack is not None:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one pair of hooks is allowed "
                "at a time."
            )
        tensor = wrap(self.value, plain(self.spec)) if self.tensor is None else self.tensor.detach()
        self.packed, self.unpack = pack_one(pack_hook, tensor), unpack_hook
        self.storage, self.tensor = None, None if self.tensor is None else edge_of(self.tensor)

    def get(self, node):
        if self.unpack is not None:
            got = unpack_one(self.unpack, self.packed)
            edge = self.tensor if self.number is None else (node, self.number)
            if edge is not None and not isinstance(edge[0], Node):
                return edge[0] if got._storage is edge[0]._storage else wrap(value_of(got), plain(got._spec), edge)
            return wrap(value_of(got), plain(got._spec), edge)
        if self.storage.version != self.version:
            edge = edge_of(self.tensor) if self.number is None else (node, self.number)
            raise changed(edge, self.spec, self.storage.version, self.version, node.trace)
        if self.number is None:
            return self.tensor
        t = wrap(self.value, plain(self.spec), (node, self.number) if node.differentiable[self.number] else None)
        if self.tangent is not None:
            t.__dict__["_tangent"] = self.tangent
        return t


class SavedNone:
    """None among what save_for_backward got."""

    def register_hooks(self, pack_hook, unpack_hook):
        """Refused."""
        raise nothing_saved()
