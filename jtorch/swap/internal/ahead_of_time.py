"""functorch.compile, torch._functorch.partitioners, torch._decomp, torch._dynamo.backends.common: tools for graphs of ATen's operators.

`fx/joint.py` makes such graphs. No operator of the op table is taken apart: the tables hold what a program registers.
"""

import functools

from ...compile import compile
from ...fx.joint import (
    aot_autograd,
    aot_function,
    aot_module,
    aot_module_simplified,
    default_partition,
    is_primal,
    is_tangent,
)

__all__ = [
    "aot_autograd", "aot_function", "aot_module", "aot_module_simplified", "core_aten_decompositions", "decomposition_table",
    "default_decompositions", "default_partition", "get_decompositions", "make_boxed_compiler", "make_boxed_func",
    "memory_efficient_fusion", "min_cut_rematerialization_partition", "nop", "register_decomposition", "remove_decompositions",
]  # fmt: skip

decomposition_table: dict = {}  # operator -> the function that a program has registered for it
default_decompositions: dict = {}


def make_boxed_func(f):
    """`f` as a function of one list of its arguments."""

    def boxed(args):
        return f(*args)

    boxed._boxed_call = True
    return boxed


def make_boxed_compiler(compiler):
    """A compiler whose functions take one list of arguments."""

    @functools.wraps(compiler)
    def made(graph, example_inputs):
        return make_boxed_func(compiler(graph, example_inputs))

    return made


@make_boxed_compiler
def nop(graph, example_inputs):
    """The compiler that leaves a graph as it is."""
    return graph


def memory_efficient_fusion(fn, **kwargs):
    """torch.compile: XLA decides what is kept and what is computed again."""
    return compile(fn)


# What a forward pass keeps, and what the backward pass computes again, XLA decides within the program of each.
min_cut_rematerialization_partition = default_partition
_is_primal, _is_tangent = is_primal, is_tangent


# --- decompositions ------------------------------------------------------------------------------------------------


def register_decomposition(aten_op, registry=None, *, type="post_autograd", unsafe=False):
    """A decorator: the function is noted for these operators. XLA takes operators as they are, so it is not called."""

    def note(fn):
        table = decomposition_table if registry is None else registry
        table.update(dict.fromkeys(aten_op if isinstance(aten_op, (list, tuple)) else [aten_op], fn))
        return fn

    return note


def get_decompositions(aten_ops, type="post_autograd") -> dict:
    """Of the functions that a program has registered those for these operators, or their overloads."""
    wanted = set(aten_ops)
    named = lambda op: op in wanted or getattr(op, "overloadpacket", None) in wanted
    return {op: fn for op, fn in decomposition_table.items() if named(op)}


def core_aten_decompositions() -> dict:
    """Nothing: no operator is taken apart."""
    return {}


def remove_decompositions(decompositions: dict, aten_ops) -> None:
    """Take operators, or packets with all their overloads, out of a table."""
    gone = set(aten_ops)
    for op in [op for op in decompositions if op in gone or getattr(op, "overloadpacket", None) in gone]:
        del decompositions[op]
