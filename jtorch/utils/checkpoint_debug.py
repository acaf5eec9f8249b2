"""What `checkpoint(..., debug=True)` tells when a recomputation goes another way: the operators of both times, and where they were called."""

import itertools

from ..core.ledger import user_frames
from ..tensor import Tensor
from ._python_dispatch import TorchDispatchMode
from .weak import WeakTensorKeyDictionary

_TITLE = """ An error happened while unpacking tensors; dumping logs of latest computation
because you passed `debug=True` to `torch.utils.checkpoint.checkpoint()`.
The cause is at the end."""
_CAUSE = """ ERROR: Detected non-determinism while running activation checkpointing

 The tensors saved by the first computation are not those saved by the second. Compare the operators of both
 (part 3): where they part, the stack traces (parts 1 and 2) say from which lines they were called."""


class OperatorLog(TorchDispatchMode):
    """Notes each operator as a line, its tensors by number, and the lines of the program that called it."""

    def __init__(self):
        super().__init__()
        self.lines, self.stacks = [], []

    def __enter__(self):
        self.lines.clear()
        self.stacks.clear()
        self.numbers, self.count = WeakTensorKeyDictionary(), itertools.count()  # anew each time
        return super().__enter__()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        given = [self.shown(a) for a in args] + [f"{k}={self.shown(v)}" for k, v in (kwargs or {}).items()]
        made = "(stopped)"  # as soon as the last tensor that is needed has been saved
        try:
            result = func(*args, **(kwargs or {}))
            made = ", ".join(self.described(r) for r in (result if isinstance(result, (tuple, list)) else (result,)))
        finally:
            self.lines.append(f"{made} = torch._ops.{func}({', '.join(given)})")
            self.stacks.append([f"{file}:{line}:{name}" for file, line, name in user_frames()])
        return result

    def shown(self, value):
        if isinstance(value, Tensor):
            if value not in self.numbers:
                self.numbers[value] = next(self.count)
            return f"${self.numbers[value]}"
        if isinstance(value, (tuple, list)):
            return f"[{', '.join(map(self.shown, value))}]"
        return repr(value)

    def described(self, value):
        if not isinstance(value, Tensor):
            return self.shown(value)
        return f"{self.shown(value)}: {str(value.dtype).removeprefix('torch.')}{list(value.shape)}"

    def traced(self, label):
        n = len(self.lines)
        for k, (line, stack) in enumerate(zip(self.lines, self.stacks), 1):
            yield "\n".join((f"{line}   ({k} of {n} in {label})", "", *stack, ""))


def report(first, second) -> str:
    """The words of the error: both logs, and how to read them."""
    parts = (
        ("1. Stack traces of the operators that ran in the original forward", *first.traced("original")),
        ("2. Stack traces of the operators that ran during recomputation", *second.traced("recompute")),
        (
            "3. Log of operators in the original forward and recomputation",
            "Operations executed during the original forward:\n", *first.lines,
            "\nOperations executed during recomputation:\n", *second.lines,
        ),
    )  # fmt: skip
    rule = "-" * 78
    shown = [f"{rule}\n {title}\n{rule}\n\n" + "\n".join(lines) for title, *lines in parts]
    return "\n\n".join((_TITLE, *shown, f"{rule}\n{_CAUSE}\n"))
