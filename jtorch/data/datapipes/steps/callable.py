"""Steps that call a function of each sample: map, collate, filter."""

from collections.abc import Callable

from .... import errors
from ...collate import default_collate
from ..common import StreamWrapper, check_function, columns, length_of, validate_input_col
from ..datapipe import IterDataPipe
from ..decorators import functional_datapipe

__all__ = ["CollatorIterDataPipe", "FilterIterDataPipe", "MapperIterDataPipe"]


@functional_datapipe("map")
class MapperIterDataPipe(IterDataPipe):
    """`fn` of each sample, or of some columns of it.

    Args:
        datapipe: where the samples come from
        fn: the function
        input_col: the key, or keys, of the columns that it gets; None: the whole sample
        output_col: where the result goes; None: to the first of `input_col`, and the others are taken out; -1: to the end
    """

    def __init__(self, datapipe, fn: Callable, input_col=None, output_col=None):
        self.datapipe = datapipe
        check_function(fn)
        self.fn = fn
        self.input_col = input_col
        if input_col is None and output_col is not None:
            raise ValueError("`output_col` must be None when `input_col` is None.")
        if isinstance(output_col, (list, tuple)):
            if len(output_col) > 1:
                raise ValueError("`output_col` must be a single-element list or tuple")
            output_col = output_col[0]
        self.output_col = output_col
        validate_input_col(fn, input_col)

    def _changed(self, sample):
        made = columns(self.fn, self.input_col, sample)
        if self.input_col is None:
            return made
        fixed = isinstance(sample, tuple)
        sample = list(sample) if fixed else sample
        if self.output_col == -1:
            sample.append(made)
        elif self.output_col is not None:
            sample[self.output_col] = made
        elif isinstance(self.input_col, (list, tuple)):
            sample[self.input_col[0]] = made
            for column in sorted(self.input_col[1:], reverse=True):
                del sample[column]
        else:
            sample[self.input_col] = made
        return tuple(sample) if fixed else sample

    def __iter__(self):
        for sample in self.datapipe:
            yield self._changed(sample)

    def __len__(self):
        return length_of(self, self.datapipe)


@functional_datapipe("collate")
class CollatorIterDataPipe(MapperIterDataPipe):
    """Batches joined by a function, by default as DataLoader joins them."""

    def __init__(self, datapipe, conversion=default_collate, collate_fn: Callable | None = None):
        fn = conversion if collate_fn is None else collate_fn
        if isinstance(fn, dict):
            raise errors.unsupported("collating dataframes by column", "a function")
        super().__init__(datapipe, fn)


@functional_datapipe("filter")
class FilterIterDataPipe(IterDataPipe):
    """The samples for which `filter_fn`, of the sample or of its columns `input_col`, is True."""

    def __init__(self, datapipe, filter_fn: Callable, input_col=None):
        self.datapipe = datapipe
        check_function(filter_fn)
        self.filter_fn = filter_fn
        self.input_col = input_col
        validate_input_col(filter_fn, input_col)

    def __iter__(self):
        for sample in self.datapipe:
            passes = columns(self.filter_fn, self.input_col, sample)
            if not isinstance(passes, bool):
                raise ValueError("Boolean output is required for `filter_fn` of FilterIterDataPipe, got", type(passes))
            if passes:
                yield sample
            else:
                StreamWrapper.close_streams(sample)
