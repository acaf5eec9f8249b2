"""Several runs of a program as one: a loop over the runs, for steps so short that starting them costs."""

import time
from itertools import islice
from operator import is_, itemgetter

import jax
import jax.numpy as jnp
import numpy as np

from . import hasty, ledger
from .beside import beside
from .packing import HERE, placed
from .parcel import Parcel, packer_of

LONGEST = 5  # runs in one program
LEAST = 3  # the same, where runs that are left over are dear and there are more
WATCHED = 32  # runs in a row that nobody has looked at before it is worth while
SHORT = 5e-3  # seconds a run
LONG = 20e-3  # seconds of a run whose start takes much of it
MUCH = 0.08  # that share
REST = -1000  # runs after which another look is taken where no chain was worth while
LARGE = 4096  # bytes of an argument that is chosen among those of the runs, not stacked with them
LITTLE = 1 << 16  # bytes that a program need not take, and a chain copies: parameters that numpy still has at first
MOST = 64 << 20  # bytes of arguments and results that may wait
OPENED = 1 / 3  # share of the runs of a chain whose parcels somebody opens, from which on they cost more than they save
UNROLLED = 200  # nodes of all runs: up to so many, a chain that always makes as many is written out, not looped over
LOOKS = 4  # times that a chain which ends with another program is wanted before it is made
CLOSINGS = 3  # programs that chains of one program may end with
ALONE = object()  # in a packer's place: each value is to travel by itself


class Links:
    """How runs of a program follow each other.

    fed, sources: the arguments that are results of the run before, and which. kept: those that are always the same. fresh: the
    others, but for the numbers, which come last. places: the results that are wanted of each run. last: those of the last run only.
    """

    __slots__ = ("program", "fed", "sources", "kept", "fresh", "places", "last")

    def __init__(self, program, fed, sources, kept, fresh, places, last=()):
        self.program = program
        self.fed = fed
        self.sources = sources
        self.kept = kept
        self.fresh = fresh
        self.places = places
        self.last = last

    def hold(self, args) -> bool:
        """Whether there can be a chain of runs with arguments like these."""
        plain = [args[k] for part in (self.fed, self.kept, self.fresh) for k in part]
        return (
            bool(self.fed)
            and sum(args[k].nbytes for k in self.lent()) <= LITTLE
            and (sum(args[k].nbytes for k in self.fresh) + self.results_nbytes()) * LONGEST <= MOST
            and all(isinstance(a, (jax.Array, np.ndarray)) for a in plain)
            and len({device for a in plain if isinstance(a, jax.Array) for device in a.devices()}) == 1
        )

    def lent(self):
        """What goes round although the program does not take its memory."""
        return set(self.fed).difference(self.program.donate)

    def specs(self, places):
        """What these results are like."""
        program = self.program
        specs = {node.first + k: spec for node in program.nodes for k, spec in enumerate(node.plan.specs)}
        return [specs[program.out[k]] for k in places]

    def results_nbytes(self) -> int:
        """Bytes of what is wanted of each run."""
        return sum(spec.nbytes for spec in self.specs(self.places))


class Chain:
    """Up to `length` runs of a program, each fed with the results of the one before.

    What is new at each run is stacked where it comes from the host (`numbers`: the program's numbers, keys of random numbers), and one
    argument a run where it is on the device (`fresh`). The loop is compiled beside the training, in a thread of its own; until that is
    done, `call` is None. Compiling takes about as long as for one run: the body is that of the loop.

    whole: always as many runs, which are counted when the program is made, and nothing is chosen in it.
    packer, of_last: how what goes round travels to the next chain, and what is wanted of the last run alone; None where each value does
    by itself.
    """

    __slots__ = ("links", "length", "whole", "call", "fresh", "numbers", "take", "counts", "last", "packer", "of_last")

    def __init__(self, links, args, length, known=None):
        self.links = links
        self.length = length
        self.whole = asks_the_host(links.program.device)
        self.packer = self.of_last = None
        if not self.whole and known is not ALONE and placed(links.program.device) is HERE:
            self.packer = packer_of([abstract(args[k]) for k in links.fed], known)
            self.of_last = packer_of(
                [jax.ShapeDtypeStruct(tuple(s.shape), s.dtype.np) for s in links.specs(links.last)]
            )
        self.fresh = [k for k in links.fresh if isinstance(args[k], jax.Array)]
        self.numbers = [k for k in links.fresh if k not in self.fresh]
        self.numbers += range(len(links.fed) + len(links.kept) + len(links.fresh), len(args))
        self.take = taker(links.sources)
        self.call = None
        self.counts = {}  # numbers of runs, on the device
        self.last = {}  # of each number that of the last run, and as many as there are runs stacked on the device
        shapes = [abstract(a) for a in args]
        numbers = [jax.ShapeDtypeStruct((length, *np.shape(a)), np.asarray(a).dtype) for a in self.numbers_of(args)]
        fed = self.packer.parts() if self.packer else map(shapes.__getitem__, links.fed)
        beside(self.compile, jax.ShapeDtypeStruct((), np.int32), *self.flat(fed, shapes, [shapes] * length, numbers))

    def numbers_of(self, args):
        return list(map(args.__getitem__, self.numbers))

    def flat(self, fed, first, calls, numbers):
        """The arguments of the loop: what goes round, what stays, what is new at each run, the numbers of each run.

        One after the other, since jax takes a tenth of a millisecond more for some hundred that lie in lists.
        """
        kept = map(first.__getitem__, self.links.kept)
        return *fed, *kept, *[call[k] for k in self.fresh for call in calls], *numbers

    def fed(self, first, parcel):
        """What goes round first, from the arguments of the first run and what is missing there."""
        fed = list(map(first.__getitem__, self.links.fed))
        if self.packer is None:
            return fed
        flats = self.packer.given(fed) if parcel is None else parcel.flats
        return [*map(fed.__getitem__, self.packer.alone), *flats]

    def compile(self, *shapes):
        """Make the program; runs in a thread."""
        alone = self.links.fed if self.packer is None else self.packer.alone
        given = () if self.links.lent() else range(1, 1 + len(alone))
        lowered = jax.jit(self.program, donate_argnums=given).lower(*shapes)
        call = lowered.compile(compiler_options=hasty.options(self.links.program))
        ledger.chained(self.links.program, self.length)
        self.call = call

    def program(self, n, *flat):
        """The first `n` runs: what the last hands on, what is wanted of it alone, and of each run the wanted results, one after the other."""
        links = self.links
        given = iter(flat)
        state = list(islice(given, self.parts(links.fed, self.packer)))
        state = state if self.packer is None else self.packer.part(state)
        constants = list(islice(given, len(links.kept)))
        taking = list if self.written_out() else jnp.stack if self.whole else choosing
        fresh = [taking(list(islice(given, self.length))) for _ in self.fresh]
        numbers = list(given)

        def one(at, state):
            args = [None] * (len(state) + len(constants) + len(fresh) + len(numbers))
            for k, value in zip(links.fed, state):
                args[k] = value
            for k, value in zip(links.kept, constants):
                args[k] = value
            for k, values in zip(self.fresh, fresh):
                args[k] = values[at]
            for k, values in zip(self.numbers, numbers):
                args[k] = values[at]
            outs = links.program.traced()(*args)
            after = [jax.lax.convert_element_type(v, s.dtype) for v, s in zip(self.take(outs), state)]
            return after, [outs[k] for k in links.last], {k: outs[k] for k in links.places}

        if self.written_out():
            results = []
            for at in range(self.length):
                state, last, made = one(at, state)
                results += map(made.__getitem__, links.places)
        else:
            state, last, made = self.looped(one, state, self.length if self.whole else n)
            results = [made[k][at] for at in range(self.length) for k in links.places]
        if self.packer is not None:
            state = self.packer.join(state)
        if self.of_last is not None:
            last = self.of_last.join(last)
        return *state, *last, *results

    def written_out(self) -> bool:
        """Whether the runs follow each other in the program without a loop.

        A GPU's driver is then given the kernels of all runs at once: starting an MLP's step takes 75 us in place of 125 to 134 (an
        H200). A larger program takes XLA too long: with 41 layers 295 us in place of 415, but 8 to 11 s in place of 2.
        """
        return self.whole and self.length * len(self.links.program.nodes) <= UNROLLED

    def looped(self, one, state, n):
        """`n` turns of `one(at, state)`: what the last hands on, what is wanted of it alone, and the stacked results of all."""

        def turn(at, carried):
            state, _, results = carried
            state, last, made = one(at, state)
            return state, last, {k: values.at[at].set(made[k]) for k, values in results.items()}

        _, last, made = jax.eval_shape(one, 0, state)
        last = [jnp.zeros(v.shape, v.dtype) for v in last]
        results = {k: jnp.zeros((self.length, *v.shape), v.dtype) for k, v in made.items()}
        return jax.lax.fori_loop(0, n, turn, (state, last, results))

    @staticmethod
    def parts(places, packer):
        """How many values travel."""
        return len(places) if packer is None else len(packer.alone) + len(packer.groups)

    def takes(self, some) -> bool:
        """Whether it can make so many runs."""
        return some == self.length or not self.whole

    def fits(self, first, args) -> bool:
        """Whether a run can follow this first one: it has the same constants."""
        kept = self.links.kept
        return all(map(is_, map(first.__getitem__, kept), map(args.__getitem__, kept)))

    def arguments(self, calls, parcel=None):
        """What `call` takes, for the arguments of all runs: how many there are, what goes round, and the rest."""
        some = len(calls)
        first, calls = calls[0], calls + calls[-1:] * (self.length - some)
        count = self.counts.get(some)
        if count is None:
            count = self.counts[some] = self.sent(np.int32(some))
        return [
            count,
            *self.flat(self.fed(first, parcel), first, calls, self.stacked(list(map(self.numbers_of, calls)))),
        ]

    def run(self, calls, parcel=None):
        """(what the last run hands on, what is wanted of it alone, of each run the wanted results) for the arguments of all runs.

        parcel: what is missing in the first one's, and would be the same chain's.
        """
        outs = iter(self.call(*self.arguments(calls, parcel)))
        links, made = self.links, []
        if self.packer is not None:
            self.packer.sent += 1
        for places, packer in ((links.fed, self.packer), (links.last, self.of_last)):
            parts = list(islice(outs, self.parts(places, packer)))
            made.append(parts if packer is None else Parcel(packer, parts))
        return *made, [dict(zip(links.places, outs)) for _ in range(self.length)]

    def close(self, calls, results, parcel):
        """Make all runs and the results that are wanted of all but the last; of the last what it hands on, what is wanted of it
        alone, and the others by their places."""
        values, last, made = self.run(calls, parcel)
        for waiting, values_of in zip(results, made[: len(calls) - 1]):
            _fill(waiting, values_of)
        return values, last, made[len(calls) - 1]

    def sent(self, value):
        """A numpy value on the device of the runs."""
        with jax.ensure_compile_time_eval(), placed(self.links.program.device):
            return jnp.asarray(value)

    def stacked(self, numbers):
        """The numbers of all runs, each stacked; on the device where it is that of all runs before."""
        return [self.column(k, values) for k, values in enumerate(zip(*numbers))]

    def column(self, k, values):
        last, sent = self.last.get(k, (None, None))
        if all(value is last for value in values):
            if sent is None:
                sent = self.sent(np.stack(values))
                self.last[k] = (last, sent)
            return sent
        self.last[k] = (values[-1], None)
        return np.stack(values)


class Closing:
    """A chain of some length whose last run is one of another program, and how often it has been wanted."""

    __slots__ = ("length", "wanted", "chain")

    def __init__(self, length):
        self.length = length
        self.wanted = 0
        self.chain = None

    def goes_with(self, chain) -> bool:
        return self.length == chain.length and (self.chain is None or self.chain.packer is chain.packer)


class Gathering:
    """When the runs of a program are to gather for a chain, and for how long a one."""

    __slots__ = (
        "chain",
        "making",
        "run",
        "stretch",
        "unseen",
        "since",
        "starting",
        "short",
        "loose",
        "closing",
        "packer",
    )

    def __init__(self):
        self.chain = None  # once it is compiled
        self.making = None
        self.run = 0  # runs since somebody has looked
        self.stretch = LONGEST  # as many were made from one look to the next
        self.unseen = 0  # runs watched
        self.since = 0.0
        self.starting = 0.0  # seconds of Python's thread for starting the runs watched
        self.short = 0  # stretches too short for the chain
        self.loose = False  # whether what was the same in two runs has turned out not to be always the same
        self.packer = None  # how what goes round travels, once there has been a chain
        self.closing = {}  # programs of last runs that are looked at -> Closing

    def promising(self) -> bool:
        """Whether there is a chain, or may soon be one."""
        if self.chain is not None or self.making is not None or 0 <= self.unseen < WATCHED:
            return True
        self.unseen = self.unseen + 1 if self.unseen < 0 else REST
        return False

    def loosen(self):
        """A run had other constants than the chain has: the next chain is made without any."""
        self.chain = None
        self.unseen = 0
        self.loose = True

    def watch(self, links, args):
        """A run has been made and nobody has looked; `args()` are those of the next, `links()` how it follows, or None."""
        if self.making is not None:
            if self.making.call is not None:
                self.chain, self.making = self.making, None
            return
        self.unseen += 1
        if self.unseen < 0:
            return
        if self.unseen == WATCHED // 2:
            self.since = time.perf_counter()
            self.starting = 0.0
        elif self.unseen == WATCHED:
            runs = max(self.stretch, self.run)
            if runs > 1 and self.worth_while(time.perf_counter() - self.since):
                links, args = links(), args()
                if links is not None and links.hold(args):
                    self.making = Chain(links, args, length_for(runs, links.program.device), self.packer)
                    self.packer = self.packer or self.making.packer
            self.stretch = LONGEST
        elif self.unseen > WATCHED:
            self.unseen = REST

    def worth_while(self, seconds) -> bool:
        """Whether the runs watched, which took so long together, took little, or much of it to be started."""
        one = seconds / (WATCHED // 2)
        return one < SHORT or (one < LONG and self.starting > MUCH * seconds)

    def closer(self, chain, program, links, args):
        """What runs that gathered for this chain end with where the last one is a run of another program, with the gradients that somebody
        looks at: a chain that has them too. None until that is compiled; `links()` and `args()`, those of the first run, are what it is made of.
        """
        found = self.closing.get(program)
        if found is None or not found.goes_with(chain):
            if found is None and len(self.closing) == CLOSINGS:
                return None
            found = self.closing[program] = Closing(chain.length)
        found.wanted += 1
        if found.chain is None and found.wanted >= LOOKS and not chain.whole:
            found.chain = Chain(links(), args(), chain.length, chain.packer or ALONE)
        if found.chain is not None and found.chain.call is not None:
            return found.chain
        if chain.packer is not None:
            chain.packer.opened -= 1  # for want of it, and not for long
        return None

    def singly(self, call, take, fed, calls, results):
        """`run_singly`, whose time counts."""
        started = time.thread_time()
        values = run_singly(call, take, fed, calls, results)
        self.starting += time.thread_time() - started
        return values

    def ran(self, chain):
        """The chain has run; where nobody has looked for long, a longer one is worth while."""
        if chain is self.chain and chain.length < (LEAST if chain.whole else LONGEST) and self.run > 8 * LONGEST:
            self.chain = None
            self.unseen = 0
            self.stretch = LONGEST
        packer = chain.packer
        if packer is not None and packer.sent > WATCHED and packer.opened > OPENED * packer.sent:
            self.chain = None
            self.unseen = 0
            self.packer = ALONE

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


def run_singly(call, take, fed, calls, results):
    """Runs one after the other; what the last hands on. results: of each run, pairs of a pending value and its place."""
    last = len(calls) - 1
    for k, args in enumerate(calls):
        outs = concretely(call, args)
        _fill(results[k], outs)
        values = take(outs)
        if k < last:
            after = calls[k + 1]
            for at, value in zip(fed, values):
                after[at] = value
        calls[k] = args = outs = None
    return values


def run_chained(chain, gathering, calls, results, parcel=None):
    """The same with one program; what is handed on may be a parcel, as it may be here."""
    values, _, made = chain.run(calls, parcel)
    gathering.ran(chain)
    for waiting, values_of in zip(results, made):
        _fill(waiting, values_of)
    return values


def _fill(waiting, values):
    for pending, place in waiting:
        pending.value = values[place]
        pending.graph = None


def concretely(call, args):
    """The results of a program, which is run even while jax traces something."""
    outs = call(*args)
    if outs and isinstance(outs[0], jax.core.Tracer):
        with jax.ensure_compile_time_eval():
            outs = call(*args)
    return outs


def asks_the_host(device) -> bool:
    """Whether a loop's condition and the number of a branch, values of the device, come to the host at each turn, as on GPUs
    (https://github.com/jax-ml/jax/issues/2491). Tests override it."""
    return device.type != "cpu"


def length_for(runs, device) -> int:
    """How long a chain is for that many runs in a row: where it always makes as many, those that leave the fewest to be made singly."""
    if runs <= LONGEST or not asks_the_host(device):
        return min(runs, LONGEST)
    return min(range(LONGEST, LEAST - 1, -1), key=lambda length: runs % length)


class Chosen:
    """Large values of which one is taken at a traced position; little ones are stacked for that."""

    __slots__ = ("values",)

    def __init__(self, values):
        self.values = values

    def __getitem__(self, at):
        return jax.lax.switch(at, [lambda v=v: v for v in self.values])


def choosing(values):
    """Values of which one is taken."""
    return Chosen(values) if values[0].size * values[0].dtype.itemsize >= LARGE else jnp.stack(values)


def taker(positions):
    """The items at these positions, as a function of a list."""
    if not positions:
        return lambda outs: ()
    if len(positions) == 1:
        [k] = positions
        return lambda outs: (outs[k],)
    return itemgetter(*positions)


def abstract(x):
    """What a program is compiled for, of one argument.

    A sharding is named only where the array is committed to it: results of a program for which one was named are committed, and
    the programs that they go into next would be compiled once more for that.
    """
    if not isinstance(x, jax.Array):
        return x
    sharding = x.sharding if x.committed else None
    return jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=sharding, weak_type=x.aval.weak_type)
