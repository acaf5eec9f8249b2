"""The calls of a profile: while one is taken, the code of every public function is exchanged for one that notes it.

What is exchanged comes back when the profile ends, so nothing is asked while there is none. Of a call the time is that of
recording it; in eager mode it is that of running it.
"""

import itertools
import threading
import time

import jax

from ..autograd import engine
from ..core import ledger, program
from ..core.lanes import is_traced
from ..core.record import Pending, tls
from ..data.iterators import _BaseDataLoaderIter
from ..dispatch import override
from ..optim.optimizer import (
    Optimizer,
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)
from ..tensor import Tensor
from .events import Span
from .names import operator_name


class Calls:
    """What is noted of calls: `spans`, in the order in which they have ended."""

    def __init__(self, shapes=False, stacks=False):
        self.shapes = shapes
        self.stacks = stacks
        self.spans = []
        self._inside = threading.local()
        self._exchanged = []
        self._handles = []

    # -- on and off

    def start(self) -> None:
        """Note calls from now on."""
        override.WATCH.append(self._called)
        override.modes_changed(1)
        self._exchanged = [_Watch(self, fn, name) for fn, name in _AROUND] + [_Passes(engine.Run.run_all, False)]
        for each in self._exchanged:
            each.exchange(True)
        self._handles = [
            register_optimizer_step_pre_hook(self._before_step),
            register_optimizer_step_post_hook(self._after_step),
        ]
        tls.me.put("profile", self)  # a backward pass that is noted would be repeated without running its nodes

    def stop(self) -> None:
        """Note no more."""
        tls.me.put("profile", None)
        for each in self._handles:
            each.remove()
        for each in self._exchanged:
            each.exchange(False)
        override.modes_changed(-1)
        override.WATCH.remove(self._called)

    # -- one span

    def add(self, name, start, shapes=(), annotation=False, stack=(), apart=False) -> None:
        """A span that ends now."""
        end = time.perf_counter_ns()
        self.spans.append(Span(name, start, end, threading.get_native_id(), shapes, stack, annotation, apart))

    def _called(self, entry, args, kwargs):
        name, inside = operator_name(entry, args), self._inside
        around = getattr(inside, "name", None)
        if name is None or name == around:  # an operator that leaves the work to the function of its name
            return entry.run(args, kwargs)
        shapes = input_shapes(entry, args, kwargs) if self.shapes else ()
        stack = python_stack() if self.stacks else ()
        inside.name = name
        start = time.perf_counter_ns()
        try:
            result = entry.run(args, kwargs)
            if tls.me.mode == "eager":
                _computed(result)
            return result
        finally:
            inside.name = around
            self.add(name, start, shapes, stack=stack)

    def _before_step(self, optimizer, args, kwargs):
        vars(self._inside).setdefault("steps", []).append(time.perf_counter_ns())

    def _after_step(self, optimizer, args, kwargs):
        started = vars(self._inside).get("steps")
        if started:  # the profile may have begun inside the step
            self.add(f"Optimizer.step#{type(optimizer).__name__}.step", started.pop(), annotation=True)


def _computed(result):
    """Wait for the tensors of a result."""
    for t in result if isinstance(result, (tuple, list)) else (result,):
        if isinstance(t, Tensor):
            value = t._storage.value
            if type(value) is not Pending and not is_traced(value):
                jax.block_until_ready(value)


class _Watch(override.Entry):
    """A function of jtorch's own that is noted under a name made of its arguments."""

    def __init__(self, calls, fn, naming):
        super().__init__(fn, False)
        self.calls = calls
        self.naming = naming

    def __call__(self, args, kwargs):
        names = self.naming(*args)
        start = time.perf_counter_ns()
        try:
            return self.real(*args, **kwargs)
        finally:
            for name in names:
                self.calls.add(name, start, annotation="#" in name)

    __slots__ = ("calls", "naming")


class _Passes(override.Entry):
    """A backward pass node by node, in the place of the loop that has all of it in one function."""

    __slots__ = ()

    def __call__(self, args, kwargs):
        run, order = args
        return run.run(order)


def _node_names(run, node, grads):
    return node.name(), f"autograd::engine::evaluate_function: {node.name()}"


_AROUND = [
    (engine.Run.run_node, _node_names),
    (engine.Run.run_python, _node_names),
    (program.run, lambda graph, cause, *rest: ("jtorch::flush",)),
    (Optimizer.zero_grad, lambda self, *rest: (f"Optimizer.zero_grad#{type(self).__name__}.zero_grad",)),
    (_BaseDataLoaderIter.__next__, lambda self: (f"enumerate(DataLoader)#{type(self).__name__}.__next__",)),
]  # fmt: skip

# --- what a call was given ----------------------------------------------------------------------------------------------

_NOT_OPERANDS = {"out", "inplace", "_stacklevel"}


def input_shapes(entry, args, kwargs) -> list:
    """The shapes of the arguments in the order of the parameters; [] for what is no tensor, lists of tensors too."""
    code, record = entry.plain, entry.fn.__globals__.get("_op")
    if record is None:
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    else:
        names = [p.name for p in record.params if p.name != "key"]
    given = dict(zip(names, args)) | kwargs
    found = [_shape(given.get(n)) for n in names if n not in _NOT_OPERANDS]
    return found + [_shape(a) for a in args[len(names) :]]


def _shape(value):
    return list(value._spec.shape) if isinstance(value, Tensor) else []


def python_stack() -> list[str]:
    """The frames of the program above a call, innermost first, as "file(line): function"."""
    return [f"{name}({line}): {function}" for name, line, function in itertools.islice(ledger.user_frames(), 64)]
