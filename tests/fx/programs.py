"""Functions and modules to be traced, written once for both torches: `make(torch)` gives {name: (root, inputs)}."""

import math


def make(t):
    nn, F = t.nn, t.nn.functional
    t.manual_seed(0)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.l, self.p = nn.Linear(3, 3), nn.Parameter(t.ones(3))
            self.register_buffer("b", t.zeros(3))
            self.seq = nn.Sequential(nn.ReLU(), nn.Linear(3, 2))

        def forward(self, x, y=None, *args, k: int = 3, **kw):
            z = self.l(x) * self.p + self.b
            z += 1
            z = z[0:2, ..., None]
            a, b = z.chunk(2)
            q = F.relu(a + 0, inplace=True).sum(dim=1)
            w = t.cat([a, b], dim=0)
            v = -w // 2
            rows = x.shape[0]
            u = x.view(rows, -1).to(t.float64)
            c = t.tensor([1.0, 2.0]) + x[:, :2]
            math.floor(rows)
            return {"a": self.seq(x), "b": [q, (v, None)], "s": slice(1, rows)}["a"], u, 2 - x, x < 3, c, k, x.size(0)

    class Inner(nn.Module):
        def __init__(self, n):
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(n, n) for _ in range(2))

        def forward(self, x):
            for layer in self.layers:
                x = layer(x).tanh()
            return x

    class Nested(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = Inner(3), Inner(3)

        def forward(self, x) -> t.Tensor:
            return self.two(self.one(x)) + self.one.layers[0].weight.sum()

    def functions(x):
        y = F.softmax(x, -1) + F.dropout(x, training=False) + F.layer_norm(x, (3,)) + F.gelu(x)
        return (
            F.pad(F.mse_loss(x, y)[None], (1, 1)),
            t.relu(x).abs().relu_(),
            t.einsum("ij->", x),
            t.stack([x, y]),
            x.T,
            x.dtype,
        )

    def many(x, *a, **k):
        return x + a[0] + k["z"]

    def types(x, dim: int = 1):
        return x.to(t.float32).sum(dim, keepdim=True), t.float16, float("inf"), (x.device, t.device("cpu"))

    def operators(x, y):
        return x @ y, x**2, 2**x, x % 2, ~(x > 0), (x > 0) & (y > 0), abs(x), x[None, 0], x / y, 1 / x, x != y, -x, +x

    x = t.linspace(-1, 2, 9).reshape(3, 3)
    return {
        "net": (Net(), (x,)), "nested": (Nested(), (x,)), "functions": (functions, (x,)), "types": (types, (x,)),
        "operators": (operators, (x, x + 0.5)), "many": (many, ()), "sequential": (nn.Sequential(nn.Linear(3, 2), nn.ReLU()), (x,)),
    }  # fmt: skip
