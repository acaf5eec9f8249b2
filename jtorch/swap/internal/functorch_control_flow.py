"""functorch.experimental.control_flow: cond and map under their first names."""

from .higher_order import cond, map

__all__ = ["cond", "map"]
