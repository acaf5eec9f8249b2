"""What torch.jit.trace returns: functions and modules that run the graph of a trace."""

from .. import errors
from ..autograd.mode import no_grad
from ..errors_extend import no_constructor
from ..nn.modules.module import Module
from . import execute, tracing


class ScriptFunction:
    """A function that runs a graph."""

    def __init__(self, *args):
        raise no_constructor("ScriptFunction")

    @classmethod
    def _new(cls, name, graph, run):
        made = object.__new__(cls)
        made.name = made.__name__ = made.qualified_name = name
        made.graph = made.inlined_graph = graph
        made._run = run
        return made

    def __call__(self, *args, **kwargs):
        return self._run((), args, kwargs)

    def graph_for(self, *args, **kwargs):
        """The graph, which is one for all inputs."""
        return self.graph


class ScriptModule(Module):
    """The class of scripted and traced modules. A Module may derive from it, and runs as Python."""


class RecursiveScriptModule(ScriptModule):
    """The class of scripted modules: only traced ones are of it."""


class TracedModule(ScriptModule):
    """A module of a traced one: its parameters and submodules, without a forward of its own."""

    def __init__(self, module):
        super().__init__()
        self.__dict__.update(training=module.training, _parameters=module._parameters, _buffers=module._buffers)
        self._original = type(module).__name__
        for name, child in module._modules.items():
            self._modules[name] = None if child is None else TracedModule(child)

    @classmethod
    def _named(cls, name):
        made = object.__new__(cls)
        Module.__init__(made)
        made._original = name
        return made

    @property
    def original_name(self) -> str:
        """The name of the class that was traced."""
        return self._original

    def _get_name(self):
        return self._original

    def extra_repr(self) -> str:
        """The name of the class that was traced."""
        return f"original_name={self._original}"

    def forward(self, *args, **kwargs):
        """Raises: the graph is that of the outermost module."""
        raise errors.unsupported(
            "calling a part of a traced module", instead="the outermost one, or the part traced by itself"
        )


class TopLevelTracedModule(TracedModule):
    """A traced module: runs its graph with the parameters and buffers that it has now."""

    def __init__(self, module, traced):
        super().__init__(module)
        self.__dict__["_traced"] = traced  # {method: Traced}

    @property
    def graph(self):
        """The graph of forward, with everything inlined."""
        return self._traced["forward"].graph

    inlined_graph = graph

    def forward(self, *args, **kwargs):
        """Run the graph."""
        return self._traced["forward"]((self,), args, kwargs)

    def __getattr__(self, name):
        found = self.__dict__.get("_traced", {}).get(name)
        if found is not None:
            return lambda *args, **kwargs: found((self,), args, kwargs)
        return super().__getattr__(name)


def trace(
    func, example_inputs=None, optimize=None, check_trace=True, check_inputs=None, check_tolerance=1e-5, strict=True, _force_outplace=False,
    _module_class=None, _compilation_unit=None, example_kwarg_inputs=None, _store_inputs=True,
):  # fmt: skip
    """Run a function or module on example inputs, and return one that does the same calls again without its Python.

    Control flow, numbers and everything else that Python decides stay what they were. The result has `.graph`; of a module, its
    parameters are the module's. A second run of the graph is compared with the first one unless `check_trace` is False.
    """
    if isinstance(func, (ScriptFunction, ScriptModule)):
        return func
    owner = getattr(func, "__self__", None)
    if isinstance(owner, Module):
        if func.__name__ != "forward":
            raise AttributeError(
                "trace doesn't support compiling individual module's functions.\nPlease use trace_module"
            )
        func = owner
    args = example_inputs if isinstance(example_inputs, tuple) else (example_inputs,)
    args = args if example_inputs is not None else ()
    if isinstance(func, Module):
        inputs = args if example_kwarg_inputs is None else example_kwarg_inputs
        return trace_module(func, {"forward": inputs}, None, check_trace, check_inputs, check_tolerance)
    traced, result, _ = tracing.record(func, args, example_kwarg_inputs or {})
    if check_trace:
        tracing.checked(traced, (), args, example_kwarg_inputs or {}, result, check_tolerance)
    name = getattr(func, "__name__", "forward")
    return ScriptFunction._new("_lambda" if name == "<lambda>" else name, traced.graph, traced)


def trace_module(
    mod, inputs, optimize=None, check_trace=True, check_inputs=None, check_tolerance=1e-5, strict=True, **kwargs
):
    """trace of several methods of a module: `inputs` is {method: its arguments}."""
    found = {}
    names = {m: f"__module.{n}" for n, m in mod.named_modules() if n}
    for method, given in inputs.items():
        args, named = ((), given) if isinstance(given, dict) else (given if isinstance(given, tuple) else (given,), {})
        fn = mod if method == "forward" else getattr(mod, method)
        called = mod.forward if method == "forward" else fn
        traced, result, _ = tracing.record(_Named(fn, called), args, named, mod, scopes=names)
        found[method] = traced
        if check_trace:
            buffers = [(b, b.clone()) for b in mod.buffers()]  # a run in training changes them
            tracing.checked(traced, (mod,), args, named, result, check_tolerance)
            with no_grad():
                for b, before in buffers:
                    b.copy_(before)
    return TopLevelTracedModule(mod, found)


class _Named:
    """A callable with the signature of another."""

    def __init__(self, fn, like):
        self.fn, self.__wrapped__ = fn, like

    def __call__(self, *args, **kwargs):
        return self.fn(*args, **kwargs)


def function_of_graph(name, graph) -> ScriptFunction:
    """A function that runs a graph: one result, or a tuple."""

    def run(first, args, kwargs):
        found = execute.run(graph, args)
        return found[0] if len(found) == 1 else tuple(found)

    return ScriptFunction._new(name, graph, run)
