"""How much faster is a small GPT's training step on jtorch's kernels than on jnp and jax.grad? (ratios, one process)

python benchmarks/kernels_gpt.py [--plain-malloc] [--embedding] [--products] [--attention]
"""

import ctypes
import functools
import math
import os
import pathlib
import statistics
import sys
import time

M_MMAP_THRESHOLD, M_TRIM_THRESHOLD, M_TOP_PAD, M_ARENA_MAX = -3, -1, -2, -8
if "--plain-malloc" in sys.argv:
    os.environ["JTORCH_MALLOC"] = "0"  # or importing jtorch would change the settings
elif sys.platform == "linux":
    # XLA's temporary buffers stay in the process between steps: for both sides, before the JAX client starts.
    for option, value in (
        (M_MMAP_THRESHOLD, 1 << 30),
        (M_TRIM_THRESHOLD, (1 << 31) - 1),
        (M_TOP_PAD, 1 << 26),
    ):
        ctypes.CDLL(None).mallopt(option, value)
    ctypes.CDLL(None).mallopt(M_ARENA_MAX, 1)

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

jax.config.update("jax_enable_x64", True)

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tests" / "ops"))

from derived import derived  # noqa: E402

from jtorch.core import hasty  # noqa: E402
from jtorch.ops import activation, attention, backend, linear, norm  # noqa: E402

LAYERS, WIDTH, HEADS, LENGTH, BATCH, VOCABULARY = 4, 128, 4, 128, 8, 100


class Naive:
    """As anyone would write it."""

    @staticmethod
    def embedding(weight, indices):
        return weight[indices]

    @staticmethod
    def linear(x, weight, bias):
        return x @ weight.T + bias if bias is not None else x @ weight.T

    @staticmethod
    def layer_norm(x, weight, bias):
        mean = x.mean(-1, keepdims=True)
        variance = jnp.square(x - mean).mean(-1, keepdims=True)
        return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * weight + bias

    @staticmethod
    def gelu(x):
        return jax.nn.gelu(x, approximate=False)

    @staticmethod
    def attention(q, k, v):
        scores = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
        scores = jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool)), scores, -jnp.inf)
        return jax.nn.softmax(scores, -1) @ v

    @staticmethod
    def log_softmax(x):
        return jax.nn.log_softmax(x, -1)


class Kernels:
    """The same, from the op table."""

    embedding = staticmethod(derived(linear.embedding_rows, padding_idx=None, scale_grad_by_freq=False))
    linear = staticmethod(derived(linear.linear))
    gelu = staticmethod(derived(activation.gelu, approximate="none"))
    log_softmax = staticmethod(derived(activation.log_softmax, dim=-1, dtype=None))
    attend = staticmethod(derived(attention.attention, is_causal=True, scale=None, enable_gqa=False))
    norm = staticmethod(derived(norm.layer_norm, normalized_shape=(WIDTH,), eps=1e-5, cudnn_enable=True))

    @classmethod
    def layer_norm(cls, x, weight, bias):
        return cls.norm(x, weight, bias)

    @classmethod
    def attention(cls, q, k, v):
        return cls.attend(q, k, v, None)


def parameters():
    draw = np.random.default_rng(0)

    def normal(*shape):
        return jnp.asarray(draw.standard_normal(shape) * 0.02, jnp.float32)

    def ones():
        return jnp.ones(WIDTH, jnp.float32)

    def zeros(n=WIDTH):
        return jnp.zeros(n, jnp.float32)

    def block():
        return {
            "norm1": (ones(), zeros()),
            "qkv": (normal(3 * WIDTH, WIDTH), zeros(3 * WIDTH)),
            "out": (normal(WIDTH, WIDTH), zeros()),
            "norm2": (ones(), zeros()),
            "up": (normal(4 * WIDTH, WIDTH), zeros(4 * WIDTH)),
            "down": (normal(WIDTH, 4 * WIDTH), zeros()),
        }

    return {
        "tokens": normal(VOCABULARY, WIDTH),
        "places": normal(LENGTH, WIDTH),
        "blocks": [block() for _ in range(LAYERS)],
        "norm": (ones(), zeros()),
        "head": normal(VOCABULARY, WIDTH),
    }


def heads(x):
    return x.reshape(BATCH, LENGTH, HEADS, WIDTH // HEADS).swapaxes(1, 2)


def loss(ops, p, tokens, targets):
    x = ops.embedding(p["tokens"], tokens) + p["places"]
    for block in p["blocks"]:
        q, k, v = jnp.split(ops.linear(ops.layer_norm(x, *block["norm1"]), *block["qkv"]), 3, -1)
        mixed = ops.attention(heads(q), heads(k), heads(v)).swapaxes(1, 2).reshape(BATCH, LENGTH, WIDTH)
        x = x + ops.linear(mixed, *block["out"])
        hidden = ops.gelu(ops.linear(ops.layer_norm(x, *block["norm2"]), *block["up"]))
        x = x + ops.linear(hidden, *block["down"])
    scores = ops.log_softmax(ops.linear(ops.layer_norm(x, *p["norm"]), p["head"], None))
    return -jnp.take_along_axis(scores, targets[..., None], -1).mean()


def make_step(ops):
    @functools.partial(jax.jit, donate_argnums=0, compiler_options=None if ops is Naive else hasty.library())
    def step(state, tokens, targets):
        p, m, v, n = state
        value, grad = jax.value_and_grad(lambda p: loss(ops, p, tokens, targets))(p)
        n = n + 1
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, grad)
        v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, grad)
        m_scale, v_scale = 1 / (1 - 0.9**n), 1 / (1 - 0.999**n)

        def adamw(p, m, v):
            return p * (1 - 1e-5) - 1e-3 * (m * m_scale) / (jnp.sqrt(v * v_scale) + 1e-8)

        return (jax.tree.map(adamw, p, m, v), m, v, n), value

    return step


def compare(sides, rounds=40):
    """Median milliseconds of each step, and the median of paired ratios to the first."""
    draw = np.random.default_rng(1)
    tokens, targets = (jnp.asarray(draw.integers(0, VOCABULARY, (BATCH, LENGTH))) for _ in range(2))
    steps, states, times = {}, {}, {name: [] for name in sides}
    for name, ops in sides.items():
        p = parameters()
        states[name] = (p, jax.tree.map(jnp.zeros_like, p), jax.tree.map(jnp.zeros_like, p), jnp.float32(0))
        steps[name] = make_step(ops)
        for _ in range(5):
            states[name], value = steps[name](states[name], tokens, targets)
        print(f"{name}: loss after 5 steps {float(value):.6f}")
    for _ in range(rounds):
        for name in sides:
            start = time.perf_counter()
            states[name], value = jax.block_until_ready(steps[name](states[name], tokens, targets))
            times[name].append(time.perf_counter() - start)
    first = times[next(iter(sides))]
    for name, taken in times.items():
        ratio = statistics.median(a / b for a, b in zip(first, taken))
        print(f"{name:8} {statistics.median(taken) * 1e3:7.2f} ms  best {min(taken) * 1e3:7.2f}  ratio {ratio:.2f}")


def embedding_forms(rows, width=128, uses=1024):
    """Three forms of an embedding's gradient, microseconds."""
    draw = np.random.default_rng(0)
    indices = jnp.asarray(draw.integers(0, rows, uses))
    grad = jnp.asarray(draw.standard_normal((uses, width)), jnp.float32)

    def scatter(i, g):
        return jnp.zeros((rows, width), g.dtype).at[i].add(g, mode="promise_in_bounds")

    def one_hot(i, g):
        return (jnp.arange(rows)[:, None] == i).astype(g.dtype) @ g

    def ordered(i, g):
        order = jnp.argsort(i)
        return jax.ops.segment_sum(g[order], i[order], rows, indices_are_sorted=True)

    line = []
    for form in map(jax.jit, (scatter, one_hot, ordered)):
        jax.block_until_ready(form(indices, grad))
        taken = []
        for _ in range(50):
            start = time.perf_counter()
            jax.block_until_ready(form(indices, grad))
            taken.append(time.perf_counter() - start)
        line.append(f"{statistics.median(taken) * 1e6:8.0f}")
    print(f"rows {rows:6} uses {uses:6} width {width:5}: scatter, one-hot, sorted us", *line)


def products(rows, columns, width, again=20):
    """A weight's gradient, `a.T @ b`, and AdamW's update: as it is written, and as `backend.matmul_tn` has it, microseconds."""
    draw = np.random.default_rng(0)
    a, b, p, m, v = (
        jnp.asarray(draw.random(shape), jnp.float32)
        for shape in ((rows, columns), (rows, width), *[(columns, width)] * 3)
    )

    def updated(form):
        def step(p, m, v):
            g = form(a * p[0, 0], b)  # as if computed in this step
            m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
            return p * 0.9999 - 1e-9 * m / (jnp.sqrt(v) + 1e-8), m, v

        return jax.jit(step, donate_argnums=(0, 1, 2), compiler_options=hasty.library())

    forms = [updated(form) for form in (lambda a, b: a.T @ b, backend.matmul_tn)]
    states, times = [jax.tree.map(jnp.copy, (p, m, v)) for _ in forms], [[] for _ in forms]
    for _ in range(15):
        for k, form in enumerate(forms):
            start = time.perf_counter()
            for _ in range(again):
                states[k] = form(*states[k])
            jax.block_until_ready(states[k])
            times[k].append((time.perf_counter() - start) / again * 1e6)
    plain, ours = (statistics.median(taken[2:]) for taken in times)
    print(f"({columns}, {rows}) @ ({rows}, {width}): {plain:8.0f} us, matmul_tn {ours:8.0f} us, {plain / ours:.2f}")


def causal(batch, length, count, size, rounds=20):
    """Causal attention and its gradients, four layers in a row: as anyone would write it, in one block of queries and in blocks, ms."""
    draw = np.random.default_rng(0)
    x, g = (jnp.asarray(draw.standard_normal((batch, length, n * count * size)), jnp.float32) for n in (3, 1))
    split = lambda a: [part.reshape(batch, length, count, size).swapaxes(1, 2) for part in jnp.split(a, 3, -1)]

    def layers(attend):
        def run(x):
            for _ in range(4):
                out = attend(*split(x)).swapaxes(1, 2).reshape(batch, length, -1)
                x = backend.barrier(x + 0.1 * jnp.concatenate([out] * 3, -1))
            return x[..., : count * size]

        return lambda x, g: jax.vjp(run, x)[1](g)

    forms, times, usual = [], [], attention.BLOCKS
    for attend, blocks in ((Naive.attention, usual), (Kernels.attention, ((0, 1),)), (Kernels.attention, usual)):
        attention.BLOCKS = blocks
        forms.append(jax.jit(layers(attend)).lower(x, g).compile(hasty.library()))
        times.append([])
    for _ in range(rounds):
        for form, taken in zip(forms, times):
            start = time.perf_counter()
            jax.block_until_ready(form(x, g))
            taken.append((time.perf_counter() - start) * 1e3)
    line = " / ".join(f"{statistics.median(taken[3:]):.1f}" for taken in times)
    gain = statistics.median(a / b for a, b in zip(times[0][3:], times[2][3:]))
    print(f"causal attention ({batch}, {count}, {length}, {size}): naive / one block / blocks {line} ms, {gain:.2f}")


if __name__ == "__main__":
    if "--attention" in sys.argv:
        for shape in ((8, 128, 4, 32), (4, 256, 4, 64), (2, 512, 8, 64), (1, 1024, 12, 64)):
            causal(*shape)
    if "--products" in sys.argv:
        for shape in (
            (32, 64, 64),
            (64, 256, 784),
            (64, 512, 64),
            (64, 1024, 256),
            (128, 2048, 512),
            (512, 1024, 256),
            (1024, 384, 128),
            (1024, 512, 128),
            (1024, 128, 512),
        ):
            products(*shape)
    if "--embedding" in sys.argv:
        for rows in (100, 512, 2048, 8192, 50000):
            for uses in (128, 1024, 8192):
                embedding_forms(rows, uses=uses)
    if not {"--attention", "--products", "--embedding"} & set(sys.argv):
        compare({"naive": Naive, "kernels": Kernels})
