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


PARTS = (
    "x.unbind(0)", "x.unbind(1)", "x.unbind(-1)", "x.split(2, 1)", "x.split((1, 0, 3), 1)", "x.chunk(3, 0)", "x.t().unbind(0)",
    "x.t().chunk(2, 1)", "x[:, ::2].unbind(1)", "x.view(3, 2, 2).unbind(1)", "x.tensor_split((1, 3), 1)", "x.hsplit(2)", "x[:0].unbind(1)",
    "(x * 1j).unbind(0)", "x.half().unbind(1)", "x.expand(2, 3, 4).unbind(0)", "x.unfold(1, 2, 1).unbind(0)", "x.split(9, 1)",
)  # fmt: skip


@pytest.mark.parametrize("dropped", (None, 0, 1))
@pytest.mark.parametrize("parts", PARTS)
def test_several_views(parts, dropped):
    """The gradient of the parts of a tensor, all of them or without one, and its gradient."""
    run(f"""
x = torch.arange(1., 13., dtype=torch.float64).view(3, 4).requires_grad_()
parts = [p for k, p in enumerate({parts}) if k != {dropped}]
loss = sum(((p.abs() ** 3).double() * (k + 1)).sum() for k, p in enumerate(parts)) + 0 * x.sum()
[g] = torch.autograd.grad(loss, x, create_graph=True)
[h] = torch.autograd.grad((g * g).sum(), x)
g, loss, parts = g.detach(), loss.detach(), None
""")


def test_parts_of_many():
    run("""
x = torch.arange(0., 240., dtype=torch.float64).view(40, 6).requires_grad_()
rows = x.unbind(0)
[a] = torch.autograd.grad(sum(r.prod() * k for k, r in enumerate(rows)), x)
[b] = torch.autograd.grad(x.unbind(0)[7].prod() + x.unbind(0)[9].sum(), x)
""")
