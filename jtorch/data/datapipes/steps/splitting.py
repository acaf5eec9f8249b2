"""Steps that make several pipes of one: fork, and demux by a function. The pipes share what has been read ahead."""

import collections
import copy as copying
import warnings
from collections.abc import Callable

from ..common import StreamWrapper, check_function
from ..datapipe import IterDataPipe
from ..decorators import functional_datapipe
from ..passes import SnapshotState

__all__ = ["DemultiplexerIterDataPipe", "ForkerIterDataPipe"]


def _itself(sample):
    return sample


_COPIES = {None: _itself, "shallow": copying.copy, "deep": copying.deepcopy}


class _Shared(IterDataPipe):
    """What the pipes made of one read from."""

    step = ""

    def __init__(self, datapipe, num_instances, buffer_size):
        self.main_datapipe = datapipe
        self.num_instances = num_instances
        self.buffer_size = buffer_size
        if buffer_size < 0:
            warnings.warn(
                f"Unlimited buffer size is set for `{self.step}`, please be aware of OOM at random places",
                UserWarning,
                stacklevel=5,
            )
        self._restart()

    def _restart(self):
        self._datapipe_iterator = None
        self._child_stop = [True] * self.num_instances
        self._ended = False

    def reset(self):
        self._restart()

    def is_every_instance_exhausted(self):
        """Whether all pipes have come to the end."""
        return self._ended and all(self._child_stop)

    def get_next_element_by_instance(self, number):
        """The samples of one of the pipes."""
        if self._datapipe_iterator is None and self._child_stop[number]:
            self._datapipe_iterator = iter(self.main_datapipe)
            self._snapshot_state = SnapshotState.Iterating
            self._child_stop = [False] * self.num_instances
            self._ended = False
        try:
            while not self._child_stop[number]:
                found = self._next(number)
                if found is not None:
                    yield found[0]
        finally:
            self._child_stop[number] = True
            if all(self._child_stop):
                self._datapipe_iterator = None
            self._left(number)

    def _read(self, number):
        """(one more sample,); None where there is none, which ends this pipe."""
        if not self._ended:
            try:
                return (next(self._datapipe_iterator),)
            except StopIteration:
                self._ended = True
                self._datapipe_iterator = None
        self._child_stop[number] = True
        return None

    def __getstate__(self):
        left_out = {"_datapipe_iterator", "_child_stop", "_ended", *self._waiting}
        return self._hooked({k: v for k, v in self.__dict__.items() if k not in left_out})

    def __setstate__(self, state):
        self.__dict__.update(state)
        self._restart()


class _ForkerIterDataPipe(_Shared):
    """The samples that the slowest pipe has not read yet."""

    step = "fork"
    _waiting = ("buffer", "_read_by", "_first")

    def __init__(self, datapipe, num_instances, buffer_size, copy):
        if copy not in _COPIES:
            raise ValueError(f"Unknown copy method `{copy}` requested, choose one of None, `shallow` or `deep`.")
        super().__init__(datapipe, num_instances, buffer_size)
        self.copy_fn = _COPIES[copy]

    def _restart(self):
        super()._restart()
        self.buffer = collections.deque()
        self._read_by = [0] * self.num_instances
        self._first = 0  # the number of the sample at the buffer's start

    def _next(self, number):
        place = self._read_by[number]
        if place == self._first + len(self.buffer):
            found = self._read(number)
            if found is None:
                return None
            self.buffer.append(found[0])
        sample = self.buffer[place - self._first]
        self._read_by[number] += 1
        if self._first < min(self._read_by):
            self.buffer.popleft()
            self._first += 1
        if 0 <= self.buffer_size < len(self.buffer):
            raise BufferError(f"ForkerIterDataPipe buffer overflow,buffer size {self.buffer_size} is insufficient.")
        return (self.copy_fn(sample),)

    def _left(self, number):
        if all(self._child_stop):
            StreamWrapper.close_streams(list(self.buffer))
            self.buffer.clear()

    def __len__(self):
        return len(self.main_datapipe)

    def get_length_by_instance(self, number):
        """The length of one of the pipes: that of the source."""
        return len(self.main_datapipe)


class _DemultiplexerIterDataPipe(_Shared):
    """The samples that were read for pipes which have not asked for them yet."""

    step = "demux"
    _waiting = ("child_buffers", "current_buffer_usage")

    def __init__(self, datapipe, num_instances, classifier_fn, drop_none, buffer_size):
        super().__init__(datapipe, num_instances, buffer_size)
        self.classifier_fn = classifier_fn
        self.drop_none = drop_none

    def _restart(self):
        super()._restart()
        self.child_buffers = [collections.deque() for _ in range(self.num_instances)]
        self.current_buffer_usage = 0

    def _next(self, number):
        if self.child_buffers[number]:
            self.current_buffer_usage -= 1
            return (self.child_buffers[number].popleft(),)
        while (found := self._read(number)) is not None:
            sample = found[0]
            target = self.classifier_fn(sample)
            if target is None and self.drop_none:
                StreamWrapper.close_streams(sample)
                continue
            if target is None or not 0 <= target < self.num_instances:
                raise ValueError(
                    f"Output of the classification fn should be between 0 and {self.num_instances - 1}. {target} is returned."
                )
            if target == number:
                return found
            self.child_buffers[target].append(sample)
            self.current_buffer_usage += 1
            if 0 <= self.buffer_size < self.current_buffer_usage:
                raise BufferError(
                    f"DemultiplexerIterDataPipe buffer overflow, buffer size {self.buffer_size} is insufficient."
                )
        return None

    def _left(self, number):
        StreamWrapper.close_streams(list(self.child_buffers[number]))
        self.child_buffers[number].clear()

    def get_length_by_instance(self, number):
        """Raises TypeError: how many samples go where is not known."""
        raise TypeError


class _ChildDataPipe(IterDataPipe):
    """One of the pipes made of one. A second iterator of any of them starts all again."""

    _is_child_datapipe = True

    def __init__(self, main_datapipe, instance_id):
        self.main_datapipe = main_datapipe
        self.instance_id = instance_id

    def __iter__(self):
        return self.main_datapipe.get_next_element_by_instance(self.instance_id)

    def __len__(self):
        return self.main_datapipe.get_length_by_instance(self.instance_id)

    def _set_main_datapipe_valid_iterator_id(self):
        shared = self.main_datapipe
        if shared._valid_iterator_id is None:
            shared._valid_iterator_id = 0
        elif shared._valid_iterator_id == self._valid_iterator_id:
            shared._valid_iterator_id += 1
            if not shared.is_every_instance_exhausted():
                warnings.warn(
                    "Some child DataPipes are not exhausted when __iter__ is called. We are resetting "
                    "the buffer and each child DataPipe will read from the start again.",
                    UserWarning,
                    stacklevel=4,
                )
            shared.reset()
        self._valid_iterator_id = shared._valid_iterator_id
        return self._valid_iterator_id

    def _check_valid_iterator_id(self, number):
        return number == self._valid_iterator_id == self.main_datapipe._valid_iterator_id


def _check_count(num_instances):
    if num_instances < 1:
        raise ValueError(f"Expected `num_instances` larger than 0, but {num_instances} is found")


@functional_datapipe("fork")
class ForkerIterDataPipe(IterDataPipe):
    """A list of `num_instances` pipes that all give the samples of one; of 1, the pipe itself.

    Args:
        datapipe: the pipe
        num_instances: how many
        buffer_size: how far one may be ahead of the slowest, else BufferError; -1: any
        copy: None, "shallow" or "deep": whether each gets a copy of its own
    """

    def __new__(cls, datapipe, num_instances: int, buffer_size: int = 1000, copy: str | None = None):
        _check_count(num_instances)
        if num_instances == 1:
            return datapipe
        shared = _ForkerIterDataPipe(datapipe, num_instances, buffer_size, copy)
        return [_ChildDataPipe(shared, number) for number in range(num_instances)]


@functional_datapipe("demux")
class DemultiplexerIterDataPipe(IterDataPipe):
    """A list of `num_instances` pipes; a function says which of them a sample goes to.

    Args:
        datapipe: the pipe
        num_instances: how many
        classifier_fn: a sample's pipe, from 0; ValueError for any other number
        drop_none: drop samples for which it says None
        buffer_size: how many samples may wait for their pipe, else BufferError; -1: any
    """

    def __new__(
        cls, datapipe, num_instances: int, classifier_fn: Callable, drop_none: bool = False, buffer_size: int = 1000
    ):
        _check_count(num_instances)
        check_function(classifier_fn)
        shared = _DemultiplexerIterDataPipe(datapipe, num_instances, classifier_fn, drop_none, buffer_size)
        return [_ChildDataPipe(shared, number) for number in range(num_instances)]
