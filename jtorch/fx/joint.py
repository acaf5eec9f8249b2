"""Graphs of a function's forward and backward pass in ATen's operators, for compilers of the program's own.

`aot_function` runs a function once to see what it gives, has `make_fx` write down both passes as one graph, cuts that in two, and
hands each half to a compiler. What the compilers return runs as a `torch.autograd.Function`.
Source: https://docs.pytorch.org/functorch/stable/notebooks/aot_autograd_optimizations.html
"""

import functools

from ..autograd import entry
from ..autograd.function import Function
from ..core.record import tls
from ..creation import ones_like
from ..dispatch.dispatched import OpOverload, writes
from ..func import functional_call
from ..nn.modules.module import Module
from ..tensor import Tensor
from ..utils import _pytree
from .codegen import CodeGen
from .experimental.proxy_tensor import Trace, get_proxy_mode
from .graph import Graph
from .graph_module import GraphModule
from .node import Node

__all__ = [
    "aot_autograd",
    "aot_function",
    "aot_module",
    "aot_module_simplified",
    "default_partition",
    "is_primal",
    "is_tangent",
]


def is_tangent(node) -> bool:
    """Whether a node of a joint graph is the gradient of a result."""
    return node.op == "placeholder" and "tangents" in str(node.target)


def is_primal(node) -> bool:
    """Whether a node of a joint graph is an argument of the function."""
    target = str(node.target)
    return node.op == "placeholder" and not is_tangent(node) and "fwd_seed" not in target and "fwd_base" not in target


def default_partition(joint_module, _joint_inputs, *, num_fwd_outputs, **options):
    """(forward, backward): a joint graph cut so that nothing is computed twice.

    The forward graph gives its results, then what the backward graph takes before the gradients of the results.
    """
    graph = joint_module.graph
    outputs = list(graph.output_node().args[0])
    backward = set()
    for node in graph.nodes:
        if is_tangent(node) or node.meta.get("partitioner_tag") or any(n in backward for n in node.all_input_nodes):
            backward.add(node)
    gradients = {n for n in outputs[num_fwd_outputs:] if isinstance(n, Node)}
    saved = [
        n
        for n in graph.nodes
        if n not in backward
        and n.op not in ("output", "get_attr")
        and (n in gradients or any(u in backward and u.op != "output" for u in n.users))
    ]
    primals, tangents = ([n for n in graph.nodes if test(n)] for test in (is_primal, is_tangent))
    return (
        _part(joint_module, primals, [*outputs[:num_fwd_outputs], *saved], lambda n: n not in backward),
        _part(joint_module, [*saved, *tangents], outputs[num_fwd_outputs:], backward.__contains__),
    )


def _part(module, inputs, outputs, here):
    """The part of a graph that takes these nodes' values and gives those, and of its writes those that are `here`."""
    made, of = Graph(), {}
    for node in inputs:
        of[node] = made.placeholder(node.name)
        of[node].meta = dict(node.meta)
    needed, stack = set(), [n for n in outputs if isinstance(n, Node)]
    stack += [n for n in module.graph.nodes if isinstance(n.target, OpOverload) and writes(n.target) and here(n)]
    while stack:
        node = stack.pop()
        if node not in of and node not in needed:
            needed.add(node)
            stack += node.all_input_nodes
    for node in module.graph.nodes:
        if node in needed:
            of[node] = made.node_copy(node, of.__getitem__)
    made.output(tuple(of[n] if isinstance(n, Node) else n for n in outputs))
    return GraphModule(module, made)


class _Passes:
    """A function of flat arguments, compiled for arguments of these kinds."""

    def __init__(self, fn, flat, tree, options):
        self.places = [k for k, x in enumerate(flat) if isinstance(x, Tensor)]
        self.fixed = list(flat)
        for k in self.places:
            self.fixed[k] = None
        self.fn, self.tree = fn, tree
        given = [flat[k].detach().clone().requires_grad_(flat[k].requires_grad) for k in self.places]
        again = [x.detach().clone().requires_grad_(x.requires_grad) for x in given]
        leaves = self.leaves(given)
        self.wanted = [k for k, x in enumerate(given) if x.requires_grad]
        self.differentiable = [
            k for k, o in enumerate(leaves) if isinstance(o, Tensor) and o.requires_grad and self.wanted
        ]
        self.others = [None if isinstance(o, Tensor) else o for o in leaves]
        self.out_places = [k for k, o in enumerate(leaves) if isinstance(o, Tensor)]
        decompositions = options["decompositions"] or {}
        if tls.me.grad and self.differentiable:
            self.joint(again, [ones_like(leaves[k].detach()) for k in self.differentiable], decompositions, options)
        else:
            module = Trace(decompositions).run(lambda *args: tuple(self.tensors(args)), again)
            self.forward, self.backward = (options["inference_compiler"] or options["fw_compiler"])(module, again), None

    def leaves(self, tensors):
        """The leaves of what the function gives for these tensors."""
        flat = list(self.fixed)
        for k, x in zip(self.places, tensors):
            flat[k] = x
        args, kwargs = _pytree.tree_unflatten(flat, self.tree)
        found, self.out_tree = _pytree.tree_flatten(self.fn(*args, **kwargs))
        return found

    def tensors(self, tensors):
        """Those of them that are tensors."""
        return [o for o in self.leaves(tensors) if isinstance(o, Tensor)]

    def joint(self, given, tangents, decompositions, options):
        """Make and compile the two passes."""

        def both(primals, tangents):
            outs = self.leaves(primals)
            graph = get_proxy_mode().tracer.graph
            before = len(graph.nodes)
            wanted = [primals[k] for k in self.wanted]
            found = entry.grad([outs[k] for k in self.differentiable], wanted, tangents, allow_unused=True)
            grads = [None] * len(primals)
            for k, g in zip(self.wanted, found):
                grads[k] = g
            for node in list(graph.nodes)[before:]:
                node.meta["partitioner_tag"] = "is_backward"
            return [outs[k] for k in self.out_places] + grads

        module = Trace(decompositions).run(both, (given, tangents))
        module.graph.set_codegen(CodeGen())
        module.recompile()
        n = len(self.out_places)
        forward, backward = options["partition_fn"](module, (given, tangents), num_fwd_outputs=n)
        kept = forward(*[x.detach().clone() for x in given])[n:]
        self.forward = options["fw_compiler"](forward, given)
        self.backward = (options["bw_compiler"] or options["fw_compiler"])(backward, [*kept, *tangents])

    def __call__(self, flat):
        tensors = [flat[k] for k in self.places]
        if self.backward is None:
            found = _called(self.forward, tensors)
        else:
            found = _Compiled.apply(self, *tensors)
        leaves = list(self.others)
        for k, o in zip(self.out_places, found):
            leaves[k] = o
        return _pytree.tree_unflatten(leaves, self.out_tree)


class _Compiled(Function):
    """One call of a function whose passes are compiled."""

    @staticmethod
    def forward(ctx, passes, *tensors):
        found = _called(passes.forward, tensors)
        n = len(passes.out_places)
        outs, kept = found[:n], found[n:]
        ctx.passes = passes
        ctx.numbers = [None if isinstance(x, Tensor) else x for x in kept]
        ctx.save_for_backward(*[x if isinstance(x, Tensor) else None for x in kept])
        ctx.mark_non_differentiable(*[o for k, o in zip(passes.out_places, outs) if k not in passes.differentiable])
        return tuple(o.view_as(o) if any(o is t for t in tensors) else o for o in outs)

    @staticmethod
    def backward(ctx, *grads):
        passes = ctx.passes
        kept = [x if x is not None else n for x, n in zip(ctx.saved_tensors, ctx.numbers)]
        tangents = [g for k, g in zip(passes.out_places, grads) if k in passes.differentiable]
        return None, *_called(passes.backward, [*kept, *tangents])


def _called(f, args):
    return list(f(list(args)) if getattr(f, "_boxed_call", False) else f(*args))


def _kind(x):
    """What a graph depends on of an argument."""
    if isinstance(x, Tensor):
        return x._spec, x.requires_grad
    return type(x), x


def aot_function(
    fn, fw_compiler, bw_compiler=None, partition_fn=default_partition, decompositions=None, num_params_buffers=0,
    keep_inference_input_mutations=False, inference_compiler=None, *, dynamic=False, enable_log=True, disable_functionalization=False,
):  # fmt: skip
    """`fn` with its forward and its backward pass compiled by `fw_compiler` and `bw_compiler`.

    Each compiler is called with a GraphModule of ATen's operators and example inputs, and returns a function of the same arguments.
    partition_fn: cuts the joint graph. decompositions: {operator: function called in its place}. The graphs are made anew for
    arguments of other shapes, dtypes or numbers. What writes to an argument stays in the graph as an operator that writes.
    """
    options = {
        "fw_compiler": fw_compiler, "bw_compiler": bw_compiler, "partition_fn": partition_fn, "decompositions": decompositions,
        "inference_compiler": inference_compiler,
    }  # fmt: skip
    made = []

    @functools.wraps(fn)
    def compiled(*args, **kwargs):
        flat, tree = _pytree.tree_flatten((args, kwargs))
        kinds = [_kind(x) for x in flat], tls.me.grad
        for of, tree_of, passes in made:
            if of == kinds and tree_of == tree:
                return passes(flat)
        passes = _Passes(fn, flat, tree, options)
        made.append((kinds, tree, passes))
        return passes(flat)

    return compiled


class _AheadOfTime(Module):
    """A module whose passes are compiled."""

    def __init__(self, mod, options):
        super().__init__()
        self.orig_module = mod

        def call(state, *args, **kwargs):
            return functional_call(mod, state, args, kwargs)

        self.__dict__["compiled"] = aot_function(call, **options)

    def forward(self, *args, **kwargs):
        mod = self.orig_module
        return self.compiled({**dict(mod.named_parameters()), **dict(mod.named_buffers())}, *args, **kwargs)


def aot_module(mod, *args, **kwargs):
    """A module around `mod` whose passes are compiled; see `aot_function`. Parameters and buffers are inputs of the graphs."""
    if not isinstance(mod, Module):
        raise AssertionError(f"expected mod to be nn.Module, got {type(mod)}")
    names = ("fw_compiler", "bw_compiler", "partition_fn", "decompositions")
    return _AheadOfTime(mod, {**dict(zip(names, args)), **kwargs})


def aot_module_simplified(
    mod, args, fw_compiler, bw_compiler=None, partition_fn=default_partition, decompositions=None, **options
):
    """As `aot_module`, for compilers of `torch.compile(backend=...)`: a function of the module's arguments."""
    chosen = {k: v for k, v in options.items() if k in ("inference_compiler", "keep_inference_input_mutations")}
    module = _AheadOfTime(
        mod,
        {"fw_compiler": fw_compiler, "bw_compiler": bw_compiler, "partition_fn": partition_fn, "decompositions": decompositions, **chosen},
    )  # fmt: skip

    def forward(*runtime_args):
        return module(*runtime_args)

    forward.zero_grad = mod.zero_grad
    forward.named_parameters = mod.named_parameters
    forward.named_buffers = mod.named_buffers
    return forward


def aot_autograd(**options):
    """A backend of `torch.compile` whose graphs, of both passes, go to `fw_compiler` and `bw_compiler`."""

    def backend(gm, example_inputs):
        return aot_module_simplified(gm, example_inputs, **options)

    return backend
