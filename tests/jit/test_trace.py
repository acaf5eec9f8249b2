"""torch.jit.trace and the graphs that it makes, against PyTorch's: which operators, how they are connected, what runs again."""

import warnings

import pytest

import jtorch
from tests import oracle

torch = oracle.torch
pytestmark = pytest.mark.filterwarnings(
    "ignore:`torch.jit:DeprecationWarning", "ignore:Converting a tensor to a Python", "ignore:Iterating over a tensor"
)


def nets(t):
    """name -> (function or module, inputs, other inputs) of torch `t`."""
    nn, F = t.nn, t.nn.functional
    t.manual_seed(0)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.norm = nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4)
            self.pool, self.out = nn.AdaptiveAvgPool2d(1), nn.Linear(4, 2)

        def forward(self, x):
            return self.out(self.pool(F.max_pool2d(F.relu(self.norm(self.conv(x))), 2)).flatten(1))

    def writes(x):
        y = x.clone()
        y[0] = 0
        y[1, :2] = x[0, 1:3]
        y.add_(1)
        return y[..., None].expand(2, 4, 3), y[:, 1]

    def shapes(x):
        a, b = x.view(4, 2).t().chunk(2, 0)
        return (t.cat([a, b], -1), (x.reshape(-1).sum(), x.max(1)[0].mean(0), x.float().unsqueeze(0)))

    def masks(x):
        return (
            x.masked_fill(x > 0, 0.5),
            t.where(x > 0, x, -x),
            x.softmax(-1) @ x.transpose(0, 1),
            t.zeros(2, 4) + x * 2 - 1,
        )

    x, y = t.linspace(-1, 1, 8).reshape(2, 4), t.linspace(2, -1, 8).reshape(2, 4)
    image = t.linspace(-1, 1, 2 * 3 * 64).reshape(2, 3, 8, 8)
    return {
        "net": (Net().eval(), image, image * 0.5 + 0.1), "writes": (writes, x, y), "shapes": (shapes, x, y), "masks": (masks, x, y),
        "layers": (nn.Sequential(nn.Linear(4, 4), nn.GELU(), nn.LayerNorm(4), nn.Dropout(0.5), nn.Flatten()).eval(), x, y),
        "losses": (lambda a: F.nll_loss(a.log_softmax(1), a.argmax(1)) + F.cross_entropy(a, (a.sum(1) > 0).long()), x, y),
    }  # fmt: skip


NAMES = list(nets(jtorch))


def kinds(graph):
    return [n.kind() for n in graph.nodes() if n.kind().startswith("aten") or n.kind() == "prim::GetAttr"]


def leaves(tree):
    return [v for part in tree for v in leaves(part)] if isinstance(tree, (list, tuple)) else [tree]


@pytest.mark.parametrize("name", NAMES)
def test_operators_and_values(name):
    """The same operators in the same order, of the same types, and the graph computes what the function does."""
    graphs = []
    for t in (jtorch, torch):
        fn, x, other = nets(t)[name]
        traced = t.jit.trace(fn, x)
        graph = traced.inlined_graph
        nodes = [n for n in graph.nodes() if n.kind().startswith("aten")]
        graphs.append(
            (
                [n.kind() for n in nodes],
                [str(v.type()) for n in nodes for v in n.outputs()],
                [n.inputsSize() for n in nodes],
            )
        )
        for got, want in zip(leaves(traced(other)), leaves(fn(other)), strict=True):
            t.testing.assert_close(got, want)
    mine, its = graphs
    assert mine[0] == its[0]
    assert mine[1] == its[1]
    assert mine[2] == its[2]


def test_parameters_stay_the_modules():
    net = jtorch.nn.Sequential(jtorch.nn.Linear(2, 3), jtorch.nn.ReLU())
    x = jtorch.ones(1, 2)
    traced = jtorch.jit.trace(net, x)
    with jtorch.no_grad():
        net[0].weight.fill_(1.0)
        net[0].bias.zero_()
    assert traced(x).tolist() == [[2.0, 2.0, 2.0]]
    traced(x).sum().backward()
    assert net[0].weight.grad.tolist() == [[1.0, 1.0]] * 3
    assert list(traced.state_dict()) == list(net.state_dict()) and isinstance(traced, jtorch.jit.ScriptModule)
    assert "original_name=Linear" in repr(traced)
    assert [n.scopeName() for n in traced.graph.nodes() if n.kind().startswith("aten")] == ["__module.0", "__module.1"]


def test_scopes_that_hooks_push():
    """As counters of operations do it, around a module that is looked into."""
    layer = jtorch.nn.TransformerEncoderLayer(4, 2, 8, batch_first=True).eval()
    for name, module in layer.named_modules():
        module.register_forward_pre_hook(lambda m, args, name=name: jtorch._C._get_tracing_state().push_scope(name))
        module.register_forward_hook(lambda m, args, out: jtorch._C._get_tracing_state().pop_scope())
    graph, _ = jtorch.jit._get_trace_graph(layer, jtorch.ones(1, 3, 4))
    found = [n.scopeName() for n in graph.nodes() if n.kind() in ("aten::linear", "aten::layer_norm")]
    assert found == ["/self_attn", "/self_attn", "/norm1", "/linear1", "/linear2", "/norm2"]
    assert jtorch._C._get_tracing_state() is None


def test_a_trace_fixes_what_python_decides():
    def f(x):
        return x + 1 if x.sum() > 0 else x - 1

    with pytest.warns(jtorch.jit.TracerWarning, match="Python boolean"):
        traced = jtorch.jit.trace(f, jtorch.ones(2))
    assert traced(-jtorch.ones(2)).tolist() == [0.0, 0.0]
    with pytest.warns(jtorch.jit.TracerWarning, match="Output nr 1"):
        jtorch.jit.trace(lambda x: x * jtorch.rand(2), jtorch.ones(2))
    assert not jtorch.jit.is_tracing()
    assert jtorch.jit.trace(lambda x: x + jtorch.jit.is_tracing(), jtorch.zeros(1))(jtorch.zeros(1)).item() == 1
    weight = jtorch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="Cannot insert a Tensor that requires grad as a constant"):
        jtorch.jit.trace(lambda x: x * weight, jtorch.ones(2))
    with pytest.raises(RuntimeError, match="cannot be traced. Only Tensors"):
        jtorch.jit.trace(lambda x: 3, jtorch.ones(2))


@pytest.mark.parametrize("t", [jtorch, torch], ids=["jtorch", "torch"])
def test_trace_graph(t):
    """The older form, that counters of operations use: parameters are inputs, after the arguments."""
    t.manual_seed(0)
    net = t.nn.Sequential(t.nn.Linear(2, 3), t.nn.ReLU())
    graph, out = t.jit._get_trace_graph(net, t.ones(1, 2))
    assert [v.type().sizes() for v in graph.inputs()] == [[1, 2], [3, 2], [3]]
    linear, relu = (n for n in graph.nodes())
    assert (linear.kind(), relu.kind(), out.shape) == ("aten::linear", "aten::relu", (1, 3))
    value = linear.output()
    assert (
        value.isCompleteTensor()
        and value.requires_grad()
        and value.type().dim() == 2
        and value.type().scalarType() == "Float"
    )
    assert [(u.user.kind(), u.offset) for u in value.uses()] == [("aten::relu", 0)]
    assert value.node().kind() == "aten::linear" and next(graph.outputs()).debugName() == relu.output().debugName()


IR = """\
graph(%x : Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu),
      %y.1 : Tensor):
  %2 : int = prim::Constant[value=1]()
  %3 : float = prim::Constant[value=0.5]()
  %4 : str = prim::Constant[value="none"]()
  %5 : int[] = prim::ListConstruct(%2, %2)
  %6 : NoneType = prim::Constant()
  %7 : bool = prim::Constant[value=1]()
  %8 : Tensor = aten::add(%x, %y.1, %2)
  %9 : Tensor = prim::If(%7)
    block0():
      %10 : Tensor = aten::relu(%8)
      -> (%10)
    block1():
      -> (%8)
  %11 : (Tensor, int[]) = prim::TupleConstruct(%9, %5)
  return (%8, %9, %11)
"""


@pytest.mark.parametrize("t", [jtorch, torch], ids=["jtorch", "torch"])
def test_reading_and_changing_a_graph(t):
    graph = t.parse_ir(IR)
    assert str(graph) == IR
    nodes = list(graph.nodes())
    assert [n.kind() for n in nodes][-3:] == ["aten::add", "prim::If", "prim::TupleConstruct"]
    assert nodes[1].output().toIValue() == 0.5 and nodes[5].output().toIValue() is True and nodes[4].mustBeNone()
    assert (
        str(nodes[6]) == "%8 : Tensor = aten::add(%x, %y.1, %2)\n"
        and graph.findNode("aten::relu").kind() == "aten::relu"
    )
    assert str(nodes[8].output().type()) == "Tuple[Tensor, List[int]]" and nodes[3].output().type().kind() == "ListType"
    assert [len(v.uses()) for v in graph.inputs()] == [1, 1] and nodes[6].isBefore(nodes[7])
    made = graph.create("aten::neg", [nodes[6].output()], 1)
    made.insertAfter(nodes[6])
    nodes[7].output().replaceAllUsesWith(made.output())
    nodes[7].destroy()
    made.output().setDebugName("minus")
    made.s_("a", "b").i_("i", 3).fs_("fs", [1.0, 2.5])
    assert made.attributeNames() == ["a", "i", "fs"] and made.kindOf("i") == "i" and made.s("a") == "b"
    assert '%minus : Tensor = aten::neg[a="b", i=3, fs=[1., 2.5]](%8)' in str(graph) and "return (%8, %minus," in str(
        graph
    )
    graph.lint()
    with pytest.raises(RuntimeError, match="uses"):
        graph.eraseInput(0)


def test_what_reading_refuses():
    for text, words in [
        ("graph(%x : Tensor):\n  %y = aten::relu(%z)\n  return (%y)\n", "Cannot find a variable with name 'z'"),
        ("hello", r"expected \( but found 'eof'"),
        ("graph(%x : Nothing):\n  return (%x)", "expected a type but found 'Nothing'"),
    ]:
        with pytest.raises(RuntimeError, match=words):
            jtorch.parse_ir(text)
        if "Nothing" not in text:
            with pytest.raises(RuntimeError, match=words):
                torch.parse_ir(text)


def test_running_a_graph_from_text():
    text = """graph(%x : Tensor, %y : Tensor, %go : bool):
      %two : int = prim::Constant[value=2]()
      %z : Tensor = aten::add(%x, %y, %two)
      %u : Tensor = prim::If(%go)
        block0():
          %q : Tensor = aten::neg(%z)
          -> (%q)
        block1():
          -> (%z)
      return (%u)"""
    run = jtorch.jit._create_function_from_graph("f", jtorch.parse_ir(text))
    x = jtorch.ones(2)
    assert run(x, x, True).tolist() == [-3.0, -3.0] and run(x, x, False).tolist() == [3.0, 3.0]


@pytest.mark.parametrize("t", [jtorch, torch], ids=["jtorch", "torch"])
def test_making_a_graph(t):
    graph = t.Graph()
    x = graph.addInput("x")
    node = graph.insertNode(graph.create("aten::relu", [x], 1))
    three = graph.insertConstant(3.5)
    out = graph.insert("aten::mul", [node.output(), three])
    graph.registerOutput(out)
    want = "graph(%x : Tensor):\n  %1 : Tensor = aten::relu(%x)\n  %2 : float = prim::Constant[value=3.5]()\n"
    assert str(graph) == want + "  %3 : Tensor = aten::mul(%1, %2)\n  return (%3)\n" == str(graph.copy())
    shared = graph.alias_db()
    assert not shared.may_contain_alias(x, out) and not shared.has_writers(x)


@pytest.mark.parametrize("t", [jtorch, torch], ids=["jtorch", "torch"])
def test_aliases(t):
    graph = t.parse_ir(
        """graph(%x : Tensor, %y : Tensor, %i : int):
  %3 : int = prim::Constant[value=1]()
  %4 : Tensor = aten::add_(%x, %y, %3)
  %5 : int[] = prim::ListConstruct(%3)
  %6 : Tensor = aten::view(%4, %5)
  %7 : Tensor = aten::relu(%y)
  return (%6, %7)"""
    )
    x, y, i = graph.inputs()
    view, fresh = graph.outputs()
    shared = graph.alias_db()
    assert (
        shared.may_contain_alias(x, y) and shared.may_contain_alias(x, view) and not shared.may_contain_alias(x, fresh)
    )
    assert (
        shared.has_writers(x)
        and shared.has_writers(view)
        and not shared.has_writers(fresh)
        and not shared.has_writers(i)
    )


CLASSES = (
    "AliasDb ArgumentSpec Block CallStack Capsule ClassType Code CompleteArgumentSpec ConcreteModuleType DeepCopyMemoTable ErrorReport "
    "ExcludeDispatchKeyGuard ExecutionPlan Gradient GraphExecutorState IODescriptor InterfaceType LiteScriptModule Node OperatorInfo "
    "ScriptClass ScriptClassFunction ScriptMethod ScriptObject ScriptObjectProperty SerializationStorageContext StaticModule TracingState "
    "Use Value"
)


def test_constructors():
    """Most of these a program cannot make, in PyTorch either: the error is the same."""
    for name in CLASSES.split():
        args = ("x",) if name.endswith("Type") and name != "ConcreteModuleType" else ()
        with pytest.raises(TypeError) as its:
            getattr(torch, name)(*args)
        with pytest.raises(TypeError) as mine:
            getattr(jtorch, name)(*args)
        assert str(mine.value).strip() == str(its.value).strip()


COMMENTS = [
    "# type: (int, List[Tensor]) -> Tensor", "# type: () -> None", "# type: (int, *str) -> Tuple[int, Dict[str, Tensor]]",
    "# type: (Optional[int], a.b.C) -> (int,int)",
]  # fmt: skip


def test_comments_of_types():
    for text in COMMENTS:
        assert str(jtorch.parse_type_comment(text)) == str(torch.parse_type_comment(text)).rstrip("\n") + "\n", text
    for text in ("hello", "# type: int -> Tensor"):
        for t in (jtorch, torch):
            with pytest.raises(RuntimeError, match="expected"):
                t.parse_type_comment(text)
    two, one = (t.parse_type_comment("# type: (int, Tensor) -> Tensor") for t in (jtorch, torch))
    assert str(jtorch.merge_type_from_type_comment(two, two, False)) == str(
        torch.merge_type_from_type_comment(one, one, False)
    )
    fewer = jtorch.parse_type_comment("# type: (str) -> int")
    assert "ident str" in str(jtorch.merge_type_from_type_comment(two, fewer, True))
    with pytest.raises(RuntimeError, match=r"Number of type annotations \(1\) did not match"):
        jtorch.merge_type_from_type_comment(two, fewer, False)


def test_sources():
    for t, views in ((jtorch, jtorch.jit.opaque), (torch, torch._C._jit_tree_views)):
        source = views.SourceRangeFactory("def f(x):\n  return x\n", "file.py", 1, 0)
        where = source.make_range(1, 4, 5)
        assert where.highlight() == '  File "file.py", line 1\ndef f(x):\n    ~ <--- HERE\n  return x\n'
        assert t.ErrorReport(where).what() == "\n:\n" + where.highlight()
        assert t.ErrorReport.call_stack() == "" and t.CallStack("f", where)
        assert (where.start, where.end) == (4, 5)


def test_tracing_quietly():
    """Nothing warns where nothing is decided by Python."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        traced = jtorch.jit.trace(lambda x, y: x.matmul(y) * 0.1, (jtorch.ones(2, 2), jtorch.ones(2, 2)))
    assert [v.debugName() for v in traced.graph.inputs()] == ["x", "y"] and traced.name == "_lambda"
    with pytest.raises(RuntimeError, match="nested otherwise"):
        traced([jtorch.ones(2, 2)])
