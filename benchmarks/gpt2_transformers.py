"""GPT-2 of the package transformers (4 layers, width 128, random weights): training steps per second, and what it computes.

Run, with torch and transformers installed: both in turns, and the ratio of each round
    python benchmarks/gpt2_transformers.py --both
or one of them
    python benchmarks/gpt2_transformers.py
    python -m jtorch run benchmarks/gpt2_transformers.py
"""

import argparse
import statistics
import subprocess
import sys
import time


def in_turns(args):
    """PyTorch and jtorch cannot be one process's torch: two processes, of which one works while the other waits."""
    options = [
        __file__,
        "--steps",
        str(args.steps),
        "--rounds",
        str(args.rounds),
        "--threads",
        str(args.threads),
        "--device",
        args.device,
        "--wait",
    ]
    commands = ([sys.executable, *options], [sys.executable, "-m", "jtorch", "run", *options])
    both = [subprocess.Popen(c, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for c in commands]
    for process in both:
        print(process.stdout.readline().strip())
    ratios = []
    for _ in range(args.rounds):
        rates = []
        for process in both:
            process.stdin.write("\n")
            process.stdin.flush()
            rates.append(float(process.stdout.readline()))
        ratios.append(rates[1] / rates[0])
        print(f"PyTorch {rates[0]:.2f} steps/s, jtorch {rates[1]:.2f}: {ratios[-1]:.2f}")
    print(f"median {statistics.median(ratios):.2f}")


def model(torch):
    from transformers import GPT2Config, GPT2LMHeadModel  # noqa: PLC0415  the process that only waits needs neither

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
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--both", action="store_true")
    parser.add_argument("--wait", action="store_true", help="start each round at a line on standard input")
    args = parser.parse_args()
    if args.both:
        return in_turns(args)
    import torch  # noqa: PLC0415, TID251

    torch.set_num_threads(args.threads)
    net = model(torch).to(args.device)
    tokens = torch.randint(0, 1000, (8, 128)).to(args.device)
    found = net(tokens[:2, :16], labels=tokens[:2, :16])
    print(
        "sum of logits",
        round(found.logits.double().abs().sum().item(), 3),
        "loss",
        round(found.loss.item(), 5),
        flush=True,
    )
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
        if args.wait:
            sys.stdin.readline()
        start = time.perf_counter()
        for _ in range(args.steps):
            loss = step()
        loss.item()
        rates.append(args.steps / (time.perf_counter() - start))
        if args.wait:
            print(rates[-1], flush=True)
    print(
        f"loss {loss.item():.5f} after {4 + args.steps * args.rounds} steps; {statistics.median(rates):.2f} steps/s of {rates}"
    )


if __name__ == "__main__":
    main()
