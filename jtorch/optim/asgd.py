"""Averaged stochastic gradient descent."""

from jtorch import functions as torch
from jtorch.optim.formulas import maximum
from jtorch.optim.optimizer import Optimizer, check_lr, check_nonnegative
from jtorch.optim.steps import scalar_dtype

__all__ = ["ASGD"]


class ASGD(Optimizer):
    """Stochastic gradient descent that also keeps an average of the parameters (Polyak and Juditsky, 1992).

    Args:
        params: parameters or groups
        lr: learning rate. Default: 1e-2
        lambd: decay. Default: 1e-4
        alpha: power of the fall of the rate. Default: 0.75
        t0: the step at which averaging begins. Default: 1e6
        weight_decay: times the parameter is added to its gradient. Default: 0
        maximize: ascend
        foreach, capturable, differentiable: as in PyTorch; every step is fused here
    """

    old_numbers = ("step", "eta", "mu")
    added_options = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}

    def __init__(
        self,
        params,
        lr=1e-2,
        lambd=1e-4,
        alpha=0.75,
        t0=1e6,
        weight_decay=0,
        foreach=None,
        maximize=False,
        differentiable=False,
        capturable=False,
    ):
        check_lr(lr)
        check_nonnegative(weight_decay, "weight_decay value")
        defaults = dict(
            lr=lr,
            lambd=lambd,
            alpha=alpha,
            t0=t0,
            weight_decay=weight_decay,
            foreach=foreach,
            maximize=maximize,
            differentiable=differentiable,
            capturable=capturable,
        )
        super().__init__(params, defaults)

    def state_names(self, group, kind=None):
        return ("eta", "mu", "ax")

    def init(self, p, group):
        options = {"dtype": scalar_dtype(), "device": p.device}
        return {
            "eta": torch.full((), float(group["lr"]), **options),
            "mu": torch.ones((), **options),
            "ax": torch.zeros_like(p),
        }

    def flags(self, group):
        return {"decays": group["weight_decay"] != 0}

    def numbers(self, group):
        return {k: group[k] for k in ("lr", "lambd", "alpha", "t0", "weight_decay")}

    @staticmethod
    def scalars(hp, step):
        return {
            "next_eta": hp.lr / (1 + hp.lambd * hp.lr * step) ** hp.alpha,
            "next_mu": 1 / maximum(step - hp.t0, 1.0),
        }

    def update(self, p, g, s, hp):
        if hp.decays:
            g = g + hp.weight_decay * p
        p = p * (1 - hp.lambd * s["eta"]) - s["eta"] * g
        # a weight of one (before averaging begins) makes the average the parameter itself
        average = s["ax"] + (p - s["ax"]) * s["mu"]
        return p, {"eta": hp.next_eta, "mu": hp.next_mu, "ax": average}
