"""The package torch._higher_order_ops: its functions, which its modules of the same names must not hide."""

import sys

from ...namespaces import Namespace
from .higher_order import associative_scan, cond, foreach_map, map, scan, while_loop

__all__ = ["associative_scan", "cond", "foreach_map", "map", "scan", "while_loop"]


class _Package(Namespace):
    def __setattr__(self, name, value):
        if name not in __all__:  # an import of torch._higher_order_ops.map leaves the module here
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
