"""torch.utils._pytree: nested containers taken apart into leaves and put together again, with a registry of node types."""

import dataclasses
import json
from collections import OrderedDict, defaultdict, deque, namedtuple
from typing import Any, NamedTuple

from .. import errors
from ..core.spec import Size
from ._pytree_keys import (
    GetAttrKey,
    MappingKey,
    SequenceKey,
    is_namedtuple,
    is_namedtuple_class,
    is_namedtuple_instance,
    is_structseq,
    is_structseq_class,
    is_structseq_instance,
    key_get,
    keystr,
    map_only,
    no_name,
    no_spec,
)

__all__ = [
    "GetAttrKey", "LeafSpec", "MappingKey", "PyTree", "PyTreeSpec", "SequenceKey", "TreeSpec", "is_namedtuple", "is_namedtuple_class",
    "is_namedtuple_instance", "is_structseq", "is_structseq_class", "is_structseq_instance", "key_get", "keystr",
    "Context", "DumpableContext", "FlattenFn", "FromDumpableContextFn", "ToDumpableContextFn", "UnflattenFn", "register_constant",
    "register_dataclass", "register_pytree_node", "tree_all", "tree_all_only", "tree_any", "tree_any_only", "tree_flatten", "tree_flatten_with_path", "tree_is_leaf",
    "tree_iter", "tree_leaves", "tree_leaves_with_path", "tree_map", "tree_map_", "tree_map_only", "tree_map_only_", "tree_map_with_path",
    "tree_structure", "tree_unflatten", "treespec_dumps", "treespec_loads", "treespec_pprint",
]  # fmt: skip

PyTree = Any
Context = Any
FlattenFn = UnflattenFn = DumpableContext = ToDumpableContextFn = FromDumpableContextFn = Any


# --- the registry --------------------------------------------------------------------------------------------------


class NodeDef(NamedTuple):
    """How values of a type are taken apart and made."""

    type: type
    flatten_fn: Any
    unflatten_fn: Any
    flatten_with_keys_fn: Any
    name: str | None = None
    dump: Any = None
    load: Any = None


SUPPORTED_NODES: dict[type, NodeDef] = {}
BUILTIN_TYPES: frozenset = frozenset()


def register_pytree_node(
    cls, flatten_fn, unflatten_fn, *, serialized_type_name=None, to_dumpable_context=None, from_dumpable_context=None,
    flatten_with_keys_fn=None,
) -> None:  # fmt: skip
    """Make a class a container.

    Args:
        flatten_fn: value -> (children, context)
        unflatten_fn: (children, context) -> value
        flatten_with_keys_fn: value -> ([(key, child)], context)

    Raises ValueError when the class is registered already.
    """
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    if (to_dumpable_context is None) != (from_dumpable_context is None):
        raise ValueError(f"Both to_dumpable_context and from_dumpable_context for {cls} must be None or registered.")
    functions = flatten_fn, unflatten_fn, flatten_with_keys_fn
    SUPPORTED_NODES[cls] = NodeDef(cls, *functions, serialized_type_name, to_dumpable_context, from_dumpable_context)


def _private_register_pytree_node(cls, flatten_fn, unflatten_fn, **named) -> None:
    if SUPPORTED_NODES.pop(cls, None) is not None:
        errors.warn(f"{cls} is already registered as pytree node. Overwriting the previous registration.")
    register_pytree_node(cls, flatten_fn, unflatten_fn, **named)


def _register_pytree_node(cls, flatten_fn, unflatten_fn, **named) -> None:
    old, new = (f"`torch.utils._pytree.{name}`" for name in ("_register_pytree_node", "register_pytree_node"))
    errors.warn(f"{old} is deprecated. Please use {new} instead.", FutureWarning)
    _private_register_pytree_node(cls, flatten_fn, unflatten_fn, **named)


def register_dataclass(cls, *, field_names=None, drop_field_names=None, serialized_type_name=None) -> None:
    """Make a dataclass a container of its fields."""
    if field_names is None and not dataclasses.is_dataclass(cls):
        raise ValueError(
            f"field_names must be specified with a list of all fields used to initialize {cls}, as it is not a dataclass."
        )
    names = [f.name for f in dataclasses.fields(cls) if f.init] if field_names is None else list(field_names)
    names = [n for n in names if n not in (drop_field_names or ())]

    def split(value):
        present = [n for n in names if getattr(value, n) is not None]
        return [getattr(value, n) for n in present], [present, [n for n in names if n not in present]]

    def join(children, context):
        return cls(**dict(zip(context[0], children)), **dict.fromkeys(context[1]))

    def keyed(value):
        children, context = split(value)
        return [(GetAttrKey(n), c) for n, c in zip(context[0], children)], context

    _private_register_pytree_node(
        cls, split, join, serialized_type_name=serialized_type_name, flatten_with_keys_fn=keyed
    )


def register_constant(cls) -> None:
    """Make a class a container of nothing: its values are part of the spec, by `__eq__` and `__hash__`."""
    if cls.__eq__ is object.__eq__:
        raise TypeError("register_constant(cls) expects `cls` to have a non-default `__eq__` implementation.")
    if cls.__hash__ is None:
        raise TypeError("register_constant(cls) expects `cls` to have a non-default `__hash__` implementation.")
    register_pytree_node(cls, lambda v: ([], v), lambda _, v: v, flatten_with_keys_fn=lambda v: ([], v))


def _deregister_pytree_node(cls) -> None:
    SUPPORTED_NODES.pop(cls, None)


def _positions(children):
    return [(SequenceKey(i), child) for i, child in enumerate(children)]


def _sequence(cls, context=lambda value: None, make=None):
    make = make or (lambda children, ctx: cls(children))
    register_pytree_node(
        cls, lambda v: (list(v), context(v)), make, serialized_type_name=f"{cls.__module__}.{cls.__qualname__}",
        flatten_with_keys_fn=lambda v: (_positions(v), context(v)),
    )  # fmt: skip


def _mapping(cls, context, make, keys):
    def keyed(value):
        ctx = context(value)
        return [(MappingKey(k), v) for k, v in zip(keys(ctx), value.values())], ctx

    register_pytree_node(
        cls, lambda v: (list(v.values()), context(v)), make, serialized_type_name=f"{cls.__module__}.{cls.__qualname__}",
        flatten_with_keys_fn=keyed,
    )  # fmt: skip


_sequence(tuple)
_sequence(list)
_sequence(deque, lambda v: v.maxlen, lambda children, maxlen: deque(children, maxlen=maxlen))
_mapping(dict, list, lambda children, keys: dict(zip(keys, children)), list)
_mapping(OrderedDict, list, lambda children, keys: OrderedDict(zip(keys, children)), list)
_mapping(
    defaultdict, lambda v: [v.default_factory, list(v)], lambda children, ctx: defaultdict(ctx[0], zip(ctx[1], children)),
    lambda ctx: ctx[1],
)  # fmt: skip
register_pytree_node(
    namedtuple, lambda v: (list(v), type(v)), lambda children, cls: cls(*children), serialized_type_name="collections.namedtuple",
    flatten_with_keys_fn=lambda v: ([(GetAttrKey(f), getattr(v, f)) for f in v._fields], type(v)),
)  # fmt: skip
register_pytree_node(
    Size, lambda v: (list(v), None), lambda children, _: tuple(children), serialized_type_name="torch.Size",
    flatten_with_keys_fn=lambda v: (_positions(v), None),
)  # fmt: skip
BUILTIN_TYPES = frozenset(SUPPORTED_NODES) - {Size}
# Packages that register classes of their own reuse these.
_tuple_flatten, _tuple_unflatten, _tuple_flatten_with_keys = SUPPORTED_NODES[tuple][1:4]
_list_flatten, _list_unflatten, _list_flatten_with_keys = SUPPORTED_NODES[list][1:4]
_dict_flatten, _dict_unflatten, _dict_flatten_with_keys = SUPPORTED_NODES[dict][1:4]
_ordereddict_flatten, _ordereddict_unflatten, _ordereddict_flatten_with_keys = SUPPORTED_NODES[OrderedDict][1:4]
_defaultdict_flatten, _defaultdict_unflatten, _defaultdict_flatten_with_keys = SUPPORTED_NODES[defaultdict][1:4]
_deque_flatten, _deque_unflatten, _deque_flatten_with_keys = SUPPORTED_NODES[deque][1:4]
_namedtuple_flatten, _namedtuple_unflatten, _namedtuple_flatten_with_keys = SUPPORTED_NODES[namedtuple][1:4]
_odict_flatten, _odict_unflatten = _ordereddict_flatten, _ordereddict_unflatten
STANDARD_DICT_TYPES = frozenset((dict, OrderedDict, defaultdict))


def _get_node_type(tree):
    cls = type(tree)
    if cls not in SUPPORTED_NODES:
        if is_namedtuple_class(cls):
            return namedtuple
        if cls.__module__ == "torch.return_types":  # what an operator with several named results returns
            _sequence(cls)
    return cls


def tree_is_leaf(tree, is_leaf=None) -> bool:
    """Whether a value is no container."""
    return (is_leaf is not None and bool(is_leaf(tree))) or _get_node_type(tree) not in SUPPORTED_NODES


_is_leaf = tree_is_leaf
_is_namedtuple_instance = is_namedtuple_instance


# --- specs ---------------------------------------------------------------------------------------------------------


class TreeSpec:
    """The containers of a tree, without its leaves. `type` is None for a leaf."""

    __slots__ = ("type", "context", "_children", "num_nodes", "num_leaves", "num_children")

    def __init__(self, type, context, children_specs=()):
        self.type = type
        self.context = context
        self._children = list(children_specs)
        self.num_children = len(self._children)
        self.num_nodes = 1 + sum(c.num_nodes for c in self._children)
        self.num_leaves = sum(c.num_leaves for c in self._children) if type is not None else 1

    @property
    def children_specs(self):
        return self._children

    def children(self):
        """The specs of the children."""
        return list(self._children)

    def child(self, index):
        """The spec of one child."""
        return self._children[index]

    def is_leaf(self) -> bool:
        """Whether this is the spec of a leaf."""
        return self.type is None

    def entries(self):
        """The keys of the children."""
        if self.type is None:
            return []
        if self.type in STANDARD_DICT_TYPES:
            return list(self.context[1] if self.type is defaultdict else self.context)
        return list(range(self.num_children))

    def unflatten(self, leaves):
        """The tree with these leaves. Raises ValueError when their number is wrong."""
        leaves = list(leaves)
        if len(leaves) != self.num_leaves:
            raise ValueError(
                f"treespec.unflatten(leaves): `leaves` has length {len(leaves)} but the spec refers to a pytree that holds "
                f"{self.num_leaves} items ({self})."
            )
        return self._build(iter(leaves))

    def _build(self, leaves):
        if self.type is None:
            return next(leaves)
        return SUPPORTED_NODES[self.type].unflatten_fn([c._build(leaves) for c in self._children], self.context)

    def flatten_up_to(self, tree):
        """The parts of a tree that are where this spec has leaves. Raises ValueError where the trees differ."""
        found = []
        self._up_to(tree, found)
        return found

    def _up_to(self, tree, found):
        if self.type is None:
            found.append(tree)
            return
        kind = _get_node_type(tree)
        both = STANDARD_DICT_TYPES
        if kind is not self.type and not (kind in both and self.type in both):
            raise ValueError(f"Node type mismatch; expected {self.type!r}, but got {kind!r}.")
        if kind in both:
            keys = self.entries()
            if len(tree) != len(keys):
                raise ValueError(f"Node arity mismatch; expected {len(keys)}, but got {len(tree)}.")
            if set(tree) != set(keys):  # as many, so that there is one of each kind
                missing, extra = set(keys) - set(tree), set(tree) - set(keys)
                raise ValueError(f"Node keys mismatch; missing key(s): {missing}; extra key(s): {extra}.")
            children = [tree[k] for k in keys]
        else:
            children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
            if len(children) != self.num_children:
                raise ValueError(f"Node arity mismatch; expected {self.num_children}, but got {len(children)}.")
            if context != self.context and kind is not deque:
                raise ValueError(f"Node context mismatch for custom node type {self.type!r}.")
        for spec, child in zip(self._children, children):
            spec._up_to(child, found)

    def __eq__(self, other):
        if not isinstance(other, TreeSpec):
            return NotImplemented
        return self.type is other.type and self.context == other.context and self._children == other._children

    def __hash__(self):
        return hash((self.type, self.num_leaves, tuple(map(hash, self._children))))

    def __repr__(self, indent=0):
        if self.type is None:
            return "*"
        inner = "".join(
            ("" if i == 0 else ",\n" + " " * (indent + 2)) + c.__repr__(indent + 2)
            for i, c in enumerate(self._children)
        )
        return f"TreeSpec({self.type.__name__}, {self.context}, [{inner}])"


PyTreeSpec = TreeSpec


class LeafSpec(TreeSpec):
    """The spec of a leaf."""

    __slots__ = ()

    def __init__(self):
        super().__init__(None, None)


_LEAF = LeafSpec()


def treespec_leaf():
    """The spec of a leaf."""
    return _LEAF


def treespec_tuple(iterable=()):
    """The spec of a tuple of these specs."""
    return TreeSpec(tuple, None, list(iterable))


# --- taking apart and putting together -----------------------------------------------------------------------------


def _flatten(tree, leaves, is_leaf):
    if tree_is_leaf(tree, is_leaf):
        leaves.append(tree)
        return _LEAF
    kind = _get_node_type(tree)
    children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    return TreeSpec(kind, context, [_flatten(c, leaves, is_leaf) for c in children])


def tree_flatten(tree, is_leaf=None):
    """(leaves, spec) of a tree."""
    leaves = []
    return leaves, _flatten(tree, leaves, is_leaf)


def tree_unflatten(leaves, treespec):
    """The tree of a spec with these leaves."""
    if not isinstance(treespec, TreeSpec):
        raise no_spec(treespec)
    return treespec.unflatten(leaves)


def tree_iter(tree, is_leaf=None):
    """Iterate over the leaves."""
    if tree_is_leaf(tree, is_leaf):
        yield tree
        return
    for child in SUPPORTED_NODES[_get_node_type(tree)].flatten_fn(tree)[0]:
        yield from tree_iter(child, is_leaf)


def tree_leaves(tree, is_leaf=None):
    """The leaves."""
    return list(tree_iter(tree, is_leaf))


def tree_structure(tree, is_leaf=None):
    """The spec."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(func, tree, *rests, is_leaf=None):
    """The same containers around func(leaf, ...) of each leaf of `tree` and what the others have there."""
    leaves, spec = tree_flatten(tree, is_leaf)
    return spec.unflatten(map(func, leaves, *(spec.flatten_up_to(r) for r in rests)))


def tree_map_(func, tree, *rests, is_leaf=None):
    """Call func on each leaf and return `tree`."""
    leaves, spec = tree_flatten(tree, is_leaf)
    deque(map(func, leaves, *(spec.flatten_up_to(r) for r in rests)), maxlen=0)
    return tree


def tree_map_only(type_or_types_or_pred, /, func, tree, is_leaf=None):
    """tree_map of the leaves of these types."""
    return tree_map(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_map_only_(type_or_types_or_pred, /, func, tree, is_leaf=None):
    """tree_map_ of the leaves of these types."""
    return tree_map_(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_all(pred, tree, is_leaf=None) -> bool:
    """Whether a predicate holds for every leaf."""
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred, tree, is_leaf=None) -> bool:
    """Whether a predicate holds for a leaf."""
    return any(map(pred, tree_iter(tree, is_leaf)))


def tree_all_only(type_or_types, /, pred, tree, is_leaf=None) -> bool:
    """Whether a predicate holds for every leaf of these types."""
    return all(pred(x) for x in tree_iter(tree, is_leaf) if isinstance(x, type_or_types))


def tree_any_only(type_or_types, /, pred, tree, is_leaf=None) -> bool:
    """Whether a predicate holds for a leaf of these types."""
    return any(pred(x) for x in tree_iter(tree, is_leaf) if isinstance(x, type_or_types))


# --- with paths ----------------------------------------------------------------------------------------------------


def _walk(path, tree, is_leaf):
    if tree_is_leaf(tree, is_leaf):
        yield path, tree
        return
    keyed = SUPPORTED_NODES[_get_node_type(tree)].flatten_with_keys_fn
    if keyed is None:
        raise ValueError(
            f"Did not find a flatten_with_keys_fn for type: {type(tree)}. Please pass a flatten_with_keys_fn "
            "argument to register_pytree_node."
        )
    for key, child in keyed(tree)[0]:
        yield from _walk((*path, key), child, is_leaf)


def tree_flatten_with_path(tree, is_leaf=None):
    """([(path, leaf)], spec) of a tree."""
    return list(_walk((), tree, is_leaf)), tree_structure(tree, is_leaf)


def tree_leaves_with_path(tree, is_leaf=None):
    """[(path, leaf)] of a tree."""
    return list(_walk((), tree, is_leaf))


def tree_map_with_path(func, tree, *rests, is_leaf=None):
    """tree_map with the path as the first argument."""
    found, spec = tree_flatten_with_path(tree, is_leaf)
    paths, leaves = [p for p, _ in found], [x for _, x in found]
    return spec.unflatten(map(func, paths, leaves, *(spec.flatten_up_to(r) for r in rests)))


def _broadcast_to_and_flatten(tree, treespec, is_leaf=None):
    """The leaves of `tree` spread over a spec of which it is a beginning; None where it is not."""
    if tree_is_leaf(tree, is_leaf):
        return [tree] * treespec.num_leaves
    if treespec.type is not _get_node_type(tree):
        return None
    children, context = SUPPORTED_NODES[treespec.type].flatten_fn(tree)
    if len(children) != treespec.num_children or context != treespec.context:
        return None
    found = []
    for child, spec in zip(children, treespec.children_specs):
        part = _broadcast_to_and_flatten(child, spec, is_leaf)
        if part is None:
            return None
        found += part
    return found


# --- as text -------------------------------------------------------------------------------------------------------


def _dump(spec):
    if spec.type is None:
        return {"type": None, "context": None, "children_spec": []}
    node = SUPPORTED_NODES[spec.type]
    if node.name is None or spec.type is namedtuple:
        raise no_name(spec.context if spec.type is namedtuple else spec.type)
    context = node.dump(spec.context) if node.dump else spec.context
    return {"type": node.name, "context": json.dumps(context), "children_spec": [_dump(c) for c in spec.children_specs]}


def treespec_dumps(treespec, protocol=None) -> str:
    """A spec as JSON. Raises NotImplementedError for a type without a serialised name."""
    if not isinstance(treespec, TreeSpec):
        raise no_spec(treespec)
    if protocol not in (None, 1):
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [1]")
    return json.dumps([1, _dump(treespec)])


def _undump(data):
    if data["type"] is None:
        return _LEAF
    node = next((n for n in SUPPORTED_NODES.values() if n.name == data["type"]), None)
    if node is None:
        raise NotImplementedError(f"Serialized type {data['type']} is not registered.")
    context = json.loads(data["context"])
    return TreeSpec(
        node.type, node.load(context) if node.load else context, [_undump(c) for c in data["children_spec"]]
    )


def treespec_loads(serialized):
    """The spec of the text that treespec_dumps made."""
    version, data = json.loads(serialized)
    if version != 1:
        raise ValueError(f"Unknown protocol {version}. Available protocols: [1]")
    return _undump(data)


def treespec_pprint(treespec) -> str:
    """A spec as text for people."""
    return repr(tree_unflatten(["*"] * treespec.num_leaves, treespec)).replace("'*'", "*")


def arg_tree_leaves(*args, **kwargs):
    """The leaves of a call's arguments."""
    return tree_leaves((args, kwargs))
