"""A compiled region: recorded as one program at its first call, replayed without Python once that is proven safe."""

import contextlib
import functools
import threading
import weakref

from ..core.record import tls
from ..tensor import Tensor
from . import failures, proof
from .arguments import flatten
from .aside import Aside, own, write_back
from .findings import Unproven, containers
from .outcome import Outcome
from .replay import Replay
from .snapshot import Snapshot

_MODES = (None, "default", "lite", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")
_BACKENDS = ("xla", "inductor", "eager", "aot_eager", "cudagraphs", "openxla")
_TRIES = 4  # recordings that may end unproven before a region is recorded for good
_ENTRIES = 16  # replays kept: one for each choice of guards


class Options:
    """What `torch.compile` was asked for, checked."""

    __slots__ = ("fullgraph", "dynamic", "backend", "mode", "options")

    def __init__(self, fullgraph, dynamic, backend, mode, options):
        if mode not in _MODES:
            raise failures.unrecognized_mode(mode, _MODES[1:])
        if mode is not None and options is not None:
            raise RuntimeError("Either mode or options can be specified, but both can't be specified at the same time.")
        if not callable(backend) and backend not in _BACKENDS:
            raise failures.invalid_backend(backend, _BACKENDS)
        self.fullgraph = fullgraph
        self.dynamic = dynamic
        self.backend = backend
        self.mode = mode
        self.options = options


class Scope:
    """An open region: programs are compiled at first sight, and each flush inside it is a break of the graph."""

    __slots__ = (
        "fullgraph",
        "breaks",
        "keys",
        "updates",
        "checks",
        "name",
        "unprovable",
        "operator",
        "aside",
        "literals",
    )

    def __init__(self, name, fullgraph):
        self.name = name
        self.fullgraph = fullgraph
        self.breaks = []
        self.keys = {}  # id of a random key drawn inside the region -> the key
        self.updates = []
        self.literals = []  # (value, spec) of tensors made of numbers that the code has
        self.checks = []  # of values: (op, arguments, the places in them)
        self.unprovable = None  # what in the region no replay can stand for
        self.operator = None  # the custom operator whose kernel runs: to PyTorch's compiler it is one opaque call
        self.aside = None  # arguments that have memory of their own for the moment

    def on_flush(self, cause, line):
        """Called before a flush inside the region; with fullgraph it is an error."""
        if self.operator is not None:
            self.unprovable = f"the kernel of {self.operator} needs values"
            return
        if self.fullgraph:
            raise failures.breaks(self.name, line, cause)
        self.breaks.append((cause, line))


STANCES = ("default", "force_eager", "eager_on_recompile", "fail_on_recompile", "eager_then_compile", "aot_eager_then_compile")  # fmt: skip
_SEES_NODES = {"saved_hooks", "anomaly"}  # of a thread's state what asks something of each node or its saved tensors
stance = ["default"]  # what torch.compiler.set_stance has set, for all threads


class _Told(threading.local):
    """What torch.compiler.is_compiling() says in this thread, whatever is recorded; None: what is."""

    value = None


told = _Told()
_silent = [0]  # how many blocks of all threads are told that nothing is compiled


@contextlib.contextmanager
def compiling(value):
    """Have torch.compiler.is_compiling() say this inside."""
    before, told.value = told.value, value
    _silent[0] += not value
    try:
        yield
    finally:
        _silent[0] -= not value
        told.value = before


class Region:
    """The compiled form of one function."""

    def __init__(self, fn, options, name):
        self.fn = fn
        self.options = options
        self.name = name
        self.replays = []  # the last one that was used first
        self.last = None  # the replay of the last call
        self.made = self.used = 0  # how many replays there have been; how many of them stood for a call
        self.tries = 0
        self.why = None  # why the region is recorded at every call
        self.seen = set()  # the tensors that it has been compiled for, as specs
        self.unsure = []  # guards of runs whose containers nobody has looked at again
        _regions.add(self)

    def __reduce__(self):
        """A copy of a region, or one from a file, has yet to be recorded."""
        return Region, (self.fn, self.options, self.name)

    def forget(self):
        """Be as before the first call."""
        self.replays.clear()
        self.seen.clear()
        self.unsure.clear()
        self.last = None
        self.tries = self.made = self.used = 0

    def __call__(self, *args, **kwargs):
        me = tls.me
        if (
            me.scope is not None
            or stance[0] != "default"
            and self.eager(args, kwargs)
            or _silent[0]
            and told.value is False
        ):
            return self.fn(*args, **kwargs)
        if (
            me.mode != "auto"
            or self.options.backend == "eager"
            and not self.options.fullgraph
            or me.special is not None
            or me.function_modes
            or me.extra
            and not _SEES_NODES.isdisjoint(me.extra)
        ):
            with compiling(True):
                return self.fn(*args, **kwargs)
        if self.tries >= _TRIES:
            return self.record(me, args, kwargs)
        given, tree = flatten(args, kwargs)
        leaves, pairs = given, ()
        for k, leaf in enumerate(given):
            if isinstance(leaf, Tensor) and leaf._storage.spec is not leaf._spec:
                made = own(leaf)
                if made is None:
                    return self.record(me, args, kwargs)
                if made is not leaf:
                    leaves = list(given) if leaves is given else leaves
                    leaves[k] = made
                    pairs = (*pairs, (leaf, made))
        if pairs and self.shared(given, pairs):
            return self.record(me, args, kwargs)
        for replay in self.replays:
            if replay.matches(me, leaves, tree, given):
                done, result = replay.run(me, leaves, given)
                if done:
                    if self.last is not replay:
                        self.came_back(replay)
                    write_back(pairs)
                    return result
        if len(self.replays) >= _ENTRIES and 2 * self.used < self.made:
            return self.record(me, args, kwargs)
        return self.prove(me, args, kwargs, pairs)

    def shared(self, given, pairs):
        """Whether the memory of an argument that is a view is known to another argument, or to a replay by another way."""
        views = [id(leaf._storage) for leaf, _ in pairs]
        held = [id(leaf._storage) for leaf in given if isinstance(leaf, Tensor)]
        if any(held.count(view) > 1 for view in views):
            return True
        return any(not replay.memory.isdisjoint(views) for replay in self.replays)

    def eager(self, args, kwargs):
        """Whether the stance has this call run as the function itself. RuntimeError: it would compile, and must not."""
        if stance[0] == "force_eager":
            return True
        specs = specs_of(flatten(args, kwargs)[0])
        if self.tries >= _TRIES or specs in self.seen:
            return False
        if stance[0] == "fail_on_recompile":
            raise RuntimeError(
                f"Detected recompile when torch.compile stance is 'fail_on_recompile'. function name: '{self.name}'"
            )
        if stance[0] != "eager_on_recompile":  # the others compile from the second call on
            self.seen.add(specs)
        return True

    def record(self, me, args, kwargs):
        """Run the Python; what it records stays in the thread's graph and is compiled at its next flush."""
        scope = me.scope = Scope(self.name, self.options.fullgraph)
        try:
            out = self.fn(*args, **kwargs)
        finally:
            me.scope = None
        if scope.updates:
            me.flush("compiled region")
        return out

    def prove(self, me, args, kwargs, pairs):
        """Run the Python watched; keep a replay if all that it read and did is understood. pairs: (a view, what replays take for it)."""
        me.flush("before a compiled region")
        scope = Scope(self.name, self.options.fullgraph)
        with Aside(scope, pairs):
            return self.proven(me, args, kwargs, scope)

    def proven(self, me, args, kwargs, scope):
        """As `prove`, where all arguments have memory of their own."""
        leaves, tree = flatten(args, kwargs)
        self.seen.add(specs_of(leaves))
        before = Snapshot(me, leaves)
        held = [g for g in self.unsure if g.hold()]
        me.scope = scope
        given = []
        containers(args, given)
        containers(kwargs, given)
        watch = proof.Watch(scope, given)
        try:
            with watch:
                out = self.fn(*args, **kwargs)
                outcome = Outcome(out, watch.young, leaves)
        finally:
            me.scope = None
        self.tries += 1
        replay, why = None, None
        if scope.breaks:
            why = f"the graph breaks at {scope.breaks[0][1]}: {scope.breaks[0][0]}"
        elif scope.unprovable is not None:
            why = scope.unprovable
        else:
            guards, reader, why = proof.state(watch, leaves, self.fn)
            watch = None  # it has what the region's functions had
            if why is None:
                try:
                    self.in_place(guards, held, reader.effects)
                    replay = Replay.make(me, before, scope, guards, leaves, tree, outcome, reader)
                except Unproven as reason:
                    why = str(reason)
        if replay is not None:
            self.keep(replay)
            if not replay.varies():
                self.tries = 0
        else:
            self.why = why
            if me.graph.pendings and scope.updates:
                me.flush("compiled region")
        return out

    def keep(self, replay):
        """A new replay, instead of the one that was used longest ago where there are many."""
        self.replays = [replay, *self.replays[: _ENTRIES - 1]]  # another thread may be going through the old list
        self.made += 1
        self.last = None

    def came_back(self, replay):
        """A replay has been used that was not the last one."""
        self.replays = [replay, *(other for other in self.replays if other is not replay)]
        self.last = replay
        self.used += not replay.used
        replay.used = True

    def in_place(self, guards, held, effects):
        """Unproven unless what the region has read is not changed in place by it.

        C code does that without a trace (`map(list.append, ...)`), so that a second run has to show that what can change is as the first
        one left it. held: the guards of earlier runs that did hold before this one.
        """
        live = guards.live()
        if not all(g.hold() for g in held):
            self.tries = self.tries if effects else _TRIES
            raise Unproven("changes in place what it reads")
        if not live <= set().union(*(g.live() for g in held)):
            self.unsure = [*self.unsure[1 - _TRIES :], guards]
            raise Unproven("reads what can be changed in place: a second run shows whether the region does that")


def specs_of(leaves):
    """What of the arguments a program is made for: the shapes and dtypes of the tensors among them."""
    return tuple(leaf._spec for leaf in leaves if isinstance(leaf, Tensor))


_regions = weakref.WeakSet()  # those that are in use, for `reset`


def compile_function(fn, options):
    """The compiled form of a function, with its name and docstring."""
    region = Region(fn, options, getattr(fn, "__qualname__", repr(fn)))

    @functools.wraps(fn)
    def compiled(*args, **kwargs):
        return region(*args, **kwargs)

    compiled._torchdynamo_orig_callable = fn
    compiled._region = region
    return compiled


def compile_module(module, options):
    """A module whose call is compiled; parameters, state_dict and attributes are those of the original."""
    return optimized_class()(module, Region(module.__call__, options, type(module).__name__))


def compile_with(model, options):
    """The form of a function or module that a backend of the program's own compiles."""
    from . import custom  # noqa: PLC0415  importing torch.fx and nn would double the time of `import jtorch`

    if not hasattr(model, "named_parameters"):
        return custom.captured(model, options)
    made = custom.Captured(model.__call__, options, type(model).__name__)
    _regions.add(made)
    return optimized_class()(model, made)


@functools.cache
def optimized_class():
    """The class of compiled modules."""
    from ..nn.modules.module import Module  # noqa: PLC0415  importing nn would double the time of `import jtorch`

    class OptimizedModule(Module):
        """What torch.compile makes of a Module."""

        __qualname__ = "OptimizedModule"

        _torchdynamo_compiled = True

        def __init__(self, mod, region):
            super().__init__()
            super().__setattr__("_orig_mod", mod)
            super().__setattr__("_region", region)

        @property
        def training(self):
            return self._orig_mod.training

        @training.setter
        def training(self, value):
            if "_orig_mod" in self._modules:  # Module's own __init__ sets it before
                self._orig_mod.training = value

        def __len__(self):
            return len(self._orig_mod)

        def forward(self, *args, **kwargs):
            return self._region(*args, **kwargs)

        def __call__(self, *args, **kwargs):
            own = self.__dict__
            if (
                own["_forward_hooks"]
                or own["_forward_pre_hooks"]
                or own["_backward_hooks"]
                or own["_backward_pre_hooks"]
            ):
                return super().__call__(*args, **kwargs)
            return own["_region"](*args, **kwargs)

        def __getattr__(self, name):
            if name == "_orig_mod":
                return self._modules["_orig_mod"]
            return getattr(self._orig_mod, name)

        def __dir__(self):
            return sorted({*dir(self._orig_mod), *super().__dir__()})

        def __setattr__(self, name, value):
            known = name in ("_orig_mod", "_region") or hasattr(type(self), name)
            if known or "_orig_mod" not in self.__dict__.get("_modules", ()):
                super().__setattr__(name, value)
            else:
                setattr(self._orig_mod, name, value)

        def __delattr__(self, name):
            if hasattr(type(self), name):
                super().__delattr__(name)
            else:
                delattr(self._orig_mod, name)

    return OptimizedModule


def reset():
    """Forget all replays."""
    for region in list(_regions):
        region.forget()
