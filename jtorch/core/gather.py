"""Finished steps that gather: recorded and not run, each on the results of the one before, until a chain runs them."""

import threading
import time
from itertools import count
from operator import attrgetter

from . import launch, ledger
from .chain import ALONE, WATCHED, Gathering, Links, asks_the_host, run_chained, taker
from .interrupts import uninterrupted
from .parcel import Parcel, hand_over

_index = attrgetter("index")


class Queue:
    """Runs of one program that have been asked for, and whose gradients nobody can see any more.

    A result has this object as its graph until its value is needed; then all runs are made (`drain`). What is recorded on results is
    the next run, which `add` takes in: it joins those that wait (`join`), or they are made and it is the first that waits (`begin`).
    """

    gathers = waits = True

    __slots__ = (
        "owner",
        "prog",
        "calls",
        "results",
        "handed",
        "lock",
        "fed",
        "sources",
        "untaken",
        "take",
        "chain",
        "parcel",
    )

    def __init__(self, owner, prog):
        self.owner = owner
        self.prog = prog
        self.calls = []  # arguments of each run; what comes from the run before is missing in all but the first
        self.results = []  # of each run: pairs of a pending value and its place; of the last run those of all places
        self.handed = None  # what the last run hands on, where all have been made: a list or a parcel
        self.parcel = None  # what of that is missing in the arguments of the first run that waits
        self.fed = self.sources = ()
        self.untaken = range(len(prog.out))  # places of the results that the next run does not take
        self.take = taker(())
        self.chain = None  # that of the program when the second run joined
        self.lock = threading.Lock()

    def add(self, graph, args, fed):
        """One more run. args: with pending values at the positions `fed`, which are results of the last run."""
        prog = self.prog
        place = prog.place
        with self.lock:
            if self.results:
                sources = list(map(place.__getitem__, map(_index, map(args.__getitem__, fed))))
                if fed != self.fed or sources != self.sources:
                    if len(self.calls) > 1:
                        self.hand()  # a chain hands on what goes round in it, which is not what this run takes
                    if self.handed is not None:
                        self.land()
                        self.handed = self.handing(list(map(args.__getitem__, fed)))
                    self.fed, self.sources, self.take = fed, sources, taker(sources)
                    taken = set(sources)
                    self.untaken = [k for k in range(len(prog.out)) if k not in taken]
                if self.handed is not None:
                    prog.gathering.run += 1
                    self.begin(args, self.handed)
                else:
                    for k in fed:
                        args[k] = None
                    self.join(args)
            else:
                self.begin(args, ())
            pendings = graph.pendings
            made = list(map(pendings.__getitem__, prog.out))
            for pending in made:
                pending.graph = self
            self.results[-1] = list(zip(made, range(len(made))))
            if len(self.calls) > 1 and len(self.calls) == self.chain.length:
                self.hand()

    def begin(self, args, values):
        """The run is the first that waits; `values` are what it takes from the one before."""
        self.parcel = values if type(values) is Parcel else None
        for k, value in zip(self.fed, values.values if type(values) is Parcel else values):
            args[k] = value
        self.handed = None
        self.calls = [args]
        self.results = [None]

    def hand(self):
        """As many wait as the chain takes: make them at once, so that the device has something to do while the next are recorded."""
        last = self.results[-1]
        self.handed = self.run(self.wanted())
        self.calls = []
        self.results = [last]

    def land(self):
        """The results that have been handed to nobody become real."""
        [last] = self.results
        values = self.handed.open() if type(self.handed) is Parcel else self.handed
        hand_over(values, [last[k][0] for k in self.sources])
        self.handed = None
        self.results = []

    def handing(self, pendings):
        """Results that have been made, as `run` hands them on."""
        return [pending.value for pending in pendings]

    def wanted(self):
        """The results of each run, of the last those that the next does not take."""
        *before, last = self.results
        return [*before, list(map(last.__getitem__, self.untaken))]

    def join(self, args):
        """The run waits with the others, or they are made and it is the first that waits."""
        gathering = self.prog.gathering
        gathering.run += 1
        chain = gathering.chain
        misfit = False
        if chain is not None and self.is_for(chain) and len(self.calls) < chain.length:
            misfit = not chain.fits(self.calls[0], args)
            if not misfit and (len(self.calls) == 1 or chain is self.chain):
                self.chain = chain
                self.calls.append(args)
                self.results = [*self.wanted(), None]
                return
        before = self.calls[-1]
        self.begin(args, self.run(self.wanted()))
        if misfit:
            gathering.loosen()
        elif chain is None:
            gathering.watch(lambda: self.links(before, args), lambda: self.whole(args))

    def whole(self, args):
        """The arguments of the first run that waits, with what it takes from the one before."""
        if self.parcel is not None:
            for k, value in zip(self.fed, self.parcel.open()):
                args[k] = value
            self.parcel = None
        return args

    def is_for(self, chain) -> bool:
        return chain.links.fed == self.fed and chain.links.sources == self.sources

    def links(self, before, args):
        """How the runs follow each other, seen from two of them."""
        prog = self.prog
        rest = [k for k in range(len(prog.used)) if k not in self.fed]
        kept = [] if prog.gathering.loose else [k for k in rest if args[k] is before[k]]
        places = [k for k in range(len(prog.out)) if k not in self.sources]
        return Links(prog, self.fed, self.sources, kept, [k for k in rest if k not in kept], places)

    def run(self, results):
        """Make all runs; what the last hands on. results: those that are wanted of each."""
        prog = self.prog
        started = time.perf_counter()
        if len(self.calls) > 1 and self.chain.takes(len(self.calls)):
            values = run_chained(self.chain, prog.gathering, self.calls, results, self.parcel_for(self.chain))
        else:
            self.whole(self.calls[0])
            values = prog.gathering.singly(prog.call, self.take, self.fed, self.calls, results)
        ledger.took(prog, time.perf_counter() - started)
        return values

    def parcel_for(self, chain):
        """What the first run that waits takes as a parcel, if it is one of this chain's; otherwise it is opened."""
        if self.parcel is not None and self.parcel.packer is not chain.packer:
            self.whole(self.calls[0])
        return self.parcel

    def first(self, args):
        """The arguments of the first run that waits; those given, with what has been handed on, where none does."""
        if self.handed is None:
            return self.whole(self.calls[0])
        args = list(args)
        for k, value in zip(self.fed, self.handed.open() if type(self.handed) is Parcel else self.handed):
            args[k] = value
        return args

    @uninterrupted
    def close(self, graph, prog, args, fed) -> bool:
        """Make the runs that wait and one more, of a program that has gradients too, since somebody looks; False where no chain does that."""
        own, gathering = self.prog, self.prog.gathering
        chain = gathering.chain
        _place(prog)
        if (
            chain is None
            or not set(own.out) <= prog.place.keys()
            or prog.used != own.used
            or prog.pack.kept != own.pack.kept
        ):
            return False
        with self.lock:
            if not self.results or not self.is_for(chain) or fed != self.fed:
                return False
            if [own.place[args[k].index] for k in fed] != self.sources:
                return False
            place_of = list(map(prog.place.__getitem__, own.out))
            before = self.calls
            if len(before) >= chain.length or before and not chain.fits(before[0], args):
                return False
            closing = gathering.closer(chain, prog, lambda: self.closing(prog, place_of), lambda: self.first(args))
            if closing is None:
                return False
            started = time.perf_counter()
            handed = None if before else self.handed
            parcel = self.parcel_for(closing) if before else handed if type(handed) is Parcel else None
            if parcel is not None and parcel.packer is not closing.packer:
                handed, parcel = parcel.open(), None
            for k, value in zip(fed, [None] * len(fed) if before else handed.values if parcel is handed else handed):
                args[k] = value
            results = [[(p, place_of[k]) for p, k in made] for made in self.wanted()] if before else []
            values, last, made = closing.close([*before, args], results, parcel)
            pendings = graph.pendings
            known = list(map(pendings.__getitem__, own.out))
            for pending in known:
                pending.graph = self
            for k in self.untaken:
                known[k].value = made[place_of[k]]
                known[k].graph = None
            hand_over(last, [pendings[prog.out[k]] for k in closing.links.last])
            self.calls, self.parcel, self.handed = [], None, values
            self.results = [list(zip(known, range(len(known))))]
            gathering.run += 1
            gathering.looked()
            ledger.took(prog, time.perf_counter() - started)
            return True

    def closing(self, prog, place_of):
        """How the runs that wait are followed by one of another program, with more results. place_of: where it has those of this one."""
        own = self.prog.gathering.chain.links
        sources = list(map(place_of.__getitem__, self.sources))
        places = list(map(place_of.__getitem__, own.places))
        last = sorted(set(range(len(prog.out))).difference(sources, places))
        return Links(prog, own.fed, sources, own.kept, own.fresh, places, last)

    @uninterrupted
    def drain(self):
        """Make all runs, and their results real."""
        with self.lock:
            if len(self.calls) > 1:
                self.hand()
            if self.handed is not None:
                self.land()
            elif self.calls:
                self.run(self.results)
                self.calls, self.results = [], []
            else:
                return
            if self.owner.queue is self:
                self.owner.queue = None
            self.prog.gathering.looked()

    @uninterrupted
    def compute(self, pending):
        """A value is needed."""
        with self.lock:
            if len(self.calls) > 1 and self.chain.packer is not None:
                self.hand()  # what is handed on stays a parcel, if that is not what is needed
        if pending.value is None:
            self.drain()
        else:
            self.prog.gathering.looked()


class Beside(Queue):
    """The same where starting a program takes the thread that does it: another one does, while the next steps are recorded.

    What is handed on is (which run, which of its results) in place of a value.
    """

    __slots__ = ("line", "holes")

    def __init__(self, owner, prog):
        super().__init__(owner, prog)
        prog.gathering.packer = ALONE  # what is handed on are places among the results of runs
        self.line = launch.Line(owner, prog)
        self.holes = ()  # what the first run that waits takes: where, which run, which of its results

    def begin(self, args, values):
        super().begin(args, ())
        self.holes = [(k, *value) for k, value in zip(self.fed, values)]

    def whole(self, args):
        args = list(args)
        for k, run, place in self.holes:
            args[k] = run.made()[place]
        return args

    def close(self, *_) -> bool:
        return False

    def land(self):
        self.handed = [run.made()[place] for run, place in self.handed]
        super().land()

    def handing(self, pendings):
        return [(self.line.given([p.value]), 0) if p.graph is None else (p.graph, p.index) for p in pendings]

    def run(self, results):
        prog, calls, send = self.prog, self.calls, self.line.send
        self.line.settle(launch.AHEAD)  # raises what went wrong there, before anything changes
        if len(calls) > 1 and self.chain.takes(len(calls)):
            chain = self.chain
            holes = [(1 + k, run, place) for k, (_, run, place) in enumerate(self.holes)]
            # its results: what the last run hands on, then of each run those that are wanted
            made = list(zip((p for pairs in results for p, _ in pairs), count(len(self.fed))))
            run = send(chain.call, chain.arguments(calls), holes, made)
            prog.gathering.ran(chain)
            return [(run, k) for k in range(len(self.fed))]
        holes = self.holes
        for args, made in zip(calls, results):
            run = send(prog.call, args, holes, made)
            holes = [(k, run, place) for k, place in zip(self.fed, self.sources)]
        return [(run, place) for place in self.sources]

    @uninterrupted
    def drain(self):
        super().drain()
        with self.lock:
            self.line.settle()


def _place(prog):
    """Have a program know where its results are among those that it gives."""
    if prog.place is None:
        prog.place = {i: k for k, i in enumerate(prog.out)}


def queue_of(thread, prog) -> Queue:
    """A queue of a program's runs."""
    return (Beside if asks_the_host(prog.device) else Queue)(thread, prog)


def wanted(thread, prog) -> bool:
    """Whether the next run of a program is to wait for others."""
    gathering = prog.gathering
    if gathering is None:
        if prog.runs < WATCHED or thread is None:
            return False
        gathering = prog.gathering = Gathering()
        _place(prog)
    return gathering.promising()
