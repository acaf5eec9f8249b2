"""Several runs of a program as one: a loop over the runs, for steps so short that starting them costs."""

import threading
import time
from itertools import islice
from operator import is_, itemgetter

import jax
import jax.numpy as jnp
import numpy as np

from . import hasty, ledger
from .packing import placed

LONGEST = 5  # runs in one program
LEAST = 3  # the same, where runs that are left over are dear and there are more
WATCHED = 32  # runs in a row that nobody has looked at before it is worth while
SHORT = 5e-3  # seconds a run
LONG = 20e-3  # seconds of a run whose start takes much of it
MUCH = 0.08  # that share
REST = -1000  # runs after which another look is taken where no chain was worth while
THREAD = "jtorch compile"
LARGE = 4096  # bytes of an argument that is chosen among those of the runs, not stacked with them
LITTLE = 1 << 16  # bytes that a program need not take, and a chain copies: parameters that numpy still has at first
MOST = 64 << 20  # bytes of arguments and results that may wait


def beside(function, *args):
    """Call a function in a thread of its own, beside the training."""
    threading.Thread(target=function, args=args, name=THREAD).start()


def compiled_beside():
    """Wait until what is being compiled beside the program's loop is ready: for who times a loop. `jtorch.compile.wait`."""
    for thread in threading.enumerate():
        if thread.name == THREAD:
            thread.join()


class Links:
    """How runs of a program follow each other.

    fed, sources: the arguments that are results of the run before, and which. kept: those that are always the same. fresh: the
    others, but for the numbers, which come last. places: the results that are wanted of each run.
    """

    __slots__ = ("program", "fed", "sources", "kept", "fresh", "places")

    def __init__(self, program, fed, sources, kept, fresh, places):
        self.program = program
        self.fed = fed
        self.sources = sources
        self.kept = kept
        self.fresh = fresh
        self.places = places

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

    def results_nbytes(self) -> int:
        """Bytes of what is wanted of each run."""
        program = self.program
        sizes = {node.first + k: spec.nbytes for node in program.nodes for k, spec in enumerate(node.plan.specs)}
        return sum(sizes[program.out[k]] for k in self.places)


class Chain:
    """Up to `length` runs of a program, each fed with the results of the one before.

    What is new at each run is stacked where it comes from the host (`numbers`: the program's numbers, keys of random numbers), and one
    argument a run where it is on the device (`fresh`). The loop is compiled beside the training, in a thread of its own; until that is
    done, `call` is None. Compiling takes about as long as for one run: the body is that of the loop.

    whole: always as many runs, which are counted when the program is made, and nothing is chosen in it.
    """

    __slots__ = ("links", "length", "whole", "call", "fresh", "numbers", "take", "counts", "last")

    def __init__(self, links, args, length):
        self.links = links
        self.length = length
        self.whole = asks_the_host(links.program.device)
        self.fresh = [k for k in links.fresh if isinstance(args[k], jax.Array)]
        self.numbers = [k for k in links.fresh if k not in self.fresh]
        self.numbers += range(len(links.fed) + len(links.kept) + len(links.fresh), len(args))
        self.take = taker(links.sources)
        self.call = None
        self.counts = {}  # numbers of runs, on the device
        self.last = {}  # of each number that of the last run, and as many as there are runs stacked on the device
        shapes = [abstract(a) for a in args]
        numbers = [jax.ShapeDtypeStruct((length, *np.shape(a)), np.asarray(a).dtype) for a in self.numbers_of(args)]
        beside(self.compile, jax.ShapeDtypeStruct((), np.int32), *self.flat(shapes, [shapes] * length, numbers))

    def numbers_of(self, args):
        return list(map(args.__getitem__, self.numbers))

    def flat(self, first, calls, numbers):
        """The arguments of the loop: what goes round, what stays, what is new at each run, the numbers of each run.

        One after the other, since jax takes a tenth of a millisecond more for some hundred that lie in lists.
        """
        whole = map(first.__getitem__, [*self.links.fed, *self.links.kept])
        return *whole, *[call[k] for k in self.fresh for call in calls], *numbers

    def compile(self, *shapes):
        """Make the program; runs in a thread."""
        started = time.perf_counter()
        given = () if self.links.lent() else range(1, 1 + len(self.links.fed))
        lowered = jax.jit(self.program, donate_argnums=given).lower(*shapes)
        call = lowered.compile(compiler_options=hasty.options(self.links.program))
        ledger.chained(self.links.program, self.length, time.perf_counter() - started)
        self.call = call

    def program(self, n, *flat):
        """The first `n` runs: what the last hands on, and of each run the wanted results, one after the other."""
        links = self.links
        given = iter(flat)
        state, constants = list(islice(given, len(links.fed))), list(islice(given, len(links.kept)))
        taking = stacking if self.whole else choosing
        fresh = [taking(list(islice(given, self.length))) for _ in self.fresh]
        numbers = list(given)

        def one(at, state):
            args = [None] * (len(state) + len(constants) + len(fresh) + len(numbers))
            for k, value in zip(links.fed, state):
                args[k] = value
            for k, value in zip(links.kept, constants):
                args[k] = value
            for k, take in zip(self.fresh, fresh):
                args[k] = take(at)
            for k, values in zip(self.numbers, numbers):
                args[k] = values[at]
            outs = links.program.traced()(*args)
            after = [jax.lax.convert_element_type(v, s.dtype) for v, s in zip(self.take(outs), state)]
            return after, {k: outs[k] for k in links.places}

        def turn(at, carried):
            state, results = carried
            state, made = one(at, state)
            return state, {k: values.at[at].set(made[k]) for k, values in results.items()}

        _, made = jax.eval_shape(one, 0, state)
        results = {k: jnp.zeros((self.length, *v.shape), v.dtype) for k, v in made.items()}
        state, results = jax.lax.fori_loop(0, self.length if self.whole else n, turn, (state, results))
        return *state, *[results[k][at] for at in range(self.length) for k in links.places]

    def takes(self, some) -> bool:
        """Whether it can make so many runs."""
        return some == self.length or not self.whole

    def fits(self, first, args) -> bool:
        """Whether a run can follow this first one: it has the same constants."""
        kept = self.links.kept
        return all(map(is_, map(first.__getitem__, kept), map(args.__getitem__, kept)))

    def arguments(self, calls):
        """What `call` takes, for the arguments of all runs: how many there are, what goes round, and the rest."""
        some = len(calls)
        calls = calls + calls[-1:] * (self.length - some)
        count = self.counts.get(some)
        if count is None:
            count = self.counts[some] = self.sent(np.int32(some))
        return [count, *self.flat(calls[0], calls, self.stacked(list(map(self.numbers_of, calls))))]

    def run(self, calls):
        """(what the last run hands on, of each run the wanted results) for the arguments of all runs."""
        outs = iter(self.call(*self.arguments(calls)))
        values, places = list(islice(outs, len(self.links.fed))), self.links.places
        return values, [dict(zip(places, outs)) for _ in range(self.length)]

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


class Gathering:
    """When the runs of a program are to gather for a chain, and for how long a one."""

    __slots__ = ("chain", "making", "run", "stretch", "unseen", "since", "starting", "short", "loose")

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
                    self.making = Chain(links, args, length_for(runs, links.program.device))
            self.stretch = LONGEST
        elif self.unseen > WATCHED:
            self.unseen = REST

    def worth_while(self, seconds) -> bool:
        """Whether the runs watched, which took so long together, took little, or much of it to be started."""
        one = seconds / (WATCHED // 2)
        return one < SHORT or (one < LONG and self.starting > MUCH * seconds)

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
        for pending, place in results[k]:
            pending.value = outs[place]
            pending.graph = None
        values = take(outs)
        if k < last:
            after = calls[k + 1]
            for at, value in zip(fed, values):
                after[at] = value
        calls[k] = args = outs = None
    return values


def run_chained(chain, gathering, calls, results):
    """The same with one program."""
    values, made = chain.run(calls)
    gathering.ran(chain)
    for waiting, values_of in zip(results, made):
        for pending, place in waiting:
            pending.value = values_of[place]
            pending.graph = None
    return values


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


def stacking(values):
    """The value at a traced position, as a function of it."""
    return jnp.stack(values).__getitem__


def choosing(values):
    """The same; large ones are chosen, not copied together first."""
    if values[0].size * values[0].dtype.itemsize >= LARGE:
        return lambda at: jax.lax.switch(at, [lambda v=v: v for v in values])
    return stacking(values)


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
