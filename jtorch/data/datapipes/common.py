"""What several steps need: streams that close themselves, names of files, and checks of the functions they are given."""

import fnmatch
import functools
import inspect
import io
import os
import warnings
from collections.abc import Callable, Iterable, Iterator

from .datapipe import DataChunk

__all__ = [
    "StreamWrapper",
    "get_file_binaries_from_pathnames",
    "get_file_pathnames_from_root",
    "match_masks",
    "validate_input_col",
    "validate_pathname_binary_tuple",
]


def no_length(pipe) -> TypeError:
    """The error of `len(pipe)` where nothing says how long it is."""
    return TypeError(f"{type(pipe).__name__} instance doesn't have valid length")


def length_of(pipe, source) -> int:
    """The length of a pipe's source. Raises TypeError in the pipe's name where it has none."""
    if not hasattr(type(source), "__len__"):
        raise no_length(pipe)
    return len(source)


class Batches:
    """What the steps that make batches share: their settings, and how many batches there are."""

    def __init__(self, datapipe, batch_size: int, drop_last: bool = False, wrapper_class=DataChunk):
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        self.datapipe = datapipe
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.wrapper_class = wrapper_class

    def __len__(self):
        n = length_of(self, self.datapipe)
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)


# --- functions ---------------------------------------------------------------------------------------------------------


def columns(function, column, sample):
    """`function` of the columns of a sample; of the whole sample where `column` is None."""
    if column is None:
        return function(sample)
    if isinstance(column, (list, tuple)):
        return function(*(sample[c] for c in column))
    return function(sample[column])


def validate_input_col(fn: Callable, input_col: int | tuple | list | None) -> None:
    """Raise ValueError where `fn` cannot be called with as many arguments as there are columns."""
    try:
        parameters = inspect.signature(fn).parameters.values()
    except ValueError:  # written in C
        return
    wanted = len(input_col) if isinstance(input_col, (list, tuple)) else 1
    kinds = inspect.Parameter
    named = getattr(fn, "func", fn) if isinstance(fn, functools.partial) else fn
    name = getattr(named, "__name__", repr(named))
    by_keyword = [p for p in parameters if p.kind is kinds.KEYWORD_ONLY and p.default is p.empty]
    if by_keyword:
        raise ValueError(
            f"The function {name} takes {len(by_keyword)} non-default keyword-only parameters, which is not allowed."
        )
    positional = [p for p in parameters if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)]
    open_ended = any(p.kind is kinds.VAR_POSITIONAL for p in parameters)
    if len(parameters) < wanted and not open_ended:
        raise ValueError(f"The function {name} takes {len(parameters)} parameters, but {wanted} are required.")
    required = sum(p.default is p.empty for p in positional[wanted:])
    if required or (len(positional) < wanted and not open_ended):
        raise ValueError(
            f"The function {name} takes {len(positional)} positional parameters, but {wanted} are required."
        )


def check_function(fn) -> None:
    """Warn of a function that pickle does not take. Raises TypeError for what cannot be called."""
    if not callable(fn):
        raise TypeError(f"A callable function is expected, but {type(fn)} is provided.")
    if isinstance(fn, functools.partial):
        fn = fn.func
    if hasattr(fn, "__code__"):
        local = fn.__code__.co_flags & inspect.CO_NESTED
    else:
        local = "<locals>" in getattr(fn, "__qualname__", type(fn).__qualname__)
    kind = "Local" if local else "Lambda" if getattr(fn, "__name__", "") == "<lambda>" else None
    if kind:
        warnings.warn(
            f"{kind} function is not supported by pickle, please use regular python function or functools.partial instead.",
            stacklevel=4,
        )


# --- files -------------------------------------------------------------------------------------------------------------


def match_masks(name: str, masks: str | list[str]) -> bool:
    """Whether a file's name is one that a mask, or one of several, lets through; no mask lets all through."""
    return not masks or any(fnmatch.fnmatch(name, m) for m in ([masks] if isinstance(masks, str) else masks))


def get_file_pathnames_from_root(
    root: str,
    masks: str | list[str],
    recursive: bool = False,
    abspath: bool = False,
    non_deterministic: bool = False,
) -> Iterator[str]:
    """The paths of the files in a folder, sorted unless `non_deterministic`; of a file, its own. Raises OSError for neither."""

    def refuse(error):
        warnings.warn(f"{error.filename} : {error.strerror}", stacklevel=2)
        raise error

    if os.path.isfile(root):
        if match_masks(os.path.basename(root), masks):
            yield os.path.abspath(root) if abspath else root
        return
    for folder, inside, files in os.walk(root, onerror=refuse):
        if not non_deterministic:
            files.sort()
            inside.sort()
        if abspath:
            folder = os.path.abspath(folder)
        yield from (os.path.join(folder, name) for name in files if match_masks(name, masks))
        if not recursive:
            return


def get_file_binaries_from_pathnames(pathnames: Iterable, mode: str, encoding: str | None = None) -> Iterator[tuple]:
    """(path, open file) of each path. Raises TypeError for a path that is no string."""
    if not isinstance(pathnames, Iterable):
        pathnames = [pathnames]
    mode = f"r{mode}" if mode in ("b", "t") else mode
    for name in pathnames:
        if not isinstance(name, str):
            raise TypeError(f"Expected string type for pathname, but got {type(name)}")
        yield name, StreamWrapper(open(name, mode, encoding=encoding))


def validate_pathname_binary_tuple(data) -> None:
    """Raise TypeError for what is no pair of a path and a stream."""
    if not isinstance(data, tuple):
        raise TypeError(f"pathname binary data should be tuple type, but it is type {type(data)}")
    if len(data) != 2:
        raise TypeError(f"pathname binary stream tuple length should be 2, but got {len(data)}")
    name, stream = data
    if not isinstance(name, str):
        raise TypeError(f"pathname within the tuple should have string type pathname, but it is type {type(name)}")
    if not isinstance(stream, (io.IOBase, StreamWrapper)):
        raise TypeError(
            f"binary stream within the tuple should have IOBase orits subclasses as type, but it is type {type(stream)}"
        )


class StreamWrapper:
    """An open file that is closed when nobody holds it any more, or when the streams read out of it are closed.

    Args:
        file_obj: the file
        parent_stream: the stream that this one was read out of
        name: for printing
    """

    session_streams: dict["StreamWrapper", int] = {}
    debug_unclosed_streams: bool = False

    def __init__(self, file_obj, parent_stream=None, name=None):
        if parent_stream is not None and not isinstance(parent_stream, StreamWrapper):
            raise RuntimeError(f"Parent stream should be StreamWrapper, {type(parent_stream)} was given")
        self.file_obj = file_obj
        self.child_counter = 0
        self.parent_stream = parent_stream
        self.close_on_last_child = False
        self.name = name
        self.closed = False
        if parent_stream is not None:
            parent_stream.child_counter += 1
        if StreamWrapper.debug_unclosed_streams:
            StreamWrapper.session_streams[self] = 1

    @classmethod
    def close_streams(cls, v, depth: int = 0) -> None:
        """Close the streams in nested lists, tuples and dicts, ten levels deep."""
        if isinstance(v, StreamWrapper):
            v.close()
        elif depth <= 10 and isinstance(v, (dict, list, tuple)):
            for inner in v.values() if isinstance(v, dict) else v:
                cls.close_streams(inner, depth + 1)

    def __getattr__(self, name):
        return getattr(self.__dict__["file_obj"], name)

    def close(self, *args, **kwargs) -> None:
        """Close the file, and the parent that waits for its last child."""
        if self.closed:
            return
        StreamWrapper.session_streams.pop(self, None)
        parent = self.__dict__.get("parent_stream")
        if parent is not None:
            parent.child_counter -= 1
            if not parent.child_counter and parent.close_on_last_child:
                parent.close()
        closing = getattr(self.file_obj, "close", None)
        if closing is not None:
            closing(*args, **kwargs)
        self.closed = True

    def autoclose(self) -> None:
        """Close when the last child is closed; at once if there is none."""
        self.close_on_last_child = True
        if self.child_counter == 0:
            self.close()

    def __dir__(self):
        return sorted({*self.__dict__, *vars(StreamWrapper), *dir(self.file_obj)})

    def __del__(self):
        if "file_obj" in self.__dict__ and not self.__dict__.get("closed"):
            self.close()

    def __iter__(self):
        yield from self.file_obj

    def __next__(self):
        return next(self.file_obj)

    def __repr__(self):
        return f"StreamWrapper<{'' if self.name is None else f'{self.name},'}{self.file_obj!r}>"

    def __getstate__(self):
        return self.file_obj

    def __setstate__(self, obj):
        self.file_obj = obj
