"""The ledger: what was flushed, compiled and synchronised, from which source line and why. Counting is always on."""

import os
import sys

from .. import config

_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


class Entry:
    """One program: where it was first flushed, and what it has cost."""

    __slots__ = ("line", "cause", "nodes", "runs", "fused", "compiles", "seconds", "first_seconds")

    def __init__(self, line, cause, nodes):
        self.line = line
        self.cause = cause
        self.nodes = nodes
        self.runs = self.fused = self.compiles = 0
        self.seconds = self.first_seconds = 0.0


class Counters:
    """Sums over all programs."""

    __slots__ = ("flushes", "compiles", "reused", "by_op", "promotions", "data_wait", "data_loop")

    def __init__(self):
        self.clear()

    def clear(self):
        self.flushes = self.compiles = self.reused = self.by_op = self.promotions = 0
        self.data_wait = self.data_loop = 0.0


entries: list[Entry] = []
counters = Counters()
_KEEP = 2000


def user_line() -> str:
    """file:line of the innermost frame outside jtorch."""
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith(_ROOT) and not name.startswith("<"):
            return f"{name}:{frame.f_lineno}"
        frame = frame.f_back
    return "?"


def is_users(code) -> bool:
    """Whether a code object is from outside jtorch."""
    return not code.co_filename.startswith((_ROOT, "<jtorch "))


def way() -> tuple:
    """The place in the user's program that is being run, and on the way from there."""
    frame, places = sys._getframe(2), []
    while frame is not None:
        places.append((frame.f_code, frame.f_lasti))
        if is_users(frame.f_code):
            break
        frame = frame.f_back
    return tuple(places)


def user_frames():
    """(file, line, function) of every frame outside jtorch, innermost first."""
    frame = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if is_users(code):
            yield code.co_filename, frame.f_lineno, code.co_name
        frame = frame.f_back


def _entry(prog, cause) -> Entry:
    entry = prog.entry
    if entry is None:
        entry = prog.entry = Entry(user_line(), cause, prog.n_nodes)
        entries.append(entry)
        if len(entries) > _KEEP:
            del entries[: _KEEP // 2]
    return entry


def compiled(prog, cause):
    """A program is about to be compiled as a whole."""
    entry = _entry(prog, cause)
    entry.compiles += 1
    counters.compiles += 1
    if "recompiles" in config.logs:
        print(f"[jtorch] compile {entry.nodes} nodes at {user_line()} ({cause})", file=sys.stderr)


def chained(prog, length):
    """A program of several runs of this one has been compiled."""
    entry = _entry(prog, "compiled region")
    entry.compiles += 1
    counters.compiles += 1
    if "recompiles" in config.logs:
        print(f"[jtorch] compile {length} calls of {entry.nodes} nodes as one program", file=sys.stderr)


def flushed(prog, cause, how, seconds):
    """A program has been started."""
    entry = prog.entry
    if entry is None:
        entry = _entry(prog, cause)
    entry.runs += 1
    counters.flushes += 1
    if how == "fused":
        entry.fused += 1
        if entry.fused == 1:
            entry.first_seconds = seconds
        else:
            counters.reused += 1
    else:
        counters.by_op += 1
    entry.seconds += seconds
    if "syncs" in config.logs and cause == "value needed":
        print(f"[jtorch] sync at {user_line()}: {entry.nodes} nodes, {how}, {seconds * 1e3:.2f} ms", file=sys.stderr)


def took(prog, seconds):
    """Runs that had waited, and have been counted, have been started."""
    prog.entry.seconds += seconds


def promoted(plan):
    """A Python number that varied has become an input of the program."""
    counters.promotions += 1
    if "recompiles" in config.logs:
        print(f"[jtorch] number of {plan.name} became a run-time input at {user_line()}", file=sys.stderr)


def fed(waited, whole):
    """A loader has given a batch: seconds for which its loop waited, and seconds since it had given the one before."""
    counters.data_wait += waited
    counters.data_loop += whole
