"""What a code object says of itself, by its instructions: which names it reads, and what it might see or do."""

import builtins
import dis
from itertools import pairwise

# Instructions and names by which code may see whether two tensors are one.
_TELLING = frozenset(
    ("BUILD_SET", "SET_ADD", "SET_UPDATE", "BUILD_MAP", "MAP_ADD", "CONTAINS_OP", "set", "frozenset", "fromkeys", "index", "count")
)  # fmt: skip
_STORES = frozenset(("DELETE_GLOBAL", "DELETE_NAME", "STORE_NAME", "GET_AWAITABLE"))  # besides those in `stores`
# Attributes of tensors and closure cells whose values have no guard.
_UNSEEN = frozenset(("_version", "data_ptr", "cell_contents"))


def chains(code):
    """(a global or free name, the attributes read from it one after the other) for each such expression."""
    first, path = None, []
    for op in dis.get_instructions(code):
        if first is not None and op.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            path.append(op.argval)
            continue
        if path:
            yield first, path
        first = op.argval if op.opname in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF") else None
        path = []


def words(code):
    """The words in its constants, which may be names of attributes."""
    for const in code.co_consts:
        if type(const) is str:
            yield const
        elif type(const) is tuple:
            yield from (word for word in const if type(word) is str)


def reads_any_name(code) -> bool:
    """Whether it may read attributes whose names it does not have: by a class's pattern, or where any error is caught."""
    before = None
    for op in dis.get_instructions(code):
        if op.opname == "MATCH_CLASS" or before == "PUSH_EXC_INFO" and op.opname == "POP_TOP":
            return True
        before = op.opname
    return False


def tells_apart(code) -> bool:
    """Whether it may see which tensor one is: by an `is` of something else than a constant, or in a set or dict."""
    before = None
    for op in dis.get_instructions(code):
        if op.opname in _TELLING or op.opname == "IS_OP" and before != "LOAD_CONST":
            return True
        before = op.opname
    return not _TELLING.isdisjoint(code.co_names)


def compares(code, scope) -> bool:
    """Whether it may see which list or dict one is: by an `is` of something else than a constant or a class."""
    before = None
    for op in dis.get_instructions(code):
        if op.opname == "IS_OP" and before is not None and before.opname != "LOAD_CONST":
            named = scope.get(before.argval, vars(builtins).get(before.argval))
            if before.opname != "LOAD_GLOBAL" or not isinstance(named, type):
                return True
        before = op
    return "is_" in code.co_names or "is_not" in code.co_names


def bare(code):
    """The global names whose values are used otherwise than for an attribute."""
    found, before = set(), None
    for op in dis.get_instructions(code):
        if before is not None and op.opname not in ("LOAD_ATTR", "LOAD_METHOD"):
            found.add(before)
        before = op.argval if op.opname in ("LOAD_GLOBAL", "LOAD_NAME") else None
    return found


def handed_on(code):
    """The global names whose values are used otherwise than for a call or an attribute."""
    ops = [op for op in dis.get_instructions(code) if op.opname != "CACHE"]
    return {
        op.argval for op, after in pairwise(ops)
        if op.opname == "LOAD_GLOBAL" and not op.arg & 1 and after.opname not in ("LOAD_ATTR", "LOAD_METHOD")
    }  # fmt: skip


def stores(code):
    """Why a code object may leave a trace that nobody follows, or asks for what has no guard; None if it does not."""
    for op in dis.get_instructions(code):
        if op.opname in ("LOAD_ATTR", "LOAD_METHOD") and op.argval in _UNSEEN:
            return f"asks for {op.argval} at {code.co_filename}:{code.co_firstlineno}"
        if op.opname in _STORES:
            return f"{op.opname.lower().replace('_', ' ')} {op.argval} at {code.co_filename}:{code.co_firstlineno}"
        if op.opname == "STORE_DEREF" and op.argval in code.co_freevars:
            return f"assigns the outer variable {op.argval} at {code.co_filename}:{code.co_firstlineno}"
    return None


def global_names(code):
    return {op.argval for op in dis.get_instructions(code) if op.opname in ("LOAD_GLOBAL", "LOAD_NAME")}


__all__ = [
    "bare",
    "chains",
    "compares",
    "global_names",
    "handed_on",
    "reads_any_name",
    "stores",
    "tells_apart",
    "words",
]
