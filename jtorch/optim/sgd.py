"""Stochastic gradient descent, with momentum."""

from jtorch.autograd.mode import enable_grad, no_grad
from jtorch.core.record import at_once
from jtorch.optim.optimizer import Optimizer, check_fused, check_lr, check_nonnegative

__all__ = ["SGD"]


class SGD(Optimizer):
    """Stochastic gradient descent.

    Args:
        params: parameters or groups
        lr: learning rate. Default: 1e-3
        momentum: share of the last direction that is kept. Default: 0
        dampening: share of the gradient that is not added to it. Default: 0
        weight_decay: times the parameter is added to its gradient. Default: 0
        nesterov: look ahead along the momentum
        maximize: ascend
        foreach, fused, differentiable: as in PyTorch; every step is fused here
    """

    counts_steps = False
    added_options = {"nesterov": False, "maximize": False, "foreach": None, "differentiable": False, "fused": False}

    def __init__(
        self,
        params,
        lr=1e-3,
        momentum=0,
        dampening=0,
        weight_decay=0,
        nesterov=False,
        *,
        maximize=False,
        foreach=None,
        differentiable=False,
        fused=None,
    ):
        check_lr(lr)
        check_nonnegative(momentum, "momentum value")
        check_nonnegative(weight_decay, "weight_decay value")
        defaults = dict(
            lr=lr,
            momentum=momentum,
            dampening=dampening,
            weight_decay=weight_decay,
            nesterov=nesterov,
            maximize=maximize,
            foreach=foreach,
            differentiable=differentiable,
            fused=fused,
        )
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(params, defaults)
        check_fused(fused, foreach, differentiable)

    def state_names(self, group, kind=None):
        return ("momentum_buffer",) if group["momentum"] != 0 else ()

    def _init_state(self, params, group):
        if group["momentum"] == 0:
            return
        for p in params:
            state = self.state[p]
            if state.get("momentum_buffer") is None:
                if group["differentiable"]:
                    # PyTorch's first direction has no history: start where momentum * buffer + (1 - dampening) * g is g detached.
                    with enable_grad():
                        g = -p.grad if group["maximize"] else p.grad
                        g = g + p.clone() * group["weight_decay"]
                        state["momentum_buffer"] = (g.detach() - g * (1 - group["dampening"])) / group["momentum"]
                elif group["dampening"] == 0:
                    with no_grad(), at_once():
                        state.update(self.init(p, group))
                else:
                    # The first direction is the whole gradient, not the dampened one: start where
                    # momentum * buffer + (1 - dampening) * g gives it.
                    with no_grad():
                        g = -p.grad if group["maximize"] else p.grad
                        g = g + p * group["weight_decay"]
                        state["momentum_buffer"] = g * (group["dampening"] / group["momentum"])

    def update_sparse(self, p, g, group):
        if _nonzero(group["weight_decay"]):
            g = g + group["weight_decay"] * p
        if group["momentum"] != 0:
            state = self.state[p]
            before = state.get("momentum_buffer")
            if before is None:
                state["momentum_buffer"] = buffer = g.clone().detach()
            else:
                buffer = state["momentum_buffer"] = before * group["momentum"] + g * (1 - group["dampening"])
            g = g + group["momentum"] * buffer if group["nesterov"] else buffer
        p.add_(g, alpha=-float(group["lr"]))

    def flags(self, group):
        return {
            "nesterov": group["nesterov"],
            "has_momentum": group["momentum"] != 0,
            "decays": _nonzero(group["weight_decay"]),
        }

    def numbers(self, group):
        return {k: group[k] for k in ("lr", "momentum", "dampening", "weight_decay")}

    @staticmethod
    def scalars(hp, step):
        return {"take": 1 - hp.dampening}

    def update(self, p, g, s, hp):
        if hp.decays:
            g = g + hp.weight_decay * p
        if not hp.has_momentum:
            return p - hp.lr * g, {}
        buffer = hp.momentum * s["momentum_buffer"] + hp.take * g
        direction = g + hp.momentum * buffer if hp.nesterov else buffer
        return p - hp.lr * direction, {"momentum_buffer": buffer}


def _nonzero(value) -> bool:
    return not isinstance(value, (int, float)) or value != 0
