"""What iterating over a pipe adds to its own `__iter__`: one valid pass at a time, the reset before it, and words for errors."""

import enum
import functools
import inspect

__all__ = ["SnapshotState", "checked_iter", "checked_next", "counted_reset"]


class SnapshotState(enum.Enum):
    """Where a pipe is: not begun, put back to a place by a snapshot, or under way."""

    NotStarted = 0
    Restored = 1
    Iterating = 2


_FEEDBACK = (
    "\nFor feedback regarding this single iterator per IterDataPipe constraint, feel free "
    "to comment on this issue: https://github.com/pytorch/data/issues/45."
)


def described(pipe) -> str:
    """The class of a pipe with those of its arguments that it keeps."""
    names = inspect.signature(type(pipe)).parameters
    kept = ((name, value) for name, value in inspect.getmembers(pipe) if name in names)
    shown = (f"{name}={v.__name__ if inspect.isfunction(v) else repr(v)}" for name, v in kept)
    return f"{type(pipe).__name__}({', '.join(shown)})"


def _invalid(pipe):
    return RuntimeError(
        "This iterator has been invalidated because another iterator has been created from the same IterDataPipe: "
        f"{described(pipe)}\nThis may be caused by multiple references to the same IterDataPipe. We recommend using "
        f"`.fork()` if that is necessary.{_FEEDBACK}"
    )


def _check(pipe, number):
    """Raise where the pass of this number is not the latest."""
    if getattr(pipe, "_is_child_datapipe", False):
        if not pipe._check_valid_iterator_id(number):
            raise RuntimeError(
                "This iterator has been invalidated, because a new iterator has been created from one of the "
                f"ChildDataPipes of {described(pipe.main_datapipe)}.{_FEEDBACK}"
            )
    elif pipe._valid_iterator_id != number:
        raise _invalid(pipe)


def _begin(pipe) -> int:
    """Reset the pipe for a new pass; the number of the pass."""
    if getattr(pipe, "_is_child_datapipe", False):
        return pipe._set_main_datapipe_valid_iterator_id()
    pipe._valid_iterator_id = 0 if pipe._valid_iterator_id is None else pipe._valid_iterator_id + 1
    pipe.reset()
    return pipe._valid_iterator_id


def _forwarded(pipe):
    """The iterator that a snapshot has put to its place, once."""
    found, pipe._fast_forward_iterator = pipe._fast_forward_iterator, None
    pipe._snapshot_state = SnapshotState.Iterating
    return found


def _told(error, pipe):
    """Add to an error's words in which pipe it was raised."""
    words = f"thrown by __iter__ of {described(pipe)}"
    if not error.args or not isinstance(error.args[0], str):
        error.args = (f"\nThis exception is {words}",)
    elif not any(s in error.args[0] for s in ("thrown by __iter__ of", "single iterator per IterDataPipe constraint")):
        error.args = (f"{error.args[0]}\nThis exception is {words}", *error.args[1:])


class _Pass:
    """The iterator of a pipe whose `__iter__` is no generator."""

    def __init__(self, iterator, pipe, number, counts):
        self.iterator = iterator
        self.datapipe = pipe
        self.iterator_id = number
        self._counts = counts

    def __iter__(self):
        return self

    def __next__(self):
        _check(self.datapipe, self.iterator_id)
        value = next(self.iterator)
        if self._counts:
            self.datapipe._number_of_samples_yielded += 1
        return value

    def __getattr__(self, name):
        return getattr(self.iterator, name)


def checked_iter(own, has_next: bool):
    """The `__iter__` that a class of pipes gets in place of its own."""
    if inspect.isgeneratorfunction(own):

        @functools.wraps(own)
        def iterate(self):
            if type(self).__iter__ is not iterate:  # called by a subclass's own, which is checked
                yield from own(self)
                return
            if self._fast_forward_iterator is not None:
                yield from _forwarded(self)
                return
            number = _begin(self)
            values = own(self)
            try:
                for value in values:
                    self._number_of_samples_yielded += 1
                    yield value
                    _check(self, number)
            except Exception as error:
                _told(error, self)
                raise
            finally:
                values.close()

    else:

        @functools.wraps(own)
        def iterate(self):
            if type(self).__iter__ is not iterate:
                return own(self)
            iterator = own(self)
            self._snapshot_state = SnapshotState.Iterating
            if self._fast_forward_iterator is not None:
                return _forwarded(self)
            return _Pass(iterator, self, _begin(self), not (iterator is self and has_next))

    return iterate


def checked_next(own):
    """The `__next__` of a pipe that is its own iterator: it counts."""

    @functools.wraps(own)
    def following(self):
        value = own(self)
        self._number_of_samples_yielded += 1
        return value

    return following


def counted_reset(own):
    """The `reset` of a class of pipes: nothing where a snapshot has just been restored."""

    @functools.wraps(own)
    def reset(self):
        if self._snapshot_state != SnapshotState.Restored:
            self._number_of_samples_yielded = 0
            self._fast_forward_iterator = None
            own(self)
        self._snapshot_state = SnapshotState.Iterating

    return reset
