"""What does an agent's step cost, whose results are read at once? Time in us, the median of the later half, jtorch's and PyTorch's.

Each library runs in a process of its own. Run: python benchmarks/agent_steps.py [torch|jtorch]
"""

import importlib
import statistics
import subprocess
import sys
import time

import numpy as np

STEPS, BATCH = 2000, 64


def timed(step):
    took = []
    for k in range(STEPS):
        start = time.perf_counter()
        step(k)
        took.append(time.perf_counter() - start)
    return statistics.median(took[STEPS // 2 :]) * 1e6


def main(name):
    torch = importlib.import_module(name)
    nn, functional = torch.nn, torch.nn.functional
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    seen = rng.standard_normal((5000, 4)).astype(np.float32)
    actions, rewards = rng.integers(0, 2, 5000), rng.standard_normal(5000).astype(np.float32)

    def deep():
        return nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))

    def policy():
        return nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 2))

    q, target, pi, mean = deep(), deep(), policy(), policy()
    optimizers = [torch.optim.Adam(net.parameters(), 1e-3) for net in (q, pi)]
    kept = []

    def ask(k):
        with torch.no_grad():
            return q(torch.as_tensor(seen[k]).unsqueeze(0)).argmax(1).item()

    def update(optimizer, loss):
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    def dqn(k):
        ask(k)
        at = rng.integers(0, 4999, BATCH)
        now, done, reward, then = (torch.as_tensor(x) for x in (seen[at], actions[at], rewards[at], seen[at + 1]))
        with torch.no_grad():
            aim = reward + 0.99 * target(then).max(1)[0]
        update(optimizers[0], functional.smooth_l1_loss(q(now).gather(1, done.unsqueeze(1)).squeeze(1), aim))

    def rollout(k):
        chances = torch.distributions.Categorical(logits=pi(torch.as_tensor(seen[k])))
        action = chances.sample()
        kept.append(chances.log_prob(action))
        action.item()
        if len(kept) == 50:
            update(optimizers[1], -torch.stack(kept).sum())
            kept.clear()

    def continuous(k):
        with torch.no_grad():
            chances = torch.distributions.Normal(mean(torch.as_tensor(seen[k])), torch.ones(2))
            action = chances.sample()
            return action.numpy(), chances.log_prob(action).sum().item()

    steps = {"asked": ask, "dqn": dqn, "categorical": rollout, "normal": continuous}
    print(name, *(f"{what} {timed(step):.0f}" for what, step in steps.items()))


if __name__ == "__main__":
    if sys.argv[1:]:
        main(sys.argv[1])
    else:
        for library in ("torch", "jtorch"):
            subprocess.run([sys.executable, __file__, library], check=True)
