"""Muon."""

import math

from jtorch.optim.formulas import cast, lerp, maximum, norm
from jtorch.optim.optimizer import Optimizer
from jtorch.tensor import Tensor

__all__ = ["Muon"]


def _rounded(x):
    return cast(cast(x, "bfloat16"), "float32")


def orthogonalized(g, coefficients, steps, eps):
    """The nearest (semi-)orthogonal matrix, by Newton-Schulz iteration in bfloat16.

    Each step is rounded once, after its sum: what a matrix product that adds to a matrix does.
    """
    a, b, c = coefficients
    tall = g.shape[0] > g.shape[1]
    x = _rounded(g.T if tall else g)
    x = _rounded(x / maximum(_rounded(norm(x)), eps))
    for _ in range(steps):
        gram = _rounded(x @ x.T)
        x = _rounded(a * x + _rounded(b * gram + c * (gram @ gram)) @ x)
    return cast(x.T if tall else x, "bfloat16")


class Muon(Optimizer):
    """Momentum whose direction is orthogonalised, for matrices (Jordan et al., 2024).

    Args:
        params: parameters or groups, all of two dimensions
        lr: learning rate. Default: 1e-3
        weight_decay: how much parameters shrink. Default: 0.1
        momentum: decay of the running mean of the gradient. Default: 0.95
        nesterov: look ahead along the momentum. Default: True
        ns_coefficients, eps, ns_steps: of the Newton-Schulz iteration
        adjust_lr_fn: "original" or "match_rms_adamw": how the rate depends on the shape
    """

    counts_steps = False

    def __init__(
        self,
        params,
        lr=1e-3,
        weight_decay=0.1,
        momentum=0.95,
        nesterov=True,
        ns_coefficients=(3.4445, -4.7750, 2.0315),
        eps=1e-7,
        ns_steps=5,
        adjust_lr_fn=None,
    ):
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not lr >= 0.0:
            raise ValueError(f"Learning rate should be >= 0 but is: {lr}")
        if not momentum >= 0.0:
            raise ValueError(f"momentum should be >= 0 but is: {momentum}")
        if not weight_decay >= 0.0:
            raise ValueError(f"weight decay should be >= 0 but is: {weight_decay}")
        if adjust_lr_fn is not None and adjust_lr_fn not in ("original", "match_rms_adamw"):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        if ns_steps >= 100:
            raise ValueError("Number of steps must be less than 100 for computational efficiency")
        if len(ns_coefficients) != 3:
            raise ValueError("Coefficients must be a tuple of exactly 3 values")
        defaults = dict(
            lr=lr,
            weight_decay=weight_decay,
            momentum=momentum,
            nesterov=nesterov,
            ns_coefficients=ns_coefficients,
            eps=eps,
            ns_steps=ns_steps,
            adjust_lr_fn=adjust_lr_fn,
        )
        super().__init__(params, defaults)
        for group in self.param_groups:
            for p in group["params"]:
                if p.ndim != 2:
                    raise ValueError(
                        f"Muon only supports 2D parameters whereas we found a parameter with size: {p.size()}"
                    )

    def _init_state(self, params, group):
        if any(p.is_complex() for p in params):
            raise RuntimeError("Muon does not support complex parameters")
        super()._init_state(params, group)

    def state_names(self, group, kind=None):
        return ("momentum_buffer",)

    def flags(self, group):
        names = ("nesterov", "ns_steps", "adjust_lr_fn", "eps")
        return {k: group[k] for k in names} | {"coefficients": tuple(group["ns_coefficients"])}

    def numbers(self, group):
        return {k: group[k] for k in ("lr", "weight_decay", "momentum")}

    @staticmethod
    def scalars(hp, step):
        return {"new": 1 - hp.momentum, "shrink": 1 - hp.lr * hp.weight_decay}

    def update(self, p, g, s, hp):
        mean = lerp(s["momentum_buffer"], g, hp.new)
        direction = lerp(g, mean, hp.momentum) if hp.nesterov else mean
        direction = orthogonalized(direction, hp.coefficients, hp.ns_steps, hp.eps)
        rows, cols = p.shape
        if hp.adjust_lr_fn == "match_rms_adamw":
            factor = 0.2 * math.sqrt(max(rows, cols))
        else:
            factor = math.sqrt(max(1, rows / cols))
        return p * hp.shrink - hp.lr * factor * direction, {"momentum_buffer": mean}
