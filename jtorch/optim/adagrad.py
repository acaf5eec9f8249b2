"""Adagrad."""

from jtorch import errors_sparse
from jtorch import functions as torch
from jtorch.ops.rows import rows_adagrad
from jtorch.optim.formulas import sqrt
from jtorch.optim.optimizer import Optimizer, check_fused, check_lr, check_nonnegative
from jtorch.optim.steps import scalar_dtype

__all__ = ["Adagrad"]


class Adagrad(Optimizer):
    """Divides the gradient by the root of the sum of all its squares (Duchi et al., 2011).

    Args:
        params: parameters or groups
        lr: learning rate. Default: 1e-2
        lr_decay: the rate is lr / (1 + (step - 1) * lr_decay). Default: 0
        weight_decay: times the parameter is added to its gradient. Default: 0
        initial_accumulator_value: start of the sum. Default: 0
        eps: added to the denominator. Default: 1e-10
        maximize: ascend
        foreach, fused, differentiable: as in PyTorch; every step is fused here
    """

    old_numbers = ("step",)
    added_options = {"foreach": None, "maximize": False, "differentiable": False, "fused": None}

    def __init__(
        self,
        params,
        lr=1e-2,
        lr_decay=0,
        weight_decay=0,
        initial_accumulator_value=0,
        eps=1e-10,
        foreach=None,
        *,
        maximize=False,
        differentiable=False,
        fused=None,
    ):
        check_lr(lr)
        check_nonnegative(lr_decay, "lr_decay value")
        check_nonnegative(weight_decay, "weight_decay value")
        check_nonnegative(initial_accumulator_value, "initial_accumulator_value value")
        check_nonnegative(eps, "epsilon value")
        defaults = dict(
            lr=lr,
            lr_decay=lr_decay,
            eps=eps,
            weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value,
            foreach=foreach,
            maximize=maximize,
            differentiable=differentiable,
            fused=fused,
        )
        super().__init__(params, defaults)
        check_fused(fused, foreach, differentiable)
        for group in self.param_groups:  # unlike the others, the state exists before the first step
            step = {}
            for p in group["params"]:
                if p.device not in step:
                    step[p.device] = torch.zeros((), dtype=scalar_dtype(), device=p.device)
                self.state[p] = {"step": step[p.device], **self.init(p, group)}

    def share_memory(self):
        """Put the state into memory that other processes can share."""
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["sum"].share_memory_()

    def state_names(self, group, kind=None):
        return ("sum",)

    def init(self, p, group):
        start = group["initial_accumulator_value"]
        return {"sum": torch.full_like(p, complex(start, start) if p.is_complex() else start)}

    def update_sparse(self, p, g, group):
        if group["weight_decay"] != 0:
            raise errors_sparse.decay_of_sparse()
        state = self.state[p]
        step = state["step"] = state["step"] + 1  # of its own: the others share theirs
        numbers = float(group["lr"]), group["lr_decay"], group["eps"]
        new, total = rows_adagrad(p, state["sum"], step, *g._rows(), *numbers)
        p.copy_(new)
        state["sum"].copy_(total)

    def flags(self, group):
        return {"decays": group["weight_decay"] != 0}

    def numbers(self, group):
        return {k: group[k] for k in ("lr", "lr_decay", "eps", "weight_decay")}

    @staticmethod
    def scalars(hp, step):
        return {"rate": hp.lr / (1 + (step - 1) * hp.lr_decay)}

    def update(self, p, g, s, hp):
        if hp.decays:
            g = g + hp.weight_decay * p
        total = s["sum"] + g * g
        return p - hp.rate * (g / (sqrt(total) + hp.eps)), {"sum": total}
