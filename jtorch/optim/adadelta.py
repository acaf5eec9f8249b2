"""Adadelta."""

from jtorch.optim.formulas import sqrt
from jtorch.optim.optimizer import Optimizer, check_lr, check_nonnegative

__all__ = ["Adadelta"]


class Adadelta(Optimizer):
    """Steps in the units of the parameters: a ratio of two running means (Zeiler, 2012).

    Args:
        params: parameters or groups
        lr: factor of the step. Default: 1
        rho: decay of the running means. Default: 0.9
        eps: added to both means. Default: 1e-6
        weight_decay: times the parameter is added to its gradient. Default: 0
        maximize: ascend
        foreach, capturable, differentiable: as in PyTorch; every step is fused here
    """

    old_numbers = ("step",)
    added_options = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}

    def __init__(
        self,
        params,
        lr=1.0,
        rho=0.9,
        eps=1e-6,
        weight_decay=0,
        foreach=None,
        *,
        capturable=False,
        maximize=False,
        differentiable=False,
    ):
        check_lr(lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        check_nonnegative(eps, "epsilon value")
        check_nonnegative(weight_decay, "weight_decay value")
        defaults = dict(
            lr=lr,
            rho=rho,
            eps=eps,
            weight_decay=weight_decay,
            maximize=maximize,
            capturable=capturable,
            foreach=foreach,
            differentiable=differentiable,
        )
        super().__init__(params, defaults)

    def state_names(self, group, kind=None):
        return ("square_avg", "acc_delta")

    def flags(self, group):
        return {"decays": group["weight_decay"] != 0}

    def numbers(self, group):
        return {k: group[k] for k in ("lr", "rho", "eps", "weight_decay")}

    @staticmethod
    def scalars(hp, step):
        return {"new": 1 - hp.rho}

    def update(self, p, g, s, hp):
        if hp.decays:
            g = g + hp.weight_decay * p
        square = hp.rho * s["square_avg"] + hp.new * (g * g)
        delta = sqrt(s["acc_delta"] + hp.eps) / sqrt(square + hp.eps) * g
        moved = hp.rho * s["acc_delta"] + hp.new * (delta * delta)
        return p - hp.lr * delta, {"square_avg": square, "acc_delta": moved}
