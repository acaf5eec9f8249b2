"""Sizes: a code file of about 500 lines, a table file of about 1000, a function of about 60. The lists only shrink."""

import ast

from tests.house.test_layers import PACKAGE, ROOT, files, tree

CODE, TABLE, FUNCTION = 520, 1050, 65
TABLES = ("ops/", "tests/ops/rows/")

# file -> its reason. Remove what has become small enough; nothing is added without one.
LONG_FILES = {
    "jtorch/creation.py": "signatures of all factories, one block each",
    "jtorch/nn/modules/module.py": "Module's public surface is one class",
    "jtorch/nn/modules/container.py": "six containers, one class each",
    "jtorch/nn/modules/attention.py": "MultiheadAttention's two paths and the Transformer",
    "jtorch/tensor.py": "the fields and properties of one class",
    "jtorch/autograd/engine.py": "the loop of the backward pass and what it decides by, read together",
    "tests/oracle.py": "the only file that may import torch",
}

LONG_FUNCTIONS: dict[str, str] = {
    "nn/functional.py:multi_head_attention_forward": "PyTorch's 25 arguments, and checks in PyTorch's order",
}


def test_files():
    long = {}
    for path in [*files(), *sorted((ROOT / "tests").rglob("*.py"))]:
        name = path.relative_to(ROOT).as_posix()
        limit = TABLE if any(t in name for t in TABLES) else CODE
        n = len(path.read_text(encoding="utf-8").splitlines())
        if n > limit:
            long[name] = n
    unexplained = {f: n for f, n in long.items() if f not in LONG_FILES}
    assert not unexplained, unexplained
    assert not (set(LONG_FILES) - set(long)), f"short enough now: {sorted(set(LONG_FILES) - set(long))}"


def test_functions():
    long = {}
    for path in files():
        for node in ast.walk(tree(path)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                body = node.body[1:] if ast.get_docstring(node) else node.body
                n = (body[-1].end_lineno - body[0].lineno + 1) if body else 0
                if n > FUNCTION:
                    long[f"{path.relative_to(PACKAGE).as_posix()}:{node.name}"] = n
    unexplained = {f: n for f, n in long.items() if f not in LONG_FUNCTIONS}
    assert not unexplained, unexplained
    assert not (set(LONG_FUNCTIONS) - set(long)), "short enough now"


def test_every_file_opens_with_a_sentence():
    wrong = [p.relative_to(PACKAGE).as_posix() for p in files() if not ast.get_docstring(tree(p))]
    assert not wrong, wrong
