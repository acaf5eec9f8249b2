"""What do the first training steps of deep networks cost, whose layers are alike? CPU time in s: the first step, and all of them.

Each network runs in processes of its own, by PyTorch (one thread), and by jtorch with an empty cache, with the cache of that run, and with
neither parts nor a cache (`core/parts.py`). Run: python benchmarks/layers_alike.py [names]
"""

import functools
import importlib
import os
import subprocess
import sys
import tempfile
import time

STEPS = 12


def networks(torch):
    nn, F = torch.nn, torch.nn.functional

    def encoder(depth, width, tokens):
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, activation="gelu", batch_first=True)
        return nn.Sequential(nn.Embedding(tokens, width), nn.TransformerEncoder(layer, depth), nn.Linear(width, tokens))

    def classified(model, inputs, classes):
        outputs = model(inputs)
        return F.cross_entropy(outputs.reshape(-1, classes), torch.randint(0, classes, (outputs.numel() // classes,)))

    def transformer():
        """Twelve layers of width 256, 4 sentences of 64 words."""
        model = encoder(12, 256, 1000)
        return model, lambda: classified(model, torch.randint(0, 1000, (4, 64)), 1000)

    def narrow():
        """Eight layers of width 64, 8 sentences of 16 words."""
        model = encoder(8, 64, 200)
        return model, lambda: classified(model, torch.randint(0, 200, (8, 16)), 200)

    def mlp():
        """Twenty residual blocks of width 64."""

        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.norm, self.up, self.down = nn.LayerNorm(64), nn.Linear(64, 128), nn.Linear(128, 64)

            def forward(self, x):
                return x + self.down(F.gelu(self.up(self.norm(x))))

        model = nn.Sequential(nn.Linear(32, 64), *(Block() for _ in range(20)), nn.Linear(64, 10))
        return model, lambda: classified(model, torch.randn(64, 32), 10)

    def resnet():
        """Four stages of six blocks each, 16 to 128 channels, 8 images of 32x32."""

        class Block(nn.Module):
            def __init__(self, channels):
                super().__init__()
                conv = functools.partial(nn.Conv2d, channels, channels, 3, padding=1, bias=False)
                self.a, self.b, self.c, self.d = conv(), nn.BatchNorm2d(channels), conv(), nn.BatchNorm2d(channels)

            def forward(self, x):
                return F.relu(x + self.d(self.c(F.relu(self.b(self.a(x))))))

        stages = []
        for k, channels in enumerate((16, 32, 64, 128)):
            stages += [
                nn.Conv2d(channels // 2 if k else 3, channels, 3, 2 if k else 1, 1),
                *(Block(channels) for _ in range(6)),
            ]
        model = nn.Sequential(*stages, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 10))
        return model, lambda: classified(model, torch.randn(8, 3, 32, 32), 10)

    return {f.__name__: f for f in (transformer, narrow, mlp, resnet)}


def train(library, name, whole=""):
    torch = importlib.import_module(library)
    if library == "torch":
        torch.set_num_threads(1)
    if whole:
        importlib.import_module("jtorch.core.parts").LENGTH = sys.maxsize
    torch.manual_seed(0)
    model, loss_of = networks(torch)[name]()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    start, took = time.process_time(), []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = loss_of()
        loss.backward()
        optimizer.step()
        loss.item()
        took.append(time.process_time() - start)
    print(f"{took[0]:6.2f} / {took[-1]:6.2f}", flush=True)


def main(names):
    print(f"{'':12} {'first step / ' + str(STEPS) + ' steps':20}")
    for name in names or ("transformer", "narrow", "mlp", "resnet"):
        for what, library, whole, cache in (
            ("PyTorch", "torch", "", None), ("whole", "jtorch", "whole", "a"), ("parts", "jtorch", "", "b"), ("again", "jtorch", "", "b"),
        ):  # fmt: skip
            if cache == "a":
                folder = tempfile.TemporaryDirectory()
            env = os.environ | {"JTORCH_CACHE_DIR": os.path.join(folder.name, cache)} if cache else None
            print(f"{name:12} {what:8}", end=" ", flush=True)
            subprocess.run([sys.executable, __file__, library, name, *filter(None, [whole])], check=True, env=env)
        folder.cleanup()


if __name__ == "__main__":
    if sys.argv[1:2] and sys.argv[1] in ("torch", "jtorch"):
        train(*sys.argv[1:])
    else:
        main(sys.argv[1:])
