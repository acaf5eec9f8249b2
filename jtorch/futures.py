"""torch.futures: results that come later."""

import concurrent.futures

__all__ = ["Future", "collect_all", "wait_all"]


class Future:
    """A value that another thread sets."""

    def __init__(self, *, devices=None):
        self._inner = concurrent.futures.Future()

    def done(self) -> bool:
        """Whether there is a value or an error."""
        return self._inner.done()

    def wait(self):
        """Wait for the value; raises the error that was set."""
        return self._inner.result()

    def value(self):
        """The value. Raises RuntimeError when it is not there yet."""
        if not self._inner.done():
            raise RuntimeError("Tried to retrieve value before the future is completed")
        return self._inner.result()

    def set_result(self, result) -> None:
        """Set the value."""
        self._inner.set_result(result)

    def set_exception(self, result) -> None:
        """Set the error. Raises AssertionError for what is no exception."""
        assert isinstance(result, Exception), f"{result} is of type {type(result)}, not an Exception."
        self._inner.set_exception(result)

    def then(self, callback):
        """A future of callback(this future), called when this one is done."""
        made = Future()

        def run(_):
            try:
                made.set_result(callback(self))
            except Exception as error:
                made.set_exception(error)

        self._inner.add_done_callback(run)
        return made

    def add_done_callback(self, callback) -> None:
        """Call callback(this future) when it is done."""
        self._inner.add_done_callback(lambda _: callback(self))


def collect_all(futures):
    """A future of the list of these futures, done when they all are."""
    futures = list(futures)
    made = Future()
    left = [len(futures)]

    def one(_):
        left[0] -= 1
        if left[0] == 0:
            made.set_result(futures)

    for future in futures:
        future.add_done_callback(one)
    if not futures:
        made.set_result(futures)
    return made


def wait_all(futures) -> list:
    """The values of all futures."""
    return [f.wait() for f in collect_all(futures).wait()]
