"""A reader of pickles by opcodes: it builds plain containers and numbers, and calls only what it was given by name.

The opcodes are those of Python's pickle protocols 0 to 5 (documented in the standard library's `pickletools`). Those left out
run code or depend on the process: INST, OBJ, EXT, PERSID, and NEWOBJ_EX.
"""

import pickletools
import struct
from _compat_pickle import NAME_MAPPING
from collections import Counter, OrderedDict

from . import errors

_LINE = 1 << 12
_LONG = 1 << 12  # bytes of an integer: more would make converting it slow, and nobody counts so far
_U1, _U2, _U4, _U8 = struct.Struct("<B"), struct.Struct("<H"), struct.Struct("<I"), struct.Struct("<Q")
_I4, _F8 = struct.Struct("<i"), struct.Struct(">d")

# Module names of Python 2 in files of protocol 2.
_OLD_MODULES = {
    "__builtin__": "builtins", "copy_reg": "copyreg", "exceptions": "builtins", "cPickle": "pickle", "_abcoll": "collections.abc",
    "StringIO": "io", "cStringIO": "io",
}  # fmt: skip


def _modern(module, name) -> tuple[str, str]:
    """The path of today for one that a pickle of protocol 2 names: `__builtin__.xrange` is `builtins.range`."""
    return NAME_MAPPING.get((module, name), (_OLD_MODULES.get(module, module), name))


class Source:
    """A seekable file from a place on, read in pieces that are checked to be there before memory is asked for."""

    __slots__ = ("_read", "left", "_file")

    def __init__(self, file):
        at = file.tell()
        end = file.seek(0, 2)
        self.left = (file.tell() if end is None else end) - at
        file.seek(at)
        self._file = file
        self._read = file.read

    def read(self, n) -> bytes:
        if n > self.left:
            raise errors.unsafe("the pickle ends early")
        got = self._read(n)
        if len(got) != n:
            raise errors.unsafe("the pickle ends early")
        self.left -= n
        return got

    def line(self) -> bytes:
        """A line, without its end."""
        got = bytearray()
        while len(got) < _LINE:
            c = self.read(1)
            if c == b"\n":
                return bytes(got)
            got += c
        raise errors.unsafe("a name in the pickle is too long")


def check_key(key) -> None:
    """Raise for a key that would take long to hash: tuples of tuples share their parts, so few bytes can mean many."""
    if type(key) is str:
        return
    left = 256
    todo = [key]
    while todo:
        x = todo.pop()
        left -= 1
        if left < 0:
            raise errors.unsafe("a key in the file is too large")
        if isinstance(x, (tuple, frozenset)):
            todo.extend(x if len(x) <= left else [x] * (left + 1))


class Mark:
    """Where a MARK opcode was."""


_MARK = Mark()


class Unpickler:
    """Reads one pickle.

    Args:
        source: where the bytes come from
        names: what the file may name and do: `find(module, name)`, `callable_ok(object)`, `call(function, arguments)` and
            `build(object, state)`, each raising where something is not allowed
        persistent: function(id) -> object, for storages
        encoding: of the byte strings of Python 2; "bytes" leaves them
    """

    def __init__(self, source, names, persistent=None, encoding="utf-8"):
        self.source = source
        self.names = names
        self.persistent = persistent
        self.encoding = encoding
        self.memo = {}
        self.stack = []

    def load(self):
        """The object; CheckpointError when the pickle does anything else than describe one."""
        read, table = self.source.read, _TABLE
        try:
            while True:
                code = read(1)[0]
                if code == _STOP:
                    return self._finish()
                do = table[code]
                if do is None:
                    raise errors.unsafe(f"Unsupported operand {code}")
                do(self)
        except errors.CheckpointError:
            raise
        except _WRONG as error:
            raise errors.unsafe(f"the pickle is damaged: {type(error).__name__}: {error}") from error

    def _finish(self):
        (value,) = self.stack  # anything else left over is damage
        if value is _MARK:
            raise ValueError("the value is missing")
        return value

    # -- the stack ----------------------------------------------------------------------------------------------------------

    def pop(self):
        value = self.stack.pop()
        if value is _MARK:
            raise ValueError("a value is missing")
        return value

    def top(self):
        value = self.stack[-1]
        if value is _MARK:
            raise ValueError("a value is missing")
        return value

    def pop_mark(self) -> list:
        """What has been pushed since the last MARK."""
        stack = self.stack
        at = len(stack) - 1
        while stack[at] is not _MARK:
            at -= 1
            if at < 0:
                raise ValueError("a mark is missing")
        items = stack[at + 1 :]
        del stack[at:]
        return items

    def size(self, layout) -> int:
        return layout.unpack(self.source.read(layout.size))[0]

    # -- opcodes ------------------------------------------------------------------------------------------------------------

    def proto(self):
        n = self.source.read(1)[0]
        if n > 5:
            raise ValueError(f"unknown pickle protocol {n}")

    def frame(self):
        if self.size(_U8) > self.source.left:
            raise ValueError("a frame is longer than the pickle")

    def push_global(self):
        module, name = self.source.line().decode(), self.source.line().decode()
        self.stack.append(self.names.find(*_modern(module, name)))

    def stack_global(self):
        name, module = self.pop(), self.pop()
        if type(name) is not str or type(module) is not str:
            raise TypeError("STACK_GLOBAL wants two strings")
        self.stack.append(self.names.find(module, name))

    def reduce(self):
        args, fn = self.pop(), self.top()
        if type(args) is not tuple:
            raise TypeError("REDUCE wants a tuple")
        if not self.names.callable_ok(fn):
            raise errors.unsafe(f"Trying to call reduce for unrecognized function {_shown(fn)}")
        self.stack[-1] = self.names.call(fn, args)

    def newobj(self):
        args, cls = self.pop(), self.top()
        if type(args) is not tuple or not isinstance(cls, type) or not self.names.callable_ok(cls):
            raise errors.unsafe(
                "Can only create new object for nn.Parameter or classes allowlisted via `add_safe_globals` but got "
                f"{_shown(cls)}"
            )
        self.stack[-1] = cls.__new__(cls, *args)

    def set_state(self):
        state = self.pop()
        self.stack[-1] = self.names.build(self.top(), state)

    def append(self):
        item = self.pop()
        self._list().append(item)

    def appends(self):
        items = self.pop_mark()
        self._list().extend(items)

    def _list(self):
        found = self.top()
        if type(found) is not list:
            raise errors.unsafe(f"Can only append to lists, but got {type(found)}")
        return found

    def additems(self):
        items = self.pop_mark()
        if type(self.top()) is not set:
            raise errors.unsafe(f"Can only add to sets, but got {type(self.top())}")
        for x in items:
            check_key(x)
        self.top().update(items)

    def setitem(self):
        value, key = self.pop(), self.pop()
        check_key(key)
        self._dict()[key] = value

    def setitems(self):
        items = self.pop_mark()
        if len(items) % 2:
            raise ValueError("a value is missing")
        into = self._dict()
        for k in range(0, len(items), 2):
            check_key(items[k])
            into[items[k]] = items[k + 1]

    def _dict(self):
        found = self.top()
        if type(found) not in (dict, OrderedDict, Counter):
            raise errors.unsafe(
                f"Can only set items of dict, collections.OrderedDict, collections.Counter, but got {type(found)}"
            )
        return found

    def tuples(self, n):
        items = [self.pop() for _ in range(n)]
        self.stack.append(tuple(reversed(items)))

    def mark_tuple(self):
        items = self.pop_mark()
        self.stack.append(tuple(items))

    def mark_list(self):
        items = self.pop_mark()
        self.stack.append(items)

    def mark_dict(self):
        items = self.pop_mark()
        if len(items) % 2:
            raise ValueError("a value is missing")
        self.stack.append({})
        for k in range(0, len(items), 2):
            check_key(items[k])
            self.top()[items[k]] = items[k + 1]

    def mark_frozenset(self):
        items = self.pop_mark()
        for x in items:
            check_key(x)
        self.stack.append(frozenset(items))

    def drop(self):
        if self.stack.pop() is _MARK:
            return
        if not self.stack:
            raise ValueError("the stack is empty")

    def text(self, layout):
        raw = self.source.read(self.size(layout))
        self.stack.append(str(raw, "utf-8", "surrogatepass"))

    def raw(self, layout):
        self.stack.append(self.source.read(self.size(layout)))

    def raw_array(self):
        self.stack.append(bytearray(self.source.read(self.size(_U8))))

    def old_text(self, layout):
        raw = self.source.read(self.size(layout))
        self.stack.append(raw if self.encoding == "bytes" else raw.decode(self.encoding))

    def long(self, layout):
        n = self.size(layout)
        if n < 0 or n > _LONG:
            raise ValueError("an integer is too long")
        self.stack.append(int.from_bytes(self.source.read(n), "little", signed=True))

    def decimal(self):
        line = self.source.line()
        if line in (b"00", b"01"):
            self.stack.append(line == b"01")
        else:
            self.stack.append(int(line))

    def decimal_long(self):
        self.stack.append(int(self.source.line().removesuffix(b"L")))

    def decimal_float(self):
        self.stack.append(float(self.source.line()))

    def line_text(self):
        self.stack.append(str(self.source.line(), "raw-unicode-escape"))

    def get(self, layout):
        self.stack.append(self.memo[self.size(layout)])

    def line_get(self):
        self.stack.append(self.memo[int(self.source.line())])

    def put(self, layout):
        self.memo[self.size(layout)] = self.top()

    def line_put(self):
        self.memo[int(self.source.line())] = self.top()

    def memoize(self):
        self.memo[len(self.memo)] = self.top()

    def persistent_id(self):
        pid = self.pop()
        if self.persistent is None or type(pid) is not tuple:
            raise errors.unsafe(f"persistent_load id must be tuple or int, but got {type(pid)}")
        self.stack.append(self.persistent(pid))


def _shown(x) -> str:
    """A short name of an object: its repr could be anything."""
    return getattr(x, "__name__", None) or f"a {type(x).__name__}"


# What a damaged stream of opcodes can raise on the way.
_WRONG = (
    ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError, NotImplementedError, RecursionError, RuntimeError,
    TypeError, ValueError, struct.error,
)  # fmt: skip


def _push(make):
    return lambda u: u.stack.append(make())


def _with(method, argument):
    return lambda u: method(u, argument)


_STOP = ord(".")
_TABLE: list = [None] * 256
_U = Unpickler
for _code, _do in {
    b"\x80": _U.proto, b"\x95": _U.frame,
    b"c": _U.push_global, b"\x93": _U.stack_global, b"R": _U.reduce, b"\x81": _U.newobj, b"b": _U.set_state,
    b"a": _U.append, b"e": _U.appends, b"s": _U.setitem, b"u": _U.setitems, b"\x90": _U.additems,
    b"(": lambda u: u.stack.append(_MARK), b"0": _U.drop, b"1": _U.pop_mark, b"2": lambda u: u.stack.append(u.top()),
    b"t": _U.mark_tuple, b"l": _U.mark_list, b"d": _U.mark_dict, b"\x91": _U.mark_frozenset,
    b"\x85": _with(_U.tuples, 1), b"\x86": _with(_U.tuples, 2), b"\x87": _with(_U.tuples, 3),
    b")": _push(tuple), b"]": _push(list), b"}": _push(dict), b"\x8f": _push(set),
    b"N": _push(lambda: None), b"\x88": _push(lambda: True), b"\x89": _push(lambda: False),
    b"K": lambda u: u.stack.append(u.size(_U1)), b"M": lambda u: u.stack.append(u.size(_U2)),
    b"J": lambda u: u.stack.append(u.size(_I4)), b"G": lambda u: u.stack.append(u.size(_F8)),
    b"\x8a": _with(_U.long, _U1), b"\x8b": _with(_U.long, _I4),
    b"I": _U.decimal, b"L": _U.decimal_long, b"F": _U.decimal_float, b"V": _U.line_text,
    b"\x8c": _with(_U.text, _U1), b"X": _with(_U.text, _U4), b"\x8d": _with(_U.text, _U8),
    b"C": _with(_U.raw, _U1), b"B": _with(_U.raw, _U4), b"\x8e": _with(_U.raw, _U8), b"\x96": _U.raw_array,
    b"U": _with(_U.old_text, _U1), b"T": _with(_U.old_text, _U4),
    b"h": _with(_U.get, _U1), b"j": _with(_U.get, _U4), b"g": _U.line_get,
    b"q": _with(_U.put, _U1), b"r": _with(_U.put, _U4), b"p": _U.line_put, b"\x94": _U.memoize,
    b"Q": _U.persistent_id,
}.items():  # fmt: skip
    _TABLE[_code[0]] = _do


# --- the names in a pickle, without running it ---------------------------------------------------------------------------


def globals_in(data) -> set:
    """The paths that a pickle names, from its opcodes alone. CheckpointError for what is no pickle."""
    paths, memo, strings = set(), {}, [None, None]
    try:
        for opcode, argument, _ in pickletools.genops(data):
            if opcode.name in ("GLOBAL", "INST"):
                module, _, name = argument.partition(" ")
                paths.add(".".join(_modern(module, name)))
            elif opcode.name == "STACK_GLOBAL":
                paths.add(".".join(map(str, strings[-2:])))
            elif opcode.name == "MEMOIZE":
                memo[len(memo)] = strings[-1]
            elif opcode.name in ("PUT", "BINPUT", "LONG_BINPUT"):
                memo[argument] = strings[-1]
            elif opcode.name in ("GET", "BINGET", "LONG_BINGET"):
                strings = [strings[-1], memo.get(argument)]
            elif opcode.stack_after and opcode.name != "PROTO":
                strings = [strings[-1], argument if isinstance(argument, str) else None]
    except _WRONG as error:
        raise errors.unsafe(f"the pickle is damaged: {error}") from error
    return paths
