"""Several calls of a compiled region as one program: a loop over the calls, for steps so short that starting them costs."""

import threading
import time
from operator import is_

import jax
import jax.numpy as jnp
import numpy as np

from ..core import ledger

LONGEST = 10  # calls in one program
WATCHED = 32  # calls in a row that nobody has looked at before it is worth while
SHORT = 5e-3  # seconds a call
MOST = 64 << 20  # bytes of arguments that may wait


class Chain:
    """Up to `length` calls of a replay's program without gradients, each fed with the results of the one before.

    The loop is compiled beside the training, in a thread of its own; until that is done, `call` is None. Compiling takes
    about as long as for one call: the body is that of the loop.
    """

    __slots__ = ("replay", "length", "call", "fed", "fresh", "kept", "n_numbers", "places")

    def __init__(self, replay, args, length, places):
        self.replay = replay
        self.length = length
        self.places = places  # of what the region returns, among the results of the program
        self.fed = replay.fed
        n = len(replay.storages)
        self.fresh = [
            k for k, _ in replay.arguments
        ] + replay.keys  # these, and the numbers, are other ones at each call
        self.n_numbers = len(args) - n
        self.kept = [k for k, _ in replay.constants]
        self.call = None
        shapes = [_shape(a) for a in args[:n]]
        numbers = [jax.ShapeDtypeStruct((length, *np.shape(a)), np.asarray(a).dtype) for a in args[n:]]
        shapes = self.split(shapes, [shapes] * length, numbers)
        threading.Thread(target=self.compile, args=(jax.ShapeDtypeStruct((), np.int32), *shapes)).start()

    def split(self, first, calls, numbers):
        """The arguments of the loop: what goes round, what stays, what is new at each call, the numbers of each call."""
        return (
            [first[k] for k in self.fed],
            [first[k] for k in self.kept],
            [[call[k] for call in calls] for k in self.fresh],
            numbers,
        )

    def compile(self, *shapes):
        """Make the program; runs in a thread."""
        started = time.perf_counter()
        call = jax.jit(self.program, donate_argnums=1).lower(*shapes).compile()
        ledger.chained(self.replay.program, self.length, time.perf_counter() - started)
        self.call = call

    def program(self, n, state, constants, fresh, numbers):
        """The first `n` calls."""
        replay = self.replay
        fresh = [jnp.stack(values) for values in fresh]

        def one(at, state):
            args = [None] * len(replay.storages)
            for k, value in zip(self.fed, state):
                args[k] = value
            for k, value in zip(self.kept, constants):
                args[k] = value
            for k, values in zip(self.fresh, fresh):
                args[k] = values[at]
            outs = replay.bare.call(*args, *[values[at] for values in numbers])
            after = [jax.lax.convert_element_type(v, s.dtype) for v, s in zip(replay.take_fed(outs), state)]
            return after, {k: outs[k] for k in self.places}

        def turn(at, carried):
            state, results = carried
            state, made = one(at, state)
            return state, {k: values.at[at].set(made[k]) for k, values in results.items()}

        _, made = jax.eval_shape(one, 0, state)
        results = {k: jnp.zeros((self.length, *v.shape), v.dtype) for k, v in made.items()}
        state, results = jax.lax.fori_loop(0, n, turn, (state, results))
        return state, [{k: values[at] for k, values in results.items()} for at in range(self.length)]

    def fits(self, first, args) -> bool:
        """Whether a call can follow this first one: it has the same constants."""
        kept = self.kept
        return all(map(is_, map(first.__getitem__, kept), map(args.__getitem__, kept)))

    def run(self, calls):
        """(the last call's `fed` results, of each call what the region returns) for the arguments of all calls."""
        n = len(self.replay.storages)
        some = len(calls)
        calls = calls + calls[-1:] * (self.length - some)
        numbers = [np.stack([args[n + k] for args in calls]) for k in range(self.n_numbers)]
        return self.call(np.int32(some), *self.split(calls[0], calls, numbers))


def _shape(value):
    return jax.ShapeDtypeStruct(value.shape, value.dtype, sharding=value.sharding)


class Gathering:
    """When a replay's calls are to gather for a chain, and for how long a one."""

    __slots__ = ("replay", "places", "chain", "making", "run", "stretch", "unseen", "since", "short")

    def __init__(self, replay, places):
        self.replay = replay
        self.places = places
        self.chain = None  # once it is compiled
        self.making = None
        self.run = 0  # calls since somebody has looked
        self.stretch = LONGEST  # as many were made from one look to the next
        self.unseen = 0  # calls watched
        self.since = 0.0
        self.short = 0  # stretches too short for the chain

    def watch(self, args):
        """A call has run and nobody has looked; `args` are the ones of the next."""
        if self.making is not None:
            if self.making.call is not None:
                self.chain, self.making = self.making, None
            return
        self.unseen += 1
        if self.unseen == WATCHED // 2:
            self.since = time.perf_counter()
        elif self.unseen == WATCHED:
            seconds = time.perf_counter() - self.since
            length = min(LONGEST, max(self.stretch, self.run))
            if length > 1 and seconds < SHORT * WATCHED / 2 and self.possible(args):
                self.making = Chain(self.replay, args, length, self.places)

    def possible(self, args) -> bool:
        """Whether calls can follow each other in one program: all that they write, they read, and no more than that."""
        replay = self.replay
        n = len(replay.storages)
        return (
            len(replay.fed) == len(replay.written)
            and set(replay.fed) <= set(replay.donated)
            and None not in self.places
            and sum(args[k].nbytes for k, _ in replay.arguments) * LONGEST <= MOST
            and all(isinstance(a, jax.Array) for a in args[:n])
            and len({device for a in args[:n] for device in a.devices()}) == 1
        )

    def looked(self):
        """Somebody has looked at a result."""
        self.stretch, self.run = self.run, 0
        if self.chain is not None and self.stretch <= self.chain.length // 2:
            self.short += 1
            if self.short > 3:  # its arguments are padded to its length: watch again, and make a shorter one
                self.chain = None
                self.unseen = self.short = 0
        else:
            self.short = 0
