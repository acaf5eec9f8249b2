"""Adamax."""

from jtorch.optim.formulas import absolute, bias_correction, lerp, maximum
from jtorch.optim.optimizer import Optimizer, check_betas, check_lr, check_nonnegative

__all__ = ["Adamax"]


class Adamax(Optimizer):
    """Adam with the infinity norm (Kingma and Ba, 2014).

    Args:
        params: parameters or groups
        lr: learning rate. Default: 2e-3
        betas: decay of the running mean and of the running maximum. Default: (0.9, 0.999)
        eps: added to the gradient's magnitude. Default: 1e-8
        weight_decay: times the parameter is added to its gradient. Default: 0
        maximize: ascend
        foreach, capturable, differentiable: as in PyTorch; every step is fused here
    """

    old_numbers = ("step",)
    added_options = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}

    def __init__(
        self,
        params,
        lr=2e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0,
        foreach=None,
        *,
        maximize=False,
        differentiable=False,
        capturable=False,
    ):
        check_lr(lr)
        check_nonnegative(eps, "epsilon value")
        check_betas(betas)
        check_nonnegative(weight_decay, "weight_decay value")
        defaults = dict(
            lr=lr,
            betas=betas,
            eps=eps,
            weight_decay=weight_decay,
            foreach=foreach,
            maximize=maximize,
            differentiable=differentiable,
            capturable=capturable,
        )
        super().__init__(params, defaults)

    def state_names(self, group, kind=None):
        return ("exp_avg", "exp_inf")

    def flags(self, group):
        return {"decays": group["weight_decay"] != 0}

    def numbers(self, group):
        beta1, beta2 = group["betas"]
        return {"beta1": beta1, "beta2": beta2} | {k: group[k] for k in ("lr", "eps", "weight_decay")}

    @staticmethod
    def scalars(hp, step):
        return {"new1": 1 - hp.beta1, "step_size": hp.lr / bias_correction(hp.beta1, step)}

    def update(self, p, g, s, hp):
        if hp.decays:
            g = g + hp.weight_decay * p
        mean = lerp(s["exp_avg"], g, hp.new1)
        largest = maximum(hp.beta2 * s["exp_inf"], absolute(g) + hp.eps)
        return p - hp.step_size * (mean / largest), {"exp_avg": mean, "exp_inf": largest}
