"""core/aside.py: values read in the middle of a recording."""

import warnings

import numpy as np
import pytest

import jtorch
from jtorch.core import aside, ledger, record

pytestmark = pytest.mark.usefixtures("own_programs")


def flushes(fn):
    jtorch.synchronize()
    before = ledger.counters.flushes
    got = fn()
    return ledger.counters.flushes - before, got


X, W = jtorch.arange(12.0).reshape(3, 4), jtorch.ones(4, 4) / 3
LENGTHS = jtorch.tensor([3, 4, 1])


def causal():
    return jtorch.triu(jtorch.full((4, 4), float("-inf")), diagonal=1)


READS = {  # what is read of an open recording: how often that ends it, and the value
    "a constant": (lambda y: bool((causal() == causal()).all()), 0, True),
    "of data": (lambda y: LENGTHS.max().item(), 0, 4),
    "sum of integers": (lambda y: (LENGTHS * 2).sum().item(), 0, 16),
    "a list": (lambda y: (LENGTHS > 2).tolist(), 0, [True, True, False]),
    "an array": (lambda y: (LENGTHS + 1).numpy().tolist(), 0, [4, 5, 2]),
    "with a number": (lambda y: [(LENGTHS + k).max().item() for k in (1, 2)][0], 1, 5),
    "sum of floats": (lambda y: X.sum().item(), 1, 66.0),
    "product of floats": (lambda y: (X * 0.5).max().item(), 1, 5.5),
    "of the recording": (lambda y: y.shape[0] + (y.max() > -1).item(), 1, 4),
    "much": (lambda y: jtorch.zeros(1 << 20).max().item(), 1, 0.0),
}


@pytest.mark.parametrize("name", READS)
def test_reads(name):
    read, count, value = READS[name]
    expected = (X @ W).tanh()
    expected.sum().item()
    for _ in range(3):
        y = (X @ W).tanh()
        before = ledger.counters.flushes  # with `y` recorded
        assert (read(y), ledger.counters.flushes - before) == (value, count)
        assert jtorch.equal(y, expected)


def test_constants_read_in_a_loop_do_not_grow_for_ever():
    """Each is looked for in the recording: where that is long, they end it too."""
    y = (X @ W).tanh()
    x = jtorch.ones(4)
    longest = 0
    for _ in range(600):
        assert (x + 1).tolist() == [2.0] * 4
        longest = max(longest, record.tls.me.graph.state.length)
    assert longest <= aside.LONG + 8
    assert jtorch.equal(y, (X @ W).tanh())


def test_a_loop_is_not_one_recording():
    """Where a loop looks at its data again, the pass before it runs."""

    def passes(n):
        made = []
        for k in range(n):
            lengths = batches[k]
            longest = int(lengths.max())
            made.append((X @ W).tanh()[:, :longest].sum())
        return made

    batches = [jtorch.tensor([2, 3, 1 + k % 4]) for k in range(6)]
    count, made = flushes(lambda: passes(6))
    assert count == 5
    expected = [(X @ W).tanh()[:, : int(b.max())].sum().item() for b in batches]
    np.testing.assert_allclose([m.item() for m in made], expected, rtol=1e-6)


def test_a_size_that_stays_ends_no_recording():
    """One whole number that has been the same each time it was read there, before one backward pass, is no data that a loop looks at."""
    w = W.clone().requires_grad_()

    def run(sizes, backward=False):
        made = []
        for size in sizes:
            channels = jtorch.IntTensor([size])
            made.append((X @ w).tanh()[:, : channels.max()].sum())
            if backward:
                made[-1].backward()
        return made

    counts = []
    for read, how in (("2222", ""), ("222", ""), ("222", "backward"), ("222", "no_grad"), ("232", ""), ("222", "")):
        sizes = list(map(int, read))
        with jtorch.set_grad_enabled(how != "no_grad"):
            count, made = flushes(lambda sizes=sizes, how=how: run(sizes, how == "backward"))
        counts.append(count)
        expected = [np.tanh((X @ W).numpy())[:, :size].sum() for size in sizes]
        np.testing.assert_allclose([m.item() for m in made], expected, rtol=1e-6)
    assert counts == [0, 0, 2, 2, 2, 2]


def test_values_are_their_own():
    """What is written to a value that was read does not reach others of the same recording, or the next ones."""
    for _ in range(3):
        y = X @ W
        mask = causal()
        array = mask.numpy()
        array[0, 1] = 5.0
        other = causal()
        assert mask[0, 1].item() == 5.0 and other.tolist()[0][1] == float("-inf")
        mask.add_(1.0)
        assert array[0, 1] == 6.0
        assert y.shape == (3, 4)


def test_reads_count_as_results():
    """A value that has been read is still a node: what is recorded on it, its history and its writes are as they were."""
    x = jtorch.tensor([1.0, 4.0, 2.0], requires_grad=True)
    y = (x * 3).exp()
    top = x.max()
    assert top.item() == 4.0
    (top * 2 + y.sum() * 0).backward()
    assert x.grad.tolist() == [0.0, 2.0, 0.0]
    a = jtorch.zeros(3)
    b = jtorch.ones(3).exp()
    a += LENGTHS
    assert a.max().item() == 4.0
    a[0] = 9
    assert a.max().item() == 9.0 and b.sum().item() == pytest.approx(8.1548, abs=1e-3)


def test_a_transformer_with_masks_is_one_program_a_step():
    jtorch.manual_seed(0)
    net = jtorch.nn.Transformer(8, 2, 1, 1, 16, dropout=0.0, batch_first=True)
    opt = jtorch.optim.SGD(net.parameters(), lr=0.1)
    src, tgt = jtorch.rand(2, 5, 8), jtorch.rand(2, 4, 8)

    def step():
        mask = jtorch.nn.Transformer.generate_square_subsequent_mask(4)
        loss = net(src, tgt, tgt_mask=mask, src_key_padding_mask=jtorch.zeros(2, 5, dtype=jtorch.bool)).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss.item()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        losses = [flushes(step) for _ in range(3)]
    assert [count for count, _ in losses] == [1, 1, 1]
    assert losses[2][1] < losses[0][1]


def test_the_same_numbers_are_put_once(monkeypatch):
    """A loop that compares reads the same few flags and counts again and again."""
    puts = []
    monkeypatch.setattr(aside, "_numbers", {})
    monkeypatch.setattr(aside, "put", lambda values, place, put=aside.put: puts.append(values) or put(values, place))
    kept = []
    for k in range(6):
        y = (X @ W).tanh()
        flag, longest = LENGTHS.max() > k % 2, LENGTHS.max()
        assert flag.item() is True and longest.item() == 4
        kept.append((y, flag, longest))
    assert len(puts) == 2 and [type(n) for n in (flag.item(), longest.item())] == [bool, int]


def test_numbers_that_were_put_once_are_nobodys_memory():
    """Neither a write nor a program takes the memory of one that others have."""
    adds = jtorch.compile(lambda n: n.add_(1))
    y, kept = (X @ W).tanh(), []
    for k in range(8):
        n, m = LENGTHS.max(), LENGTHS.max()
        assert (n.item(), m.item()) == (4, 4)
        n += 1
        (adds if k % 2 else jtorch.Tensor.neg_)(m)
        y = y * n
        kept.append((n, m))
        jtorch.synchronize()
    assert [(n.item(), m.item()) for n, m in kept] == [(5, -4), (5, 5)] * 4 and LENGTHS.max().item() == 4
