"""An ordinary training loop over a DataLoader, shuffled, epoch by epoch in turns with PyTorch's in one process: the ratio of steps per second.

Run, with torch installed:
    python benchmarks/loader_loops.py
    python benchmarks/loader_loops.py --models dropout --epochs 20 --read ten
"""

import argparse
import importlib
import statistics
import time

SAMPLES, BATCH = 6400, 64
MODELS = ("mlp", "dropout", "cnn")
READ = {"each": 1, "ten": 10, "never": SAMPLES}


def model(nn, name):
    if name == "cnn":
        return nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(),
            nn.MaxPool2d(2), nn.Flatten(), nn.Linear(32 * 49, 10),
        )  # fmt: skip
    drop = [nn.Dropout(0.2)] if name == "dropout" else []
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 256), nn.ReLU(), *drop, nn.Linear(256, 10))


class Loop:
    """One library's loop; `epoch` returns steps per second."""

    def __init__(self, library, name, read):
        t = importlib.import_module(library)
        data = importlib.import_module(f"{library}.utils.data")
        t.manual_seed(0)
        images, classes = t.randn(SAMPLES, 1, 28, 28), t.randint(0, 10, (SAMPLES,))
        self.batches = data.DataLoader(data.TensorDataset(images, classes), batch_size=BATCH, shuffle=True)
        self.model = model(t.nn, name)
        self.optimizer = t.optim.Adam(self.model.parameters(), lr=1e-3)
        self.loss_of, self.read = t.nn.functional.cross_entropy, read

    def epoch(self):
        started = time.perf_counter()
        for k, (x, y) in enumerate(self.batches, 1):
            self.optimizer.zero_grad()
            loss = self.loss_of(self.model(x), y)
            loss.backward()
            self.optimizer.step()
            if k % self.read == 0:
                loss.item()
        loss.item()
        return len(self.batches) / (time.perf_counter() - started)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=MODELS)
    parser.add_argument(
        "--read", nargs="+", choices=READ, default=list(READ), help="the loss: at each step, each ten, once an epoch"
    )
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--warm", type=int, default=6, help="epochs before; what comes often is compiled beside them")
    args = parser.parse_args()
    print(f"{'model':10}{'loss read':12}{'PyTorch':>10}{'jtorch':>10}{'ratio':>8}   steps/s, batch {BATCH}")
    for name in args.models:
        for read in args.read:
            loops = [Loop(library, name, READ[read]) for library in ("torch", "jtorch")]
            rates = [[loop.epoch() for loop in loops] for _ in range(args.warm + args.epochs)][args.warm :]
            theirs, ours = map(statistics.median, zip(*rates))
            ratio = statistics.median(b / a for a, b in rates)
            print(f"{name:10}{read:12}{theirs:10.0f}{ours:10.0f}{ratio:8.2f}", flush=True)


if __name__ == "__main__":
    main()
