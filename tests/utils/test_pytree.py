"""Nested containers: the same leaves, specs and texts as PyTorch's."""

import collections
import dataclasses
import warnings
from collections import OrderedDict, defaultdict, deque, namedtuple

import pytest

import jtorch
from jtorch.utils import _pytree as ours
from tests.oracle import both, torch

theirs = torch.utils._pytree
Point = collections.namedtuple("Point", "x y")
TREES = [
    1,
    [1, (2, None), {"b": 3, "a": [4]}],
    Point(1, [2, 3]),
    collections.OrderedDict(b=1, a=(2,)),
    collections.defaultdict(list, a=1, b=2),
    collections.deque([1, 2], maxlen=3),
    [],
    {},
]


@pytest.mark.parametrize("tree", TREES, ids=range(len(TREES)))
def test_flatten(tree):
    leaves, spec = ours.tree_flatten(tree)
    expected, expected_spec = theirs.tree_flatten(tree)
    assert leaves == expected and repr(spec) == repr(expected_spec)
    assert (spec.num_leaves, spec.num_nodes) == (expected_spec.num_leaves, expected_spec.num_nodes)
    rebuilt = ours.tree_unflatten(leaves, spec)
    assert rebuilt == tree and type(rebuilt) is type(tree)
    assert ours.tree_map(str, tree) == theirs.tree_map(str, tree)
    assert ours.tree_map_only(int, lambda x: -x, tree) == theirs.tree_map_only(int, lambda x: -x, tree)
    assert [(ours.keystr(p), x) for p, x in ours.tree_leaves_with_path(tree)] == [
        (theirs.keystr(p), x) for p, x in theirs.tree_leaves_with_path(tree)
    ]


def test_results_with_names_are_trees():
    """Of operators: `torch.return_types` are containers, in PyTorch's trees and in those of torch.func."""
    found = []
    for lib, trees in ((jtorch, ours), (torch, theirs)):
        x = lib.arange(6.0).reshape(2, 3)
        leaves, spec = trees.tree_flatten(x.max(1))
        paths = [(trees.keystr(p), v.tolist()) for p, v in trees.tree_leaves_with_path(x.sort(1))]
        found.append([len(leaves), repr(spec), str(trees.tree_map(lambda v: v + 1, x.max(1))), paths])
        found[-1].append(str(lib.vmap(lambda v: v.max(0))(x)))
    assert found[0] == found[1]


def test_text():
    tree = [1, (2, None), {"b": 3}]
    text = ours.treespec_dumps(ours.tree_structure(tree))
    assert text == theirs.treespec_dumps(theirs.tree_structure(tree))
    assert ours.treespec_loads(text) == ours.tree_structure(tree)


def test_several_trees():
    assert ours.tree_map(lambda a, b: a + b, {"a": 1, "b": [2]}, {"b": [20], "a": 10}) == {"a": 11, "b": [22]}
    for tree in ({"a": 1}, [1, 2, 3]):
        with pytest.raises(ValueError, match="mismatch"):
            ours.tree_map(lambda a, b: a, [1, 2], tree)


def test_registered_class():
    class Pair:
        def __init__(self, a, b):
            self.a, self.b = a, b

    ours.register_pytree_node(Pair, lambda p: ([p.a, p.b], None), lambda c, _: Pair(*c))
    with pytest.raises(ValueError, match="is already registered"):
        ours.register_pytree_node(Pair, None, None)
    found = ours.tree_map(lambda x: x * 2, [Pair(1, 2)])[0]
    assert (found.a, found.b) == (2, 4)


@pytest.mark.parametrize(
    "one, other",
    [([1], (1,)), ({"a": 1}, {"b": 1}), ({"a": 1, "b": 2}, {"a": 1}), ({"a": 1}, {"a": 1, "b": 2}), ([1, 2], [1])],
)
def test_trees_that_differ(one, other):
    both(lambda torch: torch.utils._pytree.tree_map(lambda a, b: a + b, one, other))


def test_functions_of_the_builtin_containers():
    def program(t):
        p = t.utils._pytree
        point = namedtuple("point", "a b")
        found = []
        for name, value in (
            ("tuple", (1, 2)), ("list", [1, 2]), ("dict", {"a": 1}), ("odict", OrderedDict(a=1)), ("ordereddict", OrderedDict(b=2)),
            ("defaultdict", defaultdict(int, a=1)), ("deque", deque([1, 2], 3)),
        ):  # fmt: skip
            leaves, context = getattr(p, f"_{name}_flatten")(value)
            found += [leaves, getattr(p, f"_{name}_unflatten")(leaves, context) == value]
        leaves, context = p._namedtuple_flatten(point(1, 2))
        return [*found, leaves, p._namedtuple_unflatten(leaves, context)]

    both(program)


def refused(p):
    """Errors and warnings about specs and registrations."""

    class Plain:
        def __init__(self, x=None):
            self.x = x

    @dataclasses.dataclass
    class Data:
        a: int
        b: int = 3

    made = (Plain, lambda v: ([v.x], None), lambda children, context: Plain(*children))
    found = []
    for call in (
        lambda: p.tree_unflatten([1], 3),
        lambda: p.treespec_dumps(3),
        lambda: p.treespec_dumps(p.tree_structure([1]), 9),
        lambda: p.treespec_dumps(p.tree_structure(Point(1, 2))),
        lambda: p.register_pytree_node(*made),
        lambda: p.register_pytree_node(*made),
        lambda: p._register_pytree_node(*made),
        lambda: p.treespec_dumps(p.tree_structure(Plain(1))),
        lambda: p.tree_flatten_with_path(Plain(1)),
        lambda: p.register_dataclass(Plain),
        lambda: p.register_dataclass(Data),
        lambda: p.register_dataclass(Data),
        lambda: p.tree_leaves(Data(1, 2)),
    ):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            try:
                result = call()
            except (TypeError, ValueError, NotImplementedError) as error:
                result = type(error), str(error)
        found.append((result, [(w.category, str(w.message)) for w in said]))
    return found


def test_refusals():
    assert refused(ours) == refused(theirs)
