"""Plans, and the programs made of them: run node by node or by numpy at first sight, compiled as a whole when they come back."""

import time
from operator import attrgetter
from sys import getrefcount

import jax
import numpy as np

from .. import config
from ..errors_storage import from_xla
from . import by_numpy, costs, crowd, gather, hasty, ledger, little, nodewise, parts, prologue, sight, traceable
from .beside import beside
from .chain import abstract, concretely
from .channel_order import stays, stored_order
from .donations import donations
from .nodewise import needed
from .numpy_rules import NotHere
from .packing import HERE, Packing, placed
from .pending import NO_DATA, Small

LATE = 16  # runs that a program with more results makes for another, before the other is compiled


class Plan:
    """An op specialised to the specs and static values of its operands.

    fn: takes the operand arrays, then the numbers; returns one array, or a tuple of `n_out`.
    specs: the specs of the results. kinds: the types of the numbers. runtime: numbers are never part of the key.
    """

    __slots__ = (
        "op", "name", "fn", "specs", "n_out", "n_num", "kinds", "runtime", "device", "nbytes", "jit", "warm", "operands", "bwd",
        "grad_name", "extra", "diff", "public", "multiple", "fields", "out_edges", "finish", "tries", "first", "enough",
        "steps", "exact", "known", "varied", "more", "lanes", "channels", "alone", "look", "depends", "size", "work", "pointwise",
        "kin", "recipe", "elements", "split",
    )  # fmt: skip

    def __init__(self, op, name, fn, operands, kinds=(), runtime=False, specs=None, device=None):
        self.op = op
        self.name = name
        self.fn = fn
        self.operands = operands  # specs of the operands
        self.n_num = len(kinds)
        self.kinds = kinds
        self.runtime = runtime
        self.first = None  # runs it by itself, the first times
        self.enough = hasty.ENOUGH_BY_OP  # how many times
        self.steps = None  # how numpy runs it, once it has been asked to; False if it does not
        self.exact = None  # the same, where it is to give the same bits
        self.known = None  # where it has been traced: a jaxpr, which of its operands it has, which of its results
        self.kin = None  # what is the same for plans that differ in sizes alone, and their sizes (`families.py`)
        self.recipe = None  # which part of a value it reads or writes (`strided.py`), where that is what it does
        self.split = None  # how it is cut into operations on some of its operands (`parts.py`), where it can be
        self.varied = 0  # times that it has come with other numbers, at the same place
        self.more = 0  # operations that it is made of, beyond its results
        self.channels = None if op is None else op.channels  # whether it convolves, or follows what does
        self.alone = None  # `jit` where nothing convolves, once it is asked for, of what follows
        self.lanes = None  # (how many, of which operands) -> itself for all slices of a vmap
        self.pointwise = None  # whether it is elementwise (`maps.py`), once that is asked for
        self.look = None  # what it is made of (`cuts.py`), once it is part of a program
        self.depends = None  # of each result the operands that it depends on (`ties.py`), once that is asked for
        self.size = self.elements = None  # its primitives, and the elements that they make, once asked for (`costs.py`)
        self.warm = 0  # runs by itself
        self.tries = 0  # programs that were compiled at first sight with it among their nodes
        self.bwd = {}
        self.grad_name = None
        self.extra = None  # what its derivative is made from
        self.diff = True
        self.multiple = False
        self.fields = self.finish = None  # what finishes its calls (`dispatch/results.py`)
        self.device = device
        self.specs = specs
        if specs is not None:
            self.set_specs(specs)

    def __getattr__(self, name):
        """`jit`, made where it is asked for: of many shapes nobody traces their operations."""
        if name != "jit":
            raise AttributeError(name)
        made = self.jit = jax.jit(self.fn, inline=True)
        return made

    def set_specs(self, specs):
        self.specs = specs
        self.n_out = len(specs)
        self.device = specs[0].device if specs else self.device
        self.nbytes = self.work = sum(s.nbytes for s in specs)
        # What says how long it takes: bytes written, and those read again and again.
        if self.op is not None and self.op.passes:
            self.work += self.op.passes * sum(s.nbytes for s in self.operands if s is not None)

    def by_itself(self):
        """`jit`, or the function that is traced where nothing convolves."""
        if not stays(self):
            return self.jit
        if self.alone is None:
            self.alone = jax.jit(stored_order(self.fn), inline=True)
        return self.alone

    def __repr__(self):
        return f"<plan {self.name} {list(self.operands)}>"


# What getrefcount says of an object that nobody but one list refers to.
ALONE = next(map(getrefcount, [object()]))
_is_live = ALONE.__lt__
_is_dead = ALONE.__ge__


class Program:
    """One graph with one choice of live results and dead inputs: its executable and its history."""

    __slots__ = (
        "nodes", "out", "used", "all_used", "donate", "pack", "call", "runs", "device", "entry", "n_nodes",
        "gathering", "place", "jit", "ahead", "spared", "wait", "settled",
        "by_numpy", "fuller", "hasty", "takers", "little", "parts",
    )  # fmt: skip

    def __init__(self, path, live, dead, device):
        self.out = tuple(i for i, alive in enumerate(live) if alive)
        self.nodes = needed(path, self.out)
        used = sorted({~i for node in self.nodes for i in node.ids if i < 0})
        self.used = used
        self.all_used = used == list(range(len(dead)))
        self.n_nodes = len(self.nodes)
        self.device = device
        self.pack = Packing(path, self.nodes, device)
        self.donate, self.out, self.takers = donations(self.nodes, self.out, used, dead)
        self.call = self.jit = None  # to be called with arrays; to be traced
        self.settled = False  # `call` stays as it is: made with everything on
        self.runs = 0
        self.by_numpy = False  # whether numpy runs it at first
        self.wait = None  # how long it runs so, or op by op, once it has come
        self.entry = self.gathering = None
        self.place = None  # index of a result -> its place among `out`, once runs gather
        self.fuller = None  # which results a program has that runs for this one until this one is compiled
        self.ahead = None  # that program, once it is made
        self.spared = 0  # runs that it has made with everything on; at least 1 once it has made any
        self.hasty = None  # how long it runs as it was made in haste
        self.little = None  # what runs it by numpy for good
        self.parts = None  # of which it is made at first, once they have been looked for; False if there are none

    def taken(self):
        """The inputs whose memory it takes."""
        return {self.used[k] for k in self.donate}

    def nbytes_of(self, inputs):
        """Bytes of some of its inputs."""
        sizes = {~i: spec.nbytes for node in self.nodes for i, spec in zip(node.ids, node.plan.operands) if i < 0}
        return sum(map(sizes.__getitem__, inputs))

    def arguments(self, inputs, numbers):
        """What `call` takes: the inputs that are used, then the numbers."""
        args = inputs if self.all_used else [inputs[i] for i in self.used]
        return [*args, *self.pack.pack(numbers)] if self.pack.kept else args

    def compile(self, in_haste=False, in_parts=False):
        """From now on the program is called as a whole, or as its parts.

        in_haste: allows an executable that is made quickly, and another one when it has run some times. in_parts: allows parts, and the
        whole when they have run some times.
        """
        found = parts.of(self) if in_parts else None
        if found is not None:
            found.make(self)
            return
        crowd.made()
        self.settled = not (in_haste and hasty.wanted(self))
        self.call = (hasty.in_full if self.settled else hasty.of_program)(self)

    def in_parts(self) -> bool:
        """Whether it is run as its parts."""
        return bool(self.parts) and self.parts.wait is not None

    def worth_another(self, runs) -> bool:
        """Whether a program with fewer results is worth the compiler, when this one has run for it so many times: not before a whole is."""
        return self.call is not None or not self.in_parts() or self.parts.wait.done(runs)

    def traced(self):
        """All nodes as one function for XLA."""
        if self.jit is None:
            self.jit = traceable.of(self)
        return self.jit

    def ready(self, args):
        """Whether the program is to be called; if not, the one ahead of it is.

        Once it has been wanted often it is compiled for arguments like these, in a thread beside the loop; or at once, in the place of
        the one ahead where that was made in haste and had its runs.
        """
        if self.ahead is None:
            return True
        ahead = self.ahead
        self.spared += ahead.settled or ahead.in_parts() or not self.spared
        if not ahead.settled and ahead.hasty is not None and ahead.runs + 1 >= ahead.hasty.few:
            self.ahead = None
            self.wait = costs.Wait(0)
            ahead.hasty.again(ahead.runs)
            return True
        if self.spared >= LATE and self.wait is not costs.NEVER and ahead.worth_another(self.spared):
            self.wait = costs.NEVER
            ledger.compiled(self, "optimizer.step")
            beside(self._compile_for, list(map(abstract, args)))
        return False

    def _compile_for(self, args):
        jit = self.traced()
        compiled = jit.lower(*args).compile(compiler_options=hasty.options(self))

        def call(*args):
            try:
                return compiled(*args)
            except (TypeError, ValueError):  # a weak type or a sharding is another one now
                self.call = jit
                return jit(*args)

        self.call = call
        self.settled = True
        self.ahead = None


def run(graph, cause, scope, thread=None):
    """Compute what is still held of a graph's results. The graph is not used again.

    thread: given for a finished step, which may wait there for the steps after it."""
    if graph.device.type == "meta":
        for pending in graph.pendings:
            pending.value = NO_DATA
            pending.graph = None
        return
    if graph.unresolved:
        _resolve(graph)
    place = placed(graph.device)
    if place is not HERE:
        thread = None  # runs that gather are compiled on another thread, which knows no place
        if graph.unresolved:
            _drain(graph)  # perhaps of the default device, which it would not run on within
    try:
        with place:
            _run(graph, cause, scope, thread)
    except jax.errors.JaxRuntimeError as error:
        raise from_xla(error, graph.device.type) from None


def _run(graph, cause, scope, thread):
    pendings, inputs, state = graph.pendings, graph.inputs, graph.state
    live = tuple(map(_is_live, map(getrefcount, pendings)))
    dead = tuple(map(_is_dead, map(getrefcount, inputs)))
    if graph.unresolved:
        dead = _dead_in_queue(graph, dead)
    if state.programs is None:
        state.programs = {}
    prog = state.programs.get((live, dead))
    if prog is None:
        prog = _new_program(state, live, dead, graph.device)
    if not prog.out:
        return
    same = config.deterministic  # each graph has one program, made as all its runs need it
    if thread is not None and prog.settled and not same and gather.wanted(thread, prog):
        _wait(graph, cause, thread, prog, dead)
        return
    if graph.unresolved:
        if scope is None and not same and _closes(graph, cause, prog, dead):
            return
        _drain(graph)
    numbers = graph.numbers
    if prog.runs == little.ENOUGH and prog.little is thread is scope is None:
        prog.little = None if by_numpy.spread(inputs) else little.made(prog, state)
    if prog.little is not None and not same and _by_numpy(graph, prog, cause):
        return
    if prog.call is None and scope is None and not same and (cut := prologue.cut_of(state, graph.device)):
        del pendings, inputs  # whose references count
        _behind(cut, graph, prog, cause)
        return
    if prog.call is None and not prog.runs and not prog.spared:
        prog.wait = sight.numpys(prog, cause)
        prog.by_numpy = prog.wait is not None
        if scope is None and not same:
            prog.ahead = next(covering(state, prog), None)
    if prog.ahead is None and prog.fuller is not None and not same and (not prog.by_numpy or prog.wait.done(prog.runs)):
        _look_ahead(state, prog, dead)
    asked = prog
    if prog.ahead is not None:
        ahead = prog.ahead
        if not prog.ready(prog.arguments(inputs, numbers)):
            prog = ahead
    started = time.perf_counter()
    if prog.call is None and not prog.in_parts() and (scope is not None or sight.at_sight(prog, inputs)):
        in_haste = not same and (not prog.by_numpy or not prog.wait.is_often(prog.runs))
        alone = scope is None and cause != "compiled region" and not prog.spared
        prog.compile(alone and in_haste, alone and not same)
        ledger.compiled(prog, cause)
        prologue.note(state, graph.device)
    how, outs = "by op", None
    if prog.call is None and not prog.in_parts():
        try:
            outs = nodewise.run(prog, inputs, numbers)
        except by_numpy.TooMuch:
            prog.compile(True, True)
            ledger.compiled(prog, cause)
    if outs is None:
        how, outs = "fused", _fused(prog, inputs, numbers, prog is asked)
    prog.runs += 1
    stays = np.ndarray if how == "by op" else None
    for pending, value in zip(map(pendings.__getitem__, prog.out), outs):
        small = type(value) is stays
        pending.value = None if small else value
        pending.graph = Small(value) if small else None
    ledger.flushed(prog, cause, how, time.perf_counter() - started)


def _dead_in_queue(graph, dead):
    """Which inputs are dead, where some are results of runs that gather: the queue has them too."""
    dead = list(dead)
    alone = map((ALONE + 1).__ge__, map(getrefcount, map(graph.inputs.__getitem__, graph.unresolved)))
    for k, is_alone in zip(graph.unresolved, alone):
        dead[k] = is_alone
    return tuple(dead)


def _by_numpy(graph, prog, cause):
    """Whether numpy has run a little program for good; not where the values are none that it takes as XLA does."""
    started = time.perf_counter()
    try:
        made = prog.little(graph.inputs, graph.numbers)
    except NotHere:
        return False
    pendings = graph.pendings
    for i, value in zip(prog.out, made):
        pendings[i].graph = Small(value)
    ledger.flushed(prog, cause, "by numpy", time.perf_counter() - started)
    return True


def _behind(cut, graph, prog, cause):
    """Run a graph in two parts, of which the second one is compiled; its own program is made beside the loop once it has come often."""
    prog.runs += 1
    if prog.runs == LATE:
        prog.wait = costs.in_parts(prog, 1)  # one start more than by itself
    if prog.wait is not None and prog.wait.done(prog.runs):
        prog.wait = costs.NEVER
        ledger.compiled(prog, cause)
        beside(prog._compile_for, list(map(abstract, prog.arguments(graph.inputs, graph.numbers))))
    held = prologue.run_before(cut, graph, lambda part: _run(part, cause, None, None))
    _run(graph, cause, None, None)
    del held


def _fused(prog, inputs, numbers, asked):
    """The results of a program that is compiled, or of its parts; `asked` for, or standing for another one."""
    if prog.call is not None:
        return concretely(prog.call, prog.arguments(inputs, numbers))
    if asked and prog.parts.wait.done(prog.runs):
        prog.parts.wait = costs.NEVER
        ledger.compiled(prog, prog.entry.cause)
        beside(prog._compile_for, list(map(abstract, prog.arguments(inputs, numbers))))
    return prog.parts.run(inputs, numbers)


_graph = attrgetter("graph")


def _resolve(graph):
    """Put values in the place of pending inputs, but for the results of runs that gather; those stay `unresolved`."""
    inputs = graph.inputs
    sources = set(map(_graph, map(inputs.__getitem__, graph.unresolved)))
    if len(sources) == 1:
        [source] = sources
        if source is not None and source.gathers:
            return  # all are results of runs that gather, as in most steps
    gathering, left = [], []
    for k in graph.unresolved:
        v = inputs[k]
        if v.value is None and v.graph.gathers:
            gathering.append(k)
        else:
            inputs[k] = v.get()  # which may make the runs that gather
        v = None
    for k in gathering:
        if inputs[k].value is None:
            left.append(k)
        else:
            inputs[k] = inputs[k].value
    graph.unresolved = left


def _drain(graph):
    graph.inputs[graph.unresolved[0]].graph.drain()
    _resolve(graph)


def _wait(graph, cause, thread, prog, dead):
    """A finished step joins the ones that wait, or is the first."""
    inputs, fed = graph.inputs, graph.unresolved
    queue = inputs[fed[0]].graph if fed else None
    if queue is not None and not (queue.prog is prog and all(map(dead.__getitem__, fed))):
        queue.drain()
        _resolve(graph)
        queue = None
    if queue is None:
        if thread.queue is not None:
            thread.queue.drain()
        queue = thread.queue = gather.queue_of(thread, prog)
    queue.add(graph, list(prog.arguments(inputs, graph.numbers)), _fed(graph, prog))
    prog.runs += 1
    ledger.flushed(prog, cause, "fused", 0.0)


def _closes(graph, cause, prog, dead) -> bool:
    """Whether a step whose gradients can be seen has been made together with those that wait."""
    queue = graph.inputs[graph.unresolved[0]].graph
    if queue.prog is prog or not all(map(dead.__getitem__, graph.unresolved)):
        return False
    if not any(known is queue.prog for known in graph.state.programs.values()):
        return False
    if not queue.close(graph, prog, list(prog.arguments(graph.inputs, graph.numbers)), _fed(graph, prog)):
        return False
    prog.runs += 1
    ledger.flushed(prog, cause, "fused", 0.0)
    return True


def _fed(graph, prog):
    """Which arguments of a program are results of runs that gather."""
    if prog.all_used or not graph.unresolved:
        return graph.unresolved or []
    waiting = set(graph.unresolved)
    return [at for at, k in enumerate(prog.used) if k in waiting]


def _new_program(state, live, dead, device):
    prog = Program(state.nodes(), live, dead, device)
    # An input that cannot be donated makes no difference: share the program of the same donations.
    for (other_live, _), other in state.programs.items():
        if other_live == live and other.donate == prog.donate:
            prog = other
            break
    state.programs[live, dead] = prog
    if state.grads:
        # Gradients that have died unseen may be seen at another step of the same kind: one program is compiled for both.
        fuller = tuple(alive or i in state.grads for i, alive in enumerate(live))
        prog.fuller = fuller if fuller != live and prog.call is None else None
    return prog


def covering(state, prog):
    """Compiled programs of the same nodes that have all results of this one, and perhaps more, and take no other input's memory.

    Such are those of the step whose loss was looked at, and of the first step, whose small inputs are still numpy's.
    """
    wanted, given = set(prog.out), prog.taken()
    for other in (state.programs or {}).values():  # none of tensors without data
        if other.call is not None and other.ahead is None and other is not prog:
            if wanted.issubset(other.out) and other.taken() <= given:
                yield other


def _look_ahead(state, prog, dead):
    fuller, prog.fuller = prog.fuller, None
    ahead = state.programs.get((fuller, dead)) or _new_program(state, fuller, dead, prog.device)
    if ahead.donate == prog.donate and prog.call is None:
        prog.ahead = ahead
