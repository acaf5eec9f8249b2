"""What kernels of operators made by torch.library are given, what they may give, and the operators' tags."""

import itertools

import pytest

import jtorch
from tests.oracle import torch

_numbers = itertools.count()
GIVEN = {
    "one number for a list": ("int[2] x", lambda t: 3), "one number for a list of any length": ("int[] x", lambda t: 3),
    "a float for a list": ("float[2] x", lambda t: 2.0), "an int": ("float x", lambda t: 2), "ints": ("float[] x", lambda t: (1, 2.5)),
    "an optional": ("float? x", lambda t: 2), "none": ("float? x", lambda t: None), "a bool": ("int x", lambda t: True), "an int for a bool": ("bool x", lambda t: 1),
    "complex": ("complex x", lambda t: 2.0), "a scalar": ("Scalar x", lambda t: True), "a tensor for a scalar": ("Scalar x", lambda t: t.tensor(3.0)),
    "a tensor for an int": ("int x", lambda t: t.tensor(3.0)), "a tensor for a float": ("float x", lambda t: t.tensor(3)), "sizes": ("SymInt[] x", lambda t: t.Size([1, 2])),
    "a tuple": ("Tensor[] x", lambda t: (t.ones(1), t.ones(1))), "a fraction": ("int x", lambda t: 2.5), "a device": ("Device x", lambda t: "cpu"),
    "no device": ("Device x", lambda t: 3.0), "a dtype": ("ScalarType x", lambda t: t.float64), "no dtype": ("ScalarType x", lambda t: "a"),
    "too many": ("int x, *, int y=2", lambda t: 1), "tensors and none": ("Tensor?[] x", lambda t: [t.ones(1), None]),
}  # fmt: skip


def given(t, schema, value, more):
    """What a kernel gets for a value, or the error."""
    name, got = f"given{next(_numbers)}", []
    lib = t.library.Library(name, "DEF")
    lib.define(f"op({schema}) -> Tensor")
    lib.impl("op", lambda *args, **kwargs: got.extend(args) or t.ones(1), "CompositeExplicitAutograd")
    try:
        getattr(t.ops, name).op(value(t), *more)
    except RuntimeError as error:
        return str(error).replace(name, "").split("\n")[0]
    return [(type(x).__name__, str(x)) for x in got]


@pytest.mark.parametrize("name", GIVEN)
def test_what_kernels_get(name):
    more = (2,) if name == "too many" else ()
    assert given(jtorch, *GIVEN[name], more) == given(torch, *GIVEN[name], more)


# Not a tensor for a tuple: what PyTorch makes of that hangs on what has run before.
RETURNED = {
    "a number": ("Tensor", lambda x: 3), "a tuple": ("Tensor", lambda x: (x.clone(), x.clone())),
    "nothing": ("Tensor", lambda x: None), "something": ("()", lambda x: 3), "a tuple for a list": ("Tensor[]", lambda x: (x.clone(), x.clone())),
    "a list for a tuple": ("(Tensor, Tensor)", lambda x: [x.clone(), x.clone()]), "an int": ("float", lambda x: 3),
}  # fmt: skip


def outcome(call):
    try:
        return str(call())
    except (RuntimeError, TypeError) as error:
        return type(error), str(error).split("\n")[0]


@pytest.mark.parametrize("name", RETURNED)
def test_what_kernels_may_give(name):
    results, kernel = RETURNED[name]

    def found(t):
        op = t.library.custom_op(
            f"given::gives{next(_numbers)}", kernel, mutates_args=(), schema=f"(Tensor x) -> {results}"
        )
        return str(outcome(lambda: op(t.ones(2)))).replace(op._qualname, "")

    assert found(jtorch) == found(torch)


GRADIENTS = [(), None, "x", "xxx", (None, None), ("x", None), "xx", (None, None, None)]


@pytest.mark.parametrize("returned", GRADIENTS, ids=str)
def test_numbers_of_gradients(returned):
    def found(t):
        def kernel(x, y):
            return x * y

        op = t.library.custom_op("given::pair", kernel, mutates_args=(), schema="(Tensor x, Tensor y) -> Tensor")
        grads = returned and tuple(t.ones(2) if g else None for g in returned)
        op.register_autograd(lambda ctx, grad: grads)
        a, b = (t.ones(2, requires_grad=True) for _ in range(2))

        def run():
            op(a, b).sum().backward()
            return a.grad, b.grad

        return outcome(run)

    assert found(jtorch) == found(torch)


def tags(t):
    space = f"tagged{next(_numbers)}"
    lib, tag, ops = t.library.Library(space, "DEF"), t.Tag, []
    for k, given in enumerate(((), tag.pointwise, [tag.pointwise, tag.core])):
        lib.define(f"op{k}(Tensor x) -> Tensor", tags=given)
        ops.append(getattr(getattr(t.ops, space), f"op{k}").default)
    for k, given in enumerate((None, (tag.flexible_layout,))):
        made = t.library.custom_op(
            f"{space}::made{k}", lambda x: x, mutates_args=(), schema="(Tensor x) -> Tensor", tags=given
        )
        ops.append(made._opoverload)
    aten = [
        t.ops.aten.add.Tensor,
        t.ops.aten.add_.Tensor,
        t.ops.aten.nonzero.default,
        t.ops.aten.bernoulli.default,
        t.ops.aten.mm.default,
    ]
    return [list(map(str, op.tags)) for op in ops], [sorted(str(g) for g in op.tags if g != t.Tag.core) for op in aten]


def test_tags():
    assert tags(jtorch) == tags(torch)
