"""torch.utils.mobile_optimizer: there is no interpreter for phones, and asking for one says what to do."""

from .. import errors

__all__ = ["optimize_for_mobile"]


def optimize_for_mobile(script_module, optimization_blocklist=None, preserved_methods=None, backend="CPU"):
    """Raises NotImplementedError: nothing here runs on phones."""
    raise errors.unsupported(
        "modules for mobile interpreters", instead="jax.export of the jitted function, for TensorFlow Lite or IREE"
    )
