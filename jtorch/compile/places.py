"""What a watched run writes to: its own things, which nobody else sees, or places that were there before, whose new values a replay sets.

Instructions that write are traced one by one, in the frames of code that has some.
"""

import builtins
import collections
import gc
import importlib.util
import sys
import types
from itertools import chain

from ..handles import mutations
from ..tensor import Tensor
from .guards import MISSING
from .stores import walk

_DICTS = (dict, collections.OrderedDict, collections.defaultdict)
OWN = (list, set, collections.deque, *_DICTS)  # what C code changes for the user's code
_PLAIN = (object, types.SimpleNamespace, types.ModuleType)  # classes whose attributes are what is in `__dict__`
_SETTERS = frozenset(kind.__setattr__ for kind in _PLAIN)
_GETTERS = frozenset(kind.__getattribute__ for kind in _PLAIN)
_IMPORT = builtins.__import__
_LOOKS = 32  # how often all objects may be asked for what holds a dict
_OF_TENSORS = frozenset(("grad", "data", "requires_grad"))  # what the findings see


class Young:
    """What has been made since the watch began. The collector is held back meanwhile, so that it is in its first generation."""

    def __init__(self):
        self.young = set()
        self.old = {}  # id -> what is not, though it may come to be among those: an empty dict is not the collector's yet
        self.dicts = {}  # id -> a dict that is new by the way it was made
        self.looks = _LOOKS
        self.closed = False
        self.wary = False  # the code may ask for a dict of attributes

    def has(self, thing) -> bool:
        """Whether it was made in the run."""
        key = id(thing)
        if key in self.dicts:
            return True
        if key in self.old:
            return False
        if key not in self.young and not self.closed:
            # In one call in C, so that no other thread runs while there is a list of all objects: see `instances`.
            self.young.update(map(id, chain.from_iterable(map(gc.get_objects, (0,)))))
        new = key in self.young and not (self.wary and type(thing) is dict)
        if new or type(thing) is dict and self.nobodys(thing):
            return True
        self.old[key] = thing
        return False

    def new(self, holder) -> bool:
        """As `has`, of what holds a dict."""
        if id(holder) not in self.young:
            self.young.update(map(id, chain.from_iterable(map(gc.get_objects, (0,)))))
        return id(holder) in self.young

    def close(self):
        """The run is over: what is made from now on is not its own, and what it has made grows old."""
        self.young.update(map(id, chain.from_iterable(map(gc.get_objects, (0,)))))
        self.closed = True

    def nobodys(self, thing) -> bool:
        """Whether a dict is held by nothing that was there before: what holds it is known to the collector.

        A dict of attributes may be as new as the first question for it; those among its holders are looked at once more.
        """
        if not self.looks or gc.is_tracked(thing) and id(thing) not in self.young:
            return False
        self.looks -= 1
        holders = gc.get_referrers(thing)
        dicts = [each for each in holders if type(each) is dict]
        more = gc.get_referrers(*dicts) if dicts else []
        known = {id(holders), id(dicts)}
        if not all(type(each) is types.FrameType or id(each) in known or self.new(each) for each in (*holders, *more)):
            return False
        self.dicts[id(thing)] = thing
        return True

    def made(self, thing):
        """A dict that the run has just made: without anything of the collector's in it, that cannot be seen otherwise."""
        if type(thing) is dict and not gc.is_tracked(thing):
            self.dicts[id(thing)] = thing


class Place:
    """An attribute or item that was there before the run, or a global: `holder[key]`. old: what it held, MISSING for nothing.

    adds: all that was done to it is that something was added; plain: it was first given something else. named: code reads it by this
    name; owner: the object whose attribute it is. counts: how much setting it adds to the counts of `mutations`.
    """

    __slots__ = ("holder", "key", "owner", "old", "adds", "plain", "counts", "named", "step")

    def __init__(self, holder, key, owner, plain, named):
        self.holder, self.key, self.owner, self.named = holder, key, owner, named
        self.old = holder.get(key, MISSING)
        self.adds = True
        self.step = 0  # what has been added, if that is known
        self.plain = plain
        self.counts = (0, 0)


class Stores:
    """Follows the instructions that write. places: in the order in which they were first written to. reason: why that cannot be done.

    given: lists and dicts among the arguments, which are others at each call.
    """

    def __init__(self, library, given=()):
        self.library = library
        self.given = frozenset(map(id, given))
        self.young = Young()
        self.places = {}
        self.imports = {}  # name -> module
        self.reason = None
        self.tracing = False
        self.counting = None  # (a place in a module, the counts before it is set)
        self.counted = [0, 0]

    def begin(self):
        """From now on frames may be traced."""
        self.tracing = sys.gettrace() is None
        if self.tracing:
            sys._getframe().f_trace_opcodes = (
                True  # Python 3.12 asks when a tracer is set whether there is such a frame
            )
            sys.settrace(_no_frame)

    def end(self):
        """No more."""
        if self.tracing and sys.gettrace() is _no_frame:
            sys.settrace(None)
        self.tracing = False

    def follow(self, frame, code):
        """A function of the user's begins, or goes on."""
        if code.co_flags & 8:  # **kwargs
            at = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 4)
            self.young.made(frame.f_locals.get(code.co_varnames[at]))
        known = walk(code)
        self.young.wary |= known.wary
        if known.sites or known.fresh:
            if not self.tracing:
                for site in known.sites.values():
                    self.refuse(frame, site)
                return
            frame.f_trace = self.traced
            frame.f_trace_lines, frame.f_trace_opcodes = False, True

    def refuse(self, frame, site):
        """There is no replay."""
        code = frame.f_code
        words = f"calls {site.name}" if site.op == "CALLS" else f"{site.op.lower().replace('_', ' ')} {site.name}"
        self.reason = self.reason or f"{words} at {code.co_filename}:{code.co_firstlineno}"

    def traced(self, frame, kind, arg):
        """The tracer of a frame."""
        if self.counting is not None:
            self.count()
        if kind == "opcode" and self.tracing and self.reason is None:
            known, at = walk(frame.f_code), frame.f_lasti
            if at in known.fresh and frame.f_globals.get("dict", dict) is dict:
                self.young.made(frame.f_locals.get(known.fresh[at]))
            site = known.sites.get(at)
            if site is not None and not self.understood(frame, site):
                self.refuse(frame, site)
        return self.traced

    def count(self):
        """The module's attribute has been set."""
        place, before = self.counting
        self.counting = None
        place.counts = tuple(now - then for now, then in zip(mutations, before))
        self.counted = [a + b for a, b in zip(self.counted, place.counts)]

    def understood(self, frame, site) -> bool:
        """Whether it is seen what an instruction writes to, and a replay can do it again or need not."""
        if site.op == "STORE_GLOBAL":
            self.place(frame.f_globals, site.name, None, site)
            return True
        if site.op == "IMPORT_NAME":
            return self.imported(frame, site)
        owner = _value_of(site.owner, frame)
        if owner is MISSING:
            return False
        if site.op == "CALLS":
            return self.young.has(owner)
        if isinstance(owner, Tensor):
            if site.op in ("STORE_SUBSCR", "STORE_SLICE"):
                return type(owner).__setitem__ is Tensor.__setitem__
            known = site.op == "STORE_ATTR" and site.name in _OF_TENSORS
            return known or site.name not in dir(type(owner)) and self.young.has(owner)
        if self.young.has(owner):
            return True
        if site.op == "STORE_ATTR":
            return self.attribute(owner, site)
        return site.op == "STORE_SUBSCR" and self.item(owner, site, frame)

    def imported(self, frame, site) -> bool:
        """As `understood`, of an import: all that it asks for is there."""
        (_, level), (_, names) = site.owner or (None, None), site.key or (None, None)
        name = site.name
        if level is None or builtins.__import__ is not _IMPORT:
            return False
        if level:
            name = importlib.util.resolve_name("." * level + name, frame.f_globals["__package__"])
        found = sys.modules.get(name)
        if not isinstance(found, types.ModuleType) or any(each not in vars(found) for each in names or ()):
            return False
        self.imports[name] = found
        if not names and not level:
            first = name.partition(".")[0]
            self.imports[first] = sys.modules[first]
        return True

    def item(self, owner, site, frame) -> bool:
        """As `understood`, of `owner[key] = value`."""
        if id(owner) in self.given:
            return False
        if type(owner) in _DICTS:
            key = _value_of(site.key, frame)
            if type(key) not in (str, int):
                return False
            self.place(owner, key, None, site, named=False)
            return True
        setter = getattr(type(owner), "__setitem__", None)
        # a call, which is followed like any other
        return type(setter) is types.FunctionType and not self.library(setter)

    def attribute(self, owner, site) -> bool:
        """As `understood`, of `owner.name = value`."""
        kind, name = type(owner), site.name
        found = _of_class(kind, name)
        if type(found) is property:
            return type(found.fset) is types.FunctionType and not self.library(found.fset)
        own = getattr(owner, "__dict__", None)
        if hasattr(type(found), "__set__") or type(own) is not dict:
            return False
        setter = kind.__setattr__
        if "_parameters" in own and "_modules" in own and self.library(setter):
            own = own["_buffers"] if name in own["_buffers"] else own
            if name in owner._parameters or name in owner._modules or name[:1] == "_" or name == "training":
                return False
            place = self.place(own, name, owner, site)
            self.counting = place, tuple(mutations)
            return True
        if setter not in _SETTERS:
            return type(setter) is types.FunctionType and not self.library(setter)
        if self.library(kind) and kind not in _PLAIN:
            return False
        self.place(own, name, owner, site)
        return True

    def place(self, holder, key, owner, site, named=True):
        """Note that a place is about to be written to."""
        known = self.places.get((id(holder), key))
        if known is None:
            known = self.places[id(holder), key] = Place(holder, key, owner, not site.adds, named)
        known.adds &= site.adds
        known.step = None if known.step is None or site.step is None else known.step + site.step
        return known


def _no_frame(frame, kind, arg):
    """The tracer of all frames, which traces none: those that are get their own."""


def _of_class(kind, name):
    """What a class has for a name."""
    return next((vars(cls)[name] for cls in kind.__mro__ if name in vars(cls)), None)


def _value_of(expression, frame):
    """The value of an expression, as far as looking it up calls nothing; otherwise MISSING."""
    if expression is None:
        return MISSING
    what, first, *rest = *expression, None
    if what == "first":
        code = frame.f_code
        named = code.co_argcount and "super" not in frame.f_globals
        return frame.f_locals.get(code.co_varnames[0], MISSING) if named else MISSING
    if what == "const":
        return first
    if what in ("local", "cell"):
        return frame.f_locals.get(first, MISSING)
    if what == "global":
        return frame.f_globals.get(first, MISSING)
    if what == "attr":
        owner = _value_of(first, frame)
        return MISSING if owner is MISSING else _attribute_of(owner, rest[0])
    if what == "item":
        owner, key = _value_of(first, frame), _value_of(rest[0], frame)
        if type(owner) in (dict, collections.OrderedDict) and type(key) in (str, int):
            return owner.get(key, MISSING)
        if type(owner) in (list, tuple) and type(key) is int and -len(owner) <= key < len(owner):
            return owner[key]
    return MISSING


def _attribute_of(owner, name):
    kind = type(owner)
    own = getattr(owner, "__dict__", None)
    if kind.__getattribute__ not in _GETTERS or type(own) is not dict:
        return MISSING
    found = _of_class(kind, name)
    if isinstance(found, types.MemberDescriptorType):
        return getattr(owner, name, MISSING)
    if hasattr(type(found), "__set__"):
        return MISSING
    for holder in (own, *(own.get(part, {}) for part in ("_parameters", "_modules", "_buffers"))):
        if name in holder:
            return holder[name]
    return MISSING


def augments(frame, variables, young):
    """Why `x += y` has left a trace: it was a container or an array that changed, which may be somebody else's."""
    here = frame.f_locals
    for name, method in variables:
        kind = type(here.get(name))
        how = None if issubclass(kind, Tensor) else getattr(kind, method, None)
        if how is not None and not isinstance(how, types.FunctionType) and not young.has(here[name]):
            return f"changes {name}, a {kind.__name__}, in place at {frame.f_code.co_filename}:{frame.f_code.co_firstlineno}"
    return None


__all__ = ["OWN", "Place", "Stores", "Young", "augments"]
