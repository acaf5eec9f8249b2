"""Under torch.use_deterministic_algorithms(True) two trainings from one seed agree in every bit, also the first of a process."""

import pytest

import jtorch
from tests.memory import start_anew


@pytest.fixture
def deterministic():
    start_anew()
    jtorch.use_deterministic_algorithms(True)
    yield
    jtorch.use_deterministic_algorithms(False)


def train(wrap):
    jtorch.manual_seed(0)
    nn = jtorch.nn
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.GELU(), nn.Conv2d(8, 8, 3), nn.Tanh(),
        nn.Flatten(), nn.Linear(128, 32), nn.LayerNorm(32), nn.SiLU(), nn.Linear(32, 5),
    )  # fmt: skip
    optimizer = jtorch.optim.Adam(model.parameters(), 0.01)
    scheduler = jtorch.optim.lr_scheduler.StepLR(optimizer, 7, 0.7)
    total = jtorch.zeros(())

    @wrap
    def step(inputs, targets):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
        return loss

    losses = []
    for k in range(40):
        loss = step(jtorch.randn(8, 3, 8, 8), jtorch.randint(0, 5, (8,)))
        total += loss.detach()
        if k % 6 == 5:
            losses.append(loss.item())
        scheduler.step()
    return [losses, total.item(), *(p.tolist() for p in model.parameters())]


@pytest.mark.parametrize("wrap", [lambda step: step, jtorch.compile], ids=["loop", "compiled"])
def test_trainings_of_one_seed(deterministic, wrap):
    assert train(wrap) == train(wrap)
