"""`backward` and `grad`: argument checks, starting gradients, and the engine's run."""

import jax.numpy as jnp

from .. import creation, errors, errors_func
from ..core.lanes import ByTracing
from ..core.record import tls
from ..core.spec import Spec
from ..creation import ones_like, zeros_like
from ..dispatch import outer
from ..dispatch.dispatched import has_dispatch
from ..tensor import Tensor, edge_of, grad_edge
from . import engine, outer_run
from .custom import set_tangent, tangent_of
from .levels import constant
from .node import AccumulateGrad, PythonNode, positions


def _sequence(x):
    return (x,) if isinstance(x, Tensor) or hasattr(x, "node") else tuple(x)


def _check_outputs(outputs):
    for x in outputs:
        if not isinstance(x, Tensor) and not hasattr(x, "node"):
            raise AssertionError("Expected output to be a torch.Tensor")


def _edge(x):
    """Where the gradient of a tensor or a GradientEdge goes."""
    if isinstance(x, Tensor):  # of a class that has a `node` of its own, perhaps
        return (x, 0) if x._rg and x._edge is None else grad_edge(x)
    if not hasattr(x, "node"):
        raise RuntimeError(f"all inputs have to be Tensors or GradientEdges, but got {type(x).__name__}")
    return (x.node.variable, 0) if isinstance(x.node, AccumulateGrad) else (x.node, x.output_nr)


def _spec_of(x):
    return x._spec if isinstance(x, Tensor) else x.node.out_spec(x.output_nr)


def _start(outputs, grads):
    """The gradient with which each output starts, checked against it."""
    started = []
    for k, (out, g) in enumerate(zip(outputs, grads)):
        spec = _spec_of(out)
        if g is None:
            if isinstance(out, Tensor) and out.requires_grad or not isinstance(out, Tensor):
                if spec.numel != 1:
                    raise RuntimeError("grad can be implicitly created only for scalar outputs")
                if not spec.dtype.is_floating_point:
                    raise RuntimeError(
                        f"grad can be implicitly created only for real scalar outputs but got {spec.dtype}"
                    )
            if has_dispatch(type(out)) or isinstance(out, Tensor) and "dispatch_modes" in tls.me.extra:
                g = outer.op("ones_like", out)
            else:
                g = ones_like(out) if spec.shape and isinstance(out, Tensor) else _seed(spec)
        elif not isinstance(g, Tensor):
            raise TypeError(f"gradients can be either Tensors or None, but got {type(g).__name__}")
        elif tuple(g._spec.shape) != tuple(spec.shape):
            raise RuntimeError(
                f"Mismatch in shape: grad_output[{k}] has a shape of {g._spec.shape} and output[{k}] has a shape of "
                f"{spec.shape}."
            )
        elif g._spec.dtype.is_complex != spec.dtype.is_complex:
            raise RuntimeError(
                "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: "
                f"grad_output[{k}] has a dtype of {g._spec.dtype} and output[{k}] has a dtype of {spec.dtype}."
            )
        started.append(g)
    if len(started) != len(outputs):
        raise RuntimeError(f"got {len(outputs)} tensors and {len(started)} gradients")
    return started


def _seed(spec):
    """The gradient of a loss by itself: what `ones_like` gives, by the shortest way."""
    return creation.constant("one", lambda: jnp.ones(tuple(spec.shape), spec.dtype.np), spec)


def _pairs(started, outputs, create_graph):
    pairs = []
    for g, out in zip(started, outputs):
        spec = _spec_of(out)
        if g._spec.dtype is not spec.dtype:
            g = g.to(spec.dtype)
        pairs.append((engine.bridge.unwrap(g)[0], edge_of(g) if create_graph else None, tangent_of(g)))
    return pairs


def backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False, grad_variables=None, inputs=None):
    """Add the gradients of `tensors` to the `.grad` of the leaves (or of `inputs` only).

    Raises RuntimeError where PyTorch does: no grad_fn, non-scalar output without a gradient, freed graph.
    """
    if "transforms" in tls.me.extra or "taping" in tls.me.extra:
        raise errors_func.backward_inside()
    if "lanes" in tls.me.extra:
        raise ByTracing
    if grad_variables is not None:
        errors.warn("`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning)
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`. Please only use "
                "`grad_tensors`."
            )
        grad_tensors = grad_variables
    if inputs is not None and len(_sequence(inputs)) == 0:
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    outputs = _sequence(tensors)
    grads = (None,) * len(outputs) if grad_tensors is None else _sequence(grad_tensors)
    started = _start(outputs, grads)
    roots = _roots(outputs)
    keep = create_graph if retain_graph is None else retain_graph
    if create_graph:
        errors.warn_once(
            "Using backward() with create_graph=True will create a reference cycle between the parameter and its gradient which can "
            "cause a memory leak. We recommend using autograd.grad when creating the graph to avoid this. If you have to use this "
            "function, make sure to reset the .grad fields of your parameters to None after use to break the cycle and avoid the leak."
        )
    if inputs is None:
        _pass(roots, started, outputs, keep, create_graph)
        return
    targets = []
    for t in _sequence(inputs):
        if isinstance(t, Tensor):
            t.retain_grad()
        targets.append(_edge(t) or edge_of(t) and (t, 0))  # a view without history of its own is not found
    _pass(roots, started, outputs, keep, create_graph, True, targets)


def _pass(roots, started, outputs, keep, create_graph, accumulate=True, targets=None):
    """The engine's run: gradients captured for `targets`, tensors or values with their edges."""
    extra = tls.me.extra
    if "run_class" not in extra and (
        "dispatch_modes" in extra and not create_graph or outer.STATE["made"] and outer_run.concerns(roots, started)
    ):
        return outer_run.backward(roots, started, keep, create_graph, accumulate, targets)
    return engine.backward(roots, _pairs(started, outputs, create_graph), keep, create_graph, accumulate, targets)


def _roots(outputs):
    roots = []
    for k, t in enumerate(outputs):
        edge = _edge(t)
        if edge is None:
            raise RuntimeError(f"element {k} of tensors does not require grad and does not have a grad_fn")
        roots.append(edge)
    return roots


def grad(
    outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, only_inputs=True, allow_unused=None,
    is_grads_batched=False, materialize_grads=False,
):  # fmt: skip
    """The gradients of `outputs` with respect to `inputs`, as a tuple; nothing is accumulated."""
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    allow_unused = bool(materialize_grads) if allow_unused is None else allow_unused
    outputs = _sequence(outputs)
    _check_outputs(outputs)
    wanted = _sequence(inputs)
    if not wanted:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    grads = (None,) * len(outputs) if grad_outputs is None else _sequence(grad_outputs)
    keep = create_graph if retain_graph is None else retain_graph
    if is_grads_batched:
        return _batched(outputs, wanted, grads, keep, create_graph, allow_unused, materialize_grads)
    started = _start(outputs, grads)
    roots = _roots(outputs)
    targets = []
    for t in wanted:
        edge = _edge(t) or edge_of(t) and (t, 0)  # a view without history of its own is not found, and not refused
        if edge is None:
            raise RuntimeError("One of the differentiated Tensors does not require grad")
        targets.append(edge)
    got = _pass(roots, started, outputs, keep, create_graph, False, targets)
    if not create_graph and "transforms" in tls.me.extra:
        got = [g and (constant(g[0]), None) for g in got]
    results = []
    for k, (t, g) in enumerate(zip(wanted, got)):
        spec = _spec_of(t)
        spec = Spec.dense(tuple(spec.shape), spec.dtype, spec.device)
        if g is None:
            if not allow_unused:
                raise RuntimeError(
                    f"The differentiated Tensor at index {k} appears to not have been used in the graph. Set allow_unused=True "
                    "if this is the desired behavior."
                )
            if materialize_grads and not isinstance(t, Tensor):
                raise RuntimeError("materialize_grads cannot be used when the given input is a GradientEdge")
            results.append(zeros_like(t, requires_grad=create_graph) if materialize_grads else None)
        elif isinstance(g, Tensor):
            results.append(g)
        else:
            results.append(engine.bridge.wrap(g[0], spec, g[1]))
            if len(g) == 3 and g[2] is not None:
                set_tangent(results[-1], g[2])
    return tuple(results)


def _batched(outputs, wanted, grads, keep, create_graph, allow_unused, materialize):
    """One run a row of the batched gradients; the rows' programs are one and the same."""
    if all(g is None for g in grads):
        if any(_spec_of(out).numel != 1 for out in outputs):
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        raise ValueError(
            "vmap(vjp, in_dims=0, ...)(<inputs>): Got in_dim=0 for some input, but that input is a Tensor of dimensionality 0 so "
            "expected in_dim to satisfy 0 <= in_dim < 0."
        )
    for k, (out, g) in enumerate(zip(outputs, grads)):
        if g is not None and tuple(g.shape[1:]) != tuple(_spec_of(out).shape):
            raise RuntimeError(
                "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch dimension. The sizes "
                "of the remaining dimensions are expected to match the shape of corresponding output, but a mismatch was detected: "
                f"grad_output[{k}] has a shape of {g.shape[2:]} and output[{k}] has a shape of {_spec_of(out).shape}. If you only want "
                "some tensors in `grad_output` to be considered batched, consider using vmap."
            )
    sizes = [g.shape[0] for g in grads if g is not None]
    n = sizes[0]
    if any(size != n for size in sizes):
        raise errors_func.mapped_sizes(sizes)
    rows = []
    for i in range(n):
        row = [None if g is None else g[i] for g in grads]
        rows.append(grad(outputs, wanted, row, True if i < n - 1 else keep, create_graph, True, allow_unused))
    stack = wanted[0].new_empty(()).__class__._stack
    found = [None if any(r[k] is None for r in rows) else stack([r[k] for r in rows]) for k in range(len(wanted))]
    if materialize:  # of a tensor that nothing depends on, and so of one size for all rows
        found = [zeros_like(t, requires_grad=create_graph) if g is None else g for t, g in zip(wanted, found)]
    return tuple(found)


def tensor_backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None):
    """Add the gradient of this tensor to the `.grad` of the leaves it depends on."""
    edge, spec = self._edge, self._spec
    if (
        gradient is inputs is None and edge is not None and self._base is None and not (create_graph or retain_graph or spec.shape)
        and spec.dtype.is_floating_point and not tls.me.extra and not outer.STATE["made"]
    ):  # fmt: skip
        engine.backward((edge,), ((_seed(spec)._storage.value, None),), False, False)  # a loss: the shortest way
        return
    backward(self, gradient, retain_graph, create_graph, inputs=inputs)


class _Alone(engine.Run):
    """One step by itself: what it gives goes to nobody else."""

    __slots__ = ("edges", "given")

    def give(self, edge, value, spec):
        k = next(k for k, e in enumerate(self.edges) if e is edge and self.given[k] is None)
        self.given[k] = self.tensor(value, spec)

    def skip(self, edge):
        pass


def step(node, grads):
    """What a call of a `grad_fn` gives: the gradients of its operands from those of its results."""
    if isinstance(node, AccumulateGrad):
        backward(node.variable, grads[0])
        return None
    if len(grads) != node.n_out():
        raise TypeError(f"expected {node.n_out()} arguments, got {len(grads)} instead")
    for k, g in enumerate(grads):
        if g is not None and not isinstance(g, Tensor):
            raise TypeError(f"argument {k} is not a Variable")
    run = _Alone(tls.me.grad, True, False)
    run.edges = node.edges
    run.given = [None] * len(node.edges)
    values = [run.untensor(g) for g in grads]
    if isinstance(node, PythonNode):
        run.run_python(node, values)
    elif any(v is not None for v in values):
        run.run_node(node, values)
    found = [None if k is None else run.given[k] for k in positions(node)]
    return found[0] if len(found) == 1 else tuple(found)


engine.bridge.step = step
Tensor.backward = tensor_backward
tensor_backward.__name__, tensor_backward.__qualname__ = "backward", "Tensor.backward"
__all__ = ["backward", "grad", "grad_edge"]
