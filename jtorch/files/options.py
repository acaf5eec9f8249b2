"""The settings of loading and saving: torch.utils.serialization.config."""

import contextlib
import enum
import mmap as _maps
import sys

MAP_PRIVATE, MAP_SHARED = getattr(_maps, "MAP_PRIVATE", 2), getattr(_maps, "MAP_SHARED", 1)


class LoadEndianness(enum.Enum):
    """The byte order to assume of files that do not say theirs."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


class load:
    """Settings of torch.load."""

    mmap = False
    endianness = None
    mmap_flags = None if sys.platform == "win32" else MAP_PRIVATE
    calculate_storage_offsets = False


class save:
    """Settings of torch.save."""

    compute_crc32 = True
    use_pinned_memory_for_d2h = False
    storage_alignment = 64


class options:
    """Both."""

    load = load
    save = save


def _split(name):
    group, _, key = name.partition(".")
    owner = getattr(options, group, None)
    if owner is None or not hasattr(owner, key):
        raise AttributeError(f"torch.utils.serialization.config has no setting {name!r}")
    return owner, key


@contextlib.contextmanager
def patch(settings=None, value=None, **more):
    """Settings changed for the time of a `with` block: a name and a value, or a dict of them."""
    changes = {settings: value} if isinstance(settings, str) else {**(settings or {}), **more}
    before = [(*_split(name), getattr(*_split(name))) for name in changes]
    try:
        for name, new in changes.items():
            setattr(*_split(name), new)
        yield
    finally:
        for owner, key, old in before:
            setattr(owner, key, old)
