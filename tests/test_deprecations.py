"""deprecations.py, and what else warns of old calls: each says what PyTorch says."""

import warnings

import numpy as np
import pytest

import jtorch
from jtorch import errors
from tests.memory import start_anew
from tests.oracle import torch

# Of a module and numpy.
CALLS = {
    "arrays": lambda t: t.tensor([np.ones(2), np.ones(2)]),
    "asarray": lambda t: t.asarray(t.ones(1, requires_grad=True)),
    "asarray of numbers": lambda t: t.asarray(t.ones(1)),
    "asarray, cut": lambda t: t.asarray(t.ones(1, requires_grad=True), requires_grad=False),
    "autocast": lambda t: t.cpu.amp.autocast(),
    "chain": lambda t: t.chain_matmul(t.eye(2), t.eye(2)),
    "cholesky": lambda t: t.cholesky(t.eye(2)),
    "cross": lambda t: t.cross(t.ones(2, 3), t.ones(2, 3)),
    "cuda autocast": lambda t: t.autocast("cuda"),
    "custom bwd": lambda t: t.cuda.amp.custom_bwd(lambda ctx: 1),
    "custom fwd": lambda t: t.cuda.amp.custom_fwd(cast_inputs=t.float32),
    "default type": lambda t: t.set_default_tensor_type(t.FloatTensor),
    "eps": lambda t: t.nn.functional.gumbel_softmax(t.ones(2), eps=1e-5),
    "fake": lambda t: t.library.impl_abstract("a::b"),
    "float": lambda t: float(t.ones(1, requires_grad=True) * 2),
    "float of a leaf": lambda t: np.float64(t.ones((), requires_grad=True)),
    "complex of a leaf": lambda t: complex(t.ones(1, requires_grad=True)),
    "float without gradients": lambda t: t.no_grad()(float)(t.ones(1, requires_grad=True)),
    "float of numbers": lambda t: float(t.ones(())),
    "index": lambda t: t.ones(3)[t.tensor([1, 0, 1], dtype=t.uint8)],
    "index reduce": lambda t: t.zeros(2).index_reduce(0, t.tensor([0]), t.ones(1), "prod"),
    "index write": lambda t: t.ones(3).__setitem__(t.tensor([1, 0, 1], dtype=t.uint8), t.ones(2)),
    "int": lambda t: int(t.ones((), requires_grad=True)),
    "istft": lambda t: t.istft(t.ones(51, 10, dtype=t.cfloat), 100),
    "item": lambda t: t.ones((), requires_grad=True).item(),
    "lu": lambda t: t.lu(t.eye(2)),
    "meshgrid": lambda t: t.meshgrid(t.ones(2), t.ones(2)),
    "meshgrid, said": lambda t: t.meshgrid(t.ones(2), t.ones(2), indexing="ij"),
    "qr": lambda t: t.qr(t.eye(2)),
    "real": lambda t: t.ones(2, dtype=t.cfloat).float(),
    "real, to": lambda t: t.ones(2, dtype=t.cfloat).to(t.float64),
    "real, bool": lambda t: t.ones(2, dtype=t.cfloat).bool(),
    "scaler": lambda t: t.cpu.amp.GradScaler(),
    "scatter": lambda t: t.ones(3).scatter(0, t.tensor([0]), t.ones(1), reduce="add"),
    "scatter of a number": lambda t: t.ones(3).scatter(0, t.tensor([0]), 1, reduce="add"),
    "sdp": lambda t: t.backends.cuda.sdp_kernel(),
    "searched": lambda t: t.searchsorted(t.ones(4, 4).t(), t.ones(4, 4)),
    "searched for": lambda t: t.bucketize(t.ones(4, 4).t(), t.ones(4)),
    "sequence": lambda t: t.ones(2, 3)[[slice(0, 1), 1]],
    "sequence of numbers": lambda t: t.ones(2, 3)[[0, 1]],
    "sequence written to": lambda t: t.ones(2, 3).__setitem__([[0, 1], [1, 2]], 0),
    "solve": lambda t: t.triangular_solve(t.ones(2, 1), t.eye(2)),
    "stft": lambda t: t.stft(t.ones(400), 100, return_complex=True),
    "storage": lambda t: t.ones(2).storage(),
    "volatile": lambda t: t.autograd.Variable(t.ones(2), volatile=True),
}


def said(t, call):
    """Categories and words, without the place in PyTorch's sources."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call(t)
    return {(w.category, str(w.message).partition(" (Triggered internally")[0].rstrip()) for w in caught}


@pytest.fixture
def afresh(monkeypatch):
    """Warnings that are given once are given again."""
    monkeypatch.setattr(errors, "_said", set())
    start_anew()  # a kernel that says something does so while it is traced
    torch.set_warn_always(True)
    torch.storage._reset_warn_typed_storage_removal()
    before = {t: t.get_default_dtype() for t in (torch, jtorch)}
    yield
    torch.set_warn_always(False)
    for t, dtype in before.items():
        t.set_default_dtype(dtype)


@pytest.mark.parametrize("name", CALLS)
def test_as_pytorch(afresh, name):
    assert said(jtorch, CALLS[name]) == said(torch, CALLS[name])


# Said of the line of the caller.
FUNCTIONS = {
    "grid_sample": lambda t: t.nn.functional.grid_sample(t.ones(1, 1, 3, 3), t.zeros(1, 2, 5, 2)),
    "kl_div": lambda t: t.nn.functional.kl_div(t.ones(2, 7), t.ones(2, 7)),
    "mse_loss": lambda t: t.nn.functional.mse_loss(t.ones(7, 1), t.ones(7)),
    "softmax": lambda t: t.nn.functional.softmax(t.ones(2, 7)),
    "upsample": lambda t: t.nn.functional.upsample(t.ones(1, 1, 3, 3), scale_factor=2),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_place(afresh, name):
    for t in (torch, jtorch):
        with pytest.warns(UserWarning) as caught:
            FUNCTIONS[name](t)
        assert [w.filename for w in caught] == [__file__]


def test_always(afresh):
    """torch.set_warn_always: what is else said once in a process."""
    for always, times in ((True, 2), (False, 1)):
        errors._said.clear()
        jtorch.set_warn_always(always)
        with pytest.warns(UserWarning) as caught:
            for _ in range(2):
                CALLS["float"](jtorch)
        assert len(caught) == times


def test_files_say_nothing(afresh, tmp_path):
    model = jtorch.nn.Linear(2, 2)
    assert not said(jtorch, lambda t: (t.save(model.state_dict(), tmp_path / "x.pt"), t.load(tmp_path / "x.pt")))


def test_once():
    said(jtorch, CALLS["meshgrid"])
    assert not said(jtorch, CALLS["meshgrid"])
