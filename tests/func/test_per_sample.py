"""Gradients of each sample, and what is refused, as PyTorch has them."""

from tests.oracle import both

PER_SAMPLE = """
import torch
from torch import nn
try:
    from torch.func.per_sample import call_for_per_sample_grads as samples  # its home; under PyTorch's name it is there by the import hook
except ImportError:
    from torch.nn.utils._per_sample_grad import call_for_per_sample_grads as samples
def attempt(f, *a, **k):
    try:
        return f(*a, **k)
    except Exception as e:
        print(type(e).__name__, str(e).split(chr(10))[0])
def grads(m, x, **k):
    out = samples(m, **k)(x)
    (out.mean() if k.get("loss_reduction") == "mean" else out.sin().sum()).backward()
    return out, [(p.grad, p.grad_sample) for p in m.parameters() if p.requires_grad]
torch.manual_seed(0)
fixed = nn.Linear(3, 2)
fixed.bias.requires_grad_(False)
image = nn.Sequential(nn.Conv2d(1, 2, 2), nn.GroupNorm(1, 2), nn.ReLU(), nn.Flatten(), nn.Linear(8, 2))
words = nn.Sequential(nn.Embedding(5, 4, padding_idx=0), nn.LayerNorm(4))
x = torch.arange(18.).view(2, 1, 3, 3).sin()
got = [grads(fixed, x[:, 0]), grads(image, x, loss_reduction="mean"), grads(words, torch.tensor([[0, 1, 2], [1, 3, 4]]))]
attempt(samples, image)
p = nn.Linear(3, 2)
y = x[:, 0].clone().requires_grad_()
samples(p)(y).sum().backward()
got += [y.grad, p.weight.grad_sample]
plain = nn.Linear(3, 2)
attempt(samples, 3)
attempt(samples, plain, loss_reduction="x")
attempt(samples, plain, batch_size=1.5)
attempt(samples, plain, batch_size=0)
attempt(samples(plain), 3)
attempt(samples(plain, batch_size=3), x[:, 0])
attempt(samples(nn.Bilinear(3, 3, 2)), x[:, 0], x[0, 0])
attempt(samples(nn.BatchNorm1d(3)), x[:, 0])
del fixed, image, words, p, plain
"""


def test_per_sample_grads():
    both(PER_SAMPLE, layout=False)
