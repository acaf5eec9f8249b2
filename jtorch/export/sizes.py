"""A captured forward made good for other sizes: captured again with others, what moves with a size is computed from it."""

import dataclasses
import operator

from ..fx.node import Node
from ..tensor import Tensor
from ..utils import _pytree
from . import errors
from .dim import UNBOUNDED, ValueRanges

__all__ = ["generalise"]


def generalise(first, wanted, places, capture, checks):
    """Make sizes of the first capture nodes of it; (checks of the leaves, of their sizes to one another, ranges).

    `wanted` and `places` are what `specs.read` gives, and `capture(args, kwargs)` captures the forward. UserError: a size
    that was named must be what it is, or what another is. NotImplementedError: the forward computes with sizes otherwise.
    """
    search = _Search(first, wanted, places, capture)
    search.settle()
    wanted, points, runs = search.wanted, search.points, search.runs
    if not any(wanted):
        return checks, [], {}
    sources = {
        (k, d): [s.slope * p[s.root] + s.offset for p in points]
        for k, sizes in enumerate(wanted)
        for d, s in sizes.items()
    }
    merge = _Merge(first, sources)
    for column in zip(*(list(run.graph.nodes) for run in runs)):
        merge.node(column)
    first.outputs = [merge.value(values, None) for values in zip(*(r.outputs for r in runs))]
    checks = [
        (tuple(None if d in sizes else n for d, n in enumerate(c[0])), c[1]) if c[0] != "value" else c
        for c, sizes in zip(checks, wanted)
    ]
    return checks, _relations(wanted, places), _ranges(wanted)


# By how much the size of place k is changed, twice; tried in turn, since a forward may hold for few sizes alone. The second change
# is another multiple of the first for each place, so that what follows from one size follows from no other.
_STEPS = (
    lambda k: (2 * k + 3, 5 * (2 * k + 3) + k),
    lambda k: (k + 1, k + 2),
    lambda k: (-k - 1, -k - 2),
)


class _Search:
    """Which of the sizes that may change can: each by itself, or only together with another."""

    def __init__(self, first, wanted, places, capture):
        self.first, self.wanted, self.capture = first, wanted, capture
        self.base, self.where = {}, {}
        for x, sizes, place in zip(first.leaves, wanted, places):
            for d, s in sizes.items():
                self.where.setdefault(s.root, f"{place}.size()[{d}]")
                self.base.setdefault(s.root, (x.shape[d] - s.offset) // s.slope)

    @property
    def roots(self):
        return {s.root: s for sizes in self.wanted for s in sizes.values()}

    def settle(self):
        """Find points (sizes by name) and captures there, with fewer or joined names where the forward asks for it."""
        problem = self._try(list(self.roots))
        if problem is not None:
            for name, size in self.roots.items():
                if name not in self.roots or self._try([name]) is None:
                    continue
                other = next((n for n in self.roots if n != name and self._together(n, name)), None)
                if other is not None:
                    self._join(other, name)
                elif size.kind == "AUTO":
                    self._fix(name)
                elif isinstance(problem, NotImplementedError):
                    raise problem
                else:
                    raise errors.specialised(name, self.base[name], size.kind == "NAMED")
            problem = self._try(list(self.roots))
            if problem is not None:
                raise problem

    def _together(self, a, b):
        return self.base[a] == self.base[b] and self._try([a, b], equal=True) is None

    def _join(self, name, other):
        if "NAMED" in (self.roots[name].kind, self.roots[other].kind):
            raise errors.must_be_equal(*((n, self.where[n]) for n in (other, name)))
        self._replace(name, lambda s: dataclasses.replace(s, root=other))

    def _fix(self, name):
        self._replace(name, lambda s: None)

    def _replace(self, name, by):
        made = []
        for sizes in self.wanted:
            pairs = ((d, by(s) if s.root == name else s) for d, s in sizes.items())
            made.append({d: s for d, s in pairs if s is not None})
        self.wanted = made

    def _try(self, names, equal=False):
        """None where captures with other sizes of these names agree with the first; else the error."""
        places = {n: 0 if equal else k for k, n in enumerate(sorted(names))}
        failure = None
        for steps in _STEPS:
            changes = {n: steps(k) for n, k in places.items()}
            points = [self.base, *({n: v + changes.get(n, (0, 0))[k] for n, v in self.base.items()} for k in range(2))]
            if not all(self._allowed(sizes) for sizes in points[1:]):
                continue
            try:
                runs = [self.first] + [self.capture(*self._resized(sizes)) for sizes in points[1:]]
            except (RuntimeError, ValueError, IndexError, AssertionError) as e:
                failure = failure or e
                continue
            break
        else:
            return failure or errors.dynamic("no other sizes lie within their bounds")
        kinds = {tuple((n.op, n.target if n.op != "placeholder" else 0) for n in run.graph.nodes) for run in runs}
        if len(kinds) > 1:
            return errors.dynamic("it makes other calls for other sizes")
        self.points, self.runs = points, runs
        return None

    def _allowed(self, sizes):
        roots = self.roots
        return all(
            n >= 1 and (roots[name].high is UNBOUNDED or n <= roots[name].high)
            for name, n in sizes.items()
            if name in roots
        )

    def _resized(self, sizes):
        """The arguments with other sizes: rows again from the beginning."""
        dims, made = {}, {}  # by tensor: one that is given twice is one
        for x, sizes_of in zip(self.first.leaves, self.wanted):
            dims.setdefault(id(x), {}).update(sizes_of)
        for leaf in self.first.leaves:
            if id(leaf) in made:
                continue
            x = leaf
            for d, s in dims[id(leaf)].items():
                n = s.slope * sizes[s.root] + s.offset
                repeats = -(-n // max(x.shape[d], 1))
                x = x.repeat(*(repeats if k == d else 1 for k in range(x.dim()))).narrow(d, 0, n)
            made[id(leaf)] = x
        return _pytree.tree_unflatten([made[id(x)] for x in self.first.leaves], self.first.in_spec)


class _Merge:
    """Captures with several sizes, made one."""

    def __init__(self, first, sources):
        self.first, self.sources = first, sources

    def node(self, column):
        """Merge the arguments of the nodes that do the same in each capture."""
        node = column[0]
        if node.op in ("placeholder", "output"):
            return
        flat = [
            _pytree.tree_flatten((list(n.args), dict(n.kwargs)), is_leaf=lambda x: isinstance(x, Node)) for n in column
        ]
        if len({len(leaves) for leaves, _ in flat}) > 1:
            raise errors.dynamic(f"{node.name} takes another number of arguments for other sizes")
        merged = [self.value(values, node) for values in zip(*(leaves for leaves, _ in flat))]
        args, kwargs = _pytree.tree_unflatten(merged, flat[0][1])
        node.args, node.kwargs = tuple(args), kwargs

    def value(self, values, node):
        """A value that is the same in all captures, or a node that computes it from one size."""
        value = values[0]
        if isinstance(value, (Node, Tensor)) or all(type(v) is type(value) and v == value for v in values):
            return value
        if all(type(v) is slice for v in values):
            return slice(*(self.value(parts, node) for parts in zip(*((v.start, v.stop, v.step) for v in values))))
        what = "a result" if node is None else node.name
        if not all(type(v) is int for v in values):
            raise errors.dynamic(f"{what} depends on a size: {values[:2]}")
        for (leaf, d), sizes in self.sources.items():
            if sizes[1] == sizes[0]:
                continue
            slope, rest = divmod(values[1] - value, sizes[1] - sizes[0])
            offset = value - slope * sizes[0]
            if rest == 0 and values[2] == slope * sizes[2] + offset:
                return self._computed(leaf, d, slope, offset, node)
        raise errors.dynamic(f"{what} takes {value}, which follows from no single size")

    def _computed(self, leaf, d, slope, offset, node):
        first = self.first
        graph, holder = first.graph, self._placeholder(first.leaves[leaf])
        with graph.inserting_before(node if node is not None else graph.output_node()):
            found = graph.call_method("size", (holder, d))
            if slope != 1:
                found = graph.call_function(operator.mul, (found, slope))
            if offset:
                found = graph.call_function(operator.add, (found, offset))
        return found

    def _placeholder(self, t):
        """The placeholder of an input; a new one behind the others, where only its sizes are used."""
        first = self.first
        nodes = first.graph.find_nodes(op="placeholder")
        found = dict(zip(map(id, first.inputs), nodes)).get(id(t))
        if found is None:
            first.inputs = [*first.inputs, t]
            with first.graph.inserting_before(next(n for n in first.graph.nodes if n.op != "placeholder")):
                found = first.graph.placeholder(f"sizes_{len(nodes)}")
        return found


def _relations(wanted, places):
    """[(leaf, dimension, words, lowest, highest, None or (other leaf, its dimension, slope, offset of both))]."""
    made, holders = [], {}
    for k, (sizes, place) in enumerate(zip(wanted, places)):
        for d, s in sizes.items():
            words = f"{_plain(place)}.size()[{d}]"
            high = None if s.high is UNBOUNDED else s.high
            # PyTorch's programs hold for 0 and 1 too, unless forbidden by more than the default
            low = s.low if s.low > 2 else None
            if s.root not in holders:
                holders[s.root] = (k, d, words, s.slope, s.offset)
                low, high = (None if b is None else s.slope * b + s.offset for b in (low, high))
                if low is not None or high is not None:
                    made.append((k, d, words, low, high, None))
            else:
                made.append((k, d, words, None, None, (*holders[s.root], s.slope, s.offset)))
    return made


def _plain(place):
    """x['a'] for L['x']['a']."""
    name, _, rest = place[3:].partition("']")
    return name + rest


def check_sizes(leaves, relations) -> None:
    """Raise AssertionError where the sizes of a call are not what the program holds for."""
    for k, d, words, low, high, other in relations:
        n = leaves[k].shape[d]
        if low is not None and n < low:
            raise AssertionError(f"Guard failed: {words} >= {low}")
        if high is not None and n > high:
            raise AssertionError(f"Guard failed: {words} <= {high}")
        if other is not None:
            k2, d2, words2, slope2, offset2, slope, offset = other
            if (n - offset) * slope2 != (leaves[k2].shape[d2] - offset2) * slope:
                raise AssertionError(f"Guard failed: {_relation(words, slope, offset, words2, slope2, offset2)}")


def _relation(words, slope, offset, words2, slope2, offset2):
    if (slope, offset) == (slope2, offset2):
        return f"{words} == {words2}"
    if slope == slope2 == 1:
        return f"{words2} == {offset2 - offset} + {words}"
    if (slope2, offset2) == (1, 0):
        return f"{words} == {f'{offset} + ' if offset else ''}{slope} * {words2}"
    return f"{words} == {slope}*({words2} - {offset2})/{slope2} + {offset}"


def _ranges(wanted):
    found = {}
    for sizes in wanted:
        for s in sizes.values():
            name = f"{s.slope}*{s.root}" if s.slope != 1 else s.root
            name += f" {'-' if s.offset < 0 else '+'} {abs(s.offset)}" if s.offset else ""
            high = UNBOUNDED if s.high is UNBOUNDED else s.slope * s.high + s.offset
            found.setdefault(name, ValueRanges(s.slope * s.low + s.offset, high))
    return found
