"""Programs with hardly anything to compute, run by numpy once they have come often: starting one of XLA's and waiting takes 30 to 100 us.

What an agent asks of its policy at each step, a chain of Markov's, a fit of four numbers: results of a few numbers, which are read at
once. The nodes' functions are joined into one without a loop; a primitive takes about a microsecond. How long a run takes is
counted from what the program is made of, never measured.
"""

import jax
import numpy as np

from .. import config
from .blas import one_thread
from .cuts import inner, primitives_of
from .hosted import steps_of
from .numpy_rules import ALIKE, SHORT, NotHere
from .packing import RUNTIME, plain
from .pending import LITTLE
from .pending import own as in_own_memory

ENOUGH = 16  # runs of XLA's program
NODES = 64
MOST = 60.0  # us of numpy's functions
# us of a primitive, of one of its elements, of a product of two numbers in a matrix product
_EACH, _ELEMENT, _PRODUCT = 1.0, 2e-3, 2e-4


def made(prog, state):
    """What runs a program, given the inputs and numbers of a graph that has been recorded up to `state`; None if it is not numpy's."""
    nodes, wanted = prog.nodes, set(prog.out)
    if config.deterministic or prog.device.type != "cpu" or len(nodes) > NODES:
        return None
    if any(s.dtype.np in SHORT for node in nodes for s in (*node.plan.specs, *node.plan.operands)):
        return None  # there a function that rounds in its own way is seen at once
    results = [s.nbytes for node in nodes for k, s in enumerate(node.plan.specs) if node.first + k in wanted]
    if max(results, default=LITTLE + 1) > LITTLE:
        return None
    try:
        if sum(_takes(primitives_of(node.plan)) for node in nodes) > MOST:
            return None
        return _joined(prog, state.nodes())
    except Exception:  # it takes other things than arrays, or something else that is none of numpy's
        return None


def _takes(jaxpr) -> float:
    """Microseconds that numpy takes for a jaxpr. Raises NotHere for loops."""
    takes = 0.0
    for eqn in jaxpr.eqns:
        within = inner(eqn)
        if eqn.primitive.name in ("scan", "while", "cond", "sort", "conv_general_dilated"):
            raise NotHere
        if within is not None and within.eqns and not eqn.primitive.name.startswith(("reduce", "scatter")):
            takes += _takes(within)
            continue
        takes += _EACH + _ELEMENT * max(v.aval.size for v in (*eqn.invars, *eqn.outvars))
        if eqn.primitive.name == "dot_general":
            left = eqn.params["dimension_numbers"][0][0]
            shape = eqn.invars[0].aval.shape
            takes += _PRODUCT * eqn.outvars[0].aval.size * int(np.prod([shape[d] for d in left]))
    return takes


def _multiplies(jaxpr) -> bool:
    """Whether there is a product of matrices, for which numpy's library has threads."""
    return any(
        eqn.primitive.name == "dot_general" or (within := inner(eqn)) is not None and _multiplies(within)
        for eqn in jaxpr.eqns
    )


_SOURCE = """
def call(inputs, numbers):
    with errstate(all="ignore"){threads}:
{lines}
    return {results}
"""


def _joined(prog, path):
    """All nodes as one function (inputs, numbers) -> results. Raises NotHere."""
    order = [node for node in path if node.numbers is RUNTIME]
    space = {"errstate": np.errstate, "one_thread": one_thread, "array": np.asarray, "own": in_own_memory}
    lines, at = [], {}

    def name(value, kind="c"):
        space[made := f"{kind}{len(space)}"] = value
        return made

    for i in prog.used:
        at[~i] = f"x{i}"
        lines.append(f"x{i} = array(inputs[{i}])")
    for node in prog.nodes:
        plan = node.plan
        shapes = [jax.ShapeDtypeStruct(tuple(s.shape), s.dtype.np) for s in plan.operands]
        steps = plan.steps or steps_of(plan, (*shapes, *[kind(1) for kind in plan.kinds]), ALIKE)
        if not steps:
            raise NotHere
        plan.steps = steps
        values = [at[i] for i in node.ids]
        if node.numbers is RUNTIME:
            where = order.index(node)
            for k, dtype in enumerate(steps.dtypes[len(values) :]):
                made = name(dtype, "n")
                lines.append(f"r{made} = array(numbers[{where}][{k}], {made})")
                values.append(f"r{made}")
        else:
            own = zip(map(plain, node.numbers), steps.dtypes[len(values) :])
            values += [name(np.asarray(x, dtype)) for x, dtype in own]
        for run, places in steps.steps:
            if places:
                made = name(run, "f")
                lines.append(f"v{made} = {made}({', '.join(values[k] for k in places)})")
                values.append(f"v{made}")
            else:
                values.append(name(run()))
        at.update((node.first + k, values[place]) for k, place in enumerate(steps.results))
    results = ", ".join(f"own({at[i]})" for i in prog.out)
    threads = ", one_thread()" * any(_multiplies(primitives_of(node.plan)) for node in prog.nodes)
    source = _SOURCE.format(threads=threads, lines="\n".join(" " * 8 + line for line in lines), results=f"[{results}]")
    exec(compile(source, f"<jtorch {len(prog.nodes)} nodes by numpy>", "exec"), space)
    return space["call"]
