"""GradScaler: the same programs in both, their errors among them."""

import pytest

from tests.autograd.programs import run

HEAD = """
import pickle
def told(f):
    try:
        print(f())
    except Exception as error:
        print(type(error).__name__, str(error))
def scaler(**options):
    return torch.amp.GradScaler("cpu", **options)
p = torch.ones(2, requires_grad=True)
sgd = torch.optim.SGD([p], 0.1)
"""

PROGRAMS = {
    "no gradients": """
s = scaler()
s.scale(torch.ones(1))
told(lambda: s.unscale_(sgd))
told(lambda: s.step(sgd))
told(lambda: s.update())
""",
    "half gradients": """
h = torch.ones(2, dtype=torch.float16, requires_grad=True)
sgd = torch.optim.SGD([h], 0.1)
for method in ("unscale_", "step"):
    s, h.grad = scaler(init_scale=2.0), None
    s.scale((h * 2).sum()).backward()
    told(lambda: getattr(s, method)(sgd))
    print(h, h.grad)
""",
    "sparse gradients": """
table = torch.nn.Embedding(4, 2, sparse=True)
torch.nn.init.ones_(table.weight)
sgd = torch.optim.SGD(table.parameters(), 0.1)
s = scaler(init_scale=4.0)
for factor in (1.0, float("inf")):
    sgd.zero_grad()
    s.scale(table(torch.tensor([1, 1, 2])).sum() * factor).backward()
    s.unscale_(sgd)
    s.step(sgd)
    s.update()
    print(table.weight, s.get_scale())
""",
    "growth": """
s = scaler(init_scale=2.0**127, growth_interval=1, growth_factor=4.0)
s.scale((p * 0).sum()).backward()
s.step(sgd)
s.update()
print(s.get_scale())
""",
    "a new scale": """
s = scaler(init_scale=8.0)
s.scale(p.sum()).backward()
told(lambda: s.update())
told(lambda: s.update(16.0))
told(lambda: s.update(torch.tensor(3.0)))
print(s.get_scale())
told(lambda: s.update(torch.tensor([3.0], requires_grad=True)))
told(lambda: s.update(torch.tensor([3.0, 4.0])))
""",
    "two optimizers": """
a, b = (torch.ones(1, requires_grad=True) for _ in range(2))
first, second = torch.optim.SGD([a], 1.0), torch.optim.SGD([b], 1.0)
s = scaler(init_scale=2.0, growth_interval=1)
s.scale(a * 1 + b * float("inf")).backward()
s.step(first), s.step(second), s.update()
print(a, b, s.get_scale())
s.scale(a * 1).backward()
s.step(first)
told(lambda: s.step(first))
told(lambda: s.unscale_(first))
told(lambda: pickle.dumps(s))
s.update()
print(pickle.loads(pickle.dumps(s)).state_dict())
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_grad_scaler(name):
    run(HEAD + PROGRAMS[name])
