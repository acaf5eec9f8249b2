"""State dicts by parameters' names, and checkpoints in folders, against PyTorch's in one process."""

import pytest

import jtorch
from jtorch.distributed import checkpoint
from tests.oracle import both

STATES = """
import torch
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions, get_model_state_dict, get_optimizer_state_dict, get_state_dict, set_model_state_dict, set_optimizer_state_dict,
    set_state_dict,
)
def net():
    return torch.nn.Sequential(torch.nn.Linear(2, 3, bias=False), torch.nn.BatchNorm1d(3), torch.nn.Linear(3, 1))
def rest(m):
    return [*m[1].parameters(), *m[2].parameters()]
def several(o):
    return o if isinstance(o, list) else [o]
def plain(x):
    if isinstance(x, dict):
        return {k: plain(v) for k, v in x.items()}
    return [plain(v) for v in x] if isinstance(x, (list, tuple)) else x.clone() if isinstance(x, torch.Tensor) else x
def step(m, o, x):
    for q in several(o):
        q.zero_grad()
    m(x).square().sum().backward()
    for q in several(o):
        q.step()
torch.manual_seed(0)
x = torch.randn(8, 2)
made = {
    "groups": lambda m: torch.optim.AdamW([{"params": m[0].parameters(), "lr": .1}, {"params": rest(m)}]),
    "momentum": lambda m: torch.optim.SGD(m.parameters(), lr=.1, momentum=.9),
    "stateless": lambda m: torch.optim.SGD(m.parameters(), lr=.1),
    "two": lambda m: [torch.optim.SGD(m[0].parameters(), lr=.1, momentum=.9), torch.optim.Adam(rest(m))],
    "rate": lambda m: torch.optim.RMSprop(m.parameters(), lr=torch.tensor(.01)),
}
found = []
for name, make in made.items():
    for flat in (False, True):
        torch.manual_seed(1)
        m = net()
        o = make(m)
        options = StateDictOptions(flatten_optimizer_state_dict=flat)
        found.append(plain(get_optimizer_state_dict(m, o, options=options)))
        step(m, o, x)
        a, b = get_state_dict(m, o, options=options)
        found.append((plain(a), plain(b)))
        other = net()
        o2 = make(other)
        keys = set_state_dict(other, o2, model_state_dict=plain(a), optim_state_dict=plain(b), options=options)
        found.append((list(keys.missing_keys), list(keys.unexpected_keys)))
        step(other, o2, x)
        step(m, o, x)
        found.append((plain(other.state_dict()), plain(m.state_dict())))
m = net()
m[0].weight.requires_grad_(False)
o = torch.optim.SGD(rest(m), lr=.1, momentum=.9)
found.append(plain(get_state_dict(m, o, options=StateDictOptions(ignore_frozen_params=True, cpu_offload=True))))
found.append(list(get_model_state_dict(m, submodules={m[1]})))
found.append(list(get_model_state_dict(m, submodules={m[1]}, options=StateDictOptions(keep_submodule_prefixes=False))))
state = get_model_state_dict(m)
compiled = torch.compile(m, backend="eager")
found.append(list(get_model_state_dict(compiled)))
found.append([len(k) for k in set_model_state_dict(compiled, state)])
for wrong in (
    lambda: set_model_state_dict(m, {}, options=StateDictOptions(strict=False)), lambda: set_model_state_dict(m, {"q": 1}),
    lambda: set_model_state_dict(m, state, options=StateDictOptions(broadcast_from_rank0=True)),
    lambda: set_optimizer_state_dict(m, o, {}),
    lambda: get_optimizer_state_dict(m, torch.optim.SGD(torch.nn.Linear(2, 2).parameters(), momentum=.9)),
):
    try:
        found.append(str(wrong()))
    except Exception as e:
        found.append((type(e).__name__, str(e)))
del m, o, o2, other, made, make, compiled, options, keys, wrong, a, b, state
"""


def test_state_dicts():
    both(STATES, layout=False)


FOLDERS = """
import os, tempfile
import torch
import torch.distributed.checkpoint as dcp
class App:
    def __init__(self):
        self.v = torch.zeros(2)
    def state_dict(self):
        return {"v": self.v}
    def load_state_dict(self, state):
        self.v = state["v"] + 1
found = []
with tempfile.TemporaryDirectory() as d:
    path, app = os.path.join(d, "one"), App()
    w = torch.arange(6.).reshape(2, 3)
    dcp.save({"model": {"w": w, "deep": {"b": w[0]}}, "step": 7, "names": ["a", "b"], "app": app}, checkpoint_id=path)
    mine = {"model": {"w": torch.zeros(2, 3), "deep": {"b": torch.zeros(3)}}, "step": 0, "names": ["c", "d"], "app": App()}
    kept = mine["model"]["w"]
    dcp.load(mine, checkpoint_id=path)
    found += [kept is mine["model"]["w"], kept, mine["model"]["deep"]["b"], mine["step"], mine["names"], mine["app"].v]
    part = {"model": {"deep": {"b": torch.zeros(3, dtype=torch.float64)}}}
    dcp.load(part, storage_reader=dcp.FileSystemReader(path))
    found.append(part["model"]["deep"]["b"])
    for bad in ({"nope": torch.ones(1)}, {"model": {"w": torch.ones(7)}}):
        try:
            dcp.load(bad, checkpoint_id=path)
        except BaseException as e:
            errors = [f[0] if isinstance(f, tuple) else f for f in e.failures.values()]
            found.append((type(e).__name__, [(type(f).__name__, str(f)) for f in errors]))
    try:
        dcp.load({})
    except BaseException as e:
        found.append(type(e).__name__)
del mine, part, kept, app, w, d, path, bad, errors
"""


def test_folders():
    both(FOLDERS, layout=False)


def test_what_is_ours(tmp_path):
    done = checkpoint.async_save({"x": jtorch.ones(2)}, checkpoint_id=tmp_path / "a")
    got = {"x": jtorch.zeros(2)}
    checkpoint.load(got, checkpoint_id=tmp_path / "a")
    assert done.result() is None and got["x"].tolist() == [1, 1]
    more = {"x": jtorch.zeros(2), "y": jtorch.zeros(1)}
    with pytest.raises(checkpoint.CheckpointException, match="Missing key"):
        checkpoint.load(more, checkpoint_id=tmp_path / "a", planner=checkpoint.DefaultLoadPlanner())
    partly = checkpoint.DefaultLoadPlanner(allow_partial_load=True)
    checkpoint.load(more, storage_reader=checkpoint.FileSystemReader(tmp_path / "a"), planner=partly)
    assert more["x"].tolist() == [1, 1] and more["y"].tolist() == [0]
    with pytest.raises(NotImplementedError, match="planners of one's own"):
        checkpoint.save({}, checkpoint_id=tmp_path / "c", planner=object())
    with pytest.raises(RuntimeError, match="checkpoint_id"):
        checkpoint.save({})
    with pytest.raises(NotImplementedError, match="of one's own"):
        checkpoint.save({}, storage_writer=object())
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / ".metadata").write_bytes(b"")
    with pytest.raises(NotImplementedError, match="sharded files"):
        checkpoint.load({}, checkpoint_id=tmp_path / "b")
