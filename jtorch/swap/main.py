"""Runs a program as `__main__`, so that the processes which multiprocessing spawns from it have the swap too."""

import builtins
import contextlib
import importlib.util
import json
import os
import sys
import types
from importlib.machinery import ModuleSpec, SourceFileLoader

from . import errors, table

PROGRAM = "JTORCH_PROGRAM"  # the environment variable that tells spawned processes what the main module is


class _Spec(ModuleSpec):
    """Spawned processes import the main module anew, by the name of its spec: `swap.child` does that under the swap."""

    def __init__(self, package):
        super().__init__("jtorch.swap.child", None)
        self._package = package

    @property
    def parent(self):
        return self._package or ""


def run_script(path: str, name: str = "__main__"):
    """Run a file, whose path is absolute: it is the program's `__file__`; returns its globals."""
    loader = SourceFileLoader(name, path)
    if path.endswith(".pyc"):
        code = importlib.machinery.SourcelessFileLoader(name, path).get_code(name)
    else:
        code = loader.source_to_code(loader.get_data(path), path)
    return _run(code, name, path, None, loader, {"script": path})


def run_text(text: bytes):
    """Run a program that has no file, whose spawned processes cannot run it again; returns its globals."""
    return _run(compile(text, "<stdin>", "exec"), "__main__", None, None, None, {})


def run_module(target: str, name: str = "__main__"):
    """Run a module, or the `__main__` of a package; returns its globals. Raises ImportError as `python -m` would."""
    spec = importlib.util.find_spec(_file_of(target))
    if spec is not None and spec.submodule_search_locations is not None:
        spec = importlib.util.find_spec(f"{target}.__main__")
    if spec is None or spec.loader is None:
        raise errors.no_module(target)
    code = spec.loader.get_code(spec.name)
    if name == "__main__":
        sys.argv[0] = spec.origin or target
    return _run(code, name, spec.origin, spec.parent, spec.loader, {"module": target})


def _file_of(target):
    """The module of jtorch whose file a module of PyTorch's is: under PyTorch's name it has no code."""
    if target.startswith("torch."):
        source = f"jtorch.{(table.sources(target.removeprefix('torch.')) or ('',))[0]}"
        with contextlib.suppress(ImportError):
            if importlib.util.find_spec(source) is not None:
                return source
    return target


def _run(code, name, path, package, loader, program):
    made = types.ModuleType(name)
    made.__dict__.update(__builtins__=builtins, __loader__=loader, __package__=package, __spec__=_Spec(package))
    if path is not None:
        made.__file__ = path
    if name == "__main__":
        os.environ[PROGRAM] = json.dumps(program)
        sys.modules[name] = made
    exec(code, vars(made))
    return vars(made)


def run_again(name: str = "__mp_main__") -> dict:
    """In another process of the program, whose environment says which it is: run it as the module `name`; returns its globals."""
    program = json.loads(os.environ.get(PROGRAM, "{}"))
    if "script" in program:
        if name == "__main__":
            sys.argv[0] = program["script"]
        return run_script(program["script"], name)
    if "module" in program:
        return run_module(program["module"], name)
    return {}
