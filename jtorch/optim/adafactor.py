"""Adafactor."""

from jtorch import functions as torch
from jtorch.optim.formulas import lerp, maximum, minimum, norm, sqrt
from jtorch.optim.optimizer import Optimizer
from jtorch.tensor import Tensor

__all__ = ["Adafactor"]


class Adafactor(Optimizer):
    """Adam without momentum, whose mean squares of a matrix are kept as a row and a column (Shazeer and Stern, 2018).

    Args:
        params: parameters or groups
        lr: upper bound of the relative step. Default: 1e-2
        beta2_decay: the new square has the weight step ** beta2_decay. Default: -0.8
        eps: smallest mean square (None: the dtype's epsilon), smallest parameter scale. Default: (None, 1e-3)
        d: updates with a larger root mean square are scaled down to it. Default: 1
        weight_decay: how much parameters shrink. Default: 0
        maximize: ascend
        foreach: as in PyTorch; every step is fused here
    """

    old_numbers = ("step",)
    added_options = {"foreach": None}

    def __init__(
        self,
        params,
        lr=1e-2,
        beta2_decay=-0.8,
        eps=(None, 1e-3),
        d=1.0,
        weight_decay=0.0,
        *,
        foreach=None,
        maximize=False,
    ):
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not lr >= 0.0:
            raise ValueError(f"Learning rate should be >= 0 but is: {lr}")
        if not beta2_decay <= 0.0:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if eps[0] is not None and not eps[0] >= 0.0:
            raise ValueError(f"epsilon1 should be >= 0 but is: {eps[0]}")
        if not eps[1] >= 0.0:
            raise ValueError(f"epsilon2 should be >= 0 but is: {eps[1]}")
        if not d >= 1.0:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        if not weight_decay >= 0.0:
            raise ValueError(f"weight_decay should be >= 0 but is: {weight_decay}")
        defaults = dict(
            lr=lr,
            beta2_decay=beta2_decay,
            eps=eps,
            d=d,
            weight_decay=weight_decay,
            foreach=foreach,
            maximize=maximize,
        )
        super().__init__(params, defaults)

    def _init_state(self, params, group):
        if any(p.is_complex() for p in params):
            raise RuntimeError("Adafactor does not support complex parameters")
        super()._init_state(params, group)

    def kind(self, p):
        return p.dim() > 1

    def state_names(self, group, kind=None):
        return ("row_var", "col_var") if kind else ("variance",)

    def init(self, p, group):
        if p.dim() < 2:
            return {"variance": torch.zeros_like(p)}
        *batch, rows, cols = p.shape
        options = {"dtype": p.dtype, "device": p.device}
        return {
            "row_var": torch.zeros((*batch, rows, 1), **options),
            "col_var": torch.zeros((*batch, 1, cols), **options),
        }

    def flags(self, group):
        return {"eps1": group["eps"][0], "decays": group["weight_decay"] != 0}

    def numbers(self, group):
        names = ("lr", "beta2_decay", "d", "weight_decay")
        return {"eps2": group["eps"][1]} | {k: group[k] for k in names}

    @staticmethod
    def scalars(hp, step):
        return {
            "new": step**hp.beta2_decay,
            "relative": minimum(1 / sqrt(step), hp.lr),
            "shrink": 1 - hp.lr * hp.weight_decay,
        }

    def update(self, p, g, s, hp):
        eps1 = _EPSILON[str(p.dtype).removeprefix("torch.")] if hp.eps1 is None else hp.eps1
        size = max(int(_count(p)), 1)
        scale = maximum(norm(p) / size**0.5, hp.eps2) * hp.relative
        if hp.decays:
            p = p * hp.shrink
        if p.ndim > 1:
            row = lerp(s["row_var"], (g * g).mean(-1, keepdims=True), hp.new)
            col = lerp(s["col_var"], (g * g).mean(-2, keepdims=True), hp.new)
            square = row * col / maximum(row.mean(-2, keepdims=True), eps1)
            state = {"row_var": row, "col_var": col}
        else:
            square = lerp(s["variance"], g * g, hp.new)
            state = {"variance": square}
        step = g / sqrt(maximum(square, eps1 * eps1))
        too_large = maximum(norm(step) / (size**0.5 * hp.d), 1.0)
        return p - scale / too_large * step, state


def _count(p):
    n = 1
    for size in p.shape:
        n *= size
    return n


_EPSILON = {"float32": 2.0**-23, "float64": 2.0**-52}
