"""Train a small GPT, letter by letter, on English found on any machine: the docstrings of Python's library.

python examples/char_gpt.py
python examples/char_gpt.py --steps 3000 --sample 500
"""

import argparse
import ast
import sys
import sysconfig
import time
from pathlib import Path

import jtorch as torch
from jtorch import nn
from jtorch.nn import functional as F

CONTEXT, WIDTH, HEADS, LAYERS, BATCH = 128, 128, 4, 4, 16


def docstrings():
    """The docstrings of the standard library's modules, classes and functions, as one text."""
    found = []
    for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8", errors="replace"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                found.append(ast.get_docstring(node) or "")
    text = "\n\n".join(doc for doc in found if len(doc) > 80)
    return "".join(c for c in text if c == "\n" or " " <= c <= "~")


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1 = nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.norm2 = nn.LayerNorm(WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def attend(self, x):
        B, T, C = x.shape
        q, k, v = (t.view(B, T, HEADS, C // HEADS).transpose(1, 2) for t in self.qkv(x).split(C, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)  # (B, H, T, D)
        return self.out(y.transpose(1, 2).reshape(B, T, C))

    def forward(self, x):
        x = x + self.attend(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, letters):
        super().__init__()
        self.tokens = nn.Embedding(letters, WIDTH)
        self.positions = nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.Sequential(*[Block() for _ in range(LAYERS)])
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, letters, bias=False)

    def forward(self, x):
        place = torch.arange(x.shape[1], device=x.device)
        x = self.tokens(x) + self.positions(place)
        return self.head(self.norm(self.blocks(x)))  # (B, T, letters)


def batch(data):
    """BATCH pieces of the text, and the same one letter on."""
    starts = torch.randint(len(data) - CONTEXT, (BATCH, 1)).to(data.device).to(data.device)
    places = starts + torch.arange(CONTEXT, device=data.device)
    return data[places], data[places + 1]


def generate(model, letters, prompt, length, device):
    """Continue `prompt`, drawing each letter from the model's probabilities.

    The window has always the same size, so that every letter runs the same program.
    """
    model.eval()
    text = prompt
    with torch.no_grad():
        for _ in range(length):
            window = text[-CONTEXT:]
            x = torch.tensor([[letters.index(c) for c in window.ljust(CONTEXT)]], device=device)
            logits = model(x)[0, len(window) - 1]
            choice = torch.multinomial(F.softmax(logits / 0.8, dim=0), 1)
            text += letters[choice.item()]
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--sample", type=int, default=300, help="letters to write at the end")
    args = parser.parse_args()
    accelerator = torch.accelerator.is_available()
    device = torch.accelerator.current_accelerator() if accelerator else torch.device("cpu")

    text = docstrings()
    letters = sorted(set(text))
    index = {c: i for i, c in enumerate(letters)}
    data = torch.tensor([index[c] for c in text]).to(device)
    print(f"{len(text)} letters of Python {sys.version.split()[0]}'s docstrings, {len(letters)} different")

    torch.manual_seed(0)
    model = GPT(len(letters)).to(device)
    print(f"{sum(p.numel() for p in model.parameters())} parameters")
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
    every = max(1, args.steps // 10)
    start = time.perf_counter()
    for step in range(1, args.steps + 1):
        x, y = batch(data)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        loss.backward()
        optimizer.step()
        if step == 1 or step % every == 0:
            rate = step / (time.perf_counter() - start)
            print(f"step {step:5d}  loss {loss.item():.4f}  {rate:.1f} steps/s", flush=True)

    print("\n" + generate(model, letters, "Return the ", args.sample, device))


if __name__ == "__main__":
    main()
