"""Learn to read handwritten digits: an MLP and a CNN on the 1797 real ones that scikit-learn ships.

python examples/train_digits.py                 both models, to 97% and better on digits they never saw
python examples/train_digits.py --model cnn --epochs 5
python examples/train_digits.py --quick         under half a minute
"""

import argparse
import time

from sklearn.datasets import load_digits

import jtorch as torch
from jtorch import nn
from jtorch.nn import functional as F
from jtorch.utils.data import DataLoader, TensorDataset, random_split

BATCH = 64


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(64, 512)
        self.dropout = nn.Dropout(0.4)
        self.fc2 = nn.Linear(512, 10)

    def forward(self, x):
        return self.fc2(self.dropout(F.relu(self.fc1(x.flatten(1)))))


class CNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 32, 3, padding=1),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 3, padding=1),
            nn.BatchNorm2d(64),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.dropout = nn.Dropout(0.2)
        self.head = nn.Linear(64 * 2 * 2, 10)

    def forward(self, x):
        x = self.features(x)  # (B, 64, 2, 2)
        return self.head(self.dropout(x.flatten(1)))


MODELS = {"mlp": MLP, "cnn": CNN}


def digits():
    """Images (N, 1, 8, 8) scaled to 0..1 with their labels; a fifth is kept for the test."""
    data = load_digits()
    images = torch.from_numpy(data.images).float().unsqueeze(1) / 16
    labels = torch.from_numpy(data.target).long()
    return random_split(TensorDataset(images, labels), [0.8, 0.2], torch.Generator().manual_seed(0))


def accuracy(model, data, device):
    """The share of `data` that the model gets right."""
    model.eval()
    right = 0
    with torch.no_grad():
        for x, y in DataLoader(data, batch_size=256):
            right += (model(x.to(device)).argmax(1) == y.to(device)).sum().item()
    return right / len(data)


def make(name, device):
    """A model, its optimizer and one training step over them."""
    torch.manual_seed(0)
    model = MODELS[name]().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=0.01)

    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return model, optimizer, step


def train(name, data, test, epochs, device):
    model, optimizer, step = make(name, device)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    batches = DataLoader(data, batch_size=BATCH, shuffle=True)
    for epoch in range(epochs):
        model.train()
        for i, (x, y) in enumerate(batches):
            loss = step(x.to(device), y.to(device))
            if epoch == i == 0:
                print(f"{name}  first step  loss {loss.item():.4f}", flush=True)
        schedule.step()
        if (epoch + 1) % 5 == 0 or epoch + 1 == epochs:
            print(f"{name}  epoch {epoch + 1:2d}  loss {loss.item():.4f}", flush=True)
    print(f"{name}  test accuracy {accuracy(model, test, device):.2%}", flush=True)


def throughput(name, mode, data, seconds, device):
    """Training steps a second in one of jtorch's modes, once it is warm: what comes often is compiled beside the loop."""
    x, y = (t.to(device) for t in next(iter(DataLoader(data, batch_size=BATCH))))
    with torch.execution_mode("eager" if mode == "eager" else "auto"):
        step = make(name, device)[2]
        step = torch.compile(step) if mode == "compile" else step

        def run(seconds):
            steps, start = 0, time.perf_counter()
            while time.perf_counter() - start < seconds:
                for _ in range(10):
                    loss = step(x, y)
                loss.item()
                steps += 10
            return steps / (time.perf_counter() - start)

        for _ in range(2):
            run(2 * seconds)
            torch.compile.wait()
        return run(seconds)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--model", choices=[*MODELS, "all"], default="all")
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--quick", action="store_true", help="3 epochs, and a short look at the throughput")
    parser.add_argument("--no-table", action="store_true", help="leave out the throughput of the three modes")
    args = parser.parse_args()
    names = list(MODELS) if args.model == "all" else [args.model]
    device = torch.accelerator.current_accelerator(check_available=True) or torch.device("cpu")
    data, test = digits()
    for name in names:
        train(name, data, test, 3 if args.quick else args.epochs, device)
    if args.no_table:
        return
    modes = ("eager", "auto", "compile")
    print(f"\nsteps/s, batch {BATCH}" + "".join(f"{mode:>12}" for mode in modes))
    for name in names:
        rates = [throughput(name, mode, data, 0.3 if args.quick else 2, device) for mode in modes]
        print(f"{name:17}" + "".join(f"{rate:12.0f}" for rate in rates), flush=True)


if __name__ == "__main__":
    main()
