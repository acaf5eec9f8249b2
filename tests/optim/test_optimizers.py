"""Every optimizer: six steps with the same gradients, a state dict in the middle, against torch."""

import copy
import importlib
import warnings

import jax.numpy as jnp
import numpy as np
import pytest

import jtorch
from jtorch.core import ledger
from jtorch.optim import formulas
from tests.oracle import both, torch

OPTIMIZERS = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.1, "maximize": True}),
    ("Adam", {}),
    ("Adam", {"amsgrad": True, "weight_decay": 0.1}),
    ("AdamW", {"lr": 0.01}),
    ("AdamW", {"lr": 0.01, "amsgrad": True, "maximize": True}),
    ("RMSprop", {}),
    ("RMSprop", {"centered": True, "momentum": 0.3, "weight_decay": 0.1}),
    ("Adagrad", {}),
    ("Adagrad", {"lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.2}),
    ("Adadelta", {}),
    ("Adadelta", {"weight_decay": 0.1, "rho": 0.8}),
    ("Adamax", {}),
    ("Adamax", {"weight_decay": 0.1}),
    ("NAdam", {}),
    ("NAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RAdam", {}),
    ("RAdam", {"weight_decay": 0.1, "betas": (0.8, 0.9)}),
    ("RAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True, "lr": 0.1, "betas": (0.8, 0.99)}),
    ("ASGD", {}),
    ("ASGD", {"t0": 2, "lambd": 0.1, "weight_decay": 0.1}),
    ("Rprop", {}),
    ("Rprop", {"maximize": True}),
    ("Adafactor", {}),
    ("Adafactor", {"weight_decay": 0.1, "eps": (1e-3, 1e-2), "d": 1.5}),
    ("Muon", {}),
    ("Muon", {"nesterov": False, "adjust_lr_fn": "match_rms_adamw"}),
]
IDS = [f"{name}-{i}" for i, (name, _) in enumerate(OPTIMIZERS)]


def six_steps(t, name, options, dtype, skip, gradients):
    shapes = [(3, 4), (5, 2)] if name == "Muon" else [(3, 4), (5,), ()]
    t.manual_seed(0)
    params = [t.nn.Parameter(t.randn(s, dtype=getattr(t, dtype))) for s in shapes]
    make = lambda: getattr(t.optim, name)(params, **options)
    optimizer = make()
    t.manual_seed(1)
    for step in range(6):
        for i, p in enumerate(params):
            g = t.randn(p.shape, dtype=p.dtype)
            p.grad = None if skip and i == 1 and step == 2 else g
        if step == 3:
            state = copy.deepcopy(optimizer.state_dict())
            optimizer = make()
            optimizer.load_state_dict(state)
        optimizer.step()
    state = optimizer.state_dict()
    groups = [{k: v for k, v in g.items() if k != "betas"} for g in state["param_groups"]]
    return [repr(optimizer), groups, state["state"], [p.detach() for p in params]]


# A parameter left out needs programs of its own: once for each row is enough.
@pytest.mark.parametrize("dtype, skip", [("float32", True), ("float64", False)], ids=["one without", "all"])
@pytest.mark.parametrize("name,options", OPTIMIZERS, ids=IDS)
def test_six_steps(name, options, dtype, skip):
    # Muon multiplies in bfloat16, in another order than torch; the others round differently in the last digits
    least = (5e-3, 5e-3) if name == "Muon" else (4e-6, 1e-6) if dtype == "float32" else (1e-7, 1e-8)
    both(six_steps, name, options, dtype, skip, None, layout=False, least=least)


@pytest.mark.parametrize("name", sorted({name for name, _ in OPTIMIZERS} - {"Muon"}))
def test_gradients_of_nan(name):
    def program(t):
        p = t.nn.Parameter(t.ones(2, 2))
        optimizer = getattr(t.optim, name)([p])
        for value in (float("nan"), 1.0, float("nan")):
            p.grad = t.tensor([[value, 1.0], [-1.0, value]])
            optimizer.step()
        return p, optimizer.state_dict()["state"]

    both(program, layout=False)


def test_data_of_another_size_between_two_steps():
    def program(t):
        p = t.nn.Parameter(t.ones(2))
        optimizer = t.optim.Adam([p])
        for size in (2, 3):
            p.data, p.grad = t.ones(size), None
            p.grad = t.ones(size)
            optimizer.step()

    assert both(program).error is not None


@pytest.mark.parametrize("name", ["SGD", "Adam", "RMSprop", "Adagrad"])
def test_complex_parameters(name):
    def run(t):
        t.manual_seed(0)
        p = t.nn.Parameter(t.complex(t.randn(4), t.randn(4)))
        optimizer = getattr(t.optim, name)([p], lr=0.1)
        for _ in range(3):
            p.grad = t.complex(t.randn(4), t.randn(4))
            optimizer.step()
        return p.detach()

    both(run, least=(1e-5, 1e-6))


@pytest.mark.parametrize("options", [{"max_iter": 4}, {"max_iter": 8, "line_search_fn": "strong_wolfe"}, {"lr": [0.5]}])
def test_lbfgs(options):
    def run(t):
        options_ = {k: t.tensor(v) if isinstance(v, list) else v for k, v in options.items()}
        t.manual_seed(0)
        params = [t.nn.Parameter(t.randn(3)), t.nn.Parameter(t.randn(()))]
        optimizer = t.optim.LBFGS(params, **options_)

        def closure():
            optimizer.zero_grad()
            loss = sum((((p - i) ** 2) * (1 + p.abs())).sum() for i, p in enumerate(params))
            loss.backward()
            return loss

        losses = [optimizer.step(closure).detach() for _ in range(4)]
        state = optimizer.state[params[0]]
        return losses, [p.detach() for p in params], state["func_evals"], state["t"]

    both(run, least=(1e-4, 1e-5))


def loaded_for_others(t, name):
    """A step of a state that belongs to a parameter of another size."""
    others = [t.nn.Parameter(t.ones(n)) for n in (2, 3)]
    first, second = (getattr(t.optim, name)([p], **({"momentum": 0.9} if name == "SGD" else {})) for p in others)
    for p in others:
        p.grad = t.ones_like(p)
    first.step()
    second.load_state_dict(first.state_dict())
    second.step()


ERRORS = {
    "state of another size": lambda t, p: loaded_for_others(t, "Adam"),
    "momentum of another size": lambda t, p: loaded_for_others(t, "SGD"),
    "empty": lambda t, p: t.optim.SGD([]),
    "lr": lambda t, p: t.optim.SGD([p], lr=-1),
    "momentum": lambda t, p: t.optim.SGD([p], momentum=-1),
    "nesterov": lambda t, p: t.optim.SGD([p], nesterov=True),
    "tensor": lambda t, p: t.optim.SGD(p),
    "int": lambda t, p: t.optim.SGD([3]),
    "non-leaf": lambda t, p: t.optim.SGD([p * 2]),
    "twice": lambda t, p: t.optim.SGD([{"params": [p]}, {"params": [p]}]),
    "set": lambda t, p: t.optim.SGD([{"params": {p}}]),
    "no params": lambda t, p: t.optim.SGD([{"lr": 3}]),
    "names": lambda t, p: t.optim.SGD([("a", p), t.nn.Parameter(t.ones(1))]),
    "beta 1": lambda t, p: t.optim.Adam([p], betas=(1, 0)),
    "beta 2": lambda t, p: t.optim.AdamW([p], betas=(0, 1)),
    "eps": lambda t, p: t.optim.Adam([p], eps=-1),
    "foreach fused": lambda t, p: t.optim.Adam([p], foreach=True, fused=True),
    "tensor lr": lambda t, p: t.optim.Adam([p], lr=t.tensor(1.0), foreach=True),
    "tensor lr size": lambda t, p: t.optim.Adam([p], lr=t.tensor([1.0, 2.0])),
    "fused differentiable": lambda t, p: t.optim.Adam([p], fused=True, differentiable=True),
    "groups": lambda t, p: t.optim.SGD([p]).load_state_dict({"state": {}, "param_groups": []}),
    "group size": lambda t, p: t.optim.SGD([p]).load_state_dict({"state": {}, "param_groups": [{"params": [0, 1]}]}),
    "group type": lambda t, p: t.optim.SGD([p]).add_param_group(3),
    "one beta": lambda t, p: t.optim.Adam([p], betas=(0.9,)),
    "rho": lambda t, p: t.optim.Adadelta([p], rho=-1),
    "etas": lambda t, p: t.optim.Rprop([p], etas=(2, 1)),
    "adafactor": lambda t, p: t.optim.Adafactor([p], d=0.1),
    "muon": lambda t, p: t.optim.Muon([p]),
    "lbfgs": lambda t, p: t.optim.LBFGS([{"params": [p]}, {"params": [t.nn.Parameter(t.ones(1))]}]),
    "sparse adam": lambda t, p: t.optim.SparseAdam([p], betas=(0, 1)),
    "sparse adam, dense gradient": lambda t, p: ((p * p).sum().backward(), t.optim.SparseAdam([p]).step()),
    "sparse parameter": lambda t, p: t.optim.SparseAdam([t.eye(2).to_sparse().requires_grad_()]),
    "group without names": lambda t, p: t.optim.SGD([("a", p)]).add_param_group({"params": t.nn.Parameter(t.ones(1))}),
    "group with names": lambda t, p: t.optim.SGD([p]).add_param_group({"params": [("a", t.nn.Parameter(t.ones(1)))]}),
    "abstract": lambda t, p: t.optim.Optimizer([p], {}).step(),
}


@pytest.mark.parametrize("name", ERRORS)
def test_error(name):
    got = both(lambda t: ERRORS[name](t, t.nn.Parameter(t.ones(2))))
    assert got.error is not None


@pytest.mark.parametrize("options", [{}, {"fused": True}, {"fused": False}, {"foreach": True}], ids=str)
@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "Adagrad", "RMSprop", "LBFGS"])
def test_says_that_it_unscales_where_it_was_asked_to_be_fused(name, options):
    """Lightning clips no gradients of an optimizer that says so."""

    def run(t):
        made = getattr(t.optim, name)([t.nn.Parameter(t.ones(1))], lr=0.1, **options)
        return getattr(made, "_step_supports_amp_scaling", None)

    both(run)


def test_hooks_of_all_optimizers_come_first_before_and_last_after_a_step():
    def run(t):
        log = []
        module = importlib.import_module(t.__name__ + ".optim.optimizer")
        p = t.nn.Parameter(t.ones(1))
        optimizer = t.optim.SGD([p])
        optimizer.register_step_pre_hook(lambda *_: log.append("own before"))
        optimizer.register_step_post_hook(lambda *_: log.append("own after"))
        handles = (
            module.register_optimizer_step_pre_hook(lambda *_: log.append("every before")),
            module.register_optimizer_step_post_hook(lambda *_: log.append("every after")),
        )
        optimizer.step()
        for handle in handles:
            handle.remove()
        return log

    both(run)


def test_repr():
    def run(t):
        parts = [{"params": t.nn.Parameter(t.ones(1)), "lr": 0.1 * i} for i in range(3)]
        empty = t.optim.Adam(parts[:1])
        empty.param_groups.clear()
        return repr(t.optim.SGD(parts)), repr(empty)

    both(run)


def test_lbfgs_with_sparse_gradients():
    def run(t):
        p = t.nn.Parameter(t.eye(2))
        p.grad = t.eye(2).to_sparse()
        t.optim.LBFGS([p]).step(lambda: t.tensor(1.0))
        return p.detach()

    both(run)


def test_hooks_and_closure():
    def run(t):
        p = t.nn.Parameter(t.ones(2))
        optimizer = t.optim.SGD([p], lr=0.1)
        log = []
        optimizer.register_step_pre_hook(lambda o, args, kwargs: log.append(("pre", len(args), sorted(kwargs))))
        optimizer.register_step_post_hook(lambda o, args, kwargs: log.append("post"))
        optimizer.register_state_dict_post_hook(lambda o, s: {**s, "more": 1})
        optimizer.register_load_state_dict_pre_hook(lambda o, s: log.append(sorted(s)))

        def closure():
            optimizer.zero_grad()
            loss = (p * p).sum()
            loss.backward()
            return loss

        loss = optimizer.step(closure)
        optimizer.load_state_dict(optimizer.state_dict())
        return [str(x) for x in log], loss.detach(), p.detach()

    both(run)


def test_a_subclass_with_its_own_step():
    def run(t):
        class Half(t.optim.Optimizer):
            def __init__(self, params):
                super().__init__(params, {"lr": 0.5})

            @t.no_grad()
            def step(self, closure=None):
                for group in self.param_groups:
                    for p in group["params"]:
                        p.add_(p.grad, alpha=-group["lr"])
                        self.state[p]["n"] = self.state[p].get("n", 0) + 1

        p = t.nn.Parameter(t.ones(2))
        p.grad = t.ones(2)
        optimizer = Half([p])
        optimizer.step()
        optimizer.step()
        return p.detach(), optimizer.state_dict(), repr(optimizer)

    both(run)


def test_a_new_rate_compiles_nothing():
    p = jtorch.nn.Parameter(jtorch.ones(3))
    optimizer = jtorch.optim.AdamW([p])
    for step in range(4):
        optimizer.param_groups[0]["lr"] = 0.1 / (step + 1)
        p.grad = jtorch.ones(3)
        optimizer.step()
    assert len(optimizer._fused.functions) == 1


@pytest.mark.parametrize("name, count", [("SGD", 40), ("Adam", 150), ("AdamW", 40), ("RMSprop", 40), ("Adagrad", 40)])
def test_a_step_is_one_node(name, count):
    """Of many parameters, whatever their shapes, once the state is there."""
    parameters = [jtorch.nn.Parameter(jtorch.ones(2, k % 7 + 1)) for k in range(count)]
    optimizer = getattr(jtorch.optim, name)(parameters, lr=0.1)
    nodes = []
    for _ in range(3):
        for p in parameters:
            p.grad = jtorch.from_numpy(np.ones(tuple(p.shape), np.float32))
        jtorch.synchronize()  # steps of other tests may wait
        known = len(ledger.entries)
        optimizer.step()
        jtorch.synchronize()
        nodes.append([e.nodes for e in ledger.entries[known:]])
    assert [1] in nodes[:2] and nodes[2] == []  # the third step runs the program of the second


def test_loss_scale_and_skipped_step():
    """What a gradient scaler sets: the gradients are divided, and nothing moves when they were not finite."""
    results = []
    for found in (0.0, 1.0):
        p = jtorch.nn.Parameter(jtorch.ones(2))
        optimizer = jtorch.optim.Adam([p], lr=0.1)
        p.grad = jtorch.full((2,), 8.0)
        optimizer.grad_scale = jtorch.tensor(8.0)
        optimizer.found_inf = jtorch.tensor(found)
        optimizer.step()
        results.append((p.detach().numpy(), optimizer.state[p]["step"].item()))
    assert abs(results[0][0][0] - 0.9) < 1e-6 and results[0][1] == 1
    assert results[1][0][0] == 1 and results[1][1] == 0


def test_optax():
    optax = pytest.importorskip("optax")
    from jtorch.optim.optax import Optax  # noqa: PLC0415

    torch.manual_seed(0)
    start = torch.randn(4)
    a, b = (jtorch.nn.Parameter(jtorch.tensor(start.numpy())) for _ in range(2))
    one, two = Optax([a], optax.adam(1e-2)), jtorch.optim.Adam([b], lr=1e-2)
    for _ in range(5):
        for p, o in ((a, one), (b, two)):
            o.zero_grad()
            (p**2).sum().backward()
            o.step()
    assert abs(a.detach().numpy() - b.detach().numpy()).max() < 1e-6


def test_duplicates_warn():
    p = jtorch.nn.Parameter(jtorch.ones(2))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        jtorch.optim.SGD([p, p])
    assert "duplicate parameters" in str(caught[0].message)


def test_zero_grad_asks_a_class_that_keeps_its_gradient_elsewhere():
    def run(t):
        class Held(t.nn.Parameter):
            def __new__(cls, data):
                return t.nn.Parameter.__new__(cls)

            def __init__(self, data):
                self.inner = t.nn.Parameter(data)

            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                return func(*(a.inner if isinstance(a, cls) else a for a in args), **(kwargs or {}))

        p = Held(t.ones(3))
        optimizer = t.optim.SGD([p], lr=0.1)
        found = []
        for _ in range(2):
            (p.inner * 2).sum().backward()
            found.append(p.inner.grad.clone())
            optimizer.zero_grad()
            found.append(p.inner.grad is None)
        return found

    both(run)


@pytest.mark.parametrize("lr", [0.0, 2000.0])
def test_a_line_search_that_meets_infinity_stays_finite(lr):
    def program(t):
        p = t.tensor([5.0, 2.0], dtype=t.float64, requires_grad=True)
        o = t.optim.LBFGS([p], lr=lr, line_search_fn="strong_wolfe", max_iter=3)

        def closure():
            o.zero_grad()
            loss = p.exp().sum() + (-p).exp().sum()
            loss.backward()
            return loss

        return o.step(closure).item(), p.detach()

    both(program)


@pytest.mark.parametrize("name", ["Adam", "AdamW", "Adagrad", "NAdam", "Adadelta"])
def test_a_state_that_is_loaded_again_has_counted_on(name):
    """What has been loaded is the optimizer's state from then on, in PyTorch too; a second load goes on from there."""

    def program(t):
        params = [t.ones(3, requires_grad=True), t.full((2, 2), 2.0, requires_grad=True)]
        optimizer = getattr(t.optim, name)(params, lr=0.1)

        def run(steps):
            for _ in range(steps):
                optimizer.zero_grad()
                sum((p * p).sum() for p in params).backward()
                optimizer.step()

        run(3)
        saved = copy.deepcopy(optimizer.state_dict())
        for steps in (2, 3, 1):
            run(steps)
            optimizer.load_state_dict(saved)
        run(2)
        return params, [s["step"] for s in saved["state"].values()], [optimizer.state[p]["step"] for p in params]

    both(program)


OLD = {  # what the states of files of before PyTorch 1.12 hold
    "Adam": ("exp_avg", "exp_avg_sq"),
    "AdamW": ("exp_avg", "exp_avg_sq"),
    "Adamax": ("exp_avg", "exp_inf"),
    "RAdam": ("exp_avg", "exp_avg_sq"),
    "NAdam": ("exp_avg", "exp_avg_sq", 0.8),
    "ASGD": ("ax", 0.01, 1),
    "RMSprop": ("square_avg",),
    "Rprop": ("prev", "step_size"),
    "Adadelta": ("square_avg", "acc_delta"),
    "Adagrad": ("sum",),
}
_NUMBERS = {"NAdam": ("mu_product",), "ASGD": ("eta", "mu")}


@pytest.mark.parametrize("name", OLD)
def test_old_states(name):
    """Their counts are numbers, and their groups lack the options that came later."""

    def program(t):
        params = [t.ones(3, requires_grad=True), t.full((2, 2), 2.0, requires_grad=True)]
        optimizer = getattr(t.optim, name)(params)
        numbers = iter(_NUMBERS.get(name, ()))
        entries = [(e, None) if isinstance(e, str) else (next(numbers), e) for e in OLD[name]]
        state = {
            i: {"step": 3, **{k: t.full_like(p, 0.5) if v is None else v for k, v in entries}}
            for i, p in enumerate(params)
        }
        late = ("foreach", "maximize", "capturable", "differentiable", "fused", "decoupled_weight_decay")
        groups = [{k: v for k, v in g.items() if k not in late} for g in optimizer.state_dict()["param_groups"]]
        optimizer.load_state_dict({"state": state, "param_groups": groups})
        for p in params:
            p.grad = p.detach() * 0.1
        optimizer.step()
        return params, optimizer.state_dict()

    both(program)


@pytest.mark.parametrize("state", [{0: 3}, {0: {"exp_avg": 1.0}}])
def test_states_of_another_kind(state):
    def program(t):
        optimizer = t.optim.Adam([t.ones(2, requires_grad=True)])
        optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})

    assert both(program).error is not None


@pytest.mark.parametrize("beta", [0.0, 0.9, 0.95, 0.999, 0.999999])
@pytest.mark.parametrize("step", [1.0, 2.0, 100.0, 1e6])
def test_bias_corrections_of_tpus(monkeypatch, beta, step):
    """In single precision as exact as rounded from double precision."""
    monkeypatch.setattr(formulas.backend, "on_tpu", lambda: True)
    got = formulas.bias_correction(jnp.float64(beta), jnp.float64(step))
    assert got.dtype == jnp.float64
    np.testing.assert_allclose(got, 1 - beta**step, rtol=3e-7)
