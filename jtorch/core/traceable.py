"""A program as one function for XLA: its nodes in order, and what the compilers of XLA have to be kept from.

Each is a module of its own: what is computed again and again (`cuts.py`), copied (`ties.py`), turned (`maps.py`), written before it has been read
(`shifts.py`), and numbers that are joined (`joins.py`).
"""

import jax

from . import cuts, joins, maps, shifts, ties
from .channel_order import convolves
from .packing import RUNTIME, plain


def of(prog):
    """All nodes of a program as one function, to be traced for its inputs and numbers."""
    nodes, out, pack = prog.nodes, prog.out, prog.pack
    position = {~i: k for k, i in enumerate(prog.used)}
    n_in = len(prog.used)
    on_cpu = prog.device.type == "cpu"
    tie = ties.Ties(nodes, prog.takers) if on_cpu else None
    apart, torn = (joins.unsafe(nodes) | shifts.unsafe(nodes), cuts.torn(nodes)) if on_cpu else ({}, ())
    hidden = joins.hidden(nodes)
    images = convolves(node.plan for node in nodes)
    run = {node.plan: node.plan.jit if images else node.plan.by_itself() for node in nodes}

    def program(*args):
        env = {}
        numbers = pack.unpack(args[n_in:])
        turning = maps.Maps() if images and on_cpu else None
        chains = cuts.Cuts(nodes, turning.known if turning else ()) if cuts.wanted(prog) else None
        for node in nodes:
            plan = node.plan
            got = [args[position[i]] if i < 0 else env[i] for i in node.ids]
            if node in apart:
                got = apart[node](got)
            if tie and node in tie.waits:
                got = tie.tied(node, got, env)
            function = run[plan]
            if node.numbers is RUNTIME:
                got += numbers[node]
            elif node.numbers:
                got += joins.unknown(node.numbers, got) if node in hidden else map(plain, node.numbers)
                function = function.__wrapped__
            result = turning.result(node, function, got) if turning else function(*got)
            if node.first in torn:
                result = cuts.stored(result)
            if chains:
                result = chains.made(node, got, result)
            env.update(enumerate([result] if plan.n_out == 1 else result, node.first))
        return [env[i] for i in out]

    program.__name__ = f"jtorch_{len(nodes)}_nodes"
    return jax.jit(program, donate_argnums=prog.donate)
