"""Steps of several pipes: concat, mux, zip."""

from ..common import no_length
from ..datapipe import IterDataPipe
from ..decorators import functional_datapipe

__all__ = ["ConcaterIterDataPipe", "MultiplexerIterDataPipe", "ZipperIterDataPipe"]


class _Several(IterDataPipe):
    """A step of several pipes."""

    def __init__(self, *datapipes):
        self.datapipes = datapipes

    def _lengths(self):
        if not all(hasattr(type(pipe), "__len__") for pipe in self.datapipes):
            raise no_length(self)
        return [len(pipe) for pipe in self.datapipes]


@functional_datapipe("concat")
class ConcaterIterDataPipe(_Several):
    """Pipes, one after the other."""

    def __init__(self, *datapipes):
        if not datapipes:
            raise ValueError("Expected at least one DataPipe, but got nothing")
        if not all(isinstance(pipe, IterDataPipe) for pipe in datapipes):
            raise TypeError("Expected all inputs to be `IterDataPipe`")
        super().__init__(*datapipes)

    def __iter__(self):
        for pipe in self.datapipes:
            yield from pipe

    def __len__(self):
        return sum(self._lengths())


@functional_datapipe("mux")
class MultiplexerIterDataPipe(_Several):
    """One sample of each pipe in turn, as long as each has one."""

    def __iter__(self):
        iterators = [iter(pipe) for pipe in self.datapipes]
        while iterators:
            turn = []
            for iterator in iterators:
                try:
                    turn.append(next(iterator))
                except StopIteration:
                    return
            yield from turn

    def __len__(self):
        return min(self._lengths()) * len(self.datapipes)


@functional_datapipe("zip")
class ZipperIterDataPipe(_Several):
    """Tuples of one sample of each pipe, as long as the shortest."""

    def __init__(self, *datapipes):
        if not all(isinstance(pipe, IterDataPipe) for pipe in datapipes):
            raise TypeError("All inputs are required to be `IterDataPipe` for `ZipIterDataPipe`.")
        super().__init__(*datapipes)

    def __iter__(self):
        yield from zip(*[iter(pipe) for pipe in self.datapipes])

    def __len__(self):
        return min(self._lengths())
