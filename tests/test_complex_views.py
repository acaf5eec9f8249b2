"""Real and imaginary parts share the storage of their tensor, and gradients flow through them."""

import numpy as np
import pytest

import jtorch
from tests import oracle

torch = oracle.torch


def sample(module, **options):
    return module.tensor([[1 + 2j, 3 + 4j], [5 + 6j, 7 + 8j]], **options)


def same(got, want):
    np.testing.assert_allclose(got.detach().numpy(), want.detach().resolve_conj().numpy())


def test_writes_reach_the_complex_tensor():
    def run(module):
        x = sample(module)
        x.real[0] = 9
        module.view_as_real(x)[1, :, 1] = -1
        x.t().imag[1, 0] += 10
        return x

    same(run(jtorch), run(torch))


def test_strides_and_offsets():
    for name in ("view_as_real", "real", "imag"):
        got, want = (getattr(m, name)(sample(m).t()[1:]) for m in (jtorch, torch))
        assert (got.stride(), got.storage_offset()) == (want.stride(), want.storage_offset())
    got, want = (m.view_as_complex(m.ones(4, 3, 2)[::2]) for m in (jtorch, torch))
    assert got.stride() == want.stride()


def test_gradients():
    def run(module):
        x = sample(module, requires_grad=True)
        pairs = module.view_as_real(x)
        (pairs * pairs).sum().backward()
        (x.real * x.imag).sum().backward()
        return x.grad

    same(run(jtorch), run(torch))


@pytest.mark.parametrize("shape", [(3, 3), (3, 1), ()])
def test_errors(shape):
    for name, make in (("view_as_complex", "ones"), ("view_as_real", "ones")):
        with pytest.raises(RuntimeError) as want:
            getattr(torch, name)(getattr(torch, make)(shape))
        with pytest.raises(RuntimeError) as got:
            getattr(jtorch, name)(getattr(jtorch, make)(shape))
        assert str(got.value).split("\n")[0] == str(want.value).split("\n")[0]
