"""The five benchmark models as plain PyTorch text, for whichever `torch` module is given."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

DEPTH = 41  # deep-mlp
SEQUENCE, FEATURES, HIDDEN = 64, 64, 256  # lstm
VOCABULARY, CONTEXT, WIDTH, HEADS, LAYERS = 65, 128, 128, 4, 4  # gpt
CLASSES = 10


def mlp(torch):
    """784-256-10, ReLU."""
    nn = torch.nn

    class MLP(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1 = nn.Linear(784, 256)
            self.fc2 = nn.Linear(256, CLASSES)

        def forward(self, x):
            return self.fc2(torch.relu(self.fc1(x)))

    return MLP()


def deep_mlp(torch):
    """41 linear layers of width 64: so little arithmetic that the host decides."""
    nn = torch.nn

    class DeepMLP(nn.Module):
        def __init__(self):
            super().__init__()
            self.hidden = nn.ModuleList([nn.Linear(64, 64) for _ in range(DEPTH - 1)])
            self.head = nn.Linear(64, CLASSES)
            for layer in self.hidden:
                nn.init.kaiming_uniform_(layer.weight, nonlinearity="relu")

        def forward(self, x):
            for layer in self.hidden:
                x = torch.relu(layer(x))
            return self.head(x)

    return DeepMLP()


def cnn(torch):
    """A small ResNet for 32x32 images: a stem and three stages of basic blocks, batch norm throughout."""
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self, channels, width, stride):
            super().__init__()
            self.conv1 = nn.Conv2d(channels, width, 3, stride=stride, padding=1, bias=False)
            self.bn1 = nn.BatchNorm2d(width)
            self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
            self.bn2 = nn.BatchNorm2d(width)
            self.shortcut = None
            if stride != 1 or channels != width:
                self.shortcut = nn.Conv2d(channels, width, 1, stride=stride, bias=False)
                self.bn3 = nn.BatchNorm2d(width)

        def forward(self, x):
            y = torch.relu(self.bn1(self.conv1(x)))
            y = self.bn2(self.conv2(y))
            if self.shortcut is not None:
                x = self.bn3(self.shortcut(x))
            return torch.relu(x + y)

    class ResNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(3, 16, 3, padding=1, bias=False)
            self.bn = nn.BatchNorm2d(16)
            self.blocks = nn.Sequential(Block(16, 32, 1), Block(32, 64, 2), Block(64, 128, 2))
            self.head = nn.Linear(128, CLASSES)

        def forward(self, x):
            x = torch.relu(self.bn(self.conv(x)))
            x = self.blocks(x)  # (B, 128, 8, 8)
            return self.head(x.mean(dim=(2, 3)))

    return ResNet()


def lstm(torch):
    """Two layers of 256 over a sequence of 64; the last state is classified."""
    nn = torch.nn

    class Classifier(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = nn.LSTM(FEATURES, HIDDEN, num_layers=2, batch_first=True)
            self.head = nn.Linear(HIDDEN, CLASSES)

        def forward(self, x):
            y, _ = self.lstm(x)
            return self.head(y[:, -1])

    return Classifier()


def gpt(torch):
    """A decoder-only transformer: 4 layers, width 128, 4 heads, 128 tokens."""
    nn, F = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1 = nn.LayerNorm(WIDTH)
            self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
            self.out = nn.Linear(WIDTH, WIDTH)
            self.norm2 = nn.LayerNorm(WIDTH)
            self.up = nn.Linear(WIDTH, 4 * WIDTH)
            self.down = nn.Linear(4 * WIDTH, WIDTH)

        def attend(self, x):
            B, T, C = x.shape
            q, k, v = self.qkv(x).split(C, dim=2)
            q = q.view(B, T, HEADS, C // HEADS).transpose(1, 2)  # (B, H, T, D)
            k = k.view(B, T, HEADS, C // HEADS).transpose(1, 2)
            v = v.view(B, T, HEADS, C // HEADS).transpose(1, 2)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.out(y.transpose(1, 2).contiguous().view(B, T, C))

        def forward(self, x):
            x = x + self.attend(self.norm1(x))
            return x + self.down(F.gelu(self.up(self.norm2(x))))

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens = nn.Embedding(VOCABULARY, WIDTH)
            self.positions = nn.Embedding(CONTEXT, WIDTH)
            self.blocks = nn.ModuleList([Block() for _ in range(LAYERS)])
            self.norm = nn.LayerNorm(WIDTH)
            self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)

        def forward(self, x):
            place = torch.arange(x.shape[1], device=x.device)
            x = self.tokens(x) + self.positions(place)
            for block in self.blocks:
                x = block(x)
            return self.head(self.norm(x)).flatten(0, 1)  # (B * T, vocabulary)

    return GPT()


@dataclass(frozen=True)
class Workload:
    """One model, with what it is trained on and by which optimizer."""

    module: Callable
    optimizer: str
    options: dict
    sample: Callable[[np.random.Generator], tuple[np.ndarray, np.ndarray]]


def _images(batch: int, *shape: int) -> Callable:
    def sample(rng):
        x = rng.standard_normal((batch, *shape), dtype=np.float32)
        return x, rng.integers(0, CLASSES, batch)

    return sample


def _text(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    tokens = rng.integers(0, VOCABULARY, (8, CONTEXT + 1))
    return tokens[:, :-1].copy(), tokens[:, 1:].reshape(-1).copy()


SGD = {"lr": 0.01, "momentum": 0.9}
ADAMW = {"lr": 3e-4, "weight_decay": 0.01}

WORKLOADS = {
    "mlp": Workload(mlp, "SGD", SGD, _images(64, 784)),
    "deep-mlp": Workload(deep_mlp, "SGD", SGD | {"lr": 0.001}, _images(32, 64)),
    "cnn": Workload(cnn, "SGD", SGD, _images(32, 3, 32, 32)),
    "lstm": Workload(lstm, "AdamW", ADAMW, _images(32, SEQUENCE, FEATURES)),
    "gpt": Workload(gpt, "AdamW", ADAMW, _text),
}


def batches(name: str, count: int = 8, seed: int = 0) -> list[tuple[np.ndarray, np.ndarray]]:
    """Synthetic batches in PyTorch's layout: float32 inputs (int64 tokens for gpt) and int64 targets."""
    rng = np.random.default_rng(seed)
    return [WORKLOADS[name].sample(rng) for _ in range(count)]


@dataclass
class Training:
    """A model, its optimizer and one training step over them."""

    model: Any
    optimizer: Any
    step: Callable


def build(torch: Any, name: str, device: Any = "cpu", wrap: Callable | None = None) -> Training:
    """The model, optimizer and step of `name`, written as a PyTorch user would, under the module `torch`.

    `wrap` is applied to the model before it is called: `torch.compile` for PyTorch's own peer.
    """
    work = WORKLOADS[name]
    torch.manual_seed(0)
    model = work.module(torch).to(device)
    optimizer = getattr(torch.optim, work.optimizer)(model.parameters(), **work.options)
    forward = wrap(model) if wrap else model

    def step(x, y):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(forward(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return Training(model, optimizer, step)
