"""Transforms against PyTorch's: values, inverses, volumes, shapes, equality, caches, and the registries of constraints."""

import warnings

import pytest

import jtorch
from tests import oracle
from tests.oracle import torch

# build, and the shape of an input; inputs of `positive` domains are made positive
ROWS = {
    "Abs": ("AbsTransform()", (3,)),
    "Affine": ("AffineTransform(T([1.0, 2.0, 3.0]), T([-1.0, 2.0, 0.5]))", (2, 3)),
    "Affine-number": ("AffineTransform(1.0, -2.0)", (3,)),
    "Affine-event": ("AffineTransform(T([1.0, 2.0, 3.0]), T([-1.0, 2.0, 0.5]), event_dim=1)", (2, 3)),
    "Cat": ("CatTransform([ExpTransform(), AffineTransform(1.0, 2.0)], dim=-1, lengths=[1, 2])", (2, 3)),
    "Cat-0": ("CatTransform([ExpTransform(), SigmoidTransform()], dim=0)", (2, 3)),
    "Compose": ("ComposeTransform([ExpTransform(), AffineTransform(1.0, 2.0)])", (2, 3)),
    "Compose-events": ("ComposeTransform([AffineTransform(1.0, 2.0), StickBreakingTransform()])", (2, 3)),
    "Compose-after": ("ComposeTransform([StickBreakingTransform(), PowerTransform(T(2.0))])", (2, 3)),
    "Compose-empty": ("ComposeTransform([])", (3,)),
    "CorrCholesky": ("CorrCholeskyTransform()", (2, 3)),
    "CumulativeDistribution": ("CumulativeDistributionTransform(Normal(0.5, 2.0))", (3,)),
    "Exp": ("ExpTransform()", (3,)),
    "Independent": ("IndependentTransform(ExpTransform(), 1)", (2, 3)),
    "LowerCholesky": ("LowerCholeskyTransform()", (2, 3, 3)),
    "PositiveDefinite": ("PositiveDefiniteTransform()", (2, 3, 3)),
    "Power": ("PowerTransform(T([2.0, 0.5, -1.0]))", (2, 3)),
    "Reshape": ("ReshapeTransform((3,), (1, 3))", (2, 3)),
    "Sigmoid": ("SigmoidTransform()", (3,)),
    "Softmax": ("SoftmaxTransform()", (2, 3)),
    "Softplus": ("SoftplusTransform()", (3,)),
    "Stack": ("StackTransform([ExpTransform(), SoftplusTransform()], dim=-1)", (3, 2)),
    "StickBreaking": ("StickBreakingTransform()", (2, 3)),
    "Tanh": ("TanhTransform()", (3,)),
}


def scope(module):
    d = module.distributions
    names = {name: getattr(d, name) for name in d.__all__}
    return names | {"T": lambda x: module.tensor(x, dtype=module.float64), "c": d.constraints, "torch": module}


def agree(program):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected, got = oracle.run(program, torch), oracle.run(program, jtorch)
    oracle.agree(expected, got, layout=False)


@pytest.fixture(autouse=True)
def eagerly():
    with jtorch.execution_mode("eager"):
        yield


def given(module, shape, positive):
    torch.manual_seed(0)
    x = torch.randn(shape, dtype=torch.float64)
    x = x.exp() if positive else x
    return x if module is torch else oracle.from_torch(x)


@pytest.mark.parametrize("cache", [0, 1])
@pytest.mark.parametrize("name", ROWS)
def test_values(name, cache):
    build, shape = ROWS[name]

    def program(module):
        t = eval(build, scope(module))
        t = t.with_cache(1) if cache else t
        x = given(module, shape, "Power" in name and "after" not in name).requires_grad_()
        y = t(x)
        back = t.inv(y)
        found = [y, back, back is x, repr(t).replace("jtorch", "torch"), repr(t.inv), t.bijective, t.inv.inv is t]
        found += [repr(t.domain), repr(t.codomain), tuple(t.forward_shape(x.shape)), tuple(t.inverse_shape(y.shape))]
        try:
            volume = t.log_abs_det_jacobian(x, y)
        except NotImplementedError:
            return found
        found += [volume, t.inv.log_abs_det_jacobian(y, x)]
        if volume.requires_grad:
            found.append(module.autograd.grad(volume.sum(), x, allow_unused=True))
        return found

    agree(program)


@pytest.mark.parametrize("name", ROWS)
def test_volume_is_the_jacobian(name):
    """log|det| of jtorch's own Jacobian, where the transform keeps the number of dimensions."""
    build, shape = ROWS[name]
    t = eval(build, scope(jtorch))
    if (
        not t.bijective
        or name in ("CorrCholesky", "StickBreaking", "Reshape")
        or name.startswith(("Compose-", "Cat-0"))
    ):
        pytest.skip("its result lies in a space of another dimension, or of another shape")
    n = shape[-1]
    x = given(jtorch, (n,), "Power" in name)
    jacobian = jtorch.autograd.functional.jacobian(t, x)
    want = jtorch.linalg.slogdet(jacobian).logabsdet
    assert jtorch.allclose(t.log_abs_det_jacobian(x, t(x)).sum(), want, atol=1e-9)


@pytest.mark.parametrize("first", ROWS)
def test_equality(first):
    def program(module):
        names = scope(module)
        t = eval(ROWS[first][0], names)
        return [t == eval(build, names) for build, _ in ROWS.values()] + [t == t, t.inv == t.inv, t != t]

    agree(program)


CONSTRAINTS = [
    "c.real", "c.positive", "c.nonnegative", "c.greater_than(2.0)", "c.greater_than_eq(-1.0)", "c.less_than(3.0)",
    "c.unit_interval", "c.interval(-1.0, 2.0)", "c.half_open_interval(0.0, 3.0)", "c.simplex", "c.real_vector",
    "c.lower_cholesky", "c.positive_definite", "c.positive_semidefinite", "c.corr_cholesky", "c.independent(c.positive, 1)",
    "c.cat([c.positive, c.unit_interval, c.real], dim=-1)", "c.stack([c.positive, c.unit_interval, c.real], dim=-1)",
    "c.boolean", "c.nonnegative_integer", "c.one_hot", "c.symmetric", "c.dependent", "c.lower_triangular",
]  # fmt: skip


@pytest.mark.parametrize("registry", ["biject_to", "transform_to"])
@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_registries(constraint, registry):
    """Unconstrained numbers end up inside, in the same place as in PyTorch."""

    def program(module):
        wanted = eval(constraint, scope(module))
        t = getattr(module.distributions, registry)(wanted)
        y = t(given(module, (2, 3, 3), False))
        return y, wanted.check(y), repr(t).replace("jtorch", "torch"), t.bijective

    agree(program)


def test_register_one_of_ours():
    registry = jtorch.distributions.constraint_registry.ConstraintRegistry()
    constraints = jtorch.distributions.constraints

    class Odd(constraints.Constraint):
        pass

    @registry.register(Odd)
    def factory(constraint):
        return jtorch.distributions.ExpTransform()

    assert isinstance(registry(Odd()), jtorch.distributions.ExpTransform)
    with pytest.raises(NotImplementedError, match="Cannot transform _Real constraints"):
        registry(constraints.real)
    with pytest.raises(TypeError, match="Expected constraint to be either"):
        registry.register(3, factory)


def test_inverse_goes_when_nobody_holds_it():
    t = jtorch.distributions.ExpTransform()
    inverse = t.inv
    assert t.inv is inverse and inverse.inv is t
