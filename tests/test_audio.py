"""torch.ops.torchaudio: results against loops over samples, frames and labels, and which libraries load."""

import itertools

import numpy as np
import pytest

import jtorch
from jtorch import ops


@pytest.fixture(scope="module")
def audio():
    jtorch.ops.load_library("/somewhere/torchaudio/lib/_torchaudio.abi3.so")
    jtorch.ops.load_library("/somewhere/torchaudio/lib/libtorchaudio.abi3.so")
    return jtorch.ops.torchaudio


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_what_the_import_asks(audio):
    assert jtorch.ops._torchaudio.cuda_version() is None
    assert jtorch.ops._torchaudio.is_align_available() is True


# Filters.


def recursed(x, taps, padded):
    """One sample at a time; taps: from the one furthest back to that of the output itself."""
    padded, size = padded.copy(), taps.shape[1]
    for n in range(x.shape[2]):
        padded[:, :, n + size - 1] = x[:, :, n] - (padded[:, :, n : n + size] * taps).sum(2)
    return padded


@pytest.mark.parametrize("order", [0, 1, 2, 5, 64, 100])
@pytest.mark.parametrize("samples", [1, 63, 64, 200])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_lfilter(audio, rng, order, samples, dtype):
    x, before = rng.normal(size=(2, 3, samples)), rng.normal(size=(2, 3, samples + order))
    taps = np.concatenate([rng.normal(size=(3, order)) * 0.4 / (order + 1), np.ones((3, 1))], 1)
    x, before, taps = (a.astype(dtype) for a in (x, before, taps))
    padded = jtorch.tensor(before)
    assert audio._lfilter_core_loop(jtorch.tensor(x), jtorch.tensor(taps), padded) is padded
    tolerance = 2e-6 if dtype == "float32" else 1e-14
    np.testing.assert_allclose(
        padded.numpy(), recursed(*map(np.float64, (x, taps, before))), rtol=tolerance, atol=tolerance * 4
    )


@pytest.mark.parametrize("radius", [0.9, 0.999, 0.99999])
def test_lfilter_rings(audio, rng, radius):
    """Poles close to the unit circle: errors no larger than those of a loop in the same dtype."""
    x = rng.normal(size=(1, 1, 5000)).astype(np.float32)
    taps = np.array([[radius**2, -2 * radius * np.cos(0.02), 1]], np.float32)
    zeros = np.zeros((1, 1, 5002), np.float32)
    exact = recursed(*map(np.float64, (x, taps, zeros)))
    padded = jtorch.tensor(zeros)
    audio._lfilter_core_loop(jtorch.tensor(x), jtorch.tensor(taps), padded)
    error, allowed = (np.abs(a - exact).max() for a in (padded.numpy(), recursed(x, taps, zeros)))
    assert error <= 2 * allowed


def test_lfilter_hands_on_what_is_not_finite(audio):
    x, padded = jtorch.ones(1, 1, 200), jtorch.zeros(1, 1, 202)
    x[0, 0, 100] = float("nan")
    audio._lfilter_core_loop(x, jtorch.tensor([[0.1, 0.2, 1.0]]), padded)
    assert padded.isnan()[0, 0].tolist() == [False] * 102 + [True] * 100


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_overdrive(audio, rng, dtype):
    x, temp, last_in, last_out = (rng.normal(size=s).astype(dtype) for s in ((2, 300), (2, 300), 2, 2))
    ours = [jtorch.tensor(a) for a in (x, temp, last_in, last_out, np.zeros_like(x))]
    audio._overdrive_core_loop(*ours)
    out = np.zeros_like(x)
    for n in range(300):
        last_out = temp[:, n] - last_in + 0.995 * last_out
        last_in = temp[:, n]
        out[:, n] = x[:, n] * 0.5 + last_out * 0.75
    for got, expected in zip(ours[2:], (last_in, last_out, out)):
        np.testing.assert_allclose(got.numpy(), expected, atol=5e-6 if dtype == "float32" else 1e-14)


# Alignments.


def every_path(frames, targets, blank):
    """All sequences of `frames` labels that say the targets once repeats are merged and blanks left out."""
    for path in itertools.product(sorted({blank, *targets}), repeat=frames):
        merged = [label for label, _ in itertools.groupby(path)]
        if [label for label in merged if label != blank] == targets:
            yield path


@pytest.mark.parametrize(
    "frames, targets, blank", [(1, [2], 0), (3, [1, 2, 1], 0), (5, [1, 1], 0), (6, [2, 0, 0], 1), (6, [1, 2], 3), (3, [1, 1], 0)]
)  # fmt: skip
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_forced_align(audio, rng, frames, targets, blank, dtype):
    scores = rng.normal(size=(1, frames, 4)).astype(dtype)
    best = max(
        every_path(frames, targets, blank), key=lambda path: sum(float(scores[0, t, c]) for t, c in enumerate(path))
    )
    for kind in (jtorch.int32, jtorch.int64):
        labels = jtorch.tensor([targets], dtype=kind)
        lengths = jtorch.tensor([frames]), jtorch.tensor([len(targets)])
        path, same = audio.forced_align(jtorch.tensor(scores), labels, *lengths, blank)
        assert path.dtype == kind and path.tolist() == [list(best)]
        np.testing.assert_array_equal(same.numpy(), scores)


def test_forced_align_of_many_labels(audio):
    """What is likely is found, also where it takes more than 127 steps back."""
    targets = np.arange(150) % 7 + 1
    path = np.repeat(np.stack([targets, 0 * targets], 1).ravel(), 2)
    scores = jtorch.nn.functional.one_hot(jtorch.tensor(path), 8)[None].float()
    found, _ = audio.forced_align(scores, jtorch.tensor(targets)[None], jtorch.tensor([600]), jtorch.tensor([150]), 0)
    assert found[0].tolist() == path.tolist()


def summed(logs, labels, blank):
    """log of the sum over all paths, forwards and backwards: alpha, beta."""
    frames, width, _ = logs.shape
    alpha, beta = np.full((frames, width), -np.inf), np.full((frames + 1, width + 1), -np.inf)
    alpha[0, 0] = 0
    for t, u in np.ndindex(frames, width):
        if t:
            alpha[t, u] = np.logaddexp(alpha[t, u], alpha[t - 1, u] + logs[t - 1, u, blank])
        if u:
            alpha[t, u] = np.logaddexp(alpha[t, u], alpha[t, u - 1] + logs[t, u - 1, labels[u - 1]])
    beta[frames, width - 1] = 0
    for t, u in reversed(list(np.ndindex(frames, width))):
        label = labels[u] if u < width - 1 else 0
        beta[t, u] = np.logaddexp(beta[t + 1, u] + logs[t, u, blank], beta[t, u + 1] + logs[t, u, label])
    return alpha, beta


def transduced(logits, labels, blank, normalize):
    logs = logits - np.log(np.exp(logits).sum(-1, keepdims=True)) if normalize else logits
    alpha, beta = summed(logs, labels, blank)
    grads = np.zeros_like(logs)
    for t, u in np.ndindex(*alpha.shape):
        grads[t, u, blank] -= np.exp(alpha[t, u] + logs[t, u, blank] + beta[t + 1, u] - beta[0, 0])
        if u < len(labels):
            grads[t, u, labels[u]] -= np.exp(alpha[t, u] + logs[t, u, labels[u]] + beta[t, u + 1] - beta[0, 0])
        if normalize:
            grads[t, u] += np.exp(logs[t, u] + alpha[t, u] + beta[t, u] - beta[0, 0])
    return -beta[0, 0], grads


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("clamp", [-1.0, 0.05])
@pytest.mark.parametrize("blank", [0, 4])
def test_rnnt_loss(audio, rng, normalize, clamp, blank):
    logits = rng.normal(size=(3, 6, 4, 5)).astype(np.float32)
    if not normalize:
        logits -= np.log(np.exp(logits).sum(-1, keepdims=True))
    labels = rng.integers(1, 4, size=(3, 3)).astype(np.int32)
    lengths = np.array([[6, 4, 1], [3, 2, 0]], np.int32)
    arguments = (jtorch.tensor(a) for a in (logits, labels, *lengths))
    costs, grads = audio.rnnt_loss_forward(*arguments, blank, clamp, normalize)
    for b, (frames, length) in enumerate(lengths.T):
        part = logits[b, :frames, : length + 1].astype(np.float64)
        cost, expected = transduced(part, labels[b, :length], blank, normalize)
        expected = np.clip(expected, -clamp, clamp) if clamp > 0 else expected
        np.testing.assert_allclose(costs[b].item(), cost, rtol=1e-5)
        np.testing.assert_allclose(grads[b, :frames, : length + 1].numpy(), expected, atol=2e-6)
        assert not grads[b, frames:].any() and not grads[b, :, length + 1 :].any()


def test_rnnt_loss_in_half(audio, rng):
    logits = jtorch.tensor(rng.normal(size=(1, 5, 3, 4)).astype(np.float16))
    rest = (
        jtorch.tensor([[1, 2]], dtype=jtorch.int32),
        *(jtorch.tensor([n], dtype=jtorch.int32) for n in (5, 2)),
        0,
        -1.0,
        True,
    )
    halves, whole = audio.rnnt_loss_forward(logits, *rest), audio.rnnt_loss_forward(logits.float(), *rest)
    for half, exact in zip(halves, whole):
        assert half.dtype == jtorch.float16 and jtorch.equal(half, exact.half())


# Errors.

P, Y, N = jtorch.zeros(1, 4, 3), jtorch.tensor([[1, 2]]), jtorch.tensor([4])
G, Z, M = jtorch.zeros(1, 4, 3, 5), jtorch.ones(1, 2, dtype=jtorch.int32), jtorch.tensor([4], dtype=jtorch.int32)
W, A = jtorch.zeros(1, 1, 8), jtorch.ones(1, 3)


@pytest.mark.parametrize(
    "name, arguments, words",
    [
        ("forced_align", (P.bfloat16(), Y, N, N - 2, 0), "log_probs must be float64, float32 or float16"),
        ("forced_align", (P, Y.short(), N, N - 2, 0), "targets must be int32 or int64 type"),
        ("forced_align", (P.transpose(1, 2), Y, N, N - 2, 0), "log_probs must be contiguous"),
        ("forced_align", (P[0], Y, N, N - 2, 0), "log_probs must be 3-D"),
        ("forced_align", (P, Y[0], N, N - 2, 0), "targets must be 2-D"),
        ("forced_align", (P, Y, N[0], N - 2, 0), "input_lengths must be 1-D"),
        ("forced_align", (P, Y, N, N[0] - 2, 0), "target_lengths must be 1-D"),
        ("forced_align", (P.repeat(2, 1, 1), Y, N, N - 2, 0), "The batch dimension for log_probs must be 1"),
        ("forced_align", (P, Y.repeat(2, 1), N, N - 2, 0), "The batch dimension for targets must be 1"),
        ("forced_align", (P, Y, N, N - 2, 3), "blank must be within"),
        ("forced_align", (P, Y, N - 1, N - 2, 0), "input length mismatch"),
        ("forced_align", (P, Y, N, N - 1, 0), "target length mismatch"),
        ("forced_align", (P, Y[:, [0, 0, 1, 1]], N, N, 0), "log_probs length: 4, targets length: 4, and number of repeats: 2"),
        ("rnnt_loss_forward", (G.double(), Z, M, M - 2, 0, -1, True), "logits must be float32 or float16"),
        ("rnnt_loss_forward", (G, Z.long(), M, M - 2, 0, -1, True), "targets must be int32 type"),
        ("rnnt_loss_forward", (G, Z, M.long(), M - 2, 0, -1, True), "logit_lengths must be int32 type"),
        ("rnnt_loss_forward", (G, Z, M, (M - 2).long(), 0, -1, True), "target_lengths must be int32 type"),
        ("rnnt_loss_forward", (G.transpose(1, 2), Z, M, M - 2, 0, -1, True), "logits must be contiguous"),
        ("rnnt_loss_forward", (G[0], Z, M, M - 2, 0, -1, True), "logits must be 4-D"),
        ("rnnt_loss_forward", (G, Z[0], M, M - 2, 0, -1, True), "targets must be 2-D"),
        ("rnnt_loss_forward", (G, Z, M.repeat(2), M - 2, 0, -1, True), "batch dimension mismatch between logits and logit_lengths"),
        ("rnnt_loss_forward", (G, Z, M, M - 2, 5, -1, True), "blank must be within"),
        ("rnnt_loss_forward", (G, Z, M - 1, M - 2, 0, -1, True), "input length mismatch"),
        ("rnnt_loss_forward", (G, Z, M, M - 3, 0, -1, True), "output length mismatch"),
        ("rnnt_loss_forward", (G, Z[:, :1], M, M - 2, 0, -1, True), "target length mismatch"),
        ("_lfilter_core_loop", (W.half(), A.half(), W.half()), "float32 or float64"),
        ("_lfilter_core_loop", (W, A.double(), W), "expected scalar type"),
        ("_lfilter_core_loop", (W, A, W), "does not fit"),
        ("_overdrive_core_loop", (W[0], W[0].double(), A[0, :1], A[0, :1], W[0]), "expected scalar type"),
    ],
)  # fmt: skip
def test_refused(audio, name, arguments, words):
    with pytest.raises(RuntimeError, match=words):
        getattr(audio, name)(*arguments)


@pytest.mark.parametrize(
    "path",
    [
        "/x/torchaudio/lib/torchaudio_prefixctc.abi3.so",
        "/x/torchaudio/lib/libtorchaudio_sox.so",
        "/x/other/lib/libtorchaudio.so",
    ],
)
def test_other_libraries_do_not_load(monkeypatch, path):
    monkeypatch.setattr(ops, "refused", set())
    with pytest.raises(OSError, match="could not load"):
        jtorch.ops.load_library(path)
    assert ops.refused == {path}
