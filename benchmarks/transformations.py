"""torch.func in ordinary programs, step by step in turns with PyTorch's in one process: milliseconds a step and their ratio.

Run, with torch installed:
    python benchmarks/transformations.py
    python benchmarks/transformations.py --programs pinn hvp --steps 60
"""

import argparse
import importlib
import statistics
import time

WARM = 6  # steps before any is counted


def library(name):
    t = importlib.import_module(name)
    importlib.import_module(f"{name}.func")
    t.manual_seed(0)
    return t


def network(t, *sizes):
    layers = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [t.nn.Linear(a, b), t.nn.Tanh()]
    return t.nn.Sequential(*layers[:-1])


def per_sample(t):
    """Gradients of each of 64 samples, clipped and averaged: differentially private SGD."""
    f, net = t.func, network(t, 20, 64, 64, 3)
    x, y = t.randn(64, 20), t.randint(0, 3, (64,))
    held = {k: v.detach() for k, v in net.named_parameters()}

    def loss(p, x, y):
        return t.nn.functional.cross_entropy(f.functional_call(net, p, (x[None],)), y[None])

    grads = f.vmap(f.grad_and_value(loss), (None, 0, 0))

    def step():
        nonlocal held
        g, losses = grads(held, x, y)
        norms = t.stack([v.flatten(1).norm(dim=1) for v in g.values()]).norm(dim=0)
        scale = (1 / (norms + 1e-6)).clamp(max=1.0)
        held = {k: held[k] - 0.1 * t.einsum("b,b...->...", scale, g[k]) / 64 for k in held}
        return losses.mean().item()

    return step


def pinn(t):
    """Second derivatives of a network by its inputs at 128 points, in a loss that an optimizer lowers."""
    f, net = t.func, network(t, 2, 32, 32, 1)
    points, optimizer = t.rand(128, 2), t.optim.Adam(net.parameters(), lr=1e-3)

    def value(p, z):
        return f.functional_call(net, p, (z,)).squeeze()

    def step():
        p = dict(net.named_parameters())
        second = f.vmap(f.hessian(value, argnums=1), (None, 0))(p, points)
        first = f.vmap(f.grad(value, argnums=1), (None, 0))(p, points)
        loss = ((second[:, 0, 0] + second[:, 1, 1] - first.sum(1)) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def hvp(t):
    """Ten products with the Hessian of a loss, by conjugate gradients."""
    f, net = t.func, network(t, 20, 64, 64, 3)
    x, y = t.randn(64, 20), t.randint(0, 3, (64,))
    shapes = {k: v.shape for k, v in net.named_parameters()}
    start = t.cat([v.detach().flatten() for v in net.parameters()])

    def loss(w):
        parts = w.split([s.numel() for s in shapes.values()])
        p = {k: part.view(s) for (k, s), part in zip(shapes.items(), parts)}
        return t.nn.functional.cross_entropy(f.functional_call(net, p, (x,)), y)

    def step():
        found, r = t.zeros_like(start), f.grad(loss)(start)
        d, rs = r.clone(), r @ r
        for _ in range(10):
            product = f.jvp(f.grad(loss), (start,), (d,))[1] + 0.5 * d
            a = rs / (d @ product)
            found, r = found + a * d, r - a * product
            new = r @ r
            d, rs = r + new / rs * d, new
        return found.sum().item()

    return step


def jacobian(t):
    """The Jacobian of a network at each of 64 inputs."""
    net, x = network(t, 20, 64, 64, 3), t.randn(64, 20)
    return lambda: t.func.vmap(t.func.jacrev(net))(x).sum().item()


def maml(t):
    """Four tasks: a step of gradient descent in each, and the gradient through it."""
    f, net = t.func, network(t, 20, 64, 64, 3)
    x, y = t.randn(4, 2, 8, 20), t.randint(0, 3, (4, 2, 8))

    def loss(p, x, y):
        return t.nn.functional.cross_entropy(f.functional_call(net, p, (x,)), y)

    def step():
        p = dict(net.named_parameters())
        total = 0.0
        for (xa, xb), (ya, yb) in zip(x, y):
            g = f.grad(loss)(p, xa, ya)
            total = total + loss({k: v - 0.1 * g[k] for k, v in p.items()}, xb, yb)
        net.zero_grad()
        total.backward()
        return total.item()

    return step


def ensemble(t):
    """A step of each of eight networks at once."""
    f = t.func
    models = [network(t, 20, 64, 64, 3) for _ in range(8)]
    x, y = t.randn(64, 20), t.randint(0, 3, (64,))
    held = {k: v.detach() for k, v in f.stack_module_state(models)[0].items()}

    def loss(p):
        return t.nn.functional.cross_entropy(f.functional_call(models[0], p, (x,)), y)

    step_of_all = f.vmap(f.grad_and_value(loss))

    def step():
        nonlocal held
        g, losses = step_of_all(held)
        held = {k: held[k] - 0.1 * g[k] for k in held}
        return losses.sum().item()

    return step


PROGRAMS = {f.__name__: f for f in (per_sample, pinn, hvp, jacobian, maml, ensemble)}


def seconds(step):
    started = time.perf_counter()
    step()
    return time.perf_counter() - started


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", nargs="*", default=list(PROGRAMS), choices=PROGRAMS)
    parser.add_argument("--steps", type=int, default=40)
    options = parser.parse_args()
    libraries = [library("jtorch"), library("torch")]
    libraries[1].set_num_threads(2)
    print("program       jtorch ms   PyTorch ms   PyTorch / jtorch   first step of jtorch, s")
    for name in options.programs:
        ours, theirs = (PROGRAMS[name](t) for t in libraries)
        first = seconds(ours)
        for step in (ours, theirs):
            for _ in range(WARM):
                step()
        pairs = [(seconds(ours), seconds(theirs)) for _ in range(options.steps)]
        a, b = (statistics.median(column) * 1e3 for column in zip(*pairs))
        ratio = statistics.median(y / x for x, y in pairs)
        print(f"{name:12s} {a:10.2f} {b:12.2f} {ratio:18.2f} {first:26.2f}")


if __name__ == "__main__":
    main()
