"""Errors: PyTorch's class and first line, raised at the call and not later."""

import pytest

import jtorch
from jtorch import errors
from tests.oracle import both

CALLS = {
    "broadcast": lambda t: t.ones(3, 4) + t.ones(5),
    "broadcast 3": lambda t: t.where(t.ones(2) > 0, t.ones(3), t.ones(2)),
    "in-place broadcast": lambda t: t.ones(3).add_(t.ones(2, 3)),
    "matmul": lambda t: t.ones(2, 3) @ t.ones(2, 3),
    "matmul vectors": lambda t: t.ones(2) @ t.ones(3),
    "matmul 0-d": lambda t: t.ones(2) @ t.tensor(1.0),
    "matmul dtypes": lambda t: t.ones(2, 2) @ t.ones(2, 2).double(),
    "mm": lambda t: t.mm(t.ones(2), t.ones(2, 2)),
    "bmm": lambda t: t.bmm(t.ones(2, 2, 2), t.ones(3, 2, 2)),
    "view": lambda t: t.ones(6).view(4, 2),
    "view of strides": lambda t: t.ones(2, 3).t().view(6),
    "view -1 twice": lambda t: t.ones(6).view(-1, -1),
    "reshape": lambda t: t.ones(6).reshape(5),
    "dim": lambda t: t.ones(2).sum(3),
    "dim negative": lambda t: t.ones(2).sum(-2),
    "dim of 0-d": lambda t: t.tensor(1.0).sum(1),
    "transpose": lambda t: t.ones(2).transpose(0, 1),
    "permute": lambda t: t.ones(2, 3).permute(0),
    "permute twice": lambda t: t.ones(2, 3).permute(0, 0),
    "expand": lambda t: t.ones(3).expand(4),
    "expand fewer": lambda t: t.ones(2, 3).expand(3),
    "squeeze": lambda t: t.ones(2).squeeze(4),
    "t of 3-d": lambda t: t.ones(2, 2, 2).t(),
    "narrow": lambda t: t.ones(3).narrow(0, 2, 3),
    "split": lambda t: t.ones(5).split([2, 2]),
    "chunk": lambda t: t.ones(5).chunk(0),
    "cat nothing": lambda t: t.cat([]),
    "cat sizes": lambda t: t.cat([t.ones(2, 3), t.ones(2, 4)]),
    "cat dims": lambda t: t.cat([t.ones(2), t.ones(2, 2)]),
    "stack": lambda t: t.stack([t.ones(2), t.ones(3)]),
    "gather": lambda t: t.ones(2, 3).gather(1, t.tensor([[5]])),
    "gather dtype": lambda t: t.ones(2, 3).gather(1, t.tensor([[0.5]])),
    "index_select": lambda t: t.ones(2).index_select(0, t.tensor([3])),
    "scatter": lambda t: t.zeros(2).scatter(0, t.tensor([4]), 1.0),
    "embedding": lambda t: t.nn.functional.embedding(t.tensor([7]), t.ones(3, 2)),
    "cross entropy target": lambda t: t.nn.functional.cross_entropy(t.ones(2, 3), t.tensor([0, 5])),
    "cross entropy sizes": lambda t: t.nn.functional.cross_entropy(t.ones(2, 3), t.tensor([0, 1, 2])),
    "cross entropy columns": lambda t: t.nn.functional.cross_entropy(t.ones(2, 3), t.ones(2, 1).long()),
    "cross entropy of one": lambda t: t.nn.functional.cross_entropy(t.ones(3), t.tensor([0, 1])),
    "nll images": lambda t: t.nn.functional.nll_loss(t.ones(2, 3, 1, 1), t.tensor([0, 1])),
    "cosine targets": lambda t: t.nn.functional.cosine_embedding_loss(t.ones(4, 3), t.ones(4, 3), t.ones(3)),
    "linear dtypes": lambda t: t.nn.functional.linear(t.ones(2, 2).long(), t.ones(2, 2)),
    "type name": lambda t: t.ones(1).type("FloatTensor"),
    "text in a list": lambda t: t.tensor([1, "a"]),
    "bytes": lambda t: t.tensor(b"a"),
    "compile of a number": lambda t: t.compile(3),
    "compile twice": lambda t: t.compile(len, len),
    "linear": lambda t: t.nn.functional.linear(t.ones(2, 3), t.ones(4, 5)),
    "conv": lambda t: t.nn.functional.conv2d(t.ones(1, 3, 4, 4), t.ones(2, 4, 3, 3)),
    "conv kernel": lambda t: t.nn.functional.conv2d(t.ones(1, 3, 2, 2), t.ones(2, 3, 3, 3)),
    "mean of ints": lambda t: t.tensor([1, 2]).mean(),
    "max of nothing": lambda t: t.ones(0).max(),
    "argmax of nothing": lambda t: t.ones(0).argmax(),
    "integer division in place": lambda t: t.tensor([1]).div_(2),
    "bool minus": lambda t: t.tensor([True]) - t.tensor([True]),
    "neg of bool": lambda t: -t.tensor([True]),
    "not of float": lambda t: ~t.ones(1),
    "shift of float": lambda t: t.ones(1) << 1,
    "integer negative power": lambda t: t.tensor([2]) ** -1,
    "clamp without bounds": lambda t: t.ones(1).clamp(),
    "no such argument": lambda t: t.ones(2).sum(dimension=0),
    "too many arguments": lambda t: t.ones(2).exp(1, 2, 3),
    "not a tensor": lambda t: t.exp(3),
    "no such attribute": lambda t: t.ones(1).nothing,
    "no such function": lambda t: t.nothing,
    "out dtype": lambda t: t.add(t.ones(2), 1.5, out=t.zeros(2, dtype=t.int64)),
    "len of 0-d": lambda t: len(t.tensor(1)),
    "iteration over 0-d": lambda t: list(t.tensor(1)),
    "unbind 0-d": lambda t: t.tensor(1).unbind(),
    "inverse": lambda t: t.linalg.inv(t.zeros(2, 2)),
    "cholesky": lambda t: t.linalg.cholesky(-t.eye(2)),
    "inv of a row": lambda t: t.linalg.inv(t.ones(2, 3)),
    "backward of two": lambda t: (t.ones(2, requires_grad=True) * 1).backward(),
    "grad of what is unused": lambda t: t.autograd.grad(
        t.ones(1, requires_grad=True).sum(), t.ones(1, requires_grad=True)
    ),
    "item of two": lambda t: t.ones(2).item(),
    "repeat fewer": lambda t: t.ones(2, 2).repeat(2),
    "topk": lambda t: t.ones(2).topk(3),
    "kthvalue": lambda t: t.ones(2).kthvalue(3),
    "multinomial": lambda t: t.multinomial(t.ones(2), 3),
    "bernoulli": lambda t: t.bernoulli(t.tensor([2.0])),
    "randint": lambda t: t.randint(5, 5, (1,)),
    "as_strided": lambda t: t.ones(2).as_strided((3,), (1,)),
    "dot": lambda t: t.dot(t.ones(2), t.ones(3)),
    "masked_select": lambda t: t.ones(2).masked_select(t.ones(2)),
    "where dtype": lambda t: t.where(t.ones(2), 1.0, 2.0),
    "load_state_dict": lambda t: t.nn.Linear(2, 2).load_state_dict({"weight": t.ones(3, 3)}),
    "Module without forward": lambda t: t.nn.Module()(1),
    "empty optimizer": lambda t: t.optim.SGD([], lr=0.1),
    "number for a tensor": lambda t: t.eq(2, t.ones(2)),
    "no tensor at all": lambda t: t.special.zeta(2, 3),
    "reversed operator by name": lambda t: t.Tensor.__radd__(2, t.ones(2)),
    "out= is an operand": lambda t: (lambda x: t.cat([x, t.ones(4)], out=x))(t.zeros(0)),
    "out= overlaps itself": lambda t: t.bernoulli(t.ones(3), out=t.empty(1).expand(3)),
    "conv weight of two dimensions": lambda t: t.nn.functional.conv1d(t.ones(1, 2, 3), t.ones(2, 2)),
    "conv weight of another rank": lambda t: t.nn.functional.conv2d(
        t.ones(1, 1, 4, 3), t.ones(1, 2, 2), padding="same"
    ),
    "hsplit": lambda t: t.hsplit(t.ones(2, 2), "abc"),
    "65 dimensions": lambda t: t.ones([1] * 65).sum(3),
    "bool products": lambda t: t.tensor([[True]]) @ t.tensor([True]),
    "stft of integers": lambda t: t.stft(t.ones(20).long(), 4, window=t.ones(4), center=False, return_complex=True),
    "stft padding": lambda t: t.stft(t.ones(5), 20, return_complex=True),
    "categories": lambda t: t.multinomial(t.ones(1).expand((1 << 24) + 1), 1),
    "two dtypes": lambda t: t.ones(2).to(t.float16, t.float32),
    "two devices": lambda t: t.ones(2).to("cpu", "cpu"),
    "dtype before device": lambda t: t.ones(2).to(t.float16, "cpu"),
    "a dtype by position and by name": lambda t: t.ones(2).to(t.float16, dtype=t.float32),
    "a tensor and a dtype": lambda t: t.ones(2).to(t.ones(2), t.float64),
    "a number among flags": lambda t: t.ones(2).to(t.float16, True, True, 3),
    "order of a norm": lambda t: t.ones(2, 2).norm("foo"),
    "a word for a grad mode": lambda t: t.set_grad_enabled("a"),
    "a number for a grad mode": lambda t: t.set_grad_enabled(1),
    "gradcheck": lambda t: t.autograd.gradcheck(
        lambda x: x**2 + x.detach(), t.ones(2, dtype=t.double, requires_grad=True)
    ),
    "negative lr": lambda t: t.optim.SGD([t.ones(1, requires_grad=True)], lr=-1),
}


@pytest.mark.parametrize("name", CALLS)
def test_words(name):
    both(CALLS[name])


@pytest.mark.parametrize("args", [(), (None,), (None, "float64"), ("cpu", None, True), ("float16", True, False)])
def test_forms_of_to(args):
    both(lambda t: t.ones(2).to(*(getattr(t, a) if a in ("float64", "float16") else a for a in args)).dtype)


def test_errors_come_at_the_call_in_auto_mode():
    jtorch.synchronize()
    before = jtorch.core.ledger.counters.flushes
    with pytest.raises(RuntimeError, match="must match the size of tensor b \\(5\\) at non-singleton dimension 1"):
        jtorch.ones(3, 4) + jtorch.ones(5)
    assert jtorch.core.ledger.counters.flushes == before


def test_the_constructor_of_a_message():
    error = errors.broadcast(4, 5, 1)
    first = str(error).splitlines()[0]
    assert first == "The size of tensor a (4) must match the size of tensor b (5) at non-singleton dimension 1"


def test_the_unsupported_says_what_to_do():
    error = errors.unsupported("sparse layout", instead="to_dense()")
    assert isinstance(error, NotImplementedError) and "to_dense()" in str(error)
