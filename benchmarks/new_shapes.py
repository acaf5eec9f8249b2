"""What does a step cost whose sizes are new each time? CPU time in ms: the first step, and mean and median of the others.

Each library runs in a process of its own. Run: python benchmarks/new_shapes.py [torch|jtorch [names]]
"""

import importlib
import random
import statistics
import subprocess
import sys
import time

import numpy as np

STEPS = 40


def programs(torch):
    nn, F = torch.nn, torch.nn.functional
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    random.seed(0)

    def updated(opt, loss):
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss.item()

    def sentences(make, run):
        """A training step on sentences of other lengths, each word in a class."""
        emb = nn.Embedding(1000, 32)
        layer = make()
        o = nn.LazyLinear(10)
        o(run(layer, emb(torch.zeros(1, 5, dtype=torch.int64))))
        opt = torch.optim.Adam([*emb.parameters(), *layer.parameters(), *o.parameters()], 1e-3)

        def step(k):
            n = int(rng.integers(5, 60))
            x = torch.from_numpy(rng.integers(0, 1000, (8, n)))
            y = torch.from_numpy(rng.integers(0, 10, (8, n)))
            return updated(opt, F.cross_entropy(o(run(layer, emb(x))).reshape(-1, 10), y.reshape(-1)))

        return step

    def lstm():
        """Sentences through an LSTM."""
        return sentences(lambda: nn.LSTM(32, 64, batch_first=True), lambda layer, x: layer(x)[0])

    def transformer():
        """The same through an encoder of two layers."""

        def make():
            return nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, dropout=0.0), 2)

        return sentences(make, lambda layer, x: layer(x))

    def kv():
        """A word more of a sentence, with a cache that grows."""
        D, H = 64, 4
        emb = nn.Embedding(500, D)
        qkv = [nn.Linear(D, 3 * D) for _ in range(3)]
        out = [nn.Linear(D, D) for _ in range(3)]
        lns = [nn.LayerNorm(D) for _ in range(3)]
        mlp = [nn.Sequential(nn.Linear(D, 4 * D), nn.GELU(), nn.Linear(4 * D, D)) for _ in range(3)]
        head = nn.Linear(D, 500)
        st = {"c": None}

        def step(k):
            with torch.no_grad():
                if k % 60 == 0:
                    st["c"] = [None] * 3
                    st["t"] = torch.tensor([[1]])
                x = emb(st["t"])
                for i in range(3):
                    q, kk, v = qkv[i](lns[i](x)).view(1, 1, 3, H, D // H).permute(2, 0, 3, 1, 4).unbind(0)
                    if st["c"][i] is not None:
                        kk = torch.cat([st["c"][i][0], kk], 2)
                        v = torch.cat([st["c"][i][1], v], 2)
                    st["c"][i] = (kk, v)
                    a = F.scaled_dot_product_attention(q, kk, v)
                    x = x + out[i](a.transpose(1, 2).reshape(1, 1, D))
                    x = x + mlp[i](x)
                st["t"] = head(x)[:, -1].argmax(-1, keepdim=True)
                return st["t"].item()

        return step

    def nms():
        """Suppression of overlapping boxes."""

        def step(k):
            b = torch.from_numpy(rng.random((60 + int(rng.integers(0, 40)), 4)).astype("f4"))
            b = torch.cat([b[:, :2], b[:, :2] + b[:, 2:]], 1)
            s = torch.from_numpy(rng.random(len(b)).astype("f4"))
            area = (b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1])
            order = s.argsort(descending=True)
            keep = []
            while order.numel() > 0:
                i = order[0]
                keep.append(i.item())
                if order.numel() == 1:
                    break
                r = order[1:]
                tl = torch.maximum(b[r, :2], b[i, :2])
                br = torch.minimum(b[r, 2:], b[i, 2:])
                wh = (br - tl).clamp(min=0)
                inter = wh[:, 0] * wh[:, 1]
                iou = inter / (area[r] + area[i] - inter)
                order = r[iou <= 0.3]
            return len(keep)

        return step

    def beam():
        """Beam search over sentences of other lengths."""
        gru = nn.GRUCell(32, 64)
        emb = nn.Embedding(100, 32)
        o = nn.Linear(64, 100)
        B = 5

        def step(k):
            with torch.no_grad():
                h = torch.zeros(1, 64)
                seqs = torch.ones(1, 1, dtype=torch.long)
                sc = torch.zeros(1)
                for _ in range(10 + int(rng.integers(0, 10))):
                    h2 = gru(emb(seqs[:, -1]), h)
                    lp = F.log_softmax(o(h2), -1) + sc[:, None]
                    v, ix = lp.view(-1).topk(B)
                    bi = ix // 100
                    w = ix % 100
                    seqs = torch.cat([seqs[bi], w[:, None]], 1)
                    h = h2[bi]
                    sc = v
                return seqs[0].tolist()

        return step

    def masks():
        """A gradient of what a mask leaves."""
        w = torch.randn(16, 4, requires_grad=True)

        def step(k):
            x = torch.from_numpy(rng.standard_normal((100, 16)).astype("f4"))
            m = x[:, 0] > rng.uniform(-1, 1)
            y = x[m] @ w
            loss = (y**2).mean()
            loss.backward()
            with torch.no_grad():
                w.sub_(0.01 * w.grad)
                w.grad = None
            return loss.item()

        return step

    def tree():
        """An LSTM over trees, a training step."""
        D = 32
        W = nn.Linear(2 * D, 5 * D)
        emb = nn.Embedding(50, D)
        o = nn.Linear(D, 3)
        opt = torch.optim.SGD([*W.parameters(), *emb.parameters(), *o.parameters()], 0.01)

        def rec(n):
            if n == 1:
                e = emb(torch.tensor([random.randrange(50)]))
                return e, torch.zeros(1, D)
            a = random.randrange(1, n)
            h1, c1 = rec(a)
            h2, c2 = rec(n - a)
            i, f1, f2, g, oo = W(torch.cat([h1, h2], 1)).chunk(5, 1)
            c = torch.sigmoid(i) * torch.tanh(g) + torch.sigmoid(f1) * c1 + torch.sigmoid(f2) * c2
            return torch.sigmoid(oo) * torch.tanh(c), c

        def step(k):
            h, _ = rec(3 + int(rng.integers(0, 10)))
            loss = F.cross_entropy(o(h), torch.tensor([k % 3]))
            return updated(opt, loss)

        return step

    def crf():
        """A chain of conditional probabilities, as long as its sentence."""
        T = 6
        trans = nn.Parameter(torch.randn(T, T))
        lin = nn.Linear(16, T)
        opt = torch.optim.SGD([trans, *lin.parameters()], 0.01)

        def step(k):
            n = 5 + int(rng.integers(0, 15))
            x = torch.from_numpy(rng.standard_normal((n, 16)).astype("f4"))
            y = torch.from_numpy(rng.integers(0, T, n))
            f = lin(x)
            a = f[0]
            for t in range(1, n):
                a = torch.logsumexp(a[:, None] + trans, 0) + f[t]
            z = torch.logsumexp(a, 0)
            s = f[torch.arange(n), y].sum() + trans[y[:-1], y[1:]].sum()
            loss = z - s
            return updated(opt, loss)

        return step

    def graphs():
        """Graphs of other sizes, a training step."""
        l1 = nn.Linear(8, 32)
        l2 = nn.Linear(32, 32)
        o = nn.Linear(32, 2)
        opt = torch.optim.Adam([*l1.parameters(), *l2.parameters(), *o.parameters()], 1e-3)

        def step(k):
            G = 4
            sizes = rng.integers(4, 12, G)
            n = int(sizes.sum())
            e = int(rng.integers(2 * n, 4 * n))
            x = torch.from_numpy(rng.standard_normal((n, 8)).astype("f4"))
            src = torch.from_numpy(rng.integers(0, n, e))
            dst = torch.from_numpy(rng.integers(0, n, e))
            batch = torch.repeat_interleave(torch.arange(G), torch.from_numpy(sizes))
            h = F.relu(l1(x))
            h = h + torch.zeros_like(h).index_add(0, dst, h[src])
            h = F.relu(l2(h))
            p = torch.zeros(G, 32).index_add(0, batch, h) / torch.from_numpy(sizes.astype("f4"))[:, None]
            loss = F.cross_entropy(o(p), torch.arange(G) % 2)
            return updated(opt, loss)

        return step

    return {f.__name__: f for f in (lstm, transformer, kv, nms, beam, masks, tree, crf, graphs)}


def main(name, chosen=""):
    torch = importlib.import_module(name)
    if name == "torch":
        torch.set_num_threads(1)
    for what, make in programs(torch).items():
        if chosen and what not in chosen.split(","):
            continue
        step, took = make(), []
        for k in range(STEPS):
            start = time.process_time()
            step(k)
            took.append(1e3 * (time.process_time() - start))
        first, *others = took
        mean, median = statistics.mean(others), statistics.median(others)
        print(f"{name:7} {what:12} first {first:7.1f}  mean {mean:6.2f}  median {median:6.2f}", flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(*sys.argv[1:])
    else:
        for library in ("torch", "jtorch"):
            subprocess.run([sys.executable, __file__, library], check=True)
