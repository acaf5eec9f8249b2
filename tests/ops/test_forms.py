"""Calls in the less usual of the forms that PyTorch has for them, and what it refuses there."""

import numpy as np
import pytest

from tests.oracle import both


def squeezed(*dims, inplace=False):
    return lambda t: getattr(t.arange(3.0).reshape(1, 1, 3), "squeeze_" if inplace else "squeeze")(*dims)


def group_norm(*shape, groups, module=False):
    def program(t):
        x = t.ones(shape)
        return t.nn.GroupNorm(groups, shape[1])(x).detach() if module else t.nn.functional.group_norm(x, groups)

    return program


def in_place(t, function):
    x = t.tensor([-1.0, 2.0, -3.0], requires_grad=True)
    y = function(x * 1)
    name = y.grad_fn.name()
    y.sum().backward()
    return y.detach(), x.grad, name


def assigned(t, index, value):
    x = t.zeros(2, 3)
    x[index] = value
    return x, x._version


FORMS = {
    "what is no operand is not equal": lambda t: [
        x == other for x in (t.ones(3), t.ones(3, requires_grad=True)) for other in ([1, 1, 1], (1.0,), "a", None, {})
    ],
    "what is no operand differs": lambda t: [t.ones(3) != other for other in ([1, 1, 1], (1.0,), "a", None, range(3))],
    "what is no operand is not less": lambda t: t.ones(3) < [1, 2, 3],
    "an assignment under False": lambda t: assigned(t, False, t.ones(2, 3)),
    "an assignment under False of what does not fit": lambda t: assigned(t, False, t.ones(7, dtype=t.complex64)),
    "numpy's integers as exponents": lambda t: t.arange(4) ** np.int32(2),
    "numpy's negative integers as exponents": lambda t: t.pow(t.arange(4), np.int32(-2)),
    "squeeze of several": squeezed(0, 1),
    "squeeze of several, one of which is long": squeezed(-1, 0),
    "squeeze of one twice": squeezed(0, -3),
    "squeeze of none that is there": squeezed(0, 5),
    "squeeze_ of several": squeezed(0, 1, inplace=True),
    "squeeze_ of several, one of which is long": squeezed(0, 2, inplace=True),
    "view_copy in another dtype": lambda t: t.view_copy(t.arange(4.0), t.int32),
    "view_copy in a wider dtype": lambda t: t.view_copy(t.arange(4.0), dtype=t.complex64),
    "view_copy in another dtype into out=": lambda t: t.view_copy(t.arange(4.0), t.int32, out=t.ones(0, dtype=t.int32)),
    "view_copy in another dtype into another": lambda t: t.view_copy(t.arange(4.0), t.int32, out=t.ones(0)),
    "view_copy in other sizes": lambda t: t.view_copy(t.ones(4, requires_grad=True), size=(2, 2)),
    "view_copy in other sizes of another dtype": lambda t: t.view_copy(t.arange(4.0), (2, 2), dtype=t.int32),
    "group norm of one value a group": group_norm(1, 4, 1, 1, groups=4),
    "group norm of one value a group, of no space": group_norm(1, 2, groups=2),
    "GroupNorm of one value a group": group_norm(1, 2, 1, groups=2, module=True),
    "group norm of one value a group, by the operator": lambda t: t.group_norm(t.ones(1, 2), 2),
    "group norm of two samples of one value": group_norm(2, 2, groups=2),
    "rrelu in place, with a gradient": lambda t: in_place(t, t.nn.RReLU(inplace=True).eval()),
    "rrelu_, with a gradient": lambda t: in_place(t, t.rrelu_),
    "repeat_interleave, whose node is a view's": lambda t: t.ones(2, 3, requires_grad=True).repeat_interleave(2, 1),
    "group norm of nothing": group_norm(0, 2, 1, groups=2),
}


@pytest.mark.parametrize("name", FORMS)
def test_forms(name):
    both(FORMS[name])
