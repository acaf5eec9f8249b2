"""Which values of a graph may share memory, and which may be written to."""

from .. import script_types
from ..errors_extend import no_constructor
from ..ops import registry

_ANY = "any"  # memory from outside: inputs may all share it


def _may_share(kind) -> bool:
    return isinstance(kind, script_types.TensorType) or any(map(_may_share, kind.containedTypes()))


class AliasDb:
    """Which values of a graph may share memory: from Graph.alias_db(). What is not known to be fresh may be anything from outside."""

    def __init__(self, *args):
        raise no_constructor("AliasDb")

    @classmethod
    def _new(cls, graph):
        made = object.__new__(cls)
        made._graph, made._memory, made._written = graph, {}, set()
        for v in graph.inputs():
            made._memory[id(v)] = {_ANY} if _may_share(v.type()) else set()
        made._block(graph.block())
        return made

    def _of(self, value):
        return self._memory.get(id(value), set())

    def _block(self, block):
        for node in block.nodes():
            for inner in node.blocks():
                for v in inner.inputs():
                    self._memory[id(v)] = {_ANY} if _may_share(v.type()) else set()
                self._block(inner)
            self._node(node)

    def _node(self, node):
        kind, given = node.kind(), list(node.inputs())
        space, _, name = kind.partition("::")
        through = set()
        if kind in ("prim::If", "prim::Loop"):
            through = set().union(*(self._of(v) for b in node.blocks() for v in b.outputs()))
        elif kind == "prim::GetAttr" or space not in ("aten", "prim"):
            through = {_ANY}
        elif space == "prim":
            through = set().union(*map(self._of, given)) if kind != "prim::Constant" else set()
        elif given and (name.endswith("_") or name in registry.VIEWS or name in _VIEWS):
            through = self._of(given[0])
            if name.endswith("_"):
                self._written |= through
        for v in node.outputs():
            self._memory[id(v)] = (through or {id(v)}) if _may_share(v.type()) else set()

    def may_contain_alias(self, a, b) -> bool:
        """Whether two values, or lists of values, may share memory."""
        first, second = (v if isinstance(v, (list, tuple)) else [v] for v in (a, b))
        return any(self._of(x) & self._of(y) for x in first for y in second)

    def has_writers(self, value) -> bool:
        """Whether a node writes to memory that a value may have."""
        return bool(self._of(value) & self._written)

    def dump(self) -> None:
        """Print it."""
        print(self)

    def __str__(self):
        named = [*self._graph.inputs(), *(v for n in self._graph._all_nodes() for v in n.outputs())]
        shared = [
            f"%{v.debugName()} may share memory with "
            + ", ".join(f"%{w.debugName()}" for w in named if w is not v and self.may_contain_alias(v, w))
            for v in named
            if self._of(v)
        ]
        written = [f"%{v.debugName()}" for v in named if self.has_writers(v)]
        return "\n".join(
            [
                "",
                "===1. GRAPH===",
                str(self._graph),
                "===2. ALIAS DB===",
                *shared,
                "",
                "===3. Writes===",
                ", ".join(written),
                "",
            ]
        )


_VIEWS = {
    "contiguous",
    "to",
    "reshape",
    "flatten",
    "expand_as",
    "view_as",
    "chunk",
    "split",
    "unbind",
    "detach",
    "dropout",
}
