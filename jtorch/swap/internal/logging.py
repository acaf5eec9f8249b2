"""torch._logging: what the logs of PyTorch's compiler show. There is none here: jtorch.compile.report() says what was compiled."""

__all__ = ["set_logs"]


def set_logs(*, modules=None, **kinds) -> None:
    """Accepted: jtorch has no such logs."""
