"""The handle that every registration of a hook returns: of tensors, nodes, modules and optimizers."""

import functools
import itertools
import weakref
from collections import OrderedDict

# Count of changes to any module: attributes set, hooks registered, train/eval. What is cached about modules is keyed by it. The second
# number: how many of them were an attribute set to what is no parameter, buffer or module, which may well be what it was before.
mutations = [0, 0]

_far = itertools.count(1 << 40, 1 << 40)


@functools.lru_cache(maxsize=16)
def _count_in(state, before) -> int:
    """What the count is in a state for the time being: the same each time, and one that no other comes to."""
    return next(_far)


def enter(state):
    """(count, the one before): something that is to be put back is in another state, which counts as a change until `leave`."""
    before = mutations[0]
    mutations[0] = count = _count_in(state, before)
    return count, before


def leave(counts):
    """What `enter` has noted is as before: so is the count, if nothing else has changed."""
    count, before = counts
    if mutations[0] == count:
        mutations[0] = before


# Ids of the tensors that compiled regions depend on: what changes their hooks or requires_grad counts like a change to a module.
# No weak references, with which swap_tensors refuses a tensor: the id of one that has died costs whoever gets it a recording.
_watched: set = set()


def watch(tensor):
    """Have changes to a tensor's hooks and requires_grad counted."""
    _watched.add(id(tensor))


def changed(tensor):
    """A tensor has been given a hook, or another requires_grad."""
    if id(tensor) in _watched:
        mutations[0] += 1


class Reference(weakref.ref):
    """A weak reference to a tensor of the library's own: it is asked whether the object is one, so that swap_tensors may go on."""

    __slots__ = ()


def _reference(hooks):
    """A function that returns the registry: a weak reference, except to a plain dict, which cannot have one."""
    return (lambda: hooks) if type(hooks) is dict else weakref.ref(hooks)


class RemovableHandle:
    """What registering a hook returns: `remove()` takes the hook away again. Also a context manager.

    Args:
        hooks_dict: the registry, id -> hook
        extra_dict: further registries that hold the same id, one or a list of them
    """

    next_id = 0

    def __init__(self, hooks_dict, *, extra_dict=None):
        self.hooks_dict_ref = _reference(hooks_dict)
        self.id = RemovableHandle.next_id
        RemovableHandle.next_id += 1
        extra = () if extra_dict is None else extra_dict if isinstance(extra_dict, (list, tuple)) else (extra_dict,)
        self.extra_dict_ref = tuple(map(_reference, extra))

    @classmethod
    def into(cls, hooks, entry):
        """Put a hook into a registry and return its handle."""
        handle = cls(hooks)
        hooks[handle.id] = entry
        return handle

    @classmethod
    def on(cls, tensor, registry, entry):
        """Put a hook into a registry of a tensor's, which has a name, and return its handle."""
        changed(tensor)
        return cls.into(tensor.__dict__.setdefault(registry, {}), entry)

    def remove(self):
        """Take the hook out; doing it twice does no harm."""
        mutations[0] += 1
        for reference in (self.hooks_dict_ref, *self.extra_dict_ref):
            hooks = reference()
            if hooks is not None:
                hooks.pop(self.id, None)

    def __getstate__(self):
        return self.hooks_dict_ref(), self.id, tuple(reference() for reference in self.extra_dict_ref)

    def __setstate__(self, state):
        hooks, self.id, *rest = state  # older files have no third part
        extra = rest[0] or () if rest else ()
        self.hooks_dict_ref = _reference(OrderedDict() if hooks is None else hooks)
        self.extra_dict_ref = tuple(_reference(OrderedDict() if d is None else d) for d in extra)
        RemovableHandle.next_id = max(RemovableHandle.next_id, self.id + 1)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.remove()


__all__ = ["Reference", "RemovableHandle", "changed", "enter", "leave", "mutations", "watch"]
