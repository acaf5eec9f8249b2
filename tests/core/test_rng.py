"""core/rng.py and core/draw.py: bits and states against PyTorch's; statistics of device keys."""

import copy
import pickle

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from jtorch.core import draw, rng

torch = pytest.importorskip("torch")
jax.config.update("jax_enable_x64", True)

FLOATS = {
    "float32": (torch.float32, np.float32),
    "float64": (torch.float64, np.float64),
    "float16": (torch.float16, np.float16),
    "bfloat16": (torch.bfloat16, ml_dtypes.bfloat16),
}
INTS = {name: (getattr(torch, name), np.dtype(name)) for name in ("int64", "int32", "int16", "int8", "uint8", "bool")}
SIZES = [*range(18), 31, 32, 33, 40, 1000, 10_003]


def pair(seed):
    return torch.Generator().manual_seed(seed), rng.Generator().manual_seed(seed)


def plain(x):
    """The bits of a tensor or an array."""
    if isinstance(x, torch.Tensor):
        x = x.view(torch.int16).numpy() if x.dtype == torch.bfloat16 else x.numpy()
    return x.view(f"u{x.dtype.itemsize}")


def to_numpy(x):
    return x.view(torch.int16).numpy().view(ml_dtypes.bfloat16) if x.dtype == torch.bfloat16 else x.numpy()


def same(a, b, g, h):
    assert tuple(a.shape) == b.shape
    np.testing.assert_array_equal(plain(a), plain(b))
    np.testing.assert_array_equal(g.get_state().numpy(), h.get_state())


def intel_streams():
    """Whether this PyTorch draws from MKL's streams (on Intel): one word a call, not two an element."""
    g = torch.Generator().manual_seed(0)
    torch.empty(20).exponential_(generator=g)
    return int(g.get_state()[16:24].view(torch.int64)) != 40


own_streams = pytest.mark.skipif(intel_streams(), reason="PyTorch draws these from MKL on Intel's processors")

IN_PLACE = {
    "rand": (lambda x, g: x.uniform_(generator=g), lambda h, n, d: draw.uniform(h, n, d)),
    "uniform": (lambda x, g: x.uniform_(-1, 0.7, generator=g), lambda h, *a: draw.uniform(h, *a, -1, 0.7)),
    "wide": (lambda x, g: x.uniform_(2.1, 70, generator=g), lambda h, n, d: draw.uniform(h, n, d, 2.1, 70)),
    "randn": (lambda x, g: x.normal_(generator=g), lambda h, n, d: draw.normal(h, n, d)),
    "normal": (lambda x, g: x.normal_(0.3, 0.02, generator=g), lambda h, *a: draw.normal(h, *a, 0.3, 0.02)),
    "normal 0": (lambda x, g: x.normal_(0, 0.02, generator=g), lambda h, n, d: draw.normal(h, n, d, 0, 0.02)),
    "cauchy": (lambda x, g: x.cauchy_(0.1, 2.0, generator=g), lambda h, n, d: draw.cauchy(h, n, d, 0.1, 2.0)),
    "log_normal": (
        lambda x, g: x.log_normal_(0.3, 0.6, generator=g),
        lambda h, n, d: draw.log_normal(h, n, d, 0.3, 0.6),
    ),
    "geometric": (lambda x, g: x.geometric_(0.3, generator=g), lambda h, n, d: draw.geometric(h, 0.3, n, d)),
    "random": (lambda x, g: x.random_(generator=g), lambda h, n, d: draw.random(h, n, d)),
}  # fmt: skip
OWN = {
    "exponential": (
        lambda x, g: x.exponential_(1.7, generator=g),
        lambda h, n, d: draw.exponential(h, n, d, 1.7),
    ),
    "bernoulli": (lambda x, g: x.bernoulli_(0.3, generator=g), lambda h, n, d: draw.bernoulli(h, 0.3, n, d)),
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", [*IN_PLACE, *(pytest.param(n, marks=own_streams) for n in OWN)])
def test_floats(name, dtype):
    theirs, ours = {**IN_PLACE, **OWN}[name]
    t, n = FLOATS[dtype]
    for seed in (0, 42, 2**40 + 5):
        g, h = pair(seed)
        for size in SIZES:  # one sequence: each call starts where the last one stopped
            same(theirs(torch.empty(size, dtype=t), g), ours(h, (size,), n), g, h)


def test_large():
    g, h = pair(7)
    same(torch.rand(300, 401, generator=g), draw.uniform(h, (300, 401)), g, h)
    same(torch.randn(300, 401, generator=g), draw.normal(h, (300, 401)), g, h)
    same(torch.randperm(100_003, generator=g), draw.randperm(h, 100_003), g, h)


@pytest.mark.parametrize("dtype", INTS)
def test_integers(dtype):
    t, n = INTS[dtype]
    for seed in (0, 3):
        g, h = pair(seed)
        for size in SIZES:
            same(torch.empty(size, dtype=t).random_(generator=g), draw.random(h, (size,), n), g, h)
            high = 2 if dtype == "bool" else 100
            x = torch.empty(size, dtype=t).random_(0, high, generator=g)
            same(x, draw.randint(h, 0, high, (size,), n), g, h)


@pytest.mark.parametrize(
    "low, high",
    [(0, 1), (-3, 90), (0, 2**28 - 1), (0, 2**28), (0, 2**32), (-(2**40), 2**62), (-(2**63), 2**63 - 1)],
)  # fmt: skip
def test_randint(low, high):
    g, h = pair(1)
    for size in (1, 5, 1000):
        same(torch.randint(low, high, (size,), generator=g), draw.randint(h, low, high, (size,)), g, h)


def test_all_64_bits():
    g, h = pair(1)
    x = torch.empty(100, dtype=torch.int64).random_(-(2**63), None, generator=g)
    same(x, draw.all_bits(h, (100,)), g, h)


def test_randperm():
    g, h = pair(5)
    for n in (*range(41), 1000, 60_000):
        same(torch.randperm(n, generator=g), draw.randperm(h, n), g, h)
        same(torch.randperm(n, generator=g, dtype=torch.int32), draw.randperm(h, n, np.int32), g, h)


@pytest.mark.parametrize("dtype", FLOATS)
def test_bernoulli_of_probabilities(dtype):
    g, h = pair(2)
    for size in (1, 7, 1000):
        p = torch.rand(size, generator=g).to(FLOATS[dtype][0])
        draw.uniform(h, (size,))
        same(torch.bernoulli(p, generator=g), draw.bernoulli(h, to_numpy(p), None, FLOATS[dtype][1]), g, h)


@own_streams
@pytest.mark.parametrize("replacement", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_multinomial(dtype, replacement):
    g, h = pair(2)
    for shape in ((6,), (3, 40), (2, 1000)):
        w = (torch.rand(shape, generator=torch.Generator().manual_seed(1)) + 0.01).to(FLOATS[dtype][0])
        for k in (1, 1 if dtype == "float16" and not replacement else 5):  # float16 scores tie
            same(
                torch.multinomial(w, k, replacement, generator=g),
                draw.multinomial(h, w.numpy(), k, replacement),
                g,
                h,
            )


def test_interleaved():
    g, h = pair(11)
    order = np.random.RandomState(0)
    names = list(IN_PLACE)
    for _ in range(200):
        theirs, ours = IN_PLACE[names[order.randint(len(names))]]
        t, n = list(FLOATS.values())[order.randint(4)]
        size = int(order.randint(40))
        same(theirs(torch.empty(size, dtype=t), g), ours(h, (size,), n), g, h)


def test_initial_parameters():
    for seed in range(3):
        g, h = pair(seed)
        weight = torch.nn.init.kaiming_uniform_(torch.empty(48, 33), a=5**0.5, generator=g)
        bound = (2 / (1 + 5)) ** 0.5 / 33**0.5 * 3**0.5
        same(weight, draw.uniform(h, (48, 33), np.float32, -bound, bound), g, h)
        weight = torch.nn.init.normal_(torch.empty(48, 33), std=0.02, generator=g)
        same(weight, draw.normal(h, (48, 33), np.float32, 0.0, 0.02), g, h)


def test_state_goes_both_ways():
    for draws in (0, 1, 3, 623, 624, 625, 1248):
        g, h = pair(9)
        torch.empty(draws, dtype=torch.int32).random_(generator=g)
        if draws == 3:
            torch.empty(1).normal_(generator=g)
        h.set_state(g.get_state())
        np.testing.assert_array_equal(g.get_state().numpy(), h.get_state())
        back = torch.Generator()
        back.set_state(torch.from_numpy(h.state_bytes()))
        same(torch.empty(5).normal_(generator=back), draw.normal(h, (5,)), back, h)
        assert h.initial_seed() == 9


def test_seeds():
    for seed in (0, 1, -1, 2**64 - 1, -(2**63), 2**32):
        g, h = pair(seed)
        assert g.initial_seed() == h.initial_seed()
        np.testing.assert_array_equal(g.get_state().numpy(), h.get_state())
    np.testing.assert_array_equal(torch.Generator().get_state().numpy(), rng.Generator().get_state())
    h = rng.Generator()
    assert h.seed() == h.initial_seed() != rng.DEFAULT_SEED


@pytest.mark.parametrize("bad", ["a", 1.5, True, 2**64, -(2**63) - 1])
def test_seed_errors(bad):
    with pytest.raises((RuntimeError, ValueError)) as theirs:
        torch.Generator().manual_seed(bad)
    with pytest.raises(type(theirs.value)) as ours:
        rng.Generator().manual_seed(bad)
    assert str(theirs.value).splitlines()[0] == str(ours.value).splitlines()[0]


@pytest.mark.parametrize("bad", [[1], np.zeros(5056, np.float32), np.zeros(3, np.uint8), np.zeros(5056, np.uint8)])
def test_state_errors(bad):
    with pytest.raises((RuntimeError, TypeError)) as theirs:
        torch.Generator().set_state(torch.from_numpy(bad) if isinstance(bad, np.ndarray) else bad)
    with pytest.raises(type(theirs.value)) as ours:
        rng.Generator().set_state(bad)
    assert str(theirs.value).splitlines()[0] == str(ours.value).splitlines()[0]


def test_copies():
    h = rng.Generator().manual_seed(4)
    draw.normal(h, (3,))
    h.next_key()
    for other in (h.clone(), copy.deepcopy(h), pickle.loads(pickle.dumps(h))):
        np.testing.assert_array_equal(other.get_state(), h.get_state())
        assert other.initial_seed() == 4
        np.testing.assert_array_equal(other.next_key(), h.clone().next_key())


# ---- device keys ----


def test_keys_repeat_and_differ():
    h = rng.Generator().manual_seed(0)
    first = [h.next_key().tobytes() for _ in range(1000)]
    assert len(set(first)) == 1000
    h.manual_seed(0)
    assert [h.next_key().tobytes() for _ in range(1000)] == first
    h.manual_seed(1)
    assert h.next_key().tobytes() not in first
    key = rng.next_key(h)
    assert key.dtype == np.uint32 and key.shape == (2,)


def test_keys_follow_the_state():
    h = rng.Generator().manual_seed(0)
    before = h.get_state()
    np.testing.assert_array_equal(before, torch.Generator().manual_seed(0).get_state().numpy())
    keys = [h.next_key().tolist() for _ in range(300)]
    middle = h.state_bytes()
    after = h.next_key().tolist()
    assert h.set_state(middle).next_key().tolist() == after
    assert h.set_state(before).next_key().tolist() == keys[0]
    torch.Generator().set_state(torch.from_numpy(middle))  # the count does not make it invalid


def test_threefry_is_the_published_one():
    key = np.array([0x13198A2E, 0x03707344], np.uint32)  # a known answer of Random123
    out = rng._threefry(jnp.asarray(key), jnp.uint32(0x243F6A88), jnp.uint32(0x85A308D3), 20)
    assert [int(x) for x in out] == [0xC4923A9C, 0x483DF7A0]


@pytest.mark.parametrize("p", [0.0, 0.1, 0.5, 1.0])
def test_mask(p):
    n = 1 << 18
    key = rng.Generator().manual_seed(3).next_key()
    fixed = jax.jit(lambda k: rng.bernoulli(k, p, (512, 512)))(key)
    traced = jax.jit(lambda k, p: rng.bernoulli(k, p, (512, 512)))(key, np.float32(p))
    for mask in (fixed, traced):
        assert mask.dtype == bool and mask.shape == (512, 512)
        assert abs(float(mask.mean()) - p) <= 5 * (p * (1 - p) / n) ** 0.5


def test_mask_neighbours_are_independent():
    generator = rng.Generator().manual_seed(1)
    keys = [rng.Generator().manual_seed(0).next_key(), generator.next_key(), generator.next_key()]
    masks = [np.asarray(rng.bernoulli(k, 0.5, (256, 256))).ravel() * 2.0 - 1 for k in keys]
    limit = 5 / 256
    for i, a in enumerate(masks):
        for lag in (1, 2, 4, 16, 256):
            assert abs(np.mean(a[:-lag] * a[lag:])) < limit
        for b in masks[:i]:
            assert abs(np.mean(a * b)) < limit


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64, jnp.float16, jnp.bfloat16])
def test_device_floats(dtype):
    key = rng.Generator().manual_seed(3).next_key()
    u = rng.uniform(key, (512, 512), dtype)
    assert u.dtype == dtype and u.min() >= 0 and u.max() < 1
    u = np.asarray(u, np.float64)
    assert abs(u.mean() - 0.5) < 0.005 and abs(u.var() - 1 / 12) < 0.002
    z = rng.normal(key, (512, 512), dtype)
    assert z.dtype == dtype
    z = np.asarray(z, np.float64)
    assert np.isfinite(z).all()
    assert abs(z.mean()) < 0.01 and abs(z.var() - 1) < 0.02 and abs((z**4).mean() - 3) < 0.1


def test_bits_and_split():
    key = rng.Generator().manual_seed(3).next_key()
    for dtype in (np.uint8, np.uint16, np.uint32, np.uint64):
        x = np.asarray(rng.bits(key, (10_000,), dtype))
        assert x.dtype == dtype
        assert abs(x.astype(np.float64).mean() / np.iinfo(dtype).max - 0.5) < 0.02
    keys = np.asarray(rng.split(key, 5))
    assert keys.shape == (5, 2) and keys.dtype == np.uint32 and len({k.tobytes() for k in keys}) == 5
    np.testing.assert_array_equal(keys[3], rng.fold_in(key, 3))
