"""Pipes of what a program has already: iterables, and files."""

import copy
import warnings

from ..common import get_file_binaries_from_pathnames, get_file_pathnames_from_root, length_of, no_length
from ..datapipe import IterDataPipe
from ..decorators import functional_datapipe

__all__ = [
    "FileListerIterDataPipe",
    "FileOpenerIterDataPipe",
    "IterableWrapperIterDataPipe",
    "StreamReaderIterDataPipe",
]


class IterableWrapperIterDataPipe(IterDataPipe):
    """A pipe of any iterable; each pass goes over a deep copy of it, unless `deepcopy` is false or none can be made."""

    def __init__(self, iterable, deepcopy: bool = True):
        self.iterable = iterable
        self.deepcopy = deepcopy

    def __iter__(self):
        source = self.iterable
        if self.deepcopy:
            try:
                source = copy.deepcopy(source)
            except TypeError:
                warnings.warn(
                    "The input iterable can not be deepcopied, please be aware of in-place modification would affect "
                    "source data.",
                    stacklevel=2,
                )
        yield from source

    def __len__(self):
        return length_of(self, self.iterable)


class _Nominal(IterDataPipe):
    """A pipe whose length is what the program says it is."""

    length = -1

    def __len__(self):
        if self.length == -1:
            raise no_length(self)
        return self.length


@functional_datapipe("list_files")
class FileListerIterDataPipe(_Nominal):
    """The paths of the files in one folder or several.

    Args:
        root: a folder, several, or a pipe of them
        masks: patterns of which a file's name must match one
        recursive: go into folders inside
        abspath: give absolute paths
        non_deterministic: do not sort
        length: what `len()` says
    """

    def __init__(self, root=".", masks="", *, recursive=False, abspath=False, non_deterministic=False, length=-1):
        if isinstance(root, str):
            root = [root]
        self.datapipe = root if isinstance(root, IterDataPipe) else IterableWrapperIterDataPipe(root)
        self.masks = masks
        self.recursive = recursive
        self.abspath = abspath
        self.non_deterministic = non_deterministic
        self.length = length

    def __iter__(self):
        for folder in self.datapipe:
            yield from get_file_pathnames_from_root(
                folder, self.masks, self.recursive, self.abspath, self.non_deterministic
            )


@functional_datapipe("open_files")
class FileOpenerIterDataPipe(_Nominal):
    """(path, open file) for each path of a pipe. Raises ValueError for a mode other than r, b, t, rb, rt."""

    def __init__(self, datapipe, mode: str = "r", encoding: str | None = None, length: int = -1):
        if mode not in ("b", "t", "rb", "rt", "r"):
            raise ValueError(f"Invalid mode {mode}")
        if "b" in mode and encoding is not None:
            raise ValueError("binary mode doesn't take an encoding argument")
        self.datapipe = datapipe
        self.mode = mode
        self.encoding = encoding
        self.length = length

    def __iter__(self):
        yield from get_file_binaries_from_pathnames(self.datapipe, self.mode, self.encoding)


@functional_datapipe("read_from_stream")
class StreamReaderIterDataPipe(IterDataPipe):
    """(label, what was read) of (label, stream) pairs, `chunk` bytes at a time or all at once; closes the streams."""

    def __init__(self, datapipe, chunk: int | None = None):
        self.datapipe = datapipe
        self.chunk = chunk

    def __iter__(self):
        for label, stream in self.datapipe:
            while part := stream.read(self.chunk):
                yield label, part
            stream.close()
