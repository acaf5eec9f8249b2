"""The generated functions: namespaces, aliases, names, documentation."""

import inspect

import pytest

import jtorch
from jtorch.ops import registry
from tests.oracle import both


def test_aliases_are_the_same_op():
    for alias, name in registry.ALIASES.items():
        spaces = {"torch": jtorch, "Tensor": jtorch.Tensor}
        for target in registry.OPS.get(name, registry.VIEWS.get(name, registry.COMPOSITES.get(name))).targets:
            space, _, last = target.rpartition(".")
            if last == alias and space in spaces:
                assert hasattr(spaces[space], alias), target


@pytest.mark.parametrize("space", ["nn.functional", "linalg", "fft", "special"])
def test_namespaces(space):
    holder = jtorch
    for part in space.split("."):
        holder = getattr(holder, part)
    names = [
        t.rpartition(".")[2]
        for r in (*registry.OPS.values(), *registry.VIEWS.values(), *registry.COMPOSITES.values())
        for t in r.targets
        if t.rpartition(".")[0] == space
    ]
    missing = [n for n in names if not hasattr(holder, n)]
    assert names and not missing, missing


def test_functions_look_like_functions():
    assert jtorch.exp.__name__ == "exp"
    assert jtorch.Tensor.exp_.__name__ == "exp_"
    assert jtorch.exp.__doc__ == registry.OPS["exp"].doc
    assert "input" in inspect.signature(jtorch.exp).parameters
    assert jtorch.exp is jtorch.exp


def test_function_and_method_agree():
    def program(t):
        x = t.linspace(0.1, 2, 6).view(2, 3)
        names = [
            "exp",
            "log",
            "sum",
            "mean",
            "t",
            "abs",
            "sin",
            "cumsum",
            "softmax",
            "std",
            "argmax",
            "unsqueeze",
            "flip",
        ]
        extra = {"cumsum": (1,), "softmax": (0,), "unsqueeze": (1,), "flip": ((0,),)}
        return [(getattr(t, n)(x, *extra.get(n, ())), getattr(x, n)(*extra.get(n, ()))) for n in names]

    both(program)


def test_in_place_functions():
    both(
        lambda t: [
            t.relu_(t.tensor([-1.0, 1.0])),
            t.nn.functional.relu_(t.tensor([-1.0])),
            t.exp_(t.zeros(2)),
            t.sqrt_(t.ones(1)),
        ]
    )


def test_an_unknown_name():
    with pytest.raises(AttributeError, match="has no attribute 'frobnicate'"):
        getattr(jtorch, "frobnicate")  # noqa: B009
