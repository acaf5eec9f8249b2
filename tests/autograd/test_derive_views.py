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
