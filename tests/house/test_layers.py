"""The floors of the house: a file imports from lower floors or its own folder, never upward."""

import ast
import functools
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "jtorch"

# The longest prefix of a file's path decides. 6.5: what is built of calls, before the layers on top.
FLOORS = {
    "errors.py": 0, "deprecations.py": 0, "errors_arguments.py": 0, "errors_nn.py": 0, "errors_extend.py": 0, "errors_storage.py": 0, "errors_func.py": 0, "errors_autograd.py": 0, "tracebacks.py": 0, "config.py": 0, "startup.py": 0,
    "handles.py": 0, "namespaces.py": 0,
    "core/dtype.py": 1, "core/device.py": 1, "core/shapes.py": 1, "core/layout.py": 1,
    "core": 2, "ops": 3,
    "autograd/node.py": 4, "autograd/engine.py": 4, "autograd/derive.py": 4, "autograd/derive_views.py": 4, "autograd/mode.py": 4, "autograd/liveness.py": 4,
    "tensor.py": 5, "dispatch": 6, "autograd/entry.py": 6.5, "autograd/outer_run.py": 6.5, "windows.py": 6.5,
    "creation.py": 6.5, "limits.py": 6.5, "random_tensors.py": 6.5, "filling.py": 6.5, "traced_draws.py": 6.5, "indexing.py": 6.5, "methods.py": 6.5, "functions.py": 6.5, "printing.py": 6.5,
    "operators.py": 6.5, "complex_views.py": 6.5, "literals.py": 6.5, "pytree.py": 6.5, "dlpack.py": 6.5,
    "reshaping.py": 6.5, "convert.py": 6.5, "writing.py": 6.5, "storage_api.py": 6.5, "mapped_files.py": 6.5, "copying.py": 6.5,
    "legacy.py": 6.5, "inplace_random.py": 6.5, "sampling.py": 6.5, "unavailable.py": 6.5,
    "autograd/anomaly_mode.py": 6.5, "compiler.py": 8, "control.py": 8,
    "compile": 8, "jit": 8, "fx": 8, "export": 8, "onnx": 8.5, "func": 8, "swap": 8, "cli": 8, "bench": 8,
    "api.py": 9, "__init__.py": 9, "__main__.py": 9,
}  # fmt: skip
ANY_OTHER = 7


def floor(path: str) -> float:
    parts = path.split("/")
    for n in range(len(parts), 0, -1):
        found = FLOORS.get("/".join(parts[:n]))
        if found is not None and not (n < len(parts) and parts[0] == "__init__.py"):
            return found
    return ANY_OTHER


def files():
    return sorted(p for p in PACKAGE.rglob("*.py") if "__pycache__" not in p.parts)


@functools.cache
def tree(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def dotted(node):
    """An attribute of an attribute ... of a name, as it is written; nothing for other expressions."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def target(parts):
    """The file of a dotted name under the package, as a path relative to it."""
    while parts:
        here = PACKAGE.joinpath(*parts)
        if here.with_suffix(".py").is_file():
            return "/".join(parts) + ".py"
        if (here / "__init__.py").is_file():
            return "/".join(parts) + "/__init__.py"
        parts = parts[:-1]
    return "__init__.py"


def typing_only(node):
    """Whether an `if` is the one of imports that only type checkers see."""
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def statements(body):
    for node in body:
        if typing_only(node):
            continue
        yield node
        for inner in ("body", "orelse", "finalbody", "handlers"):
            yield from statements(getattr(node, inner, []))


def imports(path):
    """(line, imported file) of every import of the package's own modules, inside functions too."""
    relative = path.relative_to(PACKAGE)
    package = list(relative.parts[:-1])
    for node in statements(tree(path).body):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "jtorch":
                    yield node.lineno, target(alias.name.split(".")[1:])
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                start = package[: len(package) - node.level + 1]
            elif (node.module or "").split(".")[0] == "jtorch":
                start = []
            else:
                continue
            module = (node.module or "").split(".") if node.level else node.module.split(".")[1:]
            base = start + [p for p in module if p]
            for alias in node.names:
                yield node.lineno, target([*base, alias.name])


def test_imports_point_downwards():
    wrong = []
    for path in files():
        mine = path.relative_to(PACKAGE).as_posix()
        if mine in ("__init__.py", "__main__.py", "api.py"):
            continue
        for line, other in imports(path):
            same_folder = "/" in mine and mine.split("/")[0] == other.split("/")[0]
            if floor(other) > floor(mine) and not same_folder:
                wrong.append(f"jtorch/{mine}:{line} [{floor(mine)}] imports jtorch/{other} [{floor(other)}]")
    assert not wrong, "\n" + "\n".join(wrong)


@pytest.mark.parametrize(
    "path, want",
    [("errors.py", 0), ("core/dtype.py", 1), ("core/record.py", 2), ("ops/rounding.py", 3), ("autograd/node.py", 4),
     ("autograd/function.py", 7), ("tensor.py", 5), ("dispatch/call.py", 6), ("nn/modules/linear.py", 7),
     ("nn/__init__.py", 7),
     ("compile/region.py", 8), ("__init__.py", 9)],
)  # fmt: skip
def test_floors(path, want):
    assert floor(path) == want


def imported(node):
    """(line, dotted name) of what an import statement imports from elsewhere; nothing for other nodes."""
    if isinstance(node, ast.Import):
        yield from ((node.lineno, a.name) for a in node.names)
    elif isinstance(node, ast.ImportFrom) and not node.level:
        yield from ((node.lineno, f"{node.module}.{a.name}") for a in node.names)


@functools.cache
def of_jax(path):
    """(line, dotted name) of all of JAX that a file imports or writes as an attribute."""
    found = []
    for node in ast.walk(tree(path)):
        found += [(node.lineno, dotted(node))] if isinstance(node, ast.Attribute) else imported(node)
    return [(line, name) for line, name in found if name.startswith("jax")]


# Without such a line a file imports no torch, and need not be parsed.
MAY_IMPORT_TORCH = re.compile(r"\b(import|from)\b.*\btorch\b")


def test_torch_is_imported_by_the_oracle_and_the_benchmarks_alone():
    """The benchmarks compare with PyTorch; the package's own bench does so in its peers."""
    may = {"tests/oracle.py", "jtorch/bench/peers.py"}
    wrong = []
    for folder in ("jtorch", "tests", "examples"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            if name not in may and MAY_IMPORT_TORCH.search(path.read_text(encoding="utf-8")):
                read = tree if folder == "jtorch" else tree.__wrapped__
                found = [each for node in ast.walk(read(path)) for each in imported(node)]
                wrong += [f"{name}:{line} {m}" for line, m in found if m == "torch" or m.startswith("torch.")]
    assert not wrong, "\n" + "\n".join(wrong)


def test_jax_random_is_used_by_rng_alone():
    wrong = []
    for path in files():
        name = path.relative_to(PACKAGE).as_posix()
        if name in ("core/rng.py", "bench/peers.py"):
            continue
        wrong += [f"{name}:{line} {m}" for line, m in of_jax(path) if m.startswith("jax.random")]
    assert not wrong, "\n" + "\n".join(wrong)


# Where a primitive of our own says how it is transposed and batched: as JAX's documentation does it; jax.extend has no tables for that.
OWN_PRIMITIVES = {"autograd/levels.py": ("ad", "batching", "mlir")}


def test_only_public_jax():
    """`jax`, `jax.extend` and `jax.export`: nothing of jax._src, jaxlib or, but for the tables of primitives, of jax.interpreters."""
    wrong = []
    for path in files():
        name = path.relative_to(PACKAGE).as_posix()
        allowed = {f"jax.interpreters.{m}" for m in OWN_PRIMITIVES.get(name, ())}
        for line, m in of_jax(path):
            inner = m.split(".")[0] == "jaxlib" or m.startswith(("jax._src", "jax.interpreters"))
            if inner and m not in allowed:
                wrong.append(f"{name}:{line} {m}")
    assert not wrong, "\n" + "\n".join(wrong)


def test_ops_do_not_know_tensors():
    wrong = [
        f"ops/{p.name}:{line} {other}"
        for p in sorted((PACKAGE / "ops").glob("*.py"))
        for line, other in imports(p)
        if other.startswith(("tensor.py", "autograd", "dispatch"))
    ]
    assert not wrong, wrong
