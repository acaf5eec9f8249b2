"""What has been compiled already with other sizes: what of it comes with sizes of its own again is likely to do so the next time too."""

_MANY = 1 << 12  # kinds of each sort that are kept


class Seen:
    """What programs compiled at sight were made of, whatever the shapes: the names of their ops in order, and how often each was there;
    and the sizes with which an operation of a kind was first run by itself."""

    __slots__ = ("kinds", "names", "sizes")

    def __init__(self):
        self.forget()

    def forget(self):
        self.kinds = set()
        self.names = {}
        self.sizes = {}

    def add(self, names):
        if len(self.kinds) > _MANY:
            self.kinds, self.names = set(), {}
        self.kinds.add(names)
        for name in set(names):
            self.names[name] = self.names.get(name, 0) + 1

    def varies(self, plan) -> bool:
        """Whether an operation that is run by itself for the first time has been run with operands of other sizes, as many of the
        same dtypes and numbers of dimensions."""
        specs = (*plan.operands, *plan.specs)
        if len(self.sizes) > _MANY:
            self.sizes = {}
        sizes = tuple(s.shape for s in specs)
        return self.sizes.setdefault((plan.name, *((s.dtype, s.ndim) for s in specs)), sizes) != sizes


seen = Seen()
