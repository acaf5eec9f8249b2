"""Losses as `torch.ops.aten` has them: with PyTorch's numbers for the reductions, and its order of arguments."""

import inspect

from .dispatch.outer_rules import binder
from .functions import lookup

__all__ = ["LOSSES", "REDUCTIONS"]

REDUCTIONS = ("none", "mean", "sum")

# name: (the arguments, the name in torch.nn.functional)
_SIGNATURES = {
    "mse_loss": ("input, target, reduction=1", None),
    "l1_loss": ("input, target, reduction=1", None),
    "soft_margin_loss": ("input, target, reduction=1", None),
    "multilabel_margin_loss": ("input, target, reduction=1", None),
    "smooth_l1_loss": ("input, target, reduction=1, beta=1.0", None),
    "huber_loss": ("input, target, reduction=1, delta=1.0", None),
    "binary_cross_entropy": ("input, target, weight=None, reduction=1", None),
    "binary_cross_entropy_with_logits": ("input, target, weight=None, pos_weight=None, reduction=1", None),
    "kl_div": ("input, target, reduction=1, *, log_target=False", None),
    "nll_loss": ("input, target, weight=None, reduction=1, ignore_index=-100", None),
    "nll_loss_nd": ("input, target, weight=None, reduction=1, ignore_index=-100", "nll_loss"),
    "nll_loss2d": ("input, target, weight=None, reduction=1, ignore_index=-100", "nll_loss"),
    "cross_entropy_loss": (
        "input, target, weight=None, reduction=1, ignore_index=-100, label_smoothing=0.0",
        "cross_entropy",
    ),
    "hinge_embedding_loss": ("input, target, margin=1.0, reduction=1", None),
    "multi_margin_loss": ("input, target, p=1, margin=1.0, weight=None, reduction=1", None),
    "poisson_nll_loss": ("input, target, log_input, full, eps, reduction", None),
    "cosine_embedding_loss": ("input1, input2, target, margin=0.0, reduction=1", None),
    "margin_ranking_loss": ("input1, input2, target, margin=0.0, reduction=1", None),
    "triplet_margin_loss": (
        "anchor, positive, negative, margin=1.0, p=2.0, eps=1e-6, swap=False, reduction=1",
        None,
    ),
}


def _loss(name, arguments, public):
    def loss(*args, **kwargs):
        if "self" in kwargs:
            kwargs["input"] = kwargs.pop("self")
        given = bound(*args, **kwargs)
        given["reduction"] = REDUCTIONS[given["reduction"]]
        return lookup("nn.functional", public or name)(**given)

    bound = binder(arguments)
    loss.__name__, loss.__signature__ = name, inspect.signature(bound)
    return loss


LOSSES = {name: _loss(name, *given) for name, given in _SIGNATURES.items()}
