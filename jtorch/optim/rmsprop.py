"""RMSprop."""

from jtorch.optim.formulas import lerp, sqrt
from jtorch.optim.optimizer import Optimizer, check_lr, check_nonnegative

__all__ = ["RMSprop"]


class RMSprop(Optimizer):
    """Divides the gradient by the root of its running mean square (Hinton, 2012).

    Args:
        params: parameters or groups
        lr: learning rate. Default: 1e-2
        alpha: decay of the running mean. Default: 0.99
        eps: added to the denominator. Default: 1e-8
        weight_decay: times the parameter is added to its gradient. Default: 0
        momentum: share of the last direction that is kept. Default: 0
        centered: divide by the standard deviation instead
        maximize: ascend
        foreach, capturable, differentiable: as in PyTorch; every step is fused here
    """

    old_numbers = ("step",)
    added_options = {
        "momentum": 0,
        "centered": False,
        "foreach": None,
        "maximize": False,
        "differentiable": False,
        "capturable": False,
    }

    def __init__(
        self,
        params,
        lr=1e-2,
        alpha=0.99,
        eps=1e-8,
        weight_decay=0,
        momentum=0,
        centered=False,
        capturable=False,
        foreach=None,
        maximize=False,
        differentiable=False,
    ):
        check_lr(lr)
        check_nonnegative(eps, "epsilon value")
        check_nonnegative(momentum, "momentum value")
        check_nonnegative(weight_decay, "weight_decay value")
        check_nonnegative(alpha, "alpha value")
        defaults = dict(
            lr=lr,
            momentum=momentum,
            alpha=alpha,
            eps=eps,
            centered=centered,
            weight_decay=weight_decay,
            capturable=capturable,
            foreach=foreach,
            maximize=maximize,
            differentiable=differentiable,
        )
        super().__init__(params, defaults)

    def state_names(self, group, kind=None):
        names = ["square_avg"]
        if group["momentum"] > 0:
            names.append("momentum_buffer")
        if group["centered"]:
            names.append("grad_avg")
        return tuple(names)

    def flags(self, group):
        return {
            "decays": group["weight_decay"] != 0,
            "has_momentum": group["momentum"] > 0,
            "centered": group["centered"],
        }

    def numbers(self, group):
        return {k: group[k] for k in ("lr", "alpha", "eps", "weight_decay", "momentum")}

    @staticmethod
    def scalars(hp, step):
        return {"new": 1 - hp.alpha}

    def update(self, p, g, s, hp):
        if hp.decays:
            g = g + hp.weight_decay * p
        square = hp.alpha * s["square_avg"] + hp.new * (g * g)
        state = {"square_avg": square}
        if hp.centered:
            mean = state["grad_avg"] = lerp(s["grad_avg"], g, hp.new)
            root = sqrt(square - mean * mean)
        else:
            root = sqrt(square)
        direction = g / (root + hp.eps)
        if hp.has_momentum:
            direction = state["momentum_buffer"] = hp.momentum * s["momentum_buffer"] + direction
        return p - hp.lr * direction, state
