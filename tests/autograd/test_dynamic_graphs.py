"""Graphs that depend on values: networks of dynamic depth, adaptive computation time, checkpointed models, hooks on layers."""

import pytest

from .programs import run

PROGRAMS = {
    "dynamic_depth": """
torch.manual_seed(0)
class DynamicNet(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inp, self.mid, self.out = torch.nn.Linear(3, 4), torch.nn.Linear(4, 4), torch.nn.Linear(4, 1)
    def forward(self, x, activation="relu"):
        h = self.inp(x).clamp(min=0)
        depth = int(x.abs().sum().item()) % 4
        for _ in range(depth):
            h = self.mid(h).tanh() if activation == "tanh" else self.mid(h).clamp(min=0)
        return self.out(h), depth
net = DynamicNet()
grads, depths = [], []
for scale in (0.5, 1., 2., 3.):
    net.zero_grad()
    y, d = net(torch.ones(2, 3) * scale, "tanh" if scale > 1 else "relu")
    depths.append(d)
    y.sum().backward()
    grads.append([None if p.grad is None else p.grad.clone() for p in net.parameters()])
del net
""",
    "adaptive_computation_time": """
torch.manual_seed(0)
cell, halt = torch.nn.GRUCell(3, 4), torch.nn.Linear(4, 1)
def act(x, limit=5, eps=0.01):
    n = x.shape[0]
    h, total, out = x.new_zeros(n, 4), x.new_zeros(n, 1), x.new_zeros(n, 4)
    steps, remainder = x.new_zeros(n, 1), x.new_zeros(n, 1)
    running = torch.ones(n, 1, dtype=torch.bool)
    for t in range(limit):
        h = cell(x, h)
        p = torch.sigmoid(halt(h) + 1)
        ends = running & ((total + p > 1 - eps) | (t == limit - 1))
        p = torch.where(ends, 1 - total, p) * running
        remainder = remainder + torch.where(ends, p, torch.zeros_like(p))
        out = out + p * h
        total = total + p
        steps = steps + running.float()
        running = running & ~ends
        if not running.any():
            break
    return out, steps + remainder, t
x = torch.linspace(-2, 2, 12).reshape(4, 3)
out, ponder, t = act(x)
(out.pow(2).sum() + 0.01 * ponder.sum()).backward()
grads = [p.grad for p in (*cell.parameters(), *halt.parameters())]
del cell, halt
""",
    "layer_hooks": """
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
log = []
net[0].register_forward_hook(lambda m, i, o: log.append(("fwd", tuple(o.shape))))
net[2].register_full_backward_hook(lambda m, gi, go: log.append(("bwd", tuple(gi[0].shape), tuple(go[0].shape))))
net[1].register_full_backward_pre_hook(lambda m, go: log.append(("pre", tuple(go[0].shape))))
h = net[0].weight.register_hook(lambda g: g.clamp(-0.1, 0.1))
x = torch.ones(2, 3, requires_grad=True)
net(x).sum().backward()
g = [p.grad for p in net.parameters()]
h.remove()
del net
""",
    "cut_and_frozen": """
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))
for p in net[0].parameters():
    p.requires_grad_(False)
x = torch.ones(2, 3)
y = net(x)
y.sum().backward()
r = [(p.requires_grad, p.grad is None) for p in net.parameters()]
t = net(x).detach()
r2 = (t.requires_grad, net[0](x).requires_grad)
del net
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_dynamic(name):
    run(PROGRAMS[name])
