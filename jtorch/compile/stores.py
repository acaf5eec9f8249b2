"""Where a code object writes to what may be there before it runs, and by which expression it comes to that; no frame is looked at.

A walk over the instructions keeps the top of the stack as expressions: tuples of a kind and parts, None where it cannot tell.
"""

import dis
import functools
import sys

_NEWER = sys.version_info >= (3, 13)  # where the place for a bound object comes after the function
_LOADS = {
    "LOAD_FAST": "local", "LOAD_FAST_CHECK": "local", "LOAD_FAST_BORROW": "local", "LOAD_DEREF": "cell", "LOAD_GLOBAL": "global",
    "LOAD_CONST": "const", "LOAD_SMALL_INT": "const", "LOAD_CONST_IMMORTAL": "const", "LOAD_CONST_MORTAL": "const",
}  # fmt: skip
_PAIRS = ("LOAD_FAST_LOAD_FAST", "LOAD_FAST_BORROW_LOAD_FAST_BORROW")
_NOTHING = frozenset(
    ("CACHE", "EXTENDED_ARG", "NOP", "RESUME", "PRECALL", "KW_NAMES", "MAKE_CELL", "COPY_FREE_VARS", "NOT_TAKEN")
)
_ENDS = frozenset(("RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE"))
# (how many are taken, how many come) of instructions whose results are nothing that is followed
_EFFECTS = {
    "PUSH_NULL": (0, 1), "POP_TOP": (1, 0), "COMPARE_OP": (2, 1), "IS_OP": (2, 1), "CONTAINS_OP": (2, 1), "UNARY_NEGATIVE": (1, 1),
    "UNARY_NOT": (1, 1), "UNARY_INVERT": (1, 1), "UNARY_POSITIVE": (1, 1), "TO_BOOL": (1, 1), "LIST_APPEND": (1, 0), "SET_ADD": (1, 0),
    "LIST_EXTEND": (1, 0), "SET_UPDATE": (1, 0), "DICT_UPDATE": (1, 0), "DICT_MERGE": (1, 0), "MAP_ADD": (2, 0), "BINARY_SLICE": (3, 1),
    "STORE_ATTR": (2, 0), "STORE_SUBSCR": (3, 0), "STORE_SLICE": (4, 0), "DELETE_ATTR": (1, 0), "DELETE_SUBSCR": (2, 0),
    "STORE_GLOBAL": (1, 0), "STORE_DEREF": (1, 0), "IMPORT_NAME": (2, 1), "IMPORT_FROM": (0, 1), "FORMAT_SIMPLE": (1, 1), "POP_JUMP_FORWARD_IF_NONE": (1, 0),
}  # fmt: skip
_OWN_DICT = frozenset(("__dict__", "vars"))
STORES = frozenset(
    ("STORE_ATTR", "STORE_SUBSCR", "STORE_SLICE", "DELETE_ATTR", "DELETE_SUBSCR", "STORE_GLOBAL", "IMPORT_NAME")
)

# Methods by which a container or an array changes in place. Python's calls of some of them are seen only in the code.
IN_PLACE = {
    "+=": "__iadd__", "-=": "__isub__", "*=": "__imul__", "/=": "__itruediv__", "//=": "__ifloordiv__", "%=": "__imod__",
    "**=": "__ipow__", "@=": "__imatmul__", "&=": "__iand__", "|=": "__ior__", "^=": "__ixor__", "<<=": "__ilshift__", ">>=": "__irshift__",
}  # fmt: skip

# Such methods, of which Python says nothing while C code runs them.
CHANGING = frozenset((*IN_PLACE.values(), "__setitem__", "__delitem__", "__setattr__", "__delattr__"))


class Site:
    """One instruction that writes: `name` for attributes and globals, `owner` and `key` expressions. adds: it adds to what is there, and
    step: this number, if that is known.

    An import is one too: name, and as owner and key how far up and which names; so is a call of a method that changes its object.
    """

    __slots__ = ("op", "name", "owner", "key", "adds", "step")

    def __init__(self, op, name, owner=None, key=None, adds=False, step=None):
        self.op, self.name, self.owner, self.key, self.adds, self.step = op, name, owner, key, adds, step


class Walk:
    """sites: offset -> Site. fresh: offset -> a local variable that has been given a new dict. reads: names of attributes and globals
    that are read otherwise than to be added to. wary: it may ask for a dict of attributes."""

    def __init__(self, code):
        self.sites = {}
        self.fresh = {}
        self.stack = []
        self.loaded = {}  # offset -> name of attributes and globals
        self.added = set()  # offsets of those that are only added to
        self.new = None
        start = None
        for op in dis.get_instructions(code):
            if op.opname == "EXTENDED_ARG":  # the instruction begins here
                start = op.offset if start is None else start
                continue
            if op.is_jump_target:
                self.stack.clear()
            self.step(op, op.offset if start is None else start)
            start = start if op.opname == "CACHE" else None
        self.wary = not _OWN_DICT.isdisjoint((*code.co_names, *(each for each in code.co_consts if type(each) is str)))
        self.reads = frozenset(name for offset, name in self.loaded.items() if offset not in self.added)

    def pop(self, n=1):
        """Take the top n; the first of them is the deepest."""
        missing = max(0, n - len(self.stack))
        taken = [None] * missing + self.stack[len(self.stack) - n + missing :]
        del self.stack[len(self.stack) - n + missing :]
        return taken

    def step(self, op, at):
        """One instruction."""
        name, arg, stack = op.opname, op.arg or 0, self.stack
        if self.new is not None and name not in _NOTHING:
            self.fresh[at] = self.new
            self.new = None
        if name in STORES or name == "STORE_DEREF":
            self.store(op, at)
        elif name in _NOTHING:
            pass
        elif name in _LOADS:
            self.load(op, _LOADS[name])
        elif name in _PAIRS:
            stack += [("local", each) for each in op.argval]
        elif name in ("LOAD_ATTR", "LOAD_METHOD"):
            (owner,) = self.pop()
            self.loaded[op.offset] = op.argval
            self.changing(op, at, _bare(owner))
            found = owner and ("attr", _bare(owner), op.argval, op.offset)
            bound = name == "LOAD_METHOD" or sys.version_info >= (3, 12) and arg & 1
            stack += [None, None] if bound else [found]
        elif name.startswith("LOAD_SUPER_"):
            self.changing(op, at, _bare(self.pop(3)[-1]))
            stack += [None, None] if arg & 1 else [None]
        elif name == "COPY":
            found = stack[-arg] if arg <= len(stack) else None
            if found:  # it is used twice, so that it is not only added to
                found = stack[-arg] = None if found[0] == "sum" else _bare(found)
            stack.append(found)
        elif name == "SWAP":
            if arg > len(stack):
                stack[:0] = [None] * (arg - len(stack))
            stack[-1], stack[-arg] = stack[-arg], stack[-1]
        elif name == "BINARY_OP" or name == "BINARY_SUBSCR":
            left, right = self.pop(2)
            if name == "BINARY_SUBSCR" or op.argrepr == "[]":
                stack.append(left and right and ("item", _bare(left), _bare(right)))
            else:
                step = right[1] if right and right[0] == "const" and type(right[1]) is int else None
                step = -step if step is not None and "-" in op.argrepr else step
                stack.append(("sum", left, step) if left and op.argrepr in ("+", "-", "+=", "-=") else None)
        elif name.startswith("STORE_FAST"):
            self.assign(op)
        elif name in ("BUILD_MAP", "BUILD_CONST_KEY_MAP"):
            self.pop(2 * arg if name == "BUILD_MAP" else arg + 1)
            stack.append(("fresh",))
        elif name.startswith("BUILD_"):
            self.pop(arg)
            stack.append(None)
        elif name in ("CALL", "CALL_KW"):
            called = self.pop(arg + 2 + (name == "CALL_KW"))
            made = {("global", "dict"): ("fresh",), ("global", "super"): ("first",)}
            known = [made[each] for each in map(_bare, called[:2]) if each in made]
            stack.append(known[0] if known and (known[0] == ("fresh",) or len(called) == 2) else None)
        elif name in _EFFECTS:
            taken, come = _EFFECTS[name]
            self.pop(taken)
            stack += [None] * come
        else:
            stack.clear()

    def changing(self, op, at, owner):
        """A method of this object is taken."""
        if op.argval in CHANGING:
            self.sites[at] = Site("CALLS", op.argval, owner)

    def load(self, op, kind):
        """A variable or constant."""
        found = kind, op.argval
        if kind == "global":
            self.loaded[op.offset] = op.argval
            found = (*found, op.offset)
            if op.arg & 1:
                self.stack += [found, None] if _NEWER else [None, found]
                return
        self.stack.append(found)

    def assign(self, op):
        """A local variable gets another value: what was said of the one before is so no more."""
        two = op.opname == "STORE_FAST_STORE_FAST"
        taken = self.pop(2 if two else 1)
        names = op.argval if type(op.argval) is tuple else (op.argval,)
        stored = names if two else names[:1]
        self.stack[:] = [
            None if each and any(_mentions(each, name) for name in stored) else each for each in self.stack
        ]
        if taken[-1] == ("fresh",):
            self.new = stored[0]
        if op.opname == "STORE_FAST_LOAD_FAST":
            self.stack.append(("local", names[1]))

    def store(self, op, at):
        """An instruction that writes."""
        name, owner, key, adds = op.opname, None, None, False
        taken = self.pop(_EFFECTS[name][0])
        self.stack += [None] * _EFFECTS[name][1]
        if name in ("STORE_ATTR", "DELETE_ATTR"):
            owner = _bare(taken[-1])
            adds = name == "STORE_ATTR" and self.is_sum(taken[0], ("attr", owner, op.argval))
        elif name in ("STORE_SUBSCR", "DELETE_SUBSCR"):
            owner, key = map(_bare, taken[-2:])
        elif name == "STORE_SLICE":
            owner = _bare(taken[1])
        elif name == "IMPORT_NAME":
            owner, key = taken
        elif name == "STORE_GLOBAL":
            adds = self.is_sum(taken[0], ("global", op.argval))
        if name in STORES:
            self.sites[at] = Site(
                name, op.argval if isinstance(op.argval, str) else None, owner, key, adds, taken[0][2] if adds else None
            )

    def is_sum(self, value, place):
        """Whether a value is what is in a place and something more."""
        if value is None or value[0] != "sum" or _bare(value[1]) != place or value[1] == place:
            return False
        self.added.add(value[1][-1])
        return True


def _bare(expression):
    """Without the place in the code at which it is read."""
    return (
        expression[:-1]
        if expression and expression[0] in ("attr", "global") and type(expression[-1]) is int
        else expression
    )


def _mentions(expression, name) -> bool:
    return expression[:2] == ("local", name) or any(type(p) is tuple and _mentions(p, name) for p in expression[1:])


@functools.lru_cache(maxsize=1024)
def walk(code):
    """The Walk over a code object."""
    return Walk(code)


def augmented(code):
    """(a local variable, the method by which it may be changed in place) for each assignment like `x += y`."""
    found, method = [], None
    for op in dis.get_instructions(code):
        if method is not None and op.opname.startswith(("STORE_FAST", "STORE_DEREF")):
            found.append((op.argval[0] if type(op.argval) is tuple else op.argval, method))
        method = IN_PLACE.get(op.argrepr) if op.opname == "BINARY_OP" else None
    return found


__all__ = ["IN_PLACE", "STORES", "Site", "augmented", "walk"]
