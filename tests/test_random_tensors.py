"""Random numbers and the generator against torch, bit for bit."""

import pytest

from tests.oracle import both


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
