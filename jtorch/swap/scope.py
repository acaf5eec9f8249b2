"""`with jtorch.as_torch()`: the import swap for the packages imported inside, and for nothing else."""

import builtins
import contextlib
import sys
import threading

from . import hook

_lock = threading.RLock()
_hidden: dict[str, object] = {}  # what sys.modules holds under torch's names while no scope is open
_depth = [0]
_roots: set[str] = set()  # packages first imported inside a scope: what they import later is swapped too


def _ours(name):
    return name in ("torch", "functorch") or name.startswith(("torch.", "functorch."))


def _exchange():
    """Put the other set of torch modules under torch's names."""
    there = {name: sys.modules.pop(name) for name in list(sys.modules) if _ours(name)}
    sys.modules.update(_hidden)
    _hidden.clear()
    _hidden.update(there)


def _enter():
    _lock.acquire()
    if _depth[0] == 0 and hook.FINDER not in sys.meta_path:
        _exchange()
        sys.meta_path.insert(0, hook.FINDER)
        _swapped[0] = True
    _depth[0] += 1


def _leave():
    _depth[0] -= 1
    if _depth[0] == 0 and _swapped[0]:
        sys.meta_path.remove(hook.FINDER)
        _exchange()
        _swapped[0] = False
    _lock.release()


_swapped = [False]


@contextlib.contextmanager
def as_torch():
    """Context in which `import torch` is jtorch: packages imported inside run on jtorch, and go on doing so afterwards.

    The code of these packages keeps the swap for the imports it makes later (inside functions, of its own submodules);
    only `importlib.import_module("torch...")` called after the context is over is an ordinary import. What is imported outside the
    context, the real torch among it, is not touched. Raises RuntimeError when the real torch has been imported already.
    """
    hook.refuse_real_torch()
    _enter()
    try:
        if _ADOPT not in sys.meta_path:
            sys.meta_path.insert(0, _ADOPT)
        yield hook.facade()
    finally:
        _leave()


_import = builtins.__import__


def _scoped_import(name, globals=None, locals=None, fromlist=(), level=0):
    """`__import__` of the code of adopted packages."""
    if level == 0 and _ours(name):
        _enter()
        try:
            return _import(name, globals, locals, fromlist, level)
        finally:
            _leave()
    return _import(name, globals, locals, fromlist, level)


_BUILTINS = {**vars(builtins), "__import__": _scoped_import}


class _Adopt:
    """Finder that gives modules imported inside a scope, and later submodules of their packages, the swapped `__import__`."""

    def find_spec(self, fullname, path=None, target=None):
        """The spec that the other finders have, with a loader that prepares the module; None where it is not ours."""
        root = fullname.partition(".")[0]
        if _ours(fullname) or root in ("jtorch", "jax", "jaxlib", "numpy") or root in sys.stdlib_module_names:
            return None
        if root not in _roots and (_depth[0] == 0 or not _swapped[0] or root in sys.modules):
            return None
        for finder in sys.meta_path:
            if finder is self:
                continue
            spec = finder.find_spec(fullname, path, target) if hasattr(finder, "find_spec") else None
            if spec is not None:
                _roots.add(root)
                return _prepare(spec)
        return None


def _prepare(spec):
    loader = spec.loader
    run = getattr(loader, "exec_module", None)
    if run is None or not hasattr(loader, "__dict__") or not hasattr(loader, "get_code"):
        return spec

    def exec_module(module):
        module.__dict__["__builtins__"] = _BUILTINS
        _enter()
        try:
            run(module)
        finally:
            _leave()

    loader.exec_module = exec_module
    return spec


_ADOPT = _Adopt()
