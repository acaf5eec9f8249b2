"""share_memory_: tensors whose memory several processes map."""

import copy
import gc
import io
import os
import pickle
from multiprocessing.reduction import ForkingPickler
from pathlib import Path

import pytest

import jtorch
import jtorch.multiprocessing as mp
from jtorch.core import sharing
from jtorch.core.storage import Storage

from . import shared_cases


def other_view(t):
    """The same memory, as another process would have it: a mapping of its own."""
    storage = Storage(None, None)
    sharing._adopt(storage, os.dup(t._storage.host.file), t._storage.base)
    return jtorch.UntypedStorage.of(storage)._flat(t.dtype).view(t.shape)


def test_a_process_trains_the_model_of_the_parent():
    model = jtorch.nn.Linear(2, 1).share_memory()
    model.weight.data.fill_(1)
    optimizer = jtorch.optim.Adagrad(model.parameters(), lr=1.0)
    optimizer.share_memory()
    asked, told = mp.Queue(), mp.Queue()
    process = mp.Process(target=shared_cases.train, args=(model, optimizer, jtorch.ones(1, 2), asked, told))
    process.start()
    word, weight = told.get(timeout=120)
    assert word == "trained" and weight._storage is model.weight._storage
    assert model.weight.tolist() == [[0.0, 0.0]] and optimizer.state[model.weight]["sum"].tolist() == [[1.0, 1.0]]
    with jtorch.no_grad():
        model.weight += jtorch.tensor([3.0, 4.0])
    asked.put(1)
    assert told.get(timeout=120) == ("seen", [[3.0, 4.0]], True, False)
    asked.put(1)
    process.join(timeout=120)
    assert process.exitcode == 0 and model.weight.tolist() == [[7.0, 4.0]]


def test_writes_of_each_kind_are_seen_by_the_other_mapping():
    t = jtorch.arange(6.0).view(2, 3).t().share_memory_()
    assert t.is_shared() and t.untyped_storage().is_shared() and t.stride() == (1, 3)
    other = other_view(jtorch.as_strided(t, (6,), (1,)))
    t[0, 1] = 9
    t.mul_(2)
    t.t()[0].add_(1)
    assert other.tolist() == [1, 3, 5, 18, 8, 10]
    other.zero_()
    assert t.tolist() == [[0, 0]] * 3 and (t + 1).sum().item() == 6
    other[0] = 5
    assert t.numpy()[0, 0] == 5 and (t * 1)[0, 0].item() == 5, "a value of before"


def test_gradients_and_steps():
    p = jtorch.nn.Parameter(jtorch.ones(3)).share_memory_()
    other = other_view(p)
    (p * p).sum().backward()
    jtorch.optim.SGD([p], lr=0.5).step()
    assert other.tolist() == [0, 0, 0] and p.grad.tolist() == [2, 2, 2] and not p.grad.is_shared() and p.is_leaf
    x = p * 2
    y = (x * p).sum()
    with jtorch.no_grad():
        p.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_an_update_reads_what_others_have_written_meanwhile():
    """The forward pass reads the parameter early; the update adds to what is there when it is made."""
    p = jtorch.nn.Parameter(jtorch.zeros(2)).share_memory_()
    other = other_view(p)
    optimizer = jtorch.optim.SGD([p], lr=1.0)
    (p * 3).sum().backward()
    other.fill_(10)
    optimizer.step()
    assert other.tolist() == [7, 7]


def test_copies_are_not_shared():
    t = jtorch.ones(2).share_memory_()
    buffer = io.BytesIO()
    jtorch.save(t, buffer)
    buffer.seek(0)
    for made in (copy.deepcopy(t), t.clone(), pickle.loads(pickle.dumps(t)), jtorch.load(buffer), t + 0):
        assert made.tolist() == [1, 1] and not made.is_shared()
    assert t.share_memory_() is t and t[:1].is_shared() and not t.untyped_storage().resizable()
    with pytest.raises(RuntimeError, match="not resizable"):
        t.resize_(5)
    assert jtorch.empty(0).share_memory_().is_shared() and jtorch.ones(2).untyped_storage().share_memory_().is_shared()


@pytest.mark.skipif(not os.path.exists("/proc/self/maps"), reason="looks at the maps of the process through /proc")
def test_memory_is_given_back():
    def held():
        gc.collect()  # what earlier tests left in cycles would be given back in between
        return Path("/proc/self/maps").read_text().count("memfd:jtorch")

    before = held()
    t = jtorch.ones(1000).share_memory_()
    assert held() > before
    kept = t.numpy()
    del t
    assert kept.sum() == 1000 and held() > before
    del kept
    assert held() == before


def test_processes_start_anew_unless_asked():
    assert mp.get_context().get_start_method() == "spawn" and mp.get_start_method() == "spawn"
    assert mp.get_context("fork").get_start_method() == "fork"


@pytest.mark.parametrize("asked", [True, False], ids=["spawned", "in place of a fork"])
def test_arguments_of_a_process_that_starts_anew_are_shared(asked):
    """As in PyTorch, where a forked process has copies of its own."""
    tensor, model = jtorch.zeros(2) + 1, jtorch.nn.Linear(1, 1)
    model.weight.data.fill_(1)
    kind = mp.get_context("spawn").Process if asked else mp.Process
    process = kind(target=shared_cases.fill, args=(tensor, model))
    process.start()
    process.join(timeout=120)
    assert process.exitcode == 0 and tensor.is_shared() == asked
    assert (tensor.tolist(), model.weight.item()) == (([3, 3], 5) if asked else ([1, 1], 1))


def test_what_autograd_computed_is_not_sent():
    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf tensor"):
        ForkingPickler.dumps(jtorch.ones(2, requires_grad=True) * 2)
    ForkingPickler.dumps((jtorch.ones(2, requires_grad=True) * 2).detach())


def test_words_of_sharing():
    with pytest.raises(AssertionError, match="invalid sharing strategy 'x', expected one of"):
        mp.set_sharing_strategy("x")
    failed = mp.ProcessExitedException("words", 1, 23, -9, "SIGKILL")
    assert (failed.error_index, failed.error_pid, failed.exit_code, failed.signal_name) == (1, 23, -9, "SIGKILL")
