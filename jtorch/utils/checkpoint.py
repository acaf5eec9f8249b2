"""torch.utils.checkpoint: keep the inputs of a region instead of its activations, and compute those again in backward.

What is computed again is recorded into the same graph as the first time, where XLA would merge the two and keep
everything after all. So the inputs of the recomputation pass a barrier together with the gradients that ask for it:
then it is another computation, and one that cannot start before backward gets there.
"""

import contextlib
import functools
import weakref
from collections import defaultdict

from .. import errors
from ..amp.autocast import remembered as remembered_autocast
from ..autograd.entry import backward as run_backward
from ..autograd.function import Function
from ..autograd.graph import saved_tensors_hooks
from ..autograd.mode import enable_grad, no_grad
from ..autograd.node import PythonNode, as_it_is
from ..core.record import Recomputed, tls
from ..core.spec import Spec
from ..creation import zeros
from ..dispatch.dispatched import has_dispatch
from ..dispatch.outer import off_tape
from ..dispatch.plans import key_spec
from ..random_tensors import default_generator
from ..tensor import Tensor, edge_of, value_of, wrap
from .barriers import behind_barrier
from .checkpoint_debug import OperatorLog, report
from .device_states import (
    DefaultDeviceType,
    check_backward_validity,
    detach_variable,
    get_device_states,
    set_device_states,
)
from .exec_group import GraphExecGroup
from .selective import (
    SAC_IGNORED_OPS,
    CheckpointPolicy,
    SelectiveCheckpointContext,
    create_selective_checkpoint_contexts,
)

_settings = {"early_stop": None, "debug": None}


class CheckpointError(RuntimeError):
    """A recomputation did not repeat the first computation."""


@contextlib.contextmanager
def _setting(name, value):
    before = _settings[name]
    _settings[name] = value
    try:
        yield
    finally:
        _settings[name] = before


def set_checkpoint_early_stop(enable):
    """Context: whether a recomputation ends as soon as what is needed has been computed, whatever `early_stop` the checkpoints inside got."""
    return _setting("early_stop", enable)


def set_checkpoint_debug_enabled(enabled):
    """Context: overrides the `debug` argument of every checkpoint inside."""
    return _setting("debug", enabled)


def noop_context_fn():
    """Two contexts that do nothing."""
    return contextlib.nullcontext(), contextlib.nullcontext()


# --- keeping recomputation apart from the computation -------------------------------------------------------------------


class _Source(PythonNode):
    """Stands for the history of a tensor that came into a region: it is no leaf there, but nothing leads on."""

    __slots__ = ()

    def apply(self, *grads):
        return ()


def _again(tensors, cotangents, leaves):
    """Tensors behind a barrier, off the tape: as leaves, or as results of something else where they were that."""
    if not tensors:
        return []
    outer = [has_dispatch(type(t)) for t in tensors]  # what those are nobody knows but their class
    values = _behind(tensors, cotangents, [k for k, of in enumerate(outer) if not of])
    made = []
    for k, t in enumerate(tensors):
        spec = Spec.dense(tuple(t._spec.shape), t._spec.dtype, t._spec.device)
        new = off_tape(t) if outer[k] else wrap(values[k] if k in values else value_of(t), spec)
        if t.requires_grad:
            if leaves or edge_of(t)[0] is t:
                new._rg = True
            else:
                new._edge = (_Source("CheckpointInput", (), (spec,)), 0)
        made.append(new)
    return made


def _behind(tensors, cotangents, plain):
    """{place: value behind a barrier} of those of some tensors that are on the first one's device."""
    if not plain:
        return {}
    device = tensors[plain[0]]._spec.device
    same = [k for k in plain if tensors[k]._spec.device is device]
    here = [(c, s) for c, s in cotangents if s.device is device]
    values = behind_barrier(
        [value_of(tensors[k]) for k in same], [tensors[k]._spec for k in same], [c for c, _ in here], [s for _, s in here]
    )  # fmt: skip
    return dict(zip(same, values))


def _cotangents():
    """The gradients that the running backward step has at hand, with their specs."""
    return tls.me.extra.get("cotangents") or []


# --- random state ------------------------------------------------------------------------------------------------------


class _Randomness:
    """Gives a recomputation the random numbers of the first time: the host's generator and the keys of kernels."""

    def __init__(self, preserve):
        self.preserve = preserve
        self.keys = []
        self.state = default_generator.state_bytes() if preserve else None

    @contextlib.contextmanager
    def recording(self):
        if not self.preserve:
            yield
            return
        extra = tls.me.extra
        before = extra.get("keys")

        def note(key):
            self.keys.append(key)
            return key if before is None else before(key)

        extra["keys"] = note
        try:
            yield
        finally:
            _put_back(extra, before)

    @contextlib.contextmanager
    def repeating(self):
        if not self.preserve:
            yield
            return
        extra = tls.me.extra
        before, now = extra.get("keys"), default_generator.state_bytes()
        default_generator.set_state(self.state)
        given = iter(self.keys)
        cotangents = _cotangents()

        def repeat(key):
            key = next(given, key)
            spec = key_spec()
            here = [(c, s) for c, s in cotangents if s.device is spec.device]
            return behind_barrier([key], [spec], [c for c, _ in here], [s for _, s in here])[0]

        extra["keys"] = repeat
        try:
            yield
        finally:
            _put_back(extra, before)
            default_generator.set_state(now)


def _put_back(extra, before):
    if before is None:
        extra.pop("keys", None)
    else:
        extra["keys"] = before


# --- the reentrant form ------------------------------------------------------------------------------------------------


class CheckpointFunction(Function):
    """A region as one step of the tape, whose backward runs the region again and backward through it."""

    @staticmethod
    def forward(ctx, run_function, preserve_rng_state, *args):
        """Compute off the tape."""
        check_backward_validity(args)
        ctx.run_function = run_function
        ctx.randomness = _Randomness(preserve_rng_state)
        ctx.slots = [k for k, a in enumerate(args) if isinstance(a, Tensor)]
        ctx.others = [None if isinstance(a, Tensor) else a for a in args]
        ctx.needs = [a.requires_grad for a in args if isinstance(a, Tensor)]
        ctx.save_for_backward(*[a for a in args if isinstance(a, Tensor)])
        ctx.special, ctx.autocast = tls.me.special, remembered_autocast()
        with no_grad(), ctx.randomness.recording():
            return run_function(*args)

    @staticmethod
    def backward(ctx, *grads):
        """Compute again on the tape, and go back through it."""
        run = tls.me.extra["run"]
        if run.wanted is not None:
            raise RuntimeError(
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an `inputs` parameter "
                "to .backward(). To resolve this error, you can either set use_reentrant=False, or call .backward() without "
                "passing the `inputs` argument."
            )
        cotangents = [(value_of(g), g._spec) for g in grads if isinstance(g, Tensor)]
        inputs = _again(ctx.saved_tensors, cotangents, leaves=True)
        for t, needed in zip(inputs, ctx.needs):
            t._rg = needed
        args = list(ctx.others)
        for k, t in zip(ctx.slots, inputs):
            args[k] = t
        me = tls.me
        special = me.special
        me.special = ctx.special
        before = me.extra.get("cotangents")
        me.put("cotangents", cotangents)
        try:
            with enable_grad(), ctx.randomness.repeating(), ctx.autocast():
                outputs = ctx.run_function(*args)
        finally:
            me.special = special
            me.put("cotangents", before)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        wanted = [(o, g) for o, g in zip(outputs, grads) if isinstance(o, Tensor) and o.requires_grad]
        if not wanted:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        run_backward([o for o, _ in wanted], [g for _, g in wanted])
        return (None, None, *(a.grad if isinstance(a, Tensor) else None for a in args))


# --- the form on saved-tensor hooks ------------------------------------------------------------------------------------


class _Handle:
    """Names one recomputed value."""


class _Holder:
    """What the tape keeps in the place of a saved tensor: for each backward pass the handle of its recomputed value."""

    def __init__(self):
        self.handles = {}


class _SaveInputs(Function):
    """Saves a region's tensor arguments as a step of the tape would, so that an outer checkpoint drops them too."""

    @staticmethod
    def forward(*tensors):
        return zeros(0)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, *grads):
        raise AssertionError("Did not expect to backward on this graph")


class _Frame:
    """One checkpointed region: what its forward pass saved, and how to compute that again."""

    def __init__(self, function, args, kwargs, recompute_context, randomness, early_stop, check):
        self.function = function
        self.args, self.kwargs = args, kwargs
        self.slots = [k for k, a in enumerate(args) if isinstance(a, Tensor)]
        self.named = [k for k, a in kwargs.items() if isinstance(a, Tensor)]
        tensors = [args[k] for k in self.slots] + [kwargs[k] for k in self.named]
        dummy = zeros(0, requires_grad=True)
        self.saver = _SaveInputs.apply(dummy, *tensors).grad_fn
        self.args = [None if isinstance(a, Tensor) else a for a in args]
        self.kwargs = {k: None if isinstance(a, Tensor) else a for k, a in kwargs.items()}
        self.recompute_context = recompute_context
        self.randomness = randomness
        self.early_stop = early_stop
        self.check = check
        self.special, self.autocast = tls.me.special, remembered_autocast()
        self.holders = []
        self.metadata = []
        self.counts = defaultdict(int)
        self.done = {}
        self.recomputed = defaultdict(weakref.WeakKeyDictionary)
        self.forward_completed = self.uneven = False

    def pack(self, tensor):
        holder = _Holder()
        self.holders.append(weakref.ref(holder))
        if self.check is not None:
            with no_grad():
                self.metadata.append(self.check(tensor))
        return holder

    def unpack(self, holder):
        extra = tls.me.extra
        group, run = extra.get("exec_group"), extra.get("run")
        key = group or (object() if run is None else run.token)
        if key is None:
            key = run.token = object()
        if not self.done.get(key):
            self.recompute(key)
            self.done[key] = True
            self.compare(key)
        if key not in holder.handles:
            overlap = (
                "Performing two backward calls that overlap (i.e. require the same saved activation in order to compute gradients) "
                "is not allowed while under the torch.utils.checkpoint.GraphExecGroup context. "
            )
            raise CheckpointError(
                "torch.utils.checkpoint: Unpack is being triggered for a tensor that was already unpacked once. "
                f"{overlap if group else ''}If you are calling ctx.saved_tensors in backward, make sure to do so only once. "
                "Otherwise please open an issue with details on your use case."
            )
        handle = holder.handles.pop(key)
        return self.recomputed[key].pop(handle)

    def recompute(self, key):
        me = tls.me
        cotangents = _cotangents()
        tensors = _again(self.saver.saved_tensors[1:], cotangents, leaves=False)
        args, kwargs = list(self.args), dict(self.kwargs)
        for k, t in zip(self.slots, tensors):
            args[k] = t
        for k, t in zip(self.named, tensors[len(self.slots) :]):
            kwargs[k] = t
        special = me.special
        me.special = self.special
        try:
            with (
                saved_tensors_hooks(lambda t: self.repack(key, t), lambda t: t),
                enable_grad(),
                self.randomness.repeating(),
                self.autocast(),
                self.recompute_context,
            ):
                self.function(*args, **kwargs)
        except Recomputed:
            pass
        finally:
            me.special = special

    def repack(self, key, tensor):
        at = self.counts[key]
        self.counts[key] = at + 1
        if at >= len(self.holders):
            if not self.forward_completed:  # a backward pass within the region: it saves more after that
                self.uneven = True
            else:
                raise CheckpointError(
                    "torch.utils.checkpoint: trying to save more tensors during recomputation than during the original forward "
                    "pass."
                )
            return as_it_is(tensor)
        holder = self.holders[at]()
        if holder is not None:
            handle = holder.handles[key] = _Handle()
            self.recomputed[key][handle] = as_it_is(tensor)
        if self.early_stop and at + 1 == len(self.holders):
            raise Recomputed
        return as_it_is(tensor)

    def compare(self, key):
        if self.uneven:
            return
        if self.counts[key] != len(self.holders):
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the original forward and "
                f"recomputation.\nNumber of tensors saved during forward: {len(self.holders)}\nNumber of tensors saved during "
                f"recomputation: {self.counts[key]}."
            )
        if self.check is None:
            return
        lines = []
        for k, (reference, was) in enumerate(zip(self.holders, self.metadata)):
            holder = reference()
            if holder is None or key not in holder.handles:
                continue
            now = self.check(self.recomputed[key][holder.handles[key]])
            if was != now:
                lines.append(f"tensor at position {k}:\nsaved metadata: {was}\nrecomputed metadata: {now}")
        if lines:
            raise CheckpointError(
                "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than during the "
                "forward pass.\n"
                + "\n".join(lines)
                + "\n.\n\nTip: `debug=True`, or `with set_checkpoint_debug_enabled(True):`, shows "
                "the operators of both passes."
            )


def _explained(unpack, first, second, holder):
    """Unpack; should that fail, say what ran the first and the second time."""
    try:
        return unpack(holder)
    except CheckpointError as error:
        raise CheckpointError(report(first, second)) from error


def _metadata(t):
    return {"shape": t.shape, "dtype": t.dtype, "device": t.device}


_CHECKS = {"default": _metadata, "none": None}


def _checkpoint_without_reentrant(function, preserve, context_fn, determinism_check, debug, early_stop, args, kwargs):
    debug = debug if _settings["debug"] is None else _settings["debug"]
    if debug and context_fn is not noop_context_fn:
        raise ValueError("debug=True is incompatible with non-default context_fn")
    if determinism_check not in _CHECKS:
        raise ValueError(f"determinism_check should be one of {list(_CHECKS)}, but got {determinism_check}")
    forward_context, recompute_context = logs = (OperatorLog(), OperatorLog()) if debug else context_fn()
    me = tls.me
    if not me.grad or "transforms" in me.extra or "taping" in me.extra:  # saved tensors are none of a hook's there
        with forward_context:
            return function(*args, **kwargs)
    randomness = _Randomness(preserve)
    early_stop = early_stop if _settings["early_stop"] is None else _settings["early_stop"]
    frame = _Frame(function, args, kwargs, recompute_context, randomness, early_stop, _CHECKS[determinism_check])
    unpack = functools.partial(_explained, frame.unpack, *logs) if debug else frame.unpack
    with saved_tensors_hooks(frame.pack, unpack), forward_context, randomness.recording():
        result = function(*args, **kwargs)
    frame.forward_completed = True
    return result


def checkpoint(
    function, *args, use_reentrant=None, context_fn=noop_context_fn, determinism_check="default", debug=False, early_stop=True,
    **kwargs,
):  # fmt: skip
    """Call `function(*args, **kwargs)` without keeping its activations; backward calls it again.

    Args:
        use_reentrant: True for the older form, one step of the tape; False, recommended, works with everything that
            backward can do
        context_fn: gives the contexts of the first and of the second call (`create_selective_checkpoint_contexts`)
        debug: should a recomputation differ, tell the operators of both times and where they were called
        determinism_check: "default" compares shapes, dtypes and devices of both times, "none" nothing
        early_stop: end the second call as soon as what is needed has been computed
        preserve_rng_state: give the second call the random numbers of the first. Default: True
    """
    if use_reentrant is None:
        errors.warn(
            "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. Starting in PyTorch 2.9, calling "
            "checkpoint without use_reentrant will raise an exception. use_reentrant=False is recommended, but if you need to "
            "preserve the current default behavior, you can pass use_reentrant=True. Refer to docs for more details on the "
            "differences between the two variants."
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if not use_reentrant:
        return _checkpoint_without_reentrant(
            function, preserve, context_fn, determinism_check, debug, early_stop, args, kwargs
        )
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    if context_fn is not noop_context_fn or debug is not False:
        raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
    return CheckpointFunction.apply(function, preserve, *args)


def checkpoint_sequential(functions, segments, input, use_reentrant=None, **kwargs):
    """Run a sequence of modules in `segments` pieces, each but the last one checkpointed."""
    if use_reentrant is None:
        errors.warn(
            "torch.utils.checkpoint.checkpoint_sequential: the use_reentrant parameter should be passed explicitly. In version "
            "2.9 we will raise an exception if use_reentrant is not passed. use_reentrant=False is recommended, but if you need "
            "to preserve the current default behavior, you can pass use_reentrant=True. Refer to docs for more details on the "
            "differences between the two variants."
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    if hasattr(functions, "children"):
        functions = list(functions.children())

    def piece(start, end):
        def forward(input):
            for j in range(start, end + 1):
                input = functions[j](input)
            return input

        return forward

    size = len(functions) // segments
    end = -1
    for start in range(0, size * (segments - 1), size):
        end = start + size - 1
        input = checkpoint(piece(start, end), input, use_reentrant=use_reentrant, preserve_rng_state=preserve)
    return piece(end + 1, len(functions) - 1)(input)


__all__ = [
    "SAC_IGNORED_OPS", "CheckpointError", "CheckpointFunction", "CheckpointPolicy", "DefaultDeviceType",
    "GraphExecGroup", "SelectiveCheckpointContext", "check_backward_validity", "checkpoint", "checkpoint_sequential",
    "create_selective_checkpoint_contexts", "detach_variable", "get_device_states", "noop_context_fn",
    "set_checkpoint_debug_enabled", "set_checkpoint_early_stop", "set_device_states",
]  # fmt: skip
