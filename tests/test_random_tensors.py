"""Random numbers and the generator against torch, bit for bit."""

import copy

import pytest

import jtorch
from tests.oracle import both, torch


@pytest.mark.parametrize("seed", [0, 1, 1234567, 2**40])
@pytest.mark.parametrize("n", [1, 5, 15, 16, 17, 100])
def test_random_numbers_are_torchs(seed, n):
    def program(t):
        t.manual_seed(seed)
        return [
            t.rand(n), t.randn(n), t.randint(0, 10, (n,)), t.randperm(n), t.randn(n, dtype=t.float64),
            t.empty(n).uniform_(-1, 2),
            t.empty(n).normal_(1, 3), t.rand(n), t.bernoulli(t.full((n,), 0.3)), t.randint(5, (n,),
            dtype=t.int32), t.initial_seed(),
        ]  # fmt: skip

    both(program)


def test_generators():
    def program(t):
        g = t.Generator().manual_seed(5)
        a = t.randn(3, generator=g)
        state = g.get_state()
        b = t.randn(3, generator=g)
        g.set_state(state)
        c = t.randn(3, generator=g)
        t.manual_seed(1)
        kept = t.get_rng_state()
        d = t.rand(2)
        t.set_rng_state(kept)
        with t.random.fork_rng():
            t.rand(5)
        return a, b, c, d, t.rand(2), g.initial_seed()

    both(program)


def test_the_default_generator_is_a_generator():
    def program(t):
        seeded = t.manual_seed(3)
        assert seeded is t.default_generator
        assert isinstance(seeded, t.Generator) and isinstance(copy.deepcopy(seeded), t.Generator)
        state = seeded.get_state()
        a = t.rand(2, generator=seeded)
        seeded.set_state(state)
        return state, str(seeded.device), a, t.rand(2), seeded.clone_state().get_state()

    both(program)


def test_what_is_no_generator():
    for call in (
        lambda t: t.randperm(5, generator=3), lambda t: t.rand(2, generator="a"), lambda t: t.ones(2).normal_(generator=3),
        lambda t: t.bernoulli(t.ones(2), generator=3), lambda t: t.multinomial(t.ones(2), 1, generator=3),
        lambda t: t.randint(3, (2,), generator=3), lambda t: t.normal(0.0, 1.0, (2,), generator=3),
        lambda t: t.poisson(t.ones(2), generator=3), lambda t: t.nn.init.uniform_(t.ones(2), generator=3),
    ):  # fmt: skip
        for t in (torch, jtorch):
            with pytest.raises(TypeError, match="generator"):
                call(t)


_LAYOUTS = {
    "transposed": lambda t: t.zeros(5, 7).t(),
    "every other": lambda t: t.zeros(4, 12)[:, ::2],
    "channels last": lambda t: t.zeros(2, 3, 4, 2).contiguous(memory_format=t.channels_last),
}


@pytest.mark.parametrize("layout", _LAYOUTS)
def test_fills_go_in_the_order_of_memory(layout):
    def program(t):
        t.manual_seed(0)
        x = _LAYOUTS[layout](t)
        fills = (
            lambda x: x.uniform_(), lambda x: x.normal_(), lambda x: x.bernoulli_(0.4), lambda x: x.exponential_(),
            lambda x: x.random_(9), lambda x: x.bernoulli_(t.full(tuple(x.shape), 0.5)), t.randn_like, t.rand_like,
        )  # fmt: skip
        return [fill(x).clone() for fill in fills] + [t.randn_like(x).stride(), t.rand(2)]

    both(program)


_ON_META = {
    "rand": lambda t: t.rand(2**45, device="meta"),
    "randn": lambda t: t.randn(2**45, device="meta", dtype=t.complex64),
    "randint": lambda t: t.randint(5, (2**45,), device="meta"),
    "randperm": lambda t: t.randperm(2**45, device="meta"),
    "rand_like": lambda t: t.rand_like(t.empty(3, 2**45, device="meta").T),
    "normal": lambda t: t.normal(0.0, 1.0, (2**45,), device="meta"),
    "normal of tensors": lambda t: t.normal(t.empty(2**45, device="meta"), 1.0),
    "bernoulli": lambda t: t.bernoulli(t.empty(2**45, device="meta")),
    "multinomial": lambda t: t.multinomial(t.empty(3, 5, device="meta"), 2),
    "poisson": lambda t: t.poisson(t.empty(2**45, device="meta")),
    "normal_": lambda t: t.empty(2**45, device="meta").normal_(),
    "random_": lambda t: t.empty(2**45, device="meta").random_(3),
    "Linear": lambda t: t.nn.Linear(2**22, 2**22, device="meta").weight,
}


@pytest.mark.parametrize("name", _ON_META)
def test_on_meta_nothing_is_drawn(name):
    def program(t):
        t.manual_seed(3)
        made = _ON_META[name](t)
        return tuple(made.shape), made.stride(), str(made.dtype), str(made.device), t.rand(2)

    both(program)


def test_poisson_of_one_rate_is_a_tensor_without_dimensions():
    def program(t):
        t.manual_seed(0)
        counts = t.poisson(t.tensor(1e6, dtype=t.float64))
        return counts.shape == (), str(counts.dtype), abs(counts.item() - 1e6) < 1e4

    both(program)


_BOUNDS = ((0, 2049), (-257, 257), (0, 2**33), (-(2**33), 2**24 + 3), (2**53, 2**53 + 4), (3, 4), (257, 258))
_OUT = {
    "turned": lambda t, n: t.zeros(n, 4).t(),
    "with gaps": lambda t, n: t.zeros(4, n, 2)[..., 0],
    "of another size": lambda t, n: t.zeros(n),
}
_INTO = {
    "rand": lambda t, n, out: t.rand(4, n, out=out),
    "randn": lambda t, n, out: t.randn(4, n, out=out),
    "normal": lambda t, n, out: t.normal(1.0, 2.0, (4, n), out=out),
    "randint": lambda t, n, out: t.randint(0, 50, (4, n), out=out),
    "normal of means": lambda t, n, out: t.normal(t.arange(4.0).view(4, 1).expand(4, n), 2.0, out=out),
    "normal of tensors": lambda t, n, out: t.normal(t.arange(4.0).view(4, 1), t.ones(4, n), out=out),
    "bernoulli": lambda t, n, out: t.bernoulli(t.arange(4.0).view(4, 1).expand(4, n) / 4, out=out),
    "bernoulli of a number": lambda t, n, out: t.bernoulli(t.ones(4, n), 0.5, out=out),
}
DRAWN = {  # in floats that do not hold all of the integers, in complex numbers, in 16 bits
    **{
        f"integers from {low} up in {kind}": lambda t, kind=kind, low=low: t.empty(6, dtype=getattr(t, kind)).random_(
            low, None
        )
        for kind in ("bool", "uint8", "int8", "int32", "int64", "float16", "bfloat16", "float32", "float64")
        for low in (-(2**63), -(2**20), -3, 0, 1, 2, 2**20, 2**24)
    },
    **{
        f"integers from {low} below {high} in {kind}": lambda t, kind=kind, low=low, high=high: [
            t.randint(low, high, (6,), dtype=getattr(t, kind)),
            t.empty(6, dtype=getattr(t, kind)).random_(low, high),
            t.randint_like(t.empty(6, dtype=getattr(t, kind)), low, high),
        ]
        for kind in ("float16", "bfloat16", "float32", "float64")
        for low, high in _BOUNDS
    },
    "complex normal_": lambda t: t.empty(5, dtype=t.complex64).normal_(2, 3),
    "means of 16 bits": lambda t: t.normal(t.ones(4, 4, dtype=t.float16).t(), t.arange(16.0).view(4, 4)),
    "random_ between floats": lambda t: t.ones(3).random_(2.5, 4),
    "bernoulli_ by ints": lambda t: t.ones(3).bernoulli_(t.ones(3, dtype=t.int64)),
    **{
        f"many in {kind}": lambda t, kind=kind: [
            t.empty(70001, dtype=getattr(t, kind)).uniform_(-0.3, 0.7)[::997],
            t.rand(70001, dtype=getattr(t, kind))[::997],
            t.rand(2),
        ]
        for kind in ("float16", "bfloat16", "float32", "float64")
    },
    "rand of no size": lambda t: t.rand(),
    "randn of an empty size": lambda t: t.randn(()),
    **{
        f"{f} into an out= {how}, {n} columns": lambda t, f=f, how=how, n=n: [
            _INTO[f](t, n, _OUT[how](t, n)),
            t.rand(2),
        ]
        for f in _INTO
        for how in _OUT
        for n in (3, 20)
    },
}


@pytest.mark.parametrize("name", DRAWN)
def test_draws(name):
    def program(t):
        t.manual_seed(3)
        return DRAWN[name](t)

    both(program)


REFUSED = {
    "normal without a size": lambda t: t.normal(0, 1),
    "randint of floats": lambda t: t.randint(0, 2.5, (2,)),
    "randperm beyond what halves count": lambda t: t.randperm(5000, dtype=t.float16),
    "uniform_ beyond the dtype": lambda t: t.ones(3, dtype=t.float16).uniform_(0, 1e39),
    "uniform_ from nan": lambda t: t.ones(3).uniform_(float("nan"), 1),
    "uniform_ over too much": lambda t: t.ones(3).uniform_(-3e38, 3e38),
    "bernoulli beyond 1": lambda t: t.bernoulli(t.ones(2), 1.5),
    "bernoulli below 0": lambda t: t.bernoulli(t.ones(2), p=-1),
    "spread of nan": lambda t: t.ones(2).normal_(0, float("nan")),
    "rate of nan": lambda t: t.ones(2).exponential_(float("nan")),
    "width of nan": lambda t: t.ones(2).cauchy_(0, float("nan")),
    "spread of nan of a logarithm": lambda t: t.ones(2).log_normal_(0, float("nan")),
    "bernoulli_ beyond 1": lambda t: t.ones(2).bernoulli_(t.tensor([1.5, 0.0])),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    both(REFUSED[name])


@pytest.mark.parametrize("name", ["rand_like", "randn_like", "randint_like"])
def test_memory_formats_of_what_is_drawn(name):
    def program(t):
        x = t.zeros(2, 3, 2, 2).contiguous(memory_format=t.channels_last)
        more = (100,) if name == "randint_like" else ()
        drawn = []
        for y in (x, x[..., ::2], x.contiguous()):
            for layout in (t.preserve_format, t.contiguous_format, t.channels_last):
                t.manual_seed(3)
                drawn.append(getattr(t, name)(y, *more, memory_format=layout))
        return drawn

    both(program)
