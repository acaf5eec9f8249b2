"""Gradients of views that show a storage in other ways than their source does."""

import pytest

from tests.autograd.programs import run

SOURCES = (
    "x",
    "x.expand(2, 2, 3)",
    "x[0].expand(2, 3)",
    "x.as_strided((2, 2), (1, 1), 1)",
    "x.unfold(1, 2, 1)",
    "x[:, ::2]",
    "x.t()",
)


@pytest.mark.parametrize("source", SOURCES)
def test_as_strided(source):
    """What shares memory in the source shares the gradient too."""
    run(f"""
x = T(0., 1., 2., 3., 4., 5.)
for size, stride, offset in (((2,), (1,), 0), ((3,), (1,), 1), ((2, 2), (0, 1), 1), ((2, 2), (1, 1), 0), ((6,), (1,), 0)):
    def f(x):
        return ({source.replace("x", "x.view(2, 3)", 1)}).as_strided(size, stride, offset)
    y = f(x)
    w = torch.arange(1., y.numel() + 1, dtype=torch.float64).view(y.shape)
    [g] = torch.autograd.grad((y * y * w).sum(), x, create_graph=True)
    print(g.tolist(), torch.autograd.grad((g * g).sum(), x)[0].tolist())
""")


COMPLEX = "x = (T(1., 2., 3., -1., .5, .1, -2., 1.).view(2, 2, 2)); z = torch.view_as_complex(x) * (1 + .5j)"
REAL = "x = T(1., 2., 3., 4., 5., 6., 7., 8.).view(4, 2); z = x * 1.5"
WRITES = (
    (COMPLEX, "z.real.mul_(2); z.imag.add_(z.real)"),
    (COMPLEX, "v = torch.view_as_real(z); v[..., 0] = 3; v[0].mul_(2)"),
    (COMPLEX, "w = z[1].imag; w[0] = x[0, 0, 0] * 3"),
    (COMPLEX, "torch.view_as_real(z.t())[1].mul_(2)"),
    (COMPLEX, "v = z.real; z.mul_(2j); v.pow_(2); z = v"),
    (COMPLEX, "v = torch.view_as_real(z)[:, 1]; z[1] = 0; z = v"),
    (COMPLEX, "z = torch.zeros(2, dtype=torch.complex128); z.real.copy_(x[0, 0] * 2)"),
    (REAL, "torch.view_as_complex(z)[1:3].mul_(1 + 2j)"),
    (REAL, "v = torch.view_as_complex(z); z[0].mul_(3); v.pow_(2); z = v"),
)


@pytest.mark.parametrize("source, writes", WRITES, ids=[w for _, w in WRITES])
def test_writes_to_parts_of_complex_numbers(source, writes):
    """The gradient goes through a write to a view of another kind of numbers, and so does the gradient's."""
    run(f"""
{source}
{writes}
[g] = torch.autograd.grad((z.abs() ** 3).sum(), x, create_graph=True)
[h] = torch.autograd.grad((g * g).sum(), x)
z, g = z.detach(), g.detach()
""")
