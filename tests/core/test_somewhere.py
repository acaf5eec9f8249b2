"""Rows that an index picks whose value is not known yet: views all the same, that nobody waits for."""

import copy
import operator
import pickle

import pytest

import jtorch
from jtorch.core import ledger, somewhere
from tests.oracle import both


def later(t, value):
    """An index whose value has been recorded and not computed."""
    return (t.tensor([float(value)]) * 2).long()[0] // 2


WHOLES = {
    "rows": lambda x: x, "turned": lambda x: x.t(), "steps": lambda x: x[1:, ::2], "three": lambda x: x.reshape(2, 2, 6),
    "expanded": lambda x: x[0, :4].expand(5, 4), "part": lambda x: x.reshape(-1)[2:14].view(3, 4), "whole": lambda x: x.long(),
    "half": lambda x: x.bfloat16(), "complex": lambda x: x + 1j, "one": lambda x: x[:1].clone(), "bits": lambda x: x.view(x.int().dtype),
}  # fmt: skip

USES = {
    "read": lambda t, x, y, i: None,
    "write": lambda t, x, y, i: y.add_(1),
    "write to a part": lambda t, x, y, i: y[1:].fill_(3),
    "write to an element": lambda t, x, y, i: y.__setitem__(later(t, 0), 5),
    "write to the whole": lambda t, x, y, i: x.mul_(2),
    "another index": lambda t, x, y, i: i.add_(1),
    "from another row": lambda t, x, y, i: x.__setitem__(later(t, 0), y),
    "items": lambda t, x, y, i: x.__setitem__(i, 7),
    "out": lambda t, x, y, i: t.add(y, 1, out=y),
    "without history": lambda t, x, y, i: (y.detach().add_(1), y.data.mul_(2)),
    "rows of rows": lambda t, x, y, i: (x[i][later(t, 1)].sub_(3), x[i, later(t, 1)]),
    "columns": lambda t, x, y, i: (x[..., later(t, 1)], x[:, None, later(t, 0)].add_(1), x[later(t, 0), 1:]),
    "beside lists": lambda t, x, y, i: (x[i, t.tensor([0, 1])], x[t.tensor([0, 0]), later(t, 1)]),
    "views": lambda t, x, y, i: (
        y.unsqueeze(0) * 2,
        y[..., None].sum(0),
        y[1:],
        y[0],
        y.expand(2, *y.shape),
        y.flip(0),
    ),
    "place": lambda t, x, y, i: (y.storage_offset(), y.data_ptr() - x.data_ptr(), y._base is None, y.is_set_to(x)),
    "copies": lambda t, x, y, i: (copy.deepcopy(y), y.clone(), pickle.loads(pickle.dumps(y))),
    "lists": lambda t, x, y, i: (y.tolist(), t.stack([y, y]), y.sum().item()),
}


@pytest.mark.parametrize("whole", WHOLES)
@pytest.mark.parametrize("use", USES)
def test_rows(whole, use):
    def program(t):
        x = WHOLES[whole](t.arange(24.0).reshape(4, 6) * 1)
        i = later(t, -1)
        y = x[i]
        got = USES[use](t, x, y, i)
        return got, y + 0, x + 0

    both(program, layout=False)


WITH_HISTORY = {
    "read": lambda t, y, r: (r * r).sum() + y.sum(),
    "write": lambda t, y, r: r.mul_(3).sum() + (y * y).sum(),
    "write to a part": lambda t, y, r: r[1:].exp_().sum() + (y * y).sum(),
    "write to an element": lambda t, y, r: (r.__setitem__(later(t, 0), y[0, 1]), (y * y * r).sum())[1],
    "write to the whole": lambda t, y, r: (y.mul_(2), (r * r).sum() + y.sum())[1],
    "twice": lambda t, y, r: (r * y[later(t, -1)] * y[:, later(t, 1)].sum()).sum(),
    "rows of rows": lambda t, y, r: (y.view(3, 2, 2)[later(t, 1), later(t, 0)] * y.t()[later(t, 2)][1:3]).sum(),
    "off the tape": lambda t, y, r: (r.detach().zero_(), (y * y).sum() + r.sum())[1],
    "a hook": lambda t, y, r: (r.register_hook(lambda g: g * 2), (r * y).sum())[1],
    "views": lambda t, y, r: (r.expand(2, 4) * r.unsqueeze(1)[:2] + r.view(2, 2).repeat(1, 2)).sum(),
}


@pytest.mark.parametrize("use", WITH_HISTORY)
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_rows_with_a_history(dtype, use):
    def program(t):
        w = (t.arange(12.0, dtype=getattr(t, dtype)).reshape(3, 4) / 7).requires_grad_()
        y = w * 1.5
        r = y[later(t, 1)]
        name = r.grad_fn.name()
        loss = WITH_HISTORY[use](t, y, r).real
        (first,) = t.autograd.grad(loss, w, create_graph=True)
        (second,) = t.autograd.grad((first * first).sum().real, w)
        return name, r._base is y, loss, first, second, y, r, y.grad_fn.name(), r.grad_fn.name()

    both(program, layout=False)


def test_a_second_pass():
    def program(t):
        w = t.arange(12.0).reshape(3, 4).requires_grad_()
        loss = (w * 2)[later(t, 1)].sum()
        loss.backward()
        loss.backward()
        return w.grad

    both(program)


def test_what_a_checkpoint_keeps_of_a_row():
    def program(t):
        w = t.arange(12.0).reshape(3, 4).requires_grad_()
        checkpoint = t.utils.checkpoint.checkpoint
        checkpoint(lambda x: x[x.sum(1).argmax()].sin() * x[x.argmin() // 5], w, use_reentrant=False).sum().backward()
        return w.grad

    both(program)


def test_the_tangent_of_a_row():
    def program(t):
        with t.autograd.forward_ad.dual_level():
            x = t.autograd.forward_ad.make_dual(t.arange(6.0).reshape(3, 2), t.arange(6.0, 12.0).reshape(3, 2))
            return t.autograd.forward_ad.unpack_dual(x[later(t, 1)])[1]

    both(program)


@pytest.mark.parametrize("mode", ["no_grad", "inference_mode"])
def test_parameters(mode):
    def program(t):
        x = t.arange(6.0).reshape(3, 2).requires_grad_()
        with getattr(t, mode)():
            x[later(t, 1)].zero_()
            x[later(t, 2)][later(t, 0)] += 5
        return x.detach()

    both(program)


TANGENTS = {
    "row": lambda t, d: d[later(t, 2)],
    "element": lambda t, d: d[later(t, 1), later(t, 1)],
    "column": lambda t, d: d[:, later(t, 1)],
    "selected": lambda t, d: d.select(0, later(t, 2)),
    "of what is computed": lambda t, d: (d * 2)[(d[:, 0] * 1).argmax()] * d[later(t, 1)],
    "written": lambda t, d: (d.__setitem__(later(t, 2), 7), d)[1],
    "changed": lambda t, d: (d.__setitem__(later(t, 2), d[later(t, 2)] * d[later(t, 1)]), d)[1],
    "changed through a row": lambda t, d: (d[later(t, 1)].mul_(3), d)[1],
    "row of a row": lambda t, d: d[later(t, 2)][later(t, 1)],
}


@pytest.mark.parametrize("needs", [False, True])
@pytest.mark.parametrize("name", TANGENTS)
def test_tangents(name, needs):
    def program(t):
        x, moved = t.arange(6.0).reshape(3, 2), t.arange(6.0).reshape(3, 2) * 10 + 1
        fw = t.autograd.forward_ad
        with fw.dual_level():
            d = fw.make_dual(x.requires_grad_() * 1 if needs else x, moved)
            return [part.detach() for part in fw.unpack_dual(TANGENTS[name](t, d))]

    both(program, layout=False)


@pytest.mark.parametrize("way", ["jvp", "jacfwd", "jacrev", "hessian"])
def test_derivatives(way):
    def program(t):
        x = t.arange(6.0).reshape(3, 2)
        f = lambda x: x[x[:, 0].argmax()] ** 2 * x[later(t, 1), 0]
        if way == "jvp":
            return t.func.jvp(f, (x,), (x * 10 + 1,))
        return getattr(t.func, way)(f)(x)

    both(program)


def test_a_table_that_is_learned():
    def program(t):
        table, state = t.zeros(5, 3), later(t, 0)
        for k in range(20):
            action = (table[state] + t.tensor([0.1, 0.3, 0.2]).roll(k)).argmax()
            after = (state + action + 1) % 5
            table[state][action] += 0.1 * (1 + 0.9 * table[after].max() - table[state][action])
            state = after
        return table

    both(program)


def test_what_is_written_gets_a_history():
    def program(t):
        w = t.ones(3, requires_grad=True)
        x = t.zeros(4, 3)
        y = x[later(t, 2)]
        x[1] = w * 2
        y.add_(w * 3)
        (x * x).sum().backward()
        return w.grad, y.detach(), y.requires_grad

    both(program)


def test_out_of_bounds():
    both(lambda t: t.zeros(2, 3)[:, later(t, 3)].storage_offset())
    both(lambda t: t.zeros(2, 3)[t.tensor([1, 3])[0] + 1])  # of numbers at hand at once


def test_nobody_waits():
    """A path back through a table, of which each step is at the place that the one before gave."""
    table = jtorch.tensor([[1, 2, 0], [2, 0, 1], [0, 1, 2]])
    at = later(jtorch, 1)
    before = ledger.counters.flushes
    for k in (0, 1, 2):
        at = table[k][at]
    assert ledger.counters.flushes == before
    assert at.item() == 1


@pytest.mark.parametrize("name", ["sub", "mul", "mod", "floordiv", "eq", "lt", "le", "gt", "ge"])
def test_a_number_that_is_asked_for(name):
    def offset():
        value = later(jtorch, 2)
        return somewhere.beyond(1, somewhere.Index(value._storage.value, value._spec, 4, 5, 0))

    f = getattr(operator, name)
    assert f(offset(), 3) == f(11, 3)
    assert 3 + offset() == offset() + 3 == 14 and 20 - offset() == 9 and 2 * offset() == 22
    assert bool(offset()) and repr(offset()) == "11" and pickle.loads(pickle.dumps(offset())) == 11
