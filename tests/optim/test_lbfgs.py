"""L-BFGS beside its rows in test_optimizers, against torch."""

import contextlib

from tests.oracle import both


def test_lbfgs_goes_on_after_a_closure_that_raised():
    def program(t):
        w = t.tensor([1.5, -1.0], dtype=t.float64, requires_grad=True)
        optimizer, calls, losses = t.optim.LBFGS([w], lr=0.3, max_iter=4), [], []

        def closure():
            calls.append(1)
            if len(calls) == 6:
                raise ValueError
            optimizer.zero_grad()
            loss = (1 - w[0]) ** 2 + 10 * (w[1] - w[0] ** 2) ** 2
            loss.backward()
            return loss

        for _ in range(4):
            with contextlib.suppress(ValueError):
                losses.append(optimizer.step(closure).detach())
        return losses, w.detach(), optimizer.state_dict()["state"][0]["prev_flat_grad"]

    both(program)
