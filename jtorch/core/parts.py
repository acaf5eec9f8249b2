"""Programs run in parts: of a network of twelve layers XLA compiles one layer, its gradient, and what comes before, between and behind.

The graph of a step repeats itself, layer after layer and, in the backward pass, gradient after gradient. Compiled as a whole each copy takes
the compiler its time; as a part that all copies share it takes it once, and so it does in the graph of a step whose loss is looked at, of
another batch, of an evaluation. Parts cost some starts more a run, so the whole is compiled too, beside the loop, once it has come often.
"""

from collections import Counter

import jax.numpy as jnp
import numpy as np

from . import costs, crowd, hasty
from .chain import concretely
from .packing import RUNTIME, plain

LENGTH = 48  # nodes of a program that may be run in parts
LEAST = 24  # nodes that a repetition saves
SHORT = 8  # nodes that a part has at least that is repeated
COPIES = 16  # of a part, about; of more several are one
DEAR = 1.0  # seconds of the compiler from which it is worth a thought
SHARE = 0.5  # of them that parts may take
MOST = 1 << 12  # nodes that are looked at, and parts that are kept


class Node:
    """A node of a part: as one of a path, its results and operands numbered from the part's beginning."""

    __slots__ = ("plan", "ids", "numbers", "first", "count")

    def __init__(self, plan, ids, numbers, first):
        self.plan = plan
        self.ids = ids
        self.numbers = numbers
        self.first = first
        self.count = first + plan.n_out


class _Piece:
    """A node of the whole, or what has been cut off it. results: what they are in the whole, None for one that another piece gives."""

    __slots__ = ("plan", "ids", "results", "node")

    def __init__(self, node, plan, ids, results):
        self.node, self.plan, self.ids, self.results = node, plan, ids, results


class Part:
    """A stretch of a program: `program` is shared with others like it.

    ids: what it takes of the whole, results (i) and inputs (~i). numbers: which of the run-time numbers, or numbers of its own. out: what
    its results are in the whole. last: results that nothing behind it takes.
    """

    __slots__ = ("program", "ids", "numbers", "out", "last")


class Parts:
    """A program as its parts. wait: how long it is run so, once they have been made."""

    __slots__ = ("parts", "out", "wait")

    def __init__(self, prog, pieces, cuts):
        self.out = prog.out
        self.wait = None
        self.parts = _cut(prog, pieces, cuts)

    def takes(self) -> float:
        """Seconds that it takes to compile those parts that have not been compiled."""
        fresh = {part.program for part in self.parts if part.program.call is None}
        return sum(costs.compiling(program, hasty.wanted(program)) for program in fresh)

    def make(self, prog):
        """From now on the program is run in parts."""
        for program, copies in Counter(part.program for part in self.parts).items():
            if program.call is None:
                program.compile(copies < costs.in_haste(program, hasty.ENOUGH).few)
        self.wait = costs.in_parts(prog, len(self.parts))

    def run(self, inputs, numbers):
        """The results of the program."""
        values = {~k: v for k, v in enumerate(inputs)}
        taken = set(map(id, inputs))
        for part in self.parts:
            program = part.program
            given = [k if type(k) is tuple else numbers[k] for k in part.numbers]
            args = program.arguments([values[i] for i in part.ids], given)
            made = concretely(program.call, args)
            del args
            for i in part.last:
                del values[i]
            # jax gives back an argument that is a result, and another part may take its memory.
            if not taken.isdisjoint(map(id, made)):
                made = [_copy(v) if id(v) in taken else v for v in made]
            values.update(zip(part.out, made))
            del made
        return [values[i] for i in self.out]


def _copy(value):
    [copied] = concretely(lambda x: [jnp.copy(x)], [value])
    return copied


_programs: dict = {}
crowd.forgetters.append(_programs.clear)


def of(prog) -> Parts | None:
    """The parts of a program, looked for once, where they take the compiler much less than the whole; else None."""
    if prog.parts is None:
        prog.parts = _found(prog) or False
    return prog.parts or None


def compiling(prog, quickly) -> float:
    """Seconds that it takes to compile a program, or its parts where it has some: in haste or with everything on."""
    found = of(prog)
    return found.takes() if found else costs.compiling(prog, quickly)


def _found(prog):
    if not LENGTH <= prog.n_nodes <= MOST:
        return None
    pieces = [piece for node in prog.nodes for piece in _pieces(node)]
    cuts = cuts_of([piece.plan for piece in pieces])
    if len(cuts) < 4:
        return None
    whole = costs.compiling(prog, hasty.wanted(prog))
    if whole < DEAR:
        return None
    parts = Parts(prog, pieces, cuts)
    return parts if parts.takes() <= SHARE * whole else None


def cuts_of(plans) -> list:
    """Where a sequence of plans is cut: [0, ..., its length], equal stretches being cut alike."""
    numbers = {}
    kinds = np.array([numbers.setdefault(plan, len(numbers)) for plan in plans])
    ends, left = [], [(0, len(kinds))]
    while left:
        lo, hi = left.pop()
        found = _repetition(kinds[lo:hi])
        if found is None:
            ends.append(hi)
            continue
        start, period, copies = found
        start += lo
        stop = start + period * copies
        ends += range(start + period, stop + 1, period)
        if start > lo:
            left.append((lo, start))
        if stop < hi:
            left.append((stop, hi))
    return [0, *sorted(ends)]


def _repetition(kinds):
    """Where the repetition lies that saves the most (start, period, copies), None without one."""
    best, most = None, LEAST - 1
    n = len(kinds)
    for period in range(1, n // 2 + 1):
        same = np.concatenate(([False], kinds[:-period] == kinds[period:], [False]))
        turns = np.flatnonzero(same[1:] != same[:-1])
        for start, stop in zip(turns[::2].tolist(), turns[1::2].tolist()):
            copies = (stop - start) // period + 1
            together = max(-(-SHORT // period), copies // COPIES)
            copies //= together
            if copies > 1 and (copies - 1) * period * together > most:
                best, most = (start, period * together, copies), (copies - 1) * period * together
    return best


def _pieces(node):
    """A node in pieces: the update of many parameters is one for each repetition among their shapes."""
    split = node.plan.split
    cuts = () if split is None or len(split.specs) < 2 * LEAST else cuts_of(split.specs)
    if len(cuts) < 4:
        return [_Piece(node, node.plan, node.ids, range(node.first, node.count))]
    made, given = [], set()
    for lo, hi in zip(cuts, cuts[1:]):
        plan, operands, results = split.cut(lo, hi)
        results = [None if k in given else node.first + k for k in results]
        given.update(k - node.first for k in results if k is not None)
        made.append(_Piece(node, plan, tuple([node.ids[i] for i in operands]), results))
    return made


def _cut(prog, pieces, cuts):
    out, last = set(prog.out), {}  # of each value the piece that reads it last
    for k, piece in enumerate(pieces):
        last.update(dict.fromkeys(piece.ids, k))
    last.update(dict.fromkeys(out, len(pieces)))
    order = {node: k for k, node in enumerate(prog.pack.order)}
    end = next((k for k in range(len(pieces), 0, -1) if pieces[k - 1].node.plan.split is None), 0)
    # What comes before the updates does not take their memory: whatever fails there, the parameters are as they were.
    taken = prog.taken()
    cuts = sorted({*cuts, *range(end, len(pieces))})
    vary = _varying(pieces, cuts)
    return [
        _part(prog, pieces[a:b], range(a, b), last, order, vary, taken if a >= end or b == len(pieces) else ())
        for a, b in zip(cuts, cuts[1:])
    ]


def _varying(pieces, cuts) -> set:
    """The pieces whose numbers are others in another copy of their stretch: where a loop over `x[t]` reads, layer by layer another scale."""
    groups = {}
    for a, b in zip(cuts, cuts[1:]):
        groups.setdefault(tuple([piece.plan for piece in pieces[a:b]]), []).append(pieces[a:b])
    alike = [same for copies in groups.values() for same in zip(*copies)]
    return {piece for same in alike if len({piece.node.numbers for piece in same}) > 1 for piece in same}


def _part(prog, pieces, places, last, order, vary, taken):
    """vary: pieces whose numbers are the part's inputs. taken: inputs of the whole whose memory the results may take."""
    own, ids, path, results = {}, {}, [], []
    for piece in pieces:
        local = tuple([own[i] if i in own else ids.setdefault(i, ~len(ids)) for i in piece.ids])
        path.append(Node(piece.plan, local, RUNTIME if piece in vary else piece.node.numbers, len(results)))
        own.update((i, len(results) + k) for k, i in enumerate(piece.results) if i is not None)
        results += piece.results
    live = tuple([last.get(i, -1) >= places.stop for i in results])
    dead = tuple([i < 0 and ~i in taken and last[i] < places.stop for i in ids])
    key = (prog.device, tuple([(node.plan, node.ids, node.numbers) for node in path]), live, dead)
    program = _programs.get(key)
    if program is None:
        if len(_programs) >= MOST:
            _programs.clear()
        program = _programs[key] = type(prog)(path, live, dead, prog.device)
    part = Part()
    part.program, part.ids = program, list(ids)
    numbered = [piece.node for piece in pieces if piece in vary or piece.node.numbers is RUNTIME]
    part.numbers = [order[node] if node.numbers is RUNTIME else tuple(map(plain, node.numbers)) for node in numbered]
    part.out = [results[i] for i in program.out]
    part.last = [i for i in ids if i >= 0 and last[i] < places.stop]
    return part
