"""dynamic_shapes, as a program writes them: compared with the example inputs, and brought to one form."""

import dataclasses
import inspect
import itertools

from ..tensor import Tensor
from ..utils import _pytree
from . import errors
from .dim import UNBOUNDED, Dim, DimHint

__all__ = ["AdditionalInputs", "ShapesCollection", "Size", "read"]


@dataclasses.dataclass(frozen=True)
class Size:
    """A size that may change: `slope * root + offset`, where `root` is a Dim's name, or for a hint where the size is."""

    root: str
    slope: int = 1
    offset: int = 0
    low: int = 0
    high: object = UNBOUNDED
    kind: str = "NAMED"


def read(mod, args, kwargs, dynamic_shapes):
    """(for each leaf of the arguments {dimension: Size}, where each leaf is). Raises UserError where the two do not match."""
    inputs = named(mod, args, kwargs)
    if isinstance(dynamic_shapes, (ShapesCollection, AdditionalInputs)):
        dynamic_shapes = dynamic_shapes.dynamic_shapes(mod, args, kwargs)
    if isinstance(dynamic_shapes, dict):
        if set(dynamic_shapes) != set(inputs):
            raise errors.spec_names(list(inputs), list(dynamic_shapes))
        top = [(f"['{k}']", inputs[k], dynamic_shapes[k]) for k in inputs]
    else:
        if len(dynamic_shapes) != len(inputs):
            raise errors.spec_structure(
                f"`inputs` has {len(inputs)} elements, but `dynamic_shapes` has {len(dynamic_shapes)} elements"
            )
        top = [(f"[{k}]", value, spec) for k, (value, spec) in enumerate(zip(inputs.values(), dynamic_shapes))]
    by_name = {}
    for (path, value, spec), name in zip(top, inputs):
        leaves = leaves_of(value, spec, path, f"L['{name}']")
        by_name[name] = [(leaf, _sizes(leaf, wanted, where, source), source) for leaf, wanted, where, source in leaves]
    order = [*(name for name in inputs if name not in kwargs), *kwargs]  # as pytrees go through (args, kwargs)
    rows = [row for name in order for row in by_name[name]]
    _check_names(rows)
    return [sizes for _, sizes, _ in rows], [source for *_, source in rows]


def named(mod, args, kwargs):
    """The arguments by the names of their parameters."""
    bound = inspect.signature(mod.forward).bind(*args, **kwargs).arguments
    several = [
        p.name
        for p in inspect.signature(mod.forward).parameters.values()
        if p.kind is p.VAR_KEYWORD and p.name in bound
    ]
    for name in several:
        bound |= bound.pop(name)
    return bound


def leaves_of(value, spec, where, source):
    """(leaf, its specification, where that is, where the leaf is) of all leaves, in the order of pytrees."""
    if isinstance(value, (list, tuple)):
        inside = [(k, v, f"[{k}]") for k, v in enumerate(value)]
    elif isinstance(value, dict):
        inside = [(k, v, f"['{k}']") for k, v in value.items()]
    else:
        leaves = _pytree.tree_leaves(value)
        if len(leaves) == 1 and leaves[0] is value:
            yield value, spec, where, source
            return
        inside = [(k, v, f"[{k}]") for k, v in enumerate(leaves)]  # of a registered class
        value, spec = leaves, [None] * len(leaves) if spec is None else spec
    _check_form(value, spec, where)
    for key, v, path in inside:
        yield from leaves_of(v, spec[key], where + path, source + path)


def _check_form(value, spec, where):
    inputs, shapes = f"`inputs{where}`", f"`dynamic_shapes{where}`"
    if not isinstance(spec, (list, tuple, dict)) or isinstance(spec, dict) != isinstance(value, dict):
        kind = f"is a {type(spec)}" if isinstance(spec, (list, tuple, dict)) else "is not"
        raise errors.spec_structure(f"{inputs} is a {type(value)}, but {shapes} {kind}")
    if isinstance(value, dict):
        if set(value) != set(spec):
            raise errors.spec_structure(f"{inputs} has keys {list(value)}, but {shapes} has keys {list(spec)}")
    elif len(value) != len(spec):
        raise errors.spec_structure(f"{inputs} has {len(value)} elements, but {shapes} has {len(spec)} elements")


def _sizes(leaf, spec, where, source):
    """{dimension: Size} of one leaf."""
    if not isinstance(leaf, Tensor):
        if spec is not None and not isinstance(spec, (int, DimHint)):
            raise errors.spec_of_no_tensor(spec, where, type(leaf))
        return {}
    if spec is None:
        return {}
    shape = leaf.shape
    if isinstance(spec, dict):
        pairs = {}
        for d, wanted in spec.items():
            if type(d) is not int:
                raise TypeError(f"list indices must be integers or slices, not {type(d).__name__}")
            if not -len(shape) <= d < len(shape):
                raise IndexError("list assignment index out of range")
            pairs[d % len(shape)] = wanted
    elif isinstance(spec, (list, tuple)):
        if len(spec) != len(shape):
            raise errors.spec_length(spec, where, shape)
        pairs = dict(enumerate(spec))
    else:
        raise errors.spec_of_shape(spec, where)
    found = {}
    for d, wanted in pairs.items():
        place = f"{source}.size()[{d}]"
        if wanted is None or (isinstance(wanted, DimHint) and wanted.kind == "STATIC"):
            continue
        if type(wanted) is int:
            if wanted != shape[d]:
                raise errors.static_size(wanted, shape[d], place)
        elif isinstance(wanted, Dim):
            root = wanted.root
            found[d] = Size(root.__name__, wanted.slope, wanted.offset, root.min, root.max)
        elif isinstance(wanted, DimHint):
            if shape[d] < 2:
                if wanted.kind == "DYNAMIC":
                    raise errors.specialised_hint(wanted, shape[d], f"inputs{source[1:]}.shape[{d}]")
                continue
            high = UNBOUNDED if wanted.max is None else wanted.max
            found[d] = Size(place, low=2 if wanted.min is None else wanted.min, high=high, kind=wanted.kind)
        else:
            raise errors.spec_of_dimension(d, spec, where, wanted)
    return found


def _check_names(rows):
    """The sizes of the example fit the names: one number and one pair of bounds each, neither 0 nor 1."""
    known, at, derived = {}, {}, []
    for leaf, sizes, place in rows:
        for d, size in sizes.items():
            if size.kind != "NAMED":
                continue
            same = known.setdefault(size.root, size)
            if (same.low, same.high) != (size.low, size.high):
                raise errors.redefined(*(Dim(s.root, min=s.low, max=_bound(s.high)) for s in (same, size)))
            source, n = f"{place}.size()[{d}]", leaf.shape[d]
            if (size.slope, size.offset) != (1, 0):
                derived.append((size, source, n))
                continue
            first, value = at.setdefault(size.root, (source, n))
            if n != value:
                raise errors.unequal(source, n, first, value)
    for size, source, n in derived:
        value = at.setdefault(size.root, (source, (n - size.offset) // size.slope))[1]
        if n != size.slope * value + size.offset:
            name = (Dim(size.root) * size.slope + size.offset).__name__
            raise errors.not_derived(source, name, size.root, value, n)
    for name, (_, value) in at.items():
        size = known[name]
        if value < size.low or (size.high is not UNBOUNDED and value > size.high):
            raise errors.out_of_range(value, size.low, size.high)
        if value < 2:
            raise errors.specialised(name, value)


def _bound(high):
    return None if high is UNBOUNDED else high


class ShapesCollection:
    """dynamic_shapes by tensor: `collection[tensor] = {0: dim}`, for inputs that are found more easily than named."""

    def __init__(self):
        self._shapes = {}

    def __setitem__(self, t, shape):
        if not isinstance(t, Tensor):
            raise AssertionError(f"Cannot assign shape to non-tensor or non-_IntWrapper type {type(t)}")
        self._shapes[id(t)] = (t, shape)

    def __getitem__(self, t):
        return self._shapes[id(t)][1]

    def __len__(self):
        return len(self._shapes)

    def dynamic_shapes(self, m, args, kwargs=None) -> dict:
        """What `export` takes. Raises ValueError for a tensor that is not among the inputs."""
        used = set()

        def look(value):
            if isinstance(value, (list, tuple)):
                return [look(v) for v in value] if isinstance(value, list) else tuple(look(v) for v in value)
            if isinstance(value, dict):
                return {k: look(v) for k, v in value.items()}
            used.add(id(value))
            return self._shapes[id(value)][1] if id(value) in self._shapes else None

        made = {name: look(value) for name, value in named(m, tuple(args), dict(kwargs or {})).items()}
        if not set(self._shapes) <= used:
            raise ValueError(
                "Some tensors that were assigned shapes were not found in args. Maybe such tensors were copied "
                "when passing them as args? Maybe such tensors are contained in classes that were not registered with pytree?"
            )
        return made


class AdditionalInputs:
    """dynamic_shapes from further example inputs: what differs from the first ones may change."""

    def __init__(self):
        self._examples = []

    def add(self, args, kwargs=None) -> None:
        """Add an example. Raises AssertionError for what are no arguments."""
        if type(args) is not tuple:
            raise AssertionError(f"Representative args {args} must be a tuple")
        if kwargs is not None and type(kwargs) is not dict:
            raise AssertionError(f"Representative kwargs {kwargs} must be None or a dict")
        self._examples.append((args, kwargs or {}))

    def dynamic_shapes(self, m, args, kwargs=None) -> dict:
        """What `export` takes."""
        every = [named(m, *example) for example in ((tuple(args), dict(kwargs or {})), *self._examples)]

        def look(*values):
            first = values[0]
            if isinstance(first, Tensor):
                return tuple(Dim.DYNAMIC if len(set(sizes)) > 1 else None for sizes in zip(*(v.shape for v in values)))
            if isinstance(first, (list, tuple)):
                return type(first)(itertools.starmap(look, zip(*values)))
            if isinstance(first, dict):
                return {k: look(*(v[k] for v in values)) for k in first}
            return None

        return {name: look(*(e[name] for e in every)) for name in every[0]}

    def verify(self, ep) -> None:
        """Run the program on each example."""
        module = ep.module()
        for args, kwargs in self._examples:
            module(*args, **kwargs)
