"""Comments of types, `# type: (int, Tensor) -> Tensor`, as the trees that TorchScript reads them into."""

import ast
import re

from ..errors_extend import type_comment

_WIDTH = 40


class Decl:
    """The parameters and the result of a function: names, types as trees, and nothing else."""

    def __init__(self, params, returns, text=""):
        self._params, self._returns, self._text = params, returns, text

    def range(self) -> str:
        """The comment's text."""
        return self._text

    def dump(self) -> None:
        """Print the tree."""
        print(self)

    def __str__(self):
        params = [
            "list",
            *(["param", ["ident", name], _option(kind), _option(None), ["False"]] for name, kind in self._params),
        ]
        return _printed(["decl", params, _option(self._returns)], 0) + "\n"


def _option(tree):
    return ["option"] if tree is None else ["option", tree]


def _flat(tree):
    return f"({' '.join([tree[0], *(_flat(t) if isinstance(t, list) else t for t in tree[1:])])})"


def _printed(tree, column):
    if isinstance(tree, str):
        return tree
    flat = _flat(tree)
    if column + len(flat) < _WIDTH or tree[0] == "ident" or len(tree) == 1:
        return flat
    inner = "\n".join(" " * (column + 2) + _printed(t, column + 2) for t in tree[1:])
    return f"({tree[0]}\n{inner})"


def _tree(node):
    if isinstance(node, ast.Name):
        return ["variable", ["ident", node.id]]
    if isinstance(node, ast.Constant) and node.value is None:
        return ["None"]
    if isinstance(node, ast.Attribute):
        return [".", _tree(node.value), ["ident", node.attr]]
    if isinstance(node, ast.Starred):
        return ["starred", _tree(node.value)]
    if isinstance(node, ast.Tuple):
        return ["tuple-literal", ["list", *map(_tree, node.elts)]]
    if isinstance(node, ast.Subscript):
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return ["subscript", _tree(node.value), ["list", *map(_tree, parts)]]
    raise type_comment(f"{ast.unparse(node)} is no type of a comment")


def parse_type_comment(comment) -> Decl:
    """The tree of a comment `# type: (int, Tensor) -> Tensor`. RuntimeError: it is none."""
    found = re.match(r"\s*# type:\s*(.*)$", comment, re.S)
    if found is None:
        raise type_comment(f"expected type comment but found another text here:\n{comment}\n")
    text = found.group(1).strip()
    if not text.startswith("("):
        raise type_comment(f"expected ( but found 'ident' here:\n{comment}\n")
    left, arrow, right = text.rpartition("->")
    try:
        if not arrow:
            raise SyntaxError
        given = ast.parse("f" + left.strip(), mode="eval").body
        returns = _tree(ast.parse(right.strip(), mode="eval").body)
    except SyntaxError:
        raise type_comment(f"expected -> and a type here:\n{comment}\n") from None
    return Decl([("", _tree(a)) for a in given.args], returns, comment)


def merge_type_from_type_comment(decl, type_annotation_decl, is_method) -> Decl:
    """The first tree with the types of the second; of a method the first parameter keeps its own. RuntimeError: another number."""
    names = [name for name, _ in decl._params]
    own = decl._params[:1] if is_method else []
    kinds = [kind for _, kind in type_annotation_decl._params]
    if len(kinds) != len(names) - len(own):
        raise type_comment(
            f"\nNumber of type annotations ({len(kinds)}) did not match the number of function parameters ({len(names) - len(own)}):\n"
            f"{decl.range()}"
        )
    return Decl([*own, *zip(names[len(own) :], kinds)], type_annotation_decl._returns, decl.range())
