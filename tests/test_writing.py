"""Writing to tensors as a whole: copy_, fill_, set_, resize_, apply_; what a write does to elements that share memory."""

import copy

import numpy as np
import pytest

import jtorch
from jtorch.core import ledger
from tests.oracle import both


def ramp(t, n=6):
    return t.arange(float(n))


def windows(t):
    """Rows that overlap."""
    return ramp(t).as_strided((3, 2), (1, 1))


def after(x, *calls):
    """A tensor after some calls in place."""
    for call in calls:
        call(x)
    return x


COPIES = {
    "of a number": lambda t: (ramp(t).copy_(5), ramp(t).copy_(True)),
    "of a list": lambda t: ramp(t, 2).copy_([1, 2]),
    "of an array": lambda t: ramp(t, 2).copy_(np.ones(2)),
    "of nothing": lambda t: ramp(t, 2).copy_(None),
    "of a word": lambda t: ramp(t, 2).copy_("a"),
    "by name": lambda t: ramp(t, 2).copy_(other=t.ones(2)),
    "the parts of complex numbers": lambda t: [
        after(t.zeros(2, dtype=t.complex64), lambda c: setattr(c, "real", t.tensor([3.0, 4.0]))),
        after(t.zeros(2, dtype=t.complex64), lambda c: setattr(c, "imag", 2)),
        after(ramp(t), lambda c: setattr(c, "real", t.ones(6))),
    ],
    "the imaginary part of real numbers": lambda t: after(ramp(t), lambda c: setattr(c, "imag", 2)),
}
RESIZED = {
    "in one line": lambda t: ramp(t, 8)[::2].resize_(2, 2),
    "to its own size": lambda t: ramp(t, 8)[::2].resize_(4),
    "below zero": lambda t: ramp(t).resize_(2, -3),
    "by a word": lambda t: ramp(t).resize_("a"),
    "larger, in the middle": lambda t: [(w.resize_(4), v) for v in [ramp(t)] for w in [v[1:3]]],
    "what is expanded": lambda t: t.ones(2).expand(3, 2).resize_(1, 2),
    "channels last": lambda t: [
        ramp(t, 8).resize_(1, 2, 2, 2, memory_format=t.channels_last),
        ramp(t, 8).view(1, 2, 2, 2).resize_(1, 2, 2, 2, memory_format=t.channels_last),
        ramp(t, 8).view(1, 2, 2, 2).contiguous(memory_format=t.channels_last).resize_(1, 2, 2, 2),
    ],
    "as another": lambda t: [
        ramp(t, 8).resize_as_(other),
        ramp(t, 8).resize_as_(other, memory_format=t.preserve_format),
    ]
    if (other := t.ones(1, 2, 2, 2).contiguous(memory_format=t.channels_last)) is not None
    else None,
    "as a number": lambda t: ramp(t).resize_as_(5),
    "on meta": lambda t: t.ones(8, device="meta").resize_(20).shape,
    "what numpy sees": lambda t: [x.resize_(5) for x in [ramp(t)] for seen in [x.numpy()] if x.resize_(2) is x],
    "what numpy sees, larger": lambda t: [(x.resize_(9), seen) for x in [ramp(t)] for seen in [x.numpy()]],
}  # fmt: skip
SET = {
    "to part of a storage": lambda t: t.empty(0).set_(ramp(t).untyped_storage(), 1, (2, 2), (2, 1)),
    "beyond a storage": lambda t: [
        (y.shape, y[:4], x.untyped_storage().nbytes()) for x in [ramp(t)] for y in [t.empty(0).set_(x, 2, (10,))]
    ],
    "to larger elements": lambda t: [
        (y.shape, y[:1], y.untyped_storage().nbytes())
        for y in [t.empty(0, dtype=t.float64).set_(ramp(t, 3).untyped_storage(), 0, (2,))]
    ],
    "beyond what numpy sees": lambda t: [
        t.empty(0).set_(x, 0, (9,)) for x in [ramp(t)] for seen in [x.numpy()] if seen is not None
    ],
    "below a storage": lambda t: t.empty(0).set_(ramp(t).untyped_storage(), -1, (2,)),
    "backwards": lambda t: t.empty(0).set_(ramp(t).untyped_storage(), 0, (2,), (-1,)),
    "with other strides": lambda t: t.empty(0).set_(ramp(t), 1, (2,), (1, 2)),
    "to another dtype": lambda t: t.empty(0).set_(t.ones(2).int()),
    "to storage of another dtype": lambda t: t.empty(0).set_(t.ones(2).int().storage()),
    "to another device": lambda t: t.empty(0).set_(t.ones(2, device="meta")),
    "to a number": lambda t: t.empty(0).set_(5),
    "empty_strided backwards": lambda t: t.empty_strided((2, 3), (-1, 2)),
}
SHARED = {  # elements that share memory
    "fill_": lambda t: windows(t).fill_(2),
    "zero_": lambda t: windows(t).zero_(),
    "copy_": lambda t: windows(t).copy_(t.ones(3, 2)),
    "copy_, the last stays": lambda t: t.zeros(6).as_strided((2, 3), (2, 1)).copy_(ramp(t).view(2, 3)),
    "a row": lambda t: [after(x, lambda y: y[0].fill_(9)) for x in [windows(t)]],
    "an element of what is expanded": lambda t: after(t.zeros(1).expand(3), lambda x: x[0].fill_(5)),
    "numbers drawn": lambda t: t.zeros(1).expand(3).random_(0, 3),
    "normal numbers drawn": lambda t: t.zeros(1).expand(3).normal_(),
    "as it was after an error": lambda t: [x for x in [t.zeros(1).expand(3)] if raises(x.random_, 0, 3)],
    "out= ahead": lambda t: [t.add(x[:3], 1, out=x[2:5]) for x in [ramp(t)]],
    "out= turned": lambda t: [t.add(x, x.t(), out=x) for x in [ramp(t, 9).view(3, 3)]],
    "out= itself": lambda t: [t.add(x[:3], 1, out=x[:3]) for x in [ramp(t)]],
    "index_add_": lambda t: [x.index_add_(0, t.tensor([0, 1]), x[2:4]) for x in [ramp(t)]],
    "index_copy_": lambda t: [x.index_copy_(0, t.tensor([0, 1]), x[2:4]) for x in [ramp(t)]],
    "index_reduce_": lambda t: [x.index_reduce_(0, t.tensor([0, 1]), x[2:4], "prod") for x in [ramp(t)]],
    "index_put_": lambda t: [x.index_put_((t.tensor([0, 1]),), x[2:4]) for x in [ramp(t)]],
    "put_": lambda t: [x.put_(t.tensor([0, 1]), x[2:4]) for x in [ramp(t)]],
    "scatter_": lambda t: [x.scatter_(0, t.tensor([0, 1]), x) for x in [ramp(t)]],
    "scatter_add_": lambda t: [x.scatter_add_(0, t.tensor([0, 1]), x[2:4]) for x in [ramp(t)]],
    "scatter_reduce_": lambda t: [x.scatter_reduce_(0, t.tensor([0, 1]), x[2:4], "sum") for x in [ramp(t)]],
    "scatter_ of what has gaps": lambda t: [x.scatter_(0, t.tensor([0, 1]), x[::2]) for x in [ramp(t)]],
    "out= of the input": lambda t: [
        (t.scatter(x, 0, i, v, out=x), t.index_add(x, 0, i, v, out=x), t.index_copy(x, 0, i, v, out=x))
        for x, i, v in [(ramp(t), t.tensor([0, 1]), t.ones(2))]
    ],
}
ROOM = {  # what out= of another shape, and storages of another size, do to the memory that others see
    "out= smaller, the rest stays": lambda t: [(t.neg(t.ones(1), out=x), x.untyped_storage().nbytes(), y) for x, y in two(t, 6)],
    "out= larger": lambda t: [(t.neg(t.ones(8), out=x), x.untyped_storage().nbytes(), y) for x, y in two(t, 6)],
    "out= a view, smaller": lambda t: [(t.neg(t.ones(2, 4), out=x[:, :-2]), y) for x, y in two(t, 18, 3, 3, 2)],
    "out= a view, larger": lambda t: [(t.neg(t.ones(3, 2), out=x[4:]), x, y) for x, y in two(t, 6)],
    "out= what numpy sees": lambda t: [(t.neg(t.ones(2), out=x), y) for x in [ramp(t)] for y in [x.numpy()]],
    "out= what numpy sees, larger": lambda t: [t.neg(t.ones(9), out=x) for x in [ramp(t)] for y in [x.numpy()]],
    "an address after growing": lambda t: [x.data_ptr() == p for x, p in addressed(t) if x.resize_(40) is x],
    "an address after shrinking": lambda t: [x.data_ptr() == p for x, p in addressed(t) if x.untyped_storage().resize_(8)],
    "an address after out=": lambda t: [x.data_ptr() == p for x, p in addressed(t) if t.neg(t.ones(9), out=x) is x],
    "a storage that numpy sees": lambda t: [x.untyped_storage().resize_(8) for x in [ramp(t)] for seen in [x.numpy()]],
    "a storage and back": lambda t: [
        x[:2] for x in [ramp(t)] if x.untyped_storage().resize_(8) and x.untyped_storage().resize_(24)
    ],
    "a storage that was saved": lambda t: [
        (y.backward(), w.grad.shape)
        for x, w in [(t.ones(3), t.ones(3, requires_grad=True))]
        for y in [(w * x).sum()]
        if x.untyped_storage().resize_(4)
    ],
    "a part of a larger element at the end": lambda t: [
        (x[:8].view(t.float64), x[:8].view(t.float64)[1].fill_(3), x, x[:0].view(t.float64))
        for x in [ramp(t, 9)]
    ],
    "a part of a larger element that numpy sees": lambda t: [
        (x[:8].view(t.float64), x[:8].view(t.float64)[1].fill_(3), seen) for x in [ramp(t, 9)] for seen in [x.numpy()]
    ],
    "a part of a complex number at the end": lambda t: [
        (t.view_as_complex(x[:8].view(4, 2))[1].fill_(1j), x) for x in [ramp(t, 9)]
    ],
}  # fmt: skip
HISTORY = {
    "set_": lambda t: [(y, y.sum().backward()) for x in [made(t)] for y in [after(x, lambda x: x.set_(t.ones(2)))]],
    "set_ to what has one": lambda t: t.zeros(2).set_(made(t)).grad_fn.name(),
    "copy_ of itself": lambda t: [x.copy_(x[:]).grad_fn.name() for x in [made(t)]],
    "hooks of a view that is written": lambda t: hooked(t),
    "set_ without gradients": lambda t: t.zeros(2).set_(made(t).detach()),
    "a view of the same dtype": lambda t: made(t).view(t.float32),
    "a shallow copy": lambda t: copy.copy(made(t)),
    "fill_ by a tensor": lambda t: [
        (y, y.grad_fn.name(), t.autograd.grad((y * ramp(t, 3)).sum(), [x, w]))
        for x, w in [(t.ones(3, requires_grad=True), t.tensor(2.0, requires_grad=True))]
        for y in [(x * 1).fill_(w)]
    ],
    "out= of ints that needs a gradient": lambda t: t.sub(t.tensor([1, 2]), 1, out=t.ones(2, requires_grad=True)),
    "out= of a factory that needs a gradient": lambda t: t.zeros(2, out=t.ones(2, requires_grad=True)),
    "out= of ints for what needs a gradient": lambda t: t.sum(made(t), 0, out=t.tensor(1)),
}
SHIFTED = {
    "copy_ of a row": lambda t: [x.copy_(x[1]) for x in [ramp(t).view(3, 2)]],
    "copy_ of another row": lambda t: [x[1:].copy_(x[0]) for x in [ramp(t).view(3, 2)]],
    "copy_ of itself, expanded": lambda t: [x.copy_(x[:]) for x in [t.ones(1).expand(3)]],
    "fill_ by an element": lambda t: [x.fill_(x[2]) for x in [ramp(t)]],
    "an element to its place": lambda t: [(x.__setitem__(slice(0, 1), x[0]), x) for x in [ramp(t)]],
    "a number to what is expanded": lambda t: t.zeros(1).expand(3).__setitem__(slice(None), 5),
    "positions of itself": lambda t: [x.__setitem__(t.tensor([0, 1]), x[2:4]) for x in [ramp(t)]],
    "positions that are written": lambda t: [i.__setitem__(i, 3) for i in [t.arange(4)]],
    "a new dimension of itself": lambda t: [(x.__setitem__(True, x), x) for x in [ramp(t)]],
    "out= an operand that is too small": lambda t: [t.mul(x, t.ones(2, 2), out=x) for x in [t.ones(1, 2)]],
    "stack": lambda t: [t.stack([x[0], x[1]], out=x) for x in [ramp(t).view(3, 2)]],
}
APPLIED = {
    "apply_ of words": lambda t: ramp(t, 2).apply_(lambda x: "a"),
    "apply_ to ints": lambda t: t.ones(2, dtype=t.int64).apply_(lambda x: x + 2),
    "apply_ on meta": lambda t: t.ones(2, device="meta").apply_(lambda x: x).shape,
    "map_ of another type": lambda t: ramp(t, 2).map_(t.ones(2).int(), lambda a, b: a),
    "map_ of a number": lambda t: ramp(t, 2).map_(5, lambda a, b: a),
    "map2_": lambda t: ramp(t, 2).map2_(t.ones(2), t.ones(2), lambda a, b, c: a + b + c),
}


def two(t, n, *shape):
    """Two tensors on one storage."""
    x = ramp(t, n)
    return [(x.view(shape or n), x)]


def addressed(t):
    x = ramp(t)
    return [(x, x.data_ptr())]


def made(t):
    """A tensor with a history."""
    return t.ones(3, requires_grad=True) * 2


def hooked(t):
    """What hooks of a tensor and of a view of it get, when the view is written between them."""
    seen = []
    x = t.ones(3, requires_grad=True)
    y = x * 1
    v = y[:2]
    v.register_hook(lambda g: seen.append("before"))
    y.register_hook(seen.append)
    v.mul_(2).register_hook(lambda g: seen.append("after"))
    y.sum().backward()
    return seen, x.grad


def raises(f, *args):
    try:
        f(*args)
    except RuntimeError:
        return True
    return False


@pytest.mark.parametrize("name", COPIES)
def test_copy(name):
    both(COPIES[name])


@pytest.mark.parametrize("name", RESIZED)
def test_resize(name):
    both(RESIZED[name])


@pytest.mark.parametrize("name", SET)
def test_set(name):
    both(SET[name])


@pytest.mark.parametrize("name", SHARED)
def test_shared_elements(name):
    both(SHARED[name])


@pytest.mark.parametrize("name", ROOM)
def test_memory_that_others_see(name):
    both(ROOM[name])


def test_a_storage_that_is_too_small_is_not_read():
    """PyTorch reads and writes beyond it."""
    import jtorch  # noqa: PLC0415  as the oracle does

    for seen in (False, True):
        x = ramp(jtorch)
        x.untyped_storage().resize_(8)
        small = x.untyped_storage()._flat(jtorch.float32).numpy() if seen else None
        for use in (lambda x: x + 1, lambda x: x.tolist(), lambda x: x.numpy(), lambda x: x.zero_(), lambda x: x.sum()):
            with pytest.raises(RuntimeError, match="out of bounds for storage of size 8"):
                use(x)
        assert small is None or small.tolist() == [0, 1]


@pytest.mark.parametrize("name", HISTORY)
def test_history(name):
    both(HISTORY[name])


@pytest.mark.parametrize("name", SHIFTED)
def test_elements_in_other_places(name):
    both(SHIFTED[name])


@pytest.mark.parametrize("name", APPLIED)
def test_functions_of_elements(name):
    both(APPLIED[name])


def test_computing_where_elements_share_memory_is_refused():
    """PyTorch reads some of them after they have been written; the tensor stays as it was."""
    import jtorch  # noqa: PLC0415  as the oracle does

    x = windows(jtorch)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        x.add_(1)
    assert x.tolist() == [[0, 1], [1, 2], [2, 3]]


def test_layouts_without_grad_mode():
    """The history of a tensor whose layout changes in no_grad gets gradients of the shape that it had, and so do later passes like it."""

    def program(t):
        found = []
        for quietly in (True, False, False):
            a = t.arange(6.0).reshape(1, 2, 3).requires_grad_()
            x = a * 1
            if quietly:
                with t.no_grad():
                    x.unsqueeze_(0)
            (x * x).sum().backward()
            found += [x.detach(), a.grad, a.grad.sum().item()]
        return found

    both(program)


IN_PLACE = {
    "mul_": lambda x, b: x.mul_(x),
    "mul_ by another": lambda x, b: x.mul_(b),
    "add_": lambda x, b: x.add_(x),
    "addcmul_": lambda x, b: x.addcmul_(b, x),
    "pow_": lambda x, b: x.pow_(x),
    "lerp_": lambda x, b: x.lerp_(b, x),
    "addmm_": lambda x, b: x.addmm_(x, x),
    "copysign_": lambda x, b: x.copysign_(x),
    "exp_": lambda x, b: x.exp_(),
}


@pytest.mark.parametrize("name", IN_PLACE)
def test_operands_that_are_written_to(name):
    """An operand that is the tensor written to is lost for the derivative, but what the op reads of it as its first is not."""

    def program(t):
        a, b = t.tensor([[1.0, 2], [3, 4]], requires_grad=True), t.ones(2, 2, requires_grad=True)
        x = a * 1
        IN_PLACE[name](x, b)
        x.sum().backward()
        return a.grad, b.grad

    both(program)


FILLS = {
    "an item": lambda row, place, number: row.__setitem__(place, number),
    "a slice": lambda row, place, number: row[place : place + 1].fill_(number),
    "of a size": lambda row, place, number: row[place : place + 1].copy_(jtorch.full((1,), number)),
    "of a likeness": lambda row, place, number: row[place : place + 1].copy_(jtorch.full_like(row[:1], number)),
}


@pytest.mark.parametrize("fill", FILLS)
def test_zero_is_a_number_like_others(own_programs, fill):
    """The places of letters in an alphabet, of which one is the first: it must not be another program wherever that letter comes."""

    def word(letters):
        row = jtorch.zeros(8, dtype=jtorch.int64)
        for place, letter in enumerate(letters):
            FILLS[fill](row, place, letter)
        return (row * jtorch.arange(8)).sum().item()

    words = [[(7 * k * k + 3 * place * k + place // 2) % 11 % 4 for place in range(8)] for k in range(40)]
    before = len(ledger.entries)
    assert [word(letters) for letters in words] == [sum(p * n for p, n in enumerate(letters)) for letters in words]
    assert len(ledger.entries) - before <= 8
