"""Lists and dicts that cannot be written to: the arguments of nodes, which change through the node alone."""

from ..utils import _pytree


def _refuse(self, *args, **kwargs):
    raise TypeError(
        f"'{type(self).__name__}' object does not support mutation. If you are attempting to modify the kwargs or args of a torch.fx.Node "
        "object,\ninstead create a new copy of it and assign the copy to the node:\n\n    new_args = ...  # copy and mutate args\n"
        "    node.args = new_args\n"
    )


class immutable_list(list):
    """A list of arguments: reading alone."""

    __setitem__ = __delitem__ = __iadd__ = __imul__ = append = clear = extend = insert = pop = remove = reverse = (
        sort
    ) = _refuse

    def __hash__(self):
        return hash(tuple(self))

    def __reduce__(self):
        return type(self), (tuple(self),)


class immutable_dict(dict):
    """A dict of arguments: reading alone."""

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse

    def __hash__(self):
        return hash(frozenset(self.items()))

    def __reduce__(self):
        return type(self), (list(self.items()),)


_pytree.register_pytree_node(
    immutable_list, lambda x: (list(x), None), lambda values, context: immutable_list(values),
    serialized_type_name="torch.fx.immutable_collections.immutable_list",
)  # fmt: skip
_pytree.register_pytree_node(
    immutable_dict, lambda x: (list(x.values()), list(x)), lambda values, keys: immutable_dict(zip(keys, values)),
    serialized_type_name="torch.fx.immutable_collections.immutable_dict",
)  # fmt: skip

__all__ = ["immutable_dict", "immutable_list"]
