"""Module, containers, hooks and state dicts: the same program in both."""

import copy
import gc
import pickle
import weakref

import numpy as np
import pytest

import jtorch
from tests.oracle import both, torch


def program(torch):
    """What the error programs below may use."""
    nn = torch.nn

    class Bare(nn.Module):
        def __init__(self):
            pass

    return nn, Bare


ERRORS = {
    "parameter before init": lambda t, nn, B: setattr(B(), "x", nn.Parameter(t.zeros(1))),
    "module before init": lambda t, nn, B: setattr(B(), "x", nn.Linear(1, 1)),
    "buffer before init": lambda t, nn, B: setattr(B(), "x", nn.Buffer(t.zeros(1))),
    "tensor as parameter": lambda t, nn, B: setattr(nn.Linear(1, 1), "weight", t.zeros(1)),
    "int as module": lambda t, nn, B: setattr(nn.Sequential(nn.Linear(1, 1)), "0", 3),
    "int as buffer": lambda t, nn, B: setattr(nn.BatchNorm1d(2), "running_mean", 3),
    "register buffer early": lambda t, nn, B: B().register_buffer("x", t.zeros(1)),
    "register parameter early": lambda t, nn, B: B().register_parameter("x", None),
    "parameter dot": lambda t, nn, B: nn.Linear(1, 1).register_parameter("a.b", None),
    "parameter empty": lambda t, nn, B: nn.Linear(1, 1).register_parameter("", None),
    "parameter exists": lambda t, nn, B: nn.Linear(1, 1).register_parameter("forward", None),
    "parameter type": lambda t, nn, B: nn.Linear(1, 1).register_parameter("x", t.zeros(1)),
    "buffer type": lambda t, nn, B: nn.Linear(1, 1).register_buffer("x", 3),
    "buffer name": lambda t, nn, B: nn.Linear(1, 1).register_buffer(3, t.zeros(1)),
    "buffer exists": lambda t, nn, B: nn.Linear(1, 1).register_buffer("weight", t.zeros(1)),
    "module type": lambda t, nn, B: nn.Linear(1, 1).add_module("x", 3),
    "module name": lambda t, nn, B: nn.Linear(1, 1).add_module(3, nn.Linear(1, 1)),
    "module exists": lambda t, nn, B: nn.Linear(1, 1).add_module("bias", nn.Linear(1, 1)),
    "module dot": lambda t, nn, B: nn.Linear(1, 1).add_module("a.b", nn.Linear(1, 1)),
    "module empty": lambda t, nn, B: nn.Linear(1, 1).add_module("", nn.Linear(1, 1)),
    "no attribute": lambda t, nn, B: nn.Linear(1, 1).foo,
    "delete nothing": lambda t, nn, B: delattr(nn.Linear(1, 1), "foo"),
    "submodule": lambda t, nn, B: nn.Linear(1, 1).get_submodule("a.b"),
    "submodule kind": lambda t, nn, B: nn.Linear(1, 1).get_submodule("weight"),
    "get parameter": lambda t, nn, B: nn.Linear(1, 1).get_parameter("x"),
    "get parameter kind": lambda t, nn, B: nn.BatchNorm1d(1).get_parameter("running_mean"),
    "get buffer": lambda t, nn, B: nn.Linear(1, 1).get_buffer("weight"),
    "set submodule": lambda t, nn, B: nn.Linear(1, 1).set_submodule("", nn.Linear(1, 1)),
    "set submodule path": lambda t, nn, B: nn.Sequential(nn.Linear(1, 1)).set_submodule("0.1.2", nn.ReLU()),
    "set submodule strict": lambda t, nn, B: nn.Sequential(nn.ReLU()).set_submodule("1", nn.ReLU(), True),
    "set submodule kind": lambda t, nn, B: nn.Sequential(nn.ReLU()).set_submodule("0", 3),
    "init argument": lambda t, nn, B: nn.Module(3),
    "init keyword": lambda t, nn, B: nn.Module(a=3),
    "no forward": lambda t, nn, B: nn.Module()(3),
    "call before init": lambda t, nn, B: B()(3),
    "train": lambda t, nn, B: nn.Linear(1, 1).train(3),
    "to int": lambda t, nn, B: nn.Linear(1, 1).to(t.int32),
    "missing key": lambda t, nn, B: nn.Linear(1, 1).load_state_dict({}),
    "unexpected key": lambda t, nn, B: nn.Linear(1, 1, bias=False).load_state_dict(nn.Linear(1, 1).state_dict()),
    "size": lambda t, nn, B: nn.Linear(1, 1).load_state_dict(nn.Linear(2, 1).state_dict()),
    "buffer over an attribute": lambda t, nn, B: setattr(nn.Linear(1, 1), "in_features", nn.Buffer(t.zeros(1))),
    "from meta": lambda t, nn, B: nn.Linear(1, 1).to("meta").to("cpu"),
    "not a tensor": lambda t, nn, B: nn.Linear(1, 1, bias=False).load_state_dict({"weight": 3}),
    "not a dict": lambda t, nn, B: nn.Linear(1, 1).load_state_dict(3),
    "sequential index": lambda t, nn, B: nn.Sequential(nn.ReLU())[3],
    "list index": lambda t, nn, B: nn.ModuleList([nn.ReLU()])[3],
    "list extend": lambda t, nn, B: nn.ModuleList(3),
    "dict update": lambda t, nn, B: nn.ModuleDict(3),
    "call parameter list": lambda t, nn, B: nn.ParameterList()(3),
    "dropout p": lambda t, nn, B: nn.Dropout(2),
    "groups": lambda t, nn, B: nn.Conv2d(3, 4, 1, groups=2),
    "embedding padding": lambda t, nn, B: nn.Embedding(3, 4, padding_idx=7),
    "heads": lambda t, nn, B: nn.MultiheadAttention(5, 2),
    "batch norm by a mean that needs a gradient": lambda t, nn, B: nn.functional.batch_norm(
        t.ones(2, 3), t.zeros(3, requires_grad=True), t.ones(3)
    ),
    "batch norm that moves a spread that needs a gradient": lambda t, nn, B: nn.functional.batch_norm(
        t.ones(2, 3), t.zeros(3), t.ones(3, requires_grad=True), training=True
    ),
    "batch norm of one dimension": lambda t, nn, B: nn.functional.batch_norm(t.ones(3), None, None, training=True),
    "batch norm dims": lambda t, nn, B: nn.BatchNorm2d(3)(t.zeros(2, 3)),
    "group norm channels": lambda t, nn, B: nn.GroupNorm(2, 3),
}


@pytest.mark.parametrize("name", ERRORS)
def test_error(name):
    got = both(lambda torch: ERRORS[name](torch, *program(torch)))
    assert got.error is not None


def test_all_lines_of_a_failed_load():
    def load(torch):
        nn = torch.nn
        model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
        state = nn.Sequential(nn.Linear(2, 4), nn.BatchNorm1d(3, affine=False), nn.Linear(1, 1)).state_dict()
        try:
            model.load_state_dict(state)
        except RuntimeError as e:
            return str(e)

    assert "Missing key(s)" in both(load).value


def test_registration_walks_and_names():
    def walk(torch):
        nn = torch.nn

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.a = nn.Linear(2, 2)
                self.b = nn.Sequential(self.a, nn.ReLU())
                self.register_buffer("kept", torch.zeros(1))
                self.register_buffer("gone", torch.zeros(1), persistent=False)
                self.p = nn.Parameter(torch.ones(2))
                self.none = None
                self.q = nn.Buffer(torch.ones(3), persistent=False)

        net = Net()
        out = [
            [n for n, _ in net.named_parameters()],
            [n for n, _ in net.named_parameters(remove_duplicate=False)],
            [n for n, _ in net.named_buffers()],
            [n for n, _ in net.named_modules()],
            [n for n, _ in net.named_modules(remove_duplicate=False)],
            [n for n, _ in net.named_children()],
            list(net.state_dict()),
            list(net.state_dict(prefix="x.")),
            [n for n in dir(net) if n in ("a", "p", "kept", "training")],
            repr(net),
            dict(net.state_dict()._metadata),
        ]
        net.a = None
        del net.p
        net.kept = torch.ones(2)
        net.p = 3
        out += [repr(net), list(net.state_dict()), net.kept, net.p]
        return out

    both(walk)


def test_containers():
    def build(torch):
        nn = torch.nn
        s = nn.Sequential(nn.Linear(1, 2), nn.ReLU(), nn.Linear(2, 1))
        s.append(nn.Tanh()).insert(1, nn.Sigmoid())
        named = nn.Sequential()
        named.add_module("first", nn.ReLU())
        print(named.append(nn.Tanh()).insert(1, nn.ELU()))
        del s[0]
        s[0] = nn.ELU()
        s += nn.Sequential(nn.ReLU())
        m = nn.ModuleList([nn.ReLU(), nn.ReLU(), nn.Tanh()])
        m.insert(1, nn.Linear(1, 1))
        m.extend([nn.ReLU()] * 2)
        d = nn.ModuleDict({"b": nn.ReLU(), "a": nn.Tanh()})
        d.update([("c", nn.Linear(1, 1))])
        d.pop("b")
        p = nn.ParameterList([nn.Parameter(torch.ones(2)), torch.zeros(2, 3), 4])
        q = nn.ParameterDict({"y": torch.ones(2), "x": nn.Parameter(torch.zeros(1))})
        r = q | nn.ParameterDict({"z": torch.ones(1)})
        return [repr(x) for x in (s, s[1:], s * 2, m, m[1:], m + [nn.ReLU()], d, p, p[:2], q, r, nn.ModuleList())] + [
            list(d.keys()),
            len(s),
            list(p.state_dict()),
            list(r.keys()),
            [k in q for k in "xyz"],
        ]

    both(build)


def test_hooks_in_order():
    def run(torch):
        nn = torch.nn
        log = []
        torch.manual_seed(0)
        m = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
        note = lambda word: lambda *a: log.append((word, len(a)))
        m.register_forward_pre_hook(note("pre"))
        m.register_forward_pre_hook(note("first"), prepend=True)
        m.register_forward_pre_hook(lambda mod, a, k: ((a[0] * 2,), k), with_kwargs=True)
        m.register_forward_hook(note("post"))
        m.register_forward_hook(lambda mod, a, k, out: out + 1, with_kwargs=True)
        m[0].register_full_backward_hook(lambda mod, gi, go: log.append(("full", gi[0].shape, go[0].shape)))
        m[0].register_full_backward_pre_hook(lambda mod, go: (go[0] * 3,))
        handle = m.register_forward_hook(note("removed"))
        handle.remove()
        x = torch.ones(4, 2, requires_grad=True)
        out = m(x)
        out.sum().backward()
        return log and [str(e) for e in log] + [out.detach(), x.grad, m[0].weight.grad]

    both(run)


def test_always_called_hook():
    def run(torch):
        nn = torch.nn
        log = []
        m = nn.Linear(2, 2)
        m.register_forward_hook(lambda *a: log.append(len(a)), always_call=True)
        try:
            m(torch.ones(3, 5))
        except RuntimeError:
            log.append("raised")
        return log

    both(run)


def test_global_hooks():
    def run(torch):
        nn = torch.nn
        log = []
        module = nn.modules.module
        handles = [
            module.register_module_forward_pre_hook(lambda m, a: log.append("pre " + type(m).__name__)),
            module.register_module_forward_hook(lambda m, a, o: log.append("post " + type(m).__name__)),
            module.register_module_parameter_registration_hook(lambda m, n, p: log.append("param " + n)),
        ]
        nn.Sequential(nn.Linear(1, 1), nn.ReLU())(torch.ones(1))
        for h in handles:
            h.remove()
        nn.ReLU()(torch.ones(1))
        return log

    both(run)


def test_tied_weights_stay_tied():
    def run(torch):
        nn = torch.nn
        m = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
        m[1].weight = m[0].weight
        before = m[0].weight
        m.double()
        m.to(torch.float32)
        return [m[0].weight is m[1].weight, m[0].weight is before, len(list(m.parameters())), m[1].weight.dtype]

    both(run)


def test_copies_are_independent():
    def run(torch):
        nn = torch.nn
        torch.manual_seed(0)
        m = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
        m[1].weight.requires_grad_(False)
        out = []
        for c in (copy.deepcopy(m), pickle.loads(pickle.dumps(m))):
            with torch.no_grad():
                c[0].weight.fill_(7)
            out += [repr(c), [p.requires_grad for p in c.parameters()], c[0].weight.detach()]
        return [*out, m[0].weight.detach()]

    both(run)


def test_state_dict_round_trip_and_hooks():
    def run(torch):
        nn = torch.nn
        torch.manual_seed(0)
        a, b = (nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)) for _ in range(2))
        a.register_state_dict_post_hook(lambda m, s, p, meta: s.update(extra=torch.ones(1)))
        b.register_load_state_dict_pre_hook(lambda m, s, *rest: s.pop("extra"))
        b.register_load_state_dict_post_hook(lambda m, keys: keys.missing_keys.clear())
        a(torch.ones(3, 2))
        state = a.state_dict()
        result = b.load_state_dict(state)
        loose = a.load_state_dict({"0.weight": torch.zeros(2, 2)}, strict=False)
        assigned = nn.Linear(2, 2)
        new = torch.ones(2, 2)
        assigned.load_state_dict({"weight": new, "bias": torch.ones(2)}, assign=True)
        return [str(result), str(loose), dict(b.state_dict()), assigned.weight.data_ptr() == new.data_ptr()]

    both(run)


def test_dicts_that_a_module_saves_by_itself():
    """They are no submodule's: they come back whole, and where nobody wants them they are refused by their names."""

    def run(torch):
        class Quantised(torch.nn.Linear):
            def _save_to_state_dict(self, destination, prefix, keep_vars):
                super()._save_to_state_dict(destination, prefix, keep_vars)
                destination[prefix + "scales"] = {"bits": 4, "by": torch.ones(2)}

            def _load_from_state_dict(self, state_dict, prefix, *rest):
                self.scales = state_dict.pop(prefix + "scales")
                super()._load_from_state_dict(state_dict, prefix, *rest)

        torch.manual_seed(0)
        saved, model = (torch.nn.Sequential(Quantised(2, 2)) for _ in range(2))
        result = [str(model.load_state_dict(saved.state_dict())), model[0].scales]
        for extra in ({"x": torch.ones(1)}, {}, [torch.ones(1)]):
            for name in ("bias", "other"):
                with pytest.raises(RuntimeError) as error:
                    torch.nn.Linear(1, 1).load_state_dict({"weight": torch.ones(1, 1), name: extra})
                result.append(str(error.value))
        return result

    both(run)


def test_nested_state():
    """A dict, or a list, in the place of a submodule holds the names below its own."""
    model = jtorch.nn.Sequential(jtorch.nn.Linear(2, 1), jtorch.nn.ParameterList([jtorch.zeros(1)]))
    weight, bias, listed = np.ones((1, 2), np.float32), np.zeros(1, np.float32), np.full(1, 3, np.float32)
    model.load_state_dict({"0": {"weight": weight, "bias": bias}, "1": [listed]})
    assert model[0].weight.tolist() == [[1, 1]] and model[1][0].tolist() == [3]
    model.load_state_dict({"0": {"weight": 2 * weight}}, strict=False)
    assert model[0].weight.tolist() == [[2, 2]]


def test_zero_grad_train_and_requires_grad():
    def run(torch):
        m = torch.nn.Linear(2, 2)
        m(torch.ones(1, 2)).sum().backward()
        m.zero_grad(set_to_none=False)
        out = [m.weight.grad.clone()]
        m.zero_grad()
        m.eval()
        m.requires_grad_(False)
        return [*out, m.weight.grad, m.training, m.weight.requires_grad]

    both(run)


def test_functional_call():
    def run(torch):
        nn = torch.nn
        m = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False))
        m[1].weight = m[0].weight
        call = nn.utils.stateless._functional_call
        x = torch.ones(1, 2)
        return [
            call(m, {"0.weight": torch.ones(2, 2)}, x),
            call(m, {"0.weight": torch.ones(2, 2), "1.weight": torch.zeros(2, 2)}, x, tie_weights=False),
            m[0].weight is m[1].weight,
        ]

    both(run)


def test_repr_of_parameters_of_other_classes():
    def program(torch):
        class Marked(torch.Tensor):
            pass

        class Own(torch.nn.Parameter):
            pass

        makers = torch.nn.Parameter, Own, lambda t: torch.nn.Parameter(t.as_subclass(Marked))
        return [repr(make(torch.ones(2))) for make in makers]

    both(program)


FUNCTIONAL_CALLS = {
    "unknown name": ({"nope": 1.0}, {}),
    "unknown name in a submodule": ({"inner.nope": 1.0}, {}),
    "unknown submodule": ({"nope.weight": 1.0}, {}),
    "strict": ({"weight": 1.0, "nope": 1.0}, {"strict": True}),
    "a module": ({"inner": 1.0}, {}),
    "an attribute": ({"number": 1.0}, {}),
    "through a tensor": ({"weight.nope": 1.0}, {}),
    "no name": ({"": 1.0}, {}),
    "no value": ({"weight": None}, {}),
    "a number": ({"weight": 3}, {}),
    "tied": ({"tied": 3.0}, {}),
    "tied, two values": ({"weight": 1.0, "tied": 3.0}, {}),
    "tied, apart": ({"weight": 1.0, "tied": 3.0}, {"tie_weights": False}),
    "a buffer that is replaced": ({"buffer": 5.0}, {}),
}


@pytest.mark.parametrize("name", FUNCTIONAL_CALLS)
@pytest.mark.parametrize("where", ["func", "stateless"])
def test_functional_call_by_name(where, name):
    def run(torch):
        nn = torch.nn

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = self.tied = nn.Parameter(torch.ones(1))
                self.inner = nn.Linear(1, 1)
                self.number = 3
                self.register_buffer("buffer", torch.ones(1))

            def forward(self, x):
                self.buffer = self.buffer + 1
                return x * self.weight + self.tied * self.buffer

        net, (given, options) = Net(), FUNCTIONAL_CALLS[name]
        given = {k: torch.full((1,), v) if isinstance(v, float) else v for k, v in given.items()}
        call = torch.func.functional_call if where == "func" else nn.utils.stateless.functional_call
        try:
            result = call(net, given, torch.ones(1), **options)
        except Exception as e:
            result = type(e).__name__, str(e)
        return result, given, dict(net.named_buffers()), sorted(net.state_dict()), hasattr(net, "nope")

    both(run)


def test_functions_on_a_class():
    """What PyTorch has in C does not bind to the instance; what it has in Python does."""

    def program(t):
        class Net(t.nn.Module):
            convolve, activate, norm, own = t.conv2d, t.relu, t.linalg.vector_norm, staticmethod(t.sigmoid)
            dense, bound, joined = t.nn.functional.linear, t.nn.functional.relu, t.einsum

        net = Net()
        found = [net.activate(t.ones(2)), net.norm(t.ones(4)), net.own(t.zeros(2)), net.dense(t.ones(2), t.ones(3, 2))]
        found.append(net.convolve(t.ones(1, 1, 3, 3), weight=t.ones(1, 1, 2, 2)))
        return [*found, *(hasattr(f, "__self__") for f in (net.bound, net.joined))]

    both(program)


def test_lazy_parameters_stay_as_they_are():
    both(lambda t: t.nn.UninitializedParameter().requires_grad)
    for module in (torch, jtorch):
        layer = module.nn.LazyLinear(3)
        with pytest.raises(ValueError, match="Attempted to use an uninitialized parameter in .*requires_grad_"):
            layer.requires_grad_(False)
        assert layer(module.ones(2, 4)).requires_grad


def test_a_pre_hook_of_loading_keeps_no_module_alive():
    def program(torch):
        layer, calls = torch.nn.Linear(1, 1), []

        class Noted(torch.nn.Linear):
            def note(self, module, *given):
                calls.append((self is module, len(given)))

        layer._register_load_state_dict_pre_hook(print, True)
        hook, ref = next(iter(layer._load_state_dict_pre_hooks.values())), weakref.ref(layer)
        gc.disable()
        try:
            del layer
            gone = ref() is None
        finally:
            gc.enable()
        noted = Noted(1, 1)
        noted._register_load_state_dict_pre_hook(noted.note, True)
        other = copy.deepcopy(noted)
        other.load_state_dict(noted.state_dict())
        hook()
        return gone, calls

    def seen(torch):
        try:
            return program(torch)
        except RuntimeError as error:
            return str(error)

    both(seen)


@pytest.mark.parametrize("persistent", [True, False])
def test_a_register_buffer_of_two_arguments(persistent):
    def program(torch):
        class Old(torch.nn.Module):
            def register_buffer(self, name, value):
                super().register_buffer(name, value)

        module = Old()
        module.a = torch.nn.Buffer(torch.ones(1), persistent=persistent)
        module.a = torch.zeros(1)
        return list(module.state_dict())

    both(program)
