"""Steps that put samples together, or take them apart: batch, unbatch, groupby."""

from collections.abc import Callable

from ..common import Batches, check_function
from ..datapipe import DataChunk, IterDataPipe
from ..decorators import functional_datapipe

__all__ = ["BatcherIterDataPipe", "GrouperIterDataPipe", "UnBatcherIterDataPipe"]


@functional_datapipe("batch")
class BatcherIterDataPipe(Batches, IterDataPipe):
    """Samples in lists of `batch_size`, made by `wrapper_class`; a shorter last one is left out with `drop_last`."""

    def __iter__(self):
        batch = []
        for sample in self.datapipe:
            batch.append(sample)
            if len(batch) == self.batch_size:
                yield self.wrapper_class(batch)
                batch = []
        if batch and not self.drop_last:
            yield self.wrapper_class(batch)


@functional_datapipe("unbatch")
class UnBatcherIterDataPipe(IterDataPipe):
    """Takes `unbatch_level` levels of lists apart; -1: all of them."""

    def __init__(self, datapipe, unbatch_level: int = 1):
        self.datapipe = datapipe
        self.unbatch_level = unbatch_level

    def __iter__(self):
        for element in self.datapipe:
            yield from self._apart(element, self.unbatch_level)

    def _apart(self, element, level):
        if level < -1:
            raise ValueError("unbatch_level must be -1 or >= 0")
        if level == 0 or (level == -1 and not isinstance(element, list)):
            yield element
        elif isinstance(element, list):
            for item in element:
                yield from self._apart(item, level - 1 if level > 0 else -1)
        else:
            raise IndexError(f"unbatch_level {self.unbatch_level} exceeds the depth of the DataPipe")


@functional_datapipe("groupby")
class GrouperIterDataPipe(IterDataPipe):
    """Lists of samples with one key.

    Args:
        datapipe: where the samples come from
        group_key_fn: a sample's key
        keep_key: give (key, list)
        buffer_size: how many samples may wait for others of their key
        group_size: a list of this length is given at once
        guaranteed_group_size: where too many wait, the longest list must have this length
        drop_remaining: drop it if it has not, instead of raising RuntimeError
    """

    def __init__(
        self,
        datapipe,
        group_key_fn: Callable,
        *,
        keep_key: bool = False,
        buffer_size: int = 10000,
        group_size: int | None = None,
        guaranteed_group_size: int | None = None,
        drop_remaining: bool = False,
    ):
        check_function(group_key_fn)
        self.datapipe = datapipe
        self.group_key_fn = group_key_fn
        self.keep_key = keep_key
        self.max_buffer_size = buffer_size
        self.group_size = group_size
        self.guaranteed_group_size = None
        if group_size is not None and buffer_size is not None:
            if not 0 < group_size <= buffer_size:
                raise AssertionError("group_size must be > 0 and <= buffer_size")
            self.guaranteed_group_size = group_size
        if guaranteed_group_size is not None:
            if group_size is None or not 0 < guaranteed_group_size <= group_size:
                raise AssertionError("guaranteed_group_size must be > 0 and <= group_size and group_size must be set")
            self.guaranteed_group_size = guaranteed_group_size
        self.drop_remaining = drop_remaining
        self.wrapper_class = DataChunk
        self._empty()

    def _empty(self):
        self.buffer_elements: dict = {}
        self.curr_buffer_size = 0

    reset = _empty

    def _take(self, key):
        group = self.buffer_elements.pop(key)
        self.curr_buffer_size -= len(group)
        return group

    def _given(self, key, group):
        made = self.wrapper_class(group)
        return (key, made) if self.keep_key else made

    def _longest(self):
        """The longest list that waits; None where it is too short and may be dropped."""
        key = max(self.buffer_elements, key=lambda k: len(self.buffer_elements[k]))
        found = self.buffer_elements[key]
        short = self.guaranteed_group_size is not None and len(found) < self.guaranteed_group_size
        if short and not self.drop_remaining:
            raise RuntimeError("Failed to group items", str(found))
        self._take(key)
        return None if short else found

    def __iter__(self):
        for sample in self.datapipe:
            key = self.group_key_fn(sample)
            group = self.buffer_elements.setdefault(key, [])
            group.append(sample)
            self.curr_buffer_size += 1
            if len(group) == self.group_size:
                yield self._given(key, group)
                self._take(key)
            if self.curr_buffer_size == self.max_buffer_size:
                longest = self._longest()
                if longest is not None:
                    yield self._given(key, longest)
        for key in tuple(self.buffer_elements):
            yield self._given(key, self._take(key))

    def __getstate__(self):
        kept = self.__dict__.copy()
        kept.update(buffer_elements={}, curr_buffer_size=0)
        return self._hooked(kept)
