"""torch.utils.checkpoint: the helpers that packages with a checkpoint function of their own call."""

import warnings

from ...tensor import Tensor

__all__ = ["check_backward_validity", "detach_variable"]


def detach_variable(inputs):
    """A tuple with its tensors off the graph, asking for gradients where they did. RuntimeError: no tuple."""
    if not isinstance(inputs, tuple):
        raise RuntimeError(f"Only tuple of tensors is supported. Got Unsupported input type: {type(inputs).__name__}")
    return tuple(x.detach().requires_grad_(x.requires_grad) if isinstance(x, Tensor) else x for x in inputs)


def check_backward_validity(inputs) -> None:
    """UserWarning where no tensor among `inputs` requires a gradient."""
    if not any(x.requires_grad for x in inputs if isinstance(x, Tensor)):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2)
