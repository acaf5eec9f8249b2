"""Nested tuples, lists and dicts: taken apart into leaves and put together again. Dicts keep their order."""


def flatten(x):
    """(leaves, tree) of nested containers; whatever is no tuple, list or dict is a leaf."""
    leaves = []
    return leaves, _walk(x, leaves)


def _walk(x, leaves):
    kind = type(x)
    if isinstance(x, dict):
        return kind, tuple(x), tuple(_walk(v, leaves) for v in x.values())
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return kind, "fields", tuple(_walk(v, leaves) for v in x)
    if kind in (tuple, list) or isinstance(x, tuple) and kind.__module__ == "torch.return_types":
        return kind, None, tuple(_walk(v, leaves) for v in x)
    leaves.append(x)
    return None


def unflatten(tree, leaves):
    """The containers of `tree` around these leaves."""
    return _build(tree, iter(leaves))


def _build(tree, leaves):
    if tree is None:
        return next(leaves)
    kind, keys, children = tree
    parts = [_build(c, leaves) for c in children]
    if keys is None:
        return kind(parts)
    if keys == "fields":
        return kind(*parts)
    made = kind()
    made.update(zip(keys, parts))
    return made


class _Leaf:
    def __repr__(self):
        return "*"


def outline(tree) -> str:
    """A tree in one line, as PyTorch's newer errors write it."""
    return repr(_build(tree, iter(_Leaf, None)))


def show(tree, indent=2) -> str:
    """A tree as PyTorch's errors write it."""
    if tree is None:
        return "*"
    kind, keys, children = tree
    inner = (",\n" + " " * indent).join(show(c, indent + 2) for c in children)
    return f"TreeSpec({kind.__name__}, {list(keys) if keys else None}, [{inner}])"
