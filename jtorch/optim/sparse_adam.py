"""Adam for sparse gradients: only the rows that have a gradient are touched."""

from jtorch import functions as torch
from jtorch.autograd.mode import enable_grad, no_grad
from jtorch.ops.rows import rows_adam
from jtorch.optim.optimizer import Optimizer, check_betas
from jtorch.tensor import Tensor

__all__ = ["SparseAdam"]


class SparseAdam(Optimizer):
    """Adam whose running means decay only where the (sparse) gradient has a value.

    Args:
        params: parameters or groups, all dense
        lr: learning rate. Default: 1e-3
        betas: decay of the running means of the gradient and of its square. Default: (0.9, 0.999)
        eps: added to the denominator. Default: 1e-8
        maximize: ascend
    """

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, maximize=False):
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not lr > 0.0:
            raise ValueError(f"Invalid learning rate: {lr}")
        if not eps > 0.0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        check_betas(betas)
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, maximize=maximize))
        complex_ = [
            [i, j] for i, g in enumerate(self.param_groups) for j, p in enumerate(g["params"]) if p.is_complex()
        ]
        if complex_:
            raise ValueError(f"Complex params at indices {complex_}: SparseAdam does not support complex parameters")
        sparse = [[i, j] for i, g in enumerate(self.param_groups) for j, p in enumerate(g["params"]) if p.is_sparse]
        if sparse:
            raise ValueError(f"Sparse params at indices {sparse}: SparseAdam requires dense parameter tensors")

    def step(self, closure=None):
        """Update all parameters that have a gradient."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        with no_grad():
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is None:
                        continue
                    if not p.grad.is_sparse:
                        raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")
                    self._update_rows(p, p.grad, group)
        return loss

    def _update_rows(self, p, grad, group):
        state = self.state[p]
        if not state:
            state["step"] = 0
            state["exp_avg"] = torch.zeros_like(p)
            state["exp_avg_sq"] = torch.zeros_like(p)
        state["step"] += 1
        step, (beta1, beta2) = state["step"], group["betas"]
        size = float(group["lr"]) * (1 - beta2**step) ** 0.5 / (1 - beta1**step)
        indices, values = grad._rows()
        if not values.numel():
            return
        values = -values if group["maximize"] else values
        kept = state["exp_avg"], state["exp_avg_sq"]
        found = rows_adam(p, *kept, indices, values, size, beta1, beta2, group["eps"])
        for t, new in zip((p, *kept), found):
            t.copy_(new)
