"""The checks among `torch`'s private names: what they take, and what they raise."""

import pytest

import jtorch
from jtorch.swap.internal import top
from tests.oracle import torch

# a check, its arguments (True and False for tensors of that element, "message" for words that are asked for)
CHECKS = [
    ("_check", True), ("_check", False), ("_check", False, "message"), ("_check", False, "not asked for"), ("_check", True, "not asked for"),
    ("_check", 1), ("_check", [True]), ("_check_index", False, "message"), ("_check_value", False, "message"), ("_check_type", False, "message"),
    ("_check_not_implemented", False, "message"), ("_check_with", KeyError, False, "message"), ("_check_tensor_all", [True, True]),
    ("_check_tensor_all", [True, False], "message"), ("_check_tensor_all", True),
]  # fmt: skip


def said(module, names, check, *args):
    args = [module.tensor(a) if type(a) is list else (lambda: "words") if a == "message" else a for a in args]
    try:
        return getattr(names, check)(*args)
    except Exception as error:
        return type(error), str(error).partition(" (Could")[0]


@pytest.mark.parametrize("row", CHECKS, ids=str)
def test_checks(row):
    assert said(jtorch, top, *row) == said(torch, torch, *row)
