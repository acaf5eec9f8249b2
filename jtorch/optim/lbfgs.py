"""L-BFGS: a quasi-Newton method with a short memory, and a line search for it."""

from jtorch import functions as torch
from jtorch.autograd.mode import enable_grad, no_grad
from jtorch.optim.optimizer import Optimizer, check_lr
from jtorch.tensor import Tensor

__all__ = ["LBFGS"]


def _cubic_minimum(x1, f1, g1, x2, f2, g2, bounds=None):
    """The minimum of the cubic through two points with two slopes, inside the bounds."""
    low, high = bounds if bounds is not None else (min(x1, x2), max(x1, x2))
    d1 = g1 + g2 - 3 * (f1 - f2) / (x1 - x2)
    square = d1**2 - g1 * g2
    if not square >= 0:  # nan, where a value is infinite, too
        return (low + high) / 2.0
    d2 = square**0.5
    if x1 <= x2:
        best = x2 - (x2 - x1) * ((g2 + d2 - d1) / (g2 - g1 + 2 * d2))
    else:
        best = x1 - (x1 - x2) * ((g1 + d2 - d1) / (g1 - g2 + 2 * d2))
    return min(max(best, low), high)


def _off_the_ends(t, left, right, stuck):
    """(t, whether it is too close to an end): the second time in a row it is moved off by a tenth of the bracket."""
    margin = 0.1 * (right - left)
    if min(right - t, t - left) >= margin:
        return t, False
    if not (stuck or t >= right or t <= left):
        return t, True
    return (right - margin if abs(t - right) < abs(t - left) else left + margin), False


def strong_wolfe(evaluate, x, t, d, f, g, gtd, c1=1e-4, c2=0.9, tolerance_change=1e-9, max_ls=25):
    """A step along `d` that satisfies the strong Wolfe conditions (Nocedal and Wright, algorithms 3.5 and 3.6).

    Returns loss and gradient there, the step, and the number of evaluations.
    """
    largest = d.abs().max()
    g = g.clone()
    f_new, g_new = evaluate(x, t, d)
    evaluations = 1
    slope_new = g_new.dot(d)

    # find a bracket that holds a minimum
    t_prev, f_prev, g_prev, slope_prev = 0, f, g, gtd
    done = False
    iterations = 0
    while iterations < max_ls:
        if f_new > (f + c1 * t * gtd) or (iterations > 1 and f_new >= f_prev):
            bracket = [(t_prev, f_prev, g_prev, slope_prev), (t, f_new, g_new.clone(), slope_new)]
            break
        if abs(slope_new) <= -c2 * gtd:
            bracket = [(t, f_new, g_new, slope_new)]
            done = True
            break
        if slope_new >= 0:
            bracket = [(t_prev, f_prev, g_prev, slope_prev), (t, f_new, g_new.clone(), slope_new)]
            break
        low, high = t + 0.01 * (t - t_prev), t * 10
        before = t
        t = _cubic_minimum(t_prev, f_prev, slope_prev, t, f_new, slope_new, bounds=(low, high))
        t_prev, f_prev, g_prev, slope_prev = before, f_new, g_new.clone(), slope_new
        f_new, g_new = evaluate(x, t, d)
        evaluations += 1
        slope_new = g_new.dot(d)
        iterations += 1
    else:
        bracket = [(0, f, g, gtd), (t, f_new, g_new, slope_new)]

    # shrink the bracket
    stuck = False
    low, high = (0, 1) if bracket[0][1] <= bracket[-1][1] else (1, 0)
    while not done and iterations < max_ls:
        (t0, f0, _, s0), (t1, f1, _, s1) = bracket
        if abs(t1 - t0) * largest < tolerance_change:
            break
        t = _cubic_minimum(t0, f0, s0, t1, f1, s1)
        t, stuck = _off_the_ends(t, min(t0, t1), max(t0, t1), stuck)
        f_new, g_new = evaluate(x, t, d)
        evaluations += 1
        slope_new = g_new.dot(d)
        iterations += 1
        point = (t, f_new, g_new.clone(), slope_new)
        if f_new > (f + c1 * t * gtd) or f_new >= bracket[low][1]:
            bracket[high] = point
            low, high = (0, 1) if bracket[0][1] <= bracket[1][1] else (1, 0)
        else:
            if abs(slope_new) <= -c2 * gtd:
                done = True
            elif slope_new * (bracket[high][0] - bracket[low][0]) >= 0:
                bracket[high] = bracket[low]
            bracket[low] = point
    t, f_new, g_new, _ = bracket[low] if len(bracket) > 1 else bracket[0]
    return f_new, g_new, t, evaluations


class _Memory:
    """The remembered directions and steps, 1 / (their products), and the scale of the first guess."""

    names = ("old_dirs", "old_stps", "ro", "H_diag")  # in the state dict

    def __init__(self, dirs, steps, ro, scale):
        self.dirs, self.steps, self.ro, self.scale = dirs, steps, ro, scale


class LBFGS(Optimizer):
    """L-BFGS; `step` needs a closure that evaluates the loss again.

    Args:
        params: parameters, one group
        lr: length of the first trial step. Default: 1
        max_iter, max_eval: bounds on iterations (20) and evaluations (max_iter * 1.25) in a step
        tolerance_grad, tolerance_change: when to stop. Default: 1e-7, 1e-9
        history_size: number of remembered directions. Default: 100
        line_search_fn: None or "strong_wolfe"
    """

    def __init__(
        self,
        params,
        lr=1,
        max_iter=20,
        max_eval=None,
        tolerance_grad=1e-7,
        tolerance_change=1e-9,
        history_size=100,
        line_search_fn=None,
    ):
        check_lr(lr)
        defaults = dict(
            lr=lr,
            max_iter=max_iter,
            max_eval=max_iter * 5 // 4 if max_eval is None else max_eval,
            tolerance_grad=tolerance_grad,
            tolerance_change=tolerance_change,
            history_size=history_size,
            line_search_fn=line_search_fn,
        )
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")

    @property
    def _all(self):
        return self.param_groups[0]["params"]

    def _gather_flat_grad(self):
        parts = []
        for p in self._all:
            g = torch.zeros(p.numel(), dtype=p.dtype, device=p.device) if p.grad is None else p.grad
            g = (g.to_dense() if g.is_sparse else g).reshape(-1)
            parts.append(torch.view_as_real(g).reshape(-1) if p.is_complex() else g)
        return torch.cat(parts, 0)

    def _move(self, t, direction):
        at = 0
        for p in self._all:
            view = torch.view_as_real(p) if p.is_complex() else p
            n = view.numel()
            view.add_(direction[at : at + n].reshape(view.shape), alpha=float(t))
            at += n

    def _evaluate(self, closure, x, t, d):
        self._move(t, d)
        loss = float(closure())
        grad = self._gather_flat_grad()
        for p, old in zip(self._all, x):
            p.copy_(old)
        return loss, grad

    def step(self, closure):
        """Iterate until a tolerance or a bound is reached; returns the first loss."""
        with no_grad():
            return self._run(closure)

    def _run(self, closure):
        def evaluate():
            with enable_grad():
                return closure()

        group = self.param_groups[0]
        lr = group["lr"].reshape(()) if isinstance(group["lr"], Tensor) else group["lr"]
        max_iter, max_eval = group["max_iter"], group["max_eval"]
        line_search = group["line_search_fn"]
        state = self.state[self._all[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)

        first_loss = evaluate()
        loss = float(first_loss)
        evaluations = 1
        state["func_evals"] += 1
        flat_grad = self._gather_flat_grad()
        if flat_grad.abs().max() <= group["tolerance_grad"]:
            return first_loss
        d, t = state.get("d"), state.get("t")
        memory = _Memory(*(state.get(name) for name in _Memory.names))
        previous_grad, previous_loss = state.get("prev_flat_grad"), state.get("prev_loss")
        converged = False
        n_iter = 0
        while n_iter < max_iter:
            n_iter += 1
            state["n_iter"] += 1
            if state["n_iter"] == 1:
                d = flat_grad.neg()
                memory = _Memory([], [], [], 1)
            else:
                d = self._direction(state, memory, flat_grad, previous_grad, d, t, group["history_size"])
            if previous_grad is None:
                previous_grad = flat_grad.clone()
            else:
                previous_grad.copy_(flat_grad)  # the state's: what a closure that raises leaves behind
            previous_loss = loss
            t = min(1.0, 1.0 / flat_grad.abs().sum()) * lr if state["n_iter"] == 1 else lr
            slope = flat_grad.dot(d)
            if slope > -group["tolerance_change"]:
                break
            now = 0
            if line_search is not None:
                tries = max_eval - evaluations
                loss, flat_grad, t, now = self._search(evaluate, line_search, t, d, loss, flat_grad, slope, tries)
                converged = flat_grad.abs().max() <= group["tolerance_grad"]
            else:
                self._move(t, d)
                if n_iter != max_iter:
                    loss = float(evaluate())
                    flat_grad = self._gather_flat_grad()
                    converged = flat_grad.abs().max() <= group["tolerance_grad"]
                    now = 1
            evaluations += now
            state["func_evals"] += now
            if n_iter == max_iter or evaluations >= max_eval or converged:
                break
            if d.mul(t).abs().max() <= group["tolerance_change"]:
                break
            if abs(loss - previous_loss) < group["tolerance_change"]:
                break
        state.update(d=d, t=t)
        state.update(zip(_Memory.names, (memory.dirs, memory.steps, memory.ro, memory.scale)))
        state.update(prev_flat_grad=previous_grad, prev_loss=previous_loss)
        return first_loss

    def _search(self, evaluate, kind, t, d, loss, grad, slope, tries):
        """Move along `d` by a step that a line search finds: (loss, gradient, step, evaluations)."""
        if kind != "strong_wolfe":
            raise RuntimeError("only 'strong_wolfe' is supported")
        start = [p.clone() for p in self._all]
        found = strong_wolfe(
            lambda x, t, d: self._evaluate(evaluate, x, t, d), start, t, d, loss, grad, slope, max_ls=tries
        )
        self._move(found[2], d)
        return found

    @staticmethod
    def _direction(state, memory, grad, previous_grad, d, t, history):
        """The two-loop recursion over the remembered directions."""
        y = grad.sub(previous_grad)
        s = d.mul(t)
        ys = y.dot(s)
        dirs, steps, ro = memory.dirs, memory.steps, memory.ro
        if ys > 1e-10:
            if len(dirs) == history:
                dirs.pop(0)
                steps.pop(0)
                ro.pop(0)
            dirs.append(y)
            steps.append(s)
            ro.append(1.0 / ys)
            memory.scale = ys / y.dot(y)
        al = state.setdefault("al", [None] * history)
        q = grad.neg()
        for i in range(len(dirs) - 1, -1, -1):
            al[i] = steps[i].dot(q) * ro[i]
            q = q - dirs[i] * al[i]
        r = q * memory.scale
        for i in range(len(dirs)):
            beta = dirs[i].dot(r) * ro[i]
            r = r + steps[i] * (al[i] - beta)
        return r
