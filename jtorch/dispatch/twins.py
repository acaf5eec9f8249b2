"""Twins of generated functions: the same code under another name, and with fewer arguments."""

import types

from . import old_order, override


def twin(fn, scope=None):
    """Another function with the code of this one."""
    code = override.plain_code(fn)
    made = types.FunctionType(code, scope or fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__)
    made.__kwdefaults__, made.__doc__, made.__module__ = fn.__kwdefaults__, fn.__doc__, fn.__module__
    made.__qualname__, made.__dict__ = fn.__qualname__, dict(fn.__dict__)
    return made


def take_no_out(fn):
    """Let a twin refuse out=, as an argument that it does not know: its parameter has another name, which nobody gives. Its code is
    not generated anew for that, which would take longer than anything else about a method."""
    code = fn.__code__
    if "out" in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount] and "out" not in code.co_cellvars:
        old_order.hidden(["out"], fn)
        fn.__code__ = code.replace(co_varnames=tuple("_out" if n == "out" else n for n in code.co_varnames))
        fn.__kwdefaults__ = {"_out" if n == "out" else n: v for n, v in (fn.__kwdefaults__ or {}).items()}
