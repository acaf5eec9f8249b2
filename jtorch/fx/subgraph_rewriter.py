"""replace_pattern: every place of a graph that looks like a pattern becomes another graph."""

import copy
import dataclasses
import operator
from typing import NamedTuple

from ..nn.modules.module import Module
from ._symbolic_trace import symbolic_trace
from .graph import Graph
from .graph_module import GraphModule
from .node import Node, map_arg


class Match(NamedTuple):
    """A place that was replaced: its last node, and the nodes of the pattern with those of the graph."""

    anchor: Node
    nodes_map: dict


@dataclasses.dataclass
class ReplacedPatterns:
    """A place that was replaced, with the nodes that took its place."""

    anchor: Node
    nodes_map: dict
    replacements: list


def _graph_of(thing) -> Graph:
    if isinstance(thing, Graph):
        return thing
    return thing.graph if isinstance(thing, GraphModule) else symbolic_trace(thing).graph


class _Matcher:
    """Looks for a pattern from its results backwards; a placeholder of the pattern stands for anything."""

    def __init__(self, pattern):
        self.pattern = pattern
        returned = pattern.output_node().args[0]
        self.returning = list(dict.fromkeys(_nodes_in(returned)))

    def match(self, anchor):
        """{node of the pattern: node of the graph} where the last result of the pattern is `anchor`; else None."""
        found = {}
        if not self._same(self.returning[0], anchor, found):
            return None
        inner = {n for p, n in found.items() if p.op != "placeholder" and p not in self.returning}
        everything = {n for p, n in found.items() if isinstance(n, Node) and p.op != "placeholder"}
        if any(user not in everything for n in inner if isinstance(n, Node) for user in n.users):
            return None
        return found

    def _same(self, p, n, found):
        if not isinstance(p, Node):
            return self._same_value(p, n, found)
        if p in found:
            return found[p] is n
        if p.op == "placeholder":
            found[p] = n
            return True
        if not isinstance(n, Node) or p.op != n.op or not self._same_target(p, n) or n in found.values():
            return False
        found[p] = n
        return self._same_value(tuple(p.args), tuple(n.args), found) and self._same_value(
            dict(p.kwargs), dict(n.kwargs), found
        )

    @staticmethod
    def _same_target(p, n):
        if p.op == "call_module":
            one, two = (g.graph.owning_module for g in (p, n))
            if one is None or two is None:
                return p.target == n.target
            return type(one.get_submodule(p.target)) is type(two.get_submodule(n.target))
        if p.op == "get_attr":
            return p.target.rpartition(".")[2] == n.target.rpartition(".")[2]
        return p.target == n.target

    def _same_value(self, a, b, found):
        if isinstance(a, Node):
            return self._same(a, b, found)
        if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
            return len(a) == len(b) and all(self._same_value(x, y, found) for x, y in zip(a, b))
        if isinstance(a, dict) and isinstance(b, dict):
            return a.keys() == b.keys() and all(self._same_value(a[k], b[k], found) for k in a)
        return not isinstance(b, Node) and type(a) is type(b) and a == b


def _nodes_in(value):
    found = []
    map_arg(value, found.append)
    return found


def replace_pattern(gm, pattern, replacement) -> list:
    """Replace every place of a GraphModule that looks like `pattern` by `replacement`, both functions or modules; the matches.

    Places do not overlap; a node inside a place that is also used elsewhere makes it none.
    """
    return [Match(anchor=m.anchor, nodes_map=m.nodes_map) for m in _replace(gm, pattern, replacement)]


def replace_pattern_with_filters(
    gm,
    pattern,
    replacement=None,
    match_filters=None,
    ignore_literals=False,
    replacement_callback=None,
    node_name_match="",
) -> list:
    """replace_pattern where every filter, called with the match and both graphs, is true."""
    return _replace(gm, pattern, replacement, match_filters or (), replacement_callback)


def _replace(gm, pattern, replacement, filters=(), callback=None):
    graph, wanted = gm.graph, _graph_of(pattern)
    matcher, used, matches = _Matcher(wanted), set(), []
    for node in graph.nodes:
        found = matcher.match(node)
        if found is None:
            continue
        inside = {n for p, n in found.items() if p.op != "placeholder" and isinstance(n, Node)}
        if inside & used or any(p not in found for p in matcher.returning):
            continue
        match = Match(matcher.returning[0], found)
        if all(f(match, graph, wanted) for f in filters):
            used |= inside
            matches.append((match, inside))
    made, current = [], {}
    for match, inside in matches:
        new = _graph_of(callback(match, graph, wanted)) if callback is not None else _graph_of(replacement)
        values = [match.nodes_map.get(p) for p in wanted.nodes if p.op == "placeholder"]
        values = [current.get(v, v) if isinstance(v, Node) else v for v in values]
        inputs = [p for p in new.nodes if p.op == "placeholder"]
        if len(inputs) != len(values):
            raise AssertionError(f"the pattern has {len(values)} inputs and the replacement {len(inputs)}")
        val_map = dict(zip(inputs, values))
        replaced = [match.nodes_map[p] for p in matcher.returning]
        place = min((user for n in replaced for user in n.users), default=max(replaced).next)
        with graph.inserting_before(place):
            result = graph.graph_copy(new, val_map)
        results = result if isinstance(result, (tuple, list)) else (result,)
        for p, r in zip(matcher.returning, results):
            old = match.nodes_map[p]
            old.replace_all_uses_with(r)
            current[old] = r
        for n in sorted(inside, reverse=True):
            graph.erase_node(n)
        made.append(
            ReplacedPatterns(match.anchor, match.nodes_map, [n for p, n in val_map.items() if p.op != "placeholder"])
        )
    _take_targets(gm, replacement)
    gm.recompile()
    return made


def _take_targets(gm, replacement):
    """Give the module what the replacement needs and it has not, and take out what nobody uses any more."""
    gm.delete_all_unused_submodules()
    if not isinstance(replacement, Module):
        return
    for node in gm.graph.nodes:
        if node.op in ("call_module", "get_attr"):
            try:
                gm.get_submodule(node.target) if node.op == "call_module" else operator.attrgetter(node.target)(gm)
            except AttributeError:
                value = (
                    replacement.get_submodule(node.target)
                    if node.op == "call_module"
                    else operator.attrgetter(node.target)(replacement)
                )
                if isinstance(value, Module):
                    gm.add_submodule(node.target, copy.deepcopy(value))
                else:
                    setattr(gm, node.target, copy.deepcopy(value))


__all__ = ["Match", "replace_pattern", "replace_pattern_with_filters"]
