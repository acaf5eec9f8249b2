"""What the convolution, pooling, normalisation and recurrent kernels are worth: a small ResNet's and an LSTM's training
step from jtorch's ops and their derivative rules, against the same step as anyone would write it in JAX.

Medians of interleaved runs in one process, with glibc told to keep its buffers for all of them. The clock is the
processor time of the process, so run it on one core, where that is what a user waits for; "wall" times the wall clock.

    taskset -c 1 python benchmarks/kernels_cnn.py [width] [cnn|pool|lstm|depthwise|groups|space|few|large] [wall]
"""

import ctypes
import sys
import time

glibc = ctypes.CDLL(None)
if hasattr(glibc, "mallopt"):
    for option, value in ((-3, 1 << 30), (-1, (1 << 31) - 1), (-2, 64 << 20), (-8, 1)):
        glibc.mallopt(option, value)

import jax  # noqa: E402

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax import lax  # noqa: E402

from jtorch.core import hasty  # noqa: E402
from jtorch.ops import batchnorm, conv, loss, pool, rnn  # noqa: E402
from jtorch.ops.registry import ZERO  # noqa: E402

clock = time.perf_counter if "wall" in sys.argv else time.process_time
BATCH, CLASSES, EPS = 32, 10, 1e-5


def by_rules(op):
    """The op as a function for jax.grad, its derivative by its rules."""
    names = [p.name for p in op.params]

    def call(*args, **kwargs):
        bound = op.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        values = bound.arguments
        arrays = [n for n in names if hasattr(values[n], "aval")]
        rest = {n: v for n, v in values.items() if n not in arrays}

        def visible(out):
            return out if not op.hidden else out[: -op.hidden] if len(out) - op.hidden > 1 else out[0]

        @jax.custom_vjp
        def run(*xs):
            return visible(op.fn(**rest, **dict(zip(arrays, xs))))

        def forward(*xs):
            out = op.fn(**rest, **dict(zip(arrays, xs)))
            return visible(out), (xs, out)

        def backward(saved, g):
            xs, out = saved
            parts = {f"out{k}": part for k, part in enumerate(out)} if isinstance(out, tuple) else {}
            env = {**rest, **dict(zip(arrays, xs)), **parts, "g": g, "out": out}
            grads = []
            for name, x in zip(arrays, xs):
                if not jnp.issubdtype(x.dtype, jnp.inexact):
                    grads.append(np.zeros(x.shape, jax.dtypes.float0))
                    continue
                rule = op.rules[name]
                grads.append(0 * x if rule is ZERO else rule(**{a: env[a] for a in op.rule_args[name]}))
            return tuple(grads)

        run.defvjp(forward, backward)
        return run(*[values[n] for n in arrays])

    return call


class Naive:
    """Convolutions and batch norm as most JAX code has them, in either layout."""

    def __init__(self, layout):
        self.nhwc = layout == "NHWC"
        self.dims = ("NHWC", "HWIO", "NHWC") if self.nhwc else ("NCHW", "OIHW", "NCHW")
        self.axes = (0, 1, 2) if self.nhwc else (0, 2, 3)

    def weight(self, w):
        return w.transpose(2, 3, 1, 0) if self.nhwc else w

    def input(self, x):
        return x.transpose(0, 2, 3, 1) if self.nhwc else x

    def conv(self, x, w, stride):
        pad = (w.shape[0] if self.nhwc else w.shape[2]) // 2
        return lax.conv_general_dilated(x, w, (stride, stride), [(pad, pad)] * 2, dimension_numbers=self.dims)

    def norm(self, x, scale, shift):
        spread = lambda v: v if self.nhwc else v[:, None, None]
        mean, var = jnp.mean(x, self.axes), jnp.var(x, self.axes)
        out = (x - spread(mean)) * lax.rsqrt(spread(var) + EPS) * spread(scale) + spread(shift)
        return out, mean, var

    def pool(self, x):
        return jnp.mean(x, (1, 2) if self.nhwc else (2, 3))

    def loss(self, logits, target):
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), target[:, None], 1))


class Ours:
    """The same from jtorch's ops."""

    def weight(self, w):
        return w

    input = weight

    def conv(self, x, w, stride):
        return by_rules(conv.conv2d)(x, w, None, stride, w.shape[2] // 2)

    def norm(self, x, scale, shift):
        return by_rules(batchnorm.batch_norm_train)(x, scale, shift, EPS)

    def pool(self, x):
        return jnp.mean(x, (2, 3))

    def loss(self, logits, target):
        return by_rules(loss.cross_entropy)(logits, target)


def resnet(width, blocks=2):
    """(parameters, apply) of a ResNet; `apply(form, parameters, x, target)` gives the loss and the statistics."""
    rng = np.random.default_rng(0)
    weights, norms, plan = [], [], []

    def add(o, c, k, stride, source):
        weights.append((rng.standard_normal((o, c, k, k)) / (c * k * k) ** 0.5).astype(np.float32))
        norms.append((np.ones(o, np.float32), np.zeros(o, np.float32)))
        plan.append((stride, source))

    add(width, 3, 3, 1, None)
    c, stages = width, []
    for stage in range(3):
        for block in range(blocks):
            o, stride = width << stage, 2 if stage and not block else 1
            first = len(plan)
            add(o, c, 3, stride, None)
            add(o, o, 3, 1, None)
            if stride != 1 or o != c:
                add(o, c, 1, stride, None)
            stages.append((first, stride, len(plan) - first == 3))
            c = o
    head = (0.01 * rng.standard_normal((c, CLASSES))).astype(np.float32)

    def apply(form, params, x, target):
        weights, norms, head = params
        stats = []

        def unit(i, x, stride):
            y, mean, var = form.norm(form.conv(x, weights[i], stride), *norms[i])
            stats.append((mean, var))
            return y

        x = jax.nn.relu(unit(0, x, 1))
        for first, stride, shortcut in stages:
            y = unit(first + 1, jax.nn.relu(unit(first, x, stride)), 1)
            x = jax.nn.relu(y + (unit(first + 2, x, stride) if shortcut else x))
        return form.loss(form.pool(x) @ head, target), stats

    return (weights, norms, head), apply


def told(ours):
    """What jtorch tells the compiler of its own programs."""
    return hasty.library() if ours else None


def training_step(form, width):
    """(step, state): one step of SGD with momentum, running statistics included."""
    (weights, norms, head), apply = resnet(width)
    params = ([form.weight(jnp.asarray(w)) for w in weights], norms, head)
    params = jax.tree.map(jnp.array, params)
    velocity = jax.tree.map(jnp.zeros_like, params)
    running = [(0 * s, 0 * b + 1) for s, b in params[1]]

    def step(params, velocity, running, x, target):
        grad, stats = jax.grad(lambda p: apply(form, p, form.input(x), target), has_aux=True)(params)
        velocity = jax.tree.map(lambda v, g: 0.9 * v + g, velocity, grad)
        params = jax.tree.map(lambda p, v: p - np.float32(0.01) * v, params, velocity)
        running = [(0.9 * m + 0.1 * a, 0.9 * v + 0.1 * b) for (m, v), (a, b) in zip(running, stats)]
        return params, velocity, running

    rng = np.random.default_rng(1)
    x = jnp.asarray(rng.standard_normal((BATCH, 3, 32, 32)), jnp.float32)
    target = jnp.asarray(rng.integers(0, CLASSES, BATCH))
    compiled = jax.jit(step, donate_argnums=(0, 1, 2), compiler_options=told(isinstance(form, Ours)))
    return lambda s: compiled(*s, x, target), (params, velocity, running)


def compare(steps, seconds):
    """Median milliseconds of each, interleaved; `steps`: name -> (step, state)."""
    states, times = {}, {name: [] for name in steps}
    for name, (step, state) in steps.items():
        states[name] = step(step(state))
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for name, (step, _) in steps.items():
            start = clock()
            states[name] = jax.block_until_ready(step(states[name]))
            times[name].append(clock() - start)
    return {name: 1e3 * float(np.median(t)) for name, t in times.items()}


def report(title, medians):
    best = medians["jtorch ops"]
    print(title)
    for name, ms in medians.items():
        print(f"  {name:<14}{ms:9.2f} ms   {ms / best:5.2f}x")


def naive_lstm(x, params):
    """Two layers, each step as the textbook has it."""
    for w_ih, w_hh, b_ih, b_hh in params:
        hidden = w_hh.shape[1]

        def cell(carry, xt, w_ih=w_ih, w_hh=w_hh, b=b_ih + b_hh):
            h, c = carry
            i, f, g, o = jnp.split(xt @ w_ih.T + h @ w_hh.T + b, 4, -1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        zero = jnp.zeros((x.shape[1], hidden), x.dtype)
        _, x = lax.scan(cell, (zero, zero), x)
    return x


def our_lstm(x, params):
    layer = by_rules(rnn.lstm_layer)
    for w_ih, w_hh, b_ih, b_hh in params:
        zero = jnp.zeros((x.shape[1], w_hh.shape[1]), x.dtype)
        x = layer(x, zero, zero, w_ih, w_hh, b_ih, b_hh, False)[0]
    return x


def lstm_step(apply, halved=True, width=256, length=128, batch=32):
    rng = np.random.default_rng(0)
    shapes = ((4 * width, width), (4 * width, width), (4 * width,), (4 * width,))
    draw = lambda s: jnp.asarray(rng.uniform(-1 / 16, 1 / 16, s), jnp.float32)
    params = [tuple(draw(s) for s in shapes) for _ in range(2)]
    x = jnp.asarray(rng.standard_normal((length, batch, width)), jnp.float32)

    def step(params):
        before = rnn.FORWARD_HALVED, rnn.BACKWARD_HALVED
        if not halved:
            rnn.FORWARD_HALVED = rnn.BACKWARD_HALVED = float("inf")  # while the step is traced
        try:
            grad = jax.grad(lambda p: jnp.mean(apply(x, p) ** 2))(params)
        finally:
            rnn.FORWARD_HALVED, rnn.BACKWARD_HALVED = before
        return jax.tree.map(lambda p, g: p - np.float32(0.1) * g, params, grad)

    return jax.jit(step, donate_argnums=0, compiler_options=told(apply is our_lstm)), params


def conv_step(form, size, weight, stride, groups):
    """A convolution with padding and its gradients alone, of values whose channels are first."""
    rng = np.random.default_rng(0)
    x, w = (jnp.asarray(rng.standard_normal(s), jnp.float32) for s in (size, weight))
    n = len(size) - 2
    pad = weight[2] // 2
    dims = ("NCXYZ"[: n + 2], "OIXYZ"[: n + 2], "NCXYZ"[: n + 2])

    def by_hand(x, w):
        return lax.conv_general_dilated(
            x, w, (stride,) * n, [(pad, pad)] * n, dimension_numbers=dims, feature_group_count=groups
        )

    def ours(x, w):
        return by_rules(conv.conv2d if n == 2 else conv.conv3d)(x, w, None, stride, pad, 1, groups)

    apply = by_hand if form == "by hand" else ours
    compiled = jax.jit(jax.grad(lambda a: jnp.sum(apply(*a) ** 2)), compiler_options=told(apply is ours))
    return lambda _: compiled((x, w)), None


# (what, input, weight, stride, groups)
DEPTHWISE = [
    ("3x3, 64 channels, 16x16", (16, 64, 16, 16), (64, 1, 3, 3), 1, 64),
    ("3x3, stride 2, 96 channels, 28x28", (8, 96, 28, 28), (96, 1, 3, 3), 2, 96),
    ("7x7, 96 channels, 14x14", (4, 96, 14, 14), (96, 1, 7, 7), 1, 96),
]
SPACE = [
    ("3x3x3, 16 to 32 channels, 16x16x16", (2, 16, 16, 16, 16), (32, 16, 3, 3, 3), 1, 1),
    ("3x3x3, stride 2, the same", (2, 16, 16, 16, 16), (32, 16, 3, 3, 3), 2, 1),
]
GROUPS = [
    ("3x3, 32 groups of 4, 28x28", (8, 128, 28, 28), (128, 4, 3, 3), 1, 32),
    ("3x3, 32 groups of 8, 14x14", (8, 256, 14, 14), (256, 8, 3, 3), 1, 32),
]
FEW = [
    ("3x3, 32 to 3 channels, 32x32", (64, 32, 32, 32), (3, 32, 3, 3), 1, 1),
    ("9x9, 32 to 3 channels, 64x64", (8, 32, 64, 64), (3, 32, 9, 9), 1, 1),
    ("3x3, 64 to 12 channels, 32x32", (16, 64, 32, 32), (12, 64, 3, 3), 1, 1),
]
LARGE = [
    ("3x3, 32 channels, one image of 256x256", (1, 32, 256, 256), (32, 32, 3, 3), 1, 1),
    ("9x9, 3 to 32 channels, the same", (1, 3, 256, 256), (32, 3, 9, 9), 1, 1),
]


def pool_step(form, window, stride, width=64):
    """Max pooling and its gradient alone, channels last by hand, channels first (of channels-last values) by jtorch."""
    x = jnp.asarray(np.random.default_rng(0).standard_normal((BATCH, 32, 32, width)), jnp.float32)

    def by_hand(x):
        size, step = (1, window, window, 1), (1, stride, stride, 1)
        return lax.reduce_window(x, -jnp.inf, lax.max, size, step, "VALID")

    def ours(x):
        return by_rules(pool.max_pool2d)(x.transpose(0, 3, 1, 2), window, stride).transpose(0, 2, 3, 1)

    apply = by_hand if form == "by hand" else ours
    return jax.jit(jax.grad(lambda x: jnp.sum(apply(x) ** 2)), donate_argnums=0), x


_KINDS = {"depthwise": DEPTHWISE, "groups": GROUPS, "space": SPACE, "few": FEW, "large": LARGE}


def main(width=32, only=None, seconds=15):
    if only in (None, "cnn"):
        steps = {
            "NHWC by hand": training_step(Naive("NHWC"), width),
            "NCHW by hand": training_step(Naive("NCHW"), width),
            "jtorch ops": training_step(Ours(), width),
        }
        report(f"ResNet {width}/{2 * width}/{4 * width}, 32x32, batch {BATCH}", compare(steps, seconds))
    if only in (None, "pool"):
        for window in (2, 3):
            steps = {name: pool_step(name, window, 2) for name in ("by hand", "jtorch ops")}
            report(f"max pooling {window}x{window}, stride 2, {BATCH}x64x32x32", compare(steps, seconds / 5))
    for word, cases in _KINDS.items():
        for title, *case in cases if only in (None, word) else ():
            steps = {name: conv_step(name, *case) for name in ("by hand", "jtorch ops")}
            report(f"convolution {title}", compare(steps, seconds / 5))
    if only in (None, "lstm"):
        steps = {
            "by hand": lstm_step(naive_lstm),
            "batch whole": lstm_step(our_lstm, halved=False),
            "jtorch ops": lstm_step(our_lstm),
        }
        report("LSTM, 2 layers of 256, 128 steps, batch 32", compare(steps, seconds))


if __name__ == "__main__":
    numbers = [int(a) for a in sys.argv[1:] if a.isdigit()]
    words = [a for a in sys.argv[1:] if not a.isdigit() and a != "wall"]
    main(*(numbers or [32]), *(words or [None]))
