"""torch._dynamo.explain: into which graphs a function falls, and which lines of it break them."""

import sys
import traceback

from ..core import ledger
from ..core.record import tls
from .region import Scope

__all__ = ["ExplainOutput", "GraphCompileReason", "explain"]


class GraphCompileReason:
    """Why a graph ended: `reason`, and `user_stack`, the frames of the program, the breaking line last."""

    def __init__(self, reason, user_stack, graph_break=True):
        self.reason = reason
        self.user_stack = user_stack
        self.graph_break = graph_break

    def __repr__(self):
        return f"GraphCompileReason(reason={self.reason!r}, user_stack={self.user_stack})"


class ExplainOutput:
    """What `explain` has found. `ops_per_graph`: the names of each graph's operators, as the recorder has them.

    `graphs` are these lists too: what runs is one XLA program each. There are no guards before a call has been proven.
    """

    def __init__(self, graphs, break_reasons):
        self.graphs = self.ops_per_graph = graphs
        self.graph_count = len(graphs)
        self.graph_break_count = max(0, len(graphs) - 1)
        self.break_reasons = break_reasons
        self.op_count = sum(map(len, graphs))
        self.out_guards = []
        self.compile_times = None

    def __str__(self):
        lines = [
            f"Graph Count: {self.graph_count}", f"Graph Break Count: {self.graph_break_count}", f"Op Count: {self.op_count}",
            "Break Reasons:",
        ]  # fmt: skip
        for k, each in enumerate(self.break_reasons, 1):
            lines += [f"  Break Reason {k}:", f"    Reason: {each.reason}", "    User Stack:"]
            lines += [f"      {frame}" for frame in each.user_stack]
        lines.append("Ops per Graph:")
        for k, ops in enumerate(self.ops_per_graph, 1):
            lines += [f"  Ops {k}:", *(f"    {name}" for name in ops)]
        return "\n".join(lines)


class _Noting(Scope):
    """An open region that notes what each graph held when it was run, and from where."""

    __slots__ = ("graphs", "reasons")

    def __init__(self, name):
        super().__init__(name, False)
        self.graphs, self.reasons = [], []

    def on_flush(self, cause, line):
        super().on_flush(cause, line)
        self.graphs.append(_recorded())
        self.reasons.append(GraphCompileReason(cause, _stack()))


def _recorded():
    return [node.plan.name for graph in tls.me.graphs.values() if graph.pendings for node in graph.state.nodes()]


def _stack():
    """The program's frames below `explain`, the innermost last."""
    frame, found = sys._getframe(1), []
    while frame is not None and frame.f_code is not _run.__code__:
        if ledger.is_users(frame.f_code):
            found.append(traceback.FrameSummary(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name))
        frame = frame.f_back
    return found[::-1]


def _run(me, scope, fn, args, kwargs):
    before, me.scope = me.scope, scope
    try:
        fn(*args, **kwargs)
        return _recorded()
    finally:
        me.scope = before


def explain(f, *extra_args, **extra_kwargs):
    """`explain(f)(*args)`: call `f` once, not compiled, and say into which graphs it falls: an ExplainOutput.

    A graph ends where Python needs a value, and nowhere else. A module or a compiled function is taken as it is.
    """
    f = getattr(f, "_torchdynamo_orig_callable", getattr(f, "_orig_mod", f))

    def inner(*args, **kwargs):
        me = tls.me
        me.flush("before a compiled region")
        scope = _Noting(getattr(f, "__qualname__", type(f).__name__))
        last = _run(me, scope, f, args, kwargs)
        return ExplainOutput(scope.graphs + [last] * bool(last), scope.reasons)

    return inner(*extra_args, **extra_kwargs) if extra_args or extra_kwargs else inner
