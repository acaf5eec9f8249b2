"""PassManager: several passes over a module, in an order that constraints ask for."""

import collections
import functools
import inspect
from collections.abc import Callable

from ....nn.modules.module import Module
from ...graph_module import GraphModule
from .pass_base import PassResult

__all__ = ["PassManager", "pass_result_wrapper", "this_before_that_pass_constraint"]


def _name(fn):
    return fn.__name__ if inspect.isfunction(fn) else type(fn).__name__


def pass_result_wrapper(fn: Callable | None) -> Callable | None:
    """A pass that returns a module, or changes the one it gets, as one that returns a PassResult."""
    if fn is None:
        return None

    @functools.wraps(fn)
    def wrapped_fn(gm):
        result = fn(gm)
        if isinstance(result, PassResult):
            return result
        if result is None or isinstance(result, Module):
            return PassResult(gm if result is None else result, True)
        return None

    wrapped_fn.__name__ = _name(fn)
    return wrapped_fn


def this_before_that_pass_constraint(this: Callable, that: Callable) -> Callable:
    """A constraint: whether one pass may come before another, which it may unless it is `that` and the other `this`."""

    def depends_on(a, b):
        return a != that or b != this

    return depends_on


class PassManager:
    """Runs passes over a module; calling it gives a PassResult.

    Args:
        passes: functions of a module that return a PassResult
        constraints: functions (a, b), true where a may come before b
        steps: how often to go through the passes at most, as long as they change something
        run_checks_after_each_pass: call the check that `add_checks` was given after each pass
        suppress_check_failures: accepted
    """

    def __init__(
        self, passes=None, constraints=None, steps=None, run_checks_after_each_pass=False, suppress_check_failures=False
    ):
        self.passes = passes or []
        self.constraints = constraints or []
        self.steps = steps or 1
        self.run_checks_after_each_pass = run_checks_after_each_pass
        self.suppress_check_failures = suppress_check_failures
        self._validated = False

    def add_pass(self, _pass: Callable) -> None:
        """One more pass, at the end."""
        self.passes.append(_pass)
        self._validated = False

    def add_constraint(self, constraint: Callable) -> None:
        """One more constraint."""
        self.constraints.append(constraint)
        self._validated = False

    def _may_precede(self, a, b):
        return all(constraint(a, b) for constraint in self.constraints)

    def validate_constraints(self) -> None:
        """Raise RuntimeError where the order of the passes breaks a constraint."""
        if self._validated:
            return
        for i, a in enumerate(self.passes):
            for j, b in enumerate(self.passes[i + 1 :]):
                if not self._may_precede(a, b):
                    raise RuntimeError(
                        f"pass schedule constraint violated. Expected {a} before {b} but found {a} at index {i} and {b} at "
                        f"index {j} in pass list."
                    )
        self._validated = True

    def solve_constraints(self) -> None:
        """Put the passes in an order that the constraints allow. Raises RuntimeError where there is none."""
        if self.constraints:
            before = {a: [b for b in self.passes if a != b and not self._may_precede(a, b)] for a in self.passes}
            ready = collections.deque(a for a in self.passes if not before[a])
            left = {a: set(needs) for a, needs in before.items()}
            ordered = []
            while ready:
                done = ready.popleft()
                ordered.append(done)
                for a in self.passes:
                    if done in left[a]:
                        left[a].discard(done)
                        if not left[a]:
                            ready.append(a)
            stuck = [a for a in self.passes if left[a]]
            if stuck:
                raise RuntimeError(f"Circular dependency detected within the following passes: {stuck}")
            self.passes = ordered
        self._validated = True

    def add_checks(self, check: Callable) -> None:
        """A function of the module that raises where something is wrong with it."""
        if len(inspect.signature(check).parameters) != 1:
            raise TypeError("PassManager check function should only take in one variable, a module")
        self.check = check

    def check(self, module) -> None:
        """What `add_checks` was given; nothing."""

    def __call__(self, module) -> PassResult:
        if not self._validated:
            self.solve_constraints()
        self.check(module)
        ever = False
        for _ in range(self.steps):
            modified = False
            for i, fn in enumerate(self.passes):
                try:
                    result = fn(module)
                    if not hasattr(result, "graph_module"):
                        raise TypeError(
                            f"The result of the pass {_name(fn)} should be type PassResult.Please wrap it with pass_result_wrapper()"
                        )
                    module, modified = result.graph_module, modified or result.modified
                    if isinstance(module, GraphModule):
                        module.recompile()
                    if self.run_checks_after_each_pass:
                        self.check(module)
                except Exception as error:
                    done = [_name(p) for p in self.passes[:i]]
                    raise Exception(
                        f"An error occurred when running the '{_name(fn)}' pass after the following passes: {done}"
                    ) from error
            ever = ever or modified
            if not modified:
                break
        return PassResult(module, ever)
