"""What a region returns: replays make it anew, of the same classes, and what they cannot make is recorded."""

import collections
import dataclasses
import typing

import pytest

import jtorch


@dataclasses.dataclass
class Pair:
    a: typing.Any
    b: typing.Any = None


@dataclasses.dataclass(frozen=True, slots=True)
class Fixed:
    a: typing.Any


class Named(typing.NamedTuple):
    a: typing.Any
    n: int


class Output(collections.OrderedDict):
    """Like those of model libraries: what is in it is an attribute too."""

    def __init__(self, **kept):
        super().__init__()
        for name, value in kept.items():
            self[name] = value

    def __setitem__(self, name, value):
        super().__setitem__(name, value)
        super().__setattr__(name, value)


class Few(list):
    pass


class Closing:
    def __init__(self, a):
        self.a = a

    def __del__(self):
        pass


class Tree:
    def __init__(self, x):
        self.x, self.me = x, self


KEPT = []


def kept_elsewhere(x):
    pair = Pair(x.sin())
    KEPT.append(pair)
    return pair


def shared(x):
    pair = Pair(x.sin())
    return pair, pair


# (function, whether it is replayed)
RESULTS = {
    "dataclass": (lambda x: Pair(x.sin(), [x, 2]), True),
    "frozen dataclass with slots": (lambda x: Fixed(x.sin()), None),
    "named tuple": (lambda x: Named(x.sin(), 3), True),
    "ordered dict": (lambda x: Output(loss=x.sum(), logits=x.sin(), n=None), True),
    "nested": (lambda x: {"out": Output(pair=Pair(x.sin())), "k": (Named(x, 1), Few([x.cos()]))}, True),
    "list": (lambda x: Few([x.sin(), 3]), True),
    "dict with keys of a tuple": (lambda x: {("a", 1): x.sin()}, True),
    "dtype": (lambda x: (x.sin(), x.dtype, x.device, x.shape), True),
    "kept elsewhere": (kept_elsewhere, False),
    "twice": (shared, False),
    "with a finalizer": (lambda x: Closing(x.sin()), False),
    "in itself": (lambda x: Tree(x.sin()), False),
    "function": (lambda x: (x.sin(), lambda: 3), False),
    "module": (lambda x: (x.sin(), jtorch.nn.Tanh()), False),
    "array": (lambda x: (x.sin(), x.shape, __import__("numpy").ones(2)), False),
}


def shown(value, depth=0):
    if isinstance(value, jtorch.Tensor):
        return value.tolist()
    if isinstance(value, dict):
        return (
            type(value),
            [(k, shown(v)) for k, v in value.items()],
            [shown(v) for v in getattr(value, "__dict__", {}).values()],
        )
    if isinstance(value, (list, tuple)):
        return type(value), [shown(v) for v in value]
    if isinstance(value, (Pair, Fixed)):
        return type(value), [shown(getattr(value, field.name)) for field in dataclasses.fields(value)]
    if hasattr(value, "__dict__") and depth < 2 and not callable(value):
        return type(value), [shown(v, depth + 1) for v in vars(value).values()]
    return type(value)


def test_an_argument_that_is_returned_stays_itself():
    pair, x = Pair(3), jtorch.ones(2)
    compiled = jtorch.compile(lambda x, pair: (x.sin(), pair, "a b".replace("a", "c")))
    for _ in range(4):
        assert compiled(x, pair)[1] is pair
    assert compiled._region.used
    other = Pair(3)
    assert compiled(x, other)[1] is other


@pytest.mark.parametrize("case", RESULTS)
def test_objects_are_made_anew_at_each_call(case):
    fn, replayed = RESULTS[case]
    compiled = jtorch.compile(fn)
    seen = []
    for k in range(5):
        x = jtorch.tensor([0.5, -1.0]) * (k + 1)
        got, expected = compiled(x), fn(x)
        assert shown(got) == shown(expected)
        assert all(got is not other for other in seen)
        seen.append(got)
    if replayed is not None:
        assert (compiled._region.used > 0) == replayed, compiled._region.why
