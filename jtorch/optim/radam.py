"""RAdam."""

from jtorch.optim.formulas import bias_correction, lerp, maximum, sqrt, where
from jtorch.optim.optimizer import Optimizer, check_betas, check_lr, check_nonnegative

__all__ = ["RAdam"]


class RAdam(Optimizer):
    """Adam that waits with its adaptive rate until the rate's variance is bounded (Liu et al., 2019).

    Args:
        params: parameters or groups
        lr: learning rate. Default: 1e-3
        betas: decay of the running means of the gradient and of its square. Default: (0.9, 0.999)
        eps: added to the denominator. Default: 1e-8
        weight_decay: times the parameter is added to its gradient. Default: 0
        decoupled_weight_decay: shrink the parameter instead of changing the gradient
        maximize: ascend
        foreach, capturable, differentiable: as in PyTorch; every step is fused here
    """

    old_numbers = ("step",)
    added_options = {
        "foreach": None,
        "maximize": False,
        "differentiable": False,
        "decoupled_weight_decay": False,
        "capturable": False,
    }

    def __init__(
        self,
        params,
        lr=1e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0,
        decoupled_weight_decay=False,
        *,
        foreach=None,
        maximize=False,
        capturable=False,
        differentiable=False,
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
            maximize=maximize,
            foreach=foreach,
            capturable=capturable,
            decoupled_weight_decay=decoupled_weight_decay,
            differentiable=differentiable,
        )
        super().__init__(params, defaults)

    def state_names(self, group, kind=None):
        return ("exp_avg", "exp_avg_sq")

    def flags(self, group):
        return {"decays": group["weight_decay"] != 0, "decoupled": group["decoupled_weight_decay"]}

    def numbers(self, group):
        beta1, beta2 = group["betas"]
        return {"beta1": beta1, "beta2": beta2} | {k: group[k] for k in ("lr", "eps", "weight_decay")}

    @staticmethod
    def scalars(hp, step):
        power = hp.beta2**step
        limit = 2 / (1 - hp.beta2) - 1
        length = limit - 2 * step * power / (1 - power)
        longer = maximum(length, 5.0)  # the root below is real there
        rectified = sqrt((longer - 4) * (longer - 2) * limit / ((limit - 4) * (limit - 2) * longer))
        return {
            "new1": 1 - hp.beta1,
            "new2": 1 - hp.beta2,
            "correct1": bias_correction(hp.beta1, step),
            "adaptive": sqrt(1 - power) * rectified,
            "length": length,
            "shrink": 1 - hp.lr * hp.weight_decay,
        }

    def update(self, p, g, s, hp):
        if hp.decays:
            if hp.decoupled:
                p = p * hp.shrink
            else:
                g = g + hp.weight_decay * p
        mean = lerp(s["exp_avg"], g, hp.new1)
        square = hp.beta2 * s["exp_avg_sq"] + hp.new2 * (g * g)
        rate = where(hp.length > 5.0, hp.adaptive / (sqrt(square) + hp.eps), 1.0)
        return p - hp.lr * (mean / hp.correct1) * rate, {"exp_avg": mean, "exp_avg_sq": square}
