"""Classes of PyTorch's script compiler and executor: those that it makes itself alone, and the few that a program can make."""

from ..errors_extend import no_constructor, wrong_arguments
from ..sundries import DispatchKeySet

# Classes that no program can make, in PyTorch either: for isinstance alone.
_NO_CONSTRUCTOR = (
    "ArgumentSpec", "Capsule", "Code", "CompleteArgumentSpec", "ConcreteModuleType", "DeepCopyMemoTable", "ExecutionPlan", "Gradient",
    "GraphExecutorState", "IODescriptor", "OperatorInfo", "ScriptClass", "ScriptClassFunction", "ScriptMethod", "ScriptObject",
    "ScriptObjectProperty", "SerializationStorageContext", "StaticModule",
)  # fmt: skip


def _class(name):
    def __init__(self, *args, **kwargs):
        raise no_constructor(name)

    doc = "An object of PyTorch's script compiler: it has no constructor, and nothing here makes one."
    return type(name, (), {"__init__": __init__, "__module__": "torch", "__doc__": doc})


NAMED = {name: _class(name) for name in _NO_CONSTRUCTOR}


class SourceRange:
    """A part of a source: from the factory's make_range."""

    def __init__(self, *args):
        raise no_constructor("_jit_tree_views.SourceRange")

    def highlight(self) -> str:
        """The lines, with the part marked."""
        source, line, start, end = self._of
        lines = source._text.split("\n")
        at = min(max(line - 1, 0), len(lines) - 1)
        first = source._indent + start
        mark = " " * first + "~" * max(end - start, 1) + " <--- HERE"
        head = f'  File "{source._file}", line {source._first + line - 1}\n' if source._file else ""
        return head + "\n".join([*lines[max(at - 3, 0) : at + 1], mark, *lines[at + 1 : at + 4]])

    @property
    def start(self) -> int:
        return self._at(2)

    @property
    def end(self) -> int:
        return self._at(3)

    def _at(self, k):
        source, line, *_ = self._of
        return sum(len(x) + 1 for x in source._text.split("\n")[: line - 1]) + source._indent + self._of[k]

    def __repr__(self):
        return "SourceRange at:\n" + self.highlight()

    __str__ = highlight


class SourceRangeFactory:
    """A source text of a file from a line on; `make_range(line, start, end)` gives parts of it."""

    def __init__(self, text, filename, file_lineno, leading_whitespace_chars):
        self._text, self._file, self._first, self._indent = text, filename, file_lineno, leading_whitespace_chars

    @property
    def source(self) -> str:
        return self._text

    def make_range(self, line, start_col, end_col) -> SourceRange:
        """Columns of a line, counted from 1."""
        made = object.__new__(SourceRange)
        made._of = self, line, start_col, end_col
        return made


class ErrorReport:
    """A message about a place in a source."""

    def __init__(self, *args):
        if len(args) != 1 or not isinstance(args[0], SourceRange):
            raise wrong_arguments("ErrorReport", "arg0: torch._C._jit_tree_views.SourceRange", args)
        self._range = args[0]

    def what(self) -> str:
        """The message."""
        return f"\n:\n{self._range.highlight()}"

    @staticmethod
    def call_stack() -> str:
        """The functions that are being compiled: none."""
        return ""


class CallStack:
    """A function that is being compiled, with the place of its call."""

    def __init__(self, *args):
        if len(args) != 2 or not isinstance(args[0], str) or not isinstance(args[1], SourceRange):
            raise wrong_arguments("CallStack", "arg0: str, arg1: torch._C._jit_tree_views.SourceRange", args)
        self._name, self._range = args


class ExcludeDispatchKeyGuard:
    """Accepted: there are no kernels by dispatch key to leave out."""

    def __init__(self, *args):
        if len(args) != 1 or not isinstance(args[0], DispatchKeySet):
            raise wrong_arguments("ExcludeDispatchKeyGuard", "arg0: torch._C.DispatchKeySet", args)


class LiteScriptModule:
    """A module of a mobile archive: TypeError, since neither of what it is made of can be made by a program."""

    def __init__(self, *args):
        raise wrong_arguments(
            "LiteScriptModule", "arg0: c10::ivalue::Object, arg1: torch::jit::mobile::CompilationUnit", args
        )
