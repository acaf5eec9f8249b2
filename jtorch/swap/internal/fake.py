"""torch._subclasses and torch.fx.experimental: tensors without values that PyTorch's tracers make, of which there are none."""

__all__ = ["FakeTensor", "FakeTensorMode", "is_fake"]


class FakeTensor:
    """A tensor without values that says it is on a device: there is none; torch.device("meta") is for shapes alone."""


class FakeTensorMode:
    """The mode that makes them: it is never active."""


def is_fake(x) -> bool:
    """False."""
    return False
