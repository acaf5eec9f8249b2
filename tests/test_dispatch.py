"""How a call becomes a node: promotion, in-place, out=, keywords in numpy's spelling, requires_grad, plans."""

import pytest

import jtorch
from jtorch.dispatch import dynamic, old_order
from tests.oracle import both, torch


def test_promotion_of_results():
    def program(t):
        i, f, h, d, b = (
            t.tensor([1]),
            t.tensor([1.0]),
            t.tensor([1.0]).half(),
            t.tensor([1.0]).double(),
            t.tensor([True]),
        )
        zero = t.tensor(2.0, dtype=t.float64)
        return [
            (i + f).dtype, (i / i).dtype, (h + f).dtype, (h + d).dtype, (b + i).dtype, (i + 1.5).dtype,
            (b + 1).dtype, (h + 1.5).dtype,
            (f + zero).dtype, (i + zero).dtype, (zero + 1).dtype, (i * 1j).dtype, (d * 1j).dtype,
            i.sqrt().dtype, b.sum().dtype,
            i.to(t.int8).sum().dtype, i.cumsum(0).dtype, b.float().mean().dtype, (i == f).dtype,
            (i.to(t.uint8) + i.to(t.int8)).dtype,
            t.where(b, i, f).dtype, t.cat([i, f]).dtype, t.stack([b, b]).dtype, (i**2).dtype, (2**i).dtype,
            (i // f).dtype,
        ]  # fmt: skip

    both(program)


def test_in_place_keeps_the_dtype():
    both(lambda t: t.ones(2).half().add_(t.ones(2).double()))
    both(lambda t: t.tensor([1]).mul_(1.5))
    both(lambda t: t.tensor([True]).add_(1))
    both(lambda t: t.ones(2).add_(1j))


def test_out():
    def program(t):
        out = t.empty(3)
        got = t.add(t.ones(3), 2, out=out)
        wide = t.empty(3, dtype=t.float64)
        t.mul(t.ones(3), 3, out=wide)
        view = t.zeros(2, 3)
        t.exp(t.zeros(3), out=view[1])
        small = t.empty(0)
        t.neg(t.ones(2, 2), out=small)
        values, indices = t.empty(0), t.empty(0, dtype=t.int64)
        t.max(t.tensor([[1.0, 3.0]]), 1, out=(values, indices))
        return got is out, out, wide, view, small, values, indices

    both(program)
    both(lambda t: t.add(t.ones(2), 1, out=t.zeros(2, dtype=t.int32)))
    both(lambda t: t.add(t.ones(2, requires_grad=True), 1, out=t.zeros(2)))
    both(lambda t: t.exp(t.ones(2), out=t.zeros(2, requires_grad=True)))
    both(lambda t: t.exp(t.ones(2), out=3))


def test_numpy_spellings():
    both(lambda t: [t.ones(2, 3).sum(axis=0), t.ones(2, 3).mean(axis=1, keepdims=True), t.cat([t.ones(1)], axis=0)])
    both(lambda t: [t.ones(2, 3).max(axis=1)[0], t.softmax(t.ones(2, 2), dim=-1), t.squeeze(t.ones(1, 2), axis=0)])


def test_spread_sizes():
    def program(t):
        x = t.arange(6.0)
        return [
            x.view(2, 3), x.view((2, 3)), x.view([2, 3]), x.view(t.Size([2, 3])), x.reshape(3, 2).permute(1,
            0), x.repeat(2, 1),
            x.view(2, 3).permute((1, 0)), x.view(2, 3).sum((0, 1)), x.view(2, 3).flip(0, 1), x.expand(2, 6),
            x.tile(2), x.view(-1, 2),
        ]  # fmt: skip

    both(program)


def test_requires_grad_of_results():
    def program(t):
        x = t.ones(2, requires_grad=True)
        y = t.ones(2)
        with t.no_grad():
            a = x * 2
        with t.inference_mode():
            b = x * 2
        with t.enable_grad():
            c = x * 2
        return a, b.is_inference(), c, x > 0, x.argmax(), x * y, y * 2, x.detach(), x.long(), x.data

    both(program)


def test_results_of_several_values():
    def program(t):
        x = t.tensor([[3.0, 1.0], [2.0, 4.0]])
        s = x.sort(1)
        m = t.max(x, 0)
        return (
            s.values,
            s.indices,
            m.values,
            m[1],
            type(s).__name__,
            len(s),
            t.aminmax(x).max,
            repr(x.max(0)),
            tuple(m) == m,
        )

    both(program)


def test_a_plan_is_made_once():
    x = jtorch.ones(5)
    op = jtorch.ops.registry.OPS["sin"]
    x.sin()
    before = len(op.plans)
    for _ in range(5):
        x.sin()
    assert len(op.plans) == before
    jtorch.ones(1237).sin()  # a size that no other test has
    assert len(op.plans) == before + 1


def test_signatures():
    both(lambda t: t.ones(2).sum(dtype=t.float64))
    both(lambda t: t.add(input=t.ones(2), other=t.ones(2), alpha=3))
    both(lambda t: t.sub(t.ones(2), 1, alpha=2))
    both(lambda t: t.clamp(t.arange(4.0), max=2))
    for bad in (lambda t: t.add(t.ones(2)), lambda t: t.ones(2).add(1, 2, 3), lambda t: t.sum()):
        with pytest.raises(TypeError):
            bad(jtorch)


def test_the_class_of_a_wrapper_is_asked_to_detach():
    class Scaled(jtorch.Tensor):
        @staticmethod
        def __new__(cls, elem):
            return jtorch.Tensor._make_wrapper_subclass(cls, elem.shape, dtype=elem.dtype)

        def __init__(self, elem):
            self.elem = elem

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return cls(func(args[0].elem, *args[1:], **(kwargs or {})))

    one = Scaled(jtorch.ones(2))
    parameter = jtorch.nn.Parameter(one)
    for made in (one.detach(), one.data, parameter):
        assert type(made) is Scaled
        assert made.elem.tolist() == [1.0, 1.0]
    assert parameter.requires_grad


OLD_ORDER = (
    "x.clone().add_(0.5, y)", "t.add(x, 0.5, y)", "x.add(2, y)", "x.clone().sub_(0.5, y)", "t.sub(x, 2, y, out=t.zeros(2, 2))",
    "x.clone().addcmul_(0.5, y, x)", "x.clone().addcdiv_(-0.5, y, y + 1)", "t.addcmul(x, 0.5, y, x)", "t.addcdiv(x, 0.5, y, x)",
    "t.addmm(0.5, x, 2.0, y, x)", "t.addmm(0.5, x, y, x)", "x.addmm(0.5, 2.0, y, x)", "x.addmm(0.5, y, x)",
    "x.clone().addmm_(0.5, 2, y, x)", "t.baddbmm(0.5, x[None], 2, y[None], x[None])", "t.addmv(0.5, x[0], 2, y, x[0])",
    "t.addr(0.5, x, 2, y[0], x[0])", "t.addbmm(0.5, x, 2, y[None], x[None])", "x.addbmm(0.5, 2, y[None], x[None])",
    "x.add(y, 3)", "x.clone().add_(y, 3)", "t.addmm(x, y, y, 3)", "x.addcmul(y, y, 0.5)", "t.add(x, 0.5, y, 3)", "x.sub(0.5, 2)",
    "t.add(x, 0.5, y, alpha=2)", "x.add(0.5, z.requires_grad_())", "x.add_(0.5, 2)", "t.add(1, 2, 3)",
)  # fmt: skip


@pytest.mark.parametrize("call", OLD_ORDER)
def test_numbers_before_tensors(call):
    """The order of arguments of PyTorch's first years, which it has deprecated and takes."""

    def program(t):
        x, y, z = t.arange(4.0).view(2, 2) + 1, t.ones(2, 2) * 3, t.ones(2, 2)
        try:
            return [eval(call, {"t": t, "x": x, "y": y, "z": z})]
        except TypeError:
            return ["TypeError"]

    both(program)


def test_old_order_warns_once(monkeypatch):
    monkeypatch.setattr(old_order, "_said", [False])
    x = jtorch.ones(2)
    with pytest.warns(
        UserWarning, match="This overload of add_ is deprecated:\n\tadd_\\(Number alpha, Tensor other\\)"
    ) as said:
        x.add_(0.5, jtorch.ones(2)).add_(0.5, jtorch.ones(2))
    assert len(said) == 1 and "\tadd_(Tensor other, *, Number alpha" in str(said[0].message)


def test_rows_of_sparse_indices():
    def program(t):
        rows, starts, columns = t.tensor([0, 0, 2, 3]), t.tensor([0, 2, 2, 3]), t.tensor([0, 1, 0])
        return [
            t._convert_indices_from_coo_to_csr(rows, 5), t._convert_indices_from_coo_to_csr(rows, size=5, out_int32=True),
            t._convert_indices_from_coo_to_csr(rows[:0], 2), t._convert_indices_from_csr_to_coo(starts, columns),
            t._convert_indices_from_csr_to_coo(starts, columns, transpose=True, out_int32=True),
        ]  # fmt: skip

    both(program)


NARROW = {
    "clamp": lambda t, x, n: x.clamp(max=n),
    "clamp_": lambda t, x, n: x.clamp_(min=n),
    "where": lambda t, x, n: t.where(x > 1, x, n),
    "pow": lambda t, x, n: x.pow(n),
    "operator": lambda t, x, n: x**n,
    "add": lambda t, x, n: x.add(x, alpha=n),
    "add_": lambda t, x, n: x.add_(x, alpha=n),
    "addcmul": lambda t, x, n: t.addcmul(x, x, x, value=n),
    "index_add": lambda t, x, n: x.index_add(0, t.tensor([0]), x[:1], alpha=n),
    "addr": lambda t, x, n: t.addr(x[:, None] * x, x, x, alpha=n),
    "pad": lambda t, x, n: t.nn.functional.pad(x, (1, 1), value=n),
    "out": lambda t, x, n: t.clamp(x, max=n, out=t.empty(0, dtype=x.dtype)),
    "product": lambda t, x, n: x * n,
}


@pytest.mark.parametrize("kind", ["int8", "uint8", "int32"])
@pytest.mark.parametrize("name", NARROW)
def test_later_numbers(name, kind):
    """A number that elements cannot be is refused in each call, not only in the first of its kind."""
    for n in (3, 2, 1000, 2**33, -1, -200, 3, 1000, 7):
        both(lambda t, n=n: NARROW[name](t, t.ones(2, dtype=getattr(t, kind)), n))


def test_calls_of_a_dynamic_op_that_are_alike_share_a_derivative():
    x = jtorch.arange(12.0).reshape(3, 4).requires_grad_()
    made = len(dynamic._plans)
    for least in (3, 3, 3, 5, 3):
        y = x.masked_select(x > least)
        (by_x,) = jtorch.autograd.grad((y * y).sum(), x)
        assert by_x.tolist() == [[2.0 * v if v > least else 0.0 for v in row] for row in x.tolist()]
    assert len(dynamic._plans) == made + 2


@pytest.mark.parametrize("shape", [(2,), (3,)])
@pytest.mark.parametrize(
    "call",
    ["x.clone()", "x * 2", "x == x", "t.stack([x, x])", "x.flip(0)", "x + here", "t.cat([here, x])"],
)
def test_two_whole_numbers_are_no_random_key(call, shape):
    """A key is two numbers of uint32 too, and goes to any device."""

    def program(t):
        x = t.zeros(shape, dtype=t.uint32, device="meta")
        try:
            return str(eval(call, {"t": t, "x": x, "here": t.zeros(shape, dtype=t.uint32)}).device)
        except RuntimeError:  # the words are others
            return RuntimeError

    assert program(jtorch) == program(torch)
