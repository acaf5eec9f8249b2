"""A pass over a graph module, and what it gives."""

import abc
from typing import NamedTuple

from ....nn.modules.module import Module

__all__ = ["PassBase", "PassResult"]


class PassResult(NamedTuple):
    """The module after a pass, and whether the pass changed it."""

    graph_module: Module
    modified: bool


class PassBase(abc.ABC):
    """A pass: define `call(graph_module) -> PassResult`, and checks before and after it where there are any."""

    def __call__(self, graph_module):
        self.requires(graph_module)
        result = self.call(graph_module)
        self.ensures(graph_module)
        return result

    @abc.abstractmethod
    def call(self, graph_module) -> PassResult | None:
        """Change the module."""

    def requires(self, graph_module) -> None:  # noqa: B027
        """Raise where the pass cannot run."""

    def ensures(self, graph_module) -> None:  # noqa: B027
        """Raise where the pass has left something wrong."""
