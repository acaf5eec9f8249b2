"""The tape: nodes, edges, and recording one of them for an op."""

import itertools

from ..core.record import tls
from ..core.spec import Spec
from ..core.stretch import tape
from ..errors_autograd import freed, no_hooks, nothing_saved
from ..handles import RemovableHandle
from ..tracebacks import stack_of_call
from .derive import backward_of
from .forms import as_tensor
from .mode import refuse

_sequence = itertools.count()
tape.now = _sequence.__repr__


class Node:
    """One step of the tape: the gradients of its operands from those of its results.

    edges: for each operand None, or (node, result number) or (leaf tensor, 0). saved: the values that the derivative needs, a tuple, or
    what `saved_tensors_hooks` made of them (Packed). guards: (storage, version) of tensors that must not have changed since. _of_leaf:
    its result is shown as a leaf.
    """

    __slots__ = (
        "bwd", "edges", "saved", "numbers", "guards", "sequence", "hooks", "pre_hooks", "retained", "extra", "trace", "__weakref__",
    )  # fmt: skip
    _of_leaf = False

    def __init__(self, bwd, edges, saved, numbers, guards):
        self.bwd = bwd
        self.edges = edges
        self.saved = saved
        self.numbers = numbers
        self.guards = guards
        self.sequence = next(_sequence)
        self.hooks = None  # post hooks of the node
        self.pre_hooks = None  # (kind, result number, hook): pre hooks of the node and hooks of its result tensors
        self.retained = None  # result number -> weak reference to the tensor whose .grad is to be filled
        self.extra = None
        self.trace = None  # in anomaly mode: where the op was called

    def name(self) -> str:
        name = self.bwd.name
        return f"torch::autograd::{name}" if name in _IN_C else name

    def n_out(self) -> int:
        return self.bwd.n_out

    def out_spec(self, k):
        return self.bwd.specs[k]

    def release(self):
        """Let go of what was saved. The guards too: a storage that they hold would keep its value alive."""
        if self.saved or self.numbers and self.bwd.once:
            self.saved = None
        self.guards = ()

    @property
    def metadata(self) -> dict:
        """A dict for whoever wants to note something about this node."""
        if self.extra is None:
            self.extra = {}
        return self.extra

    @property
    def next_functions(self):
        """(node, result number) for each operand; (None, 0) where no gradient goes."""
        return tuple((_function(e), e[1]) if e is not None else (None, 0) for e in next_edges(self))

    def register_hook(self, hook):
        """Call hook(grad_inputs, grad_outputs) after this node has run; what it returns replaces grad_inputs."""
        if tls.me.extra:
            bridge.hooked(self)
        if self.hooks is None:
            self.hooks = {}
        return RemovableHandle.into(self.hooks, hook)

    def register_prehook(self, hook):
        """Call hook(grad_outputs) before this node runs; what it returns replaces them."""
        if tls.me.extra:
            bridge.hooked(self)
        if self.pre_hooks is None:
            self.pre_hooks = {}
        return RemovableHandle.into(self.pre_hooks, ("node", -1, hook))

    def _sequence_nr(self) -> int:
        return self.sequence

    def __call__(self, *grads):
        """The gradients of the operands from those of the results: this step alone."""
        return bridge.step(self, grads)

    def __getattr__(self, name):
        if name.startswith("_saved_"):
            return saved_attribute(self, name.removeprefix("_saved_"))
        if name.startswith("_raw_saved_"):
            position = saved_place(self, name.removeprefix("_raw_saved_"))[0]
            if position is not None:
                return SavedTensor(self, position)
        raise AttributeError(f"'{self.name()}' object has no attribute '{name}'")

    def __repr__(self):
        return f"<{type(self).__name__} object at {id(self):#x}>"


# Nodes that PyTorch writes by hand, and names with their namespace.
_IN_C = ("CopySlices", "CopyBackwards", "NotImplemented")


def positions(node):
    """The operands as PyTorch counts them: a number in the place of a tensor is one, without a gradient (None)."""
    bwd = node.bwd
    binding = None if bwd is None else bwd.forward.extra
    slots = getattr(binding, "slots", None)
    if slots is None:
        return range(len(node.edges))
    found = []
    if binding.op.order is not None:
        of = {param.name: slot[1] for param, slot in zip(binding.op.params, slots) if slot[0] == "o"}
        return [of[name] for name in binding.op.order(*bwd.forward.operands) if name in of]
    for param, role, slot in zip(binding.op.params, binding.op.roles, slots):
        if param.name in _CHOOSING:
            continue
        if slot[0] == "o":
            found.append(slot[1])
        elif slot[0] == "l":
            found += [e[1] for e in slot[1] if e[0] == "o"]
        elif slot[0] == "n" and as_tensor(binding.op, role):
            found.append(None)
    return found


def next_edges(node):
    """The edges as PyTorch counts them. A write to a view is one node there, with the edges of what was written."""
    if node.bwd is not None and node.bwd.name == "CopySlices":
        base, written = node.edges
        return [base] if written is None else [base, *next_edges(written[0])[1:]]
    return [None if i is None else node.edges[i] for i in positions(node)]


_CHOOSING = ("index", "indices", "mask", "condition")  # arguments that no gradient can ever go to


def saved_place(node, name):
    """(position among the saved values, its edge) of what a node saves as `name`; (None, None) where that is no tensor.

    A position of -1: an operand that this node did not have to save.
    """
    bwd = node.bwd
    binding = bwd and bwd.forward.extra
    slots = getattr(binding, "slots", None)
    if slots is not None:
        for param, slot in zip(binding.op.params, slots):
            if slot[0] == "o" and param.name in (name, "input" if name == "self" else name):
                if slot[1] in bwd.save_in:
                    return bwd.save_in.index(slot[1]), node.edges[slot[1]]
                if any(param.name in args for args in binding.op.rule_args.values()):
                    return -1, None
        if name.startswith("result") and bwd.save_out:
            k = int(name.removeprefix("result") or 0)
            if k in bwd.save_out:
                return len(bwd.save_in) + bwd.save_out.index(k), (node, k)
    return None, None


def saved_attribute(node, name):
    """What `node._saved_<name>` shows: a saved tensor, or an argument of the op."""
    position, edge = saved_place(node, name)
    if position is not None:
        if position >= 0 and edge is not None and not isinstance(edge[0], Node) and type(node.saved) is tuple:
            leaf = edge[0]
            if bridge.unwrap(leaf)[0] is node.saved[position]:
                return leaf
        return None if position < 0 else _saved_tensor(node, position, edge)
    binding = node.bwd and node.bwd.forward.extra
    for param, slot in zip(binding.op.params, binding.slots) if getattr(binding, "slots", None) is not None else ():
        if param.name == name and slot[0] in "ns":
            return slot[1] if slot[0] == "s" else node.numbers[slot[1]] if node.numbers else 0
    raise AttributeError(f"'{node.name()}' object has no attribute '_saved_{name}'")


def _saved_tensor(node, position, edge):
    if node.saved is None:
        raise freed()
    saved = node.saved if type(node.saved) is tuple else node.saved.unpack(())
    bwd = node.bwd
    specs = [bwd.forward.operands[i] for i in bwd.save_in] + [bwd.specs[k] for k in bwd.save_out]
    if edge is None or isinstance(edge[0], Node):
        return bridge.wrap(saved[position], specs[position], edge)
    if saved is node.saved:
        return edge[0]  # a leaf is kept as it is, and what a hook has unpacked is another leaf
    return bridge.wrap(saved[position], specs[position], None).requires_grad_()


class SavedTensor:
    """One saved value of a node, as `node._raw_saved_<name>`: hooks can be put on it alone."""

    __slots__ = ("node", "position")

    def __init__(self, node, position):
        self.node, self.position = node, position

    def unpack(self):
        """The saved tensor, or None where there was none to save."""
        return None if self.position < 0 else _saved_tensor(self.node, self.position, None)

    def register_hooks(self, pack_hook, unpack_hook):
        """Keep what pack_hook(tensor) gives in the place of the tensor, until unpack_hook makes it one again."""
        node, at = self.node, self.position
        if not (callable(pack_hook) and callable(unpack_hook)):
            raise no_hooks()
        if at < 0:
            raise nothing_saved()
        if node.saved is None:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor after it has been freed. Saved intermediate values of the graph are freed "
                "when you call .backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the graph a "
                "second time or if you need to access saved variables after calling backward."
            )
        tensor = None if type(node.saved) is not tuple else self.unpack()
        if tensor is None and (type(node.saved) is Packed or at in node.saved.hooks):
            raise RuntimeError(
                "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one pair of hooks is allowed "
                "at a time."
            )
        if tensor is not None:
            node.saved = PackedSome(node.saved)
        node.saved.put(at, pack_one(pack_hook, self.unpack() if tensor is None else tensor), unpack_hook)


class PackedSome:
    """Saved values of which some are as a pack hook has left them."""

    __slots__ = ("values", "hooks")

    def __init__(self, values):
        self.values = list(values)
        self.hooks = {}

    def __len__(self):
        return len(self.values)

    def put(self, at, packed, unpack):
        self.values[at] = None
        self.hooks[at] = packed, unpack

    def unpack(self, cotangents):
        found = {at: bridge.unwrap(unpack_one(unpack, packed))[0] for at, (packed, unpack) in self.hooks.items()}
        return tuple([found.get(at, v) for at, v in enumerate(self.values)])


class Bridge:
    """What the tape needs of Tensor, filled in by the floor above."""

    wrap = None  # (value, spec, edge) -> Tensor
    unwrap = None  # Tensor -> (value, edge)
    step = None  # (node, gradients of its results) -> gradients of its operands
    hooked = None  # a hook is put on this node, inside func's transformations perhaps
    outer = None  # a tensor of a class with a `__torch_dispatch__`, off the tape
    first_gradients = None  # (leaf without a gradient, value, spec of the gradient) of several


bridge = Bridge()


class PythonNode(Node):
    """A node whose derivative is a Python function of tensors: `apply(*gradients)`."""

    __slots__ = ("label", "specs", "__dict__")

    def __init__(self, label, edges, specs):
        super().__init__(None, edges, (), (), ())
        self.label = label
        self.specs = specs
        extra = tls.me.extra
        if extra.get("anomaly"):
            _trace(self, extra)

    def name(self):
        return self.label

    def n_out(self):
        return len(self.specs)

    def out_spec(self, k):
        return self.specs[k]

    def apply(self, *grads):
        raise NotImplementedError


class Nowhere(PythonNode):
    """Where the gradient of a view goes that has no history of its own, though its base needs a gradient: it is dropped."""

    __slots__ = ()

    def apply(self, *grads):
        return ()


class AccumulateGrad:
    """What `next_functions` and `grad_fn` chains show for a leaf."""

    __slots__ = ("variable", "__weakref__", "__dict__")
    next_functions = ()

    def __init__(self, variable):
        self.variable = variable

    def name(self):
        return "torch::autograd::AccumulateGrad"

    @property
    def sequence(self):
        return (1 << 64) - 1

    def _sequence_nr(self):
        return self.sequence

    @property
    def metadata(self) -> dict:
        return self.__dict__.setdefault("_metadata", {})

    def n_out(self):
        return 1

    def out_spec(self, k):
        return self.variable._spec

    def __call__(self, grad):
        """Add a gradient to that of the leaf."""
        bridge.step(self, (grad,))

    def register_hook(self, hook):
        """hook(grad_inputs, grad_outputs) after the gradient has been accumulated."""
        self.variable.__dict__["_acc_kept"] = self  # as long as the leaf lives, so do hooks on its accumulation
        return RemovableHandle.on(self.variable, "_acc_hooks", hook)

    def register_prehook(self, hook):
        """hook(grad_outputs) before the gradient is accumulated; what it returns replaces them."""
        self.variable.__dict__["_acc_kept"] = self
        return RemovableHandle.on(self.variable, "_acc_pre_hooks", hook)

    def __repr__(self):
        return f"<AccumulateGrad object at {id(self):#x}>"


def _function(edge):
    target = edge[0]
    if isinstance(target, Nowhere):
        return None
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
    bwd = plan.bwd.get(needs) or backward_plan(plan, needs)
    saved = []
    guards = []
    guarded = bwd.guard_in
    if guarded is not bwd.save_in:  # PyTorch keeps others
        if tensors is not None:
            guards = guarded_versions(tensors, guarded)
        guarded = ()
    for i in bwd.save_in:
        saved.append(values[i])
        if guarded and tensors is not None:
            t = tensors[i]
            if t is not None:
                storage = t._storage
                version = storage.version
                if version < 0:
                    refuse()
                guards.append((storage, version))
    for k in bwd.save_out:
        saved.append(outs[k])
    node = bwd.node(bwd, edges, tuple(saved), numbers if bwd.uses_numbers else (), guards)
    extra = tls.me.extra
    if extra:
        record_specially(node, extra, tensors)
    return node


def guarded_versions(tensors, positions):
    """The versions of these operands; an operand that is None is the one written to."""
    held = [tensors[i]._storage for i in positions if tensors[i] is not None]
    if any(storage.version < 0 for storage in held):
        refuse()
    return [(storage, storage.version) for storage in held]


# Set by dispatch: what saves (by numbers of operands, results, those returned, and the places in a derivative), and whether a plan has it.
keeper = unrolled = None


def backward_plan(plan, needs):
    """The derivative of a plan by the operands whose bit is set, made for the first time."""
    bwd = plan.bwd[needs] = backward_of(plan, needs)
    bwd.node = class_of(bwd.name)
    if plan.finish is not None and unrolled(plan):
        kept = (bwd.save_in, bwd.save_out, bwd.guard_in, bwd.guard_out)
        bwd.keep = keeper(len(plan.operands), plan.n_out, plan.public, *map(tuple, kept))
    return bwd


def record_specially(node, extra, tensors):
    """What anomaly mode, forward mode and saved_tensors_hooks do to a new node. tensors: its operands, or None."""
    if extra.get("anomaly"):
        _trace(node, extra)
    dual = extra.get("dual")
    if dual is not None and dual.recorded is not None:
        dual.recorded.append(node)
    hooks = extra.get("saved_hooks")
    if hooks and node.saved:
        node.saved = Packed(_saved_tensors(node, tensors), *hooks[-1])


def _trace(node, extra):
    """In anomaly mode: note where a node was made, and which backward step made it."""
    node.metadata["traceback_"] = stack = stack_of_call()
    node.trace = "".join(stack)
    if extra.get("running") is not None:
        node.metadata["parent_"] = extra["running"]


def _saved_tensors(node, tensors):
    """What a new node saves, as tensors: the operands themselves where they are at hand, and results with their history."""
    bwd = node.bwd
    values = iter(node.saved)
    for i, value in zip(bwd.save_in, values):
        given = None if tensors is None else tensors[i]
        yield bridge.wrap(value, bwd.forward.operands[i], node.edges[i]) if given is None else given
    for k, value in zip(bwd.save_out, values):
        yield bridge.wrap(value, bwd.specs[k], (node, k))


class Packed:
    """Saved values as a pack hook has left them."""

    __slots__ = ("packed", "unpack_hook")

    def __init__(self, tensors, pack, unpack):
        self.unpack_hook = unpack
        self.packed = tuple([pack_one(pack, t) for t in tensors])

    def __len__(self):
        return len(self.packed)

    def unpack(self, cotangents):
        """The values; `cotangents` are at hand for those who recompute (they should not start earlier)."""
        me = tls.me
        before = me.extra.get("cotangents")
        me.put("cotangents", cotangents)
        try:
            return tuple(bridge.unwrap(unpack_one(self.unpack_hook, p))[0] for p in self.packed)
        finally:
            me.put("cotangents", before)


def pack_one(pack, tensor):
    """Call a pack hook on a tensor, outside of any other hooks and off the tape."""
    me = tls.me
    before, hooks = me.grad, me.extra.pop("saved_hooks", None)
    version = tensor._storage.version
    me.grad = False
    try:
        packed = pack(tensor)
    finally:
        me.grad = before
        if hooks is not None:
            me.extra["saved_hooks"] = hooks
    if tensor._storage.version != version:
        raise RuntimeError("A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook "
                           "cannot be modified by in-place operations as this can lead to unexpected side-effects. Please open an "
                           "issue if you need to perform in-place operations on the input to a pack hook.")  # fmt: skip
    return packed


def as_it_is(tensor):
    """A tensor off the tape with the value that this one has now, whatever is written to it later."""
    if tensor._storage.value is tensor._storage.host is None:  # only its class knows
        return bridge.outer(tensor)
    spec = tensor._spec
    return bridge.wrap(bridge.unwrap(tensor)[0], Spec.dense(tuple(spec.shape), spec.dtype, spec.device), None)


def unpack_one(unpack, packed):
    got = unpack(packed)
    if not hasattr(got, "_spec"):
        raise TypeError(
            f"Output of saved tensor unpack_hook expected to be a Tensor but got result of type {type(got).__name__}"
        )
    return got


_classes: dict[str, type] = {}


def class_of(name, base=Node) -> type:
    """The subclass of Node that carries a derivative's name, as PyTorch's nodes do."""
    found = _classes.get((name, base))
    if found is None:
        found = _classes[name, base] = type(name, (base,), {"__slots__": (), "__module__": "torch.autograd.graph"})
    return found
