"""make_fx: the operators of a function and of its derivatives, beside PyTorch's."""

import importlib

import pytest

import jtorch
from tests.oracle import both, torch


def make_fx(t):
    return importlib.import_module(f"{t.__name__}.fx.experimental.proxy_tensor").make_fx


def operators(module):
    """The operators of a graph, in order, without those that nobody reads."""
    return [
        str(n.target) for n in module.graph.nodes
        if n.op == "call_function" and n.target is not getitem and (n.users or str(n.target).split(".")[1].endswith("_"))
    ]  # fmt: skip


getitem = importlib.import_module("operator").getitem


def second(t, x):
    x = x.detach().requires_grad_()
    (g,) = t.autograd.grad((x.sin() * x.exp()).sum(), x, create_graph=True)
    return t.autograd.grad(g.sum(), x)[0]


def filled(t, x):
    y = t.zeros(3)
    y.add_(x.sum())
    y[1:].mul_(2)
    return y


def weighted(t, x):
    w = t.full((2, 3), 0.5).requires_grad_()
    loss = t.nn.functional.mse_loss(t.nn.functional.linear(x, w).relu(), t.ones(4, 2))
    return t.autograd.grad(loss, w)


SAME = {  # the operators are PyTorch's
    "mlp": lambda t, x: t.nn.functional.linear(t.nn.functional.relu(x @ x.t()), t.arange(8.0).view(2, 4)),
    "views": lambda t, x: x.t().unsqueeze(0).expand(2, 3, 4)[0, 1:].select(0, 1) + x.view(-1)[:4],
    "in place": lambda t, x: x.clone().add_(1).mul_(2),
    "in place through a view": filled,
    "turned in place": lambda t, x: (x.clone().t_() + 1, x.clone().unsqueeze_(0).sum(1), x.clone().transpose_(0, 1) * 2),
    "other sizes in place": lambda t, x: (x.clone().resize_(2, 2) * 2, x.clone().as_strided_((2, 2), (1, 1)) * 3),
    "norms": lambda t, x: (t.nn.functional.layer_norm(x, (3,)), t.softmax(x, -1), x.mean(), x.std(), x.log_softmax(0)),
    "activations": lambda t, x: (t.nn.functional.gelu(x) + t.nn.functional.silu(x), x.sigmoid() * x.tanh(), x**2, -x, x.pow(3)),
    "reductions": lambda t, x: (x.sum(), x.sum(1, keepdim=True), x.max(1), x.argmax(), x.cumsum(0), t.cat([x, x]), t.stack([x])),
    "indices": lambda t, x: (x[:, 1], x[x > 0].sum(), x.gather(1, t.zeros(4, 1, dtype=t.long)), x.masked_fill(x > 0, 1.0)),
    "factories": lambda t, x: (t.zeros(3) + x, t.ones_like(x), t.arange(3) * x, t.full((3,), 2.0), t.tensor([1.0, 2.0, 3.0]) * x),
    "second derivatives": second,
    "a loss": weighted,
}  # fmt: skip

RUN = {  # the graph computes what the function does
    "grad": lambda t, x: t.func.grad(lambda a: (a.sin() ** 2).sum())(x),
    "grad of grad": lambda t, x: t.func.grad(lambda b: t.func.grad(lambda a: (a**3).sum())(b).sum())(x),
    "grad of a part": lambda t, x: t.func.grad_and_value(lambda a, b: (a * b).sum(), argnums=1)(x, x * 2),
    "vjp": lambda t, x: t.func.vjp(lambda a: a.exp(), x)[1](x),
    "vmap": lambda t, x: t.func.vmap(lambda a: a.sum() * a)(x),
    "vmap of rows and columns": lambda t, x: t.func.vmap(lambda a, b: a @ b, (0, None), 1)(x, x.t()),
    "gradients of samples": lambda t, x: t.func.vmap(t.func.grad(lambda a: (a**3).sum()))(x),
    "jacrev": lambda t, x: t.func.jacrev(lambda a: (a**2).sum(0))(x),
    "jacfwd": lambda t, x: t.func.jacfwd(lambda a: (a**2).sum(0))(x),
    "hessian": lambda t, x: t.func.hessian(lambda a: (a**3).sum())(x[0]),
    "trees": lambda t, x: {"a": x + 1, "b": [x * 2, None]},
    "convolution": lambda t, x: t.nn.functional.max_pool2d(t.nn.functional.conv2d(x.view(1, 1, 4, 3), t.ones(2, 1, 2, 2)), 2),
    "attention": lambda t, x: t.nn.functional.scaled_dot_product_attention(x[None], x[None], x[None]),
    "a number first": lambda t, x: t.polygamma(1, x + 2),
    "einsum": lambda t, x: t.einsum("ij,kj->ik", x, x),
    "backward": lambda t, x: backward(x),
}  # fmt: skip


def backward(x):
    x = x.detach().requires_grad_()
    (x**2).sum().backward()
    return x.grad


def inputs(t):
    return t.arange(12.0).view(4, 3) / 7 - 0.5, t.arange(12.0).view(4, 3) / 5 - 1.1


@pytest.mark.parametrize("name", [*SAME, *RUN])
def test_graphs(name):
    def program(t):
        f = {**SAME, **RUN}[name]
        x, other = inputs(t)
        module = make_fx(t)(lambda x: f(t, x))(x)
        return module(other), f(t, other), operators(module) if name in SAME else None

    both(program, layout=False)


def test_text():
    def program(t):
        def f(x, pair):
            return x * pair["w"] + pair["b"]

        x = inputs(t)[0]
        module = make_fx(t)(f)(x, {"w": x * 2, "b": x + 1})
        return type(module).__name__, module.code.splitlines()[4:6]

    both(program)
    text = make_fx(jtorch)(lambda x: jtorch.relu(x + 1).sum())(jtorch.ones(3)).code
    assert text == make_fx(torch)(lambda x: torch.relu(x + 1).sum())(torch.ones(3)).code


def test_what_comes_from_elsewhere():
    """Parameters are attributes, tensors that the function writes to are written to again, and data is copied in each run."""

    def program(t):
        t.manual_seed(0)
        layer, count = t.nn.Linear(3, 2), t.zeros(2)

        def f(x):
            count.add_(1)
            loss = layer(x).sum() + (layer.weight * 2).sum()
            t.tensor([1.0]).add_(loss)
            t.as_tensor(count).mul_(2)
            return t.autograd.grad(loss, list(layer.parameters())), count * 2

        x = inputs(t)[0]
        module = make_fx(t)(f)(x)
        names = sorted(n for n, _ in module.named_parameters())
        count.zero_()
        return [module(x), module(x)], count, names

    both(program)


def test_decompositions():
    def program(t):
        def taken_apart(x):
            return t.clamp_min(x, 0)

        module = make_fx(t)(lambda x: t.relu(x) * 2, {t.ops.aten.relu.default: taken_apart})(inputs(t)[0])
        return operators(module)

    both(program)


def test_random_numbers_are_drawn_in_each_run():
    module = make_fx(jtorch)(lambda x: jtorch.rand(3) + jtorch.rand_like(x))(jtorch.ones(3))
    assert (module(jtorch.ones(3)) != module(jtorch.ones(3))).all()


@pytest.mark.parametrize(
    "f", [lambda t, x: x.sum().item(), lambda t, x: x if x.sum() > 0 else -x, lambda t, x: int(x.argmax())]
)
def test_values_are_not_asked_for(f):
    def asked(t):
        with pytest.raises(RuntimeError, match="get value out of a tracing tensor"):
            make_fx(t)(lambda x: f(t, x))(inputs(t)[0])

    asked(jtorch)
    asked(torch)


def test_what_is_refused():
    with pytest.raises(NotImplementedError, match="symbolic"):
        make_fx(jtorch)(lambda x: x, tracing_mode="symbolic")
    with pytest.raises(AssertionError, match="Unexpected tracing type: no"):
        make_fx(jtorch)(lambda x: x, tracing_mode="no")
    with pytest.raises(NotImplementedError, match=r"torch.func.jvp of tensors with a __torch_dispatch__"):
        make_fx(jtorch)(lambda x: jtorch.func.jvp(jtorch.sin, (x,), (x,)))(jtorch.ones(3))


def test_what_traces_is_known():
    of = importlib.import_module("jtorch.fx.experimental.proxy_tensor")
    seen = []
    of.make_fx(lambda x: seen.append(of.get_proxy_mode()) or x + 1)(jtorch.ones(2))
    assert seen[0] is not None and of.get_proxy_mode() is None
