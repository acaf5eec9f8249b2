"""Resilient backpropagation."""

from jtorch import functions as torch
from jtorch.optim.formulas import clip, where
from jtorch.optim.optimizer import Optimizer, check_lr

__all__ = ["Rprop"]


class Rprop(Optimizer):
    """Steps whose sizes depend on the signs of gradients alone (Riedmiller and Braun, 1993).

    Args:
        params: parameters or groups
        lr: the first step size. Default: 1e-2
        etas: factors of the size after a change of sign, and after none. Default: (0.5, 1.2)
        step_sizes: the smallest and the largest size. Default: (1e-6, 50)
        maximize: ascend
        foreach, capturable, differentiable: as in PyTorch; every step is fused here
    """

    old_numbers = ("step",)
    added_options = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}

    def __init__(
        self,
        params,
        lr=1e-2,
        etas=(0.5, 1.2),
        step_sizes=(1e-6, 50),
        *,
        capturable=False,
        foreach=None,
        maximize=False,
        differentiable=False,
    ):
        check_lr(lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        defaults = dict(
            lr=lr,
            etas=etas,
            step_sizes=step_sizes,
            foreach=foreach,
            maximize=maximize,
            differentiable=differentiable,
            capturable=capturable,
        )
        super().__init__(params, defaults)

    def state_names(self, group, kind=None):
        return ("prev", "step_size")

    def init(self, p, group):
        lr = float(group["lr"])
        return {
            "prev": torch.zeros_like(p),
            "step_size": torch.full_like(p, complex(lr, lr) if p.is_complex() else lr),
        }

    def numbers(self, group):
        (shrink, grow), (smallest, largest) = group["etas"], group["step_sizes"]
        return {"shrink": shrink, "grow": grow, "smallest": smallest, "largest": largest}

    def update(self, p, g, s, hp):
        agrees = g * s["prev"]
        size = s["step_size"]
        size = clip(
            where(agrees > 0, size * hp.grow, where(agrees < 0, size * hp.shrink, size)), hp.smallest, hp.largest
        )
        g = where(agrees < 0, 0.0, g)
        step = where(g > 0, size, where(g < 0, -size, 0.0))  # of nan none, where a sign would be nan
        return p - step, {"prev": g, "step_size": size}
