"""The public surface: names sorted, documented, known to PyTorch; every op has a docstring and a row."""

import ast
import functools
import subprocess
import sys
import types
import warnings

import pytest

import jtorch
from jtorch.ops import registry
from tests import oracle
from tests.house.test_layers import files, tree
from tests.ops.rows import all_rows

RECORDS = {**registry.OPS, **registry.VIEWS, **registry.COMPOSITES}
PUBLIC = {name: r for name, r in RECORDS.items() if r.targets}
ROWS = {row.name: family for family, rows in all_rows().items() for row in rows}


def short(target):
    return target.removeprefix("torch.").removeprefix("Tensor.")


def resolves(root, path):
    for part in path.split("."):
        root = getattr(root, part, None)
        if root is None:
            return False
    return True


def test_names_are_sorted_and_there():
    names = dir(jtorch)
    assert names == sorted(set(names))
    missing = [n for n in names if not n.startswith("_") and not hasattr(jtorch, n)]
    assert not missing, missing


def test_all_lists_no_name_twice():
    wrong = []
    for path in files():
        for node in tree(path).body:
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
                try:
                    names = ast.literal_eval(node.value)
                except ValueError:
                    continue
                if sorted(names) != sorted(set(names)):
                    wrong.append(f"{path.name}: a name twice")
    assert not wrong, wrong


def test_every_row_has_an_op():
    wrong = []
    for name in ROWS:
        path = name.removeprefix("torch.")
        method = path.removeprefix("Tensor.").rpartition(".")[2]
        methods = method, method + "_"  # cauchy is there as cauchy_ alone
        found = resolves(jtorch, path) or resolves(jtorch.ops.aten, path)
        if not found and not any(hasattr(jtorch.Tensor, m) for m in methods):
            wrong.append(name)
    assert not wrong, f"rows without an op: {wrong}"


def test_every_row_has_samples():
    known = {i.name for i in oracle.opinfos().values()}
    wrong = [r.name for rows in all_rows().values() for r in rows if not r.samples and r.name not in known]
    assert not wrong, wrong


def test_every_op_has_a_row():
    rows = set(ROWS) | {n.rpartition(".")[2] for n in ROWS}
    wrong = [
        f"{r.fn.__module__.rpartition('.')[2]}: {name}"
        for name, r in PUBLIC.items()
        if not ({name, *r.aliases, *map(short, r.targets)} & rows)
    ]
    assert not wrong, f"{len(wrong)} public ops without a row:\n" + "\n".join(sorted(wrong))


def test_no_row_twice():
    names = [row.name for rows in all_rows().values() for row in rows]
    twice = sorted({n for n in names if names.count(n) > 1})
    assert not twice, twice


def test_every_op_has_a_docstring():
    wrong = [name for name, r in RECORDS.items() if not (r.doc or "").strip() and not name.startswith("_")]
    assert not wrong, wrong


SPACES = (
    "", "Tensor", "nn", "nn.functional", "nn.init", "nn.utils", "optim", "optim.lr_scheduler", "linalg", "fft", "special",
    "distributions", "func", "autograd", "utils.data", "sparse", "random", "amp", "masked", "signal.windows",
)  # fmt: skip


@pytest.mark.parametrize("space", SPACES)
def test_what_help_shows(space):
    """Each public function and class has a docstring; a function is called what PyTorch calls it, or what it is an alias of."""
    ours = functools.reduce(getattr, space.split("."), jtorch) if space else jtorch
    theirs = functools.reduce(getattr, space.split("."), oracle.torch) if space else oracle.torch
    bare, misnamed = [], []
    warnings.simplefilter("ignore")  # deprecated attributes
    for name in (n for n in dir(ours) if not n.startswith("_") and hasattr(theirs, n)):
        found = getattr(ours, name)
        if (
            isinstance(found, (type, types.FunctionType))
            and not found.__doc__
            and found.__module__ != "collections.abc"
        ):
            bare.append(name)
        if isinstance(found, types.FunctionType) and getattr(getattr(theirs, name), "__name__", None) == name:
            if found.__name__.rpartition(".")[2] != name and getattr(ours, found.__name__, None) is not found:
                misnamed.append((name, found.__name__))
    assert not bare and not misnamed, (bare, misnamed)


def test_in_place_forms_say_so():
    wrong = [
        n
        for n in ("add_", "arccos_", "sigmoid_")
        if not getattr(jtorch.Tensor, n).__doc__.startswith(f"`{n[:-1]}`, in place")
    ]
    assert not wrong, wrong


def test_public_names_are_torchs():
    wrong = []
    for r in PUBLIC.values():
        for t in r.targets:
            if not resolves(oracle.torch, t.removeprefix("torch.")):
                wrong.append(t)
    assert not wrong, f"torch has no {sorted(wrong)}"


def test_rules_are_of_arguments():
    """A derivative rule names arguments of its op."""
    wrong = [
        f"{name}.{arg}" for name, r in registry.OPS.items() for arg in r.rules if arg not in {p.name for p in r.params}
    ]
    assert not wrong, wrong


@pytest.mark.parametrize("statement", ["import jtorch", "import jtorch.nn, jtorch.optim, jtorch.utils.data"])
def test_import_is_clean(statement):
    """Importing prints nothing, warns of nothing and does not import torch."""
    code = f"{statement}\nimport sys\nassert 'torch' not in sys.modules"
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout == "" and done.stderr == ""
