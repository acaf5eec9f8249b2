"""A recorded path run node by node: by the executables of its operations, or by numpy."""

import jax

from . import by_numpy, hasty, hosted
from .device import place_of
from .packing import RUNTIME, Packing, narrowed, placed, plain


def run(prog, inputs, numbers):
    """The results of a program, small ones perhaps as numpy's arrays. Raises by_numpy.TooMuch before long."""
    outs = run_nodes(prog.nodes, inputs, numbers, prog.out, prog)
    if any(isinstance(x, jax.core.Tracer) for x in outs):
        with jax.ensure_compile_time_eval():
            outs = run_nodes(prog.nodes, inputs, numbers, prog.out, prog)
    return outs


def needed(path, out):
    """The nodes on which the results `out` depend, in order."""
    need = set(out)
    nodes = []
    for node in reversed(path):
        if any(i in need for i in range(node.first, node.count)):
            nodes.append(node)
            need.update(i for i in node.ids if i >= 0)
    nodes.reverse()
    return nodes


def run_nodes(nodes, inputs, numbers, out, prog=None):
    """Results `out` of a recorded path, each node run by its own executable or by numpy. Raises by_numpy.TooMuch before long."""
    if prog is None:
        pack = Packing(nodes, nodes, nodes[-1].plan.device)
        nodes = needed(nodes, out)
    else:
        pack = prog.pack
    at = {id(node): k for k, node in enumerate(pack.order)}
    values = [numbers[at[id(n)]] if n.numbers is RUNTIME else tuple(map(plain, n.numbers)) for n in nodes]
    if pack.narrow:
        values = [tuple(map(narrowed, of_node)) for of_node in values]
    if prog is not None and prog.by_numpy:
        return by_numpy.run(lambda call: _walk(nodes, inputs, values, out, call), prog.device)
    if prog is None or place_of(prog.device) is not None:
        return _walk(nodes, inputs, values, out, executed)
    return hosted.on_device(_walk(nodes, inputs, values, out, _executed_here))


def _walk(nodes, inputs, values, out, call):
    """Results `out` of nodes that `call(plan, operands, numbers)` runs; others are let go of when nothing needs them any more."""
    last = {}
    for k, node in enumerate(nodes):
        for i in node.ids:
            last[i] = k
    keep = set(out)
    env = {}
    for k, node in enumerate(nodes):
        results = call(node.plan, [inputs[~i] if i < 0 else env[i] for i in node.ids], values[k])
        env.update(zip(range(node.first, node.count), results))
        del results
        for i in node.ids:
            if i >= 0 and last[i] == k and i not in keep:
                env.pop(i, None)
    return [env[i] for i in out]


def executed(plan, args, values):
    """The results of a node's own executable."""
    call = (plan.alone or plan.jit) if plan.warm >= plan.enough else plan.first or hasty.of_plan(plan)
    if args:
        result = call(*args, *values)
    else:
        with placed(plan.device):
            result = call(*values)
    plan.warm += 1
    return (result,) if plan.n_out == 1 else result


def _executed_here(plan, args, values):
    """The same for a walk whose values may be numpy's arrays: an operation that numpy runs leaves its results so."""
    if plan.warm < plan.enough:
        first = plan.first or hasty.of_plan(plan)
        if type(first) is hosted.Hosted:
            results = first.kept(args, values)
            if results is not None:
                plan.warm += 1
                return results
    return executed(plan, hosted.owned(args), values)
