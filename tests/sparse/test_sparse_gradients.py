"""Gradients through sparse tensors: values, layouts and names of steps as PyTorch's."""

import pytest

import jtorch
from tests.oracle import both
from tests.sparse.samples import INDICES, Samples, weigh

# What is differentiated, and by which of its samples.
STEPS = {
    "to_dense": (("coo",), lambda t, x: x.to_dense()),
    "coalesce": (("coo",), lambda t, x: x.coalesce()),
    "values": (("coo",), lambda t, x: x.coalesce().values()),
    "neg": (("coo",), lambda t, x: -x),
    "mul": (("coo",), lambda t, x: x * 2),
    "div": (("whole",), lambda t, x: x / 2),
    "mul dense": (("full", "whole"), lambda t, d, x: x * d),
    "add": (("whole", "other"), lambda t, x, y: t.add(x, y, alpha=2)),
    "sub": (("whole", "other"), lambda t, x, y: x - y),
    "dense + coo": (("full", "coo"), lambda t, d, x: d + x),
    "double": (("coo",), lambda t, x: x.double()),
    "abs": (("coo",), lambda t, x: x.abs()),
    "relu": (("whole",), lambda t, x: t.relu(x)),
    "sum": (("coo",), lambda t, x: x.sum()),
    "sparse.sum": (("coo",), lambda t, x: t.sparse.sum(x)),
    "sparse.sum 1": (("coo",), lambda t, x: t.sparse.sum(x, 1)),
    "softmax": (("coo",), lambda t, x: t.sparse.softmax(x, 1)),
    "log_softmax": (("whole",), lambda t, x: t.sparse.log_softmax(x, 1)),
    "t": (("coo",), lambda t, x: x.t()),
    "permute": (("whole",), lambda t, x: x.permute(1, 0)),
    "sparse.mm": (("coo", "right"), lambda t, x, d: t.sparse.mm(x, d)),
    "mm": (("coo", "right"), lambda t, x, d: t.mm(x, d)),
    "dense @ coo": (("square", "whole"), lambda t, d, x: d @ x),
    "coo @ coo": (("whole", "other"), lambda t, x, y: t.sparse.mm(x, y.t())),
    "mv": (("whole",), lambda t, x: x @ t.ones(3)),
    "sparse.addmm": (("square", "coo", "right"), lambda t, s, x, d: t.sparse.addmm(s, x, d, beta=2, alpha=3)),
    "addmm": (("square", "csr", "right"), lambda t, s, x, d: t.addmm(s, x, d, beta=2, alpha=3)),
    "to_sparse": (("full",), lambda t, d: d.to_sparse()),
    "to_sparse(1)": (("full",), lambda t, d: d.to_sparse(1)),
    "to_sparse_csr": (("full",), lambda t, d: d.to_sparse_csr()),
    "sparse_mask": (("full",), lambda t, d: d.sparse_mask(Samples(t).whole)),
    "constructor": (("square",), lambda t, d: t.sparse_coo_tensor(INDICES, d.reshape(-1), (2, 3)).coalesce()),
    "csr constructor": (("square",), lambda t, d: t.sparse_csr_tensor([0, 2, 4], [0, 1, 0, 2], d.reshape(-1), (2, 3))),
    "csr.to_dense": (("csr",), lambda t, x: x.to_dense()),
    "csr.values": (("csr",), lambda t, x: x.values()),
    "csr.to_sparse": (("csr",), lambda t, x: x.to_sparse()),
    "csr @": (("csr", "right"), lambda t, x, d: t.sparse.mm(x, d)),
    "csr.t": (("csr",), lambda t, x: x.t()),
    "sampled": (("csr", "square", "full"), lambda t, x, a, b: t.sparse.sampled_addmm(x, a, b, beta=0.5, alpha=2)),
}  # fmt: skip


@pytest.mark.parametrize("name", STEPS)
def test_gradient(name):
    names, function = STEPS[name]

    def program(t):
        samples = Samples(t, grad=True)
        leaves = [getattr(samples, n) for n in names]
        out = function(t, *leaves)
        weigh(out).backward()
        return out, type(out.grad_fn).__name__, [x.grad for x in leaves]

    both(program, layout=False)


@pytest.mark.parametrize("reduce", ["sum", "mean", "amax", "amin"])
def test_gradient_of_reduced_product(reduce):
    def program(t):
        samples = Samples(t, grad=True)
        x, d = samples.csr, samples.right
        t.sparse.mm(x, d, reduce).sum().backward()
        return x.grad, d.grad

    both(program, layout=False)


@pytest.mark.parametrize("reduce", ["amax", "min"])
def test_gradient_of_extremes_that_are_zero_or_met_twice(reduce):
    def program(t):
        x = t.tensor([[1.0, 0, 2], [0, 3, 0], [0, 0, 0], [1, 1, 0]]).to_sparse_csr().requires_grad_()
        d = t.tensor([[0, 1.0], [2, 0], [-1, 0]], requires_grad=True)
        t.sparse.mm(x, d, reduce).sum().backward()
        none = t.zeros(2, 3).to_sparse_csr()
        return x.grad, d.grad, t.sparse.mm(none, d, reduce).requires_grad

    both(program, layout=False)


@pytest.mark.parametrize("name", ["smm", "hspmm", "sspaddmm"])
def test_products_without_a_derivative(name):
    """Neither library has one: backward says so, and nothing is lost in silence."""

    def program(t):
        samples = Samples(t)
        d = samples.right.detach().requires_grad_()
        first = (t.zeros(2, 2).to_sparse(),) if name == "sspaddmm" else ()
        out = getattr(t, name)(*first, samples.whole, d)
        assert out.requires_grad
        out.to_dense().sum().backward()

    both(program)


def test_second_order():
    """Where PyTorch has one: the same number by dense tensors."""
    samples = Samples(jtorch, grad=True)
    x, d = samples.whole, samples.right
    [g] = jtorch.autograd.grad((jtorch.sparse.mm(x * x.detach(), d) ** 2).sum(), d, create_graph=True)
    (g**2).sum().backward()
    dense, e = samples.whole.to_dense().detach().requires_grad_(), samples.right
    [h] = jtorch.autograd.grad((((dense * dense.detach()) @ e) ** 2).sum(), e, create_graph=True)
    (h**2).sum().backward()
    assert jtorch.allclose(d.grad, e.grad)
    assert jtorch.allclose(x.grad.to_dense(), dense.grad * (dense.detach() != 0))


def test_the_tape_as_elsewhere():
    def program(t):
        seen = []
        x = Samples(t, grad=True).coo
        y = x * 2
        y.retain_grad()
        y.register_hook(lambda g: seen.append(str(g.layout)) or g * 3)
        leaf = x.register_hook(lambda g: seen.append(g.shape))
        y.to_dense().sum().backward()
        leaf.remove()
        z = x.detach().requires_grad_()
        out = z.to_dense() * z.to_dense()
        [g] = t.autograd.grad(out, z, t.ones(2, 3), retain_graph=True)
        out.sum().backward()
        with t.no_grad():
            flags = (z * 2).requires_grad, z.is_leaf, z.detach().requires_grad, y.is_leaf, y.requires_grad
        return seen, y.grad.to_dense(), x.grad.to_dense(), g.to_dense(), z.grad.to_dense(), flags

    both(program)


def test_in_place_on_a_leaf():
    def program(t):
        Samples(t, grad=True).coo.mul_(2)

    both(program)


def test_values_of_a_step_go_once():
    x = Samples(jtorch, grad=True).whole
    out = jtorch.sparse.mm(x, Samples(jtorch).right).sum()
    out.backward()
    with pytest.raises(RuntimeError, match="a second time"):
        out.backward()


def test_other_derivatives_are_refused_rather_than_wrong():
    x = Samples(jtorch).whole
    with pytest.raises(NotImplementedError, match="sparse tensors in torch.func's derivatives"):
        jtorch.vmap(jtorch.func.grad(lambda d: jtorch.sparse.mm(x, d).sum()))(jtorch.ones(2, 3, 2))
    d = jtorch.ones(3, 2)
    found = jtorch.func.grad(lambda d: jtorch.sparse.mm(x, d).sum())(d)
    jtorch.testing.assert_close(found, jtorch.func.grad(lambda d: (x.to_dense() @ d).sum())(d))
    with jtorch.autograd.forward_ad.dual_level():
        d = jtorch.autograd.forward_ad.make_dual(jtorch.ones(3, 2), jtorch.ones(3, 2))
        with pytest.raises(NotImplementedError, match="forward mode"):
            jtorch.sparse.mm(x, d)
    batched = jtorch.vmap(lambda d: jtorch.sparse.mm(x, d))(jtorch.ones(2, 3, 2))
    assert batched.shape == (2, 2, 2)
