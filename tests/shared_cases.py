"""What the processes of test_sharing.py run; imports nothing else, since each process imports it anew."""

import jtorch


def train(model, optimizer, x, asked, told):
    """One step of the shared model, then what it sees after the parent has written."""
    model(x).sum().backward()
    optimizer.step()
    told.put(("trained", model.weight))
    asked.get(timeout=120)
    told.put(("seen", model.weight.tolist(), model.weight.is_shared(), jtorch.ones(1).is_shared()))
    model.weight.data[0, 0] = 7
    asked.get(timeout=120)


def fill(tensor, model):
    """Write to both."""
    tensor.fill_(3)
    model.weight.data.fill_(5)
