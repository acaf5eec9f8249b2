"""Running program texts under torch and under jtorch: values, prints, warnings left out, errors by class and first line."""

import pytest

pytest.importorskip("torch")

from tests import oracle

HEAD = """
import torch
def attempt(f, *a, **k):
    try:
        return f(*a, **k)
    except Exception as e:
        print(type(e).__name__, str(e).split("\\n")[0])
def T(*v, grad=True):
    return torch.tensor(list(v), dtype=torch.float64, requires_grad=grad)
def name(t):
    return t.grad_fn.name() if t.grad_fn is not None else None
def state(t):
    return (t.tolist(), t.requires_grad, t.is_leaf, name(t), t._version)
"""


def run(text):
    """Compare all that a program prints, and its public variables; strides are not the concern here."""
    return oracle.both(HEAD + text, layout=False)
