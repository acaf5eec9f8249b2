"""The recorder: ops become nodes of a graph, a flush turns the graph into one XLA program.

The graph is a path in a trie (`paths`), and its state the graph's key; a flush needs only to know which results live and
which inputs are dead. Recorded graphs are functional: a write is a new value.

`Graph.rec...` add a node; `Thread` has the graphs that a thread records, one a device, and says when they end: `flush` (a value is
needed), `full` (they are long), `end_step` (an optimizer has made its step: the graph waits). `program.run` decides how they run.
"""

import atexit
import functools
import threading
from contextlib import contextmanager

from .. import config
from . import aside, ending, lanes, ledger, nodewise, program, stretch
from . import device as devices
from .interrupts import uninterrupted
from .keys import number_key
from .packing import RUNTIME
from .paths import grow, grow_number, roots
from .pending import NO_DATA, Pending, Small

_NOWHERE = {}


_arrays: set[type] = set()  # types of concrete values seen so far; tracers are never among them


def _is_array(v) -> bool:
    if lanes.is_traced(v):
        return False
    _arrays.add(type(v))
    return True


def call_traced(graph, plan, operands, numbers=()):
    """The results inside somebody's transformation: for all lanes of a vmap, or the function itself on tracers."""
    made = lanes.call(graph, plan, operands, numbers)
    if made is None:
        out = plan.jit(*[v.get() if type(v) is Pending else v for v in operands], *numbers)
        made = [out] if plan.n_out == 1 else list(out)
        noted = tls.me.extra.get("traced")
        if noted is not None:
            noted += made
    return made


class Graph:
    """What one thread has recorded on one device since its last flush."""

    replay = None  # as something deferred it is not a compiled region's call
    gathers = False  # as what a pending value comes from it is not a queue of steps

    # waits: it has been deferred, and what is recorded on its results leaves it so. unresolved: the inputs that are such results.
    # asides: where in the program its values have been read without running it, and how often. born: what the tape was when it began.
    # passes: whether a backward pass has ended in it when it was long.
    __slots__ = (
        "state", "pendings", "inputs", "index_of", "numbers", "device", "owner", "lock", "done", "waits", "unresolved", "asides",
        "born", "passes",
    )  # fmt: skip

    def __init__(self, owner, device):
        self.owner = owner
        self.device = device
        self.state = roots.get(device)
        self.pendings = []
        self.inputs = []
        self.index_of = {}
        self.numbers = []
        self.lock = threading.Lock()
        self.done = self.waits = False
        self.unresolved = None
        self.asides = _NOWHERE
        self.born = stretch.tape.now()
        self.passes = False

    # rec1, rec2 and rec3 record a node with that many operands and one result; they and others (`recorder`) are made below.

    def recn(self, plan, operands, numbers=()):
        """Record any node; returns a list of its results."""
        ids = []
        index_of = self.index_of
        for v in operands:
            if type(v) is Pending and v.graph is self:
                ids.append(v.index)
                continue
            i = index_of.get(id(v))
            if i is None:
                if type(v) in _arrays:  # as `input`, which costs a call
                    i = index_of[id(v)] = ~len(self.inputs)
                    self.inputs.append(v)
                else:
                    i = self.input(v)
                    if i is None:
                        return call_traced(self, plan, operands, numbers)
            ids.append(i)
        ids = tuple(ids)
        state = self.state
        runtime = ()
        if numbers:
            after, numbers = _after_numbers(state, plan, ids, numbers)
            if after.numbers is RUNTIME:
                runtime = (numbers,)
        else:
            key = (plan, *ids)  # as the unrolled ones spell it
            after = state.next.get(key)
            if after is None:
                after = grow(state, key, plan, ids, ())
        first = state.count
        if plan.n_out == 1:
            results = [Pending(self, first)]
        else:
            results = [Pending(self, first + k) for k in range(plan.n_out)]
        # Nothing is called in between, where an interrupt might come.
        self.pendings += results
        self.numbers += runtime
        self.state = after
        if after.full:
            self.owner.full(self)
        return results

    def input(self, v):
        """The id of an array that is new to this graph; None if it is a tracer of someone's jax transformation."""
        if type(v) is Pending:
            if v.graph is self:
                return v.index
            if v.value is None and v.graph.waits and v.graph.owner is self.owner:
                if self.unresolved is None:
                    self.unresolved = []
                i = self.index_of[id(v)] = ~len(self.inputs)
                self.unresolved += (~i,)
                self.inputs.append(v)
                return i
            if type(v.graph) is Small:
                i = v.graph.input(self)
                if i is not None:
                    return i
            v = v.get()
            i = self.index_of.get(id(v))
            if i is not None:
                return i
        if type(v) not in _arrays and not _is_array(v):
            return None
        i = self.index_of[id(v)] = ~len(self.inputs)
        self.inputs.append(v)
        return i

    def settle(self):
        """Run a graph that has been deferred, or let it wait with others like it."""
        self.owner.flush_graph(self, "optimizer.step", self.owner)

    def compute(self, pending):
        """Make one result real, whoever recorded it."""
        owner = self.owner
        if owner is tls.me:
            if aside.read(self, pending):
                return
            owner.flush_graph(self, "value needed")
            return
        # Another thread's graph: it may be recording at this moment, so take nothing from it. What is
        # recorded never changes, so this thread computes the value from the recorded path for itself.
        with self.lock:
            if pending.value is None and pending.graph is self:
                inputs = [v.get() if type(v) is Pending else v for v in self.inputs]
                numbers, state = list(self.numbers), self.state
                [pending.value] = nodewise.run_nodes(state.nodes(), inputs, numbers, (pending.index,))
        pending.get()  # it may have gone to a queue in the meantime


def _after_numbers(state, plan, ids, numbers):
    """The state after a node with numbers, and these as they are kept."""
    if plan.runtime:
        key = (plan, ids, RUNTIME)
        return state.next.get(key) or grow(state, key, plan, ids, RUNTIME), numbers
    if 0.0 in numbers:
        numbers = tuple(map(number_key, numbers))  # 0.0 == -0.0, and they must not share a program
    return state.next.get((plan, ids, numbers)) or grow_number(state, (plan, ids, numbers), plan, ids, numbers), numbers


# Recording is the hottest path there is: one function per number of operands and results, without a loop over them.
_RECORD = """
def {name}(self, plan, {operands}{numbers}):
{ids}
    state = self.state
{after}
    first = state.count
{pendings}
    self.state = after
    self.pendings{joining}
{noting}
    if after.full:
        self.owner.full(self)
    return {results}
"""

_OPERAND = """
    if type({x}) is Pending and {x}.graph is self:
        at_{x} = {x}.index
    else:
        at_{x} = self.index_of.get(id({x}))
        if at_{x} is None:
            at_{x} = self.input({x})
            if at_{x} is None:
                return call_traced(self, plan, ({operands},){numbers}){first}
"""

_AFTER = """
    key = (plan, {keys})
    after = state.next.get(key)
    if after is None:
        after = grow(state, key, plan, ({keys},), ())
"""

_AFTER_NUMBERS = """
    ids = ({keys},)
    after = state.next.get((plan, ids, numbers))
    if after is None or 0.0 in numbers:
        after, numbers = _after_numbers(state, plan, ids, numbers)
"""


NAMES = "abcdef"  # of operands


@functools.cache
def recorder(n, outs, has_numbers) -> str:
    """The name of the method, of graphs of every kind, that records a node of n operands and `outs` results, which it returns: one, or
    all. It takes the operands one by one, then the numbers.
    """
    names = NAMES[:n]
    operands, keys = ", ".join(names), ", ".join("at_" + x for x in names)
    name = f"rec{n}" if outs == 1 and not has_numbers else f"rec{n}_{outs}{'_numbers' * has_numbers}"
    given = ", numbers" * has_numbers
    made = ", ".join(f"p{k}" for k in range(outs))
    source = _RECORD.format(
        name=name,
        operands=operands,
        numbers=given,
        ids="".join(
            _OPERAND.format(x=x, operands=operands, numbers=given, first="[0]" * (outs == 1)).strip("\n") + "\n"
            for x in names
        ),
        after=(_AFTER_NUMBERS if has_numbers else _AFTER).format(keys=keys).strip("\n"),
        pendings="".join(f"    p{k} = Pending(self, first{f' + {k}' if k else ''})\n" for k in range(outs)),
        joining=".append(p0)" if outs == 1 and not has_numbers else f" += ({made},)",
        # Nothing is called in between, where an interrupt might come.
        noting="    if after.numbers is RUNTIME:\n        self.numbers += (numbers,)" if has_numbers else "",
        results=made,
    )
    made = {}
    exec(compile(source, f"<jtorch {name}>", "exec"), globals(), made)
    setattr(Graph, name, made[name])

    def at_once(self, plan, *given):
        operands, numbers = (given[:-1], given[-1]) if has_numbers else (given, ())
        results = self.recn(plan, operands, numbers)
        return results[0] if outs == 1 else results

    if not hasattr(EagerGraph, name):
        setattr(EagerGraph, name, at_once)
    return name


class EagerGraph:
    """The same interface, each op run at once from its own executable."""

    __slots__ = ("device",)
    pendings = ()
    done = True

    def __init__(self, device):
        self.device = device

    def rec1(self, plan, a):
        if type(a) is Pending:
            a = a.get()
        return plan.jit(a)

    def rec2(self, plan, a, b):
        if type(a) is Pending:
            a = a.get()
        if type(b) is Pending:
            b = b.get()
        return plan.jit(a, b)

    def rec3(self, plan, a, b, c):
        return plan.jit(*[v.get() if type(v) is Pending else v for v in (a, b, c)])

    def recn(self, plan, operands, numbers=()):
        if not operands:  # the state of an optimizer, all zeros: numpy makes the first ones of a shape
            return list(nodewise.executed(plan, (), numbers))
        out = plan.jit(*[v.get() if type(v) is Pending else v for v in operands], *numbers)
        return [out] if plan.n_out == 1 else list(out)


class MetaGraph(EagerGraph):
    """The same interface for the device without data."""

    __slots__ = ()

    def rec1(self, plan, *operands):
        return NO_DATA

    rec2 = rec3 = rec1

    def recn(self, plan, operands, numbers=()):
        return [NO_DATA] * plan.n_out


for _n in (1, 2, 3):
    recorder(_n, 1, False)
recorder(1, 1, True)  # for views


class Thread:
    """What PyTorch keeps per thread: the graph being recorded, grad mode, and whatever makes calls unusual."""

    __slots__ = (
        "grad", "inference", "special", "mode", "graphs", "scope", "graph", "extra", "born", "deferred", "function_modes",
        "overriding", "queue", "cut",
    )  # fmt: skip

    def __init__(self):
        self.grad = True
        self.inference = False
        self.born = 0  # the version of a new storage: negative for inference tensors
        self.special = None  # not None: autocast, function modes...: calls take the slow path
        self.function_modes = ()  # active TorchFunctionModes, the innermost last
        self.overriding = 2  # whether __torch_function__ is asked: 2 of modes and subclasses, 1 of modes, 0 of none
        self.mode = config.mode
        self.graphs = {}
        self.scope = None  # an open compile region
        self.extra = {}
        # a finished step that waits for its gradients to die: a Graph, or a compiled region's call
        self.deferred = None
        self.queue = None  # finished steps that gather
        self.cut = None  # where in the program the last long recording was cut
        self.graph = None
        self.graph = self.graph_on(devices.cpu)

    def put(self, name, value):
        """Have something in `extra`; nothing (None, an empty tuple) takes it away, since calls are quick while that is empty."""
        if value:
            self.extra[name] = value
        else:
            self.extra.pop(name, None)

    def graph_on(self, device):
        """The graph being recorded on `device`; it becomes the one at hand."""
        graph = self.graphs.get(device)
        if graph is None:
            eager = MetaGraph if device.type == "meta" else EagerGraph
            graph = Graph(self, device) if self.mode == "auto" else eager(device)
            self.graphs[device] = graph
        self.graph = graph
        return graph

    def flush(self, cause="flush"):
        """Run everything that this thread has recorded."""
        if self.deferred is not None:
            self.deferred.settle()
        self.flush_recorded(cause)
        if self.queue is not None:
            self.queue.drain()

    def full(self, graph):
        """A recording has become long."""
        if stretch.ends(self, graph):
            self.flush("graph full")

    def flush_recorded(self, cause):
        """Run what this thread is recording; what has been deferred goes on waiting."""
        for graph in list(self.graphs.values()):
            if graph.pendings:
                self.flush_graph(graph, cause)

    def end_step(self, params):
        """An optimizer has made its step. What is recorded waits until a value is needed or gradients are dropped: a gradient that
        nobody can see any more need not be a result of the program. What is recorded on its results leaves it waiting.

        params: gives the tensors that have been updated; asked once for each kind of step.
        """
        if self.scope is not None:
            return  # the region goes on: it is flushed as a whole
        if self.deferred is not None:
            self.deferred.settle()
        having = [graph for graph in self.graphs.values() if graph.pendings]
        if len(having) != 1:
            self.flush("optimizer.step")
            return
        self.deferred = graph = having[0]
        graph.waits = True
        self.replace(graph)
        if graph.state.grads is None:
            values = [p._grad._storage.value for p in params() if p._grad is not None]
            graph.state.grads = frozenset(v.index for v in values if type(v) is Pending and v.graph is graph)

    def replace(self, graph):
        """Record into a new graph from now on."""
        fresh = self.graphs[graph.device] = Graph(self, graph.device)
        if self.graph is graph:
            self.graph = fresh

    def flush_graph(self, graph, cause, thread=None):
        """Run one graph; in a region of torch.compile that is a break. thread: as `program.run` takes it."""
        if graph.done or not graph.pendings:
            return
        scope = self.scope
        if self.deferred is graph:
            self.deferred = scope = None
            cause = "optimizer.step"
        elif scope is not None:
            scope.on_flush(cause, ledger.user_line())
        self.run_graph(graph, cause, scope, thread)

    @uninterrupted
    def run_graph(self, graph, cause, scope, thread):
        """Run a graph, or have it wait in a queue."""
        with graph.lock:
            if self.graphs.get(graph.device) is graph:
                self.replace(graph)
            graph.done = True
            graph.waits = False
            try:
                program.run(graph, cause, scope, thread)
            except BaseException:
                graph.done = False  # what was recorded is still there: the next need of a value tries again
                raise
            # Dead results point to their graph: without this, the cycle would keep every array of the graph alive.
            graph.pendings = graph.inputs = graph.numbers = ()
            graph.unresolved = None
            graph.index_of = graph.state = None

    def set_mode(self, mode):
        """Switch between "auto" and "eager"; what has been recorded is run."""
        if mode not in ("auto", "eager"):
            raise ValueError(f"execution mode must be 'auto' or 'eager', got {mode!r}")
        if mode != self.mode:
            self.flush("mode change")
            self.mode = mode
            self.graphs = {}
            self.graph_on(self.graph.device)


class _Local(threading.local):
    """`tls.me` is this thread's Thread, made at its first use."""

    def __init__(self):
        self.me = Thread()
        ending.note_thread()


tls = _Local()


def flush(cause="flush"):
    """Run everything that this thread has recorded."""
    tls.me.flush(cause)


def begin_training():
    """Called when an optimizer has been made: what has been recorded so far, of the model, is no part of the first step."""
    if tls.me.scope is None:
        flush("a new optimizer")


def end_step(params):
    """Called at the end of every `optimizer.step()`; `params()` gives the parameters."""
    tls.me.end_step(params)


@contextmanager
def at_once():
    """Operators inside run when they are called; what has been recorded before stays recorded."""
    me = tls.me
    if me.mode == "eager":
        yield
        return
    graphs, graph, mode = me.graphs, me.graph, me.mode
    me.graphs, me.mode = {}, "eager"
    me.graph_on(graph.device)
    try:
        yield
    finally:
        me.graphs, me.graph, me.mode = graphs, graph, mode
        for each in list(graphs.values()):
            if each.done:  # one of its results was needed
                me.replace(each)


@contextmanager
def statistics():
    """Writes inside are to what a layer keeps for itself, and go past func's transformations, as those of PyTorch's kernels do."""
    extra = tls.me.extra
    around = extra.get("statistics")
    extra["statistics"] = True
    try:
        yield
    finally:
        if around is None:
            del extra["statistics"]


class Recomputed(Exception):
    """Ends a recomputation that has saved all that it was asked for."""


def gradients_dropped(first=False):
    """Called when gradients have been dropped: a step that waited for it runs. first: by an optimizer that has not begun: what has been
    recorded so far is no part of its first step, unless the step has begun before it dropped any."""
    me = tls.me
    if me.deferred is not None:
        me.deferred.settle()
    elif first and me.scope is None and me.mode == "auto" and me.graph.pendings and stretch.tape.now() == me.graph.born:
        me.flush("before the first step")


atexit.register(ending.wait)
