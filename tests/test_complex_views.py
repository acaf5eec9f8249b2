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


HEAD = """
from torch.autograd.forward_ad import dual_level, make_dual, unpack_dual
from torch.utils._python_dispatch import TorchDispatchMode
seen = []
class Log(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if "view_as" in str(func):
            seen.append(str(func))
        return func(*args, **(kwargs or {}))
def write(x, r):
    x.real.mul_(2)
    x[1:].imag[0] = 5.0
    torch.view_as_real(x)[0, 1] -= 3
    torch.view_as_complex(r).mul_(1j)
def made():
    return torch.tensor([1 + 2j, 3 + 4j]), torch.tensor([[1.0, 2.0], [3.0, 4.0]])
"""
AROUND = {
    "autocast": """
a = made()
with torch.autocast("cpu"):
    write(*a)
""",
    "a dispatch mode, which sees them": """
a = made()
with Log():
    write(*a)
b = torch.zeros(2, dtype=torch.complex64)
with Log(), torch.autocast("cpu"):
    b.real += 1
""",
    "a copy in a dispatch mode": """
a = made()
with Log():
    torch.view_as_real_copy(a[0]).mul_(2)
    torch.view_as_complex_copy(a[1]).mul_(2)
""",
    "a dual level, of what is not dual": """
a = made()
with dual_level():
    write(*a)
    none = [unpack_dual(t).tangent for t in a]
""",
    "dual tensors": """
a = made()
with dual_level():
    d = [make_dual(t, t.sin()) for t in a]
    write(*d)
    b = [unpack_dual(t) for t in d]
    c = [unpack_dual(t.imag if t.is_complex() else torch.view_as_complex(t)) for t in d]
""",
    "a tangent that lies otherwise": """
a = torch.arange(12.0).view(3, 4).to(torch.complex64) * (1 + 1j)
with dual_level():
    d = make_dual(a.t(), a.sin().t().contiguous())
    d.real[1] = 7.0
    b = unpack_dual(d)
""",
    "a base that becomes dual": """
a = made()
with dual_level():
    views = a[0].imag, torch.view_as_complex(a[1]), a[1].view(torch.int32)
    for t in a:
        t.copy_(make_dual(t.clone(), t.sin()))
    b = [unpack_dual(v) for v in views]
""",
    "a dual number written into a part": """
a = made()
with dual_level():
    a[0].imag.copy_(make_dual(torch.ones(2), torch.tensor([2.0, 3.0])))
    torch.view_as_complex(a[1])[0] = make_dual(torch.tensor(1j), torch.tensor(2 + 3j))
    b = [unpack_dual(t) for t in a]
""",
    "jvp and grad": """
x, r = made()
def f(x, r):
    x, r = x * 1, r * 1
    write(x, r)
    return x * r.sum(), r
a = torch.func.jvp(f, (x, r), (x.sin(), r.cos()))
b = torch.func.grad(lambda r: f(x * r.sum(), r)[1].sum())(r)
c = torch.func.jvp(torch.func.grad(lambda r: f(x * r.sum(), r)[0].abs().sum()), (r,), (r.cos(),))
x.requires_grad_()
with torch.autocast("cpu"):
    y = x * 1
    y.real.mul_(3)
    y.abs().sum().backward()
""",
}


@pytest.mark.parametrize("name", AROUND)
def test_writes_inside_of(name):
    oracle.both(HEAD + AROUND[name])
