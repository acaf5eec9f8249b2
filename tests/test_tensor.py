"""Tensors as PyTorch users meet them: fields, operators, conversions, printing, leaf rules."""

import warnings

import pytest

import jtorch
from tests.oracle import both


def test_fields():
    def program(torch):
        x = torch.zeros(2, 3, 4, requires_grad=True)
        y = x * 2
        return [
            x.shape, x.size(), x.size(1), x.size(-1), x.ndim, x.dim(), x.numel(), x.nelement(), x.stride(), x.stride(0),
            x.dtype, str(x.device), x.is_leaf, y.is_leaf, x.requires_grad, y.requires_grad, x.grad is None,
            x.grad_fn is None,
            type(y.grad_fn).__name__, x.itemsize, x.nbytes, x.is_contiguous(), x.is_floating_point(), x.is_complex(),
            x.storage_offset(), x.layout, x.T.shape if x.ndim == 2 else None, x.mT.shape, len(x), x.is_cuda,
            x.is_sparse,
            x.output_nr, y.output_nr, x._version, x.names, x.retains_grad, x.data.requires_grad, x.type(),
            x.is_signed(),
        ]  # fmt: skip

    both(program)


OPERATORS = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": lambda a, b: a / b,
    "//": lambda a, b: a // b, "%": lambda a, b: a % b, "**": lambda a, b: a**b, "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b, "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b, "&": lambda a, b: a & b, "|": lambda a, b: a | b, "^": lambda a, b: a ^ b,
    "<<": lambda a, b: a << b, ">>": lambda a, b: a >> b, "@": lambda a, b: a @ b,
}  # fmt: skip
OPERANDS = {
    "float": lambda t: t.tensor([1.5, -2.0, 3.0]),
    "int": lambda t: t.tensor([3, -2, 1]),
    "bool": lambda t: t.tensor([True, False, True]),
    "0-d": lambda t: t.tensor(2),
    "1": lambda t: 1,
    "2.5": lambda t: 2.5,
    "True": lambda t: True,
}


@pytest.mark.parametrize("name", OPERATORS)
def test_operators(name):
    """Every operator on every pair of operands, reflected too: values, dtypes, errors."""
    for a in OPERANDS.values():
        for b in OPERANDS.values():
            both(lambda t, a=a, b=b: OPERATORS[name](a(t), b(t)))


def test_unary_operators():
    for make in OPERANDS.values():
        for f in (lambda x: -x, lambda x: +x, abs, lambda x: ~x):
            both(lambda t, f=f, make=make: f(make(t)))


def test_augmented_assignment():
    def program(torch):
        x = torch.arange(4.0)
        alias = x
        x += 1
        x *= 2
        x -= torch.ones(4)
        x /= 2
        x **= 2
        y = torch.tensor([5, 6])
        y //= 2
        y <<= 2
        y |= 1
        return x, alias is x, y

    both(program)
    both(lambda torch: torch.tensor([1]).add_(0.5))
    both(lambda torch: torch.tensor([1]).__itruediv__(2))


def test_conversions():
    def program(torch):
        x = torch.tensor([2.7])
        return [
            float(x), int(x), bool(x), x.item(), x.tolist(), complex(x), torch.tensor(3).item(), [10, 20,
            30][torch.tensor(1)],
            f"{torch.tensor(3.14159):.2f}", f"{torch.tensor(5)}", round(float(x)), torch.tensor(True).item(),
        ]  # fmt: skip

    both(program)
    for f in (bool, float, int, lambda x: x.item()):
        both(lambda torch, f=f: f(torch.ones(2)))
        both(lambda torch, f=f: f(torch.ones(0)))


@pytest.mark.parametrize("kind", ["float16", "float8_e5m2"])
def test_small_floats_as_ints(kind):
    """What is out of range wraps, and numpy does not warn of bounds that such a float cannot hold."""
    values = [1.5, -2.5, float("inf"), -float("inf"), float("nan"), 300.0, 0.0]
    both(lambda t: [t.tensor(values).to(getattr(t, kind)).to(d) for d in (t.int8, t.uint8, t.int32, t.int64, t.bool)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jtorch.ones(1, 1, 5).to(getattr(jtorch, kind)).long()


def test_conversions_with_a_memory_format():
    def program(t):
        x = t.zeros(2, 3, 2, 2).contiguous(memory_format=t.channels_last)
        return [
            y if y is not x else True
            for layout in (t.preserve_format, t.contiguous_format, t.channels_last)
            for convert in (
                lambda m: x.cpu(memory_format=m),
                lambda m: x.type(t.float64, memory_format=m),
                lambda m: x.type("torch.FloatTensor", memory_format=m),
            )
            for y in (convert(layout),)
        ]

    both(program)


def test_leaf_rules():
    both(lambda torch: torch.tensor([1, 2], requires_grad=True))
    both(lambda torch: torch.ones(2, dtype=torch.int64).requires_grad_())
    both(lambda torch: (torch.ones(2, requires_grad=True) * 2).requires_grad_(False))
    both(lambda torch: torch.ones(2, requires_grad=True).add_(1))
    both(lambda torch: torch.ones(2, requires_grad=True)[0].add_(1))
    both(lambda torch: torch.ones(2).backward())
    both(lambda torch: (torch.ones(2, requires_grad=True) * 2).backward())

    def twice(torch):
        y = torch.ones(2, requires_grad=True).exp().sum()
        y.backward()
        y.backward()

    both(twice)


def test_grad_assignment():
    def program(torch):
        x = torch.ones(3, requires_grad=True)
        x.grad = torch.full((3,), 2.0)
        (x * 3).sum().backward()
        return x.grad

    both(program)
    for bad in (lambda t: t.ones(2), lambda t: 1.0, lambda t: t.ones(3, dtype=t.float64)):
        both(lambda t, bad=bad: setattr(t.ones(3, requires_grad=True), "grad", bad(t)))


@pytest.mark.parametrize(
    "make",
    [
        lambda t: t.tensor([1.0, 2.5]), lambda t: t.tensor([1, 2]), lambda t: t.tensor(3.0), lambda t: t.tensor([True]),
        lambda t: t.ones(2, requires_grad=True), lambda t: t.ones(2, requires_grad=True) + 1, lambda t: t.zeros(0, 3),
        lambda t: t.tensor([1e-8, 1.0]), lambda t: t.tensor([1e10, 1.0]), lambda t: t.arange(2000),
        lambda t: t.arange(4000.0).view(40, 100), lambda t: t.tensor([float("nan"), float("inf")]),
            lambda t: t.eye(3).half(),
        lambda t: t.tensor([1 + 2j]), lambda t: t.ones(2, 2, dtype=t.float64).t(), lambda t: t.tensor([[1.0,
            -20.5]]).int(),
        lambda t: t.ones(1, requires_grad=True).view(-1), lambda t: t.ones(2, requires_grad=True)[0],
    ],
)  # fmt: skip
def test_printing(make):
    both(lambda t: (repr(make(t)), str(make(t))))


def test_grad_fn_names():
    def program(t):
        x = t.ones(2, 3, requires_grad=True)
        results = [
            x + 1, x - 1, x * 2, x / 2, -x, x**2, x @ x.t(), x.sum(), x.mean(0), x.exp(), x.relu(), x.view(6),
            x.t(), x[0],
            x[:, 1:], x.reshape(3, 2), x.clone(), x.max(), x.max(0)[0], x.softmax(-1), x.log(), x.sigmoid(),
            x.tanh(), x.abs(),
            x.unsqueeze(0), x.expand(4, 2, 3), t.cat([x, x]), t.stack([x, x]), x.permute(1, 0),
            x.contiguous().sqrt(), x.std(),
            t.where(x > 0, x, x * 2), x.clamp(0, 1), x.norm(), x.double(), x.mm(x.t()), x.index_select(0,
            t.tensor([0])),
            x[t.tensor([0])], x.masked_fill(x > 0, 1.0), x.prod(), x.cumsum(0), x.split(1)[0], x.chunk(2)[1],
            x.squeeze(0),
        ]  # fmt: skip
        return [(type(r.grad_fn).__name__, r.grad_fn.name()) for r in results]

    both(program)


def test_equality_and_hash():
    def program(torch):
        x, y = torch.ones(2), torch.ones(2)
        return [
            len({x, y, x}),
            x is x,
            (x == y).tolist(),
            torch.equal(x, y),
            x.equal(y),
            {x: 1}[x],
        ]

    both(program)


def test_subclasses():
    def program(torch):
        class Mine(torch.Tensor):
            pass

        x = torch.ones(2).as_subclass(Mine)
        return type(x).__name__, type(x + 1).__name__, isinstance(x, torch.Tensor), x.sum()

    both(program)


def test_legacy_constructors():
    both(
        lambda t: [
            t.FloatTensor([1, 2]),
            t.LongTensor([3]),
            t.Tensor([1, 2]),
            t.Tensor(2, 3).shape,
            t.BoolTensor([True]),
        ]
    )


SHAPES = {
    "view by name": lambda t: t.ones(2, 3).view(size=(3, 2)).shape,
    "view of nothing": lambda t: t.ones(2, 3).view(),
    "view of a word": lambda t: t.ones(2, 3).view("a"),
    "view as larger elements": lambda t: t.ones(3).view(t.float64),
    "view as smaller elements": lambda t: t.ones(3, 2).t().view(t.int16),
    "view of a number": lambda t: t.ones(()).view(t.int16),
    "mT of a number": lambda t: t.ones(()).mT,
    "H of more": lambda t: t.ones(2, 3, 4).H,
    "size of a number": lambda t: t.ones(()).size(0),
    "size by a word": lambda t: t.ones(2).size("a"),
    "size by a tensor": lambda t: t.ones(2).size(t.tensor(0)),
    "shapes that do not broadcast": lambda t: t.broadcast_shapes((2, 3), (4, 1, 3), (2, 2)),
    "a shape below zero": lambda t: t.broadcast_shapes((-1,)),
    "more dimensions than numpy has": lambda t: (t.ones([1] * 65) * 2).flatten().tolist(),
    "split at a matrix": lambda t: t.tensor_split(t.ones(3), t.tensor([[1]])),
}


@pytest.mark.parametrize("name", SHAPES)
def test_shapes(name):
    both(SHAPES[name])
