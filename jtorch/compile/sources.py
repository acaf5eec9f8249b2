"""Where a replay's inputs come from, where that is no storage that stays the same."""


class GradientOf:
    """The storage of whatever gradient a tensor has at the moment."""

    __slots__ = ("tensor",)

    def __init__(self, tensor):
        self.tensor = tensor

    @property
    def spec(self):
        grad = self.tensor._grad
        return None if not is_whole(grad) else grad._spec

    @property
    def value(self):
        grad = self.tensor._grad
        return None if grad is None else grad._storage.value  # it may be dropped while a call that writes to it waits

    @value.setter
    def value(self, value):
        self.tensor._grad._storage.value = value

    @property
    def version(self):
        return self.tensor._grad._storage.version

    @version.setter
    def version(self, version):
        self.tensor._grad._storage.version = version


class KeptIn:
    """The storage of whatever tensor is in a place at the moment: `holder[key]`. first: its spec when the region was recorded."""

    __slots__ = ("first", "holder", "key")

    def __init__(self, holder, key, first):
        self.holder, self.key, self.first = holder, key, first

    @property
    def spec(self):
        return getattr(self.holder.get(self.key), "_spec", None)

    @property
    def value(self):
        return self.holder[self.key]._storage.value

    @value.setter
    def value(self, value):
        self.holder[self.key]._storage.value = value


def is_whole(grad) -> bool:
    """Whether there is a gradient and it is all that its storage holds."""
    return grad is not None and grad._storage.spec is grad._spec


class _Nothing:
    """Stands among the storages where an argument or a random key will be."""

    value = spec = None


NOTHING = _Nothing()
