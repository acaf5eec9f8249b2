"""Methods of Tensor that are not derived from an op, against torch."""

import pytest

from tests.oracle import both

CALLS = {
    "to dtype": lambda t: [t.ones(2).to(t.int32), t.ones(2).to("cpu"), t.ones(2).to(t.ones(1).half()),
        t.ones(2).to("cpu", t.int8)],
    "to itself": lambda t: [(x := t.ones(2)).to(t.float32) is x, x.to(t.float32, copy=True) is x,
        x.float() is x, x.cpu() is x],
    "casts": lambda t: [t.tensor([1.7, -1.7]).int(), t.tensor([0.0, 2.0]).bool(), t.tensor([300]).byte(),
        t.tensor([1]).double()],
    "type": lambda t: [t.ones(1).type(), t.ones(1).type(t.int64), t.ones(1).type("torch.HalfTensor"),
        t.ones(1).type_as(t.ones(1).int())],
    "contiguous": lambda t: [(x := t.ones(2, 3)).contiguous() is x, x.t().contiguous().stride(), x.t().is_contiguous()],
    "channels_last": lambda t: _channels(t),
    "copy_": lambda t: [t.zeros(2, 3).copy_(t.arange(3)), t.zeros(2, dtype=t.int64).copy_(t.tensor([1.9, 2.9]))],
    "fill_": lambda t: [t.empty(2).fill_(3), t.empty(2).zero_(), t.empty(2, dtype=t.int8).fill_(2.7)],
    "detach": lambda t: [(x := t.ones(2, requires_grad=True)).detach().data_ptr() == x.data_ptr(),
        (x * 2).detach_().requires_grad],
    "apply": lambda t: t.arange(3.0).apply_(lambda v: v * 2),
    "apply transposed": lambda t: t.arange(6.0).view(2, 3).t().apply_(lambda v: v * 2),
    "map": lambda t: t.arange(3.0).map_(t.ones(3), lambda a, b: a + b),
    "tolist": lambda t: [t.arange(4).view(2, 2).tolist(), t.tensor(1.5).tolist(), t.zeros(0, 2).tolist(),
        t.tensor([1j]).tolist()],
    "size": lambda t: [t.ones(2, 3).size(), t.ones(2, 3).size(0), t.ones(2, 3).shape[-1], t.ones(2, 3).size(dim=1)],
    "element_size": lambda t: [t.ones(1, dtype=d).element_size() for d in (t.int8, t.float16, t.float64, t.complex64)],
    "is_same_size": lambda t: [t.ones(2).is_same_size(t.zeros(2)), t.ones(2).is_set_to(t.ones(2))],
    "expand_as": lambda t: [t.ones(1, 3).expand_as(t.ones(2, 3)), t.ones(6).view_as(t.ones(2, 3)),
        t.ones(6).reshape_as(t.ones(3, 2))],
    "ints one by one": lambda t: [(x := t.ones(1, 3)).broadcast_to(2, 3), x.broadcast_to((2, 3)), x.broadcast_to(size=[2, 3]),
        t.ones(()).broadcast_to(2), x.count_nonzero(0, 1), x.count_nonzero(1), x.count_nonzero(dim=(0, 1)), *x.hsplit(1, 2),
        *x.hsplit(3), *x.hsplit((1,)), *t.ones(4, 2).vsplit(1, 3), *t.ones(2, 2, 4).dsplit(1, 3)],
    "requires_grad_": lambda t: [t.ones(2).requires_grad_(), t.ones(2).requires_grad_(False)],
    "retain_grad": lambda t: _retain(t),
    "register_hook": lambda t: _hook(t),
    "chunk": lambda t: [*t.arange(7).chunk(3), *t.arange(5).tensor_split(2), *t.arange(6).split([1, 2, 3]),
        *t.ones(2, 2).unbind(1)],
    "random": lambda t: [t.manual_seed(0) and None, t.empty(4).uniform_(), t.empty(4).normal_(),
        t.empty(4).random_(10)],
    "where": lambda t: [t.arange(3).where(t.tensor([True, False, True]), t.tensor(-1)), t.arange(4).clamp_(1, 2)],
    "set_": lambda t: t.zeros(2).set_(t.arange(3.0)),
    "swap": lambda t: [t.ones(2, 3).mT.shape, t.ones(2, 3).mH.shape, t.ones(2, 3, 4).movedim(0, 2).shape,
        t.ones(2, 3).H.shape],
    "T of 3-d": lambda t: t.ones(2, 3, 4).T.shape,
    "index methods": lambda t: [t.zeros(3).index_fill_(0, t.tensor([1]), 2), t.zeros(3).index_add_(0,
        t.tensor([1]), t.ones(1))],
    "bernoulli_": lambda t: [t.manual_seed(0) and None, t.empty(4).bernoulli_(0.5),
        t.empty(4).exponential_().min() >= 0],
    "nonzero": lambda t: [t.tensor([0, 1, 2]).nonzero(), t.tensor([0, 1]).nonzero(as_tuple=True)],
    "unique": lambda t: [t.tensor([3, 1, 3]).unique(), t.tensor([3, 1, 3]).unique(return_counts=True)],
    "format": lambda t: [f"{t.tensor(1.0):.3f}", f"{t.ones(1)}", format(t.tensor(3), "d")],
    "reverse operands": lambda t: [1 - t.ones(1), 2 / t.ones(1), 2 ** t.ones(1), 5 % t.tensor([3]),
        7 // t.tensor([2]), 3 & t.tensor([1])],
    "contains": lambda t: [1.0 in t.ones(2), t.tensor(1.0) in t.ones(2)],
    "dim_order": lambda t: [[_tried(x.dim_order, ambiguity_check=check) for check in (False, True, [], [t.channels_last],
        [t.contiguous_format, t.channels_last], None, [3])] for x in (t.ones(2, 3), t.ones(2, 3).t(), t.empty(1, 2, 3, 4),
        t.empty(2, 2, 3, 4).to(memory_format=t.channels_last), t.zeros(3, 1, 2).expand(3, 4, 2), t.empty(()), t.empty(2, 1, 1, 3))],
    "new": lambda t: t.ones(2).new_empty((2, 3)).shape,
    "item types": lambda t: [type(t.tensor(v).item()).__name__ for v in (1, 1.0, True, 1j)],
    "dir": lambda t: all(n in dir(t.ones(1)) for n in ("add", "add_", "backward", "view", "__add__")),
}  # fmt: skip


def _tried(fn, **named):
    try:
        return fn(**named)
    except (RuntimeError, TypeError) as error:
        return type(error).__name__, str(error)


def _channels(t):
    x = t.ones(2, 3, 4, 5).to(memory_format=t.channels_last)
    flags = x.is_contiguous(), x.is_contiguous(memory_format=t.channels_last)
    return (
        x.stride(),
        *flags,
        (x + 1).stride(),
        x.relu().stride(),
        x.clone().stride(),
        x.contiguous().stride(),
        x.sum(1).stride(),
    )


def _retain(t):
    x = t.ones(2, requires_grad=True)
    y = x * 2
    y.retain_grad()
    (y * y).sum().backward()
    return x.grad, y.grad, y.retains_grad


def _hook(t):
    x = t.ones(2, requires_grad=True)
    seen = []
    h = x.register_hook(lambda g: seen.append(g.tolist()) or g * 10)
    (x * 3).sum().backward()
    h.remove()
    (x * 3).sum().backward()
    return x.grad, seen


@pytest.mark.parametrize("name", CALLS)
def test_methods(name):
    both(CALLS[name])


def test_methods_that_change_the_tensor_return_it():
    def program(t):
        x = t.ones(3)
        calls = [
            x.add_(1),
            x.zero_(),
            x.fill_(2),
            x.copy_(t.ones(3)),
            x.requires_grad_(False),
            x.clamp_(0),
            x.t_(),
            x.unsqueeze_(0),
        ]
        return [c is x for c in calls], x

    both(program)
