"""Gradients of each sample: a module whose parameters get a `grad_sample` in backward."""

from ..nn.modules.batchnorm import _BatchNorm
from ..nn.modules.module import Module
from ..tensor import Tensor
from ..utils._pytree import tree_flatten
from . import functional_call, vmap

__all__ = ["call_for_per_sample_grads"]


def call_for_per_sample_grads(module, *, batch_size=None, loss_reduction="sum", batch_first=True):
    """A function like the module's call; backward through its result gives each parameter `.grad_sample`, of shape (batch, *shape).

    Args:
        batch_size: the number of samples. Default: the size of the inputs' batch dimension
        loss_reduction: how the loss puts its samples together, "sum" or "mean"
        batch_first: whether the batch is the first dimension of inputs and results, or the second

    RuntimeError: no module, an argument of the wrong kind, or a parameter that has a grad_sample already.
    """
    if loss_reduction not in ("sum", "mean"):
        raise RuntimeError(f"Expected loss_reduction argument to be sum or mean, got {loss_reduction}")
    if not isinstance(module, Module):
        raise RuntimeError(f"Module passed must be nn.Module, got {type(module).__name__}")
    if batch_size is not None and not isinstance(batch_size, int):
        raise RuntimeError(f"Batch size passed must be None or an integer, got {type(batch_size).__name__}")
    if batch_size is not None and batch_size < 1:
        raise RuntimeError(f"Batch size must be positive, got {batch_size}")
    for p in module.parameters():
        if p.requires_grad and getattr(p, "grad_sample", None) is not None:
            raise RuntimeError(
                "Current Expanded Weights accumulates the gradients, which will be incorrect for multiple calls without clearing "
                f"gradients. Please clear out the grad_sample parameter of {p} or post an issue to pytorch/pytorch to prioritize "
                "correct behavior"
            )
    dim = 0 if batch_first else 1

    def call(*args, **kwargs):
        if any(isinstance(m, _BatchNorm) and m.training for m in module.modules()):
            raise RuntimeError("Expanded Weights encountered but cannot handle function batch_norm")
        leaves, spec = tree_flatten((args, kwargs))
        found = _size(leaves, dim)
        size = found if batch_size is None else batch_size
        if found != size:
            raise RuntimeError(
                "Expected ExpandedWeights to have batch size matching input but got input batch size of "
                f"{found} with ExpandedWeight of batch size {size}"
            )
        own = {n: _each(p, size, size if loss_reduction == "mean" else 1) for n, p in module.named_parameters()
               if p.requires_grad}  # fmt: skip
        shapes = []

        def one(weights, *sample):
            a, k = spec.unflatten([x.unsqueeze(dim) if isinstance(x, Tensor) else x for x in sample])
            made, out = tree_flatten(functional_call(module, weights, a, k))
            shapes.append(out)
            return tuple(t.squeeze(dim) for t in made)

        in_dims = ({n: 0 for n in own}, *(dim if isinstance(x, Tensor) else None for x in leaves))
        made = vmap(one, in_dims, dim, randomness="different")(own, *leaves)
        return shapes[-1].unflatten(made)

    return call


def _size(leaves, dim):
    """The size of the batch dimension of the inputs. RuntimeError: none has one, or they differ."""
    sizes = [x.shape[dim] for x in leaves if isinstance(x, Tensor)]
    if not sizes:
        raise RuntimeError(
            "Unable to find a tensor in the passed args and kwargs. They may not be pytree-able and so ExpandedWeights cannot compute "
            "the batch size from the inputs. Please specify it explicitly"
        )
    for n in sizes:
        if n != sizes[0]:
            raise RuntimeError(
                f"When computing batch size, found at least one input with batch size {sizes[0]} and one with batch size {n}. "
                "Please specify it explicitly using the batch size kwarg in call_for_per_sample_grads"
            )
    return sizes[0]


def _each(parameter, size, scale):
    """A leaf that is the parameter once for each sample, and leaves its gradient at the parameter."""
    leaf = parameter.detach().expand(size, *parameter.shape).requires_grad_()

    def keep(g):
        g = g.detach() if scale == 1 else g.detach() * scale
        before = getattr(parameter, "grad_sample", None)
        parameter.grad_sample = g if before is None else before + g

    leaf.register_hook(keep)
    return leaf
