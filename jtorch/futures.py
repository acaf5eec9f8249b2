"""torch.futures: results that come later, and fork, which here runs its function at once."""

import threading
import types

__all__ = ["Future", "collect_all", "fork", "wait", "wait_all"]


class Future:
    """A result that somebody sets and others wait for."""

    __class_getitem__ = classmethod(types.GenericAlias)

    def __init__(self, *, devices=None):
        self._ready = threading.Event()
        self._value = self._error = None
        self._callbacks = []
        self._lock = threading.Lock()

    def done(self) -> bool:
        """Whether there is a result or an error."""
        return self._ready.is_set()

    def wait(self):
        """The result, as soon as there is one; raises the error if there is that."""
        self._ready.wait()
        if self._error is not None:
            raise self._error
        return self._value

    def value(self):
        """The result of a future that is done."""
        return self.wait()

    def set_result(self, result) -> None:
        """Give the result. RuntimeError: there is one already."""
        self._finish(result, None)

    def set_exception(self, result) -> None:
        """Give an error in the place of a result."""
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._finish(None, result)

    def _finish(self, value, error):
        with self._lock:
            if self._ready.is_set():
                raise RuntimeError("Attempting to mark a completed Future as complete again.")
            self._value, self._error = value, error
            self._ready.set()
            callbacks, self._callbacks = self._callbacks, []
        for call in callbacks:
            call(self)

    def add_done_callback(self, callback) -> None:
        """Call callback(self) once done."""
        with self._lock:
            if not self._ready.is_set():
                self._callbacks.append(callback)
                return
        callback(self)

    def then(self, callback) -> "Future":
        """A future of callback(self)."""
        after = Future()

        def run(self):
            try:
                result = callback(self)
            except Exception as error:
                after.set_exception(error)
            else:
                after.set_result(result)

        self.add_done_callback(run)
        return after


def collect_all(futures) -> Future:
    """A future of the list of these futures, done when all of them are."""
    futures, together = list(futures), Future()
    left = [len(futures)]
    lock = threading.Lock()

    def one(_):
        with lock:
            left[0] -= 1
            last = not left[0]
        if last:
            together.set_result(futures)

    for f in futures:
        f.add_done_callback(one)
    if not futures:
        together.set_result(futures)
    return together


def wait_all(futures) -> list:
    """The results of these futures."""
    return [f.wait() for f in collect_all(futures).wait()]


def fork(func, *args, **kwargs) -> Future:
    """A future of func(*args, **kwargs), which has run when fork returns."""
    future = Future()
    try:
        future.set_result(func(*args, **kwargs))
    except Exception as error:
        future.set_exception(error)
    return future


def wait(future):
    """The result of a future."""
    return future.wait()
