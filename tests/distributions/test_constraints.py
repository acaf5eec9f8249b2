"""Constraints against PyTorch's: what satisfies them, facts about them, reprs, and the same test on the host."""

import pickle

import numpy as np
import pytest

import jtorch
from tests import oracle
from tests.oracle import torch

VECTORS = [
    [0.2, 0.3, 0.5],
    [0.0, 1.0, 0.0],
    [1.0, 1.0, -1.0],
    [0.5, 0.5, 0.5],
    [-1.0, 2.0, 0.0],
    [3.0, 2.0, float("nan")],
]
FACTOR = [[1.0, 0.0, 0.0], [0.6, 0.8, 0.0], [0.0, 0.6, 0.8]]
MATRICES = [
    FACTOR,
    [[2.0, 0.5, 0.1], [0.5, 1.0, -0.3], [0.1, -0.3, 1.5]],
    [[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 0.0]],
    [[-1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
    [[1.0, 0.0, 0.0], [0.5, 2.0, 0.0], [-0.3, 0.2, 0.7]],
]
BUILDS = [
    "c.boolean", "c.one_hot", "c.nonnegative_integer", "c.positive_integer", "c.integer_interval(0, 2)",
    "c.integer_interval(0, torch.tensor([0.0, 1.0, 2.0]))", "c._IntegerLessThan(1)", "c.real", "c.real_vector",
    "c.positive", "c.nonnegative", "c.greater_than(0.2)", "c.greater_than_eq(torch.tensor([0.2, 0.5, 0.5]))",
    "c.less_than(0.5)", "c.multinomial(1)", "c.unit_interval", "c.interval(-1, torch.tensor(0.5))",
    "c.half_open_interval(0.0, 1.0)", "c.simplex", "c.independent(c.positive, 1)", "c.independent(c.real, 0)",
    "c.independent(c.unit_interval, 2)", "c.lower_triangular", "c.lower_cholesky", "c.corr_cholesky", "c.square",
    "c.symmetric", "c.positive_semidefinite", "c.positive_definite", "c.cat([c.positive, c.boolean], -1, [1, 2])",
    "c.stack([c.positive, c.real, c.boolean], -1)", "c.stack([c.simplex] * 3, 0)", "c.cat([c.real, c.positive, c.real], 1)",
    "c.MixtureSameFamilyConstraint(c.positive)", "c.MixtureSameFamilyConstraint(c.simplex)",
]  # fmt: skip


def build(text, module):
    return eval(text, {"c": module.distributions.constraints, "torch": module})


@pytest.fixture(autouse=True)
def eagerly():
    with jtorch.execution_mode("eager"):
        yield


@pytest.mark.parametrize("values", [VECTORS, MATRICES, FACTOR, [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]], ids=range(4))
@pytest.mark.parametrize("text", BUILDS)
def test_check(text, values):
    if "definite" in text and values is MATRICES:
        values = MATRICES[1:4]  # symmetric ones: PyTorch answers only for symmetry where one of a batch is not
    oracle.both(lambda module: build(text, module).check(module.tensor(values)), layout=False)


@pytest.mark.parametrize("text", [*BUILDS, "c.dependent(is_discrete=True, event_dim=1)"])
def test_facts(text):
    def program(module):
        found = build(text, module)
        return found.is_discrete, found.event_dim, repr(found), module.distributions.constraints.is_dependent(found)

    oracle.both(program)


@pytest.mark.parametrize("text", BUILDS)
def test_host_check_is_the_same(text):
    found = build(text, jtorch)
    if found.check_host is None:
        assert "c.real" not in text or "c.cat" in text or "c.stack" in text
        return
    array = np.array(VECTORS, np.float32)
    assert np.array_equal(found.check_host(array), np.asarray(found.check(jtorch.tensor(array))))


def test_dependent_property():
    def program(module):
        c = module.distributions.constraints

        class Owner:
            low = 1.0

            @c.dependent_property(is_discrete=False, event_dim=0)
            def support(self):
                return c.greater_than(self.low)

            plain = c.dependent_property(lambda self: c.real)

        on_class = Owner.support
        return [
            repr(Owner().support), on_class.event_dim, on_class.is_discrete, c.is_dependent(on_class),
            c.is_dependent(Owner().support), repr(Owner().plain), Owner.plain.event_dim,
        ]  # fmt: skip

    oracle.both(program)


@pytest.mark.parametrize("text", ["real_vector", "independent(independent(positive, 1), 2)", "simplex"])
def test_through_a_pickle(text):
    constraint = eval(text, vars(jtorch.distributions.constraints))
    again = pickle.loads(pickle.dumps(constraint))
    assert repr(again) == repr(constraint)
    assert again.check_host(np.ones((1, 1, 3)) / 3).all()


def test_public_names():
    assert jtorch.distributions.constraints.__all__ == sorted(torch.distributions.constraints.__all__)
