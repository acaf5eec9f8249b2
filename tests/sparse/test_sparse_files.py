"""Sparse tensors in files, in pickles, in copies, and in torch.testing."""

import contextlib
import copy
import io
import pickle
import warnings

import pytest

import jtorch
from tests.oracle import both, torch
from tests.sparse.samples import Samples, parts

KINDS = {
    "coo": lambda s: s.coo, "whole": lambda s: s.whole, "hybrid": lambda s: s.hybrid, "csr": lambda s: s.csr,
    "csc": lambda s: s.csc, "bsr": lambda s: s.blocks("bsr"), "bsc": lambda s: s.blocks("bsc"),
}  # fmt: skip


def lists(x):
    return [p.tolist() if hasattr(p, "tolist") else p for p in parts(x)]


@pytest.mark.parametrize("kind", KINDS)
def test_files_go_both_ways(kind):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's own: of invariants, and that compressed layouts are new
        _go_both_ways(kind)


def _go_both_ways(kind):
    for one, two in ((torch, jtorch), (jtorch, torch), (jtorch, jtorch)):
        file = io.BytesIO()
        x = KINDS[kind](Samples(one))
        one.save({"x": x, "y": [x]}, file)
        file.seek(0)
        found = two.load(file, weights_only=True)["x"]
        assert lists(found) == lists(x)
        assert str(found.layout) == str(x.layout)
        assert tuple(found.shape) == tuple(x.shape)


@pytest.mark.parametrize("kind", KINDS)
def test_copies(kind):
    x = KINDS[kind](Samples(jtorch, grad=True))
    for made in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x), copy.copy(x)):
        assert made is not x
        assert lists(made) == lists(x)
        assert made.requires_grad


def test_deepcopy_of_a_gradient_and_of_a_result():
    w = jtorch.ones(3, 2, requires_grad=True)
    jtorch.nn.functional.embedding(jtorch.tensor([1, 1]), w, sparse=True).sum().backward()
    assert lists(copy.deepcopy(w).grad) == lists(w.grad)
    with pytest.raises(RuntimeError, match="Only Tensors created explicitly"):
        copy.deepcopy(Samples(jtorch, grad=True).coo * 2)


COMPARED = {
    "same": lambda s: (s.whole, s.whole),
    "unsorted": lambda s: (s.coo, s.whole),
    "csr": lambda s: (s.csr, s.csr),
    "values": lambda s: (s.whole, s.whole * 2),
    "layouts": lambda s: (s.whole, s.csr),
    "nnz": lambda s: (s.whole, s.other.abs() + s.whole),
}


@pytest.mark.parametrize("name", COMPARED)
def test_assert_close(name):
    """Passes and fails as PyTorch's."""

    def program(t):
        with pytest.raises(AssertionError) if name not in ("same", "csr") else contextlib.nullcontext() as caught:
            t.testing.assert_close(*COMPARED[name](Samples(t)))
        return None if caught is None else str(caught.value)

    both(program)


def test_type_names_and_attributes():
    def program(t):
        x = Samples(t).coo
        return (
            x.type(), x.int().type(), t.is_tensor(x), isinstance(x, t.Tensor), x.dim(), x.numel(), len(x), x.shape, x.size(1), x.device.type,
            t.numel(x), t.is_floating_point(x), x.element_size(), x.is_contiguous(), x.dense_dim(), x.sparse_dim(), x.storage_offset(),
            t.is_same_size(x, x.to_dense()), t.result_type(x, 1.0), x.new_zeros(2, 2).shape, t.typename(x) == x.type(),
        )  # fmt: skip

    both(program)


def test_as_a_parameter_and_a_buffer():
    def program(t):
        m = t.nn.Module()
        m.register_buffer("a", Samples(t).csr)
        state = m.state_dict()
        m.load_state_dict({"a": state["a"]})
        return m.a.to_dense(), (m.double().a.dtype), list(state)

    both(program)


def test_old_constructors():
    def program(t):
        i, v = t.tensor([[0, 1]]), t.tensor([1.0, 2])
        x = t.sparse.FloatTensor(i, v, t.Size([3]))
        return x, t.sparse.DoubleTensor(2, 3), isinstance(x, t.sparse.FloatTensor), isinstance(x, t.sparse.LongTensor)

    both(program)


@pytest.mark.parametrize("masked", [True, False])
def test_as_sparse_gradcheck(masked):
    def program(t):
        check = t.sparse.as_sparse_gradcheck(t.autograd.gradcheck)
        x = Samples(t).whole.double().requires_grad_()
        return check(lambda s: (s * 3).to_dense(masked_grad=masked), (x,), masked=masked)

    both(program)
