"""The context of torch.multiprocessing: Python's, with processes started anew where nothing else has been asked for.

Forking would copy jax without its threads: the child would wait for them for ever.
"""

import multiprocessing.context
import multiprocessing.process

from ..core import sharing


class _Context(multiprocessing.context.DefaultContext):
    def get_context(self, method=None):
        if method is not None or self._actual_context is not None:
            return super().get_context(method)
        # Fork is Python's default on Linux, and so no sign that somebody has asked for it.
        asked = multiprocessing.get_start_method(allow_none=True)
        return super().get_context("spawn" if asked in (None, "fork") else asked)

    def set_start_method(self, method, force=False):
        super().set_start_method(method, force)
        multiprocessing.set_start_method(method, force=True)

    def get_start_method(self, allow_none=False):
        if self._actual_context is None:
            return None if allow_none else self.get_context().get_start_method()
        return super().get_start_method(allow_none)


class Process(multiprocessing.process.BaseProcess):
    """A process in which `target(*args, **kwargs)` runs; a shared tensor among the arguments is the same memory there.

    Arguments are pickled, and the program's main module is imported anew: it needs `if __name__ == "__main__":`.
    """

    _start_method = None

    @staticmethod
    def _Popen(process_obj):
        asked = CONTEXT._actual_context is not None or multiprocessing.get_start_method(allow_none=True) not in (
            None,
            "fork",
        )
        sharing.forked.on = not asked
        try:
            return CONTEXT.get_context().Process._Popen(process_obj)
        finally:
            sharing.forked.on = False


CONTEXT = _Context(multiprocessing.get_context("spawn"))
CONTEXT.Process = Process
