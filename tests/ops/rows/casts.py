"""Rows of public functions: casts."""

from . import PROPERTIES, row

ROWS = [
    row("to"),
    row("bfloat16"),
    row("bool"),
    row("byte"),
    row("char"),
    row("double"),
    row("float"),
    row("half"),
    row("int"),
    row("long"),
    row("short"),
    row("cdouble"),
    row("cfloat"),
    row("chalf", skip=PROPERTIES, why="jax has no complex numbers of two float16: refused"),
]
