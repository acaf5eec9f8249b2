"""torch.quasirandom.SobolEngine: PyTorch's points, one by one."""

import pytest

import jtorch
from tests import oracle

torch = oracle.torch


@pytest.mark.parametrize(
    "dimension, options", [(1, {}), (7, {}), (40, {"scramble": True, "seed": 5}), (3, {"scramble": True})]
)
def test_points(dimension, options):
    def drawn(T):
        T.manual_seed(3)
        engine = T.quasirandom.SobolEngine(dimension, **options)
        found = [engine.sobolstate, engine.shift, engine.draw(), engine.draw(3), engine.quasi, engine.draw_base2(2)]
        found += [
            engine.fast_forward(5).draw(2, dtype=T.float64),
            engine.reset().draw_base2(3),
            engine.draw(2, out=T.empty(0)),
            engine.reset().draw(dtype=T.float64),
            engine.reset().draw(2, dtype=T.float64),
        ]
        return repr(engine), engine.num_generated, [(str(x.dtype), x.tolist()) for x in found]

    assert drawn(jtorch) == drawn(torch)


def test_many_dimensions():
    got, want = (T.quasirandom.SobolEngine(3000).draw(9)[:, ::7].tolist() for T in (jtorch, torch))
    assert got == want


def test_refusals():
    for T in (jtorch, torch):
        with pytest.raises(ValueError, match=r"SobolEngine is \[1, 21201\]"):
            T.quasirandom.SobolEngine(0)
        engine = T.quasirandom.SobolEngine(2)
        engine.draw(1)
        with pytest.raises(ValueError, match="1 points have been previously generated, then: n=1"):
            engine.draw_base2(3)
