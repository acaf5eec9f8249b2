"""torch._subclasses and torch.fx.experimental: tensors without values that PyTorch's tracers make, of which there are none."""

from contextlib import contextmanager

from ... import errors

__all__ = ["FakeTensor", "FakeTensorConverter", "FakeTensorMode", "is_fake", "unset_fake_temporarily"]


class FakeTensor:
    """A tensor without values that says it is on a device: there is none; torch.device("meta") is for shapes alone."""


class FakeTensorMode:
    """The mode that makes them: it is never active."""


class FakeTensorConverter:
    """What makes them of tensors with values."""

    def __init__(self, **options):
        raise errors.unsupported("FakeTensorConverter", 'tensor.to("meta")')


def is_fake(x) -> bool:
    """False."""
    return False


@contextmanager
def unset_fake_temporarily():
    """Within it no mode makes tensors without values: as everywhere. Yields the mode that was active, which is None."""
    yield None
