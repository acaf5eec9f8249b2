"""Adam."""

from jtorch.optim.formulas import bias_correction, lerp, maximum, sqrt
from jtorch.optim.optimizer import Optimizer, check_betas, check_fused, check_lr, check_nonnegative
from jtorch.tensor import Tensor

__all__ = ["Adam"]


class Adam(Optimizer):
    """Adam (Kingma and Ba, 2014).

    Args:
        params: parameters or groups
        lr: learning rate. Default: 1e-3
        betas: decay of the running means of the gradient and of its square. Default: (0.9, 0.999)
        eps: added to the denominator. Default: 1e-8
        weight_decay: times the parameter is added to its gradient. Default: 0
        amsgrad: divide by the largest mean square so far
        maximize: ascend
        decoupled_weight_decay: shrink the parameter instead of changing the gradient (AdamW)
        foreach, fused, capturable, differentiable: as in PyTorch; every step is fused here
    """

    old_numbers = ("step",)
    added_options = {
        "amsgrad": False,
        "maximize": False,
        "foreach": None,
        "capturable": False,
        "differentiable": False,
        "decoupled_weight_decay": False,
        "fused": None,
    }

    def __init__(
        self,
        params,
        lr=1e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0,
        amsgrad=False,
        *,
        foreach=None,
        maximize=False,
        capturable=False,
        differentiable=False,
        fused=None,
        decoupled_weight_decay=False,
    ):
        check_lr(lr, foreach, capturable)
        check_nonnegative(eps, "epsilon value")
        check_betas(betas)
        check_nonnegative(weight_decay, "weight_decay value")
        if not any(all(isinstance(b, kind) for b in betas[:2]) for kind in (float, Tensor)):
            raise ValueError("betas must be either both floats or both Tensors")
        for i, beta in enumerate(betas):
            if isinstance(beta, Tensor):
                if not capturable and foreach:
                    raise ValueError(f"betas[{i}] as a Tensor is not supported for capturable=False and foreach=True")
                if beta.numel() != 1:
                    raise ValueError(f"Tensor betas[{i}] must be 1-element")
        defaults = dict(
            lr=lr,
            betas=betas,
            eps=eps,
            weight_decay=weight_decay,
            amsgrad=amsgrad,
            maximize=maximize,
            foreach=foreach,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=decoupled_weight_decay,
        )
        super().__init__(params, defaults)
        check_fused(fused, foreach, differentiable)

    def state_names(self, group, kind=None):
        names = ("exp_avg", "exp_avg_sq")
        return (*names, "max_exp_avg_sq") if group["amsgrad"] else names

    def flags(self, group):
        return {
            "amsgrad": group["amsgrad"],
            "decays": group["weight_decay"] != 0,
            "decoupled": group["decoupled_weight_decay"],
        }

    def numbers(self, group):
        beta1, beta2 = group["betas"]
        return {
            "lr": group["lr"],
            "beta1": beta1,
            "beta2": beta2,
            "eps": group["eps"],
            "weight_decay": group["weight_decay"],
        }

    @staticmethod
    def scalars(hp, step):
        return {
            "new1": 1 - hp.beta1,
            "new2": 1 - hp.beta2,
            "step_size": hp.lr / bias_correction(hp.beta1, step),
            "root2": sqrt(bias_correction(hp.beta2, step)),
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
        state = {"exp_avg": mean, "exp_avg_sq": square}
        if hp.amsgrad:
            square = state["max_exp_avg_sq"] = maximum(s["max_exp_avg_sq"], square)
        return p - hp.step_size * (mean / (sqrt(square) / hp.root2 + hp.eps)), state
