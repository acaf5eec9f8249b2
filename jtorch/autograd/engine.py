"""Backward: gradients flow through the tape in PyTorch's order, latest node first.

Ordinary backward works on raw values (arrays or pending results). With create_graph each value travels with its edge, as a
pair, and every step is itself put on the tape. Tensors appear only where a hook or a Python node wants to see one.
"""

import re
import sys
import threading
import warnings
from operator import attrgetter

import jax.numpy as jnp

from .. import errors
from ..core.lanes import Lane
from ..core.program import Plan
from ..core.record import tls
from ..core.spec import Spec
from ..core.stretch import passed
from ..errors_autograd import freed
from ..errors_nn import legacy_type
from . import node as tape
from .derive import backward_of, differentiable, fit
from .derive_views import ViewMap, ViewsMap, WideMap
from .node import Node, PythonNode, bridge, positions
from .recurrence import again, graph_at, observer

_by_sequence = attrgetter("sequence")
_accumulating = threading.Lock()  # adding to .grad is a read and a write; backward may run in several threads
DERIVATIVE = re.compile(r"Backward(?:0$|(?=[1-9]|$))")  # the number of a second form stays

_add_plans: dict = {}


def _add_plan(spec):
    plan = _add_plans.get(spec)
    if plan is None:
        plain = Spec.dense(tuple(spec.shape), spec.dtype, spec.device)
        plan = Plan(None, "add", lambda a, b: fit(a + b, plain), (plain, plain), specs=(plain,))
        plan.grad_name = "AddBackward0"
        _add_plans[spec] = plan
    return plan


def graph_of(device):
    """The graph that this thread records on a device."""
    graph = tls.me.graph
    return graph if graph.device is device else tls.me.graph_on(device)


def apply_plan(plan, values, edges, numbers=()):
    """Record a plan on values that carry edges, and its tape node. Returns (values, edges) of the results."""
    outs = graph_of(plan.device).recn(plan, values, numbers)
    if any(e is not None for e in edges):
        node = tape.record(plan, values, edges, numbers, outs)
        return outs, [(node, k) if differentiable(s) else None for k, s in enumerate(plan.specs)]
    return outs, [None] * len(outs)


class Run:
    """One backward pass: `collect` puts the nodes in order, `run_all` or `run` goes through them, `give` hands gradients on.

    What has come so far: buffers (of each node a gradient, or a list of them for several results), leaf_sums (of each leaf) and
    leaf_counts (edges into a leaf that nothing has come along yet).
    What is asked: keep (retain_graph), accumulate (whether leaves get a `.grad`), captures ((node or leaf, number) -> the gradient wanted
    there), wanted (the nodes and leaves that gradients may reach, or None for all), needed (those of the wanted nodes that run; the
    others only hand over what has come to them).
    pairs: whether values travel with their edges. token: what names this pass to those who keep something for it alone, made when first
    asked for: an id() would be used again by a later pass. callbacks: what is called when it has ended, or None.
    """

    __slots__ = (
        "create_graph", "pairs", "keep", "buffers", "leaf_counts", "captures", "accumulate", "wanted", "needed", "leaf_sums",
        "order", "token", "callbacks",
    )  # fmt: skip

    def __init__(self, create_graph, keep, accumulate):
        self.create_graph = self.pairs = create_graph
        self.keep = keep
        self.accumulate = accumulate
        self.buffers = {}
        self.leaf_counts = {}
        self.leaf_sums = {}
        self.captures = {}
        self.wanted = self.needed = None
        self.token = self.callbacks = None

    # -- the order ------------------------------------------------------------------------------------------------------

    def collect(self, roots):
        """All nodes reachable from the roots, latest first; counts the edges into each leaf."""
        seen = set()
        found = []
        counts = self.leaf_counts
        stack = [t for t, _ in roots if isinstance(t, Node)]
        for t, _ in roots:
            if not isinstance(t, Node):
                counts[t] = counts.get(t, 0) + 1
        while stack:
            node = stack.pop()
            if node in seen:
                continue
            seen.add(node)
            found.append(node)
            for e in node.edges:
                if e is not None:
                    target = e[0]
                    if isinstance(target, Node):
                        if target not in seen:
                            stack.append(target)
                    else:
                        counts[target] = counts.get(target, 0) + 1
        found.sort(key=_by_sequence, reverse=True)
        return found

    def restrict(self, order, targets):
        """Only nodes that lead to one of the targets run; only edges that lead there are followed."""
        wanted = set(targets)
        needed = set()
        for node in reversed(order):
            if any(e is not None and e[0] in wanted for e in node.edges):
                wanted.add(node)
                needed.add(node)
        if self.accumulate:
            needed.update(t for t in targets if isinstance(t, Node))
        self.wanted, self.needed = wanted, needed
        return [node for node in order if node in wanted]

    def reaches(self, edge) -> bool:
        """Whether a gradient may come to this edge in this pass."""
        if self.wanted is not None and edge[0] not in self.wanted:
            return False
        return edge[0] in (self.order if isinstance(edge[0], Node) else self.leaf_counts)

    # -- the flow -------------------------------------------------------------------------------------------------------

    def give(self, edge, value, spec):
        """Add a gradient to what has come for the other end of an edge."""
        target, k = edge
        if isinstance(target, Node):
            if self.wanted is not None and target not in self.wanted:
                return
            if target.n_out() == 1:
                before = self.buffers.get(target)
                self.buffers[target] = value if before is None else self.add(before, value, spec)
            else:
                slots = self.buffers.get(target)
                if slots is None:
                    slots = self.buffers[target] = [None] * target.n_out()
                slots[k] = value if slots[k] is None else self.add(slots[k], value, spec)
            return
        before = self.leaf_sums.get(target)
        if value is not None:
            self.leaf_sums[target] = before = value if before is None else self.add(before, value, spec)
        left = self.leaf_counts[target] - 1
        self.leaf_counts[target] = left
        if left == 0:
            self.finish_leaf(target)

    def skip(self, edge):
        """No gradient comes along this edge."""
        if not isinstance(edge[0], Node):
            self.give(edge, None, None)

    def finish_leaf(self, leaf):
        """All gradients of a leaf have come: call its hooks, capture their sum, add it to `.grad`."""
        value = self.leaf_sums.pop(leaf, None)
        if self.wanted is not None and leaf not in self.wanted:
            return
        if value is None:
            self.finish_without(leaf)
            return
        if leaf._hooks:
            value = self.hooked(leaf._hooks, value, leaf._spec)
        if (leaf, 0) in self.captures:
            self.captures[leaf, 0] = value
        if self.accumulate:
            around = leaf.__dict__
            if around and "_acc_pre_hooks" in around:
                value = self.hooked_node(around["_acc_pre_hooks"], value, leaf._spec)
            with _accumulating:
                self.accumulate_in(leaf, value)
            if around and ("_post_hooks" in around or "_acc_hooks" in around):
                self.after_leaf(leaf, value, around)

    def finish_without(self, leaf):
        """The hooks of a leaf to which no gradient has come; nothing is accumulated."""
        around = leaf.__dict__
        if leaf._hooks:
            self.hooked(leaf._hooks, None, leaf._spec)
        if self.accumulate and around:
            self.hooked_node(around.get("_acc_pre_hooks", {}), None, leaf._spec)
            self.after_leaf(leaf, None, around)

    def accumulate_in(self, leaf, value):
        """Add a gradient to the `.grad` of a leaf."""
        leaf._accumulate(value, self.create_graph)

    def after_leaf(self, leaf, value, around):
        """The hooks of a leaf that come after its gradient has been added."""
        given = leaf
        for hook in list(around.get("_post_hooks", {}).values()):
            got = hook(given)
            if got is not None and got is not given:
                _check_hook(hook, given, got)
                given = got
        if given is not leaf:
            raise RuntimeError("Tensor post accumulate grad hooks should return None.")
        for hook in list(around.get("_acc_hooks", {}).values()):
            hook((), (self.tensor(value, leaf._spec),))

    def hooked(self, hooks, value, spec):
        """A gradient after the hooks of a tensor."""
        grad = self.tensor(value, spec)
        for hook in list(hooks.values()):
            got = hook(grad)
            if got is not None:
                _check_hook(hook, grad, got)
                grad = got
        return self.untensor(grad)

    def hooked_node(self, hooks, value, spec):
        """A leaf's gradient after the pre-hooks of its accumulating node."""
        given = (self.tensor(value, spec),)
        for hook in list(hooks.values()):
            given = replaced(hook, given, hook(given))
        return self.untensor(given[0])

    def tensor(self, value, spec):
        """A gradient as hooks and Python nodes see it."""
        if value is None:
            return None
        if self.pairs:
            return bridge.wrap(value[0], _plain(spec), value[1])
        return bridge.wrap(value, _plain(spec), None)

    def untensor(self, tensor):
        """What travels for a tensor: its value, or the pair with its edge."""
        if tensor is None:
            return None
        pair = bridge.unwrap(tensor)
        return pair if self.pairs else pair[0]

    def add(self, a, b, spec):
        """The sum of two gradients of one result."""
        plan = _add_plan(spec)
        if self.pairs:
            outs, edges = apply_plan(plan, (a[0], b[0]), (a[1], b[1]))
            return (outs[0], edges[0])
        return graph_of(spec.device).rec2(plan, a, b)

    def run_all(self, order):
        """Every node of an ordinary backward pass. One function without calls for the common case: this is, with the
        recording of the forward pass, where a training step spends its Python time."""
        me = tls.me
        buffers = self.buffers
        counts = self.leaf_counts
        sums = self.leaf_sums
        keep = self.keep
        graph = me.graph
        for node in order:
            bwd = node.bwd
            value = buffers.get(node)
            saved = node.saved
            unusual = node.hooks or node.pre_hooks or node.retained
            if value is None or unusual or bwd is None or bwd.n_out != 1 or type(saved) is not tuple:
                self.run((node,))
                graph = me.graph
                continue
            del buffers[node]
            for storage, version in node.guards:
                if storage.version != version:
                    raise modified(node, storage, version)
            found = bwd.whole_plan
            if found is None:
                found = bwd.whole_plan = bwd.plan(bwd.whole)
            plan, passed = found
            if plan is None:
                outs = ()
            else:
                if graph is not me.graph or graph.device is not plan.device:
                    graph = me.graph_on(plan.device)
                if plan.n_out == 1 and not plan.n_num and len(saved) < 2:
                    outs = (graph.rec2(plan, saved[0], value),) if saved else (graph.rec1(plan, value),)
                else:
                    outs = graph.recn(plan, (*saved, value), node.numbers)
            edges = node.edges
            for i, k in zip(bwd.positions, passed):
                given = outs[k] if k >= 0 else value
                target = edges[i][0]
                if isinstance(target, Node):
                    target_bwd = target.bwd
                    if target_bwd is not None and target_bwd.n_out == 1:
                        before = buffers.get(target)
                        buffers[target] = given if before is None else self.add(before, given, bwd.forward.operands[i])
                    else:
                        self.give(edges[i], given, bwd.forward.operands[i])
                elif counts[target] == 1 and target not in sums and target._hooks is None and not target.__dict__:
                    counts[target] = 0
                    with _accumulating:
                        target._accumulate(given, False)
                else:
                    self.give(edges[i], given, bwd.forward.operands[i])
            if not keep:
                if saved or node.numbers and bwd.forward.op is not None:
                    node.saved = None
                node.guards = ()

    def run(self, order):
        """Nodes of any kind, with hooks, captures and gradients that did not come."""
        buffers = self.buffers
        captures = self.captures
        for node in order:
            grads = buffers.pop(node, None)
            if grads is None:
                if not isinstance(node, PythonNode):
                    if node.hooks or node.pre_hooks:
                        self.hooked_without(node)
                    for e in node.edges:
                        if e is not None and not isinstance(e[0], Node):
                            self.skip(e)
                    continue
                grads = [None] * node.n_out()
            elif node.n_out() == 1:
                grads = [grads]
            needed = self.needed is None or node in self.needed
            if captures and needed:
                self.capture(node, grads)
            if node.pre_hooks or node.retained:
                grads = self.before(node, grads, needed)
            if not needed:
                self.capture(node, grads)
                continue
            if isinstance(node, PythonNode):
                self.run_python(node, grads)
            else:
                self.run_node(node, grads)
            if not self.keep:
                node.release()

    def capture(self, node, grads):
        """Note the gradients of a node that somebody wants."""
        captures = self.captures
        for k, g in enumerate(grads):
            if (node, k) in captures:
                captures[node, k] = g

    def run_node(self, node, grads):
        """An op's node: record its derivative and hand its results on. grads: one of each result, or None."""
        saved = node.saved
        bwd = node.bwd
        if len(grads) == 1:
            present = bwd.whole
            there = grads
        else:
            present = tuple(g is not None for g in grads)
            there = [g for g in grads if g is not None]
        if type(saved) is tuple:
            for storage, version in node.guards:
                if storage.version != version:
                    raise modified(node, storage, version)
        elif saved is None:
            raise freed()
        else:
            specs = [s for s, p in zip(bwd.specs, present) if p]
            saved = saved.unpack(list(zip([g[0] for g in there] if self.pairs else there, specs)))
        plan, passed = bwd.plan(present)
        if self.pairs:
            outs = self.step_on_tape(node, bwd, plan, saved, there)
        elif plan is None:
            outs = ()
        else:
            values = (*saved, *there)
            graph = tls.me.graph
            if graph.device is not plan.device:
                graph = tls.me.graph_on(plan.device)
            if plan.n_out == 1 and not plan.n_num and len(values) == 2:
                outs = (graph.rec2(plan, values[0], values[1]),)
            else:
                outs = graph.recn(plan, values, node.numbers)
        edges = node.edges
        operands = bwd.forward.operands
        if node.hooks:
            outs, passed, there = self.after(node, bwd, outs, passed, there, grads)
        for i, p in zip(bwd.positions, passed):
            self.give(edges[i], outs[p] if p >= 0 else there[~p], operands[i])

    def step_on_tape(self, node, bwd, plan, saved, there):
        """As `run_node` records it, where the step itself is put on the tape."""
        if plan is None:
            return ()
        values = [*saved, *(g[0] for g in there)]
        return list(zip(*apply_plan(plan, values, self.step_edges(node, bwd, plan, there), node.numbers)))

    def step_edges(self, node, bwd, plan, there):
        """The edges of what a step reads: saved operands, saved results, gradients."""
        edges = [node.edges[i] for i in bwd.save_in]
        edges += [(node, k) for k in bwd.save_out]
        edges += [g[1] for g in there]
        return [e if e is not None and differentiable(s) else None for e, s in zip(edges, plan.operands)]

    def run_python(self, node, grads):
        """A node whose derivative is Python code, as of `autograd.Function`."""
        me = tls.me
        before = me.grad
        me.grad = self.create_graph
        try:
            given = [self.tensor(g, node.out_spec(k)) for k, g in enumerate(grads)]
            got = node.apply(*given)
            if node.hooks:
                for hook in list(node.hooks.values()):
                    got = replaced(hook, tuple(got), hook(tuple(got), tuple(given)))
        finally:
            me.grad = before
        for e, g in zip(node.edges, got):
            if e is None:
                continue
            if g is None:
                self.skip(e)
            else:
                self.give(e, self.untensor(g), g._spec)

    def before(self, node, grads, needed):
        """Hooks of the node's results, their retained gradients, and the node's pre-hooks, as PyTorch orders them."""
        me = tls.me
        saved = me.grad
        me.grad = self.create_graph
        try:
            given = [self.tensor(g, node.out_spec(k)) for k, g in enumerate(grads)]
            hooks = list((node.pre_hooks or {}).values())
            for kind, k, hook in hooks:
                if kind == "tensor":  # one of a node with several results is called without a gradient too
                    got = hook(given[k])
                    if got is not None:
                        _check_hook(hook, given[k], got)
                        given[k] = got
            for k, reference in (node.retained or {}).items():
                tensor = reference()
                if tensor is not None and given[k] is not None:
                    tensor._grad = given[k] if tensor._grad is None else tensor._grad + given[k]
            for kind, _, hook in hooks:
                if kind == "node" and needed:
                    given = list(replaced(hook, given, hook(tuple(given))))
        finally:
            me.grad = saved
        return [self.untensor(g) for g in given]

    def hooked_without(self, node):
        """The hooks of an op's node to which no gradient has come."""
        needed = self.needed is None or node in self.needed
        nothing = [None] * node.n_out()
        self.before(node, nothing, needed)
        if needed and node.hooks:
            inputs = (None,) * len(positions(node))
            for hook in list(node.hooks.values()):
                inputs = replaced(hook, inputs, hook(inputs, tuple(nothing)))

    def after(self, node, bwd, outs, passed, there, grads):
        """Post hooks: they see the gradients of all operands and may replace them."""
        given = {i: outs[p] if p >= 0 else there[~p] for i, p in zip(bwd.positions, passed)}
        seen = positions(node)
        inputs = tuple(self.tensor(given[i], bwd.forward.operands[i]) if i in given else None for i in seen)
        results = tuple(self.tensor(g, node.out_spec(k)) for k, g in enumerate(grads))
        for hook in list(node.hooks.values()):
            inputs = replaced(hook, inputs, hook(inputs, results))
        final = dict(zip(seen, inputs))
        values = [self.untensor(final[i]) for i in bwd.positions]
        return values, range(len(values)), there


class Watched(Run):
    """A backward pass in anomaly mode: says where in the forward pass a failing node was made, and looks for nan."""

    __slots__ = ("node", "check_nan")

    def __init__(self, create_graph, keep, accumulate):
        super().__init__(create_graph, keep, accumulate)
        self.node = None
        self.check_nan = tls.me.extra.get("check_nan", True)

    def give(self, edge, value, spec):
        if self.node is not None and self.check_nan and value is not None and differentiable(spec):
            array = value[0] if self.pairs else value
            sliced = type(array) is Lane
            while type(array) is Lane:
                array = array.value
            array = array.get() if hasattr(array, "get") else array
            if bool(jnp.isnan(array).any()):
                if sliced:
                    tls.me.extra["of_values"] = True
                k = next((i for i, e in enumerate(self.node.edges) if e is edge), 0)
                raise RuntimeError(f"Function '{self.node.name()}' returned nan values in its {k}th output.")
        super().give(edge, value, spec)

    def watch(self, run, node, grads):
        me = tls.me
        before, outer = me.extra.get("running"), self.node
        self.node = node
        me.put("running", node)
        try:
            run(node, grads)
        except Exception:
            tell(node)
            raise
        finally:
            self.node = outer
            me.put("running", before)

    def run_node(self, node, grads):
        self.watch(super().run_node, node, grads)

    def run_python(self, node, grads):
        self.watch(super().run_python, node, grads)


def _warn_beside(text):
    """Warn beside an error that is on its way: where warnings are errors this one is printed, lest it take that one's place."""
    try:
        warnings.warn(text, stacklevel=3)
    except Warning as warning:
        print(f"{type(warning).__name__}: {warning}", file=sys.stderr)


def tell(node):
    """Warn with the place in the forward pass where a node was made, and where that was induced from."""
    if node.trace is None:
        _warn_beside(
            f"Error detected in {node.name()}. No forward pass information available. Enable detect anomaly during forward "
            "pass for more information."
        )
        return
    _warn_beside(f"Error detected in {node.name()}. Traceback of forward call that caused the error:\n{node.trace}")
    parent = node.metadata.get("parent_")
    while parent is not None and parent.trace is not None:
        _warn_beside(
            f"\n\nPrevious calculation was induced by {parent.name()}. Traceback of forward call that induced the previous "
            f"calculation:\n{parent.trace}"
        )
        parent = parent.metadata.get("parent_")


def _plain(spec):
    return Spec.dense(tuple(spec.shape), spec.dtype, spec.device)


def replaced(hook, before, got):
    """The gradients after a hook on a node, checked against those that it was given."""
    if got is None:
        return before
    if not isinstance(got, tuple):
        raise TypeError(f"expected tuple, but hook returned '{type(got).__name__}'")
    if len(got) != len(before):
        raise RuntimeError(
            f"hook '{getattr(hook, '__name__', '<unknown>')}' has returned an incorrect number of values (got {len(got)}, but "
            f"expected {len(before)})"
        )
    for old, new in zip(before, got):
        if new is not None:
            _check_hook(hook, old, new)
    return got


def _check_hook(hook, grad, got):
    if not hasattr(got, "_spec"):
        raise TypeError(f"expected Variable, but hook returned '{type(got).__name__}'")
    if grad is None:
        raise RuntimeError("can't replace a None gradient with a non-None value")
    name = getattr(hook, "__name__", "<unknown>")
    if got._spec.dtype is not grad._spec.dtype:
        raise RuntimeError(
            f"hook '{name}' has changed the type of value (was {legacy_type(grad._spec.dtype)} "
            f"got {legacy_type(got._spec.dtype)})"
        )
    if got._spec.shape != grad._spec.shape:
        raise RuntimeError(f"hook '{name}' has changed the size of value")


def modified(node, storage, version):
    """The error for a saved tensor that was written to between forward and backward."""
    at = next(i for i, (s, v) in enumerate(node.guards) if s is storage and v == version)
    bwd = node.bwd
    saved_in = bwd.guard_in
    n_in = len(node.guards) - (len(node.guards) - len(saved_in) if bwd.guard_out else 0)
    if at < n_in:
        # A write in place does not guard the operand that it writes to, the first.
        i = saved_in[at + len(saved_in) - n_in] if n_in <= len(saved_in) else saved_in[0]
        spec = bwd.forward.operands[i]
        edge = written_since(node.edges[i], spec, storage, version)
        if hasattr(storage, "turned"):
            spec = storage.turned.get(spec, spec)
    else:
        guarded = [k for k in bwd.guard_out if k < bwd.forward.public]
        k = guarded[min(at - n_in, len(guarded) - 1)]
        edge, spec = (node, k), bwd.specs[k]
    return changed(edge, spec, storage.version, version, node.trace)


def written_since(edge, spec, storage, version):
    """The edge that a saved tensor has now, after writes to its storage, as far as the storage knows.

    Raises RuntimeError for one of several views that one call has made: it has none any more.
    """
    last = getattr(storage, "written", None)
    if edge is not None:
        if not isinstance(edge[0], Node):
            return edge
        seen = edge[0].bwd and edge[0].bwd.forward.extra
        if isinstance(seen, ViewsMap):
            raise errors.view_made(("multi", edge[1]), edge, indirect=True)
        if isinstance(seen, (ViewMap, WideMap)):
            return AS_STRIDED  # a view asks its base again when that was written to
        return edge if last is None else last[:2]
    if last is None or not version < last[2]:
        return None  # made off the tape, maybe of a storage that was on it
    base = storage.base
    return last[:2] if (spec.shape, spec.strides) == (base.shape, base.strides) else AS_STRIDED


AS_STRIDED = ("AsStridedBackward0", 0)


def changed(edge, spec, now, version, trace=None):
    if trace:
        hint = (
            "Hint: the backtrace further above shows the operation that failed to compute its gradient. The variable in "
            "question was changed in there or anywhere later. Good luck!"
        )
    else:
        hint = (
            "Hint: enable anomaly detection to find the operation that failed to compute its gradient, with "
            "torch.autograd.set_detect_anomaly(True, check_nan=False)."
        )
    which = ""
    if edge is not None and differentiable(spec) and (type(edge[0]) is str or isinstance(edge[0], Node)):
        name = edge[0] if type(edge[0]) is str else edge[0].name()
        which = f", which is output {edge[1]} of {DERIVATIVE.sub('', name)},"
    return RuntimeError(
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[{legacy_type(spec.dtype)} {list(spec.shape)}]{which} is at version {now}; expected version {version} instead. {hint}"
    )


def backward(roots, grads, keep, create_graph, accumulate=True, inputs=None):
    """Run the tape from `roots` (edges) with their gradients (value, edge) pairs; with `inputs` (edges), only towards them.

    Returns the gradients (value, edge) captured for `inputs`, or None.
    """
    me = tls.me
    graph = graph_at(me, roots, keep, create_graph, inputs)
    if graph is not None:
        with _accumulating:
            if again(graph, roots[0][0], grads[0][0]):
                passed(me)
                return None
    run = (Watched if me.extra.get("anomaly") else me.extra.get("run_class", Run))(create_graph, keep, accumulate)
    values = [pair if run.pairs else pair[0] for pair in grads]
    outermost = through(run, roots, values, inputs, graph)
    if outermost and not create_graph:
        passed(me)
    if accumulate:
        return None
    return [v if v is None or run.pairs else (v, None) for v in (run.captures[e] for e in inputs)]


def through(run, roots, values, inputs=None, graph=None) -> bool:
    """Make a backward pass from `roots`, to which `values` come. Returns whether it is within no other one.

    graph: what `recurrence` keeps of the passes from here, or None.
    """
    me = tls.me
    order = run.order = run.collect(roots)
    if inputs is not None:
        if not run.accumulate:
            run.captures = {e: None for e in inputs}
        order = run.restrict(order, [e[0] for e in inputs])
    watching = None if graph is None else observer(me, graph, order, run.leaf_counts, values[0])
    before = me.grad
    outer = me.extra.get("run")
    me.extra["run"] = run
    me.grad = run.create_graph
    try:
        for (target, k), value in zip(roots, values):
            run.give((target, k), value, target.out_spec(k) if isinstance(target, Node) else target._spec)
        if inputs is None and not run.create_graph and type(run) is Run:
            run.run_all(order)
        else:
            run.run(order)
        if watching is not None:
            watching.note(run.leaf_counts)
        for callback in run.callbacks or ():  # one may add others, which come last
            callback()
    finally:
        me.grad = before
        if outer is not None:
            me.extra["run"] = outer
        else:
            del me.extra["run"]
    return outer is None


def queue_callback(callback):
    """Call a function of no arguments when the backward pass that runs now, the innermost one, has ended."""
    run = tls.me.extra.get("run")
    if run is None:
        raise RuntimeError("Final callbacks can only be installed during backward pass.")
    if run.callbacks is None:
        run.callbacks = []
    run.callbacks.append(callback)


__all__ = ["backward", "backward_of", "bridge", "freed", "queue_callback"]
