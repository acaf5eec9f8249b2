"""Control flow's results depend on all that goes into it, as PyTorch's do: zeros, not None, where only the other branch reads it."""

import importlib

import pytest

import jtorch
from jtorch.lifted import read_by
from tests import oracle

EXPERTS = """
__name__ = "tests.oracle"  # where PyTorch's compiler looks for what is global

def trained():
    torch.manual_seed(0)
    one, two = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)
    opt = torch.optim.SGD([*one.parameters(), *two.parameters()], lr=0.1, weight_decay=0.1, momentum=0.9)
    for k in range(4):
        x = torch.randn(2, 3)
        opt.zero_grad()
        torch.cond(x.sum() > 0, lambda x: one(x), lambda x: two(x), (x,)).sum().backward()
        opt.step()
    return [*one.parameters(), *two.parameters()]

result = trained()
"""


def leaf(*size):
    return jtorch.randn(*size, requires_grad=True)


def test_experts_decay():
    want, got = oracle.execute(EXPERTS), oracle.execute(EXPERTS, "jtorch")
    oracle.compare(want["result"], oracle.to_torch(got["result"]))


def test_operands_of_the_other_branch():
    a, b, c = leaf(3), leaf(3), leaf(3)
    result = jtorch.cond(jtorch.tensor(True), lambda u, v: u.detach() * 2, lambda u, v: u * c, (a, b))
    assert result.requires_grad
    result.sum().backward()
    assert a.grad.tolist() == c.grad.tolist() == [0, 0, 0]
    assert b.grad is None  # no branch reads it
    with jtorch.no_grad():
        assert not jtorch.cond(jtorch.tensor(True), lambda u: u * 2, lambda u: u * c, (a,)).requires_grad


def test_branches_in_branches():
    layers = [jtorch.nn.Linear(2, 2) for _ in range(3)]
    x, yes = jtorch.ones(1, 2), jtorch.tensor(True)

    def inner(u):
        return jtorch.cond(u.sum() > 0, layers[1], layers[2], (u,))

    jtorch.cond(yes, layers[0], inner, (x,)).sum().backward()
    assert layers[0].weight.grad.tolist() == [[1, 1], [1, 1]]
    assert all(p.grad.abs().sum() == 0 for layer in layers[1:] for p in layer.parameters())


def test_the_other_branch_leaves_no_trace():
    norm = jtorch.nn.BatchNorm1d(2)
    count = jtorch.zeros(2)

    def other(u):
        count.add_(1)
        return jtorch.nn.functional.dropout(norm(u))

    jtorch.manual_seed(0)
    want = jtorch.rand(3)
    jtorch.manual_seed(0)
    jtorch.cond(jtorch.tensor(True), lambda u: u * 2, other, (leaf(4, 2).detach(),)).sum().backward()
    jtorch.manual_seed(0)
    jtorch.cond(jtorch.tensor(True), lambda u: u * 2, other, (jtorch.ones(4, 2),))
    assert jtorch.equal(jtorch.rand(3), want)
    assert norm.running_mean.tolist() == count.tolist() == [0, 0]


def test_what_needs_values_is_read_up_to_there():
    a, b, c = leaf(()), leaf(()), leaf(())
    assert [x is a for x in read_by(lambda u: (u * a).item() + b, (c,)) if x is not c] == [True]

    def wrong(u):
        raise ValueError

    assert read_by(wrong, (c,)) == []


@pytest.mark.parametrize("name", ["map", "scan", "while_loop", "associative_scan"])
def test_loops(name):
    loop = getattr(jtorch._higher_order_ops, name)
    a, b = leaf(3, 2), leaf(2)
    if name == "map":
        result = loop(lambda u, v: u * 2, a, b)
    elif name == "scan":
        _, result = loop(lambda c, x: (c * 1, x * 2), b, a)
    elif name == "while_loop":
        _, result, _ = loop(lambda i, u, v: i < 2, lambda i, u, v: (i + 1, u * 2, v * 2), (jtorch.tensor(0), a, b))
    else:
        b = leaf(3, 2)
        result, _ = loop(lambda u, v: (u[0] + v[0], u[1] + v[1]), (a, b), 0, combine_mode="generic")
    result.sum().backward()
    assert a.grad.abs().sum() > 0 and b.grad.abs().sum() == 0


def test_in_transformations():
    grad = jtorch.func.grad(lambda x: jtorch.cond(x.sum() > 0, lambda v: (v**2).sum(), lambda v: (v**3).sum(), (x,)))
    assert jtorch.equal(grad(jtorch.ones(2)), jtorch.full((2,), 2.0))
    assert jtorch.equal(jtorch.vmap(grad)(-jtorch.ones(2, 2)), jtorch.full((2, 2), 3.0))


def test_reached_without_an_import():
    assert jtorch._higher_order_ops is importlib.import_module("jtorch.swap.internal.higher_order_package")
