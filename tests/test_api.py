"""Settings and small public functions of the top module."""

import importlib.util
import pickle

import pytest

import jtorch
from jtorch.api import SUBMODULES
from tests.oracle import both


def test_predicates():
    both(
        lambda t: [
            t.is_tensor(t.ones(1)), t.is_tensor(1), t.is_floating_point(t.ones(1)), t.is_complex(t.ones(1)),
            t.is_nonzero(t.ones(1)),
            t.numel(t.ones(2, 3)), t.is_same_size(t.ones(2), t.ones(3)), t.is_storage(3), t.is_signed(t.ones(1)),
        ]
    )  # fmt: skip


def test_every_submodule_can_be_imported_before_it_is_asked_for():
    assert [n for n in SUBMODULES if not importlib.util.find_spec(f"jtorch.{n}")] == []


def test_constants():
    both(lambda t: [t.pi, t.e, t.inf, str(t.nan), t.newaxis])


def test_print_options():
    def program(t):
        t.set_printoptions(precision=2, sci_mode=False)
        try:
            return repr(t.tensor([1.23456, 1e-7]))
        finally:
            t.set_printoptions(profile="default")

    both(program)


def test_grad_modes():
    def program(t):
        seen = [t.is_grad_enabled()]
        with t.no_grad():
            seen.append(t.is_grad_enabled())
            with t.set_grad_enabled(True):
                seen.append(t.is_grad_enabled())

        @t.no_grad()
        def f():
            return t.is_grad_enabled()

        seen += [f(), t.is_grad_enabled(), t.is_inference_mode_enabled()]
        return seen

    both(program)


def test_pickles_of_constants():
    for x in (jtorch.float32, jtorch.device("cpu"), jtorch.strided, jtorch.channels_last, jtorch.Size((1,))):
        assert pickle.loads(pickle.dumps(x)) == x


def test_typename():
    both(lambda t: [t.typename(t.ones(1)), t.typename(t.tensor([1]))])


def test_broadcast_shapes():
    both(lambda t: [t.broadcast_shapes((2, 1), (3,)), t.broadcast_tensors(t.ones(2, 1), t.ones(3))[0].shape])


def test_version():
    assert isinstance(jtorch.__version__, str)
    assert dir(jtorch) == sorted(dir(jtorch))


def test_manual_seed_returns_a_generator():
    both(lambda t: [t.manual_seed(3).initial_seed(), t.initial_seed(), t.seed() >= 0])
    with pytest.raises((TypeError, ValueError, RuntimeError)):
        jtorch.manual_seed("a")
