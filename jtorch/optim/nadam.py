"""NAdam."""

from jtorch import functions as torch
from jtorch.optim.formulas import bias_correction, lerp, sqrt
from jtorch.optim.optimizer import Optimizer, check_betas, check_lr, check_nonnegative
from jtorch.optim.steps import scalar_dtype

__all__ = ["NAdam"]


class NAdam(Optimizer):
    """Adam with Nesterov momentum (Dozat, 2016).

    Args:
        params: parameters or groups
        lr: learning rate. Default: 2e-3
        betas: decay of the running means of the gradient and of its square. Default: (0.9, 0.999)
        eps: added to the denominator. Default: 1e-8
        weight_decay: times the parameter is added to its gradient. Default: 0
        momentum_decay: how fast the momentum warms up. Default: 4e-3
        decoupled_weight_decay: shrink the parameter instead of changing the gradient
        maximize: ascend
        foreach, capturable, differentiable: as in PyTorch; every step is fused here
    """

    old_numbers = ("step", "mu_product")
    added_options = {
        "maximize": False,
        "foreach": None,
        "capturable": False,
        "differentiable": False,
        "decoupled_weight_decay": False,
    }

    def __init__(
        self,
        params,
        lr=2e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0,
        momentum_decay=4e-3,
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
        check_nonnegative(momentum_decay, "momentum_decay value")
        defaults = dict(
            lr=lr,
            betas=betas,
            eps=eps,
            weight_decay=weight_decay,
            momentum_decay=momentum_decay,
            decoupled_weight_decay=decoupled_weight_decay,
            maximize=maximize,
            foreach=foreach,
            capturable=capturable,
            differentiable=differentiable,
        )
        super().__init__(params, defaults)

    def state_names(self, group, kind=None):
        return ("mu_product", "exp_avg", "exp_avg_sq")

    def init(self, p, group):
        return {
            "mu_product": torch.ones((), dtype=scalar_dtype(), device=p.device),
            "exp_avg": torch.zeros_like(p),
            "exp_avg_sq": torch.zeros_like(p),
        }

    def flags(self, group):
        return {"decays": group["weight_decay"] != 0, "decoupled": group["decoupled_weight_decay"]}

    def numbers(self, group):
        beta1, beta2 = group["betas"]
        names = ("lr", "eps", "weight_decay", "momentum_decay")
        return {"beta1": beta1, "beta2": beta2} | {k: group[k] for k in names}

    @staticmethod
    def scalars(hp, step):
        return {
            "new1": 1 - hp.beta1,
            "new2": 1 - hp.beta2,
            "correct2": bias_correction(hp.beta2, step),
            "mu": hp.beta1 * (1 - 0.5 * 0.96 ** (step * hp.momentum_decay)),
            "next_mu": hp.beta1 * (1 - 0.5 * 0.96 ** ((step + 1) * hp.momentum_decay)),
            "shrink": 1 - hp.lr * hp.weight_decay,
        }

    def update(self, p, g, s, hp):
        if hp.decays:
            if hp.decoupled:
                p = p * hp.shrink
            else:
                g = g + hp.weight_decay * p
        product = s["mu_product"] * hp.mu
        mean = lerp(s["exp_avg"], g, hp.new1)
        square = hp.beta2 * s["exp_avg_sq"] + hp.new2 * (g * g)
        denominator = sqrt(square / hp.correct2) + hp.eps
        now = hp.lr * (1 - hp.mu) / (1 - product)
        ahead = hp.lr * hp.next_mu / (1 - product * hp.next_mu)
        p = p - now * (g / denominator) - ahead * (mean / denominator)
        return p, {"mu_product": product, "exp_avg": mean, "exp_avg_sq": square}
