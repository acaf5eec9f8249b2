"""The table of translations: a function of the builder and the call's arguments, under the names of what is called."""

import inspect

TABLE = {}


class Operator:
    """One translation, with the names of its arguments."""

    __slots__ = ("fn", "signature", "names")

    def __init__(self, fn):
        self.fn = fn
        self.signature = inspect.signature(fn)
        self.names = set(self.signature.parameters)

    def __call__(self, *args, **kwargs):
        return self.fn(*args, **kwargs)


def op(*names):
    """Enter a function in the table."""

    def enter(fn):
        for name in names:
            TABLE[name] = Operator(fn)
        return fn

    return enter
