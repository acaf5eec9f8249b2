"""make_fx, which is not here: what a dispatch mode sees are the op table's own operators, and no backward passes."""

from ... import errors

__all__ = ["get_proxy_mode", "make_fx"]


def make_fx(f, *args, **kwargs):
    """Raises NotImplementedError: a graph made so would hold as constants what the mode does not see."""
    raise errors.unsupported(
        "make_fx", "torch.fx.symbolic_trace, torch.export.export or torch.compile(backend=function)"
    )


def get_proxy_mode():
    """None: nothing is traced with proxies."""
    return None
