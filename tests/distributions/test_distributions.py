"""Every distribution against PyTorch's: what it is, densities, quantiles, entropies, gradients, expanding, samples."""

import functools
import warnings

import pytest

import jtorch
from tests import oracle
from tests.oracle import torch

from .rows import CASES

IDS = [c.name for c in CASES]
# One parameterisation of each: the other ones differ in what is computed before the draw.
ONE = list({c.name.split("-")[0]: c for c in reversed(CASES)}.values())
PROPERTIES = ("mean", "mode", "variance", "stddev")


def tensors(case, module, dtype, grad):
    made = {}
    for name, value in case.params.items():
        made[name] = module.tensor(value, dtype=getattr(module, dtype), requires_grad=grad)
    return made


def build(case, module, params):
    scope = {name: getattr(module.distributions, name) for name in module.distributions.__all__}
    return eval(case.build, scope | {"torch": module} | params)


def made(case, module, dtype=None):
    return build(case, module, tensors(case, module, dtype or case.dtype, False))


@functools.cache
def draws(name):
    """Values inside the support: PyTorch's samples."""
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return made(next(c for c in CASES if c.name == name), torch).sample((3,))


def agree(program, case, least=None):
    """Run a program of a module in both and compare what it gives or raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected, got = oracle.run(program, torch), oracle.run(program, jtorch)
    if expected.error is not None and not isinstance(expected.error, NotImplementedError):
        raise expected.error
    oracle.agree(expected, got, layout=False, least=case.tol if least is None else least)
    return got


def value(case, module):
    x = draws(case.name)
    return x if module is torch else oracle.from_torch(x)


@pytest.fixture(autouse=True)
def not_compiled():
    """Recorded: numpy runs what is new. test_recorded has the other modes."""
    with jtorch.execution_mode("auto"):
        yield


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_what_it_is(case):
    def program(module):
        d = made(case, module)
        text = lambda x: repr(x).replace("jtorch", "torch")
        wanted = [text(d), tuple(d.batch_shape), tuple(d.event_shape), d.has_rsample, d.has_enumerate_support]
        return [*wanted, text(d.support), text(d.arg_constraints), [d.support.event_dim, d.support.is_discrete]]

    agree(program, case)


@pytest.mark.parametrize("name", [*PROPERTIES, "entropy", "perplexity"])
@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_moments(case, name):
    if (case.name, name) == ("Kumaraswamy", "mode"):
        return  # PyTorch's is nan everywhere; test_kumaraswamy_mode has the number

    def program(module):
        params = tensors(case, module, case.dtype, True)
        d = build(case, module, params)
        try:
            found = getattr(d, name)
        except NotImplementedError as error:
            return str(error).replace("jtorch", "torch")
        found = found() if callable(found) else found
        if not found.requires_grad:
            return found
        finite = module.where(found.isfinite(), found, 0.0)
        return found, module.autograd.grad(finite.sum(), list(params.values()), allow_unused=True)

    agree(program, case)


def test_kumaraswamy_mode():
    """Where the density is highest; PyTorch takes the logarithm of a negative number there."""
    d = jtorch.distributions.Kumaraswamy(jtorch.tensor([5.0, 2.0, 0.5]), jtorch.tensor([2.0, 3.0, 2.0]))
    x = jtorch.linspace(0.0005, 0.9995, 1000).unsqueeze(-1)
    best = x[d.log_prob(x)[:, :2].argmax(0), 0]
    assert jtorch.allclose(d.mode[:2], best, atol=2e-3)
    assert d.mode[2].isnan()


@pytest.mark.parametrize("method", ["log_prob", "cdf"])
@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_at_samples(case, method):
    # jtorch has the derivative of the incomplete gamma function in its order; PyTorch refuses to give it
    grad = method != "cdf" or case.name not in ("Chi2", "Gamma", "InverseGamma")

    def program(module):
        params = tensors(case, module, case.dtype, grad)
        x = value(case, module)
        x = x.clone().requires_grad_(x.is_floating_point())
        found = getattr(build(case, module, params), method)(x)
        if not found.requires_grad:
            return found
        inputs = [t for t in (*params.values(), x) if t.requires_grad]
        weights = oracle.cotangent(found, 1, module)
        return found, module.autograd.grad(found, inputs, weights, allow_unused=True)

    agree(program, case)


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_icdf(case):
    def program(module):
        params = tensors(case, module, case.dtype, True)
        d = build(case, module, params)
        p = module.tensor([0.01, 0.3, 0.5, 0.99], dtype=getattr(module, case.dtype))
        p = p.view((4,) + (1,) * len(d.batch_shape)).requires_grad_()
        found = d.icdf(p)
        return found, module.autograd.grad(found.sum(), [p, *params.values()], allow_unused=True)

    agree(program, case)


@pytest.mark.parametrize("case", ONE, ids=lambda c: c.name)
def test_expand(case):
    def program(module):
        d = made(case, module)
        e = d.expand((2, *d.batch_shape) if len(d.batch_shape) < 2 else (4, *d.batch_shape))
        x = value(case, module).unsqueeze(1)
        shapes = [tuple(e.batch_shape), tuple(e.event_shape), type(e).__name__, repr(e)]
        drawn = tuple(e.sample().shape) if case.samples == "same" else None
        return shapes, e.log_prob(x), drawn, e._validate_args

    agree(program, case)


@pytest.mark.parametrize("expand", [True, False])
@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_enumerate_support(case, expand):
    agree(lambda module: made(case, module).enumerate_support(expand=expand), case)


SAME = [c for c in CASES if c.samples == "same"]


@pytest.mark.parametrize(
    "case, dtype",
    [(c, dtype) for c in SAME for dtype in dict.fromkeys(("float32", c.dtype)) if c in ONE or dtype == c.dtype],
    ids=lambda x: getattr(x, "name", x),
)
def test_same_samples(case, dtype):
    """The same seed gives PyTorch's numbers, and gradients through them."""

    def program(module):
        module.manual_seed(3)
        params = tensors(case, module, dtype, True)
        d = build(case, module, params)
        results = [d.sample(), d.sample((3, 5))]
        if d.has_rsample:
            x = d.rsample((4,))
            grads = module.autograd.grad(x, list(params.values()), oracle.cotangent(x, 1, module), allow_unused=True)
            results += [x, grads]
        return results

    least = (2e-5, 2e-6) if dtype == "float32" else None
    agree(program, case, least)


@pytest.mark.filterwarnings("ignore:Singular sample")
def test_one_degree_of_freedom_for_many_matrices():
    matrices = jtorch.eye(2).expand(3, 2, 2)
    for df in (4, jtorch.tensor(4.0), jtorch.tensor([4.0, 5.0, 6.0])):
        d = jtorch.distributions.Wishart(df, precision_matrix=matrices)
        assert d._dist_chi2.batch_shape == (3, 2)
        assert d.sample((5,)).shape == (5, 3, 2, 2)


DEVICE = [c for c in ONE if c.samples == "device"]


@pytest.mark.filterwarnings("ignore:Singular sample detected")
@pytest.mark.parametrize("case", DEVICE, ids=lambda c: c.name)
def test_device_samples(case):
    """Draws on the device: repeatable, inside the support, with the distribution's mean and variance."""
    d = made(case, jtorch, "float32")
    jtorch.manual_seed(1)
    x = d.sample((4000,))
    jtorch.manual_seed(1)
    assert jtorch.equal(x, d.sample((4000,)))
    assert not jtorch.equal(x, d.sample((4000,)))
    d._validate_sample(x[:500] if "Wishart" in case.name else x)
    try:
        mean, variance = d.mean, d.variance
    except NotImplementedError:
        mean = variance = None
    if mean is not None:
        known = mean.isfinite() & variance.isfinite()
        error = ((x.mean(0) - mean) / (variance / len(x)).sqrt())[known].abs()
        assert error.numel() == 0 or error.max().item() < 5
    assert tuple(x.shape) == (4000, *made(case, torch, "float32").sample().shape)


@pytest.mark.filterwarnings("ignore:Singular sample detected")
@pytest.mark.parametrize("case", [c for c in DEVICE if c.name != "LKJCholesky"], ids=lambda c: c.name)
def test_device_gradients(case):
    """The gradient of a sample mean estimates that of the mean: implicit reparameterisation."""
    params = tensors(case, jtorch, case.dtype, True)
    d = build(case, jtorch, params)
    if not d.has_rsample:
        with pytest.raises(NotImplementedError):
            d.rsample()
        return
    jtorch.manual_seed(0)
    x = d.rsample((2000,))
    known = (d.mean.isfinite() & d.variance.isfinite()).detach()
    leaves = list(params.values())
    pick = lambda t: jtorch.where(known, t, 0.0).sum()
    estimate = jtorch.autograd.grad(pick(x.mean(0)), leaves, retain_graph=True)
    exact = jtorch.autograd.grad(pick(d.mean), leaves, allow_unused=True)
    for found, wanted in zip(estimate, exact):
        wanted = jtorch.zeros_like(found) if wanted is None else wanted
        assert found.isfinite().all()
        assert ((found - wanted).abs() <= 0.25 + 0.25 * wanted.abs()).all(), (found, wanted)


# A whole program is compiled for each: a few that between them use most kinds of formulas.
RECORDED = ("Normal", "Bernoulli-logits", "Categorical", "Gamma", "RelaxedOneHotCategorical", "MixtureSameFamily")


@pytest.mark.parametrize("case", [c for c in CASES if c.name in RECORDED], ids=lambda c: c.name)
def test_recorded(case):
    """Recorded and, the third time, compiled, a density and its gradients are what they are op by op."""
    x = value(case, jtorch)

    def step(x):
        params = tensors(case, jtorch, case.dtype, True)
        log_prob = build(case, jtorch, params).log_prob(x)
        return log_prob, jtorch.autograd.grad(log_prob.sum(), list(params.values()))

    with jtorch.execution_mode("eager"):
        eager = oracle.to_torch(step(x))
    for _ in range(3):
        oracle.compare(eager, oracle.to_torch(step(x)))
