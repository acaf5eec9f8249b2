"""Writes docs/coverage.md: every public name of PyTorch, there or not, with counts and reasons.

Run: python tools/coverage.py   (needs the `test` extra)
"""

import importlib
import os
import pathlib
import re
import sys
import tempfile
import warnings

import torch  # noqa: TID251  the list of names is PyTorch's own

import jtorch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
KNOWN = importlib.import_module("tests.known").KNOWN

SPACES = (
    "", "Tensor", "nn", "nn.functional", "nn.init", "nn.utils", "optim", "optim.lr_scheduler", "utils.data", "autograd",
    "func", "linalg", "fft", "special", "signal.windows", "masked", "sparse", "random", "accelerator", "distributions",
)  # fmt: skip

REASONS = (
    (r"[Ss]emi_?[Ss]tructured", "2:4 sparsity is for some NVIDIA kernels alone"),
    (r"spsolve", "there is no direct solver of sparse systems"),
    (r"to_mkldnn|mkldnn", "vendor layouts are not supported: use dense tensors"),
    (r"quant|q_scale|q_zero|q_per|int_repr|fake_|fbgemm|choose_qparams|qscheme|^q(u?int)|^qint|quint", "quantized tensors are not supported"),
    (r"names|rename|align_|refine_names|unflatten_names", "named tensors are not supported"),
    (r"cudnn|miopen|^cuda|mps|xpu|hip|vulkan|ipu|mtia|hpu|nnpack|openmp", "exists for one vendor's kernels"),
    (r"Storage$", "typed storages: use untyped_storage()"),
    (r"jit|script|Type$|ScriptModule|graph|fork|wait|parse_|import_ir|merge_type|Jit|Future|Await|FunctionSchema|DeepCopy|Pass",
     "TorchScript is not part of jtorch"),
    (r"Sym|sym_|unravel|Guard|Dispatch|Serial|LiteScript|LoggerBase|Throughput|Benchmark|Execution|Exclude|Logging|AggregationType|"
     r"BufferDict|CallStack|Capsule|ClassType|Cod|CompilationUnit|Conv|Decl|Dict|Disable|Enum|Error|Fatal|Inferred|Inter|IO|List|"
     r"Module|None|Num|Opt|Out|Pair|PyObj|PyTorch|RR|Run|Script|Stat|Str|Tuple|Un|Use|Value|Version|Any|Arg|Block|Node|Gradient|set_autocast|autocast_",
     "internal to PyTorch's implementation"),
)  # fmt: skip


def holder(root, space):
    """The module or class of a namespace, or None."""
    found = root
    for part in space.split(".") if space else ():
        try:
            found = getattr(found, part)
        except AttributeError:
            try:
                found = importlib.import_module(f"{root.__name__}.{space}")
            except ImportError:
                return None
            break
    return found


def public(found):
    """The public names of a namespace: its __all__ where it has one, else what does not start with an underscore."""
    names = getattr(found, "__all__", None) if not isinstance(found, type) else None
    if names is None or found is torch:
        names = [n for n in dir(found) if not n.startswith("_")]
    modules = type(torch)
    return sorted({n for n in names if not n.startswith("_") and not isinstance(getattr(found, n, None), modules)})


def state(found, name):
    """ "there", "unsupported" (it is there, and says at the call that it is not supported) or "missing"."""
    try:
        value = getattr(found, name)
    except Exception:
        return "missing"
    return "unsupported" if getattr(value, "__unsupported__", False) else "there"


def reason(name):
    for pattern, words in REASONS:
        if re.search(pattern, name):
            return words
    return "not there yet"


def grouped(lists):
    """Names under their namespaces and reasons."""
    lines = []
    for space, found in lists:
        if not found:
            continue
        groups = {}
        for n in found:
            groups.setdefault(reason(n), []).append(n)
        lines += [f"### `{space}`", ""]
        for words, names in sorted(groups.items()):
            lines += [f"- {words} ({len(names)}): " + ", ".join(f"`{n}`" for n in names)]
        lines += [""]
    return lines


_SKIP = re.compile(r'(?:pytest\.skip|skipif|importorskip)\((?:.*?reason=)?\s*f?"([^"]+)"')


def skips():
    """Where tests skip, and why; an op has no test of a form that it does not have, which counts as a skip too."""
    tests = pathlib.Path(__file__).resolve().parent.parent / "tests"
    found = []
    for path in sorted(tests.rglob("*.py")):
        for reason in _SKIP.findall(path.read_text(encoding="utf-8")):
            found.append(f"- `tests/{path.relative_to(tests)}`: {reason}")
    head = (
        f"{len(found)} places skip; a name alone is a package that the test needs, and that the `test` extra installs."
    )
    return [head, "", *found]


ON_TPUS = (
    "- complex128: XLA's compiler for TPUs ends the process where it meets one, so such tensors are refused there",
    "- LU factorisations (`inv`, `solve`, `det`, `matrix_exp`) of float64, gradients of its `remainder`, `copysign`, `ldexp`, `frexp`, `lgamma`, `digamma` and "
    "`nextafter`, `linear`, `bilinear`, `tensordot` and `einsum` of int64: XLA has none for TPUs; the error says to use float32 or int32, or the CPU",
)


def main():
    rows, lists = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for space in SPACES:
            theirs, ours = holder(torch, space), holder(jtorch, space)
            names = public(theirs)
            states = {n: "missing" if ours is None else state(ours, n) for n in names}
            missing, refused = ([n for n in names if states[n] == s] for s in ("missing", "unsupported"))
            rows.append((f"torch.{space}".rstrip("."), len(names), len(missing), len(refused)))
            lists.append((f"torch.{space}".rstrip("."), missing, refused))
    lines = [
        "# Coverage",
        "",
        f"Public names of PyTorch {torch.__version__.partition('+')[0]} in jtorch; written by `python tools/coverage.py`.",
        "",
        "A name that raises a clear error at its call, since what it needs is not supported, is counted apart and not as there.",
        "",
        "| namespace | names | there | share | raises a clear error | missing |",
        "|---|---|---|---|---|---|",
    ]
    for s, n, missing, refused in rows:
        there = n - missing - refused
        lines.append(f"| `{s}` | {n} | {there} | {100 * there / max(n, 1):.1f}% | {refused} | {missing} |")
    lines += ["", "## Known differences", ""]
    lines += [
        f"{len(KNOWN)} tests are expected failures; `tests/known.py` has what each says (most are words of errors)."
    ]
    lines += ["", "## Skips", ""]
    lines += skips()
    lines += ["", "## What is missing, and why", ""]
    lines += grouped([(space, missing) for space, missing, _ in lists])
    lines += ["## What raises a clear error", ""]
    lines += grouped([(space, refused) for space, _, refused in lists])
    lines += ["### On TPUs", "", *ON_TPUS]
    target = pathlib.Path(__file__).resolve().parent.parent / "docs" / "coverage.md"
    with tempfile.NamedTemporaryFile("w", dir=target.parent, delete=False, suffix=".tmp") as out:
        out.write("\n".join(lines).rstrip() + "\n")
    os.replace(out.name, target)
    print("\n".join(lines[:25]))


if __name__ == "__main__":
    main()
