"""What nodes know: the modules they come from, the operators they call and their names; what interpreters take and note."""

import importlib

import pytest

import jtorch
from tests.oracle import torch


def net(t):
    class Sub(t.nn.Module):
        def __init__(self):
            super().__init__()
            self.lin, self.w = t.nn.Linear(2, 2), t.nn.Parameter(t.ones(2))

        def forward(self, x):
            return self.lin(self.lin(x)).relu() + self.w

    class Net(t.nn.Module):
        def __init__(self):
            super().__init__()
            self.sub = Sub()

        def forward(self, x):
            return self.sub(self.sub(x) + 1)

    return t.fx.symbolic_trace(Net())


def stacks(gm):
    return [
        (n.name, [(k, path, cls.__name__) for k, (path, cls) in n.meta.get("nn_module_stack", {}).items()])
        for n in gm.graph.nodes
    ]


def test_modules_of_nodes():
    assert stacks(net(jtorch)) == stacks(net(torch))
    assert stacks(jtorch.fx.Transformer(net(jtorch)).transform()) == stacks(
        torch.fx.Transformer(net(torch)).transform()
    )


def operators(t):
    aten = t.ops.aten

    def called(x):
        return aten.add.Tensor(aten.relu.default(x), x), aten.sum.dim_IntList(aten.relu(x), [0])

    made = t.fx.symbolic_trace(called)
    return [(n.op, n.name, str(n.target)) for n in made.graph.nodes], made.code, str(made(t.ones(2, 2)))


def test_operators_called_by_their_own_names():
    assert operators(jtorch) == operators(torch)


def asked(t):
    """What subclasses and modes are asked for by operators of torch.ops."""
    log, aten = [], t.ops.aten

    class Sub(t.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            log.append((str(func), len(args)))
            return super().__torch_function__(func, types, args, kwargs)

    class Mode(importlib.import_module(f"{t.__name__}.overrides").TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            log.append(("mode", str(func)))
            return func(*args, **(kwargs or {}))

    x = t.ones(2, 2).as_subclass(Sub)
    for y in (
        aten.relu.default(x),
        aten.add(x, x),
        aten.add_.Tensor(x, 1),
        aten.mm.default(t.ones(2, 2), x),
        aten.cat.default([x], 0),
    ):
        log.append((type(y).__name__, y.tolist()))
    plain = t.ones(2)
    with Mode():
        aten.relu.default(plain)
        aten.add(plain, 1)
    return [entry for entry in log if "tolist" not in str(entry[0])]


def test_operators_ask():
    mine, its = asked(jtorch), asked(torch)
    assert mine == its and len(mine) > 10


@pytest.mark.parametrize("given", [[1.0, 2.0], [1.0], [1.0, 2.0, 3.0], []], ids=len)
def test_boxed_arguments(given):
    def found(t):
        args = [t.tensor(x) for x in given]
        try:
            result = str(t.fx.Interpreter(t.fx.symbolic_trace(lambda a, b: a + b)).boxed_run(args))
        except RuntimeError as error:
            result = str(error)
        return result, len(args)

    assert found(jtorch) == found(torch)


def test_memory_formats_of_shape_prop():
    def found(t):
        x = t.ones(2, 3, 4, 5)
        made = t.fx.symbolic_trace(lambda a, b: (a.t(), b + 1))
        kinds = []
        for b in (x, x.contiguous(memory_format=t.channels_last), x.transpose(1, 2)):
            importlib.import_module(f"{t.__name__}.fx.passes.shape_prop").ShapeProp(made).propagate(t.ones(2, 3), b)
            kinds += [str(n.meta["tensor_meta"].memory_format) for n in made.graph.nodes if n.op != "output"]
        return kinds

    assert found(jtorch) == found(torch)


NAMES = ["add.Tensor", "ABCDef", "conv2D", "fooBar", "Foo_Bar", "aB1C", "X1Y", "sum.dim_IntList", "ReLU6", "LSTMCell"]


@pytest.mark.parametrize("name", NAMES)
def test_names_of_nodes(name):
    def found(t):
        graph = t.fx.Graph()
        return graph.create_node("call_method", name, (graph.placeholder("x"),)).name

    assert found(jtorch) == found(torch)
