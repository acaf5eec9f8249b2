"""Dispatch modes: the operators they see, by the names of PyTorch's signatures, modes inside of themselves, what may be returned."""

import importlib

import numpy as np
import pytest

import jtorch
from jtorch.swap.internal import c as internal_c
from jtorch.utils._python_dispatch import TorchDispatchMode
from tests.oracle import both, torch
from tests.test_overrides import dispatch_mode

SEEN = {
    "max of a dim": lambda t, x: x.max(1), "min of a dim": lambda t, x: x.min(0), "median": lambda t, x: x.median(), "median of a dim": lambda t, x: x.median(1),
    "nanmedian": lambda t, x: x.nanmedian(1), "split": lambda t, x: x.split(1), "split by sizes": lambda t, x: x.split([1, 1]), "chunk": lambda t, x: x.chunk(2),
    "chunk along": lambda t, x: x.chunk(2, 1), "norm": lambda t, x: x.norm(), "norm along": lambda t, x: x.norm(3, 0, True), "nonzero": lambda t, x: x.nonzero(),
    "clamp": lambda t, x: (x.clamp(0, 1), x.clamp(x, x), x.clamp_min(1), x.clamp_min(x)), "lerp": lambda t, x: (x.lerp(x, 0.5), x.lerp(x, x)),
    "pow": lambda t, x: (2**x, x**2, x**x), "remainder": lambda t, x: (2 % x, x % 2, x % x), "div": lambda t, x: (x / 2, x.div(2, rounding_mode="floor")),
    "round": lambda t, x: (x.round(), x.round(decimals=1)), "squeeze": lambda t, x: (x.squeeze(), x.squeeze(0)), "var": lambda t, x: (x.var(), x.std(1), t.var_mean(x)),
    "masked_fill": lambda t, x: (x.masked_fill(x > 0, 1), x.masked_fill(x > 0, x[0, 0])), "searchsorted": lambda t, x: t.searchsorted(x[0], 2.0),
    "isin": lambda t, x: (t.isin(x, x), t.isin(x, 1.0)), "scatter": lambda t, x: (x.scatter(0, x.long(), 2.0), x.scatter(0, x.long(), x), x.scatter(0, x.long(), x, reduce="add")),
    "adaptive pools": lambda t, x: (t.nn.functional.adaptive_max_pool1d(x[None], 1), t.nn.functional.adaptive_max_pool2d(x[None], (1, None))),
    "embedding": lambda t, x: (t.nn.functional.embedding(x[0].argmax(), x, scale_grad_by_freq=True)),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("run", SEEN.values(), ids=SEEN)
def test_operators_seen(run):
    def seen(module):
        return [entry[0] for entry in dispatch_mode(module, run)]

    assert seen(jtorch) == seen(torch)


def pooled(t):
    """Pools that PyTorch's operators give with their positions, and what goes back by these, whose windows they do not know."""
    nn, line, image, room = (
        t.nn.functional,
        t.arange(24.0).reshape(2, 3, 4),
        t.arange(72.0).reshape(2, 1, 6, 6),
        t.arange(64.0).reshape(1, 4, 4, 4),
    )
    (plane, where), (block, there) = (
        nn.max_pool2d(image, 2, return_indices=True),
        nn.max_pool3d(room, 2, return_indices=True),
    )
    return [
        nn.adaptive_max_pool1d(line, 2), *nn.adaptive_max_pool1d(line, 2, return_indices=True), nn.adaptive_max_pool2d(image, (None, 3)),
        *nn.adaptive_max_pool2d(image, 3, True), nn.adaptive_max_pool3d(room, 2), nn.max_unpool2d(plane, where, 2),
        nn.max_unpool2d(plane, where, 2, output_size=(2, 1, 7, 7)), nn.max_unpool3d(block, there, 2, 2),
    ]  # fmt: skip


def results(t):
    """What operators give in a mode that lets them pass."""
    home = importlib.import_module(f"{t.__name__}.utils._python_dispatch")

    class Passing(home.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    x, i = t.arange(6.0).reshape(2, 3), t.tensor([0, 1])
    with Passing():
        embedding = t.nn.functional.embedding
        return [
            x.norm(), x.norm(dim=1), x.norm(3, 0, True), *x.chunk(2), *x.chunk(2, -1), embedding(i, x), embedding(i, x, 1),
            embedding(i, x, scale_grad_by_freq=True), *x.max(1), *x.median(1), *x.split([1, 2], 1), x.nonzero(), x.median(), x.nanmedian(),
            *pooled(t), t.tensordot(x, x, 2), t.tensordot(x, x, ([0], [0])),
            t.linalg.vector_norm(x, 1, 1), x.var(1, correction=0), *t.std_mean(x, 1), x.std(1, True), x.squeeze((0, 1)), t.pow(2, x),
        ]  # fmt: skip


def test_results_in_a_mode():
    for mine, its in zip(results(jtorch), results(torch), strict=True):
        np.testing.assert_allclose(mine.numpy(), its.numpy(), rtol=1e-6)


def nested(t):
    home = importlib.import_module(f"{t.__name__}.utils._python_dispatch")
    log = []

    class Named(home.TorchDispatchMode):
        def __init__(self, name):
            super().__init__()
            self.name = name

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            log.append((self.name, str(func), home._len_torch_dispatch_stack()))
            return func(*args, **(kwargs or {}))

    x, a, b = t.ones(2), Named("a"), Named("b")
    with a:
        with a:
            x + 1
        with b, a:
            x * 2
        x - 1
    return log


def test_a_mode_inside_of_itself():
    assert nested(jtorch) == nested(torch)


RETURNED = {"words": lambda t: "arf", "a number": lambda t: 3, "a tensor": lambda t: t.zeros(1), "nothing": lambda t: None,
            "no answer": lambda t: NotImplemented}  # fmt: skip


def returned(t, made):
    home = importlib.import_module(f"{t.__name__}.utils._python_dispatch")
    x, result = t.ones(2), made(t)

    class Returns(home.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return result

    try:
        with Returns():
            return str(x.sin())
    except (RuntimeError, TypeError) as error:
        return type(error), str(error).split("'")[0].partition("for")[0]


@pytest.mark.parametrize("made", RETURNED.values(), ids=RETURNED)
def test_what_a_mode_may_return(made):
    assert returned(jtorch, made) == returned(torch, made)


def methods_of_classes(t):
    found = []
    for home, base, name in (("utils._python_dispatch", "TorchDispatchMode", "__torch_dispatch__"),
                             ("overrides", "TorchFunctionMode", "__torch_function__")):  # fmt: skip
        base = getattr(importlib.import_module(f"{t.__name__}.{home}"), base)
        mode = type("Mode", (base,), {name: classmethod(lambda cls, func, types, args=(), kwargs=None: func(*args))})
        with pytest.raises(RuntimeError) as caught, mode():
            t.ones(2)
        found.append(str(caught.value))
    return found


def test_modes_with_methods_of_their_class():
    assert methods_of_classes(jtorch) == methods_of_classes(torch)


def test_which_operators_are_views():
    """Of PyTorch's names, as far as all forms of one agree."""
    said = {}
    for schema in torch._C._jit_get_all_schemas():
        space, _, name = schema.name.partition("::")
        if (
            space == "aten"
            and hasattr(jtorch.ops.aten, name)
            and hasattr(getattr(torch.ops.aten, name), schema.overload_name or "default")
        ):
            said.setdefault(name, set()).add(
                getattr(getattr(torch.ops.aten, name), schema.overload_name or "default").is_view
            )
    mine = {name: {getattr(jtorch.ops.aten, name).default.is_view} for name in said}
    assert len(said) > 800
    assert {n for n, views in said.items() if len(views) == 1 and views != mine[n]} == set()


def test_a_mode_sees_calls_on_dual_tensors():
    """The calls themselves: what computes the tangents is one operation of jtorch's each, which PyTorch's modes see in parts."""
    seen = []

    class Names(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(func.overloadpacket.__name__)
            return func(*args, **(kwargs or {}))

    x = jtorch.arange(9.0).view(3, 3)
    with Names():
        value, tangent = jtorch.func.jvp(lambda a: (a @ a).sin().relu_().sum(), (x,), (x,))
    assert seen == ["mm", "sin", "relu_", "sum"]
    assert tangent.item() == jtorch.func.jvp(lambda a: (a @ a).sin().relu_().sum(), (x,), (x,))[1].item()


def without_modes(t, context):
    """What two modes see of three calls, the second of which is in a context without modes."""
    home = importlib.import_module(f"{t.__name__}.utils._python_dispatch")
    seen = []

    class Noting(home.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    x = t.ones(2)
    with Noting(), Noting():
        x.sin()
        with context():
            x.cos()
            seen.append(home._get_current_dispatch_mode() is None)
        x.tan()
    x.exp()
    return seen


@pytest.mark.parametrize("name", ["_disable_current_modes", "_DisableTorchDispatch"])
def test_without_modes(name):
    ours, theirs = (
        (c if name.startswith("_Dis") else importlib.import_module(f"{t.__name__}.utils._python_dispatch"))
        for t, c in ((jtorch, internal_c), (torch, torch._C))
    )
    assert without_modes(jtorch, getattr(ours, name)) == without_modes(torch, getattr(theirs, name))


WRITES = [
    "y.zero_()", "y.fill_(3)", "y.fill_(w)", "y[0] = 7.0", "y[:, 1:] = w", "y[0] = x[1]", "y.copy_(x.sin())", "y.copy_(torch.tensor(1.5))",
    "y[1].copy_(x[0])", "y.fill_diagonal_(3)", "y[torch.tensor([True, False])] = 2.0", "y[[1, 0]] = x", "y.t_().mul_(w)", "y.data.zero_()",
    "y.masked_fill_(x > 0, w)", "y.index_fill_(0, torch.tensor([1]), 2.0)", "y.add_(x).zero_()[0] = w", "F.dropout(y, 1.0, True, True)",
    "torch.nn.init.zeros_(y.detach())", "y.real[0] = w", "y.square_().addmm_(x, x, beta=0.5)", "y.expand(3, 2, 2)[1].zero_()",
    "y.scatter_(0, torch.zeros(1, 2, dtype=torch.long), 1.5)", "y.masked_scatter_(x > 0, x * 2)", "y.renorm_(2, 0, 1.0)", "F.relu_(y)",
    "y.clamp_(min=w)", "y.lerp_(x, w)", "y.uniform_()", "y.normal_().mul_(x)", "y.cumsum_(0)", "y.put_(torch.tensor([0]), w[None])",
    "y.exp_().igamma_(x.detach().abs().requires_grad_(False))", "F.elu_(y)", "F.rrelu_(y, 0.2, 0.4)", "F.selu_(y)", "F.celu_(y)",
]  # fmt: skip


@pytest.mark.parametrize("mode", ["BaseTorchDispatchMode()", "torch.utils.flop_counter.FlopCounterMode(display=False)"])
@pytest.mark.parametrize("write", WRITES)
def test_writes_in_a_dispatch_mode(write, mode):
    """They reach the tensor, and its history is the same, whether the backward pass is seen or not."""
    both(f"""
import torch.utils.flop_counter
from torch.utils._python_dispatch import BaseTorchDispatchMode
F = torch.nn.functional
x, w = torch.tensor([[1.0, -2.0], [3.0, 0.5]], requires_grad=True), torch.tensor(2.0, requires_grad=True)
found = []
for inside in (True, False):
    x.grad = w.grad = None
    torch.manual_seed(0)
    y, plain = x * 3, torch.ones(2, 2)
    with {mode}:
        {write}
        z = y * x
        {write.replace("y", "plain") if write in ("y.zero_()", "y.fill_(3)", "y[0] = 7.0") else "pass"}
        if inside:
            z.sum().backward()
    if not inside:
        z.sum().backward()
    found.append((y.detach(), plain, z.detach(), x.grad, w.grad))
""")
