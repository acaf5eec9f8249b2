"""Arguments of a traced function taken apart by the containers that it was traced with."""

from collections import OrderedDict, defaultdict, deque, namedtuple

from ..utils import _pytree

__all__ = ["register_pytree_flatten_spec", "tree_flatten_spec"]

SUPPORTED_NODES: dict = {}
SUPPORTED_NODES_EXACT_MATCH: dict = {}


def register_pytree_flatten_spec(cls, flatten_fn_spec, flatten_fn_exact_match_spec=None) -> None:
    """How a container is taken apart by a spec: flatten_fn_spec(value, spec) -> children, and whether it fits exactly."""
    SUPPORTED_NODES[cls] = flatten_fn_spec
    SUPPORTED_NODES_EXACT_MATCH[cls] = flatten_fn_exact_match_spec


def tree_flatten_spec(pytree, spec) -> list:
    """The leaves that are where the spec has them; what else the containers hold is left. RuntimeError: a container that nobody knows."""
    if spec.is_leaf():
        return [pytree]
    if spec.type not in SUPPORTED_NODES:
        if spec.type in _pytree.SUPPORTED_NODES:
            return spec.flatten_up_to(pytree)
        raise RuntimeError(
            f"{type(pytree)} does not have a flatten_fn_spec associated with it. Please register one with "
            "torch.fx._pytree.register_pytree_flatten_spec.  If you have serialized your model, make sure that any custom pytrees have "
            "been registered before loading it."
        )
    children = SUPPORTED_NODES[spec.type](pytree, spec)
    return [leaf for child, part in zip(children, spec.children()) for leaf in tree_flatten_spec(child, part)]


def _positions(values, spec):
    return [values[k] for k in range(spec.num_children)]


def _keys(values, spec):
    return [values[k] for k in spec.entries()]


for _kind in (list, tuple, namedtuple):
    register_pytree_flatten_spec(_kind, _positions, lambda values, spec: len(values) == spec.num_children)
for _kind in (dict, OrderedDict, defaultdict):
    register_pytree_flatten_spec(_kind, _keys, lambda values, spec: len(values) == spec.num_children)
register_pytree_flatten_spec(deque, lambda values, spec: list(values))
del _kind
