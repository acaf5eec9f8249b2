"""torch.Tensor(...), tensor.new(...), torch.FloatTensor(...), type(), and tensors out of buffers."""

import numpy as np
import pytest

from tests.oracle import both


def double(t):
    return t.ones(2, 3, dtype=t.float64)


def history(x):
    return x.requires_grad, x.is_leaf, type(x.grad_fn).__name__, x._is_view()


def of_tensors(t):
    """What is made of a tensor is a view of it, with its history."""
    sub = type("Sub", (t.Tensor,), {})
    leaf, plain = t.ones(2, requires_grad=True), t.ones(2)
    makers = (t.Tensor, t.FloatTensor, t.ones(1).new, sub, lambda x: t.Tensor.__new__(sub, x))
    said = [history(make(x)) for make in makers for x in (leaf, leaf * 2, plain)]
    changed = t.Tensor(leaf * 3)
    changed.mul_(2)
    (sub(leaf).sum() + changed.sum()).backward()
    t.Tensor(plain).add_(1)
    data = sub([1.0])
    return said, leaf.grad, plain, type(data).__name__, history(data)


MADE = {
    "of tensors": of_tensors,
    "of data": lambda t: (t.Tensor([1, 2]), t.Tensor(range(3)), t.Tensor(np.array([1.0])), t.LongTensor([2.7])),
    "of sizes": lambda t: (t.Tensor(2, 3).shape, t.Tensor(t.Size([2])).shape, t.Tensor(size=(2,)).shape, t.Tensor().shape),
    "of sizes in tensors": lambda t: t.Tensor(t.tensor(3), t.tensor(2)).shape,
    "of a tensor": lambda t: (t.Tensor(t.ones(2).int()), t.FloatTensor(t.ones(2))),
    "of a tensor by name": lambda t: t.Tensor(other=t.ones(2)),
    "of a tensor of another dtype": lambda t: t.FloatTensor(t.ones(2).double()),
    "of a storage": lambda t: (t.Tensor(t.ones(2).storage()), t.DoubleTensor(t.ones(2).untyped_storage())),
    "of a storage of another dtype": lambda t: t.Tensor(t.ones(2).double().storage()),
    "of a float": lambda t: t.Tensor(3.5),
    "of a bool": lambda t: t.Tensor(True),
    "of a word": lambda t: t.Tensor("a"),
    "of nothing": lambda t: t.Tensor(None),
    "of a dict": lambda t: t.Tensor({1: 2}),
    "of words": lambda t: t.Tensor(["a"]),
    "with a gradient": lambda t: t.Tensor([1.0], requires_grad=True),
    "with a dtype": lambda t: t.Tensor([1.0], dtype=t.float32),
    "on another device": lambda t: t.FloatTensor(2, device="meta"),
    "new": lambda t: (double(t).new([1, 2]), double(t).new((1, 2)), t.ones(2).long().new([1.5]), double(t).new()),
    "new of sizes": lambda t: (double(t).new(2, 3).shape, double(t).new(2, 3).dtype == t.float64),
    "new of a storage": lambda t: double(t).new(double(t).untyped_storage()),
    "new of a storage of another dtype": lambda t: double(t).new(t.ones(2).storage()),
    "new of a tensor": lambda t: double(t).new(t.ones(2, dtype=t.float64)),
    "new of a tensor of another dtype": lambda t: double(t).new(t.ones(2)),
    "new_tensor of a tensor": lambda t: (double(t).new_tensor(t.ones(2)), t.ones(2).int().new_tensor(t.ones(2) * 1.5)),
    "new_full of one int": lambda t: double(t).new_full(2, 3),
    "new_full of a word": lambda t: double(t).new_full((2,), "a"),
    "new_zeros of a word": lambda t: double(t).new_zeros("a"),
}  # fmt: skip
TYPES = {
    "what a type says": lambda t: [(k.is_cuda, k.is_sparse, str(k.layout)) for k in (t.FloatTensor, t.cuda.LongTensor)],
    "the type of a storage": lambda t: [x.storage_type().__name__ for x in (t.ones(1), t.ones(1, dtype=t.int8))],
    "of a young dtype": lambda t: t.ones(1, dtype=t.uint16).storage_type(),
    "numbers of devices": lambda t: [t.ones(1, device=d).get_device() for d in ("cpu", "meta")],
    "an offset": lambda t: t.Generator().set_offset(5),
    "the offset": lambda t: t.Generator().get_offset(),
    "names": lambda t: [
        t.empty(0, dtype=getattr(t, d)).type() for d in ("uint16", "uint64", "float8_e5m2", "complex32")
    ],
    "by name": lambda t: t.ones(2).type("torch.DoubleTensor"),
    "by class": lambda t: (t.ones(2).type(t.IntTensor), double(t).type(t.Tensor)),
    "by a number": lambda t: t.ones(2).type(5),
    "by a word": lambda t: t.ones(2).type("torch.Nope"),
    "isinstance": lambda t: [isinstance(t.ones(2), c) for c in (t.FloatTensor, t.DoubleTensor, t.cuda.FloatTensor)],
}
BUFFERS = {
    "bytes": lambda t: t.asarray(b"abcd", dtype=t.uint8),
    "bytes as numbers": lambda t: t.asarray(bytearray(b"abcd")),
    "a list that is not to be copied": lambda t: t.asarray([1.0], copy=False),
    "from a place": lambda t: t.frombuffer(bytearray(b"12345678"), dtype=t.int32, offset=4),
    "not whole": lambda t: t.frombuffer(bytearray(b"12345678"), dtype=t.int32, offset=3),
    "too many": lambda t: t.frombuffer(bytearray(b"12345678"), dtype=t.int32, count=3),
    "beyond": lambda t: t.frombuffer(bytearray(b"12345678"), dtype=t.int32, offset=9),
    "before": lambda t: t.frombuffer(bytearray(b"12345678"), dtype=t.int32, offset=-1),
    "none of them": lambda t: t.frombuffer(bytearray(b"12345678"), dtype=t.int32, count=0),
    "of nothing": lambda t: t.frombuffer(bytearray(b""), dtype=t.int32),
    "of a number": lambda t: t.frombuffer(5, dtype=t.int32),
    "of the other byte order": lambda t: t.from_numpy(np.arange(3).astype(">i4")),
}


@pytest.mark.parametrize("name", MADE)
def test_made(name):
    both(MADE[name])


@pytest.mark.parametrize("name", TYPES)
def test_types(name):
    both(TYPES[name])


@pytest.mark.parametrize("name", BUFFERS)
def test_buffers(name):
    both(BUFFERS[name])
