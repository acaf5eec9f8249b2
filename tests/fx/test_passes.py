"""fx/passes and fx/experimental/optimization against PyTorch's: the same splits, orders, fused layers and errors."""

import importlib
import types

import pytest

import jtorch
from tests import oracle

torch = oracle.torch
LIBS = (torch, jtorch)


def module(lib, name):
    return importlib.import_module(f"{lib.__name__}.fx.{name}")


def spelled(text):
    return text.replace("torch._C._nn.", "torch.nn.functional.").replace("jtorch", "torch")


def net(lib):
    class Net(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = lib.nn.Parameter(lib.ones(3))
            self.body = lib.nn.Sequential(lib.nn.Linear(3, 3), lib.nn.ReLU())
            self.last = lib.nn.Linear(3, 2)

        def forward(self, x, y):
            a = x + self.w
            b = self.body(a)
            c = lib.sin(b) + a
            d = self.last(c * y)
            return d, b.sum(), y

    lib.manual_seed(0)
    return lib.fx.symbolic_trace(Net())


def by(**numbers):
    """A callback from names of nodes, 0 for others."""
    return lambda node: numbers.get(node.name, 0)


CALLBACKS = {
    "one": by(),
    "two": by(sin=1, add_1=1, mul=1, last=1, sum_1=1),
    "three": by(sin=1, add_1=1, mul=2, last=2, sum_1=2),
    "order of names": by(add="z", body_0="z", body_1="z", sin="a", add_1="a", mul="m", last="m", sum_1="m"),
    "apart": by(sum_1=3),
    "cycle": by(body_0=1, body_1=1),
}
OPTIONS = [
    {}, {"keep_original_order": True}, {"keep_original_node_name": True}, {"keep_original_input_name": False},
    {"partition_affix": "p"}, {"tuple_return": True},
]  # fmt: skip


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("name", CALLBACKS)
def test_split_module(name, options):
    def split(lib):
        whole, names = net(lib), {}
        try:
            parts = module(lib, "passes.split_module").split_module(whole, None, CALLBACKS[name], names, **options)
        except RuntimeError as e:
            return str(e)
        x, y = lib.arange(6.0).reshape(2, 3), lib.ones(2, 3) / 3
        lib.testing.assert_close(whole(x, y), parts(x, y))
        codes = {n: spelled(m.code) for n, m in parts.named_modules() if isinstance(m, lib.fx.GraphModule)}
        return codes, names, list(parts.state_dict()), parts.meta["partition_names"]

    assert split(jtorch) == split(torch)


def test_split_by_numbers_of_nodes():
    def split(lib):
        whole, count = net(lib), iter(range(100))
        parts = module(lib, "passes.split_module").split_module(whole, whole, lambda node: next(count) // 2)
        return spelled(parts.code)

    # PyTorch asks once for each node too
    assert split(jtorch) == split(torch)


def test_pass_manager():
    def shown(lib):
        base, manager = module(lib, "passes.infra.pass_base"), module(lib, "passes.infra.pass_manager")

        class Sines(base.PassBase):
            def call(self, graph_module):
                changed = False
                for node in graph_module.graph.nodes:
                    if node.target is lib.sin:
                        node.target, changed = lib.cos, True
                return base.PassResult(graph_module, changed)

        def nothing(m):
            return None

        def fails(m):
            raise ValueError("no")

        sines, wrapped = Sines(), manager.pass_result_wrapper(nothing)
        before = manager.this_before_that_pass_constraint(wrapped, sines)
        run = manager.PassManager(
            passes=[sines, wrapped], constraints=[before], steps=2, run_checks_after_each_pass=True
        )
        checked = []
        run.add_checks(lambda m: checked.append(1))
        made = [type(_raised(run.validate_constraints)).__name__]
        result = run(net(lib))
        made += [spelled(result.graph_module.code), result.modified, [p is sines for p in run.passes], len(checked)]
        run.add_constraint(manager.this_before_that_pass_constraint(sines, wrapped))
        made.append(str(_raised(run.solve_constraints)).partition(":")[0])
        run.add_pass(fails)
        run.constraints.clear()
        made += [str(_raised(lambda: run(net(lib)))), str(_raised(lambda: run.add_checks(lambda: None)))]
        made.append(str(_raised(lambda: manager.PassManager([lambda m: 3])(net(lib)).__cause__)))
        return made

    assert shown(jtorch) == shown(torch)


def _raised(call):
    try:
        return call()
    except Exception as e:
        return e


@pytest.mark.filterwarnings("ignore:.*script_method:DeprecationWarning")  # PyTorch's module, when it is imported
def test_fused_layers_and_dropout():
    def made(lib):
        nn, tools = lib.nn, module(lib, "experimental.optimization")
        lib.manual_seed(1)
        whole = nn.Sequential(
            nn.Conv2d(2, 3, 3),
            nn.BatchNorm2d(3),
            nn.Dropout(),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(12, 4),
            nn.BatchNorm1d(4),
        )
        for norm in (whole[1], whole[6]):
            norm.running_mean.uniform_(-1, 1)
            norm.running_var.uniform_(1, 2)
        whole.eval()
        x = lib.randn(5, 2, 4, 4)
        fused, kept = tools.fuse(whole), tools.remove_dropout(whole)
        assert (fused(x) - whole(x)).abs().max() < 1e-5 and (kept(x) - whole(x)).abs().max() < 1e-6
        graph = kept.graph
        nodes = list(graph.nodes)
        part = tools.extract_subgraph(kept, nodes[1:3], nodes[:1], nodes[2:3])
        sets = tools.UnionFind(4)
        for k in range(4):
            sets.make_set(k)
        sets.join(0, 1), sets.join(2, 3), sets.join(3, 0)
        joined = [sets.find(k) for k in range(4)]
        return (
            spelled(fused.code),
            spelled(kept.code),
            spelled(part.code),
            type(whole[1]).__name__,
            joined,
            tools.fuse(whole, inplace=True)(x).shape,
        )

    theirs, ours = made(torch), made(jtorch)
    assert ours == theirs


def test_what_needs_pydot_says_so():
    for lib in LIBS:
        with pytest.raises(RuntimeError, match="FXGraphDrawer requires the pydot package to be installed"):
            module(lib, "passes.graph_drawer").FxGraphDrawer(net(lib), "net")


def test_drawings(monkeypatch):
    """The boxes and arrows that pydot is asked for, which is not installed where the tests run."""

    class Dot(list):
        def __init__(self, name, **style):
            super().__init__()
            self.name = name

        add_node = add_edge = list.append

    drawer = module(jtorch, "passes.graph_drawer")
    pydot = types.SimpleNamespace(Dot=Dot, Node=lambda name, label, **style: (name, label), Edge=lambda a, b: (a, b))
    monkeypatch.setattr(drawer, "pydot", pydot)
    picture = drawer.FxGraphDrawer(net(jtorch), "net", ignore_parameters_and_buffers=True).get_dot_graph()
    assert picture.name == "net" and ("add", "body_0") in picture and ("w", "add") not in picture
    assert ("x", r"{name=%x|op_code=placeholder\n|target=x\n|num_users=1\n}") in picture
    whole = drawer.FxGraphDrawer(net(jtorch), "net")
    assert ("w", "add") in whole.get_dot_graph() and ("last.bias", "last") in whole.get_main_dot_graph()
    assert list(whole.get_all_dot_graphs()) == ["net"]
