"""The package torch._higher_order_ops: its functions, which its modules of the same names must not hide."""

import sys

from ...namespaces import Package
from .higher_order import associative_scan, cond, foreach_map, map, scan, while_loop

__all__ = ["associative_scan", "cond", "foreach_map", "map", "scan", "while_loop"]

sys.modules[__name__].__class__ = Package
