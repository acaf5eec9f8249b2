"""The tape: nodes, edges, and recording one of them for an op."""

import itertools
import traceback

from ..core.record import tls
from .derive import backward_of

_sequence = itertools.count()


class Node:
    """One step of the tape: how to turn the gradients of its results into gradients of its operands.

    edges: for each operand None, or (node, result number) or (leaf tensor, 0).
    saved: the values that the derivative needs; guards: (storage, version) of tensors that must not have changed since.
    """

    __slots__ = (
        "bwd", "edges", "saved", "numbers", "guards", "sequence", "hooks", "pre_hooks", "retained", "extra", "trace", "__weakref__",
    )  # fmt: skip

    def __init__(self, bwd, edges, saved, numbers, guards):
        self.bwd = bwd
        self.edges = edges
        self.saved = saved
        self.numbers = numbers
        self.guards = guards
        self.sequence = next(_sequence)
        self.hooks = None  # post hooks of the node
        self.pre_hooks = None  # pre hooks of the node, and hooks of its result tensors, in order
        self.retained = None
        self.extra = None
        self.trace = None

    def name(self) -> str:
        return self.bwd.name

    def n_out(self) -> int:
        return self.bwd.n_out

    def out_spec(self, k):
        return self.bwd.specs[k]

    def release(self):
        # The guards too: a storage that they hold would keep its value alive.
        self.saved = None
        self.guards = ()

    @property
    def metadata(self) -> dict:
        if self.extra is None:
            self.extra = {}
        return self.extra

    @property
    def next_functions(self):
        return tuple((_function(e), e[1]) if e is not None else (None, 0) for e in self.edges)

    def __repr__(self):
        return f"<{self.name()} object at {id(self):#x}>"


class PythonNode(Node):
    """A node whose derivative is a Python function of tensors: `apply(*gradients)`."""

    __slots__ = ("label", "specs", "__dict__")

    def __init__(self, label, edges, specs):
        super().__init__(None, edges, (), (), ())
        self.label = label
        self.specs = specs

    def name(self):
        return self.label

    def n_out(self):
        return len(self.specs)

    def out_spec(self, k):
        return self.specs[k]

    def apply(self, *grads):
        raise NotImplementedError


class AccumulateGrad:
    """What `next_functions` and `grad_fn` chains show for a leaf."""

    __slots__ = ("variable", "__weakref__", "__dict__")
    next_functions = ()

    def __init__(self, variable):
        self.variable = variable

    def name(self):
        return "struct torch::autograd::AccumulateGrad"

    @property
    def sequence(self):
        return (1 << 64) - 1

    def register_hook(self, hook):
        """hook(grad_inputs, grad_outputs) after the gradient has been accumulated."""
        return self.variable.register_post_accumulate_grad_hook(lambda leaf: hook((), (leaf.grad,)))

    def register_prehook(self, hook):
        def run(grad):
            got = hook((grad,))
            return None if got is None else got[0] if isinstance(got, tuple) else got

        return self.variable.register_hook(run)

    def __repr__(self):
        return f"<AccumulateGrad object at {id(self):#x}>"


def _function(edge):
    target = edge[0]
    return target if isinstance(target, Node) else target._accumulator()


def record(plan, values, edges, numbers, outs, tensors=None):
    """The node of an op that has just been recorded.

    values, edges: of the operands; outs: the result values; tensors: the operands, whose versions are guarded, or None.
    """
    needs = 0
    bit = 1
    for e in edges:
        if e is not None:
            needs |= bit
        bit <<= 1
    bwd = plan.bwd.get(needs)
    if bwd is None:
        bwd = plan.bwd[needs] = backward_of(plan, needs)
    saved = []
    guards = []
    for i in bwd.save_in:
        saved.append(values[i])
        if tensors is not None:
            t = tensors[i]
            if t is not None:
                storage = t._storage
                guards.append((storage, storage.version))
    for k in bwd.save_out:
        saved.append(outs[k])
    node = Node(bwd, edges, tuple(saved), numbers if bwd.uses_numbers else (), guards)
    extra = tls.me.extra
    if extra and extra.get("anomaly"):
        node.trace = "".join(traceback.format_stack()[:-2])
    return node
