"""GPT-2 of the package transformers (4 layers, width 128, random weights): training steps per second, and what it computes.

Run it twice with transformers installed, and compare the lines:
    python benchmarks/gpt2_transformers.py
    python -m jtorch run benchmarks/gpt2_transformers.py
"""

import argparse
import statistics
import time

import torch  # noqa: TID251
from transformers import GPT2Config, GPT2LMHeadModel


def model():
    torch.manual_seed(0)
    config = GPT2Config(
        n_layer=4, n_embd=128, n_head=4, vocab_size=1000, n_positions=128, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
        bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    return GPT2LMHeadModel(config)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    net = model()
    tokens = torch.randint(0, 1000, (8, 128))
    found = net(tokens[:2, :16], labels=tokens[:2, :16])
    print("sum of logits", round(found.logits.double().abs().sum().item(), 3), "loss", round(found.loss.item(), 5))
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)

    def step():
        optimizer.zero_grad()
        loss = net(tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(4):
        loss = step()
    rates = []
    for _ in range(args.rounds):
        start = time.perf_counter()
        for _ in range(args.steps):
            loss = step()
        loss.item()
        rates.append(args.steps / (time.perf_counter() - start))
    print(
        f"loss {loss.item():.5f} after {4 + args.steps * args.rounds} steps; {statistics.median(rates):.2f} steps/s of {rates}"
    )


if __name__ == "__main__":
    main()
