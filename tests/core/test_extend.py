"""core/extend.py: jax.extend's names, imported when one is used."""

import subprocess
import sys

import jax
import pytest

from jtorch.core import extend


def test_import_does_not_bring_jax_extend():
    code = (
        "import sys, jax; before = 'jax.extend' in sys.modules\n"
        "import jtorch as torch; assert ('jax.extend' in sys.modules) is before\n"
        "x = torch.ones(3, requires_grad=True); (x * x).sum().backward(); assert x.grad.tolist() == [2.0] * 3"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]


def test_names_are_jaxs():
    literals = [v for e in jax.make_jaxpr(lambda x: x + 1.0)(2.0).eqns for v in e.invars if type(v) is extend.Literal]
    assert [float(v.val) for v in literals] == [1.0]
    with extend.set_current_trace(extend.find_top_trace(())):
        assert float(jax.numpy.add(1.0, 2.0)) == 3.0


def test_other_names():
    with pytest.raises(AttributeError):
        _ = extend.nothing_of_that_name
