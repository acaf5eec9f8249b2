"""torch.export: one program of a module, with its guards, sizes that may change, and a file."""

import dataclasses
import io
import json
import zipfile

import pytest

import jtorch
import jtorch.nn.functional as F
from jtorch import export, nn
from jtorch.compile.failures import UserError
from jtorch.utils import _pytree
from tests.oracle import both


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.l1, self.bn = nn.Linear(4, 8), nn.BatchNorm1d(8)
        self.register_buffer("c", jtorch.ones(8))
        self.k = jtorch.tensor([1.0, 2.0])

    def forward(self, x, y, *, flag=True):
        h = F.relu(self.bn(self.l1(x))) + self.c
        if flag:
            h = h * 2
        return {"o": h.view(h.shape[0], 2, -1).sum(1), "p": [y["a"] + self.k, x.shape[0] * 2 + 1, None]}


def inputs(n=3):
    return jtorch.randn(n, 4), {"a": jtorch.ones(2)}


def same(a, b):
    return jtorch.equal(a["o"], b["o"]) and jtorch.equal(a["p"][0], b["p"][0]) and a["p"][1:] == b["p"][1:]


def through_a_file(program):
    file = io.BytesIO()
    export.save(program, file)
    file.seek(0)
    return export.load(file)


@pytest.mark.parametrize("kept", [lambda p: p, through_a_file], ids=["made", "loaded"])
def test_program(kept):
    net = Net().eval()
    program = kept(export.export(net, inputs(), {"flag": True}))
    kinds = [(s.kind.name, s.arg.name, s.target) for s in program.graph_signature.input_specs]
    assert kinds[0] == ("PARAMETER", "p_l1_weight", "l1.weight") and kinds[4] == ("BUFFER", "b_c", "c")
    assert kinds[-4:] == [
        ("CONSTANT_TENSOR", "c_k", "k"), ("USER_INPUT", "x", None), ("USER_INPUT", "y_a", None), ("USER_INPUT", "flag", None)
    ]  # fmt: skip
    assert program.graph_signature.user_inputs == ("x", "y_a", True)
    module = program.module()
    x, y = inputs()
    assert same(module(x, y, flag=True), net(x, y))
    with pytest.raises(AssertionError, match=r"Guard failed: x.size\(\)\[0\] == 3"):
        module(*inputs(5), flag=True)
    with pytest.raises(AssertionError, match="Guard failed: flag == True"):
        module(x, y, flag=False)
    with pytest.raises(ValueError, match="exported input tree spec"):
        module(x, [jtorch.ones(2)], flag=True)
    with pytest.raises(RuntimeError, match="Unable to call ExportedProgram directly"):
        program(x, y)
    with pytest.raises(NotImplementedError, match=r"Calling train\(\)"):
        module.train()
    assert [n for n, _ in module.named_parameters()] == ["l1.weight", "l1.bias", "bn.weight", "bn.bias"]


@pytest.mark.parametrize("kept", [lambda p: p, through_a_file], ids=["made", "loaded"])
def test_sizes_that_change(kept):
    net, rows = Net().eval(), export.Dim("rows", min=2)
    shapes = {"x": {0: rows}, "y": {"a": None}}
    module = kept(export.export(net, inputs(), dynamic_shapes=shapes)).module()
    for n in (3, 7, 20):
        x, y = inputs(n)
        assert same(module(x, y), net(x, y))

    class Squared(nn.Module):
        def forward(self, x):
            return x.repeat(x.shape[0] ** 2)

    with pytest.raises(NotImplementedError, match="follows from no single size"):
        export.export(Squared(), (jtorch.ones(3),), dynamic_shapes=({0: rows},))


def test_the_forward_can_ask():
    class Asks(nn.Module):
        def forward(self, x):
            return x + 1 if jtorch.compiler.is_exporting() and jtorch.compiler.is_compiling() else x

    assert export.export(Asks(), (jtorch.zeros(2),)).module()(jtorch.zeros(2)).tolist() == [1, 1]
    assert not jtorch.compiler.is_exporting() and not jtorch.compiler.is_compiling()


def test_training_and_state():
    net = Net()
    program = export.export(net, inputs())
    assert net.bn.num_batches_tracked == 0  # the capture has been undone
    module = program.module()
    module(*inputs())["o"].sum().backward()
    assert net.bn.num_batches_tracked == 1 and net.l1.weight.grad is not None


class Given(nn.Module):
    """Returns what it is given, and what it holds."""

    def __init__(self):
        super().__init__()
        self.register_buffer("b", jtorch.ones(2))
        self.register_buffer("gone", jtorch.ones(2) * 2, persistent=False)
        self.c = jtorch.ones(2) * 3

    def forward(self, x, *more, d):
        return x, more[1], self.b, d["p"] - d["q"] + self.gone + self.c


@pytest.mark.parametrize("kept", [lambda p: p, through_a_file], ids=["made", "loaded"])
def test_results_that_were_given(kept):
    x, y, z = (jtorch.full((2,), float(n)) for n in range(3))
    net = Given()
    program = kept(export.export(net, (x, y, z), {"d": {"p": x + 1, "q": y + 1}}))
    assert program.graph_signature.user_inputs == ("x", "more_0", "more_1", "d_p", "d_q")
    module = program.module()
    got = module(x, y, z, d={"q": z, "p": y})  # the order of keys is nothing
    assert got[0] is x and got[1] is z
    assert all(map(jtorch.equal, got, net(x, y, z, d={"q": z, "p": y})))
    assert list(module.state_dict()) == ["b"] and {n for n, _ in module.named_buffers()} == {"b", "gone"}
    with pytest.raises(
        ValueError, match=r"kwarg keyword mismatch: Got the following keywords \['e'\] but expected \['d'\]"
    ):
        module(x, y, z, e={"q": z, "p": y})
    with pytest.raises(ValueError, match="exported input tree spec"):
        module(x, y, z, d={"q": z, "r": y})


def test_refusals():
    class Branch(nn.Module):
        def forward(self, x):
            return x if x.sum() > 0 else -x

    class Foreign(nn.Module):
        def forward(self, x):
            return Odd.apply(x)

    class Odd(jtorch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    with pytest.raises(RuntimeError, match=r"data-dependent.*__bool__"):
        export.export(Branch(), (jtorch.ones(2),))
    with pytest.raises(ValueError, match="Expected `mod` to be an instance"):
        export.export(lambda x: x, (jtorch.ones(2),))
    for args in (jtorch.ones(1, 2), [jtorch.ones(2)]):
        with pytest.raises(UserError, match="Expecting `args` to be a tuple"):
            export.export(nn.Linear(2, 2), args)
    with pytest.raises(TypeError, match="must be an instance of 'ExportedProgram', got 'int'"):
        export.save(3, io.BytesIO())
    program = export.export(Foreign(), (jtorch.ones(2),))
    assert program.module()(jtorch.ones(2)).tolist() == [2, 2]
    with pytest.raises(NotImplementedError, match="saving a program that calls"):
        export.save(program, io.BytesIO())
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("model/models/model.json", "{}")
    with pytest.raises(RuntimeError, match="was not written by jtorch"):
        export.load(file)


def rewritten(program, change):
    """The file of a program, its first call changed."""
    file, hostile = io.BytesIO(), io.BytesIO()
    export.save(program, file)
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(hostile, "w") as new:
        for name in old.namelist():
            text = old.read(name)
            if name.endswith("program.json"):
                body = json.loads(text)
                change(next(n for n in body["nodes"] if n["op"] == "call_function"))
                text = json.dumps(body)
            new.writestr(name, text)
    hostile.seek(0)
    return hostile


@pytest.mark.parametrize(
    "target", ["torch.load", "torch.hub.load", "torch._C.fork", "os.system", "operator.attrgetter", "torch.Tensor"]
)
def test_a_file_names_no_other_functions(target):
    program = export.export(nn.ReLU(), (jtorch.ones(2),))
    with pytest.raises(NotImplementedError, match="saving a program that calls"):
        export.load(rewritten(program, lambda node: node.update(target=target)))


@pytest.mark.parametrize("name", ["__class__", "_storage", "no_such_name"])
@pytest.mark.parametrize("how", ["getattr", "call_method"])
def test_a_file_asks_a_tensor_for_public_names(name, how):
    def change(node):
        if how == "getattr":
            node.update(target="getattr", args={"tuple": [node["args"]["tuple"][0], name]}, kwargs={"dict": []})
        else:
            node.update(op="call_method", target=name)

    program = export.export(nn.ReLU(), (jtorch.ones(2),))
    with pytest.raises(NotImplementedError, match="saving a program that calls"):
        export.load(rewritten(program, change))


def test_a_file_is_replaced_whole(tmp_path, monkeypatch):
    path = tmp_path / "program.pt2"
    export.save(export.export(nn.ReLU(), (jtorch.ones(2),)), path)
    before = path.read_bytes()
    monkeypatch.setattr(zipfile.ZipFile, "writestr", lambda *args: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        export.save(export.export(nn.Tanh(), (jtorch.ones(2),)), path)
    assert path.read_bytes() == before and [f.name for f in tmp_path.iterdir()] == ["program.pt2"]


def test_dims():
    """Names and bounds of sizes are looked at as PyTorch does."""
    a, b = export.dims("a", "b", min=2, max=5)
    assert (a.__name__, b.min, b.max) == ("a", 2, 5)
    with pytest.raises(AssertionError, match="Cannot create Dim with inconsistent min=5, max=2"):
        export.Dim("a", min=5, max=2)
    with pytest.raises(AssertionError, match="Dim name must be a valid identifier, got 1a"):
        export.Dim("1a")


def test_dataclasses_as_inputs():
    @dataclasses.dataclass
    class Pair:
        x: object
        n: int

    class Adds(nn.Module):
        def forward(self, pair):
            return Pair(pair.x + pair.n, pair.n)

    export.register_dataclass(Pair, serialized_type_name="tests.Pair")
    try:
        program = export.draft_export(Adds(), (Pair(jtorch.ones(2), 3),), dynamic_shapes=None)
        made = program.module()(Pair(jtorch.zeros(2), 3))
        assert type(made) is Pair and made.x.tolist() == [3, 3] and made.n == 3
    finally:
        _pytree._deregister_pytree_node(Pair)
    with pytest.raises(NotImplementedError, match="unflatten"):
        export.unflatten(program)


def test_decompositions():
    def program(t):
        class M(t.nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("b", t.ones(3))

            def forward(self, x, k):
                return (x.relu() * self.b).exp(), {"n": x.sum(1), "k": k}

        def smooth(x):
            return t.log1p(t.exp(x))

        x = t.arange(6.0).view(2, 3)
        made = t.export.export(M(), (x, 3)).run_decompositions({t.ops.aten.relu.default: smooth})
        nodes = [str(n.target) for n in made.graph.nodes if n.op == "call_function"]
        return nodes, [n.name for n in made.graph.find_nodes(op="placeholder")], made.module()(x, 3), made.dialect

    both(program)


def test_decompositions_are_of_one_size():
    dims = {"x": {0: export.Dim("n")}}

    class Twice(nn.Module):
        def forward(self, x):
            return x * 2

    class Data(nn.Module):
        def forward(self, x):
            return x * jtorch.tensor([1.0, 2.0])

    with pytest.raises(NotImplementedError, match="run_decompositions where sizes may change"):
        export.export(Twice(), (jtorch.ones(4, 2),), dynamic_shapes=dims).run_decompositions()
    assert export.default_decompositions() == {}
    made = export.export(Data(), (jtorch.ones(2),)).run_decompositions()
    assert made.module()(jtorch.ones(2)).tolist() == [1, 2]


def test_a_signature_tells_tensors_from_other_values():
    def program(t):
        class M(t.nn.Module):
            def forward(self, x, k):
                return x * k, 3, None

        signature = t.export.export(M(), (t.ones(1, 2), 2)).graph_signature
        args = [s.arg for s in (*signature.input_specs, *signature.output_specs)]
        found = [[(type(a).__name__, a.name, getattr(a, "value", None)) for a in args], str(signature)]
        return [*found, list(signature.user_inputs), list(signature.user_outputs)]

    both(program)
