"""torch.utils._debug_mode.DebugMode: a list of the operators that run inside, to print or to look at.

The operators are those that every TorchDispatchMode sees; those of a backward pass too, but with create_graph.
"""

import contextlib
import traceback

from ..nn.modules.hooks import register_module_forward_hook, register_module_forward_pre_hook
from ..overrides import TorchFunctionMode
from ..tensor import Tensor
from ._python_dispatch import TorchDispatchMode
from ._pytree import tree_flatten as flatten
from ._pytree import tree_unflatten
from .module_tracker import ModuleTracker
from .weak import WeakIdKeyDictionary

__all__ = ["DebugMode", "get_active_debug_mode"]

_active: list = []
_hooks: list = []
_logs: list = []


class _Ids:
    """A number for each tensor, in the order in which they are seen."""

    def __init__(self):
        self._known = WeakIdKeyDictionary()
        self._next = 0

    def __call__(self, t) -> int:
        if t not in self._known:
            self._known[t] = self._next
            self._next += 1
        return self._known[t]


def _tensor(t, attributes, ids):
    number = "" if ids is None else f"${ids(t)}"
    more = "".join(f", {name}={getattr(t, name)}" for name in attributes if hasattr(t, name))
    return f"t{number}: {t.dtype.abbr}[{', '.join(map(str, t.shape))}]{more}"


def _shown(value, attributes, ids):
    """An argument, with tensors as their dtypes and shapes."""
    leaves, tree = flatten(value)
    texts = [_tensor(x, attributes, ids) if isinstance(x, Tensor) else x for x in leaves]
    return str(tree_unflatten(texts, tree))


class _Call:
    """One line."""

    def __init__(self, depth, stack):
        self.call_depth = depth
        self.stack_trace = "".join(traceback.format_stack()[:-4]) if stack else None
        self.record = self.log = None
        self.output_str = ""

    def render(self) -> str:
        """The line, without its indentation."""
        log = f"  # {self.log}" if self.log else ""
        return f"{self.text()}{self.output_str}{log}"

    def __repr__(self):
        return self.render()


class _OpCall(_Call):
    """A call of an operator, or of a function of torch."""

    def __init__(self, op, args, kwargs, depth, stack):
        super().__init__(depth, stack)
        self.op, self.args, self.kwargs = op, args, kwargs
        self.args_str = self.kwargs_str = None

    def note(self, attributes, ids):
        """Write down the arguments as they are now."""
        self.args_str = ", ".join(_shown(a, attributes, ids) for a in self.args)
        self.kwargs_str = "".join(f", {k}={_shown(v, attributes, ids)}" for k, v in self.kwargs.items())

    def text(self):
        op = self.op
        if hasattr(op, "overloadpacket"):
            name = op.name()
        elif hasattr(op, "__module__") and hasattr(op, "__name__"):
            name = f"{op.__module__}.{op.__name__}"
        else:
            name = str(op)
        return f"{name}({self.args_str}{self.kwargs_str})"

    def __iter__(self):
        kept = (self.args, self.kwargs) if self.args is not None else (self.args_str, self.kwargs_str)
        return iter((self.op, *kept, self.call_depth))


class _NNModuleCall(_Call):
    """A module's forward begins."""

    def __init__(self, name, depth, stack):
        super().__init__(depth, stack)
        self.module_name = name

    def text(self):
        return f"[nn.Mod] {self.module_name}"

    def __iter__(self):
        return iter((f"[nn.Mod] {self.module_name}", (), {}, self.call_depth))


class DebugMode(TorchDispatchMode):
    """A context that keeps what is called: `print(mode.debug_string())`, or the list `mode.operators`.

    Args:
        record_torchfunction: functions of torch too, with the operators that they call below them
        record_nn_module: modules too
        record_tensor_attributes: names of attributes of tensors to show
        record_ids: number the tensors
        record_output: show results
        record_stack_trace: keep where each was called
        store_original_args: keep the arguments themselves, not only how they print
        record_realtensor: false: keep no operators
        record_faketensor, record_profiler_context, record_localtensor, run_compile_with_interpreter: accepted
    """

    def __init__(
        self, *, record_torchfunction=False, record_faketensor=False, record_realtensor=True, record_tensor_attributes=None,
        record_nn_module=False, store_original_args=False, record_stack_trace=False, record_output=True, record_ids=False,
        record_profiler_context=True, record_localtensor=True, run_compile_with_interpreter=False,
    ):  # fmt: skip
        super().__init__()
        self.record_torchfunction, self.record_realtensor = record_torchfunction, record_realtensor
        self.record_tensor_attributes = list(record_tensor_attributes or ())
        self.record_nn_module, self.store_original_args = record_nn_module, store_original_args
        self.record_stack_trace, self.record_output, self.record_ids = record_stack_trace, record_output, record_ids
        self.reset()

    def reset(self) -> None:
        """Forget what was kept."""
        self.operators = []
        self.call_depth = 0
        self._ids = _Ids() if self.record_ids else None

    @property
    def logs(self) -> list:
        """What was kept."""
        return self.operators

    def _show(self, value):
        return _shown(value, self.record_tensor_attributes, self._ids)

    def _run(self, func, types, args, kwargs):
        call = _OpCall(func, args, kwargs, self.call_depth + 1, self.record_stack_trace)
        call.note(self.record_tensor_attributes, self._ids)
        self.operators.append(call)
        is_op = hasattr(func, "overloadpacket")
        if is_op:
            for note in _logs:
                call.log = note(func, types, args, kwargs, call) or call.log
        self.call_depth += 1
        try:
            result = func(*args, **kwargs)
        finally:
            self.call_depth -= 1
        if self.record_output:
            call.output_str = f"  ->  {self._show(result)}"
        if is_op:
            for note in _hooks:
                call.record = {**(call.record or {}), **(note(func, types, args, kwargs, result) or {})}
            for after in (f for f in _logs if hasattr(f, "after")):
                call.log = after.after(func, types, args, kwargs, result) or call.log
        if not self.store_original_args:
            call.args = call.kwargs = None
        return result

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return self._run(func, types, args, kwargs or {}) if self.record_realtensor else func(*args, **(kwargs or {}))

    def __enter__(self):
        self._stack = contextlib.ExitStack()
        if self.record_torchfunction:
            self._stack.enter_context(_Functions(self))
        super().__enter__()
        _active.append(self)
        if self.record_nn_module:
            names = ModuleTracker()
            for handle in (
                register_module_forward_pre_hook(lambda module, args: self._module(names._name(module))),
                register_module_forward_hook(lambda *_: self._module(None)),
            ):
                self._stack.callback(handle.remove)
        return self

    def __exit__(self, *exc):
        super().__exit__(*exc)
        _active.remove(self)
        self._stack.close()

    def _module(self, name):
        if name is not None:
            self.operators.append(_NNModuleCall(name, self.call_depth + 1, self.record_stack_trace))
        self.call_depth += 1 if name is not None else -1

    def debug_string(self, show_stack_trace: bool | None = None) -> str:
        """One line a call, indented by how deep it is; with the place of each, where that was kept and is asked for."""
        show = self.record_stack_trace if show_stack_trace is None else show_stack_trace
        lines, last = [], None
        for call in self.operators:
            indent = "  " * (call.call_depth + 1)
            place = _place(call.stack_trace) if show and call.stack_trace else None
            if place is not None and place != last:
                lines.append(f"{indent}# {place}")
            last = place
            lines.append(indent + call.render())
        return "\n".join(lines)

    @staticmethod
    @contextlib.contextmanager
    def dispatch_hooks(record_hook=None, log_hook=None):
        """Inside, `record_hook(func, types, args, kwargs, result)` gives a dict kept as `call.record`, log_hook words for its line."""
        after = _After(log_hook) if log_hook is not None else None
        if record_hook is not None:
            _hooks.append(record_hook)
        if after is not None:
            _logs.append(after)
        try:
            yield
        finally:
            if record_hook is not None:
                _hooks.remove(record_hook)
            if after is not None:
                _logs.remove(after)

    @staticmethod
    def record_outputs():
        """Context: results are kept, copied, as `call.record["output"]`."""

        def keep(func, types, args, kwargs, result):
            leaves, tree = flatten(result)
            return {"output": tree_unflatten([x.clone() if isinstance(x, Tensor) else x for x in leaves], tree)}

        return DebugMode.dispatch_hooks(record_hook=keep)

    @staticmethod
    def log_tensor_hashes(hash_fn="norm", hash_inputs=False):
        """Context: a sum of each result is kept as `call.record["hash"]` and shown; `hash_fn` is "norm" or a function."""
        number = hash_fn if callable(hash_fn) else _norm

        def hashed(value):
            leaves, tree = flatten(value)
            return tree_unflatten([number(x) if isinstance(x, Tensor) else None for x in leaves], tree)

        def keep(func, types, args, kwargs, result):
            found = {"hash": hashed(result)}
            return {"input_hash": hashed((args, kwargs)), **found} if hash_inputs else found

        def say(func, types, args, kwargs, result):
            return str(keep(func, types, args, kwargs, result))

        return DebugMode.dispatch_hooks(record_hook=keep, log_hook=say)


def _norm(t):
    wide = t.double() if not t.is_complex() else t.to(dtype=t.dtype)
    return wide.detach().abs().sum().item()


class _After:
    """A function that gives words for a line when the result is there."""

    def __init__(self, function):
        self.after = function

    def __call__(self, *_):
        return None


class _Functions(TorchFunctionMode):
    """Passes on the functions of torch that are called."""

    def __init__(self, mode):
        super().__init__()
        self.mode = mode

    def __torch_function__(self, func, types, args=(), kwargs=None):
        return self.mode._run(func, types, args, kwargs or {})


def _place(trace):
    """The innermost line of a trace that is the program's own."""
    frames = [f for f in trace.split("  File ") if f.strip()]
    own = [f for f in frames if not any(mark in f.partition("\n")[0] for mark in ("/jtorch/", '"<'))]
    head, _, code = (own or frames)[-1].partition("\n")
    file, line, where = (part.strip() for part in head.split(",", 2))
    return (
        f"File: {file.strip(chr(34))}:{line.removeprefix('line ')} {where}, code: {code.strip().partition(chr(10))[0]}"
    )


def get_active_debug_mode() -> DebugMode | None:
    """The innermost mode that is on."""
    return _active[-1] if _active else None
