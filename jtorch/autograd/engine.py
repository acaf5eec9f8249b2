"""Backward: gradients flow through the tape in PyTorch's order, latest node first.

Ordinary backward works on raw values (arrays or pending results). With create_graph each value travels with its edge, as a
pair, and every step is itself put on the tape. Tensors appear only where a hook or a Python node wants to see one.
"""

from operator import attrgetter

from ..core.program import Plan
from ..core.record import tls
from ..core.spec import Spec
from . import node as tape
from .derive import backward_of, differentiable
from .node import Node, PythonNode

_by_sequence = attrgetter("sequence")


class Bridge:
    """What the engine needs of Tensor, filled in by the floor above."""

    wrap = None  # (value, spec, edge) -> Tensor
    unwrap = None  # Tensor -> (value, edge)


bridge = Bridge()

_add_plans: dict = {}


def _add_plan(spec):
    plan = _add_plans.get(spec)
    if plan is None:
        plain = Spec.dense(tuple(spec.shape), spec.dtype, spec.device)
        plan = Plan(None, "add", lambda a, b: a + b, (plain, plain), specs=(plain,))
        plan.grad_name = "AddBackward0"
        _add_plans[spec] = plan
    return plan


def graph_of(device):
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
    """One backward pass."""

    __slots__ = ("create_graph", "keep", "buffers", "leaf_counts", "captures", "accumulate", "wanted", "leaf_sums", "leaf_done")

    def __init__(self, create_graph, keep, accumulate):
        self.create_graph = create_graph
        self.keep = keep
        self.accumulate = accumulate
        self.buffers = {}
        self.leaf_counts = {}
        self.leaf_sums = {}
        self.captures = {}  # (node, number) -> the gradient wanted there
        self.wanted = None

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
        useful = set()
        for node in reversed(order):
            if node in targets or any(e is not None and (e[0] in useful or e[0] in targets) for e in node.edges):
                useful.add(node)
        self.wanted = useful
        return [node for node in order if node in useful]

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
        value = self.leaf_sums.pop(leaf, None)
        if value is None:
            return
        key = (leaf, 0)
        wanted = key in self.captures
        if self.wanted is not None and not wanted:
            return
        if leaf._hooks:
            value = self.hooked(leaf._hooks, value, leaf._spec)
        if wanted:
            self.captures[key] = value
        if self.accumulate:
            leaf._accumulate(value, self.create_graph)

    def hooked(self, hooks, value, spec):
        grad = self.tensor(value, spec)
        for hook in list(hooks.values()):
            got = hook(grad)
            if got is not None:
                _check_hook(grad, got)
                grad = got
        return self.untensor(grad)

    def tensor(self, value, spec):
        if value is None:
            return None
        if self.create_graph:
            return bridge.wrap(value[0], _plain(spec), value[1])
        return bridge.wrap(value, _plain(spec), None)

    def untensor(self, tensor):
        if tensor is None:
            return None
        pair = bridge.unwrap(tensor)
        return pair if self.create_graph else pair[0]

    def add(self, a, b, spec):
        plan = _add_plan(spec)
        if self.create_graph:
            outs, edges = apply_plan(plan, (a[0], b[0]), (a[1], b[1]))
            return (outs[0], edges[0])
        return graph_of(spec.device).rec2(plan, a, b)

    def run(self, order):
        buffers = self.buffers
        captures = self.captures
        for node in order:
            grads = buffers.pop(node, None)
            if grads is None:
                for e in node.edges:
                    if e is not None and not isinstance(e[0], Node):
                        self.skip(e)
                continue
            if node.n_out() == 1:
                grads = [grads]
            if node.pre_hooks or node.retained:
                grads = self.before(node, grads)
            if captures:
                for k, g in enumerate(grads):
                    if (node, k) in captures:
                        captures[node, k] = g
                if self.wanted is not None and not self.leads_on(node):
                    continue
            if isinstance(node, PythonNode):
                self.run_python(node, grads)
            else:
                self.run_node(node, grads)
            if not self.keep:
                node.release()

    def leads_on(self, node):
        wanted, captures = self.wanted, self.captures
        return any(e is not None and (e[0] in wanted or (e[0], e[1]) in captures) for e in node.edges)

    def run_node(self, node, grads):
        saved = node.saved
        bwd = node.bwd
        if saved is None:
            raise freed()
        for storage, version in node.guards:
            if storage.version != version:
                raise modified(node, storage, version)
        if len(grads) == 1:
            present = bwd.whole
            there = grads
        else:
            present = tuple(g is not None for g in grads)
            there = [g for g in grads if g is not None]
        plan, passed = bwd.plan(present)
        if self.create_graph:
            outs, out_edges = self.step_on_tape(node, bwd, plan, saved, there)
            outs = list(zip(outs, out_edges))
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
        if plan is None:
            return (), ()
        values = [*saved, *(g[0] for g in there)]
        edges = [node.edges[i] for i in bwd.save_in]
        edges += [(node, k) for k in bwd.save_out]
        edges += [g[1] for g in there]
        edges = [e if e is not None and differentiable(s) else None for e, s in zip(edges, plan.operands)]
        return apply_plan(plan, values, edges, node.numbers)

    def run_python(self, node, grads):
        me = tls.me
        before = me.grad
        me.grad = self.create_graph
        try:
            given = [self.tensor(g, node.out_spec(k)) for k, g in enumerate(grads)]
            got = node.apply(*given)
            if node.hooks:
                for hook in list(node.hooks.values()):
                    new = hook(tuple(got), tuple(given))
                    if new is not None:
                        got = new if isinstance(new, (list, tuple)) else (new,)
        finally:
            me.grad = before
        for e, g in zip(node.edges, got):
            if e is None:
                continue
            if g is None:
                self.skip(e)
            else:
                self.give(e, self.untensor(g), g._spec)

    def before(self, node, grads):
        """Hooks of the node's results and pre-hooks of the node, in the order of their registration."""
        me = tls.me
        saved = me.grad
        me.grad = self.create_graph
        try:
            given = [self.tensor(g, node.out_spec(k)) for k, g in enumerate(grads)]
            for kind, k, hook in list((node.pre_hooks or {}).values()):
                if kind == "tensor":
                    if given[k] is not None:
                        got = hook(given[k])
                        if got is not None:
                            _check_hook(given[k], got)
                            given[k] = got
                else:
                    got = hook(tuple(given))
                    if got is not None:
                        given = list(got) if isinstance(got, (list, tuple)) else [got]
            for k, reference in (node.retained or {}).items():
                tensor = reference()
                if tensor is not None and given[k] is not None:
                    tensor._grad = given[k] if tensor._grad is None else tensor._grad + given[k]
        finally:
            me.grad = saved
        return [self.untensor(g) for g in given]

    def after(self, node, bwd, outs, passed, there, grads):
        """Post hooks: they see the gradients of all operands and may replace them."""
        inputs = [None] * len(node.edges)
        for i, p in zip(bwd.positions, passed):
            inputs[i] = self.tensor(outs[p] if p >= 0 else there[~p], bwd.forward.operands[i])
        results = tuple(self.tensor(g, node.out_spec(k)) for k, g in enumerate(grads))
        inputs = tuple(inputs)
        for hook in list(node.hooks.values()):
            got = hook(inputs, results)
            if got is not None:
                inputs = tuple(got) if isinstance(got, (list, tuple)) else (got,)
        values = [self.untensor(inputs[i]) for i in bwd.positions]
        return values, range(len(values)), there


def _plain(spec):
    return Spec.dense(tuple(spec.shape), spec.dtype, spec.device)


def _check_hook(grad, got):
    if not hasattr(got, "_spec"):
        raise TypeError(f"expected Variable, but hook returned '{type(got).__name__}'")
    if got._spec.shape != grad._spec.shape:
        raise RuntimeError(
            f"hook '' has changed the size of value: was {list(grad._spec.shape)}, now {list(got._spec.shape)}"
        )


def freed():
    return RuntimeError(
        "Trying to backward through the graph a second time (or directly access saved tensors after they have already "
        "been freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). "
        "Specify retain_graph=True if you need to backward through the graph a second time or if you need to access "
        "saved tensors after calling backward."
    )


_KINDS = {
    "bool": "CPUBoolType", "uint8": "CPUByteType", "int8": "CPUCharType", "int16": "CPUShortType", "int32": "CPUIntType",
    "int64": "CPULongType", "float16": "CPUHalfType", "bfloat16": "CPUBFloat16Type", "float32": "torch.FloatTensor",
    "float64": "torch.DoubleTensor",
}  # fmt: skip


def modified(node, storage, version):
    """The error for a saved tensor that was written to between forward and backward."""
    spec = storage.base
    kind = _KINDS.get(spec.dtype.name, str(spec.dtype))
    hint = (
        "Hint: the backtrace further above shows the operation that failed to compute its gradient. The variable in "
        "question was changed in there or anywhere later. Good luck!"
        if node.trace
        else "Hint: enable anomaly detection to find the operation that failed to compute its gradient, with "
        "torch.autograd.set_detect_anomaly(True)."
    )
    saved = next((s for s, v in node.guards if s is storage), storage)
    which = "is output 0 of " + node.name() + ", " if saved is not None and False else ""
    return RuntimeError(
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[{kind} {list(spec.shape)}], {which}is at version {storage.version}; expected version {version} instead. {hint}"
    )


def backward(roots, grads, keep, create_graph, accumulate=True, inputs=None):
    """Run the tape from `roots` (edges) with their gradients (value, edge) pairs; with `inputs` (edges), only towards them.

    Returns the gradients (value, edge) captured for `inputs`, or None.
    """
    run = Run(create_graph, keep, accumulate)
    order = run.collect(roots)
    if inputs is not None:
        run.captures = {e: None for e in inputs}
        order = run.restrict(order, {e[0] for e in inputs})
    me = tls.me
    before = me.grad
    me.grad = create_graph
    try:
        for (target, k), pair in zip(roots, grads):
            spec = target.out_spec(k) if isinstance(target, Node) else target._spec
            run.give((target, k), pair if create_graph else pair[0], spec)
        run.run(order)
    finally:
        me.grad = before
    if inputs is None:
        return None
    return [v if v is None or create_graph else (v, None) for v in (run.captures[e] for e in inputs)]


__all__ = ["backward", "backward_of", "bridge"]
