"""Run-time numbers: what they travel as, and what is kept on the device."""

import jax
import numpy as np
import pytest

from jtorch.core import device, program
from jtorch.core.chain import Chain, Links
from jtorch.core.packing import RUNTIME
from tests.core.test_program import SCALED, path


def scaling(n):
    """A program that multiplies by `n` numbers, one after the other."""
    state = path(*[(SCALED, (i - 1 if i else -1,), RUNTIME) for i in range(n)])
    return program.Program(state.nodes(), (False,) * (n - 1) + (True,), (False,), device.cpu)


@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_numbers_travel_together(n):
    prog = scaling(n)
    numbers = [(float(i + 2),) for i in range(n)]
    prog.compile()
    for _ in range(3):  # the second time the same objects come they are put on the device
        args = prog.pack.pack(numbers)
        assert len(args) <= 2
        [got] = prog.call(np.ones(3, np.float32), *args)
        np.testing.assert_allclose(got, np.prod([k for (k,) in numbers]) * np.ones(3))
    assert all(isinstance(a, jax.Array) for a in args)


def test_numbers_of_unneeded_nodes_are_left_out():
    state = path((SCALED, (-1,), RUNTIME), (SCALED, (-1,), RUNTIME))
    prog = program.Program(state.nodes(), (False, True), (False,), device.cpu)
    assert prog.pack.pack([(5.0,), (7.0,)]) == (7.0,)


@pytest.mark.parametrize("n", [1, 3])
def test_other_numbers_are_seen(n):
    prog = scaling(n)
    prog.compile()
    one, zero, minus = 1.0, 0.0, -0.0
    for first in (one, one, zero, zero, minus, minus, 2.0, one):
        [got] = prog.call(np.ones(3, np.float32), *prog.pack.pack([(first,)] + [(one,)] * (n - 1)))
        np.testing.assert_array_equal(got, np.full(3, first, np.float32))
        assert np.signbit(got[0]) == np.signbit(first)


def test_a_chain_sees_numbers_of_single_runs():
    prog = scaling(1)
    a, b = 2.0, 3.0
    made = Chain.__new__(Chain)
    made.links = Links(prog, [0], [0], [], [], [0])
    made.length, made.last = 4, {}
    for runs in ([a, a, a, a], [a, a, a, a], [a, b, a, a], [a, a, a, b], [b, b, b, b], [b, b, b, b]):
        [got] = made.stacked([[k] for k in runs])
        np.testing.assert_array_equal(got, runs)
    assert isinstance(got, jax.Array)


@pytest.mark.parametrize("n", [1, 3])
def test_a_tpu_is_given_no_complex128(n):
    state = path(*[(SCALED, (i - 1 if i else -1,), RUNTIME) for i in range(n)])
    live = (False,) * (n - 1) + (True,)
    for kind, wanted in (("cpu", np.complex128), ("tpu", np.complex64)):
        args = program.Program(state.nodes(), live, (False,), device.Device(kind)).pack.packed([2j] * n)
        assert [np.asarray(a).dtype for a in args] == [wanted]
