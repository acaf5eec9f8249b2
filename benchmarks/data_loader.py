"""How fast is DataLoader with workers? Samples per second against PyTorch's, interleaved in one process.

Run: python benchmarks/data_loader.py [--workers 2] [--batch 32] [--samples 512] [--rounds 5]

Each sample is inflated from compressed bytes (what decoding costs), flipped, and normalised to 3x224x224 floats. The
loop that takes the batches reads one element of each, as a training step on an accelerator would need no more of the
host. One round is one epoch of each library, in turn, workers started anew as `for batch in loader` does.
"""

import argparse
import importlib
import statistics
import time
import zlib

import numpy as np

import jtorch

torch = importlib.import_module("torch")

_SIDE = 224


def compressed(n):
    """n images as compressed bytes."""
    rng = np.random.default_rng(0)
    made = []
    for _ in range(n):
        image = rng.integers(0, 256, (3, _SIDE // 4, _SIDE // 4), np.uint8).repeat(4, 1).repeat(4, 2)
        made.append(zlib.compress(image.tobytes(), 1))
    return made


class Images:
    """Decoding-like work with one library's tensors."""

    def __init__(self, lib, length, files):
        self.lib = lib
        self.length = length
        self.files = files

    def __len__(self):
        return self.length

    def __getitem__(self, i):
        image = np.frombuffer(zlib.decompress(self.files[i % len(self.files)]), np.uint8).reshape(3, _SIDE, _SIDE)
        array = (image[:, :, ::-1].astype(np.float32) - 127.5) / 58.0
        return self.lib.from_numpy(array), i % 10


def epoch(lib, data, args):
    """(seconds of one epoch, seconds to the first batch)."""
    loader = lib.utils.data.DataLoader(data, batch_size=args.batch, shuffle=True, num_workers=args.workers)
    start = time.perf_counter()
    first = None
    for x, _ in loader:
        if first is None:
            first = time.perf_counter() - start
        assert x.shape == (args.batch, 3, _SIDE, _SIDE)
        float(x.numpy()[0, 0, 0, 0])
    return time.perf_counter() - start, first


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--samples", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    files = compressed(16)
    libs = {"jtorch": jtorch, "PyTorch": torch}
    sets = {name: Images(lib, args.samples, files) for name, lib in libs.items()}
    times = {name: [] for name in libs}
    firsts = {name: [] for name in libs}
    for lib in libs.items():  # start the helper, warm the caches
        epoch(lib[1], sets[lib[0]], args)
    for k in range(args.rounds):
        for name in sorted(libs, reverse=k % 2 == 1):
            seconds, first = epoch(libs[name], sets[name], args)
            times[name].append(seconds)
            firsts[name].append(first)
    rate = {name: args.samples / statistics.median(t) for name, t in times.items()}
    for name in libs:
        print(
            f"{name:8} {rate[name]:8.1f} samples/s, first batch after {1e3 * statistics.median(firsts[name]):6.1f} ms "
            f"(epochs {min(times[name]):.3f} to {max(times[name]):.3f} s)"
        )
    pairs = [t / j for j, t in zip(times["jtorch"], times["PyTorch"])]
    print(
        f"ratio (jtorch / PyTorch): {rate['jtorch'] / rate['PyTorch']:.3f}, by round {', '.join(f'{p:.2f}' for p in pairs)}"
    )


if __name__ == "__main__":
    main()
