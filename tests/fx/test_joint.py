"""Compilers of a program's own for both passes of a function: the graphs they get are PyTorch's, and what they return is run."""

import importlib

import pytest

import jtorch
from jtorch.fx import joint
from tests.fx.test_proxy_tensor import operators
from tests.oracle import both


def tools(t):
    """The module with aot_function and its like."""
    return joint if t is jtorch else importlib.import_module("functorch.compile")


class Kept:
    """A compiler that keeps what it gets."""

    def __init__(self, boxed=False):
        self.graphs, self.boxed = [], boxed

    def __call__(self, module, inputs):
        shown = [tuple(x.shape) for x in inputs]
        self.graphs.append((module.code.split("(")[1].split(")")[0], operators(module), shown))
        if not self.boxed:
            return module

        def run(args):
            return module(*args)

        run._boxed_call = True
        return run


def inputs(t, *needs):
    return [(t.arange(8.0).view(2, 4) / (k + 7) - 0.3).requires_grad_(need) for k, need in enumerate(needs)]


FUNCTIONS = {
    "elementwise": (lambda t, a, b: (a + b).cos().cos(), (True, True)),
    "one without a gradient": (lambda t, a, b: (a * b).exp().sum(), (True, False)),
    "several results": (lambda t, a, b: (a * b, {"k": a.sum(), "n": (a > 0).sum()}), (True, True)),
    "no gradients": (lambda t, a, b: (a - b).relu(), (False, False)),
    "products": (lambda t, a, b: t.nn.functional.linear(a, b).log_softmax(-1)[:, 0], (True, True)),
}


@pytest.mark.parametrize("boxed", [False, True])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name, boxed):
    f, needs = FUNCTIONS[name]

    def program(t):
        forward, backward = Kept(boxed), Kept(boxed)
        compiled = tools(t).aot_function(lambda a, b: f(t, a, b), fw_compiler=forward, bw_compiler=backward)
        given = inputs(t, *needs)
        for _ in range(2):
            out = compiled(*given)
            leaves = [out] if isinstance(out, t.Tensor) else [out[0], out[1]["k"]]
            if any(needs):
                sum((x * x).sum() for x in leaves).backward()
        return out, [x.grad for x in given], forward.graphs, backward.graphs

    both(program, layout=False)


def test_a_graph_for_each_kind_of_arguments():
    forward = Kept()
    f = joint.aot_function(lambda x, k: x * k, fw_compiler=forward)
    for x, k in [(jtorch.ones(2), 3), (jtorch.ones(3), 3), (jtorch.ones(2), 4), (jtorch.ones(2), 3)]:
        assert (f(x, k) == k).all()
    assert len(forward.graphs) == 3


@pytest.mark.parametrize("mode", ["module", "backend", "backend by hand"])
def test_modules(mode):
    def program(t):
        t.manual_seed(0)
        model = t.nn.Sequential(t.nn.Linear(4, 3), t.nn.BatchNorm1d(3), t.nn.ReLU(), t.nn.Linear(3, 1))
        forward, of = Kept(), tools(t)
        if mode == "module":
            compiled = of.aot_module(model, forward)
        else:
            backend = (
                importlib.import_module("torch._dynamo.backends.common").aot_autograd
                if t is not jtorch
                else of.aot_autograd
            )(fw_compiler=forward)
            if mode == "backend by hand":
                backend = lambda gm, inputs: of.aot_module_simplified(gm, inputs, forward)
            compiled = t.compile(model, backend=backend)
        optimizer = t.optim.SGD(model.parameters(), lr=0.1)
        losses = []
        for k in range(4):
            optimizer.zero_grad()
            loss = (compiled(t.arange(20.0).view(5, 4).sin() * (k + 1)) ** 2).mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses, dict(model.state_dict()), len(forward.graphs)

    both(program, layout=False)


def test_partitions():
    """A partition of the program's own, which calls the default one."""
    seen = []

    def partition(graph, given, **options):
        seen.append((graph.code.split("(")[1].split(")")[0], options["num_fwd_outputs"]))
        return joint.default_partition(graph, given, **options)

    x = jtorch.ones(3, requires_grad=True)
    joint.aot_function(lambda x: x.exp(), lambda g, _: g, partition_fn=partition)(x).sum().backward()
    assert seen == [("self, primals_1, tangents_1", 1)]
    assert (x.grad == jtorch.ones(3).exp()).all()


def test_what_is_no_module():
    with pytest.raises(AssertionError, match="expected mod to be nn.Module"):
        joint.aot_module(max, max)
