"""torch._foreach_*: each function of PyTorch's, on lists of tensors, numbers and both."""

import pytest

import jtorch
from tests import oracle
from tests.oracle import torch

NAMES = sorted(n.removeprefix("_foreach_") for n in dir(torch) if n.startswith("_foreach_"))
TWO = {"add", "sub", "mul", "div", "pow", "clamp_max", "clamp_min", "maximum", "minimum", "copy_"}


def lists(module):
    return [module.tensor([0.3, 0.8]), module.tensor([[0.6, 0.1, 0.9]])]


def other(module):
    return [module.tensor([0.5, 0.2]), module.tensor([[0.4, 0.7, 0.3]])]


def arguments(name, module):
    base = name.removesuffix("_")
    if base == "lerp":
        return other(module), 0.25
    if base.startswith("addc"):
        return other(module), other(module), [2.0, 0.5]
    if base == "mm":
        return ([t.reshape(-1, 1) for t in other(module)],)
    if base == "powsum":
        return (2,)
    return (other(module),) if {name, base} & TWO else ()


@pytest.mark.parametrize("name", NAMES)
def test_like_torch(name):
    def program(module):
        x = [t.reshape(1, -1) for t in lists(module)] if name == "mm" else lists(module)
        got = getattr(module, f"_foreach_{name}")(x, *arguments(name, module))
        return got, x, type(got).__name__, got is x

    oracle.agree(oracle.run(program, torch), oracle.run(program, jtorch))


CALLS = [
    "_foreach_add(x, 2)", "_foreach_add(x, y, alpha=2)", "_foreach_add(x, [1.0, 2.0])", "_foreach_mul(x, t(3.0))",
    "_foreach_pow(2.0, x)", "_foreach_addcmul(x, y, y, value=2)", "_foreach_addcdiv(x, y, y, t([1.0, 2.0]))",
    "_foreach_lerp(x, y, [0.5, 0.1])", "_foreach_norm(x, 1)", "_foreach_norm(x)", "_foreach_maximum(x, 0.5)",
    "_foreach_clamp_min_(x, [0.5, 0.7])", "_foreach_sub(tuple(x), 1)",
    "_foreach_mul_(x, scalar=2)", "_foreach_div(x, scalars=[2.0, 4.0])", "_foreach_add(x, other=y, alpha=2)", "_foreach_maximum(x, scalar=0.5)",
    "_foreach_clamp_max_(x, other=y)", "_foreach_lerp_(x, tensors1=y, weight=0.5)", "_foreach_lerp(x, y, weights=y)", "_foreach_lerp(x, y, weight=[0.5, 0.1])",
    "_foreach_pow(x, exponent=[2, 3])", "_foreach_addcmul_(x, tensor1=y, tensor2=y, value=2)", "_foreach_copy_(self=x, src=y)",
    "_foreach_sub_(self=x, scalar=1)", "_foreach_pow(x, exponent=2)", "_foreach_powsum(x, ord=2)",
    "_foreach_minimum_([t([1, 2])], 1)", "_foreach_maximum_([t([1, 2])], [t([2, 0])])",
    "_foreach_add([], 1)", "_foreach_add(x, y[:1])", "_foreach_add(x, [1.0])", "_foreach_add(x, t([1.0, 2.0]))", "_foreach_frac(x[0])",
]  # fmt: skip


@pytest.mark.parametrize("text", CALLS)
def test_calls(text):
    def program(module):
        x = lists(module)
        scope = {"x": x, "y": other(module), "t": module.tensor, "tuple": tuple}
        return eval(f"torch.{text}", scope | {"torch": module}), x

    oracle.agree(oracle.run(program, torch), oracle.run(program, jtorch))


@pytest.mark.parametrize("bound", [0.5, [0.5], [jtorch.tensor(0.5)]])
def test_bounds_that_do_not_fit_what_they_are_written_to(bound):
    with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output type Long"):
        jtorch._foreach_maximum_([jtorch.tensor([1, 2])], bound)


def test_a_name_that_is_none():
    with pytest.raises(AttributeError, match="_foreach_mm_"):
        jtorch._foreach_mm_  # noqa: B018
