"""torch.jit.script: the same results as the Python, graphs of the same operators as PyTorch's, and files that need no classes."""

import copy
import io
from typing import Dict, List, Optional, Tuple  # noqa: UP035  as programs for TorchScript say it

import pytest

import jtorch
from jtorch.jit import targets
from tests import oracle

torch = oracle.torch
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")


def functions(t):
    """name -> (function, arguments) of torch `t`."""
    Tensor = t.Tensor

    def straight(x, y):
        z = x + y
        return z.relu() @ y.t()

    def branches(x, flag: bool, h: Optional[Tensor] = None):  # noqa: UP045
        if h is None:
            h = t.zeros_like(x)
        if flag and bool(x.sum() > 0):
            return x * h
        y = x - h if x.dim() == 2 else x
        return y

    def turns(xs: List[Tensor], n: int):  # noqa: UP006
        out = t.zeros_like(xs[0])
        for x in xs:
            out += x.clamp(min=0.0)
        i = 0
        while i < n:
            out = out * 2
            i += 1
        for k, x in enumerate(xs):
            out = out + k * x
        return out

    def containers(x, sizes: List[int]) -> Tuple[Tensor, Dict[str, int]]:  # noqa: UP006
        found = [float(s) for s in range(3)]
        a, b = x.chunk(2)
        total = 0
        for s in sizes:
            total += s % 3
        return t.cat([a, b[:, 1:].sum(1, keepdim=True)], 1) * len(found), {"total": total, "last": sizes[-1]}

    x, y = t.linspace(-1, 1, 6).reshape(2, 3), t.linspace(2, -1, 6).reshape(2, 3)
    return {
        "straight": (straight, (x, y)), "branches": (branches, (x + 1, True, y)), "defaults": (branches, (x, False)),
        "turns": (turns, ([x, y], 2)), "containers": (containers, (x.t().repeat(2, 2)[:4], [4, 5])),
    }  # fmt: skip


NAMES = list(functions(jtorch))


def same(got, want):
    oracle.compare(want, oracle.to_torch(got), least=(1e-5, 1e-5))


def kinds(graph):
    return [k for k in (n.kind() for n in graph.nodes()) if k != "prim::Constant"]


def reread(made, **more):
    file = io.BytesIO()
    jtorch.jit.save(made, file, **more)
    file.seek(0)
    return jtorch.jit.load(file)


@pytest.mark.parametrize("name", NAMES)
def test_functions(name):
    """The result is PyTorch's, of the function, and of its graph read back from a file."""
    fn, args = functions(jtorch)[name]
    its, given = functions(torch)[name]
    want = torch.jit.script(its)(*given)
    made = jtorch.jit.script(fn)
    for run in (made, reread(made)):
        _, args = functions(jtorch)[name]  # anew: one of them writes
        same(run(*args), want)
    assert isinstance(made, jtorch.jit.ScriptFunction) and made.name == fn.__name__ and copy.deepcopy(made) is made


def test_graphs_have_torchs_operators():
    def mul(x, y):
        a = x + y
        b = a * y
        return (b - 1).tanh()

    def either(x, y):
        if bool(x.sum() > 0):
            return x + y
        else:
            return x * y

    for fn in (mul, either):
        mine, its = jtorch.jit.script(fn), torch.jit.script(fn)
        assert kinds(mine.graph) == kinds(its.graph)
        assert [v.debugName() for v in mine.graph.inputs()] == [v.debugName() for v in its.graph.inputs()]
    x = jtorch.ones(2)
    assert mine.graph_for(x, x) is mine.graph
    assert [kinds(b) for b in mine.graph.findNode("prim::If").blocks()] == [["aten::add"], ["aten::mul"]]


def module(t):
    class Cell(t.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear, self.k, self.norm = t.nn.Linear(4, 4), 2, t.nn.BatchNorm1d(4)
            self.more = t.nn.ModuleList([t.nn.GELU(), t.nn.Linear(4, 4)])
            self.register_buffer("scale", t.full((4,), 2.0))

        def forward(self, x, h: Optional[t.Tensor] = None):  # noqa: UP045
            if h is None:
                h = t.zeros(x.size(0), 4)
            for _ in range(self.k):
                h = t.tanh(self.linear(x) + h) * self.scale
            for part in self.more:
                h = part(h)
            if self.training:
                h = self.norm(h)
            return self.twice(h), h

        @t.jit.export
        def twice(self, x):
            return self.linear(self.linear(x))

    t.manual_seed(0)
    return Cell()


def test_modules():
    plain, its = module(jtorch), module(torch)
    mine, its = jtorch.jit.script(plain), torch.jit.script(its)
    x, y = jtorch.linspace(-1, 1, 12).reshape(3, 4), torch.linspace(-1, 1, 12).reshape(3, 4)
    assert repr(mine) == repr(its) and isinstance(mine, jtorch.jit.RecursiveScriptModule)
    assert type(mine).__name__ == type(its).__name__ and mine.original_name == its.original_name
    same(mine(x), its(y))
    assert mine.linear.weight is plain.linear.weight and list(mine.state_dict()) == list(its.state_dict())
    assert mine.k == 2 and len(mine.more) == 2 and mine.more[1].weight is plain.more[1].weight
    mine.eval(), its.eval()
    assert plain.training and not mine.norm.training
    same(mine(x), its(y))
    calls = [n.s("name") for n in mine.graph.findAllNodes("prim::CallMethod")]
    assert calls == [n.s("name") for n in its.graph.findAllNodes("prim::CallMethod")]
    other = copy.deepcopy(mine)
    with jtorch.no_grad():
        other.linear.weight.zero_()
    assert mine.linear.weight.abs().sum() > 0 and jtorch.equal(plain.linear.weight, mine.linear.weight)

    read, extra = io.BytesIO(), {"note": ""}
    mine.save(read, _extra_files={"note": "kept"})
    read.seek(0)
    read = jtorch.jit.load(read, _extra_files=extra)
    assert extra == {"note": "kept"} and not read.training and list(read.state_dict()) == list(mine.state_dict())
    same(read(x, h=x), its(y, h=y))
    same(read.twice(x), its.twice(y))
    read(x)[0].sum().backward()
    assert read.linear.weight.grad is not None


def test_layers_of_torch_in_files():
    class Net(jtorch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.rnn = jtorch.nn.Embedding(5, 4), jtorch.nn.GRU(4, 4, batch_first=True)
            self.block = jtorch.nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)

        def forward(self, ids):
            out, last = self.rnn(self.embed(ids))
            return self.block(out), last

    made = jtorch.jit.script(Net().eval())
    read, ids = reread(made), jtorch.tensor([[1, 2, 3]])
    for a, b in zip(made(ids), read(ids)):
        assert jtorch.allclose(a, b)


def test_traces_in_files():
    net = jtorch.nn.Sequential(jtorch.nn.Conv2d(1, 2, 3), jtorch.nn.BatchNorm2d(2), jtorch.nn.ReLU()).eval()
    x = jtorch.linspace(-1, 1, 50).reshape(2, 1, 5, 5)
    made = jtorch.jit.trace(net, x[:1])
    read = reread(made)
    assert (
        jtorch.equal(read(x), net(x)) and repr(read) == repr(made) and list(read.state_dict()) == list(net.state_dict())
    )
    fn = jtorch.jit.trace(lambda a, b: (a[:, :, 1:] * b, {"sum": a.sum()}), (x, x[..., 1:, :]))
    same(reread(fn)(x, x[..., 1:, :])[1]["sum"], torch.tensor(0.0))


class Checked(jtorch.nn.Module):
    """Assertions in both spellings."""

    def forward(self, x, n: int):
        jtorch._assert(x.shape[0] == n, "other length")
        assert x.dim() == 1, "not flat"
        jtorch._assert(x.sum() > 0, "not positive")
        return x * 2


def test_assertions_in_files():
    file = io.BytesIO()
    jtorch.jit.save(jtorch.jit.script(Checked()), file)
    file.seek(0)
    read = jtorch.jit.load(file)
    assert read(jtorch.ones(2), 2).tolist() == [2, 2]
    for x, words in (
        (jtorch.ones(3), "AssertionError: other length$"),
        (jtorch.ones(2, 1), "AssertionError: not flat$"),
        (-jtorch.ones(2), "AssertionError: not positive$"),
    ):
        with pytest.raises(jtorch.jit.Error, match=words):
            read(x, 2)


@pytest.mark.parametrize("name", ["nowhere.pt", "."])
def test_no_file(name):
    """Programs tell a missing file from a foreign one by the class."""
    oracle.both(f"import torch\ntorch.jit.load({name!r})")


def test_what_no_graph_has_says_so(tmp_path):
    def skips(x):
        for i in range(3):
            if i == 1:
                continue
            x = x + i
        return x

    made = jtorch.jit.script(skips)
    assert made(jtorch.zeros(1)) == 2
    with pytest.raises(NotImplementedError, match=r"a loop with return, break, continue.*skips \(line \d+\)"):
        made.graph  # noqa: B018
    with pytest.raises(NotImplementedError, match="a call of open"):
        jtorch.jit.script(_reads).graph  # noqa: B018
    for wrong, words in ((tmp_path, "is a directory"), (tmp_path / "none.pt", "does not exist")):
        with pytest.raises(ValueError, match=f"The provided filename .* {words}"):
            jtorch.jit.load(wrong)
    jtorch.save({"a": 1}, tmp_path / "other.pt")
    with pytest.raises(NotImplementedError, match="archives of PyTorch's TorchScript"):
        jtorch.jit.load(tmp_path / "other.pt")
    file = io.BytesIO()
    its = torch.jit.script(torch.nn.Linear(1, 1))
    torch.jit.save(its, file)
    file.seek(0)
    with pytest.raises(NotImplementedError, match="archives of PyTorch's TorchScript"):
        jtorch.jit.load(file)


def _reads(x):
    open("nowhere")
    return x


def test_a_file_cannot_name_other_functions():
    made = jtorch.jit.script(functions(jtorch)["straight"][0])
    file = io.BytesIO()
    made.save(file)
    file.seek(0)
    kept = jtorch.load(file)
    kept["of"]["graph"]["nodes"][1]["call"][0] = "torch:load"
    file = io.BytesIO()
    jtorch.save(kept, file)
    file.seek(0)
    with pytest.raises(NotImplementedError, match="the function torch:load"):
        jtorch.jit.load(file)


def stolen(change):
    """A saved function whose file was changed by hand: the error that it ends in."""

    @jtorch.jit.script
    def f(x):
        return x.abs().shape

    file = io.BytesIO()
    jtorch.jit.save(f, file)
    kept = jtorch.load(io.BytesIO(file.getvalue()))
    change(kept["of"]["graph"]["nodes"])
    file = io.BytesIO()
    jtorch.save(kept, file)
    file.seek(0)
    with pytest.raises(RuntimeError) as raised:
        jtorch.jit.load(file)(jtorch.ones(2))
    return str(raised.value)


def called(name):
    def change(nodes):
        nodes[0]["call"] = [name, 1, []]

    return change


def got(*names, kind="prim::GetAttr"):
    def change(nodes):
        nodes[0] |= {"kind": kind, "call": None, "attributes": {"name": ["s", names[0]]}, "names": [None]}

    return change


@pytest.mark.parametrize(
    "change",
    [
        *map(called, (
            "method:__class__", "method:_backward_hooks", "torch:load", "torch:install_as_torch", "torch.hub:load",
            "torch:set_default_dtype", "python:eval", "python:getattr", "operator:attrgetter", "operator:call", "own:called", "os:system", "",
        )),
        got("__class__"), got("numpy"), got("register_hook"), got("numpy", kind="prim::CallMethod"),
        lambda nodes: nodes[0].pop("outputs"), lambda nodes: nodes[0].update(inputs=[7]), lambda nodes: nodes[0].update(call=[1]),
    ],
)  # fmt: skip
def test_a_hostile_file_gets_hold_of_nothing(change):
    assert "does not support" in stolen(change)


def test_a_graph_gets_values_only():
    """What a function of values hands on is not asked for what lies behind it."""
    for it, name in (
        (jtorch.ones(1), "numpy"),
        (jtorch.ones(1), "__class__"),
        (jtorch.ones(1).numpy(), "T"),
        (len, "__self__"),
    ):
        with pytest.raises(NotImplementedError, match="in a graph"):
            targets.get(it, name)
        with pytest.raises(NotImplementedError, match="in a graph"):
            targets.Method("tofile")(jtorch.ones(1).numpy(), "file")


def asserts(x):
    assert x.shape[0] == 2, "wrong size"
    if x.dim() != 1:
        raise ValueError("need 1 dim")
    return x * 2


def asserts_in_torch(x):
    torch._assert(x.dim() == 3, "three")
    return x


def asks_another(x):
    return scripted_elsewhere(x) + 1


scripted_elsewhere = jtorch.jit.script(asserts)


class Refusing(jtorch.nn.Module):
    def forward(self, x):
        assert x.dim() == 2, f"bad {x.dim()}"
        return x @ x


@pytest.mark.parametrize(
    ("script", "shape", "words"),
    [
        (asserts, (3,), "AssertionError: wrong size"),
        (asserts, (2, 1), "builtins.ValueError: need 1 dim\n"),
        (asserts_in_torch, (2,), "AssertionError: three\n"),
        (asks_another, (3,), "AssertionError: wrong size\n"),
        (Refusing(), (2,), "AssertionError: bad 1\n"),
    ],
)
def test_what_a_script_raises_itself(script, shape, words):
    with pytest.raises(
        jtorch.jit.Error, match="^The following operation failed in the TorchScript interpreter."
    ) as caught:
        jtorch.jit.script(script)(jtorch.ones(shape))
    assert words in str(caught.value)
    assert not isinstance(caught.value, RuntimeError)


def test_what_operations_raise_in_a_script():
    with pytest.raises(RuntimeError, match="mat1 and mat2 shapes cannot be multiplied"):
        jtorch.jit.script(Refusing())(jtorch.ones(2, 3))
    assert jtorch.jit.script(asserts)(jtorch.ones(2)).tolist() == [2, 2]
