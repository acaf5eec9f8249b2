"""torch.fx against PyTorch's: the same programs give the same graphs and the same code, and run to the same values."""

import copy
import importlib
import io
import operator
import pickle

import pytest

import jtorch
from tests import oracle
from tests.fx import programs

torch = oracle.torch
BOTH = pytest.mark.parametrize("t", [jtorch, torch], ids=["jtorch", "torch"])


def spelled(text):
    """Code without what differs: PyTorch calls some functions by internal names."""
    return text.replace("torch._C._nn.", "torch.nn.functional.").replace("jtorch", "torch")


def values(tree):
    if isinstance(tree, dict):
        tree = tuple(tree.values())
    if isinstance(tree, (tuple, list)):
        return [v for part in tree for v in values(part)]
    return [tree.tolist() if hasattr(tree, "tolist") else str(tree)]


def test_what_stays_though_nobody_reads_it():
    got = []
    for lib in (jtorch, torch):
        graph = lib.fx.Graph()
        x = graph.placeholder("x")
        for fn, args in (
            (lib._assert, (x, "why")), (lib.rand, (3,)), (lib.sin, (x,)), (lib.ops.aten.add_.Tensor, (x, 1)), (operator.setitem, (x, 0, 1)),
            (lib.ops.aten.add.Tensor, (x, 1)), (lib.bernoulli, (x,)), (lib.nn.functional.relu, (x,)),
        ):  # fmt: skip
            graph.call_function(fn, args)
        graph.call_method("add_", (x, 1))
        graph.output(x)
        graph.eliminate_dead_code()
        got.append([n.name for n in graph.nodes])
    assert got[0] == got[1]


@pytest.mark.parametrize("name", list(programs.make(jtorch)))
def test_graphs_and_code(name):
    texts, results = [], []
    for t in (jtorch, torch):
        root, inputs = programs.make(t)[name]
        made = t.fx.symbolic_trace(root)
        made.graph.lint()
        texts.append(
            (spelled(made.code), spelled(str(made.graph)), [(n.op, n.name, len(n.users)) for n in made.graph.nodes])
        )
        if inputs:
            got, want = values(made(*inputs)), values(root(*inputs))
            assert str(got) == str(want)
            assert str(values(t.fx.Interpreter(made).run(*inputs))) == str(want)
            assert str(values(t.fx.Transformer(made).transform()(*inputs))) == str(want)
            assert str(values(copy.deepcopy(made)(*inputs))) == str(want)
            results.append(want)
    mine, its = texts
    assert mine[0] == its[0]
    assert mine[1] == its[1]
    assert mine[2] == its[2]


REFUSED = {
    "if": lambda x: x if x.sum() > 0 else -x,
    "len": lambda x: len(x),
    "for": lambda x: [row for row in x],
    "range": lambda x: list(range(x)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_traced(name):
    said = []
    for t in (jtorch, torch):
        with pytest.raises((ValueError, RuntimeError, TypeError)) as error:
            t.fx.symbolic_trace(REFUSED[name])
        said.append((error.type.__name__, str(error.value)))
    assert said[0] == said[1]


@BOTH
def test_concrete_arguments(t):
    def f(x, b, c=None):
        return x + 1 if b and c is None else x

    made = t.fx.symbolic_trace(f, concrete_args={"b": True, "c": None})
    assert "_assert = torch._assert(eq, 'b has been specialized to have value True but got another value')" in made.code
    assert "def forward(self, x, b_1, c_1 = None)" in made.code
    assert made(t.ones(1), True, None).item() == 2
    with pytest.raises(AssertionError, match="specialized"):
        made(t.ones(1), False, None)


@BOTH
def test_changing_a_graph(t):
    graph = t.fx.Graph()
    x = graph.placeholder("x")
    y = graph.call_function(t.add, (x, 1))
    z = graph.call_method("relu", (y,))
    graph.output(z)
    made = t.fx.GraphModule({}, graph, "Made")
    assert (
        made.code
        == "\n\n\ndef forward(self, x):\n    add = torch.add(x, 1);  x = None\n    relu = add.relu();  add = None\n    return relu\n    "
    )
    assert repr(made).split("(")[0] == "Made" and made(t.tensor([-3.0, 1.0])).tolist() == [0.0, 2.0]
    with pytest.raises(RuntimeError, match="Tried to erase Node add but it still had 1 users"):
        graph.erase_node(y)
    assert (
        list(y.users) == [z] and z.all_input_nodes == [y] and y.prev is x and y < z and graph.output_node().args == (z,)
    )
    with graph.inserting_after(y):
        times = graph.call_function(operator.mul, (y, 2))
    y.replace_all_uses_with(times, delete_user_cb=lambda user: user is not times)
    z.update_arg(0, times)
    times.kwargs = {}
    graph.call_function(t.neg, (y,))
    graph.eliminate_dead_code()
    graph.lint()
    made.recompile()
    assert [n.name for n in graph.nodes] == ["x", "add", "mul", "relu", "output"] and made(t.tensor([1.0])).item() == 4
    assert graph.find_nodes(op="call_method", target="relu") == [z] and len(graph.nodes) == 5
    assert [n.name for n in reversed(graph.nodes)][0] == "output"
    graph.inserting_before(z)
    moved = graph.create_node("call_function", t.abs, (x,), name="relu")
    assert moved.name == "relu_1" and moved.next is z
    with pytest.raises((RuntimeError, AssertionError)):
        z.args = (z.graph.output_node(),)
        graph.lint()


@BOTH
def test_arguments_are_immutable(t):
    graph = t.fx.Graph()
    x = graph.placeholder("x")
    node = graph.call_function(t.cat, ([x, x],), {"dim": 0})
    with pytest.raises((NotImplementedError, TypeError), match="mutat"):
        node.args[0].append(x)
    with pytest.raises((NotImplementedError, TypeError), match="mutat"):
        node.kwargs["dim"] = 1
    node.kwargs = {**node.kwargs, "dim": 1}
    assert (
        node.kwargs == {"dim": 1}
        and node.format_node()
        == "%cat : [num_users=0] = call_function[target=torch.cat](args = ([%x, %x],), kwargs = {dim: 1})"
    )


@BOTH
def test_tracers_of_ones_own(t):
    class Own(t.fx.Tracer):
        def is_leaf_module(self, m, path):
            return type(m).__name__ == "Inner"

        def to_bool(self, obj):
            return True

        def iter(self, obj):
            return iter([obj[0], obj[1]])

    root = programs.make(t)["nested"][0]
    graph = Own().trace(root)
    assert [n.target for n in graph.nodes if n.op == "call_module"] == ["one", "two"]

    def f(x):
        if x.sum() > 0:
            x = x + 1
        return sum(part for part in x)

    assert t.fx.GraphModule(t.nn.Module(), Own().trace(f))(t.ones(2)).item() == 4
    assert not t.fx._symbolic_trace.is_fx_tracing()


@BOTH
def test_a_tracer_that_makes_its_own_nodes(t):
    """As torchvision's: its method takes what was there when it was written."""

    class Own(t.fx.Tracer):
        def create_proxy(self, kind, target, args, kwargs, name=None, type_expr=None, *_):
            made.append(kind)
            return super().create_proxy(kind, target, args, kwargs, name, type_expr)

    class Scale(t.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = t.nn.Parameter(t.ones(3))

        def forward(self, x):
            return x * self.weight

    made = []
    graph = Own().trace(Scale())
    assert [*made, "output"] == [n.op for n in graph.nodes] == ["placeholder", "get_attr", "call_function", "output"]


@BOTH
def test_interpreters_of_ones_own(t):
    class Double(t.fx.Interpreter):
        def call_function(self, target, args, kwargs):
            return super().call_function(target, args, kwargs) * (2 if target is t.sin else 1)

    class Swap(t.fx.Transformer):
        def call_function(self, target, args, kwargs):
            return super().call_function(t.cos if target is t.sin else target, args, kwargs)

        def call_method(self, target, args, kwargs):
            return super().call_method("neg" if target == "relu" else target, args, kwargs)

    made = t.fx.symbolic_trace(lambda x: t.sin(x).relu() + 1)
    x = t.zeros(1)
    assert Double(made).run(x + 0.5).item() == pytest.approx(1 + 2 * t.sin(x + 0.5).item())
    assert Swap(made).transform()(x).item() == 0
    with pytest.raises(RuntimeError, match="Expected positional argument for parameter x"):
        t.fx.Interpreter(made).run()


def add_mul(x, y):
    return x.relu() * y


@BOTH
def test_replacing_patterns(t):
    def f(x, w):
        a = x.relu() * w
        return (a + 1).relu() * w - a

    made = t.fx.symbolic_trace(f)
    matches = t.fx.replace_pattern(made, add_mul, lambda x, y: x.abs() - y)
    assert len(matches) == 2 and [n.target for n in made.graph.nodes if n.op == "call_method"] == ["abs", "abs"]
    assert [(m.anchor.name, m.nodes_map[m.anchor].name) for m in matches] == [("mul", "mul"), ("mul", "mul_1")]
    made.graph.lint()
    x, w = t.tensor([-1.0, 2.0]), t.tensor([2.0, 3.0])
    a = x.abs() - w
    assert made(x, w).tolist() == ((a + 1).abs() - w - a).tolist()
    assert not t.fx.replace_pattern(made, lambda x: x.sigmoid(), lambda x: x)
    made = t.fx.symbolic_trace(lambda x: (x.relu() + 1) * (x * 2).exp())
    t.fx.replace_pattern(made, lambda x: x.relu() + 1, lambda x: x.sigmoid())
    assert [n.name for n in made.graph.nodes] == ["x", "mul", "exp", "sigmoid", "mul_1", "output"]


@BOTH
def test_modules_of_graphs(t):
    root = programs.make(t)["nested"][0]
    made = t.fx.symbolic_trace(root)
    assert list(made.state_dict()) == list(root.state_dict()) and not isinstance(made, type(root))
    assert str(type(made)).endswith("fx.graph_module.GraphModule.__new__.<locals>.GraphModuleImpl'>")
    assert made.add_submodule("one.more", t.nn.ReLU()) and made.one.more
    made.delete_all_unused_submodules()
    assert (
        not hasattr(made.one, "more") and made.delete_submodule("two.layers.0") and not made.delete_submodule("nowhere")
    )
    seq = t.fx.symbolic_trace(t.nn.Sequential(t.nn.Linear(2, 2)))
    again = pickle.loads(pickle.dumps(seq))
    x = t.ones(1, 2)
    assert again(x).tolist() == seq(x).tolist() and type(again) is not type(seq)
    seq.train(False)
    assert not copy.deepcopy(seq).training
    with pytest.raises(RuntimeError, match="was not provided in ``root``"):
        t.fx.GraphModule({}, seq.graph)
    assert "class Sequential(torch.nn.Module):" in seq.print_readable(print_output=False)
    seq.graph.output_node().args = (None,)
    seq.recompile()
    assert seq(x) is None


@BOTH
def test_shapes(t):
    ShapeProp = importlib.import_module(f"{t.__name__}.fx.passes.shape_prop").ShapeProp
    made = t.fx.symbolic_trace(lambda x: x.sum(0).unsqueeze(0))
    ShapeProp(made).propagate(t.ones(2, 3))
    assert [tuple(n.meta["tensor_meta"].shape) for n in made.graph.nodes] == [(2, 3), (3,), (1, 3), (1, 3)]
    made = t.fx.symbolic_trace(lambda x: t.topk(x, 2))
    ShapeProp(made).propagate(t.ones(2, 3))
    _, pair, _ = made.graph.nodes
    assert [tuple(m.shape) for m in pair.meta["tensor_meta"]] == [(2, 2), (2, 2)]
    assert type(pair.meta["tensor_meta"]) is tuple and not hasattr(t.ones(3).topk(1), "_fields")


def test_gradients_and_files(tmp_path):
    """A traced module trains like any other, and its folder is a package."""
    root = jtorch.nn.Sequential(jtorch.nn.Linear(2, 2), jtorch.nn.ReLU())
    made = jtorch.fx.symbolic_trace(root)
    made(jtorch.ones(1, 2)).sum().backward()
    assert root[0].weight.grad is not None and getattr(made, "0").weight is root[0].weight
    made.to_folder(tmp_path / "Saved")
    text = (tmp_path / "Saved" / "module.py").read_text()
    assert "class FxModule(torch.nn.Module):" in text and "def forward(self, input):" in text


def test_operators_on_what_is_no_proxy():
    w = jtorch.ones(2)
    module = jtorch.fx.symbolic_trace(lambda x: x + jtorch.ops.aten.mul.Tensor(w, 3))
    assert (module(jtorch.ones(2)) == 4).all()


def test_wrapped_functions():
    for t in (jtorch, torch):
        space = {"__name__": "own", "torch": t, "fx": t.fx}
        exec("@fx.wrap\ndef h(x):\n    return x * 2\nfx.wrap('len')\ndef f(x):\n    return h(x) + len(x)\n", space)
        made = t.fx.symbolic_trace(space["f"])
        assert [n.target.__name__ for n in made.graph.nodes if n.op == "call_function"] == ["h", "len", "add"]
        assert 'torch.fx._symbolic_trace.wrap("own_h")' in made.code and made(t.ones(3)).tolist() == [5.0] * 3
        assert space["h"](t.ones(1)).item() == 2
        with pytest.raises(NotImplementedError, match="top level of a module"):
            t.fx.wrap("max")


def test_proxies_made_by_hand():
    for t in (jtorch, torch):
        graph = t.fx.Graph()
        x = t.fx.Proxy(graph.placeholder("x"))
        y = t.nn.functional.relu(x, inplace=True) + x.shape[0]
        graph.output(y.node)
        assert [n.op for n in graph.nodes] == [
            "placeholder",
            "call_function",
            "call_function",
            "call_function",
            "call_function",
            "output",
        ]
        assert t.fx.GraphModule({}, graph)(t.tensor([-1.0, 1.0])).tolist() == [2.0, 3.0]


@pytest.mark.parametrize(
    "writer, reader", [(jtorch, torch), (torch, jtorch)], ids=["read by torch", "written by torch"]
)
def test_files_both_ways(writer, reader):
    kept = io.BytesIO()
    made = writer.fx.symbolic_trace(programs.make(writer)["sequential"][0])
    writer.save(made, kept)
    kept.seek(0)
    again = reader.load(kept, weights_only=False)
    x = [[1.0, -1.0, 0.5]]
    assert again(reader.tensor(x))[0].tolist() == pytest.approx(made(writer.tensor(x))[0].tolist())
    assert isinstance(again, reader.fx.GraphModule) and again.code == made.code


def _chosen(x, y, z):
    if y:
        return x
    return {"sum": z["a"] + z["b"][0], "x": [x]}


def _total(d):
    return sum(d.values())


@pytest.mark.filterwarnings("ignore:`isinstance.treespec, LeafSpec:FutureWarning")  # PyTorch copying its own
def test_nested_concrete_arguments():
    """Containers of PH are taken apart by the code, and results put together again."""
    found = []
    for t in (torch, jtorch):
        PH = t.fx._symbolic_trace.PH
        made = t.fx.symbolic_trace(_chosen, concrete_args={"y": False, "z": {"a": PH, "b": [PH]}})
        total = t.fx.symbolic_trace(_total, concrete_args={"d": {"p": PH, "q": PH}})
        with pytest.raises(AssertionError, match="y has been specialized to have value False"):
            made(1, True, {"a": 2, "b": [3]})
        ran = t.fx.Interpreter(made).run(1, False, {"a": 2, "b": [3]})
        again = copy.deepcopy(made)(1, False, {"a": 2, "b": [3, 4]})
        found.append((made.code, total.code, total({"p": 2, "q": 5}), ran, again, str(made.graph)))
    assert found[0] == found[1]


@BOTH
def test_what_fx_calls_wrong(t):
    graph = t.fx.Graph()
    x = graph.placeholder("x")
    node = graph.call_function(operator.add, ([x, (x, {"q": x})], 1))
    with pytest.raises(TypeError, match="does not support mutation"):
        node.args[0].append(3)
    with pytest.raises(TypeError, match="does not support mutation"):
        node.args[0][1][1]["z"] = 3
    with pytest.raises(AssertionError, match="op 'bad' is not in _legal_ops"):
        graph.create_node("bad", "x")
