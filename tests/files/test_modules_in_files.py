"""Whole modules in files: every class of torch.nn, both ways, under PyTorch's names."""

import io
import pickle
import warnings

import pytest

import jtorch
from jtorch.torch_version import TorchVersion
from tests.oracle import from_torch, module_builds, torch


def saved(module, obj):
    f = io.BytesIO()
    module.save(obj, f)
    f.seek(0)
    return f


def builds():
    """One instance of each class, by PyTorch."""
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, cls, (args, kwargs), _ in module_builds():
            if name not in found:
                found[name] = cls(*args, **kwargs)
    return found


def fields(module):
    return {k for k in module.__dict__ if k not in ("_flat_weight_refs", "_flat_weights", "_built_with")}


@pytest.mark.filterwarnings("ignore")
def test_every_class_both_ways():
    wrong = []
    for name, theirs in builds().items():
        try:
            ours = jtorch.load(saved(torch, theirs), weights_only=False)
            again = torch.load(saved(jtorch, ours), weights_only=False)
        except Exception as error:
            wrong.append(f"{name}: {error!r:.200}")
            continue
        if not type(ours).__module__.startswith("jtorch.nn"):
            wrong.append(f"{name}: became {type(ours)}")
        if type(again) is not type(theirs) or repr(again) != repr(theirs) or fields(again) != fields(theirs):
            wrong.append(f"{name}: came back as {again!r:.100}, {fields(again) ^ fields(theirs)}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "build, shape",
    [(lambda nn: nn.Sequential(nn.Conv2d(1, 2, 3, padding="same"), nn.BatchNorm2d(2), nn.ReLU(), nn.Flatten(), nn.Linear(32, 2)), (3, 1, 4, 4)),
     (lambda nn: nn.LSTM(4, 3, 2, bidirectional=True, batch_first=True), (2, 5, 4)),
     (lambda nn: nn.TransformerEncoderLayer(8, 2, 16, activation="gelu", batch_first=True), (2, 3, 8)),
     (lambda nn: nn.ModuleList([nn.Embedding(5, 3, padding_idx=0)])[0], None)],
)  # fmt: skip
def test_modules_compute_the_same(build, shape):
    ours, theirs = build(jtorch.nn).eval(), build(torch.nn).eval()
    x = torch.arange(4) if shape is None else torch.rand(shape)
    for made, source, there in ((ours, jtorch, torch), (theirs, torch, jtorch)):
        other = there.load(saved(source, made), weights_only=False)
        a = made(from_torch(x) if source is jtorch else x)
        b = other(from_torch(x) if there is jtorch else x)
        a, b = (t[0] if isinstance(t, tuple) else t for t in (a, b))
        assert b.tolist() == pytest.approx(a.tolist(), abs=1e-5) if b.dim() == 1 else close(a, b)


def close(a, b):
    flat = [x.detach().reshape(-1).tolist() for x in (a, b)]
    return flat[0] == pytest.approx(flat[1], abs=1e-5)


def test_functions_are_named_as_pytorch_names_them():
    for space, names in (("nn.functional", ("relu", "gelu", "softmax")), ("", ("tanh", "sigmoid"))):
        for name in names:
            mine, theirs = jtorch, torch
            for part in filter(None, (*space.split("."), name)):
                mine, theirs = getattr(mine, part), getattr(theirs, part)
            assert torch.load(saved(jtorch, {"f": mine}), weights_only=False)["f"] is theirs, name


def test_optimizers_and_datasets_are_found():
    net = torch.nn.Linear(2, 2)
    opt = torch.optim.AdamW(net.parameters())
    got = jtorch.load(saved(torch, opt), weights_only=False)
    assert type(got) is jtorch.optim.AdamW and got.param_groups[0]["lr"] == 1e-3
    data = jtorch.utils.data.TensorDataset(jtorch.arange(3.0))
    got = torch.load(saved(jtorch, data), weights_only=False)
    assert type(got) is torch.utils.data.TensorDataset and len(got) == 3


def test_what_is_not_here_is_said():
    f = saved(torch, torch.distributions.Normal(0.0, 1.0)) if not hasattr(jtorch, "distributions") else None
    if f is not None:
        with pytest.raises(AttributeError, match="jtorch has nothing under this name"):
            jtorch.load(f, weights_only=False)
    with pytest.raises(AttributeError, match="jtorch has nothing under this name"):
        jtorch.files.names.resolve("torch.nn.modules.nowhere", "Nothing")


def test_the_version_goes_both_ways():
    """Checkpoints of many programs note `torch.__version__`."""
    for source, there, version in (
        (jtorch, torch, TorchVersion("2.13.0")),
        (torch, jtorch, torch.torch_version.TorchVersion("2.13.0")),
    ):
        got = there.load(saved(source, {"version": version}), weights_only=False)["version"]
        assert type(got) is (TorchVersion if there is jtorch else torch.torch_version.TorchVersion)
        assert got == "2.13.0" and got >= (2, 4)
        with pytest.raises(pickle.UnpicklingError, match="TorchVersion"):
            there.load(saved(source, {"version": version}))
